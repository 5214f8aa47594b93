"""CPS at the report's thresholds and strategies: python nbs/making/cps_thresholds.py

Writes tsteval/data/cps_thresholds.csv, which chapter 10 draws: for the edited test pairs of the package and those of
the WNC sample (TSTEVAL_DATA), the five quantiles of the scores of source and target at each setting. Attributions are
integrated gradients of the shipped classifier, tokens masked as the report does.
"""

import numpy as np
import pandas as pd

from tsteval.attribution import integrated_gradients
from tsteval.cps import SentenceEncoder, content_preservation
from tsteval.style import StyleClassifier, load_pairs

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def main() -> None:
    classifier = StyleClassifier.load()
    encoder = SentenceEncoder.load()
    rows = []
    for data in ("npov_pairs", "wnc_sample"):
        pairs = load_pairs(data).query("split == 'test' and source != target")
        texts = list(dict.fromkeys([*pairs.source, *pairs.target]))
        known = dict(zip(texts, integrated_gradients(classifier, texts)))
        settings = [
            ("none", 0.0),
            *((strategy, share / 10) for strategy in ("pad", "remove") for share in range(1, 6)),
        ]
        for strategy, threshold in settings:
            found = content_preservation(
                pairs.source,
                pairs.target,
                encoder=encoder,
                strategy=strategy,
                threshold=threshold,
                attributions=known,
            ).cps
            rows.append(
                {
                    "data": data,
                    "strategy": strategy,
                    "threshold": threshold,
                    "pairs": len(pairs),
                    "mean": found.mean(),
                    **{f"q{round(100 * share)}": np.quantile(found, share) for share in QUANTILES},
                }
            )
            print(rows[-1], flush=True)
    pd.DataFrame(rows).round(4).to_csv("tsteval/data/cps_thresholds.csv", index=False)


if __name__ == "__main__":
    main()
