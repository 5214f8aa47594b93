"""Points between two scores, with names that do not overlap."""

import html
import re
import unicodedata

import numpy as np
import pytest

from tests.report.drawings import Page, label_boxes, summary
from tsteval.report.charts import interval_plot
from tsteval.report.trade_off import Means, trade_off


@pytest.mark.parametrize(
    "names", [[f"a system with the long name {place}" for place in range(9)], ["模型" * 20] * 9]
)
def test_nine_systems_do_not_overlap(names):
    for page in (
        interval_plot(summary(names), ["sti"]),
        trade_off(range(9), range(9), [f"{i}{n}" for i, n in enumerate(names)]),
    ):
        boxes = []
        for x, y, anchor, _size, written in re.findall(
            r'<text x="([\d.-]+)" y="([\d.-]+)" text-anchor="(\w+)"(?: font-size="(\d+)")?[^>]*>(.*?)</text>',
            page,
        ):
            text = html.unescape(re.sub("<[^>]*>", "", written))
            wide = sum(12 if unicodedata.east_asian_width(one) in "WF" else 6.5 for one in text)
            left = float(x) - wide * {"start": 0, "middle": 0.5, "end": 1}[anchor]
            boxes.append((left, left + wide, float(y) - 9, float(y) + 2, text))
        assert len(boxes) > 15
        for place, one in enumerate(boxes):
            assert (
                one[0] >= -2 and one[1] <= float(re.search(r'viewBox="0 0 (\d+)', page)[1]) + 2
            ), one
            for other in boxes[:place]:
                assert (
                    one[0] >= other[1]
                    or other[0] >= one[1]
                    or one[2] >= other[3]
                    or other[2] >= one[3]
                ), (one, other)


@pytest.mark.parametrize("below", [False, True])
@pytest.mark.parametrize("spread", [1.0, 0.1, 0.0])
def test_nine_means_have_names_beside_them_that_do_not_overlap(spread, below):
    rng = np.random.default_rng(0)
    names = [f"system {place} of nine" for place in range(9)]
    x = 0.5 + spread * (rng.random(9) - 0.5)
    y = 0.5 + spread * (rng.random(9) - 0.5)
    x = np.append(x[:-1], 1.0)
    y = np.append(y[:-1], 0.0)  # one far away, so that the others are close
    page = trade_off(x, y, names, means=Means(), below=below)
    tags = re.findall(r'<text [^>]*class="name"', page)
    assert len(tags) >= (9 if spread > 0 else 7) and page.count("scale(1.6)") == 9
    boxes = list(label_boxes(page))
    for place, one in enumerate(boxes):
        assert one[0] >= -2 and one[1] <= float(re.search(r'viewBox="0 0 (\d+)', page)[1]) + 2, one
        for other in boxes[:place]:
            assert (
                one[0] >= other[1] or other[0] >= one[1] or one[2] >= other[3] or other[2] >= one[3]
            ), (one, other)


def test_nine_systems_differ_without_colour():
    page = trade_off(range(9), range(9), [f"s{place}" for place in range(9)], means=Means())
    looks = {
        (shape, fill == "#fff")
        for shape, fill in re.findall(r'<path d="M0 0([^"]*)"[^>]*? fill="([^"]*)"', page)
    }
    assert len(looks) == 9


def test_the_trade_off_draws_each_output_once_and_counts_those_that_are_drawn():
    x = [0.0, 0.5, 0.5, np.nan]
    y = [0.2, 0.4, 0.4, 0.3]
    page = trade_off(x, y, ["a", "a", "b", "b"], labels=("STI", "CPS"), selected=0)
    assert "a (2)" in Page(page).text and "b (1)" in Page(page).text and page.count("<circle") == 1
    assert "b: 1 outputs, mean 0.500, 0.400" in page and "<circle" not in trade_off(
        x, y, list("aabb"), selected=3
    )
    fewer = trade_off(x, y, ["a", "a", "b", "b"], rows=[2])
    assert "a (0)" in Page(fewer).text and "b (1)" in Page(fewer).text
    ticks = [
        re.findall(r'text-anchor="middle" fill="#555"><tspan[^>]*>([^<]*)<', one)
        for one in (page, fewer)
    ]
    assert ticks[0] == ticks[1]  # a filter does not move the axes
    assert len(trade_off([0.5] * 5000, [0.5] * 5000, ["a"] * 5000)) < 10_000
    with pytest.raises(ValueError, match="counterpart"):
        trade_off([1, 2], [1], ["a", "b"])


def test_ten_systems_have_ten_markers():
    page = trade_off(np.arange(10) / 10, np.arange(10) / 10, [f"s{place}" for place in range(10)])
    looks = {
        (re.sub(r"^M\d+ \d+", "", path), fill == "#fff")
        for path, fill in re.findall(r'<path d="([^"]*)" fill="([^"]*)"', page)
    }
    assert len(looks) == 10


def test_means_are_one_point_a_system_with_its_interval():
    x = [0.0, 0.4, 0.5, 0.7]
    y = [0.9, 0.7, 0.4, 0.6]
    systems = ["a", "a", "b", "b"]
    page = trade_off(x, y, systems, means=Means({"a": (0.1, 0.3, 0.7, 0.9)}))
    assert page.count("scale(1.6)") == 2 and "a: 2 outputs, mean 0.200, 0.800" in page
    plain = trade_off(x, y, systems, means=Means())
    assert page.count("<line") - plain.count("<line") >= 2
    assert Page(trade_off([np.nan], [1.0], ["a"], means=Means())).text.count("a (0)") == 1
