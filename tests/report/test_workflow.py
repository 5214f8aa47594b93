"""Boxes stand where they were put, arrows join them, and every text is escaped."""

import re

import pytest

from tsteval.report.workflow import Stage, workflow


def test_boxes_and_arrows_are_drawn():
    stages = {
        "a": Stage(0, 0, ("a text",)),
        "b": Stage(1, 0, ("a model",), True),
        "c": Stage(0, 1, ("below",)),
    }
    drawn = workflow(stages, [("a", "b"), ("a", "c"), ("c", "a")], "three boxes")
    assert (
        drawn.count("<rect") == 3
        and drawn.count("<path") == 3
        and drawn.count('font-weight="bold"') == 1
    )
    assert (
        'aria-label="three boxes"' in drawn
        and max(map(int, re.findall('width="(\\d+)"', drawn))) < 400
    )


def test_text_stays_text_and_an_unknown_stage_is_named():
    assert "<script" not in workflow({"a": Stage(0, 0, ("<script>",))}, [], "<script>")
    with pytest.raises(ValueError, match="no stage called 'b'"):
        workflow({"a": Stage(0, 0, ("a",))}, [("a", "b")], "")
