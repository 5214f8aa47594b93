"""What single settings of the training give on held-out real edits: python nbs/making/style_settings.py FOLDER

Each row of the table asks one question: two runs on the same pairs, with one thing changed (a method of training brings
its own learning rate, and the report's recipe is taken whole). Trains on the teaching pairs' training split (548) and
four fifths of the WNC sample's pairs that are not for testing (640), and measures on the last fifth (160). A frozen
encoder with a logistic regression is the row that trains no encoder. Needs the WNC sample (TSTEVAL_DATA); takes about
an hour on two cores. Finished runs are kept in FOLDER, so an interrupted search goes on where it stopped. Writes
tsteval/data/style_settings.csv.
"""

import sys

import numpy as np
import pandas as pd
from grid import search_grid
from sklearn.linear_model import LogisticRegression
from style_evidence import LORA

from tsteval.core.assets import packaged_path
from tsteval.cps import SentenceEncoder
from tsteval.style import labelled_sentences, load_pairs, order_accuracy, train_classifier

BASE = {"pooling": "mean", "learning_rate": 1e-3, "epochs": 3}
FULL = {
    **BASE,
    "method": "full",
    "learning_rate": 3e-5,
}  # each method with its own rate: one rate does not suit both
REPORT = {
    "pooling": "cls",
    "method": "full",
    "learning_rate": 3e-5,
    "ranking_weight": 0.0,
    "batch_size": 8,
    "epochs": 3,
}
SEEDS = (0, 1, 2)
QUESTIONS = [  # question, (name, settings) of the first and of the second run
    ("train the encoder?", ("head only", None), ("thin matrices", BASE)),
    ("thin matrices or all weights?", ("thin", BASE), ("all", FULL)),
    ("the report's recipe?", ("thin", BASE), ("report", REPORT)),
    ("pooling?", ("mean", BASE), ("[CLS]", {**BASE, "pooling": "cls"})),
    ("ranking loss?", ("with", BASE), ("without", {**BASE, "ranking_weight": 0.0})),
    ("label smoothing?", ("0", BASE), ("0.1", {**BASE, "label_smoothing": 0.1})),
    ("rank?", ("16", BASE), ("4", {**BASE, "rank": 4})),
    (
        "which layers?",
        ("query, value", BASE),
        ("all linear", {**BASE, "modules": ("query", "key", "value", "dense")}),
    ),
    ("masked words and dropout 0.2?", ("neither", BASE), ("both", {**LORA, "epochs": 3})),
    ("passes?", ("4", LORA), ("8", {**LORA, "epochs": 8})),
    ("one run or three?", ("one", LORA), ("mean of 3", [{**LORA, "seed": seed} for seed in SEEDS])),
]


def read_pairs() -> tuple[pd.DataFrame, pd.DataFrame]:
    """The pairs to train on, and the pairs to measure on."""
    teaching = load_pairs().query("split == 'train'")
    wnc = load_pairs("wnc_sample").query("split != 'test'")
    wnc = wnc.sample(frac=1, random_state=0)
    fold = wnc[: len(wnc) // 5]
    rest = wnc[len(wnc) // 5 :]
    return pd.concat([teaching, rest], ignore_index=True), fold


def measured(fold: pd.DataFrame, probabilities: np.ndarray) -> tuple[float, float]:
    """Accuracy and pairwise accuracy of given probabilities of the first class."""
    scored = labelled_sentences(fold).assign(probability=probabilities)
    return float(((scored.probability > 0.5) == (scored.label == 0)).mean()), order_accuracy(scored)


def run(
    train: pd.DataFrame, fold: pd.DataFrame, settings: dict | list | None, folder: str
) -> tuple[float, float]:
    """Accuracy and pairwise accuracy of one run; of the averaged probabilities where there are several settings."""
    texts = labelled_sentences(fold).text
    if settings is None:
        encoder = SentenceEncoder.load()
        known = labelled_sentences(train)
        head = LogisticRegression(C=10, max_iter=2000).fit(
            encoder.encode(known.text), known.label, sample_weight=known.weight
        )
        return measured(fold, head.predict_proba(encoder.encode(texts))[:, 0])
    if isinstance(settings, list):
        return measured(
            fold,
            np.mean(
                [train_classifier(train, **one).predict_proba(texts)[:, 0] for one in settings],
                axis=0,
            ),
        )
    result = search_grid(
        train, fold, {name: [value] for name, value in settings.items()}, folder, progress=False
    ).iloc[0]
    return result.accuracy, result.pairwise_accuracy


if __name__ == "__main__":
    train, fold = read_pairs()
    rows = []
    for question, *sides in QUESTIONS:
        row = {"question": question}
        for place, (name, settings) in zip(("first", "second"), sides):
            accuracy, pairwise = run(train, fold, settings, sys.argv[1])
            row |= {place: name, f"{place}_accuracy": accuracy, f"{place}_pairwise": pairwise}
        rows.append({**row, "pairs": len(train), "held_out": len(fold)})
        print(rows[-1], flush=True)
    pd.DataFrame(rows).round(4).to_csv(packaged_path("style_settings.csv"), index=False)
