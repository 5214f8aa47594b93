"""Paired differences of real systems: python nbs/making/paired_differences.py writes tsteval/data/paired_differences.csv

A row a pair of systems that wrote on the same sources, the one with the higher mean first. Three sets: `sti`, the five
machines of chapter 15 and the person by style transfer intensity (stored scores, 72 sources); `lai2022`, nine systems of
formality by the mean of people's three ratings, 0 to 100 (55 sources); `wmt23_mqm_zhen`, ten translation systems by the
mean of three professional raters, in error points below zero (187 segments). `spread` is the standard deviation of the
paired differences, `spread_apart` that of a difference of two systems on sources of their own, `correlation` that of the
two columns. `percentile_N` and `student_N` are the shares of 95% intervals that hold the mean of all the differences,
when N of them are drawn with replacement 2,000 times. Both sets of ratings are found through TSTEVAL_DATA. Two minutes.
"""

from itertools import combinations

import numpy as np
import pandas as pd
import scipy.stats

from tsteval.core.assets import packaged_path
from tsteval.tables.lai2022 import load_lai2022
from tsteval.tables.ratings import load_ratings

SIZES = (8, 15, 30, 72)


def coverage(differences, n, n_studies=2000, n_resamples=500, seed=0):
    """Shares of percentile and of Student's intervals that hold the mean of the differences."""
    random = np.random.default_rng(seed)
    truth = differences.mean()
    studies = random.choice(differences, size=(n_studies, n))
    counts = random.multinomial(n, np.full(n, 1 / n), size=n_resamples)
    low, high = np.quantile(studies @ counts.T / n, [0.025, 0.975], axis=1)
    reach = scipy.stats.t.ppf(0.975, n - 1) * studies.std(axis=1, ddof=1) / np.sqrt(n)
    near = np.abs(studies.mean(axis=1) - truth) <= reach + 1e-12
    return np.mean((low <= truth + 1e-12) & (truth <= high + 1e-12)), near.mean()


def wide_tables():
    """Set -> table of a row a source and a column a system."""
    stored = pd.read_csv(packaged_path("rewrite_scores.csv"))
    stored = stored[~stored.system.isin(["copy", "parrot"])]
    yield "sti", stored.pivot(index="row", columns="system", values="sti")
    lai = load_lai2022()
    lai["overall"] = lai[["human_style", "human_content", "human_fluency"]].mean(axis=1)
    yield (
        "lai2022",
        pd.DataFrame({name: rows.overall.to_numpy() for name, rows in lai.groupby("system")}),
    )
    wmt = load_ratings("wmt23_mqm_zhen").query("criterion == 'overall'")
    yield "wmt23_mqm_zhen", wmt.pivot(index="source_id", columns="system", values="rating")


def main() -> None:
    rows = []
    for data_set, table in wide_tables():
        for a, b in combinations(table.mean().sort_values(ascending=False).index, 2):
            gap = (table[a] - table[b]).to_numpy()
            row = {
                "data_set": data_set,
                "better": a,
                "worse": b,
                "n": len(gap),
                "difference": gap.mean(),
                "spread": gap.std(ddof=1),
                "spread_apart": np.sqrt(table[a].var() + table[b].var()),
                "correlation": np.corrcoef(table[a], table[b])[0, 1],
                "p": scipy.stats.ttest_1samp(gap, 0).pvalue,
            }
            for n in SIZES:
                row[f"percentile_{n}"], row[f"student_{n}"] = coverage(gap, n)
            rows.append(row)
    pd.DataFrame(rows).round(4).to_csv("tsteval/data/paired_differences.csv", index=False)


if __name__ == "__main__":
    main()
