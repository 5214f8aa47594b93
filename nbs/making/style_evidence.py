"""What the style classifier rests on: python nbs/making/style_evidence.py FOLDER [search | folds | npov]

Writes tsteval/data/style_{search,folds,npov}.csv; chapter 7 shows the last two. Needs the WNC sample and wiki_npov
(TSTEVAL_DATA). Vectors and the runs that fine-tune the encoder (`folds`, an hour on one core; all else takes minutes)
are kept in FOLDER, so an interrupted run goes on where it stopped.

The settings of the shipped classifier were chosen by `search`, on the four fifths of the WNC sample that are not for
testing and on the validation controls. `folds` measures them on every pair of the sample, each by a classifier that was
not trained on it.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline

from tsteval.core.assets import packaged_path
from tsteval.core.resample import bootstrap_interval, mean_statistics
from tsteval.models.classifier import StyleClassifier, base_model
from tsteval.style import (
    LABELS,
    balanced_weights,
    labelled_sentences,
    load_pairs,
    load_wiki_npov,
    text_sha256,
    train_classifier,
)
from tsteval.training.logistic import _minimum
from tsteval.words.english import load_english

CHOSEN = {"ranking_weight": 1.0, "penalty": 2.0, "control_weight": 5.0}
# the fine-tuned rival
LORA = {
    "pooling": "mean",
    "epochs": 4,
    "learning_rate": 1e-3,
    "hidden_dropout": 0.2,
    "mask_share": 0.15,
}
FOLDS = 5


class Vectors:
    """Every text's vector of all layers, computed once."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.encoder = None
        self.known = {}

    def __call__(self, texts) -> np.ndarray:
        texts = list(texts)
        new = list(dict.fromkeys(text for text in texts if text not in self.known))
        if new:
            path = self.folder / f"vectors-{text_sha256(new)[:16]}.npy"
            if not path.exists():
                np.save(path, self.encode(new))
            self.known.update(zip(new, np.load(path)))
        return np.array([self.known[text] for text in texts], dtype=np.float64)

    def encode(self, texts: list[str]) -> np.ndarray:
        self.encoder = self.encoder or StyleClassifier(
            *base_model("all-MiniLM-L6-v2", LABELS, "layers"), "MiniLM"
        )
        rows = self.encoder.map_rows(
            {"texts": texts}, lambda batch: self.encoder.model.base_model(**batch).pooler_output
        )
        return np.array(rows, dtype=np.float32)


def fit(vectors, sentences, ranking_weight: float, penalty: float):
    """A function from texts to log-odds of subjective, fitted to labelled sentences."""
    import torch

    x = vectors(sentences.text)
    mean = x.mean(axis=0)
    scale = x.std(axis=0).clip(1e-6)
    weight, bias, _ = _minimum(
        torch.tensor((x - mean) / scale),
        sentences.reset_index(drop=True),
        2,
        ranking_weight,
        penalty,
    )
    direction = (weight[0] - weight[1]).numpy() / scale
    offset = float(bias[0] - bias[1])
    return lambda texts: (vectors(texts) - mean) @ direction + offset


def bag_of_words(sentences):
    words = make_pipeline(CountVectorizer(binary=True), LogisticRegression(max_iter=1000))
    words.fit(sentences.text, sentences.label, logisticregression__sample_weight=sentences.weight)
    return lambda texts: -words.decision_function(texts)


def last_layer(vectors):
    """The mean vector of the last layer alone, of those that lie side by side."""
    return lambda texts: vectors(texts)[:, -384:]


def modifiers(sentences):
    """How many adjectives and adverbs a text has, less the median of the sentences."""

    def count(texts):
        documents = load_english().pipe(texts, disable=["ner", "parser", "lemmatizer"])
        return np.array(
            [sum(token.pos_ in ("ADJ", "ADV") for token in document) for document in documents]
        )

    median = np.median(count(sentences.text))
    return lambda texts: count(texts) - median


def measured(score, pairs) -> dict:
    """Order and labels of edited pairs, by log-odds of subjective."""
    source = score(pairs.source)
    target = score(pairs.target)
    return {
        "pairwise": np.mean(source > target) + np.mean(source == target) / 2,
        "accuracy": (np.mean(source > 0) + np.mean(target <= 0)) / 2,
    }


def own_pairs() -> pd.DataFrame:
    return pd.concat([load_pairs("npov_pairs"), load_pairs("npov_hard")], ignore_index=True)


def folds_of(n: int, k: int, seed: int) -> np.ndarray:
    folds = np.empty(n, dtype=int)
    folds[np.random.default_rng(seed).permutation(n)] = np.arange(n) % k
    return folds


def joined(*pairs):
    return pd.concat(pairs, ignore_index=True)[["source", "target"]]


def search(vectors) -> pd.DataFrame:
    own = own_pairs()
    wnc = load_pairs("wnc_sample").query("split != 'test'").reset_index(drop=True)
    controls = own.query("split == 'validation' and source == target")
    folds = folds_of(len(wnc), 4, 0)
    rows = []
    for ranking_weight in (1.0, 2.0, 4.0):
        for penalty in (0.6, 2.0, 6.0):
            for control_weight in (1.0, 5.0, 20.0):
                results = []
                for fold in range(4):
                    train = joined(own[own.split == "train"], wnc[folds != fold])
                    score = fit(
                        vectors, labelled_sentences(train, control_weight), ranking_weight, penalty
                    )
                    results.append(
                        {
                            **measured(score, wnc[folds == fold]),
                            "controls": np.mean(score(controls.source) <= 0),
                        }
                    )
                rows.append(
                    {
                        "ranking_weight": ranking_weight,
                        "penalty": penalty,
                        "control_weight": control_weight,
                        **pd.DataFrame(results).mean(),
                        "pairs": len(wnc),
                        "validation_controls": len(controls),
                    }
                )
                print(rows[-1], flush=True)
    return pd.DataFrame(rows)


def folds(vectors) -> pd.DataFrame:
    """For each pair of the sample and each classifier: whether the order and each side's label are right.

    `last layer` and `without ranking` differ from `head` in that alone. The fine-tuned rival was trained on the
    teaching pairs and four fifths of the sample; *head, without hard* on the same pairs.
    """
    own = own_pairs().query("split == 'train'")
    wnc = load_pairs("wnc_sample")
    first = load_pairs("npov_pairs").query("split == 'train'")
    number = folds_of(len(wnc), FOLDS, 15)
    tables = []
    for fold in range(FOLDS):
        held = wnc[number == fold]
        rest = wnc[number != fold]
        train = labelled_sentences(joined(own, rest), CHOSEN["control_weight"])
        same = labelled_sentences(joined(first, rest), CHOSEN["control_weight"])
        classifiers = {
            "longer": lambda texts: (
                np.array([len(text) for text in texts]) - train.text.str.len().median()
            ),
            "adjectives and adverbs": modifiers(train),
            "bag of words": bag_of_words(train),
            "last layer": fit(
                last_layer(vectors), train, CHOSEN["ranking_weight"], CHOSEN["penalty"]
            ),
            "head, without ranking": fit(vectors, train, 0.0, CHOSEN["penalty"]),
            "head": fit(vectors, train, CHOSEN["ranking_weight"], CHOSEN["penalty"]),
            "head, without hard": fit(vectors, same, CHOSEN["ranking_weight"], CHOSEN["penalty"]),
            "fine-tuned": fine_tuned(
                vectors.folder / f"lora_{fold}.csv", joined(first, rest), held
            ),
        }
        for name, score in classifiers.items():
            source = score(held.source)
            target = score(held.target)
            tables.append(
                pd.DataFrame(
                    {
                        "pair": held.index,
                        "fold": fold,
                        "classifier": name,
                        "in_order": 0.5 + 0.5 * np.sign(source - target),
                        "source_right": source > 0,
                        "target_right": target <= 0,
                    }
                )
            )
    return pd.concat(tables).astype({"source_right": int, "target_right": int})


def fine_tuned(path: Path, train, held):
    """The rival's log-odds for the held-out pairs, trained only if FOLDER does not hold them."""
    if not path.exists():
        classifier = train_classifier(train, progress=True, **LORA)
        sides = {side: classifier.predict_proba(held[side])[:, 0] for side in ("source", "target")}
        pd.DataFrame({"row": held.index, **sides}).to_csv(path, index=False)
    table = pd.read_csv(path)
    known = dict(zip([*held.source, *held.target], [*table.source, *table.target]))
    return lambda texts: np.array([known[text] - 0.5 for text in texts])


def as_sentences(subjective, neutral, weight: float) -> pd.DataFrame:
    """Labelled sentences that have no twin; each class has `weight` in all, beside an average of 1 a sentence."""
    rows = pd.DataFrame(
        {"text": [*subjective, *neutral], "label": [0] * len(subjective) + [1] * len(neutral)}
    )
    return rows.assign(pair=-1 - np.arange(len(rows)), weight=weight * balanced_weights(rows.label))


def npov(vectors) -> pd.DataFrame:
    """Accuracy and area under the curve on sentences of wiki_npov, by classifiers that never saw one and, by folds, one
    that did."""
    train = joined(
        own_pairs().query("split == 'train'"), load_pairs("wnc_sample").query("split == 'train'")
    )
    train = labelled_sentences(train, CHOSEN["control_weight"])
    strangers = {
        "head": fit(vectors, train, CHOSEN["ranking_weight"], CHOSEN["penalty"]),
        "bag of words": bag_of_words(train),
        "longer": lambda texts: (
            np.array([len(text) for text in texts]) - train.text.str.len().median()
        ),
    }
    rows = []
    for kind in ("cw-hard", "type_balanced"):
        table, number = (statements := load_wiki_npov(kind)), folds_of(len(statements), FOLDS, 0)
        scores = {(name, "none of it"): score(table.text) for name, score in strangers.items()}
        for name in ("head", "bag of words"):
            scores[name, "four fifths of it"] = np.empty(len(table))
            for fold in range(FOLDS):
                known = as_sentences(
                    *(table.text[(number != fold) & (table.label == label)] for label in (0, 1)),
                    1.0,
                )
                score = (
                    fit(vectors, known, 0.0, CHOSEN["penalty"])
                    if name == "head"
                    else bag_of_words(known)
                )
                scores[name, "four fifths of it"][number == fold] = score(
                    table.text[number == fold]
                )
        for (name, seen), values in scores.items():
            subjective = (table.label == 0).to_numpy()
            right = (
                np.where(
                    subjective,
                    (values > 0) / subjective.mean(),
                    (values <= 0) / (1 - subjective.mean()),
                )
                / 2
            )
            interval = bootstrap_interval(mean_statistics(right))
            rows.append(
                {
                    "neutral sentences": kind,
                    "classifier": name,
                    "trained on": seen,
                    "auc": roc_auc_score(subjective, values),
                    "balanced_accuracy": right.mean(),
                    "low": interval.low,
                    "high": interval.high,
                    "biased": int(subjective.sum()),
                    "neutral": int((~subjective).sum()),
                }
            )
            print(rows[-1], flush=True)
    return pd.DataFrame(rows)


if __name__ == "__main__":
    parts = {"search": search, "folds": folds, "npov": npov}
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    vectors = Vectors(folder)
    for name in sys.argv[2:] or parts:
        parts[name](vectors).round(4).to_csv(packaged_path(f"style_{name}.csv"), index=False)
