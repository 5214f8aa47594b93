"""Between what correlations with people do the scores of chapter 11 lie?

    python nbs/making/overlap_intervals.py       # some minutes on one core

tsteval/data/overlap_intervals.csv, a row a set and score: its Pearson correlation with the mean rating of each output, as
in overlap_people.csv (which is checked), with a 95% interval from resampling sources. The file holds figures only. Rated
sets are looked for in TSTEVAL_DATA. Nothing at run time depends on this file.
"""

import numpy as np
import pandas as pd
from overlap_people import FOLDER, SCRAMBLE, SETS, nearest

from tsteval.bleu import bleu_from_statistics, bleu_statistics
from tsteval.cps import SentenceEncoder
from tsteval.overlap import chrf, meteor
from tsteval.people.coefficients import correlation
from tsteval.tables.ratings import load_ratings


def rows_of(name: str, rated: pd.DataFrame, scores: pd.DataFrame, known: pd.DataFrame):
    for score in scores:
        one = correlation(scores[score], rated.rating, groups=rated.source_id)
        assert np.isclose(one.value, known.loc[(name, score)].pearson, atol=1e-4), (name, score)
        yield {
            "data_set": name,
            "score": score,
            "pearson": one.value,
            "low": one.low,
            "high": one.high,
            "n": len(rated),
        }


def main() -> None:
    encoder = SentenceEncoder.load()
    known = pd.read_csv(FOLDER / "overlap_people.csv").set_index(["data_set", "score"])
    table = []
    for name, (criterion, against) in SETS.items():
        rated = load_ratings(name)
        rated = rated[rated.criterion == criterion].reset_index(drop=True)
        outputs, references = rated.output.tolist(), rated[against].tolist()
        statistics = bleu_statistics(outputs, references)
        scores = pd.DataFrame(
            {
                "bleu": bleu_from_statistics(statistics, effective_order=True),
                "chrf": chrf(outputs, references),
                "meteor": meteor(outputs, references),
                "cosine": nearest(encoder, outputs, references),
            }
        )
        table += rows_of(name, rated, scores, known)
        if name == "simpeval_past":
            kept = rated.system != SCRAMBLE
            table += rows_of(f"{name}, no scramble", rated[kept], scores[kept], known)
        print(pd.DataFrame(table).tail(4).to_string(), flush=True)
    pd.DataFrame(table).round(4).to_csv(FOLDER / "overlap_intervals.csv", index=False)


if __name__ == "__main__":
    main()
