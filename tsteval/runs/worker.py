"""One block read, checked and scored wherever there is a worker, and written as a part"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..core.assets import AssetError
from ..core.checks import InputError
from ..core.metric import Metric
from ..models.roles import Models
from ..tables.blocks import Block, BlockReader, read_rows
from ..tables.data_check import TakenRows, take_rows
from ..tables.formats import FileError
from .parts import (
    Basis,
    SourceHash,
    as_npy,
    as_parquet,
    join_columns,
    part_name,
    sealed,
    write_part,
)
from .scoring import Scored, joined, needed_columns, row_kinds, score_rows
from .settings import Settings


@dataclass(frozen=True)
class RunPlan:
    """What is done with every block."""

    folder: str  # of the parts, the same for all workers
    run: str  # which run the parts belong to
    metrics: tuple[Metric, ...]
    settings: Settings

    @property
    def skip(self) -> bool:
        """Whether rows that are refused are left out, instead of stopping."""
        return self.settings.on_error == "skip"


@dataclass(frozen=True)
class Trouble:
    """Why a block was not scored."""

    kind: str  # input | asset | system
    message: str
    place: Mapping[str, Any] = field(default_factory=dict)  # where in the input


@dataclass(frozen=True)
class Outcome:
    """What became of a block."""

    number: int
    record: dict[str, Any] | None = None  # the part's, see `ScoreBlock`
    basis: Mapping[str, Basis] | None = None  # metric -> what it says without any row
    trouble: Trouble | None = None


_REMEMBER = 2**14  # rows a model; a vector of a sentence takes 3 kB, so this is some 50 MB


def plan_models(
    plan: RunPlan,
) -> Models:
    """The models of a worker, none of them loaded."""
    return plan.settings.cast(remember=_REMEMBER)


def find_basis(
    plan: RunPlan,
    models: Models,
) -> dict[str, Basis]:  # metric -> what it says without any row
    """What each metric says without any row; its models are loaded for it. Raises: InputError, AssetError."""
    rows = _no_rows().table
    basis = {}
    for metric in plan.metrics:
        none = needed_columns(metric, rows)
        sums = metric.score(none, models).sums
        width = 0 if sums is None else sums.shape[1]
        basis[metric.name] = Basis(metric.sign(none, models), metric.sign_row(none, models), width)
    return basis


class _Rows:
    """The rows of a block on their way to a checked table; `places` are their numbers in the file."""

    def __init__(self, block: Block, plan: RunPlan):
        self.block = block
        self.plan = plan
        self.refused = []
        self.name = Path(block.path).name

    def _taken(self, frame: pd.DataFrame) -> TakenRows:
        if not len(frame):
            return _no_rows()
        return take_rows(
            frame,
            self.plan.settings.target_style,
            self.plan.settings.empty,
            metrics=self.plan.metrics,
        )

    def read(self, reader: BlockReader) -> TakenRows:
        """The checked rows that are taken. Raises: InputError for a row that is refused, unless it is to be skipped."""
        places = np.arange(self.block.first_row, self.block.first_row + self.block.n_rows)
        try:
            frame = reader.read(self.block)
        except FileError as error:
            if not self.plan.skip or self.block.kind in ("parquet", "arrow"):
                raise error.at(file=self.name) from error
            frame, places = self._readable()
        try:
            return self._taken(frame).moved(places)
        except InputError as error:
            if not self.plan.skip:
                raise self.placed(error, places) from error
        kept = [row for row in range(len(frame)) if self._is_fine(frame.iloc[[row]], places[row])]
        return self._taken(frame.iloc[kept].reset_index(drop=True)).moved(places[kept])

    def _readable(self) -> tuple[pd.DataFrame, np.ndarray]:
        """The rows that can be read one by one, and their places."""
        rows = dict(read_rows(self.block))
        self.refused += [
            (row, str(found)) for row, found in rows.items() if isinstance(found, FileError)
        ]
        rows = {row: found for row, found in rows.items() if not isinstance(found, FileError)}
        return pd.concat(rows.values(), ignore_index=True) if rows else pd.DataFrame(), np.array(
            [*rows], dtype=int
        )

    def _is_fine(self, row: pd.DataFrame, place: int) -> bool:
        try:
            self._taken(row)
        except InputError as error:
            self.refused.append((int(place), str(_at(error, [place]))))
        else:
            return True
        return False

    def placed(self, error: InputError, places: np.ndarray) -> InputError:
        """An error about a row of the block as one about the row of the file."""
        return _at(error, places).at(file=self.name)


def _no_rows() -> TakenRows:
    return take_rows([{"source": "a", "output": "b"}]).only([])


def _at(error: InputError, places) -> InputError:
    return (
        error
        if error.row is None or error.row >= len(places)
        else error.at(row=int(places[error.row]))
    )


_Score = Callable[[TakenRows], Scored]


def _score_rows(taken: TakenRows, score: _Score) -> tuple[Scored, TakenRows, dict[int, InputError]]:
    """Scores of the rows that are not refused, these rows, and why the others are refused (number in the table ->
    error)."""
    refused: dict[int, InputError] = {}
    while True:
        left = [row for row in range(len(taken.table)) if row not in refused]
        try:
            return score(taken.only(left)), taken.only(left), refused
        except InputError as error:
            named = [left[error.row]] if error.row is not None and error.row < len(left) else []
            guilty = _refused_among(taken, named, score) or _refused_among(taken, left, score)
            if not guilty:
                raise  # the rows are refused only together
            refused |= guilty


def _refused_among(taken: TakenRows, rows: list[int], score: _Score) -> dict[int, InputError]:
    if not rows:
        return {}
    try:
        score(taken.only(rows))
    except InputError as error:
        if len(rows) == 1:
            return {rows[0]: error}
        middle = len(rows) // 2
        return _refused_among(taken, rows[:middle], score) | _refused_among(
            taken, rows[middle:], score
        )
    return {}


class ScoreBlock:
    """Makes the part of a block. A worker builds one and gives it block after block; models are loaded once, at the
    first."""

    def __init__(
        self,
        plan: RunPlan,
        tick: Callable[[int], Any] = lambda rows: None,  # told of rows of the block that are done
    ):
        self.plan, self.tick, self._reader, self._models = (
            plan,
            tick,
            BlockReader(),
            plan_models(plan),
        )
        self._basis: dict[str, Basis] | None = None

    def __call__(
        self,
        block: Block,
    ) -> Outcome:
        """Score a block and write its part; what is wrong with it is said in the outcome."""
        try:
            if self._basis is None:
                self._basis = find_basis(self.plan, self._models)
            return Outcome(block.number, self._part(block), self._basis)
        except AssetError as error:
            return Outcome(block.number, trouble=Trouble("asset", str(error)))
        except InputError as error:
            place = {
                name: getattr(error, name) for name in ("argument", "file", "row", "column", "line")
            }
            return Outcome(block.number, trouble=Trouble("input", str(error.args[0]), place))
        except OSError as error:
            return Outcome(
                block.number,
                trouble=Trouble(
                    "system", f"{error.filename or block.path}: {error.strerror or error}"
                ),
            )

    def _part(self, block: Block) -> dict[str, Any]:
        rows = _Rows(block, self.plan)
        taken = rows.read(self._reader)
        if self.plan.skip:
            scored, kept, refused = _score_rows(taken, self._score)
            rows.refused += [
                (int(taken.places[row]), str(_at(error, [taken.places[row]])))
                for row, error in refused.items()
            ]
            return self._write(block, kept, scored, sorted(rows.refused))
        try:
            return self._write(block, taken, self._score(taken), [])
        except InputError as error:
            raise rows.placed(error, taken.places) from error

    def _score(self, taken: TakenRows) -> Scored:
        return score_rows(
            taken,
            self.plan.metrics,
            self._models,
            self.plan.settings.score_cache,
            self.tick,
        )

    def _write(
        self, block: Block, taken: TakenRows, scored: Scored, refused: list
    ) -> dict[str, Any]:
        folder = Path(self.plan.folder)
        table = taken.table
        scores = scored.scores
        statistics = join_columns(self.plan.metrics, scores)
        names = list(dict.fromkeys(table.system))
        which = (
            pd.Index(names, dtype=object).get_indexer(table.system)
            if names
            else np.zeros(0, dtype=int)
        )
        files = {
            "parquet": as_parquet(joined(table, list(self.plan.metrics), scores)),
            "npy": as_npy(which, statistics),
        }
        hashes = {
            kind: write_part(folder / part_name(block.number, kind), data)
            for kind, data in files.items()
        }
        systems = {
            name: {
                "n": int((which == number).sum()),
                "sums": statistics[:, which == number].sum(axis=1).tolist(),
                "sources": f"{SourceHash.of(table.source[which == number]).value:x}",
            }
            for number, name in enumerate(names)
        }
        record = {
            "run": self.plan.run,
            "number": block.number,
            "file": Path(block.path).name,
            "rows": block.n_rows,
            "n": len(table),
            "places": _ranges(taken.places),
            "systems": systems,
            "files": hashes,
            "skipped": [[Path(block.path).name, place, reason] for place, reason in refused],
            "empty": taken.empty,
            "cut": _cut(taken, scored),
            "witnesses": row_kinds(table).to_dict("records"),
            "facts": {
                name: [said.signature, said.row_signature, said.headings]
                for name, said in scores.items()
            },
            "models": self._models.used,
        }
        write_part(folder / part_name(block.number, "json"), sealed(record))
        return json.loads(json.dumps(record))


def _cut(taken: TakenRows, scored: Scored) -> dict[str, dict[str, int]]:
    """Metric -> place of a row in the file -> tokens at which one of its texts was cut."""
    return {
        name: {str(taken.places[row]): tokens for row, tokens in rows.items()}
        for name, rows in scored.cut.items()
        if rows
    }


def _ranges(places: np.ndarray) -> list[list[int]]:
    """Rising numbers as ranges: the first of each, and the one after its last."""
    ends = np.flatnonzero(np.diff(places) != 1)
    firsts = places[np.r_[0, ends + 1]] if len(places) else []
    lasts = places[np.r_[ends, -1]] if len(places) else []
    return [[int(first), int(last) + 1] for first, last in zip(firsts, lasts)]
