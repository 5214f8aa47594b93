"""Bootstrap intervals, paired tests and the correction for many comparisons"""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from math import exp, factorial
from typing import NamedTuple

import numpy as np

from .checks import InputError, check_number

MOST_RESAMPLES = 1_000_000  # whose sums take 80 MB for BLEU; an interval is no better for more
FEW = 30  # rows below which resamples spread too little: there intervals are Student's, and tests swap rows
FEWEST = 6  # rows below which no swap test can reach 5%: with five, the smallest p-value is 2/32


_NOISE = 1e-9  # of a number's size: what lies nearer is equal


def steady(
    values: np.ndarray,  # numbers of any shape
) -> np.ndarray:  # the same shape
    """Numbers without the noise of floats, so that 0.1 + 0.2 is 0.3: 12 of their digits."""
    parts, powers = np.frexp(values)
    return np.ldexp(np.round(parts, 12), powers)


def has_spread(
    values: np.ndarray,  # finite numbers, at least one
) -> bool:
    """Whether numbers differ by more than the noise of floats."""
    with np.errstate(over="ignore"):
        return bool(np.ptp(values) > _NOISE * np.abs(values).max())


def without_noise(
    values: np.ndarray,
    others: np.ndarray,  # of the same shape
) -> np.ndarray:  # the others, but for those that differ by no more than noise, which become equal
    """What two sides may be compared by."""
    with np.errstate(invalid="ignore"):
        near = np.abs(others - values) <= _NOISE * np.maximum(np.abs(values), np.abs(others))
    return np.where(near, values, others)


def check_statistics(
    statistics,  # one row a sentence
) -> np.ndarray:  # (N, S) floats
    """Sufficient statistics as an array. Raises: InputError if there is no row."""
    statistics = np.asarray(statistics, dtype=float)
    if statistics.ndim != 2 or len(statistics) == 0:
        raise InputError(
            f"statistics must have one row a sentence and at least one row, got shape {statistics.shape}"
        )
    return statistics


def resample_rows(
    n_rows: int,  # rows that there are, >= 1
    n_resamples: int = 1000,  # resamples, >= 1
    seed: int = 0,  # of NumPy's default_rng
    size: int | None = None,  # rows of a resample, >= 1; None: as many as there are
) -> Iterator[np.ndarray]:  # n_resamples times (size,) row numbers, drawn with replacement
    """The rows of bootstrap resamples, one after another."""
    generator = np.random.default_rng(seed)
    for _ in range(n_resamples):
        yield generator.integers(n_rows, size=n_rows if size is None else size)


def resample_sums(
    statistics: np.ndarray,  # (N, S) one row a sentence
    n_resamples: int = 1000,  # resamples, each of N rows drawn with replacement, >= 1
    seed: int = 0,  # of NumPy's default_rng
) -> np.ndarray:  # (n_resamples, S) sums of the drawn rows
    """Sum bootstrap resamples; the same seed draws the same rows whatever the statistics are.

    Raises: InputError for statistics without rows or fewer than one resample.
    Source: Efron 1979; Koehn 2004; the draws are those of sacreBLEU for the same seed.
    """
    statistics = check_statistics(statistics)
    check_number(n_resamples, "n_resamples", 1, MOST_RESAMPLES, whole=True)
    columns = np.ascontiguousarray(statistics.T)  # no copy where the caller kept columns together
    sums = np.empty((n_resamples, len(columns)))
    n_rows = len(statistics)
    for row, drawn in zip(sums, resample_rows(n_rows, n_resamples, seed)):
        row[:] = columns @ np.bincount(drawn, minlength=n_rows)
    return sums


def resample_counts(
    groups,  # (N,) number of each row's group, 0..G-1, each number there; np.arange(N) draws single rows
    n_resamples: int = 1000,  # resamples, each of G groups drawn with replacement, >= 1
    seed: int = 0,  # of NumPy's default_rng
) -> Iterator[np.ndarray]:  # blocks of (b, N) counts, b summing to n_resamples
    """How often each row is in each resample of whole groups, a block of resamples after the other.

    Raises: InputError for fewer than one resample. Source: Davison and Hinkley 1997, section 3.8.
    """
    check_number(n_resamples, "n_resamples", 1, MOST_RESAMPLES, whole=True)
    groups = np.asarray(groups)
    n_groups = int(groups.max()) + 1
    block = max(1, 2**19 // len(groups))
    draws = resample_rows(n_groups, n_resamples, seed)
    for start in range(0, n_resamples, block):
        drawn = [
            np.bincount(rows, minlength=n_groups)
            for rows in islice(draws, min(block, n_resamples - start))
        ]
        yield np.array(drawn, dtype=float)[:, groups]


def mean_statistics(
    values,  # (N,) numbers; NaN and infinity count as undefined
) -> np.ndarray:  # (N, 2) value or 0, and 1 where it is defined
    """Sufficient statistics of a mean over the rows that have a value."""
    values = np.asarray(values, dtype=float)
    defined = np.isfinite(values)
    return np.stack(
        [np.where(defined, values, 0.0), defined.astype(float)]
    ).T  # each column in one piece of memory


def mean_of_sums(
    sums: np.ndarray,  # (..., 2) summed `mean_statistics`
) -> np.ndarray:  # (...) means; NaN where no value was drawn
    """The mean that belongs to summed statistics."""
    total = sums[..., 0]
    drawn = sums[..., 1]
    return np.divide(total, drawn, out=np.full(np.shape(total), np.nan), where=drawn > 0)[()]


_CHUNK = 1024
_TILE = 128  # rows that share a stretch of random numbers; resamples whose weights are held at once


def _poisson_table() -> tuple[np.ndarray, np.ndarray]:
    """The distribution function of Poisson numbers of mean 1 at 0, 1, ...; and the number of each of 65,536 parts of
    0..1, or -1."""
    steps = np.cumsum([exp(-1) / factorial(k) for k in range(20)])
    first, last = (
        np.searchsorted(steps, np.arange(65536) / 65536 + ends, side)
        for ends, side in ((0, "right"), (2**-16, "left"))
    )
    return steps, np.where(first == last, first, -1).astype(float)


def _poisson_weights(
    chunk: int, n_resamples: int, key: np.ndarray, steps: np.ndarray, table: np.ndarray
) -> Iterator[np.ndarray]:
    """The weights of a chunk's rows, (b, _CHUNK) at once, b summing to n_resamples; overwritten by the next."""
    coarse, fine = (np.random.Philox(key=key, counter=[0, 0, chunk, stream]) for stream in range(2))
    finer = np.random.Generator(fine)
    weights = np.empty((_TILE, _CHUNK))
    for start in range(0, n_resamples, _TILE):
        tile = weights[: n_resamples - start]
        parts = coarse.random_raw(tile.size // 4).view(np.uint16).reshape(tile.shape)
        np.take(table, parts, out=tile, mode="clip")
        torn = np.nonzero(tile < 0)
        tile[torn] = np.searchsorted(
            steps, (parts[torn] + finer.random(len(torn[0]))) / 65536, "right"
        )
        yield tile


def _in_chunks(blocks, first_row: int) -> Iterator[tuple[int, np.ndarray]]:
    """Number and rows (_CHUNK, S) of each chunk, zeros for rows that are not there; overwritten by the next."""
    held = None
    chunk = first_row // _CHUNK
    place = first_row % _CHUNK
    waiting = False
    for statistics in blocks:
        block = np.asarray(statistics, dtype=float)
        if block.ndim != 2 or (held is not None and block.shape[1] != held.shape[1]):
            as_first = "" if held is None else f", {held.shape[1]} columns as in the first"
            raise InputError(
                f"statistics must have one row a sentence{as_first}, got a block of shape {block.shape}"
            )
        held = np.zeros((_CHUNK, block.shape[1])) if held is None else held
        while len(block):
            taken = block[: _CHUNK - place]
            held[place : place + len(taken)], block = taken, block[_CHUNK - place :]
            place = place + len(taken)
            waiting = True
            if place == _CHUNK:
                yield chunk, held
                chunk, place, waiting, held[:] = chunk + 1, 0, False, 0
    if waiting:
        yield chunk, held


def poisson_sums(
    # iterable of (N_i, S) arrays, the statistics in the order of the rows; a block may be empty
    blocks,
    n_resamples: int = 1000,  # resamples, each with a Poisson weight of mean 1 for every row, >= 1
    seed: int = 0,  # whole number >= 0
    *,
    # place of the first row in the whole table, counted from 0; sums of parts of a table then add up
    first_row: int = 0,
) -> np.ndarray:  # (n_resamples, S) weighted sums
    """Sum Poisson resamples of statistics that come in blocks; a row's weights follow from its place and the seed
    alone.

    Raises: InputError for statistics without rows or of unequal width, fewer than one resample, or a seed or place
    below 0.
    Source: Chamandy, Muralidharan, Najmi and Naidu 2012; Hanley and MacGibbon 2006; Salmon et al. 2011 for Philox.
    """
    check_number(n_resamples, "n_resamples", 1, MOST_RESAMPLES, whole=True)
    check_number(seed, "seed", 0, whole=True)
    check_number(first_row, "first_row", 0, whole=True)
    key, (steps, table) = (
        np.random.SeedSequence(seed).generate_state(2, np.uint64),
        _poisson_table(),
    )
    sums = None
    for chunk, rows in _in_chunks(blocks, first_row):
        sums = np.zeros((n_resamples, rows.shape[1])) if sums is None else sums
        for place, weights in enumerate(_poisson_weights(chunk, n_resamples, key, steps, table)):
            sums[place * _TILE : place * _TILE + len(weights)] += weights @ rows
    if sums is None:
        raise InputError("statistics must have at least one row, got none")
    return sums


class Interval(NamedTuple):
    """A score with its bootstrap interval, in the units of the score."""

    score: float  # of the sentences themselves
    low: float  # lower end of the interval
    high: float  # upper end of the interval
    mean: float  # of the resamples' scores


def bootstrap_interval(
    statistics: np.ndarray,  # (N, S) one row a sentence
    score: Callable[[np.ndarray], np.ndarray] = mean_of_sums,  # from sums (..., S) to scores (...)
    *,
    n_resamples: int = 1000,  # bootstrap resamples
    level: float = 0.95,  # share of the resamples inside the interval, between 0 and 1
    seed: int = 0,  # of the random draws
) -> Interval:
    """The score of a set of sentences and its percentile bootstrap interval. Of 30 rows with heavy tails (Student's t
    with 3 degrees of freedom) 90% of the 95% intervals hold the true mean; tests/RATES.md has more such rates.

    Raises: InputError for a level outside 0..1 or statistics without rows.
    Source: Efron 1979; Koehn 2004.
    """
    check_number(level, "level", 0, 1, above=True, below=True)
    statistics = check_statistics(statistics)
    scores = score(resample_sums(statistics, n_resamples, seed))
    return Interval(
        float(score(statistics.sum(axis=0))), *percentiles(scores, level), _mean(scores)
    )


def percentiles(
    values: np.ndarray,  # (B,) scores of resamples; NaN where a resample had none
    level: float = 0.95,  # share of the values between the two
) -> tuple[float, float]:  # NaN and NaN where no resample had a score
    """The two ends of a percentile interval."""
    values = values[~np.isnan(values)]
    if not len(values):
        return float("nan"), float("nan")
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _mean(values: np.ndarray) -> float:
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if len(defined) else float("nan")


def student_interval(
    without: np.ndarray,  # (N,) scores, each without one of the rows; NaN where none is left
    score: float,  # of all rows
    level: float = 0.95,  # of the interval, between 0 and 1
) -> tuple[float, float]:  # NaN and NaN for fewer than two rows
    """Interval of a score by the jackknife's standard error and Student's t, for few rows. Of six exponential, that is
    skewed, values 88% of the 95% intervals hold the true mean; tests/RATES.md has more such rates.

    Source: Efron and Tibshirani 1993, chapter 11; Student 1908.
    """
    from scipy.stats import t

    n = len(without)
    if n < 2 or not np.isfinite(without).all():
        return float("nan"), float("nan")
    reach = t.ppf((1 + level) / 2, n - 1) * np.sqrt(
        (n - 1) / n * ((without - without.mean()) ** 2).sum()
    )
    return float(score - reach), float(score + reach)


@dataclass(frozen=True)
class Comparison:
    """Two systems on the same sentences."""

    score_a: float  # score of system A
    score_b: float  # score of system B
    difference: float  # score_a - score_b
    p_value: float  # two-sided: how often chance alone makes a difference at least as large, 0..1
    low: (
        float | None
    )  # lower end of the difference's bootstrap interval; None for a test that gives none
    high: float | None  # upper end likewise
    method: str  # name of the test
    n_samples: int  # resamples or trials
    seed: int  # of the random draws


def p_value(
    chance: np.ndarray,  # (B,) differences that chance alone made
    observed: float,  # the difference that was found
) -> float:  # in 0..1
    """Share of chance differences at least as large as the observed one, which counts as one of them. A difference
    that chance left without a value counts as large, so that it never speaks for the systems."""
    if np.isnan(observed):
        return float("nan")
    at_least = ~(
        np.abs(chance) < abs(observed) - 1e-12
    )  # equal differences may differ in the last bit
    return float((at_least.sum() + 1) / (len(chance) + 1))


def paired_bootstrap(
    statistics_a: np.ndarray,  # (N, S) of system A
    statistics_b: np.ndarray,  # (N, S) of system B on the same sentences
    score: Callable[[np.ndarray], np.ndarray] = mean_of_sums,  # from sums (..., S) to scores (...)
    *,
    n_resamples: int = 1000,  # bootstrap resamples
    level: float = 0.95,  # share of the resampled differences inside the interval
    seed: int = 0,  # of the random draws
) -> Comparison:
    """Compare two systems by resampling sentences, the same ones for both. Warns below `FEW` sentences, where its
    p-values are too small and `approximate_randomization` is exact.

    Raises: InputError for statistics of different shapes or without rows, or a level outside 0..1.
    Source: Koehn 2004; the shift to the null hypothesis is Efron and Tibshirani 1993, chapter 20.
    """
    check_number(level, "level", 0, 1, above=True, below=True)
    a, b, score_a, score_b = _paired(statistics_a, statistics_b, score)
    if len(a) < FEW:
        warnings.warn(
            f"with {len(a)} sentences, fewer than {FEW}, the p-value of the paired bootstrap is too small; "
            "approximate_randomization keeps its level",
            stacklevel=2,
        )
    differences = score(resample_sums(a, n_resamples, seed)) - score(
        resample_sums(b, n_resamples, seed)
    )
    observed = score_a - score_b
    return Comparison(
        score_a,
        score_b,
        observed,
        p_value(differences - observed, observed),
        *percentiles(differences, level),
        "paired bootstrap",
        n_resamples,
        seed,
    )


def _paired(statistics_a, statistics_b, score) -> tuple[np.ndarray, np.ndarray, float, float]:
    """Both statistics as arrays of one shape, and both scores."""
    if np.shape(statistics_a) != np.shape(statistics_b):
        raise InputError(
            "both systems need statistics of the same sentences, one row a sentence; "
            f"got shapes {np.shape(statistics_a)} and {np.shape(statistics_b)}"
        )
    a = check_statistics(statistics_a)
    b = without_noise(a, check_statistics(statistics_b))
    return a, b, float(score(a.sum(axis=0))), float(score(b.sum(axis=0)))


def swapped_sums(
    statistics_a: np.ndarray,  # (N, S) of system A
    statistics_b: np.ndarray,  # (N, S) of system B on the same sentences
    n_trials: int = 10_000,  # random swaps; where there are no more than so many, all of them are made
    seed: int = 0,  # of the random draws
) -> Iterator[
    tuple[np.ndarray, np.ndarray]
]:  # blocks of (T, S) sums of both, after rows changed sides
    """What two systems would have summed if a coin had decided, row by row, which of them wrote which output."""
    n = len(statistics_a)
    total = statistics_a.sum(axis=0) + statistics_b.sum(axis=0)
    surplus = statistics_a - statistics_b
    generator = np.random.default_rng(seed)
    block = max(1, 2**22 // n)
    everything = n < 63 and 2**n <= n_trials
    for start in range(0, 2**n if everything else n_trials, block):
        if everything:
            keeps = np.arange(start, min(start + block, 2**n))[:, None] >> np.arange(n) & 1
        else:
            keeps = generator.integers(2, size=(min(block, n_trials - start), n), dtype=bool)
        first = (
            statistics_b.sum(axis=0) + keeps.astype(float) @ surplus
        )  # A's rows where the coin keeps them, else B's
        yield first, total - first


def share_as_large(
    chance: np.ndarray,  # (T,) differences after swaps, from `swapped_sums`
    observed: float,  # the difference that was found
    n: int,  # rows that were swapped
) -> float:  # in 0..1
    """The p-value of a swap test: exact where all swaps were made, and else the observed order counts as one more."""
    if np.isnan(observed):
        return float("nan")
    return p_value(
        chance[1:] if n < 63 and len(chance) == 2**n else chance, observed
    )  # the first swaps every row


def approximate_randomization(
    statistics_a: np.ndarray,  # (N, S) of system A
    statistics_b: np.ndarray,  # (N, S) of system B on the same sentences
    score: Callable[[np.ndarray], np.ndarray] = mean_of_sums,  # from sums (..., S) to scores (...)
    *,
    n_trials: int = 10_000,  # random swaps of the two systems' outputs; all swaps where there are no more
    seed: int = 0,  # of the random draws
) -> Comparison:  # without an interval
    """Compare two systems by swapping their outputs sentence by sentence with a coin. It tests whether the two outputs of
    a sentence are exchangeable: of few rows, of which a few differ hugely, it may call a difference of means where
    medians do not differ.

    Raises: InputError for statistics of different shapes or without rows, or fewer than one trial.
    Source: Noreen 1989; Riezler and Maxwell 2005.
    """
    check_number(n_trials, "n_trials", 1, MOST_RESAMPLES, whole=True)
    a, b, score_a, score_b = _paired(statistics_a, statistics_b, score)
    chance = np.concatenate(
        [score(first) - score(second) for first, second in swapped_sums(a, b, n_trials, seed)]
    )
    observed = score_a - score_b
    return Comparison(
        score_a,
        score_b,
        observed,
        share_as_large(chance, observed, len(a)),
        None,
        None,
        "approximate randomization",
        len(chance),
        seed,
    )


def paired_test(
    statistics_a: np.ndarray,  # (N, S) of system A
    statistics_b: np.ndarray,  # (N, S) of system B on the same sentences
    score: Callable[[np.ndarray], np.ndarray] = mean_of_sums,  # from sums (..., S) to scores (...)
    *,
    n_samples: int = 1000,  # bootstrap resamples, or random swaps
    level: float = 0.95,  # of the interval of the difference
    seed: int = 0,  # of the random draws
) -> Comparison:
    """Compare two systems: by paired bootstrap from `FEW` sentences on, and below by swaps and Student's interval.

    Raises: as `paired_bootstrap`. Source: Koehn 2004; Noreen 1989; Student 1908.
    """
    check_number(level, "level", 0, 1, above=True, below=True)
    a, b, score_a, score_b = _paired(statistics_a, statistics_b, score)
    both = (a[:, -1] > 0) & (b[:, -1] > 0) if score is mean_of_sums else np.ones(len(a), dtype=bool)
    if both.sum() >= FEW:
        return paired_bootstrap(a, b, score, n_resamples=n_samples, level=level, seed=seed)
    swapped = approximate_randomization(a, b, score, n_trials=n_samples, seed=seed)
    without = score(a.sum(axis=0) - a[both]) - score(b.sum(axis=0) - b[both])
    low, high = student_interval(without, score_a - score_b, level)
    return replace(swapped, low=low, high=high, method="swaps, and Student's interval")


def holm(
    p_values,  # (M,) p-values of one family of comparisons, in 0..1; NaN for a comparison that could not be made
) -> np.ndarray:  # (M,) adjusted p-values in 0..1, in the same order; NaN where there was none
    """Adjust the p-values of several comparisons so that the risk of any false alarm keeps its level.

    Raises: InputError for a p-value outside 0..1.
    Source: Holm 1979.
    """
    p_values = np.asarray(p_values, dtype=float)
    made = np.flatnonzero(~np.isnan(p_values))
    if ((p_values[made] < 0) | (p_values[made] > 1)).any():
        raise InputError(f"p-values must be in 0..1, got {p_values.tolist()}")
    order = made[np.argsort(p_values[made], kind="stable")]
    adjusted = np.full(p_values.shape, np.nan)
    adjusted[order] = np.minimum(
        np.maximum.accumulate(p_values[order] * np.arange(len(order), 0, -1)), 1
    )
    return adjusted
