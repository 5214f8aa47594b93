"""Measure how near the two models run to what this machine can do: tsteval/data/roofline.json.

    python nbs/making/roofline.py              # under five minutes on two cores; let nothing else run meanwhile

Four things are measured, each as the best of several rounds.

- The machine: 32-bit floating-point operations a second in a large product of matrices (the best of several shapes, by
PyTorch's plain
  product and by the packed one), and bytes a second read by a product of a matrix with a vector, once with a matrix far
  larger than the caches and once with one that the last cache holds.
- Batches of each model, from one token to a thousand: operations, bytes and seconds.
- Metrics on rows made of the embedded pairs: rows a second, operations a row, and the shares of time in products, in
other
  operations of PyTorch, and outside of PyTorch (Python, tokenisers).
- The default metrics together on the same rows.

Operations are counted call by call, two for each multiply-and-add. Bytes are those that each product must touch if
nothing stays in a cache between two products: both factors and the result, four bytes a number. Nothing at run time
depends on this file; chapter 24 draws what it writes.
"""

import json
import os
import platform
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import torch
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from tsteval.core.metric import find_metric
from tsteval.cps import SentenceEncoder
from tsteval.models.base import Model
from tsteval.models.causal_lm import CausalLM
from tsteval.models.roles import Models
from tsteval.style import load_pairs
from tsteval.tables.outputs import prepare_pairs

FILE = Path(__file__).parents[2] / "tsteval" / "data" / "roofline.json"
SHAPES = [(1, 1), (1, 4), (1, 16), (2, 32), (8, 32), (32, 32)]  # of batches: texts, tokens of each
START = time.perf_counter()
PRODUCTS = (
    "mm",
    "addmm",
    "bmm",
    "baddbmm",
    "_linear_pointwise",
    "_scaled_dot_product_flash_attention_for_cpu",
    "_scaled_dot_product_flash_attention_for_cpu_backward",
)


class Ledger(TorchDispatchMode):
    """Counts operations and bytes of the products of matrices that PyTorch makes inside it."""

    def __init__(self):
        super().__init__()
        self.flop = 0
        self.bytes = 0

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        name = function._overloadpacket.__name__
        keywords = keywords or {}
        if name not in PRODUCTS:
            with self:  # an operation made of others shows them here
                inner = function.decompose(*arguments, **keywords)
            if inner is not NotImplemented:
                return inner
        result = function(*arguments, **keywords)
        if name in PRODUCTS:
            made = (
                [result]
                if isinstance(result, torch.Tensor)
                else [part for part in result if isinstance(part, torch.Tensor)]
            )
            self.bytes += 4 * sum(
                part.numel()
                for part in [*arguments, *made]
                if isinstance(part, torch.Tensor) and part.is_floating_point()
            )
            self.flop += operations(name, function._overloadpacket, arguments, result)
        return result


def operations(name: str, packet, arguments, result) -> int:
    """Two for each multiply-and-add of a product."""
    if name == "_linear_pointwise":
        return 2 * result.numel() * arguments[0].shape[-1]
    # two products of texts x heads x queries x keys x width, five in the gradient
    if name.startswith("_scaled_dot_product"):
        query, key = arguments[:2] if not name.endswith("backward") else arguments[1:3]
        return 2 * (5 if name.endswith("backward") else 2) * query.numel() * key.shape[-2]
    return flop_registry[packet](*arguments, out_val=result)


def best_seconds(run: Callable[[], object], rounds: int = 3, least: float = 0.05) -> float:
    """The shortest time of a call, over several rounds of about `least` seconds each, or of one call if that takes
    longer."""
    start = time.perf_counter()
    run()
    found = [time.perf_counter() - start]
    calls = max(1, round(least / max(found[0], 1e-9)))
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(calls):
            run()
        found.append((time.perf_counter() - start) / calls)
    return min(found)


def machine() -> dict:
    """What this machine can do at most."""
    found = []
    with torch.inference_mode():
        for rows, inner, columns in ((2048, 2048, 2048), (1024, 1536, 1536), (4096, 384, 1536)):
            x = torch.randn(rows, inner)
            weight = torch.randn(columns, inner)
            packed = torch.ops.mkldnn._reorder_linear_weight(weight)
            runs = (
                lambda: x @ weight.T,
                lambda: torch.ops.mkldnn._linear_pointwise(x, packed, None, "none", [], ""),
            )
            found += [2e-9 * rows * inner * columns / best_seconds(run) for run in runs]
        bandwidths = []
        for side in (2**14, 2**11):  # a square of 1 GiB, one of 16 MiB
            matrix = torch.randn(side, side)
            vector = torch.randn(side)
            bandwidths.append(4e-9 * side**2 / best_seconds(lambda: torch.mv(matrix, vector)))
    return {
        "processor": processor(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "peak_gflops": round(max(found), 1),
        "memory_gb_s": round(bandwidths[0], 1),
        "cache_gb_s": round(bandwidths[1], 1),
    }


def processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    return next(
        (line.split(": ", 1)[1] for line in lines if line.startswith("model name")),
        platform.machine(),
    )


def batches(model: Model) -> Iterator[dict]:
    """One row a shape of batch: the model's forward pass and nothing else."""
    for texts, tokens in SHAPES:
        ids = torch.randint(1000, 20_000, (texts, tokens))
        batch = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        with model.running():
            with Ledger() as ledger:
                model.model(**batch)  # the weights are packed on the way
            seconds = best_seconds(lambda: model.model(**batch))
        tell(f"{model.name}, {texts * tokens} tokens")
        yield {
            "model": model.name,
            "texts": texts,
            "tokens": texts * tokens,
            "seconds": seconds,
            "gflop": ledger.flop / 1e9,
            "gb": ledger.bytes / 1e9,
        }


def rows(number: int) -> pd.DataFrame:
    """Rows without a repeated text as far as there are pairs; beyond, sources meet the targets of other pairs."""
    pairs = (
        load_pairs("npov_pairs")
        .query("source != target")
        .drop_duplicates("source")
        .drop_duplicates("target")
    )
    sources = list(pairs.source)
    targets = list(pairs.target)
    places = [
        (place % len(pairs), (place + place // len(pairs)) % len(pairs)) for place in range(number)
    ]
    return pd.DataFrame(
        {
            "source": [sources[i] for i, _ in places],
            "output": [targets[j] for _, j in places],
            "reference": [targets[i] for i, _ in places],
        }
    )


def metric_row(name: str, pairs: pd.DataFrame, names, rounds: int = 2, **options) -> dict:
    """One metric, or several together, as a worker scores a block when it has its models and counts from the block
    before."""
    table = prepare_pairs(pairs)
    models = Models()
    metrics = [find_metric(metric) for metric in names]

    def score(rows):
        return [metric.score(rows, models, **options.get(metric.name, {})) for metric in metrics]

    with Ledger() as ledger:
        score(table)  # the models are loaded and their weights packed on the way
    times = []
    for _ in range(rounds):
        score(
            table[:1]
        )  # what an evaluation remembers of the texts it saw last is another text now
        start = time.perf_counter()
        score(table)
        times.append(time.perf_counter() - start)
    score(table[:1])
    start = time.perf_counter()
    with profile(activities=[ProfilerActivity.CPU]) as told:
        score(table)
    whole = time.perf_counter() - start
    events = told.key_averages()
    tell(name)
    spent = {
        kind: sum(
            event.self_cpu_time_total
            for event in events
            if (event.key.split("::")[-1] in PRODUCTS) == kind
        )
        / 1e6
        / whole
        for kind in (True, False)
    }
    return {
        "metric": name,
        "rows": len(table),
        "seconds": min(times),
        "rows_per_second": len(table) / min(times),
        "gflop": ledger.flop / 1e9,
        "gb": ledger.bytes / 1e9,
        "in_products": spent[True],
        "in_other_operations": spent[False],
    }


def tell(what: str) -> None:
    print(f"{time.perf_counter() - START:4.0f} s  {what}", flush=True)


def main() -> None:
    table = rows(128)
    found = {"made_by": "python nbs/making/roofline.py", "machine": machine()}
    tell("machine")
    found["batches"] = [
        row for model in (SentenceEncoder.load(), CausalLM.load()) for row in batches(model)
    ]
    found["metrics"] = [
        *(metric_row(name, rows(5000), [name]) for name in ("bleu", "rouge")),
        *(metric_row(name, table, [name]) for name in ("sti", "cps", "fluency")),
        metric_row("cps, masked", table[:64], ["cps"], cps={"strategy": "pad"}),
        metric_row("default", table, ["bleu", "sti", "cps", "fluency"]),
    ]
    rounded = {
        kind: [
            {
                key: float(f"{value:.4g}") if isinstance(value, float) else value
                for key, value in row.items()
            }
            for row in found[kind]
        ]
        for kind in ("batches", "metrics")
    }
    FILE.write_text(json.dumps(found | rounded, indent=1) + "\n")
    tell(f"{FILE.name} written")


if __name__ == "__main__":
    main()
