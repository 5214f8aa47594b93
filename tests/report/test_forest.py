"""Forests: every number and verdict stands in the drawing, and what is not known is not drawn."""

from tests.report.test_page import Page
from tsteval.report.findings import work_out
from tsteval.report.forest import (
    ForestRow,
    Panel,
    differences_forest,
    panels_picture,
    systems_forest,
)


def test_shapes_say_what_the_comparison_said():
    rows = [
        ForestRow("up", 0.2, 0.1, 0.3, "better"),
        ForestRow("down", -0.2, -0.3, -0.1, "worse"),
        ForestRow("open", 0.0, -0.1, 0.1, "not told apart"),
        ForestRow("<b>", None),
    ]
    page = panels_picture([Panel("STI", rows)], origin=True)
    assert page.count("<circle") == 2 and page.count("<rect") == 1 and "<b>" not in page
    (label,) = [one["aria-label"] for one in Page(page).all("svg")]
    assert "up 0.200 (0.100 to 0.300) better" in label and "<b> none" in label


def test_a_report_has_a_panel_a_leading_score(result):
    found = work_out(result)
    systems = systems_forest(found)
    differences = differences_forest(found)
    for page in (systems, differences):
        assert len(Page(page).all("svg")) == len(found.leading) == 4
    assert "two_% " in differences and "one" in systems and "<i>" not in systems
