"""Temperature scaling of classifiers, and how far their probabilities are from the truth"""

import math

import numpy as np
import pandas as pd

from ..core.checks import InputError, check_number, check_table
from ..models.base import warn_caller
from .words import add_bias, fit_bias

LOWEST = 0.05
HIGHEST = 20.0  # temperatures that are tried


def temper(
    probabilities,  # (N, C)
    temperature: float,  # > 0; above 1: less sure, below 1: surer
) -> np.ndarray:  # (N, C) probabilities, as if the logits had been divided by the temperature
    """Divide the logits behind probabilities by a temperature. Raises: InputError for a temperature of 0 or less.

    Source: Guo et al. 2017, section 4.2.
    """
    from scipy.special import softmax

    check_number(temperature, "temperature", 0, above=True)
    logits = np.log(np.maximum(check_table(probabilities, "probabilities"), np.finfo(float).tiny))
    return softmax(logits / temperature, axis=1)


def fit_temperature(
    probabilities,  # (N, C)
    labels,  # (N,) true class of each row
    weights=None,  # (N,) weight of each row; None: all alike
    smooth: bool = False,  # count one text more of each class, so that few texts make nobody sure
) -> float:  # in 0.05..20
    """The temperature with the smallest cross-entropy; warns where none inside 0.05..20 is the smallest.

    Raises: InputError if there is no row.
    Source: Guo et al. 2017, section 4.2; Platt 1999, section 2.2, for the smoothing.
    """
    from scipy.optimize import minimize_scalar
    from scipy.special import log_softmax

    labels = np.asarray(labels)
    if not len(labels):
        raise InputError("labels: there are no sentences to fit a temperature on")
    logits = np.log(np.maximum(check_table(probabilities, "probabilities"), np.finfo(float).tiny))

    targets = np.eye(logits.shape[1])[labels]
    if smooth:
        texts = targets.sum(axis=0)[labels]
        targets = (targets * texts[:, None] + 1) / (texts[:, None] + logits.shape[1])

    def cross_entropy(log_temperature):
        right = (targets * log_softmax(logits / math.exp(log_temperature), axis=1)).sum(axis=1)
        return -np.average(right, weights=weights)

    ends = math.log(LOWEST), math.log(HIGHEST)
    best_log_temperature = minimize_scalar(cross_entropy, bounds=ends, method="bounded").x
    if min(best_log_temperature - ends[0], ends[1] - best_log_temperature) < 1e-3:
        warn_caller(
            f"the temperature ran to the end of its range ({math.exp(best_log_temperature):.3g} of {LOWEST:g} to "
            f"{HIGHEST:g}): these "
            "probabilities say nothing of these labels, or everything; check that texts and labels belong "
            "together"
        )
    return math.exp(best_log_temperature)


def reliability_bins(
    probabilities,  # (N, C)
    labels,  # (N,) true class of each row
    bins: int = 10,  # of equal width, from 1/C (no class can be likeliest with less) to 1
) -> pd.DataFrame:  # one row a bin that is not empty: sentences, confidence, accuracy
    """Mean confidence and accuracy by confidence. Raises: InputError for fewer than one bin.

    Source: Guo et al. 2017, section 2.
    """
    check_number(bins, "bins", 1, whole=True)
    probabilities = check_table(probabilities, "probabilities")
    confidence = probabilities.max(axis=1)
    right = probabilities.argmax(axis=1) == np.asarray(labels)
    edges = np.linspace(1 / probabilities.shape[1], 1, bins + 1)[1:-1]
    table = pd.DataFrame(
        {"bin": np.digitize(confidence, edges), "confidence": confidence, "accuracy": right}
    )
    return table.groupby("bin").agg(
        sentences=("accuracy", "size"),
        confidence=("confidence", "mean"),
        accuracy=("accuracy", "mean"),
    )


def expected_calibration_error(
    table: pd.DataFrame,  # from `reliability_bins`
) -> float:  # in 0..1; 0 is calibrated
    """Mean distance between confidence and accuracy, weighted by sentences. Source: Guo et al. 2017, section 2."""
    return float(np.average((table.confidence - table.accuracy).abs(), weights=table.sentences))


def confidence_of(
    probabilities,  # (N, C)
) -> dict[
    str, float
]:  # texts (N), mean and spread (standard deviation over texts) of the confidence, 0..1
    """How sure the probabilities are: each text's largest one, over all texts."""
    confidence = check_table(probabilities, "probabilities").max(axis=1)
    return (
        {
            "texts": len(confidence),
            "mean": float(confidence.mean()),
            "spread": float(confidence.std()),
        }
        if len(confidence)
        else {"texts": 0, "mean": math.nan, "spread": math.nan}
    )


def calibrate(
    classifier,  # a StyleClassifier; it is not changed
    sentences: pd.DataFrame,  # text, label, optionally second and weight; not those it was trained on
    smooth: bool = False,  # see `fit_temperature`
    # a StyleClassifier with weights of its own; `temperature` says what they were divided by in all, `validation` how
    # sure it now is
):
    """A copy of a classifier whose last layer is divided by the temperature that fits the sentences; of one that scores
    words, moved by the bias that does.

    Raises: InputError if the last linear layer of the model does not give one output a class.
    Source: Guo et al. 2017, section 4.2.
    """
    import torch

    if classifier.scores_words:
        return _with_fitted_bias(classifier, sentences)
    probabilities = classifier.predict_proba(sentences.text, sentences.get("second"))
    temperature = fit_temperature(
        probabilities, sentences.label.to_numpy(), sentences.get("weight"), smooth
    )
    tuned = classifier.own()
    head = [layer for layer in tuned.model.modules() if isinstance(layer, torch.nn.Linear)][-1]
    if head.out_features != len(classifier.labels):
        raise InputError(
            f"the last layer of {classifier.name} has {head.out_features} outputs, not one for each of "
            f"{', '.join(classifier.labels)}; it cannot be calibrated"
        )
    with torch.no_grad():
        for weight in head.parameters(recurse=False):
            weight.div_(temperature)
    tuned.temperature = classifier.temperature * temperature
    tuned.validation = confidence_of(temper(probabilities, temperature))
    return tuned


def _with_fitted_bias(classifier, sentences: pd.DataFrame):
    logits = classifier.predict_logits(sentences.text)
    bias = fit_bias(
        logits[:, 0] - logits[:, 1], sentences.label.to_numpy(), sentences.get("weight")
    )
    tuned = add_bias(classifier, bias)
    tuned.temperature, tuned.validation = (
        classifier.temperature,
        confidence_of(tuned.predict_proba(sentences.text)),
    )
    return tuned


def cost_matrix(
    cost,  # (C, C) costs >= 0, or None for the unit cost
    classes: int,  # C
) -> np.ndarray:  # (C, C)
    """The cost as a checked table. Raises: InputError if it does not fit or a cost is negative or not finite."""
    if cost is None:
        return 1 - np.eye(classes)
    cost = np.asarray(cost, dtype=float)
    if cost.shape != (classes, classes) or not ((cost >= 0) & np.isfinite(cost)).all():
        raise InputError(
            f"cost must be a ({classes}, {classes}) array of finite costs >= 0, got shape {cost.shape}"
        )
    return cost


def ordered_cost(
    classes: int,  # C, in the order of the scale
) -> np.ndarray:  # (C, C), entry i, j is |i - j|
    """Cost of one for each step on an ordered scale."""
    steps = np.arange(classes)
    return np.abs(np.subtract.outer(steps, steps)).astype(float)


def total_variation(
    p: np.ndarray,  # (N, C) distributions
    q: np.ndarray,  # the same shape
) -> np.ndarray:  # (N,) in 0..1
    """Half the sum of the absolute differences: the Earth Mover's Distance at unit cost."""
    if p.shape[1] == 2:  # one class says it all, and is half the work
        return np.abs(p[:, 0] - q[:, 0])
    return 0.5 * np.abs(p - q).sum(axis=1)


def transport_distance(
    p: np.ndarray,  # (N, C) distributions
    q: np.ndarray,  # the same shape
    cost: np.ndarray,  # (C, C), from `cost_matrix`
) -> np.ndarray:  # (N,) in 0..cost.max()
    """The Earth Mover's Distance of each row, by a closed form where one fits and by POT elsewhere.

    Source: Rubner, Tomasi and Guibas 1998.
    """
    if np.array_equal(cost, 1 - np.eye(len(cost))):
        return total_variation(p, q)
    if np.array_equal(cost, ordered_cost(len(cost))):
        return np.abs(np.cumsum(p - q, axis=1)[:, :-1]).sum(axis=1)
    import ot

    p, q = (
        side / side.sum(axis=1, keepdims=True) for side in (p, q)
    )  # POT wants heaps and holes of one total
    return np.array([ot.emd2(heaps, holes, cost) for heaps, holes in zip(p, q)])


def target_probabilities(
    before: np.ndarray,  # (N, C) distributions
    after: np.ndarray,  # the same shape
    target,  # class index, or (N,) of them
) -> tuple[np.ndarray, np.ndarray]:  # (N,) and (N,)
    """Probability of each row's target class in both tables. Raises: InputError naming the row of an unknown class."""
    rows, classes = before.shape
    target = np.asarray(target)
    if target.shape not in ((), (rows,)) or not np.issubdtype(target.dtype, np.integer):
        raise InputError(
            f"target must be a class index or {rows} of them, got {target.dtype} of shape {target.shape}"
        )
    outside = np.atleast_1d((target < 0) | (target >= classes))
    if outside.any():
        row = int(outside.argmax())
        raise InputError(
            f"class {np.atleast_1d(target)[row]} does not exist; the classes are 0 to {classes - 1}",
            argument="target",
            row=row,
        )
    chosen = np.arange(rows), np.broadcast_to(target, rows)
    return before[chosen], after[chosen]
