"""Properties against trivial rivals on labelled texts that may not be shipped: figures alone are written.

    python nbs/making/property_rivals.py    # tsteval/data/property_rivals.csv; two minutes

readability  Brown corpus: does a passage come from its informative or its imaginative half? One passage a text, its
             first twenty sentences. AUC, 2,000 resamples of texts.
formality    Pavlick and Tetreault's held-out sentences: Spearman's correlation with the mean rating, 2,000 resamples.

`way` against `rival` is the paired difference on the same resamples. Needs NLTK's brown, and pt16_formality in
TSTEVAL_DATA.
"""

import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from tsteval.core.resample import bootstrap_interval
from tsteval.surface import flesch_reading_ease, reading_counts
from tsteval.tone import formality

sys.path.insert(0, str(Path(__file__).parent))
DATA = Path(__file__).parents[2] / "tsteval" / "data"
IMAGINATIVE = ("fiction", "mystery", "science_fiction", "adventure", "romance", "humor")


def letters_a_word(texts) -> np.ndarray:
    """Mean length of a text's words in letters; 0 without a word."""
    found = [[len(word) for word in re.findall(r"[^\W\d_]+", text)] for text in texts]
    return np.array([np.mean(row) if row else 0.0 for row in found])


def passages(sentences: int = 20) -> tuple[list[str], np.ndarray]:
    """The beginnings of Brown's texts, and whether each is imaginative prose."""
    from nltk.corpus import brown

    texts = []
    labels = []
    for name in brown.fileids():
        rows = [" ".join(row) for row in brown.sents(fileids=[name])[:sentences]]
        texts.append(
            re.sub(r" (?=[.,;:?!])", "", " ".join(rows).replace("``", '"').replace("''", '"'))
        )
        labels.append(brown.categories(fileids=[name])[0] in IMAGINATIVE)
    return texts, np.array(labels)


def rows_of(scores: dict, score, n: int, about: dict) -> list[dict]:
    """Each way with its interval, and the first one against each other on the same resamples."""
    (first, values), *others = scores.items()
    asked = [(way, "", lambda counts, of=of: score(of, counts)) for way, of in scores.items()]
    asked += [
        (first, rival, lambda counts, of=of: score(values, counts) - score(of, counts))
        for rival, of in others
    ]
    rows = []
    for way, rival, statistic in asked:
        found = bootstrap_interval(np.eye(n), statistic, n_resamples=2000)
        rows.append(
            {
                **about,
                "way": way,
                "rival": rival,
                "value": found.score,
                "low": found.low,
                "high": found.high,
                "n": n,
            }
        )
    return rows


def readability_rows() -> list[dict]:
    texts, easy = passages()
    words, sentences, syllables = reading_counts(texts, "rule").T
    scores = {
        "readability": flesch_reading_ease(words, sentences, syllables),
        "short words": -letters_a_word(texts),
        "short sentences": -words / sentences,
    }

    def auc(values, counts):
        larger = np.sign(values[easy][:, None] - values[~easy]) / 2 + 0.5
        ours = counts[..., easy]
        theirs = counts[..., ~easy]
        return np.einsum("...i,ij,...j->...", ours, larger, theirs, optimize=True) / (
            ours.sum(-1) * theirs.sum(-1)
        )

    return rows_of(
        scores, auc, len(texts), {"property": "readability", "data": "Brown", "measure": "AUC"}
    )


def formality_rows() -> list[dict]:
    from formality_model import load_ratings

    rated = load_ratings().query("split == 'test'")
    texts = list(rated.text)
    ratings = rated.rating.to_numpy()
    scores = {
        "formality": formality(texts),
        "long words": letters_a_word(texts),
        "long text": np.array([len(text) for text in texts], float),
    }

    def spearman(values, counts):
        """Pearson's correlation of the ranks, weighed by how often each row was drawn."""
        a, b = (np.broadcast_to(rankdata(one), counts.shape) for one in (values, ratings))
        total = counts.sum(-1, keepdims=True)
        a, b = (one - (counts * one).sum(-1, keepdims=True) / total for one in (a, b))
        return (counts * a * b).sum(-1) / np.sqrt(
            (counts * a * a).sum(-1) * (counts * b * b).sum(-1)
        )

    return rows_of(
        scores,
        spearman,
        len(texts),
        {"property": "formality", "data": "Pavlick and Tetreault", "measure": "Spearman"},
    )


if __name__ == "__main__":
    table = pd.DataFrame([*readability_rows(), *formality_rows()]).round(4)
    table.to_csv(DATA / "property_rivals.csv", index=False)
    print(table.to_string())
