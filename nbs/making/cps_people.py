"""What the cosine gives to machines, people, copies and strangers: python nbs/making/cps_people.py

Writes tsteval/data/cps_people.csv, which chapter 10 draws: a row a system of rated rewrites (lai2022, simplicity_da,
simpeval_past; TSTEVAL_DATA) with its outputs, their mean rating (0 to 100) with the 95% interval of a bootstrap, and
the mean cosine of source and output without a mask, with the same; `words` is the mean share of the output's words
that the source has. The people of simpeval_past are among the references and so no system elsewhere; here they are,
with the copy and the scrambled words. `strangers` are the sources, each beside the next one. The last row has the
editors of the WNC sample (wnc_sample), whom nobody rated.
"""

import os
from pathlib import Path

import numpy as np
import pandas as pd

from tsteval.attribution import WORD
from tsteval.core.resample import bootstrap_interval, mean_statistics
from tsteval.cps import cosine
from tsteval.models.encoder import SentenceEncoder
from tsteval.tables.pairs import load_pairs
from tsteval.tables.ratings import load_ratings

DATA = Path(__file__).parents[2] / "tsteval" / "data"
PEOPLE = Path(os.environ.get("TSTEVAL_DATA", "")) / "people"


def simpeval() -> pd.DataFrame:
    """All of it, the people's rewrites too."""
    outputs = pd.read_csv(PEOPLE / "simpeval_past" / "outputs.csv").dropna(subset=["output"])
    sources = pd.read_json(PEOPLE / "simpeval_past" / "sources.jsonl", lines=True)
    outputs = outputs.merge(sources[["sent_id", "source"]], on="sent_id")
    ratings = [f"rating_{place}" for place in range(1, 6)]
    return outputs.assign(rating=outputs[ratings].mean(axis=1), criterion="overall")


def rated() -> dict[str, pd.DataFrame]:
    sets = {
        name: load_ratings(name).query("criterion == 'content'")
        for name in ("lai2022", "simplicity_da")
    }
    sets["lai2022"] = sets["lai2022"].assign(
        kind=np.where(sets["lai2022"].system == "ref", "human", "machine")
    )
    sets["simplicity_da"] = sets["simplicity_da"].assign(kind="machine")
    return {**sets, "simpeval_past": simpeval()}


def shared(output: str, source: str) -> float:
    known = {*WORD.findall(source.lower())}
    return float(np.mean([word in known for word in WORD.findall(output.lower())] or [0]))


def interval(values, name: str) -> dict:
    found = bootstrap_interval(mean_statistics(np.asarray(values)), n_resamples=2000)
    return {name: found.score, f"{name}_low": found.low, f"{name}_high": found.high}


def editors(encoder) -> dict:
    """The edits of the WNC sample, without a rating."""
    edits = load_pairs("wnc_sample").query("split == 'test' and source != target")
    first, second = (encoder.encode(list(edits[side])) for side in ("source", "target"))
    return {
        "data": "wnc_sample",
        "kind": "human",
        "system": "editors",
        "n": len(edits),
        **interval(cosine(first, second), "cps"),
        "words": np.mean([shared(*pair) for pair in zip(edits.target, edits.source)]),
    }


def main() -> None:
    encoder = SentenceEncoder.load()
    rows = []
    for name, everything in rated().items():
        table = everything.dropna(subset=["rating"]).reset_index(drop=True)
        texts = list(dict.fromkeys([*table.source, *table.output]))
        vectors = dict(zip(texts, encoder.encode(texts)))

        def alike(first, second):
            return cosine([vectors[one] for one in first], [vectors[one] for one in second])

        table["cps"] = alike(table.source, table.output)
        table["words"] = [shared(*pair) for pair in zip(table.output, table.source)]
        for (kind, system), outputs in table.groupby(["kind", "system"]):
            rows.append(
                {
                    "data": name,
                    "kind": kind,
                    "system": system,
                    "n": len(outputs),
                    **interval(outputs.rating, "rating"),
                    **interval(outputs.cps, "cps"),
                    "words": outputs.words.mean(),
                }
            )
        sources = list(table.source.drop_duplicates())
        others = [*sources[1:], sources[0]]
        rows.append(
            {
                "data": name,
                "kind": "strangers",
                "system": "strangers",
                "n": len(sources),
                **interval(alike(sources, others), "cps"),
                "words": np.mean([shared(*pair) for pair in zip(others, sources)]),
            }
        )
        print(pd.DataFrame(rows).round(3).to_string(), flush=True)
    rows.append(editors(encoder))
    pd.DataFrame(rows).round(4).to_csv(DATA / "cps_people.csv", index=False)


if __name__ == "__main__":
    main()
