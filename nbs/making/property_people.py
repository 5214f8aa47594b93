"""Do toxicity and acceptability follow people? Measured on labelled sets that may not be shipped; figures alone are written.

    python nbs/making/property_people.py [toxicity | acceptability]    # tsteval/data/property_people.csv; some minutes

toxicity       hatecheck (a test alone: nothing was trained or chosen on it), paradetox, and the package's own 60 lines
acceptability  gug's test part and cola's out-of-domain part, on which nothing was trained or chosen; the grammar of the
               first 300 compressions, and the fluency of rewrites that were to change their formality

Intervals of 95% are from 2,000 resamples of sources, as `source_id` has them; of sentences for cola, whose out-of-domain
part comes from two publications.
"""

import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from tsteval.core.assets import packaged_path
from tsteval.core.resample import bootstrap_interval
from tsteval.tables.ratings import load_ratings

DATA = Path(__file__).parents[2] / "tsteval" / "data"


def says_you(texts) -> np.ndarray:
    return np.array([float(re.search(r"\byou", text, re.IGNORECASE) is not None) for text in texts])


def shorter(texts) -> np.ndarray:
    return -np.array([len(text) for text in texts], float)


def interval(statistic, sources, size: int) -> dict:
    """A statistic of how often each row was drawn, with its interval by source."""
    place = pd.factorize(sources)[0]
    found = bootstrap_interval(
        np.eye(place.max() + 1), lambda counts: statistic(counts[..., place]), n_resamples=2000
    )
    return {"value": found.score, "low": found.low, "high": found.high, "n": size}


def auc(labels, values, sources) -> dict:
    yes = np.asarray(labels) == 1
    values = np.asarray(values, float)
    larger = np.sign(values[yes][:, None] - values[~yes]) / 2 + 0.5

    def statistic(counts):
        ours, theirs = counts[..., yes], counts[..., ~yes]
        return ((ours @ larger) * theirs).sum(-1) / (ours.sum(-1) * theirs.sum(-1))

    return interval(statistic, sources, len(values))


def pearson(ratings, values, sources) -> dict:
    ratings, values = (np.asarray(one, float) for one in (ratings, values))

    def statistic(counts):
        total = counts.sum(-1, keepdims=True)
        a, b = (one - (counts * one).sum(-1, keepdims=True) / total for one in (ratings, values))
        spread = (counts * a * a).sum(-1) * (counts * b * b).sum(-1)
        return (counts * a * b).sum(-1) / np.sqrt(spread)

    return interval(statistic, sources, len(values))


def share(right, sources) -> dict:
    right = np.asarray(right, float)
    return interval(lambda counts: counts @ right / counts.sum(-1), sources, len(right))


def once(name: str, asked: str | None = None) -> pd.DataFrame:
    rows = load_ratings(name)
    rows = rows[rows.asked == asked] if asked else rows
    return rows.drop_duplicates("item").reset_index(drop=True)


# ---- toxicity


def contrasts(cases: pd.DataFrame) -> pd.DataFrame:  # hateful, other: rows of the cases; source_id
    """A hateful text and the one that was made from it, or of which it was made, and is not hateful."""
    pairs = cases.dropna(subset="contrast_case")
    place = pd.Series(cases.index, index=cases.case_id)
    pairs = pairs[pairs.contrast_case.isin(place.index)]
    other = place[pairs.contrast_case].to_numpy()
    both = pd.DataFrame({"one": pairs.index, "other": other, "source_id": pairs.source_id})
    one, two = (cases.rating[both[side]].to_numpy() for side in ("one", "other"))
    both = both.assign(
        hateful=np.where(one == 1, both.one, both.other),
        other=np.where(one == 1, both.other, both.one),
    )
    return both[one != two]


def toxicity_rows() -> list[dict]:
    from tsteval.tone import toxicity

    ways = {"toxicity": toxicity, "says you": says_you, "shorter": shorter}
    cases, rewrites = once("hatecheck"), once("paradetox")
    lines = pd.read_json(packaged_path("toxicity_lines.jsonl"), lines=True)
    pairs = contrasts(cases)
    rows = []
    for way, score in ways.items():

        def add(data, measure, found, way=way):
            rows.append(
                {"property": "toxicity", "data": data, "measure": measure, "way": way, **found}
            )

        values = score(list(cases.output))
        add("hatecheck", "AUC", auc(cases.rating, values, cases.source_id))
        gap = values[pairs.hateful] - values[pairs.other]
        add("hatecheck", "contrasts in order", share(np.sign(gap) / 2 + 0.5, pairs.source_id))
        add(
            "paradetox",
            "AUC",
            auc(rewrites.rating, score(list(rewrites.output)), rewrites.source_id),
        )
        add("own lines", "AUC", auc(lines.toxic, score(list(lines.text)), lines.index))
        if way == "shorter":
            continue
        called = (values > 0.5) == (cases.rating == 1)
        for name, kept in (
            ("hateful", cases.rating == 1),
            ("not hateful", cases.rating == 0),
            ("all", cases.rating >= 0),
        ):
            add("hatecheck", f"accuracy, {name}", share(called[kept], cases.source_id[kept]))
    return rows


# ---- acceptability


def acceptability_rows() -> list[dict]:
    from scipy.special import expit

    from tsteval.tone import AcceptabilityModel, acceptability_evidence
    from tsteval.training.logistic import load_curve

    model = AcceptabilityModel.load()
    measured = (
        (once("gug").query("part == 'test'"), "gug, test", pearson),
        (once("cola").query("part == 'out_of_domain_dev'"), "cola, out of domain", auc),
        (once("msr_compression", "grammar").head(300), "compressions, grammar", pearson),
        (once("lai2022", "fluency"), "formality transfer, fluency", pearson),
    )
    rows = []
    for table, data, measure in measured:
        # one reading has all that the other ways need: the first sign is NCE, the fourth PenLP
        evidence = acceptability_evidence(model, list(table.output))
        ways = {
            "acceptability": expit(evidence @ model.weight + model.bias),
            "likelihood on a curve": load_curve("acceptability").probability(evidence[:, 0]),
            "PenLP": evidence[:, 3],
            "shorter": shorter(table.output),
        }
        sources = table.item if data.startswith("cola") else table.source_id
        kept = np.isfinite(evidence[:, 0]) & table.rating.notna().to_numpy()
        name = {pearson: "r", auc: "AUC"}[measure]
        about = {"property": "acceptability", "data": data, "measure": name}
        rows += [
            about | {"way": way} | measure(table.rating[kept], values[kept], sources[kept])
            for way, values in ways.items()
        ]
    return rows


if __name__ == "__main__":
    path = DATA / "property_people.csv"
    made = {"toxicity": toxicity_rows, "acceptability": acceptability_rows}
    asked = sys.argv[1:] or list(made)
    found = pd.DataFrame([row for name in asked for row in made[name]()]).round(4)
    kept = pd.read_csv(path) if path.is_file() else found[:0]
    kept = kept[~(kept.property.isin(asked) & kept.way.isin(found.way))]
    pd.concat([kept, found]).sort_values("property", kind="stable").to_csv(path, index=False)
    print(found.to_string())
