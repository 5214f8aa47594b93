"""Claims: all properties of 2,000 sentences in 4 minutes and 3 GB; readability of 100,000 sentences in 20 s."""

import resource
import sys
import time

import numpy as np

from tsteval.properties import PROPERTIES, calculate_properties
from tsteval.style import load_pairs
from tsteval.surface import readability


def distinct_sentences(number):
    """Sentences of the embedded pairs; beyond their number, with a running number that makes each one new."""
    pairs = load_pairs()
    sentences = list(dict.fromkeys([*pairs.source, *pairs.target]))
    return [
        sentences[row % len(sentences)].rstrip(".")
        + (f", item {row}." if row >= len(sentences) else ".")
        for row in range(number)
    ]


def main():
    outputs = distinct_sentences(2000)
    inputs = [f"Is it true? {text}" for text in np.roll(outputs, 1)]
    print("property               seconds")
    total = 0.0
    for name in PROPERTIES:
        start = time.perf_counter()
        frame = calculate_properties(outputs, inputs, [name])
        took = time.perf_counter() - start
        total += took
        assert frame.shape == (2000, 1) and np.isfinite(frame[name]).all(), name
        print(f"{name:22}{took:8.1f}")
    start = time.perf_counter()
    processor = time.process_time()
    frame = calculate_properties(outputs, inputs, links="check")  # none of the texts holds a link
    took = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    processor = time.process_time() - processor  # what other programs on the machine do not disturb
    print(
        f"{'one by one':22}{total:8.1f}\n{'all in one call':22}{took:8.1f}   limit 240; processor {processor:.1f}"
    )
    print(f"peak memory {peak:.2f} GB, limit 3")
    assert frame.shape == (2000, len(PROPERTIES))
    missed = [took > 240, peak > 3]
    many = distinct_sentences(100_000)
    for syllables in ("rule", "auto"):
        start = time.perf_counter()
        values = readability(many, syllables=syllables)
        took = time.perf_counter() - start
        print(
            f"readability of {len(values):,} sentences, syllables {syllables}: {took:.1f} s, limit 20"
        )
        missed.append(took > 20)
    return int(any(missed))


if __name__ == "__main__":
    sys.exit(main())
