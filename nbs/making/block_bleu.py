"""How BLEU of ten translation systems moves with the size of the blocks whose scores are averaged.

    TSTEVAL_DATA=... python nbs/making/block_bleu.py

writes tsteval/data/block_bleu.csv from the set `wmt23_mqm_zhen` (see `tsteval.tables.ratings.load_ratings`): a line a system and size
of block, with the mean of the blocks' BLEU in the order of the set, the same with the rows sorted by the length of the output, and
BLEU of the sums, which no block can move. `rating` is the mean of all that three translators said of the system, higher is better.
"""

import numpy as np
import pandas as pd

from tsteval.bleu import bleu_from_statistics, bleu_statistics
from tsteval.core.assets import packaged_path
from tsteval.tables.ratings import load_ratings

SIZES = (1, 8, 32, 187)


def mean_of_blocks(rows, size):
    blocks = [rows[start : start + size].sum(axis=0) for start in range(0, len(rows), size)]
    return np.mean([bleu_from_statistics(sums) for sums in blocks])


def main():
    ratings = load_ratings("wmt23_mqm_zhen").query("criterion == 'overall'")
    lines = []
    for system, of_system in ratings.groupby("system"):
        rows = bleu_statistics(list(of_system.output), list(of_system.reference))
        by_length = rows[np.argsort(rows[:, 0], kind="stable")]
        for size in SIZES:
            lines.append(
                {
                    "system": system,
                    "rows": len(rows),
                    "size": size,
                    "mean": mean_of_blocks(rows, size),
                    "mean_sorted": mean_of_blocks(by_length, size),
                    "sums": bleu_from_statistics(rows.sum(axis=0)),
                    "rating": of_system.rating.mean(),
                }
            )
    table = pd.DataFrame(lines).round(4)
    table.to_csv(packaged_path("block_bleu.csv"), index=False, lineterminator="\n")


if __name__ == "__main__":
    main()
