"""What should be known of a table before its scores are believed: repeated rows, empty outputs, cut texts"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations

import numpy as np
import pandas as pd

from ..core.checks import InputError
from ..core.metric import INPUTS, Metric, Note
from .outputs import (
    SOURCE_KEY,
    as_frame,
    checked_pairs,
    is_blank,
    reformed_rows,
    with_sources,
)


def told_rows(
    rows: Sequence[int],  # counted from 0
    most: int = 5,  # how many are named
) -> str:
    """Row numbers in words, here and in a spreadsheet with a header."""
    named = list(map(int, rows[:most]))
    more = f" and {len(rows) - len(named):,} more" if len(rows) > len(named) else ""
    here, there = (", ".join(str(row + by) for row in named) for by in (0, 2))
    return f"row{'s' if len(rows) > 1 else ''} {here}{more} ({there}{more} in a spreadsheet)"


_Places = Mapping[str, Sequence[int]]  # file -> rows in it; files without any are left out


def _places_in_words(places: _Places) -> str:
    """Rows in words, with the name of their file where there are several."""
    if len(places) == 1:
        return told_rows(*places.values())
    texts = [f"{file}, {told_rows(rows)}" for file, rows in places.items()]
    return "; ".join(texts[:3]) + (f"; and {len(texts) - 3} more files" if len(texts) > 3 else "")


def _for_programs(places: _Places) -> list[int] | dict[str, list[int]]:
    """At most a thousand rows of each file; a list where there is no more than one file."""
    lists = {file: [int(row) for row in rows[:1000]] for file, rows in places.items()}
    return lists if len(lists) > 1 else next(iter(lists.values()), [])


def cut_notes(
    heading: str,  # of the metric
    cut: Mapping[str, Mapping[int, int]],  # file -> row -> tokens at which one of its texts was cut
    n: int,  # rows that were scored
) -> tuple[Note, ...]:  # none, or one
    """What has to be known of texts that were longer than a model can read."""
    places = {file: sorted(rows) for file, rows in cut.items() if rows}
    if not places:
        return ()
    total = sum(map(len, places.values()))
    limits = sorted({limit for rows in cut.values() for limit in rows.values()})
    text = (
        f"{heading}: {total:,} of {n:,} rows hold{'s' * (total == 1)} a text that was cut at "
        f"{' or '.join(map(str, limits))} tokens, the most that its model reads: {_places_in_words(places)}."
    )
    return (Note(text, True, {"rows": _for_programs(places), "n": total, "tokens": limits}),)


def unknown_notes(
    heading: str,  # of the metric
    unknown: Mapping[str, Mapping[int, int]],  # file -> row -> unknown tokens of one of its texts
    n: int,  # rows that were scored
) -> tuple[Note, ...]:  # none, or one
    """What has to be known of texts with words or characters that a model does not know."""
    places = {file: sorted(rows) for file, rows in unknown.items() if rows}
    if not places:
        return ()
    total = sum(map(len, places.values()))
    text = (
        f"{heading}: {total:,} of {n:,} rows hold{'s' * (total == 1)} words or characters that its model does not know and "
        f"reads all alike; a text of which it reads nothing has no score: {_places_in_words(places)}."
    )
    return (Note(text, True, {"rows": _for_programs(places), "n": total}),)


@dataclass(frozen=True)
class TakenRows:
    """The rows of a table that are to be scored."""

    table: pd.DataFrame  # the checked table
    blank: np.ndarray  # (N,) whether the output is empty, and counts as the worst
    places: np.ndarray  # (N,) which row of what was given
    how: str = "fail"  # what is done about outputs without a text
    # system -> rows of what was given without a text
    empty: Mapping[str, list[int]] = field(default_factory=dict)
    references_as: str | None = None  # the system that the references make up; None: there is none
    reformed: Sequence[int] = ()  # rows of what was given, see `reformed_rows`
    answers: bool = False  # whether it says what was answered and not what was rewritten

    def only(
        self,
        rows: Sequence[int],  # of the table
    ) -> "TakenRows":
        """Some of the rows."""
        return replace(
            self,
            table=self.table.iloc[rows].reset_index(drop=True),
            blank=self.blank[rows],
            places=self.places[rows],
        )

    def moved(
        self,
        places: np.ndarray,  # of what was given, in something larger
    ) -> "TakenRows":
        """The same rows with their places in something larger."""
        return replace(
            self,
            places=places[self.places],
            reformed=[int(places[row]) for row in self.reformed],
            empty={
                system: [int(places[row]) for row in rows] for system, rows in self.empty.items()
            },
        )

    def placed(
        self,
        error: InputError,  # perhaps about a row of the table
    ) -> InputError:
        """An error about a row of the table as one about the row that was given."""
        return error if error.row is None else error.at(row=self.places[error.row])

    def with_references(
        self,
        name: str,  # of a system that the table lacks
    ) -> "TakenRows":
        """The rows, and the first reference of each source as the output of one system more; its own references are
        the others, where there are any.

        Raises: InputError for a source without a reference, or a name that a system has.
        """
        if (self.table.system == name).any():
            raise InputError(
                f"there is a system called {name!r} already; choose another name",
                argument="references_as",
            )
        if not self.table.references.map(len).all():
            raise InputError(
                "there is no column reference, so nothing can be scored as the references' system",
                argument="references_as",
            )
        key = [name for name in SOURCE_KEY if name in self.table]
        rows = np.flatnonzero(~self.table.duplicated(key))
        own = self.table.iloc[rows].assign(
            system=name, output=lambda table: table.references.str[0]
        )
        own["references"] = [texts[1:] or texts for texts in own.references]
        return replace(
            self,
            table=pd.concat([self.table, own], ignore_index=True),
            references_as=name,
            blank=np.append(self.blank, np.zeros(len(rows), dtype=bool)),
            places=np.append(self.places, self.places[rows]),
        )


def take_rows(
    pairs,  # see `prepare_pairs`; with our names of the columns
    target_style: str = "neutral",  # where the table does not say
    empty: str = "fail",  # fail | skip | zero: what to do about outputs without a text
    # the name of a system that the references make up; None: none
    references_as: str | None = None,
    # which say whether the rows need a source; None: they do
    metrics: Iterable[Metric] | None = None,
) -> TakenRows:
    """Check a table of pairs, and say which of its rows are scored. Raises: as `prepare_pairs`, `with_references`,
    `with_sources`."""
    frame = as_frame(pairs)
    blank = np.zeros(len(frame), dtype=bool)
    if empty != "fail" and list(frame.columns).count("output") == 1:
        blank = np.array([is_blank(cell) for cell in frame["output"]], dtype=bool)
    if blank.any():
        cells = frame["output"].astype(object).to_numpy(copy=True)
        cells[blank] = "-"
        frame = frame.assign(output=cells)
    table = checked_pairs(frame if metrics is None else with_sources(frame, metrics), target_style)
    table["output"] = table["output"].mask(blank, "")
    by_system = pd.Series(np.flatnonzero(blank)).groupby(table.system[blank].to_numpy(), sort=False)
    empty_rows = {str(name): rows.tolist() for name, rows in by_system}
    taken = TakenRows(
        table,
        blank,
        np.arange(len(table)),
        empty,
        empty_rows,
        reformed=reformed_rows(frame),
        answers="source" not in frame and not set(INPUTS).isdisjoint(frame.columns),
    )
    if empty == "skip":
        taken = taken.only(np.flatnonzero(~blank))
    return taken if references_as is None else taken.with_references(references_as)


def column_notes(
    told: str,  # from `told_columns`
) -> tuple[Note, ...]:  # none, or one
    """What has to be known of columns that are called as other programs call them."""
    return (Note(f"{told}."),) if told else ()


def form_notes(
    reformed: Mapping[str, Sequence[int]],  # file -> rows, see `reformed_rows`
) -> tuple[Note, ...]:  # none, or one
    """What has to be known of texts that were brought into one form."""
    places = {file: sorted(rows) for file, rows in reformed.items() if rows}
    if not places:
        return ()
    total = sum(map(len, places.values()))
    text = (
        f"{total:,} row{'s' * (total != 1)} held what nobody sees, such as no-break spaces, byte order marks or "
        f"letters with their accents apart, and {'is' if total == 1 else 'are'} scored in one form without it: "
        f"{_places_in_words(places)}."
    )
    return (Note(text, figures={"rows": _for_programs(places), "n": total}),)


def blank_notes(
    how: str,  # skip | zero: what was done
    empty: Mapping[str, Mapping[str, Sequence[int]]],  # file -> system -> rows without a text
) -> tuple[Note, ...]:  # none, or one
    """What has to be known of outputs without a text."""
    counts: Counter[str] = Counter()
    places = {}
    for file, systems in empty.items():
        counts.update({system: len(rows) for system, rows in systems.items()})
        if rows := sorted(row for rows in systems.values() for row in rows):
            places[file] = rows
    if not places:
        return ()
    done = (
        "left out, so that the scores are those of the other outputs"
        if how == "skip"
        else "counted as the worst score that there is"
    )
    numbers = ", ".join(f"{n:,} of {name}" for name, n in counts.items())
    text = f"Outputs without a text: {numbers}; {done}: {_places_in_words(places)}."
    figures = {"empty": how, "rows": _for_programs(places), "n": dict(counts)}
    return (Note(text, True, figures),)


def wrapped_systems(
    systems: Iterable[str],  # N systems
    asked: Iterable[str],  # N texts that were answered
    outputs: Iterable[str],  # N answers
) -> tuple[str, str] | None:  # the longer and the shorter one; None: no such two
    """Two systems of which one says what the other says with more around it, word for word, in most of what both
    answer."""
    words = [" ".join(["", *re.findall(r"\w+", text.lower()), ""]) for text in outputs]
    table = pd.DataFrame({"system": systems, "asked": asked, "words": words})
    table = table.drop_duplicates(["system", "asked"]).pivot(
        index="asked", columns="system", values="words"
    )
    for longer, shorter in permutations(table.columns, 2):
        both = table[[longer, shorter]].dropna()
        holds = [b != a and b in a for a, b in zip(both[longer], both[shorter])]
        if sum(holds) > len(both) / 2:
            return str(longer), str(shorter)
    return None


def repeat_notes(
    table: pd.DataFrame,  # the checked table
    places: np.ndarray,  # (N,) which row of what was given
) -> tuple[Note, ...]:  # none, or one
    """What has to be known of rows that stand in a table twice."""
    key = [name for name in SOURCE_KEY if name in table]
    repeated = np.flatnonzero(table.duplicated(["system", *key, "output"]))
    if not len(repeated):
        return ()
    one = len(repeated) == 1
    rows = places[repeated]
    text = (
        f"{len(rows):,} of {len(table):,} rows repeat{'s' * one} another row of the same system, word for word: "
        f"{told_rows(rows)}. A source counts once, however often it stands there."
    )
    return (Note(text, figures={"rows": rows[:1000].tolist(), "n": len(rows)}),)


def _reference_notes(taken: TakenRows) -> tuple[Note, ...]:
    """What has to be known of a system that the references make up."""
    if taken.references_as is None:
        return ()
    own = taken.table[taken.table.system == taken.references_as]
    alone = sum(row.output in row.references for row in own.itertuples())
    text = f"{taken.references_as} is the first reference of each source, scored as a system"
    if alone:
        text += (
            f"; in {alone:,} of {len(own):,} rows it is compared with itself, so what compares with a reference "
            f"says nothing of it"
        )
    return (Note(f"{text}.", figures={"n": len(own), "with itself": alone}),)


def data_notes(
    taken: TakenRows,
) -> tuple[Note, ...]:
    """What has to be known of the rows, whatever the metrics say of them."""
    return (
        *blank_notes(taken.how, {"": taken.empty}),
        *form_notes({"": taken.reformed}),
        *repeat_notes(taken.table, taken.places),
        *_reference_notes(taken),
    )
