"""Correlation of a metric with people's ratings: coefficients, intervals over sources, and comparisons"""

import math
from functools import cache
from itertools import permutations
from typing import NamedTuple

import numpy as np
import pandas as pd

from tsteval.core.checks import (
    InputError,
    InputTypeError,
    check_choice,
    check_equal_lengths,
    check_rows,
    describe,
)

from ..core.resample import FEW, FEWEST, Comparison, has_spread, p_value, resample_counts, steady

_METHODS = ("pearson", "spearman", "kendall")
MOST_ORDERED = 8  # rows, or systems, whose orders are all tried


def check_columns(
    **columns,  # each (N,) numbers, under the name that errors should use
) -> list[np.ndarray]:  # each (N,) floats, N >= 3
    """Columns of finite numbers, equally long. Raises: InputError naming the column, and the row if there is one."""
    arrays = {name: _numbers(values, name) for name, values in columns.items()}
    check_equal_lengths(**arrays)
    if len(next(iter(arrays.values()))) < 3:
        raise InputError(
            f"a correlation needs at least 3 rows, got {len(next(iter(arrays.values())))}"
        )
    return list(arrays.values())


def group_codes(
    groups,  # (N,) names or numbers of groups; None: each row is its own
    n_rows: int,  # N
) -> (
    np.ndarray
):  # (N,) the number of each row's group, 0..G-1, in the order in which they first occur
    """Groups as numbers. Raises: InputError for a missing group, or another number of rows."""
    if groups is None:
        return np.arange(n_rows)
    rows = check_rows(groups, "groups", "names or numbers of groups")
    check_equal_lengths(metric=range(n_rows), groups=rows)
    codes = pd.factorize(
        np.array(rows, dtype=object) if not isinstance(groups, pd.Series) else groups
    )[0]
    if (codes < 0).any():
        raise InputError("the group is missing", argument="groups", row=(codes < 0).argmax())
    return codes


def _numbers(values, name: str) -> np.ndarray:
    rows = check_rows(values, name, "numbers")
    try:
        array = np.array(rows, dtype=float)
    except (TypeError, ValueError):
        array = None
    if array is None or array.ndim != 1:
        raise InputTypeError(f"{name} must be numbers, one a row; got {describe(values)}")
    if not np.isfinite(array).all():
        row = int((~np.isfinite(array)).argmax())
        raise InputError(
            f"expected a finite number, got {describe(float(array[row]))}", argument=name, row=row
        )
    array = steady(array)
    return array if not len(array) or has_spread(array) else np.full(len(array), array[0])


def _codes(groups, n_rows: int) -> np.ndarray:
    codes = group_codes(groups, n_rows)
    if codes.max() < 2:
        raise InputError(f"resampling needs at least 3 groups, got {codes.max() + 1}")
    return codes


def weighted_pearson(
    counts: np.ndarray,  # (B, N) how often each row is in each resample
    x: np.ndarray,  # (N,) numbers, or (B, N) if they differ by resample
    y: np.ndarray,  # likewise
) -> np.ndarray:  # (B,) in -1..1, NaN where one side is constant
    """Pearson's correlation in each resample."""
    (a, b), drawn = (_standard(x), _standard(y)), counts.sum(axis=1)
    mean_a, mean_b, aa, bb, ab = (
        np.einsum("bn,...n->b" if part.ndim == 1 else "bn,bn->b", counts, part) / drawn
        for part in (a, b, a * a, b * b, a * b)
    )
    return _mended(_ratio(ab - mean_a * mean_b, aa - mean_a**2, bb - mean_b**2), counts, x, y)


def _standard(values: np.ndarray) -> np.ndarray:
    """Mean 0 and variance 1; all zeros where all values are equal."""
    values = np.asarray(values, dtype=float)
    if values.min() == values.max():
        return np.zeros(values.shape)
    values = np.ldexp(
        values, -int(np.frexp(np.abs(values).max())[1])
    )  # a power of two: every digit stays
    centred = values - values.mean()
    return centred / np.sqrt((centred * centred).mean())


def _mended(correlations: np.ndarray, counts: np.ndarray, x, y, systems=None) -> np.ndarray:
    """Correlations of resamples; those that had none are computed anew from the rows that were drawn, since one huge
    value in the data takes the digits of all others."""
    for place in np.flatnonzero(np.isnan(correlations)):
        drawn = counts[place] > 0
        parts = []
        weights = counts[place, drawn]
        members = np.zeros(len(weights), int) if systems is None else systems[drawn]
        for side in (x, y):
            values = _standard(np.asarray(side if np.ndim(side) == 1 else side[place])[drawn])
            means = np.bincount(members, weights * values) / np.maximum(
                np.bincount(members, weights), 1
            )
            parts.append(values - means[members])
        products = (parts[0] * parts[1], parts[0] ** 2, parts[1] ** 2)
        correlations[place] = _ratio(
            *(np.atleast_1d(weights @ product / weights.sum()) for product in products)
        )[0]
    return correlations


def _ratio(covariance: np.ndarray, variance_x: np.ndarray, variance_y: np.ndarray) -> np.ndarray:
    """Covariances over the roots of variances of standardised columns; NaN where one is a rounding error."""
    varies = (variance_x > 1e-12) & (variance_y > 1e-12)
    scale = np.sqrt(np.where(varies, variance_x * variance_y, 1.0))
    return np.where(varies, np.clip(covariance / scale, -1, 1), np.nan)


def weighted_ranks(
    counts: np.ndarray,  # (B, N) how often each row is in each resample
    values: np.ndarray,  # (N,) numbers
) -> (
    np.ndarray
):  # (B, N) the rank of each row within each resample, equal values in the middle of their places
    """Ranks within resamples; of a row that is not in a resample the entry means nothing."""
    distinct, place = np.unique(values, return_inverse=True)
    order = np.argsort(place, kind="stable")
    tied = np.add.reduceat(
        counts[:, order], np.searchsorted(place[order], np.arange(len(distinct))), axis=1
    )
    return (tied.cumsum(axis=1) - (tied - 1) / 2)[:, place]


def coefficients(
    counts: np.ndarray,  # (B, N) how often each row is in each resample
    x: np.ndarray,  # (N,) numbers
    y: np.ndarray,  # (N,) numbers
    method: str = "pearson",  # pearson | spearman | kendall (tau-b)
) -> np.ndarray:  # (B,) in -1..1, NaN where one side is constant
    """A correlation in each resample."""
    if method == "pearson":
        return weighted_pearson(counts, x, y)
    if method == "spearman":
        return weighted_pearson(counts, weighted_ranks(counts, x), weighted_ranks(counts, y))
    return np.array(
        [_tau(np.repeat(x, times), np.repeat(y, times)) for times in counts.astype(int)]
    )


def _tau(x: np.ndarray, y: np.ndarray) -> float:
    from scipy.stats import kendalltau

    if x.min() == x.max() or y.min() == y.max():
        return float("nan")
    return float(kendalltau(x, y, method="asymptotic").statistic)


class Correlation(NamedTuple):
    """A correlation with its interval."""

    value: float  # -1..1; NaN where one side is constant
    low: float  # ends of the 95% interval; NaN for fewer than `FEWEST` rows, or groups of them
    high: float
    p_value: float  # two-sided, of no correlation at all
    n: int  # rows
    undefined: int = 0  # resamples without a correlation, since one side was constant: the interval leaves them out


def fisher_ends(
    value: float,  # the correlation, -1..1
    drawn: np.ndarray,  # (B,) correlations of resamples; NaN where one had none
    n_groups: int,  # groups that were resampled
    level: float = 0.95,  # nominal coverage
) -> tuple[
    float, float
]:  # NaN and NaN below `FEWEST` groups, or where too few resamples had a correlation
    """The ends of a bootstrap interval whose standard deviation is taken on Fisher's scale. Source: Fisher 1921; Efron
    1979."""
    from scipy.stats import t

    if not np.isfinite(value) or n_groups < FEWEST:
        return math.nan, math.nan
    if abs(value) == 1:
        return (value, value) if n_groups >= FEW else (math.nan, math.nan)  # by chance, if few
    reach = t.ppf((1 + level) / 2, n_groups - 1) * _fisher_spread(drawn)
    return float(np.tanh(np.arctanh(value) - reach)), float(np.tanh(np.arctanh(value) + reach))


def correlation(
    metric,  # (N,) scores of a metric, N >= 3
    human,  # (N,) people's ratings
    method: str = "pearson",  # pearson | spearman | kendall (tau-b)
    groups=None,  # (N,) which rows belong together (one source, say) and are drawn together; None: none do
    n_boot: int = 2000,  # bootstrap resamples
    seed: int = 0,  # of the random draws
) -> Correlation:
    """How closely a metric follows people, with a 95% bootstrap interval. A constant column has no correlation: all NaN
    but n. The p-value of up to `MOST_ORDERED` rows is exact. Of 100 rows of log-normal, that is very skewed, columns
    89% of the intervals of Pearson's correlation hold the true one (tests/RATES.md); take Spearman's there.

    Raises: InputError for fewer than 3 rows or groups, columns of different length, a missing number, or an unknown
    method.
    Source: Pearson 1896; Spearman 1904; Kendall 1945.
    """
    check_choice(method, "method", _METHODS)
    x, y = check_columns(metric=metric, human=human)
    codes = _codes(groups, len(x))
    value = float(coefficients(np.ones((1, len(x))), x, y, method)[0])
    if np.isnan(value):
        return Correlation(value, value, value, value, len(x))
    drawn = np.concatenate(
        [coefficients(counts, x, y, method) for counts in resample_counts(codes, n_boot, seed)]
    )
    low, high = fisher_ends(value, drawn, int(codes.max()) + 1)
    chance = _row_p(x, y, method) if groups is None else _group_p(value, drawn, int(codes.max()))
    return Correlation(value, low, high, chance, len(x), int(np.isnan(drawn).sum()))


def _row_p(x: np.ndarray, y: np.ndarray, method: str) -> float:
    from scipy import stats

    if len(x) <= MOST_ORDERED:
        return _exact_p(x, y, method)
    pvalue = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}[
        method
    ](x, y).pvalue
    return max(float(pvalue), _least_p(len(x)))


@cache
def _orders(n: int) -> np.ndarray:
    return np.array(list(permutations(range(n))))


def _exact_p(x: np.ndarray, y: np.ndarray, method: str) -> float:
    """Share of all orders of one side that give a correlation at least as far from 0."""
    x, y = (
        _standard(side) if method == "pearson" else weighted_ranks(np.ones((1, len(side))), side)[0]
        for side in (x, y)
    )
    orders = y[_orders(len(y))]
    magnitudes = np.abs(
        _pair_signs(orders) @ _pair_signs(x) if method == "kendall" else orders @ (x - x.mean())
    )
    return float(
        (magnitudes >= magnitudes[0] - 1e-9).mean()
    )  # the first order is the one that was found


def _pair_signs(values: np.ndarray) -> np.ndarray:
    first, second = np.triu_indices(values.shape[-1], 1)
    return np.sign(values[..., first] - values[..., second]).astype(float)


def _least_p(n: int) -> float:
    """Of a perfect order of n rows: two of all orders."""
    return 2 / math.factorial(n) if n < 100 else 0.0


def _fisher_spread(drawn: np.ndarray) -> float:
    """Standard deviation on Fisher's scale; what lies at its ends counts as much as the outermost other value."""
    drawn = drawn[~np.isnan(drawn)]
    inside = np.abs(drawn[np.abs(drawn) < 1 - 1e-12])
    if len(drawn) < 2 or not len(inside):
        return float("nan")
    return float(np.arctanh(np.clip(drawn, -inside.max(), inside.max())).std(ddof=1))


def _group_p(value: float, drawn: np.ndarray, freedom: int) -> float:
    from scipy.stats import t

    if abs(value) == 1:
        return _least_p(freedom + 1)
    return float(2 * t.sf(abs(np.arctanh(value)) / _fisher_spread(drawn), freedom))


def compare_correlations(
    a,  # (N,) scores of metric A, N >= 3
    b,  # (N,) scores of metric B on the same rows
    human,  # (N,) people's ratings
    method: str = "pearson",  # pearson | spearman | kendall (tau-b)
    groups=None,  # (N,) which rows are drawn together; None: each alone
    n_boot: int = 2000,  # bootstrap resamples
    seed: int = 0,  # of the random draws
) -> (
    Comparison
):  # score_a and score_b are the correlations; low and high the 95% interval of their difference
    """Does one metric follow people more closely than another on the same outputs? All NaN where one has no
    correlation. Of 100 rows of log-normal, that is very skewed, columns 88% of the intervals hold the true difference
    (tests/RATES.md).

    Raises: as `correlation`. Source: the resampling rival of Williams 1959; Efron and Tibshirani 1993, chapter 20.
    """
    from scipy.stats import t

    check_choice(method, "method", _METHODS)
    a, b, human = check_columns(a=a, b=b, human=human)
    codes = _codes(groups, len(human))
    score_a, score_b = (
        float(coefficients(np.ones((1, len(human))), side, human, method)[0]) for side in (a, b)
    )
    drawn = np.concatenate(
        [
            coefficients(counts, a, human, method) - coefficients(counts, b, human, method)
            for counts in resample_counts(codes, n_boot, seed)
        ]
    )
    difference = score_a - score_b
    reach = (
        t.ppf(0.975, codes.max()) * np.nanstd(drawn, ddof=1) if np.isfinite(difference) else np.nan
    )
    return Comparison(
        score_a,
        score_b,
        difference,
        p_value(drawn - difference, difference),
        float(difference - reach),
        float(difference + reach),
        "bootstrap of correlations",
        n_boot,
        seed,
    )


def partial_of(
    r_xy,  # (...) correlations of metric and ratings
    r_xz,  # (...) of metric and the third column
    r_yz,  # (...) of ratings and the third column
) -> np.ndarray:  # (...) in -1..1; NaN where the third column determines one side
    """The correlation that is left when a third column is held fixed. Source: Yule 1907."""
    r_xy, r_xz, r_yz = (np.asarray(r, dtype=float) for r in (r_xy, r_xz, r_yz))
    return _ratio(r_xy - r_xz * r_yz, 1 - r_xz**2, 1 - r_yz**2)[()]


def within_coefficients(
    counts: np.ndarray,  # (B, N) how often each row is in each resample
    x: np.ndarray,  # (N,) numbers
    y: np.ndarray,  # (N,) numbers
    systems,  # (N,) number of each row's system, 0..K-1
) -> np.ndarray:  # (B,) in -1..1
    """Pearson's correlation of what is left when each system's mean is taken away on both sides, in each resample."""
    values = (x, y)
    x = _standard(x)
    y = _standard(y)
    systems = np.asarray(systems)
    member = np.eye(systems.max() + 1)[systems]  # (N, K)
    drawn = counts @ member
    means = [(counts @ (member * side[:, None])) / np.maximum(drawn, 1) for side in (x, y)]
    sums = [counts @ part for part in (x * y, x * x, y * y)]
    between = [
        (drawn * first * second).sum(axis=1)
        for first, second in ((means[0], means[1]), (means[0],) * 2, (means[1],) * 2)
    ]
    correlations = _ratio(
        *((total - part) / counts.sum(axis=1) for total, part in zip(sums, between))
    )
    return _mended(correlations, counts, *values, systems)


def partial_correlation(
    metric,  # (N,) scores of a metric, N >= 4
    human,  # (N,) people's ratings
    given,  # (N,) what is held fixed, such as the number of words
    method: str = "pearson",  # pearson | spearman (of ranks)
    groups=None,  # (N,) which rows are drawn together; None: each alone
    n_boot: int = 2000,  # bootstrap resamples
    seed: int = 0,  # of the random draws
) -> Correlation:  # p_value as `correlation`, with one degree of freedom less
    """The correlation of metric and ratings among outputs that are alike in a third respect.

    Raises: as `correlation`. Source: Yule 1907.
    """
    check_choice(method, "method", _METHODS[:2])
    x, y, z = check_columns(metric=metric, human=human, given=given)
    if len(x) < 4:
        raise InputError(f"a partial correlation needs at least 4 rows, got {len(x)}")
    codes = _codes(groups, len(x))

    def of(counts):
        return partial_of(
            *(coefficients(counts, *pair, method) for pair in ((x, y), (x, z), (y, z)))
        )

    value = float(of(np.ones((1, len(x))))[0])
    if np.isnan(value):
        return Correlation(value, value, value, value, len(x))
    drawn = np.concatenate([of(counts) for counts in resample_counts(codes, n_boot, seed)])
    chance = (
        _student_p(value, len(x) - 3)
        if groups is None
        else _group_p(value, drawn, int(codes.max()))
    )
    return Correlation(
        value,
        *fisher_ends(value, drawn, int(codes.max()) + 1),
        chance,
        len(x),
        int(np.isnan(drawn).sum()),
    )


def within_correlation(
    metric,  # (N,) scores of a metric, N >= 3
    human,  # (N,) people's ratings
    systems,  # (N,) the system of each row, or its source: whose means are taken away
    groups=None,  # (N,) which rows are drawn together; None: each alone
    n_boot: int = 2000,  # bootstrap resamples
    seed: int = 0,  # of the random draws
) -> Correlation:  # p_value from the resamples
    """Pearson's correlation within systems: does the metric tell a system's better outputs from its worse ones?

    Raises: as `correlation`.
    """
    x, y = check_columns(metric=metric, human=human)
    codes = _codes(groups, len(x))
    members = pd.factorize(np.array(check_rows(systems, "systems", "names"), dtype=object))[0]
    check_equal_lengths(metric=x, systems=members)
    value = float(within_coefficients(np.ones((1, len(x))), x, y, members)[0])
    if np.isnan(value):
        return Correlation(value, value, value, value, len(x))
    drawn = np.concatenate(
        [
            within_coefficients(counts, x, y, members)
            for counts in resample_counts(codes, n_boot, seed)
        ]
    )
    return Correlation(
        value,
        *fisher_ends(value, drawn, int(codes.max()) + 1),
        _group_p(value, drawn, int(codes.max())),
        len(x),
        int(np.isnan(drawn).sum()),
    )


def _student_p(value: float, freedom: int) -> float:
    """Two-sided p-value of a (partial) correlation of normal columns."""
    from scipy.stats import t

    if abs(value) == 1:
        return _least_p(freedom + 3)
    return float(2 * t.sf(abs(value) * np.sqrt(freedom / (1 - value**2)), freedom))
