"""Each picture: what it shows, that texts stay texts, that it can be read without colour and without the picture."""
import base64
import html
import re
import subprocess
import sys
import unicodedata
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsteval.core.display import displayable
from tsteval.report import charts as drawing
from tsteval.report.charts import (
    ROAD,
    Picture,
    coloured_words,
    curve_and_point,
    draw_road,
    edited_pair,
    framed,
    interval_plot,
    round_ticks,
    shortened,
    table,
    tag,
    trade_off,
    transport_flow,
    word_bars,
)

HOSTILE = ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "word <b> & " * 1_820,
           "\u05e9\u05dc\u05d5\u05dd \u202eabc",
           "\U0001f469\u200d\U0001f52c \U0001f600", "\ud83d alone \udc00", "\x00\x07\x7f\x9f", "", "a" * 20_000, " \n ",
           "</bdi></svg></div>", "{0} %s {evil}", "\ufffe\uffff \x85"]


class Page(HTMLParser):
    """The elements of a page, its text, and everything that could run."""

    def __init__(self, page):
        super().__init__()
        self.open, self.text, self.elements, self.active = [], "", [], []
        self.feed(str(page))
        assert not self.open, f"left open: {self.open}"

    def handle_starttag(self, name, attributes):
        self.elements.append(name)
        if name not in ("br", "img"):
            self.open.append(name)
        drawn = dict(attributes).get("src", "").startswith("data:image/svg+xml;base64,")
        self.active += [name] if name in ("script", "img", "iframe", "object", "b") and not drawn else []
        self.active += [key for key, _ in attributes if key.startswith("on")]

    def handle_endtag(self, name):
        assert self.open.pop() == name

    def handle_data(self, data):
        self.text += data


def summary(names):
    """A made-up summary of systems, the last one without a score."""
    score = np.linspace(0.2, 0.6, len(names))
    score[-1] = np.nan
    # a frame cannot hold half a character
    return {"system": names, "sti": score, "sti_low": score - 0.1, "sti_high": score + 0.1}


def every_picture(text):
    """All pictures, with one text wherever a text goes."""
    whole = [(0, len(text))]
    names = [f"{place} {text}" for place in range(9)]
    plan = np.diag(np.full(9, 1 / 9)) @ (0.9 * np.eye(9) + 0.1 * np.roll(np.eye(9), 1, axis=1))
    points, systems = np.linspace(-0.3, 0.9, 18), names * 2
    ends = dict.fromkeys(names, (0.1, 0.3, 0.2, 0.4))
    return {"words": coloured_words(text, whole, [-0.5], marked=[0], title=text),
            "list": coloured_words([text] * 2, None, [1, 2]),
            "pair": edited_pair(text, text, whole, whole, references=[text], title=text),
            "flow": transport_flow(plan, names, 1 - np.eye(9)),
            "intervals": interval_plot(summary(names), ["sti"], {"sti": text}),
            "outputs": trade_off(points, points[::-1], systems, x_label=text, y_label=text, selected=3),
            "means": trade_off(points, points[::-1], systems, means=True, intervals=ends), "road": draw_road("sti"),
            "bars": word_bars([text] * 3, [[0.1, 0.2]] * 3, [text] * 3, told=text, looks=["full", "pale", "dashed"],
                              axis=text),
            "curve": curve_and_point([0, 1], [0, 1], (0.5, 0.5), x_label="across", y_label="upwards", mark=(0.2, text))}


# ---- promises of every picture

@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_texts_stay_texts_and_drawings_are_sound(text):
    for name, picture in every_picture(text).items():
        assert isinstance(picture, Picture), name
        picture.encode("utf-8")  # a lone surrogate would stop the message that carries it
        assert not Page(picture).active and not re.search("[\x00-\x08\x0b-\x1f]", picture), name
        for found in re.findall("<svg .*?</svg>", picture, re.S):
            ElementTree.fromstring(found)  # XML is strict: one wrong character and there is no image


def test_every_drawing_has_a_description_and_legible_type():
    for name, picture in every_picture("a name").items():
        drawings = re.findall("<svg .*?</svg>", picture, re.S)
        assert bool(drawings) == (name not in ("words", "list", "pair"))
        for found in drawings:
            assert 'role="img"' in found and len(re.search('aria-label="([^"]*)"', found)[1]) > 20, name
            sizes = re.findall(r'font-size="([\d.]+)"', found) + re.findall(r"font:(\d+)px", found)
            assert min(map(float, sizes)) >= 11 and "background:#fff" in found and "max-width" not in found, name


def test_a_displayed_picture_stands_on_white_and_holds_images_instead_of_svg():
    for name, picture in every_picture("a name").items():
        page = picture._repr_html_()
        assert page.count('class="tsteval-picture"') == 1 and "<svg" not in page and len(page) < 60_000, name
        assert drawing.framed(picture)._repr_html_().count('class="tsteval-picture"') == 1
        images = re.findall('<img alt="([^"]+)" src="data:image/svg.xml;base64,([^"]+)">', page)
        assert len(images) == picture.count("<svg "), name
        for description, image in images:
            root = ElementTree.fromstring(base64.b64decode(image))
            assert (root.tag == "{http://www.w3.org/2000/svg}svg" and html.unescape(description)
                    == root.get("aria-label"))
        assert repr(picture).startswith("Picture: ") and len(repr(picture)) < 90 and "<" not in repr(picture)


def test_type_is_dark_on_white():
    """Every fill of a text has a contrast of 4.5 to 1 or more against white (WCAG 2.1, 1.4.3)."""
    def contrast(colour):
        colour = "#" + "".join(2 * digit for digit in colour[1:]) if len(colour) == 4 else colour
        parts = [int(colour[place:place + 2], 16) / 255 for place in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 1.05 / (np.dot(linear, [0.2126, 0.7152, 0.0722]) + 0.05)
    fills = {fill for picture in every_picture("a").values()
             for fill in re.findall(r'<text[^>]*? fill="(#\w+)"', picture)}
    assert fills and all(contrast(fill) >= 4.5 for fill in fills | {drawing.INK})


def test_drawing_needs_neither_matplotlib_nor_a_model():
    code = ("import tsteval.report.charts as d, sys; d.draw_road('text'); "
            "print([name for name in ('matplotlib', 'torch', 'ipywidgets', 'pandas') if name in sys.modules])")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# ---- parts

@given(st.text(st.characters(), max_size=60), st.text(st.characters(), max_size=60))  # surrogates included
def test_a_tag_shows_any_text_as_text(text, title):
    page = tag("p", text, title=title)
    parsed = Page(page)
    assert parsed.elements == ["p"] and not parsed.active
    assert html.unescape(page[page.index(">") + 1:-4]) == displayable(text)
    page.encode("utf-8")


@given(st.text(st.characters(), max_size=60))
def test_displayable_keeps_the_length_and_every_sound_character(text):
    shown = displayable(text)
    assert len(shown) == len(text) and displayable(shown) == shown
    assert all(new == old or unicodedata.category(old) in ("Cc", "Cs", "Cn") for new, old in zip(shown, text))


def test_different_control_characters_look_different():
    assert displayable("a\x07\x08\x7f") == "a\u2407\u2408\u2421" and displayable("\ud83d\x9f") == "\ufffd\ufffd"


@given(st.text(st.characters(), max_size=40), st.integers(2, 20))
def test_a_shortened_name_is_one_line_of_bounded_width(text, most):
    name = shortened(text, most)
    assert sum(2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in name) <= most and "\n" not in name


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=6), st.integers(3, 8))
def test_ticks_enclose_what_is_drawn_and_stand_at_round_numbers(values, most):
    ticks = round_ticks(values, most)
    room = 1e-6 * (ticks[-1] - ticks[0])
    assert 2 <= len(ticks) <= most and ticks[0] <= min(values) + room and ticks[-1] >= max(values) - room
    step = ticks[1] - ticks[0]
    assert f"{step:.0e}"[0] in "125" and np.allclose(ticks / step, np.round(ticks / step), atol=1e-6)


# ---- each picture shows what it is given

def test_a_word_has_its_number_its_sign_without_colour_and_its_strength():
    page = coloured_words("a bad idea", [(0, 1), (2, 5), (6, 10)], [0.1, -0.4, np.nan], marked=[0], strongest=0.8)
    spans = re.findall(r'<span title="([^"]*)" style="[^"]*?,([\d.]+)\);[^"]*decoration:([^"]*)">(\w+)<', page)
    assert [span[3] for span in spans] == ["a", "bad", "idea"] and [span[0]
                                                                    for span in spans] == ["+0.100", "-0.400", "+nan"]
    assert [float(span[1]) for span in spans] == [0.12, 0.5, 0.0]
    assert [span[2] for span in spans] == ["line-through 2px", "underline dotted", "none"]
    assert Page(coloured_words(["a", "bad", "idea"], None, [1, 2, 3])).text == "a bad idea"


def test_a_long_text_is_cut_with_an_ellipsis_and_an_empty_one_is_drawn():
    page = coloured_words(["w"] * 1000, None, np.ones(1000))
    assert page.count("<span") == drawing.SHOWN_WORDS and Page(page).text.endswith("…")
    assert Page(coloured_words("", [], [])).text == "" and Page(coloured_words([], None, [])).text == ""


@pytest.mark.parametrize("spans, scores", [([(0, 1)], [1, 2]), ([(0, 1), (2, 3)], [1])])
def test_words_and_scores_of_unequal_number_are_refused(spans, scores):
    with pytest.raises(ValueError, match="counterpart"):
        coloured_words("a b", spans, scores)


def test_an_edited_pair_marks_what_was_dropped_and_what_is_new():
    page = edited_pair("the fine old dam", "the dam here", [(4, 8), (9, 12)], [(8, 12)], references=["the dam"])
    assert re.findall("<del[^>]*>([^<]*)<", page) == ["fine", "old"] and re.findall("<ins[^>]*>([^<]*)<",
                                                                                    page) == ["here"]
    text = Page(page).text
    assert "the fine old dam" in text and "the dam here" in text and text.endswith("referencethe dam")
    with pytest.raises(ValueError, match="del, ins"):
        drawing.edited_text("a", [], "strike")


def bands(page):
    """Thickness at the left, whether its edge is dashed: of each band."""
    found = re.findall(r'<path d="M156 ([\d.]+)[^"]*?V[^"]*? 156 ([\d.]+)Z"[^>]*stroke-dasharray="([^"]*)"', page)
    return [(float(low) - float(high), dashes != "none") for high, low, dashes in found]


def test_bands_are_as_wide_as_their_mass_and_those_that_move_are_dashed():
    plan = np.array([[0.5, 0.25], [0.0, 0.25]])
    found = bands(transport_flow(plan))
    assert [width for width, _ in found] == pytest.approx([100, 50, 50], abs=0.2) and [moves for _,
                                                                                       moves in found] == [False, True,
                                                                                                           False]
    assert [width for width, _ in bands(transport_flow(10 * plan))] == pytest.approx([100, 50, 50], abs=0.2)
    assert "cost" not in Page(transport_flow(plan)).text
    priced = Page(transport_flow(plan, ["low", "high"], [[0, 3], [3, 0]])).text
    assert "0.25 × 3" in priced and "cost 0.750" in priced and "low: 0.75" in priced and "high: 0.50" in priced


def test_a_flow_between_different_classes_and_one_too_thin_for_its_number():
    page = transport_flow([[0.49, 0.01, 0.5]], [["word"], ["a", "b", "c"]])
    assert "not written on its band: word to b 0.01" in Page(page).text and len(bands(page)) == 3
    assert Page(transport_flow(np.zeros((2, 2)))).text.count("0.00") == 4


@pytest.mark.parametrize("plan, labels, cost", [([[-1, 0], [0, 1]], None, None), ([1, 2], None, None), ([], None, None),
                                                ([[np.nan]], None, None), (np.eye(2), ["a"], None),
                                                (np.eye(2), None, np.eye(3)),
                                                ([[1, 0]], ["a", "b"], None)])
def test_a_plan_that_is_none_and_labels_that_do_not_fit_are_refused(plan, labels, cost):
    with pytest.raises(ValueError):
        transport_flow(plan, labels, cost)


def test_every_system_has_its_score_and_its_interval():
    page = interval_plot(pd.DataFrame(summary(["copy", "edit", "none at all"])), ["sti"], ["STI"])
    text = Page(page).text
    assert "STI" in text and "0.200" in text and "0.400" in text and text.count("none") == 2
    assert (page.count("<circle") == 2 and page.count(f'stroke="{drawing.BLUE}" stroke-dasharray="none" '
                                                      f'stroke-width="3"') == 2)
    assert "copy 0.200 (0.100 to 0.300)" in page and "none at all none" in page
    without = interval_plot({"system": ["copy"], "sti": [0.2]}, ["sti"])
    assert without.count("<circle") == 1 and 'stroke-width="3"' not in without


@pytest.mark.parametrize("names", [[f"a system with the long name {place}" for place in range(9)], ["模型" * 20] * 9])
def test_nine_systems_do_not_overlap(names):
    for page in (interval_plot(summary(names), ["sti"]),
                 trade_off(range(9), range(9), [f"{i}{n}" for i, n in enumerate(names)])):
        boxes = []
        for x, y, anchor, _size, text in re.findall(
                r'<text x="([\d.-]+)" y="([\d.-]+)" text-anchor="(\w+)"(?: font-size="(\d+)")?[^>]*>(.*?)</text>',
                page):
            text = html.unescape(re.sub("<[^>]*>", "", text))
            wide = sum(12 if unicodedata.east_asian_width(one) in "WF" else 6.5 for one in text)
            left = float(x) - wide * {"start": 0, "middle": 0.5, "end": 1}[anchor]
            boxes.append((left, left + wide, float(y) - 9, float(y) + 2, text))
        assert len(boxes) > 15
        for place, one in enumerate(boxes):
            assert one[0] >= -2 and one[1] <= float(re.search(r'viewBox="0 0 (\d+)', page)[1]) + 2, one
            for other in boxes[:place]:
                assert one[0] >= other[1] or other[0] >= one[1] or one[2] >= other[3] or other[2] >= one[3], (one,
                                                                                                              other)


def label_boxes(page):
    """(left, right, top, bottom, text) of every text of a drawing."""
    for x, y, anchor, text in re.findall(r'<text x="([\d.-]+)" y="([\d.-]+)" text-anchor="(\w+)"[^>]*>(.*?)</text>',
                                         page):
        text = html.unescape(re.sub("<[^>]*>", "", text))
        wide = sum(12 if unicodedata.east_asian_width(one) in "WF" else 6.5 for one in text)
        left = float(x) - wide * {"start": 0, "middle": 0.5, "end": 1}[anchor]
        yield left, left + wide, float(y) - 9, float(y) + 2, text


@pytest.mark.parametrize("below", [False, True])
@pytest.mark.parametrize("spread", [1.0, 0.1, 0.0])
def test_nine_means_have_names_beside_them_that_do_not_overlap(spread, below):
    rng, names = np.random.default_rng(0), [f"system {place} of nine" for place in range(9)]
    x, y = 0.5 + spread * (rng.random(9) - 0.5), 0.5 + spread * (rng.random(9) - 0.5)
    x, y = np.append(x[:-1], 1.0), np.append(y[:-1], 0.0)  # one far away, so that the others are close
    page = trade_off(x, y, names, means=True, below=below)
    tags = re.findall(r'<text [^>]*class="name"', page)
    assert len(tags) >= (9 if spread > 0 else 7) and page.count("scale(1.6)") == 9
    boxes = list(label_boxes(page))
    for place, one in enumerate(boxes):
        assert one[0] >= -2 and one[1] <= float(re.search(r'viewBox="0 0 (\d+)', page)[1]) + 2, one
        for other in boxes[:place]:
            assert one[0] >= other[1] or other[0] >= one[1] or one[2] >= other[3] or other[2] >= one[3], (one, other)


def test_nine_systems_differ_without_colour():
    page = trade_off(range(9), range(9), [f"s{place}" for place in range(9)], means=True)
    looks = {(shape, fill == "#fff") for shape, fill in re.findall(r'<path d="M0 0([^"]*)"[^>]*? fill="([^"]*)"', page)}
    assert len(looks) == 9


def test_short_cells_never_break_and_texts_stay_readable():
    page = table(["a", "b", "c"], [["one", "0.123", "a long text that has to break somewhere"]])
    assert (page.count("white-space:nowrap") == 2 and page.count("min-width:10em") == 1
            and "overflow-wrap:break-word" in framed(page))


def test_the_trade_off_draws_each_output_once_and_counts_those_that_are_drawn():
    x, y = [0.0, 0.5, 0.5, np.nan], [0.2, 0.4, 0.4, 0.3]
    page = trade_off(x, y, ["a", "a", "b", "b"], x_label="STI", selected=0)
    assert "a (2)" in Page(page).text and "b (1)" in Page(page).text and page.count("<circle") == 1
    assert "b: 1 outputs, mean 0.500, 0.400" in page and "<circle" not in trade_off(x, y, list("aabb"), selected=3)
    fewer = trade_off(x, y, ["a", "a", "b", "b"], rows=[2])
    assert "a (0)" in Page(fewer).text and "b (1)" in Page(fewer).text
    ticks = [re.findall(r'text-anchor="middle" fill="#555"><tspan[^>]*>([^<]*)<', one) for one in (page, fewer)]
    assert ticks[0] == ticks[1]  # a filter does not move the axes
    assert len(trade_off([0.5] * 5000, [0.5] * 5000, ["a"] * 5000)) < 10_000
    with pytest.raises(ValueError, match="counterpart"):
        trade_off([1, 2], [1], ["a", "b"])


def test_ten_systems_have_ten_markers():
    page = trade_off(np.arange(10) / 10, np.arange(10) / 10, [f"s{place}" for place in range(10)])
    looks = {(re.sub(r"^M\d+ \d+", "", path), fill == "#fff")
             for path, fill in re.findall(r'<path d="([^"]*)" fill="([^"]*)"', page)}
    assert len(looks) == 10


def test_means_are_one_point_a_system_with_its_interval():
    x, y, systems = [0.0, 0.4, 0.5, 0.7], [0.9, 0.7, 0.4, 0.6], ["a", "a", "b", "b"]
    page = trade_off(x, y, systems, means=True, intervals={"a": (0.1, 0.3, 0.7, 0.9)})
    assert page.count("scale(1.6)") == 2 and "a: 2 outputs, mean 0.200, 0.800" in page
    plain = trade_off(x, y, systems, means=True)
    assert page.count("<line") - plain.count("<line") >= 2
    assert Page(trade_off([np.nan], [1.0], ["a"], means=True)).text.count("a (0)") == 1


def test_bars_are_as_long_as_their_shares_and_differ_without_colour():
    page = word_bars(["a", "b", " "], [[0.5, 1], [0.2, 0], [7, 0.1]], ["x", "y", "z"], told="three words",
                     looks=["full", "dashed", "pale"],
                     ends=("0", "1"), edges=[(0.25, "low"), (0.75, "high")])
    assert re.findall(r'<rect[^>]*? width="([\d.]+)"', page) == ["100.0", "200.0", "40.0", "1", "200.0", "20.0"]
    assert (page.count("stroke-dasharray=\"3 2\"") == 1 and Page(page).text.startswith("axby(space)z")
            and "three words: a x, b y" in page)
    assert page.count('stroke-dasharray="2 3"') == 2
    assert word_bars(["w"] * 90, np.ones(90), ["1"] * 90, told="many").count("<rect") == 80
    for empty in ([], np.zeros((0, 2))):
        assert "<rect" not in word_bars([], empty, [], told="no words")
    with pytest.raises(ValueError, match="counterpart"):
        word_bars(["a"], [0.1, 0.2], ["x"], told="too many")


def test_the_point_lies_on_its_curve():
    page = curve_and_point([0, 5, 10], [0, 1, 1], (5, 1), x_label="length", y_label="penalty")
    x, y = re.search(r'<circle cx="([\d.]+)" cy="([\d.]+)"', page).groups()
    assert f"{x},{y}" in re.search('points="([^"]*)"', page)[1].split() and "at 5.000 it is 1.000" in page


# ---- the road

def test_the_road_has_every_stop_and_marks_one():
    for here in ROAD:
        page = draw_road(here)
        assert page.count('font-weight="bold"') == 1 and page.count(f'fill="{drawing.VERMILION}"') == 1
        assert all(f">{stop}<" in page for stop in ROAD) and f"you are at {here}" in page
        assert float(re.search(r'viewBox="0 0 (\d+)', page)[1]) <= 900
    assert 'font-weight="bold"' not in draw_road()


def test_a_stop_that_is_not_on_the_road_is_refused():
    with pytest.raises(ValueError, match="blue"):
        draw_road("blue")
