"""How often each test calls equal things different, and how often each interval holds the truth, by simulation."""

import functools
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from tests.peers.chapters import held
from tsteval.core.metric import Metric, Scores

STUDIES: dict[str, "Study"] = {}
RESAMPLES = 300  # of each trial
CHEAP = 2000
DEAR = 150  # trials of what resamples nothing, and of what simulates itself


@dataclass(frozen=True)
class Study:
    """A test of 5% on data without a difference, or a 95% interval of a number that is known."""

    name: str
    kind: str  # "test" or "interval"
    cells: tuple  # pairs of n and a distribution
    trial: Callable  # (generator, n, distribution) -> whether it rejects, or holds the truth; None: no verdict
    trials: int = 400  # of each cell, for the table


@dataclass(frozen=True)
class Rate:
    """What a simulation found."""

    share: float
    error: float  # its standard error
    trials: int  # those with a verdict


def study(name, kind, sizes, distributions="normal", **options):
    """Put a trial into the catalogue."""

    def put(trial):
        assert f"{name} {kind}" not in STUDIES
        cells = tuple((n, shape) for shape in distributions.split(", ") for n in sizes)
        STUDIES[f"{name} {kind}"] = Study(name, kind, cells, trial, **options)
        return trial

    return put


def simulated(one, n, shape, trials=None, seed=0):
    """The rate of a cell of a study; None: over as many trials as the table."""
    generator = np.random.default_rng([seed, n, sum(map(ord, one.name + one.kind + shape))])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of few sentences
        found = [one.trial(generator, n, shape) for _ in range(trials or one.trials)]
    found = [bool(verdict) for verdict in found if verdict is not None]
    if not found:
        return Rate(math.nan, math.nan, 0)
    share = float(np.mean(found))
    return Rate(
        share, math.sqrt(max(share * (1 - share), 1 / len(found) / 4) / len(found)), len(found)
    )


# ---- what is drawn

DRAWS = {
    "normal": lambda g, size: g.normal(size=size),
    "skewed": lambda g, size: g.exponential(size=size) - 1,
    "heavy tails": lambda g, size: g.standard_t(3, size=size),
    "five steps": lambda g, size: g.choice(5, p=[0.05, 0.1, 0.2, 0.3, 0.35], size=size) - 2.8,
    "yes or no": lambda g, size: (g.random(size) < 0.75) - 0.75,
}


def two_systems(generator, n, shape):
    """Statistics of two equal systems, whose rows go together."""
    shared = generator.normal(size=n)
    return [
        held("core.resample.mean_statistics")(shared + DRAWS[shape](generator, n)) for _ in range(2)
    ]


def normals(generator, n, correlations):
    """Columns of normal numbers with these correlations."""
    return (
        generator.normal(size=(n, len(correlations))) @ np.linalg.cholesky(np.array(correlations)).T
    ).T


def bent(shape, *sides):
    """Normal columns as another distribution with the same order."""
    bends = {
        "normal": lambda x: x,
        "skewed": np.exp,
        "five steps": lambda x: np.digitize(x, [-1.5, -0.8, 0, 0.8]),
    }
    return [bends[shape](side) for side in sides]


def pair(r):
    return [[1, r], [r, 1]]


@functools.cache
def true_correlation(method, shape, r):
    """Of two bent columns, by its formula; where there is none, of two million rows."""
    if method != "pearson" and shape != "five steps":
        return (
            6 / math.pi * math.asin(r / 2) if method == "spearman" else 2 / math.pi * math.asin(r)
        )
    if shape == "normal":
        return r
    if shape == "skewed":
        return (math.exp(r) - 1) / (math.e - 1)
    from scipy.stats import kendalltau, pearsonr, spearmanr

    rows = 2_000_000 if method != "kendall" else 200_000
    x, y = bent(shape, *normals(np.random.default_rng(0), rows, pair(r)))
    return float(
        {"pearson": pearsonr, "spearman": spearmanr, "kendall": kendalltau}[method](x, y)[0]
    )


def holds(low, high, truth):
    """Whether an interval holds the truth; None where there is no interval."""
    return None if math.isnan(low) or math.isnan(high) else low - 1e-12 <= truth <= high + 1e-12


def sources_of(n, generator, r=0.0, each=3):
    """Two columns of n sources of three outputs each; both columns have a part that a source's outputs share."""
    between = normals(generator, n, pair(r))
    within = normals(generator, each * n, pair(r))
    return [
        np.repeat(shared, each) + own_part for shared, own_part in zip(between, within)
    ], np.repeat(range(n), each)


# ---- the bootstrap and its rivals

SHAPES = "normal, skewed, five steps"


def _two(name, wanted, **options):
    """A trial of two systems: whether they are called different, or the interval holds 0."""

    def trial(generator, n, shape):
        found = held(f"core.resample.{name}")(*two_systems(generator, n, shape), **options)
        return found.p_value <= 0.05 if wanted == "test" else holds(found.low, found.high, 0)

    return trial


for name, sizes, kinds, options in (
    ("paired_bootstrap", (30, 100), ("test", "interval"), {"n_resamples": RESAMPLES}),
    ("approximate_randomization", (6, 10, 30, 100), ("test",), {"n_trials": RESAMPLES}),
    ("paired_test", (6, 10, 20), ("test", "interval"), {"n_samples": RESAMPLES}),
):  # from 30 on the bootstrap
    for kind in kinds:
        study(f"core.resample.{name}", kind, sizes, SHAPES)(_two(name, kind, **options))


@study(
    "core.resample.bootstrap_interval",
    "interval",
    (30, 100),
    "normal, skewed, heavy tails, five steps, yes or no",
)
def _(generator, n, shape):
    rows = held("core.resample.mean_statistics")(DRAWS[shape](generator, n))
    found = held("core.resample.bootstrap_interval")(rows, n_resamples=RESAMPLES)
    return holds(found.low, found.high, 0)


@study(
    "core.resample.student_interval",
    "interval",
    (6, 10, 29),
    "normal, skewed, heavy tails, five steps",
    trials=CHEAP,
)
def _(generator, n, shape):
    values = DRAWS[shape](generator, n)
    without = (values.sum() - values) / (n - 1)
    return holds(*held("core.resample.student_interval")(without, values.mean()), 0)


@study("core.resample.poisson_sums", "interval", (100,), "normal, skewed")
def _(generator, n, shape):
    sums = held("core.resample.poisson_sums")(
        [np.column_stack([DRAWS[shape](generator, n), np.ones(n)])],
        RESAMPLES,
        int(generator.integers(2**31)),
    )
    return holds(*held("core.resample.percentiles")(sums[:, 0] / sums[:, 1]), 0)


@functools.cache
def _many_pairs():
    """BLEU's statistics of 4,000 pairs, and the score of all."""
    from tests.peers.oracle import text_pairs

    rows = held("bleu.bleu_statistics")(*text_pairs(np.random.default_rng(0), 4000))
    return rows, float(held("bleu.bleu_from_statistics")(rows.sum(axis=0)))


@study("bleu.bleu_interval", "interval", (30, 100, 400), "texts")
def _(generator, n, shape):
    rows, truth = _many_pairs()
    found = held("bleu.bleu_interval")(
        rows[generator.integers(len(rows), size=n)], n_resamples=RESAMPLES
    )
    return holds(found.low, found.high, truth)


# ---- many systems


def _several(generator, n, shape, means=(0.0,) * 5):
    """Systems with these means, whose rows go together."""
    shared = generator.normal(size=n)
    return {
        f"s{place}": held("core.resample.mean_statistics")(
            mean + shared + DRAWS[shape](generator, n)
        )
        for place, mean in enumerate(means)
    }


def _compared(*drawn):
    return held("people.systems.compare_all")(_several(*drawn), n_samples=RESAMPLES)


# ten comparisons: the smallest p-value of 300 swaps, 1/301, must pass 0.05 / 10
study("core.resample.holm: any of ten", "test", (10, 30, 100))(
    lambda *drawn: (_compared(*drawn).holm_randomization <= 0.05).any()
)
study("people.systems.compare_all", "test", (30, 100))(
    lambda *drawn: (_compared(*drawn).holm_bootstrap <= 0.05).any()
)
study("differences.rank_sets: all ranks", "interval", (10, 30), "normal")(
    lambda *drawn: _all_ranks(held("differences.rank_sets")(_compared(*drawn)))
)


def _all_ranks(found):
    return bool((found.rank_low == 1).all() and (found.rank_high == len(found)).all())


@study("people.systems.rank_systems", "interval", (10, 30, 100), "normal")
def _(generator, n, shape):
    """The score of one of three systems."""
    found = held("people.systems.rank_systems")(
        _several(generator, n, shape, (0, 0.2, 0.4)), n_samples=RESAMPLES
    )
    row = found[found.system == "s1"].iloc[0]
    return holds(row.low, row.high, 0.2)


@study("people.systems.rank_systems: rank", "interval", (10, 30, 100))
def _(generator, n, shape):
    found = held("people.systems.rank_systems")(
        _several(generator, n, shape, (0, 0.2, 0.4)), n_samples=RESAMPLES
    )
    row = found[found.system == "s1"].iloc[0]
    return holds(row.rank_low, row.rank_high, 2)


@study("people.systems.permutation_p", "test", (5, 7, 12), trials=CHEAP)
def _(generator, n, shape):
    return (
        held("people.systems.permutation_p")(*generator.normal(size=(2, n)), n_permutations=400)
        <= 0.05
    )


@study("people.systems.system_agreement", "interval", (30, 100, 400))
def _(generator, n, shape):
    """Six systems, which metric and people put into orders of tau 0.6, with much noise."""
    order = (0, 0.25, 0.5, 0.75, 1, 1.25), (0.25, 0, 0.5, 1.25, 1, 0.75)
    truth = held("people.systems.kendall_tau")(*order)
    found = held("people.systems.system_agreement")(
        *(_several(generator, n, shape, means) for means in order), n_resamples=RESAMPLES
    )
    return holds(found.low, found.high, truth)


@study("people.systems.power_curve", "interval", (10, 30), trials=DEAR)
def _(generator, n, shape):
    """The power at a size of the sentences at hand, which is known from many more simulations."""
    (a, b), sizes = _fixed_systems(), (n,)
    found = held("people.systems.power_curve")(
        a, b, sizes, n_simulations=100, n_trials=60, seed=int(generator.integers(2**31))
    ).iloc[0]
    return holds(found.low, found.high, _true_power(n))


@functools.cache
def _fixed_systems():
    generator = np.random.default_rng(0)
    return [
        held("core.resample.mean_statistics")(generator.normal(size=200) + mean)
        for mean in (0, 0.6)
    ]


@functools.cache
def _true_power(n):
    generator, (a, b) = np.random.default_rng(1), _fixed_systems()
    curve = held("people.systems.power_curve")(
        a, b, (n,), n_simulations=8000, n_trials=60, seed=int(generator.integers(2**31))
    )
    return curve.power.iloc[0]


# ---- correlations


def _correlated(generator, n, shape, method, r):
    x, y = bent(shape, *normals(generator, n, pair(r)))
    return held("agreement.correlation")(
        x, y, method, n_boot=100 if method == "kendall" else RESAMPLES
    )


for method, sizes, shapes in (
    ("pearson", (6, 10, 30, 100), SHAPES),
    ("spearman", (6, 10, 30, 100), "normal, five steps"),
    ("kendall", (6, 10, 30), "normal, five steps"),
):
    study(f"agreement.correlation:{method}", "test", sizes, shapes)(
        lambda generator, n, shape, method=method: (
            _correlated(generator, n, shape, method, 0).p_value <= 0.05
        )
    )
    study(f"agreement.correlation:{method}", "interval", sizes, shapes)(
        lambda generator, n, shape, method=method: holds(
            (found := _correlated(generator, n, shape, method, 0.5)).low,
            found.high,
            true_correlation(method, shape, 0.5),
        )
    )


def _grouped(generator, n, r):
    (x, y), groups = sources_of(n, generator, r)
    return held("agreement.correlation")(x, y, groups=groups, n_boot=RESAMPLES)


study("agreement.correlation: by source", "test", (6, 10, 30, 100))(
    lambda generator, n, shape: _grouped(generator, n, 0).p_value <= 0.05
)
study("agreement.correlation: by source", "interval", (6, 10, 30, 100))(
    lambda generator, n, shape: holds((found := _grouped(generator, n, 0.5)).low, found.high, 0.5)
)


@study("agreement.fisher_interval", "interval", (6, 10, 30, 100), trials=CHEAP)
def _(generator, n, shape):
    r = float(np.corrcoef(normals(generator, n, pair(0.5)))[0, 1])
    return holds(*held("agreement.fisher_interval")(r, n), 0.5)


EQUAL = [[1, 0.6, 0.5], [0.6, 1, 0.5], [0.5, 0.5, 1]]  # two metrics that follow people alike


@study("agreement.williams_test", "test", (6, 10, 30, 100), SHAPES, trials=CHEAP)
def _(generator, n, shape):
    with np.errstate(invalid="ignore"):
        r = np.corrcoef(bent(shape, *normals(generator, n, EQUAL)))
    return (
        None
        if np.isnan(r).any()
        else held("agreement.williams_test")(r[0, 2], r[1, 2], r[0, 1], n)[1] <= 0.05
    )


def _rivals(generator, n, shape):
    return held("agreement.compare_correlations")(
        *bent(shape, *normals(generator, n, EQUAL)), n_boot=RESAMPLES
    )


study("agreement.compare_correlations", "test", (6, 10, 30, 100), SHAPES)(
    lambda *drawn: _rivals(*drawn).p_value <= 0.05
)
study("agreement.compare_correlations", "interval", (6, 10, 30, 100), SHAPES)(
    lambda *drawn: holds((found := _rivals(*drawn)).low, found.high, 0)
)


def _given(generator, n, r):
    third = generator.normal(size=n)
    x, y = normals(generator, n, pair(r))
    return held("agreement.partial_correlation")(x + third, y + third, third, n_boot=RESAMPLES)


study("agreement.partial_correlation", "test", (6, 10, 30, 100))(
    lambda generator, n, shape: _given(generator, n, 0).p_value <= 0.05
)
study("agreement.partial_correlation", "interval", (6, 10, 30, 100))(
    lambda generator, n, shape: holds((found := _given(generator, n, 0.5)).low, found.high, 0.5)
)


def _inside(generator, n, r):
    """Three systems of n outputs of n sources, and means that say the opposite."""
    x, y = normals(generator, 3 * n, pair(r))
    systems = np.tile(range(3), n)
    return held("agreement.within_correlation")(
        x + systems, y - systems, systems, groups=np.repeat(range(n), 3), n_boot=RESAMPLES
    )


study("agreement.within_correlation", "test", (6, 10, 30, 100))(
    lambda generator, n, shape: _inside(generator, n, 0).p_value <= 0.05
)
study("agreement.within_correlation", "interval", (6, 10, 30, 100))(
    lambda generator, n, shape: holds((found := _inside(generator, n, 0.5)).low, found.high, 0.5)
)


@study("agreement.agreement_table", "interval", (10, 30, 100))
def _(generator, n, shape):
    (x, y), sources = sources_of(n, generator, 0.5)
    ratings = pd.DataFrame(
        {
            "data_set": "d",
            "criterion": "content",
            "source_id": sources,
            "system": np.tile(["a", "b", "c"], n),
            "item": range(3 * n),
            "rating": y,
            "score": x,
        }
    )
    found = held("agreement.agreement_table")(ratings, metrics=["score"], n_boot=RESAMPLES).iloc[0]
    return holds(found.pearson_low, found.pearson_high, 0.5)


@study("agreement.comparison_power", "interval", (50, 200), trials=DEAR)
def _(generator, n, shape):
    found = held("agreement.comparison_power")(
        0.5, 0.3, 0.6, (n,), n_simulations=100, seed=int(generator.integers(2**31))
    ).iloc[0]
    return holds(found.low, found.high, _true_comparison_power(n))


@functools.cache
def _true_comparison_power(n):
    return held("agreement.comparison_power")(
        0.5, 0.3, 0.6, (n,), n_simulations=50_000, seed=1
    ).power.iloc[0]


# ---- few ratings, many scores


def _rated(generator, n, shape, shift=0.0):
    """Ten times as many outputs as ratings, a score that says half, and the mean of an endless table."""
    score = generator.normal(size=10 * n)
    rating = score + DRAWS[shape](generator, 10 * n) + shift
    rating[n:] = np.nan
    return rating, score


@study("people.estimators.estimate_mean", "interval", (6, 10, 30, 100), SHAPES, trials=CHEAP)
def _(generator, n, shape):
    found = held("people.estimators.estimate_mean")(*_rated(generator, n, shape))
    return holds(found.low, found.high, 0)


def _apart(generator, n, shape):
    sides = [
        held("people.estimators.estimate_mean")(*_rated(generator, n, shape)) for _ in range(2)
    ]
    return held("people.estimators.difference")(*sides)


study("people.estimators.difference", "test", (6, 10, 30, 100), SHAPES, trials=CHEAP)(
    lambda *drawn: _apart(*drawn).p_value <= 0.05
)
study("people.estimators.difference", "interval", (6, 10, 30, 100), SHAPES, trials=CHEAP)(
    lambda *drawn: holds((found := _apart(*drawn)).low, found.high, 0)
)


def _tables(generator, n, shape):
    """Ratings and scores of two equal systems as tables, rated on the same sources."""
    tables = [
        pd.DataFrame(
            {
                "system": system,
                "source": [f"{place}" for place in range(10 * n)],
                "output": system,
                "score": score,
                "rating": rating,
            }
        )
        for system, (rating, score) in ((system, _rated(generator, n, shape)) for system in "ab")
    ]
    both = pd.concat(tables, ignore_index=True)
    return both.drop(columns="score"), both.drop(columns="rating")


@study("estimation.estimate", "interval", (10, 30), "normal, five steps")
def _(generator, n, shape):
    found = held("estimation.estimate")(*_tables(generator, n, shape)).iloc[0]
    return holds(found.low, found.high, 0)


study("estimation.differences", "test", (10, 30))(
    lambda *drawn: held("estimation.differences")(*_tables(*drawn)).p_holm.iloc[0] <= 0.05
)


# ---- shares


@study(
    "training.style_check.wilson_interval",
    "interval",
    (10, 30, 100),
    "share .5, share .8, share .95",
    trials=CHEAP,
)
def _(generator, n, shape):
    share = float(shape.removeprefix("share "))
    return holds(
        *held("training.style_check.wilson_interval")(generator.binomial(n, share) / n, n), share
    )


@study("training.style_check.pair_order", "interval", (10, 30, 100))
def _(generator, n, shape):
    """A model that orders seven in ten of the sources, each with two references."""
    right = np.repeat(generator.random(n) < 0.7, 2)
    found = held("training.style_check.pair_order")(
        np.where(right, 0.2, 0.8),
        np.where(right, 0.8, 0.2),
        np.zeros(2 * n),
        np.repeat(range(n), 2),
    )
    return holds(found.low, found.high, 0.7)


@study("training.errors.accuracy_by_length", "interval", (20, 100))
def _(generator, n, shape):
    """Eight of ten are right, among the shorter half."""
    scored = pd.DataFrame(
        {
            "text": ["word " * length for length in generator.integers(1, 30, n)],
            "label": 1,
            "predicted": generator.random(n) < 0.8,
        }
    )
    found = held("training.errors.accuracy_by_length")(scored, 2).iloc[0]
    return holds(found.low, found.high, 0.8)


# ---- what a reader calls


def _moved(generator, n, shape):
    """Two sets of texts, the second of half the size and twice the spread."""
    before = DRAWS[shape](generator, n)
    after = 2 * DRAWS[shape](generator, n // 2)
    frames = [pd.DataFrame({"words": values}) for values in (before, after)]
    for frame in frames:
        frame.attrs = {"words": "words"}
    return held("properties.compare_properties")(*frames).iloc[0]


study("properties.compare_properties", "test", (20, 60, 200), SHAPES)(
    lambda *drawn: _moved(*drawn).p <= 0.05
)
study("properties.compare_properties", "interval", (20, 60, 200), SHAPES)(
    lambda *drawn: holds((found := _moved(*drawn)).low, found.high, 0)
)


class Number(Metric):
    """The number that an output is."""

    name = "number"
    needs = ("output",)
    columns = ("number",)

    def score(self, rows, models=None):
        return Scores({"number": rows.output.astype(float)})


def _evaluated(generator, n, shape):
    """What `evaluate` finds of two equal systems."""
    from tsteval.evaluation import evaluate

    shared = generator.normal(size=n)
    rows = [
        {"system": system, "source": f"source {place}", "output": repr(float(value))}
        for system in "ab"
        for place, value in enumerate(shared + DRAWS[shape](generator, n))
    ]
    return evaluate(pd.DataFrame(rows), metrics=[Number()], n_boot=RESAMPLES)


study("evaluation.evaluate: compare", "test", (6, 30), "normal, five steps")(
    lambda *drawn: _evaluated(*drawn).compare("a", "b").p_value.iloc[0] <= 0.05
)
study("evaluation.evaluate: compare", "interval", (6, 30), "normal, five steps")(
    lambda *drawn: holds(*_evaluated(*drawn).compare("a", "b")[["low", "high"]].iloc[0], 0)
)
study("evaluation.evaluate: summary", "interval", (6, 30), "normal, five steps")(
    lambda *drawn: holds(*_evaluated(*drawn).summary()[["number_low", "number_high"]].iloc[0], 0)
)
