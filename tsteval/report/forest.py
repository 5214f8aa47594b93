"""Systems or differences with their intervals, a panel a score, coloured by what the comparison said"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from markupsafe import Markup

from ..core.display import number
from .charts import axis_scale, round_ticks, tick_text
from .conclusions import BETTER, WORSE
from .findings import Findings, column_digits
from .markup import (
    BLUE,
    FAINT,
    GREY,
    HALO,
    INK,
    VERMILION,
    Picture,
    label,
    line,
    shortened,
    svg,
    tag,
)


@dataclass(frozen=True)
class ForestRow:
    """A number with its interval, and what is known of it."""

    name: str
    value: float | None
    low: float | None = None
    high: float | None = None
    verdict: str = ""  # as from `conclusions.verdict`; empty: nothing is said
    digits: int = 3  # places after the point


@dataclass(frozen=True)
class Panel:
    """A score, with a row for each system or difference."""

    title: str
    rows: Sequence[ForestRow]


# pixels; four panels stand beside each other on a desk, one on a phone, with letters as large as the page's
_LEFT = 26
_RIGHT = 214
_TOP = 28
_ROW = 54
_WIDE = 306
_letters = partial(label, font_size=16)


def _mark(x: float, y: float, verdict: str) -> Markup:
    if verdict == WORSE:
        return tag("rect", x=round(x - 5, 1), y=y - 5, width=10, height=10, fill=VERMILION)
    filled = {BETTER: BLUE, "": INK}.get(verdict)
    return tag(
        "circle",
        cx=round(x, 1),
        cy=y,
        r=5,
        fill=filled or "#fff",
        stroke=filled or INK,
        stroke_width=1.5,
    )


def _row(row: ForestRow, top: float, place) -> list[Markup]:
    """Name and verdict on one line, below them the interval and the number."""
    y = top + 33
    parts = [
        _letters(0, top + 18, shortened(row.name, 16), **HALO),
        _letters(_WIDE, top + 18, shortened(row.verdict, 16), "end", fill=FAINT, **HALO),
        _letters(_WIDE, y + 6, number(row.value, row.digits, missing="none"), "end", **HALO),
    ]
    if row.value is None:
        return parts
    colour = {BETTER: BLUE, WORSE: VERMILION, "": INK}.get(row.verdict, GREY)
    if row.low is not None and row.high is not None:
        parts += [line(place(row.low), y, place(row.high), y, colour, width=3)]
        parts += [
            line(place(end), y - 5, place(end), y + 5, colour, width=2)
            for end in (row.low, row.high)
        ]
    return [*parts, _mark(float(place(row.value)), y, row.verdict)]


def _drawn(panel: Panel, origin: bool) -> Markup:
    ends = [
        value for row in panel.rows for value in (row.value, row.low, row.high) if value is not None
    ]
    ticks = round_ticks([*ends, *([0] if origin else [])], most=4)
    place = axis_scale(ticks, _LEFT, _RIGHT)
    bottom = _TOP + _ROW * len(panel.rows)
    parts = [_letters(0, 16, shortened(panel.title, 26), font_weight="bold")]
    for tick in ticks:
        zero = abs(tick) < 1e-12
        parts += [
            line(place(tick), _TOP, place(tick), bottom, INK if zero else "#ccc"),
            _letters(place(tick), bottom + 18, tick_text(tick), "middle", fill=FAINT),
        ]
    told = []
    for at, row in enumerate(panel.rows):
        parts += _row(row, _TOP + _ROW * at, place)
        interval = (
            ""
            if row.low is None
            else f" ({number(row.low, row.digits)} to {number(row.high, row.digits)})"
        )
        told.append(
            f"{row.name} {number(row.value, row.digits, missing='none')}{interval} {row.verdict}".strip()
        )
    return svg(_WIDE, bottom + 26, f"{panel.title}: {'; '.join(told)}", *parts)


def panels_picture(
    panels: Iterable[Panel],
    origin: bool = False,  # whether 0 belongs to every axis, as for differences
) -> Picture:
    """Panels of intervals, as many beside each other as fit."""
    drawings = [
        tag("div", _drawn(panel, origin), style="flex:1 1 306px;max-width:330px")
        for panel in panels
    ]
    return Picture(
        tag("div", *drawings, class_="panels", style="display:flex;flex-wrap:wrap;gap:14px 22px")
    )


def systems_forest(
    found: Findings,
) -> Picture:
    """Each system's scores with their intervals, by the columns that stand for their metrics."""
    said = {
        (pair["a"], row["metric"]): row["verdict"]
        for pair in found.comparisons
        for row in pair["metrics"]
    }
    headings = _titles(found)
    return panels_picture(
        Panel(
            headings[column],
            [
                ForestRow(
                    str(row["system"]),
                    row[column],
                    row[f"{column}_low"],
                    row[f"{column}_high"],
                    said.get((row["system"], column), ""),
                    column_digits(found.systems, column),
                )
                for row in found.systems
            ],
        )
        for column in found.leading
    )


def differences_forest(
    found: Findings,  # with at least one comparison
) -> Picture:
    """The differences of the other systems from the baseline, with their intervals."""
    headings = _titles(found)
    return panels_picture(
        (
            Panel(
                headings[column],
                [
                    ForestRow(
                        pair["a"],
                        row["difference"],
                        row["low"],
                        row["high"],
                        row["verdict"],
                        column_digits(found.systems, column),
                    )
                    for pair in found.comparisons
                    for row in pair["metrics"]
                    if row["metric"] == column
                ],
            )
            for column in found.leading
        ),
        origin=True,
    )


def _titles(found: Findings) -> dict[str, str]:
    """The headings of the leading columns with their questions."""
    return {
        column: f"{metric['question']}: {heading}" if metric["question"] else heading
        for metric in found.metrics
        for column, heading in list(metric["columns"].items())[:1]
    }
