"""What the benchmarks share: the input, and a clock that alternates between the sides, so that all see one machine."""

import os
import sys
import time
from pathlib import Path

from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a
from sacrebleu.tokenizers.tokenizer_re import TokenizerRegexp

from tsteval.words import tokenization


def wnc_lines():
    """The 1,000 source lines and the 1,000 target lines of the WNC sample."""
    if "TSTEVAL_DATA" not in os.environ:
        sys.exit(
            "set TSTEVAL_DATA to the folder that holds wnc_sample (baselines/test_data of rpryzant/neutralizing-bias)"
        )
    folder = Path(os.environ["TSTEVAL_DATA"]) / "wnc_sample"
    return [(folder / name).read_text().splitlines()[:1000] for name in ("pre.train", "post.train")]


def forget():
    """Clear what sacreBLEU and tsteval remember of text that they have tokenised."""
    for remembered in (
        Tokenizer13a.__call__,
        TokenizerRegexp.__call__,
        tokenization._split_word_13a,
    ):
        remembered.cache_clear()


def race(*runners, rounds=7, forget_first=False):
    """Run all runners in turn, several times; the best time in seconds and the last result of each."""
    best = [float("inf")] * len(runners)
    results = [None] * len(runners)
    for _ in range(rounds):
        for number, runner in enumerate(runners):
            if forget_first:
                forget()
            start = time.perf_counter()
            results[number] = runner()
            best[number] = min(best[number], time.perf_counter() - start)
    return best, results


def hold(measured, stated):
    """Exit with 1 unless each ratio reaches what its benchmark states; both map a name to "times as fast"."""
    missed = [
        f"{name}: {measured[name]:.1f} times, {least:g} stated"
        for name, least in stated.items()
        if measured[name] < least
    ]
    if missed:
        sys.exit("missed: " + "; ".join(missed))  # a message as exit code prints it and returns 1
