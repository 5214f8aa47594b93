"""What chapter 21 shows of people's labels, beside `property_people.py` and `evidence.py`; figures alone are written.

    python nbs/making/tone_people.py learners                                  # tone_gug.csv alone; minutes
    python nbs/making/tone_people.py [toxicity | acceptability | formality]    # some minutes; all three without a name

tone_hatecheck.csv  each function of HateCheck: its kind, whether it is hateful, how many texts, how many templates, and
                    the share that `toxicity` at one half and Perspective call rightly. Perspective's is the authors', on the whole
                    set, of which the other figures have half.
tone_gug.csv        a row a sentence of GUG's test part in the set's order: three scores, no rating.
tone_people.csv     the rest, with 95% intervals from 2,000 resamples: of sources for toxicity and for rewrites, of
                    sentences for the others. Where `rival` is named, the value is way minus rival on the same resamples.

Needs TSTEVAL_DATA with hatecheck, paradetox, gug, lai2022 and pt16_formality.
"""

import codecs
import re
import sys

import numpy as np
import pandas as pd
from nltk.stem import SnowballStemmer
from property_people import DATA, interval, once, share
from scipy.stats import rankdata

# twelve stems of swear words, thirteen letters on; written down before any text was scored with them
SWEARING = codecs.decode(
    "shpx fuvg ovgpu nff nffubyr qnza penc uryy fhpx vqvbg fghcvq qhzo", "rot13"
)
KINDS = {
    "swears at a group": ["profanity_h"],
    "uses a slur for a group": ["slur_h"],
    "says it in a later clause": ["ref_subs_clause_h", "ref_subs_sent_h"],
    "as a question or an opinion": ["phrase_question_h", "phrase_opinion_h"],
    "misspelt on purpose": [
        f"spell_{how}_h" for how in ("char_swap", "char_del", "space_del", "space_add", "leet")
    ],
    "belittles a group": [f"derog_{how}_h" for how in ("neg_emote", "neg_attrib", "dehum", "impl")],
    "threatens a group": ["threat_dir_h", "threat_norm_h"],
    "denies a group what is good": ["negate_pos_h"],
    "swears, at nobody": ["profanity_nh"],
    "a slur in another sense": ["slur_homonym_nh", "slur_reclaimed_nh"],
    "objects to hate, quoting it": ["counter_quote_nh", "counter_ref_nh"],
    "abuses other targets": ["target_obj_nh", "target_indiv_nh", "target_group_nh"],
    "denies something hateful": ["negate_neg_nh"],
    "names or praises a group": ["ident_neutral_nh", "ident_pos_nh"],
}
KIND_OF = {function: kind for kind, functions in KINDS.items() for function in functions}
RARE = 0.01  # the share of rude comments in the forum of the chapter


def swear_words(texts) -> np.ndarray:
    """How many words of each text are swear words of the list."""
    stem, listed = SnowballStemmer("english").stem, set(SWEARING.split())
    words = (re.findall(r"[a-z]+", text.lower()) for text in texts)
    return np.array([sum(stem(word) in listed for word in row) for row in words], float)


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
                "kind": KIND_OF[name],
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
    return rows + list_rows(cases, rewrites)


def list_rows(cases: pd.DataFrame, rewrites: pd.DataFrame) -> list[dict]:
    """The judge beside the list: both AUCs and their difference, and what a flag is worth where few are rude."""
    from tsteval.tone import toxicity

    rows = []
    for data, table in (("hatecheck", cases), ("paradetox", rewrites)):
        yes = table.rating.to_numpy() == 1
        texts, sources = list(table.output), table.source_id.to_numpy()
        values = {"toxicity": toxicity(texts), "twelve words": swear_words(texts)}
        larger = {
            way: np.sign(one[yes][:, None] - one[~yes]) / 2 + 0.5 for way, one in values.items()
        }

        def area(way, larger=larger, yes=yes):
            def statistic(counts):
                ours, theirs = counts[..., yes], counts[..., ~yes]
                return ((ours @ larger[way]) * theirs).sum(-1) / (ours.sum(-1) * theirs.sum(-1))

            return statistic

        about = {"property": "toxicity", "data": data, "measure": "AUC"}
        judge, listed = area("toxicity"), area("twelve words")
        size = len(table)
        rows += [
            about | {"way": "toxicity", "rival": ""} | interval(judge, sources, size),
            about | {"way": "twelve words", "rival": ""} | interval(listed, sources, size),
            about
            | {"way": "toxicity", "rival": "twelve words"}
            | interval(lambda counts, a=judge, b=listed: a(counts) - b(counts), sources, size),
        ]
        if data == "paradetox":
            for way, flagged in (
                ("toxicity", values["toxicity"] > 0.5),
                ("twelve words", values["twelve words"] > 0),
            ):

                def worth(counts, flagged=flagged, yes=yes):
                    s, f = (
                        (counts[..., side] @ flagged[side].astype(float))
                        / counts[..., side].sum(-1)
                        for side in (yes, ~yes)
                    )
                    return RARE * s / (RARE * s + (1 - RARE) * f)

                rows.append(
                    about
                    | {"measure": "flags right, 1 in 100", "way": way, "rival": ""}
                    | interval(worth, sources, size)
                )
                if way == "twelve words":
                    for label, name in ((yes, "flagged of toxic"), (~yes, "flagged of harmless")):
                        found = share(flagged[label], sources[label])
                        rows.append(about | {"measure": name, "way": way, "rival": ""} | found)
    return rows


def learner_scores() -> None:
    """tone_gug.csv, by the model."""
    from scipy.special import expit

    from tsteval.tables.ratings import load_ratings
    from tsteval.tone import AcceptabilityModel, acceptability_evidence
    from tsteval.training.logistic import load_curve

    rated = load_ratings("gug").query("part == 'test'")
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


def acceptability_rows() -> list[dict]:
    from scipy.special import expit

    from tsteval.tables.ratings import load_ratings
    from tsteval.training.logistic import fit_logistic

    everything = load_ratings("gug").reset_index(drop=True)
    test = (everything.part == "test").to_numpy()
    counted = pd.read_csv(DATA / "gug_scores.csv")  # gug_scores.py
    tokens = counted.n_tokens
    signs = pd.DataFrame(
        {
            "likelihood": counted.logprob / tokens,
            "PenLP": counted.logprob / ((5 + tokens) / 6) ** 0.8,
            "length": np.log(tokens),
            "common words": counted.unigram_logprob / tokens,
            "words not listed": counted.unlisted_words,
        }
    )
    marks = (everything.rating[~test] - 1) / 3
    intercept, weights = fit_logistic(signs[~test], marks, 0)
    own, mean = expit(signs @ weights + intercept)[test], signs.likelihood[test]
    rated, scores = everything[test].reset_index(drop=True), pd.read_csv(DATA / "tone_gug.csv")
    answers = rated[
        [f"rating_{place}" for place in range(1, 7)]
    ].to_numpy()  # the expert stands first
    expert, crowd = answers[:, 0], answers[:, 1:].mean(axis=1)
    ways = {
        "acceptability": scores.acceptability,
        "five signs": own.to_numpy(),
        "PenLP": scores.pen_lp,
        "mean log-probability": mean.to_numpy(),
        "likelihood on a curve": scores.likelihood,
        "shorter": -rated.output.str.len(),
        "one expert": expert,
    }
    about = {"property": "acceptability", "data": "gug, test, five workers", "measure": "r"}
    rivals = ("one expert", "PenLP", "five signs")
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
    best = ("informal share, negated", "long words", "long text", "begins with a capital")
    rows = compared(
        about, ways, rated.rating.to_numpy(), np.arange(len(texts)), True, "formality", best
    )
    middle = load_ratings().rating.median()
    above = (np.sign(rated.rating - middle) + 1) / 2  # a tie counts as half, as in the fit
    for low in (0.0, 0.2, 0.4, 0.6, 0.8):
        part = (ways["formality"] >= low) & (ways["formality"] <= low + 0.2)
        about = {"property": "formality", "data": "rated sentences", "measure": "above the middle"}
        found = share(above[part], np.arange(part.sum()))
        rows.append(about | {"way": f"{low:.1f} to {low + 0.2:.1f}", "rival": ""} | found)
    elsewhere = load_elsewhere()
    for formal, data in ((True, "made formal"), (False, "made informal")):
        table = elsewhere[elsewhere.to_formal == formal]
        sign = 1 if formal else -1
        ways = {
            "formality": sign * formality(list(table.out)),
            "long words": sign * letters_a_word(list(table.out)),
            "long text": sign * table.out.str.len().to_numpy(float),
            "begins with a capital": sign * table.out.str[:1].str.isupper().astype(float),
        }
        people = ((table.human_1 + table.human_2) / 2).to_numpy()
        about = {"property": "formality", "data": data, "measure": "Spearman"}
        sources = table.source.to_numpy()
        rivals = ("begins with a capital", "long text")
        rows += compared(about, ways, people, sources, True, "formality", rivals)
        raters = compared(
            about, {"one rater": table.human_1}, table.human_2.to_numpy(), sources, True, "", ()
        )
        rows += raters
    return rows


if __name__ == "__main__":
    if sys.argv[1:] == ["learners"]:
        raise SystemExit(learner_scores())
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
