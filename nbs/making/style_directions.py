"""Is style separate from content in the vectors that content scores compare?

    python nbs/making/style_directions.py FOLDER    # a quarter of an hour on one core; needs style_gap, lai2022,
    # mir2019, pt16_formality and NLTK's sentence_polarity

A linear probe looks for three styles in the sentence vectors of both encoders: its accuracy on texts that it was not
trained on says how well the style can be read there. Then directions are projected out of the vectors, and the cosine
of source and output is correlated with people's ratings of content again: the directions of the probes, or the
differences of the means of the two sides of each style. FOLDER keeps the vectors between
runs. Written: tsteval/data/style_directions.csv.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from content_scores import CORPORA, SETS, correlations
from nltk.corpus import sentence_polarity
from scipy.optimize import minimize
from scipy.special import expit

from tsteval.core.assets import packaged_path
from tsteval.core.resample import bootstrap_interval, mean_statistics
from tsteval.cps import SentenceEncoder
from tsteval.style import load_pairs

ENCODERS = ("all-MiniLM-L6-v2", "all-mpnet-base-v2")
RATED = ("style_gap", "lai2022", "mir2019")
RESAMPLES = 2000
PENALTY = 30.0
EACH = 800  # sentences a side: the most and the least formal of pt16, positive and negative ones of NLTK's reviews


def training_texts() -> dict[str, tuple[list[str], np.ndarray, np.ndarray]]:
    """Style -> texts, label, and which of two halves they belong to; both texts of a pair are in one half."""
    rated = pd.read_csv(CORPORA / "pt16_formality" / "train.csv").sort_values("label").sentence
    pairs = load_pairs("npov_pairs").query("source != target")
    polar = [
        [" ".join(words) for words in sentence_polarity.sents(categories=kind)[:EACH]]
        for kind in ("pos", "neg")
    ]
    sides = {
        "formality": (rated[-EACH:], rated[:EACH]),
        "neutrality": (pairs.source, pairs.target),
        "sentiment": tuple(polar),
    }
    found = {}
    for style, (first, second) in sides.items():
        half = np.random.default_rng(0).permutation(len(first)) % 2
        found[style] = ([*first, *second], np.repeat([1.0, 0.0], len(first)), np.tile(half, 2))
    return found


def fit_probe(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Logistic regression with a penalty, on standardised vectors: a weight for each dimension, the constant last."""
    mean = x.mean(axis=0)
    spread = x.std(axis=0)
    sign = 2 * y - 1
    z = (x - mean) / spread

    def loss(w):
        margin = sign * (z @ w[:-1] + w[-1])
        pull = -sign * expit(-margin)
        return (
            np.logaddexp(0, -margin).sum() + PENALTY * (w[:-1] ** 2).sum(),
            np.append(z.T @ pull + 2 * PENALTY * w[:-1], pull.sum()),
        )

    w = minimize(loss, np.zeros(x.shape[1] + 1), jac=True, method="L-BFGS-B").x
    weights = w[:-1] / spread
    return np.append(weights, w[-1] - weights @ mean)


def says(probe: np.ndarray, x: np.ndarray) -> np.ndarray:
    return x @ probe[:-1] + probe[-1] > 0


def vectors_of(encoder: SentenceEncoder, name: str, texts: list[str], folder: Path) -> np.ndarray:
    path = folder / f"{encoder.name}-{name}.npy"
    if not path.exists():
        np.save(path, encoder.encode(texts))
    return np.load(path)


def without(vectors: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """The vectors without their parts along the directions, (K, D) rows of any length."""
    basis = np.linalg.qr(directions.T)[0]
    return vectors - vectors @ basis @ basis.T


def cosines(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (a * b).sum(axis=1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    trained = training_texts()
    for name in ENCODERS:
        encoder = SentenceEncoder.load(name)
        probes = []
        means = []
        for style, (texts, label, half) in trained.items():
            x = vectors_of(encoder, style, texts, folder)
            right = np.concatenate(
                [
                    says(fit_probe(x[half != held], label[half != held]), x[half == held])
                    == label[half == held]
                    for held in (0, 1)
                ]
            )
            share = bootstrap_interval(mean_statistics(right.astype(float)))
            rows.append(
                {
                    "encoder": name,
                    "data": style,
                    "removed": "",
                    "measure": "probe accuracy",
                    "value": share.score,
                    "low": share.low,
                    "high": share.high,
                    "n": len(x),
                }
            )
            probes.append(fit_probe(x, label)[:-1])
            means.append(x[label == 1].mean(axis=0) - x[label == 0].mean(axis=0))
        removed = {
            "a random direction": np.random.default_rng(0).normal(size=(1, len(means[0]))),
            "the three probes": np.stack(probes),
        }
        removed |= {style: mean[None] for style, mean in zip(trained, means)} | {
            "all three": np.stack(means)
        }
        for data in RATED:
            table = SETS[data]()
            known = table.rating.notna().to_numpy()
            both = vectors_of(encoder, data, [*table.source, *table.output], folder)
            both = both.reshape(2, len(table), -1)[:, known]
            table = table[known].reset_index(drop=True)
            columns = {"": cosines(*both)} | {
                label: cosines(*(without(side, those) for side in both))
                for label, those in removed.items()
            }
            rows += with_intervals(name, data, columns, table)
        print(name, "done", flush=True)
    pd.DataFrame(rows).round(4).to_csv(packaged_path("style_directions.csv"), index=False)


def with_intervals(
    encoder: str, data: str, columns: dict[str, np.ndarray], table: pd.DataFrame
) -> list[dict]:
    """Pearson of each cosine with the ratings, and its difference to the whole vectors', with the 95% intervals of
    resampled sources."""
    values = np.column_stack(list(columns.values()))
    rating = table.rating.to_numpy(float)
    groups = list(table.groupby("source").indices.values())
    random = np.random.default_rng(0)
    drawn = []
    for _ in range(RESAMPLES):
        rows = np.concatenate(
            [groups[place] for place in random.integers(len(groups), size=len(groups))]
        )
        drawn.append(correlations(values[rows], rating[rows]))
    drawn = np.array(drawn)
    found = correlations(values, rating)
    result = []
    for measure, value, draws in (
        ("pearson", found, drawn),
        ("minus whole", found - found[0], drawn - drawn[:, :1]),
    ):
        low, high = np.quantile(draws, (0.025, 0.975), axis=0)
        result += [
            {
                "encoder": encoder,
                "data": data,
                "removed": label,
                "measure": measure,
                "value": value[place],
                "low": low[place],
                "high": high[place],
                "n": len(table),
            }
            for place, label in enumerate(columns)
        ]
    return result


if __name__ == "__main__":
    main(Path(sys.argv[1]))
