"""Numbers of the rooms: functions that chapters and commands rest on, against NumPy, SciPy, POT and others."""

import importlib
import math
from collections import Counter
from itertools import product

import numpy as np

from tests.oracles.catalogue import oracle, own, word_matches
from tests.oracles.registry import columns, distributions, text_pairs


def library(path):
    """A function of another library, imported when it is asked for."""
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


def each(name):
    """A function of numbers, called row by row."""
    return lambda *data: [own(name)(*row) for row in zip(*map(np.asarray, data))]


def drawn(*kinds):
    """Columns of n rows, each by a function of the generator and n."""
    return lambda generator, n: tuple(kind(generator, n) for kind in kinds)


def normal(*shape):
    return lambda generator, n: generator.normal(size=(n, *shape))


def whole(low, high, *shape):
    return lambda generator, n: generator.integers(low, high, size=(n, *shape))


def share(*shape):
    return lambda generator, n: generator.uniform(0.05, 0.95, size=(n, *shape))


# ---- words


def _sacrebleu_precisions(outputs, references, n=4):
    from sacrebleu.metrics import BLEU

    found = []
    for statistics in BLEU()._extract_corpus_statistics(list(outputs), [list(references)]):
        given = statistics[0]
        wanted = statistics[1]
        matched = statistics[2 : 2 + n]
        total = statistics[2 + n :]
        score = BLEU.compute_bleu(
            matched, total, given, wanted, smooth_method="floor", smooth_value=0.1
        )
        values = (
            np.array(score.precisions) / 100
            if any(matched)
            else [0.1 / max(one, 1) for one in total]
        )
        found.append(
            [value if there else math.nan for value, there in zip(values, total)]
        )  # it stops without a match
    return found


def _meteor(matched, given, wanted):
    """Lavie and Agarwal 2007 with the words in two runs, or one."""
    found = []
    for matches, output, reference in zip(matched, given, wanted):
        if not matches:
            found.append(0.0)
            continue
        precision = matches / output
        recall = matches / reference
        mean = 1 / (0.9 / recall + 0.1 / precision)
        found.append(mean * (1 - 0.5 * (min(matches, 2) / matches) ** 3))
    return found


def _sacrebleu_chrf(outputs, references):
    import sacrebleu

    return [
        sacrebleu.sentence_chrf(o, [r], eps_smoothing=False).score / 100
        for o, r in zip(outputs, references)
    ]


def _runs(orders):
    """Where a pair does not continue the one before it, for the alignment of word i with word order[i]."""
    return [1 + int(np.sum(np.diff(order) != 1)) for order in orders]


oracle(
    "bleu.closest_length",
    "NumPy",
    each("bleu.closest_length"),
    lambda given, wanted: [
        sorted(row)[int(np.argmin(np.abs(np.array(sorted(row)) - length)))]
        for length, row in zip(given, wanted)
    ],
    drawn(whole(1, 20), whole(1, 20, 3)),
)
oracle(
    "bleu.smoothed_precisions",
    "sacreBLEU",
    lambda o, r: own("bleu.smoothed_precisions")(
        own("bleu.bleu_statistics")(o, r), smoothing="floor", smoothing_value=0.1
    ),
    _sacrebleu_precisions,
    text_pairs,
)
oracle(
    "bleu.geometric_mean",
    "SciPy",
    lambda p: own("bleu.geometric_mean")(np.asarray(p), np.array([0.1, 0.2, 0.3, 0.4]), False),
    lambda p: [library("scipy.stats.gmean")(row, weights=[0.1, 0.2, 0.3, 0.4]) for row in p],
    drawn(share(4)),
)
oracle(
    "overlap.chrf_from_statistics",
    "sacreBLEU",
    lambda o, r: own("overlap.chrf_from_statistics")(own("overlap.chrf_statistics")(o, r)),
    _sacrebleu_chrf,
    text_pairs,
    near=1e-6,
)
oracle(
    "words.word_alignment.meteor_from_counts",
    "the formula in plain Python",
    lambda m, o, r: own("words.word_alignment.meteor_from_counts")(m, np.minimum(m, 2), o, r),
    _meteor,
    word_matches,
)
oracle(
    "words.word_alignment.count_chunks",
    "NumPy",
    lambda orders: [
        own("words.word_alignment.count_chunks")(list(enumerate(map(int, row)))) for row in orders
    ],
    _runs,
    lambda generator, n: (np.array([generator.permutation(6) for _ in range(n)]),),
)
oracle(
    "words.quantities.number_value",
    "Python's own format",
    lambda values: [own("words.quantities.number_value")(f"{int(value):,}") for value in values],
    lambda values: values,
    drawn(whole(0, 10**7)),
)
oracle(
    "words.ngram_smoothing.counts_of_counts",
    "Counter",
    lambda counts: own("words.ngram_smoothing.counts_of_counts")(np.asarray(counts), 4),
    lambda counts: [0, *(Counter(np.asarray(counts).tolist())[times] for times in range(1, 5))],
    drawn(whole(1, 7)),
    rows=False,
)
oracle(
    "words.ngram_counts.count_ngrams",
    "Counter",
    lambda words: np.sort(
        own("words.ngram_counts.count_ngrams")(np.asarray(words), np.array([len(words)]), 2)[1][1]
    ),
    lambda words: sorted(Counter(zip(words[:-1].tolist(), words[1:].tolist())).values()),
    drawn(whole(3, 7)),
    rows=False,
    whole_is_symmetric=False,
)


# ---- distances


def _emd(p, q):
    import ot

    return [
        ot.emd2(np.ascontiguousarray(a / a.sum()), np.ascontiguousarray(b / b.sum()), PRICES)
        for a, b in zip(np.asarray(p), np.asarray(q))
    ]


PRICES = np.array([[0, 2, 5, 1], [2, 0, 3, 4], [5, 3, 0, 2], [1, 4, 2, 0]], dtype=float)


def two_distributions(generator, n):
    return distributions(4)(generator, n)[:2]


oracle(
    "training.calibration.transport_distance",
    "POT",
    lambda p, q: own("training.calibration.transport_distance")(
        np.asarray(p), np.asarray(q), PRICES
    ),
    _emd,
    two_distributions,
    near=1e-7,
)
oracle(
    "training.calibration.target_probabilities",
    "a loop",
    lambda p, q, t: np.transpose(
        own("training.calibration.target_probabilities")(np.asarray(p), np.asarray(q), t)
    ),
    lambda p, q, t: [[a[label], b[label]] for a, b, label in zip(p, q, t)],
    distributions(3),
)
oracle(
    "training.calibration.ordered_cost",
    "a loop",
    lambda sizes: [own("training.calibration.ordered_cost")(int(size)).sum() for size in sizes],
    lambda sizes: [sum(abs(i - j) for i in range(size) for j in range(size)) for size in sizes],
    drawn(whole(2, 9)),
)
oracle(
    "models.alignment.cheapest",
    "POT",
    lambda p, q: [
        own("models.alignment.cheapest")(
            np.maximum(a, 1e-9) / np.maximum(a, 1e-9).sum(),
            np.maximum(b, 1e-9) / np.maximum(b, 1e-9).sum(),
            PRICES,
        )
        for a, b in zip(p, q)
    ],
    _emd,
    two_distributions,
    near=1e-6,
)
oracle(
    "models.alignment.relaxed_price",
    "a loop over words",
    lambda p, q: [own("models.alignment.relaxed_price")(a, b, PRICES) for a, b in zip(p, q)],
    lambda p, q: [
        max(
            sum(a[i] * min(PRICES[i]) for i in range(4)),
            sum(b[j] * min(PRICES[:, j]) for j in range(4)),
        )
        for a, b in zip(p, q)
    ],
    two_distributions,
)
oracle(
    "models.alignment.unit_rows",
    "scikit-learn",
    lambda a: own("models.alignment.unit_rows")(np.asarray(a)),
    lambda a: library("sklearn.preprocessing.normalize")(a, norm="l2"),
    drawn(normal(5)),
)
oracle(
    "models.alignment.distances",
    "SciPy",
    lambda a: own("models.alignment.distances")(np.asarray(a), np.arange(15.0).reshape(3, 5)),
    lambda a: library("scipy.spatial.distance.cdist")(a, np.arange(15.0).reshape(3, 5)),
    drawn(normal(5)),
    near=1e-6,
)


# ---- chance


def _loop_sums(x):
    generator = np.random.default_rng(5)
    return [x[generator.integers(len(x), size=len(x))].sum(axis=0) for _ in range(20)]


def _loop_counts(x):
    generator = np.random.default_rng(5)
    return [
        np.bincount(generator.integers(len(x), size=len(x)), minlength=len(x)) for _ in range(20)
    ]


def _swap_p(x, y):
    """All ways to give each row's difference the other sign."""
    signs = np.array(list(product((1, -1), repeat=len(x))))
    means = signs @ (x - y)
    return np.mean(np.abs(means) >= abs((x - y).sum()) - 1e-9)


def _mean_rows(x):
    return own("core.resample.mean_statistics")(x)


def _compared(x, y):
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of few sentences
        found = own("core.resample.paired_bootstrap")(
            _mean_rows(x), _mean_rows(y), n_resamples=20, seed=5
        )
    return [found.difference, found.low, found.high]


oracle(
    "core.resample.resample_sums",
    "NumPy, one resample after the other",
    lambda x: own("core.resample.resample_sums")(np.asarray(x), 20, 5),
    _loop_sums,
    drawn(normal(3)),
    rows=False,
    whole_is_symmetric=False,
)
oracle(
    "core.resample.resample_counts",
    "NumPy, one resample after the other",
    lambda x: np.concatenate(list(own("core.resample.resample_counts")(np.arange(len(x)), 20, 5))),
    _loop_counts,
    drawn(normal()),
    rows=False,
    whole_is_symmetric=False,
)
oracle(
    "core.resample.bootstrap_interval",
    "NumPy, one resample after the other",
    lambda x: list(own("core.resample.bootstrap_interval")(_mean_rows(x), n_resamples=20, seed=5)),
    lambda x: [
        x.mean(),
        *np.percentile(np.array(_loop_sums(x)) / len(x), [2.5, 97.5]),
        np.mean(_loop_sums(x)) / len(x),
    ],
    drawn(normal()),
    rows=False,
    whole_is_symmetric=False,
)
oracle(
    "core.resample.paired_bootstrap",
    "NumPy, one resample after the other",
    _compared,
    lambda x, y: [
        (x - y).mean(),
        *np.percentile(np.array(_loop_sums(x - y)) / len(x), [2.5, 97.5]),
    ],
    drawn(normal(), normal()),
    rows=False,
    whole_is_symmetric=False,
)
oracle(
    "core.resample.approximate_randomization",
    "all swaps in NumPy",
    lambda x, y: (
        own("core.resample.approximate_randomization")(_mean_rows(x), _mean_rows(y)).p_value
    ),
    _swap_p,
    columns("normal", "skewed"),
    rows=False,
)
oracle(
    "core.resample.student_interval",
    "SciPy",
    lambda x: own("core.resample.student_interval")(
        (np.sum(x) - np.asarray(x)) / (len(x) - 1), np.mean(x)
    ),
    lambda x: library("scipy.stats.t").interval(
        0.95, len(x) - 1, x.mean(), x.std(ddof=1) / len(x) ** 0.5
    ),
    columns("skewed"),
    rows=False,
)
oracle(
    "core.resample.p_value",
    "a count",
    lambda x: own("core.resample.p_value")(np.asarray(x), 1.0),
    lambda x: (1 + sum(abs(one) >= 1 for one in x)) / (1 + len(x)),
    columns("tied"),
    rows=False,
)


# ---- people and systems


def _counts(n):
    return np.random.default_rng(3).multinomial(n, np.full(n, 1 / n), size=6).astype(float)


def _of_repeated(function, *data):
    """A correlation of the rows, each as often as a resample has it."""
    repeated = [
        [np.repeat(side, times) for side in data] for times in _counts(len(data[0])).astype(int)
    ]
    return [function(*row) for row in repeated]


def _pearson(x, y):
    return np.corrcoef(x, y)[0, 1]


def _centred(x, y, systems):
    for side in set(systems):
        x, y = (np.where(systems == side, one - one[systems == side].mean(), one) for one in (x, y))
    return _pearson(x, y)


def _rank_correlation(x, y):
    from scipy.stats import spearmanr

    return spearmanr(x, y).statistic


def _from_precision(rows):
    """The partial correlation as an entry of the inverse correlation matrix."""
    found = []
    for r_xy, r_xz, r_yz in rows:
        inverse = np.linalg.inv([[1, r_xy, r_xz], [r_xy, 1, r_yz], [r_xz, r_yz, 1]])
        found.append(-inverse[0, 1] / math.sqrt(inverse[0, 0] * inverse[1, 1]))
    return found


def three_correlations(generator, n):
    tables = [np.corrcoef(generator.normal(size=(3, 8))) for _ in range(n)]
    return (np.array([[r[0, 1], r[0, 2], r[1, 2]] for r in tables]),)


def _all_orders(x, y):
    from itertools import permutations

    from scipy.stats import kendalltau

    x = x[:5]
    y = y[:5]
    taus = [kendalltau(x, order).statistic for order in permutations(y)]
    return np.mean(np.abs(taus) >= abs(taus[0]) - 1e-9)


def _on_fisher_scale(x, drawn_values, n=10):
    from scipy.stats import t

    z = np.arctanh(x)
    spread = np.std(np.arctanh(drawn_values), ddof=1)
    return np.tanh([z - t.ppf(0.975, n - 1) * spread, z + t.ppf(0.975, n - 1) * spread])


oracle(
    "people.coefficients.weighted_pearson",
    "NumPy, of repeated rows",
    lambda x, y: own("people.coefficients.weighted_pearson")(
        _counts(len(x)), np.asarray(x), np.asarray(y)
    ),
    lambda x, y: _of_repeated(_pearson, x, y),
    columns("normal", "skewed"),
    rows=False,
    whole_is_symmetric=False,
)
oracle(
    "people.coefficients.coefficients",
    "SciPy, of repeated rows",
    lambda x, y: own("people.coefficients.coefficients")(
        _counts(len(x)), np.asarray(x), np.asarray(y), "spearman"
    ),
    lambda x, y: _of_repeated(_rank_correlation, x, y),
    columns("tied", "skewed"),
    rows=False,
    whole_is_symmetric=False,
)
oracle(
    "people.coefficients.within_coefficients",
    "NumPy, means of systems taken from repeated rows",
    lambda x, y, s: own("people.coefficients.within_coefficients")(
        _counts(len(x)), np.asarray(x), np.asarray(y), s
    ),
    lambda x, y, s: _of_repeated(_centred, x, y, s),
    columns("normal", "skewed", "groups"),
    rows=False,
    whole_is_symmetric=False,
)
oracle(
    "people.coefficients.partial_of",
    "NumPy's inverse of a matrix",
    lambda r: own("people.coefficients.partial_of")(*np.transpose(r)),
    _from_precision,
    three_correlations,
)
oracle(
    "people.coefficients.fisher_ends",
    "SciPy, on Fisher's scale",
    lambda r: own("people.coefficients.fisher_ends")(0.3, np.asarray(r), 10),
    lambda r: _on_fisher_scale(0.3, r),
    drawn(share()),
    rows=False,
)
oracle(
    "people.coefficients.group_codes",
    "NumPy, places of first occurrence",
    lambda g: own("people.coefficients.group_codes")([str(one) for one in g], len(g)),
    lambda g: [sorted(set(g), key=list(g).index).index(one) for one in g],
    drawn(whole(0, 5)),
    rows=False,
    whole_is_symmetric=False,
)
oracle(
    "people.systems.permutation_p",
    "all orders, SciPy's tau",
    lambda x, y: own("people.systems.permutation_p")(np.asarray(x)[:5], np.asarray(y)[:5]),
    _all_orders,
    columns("normal", "skewed"),
    rows=False,
    whole_is_symmetric=False,
)
oracle(
    "people.systems.win_shares",
    "a comparison in plain Python",
    own("people.systems.win_shares"),
    lambda a, b: [1.0 if x > y else 0.5 if x == y else 0.0 for x, y in zip(a, b)],
    columns("tied", "tied"),
)
oracle(
    "people.pareto.dominates",
    "a comparison in plain Python",
    own("people.pareto.dominates"),
    lambda a, b: [
        all(x >= y for x, y in zip(*pair)) and tuple(pair[0]) != tuple(pair[1])
        for pair in zip(a, b)
    ],
    drawn(whole(0, 3, 2), whole(0, 3, 2)),
)
oracle(
    "tables.pairs.balanced_weights",
    "scikit-learn",
    own("tables.pairs.balanced_weights"),
    lambda labels: library("sklearn.utils.class_weight.compute_sample_weight")("balanced", labels),
    drawn(whole(0, 3)),
    rows=False,
    whole_is_symmetric=False,
)


# ---- classifiers


def _scikit_temperature(table, labels):
    """One over the slope of a logistic regression on the log-odds, without an intercept or a penalty."""
    from sklearn.linear_model import LogisticRegression

    odds = np.log(table[:, 1] / table[:, 0])[:, None]
    return (
        1
        / LogisticRegression(C=1e9, fit_intercept=False, tol=1e-10, max_iter=1000)
        .fit(odds, labels)
        .coef_[0, 0]
    )


def two_classes(generator, n):
    """Probabilities of 20n rows and labels that follow them, more or less."""
    table = generator.dirichlet([1, 1], size=20 * n)
    return table, (generator.random(20 * n) < table[:, 1] ** 0.7).astype(int)


def _root(odds, labels):
    from scipy.optimize import brentq
    from scipy.special import expit

    return brentq(lambda bias: np.mean(expit(odds + bias)) - np.mean(1 - labels), -15, 15)


def odds_and_labels(generator, n):
    return generator.normal(size=n), (np.arange(n) % 3 == 0).astype(int)


oracle(
    "training.calibration.fit_temperature",
    "scikit-learn's logistic regression",
    own("training.calibration.fit_temperature"),
    _scikit_temperature,
    two_classes,
    near=1e-3,
    rows=False,
)
oracle(
    "training.words.fit_bias",
    "SciPy's root of the score equation",
    lambda odds, labels: own("training.words.fit_bias")(np.asarray(odds), np.asarray(labels)),
    _root,
    odds_and_labels,
    near=1e-4,
    rows=False,
)
oracle(
    "training.logistic.logistic",
    "Python's exponential",
    lambda x: own("training.logistic.logistic")(x, 0.5, [1.0, -2.0]),
    lambda x: [1 / (1 + math.exp(-(0.5 + a - 2 * b))) for a, b in x],
    drawn(normal(2)),
)


# ---- the functions of rooms that return numbers and stand in no row, and why

NO_COMPUTATION = {
    "gives back what it was given, once it is looked at": "core.checks.check_table core.checks.check_tables core.resample.check_statistics "
    "models.alignment.check_layer people.coefficients.check_columns "
    "training.calibration.cost_matrix",
    "looks up what is written in a table of the package or in a model's settings": "models.alignment.find_baseline models.classifier.find_label models.loading.token_limit "
    "runs.run.find_engine",
    "reads two digits": "people.sheets.parse_scale",
    "the same numbers as a tensor's": "models.loading.as_numbers",
    "a checksum, of which nothing but its change is asked": "models.loading.weights_stamp",
    "numbers of tokens, which the model's own tokenizer gives": "models.causal_lm.task_tokens",
    "another function that is held, one fold after the other": "training.folds.probabilities_in_folds",
    "a rule of this package alone; its cases stand in the file of its room": "words.english.syllables_by_rule",
}
