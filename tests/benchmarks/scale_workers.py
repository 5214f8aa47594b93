"""Claim for `evaluate_table` on Ray, default metrics: two workers with a thread each score RATIO times as fast as one
such worker.

`python tests/benchmarks/scale_workers.py [ROWS]`, from the repository's root; 1,000 rows unless told. Take figures on
an idle machine with two cores or more. It prints everything in one run, checks that all ways give the same scores
within 1e-5 (of a score above 1: a part in 1e5), and exits with 1 where the claim is missed.

Rows are made from the teaching pairs: a source with another one behind it, the same of the human targets as output and
as reference with a third one behind it, so that all rows differ. To start Ray and load models takes as long for any
number of rows: it is measured with a row a worker, and the claim is about what is left. The local engine, one process
with all cores, stands beside it.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RATIO = 1.5  # two workers against one, seconds of scoring
WAYS = {
    "local, all cores": {},
    "Ray, 1 worker": {"engine": "ray", "workers": 1},
    "Ray, 2 workers": {"engine": "ray", "workers": 2},
}


def make_rows(n):
    from tsteval.tables.pairs import load_pairs

    pairs = load_pairs()
    sources = list(pairs.source)
    targets = list(pairs.target)
    size = len(pairs)
    for row in range(n):
        a = row % size
        b = (row + 1 + row // size) % size
        c = (row + 2 + 3 * (row // size)) % size
        yield {
            "source": f"{sources[a]} {sources[b]}",
            "output": f"{targets[a]} {targets[b]}",
            "reference": f"{targets[a]} {targets[c]}",
        }


def one(path, folder, settings):
    """In a process of its own: the seconds of one call."""
    from tsteval.scale import evaluate_table

    start = time.perf_counter()
    evaluate_table(
        path, folder, block_rows=settings.pop("block_rows"), n_boot=100, device="cpu", **settings
    )
    print(json.dumps(time.perf_counter() - start))


def seconds(path, folder, settings):
    environment = {**os.environ, **({"OMP_NUM_THREADS": "1"} if "engine" in settings else {})}
    code = (
        "import sys, json; sys.path.insert(0, sys.argv[1]); from scale_workers import one; one(*sys.argv[2:4], "
        "json.loads(sys.argv[4]))"
    )
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            code,
            str(Path(__file__).parent),
            str(path),
            str(folder),
            json.dumps(settings),
        ],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    return float(done.stdout.splitlines()[-1])


def main(n):
    import pandas as pd

    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        for name, count in (("few", 4), ("many", n)):
            (place / f"{name}.jsonl").write_text(
                "".join(json.dumps(row) + "\n" for row in make_rows(count)), encoding="utf-8"
            )
        found = {}
        tables = {}
        for number, (way, settings) in enumerate(WAYS.items()):
            start = seconds(
                place / "few.jsonl", place / f"few-{number}", settings | {"block_rows": 2}
            )
            whole = seconds(
                place / "many.jsonl",
                place / f"many-{number}",
                settings | {"block_rows": max(1, min(50, n // 10))},
            )
            found[way] = whole - start
            parts = sorted((place / f"many-{number}" / "parts").glob("*.parquet"))
            tables[way] = pd.concat(
                [pd.read_parquet(part) for part in parts], ignore_index=True
            ).select_dtypes("number")
            print(
                f"{way:17} {n} rows: {whole:6.1f} s, of which {start:5.1f} s to start; scoring "
                f"{n / found[way]:6.1f} rows/s",
                flush=True,
            )
        alone = tables["local, all cores"]
        apart = max(
            float(((table - alone).abs() / alone.abs().clip(lower=1)).max().max())
            for table in tables.values()
        )
        ratio = found["Ray, 1 worker"] / found["Ray, 2 workers"]
        print(
            f"largest difference {apart:.1e}; two workers against one: {ratio:.2f} times as fast (claimed {RATIO})"
        )
        return 0 if ratio >= RATIO and apart <= 1e-5 else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000))
