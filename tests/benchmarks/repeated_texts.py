"""What it saves that models remember texts from block to block: `python tests/benchmarks/repeated_texts.py [SOURCES]
[SYSTEMS]`, 150 and 4.

Each system shortens the same sources in its own way, and the systems follow each other in the table, so that equal
sources never share a block. Prints the processor time of scoring, models loaded, with and without the memory. Exits
with 1 if the scores differ by more than 1e-5.
"""

import itertools
import sys
import tempfile
import time
from pathlib import Path
from unittest import mock

import pandas as pd

from tsteval.runs import batches
from tsteval.scale import evaluate_table
from tsteval.style import load_pairs

METRICS = {"sti,cps": ["sti", "cps"], "default": ["sti", "cps", "fluency"]}


def table(n, systems):
    sources = [
        f"{a} {b}" for a, b in itertools.islice(itertools.permutations(load_pairs().source, 2), n)
    ]
    return pd.DataFrame(
        [
            {"system": f"system {k}", "source": source, "output": " ".join(source.split()[:-k])}
            for k in range(1, systems + 1)
            for source in sources
        ]
    )


def scored(path, folder, metrics, remember):
    """Seconds of the processor, and the scores."""
    start = time.process_time()
    with mock.patch.object(batches, "_REMEMBER", remember):
        summary = evaluate_table(path, folder, metrics, block_rows=75, n_boot=10, device="cpu")
    return time.process_time() - start, summary.summary().select_dtypes("number")


def main(n=150, systems=4):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        table(n, systems).to_csv(path, index=False)
        scored(path, Path(folder) / "warm", METRICS["default"], 0)
        for name, metrics in METRICS.items():
            (without, one), (with_memory, other) = (
                scored(path, Path(folder) / f"{name}-{size}", metrics, size) for size in (0, 2**14)
            )
            apart = float((one - other).abs().max().max())
            print(
                f"{name}: {systems} systems x {n} sources, {without:.1f} s without, {with_memory:.1f} s with "
                f"memory: {without / with_memory:.2f} times as fast; apart {apart:.0e}"
            )
            if apart > 1e-5:
                sys.exit("the scores differ")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
