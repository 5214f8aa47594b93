"""The smoothings of BLEU precisions, as sacreBLEU and NLTK have them"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..core.checks import InputError, check_choice, check_number


def _ratio(matches: np.ndarray, totals: np.ndarray) -> np.ndarray:
    """`matches / totals`, NaN where there is no n-gram at all."""
    return np.divide(
        matches, totals, out=np.full(np.broadcast(matches, totals).shape, np.nan), where=totals > 0
    )


def _smooth_none(matches, totals, length, value):
    return _ratio(matches, totals)


def _smooth_floor(matches, totals, length, value):
    return _ratio(np.where(matches == 0, value, matches), totals)


def _smooth_add_k(matches, totals, length, value):
    added = np.where(np.arange(matches.shape[-1]) > 0, value, 0)  # unigrams stay as they are
    return _ratio(matches + added, totals + added)


def _smooth_exp(matches, totals, length, value):
    unmatched = matches == 0
    halvings = unmatched.cumsum(axis=-1)  # how many orders so far have no match
    return _ratio(np.where(unmatched, 0.5**halvings, matches), totals)


def _smooth_by_length(matches, totals, length, value):
    halvings = np.cumsum(matches == 0, axis=-1)
    log_length = np.log(np.maximum(length, 1))[..., None]
    smoothed = np.where(
        log_length > 0, log_length / (value * 2.0**halvings), np.nan
    )  # ln 1 = 0: undefined
    return np.where(matches == 0, smoothed, matches) / totals


def _average_neighbours(precisions: np.ndarray, next_precision: np.ndarray) -> np.ndarray:
    """Mean of each precision with its smoothed left and its raw right neighbour; 1 + p_1 stands in at the left end."""
    following = np.concatenate([precisions[..., 1:], next_precision[..., None]], axis=-1)
    smoothed = []
    before = precisions[..., 0] + 1
    for order in range(precisions.shape[-1]):
        before = (before + precisions[..., order] + following[..., order]) / 3
        smoothed.append(before)
    return np.stack(smoothed, axis=-1)


def _smooth_average(matches, totals, length, value):
    precisions = matches / totals
    return _average_neighbours(precisions[..., :-1], precisions[..., -1])


def _smooth_length_average(matches, totals, length, value):
    by_length = np.nan_to_num(_smooth_by_length(matches[..., :-1], totals[..., :-1], length, value))
    return _average_neighbours(by_length, matches[..., -1] / totals[..., -1])


def _smooth_prior(matches, totals, length, value):
    precisions = list(np.moveaxis(matches / np.maximum(totals, 1), -1, 0))
    for order in range(2, len(precisions)):
        last = precisions[order - 1]
        before = precisions[order - 2]
        prior = np.divide(last**2, before, out=np.zeros_like(last), where=before > 0)
        precisions[order] = (matches[..., order] + value * prior) / (totals[..., order] + value)
    return np.stack(precisions, axis=-1)


class Smoothing(NamedTuple):
    """A smoothing method: how matches and totals become precisions."""

    function: (
        Callable  # (matches, totals, output length, value) -> precisions, all over the last axis
    )
    value: float | None  # the default of `smoothing_value`; None where the method has no parameter
    at_least_one: (
        bool  # NLTK's convention: a text too short for an n-gram counts as one n-gram without match
    )
    extra_orders: int = 0  # how many orders beyond max_order the method looks at
    by_row: bool = False  # NLTK's convention enters each sentence before sentences are summed


SMOOTHINGS = {
    "none": Smoothing(_smooth_none, None, False),
    "floor": Smoothing(_smooth_floor, 0.1, False),
    "add-k": Smoothing(_smooth_add_k, 1, False),
    "exp": Smoothing(_smooth_exp, None, False),
    "method1": Smoothing(_smooth_floor, 0.1, True, by_row=True),
    "method2": Smoothing(_smooth_add_k, 1, True, by_row=True),
    "method3": Smoothing(_smooth_exp, None, True, by_row=True),
    "method4": Smoothing(_smooth_by_length, 5, True, by_row=True),
    "method5": Smoothing(_smooth_average, None, True, extra_orders=1),
    "method6": Smoothing(_smooth_prior, 5, False),
    "method7": Smoothing(_smooth_length_average, 5, True, extra_orders=1),
}


def find_smoothing(
    name: str,  # a key of `SMOOTHINGS`
    value: float | None,  # the method's parameter; None takes its default
) -> tuple[Smoothing, float | None]:  # the method, and the value that it will use
    """Look up a smoothing method and settle its value.

    Raises: InputError for an unknown name, a value that is not positive, or a value for a method that has none.
    """
    check_choice(name, "smoothing", SMOOTHINGS)
    method = SMOOTHINGS[name]
    if value is None:
        return method, method.value
    if method.value is None:
        raise InputError(f"smoothing {name!r} has no parameter; leave smoothing_value out")
    check_number(value, "smoothing_value", 0, above=True, below=True)
    return method, value


def count_phantoms(
    statistics: np.ndarray,  # (..., 2*orders+2) rows of `tsteval.bleu.bleu_statistics`
    smoothing: str,  # a key of `SMOOTHINGS`
) -> np.ndarray:  # the same, ready to be summed over sentences
    """Let each row count as at least one n-gram of each order where NLTK's corpus_bleu does (method1 to method4)."""
    check_choice(smoothing, "smoothing", SMOOTHINGS)
    statistics = np.asarray(statistics)
    if not SMOOTHINGS[smoothing].by_row:
        return statistics
    orders = (statistics.shape[-1] - 2) // 2
    return np.concatenate(
        [statistics[..., :-orders], np.maximum(statistics[..., -orders:], 1)], axis=-1
    )
