"""What would a graphics card leave to the processor? python tests/benchmarks/processor.py [SENTENCES]

Models stand on PyTorch's device `meta`, where every operation is called and none computes, and batches are as large as
80 GB hold. What remains, tokenizers, sorting, padding, Python and the calls themselves, is the least time that a card
needs beside this processor. A line a task, with how many tokens a batch held. A bound and no measurement: the card's own
time is left out.
"""

import sys
import time

import numpy as np
import torch

from tsteval.cps import SentenceEncoder
from tsteval.models import base
from tsteval.models.base import Model
from tsteval.models.causal_lm import CausalLM
from tsteval.models.loading import positions_within
from tsteval.models.roles import LARGER_LANGUAGE_MODEL
from tsteval.people.judging import Judge
from tsteval.style import StyleClassifier, load_pairs

CARD = 80 * 10**9  # bytes
BATCHES = []  # tokens with padding in each batch


def positions(model) -> int:
    head = model.model.get_output_embeddings() is not None
    free = CARD - sum(w.numel() * w.element_size() for w in model.model.parameters())
    return positions_within(free, 2, model.model.config, head)


def without_arithmetic(model):
    """The model on a device that computes nothing."""
    model.model.to("meta")
    layers = model.model.base_model
    forward = layers.forward

    def counted(input_ids=None, **rest):
        BATCHES.append(input_ids.numel())
        return forward(input_ids=input_ids, **rest)

    layers.forward = counted
    model.__dict__["_has_plain_head"] = True
    return model


def as_zeros(computed):
    """What a batch gives, as numbers."""
    if hasattr(computed, "detach"):
        return np.zeros(tuple(computed.shape))
    return [as_zeros(row) for row in computed]


def timed(name: str, n: int, of: str, task) -> None:
    BATCHES.clear()
    task(10)  # what the first call alone does
    BATCHES.clear()
    start = time.perf_counter()
    task(n)
    seconds = time.perf_counter() - start
    batch = sum(BATCHES) / max(len(BATCHES), 1)
    print(
        f"{name}: {n:,} {of} in {seconds:.2f} s; {sum(BATCHES) / seconds:,.0f} tokens a second, "
        f"{batch:,.0f} a batch",
        flush=True,
    )


def main(n: int = 20_000) -> None:
    pairs = load_pairs()
    repeats = n // len(pairs) + 1
    sources, outputs = (  # each once, since equal texts are read once
        [f"{text} {turn}" for turn in range(repeats) for text in pairs[side]]
        for side in ("source", "target")
    )
    Model.positions = property(positions)
    base.as_numbers = as_zeros
    truth = torch.Tensor.__bool__  # what a tensor without numbers holds, nobody knows
    torch.Tensor.__bool__ = lambda tensor: not tensor.is_meta and truth(tensor)
    encoder = without_arithmetic(SentenceEncoder.load())
    timed("sentence encoder", n, "sentences", lambda k: encoder.encode(sources[:k]))
    classifier = without_arithmetic(StyleClassifier.load())
    timed("style classifier", n, "sentences", lambda k: classifier.predict_proba(sources[:k]))
    judge = Judge.load(
        without_arithmetic(CausalLM.load(LARGER_LANGUAGE_MODEL, dtype="bfloat16")),
        criterion="content",
    )
    timed("judge", n // 20, "pairs", lambda k: judge.score(sources[:k], outputs[:k]))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
