"""Which words should a mask cover? python nbs/making/mask_methods.py writes tsteval/data/mask_methods.csv

CPS with every way of finding style words, against people's ratings of content: no mask; integrated gradients of the
judge of the style that was asked for (of neutrality where no shipped judge knows it); the same alike, which hides in
both texts of a pair each word that the gradients hide in either, so that no word is missing on one side alone; the
gradients of neutrality, the wrong style; a lexicon of words; the token scores of subjectivity-words, also the wrong
style on these sets, and only where it calls a text subjective; and, where a person rewrote the same source, the words
that this editor took out or put in, left out of both texts.

Every mask leaves out whole words, by attribution those with 30% of it, as chapter 10 does with swapped facts.
It needs the corpora mir2019, lai2022 and style_gap (TSTEVAL_DATA). What agreement_scores.csv.gz holds already is read
from there; minutes on one core.

Figures only: study, mask, n (outputs), sources, correlation (Pearson) with low and high, and what it gains over no
mask and over attribution, each with low and high: 95%, 2,000 resamples of whole sources, the same ones for both;
copies, the outputs that differ from their source in capitals and punctuation at most, with their mean rating and score.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from tsteval.attribution import WORD, Attribution, attribute, edited_words
from tsteval.core.resample import bootstrap_interval, paired_bootstrap
from tsteval.cps import complete_attributions, cosine, mask_style, masked_places
from tsteval.models.encoder import SentenceEncoder
from tsteval.style import StyleClassifier
from tsteval.tables.ratings import load_ratings

DATA = Path(__file__).parents[2] / "tsteval" / "data"
STORED = {
    "none": "cosine",
    "integrated gradients": "cps_remove_words",
    "integrated gradients, neutrality": "cps_remove_words_neutrality",
    "lexicon": "cps_remove_lexicon",
}
JUDGES = {
    "lai2022": "formality-minilm",
    "style_gap": "subjectivity-minilm",
    "mir2019": "sentiment-minilm",
}


def moments(scores, ratings, sources) -> np.ndarray:
    """Sums of each source, from which a correlation follows."""
    x = np.asarray(scores, dtype=float)
    y = np.asarray(ratings, dtype=float)
    x = x - x.mean()
    y = y - y.mean()
    return (
        pd.DataFrame(np.stack([x, y, x * x, y * y, x * y, np.ones(len(x))], axis=1))
        .groupby(np.asarray(sources))
        .sum()
        .to_numpy()
    )


def pearson(sums: np.ndarray) -> np.ndarray:
    x, y, xx, yy, xy, n = np.moveaxis(sums, -1, 0)
    return (xy - x * y / n) / np.sqrt((xx - x * x / n) * (yy - y * y / n))


def without(text: str, marked) -> str:
    """The text without the marked words."""
    spans = [match.span() for match in WORD.finditer(text)]
    words = [text[start:end] for start, end in spans]
    scores = np.asarray(marked, dtype=float)
    return mask_style(
        Attribution(text, words, scores, words, scores, 0.0, 0, spans), 1.0, "remove", "word"
    )


def chosen(text: str, words: set[str]) -> list[bool]:
    return [word.lower() in words for word in WORD.findall(text)]


def by_the_editor(
    table: pd.DataFrame, everything: pd.DataFrame
) -> dict[str, list[tuple[str, str]]]:
    """Source and output, both without each word that a person took out or put in."""
    person = (
        everything[everything.system == "ref"]
        .drop_duplicates("source_id")
        .set_index("source_id")
        .output
    )
    if person.empty:
        return {}
    both = []
    for one in table.itertuples():
        written = person[one.source_id]
        out, put = (
            {
                word.lower()
                for word, edited in zip(WORD.findall(text), edited_words(text, other))
                if edited
            }
            for text, other in ((one.source, written), (written, one.source))
        )
        both.append(
            tuple(without(text, chosen(text, out | put)) for text in (one.source, one.output))
        )
    return {"the editor's words": both}


def copied(source: str, output: str) -> bool:
    return WORD.findall(source.lower()) == WORD.findall(output.lower())


def alike(table: pd.DataFrame, judge: StyleClassifier) -> list[tuple[str, str]]:
    """Source and output, both without each word that the gradients hide in either."""
    hidden = {
        text: {one.words[place].lower() for place in masked_places(one, 0.3, "word")}
        for text, one in complete_attributions([*table.source, *table.output], judge).items()
    }
    return [
        tuple(
            without(text, chosen(text, hidden[one.source] | hidden[one.output]))
            for text in (one.source, one.output)
        )
        for one in table.itertuples()
    ]


def by_tokens(
    table: pd.DataFrame, judge: StyleClassifier, **changes: bool
) -> list[tuple[str, str]]:
    texts = list(dict.fromkeys([*table.source, *table.output]))
    masked = {
        text: mask_style(found, 0.3, "remove", "word", **changes)
        for text, found in zip(texts, attribute(judge, texts, method="token_scores"))
    }
    return [(masked[one.source], masked[one.output]) for one in table.itertuples()]


def similarity(encoder: SentenceEncoder, pairs: list[tuple[str, str]]) -> np.ndarray:
    vectors = encoder.encode([text for side in zip(*pairs) for text in side])
    return cosine(vectors[: len(pairs)], vectors[len(pairs) :])


def rated(study: str, known: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Everything that was rated, and the outputs of systems with their stored scores."""
    everything = load_ratings(study).query("criterion == 'content'").drop_duplicates("item")
    return everything, everything[everything.system != "ref"].merge(
        known[known.data_set == study][["item", *STORED.values()]], on="item"
    ).dropna(subset=["rating", "cosine"])


def judged(study: str, table: pd.DataFrame, scores: dict[str, np.ndarray]) -> list[dict]:
    """A row of figures for each mask."""
    rows = []
    copies = np.array([copied(one.source, one.output) for one in table.itertuples()])
    plain, attributed = (
        moments(scores[mask], table.rating, table.source_id)
        for mask in ("none", "integrated gradients")
    )
    for mask, values in scores.items():
        if np.isnan(values).any():
            continue  # no shipped judge knows the styles of this study
        sums = moments(values, table.rating, table.source_id)
        found = bootstrap_interval(sums, pearson, n_resamples=2000)
        gained, over = (
            paired_bootstrap(sums, other, pearson, n_resamples=2000)
            for other in (plain, attributed)
        )
        rows.append(
            {
                "study": study,
                "mask": mask,
                "n": len(table),
                "sources": table.source_id.nunique(),
                "correlation": found.score,
                "low": found.low,
                "high": found.high,
                "gain": gained.difference,
                "gain_low": gained.low,
                "gain_high": gained.high,
                "over_attribution": over.difference,
                "over_low": over.low,
                "over_high": over.high,
                "copies": copies.sum(),
                "copies_rated": table.rating[copies].mean(),
                "copies_scored": pd.Series(values)[copies].mean(),
            }
        )
    return rows


def main() -> None:
    encoder = SentenceEncoder.load()
    judge = StyleClassifier.load("subjectivity-words")
    known = pd.read_csv(DATA / "agreement_scores.csv.gz")
    rows = []
    for study, name in JUDGES.items():
        everything, table = rated(study, known)
        scores = {mask: table[column].to_numpy() for mask, column in STORED.items()}
        scores["integrated gradients, alike"] = similarity(
            encoder, alike(table, StyleClassifier.load(name))
        )
        scores["token scores, neutrality"] = similarity(encoder, by_tokens(table, judge))
        scores["token scores, neutrality, subjective texts"] = similarity(
            encoder, by_tokens(table, judge, skip_neutral=True)
        )
        scores |= {
            mask: similarity(encoder, pairs)
            for mask, pairs in by_the_editor(table, everything).items()
        }
        rows += judged(study, table, scores)
        print(pd.DataFrame(rows).round(3).to_string(), flush=True)
    pd.DataFrame(rows).to_csv(
        DATA / "mask_methods.csv", index=False, float_format="%.5g"
    )  # zero stays on its side


if __name__ == "__main__":
    main()
