"""Output and human target side by side: distributions of a score, and galleries of the rows where the two part"""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from ..core.checks import InputError, check_equal_lengths, check_number
from ..core.resample import bootstrap_interval, mean_statistics
from .charts import distribution_plot
from .methods import Evaluated

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def beside_target(
    evaluation: Evaluated,
    system: str,  # whose outputs are looked at
    target: str = "human",  # the system that holds the human targets
    # one row an output: source, output, target, each metric's columns, style_score and content_score, and of all scores
    # those of the target as target_<column>
) -> pd.DataFrame:
    """A system's outputs beside the human targets of the same sources.

    Raises: InputError for an unknown system, or if the two do not have the same sources in the same order.
    """
    for name in (system, target):
        if name not in evaluation.systems:
            raise InputError(
                f"there is no system called {name!r}; the systems are {', '.join(evaluation.systems)}"
            )
    own, human = (
        evaluation.per_pair[evaluation.per_pair.system == name].reset_index(drop=True)
        for name in (system, target)
    )
    if list(own.source) != list(human.source):
        raise InputError(
            f"{system} and {target} cannot be laid side by side: they must rewrite the same sources in "
            f"the same order"
        )
    columns = [column for column in evaluation.columns if column in own]
    asked = [
        {
            f"{question}_score": frame[column]
            for question, column in _leading(evaluation, columns).items()
        }
        for frame in (own, human)
    ]
    frame = own[["source", "output"]].assign(target=human.output)
    sides = own[columns].assign(**asked[0]), human[columns].assign(**asked[1]).add_prefix("target_")
    return pd.concat([frame, *sides], axis=1)


def _leading(evaluation: Evaluated, columns: Iterable[str]) -> dict[str, str]:
    """The column that stands for style and the one that stands for content, where they were scored."""
    first = {
        metric.question: metric.columns[0]
        for metric in reversed(evaluation.metrics)
        if metric.columns[0] in columns
    }
    return {question: first[question] for question in ("style", "content") if question in first}


def plot_distributions(
    evaluation: Evaluated,
    column: str,  # one column of the metrics
    systems: Iterable[str]
    | None = None,  # up to four, the human targets among them; None: the first four
) -> "Figure":  # a `Chart`
    """How a score is distributed over the outputs of each system: histogram, cumulative curve and median.

    Raises: InputError for a column or a system that is not there. Source: Fast Forward Labs 2022, figures 19 and 21.
    """
    names = evaluation.systems[:4] if systems is None else list(systems)
    if column not in evaluation.per_pair:
        raise InputError(
            f"there is no column {column}; the columns are {', '.join(evaluation.columns)}"
        )
    if unknown := [name for name in names if name not in evaluation.systems]:
        raise InputError(
            f"there is no system called {unknown[0]!r}; the systems are {', '.join(evaluation.systems)}"
        )
    return distribution_plot(
        {name: evaluation.per_pair[column][evaluation.per_pair.system == name] for name in names},
        evaluation.heading(column),
    )


def _apart(rows: pd.DataFrame, ahead: str, behind: str, margin: float) -> pd.DataFrame:
    """Rows where one column is ahead of another by at least a margin, the largest gap first."""
    check_number(margin, "margin", 0)
    _check_scored(rows, ahead, behind)
    gap = rows[ahead].astype(float) - rows[behind].astype(float)
    return rows.assign(gap=gap)[gap >= margin].sort_values("gap", ascending=False, kind="stable")


def _check_scored(rows: pd.DataFrame, *columns: str) -> None:
    if missing := [column for column in columns if column not in rows]:
        question = missing[0].removeprefix("target_").removesuffix("_score")
        raise InputError(
            f"this gallery needs a score of {question}; evaluate with a metric of that question"
        )


def content_lost(rows: pd.DataFrame, margin: float = 0.1) -> pd.DataFrame:
    """The target's content score is ahead of the output's by the margin. Source: Fast Forward Labs 2022, figure 20."""
    return _apart(rows, "target_content_score", "content_score", margin)


def content_beyond(rows: pd.DataFrame, margin: float = 0.1) -> pd.DataFrame:
    """The output's content score is ahead of the target's by the margin. Source: Fast Forward Labs 2022, figure 20."""
    return _apart(rows, "content_score", "target_content_score", margin)


def _label_noise(rows: pd.DataFrame) -> pd.DataFrame:
    """The target's style score is negative: it, or the judge, is wrong. Source: Fast Forward Labs 2022, figure 22."""
    _check_scored(rows, "target_style_score")
    wrong = rows.assign(gap=-rows.target_style_score.astype(float))[rows.target_style_score < 0]
    return wrong.sort_values("gap", ascending=False, kind="stable")


def style_missed(rows: pd.DataFrame, margin: float = 0.1) -> pd.DataFrame:
    """The target's style score is ahead of the output's by the margin. Source: Fast Forward Labs 2022, figure 22."""
    return _apart(rows, "target_style_score", "style_score", margin)


def style_beyond(rows: pd.DataFrame, margin: float = 0.1) -> pd.DataFrame:
    """The output's style score is ahead of the target's by the margin. Source: Fast Forward Labs 2022, figure 22."""
    return _apart(rows, "style_score", "target_style_score", margin)


def unchanged(rows: pd.DataFrame) -> pd.DataFrame:
    """The output is its source, up to white space; the furthest target first. Source: Fast Forward Labs 2022."""
    same = rows.output.str.split() == rows.source.str.split()
    moved = rows.target_style_score.astype(float) if "target_style_score" in rows else 0.0
    return rows.assign(gap=moved)[same].sort_values("gap", ascending=False, kind="stable")


_FACT = re.compile(r"(?:\d[\w.,:]*\w|\d)|(?<![.!?:] )(?<!^)(?<![\"“'‘(])\b[A-Z]\w+", re.M)


def new_facts(
    source: str,
    output: str,
) -> list[str]:  # numbers and names of the output, in order, that the source does not have
    """What a simple rule takes for facts that were added: words with a digit, capitalised words inside a sentence."""

    def plain(text):
        return text.lower().replace(",", "")

    of_source = set(re.findall(r"\w+(?:[.:]\w+)*", plain(source)))
    return [fact for fact in _FACT.findall(output) if plain(fact) not in of_source]


def facts_added(
    rows: pd.DataFrame,
    side: str = "output",  # output | target: whose facts
) -> pd.DataFrame:  # with a column added (tuple of words)
    """Rows in which a number or a name stands that the source lacks, the most of them first. Source: Fast Forward Labs
    2022."""
    added = [tuple(new_facts(source, text)) for source, text in zip(rows.source, rows[side])]
    counted = rows.assign(added=added, gap=[float(len(words)) for words in added])
    return counted[counted.gap > 0].sort_values("gap", ascending=False, kind="stable")


GALLERIES: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "content lost": content_lost,
    "content beyond": content_beyond,
    "label noise": _label_noise,
    "style missed": style_missed,
    "style beyond": style_beyond,
    "unchanged": unchanged,
    "facts added": facts_added,
}


def gallery_counts(
    evaluation: Evaluated,
    target: str = "human",  # the system that holds the human targets
) -> pd.DataFrame:  # a row a gallery, a column a system: how many outputs belong
    """How many outputs of each system belong to each gallery."""
    systems = {
        system: beside_target(evaluation, system, target)
        for system in evaluation.systems
        if system != target
    }
    return pd.DataFrame(
        {
            system: {name: len(choose(rows)) for name, choose in GALLERIES.items()}
            for system, rows in systems.items()
        }
    )


def label_noise_shares(
    # judge -> (N,) STI of each target, or only its sign; by judges that had not seen the pairs
    target_sti: Mapping[str, ArrayLike],
    n_resamples: int = 2000,  # bootstrap resamples
    seed: int = 0,  # of the random draws
    # a row a judge and one for all of them: share of negative targets, its 95% interval (low, high), by_chance
) -> pd.DataFrame:
    """How many targets are further from the style than their sources: by each judge, and by all judges alike.

    Raises: InputError for no judge, or judges of different numbers of pairs. Source: Fast Forward Labs 2022, figure 22.
    """
    if not target_sti:
        raise InputError("there is no judge")
    check_equal_lengths(**{name: list(values) for name, values in target_sti.items()})
    negative = pd.DataFrame(
        {name: np.asarray(values, dtype=float) < 0 for name, values in target_sti.items()}
    )
    columns = {**negative, "all of them": negative.all(axis=1)}
    shares = {
        name: bootstrap_interval(
            mean_statistics(values.to_numpy(float)), n_resamples=n_resamples, seed=seed
        )
        for name, values in columns.items()
    }
    table = pd.DataFrame(
        {name: (share.score, share.low, share.high) for name, share in shares.items()},
        index=["share", "low", "high"],
    ).T
    return (
        table.assign(by_chance=[math.nan] * len(negative.columns) + [negative.mean().prod()])
        .rename_axis("judge")
        .reset_index()
    )
