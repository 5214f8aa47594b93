"""People beside each other, and scores against the source beside scores against references:

    python nbs/making/agreement_people.py        # about five minutes on two cores; needs the corpora (TSTEVAL_DATA)

Writes tsteval/data/agreement_people.csv, which chapter 17 draws; no sentence of a set is in it.

analysis            one person: what one more rater would have beside the mean of all raters, whom a score is held
                    against too, from the mean correlation r of two of the k raters: sqrt(k) r / sqrt(1 + (k-1) r);
                    ceiling: the root of the reliability of the mean of all raters;
                    against: a score's correlation with the mean ratings; lead: that against references minus that
                    against the source, on the same outputs
data_set, criterion what people were asked of which set
score, against      for the last two analyses: the score, and the source, one reference, or ten (the best of the ten
                    for each output but for BLEU, which has a rule of its own for several)
measure             pearson: over all outputs; within: after each system's (or kind's) mean is taken away on both sides
value, low, high    with its 95% interval, from 2,000 drawings of sources (of the rows of one source together)
n, sources          outputs and sources

On lai2022 the person's rewrite is the reference, so it is left out there where scores are compared: 440 outputs.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from tsteval.bleu import sentence_bleu
from tsteval.cps import cosine
from tsteval.models.encoder import SentenceEncoder
from tsteval.overlap import chrf, meteor
from tsteval.people.coefficients import compare_correlations, correlation, within_correlation
from tsteval.people.raters import reliability
from tsteval.tables.ratings import load_ratings

N_BOOT = 2000
# what the authors of lai2022 stored, of either kind: its name here -> in their files
STORED = {"BERTScore": "bertscore", "BLEURT": "bleurt", "COMET": "comet-22"}
TARGET = Path(__file__).parents[2] / "tsteval" / "data" / "agreement_people.csv"


def centred(values: pd.DataFrame, systems: pd.Series) -> pd.DataFrame:
    return values - values.groupby(systems).transform("mean")


def one_person(answers: np.ndarray) -> float:
    """One more rater beside the mean of these, if they follow them as closely as any two of these do each other."""
    k = answers.shape[1]
    two = np.corrcoef(answers.T)[np.triu_indices(k, 1)].mean()
    return float(np.sqrt(k) * two / np.sqrt(1 + (k - 1) * two))


def of_people(data_set: str, criterion: str) -> list[dict]:
    part = load_ratings(data_set).query("criterion == @criterion").reset_index(drop=True)
    answers = part.filter(regex=r"^rating_\d+$").dropna(axis=1, how="all")
    members = list(part.groupby("source_id").indices.values())
    generator = np.random.default_rng(0)
    shape = {"data_set": data_set, "criterion": criterion, "n": len(part), "sources": len(members)}
    measures = {"one person": one_person, "ceiling": lambda table: reliability(table) ** 0.5}
    rows = []
    for measure in ("pearson", "within"):
        look = (answers if measure == "pearson" else centred(answers, part.system)).to_numpy()
        for analysis, of in measures.items():
            drawn = []
            for _ in range(N_BOOT // 4):
                picked = generator.integers(0, len(members), len(members))
                drawn.append(of(look[np.concatenate([members[code] for code in picked])]))
            low, high = np.percentile(drawn, [2.5, 97.5])
            found = {
                "analysis": analysis,
                "measure": measure,
                "value": of(look),
                "low": low,
                "high": high,
            }
            rows.append(shape | found)
    return rows


def columns_of(part: pd.DataFrame, against: list[list[str]], encoder) -> dict[str, np.ndarray]:
    """Each score of each output against its own list of texts."""
    outputs = list(part.output)
    texts = list(dict.fromkeys([*outputs, *(text for some in against for text in some)]))
    vectors = dict(zip(texts, encoder.encode(texts)))
    return {
        "BLEU": np.array([sentence_bleu(*pair).score for pair in zip(outputs, against)]),
        "chrF": np.asarray(chrf(outputs, against)),
        "METEOR": np.asarray(meteor(outputs, against)),
        "cosine": np.array(
            [
                max(cosine([vectors[output]] * len(some), [vectors[text] for text in some]))
                for output, some in zip(outputs, against)
            ]
        ),
    }


def told(analysis: str, value: float, measured) -> dict:
    return {"analysis": analysis, "value": value, "low": measured.low, "high": measured.high}


def of_scores(data_set: str, encoder) -> list[dict]:
    part = load_ratings(data_set).query("criterion == 'content'").dropna(subset=["rating"])
    if data_set == "lai2022":
        part = part[part.system != "ref"]
    part = part.reset_index(drop=True)
    texts = {"the source": [[text] for text in part.source]}
    texts["one reference"] = [list(some[:1]) for some in part.references]
    if part.references.map(len).min() > 1:
        texts["ten references"] = [list(some) for some in part.references]
    scores = {against: columns_of(part, some, encoder) for against, some in texts.items()}
    if data_set == "lai2022":
        for name, column in STORED.items():
            scores["the source"][name] = part[f"content_{column}"].to_numpy(float)
            scores["one reference"][name] = part[f"content_ref_{column}"].to_numpy(float)
    shape = {"data_set": data_set, "criterion": "content", "n": len(part)}
    shape["sources"] = part.source_id.nunique()
    rows = []
    for against, columns in scores.items():
        for score, values in columns.items():
            sides = pd.DataFrame({"a": values, "b": scores["the source"][score]})
            sides["rating"] = part.rating
            for measure in ("pearson", "within"):
                look = sides if measure == "pearson" else centred(sides, part.system)
                one = (
                    correlation(look.a, look.rating, groups=part.source_id)
                    if measure == "pearson"
                    else within_correlation(values, part.rating, part.system, groups=part.source_id)
                )
                kept = shape | {"score": score, "against": against, "measure": measure}
                rows.append(kept | told("against", one.value, one))
                if against == "the source":
                    continue
                lead = compare_correlations(look.a, look.b, look.rating, groups=part.source_id)
                rows.append(kept | told("lead", lead.difference, lead))
    return rows


def main() -> None:
    rows = []
    for place in (
        ("style_gap", "content"),
        ("lai2022", "content"),
        ("lai2022", "style"),
        ("lai2022", "naturalness"),
    ):
        rows += of_people(*place)
    encoder = SentenceEncoder.load()
    for data_set in ("lai2022", "simplicity_da"):
        rows += of_scores(data_set, encoder)
    columns = ["analysis", "data_set", "criterion", "score", "against", "measure"]
    columns += ["value", "low", "high", "n", "sources"]
    pd.DataFrame(rows)[columns].round(4).to_csv(TARGET, index=False)


if __name__ == "__main__":
    main()
