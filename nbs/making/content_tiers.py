"""Fit the style-aware score on the larger encoder, and say what each tier reaches.

    python nbs/making/content_tiers.py FOLDER    # some minutes on one core; needs the corpora style_gap and lai2022

The evidence of the language model and of the classifier is the same in both tiers; it is read from what
`content_scores.py` and `agreement_scores.py` stored. New are the cosine of the larger encoder, the words that both
texts share, and, as candidates, facts at the level of tokens: the weakest partner of any content word, and numbers that
one text has alone. The weights of the larger tier are fitted to the 66 sources of our contrasts that the classifier was
not trained on; on these each half is scored with the weights of the other half. What is chosen among candidates is
chosen on style_gap and lai2022, which are therefore no test of the choice. FOLDER keeps cosines between runs.
Written: tsteval/data/content_weights.json (the larger tier's part) and content_tiers.csv.
"""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from content_scores import RESAMPLES, SETS, areas, correlations, fit_weights

from tsteval.content import shared_words
from tsteval.core.assets import packaged_path
from tsteval.cps import SentenceEncoder, cosine
from tsteval.models.alignment import paired_tokens
from tsteval.report.flows import is_content
from tsteval.tables.ratings import load_ratings, stored_scores
from tsteval.words.quantities import find_quantities

SMALL = "all-MiniLM-L6-v2"
BASE = "all-mpnet-base-v2"
LINKS = ("support", "source_support", "regret", "classifier")
FIVE = ("cosine", *LINKS)
CANDIDATES = {
    "five": FIVE,
    "five and words": (*FIVE, "words_kept", "words_backed"),
    "five and weakest tokens": (*FIVE, "weakest_source_token", "weakest_output_token"),
    "five and numbers": (*FIVE, "numbers"),
    "five, words and numbers": (*FIVE, "words_kept", "words_backed", "numbers"),
}
CHOSEN = "five and words"


def stored_links(name: str, table: pd.DataFrame) -> pd.DataFrame:
    """The evidence of language model and classifier for each row of a set."""
    if name == "contrasts":
        found = pd.read_csv(packaged_path("content_contrasts.csv"))
        assert (found.id.to_numpy() == table.id.to_numpy()).all()
        return found[[f"evidence: {link}" for link in LINKS]].set_axis(list(LINKS), axis=1)
    keys = load_ratings(name).query("criterion == 'content'")[
        ["system", "item", "source", "output"]
    ]
    rows = keys.merge(stored_scores(name), on=["system", "item"]).drop_duplicates(
        ["source", "output"]
    )
    rows = table[["source", "output"]].merge(rows, on=["source", "output"], how="left")
    return rows[[f"evidence_{link}" for link in LINKS]].set_axis(list(LINKS), axis=1)


def weakest_tokens(
    encoder: SentenceEncoder, name: str, table: pd.DataFrame, folder: Path
) -> np.ndarray:
    """(N, 2): the lowest cosine that any content token of the source, of the output, has with its best partner."""
    path = folder / f"{encoder.name}-{name}-tokens.npy"
    if path.exists():
        return np.load(path)
    known = {}
    found = np.ones((len(table), 2))

    def carries(side):
        words = [
            known.setdefault(token, encoder.tokenizer.decode([token]).replace("##", "").strip())
            for token in side.ids
        ]
        return np.array([is_content(word) for word in words]) & ~side.marks

    for row, source, output in paired_tokens(
        encoder, list(table.source), list(table.output), encoder.model.config.num_hidden_layers
    ):
        best = source.vectors @ output.vectors.T
        found[row] = (
            best.max(axis=1)[carries(source)].min(initial=1),
            best.max(axis=0)[carries(output)].min(initial=1),
        )
    np.save(path, found)
    return found


def numbers_apart(source: str, output: str) -> int:
    """Minus the count of numbers and dates that one text has alone."""
    values = [{fact.value for _, fact in find_quantities(text)} for text in (source, output)]
    return -len(values[0] ^ values[1])


def evidence_of(
    encoder: SentenceEncoder, name: str, table: pd.DataFrame, folder: Path
) -> pd.DataFrame:
    source = list(table.source)
    output = list(table.output)
    path = folder / f"{encoder.name}-{name}-cosines.npy"
    if not path.exists():
        np.save(path, cosine(*(encoder.encode(texts) for texts in (source, output))))
    kept, backed = shared_words(source, output)
    tokens = weakest_tokens(encoder, name, table, folder)
    return stored_links(name, table).assign(
        cosine=np.load(path),
        words_kept=kept,
        words_backed=backed,
        weakest_source_token=tokens[:, 0],
        weakest_output_token=tokens[:, 1],
        numbers=[numbers_apart(*pair) for pair in zip(source, output)],
        length=np.log(
            [(len(b.split()) + 1) / (len(a.split()) + 1) for a, b in zip(source, output)]
        ),
    )


def content(evidence: pd.DataFrame, weights: dict[str, float]) -> np.ndarray:
    total = weights["constant"] + sum(
        weight * evidence[name] for name, weight in weights.items() if name != "constant"
    )
    return np.array(np.sqrt(evidence.cosine.clip(0) / (1 + np.exp(-total))))


def scored(
    evidence: dict[str, pd.DataFrame], own: pd.DataFrame, names: tuple[str, ...]
) -> tuple[dict, dict]:
    """The score of every set, and the weights. Contrasts are scored by weights that were not fitted to them."""
    parts = {part: (own.split == part).to_numpy() for part in ("fit", "test")}
    kept = own.rating.to_numpy()

    def fit_on(rows):
        return fit_weights(evidence["contrasts"][rows], kept[rows], names)

    weights = fit_on(parts["fit"] | parts["test"])
    scores = {name: content(found, weights) for name, found in evidence.items()}
    for part, other in (("fit", "test"), ("test", "fit")):
        scores["contrasts"][parts[part]] = content(evidence["contrasts"], fit_on(parts[other]))[
            parts[part]
        ]
    return scores, weights


def measured(
    name: str, columns: np.ndarray, rating: np.ndarray, styles: np.ndarray, kept: np.ndarray
) -> dict:
    """Measure -> a value for each of the K columns, (n, K). Of the contrasts every other row is the wrong rewrite."""
    if name == "contrasts":
        return {
            "kept wins": np.mean(
                (columns[::2] > columns[1::2]) + 0.5 * (columns[::2] == columns[1::2]), axis=0
            )
        }
    found = {"pearson": correlations(columns, rating)}
    if name == "style_gap":
        apart = {
            style: correlations(columns[styles == style], rating[styles == style])
            for style in np.unique(styles)
        }
        found |= apart | {"mean of styles": np.mean(list(apart.values()), axis=0)}
        found["auc"] = areas(columns, kept)
    return found


def with_intervals(
    tier: str, name: str, table: pd.DataFrame, scores: dict[str, np.ndarray]
) -> list[dict]:
    """Every measure of every score, and its lead over the cosine, with the 95% interval from resampling sources."""
    if name == "contrasts":
        table = table.sort_values(["id", "rating"], ascending=[True, False])
    columns = np.column_stack(list(scores.values()))[table.index]
    parts = (
        columns,
        table.rating.to_numpy(float),
        table["style"].to_numpy(),
        (table.change == "none").to_numpy()
        if "change" in table
        else np.ones(len(table), dtype=bool),
    )
    groups = list(table.groupby("source").indices.values())
    random = np.random.default_rng(0)
    rival = list(scores).index("cosine")

    def paired(rows):
        values = measured(name, *(part[rows] for part in parts))
        return values | {
            f"{measure} minus cosine": found - found[rival] for measure, found in values.items()
        }

    drawn = []
    for _ in range(RESAMPLES):
        rows = np.concatenate(
            [groups[place] for place in random.integers(len(groups), size=len(groups))]
        )
        drawn.append(paired(rows))
    found = []
    for measure, values in paired(np.arange(len(table))).items():
        low, high = np.nanquantile([draw[measure] for draw in drawn], (0.025, 0.975), axis=0)
        found += [
            {
                "tier": tier,
                "score": label,
                "data_set": name,
                "measure": measure,
                "value": values[place],
                "low": low[place],
                "high": high[place],
                "n": len(table),
                "sources": len(groups),
            }
            for place, label in enumerate(scores)
        ]
    return found


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    tables = {name: SETS[name]() for name in ("contrasts", "style_gap", "lai2022")}
    own = tables["contrasts"]
    rows = []
    held = (own.split != "train").to_numpy()
    path = packaged_path("content_weights.json")
    weights = json.loads(path.read_text(encoding="utf-8"))
    shipped = {}
    for tier, encoder in (
        ("small", SentenceEncoder.load(SMALL)),
        ("base", SentenceEncoder.load(BASE)),
    ):
        evidence = {
            name: evidence_of(encoder, name, table, folder) for name, table in tables.items()
        }
        shipped = shipped or {
            name: content(found, weights[SMALL]) for name, found in evidence.items()
        }
        alone = {
            label: {name: found[label].to_numpy() for name, found in evidence.items()}
            for label in ("length", "words_kept", "cosine", "weakest_source_token")
        }
        alone["shipped"] = (
            shipped  # the small tier's in both, to be compared with the larger encoder's cosine too
        )
        for label, names in CANDIDATES.items():
            alone[label], fitted = scored(evidence, own, names)
            if (tier, label) == ("base", CHOSEN):
                weights[BASE] = {name: round(value, 4) for name, value in fitted.items()}
        for name, table in tables.items():
            keep = held if name == "contrasts" else table.rating.notna().to_numpy()
            rows += with_intervals(
                tier,
                name,
                table[keep].reset_index(drop=True),
                {label: scores[name][keep] for label, scores in alone.items()},
            )
        print(tier, "done", flush=True)
    path.write_text(json.dumps(weights, indent=1) + "\n", encoding="utf-8")
    pd.DataFrame(rows).round(4).to_csv(packaged_path("content_tiers.csv"), index=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
