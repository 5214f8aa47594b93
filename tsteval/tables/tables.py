"""Tables of pairs from files and Python"""

import hashlib
import io
import os
import stat
import warnings
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from ..core.checks import InputError
from ..core.display import displayable
from ..core.files import file_sha256
from .formats import (
    MOST_UNPACKED,
    REFERENCE_COLUMN,
    FileError,
    parse_lines,
    parse_table,
    read_saved,
)

EXCEL = b"PK\x03\x04"  # how a packed file begins


def read_excel(
    data: bytes,  # of an .xlsx file
    notes: list[str] | None = None,  # what is to be said of the file is added here
    max_unpacked: int = MOST_UNPACKED,  # bytes that its parts may unpack to
) -> pd.DataFrame:  # text cells; None where a cell is empty
    """The rows of the first sheet, as a CSV file of them would hold them. Raises: FileError for a file that cannot be
    read, is too large, or has no rows; it names openpyxl where that is missing."""
    try:
        import openpyxl
    except ImportError as error:
        raise FileError(
            "an Excel file needs openpyxl: pip install 'tsteval[excel]', or save it as CSV"
        ) from error
    try:
        size = sum(part.file_size for part in zipfile.ZipFile(io.BytesIO(data)).infolist())
        if size > max(max_unpacked, len(data)):
            raise FileError(
                f"unpacks to {size:,} bytes, more than {max_unpacked:,}; keep the columns with texts, or "
                f"allow more with --max-unpacked (in Python max_unpacked)"
            )
        book = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True)
        header, *rows = [
            row
            for row in book.worksheets[0].iter_rows(values_only=True)
            if any(cell is not None for cell in row)
        ]
    except FileError:
        raise
    except ValueError as error:  # nothing to unpack into a header
        raise FileError("the first sheet has no rows") from error
    except Exception as error:  # a dozen kinds of broken XML; to a person they all mean the same
        raise FileError(f"not a readable Excel file ({type(error).__name__})") from error
    if notes is not None and len(book.sheetnames) > 1:
        notes.append(f"the first of {len(book.sheetnames)} sheets is read")
    return _framed(header, rows)


def _framed(header: tuple, rows: list[tuple]) -> pd.DataFrame:
    """The rows under their names; a column without a name and a value is left out."""
    places = [place for place, name in enumerate(header) if name is not None]
    names = [str(header[place]).strip() for place in places]
    if repeated := [name for name in names if names.count(name) > 1]:
        raise FileError(f"two columns are called {repeated[0]!r:.60}")
    if not rows:
        raise FileError("the first sheet has a header and no rows")
    texts = [
        [
            None if cell is None else str(cell)
            for cell in (row[place] if place < len(row) else None for place in places)
        ]
        for row in rows
    ]
    return pd.DataFrame(texts, columns=names, dtype=object)


KINDS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".xlsx": "xlsx",
}


@dataclass(frozen=True)
class Opened:
    """A table that was read, and what is known of where it came from."""

    frame: pd.DataFrame  # text cells
    sha256: str  # of the bytes that were read
    places: list[tuple[str, int]]  # of each row: the file, and the row in it, from 0
    notes: list[str]  # what a person should be told, each with the file's name


def open_bytes(
    data: bytes,  # as for `parse_table`
    name: str = "-",  # what the file is called in messages
    kind: str | None = None,  # as for `parse_table`
    encoding: str | None = None,  # likewise
    max_unpacked: int = MOST_UNPACKED,  # likewise
) -> Opened:
    """Read a table of pairs from bytes, and say where its rows came from. Raises: as `parse_table`."""
    notes: list[str] = []
    if kind == "xlsx" or (kind is None and data.startswith(EXCEL)):
        frame = read_excel(data, notes, max_unpacked)
    else:
        frame = parse_table(data, kind, encoding, notes, max_unpacked)
    return Opened(
        frame,
        hashlib.sha256(data).hexdigest(),
        [(name, row) for row in range(len(frame))],
        [f"{name}: {note}" for note in notes],
    )


def _kind_of(path: Path) -> str | None:
    """How a file is read, by its name; empty for an ending that says nothing, None for what is no ordinary file."""
    if not stat.S_ISREG(path.stat().st_mode):
        return None
    endings = [ending.lower() for ending in path.suffixes[-2:]]
    if endings and endings[-1] == ".gz":
        endings.pop()
    return KINDS.get(endings[-1] if endings else "", "")


def _file_bytes(path: Path) -> bytes:
    """All of a file, a pipe or a terminal. Other devices never end."""
    mode = path.stat().st_mode
    if stat.S_ISSOCK(mode) or stat.S_ISBLK(mode):
        raise FileError("this is no file that can be read")
    with open(path, "rb") as file:
        if stat.S_ISCHR(mode) and not os.path.samefile(path, os.devnull) and not file.isatty():
            raise FileError("this is a device, not a file")
        return file.read()


def _open_file(path: Path, kind: str | None, encoding: str | None, max_unpacked: int) -> Opened:
    known = _kind_of(path)
    if kind is None and known == "":
        raise FileError(
            f"cannot tell the format from the ending {displayable(path.suffix)!r:.60}; use .csv, .tsv, "
            f".jsonl, .json, .parquet or .xlsx, or name the format"
        )
    return open_bytes(
        _file_bytes(path), displayable(path.name), kind or known, encoding, max_unpacked
    )


def refuse_splits(
    folder: Path,
) -> None:
    """Raises: FileError if the folder holds the splits of a data set, each with rows of its own."""
    if (folder / "dataset_dict.json").is_file():
        splits = sorted(path.name for path in folder.iterdir() if path.is_dir())
        raise FileError(
            f"these are the splits of a data set; choose one, such as "
            f"{displayable(str(folder / (splits or ['test'])[0]))}"
        )


def _open_folder(folder: Path, kind: str | None, encoding: str | None, max_unpacked: int) -> Opened:
    refuse_splits(folder)
    if (folder / "state.json").is_file():
        frame = read_saved(folder, max_unpacked)
        name = displayable(folder.name)
        digest = hashlib.sha256(
            b"".join(bytes.fromhex(file_sha256(path)) for path in sorted(folder.glob("*.arrow")))
        )
        return Opened(frame, digest.hexdigest(), [(name, row) for row in range(len(frame))], [])
    files = sorted(
        path
        for path in folder.iterdir()
        if path.is_file() and not path.name.startswith(".") and _kind_of(path)
    )
    if not files:
        raise FileError(
            "this is a folder in which no file ends in .csv, .tsv, .jsonl, .json, .parquet or .xlsx"
        )
    parts = []
    for path in files:
        try:
            parts.append(_open_file(path, kind, encoding, max_unpacked))
        except FileError as error:
            raise error.at(file=displayable(path.name)) from error
        if set(parts[-1].frame.columns) != set(parts[0].frame.columns):
            raise FileError(
                f"its columns are not those of {displayable(files[0].name)}; "
                f"the files of a folder are parts of one table",
                file=displayable(path.name),
            )
    frame = pd.concat([part.frame for part in parts], ignore_index=True)
    frame.attrs["repeated"] = [
        name for part in parts for name in part.frame.attrs.get("repeated", [])
    ]
    digest = hashlib.sha256("".join(part.sha256 for part in parts).encode()).hexdigest()
    return Opened(
        frame,
        digest,
        [place for part in parts for place in part.places],
        [note for part in parts for note in part.notes],
    )


def open_table(
    path: Path
    | str,  # a file, a pipe, a folder of files, or one that `save_to_disk` of datasets wrote
    # as for `parse_table`; None: told by the ending of the name, and of a pipe by how it begins
    kind: str | None = None,
    encoding: str | None = None,  # likewise
    max_unpacked: int = MOST_UNPACKED,  # likewise, of each file
) -> Opened:
    """Read a table of pairs once, and say where its rows came from. Raises: FileError that names the line or row, and
    what to do."""
    path = Path(path)
    if not path.exists():
        raise FileError("there is no such file")
    return (_open_folder if path.is_dir() else _open_file)(path, kind, encoding, max_unpacked)


def read_table(
    path: Path | str,  # as for `open_table`
    kind: str | None = None,  # likewise
    encoding: str | None = None,  # likewise
    max_unpacked: int = MOST_UNPACKED,  # likewise
) -> pd.DataFrame:  # text cells
    """Read a table of pairs; the ending of the file's name decides how. What is to be said of its encoding is warned
    of.

    Raises: FileError that names the line or row, and what to do.
    """
    opened = open_table(path, kind, encoding, max_unpacked)
    for note in opened.notes:
        warnings.warn(note, stacklevel=2)
    return opened.frame


def _lines(
    path: Path | str, encoding: str | None, notes: list[str], max_unpacked: int
) -> tuple[list[str], str]:
    """The lines of a file of texts, and its checksum."""
    path, told, name = Path(path), [], displayable(str(path))
    if not path.exists():
        raise FileError("there is no such file", file=name)
    if path.is_dir():
        raise FileError("this is a folder, not a file of lines", file=name)
    data = _file_bytes(path)
    try:
        lines = parse_lines(data, encoding, told, max_unpacked)
    except FileError as error:
        raise error.at(file=name) from error
    if empty := [number for number, line in enumerate(lines, 1) if not line.strip()]:
        raise FileError(
            f"line {empty[0]} is empty; leave it out of all files, or give it a text", file=name
        )
    notes += [f"{name}: {note}" for note in told]
    return lines, hashlib.sha256(data).hexdigest()


def open_lines(
    source: Path | str,  # a file of texts, one a line
    outputs: Sequence[
        Path | str
    ],  # one file a system; a system is called like its file, without the ending
    references: Sequence[Path | str] = (),  # as many as there are references to each source
    encoding: str | None = None,  # as for `parse_table`
    max_unpacked: int = MOST_UNPACKED,  # likewise, of each file
) -> Opened:
    """A table from files that are aligned by lines. Raises: FileError that names the file and line."""
    notes: list[str] = []
    files = [source, *outputs, *references]
    texts, digests = zip(*(_lines(file, encoding, notes, max_unpacked) for file in files))
    for file, lines in zip(files, texts):
        if len(lines) != len(texts[0]):
            raise FileError(
                f"{len(lines)} lines, where {displayable(str(source))} has {len(texts[0])}; the files must "
                f"be aligned",
                file=displayable(str(file)),
            )
    names = [
        displayable(Path(file).name.removesuffix(".gz").rsplit(".", 1)[0] or Path(file).name)
        for file in outputs
    ]
    if len(set(names)) < len(names):
        names = [displayable(str(file)) for file in outputs]
    if len(set(names)) < len(names):
        raise FileError(
            f"{next(name for name in names if names.count(name) > 1)} is given twice; name each system's "
            f"file once"
        )
    shared = {
        f"reference_{place}": lines for place, lines in enumerate(texts[1 + len(outputs) :], 1)
    }
    frames = [
        pd.DataFrame({"system": name, "source": texts[0], "output": lines} | shared, dtype=object)
        for name, lines in zip(names, texts[1:])
    ]
    places = [
        (displayable(Path(file).name), row) for file in outputs for row in range(len(texts[0]))
    ]
    return Opened(
        pd.concat(frames, ignore_index=True),
        hashlib.sha256("".join(digests).encode()).hexdigest(),
        places,
        notes,
    )


def choose_columns(
    table: pd.DataFrame,  # as it was read
    # our names of PAIR_COLUMNS -> those in the file; a name that is not there is an error where it differs
    names: Mapping[str, str],
    references: Sequence[
        str
    ] = (),  # the file's columns with references; none: all that are called like one
) -> pd.DataFrame:
    """The columns of a table that an evaluation needs, with our names. Raises: FileError for a column that is not
    there, or is there twice."""
    wanted = dict(names) | {f"reference_{n}": column for n, column in enumerate(references, 1)}
    present = list(table.columns)
    repeated = table.attrs.get("repeated", [])
    for ours, theirs in wanted.items():
        optional = theirs == ours and ours in ("system", "source", "target_style", "input")
        if theirs not in present and not optional:
            raise FileError(
                f"there is no column {theirs}; the columns are "
                f"{', '.join(map(displayable, map(str, present)))}"
            )
        if theirs in repeated or present.count(theirs) > 1:
            raise FileError(f"there is more than one column {theirs}; rename or drop all but one")
    found = {ours: theirs for ours, theirs in wanted.items() if theirs in present}
    if not references:
        found |= {name: name for name in present if REFERENCE_COLUMN.fullmatch(str(name))}
    chosen = table[list(found.values())].copy()
    chosen.columns = list(found)
    chosen.attrs = {}
    return chosen


def choose_rows(
    table: pd.DataFrame,
    systems: Sequence[str] | None = None,  # keep these; None: all
    limit: int | None = None,  # and the first so many rows of each; None: all
) -> pd.DataFrame:  # its index says where in the table a row stood
    """Some rows of a table. Raises: FileError for a system that is not there."""
    named = (
        table["system"].map(str) if "system" in table else None
    )  # whatever a cell holds; the evaluation checks it
    for name in systems or []:
        if named is None or name not in set(named):
            known = (
                "the file has no column system"
                if named is None
                else f"the systems are {', '.join(named.unique())}"
            )
            raise FileError(f"there is no system called {name!r}; {known}")
    if systems:
        table = table[named.isin(systems)]
    if limit is None:
        return table
    return table.groupby(named, sort=False).head(limit) if named is not None else table.head(limit)


def in_file(
    error: InputError,  # that speaks of a row of the table
    places: Sequence[tuple[str, int]],  # file and row of each row of the table
) -> InputError:
    """An error about a row of the table as one about the row of the file that it came from."""
    if error.row is None or error.row >= len(places):
        return error
    file, row = places[error.row]
    return error.at(file=file, row=row)
