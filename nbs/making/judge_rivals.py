"""Is a large judge ahead of scores that cost no request? tsteval/data/judge_rivals.csv.

    python nbs/making/judge_rivals.py                   # half a minute

The chat model's ratings of 2023 that are stored with the formality rewrites of Lai et al. 2022 (all 495 outputs) beside
the package's own scores of the same outputs, from agreement_scores.csv.gz, and the words shared with the source (F1 of
ROUGE-1). A row a score: `value` is its correlation with people's mean ratings, pooled or after each system's mean is taken away
on both sides (within systems), and `lead` the chat model's minus that, both with 95% intervals from resampling sources.
`ceiling` is the root of the two raters' reliability, which no score can pass. The table holds figures only. Needs lai2022
(TSTEVAL_DATA).
"""

import numpy as np
import pandas as pd

from tsteval.core.assets import packaged_path
from tsteval.core.resample import resample_counts
from tsteval.people.coefficients import (
    compare_correlations,
    correlation,
    within_coefficients,
    within_correlation,
)
from tsteval.people.raters import rater_table
from tsteval.rouge import rouge
from tsteval.tables.lai2022 import load_lai2022
from tsteval.tables.ratings import load_ratings, stored_scores

SCORES = {  # criterion -> what it is called here -> its column in agreement_scores.csv.gz
    "style": {"STI": "sti_normalized"},
    "content": {"cosine": "cosine", "style-aware content": "style_aware"},
    "fluency": {"NCE": "nce", "PenLP": "pen_lp"},
}
NAMES = {"fluency": "naturalness"}  # of the criterion in the package's words
N_BOOT = 2000


def within_lead(judge, score, people, systems, sources) -> tuple[float, float, float]:
    """The judge's correlation within systems minus the score's, with its interval over sources."""
    from scipy.stats import t

    systems, codes = (pd.factorize(names)[0] for names in (systems, sources))

    def both(counts):
        ours, theirs = (within_coefficients(counts, x, people, systems) for x in (judge, score))
        return ours - theirs

    value = float(both(np.ones((1, len(people))))[0])
    drawn = np.concatenate([both(counts) for counts in resample_counts(codes, N_BOOT)])
    reach = t.ppf(0.975, codes.max()) * drawn.std(ddof=1)
    return value, value - reach, value + reach


def main() -> None:
    ratings = load_ratings("lai2022")
    outputs = ratings.drop_duplicates("item").reset_index(drop=True)
    stored = stored_scores("lai2022", ratings).set_index("item").loc[outputs.item].reset_index()
    ceilings = rater_table(ratings).set_index("criterion").ceiling
    keys = ["system", "source", "output"]
    columns = [column for part in SCORES.values() for column in part.values()]
    known = outputs[keys].join(stored[columns]).drop_duplicates(keys)
    table = load_lai2022().merge(known, how="left", on=keys)
    assert len(table) == 495
    table["shared"] = rouge(list(table.output), list(table.source), kinds=("rouge1",)).rouge1
    rows = []
    for criterion, scores in SCORES.items():
        people = table[f"human_{criterion}"].to_numpy(float)
        judge = table[f"{criterion}_chatgpt"].to_numpy(float)
        for name, column in {"shared words": "shared", **scores}.items():
            score = table[column].to_numpy(float)
            about = {"criterion": criterion, "score": name, "n": len(table)}
            found = correlation(score, people, groups=table.row)
            lead = compare_correlations(judge, score, people, groups=table.row, n_boot=N_BOOT)
            rows.append(
                {"analysis": "pooled"}
                | about
                | {end: getattr(found, end) for end in ("value", "low", "high")}
                | {"lead": lead.difference, "lead_low": lead.low, "lead_high": lead.high}
                | {"ceiling": ceilings[NAMES.get(criterion, criterion)]}
            )
            found = within_correlation(score, people, table.system, groups=table.row)
            ends = within_lead(judge, score, people, table.system, table.row)
            rows.append(
                {"analysis": "within systems"}
                | about
                | {end: getattr(found, end) for end in ("value", "low", "high")}
                | dict(zip(("lead", "lead_low", "lead_high"), ends))
            )
    result = pd.DataFrame(rows).round(4)
    result.to_csv(packaged_path("judge_rivals.csv"), index=False, lineterminator="\n")
    print(result.to_string())


if __name__ == "__main__":
    main()
