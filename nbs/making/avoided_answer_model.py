"""Train the classifier of avoided answers that the package ships, and write it with a card of measured figures.

python nbs/making/avoided_answer_model.py FOLDER    # some minutes on two cores; the package's is
tsteval/data/avoided-answer-minilm
"""

import hashlib
import sys
from pathlib import Path

import pandas as pd

from tsteval.answers import (
    ANSWER_LABELS,
    avoided_answer,
    evaluate_avoidance,
    keyword_avoidance,
    load_answers,
)
from tsteval.core.files import file_sha256
from tsteval.style import train_on_sentences

SETTINGS = {"epochs": 12, "batch_size": 16, "learning_rate": 2e-3, "rank": 8}

CARD = """# avoided-answer-minilm

Probability that an answer dodges its question. A LoRA adapter with a classification head over all-MiniLM-L6-v2, which
reads question and answer as a pair; made by `nbs/making/avoided_answer_model.py`.

## Training data

{train} answers in {domains} domains, written for this package, half of them avoided. The results are for {test} answers
in domains that were not trained on: {held_out}. AUC is the probability that an avoided answer scores higher than one
that answers.

## Limits

English only, small training set, one school of writers. It judges how an answer is worded more than whether it fits the
question, and does not know whether an answer is true.

## Settings

{settings}; all others as in `tsteval.style.Training`.

## Results

| way | accuracy | auc | n_answers |
| --- | --- | --- | --- |
{results}

## Checksums

- adapter_model.safetensors: {weights}
- training answers: {answers}
"""


def answers_sha256(answers: pd.DataFrame) -> str:
    """One checksum for the text and labels of answers, in order; the card names it so that a change is noticed."""
    rows = zip(answers.question, answers.answer, answers.label)
    return hashlib.sha256("\n".join("\t".join(row) for row in rows).encode()).hexdigest()


def train(answers: pd.DataFrame, **settings):
    """A classifier of pairs: question and answer, and whether the answer is avoided."""
    pairs = pd.DataFrame(
        {
            "text": answers.question,
            "second": answers.answer,
            "label": answers.label.map(ANSWER_LABELS.index),
        }
    )
    return train_on_sentences(pairs, ANSWER_LABELS, **{**SETTINGS, **settings})


def write_card(folder: Path) -> None:
    """Measure the classifier of a folder and write its card."""
    answers = load_answers()
    known, test = (answers[answers.split == split] for split in ("train", "test"))
    questions = list(test.question)
    said = list(test.answer)
    name = str(folder)
    probabilities = {
        "adapter": avoided_answer(questions, said, model=name),
        "adapter, question left out": avoided_answer([""] * len(said), said, model=name),
        "key words": keyword_avoidance(said),
    }
    rows = {way: evaluate_avoidance(values, test) for way, values in probabilities.items()}
    results = "\n".join(
        f"| {way} | {row['accuracy']:.3f} | {row['auc']:.3f} | {row['n_answers']} |"
        for way, row in rows.items()
    )
    (folder / "README.md").write_text(
        CARD.format(
            train=len(known),
            domains=known.domain.nunique(),
            test=len(test),
            held_out=", ".join(test.domain.unique()),
            settings=", ".join(f"{key} {value}" for key, value in SETTINGS.items()),
            results=results,
            weights=file_sha256(folder / "adapter_model.safetensors"),
            answers=answers_sha256(known),
        ),
        encoding="utf-8",
    )


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    answers = load_answers()
    train(answers[answers.split == "train"], progress=True).save(folder)
    write_card(folder)
