"""What single settings of the training give on held-out real edits: python tests/benchmarks/style_settings.py FOLDER

Trains on the teaching pairs' training split and four fifths of the WNC sample's pairs that are not for testing (640),
and measures on the last fifth (160), once for each line of SETTINGS. Needs the WNC sample (TSTEVAL_DATA). Finished runs are
kept in FOLDER, so an interrupted search goes on where it stopped. Writes tsteval/data/style_settings.csv.
"""

import sys

import pandas as pd

from tsteval.assets import packaged_path
from tsteval.style import load_pairs, search_grid

MEAN = {"pooling": "mean", "learning_rate": 1e-3, "epochs": 3}
SETTINGS = {
    "[CLS] pooling": {"pooling": "cls", "learning_rate": 1e-3, "epochs": 3},
    "mean pooling": MEAN,
    "no ranking loss": {**MEAN, "ranking_weight": 0.0},
    "label smoothing 0.1": {**MEAN, "label_smoothing": 0.1},
    "masked words, more dropout": {**MEAN, "mask_share": 0.15, "hidden_dropout": 0.2},
    "the same, 4 epochs (shipped)": {**MEAN, "mask_share": 0.15, "hidden_dropout": 0.2, "epochs": 4},
}

if __name__ == "__main__":
    teaching, wnc = load_pairs(), load_pairs("wnc_sample")
    wnc = wnc[wnc.split != "test"].sample(frac=1, random_state=0)
    fold, rest = wnc[:len(wnc) // 5], wnc[len(wnc) // 5:]
    train = pd.concat([teaching[teaching.split == "train"], rest], ignore_index=True)
    rows = []
    for name, settings in SETTINGS.items():
        grid = {setting: [value] for setting, value in settings.items()}
        result = search_grid(train, fold, grid, sys.argv[1], progress=False).iloc[0]
        measured = {column: result[column] for column in ("accuracy", "pairwise_accuracy", "validation_loss")}
        rows.append({"tried": name, **measured, "pairs": len(fold)})
        print(rows[-1], flush=True)
    pd.DataFrame(rows).round(4).to_csv(packaged_path("style_settings.csv"), index=False)
