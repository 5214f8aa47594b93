"""Systems with their scores, a panel a score, as the comparisons judged them; and how their outputs are spread"""

import re

import numpy as np
import pandas as pd

from .charts import BASELINE, NAME_WIDTH, Panel, ScoreInterval
from .findings import Findings, column_digits
from .markup import shortened

_RANGE = re.compile(r",? (mostly )?-?\d+(\.\.| to )\d+$")  # said once, as the unit
_DIRECTIONS = {
    "higher": "higher is better \u2192",
    "lower": "\u2190 lower is better",
    "neither": "no end is better",
}


def systems_panels(
    findings: Findings,
) -> list[Panel]:
    """Each system's scores with their intervals, by the columns that stand for their metrics."""
    verdicts = {
        (pair["a"], row["metric"]): row["verdict"]
        for pair in findings.comparisons
        for row in pair["metrics"]
    }
    baseline = findings.comparisons[0]["b"] if findings.comparisons else None
    return [
        _panel(
            findings,
            column,
            [
                ScoreInterval(
                    str(row["system"]),
                    row[column],
                    row[f"{column}_low"],
                    row[f"{column}_high"],
                    BASELINE
                    if row["system"] == baseline
                    else verdicts.get((row["system"], column), ""),
                    column_digits(findings.systems, column),
                )
                for row in findings.systems
            ],
        )
        for column in findings.leading
    ]


def systems_caption(findings: Findings) -> str:
    """What the marks and lines of `systems_panels` say."""
    caption = "Lines: 95% intervals of the scores."
    if not findings.comparisons:
        return caption
    baseline = shortened(findings.comparisons[0]["b"], NAME_WIDTH, middle=True)
    return f"Against {baseline}: blue circles are better, red squares worse, open circles neither. {caption}"


def spread_panels(
    findings: Findings,
    rows: pd.DataFrame,  # one row an output: system, and the columns that stand for their metrics
) -> list[Panel]:
    """The median of each system's outputs, and the middle half of them as its interval."""
    panels = []
    for column in findings.leading:
        intervals = []
        for row in findings.systems:
            values = rows[column][rows.system == row["system"]].to_numpy(float)
            values = values[np.isfinite(values)]
            low, median, high = (
                np.quantile(values, (0.25, 0.5, 0.75)) if len(values) else (None,) * 3
            )
            digits = column_digits(findings.systems, column)
            intervals.append(ScoreInterval(str(row["system"]), median, low, high, digits=digits))
        panels.append(_panel(findings, column, intervals))
    return panels


def _panel(findings: Findings, column: str, intervals: list[ScoreInterval]) -> Panel:
    """A score under the question that it answers, with what has to be known to read it."""
    metric = next(one for one in findings.metrics if column in one["columns"])
    heading = metric["columns"][column]
    counts = sorted({row["n"] for row in findings.systems})
    told = f"n = {' to '.join(f'{count:,}' for count in dict.fromkeys((counts[0], counts[-1])))}"
    return Panel(
        f"{metric['question']}: {heading}" if metric["question"] else heading,
        intervals,
        notes=(
            _DIRECTIONS[metric["better"]],
            f"{metric['unit']}, {told}" if metric["unit"] else told,
        ),
        about=_RANGE.sub("", metric["description"].partition(";")[0]),
    )
