"""Charts: what they show, that they can be read without colour, and that texts in them stay texts."""

import itertools
import re
import sys
import warnings
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from tests.report.drawings import HOSTILE, Page, all_texts, every_chart, label_boxes, summary
from tsteval.report import charts
from tsteval.report.charts import (
    Means,
    Panel,
    ScoreInterval,
    curve_and_point,
    interval_plot,
    panels_chart,
    plot_accuracy_by_length,
    plot_confusion,
    plot_ngrams,
    plot_reliability,
    scatter_plot,
    trade_off,
    word_bars,
)
from tsteval.report.findings import work_out
from tsteval.report.forest import spread_panels, systems_panels

SVG = "{http://www.w3.org/2000/svg}"


def written(chart):
    """The texts of a chart's SVG."""
    return [one.text for one in ElementTree.fromstring(chart.svg).iter(f"{SVG}text")]


def lines_of(axes, **looks):
    """The lines of some axes that have these looks."""
    return [
        line
        for line in axes.lines
        if all(getattr(line, f"get_{name}")() == value for name, value in looks.items())
    ]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_texts_stay_texts_and_drawings_are_sound(text):
    for name, chart in every_chart(text).items():
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            drawing = chart.svg
        drawing.encode("utf-8")  # a lone surrogate would stop the message that carries it
        page = Page(drawing)
        assert not page.active and "svg" in page.elements, name
        assert not re.search("[\x00-\x08\x0b-\x1f]", drawing), name
        # XML is strict: one wrong character and there is no image
        assert ElementTree.fromstring(drawing).tag == f"{SVG}svg"


@pytest.mark.parametrize("name", every_chart("a"))
def test_a_chart_has_a_description_dark_and_legible_type_and_dollars_that_are_dollars(name):
    chart = every_chart("a $x_1$ <b>")[name]
    root = ElementTree.fromstring(chart.svg)
    assert root.get("role") == "img" and len(root.get("aria-label")) > 20
    texts = written(chart)
    assert texts and not any("mathdefault" in text for text in texts)
    if name != "curve":
        assert any("$x_1$" in text for text in texts)
    sizes = [float(size) for size in re.findall(r"font-size: ([\d.]+)px", chart.svg)]
    sizes += [float(size) for size in re.findall(r"font: (?:\w+ )*([\d.]+)px", chart.svg)]
    assert len(sizes) == len(texts) and min(sizes) >= 11
    inks = {text.get_color() for text in all_texts(chart)}
    assert inks <= {charts.INK, charts.FAINT}


def test_equal_charts_are_equal_files_and_charts_of_one_page_share_no_names():
    first, again, other = (
        interval_plot(summary(names), ["sti"]).svg for names in ("ab", "ab", "abc")
    )
    assert first == again
    names = [set(re.findall(r' id="([^"]*)"', drawing)) for drawing in (first, other)]
    assert names[0] and not names[0] & names[1]
    assert "<style" not in first and "<?xml" not in first and "date" not in first.lower()


def test_a_displayed_chart_is_an_image_on_white_and_in_a_page_an_element():
    for name, chart in every_chart("a name").items():
        page = chart._repr_html_()
        assert page.count('class="tsteval-picture"') == 1 and "<svg" not in page, name
        assert re.search('<img alt="[^"]{20,}" src="data:image/svg.xml;base64,', page), name
        assert len(page) < 60_000 and repr(chart).startswith("Chart: "), name
        element = charts.framed(chart)
        assert element.count("<svg ") == 1 and "://" not in element  # a page names no address


@pytest.mark.parametrize(
    "kind, start", [("pdf", b"%PDF"), ("eps", b"%!PS"), ("svg", b"<?xml"), ("png", b"\x89PNG")]
)
def test_a_chart_is_saved_in_matplotlibs_formats_and_leaves_pyplot_alone(
    tmp_path, kind, start, monkeypatch
):
    monkeypatch.delitem(sys.modules, "matplotlib.pyplot", raising=False)
    every_chart("a")["curve"].savefig(tmp_path / f"x.{kind}")
    content = (tmp_path / f"x.{kind}").read_bytes()
    assert content.startswith(start) and "matplotlib.pyplot" not in sys.modules
    assert kind != "svg" or b">upwards</text>" in content


def test_what_somebody_sets_for_matplotlib_changes_no_chart():
    import matplotlib

    settings = {"font.size": 30, "axes.grid": False, "figure.constrained_layout.use": True}
    for name, chart in every_chart("a").items():
        with matplotlib.rc_context(settings):
            assert every_chart("a")[name].svg == chart.svg, name


# ---- intervals


def test_every_system_has_its_score_and_its_interval():
    chart = interval_plot(pd.DataFrame(summary(["copy", "edit", "none at all"])), ["sti"], ["STI"])
    texts = written(chart)
    assert {"STI", "0.200", "0.400"} <= set(texts) and texts.count("none") == 1
    assert "copy 0.200 (0.100 to 0.300)" in chart.alt and "none at all none" in chart.alt
    ends = lines_of(chart.axes[0], linewidth=3)
    assert np.allclose([line.get_xdata() for line in ends], [[0.1, 0.3], [0.3, 0.5]])
    assert [line.get_xdata()[0] for line in lines_of(chart.axes[0], marker="o")] == [0.2, 0.4]
    without = interval_plot({"system": ["copy"], "sti": [0.2]}, ["sti"]).axes[0]
    assert len(lines_of(without, marker="o")) == 1 and not lines_of(without, linewidth=3)


def test_shapes_say_what_the_comparison_said():
    rows = [
        ScoreInterval("up", 0.2, 0.1, 0.3, "better"),
        ScoreInterval("down", -0.2, -0.3, -0.1, "worse"),
        ScoreInterval("open", 0.05, -0.1, 0.1, "not told apart"),
        ScoreInterval("<b>", None),
    ]
    chart = panels_chart([Panel("STI", rows, origin=True)])
    marks = [
        (line.get_marker(), line.get_markerfacecolor() == "white")
        for line in chart.axes[0].lines
        if line.get_marker() in "os"
    ]
    assert marks == [("o", False), ("s", False), ("o", True)]
    assert {"up", "better", "worse", "not told apart", "<b>", "none"} <= set(written(chart))
    assert "up 0.200 (0.100 to 0.300) better" in chart.alt and "<b> none" in chart.alt
    assert "<b>" not in chart.svg


def test_panels_stand_in_rows_of_four_and_may_share_a_scale():
    panels = [Panel(f"set {n}", [ScoreInterval("a", n, n - 1, n + 1)], ceiling=8) for n in range(6)]
    chart = panels_chart(panels, one_scale=True)
    drawn = chart.axes[:-1]
    assert len(drawn) == 6 and written(chart).count("a") == 2  # the name, before each row of panels
    assert len({axes.get_xlim() for axes in drawn}) == 1 and drawn[0].get_xlim()[0] <= -1
    assert len({axes.get_position().y0 for axes in drawn}) == 2
    assert len({axes.get_xlim() for axes in panels_chart(panels).axes[:-1]}) == 6
    assert (
        panels_chart([Panel("x", [ScoreInterval("a", 2, 1, 3)], origin=True)]).axes[0].get_xlim()[0]
        < 0
    )


def test_a_report_has_a_panel_a_leading_score(result):
    findings = work_out(result)
    for panels in (systems_panels(findings), spread_panels(findings, result.per_pair)):
        assert len(panels) == len(findings.leading) == 4
        assert all([row.name for row in panel.intervals] == result.systems for panel in panels)
    by_title = {panel.title.split(": ")[-1]: panel for panel in systems_panels(findings)}
    assert by_title["BLEU"].notes == ("higher is better \u2192", "0 to 1, n = 3")
    assert by_title["BLEU"].about == "n-grams shared with references"
    assert by_title["OWN"].notes == ("\u2190 lower is better", "n = 3")
    assert [row.verdict for row in by_title["OWN"].intervals] == ["baseline", "too few rows"]


def test_the_spread_of_outputs_is_their_median_and_middle_half_for_every_system(result):
    rows = pd.DataFrame(
        {"system": ["<i>one</i>"] * 5 + ["two_%"], **dict.fromkeys(result.columns, np.nan)}
    )
    rows.loc[:4, "bleu"] = [0.1, 0.2, 0.3, 0.4, 0.9]
    findings = work_out(result)
    panel = next(one for one in spread_panels(findings, rows) if one.title.endswith("BLEU"))
    one, two = panel.intervals
    assert np.allclose([one.low, one.value, one.high], [0.2, 0.3, 0.4])
    assert two.name == "two_%" and two.value is None  # it has no number, and is named all the same


# ---- bars and curves


def test_bars_are_as_long_as_their_shares_and_differ_without_colour():
    chart = word_bars(
        ["a", "b", " "],
        [[0.5, 1], [0.2, 0], [7, 0.1]],
        ["x", "y", "z"],
        alt="three words",
        looks=["full", "dashed", "pale"],
        ends=("0", "1"),
        edges=[(0.25, "low"), (0.75, "high")],
    )
    (axes,) = chart.axes
    full = axes.patches[1].get_width()
    widths = [bar.get_width() / full for bar in axes.patches]
    assert widths == pytest.approx([0.5, 1, 0.2, 1 / full, 1, 0.1])
    assert [bar.get_linestyle() != "solid" for bar in axes.patches[::2]] == [False, True, False]
    left = axes.patches[0].get_x()
    places = [(line.get_xdata()[0] - left) / full for line in axes.lines]
    assert places == pytest.approx([0.25, 0.75])
    assert written(chart)[:6] == ["a", "x", "b", "y", "(space)", "z"]
    assert "three words: a x, b y" in chart.alt
    ticked = word_bars(["a"], [0.5], ["x"], alt="one", ticks=[(0, "1 in 10"), (1, "1")])
    assert {"1 in 10", "1"} <= set(written(ticked))
    many = word_bars(["w"] * 90, np.ones(90), ["1"] * 90, alt="many")
    assert len(many.axes[0].patches) == 80 and "and 10 more" in written(many)
    for empty in ([], np.zeros((0, 2))):
        assert not word_bars([], empty, [], alt="no words").axes[0].patches
    with pytest.raises(ValueError, match="counterpart"):
        word_bars(["a"], [0.1, 0.2], ["x"], alt="too many")


def test_the_point_lies_on_its_curve():
    chart = curve_and_point([0, 5, 10], [0, 1, 1], (5, 1), x_label="length", y_label="penalty")
    (point,) = lines_of(chart.axes[0], marker="o")
    assert np.allclose(point.get_xydata(), [[5, 1]]) and "at 5.000 it is 1.000" in chart.alt
    (curve,) = lines_of(chart.axes[0], color=charts.BLUE)
    assert [5, 1] in curve.get_xydata().tolist()


@pytest.mark.parametrize("rising, end", [(True, 1), (False, 0)])
def test_the_name_of_a_mark_stands_where_its_curve_does_not(rising, end):
    ys = [0, 1, 2] if rising else [2, 1, 0]
    names = {"x_label": "r", "y_label": "worth", "mark": (0, "none")}
    chart = curve_and_point([0, 5, 10], ys, (5, 1), **names)
    (name,) = [text for text in chart.axes[0].texts if text.get_text() == "none"]
    assert name.xy == (0, end) and name.get_va() == ("top" if rising else "bottom")


def test_a_scatter_rings_and_numbers_what_is_marked():
    chart = scatter_plot([1, 2, 2, 3], [1, 2, 2, 3], (1, 0), [3], x_label="x", y_label="y")
    points, line, ring = chart.axes[0].lines
    assert len(points.get_xdata()) == 3 and line.get_ydata().tolist() == [1, 3]
    assert ring.get_xydata().tolist() == [[3, 3]] and "1" in written(chart)


# ---- points between two scores


def apart(chart):
    """Assert that no text of a chart lies over another or outside."""
    wide = chart.get_figwidth() * 72
    boxes = label_boxes(chart)
    for one in boxes:
        assert one[0] >= -2 and one[1] <= wide + 2, one
    for one, other in itertools.combinations(boxes, 2):
        beside = one[0] >= other[1] - 1 or other[0] >= one[1] - 1
        assert beside or one[2] >= other[3] - 2 or other[2] >= one[3] - 2, (one, other)
    return boxes


@pytest.mark.parametrize(
    "names", [[f"a system with the long name {place}" for place in range(9)], ["模型" * 20] * 9]
)
def test_nine_systems_do_not_overlap(names):
    numbered = [f"{i}{n}" for i, n in enumerate(names)]
    for chart in (
        interval_plot(summary(names), ["sti"]),
        trade_off(range(9), range(9), numbered),
        trade_off(range(9), range(9), numbered, below=True),
    ):
        assert len(apart(chart)) > 15


@pytest.mark.parametrize("below", [False, True])
@pytest.mark.parametrize("spread", [1.0, 0.1, 0.0])
def test_nine_means_have_names_beside_them_that_do_not_overlap(spread, below):
    rng = np.random.default_rng(0)
    names = [f"system {place} of nine" for place in range(9)]
    x = 0.5 + spread * (rng.random(9) - 0.5)
    y = 0.5 + spread * (rng.random(9) - 0.5)
    x = np.append(x[:-1], 1.0)
    y = np.append(y[:-1], 0.0)  # one far away, so that the others are close
    chart = trade_off(x, y, names, means=Means(), below=below)
    tags = [text for text in all_texts(chart) if text.get_gid() == "name"]
    assert len(tags) >= (9 if spread > 0 else 7)
    assert len([line for line in chart.axes[0].lines if line.get_markersize() == 11]) == 9
    apart(chart)


@pytest.mark.parametrize("means", [None, Means()])
def test_ten_systems_differ_without_colour(means):
    chart = trade_off(range(10), range(10), [f"s{place}" for place in range(10)], means=means)
    looks = {
        (line.get_marker(), line.get_markerfacecolor() == "white")
        for line in chart.axes[0].lines
        if line.get_linestyle() == "None"
    }
    assert len(looks) == 10


def test_the_trade_off_draws_each_output_once_and_counts_those_that_are_drawn():
    x = [0.0, 0.5, 0.5, np.nan]
    y = [0.2, 0.4, 0.4, 0.3]
    chart = trade_off(x, y, ["a", "a", "b", "b"], labels=("STI", "CPS"), selected=0)
    assert {"a\u200e (2)", "b\u200e (1)"} <= set(written(chart))
    assert len(lines_of(chart.axes[0], markersize=18)) == 1
    assert "b: 1 outputs, mean 0.500, 0.400" in chart.alt
    assert not lines_of(trade_off(x, y, list("aabb"), selected=3).axes[0], markersize=18)
    fewer = trade_off(x, y, ["a", "a", "b", "b"], labels=("STI", "CPS"), rows=[2])
    assert {"a\u200e (0)", "b\u200e (1)"} <= set(written(fewer))
    # a filter does not move the axes
    assert fewer.axes[0].get_xlim() == chart.axes[0].get_xlim()
    assert fewer.axes[0].get_ylim() == chart.axes[0].get_ylim()
    assert len(trade_off([0.5] * 5000, [0.5] * 5000, ["a"] * 5000).svg) < 10_000
    with pytest.raises(ValueError, match="counterpart"):
        trade_off([1, 2], [1], ["a", "b"])


def test_places_are_where_the_drawing_has_its_markers():
    x = np.array([0.0, 0.4, 1.0, np.nan])
    chart = trade_off(x, x**2, ["a"] * 4)
    uses = [
        (float(one.get("x")), float(one.get("y")))
        for one in ElementTree.fromstring(chart.svg).iter(f"{SVG}use")
    ]
    places = chart.places(x, x**2)
    assert np.isnan(places[3]).all() and len(uses) >= 3
    for place in places[:3]:
        assert np.abs(np.array(uses) - place).max(axis=1).min() < 0.02


def test_means_are_one_point_a_system_with_its_interval():
    x = [0.0, 0.4, 0.5, 0.7]
    y = [0.9, 0.7, 0.4, 0.6]
    systems = ["a", "a", "b", "b"]
    chart = trade_off(x, y, systems, means=Means({"a": (0.1, 0.3, 0.7, 0.9)}))
    assert len(lines_of(chart.axes[0], markersize=11)) == 2
    assert "a: 2 outputs, mean 0.200, 0.800" in chart.alt
    crosses = [line.get_xydata() for line in lines_of(chart.axes[0], marker="None", linewidth=1)]
    assert np.allclose(crosses, [[[0.1, 0.8], [0.3, 0.8]], [[0.2, 0.7], [0.2, 0.9]]])
    none = trade_off([np.nan], [1.0], ["a"], means=Means())
    assert "a\u200e (0)" in written(none)


# ---- the course's own


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


def test_each_ngram_is_a_bar_over_its_tokens_that_is_dark_once_for_each_partner():
    figure = plot_ngrams(list("aab"), list("ab"), orders=(1, 2))
    (axes,) = figure.axes
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        "1-grams: 2 of 3",
        "2-grams: 1 of 2",
    ]
    assert [line.get_color() == charts.BLUE for line in axes.lines] == [
        True,
        False,
        True,
        False,
        True,
    ]
    assert [round(line.get_xdata()[0]) for line in axes.lines] == [0, 1, 2, 0, 1]
