"""What a command was asked to do, checked before any model is loaded"""

import os
import shutil
import sys
import tempfile
import warnings
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from ..core.assets import ASSETS, AssetError, from_home, packaged_path, read_json
from ..core.checks import InputError, check_choice, meant
from ..core.display import displayable, printable
from ..core.metric import (
    INPUTS,
    METRICS,
    QUESTIONS,
    Metric,
    ScoreWarning,
    find_metric,
    split_list,
)
from ..core.pretrained import locate_model
from ..models.classifier import STYLE_FILE, StyleClassifier, find_label, shipped_with
from ..ngram_metrics import is_ngram_file
from ..report.terminal import say
from ..runs.defaults import asks_for_style, default_metrics
from ..runs.scoring import check_references, chosen_metrics
from ..runs.settings import Settings
from ..tables.columns import MissingColumn, listed, part_of
from ..tables.data_check import take_rows
from ..tables.formats import MOST_UNPACKED, PAIR_COLUMNS
from ..tables.outputs import SOURCE_KEY
from ..tables.tables import (
    KINDS,
    Opened,
    choose_columns,
    choose_rows,
    in_file,
    open_bytes,
    open_lines,
    open_table,
)
from .app import Printing, chosen, option, options_of

_FOUND = "default: by its name"


@dataclass(frozen=True)
class Reading:
    """Which texts are read, and how."""

    input_format: str | None = option(
        "of the input (default: told by the name's ending, and of a pipe by how it begins)",
        choices=tuple(dict.fromkeys(KINDS.values())),
    )
    encoding: str | None = option(
        "of the input, such as cp1252 (default: UTF-8, or what leaves no doubt)"
    )
    max_unpacked: int = option(
        "bytes that a packed file may unpack to", MOST_UNPACKED, "N", lowest=1
    )
    source_lines: str | None = option(
        "sources, one a line, instead of a table",
        metavar="FILE",
        flags=("--source", "--source-lines"),
    )
    output_lines: tuple[str, ...] = option(
        "outputs, one a line, of a system that is called like the file; may be repeated", (), "FILE"
    )
    reference_lines: tuple[str, ...] = option(
        "references, one a line; may be repeated",
        (),
        "FILE",
        flags=("--reference", "--reference-lines"),
    )
    limit: int | None = option("use only the first N rows of each system", metavar="N", lowest=1)
    system: tuple[str, ...] = option("score this system only; may be repeated", ())
    system_column: str | None = option(f"the column with the system ({_FOUND})")
    source_column: str | None = option(f"the column with the source ({_FOUND})")
    output_column: tuple[str, ...] = option(
        f"the column with the output; given several times, each is a system ({_FOUND})", ()
    )
    target_style_column: str | None = option(f"the column with the target style ({_FOUND})")
    input_column: str | None = option(f"the column with the input ({_FOUND})")
    question_column: str | None = option(f"the column with the question ({_FOUND})")
    context_column: str | None = option(
        f"the column with the context that an answer rests on ({_FOUND})"
    )
    reference_column: tuple[str, ...] = option(
        f"a column with references; may be repeated ({_FOUND})", ()
    )
    sheet: tuple[str, ...] = option(
        "the sheet of an Excel file; given several times, each is a system (default: the first)",
        (),
    )

    @property
    def by_lines(self) -> bool:
        """Whether the texts are in files of lines."""
        return bool(self.source_lines or self.output_lines or self.reference_lines)

    @property
    def columns(self) -> dict[str, Sequence[str]]:
        """Part -> the columns of the file that were named for it."""
        named = {part: getattr(self, f"{part}_column") for part in (*PAIR_COLUMNS, "reference")}
        return {
            part: [names] if isinstance(names, str) else names
            for part, names in named.items()
            if names
        }


def by_option(
    part: str,  # of PAIR_COLUMNS, or reference
) -> str:
    """What to do about a column that is missing or unclear."""
    more = {
        "output": " (several times: each is a system)",
        "reference": " (several times: several references)",
    }
    return f"name it with --{part.replace('_', '-')}-column{more.get(part, '')}"


@dataclass(frozen=True)
class Pairs:
    """A table of pairs that was read, and where it came from."""

    table: pd.DataFrame  # as the file has it, with our names of the columns
    source: dict  # what a summary says of it: file, sha256, rows
    places: Sequence[tuple[str, int]] = ()  # file and row of each row
    columns: Sequence[object] = ()  # names in the file

    def located(self, error: InputError) -> InputError:
        """An error about a row of the table as one about the row of the file that it came from; of an error that
        names no row, the file is known alone; of a column, the option that names it."""
        if isinstance(error, MissingColumn):
            present = self.columns or error.present
            error = MissingColumn(error.args[0], error.part, present, by_option(error.part))
        if error.column == "output" and error.row is not None and "system" in self.table:
            name = self.table.system.iloc[error.row]
            if name in self.columns:  # several output columns, each a system of that name
                error = error.at(column=name)
        placed = in_file(error, self.places)
        files = [source["file"] for source in self.source.get("files", [self.source])]
        return placed if placed.file or placed.argument else placed.at(file=" and ".join(files))


def read_pairs(
    name: str
    | None,  # of a table; "-" reads what is piped in; None: the files of lines that `reading` names
    reading: Reading,
) -> Pairs:
    """The rows that are asked for. Raises: InputError that names the file, and line, row or column, or the option."""
    if reading.by_lines:
        return _read_lines(name, reading)
    if name is None:
        raise InputError("name a table FILE, or --source-lines and --output-lines")
    file = displayable(Path(name).name)
    try:
        opened = _open_sheets(name, reading)
        table, told = choose_columns(opened.frame, reading.columns, by_option)
    except InputError as error:
        raise error.at(file=displayable(name)) from error
    return _selected_pairs(table, opened, file, reading, told)


def _open_sheets(name: str, reading: Reading) -> Opened:
    """The table; of several sheets one below the other, each the rows of a system. Raises: InputError."""
    how = reading.input_format, reading.encoding, reading.max_unpacked
    piped = sys.stdin.buffer.read() if name == "-" else b""

    def opened(sheet: str | None) -> Opened:
        return open_bytes(piped, "-", *how, sheet) if name == "-" else open_table(name, *how, sheet)

    if len(reading.sheet) < 2:
        return opened(*reading.sheet or [None])
    if len(set(reading.sheet)) < len(reading.sheet):
        raise InputError("names a sheet twice; name each once", argument="--sheet")
    parts = [opened(sheet) for sheet in reading.sheet]
    for sheet, part in zip(reading.sheet, parts):
        if set(part.frame.columns) != set(parts[0].frame.columns):
            raise InputError(
                f"the columns of {sheet!r} ({listed(part.frame.columns)}) are not those of "
                f"{reading.sheet[0]!r} ({listed(parts[0].frame.columns)})",
                argument="--sheet",
            )
        if systems := [column for column in part.frame if part_of(column) == "system"]:
            raise InputError(
                f"{sheet!r} has a column {systems[0]}, which names systems, too; read one sheet, or take "
                f"that column out",
                argument="--sheet",
            )
    return Opened(
        pd.concat(
            [part.frame.assign(system=sheet) for sheet, part in zip(reading.sheet, parts)],
            ignore_index=True,
        ),
        parts[0].sha256,
        [
            (f"{file}, sheet {sheet}", row)
            for sheet, part in zip(reading.sheet, parts)
            for file, row in part.places
        ],
        [note for part in parts for note in part.notes],
    )


def _read_lines(name: str | None, reading: Reading) -> Pairs:
    if name:
        raise InputError(
            f"the texts are in files of lines or in {name}, not in both", argument="--source-lines"
        )
    if not (reading.source_lines and reading.output_lines):
        raise InputError("--source-lines and --output-lines are needed both")
    opened = open_lines(
        reading.source_lines,
        reading.output_lines,
        reading.reference_lines,
        reading.encoding,
        reading.max_unpacked,
    )
    files = ", ".join(displayable(Path(file).name) for file in reading.output_lines)
    return _selected_pairs(opened.frame, opened, files, reading)


def _selected_pairs(
    table: pd.DataFrame, opened: Opened, file: str, reading: Reading, told: str = ""
) -> Pairs:
    for note in filter(None, [*opened.notes, told]):
        say(f"tsteval: note: {printable(note)}", file=sys.stderr)
    try:
        table = choose_rows(table, reading.system, reading.limit)
    except InputError as error:
        raise error.at(argument="--system") from error
    return Pairs(
        table,
        {"file": file, "sha256": opened.sha256, "rows": len(table)},
        [opened.places[row] for row in table.index],
        list(opened.frame.columns),
    )


def _checked(name: str, reading: Reading, settings: Settings) -> tuple[Pairs, bool]:
    """A file that holds one system and no mistake, and whether it holds references."""
    pairs = read_pairs(name, reading)
    # what was answered stands in the place of a source
    metrics = () if "source" not in pairs.table and {*INPUTS} & {*pairs.table} else None
    try:
        table = take_rows(pairs.table, settings.target_style, settings.empty, metrics=metrics).table
    except InputError as error:
        raise pairs.located(error) from error
    if (n := table.system.nunique()) > 1:
        raise InputError(f"holds {n} systems; choose one with --system", file=displayable(name))
    return pairs, bool(table.references.map(len).all())


def _completed(table: pd.DataFrame, other: pd.DataFrame, settings: Settings) -> pd.DataFrame:
    """The table with what the other one has and this one leaves to be understood."""
    understood = {"target_style": settings.target_style}
    if "source" in table:
        understood["input"] = table.source
    return table.assign(
        **{name: value for name, value in understood.items() if name in other and name not in table}
    )


def _names(files: Sequence[str]) -> list[str]:
    """What two files' systems are called."""
    names = [
        "piped" if file == "-" else displayable(Path(file.removesuffix(".gz")).stem)
        for file in files
    ]
    names = [displayable(file) for file in files] if names[0] == names[1] else names
    if names[0] == names[1]:
        raise InputError(f"{names[0]} is given twice; name two files")
    return names


def _check_common(table: pd.DataFrame, names: Sequence[str], settings: Settings) -> None:
    """Raise an InputError unless both systems have an output for one source, style and input."""
    metrics = None if "source" in table else ()
    rows = take_rows(table, settings.target_style, settings.empty, metrics=metrics).table
    key = [name for name in SOURCE_KEY if name in rows]
    one, other = (rows.loc[rows.system == name, key] for name in names)
    if one.merge(other, on=key).empty:
        raise InputError(
            "has no source in common with the other file; both must rewrite the same sources, with the same "
            "target_style and input where there are any"
        )


def read_two(
    # two tables, or one that has both systems; none where `reading` names two files of outputs
    files: Sequence[str],
    reading: Reading,
    settings: Settings,  # the style to be reached, and what is done about empty outputs
) -> tuple[
    Pairs, list[str]
]:  # both in one table, whose `source` has the key files; the names of the systems
    """The outputs of two systems for the same sources. Raises: InputError as `read_pairs`, or where they differ."""
    if reading.by_lines or len(files) == 1:
        pairs = read_pairs(files[0] if files else None, reading)
        names = list(dict.fromkeys([*reading.system, *pairs.table.get("system", ())]))
        if len(names) != 2:
            named = ", ".join(printable(str(name), 40) for name in names[:8])
            found = f"{len(names)} ({named})" if names else "1"
            raise InputError(
                f"compare needs two systems, and this has {found}; choose two with --system, name a column "
                "for each with --output-column, or give a second FILE",
                **({"file": displayable(files[0])} if files else {"argument": "--output-lines"}),
            )
        return replace(pairs, source={"files": [pairs.source]}), names
    if len(files) != 2:
        raise InputError(
            "compare needs two systems: name two tables FILE FILE, one that has both, or --source-lines with "
            f"two --output-lines; got {len(files)}"
        )
    names = _names(files)
    (first, second), referenced = zip(*(_checked(file, reading, settings) for file in files))
    lacking = [file for file, there in zip(files, referenced) if not there]
    if len(lacking) == 1:
        raise MissingColumn(
            "there is no column reference, and the other file has one; both need it or neither",
            "reference",
            (first if lacking[0] == files[0] else second).columns,
            by_option("reference"),
            file=displayable(lacking[0]),
        )
    tables = [
        _completed(one.table, other.table, settings).assign(system=name)
        for one, other, name in ((first, second, names[0]), (second, first, names[1]))
    ]
    table = pd.concat(tables, ignore_index=True)
    try:
        _check_common(table, names, settings)
    except InputError as error:
        raise error.at(file=displayable(files[1])) from error
    return Pairs(
        table,
        {"files": [first.source, second.source]},
        [*first.places, *second.places],
        first.columns,
    ), names


def named_metrics(
    lists: Sequence[str]
    | None,  # such as ["bleu:max_order=2,content", "my_metrics:Length"]; None: nothing
) -> list[Metric] | None:
    """The metrics that were asked for, each once; groups are replaced by their metrics. Raises: InputError for a name
    or an option that nobody knows."""
    if lists is None:
        return None
    metrics: list[Metric] = []
    for name in (name for text in lists for name in split_list(text)):
        group = [metric_name for metric_name in METRICS if METRICS[metric_name].question == name]
        for one in group if name in QUESTIONS else [name]:
            metrics.append(_named_metric(one))
    try:
        return chosen_metrics(metrics) if metrics else metrics
    except InputError as error:
        raise error.at(argument="--metrics") from error


def _named_metric(name: str) -> Metric:
    """The metric that a name means. Raises: InputError that suggests what may be meant."""
    head = name.partition(":")[0]
    if ":" not in name and head not in METRICS:
        near = meant(head, [*METRICS, *QUESTIONS])
        raise InputError(
            f"there is no metric called {head!r}{near}; the metrics are {', '.join(METRICS)}; the "
            f"groups are {', '.join(QUESTIONS)}; one of your own is named module:Class",
            argument="--metrics",
        )
    try:
        return find_metric(name)
    except InputError as error:
        if error.argument is None:
            raise error.at(argument="--metrics") from error
        raise error.at(argument=f"--metrics {head}:{error.argument}") from error


def _model_folder(name: str) -> Path:
    """The folder of a style model; of an adapter, its base is not looked for."""
    shipped = packaged_path(name)
    own = from_home(name)
    folders = [folder for folder in (shipped, own) if (folder / STYLE_FILE).is_file()]
    return (
        folders[0]
        if len(folders) == 1 and (folders[0] == own or not set(name) & {"/", os.sep})
        else Path(locate_model(name, StyleClassifier.default_name).location)
    )


def _style_labels(
    name: str,  # of a style model: shipped, a folder, or a Hugging Face model id
) -> list[str]:
    """The styles that a model knows, in the order of its classes. Raises: AssetError if the model cannot be had."""
    folder = _model_folder(name)
    if (folder / STYLE_FILE).is_file():
        return read_json(folder / STYLE_FILE, {"labels": list})["labels"]
    labels = read_json(folder / "config.json").get("id2label") or {0: "LABEL_0", 1: "LABEL_1"}
    return [labels[key] for key in sorted(labels, key=int)]


def _check_styles(
    styles: Sequence[str],  # one a row
    model: str,  # whose styles they should be
    named: bool,  # whether they come from the option --target-style, given or not, rather than the table
    explicit: bool = True,  # whether that option was given
    asked: bool = False,  # whether a score of style was asked for, which needs a style
) -> None:
    """Raise an InputError for a style that nobody named, or that the model does not know; it names the model that
    does."""
    labels = _style_labels(model)
    row = next((row for row, style in enumerate(styles) if find_label(style, labels) is None), None)
    if row is None and not (asked and named and not explicit):
        return
    style = styles[row or 0]
    if named and not explicit:
        raise InputError(
            f"name the style to be reached; those of {model} are {', '.join(labels)}",
            argument="--target-style",
        )
    others = [name for name in shipped_with(style) if name != model]
    remedy = (
        f"; {others[0]} has it: --style-model {others[0]}"
        if others
        else meant(style, labels) or "; name a model that knows it with --style-model"
    )
    raise InputError(
        f"there is no style called {style!r}{remedy}; the styles of {model} are {', '.join(labels)}",
        **({"argument": "--target-style"} if named else {"column": "target_style", "row": row}),
    )


_LEAST_SPACE = 4_000_000  # bytes; a report of a small table takes half a million


def _check_folder(folder: Path) -> None:
    named = f"--output {displayable(str(folder))}"
    if folder.exists() and not folder.is_dir():
        raise InputError(
            f"{named} is a file; name a folder for the results (outputs, one a line, are named by "
            f"--output-lines)"
        )
    above = next(place for place in (folder, *folder.absolute().parents) if place.is_dir())
    try:
        os.rmdir(tempfile.mkdtemp(dir=above, prefix=".tsteval-"))
    except OSError as error:
        raise InputError(
            f"cannot be made or written to ({error.strerror or error})", argument=named
        ) from error
    if (free := shutil.disk_usage(above).free) < _LEAST_SPACE:
        raise InputError(
            f"only {free / 1e6:.1f} MB are free there; make room or name another folder",
            argument=named,
        )


@dataclass(frozen=True)
class Request:
    """What a command was asked to do."""

    settings: Settings
    reading: Reading
    printing: Printing
    metrics: list[Metric] | None  # None: those that follow from the columns
    output: str | None  # folder of the results; None: they are only printed
    explicit: Mapping[str, object]  # the settings that the user chose


def asked(
    arguments: Namespace,  # from the parser
    writes: bool = True,  # whether there will be results
) -> Request:
    """What the command was asked to do. Raises: InputError that names the option that is wrong; AssetError for a model
    that cannot be had."""
    explicit = {
        option.name: value
        for option in options_of(Settings)
        if (value := getattr(arguments, option.name, None)) is not None
    }
    settings = Settings(**explicit)
    output = getattr(arguments, "output", None)
    check_choice(settings.device.partition(":")[0], "device", ("auto", "cpu", "cuda", "mps"))
    metrics = named_metrics(getattr(arguments, "metrics", None))
    if output and writes:
        _check_folder(Path(output))
    for name in filter(None, (settings.classifier, settings.encoder, settings.language_model)):
        # what is shipped or lies here is looked at where it is loaded; of the hub's models one must be told first
        if is_ngram_file(name):
            if not Path(name).is_file():
                raise InputError(f"there is no file {name}", argument="--language-model")
        elif name not in ASSETS and not (packaged_path(name).is_dir() or from_home(name).is_dir()):
            locate_model(name)
    return Request(
        settings, chosen(Reading, arguments), chosen(Printing, arguments), metrics, output, explicit
    )


def score_pairs(
    request: Request,
    pairs: Pairs,
    metrics: Sequence[Metric] | None = None,  # None: those of the request
    baseline: str
    | None = None,  # the system that the others are compared with; None: that of the settings
):  # an `Evaluation`
    """Score a table as it was asked for. Raises: InputError that names the file, row and column, or the option."""
    from tsteval.evaluation import evaluate

    chosen, why = (metrics, "") if metrics else metrics_of(request, pairs)
    chosen = list(chosen)
    keywords = dict(request.explicit) | ({"baseline": baseline} if baseline else {})
    try:
        _check_before(request, pairs, chosen)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ScoreWarning)  # the notes below the table say it
            _rehearse(pairs, chosen, keywords)
            if why:  # said once the table has passed, so that a mistake stays one line
                say(f"tsteval: note: {why}", file=sys.stderr)
            return evaluate(pairs.table, chosen, **keywords, progress=request.printing.progress)
    except InputError as error:
        raise pairs.located(error) from error


def metrics_of(request: Request, pairs: Pairs) -> tuple[list[Metric], str]:
    """The metrics that were named, or those that follow from the columns, with a line that says why."""
    if request.metrics:
        return request.metrics, ""
    defaults = default_metrics(
        pairs.table.columns, asks_for_style(request.settings, request.explicit)
    )
    return defaults.metrics, defaults.why


def _check_before(request: Request, pairs: Pairs, chosen: list[Metric]) -> None:
    """What can be found wrong with the table and the options before a model is loaded."""
    settings = request.settings
    table = take_rows(
        pairs.table, settings.target_style, settings.empty, settings.references_as, metrics=chosen
    ).table
    check_references(chosen, bool(table.references.map(len).all()), pairs.columns)
    asking = [
        metric for metric in chosen if metric.question == "style" and "target_style" in metric.needs
    ]
    for metric in asking:
        own = getattr(metric, "classifier", None)
        _check_styles(
            list(table.target_style),
            own or settings.classifier or StyleClassifier.default_name,
            named="target_style" not in pairs.table,
            explicit="target_style" in request.explicit,
            asked=bool(request.metrics) and not getattr(metric, "target", None),
        )


def _rehearse(pairs: Pairs, chosen: list[Metric], keywords: Mapping) -> None:
    """Score the first row alone, so that a model that cannot be had is found before an hour of work, not after it."""
    from tsteval.evaluation import evaluate

    if len(pairs.table) < 20 or len(chosen) < 2:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            evaluate(pairs.table.head(1), chosen, **{**keywords, "n_boot": 1, "baseline": None})
        except AssetError:
            raise
        except Exception:
            return  # a metric may need more than one row; whatever else is wrong, the whole table tells
