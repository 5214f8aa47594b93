"""`tsteval compare` tells two systems apart, `tsteval check` fails where a score is too low"""

import math
import re
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass

from ..core.checks import InputError, meant
from ..core.display import printable
from ..core.metric import METRICS, Metric, find_metric
from ..report.findings import work_out
from ..report.page import told_notes
from ..report.terminal import comparison_table, say
from ..runs.settings import list_settings
from .app import Command, option, options_of
from .evaluate import found_lines, print_table, scoring_options, write_results
from .request import asked, read_pairs, read_two, score_pairs


@dataclass(frozen=True)
class _Files:
    files: tuple[str, ...] = option(
        "two tables of pairs, one system each; one of them may be -", (), "FILE", flags=()
    )
    output: str | None = option(
        "write the results here too (default: print only)", metavar="FOLDER"
    )


@dataclass(frozen=True)
class _Check:
    file: str | None = option("table of pairs; - reads what is piped in", metavar="FILE", flags=())
    fail_if: tuple[str, ...] = option(
        "such as 'cps<0.8', or 'cps_low<0.8' for an end of its interval; may be repeated",
        (),
        "CONDITION",
        required=True,
    )
    output: str | None = option(
        "write the results here too (default: print only)", metavar="FOLDER"
    )


_OF_A_TABLE = ("format", "percent", "all_scores")  # a check prints none
_LEFT_OUT = ("baseline", *(setting.name for setting in list_settings() if setting.blocks))


def _compare(arguments: Namespace) -> int:
    request = asked(arguments)
    pairs, (a, b) = read_two(arguments.files, request.reading, request.settings)
    result = score_pairs(request, pairs, baseline=b)
    message = (
        write_results(result, pairs.source["files"], request, arguments) if arguments.output else ""
    )
    if request.printing.format != "text":
        print_table(result, request.printing, [*told_notes(result), message])
    else:
        findings = work_out(result, percent=request.printing.percent)
        say(
            comparison_table(
                findings,
                list(findings.headings) if request.printing.all_scores else findings.leading,
            ),
            "",
            *found_lines(findings),
        )
        caption = (
            f"{printable(a, 40)} minus {printable(b, 40)}, the verdict on {printable(a, 40)}, "
            f"{result.pairing(a, b).n} sources; 95% intervals and "
            f"p-values by paired resampling, Holm's correction over the rows. {message}"
        )
        say(caption.rstrip(), *(printable(note, 600) for note in told_notes(result)))
    return 0


compare_command = Command(
    _compare,
    (*options_of(_Files), *scoring_options(_LEFT_OUT)),
    "Compare two systems on the same sources, by paired bootstrap.",
)


@dataclass(frozen=True)
class _Condition:
    """When a check fails: a column's score on one side of a number."""

    # of a metric, or the metric's name for its first column; with _low or _high, an end of its interval
    column: str
    comparison: str  # < | <= | > | >=
    number: float

    def holds(self, value: float) -> bool:
        """Whether the check fails; it does if the value is undefined."""
        sides = {
            "<": value < self.number,
            "<=": value <= self.number,
            ">": value > self.number,
            ">=": value >= self.number,
        }
        return sides[self.comparison] or value != value


_CONDITION = re.compile(
    r"\s*([A-Za-z_]\w*)\s*(<=|>=|<|>)\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*", re.A
)


def _parse_condition(
    text: str,  # such as "cps<0.8"
) -> _Condition:
    """Read a condition. Raises: InputError for anything but a column, a comparison and a number."""
    match = _CONDITION.fullmatch(text)
    if not match or math.isinf(float(match[3])):
        raise InputError(
            "write a column, one of < <= > >=, and a finite number, such as 'cps<0.8'",
            argument=f"--fail-if {text}",
        )
    return _Condition(match[1], match[2], float(match[3]))


def _columns_of(
    conditions: Sequence[_Condition], named: Sequence[Metric]
) -> dict[str, tuple[Metric | type[Metric], str, str]]:
    """What a condition names -> the metric that writes it, the column that is meant, and the end of its interval."""
    columns: dict[str, tuple[Metric | type[Metric], str, str]] = {}
    for metric in (*named, *METRICS.values()):
        for word in (*metric.columns, metric.name):
            column = word if word in metric.columns else metric.columns[0]
            for end in ("", "_low", "_high"):
                columns.setdefault(word + end, (metric, column, end))
    for condition in conditions:
        if condition.column not in columns:
            raise InputError(
                f"no metric writes a column {condition.column!r}{meant(condition.column, columns)}; "
                f"`tsteval metrics` lists them",
                argument="--fail-if",
            )
    return {condition.column: columns[condition.column] for condition in conditions}


def _check(arguments: Namespace) -> int:
    conditions = [_parse_condition(text) for text in arguments.fail_if]
    request = asked(arguments)
    metrics = list(request.metrics or [])
    meant_by = _columns_of(conditions, metrics)
    for kind, *_ in meant_by.values():
        metric = find_metric(kind)
        if metric not in metrics:
            metrics.append(metric)
    pairs = read_pairs(arguments.file, request.reading)
    result = score_pairs(request, pairs, metrics)
    message = write_results(result, pairs.source, request, arguments) if arguments.output else ""
    failed = 0
    for condition in conditions:
        _, column, end = meant_by[condition.column]
        for row in result.summary().to_dict("records"):
            bad = condition.holds(row[column + end])
            failed += bad
            say(
                f"{'FAIL' if bad else 'ok  '}  {condition.column}{condition.comparison}{condition.number:g}  "
                f"{printable(row['system'], 40)}: "
                f"{row[column]:.3f} [{row[f'{column}_low']:.3f}, {row[f'{column}_high']:.3f}], n {row['n']}"
            )
    say(
        *filter(
            None,
            [
                *told_notes(result),
                f"{failed} of {len(conditions) * len(result.systems)} checks failed",
                message,
            ],
        )
    )
    return 1 if failed else 0


check_command = Command(
    _check,
    (*options_of(_Check), *scoring_options((*_LEFT_OUT, *_OF_A_TABLE))),
    "Exit status 1 if a condition holds for any system, 0 if none does, 2 if it could not be found "
    "out. For continuous integration.",
)
