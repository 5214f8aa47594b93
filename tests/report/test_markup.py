"""Texts stay texts, every drawing has a description and legible type."""

import base64
import html
import re
import subprocess
import sys
import unicodedata
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.report.drawings import HOSTILE, Page, every_picture
from tsteval.core.checks import InputError
from tsteval.core.display import displayable
from tsteval.report import markup as drawing
from tsteval.report.markup import Picture, framed, shortened, table, tag


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_texts_stay_texts_and_drawings_are_sound(text):
    for name, picture in every_picture(text).items():
        assert isinstance(picture, Picture), name
        picture.encode("utf-8")  # a lone surrogate would stop the message that carries it
        assert not Page(picture).active and not re.search("[\x00-\x08\x0b-\x1f]", picture), name
        for found in re.findall("<svg .*?</svg>", picture, re.S):
            ElementTree.fromstring(
                found
            )  # XML is strict: one wrong character and there is no image


def test_every_drawing_has_a_description_and_legible_type():
    for name, picture in every_picture("a name").items():
        drawings = re.findall("<svg .*?</svg>", picture, re.S)
        assert bool(drawings) == (name not in ("words", "list", "pair"))
        for found in drawings:
            assert (
                'role="img"' in found and len(re.search('aria-label="([^"]*)"', found)[1]) > 20
            ), name
            sizes = re.findall(r'font-size="([\d.]+)"', found) + re.findall(r"font:(\d+)px", found)
            assert (
                min(map(float, sizes)) >= 11
                and "background:#fff" in found
                and "max-width" not in found
            ), name


def test_a_displayed_picture_stands_on_white_and_holds_images_instead_of_svg():
    for name, picture in every_picture("a name").items():
        page = picture._repr_html_()
        assert (
            page.count('class="tsteval-picture"') == 1 and "<svg" not in page and len(page) < 60_000
        ), name
        assert drawing.framed(picture)._repr_html_().count('class="tsteval-picture"') == 1
        images = re.findall('<img alt="([^"]+)" src="data:image/svg.xml;base64,([^"]+)">', page)
        assert len(images) == picture.count("<svg "), name
        for description, image in images:
            root = ElementTree.fromstring(base64.b64decode(image))
            assert root.tag == "{http://www.w3.org/2000/svg}svg" and html.unescape(
                description
            ) == root.get("aria-label")
        assert (
            repr(picture).startswith("Picture: ")
            and len(repr(picture)) < 90
            and "<" not in repr(picture)
        )


def test_type_is_dark_on_white():
    """Every fill of a text has a contrast of 4.5 to 1 or more against white (WCAG 2.1, 1.4.3)."""

    def contrast(colour):
        colour = "#" + "".join(2 * digit for digit in colour[1:]) if len(colour) == 4 else colour
        parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        linear = [
            part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
        ]
        return 1.05 / (np.dot(linear, [0.2126, 0.7152, 0.0722]) + 0.05)

    fills = {
        fill
        for picture in every_picture("a").values()
        for fill in re.findall(r'<text[^>]*? fill="(#\w+)"', picture)
    }
    assert fills and all(contrast(fill) >= 4.5 for fill in fills | {drawing.INK})


def test_drawing_needs_neither_matplotlib_nor_a_model():
    code = (
        "import tsteval.report.words as d, sys; d.draw_road('text'); "
        "print([name for name in ('matplotlib', 'torch', 'ipywidgets', 'pandas') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@given(
    st.text(st.characters(), max_size=60), st.text(st.characters(), max_size=60)
)  # surrogates included
def test_a_tag_shows_any_text_as_text(text, title):
    page = tag("p", text, title=title)
    parsed = Page(page)
    assert parsed.elements == ["p"] and not parsed.active
    assert html.unescape(page[page.index(">") + 1 : -4]) == displayable(text)
    page.encode("utf-8")


@given(st.text(st.characters(), max_size=60))
def test_displayable_keeps_the_length_and_every_sound_character(text):
    shown = displayable(text)
    assert len(shown) == len(text) and displayable(shown) == shown
    assert all(
        new == old or unicodedata.category(old) in ("Cc", "Cs", "Cn")
        for new, old in zip(shown, text)
    )


def test_different_control_characters_look_different():
    assert (
        displayable("a\x07\x08\x7f") == "a\u2407\u2408\u2421"
        and displayable("\ud83d\x9f") == "\ufffd\ufffd"
    )


@given(st.text(st.characters(), max_size=40), st.integers(2, 20))
def test_a_shortened_name_is_one_line_of_bounded_width(text, most):
    name = shortened(text, most)
    assert (
        sum(2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in name) <= most
        and "\n" not in name
    )


def test_short_cells_never_break_and_texts_stay_readable():
    page = table(["a", "b", "c"], [["one", "0.123", "a long text that has to break somewhere"]])
    assert (
        page.count("white-space:nowrap") == 2
        and page.count("min-width:10em") == 1
        and "overflow-wrap:break-word" in framed(page)
    )


def test_a_picture_is_saved_as_a_drawing_or_a_page(tmp_path):
    one = drawing.svg(40, 20, "a <b> & c", drawing.label(1, 9, "x & <y>"))
    Picture(tag("div", one, one)).save(tmp_path / "two.svg")
    root = ElementTree.parse(tmp_path / "two.svg").getroot()
    inside = [part.get("y") for part in root if part.tag.endswith("svg")]
    assert root.get("height") == "50" and inside == ["0", "30"]
    Picture("<p>words</p>").save(str(tmp_path / "words.html"))
    assert "<p>words</p>" in (tmp_path / "words.html").read_text()
    for name in ("words.svg", "words.png", "words.pdf"):
        with pytest.raises(InputError, match=r"ends in \.svg"):
            Picture("<p>words</p>").save(tmp_path / name)
