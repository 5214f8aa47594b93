"""Train the classifier of changed content that the package ships.

    python nbs/making/content_model.py FOLDER    # some minutes on two cores; the package's is
    tsteval/data/content-minilm

Every example is a source and a rewrite. A rewrite that keeps the content is one of ours, or an edit for neutrality or
formality; one that changes it is one of ours, or a rewrite of the first kind in which one word was swapped, a number
changed, a verb negated, or a part dropped or added by rule.
"""

import random
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from tsteval.content import CONTENT_LABELS, split_contrasts
from tsteval.core.assets import packaged_path
from tsteval.core.files import file_sha256
from tsteval.cps import SentenceEncoder
from tsteval.style import StyleClassifier, train_on_sentences
from tsteval.tables.pairs import load_contrasts, load_pairs
from tsteval.words.english import parse

SETTINGS = {
    "epochs": 6,
    "batch_size": 8,
    "learning_rate": 1e-3,
    "rank": 8,
    "pooling": "mean",
    "modules": ("query", "value", "dense"),
    "dropout": 0.1,
}
CARD = """# content-minilm

Whether a rewrite kept the content of its source. A LoRA adapter with a classification head over all-MiniLM-L6-v2, which
reads source and rewrite as a pair; classes {labels}; made by `nbs/making/content_model.py`.

## Training data

{rows} pairs of texts, half of them with a fact changed: {own} of our contrasts (`load_contrasts`) and what a rule makes
of
them (a noun, name or verb swapped, a number changed, a verb negated, a part dropped or added), {edited} edits for
neutrality and formality of ours, and what the same rule makes of these. No rewrite by another hand.

## Limits

English only, single sentences, one school of writers, few training sources. What is changed by rule is easier to find
than
what people get wrong. It is one of five pieces of evidence of `style_aware_content`, not a judge of its own.

## Settings

{settings}; all others as in `tsteval.style.Training`.

## Results

On sources that it was not trained on: the share of sources where the rewrite that kept its facts scores higher, and the
probability that any such rewrite outscores any changed one.

| part of the contrasts | sources | kept wins | AUC |
| --- | --- | --- | --- |
{results}

Ratings of other rewriters' work: `tsteval/data/content_agreement.csv`, shown in chapter 13.

## Checksums

- adapter_model.safetensors: {weights}
"""
SWAPPED = ("NOUN", "PROPN", "VERB")
SPELLED = [
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "twenty",
    "thirty",
    "forty",
    "fifty",
]
AUXILIARIES = ("be", "will", "can", "have", "should", "would", "do", "must", "may")
NEAREST = 60
SIMILAR = 0.62  # words looked at for a swap; those more alike than this may be synonyms


class Corruptor:
    """Changes one fact of a text."""

    def __init__(self, texts: list[str], seed: int = 0):
        self.documents = parse(texts)
        self.random = random.Random(seed)
        self.texts = texts
        encoder = SentenceEncoder.load()
        self.tokenizer = encoder.tokenizer
        self.embeddings = encoder.model.get_input_embeddings().weight.detach().numpy()
        words: dict[str, dict[str, None]] = {}
        for document in self.documents.values():
            for token in filter(self.swappable, document):
                words.setdefault(token.tag_, {})[
                    token.text if token.pos_ == "PROPN" else token.text.lower()
                ] = None
        self.words = {
            tag: (list(found), np.stack([self.vector(word) for word in found]))
            for tag, found in words.items()
        }
        self.ways = {
            "swap": self.swap,
            "number": self.number,
            "negation": self.negation,
            "deletion": self.deletion,
            "insertion": self.insertion,
        }

    def swappable(self, token) -> bool:
        return (
            token.pos_ in SWAPPED
            and token.text.isalpha()
            and len(token.text) > 2
            and not token.is_stop
        )

    def vector(self, word: str) -> np.ndarray:
        vector = self.embeddings[self.tokenizer(word, add_special_tokens=False)["input_ids"]].mean(
            axis=0
        )
        return vector / np.linalg.norm(vector)

    def __call__(self, text: str) -> str | None:
        """The text with one fact changed in a way drawn at random; None where no way fits."""
        ways = ["swap"] * 3 + ["number", "negation", "deletion", "insertion"]
        self.random.shuffle(ways)
        return next(
            (changed for way in ways if (changed := self.ways[way](text, self.documents[text]))),
            None,
        )

    def swap(self, text: str, document) -> str | None:
        tokens = [token for token in document if self.swappable(token) and token.tag_ in self.words]
        if not tokens:
            return None
        token = self.random.choice(tokens)
        words, vectors = self.words[token.tag_]
        likeness = vectors @ self.vector(token.text.lower())
        near = [
            words[place]
            for place in np.argsort(-likeness)[:NEAREST]
            if likeness[place] < SIMILAR and words[place].lower()[:4] != token.text.lower()[:4]
        ]
        if not near:
            return None
        word = self.random.choice(near)
        return put(text, token, word.capitalize() if token.text[0].isupper() else word)

    def number(self, text: str, document) -> str | None:
        tokens = [token for token in document if token.pos_ == "NUM"]
        if not tokens:
            return None
        token = self.random.choice(tokens)
        if digits := re.sub(r"\D", "", token.text):
            return put(text, token, str(int(digits) + self.random.choice((1, 2, 5, 10, 100))))
        return put(
            text,
            token,
            self.random.choice([word for word in SPELLED if word != token.text.lower()]),
        )

    def negation(self, text: str, document) -> str | None:
        tokens = [
            token for token in document if token.pos_ == "AUX" and token.lemma_ in AUXILIARIES
        ]
        if not tokens:
            return None
        token = self.random.choice(tokens)
        return put(text, token, f"{token.text} not")

    def deletion(self, text: str, document) -> str | None:
        places = [
            token.idx
            for token in document
            if token.pos_ in ("ADP", "CCONJ") and 4 < token.i < len(document) - 2
        ]
        return (
            text[: self.random.choice(places)].rstrip(" ,") + text.rstrip()[-1:] if places else None
        )

    def insertion(self, text: str, document) -> str | None:
        other = self.random.choice(self.texts)
        words = self.documents[other]
        places = [
            token.idx for token in words if token.pos_ == "ADP" and 3 < token.i < len(words) - 2
        ]
        return text.rstrip(" .!") + " " + other[self.random.choice(places) :] if places else None


def put(text: str, token, word: str) -> str:
    return text[: token.idx] + word + text[token.idx + len(token.text) :]


def edited_pairs() -> list[tuple[str, str]]:
    """Pairs of two wordings of one content: every second edit for neutrality, and all for formality."""
    edits = load_pairs("npov_hard").query("split == 'train' and source != target").iloc[::2]
    formality = pd.read_json(packaged_path("formality_pairs.jsonl"), lines=True)
    return [*zip(edits.source, edits.target), *zip(formality.informal, formality.formal)]


def training_rows() -> pd.DataFrame:  # text, second, label, pair
    """Kept and changed rewrites; two that share a pair are one rewrite before and after a change."""
    contrasts = split_contrasts(load_contrasts())
    own = contrasts[contrasts.split == "train"]
    edited = edited_pairs()
    change = Corruptor(
        list(
            dict.fromkeys(
                [*own.source, *own.style_only, *(text for pair in edited for text in pair)]
            )
        )
    )
    twins = [(row.source, row.style_only, row.source, row.changed) for row in own.itertuples()]
    for row in own.itertuples():
        twins += [
            (row.source, row.style_only, row.source, change(row.style_only)) for _ in range(3)
        ]
        twins += [
            (row.source, row.style_only, change(row.source), row.style_only),
            (row.style_only, row.source, row.style_only, change(row.source)),
        ]
    twins += [(source, target, source, change(target)) for source, target in edited]
    rows = [
        (text, second, label, pair)
        for pair, (a, b, c, d) in enumerate(twins)
        for text, second, label in ((a, b, 1), (c, d, 0))
        if text and second
    ]
    return pd.DataFrame(rows, columns=["text", "second", "label", "pair"])


def write_card(folder: Path, rows: int) -> None:
    """Measure the classifier of a folder on the contrasts that it was not trained on, and write its card."""
    contrasts = split_contrasts(load_contrasts())
    classifier = StyleClassifier.load(folder)
    results = []
    for part in ("fit", "test"):
        held = contrasts[contrasts.split == part]
        right, wrong = (
            np.diff(classifier.predict_logits(held.source, held[kind]))[:, 0]
            for kind in ("style_only", "changed")
        )
        auc = (right[:, None] > wrong[None, :]).mean()
        results.append(f"| {part} | {len(held)} | {(right > wrong).mean():.3f} | {auc:.3f} |")
    (folder / "README.md").write_text(
        CARD.format(
            labels=", ".join(CONTENT_LABELS),
            rows=rows,
            own=2 * (contrasts.split == "train").sum(),
            edited=len(edited_pairs()),
            results="\n".join(results),
            settings=", ".join(f"{key} {value}" for key, value in SETTINGS.items()),
            weights=file_sha256(folder / "adapter_model.safetensors"),
        ),
        encoding="utf-8",
    )


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    rows = training_rows()
    contrasts = split_contrasts(load_contrasts())
    held = contrasts[contrasts.split == "fit"]
    validation = pd.DataFrame(
        {
            "text": [*held.source] * 2,
            "second": [*held.style_only, *held.changed],
            "label": [1] * len(held) + [0] * len(held),
            "pair": [*range(len(held))] * 2,
        }
    )
    print(f"{len(rows)} rows, {rows.label.mean():.2f} of them kept", flush=True)
    classifier = train_on_sentences(rows, CONTENT_LABELS, validation, progress=True, **SETTINGS)
    print(classifier.history.to_string(), flush=True)
    classifier.save(folder)
    write_card(folder, len(rows))
