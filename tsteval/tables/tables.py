"""Tables of pairs from files and Python"""

import hashlib
import itertools
import os
import stat
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from ..core.checks import InputError
from ..core.display import displayable
from ..core.files import file_sha256
from .columns import (
    MissingColumn,
    classes,
    find_columns,
    our_names,
    quoted,
    rename_it,
    told_columns,
)
from .formats import (
    MOST_UNPACKED,
    FileError,
    parse_lines,
    parse_table,
    read_saved,
)

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
    sheet: str | None = None,  # likewise
) -> Opened:
    """Read a table of pairs from bytes, and say where its rows came from. Raises: as `parse_table`."""
    notes: list[str] = []
    frame = parse_table(data, kind, encoding, notes, max_unpacked, sheet)
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


def _open_file(path: Path, *how) -> Opened:
    kind, *rest = how
    by_name = _kind_of(path)
    if kind is None and by_name == "":
        raise FileError(
            f"cannot tell the format from the ending {displayable(path.suffix)!r:.60}; use .csv, .tsv, "
            f".jsonl, .json, .parquet or .xlsx, or name the format"
        )
    return open_bytes(_file_bytes(path), displayable(path.name), kind or by_name, *rest)


def refuse_splits(
    folder: Path,
) -> None:
    """Raises: FileError if the folder holds the splits of a data set, each with rows of its own."""
    if (folder / "dataset_dict.json").is_file():
        splits = sorted(path.name for path in folder.iterdir() if path.is_dir()) or ["test"]
        raise FileError(
            f"these are the splits of a data set; choose one, such as "
            f"{displayable(str(folder / splits[0]))}"
        )


def _open_saved(folder: Path, max_unpacked: int) -> Opened:
    """A data set that was written with `save_to_disk`."""
    frame = read_saved(folder, max_unpacked)
    sums = [bytes.fromhex(file_sha256(path)) for path in sorted(folder.glob("*.arrow"))]
    name = displayable(folder.name)
    places = [(name, row) for row in range(len(frame))]
    return Opened(frame, hashlib.sha256(b"".join(sums)).hexdigest(), places, [])


def _open_folder(folder: Path, *how) -> Opened:
    """The files of a folder as parts of one table."""
    files = sorted(
        path
        for path in folder.iterdir()
        if path.is_file() and not path.name.startswith(".") and _kind_of(path)
    )
    if not files:
        raise FileError(
            "this is a folder in which no file ends in .csv, .tsv, .jsonl, .json, .parquet or .xlsx"
        )
    parts: list[Opened] = []
    for path in files:
        try:
            part = _open_file(path, *how)
            if parts and set(part.frame.columns) != set(parts[0].frame.columns):
                raise FileError(
                    f"its columns are not those of {displayable(files[0].name)}; "
                    f"the files of a folder are parts of one table"
                )
        except FileError as error:
            raise error.at(file=displayable(path.name)) from error
        parts.append(part)
    frame = pd.concat([part.frame for part in parts], ignore_index=True)
    repeated = [part.frame.attrs.get("repeated", []) for part in parts]
    frame.attrs["repeated"] = list(itertools.chain(*repeated))
    return Opened(
        frame,
        hashlib.sha256("".join(part.sha256 for part in parts).encode()).hexdigest(),
        list(itertools.chain(*(part.places for part in parts))),
        list(itertools.chain(*(part.notes for part in parts))),
    )


def open_table(
    # a file, a pipe, a folder of files, or one that `save_to_disk` of datasets wrote
    path: Path | str,
    # as for `parse_table`; None: told by the ending of the name, and of a pipe by how it begins
    kind: str | None = None,
    encoding: str | None = None,  # likewise
    max_unpacked: int = MOST_UNPACKED,  # likewise, of each file
    sheet: str | None = None,  # likewise
) -> Opened:
    """Read a table of pairs once, and say where its rows came from. Raises: FileError that names the line or row, and
    what to do."""
    path = Path(path)
    if not path.exists():
        raise FileError("there is no such file")
    if not path.is_dir():
        return _open_file(path, kind, encoding, max_unpacked, sheet)
    refuse_splits(path)
    if (path / "state.json").is_file():
        return _open_saved(path, max_unpacked)
    return _open_folder(path, kind, encoding, max_unpacked, sheet)


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


def _lines(path: Path, notes: list[str], encoding: str | None, most: int) -> tuple[list[str], str]:
    """The lines of a file of texts, and its checksum. Raises: FileError, also for an empty line."""
    name = displayable(str(path))
    its_notes: list[str] = []
    try:
        if not path.exists():
            raise FileError("there is no such file")
        if path.is_dir():
            raise FileError("this is a folder, not a file of lines")
        data = _file_bytes(path)
        lines = parse_lines(data, encoding, its_notes, most)
        for number, line in enumerate(lines, 1):
            if not line.strip():
                raise FileError(
                    f"line {number} is empty; leave it out of all files, or give it a text"
                )
    except FileError as error:
        raise error.at(file=name) from error
    notes += [f"{name}: {note}" for note in its_notes]
    return lines, hashlib.sha256(data).hexdigest()


def _system_names(outputs: list[Path]) -> list[str]:
    """A system is called like its file without the ending, or by the whole path where that is not enough."""
    names = [path.name.removesuffix(".gz").rsplit(".", 1)[0] or path.name for path in outputs]
    if len(set(names)) < len(names):
        names = [str(path) for path in outputs]
    for name in names:
        if names.count(name) > 1:
            raise FileError(f"{displayable(name)} is given twice; name each system's file once")
    return list(map(displayable, names))


def open_lines(
    source: Path | str,  # a file of texts, one a line
    outputs: Sequence[Path | str],  # one file a system
    references: Sequence[Path | str] = (),  # as many as there are references to each source
    encoding: str | None = None,  # as for `parse_table`
    max_unpacked: int = MOST_UNPACKED,  # likewise, of each file
) -> Opened:
    """A table from files that are aligned by lines. Raises: FileError that names the file and line."""
    notes: list[str] = []
    files = [Path(file) for file in (source, *outputs, *references)]
    texts, sums = zip(*(_lines(file, notes, encoding, max_unpacked) for file in files))
    for file, lines in zip(files, texts):
        if len(lines) != len(texts[0]):
            raise FileError(
                f"{len(lines)} lines, where {displayable(str(source))} has {len(texts[0])}; the files must "
                f"be aligned",
                file=displayable(str(file)),
            )
    n_outputs = len(outputs)
    shared = {
        f"reference_{number}": lines for number, lines in enumerate(texts[1 + n_outputs :], 1)
    }
    frames = []
    places = []
    systems = files[1 : 1 + n_outputs]
    for name, file, lines in zip(_system_names(systems), systems, texts[1:]):
        columns = {"system": name, "source": texts[0], "output": lines} | shared
        frames.append(pd.DataFrame(columns, dtype=object))
        places += [(displayable(file.name), row) for row in range(len(lines))]
    return Opened(
        pd.concat(frames, ignore_index=True),
        hashlib.sha256("".join(sums).encode()).hexdigest(),
        places,
        notes,
    )


def choose_columns(
    table: pd.DataFrame,  # as it was read
    chosen: Mapping[str, Sequence[str]],  # part -> the columns that somebody named for it
    remedy: Callable[[str], str] = rename_it,  # what to do about a part that is unclear
    needs: Sequence[str] = ("output",),  # parts that some column must play
) -> tuple[pd.DataFrame, str]:  # the columns that are read, by our names; what is told of them
    """The columns of a table that an evaluation needs; of several outputs each row once for each, which is a system.
    Raises: FileError as `find_columns`, or MissingColumn for a table without outputs."""
    present = list(table.columns)
    found = find_columns(present, chosen, remedy, classes(table))
    repeated = table.attrs.get("repeated", [])
    for names in found.values():
        for name in names:
            if name in repeated:
                raise FileError(f"there is more than one column {name}; rename or drop all but one")
    for part in needs:
        if part not in found:
            raise MissingColumn(f"there is no column {part}", part, present, remedy(part))
    told = told_columns(found, present)
    outputs = found.get("output", [])
    if len(outputs) > 1 and "system" in found:
        raise FileError(
            f"{quoted(outputs)} are the outputs of a system each, and the column {found['system'][0]} names systems, "
            f"too; name one output, or drop that column"
        )
    frames = []
    for output in outputs or [None]:
        ours = our_names({**found, "output": [output]} if outputs else found)
        part = table[list(ours.values())].set_axis(list(ours), axis=1)
        frames.append(part.assign(system=str(output)) if len(outputs) > 1 else part)
    frame = pd.concat(frames)  # its index says where in the table a row stood
    frame.attrs = {}
    return frame, told


def choose_rows(
    table: pd.DataFrame,
    systems: Sequence[str] | None = None,  # keep these; None: all
    limit: int | None = None,  # and the first so many rows of each; None: all
) -> pd.DataFrame:  # its index says where in the table a row stood
    """Some rows of a table. Raises: FileError for a system that is not there."""
    if "system" not in table:
        if systems:
            raise FileError(
                f"there is no system called {systems[0]!r}; the file has no column system"
            )
        return table if limit is None else table.head(limit)
    cells = table["system"].map(str).str.strip()  # whatever a cell holds; the evaluation checks it
    systems = [name.strip() for name in systems or []]
    for name in systems:
        if name not in set(cells):
            raise FileError(
                f"there is no system called {name!r}; the systems are {', '.join(cells.unique())}"
            )
    if systems:
        table = table[cells.isin(systems)]
    return table if limit is None else table.groupby(cells, sort=False).head(limit)


def in_file(
    error: InputError,  # that speaks of a row of the table
    places: Sequence[tuple[str, int]],  # file and row of each row of the table
) -> InputError:
    """An error about a row of the table as one about the row of the file that it came from."""
    if error.row is None or error.row >= len(places):
        return error
    file, row = places[error.row]
    return error.at(file=file, row=row)
