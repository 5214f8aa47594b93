"""The text module's n-grams and edits, and the counting room against a count made the slow
way."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strategies import any_text
from tsteval.core.checks import InputError, InputTypeError
from tsteval.text import edited_spans, ngrams


@given(tokens=st.lists(st.sampled_from("abc")), n=st.integers(1, 6))
def test_ngrams_count_and_order(tokens, n):
    found = ngrams(tokens, n)
    assert len(found) == max(len(tokens) - n + 1, 0)
    assert all(list(ngram) == tokens[start : start + n] for start, ngram in enumerate(found))


def test_wrong_input_is_explained():
    with pytest.raises(InputError, match="at least 1"):
        ngrams(["a"], 0)
    with pytest.raises(InputTypeError, match="a whole number"):
        ngrams(["a"], 1.5)
    with pytest.raises(InputTypeError, match="not a string"):
        ngrams("abc", 2)
    with pytest.raises(InputTypeError, match="source, row 0"):
        edited_spans(None, "a")


def test_edited_spans_cover_the_words_that_differ():
    source = "The brilliant singer sang very well."
    target = "The singer sang."
    removed, added = edited_spans(source, target)
    assert [source[start:end] for start, end in removed] == [
        "brilliant",
        "very well",
    ] and added == []
    added_again, removed_again = edited_spans(target, source)
    assert (added_again, removed_again) == ([], removed)


def test_edited_spans_of_one_hostile_row_return_soon():
    """difflib alone needs hours: its time grows with the cube of the length where one word repeats."""
    start = time.perf_counter()
    removed, added = edited_spans("." * 20_000, ".," * 10_000)
    assert time.perf_counter() - start < 20
    assert removed and added and all((".," * 10_000)[first:last] for first, last in added)


@pytest.mark.parametrize("length", [140, 160, 1000])
def test_long_texts_are_aligned_like_short_ones(length):
    """Below and above the length where the algorithm changes, a light edit of a text is found word for word."""
    words = [f"word{number}" for number in range(length)]
    edited = [*words[:50], "new", "words", *words[51:120], *words[121:]]
    removed, added = edited_spans(" ".join(words), " ".join(edited))
    assert [" ".join(words)[first:last] for first, last in removed] == ["word50", "word120"]
    assert [" ".join(edited)[first:last] for first, last in added] == ["new words"]


@settings(deadline=None)
@given(text=any_text)
def test_no_edit_no_span(text):
    assert edited_spans(text, text) == ([], [])


@settings(deadline=None)
@given(source=any_text, target=any_text)
def test_spans_are_ordered_and_inside_the_text(source, target):
    for text, spans in zip((source, target), edited_spans(source, target)):
        flat = [offset for span in spans for offset in span]
        assert flat == sorted(flat) and all(0 <= start < end <= len(text) for start, end in spans)
