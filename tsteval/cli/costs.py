"""How long metrics would take, before anything is scored: from times that were taken once, on rows of a known length"""

import csv
import time
import warnings
from collections.abc import Sequence
from functools import lru_cache

import pandas as pd

from ..core.assets import packaged_path
from ..core.metric import Metric

TIMED_ROWS = 24  # embedded pairs on which each metric was timed


@lru_cache(maxsize=1)
def metric_seconds() -> dict[str, float]:
    """Metric -> processor seconds of one core for a thousand embedded rows; those that were timed."""
    with packaged_path("metric_facts.csv").open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file)
        return {row["metric"]: float(row["seconds"]) for row in rows if row["seconds"]}


def timed_rows() -> pd.DataFrame:
    """The embedded pairs on which metrics are timed."""
    from tsteval.rewriting import load_rewrites

    rows = load_rewrites().query("system == 'neural'").rename(columns={"target": "reference"})
    rows = rows.head(TIMED_ROWS)
    return rows.assign(input=rows.source).reset_index(drop=True)


def time_metric(
    name: str,
    rows: pd.DataFrame,  # from `timed_rows`
) -> float:
    """Processor seconds for a thousand such rows, once its models are in memory."""
    from tsteval.evaluation import evaluate

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        evaluate(rows.head(2), [name], n_boot=2)
        start = time.process_time()
        evaluate(rows, [name], n_boot=2)
        return (time.process_time() - start) * 1000 / len(rows)


def cost_lines(
    metrics: Sequence[Metric],
    table: pd.DataFrame,  # checked rows: all, or the first ones
    rows: int,  # of the whole table
) -> list[str]:
    """What each metric would cost, a line each, and how long all would take."""
    recorded = metric_seconds()
    length = _words(table.output) / _words(timed_rows().output)
    part = f" for the first {len(table):,} rows" if len(table) < rows else ""
    lines = []
    minutes = {}
    for metric in metrics:
        cost = metric.cost(table)
        if type(metric).cost is not Metric.cost:
            cost += part
        if metric.name in recorded:
            minutes[metric.name] = recorded[metric.name] / 1000 * rows * length / 60
            cost += f", {_minutes(minutes[metric.name])}"
        lines.append(f"{metric.name}: {cost}")
    unknown = [metric.name for metric in metrics if metric.name not in minutes]
    total = f"{rows:,} rows would take {_minutes(sum(minutes.values()))} of one processor core"
    if unknown:
        total = f"{', '.join(unknown)}: never timed, so how long that takes is unknown" + (
            f"; the others: {total}" if minutes else ""
        )
    if not minutes:
        return [*lines, total]
    each = sum(minutes.values()) * 60 / rows
    return [
        *lines,
        f"{total}, {each:.2g} s a row. An estimate, from times that were taken once on {TIMED_ROWS} embedded rows of "
        f"another machine; these outputs have {length:.2g} times the words of those. Loading the models is not in it, "
        f"more cores or a graphics card take less. Nothing was scored or written.",
    ]


def _words(texts: pd.Series) -> float:
    return max(float(texts.str.split().map(len).mean()), 1.0)


def _minutes(minutes: float) -> str:
    return f"about {minutes:,.1f} minutes" if minutes >= 0.1 else "a few seconds"
