"""What is shown is harmless and readable, wherever it is shown."""

import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsteval.core.display import displayable, number, spreadsheet_safe


@given(st.text(st.characters(categories=None, exclude_categories=())))
def test_any_text_can_be_shown_and_keeps_its_length(text):
    shown = displayable(text)
    shown.encode("utf-8")
    assert len(shown) == len(text) and displayable(shown) == shown
    assert not [
        character
        for character in shown
        if unicodedata.category(character) in ("Cs", "Cc", "Cn") and character not in "\n\t"
    ]


@pytest.mark.parametrize(
    "text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", " =1", "\r", "\n=1", "\u3000=1", "＝1", "－1"]
)
def test_what_looks_like_a_formula_gets_an_apostrophe(text):
    assert spreadsheet_safe(text) == f"'{text}" and spreadsheet_safe(f"'{text}") == f"'{text}"


@pytest.mark.parametrize("text", ["a = b", "", "2 = 1 + 1", "'=1", "a\t=1", "é"])
def test_other_texts_stay_as_they_are(text):
    assert spreadsheet_safe(text) == text


@given(st.floats(-99.9, 99.9), st.integers(0, 6))
def test_a_number_is_what_python_rounds_to_and_a_nought_has_no_sign(value, digits):
    text = number(value, digits)
    assert float(text) == round(value, digits) and (not text.startswith("-") or float(text) < 0)


@pytest.mark.parametrize(
    "value, text",
    [
        (432.16, "432.2"),
        (-100, "-100.0"),
        (99.9994, "99.999"),
        (np.float32(0.5), "0.500"),
        (float("inf"), "inf"),
        (float("-inf"), "-inf"),
        (-0.0, "0.000"),
    ],
)
def test_numbers_of_any_size(value, text):
    assert number(value) == text


@pytest.mark.parametrize("value", [None, float("nan"), np.nan])
def test_what_is_not_there_is_written_as_the_place_wants(value):
    assert number(value) == "" and number(value, missing="none") == "none"
