"""Fit the head of acceptability that the package ships: a logistic regression on what a language model holds of a text.

    python nbs/making/acceptability_model.py read FOLDER     # the model reads both sets; twenty minutes on one core
    python nbs/making/acceptability_model.py choose FOLDER   # layers, penalty and weight by cross-validation; minutes
    python nbs/making/acceptability_model.py fit FOLDER      # tsteval/data/acceptability-smollm2/head.safetensors; seconds
    python nbs/making/property_people.py                     # how well it follows people
    python nbs/making/acceptability_model.py card FOLDER     # tsteval/data/acceptability-smollm2/README.md

It needs the sets gug and cola, see `tsteval.tables.rated_sets`. FOLDER keeps numbers between the steps and is not shipped.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd

from tsteval.core.files import file_sha256
from tsteval.models.causal_lm import CausalLM
from tsteval.tables.ratings import load_ratings
from tsteval.tone import LIKELIHOOD, READ_LAYERS, likelihood_signs
from tsteval.training.logistic import fit_logistic, logistic

DATA = Path(__file__).parents[2] / "tsteval" / "data"
FOLDER = DATA / "acceptability-smollm2"
SETS = ("gug", "cola")
LAYERS = (10, 14, 18, 22, 26)  # to choose from
PENALTY = (300.0, 3000.0)  # rho of `fit_logistic`, of the five signs and of the states
TIMES = 3  # how often a sentence of gug counts
FOLDS = 5


def examples(name: str) -> pd.DataFrame:  # output, wanted (0..1), source, part
    """A set's sentences once, with what people said as a share: a mean rating of 1 to 4, or a linguist's yes or no."""
    rows = load_ratings(name).drop_duplicates("item").reset_index(drop=True)
    wanted = (rows.rating - 1) / 3 if name == "gug" else rows.rating
    source = name + rows.source_id.astype(str)
    return rows[["output", "part"]].assign(wanted=wanted, source=source)


def read(folder: Path) -> None:
    """What the model holds of each sentence, for every layer that may be chosen."""
    lm = CausalLM.load(LIKELIHOOD)
    folder.mkdir(parents=True, exist_ok=True)
    for name in SETS:
        rows = lm.read_states(list(examples(name).output), LAYERS, progress=True)
        np.savez(
            folder / f"{name}.npz",
            states=np.array([states for states, _ in rows], dtype=np.float32),
            signs=np.array([likelihood_signs(logprobs) for _, logprobs in rows]),
        )


def evidence(
    folder: Path, name: str, layers
) -> np.ndarray:  # (N, F) as of `acceptability_evidence`
    stored = np.load(folder / f"{name}.npz")
    chosen = [LAYERS.index(layer) for layer in layers]
    states = stored["states"][:, chosen].astype(float)
    return np.column_stack([stored["signs"], states.reshape(len(states), -1)])


def known(folder: Path, layers) -> tuple[pd.DataFrame, np.ndarray]:
    """What may be trained on: no sentence of gug's test part, and of cola the publications in the domain alone."""
    rows = pd.concat([examples(name) for name in SETS], ignore_index=True)
    features = np.concatenate([evidence(folder, name, layers) for name in SETS])
    kept = ~rows.part.isin(["test", "out_of_domain_dev"]).to_numpy() & np.isfinite(features[:, 0])
    return rows[kept].reset_index(drop=True), features[kept]


def fitted(features: np.ndarray, rows: pd.DataFrame, penalty: tuple[float, float], times: int):
    of_gug = rows.source.str.startswith("gug")
    repeated = np.repeat(np.arange(len(rows)), np.where(of_gug, times, 1))
    ridge = np.repeat(penalty, (5, features.shape[1] - 5))
    return fit_logistic(features[repeated], rows.wanted.to_numpy()[repeated], ridge=ridge)


def folds(
    rows: pd.DataFrame,
) -> np.ndarray:  # (N,) whole publications of cola, single sentences of gug
    sizes = rows.groupby("source").size().sort_values(ascending=False, kind="stable")
    filled = np.zeros(FOLDS)
    of_source = {}
    for source, size in sizes.items():
        of_source[source] = int(filled.argmin())
        filled[filled.argmin()] += size
    return rows.source.map(of_source).to_numpy()


def auc(labels: np.ndarray, values: np.ndarray) -> float:
    from scipy.stats import mannwhitneyu

    yes, no = values[labels == 1], values[labels == 0]
    return float(mannwhitneyu(yes, no).statistic / (len(yes) * len(no)))


def held_out(
    folder: Path, layers, penalty: tuple[float, float], times: int
) -> np.ndarray:  # AUC of cola, r of gug
    """On publications and on sentences that were left out, each the mean over folds."""
    rows, features = known(folder, layers)
    fold = folds(rows)
    of_gug = rows.source.str.startswith("gug").to_numpy()
    wanted = rows.wanted.to_numpy()
    found = []
    for held in range(FOLDS):
        out = fold == held
        curve = fitted(features[~out], rows[~out], penalty, times)
        p = logistic(features, *curve)
        cola, gug = out & ~of_gug, out & of_gug
        found.append((auc(wanted[cola], p[cola]), np.corrcoef(wanted[gug], p[gug])[0, 1]))
    return np.mean(found, axis=0)


def choose(folder: Path) -> None:
    """Layers, penalties, and how often a sentence of gug counts."""
    ways = [
        ((), PENALTY, TIMES),
        ((18,), PENALTY, TIMES),
        ((18,), (3000.0, 3000.0), TIMES),
        ((18,), (100.0, 1000.0), TIMES),
        ((18, 22), PENALTY, TIMES),
        ((18,), PENALTY, 1),
    ]
    for layers, penalty, times in ways:
        area, r = held_out(folder, layers, penalty, times)
        print(f"{layers!s:9} {penalty!s:16} {times}  cola {area:.3f}  gug {r:.3f}", flush=True)


def fit(folder: Path) -> None:
    """Fit the head on all that may be trained on, and write it."""
    import json

    from safetensors.numpy import save_file

    rows, features = known(folder, READ_LAYERS)
    bias, weight = fitted(features, rows, PENALTY, TIMES)
    FOLDER.mkdir(exist_ok=True)
    head = {"weight": weight.astype(np.float32), "bias": np.array([bias], dtype=np.float32)}
    save_file(head, FOLDER / "head.safetensors")
    base = json.dumps({"base_model_name_or_path": LIKELIHOOD})
    (FOLDER / "adapter_config.json").write_text(base + "\n", encoding="utf-8")


CARD = """# acceptability-smollm2

The mark, from 0 to 1, that people are expected to give an English sentence for being well formed. A linear head over
{base}, which is left as it is; made by `nbs/making/acceptability_model.py`.

One half is the middle: raters halfway between *not English* and *perfect*, or a linguist as likely as not to star the
sentence. Of what it was trained on, people's mean mark is {mean:.2f}, so a value of one half is already a low one.

## Use

```python
from tsteval.tone import acceptability
acceptability(["The mill was built in 1871."])
acceptability(["The mill was built in 1871."], model="{base}")  # as until 0.3: the likelihood on a curve
```

## What it sees

Five signs of how likely the model finds the text: mean, lowest and standard deviation of the tokens' log-probabilities,
PenLP, and the logarithm of their number. Then the mean over the tokens of the states behind layer {layers}.

## Training data

{n_gug:,} sentences of learners of English with the mean of six raters, 1 to 4 as a share (GUG, Heilman et al. 2014; parts
train and dev; CC BY-NC-SA 4.0; not included here) and {n_cola:,} example sentences of linguistics publications, acceptable or
not (CoLA, Warstadt et al. 2019; in-domain parts; the sentences remain with their publishers; not included here): about
half of each set. GUG's terms do not allow commercial use; whoever has such a use in mind should ask whether they bear on
these weights. Layer, penalties and weight were chosen by five-fold cross-validation, whole publications of CoLA in one fold:
there the AUC on CoLA was {area:.3f} and r on GUG {r:.3f}. GUG's test part and CoLA's out-of-domain part were used for the results alone.

## Results

Correlations are Pearson's, with the mean rating. Intervals of 95%, from 2,000 resamples of sources.

{results}

## Limits

English only; single sentences. Learners' mistakes and linguists' examples, not the slips of machines. What is well formed
and false, or well formed and rude, is well formed.

## Settings

Penalty {signs:.0f} on the signs and {states:.0f} on the states, which were brought to standard deviation 1; each sentence of
GUG counts {times} times.

## Checksums

- head.safetensors: {weights}
"""


def card(folder: Path) -> None:
    area, r = held_out(folder, READ_LAYERS, PENALTY, TIMES)
    rows = pd.concat([examples(name) for name in SETS], ignore_index=True)
    rows = rows[~rows.part.isin(["test", "out_of_domain_dev"])]
    n_gug = int(rows.source.str.startswith("gug").sum())
    people = pd.read_csv(DATA / "property_people.csv").query("property == 'acceptability'")
    lines = [
        f"| {row.data} | {row.measure} | {row.way} | {row.value:.3f} | {row.low:.3f} | {row.high:.3f} | {row.n} |"
        for row in people.itertuples()
    ]
    head = [
        "| data | measure | way | value | low | high | n |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    (FOLDER / "README.md").write_text(
        CARD.format(
            base=LIKELIHOOD,
            area=area,
            r=r,
            mean=rows.wanted.mean(),
            layers=" and ".join(map(str, READ_LAYERS)),
            n_gug=n_gug,
            n_cola=len(rows) - n_gug,
            results="\n".join([*head, *lines]),
            signs=PENALTY[0],
            states=PENALTY[1],
            times=TIMES,
            weights=file_sha256(FOLDER / "head.safetensors"),
        ),
        encoding="utf-8",
    )


if __name__ == "__main__":
    step, *folder = sys.argv[1:]
    {"read": read, "choose": choose, "fit": fit, "card": card}[step](*map(Path, folder))
