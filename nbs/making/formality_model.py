"""Train the formality classifier that the package ships, fit its curve, measure it, and write its card.

    python nbs/making/formality_model.py train          # the adapter learns ratings; half an hour on one busy core
    python nbs/making/formality_model.py classes        # its head gives classes instead; seconds
    python nbs/making/property_curves.py formality      # its curve in tsteval/data/property_curves.json
    python nbs/making/style_classifiers.py confidence   # how sure it is of the sentences of its curve; seconds
    python nbs/making/formality_model.py card           # measures all of it and writes
    tsteval/data/formality-minilm/README.md

It needs the ratings of Pavlick and Tetreault (2016) in TSTEVAL_DATA/pt16_formality (train.csv and tune.csv: label,
sentence). Nothing at run time depends on this file.
"""

import json
import os
import re
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

DATA = Path(__file__).parents[2] / "tsteval" / "data"
FOLDER = DATA / "formality-minilm"
LABELS = ("informal", "formal")
SETTINGS = {
    "rank": 8,
    "modules": ["query", "value"],
    "learning_rate": 1.5e-3,
    "epochs": 6,
    "batch_size": 32,
    "dropout": 0.1,
    "weight_decay": 0.01,
    "as_found": 0.2,
    "seed": 0,
}


def joined(sentence: str) -> str:
    """Undo the spaces that the corpus' tokeniser put before punctuation and into contractions."""
    text = sentence.replace("``", '"').replace("''", '"')
    text = re.sub(r" (n't|'s|'re|'ve|'ll|'d|'m)\b", r"\1", text, flags=re.IGNORECASE)
    text = re.sub(r"(?<=\w) ' (s|re|ve|ll|d|m|t)\b", r"'\1", text, flags=re.IGNORECASE)
    text = re.sub(r" (?=[.,!?;:%)\]])", "", text)
    return re.sub(r"(?<=[(\[$#]) ", "", text)


def load_ratings() -> pd.DataFrame:  # sentence, text (joined), rating (-3..3), split
    """The rated sentences; a fifth for testing and a tenth for the curve, by a fixed seed."""
    folder = Path(os.environ["TSTEVAL_DATA"]) / "pt16_formality"
    rows = pd.concat(
        [pd.read_csv(folder / f"{name}.csv") for name in ("train", "tune")], ignore_index=True
    )
    order = np.random.default_rng(0).permutation(len(rows))
    n = len(rows)
    split = np.full(n, "train", dtype=object)
    split[order[: n // 5]], split[order[n // 5 : n * 3 // 10]] = "test", "curve"
    return pd.DataFrame(
        {
            "sentence": rows.sentence,
            "text": rows.sentence.map(joined),
            "rating": rows.label,
            "split": split,
        }
    )


def batches(texts: list[str], size: int, random) -> list[np.ndarray]:
    """Rows in batches of similar length, in random order."""
    order = np.argsort(np.array([len(text) for text in texts]) + random.normal(0, 20, len(texts)))
    found = [order[first : first + size] for first in range(0, len(order), size)]
    random.shuffle(found)
    return found


def train(folder: Path = FOLDER) -> None:
    """Train the adapter on the training split: cross-entropy with (rating + 3) / 6 as the wanted probability of
    formal."""
    import torch
    from peft import LoraConfig, TaskType, get_peft_model
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    from tsteval.core.fetch import asset_path

    warnings.simplefilter("ignore")
    torch.manual_seed(SETTINGS["seed"])
    base = asset_path("all-MiniLM-L6-v2")
    tokenizer = AutoTokenizer.from_pretrained(base)
    model = AutoModelForSequenceClassification.from_pretrained(
        base,
        id2label=dict(enumerate(LABELS)),
        label2id={label: place for place, label in enumerate(LABELS)},
    )
    model = get_peft_model(
        model,
        LoraConfig(
            task_type=TaskType.SEQ_CLS,
            r=SETTINGS["rank"],
            lora_alpha=2 * SETTINGS["rank"],
            lora_dropout=SETTINGS["dropout"],
            target_modules=SETTINGS["modules"],
        ),
    )
    model.peft_config["default"].base_model_name_or_path = "all-MiniLM-L6-v2"
    inner = model.base_model.model

    def log_odds(texts):
        encoded = tokenizer(
            texts, padding=True, truncation=True, max_length=128, return_tensors="pt"
        )
        mask = encoded["attention_mask"][:, :, None].float()
        mean = (inner.bert(**encoded).last_hidden_state * mask).sum(1) / mask.sum(1)
        logits = inner.classifier(inner.dropout(mean))
        return logits[:, 1] - logits[:, 0]

    ratings = load_ratings().query("split == 'train'")
    texts = list(ratings.text)
    found = list(ratings.sentence)
    wanted = (ratings.rating.to_numpy() + 3) / 6
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(
        trained, lr=SETTINGS["learning_rate"], weight_decay=SETTINGS["weight_decay"]
    )
    steps = SETTINGS["epochs"] * -(-len(texts) // SETTINGS["batch_size"])
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, SETTINGS["learning_rate"], total_steps=steps, pct_start=0.1
    )
    random = np.random.default_rng(SETTINGS["seed"])
    for epoch in range(SETTINGS["epochs"]):
        model.train()
        losses = []
        for rows in batches(texts, SETTINGS["batch_size"], random):
            chosen = [
                (found if random.random() < SETTINGS["as_found"] else texts)[row] for row in rows
            ]
            loss = torch.nn.functional.binary_cross_entropy_with_logits(
                log_odds(chosen), torch.tensor(wanted[rows], dtype=torch.float)
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
        model.eval()
        model.save_pretrained(folder, save_embedding_layers=False)
        print(f"epoch {epoch + 1}: loss {np.mean(losses):.4f}", flush=True)
    (folder / "style.json").write_text(
        json.dumps({"labels": LABELS, "pooling": "mean", "temperature": 1.0}) + "\n",
        encoding="utf-8",
    )
    (folder / "README.md").unlink(missing_ok=True)  # peft's template


HEAD = "base_model.model.classifier."


def classes(folder: Path = FOLDER) -> None:
    """Turn the head that gives ratings into one that gives two classes, by Platt's map from log-odds to who is above
    the median.

    The map, l -> stretch * l + shift, is fitted on the split for curves and goes into the head's weights, so that
    whatever reads the classifier sees it: the order of texts stays, one half becomes the median rating.
    """
    from safetensors.numpy import load_file, save_file

    from tsteval.style import StyleClassifier
    from tsteval.tone import formality_evidence
    from tsteval.training.logistic import fit_logistic

    style = json.loads((folder / "style.json").read_text(encoding="utf-8"))
    if style["temperature"] != 1.0:
        raise SystemExit(f"{folder} gives classes already")
    rated = load_ratings()
    chosen = rated.query("split == 'curve'")
    middle = rated.rating.median()
    log_odds = formality_evidence(StyleClassifier.load(str(folder)), list(chosen.text))[:, :1]
    shift, [stretch] = fit_logistic(
        log_odds, (np.sign(chosen.rating - middle) + 1) / 2
    )  # a tie counts as half
    file = folder / "adapter_model.safetensors"
    weights = load_file(file)
    weights[HEAD + "weight"] = (weights[HEAD + "weight"] * stretch).astype(np.float32)
    weights[HEAD + "bias"] = (
        weights[HEAD + "bias"] * stretch + np.array([-shift, shift]) / 2
    ).astype(np.float32)
    save_file(weights, file, metadata={"format": "pt"})
    (folder / "style.json").write_text(
        json.dumps({**style, "temperature": 1 / stretch}) + "\n", encoding="utf-8"
    )
    print(f"log-odds become {stretch:.4f} times what they were, plus {shift:.4f}")


def ranked_pairs(values, ratings) -> np.ndarray:
    """Sums from which Spearman's correlation follows: the two columns of ranks, their squares and product, and a
    one."""
    from scipy.stats import rankdata

    x, y = (rankdata(column) / len(column) - 0.5 for column in (values, ratings))
    return np.stack([x, y, x * x, y * y, x * y, np.ones(len(x))], axis=1)


def correlation(sums: np.ndarray) -> np.ndarray:
    """Pearson's correlation of the ranks, from sums of `ranked_pairs`."""
    x, y, xx, yy, xy, n = np.moveaxis(sums, -1, 0)
    return (xy - x * y / n) / np.sqrt((xx - x * x / n) * (yy - y * y / n))


def spearman(values, ratings) -> tuple[float, float, float]:
    """Spearman's correlation and its bootstrap interval; the ranks are those of the whole sample."""
    from tsteval.core.resample import bootstrap_interval

    found = bootstrap_interval(ranked_pairs(values, ratings), correlation, n_resamples=2000)
    return found.score, found.low, found.high


def ridge_predictions(
    known: np.ndarray, ratings: np.ndarray, new: np.ndarray, penalty: float = 100.0
) -> np.ndarray:
    """Ridge regression on standardised features."""
    mean = known.mean(0)
    scale = known.std(0)
    known = (known - mean) / scale
    new = (new - mean) / scale
    weights = np.linalg.solve(
        known.T @ known + penalty * np.eye(known.shape[1]), known.T @ (ratings - ratings.mean())
    )
    return new @ weights + ratings.mean()


def measure(ratings: pd.DataFrame) -> pd.DataFrame:
    """Ways of rating the held-out fifth, the trivial ones first: Spearman with interval."""
    from tsteval.cps import SentenceEncoder
    from tsteval.style import StyleClassifier
    from tsteval.tone import begins_small, formality, formality_evidence, formality_features
    from tsteval.words.english import parse

    test = ratings.query("split == 'test'")
    known = ratings.query("split == 'train'")
    texts = list(test.text)
    documents = parse(test.text)
    counted = np.nan_to_num(np.array([formality_features(documents[text]) for text in texts]))
    encoder = SentenceEncoder.load()
    embedded = [encoder.encode(list(split.text)) for split in (known, test)]
    ways = {
        "longer text": [len(text) for text in texts],
        "begins with a capital": 1 - begins_small(texts),
        "F": counted[:, 0],
        "informal share, negated": -counted[:, 1],
        "ridge on frozen sentence vectors": ridge_predictions(
            embedded[0], known.rating.to_numpy(), embedded[1]
        ),
        "adapter alone": formality_evidence(StyleClassifier.load("formality-minilm"), texts)[:, 0],
        "formality": formality(texts),
        "formality, sentences as the corpus spaces them": formality(list(test.sentence)),
    }
    return pd.DataFrame(
        {name: spearman(values, test.rating) for name, values in ways.items()},
        index=["spearman", "low", "high"],
    ).T


# of Lai's 55 sources; the file doesn't say so, but whoever reads it sees that the others are formal and made informal
MADE_FORMAL = 28


# one row an output: source, system ("ref": a person), out, human_1, human_2, to_formal, stored scores
def load_elsewhere() -> pd.DataFrame:
    """Rated outputs of formality transfer in both directions (Lai et al. 2022)."""
    path = Path(os.environ["TSTEVAL_DATA"]) / "lai2022" / "style.json"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return pd.DataFrame(
        [
            {"source": row["src"], "system": system, "to_formal": number < MADE_FORMAL, **scores}
            for number, row in enumerate(rows)
            for system, scores in row["sys"].items()
        ]
    )


def measure_elsewhere(to_formal: bool) -> pd.DataFrame:
    """Outputs of one direction: how well a score follows people's rating of how far the output is in the style that was
    asked for."""
    from tsteval.tone import formality

    table = load_elsewhere().query("to_formal == @to_formal")
    people = (table.human_1 + table.human_2) / 2
    sign = 1 if to_formal else -1
    ways = {
        "longer text": table.out.str.len(),
        "begins with a capital": table.out.str[:1].str.isupper().astype(float),
        "formality": formality(list(table.out)),
    }
    stored = {
        "stored: regressor on the same ratings (r-pt16)": table["r-pt16"],
        "stored: classifier on the same ratings (c-pt16)": table["c-pt16"],
        "stored: classifier on GYAFC (c-gyafc)": table["c-gyafc"],
        "stored: chat model": table["chatgpt"],
    }
    # it rates how formal a text is; the others know the style that was asked for
    stored["stored: regressor on the same ratings (r-pt16)"] *= sign
    found = pd.DataFrame(
        {
            name: spearman(values, people)
            for name, values in {
                **{name: sign * values for name, values in ways.items()},
                **stored,
            }.items()
        },
        index=["spearman", "low", "high"],
    ).T
    found.loc["one rater against the other"] = spearman(table.human_1, table.human_2)
    return found


def as_classifier(ratings: pd.DataFrame) -> list[dict]:
    """The adapter as a style classifier: how often it is right, with 95% bootstrap intervals, beside what is
    trivial."""
    from tsteval.core.resample import bootstrap_interval, mean_statistics
    from tsteval.style import StyleClassifier

    classifier = StyleClassifier.load("formality-minilm")
    rows = []

    def formal(texts):
        return classifier.predict_proba(list(texts))[:, 1]

    def add(data, measure, right):
        found = bootstrap_interval(mean_statistics(right), n_resamples=2000)
        rows.append(
            {
                "data": data,
                "measure": measure,
                "n": len(right),
                "value": found.score,
                "low": found.low,
                "high": found.high,
            }
        )

    test = ratings.query("split == 'test' and rating != @ratings.rating.median()")
    above = (test.rating > ratings.rating.median()).to_numpy()
    add(
        "held-out ratings",
        "accuracy: above the median or below",
        (formal(test.text) > 0.5) == above,
    )
    add("held-out ratings", "majority", above == (above.mean() > 0.5))
    people = load_elsewhere().query("system == 'ref' and source != out")
    sign = np.where(people.to_formal, 1, -1)
    sides = {"source": formal(people.source), "out": formal(people.out)}
    add(
        "human rewrites",
        "pairwise: the formal side has the higher probability",
        0.5 + 0.5 * np.sign((sides["out"] - sides["source"]) * sign),
    )
    add(
        "human rewrites",
        "pairwise, the longer side",
        0.5 + 0.5 * np.sign((people.out.str.len() - people.source.str.len()) * sign),
    )
    add(
        "human rewrites",
        "accuracy of both sides, by pair",
        (
            ((sides["out"] > 0.5) == people.to_formal).astype(float)
            + ((sides["source"] > 0.5) != people.to_formal)
        )
        / 2,
    )
    own = pd.read_json(DATA / "formality_pairs.jsonl", lines=True)
    add("own pairs", "pairwise", 0.5 + 0.5 * np.sign(formal(own.formal) - formal(own.informal)))
    return rows


CARD = """# formality-minilm

Labels a sentence as informal or formal. A LoRA adapter with a head of two classes over all-MiniLM-L6-v2; made by
`nbs/making/formality_model.py`. The adapter was trained so that the probability of *formal* was the mean rating of
people, brought
from -3..3 to 0..1. Its head was then stretched and shifted (a logistic curve, fitted to sentences that it was not
trained on), so that
the probability is that of being rated above the median sentence, -0.8. `tsteval.tone.formality` adds one sign that
the adapter's
tokenizer does not see: whether the text begins with a small letter.

## Use

```python
from tsteval.style import StyleClassifier
StyleClassifier.load("formality-minilm").predict_proba(["gimme the keys"])  # informal, formal
```

or `tsteval evaluate FILE --style-model formality-minilm --target-style formal`.

## Training data

Pavlick and Tetreault (2016): {n} sentences of news, blogs, emails and answers with the mean of people's ratings (CC BY
3.0; not
included here). By a fixed seed, {train} sentences trained the adapter, {curve} fitted the curve, and {test} were held
out for the
results. The corpus' spaces before punctuation and in contractions are closed up in four of five training sentences. The
files do
not say which genre a sentence is from, so there is no result by genre.

## As a style classifier

Intervals of 95% from 2,000 resamples, of sentences or of pairs. *Human rewrites*: sources and one person's rewrite of
each, {to_formal} sources
made formal and the others made informal (Lai et al. 2022, MIT); pairs of equal sides are left out. The model has seen
none of it.

{classes}

## Results

Spearman's correlation with the mean rating of the {test} held-out sentences, and its 95% bootstrap interval (2,000
resamples).

{results}

The same on outputs of systems and people that were to change the formality of 55 sentences, each rated by two people
for how far it is
in the style asked for (Lai et al. 2022, MIT). The rows *stored* are scores that the authors published with the data.
First the {n_formal} outputs
that were to be formal.

{made_formal}

Then the {n_informal} outputs that were to be informal; what rates formality is negated.

{made_informal}

## Limits

English only. It rates words and phrases, not fitness for an occasion. Capital letters count at the beginning of a text
only, and only
for the property `formality`, not for the classifier.

## Settings

{settings}

{confidence}

## Checksums

- adapter_model.safetensors: {weights}
- training text: {text}
"""


def table(frame: pd.DataFrame) -> str:
    lines = [
        f"| {name} | {row.spearman:.3f} | {row.low:.3f} | {row.high:.3f} |"
        for name, row in frame.iterrows()
    ]
    return "\n".join(["| way | spearman | low | high |", "| --- | --- | --- | --- |", *lines])


def card() -> None:
    """Measure what is in the package and write its card."""
    import hashlib

    from tsteval.core.files import file_sha256
    from tsteval.models.classifier import confidence_line
    from tsteval.training.cards import markdown_table

    ratings = load_ratings()
    elsewhere = load_elsewhere()
    counts = ratings.split.value_counts()
    known = "\n".join(ratings.query("split == 'train'").text)
    (FOLDER / "README.md").write_text(
        CARD.format(
            n=f"{len(ratings):,}",
            **{split: f"{counts[split]:,}" for split in counts.index},
            results=table(measure(ratings)),
            classes=markdown_table(as_classifier(ratings)),
            to_formal=MADE_FORMAL,
            n_formal=int(elsewhere.to_formal.sum()),
            n_informal=int((~elsewhere.to_formal).sum()),
            made_formal=table(measure_elsewhere(True)),
            made_informal=table(measure_elsewhere(False)),
            settings=", ".join(f"{name} {value}" for name, value in SETTINGS.items()),
            confidence=confidence_line(
                json.loads((FOLDER / "style.json").read_text(encoding="utf-8"))["validation"]
            ),
            weights=file_sha256(FOLDER / "adapter_model.safetensors"),
            text=hashlib.sha256(known.encode()).hexdigest(),
        ),
        encoding="utf-8",
    )


if __name__ == "__main__":
    {"train": train, "classes": classes, "card": card}[sys.argv[1]]()
