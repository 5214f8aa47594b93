"""A drawing's lines, shapes and texts as matplotlib's own, to be restyled and saved in any of its formats"""

import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from ..core.checks import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_POINTS, _INK = 72 / 96, "#111"  # points a pixel; what is filled where a drawing does not say


def as_figure(
    drawing: str,  # an SVG file, as `Picture.save` writes it
) -> "Figure":  # matplotlib's, which knows nothing of pyplot
    """A drawing as a figure, with an artist for each of its lines, shapes and texts.

    Raises: InputError for an element that no drawing of the package has.
    """
    from matplotlib.figure import Figure

    root = ElementTree.fromstring(drawing)
    wide, tall = (float(root.get(side)) for side in ("width", "height"))
    figure = Figure((wide / 96, tall / 96), dpi=96, facecolor="white")
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, wide), ylim=(tall, 0))
    axes.set_axis_off()
    _draw(axes, root, 0)
    return figure


def _draw(axes, parent, top: float) -> None:
    """What an element holds, so many pixels further down; what comes later lies above."""
    for part in parent:
        name = part.tag.rpartition("}")[2]
        order = len(axes.patches) + len(axes.lines) + len(axes.texts) + 2
        if name == "svg":
            _draw(axes, part, float(part.get("y", 0)))
        elif name == "text":
            _write(axes, part, top, order)
        elif name in ("line", "polyline"):
            _line(axes, part, top, order)
        elif name not in _SHAPES:
            raise InputError(f"a drawing with <{name}> cannot be a figure")
        elif part.get("width") != "100%":
            _shape(axes, part, _SHAPES[name](part), top, order)


def _numbers(part, *names: str) -> list[float]:
    return [float(part.get(name, 0)) for name in names]


def _write(axes, part, top: float, order: int) -> None:
    from matplotlib.patheffects import withStroke

    x, y = _numbers(part, "x", "y")
    halo = [
        withStroke(
            linewidth=_POINTS * float(part.get("stroke-width", 1)), foreground=part.get("stroke")
        )
    ]
    axes.text(
        x,
        y + top,
        "".join(part.itertext()),
        color=part.get("fill", _INK),
        zorder=order,
        parse_math=False,
        horizontalalignment={"middle": "center", "end": "right"}.get(
            part.get("text-anchor"), "left"
        ),
        verticalalignment="baseline",
        fontsize=_POINTS * float(part.get("font-size", 12)),
        fontweight=part.get("font-weight", "normal"),
        path_effects=halo if part.get("stroke") else None,
    )


def _stroke(part, scale: float = 1) -> dict:
    width = float(part.get("stroke-width", 1))
    dashes = part.get("stroke-dasharray", "none")
    return {
        "linewidth": width * scale * _POINTS if part.get("stroke", "none") != "none" else 0,
        "linestyle": "-"
        if dashes == "none"
        else (0, [float(one) / width for one in dashes.split()]),
    }


def _line(axes, part, top: float, order: int) -> None:
    from matplotlib.lines import Line2D

    if part.get("points"):
        x, y = zip(*(map(float, point.split(",")) for point in part.get("points").split()))
    else:
        x = _numbers(part, "x1", "x2")
        y = _numbers(part, "y1", "y2")
    axes.add_line(
        Line2D(
            x,
            [one + top for one in y],
            color=part.get("stroke"),
            zorder=order,
            **_stroke(part),
            solid_capstyle="butt",
            dash_capstyle="butt",
            solid_joinstyle="miter",
        )
    )


def _shape(axes, part, path, top: float, order: int) -> None:
    from matplotlib.colors import to_rgba
    from matplotlib.patches import PathPatch
    from matplotlib.transforms import Affine2D

    left, down, scale = [*map(float, re.findall(r"-?[\d.]+", part.get("transform", "0 0 1"))), 1][
        :3
    ]
    placed = Affine2D().scale(scale).translate(left, down + top).transform_path(path)
    fill = to_rgba(part.get("fill", _INK), float(part.get("fill-opacity", 1)))
    axes.add_patch(
        PathPatch(
            placed,
            facecolor=fill,
            edgecolor=part.get("stroke", "none"),
            zorder=order,
            **_stroke(part, scale),
        )
    )


def _circle(part):
    from matplotlib.path import Path

    x, y, radius = _numbers(part, "cx", "cy", "r")
    return Path.circle((x, y), radius)


def _box(part):
    x, y, wide, tall, r = _numbers(part, "x", "y", "width", "height", "rx")
    if not r:
        return _outline(f"M{x} {y}h{wide}v{tall}h{-wide}z")
    across = wide - 2 * r
    down = tall - 2 * r
    turns = [
        f"a{r} {r} 0 0 1 {right} {below}" for right, below in ((r, r), (-r, r), (-r, -r), (r, -r))
    ]
    return _outline(
        f"M{x + r} {y}h{across}{turns[0]}v{down}{turns[1]}h{-across}{turns[2]}v{-down}{turns[3]}z"
    )


def _outline(letters: str):
    from fontTools.pens.recordingPen import RecordingPen
    from fontTools.svgLib.path import parse_path
    from matplotlib.path import Path

    codes = {
        "moveTo": Path.MOVETO,
        "lineTo": Path.LINETO,
        "curveTo": Path.CURVE4,
        "qCurveTo": Path.CURVE3,
    }
    pen = RecordingPen()
    drawn = []
    parse_path(letters, pen)
    for name, points in pen.value:
        drawn += (
            [((0, 0), Path.CLOSEPOLY)]
            if name == "closePath"
            else [(point, codes[name]) for point in points]
        )
    return Path(*zip(*drawn))


_SHAPES = {"circle": _circle, "rect": _box, "path": lambda part: _outline(part.get("d"))}
