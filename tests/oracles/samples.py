"""Numbers of resamples, studies and training, against NumPy, SciPy, scikit-learn and loops over rows."""

import math
from itertools import product
from types import SimpleNamespace

import numpy as np
import pandas as pd

from tests.oracles.catalogue import oracle, own


def _table(generator, n):
    return (generator.normal(size=(n, 3)),)


# ---- resamples

RESAMPLES = 20


def _poisson_weights(rows):
    """SciPy's Poisson quantiles of the 16 leading bits of NumPy's numbers, and of further bits where those leave open
    which."""
    from scipy.stats import poisson

    key = np.random.SeedSequence(5).generate_state(2, np.uint64)
    streams = [np.random.Philox(key=key, counter=[0, 0, 0, stream]) for stream in range(2)]
    parts = (
        streams[0]
        .random_raw(RESAMPLES * 256)
        .view(np.uint16)
        .reshape(RESAMPLES, 1024)
        .astype(float)
    )
    low, high = (poisson.ppf((parts + end) / 2**16, 1) for end in (1e-6, 1 - 1e-6))
    torn = low != high
    low[torn] = poisson.ppf(
        (parts[torn] + np.random.Generator(streams[1]).random(torn.sum())) / 2**16, 1
    )
    return low[:, :rows]


def _all_swaps(x, y):
    """What both systems sum to for each way to exchange some of their rows, smallest first."""
    swaps = [
        [(b if swap else a, a if swap else b) for a, b, swap in zip(x, y, swaps)]
        for swaps in product((0, 1), repeat=len(x))
    ]
    return sorted(tuple(map(int, np.sum(rows, axis=0))) for rows in swaps)


def _swapped(x, y):
    blocks = own("core.resample.swapped_sums")(np.asarray(x)[:, None], np.asarray(y)[:, None])
    return sorted(
        tuple(map(int, row)) for first, second in blocks for row in np.hstack([first, second])
    )


def _share(chance):
    """Of random swaps, and of all eight ways to swap three rows, the first of which swaps each."""
    chance = np.asarray(chance)
    return [
        own("core.resample.share_as_large")(chance, 0.7, 100),
        own("core.resample.share_as_large")(np.append(-0.7, chance[:7]), 0.7, 3),
    ]


def _resampled(tables):
    systems = {
        f"s{place}": np.stack([column, np.ones(len(column))], axis=1)
        for place, column in enumerate(np.transpose(tables))
    }
    return np.vstack(own("people.systems.resampled_scores")(systems, n_resamples=RESAMPLES, seed=5))


def _means(table):
    generator = np.random.default_rng(5)
    drawn = [generator.choice(len(table), size=len(table)) for _ in range(RESAMPLES)]
    return [table.mean(axis=0), *(table[rows].mean(axis=0) for rows in drawn)]


def _side_by_side(table):
    """Columns of two metrics, one of which sums numbers of its own."""
    metric = own("core.metric.Metric")
    scores = own("core.metric.Scores")
    frame = pd.DataFrame(np.asarray(table), columns=list("abc"))
    metrics = [metric("m", (), ("a", "b"), None), metric("o", (), ("c",), None)]
    return np.transpose(
        own("runs.parts.join_columns")(
            metrics, {"m": scores(frame), "o": scores(frame, frame[["a", "b", "c"]].to_numpy())}
        )
    )


oracle(
    "core.resample.poisson_sums",
    "SciPy's quantiles, NumPy's numbers",
    lambda x: own("core.resample.poisson_sums")(
        [np.asarray(x)[:5], np.asarray(x)[5:]], RESAMPLES, 5
    ),
    lambda x: _poisson_weights(len(x)) @ x,
    _table,
    rows=False,
    whole_is_symmetric=False,
)
oracle(
    "core.resample.resample_rows",
    "NumPy's choice",
    lambda x: [
        np.asarray(x)[rows] for rows in own("core.resample.resample_rows")(len(x), RESAMPLES, 5)
    ],
    lambda x: [
        generator.choice(x, size=len(x))
        for generator in [np.random.default_rng(5)]
        for _ in range(RESAMPLES)
    ],
    lambda generator, n: (generator.normal(size=n),),
    rows=False,
    whole_is_symmetric=False,
)
oracle(
    "core.resample.swapped_sums",
    "all swaps in plain Python",
    _swapped,
    _all_swaps,
    lambda generator, n: tuple(generator.integers(0, 9, size=(2, n - 4))),
    rows=False,
)
oracle(
    "core.resample.share_as_large",
    "a count",
    _share,
    lambda x: [
        (1 + sum(abs(one) >= 0.7 for one in x)) / (1 + len(x)),
        (1 + sum(abs(one) >= 0.7 for one in x[:7])) / 8,
    ],
    lambda generator, n: (generator.normal(size=n),),
    rows=False,
    whole_is_symmetric=False,
)
oracle(
    "people.systems.resampled_scores",
    "NumPy, one resample after the other",
    _resampled,
    _means,
    _table,
    rows=False,
    whole_is_symmetric=False,
)
oracle(
    "runs.parts.join_columns",
    "NumPy",
    _side_by_side,
    lambda x: np.column_stack(
        [np.nan_to_num(x[:, 0]), ~np.isnan(x[:, 0]), np.nan_to_num(x[:, 1]), ~np.isnan(x[:, 1]), x]
    ),
    lambda generator, n: (
        np.where(generator.random((n, 3)) < [0.3, 0.3, 0], np.nan, generator.normal(size=(n, 3))),
    ),
)


# ---- studies

SIZES = np.array([25, 50, 100, 200, 400])


def _on_log_scale(powers):
    return [
        math.nan if max(row) < 0.8 else math.exp(np.interp(0.8, row, np.log(SIZES)))
        for row in powers
    ]


def _on_front(first, second):
    """Share of the resamples in which no other system is as good in both scores and better in one."""
    worse = [
        [
            any(
                a[j] >= a[k] and b[j] >= b[k] and (a[j] > a[k] or b[j] > b[k])
                for j in range(len(a))
            )
            for k in range(len(a))
        ]
        for a, b in zip(first, second)
    ]
    return 1 - np.mean(worse, axis=0)


def _pilot(rated, scored):
    return own("people.estimators.Estimate")(
        mean=3,
        low=2,
        high=4,
        mean_of_ratings=3,
        r=0.5,
        labels_worth=30,
        n_rated=20,
        n_scored=200,
        rated_sources=10,
        errors=pd.Series([0.1]),
        freedom=8,
        rated_variance=rated,
        scored_variance=scored,
    )


def _first_narrow_enough(rated, scored):
    """One number of ratings after the other: two a source, two degrees of freedom lost."""
    from scipy.stats import t

    n = np.arange(1, 300)
    low, high = t.interval(
        0.95, np.maximum(n / 2 - 2, 1), loc=0, scale=np.sqrt(rated * 20 / n + scored)
    )
    return n[high - low <= 0.7][0]


oracle(
    "people.systems.sentences_needed",
    "NumPy's interpolation",
    lambda powers: [
        own("people.systems.sentences_needed")(pd.DataFrame({"n": SIZES, "power": row}))
        for row in powers
    ],
    _on_log_scale,
    lambda generator, n: (np.sort(generator.uniform(0.05, 1, size=(n, 5)) ** 0.7, axis=1),),
)
oracle(
    "people.pareto.front_shares",
    "all pairs in plain Python",
    lambda a, b: own("people.pareto.front_shares")(
        {"style": np.asarray(a), "content": np.asarray(b)}
    ),
    _on_front,
    lambda generator, n: tuple(np.round(generator.normal(size=(2, n, 4)), 1)),
    rows=False,
)
oracle(
    "people.estimators.ratings_needed",
    "SciPy, one number of ratings after the other",
    lambda rated, scored: [
        own("people.estimators.ratings_needed")(_pilot(float(a), float(b)), 0.7)
        for a, b in zip(rated, scored)
    ],
    lambda rated, scored: [_first_narrow_enough(float(a), float(b)) for a, b in zip(rated, scored)],
    lambda generator, n: (
        generator.uniform(0.01, 0.06, size=n),
        generator.uniform(0, 0.01, size=n),
    ),
)


# ---- classifiers


def twin_sentences(generator, n):
    """2n sentences of n pairs in any order, a few of a third class in place of the second; and what a classifier
    says."""
    order = generator.permutation(2 * n)
    label = np.where(generator.random(2 * n) < 0.3, 2, 1) * (order % 2)
    return order // 2, label, np.round(generator.random(2 * n), 1)


def _frame(pair, label, probability):
    return pd.DataFrame(
        {
            "pair": np.asarray(pair),
            "label": np.asarray(label),
            "probability": np.asarray(probability),
        }
    )


def _twins(pair, label, _=None):
    """Of each pair with both, where the sentence of class 0 and that of class 1 stand."""
    places = {(int(one), int(two)): place for place, (one, two) in enumerate(zip(pair, label))}
    return [
        (places[one, 0], places[one, 1])
        for one in sorted(set(map(int, pair)))
        if (one, 0) in places and (one, 1) in places
    ]


def _in_order(pair, label, probability):
    return [
        1.0 if probability[a] > probability[b] else 0.5 if probability[a] == probability[b] else 0.0
        for a, b in _twins(pair, label)
    ]


def edited_pairs(generator, n):
    """Sources and targets as numbers in words, a third of them equal."""
    sources, targets = generator.permutation(20 * n)[: 2 * n].reshape(2, n)
    targets = np.where(np.arange(n) % 3, targets, sources)
    return tuple([str(one) for one in side] for side in (sources, targets))


def _says(text):
    """A classifier's probability of the first class, by the number that the text holds."""
    return (int(text) * 37 % 101) / 101


def _evaluated(sources, targets):
    model = SimpleNamespace(
        predict_proba=lambda texts, *_, **__: np.array([[_says(t), 1 - _says(t)] for t in texts])
    )
    found = own("training.errors.evaluate_classifier")(
        model, pd.DataFrame({"source": sources, "target": targets})
    )
    return [
        found[name]
        for name in ("accuracy", "pairwise_accuracy", "control_accuracy", "n_pairs", "n_controls")
    ]


def _accuracies(sources, targets):
    """A control is a sentence without the style."""
    from sklearn.metrics import accuracy_score

    edited = [(a, b) for a, b in zip(sources, targets) if a != b]
    controls = [a for a, b in zip(sources, targets) if a == b]

    def likelier(texts):
        return [int(_says(text) < 0.5) for text in texts]

    return [
        accuracy_score([0, 1] * len(edited), likelier([text for pair in edited for text in pair])),
        np.mean([_says(a) > _says(b) for a, b in edited]),
        accuracy_score([1] * len(controls), likelier(controls)),
        len(edited),
        len(controls),
    ]


def _regression(features, labels):
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(
        StandardScaler(), LogisticRegression(C=1.0, tol=1e-12, max_iter=10_000)
    ).fit(features, labels)


def _held_out(features, labels, groups):
    """Folds of whole groups, one after the other."""
    found = np.zeros(len(labels))
    names = np.unique(groups)
    fold = dict(
        zip(names.tolist(), (np.random.default_rng(0).permutation(len(names)) % 3).tolist())
    )
    folds = np.array([fold[group] for group in groups])
    for one in range(3):
        rest = folds != one
        found[~rest] = _regression(features[rest], labels[rest]).predict_proba(features[~rest])[
            :, 1
        ]
    return found


def grouped(generator, n):
    """Rows of two features, labels that follow them, and groups of two rows."""
    features = generator.normal(size=(4 * n, 2))
    return (
        features,
        (features.sum(axis=1) + generator.normal(size=4 * n) > 0).astype(int),
        np.arange(4 * n) // 2,
    )


def _even(values, labels):
    """Labels as if half of them were true: the log-odds of the share that are, taken off."""
    from scipy.special import logit

    made = _regression(values[:, None], labels)
    slope = made[-1].coef_[0, 0] / made[0].scale_[0]
    return [made[-1].intercept_[0] - slope * made[0].mean_[0] - logit(np.mean(labels)), slope]


def rare_labels(generator, n):
    values = generator.normal(size=4 * n)
    return values, (values + generator.normal(size=4 * n) > 1).astype(int)


oracle(
    "tables.pairs.twins",
    "a dictionary",
    lambda *rows: np.transpose(own("tables.pairs.twins")(_frame(*rows))),
    _twins,
    twin_sentences,
    rows=False,
    whole_is_symmetric=False,
)
oracle(
    "training.errors.in_order",
    "a comparison in plain Python",
    lambda *rows: own("training.errors.in_order")(_frame(*rows)),
    _in_order,
    twin_sentences,
    rows=False,
)
oracle(
    "training.errors.order_accuracy",
    "a comparison in plain Python",
    lambda *rows: own("training.errors.order_accuracy")(_frame(*rows)),
    lambda *rows: np.mean(_in_order(*rows)),
    twin_sentences,
    rows=False,
)
oracle(
    "training.errors.evaluate_classifier",
    "scikit-learn",
    _evaluated,
    _accuracies,
    edited_pairs,
    rows=False,
)
oracle(
    "training.calibration.confidence_of",
    "NumPy",
    lambda p: list(own("training.calibration.confidence_of")(p).values())[1:],
    lambda p: [
        np.mean(np.sort(p)[:, -1]),
        math.sqrt(np.mean((np.sort(p)[:, -1] - np.sort(p)[:, -1].mean()) ** 2)),
    ],
    lambda generator, n: (generator.dirichlet([1, 1, 1], size=n),),
    rows=False,
)
oracle(
    "training.logistic.cross_validated",
    "scikit-learn, one fold after the other",
    lambda *rows: own("training.logistic.cross_validated")(*rows, folds=3),
    _held_out,
    grouped,
    near=1e-4,
    rows=False,
    whole_is_symmetric=False,
)
oracle(
    "training.logistic.fit_even_logistic",
    "scikit-learn",
    own("training.logistic.fit_even_logistic"),
    _even,
    rare_labels,
    near=1e-4,
    rows=False,
)


# ---- folds


def _dealt(texts, label):
    """Groups, in how many folds each lies, and how many texts of each style the folds have, smallest first."""
    frame = pd.DataFrame({"text": texts, "label": label, "pair": np.arange(len(label))})
    group, fold = own("training.folds.deal_folds")(frame, folds=3)
    groups = frame.assign(group=group, fold=fold).drop_duplicates("group")
    return [
        *group,
        len({*zip(group, fold)}) / len(groups),
        *np.sort(pd.crosstab(groups.label, groups.fold), axis=None),
    ]


def _by_first_text(texts, label):
    first = list(dict.fromkeys(text.lower() for text in texts))
    groups = [first.index(text.lower()) for text in texts]
    sizes = [
        sum(label[groups.index(place)] == style for place in range(len(first))) for style in (0, 1)
    ]
    return [*groups, 1, *sorted((size + fold) // 3 for size in sizes for fold in range(3))]


def alike_texts(generator, n):
    """Texts of either style, of which a few recur, in capitals too."""
    texts = [f"text {number}" for number in range(2 * n)]
    texts += [str(text).upper() for text in generator.choice(texts, size=n // 2)]
    return texts, np.array([int(text.split()[1]) % 2 for text in texts])


def _chosen_without(right, group):
    """Choose on the groups that were drawn, measure on those that were not, one resample after the other."""
    generator = np.random.default_rng(5)
    shares = []
    for drawn in generator.multinomial(
        group.max() + 1, np.full(group.max() + 1, 1 / (group.max() + 1)), size=300
    ):
        totals = [
            sum(drawn[place] * bool(said) for place, said in zip(group, way)) for way in right.T
        ]
        best = totals.index(max(totals))
        left = [bool(row[best]) for row, place in zip(right, group) if not drawn[place]]
        if left:
            shares.append(sum(left) / len(left))
    return [sum(shares) / len(shares), *np.percentile(shares, [2.5, 97.5])]


oracle(
    "training.folds.deal_folds",
    "places in a list, whole division",
    _dealt,
    _by_first_text,
    alike_texts,
    rows=False,
    whole_is_symmetric=False,
)
oracle(
    "training.folds.measure_choice",
    "a loop over resamples",
    lambda right, group: own("training.folds.measure_choice")(
        np.asarray(right), np.asarray(group), 300, 5
    ),
    _chosen_without,
    lambda generator, n: (generator.random((2 * n, 3)) < 0.6, np.arange(2 * n) // 2),
    rows=False,
)


# ---- words and tokens

SENTENCE = ["the", "cat", "sat", "on", "a", "mat"]


def _marks(changed):
    """Sentences, and what is left of them where words are changed into another."""
    from tests.models.tiny import tokenizer

    texts = [
        " ".join(SENTENCE),
        *(
            " ".join("old" if swap else word for word, swap in zip(SENTENCE, row))
            for row in changed
        ),
    ]
    encoded = tokenizer()([texts[0]] * len(changed) + texts[1:])
    n = len(changed)
    found = own("training.words.mark_edits")(encoded, range(n), range(n, 2 * n), range(n, 2 * n))
    return np.hstack([found[:n], found[n:]])


def _changed(changed):
    """The frame's two tokens are no words; where nothing is changed, nothing is known."""
    nothing = [math.nan]
    return [
        [*nothing, *(row.astype(float) if row.any() else nothing * 6), *nothing, *[0.0] * 8]
        for row in changed
    ]


def _tokens_and_words(generator, n):
    """Values, and lengths of the tokens that hold them."""
    return generator.normal(size=n), generator.integers(1, 4, size=n)


def _spans(lengths):
    ends = np.cumsum(lengths).tolist()
    return list(zip([0, *ends], ends)), [(place, place + 2) for place in range(0, ends[-1] + 4, 3)]


def _lowest(values, lengths):
    """The lowest value of the tokens of a word's characters."""
    tokens, words = _spans(lengths)
    by_letter = [value for value, (start, end) in zip(values, tokens) for _ in range(end - start)]
    return [min(by_letter[start:end], default=0.0) for start, end in words]


oracle(
    "training.words.mark_edits",
    "the changes that were made",
    _marks,
    _changed,
    lambda generator, n: (generator.random((n, 6)) < 0.3,),
)
oracle(
    "report.flows.lowest_of_words",
    "a list of letters",
    lambda values, lengths: own("report.flows.lowest_of_words")(
        np.asarray(values), *_spans(lengths)
    ),
    _lowest,
    _tokens_and_words,
    rows=False,
    whole_is_symmetric=False,
)
