"""`tsteval rewrite`: writes outputs for the sources of a file with a rewriting model"""

import json
import sys
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import pandas as pd
from tqdm.auto import tqdm

from ..core.checks import InputError, check_texts
from ..core.display import displayable, printable
from ..core.files import check_unread, locked, write_whole
from ..core.metric import digest
from ..models.generation import Decoding
from ..report.terminal import csv_text, say
from ..tables.formats import MOST_UNPACKED
from ..tables.outputs import SOURCE_KEY
from ..tables.tables import KINDS, choose_columns, open_bytes, open_table
from .app import Command, chosen, option, options_of
from .request import by_option

_DECODING = ("method", "beams", "temperature", "top_p", "seed", "longest")


@dataclass(frozen=True)
class _Rewrite:
    file: str = option(
        "a table with the column source, and perhaps reference, target_style and input; - reads a pipe",
        metavar="FILE",
        flags=(),
        required=True,
    )
    output: str = option("the table to write, .csv or .jsonl", metavar="FILE", required=True)
    model: str | None = option(
        "a rewriter: embedded, a folder, or a Hugging Face model id such as "
        "cffl/bart-base-styletransfer-subjective-to-neutral; neutral-qwen is the larger of those embedded (default: "
        "neutral-smollm2)"
    )
    style: str | None = option(
        "a style in words, such as formal: a chat model is asked for it, untrained", metavar="TEXT"
    )
    examples: str | None = option(
        "with --style: a table with the columns source and target, whose rows are shown to the model first",
        metavar="FILE",
    )
    prompt: str | None = option(
        "how a model that continues texts is asked, with {text} in it", metavar="TEXT"
    )
    system: str | None = option("what to call the system (default: the model's name)")
    evaluate: str | None = option(
        "score the outputs too, and write the results into this folder", metavar="FOLDER"
    )
    metrics: str | None = option("which, with --evaluate", metavar="A,B")
    references_as: str | None = option(
        "with --evaluate: score the references too, as a system of this name", metavar="SYSTEM"
    )
    method: str | None = option(
        "greedy, beam or sample (default: greedy)", choices=("greedy", "beam", "sample")
    )
    beams: int | None = option("beginnings kept, for beam (default: 4)", metavar="N")
    temperature: float | None = option(
        "for sample; below 1 likely tokens become likelier still (default: 1)", metavar="X"
    )
    top_p: float | None = option(
        "for sample: the likeliest tokens that make up this share are kept (default: 0.95)",
        metavar="X",
    )
    seed: int | None = option("for sample (default: 0)", metavar="N")
    longest: int | None = option(
        "tokens of an output (default: one and a half times those of the source, and 16)",
        metavar="N",
    )
    batch_size: int = option("outputs made at once", 16, "N", lowest=1)
    device: str = option("where the model runs", "auto", choices=("auto", "cpu", "cuda", "mps"))
    limit: int | None = option("use only the first N sources", metavar="N", lowest=1)
    restart: bool = option("begin anew, whatever was kept", False)
    source_column: str | None = option(
        "the column that holds the source (default: source, or what is called so elsewhere)"
    )
    input_format: str | None = option(
        "of the table (default: told by the name's ending)",
        choices=tuple(dict.fromkeys(KINDS.values())),
    )
    encoding: str | None = option(
        "of the table, such as cp1252 (default: UTF-8, or what leaves no doubt)"
    )


def _sources(options: _Rewrite) -> pd.DataFrame:
    """The table to be written, without outputs. Raises: InputError that names the file, and row or column."""
    how = options.input_format, options.encoding, MOST_UNPACKED
    named = {"source": [options.source_column]} if options.source_column else {}
    try:
        opened = (
            open_bytes(sys.stdin.buffer.read(), "-", *how)
            if options.file == "-"
            else open_table(options.file, *how)
        )
        table, told = choose_columns(opened.frame, named, by_option, needs=["source"])
        table = table.drop(columns=["output", "system"], errors="ignore")
        check_texts(list(table.source), column=options.source_column or "source", empty=False)
    except InputError as error:
        raise error.at(file=displayable(options.file)) from error
    if table.empty:
        raise InputError("there are no rows to rewrite", file=displayable(options.file))
    if told:
        say(f"tsteval: note: {told}", file=sys.stderr)
    keys = [name for name in SOURCE_KEY if name in table]
    return table.drop_duplicates(keys, ignore_index=True)[: options.limit]


def _examples(options: _Rewrite) -> pd.DataFrame | None:
    """The pairs that are shown. Raises: InputError that names the file, and row or column."""
    if options.examples is None:
        return None
    try:
        pairs = open_table(options.examples).frame
        for name in ("source", "target"):
            if name not in pairs:
                raise InputError(f"has no column {name}; its columns are {', '.join(pairs)}")
            check_texts(list(pairs[name]), column=name, empty=False)
    except InputError as error:
        raise error.at(file=displayable(options.examples)) from error
    return pairs


def _finished(path: Path, made_from: str, restart: bool) -> dict[str, str]:
    """Source -> output of an earlier run of the same command. Raises: InputError if it was another one."""
    if restart or not path.is_file():
        return {}
    outputs: dict[str, str] = {}
    for place, line in enumerate(path.read_text(encoding="utf-8").splitlines()):
        try:
            entry = json.loads(line)
        except ValueError:
            break
        if place == 0 and entry != made_from:
            raise InputError(
                "holds outputs of another model, decoding or table; --restart begins anew",
                file=displayable(str(path)),
            )
        if place:
            outputs |= {entry[0]: entry[1]}
    return outputs


def _rewritten(
    rewriter, todo: list[str], options: _Rewrite, decoding: Decoding
) -> Iterator[list[tuple[str, str]]]:
    """Sources with their outputs, some batches at a time."""
    size = 4 * options.batch_size
    for first in range(0, len(todo), size):
        texts = todo[first : first + size]
        yield list(
            zip(texts, rewriter.rewrite(texts, batch_size=options.batch_size, **asdict(decoding)))
        )


def _write_all(
    rewriter, table: pd.DataFrame, options: _Rewrite, decoding: Decoding
) -> dict[str, str]:
    """Source -> output, with all that is finished kept on the way. Raises: as `_finished`."""
    path = Path(f"{options.output}.part")
    sources = list(dict.fromkeys(table.source))
    made_from = digest(rewriter.tag, repr(decoding), *sources)
    done = _finished(path, made_from, options.restart)
    todo = [source for source in sources if source not in done]
    lines = [json.dumps(made_from), *(json.dumps(pair) for pair in done.items())]
    write_whole(path, "".join(f"{line}\n" for line in lines))
    if done:
        say(
            f"tsteval: {len(done):,} of {len(sources):,} outputs were kept; going on",
            file=sys.stderr,
        )
    with tqdm(
        total=len(sources), initial=len(done), desc="rewriting", disable=not sys.stderr.isatty()
    ) as bar:
        for pairs in _rewritten(rewriter, todo, options, decoding):
            with open(path, "a", encoding="utf-8") as file:
                file.writelines(f"{json.dumps(pair)}\n" for pair in pairs)
            done |= dict(pairs)
            bar.update(len(pairs))
    return done


def _run(arguments: Namespace) -> int:
    from tsteval.rewriting import Rewriter

    options = chosen(_Rewrite, arguments)
    decoding = Decoding(
        **{name: value for name in _DECODING if (value := getattr(options, name)) is not None}
    )
    if options.evaluate is None and (options.metrics or options.references_as):
        raise InputError(
            "needs --evaluate FOLDER",
            argument="--metrics" if options.metrics else "--references-as",
        )
    if Path(options.output).suffix not in (".csv", ".jsonl"):
        raise InputError("name a file that ends in .csv or .jsonl", argument="--output")
    if not Path(options.output).absolute().parent.is_dir():
        raise InputError("the folder of this file is not there; make it first", argument="--output")
    check_unread(options.output, [options.file])
    table = _sources(options)
    rewriter = Rewriter.load(
        options.model,
        style=options.style,
        examples=_examples(options),
        prompt=options.prompt,
        device=options.device,
    )
    part = Path(f"{options.output}.part")
    try:
        with locked(f"{part}.lock"):
            done = _write_all(rewriter, table, options, decoding)
    except KeyboardInterrupt:
        say(
            f"tsteval: stopped; what is finished is kept in {printable(str(part))}, and the same command goes on from "
            f"there",
            file=sys.stderr,
        )
        return 130
    table = table.assign(output=table.source.map(done), system=options.system or rewriter.name)
    write_whole(
        options.output,
        csv_text(table)
        if options.output.endswith(".csv")
        else table.to_json(orient="records", lines=True, force_ascii=False),
    )
    part.unlink()
    say(
        f"{len(table):,} outputs in {printable(options.output)}; {(table.output == table.source).sum():,} are copies "
        f"of their source."
    )
    return _scored(options)


def _scored(options: _Rewrite) -> int:
    """Score the outputs, or say how."""
    from tsteval.cli.app import main

    if options.evaluate is None:
        say(f"To score them: tsteval evaluate {printable(options.output)}")
        return 0
    more = {"--metrics": options.metrics, "--references-as": options.references_as}
    return main(
        [
            "evaluate",
            options.output,
            "--output",
            options.evaluate,
            *(word for flag, value in more.items() if value is not None for word in (flag, value)),
        ]
    )


rewrite_command = Command(
    _run,
    options_of(_Rewrite),
    "Rewrite the sources of a table with a model, and write a table "
    "that tsteval evaluate reads. A run that was stopped goes on when the same command is given "
    "again.",
)
