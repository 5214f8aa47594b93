"""Clipped matches against a count made the slow way."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsteval.core.checks import InputError, InputTypeError
from tsteval.text import ngrams
from tsteval.words.matching import distinct_rows, encode, match_ngrams, remember


def slow_matches(output, references, n):
    counts = Counter(ngrams(output, n))
    best = Counter()
    for reference in references:
        best |= Counter(ngrams(reference, n))
    return sum((counts & best).values())


token_lists = st.lists(st.integers(0, 3), max_size=12)


@settings(deadline=None)
@given(
    rows=st.lists(st.tuples(token_lists, st.lists(token_lists, min_size=1, max_size=4)), max_size=6)
)
def test_match_ngrams_equals_counters(rows):
    encoded = [
        [np.array(text, dtype=np.int64) for text in (output, *references)]
        for output, references in rows
    ]
    expected = [
        [slow_matches(output, references, n) for n in range(1, 9)] for output, references in rows
    ]
    assert match_ngrams(encoded, 8).tolist() == expected
    assert (
        match_ngrams(encoded * 5, 8).tolist() == expected * 5
    )  # a few rows are counted one by one, more in a block


@pytest.mark.parametrize("least", [0, 300, 70_000, 2**40])
def test_match_ngrams_does_not_depend_on_the_size_of_numbers(least):
    rng = np.random.default_rng(0)
    rows = [
        [least + rng.choice([0, 5, 999_999], size=30), least + rng.choice([0, 5, 999_999], size=30)]
        for _ in range(50)
    ]
    expected = [
        [slow_matches(output.tolist(), [reference.tolist()], n) for n in range(1, 9)]
        for output, reference in rows
    ]
    assert match_ngrams(rows, 8).tolist() == expected


def test_match_ngrams_counts_more_than_16_bits_hold():
    """Two rows of 40,000 different tokens in one block: the n-grams' own numbers outgrow two bytes."""
    many = np.arange(40_000)
    rows = [[many, many], [many, many[::-1]], *[[many[:3], many[:3]]] * 3]
    assert match_ngrams(rows, 3).tolist() == [
        [40_000, 39_999, 39_998],
        [40_000, 0, 0],
        *[[3, 2, 1]] * 3,
    ]


def test_encode_numbers_equal_tokens_equally():
    encoded = encode(["a b a", "b c", "a b a"], str.split)
    assert {text: numbers.tolist() for text, numbers in encoded.items()} == {
        "a b a": [0, 1, 0],
        "b c": [1, 2],
    }


def test_match_ngrams_does_not_depend_on_neighbours():
    """Rows are counted in blocks; a row's count must not change with the block it falls into."""
    rng = np.random.default_rng(1)
    rows = [
        [rng.integers(4, size=rng.integers(9)) for _ in range(rng.integers(2, 4))]
        for _ in range(600)
    ]
    together = match_ngrams(rows, 4)
    assert together.tolist() == [match_ngrams([row], 4)[0].tolist() for row in rows]
    assert (
        match_ngrams([], 3).shape == (0, 3)
        and match_ngrams(iter(rows), 4).tolist() == together.tolist()
    )
    with pytest.raises(InputError, match="max_order"):
        match_ngrams(rows, 0)


@pytest.mark.parametrize(
    "given", [iter, pd.Series, np.array, lambda rows: pd.Series(rows, index=[7] * len(rows))]
)
def test_encode_takes_what_can_be_looped_over(given):
    texts = ["a b a", "b c", "a b a"]
    encoded = encode(given(texts), str.split)
    assert {text: numbers.tolist() for text, numbers in encoded.items()} == {
        "a b a": [0, 1, 0],
        "b c": [1, 2],
    }
    assert all(type(text) is str for text in encoded)


def test_encode_names_the_row():
    with pytest.raises(InputTypeError, match=r"texts, row 1.*: expected a string, got None"):
        encode(["a", None], str.split)


@given(rows=st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("ab"))))
def test_distinct_rows_give_back_all_rows(rows):
    distinct, where = distinct_rows(rows)
    assert len(set(distinct)) == len(distinct) and [distinct[place] for place in where] == rows


def test_what_is_remembered_is_computed_once():
    calls = []
    twice = remember(lambda word: calls.append(word) or word * 2)
    assert [twice("a"), twice("a"), twice("b")] == ["aa", "aa", "bb"] and calls == ["a", "b"]
    twice.cache_clear()
    assert twice("a") == "aa" and calls == ["a", "b", "a"]
