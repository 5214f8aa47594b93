"""Score the contrasts and four sets of rated rewrites by every measure of content, fit the weights, and write the
tables.

    python nbs/making/content_scores.py FOLDER [weights | SET ...]    # half an hour on two cores; needs the corpora
    style_gap, lai2022, mir2019, simplicity_da

FOLDER keeps the evidence of each set between runs; empty it when a model changes. With `weights` only the weights are
fitted, from the part of the contrasts that is meant for it; with names of sets only their rows are made anew. Written: tsteval/data/content_weights.json,
content_contrasts.csv (scores of our own rewrites) and content_agreement.csv (correlations with people's ratings, their
differences from that of the cosine, and what the whole score has over its parts without the classifier).
"""

import json
import os
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import minimize
from scipy.special import expit

from tsteval.alignment import bert_score, word_movers_distance
from tsteval.bleu import sentence_bleu
from tsteval.content import CONTENT_MODEL, EVIDENCE, TASKS, content_evidence, split_contrasts
from tsteval.core.assets import packaged_path
from tsteval.cps import content_preservation
from tsteval.models.causal_lm import CausalLM, task_tokens
from tsteval.overlap import chrf, meteor
from tsteval.style import StyleClassifier
from tsteval.tables.mir2019 import load_mir2019
from tsteval.tables.pairs import load_contrasts
from tsteval.tables.ratings import load_ratings

RESAMPLES = 1000
PENALTY = 1.0
MIR2019_CHOSEN = (
    "lambda_1",
    "lambda_10",
    "rho_0_1",
    "rho_1",
)  # two of the settings of each system, to spare time
CORPORA = Path(os.environ.get("TSTEVAL_DATA", "data"))


def contrasts() -> pd.DataFrame:
    table = split_contrasts(load_contrasts())
    kinds = [
        table.assign(
            output=table[kind],
            kept=float(kind == "style_only"),
            change=table.change if kind == "changed" else "none",
        )
        for kind in ("style_only", "changed")
    ]
    return pd.concat(kinds, ignore_index=True).rename(columns={"kept": "rating"})


def style_gap() -> pd.DataFrame:
    table = pd.concat(
        [pd.read_csv(path) for path in sorted((CORPORA / "style_gap").glob("*.csv"))],
        ignore_index=True,
    )
    return pd.DataFrame(
        {
            "source": table.input,
            "output": table.output,
            "style": table.style_to,
            "rating": table.annoB_mean,
            "change": table.intention.replace("style", "none"),
        }
    )


def lai2022() -> pd.DataFrame:
    """Outputs with the mean of two ratings; the direction of each source is what the formality classifier says of
    source and reference."""
    lines = (CORPORA / "lai2022" / "content.src.json").read_text(encoding="utf-8").splitlines()[:55]
    items = [json.loads(line) for line in lines]
    classifier = StyleClassifier.load("formality-minilm")
    before, after = (
        classifier.predict_proba([item[side] for item in items])[:, 1] for side in ("src", "ref")
    )
    rows = [
        {
            "source": item["src"],
            "output": system["out"],
            "style": "formal" if up else "informal",
            "rating": (system["human_1"] + system["human_2"]) / 2,
            "BERTScore, stored": system["bertscore"],
            "COMET-22, stored": system["comet-22"],
            "BLEURT, stored": system["bleurt"],
            "chat model, stored": system["chatgpt"],
        }
        for item, up in zip(items, after > before)
        for system in item["sys"].values()
    ]
    return pd.DataFrame(rows)


def mir2019() -> pd.DataFrame:
    table = load_mir2019()
    table = table[table.setting.isin(MIR2019_CHOSEN)].reset_index(drop=True)
    return pd.DataFrame(
        {
            "source": table.source,
            "output": table.output,
            "style": np.where(table.target == 1, "positive", "negative"),
            "rating": table.human_content,
            "system": table.system,
        }
    )


def simplicity_da() -> pd.DataFrame:
    """Wikipedia sentences that systems and people made simpler. No weight and no choice of the score was made with
    these ratings in view."""
    rated = load_ratings("simplicity_da").query("criterion == 'content'")
    return rated[["source", "output", "rating"]].assign(style="simple").reset_index(drop=True)


SETS = {
    "contrasts": contrasts,
    "style_gap": style_gap,
    "lai2022": lai2022,
    "mir2019": mir2019,
    "simplicity_da": simplicity_da,
}


def evidence_of(name: str, table: pd.DataFrame, folder: Path) -> pd.DataFrame:
    """The evidence for each row of a set; what FOLDER holds is read, but for the classifier's part, which is quick."""
    path = folder / f"{name}.csv"
    classifier = StyleClassifier.load(CONTENT_MODEL)
    if not path.exists():
        content_evidence(
            table.source, table.output, table["style"], classifier=classifier, progress=True
        )[0].to_csv(path, index=False)
    logits = classifier.predict_logits(table.source, table.output)
    return pd.read_csv(path).assign(classifier=logits[:, 1] - logits[:, 0])


def paper_score(table: pd.DataFrame) -> np.ndarray:
    """Mean over tokens of the highest log-probability under three tasks. Source: Pauli et al. 2025."""
    lm = CausalLM.load()
    tasks = (TASKS[0], "Paraphrase the following text:", TASKS[1])
    told = [
        lm.token_logprobs(
            table.output,
            contexts=task_tokens(
                lm, [task.format(style=style) for style in table["style"]], table.source
            ),
            batch_size=16,
        )
        for task in tasks
    ]
    return np.array(
        [np.max([scores.logprobs for scores in row], axis=0).mean() for row in zip(*told)]
    )


def other_scores(table: pd.DataFrame) -> dict[str, np.ndarray]:
    """What earlier chapters have, each output against its source; more is always better."""
    source = list(table.source)
    output = list(table.output)
    words = np.array([[len(text.split()) for text in pair] for pair in zip(output, source)])
    return {
        "longer output": np.log((words[:, 0] + 1) / (words[:, 1] + 1)),
        "equal length": -np.abs(np.log((words[:, 0] + 1) / (words[:, 1] + 1))),
        "BLEU": np.array([sentence_bleu(*pair).score for pair in zip(output, source)]),
        "chrF": chrf(output, source),
        "METEOR": meteor(output, source),
        "WMD": -word_movers_distance(output, source),
        "BERTScore": bert_score(output, source).f1.to_numpy(),
    }


def fit_weights(
    evidence: pd.DataFrame, kept: np.ndarray, names: tuple[str, ...] = EVIDENCE
) -> dict[str, float]:
    """Logistic regression with a penalty on the weights of standardised evidence; given back for evidence as it is."""
    x = evidence[list(names)].to_numpy(float)
    mean = x.mean(axis=0)
    spread = x.std(axis=0)
    z = (x - mean) / spread
    sign = 2 * kept - 1

    def loss(weights):
        return (
            np.logaddexp(0, -sign * (z @ weights[1:] + weights[0])).sum()
            + PENALTY * (weights[1:] ** 2).sum()
        )

    constant, *found = minimize(loss, np.zeros(len(names) + 1)).x
    found = np.array(found) / spread
    return {"constant": float(constant - found @ mean)} | dict(zip(names, map(float, found)))


def weighted(evidence: pd.DataFrame, weights: dict[str, float]) -> np.ndarray:
    return expit(
        weights["constant"]
        + sum(weight * evidence[name] for name, weight in weights.items() if name != "constant")
    ).to_numpy()


CANDIDATES = {
    "two directions": ("support", "source_support"),
    "links": ("support", "source_support", "regret"),
    "cosine and links": ("cosine", "support", "source_support", "regret"),
    "classifier alone": ("classifier",),
    "cosine and classifier": ("cosine", "classifier"),
    "all": EVIDENCE,
}
WITHOUT_CLASSIFIER = "candidate: cosine and links"


def correlations(
    columns: np.ndarray, rating: np.ndarray
) -> np.ndarray:  # (n, K), (n,) -> (K,) Pearson
    x = columns - columns.mean(axis=0)
    y = rating - rating.mean()
    return (x * y[:, None]).sum(axis=0) / np.sqrt((x**2).sum(axis=0) * (y**2).sum())


def areas(columns: np.ndarray, kept: np.ndarray) -> np.ndarray:  # (n, K), (n,) -> (K,) AUC
    ranks = pd.DataFrame(columns).rank().to_numpy()
    return (ranks[kept].mean(axis=0) - (kept.sum() + 1) / 2) / (~kept).sum()


def measures(
    columns: np.ndarray, table: pd.DataFrame, names: list[str], rival: str
) -> dict[tuple[str, str], np.ndarray]:
    """(part, measure) -> a value for each score; the rival is the score that the others are compared with."""
    rating = table.rating.to_numpy(float)
    style = table["style"].to_numpy()
    found = {
        ("pooled", "pearson"): correlations(columns, rating),
        ("pooled", "spearman"): correlations(
            pd.DataFrame(columns).rank().to_numpy(), table.rating.rank().to_numpy()
        ),
    }
    lead = found["pooled", "pearson"] - found["pooled", "pearson"][names.index(rival)]
    found["pooled", f"minus {rival.removeprefix('candidate: ')}"] = lead
    parts = {part: style == part for part in sorted(set(style))} if "change" in table else {}
    found |= {
        (part, "pearson"): correlations(columns[rows], rating[rows]) for part, rows in parts.items()
    }
    if parts:
        found["mean of styles", "pearson"] = np.mean(
            [found[part, "pearson"] for part in parts], axis=0
        )
        found["pooled", "auc"] = areas(columns, (table.change == "none").to_numpy())
    if "system" in table:
        found |= {
            (part, "pearson"): correlations(columns[rows], rating[rows])
            for part in ("ARAE", "CAAE")
            if (rows := (table.system == part).to_numpy()).any()
        }
    return found


def with_intervals(
    name: str, scores: dict[str, np.ndarray], table: pd.DataFrame, rival: str = "cosine"
) -> list[dict]:
    """Every measure of every score, with the 95% interval from resampling sources."""
    names = list(scores)
    columns = np.column_stack(list(scores.values())).astype(float)
    groups = list(table.groupby("source").indices.values())
    random = np.random.default_rng(0)
    drawn = []
    with np.errstate(invalid="ignore"):
        for _ in range(RESAMPLES):
            rows = np.concatenate(
                [groups[place] for place in random.integers(len(groups), size=len(groups))]
            )
            drawn.append(measures(columns[rows], table.iloc[rows], names, rival))
    result = []
    for key, values in measures(columns, table, names, rival).items():
        low, high = np.nanquantile(
            [draw[key] for draw in drawn if key in draw], (0.025, 0.975), axis=0
        )
        result += [
            {
                "data_set": name,
                "part": key[0],
                "measure": key[1],
                "score": score,
                "value": values[place],
                "low": low[place],
                "high": high[place],
                "n": len(table),
                "sources": len(groups),
            }
            for place, score in enumerate(names)
        ]
    return result


def without_classifier(name: str, scores: dict[str, np.ndarray], table: pd.DataFrame) -> list[dict]:
    """How far the correlation of the score, and of its sum alone, lies above that of the parts without classifier."""
    asked = {
        label: scores[label] for label in (WITHOUT_CLASSIFIER, "candidate: all", "style-aware")
    }
    rows = with_intervals(name, asked, table, WITHOUT_CLASSIFIER)
    return [
        row
        for row in rows
        if row["measure"].startswith("minus") and row["score"] != WITHOUT_CLASSIFIER
    ]


def chosen_elsewhere(
    candidates: dict[str, np.ndarray], table: pd.DataFrame
) -> tuple[np.ndarray, dict[str, str]]:
    """Each style's scores by the candidate that is best, by the mean of Pearson, on the other styles."""
    names = list(candidates)
    columns = np.column_stack(list(candidates.values()))
    style = table["style"].to_numpy()
    rating = table.rating.to_numpy(float)
    result = np.zeros(len(table))
    chosen = {}
    for held in sorted(set(style)):
        others = [
            correlations(columns[style == part], rating[style == part])
            for part in sorted(set(style) - {held})
        ]
        best = int(np.argmax(np.mean(others, axis=0)))
        chosen[held], result[style == held] = names[best], columns[style == held, best]
    return result, chosen


def main(folder: Path, asked: list[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    own = contrasts()
    evidence = evidence_of("contrasts", own, folder)
    fit = (own.split == "fit").to_numpy()
    fitted = {
        name: fit_weights(evidence[fit], own.rating[fit].to_numpy(), part)
        for name, part in CANDIDATES.items()
    }
    path = packaged_path("content_weights.json")
    weights = json.loads(path.read_text(encoding="utf-8"))
    weights["all-MiniLM-L6-v2"] = {name: round(value, 4) for name, value in fitted["all"].items()}
    path.write_text(json.dumps(weights, indent=1) + "\n", encoding="utf-8")
    if asked == ["weights"]:
        return
    agreement = []
    for name in asked or SETS:
        table = SETS[name]()
        known = table.rating.notna().to_numpy()
        evidence = evidence_of(name, table, folder)[known].reset_index(drop=True)
        table = table[known].reset_index(drop=True)
        scores = other_scores(table) | {"cosine": evidence.cosine.to_numpy()}
        if name in ("contrasts", "style_gap"):
            scores |= {
                "CPS": content_preservation(
                    table.source, table.output, strategy="pad"
                ).cps.to_numpy(),
                "Pauli et al.": paper_score(table),
            }
        scores |= {
            f"evidence: {part}": evidence[part].to_numpy() for part in EVIDENCE if part != "cosine"
        }
        candidates = {label: weighted(evidence, weights) for label, weights in fitted.items()}
        scores |= {f"candidate: {label}": values for label, values in candidates.items()}
        scores["style-aware"] = np.sqrt(evidence.cosine.to_numpy().clip(0) * candidates["all"])
        if name == "style_gap":
            scores["chosen on other styles"], chosen = chosen_elsewhere(
                candidates | {"cosine": evidence.cosine.to_numpy()}, table
            )
            print("chosen without each style:", chosen, flush=True)
        scores |= {
            column: table[column].to_numpy() for column in table if column.endswith("stored")
        }
        if name == "contrasts":
            pd.concat(
                [table[["id", "style", "change", "split", "rating"]], pd.DataFrame(scores)], axis=1
            ).round(4).to_csv(packaged_path("content_contrasts.csv"), index=False)
            test = (table.split == "test").to_numpy()
            table = table[test].reset_index(drop=True)
            scores = {label: values[test] for label, values in scores.items()}
        agreement += with_intervals(name, scores, table)
        if name in ("style_gap", "lai2022"):
            agreement += without_classifier(name, scores, table)
        print(name, "done", flush=True)
    path, made = packaged_path("content_agreement.csv"), pd.DataFrame(agreement).round(4)
    if asked:
        stored = pd.read_csv(path)
        made = pd.concat([stored[~stored.data_set.isin(asked)], made])
    made.to_csv(path, index=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
