"""Three shares of what an output takes from its source, beside people: python nbs/making/grounding_people.py

Writes tsteval/data/grounding_people.csv, a row a figure and no sentence of a set; a test recomputes some. It takes two
minutes of one core. QAGS (two sets) and FaithBench are looked for in TSTEVAL_DATA.

data_set, what, way   `what` is one of
    people     of the votes of three: supported, unanimous, unanimous if each vote were drawn alone, and how often one
               agrees with the other two where these agree
    auc        how well a way tells supported from other outputs; of faithbench also the detectors that the set stores
    lead       one AUC minus another, on the same resamples
    all found  the share of supported, or of other, sentences of which all words, all pairs or all facts are found
    no facts   the share of supported, or of other, sentences without any name, date or quantity
    pearson    of a summary's score (the mean over its sentences, or ROUGE-2 with the article) with the share of its
               sentences that people found supported
    mean       of all three shares: of sentences, of the article's own first sentence, of that of another article, and of
               sentences held against another article
    below      the share of supported sentences that score below the article's own first sentence
    bin        sentences with a share of pairs from `low` on and below `high` (the last bin holds 1)
value, low, high      with its 95% interval, 1,000 resamples of sources; `bin` has a count
n, sources            outputs, and articles that they come from
"""

import re
from pathlib import Path

import numpy as np
import pandas as pd

from tsteval.core.resample import percentiles, resample_counts
from tsteval.grounded import (
    _SENTENCE_END,
    _pairs,
    fact_share,
    find_facts,
    pair_share,
    word_share,
)
from tsteval.people.coefficients import fisher_ends, weighted_pearson
from tsteval.people.labels import weighted_auc
from tsteval.rouge import rouge_scores
from tsteval.tables.ratings import load_ratings
from tsteval.words.english import parse

FILE = Path(__file__).parents[2] / "tsteval" / "data" / "grounding_people.csv"
N_BOOT = 1000
EDGES = np.linspace(0, 1, 11)
DETECTORS = ["hhem_2_1", "hhem_1", "gpt_4o", "gpt_4", "gpt_3_5", "true_nli", "trueteacher"]


def share(function, sources, outputs) -> np.ndarray:
    return np.array([function(*texts) for texts in zip(sources, outputs)])


def pairs_anywhere(source: str, output: str) -> float:
    """As `pair_share`, wherever in the source a pair stands."""
    pairs = _pairs(output)
    return len(pairs & _pairs(source)) / len(pairs) if pairs else 1.0


def three(sources, outputs) -> dict[str, np.ndarray]:
    columns = {
        "words": share(word_share, sources, outputs),
        "facts": fact_share(list(sources), list(outputs)),
        "pairs": share(pair_share, sources, outputs),
    }
    return columns | {"grounded_in_context": np.mean(list(columns.values()), axis=0)}


def by_sentence(sources, outputs) -> pd.DataFrame:
    """The means of all shares over an output's sentences."""
    rows = [
        (row, source, sentence)
        for row, (source, output) in enumerate(zip(sources, outputs))
        for sentence in _SENTENCE_END.split(output.strip())
        if sentence
    ]
    places, *texts = zip(*rows)
    return pd.DataFrame(three(*texts)).groupby(list(places)).mean()


def resampled(statistic, x, codes, correlated: bool = False) -> tuple[float, np.ndarray, tuple]:
    value = float(statistic(np.ones((1, len(x))), x)[0])
    drawn = np.concatenate([statistic(counts, x) for counts in resample_counts(codes, N_BOOT)])
    return (
        value,
        drawn,
        fisher_ends(value, drawn, codes.max() + 1) if correlated else percentiles(drawn),
    )


def discriminating(name: str, study: pd.DataFrame, ways: dict) -> list[dict]:
    labels, codes = (study.rating > 0.5).to_numpy(), study.source_id.to_numpy()
    found = {
        way: resampled(lambda counts, x: weighted_auc(counts, x, labels), x, codes)
        for way, x in ways.items()
    }
    sizes = {"n": len(study), "sources": codes.max() + 1}
    rows = [
        {"data_set": name, "what": "auc", "way": way, "value": value, "low": low, "high": high}
        | sizes
        for way, (value, _, (low, high)) in found.items()
    ]
    for way, rival in (
        ("pairs", "words"),
        ("pairs", "pairs anywhere"),
        ("words", "facts"),
        *(("grounded_in_context", rival) for rival in ("words", "pairs", "length", "-length")),
        ("by sentence", "grounded_in_context"),
        ("pairs", "-length"),
    ):
        if way in found and rival in found:
            low, high = percentiles(found[way][1] - found[rival][1])
            lead = {"value": found[way][0] - found[rival][0], "low": low, "high": high}
            rows.append({"data_set": name, "what": "lead", "way": f"{way} minus {rival}"} | lead)
    return rows


def rouge_2(article: str, summary: str) -> tuple[float, float]:
    """Precision and F1 of pairs of neighbours, each as often as it is there; chapter 3's tokens without stems."""
    found = rouge_scores([summary], [article], ["rouge2"])
    return float(found["rouge2", "precision"].iloc[0]), float(found["rouge2", "f1"].iloc[0])


def of_summaries(name: str, study: pd.DataFrame, ways: dict) -> list[dict]:
    table = study.assign(supported=(study.rating > 0.5).astype(float), **ways)
    summaries = table.groupby("source_id").agg(
        supported=("supported", "mean"),
        source=("source", "first"),
        summary=("output", " ".join),
        **{way: (way, "mean") for way in ("words", "facts", "pairs", "grounded_in_context")},
    )
    both = [rouge_2(*texts) for texts in zip(summaries.source, summaries.summary)]
    summaries["ROUGE-2 precision"], summaries["ROUGE-2"] = np.transpose(both)
    y = summaries.supported.to_numpy()
    rows = []
    all_drawn = {}
    for way in summaries.columns[3:]:
        value, all_drawn[way], (low, high) = resampled(
            lambda counts, x: weighted_pearson(counts, x, y),
            summaries[way].to_numpy(),
            np.arange(len(y)),
            True,
        )
        rows.append({"way": way, "value": value, "low": low, "high": high, "n": len(y)})
    rows = [{"data_set": name, "what": "pearson"} | row for row in rows]
    values = {row["way"]: row["value"] for row in rows}
    for way, rival in (
        ("ROUGE-2 precision", "ROUGE-2"),
        ("pairs", "ROUGE-2 precision"),
        ("grounded_in_context", "ROUGE-2"),
    ):
        low, high = percentiles(all_drawn[way] - all_drawn[rival])
        lead = {"value": values[way] - values[rival], "low": low, "high": high}
        rows.append({"data_set": name, "what": "pearson", "way": f"{way} minus {rival}"} | lead)
    return rows


def of_qags(name: str) -> list[dict]:
    study = load_ratings(name).reset_index(drop=True)
    votes = study[["rating_1", "rating_2", "rating_3"]].to_numpy() > 0.5
    supported, yes = (study.rating > 0.5).to_numpy(), votes.mean()
    agrees = [
        votes[row, one] == votes[row, other]
        for row in range(len(votes))
        for one, other, third in ((0, 1, 2), (1, 2, 0), (2, 0, 1))
        if votes[row, other] == votes[row, third]
    ]
    told = {
        "supported": supported.mean(),
        "unanimous": (votes.all(axis=1) | ~votes.any(axis=1)).mean(),
        "unanimous if drawn alone": yes**3 + (1 - yes) ** 3,
        "one agrees with two who agree": np.mean(agrees),
        "words of a sentence": np.mean([len(re.findall(r"\w+", text)) for text in study.output]),
        "words of an article": np.mean([len(re.findall(r"\w+", text)) for text in study.source]),
    }
    rows = [
        {"data_set": name, "what": "people", "way": way, "value": value}
        for way, value in told.items()
    ]

    ways = three(study.source, study.output)
    length = np.array([len(re.findall(r"\w+", text)) for text in study.output], float)
    ways |= {
        "pairs anywhere": share(pairs_anywhere, study.source, study.output),
        "length": length,
        "-length": -length,
    }
    rows += discriminating(name, study, ways)
    documents = parse(list(study.output))
    without = np.array([not find_facts(documents[text]) for text in study.output])
    for label, chosen in (("supported", supported), ("not supported", ~supported)):
        rows.append(
            {
                "data_set": name,
                "what": "no facts",
                "way": label,
                "value": without[chosen].mean(),
                "n": chosen.sum(),
            }
        )
        rows += [
            {
                "data_set": name,
                "what": "all found",
                "way": f"{way}, {label}",
                "value": np.mean(ways[way][chosen] == 1),
                "n": chosen.sum(),
            }
            for way in ("words", "facts", "pairs")
        ]
        counts = np.histogram(ways["pairs"][chosen], EDGES)[0]
        rows += [
            {
                "data_set": name,
                "what": "bin",
                "way": label,
                "low": low,
                "high": high,
                "value": count,
            }
            for low, high, count in zip(EDGES, EDGES[1:], counts)
        ]
    rows += of_summaries(name, study, ways)

    articles = study.drop_duplicates("source_id").source.tolist()
    first = [_SENTENCE_END.split(article.strip())[0] for article in articles]
    other = dict(zip(articles, np.roll(np.array(articles, dtype=object), 1)))
    means = {
        "supported": ways["grounded_in_context"][supported],
        "not supported": ways["grounded_in_context"][~supported],
        "first sentence": three(articles, first)["grounded_in_context"],
        "first sentence of another article": three(articles, [*first[1:], first[0]])[
            "grounded_in_context"
        ],
        "supported, held against another article": three(
            study.source[supported].map(other), study.output[supported]
        )["grounded_in_context"],
    }
    rows += [
        {"data_set": name, "what": "mean", "way": way, "value": values.mean(), "n": len(values)}
        for way, values in means.items()
    ]
    copied = dict(zip(articles, means["first sentence"]))
    below = means["supported"] < study.source[supported].map(copied).to_numpy()
    return [*rows, {"data_set": name, "what": "below", "way": "supported", "value": below.mean()}]


def of_faithbench() -> list[dict]:
    study = load_ratings("faithbench").reset_index(drop=True)
    ways = three(study.source, study.output)
    length = np.array([len(re.findall(r"\w+", text)) for text in study.output], float)
    means = by_sentence(study.source, study.output)
    ways |= {
        "by sentence": means.grounded_in_context.to_numpy(),
        "pairs by sentence": means.pairs.to_numpy(),
        "length": length,
        "-length": -length,
        **{name: study[name].to_numpy(float) for name in DETECTORS},
    }
    told = {
        "supported": (study.rating > 0.5).mean(),
        "sentences of an output": np.mean(
            [len(_SENTENCE_END.split(text.strip())) for text in study.output]
        ),
    }
    rows = [
        {"data_set": "faithbench", "what": "people", "way": way, "value": value}
        for way, value in told.items()
    ]
    return rows + discriminating("faithbench", study, ways)


def main() -> None:
    rows = [*of_qags("qags_cnndm"), *of_qags("qags_xsum"), *of_faithbench()]
    table = pd.DataFrame(rows).round(4)
    for whole in ("n", "sources"):
        table[whole] = table[whole].astype("Int64")
    table.to_csv(FILE, index=False)
    with pd.option_context("display.width", 160, "display.max_rows", None):
        print(table[table.what != "bin"])


if __name__ == "__main__":
    main()
