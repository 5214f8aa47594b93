"""Every chart of the package, drawn by matplotlib: intervals, distributions, bars, curves, points between two scores"""

import io
import re
import unicodedata
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from markupsafe import escape
from numpy.typing import ArrayLike

from ..core.checks import InputError, check_equal_lengths
from ..core.display import number
from ..training.calibration import expected_calibration_error
from .conclusions import BETTER, WORSE
from .markup import (
    BLUE,
    FAINT,
    GREY,
    INK,
    SHOWN_BARS,
    SKY,
    VERMILION,
    as_file,
    as_image,
    framed,
    shortened,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_RULE = "#dddddd"  # lines of a grid
_SMALL = 11  # pixels; the smallest letters of a chart
FITTING = 334  # pixels: how wide a chart may be to fit a telephone at its own size
_STYLE = {
    "figure.dpi": 144,
    "font.size": 12,
    "text.color": INK,
    "text.parse_math": False,  # a dollar sign in a system's name is a dollar sign
    "axes.spines.left": False,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.spines.bottom": False,
    "axes.labelsize": 12,
    "axes.labelcolor": INK,
    "axes.axisbelow": True,
    "svg.fonttype": "none",  # text stays text, which can be searched and read aloud
}


@contextmanager
def _style(**settings):
    """Matplotlib as the package draws, whatever its user has set."""
    import matplotlib.style

    with matplotlib.style.context(["default", _STYLE | settings]), warnings.catch_warnings():
        # a page has the letters that matplotlib's font lacks
        warnings.filterwarnings("ignore", "Glyph ", UserWarning)
        yield


@cache
def _chart_class() -> "type[Figure]":
    from matplotlib.figure import Figure

    class Chart(Figure):
        """A figure of matplotlib's, which knows nothing of pyplot, with an alternative text; a page or a notebook
        shows it as SVG."""

        alt = ""  # what it shows, for those who cannot see it

        @property
        def svg(self) -> str:
            """The drawing as a file."""
            return as_file(_svg(self))

        def places(
            self,
            x: ArrayLike,  # (N,) on the first axes
            y: ArrayLike,  # (N,)
        ) -> (
            np.ndarray
        ):  # (N, 2) pixels from the left and from the top; NaN where one of the numbers is
            """Where numbers stand in the drawing, for what is to lie over it."""
            values = np.stack([np.asarray(x, dtype=float), np.asarray(y, dtype=float)], axis=1)
            left, up = self.axes[0].transData.transform(values).T / self.dpi * 72
            return np.stack([left, self.get_figheight() * 72 - up], axis=1)

        def savefig(self, fname, **options):
            """As matplotlib's own; the texts of an SVG stay texts."""
            with _style():
                super().savefig(fname, **options)

        def __html__(self) -> str:
            return _svg(self)

        def _repr_html_(self) -> str:
            return str(framed(as_image(_svg(self))))

        def __repr__(self) -> str:
            return f"Chart: {shortened(self.alt, 70)}"

    return Chart


def _svg(chart) -> str:
    """A chart as an element of a page that depends on nothing but the chart, and whose names are its own on a page of many charts."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    target = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    with _style(**{"svg.hashsalt": chart.alt}):
        FigureCanvasSVG(chart).print_svg(target, metadata=nothing)
    drawing = target.getvalue().partition("<svg ")[2]
    drawing = re.sub(r'xmlns(:xlink)?="[^"]*"', "", drawing, count=2)
    drawing = re.sub(r'(width|height)="([\d.]+)pt"', r'\1="\2"', drawing, count=2)
    drawing = re.sub(r"<style.*?</style>", "", drawing, count=1, flags=re.S)  # it styles the page
    drawing = re.sub(r'<g id="[^"]*"', "<g", drawing)
    drawing = re.sub(r"<(?:path|text|use|rect)\b[^>]*", _light_element, drawing)
    drawing = re.sub(r"<g([^>]*)>\s*((?:<use [^>]*/>\s*)+)</g>", _light_markers, drawing)
    drawing = re.sub(r"\s*\n\s*", " ", drawing)
    looks = f"background:#fff;stroke-linejoin:round;stroke-linecap:butt;font-family:{_FONTS}"
    return f'<svg role="img" aria-label="{escape(chart.alt)}" style="{looks}" {drawing.strip()}'


_FONTS = "'DejaVu Sans',Verdana,Arial,sans-serif"  # as wide as matplotlib thinks, or less


def _light_element(element: re.Match) -> str:
    """An element with places to a hundredth of a pixel, and without what stands in every text."""
    light = re.sub(r"(\.\d\d)\d+", r"\1", element[0])
    light = re.sub(r' transform="rotate\(-0 [^"]*"', "", light)
    return re.sub(r" font-family: [^;]*;", "", light)


def _light_markers(group: re.Match) -> str:
    """Markers with their style written once where it is the same."""
    styles = set(re.findall(r' style="([^"]*)"', group[2]))
    if len(styles) != 1:
        return group[0]
    markers = re.sub(r' style="[^"]*"', "", group[2])
    return f'<g{group[1]} style="{styles.pop()}">{markers}</g>'


def _new_chart(
    width: float,  # pixels
    height: float,
    alt: str,
):
    """An empty chart. Returns a `Chart`."""
    chart = _chart_class()((round(width) / 72, round(height) / 72))
    chart.alt = _plain(alt)
    return chart


def _plain(text: str) -> str:
    """A text in one line, of characters that any page can hold."""
    return shortened(text, 1_000_000)


def _axes_at(chart, left: float, top: float, width: float, height: float) -> "Axes":
    """Axes at a place in pixels from the left and the top."""
    across, down = chart.get_size_inches() * 72
    return chart.add_axes((left / across, 1 - (top + height) / down, width / across, height / down))


def _paper(chart) -> "Axes":
    """Axes over the whole chart, whose numbers are pixels from the left and the top."""
    wide, tall = chart.get_size_inches() * 72
    axes = _axes_at(chart, 0, 0, wide, tall)
    axes.set(xlim=(0, wide), ylim=(tall, 0))
    axes.set_axis_off()
    return axes


def _label_ticks(axes: "Axes", most: int = 6, letters: float = _SMALL) -> None:
    """About so many ticks at round numbers across, and five upwards; the line at 0 is dark."""
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(most, steps=[1, 2, 5, 10]))
    axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    axes.tick_params(length=0, labelsize=letters, labelcolor=FAINT)
    axes.grid(color=_RULE, linewidth=0.8)
    low, high = axes.get_xlim()
    if low <= 0 <= high:
        axes.axvline(0, color=INK, linewidth=1, zorder=1, gid="zero")


def _limits(
    values: Iterable[float],  # what is not finite is ignored
    margin: float = 0.05,  # of the span, at each end
) -> tuple[float, float]:
    """The ends of an axis that holds all values."""
    numbers = np.asarray(list(values), dtype=float)
    numbers = numbers[np.isfinite(numbers)]
    if not len(numbers):
        return 0.0, 1.0
    low, high = float(numbers.min()), float(numbers.max())
    span = high - low
    if span < 1e-9 * max(abs(low), abs(high), 1e-3):
        span = 2 * abs(low) or 2.0
    return low - margin * span, high + margin * span


def _text_width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in text)


@dataclass(frozen=True)
class ScoreInterval:
    """A number with its interval, and what is known of it."""

    name: str
    value: float | None
    low: float | None = None
    high: float | None = None
    verdict: str = ""  # as from `conclusions.verdict`; empty: nothing is said
    digits: int = 3  # places after the point

    def __str__(self) -> str:
        value = number(self.value, self.digits, missing="none")
        ends = f" ({number(self.low, self.digits)} to {number(self.high, self.digits)})"
        return f"{self.name} {value}{ends if self.bounded else ''} {self.verdict}".strip()

    @property
    def bounded(self) -> bool:
        """Whether there is an interval to draw."""
        ends = [end for end in (self.value, self.low, self.high) if end is not None]
        return len(ends) == 3 and bool(np.isfinite(ends).all()) and self.low < self.high


@dataclass(frozen=True)
class Panel:
    """A score, with an interval for each system, difference or metric."""

    title: str
    intervals: Sequence[ScoreInterval]
    ceiling: float | None = None  # where to draw a dashed line
    origin: bool = False  # whether 0 belongs to its axis, as for differences
    notes: Sequence[str] = ()  # short lines below the title, such as which end is better
    about: str = ""  # what the score says, where there is room for a sentence

    @property
    def limits(self) -> tuple[float, float]:
        """The ends of its axis."""
        return _limits(self.ends)

    @property
    def ends(self) -> list[float]:
        """Everything that has to lie on its axis."""
        ends = [end for row in self.intervals for end in (row.value, row.low, row.high)]
        ends += [self.ceiling, *[0.0] * self.origin]
        return [end for end in ends if end is not None and np.isfinite(end)]


BASELINE = "baseline"  # what stands in place of a verdict on what the others are compared with
_LOOKS = {  # verdict -> marker, its size, its filling, the colour of its line
    BETTER: ("o", 9, BLUE, BLUE),
    WORSE: ("s", 9, VERMILION, VERMILION),
    BASELINE: ("o", 8, INK, FAINT),
    "": ("o", 8, INK, FAINT),
}
_OPEN = ("o", 9, "white", GREY)


@dataclass(frozen=True)
class _Layout:
    """Where the parts of a panel stand, in pixels."""

    left: float  # of its axis, from its own left end
    right: float  # from the end of its axis to its own right end
    row: float  # height of a row
    mark: float  # from the top of a row to its interval
    top: float  # height of the title and the notes
    axis: float  # width of its axis
    bottom: float = 26

    @property
    def width(self) -> float:
        return self.left + self.axis + self.right


NAME_WIDTH = 44  # Latin characters' worth of a system's name


def panels_chart(
    panels: Sequence[Panel],  # at least one, all with the same rows in the same order
    *,
    one_scale: bool = False,  # whether all axes span the same
    caption: str = "",  # a line below
    fitting: bool = False,  # whether a single panel shall fit a telephone
) -> "Figure":  # a `Chart`
    """Numbers with their intervals, a row each, in panels; the shape of a marker says the verdict."""
    rows = panels[0].intervals
    names = [shortened(row.name, 21 if fitting else NAME_WIDTH, middle=True) for row in rows]
    judged = any(row.verdict for panel in panels for row in panel.intervals)
    left = 16 + 7.3 * max(map(_text_width, names), default=0)
    right = 112 if judged else 76
    layout = _Layout(
        left=left,
        right=right,
        axis=min(150, FITTING - left - right) if fitting else 150,
        row=38 if judged else 22,
        mark=15 if judged else 11,
        top=30 + 16 * max(len(panel.notes) for panel in panels),
    )
    pitch = layout.width - layout.left  # names stand before the first
    columns = min(4, len(panels))
    tall = layout.row * len(rows)
    height = layout.top + tall + layout.bottom
    wide = max(layout.width + pitch * (columns - 1), 24 + 7 * min(len(caption), 200))
    high = height * -(-len(panels) // columns) + 22 * bool(caption)
    described = "; ".join(
        f"{panel.title}: {', '.join(map(str, panel.intervals))}" for panel in panels
    )
    every = [end for panel in panels for end in panel.ends]
    with _style():
        chart = _new_chart(wide, high, f"{caption}. {described}".removeprefix(". "))
        corners = []
        for place, panel in enumerate(panels):
            left = pitch * (place % columns)
            top = height * (place // columns)
            corners.append((left, top))
            axes = _axes_at(chart, left + layout.left, top + layout.top, layout.axis, max(tall, 1))
            axes.set_xlim(_limits(every) if one_scale else panel.limits)
            _draw_panel(axes, panel, layout.mark / layout.row)
        paper = _paper(chart)
        for panel, (left, top) in zip(panels, corners):
            _write_panel(paper, panel, names if left == 0 else [], layout, left, top)
        paper.text(12, high - 12, shortened(caption, 200), va="center", color=FAINT)
    return chart


def _draw_panel(axes: "Axes", panel: Panel, middle: float) -> None:
    """The intervals of a panel from top to bottom, each so far down in its row."""
    rows = panel.intervals
    axes.set_ylim(max(len(rows), 1) - middle, -middle)
    _label_ticks(axes, 3)
    axes.set_yticks(range(len(rows)), [""] * len(rows))
    if panel.ceiling is not None:
        axes.axvline(panel.ceiling, color=INK, linewidth=1, dashes=(5, 3))
    for place, row in enumerate(rows):
        marker, size, filling, colour = _LOOKS.get(row.verdict, _OPEN)
        if row.bounded:
            ends = {"marker": "|", "markersize": 10, "markeredgewidth": 2, "linewidth": 3}
            axes.plot([row.low, row.high], [place] * 2, color=colour, **ends, solid_capstyle="butt")
        if row.value is not None and np.isfinite(row.value):
            edge = INK if filling == "white" else filling
            looks = {"markersize": size, "markerfacecolor": filling, "markeredgecolor": edge}
            axes.plot(row.value, place, marker, **looks, markeredgewidth=1.5)


def _write_panel(
    paper: "Axes", panel: Panel, names: Sequence[str], layout: _Layout, left: float, top: float
) -> None:
    """The title, notes, names, numbers and verdicts of a panel whose corner is at so many pixels."""
    axis = left + layout.left
    end = axis + layout.axis
    small = {"fontsize": _SMALL, "color": FAINT, "va": "center"}
    paper.text(axis, top + 18, shortened(panel.title, 24), va="center", fontweight="bold")
    for place, note in enumerate(panel.notes):
        paper.text(axis, top + 36 + 16 * place, shortened(note, 34), **small)
    for place, row in enumerate(panel.intervals):
        y = top + layout.top + layout.row * place + layout.mark
        paper.text(end + 10, y, number(row.value, row.digits, missing="none"), va="center")
        if names:
            paper.text(axis - 10, y, names[place], ha="right", va="center")
        paper.text(end + 10, y + 14, row.verdict, **small)


def interval_plot(
    # frame or dict of columns: system, and for each column its score, <column>_low, <column>_high
    summary,
    columns: Sequence[str],  # the metrics, a panel each
    headings: Mapping[str, str]
    | Sequence[str]
    | None = None,  # what to call them; None: their names
) -> "Figure":  # a `Chart`
    """Each system's score with its interval, one panel a metric."""
    if not isinstance(headings, Mapping):
        headings = dict(zip(columns, columns if headings is None else headings))
    return panels_chart(
        [Panel(headings[column], _intervals(summary, column)) for column in columns],
        fitting=len(columns) == 1,
    )


def _intervals(summary, column: str) -> list[ScoreInterval]:
    """The rows of a summary for one score; without ends where none are given."""
    values = [float(value) for value in summary[column]]
    lows, highs = (
        [float(value) for value in summary[f"{column}_{end}"]]
        if f"{column}_{end}" in summary
        else [None] * len(values)
        for end in ("low", "high")
    )
    return [ScoreInterval(*row) for row in zip(map(str, summary["system"]), values, lows, highs)]


_STROKES = (
    (BLUE, "solid"),
    (VERMILION, (0, (5, 2))),
    (INK, (0, (1, 1.5))),
    (FAINT, (0, (6, 1.5, 1.5, 1.5))),
)  # colour and dashes of a group


def distribution_plot(
    groups: Mapping[
        str, ArrayLike
    ],  # one to four groups: name -> its values; what is not finite is left out
    x_label: str,
    bins: int = 20,  # of the histogram
) -> "Figure":  # a `Chart`
    """Histograms and cumulative curves of a few groups of numbers, with their medians.

    Raises: InputError for no group, more than four, or one without a finite value.
    """
    values = {name: np.asarray(list(numbers), dtype=float) for name, numbers in groups.items()}
    values = {name: numbers[np.isfinite(numbers)] for name, numbers in values.items()}
    if not 1 <= len(values) <= len(_STROKES) or not all(map(len, values.values())):
        raise InputError(
            f"one to {len(_STROKES)} groups with at least one number each can be drawn; got "
            + ", ".join(f"{name} with {len(numbers)}" for name, numbers in values.items())
        )
    every = np.concatenate(list(values.values()))
    edges = np.linspace(*_limits(every, 0), bins + 1)
    medians = {name: float(np.median(numbers)) for name, numbers in values.items()}
    lines = [
        f"{shortened(name, 60)}\u200e ({len(numbers)}), median {number(medians[name])}"
        for name, numbers in values.items()
    ]
    height = 246 + 18 * len(lines)
    with _style():
        chart = _new_chart(600, height, f"distribution of {x_label}: {'; '.join(lines)}")
        panels = [_axes_at(chart, left, 28, 240, 166) for left in (46, 346)]
        for place, (name, numbers) in enumerate(values.items()):
            colour, dashes = _STROKES[place]
            look = {"color": colour, "linestyle": dashes, "linewidth": 2}
            shares = np.histogram(numbers, edges)[0] / len(numbers)
            panels[0].stairs(shares, edges, **look)
            panels[1].ecdf(numbers, **look)
            panels[1].plot([medians[name]] * 2, [0, 0.5], **look | {"linewidth": 1})
        for axes, title in zip(panels, ("share of the outputs", "share at or below")):
            axes.set_xlim(_limits(every))
            axes.set_ylim(0, None if axes is panels[0] else 1.02)
            _label_ticks(axes)
            axes.set_title(title, loc="left", fontsize=12)
            axes.set_xlabel(shortened(x_label, 40))
        paper = _paper(chart)
        for place, line in enumerate(lines):
            colour, dashes = _STROKES[place]
            y = 250 + 18 * place
            paper.plot([46, 78], [y, y], color=colour, linestyle=dashes, linewidth=2)
            paper.text(86, y, line, va="center")
    return chart


_BARS: dict[str, dict[str, Any]] = {
    "full": {"facecolor": BLUE, "edgecolor": BLUE},
    "pale": {"facecolor": "#dddddd", "edgecolor": GREY},
    "dashed": {"facecolor": "white", "edgecolor": VERMILION, "linestyle": (0, (3, 2))},
}
_OUTLINE: dict[str, Any] = {"facecolor": "white", "edgecolor": FAINT}


def word_bars(
    words: Sequence[str],  # T words
    shares: ArrayLike,  # (T,) lengths of the bars in 0..1, or (T, 2) with an outlined second bar
    written: Sequence[str],  # T texts beside the bars, such as the numbers
    *,
    alt: str,  # what the bars show, for those who cannot see them
    looks: Sequence[str] | None = None,  # T of full | pale | dashed; None: all full
    ends: tuple[str, str] = ("", ""),  # what the left and the right end of the axis are
    axis: str = "",  # what the axis is
    edges: Iterable[tuple[float, str]] = (),  # places in 0..1 to mark with a line, and their names
    ticks: Sequence[tuple[float, str]] = (),  # places in 0..1, and what is written above them
) -> "Figure":  # a `Chart`
    """A bar for each word of a text, from top to bottom."""
    bars = np.clip(np.asarray(shares, dtype=float), 0, 1)
    bars = bars[:, None] if bars.ndim == 1 else bars
    check_equal_lengths(words=words, shares=bars, written=written)
    looks = looks or ["full"] * len(words)
    shown = list(zip(words[:SHOWN_BARS], bars, written, looks))
    step = 12 * max(bars.shape[1], 1) + 5
    first = 20 * bool(ticks)  # above the bars
    bottom = first + max(step * len(shown), 1)
    below = 24 if edges or any(ends) or len(words) > SHOWN_BARS else 4
    left, wide = 92, 124  # of the bars
    alt += ": " + ", ".join(f"{word} {text}" for word, _, text, _ in shown)
    with _style():
        chart = _new_chart(FITTING, bottom + below + 20 * bool(axis), alt)
        axes = _paper(chart)
        for share, name in ticks:
            at = left + wide * share
            axes.plot([at, at], [first - 2, bottom], color=_RULE, linewidth=1)
            axes.text(at, 8, name, ha="center", va="center", fontsize=_SMALL, color=FAINT)
        for place, (word, lengths, text, look) in enumerate(shown):
            middle = first + step * (place + 0.5)
            axes.text(left - 6, middle, shortened(word, 11) or "(space)", ha="right", va="center")
            axes.text(left + wide + 8, middle, shortened(text, 16), va="center")
            for row, length in enumerate(lengths):
                top = middle + 12 * (row + 0.5 - len(lengths) / 2)
                style = _OUTLINE if row else _BARS[look]
                axes.barh(top, max(wide * length, 1), 9, left=left, zorder=2, **style)
        for place, (share, name) in enumerate(edges):
            at = left + wide * share
            line = {"color": INK, "linewidth": 1, "dashes": (2, 3), "zorder": 3}
            axes.plot([at, at], [first, bottom + 4], **line)
            side = ("right", "left")[place % 2]
            axes.text(at, bottom + 12, shortened(name, 12), ha=side, va="center")
        for at, end in zip((left, left + wide), ends):
            axes.text(at, bottom + 12, shortened(end, 12), ha="center", va="center", color=FAINT)
        axes.text(
            left + wide / 2, bottom + 32, shortened(axis, 46), ha="center", va="center", color=FAINT
        )
        if len(words) > SHOWN_BARS:
            axes.text(
                left + wide + 16, bottom + 12, f"and {len(words) - SHOWN_BARS} more", va="center"
            )
    return chart


_LOWEST = 1e-6  # probabilities below it are drawn as this one


def odds(
    probability: float,  # 0..1
) -> str:  # such as "1 in 830"
    """A probability as one speaks of it."""
    if not probability:
        return "never"
    times = 1 / float(probability)
    return f"1 in {times:,.0f}" if times >= 10 else f"1 in {times:.2g}"


def word_kinds(
    probabilities: np.ndarray,  # (T,)
    good: float,  # probabilities from here on are good
    bad: float,  # probabilities up to here are bad
) -> np.ndarray:  # (T,) good, bad, or empty
    """Which words are good and which are bad."""
    low = np.where(probabilities <= bad * (1 + 1e-12), "bad", "")
    return np.where(probabilities >= good * (1 - 1e-12), "good", low)


def probability_bars(
    words: Sequence[str],  # T words
    probabilities: np.ndarray,  # (T,)
    name: str,  # of the text
    *,
    good: float
    | None = None,  # probabilities from here on are drawn full; None: all are, and nothing is marked
    bad: float | None = None,  # probabilities up to here are drawn dashed
) -> "Figure":  # a `Chart`
    """The probability of each word, on an axis of factors of a hundred that begins at one in a million."""

    def share(values):
        return 1 - np.log10(np.maximum(values, _LOWEST)) / np.log10(_LOWEST)

    kinds = np.full(len(probabilities), "")
    looks = None
    edges = []
    if good is not None and bad is not None:
        kinds = word_kinds(probabilities, good, bad)
        looks = [{"good": "full", "bad": "dashed", "": "pale"}[kind] for kind in kinds]
        edges = [(share(bad), "bad ≤"), (share(good), "≥ good")]
    return word_bars(
        words,
        share(probabilities),
        [f"{odds(value)} {kind}" for value, kind in zip(probabilities, kinds)],
        alt=f"probabilities of the words {name}",
        looks=looks,
        edges=edges,
        ticks=[(0, "1 in 10⁶"), (1 / 3, "10⁴"), (2 / 3, "100"), (1, "1")],
    )


def curve_and_point(
    x: ArrayLike,  # (K,) ascending
    y: ArrayLike,  # (K,)
    point: tuple[float, float],  # where one stands
    *,
    x_label: str,
    y_label: str,
    mark: tuple[float, str] | None = None,  # another place in x, and its name
) -> "Figure":  # a `Chart`
    """A curve, the point where one stands, and a dotted line down to its place in x."""
    xs = np.asarray(x, dtype=float)
    ys = np.asarray(y, dtype=float)
    alt = f"{y_label} over {x_label}; at {number(point[0])} it is {number(point[1])}"
    with _style():
        chart = _new_chart(FITTING, 210, alt)
        axes = _axes_at(chart, 50, 30, FITTING - 66, 134)
        axes.set_xlim(_limits([*xs, point[0]]))
        low, high = _limits([*ys, point[1]], 0.08)
        axes.set_ylim(low, high)
        _label_ticks(axes)
        axes.set_title(shortened(y_label, 44), loc="left", fontsize=12)
        axes.set_xlabel(shortened(x_label, 48))
        axes.plot(xs, ys, color=BLUE, linewidth=2)
        axes.plot([point[0]] * 2, [low, point[1]], color=INK, linewidth=1, dashes=(2, 3))
        axes.plot(*point, "o", color=VERMILION, markersize=11, markeredgecolor=INK)
        if mark is not None:
            _draw_mark(axes, *mark, above=np.interp(mark[0], xs, ys) < (low + high) / 2)
    return chart


def _draw_mark(axes: "Axes", place: float, name: str, above: bool) -> None:
    """A dashed line at a place in x with its name at one end, on the side where there is room."""
    low, high = axes.get_xlim()
    right = place < (low + high) / 2
    axes.axvline(place, color=FAINT, linewidth=1, dashes=(4, 3))
    axes.annotate(
        shortened(name, 24),
        (place, float(above)),
        (4 if right else -4, -4 if above else 4),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        ha="left" if right else "right",
        va="top" if above else "bottom",
        color=FAINT,
        bbox=_GROUND,
    )


_GROUND = {"facecolor": "white", "edgecolor": "none", "pad": 1, "alpha": 0.85}  # below a text


def scatter_plot(
    x: ArrayLike,  # (N,)
    y: ArrayLike,  # (N,)
    line: tuple[float, float],  # slope and intercept
    marked: Sequence[int] = (),  # rows that are ringed and numbered from 1
    *,
    x_label: str,
    y_label: str,
) -> "Figure":  # a `Chart`
    """Points with the line that fits best."""
    xs = np.asarray(x, dtype=float)
    ys = np.asarray(y, dtype=float)
    alt = f"{y_label} over {x_label}, {len(xs)} outputs, line with slope {line[0]:.3g}"
    with _style():
        chart = _new_chart(FITTING, 330, alt)
        axes = _axes_at(chart, 40, 30, FITTING - 56, 252)
        axes.set(xlim=_limits(xs), ylim=_limits(ys))
        _label_ticks(axes)
        axes.set_title(shortened(y_label, 60), loc="left", fontsize=12)
        axes.set_xlabel(shortened(x_label, 60))
        looks = {"color": BLUE, "alpha": 0.5, "markersize": 5, "markeredgewidth": 0}
        axes.plot(*_distinct(chart, xs, ys), "o", **looks)
        ends = np.array([xs.min(), xs.max()])
        axes.plot(ends, line[0] * ends + line[1], color=INK, linewidth=2)
        ring = {"markersize": 14, "markerfacecolor": "none", "markeredgewidth": 2}
        for place, row in enumerate(marked, 1):
            axes.plot(xs[row], ys[row], "o", markeredgecolor=VERMILION, **ring)
            axes.annotate(
                str(place),
                (xs[row], ys[row]),
                (9, 5),
                textcoords="offset points",
                fontweight="bold",
                bbox=_GROUND,
            )
    return chart


def _distinct(chart, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The points without those that would be drawn over others, so that a chart of thousands stays small."""
    _, rows = np.unique(np.round(chart.places(x, y)), axis=0, return_index=True)
    return x[np.sort(rows)], y[np.sort(rows)]


@dataclass(frozen=True)
class Means:
    """What is drawn beside the means of systems."""

    # system -> ends of the mean in x, then in y
    intervals: Mapping[str, tuple[float, float, float, float]] = field(default_factory=dict)
    front: Iterable[
        str
    ] = ()  # systems whose means are linked by stairs, such as those of the Pareto front


_FRAME = (56, 28, 280, 212)  # pixels: left, top, width and height of the axes
_MARKERS = "osD^v"
_SHADES = (BLUE, VERMILION, SKY, GREY, INK)


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
    below: bool = False,  # the list of systems stands below, for narrow pages; that of means always does
) -> "Figure":  # a `Chart`
    """One number against another for each output of one or more systems.

    Raises: InputError if the columns differ in length.
    """
    xs = np.asarray(x, dtype=float)
    ys = np.asarray(y, dtype=float)
    names = list(systems)
    check_equal_lengths(x=xs.tolist(), y=ys.tolist(), systems=names)
    groups = _groups(xs, ys, names, rows)
    centres = {name: (xs[own].mean(), ys[own].mean()) for name, own in groups.items() if len(own)}
    front = [name for name in centres if means and name in set(means.front)]
    lines = [
        f"{name}: {len(own)} outputs"
        + (", mean {:.3f}, {:.3f}".format(*centres[name]) if len(own) else "")
        for name, own in groups.items()
    ]
    lines += [f"not dominated: {', '.join(front)}"] if front else []
    below = below or means is not None
    wide = 350 if below else 560
    tall = 306 + 20 * -(-len(groups) // 2) if below else max(290, 64 + 20 * len(groups))
    with _style():
        chart = _new_chart(wide, tall, f"{labels[1]} over {labels[0]}. {'; '.join(lines)}")
        axes = _axes_at(chart, *_FRAME)
        span = _spans(means, centres) if means else (xs, ys)
        axes.set(xlim=_limits(span[0]), ylim=_limits(span[1]))
        _label_ticks(axes)
        axes.set_title(shortened(labels[1], 50), loc="left", fontsize=12)
        axes.set_xlabel(shortened(labels[0], 46))
        if means:
            _draw_stairs(axes, [centres[name] for name in front])
            _draw_means(chart, axes, groups, centres, means)
        else:
            _draw_outputs(chart, axes, groups, xs, ys)
            if selected is not None and np.isfinite([xs[selected], ys[selected]]).all():
                ring = {"markersize": 18, "markerfacecolor": "none", "markeredgewidth": 2.5}
                axes.plot(xs[selected], ys[selected], "o", markeredgecolor=INK, **ring)
        counts = {name: len(own) for name, own in groups.items()}
        _draw_legend(chart, counts, below, (INK,) if means else _SHADES)
    return chart


def _groups(x: np.ndarray, y: np.ndarray, systems: list[str], rows) -> dict[str, np.ndarray]:
    """The rows of each system that are drawn."""
    drawn = np.isfinite(x) & np.isfinite(y)
    if rows is not None:
        drawn &= np.isin(np.arange(len(x)), np.asarray(rows, dtype=int))
    names = np.array(systems, dtype=object)
    return {name: np.flatnonzero(drawn & (names == name)) for name in dict.fromkeys(systems)}


def _spans(means: Means, centres: Mapping) -> tuple[list[float], list[float]]:
    """All that the two axes hold: the means and the ends of their intervals."""
    ends = [means.intervals[name] for name in centres if name in means.intervals]
    across = [x for x, _ in centres.values()] + [end for row in ends for end in row[:2]]
    up = [y for _, y in centres.values()] + [end for row in ends for end in row[2:]]
    return across, up


def _pen(place: int, size: float, shades: Sequence[str] = _SHADES) -> dict[str, Any]:
    """A system's marker; the second five are open."""
    colour = shades[place % len(shades)]
    hollow = place // 5 % 2
    return {
        "marker": _MARKERS[place % 5],
        "markersize": size,
        "markerfacecolor": "white" if hollow else colour,
        "markeredgecolor": colour if hollow else INK,
        "markeredgewidth": 1.5 if hollow else 0.5,
        "linestyle": "none",
    }


def _draw_outputs(chart, axes: "Axes", groups: Mapping, x: np.ndarray, y: np.ndarray) -> None:
    for place, own in enumerate(groups.values()):
        axes.plot(*_distinct(chart, x[own], y[own]), alpha=0.75, **_pen(place, 7))


def _draw_stairs(axes: "Axes", points: Iterable[tuple[float, float]]) -> None:
    """The border of what these points dominate, from the left edge down to the axis."""
    corners = sorted(points, key=lambda point: (point[0], -point[1]))
    if not corners:
        return
    xs, ys = map(list, zip(*corners))
    left, bottom = axes.get_xlim()[0], axes.get_ylim()[0]
    stairs = {"drawstyle": "steps-pre", "color": FAINT, "linewidth": 1.5, "dashes": (6, 4)}
    axes.plot([left, *xs, xs[-1]], [ys[0], *ys, bottom], gid="stairs", **stairs)


def _draw_means(chart, axes: "Axes", groups: Mapping, centres: Mapping, means: Means) -> None:
    """A large marker a system, with the intervals of its two means as a cross, and its name."""
    for name, (x, y) in centres.items():
        if name in means.intervals:
            left, right, low, high = means.intervals[name]
            axes.plot([left, right], [y, y], color=INK, linewidth=1)
            axes.plot([x, x], [low, high], color=INK, linewidth=1)
    for place, name in enumerate(groups):
        if name in centres:
            axes.plot(*centres[name], **_pen(place, 11, (INK,)), zorder=3)
    if centres:
        places = chart.places(*zip(*centres.values()))
        _draw_names(_paper(chart), _FRAME, dict(zip(centres, places.tolist())))


def _draw_legend(chart, counts: Mapping[str, int], below: bool, shades: Sequence[str]) -> None:
    """The systems with their markers and numbers of outputs: at the right, or below in two columns."""
    legend = _paper(chart)
    for place, (name, count) in enumerate(counts.items()):
        at = (16 + 168 * (place % 2), 300 + 20 * (place // 2)) if below else (370, 36 + 20 * place)
        legend.plot(*at, **_pen(place, 8, shades))
        # the mark after a name from right to left keeps the number behind it
        text = f"{shortened(name, 14 if below else 18, middle=True)}\u200e ({count:,})"
        legend.text(at[0] + 11, at[1], text, va="center")


_TURNS = np.linspace(0, 2 * np.pi, 16, endpoint=False)


def _draw_names(
    paper: "Axes",
    frame: tuple[float, float, float, float],  # left, top, width, height of where names may stand
    places: Mapping[str, tuple[float, float]],  # system -> pixels of its marker
) -> None:
    """A name beside each marker where there is room: near it, or farther away with a line that leads there."""
    from matplotlib.transforms import Bbox

    room = Bbox.from_bounds(*frame)
    taken = [Bbox.from_bounds(x - 8, y - 8, 16, 16) for x, y in places.values()]
    for system, (x, y) in places.items():
        name = shortened(system, 14, middle=True)
        half = 3.7 * _text_width(name) + 2
        for reach in (11, 18, 28, 40, 54, 70, 88, 110, 135, 160, 190):
            boxes = (
                Bbox.from_bounds(
                    x + np.cos(turn) * (reach + half) - half,
                    y + np.sin(turn) * (reach + 8) - 8,
                    2 * half,
                    16,
                )
                for turn in _TURNS
            )
            free = next((box for box in boxes if _is_free(box, room, taken)), None)
            if free is None:
                continue
            taken.append(free)
            if reach > 20:
                near = np.clip((x, y), free.min, free.max)
                paper.plot([x, near[0]], [y, near[1]], color=FAINT, linewidth=1)
            middle = (free.min + free.max) / 2
            paper.text(*middle, name, ha="center", va="center", bbox=_GROUND, gid="name")
            break


def _is_free(box, room, taken: Sequence) -> bool:
    """Whether a box lies in the room and has nothing in common with those that are taken."""
    inside = (box.min >= room.min).all() and (box.max <= room.max).all()
    return bool(inside) and not box.count_overlaps(taken)


def use_course_style() -> None:
    """Set matplotlib's defaults for every figure of the course: no frame, readable type, moderate resolution."""
    import matplotlib.pyplot as plt

    plt.rcParams.update(
        {
            "figure.dpi": 100,
            "savefig.dpi": 100,
            "figure.constrained_layout.use": True,
            "font.size": 11,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.prop_cycle": plt.cycler(color=[BLUE, VERMILION, SKY, GREY]),
        }
    )


def plot_confusion(
    matrix: pd.DataFrame,  # from `confusion_matrix`
    axes,  # matplotlib Axes, where to draw
) -> None:
    """Confusion matrix as a grid; the shade is the share of its row."""
    shares = matrix.div(matrix.sum(axis=1).clip(lower=1), axis=0).to_numpy()
    axes.imshow(shares, cmap="Greys", vmin=0, vmax=1)
    for row, column in np.ndindex(shares.shape):
        axes.text(
            column,
            row,
            f"{matrix.iloc[row, column]}\n{shares[row, column]:.0%}",
            ha="center",
            va="center",
            color="white" if shares[row, column] > 0.5 else "black",
        )
    axes.set_xticks(range(len(matrix)), matrix.index)
    axes.set_yticks(range(len(matrix)), matrix.index)
    axes.set(xlabel="predicted", ylabel="true class")


def plot_accuracy_by_length(
    table: pd.DataFrame,  # from `accuracy_by_length`
    axes,  # matplotlib Axes, where to draw
) -> None:
    """Accuracy of each group of lengths with its interval; the dashed line is the toss of a coin."""
    errors = np.abs(table[["low", "high"]].to_numpy().T - table.accuracy.to_numpy())
    names = [
        f"{low}-{high}" if low < high else f"{low}"
        for low, high in zip(table.shortest, table.longest)
    ]
    axes.errorbar(range(len(table)), table.accuracy, yerr=errors, fmt="o", color=BLUE, capsize=3)
    axes.axhline(0.5, color=GREY, linestyle="--", linewidth=1)
    axes.set_xticks(range(len(table)), names)
    axes.set(xlabel="words in the sentence", ylabel="accuracy", ylim=(0, 1))


def plot_reliability(
    tables: dict[str, pd.DataFrame],  # name -> result of `reliability_bins`; one panel each
):  # a matplotlib Figure
    """Reliability diagrams side by side: accuracy against confidence, the area of a dot for the number of sentences."""
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(
        1, len(tables), figsize=(3.6 * len(tables), 3.4), sharey=True, squeeze=False
    )
    for axes, (name, table) in zip(panels[0], tables.items()):
        axes.plot([0, 1], [0, 1], color=GREY, linewidth=1)
        axes.plot(table.confidence, table.accuracy, color=BLUE, linewidth=1)
        axes.scatter(
            table.confidence,
            table.accuracy,
            s=600 * table.sentences / table.sentences.sum(),
            color=BLUE,
        )
        axes.set(xlim=(0.48, 1.02), ylim=(0, 1.05), xlabel="mean confidence of a bin")
        axes.set_title(f"{name}: ECE {expected_calibration_error(table):.3f}", fontsize=11)
    panels[0][0].set_ylabel("accuracy of the bin")
    plt.close(figure)
    return figure


def plot_ngrams(
    output: Sequence[str],  # tokens
    original: Sequence[str],  # tokens
    orders: Sequence[int] = (1, 2, 3, 4),
):  # a matplotlib Figure
    """A bar for each n-gram of the output below the tokens that it covers, dark where the original has it as well."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 3.4))
    for place, word in enumerate(output):
        axes.text(place + 0.5, -0.5, word, ha="center", fontsize=12, parse_math=False)
    names = []
    for order in orders:
        ngrams, others = (
            list(zip(*(tokens[start:] for start in range(order)))) for tokens in (output, original)
        )
        left = Counter(others)
        matched = (Counter(ngrams) & left).total()
        names.append(f"{order}-grams: {matched} of {len(ngrams)}")
        for start, ngram in enumerate(ngrams):
            left[ngram] -= 1  # a partner is used up
            place = -order - 0.2 * (start % order)  # neighbours overlap, so they are shifted
            axes.plot(
                [start + 0.08, start + order - 0.08],
                [place] * 2,
                linewidth=6,
                solid_capstyle="butt",
                color=BLUE if left[ngram] >= 0 else "lightgrey",
            )
    axes.set_yticks([-order - 0.1 * (order - 1) for order in orders], names)
    axes.set(
        xticks=[],
        ylim=(-max(orders) - 1, 0),
        xlabel="the output, token by token; dark: also in the original",
    )
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    plt.close(figure)
    return figure
