"""What a judge pays for a deletion: python nbs/making/wnc_deletions.py writes tsteval/data/wnc_deletions.csv

The 402 edits of `wnc_test` in which the editor changed one place (see wnc_systems.py), with the outputs of MODULAR and
CONCURRENT (Pryzant et al. 2020). A row a group of edits and a score: its mean with the 95% interval over the edits.

`by` says how the edits are grouped. `editor`: what the editor did, that is, deleted words or put others in their place.
`modular`, `concurrent`: what the system did, that is, handed the source back, made it shorter, or changed it otherwise.
`same words`: the edits in which the editor replaced exactly the words that MODULAR deleted.
The scores are STI: of the `editor`, of the systems, and of `deleted`, the source without the words that the editor took
out and with nothing in their place. `x minus editor` is a score less the editor's on the same edits. A minute and a
half.
"""

import numpy as np
import pandas as pd

from tsteval.core.assets import packaged_path
from tsteval.core.resample import bootstrap_interval, mean_statistics
from tsteval.style import StyleClassifier
from tsteval.tables.ratings import load_ratings


def replaced_span(source: list[str], output: list[str]) -> tuple[int, int, list[str]]:
    """Start and end of the words of `source` that `output` lacks, and the words that it has in their place."""
    shortest = min(len(source), len(output))
    start = 0
    while start < shortest and source[start] == output[start]:
        start += 1
    tail = 0
    while tail < shortest - start and source[-1 - tail] == output[-1 - tail]:
        tail += 1
    return start, len(source) - tail, output[start : len(output) - tail]


def letters(text: str) -> str:
    return "".join(text.split())


def main() -> None:
    table = load_ratings("wnc_test").query("part == 'single'")
    copies = table[table.system == "copy"].set_index("source_id")
    texts = pd.DataFrame({"source": copies.source, "editor": copies.reference})
    for system in ("modular", "concurrent"):
        texts[system] = table[table.system == system].set_index("source_id").output
    acts, deleted = [], []
    for source, output in zip(texts.source.str.split(), texts.editor.str.split()):
        start, end, instead = replaced_span(source, output)
        acts.append("replaced" if instead else "deleted")
        deleted.append(" ".join(source[:start] + source[end:]))
    texts["deleted"] = deleted

    judge = StyleClassifier.load()
    different = pd.unique(texts.to_numpy().ravel())
    neutral = judge.predict_proba(list(different))[:, judge.labels.index("neutral")]
    reached = texts.apply(lambda column: column.map(dict(zip(different, neutral))))
    scores = reached.drop(columns="source").sub(reached.source, axis=0)
    for name in ("modular", "concurrent", "deleted"):
        scores[f"{name} minus editor"] = scores[name] - scores.editor

    groups = {"editor": pd.Series(acts, texts.index)}
    same = texts.modular.map(letters) == texts.deleted.map(letters)
    groups["same words"] = groups["editor"].where(same & (groups["editor"] == "replaced"))
    length = texts.apply(lambda column: column.str.split().str.len())
    for system in ("modular", "concurrent"):
        back = texts[system].map(letters) == texts.source.map(letters)
        shorter = length[system] < length.source
        groups[system] = pd.Series(
            np.select([back, shorter], ["handed back", "shorter"], "changed otherwise"), texts.index
        )

    rows = []
    for by, group in groups.items():
        for name, part in scores.groupby(group):
            for score, values in part.items():
                found = bootstrap_interval(mean_statistics(values.to_numpy()), n_resamples=2000)
                row = {"by": by, "group": name, "n": len(part), "score": score}
                rows.append(row | {"mean": found.score, "low": found.low, "high": found.high})
    path = packaged_path("wnc_deletions.csv")
    pd.DataFrame(rows).round(4).to_csv(path, index=False, lineterminator="\n")


if __name__ == "__main__":
    main()
