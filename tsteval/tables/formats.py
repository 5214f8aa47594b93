"""The bytes of a file as rows of text, and what is wrong with those that are none: what a reader would pass over
silently, such as a row with too few fields, is refused with its place"""

import codecs
import contextlib
import csv
import datetime
import gzip
import io
import json
import math
import re
import zipfile
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from ..core.checks import InputError
from ..core.display import displayable

REFERENCE_COLUMN = re.compile(r"references?([ ._-]?\d+)?")
PAIR_COLUMNS = ("system", "source", "output", "target_style", "input", "question", "context")

MOST_UNPACKED = 2**29  # bytes of a packed file, once it is unpacked
LONGEST_ROW = 1_000_000  # characters of all texts of a row, or of a line
_MOST_COLUMNS = 16_384  # as many as a spreadsheet has
_MOST_CELLS = 2**28  # rows times columns; objects of a JSON file may have other keys each
_LARGEST_GUESS = 2**26  # bytes; to compare code pages takes several times as much
_MORE = "allow more with --max-unpacked (in Python max_unpacked)"


class FileError(InputError):
    """A file that cannot be read as a table of pairs; the message says where and what to do."""


@contextlib.contextmanager
def refusing(
    what: str,  # that cannot be read
    remedy: str = "",  # with its semicolon
):
    """Make a FileError of whatever a library raises for a damaged file: to a person it all means the same."""
    try:
        yield
    except FileError:
        raise
    except Exception as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise FileError(f"{what} ({reason}){remedy}") from error


def _check_row(length: int, **place: int) -> None:
    if length > LONGEST_ROW:
        raise FileError(
            f"more than {LONGEST_ROW:,} characters in one row; check its end, or a quotation mark that is "
            "not closed",
            **place,
        )


def _check_width(columns: int, rows: int = 1) -> None:
    if columns > _MOST_COLUMNS:
        raise FileError(
            f"{columns:,} columns, more than the {_MOST_COLUMNS:,} that are read; keep those with texts"
        )
    if rows * columns > _MOST_CELLS:
        raise FileError(
            f"{rows:,} rows of {columns:,} columns are more cells than the {_MOST_CELLS:,} that are read; "
            "keep the columns with texts"
        )


def _check_size(size: int, most: float) -> None:
    if size > most:
        raise FileError(
            f"unpacks to more than {most:,} bytes; keep the columns with texts, or {_MORE}"
        )


# ---- bytes to text


def _unpacked(data: bytes, most: int) -> bytes:
    """What gzip packed, or the bytes themselves. It is measured before it is kept."""
    if not data.startswith(b"\x1f\x8b"):
        return data
    size = 0
    with refusing("not a readable gzip file"):
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            while size <= most and (piece := file.read(2**20)):
                size += len(piece)
        if size <= most:
            return gzip.decompress(data)
    raise FileError(
        f"unpacks to more than {most:,} bytes; unpack it and look what it holds, or {_MORE}"
    )


# code pages for Latin letters; a text that all of them read alike leaves no choice
_ALIKE = ("cp1252", "cp1250", "cp1254", "cp1257")
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_OTHER_ENCODING = "save the file as UTF-8, or name its encoding, such as --encoding cp1252"
_NEEDS = "; it needs a header that names a column output, and at least one row"


def _text_of(data: bytes, encoding: str | None, notes: list[str] | None, needs: str = "") -> str:
    """The text of a file that is not empty; what is to be said of its encoding is added to `notes`."""
    note = ""
    if encoding:
        text = _decoded(data, encoding, "give the right --encoding").removeprefix("\ufeff")
    elif marked := next((name for mark, name in _MARKS.items() if data.startswith(mark)), None):
        text = _decoded(data, marked, _OTHER_ENCODING)
        note = f"read as {marked.upper()}, by the mark that it begins with"
    else:
        data = data.removeprefix(codecs.BOM_UTF8)
        try:
            text = _decoded(data, "utf-8", _OTHER_ENCODING)
        except FileError:
            text = _western(data)
            if text is None:
                _explain_bytes(data)
                raise
            note = (
                "not UTF-8, read as cp1252, since the code pages of Windows for Latin letters all read it "
                "alike"
            )
    if note and notes is not None:
        notes.append(note)
    if not text or text.isspace():
        raise FileError(f"the file is empty{needs}")
    return text


def _decoded(data: bytes, encoding: str, remedy: str) -> str:
    try:
        return data.decode(encoding)
    except LookupError as error:
        raise FileError(
            f"there is no encoding called {encoding!r}; such names are utf-8, cp1252 and latin-1"
        ) from error
    except UnicodeDecodeError as error:
        raise FileError(
            f"byte 0x{data[error.start]:02X} is not {error.encoding.upper()}; {remedy}",
            line=data[: error.start].count(b"\n") + 1,
        ) from error


def _explain_bytes(data: bytes) -> None:
    """Raises: FileError where another encoding would not help: the file is no text, or two encodings stand in it."""
    if re.search(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]", data):
        raise FileError(
            "the file is no text: it holds control characters; save the table as CSV in UTF-8, or name its "
            "--encoding if it has another"
        )
    lines = data.split(b"\n")
    other = [number for number, line in enumerate(lines, 1) if not _is_utf8(line)]
    if any(not line.isascii() and _is_utf8(line) for line in lines):
        raise FileError(
            f"line {other[0]} is not UTF-8 and other lines are, so two encodings seem to stand in the file; save it "
            "as UTF-8 after a look at that line, or name its --encoding if it has another one throughout"
        )


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _western(data: bytes) -> str | None:
    """The text of a file from Windows, if nothing in it leaves a choice of code page."""
    if len(data) > _LARGEST_GUESS:
        return None
    try:
        text, *others = (data.decode(page) for page in _ALIKE)
    except UnicodeDecodeError:
        return None
    if any(other != text for other in others) or re.search(r"[\x00-\x08\x0e-\x1f]", text):
        return None
    # a word of nothing but such letters may be Greek or Russian
    for word in re.findall(r"[^\W\d_]+", text):
        if not word.isascii() and not re.search("[A-Za-z]", word):
            return None
    inside_word = r"(?<=[^\W\d_])[\u201c\u201d\u201e\u201a\u2026\u2020\u2021](?=[^\W\d_])"
    return None if re.search(inside_word, text) else text


def lines_of(
    text: str,
    kind: str,  # csv | tsv | jsonl
) -> Iterator[str]:
    """The lines with their ends. Raises: FileError for one that is too long."""
    ends = r"[^\n]*(?:\n|\Z)" if kind == "jsonl" else r"[^\r\n]*(?:\r\n|\r|\n|\Z)"
    for number, line in enumerate(re.finditer(ends, text), 1):
        _check_row(line.end() - line.start(), line=number)
        if line.start() < line.end():
            yield line[0]  # it also finds nothing, at the end


def lines_on_disk(
    path: Path | str,  # a file of UTF-8, with or without a mark
    kind: str,  # csv | tsv | jsonl
) -> Iterator[str]:
    """`lines_of` a file that need not fit into memory. Raises: FileError for a line that is too long or not UTF-8."""
    number = 0
    try:
        end = "\n" if kind == "jsonl" else ""
        with open(path, encoding="utf-8-sig", newline=end) as file:
            while line := file.readline(LONGEST_ROW + 1):
                number += 1
                _check_row(len(line), line=number)
                yield line
    except UnicodeDecodeError:
        with open(path, "rb") as file:  # the decoder is ahead of the lines
            for number, data in enumerate(file, 1):
                try:
                    data.decode("utf-8")
                except UnicodeDecodeError as error:
                    raise FileError(
                        f"byte 0x{data[error.start]:02X} is not UTF-8; save the file as UTF-8",
                        line=number,
                    ) from error


# ---- text to rows


def rows_of(
    lines: Iterable[str],  # with their ends
    kind: str,  # csv | tsv | jsonl
) -> Iterator[Any]:
    """The rows of a file: of CSV and TSV first the names of the columns, then lists of cells; of JSON Lines
    dictionaries. A row that cannot be read is yielded as the FileError that says why. A cell in quotation marks is read
    without them, in CSV and TSV alike; in CSV it may hold line breaks, in TSV a row is a line.

    Raises: FileError where no further row can be read.
    """
    return _objects(lines) if kind == "jsonl" else _delimited(lines, "," if kind == "csv" else "\t")


def _delimited(lines: Iterable[str], delimiter: str) -> Iterator[list[str] | FileError]:
    rows = _cells(lines, delimiter)
    header = next(rows, [])
    _check_width(len(header))
    yield header
    for number, row in enumerate(rows):
        try:
            _check_row(sum(map(len, row)), row=number)
        except FileError as error:
            yield error
            continue
        if len(row) != len(header):
            yield FileError(
                f"{len(row)} fields where the header has {len(header)}; "
                "put texts that hold the delimiter or a line break into quotation marks",
                row=number,
            )
            continue
        yield row


def _cells(lines: Iterable[str], delimiter: str) -> Iterator[list[str]]:
    """The cells of each row that has any. Raises: FileError for a quotation mark out of place."""
    # a longer text than can be scored is refused later, with row and column
    csv.field_size_limit(4 * LONGEST_ROW)
    parts: list[str] = []  # the lines of the row that is read

    def reading() -> Iterator[str]:
        for line in lines:
            if parts and delimiter == "\t":
                raise FileError(
                    "a quotation mark opens a text that does not close in its line; close it, or "
                    "save the file as CSV",
                    line=reader.line_num,
                )
            parts.append(line)
            yield line

    reader = csv.reader(reading(), delimiter=delimiter, strict=True)
    try:
        for row in reader:
            if _has_spaced_quotes(row, parts, delimiter):
                raise FileError(
                    "a space stands before a quotation mark; put the mark right after the delimiter",
                    line=reader.line_num - len(parts) + 1,
                )
            parts.clear()
            if row:
                yield row
    except csv.Error as error:
        line = reader.line_num - len(parts) + 1
        raise FileError(f"{error}; check the quotation marks", line=line) from error


def _has_spaced_quotes(row: list[str], parts: list[str], delimiter: str) -> bool:
    """Whether spaces before a quotation mark made it a part of its text. A text in quotation marks may begin so."""
    if not any(cell.startswith(" ") and cell.lstrip(" ").startswith('"') for cell in row):
        return False
    try:
        reader = csv.reader(parts, delimiter=delimiter, strict=True, skipinitialspace=True)
        return any(cell.lstrip(" ") != other.lstrip(" ") for cell, other in zip(row, next(reader)))
    except csv.Error:
        return True


_OBJECT = '{"source": ..., "output": ...}'


def _objects(lines: Iterable[str]) -> Iterator[dict | FileError]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = _json_value(line, number)
            if not isinstance(row, dict):
                raise FileError(f"expected an object such as {_OBJECT}", line=number)
        except FileError as error:
            yield error
        else:
            yield row


def column_names(
    header: list[str],
) -> tuple[list[str], list[str]]:  # a name of its own for each column; the names that repeat
    """Raises: FileError for two columns under one of our names."""
    stripped = [name.strip() for name in header]
    counts = Counter(stripped)
    repeated = [name for name, count in counts.items() if count > 1]
    if unclear := [name for name in repeated if name in PAIR_COLUMNS]:
        raise FileError(
            f"the header names {unclear[0]} {counts[unclear[0]]} times; rename or drop all but one"
        )
    names: dict[str, None] = {}
    numbers = dict.fromkeys(repeated, 2)  # thousands of commas make thousands of empty names
    for name in stripped:
        fresh = name
        while fresh in names or (fresh != name and fresh in counts):
            fresh = f"{name}_{numbers[name]}"
            numbers[name] += 1
        names[fresh] = None
    return list(names), [name for name in repeated if not REFERENCE_COLUMN.fullmatch(name)]


def strictly(
    rows: Iterable,  # as of `rows_of`
) -> Iterator:
    """The rows. Raises: the first that cannot be read."""
    for row in rows:
        if isinstance(row, FileError):
            raise row
        yield row


def _read_text(text: str, kind: str) -> pd.DataFrame:
    rows = strictly(rows_of(lines_of(text, kind), kind))
    if kind == "jsonl":
        return _frame_of(list(rows))
    names, repeated = column_names(next(rows))
    cells = list(rows)
    _check_width(len(names), len(cells))
    frame = pd.DataFrame(cells, columns=names, dtype=object)
    frame.attrs["repeated"] = repeated
    return frame


def _without_repetition(pairs: list[tuple]) -> dict:
    if len(dict(pairs)) < len(pairs):
        (key, _), *_ = Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f"the key {displayable(key)!r:.60} stands twice in one object")
    # half a character is a legal key here, and in no table
    return {displayable(key): value for key, value in pairs}


def _json_value(text: str, line: int | None = None):
    try:
        return json.loads(text, object_pairs_hook=_without_repetition)
    except (ValueError, RecursionError) as error:
        raise FileError(f"not valid JSON ({error})", line=line) from error


def _read_json(text: str) -> pd.DataFrame:
    value = _json_value(text)
    is_columns = isinstance(value, dict) and all(
        isinstance(cells, list) for cells in value.values()
    )
    if is_columns and value:
        lengths = {name: len(cells) for name, cells in value.items()}
        if len(set(lengths.values())) > 1:
            counts = ", ".join(f"{name} {length}" for name, length in lengths.items())
            raise FileError(f"the columns must be equally long, got {counts}")
        value = [dict(zip(value, row)) for row in zip(*value.values())]
    if not isinstance(value, list):
        raise FileError(f"expected an array of objects such as {_OBJECT}")
    for number, row in enumerate(value):
        if not isinstance(row, dict):
            raise FileError(f"expected an object such as {_OBJECT}", row=number)
        _check_row(sum(len(cell) for cell in row.values() if isinstance(cell, str)), row=number)
    return _frame_of(value)


def _is_json_lines(text: str) -> bool:
    """Whether a text holds an object a line, and not one value."""
    line, _, others = text.strip().partition("\n")
    try:
        first = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(first, dict) and (
        bool(others) or any(isinstance(cell, str) for cell in first.values())
    )


def _frame_of(rows: list[dict]) -> pd.DataFrame:
    _check_width(len({name for row in rows for name in row}), len(rows))
    return pd.DataFrame(rows, dtype=object)


# ---- Parquet and Arrow


@contextlib.contextmanager
def open_columnar(
    source: Any,  # a path, or a file of bytes
    kind: str,  # parquet | arrow
    most: float = math.inf,  # bytes that it may unpack to
    rows: int = 256,  # in a batch of Parquet
    columns: Collection[str] | None = None,  # those to be read; none of them: the first; None: all
) -> Iterator[tuple[Any, Iterator]]:  # the file's schema, and batches as they are read
    """A columnar file, in bounded memory. Raises: FileError for one that is too wide or too large, by what it says of
    itself or as it is unpacked."""
    import pyarrow as pa
    from pyarrow import parquet

    def chosen(names: list[str]) -> list[str]:
        _check_width(len(names))
        return [name for name in names if columns is None or name in columns] or names[:1]

    if kind == "arrow":
        with pa.memory_map(str(source)) as mapped, pa.ipc.open_stream(mapped) as stream:
            names = chosen(stream.schema.names)
            batches = stream if columns is None else (batch.select(names) for batch in stream)
            yield stream.schema, _bounded(batches, most)
        return
    with parquet.ParquetFile(source, pre_buffer=False, buffer_size=2**20) as file:
        names = chosen(file.schema_arrow.names)
        groups = [file.metadata.row_group(number) for number in range(file.num_row_groups)]
        for group in groups:
            _check_row(group.total_byte_size // (4 * max(group.num_rows, 1)))
        _check_size(sum(group.total_byte_size for group in groups), most)
        batches = file.iter_batches(rows, columns=None if columns is None else names)
        yield file.schema_arrow, _bounded(batches, most)


def _bounded(batches: Iterable, most: float) -> Iterator:
    """Some rows at a time: room for all that a file promises may be more than there is."""
    size = 0
    for batch in batches:
        size += batch.nbytes
        _check_size(size, most)
        yield batch


def whole_frame(
    table: Any,  # a pyarrow.Table
) -> pd.DataFrame:  # its rows
    """The frame of a columnar table. Raises: pyarrow.ArrowInvalid if its bytes are not what its columns say, such as
    text that is not UTF-8."""
    table.validate(full=True)  # else it shows later, where a text is first used
    # without what pandas noted for itself: its index may be a column that is wanted
    return table.replace_schema_metadata(None).to_pandas()


def _read_columnar(source: Any, kind: str, most: float):
    import pyarrow as pa

    with open_columnar(source, kind, most) as (schema, batches):
        return pa.Table.from_batches(batches, schema)


_NO_DATA_SET = ("not a readable folder of a data set", "; save it again with save_to_disk")


def saved_files(
    folder: Path,  # of a data set that was written with `save_to_disk`
) -> list[Path]:  # its files, all in that folder
    """The files of a saved data set, in order. Raises: FileError if the folder does not say which they are."""
    with refusing(*_NO_DATA_SET):
        entries = json.loads((folder / "state.json").read_bytes())["_data_files"]
        return [folder / Path(entry["filename"]).name for entry in entries]


def read_saved(
    folder: Path,  # as for `saved_files`
    max_unpacked: int = MOST_UNPACKED,  # bytes of each file
) -> pd.DataFrame:  # its rows
    """The rows of a saved data set. Raises: FileError for one that cannot be read, or holds too much."""
    import pyarrow as pa

    with refusing(*_NO_DATA_SET):
        tables = [
            _read_columnar(file, "arrow", max(max_unpacked, file.stat().st_size))
            for file in saved_files(folder)
        ]
        return whole_frame(pa.concat_tables(tables))


# ---- Excel

EXCEL = b"PK\x03\x04"  # how a packed file begins


def read_excel(
    data: bytes,  # of an .xlsx file
    notes: list[str] | None = None,  # what is to be said of the file is added here
    max_unpacked: int = MOST_UNPACKED,  # bytes that its parts may unpack to
    sheet_name: str | None = None,  # None: the first sheet
) -> pd.DataFrame:  # text cells; None where a cell is empty
    """The rows of a sheet, as a CSV file of them would hold them. Raises: FileError for a file that cannot be read, is
    too large, or has no such sheet or no rows; it names openpyxl where that is missing."""
    try:
        import openpyxl
    except ImportError as error:
        raise FileError(
            "an Excel file needs openpyxl: pip install 'tsteval[excel]', or save it as CSV"
        ) from error
    with refusing("not a readable Excel file"):
        parts = zipfile.ZipFile(io.BytesIO(data)).infolist()
        _check_size(sum(part.file_size for part in parts), max(max_unpacked, len(data)))
        book = openpyxl.load_workbook(io.BytesIO(data), read_only=True)
        sheet, cells = _cells_of_sheet(book, sheet_name)
        formulas = {cell.coordinate for row in cells for cell in row if cell.data_type == "f"}
        if formulas:  # what they came to, which is read apart from them
            results = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True)
            sheet, cells = _cells_of_sheet(results, sheet_name)
        texts = [[_cell_text(cell, sheet.title, formulas) for cell in row] for row in cells]
        rows = [row for row in texts if any(text is not None for text in row)]
    if not rows:
        raise FileError(f"sheet {sheet.title!r:.60} has no rows{_other_sheets(book, sheet_name)}")
    if notes is not None and sheet_name is None and len(book.sheetnames) > 1:
        notes.append(
            f"sheet {sheet.title!r:.60}, the first of {len(book.sheetnames)}, is read{_other_sheets(book, None)}"
        )
    width = max(map(len, rows))
    _check_width(width, len(rows))
    frame = pd.DataFrame([row + [None] * (width - len(row)) for row in rows], dtype=object)
    # a column without a name and a value is left out
    frame = frame.loc[:, frame.notna().any()]
    names, _ = column_names([name or "" for name in frame.iloc[0]])
    header = [name.strip() for name in frame.iloc[0] if name]
    if repeated := [name for name in header if header.count(name) > 1]:
        raise FileError(f"two columns are called {repeated[0]!r:.60}")
    if len(frame) == 1:
        raise FileError(
            f"sheet {sheet.title!r:.60} has a header and no rows{_other_sheets(book, sheet_name)}"
        )
    return frame.iloc[1:].set_axis(names, axis=1).reset_index(drop=True)


def _other_sheets(book: Any, chosen: str | None) -> str:
    """What to do where another sheet is meant."""
    if chosen is not None or len(book.sheetnames) < 2:
        return ""
    return "; --sheet NAME reads another, and given several times a system a sheet"


def _cells_of_sheet(book: Any, name: str | None) -> tuple[Any, list[tuple]]:
    """A sheet and the cells of its rows, all that are there, whatever the size that it says it has. Raises: FileError
    for a sheet that is not there."""
    titles = [sheet.title for sheet in book.worksheets]
    if name is not None and name not in titles:
        raise FileError(
            f"--sheet: there is no sheet {name!r:.60}; the sheets are {', '.join(map(displayable, titles))}"
        )
    sheet = book.worksheets[0 if name is None else titles.index(name)]
    sheet.reset_dimensions()
    return sheet, list(sheet.iter_rows())


def _cell_text(cell: Any, sheet: str, formulas: Collection[str]) -> str | None:
    """What a cell shows; None for an empty one. Raises: FileError for a mistake of the spreadsheet's."""
    from openpyxl.utils.escape import unescape

    place = getattr(cell, "coordinate", None)  # where there is no cell there is none
    if cell.data_type == "e":
        raise FileError(
            f"sheet {sheet!r:.60}, cell {place} holds the error {cell.value}; mend it, or write a text "
            "there"
        )
    if cell.value is None:
        if place in formulas and cell.data_type != "str":
            raise FileError(
                f"sheet {sheet!r:.60}, cell {place} holds a formula without its result; open the file in "
                "a spreadsheet and save it, or write a text there"
            )
        return "" if place in formulas else None
    if isinstance(cell.value, bool):
        return str(cell.value).upper()
    if isinstance(cell.value, datetime.datetime):
        return cell.value.isoformat(" ").removesuffix(" 00:00:00")
    return unescape(str(cell.value))


# ---- any of them


def parse_table(
    data: bytes,  # CSV, TSV, JSON Lines, JSON, Parquet or Excel, perhaps compressed by gzip
    # csv | tsv | jsonl | json | parquet | xlsx; None: told by how it begins
    kind: str | None = None,
    encoding: str | None = None,  # None: UTF-8, or what the bytes leave no doubt about
    notes: list[str] | None = None,  # what is to be said of the encoding is added here
    max_unpacked: int = MOST_UNPACKED,  # bytes that a packed file may unpack to
    sheet: str | None = None,  # of an Excel file; None: the first
) -> pd.DataFrame:  # text cells
    """A table of pairs from the bytes of a file. Raises: FileError that names the line or row."""
    data = _unpacked(data, max_unpacked)
    if kind == "xlsx" or (kind is None and data.startswith(EXCEL)):
        return read_excel(data, notes, max_unpacked, sheet)
    if sheet is not None:
        raise FileError(f"--sheet {sheet}: only an Excel file has sheets; leave --sheet out")
    if kind == "parquet" or (kind is None and data.startswith(b"PAR1")):
        with refusing("not a readable Parquet file"):
            most = max(max_unpacked, len(data))
            return whole_frame(_read_columnar(io.BytesIO(data), "parquet", most))
    text = _text_of(data, encoding, notes, _NEEDS)
    if kind is None:
        tabs = "\t" in text.split("\n", 1)[0]
        kind = {"{": "jsonl", "[": "json"}.get(text.lstrip()[0]) or ("tsv" if tabs else "csv")
    if kind == "json" and _is_json_lines(text):
        kind = "jsonl"
    frame = _read_json(text) if kind == "json" else _read_text(text, kind)
    if notes is not None and kind in ("csv", "tsv"):
        notes += _missing_words(frame)
    if not len(frame):
        header = "" if kind == "json" else "a header and "
        raise FileError(f"the file has {header}no rows")
    return frame


def _missing_words(frame: pd.DataFrame) -> list[str]:
    """What is to be said of texts that other programs write for a missing one."""
    return [
        f"column {name}, row {int(rows.to_numpy().argmax())}: {frame[name][rows].iloc[0]} is read as a word, "
        f"here and in {int(rows.sum()) - 1:,} other rows; leave the cell empty if there is no text"
        for name in ("source", "output")
        if name in frame and (rows := frame[name].isin(["nan", "NaN"])).any()
    ]


def parse_lines(
    data: bytes,  # of a file of texts, one a line, perhaps compressed by gzip
    encoding: str | None = None,  # as for `parse_table`
    notes: list[str] | None = None,  # likewise
    max_unpacked: int = MOST_UNPACKED,  # likewise
) -> list[str]:  # without the ends of the lines
    """The lines of a file. Raises: FileError for one that is empty, or cannot be read."""
    text = _text_of(_unpacked(data, max_unpacked), encoding, notes)
    # as the first computers of Apple wrote it; one among other ends belongs to a text, or is a mistake
    end = "\n" if "\n" in text else "\r"
    lines = text.removesuffix(end).split(end)
    for number, line in enumerate(lines, 1):
        _check_row(len(line), line=number)
        if "\r" in line.removesuffix("\r"):
            raise FileError(
                "a carriage return stands inside the line; end all lines alike, or take it out",
                line=number,
            )
    return [line.removesuffix("\r") for line in lines]
