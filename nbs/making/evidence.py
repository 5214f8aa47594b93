"""Every score beside people: python nbs/making/evidence.py [FOLDER] [SET ...]

Writes tsteval/data/evidence.csv, a row a figure and no sentence of a set:

data_set, texts, language   what was scored
criterion                   what people were asked, in the package's words
score                       a column of a metric, or a rival: what anybody could have tried first
measure                     pearson: with mean ratings, over all outputs; within: the same after each system's mean is
                            taken away on both sides; systems: of systems' means; source: Spearman within a source,
                            averaged; spearman: of ranks, over all; auc, map, accuracy: where people gave labels
value, low, high            with its 95% interval over sources
n, sources, systems            sources: groups of rows that depend on each other
rival, rival_value          the best trivial rival there, its sign turned so that it helps
lead, lead_low, lead_high   value minus rival_value, on the same resamples
ceiling                     the root of the ratings' reliability, where raters are known one by one: no score can go higher
signature                   how the score was made
published, by               what others found with the same score on the whole set

Sets that are not on this machine are left out and their rows kept. FOLDER keeps scores between runs. The language models
take hours on two cores.
"""

import functools
import math
import re
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from tsteval.core.assets import AssetError, packaged_path
from tsteval.core.metric import find_metric
from tsteval.core.resample import percentiles, resample_counts
from tsteval.evaluation import evaluate
from tsteval.models.roles import Models
from tsteval.people.coefficients import (
    coefficients,
    fisher_ends,
    weighted_pearson,
    within_coefficients,
)
from tsteval.people.labels import average_precision, weighted_auc
from tsteval.people.raters import rater_table
from tsteval.people.study import rated_outputs
from tsteval.report.evidence import score_name
from tsteval.tables.outputs import prepare_pairs
from tsteval.tables.ratings import load_ratings, stored_scores

N_BOOT = 1000
LOWER = {"wmd", "perplexity", "ter"}  # a low score is a good one
OVERLAP = ["bleu", "rouge", "chrf", "meteor"]
MATCHED = [*OVERLAP, "bert_score", "wmd"]
LM = ["fluency", "perplexity"]
TO_SOURCE = ["chrf:against=source", "meteor:against=source", "bert_score:against=source", "cps"]

# set -> what its texts are, the metrics, and for a metric that looks at an input the column that is one
SETS: dict[str, tuple[str, list[str], str | None]] = {
    "wmt23_mqm_zhen": ("translations of news", [*MATCHED, "ter"], None),
    "ted21_mqm_zhen": ("translations of talks", [*MATCHED, "ter"], None),
    "summeval": ("summaries of news", [*MATCHED, *LM, "grounded_in_context"], "source"),
    "realsumm": ("summaries of news", OVERLAP, None),
    "usr_topicalchat": ("replies in a chat", [*MATCHED, *LM, "relevance"], "source"),
    "usr_personachat": ("replies in a chat", [*MATCHED, *LM, "relevance"], "source"),
    "grade_dialogue": ("replies in a chat", [*MATCHED, "relevance"], "source"),
    "gug": ("sentences of learners", [*LM, "acceptability"], None),
    "cola": ("examples of linguists", [*LM, "acceptability"], None),
    "simplicity_da": ("simplified sentences", [*MATCHED, *TO_SOURCE, *LM, "readability"], None),
    "simpeval_past": ("simplified sentences", [*MATCHED, "ter", *TO_SOURCE], None),
    "paradetox": ("comments and their rewrites", ["toxicity"], None),
    "hatecheck": ("templates of hate and its contrasts", ["toxicity"], None),
    "clear": ("excerpts for schools", ["readability"], None),
    "onestop": ("articles at three levels", ["readability"], None),
    "xstest": ("answers of language models", [], None),  # the model read them all: see `elsewhere`
    "wikiqa": ("sentences of an encyclopedia", ["relevance"], "source"),
    "llmbar": ("answers of language models", ["relevance"], "source"),
    "qags_cnndm": (
        "summaries of news that copy",
        ["grounded_in_context", "grounded_in_context:shares=facts"],
        "source",
    ),
    "qags_xsum": (
        "summaries of news that retell",
        ["grounded_in_context", "grounded_in_context:shares=facts"],
        "source",
    ),
    "faithbench": (
        "summaries chosen to be hard",
        ["grounded_in_context", "grounded_in_context:shares=facts"],
        "source",
    ),
}
STUDIES = {  # scored by agreement_scores.py
    "mir2019": "reviews with their sentiment turned",
    "lai2022": "sentences made formal or informal",
    "style_gap": "rewrites made to mislead",
    "msr_compression": "shortened sentences",
}
STORED = {  # criterion -> the package's column -> its name in agreement_scores.csv.gz
    "style": {"sti": "sti", "normalized_intensity": "sti_normalized"},
    "content": {
        "cps": "cosine",
        "bert_score:against=source": "bert_score",
        "chrf:against=source": "chrf",
        "meteor:against=source": "meteor",
        "bleu, of the source": "bleu",
        "content": "style_aware",
    },
    "naturalness": {
        "pen_lp": "pen_lp",
        "nce": "nce",
        "norm_lp": "norm_lp",
        "logprob": "logprob",
        "amelioration_1": "amelioration_1",
        "amelioration_2": "amelioration_2",
    },
}
# which rows of a set a trained score has not seen, by set and score
HELD_OUT: dict[tuple[str, str], Callable[[pd.DataFrame], pd.Series]] = {
    ("gug", "acceptability"): lambda table: table.part == "test",
    ("cola", "acceptability"): lambda table: table.part == "out_of_domain_dev",
}
# scores of which one half divides yes from no
DECISIONS = ("avoided_answer", "toxicity", "acceptability", "list of phrases")
PUBLISHED = {  # data set, criterion, score, measure -> value, by whom
    ("summeval", "coherence", "rouge1, mean of references", "source"): (0.167, "Yuan et al. 2021"),
    ("summeval", "consistency", "rouge1, mean of references", "source"): (
        0.160,
        "Yuan et al. 2021",
    ),
    ("summeval", "naturalness", "rouge1, mean of references", "source"): (
        0.115,
        "Yuan et al. 2021",
    ),
    ("summeval", "relevance", "rouge1, mean of references", "source"): (0.326, "Yuan et al. 2021"),
    ("realsumm", "coverage", "rouge1, recall", "source"): (0.4975, "Yuan et al. 2021"),
    ("simplicity_da", "content", "bleu", "pearson"): (0.610, "Alva-Manchego et al. 2021"),
    ("simplicity_da", "naturalness", "bleu", "pearson"): (0.487, "Alva-Manchego et al. 2021"),
    ("simplicity_da", "style", "bleu", "pearson"): (0.496, "Alva-Manchego et al. 2021"),
    ("xstest", "avoided_answer", "list of phrases", "accuracy"): (0.884, "Röttger et al. 2024"),
    ("clear", "readability", "the publisher's Flesch", "pearson"): (0.547, "Crossley et al. 2022"),
}


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def in_common(texts, others) -> np.ndarray:
    """Share of a text's words that stand in another, anywhere."""
    values = []
    for text, other in zip(texts, others):
        known = set(words(other))
        values.append(np.mean([word in known for word in words(text)] or [0.0]))
    return np.array(values)


def of_interest(name: str, ratings: pd.DataFrame) -> pd.DataFrame:
    """All rows; of CoLA, whose language model takes an hour, those of other publications and a thousand more."""
    if name != "cola":
        return ratings
    drawn = ratings[ratings.part != "out_of_domain_dev"].sample(1000, random_state=0)
    return ratings[(ratings.part == "out_of_domain_dev") | ratings.item.isin(drawn.item)]


def rivals(outputs: pd.DataFrame) -> dict[str, np.ndarray]:
    """What anybody could have tried first: (N,) numbers by name."""
    output = outputs.output
    tried = {"length": np.array([len(words(text)) for text in output], float)}
    if outputs.source.astype(bool).any():
        tried["words in common with the source"] = in_common(output, outputs.source)
    name = outputs.data_set.iloc[0]
    if name == "onestop":
        del tried["length"]  # an article has a length for each level: that is how it was made
    if name in ("clear", "onestop"):
        tried["letters a word"] = np.array([np.mean([*map(len, words(text))]) for text in output])
    if name == "clear":
        tried["the publisher's Flesch"] = outputs.flesch.to_numpy(float)
    if name in ("hatecheck", "paradetox"):
        tried["the word you"] = np.array(
            [{"you", "u", "your"} & {*words(t)} != set() for t in output], float
        )
    if name == "xstest":
        tried["list of phrases"] = (outputs.string_match != "1_full_compliance").to_numpy(float)
    return tried


def scored(name: str, ratings: pd.DataFrame, cache: Path | None) -> tuple[pd.DataFrame, dict]:
    """One row an output: item and a column a score; and each score's signature."""
    outputs = ratings.drop_duplicates("item").reset_index(drop=True)
    if name in STUDIES:
        stored = stored_scores(name, ratings).set_index("item").loc[outputs.item]
        columns = {column: old for part in STORED.values() for column, old in part.items()}
        there = {column: stored[old].to_numpy() for column, old in columns.items() if old in stored}
        signed = study_signatures()
        return pd.DataFrame({"item": outputs.item, **there}), {c: signed.get(c, "") for c in there}
    _, metrics, asked = SETS[name]
    table = rated_outputs(ratings)[lambda rows: [c for c in rows if c not in ("data_set", "item")]]
    if asked:
        table = table.assign(input=outputs[asked])
    if not any(
        metric.split(":")[0] in ("cps", "chrf", "content") or "source" in metric
        for metric in metrics
    ):
        table = table.drop(columns="source", errors="ignore")
    columns, signatures = {}, {}
    # those without options in one go, since they share what the models read
    plain = [metric for metric in metrics if ":" not in metric]
    for chosen in [plain] * bool(plain) + [[metric] for metric in metrics if ":" in metric]:
        print("   ", name, *chosen, flush=True)
        result = evaluate(table, chosen, n_boot=2, empty="skip", score_cache=cache)
        suffix = "".join(f":{metric.split(':', 1)[1]}" for metric in chosen if ":" in metric)
        for metric in result.metrics:
            for column in metric.columns:
                columns[column + suffix] = result.per_pair[column].to_numpy()
                signatures[column + suffix] = result.signatures[metric.name]
    if name in ("summeval", "realsumm"):
        columns |= rouge_as_published(name, outputs)
    return pd.DataFrame({"item": outputs.item, **columns}), signatures


@functools.cache
def study_signatures() -> dict[str, str]:
    """How agreement_scores.py made the scores that any table can be given, with the models of the package: the judge
    of a style differs from study to study, and the ameliorations have a model of their own there."""
    metrics = [
        *map(find_metric, ("cps", "content", "fluency")),
        *(find_metric(f"{name}:against=source") for name in ("bert_score", "chrf", "meteor")),
    ]
    rows = prepare_pairs([{"source": "The mill stands.", "output": "A mill stands."}])
    models = Models()
    return {
        score_name(metric, column): metric.sign(rows, models)
        for metric in metrics
        for column in metric.columns
    }


def rouge_as_published(name: str, outputs: pd.DataFrame) -> dict[str, np.ndarray]:
    """ROUGE-1 as others report it on these sets: a mean over references, or recall; by Google's library."""
    from rouge_score.rouge_scorer import RougeScorer

    score = RougeScorer(["rouge1"], use_stemmer=True).score
    pairs = zip(outputs.output, outputs.references)
    per_row = [[score(text, output)["rouge1"] for text in texts] for output, texts in pairs]
    if name == "realsumm":
        return {"rouge1, recall": np.array([found[0].recall for found in per_row])}
    means = [np.mean([found.fmeasure for found in row]) for row in per_row]
    return {"rouge1, mean of references": np.array(means)}


# ---- measures: (B, N) counts of resamples -> (B,) values


def of_systems(counts, x, y, systems):
    member = np.eye(systems.max() + 1)[systems]
    drawn = np.maximum(counts @ member, 1)
    means = [(counts @ (member * side[:, None])) / drawn for side in (x, y)]
    return np.array(
        [
            np.corrcoef(*pair)[0, 1] if min(map(np.std, pair)) > 1e-12 else np.nan
            for pair in zip(*means)
        ]
    )


def of_sources(counts, x, y, sources):
    """Spearman's correlation within each source, averaged over those that were drawn."""
    ones = np.ones((1, len(x)))
    values = np.full(sources.max() + 1, np.nan)
    weights = np.zeros((len(counts), len(values)))
    for source in range(len(values)):
        rows = sources == source
        weights[:, source] = counts[:, rows].mean(axis=1)
        if rows.sum() > 2:
            values[source] = coefficients(ones[:, rows], x[rows], y[rows], "spearman")[0]
    there = np.isfinite(values)
    return weights[:, there] @ values[there] / weights[:, there].sum(axis=1)


def of_questions(counts, x, y, sources):
    labels = y > 0.5
    asked = [source for source in range(sources.max() + 1) if labels[sources == source].any()]
    values = np.array([average_precision(x[sources == s], labels[sources == s]) for s in asked])
    weights = np.stack([counts[:, sources == s].mean(axis=1) for s in asked], axis=1)
    return weights @ values / weights.sum(axis=1)


def of_decisions(counts, x, y):
    return counts @ ((x > 0.5) == (y > 0.5)) / counts.sum(axis=1)


def measures(rated: pd.DataFrame, score: str) -> dict[str, Callable]:
    sources, systems = (pd.factorize(rated[key])[0] for key in ("source_id", "system"))
    y = rated.rating.to_numpy(float)
    name, criterion = rated.data_set.iloc[0], rated.criterion.iloc[0]
    labelled = (
        criterion in ("toxicity", "grounding", "avoided_answer", "relevance", "better_answer")
        or name == "cola"
    )
    if labelled and name != "summeval":
        chosen = {"auc": lambda counts, x: weighted_auc(counts, x, y > 0.5)}
        if name == "wikiqa":
            chosen = {"map": lambda counts, x: of_questions(counts, x, y, sources)}
        if name == "llmbar":
            chosen = {"accuracy": lambda counts, x: of_questions(counts, x, y, sources) * 2 - 1}
        if score in DECISIONS:
            chosen["accuracy"] = lambda counts, x: of_decisions(counts, x, y)
        return chosen
    chosen = {"pearson": lambda counts, x: weighted_pearson(counts, x, y)}
    if systems.max() > 0:
        chosen["within"] = lambda counts, x: within_coefficients(counts, x, y, systems)
    if systems.max() > 4 and name != "grade_dialogue":
        chosen["systems"] = lambda counts, x: of_systems(counts, x, y, systems)
    if name in ("summeval", "realsumm", "onestop"):
        chosen["source"] = lambda counts, x: of_sources(counts, x, y, sources)
    return chosen


def rows_of(name: str, ratings: pd.DataFrame, scores: pd.DataFrame, signatures: dict) -> list[dict]:
    texts = SETS[name][0] if name in SETS else STUDIES[name]
    outputs = ratings.drop_duplicates("item").reset_index(drop=True)
    tried = pd.DataFrame({"item": outputs.item, **rivals(outputs)})
    ceilings = rater_table(ratings).set_index("criterion").ceiling
    rows = []
    for criterion, part in ratings.groupby("criterion", sort=False):
        rated = part.merge(scores, on="item").merge(tried, on="item")
        names = [
            column
            for column in scores.columns[1:]
            if name not in STUDIES or column in STORED.get(criterion, ())
        ]
        best: dict[tuple, tuple | None] = {}  # measure and outputs -> the best rival there
        for score in [*names, *tried.columns[1:]]:
            if score in tried and name in STUDIES and criterion == "style":
                continue
            there = rated[np.isfinite(rated[score].astype(float))]
            if held := HELD_OUT.get((name, score)):
                there = there[held(there)]
            there = there.reset_index(drop=True)
            if len(there) < 20 or there[score].nunique() < 2 or there.rating.nunique() < 2:
                continue
            x = there[score].to_numpy(float) * (-1 if score in LOWER else 1)
            codes = pd.factorize(there.source_id)[0]
            for measure, statistic in measures(there, score).items():
                about = {
                    "data_set": name,
                    "texts": texts,
                    "language": "en",
                    "criterion": criterion,
                    "score": score,
                    "measure": measure,
                }
                found = figures(statistic, x, codes, measure)
                key = (measure, score in DECISIONS, tuple(there.item))
                if key not in best:
                    best[key] = best_rival(statistic, there, tried.columns[1:], measure, score)
                rows.append(
                    about
                    | {end: found[end] for end in ("value", "low", "high")}
                    | {
                        "n": len(there),
                        "sources": int(codes.max()) + 1,
                        "systems": there.system.nunique(),
                    }
                    | (lead(found, best[key]) if best[key] and score not in tried else {})
                    | {
                        "ceiling": ceilings.get(criterion, math.nan)
                        if measure == "pearson"
                        else math.nan,
                        "signature": signatures.get(score, ""),
                    }
                    | dict(
                        zip(
                            ("published", "by"),
                            PUBLISHED.get((name, criterion, score, measure), ()),
                        )
                    )
                )
    return rows


def figures(statistic, x: np.ndarray, codes: np.ndarray, measure: str) -> dict:
    value = float(statistic(np.ones((1, len(x))), x)[0])
    drawn = np.concatenate([statistic(counts, x) for counts in resample_counts(codes, N_BOOT)])
    correlated = measure in ("pearson", "within", "systems")
    ends = fisher_ends(value, drawn, codes.max() + 1) if correlated else percentiles(drawn)
    return {"value": value, "low": ends[0], "high": ends[1], "drawn": drawn}


def best_rival(
    statistic, rated: pd.DataFrame, names, measure: str, score: str
) -> tuple[str, dict] | None:
    """The rival with the highest value, turned round where that helps it; of decisions, always saying the same."""
    if measure == "accuracy" and score in DECISIONS:
        y = rated.rating.to_numpy(float) > 0.5
        same = np.full(len(y), float(y.mean() > 0.5))
        return "the more frequent answer", figures(
            statistic, same, pd.factorize(rated.source_id)[0], measure
        )
    codes = pd.factorize(rated.source_id)[0]
    tried = []
    for name in names:
        if name.startswith(("the publisher's", "list of")):
            continue
        x = rated[name].to_numpy(float)
        if np.ptp(x) == 0:
            continue
        both = [(name, figures(statistic, sign * x, codes, measure)) for sign in (1, -1)]
        tried.append(max(both, key=lambda pair: pair[1]["value"]))
    return max(tried, key=lambda pair: pair[1]["value"], default=None)


def lead(found: dict, best: tuple[str, dict]) -> dict:
    name, rival = best
    low, high = percentiles(found["drawn"] - rival["drawn"])
    return {
        "rival": name,
        "rival_value": rival["value"],
        "lead": found["value"] - rival["value"],
        "lead_low": low,
        "lead_high": high,
    }


def elsewhere() -> pd.DataFrame:
    """Of scores that were trained on a part of their set: what the scripts that made them found on rows that they had
    not seen."""
    about = {
        "formality": (
            "pt16_formality",
            "sentences of four genres",
            "property_rivals.csv",
            "long text",
        ),
        "avoided_answer": ("xstest", SETS["xstest"][0], "answer_candidates.csv", "string_match"),
    }
    rows = []
    for score, (data_set, texts, file, rival) in about.items():
        table = pd.read_csv(packaged_path(file), keep_default_na=False)
        way = score if score == "formality" else "model"
        measure = "spearman" if score == "formality" else "accuracy"
        table = table[(table.property == score) & (table.data != "own answers")]
        alone = table[table.rival == ""].drop_duplicates("way").set_index("way")
        ahead = table[(table.way == way) & (table.rival == rival)].iloc[0]
        rows.append(
            {
                "data_set": data_set,
                "texts": texts,
                "language": "en",
                "criterion": score,
                "score": score,
                "measure": measure,
                **alone.loc[way, ["value", "low", "high", "n"]],
                "systems": 1 if score == "formality" else 5,
                "rival": rival.replace("string_match", "list of phrases"),
                "rival_value": alone.value[rival],
                "lead": ahead.value,
                "lead_low": ahead.low,
                "lead_high": ahead.high,
            }
        )
    return pd.DataFrame(rows)


def main() -> None:
    arguments = sys.argv[1:]
    chosen = [name for name in arguments if name in (*SETS, *STUDIES)] or [*SETS, *STUDIES]
    folders = [Path(name) for name in arguments if name not in chosen]
    cache = folders[0] if folders else None
    path = packaged_path("evidence.csv")
    kept = pd.read_csv(path) if path.is_file() else pd.DataFrame({"data_set": []})
    for name in chosen:
        try:
            ratings = of_interest(name, load_ratings(name))
        except AssetError as error:
            print(error)
            continue
        rows = rows_of(name, ratings, *scored(name, ratings, cache))
        trained = elsewhere()
        kept = kept[(kept.data_set != name) & ~kept.score.isin(trained.score)]
        kept = pd.concat([kept, pd.DataFrame(rows), trained], ignore_index=True)
        order = {name: place for place, name in enumerate((*SETS, *STUDIES, "pt16_formality"))}
        kept = kept.sort_values("data_set", key=lambda names: names.map(order), kind="stable")
        kept.round(4).to_csv(path, index=False, lineterminator="\n")
        print(name, len(rows), flush=True)


if __name__ == "__main__":
    main()
