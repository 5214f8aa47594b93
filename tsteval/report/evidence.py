"""Where a metric was held beside people, how far it followed them, and what somebody could have tried first: one table,
`data/evidence.csv`, made by nbs/making/evidence.py

A score may say which outputs people would call better once it follows them more closely than every trivial score
somewhere. A score that was tried on nine sets, in 36 ways in all, leads somewhere by chance alone: with 36 intervals of
95%, about one of their ends is on the wrong side. So a lead counts only by Holm's correction over all that was tried of
that score: sets, what people were asked there, and measures. To lead somewhere at all is the first step of Holm's, which
is Bonferroni's: of k leads one has an interval above 0 whose level is 1 - .05 / k. A thousand resamples cannot give
such an end; it is the half of the 95% interval that looks to 0, made wider as a normal distribution's would be. The
rival is the best of several, turned round where that helps it, on the same outputs, which makes a lead harder to show
and never easier.
"""

import dataclasses
import re
from collections.abc import Collection
from statistics import NormalDist

import pandas as pd

from ..core.assets import packaged_path
from ..core.display import enumerated
from ..core.files import read_once
from ..core.metric import Metric
from .conclusions import LEVEL

MEASURES = {
    "pearson": "r",
    "spearman": "rank correlation",
    "within": "r within systems",
    "systems": "r of systems",
    "source": "rank correlation within a source",
    "auc": "AUC",
    "map": "mean average precision",
    "accuracy": "accuracy",
}
_ASKED = {"overall": "quality", "better_answer": "the better"}  # in a sentence
_FIRST = (
    "pearson",
    "spearman",
    "auc",
    "map",
    "accuracy",
    "source",
    "systems",
    "within",
)  # which one is shown


def _read(path) -> pd.DataFrame:
    return pd.read_csv(path, keep_default_na=False, na_values=[""])


def evidence() -> pd.DataFrame:
    """The whole table: a row a set, criterion, score and measure; its columns are told in nbs/making/evidence.py."""
    return read_once(packaged_path("evidence.csv"), _read).copy()


# options that say what is asked of the rows, and by whose judgement, but not how it is measured
_ASKED_OF_ROWS = ("target", "classifier")


def score_name(
    metric: Metric,
    column: str | None = None,  # one of its columns; None: the first
) -> str:
    """How the table calls a metric's column, with the options that are not the defaults."""
    options = [
        f"{field.name}={getattr(metric, field.name)}"
        for field in dataclasses.fields(metric)
        if field.name not in _ASKED_OF_ROWS and getattr(metric, field.name) != field.default
    ]
    return ":".join([column or metric.columns[0], *[",".join(options)] * bool(options)])


def _fields(signature: str) -> dict[str, str]:
    """The fields of a signature that say how a score is made: not the number of references nor the version."""
    fields = (field.partition(":")[::2] for field in signature.split("|"))
    return {name: value for name, value in fields if name not in ("nrefs", "version")}


def _made_otherwise(
    signature: str,  # of scores
    held: Collection[str],  # signatures of the scores that were held beside people, at least one
) -> str:  # empty: one of them is the same
    """With what scores were made that were held beside people, and not these."""
    own = _fields(signature)
    others = [
        [
            (name, fields.get(name, "none"), own.get(name, "none"))
            for name in {**own, **fields}
            if own.get(name) != fields.get(name)
        ]
        for fields in map(_fields, held)
    ]
    nearest = min(others, key=len)
    models = [part for part in nearest if any("@" in value for value in part[1:])]
    short = [(name, *(value.partition("@")[0] for value in values)) for name, *values in models]
    # by their names, unless no name differs
    shown = [part for part in short if part[1] != part[2]] or models or nearest
    there, here = (
        [f"{part[0].replace('_', ' ')} {part[side]}" for part in shown] for side in (1, 2)
    )
    return f"{enumerated(there)}, not with {enumerated(here)}" if nearest else ""


def _held(
    metric: Metric,
    column: str,  # one of its columns
    signature: str = "",  # of the scores; empty: made with the models of the table
) -> tuple[
    pd.DataFrame, str
]:  # rows of the table; where there are none, why, as it stands behind "since it"
    """What was held beside people of these scores."""
    table = evidence()
    named = table[table.score.str.partition(":")[0].eq(column) & table.criterion.isin(metric.asked)]
    same = _fields(signature)
    made_so = named.signature.map(lambda held: _fields(held) == same, na_action="ignore").eq(True)
    rows = named[named.score == score_name(metric, column)]
    if rows.empty:  # an option may name what is the default anyway
        rows = named[made_so]
    elif signature and rows.signature.notna().any():
        if why := _made_otherwise(signature, rows.signature.dropna().unique()):
            return rows[:0], f"was held beside people with {why}"
        rows = rows[made_so[rows.index] | rows.signature.isna()]
    if len(rows):
        return rows, ""
    options = [
        f"{name}={value}"
        for name, value in metric.chosen_options.items()
        if name not in _ASKED_OF_ROWS
    ]
    if len(named) and options:
        return rows, f"was not held beside people with {enumerated(options)}"
    return rows, "is not shown to follow people"


def _leads(rows: pd.DataFrame) -> bool:
    """Whether one of these leads over a rival is shown, when all of them were looked at."""
    there = rows[rows.lead.notna()]
    if there.empty:
        return False
    wider, usual = (NormalDist().inv_cdf(1 - LEVEL / 2 / k) for k in (len(there), 1))
    low = there.lead - wider / usual * (there.lead - there.lead_low)
    return bool((low > 0).any())


_ANSWERS = "answers|replies|summaries"  # in `texts`: sets whose outputs are made from an input


def not_shown(
    metric: Metric,
    column: str,  # one of its columns
    signature: str = "",  # of the scores; empty: made with the models of the table
    answers: bool = False,  # whether the outputs are made from an input that they do not rewrite
) -> str:  # in words that stand behind "since it"; empty: they may
    """Why a column's scores may not say which outputs people would call better: on no set, or where the outputs are
    made from an input on no such set that was tried, is it shown to follow people more closely than every trivial
    score, when all sets, criteria and measures that were tried are counted."""
    if type(metric).__module__.partition(".")[0] != "tsteval":
        return "is a score of your own, and nothing shows yet that it follows people"
    rows, why = _held(metric, column, signature)
    if why:
        return why
    alike = rows[rows.texts.str.contains(_ANSWERS)]
    if answers and len(alike):
        rows = alike
    if _leads(rows):
        return ""
    where = f", on {enumerated([*dict.fromkeys(rows.texts)])}" if answers and len(alike) else ""
    return f"was never shown to follow people better than {enumerated([*dict.fromkeys(rows.rival.dropna())], 'or')} does{where}"


def beside_people(
    metric: Metric,
    measure: str | None = None,  # of MEASURES; None: the one that says most of single outputs
    # one row a set and criterion: the columns of `evidence`, and beats (whether its lead over the best trivial rival has
    # an interval above 0); none where it was never measured with these options
) -> pd.DataFrame:
    """How closely a metric follows people who were asked what it stands for, the set with the most outputs first."""
    return score_beside_people(score_name(metric), metric.asked, measure)


def score_beside_people(
    score: str,  # as the table calls it
    criteria: Collection[str],  # what people were asked
    measure: str | None = None,  # as for `beside_people`
) -> pd.DataFrame:  # likewise
    """How closely a score follows people who were asked these things."""
    table = evidence()
    rows = table[(table.score == score) & table.criterion.isin(criteria)]
    if measure is not None:
        rows = rows[rows.measure == measure]
    rows = rows.assign(place=rows.measure.map(_FIRST.index)).sort_values("place", kind="stable")
    rows = rows.drop_duplicates(["data_set", "criterion"]).assign(beats=rows.lead_low > 0)
    return rows.sort_values("n", ascending=False, kind="stable").reset_index(drop=True)


def in_words(
    row,  # of `beside_people`
) -> str:
    """One figure beside people as a sentence."""
    figure = f"{MEASURES[row.measure]} {row.value:.2f} [{row.low:.2f}, {row.high:.2f}]"
    asked = _ASKED.get(row.criterion, row.criterion.replace("_", " "))
    of = f"{int(row.systems)} systems, by " if row.measure == "systems" else ""
    sentence = f"{asked} of {of}{int(row.n):,} {row.texts}: {figure}"
    if not isinstance(row.rival, str):
        return sentence
    rival = f"{row.rival} {row.rival_value:.2f}"
    if row.beats:
        return f"{sentence}, better than {rival}"
    worse = row.lead_high < 0
    return f"{sentence}, {'worse than' if worse else 'not told apart from'} {rival}"


def people_lines(
    metric: Metric,
    most: int = 4,  # sets with the most outputs
    signature: str = "",  # of scores that were made with other models, perhaps; empty: with those of the table
) -> list[str]:
    """What is known of a metric beside people, a sentence a set, of what people were asked there that is nearest to what
    it stands for; that nothing is, where it was never measured with these options and models."""
    _, why = _held(metric, metric.columns[0], signature)
    if why.startswith("was held"):
        return [why.removeprefix("was ")]
    rows = beside_people(metric)
    nearest = rows.sort_values(
        "criterion", key=lambda names: names.map(metric.asked.index), kind="stable"
    ).drop_duplicates("data_set")
    rows = nearest.sort_values("n", ascending=False, kind="stable")
    if rows.empty:
        return ["not shown to follow people with these options"]
    lines = [in_words(row) for row in rows.head(most).itertuples()]
    if len(rows) > most:
        lines.append(f"and {len(rows) - most} more in tsteval.report.evidence.beside_people")
    return lines


def plain(text: str) -> str:
    """A sentence of `people_lines` without its interval, for where there is little room."""
    return re.sub(r" \[[^\]]*\]", "", text)
