"""Many systems at once: paired tests, ranks with intervals, clusters, power, people, and judges that took part"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations, permutations
from typing import NamedTuple

import numpy as np
import pandas as pd

from tsteval.core.resample import (
    FEW,
    FEWEST,
    approximate_randomization,
    bootstrap_interval,
    check_statistics,
    holm,
    mean_of_sums,
    mean_statistics,
    p_value,
    paired_test,
    percentiles,
    resample_rows,
    resample_sums,
    student_interval,
    without_noise,
)

from ..core.checks import InputError, check_number
from .coefficients import MOST_ORDERED

_ScoreOfSums = Callable[[np.ndarray], np.ndarray]  # from sums (..., S) to scores (...)


def resampled_scores(
    systems: Mapping[
        str, np.ndarray
    ],  # K systems: name -> (N, S) statistics of the same N sentences
    score: _ScoreOfSums = mean_of_sums,
    n_resamples: int = 2000,  # bootstrap resamples
    seed: int = 0,  # of the random draws
) -> tuple[np.ndarray, np.ndarray]:  # (K,) scores, and (n_resamples, K) scores of resamples
    """Scores of many systems, and of resamples that draw the same sentences for all of them.

    Raises: InputError for no system, or statistics of different shapes.
    """
    if not systems:
        raise InputError("there is no system to score")
    arrays = {name: check_statistics(statistics) for name, statistics in systems.items()}
    first = next(iter(arrays))
    for name, array in arrays.items():
        if array.shape != arrays[first].shape:
            raise InputError(
                f"all systems need statistics of the same sentences; {first} has shape "
                f"{arrays[first].shape}, "
                f"{name} has {array.shape}"
            )
    sums = resample_sums(np.hstack(list(arrays.values())), n_resamples, seed)
    observed = np.stack([array.sum(axis=0) for array in arrays.values()])
    return np.asarray(score(observed)), np.asarray(
        score(sums.reshape(n_resamples, len(arrays), -1))
    )


def compare_all(
    systems: Mapping[
        str, np.ndarray
    ],  # K systems: name -> (N, S) statistics of the same N sentences
    score: _ScoreOfSums = mean_of_sums,
    *,
    lower: bool = False,  # a low score is the better one
    n_samples: int = 2000,  # bootstrap resamples, and random swaps
    seed: int = 0,  # of the random draws
) -> pd.DataFrame:  # better, worse, difference, low, high, p_bootstrap, p_randomization, and both after Holm (holm_...)
    """Each pair of systems, the better one first: the difference of their scores with its 95% interval and two paired
    tests. Below `FEW` sentences the interval is Student's, and p_bootstrap, which would be too small, is NaN.

    Raises: as `resampled_scores`. Source: Koehn 2004; Riezler and Maxwell 2005; Holm 1979.
    """
    observed, resampled = resampled_scores(systems, score, n_samples, seed)
    names = list(systems)
    table = []
    for first, second in combinations(
        np.argsort(observed if lower else -observed, kind="stable"), 2
    ):
        difference = observed[first] - observed[second]
        drawn = resampled[:, first] - resampled[:, second]
        a, b = (check_statistics(systems[names[place]]) for place in (first, second))
        if np.array_equal(a, without_noise(a, b)):
            difference, drawn = 0.0, np.zeros(len(drawn))
        (low, high), resamples_p = percentiles(drawn), p_value(drawn - difference, difference)
        if len(a) < FEW:
            test = paired_test(a, b, score, n_samples=n_samples, seed=seed)
            low = test.low
            high = test.high
            resamples_p = math.nan
        swapped = approximate_randomization(a, b, score, n_trials=n_samples, seed=seed)
        table.append(
            {
                "better": names[first],
                "worse": names[second],
                "difference": difference,
                "low": low,
                "high": high,
                "p_bootstrap": resamples_p,
                "p_randomization": swapped.p_value,
            }
        )
    frame = pd.DataFrame(
        table,
        columns=["better", "worse", "difference", "low", "high", "p_bootstrap", "p_randomization"],
    )
    return frame.assign(
        holm_bootstrap=holm(frame.p_bootstrap.to_numpy(float)),
        holm_randomization=holm(frame.p_randomization.to_numpy(float)),
    )


def _draw_clusters(
    order: Sequence[str],  # K systems, best first
    compared: pd.DataFrame,  # of `compare_all`
    *,
    level: float = 0.05,  # a p-value below it tells two systems apart
    column: str = "holm_bootstrap",  # which p-value
) -> list[int]:  # (K,) the cluster of each, 1 the best
    """Groups of systems: between two groups every system above is told apart from every system below.

    Source: the rule of the WMT campaigns, Bojar et al. 2016, with paired tests in place of the rank-sum test.
    """
    apart = {
        frozenset((row.better, row.worse))
        for row in compared[compared[column] < level].itertuples()
    }
    clusters = []
    cluster = 1
    for place in range(len(order)):
        if place and all(
            frozenset((above, below)) in apart for above in order[:place] for below in order[place:]
        ):
            cluster += 1
        clusters.append(cluster)
    return clusters


def rank_systems(
    systems: Mapping[
        str, np.ndarray
    ],  # K systems: name -> (N, S) statistics of the same N sentences
    score: _ScoreOfSums = mean_of_sums,
    *,
    lower: bool = False,  # a low score is the better one
    level: float = 0.05,  # of the tests behind the clusters
    n_samples: int = 2000,  # bootstrap resamples, and random swaps
    seed: int = 0,  # of the random draws
) -> (
    pd.DataFrame
):  # best first: system, score, low, high, rank, rank_low, rank_high (1 is best), cluster
    """Systems in order, each with the 95% intervals of its score and of its rank, and its cluster. Below `FEW` sentences
    a rank's interval is what the tests tell apart, and below `FEWEST` nothing is ranked. Raises: as
    `resampled_scores`."""
    from scipy.stats import rankdata

    observed, resampled = resampled_scores(systems, score, n_samples, seed)
    sign = 1 if lower else -1
    ranks = rankdata(sign * resampled, method="min", axis=1)
    low, high = np.quantile(ranks, [0.025, 0.975], axis=0, method="inverted_cdf").astype(int)
    ends = np.array(
        [
            _score_ends(statistics, score, drawn)
            for statistics, drawn in zip(systems.values(), resampled.T)
        ]
    )
    frame = pd.DataFrame(
        {
            "system": list(systems),
            "score": observed,
            "low": ends[:, 0],
            "high": ends[:, 1],
            "rank": rankdata(sign * observed, method="min").astype(int),
            "rank_low": low,
            "rank_high": high,
        }
    )
    frame = frame.iloc[np.argsort(sign * observed, kind="stable")].reset_index(drop=True)
    compared = compare_all(systems, score, lower=lower, n_samples=n_samples, seed=seed)
    tested = "holm_bootstrap" if compared.holm_bootstrap.notna().all() else "holm_randomization"
    n_rows = len(next(iter(systems.values())))
    if n_rows < FEWEST:
        compared[tested] = math.nan
    if n_rows < FEW:
        apart = compared[compared[tested] < level]
        frame["rank_low"] = 1 + frame.system.map(apart.worse.value_counts()).fillna(0).astype(int)
        frame["rank_high"] = len(frame) - frame.system.map(apart.better.value_counts()).fillna(
            0
        ).astype(int)
    return frame.assign(
        cluster=_draw_clusters(list(frame.system), compared, level=level, column=tested)
    )


def _score_ends(statistics, score: _ScoreOfSums, drawn: np.ndarray) -> tuple[float, float]:
    """The interval of a system's score: percentiles of its resamples, or Student's of few sentences."""
    rows = check_statistics(statistics)
    if len(rows) >= FEW:
        return percentiles(drawn)
    return student_interval(score(rows.sum(axis=0) - rows), float(score(rows.sum(axis=0))))


def power_curve(
    statistics_a: np.ndarray,  # (N, S) of system A
    statistics_b: np.ndarray,  # (N, S) of system B on the same sentences
    sizes: Iterable[int] = (25, 50, 100, 200, 400),  # test sets of so many sentences
    score: _ScoreOfSums = mean_of_sums,
    *,
    level: float = 0.05,  # a p-value below it counts
    n_simulations: int = 200,  # test sets of each size
    n_trials: int = 400,  # random swaps of each test
    seed: int = 0,  # of the random draws
) -> (
    pd.DataFrame
):  # n, power (0..1), and the ends of its 95% interval (low, high), which is that of the simulation
    """How often approximate randomisation tells two systems apart, if the sentences at hand are what all sentences are
    like.

    Raises: InputError for statistics of different shapes, or a size below 2. Source: Card et al. 2020.
    """
    a = check_statistics(statistics_a)
    b = check_statistics(statistics_b)
    if a.shape != b.shape:
        raise InputError(
            f"both systems need statistics of the same sentences; got shapes {a.shape} and {b.shape}"
        )
    table = []
    for size in sizes:
        check_number(size, "a size", 2, whole=True)
        rejections = [
            approximate_randomization(a[rows], b[rows], score, n_trials=n_trials, seed=draw).p_value
            < level
            for draw, rows in enumerate(resample_rows(len(a), n_simulations, seed, size))
        ]
        share = bootstrap_interval(mean_statistics(np.array(rejections, dtype=float)), seed=seed)
        table.append({"n": size, "power": share.score, "low": share.low, "high": share.high})
    return pd.DataFrame(table)


def sentences_needed(
    curve: pd.DataFrame,  # of `power_curve`, sizes ascending
    power: float = 0.8,  # the power that is wanted
) -> (
    float
):  # sentences, interpolated on a logarithmic scale; NaN where no size of the curve reaches it
    """The size at which a test first has the power that is wanted; the curve's smallest size if that has it already."""
    sizes = curve["n"].to_numpy(float)
    powers = curve.power.to_numpy(float)
    reached = np.flatnonzero(powers >= power)
    if not len(reached):
        return math.nan
    place = reached[0]
    if place == 0:
        return float(sizes[0])
    share = (power - powers[place - 1]) / (powers[place] - powers[place - 1])
    return float(np.exp(np.log(sizes[place - 1]) + share * np.log(sizes[place] / sizes[place - 1])))


def _signs(scores: np.ndarray) -> np.ndarray:
    """For (..., K) scores the order of each pair of systems: (..., K (K - 1) / 2) of -1, 0, 1."""
    first, second = np.triu_indices(scores.shape[-1], 1)
    return np.sign(scores[..., first] - scores[..., second])


def kendall_tau(
    x,  # (..., K) scores of K systems
    y,  # (..., K) other scores of the same systems
) -> np.ndarray:  # (...) in -1..1; NaN where all scores of one side are equal
    """Kendall's tau-b. Raises: InputError for fewer than two systems, or sides of different length. Source: Kendall
    1945."""
    x = np.asarray(x, dtype=float)
    y = np.asarray(y, dtype=float)
    if x.shape[-1:] != y.shape[-1:] or x.shape[-1] < 2:
        raise InputError(
            f"both sides need scores of the same two or more systems; got shapes {x.shape} and {y.shape}"
        )
    a = _signs(x)
    b = _signs(y)
    scale = np.sqrt((a * a).sum(axis=-1) * (b * b).sum(axis=-1))
    total = (a * b).sum(axis=-1)
    return np.divide(total, scale, out=np.full(np.shape(total), np.nan), where=scale > 0)[()]


def permutation_p(
    x,  # (K,) scores of K systems
    y,  # (K,) other scores of the same systems
    n_permutations: int = 10_000,  # random orders, for more than `MOST_ORDERED` systems
    seed: int = 0,  # of the random orders
) -> float:  # in 0..1; NaN where tau-b is
    """Two-sided: the share of all orders of the systems whose tau-b is at least as far from 0 as the one found."""
    x = np.asarray(x, dtype=float)
    y = np.asarray(y, dtype=float)
    observed = kendall_tau(x, y)
    k = len(x)
    if np.isnan(observed):
        return math.nan
    if k <= MOST_ORDERED:
        orders = np.fromiter(permutations(range(k)), dtype=(np.int8, k), count=math.factorial(k))
    else:
        orders = np.random.default_rng(seed).permuted(
            np.tile(np.arange(k), (n_permutations, 1)), axis=1
        )
    hits = sum(
        int((np.abs(kendall_tau(x, y[block])) >= abs(observed) - 1e-12).sum())
        for block in np.array_split(orders, max(1, len(orders) // 20_000))
    )
    return hits / len(orders) if k <= MOST_ORDERED else (hits + 1) / (len(orders) + 1)


class Agreement(NamedTuple):
    """How far two orders of systems agree."""

    tau: float  # Kendall's tau-b, -1..1
    low: float  # ends of its 95% interval over sentences
    high: float
    p_value: float  # two-sided, over orders of the systems
    systems: int  # how many


def system_agreement(
    metric: Mapping[str, np.ndarray],  # K systems: name -> (N, S) statistics
    people: Mapping[str, np.ndarray],  # the same systems and sentences: name -> (N, S) statistics
    score: _ScoreOfSums = mean_of_sums,  # of the metric
    people_score: _ScoreOfSums = mean_of_sums,
    *,
    n_resamples: int = 2000,  # bootstrap resamples of sentences
    seed: int = 0,  # of the random draws
) -> Agreement:
    """Does a metric put systems into the order into which people put them?

    Raises: InputError for other systems on one side, or as `resampled_scores`.
    """
    if set(metric) != set(people):
        raise InputError(
            f"both sides need the same systems; only one has "
            f"{', '.join(sorted(set(metric) ^ set(people)))}"
        )
    observed, resampled = resampled_scores(metric, score, n_resamples, seed)
    human_scores, drawn = resampled_scores(
        {name: people[name] for name in metric}, people_score, n_resamples, seed
    )
    taus = kendall_tau(resampled, drawn)
    return Agreement(
        float(kendall_tau(observed, human_scores)),
        *percentiles(taus),
        permutation_p(observed, human_scores),
        len(metric),
    )
