"""A study as files: tables, forest plots, and one page"""

import math
import re
import textwrap
from collections import Counter
from collections.abc import Mapping
from functools import cache
from typing import Any

import pandas as pd

from ..core.display import displayable, number, printable
from ..core.metric import METRICS
from ..report.charts import Panel, ScoreInterval
from ..report.conclusions import p_text
from ..report.page import drawn_panel, fill_template
from ..report.terminal import aligned, csv_text
from .ranking import forest
from .study import STUDIES, Study, rated_outputs, trivial_scores


@cache
def _headings() -> dict[str, str]:
    """How the package's metrics call their columns."""
    return {
        column: heading
        for metric in METRICS.values()
        for column, heading in zip(metric.columns, metric.headings)
    }


def display_name(
    score: str,  # the name of a column
) -> str:
    """A score as a page calls it: by the heading of its metric, else by the words of its column."""
    known = _headings()
    return known.get(score, " ".join(known.get(word, word) for word in str(score).split("_")))


def _renamed(tables: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """The tables with the scores' names for a reader; scores that would share one keep their own."""
    columns = list(dict.fromkeys(tables["agreement"].metric))
    counts = Counter(map(display_name, columns))
    names = {name: display_name(name) for name in columns if counts[display_name(name)] == 1}
    return dict(tables) | {
        name: tables[name].assign(metric=tables[name].metric.replace(names))
        for name in ("agreement", "systems")
    }


def _trivial(data_set) -> set[str]:
    """The trivial scores, by both of their names."""
    names = trivial_scores(str(data_set))
    return names | set(map(display_name, names))


def conclusions(
    tables: Mapping[str, pd.DataFrame],  # from `study_tables`
) -> list[str]:  # a paragraph a data set and criterion
    """What a study says, in words."""
    several = tables["agreement"].data_set.nunique() > 1
    return [
        " ".join(
            [
                f"{f'{data_set}, ' if several else ''}{criterion}:",
                *_followed(part, _trivial(data_set)),
                *_ordered(tables["systems"], part, data_set, criterion, _trivial(data_set)),
                _raters_told(tables["raters"], data_set, criterion),
            ]
        )
        for (data_set, criterion), part in tables["agreement"].groupby(
            ["data_set", "criterion"], sort=False
        )
    ]


def _leading(part: pd.DataFrame, trivial: set[str]) -> pd.Series | None:
    """The row of the score, trivial ones apart, that is farthest from no correlation."""
    correlations = part[~part.metric.isin(trivial) & part.pearson.notna()]
    return None if correlations.empty else correlations.loc[correlations.pearson.abs().idxmax()]


def _with_ends(row, column: str = "pearson") -> str:
    low = row[f"{column}_low"]
    high = row[f"{column}_high"]
    ends = f"[{number(low)}, {number(high)}]" if low == low else "(too few sources for an interval)"
    return f"{number(row[column])} {ends}"


def _clear_of_zero(row) -> bool:
    """Whether an interval was drawn and leaves zero out."""
    return bool(row.pearson_low > 0 or row.pearson_high < 0)


def _compared(plain, best) -> str:
    """How a trivial score stands beside the one that leads: better only in the same direction and beyond chance."""
    if not _clear_of_zero(plain):
        return f"has {_with_ends(plain)}, which chance alone can make"
    if abs(plain.pearson) < abs(best.pearson):
        return f"already reaches {_with_ends(plain)}"
    same = plain.pearson * best.pearson > 0
    return f"{'does better' if same else 'lies farther from zero'}, at {_with_ends(plain)}"


def _followed(part: pd.DataFrame, trivial: set[str]) -> list[str]:
    """The score that leads, the best trivial one, and what is left within systems."""
    best = _leading(part, trivial)
    least = part[part.metric.isin(trivial) & part.pearson.notna()]
    if best is None:
        return ["no score has a correlation with the ratings."]
    runs = (
        "follows the raters most closely"
        if best.pearson > 0
        else "is low where the ratings are high, farther from zero than any other that reads the texts"
    )
    if not _clear_of_zero(best):
        runs = "is farthest from zero, and still not shown to follow the raters"
    sentences = [
        f"{best.metric} {runs}, at {_with_ends(best)} over {best.n} outputs of {best.sources} sources (Pearson)."
    ]
    among = int((~part.metric.isin(trivial) & part.pearson.notna()).sum())
    if among > 1 and _clear_of_zero(best):
        sentences.append(f"Its interval leaves out that it was picked from {among} scores.")
    if len(least):
        plain = least.loc[least.pearson.abs().idxmax()]
        sentences.append(f"{plain.metric}, which reads nothing, {_compared(plain, best)}.")
    if best.systems > 1 and best.within == best.within:
        doubt = ", which chance alone can make" if best.within_low <= 0 <= best.within_high else ""
        sentences.append(f"Within systems {best.metric} has {_with_ends(best, 'within')}{doubt}.")
    return sentences


def _ordered(
    systems: pd.DataFrame, part: pd.DataFrame, data_set, criterion, trivial: set[str]
) -> list[str]:
    """Whether the leading score puts whole systems into the raters' order."""
    best = _leading(part, trivial)
    if best is None or systems.empty:
        return []
    place = systems[["data_set", "criterion", "metric"]] == [data_set, criterion, best.metric]
    return [
        f"It puts the {row.systems} systems into the raters' order with tau {number(row.tau)} "
        f"({p_text(row.p_value)})."
        for row in systems[place.all(axis=1)].itertuples()
        if row.tau == row.tau
    ]


def _raters_told(raters: pd.DataFrame, data_set, criterion) -> str:
    row = raters[(raters.data_set == data_set) & (raters.criterion == criterion)].iloc[0]
    if row.reliability != row.reliability:
        return "How far the raters agree is not known, since they are not known one by one."
    alpha = f" (alpha {number(row.alpha)})" if row.alpha == row.alpha else ""
    if row.against:
        return (
            f"The raters do not answer one question in one way{alpha}: {row.against} runs against the mean of the "
            f"others. So there is no telling how far a score could follow them."
        )
    if row.ceiling != row.ceiling:
        return f"The raters do not agree{alpha}, so no score can follow them."
    return (
        f"The raters' mean has reliability {number(row.reliability)}{alpha}, so that no score can be expected "
        f"above {number(row.ceiling)}."
    )


def told_study(
    tables: Mapping[str, pd.DataFrame],  # from `study_tables`
    most: int | None = None,  # scores of a data set and criterion; None: all
) -> str:
    """What a study says, for a terminal: each paragraph of `conclusions` above the scores that it speaks of."""
    parts = [part for _, part in tables["agreement"].groupby(["data_set", "criterion"], sort=False)]
    return "\n\n".join(
        f"{_told_means(tables['means'], part.iloc[0])}{textwrap.fill(printable(paragraph), 80)}\n\n"
        f"{_told_scores(part, most)}"
        for paragraph, part in zip(conclusions(tables), parts)
    )


def _told_means(means: pd.DataFrame, of) -> str:
    """What raters said of each system, a line each, the highest mean first."""
    part = means[(means.data_set == of.data_set) & (means.criterion == of.criterion)]
    rows = [[f"rated for {printable(str(of.criterion), 24)}", "n", "mean rating"]]
    for row in part.sort_values("mean", ascending=False, kind="stable").to_dict("records"):
        value, low, high = (number(row[name], 2) for name in ("mean", "low", "high"))
        known = f"{value} [{low}, {high}]" if low else value
        rows.append([printable(row["system"], 24), str(row["outputs"]), known])
    return aligned([list(column) for column in zip(*rows)]) + "\n\n"


def _told_scores(part: pd.DataFrame, most: int | None) -> str:
    """Scores and their correlations, the farthest from zero first."""
    shown = part.iloc[(-part.pearson.abs()).argsort(kind="stable")[:most]]
    rows = [["score", "n", "Pearson", "Spearman", "within systems"]]
    for row in shown.to_dict("records"):
        names = ("pearson", "pearson_low", "pearson_high", "spearman", "within")
        value, low, high, *others = (number(row[name]) for name in names)
        rows.append(
            [
                printable(row["metric"], 24),
                str(row["n"]),
                f"{value} [{low}, {high}]" if low else value or "none",
                *(other or "none" for other in others),
            ]
        )
    left = len(part) - len(shown)
    return aligned([list(column) for column in zip(*rows)]) + (
        f"\nand {left} more in agreement.csv" if left else ""
    )


def _forest_plots(
    tables: Mapping[str, pd.DataFrame],  # from `study_tables`
    # criterion -> a `Chart`, its forest plot of Pearson's correlation, with the raters' ceilings
) -> dict[str, Any]:
    """One forest plot a criterion."""
    plots = {}
    for criterion, part in tables["agreement"].groupby("criterion", sort=False):
        ceilings = (
            tables["raters"].query("criterion == @criterion").set_index("data_set").ceiling.dropna()
        )
        plots[str(criterion)] = forest(
            part.sort_values("pearson", ascending=False, kind="stable").reset_index(drop=True),
            "pearson",
            ceiling=ceilings.to_dict(),
        )
    return plots


_MOST = 10  # scores of a picture


def _shown(part: pd.DataFrame, trivial: set[str]) -> pd.DataFrame:
    """The scores that are farthest from zero, and the best of the trivial ones."""
    order = part[part.pearson.notna()].sort_values("pearson", key=abs, ascending=False)
    plain = order[order.metric.isin(trivial)].head(1)
    rest = order[~order.metric.isin(trivial)].head(_MOST - len(plain))
    return pd.concat([rest, plain]).sort_values("pearson", ascending=False, kind="stable")


def _headline(part: pd.DataFrame, raters: pd.Series, trivial: set[str]) -> str:
    """What the ratings of one criterion say, in a sentence."""
    best = _leading(part, trivial)
    if best is None:
        return "No score has a correlation with these ratings."
    least = part[part.metric.isin(trivial) & part.pearson.notna()]
    among = "" if least.empty else " of those that read the texts"
    told = (
        f"{best.metric} follows the raters most closely{among}"
        if best.pearson > 0
        else f"{best.metric} is low where the ratings are high, farthest from zero{among}"
    )
    if not _clear_of_zero(best):
        told = f"No score{among} is shown to follow the raters; farthest from zero is {best.metric}"
    told += f", with a correlation of {number(best.pearson, 2)}"
    if raters.ceiling == raters.ceiling:
        told += f" where {number(raters.ceiling, 2)} is the most to be expected of any score"
    if least.empty:
        return f"{told}."
    plain = least.loc[least.pearson.abs().idxmax()]
    return f"{told}; {plain.metric}, which reads nothing, has {number(plain.pearson, 2)}."


def _verdict(row, trivial: set[str]) -> str:
    """What is said beside a correlation, where it is not to be taken as it stands."""
    if row.metric in trivial:
        return "reads nothing"
    return "" if _clear_of_zero(row) else "may be 0"


def _page_parts(tables: Mapping[str, pd.DataFrame]) -> list[dict[str, Any]]:
    """A part of the page for each data set and criterion: a sentence, a picture, and all scores."""
    several = tables["agreement"].data_set.nunique() > 1
    groups = tables["agreement"].groupby(["data_set", "criterion"], sort=False)
    parts = []
    for ((data_set, criterion), part), told in zip(groups, conclusions(tables)):
        trivial = _trivial(data_set)
        raters = tables["raters"].query("data_set == @data_set and criterion == @criterion").iloc[0]
        shown = _shown(part, trivial)
        ceiling = None if raters.ceiling != raters.ceiling else float(raters.ceiling)
        panel = Panel(
            "Pearson's correlation with the ratings",
            [
                ScoreInterval(
                    row.metric,
                    row.pearson,
                    row.pearson_low,
                    row.pearson_high,
                    _verdict(row, trivial),
                    digits=2,
                )
                for row in shown.itertuples()
            ],
            ceiling,
            origin=True,
            notes=(
                "\u2190 against the raters, with them \u2192",
                "\u22121 to 1",
                f"n = {part.n.max():,}",
            ),
            about=_compared_with(raters),
        )
        rows = part.merge(
            tables["systems"].drop(columns=["systems", "sources"]),
            on=["data_set", "criterion", "metric"],
            how="left",
        ).drop(columns=["data_set", "criterion", "n", "sources", "systems"])
        rows = rows.sort_values("pearson", ascending=False, kind="stable")
        parts.append(
            {
                "title": displayable(f"{data_set}, {criterion}" if several else str(criterion)),
                "sentence": displayable(_headline(part, raters, trivial)),
                "panels": [drawn_panel(panel)] if len(shown) else [],
                "caption": f"{len(shown)} of {len(part)} scores: those farthest from zero, and the best that reads "
                "nothing. Lines: 95% intervals over sources. Open circles may be 0."
                + " Dashed: the most that any score can be expected to reach."
                * bool(ceiling),
                "told": displayable(told),
                "scores": _page_rows(rows.dropna(axis="columns", how="all")),
            }
        )
    return parts


def _compared_with(raters: pd.Series) -> str:
    if raters.reliability != raters.reliability:
        return "how far the raters agree is not known, since they are not known one by one"
    return f"the raters' mean has reliability {number(raters.reliability, 2)}"


_TABLES = {  # title and explanation
    "means": (
        "What raters said of each system",
        "The mean rating of its outputs, with a 95% interval over sources for texts like these.",
    ),
    "raters": (
        "Agreement among raters",
        "Krippendorff's alpha (interval), the reliability of the mean rating (Spearman and Brown), and its "
        "root, the ceiling: the highest correlation to be expected of a metric.",
    ),
    "consistency": (
        "Raters and their own first answers",
        "Items that were asked twice: how many, the share with the same answer, and the mean distance of "
        "the two answers.",
    ),
}
_NOTE = (
    "In the tables: Pearson's and Spearman's correlation of scores and mean ratings over all outputs; Pearson's at "
    "equal length; within systems, each system's mean taken away; and the order of systems, Kendall's tau-b of their "
    "mean scores and mean ratings on the sources that were rated for every system, with p over all orders. The smaller "
    "figures are 95% intervals from {n_boot} resamples of sources, seed {seed}."
)
_COLUMNS = {
    "metric": "score",
    "pearson": "Pearson",
    "spearman": "Spearman",
    "partial": "at equal length",
    "within": "within systems",
    "tau": "order of systems",
    "p_value": "p of the order",
}


def _page_rows(table: pd.DataFrame) -> tuple[list[str], list[list[dict]]]:
    """Headings and cells of a table; an interval stands with its number."""
    ends = {
        name: ["low", "high"] if name in ("tau", "mean") else [f"{name}_low", f"{name}_high"]
        for name in table
    }
    shown = [name for name in table if not re.search(r"(^|_)(low|high)$", name)]
    rows = []
    for row in table.to_dict("records"):
        cells = []
        for name in shown:
            value = row[name]
            small = ""
            if isinstance(value, (int, float)):
                low, high = (row.get(end, math.nan) for end in ends[name])
                small = f"{number(low)} to {number(high)}" if low == low else ""
                text = (
                    number(value, 0)
                    if float(value).is_integer()
                    and name in ("n", "sources", "systems", "outputs", "raters")
                    else number(value)
                )
                cells.append(
                    {
                        "text": text or "none",
                        "value": "" if value != value else value,
                        "small": small,
                    }
                )
            else:
                cells.append({"text": displayable(str(value)), "value": None, "small": ""})
        rows.append(cells)
    return [_COLUMNS.get(name, name.replace("_", " ")) for name in shown], rows


def study_page(
    tables: Mapping[str, pd.DataFrame],  # from `study_tables`
    facts: Mapping[str, str],  # what is needed to repeat it: signatures, checksums, versions
    *,
    n_boot: int = 1000,
    seed: int = 0,
) -> str:  # HTML
    """The study as one page that needs no other file; the texts in it are escaped."""
    tables = _renamed(tables)
    agreement = tables["agreement"]
    one = agreement.data_set.nunique() == 1
    return fill_template(
        "study.html.jinja",
        about=f"{agreement.n.max():,} outputs of {agreement.sources.max():,} sources, by {agreement.systems.max()} "
        f"systems."
        if one
        else f"{agreement.data_set.nunique()} sets of ratings.",
        parts=_page_parts(tables),
        note=_NOTE.format(n_boot=n_boot, seed=seed),
        tables=[
            {
                "title": title,
                "note": note,
                "rows": _page_rows(tables[name].drop(columns=["data_set"] * one, errors="ignore")),
            }
            for name, (title, note) in _TABLES.items()
            if name in tables and len(tables[name])
        ],
        facts={displayable(name): displayable(fact) for name, fact in facts.items()},
    )


def study_files(
    study: Study,
    scores: pd.DataFrame,  # as given to `study_tables`
    tables: Mapping[str, pd.DataFrame],  # from `study_tables`
    facts: Mapping[str, str],  # see `study_page`
    *,
    n_boot: int = 1000,
    seed: int = 0,
    # file -> text: a CSV for each table, the scores, the ratings of one's own study, a forest plot a criterion,
    # study.html
) -> dict[str, str]:
    """All that a study writes."""
    files = {f"{name}.csv": csv_text(frame) for name, frame in tables.items()}
    if not set(study.ratings.data_set) & set(STUDIES):  # one's own, whose texts are one's own too
        files["ratings.csv"] = csv_text(_answer_rows(study.ratings))
        outputs = rated_outputs(study.ratings)[["data_set", "item", "system", "source", "output"]]
        scores = outputs.merge(scores, on=["data_set", "item"]).drop(columns=["data_set", "item"])
    files["scores.csv"] = csv_text(scores)
    for criterion, plot in _forest_plots(_renamed(tables)).items():
        files[f"forest-{re.sub('[^a-z0-9]+', '-', criterion.lower())}.svg"] = plot.svg
    return files | {"study.html": study_page(tables, facts, n_boot=n_boot, seed=seed)}


def _answer_rows(ratings: pd.DataFrame) -> pd.DataFrame:
    """One row an answer, as `load_ratings` reads them."""
    single = [name for name in ratings if re.fullmatch(r"rating_\d+", str(name))]
    columns = ["system", "source_id", "source", "output", "target_style", "criterion"] + [
        "reference"
    ] * bool(ratings.reference.notna().all())
    if not single:
        return ratings[[*columns, "rating"]]
    rows = (
        ratings.drop(columns="rating")
        .melt(columns, single, "rater", "rating")
        .dropna(subset="rating")
    )
    return rows.assign(rater=rows.rater.str.removeprefix("rating_"))
