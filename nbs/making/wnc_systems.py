"""Five trained neutralisers beside their editors: python nbs/making/wnc_systems.py writes tsteval/data/wnc_systems.csv

`wnc_test`, 916 real edits of Wikipedia with the outputs of MODULAR and CONCURRENT (Pryzant et al. 2020) and three STRAP
models (Krishna et al. 2020), a copy, and what the editor wrote. A row a system and part (single: one word or span was
edited; multi: more): the mean of each score with its 95% interval over edits, and how many outputs it is of. `lead` is
the mean STI less the editor's on the same edits, and `reached` the share of outputs that the judge calls neutral.
`edited` is the share of outputs that are what the editor wrote but for white space, `copied` the share that are the
source, `shorter` the share with fewer tokens than the source. BLEU is of the whole, every mark a token on both sides,
since two of the systems are spaced by a tokeniser and three are not. Seven minutes.
"""

import re

import numpy as np
import pandas as pd

from tsteval.core.assets import packaged_path
from tsteval.core.resample import bootstrap_interval, mean_statistics
from tsteval.evaluation import evaluate
from tsteval.tables.ratings import load_ratings


def spaced(text: str) -> str:
    return " ".join(re.findall(r"\w+|[^\w\s]", text))


def letters(text: str) -> str:
    return "".join(text.split())


def main() -> None:
    table = load_ratings("wnc_test")
    human = table[table.system == "copy"].assign(system="human", output=lambda rows: rows.reference)
    table = pd.concat([table, human], ignore_index=True)
    pairs = table[["system", "source", "output", "reference"]].assign(target_style="neutral")
    scored = evaluate(pairs, ["sti", "cps"], n_boot=2).per_pair
    of_editor = scored.sti[table.system == "human"].set_axis(human.source_id)
    columns = {
        "sti": scored.sti,
        "lead": scored.sti - table.source_id.map(of_editor),
        "reached": scored.target_reached,
        "cps": scored.cps,
        "edited": (table.output.map(letters) == table.reference.map(letters)).astype(float),
        "copied": (table.output.map(letters) == table.source.map(letters)).astype(float),
    }
    texts = pairs.assign(**{name: pairs[name].map(spaced) for name in ("output", "reference")})
    tokens = [texts.output.str.split().str.len(), pairs.source.map(spaced).str.split().str.len()]
    columns["shorter"] = (tokens[0] < tokens[1]).astype(float)
    rows = []
    for part in ("all", "single", "multi"):
        chosen = np.full(len(table), True) if part == "all" else (table.part == part).to_numpy()
        bleu = evaluate(texts[chosen], ["bleu"], n_boot=1000).summary().set_index("system")
        for system in dict.fromkeys(table.system):
            there = chosen & (table.system == system).to_numpy()
            row = {"system": system, "part": part, "n": int(there.sum())}
            for name, values in columns.items():
                found = bootstrap_interval(mean_statistics(values[there]), n_resamples=2000)
                row |= {name: found.score, f"{name}_low": found.low, f"{name}_high": found.high}
            row |= {f"bleu{end}": bleu.loc[system, f"bleu{end}"] for end in ("", "_low", "_high")}
            rows.append(row)
    path = packaged_path("wnc_systems.csv")
    pd.DataFrame(rows).round(4).to_csv(path, index=False, lineterminator="\n")


if __name__ == "__main__":
    main()
