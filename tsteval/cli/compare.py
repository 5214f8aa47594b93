"""`tsteval compare` tells two systems apart, `tsteval check` fails where a score is too low"""

import math
import re
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ..core.checks import InputError, meant
from ..core.display import printable
from ..core.metric import METRICS, Metric, find_metric
from ..core.resample import FEWEST
from ..report.findings import work_out
from ..report.page import told_notes
from ..report.terminal import comparison_table, say
from ..runs.settings import list_settings
from .app import Command, chosen, option, options_of
from .evaluate import found_lines, print_table, scoring_options, write_results
from .request import Pairs, Request, asked, metrics_of, read_pairs, read_two, score_pairs


@dataclass(frozen=True)
class _Files:
    files: tuple[str, ...] = option(
        "two tables of pairs, one system each, or one that has both; one may be -",
        (),
        "FILE",
        flags=(),
    )
    output: str | None = option(
        "write the results here too (default: print only)", metavar="FOLDER"
    )
    fail_if: tuple[str, ...] = option(
        "exit status 1 where it holds of the first table: 'cps fell', where all of the interval of its difference from "
        "the second lies below zero; 'ter rose'; or as for check, 'cps<0.8'; may be repeated",
        (),
        "CONDITION",
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
    conditions = [_parse_condition(text) for text in chosen(_Files, arguments).fail_if]
    request = asked(arguments)
    pairs, (a, b) = read_two(arguments.files, request.reading, request.settings)
    metrics, meant_by = _metrics_of_conditions(conditions, request, pairs)
    result = score_pairs(request, pairs, metrics, baseline=b)
    message = (
        write_results(result, pairs.source["files"], request, arguments) if arguments.output else ""
    )
    if request.printing.format != "text":
        print_table(result, request.printing, [*told_notes(result), message])
    else:
        findings = work_out(result, percent=request.printing.percent)
        say(
            *found_lines(findings),
            "",
            comparison_table(
                findings,
                list(findings.headings) if request.printing.all_scores else findings.leading,
            ),
            "",
        )
        caption = (
            f"{printable(a, 40)} minus {printable(b, 40)}, the verdict on {printable(a, 40)}, "
            f"{result.pairing(a, b).n} sources; 95% intervals; "
            f"p-values by paired resampling, Holm's correction over the rows. {message}"
        )
        say(caption.rstrip(), *(printable(note, 600) for note in told_notes(result)))
    if not conditions:
        return 0
    file = None if request.printing.format == "text" else sys.stderr
    failed = 0
    for condition in conditions:
        _, column, end = meant_by[condition.column]
        bad, line = (
            _said_change(condition, column, result.compare(a, b))
            if condition.changes
            else _said_score(condition, column, end, _row_of(result, a))
        )
        failed += bad
        if bad and column in result.unfit:
            line += f"; no verdict on the texts, since {column} {result.unfit[column]}"
        say(line, file=file)
    say(f"{failed} of {len(conditions)} checks failed", file=file)
    return 1 if failed else 0


def _row_of(result, system: str) -> dict:
    return next(row for row in result.summary().to_dict("records") if row["system"] == system)


def _metrics_of_conditions(
    conditions: Sequence["_Condition"], request: Request, pairs: Pairs
) -> tuple[list[Metric] | None, dict]:
    """The metrics to score, those among them that only a condition names; what each condition means."""
    if not conditions:
        return None, {}
    metrics, why = metrics_of(request, pairs)
    if why:
        say(f"tsteval: note: {why}, and what --fail-if names", file=sys.stderr)
    return _with_metrics(list(metrics), conditions)


def _with_metrics(
    metrics: list[Metric], conditions: Sequence["_Condition"]
) -> tuple[list[Metric], dict]:
    """The metrics with those that only a condition names; what each condition means."""
    meant_by = _columns_of(conditions, metrics)
    for kind, *_ in meant_by.values():
        metric = find_metric(kind)
        if metric not in metrics:
            metrics.append(metric)
    return metrics, meant_by


compare_command = Command(
    _compare,
    (*options_of(_Files), *scoring_options(_LEFT_OUT)),
    "Compare two systems on the same sources, by paired bootstrap. With --fail-if, exit status 1 if a condition holds "
    "of the first.",
)


_CHANGES = {"fell": "lower", "rose": "higher"}  # what a score did -> the end that it moved to


@dataclass(frozen=True)
class _Condition:
    """When a check fails: a column's score on one side of a number, or moved away from its good end."""

    text: str  # as it was written
    # of a metric, or the metric's name for its first column; with _low or _high, an end of its interval
    column: str
    comparison: str  # < | <= | > | >= | fell | rose
    number: float  # NaN of a change

    @property
    def changes(self) -> bool:
        """Whether it is about a difference of two systems."""
        return self.comparison in _CHANGES

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
    r"\s*([A-Za-z_]\w*)\s*(?:(<=|>=|<|>)\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)|\s(fell|rose))\s*",
    re.A,
)


def _parse_condition(
    text: str,  # such as "cps<0.8" or "cps fell"
) -> _Condition:
    """Read a condition. Raises: InputError for anything but a column, and a comparison with a number or a change."""
    match = _CONDITION.fullmatch(text)
    if not match or math.isinf(float(match[3] or 0)):
        raise InputError(
            "write a column, one of < <= > >=, and a finite number, such as 'cps<0.8'; or of two tables 'cps fell' or "
            "'ter rose'",
            argument=f"--fail-if {text}",
        )
    number = float(match[3] or "nan")
    shown = f"{match[1]} {match[4]}" if match[4] else f"{match[1]}{match[2]}{number:g}"
    return _Condition(shown, match[1], match[2] or match[4], number)


def _check_change(condition: _Condition, metric: Metric | type[Metric], end: str) -> None:
    """Raise an InputError for a change that would be none for the worse."""
    if not condition.changes:
        return
    if end:
        raise InputError(
            f"the change is that of the score itself: write '{condition.column.removesuffix(end)} "
            f"{condition.comparison}'",
            argument=f"--fail-if {condition.text}",
        )
    if metric.better == _CHANGES[condition.comparison]:
        other = next(word for word in _CHANGES if word != condition.comparison)
        raise InputError(
            f"of {condition.column} the {metric.better} is the better, so this would fail where the texts got better; "
            f"write '{condition.column} {other}'",
            argument=f"--fail-if {condition.text}",
        )


def _said_change(
    condition: _Condition,
    column: str,
    differences: pd.DataFrame,  # the first system minus the second
) -> tuple[bool, str]:
    """Whether the check fails, and the line that says so: it does where there are too few sources to tell."""
    row = differences[differences.metric == column].iloc[0]
    low, high = float(row["low"]), float(row["high"])
    few = bool(row["n"] < FEWEST)
    bad = few or (not high >= 0 if condition.comparison == "fell" else not low <= 0)
    past = {"fell": "fallen", "rose": "risen"}[condition.comparison]
    told = (
        f"FAIL  {condition.text}" if bad else f"ok    {condition.column} not shown to have {past}"
    )
    return bad, (
        f"{told}  {printable(row['a'], 40)} minus {printable(row['b'], 40)}: "
        f"{row['difference']:.3f} [{low:.3f}, {high:.3f}], n {row['n']}" + ", too few to tell" * few
    )


def _said_score(
    condition: _Condition,
    column: str,
    end: str,
    row: Mapping[str, Any],  # of a system's summary
) -> tuple[bool, str]:
    """Whether the check fails, and the line that says so."""
    bad = condition.holds(row[column + end])
    low, high = row[f"{column}_low"], row[f"{column}_high"]
    score = "undefined" if row[column] != row[column] else f"{row[column]:.3f}"
    interval = "no interval" if low != low else f"[{low:.3f}, {high:.3f}]"  # not a number: too few
    return bad, (
        f"{'FAIL' if bad else 'ok  '}  {condition.text}  {printable(row['system'], 40)}: "
        f"{score} {interval}, n {row['n']}"
    )


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
        metric, _, end = columns[condition.column]
        _check_change(condition, metric, end)
    return {condition.column: columns[condition.column] for condition in conditions}


def _check(arguments: Namespace) -> int:
    conditions = [_parse_condition(text) for text in arguments.fail_if]
    if changes := [condition.text for condition in conditions if condition.changes]:
        raise InputError(
            f"a change needs two systems: tsteval compare NEW OLD --fail-if '{changes[0]}'",
            argument=f"--fail-if {changes[0]}",
        )
    request = asked(arguments)
    metrics, meant_by = _with_metrics(list(request.metrics or ()), conditions)
    pairs = read_pairs(arguments.file, request.reading)
    result = score_pairs(request, pairs, metrics)
    message = write_results(result, pairs.source, request, arguments) if arguments.output else ""
    failed = 0
    for condition in conditions:
        _, column, end = meant_by[condition.column]
        for row in result.summary().to_dict("records"):
            bad, line = _said_score(condition, column, end, row)
            failed += bad
            say(line)
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
