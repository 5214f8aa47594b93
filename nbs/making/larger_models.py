"""Does a language model of 1.5 billion parameters follow people better than one of 135 million, where it only reads?

    python nbs/making/larger_models.py FOLDER    # tsteval/data/larger_models.csv; an hour and a half on two cores

fluency   NCE and PenLP beside ratings: learners' sentences (gug's test part), the grammar of the first 300
          compressions, the fluency of lai2022's rewrites
content   the lowest regret of an output's words under the tasks of chapter 13, beside ratings of content of style_gap
          and lai2022. It has no weights, so nothing of these sets was fitted.

`value` is Pearson's r with mean ratings, with its 95% interval over sources; `lead` that of the larger model minus that
of the smaller one on the same resamples, and `cosine_lead` minus that of the cosine of sentence vectors. FOLDER keeps
scores between runs. Needs TSTEVAL_DATA.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from evidence import figures

from tsteval.content import TASKS, word_links
from tsteval.core.assets import packaged_path
from tsteval.core.resample import percentiles
from tsteval.cps import content_preservation
from tsteval.fluency import fluency_scores
from tsteval.models.causal_lm import CausalLM
from tsteval.models.roles import LARGER_LANGUAGE_MODEL
from tsteval.people.coefficients import weighted_pearson
from tsteval.tables.ratings import load_ratings

MODELS = (CausalLM.default_name, LARGER_LANGUAGE_MODEL)
SETS = {  # data set, what people were asked -> rows, in the package's words for styles
    ("gug", "acceptability"): lambda table: table[table.part == "test"],
    ("msr_compression", "grammar"): lambda table: table.head(300),
    ("lai2022", "fluency"): lambda table: table,
    ("style_gap", "content"): lambda table: table,
    ("lai2022", "content"): lambda table: table,
}


def rows_of(name: str, asked: str) -> pd.DataFrame:
    ratings = load_ratings(name)
    once = ratings[ratings.asked == asked].drop_duplicates("item")
    return SETS[name, asked](once).reset_index(drop=True)


def scored(table: pd.DataFrame, asked: str, model: str, loaded: dict) -> pd.DataFrame:
    """One row an output: the scores of one language model."""
    if model not in loaded:
        loaded.clear()
        loaded[model] = CausalLM.load(model, device="cpu")
    lm = loaded[model]
    if asked != "content":
        return fluency_scores(lm, list(table.output), progress=True)[["nce", "pen_lp"]]
    styles = [style or "different" for style in table.target_style.fillna("")]
    tasks = [[task.format(style=style) for style in styles] for task in TASKS]
    links = word_links(table.output, table.source, tasks, lm=lm, progress=True)
    return pd.DataFrame({"lowest regret": [one.weakest("regret") for one in links]})


def compared(name: str, asked: str, by_model: dict[str, pd.DataFrame]) -> list[dict]:
    table = rows_of(name, asked)
    small, large = (by_model[model] for model in MODELS)
    cosines = content_preservation(table.source, table.output) if asked == "content" else None
    rows = []
    for score in small:
        values = {"small": small[score], "large": large[score]}
        if cosines is not None:
            values["cosine"] = cosines
        values = {of: np.asarray(value, float) for of, value in values.items()}
        kept = np.all([*map(np.isfinite, values.values()), table.rating.notna()], axis=0)
        codes = pd.factorize(table.source_id[kept])[0]
        ratings = table.rating[kept].to_numpy(float)
        found = {
            of: figures(
                lambda counts, x, ratings=ratings: weighted_pearson(counts, x, ratings),
                value[kept],
                codes,
                "pearson",
            )
            for of, value in values.items()
        }
        about = {"data_set": name, "asked": asked, "score": score, "n": int(kept.sum())}
        for of, one in found.items():
            row = about | {"model": of} | {end: one[end] for end in ("value", "low", "high")}
            for rival, lead in (("small", "lead"), ("cosine", "cosine_lead")):
                if of == "large" and rival in found:
                    ends = percentiles(one["drawn"] - found[rival]["drawn"])
                    row |= {lead: one["value"] - found[rival]["value"]}
                    row |= dict(zip((f"{lead}_low", f"{lead}_high"), ends))
            rows.append(row)
    return rows


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    loaded: dict[str, CausalLM] = {}
    for model in MODELS:
        for name, asked in SETS:
            file = folder / f"{name}-{asked}-{model}.csv"
            if not file.is_file():
                scored(rows_of(name, asked), asked, model, loaded).to_csv(file, index=False)
                print(file.name, flush=True)
    rows = []
    for name, asked in SETS:
        by_model = {m: pd.read_csv(folder / f"{name}-{asked}-{m}.csv") for m in MODELS}
        rows += compared(name, asked, by_model)
    table = pd.DataFrame(rows)
    table.round(4).to_csv(packaged_path("larger_models.csv"), index=False, lineterminator="\n")
    print(table.to_string())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
