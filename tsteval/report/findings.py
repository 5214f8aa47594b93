"""All that a report says of an evaluation, worked out once in one value that no one changes"""

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd

from tsteval.report.conclusions import (
    Conclusion,
    Score,
    conclude,
    doubts,
    in_question_order,
    overall,
    unsettled,
    verdict,
)

from ..core.checks import InputError
from ..core.display import enumerated
from ..core.metric import Metric, described
from .evidence import people_lines
from .methods import Evaluated, methods_paragraph


def plain_records(
    frame: pd.DataFrame,
) -> list[dict[str, Any]]:
    """Rows as dictionaries that JSON can hold."""
    return [
        {
            key: None if isinstance(value, float) and not math.isfinite(value) else value
            for key, value in row.items()
        }
        for row in frame.to_dict("records")
    ]


def comparisons(
    result: Evaluated,
) -> list[dict[str, Any]]:  # a, b, and metrics: the rows of `compare`, with a verdict on a
    """Every other system against the baseline, where the two share a source."""
    rows = result.comparisons()
    better = _good_ends(result)
    return (
        [
            {
                "a": a,
                "b": b,
                "metrics": [
                    row | {"verdict": verdict(row, better[row["metric"]])}
                    for row in plain_records(pair)
                ],
            }
            for (a, b), pair in rows.groupby(["a", "b"], sort=False)
        ]
        if len(rows)
        else []
    )


def _good_ends(result: Evaluated) -> dict[str, str]:
    """Column -> which end of it may be called better: higher, lower or neither."""
    ends = {column: metric.better for metric in result.metrics for column in metric.columns}
    return ends | dict.fromkeys(result.unfit, "neither")


@dataclass(frozen=True)
class Findings:
    """What an evaluation found, as plain values."""

    # name, question, description, better, unit, columns (column -> heading), signature, row_signature
    metrics: tuple[Mapping[str, Any], ...]
    systems: tuple[Mapping[str, Any], ...]  # system, n, and each column with its _low and _high
    comparisons: tuple[Mapping[str, Any], ...]  # see `comparisons`
    conclusions: tuple[Conclusion, ...]  # a score each, in the order of the questions
    overall: str  # a sentence: which system is better in what; empty if nothing was compared
    unsettled: str  # a sentence on what the comparisons left open
    doubts: tuple[str, ...]  # what not to believe, counted
    notes: tuple[Mapping[str, Any], ...]  # metric, warning, text, figures
    methods: str
    references: tuple[str, ...]  # the works that the methods cite
    n_boot: int
    seed: int
    models: Mapping[str, str]  # model -> checksum
    # title -> examples: reason, system, source, output, source_spans, output_spans, scores, objections
    galleries: Mapping[str, list[dict]]
    versions: Mapping[str, str]
    file: str = ""  # where the rows came from
    percent: tuple[str, ...] = ()  # columns that were multiplied by 100

    @property
    def headings(self) -> dict[str, str]:
        """Column -> how it is called."""
        return {
            column: heading
            for metric in self.metrics
            for column, heading in metric["columns"].items()
        }

    @property
    def leading(self) -> list[str]:
        """The columns that stand for their metrics, in the order of the questions."""
        return [conclusion.column for conclusion in self.conclusions]

    @property
    def relatives(self) -> list[str]:
        """The other columns."""
        return [column for metric in self.metrics for column in list(metric["columns"])[1:]]

    @property
    def about(self) -> str:
        """What was scored, in words."""
        counts = {row["n"] for row in self.systems}
        each = f"{counts.pop():,} outputs of each of" if len(counts) == 1 else "the outputs of"
        if len(self.systems) == 1:
            each = f"{self.systems[0]['n']:,} outputs of"
        names = [str(row["system"]) for row in self.systems]
        shown = names if len(names) <= 8 else [*names[:7], f"{len(names) - 7} more"]
        kinds = "the system" if len(names) == 1 else f"{len(names)} systems:"
        return f"{each} {kinds} {enumerated(shown)}{f'; from {self.file}' if self.file else ''}"

    def summary(self) -> dict[str, Any]:
        """What summary.json holds of it."""
        return {
            "systems": list(self.systems),
            "overall": self.overall,
            "conclusions": [conclusion.text for conclusion in self.conclusions],
            "doubts": list(self.doubts),
            "notes": list(self.notes),
            "comparisons": list(self.comparisons),
        }

    def plain(self) -> dict[str, Any]:
        """All of it as dictionaries and lists, for JSON."""
        return asdict(self)


def work_out(
    result: Evaluated,
    galleries: Mapping[str, list[dict]] | None = None,  # see `Findings`
    versions: Mapping[str, str] | None = None,  # of the libraries
    file: str = "",  # where the rows came from
    # whether scores that papers print so are multiplied by 100, see `Metric.percent`; None: no, and no heading says so
    percent: bool | None = None,
) -> Findings:
    """What an evaluation found. Reading it scores nothing and draws no resample twice."""
    hundreds = {
        column
        for metric in result.metrics
        if percent and metric.percent
        for column in metric.columns
    }
    metrics = tuple(
        _metric_facts(result, metric, hundreds, percent is not None) for metric in result.metrics
    )
    ends = {f"{column}{end}" for column in hundreds for end in ("", "_low", "_high")}
    systems = tuple(_times_100(row, ends) for row in plain_records(result.summary()))
    compared = tuple(
        {**pair, "metrics": [_scaled(row, hundreds) for row in pair["metrics"]]}
        for pair in comparisons(result)
    )
    unfit = result.unfit if len(systems) > 1 else {}
    scores = in_question_order(_score_of(metric, systems, hundreds, unfit) for metric in metrics)
    conclusions = tuple(_concluded(result, score, systems, compared, hundreds) for score in scores)
    methods, works = methods_paragraph(result)
    several = len(systems) > 1
    return Findings(
        metrics,
        systems,
        compared,
        conclusions,
        overall(conclusions) if several else "",
        unsettled(conclusions) if several else "",
        tuple(doubts(result.tallies(), scores, conclusions)),
        tuple(plain_records(result.notes())),
        methods,
        tuple(works),
        result.n_boot,
        result.seed,
        dict(result.models),
        dict(galleries or {}),
        dict(versions or {}),
        file,
        tuple(column for column in result.columns if column in hundreds),
    )


def _metric_facts(
    result: Evaluated, metric: Metric, hundreds: set[str], with_scale: bool
) -> dict[str, Any]:
    """What a report says of a metric; its headings name the scale where they are asked to and one could err."""
    columns = {column: result.heading(column) for column in metric.columns}
    for place, column in enumerate(columns if with_scale else ()):
        if column in hundreds or (metric.percent == "libraries" and place == 0):
            scale = "%" if metric.percent == "share" else "0-100" if column in hundreds else "0-1"
            columns[column] += f" ({scale})"
    return {
        "name": metric.name,
        "question": metric.aspect,
        "better": metric.better,
        "description": described(metric) or metric.name,
        "unit": _scale(metric, hundreds),
        "people": people_lines(metric, 2, result.signatures[metric.name]),
        "columns": columns,
        "signature": result.signatures[metric.name],
        "row_signature": result.row_signatures.get(metric.name, ""),
    }


def _scale(metric: Metric, hundreds: set[str]) -> str:
    """From where to where the leading score can go, in words; empty where it can go anywhere."""
    times = 100 if metric.columns[0] in hundreds else 1
    ends = [f"{times * end:g}".replace("-", "\u2212") for end in metric.range or ()]
    if not ends or ends == ["\u2212inf", "inf"]:
        return ""
    return f"{ends[0]} to {ends[1]}".replace("\u2212inf to", "up to").replace("to inf", "and more")


def _times_100(row: Mapping[str, Any], names: set[str]) -> dict[str, Any]:
    return {
        name: value * 100 if name in names and value is not None else value
        for name, value in row.items()
    }


def _scaled(row: Mapping[str, Any], hundreds: set[str]) -> dict[str, Any]:
    return _times_100(row, {"difference", "low", "high"} if row["metric"] in hundreds else set())


def _explained(heading: str, name: str) -> str:
    """What a score is called in a sentence: with its metric's name, where the heading does not tell that."""
    plain = re.sub(r"[^a-z0-9]", "", heading.lower())
    known = re.sub(r"[^a-z0-9]", "", name.lower())
    if known in plain:
        return heading
    return name.replace("_", " ") if plain in known else f"{heading} ({name.replace('_', ' ')})"


def _score_of(
    metric: Mapping,
    systems: Sequence[Mapping],
    hundreds: Collection[str],
    unfit: Mapping[str, str],  # column -> why it may not say which system is better
) -> Score:
    """The score that speaks for a metric: its first column."""
    column = next(iter(metric["columns"]))
    return Score(
        metric["question"],
        column,
        _explained(metric["columns"][column], metric["name"]),
        metric["better"],
        1 if column in hundreds else column_digits(systems, column),
        unfit.get(column, ""),
    )


def _concluded(
    result: Evaluated, score: Score, systems, compared, hundreds: set[str]
) -> Conclusion:
    """What is known about one score."""
    rows = [row for pair in compared for row in pair["metrics"] if row["metric"] == score.column]
    by_pair = {(row["a"], row["b"]): row for row in rows}

    def compare(a: str, b: str):
        if (a, b) in by_pair:
            return by_pair[a, b]
        try:
            frame = result.compare(a, b)
        except InputError:
            return None  # no source in common
        return _scaled(
            next(row for row in plain_records(frame) if row["metric"] == score.column), hundreds
        )

    return conclude(
        score,
        {row["system"]: row[score.column] for row in systems},
        rows,
        compare,
    )


def column_digits(
    systems: list[Mapping[str, Any]],  # of `Findings`
    column: str,
) -> int:
    """Places after the point for a whole column: one where any figure is 100 or more."""
    values = [row[column + end] for row in systems for end in ("", "_low", "_high")]
    return 1 if any(abs(value) >= 100 for value in values if value is not None) else 3
