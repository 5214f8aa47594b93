"""SmolLM2's log-probabilities of the learners' sentences of chapter 6.

    python nbs/making/gug_scores.py tsteval/data

`gug_scores.csv` holds figures only, a row a sentence of the set gug in its own order: ln p under SmolLM2-135M-Instruct,
ln p under the unigram model (web counts), the number of tokens, and the number of words that are not among the 60,000 most
frequent ones of the web. A test recomputes a few rows. It takes some four minutes of one core.
"""

import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from tsteval.core.fetch import asset_path
from tsteval.fluency import CausalLM, UnigramModel
from tsteval.tables.ratings import load_ratings


def unlisted_words(texts: list[str], listed: int = 60_000) -> np.ndarray:
    """(N,) words of each text that are not among the most frequent words of the web, names included."""
    lines = (asset_path("web-ngrams") / "unigrams.txt").read_text(encoding="utf-8").splitlines()
    known = {line.split("\t")[0] for line in lines[:listed]}
    return np.array(
        [sum(word not in known for word in re.findall("[a-z]+", text.lower())) for text in texts]
    )


def main() -> None:
    rated = load_ratings("gug")
    texts = rated.output.tolist()
    lm = CausalLM.load()
    scored = lm.token_logprobs(texts, progress=True)
    alone = UnigramModel.from_web_counts(lm)
    table = pd.DataFrame(
        {
            "logprob": [text.logprobs.sum() for text in scored],
            "unigram_logprob": [alone.score(text.tokens).sum() for text in scored],
            "n_tokens": [len(text.tokens) for text in scored],
            "unlisted_words": unlisted_words(texts),
        }
    )
    table.round(4).to_csv(Path(sys.argv[1]) / "gug_scores.csv", index=False)


if __name__ == "__main__":
    main()
