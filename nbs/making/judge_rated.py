"""What a judge, scores without one, and people say of the same outputs: tsteval/data/judge_rated.csv and judge_pairs.csv.

    tsteval judge serve                                    # prints the ADDRESS
    python nbs/making/judge_rated.py FOLDER ADDRESS        # an hour on two cores; FOLDER keeps every answer

judge_rated.csv has a row an output, and figures only: the mean of people's ratings, the judge's expected score with its
mass on digits, and scores that ask nobody. style_gap and gug are the samples of judge_sets.py with the judge of 1.5 billion
parameters; `meaning 1` to `meaning 3` are the first question in the package's three wordings, and `changed 1` to `mislead 3`
two other questions, asked of the first `CHOSEN_ON` outputs alone. lai2022 holds what a large chat model said in 2023 of all
495 rewrites (the criterion content). judge_pairs.csv has a row a pair of llmbar: the probability of the better answer, shown
first and shown second, and the words that each answer shares with its instruction. Needs TSTEVAL_DATA.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from evidence import in_common, words
from judge_sets import DIGITS, QUESTIONS, asked, drawn

from tsteval.core.assets import packaged_path
from tsteval.evaluation import evaluate
from tsteval.people.chat_server import load_chat
from tsteval.people.judging import expected_score
from tsteval.people.prompts import CRITERIA, JudgedCriterion, choice_prompts, rating_prompts
from tsteval.tables.lai2022 import load_lai2022
from tsteval.tables.ratings import load_ratings, stored_scores

CHOSEN_ON = 20  # outputs
CONTENT = {
    "meaning": CRITERIA["content"],
    "changed": JudgedCriterion(
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
    "mislead": JudgedCriterion(
        "A reader knows the output alone. How rightly does he know what the source says?",
        ("wrongly", "mostly wrongly", "in part", "mostly rightly", "rightly"),
    ),
}


def answers(chat, question: JudgedCriterion, wording: int, outputs: pd.DataFrame, file: Path):
    """(N,) expected scores and masses on the five digits."""
    prompts = [
        rating_prompts(question, DIGITS, {"source": row.source, "output": row.output})[wording]
        for row in outputs.itertuples()
    ]
    shares = asked(chat, prompts, DIGITS, file)
    return expected_score(shares, [*map(int, DIGITS)]), shares.sum(axis=1)


def frame(name: str, outputs: pd.DataFrame, people, **columns) -> pd.DataFrame:
    """What all sets have, and the columns of this one."""
    about = {
        "data_set": name,
        "source": pd.factorize(outputs.source)[0],
        "kind": outputs.system.to_numpy(),
        "people": people,
    }
    tried = {"length": [len(words(text)) for text in outputs.output]}
    if outputs.source.astype(bool).any():
        tried["shared words"] = in_common(outputs.output, outputs.source)
    else:
        about["source"] = np.arange(len(outputs))
    return pd.DataFrame(about | columns | tried)


def style_gap(chat, folder: Path) -> pd.DataFrame:
    outputs = drawn("style_gap").drop_duplicates("item").reset_index(drop=True)
    scores = stored_scores("style_gap").set_index("item").loc[outputs.item]
    columns = {}
    for name, question in CONTENT.items():
        rows = outputs if name == "meaning" else outputs[:CHOSEN_ON]
        for wording in range(3):
            values, mass = answers(chat, question, wording, rows, folder / "style_gap.jsonl")
            columns[f"{name} {wording + 1}"] = pd.Series(values)
            if not wording and name == "meaning":
                columns = {"judge": values, "mass": mass} | columns
    columns |= {"cosine": scores.cosine.to_numpy(), "style-aware": scores.style_aware.to_numpy()}
    return frame("style_gap", outputs, outputs.rating, **columns)


def gug(chat, folder: Path) -> pd.DataFrame:
    outputs = drawn("gug").drop_duplicates("item").reset_index(drop=True)
    values, mass = answers(chat, QUESTIONS["gug"][1], 0, outputs, folder / "gug.jsonl")
    scored = evaluate(outputs[["output"]], ["fluency"], n_boot=2, empty="skip").per_pair
    return frame("gug", outputs, outputs.rating, judge=values, mass=mass, PenLP=scored.pen_lp)


def lai2022() -> pd.DataFrame:
    ratings = load_ratings("lai2022")
    keys = ["system", "source", "output"]
    known = ratings.drop_duplicates("item").merge(
        stored_scores("lai2022", ratings)[["item", "cosine", "style_aware"]], on="item"
    )
    known = known[[*keys, "cosine", "style_aware"]].drop_duplicates(keys)
    outputs = load_lai2022().merge(known, how="left", on=keys)
    scores = {"cosine": outputs.cosine, "style-aware": outputs.style_aware}
    judge = outputs.content_chatgpt
    return frame("lai2022", outputs, outputs.human_content, judge=judge, **scores)


def llmbar(chat, folder: Path) -> pd.DataFrame:
    rows = []
    for _, pair in drawn("llmbar").drop_duplicates("item").groupby("source_id", sort=False):
        better, worse = pair.sort_values("rating", ascending=False).output
        source = pair.source.iloc[0]
        prompts = [
            choice_prompts(QUESTIONS["llmbar"][1], source, order)[0]
            for order in ((better, worse), (worse, better))
        ]
        first = expected_score(asked(chat, prompts, "12", folder / "llmbar.jsonl"), (1, 0))
        shared = in_common((better, worse), (source, source))
        rows.append((first[0], 1 - first[1], *shared))
    names = ("better shown first", "better shown second", "shared words", "shared words of worse")
    return pd.DataFrame(rows, columns=names)


def main(folder: Path, address: str) -> None:
    chat = load_chat(address)
    rated = pd.concat([style_gap(chat, folder), gug(chat, folder), lai2022()])
    for name, table in (("rated", rated), ("pairs", llmbar(chat, folder))):
        path = packaged_path(f"judge_{name}.csv")
        table.round(4).to_csv(path, index=False, lineterminator="\n")
        print(table.describe().to_string())


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
