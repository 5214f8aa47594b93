"""Which words a mask hides in the test pairs and their swapped facts: python nbs/making/swapped_masks.py

Writes three tables that chapter 10 reads. tsteval/data/swapped_masks.csv: a row a pair and version of the text (source;
target; edited, which is the target with its fact exchanged as in swapped_facts.csv; wrong, which is the source with its
fact exchanged and nothing else) with the places of the words that integrated gradients of the shipped classifier hide at
30%, counted from 0; a number such as 50,000 is one word. Places only, no text.

tsteval/data/random_masks.csv: how well masks of random words tell the target from a wrong version (against: edited; wrong),
a row a draw and mask: as many words of each text as attribution hides at 30% (alone), or kinds of words drawn for a pair
until as many places are hidden in both texts as by attribution, alike (alike). With AUC, and in how many of the rows
the target is ahead.

tsteval/data/report_masks.csv: the mask of the package and the report at 30%, a row a wrong version (against), unit (token;
word) and strategy (pad; remove), with AUC, the share of rows whose target scores higher than their own wrong version
(above), and the AUC less that of no mask with 95% of 1,000 resamples of rows.
"""

import re
from pathlib import Path
from re import escape, sub

import numpy as np
import pandas as pd

from tsteval.attribution import WORD, integrated_gradients
from tsteval.cps import cosine, mask_style, separation, style_places
from tsteval.models.encoder import SentenceEncoder
from tsteval.style import StyleClassifier, load_pairs

DATA = Path(__file__).parents[2] / "tsteval" / "data"
VERSIONS = ("source", "target", "edited", "wrong")
WORDS = re.compile(rf"\d+(?:[.,]\d+)+|{WORD.pattern}")
DRAWS = 20


def versions() -> pd.DataFrame:
    pairs = load_pairs().query("split == 'test' and source != target").reset_index(drop=True)
    facts = pd.read_csv(DATA / "swapped_facts.csv", dtype=str)
    for version, kept in (("edited", pairs.target), ("wrong", pairs.source)):
        pairs[version] = [
            sub(rf"\b{escape(one.fact)}\b", one.other, text)
            for text, one in zip(kept, facts.itertuples())
        ]
    return pairs


def scores(found) -> list[float]:
    """The attribution of each word; that of a number is the sum over its pieces."""
    spans = [match.span() for match in WORDS.finditer(found.text)]
    return [
        sum(
            score
            for (first, last), score in zip(found.word_spans, found.word_scores)
            if start <= first and last <= end
        )
        for start, end in spans
    ]


def leave_out(text: str, places) -> str:
    spans = [match.span() for match in WORDS.finditer(text)]
    for start, end in (spans[place] for place in sorted(places, reverse=True)):
        text = text[:start].rstrip() + text[end:]
    return text.strip()


def hidden_in(texts: list[list[str]], words: set[str]) -> list[list[int]]:
    return [[place for place, word in enumerate(text) if word in words] for text in texts]


def random_alike(texts: list[list[str]], wanted: int, draw) -> list[list[int]]:
    """Places of kinds of words, in both texts, drawn until as many are hidden as wanted."""
    chosen: set[str] = set()
    for word in draw.permutation(sorted({*texts[0], *texts[1]})):
        if sum(map(len, hidden_in(texts, chosen))) >= wanted:
            break
        chosen.add(str(word))
    return hidden_in(texts, chosen)


def likenesses(encoder, first, second) -> np.ndarray:
    vectors = encoder.encode([*first, *second])
    return cosine(vectors[: len(first)], vectors[len(first) :]).round(9)


def report_masks(encoder, pairs: pd.DataFrame, found: dict, against: str) -> list[dict]:
    draws = np.random.default_rng(0).integers(len(pairs), size=(1000, len(pairs)))
    bare = [likenesses(encoder, pairs.source, pairs[side]) for side in ("target", against)]
    rows = []
    for unit in ("token", "word"):
        for strategy in ("pad", "remove"):
            texts = {
                side: [mask_style(found[text], 0.3, strategy, unit) for text in pairs[side]]
                for side in VERSIONS
            }
            own, wrong = (
                likenesses(encoder, texts["source"], texts[side]) for side in ("target", against)
            )
            gaps = [
                separation(own[some], wrong[some]) - separation(bare[0][some], bare[1][some])
                for some in draws
            ]
            low, high = np.quantile(gaps, [0.025, 0.975])
            auc = separation(own, wrong)
            rows.append(
                {
                    "against": against,
                    "unit": unit,
                    "strategy": strategy,
                    "auc": auc,
                    "above": (own > wrong).mean(),
                    "gap": auc - separation(*bare),
                    "low": low,
                    "high": high,
                }
            )
    return rows


def random_masks(encoder, pairs: pd.DataFrame, places: dict, against: str) -> list[dict]:
    draw = np.random.default_rng(0)
    rows = []
    for number in range(DRAWS):
        for mask in ("alone", "alike"):
            likeness = {}
            sources = {}
            for version in ("target", against):
                covered = []
                for row, one in pairs.iterrows():
                    texts = [WORDS.findall(one[side].lower()) for side in ("source", version)]
                    known = [places[side, row] for side in ("source", version)]
                    if mask == "alone":
                        hidden = [
                            draw.choice(len(text), len(taken), replace=False)
                            for text, taken in zip(texts, known)
                        ]
                        hidden[0] = sources.setdefault(row, hidden[0])  # a source is read once
                    else:
                        words = {
                            text[place] for text, taken in zip(texts, known) for place in taken
                        }
                        wanted = sum(map(len, hidden_in(texts, words)))
                        hidden = random_alike(texts, wanted, draw)
                    covered.append(
                        [
                            leave_out(one[side], taken)
                            for side, taken in zip(("source", version), hidden)
                        ]
                    )
                vectors = [encoder.encode(list(texts)) for texts in zip(*covered)]
                likeness[version] = cosine(*vectors).round(9)
            own, other = likeness["target"], likeness[against]
            rows.append(
                {
                    "against": against,
                    "mask": mask,
                    "draw": number,
                    "auc": round(separation(own, other), 5),
                    "ahead": (own > other).sum(),
                }
            )
    return rows


def main() -> None:
    pairs = versions()
    texts = [text for version in VERSIONS for text in pairs[version]]
    found = dict(zip(texts, integrated_gradients(StyleClassifier.load(), texts)))
    places = {
        (version, row): style_places(scores(found[text]), 0.3)
        for version in VERSIONS
        for row, text in enumerate(pairs[version])
    }
    rows = [
        {"row": row, "version": version, "places": " ".join(map(str, hidden))}
        for (version, row), hidden in places.items()
    ]
    pd.DataFrame(rows).to_csv(DATA / "swapped_masks.csv", index=False)
    encoder = SentenceEncoder.load()
    wrongs = ("edited", "wrong")
    settings = [row for one in wrongs for row in report_masks(encoder, pairs, found, one)]
    pd.DataFrame(settings).round(5).to_csv(DATA / "report_masks.csv", index=False)
    lots = [row for one in wrongs for row in random_masks(encoder, pairs, places, one)]
    pd.DataFrame(lots).to_csv(DATA / "random_masks.csv", index=False)


if __name__ == "__main__":
    main()
