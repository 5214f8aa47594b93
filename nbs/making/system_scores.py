"""What this package's metrics say of rated systems: python nbs/making/system_scores.py, writes
tsteval/data/system_scores.csv.

Two published sets of outputs with people's ratings: Lai et al. 2022 (lai2022, nine systems, 55 sources) and Mir et al.
2019 (mir2019, eight settings of two systems, 244 sources). Content is compared with the source, as the raters did. The
table holds this package's numbers only, a row an output in the loaders' order; texts and ratings stay in the corpora
(TSTEVAL_DATA). Columns that the table holds already are kept: empty it when a model changes.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd

from tsteval.core.assets import packaged_path
from tsteval.evaluation import evaluate
from tsteval.tables.lai2022 import load_lai2022
from tsteval.tables.mir2019 import load_mir2019

# metric -> its options, and the columns of the table that it gives; cheap ones first, the table is written after each
STEPS = (
    (
        "sti",
        {},
        {
            "sti": "sti",
            "normalized_intensity": "normalized_intensity",
            "target_reached": "target_reached",
        },
    ),
    ("bleu", {}, {"bleu": "bleu"}),
    ("chrf", {"against": "source"}, {"chrf": "chrf"}),
    (
        "cps",
        {"strategy": "none"},
        {"cps": "cps"},
    ),  # without a mask: the cosine of the sentence encoder
    ("bert_score", {"against": "source"}, {"bert_score": "bert_score"}),
    ("fluency", {}, {"slor": "slor", "nce": "nce", "logprob": "logprob"}),
)  # nce: mean log-probability of a token


def lai2022() -> pd.DataFrame:
    table = load_lai2022()
    return table.assign(target_style=table.to_formal.map({True: "formal", False: "informal"}))


def mir2019() -> pd.DataFrame:
    table = load_mir2019()
    return table.assign(
        system=table.system + " " + table.setting,
        target_style=table.target.map({1: "positive", 0: "negative"}),
    )


def scores(
    table: pd.DataFrame, style: str, metric: str, options: dict, columns: dict[str, str]
) -> pd.DataFrame:
    pairs = table[["system", "source", "output", "target_style"]].assign(reference=table.source)
    # an empty output, which a table may not hold
    pairs["output"] = pairs.output.where(pairs.output.str.strip() != "", ".")
    result = evaluate(pairs, [metric], options={metric: options}, classifier=style, n_boot=1)
    return result.per_pair[list(columns)].rename(columns=columns)


if __name__ == "__main__":
    path = Path(sys.argv[1] if len(sys.argv) > 1 else packaged_path("system_scores.csv"))
    sets = {"lai2022": (lai2022(), "formality-minilm"), "mir2019": (mir2019(), "sentiment-minilm")}
    known = (
        pd.read_csv(path)
        if path.is_file() and path.stat().st_size
        else pd.DataFrame(columns=["data_set"])
    )
    found = {
        name: pd.DataFrame({"data_set": name, "system": table.system, "row": table.row})
        for name, (table, _) in sets.items()
    }
    for metric, options, columns in STEPS:
        for name, (table, style) in sets.items():
            stored = known[known.data_set == name].reindex(columns=list(columns.values()))
            new = (
                stored
                if len(stored) == len(table) and stored.notna().all(axis=None)
                else scores(table, style, metric, options, columns)
            )
            found[name] = pd.concat([found[name], new.set_axis(found[name].index)], axis=1)
            together = pd.concat(found.values())
            if "nce" in together:
                together["perplexity"] = np.exp(-together.nce)
            together.round(4).to_csv(path, index=False)
            print(name, metric, *columns.values(), flush=True)
