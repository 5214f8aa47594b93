"""A language model asked for entailment, and the content score on chapter 10's wrong facts.

    python nbs/making/content_facts.py       # some minutes on two cores
    python nbs/making/content_facts.py readings       # only the last table

tsteval/data/content_entailment.csv: the rewrites of `load_contrasts` that belong to the test part. `forward` is the
log-odds of *Yes* over *No* when the embedded language model is asked whether the source entails the rewrite, `backward`
the same with the two texts exchanged; `another_style` is the content score that is told another style than was asked
for.

tsteval/data/content_facts.csv: 72 editors' versions (`own`), each with one fact swapped, and 25 with a *not* put in, as
chapter 10 makes them; the evidence of chapter 13 and its score. None of these texts trained the classifier.

tsteval/data/content_readings.csv: four readings of the same rewrites (`contrasts`, with their id) and of the editors'
versions and their twins (`facts`, with their row): mean and lowest over the tokens of the log-probability under the
likelier of two tasks, and of the support, which has the log-probability without task and source subtracted.

The files hold figures only. Nothing at run time depends on this file.
"""

import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from tsteval.content import TASKS, content_evidence, facts_kept, split_contrasts, word_links
from tsteval.core.assets import packaged_path
from tsteval.models.causal_lm import CausalLM, task_tokens
from tsteval.tables.pairs import load_contrasts, load_pairs

FOLDER = Path(__file__).parents[2] / "tsteval" / "data"
QUESTION = (
    "Premise: {premise}\nHypothesis: {hypothesis}\n"
    "Does the premise entail the hypothesis? Answer yes or no."
)
VERB = r"\b(was|were|is|are)\b(?! no)"


def yes_over_no(lm: CausalLM, premises: list[str], hypotheses: list[str]) -> list[float]:
    """Log-odds of Yes over No as the first token of the answer, a number a pair."""
    yes, no = lm.tokenizer(["Yes", "No"], add_special_tokens=False)["input_ids"]
    assert len(yes) == len(no) == 1
    found = []
    for one, other in zip(premises, hypotheses):
        question = QUESTION.format(premise=one, hypothesis=other)
        [context] = task_tokens(lm, [question], [""])
        with torch.inference_mode():
            logits = lm.model(torch.tensor([[*context]])).logits[0, -1]
        found.append(float(logits[yes[0]] - logits[no[0]]))
    return found


def entailment(lm: CausalLM) -> pd.DataFrame:
    test = split_contrasts(load_contrasts()).query("split == 'test'")
    parts = []
    for rating, column in ((1, "style_only"), (0, "changed")):
        sources, outputs = list(test.source), list(test[column])
        parts.append(
            pd.DataFrame(
                {
                    "id": test.id.to_numpy(),
                    "rating": rating,
                    "forward": yes_over_no(lm, sources, outputs),
                    "backward": yes_over_no(lm, outputs, sources),
                }
            )
        )
    return pd.concat(parts)


def told_another_style() -> pd.DataFrame:
    """The content score of the same rewrites, each told another of the seven styles; only forward reading hears it."""
    contrasts = load_contrasts().set_index("id", drop=False)
    styles = sorted(set(contrasts["style"]))
    stored = pd.read_csv(packaged_path("content_contrasts.csv")).query("split == 'test'")
    evidence = stored.rename(columns=lambda name: name.removeprefix("evidence: "))
    asked = contrasts.loc[stored.id]
    others = [styles[(styles.index(one) + 3) % len(styles)] for one in asked["style"]]
    texts = [
        row.style_only if rating else row.changed
        for row, rating in zip(asked.itertuples(), stored.rating)
    ]
    links = word_links(
        texts, asked.source, [[task.format(style=one) for one in others] for task in TASKS]
    )
    evidence["support"] = [found.weakest() for found in links]
    evidence["regret"] = [found.weakest("regret") for found in links]
    scores = np.sqrt(evidence.cosine.clip(0, 1) * facts_kept(evidence))
    return stored[["id", "rating"]].assign(another_style=scores)


def swapped_facts() -> pd.DataFrame:
    """Chapter 10's 72 pairs, the fact of each, and the target with that fact swapped."""
    pairs = load_pairs("npov_pairs").query("split == 'test' and source != target")
    facts = pd.read_csv(packaged_path("swapped_facts.csv"), dtype=str).drop(columns="row")
    pairs = pairs.reset_index(drop=True).join(facts)
    swapped = [
        re.sub(rf"\b{re.escape(row.fact)}\b", row.other, row.target) for row in pairs.itertuples()
    ]
    return pairs.assign(swapped=swapped)


def wrong_facts(lm: CausalLM) -> pd.DataFrame:
    rows = []
    for place, row in swapped_facts().iterrows():
        rows.append((place, "own", row.source, row.target))
        rows.append((place, row.kind, row.source, row.swapped))
        if re.search(VERB, row.target):
            denied = re.sub(VERB, r"\1 not", row.target, count=1)
            rows.append((place, "not", row.source, denied))
    rows = pd.DataFrame(rows, columns=["row", "kind", "source", "output"])
    sources, outputs = list(rows.source), list(rows.output)
    evidence, *_ = content_evidence(sources, outputs, "neutral", lm=lm)
    content = np.sqrt(evidence.cosine.clip(0, 1) * facts_kept(evidence))
    return rows[["row", "kind"]].join(evidence).assign(content=content)


def token_readings(lm: CausalLM) -> pd.DataFrame:
    test = split_contrasts(load_contrasts()).query("split == 'test'").sort_values("id")
    pairs = swapped_facts()
    parts = []
    for name, ids, styles, sources, sides in (
        ("contrasts", test.id, list(test["style"]), test.source, (test.style_only, test.changed)),
        (
            "facts",
            pairs.index,
            ["neutral"] * len(pairs),
            pairs.source,
            (pairs.target, pairs.swapped),
        ),
    ):
        for rating, outputs in zip((1, 0), sides):
            alone = lm.token_logprobs(outputs)
            told = [
                lm.token_logprobs(
                    outputs,
                    contexts=task_tokens(lm, [task.format(style=one) for one in styles], sources),
                )
                for task in TASKS
            ]
            for row, free, *bound in zip(ids, alone, *told):
                highest = np.max([scores.logprobs for scores in bound], axis=0)
                readings = {"log-probability": highest, "support": highest - free.logprobs}
                found = {"set": name, "id": row, "rating": rating}
                for what, values in readings.items():
                    found |= {f"mean {what}": values.mean(), f"lowest {what}": values.min()}
                parts.append(found)
    readings = pd.DataFrame(parts)
    # the lowest support is evidence already; its stored rounding is taken, so that twins tie in both tables or in none
    stored = pd.read_csv(packaged_path("content_contrasts.csv")).set_index(["id", "rating"])
    facts = pd.read_csv(FOLDER / "content_facts.csv").query("kind != 'not'")
    facts["rating"] = (facts.kind == "own").astype(int)
    known = {
        "contrasts": stored["evidence: support"],
        "facts": facts.set_index(["row", "rating"]).support,
    }
    lowest = [known[row.set][row.id, row.rating] for row in readings.itertuples()]
    assert np.allclose(lowest, readings["lowest support"], atol=0.01)
    return readings.assign(**{"lowest support": lowest})


def main(only: str = "") -> None:
    lm = CausalLM.load()
    if only != "readings":
        answers = entailment(lm).merge(told_another_style(), on=["id", "rating"])
        answers.round(4).to_csv(FOLDER / "content_entailment.csv", index=False)
        wrong_facts(lm).round(4).to_csv(FOLDER / "content_facts.csv", index=False)
    token_readings(lm).round(4).to_csv(FOLDER / "content_readings.csv", index=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
