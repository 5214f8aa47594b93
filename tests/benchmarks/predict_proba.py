"""Claim: less processor time than a pipeline, with the same probabilities. StyleClassifier against a pipeline of
transformers: python tests/benchmarks/predict_proba.py [SENTENCES]

2,000 sentences: those of the WNC sample (TSTEVAL_DATA), or else the teaching pairs'. The pipeline has its default
settings. Both sides run in turn, twice; prints the best of each by the clock and by processor time, and the largest
difference of a probability; exits with 1 where the claim is missed.
"""

import sys
import time

import numpy as np
import torch
from transformers import pipeline

from tsteval.core.assets import AssetError
from tsteval.style import StyleClassifier, load_pairs

ROUNDS = 2


def sentences(number):
    try:
        pairs = load_pairs("wnc_sample")
    except AssetError:
        pairs = load_pairs()
    return list(dict.fromkeys([*pairs.source, *pairs.target]))[:number]


def timed(function):
    """Wall-clock and processor seconds of a call, and its result."""
    wall = time.perf_counter()
    processor = time.process_time()
    result = function()
    return (time.perf_counter() - wall, time.process_time() - processor), result


if __name__ == "__main__":
    texts = sentences(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
    classifier = StyleClassifier.load()
    peer = pipeline("text-classification", model=classifier.model, tokenizer=classifier.tokenizer)
    peer_seconds = []
    our_seconds = []
    for _ in range(ROUNDS):
        seconds, rows = timed(lambda: peer(texts, top_k=None))
        peer_seconds.append(seconds)
        seconds, probabilities = timed(lambda: classifier.predict_proba(texts))
        our_seconds.append(seconds)
    scores = [{score["label"]: score["score"] for score in row} for row in rows]
    difference = np.abs(
        probabilities - [[row[label] for label in classifier.labels] for row in scores]
    ).max()
    assert difference < 1e-4, difference
    (wall, processor), (our_wall, our_processor) = (
        np.min(peer_seconds, axis=0),
        np.min(our_seconds, axis=0),
    )
    print(
        f"{len(texts)} sentences, {torch.get_num_threads()} threads: pipeline {wall:.1f} s ({processor:.1f} s of "
        f"processor), StyleClassifier {our_wall:.1f} s ({our_processor:.1f} s): ratio {wall / our_wall:.2f} by the "
        f"clock, {processor / our_processor:.2f} by processor time; largest difference {difference:.1e}"
    )
    sys.exit(int(processor < our_processor))
