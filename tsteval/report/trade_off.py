"""Outputs or systems as points between two scores, with names that do not run into each other"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from markupsafe import Markup
from numpy.typing import ArrayLike

from tsteval.report.markup import (
    BLUE,
    FAINT,
    GREY,
    HALO,
    INK,
    SKY,
    VERMILION,
    Picture,
    label,
    line,
    shortened,
    svg,
    tag,
)

from ..core.checks import check_equal_lengths
from .charts import axis_scale, round_ticks, text_width, tick_text

# circle, square, triangle, diamond, triangle on its tip; drawn from the point where they stand
_MARKERS = (
    "m-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
    "m-3.5-3.5h7v7h-7z",
    "m0-4 4.5 7h-9z",
    "m0-5 5 5-5 5-5-5z",
    "m-5-2h10l-5 7z",
)
_SHADES = (BLUE, VERMILION, SKY, GREY, INK)


@dataclass(frozen=True)
class Means:
    """What is drawn beside the means of systems."""

    # system -> ends of the mean in x, then in y
    intervals: Mapping[str, tuple[float, float, float, float]] = field(default_factory=dict)
    front: Iterable[
        str
    ] = ()  # systems whose means are linked by stairs, such as those of the Pareto front


def trade_off(
    x: ArrayLike,  # (N,) a number for each output, such as its style transfer intensity
    y: ArrayLike,  # (N,) another, such as its content preservation score
    systems: Iterable[str],  # (N,) the system of each output
    *,
    labels: tuple[str, str] = (
        "style transfer intensity",
        "content preservation score",
    ),  # of the two axes
    selected: int | None = None,  # row of the output to draw a ring around
    rows: ArrayLike | None = None,  # rows that are drawn; None: all. The axes are those of all
    means: Means
    | None = None,  # one point a system, the mean of its outputs that are drawn; None: the outputs
    below: bool = False,  # the list of systems stands below, for narrow pages
) -> Picture:
    """One number against another for each output of one or more systems.

    Raises: InputError if the columns differ in length.
    """
    across = np.asarray(x, dtype=float)
    up = np.asarray(y, dtype=float)
    names = list(systems)
    check_equal_lengths(x=across.tolist(), y=up.tolist(), systems=names)
    groups = _groups(across, up, names, rows)
    ends = _mean_intervals(groups, across, up, means.intervals if means else {})
    drawn_values = (
        [[value for end in ends.values() for value in end[axis]] for axis in (0, 1)]
        if means
        else (across, up)
    )
    ticks = [round_ticks(values) for values in drawn_values]
    linked = [
        system for system in groups if means and system in set(means.front) and system in ends
    ]
    drawn = (
        _stairs([tuple(axis[0] for axis in ends[system]) for system in linked], ticks)
        + _mean_points(groups, ends, ticks)
        if means
        else _output_points(groups, across, up, ticks, selected)
    )
    told = [
        f"{system}: {len(own)} outputs"
        + (", mean {:.3f}, {:.3f}".format(*(axis[0] for axis in ends[system])) if own else "")
        for system, own in groups.items()
    ]
    told += [f"not dominated: {', '.join(linked)}"] if means and linked else []
    wide, tall = (
        (380, 300 + 20 * -(-len(groups) // 2)) if below else (590, max(282, 64 + 20 * len(groups)))
    )
    return Picture(
        svg(
            wide,
            tall,
            f"{labels[1]} over {labels[0]}. {'; '.join(told)}",
            *_frame_of(ticks, *labels),
            *drawn,
            *_legend(groups, below),
        )
    )


def _groups(x: np.ndarray, y: np.ndarray, systems: list[str], rows) -> dict[str, list[int]]:
    """The rows of each system that are drawn."""
    kept = np.isfinite(x) & np.isfinite(y)
    if rows is not None:
        kept &= np.isin(np.arange(len(x)), np.asarray(rows, dtype=int))
    groups: dict[str, list[int]] = {system: [] for system in systems}
    for row in np.flatnonzero(kept):
        groups[systems[row]].append(int(row))
    return groups


def _mean_intervals(groups: dict, x: np.ndarray, y: np.ndarray, intervals: Mapping) -> dict:
    """For each system with outputs, in x and in y: the mean and, where given, the ends of its interval."""
    means = {system: ([x[own].mean()], [y[own].mean()]) for system, own in groups.items() if own}
    return {
        system: tuple(
            [*mean, *list(intervals.get(system, ()))[2 * axis : 2 * axis + 2]]
            for axis, mean in enumerate(both)
        )
        for system, both in means.items()
    }


def _places(ticks: list[np.ndarray]):
    """Scales of the two axes of the trade-off."""
    return axis_scale(ticks[0], 56, 366), axis_scale(ticks[1], 236, 26)


def trade_off_places(
    x: ArrayLike,  # (N,) as for `trade_off`
    y: ArrayLike,  # (N,)
    # all that the two axes span, such as ends of intervals too; None: x and y
    among: tuple[ArrayLike, ArrayLike] | None = None,
) -> np.ndarray:  # (N, 2) pixels from the left and from the top; NaN where one of the numbers is
    """Where `trade_off` draws the outputs, for what is to lie over them."""
    values = [np.asarray(one, dtype=float) for one in (x, y)]
    scales = _places([round_ticks(np.ravel(one)) for one in among or values])
    return np.stack([scale(one) for scale, one in zip(scales, values)], axis=1)


def _frame_of(ticks: list[np.ndarray], x_label: str, y_label: str) -> list[Markup]:
    across, down = _places(ticks)
    parts = [
        label(8, 14, shortened(y_label, 60)),
        label(211, 274, shortened(x_label, 50), "middle"),
    ]
    for tick in ticks[0]:
        zero = abs(tick) < 1e-12
        parts += [
            line(
                across(tick),
                26,
                across(tick),
                236,
                INK if zero else "#ddd",
                "4 3" if zero else "none",
            ),
            label(across(tick), 252, tick_text(tick), "middle", fill=FAINT),
        ]
    for tick in ticks[1]:
        parts += [
            line(56, down(tick), 366, down(tick), "#ddd"),
            label(50, down(tick) + 4, tick_text(tick), "end", fill=FAINT),
        ]
    return parts


def _pen(place: int) -> tuple[str, dict]:
    """A system's marker and how to fill it; the second five are open."""
    colour = _SHADES[place % 5]
    opened = place // 5 % 2
    return _MARKERS[place % 5], {
        "fill": "#fff" if opened else colour,
        "stroke": colour if opened else INK,
        "stroke_width": 1.5 if opened else 0.5,
    }


def _legend(groups: dict[str, list[int]], below: bool = False) -> list[Markup]:
    """The systems with their markers and numbers of outputs: at the right, or below in two columns."""
    parts = []
    for place, (system, own) in enumerate(groups.items()):
        marker, pen = _pen(place)
        x, y = (
            (16 + 182 * (place % 2), 296 + 20 * (place // 2)) if below else (416, 34 + 20 * place)
        )
        parts += [
            tag("path", d=f"M{x} {y}{marker}", **pen),
            label(
                x + 12,
                y + 4,
                tag("tspan", shortened(system, 18), style="unicode-bidi:isolate")
                + f" ({len(own)})",
            ),
        ]
    return parts


def _output_points(
    groups: dict, x: np.ndarray, y: np.ndarray, ticks: list[np.ndarray], selected
) -> list[Markup]:
    """One path a system, so that thousands of outputs stay small; outputs at the same place are drawn once."""
    across, down = _places(ticks)
    parts = []
    for place, own in enumerate(groups.values()):
        marker, pen = _pen(place)
        places = dict.fromkeys(
            zip(np.round(across(x[own])).astype(int), np.round(down(y[own])).astype(int))
        )
        parts.append(
            tag(
                "path",
                d="".join(f"M{left} {top}{marker}" for left, top in places),
                fill_opacity=0.75,
                **pen,
            )
        )
    if selected is not None and np.isfinite([x[selected], y[selected]]).all():
        parts.append(
            tag(
                "circle",
                cx=round(float(across(x[selected]))),
                cy=round(float(down(y[selected]))),
                r=9,
                fill="none",
                stroke=INK,
                stroke_width=2.5,
            )
        )
    return parts


def _stairs(points: list[tuple[float, float]], ticks: list[np.ndarray]) -> list[Markup]:
    """The border of what these points dominate, from the left edge down to the axis."""
    if not points:
        return []
    across, down = _places(ticks)
    path = ""
    left = 56.0
    for x, y in sorted(points, key=lambda point: (point[0], -point[1])):
        path += f"{'L' if path else 'M'}{left:.1f} {down(y):.1f}L{across(x):.1f} {down(y):.1f}"
        left = float(across(x))
    return [
        tag(
            "path",
            d=f"{path}L{left:.1f} 236",
            fill="none",
            stroke=VERMILION,
            stroke_width=1.5,
            stroke_dasharray="6 4",
        )
    ]


def _mean_points(groups: dict, ends: dict, ticks: list[np.ndarray]) -> list[Markup]:
    """A large marker a system, with the intervals of its two means as a cross."""
    across, down = _places(ticks)
    lines = []
    markers = []
    for place, system in enumerate(groups):
        if system not in ends:
            continue
        (marker, pen), ((x, *wide), (y, *tall)) = _pen(place), ends[system]
        if wide and tall:
            lines += [
                line(across(wide[0]), down(y), across(wide[1]), down(y), INK),
                line(across(x), down(tall[0]), across(x), down(tall[1]), INK),
            ]
        markers.append(
            tag(
                "path",
                d=f"M0 0{marker}",
                transform=f"translate({across(x):.1f} {down(y):.1f}) scale(1.6)",
                **pen,
            )
        )
    places = {system: (float(across(x[0])), float(down(y[0]))) for system, (x, y) in ends.items()}
    return lines + markers + _name_tags(places)


_AROUND = [
    (round(float(np.cos(turn)), 3), round(float(np.sin(turn)), 3))
    for turn in np.linspace(0, 2 * np.pi, 16, endpoint=False)
]


def _apart(one: tuple, other: tuple) -> bool:
    """Whether two boxes (left, top, right, bottom) have nothing in common."""
    return one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]


def _name_tags(places: Mapping[str, tuple[float, float]]) -> list[Markup]:
    """A name beside each marker where there is room: near it, or farther away with a line that leads there."""
    taken = [(x - 8, y - 8, x + 8, y + 8) for x, y in places.values()]
    parts = []
    for system, (x, y) in places.items():
        name = shortened(system, 14)
        wide = 6.5 * text_width(name) / 2 + 2
        for reach in (11, 18, 28, 40, 54, 70, 88, 110, 135, 160, 190):
            boxes = [(x + cos * (reach + wide), y + sin * (reach + 7)) for cos, sin in _AROUND]
            boxes = [(a - wide, b - 7, a + wide, b + 7) for a, b in boxes]
            free = next(
                (
                    box
                    for box in boxes
                    if box[0] >= 58
                    and box[2] <= 366
                    and box[1] >= 26
                    and box[3] <= 234
                    and all(_apart(box, other) for other in taken)
                ),
                None,
            )
            if free is None:
                continue
            taken.append(free)
            near = float(np.clip(x, free[0], free[2])), float(np.clip(y, free[1], free[3]))
            parts += [line(x, y, *near, FAINT)] if reach > 20 else []
            parts.append(
                label((free[0] + free[2]) / 2, free[3] - 3, name, "middle", class_="name", **HALO)
            )
            break
    return parts
