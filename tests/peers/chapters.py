"""Every public function that returns numbers, with the library that it is held against."""

import functools
import importlib
import math

import numpy as np
import pandas as pd

from tests.peers.oracle import Oracle, columns, distributions, text_pairs

ORACLES: dict[str, Oracle] = {}


def oracle(name, library, ours, theirs, draw, **options):
    assert name not in ORACLES
    ORACLES[name] = Oracle(name, library, ours, theirs, draw, **options)


def held(path):
    """The function that an oracle's name means, imported when it is asked for."""
    parts = path.split(":")[0].split(".")
    for place in range(len(parts) - 1, 0, -1):
        try:
            module = importlib.import_module("tsteval." + ".".join(parts[:place]))
        except ModuleNotFoundError:
            continue
        return functools.reduce(getattr, parts[place:], module)
    raise AssertionError(path)


# ---- words against words


def _bleu_stats(outputs, references):
    from sacrebleu.metrics import BLEU

    return BLEU()._extract_corpus_statistics(list(outputs), [list(references)])


def _sentence_bleus(outputs, references):
    import sacrebleu

    return [
        sacrebleu.sentence_bleu(o, [r], smooth_method="exp", use_effective_order=True).score / 100
        for o, r in zip(outputs, references)
    ]


def _corpus_bleu(outputs, references):
    import sacrebleu

    return sacrebleu.corpus_bleu(list(outputs), [list(references)]).score / 100


def _rouge(outputs, references):
    from rouge_score.rouge_scorer import RougeScorer

    kinds = ["rouge1", "rouge2", "rouge3", "rougeL"]
    scorer = RougeScorer(kinds)
    return [
        [scorer.score(r, o)[kind].fmeasure for kind in kinds] for o, r in zip(outputs, references)
    ]


def _chrf(outputs, references):
    import sacrebleu

    return [
        sacrebleu.sentence_chrf(o, [r], eps_smoothing=False).score / 100
        for o, r in zip(outputs, references)
    ]


def _corpus_chrf(outputs, references):
    import sacrebleu

    return sacrebleu.corpus_chrf(list(outputs), [list(references)], eps_smoothing=False).score / 100


def _averaged_chrf(outputs, references):
    from nltk.translate.chrf_score import sentence_chrf

    return [sentence_chrf(r, o, beta=2) for o, r in zip(outputs, references)]


def _ter(outputs, references):
    import sacrebleu

    return [sacrebleu.sentence_ter(o, [r]).score / 100 for o, r in zip(outputs, references)]


def _corpus_ter(outputs, references):
    import sacrebleu

    return sacrebleu.corpus_ter(list(outputs), [list(references)]).score / 100


def word_matches(generator, n):
    """Matched units, and the units of output and reference, each of at least as many."""
    matched = generator.integers(0, 6, size=n)
    return (
        matched,
        matched + generator.integers(0, 4, size=n),
        matched + generator.integers(0, 4, size=n),
    )


def _marked(matched, output, reference):
    """Each unit of either text is a case that is marked, or should be."""
    from sklearn.metrics import precision_recall_fscore_support

    rows = []
    for both, of_output, of_reference in zip(matched, output, reference):
        found = [1] * of_output + [0] * (of_reference - both)
        wanted = [1] * both + [0] * (of_output - both) + [1] * (of_reference - both)
        rows.append(
            precision_recall_fscore_support(wanted, found, average="binary", zero_division=0)[:3]
            if found
            else (0, 0, 0)
        )
    return rows


def _brevity(lengths):
    return [1.0 if c >= r else 0.0 if c == 0 else math.exp(1 - r / c) for c, r in lengths]


oracle(
    "bleu.sentence_bleu",
    "sacreBLEU",
    lambda o, r: [held("bleu.sentence_bleu")(a, b).score for a, b in zip(o, r)],
    _sentence_bleus,
    text_pairs,
)
oracle(
    "bleu.sentence_bleus",
    "sacreBLEU",
    held("bleu.sentence_bleus"),
    _sentence_bleus,
    text_pairs,
    texts=True,
)
oracle(
    "bleu.corpus_bleu",
    "sacreBLEU",
    lambda o, r: held("bleu.corpus_bleu")(o, r).score,
    _corpus_bleu,
    text_pairs,
    rows=False,
    texts=True,
)
oracle(
    "bleu.bleu_statistics",
    "sacreBLEU",
    held("bleu.bleu_statistics"),
    _bleu_stats,
    text_pairs,
    texts=True,
)
oracle(
    "bleu.bleu_from_statistics",
    "sacreBLEU",
    lambda o, r: held("bleu.bleu_from_statistics")(held("bleu.bleu_statistics")(o, r).sum(axis=0)),
    _corpus_bleu,
    text_pairs,
    rows=False,
)
oracle(
    "bleu.brevity_penalty",
    "the formula in plain Python",
    lambda lengths: [held("bleu.brevity_penalty")(int(c), int(r)) for c, r in lengths],
    _brevity,
    lambda generator, n: (generator.integers(0, 20, size=(n, 2)),),
)
oracle(
    "rouge.rouge",
    "rouge-score",
    lambda o, r: held("rouge.rouge")(o, r, kinds=("rouge1", "rouge2", "rouge3", "rougeL")),
    _rouge,
    text_pairs,
    texts=True,
    decomposed=False,
)  # its words end at an accent that stands alone
oracle(
    "overlap.chrf",
    "sacreBLEU",
    held("overlap.chrf"),
    _chrf,
    text_pairs,
    near=1e-6,
    texts=True,
    decomposed=False,
)  # which counts characters
oracle(
    "overlap.corpus_chrf",
    "sacreBLEU",
    held("overlap.corpus_chrf"),
    _corpus_chrf,
    text_pairs,
    near=1e-6,
    rows=False,
    texts=True,
    decomposed=False,
)
oracle(
    "overlap.chrf: eps_smoothing",
    "NLTK",
    lambda o, r: held("overlap.chrf")(o, r, eps_smoothing=True),
    _averaged_chrf,
    text_pairs,
    texts=True,
    decomposed=False,
)
oracle(
    "overlap.ter", "sacreBLEU", held("overlap.ter"), _ter, text_pairs, texts=True, decomposed=False
)
oracle(
    "overlap.corpus_ter",
    "sacreBLEU",
    held("overlap.corpus_ter"),
    _corpus_ter,
    text_pairs,
    rows=False,
    texts=True,
    decomposed=False,
)
oracle(
    "rouge.precision_recall_f1",
    "scikit-learn",
    lambda *counts: held("rouge.precision_recall_f1")(*map(np.asarray, counts)),
    _marked,
    word_matches,
)


# ---- how likely is it?

TRAINING = [
    ["the", "old", "mill", "was", "built"],
    ["the", "bridge", "was", "old"],
    ["a", "man", "by", "the", "river"],
    ["it", "is", "claimed", "that", "the", "mill", "is", "very", "old"],
]


def _lm(order=2, smoothing="witten_bell"):
    return held("ngram.NgramLM")(order=order, smoothing=smoothing).fit(TRAINING)


def _nltk_lm(order=2):
    from nltk.lm import Vocabulary, WittenBellInterpolated
    from nltk.lm.preprocessing import padded_everygram_pipeline

    grams, words = padded_everygram_pipeline(order, TRAINING)
    model = WittenBellInterpolated(order, vocabulary=Vocabulary(words, unk_cutoff=1))
    model.fit(grams)
    return model


def _nltk_logs(sentences):
    """Natural log-probability of each n-gram of each padded sentence, by NLTK."""
    from nltk import ngrams
    from nltk.lm.preprocessing import pad_both_ends

    model = _nltk_lm()
    return [
        [math.log(model.score(gram[-1], gram[:-1])) for gram in ngrams(pad_both_ends(row, 2), 2)]
        for row in sentences
    ]


def token_lists(generator, n):
    known = sorted({word for row in TRAINING for word in row})
    return (
        [
            [str(word) for word in generator.choice(known, size=generator.integers(1, 9))]
            for _ in range(n)
        ],
    )


def _amelioration_2(sentences, good=0.2, bad=0.05):
    found = []
    for row in _nltk_logs(sentences):
        product = 1.0
        for log in row:
            p = math.exp(log)
            product *= 1 / p if p >= good * (1 - 1e-12) else p if p <= bad * (1 + 1e-12) else 1
        found.append(product / len(row))
    return found


def _fluency(sentences):
    """NCE, perplexity and SLOR of each sentence from NLTK's probabilities and plain counts, one added for the
    unseen."""
    words = [word for row in TRAINING for word in row]
    share = {word: words.count(word) / (len(words) + 1) for word in words}
    found = []
    for row, padded in zip(sentences, _nltk_logs(sentences)):
        alone = sum(math.log(share.get(word, 1 / (len(words) + 1))) for word in row)
        logs = padded[: len(row)]  # the end of the sentence is no word of the text
        mean = sum(logs) / len(logs)
        found.append([mean, math.exp(-mean), mean - alone / len(logs)])
    return found


def _unigrams():
    import importlib

    return importlib.import_module("tsteval.fluency").UnigramModel.from_sentences(TRAINING)


def drawn_logprobs(generator, n):
    lengths = generator.integers(1, 30, size=n)
    return (
        -generator.gamma(2, 2, size=n) * lengths,
        -generator.gamma(3, 2, size=n) * lengths,
        lengths,
    )


oracle(
    "ngram.NgramLM.logprobs",
    "NLTK",
    lambda s: [row.sum() for row in _lm().logprobs(list(s))],
    lambda s: [sum(row) for row in _nltk_logs(s)],
    token_lists,
)
oracle(
    "ngram.NgramLM.prob",
    "NLTK",
    lambda s: [_lm().prob(row[-1], row[:-1][-1:]) for row in s],
    lambda s: [_nltk_lm().score(row[-1], row[:-1][-1:]) for row in s],
    token_lists,
)
oracle(
    "ameliorations.amelioration_1",
    "NLTK, then the formula",
    lambda s: held("ameliorations.amelioration_1")(_lm(), s, floor=0.01),
    lambda s: [sum(max(log, math.log(0.01)) for log in row) / len(row) for row in _nltk_logs(s)],
    token_lists,
)
oracle(
    "ameliorations.amelioration_2",
    "NLTK, then the formula",
    lambda s: np.log(held("ameliorations.amelioration_2")(_lm(), s, good=0.2, bad=0.05)),
    lambda s: np.log(_amelioration_2(s)),
    token_lists,
)
oracle(
    "ameliorations.log_amelioration_2",
    "NLTK, then the formula",
    lambda s: held("ameliorations.log_amelioration_2")(_lm(), s, good=0.2, bad=0.05),
    lambda s: np.log(_amelioration_2(s)),
    token_lists,
)
oracle(
    "fluency.fluency_scores",
    "NLTK, then the formulas of Kann et al. 2018",
    lambda s: held("fluency.fluency_scores")(_lm(), list(s), _unigrams(), tokenize=None)[
        ["nce", "perplexity", "slor"]
    ],
    _fluency,
    token_lists,
)
oracle(
    "fluency.scores_from_logprobs",
    "the formulas of Kann et al. 2018 and Lau et al. 2020 in plain Python",
    held("fluency.scores_from_logprobs"),
    lambda logs, alone, lengths: [
        [a, t, a / t, math.exp(-a / t), (a - b) / t, -a / b, a / ((5 + t) / (5 + 1)) ** 0.8]
        for a, b, t in zip(logs, alone, lengths)
    ],
    drawn_logprobs,
    near=1e-6,
)
oracle(
    "ameliorations.share_preferred",
    "all pairs in plain Python",
    held("ameliorations.share_preferred"),
    lambda a, b: np.mean([1.0 if x > y else 0.5 if x == y else 0.0 for x, y in zip(a, b)]),
    columns("tied", "tied"),
    rows=False,
)


# ---- style


def _pot(p, q, *_):
    import ot

    classes = p.shape[1]
    cost = 1.0 - np.eye(classes)
    return [
        ot.emd2(np.ascontiguousarray(a / a.sum()), np.ascontiguousarray(b / b.sum()), cost)
        for a, b in zip(p, q)
    ]


def _wasserstein(p, q, *_):
    from scipy.stats import wasserstein_distance

    places = np.arange(p.shape[1])
    return [wasserstein_distance(places, places, a, b) for a, b in zip(p, q)]


def _intensity(p, q, target):
    distance = np.array(_pot(p, q))
    direction = np.array([1 if b[t] >= a[t] else -1 for a, b, t in zip(p, q, target)])
    return distance * direction


def arrays(function):
    return lambda *data: function(*(np.asarray(column) for column in data))


def _drop_on_a_scale(p, q, target):
    import ot

    places = np.arange(p.shape[1], dtype=float)[:, None]
    steps = ot.dist(places, places, "euclidean")
    wanted = np.eye(p.shape[1])
    left = [
        [ot.emd2(row / row.sum(), wanted[t], steps) for row, t in zip(side, target)]
        for side in (p, q)
    ]
    return np.subtract(*left) / (p.shape[1] - 1)


def _share_of_room(p, q, target):
    found = []
    for a, b, t in zip(p, q, target):
        change = b[t] - a[t]
        found.append(0.0 if change == 0 else change / (1 - a[t]) if change > 0 else change / a[t])
    return found


oracle(
    "sti.earth_movers_distance",
    "POT",
    lambda p, q, _: held("sti.earth_movers_distance")(p, q),
    arrays(_pot),
    distributions(4),
    near=1e-7,
)
oracle(
    "sti.earth_movers_distance:ordered",
    "SciPy",
    lambda p, q, _: held("sti.earth_movers_distance")(
        p, q, cost=held("sti.ordered_cost")(np.shape(p)[1])
    ),
    arrays(_wasserstein),
    distributions(5),
    near=1e-7,
)
oracle(
    "sti.style_transfer_intensity",
    "POT",
    held("sti.style_transfer_intensity"),
    arrays(_intensity),
    distributions(3),
    near=1e-7,
)
oracle(
    "sti.distance_drop",
    "POT",
    lambda p, q, target: held("sti.distance_drop")(
        p, q, target, held("sti.ordered_cost")(np.shape(p)[1])
    ),
    arrays(_drop_on_a_scale),
    distributions(3),
    near=1e-7,
)
oracle(
    "sti.normalized_intensity",
    "the definition in plain Python",
    held("sti.normalized_intensity"),
    arrays(_share_of_room),
    distributions(3),
    near=1e-9,
)


# ---- people


def _scipy(method):
    from scipy import stats

    return {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}[
        method
    ]


def _partial(x, y, z):
    import pingouin

    return pingouin.partial_corr(pd.DataFrame({"x": x, "y": y, "z": z}), "x", "y", "z").r.iloc[0]


def _accuracy(x, y):
    said = [np.sign(x[i] - x[j]) == np.sign(y[i] - y[j]) for i in range(len(x)) for j in range(i)]
    return np.mean(said)


def answers(generator, n):
    truth = generator.normal(size=n)
    return (np.round(3 + truth[:, None] + generator.normal(size=(n, 3))),)


def _alpha(given):
    """Krippendorff's interval alpha from its definition: disagreement within texts over disagreement among all."""
    given = np.asarray(given, float)
    within = np.mean(
        [
            (row[i] - row[j]) ** 2
            for row in given
            for i in range(len(row))
            for j in range(len(row))
            if i != j
        ]
    )
    flat = given.ravel()
    among = np.sum((flat[:, None] - flat[None]) ** 2) / (len(flat) * (len(flat) - 1))
    return 1 - within / among


def _steiger(x, y, z):
    """Williams' t by matrix algebra: differences of correlations over the determinant of all three."""
    r = np.corrcoef([x, z, y])
    n = len(x)
    between = r[0, 1]
    mean = (r[0, 2] + r[1, 2]) / 2
    difference = r[0, 2] - r[1, 2]
    return difference * math.sqrt(
        (n - 1)
        * (1 + between)
        / (2 * (n - 1) / (n - 3) * np.linalg.det(r) + mean**2 * (1 - between) ** 3)
    )


def _williams(x, y, z):
    r = np.corrcoef([x, y, z])
    return held("agreement.williams_test")(r[0, 1], r[2, 1], r[0, 2], len(x))[0]


def _fisher(x, y):
    import pingouin

    return pingouin.compute_esci(
        stat=float(np.corrcoef(x, y)[0, 1]), nx=len(x), ny=len(x), eftype="r", decimals=12
    )


def _mean_of_parallel(r, k=3):
    """Correlation of the means of k raters with those of k others, from the covariance matrix of all 2k."""
    found = []
    for value in r:
        covariance = np.full((2 * k, 2 * k), value) + np.eye(2 * k) * (1 - value)
        pick = np.kron(np.eye(2), np.ones(k) / k)
        between = pick @ covariance @ pick.T
        found.append(between[0, 1] / between[0, 0])
    return found


def _within(x, y, systems):
    """The slope and fit of y on x with a constant for each system, by ordinary least squares."""
    import statsmodels.formula.api as formula

    frame = pd.DataFrame({"x": x, "y": y, "system": [f"s{int(system)}" for system in systems]})
    left_x, left_y = (formula.ols(f"{side} ~ C(system)", frame).fit().resid for side in "xy")
    return np.corrcoef(left_x, left_y)[0, 1]


def _stepped_up(given):
    r = np.corrcoef(np.transpose(given))
    mean = np.mean([r[i, j] for i in range(3) for j in range(i)])
    return 3 * mean / (1 + 2 * mean)


for method in ("pearson", "spearman", "kendall"):
    oracle(
        f"agreement.correlation:{method}",
        "SciPy",
        lambda x, y, method=method: (
            held("agreement.correlation")(x, y, method=method, n_boot=20).value
        ),
        lambda x, y, method=method: _scipy(method)(x, y).statistic,
        columns("tied", "skewed"),
        rows=False,
    )
oracle(
    "agreement.partial_correlation",
    "pingouin",
    lambda x, y, z: held("agreement.partial_correlation")(x, y, z, n_boot=20).value,
    _partial,
    columns("normal", "skewed", "normal"),
    rows=False,
    near=1e-8,
)
oracle(
    "agreement.pairwise_accuracy",
    "all pairs in plain Python",
    held("agreement.pairwise_accuracy"),
    _accuracy,
    columns("tied", "tied"),
    rows=False,
)
oracle(
    "agreement.raters_alpha",
    "krippendorff",
    lambda a: held("agreement.raters_alpha")(a, level="interval"),
    _alpha,
    answers,
    rows=False,
)
oracle(
    "agreement.williams_test",
    "NumPy's determinant",
    _williams,
    _steiger,
    columns("normal", "skewed", "normal"),
    rows=False,
    near=1e-8,
)
oracle(
    "agreement.fisher_interval",
    "pingouin",
    lambda x, y: held("agreement.fisher_interval")(float(np.corrcoef(x, y)[0, 1]), len(x)),
    _fisher,
    columns("normal", "normal"),
    rows=False,
    near=1e-8,
)
oracle(
    "agreement.within_correlation",
    "statsmodels, residuals of a constant for each system",
    lambda x, y, s: held("agreement.within_correlation")(x, y, list(map(int, s)), n_boot=20).value,
    _within,
    columns("normal", "skewed", "groups"),
    rows=False,
    near=1e-8,
)
oracle(
    "agreement.reliability",
    "NumPy, then Spearman and Brown",
    held("agreement.reliability"),
    _stepped_up,
    answers,
    rows=False,
)
oracle(
    "agreement.spearman_brown",
    "NumPy, from a covariance matrix",
    lambda r: [held("agreement.spearman_brown")(float(value), 3) for value in r],
    _mean_of_parallel,
    lambda generator, n: (generator.uniform(0.05, 0.95, size=n),),
)
oracle(
    "agreement.corrected_correlation",
    "the formula in logarithms",
    lambda r, c: [
        held("agreement.corrected_correlation")(float(a), float(b)) for a, b in zip(r, c)
    ],
    lambda r, c: np.exp(np.log(r) - np.log(c) / 2),
    lambda generator, n: (generator.uniform(0.05, 0.5, size=n), generator.uniform(0.3, 1, size=n)),
)


# ---- chance


def _statsmodels_holm(p):
    from statsmodels.stats.multitest import multipletests

    return multipletests(p, method="holm")[1]


oracle(
    "core.resample.holm",
    "statsmodels",
    held("core.resample.holm"),
    _statsmodels_holm,
    lambda generator, n: (np.round(generator.uniform(size=n) ** 3, 3),),
    rows=False,
    whole_is_symmetric=False,
)
oracle(
    "core.resample.mean_statistics",
    "NumPy",
    held("core.resample.mean_statistics"),
    lambda x: np.stack(
        [np.nan_to_num(x, nan=0, posinf=0, neginf=0), np.isfinite(x).astype(float)], axis=1
    ),
    lambda generator, n: (np.where(generator.random(n) < 0.2, np.nan, generator.normal(size=n)),),
)
oracle(
    "core.resample.mean_of_sums",
    "NumPy",
    lambda x: held("core.resample.mean_of_sums")(
        held("core.resample.mean_statistics")(x).sum(axis=0)
    ),
    np.nanmean,
    lambda generator, n: (np.where(generator.random(n) < 0.2, np.nan, generator.normal(size=n)),),
    rows=False,
)
oracle(
    "core.resample.percentiles",
    "NumPy, linear between order statistics",
    lambda x: held("core.resample.percentiles")(np.asarray(x)),
    lambda x: np.percentile(x, [2.5, 97.5]),
    columns("skewed"),
    rows=False,
)


# ---- a judge


def shares_of_labels(generator, n):
    return (generator.dirichlet(np.ones(6), size=n)[:, :5],)


oracle(
    "people.judging.expected_score",
    "NumPy's weighted average",
    lambda shares: held("people.judging.expected_score")(shares, [1, 2, 3, 4, 5]),
    lambda shares: [np.average([1, 2, 3, 4, 5], weights=row) for row in shares],
    shares_of_labels,
)


# ---- classifiers


def probabilities_and_labels(generator, n):
    table = generator.dirichlet([1, 1, 1], size=n)
    return table, np.array([generator.choice(3, p=row) for row in table])


def _predicted(table, labels):
    return pd.DataFrame(
        {"label": np.asarray(labels), "predicted": np.argmax(np.asarray(table), axis=1)}
    )


def _confusion(table, labels):
    from sklearn.metrics import confusion_matrix

    return confusion_matrix(labels, np.argmax(table, axis=1), labels=range(3))


def _report(table, labels):
    from sklearn.metrics import precision_recall_fscore_support

    found = precision_recall_fscore_support(
        labels, np.argmax(table, axis=1), labels=range(3), zero_division=np.nan
    )
    return np.transpose(found[:3])


def _calibration_error(table, labels, bins=10):
    """Mean distance of confidence and accuracy over equal bins, each with the weight of its rows."""
    table = np.asarray(table)
    labels = np.asarray(labels)
    sure = table.max(axis=1)
    right = table.argmax(axis=1) == labels
    # no class can be likeliest below a third
    places = np.minimum(((sure - 1 / 3) / (2 / 3) * bins).astype(int), bins - 1)
    return sum(
        abs(sure[places == b].mean() - right[places == b].mean()) * (places == b).mean()
        for b in set(places)
    )


oracle(
    "style.confusion_matrix",
    "scikit-learn",
    lambda table, labels: held("style.confusion_matrix")(
        _predicted(table, labels), ("a", "b", "c")
    ),
    _confusion,
    probabilities_and_labels,
    rows=False,
)
oracle(
    "style.class_report",
    "scikit-learn",
    lambda table, labels: held("style.class_report")(_predicted(table, labels), ("a", "b", "c"))[
        ["precision", "recall", "f1"]
    ],
    _report,
    probabilities_and_labels,
    rows=False,
)
oracle(
    "style.expected_calibration_error",
    "NumPy",
    lambda table, labels: held("style.expected_calibration_error")(
        held("style.reliability_bins")(table, labels)
    ),
    _calibration_error,
    probabilities_and_labels,
    rows=False,
)
oracle(
    "style.temper",
    "NumPy, powers of probabilities",
    lambda table, _: held("style.temper")(np.asarray(table), 1.7),
    lambda table, _: np.power(table, 1 / 1.7) / np.power(table, 1 / 1.7).sum(axis=1, keepdims=True),
    probabilities_and_labels,
)


# ---- shapes of systems


def _front(points):
    return [not any((b >= a).all() and (b > a).any() for b in points) for a in points]


def _joint(style, content, fluency):
    from scipy.stats import gmean

    return [
        [a * b * c, gmean([a, b, c]), float(a >= 0.5 and b >= 0.8 and c >= 0.8)]
        for a, b, c in zip(style, content, fluency)
    ]


def _cosine(a, b):
    from scipy.spatial.distance import cosine

    return [1 - cosine(x, y) for x, y in zip(a, b)]


oracle(
    "people.pareto.pareto_front",
    "all pairs in plain Python",
    lambda points: held("people.pareto.pareto_front")(np.asarray(points)),
    lambda points: _front(np.asarray(points)),
    lambda generator, n: (np.round(generator.normal(size=(n, 2)), 1),),
    rows=False,
    whole_is_symmetric=False,
)
oracle(
    "people.pareto.joint_scores",
    "SciPy's geometric mean",
    held("people.pareto.joint_scores"),
    _joint,
    lambda generator, n: tuple(generator.uniform(0.05, 1, size=n) for _ in range(3)),
)
oracle(
    "people.systems.kendall_tau",
    "SciPy",
    lambda x, y: held("people.systems.kendall_tau")(np.asarray(x), np.asarray(y)),
    lambda x, y: _scipy("kendall")(x, y).statistic,
    columns("tied", "tied"),
    rows=False,
)
oracle(
    "cps.cosine",
    "SciPy",
    held("cps.cosine"),
    _cosine,
    lambda generator, n: (generator.normal(size=(n, 5)), generator.normal(size=(n, 5))),
    near=1e-6,
)
oracle(
    "surface.flesch_reading_ease",
    "textstat's formula on the same counts",
    lambda c: held("surface.flesch_reading_ease")(*np.transpose(c)),
    lambda c: [206.835 - 1.015 * row[0] / row[1] - 84.6 * row[2] / row[0] for row in c],
    lambda generator, n: (
        np.stack(
            [
                generator.integers(5, 60, n),
                generator.integers(1, 5, n),
                generator.integers(8, 90, n),
            ],
            axis=1,
        ),
    ),
)


# ---- estimation


def _estimated(ratings, scores):
    sources = [f"{n}" for n in range(len(scores))]
    table = pd.DataFrame({"system": "A", "source": sources, "output": "x", "score": scores})
    given = table.drop(columns="score").assign(rating=np.asarray(ratings, dtype=float))
    return held("estimation.estimate")(given, table)[["mean", "low", "high"]].to_numpy(float)[0]


def _refitted(ratings, scores):
    """Every line fitted anew without one row, by NumPy."""
    from scipy.stats import t

    y = np.asarray(ratings, dtype=float)
    x = np.asarray(scores, dtype=float)
    rated = ~np.isnan(y)
    x = x - x.mean()
    n = int(rated.sum())
    found = []
    places = np.flatnonzero(rated)
    lines = [
        np.polyfit(x[places[places != place]], y[places[places != place]], 1)[0] for place in places
    ]
    for slopes, slope, freedom in (
        (0, 0, n - 1),
        (lines, np.polyfit(x[rated], y[rated], 1)[0], n - 2),
    ):
        slid = y[rated] - slopes * x[rated]
        errors = slope * x / len(x)
        errors[rated] += (slid - slid.mean()) / n
        error = np.sqrt((errors**2).sum() * n / freedom)
        found.append((error, slid.mean(), t.ppf(0.975, freedom) * error))
    _, mean, reach = found[1] if found[1][0] < found[0][0] else found[0]
    return np.clip([mean, mean - reach, mean + reach], np.nanmin(y), np.nanmax(y))


def _some_rated(generator, n):
    score = generator.normal(size=n)
    rating = 3 + score + generator.normal(size=n)
    rating[generator.permutation(n)[: n // 3]] = np.nan
    return rating, score


oracle(
    "estimation.estimate",
    "NumPy, a line fitted anew without each row",
    _estimated,
    _refitted,
    _some_rated,
    rows=False,
)


# ---- more of chance


def _weighted(counts, x, y):
    return [
        np.cov(x, y, aweights=row, bias=True)[0, 1]
        / np.sqrt(np.prod(np.diag(np.cov(x, y, aweights=row, bias=True))))
        for row in counts
    ]


def _wilson(successes):
    from statsmodels.stats.proportion import proportion_confint

    return [proportion_confint(one, 20, method="wilson") for one in successes]


def _logistic(x, y, label):
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    scaled = StandardScaler().fit(np.column_stack([x, y]))
    made = LogisticRegression(C=1.0, tol=1e-12, max_iter=10_000).fit(
        scaled.transform(np.column_stack([x, y])), label
    )
    slopes = made.coef_[0] / scaled.scale_
    return [made.intercept_[0] - slopes @ scaled.mean_, *slopes]


def _labelled(generator, n):
    x, y = columns("normal", "skewed")(generator, n)
    return x, y, (np.arange(n) % 2)


def _fitted(x, y, label):
    intercept, slopes = held("training.logistic.fit_logistic")(
        np.column_stack([x, y]), np.asarray(label)
    )
    return [intercept, *slopes]


oracle(
    "training.style_check.wilson_interval",
    "statsmodels",
    lambda successes: [
        held("training.style_check.wilson_interval")(one / 20, 20) for one in successes
    ],
    _wilson,
    lambda generator, n: (generator.integers(0, 21, size=n),),
)
oracle(
    "training.logistic.fit_logistic",
    "scikit-learn",
    _fitted,
    _logistic,
    _labelled,
    near=1e-4,
    rows=False,
)
oracle(
    "training.calibration.total_variation",
    "SciPy",
    lambda p, q: held("training.calibration.total_variation")(np.asarray(p), np.asarray(q)),
    lambda p, q: [_cityblock(a, b) / 2 for a, b in zip(p, q)],
    lambda generator, n: distributions(4)(generator, n)[:2],
)


def _cityblock(a, b):
    from scipy.spatial.distance import cityblock

    return cityblock(a, b)


# ---- the functions of chapters that return numbers and stand in no row above, and why
