"""Smoothed precisions, by pencil; tests/test_bleu.py compares all of them with sacreBLEU and NLTK."""

import numpy as np
import pytest

from tsteval.bleu import sentence_bleu
from tsteval.core.checks import InputError
from tsteval.words.bleu_smoothing import SMOOTHINGS, count_phantoms, find_smoothing


@pytest.mark.parametrize(
    "name, expected",
    [
        ("none", [4 / 6, 1 / 5, 0, 0]),
        ("floor", [4 / 6, 1 / 5, 0.1 / 4, 0.1 / 3]),
        ("add-k", [4 / 6, 2 / 6, 1 / 5, 1 / 4]),
        ("exp", [4 / 6, 1 / 5, 0.5 / 4, 0.25 / 3]),
        ("method4", [4 / 6, 1 / 5, np.log(6) / (5 * 2) / 4, np.log(6) / (5 * 4) / 3]),
    ],
)
def test_precisions_by_pencil(name, expected):
    method, value = find_smoothing(name, None)
    found = method.function(np.array([4.0, 1, 0, 0]), np.array([6.0, 5, 4, 3]), np.array(6), value)
    np.testing.assert_allclose(found, expected)


def test_a_parameter_is_for_those_that_have_one():
    assert find_smoothing("floor", None)[1] == 0.1 and find_smoothing("floor", 0.5)[1] == 0.5
    for name, value, words in (
        ("exp", 1, "has no parameter"),
        ("floor", 0, "smoothing_value"),
        ("chen", None, "one of"),
    ):
        with pytest.raises(InputError, match=words):
            find_smoothing(name, value)


def test_rows_too_short_for_an_ngram_count_as_one_where_nltk_says_so():
    row = np.array([2, 2, 2, 1, 0, 0, 2, 1, 0, 0])
    assert count_phantoms(row, "method1").tolist() == [2, 2, 2, 1, 0, 0, 2, 1, 1, 1]
    assert all(
        count_phantoms(row, name).tolist() == row.tolist()
        for name, method in SMOOTHINGS.items()
        if not method.by_row
    )


def test_the_longest_order_can_be_smoothed_by_its_neighbour():
    """method5 looks at one order more than the score has; with eight orders that is a ninth, which was refused."""
    score = sentence_bleu(
        "a b c d e f g h i", "a b c d e f g h x", max_order=8, smoothing="method5"
    )
    assert 0 < score.score < 1 and len(score.precisions) == 8
