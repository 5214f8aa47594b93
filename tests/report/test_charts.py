"""Intervals, distributions, bars and curves: what they show, and that they can be read without colour."""

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.report.drawings import Page, summary
from tsteval.report import charts as drawing
from tsteval.report.charts import (
    curve_and_point,
    interval_plot,
    plot_accuracy_by_length,
    plot_confusion,
    plot_reliability,
    round_ticks,
    word_bars,
)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=6), st.integers(3, 8))
def test_ticks_enclose_what_is_drawn_and_stand_at_round_numbers(values, most):
    ticks = round_ticks(values, most)
    room = 1e-6 * (ticks[-1] - ticks[0])
    assert (
        2 <= len(ticks) <= most
        and ticks[0] <= min(values) + room
        and ticks[-1] >= max(values) - room
    )
    step = ticks[1] - ticks[0]
    assert f"{step:.0e}"[0] in "125" and np.allclose(
        ticks / step, np.round(ticks / step), atol=1e-6
    )


def test_every_system_has_its_score_and_its_interval():
    page = interval_plot(pd.DataFrame(summary(["copy", "edit", "none at all"])), ["sti"], ["STI"])
    text = Page(page).text
    assert "STI" in text and "0.200" in text and "0.400" in text and text.count("none") == 2
    assert (
        page.count("<circle") == 2
        and page.count(f'stroke="{drawing.BLUE}" stroke-dasharray="none" stroke-width="3"') == 2
    )
    assert "copy 0.200 (0.100 to 0.300)" in page and "none at all none" in page
    without = interval_plot({"system": ["copy"], "sti": [0.2]}, ["sti"])
    assert without.count("<circle") == 1 and 'stroke-width="3"' not in without


def test_bars_are_as_long_as_their_shares_and_differ_without_colour():
    page = word_bars(
        ["a", "b", " "],
        [[0.5, 1], [0.2, 0], [7, 0.1]],
        ["x", "y", "z"],
        told="three words",
        looks=["full", "dashed", "pale"],
        ends=("0", "1"),
        edges=[(0.25, "low"), (0.75, "high")],
    )
    assert re.findall(r'<rect[^>]*? width="([\d.]+)"', page) == [
        "100.0",
        "200.0",
        "40.0",
        "1",
        "200.0",
        "20.0",
    ]
    assert (
        page.count('stroke-dasharray="3 2"') == 1
        and Page(page).text.startswith("axby(space)z")
        and "three words: a x, b y" in page
    )
    assert page.count('stroke-dasharray="2 3"') == 2
    assert word_bars(["w"] * 90, np.ones(90), ["1"] * 90, told="many").count("<rect") == 80
    for empty in ([], np.zeros((0, 2))):
        assert "<rect" not in word_bars([], empty, [], told="no words")
    with pytest.raises(ValueError, match="counterpart"):
        word_bars(["a"], [0.1, 0.2], ["x"], told="too many")


def test_the_point_lies_on_its_curve():
    page = curve_and_point([0, 5, 10], [0, 1, 1], (5, 1), x_label="length", y_label="penalty")
    x, y = re.search(r'<circle cx="([\d.]+)" cy="([\d.]+)"', page).groups()
    assert (
        f"{x},{y}" in re.search('points="([^"]*)"', page)[1].split()
        and "at 5.000 it is 1.000" in page
    )


def axes_of(figure):
    return figure.axes[0]


def test_a_confusion_matrix_shows_counts_and_shares():
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    plot_confusion(
        pd.DataFrame([[3, 1], [0, 0]], index=["a", "b"], columns=["predicted a", "predicted b"]),
        axes,
    )
    assert [text.get_text() for text in axes.texts] == ["3\n75%", "1\n25%", "0\n0%", "0\n0%"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b"]


def test_lengths_are_named_by_their_ends():
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    plot_accuracy_by_length(
        pd.DataFrame(
            {
                "shortest": [1, 9],
                "longest": [8, 9],
                "accuracy": [0.5, 0.9],
                "low": [0.4, 0.8],
                "high": [0.6, 1.0],
            }
        ),
        axes,
    )
    assert [label.get_text() for label in axes.get_xticklabels()] == [
        "1-8",
        "9",
    ] and axes.get_ylim() == (0, 1)


def test_each_classifier_has_a_panel():
    table = pd.DataFrame({"confidence": [0.6, 0.9], "accuracy": [0.5, 0.9], "sentences": [10, 30]})
    figure = plot_reliability({"one": table, "two": table})
    assert len(figure.axes) == 2 and np.isclose(
        float(axes_of(figure).get_title().split()[-1]), 0.025
    )
