"""Numbers, quantities and dates in texts: spellings that mean the same, and what is none."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsteval.core.checks import InputError
from tsteval.words.quantities import Fact, find_quantities, number_value


@pytest.mark.parametrize(
    "text, value",
    [
        ("nineteen sixty-three", 1963),
        ("nineteen hundred", 1900),
        ("twenty twenty-four", 2024),
        ("two thousand and five", 2005),
        ("three million two hundred thousand", 3_200_000),
        ("1,234.5", 1234.5),
        ("a hundred", 100),
        ("ninety-nine", 99),
        ("seven", 7),
        ("one hundred and one", 101),
        ("zero", 0),
    ],
)
def test_numbers_in_words(text, value):
    assert number_value(text) == value


@pytest.mark.parametrize(
    "text",
    ["many", "a", "an", "and", "a and", "", " ", "-", "1.2.3", "1,", "1,8", "²", "five apples"],
)
def test_what_is_no_number_is_refused(text):
    """Once "a" was 0.0."""
    with pytest.raises(InputError, match="is not a number"):
        number_value(text)


@pytest.mark.parametrize(
    "text, kinds",
    [
        ("You may 5 times", ["quantity"]),  # once a date
        ("they may 5 or 6 times march 7 miles", ["quantity"] * 3),
        ("an august 5 of them", ["quantity"]),
        ("on 5 may 1963", ["date"]),
        ("on the 5th of may", ["date"]),
        ("on may 5th", ["date"]),
        ("in May 5 of them", ["date"]),
        ("since march 1963", ["quantity"]),
        ("since june 1963, by october 5", ["date", "date"]),
    ],
)
def test_a_month_that_is_a_word_needs_more_than_a_number(text, kinds):
    assert [fact.kind for _, fact in find_quantities(text)] == kinds


@pytest.mark.parametrize(
    "spellings",
    [
        ("1963", "nineteen sixty-three"),
        ("$5m", "5m dollars", "5 million dollars", "US$5,000,000", "five million dollars"),
        ("£3.5bn", "3.5 billion pounds"),
        ("12%", "twelve percent", "12 per cent"),
        ("€20k", "twenty thousand euros", "20k euros"),
        ("7bn", "7 billion", "seven billion"),
        ("5 May 1963", "May 5, 1963", "May 5th 1963", "1963-05-05", "5th of May, 1963"),
        ("Sept. 2001", "September 2001"),
        ("2.05 million", "2,050,000"),
        ("205", "two hundred and five"),
    ],
)
def test_spellings_of_one_quantity_share_a_form(spellings):
    facts = [find_quantities(f"It was ({text}), they say.") for text in spellings]
    assert all(len(found) == 1 for found in facts), facts
    assert len({found[0][1] for found in facts}) == 1, facts


@pytest.mark.parametrize("text", ["5m deep", "a 5k race"])
def test_a_letter_that_may_be_a_unit_is_no_scale(text):
    assert [fact.value for _, fact in find_quantities(text)] == [5]


def test_two_numbers_with_and_are_two():
    assert [fact.value for _, fact in find_quantities("between five and six ships")] == [5, 6]
    assert find_quantities("two three " * 400)  # a long run is cut, and does not overflow


@pytest.mark.parametrize(
    "text", ["May one of us go?", "someone", "the tenor of it", "A4", "march on"]
)
def test_what_is_not_a_quantity(text):
    assert find_quantities(text) == []


@pytest.mark.parametrize(
    "text, spans",
    [("It cost $5m in 1963.", ["$5m", "1963"]), ("from 5 May 1963 to 6", ["5 May 1963", "6"])],
)
def test_places_of_quantities(text, spans):
    assert [text[start:end] for (start, end), _ in find_quantities(text)] == spans


@settings(deadline=None)
@given(st.text())
def test_quantities_of_anything(text):
    places = [place for place, _ in find_quantities(text)]
    assert all(0 <= start < end <= len(text) for start, end in places)
    assert all(first[1] <= second[0] for first, second in itertools.pairwise(places))


@pytest.mark.parametrize(
    "text, values",
    [
        ("They paid 1,50,000 rupees.", [150_000]),  # once 1
        ("12,34,567.5 in all", [1_234_567.5]),
        ("about 1e6 cells, 2.5E-3 of them dead", [1e6, 0.0025]),  # once 1
        ("a share of .5", [0.5]),  # once 5
        ("$.5 or -.5", [0.5, -0.5]),
        ("...5 of them", [5]),
        ("5, 6 and 7.", [5, 6, 7]),
        ("10:30, 3/4, 5km, the 20th", [10, 30, 3, 4, 5, 20]),
        ("version 3.11.9 is out", []),  # once 3.11
        ("1,8 million people", []),  # once 1
        ("1234,567 or 1,2,3 or 100,000,00", []),
        ("1'000, 1_000, 0x1F, 4x4, 5½, 5², 1e999", []),
    ],
)
def test_a_number_is_read_whole_or_not_at_all(text, values):
    assert [fact.value for _, fact in find_quantities(text)] == values


@given(st.from_regex(r"[0-9]{1,4}([.,][0-9]{1,4}){0,4}(e[0-9]{1,3})?", fullmatch=True))
def test_no_number_is_read_by_its_beginning_or_end(run):
    text = f"It was {run} that day."
    assert {text[start:end] for (start, end), _ in find_quantities(text)} <= {run}


@given(st.integers(0, 10**9))
def test_a_number_is_found_with_and_without_commas(number):
    facts = {fact for text in (f"{number}", f"{number:,}") for _, fact in find_quantities(text)}
    assert facts == {Fact("quantity", float(number))}


@pytest.mark.parametrize(
    "text, value, where",
    [
        ("It was -5 degrees", -5, "-5"),
        ("\u22125.5 at noon", -5.5, "\u22125.5"),
        ("(\u20135,000)", -5000, "\u20135,000"),
        ("a loss of $-5 million", -5_000_000, "$-5 million"),
        ("a loss of -$5m", -5_000_000, "-$5m"),
        ("minus five degrees", -5, "minus five"),
        ("Minus 5%", -5, "Minus 5%"),
    ],
)
def test_a_number_below_zero(text, value, where):
    [((start, end), fact)] = find_quantities(text)
    assert fact.value == value and text[start:end] == where


@pytest.mark.parametrize(
    "text, values",
    [
        ("10-20", [10, 20]),
        ("2010\u20132012", [2010, 2012]),
        ("- 5 people", [5]),
        ("$5 - 3", [5, 3]),
        ("COVID-19", [19]),
        ("7 minus 5", [7, 5]),
        ("from 5 to -3", [5, -3]),
        ("5-6-7", [5, 6, 7]),
    ],
)
def test_a_dash_between_or_apart_is_no_sign(text, values):
    assert [fact.value for _, fact in find_quantities(text)] == values
