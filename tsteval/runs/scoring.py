"""Rows are scored in pieces, through the store where there is one, and what must be known of the scores is noted"""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..core.checks import InputError, InputTypeError, describe
from ..core.metric import INPUTS, Metric, Note, Scores, find_metric
from ..models.base import UNREAD, collected_unread
from ..models.roles import Models
from ..tables.columns import MissingColumn
from ..tables.data_check import TakenRows, cut_notes, unknown_notes
from .store import Layout, Store, row_keys

_PIECE = 256  # rows that are scored at once


def chosen_metrics(
    # names, perhaps with options, addresses module:Class, classes, or metrics
    metrics: Iterable[str | type[Metric] | Metric],
) -> list[Metric]:  # each once, in the order asked for
    """The metrics that are meant. Raises: InputError for none, an unknown one, or two that write the same column."""
    if isinstance(metrics, (str, Metric)):
        raise InputError(
            f"metrics must be a list such as [{metrics!r:.40}], got one; put it into a list"
        )
    if not isinstance(metrics, Iterable):
        raise InputTypeError(
            f"metrics must be a list such as ['bleu', 'sti'], got {describe(metrics)}; leave it out "
            f"for the default ones"
        )
    chosen = []
    for metric in map(find_metric, metrics):
        if not any(
            metric is other or (metric == other and not metric.unsigned) for other in chosen
        ):
            chosen.append(metric)
    if not chosen:
        raise InputError("choose at least one metric")
    names = [metric.name for metric in chosen]
    columns = [column for metric in chosen for column in metric.columns]
    for kind, values in (("are called", names), ("write a column called", columns)):
        if repeated := [value for value in values if values.count(value) > 1]:
            raise InputError(f"two of the metrics {kind} {repeated[0]}; leave one of them out")
    return chosen


def check_references(
    metrics: Iterable[Metric],
    references: bool,  # whether every row has a reference
    present: Iterable[object] = (),  # the columns that are there
) -> None:
    """Raise a MissingColumn for a metric that compares with references where there are none."""
    for metric in metrics:
        if "references" in metric.needed and not references:
            other = f"take {metric.name}:against=source or " * ("against" in metric.options())
            raise MissingColumn(
                f"{metric.name} compares with references, and there is no column reference; "
                f"{other}leave {metric.name} out of the metrics, or add one",
                "reference",
                list(present),
            )


def check_by_row(
    metrics: Iterable[Metric],
) -> None:
    """Raise an InputError unless every metric scores a row from that row alone."""
    for metric in metrics:
        if not metric.by_row:
            raise InputError(
                f"{metric.name} does not promise that a row's score follows from that row alone "
                f"(by_row), so it cannot be made block by block; "
                "leave it out, choose other options for it, or score the whole table with evaluate"
            )


def check_baseline(
    baseline: str | None,  # the system that reports compare the others with; None: the first
    systems: Iterable[str],  # of the rows
) -> None:
    """Raise an InputError for a baseline that is none of the systems."""
    names = list(dict.fromkeys(systems))
    if baseline is not None and baseline not in names:
        raise InputError(
            f"there is no system called {baseline!r}; the systems are {', '.join(names)}",
            argument="baseline",
        )


def row_kinds(
    rows: pd.DataFrame,  # checked rows
) -> pd.DataFrame:
    """The first row of each kind on which a signature can depend: its number of references, its style, whether it has
    an input."""
    kinds = pd.DataFrame(
        {
            "references": rows.references.map(len),
            "style": rows.target_style,
            **{name: rows[name].str.strip() != "" for name in INPUTS if name in rows},
        }
    )
    return rows[~kinds.duplicated()]


def with_roles(
    metric: Metric,
    rows: pd.DataFrame,
) -> pd.DataFrame:
    """All columns. Where a table tells a question and a context not apart, its input stands for what the metric needs
    of the two."""
    lacking = {name for name in INPUTS if name in metric.needed and name not in rows}
    return rows.assign(**{name: rows.input for name in lacking if "input" in rows})


def needed_columns(
    metric: Metric,
    rows: pd.DataFrame,
) -> pd.DataFrame:
    """The columns that a metric declares, and no others; see `with_roles`."""
    rows = with_roles(metric, rows)
    return rows[[name for name in rows if name in metric.needed]]


def signed(
    metric: Metric,
    scores: Scores,
    rows: pd.DataFrame,  # the rows that were scored, or one of each kind
    models: Models,
) -> Scores:
    """The scores with what someone else needs to repeat them."""
    kinds = needed_columns(metric, row_kinds(rows))
    return replace(
        scores,
        signature=scores.signature or metric.sign(kinds, models),
        row_signature=scores.row_signature or metric.sign_row(kinds, models),
        headings=scores.headings or metric.titles(kinds),
    )


def _unread_numbers(
    rows: pd.DataFrame,
    unread: Mapping[str, Mapping[tuple[str, ...], int]],  # from `collected_unread`
) -> np.ndarray:  # (N, 2)
    """For each row the tokens at which one of its texts was cut, and the unknown tokens of one; 0: there are none."""
    numbers = np.zeros((len(rows), len(UNREAD)))
    names = [name for name in ("source", "output", *INPUTS) if name in rows]
    references = rows.references if "references" in rows else [()] * len(rows)
    for column, (kind, choose) in enumerate(zip(UNREAD, (min, max))):
        alone = {texts[0]: number for texts, number in unread[kind].items() if len(texts) == 1}
        pairs = {texts: number for texts, number in unread[kind].items() if len(texts) > 1}
        if not unread[kind]:
            continue
        for row, cells in enumerate(zip(*(rows[name] for name in names), references)):
            held = {*cells[:-1], *cells[-1]}
            own = [alone[text] for text in held if text in alone]
            own += [number for texts, number in pairs.items() if held.issuperset(texts)]
            numbers[row, column] = choose(own, default=0)
    return numbers


def _pieces(sources: Sequence[str]) -> Iterator[np.ndarray]:
    """All rows in pieces, those of equal sources beside each other."""
    order = np.argsort(pd.factorize(np.asarray(sources, dtype=object))[0], kind="stable")
    for start in range(0, len(order) or 1, _PIECE):
        yield order[start : start + _PIECE]


def _checked(metric: Metric, scores: Any, n: int) -> Scores:
    """The scores with a frame whose rows are numbered like those of the table. Raises: InputError for what is no
    `Scores`, or has other rows."""
    if not isinstance(scores, Scores):
        raise InputError(
            f"metric {metric.name}: score gave a {type(scores).__name__}; return Scores(frame), a frame "
            f"with the columns {', '.join(metric.columns)}"
        )
    frame = scores.frame
    if len(frame) != n or (scores.sums is not None and len(scores.sums) != n):
        raise InputError(
            f"metric {metric.name}: it wrote {len(frame)} rows for a table of {n}; write one for each"
        )
    if missing := [column for column in metric.columns if column not in frame]:
        raise InputError(
            f"metric {metric.name}: its frame lacks the column {missing[0]} that it promised"
        )
    numbers = pd.RangeIndex(n)
    if frame.index.equals(numbers):
        return scores
    if not frame.index.is_unique or set(frame.index) != set(numbers):
        raise InputError(
            f"metric {metric.name}: the index of its frame is not that of the table, which counts the "
            f"rows from 0; build the frame with index=rows.index"
        )
    if scores.sums is not None:
        raise InputError(
            f"metric {metric.name}: its frame has the rows in another order, and its sums have no "
            f"index to follow it; write both in the order of the table"
        )
    return replace(scores, frame=frame.reindex(numbers))


def score_once(
    metric: Metric,
    rows: pd.DataFrame,  # N checked rows
    models: Models,
) -> tuple[Scores, np.ndarray]:  # the scores, and (N, 2) what was not read, see `_unread_numbers`
    """What a metric says of some rows. Raises: InputError that names the row by its label in the table's index."""
    table = rows.reset_index(drop=True)
    needed = needed_columns(metric, table)
    with collected_unread() as unread:
        try:
            scores = metric.score(needed.copy(), models)
        except InputError as error:
            if error.row is not None and error.row < len(rows):
                raise error.at(row=rows.index[error.row]) from error
            raise
        except (AttributeError, KeyError) as error:
            name = getattr(error, "name", None) or (error.args and error.args[0])
            if name in table and name not in metric.needed:
                raise InputError(
                    f"metric {metric.name}: it reads the column {name}, which its needs do not name"
                ) from error
            raise
    return _checked(metric, scores, len(rows)), _unread_numbers(needed, unread)


def _stored_scores(
    metric: Metric, rows: pd.DataFrame, models: Models, store: Store, signature: str
) -> tuple[Scores, np.ndarray]:
    """The same through the store: what it lacks is made and put there. The models are those that the signature names.
    Raises: InputError for a metric that asks for another one."""
    keys = row_keys(signature, needed_columns(metric, rows))
    layout = store.layout(signature)
    entries = store.get(dict.fromkeys(keys), layout.width) if layout else {}
    missing = {key: place for place, key in reversed([*enumerate(keys)]) if key not in entries}
    if missing:
        asked = models.counted_anew()
        scores, unread = score_once(metric, rows.iloc[sorted(missing.values())], asked)
        if unsigned := [name for name in asked.used if name not in models.used]:
            raise InputError(
                f"metric {metric.name}: it scores with the model {unsigned[0]}, which its settings do not name; "
                "add the model's tag to them, or let the metric have no version"
            )
        if layout is None:
            layout = Layout.of(metric, scores)
            store.keep_layout(signature, layout)
        made = dict(zip(sorted(missing, key=missing.__getitem__), layout.numbers(scores, unread)))
        store.put(made)
        entries |= made
    return layout.scores(np.array([entries[key] for key in keys]))


@dataclass(frozen=True)
class Scored:
    """What metrics said of the rows of a table."""

    scores: dict[str, Scores]  # metric -> what it said
    cut: dict[str, dict[int, int]]  # metric -> row -> tokens at which one of its texts was cut
    unknown: dict[str, dict[int, int]]  # metric -> row -> unknown tokens of one of its texts


class _Collected:
    """The scores of one metric, piece by piece."""

    def __init__(self, metric: Metric, table: pd.DataFrame, models: Models, store: Store | None):
        self.metric = metric
        self.table = table
        self.models = models
        self.store = store if metric.storable and not metric.own_store else None
        self.signature = ""
        self.signed_models = models
        self.pieces: list[tuple[np.ndarray, Scores]] = []
        self.unread = np.zeros((len(table), len(UNREAD)))

    def add(self, places: np.ndarray) -> None:
        """Score some rows of the table."""
        rows = self.table.iloc[places]
        if self.store is None or not len(rows):
            scores, unread = score_once(self.metric, rows, self.models)
        else:
            if not self.signature:
                none = needed_columns(self.metric, rows.iloc[:0])
                self.signed_models = self.models.counted_anew()
                signature = self.metric.sign(none, self.signed_models)
                self.signature = f"{self.metric.store_signature}|{signature}"
                self.models.used |= self.signed_models.used
            scores, unread = _stored_scores(
                self.metric, rows, self.signed_models, self.store, self.signature
            )
        self.pieces.append((places, scores))
        self.unread[places] = unread

    def unread_rows(self, kind: str) -> dict[int, int]:
        """Row -> what of it was not read, for the rows of which something was not."""
        numbers = self.unread[:, UNREAD.index(kind)]
        return {int(row): int(numbers[row]) for row in np.flatnonzero(numbers)}

    def scores(self) -> Scores:
        """All pieces put together, in the order of the table."""
        order = np.argsort(np.concatenate([places for places, _ in self.pieces]), kind="stable")
        frames = [scores.frame for _, scores in self.pieces]
        sums = [scores.sums for _, scores in self.pieces if scores.sums is not None]
        notes: dict[Note, None] = {}
        for _, scores in self.pieces:
            notes |= dict.fromkeys(scores.notes)
        first = self.pieces[0][1]
        whole = replace(
            first,
            frame=pd.concat(frames, ignore_index=True).iloc[order].set_axis(self.table.index),
            sums=np.concatenate(sums)[order] if sums else None,
            notes=tuple(notes),
        )
        return signed(self.metric, whole, self.table, self.models)


def score_table_rows(
    table: pd.DataFrame,  # checked rows, from `prepare_pairs`
    metrics: Iterable[Metric],
    models: Models,
    store: Path | str | Store | None = None,  # keeps what was scored; None: nothing is kept
    tick: Callable[[int], Any] = lambda rows: None,  # told of rows that are done
) -> Scored:
    """Score checked rows. Raises: InputError as the metrics do, or if the store cannot be used."""
    opened = Store(store) if isinstance(store, (str, Path)) else contextlib.nullcontext(store)
    with opened as base:
        works = [_Collected(metric, table, models, base) for metric in metrics]
        for work in works:
            if not work.metric.by_row:
                work.add(np.arange(len(table)))
        for places in _pieces(table.source):
            for work in works:
                if work.metric.by_row:
                    work.add(places)
            tick(len(places))
        return Scored(
            {work.metric.name: work.scores() for work in works},
            *({work.metric.name: work.unread_rows(kind) for work in works} for kind in UNREAD),
        )


def worst_score(metric: Metric) -> float:
    """The worst score that a metric can give; NaN where no end of its scale is good. Raises: InputError where that end
    of the scale is open."""
    if metric.better == "neither":
        return float("nan")
    low, high = metric.range or (-np.inf, np.inf)
    worst = low if metric.better == "higher" else high
    if not np.isfinite(worst):
        raise InputError(
            f"'zero' gives an output without a text the worst score that there is, and {metric.name} "
            f"has none; take 'skip', or leave {metric.name} out",
            argument="empty",
        )
    return float(worst)


def _with_worst(
    metric: Metric,
    scores: Scores,  # of the rows that have a text
    blank: np.ndarray,  # (N,) which rows have none
    rows: pd.DataFrame,  # these rows
    models: Models,
) -> Scores:  # of all rows
    """The scores with rows for outputs without a text, which count as the worst."""
    frame = scores.frame.set_axis(np.flatnonzero(~blank)).reindex(range(len(blank)))
    frame.loc[blank, [*metric.columns]] = worst_score(metric)
    sums = scores.sums
    if sums is not None:
        try:
            bare = score_once(metric, rows, models)[0].sums
        except InputError as error:
            raise InputError(
                f"'zero' cannot be counted by {metric.name}, which is made of sums over rows and "
                f"refuses an output without a text; take 'skip', or leave {metric.name} out",
                argument="empty",
            ) from error
        sums = np.zeros((len(blank), sums.shape[1]))
        sums[~blank] = scores.sums
        sums[blank] = bare
    return replace(scores, frame=frame, sums=sums)


def score_rows(
    taken: TakenRows,
    metrics: Iterable[Metric],
    models: Models,
    store: Path | str | Store | None = None,  # as `score_table_rows`
    tick: Callable[[int], Any] = lambda rows: None,  # likewise
) -> Scored:
    """Score the rows that are taken; those without a text count as the worst. Raises: as `score_table_rows`, and as
    `worst_score`."""
    metrics = list(metrics)
    blank = taken.blank
    if not blank.any():
        return score_table_rows(taken.table, metrics, models, store, tick)
    for metric in metrics:
        worst_score(metric)
    full = np.flatnonzero(~blank)
    try:
        scored = score_table_rows(taken.only(full).table, metrics, models, store, tick)
    except InputError as error:
        if error.row is None:
            raise
        raise error.at(row=int(full[error.row])) from error
    scores = {}
    for metric in metrics:
        own = scored.scores[metric.name]
        scores[metric.name] = _with_worst(metric, own, blank, taken.table[blank], models)
    cut, unknown = (
        {
            name: {int(full[row]): number for row, number in rows.items()}
            for name, rows in unread.items()
        }
        for unread in (scored.cut, scored.unknown)
    )
    return Scored(scores, cut, unknown)


def score_whole(
    taken: TakenRows,
    metrics: Iterable[Metric],
    models: Models,
    store: Path | str | None = None,  # as `score_table_rows`
    tick: Callable[[int], Any] = lambda rows: None,  # likewise
) -> dict[str, Scores]:  # metric -> what it said of the rows, and of the table as a whole
    """Score a table in memory. Raises: as `score_table_rows`, with the row of what was given."""
    metrics = list(metrics)
    if not len(taken.table):
        raise InputError("every output is empty; there is nothing to score", column="output")
    try:
        scored = score_rows(taken, metrics, models, store, tick)
    except InputError as error:
        raise taken.placed(error) from error
    full = taken.table[~taken.blank].reset_index(drop=True)
    scores = {}
    for metric in metrics:
        own = scored.scores[metric.name]
        heading = metric.heading(metric.columns[0], own)
        cut, unknown = (
            {"": {int(taken.places[row]): number for row, number in rows.items()}}
            for rows in (scored.cut[metric.name], scored.unknown[metric.name])
        )
        n = len(taken.table)
        notes = (*cut_notes(heading, cut, n), *unknown_notes(heading, unknown, n))
        with collected_unread():  # told already
            review = metric.review(with_roles(metric, full), models)
        unstored = _unstored_note(metric) if store is not None else ()
        scores[metric.name] = replace(own, notes=(*own.notes, *notes, *review, *unstored))
    return scores


def _unstored_note(metric: Metric) -> tuple[Note, ...]:
    """That the store keeps nothing of a metric, and why."""
    if metric.storable or metric.own_store or not metric.by_row:
        return ()
    if metric.version is None:
        why = "its class declares no version"
    elif metric.unsigned:
        why = f"{metric.unsigned[0]} is no field of its dataclass"
    else:
        why = "one of its options is a function or object without a version"
    return (Note(f"{metric.heading(metric.columns[0])}: not kept in the cache, since {why}"),)


def joined(
    table: pd.DataFrame,  # the checked table
    metrics: Iterable[Metric],
    scores: Mapping[str, Scores],  # metric -> what it said
) -> pd.DataFrame:  # N rows, one an output
    """The table with all that the metrics wrote."""
    frames = [(metric, scores[metric.name].frame) for metric in metrics]
    own = {column: frame[column] for metric, frame in frames for column in metric.columns}
    extra = {
        column: frame[column]
        for _, frame in frames
        for column in frame
        if column not in own and column not in table
    }
    return pd.concat([table, pd.DataFrame(own | extra, index=table.index)], axis=1)
