"""The mean rating of many outputs from the ratings of a few and all scores: cross-fitted regression, by source"""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..core.checks import InputError, check_equal_lengths, check_number
from ..core.resample import FEWEST

_PENALTIES = np.array(
    [1e-6, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0]
)  # in units of a standardised score's variance


def _sums_by_source(
    scores: np.ndarray, ratings: np.ndarray, weights: np.ndarray, codes: np.ndarray
) -> np.ndarray:
    """(M, K + 2, K + 2) sums of products of 1, scores and rating over the rows of each source."""
    columns = np.column_stack([np.ones(len(scores)), scores, ratings])
    sums = np.zeros((codes.max() + 1, columns.shape[1], columns.shape[1]))
    np.add.at(sums, codes, weights[:, None, None] * columns[:, :, None] * columns[:, None, :])
    return sums


def _slopes(sums: np.ndarray) -> np.ndarray:
    """(..., K) slopes from (..., K + 2, K + 2) sums: least squares for one score, ridge for several."""
    n = sums[..., 0, 0]
    means = sums[..., 0, 1:] / n[..., None]
    covariance = sums[..., 1:, 1:] / n[..., None, None] - means[..., :, None] * means[..., None, :]
    scale = np.sqrt(np.maximum(np.diagonal(covariance, axis1=-2, axis2=-1)[..., :-1], 0))
    varies = scale > 1e-12
    scale = np.where(varies, scale, 1)
    against = np.where(varies, covariance[..., :-1, -1] / scale, 0)
    if against.shape[-1] == 1:
        return against / scale
    between = covariance[..., :-1, :-1] / scale[..., :, None] / scale[..., None, :]
    return _ridge(between, against, covariance[..., -1, -1], n) / scale


def _ridge(
    between: np.ndarray, against: np.ndarray, variance: np.ndarray, n: np.ndarray
) -> np.ndarray:
    """(..., K) ridge coefficients of standardised scores, with the penalty that generalised cross-validation likes."""
    values, vectors = np.linalg.eigh(between)
    values = np.maximum(values, 0)
    turned = np.einsum("...ij,...i->...j", vectors, against)
    penalties = _PENALTIES.reshape((-1,) + (1,) * values.ndim)
    coefficients = turned / (values + penalties)
    left = (
        variance
        - 2 * (coefficients * turned).sum(axis=-1)
        + (coefficients**2 * values).sum(axis=-1)
    )
    used = (values / (values + penalties)).sum(axis=-1) + 1
    best = np.argmin(left / np.maximum(1 - used / n, 1e-3) ** 2, axis=0)
    return np.einsum(
        "...ij,...j->...i",
        vectors,
        np.take_along_axis(coefficients, best[None, ..., None], axis=0)[0],
    )


@dataclass(frozen=True)
class Estimate:
    """The mean rating that outputs would get, and how well it is known."""

    mean: float
    low: float  # ends of the interval; NaN where there is none
    high: float
    mean_of_ratings: float  # without the scores
    r: float  # correlation of cross-fitted predictions with ratings; 0 where they do not help
    labels_worth: (
        float  # ratings that would make the plain mean as precise; NaN where there is no interval
    )
    n_rated: int
    n_scored: int
    rated_sources: int
    errors: pd.Series  # source -> what it adds to the error of the mean
    freedom: int  # degrees of freedom
    rated_variance: float  # variance from which outputs were rated: it falls with more ratings
    scored_variance: float  # variance from which outputs were scored: it does not

    @property
    def error(self) -> float:
        """Standard error of the mean."""
        return math.sqrt(float((self.errors**2).sum()))


def _errors(adjusted, weights, drift, codes, rated) -> tuple[float, np.ndarray, np.ndarray]:
    """The mean, and what each source adds to its error: by its ratings, and by its scores."""
    mean = float((weights * adjusted).sum() / weights.sum())
    size = codes.max() + 1
    return (
        mean,
        np.bincount(codes[rated], weights * (adjusted - mean) / weights.sum(), size),
        np.bincount(codes, drift / len(codes), size),
    )


def _interval(mean: float, error: float, freedom: int, level: float, scale) -> tuple[float, float]:
    from scipy.stats import t

    if not error > 0:
        return math.nan, math.nan
    reach = t.ppf((1 + level) / 2, freedom) * error
    low, high = (-math.inf, math.inf) if scale is None else scale
    return min(max(mean - reach, low), high), max(min(mean + reach, high), low)


def _centred(scores: np.ndarray) -> np.ndarray:
    """Scores minus their mean over all rows; a missing score counts as the mean. Columns that do not vary go."""
    means = np.nanmean(np.where(np.isnan(scores).all(axis=0), 0, scores), axis=0)
    centred = np.where(np.isnan(scores), 0, scores - means)
    return centred[:, np.ptp(centred, axis=0) > 1e-12 * np.maximum(np.abs(means), 1e-300)]


def _adjusted(ratings, centred, weights, codes) -> tuple[np.ndarray, np.ndarray]:
    """(n,) what each rating is moved by, cross-fitted by source, and (K,) the slopes of all."""
    sources = np.unique(codes, return_inverse=True)[1]
    sums = _sums_by_source(centred, ratings, weights * len(weights) / weights.sum(), sources)
    without = _slopes(sums.sum(axis=0) - sums)
    return (centred * without[sources]).sum(axis=1), _slopes(sums.sum(axis=0)[None])[0]


def _checked(ratings, scores, groups, inclusion, scale):
    """Arrays of one length: ratings, scores, groups, weights."""
    ratings = np.asarray(ratings, dtype=float)
    scores = np.asarray(scores, dtype=float)
    scores = scores[:, None] if scores.ndim == 1 else scores
    groups = np.arange(len(ratings)) if groups is None else np.asarray(groups)
    inclusion = np.ones(len(ratings)) if inclusion is None else np.asarray(inclusion, dtype=float)
    check_equal_lengths(ratings=ratings, scores=scores, groups=groups, inclusion=inclusion)
    if np.isinf(scores).any():
        raise InputError(
            "a score is infinite; leave it out or give a number",
            argument="scores",
            row=int(np.flatnonzero(np.isinf(scores).any(axis=1))[0]),
        )
    rated = np.flatnonzero(~np.isnan(ratings))
    if not len(rated):
        raise InputError("no output is rated", argument="ratings")
    low, high = (-math.inf, math.inf) if scale is None else scale
    outside = ratings[rated][(ratings[rated] < low) | (ratings[rated] > high)]
    if len(outside):
        raise InputError(
            f"a rating of {outside[0]:g} is outside the scale, {low:g} to {high:g}; name the scale that "
            "the raters had",
            argument="scale",
        )
    if not ((inclusion[rated] > 0) & (inclusion[rated] <= 1)).all():
        raise InputError("probabilities must be above 0 and at most 1", argument="inclusion")
    return ratings, scores, groups, 1 / np.where(inclusion > 0, inclusion, 1), rated


def estimate_mean(
    ratings,  # (N,) numbers, NaN for an output that nobody rated
    scores,  # (N,) or (N, K) numbers, any unit; NaN counts as the mean of its column
    groups=None,  # (N,) the source of each output; None: each is its own
    *,
    inclusion=None,  # (N,) probability with which a rated output was drawn, 0..1; None: all alike
    level: float = 0.95,  # of the interval, between 0 and 1
    scale: tuple[float, float]
    | None = None,  # lowest and highest rating; None: the interval is not cut
) -> Estimate:
    """The mean rating of all N outputs, from the ratings of some and the scores of all. Of ten skewed ratings 93% of
    the 95% intervals hold the true mean (tests/RATES.md).

    Where all are rated it is the mean of the ratings; the interval, which is for outputs like these, keeps its width.
    Raises: InputError for columns of different lengths, no rating at all, one outside the scale, an infinite score, or
    a probability outside 0..1. Source: Särndal, Swensson and Wretman 1992, chapter 6; Zrnic and Candès 2024 (cross-fitting); Angelopoulos et
    al. 2023.
    """
    check_number(level, "level", 0, 1, above=True, below=True)
    ratings, scores, groups, weights, rated = _checked(ratings, scores, groups, inclusion, scale)
    labels, codes = np.unique(groups, return_inverse=True)
    sample_ratings = ratings[rated]
    weight = weights[rated]
    m = len(np.unique(codes[rated]))
    factor = math.sqrt(m / (m - 1)) if m >= FEWEST else math.nan
    plain, by_ratings, _ = _errors(sample_ratings, weight, np.zeros(len(codes)), codes, rated)
    mean = plain
    r = 0.0
    freedom = m - 1
    by_scores = 0 * by_ratings
    plain_variance = (by_ratings**2).sum() * factor**2
    centred = _centred(scores)
    k = centred.shape[1]
    if k and len(rated) < len(codes) and m - 1 - k >= FEWEST - 1 and plain_variance > 0:
        moved, slopes = _adjusted(sample_ratings, centred[rated], weight, codes[rated])
        r = max(0.0, _correlation(moved, sample_ratings, weight))
        adjusted_mean, *parts = _errors(
            sample_ratings - moved, weight, centred @ slopes, codes, rated
        )
        if (sum(parts) ** 2).sum() * m / (m - 1 - k) < plain_variance:
            mean, freedom, factor, (by_ratings, by_scores) = (
                adjusted_mean,
                m - 1 - k,
                math.sqrt(m / (m - 1 - k)),
                parts,
            )
    by_ratings = by_ratings * factor
    by_scores = by_scores * factor
    errors = by_ratings + by_scores
    variance = float((errors**2).sum())
    worth = len(rated) * plain_variance / variance if variance > 0 else math.nan
    low, high = _interval(mean, math.sqrt(variance), freedom, level, scale)
    mean = mean if scale is None else min(max(mean, scale[0]), scale[1])
    return Estimate(
        mean,
        low,
        high,
        plain,
        r,
        worth,
        len(rated),
        len(codes),
        m,
        pd.Series(errors, index=labels),
        freedom,
        float((by_ratings**2).sum()),
        float((by_scores**2).sum()),
    )


def _correlation(a, b, weights) -> float:
    """Weighted correlation; 0 where one of the two does not vary."""
    a = a - np.average(a, weights=weights)
    b = b - np.average(b, weights=weights)
    both = math.sqrt((weights * a * a).sum() * (weights * b * b).sum())
    return float((weights * a * b).sum() / both) if both > 0 else 0.0


@dataclass(frozen=True)
class Difference:
    """One mean minus another."""

    difference: float
    low: float  # ends of the interval; NaN where there is none
    high: float
    p_value: float  # two-sided, 0..1; NaN likewise


def difference(
    a: Estimate,
    b: Estimate,  # of other outputs for the same sources
    level: float = 0.95,  # of the interval, between 0 and 1
) -> Difference:
    """The difference of two means, with the errors of each source paired.

    Source: Särndal, Swensson and Wretman 1992, chapter 5 (linearised variance of a difference).
    """
    from scipy.stats import t

    error = math.sqrt(float((a.errors.sub(b.errors, fill_value=0) ** 2).sum()))
    value = a.mean - b.mean
    freedom = min(a.freedom, b.freedom)
    low, high = _interval(value, error, freedom, level, None)
    return Difference(
        value, low, high, float(2 * t.sf(abs(value) / error, freedom)) if error > 0 else math.nan
    )


def ratings_needed(
    pilot: Estimate,
    width: float,  # of the interval, from end to end, in units of the rating, > 0
    level: float = 0.95,  # of the interval, between 0 and 1
) -> float:  # ratings; infinite where no number of them would do, for so few scored outputs
    """How many ratings an interval as narrow as this takes, if further ones are like those of the pilot.

    Raises: InputError for a width that is not above 0, or a pilot without an interval.
    """
    from scipy.stats import t

    check_number(width, "width", 0, above=True)
    if not pilot.error > 0:
        raise InputError("the pilot has no interval; rate more outputs first", argument="pilot")
    per_source = pilot.n_rated / pilot.rated_sources
    lost = pilot.rated_sources - pilot.freedom

    def reach(n: int) -> float:
        variance = pilot.rated_variance * pilot.n_rated / n + pilot.scored_variance
        return 2 * t.ppf((1 + level) / 2, max(n / per_source - lost, 1)) * math.sqrt(variance)

    near = width * (
        1 + 1e-9
    )  # the pilot's own width takes the pilot's own ratings, whatever the last bit says
    if reach(10**9) > near:
        return math.inf
    low = 1
    high = 2
    while reach(high) > near:
        low = high
        high = 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reach(middle) <= near else (middle, high)
    return high
