"""SmolLM2's log-probabilities of the rated compressions, as chapter 6 uses them.

python nbs/making/compression_scores.py tsteval/data/compression_scores.csv

The table holds figures only: the row of the compression in the data's file, ln p under SmolLM2 after <|endoftext|> and
after <|im_start|>, ln p under the unigram model (web counts), and the number of tokens. A test recomputes a few rows.
It needs the corpus `msr_compression` (the derived valid_data.csv) and some twenty minutes of two cores.
"""

import sys

import pandas as pd

from tsteval.fluency import CausalLM, UnigramModel, load_compressions

BEGINNINGS = {"logprob": "<|endoftext|>", "logprob_im_start": "<|im_start|>"}  # column -> the token before every text


def score_compressions(compressions: pd.DataFrame) -> pd.DataFrame:
    """A row of figures for each compression."""
    texts, model = compressions.compression.tolist(), CausalLM.load()
    unigram, tokens = UnigramModel.from_web_counts(model), model.text_tokens(texts)
    columns = {"row": compressions.row.to_numpy()}
    for column, beginning in BEGINNINGS.items():
        scored = CausalLM.load(beginning=beginning).token_logprobs(texts, progress=True)
        columns[column] = [text.logprobs.sum() for text in scored]
    columns["unigram_logprob"] = [unigram.score(text).sum() for text in tokens]
    return pd.DataFrame(columns | {"n_tokens": list(map(len, tokens))}).round(4)


def main() -> None:
    score_compressions(load_compressions()).to_csv(sys.argv[1], index=False)


if __name__ == "__main__":
    main()
