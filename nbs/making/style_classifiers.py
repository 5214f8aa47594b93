"""The two style classifiers that the package ships: python nbs/making/style_classifiers.py subjectivity|sentiment FOLDER

Trains the classifier, writes it into FOLDER and measures what was written, so that card and weights cannot drift apart.
To replace the shipped one, FOLDER is tsteval/data/subjectivity-minilm or tsteval/data/sentiment-minilm. The first needs
the sample of the Wiki Neutrality Corpus (TSTEVAL_DATA), the second NLTK's sentence_polarity. Some minutes on two cores.

The settings in SHIPPED were chosen by what they gave on held-out fifths of the pairs of the WNC sample that are not for
testing, and on the validation pairs.
"""

import sys
from dataclasses import asdict
from pathlib import Path

import pandas as pd

from tsteval.core.cards import write_card
from tsteval.style import (SENTIMENTS, StyleClassifier, Training, calibrate, evaluate_classifier, labelled_sentences, load_pairs,
                           load_sentence_polarity, score_sentences, text_sha256, train_classifier, train_on_sentences)

SHIPPED = Training(pooling="mean", epochs=4, learning_rate=1e-3, hidden_dropout=0.2, mask_share=0.15)
SENTIMENT = Training(pooling="mean", epochs=2, batch_size=32, learning_rate=1e-3, rank=8)
SENTIMENT_SENTENCES = 3_000

SUBJECTIVITY_CARD = """# subjectivity-minilm

Labels a sentence as subjective or neutral in the sense of Wikipedia's neutral point of view. A LoRA adapter with a
classification head over all-MiniLM-L6-v2; made by `nbs/making/style_classifiers.py`.

## Training data

{n_pairs} pairs: the training splits of the package's own teaching pairs and of the 1,000-pair sample of the Wiki
Neutrality Corpus (Pryzant et al. 2020; text CC BY-SA, not included here). An edited pair is one subjective and one
neutral example; a control (equal sides) is one neutral example. Each class weighs the same.

## Limits

English only, encyclopedic prose, small training set. Absolute probabilities are less reliable than the order of two
versions of one sentence. It reacts to words and is easily misled by an opinion that is only reported.
"""

SENTIMENT_CARD = f"""# sentiment-minilm

Labels a sentence as negative or positive. A LoRA adapter with a classification head over all-MiniLM-L6-v2; made by
`nbs/making/style_classifiers.py`. It is the course's second style, small and quick to train.

## Training data

{SENTIMENT_SENTENCES:,} sentences of the training split of NLTK's sentence_polarity (Pang and Lee 2005; movie reviews,
not included here), drawn by a fixed seed; the temperature comes from the validation split.

## Limits

English only, lower-cased sentences of movie reviews. Neutral sentences have no class of their own.
"""


def training_text() -> list[str]:
    """What the subjectivity classifier learnt from the teaching pairs; its checksum stands in the card."""
    pairs = load_pairs().query("split == 'train'")
    return [*pairs.source, *pairs.target]


def make_subjectivity(folder: Path | str) -> None:
    corpora = {name: load_pairs(name) for name in ("npov_pairs", "wnc_sample")}
    splits = {split: pd.concat([pairs[pairs.split == split] for pairs in corpora.values()], ignore_index=True)
              for split in ("train", "validation")}
    trained = train_classifier(splits["train"], progress=True, **asdict(SHIPPED))
    calibrate(trained, labelled_sentences(splits["validation"])).save(folder)
    written = StyleClassifier.load(str(folder))
    rows = [{"pairs": name, "split": split, **evaluate_classifier(written, pairs[pairs.split == split])}
            for name, pairs in corpora.items() for split in ("validation", "test")]
    write_card(folder, SUBJECTIVITY_CARD.format(n_pairs=len(splits["train"])), SHIPPED, rows,
               {"training text of npov_pairs": text_sha256(training_text())})


def make_sentiment(folder: Path | str) -> None:
    sentences = load_sentence_polarity()
    splits = {split: sentences[sentences.split == split] for split in ("train", "validation", "test")}
    chosen = splits["train"].sample(SENTIMENT_SENTENCES, random_state=0)
    trained = train_on_sentences(chosen, SENTIMENTS, progress=True, **asdict(SENTIMENT))
    calibrate(trained, splits["validation"]).save(folder)
    written = StyleClassifier.load(str(folder))
    rows = []
    for split in ("validation", "test"):
        scored = score_sentences(written, splits[split])
        rows.append({"sentences": "sentence_polarity", "split": split, "n": len(scored),
                     "accuracy": float((scored.predicted == scored.label).mean())})
    write_card(folder, SENTIMENT_CARD, SENTIMENT, rows, {"training text": text_sha256(chosen.text.tolist())})


if __name__ == "__main__":
    {"subjectivity": make_subjectivity, "sentiment": make_sentiment}[sys.argv[1]](sys.argv[2])
