"""Claim: content preservation is at least 3 times as fast as one sentence at a time with transformers-interpret.

It exits with 1 where that is missed by processor time, which other programs on the machine do not disturb, where a
sentence is above its tolerance, or where fewer than four in five scores are the peer's.

Input: the first N source lines of the WNC sample (set TSTEVAL_DATA); N is the first argument, 500 by default.
The peer: transformers-interpret 0.10.0 as the report's code calls it (captum, Gauss-Legendre, 50 steps, [PAD]
baseline), then the same masking, encoding and cosine. Both sides score each line against a fixed neutral text and use
the same models. Install the peer with `pip install --no-deps transformers-interpret==0.10.0`: it pins an IPython older
than ours, which attribution does not need. Peak memory is that of the whole process after our side has run first.
"""

import resource
import sys
import time

import numpy as np
from _common import wnc_lines

from tsteval.attribution import Attribution, integrated_gradients
from tsteval.cps import SentenceEncoder, content_preservation, cosine, mask_style
from tsteval.style import StyleClassifier

try:
    from transformers_interpret import SequenceClassificationExplainer
except ImportError:
    sys.exit("the peer is missing: pip install --no-deps transformers-interpret==0.10.0")

RATIO = 3.0  # claimed, at the default tolerance
NEUTRAL = "The bridge was opened in 1932."


def by_peer(explainer, encoder, texts):
    """Scores, completeness errors and token attributions, one sentence at a time."""
    scores = []
    errors = []
    attributions = []
    neutral = encoder.encode([NEUTRAL])
    for text in texts:
        pairs = explainer(text, index=0)
        errors.append(abs(float(explainer.attributions.delta)))
        tokens = [token for token, _ in pairs[1:-1]]
        found = Attribution(
            text,
            tokens,
            np.array([score for _, score in pairs[1:-1]]),
            [],
            np.zeros(0),
            errors[-1],
            50,
        )
        attributions.append(found.scores)
        scores.append(cosine(encoder.encode([mask_style(found)]), neutral)[0])
    return np.array(scores), np.array(errors), attributions


def by_us(classifier, encoder, texts, tolerance):
    found = integrated_gradients(classifier, texts, tolerance=tolerance)
    known = dict(zip(texts, found))
    known[NEUTRAL] = Attribution(
        NEUTRAL, [NEUTRAL], np.zeros(1), [], np.zeros(0), 0.0, 0
    )  # a text without style words
    frame = content_preservation(texts, [NEUTRAL] * len(texts), encoder=encoder, attributions=known)
    return frame.cps.to_numpy(), np.array([a.completeness_error for a in found]), found


def main():
    texts = wnc_lines()[0][: int(sys.argv[1]) if len(sys.argv) > 1 else 500]
    classifier = StyleClassifier.load()
    encoder = SentenceEncoder.load()
    explainer = SequenceClassificationExplainer(classifier.model, classifier.tokenizer)
    by_us(classifier, encoder, texts[:2], 0.05)  # the first call of a model is slow for either side
    seconds = {}
    cpu = {}
    errors = {}
    scores = {}
    for name, run in {
        "ours, tolerance 0.05": lambda: by_us(classifier, encoder, texts, 0.05),
        "ours, tolerance 0.02": lambda: by_us(classifier, encoder, texts, 0.02),
        "peer": lambda: by_peer(explainer, encoder, texts),
    }.items():
        if name == "peer":
            print(
                f"peak memory of the process so far: "
                f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GB"
            )
        start = time.perf_counter()
        cpu_start = time.process_time()  # the second does not see other programs
        scores[name], errors[name], attributions = run()
        seconds[name], cpu[name] = time.perf_counter() - start, time.process_time() - cpu_start
        steps = "50.0" if name == "peer" else f"{np.mean([a.steps for a in attributions]):.1f}"
        print(
            f"{name}: {seconds[name]:.1f} s, {steps} gradients, completeness error median "
            f"{np.median(errors[name]):.5f}, "
            f"99th percentile {np.quantile(errors[name], 0.99):.5f}, worst {errors[name].max():.5f}",
            flush=True,
        )
    for name in list(seconds)[:2]:
        same = np.mean(np.isclose(scores[name], scores["peer"], atol=1e-4))
        print(
            f"{name}: {seconds['peer'] / seconds[name]:.1f} times as fast by the clock, "
            f"{cpu['peer'] / cpu[name]:.1f} times "
            f"by processor time; same score as the peer in {same:.0%} of "
            f"{len(texts)} sentences"
        )
    missed = [
        f"{name}: a sentence is above the tolerance"
        for name in list(seconds)[:2]
        if errors[name].max() > float(name.split()[-1])
    ]
    if np.mean(np.isclose(scores["ours, tolerance 0.02"], scores["peer"], atol=1e-4)) <= 0.8:
        missed.append("too few scores are the peer's")
    if cpu["peer"] / cpu["ours, tolerance 0.05"] < RATIO:
        missed.append(f"less than {RATIO} times as fast")
    if missed:
        sys.exit("; ".join(missed))


if __name__ == "__main__":
    main()
