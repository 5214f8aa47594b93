"""Two metrics beside people's ratings by formula: Fisher's interval, Williams' test and its power, and pairs with ties"""

from typing import NamedTuple

import numpy as np
import pandas as pd

from ..core.checks import InputError, check_number
from ..core.resample import bootstrap_interval, mean_statistics
from .coefficients import check_columns, group_codes


def fisher_interval(
    r: float,  # Pearson's correlation, -1..1
    n: int,  # independent rows, >= 4
    level: float = 0.95,  # of the interval, between 0 and 1
) -> tuple[float, float]:  # its ends, -1..1
    """Interval of a correlation of normal columns.

    Raises: InputError for a number out of range. Source: Fisher 1921.
    """
    from scipy.stats import norm

    check_number(r, "r", -1, 1)
    check_number(n, "n", 4, whole=True)
    check_number(level, "level", 0, 1, above=True, below=True)
    if abs(r) == 1:
        return float(r), float(r)
    reach = norm.ppf((1 + level) / 2) / np.sqrt(n - 3)
    return float(np.tanh(np.arctanh(r) - reach)), float(np.tanh(np.arctanh(r) + reach))


def williams_test(
    r_xy,  # correlation of metric x with people, -1..1; or an array of them
    r_zy,  # of metric z with people
    r_xz,  # of the two metrics with each other
    n: int,  # independent outputs, >= 4
) -> tuple:  # t with n - 3 degrees of freedom (positive where x follows people more closely), and the two-sided p-value
    """Do two metrics correlate differently with people on the same outputs? For normal columns and ratings in steps. Of
    100 rows of log-normal, that is very skewed, columns it calls equal metrics different in 25% of studies
    (tests/RATES.md); `compare_correlations` stays near its level there.

    Raises: InputError for n below 4, three correlations that no columns can have, or metrics that are one another's
    opposite. Source: Williams 1959; Steiger 1980, formula 7.
    """
    from scipy.stats import t

    check_number(n, "n", 4, whole=True)
    x, z, between = np.broadcast_arrays(*(np.asarray(r, dtype=float) for r in (r_xy, r_zy, r_xz)))
    rest = 1 - x**2 - z**2 - between**2 + 2 * x * z * between  # the determinant K
    if (rest < -1e-9).any() or not (np.abs([x, z, between]) <= 1).all():
        raise InputError(f"no three columns have the correlations {r_xy}, {r_zy} and {r_xz}")
    scale = 2 * np.maximum(rest, 0) * (n - 1) / (n - 3) + ((x + z) / 2) ** 2 * (1 - between) ** 3
    equal = np.abs(x - z) < 1e-12  # but for the last bits
    if (~equal & ((between == -1) | (scale <= 0))).any():
        raise InputError(
            f"the metrics are the same up to sign and scale (r_xz is {r_xz}), so there is nothing to "
            f"compare; see how far one of them follows people with correlation()"
        )
    with np.errstate(
        divide="ignore", invalid="ignore"
    ):  # equal metrics: no difference over no scale
        statistic = np.where(equal, 0.0, (x - z) * np.sqrt((n - 1) * (1 + between) / scale))
    return statistic[()], (2 * t.sf(np.abs(statistic), n - 3))[()]


def comparison_power(
    r_xy: float,  # correlation of metric x with people that is to be expected, -1..1
    r_zy: float,  # of metric z
    r_xz: float,  # of the two metrics with each other
    sizes=(50, 100, 200, 400, 800),  # outputs in a study, each at least 10
    *,
    level: float = 0.05,  # a p-value below it tells the metrics apart
    n_simulations: int = 400,  # studies of each size
    seed: int = 0,  # of NumPy's default_rng
) -> (
    pd.DataFrame
):  # n, power (0..1), and the ends of its 95% interval (low, high), which is that of the simulation
    """How often a study of n independent outputs would tell two metrics apart by Williams' test.

    Raises: InputError for a size below 10, or correlations that no columns can have. Source: Card et al. 2020 for the
    method.
    """
    shape = np.array([[1, r_xz, r_xy], [r_xz, 1, r_zy], [r_xy, r_zy, 1]], dtype=float)
    williams_test(r_xy, r_zy, r_xz, 10)  # refuses what cannot be
    values, vectors = np.linalg.eigh(shape)
    root = vectors * np.sqrt(np.maximum(values, 0))
    generator = np.random.default_rng(seed)
    rows = []
    for size in sizes:
        check_number(size, "a size", 10, whole=True)
        drawn = generator.normal(size=(n_simulations, size, 3)) @ root.T
        drawn -= drawn.mean(axis=1, keepdims=True)
        drawn /= np.sqrt((drawn**2).sum(axis=1, keepdims=True))
        r = np.einsum("sni,snj->ijs", drawn, drawn)
        rejections = williams_test(r[0, 2], r[1, 2], r[0, 1], size)[1] < level
        share = bootstrap_interval(mean_statistics(rejections.astype(float)), seed=seed)
        rows.append({"n": size, "power": share.score, "low": share.low, "high": share.high})
    return pd.DataFrame(rows)


def pairwise_accuracy(
    metric,  # (N,) scores
    human,  # (N,) ratings
    # (N,) pairs are made within a group (outputs of one source), and groups count equally; None: all pairs
    groups=None,
    epsilon: float = 0.0,  # scores that differ by at most so much are called a tie, >= 0
) -> (
    float
):  # share of pairs that are in the same order or tied on both sides, 0..1; NaN without a pair
    """How often a metric and people say the same of two outputs, ties included.

    Raises: InputError for columns of different length, missing numbers or groups, or a negative epsilon. Source:
    Deutsch, Foster and Freitag 2023.
    """
    check_number(epsilon, "epsilon", 0)
    of_metric, of_people, weights = _pairs(metric, human, groups)
    if not len(weights):
        return float("nan")
    signs = np.where(np.abs(of_metric) <= epsilon + 1e-12, 0, np.sign(of_metric))
    return float(weights @ (signs == np.sign(of_people)))


def _pairs(metric, human, groups) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Differences of the metric and of the ratings for each pair, and the pair's weight."""
    x, y = check_columns(metric=metric, human=human)
    codes = np.zeros(len(x), int) if groups is None else group_codes(groups, len(x))
    rows = pd.Series(np.arange(len(x))).groupby(codes).indices.values()
    pairs = [part[np.array(np.triu_indices(len(part), 1))] for part in rows if len(part) > 1]
    first, second = np.concatenate([np.empty((2, 0), dtype=int), *pairs], axis=1)
    weights = np.concatenate(
        [[], *(np.full(part.shape[1], 1 / part.shape[1] / len(pairs)) for part in pairs)]
    )
    return x[first] - x[second], y[first] - y[second], weights


class TieCalibration(NamedTuple):
    """The threshold below which a metric's differences are best called ties."""

    epsilon: float  # in units of the metric
    accuracy: float  # pairwise accuracy with it, on the same ratings


def calibrate_ties(
    metric,  # (N,) scores
    human,  # (N,) ratings
    groups=None,  # (N,) as for `pairwise_accuracy`
) -> TieCalibration:  # the smallest of the best thresholds
    """The tie threshold with the highest pairwise accuracy; choose it on other ratings than those you report on.

    Raises: as `pairwise_accuracy`; InputError without a pair. Source: Deutsch, Foster and Freitag 2023, section 5.
    """
    of_metric, of_people, weights = _pairs(metric, human, groups)
    if not len(weights):
        raise InputError("there is no pair: no group has two rows")
    distance = np.abs(of_metric)
    order = np.argsort(distance, kind="stable")
    ordered = weights * (np.sign(of_metric) == np.sign(of_people))
    tied = weights * (of_people == 0)
    accuracy = ordered.sum() + np.cumsum((tied - ordered)[order])
    # of the pairs that one threshold takes in
    last = np.append(np.flatnonzero(np.diff(distance[order]) > 1e-12), len(order) - 1)
    candidates = np.append(pairwise_accuracy(metric, human, groups), accuracy[last])
    best = int((candidates > candidates.max() - 1e-12).argmax())
    return TieCalibration(
        float(np.append(0.0, distance[order][last])[best]), float(candidates[best])
    )
