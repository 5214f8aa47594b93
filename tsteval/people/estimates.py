"""Ratings joined to scores, an estimate for each system, differences paired by source, and what to be warned of"""

from collections.abc import Mapping
from itertools import combinations

import numpy as np
import pandas as pd

from ..core.checks import InputError
from ..core.display import displayable, number, printable
from ..core.resample import FEWEST, holm
from ..tables.columns import listed
from ..tables.outputs import as_frame, in_one_form
from .estimators import Estimate, difference, estimate_mean

_KEYS = (["data_set", "item"], ["system", "source", "output"])
_NO_SCORES = {
    "data_set",
    "item",
    "system",
    "source",
    "source_id",
    "output",
    "target_style",
    "input",
    "references",
    "group",
    "rating",
    "inclusion",
}


def score_names(
    scores: pd.DataFrame,
) -> list[str]:
    """The columns of a table that hold numbers and are scores."""
    return [
        name
        for name in scores
        if name not in _NO_SCORES and pd.api.types.is_numeric_dtype(scores[name])
    ]


def shown_texts(
    table: pd.DataFrame,
) -> pd.DataFrame:
    """The same table with system, source and output as results show them."""
    texts = {name: in_one_form(table[name].map(str), name) for name in _KEYS[1] if name in table}
    if "system" in texts:
        texts["system"] = [name.strip() for name in texts["system"]]
    return table.assign(**{name: list(map(displayable, column)) for name, column in texts.items()})


def _keys(ratings: pd.DataFrame, scores: pd.DataFrame) -> list[str]:
    for keys in _KEYS:
        if set(keys) <= set(ratings) and set(keys) <= set(scores):
            return keys
    lacking = [name for name in _KEYS[1] if name not in scores or name not in ratings]
    where = "scores" if lacking[0] not in scores else "ratings"
    raise InputError(
        f"there is no column {lacking[0]} in the {where}; both tables need {', '.join(_KEYS[1])}, or "
        f"{' and '.join(_KEYS[0])}"
    )


def join_ratings(
    # one row a rated output: system, source, output (or data_set, item), rating; and of a sample inclusion
    ratings: pd.DataFrame,
    scores: pd.DataFrame,  # one row an output: the same columns, and the scores
    groups: str
    | None = None,  # the column of scores whose equal values belong together; None: the source
) -> pd.DataFrame:  # the scores, with group, rating (NaN where there is none) and inclusion
    """Put ratings beside scores.

    Raises: InputError for a missing column, several criteria, no rating, or a rated output that was not scored.
    """
    ratings = as_frame(ratings)
    scores = as_frame(scores)
    if "rating" not in ratings:
        raise InputError(
            f"there is no column rating; call the one with the ratings so, or their mean; {listed(list(ratings))}",
            argument="ratings",
        )
    if "criterion" in ratings and ratings.criterion.nunique() > 1:
        raise InputError(
            f"several criteria ({', '.join(map(str, ratings.criterion.unique()))}); choose one, such as "
            f"ratings[ratings.criterion == {ratings.criterion.iloc[0]!r}]",
            argument="ratings",
        )
    keys = _keys(ratings, scores)
    rated_rows = ratings[ratings.rating.notna()].assign(inclusion=ratings.get("inclusion", np.nan))
    if rated_rows.empty:
        raise InputError("there is no rating in any row", argument="ratings")
    if "rater" in rated_rows:  # who rated an output twice counts once
        rater = rated_rows.rater.astype(str)
        rated_rows = rated_rows.groupby([*keys, rater], sort=False)[["rating", "inclusion"]].mean()
    means = rated_rows.groupby(keys, sort=False)[["rating", "inclusion"]].mean()
    group = groups or ("source" if "source" in scores else "source_id")
    if group not in scores:
        raise InputError(f"there is no column {group}", argument="scores")
    bare = scores.drop(columns=["rating", "inclusion", "group"], errors="ignore")
    joined = bare.assign(group=scores[group].to_numpy()).merge(
        means, left_on=keys, right_index=True, how="left"
    )
    unknown = ~means.index.isin(pd.MultiIndex.from_frame(scores[keys]))
    if unknown.any():
        one = f"{printable(means.index[unknown][0][0], 40)} rated {means.rating[unknown].iloc[0]:g}"
        raise InputError(
            f"{unknown.sum():,} of {len(means):,} rated outputs are not among the scored ones, such as "
            f"one of {one}; score the whole table that the rated rows were drawn from",
            argument="scores",
        )
    return joined


def rating_columns(
    ratings: pd.DataFrame,  # as for `join_ratings`, and criterion: any number of them
    scores: pd.DataFrame,  # likewise
) -> (
    pd.DataFrame
):  # a row each of scores, a column a criterion: mean of the raters, NaN where nobody rated
    """What people say of each scored output. Raises: InputError as `join_ratings`."""
    rated_rows = ratings[ratings.rating.notna()]
    scores = shown_texts(scores)
    if rated_rows.empty:
        raise InputError("there is no rating in any row", argument="ratings")
    return pd.DataFrame(
        {
            str(criterion): join_ratings(shown_texts(part), scores).rating.to_numpy(float)
            for criterion, part in rated_rows.groupby("criterion", sort=False)
        }
    )


def estimate_systems(
    joined: pd.DataFrame,  # from `join_ratings`
    names: list[str],  # the scores to use, perhaps none
    level: float = 0.95,  # of the intervals, between 0 and 1
    scale: tuple[float, float]
    | None = None,  # lowest and highest rating; None: those that were given
) -> dict[str, Estimate]:
    """The estimate of each rated system, in the order of the table. Raises: as `estimate_mean`."""
    scale = scale or (float(joined.rating.min()), float(joined.rating.max()))
    parts = {
        name: part
        for name, part in joined.groupby("system", sort=False)
        if part.rating.notna().any()
    }
    return {str(name): _estimate(part, names, level, scale) for name, part in parts.items()}


def _estimate(part: pd.DataFrame, names: list[str], level: float, scale) -> Estimate:
    inclusion = part.inclusion.to_numpy(float)
    inclusion = (
        np.where(np.isnan(inclusion), 1, inclusion) if (~np.isnan(inclusion)).any() else None
    )
    return estimate_mean(
        part.rating,
        part[names].to_numpy(float).reshape(len(part), len(names)),
        part.group.to_numpy(),
        inclusion=inclusion,
        level=level,
        scale=scale,
    )


ESTIMATE_COLUMNS = (
    "mean",
    "low",
    "high",
    "mean_of_ratings",
    "r",
    "labels_worth",
    "n_rated",
    "n_scored",
)


def estimate_frame(
    estimates: Mapping[str, Estimate],
) -> pd.DataFrame:  # system, and ESTIMATE_COLUMNS
    """Estimates as a table, one row a system."""
    return pd.DataFrame(
        [
            {"system": system} | {name: getattr(one, name) for name in ESTIMATE_COLUMNS}
            for system, one in estimates.items()
        ],
        columns=["system", *ESTIMATE_COLUMNS],
    )


def difference_frame(
    joined: pd.DataFrame,
    names: list[str],
    level: float = 0.95,
    scale: tuple[float, float] | None = None,
) -> pd.DataFrame:  # a, b, n (sources that both have), difference, low, high, p_value, p_holm
    """Every two rated systems on the sources that both have; p-values corrected by Holm. Raises: as `estimate_mean`."""
    rated = [
        name for name, part in joined.groupby("system", sort=False) if part.rating.notna().any()
    ]
    rows = []
    for a, b in combinations(rated, 2):
        both = joined[joined.system.isin([a, b])]
        common = set(both.group[both.system == a]) & set(both.group[both.system == b])
        both = both[both.group.isin(common)]
        if not common or both.groupby("system").rating.count().min() == 0:
            continue
        estimates = estimate_systems(
            both, names, level, scale or (joined.rating.min(), joined.rating.max())
        )
        comparison = difference(estimates[str(a)], estimates[str(b)], level)
        rows.append({"a": str(a), "b": str(b), "n": len(common), **vars(comparison)})
    table = pd.DataFrame(rows, columns=["a", "b", "n", "difference", "low", "high", "p_value"])
    return table.assign(p_holm=holm(table.p_value.to_numpy(float)))


_APART = 3.5
_TOO_CLOSE = 0.98  # standard errors between rated and other rows; a correlation that no metric has


def _drawn(joined: pd.DataFrame, names: list[str]) -> list[str]:
    """What speaks against a random draw."""
    joined = joined[joined.groupby("system").rating.transform("count") > 0]  # what is estimated
    rated = joined.rating.notna()
    if rated.all():
        return []
    if joined.inclusion[rated].notna().all():
        return []
    sentences = [
        "The rated rows were not drawn by tsteval rate --sample. Unless they are a random sample, this is an "
        "estimate for outputs like the rated ones, not for all."
    ]
    for name in names:
        one = joined.loc[rated, name].dropna()
        other = joined.loc[~rated, name].dropna()
        error = np.sqrt(one.var() / max(len(one), 1) + other.var() / max(len(other), 1))
        if error > 0 and abs(one.mean() - other.mean()) > _APART * error:
            sentences.append(
                f"They do not look like one: their {name} is {number(one.mean())} on average, and that of the "
                f"other rows {number(other.mean())}."
            )
            break
    return sentences


def cautions(
    ratings: pd.DataFrame,  # as for `join_ratings`
    joined: pd.DataFrame,
    names: list[str],
    estimates: Mapping[str, Estimate],
    scale: tuple[float, float] | None = None,  # that of the estimates
) -> list[str]:  # sentences, perhaps none
    """What a reader of the estimates has to be warned of."""
    sentences = _drawn(joined, names)
    if scale is None:
        sentences.append(
            f"No scale was named, so the intervals end at the lowest and the highest rating, "
            f"{joined.rating.min():g} and {joined.rating.max():g}."
        )
    raters = (
        ratings.raters.max()
        if "raters" in ratings
        else ratings.rater.nunique()
        if "rater" in ratings
        else np.nan
    )
    if raters == 1:
        sentences.append(
            "One rater: the intervals tell what this rater would say, not what people would."
        )
    if close := [system for system, one in estimates.items() if one.r > _TOO_CLOSE]:
        sentences.append(
            f"The scores follow the ratings of {printable(close[0], 40)} at r {estimates[close[0]].r:.2f}, closer "
            f"than metrics do. If they were made from these ratings, nothing here holds."
        )
    if crowded := [
        system
        for system, one in estimates.items()
        if one.rated_sources >= FEWEST > one.rated_sources - len(names)
    ]:
        sentences.append(
            f"{printable(crowded[0], 40)}: {len(names)} scores are too many for "
            f"{estimates[crowded[0]].rated_sources} rated sources and went unused; name fewer."
        )
    if few := [system for system, one in estimates.items() if one.rated_sources < FEWEST]:
        sentences.append(
            f"{printable(few[0], 40)}: fewer than {FEWEST} rated sources give no interval."
        )
    elif same := [system for system, one in estimates.items() if not one.error > 0]:
        sentences.append(
            f"{printable(same[0], 40)}: its ratings are all equal, which gives no interval."
        )
    return sentences
