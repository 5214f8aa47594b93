"""CSV, TSV, JSON Lines, JSON, Parquet and Arrow, as rows of text, and what is wrong with those that are none"""

import codecs
import csv
import gzip
import io
import json
import math
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from ..core.checks import InputError
from ..core.display import displayable

REFERENCE_COLUMN = re.compile(r"references?([ ._-]?\d+)?")
PAIR_COLUMNS = ("system", "source", "output", "target_style", "input")


MOST_UNPACKED = 2**29  # bytes of a packed file, once it is unpacked
LONGEST_ROW = 1_000_000  # characters of all texts of a row, or of a line
_MOST_COLUMNS = 16_384  # as many as a spreadsheet has
_MOST_CELLS = 2**28  # rows times columns; objects of a JSON file may have other keys each


class FileError(InputError):
    """A file that cannot be read as a table of pairs; the message says where and what to do."""


def _unpacked(data: bytes, most: int = MOST_UNPACKED) -> bytes:
    """What gzip packed, or the bytes themselves."""
    if not data.startswith(b"\x1f\x8b"):
        return data
    found = io.BytesIO()
    size = 0
    kept = int.from_bytes(data[-4:], "little") <= most
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            while size <= most and (piece := file.read(2**20)):
                size += len(piece)
                if kept:
                    found.write(piece)
        if size <= most:
            return found.getvalue() if kept else gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise FileError(f"not a readable gzip file ({_first_line(error)})") from error
    raise FileError(
        f"unpacks to more than {most:,} bytes; unpack it and look what it holds, or allow more with "
        "--max-unpacked (in Python max_unpacked)"
    )


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _check_row(length: int, **place: int) -> None:
    if length > LONGEST_ROW:
        raise FileError(
            f"more than {LONGEST_ROW:,} characters in one row; check its end, or a quotation mark that is "
            "not closed",
            **place,
        )


def _check_width(columns: int, rows: int = 1, **place: int) -> None:
    if columns > _MOST_COLUMNS:
        raise FileError(
            f"{columns:,} columns, more than the {_MOST_COLUMNS:,} that are read; keep those with texts",
            **place,
        )
    if rows * columns > _MOST_CELLS:
        raise FileError(
            f"{rows:,} rows of {columns:,} columns are more cells than the {_MOST_CELLS:,} that are read; "
            "keep the columns with texts"
        )


_LARGEST_GUESS = 2**26  # bytes; to compare code pages takes several times as much
# code pages for Latin letters; a text that all of them read alike leaves no choice
_ALIKE = ("cp1252", "cp1250", "cp1254", "cp1257")
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def _decoded(
    data: bytes,
    encoding: str | None = None,
    notes: list[str] | None = None,
    wanted: str = "; it needs a header with source and output, and at least one row",
) -> str:
    """The text of a file that is not empty; what is to be said of its encoding is added to `notes`."""
    # so that an error's place counts from the same byte
    text, note = _as_text(
        data.removeprefix(codecs.BOM_UTF8) if encoding is None else data, encoding
    )
    if note and notes is not None:
        notes.append(note)
    if not text or text.isspace():
        raise FileError(f"the file is empty{wanted}")
    return text


def _as_text(data: bytes, encoding: str | None) -> tuple[str, str]:
    try:
        if encoding:
            return data.decode(encoding).removeprefix("\ufeff"), ""
        for mark, name in _MARKS:
            if data.startswith(mark):
                return data.decode(name), f"read as {name.upper()}, by the mark that it begins with"
        return data.decode("utf-8"), ""
    except LookupError as error:
        raise FileError(
            f"there is no encoding called {encoding!r}; such names are utf-8, cp1252 and latin-1"
        ) from error
    except UnicodeDecodeError as error:
        if error.encoding == "utf-8" and not encoding and (text := _western(data)) is not None:
            return text, (
                "not UTF-8, read as cp1252, since the code pages of Windows for Latin letters all read it "
                "alike"
            )
        line = data[: error.start].count(b"\n") + 1
        advice = (
            "give the right --encoding"
            if encoding
            else ("save the file as UTF-8, or name its encoding, such as --encoding cp1252")
        )
        raise FileError(
            f"byte 0x{data[error.start]:02X} is not {error.encoding.upper()}; {advice}", line=line
        ) from error


def _western(data: bytes) -> str | None:
    """The text of a file from Windows, if nothing in it leaves a choice of code page."""
    if len(data) > _LARGEST_GUESS:
        return None
    try:
        first, *others = (data.decode(page) for page in _ALIKE)
    except UnicodeDecodeError:
        return None
    if any(other != first for other in others) or re.search(r"[\x00-\x08\x0e-\x1f]", first):
        return None
    letters = re.findall(
        r"[^\W\d_]+", first
    )  # a word of nothing but such letters may be Greek or Russian
    mixed = all(word.isascii() or re.search("[A-Za-z]", word) for word in letters)
    return (
        first
        if mixed
        and not re.search(
            r"(?<=[^\W\d_])[\u201c\u201d\u201e\u201a\u2026\u2020\u2021](?=[^\W\d_])", first
        )
        else None
    )


def _column_names(header: list[str]) -> tuple[list[str], list[str]]:
    """A name of its own for each column, and the names that stood there more than once."""
    given = [name.strip() for name in header]
    times = Counter(given)
    repeated = [name for name, number in times.items() if number > 1]
    if unclear := [name for name in repeated if name in PAIR_COLUMNS]:
        raise FileError(
            f"the header names {unclear[0]} {times[unclear[0]]} times; rename or drop all but one"
        )
    names: dict[str, None] = {}
    following = dict.fromkeys(
        repeated, 2
    )  # a header of nothing but commas may have thousands of columns
    for name in given:
        fresh = name
        while fresh in names or (fresh != name and fresh in times):
            fresh = f"{name}_{following[name]}"
            following[name] += 1
        names[fresh] = None
    return list(names), [name for name in repeated if not REFERENCE_COLUMN.fullmatch(name)]


def _lines_of(text: str) -> Iterator[str]:
    """The lines with their ends."""
    for number, line in enumerate(re.finditer(r"[^\r\n]*(?:\r\n|\r|\n|\Z)", text), 1):
        _check_row(line.end() - line.start(), line=number)
        if line.start() < line.end():
            yield line[0]  # it also finds nothing, at the end


def _read_delimited(text: str, delimiter: str) -> pd.DataFrame:
    csv.field_size_limit(
        4 * LONGEST_ROW
    )  # a longer text than can be scored is refused later, with row and column
    lines = csv.reader(_lines_of(text), delimiter=delimiter, strict=True)
    try:
        header, *rows = [line for line in lines if line]
    except csv.Error as error:
        raise FileError(f"{error}; check the quotation marks", line=lines.line_num) from error
    _check_width(len(header), len(rows))
    names, repeated = _column_names(header)
    for number, row in enumerate(rows):
        _check_row(sum(map(len, row)), row=number)
        if len(row) != len(names):
            raise FileError(
                f"{len(row)} fields where the header has {len(names)}; "
                "put texts that hold the delimiter or a line break into quotation marks",
                row=number,
            )
    frame = pd.DataFrame(
        [[None if cell in ("NaN", "nan") else cell for cell in row] for row in rows],
        columns=names,
        dtype=object,
    )
    frame.attrs["repeated"] = repeated
    return frame


_OBJECT = '{"source": ..., "output": ...}'


def _without_repetition(pairs: list[tuple]) -> dict:
    found = dict(pairs)
    if len(found) < len(pairs):
        times = Counter(key for key, _ in pairs)
        raise ValueError(
            f"the key {displayable(next(key for key in times if times[key] > 1))!r:.60} stands twice in "
            f"one object"
        )
    # half a character is a legal key here, and in no table
    return {displayable(key): value for key, value in found.items()}


def _json_value(text: str, line: int | None = None):
    try:
        return json.loads(text, object_pairs_hook=_without_repetition)
    except (ValueError, RecursionError) as error:
        raise FileError(f"not valid JSON ({error})", line=line) from error


def _read_json_lines(text: str) -> list[dict]:
    rows = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            _check_row(len(line), line=number)
            row = _json_value(line, number)
            if not isinstance(row, dict):
                raise FileError(f"expected an object such as {_OBJECT}", line=number)
            rows.append(row)
    return rows


def _read_json(text: str) -> list[dict]:
    value = _json_value(text)
    if (
        isinstance(value, dict)
        and value
        and all(isinstance(column, list) for column in value.values())
    ):
        if (
            len(lengths := {name: len(column) for name, column in value.items()})
            and len(set(lengths.values())) > 1
        ):
            raise FileError(
                f"the columns must be equally long, got "
                f"{', '.join(f'{name} {n}' for name, n in lengths.items())}"
            )
        value = [dict(zip(value, row)) for row in zip(*value.values())]
    if not isinstance(value, list):
        raise FileError(f"expected an array of objects such as {_OBJECT}")
    if wrong := [row for row, entry in enumerate(value) if not isinstance(entry, dict)]:
        raise FileError(f"expected an object such as {_OBJECT}", row=wrong[0])
    for row, entry in enumerate(value):
        _check_row(sum(len(cell) for cell in entry.values() if isinstance(cell, str)), row=row)
    return value


def _frame_of(rows: list[dict]) -> pd.DataFrame:
    _check_width(len({name for row in rows for name in row}), len(rows))
    return pd.DataFrame(rows, dtype=object)


def whole_frame(
    table: Any,  # a pyarrow.Table
) -> pd.DataFrame:  # its rows
    """The frame of a columnar table. Raises: pyarrow.ArrowInvalid if its bytes are not what its columns say, such as
    text that is not UTF-8."""
    table.validate(full=True)  # else it shows later, where a text is first used
    # without what pandas noted for itself: its index may be a column that is wanted
    return table.replace_schema_metadata(None).to_pandas()


def _check_size(size: int, most: float) -> None:
    if size > most:
        raise FileError(
            f"unpacks to more than {most:,} bytes; keep the columns with texts, or allow more with "
            "--max-unpacked (in Python max_unpacked)"
        )


def _bounded(batches: Iterable, most: int) -> Iterator:
    """Some rows at a time: room for all that a file promises may be more than there is."""
    taken = 0
    for batch in batches:
        taken += batch.nbytes
        _check_size(taken, most)
        yield batch


def check_parquet(
    file: Any,  # a pyarrow.parquet.ParquetFile
    max_unpacked: float = math.inf,  # bytes
) -> None:
    """Raise a FileError for a file that says of itself that it is too large or too wide, before it is unpacked."""
    groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
    _check_width(len(file.schema_arrow.names))
    for group in groups:
        _check_row(group.total_byte_size // (4 * max(group.num_rows, 1)))
    _check_size(sum(group.total_byte_size for group in groups), max_unpacked)


def _read_parquet(data: bytes, most: int) -> pd.DataFrame:
    import pyarrow
    from pyarrow import parquet

    try:
        file = parquet.ParquetFile(io.BytesIO(data))
        most = max(most, len(data))
        check_parquet(file, most)
        return whole_frame(
            pyarrow.Table.from_batches(_bounded(file.iter_batches(256), most), file.schema_arrow)
        )
    except FileError:
        raise
    except Exception as error:  # pyarrow has a dozen kinds; to a person they all mean the same
        raise FileError(f"not a readable Parquet file ({_first_line(error)})") from error


_NO_DATA_SET = "not a readable folder of a data set"


def saved_files(
    folder: Path,  # of a data set that was written with `save_to_disk`
) -> list[Path]:  # its files, all in that folder
    """The files of a saved data set, in order. Raises: FileError if the folder does not say which they are."""
    try:
        return [
            folder / Path(entry["filename"]).name
            for entry in json.loads((folder / "state.json").read_bytes())["_data_files"]
        ]
    except Exception as error:  # whatever is wrong in the file's nest of lists and names
        raise FileError(
            f"{_NO_DATA_SET} ({_first_line(error)}); save it again with save_to_disk"
        ) from error


def read_saved(
    folder: Path,  # as for `saved_files`
    max_unpacked: int = MOST_UNPACKED,  # bytes of each file
) -> pd.DataFrame:
    """The rows of a saved data set. Raises: FileError for one that cannot be read, or holds too much."""
    import pyarrow

    files = saved_files(folder)
    try:
        streams = [pyarrow.ipc.open_stream(pyarrow.memory_map(str(file))) for file in files]
        for stream in streams:
            _check_width(len(stream.schema.names))
        bounds = [max(max_unpacked, file.stat().st_size) for file in files]
        return whole_frame(
            pyarrow.concat_tables(
                [
                    pyarrow.Table.from_batches(_bounded(stream, most), stream.schema)
                    for stream, most in zip(streams, bounds)
                ]
            )
        )
    except FileError:
        raise
    except Exception as error:  # likewise
        raise FileError(
            f"{_NO_DATA_SET} ({_first_line(error)}); save it again with save_to_disk"
        ) from error


def parse_table(
    data: bytes,  # CSV, TSV, JSON Lines, JSON or Parquet, perhaps compressed by gzip
    kind: str | None = None,  # csv | tsv | jsonl | json | parquet; None: told by how it begins
    encoding: str | None = None,  # None: UTF-8, or what the bytes leave no doubt about
    notes: list[str] | None = None,  # what is to be said of the encoding is added here
    max_unpacked: int = MOST_UNPACKED,  # bytes that a packed file may unpack to
) -> pd.DataFrame:  # text cells
    """A table of pairs from the bytes of a file. Raises: FileError that names the line or row."""
    data = _unpacked(data, max_unpacked)
    if kind == "parquet" or (kind is None and data.startswith(b"PAR1")):
        return _read_parquet(data, max_unpacked)
    text = _decoded(data, encoding, notes)
    if kind is None:
        kind = {"{": "jsonl", "[": "json"}.get(text.lstrip()[0]) or (
            "tsv" if "\t" in text.split("\n", 1)[0] else "csv"
        )
    if kind in ("csv", "tsv"):
        frame = _read_delimited(text, "," if kind == "csv" else "\t")
    else:
        frame = _frame_of((_read_json_lines if kind == "jsonl" else _read_json)(text))
    if not len(frame):
        raise FileError(
            "the file has no rows" if kind == "json" else "the file has a header and no rows"
        )
    return frame


def parse_lines(
    data: bytes,  # of a file of texts, one a line, perhaps compressed by gzip
    encoding: str | None = None,  # as for `parse_table`
    notes: list[str] | None = None,  # likewise
    max_unpacked: int = MOST_UNPACKED,  # likewise
) -> list[str]:  # without the ends of the lines
    """The lines of a file. Raises: FileError for one that is empty, or cannot be read."""
    lines = _decoded(_unpacked(data, max_unpacked), encoding, notes, wanted="").split("\n")
    for number, line in enumerate(lines, 1):
        _check_row(len(line), line=number)
    return [line.removesuffix("\r") for line in (lines if lines[-1] else lines[:-1])]
