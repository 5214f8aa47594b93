"""SmolLM2's log-probabilities of a random sample of the compressions, as chapter 5 uses them.

python tests/benchmarks/compression_scores.py 2200 tsteval/data/compression_scores.csv

The first argument is the number of compressions, the first so many of a permutation with seed 0. The table holds
figures only: the row of the compression in the data's file, ln p under SmolLM2, ln p under the unigram model
(web counts), and the number of tokens. A test recomputes a few rows.
"""

import sys

import numpy as np
import pandas as pd

from tsteval.fluency import CausalLM, UnigramModel, load_compressions


def score_sample(compressions, language_model, unigram):
    """A row of figures for each compression."""
    scored = language_model.token_logprobs(compressions.compression.tolist(), progress=True)
    return pd.DataFrame(
        {
            "row": compressions.row.to_numpy(),
            "logprob": [text.logprobs.sum() for text in scored],
            "unigram_logprob": [unigram.score(text.tokens).sum() for text in scored],
            "n_tokens": [len(text.tokens) for text in scored],
        }
    ).round(4)


if __name__ == "__main__":
    size, target = int(sys.argv[1]), sys.argv[2]
    clean = load_compressions()
    chosen = np.sort(np.random.default_rng(0).permutation(len(clean))[:size])
    model = CausalLM.load()
    score_sample(clean.iloc[chosen], model, UnigramModel.from_web_counts(model)).to_csv(target, index=False)
