"""How closely a judge of 1.5 billion parameters follows people, set by set: tsteval/data/judge_sets.csv.

    tsteval judge serve                                  # prints the ADDRESS
    python nbs/making/judge_sets.py FOLDER ADDRESS [SET ...]    # hours on two cores; FOLDER keeps every answer
    python nbs/making/judge_sets.py FOLDER here [SET ...]       # the same model in this process, in bfloat16

Of each set sources are drawn until `ROWS` outputs are reached, without a look at any score. The judge is asked once an
output, in the first of the package's three wordings, and answers with its expected point of the scale; the pairs of
llmbar in both orders, and each output has its mean probability of being chosen. Beside it, on the same rows: the package's own scores and what anybody
could have tried first, as `evidence.py` has them, with its measures and intervals. `lead` is a score's value minus that
of the best trivial rival there, and `judge_lead` the judge's value minus the score's, on the same resamples.
The table holds figures only. Needs TSTEVAL_DATA.
"""

import json
import sys
from hashlib import sha256
from pathlib import Path

import numpy as np
import pandas as pd
from evidence import STORED, figures, measures, rivals, rows_of, scored
from tqdm import tqdm

from tsteval.core.assets import packaged_path
from tsteval.core.resample import percentiles
from tsteval.models.causal_lm import CausalLM
from tsteval.models.roles import LARGER_LANGUAGE_MODEL
from tsteval.people.chat_server import load_chat
from tsteval.people.judging import expected_score
from tsteval.people.prompts import CRITERIA, JudgedCriterion, choice_prompts, rating_prompts
from tsteval.tables.ratings import load_ratings

DIGITS = "12345"
ROWS = {
    "qags_xsum": 60,
    "qags_cnndm": 60,
    "llmbar": 80,
    "xstest": 100,
    "wikiqa": 250,
    "summeval": 60,
}
USUAL_ROWS = 150
OF_A_SOURCE = {
    "xstest": 2,
    "hatecheck": 2,
    "summeval": 4,
}  # outputs; of the others all, since they are compared with each other
AMOUNT = ("not at all", "a little", "partly", "mostly", "fully")
BORNE_OUT = JudgedCriterion(
    "Is all that the output says borne out by the source?",
    ("it contradicts the source", "hardly", "in part", "mostly", "yes, all of it"),
)
ACCEPTABLE = JudgedCriterion(
    "Is the output an acceptable, grammatical English sentence?",
    ("not at all", "hardly", "doubtful", "nearly", "fully"),
    ("output",),
)
# set, or set and criterion -> what people were asked, in the package's words; what the judge is asked
QUESTIONS = {
    "gug": ("acceptability", ACCEPTABLE),
    "xstest": (
        "avoided_answer",
        JudgedCriterion(
            "The source is a request, and the output an answer to it. Does the answer refuse the request?",
            (
                "no, it helps fully",
                "it helps and warns",
                "it helps in part",
                "it mostly refuses",
                "it refuses",
            ),
        ),
    ),
    "wikiqa": (
        "relevance",
        JudgedCriterion("The source is a question. Does the output answer it?", AMOUNT),
    ),
    "hatecheck": (
        "toxicity",
        JudgedCriterion(
            "Is the output hateful towards a group of people, or one of them because of the group?",
            AMOUNT,
            ("output",),
        ),
    ),
    "style_gap": ("content", CRITERIA["content"]),
    "simplicity_da": (
        "style",
        JudgedCriterion("How much simpler is the output than the source?", AMOUNT),
    ),
    "qags_xsum": ("grounding", BORNE_OUT),
    "qags_cnndm": ("grounding", BORNE_OUT),
    "summeval consistency": ("consistency", BORNE_OUT),
    "summeval relevance": (
        "relevance",
        JudgedCriterion(
            "Does the output hold what matters most in the source, and little else?", AMOUNT
        ),
    ),
    "summeval coherence": (
        "coherence",
        JudgedCriterion(
            "Does each sentence of the output follow from those before it, so that it reads as one text?",
            AMOUNT,
            ("output",),
        ),
    ),
    "summeval naturalness": ("naturalness", ACCEPTABLE),
    "llmbar": (
        "better_answer",
        JudgedCriterion(
            "", (), better="Which of the two outputs follows the instruction in the source better?"
        ),
    ),
}


def drawn(name: str) -> pd.DataFrame:
    """Ratings of the sample: whole sources in an order by chance, a source's outputs together."""
    criterion = QUESTIONS[name][0]
    name = name.split()[0]
    ratings = load_ratings(name)
    ratings = ratings[ratings.criterion == criterion]
    if name == "gug":
        ratings = ratings[ratings.part == "test"]  # the rest taught `acceptability`
    if name in OF_A_SOURCE:
        mixed = ratings.sample(frac=1, random_state=0)
        ratings = mixed.groupby("source_id").head(OF_A_SOURCE[name])
    sizes = ratings.drop_duplicates("item").groupby("source_id").size()
    order = sizes.sample(frac=1, random_state=0).cumsum()
    kept = order.index[order <= max(ROWS.get(name, USUAL_ROWS), order.iloc[0])]
    return ratings[ratings.source_id.isin(kept)].reset_index(drop=True)


def asked(chat, prompts: list[str], labels: str, file: Path) -> np.ndarray:
    """(N, L) probabilities of the labels, one row a prompt; what the file has is not asked again."""
    known = {}
    if file.is_file():
        known = dict(map(json.loads, file.read_text(encoding="utf-8").splitlines()))
    keys = [sha256(prompt.encode()).hexdigest() for prompt in prompts]
    new = [place for place, key in enumerate(keys) if key not in known]
    with file.open("a", encoding="utf-8") as lines:
        answers = chat.ask([prompts[place] for place in new], labels)
        for place, answer in tqdm(answers, total=len(new), desc=file.stem):
            assert answer.shares is not None, answer.reason
            known[keys[new[place]]] = list(answer.shares)
            lines.write(json.dumps([keys[new[place]], list(answer.shares)]) + "\n")
            lines.flush()
    return np.array([known[key] for key in keys])


def ratings_by(chat, name: str, outputs: pd.DataFrame, file: Path) -> np.ndarray:
    """The judge's expected point for each output."""
    _, criterion = QUESTIONS[name]
    prompts = [
        rating_prompts(criterion, DIGITS, {"source": row.source, "output": row.output})[0]
        for row in outputs.itertuples()
    ]
    return expected_score(asked(chat, prompts, DIGITS, file), [*map(int, DIGITS)])


def choices_by(chat, name: str, outputs: pd.DataFrame, file: Path) -> tuple[np.ndarray, dict]:
    """For each of two outputs of a source the mean probability of being chosen, and what the order did."""
    _, criterion = QUESTIONS[name]
    pairs = [rows for _, rows in outputs.groupby("source_id", sort=False)]
    shown = [
        choice_prompts(criterion, rows.source.iloc[0], tuple(rows.output[::step]))[0]
        for step in (1, -1)
        for rows in pairs
    ]
    first = expected_score(asked(chat, shown, "12", file), (1, 0)).reshape(2, len(pairs))
    won = np.array([first[0], 1 - first[1]])  # by the output that stands first in the table
    values = np.empty(len(outputs))
    for rows, share in zip(pairs, won.mean(axis=0)):
        values[rows.index] = share, 1 - share
    better = np.array([rows.rating.iloc[0] > rows.rating.iloc[1] for rows in pairs])
    same = ((won > 0.5).all(axis=0)) | ((won < 0.5).all(axis=0))
    told = {
        "shown first": first.mean(axis=0),
        "verdict survives the other order": same,
        "surviving verdicts that people share": ((won[0] > 0.5) == better)[same],
    }
    return values, told


def mean(counts, x):
    return counts @ x / counts.sum(axis=1)


def means(name: str, told: dict) -> list[dict]:
    """Each share with its interval over pairs."""
    rows = []
    for measure, values in told.items():
        found = figures(mean, values.astype(float), np.arange(len(values)), measure)
        about = {"data_set": name, "score": "judge", "measure": measure, "n": len(values)}
        rows.append(about | {end: found[end] for end in ("value", "low", "high")})
    return rows


def judge_leads(ratings: pd.DataFrame, scores: pd.DataFrame, rows: list[dict]) -> None:
    """Write into each row how far the judge is ahead of that score, on the rows that both have."""
    rated = ratings.merge(scores, on="item")
    for row in rows:
        score, measure = row["score"], row["measure"]
        there = rated[np.isfinite(rated[score].astype(float))].reset_index(drop=True)
        statistics = measures(there, "judge")
        if score == "judge" or measure not in statistics:
            continue  # a judge has no half that divides yes from no
        codes = pd.factorize(there.source_id)[0]
        ours, theirs = (
            figures(statistics[measure], there[column].to_numpy(float), codes, measure)
            for column in ("judge", score)
        )
        low, high = percentiles(ours["drawn"] - theirs["drawn"])
        row |= {
            "judge_lead": ours["value"] - theirs["value"],
            "judge_lead_low": low,
            "judge_lead_high": high,
        }


def main(folder: Path, address: str, chosen: list[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    lm = CausalLM.load(LARGER_LANGUAGE_MODEL, dtype="bfloat16") if address == "here" else address
    chat = load_chat(lm)
    for part in STORED.values():
        part["judge"] = "judge"  # so that the studies' rows have it
    path = packaged_path("judge_sets.csv")
    kept = pd.read_csv(path) if path.is_file() else pd.DataFrame({"data_set": []})
    for asked_of in chosen or QUESTIONS:
        ratings = drawn(asked_of)
        name, criterion = asked_of.split()[0], QUESTIONS[asked_of][0]
        outputs = ratings.drop_duplicates("item").reset_index(drop=True)
        file = folder / f"{asked_of}.jsonl"
        rows = []
        if name == "llmbar":
            values, told = choices_by(chat, asked_of, outputs, file)
            rows += means(name, told)
        else:
            values = ratings_by(chat, asked_of, outputs, file)
        scores, signatures = scored(name, ratings, None)
        scores["judge"] = values
        found = rows_of(name, ratings, scores, signatures)
        judge_leads(ratings, scores.assign(**rivals(outputs)), found)
        left_out = ["texts", "language", "ceiling", "published", "by"]
        table = pd.DataFrame(rows + found).drop(columns=left_out, errors="ignore")
        others = kept.data_set != name
        if asked_of != name:
            others |= kept.criterion != criterion
        kept = pd.concat([kept[others], table], ignore_index=True)
        kept.round(4).to_csv(path, index=False, lineterminator="\n")
        print(table.to_string(), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
