"""A study as files: tables, forest plots, and one page"""

import math
import re
import textwrap
from collections.abc import Mapping
from typing import Any

import pandas as pd
from markupsafe import Markup

from ..core.assets import packaged_path
from ..core.display import displayable, number, printable
from ..report.terminal import aligned, csv_text
from .ranking import forest
from .study import STUDIES, Study, rated_outputs, trivial_scores


def conclusions(
    tables: Mapping[str, pd.DataFrame],  # from `study_tables`
) -> list[str]:  # a paragraph a data set and criterion
    """What a study says, in words."""
    several = tables["agreement"].data_set.nunique() > 1
    return [
        " ".join(
            [
                f"{f'{data_set}, ' if several else ''}{criterion}:",
                *_followed(part, trivial_scores(str(data_set))),
                *_ordered(
                    tables["systems"], part, data_set, criterion, trivial_scores(str(data_set))
                ),
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
        else "runs against the raters, farther than any other"
    )
    if not _clear_of_zero(best):
        runs = "is farthest from zero, and still not shown to follow the raters"
    sentences = [
        f"{best.metric} {runs}, at {_with_ends(best)} over {best.n} outputs of {best.sources} sources (Pearson)."
    ]
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
        f"({_told_p(row.p_value)})."
        for row in systems[place.all(axis=1)].itertuples()
        if row.tau == row.tau
    ]


def _told_p(p: float) -> str:
    return "p < 0.001" if p < 0.001 else f"p = {number(p)}"


def _raters_told(raters: pd.DataFrame, data_set, criterion) -> str:
    row = raters[(raters.data_set == data_set) & (raters.criterion == criterion)].iloc[0]
    if row.reliability != row.reliability:
        return "How far the raters agree is not known, since they are not known one by one."
    alpha = f" (alpha {number(row.alpha)})" if row.alpha == row.alpha else ""
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
        f"{textwrap.fill(printable(paragraph), 80)}\n\n{_told_scores(part, most)}"
        for paragraph, part in zip(conclusions(tables), parts)
    )


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
            part.reset_index(drop=True), "pearson", ceiling=ceilings.to_dict()
        )
    return plots


_HEADINGS = {
    "agreement": "Agreement of metrics and raters",
    "systems": "Order of systems",
    "raters": "Agreement among raters",
    "consistency": "Raters and their own first answers",
}
_NOTES = {
    "agreement": "Pearson's and Spearman's correlation of scores and mean ratings over all outputs; Pearson's at "
    "equal length (partial); and within systems, each system's mean taken away. "
    "The smaller figures are 95% intervals from {n_boot} resamples of sources, seed {seed}. A dashed "
    "line in a plot is the highest correlation to be expected, given how far raters agree.",
    "systems": "Kendall's tau-b of the systems' mean scores and mean ratings, on the sources that were rated for "
    "every system; p over all orders of the systems.",
    "raters": "Krippendorff's alpha (interval), the reliability of the mean rating (Spearman and Brown), and its "
    "root, the highest correlation to be expected of a metric.",
    "consistency": "Items that were asked twice: how many, the share with the same answer, and the mean distance of "
    "the two answers.",
}


def _page_rows(table: pd.DataFrame) -> tuple[list[str], list[list[dict]]]:
    """Headings and cells of a table; an interval stands with its number."""
    ends = {
        name: [f"{name}_low", f"{name}_high"] if name != "tau" else ["low", "high"]
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
    return [name.replace("_", " ") for name in shown], rows


def study_page(
    tables: Mapping[str, pd.DataFrame],  # from `study_tables`
    facts: Mapping[str, str],  # what is needed to repeat it: signatures, checksums, versions
    *,
    n_boot: int = 1000,
    seed: int = 0,
) -> str:  # HTML
    """The study as one page that needs no other file; the texts in it are escaped."""
    import base64
    import hashlib

    import jinja2

    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    style, script = (
        packaged_path(name).read_text(encoding="utf-8")
        for name in ("report.html.jinja", "report_sort.js")
    )
    checksum = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    shown = [
        {
            "title": f"{_HEADINGS[name]}: {part}" if part else _HEADINGS[name],
            "rows": _page_rows(frame),
            "note": ""
            if part and part != whole.criterion.iloc[0]
            else _NOTES[name].format(n_boot=n_boot, seed=seed),
        }
        for name, whole in tables.items()
        if len(whole)
        for part, frame in (
            [("", whole)]
            if "criterion" not in whole or name in ("raters", "consistency")
            else [
                (part, frame.drop(columns="criterion"))
                for part, frame in whole.groupby("criterion", sort=False)
            ]
        )
    ]
    return environment.from_string(
        packaged_path("study.html.jinja").read_text(encoding="utf-8")
    ).render(
        style=Markup(re.findall("<style>.*?</style>", style, re.S)[0]),
        script=Markup(script),
        checksum=checksum,
        tables=shown,
        conclusions=[displayable(sentence) for sentence in conclusions(tables)],
        plots={displayable(name): plot for name, plot in _forest_plots(tables).items()},
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
    for criterion, plot in _forest_plots(tables).items():
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
