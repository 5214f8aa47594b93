"""Coloured words, edits, flows and the road: every word is there, with its number."""

import re
from pathlib import Path

import numpy as np
import pytest

from tests.report.drawings import Page, bands
from tsteval.report import words as drawing
from tsteval.report.words import ROAD, coloured_words, draw_road, edited_pair, transport_flow


def test_a_word_has_its_number_its_sign_without_colour_and_its_strength():
    page = coloured_words(
        "a bad idea", [(0, 1), (2, 5), (6, 10)], [0.1, -0.4, np.nan], marked=[0], strongest=0.8
    )
    spans = re.findall(
        r'<span title="([^"]*)" style="[^"]*?,([\d.]+)\);[^"]*decoration:([^"]*)">(\w+)<', page
    )
    assert [span[3] for span in spans] == ["a", "bad", "idea"]
    assert [span[0] for span in spans] == ["+0.100", "-0.400", "no score"]
    assert [float(span[1]) for span in spans] == [0.12, 0.5, 0.0]
    assert [span[2] for span in spans] == ["line-through 2px", "underline dotted", "none"]
    assert Page(coloured_words(["a", "bad", "idea"], None, [1, 2, 3])).text == "a bad idea"


def test_a_long_text_is_cut_with_an_ellipsis_and_an_empty_one_is_drawn():
    page = coloured_words(["w"] * 1000, None, np.ones(1000))
    assert page.count("<span") == drawing.SHOWN_WORDS and Page(page).text.endswith("…")
    assert (
        Page(coloured_words("", [], [])).text == ""
        and Page(coloured_words([], None, [])).text == ""
    )


@pytest.mark.parametrize("spans, scores", [([(0, 1)], [1, 2]), ([(0, 1), (2, 3)], [1])])
def test_words_and_scores_of_unequal_number_are_refused(spans, scores):
    with pytest.raises(ValueError, match="counterpart"):
        coloured_words("a b", spans, scores)


def test_an_edited_pair_marks_what_was_dropped_and_what_is_new():
    page = edited_pair(
        "the fine old dam", "the dam here", [(4, 8), (9, 12)], [(8, 12)], references=["the dam"]
    )
    assert re.findall("<del[^>]*>([^<]*)<", page) == ["fine", "old"] and re.findall(
        "<ins[^>]*>([^<]*)<", page
    ) == ["here"]
    text = Page(page).text
    assert (
        "the fine old dam" in text and "the dam here" in text and text.endswith("referencethe dam")
    )
    with pytest.raises(ValueError, match="del, ins"):
        drawing.edited_text("a", [], "strike")


def test_bands_are_as_wide_as_their_mass_and_those_that_move_are_dashed():
    plan = np.array([[0.5, 0.25], [0.0, 0.25]])
    found = bands(transport_flow(plan))
    assert [width for width, _ in found] == pytest.approx([100, 50, 50], abs=0.2) and [
        moves for _, moves in found
    ] == [False, True, False]
    assert [width for width, _ in bands(transport_flow(10 * plan))] == pytest.approx(
        [100, 50, 50], abs=0.2
    )
    assert "cost" not in Page(transport_flow(plan)).text
    priced = Page(transport_flow(plan, ["low", "high"], [[0, 3], [3, 0]])).text
    assert (
        "0.25 × 3" in priced
        and "cost 0.750" in priced
        and "low: 0.75" in priced
        and "high: 0.50" in priced
    )


def test_a_flow_between_different_classes_and_one_too_thin_for_its_number():
    page = transport_flow([[0.49, 0.01, 0.5]], [["word"], ["a", "b", "c"]])
    assert "not written on its band: word to b 0.01" in Page(page).text and len(bands(page)) == 3
    assert Page(transport_flow(np.zeros((2, 2)))).text.count("0.00") == 4


@pytest.mark.parametrize(
    "plan, labels, cost",
    [
        ([[-1, 0], [0, 1]], None, None),
        ([1, 2], None, None),
        ([], None, None),
        ([[np.nan]], None, None),
        (np.eye(2), ["a"], None),
        (np.eye(2), None, np.eye(3)),
        ([[1, 0]], ["a", "b"], None),
    ],
)
def test_a_plan_that_is_none_and_labels_that_do_not_fit_are_refused(plan, labels, cost):
    with pytest.raises(ValueError):
        transport_flow(plan, labels, cost)


def test_the_road_has_every_stop_and_marks_one():
    for here in ROAD:
        page = draw_road(here)
        assert page.count(f'fill="{drawing.VERMILION}"') == 1 and page.count("<circle") == len(ROAD)
        assert all(
            f">{line}<" in page for question in ROAD.values() for line in question.split("\n")
        )
        assert f"You are at {list(ROAD).index(here) + 1}, {here}." in page
        assert float(re.search(r'viewBox="0 0 (\d+)', page)[1]) <= 900
    assert 'font-weight="bold"' not in draw_road() and drawing.VERMILION not in draw_road()


def test_the_stops_of_the_road_are_the_chapters_in_order():
    chapters = sorted(Path(__file__).parents[2].glob("nbs/[0-9]*.ipynb"))
    assert list(ROAD) == [path.stem.split("_", 1)[1] for path in chapters]


def test_a_stop_that_is_not_on_the_road_is_refused():
    with pytest.raises(ValueError, match="blue"):
        draw_road("blue")
