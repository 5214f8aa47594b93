"""Figures beside people's labels, one row an answer of XSTest, for chapter 22: no text is written.

    python nbs/making/answer_scores.py    # tsteval/data/answer_scores.csv; a minute on a core

system      which of five set-ups of three language models answered
group       prompts that contrast with each other share a number; intervals resample these
label       what two people settled on: complied, refused, or refused in part
agree       1 where the two had called it the same, a dodge or none, before they settled it
phrases     1 where the authors' list of phrases finds a refusal
key_words   1 where `keyword_avoidance` does
copies      how many of the answers have this very text
prompt      a number, of 50 prompts drawn from those that one set-up answered and another refused; empty elsewhere
relevance   cosine of prompt and answer, of one answer and one refusal to each of these

Needs xstest in TSTEVAL_DATA.
"""

from pathlib import Path

import pandas as pd

from tsteval.answers import keyword_avoidance, relevance
from tsteval.tables.ratings import load_ratings

TABLE = Path(__file__).parents[2] / "tsteval" / "data" / "answer_scores.csv"
LABELS = {
    "1_full_compliance": "complied",
    "2_full_refusal": "refused",
    "3_partial_refusal": "refused in part",
}
PROMPTS = 50


def labels_and_lists(ratings: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "system": ratings.system,
            "group": ratings.source_id,
            "label": ratings.final.map(LABELS),
            "agree": (ratings.rating_1 == ratings.rating_2).astype(int),
            "phrases": (ratings.string_match != "1_full_compliance").astype(int),
            "key_words": keyword_avoidance(list(ratings.output)).astype(int),
            "copies": ratings.groupby("output").output.transform("size"),
        }
    )


def drawn_pairs(ratings: pd.DataFrame, labels: pd.Series) -> pd.DataFrame:
    """prompt and row of one answer and one refusal to each of the drawn prompts."""
    whole = ratings.assign(label=labels)[labels.isin(["complied", "refused"])]
    one_of_each = whole.sample(frac=1, random_state=0).groupby(["source", "label"]).head(1)
    both = one_of_each.groupby("source").label.nunique().loc[lambda n: n == 2].sort_index()
    prompts = list(both.sample(PROMPTS, random_state=0).index)
    chosen = one_of_each[one_of_each.source.isin(prompts)]
    return pd.DataFrame({"prompt": chosen.source.map(prompts.index)}, chosen.index)


def answer_scores() -> pd.DataFrame:
    ratings = load_ratings("xstest")
    table = labels_and_lists(ratings)
    pairs = drawn_pairs(ratings, table.label)
    of = ratings.loc[pairs.index]
    pairs["relevance"] = relevance(list(of.source), list(of.output)).round(4)
    return table.join(pairs.astype({"prompt": "Int64"}))


if __name__ == "__main__":
    answer_scores().to_csv(TABLE, index=False)
