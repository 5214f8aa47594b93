"""Explorers of a whole evaluation: systems with their intervals, pairs with filters, a map of points to press."""

import json
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from tsteval.explorers.controls import (
    MODEL_CHARACTERS,
    button_and_link,
    chart,
    checkbox,
    choice,
    download_link,
    explorer,
    listing,
    slider,
)

from ..core.assets import packaged_path
from ..core.checks import check_choice, check_equal_lengths
from ..core.display import displayable, enumerated, number
from ..report.charts import Means, interval_plot, trade_off
from ..report.conclusions import BETTER, EQUAL, FEW, HIGHER, LOWER, OPEN, VERDICTS, WORSE, p_text
from ..report.findings import work_out
from ..report.markup import FAINT, Picture, answered, heading, side_by_side, table, tag
from ..report.terminal import csv_text
from ..report.words import edited_pair
from ..runs.opened import OpenedResults, read_results
from ..text import edited_spans


def filter_rows(
    per_pair: pd.DataFrame,  # one row an output
    system: str | None = None,  # None: all systems
    unchanged: bool = False,  # only outputs that equal their source
    negative: bool = False,  # only outputs whose style moved away from the target
    against: bool = False,  # only outputs that the classifier still finds in another style than the target
    highest: float | None = None,  # only outputs with a score up to this; None: all
    column: str = "cps",  # the score that `highest` is about
) -> np.ndarray:  # row numbers, ascending
    """Rows of an evaluation that pass every filter that is on."""
    mask = np.ones(len(per_pair), dtype=bool)
    if highest is not None:
        mask &= per_pair[column].to_numpy(float) <= highest + 1e-9
    if system is not None:
        mask &= (per_pair.system == system).to_numpy()
    if unchanged:
        mask &= (per_pair.output == per_pair.source).to_numpy()
    if negative:
        mask &= per_pair.sti.to_numpy(float) < 0
    if against:
        mask &= per_pair.output_target_probability.to_numpy(float) < 0.5
    return np.flatnonzero(mask)


def order_rows(
    per_pair: pd.DataFrame,  # one row an output
    rows: np.ndarray,  # row numbers
    by: str | None = None,  # a column of numbers; None: the order in which they were given
    falling: bool = False,  # the largest number first
) -> np.ndarray:  # the same row numbers
    """Rows in the order of a score; rows that have none come last."""
    if by is None:
        return rows[::-1] if falling else rows
    values = per_pair[by].to_numpy(float)[rows] * (-1 if falling else 1)
    return rows[np.argsort(values, kind="stable")]


def selection_csv(
    per_pair: pd.DataFrame,
    rows: np.ndarray,  # row numbers
) -> str:
    """The chosen rows as CSV, references as a JSON list where there are any."""
    chosen = per_pair.iloc[rows]
    lists = chosen.references.map(lambda texts: json.dumps(list(texts), ensure_ascii=False))
    if not chosen.references.map(len).any():
        return csv_text(chosen.drop(columns="references"))
    return csv_text(chosen.assign(references=lists))


def _pair_details(
    row,  # of `per_pair`: system, source, output, references, and the scores
    headings: dict[str, str],  # column -> what to call it: the scores to show
    rated: dict[str, str]
    | None = None,  # the same for people's ratings; None: there are none to show
) -> Markup:
    """The texts of an output with its edits marked, its scores, and its ratings."""
    source, output = (
        displayable(row[side])[: 2 * MODEL_CHARACTERS] for side in ("source", "output")
    )
    scores = ", ".join(
        [
            *(f"{name} {number(row[column]) or 'none'}" for column, name in headings.items()),
            *([_rating_words(row, rated)] if rated else []),
        ]
    )
    return tag(
        "div",
        edited_pair(
            source,
            output,
            *edited_spans(source, output),
            title=f"{row.system}: {scores}",
            references=[text[: 2 * MODEL_CHARACTERS] for text in row.references[:3]],
        ),
        style="max-width:620px",
    )


def _rating_words(row, rated: dict[str, str]) -> str:
    """What people say of an output, or that nobody was asked."""
    if all(np.isnan(row[column]) for column in rated):
        return "not rated"
    return ", ".join(f"{name} {number(row[column], 2) or 'none'}" for column, name in rated.items())


_LISTED = (
    500  # pairs in the list, and points that can be pressed; filters bring down a larger number
)


def _list_pairs(
    box, per_pair: pd.DataFrame, rows: np.ndarray, selected: int | None, rated: dict[str, str]
) -> None:
    """Put rows into the list of pairs, and keep the selected one if it is still there."""
    notes = [f", {_rating_words(per_pair.iloc[row], rated)}" if rated else "" for row in rows]
    box.options = [
        (f"{row}. {per_pair.system[row]}{words}: {per_pair.output[row][:90]}", int(row))
        for row, words in zip(rows, notes)
    ]
    box.value = selected if selected in rows else int(rows[0]) if len(rows) else None


def _points(
    drawing, per_pair: pd.DataFrame, rows: np.ndarray, axes: tuple[str, str], names: list[str]
) -> list[tuple]:
    """The points of a chart that can be pressed, from left to right: row, place, and what it is called."""
    x, y = (per_pair[column].to_numpy(float) for column in axes)
    places = drawing.places(x, y)
    drawn = [row for row in rows if np.isfinite(places[row]).all()]

    def label(row):
        return f"{per_pair.system[row]}, row {row}, {names[0]} {number(x[row])}, {names[1]} {number(y[row])}"

    return [
        (int(row), float(places[row, 0]), float(places[row, 1]), label(row))
        for row in sorted(drawn, key=lambda row: tuple(places[row]))
    ]


def _filters(
    systems, per_pair: pd.DataFrame, column: str, headings: dict
) -> tuple[dict, dict, dict, float]:
    """Controls that choose and order rows: those for which there are columns; and where the slider lets all pass."""
    low, high = _round_ends(per_pair[column].to_numpy(float))
    ticks = {
        "unchanged": ("unchanged", "output"),
        "negative": ("negative STI", "sti"),
        "against": ("output not in the target style", "output_target_probability"),
    }
    first = {
        "system": choice("system", ["all systems", *systems], "all systems"),
        "highest": slider(f"{headings[column]} at most", high, low, high, (high - low) / 50),
    }
    order = {
        "by": choice(
            "order by", [("row", ""), *((name, score) for score, name in headings.items())], ""
        ),
        "falling": checkbox("largest first"),
    }
    return (
        first,
        {name: checkbox(label) for name, (label, needed) in ticks.items() if needed in per_pair},
        order,
        high,
    )


def _round_ends(values: np.ndarray) -> tuple[float, float]:
    """Round numbers that enclose all that are finite, for a slider."""
    from matplotlib.ticker import MaxNLocator

    numbers = values[np.isfinite(values)]
    low, high = (numbers.min(), numbers.max()) if len(numbers) else (0.0, 1.0)
    ticks = MaxNLocator(4, steps=[1, 2, 5, 10]).tick_values(low, high)
    return float(ticks[0]), float(ticks[-1])


def _default_axes(
    results,  # with `headings`
) -> tuple[str, str]:
    """Style across and content upwards where both were scored, else the first two scores."""
    names = list(results.headings)
    return (
        ("sti", "cps")
        if {"sti", "cps"} <= set(names)
        else (names[0], names[min(1, len(names) - 1)])
    )


def _with_ratings(
    per_pair: pd.DataFrame, ratings: pd.DataFrame | None
) -> tuple[pd.DataFrame, dict[str, str]]:
    """The rows with a column for each criterion, and what those columns are called."""
    if ratings is None:
        return per_pair, {}
    check_equal_lengths(per_pair=per_pair, ratings=ratings)
    rated = {f"rating_{name}": f"rating of {displayable(str(name))[:40]}" for name in ratings}
    return per_pair.assign(
        **{column: ratings[name].to_numpy(float) for column, name in zip(rated, ratings)}
    ), rated


def _axis_choices(axes: tuple[str, str], headings: dict) -> dict:
    names = [(name, column) for column, name in headings.items()]
    return {"across": choice("across", names, axes[0]), "up": choice("upwards", names, axes[1])}


def evaluation_explorer(
    results,  # of `evaluate`, or of `read_results`: per_pair, systems, headings
    x: str
    | None = None,  # the column drawn across; None: STI, else the first score; with ratings CPS, else the second
    y: str
    | None = None,  # the column that is drawn upwards; None: likewise, and the first rating where there are any
    ratings: pd.DataFrame
    | None = None,  # people's: a row an output, a column a criterion, NaN where nobody rated
):
    """An explorer of an evaluation's pairs. Returns a widget.

    Raises: InputError if there is no such column, or ratings of another number of rows.
    """
    per_pair, rated = _with_ratings(results.per_pair.reset_index(drop=True), ratings)
    scores = results.headings
    usual = _default_axes(results)
    best = next(iter(rated), "")
    headings = scores | rated
    axes = (x or usual[1 if rated else 0], y or best or usual[1])
    for column in axes:
        check_choice(column, f"the column {column}", headings)
    first, checks, order, everything = _filters(results.systems, per_pair, axes[1], headings)
    order["by"].value = axes[1]  # so that the list begins with what the sentence names
    doubts = _not_to_believe(_told(results))
    pairs, points, (button, link, both) = (
        listing("pair"),
        chart("point"),
        button_and_link("Make a CSV file of these pairs"),
    )
    shown: dict[str, Any] = {}

    def draw(system, highest, by, falling, pair, point, **others):
        chosen = others.pop("across", axes[0]), others.pop("up", axes[1])
        rows = order_rows(
            per_pair,
            filter_rows(
                per_pair,
                None if system == "all systems" else system,
                column=axes[1],
                highest=None if highest >= everything else highest,
                **others,
            ),
            by or None,
            falling,
        )
        pressed = point if point != shown.get("selected") else pair
        if not np.array_equal(rows, shown.get("rows")):
            shown["rows"], link.value = rows, ""
            _list_pairs(pairs, per_pair, rows[:_LISTED], pair, rated)
        elif pressed is not None and pressed in rows[:_LISTED]:
            pairs.value = pressed
        shown["selected"] = pairs.value
        _show_map(points, per_pair, rows, chosen, headings, pairs.value)
        turn = (
            f", {'falling' if falling else 'rising'} {headings.get(by, 'row')}"
            if by or falling
            else ""
        )
        details = (
            None
            if pairs.value is None
            else _pair_details(per_pair.iloc[pairs.value], scores, rated)
        )
        return _browser_picture(
            per_pair,
            rows,
            details,
            turn + _unrated(per_pair.iloc[rows], rated),
            _lowest(per_pair, rows, chosen[1], headings[chosen[1]]),
            doubts,
        )

    def offer(_):
        link.value = download_link(
            "selection.csv",
            selection_csv(per_pair, shown["rows"]),
            f"Download {len(shown['rows']):,} pairs",
        )

    button.on_click(offer)
    return explorer(
        "Which texts lie behind a score?",
        [
            first,
            order,
            checks,
            *([_axis_choices(axes, headings)] if rated else []),
            {"pair": pairs},
            {"export": both},
            {"point": points},
        ],
        draw,
    )


def _show_map(
    points,
    per_pair: pd.DataFrame,
    rows: np.ndarray,
    axes: tuple,
    headings: dict,
    selected: int | None,
) -> None:
    x, y = (per_pair[column].to_numpy(float) for column in axes)
    names = [headings[column] for column in axes]
    drawing = trade_off(
        x, y, per_pair.system, rows=rows, selected=selected, labels=tuple(names), below=True
    )
    points.show(drawing, _points(drawing, per_pair, rows[:_LISTED], axes, names), selected)


def _unrated(chosen: pd.DataFrame, rated: dict[str, str]) -> str:
    """How many of the chosen rows lack each rating, in words."""
    missing = {name: int(chosen[column].isna().sum()) for column, name in rated.items()}
    return "".join(f"; {n:,} without a {name}" for name, n in missing.items() if n)


def _browser_picture(
    per_pair: pd.DataFrame,
    rows: np.ndarray,
    details: Markup | None,
    turn: str,
    lowest: str,
    doubts: list[Markup],
) -> Picture:
    note = f"; the list and the points are the first {_LISTED}" if len(rows) > _LISTED else ""
    return answered(
        f"{len(rows):,} of {len(per_pair):,} outputs{turn}{note}. {lowest}",
        details or tag("p", "no pair passes the filters"),
        *doubts,
    )


def _lowest(per_pair: pd.DataFrame, rows: np.ndarray, column: str, heading: str) -> str:
    """Which of the rows has the lowest score, in words."""
    values = per_pair[column].to_numpy(float)[rows]
    if not np.isfinite(values).any():
        return ""
    row = rows[np.nanargmin(values)]
    return f"The lowest {heading} ({number(np.nanmin(values))}) has row {row}, of {per_pair.system[row]}."


def _told(results) -> dict[str, Any]:
    """What the report says, of results that were opened as it was written."""
    return results.metadata if hasattr(results, "metadata") else work_out(results).plain()


def _listed(told: dict[str, Any], name: str) -> list:
    found = told.get(name)
    return list(found) if isinstance(found, list | tuple) else []


def _not_to_believe(told: dict[str, Any]) -> list[Markup]:
    """Warnings and doubts in the words of the report, and its notes for who asks."""
    notes = [note for note in _listed(told, "notes") if isinstance(note, dict) and "text" in note]
    lines = [f"warning: {note['text']}" for note in notes if note.get("warning")]
    lines += [f"doubt: {text}" for text in _listed(told, "doubts")]
    others = [tag("p", note["text"]) for note in notes if not note.get("warning")]
    shown = []
    if lines:
        items = [tag("li", line) for line in lines]
        list_ = tag("ul", *items, style="margin:.2em 0;padding-left:1.2em")
        shown.append(tag("div", heading("What not to believe"), list_, style="margin:.8em 0"))
    if others:
        shown.append(_folded("Notes", *others))
    return shown


def _compared(told: dict[str, Any], headings: dict, system: str) -> list[tuple[str, list[dict]]]:
    """The other system and the rows of each comparison with this one, as the difference of this one minus the other."""
    sides = []
    for pair in _listed(told, "comparisons"):
        match pair:
            case {"a": str(a), "b": str(b), "metrics": [*rows]} if system in (a, b):
                differences = [
                    row if system == a else _turned(row) for row in rows if _is_row(row, headings)
                ]
                if differences:
                    sides.append((b if system == a else a, differences))
    return sides


def _is_row(row, headings: dict) -> bool:
    """Whether a row of summary.json is one that `tsteval evaluate` writes."""
    numbers = ("difference", "low", "high", "n", "p_holm")
    return (
        isinstance(row, dict)
        and row.get("metric") in headings
        and row.get("verdict") in VERDICTS
        and all(isinstance(row.get(name, ""), int | float | None) for name in numbers)
    )


_OTHER_SIDE = {BETTER: WORSE, WORSE: BETTER, HIGHER: LOWER, LOWER: HIGHER}


def _turned(row: dict) -> dict:
    """A comparison seen from its other side."""
    below = {
        name: None if row[name] is None else -row[name] for name in ("difference", "low", "high")
    }
    return (
        row
        | below
        | {
            "low": below["high"],
            "high": below["low"],
            "verdict": _OTHER_SIDE.get(row["verdict"], row["verdict"]),
        }
    )


def _explained(row: dict) -> str:
    """What a paired test says, in words."""
    p = row["p_holm"]
    if p is None or row["difference"] is None:
        return "cannot be compared"
    standing = row["verdict"]
    if standing == FEW:
        return f"no verdict from {row['n']} sources"
    chance = p_text(p)
    if standing in (OPEN, EQUAL):
        return f"{standing}: chance could do it ({chance})"
    if standing in (BETTER, WORSE):
        return (
            f"{standing} by {number(abs(row['difference']))}, which chance hardly does ({chance})"
        )
    return f"{standing}, more than chance does ({chance}), which does not say that it is better"


def _in_a_sentence(results, system: str, other: str, rows: list[dict]) -> str:
    """How a system stands to another by the scores that stand for their metrics."""
    relatives = {column for metric in results.metrics for column in metric.columns[1:]}
    kinds: dict[str, list[str]] = {kind: [] for kind in VERDICTS}
    for row in rows:
        if row["metric"] not in relatives:
            kinds[row["verdict"]].append(results.headings[row["metric"]])
    parts = [f"{kind} by {enumerated(names)}" for kind, names in kinds.items() if names]
    return f"{system} against {other}: {'; '.join(parts) or 'see the tests below'}."


def _verdicts(headings: dict, system: str, compared: list[tuple[str, list[dict]]]) -> list[Markup]:
    """A table for each system that this one was compared with."""
    return [
        table(
            ["", "difference, and what that says"],
            [
                [
                    headings[row["metric"]],
                    f"{number(row['difference'])} ({number(row['low'])} to {number(row['high'])}): "
                    f"{_explained(row)}",
                ]
                for row in rows
            ],
            f"{system} against {other}",
        )
        for other, rows in compared
    ]


_NAMED = 3  # systems that a sentence speaks of


def _folded(title: str, *content) -> Markup:
    """What is shown to who asks for it."""
    return tag("details", tag("summary", title, style="cursor:pointer;padding:4px 0"), *content)


def systems_picture(
    results,  # as for `evaluation_explorer`
    selected: int = 0,  # row of the summary whose scores are written out
    told: dict[str, Any] | None = None,  # what the report says of them; None: it is worked out
) -> Picture:
    """What the report says first; how one system stands to others, in words; what not to believe; its tests, its scores
    and every system's intervals for who asks."""
    told = told or _told(results)
    summary = results.summary()
    headings = results.headings
    row = summary.iloc[selected]
    cells = [
        [
            name,
            number(row[column]) or "none",
            f"{number(row[f'{column}_low'])} to {number(row[f'{column}_high'])}",
        ]
        for column, name in headings.items()
    ]
    note = tag(
        "p",
        "A mark is a score, a line its 95% interval. Overlap decides nothing: the paired tests do, "
        "where there are any.",
        style=f"color:{FAINT}",
    )
    panels = (interval_plot(summary, [column], headings) for column in headings)
    compared = _compared(told, headings, row.system)
    said = [_in_a_sentence(results, row.system, *pair) for pair in compared[:_NAMED]]
    if len(compared) > _NAMED:
        said.append(f"The tests below compare it with {len(compared) - _NAMED} more.")
    own = " ".join(said) or f"{row.system} was compared with no other system."
    verdicts = _verdicts(headings, row.system, compared)
    overall = told.get("overall")
    return answered(
        overall or own,
        *([tag("p", own)] if overall else []),
        note,
        *_not_to_believe(told),
        *([_folded("The tests, score by score", *verdicts)] if said else []),
        _folded(
            f"All scores of {row.system}",
            table(["", "score", "interval"], cells, f"{row.system}, {row.n:,} outputs"),
        ),
        _folded("Every system's intervals", side_by_side(*panels)),
    )


def _map_of_systems(
    points, summary: pd.DataFrame, axes: tuple, names: list[str], selected: int
) -> None:
    ends = [
        [summary[f"{column}{end}"].to_numpy(float) for end in ("", "_low", "_high")]
        for column in axes
    ]
    (x, *wide), (y, *tall) = ends
    systems = list(summary.system)
    counts = summary.n.to_numpy(int)
    finite = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
    intervals = {systems[row]: tuple(float(side[row]) for side in (*wide, *tall)) for row in finite}
    drawing = trade_off(
        np.repeat(x, counts),
        np.repeat(y, counts),
        np.repeat(np.array(systems, dtype=object), counts),
        means=Means(intervals),
        labels=tuple(names),
        below=True,
    )
    places = drawing.places(x, y)
    labels = [
        f"{system}, {names[0]} {number(x[row])}, {names[1]} {number(y[row])}"
        for row, system in enumerate(systems)
    ]
    points.show(
        drawing,
        [
            (int(row), *map(float, places[row]), labels[row])
            for row in sorted(finite, key=lambda row: tuple(places[row]))
        ],
        selected,
    )


def systems_browser(
    results,  # as for `evaluation_explorer`
):
    """An explorer of an evaluation's systems. Returns a widget."""
    summary = results.summary()
    headings = results.headings
    names = [(name, column) for column, name in headings.items()]
    axes = _default_axes(results)
    points = chart("system")
    systems = [(displayable(system)[:60], row) for row, system in enumerate(summary.system)]
    rows = [
        {
            "across": choice("across", names, axes[0]),
            "up": choice("upwards", names, axes[1]),
            "system": choice("system", systems, 0),
        },
        {"point": points},
    ]
    told = _told(results)
    shown = {"selected": 0}

    def draw(across, up, system, point):
        if point is not None and point != shown["selected"] and system == shown["selected"]:
            rows[0]["system"].value = system = point
        shown["selected"] = system
        _map_of_systems(points, summary, (across, up), [headings[across], headings[up]], system)
        return systems_picture(results, system, told)

    return explorer("Which system is better?", rows, draw)


def demonstration_results() -> OpenedResults:
    """What there is to explore where there is no evaluation of one's own: what `tsteval evaluate` gives by default."""
    return read_results(packaged_path("demonstration"))
