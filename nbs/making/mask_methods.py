"""Which words should a mask cover? python nbs/making/mask_methods.py writes tsteval/data/mask_methods.csv

CPS with every way of finding style words, against people's ratings of content: no mask; integrated gradients of the
judge of the style that was asked for (of neutrality where no shipped judge knows it); the same of neutrality, the
wrong style; a lexicon of words; the token scores of subjectivity-words, also the wrong style on these sets, and only
where it calls a text subjective; and, where a person rewrote the same source, the words that this editor took out and
put in. Every mask leaves out whole words, by attribution those with 30% of it, as chapter 10 does with swapped facts.
It needs the corpora mir2019, lai2022 and style_gap (TSTEVAL_DATA). What agreement_scores.csv.gz holds already is read
from there; minutes on one core.

Figures only: study, mask, n (outputs), sources, correlation (Pearson) with low and high, and what it gains over no
mask, with low and high: 95%, 2,000 resamples of whole sources, the same ones for both.
"""
from pathlib import Path

import numpy as np
import pandas as pd

from tsteval.attribution import WORD, Attribution, attribute, edited_words
from tsteval.core.resample import bootstrap_interval, paired_bootstrap
from tsteval.cps import cosine, mask_style
from tsteval.datasets.ratings import load_ratings
from tsteval.models.encoder import SentenceEncoder
from tsteval.style import StyleClassifier

DATA = Path(__file__).parents[2] / "tsteval" / "data"
STORED = {"none": "cosine", "integrated gradients": "cps_remove_words",
          "integrated gradients, neutrality": "cps_remove_words_neutrality", "lexicon": "cps_remove_lexicon"}
STUDIES = ("lai2022", "style_gap", "mir2019")


def moments(scores, ratings, sources) -> np.ndarray:
    """Sums of each source, from which a correlation follows."""
    x, y = np.asarray(scores, dtype=float), np.asarray(ratings, dtype=float)
    x, y = x - x.mean(), y - y.mean()
    return pd.DataFrame(np.stack([x, y, x * x, y * y, x * y, np.ones(len(x))], axis=1)).groupby(
        np.asarray(sources)).sum().to_numpy()


def pearson(sums: np.ndarray) -> np.ndarray:
    x, y, xx, yy, xy, n = np.moveaxis(sums, -1, 0)
    return (xy - x * y / n) / np.sqrt((xx - x * x / n) * (yy - y * y / n))


def without(text: str, marked) -> str:
    """The text without the marked words."""
    spans = [match.span() for match in WORD.finditer(text)]
    words, scores = [text[start:end] for start, end in spans], np.asarray(marked, dtype=float)
    return mask_style(Attribution(text, words, scores, words, scores, 0.0, 0, spans), 1.0, "remove", "word")


def by_the_editor(table: pd.DataFrame, everything: pd.DataFrame) -> list[tuple[str, str]] | None:
    """Source without the words that a person took out of it, output without those that the person put in."""
    person = everything[everything.system == "ref"].drop_duplicates("source_id").set_index("source_id").output
    if person.empty: return None
    pairs = []
    for one in table.itertuples():
        written = person[one.source_id]
        added = {word.lower() for word, new in zip(WORD.findall(written), edited_words(written, one.source)) if new}
        pairs.append((without(one.source, edited_words(one.source, written)),
                      without(one.output, [word.lower() in added for word in WORD.findall(one.output)])))
    return pairs


def by_tokens(table: pd.DataFrame, judge: StyleClassifier, **changes: bool) -> list[tuple[str, str]]:
    texts = list(dict.fromkeys([*table.source, *table.output]))
    masked = {text: mask_style(found, 0.3, "remove", "word", **changes) for text, found in zip(
        texts, attribute(judge, texts, method="token_scores"))}
    return [(masked[one.source], masked[one.output]) for one in table.itertuples()]


def similarity(encoder: SentenceEncoder, pairs: list[tuple[str, str]]) -> np.ndarray:
    vectors = encoder.encode([text for side in zip(*pairs) for text in side])
    return cosine(vectors[:len(pairs)], vectors[len(pairs):])


def main() -> None:
    encoder, judge = SentenceEncoder.load(), StyleClassifier.load("subjectivity-words")
    known, rows = pd.read_csv(DATA / "agreement_scores.csv.gz"), []
    for study in STUDIES:
        everything = load_ratings(study).query("criterion == 'content'").drop_duplicates("item")
        table = everything[everything.system != "ref"].merge(known[known.data_set == study][["item", *STORED.values()]],
                                                             on="item").dropna(subset=["rating", "cosine"])
        scores = {mask: table[column].to_numpy() for mask, column in STORED.items()}
        scores["token scores, neutrality"] = similarity(encoder, by_tokens(table, judge))
        scores["token scores, neutrality, subjective texts"] = similarity(encoder, by_tokens(table, judge,
                                                                                             skip_neutral=True))
        if pairs := by_the_editor(table, everything): scores["the editor's words"] = similarity(encoder, pairs)
        plain = moments(scores["none"], table.rating, table.source_id)
        for mask, values in scores.items():
            if np.isnan(values).any(): continue  # no shipped judge knows the styles of this study
            sums = moments(values, table.rating, table.source_id)
            found = bootstrap_interval(sums, pearson, n_resamples=2000)
            gained = paired_bootstrap(sums, plain, pearson, n_resamples=2000)
            rows.append({"study": study, "mask": mask, "n": len(table), "sources": table.source_id.nunique(),
                         "correlation": found.score, "low": found.low, "high": found.high,
                         "gain": gained.difference, "gain_low": gained.low, "gain_high": gained.high})
        print(pd.DataFrame(rows).round(3).to_string(), flush=True)
    pd.DataFrame(rows).to_csv(DATA / "mask_methods.csv", index=False, float_format="%.5g")  # zero stays on its side


if __name__ == "__main__":
    main()
