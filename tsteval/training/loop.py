"""Fine-tuning of style classifiers: settings of a run, and the loop"""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ..core.checks import InputError, tokenizable
from ..models.classifier import StyleClassifier, base_model, short_name
from ..models.loading import find_device
from ..tables.pairs import balanced_weights
from .batches import Stream, Training, validate
from .checkpoints import Checkpoint
from .logistic import fit_head


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
