"""A trained neutraliser beside its editors, pair by pair: python nbs/making/wnc_cases.py writes tsteval/data/wnc_cases.csv

`wnc_test`, 916 real edits of Wikipedia with the outputs of MODULAR (Pryzant et al. 2020). A row an edit, in the set's
order: `part` (single: one word or span was edited; multi: more), and for the system and for the editor the style moved
towards neutral (`sti`) and the content kept (`cps`). `copied` says whether MODULAR gave its source back, `words` how
many words it has a word of the source; `target_words` is the editor's. `by_vectors` and `by_words` are what the review
of pairs (`tsteval.training.errors.doubtful_pairs`) says of the editor's version: the log-odds that the pair runs the
right way, by two judges fitted to the other pairs; both below 0: `doubtful`. Texts are not stored. Five minutes.
"""

import pandas as pd

from tsteval.core.assets import packaged_path
from tsteval.evaluation import evaluate
from tsteval.models.encoder import SentenceEncoder
from tsteval.tables.ratings import load_ratings
from tsteval.training.errors import doubtful_pairs


def letters(texts: pd.Series) -> pd.Series:
    return texts.map(lambda text: "".join(text.split()))


def main() -> None:
    table = load_ratings("wnc_test")
    own = table[table.system == "modular"].reset_index(drop=True)
    human = own.assign(system="human", output=own.reference)
    both = pd.concat([own, human], ignore_index=True)[["system", "source", "output"]]
    scored = evaluate(both.assign(target_style="neutral"), ["sti", "cps"], n_boot=2).per_pair
    cases = own[["part"]].copy()
    for system, before in (("modular", ""), ("human", "target_")):
        rows = scored[(scored.system == system).to_numpy()].reset_index(drop=True)
        cases[f"{before}sti"], cases[f"{before}cps"] = rows.sti, rows.cps
        texts = own.output if system == "modular" else own.reference
        cases[f"{before}words"] = texts.str.split().str.len() / own.source.str.split().str.len()
    cases["copied"] = (letters(own.output) == letters(own.source)).astype(int)
    pairs = pd.DataFrame({"source": own.source, "target": own.reference})
    review = doubtful_pairs(pairs, SentenceEncoder.load().encode)
    for column in ("by_vectors", "by_words", "doubtful"):
        cases[column] = review[column].reindex(cases.index)
    cases.doubtful = cases.doubtful.fillna(False).astype(int)
    path = packaged_path("wnc_cases.csv")
    cases.round(4).to_csv(path, index=False, lineterminator="\n")


if __name__ == "__main__":
    main()
