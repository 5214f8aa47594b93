"""Joint scores of a sentence, and systems that no other one dominates"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from ..core.checks import InputError, check_equal_lengths, check_number

_ASPECTS = ("style", "content", "fluency")


def joint_scores(
    style,  # (N,) in 0..1
    content,  # (N,) in 0..1
    fluency,  # (N,) in 0..1
    # of style, content, fluency, in 0..1; a score at its threshold passes
    thresholds: Sequence[float] = (0.5, 0.8, 0.8),
) -> pd.DataFrame:  # N rows: product, geometric_mean, passes (0 or 1); NaN where a score is missing
    """Three ways to join three scores of each sentence into one.

    Raises: InputError naming the row of a score outside 0..1, for columns of unequal length, or a wrong threshold.
    Source: Krishna et al. 2020 (product a sentence).
    """
    columns = {
        name: np.asarray(values, dtype=float)
        for name, values in zip(_ASPECTS, (style, content, fluency))
    }
    check_equal_lengths(**{name: values.tolist() for name, values in columns.items()})
    for name, values in columns.items():
        if (outside := (values < 0) | (values > 1)).any():
            row = int(outside.argmax())
            raise InputError(
                f"{values[row]:.4g} is not in 0..1; scale or clip it first", argument=name, row=row
            )
    if len(thresholds) != len(_ASPECTS):
        raise InputError(
            f"thresholds must be three numbers, for {', '.join(_ASPECTS)}; got {len(thresholds)}"
        )
    for name, threshold in zip(_ASPECTS, thresholds):
        check_number(threshold, f"the threshold of {name}", 0, 1)
    table = np.stack(list(columns.values()))
    product = table.prod(axis=0)
    passes = (table >= np.array(thresholds)[:, None]).all(axis=0)
    return pd.DataFrame(
        {
            "product": product,
            "geometric_mean": np.cbrt(product),
            "passes": np.where(np.isnan(product), np.nan, passes),
        }
    )


def dominates(
    a,  # (..., M) scores, larger is better
    b,  # (..., M) scores
) -> np.ndarray:  # (...) bool
    """Whether `a` is at least as good as `b` in all scores and better in one. False where a score is missing."""
    a = np.asarray(a, dtype=float)
    b = np.asarray(b, dtype=float)
    return ((a >= b).all(axis=-1) & (a > b).any(axis=-1))[()]


def pareto_front(
    points,  # (..., K, M) M scores of K systems, larger is better
) -> np.ndarray:  # (..., K) bool: nobody dominates it; False where a score is missing
    """The systems that no other one dominates. Raises: InputError for what is no table of scores."""
    points = np.asarray(points, dtype=float)
    if points.ndim < 2:
        raise InputError(
            f"points must have one row a system and one column a score, got shape {points.shape}"
        )
    beaten = dominates(points[..., None, :, :], points[..., :, None, :]).any(
        axis=-1
    )  # [k, j]: does j dominate k
    return ~beaten & ~np.isnan(points).any(axis=-1)
