"""Scores of the systems on the embedded test pairs: python nbs/making/rewrite_scores.py [SYSTEM ...], writes
tsteval/data/rewrite_scores.csv.

The outputs are those of tsteval.rewriting.load_rewrites(), and a parrot that answers every source with one neutral
sentence. Only the systems that are named are scored anew; none named: all. A row an output, two or more judges for each
aspect:

style    sti: how far it moved by the embedded classifier; sti_words: by a bag of words fitted to the embedded training
pairs, and
         neutral_words, what this gives to the output; sti_statements and sti_statement_words: by a classifier and by a
         bag of words fitted to the statements of Hube and Fetahu
content  cps: the cosine of source and output, no mask; chrf: chrF of the output against its source; bleu: against the
target fluency  slor: by the embedded language model, and slor_source, that of the source; trigrams: mean
log-probability of a token by a
         trigram model of the Brown corpus

The judges that had no hand in any system are those of neutral_rewriter.py: their scores are taken from
tsteval/data/rewriters.csv, which has to be up to date. The parrot is judged here; that needs the statements
(TSTEVAL_DATA) and the Brown corpus (NLTK_DATA).
"""

import sys
from pathlib import Path

import pandas as pd
from neutral_rewriter import judges
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from tsteval.core.assets import packaged_path
from tsteval.evaluation import evaluate
from tsteval.rewriting import load_rewrites
from tsteval.style import labelled_sentences, load_pairs

PARROT = "The town lies on the river."
# there -> here
APART = {
    "sti_statements": "sti_statements",
    "sti_words": "sti_statement_words",
    "chrf": "chrf",
    "fluency": "trigrams",
}
COLUMNS = [
    "system",
    "row",
    "neutral_words",
    "sti_words",
    "sti_statements",
    "sti_statement_words",
    "bleu",
    "sti",
    "cps",
    "chrf",
    "slor",
    "slor_source",
    "trigrams",
]


def systems() -> pd.DataFrame:  # system, row, source, output, reference
    outputs = load_rewrites().rename(columns={"target": "reference"})
    parrot = outputs[outputs.system == "copy"].assign(system="parrot", output=PARROT)
    table = pd.concat([outputs, parrot], ignore_index=True)
    return table.assign(row=table.groupby("system").cumcount())[
        ["system", "row", "source", "output", "reference"]
    ]


def bag_of_words():
    training = pd.concat([load_pairs(name) for name in ("npov_pairs", "npov_hard")]).query(
        "split == 'train'"
    )
    known = labelled_sentences(training)
    model = make_pipeline(CountVectorizer(binary=True), LogisticRegression(max_iter=1000))
    return model.fit(known.text, known.label, logisticregression__sample_weight=known.weight)


def apart(table: pd.DataFrame) -> pd.DataFrame:
    """What the judges say that had no hand in any system; the parrot is not among the systems of rewriters.csv."""
    known = pd.read_csv(packaged_path("rewriters.csv"))
    new = table[~table.system.isin(list(known.system))]
    if len(new):
        judged = judges()
        scored = {name: judged[name](new.source.tolist(), new.output.tolist()) for name in APART}
        known = pd.concat([known, new[["system", "row"]].assign(**scored)], ignore_index=True)
    found = table[["system", "row"]].merge(
        known[["system", "row", *APART]], on=["system", "row"], how="left", validate="one_to_one"
    )
    return found[list(APART)].rename(columns=APART)


def scores(table: pd.DataFrame) -> pd.DataFrame:
    words = bag_of_words()
    found = table[["system", "row"]].assign(neutral_words=words.predict_proba(table.output)[:, 1])
    found["sti_words"] = found.neutral_words - words.predict_proba(table.source)[:, 1]
    result = evaluate(
        table.drop(columns="row"),
        ("bleu", "sti", "cps", "fluency"),
        options={"cps": {"strategy": "none"}},
        n_boot=1,
    )
    found = pd.concat([found, apart(table)], axis=1)
    return found.assign(
        **{column: result.per_pair[column].to_numpy() for column in ("bleu", "sti", "cps", "slor")}
    )


if __name__ == "__main__":
    path = Path(packaged_path("rewrite_scores.csv"))
    table = systems()
    order = list(dict.fromkeys(table.system))
    chosen = table[table.system.isin(sys.argv[1:] or order)].reset_index(drop=True)
    new = scores(chosen)
    known = pd.read_csv(path) if path.is_file() and sys.argv[1:] else new[:0]
    known = pd.concat([known[~known.system.isin(list(chosen.system))], new], ignore_index=True)
    known["slor_source"] = known.row.map(known[known.system == "copy"].set_index("row").slor)
    known = known.sort_values(
        ["system", "row"],
        key=lambda column: column.map(order.index) if column.name == "system" else column,
    )
    known[COLUMNS].round(4).to_csv(path, index=False)
    print(
        known.groupby("system", sort=False).mean().drop(columns="row").round(3).to_string(),
        flush=True,
    )
