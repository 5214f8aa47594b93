"""What `tsteval metrics` says beside a description: python nbs/making/metric_facts.py
writes tsteval/data/metric_facts.csv.

seconds     processor time of one thread for a thousand rows, from 24 embedded pairs once the models are in memory
"""

import time

import pandas as pd
import torch

from tsteval.core.assets import packaged_path
from tsteval.core.metric import METRICS
from tsteval.evaluation import evaluate
from tsteval.rewriting import load_rewrites

UNTIMED = ("link_validity", "judge")  # the network is what they wait for
ROWS = 24


def seconds(name: str, rows: pd.DataFrame) -> float:
    """For a thousand rows."""
    evaluate(rows.head(2), [name], n_boot=2)
    start = time.process_time()
    evaluate(rows, [name], n_boot=2)
    return round((time.process_time() - start) * 1000 / len(rows), 1)


def main() -> None:
    torch.set_num_threads(1)
    rows = (
        load_rewrites()
        .query("system == 'neural'")
        .rename(columns={"target": "reference"})
        .head(ROWS)
    )
    rows = rows.assign(input=rows.source).reset_index(drop=True)
    facts = []
    for name in METRICS:
        facts.append({"metric": name, "seconds": None if name in UNTIMED else seconds(name, rows)})
        print(facts[-1], flush=True)
    pd.DataFrame(facts).to_csv(packaged_path("metric_facts.csv"), index=False, lineterminator="\n")


if __name__ == "__main__":
    main()
