"""Tables of outputs: their columns, and the check that every row is usable"""

import ast
import contextlib
import json
import re
import unicodedata
from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from ..core.checks import InputError, InputTypeError, check_texts, describe, tokenizable
from ..core.display import displayable
from ..core.metric import INPUTS, Metric
from .columns import MissingColumn, with_our_names
from .formats import PAIR_COLUMNS, REFERENCE_COLUMN

LONGEST = 20_000  # characters of a text
_COLUMNS = ("system", "source", "output", "references", "target_style", "input")
_TEXTS = ("source", "output", *INPUTS)  # the texts of a row beside its references
SOURCE_KEY = ("source", *INPUTS, "target_style")  # rows that agree in these are of one source


def _no_table(pairs) -> str:
    """What was given in a table's place, and what to do about it."""
    if isinstance(pairs, pd.Series):
        return "one column; take the frame, or several of its columns: frame[['source', 'output']]"
    return describe(pairs) + "; read a file first, as with pandas.read_csv" * isinstance(pairs, str)


def as_frame(
    # a frame, a dictionary of columns, a data set or another thing with `to_pandas`, or an iterable of dictionaries
    pairs,
) -> pd.DataFrame:
    """Whatever holds rows with named columns as a frame. Raises: InputTypeError for anything else."""
    if isinstance(pairs, pd.DataFrame):
        return pairs
    if hasattr(pairs, "to_pandas"):
        return pairs.to_pandas()
    if isinstance(pairs, Mapping):
        if splits := [
            str(name)
            for name, split in pairs.items()
            if hasattr(split, "to_pandas") or hasattr(split, "column_names")
        ]:
            raise InputTypeError(
                f"these are the splits of a data set; choose one, such as pairs[{splits[0]!r}]",
                argument="pairs",
            )
        if texts := [name for name, column in pairs.items() if isinstance(column, (str, bytes))]:
            raise InputTypeError(
                f"column {texts[0]} is one text, not a list of texts; one row is written as "
                f"[{{'source': ..., 'output': ...}}]",
                argument="pairs",
            )
        try:
            return pd.DataFrame(
                {_column(name): list(column) for name, column in pairs.items()}, dtype=object
            )
        except ValueError as error:
            raise InputError(
                f"the columns must be equally long ({error})", argument="pairs"
            ) from error
    if isinstance(pairs, (str, bytes, pd.Series)) or not isinstance(pairs, Iterable):
        raise InputTypeError(
            f"must be a table: a frame, a dictionary of columns or a list of dictionaries; got "
            f"{_no_table(pairs)}",
            argument="pairs",
        )
    rows = list(pairs)
    for row, entry in enumerate(rows):
        if not isinstance(entry, Mapping):
            raise InputTypeError(
                f"expected a dictionary such as {{'source': ..., 'output': ...}}, got "
                f"{describe(entry)}",
                argument="pairs",
                row=row,
            )
    return pd.DataFrame(
        [{_column(name): cell for name, cell in entry.items()} for entry in rows], dtype=object
    )


def _column(name):
    """A name that a table can hold, which half a character is not."""
    return displayable(name) if isinstance(name, str) else name


def with_sources(
    frame: pd.DataFrame,
    metrics: Iterable[Metric],
) -> pd.DataFrame:  # with a column source
    """A table of texts that stand alone, for metrics that look at no source: what an output answers or rests on, or
    else the output itself, takes the source's place. A table that has sources is left as it is.

    Raises: MissingColumn that names the metric which needs a source, or something that an output answers or rests on.
    """
    metrics = list(metrics)
    if "source" in frame or "output" not in frame:
        return frame
    if asking := [metric.name for metric in metrics if "source" in metric.needed]:
        raise MissingColumn(
            f"there is no column source, and {asking[0]} compares an output with its source",
            "source",
            frame.columns,
        )
    there = [name for name in INPUTS if name in frame]
    for metric in metrics:
        for part in INPUTS:
            if part in metric.needed and not {part, "input"} & set(there):
                raise MissingColumn(
                    f"there is no column {part}, and {metric.name} compares an output with its {part}",
                    part,
                    frame.columns,
                )
    return frame.assign(source=frame[(there or ["output"])[0]])


# byte order marks, zero-width spaces, word joiners, soft hyphens and marks of direction are left out; the joiners
# U+200C and U+200D, which decide how letters are drawn, stay
_UNSEEN = {
    **dict.fromkeys(map(ord, "\ufeff\u200b\u2060\u00ad\u200e\u200f")),
    **dict.fromkeys(map(ord, "\u00a0\u202f\u2007"), " "),
}


def _as_seen(text: str) -> str:
    """A text without what nobody sees."""
    return unicodedata.normalize("NFC", text.translate(_UNSEEN))


def in_one_form(
    texts: Iterable[str],  # N texts
    name: str = "texts",  # what to call them in an error
) -> list[str]:  # N texts
    """Texts without what only says which program wrote them, so that no score depends on it: a letter and its accent
    are one character (Unicode's NFC), characters without a width are left out, no-break spaces are spaces, white space
    around a text is dropped, lines end with one line feed, half a character becomes "?".

    Raises: InputTypeError naming the row that is not a string.
    """
    return [_as_seen(text).replace("\r\n", "\n").strip() for text in tokenizable(texts, name)]


def prepare_pairs(
    # see `as_frame`; columns source and output; optionally system, target_style, input, question, context, reference,
    # reference_2, ...; or what other programs call them
    pairs,
    target_style: str = "neutral",  # where the table does not say
) -> pd.DataFrame:
    """Check a table of pairs and bring it into one shape, its texts `in_one_form`: columns system, source, output,
    references (a tuple, perhaps empty), target_style, input, and question and context where there are such. The version
    at the end of a signature stands for that form.

    Raises: InputError that names the row and column of the first problem.
    """
    return checked_pairs(with_our_names(as_frame(pairs))[0], target_style)


def checked_pairs(
    frame: pd.DataFrame,  # with our names of the columns
    target_style: str = "neutral",  # where the table does not say
) -> pd.DataFrame:
    """The same of a table whose columns are called as they are here. Raises: as `prepare_pairs`."""
    missing = [column for column in ("source", "output") if column not in frame.columns]
    if missing:
        raise MissingColumn(f"there is no column {missing[0]}", missing[0], frame.columns)
    if not len(frame):
        raise InputError("there are no rows to evaluate")
    clean = {
        "system": ["output"] * len(frame),
        "target_style": [target_style] * len(frame),
        "references": _references(frame),
    }
    for column in PAIR_COLUMNS:
        if column in frame:
            clean[column] = _check_column(frame[column], column)
    clean["system"] = [name.strip() for name in clean["system"]]
    clean.setdefault("input", clean["source"])
    return pd.DataFrame(clean, dtype=object)[
        [*_COLUMNS, *(name for name in ("question", "context") if name in clean)]
    ]


def _check_column(values: Iterable, column: str) -> list[str]:
    texts = in_one_form(check_texts(list(values), column=column, longest=LONGEST))
    return check_texts(texts, column=column, empty=False)


def is_blank(
    cell,  # of a table
) -> bool:
    """Whether a cell holds no text: nothing, a missing value, white space, or what nobody sees."""
    if isinstance(cell, str):
        return not _as_seen(cell).strip()
    return cell is None or bool(pd.api.types.is_scalar(cell) and pd.isna(cell))


def _in_cell(cell) -> list:
    """What a cell holds, which may be a list."""
    return list(cell) if isinstance(cell, (list, tuple, np.ndarray)) else [cell]


def _reference_columns(frame: pd.DataFrame) -> list[int]:
    return [
        place for place, name in enumerate(frame.columns) if REFERENCE_COLUMN.fullmatch(str(name))
    ]


def reformed_rows(
    frame: pd.DataFrame,  # as it was given
) -> list[int]:  # numbers of rows
    """Rows with a text that `in_one_form` changes beyond white space around it and the ends of its lines."""
    places = [frame.columns.get_loc(name) for name in _TEXTS if name in frame]
    columns = [frame.iloc[:, place] for place in [*places, *_reference_columns(frame)]]
    rows = []
    for row, cells in enumerate(zip(*columns)):
        held = [text for cell in cells for text in _in_cell(cell) if isinstance(text, str)]
        texts = map(str.strip, held)
        if any(not text.isascii() and _as_seen(text) != text for text in texts):
            rows.append(row)
    return rows


def _references(frame: pd.DataFrame) -> list[tuple[str, ...]]:
    """The references of each row, from however many columns there are; a cell may hold a list."""
    columns = _reference_columns(frame)
    if not columns:
        return [()] * len(frame)
    rows: list[list[str]] = [[] for _ in range(len(frame))]
    for place in columns:
        name = str(frame.columns[place])
        # as `load_ratings` has them: `reference` is the first of `references`
        repeats = name == "references" and "reference" in frame
        for row, cell in enumerate(_lists(list(frame.iloc[:, place]), name)):
            cells = [text for text in _in_cell(cell) if not (repeats and text in rows[row])]
            if len(columns) > 1:  # a row may have fewer than another
                cells = [cell for cell in cells if not is_blank(cell)]
            rows[row] += _check_cells(cells, name, row)
    for row, references in enumerate(rows):
        if not references:
            raise InputError(
                "there is no reference; give one or drop the row",
                column=str(frame.columns[columns[0]]),
                row=row,
            )
    return [tuple(references) for references in rows]


_LIST = re.compile(r"\s*\[\s*(?:[\"'].*[\"']\s*)?\]\s*", re.DOTALL)


def _lists(cells: list, column: str) -> list:
    """The cells of a column of references; where all that hold a text are written lists, as CSV holds them, those lists.

    Raises: InputError for one that is no list of texts.
    """
    if not all(
        is_blank(cell) or (isinstance(cell, str) and _LIST.fullmatch(cell)) for cell in cells
    ):
        return cells
    return [
        cell if is_blank(cell) else _written_list(cell, column, row)
        for row, cell in enumerate(cells)
    ]


def _written_list(cell: str, column: str, row: int) -> list[str]:
    """A list as JSON or Python writes it, character for character: two texts without a comma are one to Python."""
    for read, write in ((json.loads, None), (ast.literal_eval, repr)):
        with contextlib.suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            texts = read(cell.strip())
            if write is None or write(texts) == cell.strip():
                return texts
    raise InputError(
        'this is no list of texts; write it as ["one", "two"], or give each reference a column',
        column=column,
        row=row,
    )


def _check_cells(cells: list, column: str, row: int) -> list[str]:
    """The texts of one cell; the check counts within the cell, the message counts the table's rows."""
    for cell in cells:
        try:
            check_texts([cell], column=column, longest=LONGEST)
            check_texts(in_one_form([cell]), column=column, empty=False)
        except InputError as error:
            raise error.at(row=row) from None
    return in_one_form(cells)
