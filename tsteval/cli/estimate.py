"""`tsteval estimate` tells the mean rating of all outputs from the ratings of a few and the scores of all"""

import math
import re
from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from ..core.checks import InputError, check_number, meant
from ..core.display import number, printable
from ..core.files import file_stem
from ..report.conclusions import p_text
from ..report.terminal import aligned, csv_text, say
from .app import Command, chosen, option, options_of
from .evaluate import write_files


@dataclass(frozen=True)
class _Estimate:
    ratings: str | None = option(
        "the folder of `tsteval rate`, or a table: system, source, output, criterion, rating",
        metavar="RATINGS",
        flags=(),
        required=True,
    )
    results: str | None = option(
        "the folder of `tsteval evaluate`, or a table with system, source, output and scores",
        metavar="RESULTS",
        flags=(),
        required=True,
    )
    criterion: str | None = option("only this one (default: each that was rated)")
    scores: str | None = option(
        "columns to use (default: the first of each metric, or all numbers of a table)",
        metavar="LIST",
    )
    scale: str | None = option(
        "lowest and highest rating (default: of the sheets, else the lowest and highest given)",
        metavar="LOW-HIGH",
    )
    level: float = option("of the intervals", 0.95, "X")
    plan: float | None = option("how many ratings an interval of this width takes", metavar="WIDTH")
    unfinished: bool = option("take sheets in which ratings are missing", False)
    output: str | None = option("write the tables here too (default: print only)", metavar="FOLDER")


def _scores(name: str, asked: str | None) -> tuple[pd.DataFrame, list[str]]:
    """A table of scored outputs, and the scores to use."""
    from tsteval.core.metric import METRICS
    from tsteval.people.estimates import score_names
    from tsteval.runs.opened import read_results
    from tsteval.tables.formats import FileError
    from tsteval.tables.tables import read_table

    if Path(name).is_dir():
        results = read_results(name)
        table = results.per_pair
        metrics = (results.metadata.get("settings") or {}).get("metrics", ())
        usual = [METRICS[metric].columns[0] for metric in metrics if metric in METRICS]
    else:
        try:
            table = read_table(name)
            usual = []
        except InputError as error:
            raise FileError(f"{name}: {error}") from error
        numbers = {column: pd.to_numeric(table[column], errors="coerce") for column in table}
        table = table.assign(
            **{
                column: values
                for column, values in numbers.items()
                if values.notna().sum() >= table[column].astype(str).str.strip().ne("").sum() > 0
            }
        )
    columns = score_names(table)
    named = [part.strip() for part in asked.split(",")] if asked else []
    names = named or [column for column in usual if column in columns] or columns
    if strange := [column for column in names if column not in columns]:
        raise InputError(
            f"there is no column of numbers called {strange[0]!r}{meant(strange[0], columns)}; there are "
            f"{', '.join(columns) or 'none'}",
            argument="--scores",
        )
    return table, names


def _scale(text: str | None, ratings: str) -> tuple[float, float] | None:
    """The scale that was told, by option or by the key beside the sheets."""
    from tsteval.people.sheets import KEY_FILE, read_key

    if text is None:
        key = Path(ratings) / KEY_FILE
        return tuple(map(float, read_key(key).scale)) if key.is_file() else None
    match = re.fullmatch(r"\s*(-?\d+(?:\.\d+)?)\s*-\s*(-?\d+(?:\.\d+)?)\s*", text)
    if not match or float(match[1]) >= float(match[2]):
        raise InputError(
            f"write two numbers with a hyphen, the lower one first, such as 1-5; got {text!r}",
            argument="--scale",
        )
    return float(match[1]), float(match[2])


def _span(row, digits: int = 2) -> str:
    return f"[{number(row.low, digits, 'none')}, {number(row.high, digits, 'none')}]"


def _told_table(frame: pd.DataFrame) -> str:
    """Estimates for a terminal."""
    rows = list(frame.itertuples())
    columns = {
        "": [printable(row.system, 40) for row in rows],
        "mean rating": [f"{row.mean:.2f} {_span(row)}" for row in rows],
        "ratings alone": [f"{row.mean_of_ratings:.2f}" for row in rows],
        "rated": [f"{row.n_rated:,}" for row in rows],
        "of": [f"{row.n_scored:,}" for row in rows],
        "r": [f"{row.r:.2f}" for row in rows],
        "worth": [number(row.labels_worth, 0, "none") for row in rows],
    }
    return aligned([[name, *cells] for name, cells in columns.items()])


def _told_difference(row, level: float) -> str:
    """Which is rated above the other, or that they are not told apart."""
    a = printable(row.a, 40)
    b = printable(row.b, 40)
    if math.isnan(row.p_holm):
        return f"{a} and {b}: too few ratings to tell them apart."
    estimate = f"{number(row.difference, 2)} {_span(row)} ({p_text(row.p_holm)})."
    if row.p_holm > 1 - level:
        return f"{a} and {b} are not told apart: {a} minus {b} is {estimate}"
    return f"{a} is rated {'above' if row.difference > 0 else 'below'} {b}: {estimate}"


def _told_plan(estimates: dict, width: float, level: float) -> str:
    """How many outputs of each system have to be rated, of those that were scored."""
    from tsteval.people.estimators import ratings_needed

    entries = []
    for system, one in estimates.items():
        needed = ratings_needed(one, width, level) if one.error > 0 else math.nan
        entries.append(
            f"{printable(system, 40)} "
            + (
                "cannot be told"
                if math.isnan(needed)
                else "out of reach with so few scored outputs"
                if math.isinf(needed)
                else f"{needed:,.0f} of its {one.n_scored:,}"
                if needed <= one.n_scored
                else f"{needed:,.0f}, more than its {one.n_scored:,}"
            )
        )
    return (
        f"Outputs that have to be rated, by as many people each as now, for an interval {width:g} wide: "
        f"{'; '.join(entries)}."
    )


def _estimate(arguments: Namespace) -> int:
    from tsteval.people.estimates import (
        cautions,
        difference_frame,
        estimate_frame,
        estimate_systems,
        join_ratings,
        shown_texts,
    )
    from tsteval.people.study import read_study

    options = chosen(_Estimate, arguments)
    files = {}
    check_number(options.level, "--level", 0, 1, above=True, below=True)
    if options.plan is not None:
        check_number(options.plan, "--plan", 0, above=True)
    ratings = read_study([options.ratings], unfinished=options.unfinished).ratings
    scale = _scale(options.scale, options.ratings)
    table, names = _scores(options.results, options.scores)
    rated = list(dict.fromkeys(ratings.criterion))
    if options.criterion and options.criterion not in rated:
        raise InputError(
            f"nobody rated {options.criterion!r}{meant(options.criterion, rated)}; there are "
            f"{', '.join(rated)}",
            argument="--criterion",
        )
    for criterion in [options.criterion] if options.criterion else rated:
        some = shown_texts(ratings[ratings.criterion == criterion])
        joined = join_ratings(some, shown_texts(table))
        estimates = estimate_systems(joined, names, options.level, scale)
        frame = estimate_frame(estimates)
        differences = difference_frame(joined, names, options.level, scale)
        say(
            f"\n{printable(criterion, 40)}, by {', '.join(names) or 'the ratings alone'}\n",
            _told_table(frame),
            "",
            *(_told_difference(row, options.level) for row in differences.itertuples()),
            *([_told_plan(estimates, options.plan, options.level)] if options.plan else []),
            *cautions(some, joined, names, estimates, scale),
        )
        files |= {
            f"{file_stem(criterion)}_estimates.csv": csv_text(frame),
            f"{file_stem(criterion)}_differences.csv": csv_text(differences),
        }
    say(
        f"\n{options.level:.0%} intervals for outputs like these, in brackets. worth: how many ratings without scores "
        "would tell as much. p-values corrected by Holm. This holds if no score was chosen or trained on the ratings."
    )
    if options.output:
        say(write_files(files, arguments))
    return 0


estimate_command = Command(
    _estimate,
    options_of(_Estimate),
    "The mean rating that all outputs of each system would get, from the ratings of some and "
    "the scores of all, and which systems differ. Its intervals rest on the ratings, not on the "
    "scores.",
)
