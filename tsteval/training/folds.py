"""Measures ways of training on all rows of a small file, and which one is the better"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import pandas as pd

from ..core.checks import InputError, check_number
from ..models.classifier import StyleClassifier, base_model
from .batches import Training
from .cards import figures_of
from .holdout import same_text
from .logistic import head_in_folds
from .loop import train_on_sentences


def deal_folds(
    sentences: pd.DataFrame,  # text, label, pair (shared by the sentences of a row)
    folds: int = 5,  # at most; no more than the rarest style has groups; >= 2
    seed: int = 0,
) -> tuple[np.ndarray, np.ndarray]:  # (N,) group and (N,) fold of each sentence, counted from 0
    """Groups of rows that share a text, and folds that hold whole groups and a like share of each style.

    Raises: InputError if a style would lie in one fold alone, so that there were none of it to train on.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    check_number(folds, "folds", 2, whole=True)
    rows = pd.factorize(sentences.pair)[0]
    texts = pd.factorize(sentences.text.map(same_text))[0]
    size = rows.max() + texts.max() + 2
    shared = coo_array((np.ones(len(rows)), (rows, rows.max() + 1 + texts)), shape=(size, size))
    group = pd.factorize(connected_components(shared, directed=False)[1][rows])[0]
    style = sentences.label.groupby(group).first().to_numpy()
    if sentences.pair.duplicated().any():
        style = np.zeros_like(style)  # of pairs each group has both
    fewest = int(np.bincount(style)[np.unique(style)].min())
    folds = min(folds, fewest)
    random = np.random.default_rng(seed)
    place = np.zeros(len(style), dtype=int)
    for which in np.unique(style):
        members = random.permutation(np.flatnonzero(style == which))
        place[members] = np.arange(len(members)) % folds
    fold = place[group]
    if pd.Series(fold).groupby(sentences.label.to_numpy()).nunique().min() < 2:
        raise InputError(
            "all texts of a style lie in one fold, because they share texts; give more of that style"
        )
    return group, fold


def probabilities_in_folds(
    sentences: pd.DataFrame,  # (N,) rows: text, label, pair, weight
    labels: Sequence[str],  # C names of classes
    fold: np.ndarray,  # (N,) from `deal_folds`
    settings: Training,  # method head, lora or full
    device: str = "cpu",
) -> np.ndarray:  # (N, C)
    """Probabilities of each sentence from a classifier that was trained on the other folds."""
    if settings.method == "head":
        model, tokenizer = base_model(settings.base, tuple(labels), settings.pooling)
        return head_in_folds(
            StyleClassifier(model.to(device), tokenizer, "folds"),
            sentences,
            fold,
            settings.ranking_weight,
            settings.penalty,
        )
    probabilities = np.zeros((len(sentences), len(labels)))
    for which in np.unique(fold):
        rest = fold != which
        trained = train_on_sentences(
            sentences[rest], tuple(labels), device=device, **asdict(settings)
        )
        probabilities[~rest] = trained.predict_proba(sentences.text[~rest])
    return probabilities


def measure_choice(
    right: np.ndarray,  # (N, M): whether each of M ways labels each sentence rightly
    group: np.ndarray,  # (N,) sentences of a group are drawn together
    resamples: int = 2000,  # >= 1
    seed: int = 0,
) -> tuple[float, float, float]:  # share of right labels in 0..1, and the ends of its 95% interval
    """What the better of several ways reaches on sentences that had no part in choosing it.

    Source: Tsamardinos, Greasidou and Borboudakis 2018 (bootstrap bias-corrected cross-validation).
    """
    sums = pd.DataFrame(right.astype(float)).groupby(group).sum().to_numpy()
    sizes = np.bincount(group)
    drawn = np.random.default_rng(seed).multinomial(
        len(sizes), np.full(len(sizes), 1 / len(sizes)), size=resamples
    )
    chosen = (drawn @ sums).argmax(axis=1)
    left = drawn == 0  # the first of equals
    chosen = chosen[left.any(axis=1)]
    left = left[left.any(axis=1)]
    shares = (left @ sums)[np.arange(len(left)), chosen] / (left @ sizes)
    return float(shares.mean()), *np.quantile(shares, [0.025, 0.975]).tolist()


@dataclass(frozen=True)
class Choice:
    """What cross-validation found."""

    method: str  # the one to keep
    results: list[dict]  # rows of the card's table, see `tsteval.training.cards.measure_style`
    note: str  # how it was found, for card and terminal


def choose_method(
    sentences: pd.DataFrame,  # training sentences: text, label, pair, weight
    labels: Sequence[str],
    ways: Mapping[str, Training],  # by method; the first of equals is kept
    group: np.ndarray,  # (N,) and
    fold: np.ndarray,  # (N,) from `deal_folds`
    device: str = "cpu",
) -> Choice:
    """Cross-validate ways of training and name the better one."""
    probabilities = {
        name: probabilities_in_folds(sentences, labels, fold, way, device)
        for name, way in ways.items()
    }
    right = np.column_stack(
        [table.argmax(axis=1) == sentences.label for table in probabilities.values()]
    )
    best = list(ways)[int(right.mean(axis=0).argmax())]
    results = figures_of(probabilities[best], sentences, "cross-validation")
    how = (
        f"{fold.max() + 1} folds of the training rows (each judged by what was trained on the others; rows that "
        f"share a text lie in one fold, and every fold has its share of each style)"
    )
    if len(ways) == 1:
        return Choice(best, results, f"Few rows, so {best} was cross-validated: {how}.")
    share, low, high = measure_choice(right, group)
    shares = {
        name: figures_of(table, sentences, "cross-validation")[0]
        for name, table in probabilities.items()
    }
    results = [
        {**results[0], "value": share, "low": low, "high": high},
        *results[1:],
        *(
            {**row, "measure": f"accuracy of {name}, which the choice saw"}
            for name, row in shares.items()
        ),
    ]
    accuracies = " and ".join(
        f"{name} {row['value']:.3f} [{row['low']:.3f}, {row['high']:.3f}]"
        for name, row in shares.items()
    )
    return Choice(
        best,
        results,
        f"Few rows, so {' and '.join(ways)} were compared by cross-validation in {how}. "
        f"Accuracy: {accuracies}; {best} was kept. The larger of two figures is no figure of new texts: in the "
        f"row cross-validation: accuracy the choice was made on resampled rows and measured on those not "
        f"drawn. The rows held out for validation had no part in it.",
    )
