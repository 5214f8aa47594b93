"""Find the layer whose token vectors follow people best, and what unrelated texts get:
tsteval/data/similarity_layers.csv.

    python nbs/making/similarity_layers.py              # a few minutes on one core

The layer is chosen on the ratings of content of Mir et al. 2019 (mir2019: 1,952 outputs, 244 sources) and reported on
those of Lai et al. 2022 (lai2022: 495 outputs, 55 sources, the mean of two raters). Each output is compared with its
source, as the raters did. Intervals of 95% come from resampling sources, since the outputs of one source are alike: of
each correlation, of its difference to the cosine's (minus_cosine), and of its difference to that of the chosen layer of
the same score (minus_chosen), each difference from the same resamples. A distance is counted with its sign turned, so
that more is always better. Both corpora are looked for in TSTEVAL_DATA. Nothing at run time depends on this file.
"""

import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from tsteval.alignment import LAYERS, greedy_match, score_baseline, word_movers_distance
from tsteval.bleu import bleu_from_statistics, bleu_statistics
from tsteval.core.resample import bootstrap_interval
from tsteval.cps import SentenceEncoder, cosine
from tsteval.models.alignment import (
    Tokens,
    TokenWeights,
    cheapest,
    distances,
    idf_weights,
    token_grams,
    unit_rows,
)
from tsteval.overlap import chrf, meteor
from tsteval.rouge import rouge
from tsteval.style import load_pairs
from tsteval.tables.mir2019 import load_mir2019

FILE = Path(__file__).parents[2] / "tsteval" / "data" / "similarity_layers.csv"


def mir2019() -> pd.DataFrame:  # source, output, rating, group
    rows = load_mir2019()
    table = pd.DataFrame(
        {
            "source": rows.source,
            "output": rows.output,
            "rating": rows.human_content,
            "group": rows.row,
        }
    )
    return table.dropna().reset_index(drop=True)


def lai2022() -> pd.DataFrame:  # the same columns
    lines = (
        (Path(os.environ["TSTEVAL_DATA"]) / "lai2022" / "content.src.json")
        .read_text()
        .splitlines()[:55]
    )
    return pd.DataFrame(
        [
            {
                "source": row["src"],
                "output": given["out"],
                "rating": (given["human_1"] + given["human_2"]) / 2,
                "group": group,
            }
            for group, row in enumerate(map(json.loads, lines))
            for given in row["sys"].values()
        ]
    )


def all_scores(
    table: pd.DataFrame, encoder: SentenceEncoder
) -> dict[tuple[str, int | None], np.ndarray]:
    """Every score of every row, the larger the better, by name and layer."""
    source = list(table.source)
    output = list(table.output)
    lengths = np.array([[len(text.split()) for text in pair] for pair in zip(source, output)])
    vectors = encoder.encode([*source, *output])
    scores = {
        ("length", None): -np.abs(np.log((lengths[:, 1] + 1) / (lengths[:, 0] + 1))),
        ("bleu", None): bleu_from_statistics(bleu_statistics(output, source), effective_order=True),
        ("rouge1", None): rouge(output, source, ["rouge1"]).rouge1.to_numpy(),
        ("chrf", None): chrf(output, source),
        ("chrf++", None): chrf(output, source, word_order=2),
        ("meteor", None): meteor(output, source),
        ("wmd", None): -word_movers_distance(output, source, encoder=encoder),
        ("cosine", None): cosine(vectors[: len(table)], vectors[len(table) :]),
    }
    return scores | by_layer(output, source, encoder)


def by_layer(
    outputs: list[str], sources: list[str], encoder: SentenceEncoder
) -> dict[tuple[str, int], np.ndarray]:
    """BERTScore and MoverScore of every layer, from one run of the encoder over each block of pairs."""
    rows = encoder.encode_rows({"texts": [*outputs, *sources]})
    marks = [encoder.tokenizer.cls_token_id, encoder.tokenizer.sep_token_id]
    pairs = rows.places.reshape(2, -1).T
    layers = range(encoder.model.config.num_hidden_layers + 1)
    weights = {"": TokenWeights(), "_idf": idf_weights(sources, encoder)}
    scores = {
        (name, layer): np.zeros(len(pairs))
        for name in ("bert_score", "bert_score_idf", "mover_1", "mover_2")
        for layer in layers
    }
    for start in range(0, len(pairs), 128):
        used = np.unique(pairs[start : start + 128]).tolist()

        def compute(chosen):
            batch = encoder.pad(rows.encoded, [used[row] for row in chosen])
            hidden = torch.stack(
                encoder.model(**batch, output_hidden_states=True).hidden_states, dim=1
            )
            return [own[:, kept.bool()] for own, kept in zip(hidden, batch["attention_mask"])]

        states = dict(zip(used, encoder.in_batches([rows.lengths[row] for row in used], compute)))
        for pair, (output, source) in enumerate(pairs[start : start + 128], start):
            for layer in layers:
                sides = [
                    Tokens(ids, unit_rows(states[row][layer]), np.isin(ids, marks))
                    for row, ids in (
                        (row, np.array(rows.encoded["input_ids"][row])) for row in (output, source)
                    )
                ]
                if any(side.marks.all() for side in sides):
                    continue
                for name, own in weights.items():
                    scores[f"bert_score{name}", layer][pair] = greedy_match(
                        sides[0].vectors @ sides[1].vectors.T, *map(own.of, sides)
                    )[2]
                for n in (1, 2):
                    (p, x), (q, y) = (token_grams(side, weights[""], n) for side in sides)
                    scores[f"mover_{n}", layer][pair] = 1 - cheapest(p, q, distances(x, y))
    return scores


def moments(columns: list[np.ndarray], groups: np.ndarray) -> np.ndarray:
    """(G, S) sums over the rows of each source: the number of rows, then all that correlations of the first column
    need."""
    first, *others = columns
    parts = [np.ones(len(first)), first, first**2] + [
        part for other in others for part in (other, other**2, first * other)
    ]
    return np.stack([np.bincount(groups, weights=part) for part in parts], axis=1)


# (..., S) -> (...,) of the first other column, or the first minus the second
def pearson(sums: np.ndarray) -> np.ndarray:
    n, x, xx = np.moveaxis(sums[..., :3], -1, 0)
    found = []
    for start in range(3, sums.shape[-1], 3):
        y, yy, xy = np.moveaxis(sums[..., start : start + 3], -1, 0)
        found.append((n * xy - x * y) / np.sqrt((n * xx - x * x) * (n * yy - y * y)))
    return found[0] if len(found) == 1 else found[0] - found[1]


def main() -> None:
    encoder = SentenceEncoder.load()
    rows = []
    for name, table in (("mir2019", mir2019()), ("lai2022", lai2022())):
        scores = all_scores(table, encoder)
        groups = table.group.to_numpy()
        ratings = table.rating.to_numpy(float)
        for (score, layer), values in scores.items():
            alone = bootstrap_interval(moments([ratings, values], groups), pearson)
            rows.append(
                {
                    "encoder": encoder.name,
                    "data_set": name,
                    "score": score,
                    "layer": layer,
                    "n": len(table),
                    "sources": len(set(groups)),
                    "pearson": alone.score,
                    "low": alone.low,
                    "high": alone.high,
                }
            )
            others = {
                "cosine": ("cosine", None),
                "chosen": (score, None if layer is None else LAYERS[encoder.name]),
            }
            for other, key in others.items():
                if (score, layer) == key:
                    continue  # nothing to compare
                paired = bootstrap_interval(
                    moments([ratings, values, scores[key]], groups), pearson
                )
                rows[-1] |= {
                    f"minus_{other}": paired.score,
                    f"minus_{other}_low": paired.low,
                    f"minus_{other}_high": paired.high,
                }
            print(rows[-1], flush=True)
    texts = list(dict.fromkeys(load_pairs("npov_pairs").source))
    for layer in range(encoder.model.config.num_hidden_layers + 1):
        floor = score_baseline(texts, encoder=encoder, layer=layer)
        rows.append(
            {
                "encoder": encoder.name,
                "data_set": "npov_pairs",
                "score": "unrelated",
                "layer": layer,
                "n": len(texts),
                **dict(zip(("baseline_precision", "baseline_recall", "baseline_f1"), floor)),
            }
        )
    pd.DataFrame(rows).astype({"layer": "Int64", "sources": "Int64"}).round(6).to_csv(
        FILE, index=False
    )


if __name__ == "__main__":
    main()
