"""A table on disk that need not fit into memory, in batches from its first row to its last"""

import contextlib
import hashlib
import itertools
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..core.checks import check_number
from ..core.files import known_sha256
from .columns import classes, doubtful, find_columns
from .formats import (
    FileError,
    column_names,
    lines_on_disk,
    open_columnar,
    refusing,
    rows_of,
    saved_files,
    strictly,
    whole_frame,
)
from .tables import refuse_splits

_LOOKED_AT = 200  # rows by which classes are told from references
_COLUMNAR = {"parquet": "Parquet file", "arrow": "saved data set"}
_KINDS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
}


def _table_files(
    path: Path | str,  # a file, a folder of files, or a folder that `datasets` saved
) -> list[tuple[Path, str]]:  # each file and its kind, in order
    """The files of a table. Raises: FileError that says what is wrong with the file or the folder."""
    path = Path(path)
    if not path.exists():
        raise FileError("there is no such file")
    if not path.is_dir():
        if path.suffix.lower() not in _KINDS:
            raise FileError(
                f"a table in blocks cannot be read from {path.suffix or 'a file without ending'}; use "
                f".csv, .tsv, .jsonl or .parquet, unpacked"
            )
        return [(path, _KINDS[path.suffix.lower()])]
    refuse_splits(path)
    if (path / "state.json").is_file():
        return [(file, "arrow") for file in saved_files(path)]
    files = sorted(file for file in path.iterdir() if not file.name.startswith((".", "_")))
    if not files:
        raise FileError("the folder holds no files")
    if other := [file.name for file in files if file.is_dir() or file.suffix.lower() not in _KINDS]:
        raise FileError(
            f"the folder holds {other[0]}, which is no .csv, .tsv, .jsonl or .parquet file; take it out, "
            f"or name the files' own folder"
        )
    return [(file, _KINDS[file.suffix.lower()]) for file in files]


def _batches(
    path: Path | str, kind: str, size: int, columns: Collection[str] | None = None
) -> Iterator[Any]:
    """So many rows at a time: a pyarrow.Table of a columnar file, else a list of dictionaries, with a FileError in the
    place of a row that cannot be read."""
    if kind not in _COLUMNAR:
        rows = _records(path, kind)
        while batch := list(itertools.islice(rows, size)):
            yield batch
        return
    import pyarrow as pa

    with open_columnar(path, kind, rows=1000, columns=columns) as (_, batches):
        waiting: list[Any] = []
        for batch in batches:
            table = pa.Table.from_batches([*waiting, batch])
            while table.num_rows >= size:
                yield table.slice(0, size)
                table = table.slice(size)
            waiting = table.to_batches()
        if waiting:
            yield pa.Table.from_batches(waiting)


def _records(path: Path | str, kind: str) -> Iterator[dict | FileError]:
    rows = rows_of(lines_on_disk(path, kind), kind)
    if kind == "jsonl":
        yield from rows
        return
    names, _ = column_names(next(rows))
    for row in rows:
        yield row if isinstance(row, FileError) else dict(zip(names, row))


@dataclass(frozen=True)
class Batch:
    """Some rows of a table on disk, as they stand in their file."""

    number: int  # counted from 0, in the order of the table
    file: Path
    kind: str  # csv | tsv | jsonl | parquet | arrow
    first_row: int  # in the file, counted from 0
    rows: Any = field(repr=False)  # a pyarrow.Table, or a list of dictionaries and FileErrors

    def __len__(self) -> int:
        return len(self.rows)

    def frame(self) -> pd.DataFrame:
        """The rows. Raises: FileError for one that cannot be read."""
        if isinstance(self.rows, list):
            return pd.DataFrame(list(strictly(self.rows)), dtype=object)
        last = self.first_row + len(self) - 1
        with refusing(f"rows {self.first_row} to {last} cannot be read"):
            return whole_frame(self.rows)

    def readable(
        self,
    ) -> tuple[pd.DataFrame, np.ndarray, list[tuple[int, str]]]:
        """The rows that can be read, which rows of the file these are, and the others, each with what is wrong."""
        places = np.arange(self.first_row, self.first_row + len(self))
        if not isinstance(self.rows, list):
            return self.frame(), places, []
        refused = [
            (int(place), str(row))
            for place, row in zip(places, self.rows)
            if isinstance(row, FileError)
        ]
        readable = [row for row in self.rows if not isinstance(row, FileError)]
        left = np.setdiff1d(places, [place for place, _ in refused])
        return pd.DataFrame(readable, dtype=object), left, refused


def numbered_batches(
    path: Path | str,  # see `read_batches`
    rows: int = 1000,  # see `read_batches`
    columns: Collection[str] | None = None,  # of columnar files, those to be read; None: all
) -> Iterator[Batch]:
    """A table in bounded memory, each batch with its place. Raises: FileError that names the file, and the line or
    row."""
    check_number(rows, "rows", 1, whole=True)
    files = _table_files(path)
    number = 0
    for file, kind in files:
        first_row = 0
        with _reading(file, kind, len(files) > 1):
            for batch in _batches(file, kind, rows, columns):
                yield Batch(number, file, kind, first_row, batch)
                number += 1
                first_row += len(batch)


def read_batches(
    path: Path | str,  # a file, a folder of files, or a folder that `datasets` saved
    rows: int = 1000,  # in a batch, at least 1; the last batch of a file may have fewer
) -> Iterator[pd.DataFrame]:  # in the order of the table; columns that a batch lacks are not in it
    """A table in bounded memory. Raises: FileError that names the file, and the line or row."""
    several = len(_table_files(path)) > 1
    for batch in numbered_batches(path, rows):
        with _reading(batch.file, batch.kind, several):
            yield batch.frame()


@contextlib.contextmanager
def _reading(file: Path, kind: str, named: bool):
    try:
        with refusing(f"not a readable {_COLUMNAR.get(kind, 'file')}"):
            yield
    except FileError as error:
        raise error.at(file=file.name) if named else error from None


@dataclass(frozen=True)
class Survey:
    """What a table on disk holds, from looking through it once."""

    columns: tuple[str, ...]  # in the order in which they first occur
    found: dict[str, list]  # those that are read, see `find_columns`
    files: list[dict[str, Any]]  # name, rows, bytes, sha256
    sha256: str  # see `table_sha256`

    @property
    def n_rows(self) -> int:
        """Rows of the table."""
        return sum(file["rows"] for file in self.files)

    def batch_lengths(
        self,
        rows: int,  # in a batch; the last batch of a file may have fewer
    ) -> list[int]:
        """The rows of each batch."""
        return [
            min(rows, file["rows"] - first)
            for file in self.files
            for first in range(0, file["rows"], rows)
        ]


def table_sha256(
    path: Path | str,  # see `read_batches`
) -> str:
    """SHA-256 of a file; of the names and checksums of several. Raises: FileError as `survey_table`."""
    sums = [(file.name, known_sha256(file)) for file, _ in _table_files(path)]
    if len(sums) == 1:
        return sums[0][1]
    lines = "".join(f"{name} {sha256}\n" for name, sha256 in sums)
    return hashlib.sha256(lines.encode("utf-8", "surrogateescape")).hexdigest()


def survey_table(
    path: Path | str,  # see `read_batches`
) -> Survey:
    """Look through a table once, in bounded memory. Raises: FileError that names the file, and the line or row."""
    several = _table_files(path)
    files = []
    columns: dict[str, None] = {}
    for file, kind in several:
        with _reading(file, kind, len(several) > 1):
            n_rows, names = _looked_through(file, kind)
        columns |= names
        files.append(
            {
                "name": file.name,
                "rows": n_rows,
                "bytes": file.stat().st_size,
                "sha256": known_sha256(file),
            }
        )
    passed = []
    if unclear := doubtful(columns):
        first, *_ = next(numbered_batches(path, _LOOKED_AT, unclear)).readable()
        passed = classes(first)
    found = find_columns(list(columns), passed=passed)
    return Survey(tuple(columns), found, files, table_sha256(path))


def _looked_through(path: Path, kind: str) -> tuple[int, dict[str, None]]:
    """How many rows, and which columns. Rows are counted, since a damaged file can promise any number."""
    n_rows = 0
    names: dict[str, None] = {}
    if kind in _COLUMNAR:
        with open_columnar(path, kind, rows=1000, columns=()) as (schema, batches):
            n_rows = sum(batch.num_rows for batch in batches)
        names = dict.fromkeys(schema.names)
        if len(names) < len(schema.names):
            name = max(schema.names, key=schema.names.count)
            raise FileError(f"there is more than one column {name}; rename or drop all but one")
    else:
        for row in _records(path, kind):
            n_rows += 1
            if isinstance(row, dict):
                names |= dict.fromkeys(row)
    if n_rows:
        return n_rows, names
    if kind in _COLUMNAR or any(line.strip() for line in lines_on_disk(path, kind)):
        raise FileError("the file has a header and no rows")
    raise FileError(
        "the file is empty; it needs a header with source and output, and at least one row"
    )
