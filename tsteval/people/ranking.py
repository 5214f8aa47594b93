"""Which metric follows people most closely: the table of correlations of many metrics, and its forest plot"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from tsteval.people.coefficients import (
    coefficients,
    fisher_ends,
    partial_of,
    weighted_pearson,
    within_coefficients,
)

from ..core.checks import InputError, check_choice
from ..core.resample import resample_counts
from ..report.charts import Panel, ScoreInterval, panels_chart

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KEYS = ("data_set", "system", "item", "source_id")
LENGTH = "number of words"  # the baseline's name in the table
COLUMNS = ("pearson", "spearman", "partial", "within")


def agreement_table(
    ratings: pd.DataFrame,  # as `load_ratings` gives it: one row an output and criterion
    # one row an output: some of KEYS, and a column of numbers a metric; None: columns of `ratings`
    scores: pd.DataFrame | None = None,
    criterion: str = "content",  # style | content | naturalness, or a word of the study's own
    *,
    metrics: Sequence[str] | None = None,  # which columns of numbers; None: all of `scores`
    n_boot: int = 1000,  # bootstrap resamples
    seed: int = 0,  # of the random draws
    # data_set, metric, n, sources, systems, and for each of COLUMNS its value, <column>_low, <column>_high
) -> pd.DataFrame:
    """How closely each metric follows people's ratings of one criterion, a row a data set and metric.

    Raises: InputError for a criterion that nobody rated, scores that fit no rated output or several, or metrics that
    are not there.
    """
    names = _metric_names(ratings, scores, metrics)
    rated = _joined(ratings, scores, criterion, names)
    if "output" in rated:
        rated = rated.assign(**{LENGTH: [len(text.split()) for text in rated.output]})
        names = [LENGTH, *names]
    parts = [
        _one_set(part, names, n_boot, seed).assign(data_set=name)
        for name, part in rated.groupby("data_set", sort=False)
    ]
    table = pd.concat(parts, ignore_index=True)
    return table[["data_set", *(column for column in table.columns if column != "data_set")]]


def _joined(
    ratings: pd.DataFrame, scores: pd.DataFrame | None, criterion: str, names: list[str]
) -> pd.DataFrame:
    """Rated outputs of one criterion with their scores."""
    there = list(dict.fromkeys(ratings["criterion"]))
    if criterion not in there:
        raise InputError(
            f"nobody rated {criterion!r}; the criteria are {', '.join(map(str, there))}"
        )
    rated = ratings[(ratings["criterion"] == criterion) & ratings["rating"].notna()]
    for key, value in (("data_set", "ratings"), ("system", "system"), ("source_id", None)):
        if key not in rated:
            rated = rated.assign(**{key: np.arange(len(rated)) if value is None else value})
    if scores is None:
        return rated
    keys = [key for key in KEYS if key in ratings and key in scores]
    if not keys:
        raise InputError(
            f"scores need at least one of the columns {', '.join(KEYS)} to be joined with the ratings"
        )
    if scores.duplicated(keys).any():
        row = int(scores.duplicated(keys).to_numpy().argmax())
        raise InputError(
            f"a second row with the same {', '.join(keys)}", argument="scores", row=row
        )
    columns = [column for column in rated if column in (*KEYS, "rating", "output", "criterion")]
    joined = rated[columns].merge(scores[[*keys, *names]], on=keys, how="inner")
    if joined.empty:
        raise InputError(f"no rated output has scores: no row agrees in {', '.join(keys)}")
    return joined


def _metric_names(ratings: pd.DataFrame, scores: pd.DataFrame | None, metrics) -> list[str]:
    if metrics is None:
        if scores is None:
            raise InputError(
                "without scores, say in metrics which columns of the ratings are metrics"
            )
        return [
            name
            for name in scores.columns
            if name not in KEYS and pd.api.types.is_numeric_dtype(scores[name])
        ]
    table = ratings if scores is None else scores
    for name in metrics:
        if name not in table or not pd.api.types.is_numeric_dtype(table[name]):
            raise InputError(f"there is no column of numbers {name!r} among the scores")
    return list(metrics)


def _one_set(rated: pd.DataFrame, names: list[str], n_boot: int, seed: int) -> pd.DataFrame:
    """The rows of one data set."""
    sources, systems = (pd.factorize(rated[key])[0] for key in ("source_id", "system"))
    if len(rated) < 4 or sources.max() < 2:
        raise InputError(
            f"{rated.data_set.iloc[0]}: agreement needs at least 4 outputs of 3 sources, got "
            f"{len(rated)} of {sources.max() + 1}"
        )
    human = rated["rating"].to_numpy(float)
    values = {name: rated[name].to_numpy(float) for name in names}
    there = {name: np.isfinite(value) for name, value in values.items()}
    length = values.get(LENGTH)

    def all_of(counts):
        return {
            name: _four(
                counts[:, there[name]],
                values[name][there[name]],
                human[there[name]],
                None if length is None or name == LENGTH else length[there[name]],
                systems[there[name]],
            )
            if there[name].sum() > 3
            else np.full((4, len(counts)), np.nan)
            for name in names
        }

    observed = all_of(np.ones((1, len(rated))))
    drawn = [all_of(counts) for counts in resample_counts(sources, n_boot, seed)]
    rows = []
    for name in names:
        row = {
            "metric": name,
            "n": int(there[name].sum()),
            "sources": len(set(sources[there[name]])),
            "systems": len(set(systems[there[name]])),
        }
        for place, column in enumerate(COLUMNS):
            value = float(observed[name][place, 0])
            ends = fisher_ends(
                value, np.concatenate([block[name][place] for block in drawn]), row["sources"]
            )
            row |= {column: value, f"{column}_low": ends[0], f"{column}_high": ends[1]}
        rows.append(row)
    return pd.DataFrame(rows)


def _four(counts, x, y, length, systems) -> np.ndarray:
    """(4, B): the columns of the table in each resample."""
    r = weighted_pearson(counts, x, y)
    partial = (
        np.full(len(r), np.nan)
        if length is None
        else partial_of(r, weighted_pearson(counts, x, length), weighted_pearson(counts, y, length))
    )
    return np.stack(
        [
            r,
            coefficients(counts, x, y, "spearman"),
            partial,
            within_coefficients(counts, x, y, systems),
        ]
    )


def forest(
    table: pd.DataFrame,  # as `agreement_table` gives it
    column: str = "pearson",  # pearson | spearman | partial | within
    ceiling: Mapping[str, float]
    | None = None,  # data set -> the highest correlation that its ratings allow
) -> "Figure":  # a `Chart`
    """Each metric's correlation with its interval: a row a metric, a panel a data set, one scale for all.

    Raises: InputError for a column that the table doesn't have.
    """
    check_choice(column, "column", [name for name in COLUMNS if name in table.columns])
    ceiling = ceiling or {}
    sets = list(dict.fromkeys(table["data_set"]))
    metrics = list(dict.fromkeys(table["metric"]))
    ends = [column, f"{column}_low", f"{column}_high"]
    panels = []
    for name in sets:
        rows = table[table["data_set"] == name].set_index("metric")[ends].reindex(metrics)
        intervals = [ScoreInterval(str(row.Index), *row[1:], digits=2) for row in rows.itertuples()]
        panels.append(Panel(name, intervals, ceiling.get(name), origin=True))
    caption = _CAPTIONS[column] + ", 95% intervals" + (", dashed: the ceiling" if ceiling else "")
    return panels_chart(panels, one_scale=True, caption=caption)


_CAPTIONS = {
    "pearson": "Pearson's correlation with people's ratings",
    "spearman": "Spearman's correlation with people's ratings",
    "partial": "Correlation with the number of words held fixed",
    "within": "Correlation within systems",
}
