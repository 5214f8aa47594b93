"""What `tsteval metrics` says beside a description: python nbs/making/metric_facts.py
writes tsteval/data/metric_facts.csv.

low, high   the ends of a metric's first column; empty: none
seconds     processor time of one thread for a thousand rows, from 24 embedded pairs once the models are in memory
pearson     with people's ratings of the question, criterion and data set beside it, from agreement_defaults.csv
"""

import time

import pandas as pd
import torch

from tsteval.core.assets import packaged_path
from tsteval.core.metric import METRICS
from tsteval.evaluation import evaluate
from tsteval.rewriting import load_rewrites

PEOPLE = {
    "sti": "sti",
    "cps": "cosine",
    "bert_score": "bert_score",
    "chrf": "chrf",
    "bleu": "bleu",
    "meteor": "meteor",
    "content": "style_aware",
    "fluency": "pen_lp",
    "amelioration_1": "amelioration_1",
}
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
    known = pd.read_csv(packaged_path("agreement_defaults.csv")).drop_duplicates(
        ["criterion", "data_set", "score"]
    )
    facts = []
    for name in METRICS:
        found = known[
            (known.score == PEOPLE.get(name)) & known.data_set.isin(["mir2019", "lai2022"])
        ]
        facts.append(
            {
                "metric": name,
                "seconds": None if name in UNTIMED else seconds(name, rows),
                "pearson": "; ".join(
                    f"{row.pearson:.2f} {row.criterion} {row.data_set}"
                    for row in found.itertuples()
                ),
            }
        )
        print(facts[-1], flush=True)
    pd.DataFrame(facts).to_csv(packaged_path("metric_facts.csv"), index=False, lineterminator="\n")


if __name__ == "__main__":
    main()
