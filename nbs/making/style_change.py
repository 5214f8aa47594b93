"""What a weaker classifier costs: python nbs/making/style_change.py OLDER SENTIMENT_HEAD

OLDER is a folder with another subjectivity classifier than the shipped one; the table in tsteval/data/style_change.csv
was made with the first one of this package, a LoRA adapter (its training is `train_classifier` with the settings LORA
of style_evidence.py on the training splits of npov_pairs and the WNC sample). SENTIMENT_HEAD is a folder with a head
over all layers, fitted to the training split of sentence_polarity with method head. Both judge the same texts as the
shipped classifiers: the embedded test pairs with three systems (the first kind), and the outputs of mir2019 with
people's ratings of style (the second), whose accuracy on held-out reviews is measured too. Needs mir2019 (TSTEVAL_DATA)
and NLTK's sentence_polarity.
"""

import sys

import numpy as np
import pandas as pd

from tsteval.attribution import edited_words, integrated_gradients
from tsteval.core.assets import packaged_path
from tsteval.core.resample import bootstrap_interval, mean_statistics
from tsteval.cps import content_preservation, mask_style
from tsteval.sti import style_transfer_intensity
from tsteval.style import StyleClassifier, load_pairs, load_sentence_polarity, score_sentences
from tsteval.tables.mir2019 import load_mir2019


def intensity(classifier, sources, outputs, target) -> np.ndarray:
    return style_transfer_intensity(
        classifier.predict_proba(sources), classifier.predict_proba(outputs), target
    )


def deleted(classifier, sources) -> list[str]:
    return [
        mask_style(found, strategy="remove", unit="word")
        for found in integrated_gradients(classifier, sources)
    ]


def on_pairs(classifiers: dict[str, StyleClassifier]) -> list[dict]:
    pairs = load_pairs().query("split == 'test' and source != target")
    sources = list(pairs.source)
    systems = {
        "human": list(pairs.target),
        **{
            f"delete, {name}": deleted(classifier, sources)
            for name, classifier in classifiers.items()
        },
    }
    rows = []
    for judge, classifier in classifiers.items():
        for system, outputs in systems.items():
            measures = {
                "sti": intensity(classifier, sources, outputs, 1),
                "cps": content_preservation(sources, outputs, classifier=classifier).cps.to_numpy(),
            }
            for measure, values in measures.items():
                found = bootstrap_interval(mean_statistics(values))
                rows.append(
                    {
                        "texts": "embedded test pairs",
                        "judge": judge,
                        "system": system,
                        "measure": measure,
                        "value": found.score,
                        "low": found.low,
                        "high": found.high,
                        "n": len(values),
                    }
                )
    return rows


def on_edited_words(classifiers: dict[str, StyleClassifier]) -> list[dict]:
    """How often the word with the largest attribution is one that the editor changed."""
    rows = []
    for texts, loaded in (
        ("embedded test pairs", load_pairs()),
        ("WNC test pairs", load_pairs("wnc_sample")),
    ):
        pairs = loaded.query("split == 'test' and source != target")
        edited = {
            source: edited_words(source, target)
            for source, target in zip(pairs.source, pairs.target)
        }
        edited = {source: words for source, words in edited.items() if words.any()}
        for judge, classifier in classifiers.items():
            found = integrated_gradients(classifier, list(edited))
            hits = [
                words[np.argmax(attribution.word_scores)]
                for attribution, words in zip(found, edited.values())
            ]
            result = bootstrap_interval(mean_statistics(np.array(hits, dtype=float)))
            rows.append(
                {
                    "texts": texts,
                    "judge": judge,
                    "system": "first word",
                    "measure": "edited",
                    "value": result.score,
                    "low": result.low,
                    "high": result.high,
                    "n": len(hits),
                }
            )
    return rows


def pearson(sums: np.ndarray) -> np.ndarray:
    """Correlation from sums of 1, x, y, xx, yy, xy."""
    n, x, y, xx, yy, xy = np.moveaxis(sums, -1, 0)
    return (n * xy - x * y) / np.sqrt((n * xx - x * x) * (n * yy - y * y))


def on_ratings(classifiers: dict[str, StyleClassifier]) -> list[dict]:
    rows = []
    for system, table in load_mir2019().groupby("system"):
        y = table.human_style.to_numpy()
        for judge, classifier in classifiers.items():
            x = intensity(classifier, table.source, table.output, table.target.to_numpy())
            known = ~np.isnan(x) & ~np.isnan(y)
            a = x[known]
            b = y[known]
            found = bootstrap_interval(
                np.column_stack([np.ones_like(a), a, b, a * a, b * b, a * b]), pearson
            )
            rows.append(
                {
                    "texts": "mir2019",
                    "judge": judge,
                    "system": system,
                    "measure": "correlation of sti with people",
                    "value": found.score,
                    "low": found.low,
                    "high": found.high,
                    "n": int(known.sum()),
                }
            )
    return rows


def on_sentences(classifiers: dict[str, StyleClassifier]) -> list[dict]:
    held = load_sentence_polarity().query("split == 'test'")
    rows = []
    for judge, classifier in classifiers.items():
        scored = score_sentences(classifier, held)
        found = bootstrap_interval(
            mean_statistics((scored.predicted == scored.label).to_numpy(dtype=float))
        )
        rows.append(
            {
                "texts": "sentence_polarity",
                "judge": judge,
                "system": "held-out reviews",
                "measure": "accuracy",
                "value": found.score,
                "low": found.low,
                "high": found.high,
                "n": len(held),
            }
        )
    return rows


if __name__ == "__main__":
    older, head = map(StyleClassifier.load, sys.argv[1:3])
    subjectivity = {"fine-tuned": older, "shipped": StyleClassifier.load()}
    rows = on_pairs(subjectivity) + on_edited_words(subjectivity)
    sentiment = {"head": head, "shipped": StyleClassifier.load("sentiment-minilm")}
    rows += on_ratings(sentiment) + on_sentences(sentiment)
    pd.DataFrame(rows).round(4).to_csv(packaged_path("style_change.csv"), index=False)
    print(pd.DataFrame(rows).round(3).to_string())
