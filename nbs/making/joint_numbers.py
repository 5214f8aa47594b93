"""A joint number beside people, system by system: python nbs/making/joint_numbers.py writes tsteval/data/joint_means.csv
and tsteval/data/joint_taus.csv

Two studies rated whole systems: `mir2019`, eight settings of two sentiment models on 244 sentences (Mir et al. 2019),
and `lai2022`, eight systems of formality and a person on 55 (Lai et al. 2022). `joint_means.csv` has a row a system:
the means of people's three ratings, on the study's own scale, and of `people`, the mean of the three; of our parts,
which are the normalised intensity, CPS and a fifth of SLOR, each cut to 0..1; and of the geometric and the plain mean
of these parts within a sentence. `joint_taus.csv` has Kendall's tau of the systems between a number and a rating, with
the 95% interval of 1,000 resamples of sentences, the same for both; `mir2019 CAAE` and `mir2019 ARAE` are the settings
of one model. `geometric less naturalness` is the difference of two taus. Needs TSTEVAL_DATA. Half a minute.
"""

import numpy as np
import pandas as pd

from tsteval.core.assets import packaged_path
from tsteval.core.resample import mean_statistics, percentiles
from tsteval.people.pareto import joint_scores
from tsteval.people.systems import kendall_tau, resampled_scores
from tsteval.tables.lai2022 import load_lai2022
from tsteval.tables.mir2019 import load_mir2019

NUMBERS = ("geometric", "plain", "style", "content", "naturalness")
RATINGS = ("people", "people_style", "people_content", "people_naturalness")


def rated(name: str, table: pd.DataFrame, naturalness: str) -> pd.DataFrame:
    """A row an output: its system, people's ratings, and our numbers."""
    scores = pd.read_csv(packaged_path("system_scores.csv")).query("data_set == @name")
    scores = scores.reset_index(drop=True)
    asked = {"style": "style", "content": "content", naturalness: "naturalness"}
    rows = table[["system"]].assign(
        **{f"people_{ours}": table[f"human_{theirs}"] for theirs, ours in asked.items()}
    )
    rows["people"] = rows[list(RATINGS[1:])].mean(axis=1)
    parts = {
        "style": scores.normalized_intensity.clip(0, 1),
        "content": scores.cps.clip(0, 1),
        "naturalness": (scores.slor / 5).clip(0, 1),
    }
    joint = joint_scores(*parts.values()).geometric_mean
    return rows.assign(geometric=joint, plain=sum(parts.values()) / 3, **parts)


def taus(name: str, rows: pd.DataFrame) -> list[dict]:
    drawn = {
        column: resampled_scores(
            {system: mean_statistics(own[column]) for system, own in rows.groupby("system")},
            n_resamples=1000,
        )
        for column in (*NUMBERS, *RATINGS)
    }
    found = []
    for rating in RATINGS:
        both = {
            # rounded, since equal means of thirds differ in their last digits
            number: [
                kendall_tau(*np.round(sides, 9)) for sides in zip(drawn[number], drawn[rating])
            ]
            for number in NUMBERS
        }
        lead = [a - b for a, b in zip(both["geometric"], both["naturalness"])]
        for number, (tau, resampled) in (both | {"geometric less naturalness": lead}).items():
            low, high = percentiles(resampled)
            found.append(
                {"set": name, "number": number, "rating": rating, "tau": tau}
                | {"low": low, "high": high}
            )
    return found


def main() -> None:
    mir = load_mir2019()
    mir = rated("mir2019", mir.assign(system=mir.system + " " + mir.setting), "naturalness")
    lai = rated("lai2022", load_lai2022(), "fluency")
    means, found = [], []
    for name, rows in (("mir2019", mir), ("lai2022", lai)):
        groups = rows.groupby("system", sort=False)
        own = groups[[*RATINGS, *NUMBERS]].mean().reset_index()
        own.insert(0, "set", name)
        own.insert(2, "n", groups.size().to_numpy())
        means.append(own)
        found += taus(name, rows)
    for model in ("ARAE", "CAAE"):
        found += taus(f"mir2019 {model}", mir[mir.system.str.startswith(model)])
    for file, rows in (("joint_means.csv", pd.concat(means)), ("joint_taus.csv", found)):
        pd.DataFrame(rows).round(4).to_csv(packaged_path(file), index=False, lineterminator="\n")


if __name__ == "__main__":
    main()
