"""What chapter 7's classifiers say of real edits: python nbs/making/style_edits.py writes tsteval/data/style_edits.csv and
tsteval/data/style_words.csv. Four minutes on two cores.

`style_edits.csv` has a row an edit of `wnc_test` that is not in `wnc_sample`, and for each judge two figures: how
subjective it finds the source and the editor's version (the log-odds of subjective; for the two rulers the count less
the median of the training sentences). The four lines, the bag and the fine-tuned encoder are those of the chapter,
trained on its 478 teaching pairs; `shipped` is the package's classifier before its temperature, which saw four fifths
of `wnc_sample`.

`style_words.csv` counts what editors took out, in the edits of one place in `wnc_sample` and `wnc_test` (real) and in
the teaching pairs (written): a row a part of speech (word empty), or one of its words; `removed` of `all` that the
sources hold. Words that were removed fewer than twice are left out.
"""

import numpy as np
import pandas as pd
import torch
from scipy.optimize import minimize
from scipy.special import expit, logit
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from tsteval.core.assets import packaged_path
from tsteval.models.classifier import base_model
from tsteval.style import (
    LABELS,
    StyleClassifier,
    labelled_sentences,
    load_pairs,
    source_words,
    twins,
)
from tsteval.tables.ratings import load_ratings
from tsteval.training.calibration import temper
from tsteval.words.english import load_english


def real_edits() -> pd.DataFrame:
    """The edits of `wnc_test`, one row each: source, target, part, in_wnc_sample."""
    copies = load_ratings("wnc_test").query("system == 'copy'")
    return copies.assign(target=copies.reference).reset_index(drop=True)


def fit_line(x, y, source, target, ranking=1.0):
    """The chapter's `fit` and, with `ranking`, its `fit_ranked`: cross-entropy, the ranking loss on differences, and the penalty."""
    apart = x[source] - x[target]

    def loss(weights):
        w, b = weights[:-1], weights[-1]
        z, d = x @ w + b, apart @ w
        value = np.logaddexp(0, np.where(y == 1, -z, z)).mean()
        value += ranking * np.logaddexp(0, -d).mean() + w @ w / 2
        pull = (expit(z) - y) / len(y)
        slope = pull @ x - ranking * expit(-d) @ apart / len(d) + w
        return value, np.append(slope, pull.sum())

    best = minimize(loss, np.zeros(x.shape[1] + 1), jac=True, method="L-BFGS-B", tol=1e-10)
    return best.x[:-1], best.x[-1]


def modifiers(texts):
    documents = load_english().pipe(texts, disable=["ner", "parser", "lemmatizer"])
    return np.array(
        [sum(token.pos_ in ("ADJ", "ADV") for token in document) for document in documents]
    )


def fine_tune(train):
    """The chapter's run over all weights: one pass in batches of eight pairs."""
    torch.manual_seed(0)
    tuned = StyleClassifier(*base_model("all-MiniLM-L6-v2", LABELS, pooling="mean"), "fine-tuned")
    for parameter in tuned.model.parameters():
        parameter.requires_grad_(True)
    for parameter in tuned.model.classifier.parameters():
        torch.nn.init.zeros_(parameter)
    optimizer = torch.optim.AdamW(tuned.model.parameters(), lr=1e-4)
    shuffled = train.sample(frac=1, random_state=0)
    tuned.model.train()
    for start in range(0, len(shuffled), 8):
        batch = shuffled[start : start + 8]
        tokens = tuned.tokenizer([*batch.source, *batch.target], padding=True, return_tensors="pt")
        labels = torch.tensor([0] * len(batch) + [1] * len(batch))
        loss = torch.nn.functional.cross_entropy(tuned.model(**tokens).logits, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    tuned.model.eval()
    return tuned


def judges(train):
    """Name -> a function from texts to how subjective they are."""
    known = labelled_sentences(train)
    y = 1 - known.label.to_numpy()
    encoder = StyleClassifier(*base_model("all-MiniLM-L6-v2", LABELS, pooling="layers"), "MiniLM")
    read = {}

    def vectors(texts):
        texts = list(texts)
        new = list(dict.fromkeys(text for text in texts if text not in read))
        if new:
            rows = encoder.map_rows(
                {"texts": new}, lambda batch: encoder.model.base_model(**batch).pooler_output
            )
            read.update(zip(new, np.array(rows)))
        return np.array([read[text] for text in texts])

    raw = vectors(known.text)
    middle, spread = raw.mean(axis=0), raw.std(axis=0).clip(1e-6)  # one never changes
    source, target = twins(known)

    def line(first, ranking):
        cut = slice(first, None)
        x = (raw[:, cut] - middle[cut]) / spread[cut]
        w, b = fit_line(x, y, source, target, ranking)
        return lambda texts: (vectors(texts)[:, cut] - middle[cut]) / spread[cut] @ w + b

    bag = make_pipeline(CountVectorizer(binary=True), LogisticRegression(max_iter=1000))
    bag.fit(known.text, known.label)
    length = np.median([len(text) for text in known.text])
    count = np.median(modifiers(known.text))
    tuned = fine_tune(train)
    shipped = StyleClassifier.load()

    def untempered(texts):
        return logit(temper(shipped.predict_proba(texts), 1 / shipped.temperature)[:, 0])

    return {
        "longer": lambda texts: np.array([len(text) for text in texts]) - length,
        "modifiers": lambda texts: modifiers(texts) - count,
        "bag": lambda texts: -bag.decision_function(texts),
        "last": line(-384, 0.0),
        "last_ranked": line(-384, 1.0),
        "all": line(0, 0.0),
        "all_ranked": line(0, 1.0),
        "fine_tuned": lambda texts: logit(tuned.predict_proba(texts)[:, 0]),
        "shipped": untempered,
    }


def edits() -> pd.DataFrame:
    written = load_pairs()
    written = written[written.source != written.target]
    train, test = (
        written[written.split == split].reset_index(drop=True) for split in ("train", "test")
    )
    real = real_edits().query("in_wnc_sample == 0").reset_index(drop=True)
    table = pd.DataFrame({"edit": real.source_id, "part": real.part})
    for name, score in judges(train).items():
        values = {side: np.asarray(score(real[side])) for side in ("source", "target")}
        for side, found in values.items():
            table[f"{name}_{side}"] = found
        own = np.asarray(score(test.source)), np.asarray(score(test.target))
        for where, (s, t) in {"real": values.values(), "written": own}.items():
            order = (0.5 + 0.5 * np.sign(s - t)).mean()
            print(name, where, f"{order:.3f} {((s > 0).mean() + (t <= 0).mean()) / 2:.3f}")
    return table


def words() -> pd.DataFrame:
    written = load_pairs()
    fresh = real_edits().query("in_wnc_sample == 0")
    sets = {
        "real": pd.concat([load_pairs("wnc_sample"), fresh], ignore_index=True),
        "written": written[written.source != written.target],
    }
    tables = []
    for name, pairs in sets.items():
        found = source_words(pairs[["source", "target"]].reset_index(drop=True))
        found = found[found.edits == 1]
        for columns, least in ((["part_of_speech"], 0), (["part_of_speech", "word"], 2)):
            counts = found.groupby(columns).removed.agg(removed="sum", all="size").reset_index()
            counts = counts[counts.removed >= least].sort_values("removed", ascending=False)
            tables.append(counts.assign(set=name, edits=found.pair.nunique()))
    table = pd.concat(tables, ignore_index=True).fillna({"word": ""})
    return table[["set", "edits", "part_of_speech", "word", "removed", "all"]]


if __name__ == "__main__":
    for name, make in {"style_words": words, "style_edits": edits}.items():
        table = make().round(4)
        table.to_csv(packaged_path(f"{name}.csv"), index=False, lineterminator="\n")
