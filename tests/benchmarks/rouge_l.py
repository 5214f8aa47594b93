"""Claim: ROUGE-L is at least 8 times as fast as rouge-score's on distinct pairs, 4 times where stems are not yet known.

Input: the 1,000 pairs of the WNC sample (set TSTEVAL_DATA), once and five times over, with and without stemming. Our
stems are remembered between calls, rouge-score's are not: "first" clears that memory before every round, "again" leaves
it.
"""

import numpy as np
from _common import hold, race, wnc_lines
from rouge_score.rouge_scorer import RougeScorer

from tsteval.rouge import _stem, rouge

STATED = {"words": 8, "first": 4, "again": 8}


def ours(outputs, references, stemmer, order):
    if order == "first":
        _stem.cache_clear()
    return rouge(outputs, references, ["rougeL"], stemmer)["rougeL"]


def main():
    (sources, targets), measured = wnc_lines(), {}
    for stemmer in (False, True):
        peer = RougeScorer(["rougeL"], use_stemmer=stemmer)
        for name, times in {"1,000 distinct pairs": 1, "5,000 repeated pairs": 5}.items():
            outputs = sources * times
            references = targets * times
            for order in ("first", "again") if stemmer else ("again",):
                (theirs, mine), (expected, found) = race(
                    lambda: [
                        peer.score(b, a)["rougeL"].fmeasure for a, b in zip(outputs, references)
                    ],
                    lambda: ours(outputs, references, stemmer, order),
                    rounds=7,
                )
                np.testing.assert_allclose(found, expected, atol=1e-9)
                case = f"{name}, {'stems, ' + order if stemmer else 'words'}"
                measured[case] = theirs / mine
                print(f"ROUGE-L, {case}: {theirs / mine:.1f} times ({theirs:.3f} / {mine:.3f} s)")
    hold(measured, {case: STATED[case.split()[-1]] for case in measured})


if __name__ == "__main__":
    main()
