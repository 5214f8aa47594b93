"""What was asked for is checked, then scored in pieces, and what must be known of the scores is noted"""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..core.checks import InputError, InputTypeError, describe
from ..core.metric import Metric, Scores, find_metric
from ..models.base import collected_cuts
from ..models.roles import Models
from ..tables.data_check import TakenRows, cut_notes
from .row_store import KeptRows, RowStore, may_be_kept, stands_alone


def chosen_metrics(
    metrics: Iterable[str | Metric],  # names, addresses module:name, or metrics
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
    chosen = list({metric.name: metric for metric in map(find_metric, metrics)}.values())
    if not chosen:
        raise InputError("choose at least one metric")
    columns = [column for metric in chosen for column in metric.columns]
    if repeated := [column for column in columns if columns.count(column) > 1]:
        raise InputError(
            f"two of the metrics write a column called {repeated[0]}; leave one of them out"
        )
    return chosen


def checked_options(
    options: Mapping[str, Mapping[str, Any]],  # metric -> its options
    chosen: list[Metric],
    table: pd.DataFrame,  # the checked table, perhaps without rows
    references: bool | None = None,  # whether every row has a reference; None: as the table has it
) -> dict[str, dict[str, Any]]:  # for each chosen metric
    """The options of each metric; whatever can be found wrong before a model is loaded is found here. Raises:
    InputError."""
    names = [metric.name for metric in chosen]
    there = table.references.map(len).all() if references is None else references
    if idle := [name for name in options if name not in names]:
        raise InputError(
            f"there are options for {idle[0]}, which is not among the metrics {', '.join(names)}"
        )
    for metric in chosen:
        if "references" in metric.needed(options.get(metric.name, {})) and not there:
            other = f"set {metric.name}.against to source, " if "against" in metric.options else ""
            raise InputError(
                f"{metric.name} compares with references, and there is no column reference; "
                f"add one, {other}or leave {metric.name} out of the metrics"
            )
        metric.check_options(table, options.get(metric.name, {}))
    return {name: dict(options.get(name, {})) for name in names}


def check_baseline(
    baseline: str | None,  # the system that reports compare the others with; None: the first
    systems: Iterable[str],  # of the rows
) -> None:
    """Raise an InputError for a baseline that is none of the systems."""
    known = list(dict.fromkeys(systems))
    if baseline is not None and baseline not in known:
        raise InputError(
            f"there is no system called {baseline!r}; the systems are {', '.join(known)}",
            argument="baseline",
        )


def _where_cut(
    table: pd.DataFrame, cuts: Iterable[tuple[int, list[tuple[str, ...]]]]
) -> np.ndarray:
    """For each row the tokens at which one of its texts was cut; 0: none was."""
    found = np.zeros(len(table))
    limits = {texts: limit for limit, rows in cuts for texts in rows}
    if not limits:
        return found
    names = [name for name in ("source", "output", "input") if name in table]
    for place, cells in enumerate(zip(*(table[name] for name in names), table.references)):
        known = {*cells[:-1], *cells[-1]}
        found[place] = min(
            (limit for texts, limit in limits.items() if known.issuperset(texts)), default=0
        )
    return found


_PIECE = 256  # rows


def _pieces(sources: Sequence[str], size: int = _PIECE) -> Iterator[np.ndarray]:
    """All rows in pieces, those of equal sources beside each other."""
    first = pd.factorize(np.asarray(sources, dtype=object))[0]
    order = np.argsort(first, kind="stable")
    for start in range(0, len(order) or 1, size):
        yield order[start : start + size]


def witnesses(
    table: pd.DataFrame,  # the checked table
) -> pd.DataFrame:
    """The first row of each kind on which a signature can depend: its number of references, its style."""
    kinds = pd.DataFrame({"references": table.references.map(len), "style": table.target_style})
    return table[~kinds.duplicated()]


def _aligned(metric: Metric, scores: Scores, n: int) -> Scores:
    """The scores with a frame whose rows are numbered like those of the table. Raises: InputError for other rows."""
    frame = scores.frame
    numbers = pd.RangeIndex(n)
    if len(frame) != n or (scores.statistics is not None and len(scores.statistics) != n):
        raise InputError(
            f"metric {metric.name}: it wrote {len(frame)} rows for a table of {n}; write one for each"
        )
    if missing := [column for column in metric.columns if column not in frame]:
        raise InputError(
            f"metric {metric.name}: its frame lacks the column {missing[0]} that it promised"
        )
    if frame.index.equals(numbers):
        return scores
    if not frame.index.is_unique or set(frame.index) != set(numbers):
        raise InputError(
            f"metric {metric.name}: the index of its frame is not that of the table, which counts the "
            f"rows "
            f"from 0; build the frame with index=table.index"
        )
    if scores.statistics is not None:
        raise InputError(
            f"metric {metric.name}: its frame has the rows in another order, and its statistics have no "
            f"index to follow it; write both in the order of the table"
        )
    return replace(scores, frame=frame.reindex(numbers))


def _as_scores(metric: Metric, found: Any) -> Scores:
    if isinstance(found, Scores):
        return found
    raise InputError(
        f"metric {metric.name}: its function gave a {type(found).__name__}; return Scores(frame), a frame "
        f"with the columns {', '.join(metric.columns)}"
    )


class _Work:
    """One metric on one table, piece by piece."""

    def __init__(
        self,
        metric: Metric,
        options: Mapping[str, Any],
        table: pd.DataFrame,
        models: Models,
        store: RowStore | None,
    ):
        self.metric = metric
        self.options = options
        self.table = table
        self.models = models
        self.store = store
        self.found: list[
            tuple[np.ndarray, pd.DataFrame, np.ndarray | None]
        ] = []  # rows, columns, statistics
        self.cut = np.zeros(len(table))
        self.notes = {}
        self.said = []
        self.kept = None
        if store is not None and may_be_kept(metric, options):
            self.said = [self.score(witnesses(table))[0]]
            self.kept = KeptRows(
                metric, options, metric.score(table.iloc[:0], models, **options), self.said[0]
            )

    def score(self, rows: pd.DataFrame) -> tuple[Scores, np.ndarray]:
        """What the metric says of some rows, and where their texts were cut."""
        asked = rows.reset_index(drop=True)
        with collected_cuts() as cuts:
            try:
                scores = _as_scores(
                    self.metric, self.metric.score(asked, self.models, **self.options)
                )
            except InputError as error:
                if error.row is not None and error.row < len(rows):
                    raise error.at(row=rows.index[error.row]) from error
                if len(rows) < len(self.table):
                    self.metric.score(self.table, self.models, **self.options)
                raise
        return _aligned(self.metric, scores, len(rows)), _where_cut(asked, cuts)

    def fill(self, places: np.ndarray) -> None:
        """The scores of some rows, found or made."""
        rows = self.table.iloc[places]
        if self.kept:
            frame, statistics, cut = self.kept.scores(self._numbers(rows))
        else:
            scores, cut = self.score(rows)
            self.said.append(replace(scores, frame=scores.frame.iloc[:0], statistics=None))
            self.notes |= dict.fromkeys(scores.notes)
            frame = scores.frame
            statistics = scores.statistics
        self.found.append((places, frame, statistics))
        self.cut[places] = cut

    def _numbers(self, rows: pd.DataFrame) -> np.ndarray:
        """(N, width) numbers of some rows; what the store does not know is made and put there."""
        keys = self.kept.keys(rows)
        known = self.store.get(dict.fromkeys(keys), self.kept.width)
        missing = {key: place for place, key in reversed([*enumerate(keys)]) if key not in known}
        if missing:
            made = self.kept.numbers(*self.score(rows.iloc[sorted(missing.values())]))
            fresh = dict(zip(sorted(missing, key=missing.__getitem__), made))
            self.store.put(fresh)
            known |= fresh
        return np.array([known[key] for key in keys])

    def scores(self) -> Scores:
        """All pieces put together."""
        order = np.argsort(np.concatenate([places for places, *_ in self.found]), kind="stable")
        frame = pd.concat([frame for _, frame, _ in self.found], ignore_index=True).iloc[order]
        sums = [statistics for *_, statistics in self.found if statistics is not None]
        said = (
            self.said[0]
            if len({(one.signature, one.row_signature, one.headings) for one in self.said}) == 1
            else self.score(witnesses(self.table))[0]
        )
        return replace(
            said,
            frame=frame.set_axis(self.table.index),
            notes=tuple(self.notes),
            statistics=np.concatenate(sums)[order] if sums else None,
        )


@dataclass(frozen=True)
class Scored:
    """What metrics said of the rows of a table."""

    scores: dict[str, Scores]  # metric -> what it said
    cut: dict[str, dict[int, int]]  # metric -> row -> tokens at which one of its texts was cut


def score_metrics(
    table: pd.DataFrame,  # the checked table, from `prepare_pairs`
    chosen: Iterable[Metric],
    options: Mapping[str, dict],  # metric -> its options
    models: Models,
    store: Path | str | None = None,  # a file that keeps what was scored; None: nothing is kept
    tick: Callable[[int], Any] = lambda rows: (
        None
    ),  # told of rows that are done; in the end, of as many as there are
) -> Scored:
    """Score a table. Raises: InputError as the metrics do, or if the store cannot be used."""
    with (
        contextlib.closing(RowStore(store))
        if store is not None
        else contextlib.nullcontext() as kept
    ):
        works = [_Work(metric, options[metric.name], table, models, kept) for metric in chosen]
        apart = [work for work in works if not stands_alone(work.metric, work.options)]
        for work in apart:
            work.fill(np.arange(len(table)))
        for piece in _pieces(table.source):
            for work in works:
                if work not in apart:
                    work.fill(piece)
            tick(len(piece))
        return Scored(
            {work.metric.name: work.scores() for work in works},
            {
                work.metric.name: {int(row): int(work.cut[row]) for row in np.flatnonzero(work.cut)}
                for work in works
            },
        )


def _with_zeros(
    metric: Metric,
    scores: Scores,  # of the rows that have a text
    blank: np.ndarray,  # (N,) which rows have none
    bare: Scores
    | None = None,  # what the metric says of the rows without a text; None: it refuses them
) -> Scores:  # of all rows
    """The scores with rows for outputs without a text, which count as zero."""
    frame = scores.frame.set_axis(np.flatnonzero(~blank)).reindex(range(len(blank)))
    frame.loc[blank, [*metric.columns]] = 0.0 if metric.better == "higher" else np.nan
    statistics = scores.statistics
    if statistics is not None:
        statistics = np.zeros((len(blank), statistics.shape[1]))
        statistics[~blank] = scores.statistics
        if bare is not None and bare.statistics is not None:
            statistics[blank] = bare.statistics
    return Scores(
        frame,
        statistics,
        scores.signature,
        scores.row_signature,
        scores.aggregate,
        scores.headings,
        scores.notes,
    )


def _bare(
    metric: Metric, table: pd.DataFrame, models: Models, options: Mapping[str, Any]
) -> Scores | None:
    """What a metric says of outputs without a text, if it can say anything."""
    try:
        return _as_scores(metric, metric.score(table.reset_index(drop=True), models, **options))
    except InputError:
        return None


def score_taken(
    taken: TakenRows,
    chosen: Iterable[Metric],
    options: Mapping[str, dict],  # metric -> its options
    models: Models,
    store: Path | str | None = None,  # as `score_metrics`
    tick: Callable[[int], Any] = lambda rows: None,  # likewise
) -> Scored:
    """Score the rows that are taken; those without a text count as zero. Raises: as `score_metrics`."""
    chosen = list(chosen)
    blank = taken.blank
    if not blank.any():
        return score_metrics(taken.table, chosen, options, models, store, tick)
    full = np.flatnonzero(~blank)
    try:
        found = score_metrics(taken.only(full).table, chosen, options, models, store, tick)
    except InputError as error:
        if error.row is None:
            raise
        raise error.at(row=int(full[error.row])) from error
    scores = {
        metric.name: _with_zeros(
            metric,
            found.scores[metric.name],
            blank,
            None
            if found.scores[metric.name].statistics is None
            else _bare(metric, taken.table[blank], models, options[metric.name]),
        )
        for metric in chosen
    }
    return Scored(
        scores,
        {
            name: {int(full[row]): tokens for row, tokens in rows.items()}
            for name, rows in found.cut.items()
        },
    )


def score_whole(
    taken: TakenRows,
    chosen: Iterable[Metric],
    options: Mapping[str, dict],  # metric -> its options
    models: Models,
    store: Path | str | None = None,  # as `score_metrics`
    tick: Callable[[int], Any] = lambda rows: None,  # likewise
) -> dict[str, Scores]:  # metric -> what it said of the rows, and of the table as a whole
    """Score a table in memory. Raises: as `score_metrics`, with the row of what was given."""
    if not len(taken.table):
        raise InputError("every output is empty; there is nothing to score", column="output")
    try:
        found = score_taken(taken, chosen, options, models, store, tick)
    except InputError as error:
        raise taken.placed(error) from error
    full = taken.table[~taken.blank].reset_index(drop=True)
    scores = {}
    for metric in chosen:
        said = found.scores[metric.name]
        cut = {int(taken.places[row]): tokens for row, tokens in found.cut[metric.name].items()}
        notes = cut_notes(metric.heading(metric.columns[0], said), {"": cut}, len(taken.table))
        with collected_cuts():  # told already
            scores[metric.name] = metric.reviewed(
                replace(said, notes=(*said.notes, *notes)), full, models, options[metric.name]
            )
    return scores


def joined(
    table: pd.DataFrame,  # the checked table
    chosen: list[Metric],
    scores: Mapping[str, Scores],  # metric -> what it said
) -> pd.DataFrame:  # N rows, one an output
    """The table with all that the metrics wrote."""
    own = {
        column: scores[metric.name].frame[column] for metric in chosen for column in metric.columns
    }
    extra = {
        column: frame[column]
        for frame in (scores[metric.name].frame for metric in chosen)
        for column in frame
        if column not in own and column not in table
    }
    return pd.concat([table, pd.DataFrame(own | extra, index=table.index)], axis=1)
