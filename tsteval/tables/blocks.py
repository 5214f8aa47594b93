"""A table on disk that need not fit into memory: in batches from its first row to its last, or as a list of blocks"""

import contextlib
import hashlib
import itertools
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from ..core.checks import check_number
from ..core.files import file_sha256
from .formats import (
    PAIR_COLUMNS,
    REFERENCE_COLUMN,
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


def _frame(batch: Any) -> pd.DataFrame:
    if isinstance(batch, list):
        return pd.DataFrame(list(strictly(batch)), dtype=object)
    return whole_frame(batch)


def read_batches(
    path: Path | str,  # a file, a folder of files, or a folder that `datasets` saved
    rows: int = 1000,  # in a batch, at least 1; the last batch of a file may have fewer
) -> Iterator[pd.DataFrame]:  # in the order of the table; columns that a batch lacks are not in it
    """A table in bounded memory. Raises: FileError that names the file, and the line or row."""
    check_number(rows, "rows", 1, whole=True)
    several = _table_files(path)
    for file, kind in several:
        with _reading(file, kind, len(several) > 1):
            yield from map(_frame, _batches(file, kind, rows))


@contextlib.contextmanager
def _reading(file: Path, kind: str, named: bool):
    try:
        with refusing(f"not a readable {_COLUMNAR.get(kind, 'file')}"):
            yield
    except FileError as error:
        raise error.at(file=file.name) if named else error from None


# ---- blocks, any of which can be read without the rest


@dataclass(frozen=True)
class Block:
    """Some rows of a table, and where to find them."""

    number: int  # counted from 0, in the order of the table
    path: str  # of the file that holds them
    kind: str  # csv | tsv | jsonl | parquet | arrow
    first_row: int  # in the file, counted from 0
    n_rows: int  # at least 1
    size: int  # rows of every block of the file but the last
    columns: tuple[str, ...]  # of the whole table


@dataclass(frozen=True)
class Index:
    """A table on disk that has been looked through once."""

    blocks: list[Block]
    columns: tuple[str, ...]  # in the order in which they first occur
    files: list[dict[str, Any]]  # name, rows, bytes, sha256
    sha256: str  # of a file; of the names and checksums of several

    @property
    def n_rows(self) -> int:
        """Rows of the table."""
        return sum(file["rows"] for file in self.files)


def index_table(
    path: Path | str,  # see `read_batches`
    block_rows: int = 1000,  # rows in a block, at least 1; the last block of a file may have fewer
) -> Index:
    """Look through a table once, in bounded memory. Raises: FileError that names the file, and the line or row."""
    check_number(block_rows, "block_rows", 1, whole=True)
    places = []
    files = []
    columns: dict[str, None] = {}
    several = _table_files(path)
    for file, kind in several:
        with _reading(file, kind, len(several) > 1):
            n_rows, names = _looked_through(file, kind)
        columns |= names
        for first in range(0, n_rows, block_rows):
            places.append((str(file), kind, first, min(block_rows, n_rows - first), block_rows))
        files.append(
            {
                "name": file.name,
                "rows": n_rows,
                "bytes": file.stat().st_size,
                "sha256": file_sha256(file),
            }
        )
    sums = "".join(f"{file['name']} {file['sha256']}\n" for file in files)
    sha256 = hashlib.sha256(sums.encode("utf-8", "surrogateescape")).hexdigest()
    return Index(
        [Block(number, *place, tuple(columns)) for number, place in enumerate(places)],
        tuple(columns),
        files,
        files[0]["sha256"] if len(files) == 1 else sha256,
    )


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


def _read_columns(block: Block) -> list[str]:
    return [
        name for name in block.columns if name in PAIR_COLUMNS or REFERENCE_COLUMN.fullmatch(name)
    ]


class BlockReader:
    """Reads blocks; those of one file the faster the more they come in order."""

    def __init__(self):
        self._path = ""
        self._row = 0
        self._batches: Iterator[Any] = iter(())

    def read(
        self,
        block: Block,
    ) -> pd.DataFrame:  # its rows, with the columns of the whole table that an evaluation reads
        """The rows of a block. Raises: FileError that names the line or row of the file."""
        last = block.first_row + block.n_rows - 1
        with refusing(f"rows {block.first_row} to {last} cannot be read"):
            return _frame(self.batch(block)).reindex(columns=_read_columns(block))

    def batch(
        self,
        block: Block,
    ) -> Any:  # a pyarrow.Table, or a list of dictionaries and of FileErrors
        """The rows of a block as they stand in the file. Raises: FileError if there are not as many as there were."""
        if self._path != block.path or self._row > block.first_row:
            self._path = block.path
            self._row = 0
            self._batches = _batches(block.path, block.kind, block.size, _read_columns(block))
        batch: Any = ()
        while self._row <= block.first_row:
            batch = next(self._batches, ())
            self._row += block.size
        if len(batch) != block.n_rows:
            raise FileError(f"{block.path} was changed while it was read")
        return batch


def read_rows(
    block: Block,  # of a text file
) -> Iterator[tuple[int, pd.DataFrame | FileError]]:
    """The rows of a block one by one: the row's number in the file, and a frame of one row or what is wrong."""
    for number, row in enumerate(BlockReader().batch(block), block.first_row):
        if isinstance(row, FileError):
            yield number, row
        else:
            yield number, pd.DataFrame([row], dtype=object).reindex(columns=block.columns)
