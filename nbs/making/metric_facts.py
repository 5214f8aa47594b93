"""What `tsteval metrics` says beside a description: python nbs/making/metric_facts.py
writes tsteval/data/metric_facts.csv.

seconds     processor time of one thread for a thousand rows, from 24 embedded pairs once the models are in memory
"""

import pandas as pd
import torch

from tsteval.cli.costs import time_metric, timed_rows
from tsteval.core.assets import packaged_path
from tsteval.core.metric import METRICS

UNTIMED = ("link_validity", "judge")  # the network is what they wait for


def main() -> None:
    torch.set_num_threads(1)
    rows = timed_rows()
    facts = []
    for name in METRICS:
        seconds = None if name in UNTIMED else round(time_metric(name, rows), 1)
        facts.append({"metric": name, "seconds": seconds})
        print(facts[-1], flush=True)
    pd.DataFrame(facts).to_csv(packaged_path("metric_facts.csv"), index=False, lineterminator="\n")


if __name__ == "__main__":
    main()
