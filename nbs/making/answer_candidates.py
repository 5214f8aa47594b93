"""Properties of an answer, and their rivals, held against people: figures alone are written.

    python nbs/making/answer_candidates.py    # the rows of relevance in tsteval/data/answer_candidates.csv; half an hour
    python nbs/making/avoided_answer_model.py FOLDER    # those of avoided answers

wikiqa           which sentence of an article answers the question: mean average precision and mean reciprocal rank over
                 the questions; equal scores in every order.
llmbar           which of two outputs follows the instruction: share of right choices.
usr_*            Spearman's correlation with "maintains context".
grade_dialogue   Spearman's correlation with the rated coherence, of each of its three parts.

Needs these sets in TSTEVAL_DATA. Intervals are from 2,000 resamples of sources: questions, pairs of outputs, contexts.
"""

import re
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from tsteval.answers import relevance
from tsteval.core.resample import (
    Interval,
    bootstrap_interval,
    mean_statistics,
    percentiles,
    resample_rows,
)
from tsteval.tables.ratings import load_ratings
from tsteval.training.logistic import cross_validated

TABLE = Path(__file__).parents[2] / "tsteval" / "data" / "answer_candidates.csv"
COLUMNS = ["property", "data", "measure", "way", "rival", "value", "low", "high", "n"]
DIALOGUES = {
    "usr_topicalchat": "maintains_context",
    "usr_personachat": "maintains_context",
    "grade_dialogue": "coherence",
}

IN_DIALOGUE = ("cosine", "cosine, mpnet", "words", "rare words in common", "length")


def write_rows(rows: list[dict]) -> None:
    """Put the rows of one property in the place of those that the table has of it."""
    made = pd.DataFrame(rows)[COLUMNS].round(4)
    known = pd.read_csv(TABLE, keep_default_na=False) if TABLE.exists() else made[:0]
    kept = known[~known.property.isin(made.property)]
    pd.concat([kept, made]).sort_values("property", kind="stable").to_csv(TABLE, index=False)


def mean_by_source(values, sources) -> Interval:
    """A mean over rows, with an interval from resampled sources."""
    sums = pd.DataFrame(mean_statistics(values)).groupby(np.asarray(sources)).sum().to_numpy()
    return bootstrap_interval(sums, n_resamples=2000)


def ranks_of_the_right(
    scores,  # (N,) NaN counts as the lowest
    right,  # (N,) True where people said that the row answers
    questions,  # (N,) to which question it belongs
    orders: int = 100,  # in so many random orders equal scores are ranked
) -> (
    np.ndarray
):  # (Q, 2) average precision and reciprocal rank of each question, mean over the orders
    """Where the right answers stand when the rows of a question are sorted by their score."""
    random = np.random.default_rng(0)
    scores = np.nan_to_num(np.asarray(scores, dtype=float), nan=-np.inf)
    found = []
    for rows in pd.DataFrame({"question": questions}).groupby("question").indices.values():
        quality = []
        for _ in range(orders if len(set(scores[rows])) < len(rows) else 1):
            order = np.lexsort((random.random(len(rows)), -scores[rows]))
            places = np.flatnonzero(np.asarray(right)[rows][order]) + 1
            precision = np.arange(1, len(places) + 1) / places
            quality.append((precision.mean(), 1 / places[0]))
        found.append(np.mean(quality, axis=0))
    return np.array(found)


def words_of(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def shared_words(inputs, outputs) -> tuple[np.ndarray, np.ndarray]:
    """(N,) how many words output and input have in common, and the same weighted by how rare a word is among outputs."""
    asked, said = ([words_of(text) for text in texts] for texts in (inputs, outputs))
    counts = pd.Series([word for words in said for word in words]).value_counts()
    weight = np.log((len(said) + 1) / (counts + 1)).to_dict()
    common = [first & second for first, second in zip(asked, said)]
    plain = np.array([len(words) for words in common], dtype=float)
    return plain, np.array([sum(weight[word] for word in sorted(words)) for words in common])


def ways(table: pd.DataFrame) -> dict[str, np.ndarray]:
    """Every way of scoring the rows of a set."""
    inputs, outputs = list(table.source), list(table.output)
    shared, rare = shared_words(inputs, outputs)
    cosine = relevance(inputs, outputs)
    words = relevance(inputs, outputs, method="words")
    return {
        "cosine": cosine,
        "cosine, mpnet": relevance(inputs, outputs, model="all-mpnet-base-v2"),
        "words": words,
        "mean of cosine and words": (cosine + np.nan_to_num(words)) / 2,
        "words in common": shared,
        "rare words in common": rare,
        "length": np.array([len(text.split()) for text in outputs], dtype=float),
        "random": np.zeros(len(table)),
    }


def spearman(values, ratings) -> float:
    return float(np.corrcoef(rankdata(values), rankdata(ratings))[0, 1])


def row(data: str, measure: str, way: str, found: Interval, n: int, rival: str = "") -> dict:
    return {
        "property": "relevance",
        "data": data,
        "measure": measure,
        "way": way,
        "rival": rival,
        "value": found.score,
        "low": found.low,
        "high": found.high,
        "n": n,
    }


def wikiqa_rows() -> list[dict]:
    table = load_ratings("wikiqa")
    right = table.rating.to_numpy() > 0.5
    scores = ways(table)
    scores["trained on other questions"] = cross_validated(
        np.column_stack(
            [
                scores["cosine"],
                np.nan_to_num(scores["words"]),
                scores["rare words in common"],
                np.log1p(scores["length"]),
            ]
        ),
        right,
        table.source_id,
    )
    del scores["length"]
    found = {
        way: ranks_of_the_right(values, right, table.source_id) for way, values in scores.items()
    }
    rows = []
    for place, measure in enumerate(("MAP", "MRR")):
        for way, quality in found.items():
            values = quality[:, place]
            one = bootstrap_interval(mean_statistics(values), n_resamples=2000)
            rows.append(row("wikiqa", measure, way, one, len(values)))
        for rival, quality in found.items():
            if rival != "cosine":
                gain = mean_statistics(found["cosine"][:, place] - quality[:, place])
                one = bootstrap_interval(gain, n_resamples=2000)
                rows.append(row("wikiqa", measure, "cosine", one, len(gain), rival))
    return rows


def llmbar_rows() -> list[dict]:
    table = load_ratings("llmbar").sort_values(["source_id", "system"])
    scores = ways(table)
    del scores["random"]
    better = table.rating.to_numpy().reshape(-1, 2) > 0.5
    subset = table.subset.to_numpy()[::2]
    rows = []
    for name in ("Natural", "Neighbor", "GPTInst", "GPTOut", "Manual"):
        for way, values in scores.items():
            pairs = np.nan_to_num(values).reshape(-1, 2)[subset == name]
            lead = np.where(better[subset == name, 0], 1, -1) * (pairs[:, 0] - pairs[:, 1])
            share = mean_statistics((np.sign(lead) + 1) / 2)
            one = bootstrap_interval(share, n_resamples=2000)
            rows.append(row(f"llmbar {name}", "accuracy", way, one, len(pairs)))
    return rows


def dialogue_rows() -> list[dict]:
    rows = []
    for data, criterion in DIALOGUES.items():
        table = load_ratings(data).query("criterion == @criterion")
        scores = pd.DataFrame(ways(table)).drop(columns="random")
        parts = table.part if "part" in table else pd.Series("", table.index)
        for part in parts.unique():
            chosen = (parts == part).to_numpy()
            ratings = table.rating.to_numpy()[chosen]
            groups = list(table[chosen].groupby("source_id").indices.values())
            draws = [
                np.concatenate([groups[place] for place in drawn])
                for drawn in resample_rows(len(groups), 2000)
            ]
            for way in IN_DIALOGUE:
                values = np.nan_to_num(scores[way].to_numpy()[chosen])
                score = spearman(values, ratings)
                resampled = np.array([spearman(values[drawn], ratings[drawn]) for drawn in draws])
                one = Interval(score, *percentiles(resampled), float(resampled.mean()))
                name = f"{data} {part}".strip()
                rows.append(row(name, f"Spearman, {criterion}", way, one, len(values)))
    return rows


if __name__ == "__main__":
    write_rows([*wikiqa_rows(), *llmbar_rows(), *dialogue_rows()])
    print(pd.read_csv(TABLE).query("property == 'relevance'").to_string())
