"""Claim: 1,000 sentence BLEUs are at least 5 times as fast as sacreBLEU's and NLTK's, and one call a sentence as fast
as sacreBLEU's.

Input: the 1,000 pairs of the WNC sample (set TSTEVAL_DATA). sacreBLEU runs with one BLEU object for all sentences;
NLTK is given tokens, so its time holds no tokenising while ours does.
"""

import numpy as np
import sacrebleu
from _common import hold, race, wnc_lines
from nltk.translate import bleu_score as nltk_bleu

from tsteval.bleu import sentence_bleu, sentence_bleus

STATED = {"sacreBLEU": 5, "NLTK": 5, "one call a sentence": 1}


def main():
    outputs, references = wnc_lines()
    pairs = list(zip(outputs, references))
    tokens = [(output.split(), reference.split()) for output, reference in pairs]
    peer = sacrebleu.BLEU(effective_order=True, force=True)
    method1 = nltk_bleu.SmoothingFunction().method1
    (theirs, ours, single), (expected, found, one_by_one) = race(
        lambda: [
            peer.sentence_score(output, [reference]).score / 100 for output, reference in pairs
        ],
        lambda: sentence_bleus(outputs, references),
        lambda: [sentence_bleu(output, reference).score for output, reference in pairs],
        forget_first=True,
    )
    np.testing.assert_allclose(found, expected, atol=1e-9)
    np.testing.assert_allclose(one_by_one, expected, atol=1e-9)
    measured = {"sacreBLEU": theirs / ours, "one call a sentence": theirs / single}
    print(f"batch against sacreBLEU: {theirs / ours:.1f} times ({theirs:.3f} / {ours:.3f} s)")
    print(
        f"one call a sentence against sacreBLEU: {theirs / single:.1f} times ({theirs:.3f} / {single:.3f} s)"
    )
    (theirs, ours), (expected, found) = race(
        lambda: [
            nltk_bleu.sentence_bleu([reference], output, smoothing_function=method1)
            for output, reference in tokens
        ],
        lambda: sentence_bleus(outputs, references, smoothing="method1", tokenize="none"),
    )
    np.testing.assert_allclose(found, np.array(expected, dtype=float), atol=1e-9)
    measured["NLTK"] = theirs / ours
    print(f"batch against NLTK: {theirs / ours:.1f} times ({theirs:.3f} / {ours:.3f} s)")
    hold(measured, STATED)


if __name__ == "__main__":
    main()
