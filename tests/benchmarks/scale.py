"""BLEU and ROUGE of a large table on disk: rows a second and memory, beside sacreBLEU and rouge-score over the same
file.

    python tests/benchmarks/scale.py [rows, 20000] [--skip-peers]

The rows are made from the embedded pairs: each joins two of them, in an order that does not repeat within (pairs x
pairs) rows, so that no two rows are alike. Every side is a process of its own, which says how long it took and how much
memory it held at most. Exits with 1 if the scores differ, or if the peak is 1 GB or more.
"""

import argparse
import csv
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tsteval.style import load_pairs

OURS = """
from tsteval.scale import evaluate_table
summary = evaluate_table(path, path + ".run", ["bleu", "rouge"], n_boot=n_boot, progress=True)
found = summary.summary().iloc[0]
scores = {"bleu": found.bleu, "rouge1": found.rouge1, "rougeL": found.rougeL}
"""
SACREBLEU = """
import csv
from sacrebleu.metrics import BLEU
with open(path, encoding="utf-8", newline="") as file:
    rows = [(row["output"], row["reference"]) for row in csv.DictReader(file)]
outputs, references = map(list, zip(*rows))
scores = {"bleu": BLEU().corpus_score(outputs, [references]).score / 100}
"""
ROUGE_SCORE = """
import csv
from rouge_score.rouge_scorer import RougeScorer
scorer, sums, n = RougeScorer(["rouge1", "rouge2", "rouge3", "rougeL", "rougeLsum"]),
    dict.fromkeys(["rouge1", "rougeL"], 0.0), 0
with open(path, encoding="utf-8", newline="") as file:
    for n, row in enumerate(csv.DictReader(file), 1):
        found = scorer.score(row["reference"], row["output"])
        for kind in sums: sums[kind] += found[kind].fmeasure
scores = {kind: total / n for kind, total in sums.items()}
"""
FRAME = """
import json, resource, sys, time
path, n_boot = sys.argv[1], int(sys.argv[2])
start = time.perf_counter()
{code}
print(json.dumps({{"seconds": time.perf_counter() - start,
    "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, "scores": scores}}))
"""


def make(path, n):
    """A CSV file of n rows; returns its size in bytes."""
    pairs = [
        (row.source, row.target)
        for row in load_pairs("npov_pairs").itertuples()
        if row.source != row.target
    ]
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["source", "output", "reference"])
        for row in range(n):
            turn, place = divmod(row, len(pairs))
            one = pairs[place]
            two = pairs[(place + turn) % len(pairs)]
            again = turn // len(pairs)
            writer.writerow(
                [
                    f"{one[0]} {two[0]} {again}",
                    f"{one[1]} {two[0]} {again}",
                    f"{one[1]} {two[1]} {again}",
                ]
            )
    return path.stat().st_size


def measured(code, path, n_boot):
    run = subprocess.run(
        [sys.executable, "-c", FRAME.format(code=code), str(path), str(n_boot)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(run.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("rows", type=int, nargs="?", default=20_000)
    parser.add_argument("--n-boot", type=int, default=2000)
    parser.add_argument("--skip-peers", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        start = time.perf_counter()
        size = make(path, arguments.rows)
        print(
            f"{arguments.rows:,} rows, {size / 1e6:.0f} MB, made in {time.perf_counter() - start:.0f} s"
        )
        sides = {"tsteval": OURS} | (
            {} if arguments.skip_peers else {"sacreBLEU": SACREBLEU, "rouge-score": ROUGE_SCORE}
        )
        found = {name: measured(code, path, arguments.n_boot) for name, code in sides.items()}
    for name, side in found.items():
        scores = ", ".join(f"{kind} {value:.6f}" for kind, value in side["scores"].items())
        print(
            f"{name:12} {side['seconds']:8.1f} s  {arguments.rows / side['seconds']:10,.0f} rows/s  peak "
            f"{side['peak'] / 1e6:7.0f} MB  {scores}"
        )
    ours = found["tsteval"]
    if ours["peak"] >= 1e9:
        sys.exit("missed: the peak is 1 GB or more")
    for name, side in found.items():
        for kind, value in side["scores"].items():
            if abs(value - ours["scores"][kind]) > 1e-9:
                sys.exit(f"missed: {kind} is {ours['scores'][kind]!r}, by {name} {value!r}")


if __name__ == "__main__":
    main()
