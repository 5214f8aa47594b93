"""A table on disk as a list of blocks, any of which can be read without the rest"""

import codecs
import contextlib
import csv
import hashlib
import io
import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from tsteval.tables.formats import (
    LONGEST_ROW,
    PAIR_COLUMNS,
    REFERENCE_COLUMN,
    FileError,
    check_parquet,
    parse_table,
    saved_files,
    whole_frame,
)

from ..core.checks import InputError, check_number
from .tables import refuse_splits


@dataclass(frozen=True)
class Block:
    """Some rows of a table, and where to find them."""

    number: int  # counted from 0, in the order of the table
    path: str  # of the file that holds them
    kind: str  # csv | tsv | jsonl | parquet | arrow
    first_row: int  # in the file, counted from 0
    n_rows: int  # at least 1
    columns: tuple[str, ...]  # of the whole table
    start: int = 0  # first byte, in a text file
    end: int = 0  # one after the last byte
    header: int = 0  # bytes of the header, with what stands before it
    first_line: int = 0  # lines of the file before `start`


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


class _Watched(io.RawIOBase):
    """A file that is hashed and checked to be lines of UTF-8 while it is read."""

    longest = 4 * LONGEST_ROW  # bytes of a line

    def __init__(self, path: Path):
        self.file = open(path, "rb", buffering=0)  # noqa: SIM115 (closed with this one)
        self.hash = hashlib.sha256()
        self.size = 0
        self.decoder = codecs.getincrementaldecoder("utf-8")()
        self.lines = 0
        self.open = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:
        size = self.file.readinto(buffer)
        piece = bytes(buffer[:size])
        self.hash.update(piece)
        self.size += size
        try:
            self.decoder.decode(piece, final=not size)
        except UnicodeDecodeError as error:
            line = self.lines + error.object[: error.start].count(b"\n") + 1
            raise FileError(
                f"byte 0x{error.object[error.start]:02X} is not UTF-8; save the file as UTF-8",
                line=line,
            ) from error
        self.lines += piece.count(b"\n")
        end = max(piece.rfind(b"\n"), piece.rfind(b"\r")) + 1
        self.open = size - end if end else self.open + size  # bytes since the last end of a line
        if self.open > self.longest:
            raise FileError(
                f"more than {LONGEST_ROW:,} characters in one row; check its end",
                line=self.lines + 1,
            )
        return size

    def close(self) -> None:
        self.file.close()
        super().close()


_MARK = codecs.BOM_UTF8.decode("latin-1")


def _measured(lines: Iterable[str], place: list[int]) -> Iterator[str]:
    """The lines; place[0] is the byte after the last one that was taken, place[1] how many were."""
    for number, line in enumerate(lines, 1):
        place[:] = place[0] + len(line), number
        yield line.removeprefix(_MARK) if number == 1 else line


def _records(watched: _Watched, delimiter: str) -> Iterator[tuple[int, int, int]]:
    """Start, end and number of fields of each record that is not blank."""
    csv.field_size_limit(
        4 * LONGEST_ROW
    )  # bytes; a longer text than can be scored is refused with row and column
    place = [0, 0]
    start = 0
    text = io.TextIOWrapper(io.BufferedReader(watched, 2**20), "latin-1", newline="")
    reader = csv.reader(_measured(text, place), delimiter=delimiter, strict=True)
    try:
        for record in reader:
            if record:
                yield start, place[0], len(record)
            start = place[0]
    except csv.Error as error:
        raise FileError(f"{error}; check the quotation marks", line=reader.line_num) from error


def _index_delimited(
    path: Path, kind: str, block_rows: int
) -> tuple[list[dict], list[str], _Watched, int]:
    delimiter = "," if kind == "csv" else "\t"
    cuts = []
    rows = 0
    end = 0
    watched = _Watched(path)
    records = _records(watched, delimiter)
    header = next(records, None)
    if header is None:
        raise FileError(
            "the file is empty; it needs a header with source and output, and at least one row"
        )
    for start, end, _ in records:  # noqa: B007 (where the last one ends)
        if rows % block_rows == 0:
            cuts.append({"start": start, "first_row": rows, "header": header[1]})
        rows += 1
    with open(path, "rb") as file:
        made_up = file.read(header[1]) + b"\n" + delimiter.join("x" * header[2]).encode()
    return _closed(cuts, rows, end), list(parse_table(made_up, kind).columns), watched, rows


def _index_json_lines(path: Path, block_rows: int) -> tuple[list[dict], list[str], _Watched, int]:
    watched = _Watched(path)
    cuts = []
    rows = 0
    start = 0
    names = {}
    for number, line in enumerate(io.BufferedReader(watched, 2**20)):
        end = start + len(line)
        if line.strip() and line.decode().strip():
            if rows % block_rows == 0:
                cuts.append({"start": start, "first_row": rows, "first_line": number})
            rows += 1
            with contextlib.suppress(
                ValueError, TypeError, RecursionError
            ):  # said when the block is read
                names |= dict.fromkeys(json.loads(line.removeprefix(codecs.BOM_UTF8)))
        start = end
    return _closed(cuts, rows, start), list(map(str, names)), watched, rows


def _closed(cuts: list[dict], rows: int, end: int) -> list[dict]:
    """Each block from its start to where the next one starts."""
    following = [*cuts[1:], {"start": end, "first_row": rows}]
    return [
        cut | {"end": after["start"], "n_rows": after["first_row"] - cut["first_row"]}
        for cut, after in zip(cuts, following)
    ]


def _index_columnar(
    path: Path, kind: str, block_rows: int
) -> tuple[list[dict], list[str], "_Watched", int]:
    rows, names = _described(path, kind)
    watched = _Watched(path)
    watched.decoder = codecs.getincrementaldecoder("latin-1")()
    watched.longest = math.inf  # any byte will do
    buffer = memoryview(bytearray(2**20))
    while watched.readinto(buffer):
        pass
    if repeated := [name for name in names if names.count(name) > 1]:
        raise FileError(f"there is more than one column {repeated[0]}; rename or drop all but one")
    cuts = [
        {"first_row": first, "n_rows": min(block_rows, rows - first)}
        for first in range(0, rows, block_rows)
    ]
    return cuts, names, watched, rows


@contextlib.contextmanager
def _or_refused(what: str):
    """Say that something cannot be read, and why."""
    try:
        yield
    except FileError:
        raise
    except Exception as error:  # pyarrow has a dozen kinds; to a person they all mean the same
        raise FileError(f"{what} ({str(error).split(chr(10))[0]})") from error


def _described(path: Path, kind: str) -> tuple[int, list[str]]:
    """How many rows, and which columns. Rows are counted, since a damaged file can promise any number."""
    import pyarrow as pa
    from pyarrow import parquet

    with _or_refused(f"not a readable {'Parquet file' if kind == 'parquet' else 'saved data set'}"):
        if kind == "parquet":
            with parquet.ParquetFile(path, pre_buffer=False, buffer_size=2**20) as file:
                check_parquet(file)
                names = list(file.schema_arrow.names)
                return sum(
                    batch.num_rows for batch in file.iter_batches(1000, columns=names[:1])
                ), names
        with pa.memory_map(str(path)) as source, pa.ipc.open_stream(source) as stream:
            return sum(batch.num_rows for batch in stream), list(stream.schema.names)


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


def index_table(
    path: Path | str,  # see `_table_files`
    block_rows: int = 1000,  # rows in a block, at least 1; the last block of a file may have fewer
) -> Index:
    """Look through a table once, in bounded memory. Raises: FileError that names the file, and the line or row."""
    check_number(block_rows, "block_rows", 1, whole=True)
    found = []
    files = []
    columns = {}
    for file, kind in (several := _table_files(path)):
        try:
            cuts, names, watched, rows = (
                _index_json_lines(file, block_rows)
                if kind == "jsonl"
                else _index_delimited(file, kind, block_rows)
                if kind in ("csv", "tsv")
                else _index_columnar(file, kind, block_rows)
            )
            watched.close()
            if not rows:
                raise FileError(
                    "the file has a header and no rows"
                    if kind != "jsonl"
                    else "the file is empty; it needs a header with source and output, and at least one row"
                )
        except FileError as error:
            raise error.at(file=file.name) if len(several) > 1 else error from None
        found += [{"path": str(file), "kind": kind, **cut} for cut in cuts]
        columns |= dict.fromkeys(names)
        files.append(
            {
                "name": file.name,
                "rows": rows,
                "bytes": watched.size,
                "sha256": watched.hash.hexdigest(),
            }
        )
    whole = hashlib.sha256(
        "".join(f"{file['name']} {file['sha256']}\n" for file in files).encode(
            "utf-8", "surrogateescape"
        )
    ).hexdigest()
    return Index(
        [Block(number, columns=tuple(columns), **cut) for number, cut in enumerate(found)],
        tuple(columns),
        files,
        files[0]["sha256"] if len(files) == 1 else whole,
    )


def counted_on(
    error: InputError,
    first_row: int,  # rows before what the error counts
    first_line: int = 0,  # lines before it
) -> InputError:  # of the same kind
    """An error about a row or line of a block as one about the file."""
    if error.row is not None:
        error = error.at(row=error.row + first_row)
    return error if error.line is None else error.at(line=error.line + first_line)


class _Forward:
    """A columnar file that is read from some row onwards."""

    def __init__(self, block: Block):
        import pyarrow as pa
        from pyarrow import parquet

        self.path = block.path
        self.row = 0
        self.left = []
        self.columns = [
            name
            for name in block.columns
            if name in PAIR_COLUMNS or REFERENCE_COLUMN.fullmatch(name)
        ]
        if block.kind == "arrow":
            stream = pa.ipc.open_stream(pa.memory_map(block.path))
            self.columns = [name for name in self.columns if name in stream.schema.names]
            self.batches = iter(stream)
            return
        file = parquet.ParquetFile(block.path, pre_buffer=False, buffer_size=2**20)
        group = 0
        while self.row + (size := file.metadata.row_group(group).num_rows) <= block.first_row:
            self.row = self.row + size
            group = group + 1
        self.columns = [name for name in self.columns if name in file.schema_arrow.names]
        self.batches = file.iter_batches(
            1000, row_groups=range(group, file.num_row_groups), columns=self.columns
        )

    def take(self, first: int, n_rows: int) -> pd.DataFrame:
        """Some rows at or after the place where it stopped."""
        import pyarrow as pa

        found = []
        while n_rows:
            batch = self.left.pop() if self.left else next(self.batches, None)
            if batch is None:
                raise FileError("the file has fewer rows than it says")
            skipped = min(first - self.row, batch.num_rows)
            taken = min(batch.num_rows - skipped, n_rows)
            if taken:
                found.append(batch.slice(skipped, taken))
            if skipped + taken < batch.num_rows:
                self.left = [batch.slice(skipped + taken)]
            self.row = self.row + skipped + taken
            first = first + taken
            n_rows = n_rows - taken
        table = pa.Table.from_batches(found)
        return whole_frame(table.select(self.columns))


class BlockReader:
    """Reads blocks; those of one file the faster the more they come in order."""

    def __init__(self):
        self._forward: _Forward | None = None

    def read(
        self,
        block: Block,
    ) -> pd.DataFrame:  # its rows, with the columns of the whole table that an evaluation reads
        """The rows of a block. Raises: FileError that names the line or row of the file."""
        if block.kind in ("parquet", "arrow"):
            with _or_refused(
                f"rows {block.first_row} to {block.first_row + block.n_rows - 1} cannot be read"
            ):
                if (
                    self._forward is None
                    or self._forward.path != block.path
                    or self._forward.row > block.first_row
                ):
                    self._forward = _Forward(block)
                frame = self._forward.take(block.first_row, block.n_rows)
        else:
            try:
                frame = parse_table(_bytes_of(block), block.kind)
            except FileError as error:
                raise counted_on(error, block.first_row, block.first_line) from error
        if len(frame) != block.n_rows:
            raise FileError(f"{block.path} was changed while it was read")
        return frame.reindex(
            columns=[
                name
                for name in block.columns
                if name in PAIR_COLUMNS or REFERENCE_COLUMN.fullmatch(name)
            ]
        )


def _bytes_of(block: Block) -> bytes:
    """A block of a text file, with the file's header."""
    with open(block.path, "rb") as file:
        header = file.read(block.header)
        file.seek(block.start)
        return header + file.read(block.end - block.start)


def read_rows(
    block: Block,
    # the row's number in the file, and a frame of one row or what is wrong
) -> Iterator[tuple[int, pd.DataFrame | FileError]]:
    """The rows of a block of a text file, one by one."""
    data = _bytes_of(block)
    header, body = data[: block.header], data[block.header :]
    if block.kind == "jsonl":
        lines = [
            (number, line)
            for number, line in enumerate(body.split(b"\n"))
            if line.strip() and line.decode().strip()
        ]
    else:
        place = [0, 0]
        text = io.StringIO(body.decode("latin-1"), newline="")
        reader = csv.reader(
            _measured(text, place), delimiter="," if block.kind == "csv" else "\t", strict=True
        )
        start = 0
        lines = []
        for record in reader:
            if record:
                lines.append((0, header + body[start : place[0]]))
            start = place[0]
    for row, (number, line) in enumerate(lines, block.first_row):
        try:
            yield row, parse_table(line, block.kind).reindex(columns=block.columns)
        except FileError as error:
            yield row, counted_on(error, row, block.first_line + number)
