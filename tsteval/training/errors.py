"""Tables and figures of a classifier's errors: by class, by length of the text, and the worst of them"""

import math
import re
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ..core.checks import InputError, check_number, check_texts
from ..tables.pairs import labelled_sentences, twins
from .logistic import cross_validated


def score_sentences(
    classifier: Any,  # a StyleClassifier, or anything with its `predict_proba`
    sentences: pd.DataFrame,  # text and label, one row a sentence; second too, for a classifier of pairs of texts
    progress: bool = False,  # show a bar
) -> (
    pd.DataFrame
):  # the sentences with probability (of the first class) and predicted (the likeliest class)
    """What the classifier says of each sentence. Raises: InputTypeError naming the row that is not a string."""
    probabilities = classifier.predict_proba(
        sentences.text, sentences.get("second"), progress=progress
    )
    return sentences.assign(probability=probabilities[:, 0], predicted=probabilities.argmax(axis=1))


def in_order(
    scored: pd.DataFrame,  # from `score_sentences`, with pair: sentences that share it are twins
    # one number a pair that has a sentence of each of the first two classes: 1 right, 0 wrong, 0.5 a tie
) -> np.ndarray:
    """Whether each pair's sentence of the first class is given a higher probability of it than its twin."""
    first, second = twins(scored)
    return 0.5 + 0.5 * np.sign(
        scored.probability.to_numpy()[first] - scored.probability.to_numpy()[second]
    )


def order_accuracy(
    scored: pd.DataFrame,  # from `score_sentences`, with pair
) -> float:  # share in 0..1; nan if no pair has a sentence of each of the first two classes
    """Share of pairs whose sentence of the first class is given a higher probability of it; ties count as half."""
    ordered = in_order(scored)
    return float(ordered.mean()) if len(ordered) else math.nan


def evaluate_classifier(
    classifier: Any,  # a StyleClassifier, or anything with its `predict_proba`
    pairs: pd.DataFrame,  # source and target; a row with equal sides is a control
) -> dict[
    str, float
]:  # accuracy, pairwise_accuracy, control_accuracy in 0..1 or nan; n_pairs, n_controls
    """Accuracy over both sentences of each edited pair, share of pairs in the right order, and accuracy on controls."""
    scored = score_sentences(classifier, labelled_sentences(pairs))
    right = scored.predicted == scored.label
    edited = scored.groupby("pair").label.transform("size") == 2
    return {
        "accuracy": float(right[edited].mean()),
        "pairwise_accuracy": order_accuracy(scored),
        "n_pairs": int(edited.sum()) // 2,
        "control_accuracy": float(right[~edited].mean()),
        "n_controls": int((~edited).sum()),
    }


def confusion_matrix(
    scored: pd.DataFrame,  # label and predicted, one row a sentence
    labels: tuple[str, ...],  # C names of classes
) -> pd.DataFrame:  # (C, C) counts; rows are the true classes, columns the predicted ones
    """How many sentences of each class were taken for which class."""
    counts = np.zeros((len(labels), len(labels)), dtype=int)
    np.add.at(counts, (scored.label.to_numpy(), scored.predicted.to_numpy()), 1)
    names = [f"predicted {label}" for label in labels]
    return pd.DataFrame(counts, index=pd.Index(labels, name="class"), columns=names)


def class_report(
    scored: pd.DataFrame,  # label and predicted, one row a sentence
    labels: tuple[str, ...],  # C names of classes
) -> pd.DataFrame:  # one row a class: precision, recall, f1 in 0..1, number of sentences
    """Precision, recall and F1 of each class; 0 where the denominator is 0."""
    counts = confusion_matrix(scored, labels).to_numpy()
    right = counts.diagonal()
    predicted = counts.sum(axis=0)
    actual = counts.sum(axis=1)
    table = pd.DataFrame(
        {
            "precision": right / np.maximum(predicted, 1),
            "recall": right / np.maximum(actual, 1),
            "f1": 2 * right / np.maximum(predicted + actual, 1),
            "sentences": actual,
        },
        index=labels,
    )
    return table.rename_axis("class")


PLAIN_WORD = re.compile(r"\w+(?:[-'’]\w+)*")  # letters and digits; punctuation does not count


def accuracy_by_length(
    scored: pd.DataFrame,  # text, label and predicted, one row a sentence
    groups: int = 5,  # how many groups of about equal size, >= 1; fewer where many texts are equally long
) -> (
    pd.DataFrame
):  # one row a group: shortest, longest (words), sentences, accuracy, low, high (95% interval)
    """Accuracy of short and of long sentences, with Wilson's interval. Raises: InputError for fewer than one group.

    Source: Wilson 1927.
    """
    from scipy.stats import binomtest

    check_number(groups, "groups", 1, whole=True)
    words = np.array([len(PLAIN_WORD.findall(text)) for text in scored.text], dtype=int)
    right = (scored.predicted == scored.label).to_numpy()
    edges = (
        np.unique(np.quantile(words, np.arange(1, groups) / groups)) if len(words) else np.zeros(0)
    )
    group = np.searchsorted(edges, words)
    rows = []
    for number in np.unique(group):
        inside = group == number
        interval = binomtest(int(right[inside].sum()), int(inside.sum())).proportion_ci(
            method="wilson"
        )
        rows.append(
            (
                words[inside].min(),
                words[inside].max(),
                inside.sum(),
                right[inside].mean(),
                interval.low,
                interval.high,
            )
        )
    return pd.DataFrame(
        rows, columns=["shortest", "longest", "sentences", "accuracy", "low", "high"]
    )


def worst_errors(
    scored: pd.DataFrame,  # text, label, predicted, probability (of the first class), pair
    labels: tuple[str, ...],  # names of the two classes
    n: int = 3,  # errors of each kind, >= 0
) -> (
    pd.DataFrame
):  # 2n rows or fewer: error, probability, text, twin_probability, twin (empty for a control)
    """The errors that the classifier is surest of, each beside the other sentence of its pair."""
    check_number(n, "n", 0, whole=True)
    first, second = twins(scored)
    twin_of = {**dict(zip(first, second)), **dict(zip(second, first))}
    rows = []
    for true, sign in ((1, -1), (0, 1)):
        wrong = np.flatnonzero((scored.label == true) & (scored.predicted != true))
        surest = wrong[np.argsort(sign * scored.probability.to_numpy()[wrong], kind="stable")][:n]
        for place in surest:
            twin = (
                scored.iloc[twin_of[place]]
                if place in twin_of
                else pd.Series({"probability": math.nan, "text": ""})
            )
            rows.append(
                (
                    f"{labels[true]}, taken for {labels[1 - true]}",
                    *scored.iloc[place][["probability", "text"]],
                    twin.probability,
                    twin.text,
                )
            )
    return pd.DataFrame(rows, columns=["error", "probability", "text", "twin_probability", "twin"])


_DIRECTIONS = 256
_FEWEST = 20
_FOLDS = 8  # random directions of words; pairs; folds


def _word_vectors(texts: Sequence[str]) -> np.ndarray:
    """(N, _DIRECTIONS): the sum of the directions of each text's words in lower case."""
    words = [re.findall(r"\w+", text.casefold()) for text in texts]
    directions = {
        word: np.random.default_rng(zlib.crc32(word.encode("utf-8", "replace"))).standard_normal(
            _DIRECTIONS
        )
        for word in {word for text_words in words for word in text_words}
    }
    return np.array(
        [
            sum((directions[word] for word in text_words), np.zeros(_DIRECTIONS))
            for text_words in words
        ]
    )


def _order(vectors: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """(P,) log-odds that each pair is in order, of vectors (2, P, K) and by the folds that do not hold the pair."""
    difference = vectors[0] - vectors[1]
    difference = difference[:, difference.any(axis=0)]
    if not difference.shape[1]:
        return np.zeros(len(difference))  # the two sides of every pair are alike
    both = np.concatenate([difference, -difference])
    probability = cross_validated(
        both,
        np.repeat([1, 0], len(difference)),
        np.tile(groups, 2),
        min(_FOLDS, len(set(groups.tolist()))),
    )[: len(difference)]
    probability = probability.clip(1e-12, 1 - 1e-12)
    return np.log(probability / (1 - probability))


def doubtful_pairs(
    pairs: pd.DataFrame,  # source and target; rows whose sides are equal are left out
    encode: Callable[
        [list[str]], np.ndarray
    ],  # (N,) texts -> (N, K) vectors, as `SentenceEncoder.encode`
) -> pd.DataFrame:
    # the row's place in `pairs` as its index; source, target, by_vectors, by_words (log-odds that the source is the
    # source), doubtful (whether both are below 0); the most doubtful first: lowest sum of the ranks of the two
    """Pairs in the order in which they are worth a look; those of one source are judged together.

    Raises: InputError for under 20 pairs with two different sides; InputTypeError naming a row that is no text.
    Source: Fast Forward Labs 2022, figure 22 (wrong targets); Burges et al. 2005 (learning an order).
    """
    if missing := {"source", "target"} - set(pairs.columns):
        raise InputError(f"pairs have no column {min(missing)}")
    sides = [check_texts(pairs[column], column=column) for column in ("source", "target")]
    frame = pd.DataFrame(dict(zip(("source", "target"), sides)))
    frame = frame[frame.source != frame.target]
    if len(frame) < _FEWEST or frame.source.nunique() < 2:
        raise InputError(
            f"there are {len(frame)} pairs of {frame.source.nunique()} sources with two different sides; "
            f"a review takes {_FEWEST} or more"
        )
    groups = pd.factorize(frame.source)[0]
    texts = [*frame.source, *frame.target]
    for name, vectors in (("by_vectors", encode(texts)), ("by_words", _word_vectors(texts))):
        frame[name] = _order(np.reshape(vectors, (2, len(frame), -1)).astype(float), groups)
    ranks = frame[["by_vectors", "by_words"]].rank().sum(axis=1)
    frame["doubtful"] = (frame.by_vectors < 0) & (frame.by_words < 0)
    return frame.loc[ranks.sort_values(kind="stable").index]
