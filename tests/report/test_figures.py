"""A picture as matplotlib's figure: an artist for each mark, the same texts, the same picture, any of its formats."""

import io
import re
import sys
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib.colors import to_hex

from tests.report.drawings import HOSTILE, every_picture
from tsteval.core.checks import InputError
from tsteval.report import markup
from tsteval.report.charts import distribution_plot
from tsteval.report.figures import as_figure
from tsteval.report.forest import ForestRow, Panel, panels_picture
from tsteval.report.markup import Picture
from tsteval.report.workflow import Stage, workflow

WORDS = ("words", "list", "pair")  # pictures of words alone


def all_drawings(text="a $name$ <b>"):
    boxes = {
        "one": Stage(0, 0, (text, "again")),
        "two": Stage(1, 0, (text,)),
        "three": Stage(1, 1, (text,), True),
    }
    rows = [
        ForestRow(text, 0.2, 0.1, 0.3, verdict)
        for verdict in ("better", "worse", "", "not told apart")
    ]
    return {name: one for name, one in every_picture(text).items() if name not in WORDS} | {
        "distributions": distribution_plot({"one": [0.1, 0.2, 0.7], text: [0.3, 0.4]}, "shares"),
        "workflow": workflow(boxes, [("one", "two"), ("two", "three")], "how it goes"),
        "forest": panels_picture([Panel("Style", rows), Panel("Content", rows)]),
    }


def marks_of(figure):
    (axes,) = figure.axes
    return {"text": axes.texts, "line": axes.lines, "shape": axes.patches}


@pytest.mark.parametrize("name", all_drawings())
def test_every_drawing_becomes_a_figure_with_its_texts_and_marks(name):
    picture = all_drawings()[name]
    drawn = markup._stacked(markup._DRAWING.findall(str(picture)))
    found = marks_of(picture.figure())

    def count(*elements):
        return sum(drawn.count(f"<{element} ") for element in elements)

    assert len(found["text"]) == count("text") > 0 and len(found["line"]) == count(
        "line", "polyline"
    )
    assert (
        len(found["shape"]) == count("circle", "rect", "path") - 1
    )  # the white ground is the figure's own
    texts = [re.sub("<[^>]*>", "", one) for one in re.findall("<text .*?</text>", drawn)]
    assert [one.get_text() for one in found["text"]] == [
        markup.Markup(one).unescape() for one in texts
    ]
    ordered = sorted(
        (artist for kind in found.values() for artist in kind),
        key=lambda artist: artist.get_zorder(),
    )
    assert len({artist.get_zorder() for artist in ordered}) == len(ordered)


@pytest.mark.parametrize("name", all_drawings())
def test_a_figure_looks_like_its_drawing(name):
    """Ink in blocks of 8 by 8 pixels, against the drawing as resvg shows it with the same letters."""
    import resvg_py
    from PIL import Image

    picture = all_drawings()[name]
    fonts = str(Path(matplotlib.get_data_path()) / "fonts" / "ttf")
    target = io.BytesIO()
    drawn = markup._stacked(markup._DRAWING.findall(str(picture)))
    shown = bytes(resvg_py.svg_to_bytes(drawn, font_dirs=[fonts], sans_serif_family="DejaVu Sans"))
    picture.figure().savefig(target, dpi=96)
    blocks = []
    for image in (shown, target.getvalue()):
        ink = 255 - np.asarray(Image.open(io.BytesIO(image)).convert("L"), dtype=float)
        tall, wide = (side // 8 for side in ink.shape)
        blocks.append(ink[: 8 * tall, : 8 * wide].reshape(tall, 8, wide, 8).mean(axis=(1, 3)))
    assert (
        blocks[0].shape == blocks[1].shape
        and np.corrcoef(blocks[0].ravel(), blocks[1].ravel())[0, 1] > 0.95
    )
    assert blocks[1].sum() == pytest.approx(blocks[0].sum(), rel=0.1)


def test_marks_by_pencil():
    ink = {
        "fill": "#0072B2",
        "fill_opacity": 0.5,
        "stroke": "#D55E00",
        "stroke_width": 2,
        "stroke_dasharray": "6 4",
    }
    drawing = markup.svg(
        96,
        48,
        "marks",
        markup.tag("rect", x=10, y=20, width=30, height=10, **ink),
        markup.line(0, 1, 5, 1, "#111", "3 2", 2),
        markup.dot(50, 20, 4),
        markup.label(8, 40, "$1 & $2"),
        markup.tag("path", d="M0 0h2v3z", transform="translate(10 20) scale(2)", stroke="#111"),
    )
    figure = Picture(drawing + drawing).figure()
    found = marks_of(figure)
    assert figure.get_size_inches().tolist() == pytest.approx(
        [1, 106 / 96]
    )  # two of 48 pixels, ten between them
    box, _, triangle, lower, *_ = found["shape"]
    assert box.get_path().get_extents().bounds == (10, 20, 30, 10)
    assert lower.get_path().get_extents().bounds == (10, 78, 30, 10)
    assert (
        triangle.get_path().get_extents().bounds == (10, 20, 4, 6)
        and triangle.get_linewidth() == 1.5
    )
    assert (
        to_hex(box.get_facecolor(), True) == "#0072b280"
        and to_hex(box.get_edgecolor()) == "#d55e00"
    )
    assert box.get_linewidth() == 1.5 and found["line"][0].get_xydata().tolist() == [[0, 1], [5, 1]]
    text = found["text"][0]
    assert text.get_text() == "$1 & $2" and not text.get_parse_math() and text.get_fontsize() == 9
    with pytest.raises(InputError, match="<image>"):
        as_figure('<svg width="1" height="1"><image/></svg>')


@pytest.mark.parametrize("text", [text for text in HOSTILE if len(text) < 100])
def test_any_text_stays_a_text(text):
    for name, picture in all_drawings(text).items():
        assert picture.figure().axes[0].texts, name


@pytest.mark.parametrize(
    "kind, start", [("pdf", b"%PDF"), ("eps", b"%!PS"), ("svg", b"<?xml"), ("png", b"\x89PNG")]
)
def test_a_figure_is_saved_in_matplotlibs_formats_and_leaves_pyplot_alone(
    tmp_path, kind, start, monkeypatch
):
    monkeypatch.delitem(sys.modules, "matplotlib.pyplot", raising=False)
    every_picture("a")["curve"].figure().savefig(tmp_path / f"x.{kind}")
    assert (tmp_path / f"x.{kind}").read_bytes().startswith(
        start
    ) and "matplotlib.pyplot" not in sys.modules


def test_words_are_no_figure_and_savefig_says_what_there_is():
    with pytest.raises(InputError, match=r"save it as \.html"):
        Picture("<p>words</p>").figure()
    with pytest.raises(AttributeError, match=r'save\("x\.svg"\).*figure\(\)\.savefig\("x\.pdf"\)'):
        Picture("<p>words</p>").savefig("x.pdf")
    with pytest.raises(AttributeError, match=r"no attribute 'shown'$"):
        Picture("").shown()
