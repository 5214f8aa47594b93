"""A style without labelled pairs: what eight sentences a side, or the style's name alone, are worth as a judge.

    python nbs/making/style_few_shot.py    # minutes of one core; needs the WNC sample (TSTEVAL_DATA)

Eight sentences a side: a logistic regression on an encoder's vectors of eight subjective and eight neutral sentences,
of different pairs, drawn from the teaching pairs that the judges were trained on; as many draws as DRAWS. The name
alone: the cosine to a sentence that describes the style minus the one to its counterpart, for each of PHRASES, all
reported, none chosen. Both encoders; beside them the two shipped judges and the longer of two texts. Everything is
measured on the pairs for testing, by the order of source and target, and by the style check that guards an evaluation
(`pair_order`: the lower end of its interval must lie above one half and above the share of length).

Writes tsteval/data/style_few_shot.csv: judge, encoder, data, draws, pairs, order (mean over draws), low, high (2.5% and
97.5% of the draws; without draws the 95% interval over pairs), passed (share of draws that the check lets pass).
"""

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from style_classifiers import split_of

from tsteval.core.assets import packaged_path
from tsteval.cps import SentenceEncoder
from tsteval.style import StyleClassifier, load_pairs
from tsteval.training.style_check import pair_order

SIDE = 8
DRAWS = 200
ENCODERS = {"all-MiniLM-L6-v2": "subjectivity-minilm", "all-mpnet-base-v2": "subjectivity-mpnet"}
PHRASES = [
    ("This sentence is subjective.", "This sentence is neutral."),
    ("subjective", "neutral"),
    ("a biased, opinionated text", "a neutral, factual text"),
    ("The author states an opinion.", "The author states a fact."),
    ("This praises or blames its subject.", "This neither praises nor blames its subject."),
]


def test_pairs(name: str) -> pd.DataFrame:
    pairs = split_of("test", load_pairs(name))
    return pairs[pairs.source != pairs.target].reset_index(drop=True)


def check(before: np.ndarray, after: np.ndarray, longer: np.ndarray) -> tuple:
    """Share of pairs in order, ends of its interval, and whether the style check lets the judge pass."""
    found = pair_order(before, after, longer, np.arange(len(longer)))
    return found.share, found.low, found.high, found.low > max(0.5, found.by_length)


def few_shot(known: tuple, vectors: tuple, longer: np.ndarray) -> list[tuple]:
    rng = np.random.default_rng(0)
    found = []
    for _ in range(DRAWS):
        chosen = rng.permutation(len(known[0]))[: 2 * SIDE]
        texts = np.concatenate([known[0][chosen[:SIDE]], known[1][chosen[SIDE:]]])
        head = LogisticRegression(C=10, max_iter=2000).fit(texts, [0] * SIDE + [1] * SIDE)
        found.append(check(*(head.decision_function(side) for side in vectors), longer))
    return found


if __name__ == "__main__":
    taught = split_of("train", load_pairs("npov_pairs"))
    rows = []
    taught = taught[taught.source != taught.target]
    for name in ("npov_pairs", "wnc_sample"):
        pairs = test_pairs(name)
        longer = pairs.target.str.len().to_numpy() - pairs.source.str.len().to_numpy()
        counts = {"data": name, "pairs": len(pairs)}
        rows.append(
            {
                "judge": "longer text",
                **counts,
                "draws": 0,
                **dict(
                    zip(
                        ("order", "low", "high", "passed"),
                        check(0 * longer, -np.sign(longer), longer),
                    )
                ),
            }
        )
        for encoder, judge in ENCODERS.items():
            model = SentenceEncoder.load(encoder)
            style = StyleClassifier.load(judge)
            neutral = style.labels.index("neutral")
            sides = [
                style.predict_proba(list(pairs[side]))[:, neutral] for side in ("source", "target")
            ]
            rows.append(
                {
                    "judge": judge,
                    "encoder": encoder,
                    **counts,
                    "draws": 0,
                    **dict(zip(("order", "low", "high", "passed"), check(*sides, longer))),
                }
            )
            vectors = tuple(model.encode(list(pairs[side])) for side in ("source", "target"))
            known = tuple(model.encode(list(taught[side])) for side in ("source", "target"))
            found = np.array(few_shot(known, vectors, longer), dtype=float)
            low, high = np.quantile(found[:, 0], (0.025, 0.975))
            rows.append(
                {
                    "judge": f"{SIDE} sentences a side",
                    "encoder": encoder,
                    **counts,
                    "draws": DRAWS,
                    "order": found[:, 0].mean(),
                    "low": low,
                    "high": high,
                    "passed": found[:, 3].mean(),
                }
            )
            for phrase in PHRASES:
                named = model.encode(list(phrase))
                sides = [side @ (named[1] - named[0]) for side in vectors]
                rows.append(
                    {
                        "judge": " / ".join(phrase),
                        "encoder": encoder,
                        **counts,
                        "draws": 0,
                        **dict(zip(("order", "low", "high", "passed"), check(*sides, longer))),
                    }
                )
            print(pd.DataFrame(rows[-7:]).to_string(), flush=True)
    pd.DataFrame(rows).astype({"passed": float}).round(4).to_csv(
        packaged_path("style_few_shot.csv"), index=False
    )
