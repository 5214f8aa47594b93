"""How well a score tells two classes apart that people named: AUC and average precision, with intervals over sources"""

from typing import NamedTuple

import numpy as np

from ..core.checks import InputError
from ..core.resample import percentiles, resample_counts
from .coefficients import check_columns, group_codes, weighted_ranks


class LabelScore(NamedTuple):
    """A measure with its interval."""

    value: float  # 0..1
    low: float  # ends of the 95% percentile bootstrap interval
    high: float
    n: int  # rows


def _labels(labels) -> np.ndarray:
    (values,) = check_columns(labels=labels)
    if not set(values) == {0.0, 1.0}:
        raise InputError("must be 0 or 1, and hold both", argument="labels")
    return values == 1


def weighted_auc(
    counts: np.ndarray,  # (B, N) how often each row is in each resample
    scores: np.ndarray,  # (N,) numbers
    labels: np.ndarray,  # (N,) whether a row is of the class that should score higher
) -> np.ndarray:  # (B,) in 0..1, NaN where a resample holds one class alone
    """AUC in each resample, from the sum of ranks. Source: Mann and Whitney 1947."""
    ranks = weighted_ranks(counts, scores)
    above = counts[:, labels].sum(axis=1)
    below = counts.sum(axis=1) - above
    sums = (counts * ranks)[:, labels].sum(axis=1)
    with np.errstate(invalid="ignore"):
        return (sums - above * (above + 1) / 2) / (above * below)


def auc(
    scores,  # (N,) numbers, N >= 3
    labels,  # (N,) 1 for the class that should score higher, else 0
    groups=None,  # (N,) which rows belong together (one source, say) and are drawn together; None: none do
    n_boot: int = 2000,  # bootstrap resamples
    seed: int = 0,  # of the random draws
) -> LabelScore:
    """The probability that a row of class 1 scores above one of class 0, a tie counting as half; .5 is chance.

    Raises: InputError for other labels, one class alone, columns of different length, or a missing number.
    Source: Mann and Whitney 1947; Hanley and McNeil 1982.
    """
    scores, _ = check_columns(scores=scores, labels=labels)
    labels = _labels(labels)
    codes = group_codes(groups, len(scores))
    value = float(weighted_auc(np.ones((1, len(scores))), scores, labels)[0])
    drawn = [
        weighted_auc(counts, scores, labels) for counts in resample_counts(codes, n_boot, seed)
    ]
    return LabelScore(value, *percentiles(np.concatenate(drawn)), len(scores))


def average_precision(
    scores: np.ndarray,  # (N,) of the candidates for one question
    labels: np.ndarray,  # (N,) whether each is right; at least one is
) -> float:  # 0..1
    """Mean precision at the places of the right candidates; over all orders where candidates tie.

    Source: McSherry and Najork 2008, for ties.
    """
    total = before = right_before = 0.0
    for score in np.unique(scores)[::-1]:
        tied = scores == score
        n = int(tied.sum())
        right = int(labels[tied].sum())
        places = np.arange(1, n + 1)
        others = (places - 1) * (right - 1) / max(n - 1, 1)
        total += right / n * ((right_before + 1 + others) / (before + places)).sum() if right else 0
        before += n
        right_before += right
    return total / labels.sum()
