"""Train the formality regressor that the package ships, fit its curve, measure it, and write its card.

    python nbs/making/formality_model.py train      # the adapter; half an hour on one busy core
    python nbs/making/formality_model.py curve      # its curve in tsteval/data/property_curves.json
    python nbs/making/formality_model.py card       # measures everything and writes tsteval/data/formality-minilm/README.md

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


if __name__ == "__main__":
    {"train": train}[sys.argv[1]]()
