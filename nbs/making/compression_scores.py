"""SmolLM2's log-probabilities of the rated compressions, and how the scores of chapter 6 follow people.

python nbs/making/compression_scores.py tsteval/data              # what follows from the stored log-probabilities
python nbs/making/compression_scores.py tsteval/data --language-model  # the log-probabilities anew, before that

The tables hold figures only. `compression_scores.csv`: the row of the compression in the data's file, ln p under
SmolLM2 after <|endoftext|> and after <|im_start|>, ln p under the unigram model (web counts), and the number of tokens.
`compression_correlations.csv` and `compression_gaps.csv`: Pearson correlations with people's ratings and differences
of such, each with its 95% interval from a bootstrap over sources. A test recomputes a few rows of each. It needs the
corpora `msr_compression` (the derived valid_data.csv) and NLTK's Brown; the language model takes some twenty minutes of
two cores, the rest two.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd

from tsteval.ameliorations import amelioration_1
from tsteval.core.resample import bootstrap_interval, paired_bootstrap
from tsteval.fluency import (
    CausalLM,
    UnigramModel,
    count_text,
    load_compressions,
    scores_from_logprobs,
)
from tsteval.rouge import rouge

BEGINNINGS = {
    "logprob": "<|endoftext|>",
    "logprob_im_start": "<|im_start|>",
}  # column -> the token before every text
ORDERS = {"word": 3, "piece": 3, "character": 6}
GAPS = [
    ("PenLP", "NCE"),
    ("NCE", "- perplexity"),
    ("NCE", "NormLP"),
    ("NCE", "SLOR"),
    ("PenLP", "ROUGE-L"),
    ("SLOR", "SLOR, words"),
    ("SLOR, words", "WPSLOR"),
    ("WPSLOR", "SLOR, characters"),
]


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


def combined_code(sample: pd.DataFrame) -> np.ndarray:
    """The release's codes, 6 (best) to 24, from mean ratings in 1..3: exact where raters are at most a step apart."""
    return np.interp(sample.meaning, [1, 2, 3], [20, 10, 5]) + np.interp(
        sample.grammar, [1, 2, 3], [4, 2, 1]
    )


def every_score(sample: pd.DataFrame, stored: pd.DataFrame) -> dict[str, np.ndarray]:
    """What is compared with people, by name: higher should be better."""
    from nltk.corpus import brown

    texts = sample.compression.tolist()
    length = sample.compression.str.split().str.len()
    brown_texts = [" ".join(words) for words in brown.sents()]
    counted = {unit: count_text(brown_texts, unit, order) for unit, order in ORDERS.items()}
    by_unit = {unit: model.scores(texts) for unit, model in counted.items()}
    neural = scores_from_logprobs(stored.logprob, stored.unigram_logprob, stored.n_tokens)
    overlap = rouge(texts, sample.source.tolist(), kinds=("rouge1", "rouge2", "rouge3", "rougeL"))
    return {
        "PenLP": neural.pen_lp,
        "NCE": neural.nce,
        "- perplexity": -neural.perplexity,
        "NormLP": neural.norm_lp,
        "SLOR": neural.slor,
        "A1, words": amelioration_1(
            counted["word"].lm, [counted["word"].split(text) for text in texts]
        ),
        "SLOR, words": by_unit["word"].slor,
        "WPSLOR": by_unit["piece"].slor,
        "SLOR, characters": by_unit["character"].slor,
        "ROUGE-1": overlap.rouge1,
        "ROUGE-2": overlap.rouge2,
        "ROUGE-3": overlap.rouge3,
        "ROUGE-L": overlap.rougeL,
        "length": length,
        "length / source": length / sample.source.str.split().str.len(),
    }


def source_sums(x, y, groups: np.ndarray) -> np.ndarray:
    """(sources, 6) sufficient statistics of a correlation."""
    x, y = (np.asarray(values, float) - np.mean(values) for values in (x, y))
    columns = (np.ones_like(x), x, y, x * x, y * y, x * y)
    return np.stack([np.bincount(groups, column) for column in columns]).T


def pearson(sums: np.ndarray) -> np.ndarray:
    """Pearson's correlation from summed statistics."""
    n, x, y, xx, yy, xy = np.moveaxis(sums, -1, 0)
    return (n * xy - x * y) / np.sqrt((n * xx - x * x) * (n * yy - y * y))


def correlate(
    sample: pd.DataFrame, scores: dict[str, np.ndarray]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Correlations of each score with each rating, and differences of correlations with grammar."""
    groups = pd.factorize(sample.source)[0]
    ratings = {
        "grammar": sample.grammar,
        "meaning": sample.meaning,
        "combined": -combined_code(sample),
    }
    sums = {
        (rating, name): source_sums(values, people, groups)
        for rating, people in ratings.items()
        for name, values in scores.items()
    }
    found = {key: bootstrap_interval(value, pearson) for key, value in sums.items()}
    gaps = [
        (*pair, paired_bootstrap(*(sums["grammar", name] for name in pair), pearson))
        for pair in GAPS
    ]
    return (
        pd.DataFrame(
            [(*key, one.score, one.low, one.high) for key, one in found.items()],
            columns=["rating", "score", "value", "low", "high"],
        ),
        pd.DataFrame(
            [(first, second, gap.difference, gap.low, gap.high) for first, second, gap in gaps],
            columns=["first", "second", "difference", "low", "high"],
        ),
    )


def main() -> None:
    folder = Path(sys.argv[1])
    compressions = load_compressions()
    if "--language-model" in sys.argv:
        score_compressions(compressions).to_csv(folder / "compression_scores.csv", index=False)
    stored = pd.read_csv(folder / "compression_scores.csv")
    sample = compressions.set_index("row").loc[stored.row].reset_index()
    correlations, gaps = correlate(sample, every_score(sample, stored))
    correlations.round(4).to_csv(folder / "compression_correlations.csv", index=False)
    gaps.round(4).to_csv(folder / "compression_gaps.csv", index=False)


if __name__ == "__main__":
    main()
