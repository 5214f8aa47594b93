"""What is trained and on what: the settings of a training, streams of sentences, batches and their loss"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..core.checks import InputError, check_choice, check_number
from ..models.classifier import StyleClassifier
from ..tables.pairs import twins
from .words import mark_edits, word_loss

DEFAULT_RATES = {"lora": 5e-4, "full": 3e-5, "words": 5e-4}  # peak learning rate by method


TRAINING_METHODS = ("head", "lora", "full", "words")


@dataclass(frozen=True)
class Training:
    """Settings of one training run. Raises: InputError (a ValueError) for a setting out of range."""

    base: str = (
        "all-MiniLM-L6-v2"  # encoder: an embedded model, a folder, or a Hugging Face model id
    )
    # head: the head alone, in one go | lora: thin matrices and the head | full: every weight | words: as lora, with a
    # head that scores each token and is taught which words were edited
    method: str = "lora"
    # cls: the first token's vector through the encoder's pooling layer | mean: over all tokens | layers: each layer's
    # mean, for head | words: the smooth maximum of the tokens' scores, for words
    pooling: str = "cls"
    epochs: int = 5  # passes over the sentences, at most
    batch_size: int = (
        16  # pairs, so about twice as many sentences; sentences, where there are no pairs
    )
    learning_rate: float | None = None  # its peak; None: 5e-4 for lora, 3e-5 for full
    weight_decay: float = 0.01  # of AdamW
    label_smoothing: float = 0.0  # 0..1
    ranking_weight: float = (
        1.0  # of the ranking loss beside cross-entropy; no effect where there are no pairs
    )
    word_weight: float = 5.0  # of an edited token beside one that was left, for the method words
    penalty: float = (
        2.0  # of the head's squared weights, for the method head; more makes it simpler
    )
    rank: int = 16  # of the LoRA matrices
    modules: tuple[str, ...] = (
        "query",
        "value",
    )  # the layers that LoRA changes, by the end of their names
    dropout: float = 0.1  # of the thin matrices' input, 0..1
    hidden_dropout: float | None = (
        None  # of the encoder's layers, 0..1; None: as the encoder has it
    )
    mask_share: float = (
        0.0  # share of the tokens that the mask token replaces in each training batch, 0..1
    )
    shuffle: bool = True  # another order in each epoch
    patience: int | None = (
        None  # stop after so many epochs without a better validation loss; None: never
    )
    seed: int = 0  # fixes initialisation, dropout and the order

    def __post_init__(self):
        check_choice(self.method, "method", TRAINING_METHODS)
        check_choice(self.pooling, "pooling", ("cls", "mean", "layers", "words"))
        for method, pooling in (("head", "layers"), ("words", "words")):
            if (self.method == method) != (self.pooling == pooling):
                raise InputError(
                    f"method={method!r} and pooling={pooling!r} go together; other methods pool by 'mean' "
                    f"or 'cls'"
                )
        for name in ("penalty", "word_weight"):
            check_number(getattr(self, name), name, 0, above=True)
        for name in ("epochs", "batch_size", "rank"):
            check_number(getattr(self, name), name, 1, whole=True)
        for name in ("label_smoothing", "dropout", "hidden_dropout", "mask_share"):
            if getattr(self, name) is not None:
                check_number(getattr(self, name), name, 0, 1, below=True)
        check_number(self.ranking_weight, "ranking_weight", 0)
        check_number(self.seed, "seed", 0, 2**32 - 1, whole=True)
        if self.learning_rate is not None:
            check_number(self.learning_rate, "learning_rate", 0, above=True)
        if self.patience is not None:
            check_number(self.patience, "patience", 1, whole=True)


@dataclass(frozen=True)
class Stream:
    """Labelled sentences in pieces, so that memory holds one piece at a time."""

    # each call gives the same pieces: text, label, pair, weight, optionally second
    pieces: Callable[[], Iterable[pd.DataFrame]]
    pairs: tuple[int, ...]  # how many pairs each piece holds; a pair lies in one piece
    sentences: int  # in all pieces

    def in_one(self) -> pd.DataFrame:
        """All pieces in one table; pairs are numbered anew, since each piece may begin its numbers at 0."""
        pieces = [piece.assign(pair=pd.factorize(piece.pair)[0]) for piece in self.pieces()]
        starts = np.cumsum([0, *(piece.pair.nunique() for piece in pieces)])
        return pd.concat(
            [piece.assign(pair=piece.pair + start) for piece, start in zip(pieces, starts)],
            ignore_index=True,
        )


def validate(classifier: StyleClassifier, sentences: pd.DataFrame | None) -> dict[str, float]:
    if sentences is None:
        return {}
    probabilities = classifier.predict_proba(sentences.text, sentences.get("second"))
    of_label = probabilities[np.arange(len(sentences)), sentences.label]
    right = probabilities.argmax(axis=1) == sentences.label
    return {
        "validation_loss": float(-(sentences.weight * np.log(of_label)).mean()),
        "validation_accuracy": float(np.average(right, weights=sentences.weight)),
    }


_LENGTH_NOISE = 20  # characters, standard deviation


def deal_batches(sentences: pd.DataFrame, settings: Training, random):
    groups = list(sentences.groupby("pair", sort=False).indices.values())
    order = np.arange(len(groups))
    if settings.shuffle:
        lengths = np.array([len(sentences.text[group[0]]) for group in groups])
        order = np.argsort(lengths + random.normal(0, _LENGTH_NOISE, len(lengths)), kind="stable")
    batches = [
        order[first : first + settings.batch_size]
        for first in range(0, len(order), settings.batch_size)
    ]
    for place in random.permutation(len(batches)) if settings.shuffle else range(len(batches)):
        yield sentences.iloc[np.concatenate([groups[group] for group in batches[place]])]


def batch_loss(classifier: StyleClassifier, batch: pd.DataFrame, settings: Training):
    """Weighted cross-entropy of the sentences, plus the weighted ranking loss of the pairs in the batch."""
    import torch
    from torch.nn.functional import cross_entropy, softplus

    encoded = _encode_masked(classifier, batch, settings.mask_share)
    output = classifier.model(**encoded)
    logits = output.logits.float()
    labels, weights = (torch.tensor(batch[column].to_numpy()) for column in ("label", "weight"))
    costs = cross_entropy(
        logits, labels.to(logits.device), label_smoothing=settings.label_smoothing, reduction="none"
    )
    loss = (
        costs * weights.to(costs.dtype).to(logits.device)
    ).mean()  # not every GPU has 64-bit floats
    sources, targets = twins(batch)
    if len(sources) and settings.ranking_weight:
        log_odds = logits[:, 0] - logits[:, 1]
        loss = (
            loss + settings.ranking_weight * softplus(log_odds[targets] - log_odds[sources]).mean()
        )
    if settings.method == "words":
        marks = mark_edits(encoded, sources, targets, np.flatnonzero(batch.label.to_numpy() == 1))
        loss = loss + word_loss(output.token_scores.float(), marks, settings.word_weight)
    return loss


def _encode_masked(classifier: StyleClassifier, sentences: pd.DataFrame, mask_share: float):
    """Sentences as a batch in which a random share of the tokens is replaced by the mask token."""
    import torch

    columns = [sentences[name].tolist() for name in ("text", "second") if name in sentences]
    encoded = classifier.tokenize(
        *columns,
        padding=True,
        truncation=True,
        max_length=classifier.max_tokens,
        return_tensors="pt",
        return_special_tokens_mask=True,
    )
    is_word = encoded.pop("special_tokens_mask") == 0
    if mask_share:
        hidden = is_word & (torch.rand(is_word.shape) < mask_share)
        encoded["input_ids"] = encoded["input_ids"].masked_fill(
            hidden, classifier.tokenizer.mask_token_id
        )
    return encoded.to(classifier.device)
