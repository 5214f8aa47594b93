"""How long the style-aware score takes a pair, and whether its memory grows.

    python tests/benchmarks/content.py [PAIRS]    # 60 pairs by default; some seconds each way

Last it says where the processor's time goes, and what two shorter kinds of numbers cost and spoil: bfloat16, which
`CausalLM.load(dtype="bfloat16")` takes, and 8-bit integers, which no one should take.
"""

import resource
import sys
import time

import numpy as np
import torch

from tsteval.content import style_aware_content
from tsteval.models.causal_lm import CausalLM
from tsteval.tables.pairs import load_contrasts

# seconds of wall time a pair on two cores that have nothing else to do: nearly all is arithmetic of the language model
MOST = 0.6


def main(count: int) -> int:
    table = load_contrasts().iloc[:: max(1, 220 // count)].head(count)
    arguments = list(table.source), list(table.style_only), list(table["style"])
    style_aware_content(*(part[:4] for part in arguments))  # models loaded
    seconds = []
    peaks = []
    for _ in range(3):
        start = time.perf_counter()
        style_aware_content(*arguments)
        seconds.append((time.perf_counter() - start) / len(table))
        peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    print(
        f"{len(table)} pairs, {np.mean([len(text.split()) for text in arguments[0]]):.0f} words a source: "
        f"{np.median(seconds):.3f} s a pair (best {min(seconds):.3f}); peak memory after each round "
        f"{', '.join(f'{peak:.0f} MB' for peak in peaks)}"
    )
    shorter_numbers(arguments)
    return int(np.median(seconds) > MOST)


def shorter_numbers(arguments) -> None:
    """Processor seconds a pair and deviations of the score by kind of number; the share that is matrix products."""
    whole = CausalLM.load()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        style_aware_content(*arguments, lm=whole)
    spent = {event.key: event.self_cpu_time_total for event in profile.key_averages()}
    products = sum(
        value for name, value in spent.items() if "linear" in name or name.endswith("mm")
    )
    print(f"matrix products: {products / sum(spent.values()):.0%} of the processor's time")
    exact = style_aware_content(*arguments, lm=whole)
    expected = token_scores(whole, arguments[0])
    for name, lm in (
        ("float32", whole),
        ("bfloat16", CausalLM.load(dtype="bfloat16")),
        ("int8", in_integers()),
    ):
        style_aware_content(*(part[:4] for part in arguments), lm=lm)
        start = time.process_time()
        found = style_aware_content(*arguments, lm=lm)
        seconds = (time.process_time() - start) / len(found)
        print(
            f"{name}: {seconds:.3f} processor seconds a pair; the score is off by {np.abs(found - exact).mean():.4f} "
            f"on average and {np.abs(found - exact).max():.4f} at most, a token's log-probability by "
            f"{np.abs(token_scores(lm, arguments[0]) - expected).mean():.4f}"
        )


def in_integers() -> CausalLM:
    """The model with its linear layers in 8-bit integers, each layer's activations scaled as they come."""
    lm = CausalLM.load().own()
    lm.__dict__["_has_plain_head"] = False  # a quantised head has no weights to look at
    lm.model = torch.ao.quantization.quantize_dynamic(
        lm.model, {torch.nn.Linear}, dtype=torch.qint8
    )
    return lm


def token_scores(lm: CausalLM, texts) -> np.ndarray:
    return np.concatenate([scored.logprobs for scored in lm.token_logprobs(texts)])


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 60))
