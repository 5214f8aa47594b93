"""Can twenty ratings choose a better question for a judge? tsteval/data/judge_prompts.csv.

    tsteval judge serve                                    # prints the ADDRESS
    python nbs/making/judge_prompts.py FOLDER ADDRESS      # twenty minutes on two cores; FOLDER keeps every answer

A judge of 1.5 billion parameters rates the content of rewrites (style_gap, the sample of judge_sets.py) by three
questions in three wordings each. On `CHOSEN_ON` rated outputs all nine are correlated with the ratings; the best one then meets
the outputs of other sources, beside the first question in each wording and in their mean, which is what the package asks.
`lead` is the chosen prompt's correlation minus that row's, on the same resamples. `drawn again` repeats the choice among
the first question's wordings on other outputs by chance, with means and what 95 of 100 draws give. Needs TSTEVAL_DATA.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from evidence import figures
from judge_sets import DIGITS, asked, drawn

from tsteval.core.assets import packaged_path
from tsteval.core.resample import percentiles
from tsteval.people.chat_server import load_chat
from tsteval.people.coefficients import weighted_pearson
from tsteval.people.judging import expected_score
from tsteval.people.prompts import CRITERIA, JudgedCriterion, rating_prompts

CHOSEN_ON = 20  # outputs
DRAWS = 1000
QUESTIONS = {
    "how much of the meaning": CRITERIA["content"],
    "look for what changed": JudgedCriterion(
        "Does the output say the same as the source? Look for a fact, a name, a number or a negation that was "
        "changed, added or left out, and ignore the style.",
        (
            "no, the opposite or something else",
            "mostly not",
            "in part",
            "nearly",
            "yes, exactly the same",
        ),
    ),
    "would it mislead": JudgedCriterion(
        "A reader knows the output alone. How rightly does he know what the source says?",
        ("wrongly", "mostly wrongly", "in part", "mostly rightly", "rightly"),
    ),
}
WORDINGS = ("question first", "texts in the middle", "texts first")


def drawn_again(scores: np.ndarray, ratings: np.ndarray, codes: np.ndarray) -> list[dict]:
    """The same choice among the three wordings of the first question, `DRAWS` times: sources by chance until there are
    `CHOSEN_ON` outputs, and the rest to test on. `n` is how often a wording is chosen."""

    def follows(values, kept):
        return np.corrcoef(values[kept], ratings[kept])[0, 1]

    random = np.random.default_rng(0)
    promised, kept, mean, chosen = [], [], [], []
    for _ in range(DRAWS):
        order = random.permutation(codes.max() + 1)
        sizes = np.bincount(codes)[order].cumsum()
        given = np.isin(codes, order[: np.searchsorted(sizes, CHOSEN_ON) + 1])
        found = [follows(values, given) for values in scores]
        chosen.append(int(np.argmax(found)))
        promised.append(max(found))
        kept.append(follows(scores[chosen[-1]], ~given))
        mean.append(follows(scores.mean(axis=0), ~given))
    about = {"part": "drawn again", "question": next(iter(QUESTIONS))}
    rows = [
        about | {"wording": wording, "n": chosen.count(place)}
        for place, wording in enumerate(WORDINGS)
    ]
    for name, values in (
        ("on the twenty", promised),
        ("on other sources", kept),
        ("mean of three", mean),
        ("on other sources minus mean of three", np.subtract(kept, mean)),
    ):
        low, high = np.quantile(values, (0.025, 0.975))
        rows.append(
            about
            | {"wording": name, "value": np.mean(values), "low": low, "high": high, "n": DRAWS}
        )
    return rows


def main(folder: Path, address: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    chat = load_chat(address)
    outputs = drawn("style_gap").drop_duplicates("item").reset_index(drop=True)
    codes = pd.factorize(outputs.source_id)[0]
    ratings = outputs.rating.to_numpy(float)
    given = np.arange(len(outputs)) < CHOSEN_ON  # a source's outputs stand together
    rest = ~given & ~np.isin(codes, codes[given])

    def scores(question: str, wording: int, rows: np.ndarray) -> np.ndarray:
        prompts = [
            rating_prompts(
                QUESTIONS[question], DIGITS, {"source": row.source, "output": row.output}
            )
            for row in outputs[rows].itertuples()
        ]
        shares = asked(chat, [one[wording] for one in prompts], DIGITS, folder / "style_gap.jsonl")
        return expected_score(shares, [*map(int, DIGITS)])

    rows = []

    def found(values: np.ndarray, kept: np.ndarray, **about) -> dict:
        of = ratings[kept]
        one = figures(
            lambda counts, x: weighted_pearson(counts, x, of), values, codes[kept], "pearson"
        )
        rows.append(
            about | {end: one[end] for end in ("value", "low", "high")} | {"n": len(values)}
        )
        return one

    tried = {
        (question, wording): found(
            scores(question, wording, given),
            given,
            part="chosen on",
            question=question,
            wording=WORDINGS[wording],
        )["value"]
        for question in QUESTIONS
        for wording in range(3)
    }
    best = max(tried, key=tried.get)
    first = next(iter(QUESTIONS))
    three = [scores(first, wording, rest) for wording in range(3)]
    tested = {
        (best[0], WORDINGS[best[1]]): scores(*best, rest),
        **{(first, wording): one for wording, one in zip(WORDINGS, three)},
        (first, "mean of three"): np.mean(three, axis=0),
    }
    ahead = None
    for (question, wording), values in tested.items():
        one = found(values, rest, part="other sources", question=question, wording=wording)
        ahead = ahead or one
        low, high = percentiles(ahead["drawn"] - one["drawn"])
        rows[-1] |= {"lead": ahead["value"] - one["value"], "lead_low": low, "lead_high": high}
    everywhere = [scores(first, wording, np.ones(len(outputs), bool)) for wording in range(3)]
    rows += drawn_again(np.array(everywhere), ratings, codes)
    table = pd.DataFrame(rows).round(4)
    table.to_csv(packaged_path("judge_prompts.csv"), index=False, lineterminator="\n")
    print(table.to_string())


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
