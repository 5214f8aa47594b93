"""What single settings of the training give on held-out real edits: python tests/benchmarks/style_settings.py FOLDER

Trains on the teaching pairs' training split and four fifths of the WNC sample's pairs that are not for testing (640),
and measures on the last fifth (160), once for each line of SETTINGS; two further lines take less data, and one averages
the probabilities of three runs. A frozen encoder with a logistic regression stands beside them. Needs the WNC sample
(TSTEVAL_DATA); takes about an hour on two cores. Finished runs are kept in FOLDER, so an interrupted search goes on
where it stopped. Writes tsteval/data/style_settings.csv.
"""

import sys

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

from tsteval.core.assets import packaged_path
from tsteval.cps import SentenceEncoder
from tsteval.style import labelled_sentences, load_pairs, pairwise_accuracy, search_grid, train_classifier

MEAN = {"pooling": "mean", "learning_rate": 1e-3, "epochs": 3}
SHIPPED = {**MEAN, "mask_share": 0.15, "hidden_dropout": 0.2, "epochs": 4}
SETTINGS = {
    "mean pooling": MEAN,
    "[CLS] pooling": {**MEAN, "pooling": "cls"},
    "no ranking loss": {**MEAN, "ranking_weight": 0.0},
    "label smoothing 0.1": {**MEAN, "label_smoothing": 0.1},
    "rank 4": {**MEAN, "rank": 4},
    "every linear layer": {**MEAN, "modules": ("query", "key", "value", "dense")},
    "masked words, more dropout": {**SHIPPED, "epochs": 3},
    "the same, 4 epochs (shipped)": SHIPPED,
    "the same, 8 epochs": {**SHIPPED, "epochs": 8},
    "full fine-tuning": {**MEAN, "method": "full", "learning_rate": 3e-5},
}
SEEDS = (0, 1, 2)


def measured(fold: pd.DataFrame, probabilities: np.ndarray) -> dict[str, float]:
    """Accuracy and pairwise accuracy of given probabilities of the first class, without training anything."""
    scored = labelled_sentences(fold).assign(probability=probabilities)
    return {"accuracy": float(((scored.probability > 0.5) == (scored.label == 0)).mean()),
            "pairwise_accuracy": pairwise_accuracy(scored)}


def frozen_encoder(train: pd.DataFrame, fold: pd.DataFrame) -> dict[str, float]:
    encoder, known, asked = SentenceEncoder.load(), labelled_sentences(train), labelled_sentences(fold)
    head = LogisticRegression(C=10, max_iter=2000).fit(encoder.encode(known.text.tolist()), known.label,
                                                      sample_weight=known.weight)
    return measured(fold, head.predict_proba(encoder.encode(asked.text.tolist()))[:, 0])


def average_of_runs(train: pd.DataFrame, fold: pd.DataFrame) -> dict[str, float]:
    texts = labelled_sentences(fold).text.tolist()
    return measured(fold, np.mean([train_classifier(train, **SHIPPED, seed=seed).predict_proba(texts)[:, 0]
                                   for seed in SEEDS], axis=0))


if __name__ == "__main__":
    teaching, wnc = load_pairs().query("split == 'train'"), load_pairs("wnc_sample").query("split != 'test'")
    wnc = wnc.sample(frac=1, random_state=0)
    fold, rest = wnc[:len(wnc) // 5], wnc[len(wnc) // 5:]
    train = pd.concat([teaching, rest], ignore_index=True)
    rows = [{"tried": "frozen encoder, logistic regression", **frozen_encoder(train, fold), "pairs": len(train)}]
    runs = [(name, train, settings) for name, settings in SETTINGS.items()]
    runs += [("shipped settings, teaching pairs only", teaching, SHIPPED), ("shipped settings, WNC only", rest, SHIPPED)]
    for name, pairs, settings in runs:
        grid = {setting: [value] for setting, value in settings.items()}
        result = search_grid(pairs, fold, grid, sys.argv[1], progress=False).iloc[0]
        rows.append({"tried": name, **result[["accuracy", "pairwise_accuracy"]], "pairs": len(pairs)})
        print(rows[-1], flush=True)
    rows.append({"tried": f"mean of {len(SEEDS)} shipped runs", **average_of_runs(train, fold), "pairs": len(train)})
    table = pd.DataFrame(rows).assign(held_out=len(fold))
    table.round(4).to_csv(packaged_path("style_settings.csv"), index=False)
    print(table.to_string())
