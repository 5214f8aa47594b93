"""Train the formality regressor that the package ships, fit its curve, measure it, and write its card.

    python nbs/making/formality_model.py train          # the adapter; half an hour on one busy core
    python nbs/making/property_curves.py formality      # its curve in tsteval/data/property_curves.json
    python nbs/making/formality_model.py card           # measures all of it and writes tsteval/data/formality-minilm/README.md

It needs the ratings of Pavlick and Tetreault (2016) in TSTEVAL_DATA/pt16_formality (train.csv and tune.csv: label, sentence).
Nothing at run time depends on this file.
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
SETTINGS = {"rank": 8, "modules": ["query", "value"], "learning_rate": 1.5e-3, "epochs": 6, "batch_size": 32, "dropout": 0.1,
            "weight_decay": 0.01, "as_found": 0.2, "seed": 0}


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
    rows = pd.concat([pd.read_csv(folder / f"{name}.csv") for name in ("train", "tune")], ignore_index=True)
    order, n = np.random.default_rng(0).permutation(len(rows)), len(rows)
    split = np.full(n, "train", dtype=object)
    split[order[:n // 5]], split[order[n // 5:n * 3 // 10]] = "test", "curve"
    return pd.DataFrame({"sentence": rows.sentence, "text": rows.sentence.map(joined), "rating": rows.label, "split": split})


def batches(texts: list[str], size: int, random) -> list[np.ndarray]:
    """Rows in batches of similar length, in random order."""
    order = np.argsort(np.array([len(text) for text in texts]) + random.normal(0, 20, len(texts)))
    found = [order[first:first + size] for first in range(0, len(order), size)]
    random.shuffle(found)
    return found


def train(folder: Path = FOLDER) -> None:
    """Train the adapter on the training split: cross-entropy with (rating + 3) / 6 as the wanted probability of formal."""
    import torch
    from peft import LoraConfig, TaskType, get_peft_model
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    from tsteval.core.assets import asset_path
    warnings.simplefilter("ignore")
    torch.manual_seed(SETTINGS["seed"])
    base = asset_path("all-MiniLM-L6-v2")
    tokenizer = AutoTokenizer.from_pretrained(base)
    model = AutoModelForSequenceClassification.from_pretrained(
        base, id2label=dict(enumerate(LABELS)), label2id={label: place for place, label in enumerate(LABELS)})
    model = get_peft_model(model, LoraConfig(
        task_type=TaskType.SEQ_CLS, r=SETTINGS["rank"], lora_alpha=2 * SETTINGS["rank"], lora_dropout=SETTINGS["dropout"],
        target_modules=SETTINGS["modules"]))
    model.peft_config["default"].base_model_name_or_path = "all-MiniLM-L6-v2"
    inner = model.base_model.model

    def log_odds(texts):
        encoded = tokenizer(texts, padding=True, truncation=True, max_length=128, return_tensors="pt")
        mask = encoded["attention_mask"][:, :, None].float()
        mean = (inner.bert(**encoded).last_hidden_state * mask).sum(1) / mask.sum(1)
        logits = inner.classifier(inner.dropout(mean))
        return logits[:, 1] - logits[:, 0]

    ratings = load_ratings().query("split == 'train'")
    texts, found, wanted = list(ratings.text), list(ratings.sentence), (ratings.rating.to_numpy() + 3) / 6
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=SETTINGS["learning_rate"], weight_decay=SETTINGS["weight_decay"])
    steps = SETTINGS["epochs"] * -(-len(texts) // SETTINGS["batch_size"])
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, SETTINGS["learning_rate"], total_steps=steps, pct_start=0.1)
    random = np.random.default_rng(SETTINGS["seed"])
    for epoch in range(SETTINGS["epochs"]):
        model.train()
        losses = []
        for rows in batches(texts, SETTINGS["batch_size"], random):
            chosen = [(found if random.random() < SETTINGS["as_found"] else texts)[row] for row in rows]
            loss = torch.nn.functional.binary_cross_entropy_with_logits(
                log_odds(chosen), torch.tensor(wanted[rows], dtype=torch.float))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
        model.eval()
        model.save_pretrained(folder, save_embedding_layers=False)
        print(f"epoch {epoch + 1}: loss {np.mean(losses):.4f}", flush=True)
    (folder / "style.json").write_text(
        json.dumps({"labels": LABELS, "pooling": "mean", "temperature": 1.0}) + "\n", encoding="utf-8")
    (folder / "README.md").unlink(missing_ok=True)  # peft's template



def ranked_pairs(values, ratings) -> np.ndarray:
    """Sums from which Spearman's correlation follows: the two columns of ranks, their squares and product, and a one."""
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


def ridge_predictions(known: np.ndarray, ratings: np.ndarray, new: np.ndarray, penalty: float = 100.0) -> np.ndarray:
    """Ridge regression on standardised features."""
    mean, scale = known.mean(0), known.std(0)
    known, new = (known - mean) / scale, (new - mean) / scale
    weights = np.linalg.solve(known.T @ known + penalty * np.eye(known.shape[1]), known.T @ (ratings - ratings.mean()))
    return new @ weights + ratings.mean()


def measure(ratings: pd.DataFrame) -> pd.DataFrame:
    """Ways of rating the held-out fifth, the trivial ones first: Spearman with interval."""
    from tsteval.core.english import parse
    from tsteval.cps import SentenceEncoder
    from tsteval.judged import begins_small, formality, formality_evidence, formality_features
    from tsteval.style import StyleClassifier
    test, known = ratings.query("split == 'test'"), ratings.query("split == 'train'")
    texts, documents = list(test.text), parse(test.text)
    counted = np.nan_to_num(np.array([formality_features(documents[text]) for text in texts]))
    encoder = SentenceEncoder.load()
    embedded = [encoder.encode(list(split.text)) for split in (known, test)]
    ways = {"longer text": [len(text) for text in texts], "begins with a capital": 1 - begins_small(texts), "F": counted[:, 0],
            "informal share, negated": -counted[:, 1],
            "ridge on frozen sentence vectors": ridge_predictions(embedded[0], known.rating.to_numpy(), embedded[1]),
            "adapter alone": formality_evidence(StyleClassifier.load("formality-minilm"), texts)[:, 0],
            "formality": formality(texts), "formality, sentences as the corpus spaces them": formality(list(test.sentence))}
    return pd.DataFrame({name: spearman(values, test.rating) for name, values in ways.items()}, index=["spearman", "low", "high"]).T


def measure_elsewhere() -> pd.DataFrame:
    """Rated outputs of formality transfer (Lai et al. 2022): this model beside the scores that the authors stored."""
    from tsteval.judged import formality
    path = Path(os.environ["TSTEVAL_DATA"]) / "lai2022" / "style.json"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    table = pd.DataFrame([scores for row in rows for scores in row["sys"].values()])
    people = (table.human_1 + table.human_2) / 2
    ways = {"longer text": table.out.str.len(), "begins with a capital": table.out.str[:1].str.isupper().astype(float),
            "formality": formality(list(table.out)), "stored: regressor on the same ratings (r-pt16)": table["r-pt16"],
            "stored: classifier on the same ratings (c-pt16)": table["c-pt16"],
            "stored: classifier on GYAFC (c-gyafc)": table["c-gyafc"], "stored: chat model": table["chatgpt"]}
    found = pd.DataFrame({name: spearman(values, people) for name, values in ways.items()}, index=["spearman", "low", "high"]).T
    found.loc["one rater against the other"] = spearman(table.human_1, table.human_2)
    return found


CARD = """# formality-minilm

How formal a sentence is. A LoRA adapter with a head of two classes (informal, formal) over all-MiniLM-L6-v2, trained so that
the probability of *formal* is the mean rating of people, brought from -3..3 to 0..1; made by `nbs/making/formality_model.py`.
`tsteval.judged.formality` adds a logistic curve over the adapter's log-odds and one sign that its tokenizer does not see:
whether the text begins with a small letter; one half is the median rating, -0.8. `StyleClassifier.load("formality-minilm")` is
the adapter alone, whose one half is the rating 0.

## Training data

Pavlick and Tetreault (2016): {n} sentences of news, blogs, emails and answers with the mean of people's ratings (CC BY 3.0; not
included here). By a fixed seed, {train} sentences trained the adapter, {curve} fitted the curve, and {test} were held out for the
results. The corpus' spaces before punctuation and in contractions are closed up in four of five training sentences. The files do
not say which genre a sentence is from, so there is no result by genre.

## Results

Spearman's correlation with the mean rating of the {test} held-out sentences, and its 95% bootstrap interval (2,000 resamples).

{results}

The same on {n_outputs} outputs of systems and people that made 55 sentences formal, rated by two people (Lai et al. 2022, MIT). The
rows *stored* are scores that the authors published with the data.

{elsewhere}

## Limits

English only. It rates words and phrases, not fitness for an occasion. Capital letters count at the beginning of a text only.

## Settings

{settings}

## Checksums

- adapter_model.safetensors: {weights}
- training text: {text}
"""


def table(frame: pd.DataFrame) -> str:
    lines = [f"| {name} | {row.spearman:.3f} | {row.low:.3f} | {row.high:.3f} |" for name, row in frame.iterrows()]
    return "\n".join(["| way | spearman | low | high |", "| --- | --- | --- | --- |", *lines])


def card() -> None:
    """Measure what is in the package and write its card."""
    import hashlib

    from tsteval.core.assets import file_sha256
    ratings, elsewhere = load_ratings(), measure_elsewhere()
    counts = ratings.split.value_counts()
    known = "\n".join(ratings.query("split == 'train'").text)
    (FOLDER / "README.md").write_text(CARD.format(
        n=f"{len(ratings):,}", **{split: f"{counts[split]:,}" for split in counts.index}, results=table(measure(ratings)),
        n_outputs=495, elsewhere=table(elsewhere), settings=", ".join(f"{name} {value}" for name, value in SETTINGS.items()),
        weights=file_sha256(FOLDER / "adapter_model.safetensors"), text=hashlib.sha256(known.encode()).hexdigest()), encoding="utf-8")


if __name__ == "__main__":
    {"train": train, "card": card}[sys.argv[1]]()
