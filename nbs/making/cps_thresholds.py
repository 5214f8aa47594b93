"""CPS at the report's thresholds and strategies: python nbs/making/cps_thresholds.py

Writes what chapter 10 draws of the edited test pairs of the package and those of the WNC sample (TSTEVAL_DATA):
cps_thresholds.csv has the mean and five quantiles of the scores of source and target at each setting, and for removal
its mean lead over [PAD] on the same pairs, with the 95% interval of a paired bootstrap of 2,000 resamples;
cps_shares.csv has of each text its words, the largest share that a word holds, and how many words 30% hide.
Attributions are integrated gradients of the shipped classifier; the settings mask tokens as the report does.
"""

import numpy as np
import pandas as pd

from tsteval.attribution import integrated_gradients
from tsteval.core.resample import mean_statistics, paired_bootstrap
from tsteval.cps import SentenceEncoder, content_preservation, masked_places
from tsteval.style import StyleClassifier, load_pairs

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
FOLDER = "tsteval/data"


def lead(found, other) -> dict:
    """How far the first scores lie above the others on the mean of the same pairs."""
    gained = paired_bootstrap(
        mean_statistics(np.asarray(found)), mean_statistics(np.asarray(other)), n_resamples=2000
    )
    return {"over_pad": gained.difference, "over_low": gained.low, "over_high": gained.high}


def main() -> None:
    classifier = StyleClassifier.load()
    encoder = SentenceEncoder.load()
    rows = []
    shares = []
    for data in ("npov_pairs", "wnc_sample"):
        pairs = load_pairs(data).query("split == 'test' and source != target")
        texts = list(dict.fromkeys([*pairs.source, *pairs.target]))
        known = dict(zip(texts, integrated_gradients(classifier, texts)))
        for side in ("source", "target"):
            for text in pairs[side]:
                sizes = np.abs(known[text].word_scores)
                shares.append(
                    {
                        "data": data,
                        "side": side,
                        "words": len(sizes),
                        "largest": sizes.max() / sizes.sum(),
                        "hidden": len(masked_places(known[text], 0.3, "word")),
                    }
                )
        settings = [
            ("none", 0.0),
            *((strategy, share / 10) for strategy in ("pad", "remove") for share in range(1, 6)),
        ]
        scores = {}
        for strategy, threshold in settings:
            found = content_preservation(
                pairs.source,
                pairs.target,
                encoder=encoder,
                strategy=strategy,
                threshold=threshold,
                attributions=known,
            ).cps
            scores[strategy, threshold] = found
            rows.append(
                {
                    "data": data,
                    "strategy": strategy,
                    "threshold": threshold,
                    "pairs": len(pairs),
                    "mean": found.mean(),
                    **{f"q{round(100 * share)}": np.quantile(found, share) for share in QUANTILES},
                    **(lead(found, scores["pad", threshold]) if strategy == "remove" else {}),
                }
            )
            print(rows[-1], flush=True)
    pd.DataFrame(rows).round(4).to_csv(f"{FOLDER}/cps_thresholds.csv", index=False)
    pd.DataFrame(shares).round(4).to_csv(f"{FOLDER}/cps_shares.csv", index=False)


if __name__ == "__main__":
    main()
