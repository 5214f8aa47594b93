"""Do the scores of chapter 12 follow people more closely than one cosine of whole sentences?

    python nbs/making/alignment_people.py             # about ten minutes on two cores

Rated sets are looked for in TSTEVAL_DATA. tsteval/data/alignment_people.csv has a row a set and score: its Pearson
correlation with the mean rating of each output, and that minus the correlation of the cosine of whole sentences, with a
95% interval from resampling sources. Translations and simplifications are compared with their references, rewrites with
their source, as in overlap_people.csv; of several references the best counts, for the cosine too. `words` is something
trivial: the share of an output's words that the text it is compared with has. WMD is turned round, so that more is
better for all. BLEU, BERTScore and WMD are checked against evidence.csv. `length`, without an interval, is the number of
an output's words, where fewer counts as better.

Scores of other models, stored by those who made a set, stand beside ours. For lai2022, each output against its source:
`bert_score_large` is BERTScore with the default for English, RoBERTa large, and `wmd_word2vec` is WMD with the vectors of
GoogleNews (eval_content.py of github.com/laihuiyuan/eval-formality-transfer). For simplicity_da a figure is quoted: the
correlation of the stored precision, again with RoBERTa large, with the standardised ratings of meaning of all 600 outputs
(Alva-Manchego et al. 2021; github.com/feralvam/metaeval-simplification), of which load_ratings gives 290.

The file holds figures only. Nothing at run time depends on this file.
"""

import re
from pathlib import Path

import numpy as np
import pandas as pd
from overlap_people import SETS

from tsteval.alignment import bert_score, mover_score, word_movers_distance
from tsteval.bleu import bleu_from_statistics, bleu_statistics
from tsteval.cps import cosine
from tsteval.models.encoder import SentenceEncoder
from tsteval.people.coefficients import compare_correlations
from tsteval.report.evidence import evidence
from tsteval.tables.ratings import load_ratings
from tsteval.text import tokenize

FOLDER = Path(__file__).parents[2] / "tsteval" / "data"
IN_EVIDENCE = {
    "references": {"bleu": "bleu", "bert_score": "bert_score", "wmd": "wmd"},
    "source": {"bleu": "bleu, of the source", "bert_score": "bert_score:against=source"},
}

STORED = {
    "lai2022": {"bert_score_large": ("content_bertscore", 1), "wmd_word2vec": ("content_wmd", -1)}
}
QUOTED = {
    "data_set": "simplicity_da",
    "criterion": "content",
    "score": "bert_score_large",
    "pearson": 0.701,
    "n": 600,
    "sources": 302,
}


def words_shared(output: str, references: list[str]) -> float:
    words = tokenize(output.lower())
    shares = [np.mean([word in tokenize(text.lower()) for word in words]) for text in references]
    return float(max(shares)) if words else 0.0


def length_row(name: str, criterion: str, rated: pd.DataFrame, cosine_r: float) -> dict:
    fewer = [-len(re.findall(r"\w+", text)) for text in rated.output]
    r = np.corrcoef(fewer, rated.rating)[0, 1]
    return {
        "data_set": name,
        "criterion": criterion,
        "score": "length",
        "pearson": r,
        "minus_cosine": r - cosine_r,
        "n": len(rated),
        "sources": rated.source_id.nunique(),
    }


def cosines(encoder, outputs: list[str], references: list[list[str]]) -> np.ndarray:
    pairs = [(row, text) for row, texts in enumerate(references) for text in texts]
    found = cosine(
        encoder.encode([outputs[row] for row, _ in pairs]),
        encoder.encode([text for _, text in pairs]),
    )
    return pd.Series(found).groupby([row for row, _ in pairs]).max().to_numpy()


def scores_of(encoder, outputs: list[str], references: list[list[str]]) -> dict[str, np.ndarray]:
    return {
        "words": np.array([words_shared(*pair) for pair in zip(outputs, references)]),
        "bleu": bleu_from_statistics(bleu_statistics(outputs, references), effective_order=True),
        "wmd": -word_movers_distance(outputs, references, encoder=encoder),
        "bert_score": bert_score(outputs, references, encoder=encoder).f1.to_numpy(),
        "mover_1": mover_score(outputs, references, encoder=encoder),
        "cosine": cosines(encoder, outputs, references),
    }


def main() -> None:
    encoder = SentenceEncoder.load()
    known = evidence().query("measure == 'pearson'").set_index(["data_set", "criterion", "score"])
    table = []
    for name, (criterion, against) in SETS.items():
        rated = load_ratings(name).query("criterion == @criterion").reset_index(drop=True)
        references = [
            [texts] if isinstance(texts, str) else list(texts) for texts in rated[against]
        ]
        scores = scores_of(encoder, rated.output.tolist(), references)
        for score, (column, sign) in STORED.get(name, {}).items():
            scores[score] = sign * rated[column].to_numpy(float)
        for score, in_table in IN_EVIDENCE[against].items():
            found = np.corrcoef(scores[score], rated.rating)[0, 1]
            assert np.isclose(found, known.loc[(name, criterion, in_table)].value, atol=1e-3), (
                name,
                score,
            )
        for score, values in scores.items():
            one = compare_correlations(
                values, scores["cosine"], rated.rating, groups=rated.source_id
            )
            table.append(
                {
                    "data_set": name,
                    "criterion": criterion,
                    "score": score,
                    "pearson": one.score_a,
                    "minus_cosine": one.difference,
                    "low": one.low,
                    "high": one.high,
                    "n": len(rated),
                    "sources": rated.source_id.nunique(),
                }
            )
        cosine_r = np.corrcoef(scores["cosine"], rated.rating)[0, 1]
        table.append(length_row(name, criterion, rated, cosine_r))
        print(pd.DataFrame(table).tail(len(scores) + 1).round(3).to_string(), flush=True)
    table.append(QUOTED)
    pd.DataFrame(table).round(4).to_csv(FOLDER / "alignment_people.csv", index=False)


if __name__ == "__main__":
    main()
