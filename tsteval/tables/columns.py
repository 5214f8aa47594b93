"""Which column of a table plays which part: by our name for it, by a name that other programs give, or as somebody says"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches

import pandas as pd

from ..core.checks import InputError
from ..core.display import enumerated, printable
from .formats import PAIR_COLUMNS, REFERENCE_COLUMN, FileError

# part -> what other programs call it. A name that may be one thing or another, such as text or src, which is a text of
# another language where a translation is meant, is no part of it
_OTHER_NAMES = {
    "system": (
        "systems",
        "system_name",
        "model",
        "model_name",
        "bot",
        "chatbot",
        "assistant",
        "agent",
    ),
    "source": ("sources", "source_text", "original", "original_text"),
    "output": (
        *("outputs", "output_text", "model_output", "system_output", "generated", "generation"),
        *("generated_text", "answer", "answers", "response", "responses", "reply", "completion"),
        *("completions", "prediction", "predictions", "hypothesis", "hypotheses", "hyp", "hyps"),
        *("candidate", "candidates", "mt", "translation", "translations", "summary", "summaries"),
        *("rewrite", "rewrites", "paraphrase"),
    ),
    "target_style": ("style_target",),
    "input": ("inputs",),
    "question": ("questions", "query", "queries", "prompt", "prompts", "instruction", "user_input"),
    "context": (
        *("contexts", "passage", "passages", "document", "documents", "article", "articles"),
        *("retrieved_context", "retrieved_contexts", "evidence"),
    ),
    "reference": (
        *("target", "targets", "target_text", "label", "labels", "gold", "gold_answer", "expected"),
        *("expected_output", "ground_truth", "ground_truths", "ideal", "reference_answer"),
    ),
}
PARTS = {name: part for part, names in _OTHER_NAMES.items() for name in (part, *names)}


def _plain(name: object) -> str:
    return re.sub(r"[\s.-]+", "_", str(name).strip().lower())


_REFS = re.compile(r"refs?(_?\d+)?")


def part_of(
    name: object,  # of a column
) -> str:  # of PAIR_COLUMNS, reference, or empty for a column that is not read
    """The part that a column's name stands for."""
    return "reference" if _is_numbered(name) else PARTS.get(_plain(name), "")


def quoted(
    names: Iterable[object],  # of columns
) -> str:
    """Names in a sentence."""
    shown = [f"`{printable(str(name), 60)}`" for name in names]
    return enumerated(shown)


def listed(
    names: Sequence[object],  # of columns
) -> str:
    """The columns that are there, for the end of an error; of a wide table the first ones."""
    shown = ", ".join(printable(str(name), 60) for name in names[:20])
    more = f" and {len(names) - 20:,} more" if len(names) > 20 else ""
    return f"the columns are {shown}{more}"


class MissingColumn(InputError):
    """A part that no column plays."""

    def __init__(
        self,
        message: str,  # what is missing, and who needs it
        part: str = "",  # of PAIR_COLUMNS, or reference
        present: Sequence[object] = (),  # the columns that are there
        remedy: str = "",  # what to do; empty: to call a column like the part
        **place,
    ):
        super().__init__(message, **place)
        self.part = part
        self.present = list(present)
        self.remedy = remedy

    def __str__(self) -> str:
        remedy = self.remedy or f"call one of them {self.part}"
        return f"{super().__str__()}; {remedy}; {listed(self.present)}"

    def at(self, **place) -> "MissingColumn":
        """As of any `InputError`, with what is known of the columns."""
        copy = super().at(**place)
        copy.part, copy.present, copy.remedy = self.part, self.present, self.remedy
        return copy


def rename_it(
    part: str,  # of PAIR_COLUMNS, or reference
) -> str:
    """What to do about an unclear column of a table that is already in memory."""
    return f"call one of them {part}"


def doubtful(
    names: Iterable[object],  # of columns
) -> list:
    """Those that may mean a reference or the class of a classifier, such as label."""
    return [
        name
        for name in dict.fromkeys(names)
        if part_of(name) == "reference" and not _is_numbered(name)
    ]


def classes(
    frame: pd.DataFrame,  # some of the rows at least
) -> list:  # names of columns
    """The doubtful columns whose cells are no sentences: the classes of a classifier, or numbers."""
    names = list(frame.columns)
    return [
        name
        for name in doubtful(names)
        if not any(len(str(cell).split()) > 1 for cell in frame.iloc[:, names.index(name)])
    ]


def find_columns(
    present: Sequence[object],  # the names of a table's columns
    chosen: Mapping[str, Sequence[str]] | None = None,  # part -> the columns that somebody named
    remedy: Callable[[str], str] = rename_it,  # what to do about a part that is unclear
    passed: Collection = (),  # columns that are read only if they are named, see `classes`
) -> dict[str, list]:  # part -> its column; of reference and output perhaps several
    """The columns that are read. One with our name goes before others. Raises: FileError where two columns may play one
    part, or are called alike; MissingColumn for a named one that is not there."""
    present = list(present)
    found = {
        part: _checked(names, part, present, remedy)
        for part, names in (chosen or {}).items()
        if names
    }
    taken = {*passed, *(name for names in found.values() for name in names)}
    free = [name for name in present if name not in taken]
    for part in (*PAIR_COLUMNS, "reference"):
        if part not in found and (names := _by_name(part, free)):
            several = part == "reference" and all(map(_is_numbered, names))
            found[part] = names if several else [_only(names, part, present, remedy)]
    return found


def _checked(
    names: Sequence[str], part: str, present: list, remedy: Callable[[str], str]
) -> list[str]:
    """The columns that somebody named. Raises: as `find_columns`."""
    for name in names:
        if name not in present:
            raise MissingColumn(
                f"there is no column {printable(name, 60)}", part, present, remedy(part)
            )
        _only([column for column in present if column == name], part, present, remedy)
    if len(set(names)) < len(names):
        raise FileError(
            f"the column {names[0]} is named twice; {remedy(part)}, each once; {listed(present)}"
        )
    return list(names)


def _by_name(part: str, free: list) -> list:
    """The columns whose names stand for a part: by ours, else by what other programs call it."""
    named = [name for name in free if part_of(name) == part]
    for holds in (lambda name: _is_ours(name, part), _is_numbered):
        if own := [name for name in named if holds(name)]:
            return own
    return named


def _is_numbered(name: object) -> bool:
    """Whether a column may be one of several references."""
    plain = _plain(name)
    return bool(REFERENCE_COLUMN.fullmatch(plain) or _REFS.fullmatch(plain))


def _is_ours(name: object, part: str) -> bool:
    plain = _plain(name)
    return bool(REFERENCE_COLUMN.fullmatch(plain)) if part == "reference" else plain == part


def _only(names: list, part: str, present: list, remedy: Callable[[str], str]):
    """The one column that plays a part. Raises: FileError for several."""
    if len(set(names)) < len(names):
        raise FileError(f"there is more than one column {names[0]}; rename or drop all but one")
    if len(names) > 1:
        raise FileError(
            f"{quoted(names)} may each be the {part}; {remedy(part)}; {listed(present)}"
        )
    return names[0]


def our_names(
    found: Mapping[str, Sequence],  # from `find_columns`, with one output
) -> dict[str, object]:  # our name -> that in the table
    """How the columns that are read are called here."""
    names = {part: columns[0] for part, columns in found.items() if part != "reference"}
    references = found.get("reference", ())
    if all(REFERENCE_COLUMN.fullmatch(str(name)) for name in references):
        return names | {name: name for name in references}
    numbered = {f"reference_{number}": name for number, name in enumerate(references, 1)}
    return names | (numbered if len(references) > 1 else {"reference": references[0]})


def told_columns(
    found: Mapping[str, Sequence],  # from `find_columns`
    present: Sequence[object],  # the names of all columns
) -> str:  # empty: all that is read is called as it is here
    """Which columns were read as what, where a name is not ours, and which were passed over, such as ratings; before
    all, one that was passed over and may be a misspelt name of ours."""
    wanted = [part for part in (*PAIR_COLUMNS, "reference") if part not in found]
    misspelt = {
        name: near[0]
        for name in present
        if not part_of(name) and (near := get_close_matches(_plain(name), wanted, 1, 0.8))
    }
    if misspelt:
        asked = [f"{quoted([name])} (did you mean {part}?)" for name, part in misspelt.items()]
        return f"not read: {enumerated(asked)}"
    other = [
        f"{quoted(names)} as {part}" + ", a system each" * (part == "output" and len(names) > 1)
        for part, names in found.items()
        if not all(_is_ours(name, part) and name == str(name).strip().lower() for name in names)
    ]
    read = [name for names in found.values() for name in names]
    passed = [name for name in present if name not in read]
    told = [f"read {', '.join(other)}"] * bool(other)
    return "; ".join(told + [f"not read: {quoted(passed[:10])}"] * bool(passed))


def with_our_names(
    frame: pd.DataFrame,  # as it was given
) -> tuple[pd.DataFrame, str]:  # with our names for the columns that are read, and what is told
    """A table in memory whose columns may be called as other programs call them. Raises: as `find_columns`."""
    found = find_columns(list(frame.columns), passed=classes(frame))
    told = told_columns(found, list(frame.columns))
    ours = {theirs: name for name, theirs in our_names(found).items() if name != theirs}
    return (frame.rename(columns=ours) if ours else frame), told
