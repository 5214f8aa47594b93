"""The tagger of chapter 14 with pairs and without: python nbs/making/tagger_control.py writes tsteval/data/tagger_control.csv

The same word vectors, the same network and the same sentences, learnt in two ways. *words*: each word of a source is
labelled by whether the person touched it, which takes a pair. *sentences*: each source is labelled subjective and each
target neutral, and the network never sees which two belong together; a sentence's logit is the mean of its words'. Both
keep the weights of the pass with the lowest validation loss, and are trained from SEEDS. They are trained on the
author's pairs (own) and on the training rows of the WNC sample (wnc), and tested on the 72 test pairs (npov_pairs) and
on the edits of `wnc_test` of rewriters_people.py. Needs TSTEVAL_DATA; of its sentences none is written.

A row a source: set, trained, labels, row, words, edited, hit (the share of the seeds for which the word with the highest
logit is one that the person touched), and with a free number of words, changed and both: how many words the network
touches, and how many of these the person touched, in the mean over the seeds. It touches those above a cut, the one that
touches as many words of the validation sources as their persons did; so both ways need these pairs to choose it.
"""

import numpy as np
import pandas as pd
import torch
from rewriters_people import wnc_edits

from tsteval.attribution import WORD, edited_words
from tsteval.core.assets import packaged_path
from tsteval.models.encoder import Phrase, WordReader
from tsteval.style import load_pairs

SEEDS = (0, 1, 2)
torch.set_num_threads(1)
reader = WordReader.load()
entropy = torch.nn.functional.binary_cross_entropy_with_logits


def vectors(texts) -> list[torch.Tensor]:
    """Of each text the vectors of its words."""
    phrases = [
        [Phrase(*match.span(), match[0].lower()) for match in WORD.finditer(text)] for text in texts
    ]
    return [
        torch.tensor(found, dtype=torch.float32)
        for found in reader.phrase_vectors(list(texts), phrases)
    ]


def labels_of(pairs) -> list[torch.Tensor]:
    return [torch.tensor(edited_words(*pair)).float() for pair in zip(pairs.source, pairs.target)]


def train(losses, rows: int, batch: int, seed: int):
    """A network; losses(network, rows or None) is the loss on training rows or on validation."""
    torch.manual_seed(seed)
    network = torch.nn.Sequential(torch.nn.Linear(384, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
    optimizer = torch.optim.AdamW(network.parameters(), lr=3e-3, weight_decay=0.05)
    best = (np.inf, None)
    for _epoch in range(30):
        for chosen in torch.randperm(rows).split(batch):
            optimizer.zero_grad()
            losses(network, chosen).backward()
            optimizer.step()
        with torch.no_grad():
            loss = losses(network, None).item()
        if loss < best[0]:
            best = (loss, {name: value.clone() for name, value in network.state_dict().items()})
    network.load_state_dict(best[1])
    return network, best[0]


def by_words(train_part, checked):
    x, y = (torch.cat(values) for values in (train_part["source"], train_part["labels"]))
    seen, known = (torch.cat(values) for values in (checked["source"], checked["labels"]))

    def losses(network, rows):
        words, touched = (seen, known) if rows is None else (x[rows], y[rows])
        return entropy(network(words)[:, 0], touched)

    return losses, len(x), 256


def by_sentences(train_part, checked):
    def both(part):
        texts = part["source"] + part["target"]
        return texts, torch.tensor([1.0] * len(part["source"]) + [0.0] * len(part["target"]))

    (x, y), (seen, known) = both(train_part), both(checked)

    def losses(network, rows):
        texts, style = (seen, known) if rows is None else ([x[row] for row in rows], y[rows])
        sizes = torch.tensor([len(text) for text in texts])
        of = torch.arange(len(texts)).repeat_interleave(sizes)
        logits = network(torch.cat(texts))[:, 0]
        return entropy(torch.zeros(len(texts)).index_add(0, of, logits) / sizes, style)

    return losses, len(x), 16


def cut_of(network, checked) -> float:
    """The logit above which the network touches as many words of the validation sources as the persons did."""
    touched = int(torch.cat(checked["labels"]).sum())
    with torch.no_grad():
        ranked = network(torch.cat(checked["source"]))[:, 0].sort(descending=True).values
    return float(ranked[touched])


def main() -> None:
    own = pd.concat([load_pairs(name) for name in ("npov_pairs", "npov_hard")], ignore_index=True)
    home = load_pairs("npov_pairs").query("split == 'test' and source != target")
    tests = {"npov_pairs": home.reset_index(drop=True), "wnc_test": wnc_edits()}
    read = {name: vectors(pairs.source) for name, pairs in tests.items()}
    rows = []
    for trained, whole in (("own", own), ("wnc", load_pairs("wnc_sample"))):
        pairs = whole[whole.source != whole.target]
        parts = []
        for split in ("train", "validation"):
            chosen = pairs[pairs.split == split]
            parts.append(
                {
                    "source": vectors(chosen.source),
                    "target": vectors(chosen.target),
                    "labels": labels_of(chosen),
                }
            )
        print(trained, [len(part["labels"]) for part in parts], flush=True)
        for labels, way in (("words", by_words), ("sentences", by_sentences)):
            networks = [train(*way(*parts), seed) for seed in SEEDS]
            cuts = [cut_of(network, parts[1]) for network, _ in networks]
            print(labels, "validation loss", [round(loss, 3) for _, loss in networks], flush=True)
            for name, tested in tests.items():
                for row, (words, edited) in enumerate(zip(read[name], labels_of(tested))):
                    with torch.no_grad():
                        logits = [network(words)[:, 0] for network, _ in networks]
                    hit = np.mean([float(edited[row.argmax()]) for row in logits])
                    marks = [(row > cut).float() for row, cut in zip(logits, cuts)]
                    rows.append(
                        {
                            "set": name,
                            "trained": trained,
                            "labels": labels,
                            "row": row,
                            "words": len(words),
                            "edited": int(edited.sum()),
                            "hit": round(hit, 4),
                            "changed": round(np.mean([float(mark.sum()) for mark in marks]), 4),
                            "both": round(
                                np.mean([float((mark * edited).sum()) for mark in marks]), 4
                            ),
                        }
                    )
    table = pd.DataFrame(rows)
    table.to_csv(packaged_path("tagger_control.csv"), index=False, lineterminator="\n")
    means = table.groupby(["set", "trained", "labels"]).agg(n=("hit", "size"), hit=("hit", "mean"))
    blind = (table.edited / table.words).groupby(table.set).mean()
    total = table.groupby(["set", "trained", "labels"])[["changed", "both", "edited"]].sum()
    means["precision"], means["recall"] = total.both / total.changed, total.both / total.edited
    print(means.round(3).to_string(), blind.round(3).to_string(), sep="\n")


if __name__ == "__main__":
    main()
