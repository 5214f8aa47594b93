"""Ticks, intervals, distributions, bars, curves, and the style of matplotlib's figures"""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd
from markupsafe import Markup
from numpy.typing import ArrayLike

from tsteval.report.markup import (
    BLUE,
    FAINT,
    GREY,
    HALO,
    INK,
    SHOWN_BARS,
    SKY,
    VERMILION,
    Picture,
    curve,
    dot,
    label,
    line,
    shortened,
    svg,
    tag,
)

from ..core.checks import InputError, check_equal_lengths
from ..core.display import number
from ..training.calibration import expected_calibration_error


def round_ticks(
    values: Iterable[float],  # numbers to be drawn; what is not finite is ignored
    most: int = 5,  # ticks at the most, >= 2
) -> np.ndarray:  # ascending round numbers; the first and the last enclose all values
    """Places for the ticks of an axis."""
    numbers = np.asarray(list(values), dtype=float)
    numbers = numbers[np.isfinite(numbers)]
    low, high = (numbers.min(), numbers.max()) if len(numbers) else (0.0, 1.0)
    if high - low < 1e-9 * max(abs(low), abs(high), 1e-3):
        room = abs(low) / 10 or 0.1
        low = low - room
        high = high + room
    power = 10.0 ** np.floor(np.log10((high - low) / most))
    for step in power * np.array([1, 2, 5, 10, 20, 50, 100]):
        first = np.floor(low / step + 1e-9)
        last = np.ceil(high / step - 1e-9)
        if last - first + 1 <= most:
            break
    return step * np.arange(first, last + 1)


def axis_scale(ticks: np.ndarray, start: float, end: float):
    """From a number to its place between the first and the last tick."""
    return lambda value: (
        start + (np.asarray(value, dtype=float) - ticks[0]) / (ticks[-1] - ticks[0]) * (end - start)
    )


def tick_text(value: float) -> str:
    return f"{round(value, 10) + 0.0:g}"


_PLOT = 112
_PANEL = 174
_ROW = 22  # width of a panel's axis, of a panel; height of a system's row


def interval_plot(
    # frame or dict of columns: system, and for each column its score, <column>_low, <column>_high
    summary,
    columns: Sequence[str],  # the metrics, a panel each
    headings: Mapping[str, str]
    | Sequence[str]
    | None = None,  # what to call them; None: their names
) -> Picture:
    """Each system's score with its interval, one panel a metric."""
    if not isinstance(headings, Mapping):
        headings = dict(zip(columns, columns if headings is None else headings))
    systems = [shortened(system) for system in summary["system"]]
    left = 14 + 7 * max(map(text_width, systems), default=0)
    return Picture(
        tag(
            "div",
            *(
                _interval_row(summary, columns[first : first + 4], headings, systems, left)
                for first in range(0, len(columns), 4)
            ),
        )
    )


def _interval_row(
    summary, columns: Sequence[str], headings: Mapping, systems: list[str], left: float
) -> Markup:
    """Up to four panels beside each other, with the names of the systems before the first."""
    width = left + _PANEL * len(columns)
    bottom = 30 + _ROW * len(systems)
    parts = []
    told = []
    for row, system in enumerate(systems):
        y = 30 + _ROW * (row + 0.5)
        parts += [
            line(0, y, width - 16, y, "#e4e4e4"),
            label(left - 10, y + 4, system, "end", **HALO),
        ]
    for place, column in enumerate(columns):
        parts += _interval_panel(summary, column, headings[column], left + _PANEL * place, bottom)
        told.append(_interval_words(summary, column, headings[column]))
    return svg(width, bottom + 22, "scores with intervals. " + "; ".join(told), *parts)


def text_width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in text)


def _bounds(summary, column: str) -> list[np.ndarray]:
    """Scores, lower and upper ends; the scores themselves where no interval is given."""
    value = np.asarray(summary[column], dtype=float)
    return [
        value,
        *(
            np.asarray(summary[f"{column}_{end}"], dtype=float)
            if f"{column}_{end}" in summary
            else value
            for end in ("low", "high")
        ),
    ]


def _interval_panel(summary, column: str, title: str, left: float, bottom: float) -> list[Markup]:
    bounds = _bounds(summary, column)
    ticks = round_ticks(np.concatenate(bounds), most=4)
    place = axis_scale(ticks, left, left + _PLOT)
    parts = [label(left, 14, shortened(title, 22), font_weight="bold")]
    for tick in ticks:
        parts += [
            line(place(tick), 24, place(tick), bottom, INK if abs(tick) < 1e-12 else "#bbb"),
            label(place(tick), bottom + 15, tick_text(tick), "middle", font_size=11, fill=FAINT),
        ]
    for row, (value, low, high) in enumerate(zip(*bounds)):
        y = 30 + _ROW * (row + 0.5)
        if low < high and np.isfinite([value, low, high]).all():
            parts += [line(place(low), y, place(high), y, BLUE, width=3)]
            parts += [
                line(place(end), y - 5, place(end), y + 5, BLUE, width=2) for end in (low, high)
            ]
        parts += [dot(place(value), y, 4, INK)] if np.isfinite(value) else []
        parts.append(label(left + _PLOT + 12, y + 4, number(value) or "none", **HALO))
    return parts


def _interval_words(summary, column: str, title: str) -> str:
    rows = [
        f"{system} {number(value) or 'none'}"
        + (f" ({number(low)} to {number(high)})" if low < high else "")
        for system, value, low, high in zip(summary["system"], *_bounds(summary, column))
    ]
    return f"{title}: " + ", ".join(rows)


_STROKES = (
    (BLUE, "none"),
    (VERMILION, "7 3"),
    (INK, "2 3"),
    (GREY, "9 2 2 2"),
)  # colour and dashes of a group


def distribution_plot(
    groups: Mapping[
        str, ArrayLike
    ],  # one to four groups: name -> its values; what is not finite is left out
    x_label: str,
    bins: int = 20,  # of the histogram
) -> Picture:
    """Histograms and cumulative curves of a few groups of numbers, with their medians.

    Raises: InputError for no group, more than four, or one without a finite value.
    """
    values = {name: np.sort(np.asarray(list(given), dtype=float)) for name, given in groups.items()}
    values = {name: given[np.isfinite(given)] for name, given in values.items()}
    if not 1 <= len(values) <= len(_STROKES) or not all(map(len, values.values())):
        raise InputError(
            f"one to {len(_STROKES)} groups with at least one number each can be drawn; got "
            + ", ".join(f"{name} with {len(given)}" for name, given in values.items())
        )
    ticks = round_ticks(np.concatenate(list(values.values())), most=6)
    edges = np.linspace(ticks[0], ticks[-1], bins + 1)
    shares = {name: np.histogram(given, edges)[0] / len(given) for name, given in values.items()}
    tall = round_ticks([0, *(share.max() for share in shares.values())])
    parts = _axes(ticks, tall, 44, "share of the outputs", x_label) + _axes(
        ticks, np.linspace(0, 1, 5), 344, "share at or below", x_label
    )
    told = []
    for (name, given), (colour, dashes) in zip(values.items(), _STROKES):
        across = axis_scale(ticks, 44, 284)
        down = axis_scale(tall, 190, 26)
        steps = " ".join(
            f"{x:.1f},{y:.1f}"
            for x, y in zip(
                across(np.repeat(edges, 2)), [190, *down(np.repeat(shares[name], 2)), 190]
            )
        )
        across = axis_scale(ticks, 344, 584)
        up = (np.arange(len(given)) + 1) / len(given)
        curve_points = [
            (ticks[0], 0),
            *((x, y) for x, before, y in zip(given, [0, *up], up) for y in (before, y)),
            (ticks[-1], 1),
        ]
        rise = " ".join(f"{across(x):.1f},{190 - 164 * y:.1f}" for x, y in curve_points)
        look = {"fill": "none", "stroke": colour, "stroke_width": 2, "stroke_dasharray": dashes}
        parts += [tag("polyline", points=points, **look) for points in (steps, rise)]
        middle = float(np.median(given))
        told.append(f"{name} ({len(given)}), median {number(middle)}")
        y = 246 + 18 * (len(told) - 1)
        parts += [
            line(44, y - 4, 74, y - 4, colour, dashes, 2),
            label(82, y, shortened(told[-1], 90)),
            line(across(middle), 108, across(middle), 190, colour, dashes, 1),
        ]
    return Picture(
        svg(600, 246 + 18 * len(told), f"distribution of {x_label}: {'; '.join(told)}", *parts)
    )


def _axes(
    ticks: np.ndarray, tall: np.ndarray, left: float, y_label: str, x_label: str
) -> list[Markup]:
    """A panel of 240 by 164 pixels with its ticks and labels."""
    across = axis_scale(ticks, left, left + 240)
    down = axis_scale(tall, 190, 26)
    parts = [
        label(left - 36, 14, y_label),
        label(left + 120, 224, shortened(x_label, 40), "middle"),
    ]
    for tick in ticks:
        parts += [
            line(across(tick), 26, across(tick), 190, INK if abs(tick) < 1e-12 else "#ddd"),
            label(across(tick), 206, tick_text(tick), "middle", fill=FAINT),
        ]
    for tick in tall:
        parts += [
            line(left, down(tick), left + 240, down(tick), "#ddd"),
            label(left - 6, down(tick) + 4, tick_text(tick), "end", fill=FAINT),
        ]
    return parts


_LOOKS = {
    "full": {"fill": BLUE, "stroke": BLUE},
    "pale": {"fill": "#ddd", "stroke": GREY},
    "dashed": {"fill": "#fff", "stroke": VERMILION, "stroke_dasharray": "3 2"},
}


def word_bars(
    words: Sequence[str],  # T words
    shares: ArrayLike,  # (T,) lengths of the bars in 0..1, or (T, 2) with an outlined second bar
    written: Sequence[str],  # T texts beside the bars, such as the numbers
    *,
    told: str,  # what the bars show, for those who cannot see them
    looks: Sequence[str] | None = None,  # T of full | pale | dashed; None: all full
    ends: tuple[str, str] = ("", ""),  # what the left and the right end of the axis are
    axis: str = "",  # what the axis is
    edges: Iterable[tuple[float, str]] = (),  # places in 0..1 to mark with a line, and their names
) -> Picture:
    """A bar for each word of a text, from top to bottom."""
    bars = np.clip(np.asarray(shares, dtype=float), 0, 1)
    bars = bars[:, None] if bars.ndim == 1 else bars
    check_equal_lengths(words=words, shares=bars, written=written)
    step = 12 * max(bars.shape[1], 1) + 5
    parts = []
    for place, (word, lengths, text) in enumerate(zip(words[:SHOWN_BARS], bars, written)):
        parts += _bars_of(
            word, lengths, text, (looks or ["full"] * len(words))[place], step * place
        )
    bottom = step * min(len(words), SHOWN_BARS)
    parts += [
        line(112 + 200 * place, 0, 112 + 200 * place, bottom + 4, INK, "2 3") for place, _ in edges
    ]
    parts += [
        label(112 + 200 * place, bottom + 16, name, ("end", "start")[number % 2])
        for number, (place, name) in enumerate(edges)
    ]
    parts += [label(x, bottom + 16, end, "middle", fill=FAINT) for x, end in zip((112, 312), ends)]
    parts += [label(212, bottom + 34, axis, "middle", fill=FAINT)]
    told += ": " + ", ".join(f"{word} {text}" for word, text in zip(words[:SHOWN_BARS], written))
    rest = f"and {len(words) - SHOWN_BARS} more" if len(words) > SHOWN_BARS else ""
    return Picture(svg(436, bottom + 42, told, *parts, label(328, bottom + 16, rest)))


def _bars_of(word: str, lengths: np.ndarray, text: str, look: str, top: float) -> list[Markup]:
    parts = [
        label(106, top + 5 + 6 * len(lengths), shortened(word, 15) or "(space)", "end"),
        label(320, top + 5 + 6 * len(lengths), text),
    ]
    styles = [_LOOKS[look], {"fill": "#fff", "stroke": GREY}]
    return parts + [
        tag(
            "rect",
            x=112,
            y=top + 2 + 12 * row,
            width=round(max(200 * float(length), 1), 1),
            height=9,
            **styles[row],
        )
        for row, length in enumerate(lengths)
    ]


_LOWEST = 1e-6  # probabilities below it are drawn as this one


def probability_bars(
    words: Sequence[str],  # T words
    probabilities: np.ndarray,  # (T,)
    name: str,  # of the text
    *,
    good: float
    | None = None,  # probabilities from here on are drawn full; None: all are, and nothing is marked
    bad: float | None = None,  # probabilities up to here are drawn dashed
) -> Picture:
    """The probability of each word, on a logarithmic axis that ends at one millionth."""

    def share(values):
        return 1 - np.log10(np.maximum(values, _LOWEST)) / np.log10(_LOWEST)

    kinds = np.full(len(probabilities), "")
    looks = None
    edges = []
    if good is not None and bad is not None:
        kinds = np.where(
            probabilities >= good * (1 - 1e-12),
            "good",
            np.where(probabilities <= bad * (1 + 1e-12), "bad", ""),
        )
        looks = [{"good": "full", "bad": "dashed", "": "pale"}[kind] for kind in kinds]
        edges = [(share(bad), "bad ≤"), (share(good), "≥ good")]
    return word_bars(
        words,
        share(probabilities),
        [f"{value:.2g} {kind}" for value, kind in zip(probabilities, kinds)],
        told=f"probabilities of the words {name}",
        looks=looks,
        axis="probability, from 10⁻⁶ to 1, logarithmic",
        edges=edges,
    )


def curve_and_point(
    x: ArrayLike,  # (K,) ascending
    y: ArrayLike,  # (K,)
    point: tuple[float, float],  # where one stands
    *,
    x_label: str,
    y_label: str,
    mark: tuple[float, str] | None = None,  # another place in x, and its name
) -> Picture:
    """A curve, the point where one stands, and a dashed line down to its place in x."""
    xs = np.asarray(x, dtype=float)
    ys = np.asarray(y, dtype=float)
    ticks = round_ticks([*xs, point[0]]), round_ticks([*ys, point[1]])
    across = axis_scale(ticks[0], 50, 350)
    down = axis_scale(ticks[1], 160, 24)
    parts = [label(8, 12, y_label), label(200, 196, x_label, "middle")]
    for tick in ticks[0]:
        parts += [
            line(across(tick), 24, across(tick), 160, "#e4e4e4"),
            label(across(tick), 177, tick_text(tick), "middle", fill=FAINT),
        ]
    for tick in ticks[1]:
        parts += [
            line(50, down(tick), 350, down(tick), "#e4e4e4"),
            label(44, down(tick) + 4, tick_text(tick), "end", fill=FAINT),
        ]
    if mark is not None:
        parts += [
            line(across(mark[0]), 24, across(mark[0]), 160, dashes="4 3"),
            label(across(mark[0]) + 4, 154, mark[1], fill=FAINT, **HALO),
        ]
    parts += [
        curve(across(xs), down(ys)),
        line(across(point[0]), down(point[1]), across(point[0]), 160, INK, "2 3"),
        dot(across(point[0]), down(point[1])),
    ]
    told = f"{y_label} over {x_label}; at {number(point[0])} it is {number(point[1])}"
    return Picture(svg(376, 204, told, *parts))


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
