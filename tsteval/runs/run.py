"""A table on disk scored batch by batch in a folder: begun, gone on with, and read back"""

import contextlib
import json
import os
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..core.checks import InputError, InputTypeError, describe
from ..core.files import locked
from ..core.metric import Metric, Note, digest
from ..core.progress import Progress, counted, tell
from ..models.roles import Models
from ..tables.blocks import Survey, survey_table, table_sha256
from ..tables.columns import MissingColumn, our_names, told_columns
from ..tables.data_check import blank_notes, column_notes, form_notes, take_rows
from ..tables.formats import REFERENCE_COLUMN, FileError
from .batches import BatchPlan, BatchScorer
from .defaults import asks_for_style, default_metrics, style_notes
from .parts import Parts, refuse_changes
from .scoring import (
    check_by_row,
    check_references,
    chosen_metrics,
)
from .settings import Settings


@contextlib.contextmanager
def run_folder(
    output: Path | str,
) -> Iterator[Path]:
    """A folder for a run, made if it is not there, and kept from other processes. Raises: InputError."""
    folder = Path(output)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise InputError(f"{folder} is a file; name a folder for the results") from None
    except OSError as error:
        raise InputError(
            f"{folder}: the folder cannot be made ({error.strerror or error})"
        ) from error
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(locked(folder / ".lock", wait=False))
        except BlockingIOError as error:
            raise InputError(
                f"{folder} is being written by another process "
                f"({str(error.strerror).removeprefix('held by ')}); wait for it, or name another "
                f"folder"
            ) from error
        yield folder


EXACT_ROWS = 50_000  # up to here every interval is that of `evaluate`


@dataclass(frozen=True)
class FinishedRun:
    """A run whose parts are all there."""

    folder: Path
    parts: Parts
    records: Mapping[int, Mapping[str, Any]] = field(repr=False)  # part -> its record
    metrics: list[Metric]
    settings: Settings
    survey: Survey = field(repr=False)  # of the table
    made_from: Mapping[str, Any] = field(repr=False)  # see `BatchPlan.made_from`
    models: Models = field(repr=False)
    n_outputs: int  # rows that were scored
    style_notes: tuple[Note, ...] = ()  # see `defaults.style_notes`

    @property
    def name(self) -> str:
        """What ties results to this run."""
        return digest(json.dumps(self.made_from, sort_keys=True))

    @property
    def skipped(self) -> list[list]:
        """The rows that were left out: file, row (in the file, counted from 0), reason."""
        return [entry for record in self.records.values() for entry in record["skipped"]]

    def by_file(
        self,
        of: Callable[[Mapping], Mapping],  # what of a part's record
    ) -> dict[str, dict]:
        """What the records of each file hold under the same names, put together."""
        files: dict[str, dict] = {}
        for record in self.records.values():
            own = files.setdefault(record["file"], {})
            for name, entry in of(record).items():
                own[name] = [*own.get(name, []), *entry] if isinstance(entry, list) else entry
        return {file: own for file, own in files.items() if own}

    def unread(
        self,
        metric: Metric,
        kind: str,  # cut | unknown
    ) -> dict[str, dict[int, int]]:
        """File -> row -> tokens at which one of its texts was cut, or its unknown tokens."""
        return self.by_file(
            lambda record: {
                int(row): number
                for row, number in record.get(kind, {}).get(metric.name, {}).items()
            }
        )

    def notes(self, metric: Metric) -> tuple[Note, ...]:
        """What the metric noted as it scored, each note once."""
        entries = [
            entry
            for record in self.records.values()
            for entry in record["notes"].get(metric.name, ())
        ]
        return tuple(dict.fromkeys(Note(**entry) for entry in entries))

    def text_notes(self) -> tuple[Note, ...]:
        """What has to be known of outputs without a text, and of texts that were brought into one form."""
        files = self.by_file(lambda record: {"rows": record.get("reformed", [])})
        return (
            *column_notes(told_columns(self.survey.found, self.survey.columns)),
            *self.style_notes,
            *blank_notes(self.settings.empty, self.by_file(lambda record: record["empty"])),
            *form_notes({file: own["rows"] for file, own in files.items()}),
        )

    @property
    def exact(self) -> bool:
        """Whether the table is small enough for the intervals of `evaluate`."""
        return self.n_outputs <= EXACT_ROWS

    def first_parts(self) -> list[int]:
        """The parts up to the one with row EXACT_ROWS."""
        numbers = sorted(self.records)
        ends = np.cumsum([_count(self.records[number]) for number in numbers])
        return numbers[: int(np.searchsorted(ends, EXACT_ROWS)) + 1]

    def places(
        self,
        numbers: Iterable[int],  # of parts
    ) -> np.ndarray:
        """The rows of some parts by their numbers in their files."""
        ranges = [np.arange(*ends) for number in numbers for ends in self.records[number]["places"]]
        return np.concatenate(ranges)


def _count(record: Mapping[str, Any]) -> int:
    return sum(stop - start for start, stop in record["places"])


def _table_on_disk(
    table,  # a path, or a `datasets.Dataset`
    folder: Path,  # of the run
) -> Path:
    """Where a table can be read from. Raises: InputTypeError for what is no table on disk."""
    if isinstance(table, (str, Path)):
        return Path(table)
    if isinstance(table, Mapping) and any(
        hasattr(split, "save_to_disk") for split in table.values()
    ):
        raise InputTypeError(
            f"these are the splits of a data set; choose one, such as pairs[{next(iter(table))!r}]"
        )
    if not hasattr(table, "save_to_disk"):
        raise InputTypeError(
            f"a table on disk is a file, a folder or a datasets.Dataset, got {describe(table)}; "
            f"evaluate takes one in memory"
        )
    fresh = folder / ".input"
    shutil.rmtree(fresh, ignore_errors=True)
    table.save_to_disk(fresh)
    saved = folder / f"input-{table_sha256(fresh)[:12]}"
    if saved.exists():
        shutil.rmtree(fresh)
    else:
        os.replace(fresh, saved)
    return saved


def _check_metrics(metrics: list[Metric], names: Mapping[str, str], survey: Survey) -> None:
    """Raise an InputError for a metric that needs what the table lacks, or all rows at once."""
    references = any(map(REFERENCE_COLUMN.fullmatch, names))
    try:
        take_rows([dict.fromkeys(names, "x")], metrics=metrics)
        check_references(metrics, references)
    except MissingColumn as error:
        raise MissingColumn(error.args[0], error.part, survey.columns) from error
    check_by_row(metrics)


@dataclass(frozen=True)
class PlannedTable:
    """A table on disk, and what will be scored of it."""

    survey: Survey
    names: dict[str, str]  # our name of a column -> that in the table
    metrics: list[Metric]
    told: list[str]  # which columns and metrics these are, where nobody named them


def plan_table(
    path: Path | str,  # see `read_batches`
    metrics: Iterable[str | Metric] | None,  # None: those that follow from the columns
    styled: bool = False,  # whether a style is to be reached that no column names
) -> PlannedTable:
    """Look through a table once. Raises: InputError for a column or a metric that cannot be used."""
    survey = survey_table(path)
    names = our_names(survey.found)
    told = [told_columns(survey.found, survey.columns)]
    if metrics is None:
        defaults = default_metrics(names, styled)
        metrics = defaults.metrics
        told.append(defaults.why)
    chosen = chosen_metrics(metrics)
    _check_metrics(chosen, names, survey)
    return PlannedTable(survey, names, chosen, [*filter(None, told)])


_Engine = Callable[[BatchScorer, list[int]], Iterator[int]]


def _one_after_the_other(scorer: BatchScorer, numbers: list[int]) -> Iterator[int]:
    for number in numbers:
        scorer(number)
        yield number


def score_table(
    table,  # a path, or a `datasets.Dataset`
    folder: Path,  # from `run_folder`
    metrics: Iterable[str | Metric] | None,  # None: those that follow from the columns
    settings: Settings,
    *,
    given: Collection[str] = (),  # names of the settings that somebody chose
    progress: Progress = False,
) -> FinishedRun:
    """Score a table batch by batch, or go on with that. Raises: InputError, AssetError or OSError; what is finished
    stays."""
    metrics = None if metrics is None else chosen_metrics(metrics)
    score_all = find_engine(settings)
    parts = Parts(folder / "parts")
    if settings.restart:
        parts.clear()
        (folder / "summary.json").unlink(missing_ok=True)
    finished = {
        number: record for number in parts.numbers() if (record := parts.record(number, True))
    }
    before = next(iter(finished.values()), {}).get("made_from", {})
    path = _table_on_disk(table, folder)
    planned = plan_table(path, metrics, asks_for_style(settings, given))
    survey = planned.survey
    chosen = planned.metrics
    for line in planned.told:
        tell(progress, line)
    plan = BatchPlan(
        str(path),
        str(parts.folder.absolute()),
        before.get("batch_rows") or settings.block_rows or 1000,
        planned.names,
        tuple(chosen),
        settings,
        survey.sha256,
    )
    lengths = survey.batch_lengths(plan.batch_rows)
    scorer = BatchScorer(plan)
    _check_finished(folder, finished, scorer)
    _make_folder(parts.folder)
    parts.clear(finished=finished)
    missing = [number for number in range(len(lengths)) if number not in finished]
    done = survey.n_rows - sum(lengths[number] for number in missing)
    if finished:
        tell(progress, f"going on after {len(finished):,} of {len(lengths):,} parts")
    with (
        counted(survey.n_rows, "rows", progress, done) as count,
        contextlib.closing(score_all(scorer, missing)) as numbers,
    ):
        shown = done

        def tick(rows: int) -> None:
            nonlocal shown
            shown += rows
            count(rows)

        scorer.tick = tick
        for number in numbers:
            done += lengths[number]
            tick(done - shown)  # within a batch it may be ahead
    records = {number: parts.record(number) for number in range(len(lengths))}
    for record in records.values():
        refuse_changes(folder, record["made_from"], scorer.made_from)
    if table_sha256(path) != survey.sha256:
        raise FileError(f"{path} was changed while it was read")
    n = sum(map(_count, records.values()))
    run = FinishedRun(
        folder,
        parts,
        records,
        chosen,
        settings,
        survey,
        scorer.made_from,
        scorer.models,
        n,
        style_notes(chosen, planned.names, settings, given),
    )
    if not n:
        raise _nothing_left(run)
    return run


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OSError(error.errno, f"cannot be made: {error.strerror}", str(folder)) from error


def _check_finished(folder: Path, finished: Mapping[int, Mapping], scorer: BatchScorer) -> None:
    """Raise an InputError if finished parts are not those of this run."""
    if not finished:
        return
    for metric in scorer.plan.metrics:
        if not metric.storable:
            raise InputError(
                f"{folder}: {metric.name} may have changed since: its class, or a function among its "
                "options, declares no version; name another folder, or begin anew with restart (--restart)"
            )
    for record in finished.values():
        refuse_changes(folder, record["made_from"], scorer.made_from)
    if scorer.plan.settings.on_error == "stop":
        for record in finished.values():
            for file, row, reason in record["skipped"]:
                raise FileError(
                    f"{file}: row {row} was left out when this run began ({reason}); mend it and name "
                    f"another folder, or skip such rows again"
                )


def _nothing_left(run: FinishedRun) -> FileError:
    if not run.skipped:
        return FileError("every output is empty; there is nothing to score", column="output")
    file, row, reason = run.skipped[0]
    return FileError(
        f"every row was refused; the first: {file}: "
        f"{reason if f'row {row}' in reason else f'row {row}: {reason}'}"
    )


def find_engine(
    settings: Settings,
) -> _Engine:
    """What scores batches, and says which are done. Raises: InputError for an engine that cannot do what is asked."""
    if settings.engine == "local":
        if settings.workers > 1 or settings.address or settings.gpus_per_worker:
            raise InputError(
                "the local engine works in this process; for workers, an address or GPUs a worker choose "
                "the engine ray",
                argument="engine",
            )
        return _one_after_the_other
    if settings.score_cache is not None:
        raise InputError(
            "must not be set with engine='ray': workers on several machines cannot share the file; "
            "what is finished is kept in the folder of the run",
            argument="score_cache",
        )
    from .ray_engine import score_on_ray

    return score_on_ray
