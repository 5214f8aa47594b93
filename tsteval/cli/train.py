"""`tsteval train`: makes a style classifier of one's own from a file"""

import sys
from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from ..core.assets import packaged_path
from ..core.checks import InputError, check_number
from ..core.display import displayable, printable
from ..core.files import write_whole
from ..report.terminal import aligned, csv_text, say
from .app import Command, chosen, literal, option, options_of

_COLUMNS = ("source", "target", "text", "label", "split")
# settings that have an option of their own
_TRAINING = ("base", "method", "epochs", "batch_size", "learning_rate", "seed")


@dataclass(frozen=True)
class _Train:
    file: str = option(
        ".csv, .tsv, .jsonl or .parquet with the columns source and target (pairs) or text and label, "
        "and perhaps split (train, validation, test); or a file of the full Wiki Neutrality Corpus",
        metavar="FILE",
        flags=(),
        required=True,
    )
    output: str = option("where the classifier goes", metavar="FOLDER", required=True)
    labels: str | None = option(
        "names of the styles; of pairs the source's, then the target's (default: "
        "subjective,neutral for pairs, and for labelled texts the labels in the order of the "
        "alphabet)",
        metavar="A,B",
    )
    target: str | None = option(
        "the style that you want to reach, for the command that is printed (default: of pairs "
        "the target's; of labelled texts a command for each)",
        metavar="STYLE",
    )
    base: str | None = option(
        "encoder: embedded, a folder, or a Hugging Face model id (default: all-MiniLM-L6-v2)"
    )
    method: str | None = option(
        "head: a head over a frozen encoder; lora or full: fine-tuning; words: fine-tuning on "
        "pairs that also teaches which words were edited (default: head for pairs)",
        choices=("head", "lora", "full", "words"),
    )
    epochs: int | None = option("passes over the file, of fine-tuning", metavar="N")
    batch_size: int | None = option("pairs, or texts, in a step of fine-tuning", metavar="N")
    learning_rate: float | None = option("its peak, of fine-tuning", metavar="X")
    seed: int | None = option("of all that is random (default: 0)", metavar="N", lowest=0)
    set: tuple[str, ...] = option(
        "another setting of tsteval.style.Training; may be repeated", (), "NAME=VALUE"
    )
    validation: str | None = option(
        "what to measure on, instead of a share of FILE", metavar="FILE"
    )
    share: float | None = option(
        "of the rows to hold out, at most 2,000 rows (default: 0.1, and of pairs at least 20 if there are 40)",
        metavar="X",
    )
    limit: int | None = option("use only the first N rows", metavar="N", lowest=1)
    device: str = option("where it trains", "auto", choices=("auto", "cpu", "cuda", "mps"))
    checkpoint_every: int = option("steps between two states on disk", 200, "N", lowest=1)
    review: bool = option(
        "train nothing: list the pairs of FILE that are most likely to be wrong, and write all of "
        "them, the most doubtful first, to FOLDER/review.csv",
        False,
    )
    restart: bool = option("begin anew, whatever the folder holds", False)
    origin: str = option("where the texts come from, for the card", "", "TEXT")
    terms: str = option("under which terms, for the card", "", "TEXT")
    source_column: str = option("the column that holds the source", "source")
    target_column: str = option("the column that holds the target", "target")
    text_column: str = option("the column that holds the text", "text")
    label_column: str = option("the column that holds the label", "label")
    split_column: str = option("the column that holds the split", "split")


def _training_settings(options: _Train) -> dict[str, Any]:
    """What the options say of `Training`."""
    settings = {name: value for name in _TRAINING if (value := getattr(options, name)) is not None}
    for setting in options.set:
        name, equals, value = setting.partition("=")
        if not equals:
            raise InputError("write NAME=VALUE, such as patience=2", argument=f"--set {setting}")
        if name in settings:
            raise InputError(f"{name} is given twice", argument=f"--set {setting}")
        settings[name] = literal(value)
    return settings


def _check_name(output: str) -> None:
    """Refuse a folder that is called like a shipped model, since `--style-model NAME` would mean that one."""
    name = Path(output).name
    if packaged_path(name).is_dir():
        raise InputError(
            f"{displayable(name)} is the name of a model that is shipped; choose another",
            argument="--output",
        )


def _labels(options: _Train) -> list[str] | None:
    return (
        None if options.labels is None else [label.strip() for label in options.labels.split(",")]
    )


def _columns(options: _Train) -> dict[str, str]:
    """What the file calls our columns, where it is something else."""
    return {
        name: theirs for name in _COLUMNS if (theirs := getattr(options, f"{name}_column")) != name
    }


_SHOWN = 10  # pairs


def _review(options: _Train) -> int:
    """List the pairs on which two judges that have not seen them fail most clearly."""
    from tsteval.models.encoder import SentenceEncoder
    from tsteval.report.galleries import label_noise_shares
    from tsteval.training.errors import doubtful_pairs
    from tsteval.training.holdout import open_training_file

    opened = open_training_file(
        options.file, _labels(options), columns=_columns(options), limit=options.limit
    )
    if opened.kind != "pairs":
        raise InputError(
            "takes a file of pairs; this one holds labelled texts", argument="--review"
        )
    pairs = pd.concat(opened.pieces(), ignore_index=True)
    try:
        ranked_pairs = doubtful_pairs(
            pairs, SentenceEncoder.load(options.base, device=options.device).encode
        )
    except InputError as error:
        raise error.at(file=displayable(options.file)) from error
    judges = {"sentence vectors": ranked_pairs.by_vectors, "words": ranked_pairs.by_words}
    shares = [
        ["read by", "pairs the wrong way round", "95% interval"],
        *(
            [row.judge, f"{row.share:.3f}", f"[{row.low:.3f}, {row.high:.3f}]"]
            for row in label_noise_shares(judges).itertuples()
        ),
    ]
    folder = Path(options.output)
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(
        folder / "review.csv",
        csv_text(ranked_pairs.rename_axis("row").reset_index().assign(row=ranked_pairs.index + 1)),
    )
    say(
        aligned([list(column) for column in zip(*shares)]),
        f"both alike by chance: {label_noise_shares(judges).by_chance.iloc[-1]:.3f}",
        "",
        "The most doubtful pairs:",
    )
    for place, row in enumerate(ranked_pairs.head(_SHOWN).itertuples(), 1):
        say(
            f"{place:3}. row {row.Index + 1}: {printable(row.source)}",
            f"     {' ' * 4}-> {printable(row.target)}",
        )
    say(
        f"Written to {displayable(str(folder / 'review.csv'))}: {len(ranked_pairs)} pairs, the most doubtful first."
    )
    return 0


def _run(arguments: Namespace) -> int:
    from tsteval.training.run import run_settings, train_on_file

    options = chosen(_Train, arguments)
    if options.review:
        return _review(options)
    if options.share is not None:
        check_number(options.share, "--share", 0, 1, above=True, below=True)
    _check_name(options.output)
    labels = _labels(options)
    settings = _training_settings(options)
    try:
        run_settings(settings)  # what is wrong with a setting is found before the file is read
    except InputError as error:
        if error.argument in _TRAINING:
            raise
        raise error.at(argument=f"--set {error.argument or ''}".strip()) from error
    try:
        made = train_on_file(
            options.file,
            options.output,
            settings,
            labels,
            columns=_columns(options),
            limit=options.limit,
            validation=options.validation,
            share=options.share,
            device=options.device,
            every=options.checkpoint_every,
            restart=options.restart,
            origin=options.origin,
            terms=options.terms,
            target=options.target,
            progress=sys.stderr.isatty(),
            say=lambda text: say(printable(text), file=sys.stderr),
        )
    except KeyboardInterrupt:
        say(
            "tsteval: stopped; the same command goes on from the last state that was kept, or begins anew if there is "
            "none",
            file=sys.stderr,
        )
        return 130
    except InputError as error:
        if error.file or error.argument:
            raise
        raise error.at(file=displayable(options.file)) from error
    _print_trained(made)
    return 0


def _print_trained(made) -> None:
    rows = [
        ["", "n", "value", "95% interval"],
        *(
            [
                f"{row['split']}: {row['measure']}",
                str(row["n"]),
                f"{row['value']:.3f}",
                f"[{row['low']:.3f}, {row['high']:.3f}]",
            ]
            for row in made.results
        ),
    ]
    say(
        made.verdict,
        aligned([list(column) for column in zip(*rows)]),
        *(f"warning: {doubt}" for doubt in made.doubts),
    )
    say(f"Written to {made.folder}, with a card. To use it:", *(f"  {line}" for line in made.uses))


train_command = Command(
    _run,
    options_of(_Train),
    "Train a style classifier, and write it with a card. Pairs get a "
    "head over a frozen encoder, which takes seconds; labelled texts, more than 50,000 pairs, and "
    "runs with settings of their own such as --epochs are fine-tuned. Below 300 rows a head "
    "is cross-validated, and of labelled texts head and fine-tuning are compared so and the better "
    "is kept. A run that was stopped goes "
    "on when the same command is given again.",
)
