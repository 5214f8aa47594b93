"""Fine-tuning of style classifiers: settings of a run, and the loop"""

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..core.checks import InputError, check_choice, check_number, tokenizable
from ..models.classifier import StyleClassifier, base_model, short_name
from ..models.loading import find_device
from ..tables.pairs import balanced_weights, twins
from .checkpoints import Checkpoint
from .logistic import fit_head
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


def train_on_sentences(
    sentences: pd.DataFrame,  # text, label (class 0..C-1); optionally second (text), pair (shared by twins), weight
    labels: tuple[str, ...],  # C names of classes
    validation: pd.DataFrame | None = None,  # the same columns; measured after each epoch
    *,
    device: str = "cpu",  # auto | cpu | cuda | mps
    progress: bool = False,  # show a bar with the loss
    **settings,  # see `Training`
) -> (
    StyleClassifier
):  # its `history` has one row an epoch: loss, validation_loss, validation_accuracy
    """Fine-tune a style classifier on labelled sentences.

    Raises: InputError (a ValueError) for no sentences, a label out of range (naming the row), or patience without
    validation; InputTypeError (a TypeError) for a text that is no string; TypeError for an unknown setting; AssetError
    if the encoder cannot be had.
    Source: Hu et al. 2022 (LoRA); Burges et al. 2005 (ranking loss).
    """
    run = Training(**settings)
    sentences = _checked(sentences, len(labels), "sentences")
    stream = Stream(lambda: [sentences], (sentences.pair.nunique(),), len(sentences))
    return train_on_stream(stream, labels, validation, run, device=device, progress=progress)


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


def train_on_stream(
    stream: Stream,
    labels: tuple[str, ...],  # C names of classes
    validation: pd.DataFrame | None,  # as in `train_on_sentences`
    settings: Training,
    *,
    device: str = "cpu",  # auto | cpu | cuda | mps
    progress: bool = False,  # show a bar with the loss
    checkpoint: Checkpoint | None = None,  # where states go; None: nothing is kept
    callbacks: Sequence[Any] = (),  # of transformers; called after each step and each pass
) -> StyleClassifier:  # its `history` as in `train_on_sentences`
    """Fine-tune a style classifier on a stream of labelled sentences; with a checkpoint, from where the last run
    stopped.

    Raises: as `train_on_sentences`; InputError for a device that this machine does not have.
    """
    import torch

    validation = None if validation is None else _checked(validation, len(labels), "validation")
    if settings.patience is not None and validation is None:
        raise InputError(
            "patience needs validation sentences to judge by; give some, or leave patience out"
        )
    place = find_device(device)
    torch.manual_seed(settings.seed)
    if settings.method == "head":
        return _train_head(stream, labels, validation, settings, place, progress)
    if place not in ("cpu", "cuda", "mps"):
        raise InputError(
            f"fine-tuning takes the first card, as device='cuda'; got {place!r}. Choose another card "
            f"with CUDA_VISIBLE_DEVICES"
        )
    model, tokenizer = _model_to_train(settings, labels)
    classifier = StyleClassifier(
        model.to(place),
        tokenizer,
        f"{short_name(settings.base)} trained on {stream.sentences} sentences",
    )
    from .trainer import fit

    classifier.training = settings
    classifier.history = fit(
        classifier,
        stream,
        validation,
        settings,
        progress=progress,
        checkpoint=checkpoint,
        callbacks=callbacks,
    )
    if settings.method != "full":  # a name that any machine can resolve
        model.peft_config["default"].base_model_name_or_path = settings.base
    return classifier


# sentences whose vectors are held in memory at once: for MiniLM 2,688 numbers of 8 bytes each, two gigabytes in all
MOST_VECTORS = 100_000


def _train_head(
    stream: "Stream", labels, validation, settings: Training, place: str, progress: bool
) -> StyleClassifier:
    if stream.sentences > MOST_VECTORS:
        raise InputError(
            f"the method head holds a vector of every sentence in memory, at most {MOST_VECTORS:,} of "
            f"them; got "
            f"{stream.sentences:,}: use the method lora, or fewer sentences"
        )
    model, tokenizer = base_model(settings.base, labels, settings.pooling)
    model.config.head_over = str(settings.base)
    classifier = StyleClassifier(
        model.to(place),
        tokenizer,
        f"head over {short_name(settings.base)} trained on {stream.sentences} sentences",
    )
    sentences = stream.in_one()
    loss = fit_head(classifier, sentences, settings.ranking_weight, settings.penalty, progress)
    classifier.training = settings
    classifier.history = pd.DataFrame(
        [{"epoch": 1, "loss": loss, **validate(classifier, validation)}]
    ).set_index("epoch")
    return classifier


def _checked(sentences: pd.DataFrame, n_classes: int, name: str) -> pd.DataFrame:
    """The sentences with a fresh index and every optional column, or an error that names the row."""
    if not len(sentences):
        raise InputError(f"{name}: there are no sentences to train on")
    sentences = sentences.reset_index(drop=True)
    for column in sentences.columns.intersection(["text", "second"]):
        sentences[column] = tokenizable(sentences[column], f"{name}, {column}")
    wrong = np.flatnonzero(~sentences.label.isin(range(n_classes)))
    if len(wrong):
        raise InputError(
            f"expected a label in 0..{n_classes - 1}, got {sentences.label[wrong[0]]}",
            argument=name,
            row=wrong[0],
        )
    if "pair" not in sentences:
        sentences["pair"] = np.arange(len(sentences))
    return (
        sentences
        if "weight" in sentences
        else sentences.assign(weight=balanced_weights(sentences.label))
    )


def _model_to_train(settings: Training, labels):
    dropout = (
        {} if settings.hidden_dropout is None else {"hidden_dropout_prob": settings.hidden_dropout}
    )
    model, tokenizer = base_model(settings.base, labels, settings.pooling, **dropout)
    if settings.method == "full":
        return model, tokenizer
    from peft import LoraConfig, TaskType, get_peft_model

    adapter = LoraConfig(
        task_type=TaskType.SEQ_CLS,
        r=settings.rank,
        lora_alpha=2 * settings.rank,
        lora_dropout=settings.dropout,
        target_modules=list(settings.modules),
    )
    linear = sorted(
        {
            name.rpartition(".")[2]
            for name, layer in model.base_model.named_modules()
            if type(layer).__name__ == "Linear"
        }
    )
    if not set(linear) & set(settings.modules):
        raise InputError(
            f"{short_name(settings.base)} has no layers named {', '.join(settings.modules)}; its layers "
            f"are "
            f"{', '.join(linear)}: set modules to some of them, or method to full"
        )
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", FutureWarning
        )  # a renamed attribute between the two libraries
        model = get_peft_model(model, adapter)
    return model, tokenizer


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
