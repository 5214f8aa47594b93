"""The larger tier's judge of formality: python nbs/making/formality_judge.py

Fits a ridge regression from all layers of all-mpnet-base-v2, which is left as it is, to people's ratings of formality,
brings it to two classes, writes it to tsteval/data/formality-mpnet, and measures what was written beside the small one.
It needs the ratings of Pavlick and Tetreault (2016) and Lai et al. (2022) in TSTEVAL_DATA; ten minutes on one core.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import torch
from formality_model import (
    LABELS,
    correlation,
    load_elsewhere,
    load_ratings,
    ranked_pairs,
    spearman,
)

from tsteval.core.files import file_sha256
from tsteval.core.resample import bootstrap_interval, mean_statistics, paired_bootstrap
from tsteval.models.classifier import base_model, confidence_line
from tsteval.style import StyleClassifier
from tsteval.tables.pairs import text_sha256
from tsteval.training.calibration import confidence_of
from tsteval.training.cards import markdown_table
from tsteval.training.logistic import fit_logistic

BASE = "all-mpnet-base-v2"
FOLDER = Path(__file__).parents[2] / "tsteval" / "data" / "formality-mpnet"
PENALTIES = (1e3, 3e3, 1e4, 3e4, 1e5, 3e5)

CARD = """# formality-mpnet

Labels a sentence as informal or formal: the larger tier's judge. A linear head over all layers of {base}, which is left
as it is; made by `nbs/making/formality_judge.py`. The head follows the mean rating of people (ridge regression, penalty
{penalty:g}, chosen by five-fold cross-validation on the training sentences); a logistic curve, fitted to sentences that
it was not trained on, makes the probability that of being rated above the median sentence.

## Training data

Pavlick and Tetreault (2016): sentences of news, blogs, emails and answers with the mean of people's ratings (CC BY 3.0;
not included here). {train:,} sentences trained the head, {curve:,} fitted the curve, {test:,} were held out.

## Results

Spearman's correlation with people's ratings, and pairwise accuracy on human rewrites, with 95% intervals from 2,000
resamples of sentences, outputs or pairs; the difference to formality-minilm on the same resamples.

{results}

{confidence}

## Limits

English only. It rates words and phrases, not fitness for an occasion. Its tokenizer sees no capital letters.

## Checksums

- head.safetensors: {weights}
- training text: {text}
"""


def vectors(classifier: StyleClassifier, texts: list[str]) -> np.ndarray:
    """(N, D) of all layers, in bfloat16, in a third of the time; what is written is measured over 32-bit numbers."""
    with torch.autocast("cpu", torch.bfloat16):
        return np.array(
            classifier.map_rows(
                {"texts": texts},
                lambda batch: classifier.model.base_model(**batch).pooler_output.float(),
                progress=True,
            )
        )


def ridge(known: np.ndarray, ratings: np.ndarray, penalty: float) -> tuple[np.ndarray, float]:
    """Weights and constant for vectors as they are; standardised inside, solved in as many unknowns as sentences."""
    mean = known.mean(axis=0)
    scale = known.std(axis=0).clip(1e-6)
    standard = (known - mean) / scale
    kernel = standard @ standard.T + penalty * np.eye(len(known))
    weights = standard.T @ np.linalg.solve(kernel, ratings - ratings.mean()) / scale
    return weights, float(ratings.mean() - weights @ mean)


def best_penalty(known: np.ndarray, ratings: np.ndarray) -> float:
    fold = np.random.default_rng(0).permutation(len(known)) % 5
    errors = {}
    for penalty in PENALTIES:
        errors[penalty] = 0.0
        for held in range(5):
            weights, constant = ridge(known[fold != held], ratings[fold != held], penalty)
            errors[penalty] += float(
                ((known[fold == held] @ weights + constant - ratings[fold == held]) ** 2).sum()
            )
    print({penalty: round(error / len(known), 4) for penalty, error in errors.items()})
    return min(errors, key=errors.get)


def log_odds(name: str, texts) -> np.ndarray:
    logits = StyleClassifier.load(name).predict_logits(list(texts))
    return logits[:, 1] - logits[:, 0]


def results(test: pd.DataFrame) -> list[dict]:
    """Small and large beside what is trivial, and the gain of the large one."""
    judges = {"formality-minilm": "formality-minilm", "formality-mpnet": str(FOLDER)}
    rows = []
    elsewhere = load_elsewhere()
    sign = np.where(elsewhere.to_formal, 1, -1)
    sets = {
        "held-out ratings": (test.text, test.rating.to_numpy(), 1),
        "rated outputs (Lai et al. 2022)": (
            elsewhere.out,
            ((elsewhere.human_1 + elsewhere.human_2) / 2).to_numpy(),
            sign,
        ),
    }
    for data, (texts, ratings, signs) in sets.items():
        ways = {
            "longer text": texts.str.len().to_numpy(),
            **{name: log_odds(place, texts) for name, place in judges.items()},
        }
        for name, values in ways.items():
            rows.append(row(data, name, len(texts), spearman(signs * values, ratings)))
        gained = paired_bootstrap(
            ranked_pairs(signs * ways["formality-mpnet"], ratings),
            ranked_pairs(signs * ways["formality-minilm"], ratings),
            correlation,
        )
        rows.append(
            row(
                data,
                "gain of formality-mpnet",
                len(texts),
                (gained.difference, gained.low, gained.high),
            )
        )
    people = elsewhere.query("system == 'ref' and source != out")
    sign = np.where(people.to_formal, 1, -1)
    ways = {
        "longer text": people.out.str.len() - people.source.str.len(),
        **{
            name: log_odds(place, people.out) - log_odds(place, people.source)
            for name, place in judges.items()
        },
    }
    for name, values in ways.items():
        found = bootstrap_interval(
            mean_statistics(0.5 + 0.5 * np.sign(np.asarray(values) * sign)), n_resamples=2000
        )
        rows.append(
            row("human rewrites, pairwise", name, len(people), (found.score, found.low, found.high))
        )
    return rows


def row(data: str, way: str, n: int, found: tuple[float, float, float]) -> dict:
    return {
        "data": data,
        "way": way,
        "n": n,
        "value": float(found[0]),
        "low": float(found[1]),
        "high": float(found[2]),
    }


def make() -> None:
    model, tokenizer = base_model(BASE, LABELS, "layers")
    model.config.head_over = BASE
    classifier = StyleClassifier(model, tokenizer, BASE)
    rated = load_ratings()
    splits = {name: rated.query("split == @name") for name in ("train", "curve", "test")}
    found = {name: vectors(classifier, list(splits[name].text)) for name in ("train", "curve")}
    penalty = best_penalty(found["train"], splits["train"].rating.to_numpy())
    weights, constant = ridge(found["train"], splits["train"].rating.to_numpy(), penalty)
    shift, [stretch] = fit_logistic(
        (found["curve"] @ weights + constant)[:, None],
        (np.sign(splits["curve"].rating - rated.rating.median()) + 1) / 2,
    )
    half = torch.tensor(stretch * weights / 2, dtype=torch.float32)
    with torch.no_grad():
        classifier.model.classifier.weight.copy_(torch.stack([-half, half]))
        classifier.model.classifier.bias.copy_(
            torch.tensor([-1.0, 1.0]) * (stretch * constant + shift) / 2
        )
    classifier.validation = confidence_of(classifier.predict_proba(list(splits["curve"].text)))
    classifier.save(FOLDER)
    (FOLDER / "README.md").write_text(
        CARD.format(
            base=BASE,
            penalty=penalty,
            **{name: len(part) for name, part in splits.items()},
            results=markdown_table(results(splits["test"])),
            confidence=confidence_line(classifier.validation),
            weights=file_sha256(FOLDER / "head.safetensors"),
            text=text_sha256(splits["train"].text),
        ),
        encoding="utf-8",
    )


if __name__ == "__main__":
    make()
