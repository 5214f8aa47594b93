"""What the language models cost: pairs a minute for fluency, a judge and style-aware content, and memory.

    python nbs/making/larger_model_costs.py            # on a machine that does nothing else
    python nbs/making/larger_model_costs.py bfloat16   # in the numbers in which the larger one is stored

Printed is a line a model and metric, over a few pairs of the embedded NPOV set, after one pair that isn't counted.
"""

import resource
import sys
import time

import pandas as pd

from tsteval.content import style_aware_content
from tsteval.core.assets import packaged_path
from tsteval.fluency import fluency_scores
from tsteval.models.causal_lm import CausalLM
from tsteval.models.roles import LARGER_LANGUAGE_MODEL
from tsteval.people.judging import Judge

PAIRS = 6


def main(dtype="float32"):
    table = pd.read_json(packaged_path("npov_pairs.jsonl"), lines=True)
    first, pairs = table.iloc[PAIRS : PAIRS + 1], table.head(PAIRS)
    for name in (CausalLM.default_name, LARGER_LANGUAGE_MODEL):
        start = time.perf_counter()
        lm = CausalLM.load(name, device="cpu", dtype=dtype)
        print(f"{name}, {dtype}: loaded in {time.perf_counter() - start:.0f} s", flush=True)
        judge = Judge.load(lm, criterion="content")
        for metric, score in {
            "fluency": lambda rows: fluency_scores(lm, list(rows.target)),
            "judge": lambda rows: judge.score(list(rows.source), list(rows.target)),
            "content": lambda rows: style_aware_content(
                list(rows.source), list(rows.target), "neutral", lm=lm
            ),
        }.items():
            score(first)
            start = time.perf_counter()
            score(pairs)
            seconds = time.perf_counter() - start
            print(
                f"{name}, {dtype}, {metric}: {PAIRS * 60 / seconds:.1f} pairs a minute", flush=True
            )
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        print(f"{name}, {dtype}: {peak:.1f} GB of memory at most so far", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
