"""A table scored block by block in a folder: begun, gone on with, worked off, and added up"""

import contextlib
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from ..core.assets import AssetError
from ..core.checks import InputError, InputTypeError, describe
from ..core.files import locked
from ..core.metric import Metric, Note, describe_setting
from ..models.base import collected_cuts
from ..tables.blocks import Block, Index, index_table
from ..tables.data_check import blank_notes, cut_notes, repeat_notes, take_rows
from ..tables.formats import REFERENCE_COLUMN, FileError
from .parts import EXACT_ROWS, Basis, FinishedRun, Run, part_name, read_rows_of, unsealed
from .scoring import check_by_row, check_references, chosen_metrics, needed_columns
from .settings import Settings
from .worker import Outcome, RunPlan, ScoreBlock, find_basis, plan_models


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


def _describe_run(
    index: Index,
    plan: RunPlan,
    versions: Mapping[
        str, str
    ],  # library -> version; of this package's own, under "tsteval", a change is refused
) -> dict[str, Any]:
    """What the parts of a run are made from, as JSON holds it."""

    def told(value):
        return (
            None if value is None else value if isinstance(value, str) else describe_setting(value)
        )

    return {
        "input": {"sha256": index.sha256, "rows": index.n_rows, "files": index.files},
        "metrics": {metric.name: metric.signature for metric in plan.metrics},
        "untold": [metric.name for metric in plan.metrics if not metric.storable],
        "target_style": plan.settings.target_style,
        "empty": plan.settings.empty,
        "models": {role: told(model) for role, model in plan.settings.cast().chosen.items()},
        "versions": dict(versions),
    }


def _what_changed(
    before: Mapping[str, Any],  # from `_describe_run`, when the run began
    now: Mapping[str, Any],
) -> str | None:  # in words; None: nothing that matters
    """The first difference between two descriptions of a run."""
    if before["input"]["sha256"] != now["input"]["sha256"]:
        return f"the input changed since: sha256 {before['input']['sha256'][:12]}, now {now['input']['sha256'][:12]}"
    if list(before["metrics"]) != list(now["metrics"]):
        return f"the metrics changed since: {', '.join(before['metrics'])}, now {', '.join(now['metrics'])}"
    for kind, word in (
        ("metrics", "the options or the version of"),
        ("models", "the model for"),
    ):
        for name in {**before[kind], **now[kind]}:
            old, new = (side[kind].get(name) for side in (before, now))
            if old != new:
                return f"{word} {name} changed since" + (
                    ""
                    if kind == "metrics"
                    else f": {old or 'the default'}, now {new or 'the default'}"
                )
    if now["untold"]:
        return (
            f"{now['untold'][0]} may have changed since: its class, or a function among its options, "
            "declares no version"
        )
    if before["target_style"] != now["target_style"]:
        return f"target_style changed since: {before['target_style']}, now {now['target_style']}"
    if (old := before.get("empty", "fail")) != (new := now["empty"]):
        return f"empty changed since: {old}, now {new}"
    old, new = (side["versions"].get("tsteval") for side in (before, now))
    return f"tsteval changed since: version {old}, now {new}" if old != new else None


def _open_run(
    folder: Path,
    description: Mapping[str, Any],  # from `_describe_run`
    block_rows: int,
    restart: bool = False,  # forget what the folder holds
) -> Run:
    """Begin a run, or go on with the one in a folder. The caller holds the folder's lock.

    Raises: InputError that says what changed since the run began; OSError if the folder cannot be written.
    """
    file = folder / "manifest.json"
    known = read_manifest(folder)
    if known and not restart:
        if changed := _what_changed(known["description"], description):
            raise InputError(
                f"{folder}: {changed}; name another folder, or begin anew with restart (--restart)"
            )
    elif restart or not (folder / "parts").exists():
        for name in (
            *RESULTS,
            *(f"parts/{file.name}" for file in (folder / "parts").glob("part-*")),
        ):
            (folder / name).unlink(missing_ok=True)
    elif file.exists() or any((folder / "parts").iterdir()):
        raise InputError(
            f"{file} is missing or damaged, so it cannot be told what the parts beside it are; name "
            f"another folder, or begin anew with restart (--restart)"
        )
    run = Run(
        folder,
        known
        if known and not restart
        else {
            "format": 1,
            "description": dict(description),
            "block_rows": block_rows,
            "basis": None,
        },
    )
    try:
        run.parts.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OSError(error.errno, f"cannot be made: {error.strerror}", str(run.parts)) from error
    for left in [*folder.glob(".*-*"), *run.parts.glob(".part-*")]:
        if re.match(r"\.(part-\d|manifest\.json-|summary\.json-)", left.name):
            left.unlink()
    if not known or restart:
        run.save()
    return run


RESULTS = ("manifest.json", "summary.json")


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """What a folder's run was begun with; None if that is missing or damaged."""
    return unsealed(folder / "manifest.json")


_RAISED = {"input": FileError, "asset": AssetError, "system": OSError}


def _accept(run: Run, outcome: Outcome) -> None:
    """Take in a finished block. Raises: InputError, AssetError or OSError, whatever kept it from being finished."""
    if trouble := outcome.trouble:
        raise _RAISED[trouble.kind](trouble.message, **trouble.place)
    _check_basis(run, outcome.basis, outcome.number)
    run.records[outcome.number] = outcome.record


def _check_basis(
    run: Run,
    basis: Mapping[str, Basis],
    number: int
    | None = None,  # of the block that came with it, whose part is dropped if it does not fit
) -> None:
    """Remember which weights and options the metrics have, or refuse others. Raises: InputError."""
    found = {name: [said.signature, said.row_signature] for name, said in basis.items()}
    if run.manifest["basis"] is None:
        run.manifest["basis"] = found
        run.save()
    for name, signatures in found.items():
        if (known := run.manifest["basis"][name]) != signatures:
            if number is not None:
                (run.parts / part_name(number, "json")).unlink(missing_ok=True)
            old, new = ("|".join(pair) for pair in (known, signatures))
            raise InputError(
                f"{run.folder}: {name} changed since this run began, in its weights or settings: {old}, "
                f"now {new}; name another folder, or begin anew with restart (--restart)"
            )


_Engine = Callable[[RunPlan, list[Block], Callable[[int], Any]], Iterator[Outcome]]


def _work_off(
    run: Run,
    plan: RunPlan,
    blocks: list[Block],
    engine: _Engine,  # gives blocks to workers, and their outcomes in any order; may tell of rows on the way
    progress: bool = False,  # show a bar
) -> dict[str, Basis]:  # metric -> what it says without any row
    """Score the blocks that are missing. Raises: InputError, AssetError or OSError, with the finished blocks kept."""
    for block in blocks:
        if record := run.read(block.number):
            run.records[block.number] = record
    if not plan.skip:
        _refuse_skipped(run)
    sizes = {block.number: block.n_rows for block in blocks}
    missing = [block for block in blocks if block.number not in run.records]
    basis = None
    with tqdm(
        total=sum(sizes.values()),
        initial=sum(sizes[number] for number in run.records),
        unit=" rows",
        disable=not progress,
    ) as bar:
        done = bar.n  # rows of finished blocks
        outcomes = engine(plan, missing, bar.update) if missing else ()
        try:
            for outcome in outcomes:
                _accept(run, outcome)
                basis = outcome.basis
                done = done + sizes[outcome.number]
                bar.update(done - bar.n)
        finally:  # an engine with processes of its own ends them now, and not when a traceback lets go of it
            if hasattr(outcomes, "close"):
                outcomes.close()
    if basis is None:  # nothing was missing: the weights are looked at all the same
        basis = find_basis(plan, plan_models(plan))
        _check_basis(run, basis)
    if not any(record["n"] for record in run.records.values()):
        raise _nothing_left(run)
    return basis


def _nothing_left(run: Run) -> FileError:
    skipped = [entry for record in run.records.values() for entry in record["skipped"]]
    if not skipped:
        return FileError("every output is empty; there is nothing to score", column="output")
    file, row, reason = skipped[0]
    return FileError(
        f"every row was refused; the first: {file}: "
        f"{reason if f'row {row}' in reason else f'row {row}: {reason}'}"
    )


def _refuse_skipped(run: Run) -> None:
    for _, record in sorted(run.records.items()):
        for file, row, reason in record["skipped"]:
            raise FileError(
                f"{file}: row {row} was left out when this run began ({reason}); mend it and name another "
                f"folder, or skip such rows again"
            )


def _find_facts(
    run: Run,
    plan: RunPlan,
) -> dict[str, tuple]:  # metric -> signature of a system, signature of a row, headings
    """The signatures and headings of the whole table."""
    kinds: dict[tuple, dict] = {}
    for _, record in sorted(run.records.items()):
        for row in record["witnesses"]:
            kinds.setdefault((len(row["references"]), row["target_style"]), row)
    for record in run.records.values():
        if [(len(row["references"]), row["target_style"]) for row in record["witnesses"]] == list(
            kinds
        ):
            return {name: tuple(told) for name, told in record["facts"].items()}
    rows = pd.DataFrame(list(kinds.values()), dtype=object)
    rows["references"] = [tuple(cell) for cell in rows.references]
    models = plan_models(plan)
    facts = {}
    for metric in plan.metrics:
        own = needed_columns(metric, rows)
        facts[metric.name] = (
            metric.sign(own, models),
            metric.sign_row(own, models),
            metric.titles(own),
        )
    return facts


def _first_rows(run: Run) -> tuple[pd.DataFrame, np.ndarray]:
    """The rows of the first parts, up to the one with row EXACT_ROWS, and their places in their files."""
    found = []
    places = []
    rows = 0
    for number, record in sorted(run.records.items()):
        found.append(read_rows_of(run.parts / part_name(number, "parquet"), _COLUMNS))
        places += [place for first, last in record["places"] for place in range(first, last)]
        rows += record["n"]
        if rows >= EXACT_ROWS:
            break
    return pd.concat(found, ignore_index=True), np.array(places, dtype=int)


_COLUMNS = ["system", "source", "output", "references", "target_style", "input"]


def _by_file(run: Run, of: Callable[[dict], Mapping]) -> dict[str, dict]:
    """What the records of each file hold under the same names, put together."""
    found: dict[str, dict] = {}
    for _, record in sorted(run.records.items()):
        kept = found.setdefault(record["file"], {})
        for name, entry in of(record).items():
            kept[name] = (
                [*kept[name], *entry] if name in kept and isinstance(entry, list) else entry
            )
    return {file: kept for file, kept in found.items() if kept}


def _find_notes(
    run: Run,
    plan: RunPlan,
    facts: Mapping[str, tuple],  # from `_find_facts`
) -> tuple[
    dict[str, tuple[Note, ...]], tuple[Note, ...]
]:  # metric -> notes on its scores; and notes on the rows
    """What has to be known about the scores and the rows. Of a large table, what metrics that review a table and the
    search for repeated rows say is about the first EXACT_ROWS rows."""
    table, places = _first_rows(run)
    full = table[table.output != ""].reset_index(drop=True)
    models = plan_models(plan)
    n = _count(run)
    notes: dict[str, tuple[Note, ...]] = {}
    for metric in plan.metrics:
        cut = _by_file(
            run,
            lambda record, name=metric.name: {
                int(row): tokens for row, tokens in record["cut"].get(name, {}).items()
            },
        )
        notes[metric.name] = cut_notes(
            metric.heading(metric.columns[0])
            if not facts[metric.name][2]
            else facts[metric.name][2][0],
            cut,
            n,
        )
        with collected_cuts():  # told already
            notes[metric.name] += metric.review(full, models)
    return notes, (
        *blank_notes(plan.settings.empty, _by_file(run, lambda record: record["empty"])),
        *repeat_notes(table, places),
    )


def _count(run: Run) -> int:
    return sum(record["n"] for record in run.records.values())


def _stored_table(
    table,  # a path, or a `datasets.Dataset`
    folder: Path,  # of the run
    block_rows: int,
) -> Index:
    """A table on disk in blocks. Raises: InputTypeError for what is neither; FileError as `index_table`."""
    if isinstance(table, (str, Path)):
        return index_table(table, block_rows)
    if isinstance(table, Mapping) and any(
        hasattr(split, "save_to_disk") for split in table.values()
    ):
        raise InputTypeError(
            f"these are the splits of a data set; choose one, such as pairs[{next(iter(table))!r}]"
        )
    if not hasattr(table, "save_to_disk"):
        raise InputTypeError(
            f"a table in blocks is a file, a folder or a datasets.Dataset, got {describe(table)}; "
            f"evaluate takes one in memory"
        )
    fresh = folder / ".input"
    shutil.rmtree(fresh, ignore_errors=True)
    table.save_to_disk(fresh)
    kept = folder / f"input-{index_table(fresh, block_rows).sha256[:12]}"
    if kept.exists():
        shutil.rmtree(fresh)
    else:
        os.replace(fresh, kept)
    return index_table(kept, block_rows)


def score_table(
    table,  # a path, or a `datasets.Dataset`
    folder: Path,  # from `run_folder`
    metrics: Iterable[str | Metric],
    engine: _Engine,  # see `_work_off`
    settings: Settings,
    *,
    optional: bool = False,  # leave out metrics that need references or sources where there are none
    versions: Mapping[str, str] | None = None,
    progress: bool = False,
) -> FinishedRun:
    """Score a table block by block, or go on with that. Raises: InputError, AssetError or OSError; what is finished
    stays."""
    chosen = chosen_metrics(metrics)
    known = None if settings.restart else read_manifest(folder)
    size = known["block_rows"] if known else settings.block_rows or 1000
    index = _stored_table(table, folder, size)
    references = any(REFERENCE_COLUMN.fullmatch(name) for name in index.columns)
    lacking = {
        need
        for need, there in (("references", references), ("source", "source" in index.columns))
        if not there
    }
    if optional:
        chosen = [metric for metric in chosen if not lacking & {*metric.needed}]
    take_rows([dict.fromkeys(index.columns, "x")], metrics=chosen)
    check_references(chosen, references)
    check_by_row(chosen)
    plan = RunPlan("", "", tuple(chosen), settings)
    run = _open_run(folder, _describe_run(index, plan, versions or {}), size, settings.restart)
    plan = replace(plan, folder=str(run.parts.absolute()), run=run.name)
    basis = _work_off(run, plan, index.blocks, engine, progress)
    facts = _find_facts(run, plan)
    return FinishedRun(run, chosen, basis, facts, *_find_notes(run, plan, facts))


def find_engine(
    settings: Settings,
) -> _Engine:
    """What maps blocks to their outcomes. Raises: InputError for an engine that cannot do what is asked."""
    cluster = {
        "workers": settings.workers,
        "address": settings.address,
        "gpus_per_worker": settings.gpus_per_worker,
    }
    if settings.engine == "local":
        if settings.workers > 1 or settings.address or settings.gpus_per_worker:
            raise InputError(
                "the local engine works in this process; for workers, an address or GPUs a worker choose "
                "the engine ray",
                argument="engine",
            )
        return lambda plan, blocks, tick: map(ScoreBlock(plan, tick), blocks)
    if settings.score_cache is not None:
        raise InputError(
            "must not be set with engine='ray': workers on several machines cannot share the file; "
            "what is finished is kept in the folder of the run",
            argument="score_cache",
        )
    from tsteval.runs.ray_engine import run_on_ray

    return lambda plan, blocks, tick: run_on_ray(partial(ScoreBlock, plan), blocks, **cluster)
