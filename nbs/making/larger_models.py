"""Does a language model of 1.5 billion parameters follow people better than one of 135 million, where it only reads?

    python nbs/making/larger_models.py FOLDER    # half an hour on two idle cores; FOLDER keeps scores between runs

fluency   NCE and PenLP beside ratings: learners' sentences (gug's test part), the grammar of the first 300
          compressions, the fluency of lai2022's rewrites (three of each source)
content   the evidence of chapter 13, with either model: on our contrasts that the classifier was not trained on, on
          style_gap, and on three rewrites of each source of lai2022. `lowest regret` is that piece alone, which nobody
          fitted. `small`, `base` and `large` are the score as a tier gives it; `large, weights of base` has the larger
          model's evidence weighed as the smaller one's. Weights are fitted to the contrasts; there each half is scored
          with those of the other half.

`value` is Pearson's r with mean ratings, or the share of contrasts in which the rewrite that kept its facts wins, with
its 95% interval over sources. `lead` is a score's value minus that of `minus` on the same resamples; a score has a row for
each `minus`, and one without. The larger model
computes in bfloat16. Written: tsteval/data/larger_models.csv. Needs TSTEVAL_DATA.
"""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from content_scores import SETS
from content_tiers import BASE, CANDIDATES, SMALL, content, evidence_of, scored, stored_links
from evidence import figures

from tsteval.content import content_evidence
from tsteval.core.assets import packaged_path
from tsteval.core.resample import percentiles
from tsteval.cps import SentenceEncoder
from tsteval.fluency import fluency_scores
from tsteval.models.causal_lm import CausalLM
from tsteval.models.roles import LARGER_LANGUAGE_MODEL
from tsteval.people.coefficients import weighted_pearson
from tsteval.tables.ratings import load_ratings

SIZES = {"small": CausalLM.default_name, "large": LARGER_LANGUAGE_MODEL}
READ = ("support", "source_support", "regret")  # the evidence that a language model gives
OF_A_SOURCE = 3  # rewrites of lai2022
FLUENCY = {"gug": "acceptability", "msr_compression": "grammar", "lai2022": "fluency"}
CONTENT = ("contrasts", "style_gap", "lai2022")


def few_of(table: pd.DataFrame) -> pd.DataFrame:
    mixed = table.sample(frac=1, random_state=0)
    return mixed.groupby("source").head(OF_A_SOURCE).sort_index()


def fluency_rows(name: str) -> pd.DataFrame:
    ratings = load_ratings(name)
    table = ratings[ratings.asked == FLUENCY[name]].drop_duplicates("item")
    if name == "gug":
        table = table[table.part == "test"]
    table = {"msr_compression": lambda: table.head(300), "lai2022": lambda: few_of(table)}.get(
        name, lambda: table
    )()
    return table.reset_index(drop=True)


def content_rows(name: str) -> pd.DataFrame:
    table = SETS[name]()
    if name == "contrasts":
        table = table[table.split != "train"]
    if name == "lai2022":
        table = few_of(table)
    return table[table.rating.notna()].reset_index(names="place")


class Reader:
    """A language model that is loaded when the first score is missing in FOLDER."""

    def __init__(self, size: str, folder: Path):
        self.size, self.folder, self.lm = size, folder, None

    def stored(self, name: str, compute) -> pd.DataFrame:
        file = self.folder / f"{name}-{self.size}.csv"
        if not file.is_file():
            if self.lm is None:
                dtype = "bfloat16" if self.size == "large" else "float32"
                self.lm = CausalLM.load(SIZES[self.size], device="cpu", dtype=dtype)
            compute(self.lm).to_csv(file, index=False)
            print(file.name, flush=True)
        return pd.read_csv(file)

    def fluency(self, name: str, table: pd.DataFrame) -> pd.DataFrame:
        texts = list(table.output)
        return self.stored(
            f"{name}-fluency",
            lambda lm: fluency_scores(lm, texts, progress=True)[["nce", "pen_lp"]],
        )

    def content(self, name: str, table: pd.DataFrame) -> pd.DataFrame:
        if self.size == "small":  # what `content_scores.py` stored
            return stored_links(name, SETS[name]()).loc[table.place, [*READ]].reset_index(drop=True)
        texts = table.source, table.output, table["style"]
        return self.stored(
            f"{name}-content",
            lambda lm: content_evidence(*texts, lm=lm, progress=True)[0][[*READ]],
        )


def told(values: dict, pairs: dict, statistic, codes, measure: str, **about) -> list[dict]:
    """A row a score with its interval; `pairs` says which score it is compared with."""
    found = {
        label: figures(statistic, np.asarray(value, float), codes, measure)
        for label, value in values.items()
    }
    rows = []
    for label, one in found.items():
        row = about | {"score": label} | {end: one[end] for end in ("value", "low", "high")}
        row |= {"n": len(codes), "sources": int(codes.max()) + 1}
        rows.append(row)
        for other in pairs.get(label, ()):
            low, high = percentiles(one["drawn"] - found[other]["drawn"])
            lead = {"minus": other, "lead": one["value"] - found[other]["value"]}
            rows.append(row | lead | {"lead_low": low, "lead_high": high})
    return rows


def follows(ratings):
    return lambda counts, x: weighted_pearson(counts, x, ratings)


def kept_wins(counts, x):  # x: of each source what the rewrite that kept its facts has more
    wins = (x > 0) + 0.5 * (x == 0)
    return counts @ wins / counts.sum(axis=1)


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    sentences = {name: fluency_rows(name) for name in FLUENCY}
    tables = {name: content_rows(name) for name in CONTENT}
    fluency, links = {}, {}
    for size in SIZES:
        reader = Reader(size, folder)
        for name, table in tables.items():
            links[size, name] = reader.content(name, table)
        for name, table in sentences.items():
            fluency[size, name] = reader.fluency(name, table)
    rows = []
    for name, table in sentences.items():
        values = {
            f"{score}, {size}": fluency[size, name][score]
            for score in ("nce", "pen_lp")
            for size in SIZES
        }
        pairs = {f"{score}, large": (f"{score}, small",) for score in ("nce", "pen_lp")}
        codes = pd.factorize(table.source_id)[0]
        people = follows(table.rating.to_numpy(float))
        rows += told(values, pairs, people, codes, "pearson", data_set=name, asked=FLUENCY[name])
    weights = json.loads(packaged_path("content_weights.json").read_text(encoding="utf-8"))
    evidence = {}  # tier -> data set -> evidence
    for tier, encoder, size in (
        ("small", SMALL, "small"),
        ("base", BASE, "small"),
        ("large", BASE, "large"),
    ):
        loaded = SentenceEncoder.load(encoder)
        evidence[tier] = {
            name: evidence_of(loaded, name, SETS[name](), folder)
            .loc[table.place]
            .reset_index(drop=True)
            .assign(**links[size, name])
            for name, table in tables.items()
        }
    own = tables["contrasts"]
    crossed, fitted = {}, {}
    for tier, parts in (("small", "five"), ("base", "five and words"), ("large", "five and words")):
        crossed[tier], fitted[tier] = scored(evidence[tier], own, CANDIDATES[parts])
    print({name: round(value, 4) for name, value in fitted["large"].items()})
    for name, table in tables.items():
        if name == "contrasts":
            tiers = {tier: crossed[tier][name] for tier in crossed}
            borrowed = content(evidence["large"][name], fitted["base"])
        else:
            tiers = {
                "small": content(evidence["small"][name], weights[SMALL]),
                "base": content(evidence["base"][name], weights[BASE]),
                "large": crossed["large"][name],
            }
            borrowed = content(evidence["large"][name], weights[BASE])
        values = {
            "cosine": evidence["small"][name].cosine,
            "cosine, base": evidence["base"][name].cosine,
            "lowest regret, small": links["small", name].regret,
            "lowest regret, large": links["large", name].regret,
            **tiers,
            "large, weights of base": borrowed,
        }
        pairs = {
            "lowest regret, large": ("lowest regret, small", "cosine, base", "small"),
            "large": ("small", "base", "cosine, base", "large, weights of base"),
        }
        codes, statistic, measure = (
            pd.factorize(table.source)[0],
            follows(table.rating.to_numpy(float)),
            "pearson",
        )
        if name == "contrasts":
            half = len(table) // 2  # those that kept their facts come first, in the same order
            assert (table.id[:half].to_numpy() == table.id[half:].to_numpy()).all()
            values = {
                label: np.asarray(v)[:half] - np.asarray(v)[half:] for label, v in values.items()
            }
            codes, statistic, measure = np.arange(half), kept_wins, "wins"
        rows += told(values, pairs, statistic, codes, measure, data_set=name, asked="content")
    table = pd.DataFrame(rows)
    table.round(4).to_csv(packaged_path("larger_models.csv"), index=False, lineterminator="\n")
    print(table.round(3).to_string())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
