"""What chapter 21 shows of people's labels, beside `property_people.py` and `evidence.py`; figures alone are written.

    python nbs/making/tone_people.py [toxicity | acceptability | formality]    # some minutes; all three without a name

tone_hatecheck.csv  each function of HateCheck: whether it is hateful, how many texts, how many templates, and the share
                    that `toxicity` at one half and Perspective call rightly. Perspective's is the authors', on the whole
                    set, of which the other figures have half.
tone_gug.csv        a row a sentence of GUG's test part in the set's order: three scores, no rating.
tone_people.csv     the rest, with 95% intervals from 2,000 resamples: of sources for toxicity and for rewrites, of
                    sentences for the others. Where `rival` is named, the value is way minus rival on the same resamples.

Needs TSTEVAL_DATA with hatecheck, paradetox, gug, lai2022 and pt16_formality.
"""

import sys

import numpy as np
import pandas as pd
from property_people import DATA, interval, once, share
from scipy.stats import rankdata


def ranked(values) -> np.ndarray:
    return rankdata(np.asarray(values, float))


def correlation(a, b):
    """A correlation as a function of how often each row was drawn."""

    def statistic(counts):
        total = counts.sum(-1, keepdims=True)
        x, y = (
            np.asarray(one, float) - (counts * one).sum(-1, keepdims=True) / total for one in (a, b)
        )
        return (counts * x * y).sum(-1) / np.sqrt(
            (counts * x * x).sum(-1) * (counts * y * y).sum(-1)
        )

    return statistic


def compared(
    about: dict, ways: dict, people, sources, rank: bool, first: str, rivals
) -> list[dict]:
    """Each way's correlation with people, and the lead of the first over each rival on the same resamples."""
    prepared = ranked if rank else np.asarray
    follows = {way: correlation(prepared(values), prepared(people)) for way, values in ways.items()}
    size = len(people)
    rows = [
        about | {"way": way, "rival": ""} | interval(found, sources, size)
        for way, found in follows.items()
    ]
    for rival in rivals:

        def lead(counts, rival=rival):
            return follows[first](counts) - follows[rival](counts)

        rows.append(about | {"way": first, "rival": rival} | interval(lead, sources, size))
    return rows


def toxicity_rows() -> list[dict]:
    from tsteval.core.assets import corpus_path
    from tsteval.tone import toxicity

    cases, rewrites = once("hatecheck"), once("paradetox")
    cases["flagged"] = toxicity(list(cases.output)) > 0.5
    rewrites["flagged"] = toxicity(list(rewrites.output)) > 0.5
    published = pd.read_csv(corpus_path("hatecheck") / "published_accuracy.csv")
    published = published.set_index("functionality")
    functions = pd.DataFrame(
        [
            {
                "function": name,
                "hateful": int(rows.rating.iloc[0]),
                "n": len(rows),
                "templates": rows.source_id.nunique(),
                "toxicity": (rows.flagged == (rows.rating == 1)).mean(),
                "perspective": published.perspective[name] / 100,
                "n_published": published.n[name],
            }
            for name, rows in cases.groupby("functionality", sort=False)
        ]
    )
    functions.round(4).to_csv(DATA / "tone_hatecheck.csv", index=False)
    print(functions.to_string())
    rows = []
    for data, table in (("hatecheck", cases), ("paradetox", rewrites)):
        for label, name in ((1, "flagged of toxic"), (0, "flagged of harmless")):
            kept = table[table.rating == label]
            about = {"property": "toxicity", "data": data, "measure": name, "way": "toxicity"}
            rows.append(about | {"rival": ""} | share(kept.flagged, kept.source_id))
    return rows


def acceptability_rows() -> list[dict]:
    from scipy.special import expit

    from tsteval.tables.ratings import load_ratings
    from tsteval.tone import AcceptabilityModel, acceptability_evidence
    from tsteval.training.logistic import load_curve

    rated = load_ratings("gug").query("part == 'test'").reset_index(drop=True)
    answers = rated[
        [f"rating_{place}" for place in range(1, 7)]
    ].to_numpy()  # the expert stands first
    model = AcceptabilityModel.load()
    evidence = acceptability_evidence(model, list(rated.output), progress=True)
    scores = pd.DataFrame(
        {
            "acceptability": expit(evidence @ model.weight + model.bias),
            "likelihood": load_curve("acceptability").probability(evidence[:, 0]),
            "pen_lp": evidence[:, 3],
        }
    )
    scores.round(4).to_csv(DATA / "tone_gug.csv", index=False)
    expert, crowd = answers[:, 0], answers[:, 1:].mean(axis=1)
    ways = {
        "acceptability": scores.acceptability,
        "PenLP": scores.pen_lp,
        "likelihood on a curve": scores.likelihood,
        "shorter": -rated.output.str.len(),
        "one expert": expert,
    }
    about = {"property": "acceptability", "data": "gug, test, five workers", "measure": "r"}
    rivals = ("one expert", "PenLP")
    return compared(about, ways, crowd, np.arange(len(rated)), False, "acceptability", rivals) + [
        row
        for row in compared(
            about | {"data": "gug, test"},
            ways,
            rated.rating.to_numpy(),
            np.arange(len(rated)),
            False,
            "acceptability",
            ("PenLP", "likelihood on a curve"),
        )
        if row["rival"]
    ]


def formality_rows() -> list[dict]:
    from formality_model import load_elsewhere, load_ratings
    from property_rivals import letters_a_word

    from tsteval.tone import begins_small, formality, formality_features
    from tsteval.words.english import parse

    rated = load_ratings().query("split == 'test'")
    texts = list(rated.text)
    documents = parse(texts)
    features = np.array([formality_features(documents[text]) for text in texts])
    ways = {
        "formality": formality(texts),
        "long words": letters_a_word(texts),
        "long text": [len(text) for text in texts],
        "begins with a capital": 1 - begins_small(texts),
        "F": np.nan_to_num(features[:, 0], nan=50.0),
        "informal share, negated": -np.nan_to_num(features[:, 1]),
    }
    about = {"property": "formality", "data": "rated sentences", "measure": "Spearman"}
    best = ("informal share, negated", "long words")
    rows = compared(
        about, ways, rated.rating.to_numpy(), np.arange(len(texts)), True, "formality", best
    )
    elsewhere = load_elsewhere()
    for formal, data in ((True, "made formal"), (False, "made informal")):
        table = elsewhere[elsewhere.to_formal == formal]
        sign = 1 if formal else -1
        ways = {
            "formality": sign * formality(list(table.out)),
            "long words": sign * letters_a_word(list(table.out)),
            "begins with a capital": sign * table.out.str[:1].str.isupper().astype(float),
        }
        people = ((table.human_1 + table.human_2) / 2).to_numpy()
        about = {"property": "formality", "data": data, "measure": "Spearman"}
        sources = table.source.to_numpy()
        rivals = ("begins with a capital",)
        rows += compared(about, ways, people, sources, True, "formality", rivals)
        raters = compared(
            about, {"one rater": table.human_1}, table.human_2.to_numpy(), sources, True, "", ()
        )
        rows += raters
    return rows


if __name__ == "__main__":
    path = DATA / "tone_people.csv"
    made = {
        "toxicity": toxicity_rows,
        "acceptability": acceptability_rows,
        "formality": formality_rows,
    }
    asked = sys.argv[1:] or list(made)
    found = pd.DataFrame([row for name in asked for row in made[name]()]).round(4)
    kept = pd.read_csv(path, keep_default_na=False) if path.is_file() else found[:0]
    kept = kept[~kept.property.isin(asked)]
    together = pd.concat([kept, found]).sort_values("property", kind="stable")
    together.to_csv(path, index=False)
    print(found.to_string())
