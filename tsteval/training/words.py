"""The loss that teaches a judge which words an editor changed, its quiet bias, and how often it points rightly"""

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Any

import numpy as np
import pandas as pd

from ..core.checks import InputError
from ..models.encoder import ABSENT
from ..tables.pairs import twins


def _words(
    encoded: Any,  # a batch of a fast tokenizer
    row: int,
) -> list[list[int]]:  # the places of each word's tokens
    places: dict[int, list[int]] = {}
    for place, word in enumerate(encoded.word_ids(row)):
        if word is not None:
            places.setdefault(word, []).append(place)
    return list(places.values())


def _edited_words(encoded: Any, source: int, target: int) -> tuple[list[list[int]], list[bool]]:
    """The places of the tokens of each word of the source, and whether the target lacks it."""
    words = [_words(encoded, row) for row in (source, target)]
    before, after = (
        [tuple(int(encoded["input_ids"][row][place]) for place in word) for word in side]
        for row, side in zip((source, target), words)
    )
    edited = [True] * len(before)
    for start, _, size in SequenceMatcher(a=before, b=after, autojunk=False).get_matching_blocks():
        edited[start : start + size] = [False] * size
    return words[0], edited


def mark_edits(
    encoded: Any,  # a batch of a fast tokenizer, B texts of T tokens
    sources: Sequence[int],  # rows of the texts with the style
    targets: Sequence[int],  # rows of their edited versions, as many
    neutral: Sequence[int],  # rows of all texts without the style
) -> np.ndarray:  # (B, T): 1 edited, 0 left as it was, NaN where nobody knows
    """What an editor did to each token. Of a source whose edit only added words nothing is known."""
    marks = np.full(np.shape(encoded["input_ids"]), np.nan)
    marks[list(neutral)] = 0
    for source, target in zip(sources, targets):
        words, edited = _edited_words(encoded, source, target)
        if not any(edited):
            continue
        for word, changed in zip(words, edited):
            marks[source, word] = changed
    return marks


def word_loss(
    scores,  # (B, T) tensor, log-odds of each token
    marks: np.ndarray,  # (B, T), from `mark_edits`
    weight: float,  # of an edited token beside one that was left, > 0
):  # a tensor without axes; 0 where nothing is known of any token
    """Weighted cross-entropy of whether each token was edited."""
    import torch
    from torch.nn.functional import binary_cross_entropy_with_logits

    truth = torch.tensor(marks, dtype=scores.dtype, device=scores.device)
    mask = ~truth.isnan() & (scores > ABSENT / 2)
    if not mask.any():
        return scores.new_zeros(())
    return binary_cross_entropy_with_logits(
        scores[mask] + float(np.log(weight)), truth[mask], pos_weight=scores.new_tensor(weight)
    )


def word_precision(
    classifier: Any,  # a StyleClassifier that scores words
    sentences: pd.DataFrame,  # text, label, pair
) -> (
    pd.DataFrame
):  # one row a pair with an edited word: hit (0 or 1), chance (share of its words), 0..1
    """Whether the strongest word of each source is one that its editor changed. Raises: InputError for another
    classifier."""
    classifier.check_scores_words()
    sources, targets = twins(sentences)
    texts = sentences.text.tolist()
    scores = classifier.token_scores([texts[row] for row in sources])
    rows = []
    for source, target, tokens in zip(sources, targets, scores):
        encoded = classifier.tokenize(
            [texts[source], texts[target]], truncation=True, max_length=classifier.max_tokens
        )
        words, edited = _edited_words(encoded, 0, 1)
        if not any(edited):
            continue
        strongest = int(np.argmax([np.logaddexp.reduce(tokens[word]) for word in words]))
        rows.append({"hit": float(edited[strongest]), "chance": float(np.mean(edited))})
    return pd.DataFrame(rows, columns=["hit", "chance"])


def fit_bias(
    log_odds: np.ndarray,  # (N,) of the first class
    labels: np.ndarray,  # (N,) 0 or 1
    weights: Any = None,  # (N,) weight of each text; None: all alike
) -> float:  # what to add to every log-odds
    """The bias with the smallest cross-entropy. Raises: InputError if there is no text."""
    from scipy.optimize import minimize_scalar

    if not len(labels):
        raise InputError("labels: there are no sentences to fit a bias on")
    sign = np.where(np.asarray(labels) == 0, -1.0, 1.0)
    return float(
        minimize_scalar(
            lambda bias: np.average(np.logaddexp(0, sign * (log_odds + bias)), weights=weights),
            bounds=(-20.0, 20.0),
            method="bounded",
        ).x
    )


def add_bias(
    classifier: Any,  # a StyleClassifier that scores words; it is not changed
    bias: float,  # log-odds
):  # a StyleClassifier with weights of its own
    """A copy that gives every token, and so every text, so much higher log-odds of the first class."""
    import torch

    classifier.check_scores_words()
    moved = classifier.own()
    head = [
        layer
        for layer in moved.model.modules()
        if isinstance(layer, torch.nn.Linear) and layer.out_features == 1
    ]
    with torch.no_grad():
        head[-1].bias.add_(bias)
    return moved
