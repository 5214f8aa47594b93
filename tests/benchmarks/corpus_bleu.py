"""Claim: corpus BLEU is at least 10 times, and with 1,000 bootstrap resamples at least 7 times, as fast as sacreBLEU's.

Input: 5,000 distinct pairs (each of the WNC sample's 1,000 outputs against five references; set TSTEVAL_DATA), and
5,000 pairs of which only 1,000 differ. Both libraries remember tokenised text between calls; "first" clears both
memories, "again" leaves them warm, and the claim is for "first".
"""

import numpy as np
import sacrebleu
from _common import hold, race, wnc_lines

from tsteval.bleu import bleu_interval, bleu_statistics, corpus_bleu

STATED = {"corpus BLEU": 10, "with 1,000 resamples": 7}


def main():
    sources, targets = wnc_lines()
    outputs = sources * 5
    inputs = {
        "repeated pairs": targets * 5,
        "distinct pairs": [
            line for shift in range(5) for line in targets[shift:] + targets[:shift]
        ],
    }
    peer = sacrebleu.BLEU(force=True)
    measured = {}
    for name, references in inputs.items():
        for forget_first in (True, False):
            (theirs, ours, theirs_boot, ours_boot), (expected, found, expected_boot, found_boot) = (
                race(
                    lambda: peer.corpus_score(outputs, [references]),
                    lambda: corpus_bleu(outputs, references),
                    lambda: peer.corpus_score(outputs, [references], n_bootstrap=1000),
                    lambda: bleu_interval(
                        bleu_statistics(outputs, references), n_resamples=1000, seed=12345
                    ),
                    forget_first=forget_first,
                )
            )
            assert abs(found.score - expected.score / 100) < 1e-9
            np.testing.assert_allclose(
                found_boot.mean, expected_boot._mean / 100, atol=1e-6
            )  # same draws; sacreBLEU sums in 32 bits
            measured[name, forget_first] = {
                "corpus BLEU": theirs / ours,
                "with 1,000 resamples": theirs_boot / ours_boot,
            }
            print(
                f"{name}, {'first' if forget_first else 'again'}: "
                f"corpus BLEU {theirs / ours:.1f} times ({theirs:.3f} / {ours:.3f} s), "
                f"with bootstrap {theirs_boot / ours_boot:.1f} times ({theirs_boot:.3f} / {ours_boot:.3f} s)"
            )
    for name in inputs:
        hold(measured[name, True], STATED)


if __name__ == "__main__":
    main()
