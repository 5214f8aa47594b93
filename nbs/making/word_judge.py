"""The judge that was taught which words editors change, subjectivity-words, and the table word_judges.csv.

    python nbs/making/word_judge.py train SEED     # an hour of one core's time, less where it has bfloat16; run it for
    python nbs/making/word_judge.py train SEED     # two seeds
"""

import sys
from dataclasses import asdict
from pathlib import Path

import pandas as pd
import torch
from style_classifiers import CONTROL_WEIGHT, OWN, WNC, split_of

from tsteval.style import LABELS, Training, labelled_sentences, load_pairs, train_on_sentences

WORK = Path("/tmp/word_judge")
WORDS = Training(method="words", pooling="words", epochs=3, rank=8, ranking_weight=2.0,
                 modules=("query", "key", "value", "intermediate.dense"))


def pairs_of(split: str) -> dict[str, pd.DataFrame]:
    return {name: split_of(split, load_pairs(name)) for name in (*OWN, WNC)}


def train(seed: str) -> None:
    """One run, on the rows that the shipped head was fitted to; in bfloat16 where weights are multiplied."""
    sentences = labelled_sentences(pd.concat(pairs_of("train").values(), ignore_index=True), CONTROL_WEIGHT)
    with torch.autocast("cpu", torch.bfloat16):
        made = train_on_sentences(sentences, LABELS, progress=True, **{**asdict(WORDS), "seed": int(seed)})
    made.save(WORK / f"seed{seed}")
    print(made.history)


if __name__ == "__main__":
    what, *rest = sys.argv[1:]
    {"train": train}[what](*rest)
