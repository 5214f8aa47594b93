"""Claim: twice the pairs take at most 2.5 times the memory. Peaks of all allocations in MB; exits with 1 where it is
missed."""

import sys
import tracemalloc

import numpy as np

from tsteval.bleu import approximate_randomization, bleu_interval, bleu_statistics, sentence_bleus
from tsteval.rouge import rouge


def peak(function):
    tracemalloc.start()
    function()
    size = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    return size


def main():
    generator = np.random.default_rng(0)
    words = [f"word{number}" for number in range(5000)]
    lines = [" ".join(generator.choice(words, 25)) for _ in range(16_000)]
    print("pairs     sentence BLEU  ROUGE  bootstrap  randomisation")
    rows = []
    for n in (1_000, 2_000, 4_000, 8_000):
        outputs = lines[:n]
        references = lines[8_000 : 8_000 + n]
        statistics = bleu_statistics(outputs, references)
        peaks = [
            peak(lambda: sentence_bleus(outputs, references)),
            peak(lambda: rouge(outputs, references)),
            peak(lambda: bleu_interval(statistics, n_resamples=1000)),
            peak(lambda: approximate_randomization(statistics, statistics, n_trials=1000)),
        ]
        rows.append(peaks)
        print(f"{n:6}    {peaks[0]:13.1f}  {peaks[1]:5.1f}  {peaks[2]:9.1f}  {peaks[3]:13.1f}")
    return int((np.array(rows[1:]) > 2.5 * np.array(rows[:-1])).any())


if __name__ == "__main__":
    sys.exit(main())
