"""`tsteval evaluate`: scores a table, prints what it found, and writes it down"""

import json
import sys
from argparse import Namespace
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..core.checks import InputError
from ..core.display import printable
from ..core.files import check_free, check_unread, write_set
from ..core.metric import Metric
from ..report.findings import Findings, work_out
from ..report.page import told_notes
from ..report.terminal import per_pair_csv, render_table, say
from ..runs.defaults import asks_for_style
from ..runs.scoring import check_baseline, check_references
from ..runs.settings import Settings, list_settings
from ..tables.data_check import take_rows
from ..tables.formats import PAIR_COLUMNS
from ..tables.tables import choose_rows
from .app import Command, Option, Printing, chosen, option, options_of
from .costs import cost_lines
from .request import Pairs, Reading, Request, asked, metrics_of, read_pairs, score_pairs


@dataclass(frozen=True)
class _Metrics:
    metrics: tuple[str, ...] = option(
        "comma-separated names or groups (style, content, naturalness, reference), see "
        "`tsteval metrics`, with options as in bleu:max_order=2,smoothing=floor, or module:Class "
        "for one of your own; may be repeated (default: those that the columns ask for)",
        metavar="LIST",
    )


@dataclass(frozen=True)
class _Own:
    file: str | None = option(
        "table of pairs: .csv, .tsv, .jsonl, .json, .parquet or .xlsx, perhaps with .gz; a "
        "folder of such files, or one that `save_to_disk` of datasets wrote; - reads what is "
        "piped in",
        metavar="FILE",
        flags=(),
    )
    output: str = option("where the results go", "tsteval-results", "FOLDER")
    dry_run: bool = option(
        "say what the metrics would cost and how long they would take; nothing is scored or written",
        False,
    )


_BLOCKS = tuple(
    setting.name for setting in list_settings() if setting.blocks
)  # settings that need --engine


def scoring_options(
    without: Iterable[str] = _BLOCKS,  # options to leave out
) -> tuple[Option, ...]:
    """The options of a command that scores a table."""
    return (
        *options_of(_Metrics),
        *options_of(Settings, without),
        *options_of(Reading),
        *options_of(Printing, without),
    )


_OPTIONS = (*options_of(_Own), *scoring_options(without=()))


def _summary_settings(request: Request, metrics: Iterable[Metric]) -> dict[str, Any]:
    """What a summary says of the settings."""
    settings = request.settings
    options = {metric.name: metric.chosen_options for metric in metrics}
    return {
        "metrics": list(options),
        "options": {name: chosen for name, chosen in options.items() if chosen},
        "target_style": settings.target_style,
        "limit": request.reading.limit,
        "n_boot": settings.n_boot,
        "seed": settings.seed,
    }


def _summary_json(result, source: Any, settings: Mapping) -> str:
    from tsteval.evaluation import versions

    return json.dumps(
        {
            "input": source,
            "settings": settings,
            **work_out(result).summary(),
            "baseline": result.baseline or result.systems[0],
            "signatures": result.signatures,
            "row_signatures": result.row_signatures,
            "models": result.models,
            "versions": versions(),
        },
        indent=1,
        ensure_ascii=False,
        allow_nan=False,
    )


def write_files(
    files: Mapping[str, str],  # name -> content
    arguments: Namespace,  # its `output` is the folder; `written` is set, for what is said of an interrupt
) -> str:  # the line that says where they are
    """Write results, all of them or none. Raises: InputError that names the file."""
    try:
        write_set(arguments.output, files)
    except OSError as error:
        named = f"{error.filename}: " if error.filename in files else ""
        raise InputError(
            f"{named}cannot be written ({error.strerror or error}); nothing was changed",
            argument=f"--output {arguments.output}",
        ) from error
    arguments.written = printable(arguments.output)
    return f"Written to {arguments.written}: {', '.join(files)}"


def write_results(
    result,  # an `Evaluation`
    source: Any,  # what the summary says of the input
    request: Request,
    arguments: Namespace,
) -> str:  # the line that says where they are
    """Write scores, summary and reports of an evaluation."""
    from tsteval.evaluation import report_files

    settings = _summary_settings(request, result.metrics)
    files = {
        "per_pair.csv": per_pair_csv(result, request.printing.csv_safe),
        "summary.json": _summary_json(result, source, settings),
    }
    for format in request.printing.report:
        files |= report_files(result, format, source=_named(source))
    return write_files(files, arguments)


def _named(source: Any) -> str:
    """What the rows are called in a report."""
    if isinstance(source, list):
        return " and ".join(filter(None, map(_named, source)))
    return (
        str(source.get("file") or source.get("pairs") or "")
        if isinstance(source, dict)
        else str(source or "")
    )


_LONGEST = 600  # characters of a line below the table; a system may be called by a whole text


def found_lines(
    findings: Findings,
) -> list[str]:
    """What was found and what not to believe, a line each."""
    lines = [
        findings.overall,
        *(conclusion.text for conclusion in findings.conclusions),
        findings.unsettled,
        *(f"doubt: {text}" for text in findings.doubts),
    ]
    return [printable(line, _LONGEST) for line in lines if line]


def print_table(
    result,  # an `Evaluation`
    printing: Printing,
    notes: Iterable[str],  # lines below the table
) -> None:
    """Print the scores of systems, and what is told of them."""
    findings = work_out(result, percent=printing.percent)
    text = render_table(findings, printing.format, printing.csv_safe, printing.all_scores)
    lines = [printable(line, _LONGEST) for line in notes if line]
    if len(result.systems) > 1:
        lines.append(
            "Differences by paired resampling, p-values corrected by Holm over systems and scores."
            if findings.comparisons
            else "Not compared: the systems did not rewrite the same sources."
        )
    if printing.format == "text":
        say(*found_lines(findings), f"\n{text}\n", *lines)
    else:
        say(text)
        say(*found_lines(findings), *lines, file=sys.stderr)


def _run(arguments: Namespace) -> int:
    own = chosen(_Own, arguments)
    arguments.output = own.output
    request = asked(arguments, writes=not own.dry_run)
    names = ["per_pair.csv", "summary.json"]
    for name in names:
        check_unread(Path(arguments.output) / name, [arguments.file])
    check_free(arguments.output, names)  # before hours of scoring
    if _in_blocks(request, arguments):
        return (_say_costs_in_blocks if own.dry_run else _run_in_blocks)(request, arguments)
    pairs = (
        read_pairs(arguments.file, request.reading)
        if arguments.file or request.reading.by_lines
        else _demonstration(request)
    )
    systems = map(str, pairs.table["system"]) if "system" in pairs.table else ["output"]
    check_baseline(
        request.settings.baseline, [*systems, *filter(None, [request.settings.references_as])]
    )
    if own.dry_run:
        return _say_costs(request, pairs)
    result = score_pairs(request, pairs)
    message = write_results(result, pairs.source, request, arguments)
    print_table(
        result, request.printing, [*told_notes(result), f"95% intervals in brackets. {message}"]
    )
    return 0


def _say_costs(request: Request, pairs: Pairs) -> int:
    """What each metric would cost, a line each, and how long all would take."""
    metrics, why = metrics_of(request, pairs)
    settings = request.settings
    try:
        table = take_rows(
            pairs.table,
            settings.target_style,
            settings.empty,
            settings.references_as,
            metrics=metrics,
        ).table
        check_references(metrics, bool(table.references.map(len).all()), pairs.columns)
    except InputError as error:
        raise pairs.located(error) from error
    if why:
        say(f"tsteval: note: {why}", file=sys.stderr)
    say(*(printable(line, _LONGEST) for line in cost_lines(metrics, table, len(table))))
    return 0


def _say_costs_in_blocks(request: Request, arguments: Namespace) -> int:
    """The same of a table that is scored block by block, by its first rows."""
    from ..runs.run import find_engine, plan_table
    from ..tables.blocks import read_batches

    settings = request.settings
    find_engine(settings)
    planned = plan_table(
        arguments.file, request.metrics, styled=asks_for_style(settings, request.explicit)
    )
    for line in planned.told:
        say(f"tsteval: note: {printable(line, _LONGEST)}", file=sys.stderr)
    names = planned.names
    first = next(read_batches(arguments.file)).reindex(columns=[*names.values()])
    table = take_rows(
        first.set_axis([*names], axis=1),
        settings.target_style,
        settings.empty,
        metrics=planned.metrics,
    ).table
    lines = cost_lines(planned.metrics, table, planned.survey.n_rows)
    say(*(printable(line, _LONGEST) for line in lines))
    return 0


_SHOWN = ("copy", "delete", "human")  # systems of the demonstration


def _demonstration(request: Request) -> Pairs:
    """The embedded test pairs with two baselines and the human version, as they were written once: no model is needed
    to read them."""
    from tsteval.rewriting import load_rewrites

    table = load_rewrites().rename(columns={"target": "reference"})
    table = table.assign(target_style=request.settings.target_style)
    table = choose_rows(
        table[table.system.isin(_SHOWN)].reset_index(drop=True), request.reading.system, None
    )
    table = (
        table.groupby("system", sort=False)
        .head(request.reading.limit or len(table))
        .reset_index(drop=True)
    )
    return Pairs(
        table, {"file": None, "pairs": "embedded npov_pairs, test split", "rows": len(table)}
    )


_WHOLE = (
    "sheet",
    "limit",
    "system",
    "input_format",
    "encoding",
    "source_lines",
    "output_lines",
    "reference_lines",
    *(f"{part}_column" for part in (*PAIR_COLUMNS, "reference")),
)


def _in_blocks(request: Request, arguments: Namespace) -> bool:
    """Whether the table is scored block by block. Raises: InputError for options that do not go together."""
    if "engine" not in request.explicit:
        for setting in list_settings():
            if setting.blocks and setting.name in request.explicit:
                raise InputError(f"{setting.flag} needs --engine")
        return False
    for cli_option in _OPTIONS:
        if cli_option.name in _WHOLE and getattr(arguments, cli_option.name) not in (
            None,
            cli_option.default,
        ):
            raise InputError(f"{cli_option.flags[-1]} cannot be used with --engine")
    if arguments.file in (None, "-"):
        raise InputError("--engine needs a FILE or folder that can be read more than once")
    return True


def _run_in_blocks(request: Request, arguments: Namespace) -> int:
    from tsteval.evaluation import report_files
    from tsteval.scale import evaluate_table, summary_json

    try:
        result = evaluate_table(
            arguments.file,
            arguments.output,
            request.metrics,
            **request.explicit,
            progress=request.printing.progress,
        )
    except KeyboardInterrupt:
        done = len(list(Path(arguments.output).glob("parts/part-*.parquet")))
        say(
            f"tsteval: stopped; {done} finished batches are kept in {printable(arguments.output)}, and the same "
            f"command goes on from there",
            file=sys.stderr,
        )
        return 130
    settings = _summary_settings(request, result.metrics)
    files = {"summary.json": summary_json(result, settings)}
    for format in request.printing.report:
        files |= report_files(result, format)
    message = write_files(files, arguments)
    skipped = (
        f" Rows that were refused and left out: {len(result.skipped):,}; summary.json lists them."
    )
    way = "95% intervals" + " by Poisson bootstrap" * (result.bootstrap == "Poisson")
    print_table(
        result,
        request.printing,
        [
            *told_notes(result),
            f"{way} in brackets.{skipped if len(result.skipped) else ''} {message}, parts",
        ],
    )
    return 0


evaluate_command = Command(
    _run,
    _OPTIONS,
    "Score outputs. Without FILE: the embedded test pairs, two baselines and the human version.",
)
