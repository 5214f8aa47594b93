"""Results of an evaluation as a folder holds them, read again with one function."""

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..core.checks import InputError
from ..core.display import displayable
from ..core.metric import METRICS, Metric
from ..tables.formats import PAIR_COLUMNS, REFERENCE_COLUMN, FileError, parse_table
from ..tables.tables import read_table
from .parts import SUMS


@dataclass(frozen=True)
class OpenedResults:
    """The results of an evaluation, read from files."""

    # one row an output: system, source, output, references (tuple of str), and columns of numbers
    per_pair: pd.DataFrame
    records: list[
        dict[str, Any]
    ]  # one a system: system, n, and for each score its value, <score>_low, <score>_high
    metadata: dict[
        str, Any
    ]  # what else was written: input, settings, comparisons, signatures, models, versions

    @property
    def systems(self) -> list[str]:
        """The systems in the order in which they first occur."""
        return list(dict.fromkeys(self.per_pair.system))

    @property
    def columns(self) -> list[str]:
        """The scores that a system has."""
        return [name for name in self.records[0] if f"{name}_low" in self.records[0]]

    @cached_property
    def metrics(self) -> list[type[Metric]]:
        """The package's metrics that were asked for."""
        names = (self.metadata.get("settings") or {}).get("metrics", ())
        return [METRICS[name] for name in names if name in METRICS]

    @cached_property
    def headings(self) -> dict[str, str]:
        """What the scores are called in tables and figures: as their metrics say, else by their names."""
        named = {
            column: metric.heading(column) for metric in self.metrics for column in metric.columns
        }
        return {
            column: named.get(column, displayable(column.replace("_", " ")))
            for column in self.columns
        }

    def heading(self, column: str) -> str:
        """What any column is called."""
        return self.headings.get(column, column.replace("_", " "))

    def summary(self) -> pd.DataFrame:
        """One row a system, as it was written."""
        return pd.DataFrame(self.records)


_HOW = "tsteval evaluate FILE --output FOLDER writes such a folder"


def _read_summary(path: Path) -> tuple[list[dict], dict]:
    try:
        metadata = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise FileError(f"{path}: not valid JSON ({error}); {_HOW}") from error
    records = metadata.pop("systems", None) if isinstance(metadata, dict) else None
    if not (
        isinstance(records, list)
        and records
        and all(
            isinstance(row, dict) and {"system", "n"} <= set(row) and isinstance(row["n"], int)
            for row in records
        )
    ):
        raise FileError(f"{path}: there is no list of systems in it; {_HOW}")
    names = [
        name for name in records[0] if f"{name}_low" in records[0] and f"{name}_high" in records[0]
    ]
    ends = [f"{name}{end}" for name in names for end in ("", "_low", "_high")]
    return [
        {"system": displayable(str(row["system"])), "n": row["n"]}
        | {name: _number(row.get(name)) for name in ends}
        for row in records
    ], metadata


def _number(value) -> float:
    return float(value) if isinstance(value, (int, float)) else np.nan


def _read_parts(folder: Path) -> pd.DataFrame:
    """The rows that a run in blocks wrote, with a column for each reference."""
    table = pd.concat(
        [
            parse_table(path.read_bytes(), "parquet")
            for path in sorted(folder.glob("part-*.parquet"))
        ],
        ignore_index=True,
    )
    table = table.drop(columns=[name for name in table if name.startswith(SUMS)])
    texts = pd.DataFrame(table.pop("references").map(list).to_list(), index=table.index)
    return table.assign(**{f"reference_{place}": texts[place] for place in texts})


def _read_pairs(path: Path, scores: list[str]) -> pd.DataFrame:
    try:
        table = _read_parts(path) if path.is_dir() else read_table(path)
    except (InputError, OSError, ValueError, KeyError, TypeError) as error:
        raise FileError(f"{path}: {error}") from error
    if missing := [name for name in ("system", "source", "output", *scores) if name not in table]:
        raise FileError(f"{path}: there is no column {missing[0]}; {_HOW}")
    texts = [
        name for name in table if name in PAIR_COLUMNS or REFERENCE_COLUMN.fullmatch(str(name))
    ]
    frame = table[texts].fillna("").map(lambda text: displayable(str(text)))
    frame["references"] = [
        tuple(filter(None, row))
        for row in frame[[name for name in texts if REFERENCE_COLUMN.fullmatch(name)]].to_numpy()
    ]
    for name in table.columns.difference(texts, sort=False):
        numbers = pd.to_numeric(table[name], errors="coerce")
        if name in scores or numbers.notna().any():
            frame[name] = numbers.to_numpy(float)
    return frame.drop(columns=[name for name in texts if REFERENCE_COLUMN.fullmatch(name)])


def read_results(
    folder: Path | str,  # what `tsteval evaluate` wrote
) -> OpenedResults:
    """Open the results of an evaluation. Raises: FileError that names the file and what it lacks."""
    folder = Path(folder)
    if not folder.is_dir():
        raise FileError(f"{folder}: there is no such folder; {_HOW}")
    summary = folder / "summary.json"
    whole = folder / "per_pair.csv"
    parts = folder / "parts"
    in_parts = any(parts.glob("part-*.parquet"))
    if missing := [
        path.name
        for path, there in ((whole, in_parts or whole.exists()), (summary, summary.exists()))
        if not there
    ]:
        raise FileError(f"{folder}: there is no {' and no '.join(missing)} in it; {_HOW}")
    records, metadata = _read_summary(summary)
    # a run in blocks names itself; before version 0.3 it did not, and had the folder for itself
    pairs = parts if in_parts and ("run" in metadata or not whole.exists()) else whole
    per_pair = _read_pairs(pairs, [name for name in records[0] if f"{name}_low" in records[0]])
    if other := {row["system"] for row in records} ^ set(per_pair.system):
        raise FileError(
            f"{folder}: only one of {pairs.name} and summary.json has the system {min(other)!r}; they "
            f"are of different runs"
        )
    if len(per_pair) != (n := sum(row["n"] for row in records)):
        raise FileError(
            f"{folder}: {pairs.name} holds {len(per_pair):,} rows, and summary.json tells of {n:,}; they "
            f"are "
            f"of different runs"
        )
    return OpenedResults(per_pair, records, metadata)
