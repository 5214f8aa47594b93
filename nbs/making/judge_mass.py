"""How surely and how variedly the judge of judge_sets.py answered: tsteval/data/judge_mass.csv.

    python nbs/making/judge_mass.py FOLDER              # in seconds; FOLDER is that of judge_sets.py

A row a set whose outputs were rated: the mean and the least mass on labels, and the standard deviation of the expected
score over the outputs. It asks nobody and reads the kept answers, of
the sets that judge_sets.csv has.
"""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from tsteval.core.assets import packaged_path
from tsteval.people.judging import expected_score


def main(folder: Path) -> None:
    done = set(pd.read_csv(packaged_path("judge_sets.csv")).data_set)
    rows = []
    for file in sorted(file for file in folder.glob("*.jsonl") if file.stem in done):
        lines = file.read_text(encoding="utf-8").splitlines()
        shares = np.array([json.loads(line)[1] for line in lines])
        if shares.shape[1] == 2:
            continue  # pairs, of which one was chosen
        mass = shares.sum(axis=1)
        rows.append(
            {
                "data_set": file.stem,
                "mass": mass.mean(),
                "least_mass": mass.min(),
                "spread": expected_score(shares, range(1, shares.shape[1] + 1)).std(ddof=1),
                "n": len(shares),
            }
        )
    table = pd.DataFrame(rows).round(4)
    table.to_csv(packaged_path("judge_mass.csv"), index=False, lineterminator="\n")
    print(table.to_string())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
