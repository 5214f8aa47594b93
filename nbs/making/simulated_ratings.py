"""Simulated ratings of the embedded demonstration, for tests and how-tos: nobody gave them.

    python nbs/making/simulated_ratings.py

Written: tsteval/data/simulated_ratings.csv, a row a rating: system, source, output, criterion, rating (1 to 5), rater
(simulated-1, simulated-2), inclusion (the probability with which the output was drawn). The outputs are those of
`demonstration_pairs`, drawn by `sample_outputs`. A simulated rater begins at 5; takes off for style what share of the
words that the human version dropped is still there, and for content what share of the human version's words is gone;
adds a taste for the source and a whim, and rounds.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from tsteval.evaluation import demonstration_pairs
from tsteval.people.sheets import sample_outputs
from tsteval.style import StyleClassifier
from tsteval.text import tokenize

ROWS = 90
SEED = 0


def share_left(words: set, among: set) -> float:
    """The share of words that stand among others; 0 where there are none."""
    return len(words & among) / len(words) if words else 0.0


def qualities(row) -> dict[str, float]:
    """What a rater without taste or whim would say."""
    source, output, target = (
        set(tokenize(text.lower())) for text in (row.source, row.output, row.reference)
    )
    return {
        "style": 4.6 - 3 * share_left(source - target, output),
        "content": 1 + 3.6 * share_left(target, output) ** 3,
    }


if __name__ == "__main__":
    table, _ = demonstration_pairs(StyleClassifier.load())
    generator = np.random.default_rng(SEED)
    drawn = sample_outputs(table, ROWS, SEED)
    tastes = {source: generator.normal(0, 0.5, size=2) for source in dict.fromkeys(drawn.source)}
    rows = [
        {
            "system": row.system,
            "source": row.source,
            "output": row.output,
            "criterion": criterion,
            "rating": int(
                np.clip(round(quality + tastes[row.source][place] + generator.normal(0, 0.6)), 1, 5)
            ),
            "rater": f"simulated-{rater}",
            "inclusion": round(row.inclusion, 6),
        }
        for row in drawn.itertuples()
        for place, (criterion, quality) in enumerate(qualities(row).items())
        for rater in (1, 2)
    ]
    path = Path(__file__).resolve().parents[2] / "tsteval" / "data" / "simulated_ratings.csv"
    pd.DataFrame(rows).to_csv(path, index=False, lineterminator="\n")
    print(
        pd.DataFrame(rows)
        .groupby(["criterion", "system"])
        .rating.agg(["size", "mean", "std"])
        .round(2)
    )
