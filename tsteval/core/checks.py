"""The one gate for input: texts, columns, references, distributions, numbers"""

import difflib
import inspect
import math
import warnings
from collections.abc import Iterable, Mapping, Sequence, Set
from functools import reduce
from numbers import Integral, Real
from typing import Any

import numpy as np

_PLACE = ("argument", "file", "row", "column", "line")


class InputError(ValueError):
    """Input that cannot be used: where it is, as far as that is known, what is wrong with it, and what to do."""

    def __init__(
        self,
        message: str,  # what is wrong, and what to do; one that begins with "must" goes on from the argument's name
        *,
        argument: str | None = None,  # what the caller calls it
        file: str | None = None,  # what holds it
        row: int | None = None,  # counted from 0
        column: str | None = None,  # of a table
        line: int | None = None,  # of a file of texts, counted from 1
    ):
        super().__init__(message)
        self.argument = argument
        self.file = file
        self.column = column
        self.row, self.line = (None if number is None else int(number) for number in (row, line))

    def __str__(self) -> str:
        message = str(self.args[0])
        coordinates = {name: getattr(self, name) for name in ("column", "row", "line")}
        inside = [
            self.argument,
            *(f"{name} {value}" for name, value in coordinates.items() if value is not None),
        ]
        inside = ", ".join(filter(None, inside))
        place = ": ".join(filter(None, [self.file, inside]))
        if not place:
            return message
        return (
            f"{place} {message}"
            if inside and message.startswith("must ")
            else f"{place}: {message}"
        )

    def at(
        self,
        **place,  # fields that are known better here; a file goes before one that is known, as a folder does
    ) -> "InputError":  # of the same kind
        """A copy that knows more of its place."""
        location = {name: getattr(self, name) for name in _PLACE}
        if self.file and place.get("file") not in (None, self.file):
            place["file"] = f"{place['file']}: {self.file}"
        return type(self)(self.args[0], **location | place)


class InputTypeError(InputError, TypeError):
    """Input of the wrong kind, such as a number where a text belongs."""


def describe(
    value: object,  # whatever was found where something else was expected
) -> str:  # a few words
    """Name a value in the words of the person who has to find it."""
    if value is None:
        return "None"
    if isinstance(value, float) and value != value:
        return "NaN (a missing value)"
    if type(value).__name__ == "NAType":
        return "NA (a missing value)"
    return f"{type(value).__name__} {value!r:.40}"


def meant(
    word: str,
    choices: Iterable[str],
) -> str:  # such as " (did you mean bleu?)", or empty
    """The known word that a misspelt one stands for."""
    near = difflib.get_close_matches(word, list(choices), 1, 0.6)
    return f" (did you mean {near[0]}?)" if near else ""


def check_rows(
    rows: Iterable,  # one entry a row
    name: str,  # what the caller calls this argument
    of: str = "strings",  # what a row should be, for the message
) -> list:  # the rows
    """Turn what can be looped over once into a list. Raises: InputTypeError for what is no ordered series of rows."""
    if type(rows) in (list, tuple):
        return list(rows)  # what nearly all are; to be sure of the others takes longer
    is_table = isinstance(rows, Mapping) or (hasattr(rows, "columns") and hasattr(rows, "iloc"))
    is_number = isinstance(rows, np.ndarray) and rows.ndim == 0
    if (
        is_table
        or is_number
        or isinstance(rows, (str, bytes, bytearray, Set))
        or not isinstance(rows, Iterable)
    ):
        description = (
            f"a {type(rows).__name__}; choose one of its columns" if is_table else describe(rows)
        )
        remedy = "; put it into a list" if isinstance(rows, str) else ""
        raise InputTypeError(
            f"must be a list of {of}, one a row; got {description}{remedy}", argument=name
        )
    return list(rows)


def check_texts(
    texts: Iterable[str],  # one string a row
    name: str = "texts",  # what the caller calls this argument; used in errors
    *,
    empty: bool = True,  # whether a text may be empty or all white space
    longest: int | None = None,  # characters; None: any length
    column: str | None = None,  # of a table, if the texts are one; errors then name this
) -> list[str]:  # the same rows as plain strings
    """Make sure that each row is a string.

    Raises: InputTypeError (a TypeError) for a row that is no string; InputError (a ValueError) for an empty or overlong
    one.
    """
    rows = check_rows(texts, name)
    place = {"column": column} if column else {"argument": name}
    if set(map(type, rows)) - {
        str
    }:  # a loop in C over a million rows; the slow loop is for what it finds
        for row, text in enumerate(rows):
            if not isinstance(text, str):
                raise InputTypeError(
                    f"expected a string, got {describe(text)}; {_remedy(text, 'this row')}",
                    row=row,
                    **place,
                )
        rows = list(map(str, rows))  # NumPy's strings become Python's
    if not empty or longest is not None:
        _check_lengths(rows, empty, longest, place)
    return rows


def _remedy(value: object, place: str) -> str:
    """What to do about a value that is no string."""
    tokens = isinstance(value, (list, tuple))
    return "join its tokens with ' '.join(tokens)" if tokens else f"drop or fill {place}"


def _check_lengths(
    rows: list[str], empty: bool, longest: int | None, place: dict[str, str]
) -> None:
    for row, text in enumerate(rows):
        if not (empty or text.strip()):
            raise InputError("the text is empty; fill it in or drop the row", row=row, **place)
        if longest is not None and len(text) > longest:
            raise InputError(
                f"the text has {len(text):,} characters, more than the {longest:,} that can be scored as "
                "one; split it into sentences or paragraphs",
                row=row,
                **place,
            )


def check_equal_lengths(
    **columns: Sequence,  # two or more, each under the name that errors should use
) -> None:
    """Raise an InputError unless all columns have the same number of rows."""
    lengths = {name: len(rows) for name, rows in columns.items()}
    if len(set(lengths.values())) > 1:
        counts = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise InputError(
            f"the columns must have the same number of rows: {counts}; "
            f"row {min(lengths.values())} has no counterpart"
        )


def check_parallel(
    **columns: Iterable[
        str
    ],  # two or more columns of texts, each under the name that errors should use
) -> list[list[str]]:  # the columns as lists, in the order given
    """Make sure that columns hold strings only and have the same number of rows.

    Raises: InputTypeError for a row that is no string; InputError for columns of unequal length.
    """
    checked = {name: check_texts(texts, name) for name, texts in columns.items()}
    check_equal_lengths(**checked)
    return list(checked.values())


def _may_be_sets(references: list) -> bool:
    """Whether rows of references would be as many sets, each as long as the rows are many."""
    n = len(references)
    return n > 1 and all(type(row) is list and len(row) == n for row in references)


def check_references(
    hypotheses: Iterable[str],  # N outputs
    references: Iterable[
        str | Sequence[str]
    ],  # N rows: an output's references, or one string for a single one
    name: str = "hypotheses",  # what the caller calls the outputs
) -> tuple[
    list[str], list[tuple[str, ...]]
]:  # the N outputs and the N non-empty tuples of references
    """Bring outputs and their references into one shape, or say which row is wrong.

    Warns of lists that may be rows as well as sacreBLEU's sets.
    Raises: InputTypeError for a row that is no text; InputError for unequal lengths or a row without reference.
    """
    outputs = check_texts(hypotheses, name)
    entries = check_rows(references, "references", "references")
    rows = [(row,) if isinstance(row, str) else row for row in entries]
    if len(rows) != len(outputs):
        raise InputError(
            f"{len(outputs)} {name} but {len(rows)} rows of references: references[i] belongs to "
            f"{name}[i], so row "
            f"{min(len(rows), len(outputs))} has no counterpart "
            "(sacreBLEU nests the other way round: one list per reference set)"
        )
    if isinstance(references, (list, tuple)) and _may_be_sets(entries):
        warnings.warn(
            f"references were read as {len(rows)} rows; sacreBLEU nests them the other way round, as "
            f"sets, of which there would be {len(rows)} too: rows of sets are list(zip(*references)), "
            "and rows that are tuples are not asked about",
            stacklevel=3,
        )
    for row, texts in enumerate(rows):
        if not isinstance(texts, (list, tuple, np.ndarray)):
            raise InputTypeError(
                f"expected a string or a list of strings, got {describe(texts)}",
                argument="references",
                row=row,
            )
        if len(texts) == 0:
            raise InputError(
                "no reference; give at least one or drop the row", argument="references", row=row
            )
        for text in texts:
            if not isinstance(text, str):
                raise InputTypeError(
                    f"expected strings, got {describe(text)}; {_remedy(text, 'it')}",
                    argument="references",
                    row=row,
                )
    return outputs, [tuple(map(str, row)) for row in rows]


def tokenizable(
    texts: Iterable[str],  # N texts
    name: str = "texts",  # what to call them in an error
) -> list[str]:  # N texts that any tokenizer accepts; a lone surrogate became "?"
    """Texts made safe for a model's tokenizer. Raises: InputTypeError naming the row that is not a string."""
    return [text.encode("utf-8", "replace").decode("utf-8") for text in check_texts(texts, name)]


def check_number(
    value: float,
    name: str,  # what the caller calls it
    low: float = -math.inf,  # smallest value that is allowed
    high: float = math.inf,  # largest value that is allowed
    *,
    whole: bool = False,  # only whole numbers
    above: bool = False,  # `low` itself is not allowed
    below: bool = False,  # `high` itself is not allowed
) -> None:
    """Raise an InputTypeError for what is no number, an InputError for one outside its range."""
    is_kind = type(value) is int or (
        isinstance(value, Integral if whole else Real) and not isinstance(value, (bool, np.bool_))
    )
    if (
        is_kind
        and (value > low if above else value >= low)
        and (value < high if below else value <= high)
    ):
        return
    requirement = "a whole number" if whole else "a number"
    if low > -math.inf:
        requirement += f" {'above' if above else 'of at least'} {low if whole else f'{low:g}'}"
    if high < math.inf:
        requirement += (
            f"{' and' if low > -math.inf else ''} {'below' if below else 'at most'} "
            f"{high if whole else f'{high:g}'}"
        )
    if not is_kind:
        raise InputTypeError(f"must be {requirement}, got {describe(value)}", argument=name)
    raise InputError(f"must be {requirement}, got {value!r}", argument=name)


def check_choice(
    value: str,
    name: str,  # what the caller calls it
    choices: Iterable[str],  # the names that are allowed
) -> None:
    """Raise an InputError unless a name is one of those that are known."""
    choices = list(choices)
    if not isinstance(value, str) or value not in choices:
        raise InputError(f"must be one of {', '.join(choices)}; got {value!r}", argument=name)


def check_flag(
    value: bool,
    name: str,  # what the caller calls it
) -> None:
    """Raise an InputTypeError unless a value is True or False: the text "no" would count as true."""
    if not isinstance(value, (bool, np.bool_)):
        raise InputTypeError(f"must be True or False, got {describe(value)}", argument=name)


def check_model(
    value: Any,  # a model, or the name or folder of one; None: the evaluation's
    name: str,  # what the caller calls it
) -> None:
    """Raise an InputTypeError for what is neither a model, which has a `tag`, nor the name of one."""
    named = isinstance(value, str) and value.strip()
    # looked up without being asked for: a tag is a checksum of all weights
    is_model = inspect.getattr_static(value, "tag", None) is not None
    if value is not None and not named and not is_model:
        raise InputTypeError(
            f"must be the name of a model, a folder or a model, got {describe(value)}",
            argument=name,
        )


TOLERANCE = 1e-4
_BLOCK = 65536  # how far the sum of a row may be from 1; rows checked at a time


def check_table(
    values,  # (N, C) numbers, or (C,) for a single row
    name: str,  # what the caller calls it
) -> np.ndarray:  # (N, C) floats
    """An array of one row a distribution, whose values are not looked at yet. Raises: InputError naming the odd row."""
    try:
        array = np.atleast_2d(np.asarray(values, dtype=float))
    except (TypeError, ValueError):
        raise _odd_row(values, name) from None
    if array.ndim != 2 or array.shape[1] < 2:
        raise InputError(
            f"must have shape (N, C) with at least two classes, got {array.shape}", argument=name
        )
    return array


def check_tables(
    **sides,  # two or more tables, each under the name that errors should use
) -> list[np.ndarray]:
    """`check_table` for each, and an InputError unless all have one shape."""
    tables = {name: check_table(values, name) for name, values in sides.items()}
    if len({table.shape for table in tables.values()}) > 1:
        raise InputError(
            ", ".join(f"{name} has shape {table.shape}" for name, table in tables.items())
            + "; they must be equal"
        )
    return list(tables.values())


def _odd_row(values, name: str) -> InputError:
    """The first row that keeps `values` from being a table of numbers, and why."""
    if not isinstance(values, Iterable) or isinstance(values, (str, Mapping)):
        return InputError(f"must be a table of numbers, got {describe(values)}", argument=name)
    first = None
    for row, entry in enumerate(values):
        try:
            shape = np.shape(np.asarray(entry, dtype=float))
        except (TypeError, ValueError):
            return InputError("not a row of numbers", argument=name, row=row)
        first = shape if row == 0 else first
        if shape != first:
            return InputError(
                f"its shape is {shape}, but that of row 0 is {first}", argument=name, row=row
            )
    return InputError("the rows do not form a table", argument=name)


def check_distributions(
    block: np.ndarray,  # (N, C) floats
    name: str,  # what the caller calls the table
    start: int = 0,  # row number of the block's first row
) -> None:
    """Raise an InputError for the first row that is no distribution."""
    if not len(block):
        return
    sums = reduce(np.add, block.T)  # several times as fast as a sum along short rows
    if block.min() >= 0 and sums.min() >= 1 - TOLERANCE and sums.max() <= 1 + TOLERANCE:
        return
    unknown = (~np.isfinite(block)).any(axis=1)
    negative = (block < 0).any(axis=1)
    place = int((unknown | negative | (np.abs(sums - 1) > TOLERANCE)).argmax())
    what = (
        "a value that is not a finite number"
        if unknown[place]
        else "a negative probability"
        if negative[place]
        else f"the probabilities sum to {sums[place]:.6g}, not to 1"
    )
    raise InputError(what, argument=name, row=start + place)


def checked_blocks(
    **sides: np.ndarray,  # tables of one shape, each under the name that errors should use
):  # yields slices of _BLOCK rows
    """Slices of rows, each yielded once its rows in all tables are known to be distributions."""
    for start in range(0, len(next(iter(sides.values()))), _BLOCK):
        rows = slice(start, start + _BLOCK)
        for name, side in sides.items():
            check_distributions(side[rows], name, start)
        yield rows
