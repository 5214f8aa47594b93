"""Elements of a page and of a drawing, made in one way, which escapes every text; the package's colours"""

import base64
import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup, escape

from ..core.checks import InputError
from ..core.display import displayable
from ..core.files import write_whole


def tag(
    name: str,  # an element of HTML or SVG
    *content,  # texts, numbers and elements; whatever is not an element is escaped
    **attributes,  # `class_` is written class, `stroke_width` stroke-width; values are escaped
) -> Markup:
    """One element of a page, from parts that are text until an element says otherwise."""
    head = "".join(
        f' {key.strip("_").replace("_", "-")}="{_safe(value)}"' for key, value in attributes.items()
    )
    return Markup(f"<{name}{head}>{''.join(map(_safe, content))}</{name}>")


def _safe(value) -> Markup:
    return escape(value if hasattr(value, "__html__") else displayable(str(value)))


class Picture(Markup):
    """A picture for a page, in HTML and SVG; a string, in which every text is escaped."""

    @property
    def still(self) -> Markup:
        """The same with each drawing as an image, for pages that strip SVG elements."""
        return Markup(_DRAWING.sub(lambda drawing: as_image(drawing[0]), str(self)))

    def save(self, path: str | Path) -> None:
        """Write the drawing, its parts one below the other, to a file that ends in .svg, or the whole to one that ends
        in .html. Raises: InputError for another ending, or a picture of words alone as .svg."""
        kind = Path(path).suffix.lower()
        drawings = _DRAWING.findall(str(self))
        if kind == ".html":
            write_whole(Path(path), f"<!DOCTYPE html><meta charset=utf-8>{framed(self)}")
        elif kind == ".svg" and drawings:
            write_whole(Path(path), _stacked(drawings))
        else:
            raise InputError("ends in .svg, or .html for pictures of words", argument="path")

    def _repr_html_(self) -> str:
        page = self.still
        return str(page if 'class="tsteval-picture"' in page else framed(page))

    def __repr__(self) -> str:
        page = " ".join(
            [
                *re.findall('aria-label="([^"]*)"', self),
                re.sub("<[^>]*>", " ", _DRAWING.sub("", str(self))),
            ]
        )
        words = " ".join(Markup(page).unescape().split())
        return f"Picture: {words if len(words) <= 70 else words[:69] + '…'}"


_NAMESPACES = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
_DRAWING = re.compile("<svg .*?</svg>", re.S)  # drawings do not nest


def _stacked(drawings: Sequence[str]) -> str:
    """Drawings one below the other, as one file."""
    sizes = [
        [int(re.search(f'{side}="([0-9]+)"', drawing)[1]) for side in ("width", "height")]
        for drawing in drawings
    ]
    tops = np.cumsum([0, *(tall + 10 for _, tall in sizes)])
    parts = [
        drawing.replace("<svg ", f'<svg y="{top}" ', 1) for drawing, top in zip(drawings, tops)
    ]
    wide = max(wide for wide, _ in sizes)
    return (
        f'<svg {_NAMESPACES} width="{wide}" height="{tops[-1] - 10}"><rect width="100%" '
        f'height="100%" fill="#fff"/>{"".join(parts)}</svg>'
    )


def as_file(
    drawing: str,  # an <svg> element of a page
) -> str:
    """A drawing as a file of its own, which has to name its language; a page names no address."""
    return drawing.replace("<svg ", f"<svg {_NAMESPACES} ", 1)


def as_image(
    drawing: str,  # an <svg> element with a label
) -> Markup:
    """A drawing as an image, for pages that strip SVG elements."""
    alt = Markup(re.findall('aria-label="([^"]*)"', drawing)[0])
    data = base64.b64encode(as_file(drawing).encode()).decode()
    return Markup('<img alt="{}" src="data:image/svg+xml;base64,{}">').format(alt, data)


def framed(
    *content,  # texts and elements
) -> Picture:
    """Parts of a picture on their white ground."""
    return Picture(
        tag(
            "div",
            *content,
            class_="tsteval-picture",
            style="background:#fff;color:#111;padding:8px 10px;font:14px/1.5 sans-serif;"
            "overflow-x:auto;overflow-wrap:break-word",
        )
    )


def answered(
    sentence: str,  # what the picture says
    *content,  # texts and elements
) -> Picture:
    """A picture below the sentence that says what it shows."""
    return framed(tag("p", tag("strong", isolated(sentence)), style="margin:.2em 0 .6em"), *content)


BLUE, VERMILION, SKY, GREY = "#0072B2", "#D55E00", "#56B4E9", "#8A8A8A"
SHOWN_BARS = 80  # words of a picture that is drawn; the others are counted
INK, FAINT = "#111", "#555"  # type, and type that steps back; both are dark on white


def svg(
    width: float,  # pixels
    height: float,
    label: str,  # what the drawing shows, for those who cannot see it
    *content: Markup,
) -> Markup:
    """A drawing of a fixed size on a white ground."""
    return tag(
        "svg",
        *content,
        viewBox=f"0 0 {width:.0f} {height:.0f}",
        width=round(width),
        height=round(height),
        role="img",
        aria_label=label,
        style=f"font:12px sans-serif;background:#fff;fill:{INK}",
    )


def label(
    x: float,
    y: float,  # of the line that the letters stand on
    text,  # a text, a number, or elements
    anchor: str = "start",  # start | middle | end: which part of the text stands at x
    **attributes,  # of the SVG element
) -> Markup:
    """A text in a drawing."""
    return tag(
        "text",
        tag("tspan", text, style="unicode-bidi:isolate"),
        x=round(float(x), 1),
        y=round(float(y), 1),
        text_anchor=anchor,
        **attributes,
    )


def shortened(
    text: str,
    most: int = 20,  # Latin characters' worth of width
    middle: bool = False,  # whether the middle is left out: names often differ at their end
) -> str:  # one line, with an ellipsis where it was cut
    """A name as short as a label has to be."""
    line = " ".join(displayable(text).split())
    widths = [2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in line]
    if sum(widths) <= most:
        return line
    last = most // 2 if middle else 0
    head = int(np.searchsorted(np.cumsum(widths), most - last, side="right"))
    tail = int(np.searchsorted(np.cumsum(widths[::-1]), last, side="right"))
    return f"{line[: max(head - 1, 0)]}…{line[len(line) - tail :]}"


# of a label that stands on lines
HALO: dict[str, Any] = {"stroke": "#fff", "stroke_width": 4, "paint_order": "stroke"}


def isolated(
    text: str,
) -> Markup:
    """Somebody's text in a page, kept apart from the direction of writing around it."""
    return tag("bdi", text)


def line(
    x1: float,
    y1: float,
    x2: float,
    y2: float,
    colour: str = GREY,
    dashes: str = "none",  # lengths of dashes and gaps
    width: float = 1,
) -> Markup:
    """A straight line in a drawing."""
    return tag(
        "line",
        x1=round(float(x1), 1),
        y1=round(float(y1), 1),
        x2=round(float(x2), 1),
        y2=round(float(y2), 1),
        stroke=colour,
        stroke_dasharray=dashes,
        stroke_width=width,
    )


def heading(
    text: str,
) -> Markup:
    """A line in bold type."""
    return tag("div", tag("strong", isolated(text)))


def bar(
    share: float,  # 0..1; NaN and 0 give no bar
    colour: str = BLUE,
    outline: bool = False,  # an outlined bar is told from a full one without colour
) -> Markup:
    """A bar for a number in a cell of a table."""
    if not share > 0:
        return Markup("")
    fill = f"border:2px solid {colour}" if outline else f"background:{colour}"
    part = float(np.clip(share, 0, 1))
    # all bars shrink alike on a narrow page
    size = f"height:12px;width:{150 * part:.0f}px;max-width:{13 * part:.1f}vw;min-width:1px"
    return tag("span", style=f"display:inline-block;box-sizing:border-box;{size};{fill}")


def side_by_side(
    *content,  # texts and elements
) -> Markup:
    """Parts beside each other where there is room, below each other where there is not."""
    return tag(
        "div",
        *(tag("div", part) for part in content),
        style="display:flex;flex-wrap:wrap;gap:8px 32px;align-items:flex-start",
    )


def _breaks(value) -> str:
    """How a cell breaks into lines: what is short never does, and a text not before it is ten letters wide."""
    shown = str(value)
    if "<" in shown:
        return "overflow-wrap:anywhere;min-width:min(10em, 60vw)" if "<bdi>" in shown else ""
    return "white-space:nowrap" if len(shown) <= 12 else "overflow-wrap:anywhere;min-width:10em"


def table(
    header: Sequence,  # a name for each column
    rows: Sequence[Sequence],  # cells: texts, numbers, elements
    caption: str = "",
) -> Markup:
    """A table, its first column and its short cells unbroken; a column of texts stays wide enough to read."""
    cell = "padding:2px 10px 2px 0;text-align:left;vertical-align:top"
    named = [
        tag(
            "tr",
            *(
                (tag("th", name, scope="col", style=cell) if str(name) else tag("td", style=cell))
                for name in header
            ),
        )
    ]
    for first, *others in rows:
        cells = (tag("td", value, style=f"{cell};{_breaks(value)}") for value in others)
        named.append(tag("tr", tag("td", first, style=f"{cell};white-space:nowrap"), *cells))
    named = named if any(header) else named[1:]
    title = tag(
        "caption", isolated(caption), style="text-align:left;font-weight:bold;padding:6px 0 2px"
    )
    return tag(
        "table",
        *([title] if caption else []),
        *named,
        style=f"border-collapse:collapse;margin:0;font-size:13px;color:{INK}",
    )
