"""Where a metric was held beside people, how far it followed them, and what somebody could have tried first: one table,
`data/evidence.csv`, made by nbs/making/evidence.py"""

import dataclasses
import re
from collections.abc import Collection

import pandas as pd

from ..core.assets import packaged_path
from ..core.display import enumerated
from ..core.files import read_once
from ..core.metric import Metric

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


def _how(signature: str) -> set[str]:
    """The fields of a signature that say how a score is made: not the number of references nor the version."""
    fields = signature.split("|")
    return {field for field in fields if field.partition(":")[0] not in ("nrefs", "version")}


_ANSWERS = "answers|replies|summaries"  # in `texts`: sets whose outputs are made from an input


def not_shown(
    metric: Metric,
    column: str,  # one of its columns
    signature: str = "",  # of the scores; empty: made with the models of the table
    answers: bool = False,  # whether the outputs are made from an input that they do not rewrite
) -> str:  # in words that stand behind "since it"; empty: they may
    """Why a column's scores may not say which outputs people would call better: on no set, or where the outputs are
    made from an input on no such set that was tried, is it shown to follow people more closely than every trivial
    score. A lead is shown where its interval lies above 0, over outputs or systems."""
    if type(metric).__module__.partition(".")[0] != "tsteval":
        return "is a score of your own, and nothing shows yet that it follows people"
    table = evidence()
    rows = table[(table.score == score_name(metric, column)) & table.criterion.isin(metric.asked)]
    signatures = rows.signature.dropna()
    if signature and len(signatures) and _how(signature) not in list(map(_how, signatures)):
        rows = rows[:0]
    if rows.empty:
        if (table.score.str.partition(":")[0] == column).any():
            return "was held beside people with other options or models alone"
        return "is not shown to follow people"
    alike = rows[rows.texts.str.contains(_ANSWERS)]
    if answers and len(alike):
        rows = alike
    if (rows.lead_low > 0).any():
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
) -> list[str]:
    """What is known of a metric beside people, a sentence a set, of what people were asked there that is nearest to what
    it stands for; that nothing is, where it was never measured."""
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
