"""Cards of classifiers: measured figures, doubts, prose, settings, checksums"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..core.assets import read_json
from ..core.files import file_sha256
from ..core.resample import FEW, bootstrap_interval, mean_statistics
from ..models.classifier import (
    STYLE_FILE,
    STYLE_SETTINGS,
    StyleClassifier,
    confidence_line,
    settings_line,
)
from ..tables.pairs import twins
from .calibration import HIGHEST, LOWEST
from .holdout import Plan
from .words import word_precision


def measure_style(
    classifier: StyleClassifier,
    sentences: pd.DataFrame,  # text, label, pair
    split: str,  # what they are called in the table
) -> list[dict]:  # rows of the card's table: split, measure, n, value, low, high
    """Figures of a classifier on held-out sentences, with 95% bootstrap intervals over pairs."""
    probabilities = classifier.predict_proba(sentences.text)
    rows = figures_of(probabilities, sentences, split)
    if classifier.scores_words and len(
        precisions := word_precision(classifier, sentences.assign(probability=probabilities[:, 0]))
    ):
        rows += [
            _figure(split, name, mean_statistics(precisions[column]))
            for name, column in (
                ("strongest word is an edited one", "hit"),
                ("a word chosen blindly", "chance"),
            )
        ]
    return rows


def figures_of(
    probabilities: np.ndarray,  # (N, C)
    sentences: pd.DataFrame,  # (N,) rows: text, label, pair
    split: str,
) -> list[dict]:  # as `measure_style`, without those of words
    """Figures of probabilities that stand in no doubt: of sentences that were not trained on."""
    scored = sentences.assign(
        probability=probabilities[:, 0],
        right=probabilities.argmax(axis=1) == sentences.label,
        common=sentences.label == sentences.label.mode()[0],
        one=1,
    )
    first, second = twins(scored)
    values = scored.probability.to_numpy()
    alone = scored[scored.groupby("pair").one.transform("size") == 1]
    rows = [
        _figure(split, "accuracy", scored.groupby("pair")[["right", "one"]].sum()),
        _figure(split, "the most frequent class", scored.groupby("pair")[["common", "one"]].sum()),
    ]
    if len(first):
        rows.append(
            _figure(
                split,
                "pairwise accuracy",
                mean_statistics(0.5 + 0.5 * np.sign(values[first] - values[second])),
            )
        )
        if len(alone):
            rows.append(_figure(split, "accuracy on controls", alone[["right", "one"]]))
    return rows


def share_ends(
    share: float,  # 0..1
    n: int,  # that were counted, >= 1
) -> tuple[float, float]:
    """The 95% interval of a share of few. Source: Clopper and Pearson 1934."""
    from scipy.stats import beta

    right = share * n
    low = beta.ppf(0.025, right, n - right + 1) if right > 0 else 0.0
    high = beta.ppf(0.975, right + 1, n - right) if right < n else 1.0
    return float(low), float(high)


def _figure(split: str, name: str, statistics) -> dict:
    interval = bootstrap_interval(np.asarray(statistics, dtype=float), n_resamples=2000)
    n_groups = len(statistics)
    if n_groups < FEW or interval.score in (
        0,
        1,
    ):  # resamples of few, or of equals, spread too little
        low, high = share_ends(interval.score, n_groups)
        interval = interval._replace(low=low, high=high)
    return {
        "split": split,
        "measure": name,
        "n": int(np.asarray(statistics)[:, 1].sum()),
        "value": interval.score,
        "low": interval.low,
        "high": interval.high,
    }


# training texts of a class; held-out texts; times as many texts of one class as of another
_FEW_TEXTS = 200
_FEW_HELD = 100
_UNBALANCED = 4


def training_doubts(
    plan: Plan,
    labels: Sequence[str],  # C names of classes
    # from `measure_style` on validation; those of a "cross-validation" are of more texts and count instead
    results: list[dict],
    temperature: float,  # that the logits were divided by
) -> list[str]:  # a sentence each; empty if there is none
    """What the user of a classifier has to know first."""
    figures = {
        row["measure"]: row
        for split in ("validation", "cross-validation")
        for row in results
        if row["split"] == split
    }
    accuracy = figures["accuracy"]
    common = figures["the most frequent class"]["value"]
    doubts = []
    least = int(np.argmin(plan.classes))
    most = int(np.argmax(plan.classes))
    if plan.classes[least] < _FEW_TEXTS:
        doubts.append(
            f"Few texts: {plan.classes[least]} of style {labels[least]} to learn from; some hundreds are the "
            f"least for a style with many words."
        )
    if accuracy["n"] < _FEW_HELD:
        doubts.append(
            f"Few texts to measure on: {accuracy['n']}, so every figure is rough; see its interval."
        )
    if plan.classes[most] > _UNBALANCED * plan.classes[least]:
        doubts.append(
            f"Unbalanced: {plan.classes[most]} texts of style {labels[most]} and {plan.classes[least]} of "
            f"style {labels[least]}. "
            "The classes weigh the same in training; look at more than the accuracy."
        )
    if accuracy["low"] <= common:
        doubts.append(
            f"Not shown to know anything: the interval of its accuracy, {accuracy['low']:.3f} to "
            f"{accuracy['high']:.3f}, "
            f"does not lie above {common:.3f}, which always saying the most frequent class would reach."
        )
    if (order := figures.get("pairwise accuracy")) and order["low"] <= 0.5:
        doubts.append(
            f"Not shown to order pairs: the interval of that share, {order['low']:.3f} to "
            f"{order['high']:.3f}, does not lie above one half."
        )
    if temperature < LOWEST * 1.01 or temperature > HIGHEST / 1.01:
        doubts.append(
            f"The temperature ran to the end of its range ({temperature:.3g}): the probabilities are not "
            f"calibrated."
        )
    return doubts


def markdown_table(
    rows: list[dict],  # one row of the table each, the same keys in all; at least one
) -> str:  # lines of Markdown
    """Rows as a Markdown table; fractions with three digits."""
    cells = [
        [f"{value:.3f}" if isinstance(value, float) else str(value) for value in row.values()]
        for row in rows
    ]
    return "\n".join(
        f"| {' | '.join(row)} |" for row in [list(rows[0]), ["---"] * len(rows[0]), *cells]
    )


def write_card(
    folder: Path | str,  # of a saved classifier
    description: str,  # the card's prose in Markdown, from its heading on
    settings: Any,  # the `Training` it was trained with
    results: list[dict],  # rows of the table of figures
    checksums: Mapping[str, str],  # SHA-256 of what it was trained on, by name
    warnings: Iterable[str] = (),  # what its user has to know first, a sentence each
) -> None:
    """Write a saved classifier's README.md. Raises: AssetError for a folder that holds no classifier's settings."""
    folder = Path(folder)
    style = read_json(folder / STYLE_FILE, STYLE_SETTINGS)
    weights = {path.name: file_sha256(path) for path in sorted(folder.glob("*.safetensors"))}
    warned = list(warnings)
    lines = [
        description,
        *(["## Warnings", "", *(f"- {warning}" for warning in warned), ""] if warned else []),
        "## Settings",
        "",
        settings_line(settings, style["temperature"]),
        "",
        "## Results",
        "",
        markdown_table(results),
        "",
        *([confidence_line(style["validation"]), ""] if style.get("validation") else []),
        "## Checksums",
        "",
        *(f"- {name}: {digest}" for name, digest in {**weights, **checksums}.items()),
        "",
    ]
    (folder / "README.md").write_text("\n".join(lines), encoding="utf-8")
