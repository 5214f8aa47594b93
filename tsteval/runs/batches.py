"""One batch of a table read, checked and scored wherever there is a worker, and written as a part"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..core.checks import InputError
from ..core.metric import Metric
from ..core.version import __version__
from ..models.roles import Models
from ..tables.blocks import Batch, numbered_batches
from ..tables.data_check import TakenRows, take_rows
from ..tables.formats import FileError
from .parts import Parts, write_part
from .scoring import Scored, joined, needed_columns, score_rows
from .settings import Settings


@dataclass(frozen=True)
class BatchPlan:
    """What is done with every batch of a table."""

    table: str  # a file or a folder
    folder: str  # of the parts, the same for all workers
    batch_rows: int
    columns: Mapping[str, str]  # our name -> that in the table, of those that are read
    metrics: tuple[Metric, ...]
    settings: Settings
    input: str  # SHA-256 of the table

    def made_from(
        self,
        models: Models,
    ) -> dict[str, Any]:
        """All that the scores follow from, as JSON holds it; the models are loaded for it."""
        none = take_rows([{"source": "a", "output": "b"}]).only([]).table
        signatures = {}
        for metric in self.metrics:
            own = needed_columns(metric, none)
            both = metric.sign(own, models), metric.sign_row(own, models)
            signatures[metric.name] = "; ".join(filter(None, both))
        return {
            "tsteval": __version__,
            "input": self.input,
            "batch_rows": self.batch_rows,
            "target_style": self.settings.target_style,
            "empty": self.settings.empty,
            "metrics": signatures,
        }


_REMEMBER = 2**14  # rows a model; a vector of a sentence takes 3 kB, so this is some 50 MB


class BatchScorer:
    """Makes the part of a batch. Models are loaded once, at the first."""

    def __init__(self, plan: BatchPlan):
        self.plan = plan
        self.tick: Callable[[int], Any] = int  # told of rows of the batch that are done
        self.models = plan.settings.cast(remember=_REMEMBER)
        self.parts = Parts(Path(plan.folder))
        self._made_from: dict[str, Any] = {}
        self._batches: Iterator[Batch] = iter(())
        self._next = 0  # the number of the batch that comes next

    @property
    def made_from(self) -> dict[str, Any]:
        """See `BatchPlan.made_from`."""
        self._made_from = self._made_from or self.plan.made_from(self.models)
        return self._made_from

    def __call__(
        self,
        number: int,  # of a batch; the faster the more they come in order
    ) -> None:
        """Score a batch and write its part. Raises: InputError that names file and row; AssetError, OSError."""
        batch = self._read(number)
        record = {"made_from": self.made_from, "file": batch.file.name, "rows": len(batch)}
        taken, scored, refused = self._score(batch)
        scores = scored.scores
        record |= {
            "places": _ranges(taken.places),
            "skipped": [[batch.file.name, place, reason] for place, reason in sorted(refused)],
            "empty": taken.empty,
            "reformed": [*taken.reformed],
            "cut": _placed(scored.cut, taken.places),
            "unknown": _placed(scored.unknown, taken.places),
            "notes": {
                name: [asdict(note) for note in metric_scores.notes]
                for name, metric_scores in scores.items()
                if metric_scores.notes
            },
            "models": self.models.used,
        }
        rows = joined(taken.table, self.plan.metrics, scores)
        sums = {name: metric_scores.sums for name, metric_scores in scores.items()}
        write_part(self.parts.path(number), rows, sums, record)

    def _read(self, number: int) -> Batch:
        if number < self._next or not self._next:
            plan = self.plan
            self._batches = numbered_batches(plan.table, plan.batch_rows, [*plan.columns.values()])
        for batch in self._batches:
            self._next = batch.number + 1
            if batch.number == number:
                return batch
        raise FileError(f"{self.plan.table} was changed while it was read")

    def _score(self, batch: Batch) -> tuple[TakenRows, Scored, list[tuple[int, str]]]:
        """The rows that are taken, their scores, and those that are left out, each with the reason."""
        skip = self.plan.settings.on_error == "skip"
        try:
            if skip:
                frame, places, refused = batch.readable()
            else:
                frame, refused = batch.frame(), []
                places = np.arange(batch.first_row, batch.first_row + len(batch))
        except FileError as error:
            raise error.at(file=batch.file.name) from error
        columns = self.plan.columns
        frame = frame.reindex(columns=[*columns.values()]).set_axis([*columns], axis=1)
        while True:
            taken = None
            try:
                taken = self._taken(frame, places)
                return taken, self._scored(taken), refused
            except InputError as error:
                row_places = (
                    places if taken is None else taken.places
                )  # rows without a text were left out
                place = None if error.row is None else int(row_places[error.row])
                located_error = error if place is None else error.at(row=place)
                if not skip or place is None:
                    raise located_error.at(file=batch.file.name) from error
                refused.append((place, str(located_error)))
                frame = frame[places != place].reset_index(drop=True)
                places = places[places != place]

    def _taken(self, frame: pd.DataFrame, places: np.ndarray) -> TakenRows:
        if not len(frame):
            return take_rows([{"source": "a", "output": "b"}]).only([])
        settings = self.plan.settings
        taken = take_rows(frame, settings.target_style, settings.empty, metrics=self.plan.metrics)
        return taken.moved(places)

    def _scored(self, taken: TakenRows) -> Scored:
        cache = self.plan.settings.score_cache
        return score_rows(taken, self.plan.metrics, self.models, cache, self.tick)


def _placed(unread: Mapping[str, Mapping[int, int]], places: np.ndarray) -> dict:
    """Metric -> row of the file -> number, for the metrics with such rows."""
    return {
        name: {str(places[row]): number for row, number in rows.items()}
        for name, rows in unread.items()
        if rows
    }


def _ranges(places: np.ndarray) -> list[list[int]]:
    """Rising numbers as ranges: the first of each, and the one after its last."""
    ends = np.flatnonzero(np.diff(places) != 1)
    firsts = places[np.r_[0, ends + 1]] if len(places) else []
    lasts = places[np.r_[ends, -1]] if len(places) else []
    return [[int(first), int(last) + 1] for first, last in zip(firsts, lasts)]
