"""How closely two judges follow people on the formality rewrites of Lai et al. 2022: tsteval/data/judge_people.csv.

    python nbs/making/judge_people.py FOLDER ADDRESS    # an hour on two cores; FOLDER keeps every answer

Two language models, SmolLM2-135M-Instruct in this process and Qwen2.5-Coder-1.5B-Instruct at ADDRESS, where
`tsteval judge serve` put it, rate three outputs, drawn at random, of every third source (57 of 495); the chat
model's scores are those stored with the corpus, of all 495, asked for one criterion at a time (chat) and for several at
once (chat, all at once), and again of those 57 (sample). Beside them the length of the output and the words that it
shares with its source (F1 of ROUGE-1); of the 57 also the cosine of chapter 10, style-aware content and PenLP, and `lead`: a
judge's correlation less that of such a score on the same outputs, resampled together. Intervals of 95% come from resampling sources. The table holds figures only, a
row each: `analysis`, `judge`, `criterion`, `value`, `low`, `high`, `n`. Analyses: pooled, within systems (their means
taken away), to formal, to informal; length given people and likelihood given people, the partial correlation of a judge
with the output's number of characters and with its mean log-probability under the judge, at equal ratings; halo, the
correlation of the scores of style and of content with each other; mass, the mean probability on labels; and of pairs
compared for fluency in both orders, the first two outputs of each source in the sample: shown first, flips, and
agreement, the share of decided pairs in which people's ratings differ and go the same way. Needs lai2022
(TSTEVAL_DATA).
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd

from tsteval.agreement import compare_correlations
from tsteval.core.resample import bootstrap_interval, mean_of_sums, mean_statistics
from tsteval.models.causal_lm import CausalLM
from tsteval.people.chat_server import load_chat
from tsteval.people.coefficients import correlation, partial_correlation, within_correlation
from tsteval.people.judging import Judge
from tsteval.rouge import rouge
from tsteval.tables.lai2022 import load_lai2022
from tsteval.tables.ratings import load_ratings, stored_scores

FILE = Path(__file__).parents[2] / "tsteval" / "data" / "judge_people.csv"
CRITERIA = ("style", "content", "fluency")
SCORES = {  # criterion -> a score that asks no judge, and its column in agreement_scores.csv.gz
    "content": {"cosine": "cosine", "style-aware content": "style_aware"},
    "fluency": {"PenLP": "pen_lp"},
}
EVERY = 3
OUTPUTS = 3  # of the sources; of each source's outputs


def against_people(table: pd.DataFrame, scores, judge: str, criterion: str) -> list[dict]:
    """Correlations of one judge's scores with people's, pooled and apart."""
    people = table[f"human_{criterion}"]
    to_formal = table.to_formal.to_numpy()
    scores = np.asarray(scores, float)
    found = {
        "pooled": correlation(scores, people, groups=table.row),
        "within systems": within_correlation(scores, people, table.system, groups=table.row),
    }
    for name, rows in (("to formal", to_formal), ("to informal", ~to_formal)):
        found[name] = correlation(scores[rows], people[rows], groups=table.row[rows])
    if not judge.startswith(("length", "shared words")):
        found["length given people"] = partial_correlation(
            scores, table.output.str.len(), people, groups=table.row
        )
    return [told(name, judge, criterion, one) for name, one in found.items()]


def told(analysis: str, judge: str, criterion: str, found) -> dict:
    return {
        "analysis": analysis,
        "judge": judge,
        "criterion": criterion,
        "value": found.value,
        "low": found.low,
        "high": found.high,
        "n": found.n,
    }


def mean_told(analysis: str, judge: str, criterion: str, values, groups) -> dict:
    """The mean of values with its interval over sources."""
    values = np.asarray(values, float)
    sums = pd.DataFrame(mean_statistics(values)).groupby(np.asarray(groups)).sum().to_numpy()
    found = bootstrap_interval(sums, mean_of_sums)
    return {
        "analysis": analysis,
        "judge": judge,
        "criterion": criterion,
        "value": found.score,
        "low": found.low,
        "high": found.high,
        "n": len(values),
    }


def ratings_of(
    name: str, sample: pd.DataFrame, chat, folder: Path
) -> tuple[dict[str, pd.DataFrame], list[dict]]:
    """A language model's ratings of a sample, by criterion, and what is told of them."""
    styles = sample.to_formal.map({True: "formal", False: "informal"})
    found = {}
    rows = []
    lm = getattr(chat, "lm", None)  # a server's says nothing of texts that it didn't write
    likely = lm and [row.logprobs.mean() for row in lm.token_logprobs(sample.output)]
    for criterion in CRITERIA:
        judge = Judge(chat, criterion, store=folder / "answers.sqlite")
        found[criterion] = judge.score(sample.source, sample.output, styles, progress=True)
        assert (found[criterion].reason == "").all()
        expected = found[criterion].expected
        people = sample[f"human_{criterion}"]
        rows += against_people(sample, expected, name, criterion)
        if likely:
            partial = partial_correlation(expected, likely, people, groups=sample.row)
            rows.append(told("likelihood given people", name, criterion, partial))
        rows.append(mean_told("mass", name, criterion, found[criterion].label_mass, sample.row))
    return found, rows


def both_orders(name: str, sample: pd.DataFrame, chat, folder: Path) -> list[dict]:
    """Pairs of outputs of one source, compared for fluency in both orders."""
    pairs = [rows.index[:2] for _, rows in sample.groupby("row")]
    first, second = (
        sample.loc[[pair[side] for pair in pairs]].reset_index(drop=True) for side in (0, 1)
    )
    differ = first.output != second.output
    first = first[differ].reset_index(drop=True)
    second = second[differ].reset_index(drop=True)
    judge = Judge(chat, "fluency", store=folder / "answers.sqlite")
    found = judge.compare(first.source, first.output, second.output, progress=True)
    assert (found.reason == "").all()
    decided = found.verdict != "tie"
    gap = np.sign(first.human_fluency - second.human_fluency)
    agree = ((found.verdict == "first") == (gap > 0))[decided & (gap != 0)]
    tell = [
        ("shown first", found.shown_first, first.row),
        ("flips", ~decided, first.row),
        ("agreement", agree, first.row[agree.index]),
    ]
    return [
        mean_told(analysis, name, "fluency", values, groups)
        for analysis, values, groups in tell
        if len(values)
    ]


def beside_scores(sample: pd.DataFrame, found: dict) -> list[dict]:
    """The package's own scores of the sample, and how far each judge is ahead of them on the same outputs."""
    ratings = load_ratings("lai2022")
    outputs = ratings.drop_duplicates("item").reset_index(drop=True)
    stored = stored_scores("lai2022", ratings).set_index("item").loc[outputs.item].reset_index()
    keys = ["system", "source", "output"]
    columns = [column for part in SCORES.values() for column in part.values()]
    known = outputs[keys].join(stored[columns]).drop_duplicates(keys)
    scores = sample[keys].merge(known, how="left", on=keys)
    assert len(scores) == len(sample)
    rows = []
    for criterion, names in SCORES.items():
        people = sample[f"human_{criterion}"]
        for name, column in names.items():
            rows += against_people(sample, scores[column], f"{name} (sample)", criterion)
            for judge, by_criterion in found.items():
                lead = compare_correlations(
                    by_criterion[criterion].expected, scores[column], people, groups=sample.row
                )
                rows.append(
                    {
                        "analysis": f"lead over {name}",
                        "judge": judge,
                        "criterion": criterion,
                        "value": lead.score_a - lead.score_b,
                        "low": lead.low,
                        "high": lead.high,
                        "n": len(sample),
                    }
                )
    return rows


def main(folder: Path, address: str):
    table = load_lai2022()
    sample = (
        table[table.row % EVERY == 0]
        .groupby("row")
        .sample(OUTPUTS, random_state=0)
        .reset_index(drop=True)
    )
    rows = []
    found = {}
    judges = {"SmolLM2": load_chat(CausalLM.load()), "Qwen 1.5B": load_chat(address)}
    for name, chat in judges.items():
        found[name], correlations = ratings_of(name, sample, chat, folder)
        rows += correlations + both_orders(name, sample, chat, folder)
    rows += beside_scores(sample, found)
    stored = {"chat": "{}_chatgpt", "chat, all at once": "{}_chatgpt_multi"}
    for part, name in ((sample, " (sample)"), (table, "")):
        shared = rouge(list(part.output), list(part.source), kinds=("rouge1",)).rouge1
        for criterion in CRITERIA:
            chats = {judge: part[column.format(criterion)] for judge, column in stored.items()}
            for judge, scores in {
                "length": part.output.str.len(),
                "shared words": shared,
                **chats,
            }.items():
                rows += against_people(part, scores, judge + name, criterion)
    for judge, column in {"people": "human_{}", **stored}.items():
        rows.append(
            told(
                "halo",
                judge,
                "style, content",
                correlation(
                    table[column.format("style")], table[column.format("content")], groups=table.row
                ),
            )
        )
    for name, by_criterion in found.items():
        ratings = (by_criterion[criterion].expected for criterion in ("style", "content"))
        halo = correlation(*ratings, groups=sample.row)
        rows.append(told("halo", name, "style, content", halo))
    pd.DataFrame(rows).round(4).to_csv(FILE, index=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
