"""How often intervals of `estimate_mean` hold the truth, and what a rating is worth beside scores: four rated sets.

    python nbs/making/estimation_coverage.py [DRAWS]       # an hour; needs the corpora (TSTEVAL_DATA)

Written: tsteval/data/estimation_coverage.csv, figures alone. In each draw a table of 10,000 scored sources is made by
drawing a set's sources with replacement, the first n of them are rated, and the truth is the mean rating of the set. In
the scope "set" every output is a source of its own; in the scope "system" one system is drawn at random first, and the
truth is its mean.

Columns: data_set, criterion, scores, scope, n, draws; r (correlation of the first score, of the set or the mean of
those within systems); coverage of the estimate's 95% interval, plain_coverage of Student's for the ratings alone; bias
of the estimate, in standard deviations of it; worth (median of labels_worth, for n ratings), worth_true (n times the
ratio of the two variances over all draws), used (share of draws in which the scores were used), untuned (how many times
wider than the plain mean's the interval is if the first score is taken for a rating, in its own unit).
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import t

from tsteval.people.estimators import estimate_mean
from tsteval.tables.ratings import load_ratings, stored_scores

SOURCES = 10_000
CONTENT = ["cosine", "bleu", "rouge_l", "chrf", "meteor", "bert_score"]
CONFIGS = [
    ("mir2019", "style", ["sti"]),
    ("mir2019", "content", ["cosine"]),
    ("mir2019", "content", CONTENT),
    ("mir2019", "naturalness", ["pen_lp"]),
    ("lai2022", "content", ["cosine"]),
    ("lai2022", "content", ["style_aware"]),
    ("lai2022", "content", [*CONTENT, "style_aware"]),
    ("style_gap", "content", ["cosine"]),
    ("style_gap", "content", ["style_aware"]),
    ("msr_compression", "content", ["cosine"]),
    ("msr_compression", "naturalness", ["wpslor"]),
]


def parts(
    data_set: str, criterion: str, names: list[str], scope: str
) -> list[tuple[np.ndarray, ...]]:
    """Scores and ratings in the order of their sources, where each source begins and how many rows it has; for the set
    or for each of its systems."""
    ratings = load_ratings(data_set).query("criterion == @criterion").set_index("item")
    table = (
        stored_scores(data_set)
        .set_index("item")
        .loc[ratings.index, names]
        .assign(rating=ratings.rating)
    )
    table["source"] = np.arange(len(table)) if scope == "set" else ratings.source_id
    table["system"] = "all" if scope == "set" else ratings.system
    table = table[np.isfinite(table[[*names, "rating"]]).all(axis=1)].sort_values(
        "source", kind="stable"
    )
    return [
        (
            part[names].to_numpy(float),
            part.rating.to_numpy(float),
            *np.unique(part.source, return_index=True, return_counts=True)[1:],
        )
        for _, part in table.groupby("system", sort=False)
    ]


def drawn(
    scores: np.ndarray,
    ratings: np.ndarray,
    first: np.ndarray,
    counts: np.ndarray,
    n: int,
    generator,
) -> tuple:
    """One draw: the estimate beside its rivals."""
    taken = generator.integers(len(first), size=SOURCES)
    sizes = counts[taken]
    sources = np.repeat(np.arange(SOURCES), sizes)
    chosen = (
        np.arange(len(sources))
        - np.repeat(np.cumsum(sizes) - sizes, sizes)
        + np.repeat(first[taken], sizes)
    )
    truth = ratings.mean()
    x = scores[chosen]
    rated = sources < n
    y = np.where(rated, ratings[chosen], np.nan)
    found = estimate_mean(y, x, sources)
    plain_error = found.error * np.sqrt(found.labels_worth / found.n_rated)
    free = y[rated] - x[rated, 0]  # slope 1, as if the score were a rating already
    untuned = np.hypot(free.std() / rated.sum() ** 0.5, x[:, 0].std() / len(x) ** 0.5) / (
        y[rated].std() / rated.sum() ** 0.5
    )
    return (
        found.low <= truth <= found.high,
        abs(found.mean_of_ratings - truth) <= t.ppf(0.975, n - 1) * plain_error,
        found.mean - truth,
        found.mean_of_ratings - truth,
        found.labels_worth / found.n_rated * n,
        found.scored_variance > 0,
        untuned,
    )


def figures(
    data_set: str, criterion: str, names: list[str], scope: str, n: int, draws: int
) -> dict:
    """A row of the table."""
    generator = np.random.default_rng([n, len(names), CONFIGS.index((data_set, criterion, names))])
    known = parts(data_set, criterion, names, scope)
    which = generator.integers(len(known), size=draws)
    found = pd.DataFrame(
        [drawn(*known[place], n, generator) for place in which],
        columns=["holds", "plain_holds", "mean", "plain", "worth", "used", "untuned"],
    )
    centred = found.assign(
        mean=found["mean"] - found.groupby(which)["mean"].transform("mean"),
        plain=found.plain - found.groupby(which).plain.transform("mean"),
    )
    ratio = centred.plain.var() / centred["mean"].var()
    r = np.mean([np.corrcoef(scores[:, 0], ratings)[0, 1] for scores, ratings, *_ in known])
    return {
        "data_set": data_set,
        "criterion": criterion,
        "scores": " ".join(names),
        "scope": scope,
        "n": n,
        "draws": draws,
        "r": r,
        "coverage": found.holds.mean(),
        "plain_coverage": found.plain_holds.mean(),
        "bias": found["mean"].mean() / found["mean"].std(),
        "worth": found.worth.median(),
        "worth_true": n * ratio,
        "used": found.used.mean(),
        "untuned": found.untuned.mean(),
    }


if __name__ == "__main__":
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 4000
    rows = [
        figures(*config, scope, n, draws)
        for config in CONFIGS
        for scope in ("set", "system")
        for n in (30, 100)
    ]
    path = Path(__file__).resolve().parents[2] / "tsteval" / "data" / "estimation_coverage.csv"
    pd.DataFrame(rows).to_csv(path, index=False, float_format="%.4g")
    print(pd.DataFrame(rows).round(3).to_string(index=False))
