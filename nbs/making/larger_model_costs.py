"""What the language models cost: pairs a minute of one thread for fluency, a judge and style-aware content, and memory.

    OMP_NUM_THREADS=1 python nbs/making/larger_model_costs.py            # on a machine that does nothing else
    OMP_NUM_THREADS=1 python nbs/making/larger_model_costs.py bfloat16   # in the numbers in which the larger one is stored

Printed is a line a model and metric, over the first pairs of the embedded NPOV set, from the second run over them.
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

PAIRS = 20


def main(dtype="float32"):
    pairs = pd.read_json(packaged_path("npov_pairs.jsonl"), lines=True).head(PAIRS)
    sources = list(pairs.source)
    outputs = list(pairs.target)
    for name in (CausalLM.default_name, LARGER_LANGUAGE_MODEL):
        start = time.perf_counter()
        lm = CausalLM.load(name, device="cpu", dtype=dtype)
        print(f"{name}, {dtype}: loaded in {time.perf_counter() - start:.0f} s", flush=True)
        judge = Judge.load(lm, criterion="content")
        for metric, score in {
            "fluency": lambda: fluency_scores(lm, outputs),
            "judge": lambda: judge.score(sources, outputs),
            "content": lambda: style_aware_content(sources, outputs, "neutral", lm=lm),
        }.items():
            score()
            start = time.perf_counter()
            score()
            seconds = time.perf_counter() - start
            print(
                f"{name}, {dtype}, {metric}: {PAIRS * 60 / seconds:.1f} pairs a minute", flush=True
            )
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        print(f"{name}, {dtype}: {peak:.1f} GB of memory at most so far", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
