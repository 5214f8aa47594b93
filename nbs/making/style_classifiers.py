"""The style classifiers that the package ships: python nbs/making/style_classifiers.py subjectivity|sentiment FOLDER

Fits the head, writes it into FOLDER and measures what was written, so that card and weights cannot drift apart. To
replace the shipped one, FOLDER is tsteval/data/subjectivity-minilm or tsteval/data/sentiment-minilm. The first needs
the sample of the Wiki Neutrality Corpus (TSTEVAL_DATA), the second NLTK's sentence_polarity. A minute for the
first on two cores, some minutes for the second, which is fine-tuned. With all-mpnet-base-v2 behind the folder the first
makes subjectivity-mpnet, the judge of the larger tier, in ten minutes.

    python nbs/making/style_classifiers.py confidence    measures how sure the shipped ones are of their validation
    texts

and writes it into their settings and cards, without training them again. The classifiers that the first two commands
make have it already. The model of formality counts as validation the sentences that its curve was fitted on.

The settings in SHIPPED are those of `style_evidence.py search` with the highest share of pairs in order among those
that leave at least four in five of the validation controls neutral.
"""

import json
import math
import re
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pandas as pd

from tsteval.core.resample import bootstrap_interval, mean_statistics
from tsteval.models.classifier import STYLE_FILE, confidence_line
from tsteval.style import (
    LABELS,
    SENTIMENTS,
    StyleClassifier,
    Training,
    calibrate,
    evaluate_classifier,
    in_order,
    labelled_sentences,
    load_pairs,
    load_sentence_polarity,
    score_sentences,
    text_sha256,
    train_on_sentences,
)
from tsteval.training.calibration import confidence_of
from tsteval.training.cards import write_card

SHIPPED = Training(method="head", pooling="layers", ranking_weight=1.0, penalty=2.0)
CONTROL_WEIGHT = 5.0
# a head alone labels .776 rightly, this .795
SENTIMENT = Training(pooling="mean", epochs=2, batch_size=32, learning_rate=1e-3, rank=8)
SENTIMENT_SENTENCES = 3_000
OWN = ("npov_pairs", "npov_hard")
WNC = "wnc_sample"

SUBJECTIVITY_CARD = """# {name}

Labels a sentence as subjective or neutral in the sense of Wikipedia's neutral point of view. A linear head over all
layers
of {base}, which is left as it is; made by `nbs/making/style_classifiers.py`.

## Training data

{n_pairs} pairs and {n_controls} controls: the training splits of the package's own two sets of pairs and of the
1,000-pair
sample of the Wiki Neutrality Corpus (Pryzant et al. 2020; MIT, its text CC BY-SA; not included here). An edited pair is
one
subjective and one neutral example; a control (equal sides) is one neutral example and counts {control_weight:g} times.
Each
class weighs the same. The temperature comes from the validation splits.

## Limits

English only, encyclopedic prose, small training set. The order of two versions of one sentence can be relied on more
than
the label of one sentence. It reacts to words; an opinion that is only reported still misleads it at times.
Its attributions are spread over more words than those of a fine-tuned encoder, see chapter 9 of the course.
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


def split_of(name: str, pairs: pd.DataFrame) -> pd.DataFrame:
    return pairs[pairs.split == name]


def training_text() -> list[str]:
    """What the subjectivity classifier learnt from the package's own pairs; its checksum stands in the card."""
    pairs = pd.concat([split_of("train", load_pairs(name)) for name in OWN])
    return [*pairs.source, *pairs.target]


def make_subjectivity(folder: Path | str, base: str = SHIPPED.base) -> None:
    corpora = {name: load_pairs(name) for name in (*OWN, WNC)}
    splits = {
        split: pd.concat([split_of(split, pairs) for pairs in corpora.values()], ignore_index=True)
        for split in ("train", "validation")
    }
    import torch

    # the larger encoder reads in bfloat16 here, in a third of the time; the head is measured over 32-bit numbers
    with torch.autocast("cpu", torch.bfloat16, enabled=base != SHIPPED.base):
        trained = train_on_sentences(
            labelled_sentences(splits["train"], CONTROL_WEIGHT),
            LABELS,
            progress=True,
            **asdict(replace(SHIPPED, base=base)),
        )
    calibrate(trained, labelled_sentences(splits["validation"])).save(folder)
    written = StyleClassifier.load(str(folder))
    rows = [
        {
            "pairs": name,
            "split": split,
            **evaluate_classifier(written, split_of(split, pairs)),
            **interval(written, split_of(split, pairs)),
        }
        for name, pairs in corpora.items()
        for split in ("validation", "test")
    ]
    n_controls = int((splits["train"].source == splits["train"].target).sum())
    card = SUBJECTIVITY_CARD.format(
        name=Path(folder).name,
        base=base,
        n_pairs=len(splits["train"]) - n_controls,
        n_controls=n_controls,
        control_weight=CONTROL_WEIGHT,
    )
    write_card(
        folder,
        card,
        replace(SHIPPED, base=base),
        rows,
        {"training text of the package's own pairs": text_sha256(training_text())},
    )


def interval(classifier: StyleClassifier, pairs: pd.DataFrame) -> dict[str, float]:
    """The 95% interval of the pairwise accuracy; nan where there are no edited pairs."""
    ordered = in_order(score_sentences(classifier, labelled_sentences(pairs)))
    found = bootstrap_interval(mean_statistics(ordered)) if len(ordered) else None
    return {
        "pairwise_low": found.low if found else math.nan,
        "pairwise_high": found.high if found else math.nan,
    }


def make_sentiment(folder: Path | str) -> None:
    sentences = load_sentence_polarity()
    splits = {split: split_of(split, sentences) for split in ("train", "validation", "test")}
    chosen = splits["train"].sample(SENTIMENT_SENTENCES, random_state=0)
    trained = train_on_sentences(chosen, SENTIMENTS, progress=True, **asdict(SENTIMENT))
    calibrate(trained, splits["validation"]).save(folder)
    written = StyleClassifier.load(str(folder))
    rows = []
    for split in ("validation", "test"):
        scored = score_sentences(written, splits[split])
        rows.append(
            {
                "sentences": "sentence_polarity",
                "split": split,
                "n": len(scored),
                "accuracy": float((scored.predicted == scored.label).mean()),
            }
        )
    write_card(
        folder,
        SENTIMENT_CARD,
        SENTIMENT,
        rows,
        {"training text": text_sha256(chosen.text.tolist())},
    )


def keep_confidence(folder: Path, texts: list[str]) -> None:
    """Write into a classifier's settings and card how sure it is of texts that it was not trained on."""
    found = confidence_of(StyleClassifier.load(folder.name).predict_proba(texts))
    style = {**json.loads((folder / STYLE_FILE).read_text(encoding="utf-8")), "validation": found}
    (folder / STYLE_FILE).write_text(json.dumps(style) + "\n", encoding="utf-8")
    before, after = re.sub(
        r"Mean confidence on the .*\n\n", "", (folder / "README.md").read_text(encoding="utf-8")
    ).split("## Checksums")
    (folder / "README.md").write_text(
        f"{before}{confidence_line(found)}\n\n## Checksums{after}", encoding="utf-8"
    )
    print(folder.name, found)


def measure_confidence() -> None:
    import formality_model

    sentences = labelled_sentences(
        pd.concat(
            [split_of("validation", load_pairs(name)) for name in (*OWN, WNC)], ignore_index=True
        )
    )
    data = Path(__file__).parents[2] / "tsteval" / "data"
    for name, texts in (
        ("subjectivity-minilm", sentences.text),
        ("sentiment-minilm", split_of("validation", load_sentence_polarity()).text),
        ("formality-minilm", formality_model.load_ratings().query("split == 'curve'").text),
    ):
        keep_confidence(data / name, list(texts))


if __name__ == "__main__":
    makers = {
        "subjectivity": make_subjectivity,
        "sentiment": make_sentiment,
        "confidence": measure_confidence,
    }
    makers[sys.argv[1]](*sys.argv[2:])
