"""Claim: CausalLM takes 1.4 times less processor time than scoring one by one with transformers: python
tests/benchmarks/causal_lm.py [SENTENCES]

2,000 sentences of 5 to 40 words of the Brown corpus (nltk.download("brown")). Prints the time to load the model, tokens
a second and CPU seconds of each side, the ratio, the largest difference of a token's log-probability, and the peak
memory of the process; exits with 1 where the claim is missed; the arithmetic of both sides (two operations a weight and
token) as a share of what the machine reaches in a large product of matrices, measured in the same run, which bounds the
ratio; then, for the first 200 sentences, the same for one by one in inference mode and for bfloat16.
"""

import resource
import sys
import time

import numpy as np
import torch
from nltk.corpus import brown

from tsteval.fluency import CausalLM

RATIO = 1.4  # in processor time


def peak(size=1024, rounds=5):
    """32-bit operations a processor second in a large product of matrices."""
    left = torch.randn(size, size)
    right = torch.randn(size, size)
    return 2 * size**3 / min(timed(lambda: left @ right)[1] for _ in range(rounds))


def timed(function):
    """Wall-clock seconds, CPU seconds and the result of a call."""
    wall = time.perf_counter()
    cpu = time.process_time()
    result = function()
    return time.perf_counter() - wall, time.process_time() - cpu, result


def one_by_one(language_model, texts, context=torch.no_grad):
    """What a user of transformers writes: a forward pass and a log-softmax for each text."""
    scores = []
    with context():
        for text in texts:
            ids = language_model.tokenizer(text, add_special_tokens=False)["input_ids"]
            ids = torch.tensor([[language_model.beginning, *ids]])
            logits = language_model.model(input_ids=ids).logits[0, :-1].log_softmax(-1)
            scores.append(logits.gather(1, ids[0, 1:, None])[:, 0].numpy())
    return scores


def ours(language_model, texts):
    return [text.logprobs for text in language_model.token_logprobs(texts)]


def report(name, wall, cpu, scores, base=None, base_scores=None):
    line = (
        f"{name:28} {sum(map(len, scores)) / wall:7.0f} tokens/s, {wall:7.1f} s, {cpu:7.1f} s CPU"
    )
    if base:
        tokens = max(np.abs(a - b).max() for a, b in zip(scores, base_scores))
        means = max(abs(a.mean() - b.mean()) for a, b in zip(scores, base_scores))
        line += f"; ratio {base[0] / wall:.2f} by the clock, {base[1] / cpu:.2f} in CPU time; largest difference "
        line += f"{tokens:.1e} a token, {means:.1e} in a text's mean"
    print(line, flush=True)


if __name__ == "__main__":
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    suitable = [" ".join(sentence) for sentence in brown.sents() if 5 <= len(sentence) <= 40]
    chosen = np.random.default_rng(0).choice(len(suitable), number, replace=False)
    sentences = [suitable[row] for row in chosen]
    CausalLM.load(device="cpu")
    wall, _, model = timed(lambda: CausalLM.load(device="cpu"))
    print(
        f"loading the second time: {wall:.1f} s; {torch.get_num_threads()} threads; {number} sentences"
    )
    ours(model, sentences[:8])
    *single, reference = timed(lambda: one_by_one(model, sentences))
    report("one by one, no_grad", *single, reference)
    wall, cpu, scores = timed(lambda: ours(model, sentences))
    report("CausalLM", wall, cpu, scores, single, reference)
    missed = single[1] / cpu < RATIO
    machine = peak()
    work = 2 * model.model.num_parameters() * sum(len(text) + 1 for text in reference)
    print(
        f"machine {machine / 1e9:.0f} GFLOP a processor second; one by one {work / single[1] / machine:.0%} of it, "
        f"CausalLM "
        f"{work / cpu / machine:.0%}: 32-bit arithmetic allows a ratio of {single[1] * machine / work:.1f} at most"
    )
    assert max(abs(a.mean() - b.mean()) for a, b in zip(scores, reference)) < 1e-2
    print(f"peak memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")
    few = sentences[:200]
    *single, reference = timed(lambda: one_by_one(model, few))
    report("200 one by one, no_grad", *single, reference)
    wall, cpu, scores = timed(lambda: one_by_one(model, few, torch.inference_mode))
    report("200 one by one, inference", wall, cpu, scores, single, reference)
    half = CausalLM.load(device="cpu", dtype="bfloat16")
    wall, cpu, scores = timed(lambda: ours(half, few))
    report("200 CausalLM in bfloat16", wall, cpu, scores, single, reference)
    sys.exit(int(missed))
