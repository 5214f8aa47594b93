"""Training from a file: a run that goes on where it was stopped, and the classifier that it writes"""

import os
import shutil
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from ..core.assets import from_home
from ..core.checks import InputError, InputTypeError, check_choice, check_number
from ..core.files import file_sha256
from ..core.pretrained import locate_model
from ..models.classifier import STYLE_FILE, StyleClassifier, kind_of_weights
from ..models.loading import find_device
from ..tables.formats import FileError
from .batches import TRAINING_METHODS, Training
from .calibration import calibrate
from .cards import measure_style, training_doubts, write_card
from .checkpoints import Checkpoint
from .folds import Choice, choose_method, deal_folds
from .holdout import Plan, TrainingFile, open_training_file, plan_run
from .loop import MOST_VECTORS, train_on_stream
from .style_check import check_record, check_sentence, order_aside

_HEAD = {"method": "head", "pooling": "layers"}  # of pairs that fit into memory
# of pairs whose edited words are taught as well
_WORDS = {
    "method": "words",
    "pooling": "words",
    "epochs": 3,
    "rank": 8,
    "ranking_weight": 2.0,
    "modules": ("query", "key", "value", "intermediate.dense"),
}
# of everything else
_RECIPE = {
    "pooling": "mean",
    "epochs": 4,
    "learning_rate": 1e-3,
    "hidden_dropout": 0.2,
    "mask_share": 0.15,
}
# settings that every method has; the head has the penalty too
_BOTH = {"base", "method", "pooling", "ranking_weight", "seed"}
_FEW_ROWS = 300  # to train on; below that ways of training are cross-validated
_UNFINISHED = "unfinished"  # folder in the run's folder


def run_settings(
    options: Mapping[str, Any],  # settings of `Training` that were chosen
    opened: TrainingFile
    | None = None,  # what will be trained on; None: labelled texts, or too many pairs for a head
) -> Training:
    """The settings of a run. Raises: InputError for an unknown setting, one out of range, or one that the method has
    not."""
    for name in options:
        check_choice(name, "NAME", Training.__dataclass_fields__)
    options = _with_method(options, opened)
    if "weight_decay" in options:
        check_number(options["weight_decay"], "weight_decay", 0)
    if "shuffle" in options:
        check_choice(str(options["shuffle"]), "shuffle", ("True", "False"))
    base = str(options.get("base", Training.base))
    if from_home(base).is_dir():
        options = {**options, "base": str(from_home(base).resolve())}
    if "modules" in options:
        options = {
            **options,
            "modules": tuple(
                [options["modules"]] if isinstance(options["modules"], str) else options["modules"]
            ),
        }
    searched = base == Training.base and options["method"] == "lora"
    return Training(**{**(_RECIPE if searched else {}), **options})


def _with_method(options: Mapping[str, Any], opened: TrainingFile | None) -> dict[str, Any]:
    """What was chosen, with the method; of a head with its pooling."""
    if "method" in options:
        check_choice(options["method"], "method", TRAINING_METHODS)
    of_loop = [name for name in options if name not in _BOTH | {"penalty"}]
    of_head = [name for name in ("penalty",) if name in options]
    if "method" in options:
        method = options["method"]
    elif options.get("pooling") == "layers" or (of_head and not of_loop):
        method = "head"
    else:
        method = "lora" if of_loop or "pooling" in options or not _fits(opened) else "head"
    of_words = [name for name in ("word_weight",) if name in options and method != "words"]
    without_effect = of_loop if method == "head" else [*of_head, *of_words]
    if without_effect:
        other = (
            "method=lora or full"
            if method == "head"
            else "method=words"
            if of_words
            else "method=head"
        )
        raise InputError(
            f"{without_effect[0]} has no effect with method={method}; leave it out, or set {other}"
        )
    if method == "words" and opened is not None and opened.kind != "pairs":
        raise InputError(
            "method=words needs pairs, whose edits show which words carry the style; got labelled texts"
        )
    return {**{"head": _HEAD, "words": _WORDS}.get(method, {}), **options, "method": method}


def _fits(opened: TrainingFile | None) -> bool:
    """Whether these are pairs of which a head can hold all vectors; stops counting where they are too many."""
    if opened is None or opened.kind != "pairs":
        return False
    rows = 0
    for piece in opened.pieces():
        rows += len(piece)
        if 2 * rows > MOST_VECTORS:
            return False
    return True


@dataclass(frozen=True, kw_only=True)
class TrainingRun:
    """What a run does with its file and its folder, apart from how the classifier is trained."""

    columns: Mapping[str, str] | None = (
        None  # what the file calls its columns, see `open_training_file`
    )
    limit: int | None = None  # rows, from the beginning
    validation: Path | str | None = None  # a file of the same kind to hold out, instead of a share
    share: float | None = None  # of the rows to hold out; None: see `plan_run`
    device: str = "auto"  # auto | cpu | cuda | mps
    every: int = 200  # steps between two states on disk; of a head there are none
    restart: bool = False  # forget what the folder holds
    origin: str = ""  # where the texts come from, for the card
    terms: str = ""  # and under which terms, likewise
    target: str | None = (
        None  # the style to be reached, for the command in the card; None: of pairs the target's
    )


@dataclass(frozen=True)
class Trained:
    """What a run has made."""

    folder: Path
    labels: tuple[str, ...]
    uses: list[str]  # commands that use it
    results: list[dict]  # from `measure_style`
    doubts: list[str]
    plan: Plan
    verdict: str  # whether it is a judge yet, see `check_sentence`


def train_on_file(
    path: Path | str,  # see `open_training_file`
    folder: Path | str,  # where the classifier goes; made if it does not exist
    settings: Training
    | Mapping[str, Any],  # all of them, or those that were chosen, see `run_settings`
    labels: Sequence[str] | None = None,  # names of the classes, of pairs the source's first
    *,
    run: TrainingRun | None = None,  # what `run_options` builds on; None: the defaults
    progress: bool = False,  # show a bar
    say: Callable[[str], None] = lambda text: None,  # is told in a line what was found
    **run_options: Any,  # fields of `TrainingRun`
) -> Trained:
    """Train a style classifier on a file, calibrate and measure it, and write it with its card; goes on where an
    earlier call stopped.

    Raises: InputError for a file, setting or folder that cannot be used, or that an unfinished run did not begin with;
    AssetError if the encoder cannot be had.
    """
    folder = Path(folder)
    run = _chosen_run(run_options, run)
    device = find_device(run.device)
    _check_folder(folder, run.restart)
    opened = open_training_file(path, labels, columns=run.columns, limit=run.limit)
    if run.target is not None:
        check_choice(run.target, "target", opened.labels)
    other = (
        None if run.validation is None else _open_validation(run.validation, opened, run.columns)
    )
    ways = _ways(settings, opened)
    plan = plan_run(opened, other, share=run.share, seed=next(iter(ways.values())).seed)
    choice = _choose(opened, plan, ways, device, say)
    if choice:
        say(choice.note)
    settings = ways[choice.method] if choice else list(ways.values())[-1]
    files = [opened.path, *([other.path] if other else [])]
    sums = {f"checksum of {file.name}": file_sha256(file) for file in files}
    checkpoint = Checkpoint(
        folder / _UNFINISHED,
        {
            **sums,
            "labels": opened.labels,
            "columns": dict(run.columns or {}),
            "limit": run.limit,
            "validation share": run.share,
            "device": device,
            "checksum of the encoder": locate_model(settings.base).fingerprint,
            **asdict(settings),
        },
        run.every,
    )
    say(_announcement(opened, plan, settings, checkpoint.step()))
    classifier = train_on_stream(
        plan.stream,
        opened.labels,
        plan.held["validation"],
        settings,
        device=device,
        progress=progress,
        checkpoint=checkpoint,
    )
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", message="the temperature ran to the end"
        )  # the card says it
        calibrated = calibrate(classifier, plan.held["validation"], smooth=True)
    return _write(calibrated, _Work(folder, opened, plan, settings, run, sums, device, choice))


@dataclass(frozen=True)
class _Work:
    """A run with all that it found."""

    folder: Path
    opened: TrainingFile
    plan: Plan
    settings: Training
    run: TrainingRun
    sums: dict[str, str]  # checksums of its files, by name
    device: str
    choice: Choice | None  # what cross-validation found, where there were few rows


def _ways(options: Training | Mapping[str, Any], opened: TrainingFile) -> dict[str, Training]:
    """Settings by method, of labelled texts two where nothing but base and seed was chosen; the last is the default."""
    if isinstance(options, Training):
        return {options.method: options}
    if opened.kind == "texts" and set(options) <= {"base", "seed"}:
        return {
            method: run_settings({**options, "method": method}, opened)
            for method in ("head", "lora")
        }
    settings = run_settings(options, opened)
    return {settings.method: settings}


def _choose(
    opened: TrainingFile,
    plan: Plan,
    ways: Mapping[str, Training],
    device: str,
    say: Callable[[str], None],
) -> Choice | None:
    """What cross-validation says of few rows; None for many, and for fine-tuning that nothing is compared with."""
    if plan.rows["train"] >= _FEW_ROWS or "head" not in ways:
        return None
    sentences = plan.stream.in_one()
    try:
        group, fold = deal_folds(sentences, seed=ways["head"].seed)
    except InputError:
        return None  # a style whose texts are all of one group
    say(
        f"{plan.rows['train']} rows to train on are few: {' and '.join(ways)} first measured in {fold.max() + 1} folds"
    )
    return choose_method(sentences, opened.labels, ways, group, fold, device)


def _chosen_run(run_options: Mapping[str, Any], run: TrainingRun | None) -> TrainingRun:
    names = [field.name for field in fields(TrainingRun)]
    if unknown := [name for name in run_options if name not in names]:
        raise InputTypeError(
            f"there is no setting called {unknown[0]!r}; those of a run are {', '.join(names)}"
        )
    return replace(run or TrainingRun(), **run_options)


def _check_folder(folder: Path, restart: bool) -> None:
    """Make sure that nothing is overwritten that was not meant to be."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"--output {folder} is a file; name a folder")
    if restart:
        shutil.rmtree(folder / _UNFINISHED, ignore_errors=True)
    elif (folder / STYLE_FILE).exists() and not (folder / _UNFINISHED).exists():
        raise InputError(
            f"--output {folder} holds a finished classifier; name another folder, or begin anew with "
            f"--restart"
        )


def _open_validation(path: Path | str, opened: TrainingFile, columns) -> TrainingFile:
    try:
        other = open_training_file(path, opened.labels, columns=columns)
        for _ in other.pieces():
            pass  # finds bad lines
    except InputError as error:
        raise FileError(f"--validation {path}: {error}") from error
    if other.kind != opened.kind:
        raise FileError(
            f"--validation {path} holds {other.kind}, but {opened.path} holds {opened.kind}"
        )
    return other


def _announcement(opened: TrainingFile, plan: Plan, settings: Training, step: int) -> str:
    counts = ", ".join(
        f"{number:,} of style {name}" for name, number in zip(opened.labels, plan.classes)
    )
    held = ", ".join(f"{plan.rows[split]:,} {opened.kind} for {split}" for split in plan.held)
    left = f"; {plan.left_out:,} left out, whose text is held out" if plan.left_out else ""
    return (
        f"{plan.rows['train']:,} {opened.kind} to train on ({counts}), {held}{left}; method {settings.method}"
        + (f"; going on after step {step:,}" if step else "")
    )


def _write(classifier: StyleClassifier, work: _Work) -> Trained:
    """Write the classifier into the folder of what is unfinished, measure what was written, write the card, and move
    all of it to its place."""
    folder = work.folder
    plan = work.plan
    labels = work.opened.labels
    made = folder / _UNFINISHED / "model"
    shutil.rmtree(made, ignore_errors=True)
    # where the file names rows for a test, validation may have chosen the epoch
    aside = plan.held.get("test", plan.held["validation"])
    order = order_aside(classifier, aside)
    classifier.check = check_record(order)
    verdict = check_sentence(order, folder.resolve().name)
    classifier.save(made)
    written = StyleClassifier.load(str(made), device=work.device)
    results = [
        *(work.choice.results if work.choice else []),
        *(
            row
            for split, sentences in plan.held.items()
            for row in measure_style(written, sentences, split)
        ),
    ]
    doubted = training_doubts(plan, labels, results, classifier.temperature)
    uses = _usage(folder, work.opened, work.run.target)
    write_card(
        made,
        _description(work, classifier, uses, verdict),
        work.settings,
        results,
        work.sums,
        doubted,
    )
    for file in sorted(
        made.iterdir(), key=lambda file: file.name == STYLE_FILE
    ):  # without it nothing loads
        os.replace(file, folder / file.name)
    shutil.rmtree(folder / _UNFINISHED)
    return Trained(folder, labels, uses, results, doubted, plan, verdict)


def _usage(
    folder: Path | str,  # of the classifier
    opened: TrainingFile,  # what it was trained on
    target: str
    | None = None,  # the style that is wanted; None: of pairs the target's, of labelled texts any
) -> list[str]:  # one command, or one for each style
    """The command that evaluates with a classifier, to be pasted."""
    place = str(folder)
    # a bare name may be that of a shipped model, or of one of the hub
    place = place if os.path.isabs(place) or place.startswith((".", "~")) else f"./{place}"
    styles = [target] if target else opened.labels[-1:] if opened.kind == "pairs" else opened.labels
    return [
        f"tsteval evaluate FILE --style-model {place} --target-style {style}" for style in styles
    ]


def _description(work: _Work, classifier: StyleClassifier, uses: list[str], verdict: str) -> str:
    opened = work.opened
    plan = work.plan
    name = work.folder.resolve().name
    labels = ", ".join(opened.labels)
    texts = ", ".join(
        f"{number:,} of style {label}" for label, number in zip(opened.labels, plan.classes)
    )
    held = " and ".join(f"{plan.rows[split]:,} for {split}" for split in plan.held)
    controls = (
        " A pair of equal sides is one text of the second style." if opened.kind == "pairs" else ""
    )
    return "\n".join(
        [
            f"# {name}",
            "",
            verdict,
            "",
            f"Labels a text as one of: {labels}. {kind_of_weights(classifier)}; made by `tsteval train`.",
            "",
            "## Use",
            "",
            "```",
            *uses,
            "```",
            "",
            "## Training data",
            "",
            f"`{opened.path.name}`: {plan.rows['train']:,} {opened.kind} to train on ({texts}), {held}, which it was "
            f"not trained on; {plan.left_out:,} were left out because their text is held out.{controls} Each style weighs "
            f"the same.",
            "",
            f"- Origin: {work.run.origin or 'not stated'}",
            f"- Terms: {work.run.terms or 'not stated'}",
            "",
            f"Validation also chose the {'bias' if classifier.scores_words else 'temperature'}, and where there was early "
            "stopping the epoch. Intervals are of 95%, "
            "from 2,000 resamples "
            "of whole rows of the file.",
            *(["", work.choice.note] if work.choice else []),
            "",
        ]
    )
