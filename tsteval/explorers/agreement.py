"""Explorers of how a metric follows people, of test sets of any size, and of what ratings are worth"""

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ..core.assets import AssetError, corpus_path, packaged_path
from ..core.checks import InputError
from ..core.display import number
from ..core.resample import mean_statistics, percentiles
from ..people.coefficients import check_columns, correlation
from ..people.judging import expected_score
from ..people.study import OUTPUT_KEYS, STUDIES, metrics_for
from ..people.systems import power_curve
from ..report.charts import (
    Panel,
    ScoreInterval,
    curve_and_point,
    interval_plot,
    panels_chart,
    scatter_plot,
)
from ..report.evidence import MEASURES, evidence, in_words, score_beside_people
from ..report.markup import Picture, answered, bar, isolated, side_by_side, table, tag
from ..tables.ratings import SIMULATED_SCORES, load_ratings, simulated_ratings, stored_scores
from .controls import choice, explorer, slider

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def _outliers(
    x,  # (N,) scores
    y,  # (N,) ratings
    most: int = 5,
) -> list[int]:  # rows, the farthest from the line first
    """The rows that lie farthest above or below the line that fits best. Raises: InputError for fewer than three
    rows."""
    x, y = check_columns(scores=x, ratings=y)
    slope, intercept = _line(x, y)
    return [int(row) for row in np.argsort(-abs(y - slope * x - intercept), kind="stable")[:most]]


def _line(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Slope and intercept of least squares; flat where all x are equal."""
    spread = ((x - x.mean()) ** 2).sum()
    slope = float(((x - x.mean()) * (y - y.mean())).sum() / spread) if spread > 0 else 0.0
    return slope, float(y.mean() - slope * x.mean())


def _agreement_scatter(
    x,  # (N,) scores of a metric
    y,  # (N,) mean ratings
    marked: Sequence[int] = (),  # rows that are ringed and numbered from 1
    *,
    x_label: str = "score",
    y_label: str = "mean rating",
) -> "Figure":  # a `Chart`
    """Ratings over scores, with the line that fits best. Raises: InputError for fewer than three rows."""
    x, y = check_columns(scores=x, ratings=y)
    return scatter_plot(x, y, _line(x, y), marked, x_label=x_label, y_label=y_label)


def _agreement_picture(
    rated: pd.DataFrame,  # rows of one data set and criterion: system, item, source_id, rating, and the metric's column
    metric: str,
    *,
    texts: bool = False,  # show the outputs' texts in the list of outliers
    n_boot: int = 1000,  # resamples of sources
) -> Picture:
    """Scatter, correlation with its interval, and the outputs farthest from the line. Raises: InputError for too few
    outputs."""
    rows = rated[np.isfinite(rated[metric].astype(float)) & rated.rating.notna()].reset_index(
        drop=True
    )
    if len(rows) < 4 or rows.source_id.nunique() < 3:
        raise InputError(
            f"{metric}: there are {len(rows)} outputs of {rows.source_id.nunique()} sources with both a "
            f"rating and a score; 4 of 3 are the least"
        )
    correlations = [
        correlation(rows[metric], rows.rating, method, groups=rows.source_id, n_boot=n_boot)
        for method in ("pearson", "spearman")
    ]
    far = _outliers(rows[metric], rows.rating)
    figures = "; ".join(
        f"{name} {number(one.value) or 'none'} [{number(one.low)}, {number(one.high)}]"
        for name, one in zip(("Pearson", "Spearman"), correlations)
    )
    pearson = correlations[0]
    verdict = "is not shown to go with the ratings"
    if pearson.low > 0:
        verdict = "rises with the ratings"
    elif pearson.high < 0:
        verdict = "falls where the ratings rise"
    listed = [
        [
            place,
            tag(
                "div",
                isolated(f"{rows.system[row]}, item {rows['item'][row]}"),
                *([tag("div", isolated(str(rows.output[row])[:160]))] if texts else []),
            ),
            number(rows[metric][row]),
            number(rows.rating[row], 2),
        ]
        for place, row in enumerate(far, 1)
    ]
    name = metric.replace("_", " ")
    return answered(
        f"{name} {verdict}: {figures}.",
        tag(
            "p",
            f"{len(rows)} outputs of {rows.source_id.nunique()} sources; 95% intervals by resampling sources.",
        ),
        _agreement_scatter(rows[metric], rows.rating, far, x_label=name),
        table(["", "output", "score", "rating"], listed, "Farthest from the line"),
    )


def _measured_picture(
    score: str,  # as the table of evidence calls it
    criterion: str,  # what people were asked
) -> Picture:
    """How closely a score followed people on every set where it was measured."""
    rows = score_beside_people(score, [criterion])
    charts = [
        panels_chart(
            [
                Panel(
                    MEASURES[measure],
                    [
                        ScoreInterval(row.data_set, row.value, row.low, row.high, digits=2)
                        for row in part.itertuples()
                    ],
                    origin=measure not in ("auc", "map", "accuracy"),
                )
            ],
            fitting=True,
        )
        for measure, part in rows.groupby("measure", sort=False)
    ]
    return answered(
        f"{score.replace('_', ' ')} followed people better than every trivial score on {rows.beats.sum()} of "
        f"{len(rows)} set{'s' * (len(rows) > 1)} where they were asked for {criterion.replace('_', ' ')}.",
        side_by_side(*charts),
        *(tag("p", f"{row.data_set}: {in_words(row)}.") for row in rows.itertuples()),
    )


def _study_of(name: str) -> tuple[pd.DataFrame, list[str]]:
    """Ratings with scores beside them, and the names of the scores."""
    if name in _SIMULATED:
        return simulated_ratings(*_SIMULATED[name]).assign(data_set=name), list(SIMULATED_SCORES)
    scores = stored_scores(name).drop(columns=["system", "source_id"])  # the ratings say these
    return load_ratings(name).merge(scores, on=["data_set", "item"]), [
        column for column in scores if column not in OUTPUT_KEYS
    ]


_MEASURED = "all sets with people's ratings"  # what was measured on them ships, their texts do not
_SIMULATED = {"simulated, 50 sources": (50, 6), "simulated, 12 sources": (12, 3)}


def _on_this_machine() -> list[str]:
    """The published studies whose files and scores are here."""
    there = []
    for name in STUDIES if packaged_path("agreement_scores.csv.gz").is_file() else ():
        try:
            corpus_path(name)
        except AssetError:
            continue
        there.append(name)
    return there


def _offer(box, options: list[str]) -> str:
    """Put options into a list, keep the chosen one if it is still there, and say which one is chosen."""
    if list(box.options) != options:
        selection = box.value
        box.options = options
        box.value = selection if selection in options else options[0]
    return box.value


def agreement_explorer(
    # one row an output and criterion, with columns of scores; None: what was measured, published and simulated studies
    ratings: pd.DataFrame | None = None,
    metrics: Sequence[str] = (),  # the columns of scores in `ratings`
    n_boot: int = 1000,  # resamples of sources
):
    """An explorer of how closely a metric follows people. Returns a widget."""
    if ratings is not None and not metrics:
        raise InputError("metrics: say which columns of the ratings are scores")
    own = (
        {}
        if ratings is None
        else {str(name): part for name, part in ratings.groupby("data_set", sort=False)}
    )
    load = lru_cache(lambda name: (own[name], list(metrics)) if name in own else _study_of(name))
    names = list(own) or [_MEASURED, *_on_this_machine(), *_SIMULATED]
    boxes = {
        "data_set": choice("data set", names, names[0]),
        "criterion": choice("criterion", ["content"], "content"),
        "metric": choice("metric", ["cps"], "cps"),
    }

    def draw(data_set, criterion, metric):
        if data_set == _MEASURED:
            measured = evidence()
            criterion = _offer(boxes["criterion"], list(dict.fromkeys(measured.criterion)))
            there = dict.fromkeys(measured.score[measured.criterion == criterion])
            return _measured_picture(_offer(boxes["metric"], list(there)), criterion)
        rated, scores = load(data_set)
        criterion = _offer(boxes["criterion"], list(dict.fromkeys(rated.criterion)))
        part = rated[rated.criterion == criterion]
        there = [
            name
            for name in (
                metrics_for(criterion, part[scores])
                if data_set in STUDIES and data_set not in own
                else scores
            )
            if part[name].notna().sum() > 3
        ]
        if not there:
            raise InputError(f"no score of {data_set} was made for {criterion}")
        return picture(data_set, criterion, _offer(boxes["metric"], there))

    @lru_cache
    def picture(data_set, criterion, metric):
        rated = load(data_set)[0]
        return _agreement_picture(
            rated[rated.criterion == criterion],
            metric,
            texts=data_set not in STUDIES,
            n_boot=n_boot,
        )

    return explorer("Does this metric follow people?", [boxes], draw)


_SIZES = (10, 20, 40, 80, 160, 320, 640)  # test sets whose power is simulated


def _difference_picture(
    scores: pd.DataFrame,  # N sources, a column for each of two systems
    n: int,  # sentences of a test set, >= 2
    power: np.ndarray,  # of `_SIZES`, in 0..1
) -> Picture:
    """Where the two means and their difference lie on test sets of n, and how often a test would find it."""
    first, second = scores.columns
    counts = np.random.default_rng(0).multinomial(
        n, np.full(len(scores), 1 / len(scores)), size=2000
    )
    means = counts @ scores.to_numpy(float) / n
    rows = {first: means[:, 0], second: means[:, 1], "difference": means[:, 0] - means[:, 1]}
    frame = pd.DataFrame(
        [
            {"system": name, "mean": drawn.mean(), "mean_low": low, "mean_high": high}
            for name, drawn in rows.items()
            for low, high in [percentiles(drawn)]
        ]
    )
    here = float(np.interp(np.log(n), np.log(_SIZES), power))
    last, seen = frame.iloc[2], float((scores[first] - scores[second]).mean())
    headline = (
        f"On 95 of 100 test sets of {n} sentences {first} minus {second} lies from {number(last.mean_low)} to "
        f"{number(last.mean_high)}. If the difference in these {len(scores)} sources, {number(seen)}, is the true one, "
        f"a paired test at 0.05 finds a difference on about {100 * here:.0f}."
    )
    return answered(
        headline,
        side_by_side(
            interval_plot(frame[:2], ["mean"], ["means apart"]),
            interval_plot(frame[2:], ["mean"], ["first minus second"]),
            curve_and_point(
                _SIZES, power, (n, here), x_label="sentences in the test set", y_label="power"
            ),
        ),
    )


def difference_explorer(
    # a row an output: system, row (which source), and columns of scores; None: the systems of chapter 14
    scores: pd.DataFrame | None = None,
    columns: Sequence[str] = ("sti", "sti_statements", "cps", "bleu"),  # the columns of scores
    pair: tuple[str, str] = ("reranked", "human"),  # the systems that are compared at first
):
    """An explorer of two systems on test sets of any size. Returns a widget."""
    if scores is None:
        scores = pd.read_csv(packaged_path("rewrite_scores.csv"))
    tables = {
        column: scores.pivot(index="row", columns="system", values=column) for column in columns
    }
    power = lru_cache(
        lambda column, *pair: power_curve(
            *(mean_statistics(tables[column][system]) for system in pair),
            _SIZES,
            n_simulations=100,
            n_trials=200,
        )["power"].to_numpy()
    )
    names = list(dict.fromkeys(scores.system))
    boxes = {
        "column": choice("score", list(columns), columns[0]),
        "first": choice("system", names, pair[0]),
        "second": choice("against", names, pair[1]),
        "n": slider("sentences", 70, 10, _SIZES[-1], 10),
    }

    def draw(column, first, second, n):
        if first == second:
            raise InputError(f"{first} against itself has no difference; choose another system")
        return _difference_picture(tables[column][[first, second]], n, power(column, first, second))

    return explorer(
        "Would you see that one is better?", [boxes], draw, slow=("column", "first", "second")
    )


def _ratings_worth(r, rated: int, scored: int) -> np.ndarray:
    """So many ratings without scores would tell as much; `r` of any shape, in 0..1. Source: Cochran 1977, chapter 7."""
    explained = np.square(r)
    return 1 / ((1 - explained) / rated + explained / scored)


def ratings_explorer(
    r: float = 0.5,  # correlation of score and rating, 0..0.95
    rated: int = 100,  # outputs with a rating
    scored: int = 10_000,  # outputs with a score, those with a rating among them
):
    """An explorer of what ratings are worth beside scores. Returns a widget."""
    boxes = {
        "r": slider("correlation", r, 0.0, 0.95, 0.01),
        "rated": slider("rated", rated, 10, 1000, 10),
        "scored": slider("scored", scored, 100, 20_000, 100),
    }

    def draw(r, rated, scored):
        if scored < rated:
            raise InputError(
                f"{rated} outputs are rated, {scored} scored; each of them needs a score"
            )
        worth = float(_ratings_worth(r, rated, scored))
        grid = np.linspace(0, 0.95, 96)
        ends = [f"±{1.96 / np.sqrt(count):.3f}" for count in (rated, worth)]
        headline = (
            f"{rated:,} ratings are worth {worth:,.0f}. The interval of the mean is {ends[1]} standard deviations "
            f"of a rating; without scores it is {ends[0]}."
        )
        return answered(
            headline,
            curve_and_point(
                grid,
                _ratings_worth(grid, rated, scored),
                (r, worth),
                x_label="correlation of score and rating",
                y_label="ratings' worth",
                mark=(0.0, f"{rated:,} without scores"),
            ),
        )

    return explorer("What is a rating worth?", [boxes], draw)


def digits_explorer(
    weights: Sequence[int] = (
        0,
        0,
        1,
        0,
        2,
    ),  # of the digits 1 to 5, 0..10; what counts is each one's share of the sum
    other: int = 1,  # likewise, of everything else
):
    """An explorer of a judge's expected score: probabilities of five digits and of all else. Returns a widget."""
    boxes = {
        f"digit_{digit}": slider(f"says {digit}", weight, 0, 10, 1)
        for digit, weight in enumerate(weights, 1)
    }

    def draw(other, **digits):
        all_weights = np.array([*digits.values(), other], dtype=float)
        if not all_weights.sum():
            raise InputError("all weights are 0; a judge says something")
        shares = all_weights / all_weights.sum()
        mean = float(expected_score([shares[:5]], range(1, 6))[0])
        likeliest = 1 + int(shares[:5].argmax())
        rows = [
            [name, bar(share), number(share, 2)]
            for name, share in zip([*"12345", "something else"], shares)
        ]
        headline = (
            f"Expected score {number(mean, 2) or 'none'}, mass on the scale {number(shares[:5].sum(), 2)}; "
            f"likeliest digit {likeliest if shares[:5].any() else 'none'}."
        )
        return answered(
            headline,
            table(["first token", "probability", ""], rows, "What it says"),
        )

    return explorer(
        "What score does the judge give?",
        [boxes, {"other": slider("something else", other, 0, 10, 1)}],
        draw,
    )
