"""Statistics of BLEU by pencil; tests/test_bleu.py compares their sums with sacreBLEU and NLTK."""

import math

import numpy as np
import pytest

from tsteval.core.checks import InputError, InputTypeError
from tsteval.words.bleu_statistics import (
    bleu_signature,
    bleu_statistics,
    checked_weights,
    closest_length,
    counted_orders,
    geometric_mean,
    reference_count,
    smoothed_precisions,
    split_statistics,
)

PAIR = "the cat is on the mat", "there is a cat on the mat"


def test_the_row_of_a_pair():
    """Six and seven tokens; five words and two pairs of words match, of six, five, four and three n-grams."""
    assert bleu_statistics([PAIR[0]], [PAIR[1]]).tolist() == [[6, 7, 5, 2, 1, 0, 6, 5, 4, 3]]
    length, reference_length, matches, totals = split_statistics(
        bleu_statistics([PAIR[0]], [PAIR[1]]), 2
    )
    assert (
        (length, reference_length) == (6, 7)
        and matches.tolist() == [[5, 2]]
        and totals.tolist() == [[6, 5]]
    )
    with pytest.raises(InputError, match=r"5 orders are needed"):
        split_statistics(np.zeros(10), 5)


def test_the_nearest_length_and_of_two_the_shorter():
    assert (
        closest_length(7, [9, 5]) == closest_length(7, [5, 9]) == 5
        and closest_length(7, [9, 4]) == 9
    )
    assert bleu_statistics([PAIR[0]], [["a b c d e f g", "a b c d e"]])[0, 1] == 5


def test_precisions_and_their_mean():
    precisions = smoothed_precisions(np.array([6, 7, 5, 2, 6, 5]), max_order=2, smoothing="none")
    assert precisions.tolist() == [5 / 6, 2 / 5]
    assert geometric_mean(precisions, np.full(2, 0.5), False) == pytest.approx(math.sqrt(1 / 3))
    undefined = np.array([0.5, np.nan])
    assert geometric_mean(undefined, np.full(2, 0.5), True) == pytest.approx(0.5)
    assert geometric_mean(undefined, np.full(2, 0.5), False) == 0
    assert counted_orders(4, "exp") == 4 and counted_orders(4, "method5") == 5


def test_weights_and_references():
    assert checked_weights(None, 4).tolist() == [0.25] * 4
    for weights, error in (
        ([1], InputError),
        ([1, -1], InputError),
        ([0, 0], InputError),
        ("ab", InputTypeError),
    ):
        with pytest.raises(error, match="weights"):
            checked_weights(weights, 2)
    assert reference_count([["a"], ["b"]]) == 1 and reference_count([["a"], ["b", "c"]]) is None


def test_a_signature_tells_settings_that_differ_and_only_these():
    plain = bleu_signature(1)
    assert plain == bleu_signature(1, weights=[0.25] * 4)
    others = [
        bleu_signature(None),
        bleu_signature(1, lowercase=True),
        bleu_signature(1, smoothing="floor"),
        bleu_signature(1, smoothing="floor", smoothing_value=0.123456),
        bleu_signature(1, max_order=2),
    ]
    assert len({plain, *others}) == 6 and "[0.10]" in others[2] and "[0.123456]" in others[3]
