"""SmolLM2's log-probabilities of the rated compressions, of which chapter 6 makes its scores.

    python nbs/making/compression_scores.py tsteval/data    # some twenty minutes of two cores

The table holds figures only. `compression_scores.csv`: the row of the compression in the data's file, ln p under
SmolLM2 after <|endoftext|> and after <|im_start|>, ln p under the unigram model (web counts), and the number of tokens.
A test recomputes a few rows. It needs the corpus `msr_compression` (the derived valid_data.csv).
"""

import sys
from pathlib import Path

import pandas as pd

from tsteval.fluency import CausalLM, UnigramModel, load_compressions

BEGINNINGS = {
    "logprob": "<|endoftext|>",
    "logprob_im_start": "<|im_start|>",
}  # column -> the token before every text


def score_compressions(compressions: pd.DataFrame) -> pd.DataFrame:
    """A row of figures for each compression."""
    texts = compressions.compression.tolist()
    model = CausalLM.load()
    unigram = UnigramModel.from_web_counts(model)
    tokens = model.text_tokens(texts)
    columns = {"row": compressions.row.to_numpy()}
    for column, beginning in BEGINNINGS.items():
        scored = CausalLM.load(beginning=beginning).token_logprobs(texts, progress=True)
        columns[column] = [text.logprobs.sum() for text in scored]
    columns["unigram_logprob"] = [unigram.score(text).sum() for text in tokens]
    return pd.DataFrame(columns | {"n_tokens": list(map(len, tokens))}).round(4)


if __name__ == "__main__":
    table = score_compressions(load_compressions())
    table.to_csv(Path(sys.argv[1]) / "compression_scores.csv", index=False)
