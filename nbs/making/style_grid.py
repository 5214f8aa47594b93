"""The report's search grid, on a small scale: python nbs/making/style_grid.py FOLDER [PAIRS] [EPOCHS]

Full fine-tuning of MiniLM with every combination of the report's settings (batches of 16 or 32 sentences, three
learning rates, three weight decays, with and without shuffling): 36 runs on PAIRS (200) of the edited teaching pairs
for at most EPOCHS (3) epochs each, stopped early when an epoch does not lower the loss on the validation pairs.
Finished runs are kept in FOLDER, so an interrupted search goes on where it stopped. Writes tsteval/data/style_grid.csv
when all are done (a quarter of an hour on two cores).
"""

import sys
from pathlib import Path

from grid import search_grid

from tsteval.core.assets import packaged_path
from tsteval.style import load_pairs

REPORT_GRID = {
    "method": ["full"],
    "ranking_weight": [0.0],
    "batch_size": [8, 16],
    "learning_rate": [3e-5, 3e-6, 3e-7],
    "weight_decay": [0.0, 0.01, 0.1],
    "shuffle": [True, False],
}  # Fast Forward Labs 2022, evaluation chapter

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    number, epochs = (int(text) for text in [*sys.argv[2:], *("200", "3")[len(sys.argv) - 2 :]])
    pairs = load_pairs().query("source != target")
    train = pairs[pairs.split == "train"].sample(number, random_state=0)
    grid = {**REPORT_GRID, "epochs": [epochs], "patience": [1]}
    table = search_grid(train, pairs[pairs.split == "validation"], grid, folder)
    measured = ["accuracy", "pairwise_accuracy", "validation_loss"]
    table.assign(pairs=number, **table[measured].round(4)).drop(
        columns=["method", "ranking_weight", "patience"]
    ).to_csv(packaged_path("style_grid.csv"), index=False)
    print(table.sort_values("validation_loss").head(5).to_string())
