"""The course's rewriters and the same language model untrained, beside five published neutralisers and the editors.

python nbs/making/rewriters_people.py write FOLDER [SYSTEM ...]   what ours write, kept in FOLDER; it goes on where it
was ended; minutes of an idle core a system
python nbs/making/rewriters_people.py measure FOLDER              -> tsteval/data/rewriters_people.csv, of what there is

`wnc_test` holds edits by Wikipedia's editors with the outputs of MODULAR and CONCURRENT (Pryzant et al. 2020) and of
three STRAP models (Krishna et al. 2020), none of them made here. Its part *single* is taken, where one word or span was
edited, less what stands in the WNC sample; SOURCES of it are drawn by lot for ours. *asked* and *shown* are
SmolLM2-135M-Instruct as it comes, told in words what to do, *shown* with EXAMPLES pairs before it (training rows of the
WNC sample for the edits, of the teaching pairs for the teaching pairs); *neural* is the same model trained. *asked_large*
and *shown_large* are Qwen2.5-Coder-1.5B-Instruct, asked in the same words, in bfloat16; *neural_large* is that model with
the adapter neutral-qwen, trained as the small one's was. What these five write for the teaching pairs goes to
tsteval/data/rewriter_untrained.jsonl; of `wnc_test` no sentence may be shipped.

A row an output: set (wnc_test | npov_pairs), system, row, words of the source, changed by the system, edited by the
person, both, copied (1: the words are the source's), same (1: the words are the person's), length (words of the output).
Texts of `wnc_test` are compared by their words alone, in lower case and without marks, since three of the published
systems are not spaced by a tokeniser; those of the teaching pairs as chapter 14 compares them.
"""

import json
import re
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from neutral_rewriter import BASE, FOR_SCORES, edited, systems

from tsteval.attribution import WORD, edited_words
from tsteval.core.assets import packaged_path
from tsteval.models.roles import LARGER_LANGUAGE_MODEL
from tsteval.rewriting import Rewriter, load_rewrites
from tsteval.style import load_pairs
from tsteval.tables.ratings import load_ratings

SOURCES = 100
EXAMPLES = 4
PUBLISHED = ["modular", "concurrent", "strap_full", "strap_word", "strap_large"]
UNTRAINED = ["asked", "shown", "asked_large", "shown_large"]
LARGE = [
    *UNTRAINED,
    "neural_large",
]  # whose outputs for the teaching pairs have a file of their own
OURS = ["lexicon", "delete", "tagger", *LARGE, "neural"]
BATCH = 20  # outputs between two writes


def wnc_edits() -> pd.DataFrame:
    """One row an edit, the published systems' outputs in columns of their own."""
    table = load_ratings("wnc_test").query("part == 'single'")
    table = table.drop_duplicates(["source_id", "system"])
    wide = table.pivot(index="source_id", columns="system", values="output")
    edits = table.drop_duplicates("source_id").set_index("source_id")[["source", "reference"]]
    edits = edits.join(wide[PUBLISHED]).rename(columns={"reference": "target"})
    known = set(load_pairs("wnc_sample").source)
    edits = edits[~edits.source.isin(known)].reset_index(drop=True)
    drawn = np.random.default_rng(0).permutation(len(edits))[:SOURCES]
    return edits.assign(drawn=edits.index.isin(drawn))


def examples(name: str) -> pd.DataFrame:
    pairs = load_pairs(name).query("split == 'train' and source != target")
    short = pairs[pairs.source.str.split().str.len().between(8, 25)]
    return short.sample(EXAMPLES, random_state=0)


def untrained(name: str) -> dict:
    shown = "wnc_sample" if name == "wnc_test" else "npov_pairs"

    def load(system: str) -> Rewriter:
        size = (LARGER_LANGUAGE_MODEL, "bfloat16") if "large" in system else (BASE, "float32")
        pairs = examples(shown) if "shown" in system else None
        return Rewriter.load(size[0], style="neutral", examples=pairs, dtype=size[1])

    return {system: partial(load, system) for system in UNTRAINED}


def rewriter(system: str, name: str):
    if system in FOR_SCORES:
        return FOR_SCORES[system]
    if system == "neural_large":
        return Rewriter.load("neutral-qwen", dtype="bfloat16").rewrite
    return {**systems(), **untrained(name)}[system]().rewrite


def write(folder: Path, *chosen: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    sources = {"npov_pairs": edited("test").source, "wnc_test": wnc_edits().query("drawn").source}
    for system in chosen or OURS:
        for name, texts in sources.items():
            if name == "npov_pairs" and system not in ("tagger", *LARGE):
                continue  # they are in rewriter_outputs.jsonl
            file = folder / f"{name}-{system}.json"
            done = json.loads(file.read_text()) if file.is_file() else []
            make = rewriter(system, name) if len(done) < len(texts) else None
            while len(done) < len(texts):
                done += list(make(list(texts[len(done) : len(done) + BATCH])))
                file.write_text(json.dumps(done))
                print(file.name, len(done), flush=True)


def bare(text: str) -> str:
    """Only words, in lower case and spaced: the published outputs differ in how they write marks and what is joined."""
    return " ".join(re.findall(r"[^\W_]+", text.lower()))


def counted(table: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for row in table.itertuples():
        texts = row.source, row.output, row.target
        source, output, target = map(bare, texts) if row.set == "wnc_test" else texts
        own, theirs = (edited_words(source, text) for text in (output, target))
        rows.append(
            {
                "words": len(own),
                "changed": own.sum(),
                "edited": theirs.sum(),
                "both": (own & theirs).sum(),
                "copied": int(output == source),
                "same": int(output == target),
                "length": len(WORD.findall(output)),
            }
        )
    return pd.DataFrame(rows)


def outputs_of(folder: Path) -> pd.DataFrame:
    edits = wnc_edits()
    pairs = edited("test")[["source", "target"]]
    frames = []

    def take(name, system, pairs, outputs):
        frames.append(
            pairs.assign(set=name, system=system, output=list(outputs), row=pairs.index)[
                ["set", "system", "row", "source", "target", "output"]
            ]
        )

    def stored(name, system, pairs):
        file = folder / f"{name}-{system}.json"
        outputs = json.loads(file.read_text()) if file.is_file() else []
        take(name, system, pairs.iloc[: len(outputs)], outputs)

    for system in ("copy", *PUBLISHED, "human"):
        take(
            "wnc_test",
            system,
            edits,
            edits[{"copy": "source", "human": "target"}.get(system, system)],
        )
    for system in OURS:
        stored("wnc_test", system, edits.query("drawn"))
    for system, rows in load_rewrites().groupby("system", sort=False):
        take("npov_pairs", system, rows.reset_index(drop=True), rows.output)
    for system in ("tagger", *LARGE):
        stored("npov_pairs", system, pairs)
    return pd.concat(frames, ignore_index=True)


def measure(folder: Path) -> None:
    table = outputs_of(folder)
    found = pd.concat([table[["set", "system", "row"]], counted(table)], axis=1)
    found.to_csv(packaged_path("rewriters_people.csv"), index=False, lineterminator="\n")
    written = table[(table.set == "npov_pairs") & table.system.isin(LARGE)]
    Path(packaged_path("rewriter_untrained.jsonl")).write_text(
        "".join(
            json.dumps(row, ensure_ascii=False) + "\n"
            for row in written[["source", "system", "output", "target"]].to_dict("records")
        ),
        encoding="utf-8",
    )
    sums = found.groupby(["set", "system"], sort=False)
    means = sums[["copied", "same"]].mean().assign(n=sums.size())
    total = sums[["words", "changed", "edited", "both", "length"]].sum()
    means["precision"] = total.both / total.changed
    means["recall"] = total.both / total.edited
    means["length"] = total.length / total.words
    print(means.round(3).to_string())


if __name__ == "__main__":
    {"write": write, "measure": measure}[sys.argv[1]](Path(sys.argv[2]), *sys.argv[3:])
