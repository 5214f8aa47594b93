"""How a score comes about, as a drawing: texts and numbers in white boxes, models in grey ones, arrows between them"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from markupsafe import Markup

from ..core.checks import InputError
from .markup import FAINT, INK, Picture, label, line, svg, tag


class Stage(NamedTuple):
    """A box of a workflow."""

    column: float  # its place, counted from 0
    row: float
    lines: tuple[str, ...]  # what is written in it, line by line
    model: bool = False  # whether it works (grey, bold) or is data (white)


_WIDE = 128
_TALL = 46
_ACROSS = 158
_DOWN = 66  # a box, and from one box to the next


def workflow(
    stages: Mapping[str, Stage],  # a name for each box
    arrows: Iterable[tuple[str, str]],  # from the box of one name to that of another
    alt: str,  # what the drawing shows, for those who cannot see it
) -> Picture:
    """Boxes with arrows between them. Raises: InputError for an arrow whose box is not there."""
    arrows = list(arrows)
    if odd := [name for arrow in arrows for name in arrow if name not in stages]:
        raise InputError(f"there is no stage called {odd[0]!r}; the stages are {', '.join(stages)}")
    parts = [part for start, end in arrows for part in _arrow(stages[start], stages[end])]
    parts += [part for stage in stages.values() for part in _box(stage)]
    columns, rows = (max(stage[axis] for stage in stages.values()) for axis in (0, 1))
    return Picture(svg(_ACROSS * columns + _WIDE + 8, _DOWN * rows + _TALL + 8, alt, *parts))


def _corner(stage: Stage) -> tuple[float, float]:
    return 4 + _ACROSS * stage.column, 4 + _DOWN * stage.row


def _box(stage: Stage) -> list[Markup]:
    x, y = _corner(stage)
    box = tag(
        "rect",
        x=x,
        y=y,
        width=_WIDE,
        height=_TALL,
        rx=5,
        fill="#ddd" if stage.model else "#fff",
        stroke=INK,
    )
    weight = {"font_weight": "bold"} if stage.model else {}
    first = y + _TALL / 2 + 4 - 7.5 * (len(stage.lines) - 1)
    return [
        box,
        *(
            label(x + _WIDE / 2, first + 15 * place, text, "middle", font_size=13, **weight)
            for place, text in enumerate(stage.lines)
        ),
    ]


def _arrow(start: Stage, end: Stage) -> list[Markup]:
    (x, y), (to_x, to_y) = _corner(start), _corner(end)
    if start.column == end.column:
        down = 1 if to_y > y else -1
        x1 = x2 = x + _WIDE / 2
        y1, y2 = (y + _TALL, to_y) if down > 0 else (y, to_y + _TALL)
        head = f"M{x2:g} {y2:g}l-5 {-9 * down}h10z"
    else:
        right = end.column > start.column
        x1, x2 = (x + _WIDE, to_x) if right else (x, to_x + _WIDE)
        y1 = y + _TALL / 2
        y2 = to_y + _TALL / 2
        head = f"M{x2:g} {y2:g}l{-9 if right else 9} -5v10z"
    return [line(x1, y1, x2, y2, FAINT, width=1.5), tag("path", d=head, fill=FAINT)]
