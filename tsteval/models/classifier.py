"""The style classifier: an encoder with a head that gives a distribution over styles"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import MethodType
from typing import Any

import numpy as np
import pandas as pd

from ..core.assets import AssetError, from_home, packaged_path, read_json
from ..core.checks import InputError
from ..core.files import file_sha256
from ..core.pretrained import ADAPTER_CONFIG, ModelSource, locate_model
from .base import Model
from .encoder import add_word_head, pool
from .loading import read_adapter, read_module, read_tokenizer


def _pool_by_mean(
    model,  # a sequence classifier of transformers
) -> None:
    """Let the model's head read the mean over all tokens that are not padding, in place.

    Raises: InputError for a model of two sequences, whose head reads the second.
    """
    _check_one_sequence(model)
    model.base_model.register_forward_hook(_mean_of_tokens, with_kwargs=True)


def _check_one_sequence(model) -> None:
    if model.config.is_encoder_decoder:
        raise InputError(
            f"{type(model).__name__} reads two sequences, and its head the second one; use pooling='cls', "
            f"or another encoder"
        )


def _mean_of_tokens(encoder, arguments, options, output):
    mean = _token_mean(output.last_hidden_state, options.get("attention_mask"))
    if output.get("pooler_output") is not None:
        output["pooler_output"] = mean
    # whichever position a head reads: the first, as most do, or a decoder's last
    else:
        output["last_hidden_state"] = mean[:, None].expand_as(output.last_hidden_state)
    return output


def _token_mean(hidden, mask):
    """(batch, D) means of (batch, T, D) vectors over the tokens that the mask keeps."""
    return (
        hidden.mean(dim=1) if mask is None else pool(hidden, mask, "mean")
    )  # no batch, nothing to leave out


def _pool_all_layers(
    model,  # a sequence classifier of transformers, whose head is replaced by a wider one with random weights
) -> None:
    """Let one linear layer read every layer's mean over all tokens that are not padding, in place.

    Raises: InputError for a model of two sequences.
    """
    import torch

    _check_one_sequence(model)
    model.config.output_hidden_states = True
    model.base_model.register_forward_hook(_means_of_layers, with_kwargs=True)
    width = (model.config.num_hidden_layers + 1) * model.config.hidden_size
    model.classifier = torch.nn.Linear(
        width, model.config.num_labels, device=model.device, dtype=model.dtype
    )
    model.forward = MethodType(_linear_over_pooled, model)


def _means_of_layers(encoder, arguments, options, output):
    import torch

    mask = options.get("attention_mask")
    output["pooler_output"] = torch.cat(
        [_token_mean(hidden, mask) for hidden in output.hidden_states], dim=1
    )
    return output


def _linear_over_pooled(model, **batch):
    """What the model gives in place of its family's own head."""
    from transformers.modeling_outputs import SequenceClassifierOutput

    return SequenceClassifierOutput(
        logits=model.classifier(model.base_model(**batch).pooler_output)
    )


STYLE_FILE = "style.json"
_HEAD_FILE = "head.safetensors"  # of an adapter that is a head alone
# what a model of one's own says of pairs that it was not trained on: how many, the share that it orders rightly with its
# 95% interval, and the share that the length of the texts would order
CHECK = ("pairs", "ordered", "low", "high", "by_length")
STYLE_SETTINGS: dict[str, Any] = {"labels": list, "pooling": str, "temperature": (int, float)}


def base_model(
    name: Path | str,  # an embedded encoder, a folder, or a Hugging Face model id
    labels: Sequence[str],  # C names of classes
    pooling: str = "cls",  # cls | mean | layers | words
    **options: Any,  # further settings of the model, such as hidden_dropout_prob
):  # a sequence classifier of transformers with a fresh, random head, and its tokenizer
    """An encoder to be trained. Raises: AssetError if it cannot be had; InputError for an encoder that cannot pool
    so."""
    source = locate_model(name)
    tokenizer = read_tokenizer(source, "all-MiniLM-L6-v2")
    return _read_module(source, tokenizer, labels, pooling, fresh_head=True, **options), tokenizer


def _read_module(source: ModelSource, tokenizer, labels: Sequence[str], pooling: str, **options):
    module = read_module(
        "AutoModelForSequenceClassification",
        source,
        "all-MiniLM-L6-v2",
        id2label=dict(enumerate(labels)),
        label2id={label: index for index, label in enumerate(labels)},
        **options,
    )
    module.config.pooling = pooling
    if pooling == "mean":
        _pool_by_mean(module)
    if pooling == "layers":
        _pool_all_layers(module)
    if pooling == "words":
        add_word_head(module, tokenizer)
    return module


def _read_head(module, source: ModelSource):
    """The encoder with the head that the folder holds. Raises: AssetError if the file is damaged or does not fit."""
    from safetensors.torch import load_file

    path = Path(source.location) / _HEAD_FILE
    try:
        module.classifier.load_state_dict(load_file(path))
    except Exception as error:  # damaged files make the libraries below raise whatever they like
        first_line = next(iter(str(error).splitlines()), "")
        raise AssetError(
            f"the head in {path} cannot be read: {type(error).__name__}: {first_line}. Save it "
            f"again"
        ) from error
    module.config.head_over = source.base.name
    return module


def _save_head(classifier: "StyleClassifier", folder: Path) -> None:
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    save_file(
        {
            name: weight.detach().cpu().contiguous()
            for name, weight in classifier.model.classifier.state_dict().items()
        },
        folder / _HEAD_FILE,
    )
    text = json.dumps({"base_model_name_or_path": classifier.model.config.head_over})
    (folder / ADAPTER_CONFIG).write_text(text + "\n", encoding="utf-8")


def _style_settings(source: ModelSource) -> dict | None:
    """Labels, pooling, temperature and confidence of a classifier that `save` wrote; None for any other model."""
    path = Path(source.location) / STYLE_FILE
    if not path.is_file() and source.base is None:
        return None
    style = read_json(path, STYLE_SETTINGS)
    for entry, names in (("validation", ("texts", "mean", "spread")), ("check", CHECK)):
        held = style.get(entry)
        if held is not None and not (
            isinstance(held, dict)
            and all(isinstance(held.get(name), (int, float)) for name in names)
        ):
            raise AssetError(
                f"'{entry}' in {path} should hold the numbers {', '.join(names[:-1])} and {names[-1]}; copy or save the "
                f"model's folder again"
            )
    return style


def _check_padding(classifier: "StyleClassifier") -> None:
    """Refuse a decoder that cannot tell the last token of a text from what fills up its batch."""
    model_pad_id = classifier.model.config.pad_token_id
    used = classifier.tokenizer.pad_token_id
    if getattr(classifier.model, "score", None) is not None and (
        used is None or model_pad_id != used
    ):
        raise AssetError(
            f"{classifier.name} judges a text by its last token and must know which one fills batches up, "
            f"but its settings say pad_token_id {model_pad_id} and its tokenizer's is {used}; give both the same "
            f"one, in config.json and tokenizer_config.json"
        )


class StyleClassifier(Model):
    """An encoder with a classification head: texts in, a distribution over styles out."""

    default_name = "subjectivity-minilm"
    auto_class = "AutoModelForSequenceClassification"

    def __init__(
        self,
        model,  # a sequence classifier of transformers
        tokenizer,  # of transformers
        name: str,  # for messages and signatures
        identity: str = "",  # SHA-256 of the weights, where it is known
    ):
        super().__init__(model, tokenizer, name, identity)
        _check_padding(self)
        self.labels = tuple(
            model.config.id2label[index] for index in range(model.config.num_labels)
        )
        self.temperature = (
            1.0  # that the logits of the trained head were divided by, see `calibrate`
        )
        # texts, mean and spread of its confidence on them, see `calibrate`; None: not known
        self.validation: dict[str, float] | None = None
        self.check: dict[str, float] | None = None  # see CHECK; None: not made by `tsteval train`
        self.history = pd.DataFrame()  # one row an epoch, where this classifier was just trained
        self.training: Any = None  # the settings it was trained with, likewise

    @classmethod
    def _read(cls, source: ModelSource, dtype: str):
        style = _style_settings(source)
        if style is None:
            return super()._read(source, dtype)
        is_adapter = source.base is not None
        tokenizer = read_tokenizer(source, cls.default_name)
        module = _read_module(
            source, tokenizer, style["labels"], style["pooling"], dtype=dtype, fresh_head=is_adapter
        )
        if is_adapter:
            only_head = (Path(source.location) / _HEAD_FILE).is_file()
            module = (
                _read_head(module, source)
                if only_head
                else read_adapter(module, source, cls.default_name)
            )
        return module, tokenizer

    def _settle(self, source: ModelSource) -> None:
        if style := _style_settings(source):
            self.temperature = float(style["temperature"])
            self.validation = style.get("validation")
            self.check = style.get("check")

    def predict_proba(
        self,
        texts: Iterable[str],  # N texts
        second: Iterable[str] | None = None,  # N second texts, for a classifier of pairs of texts
        batch_size: int
        | None = None,  # texts scored at once, >= 1; changes speed and memory, not the result
        progress: bool = False,  # show a bar
    ) -> np.ndarray:  # (N, C) probabilities, each row sums to 1
        """Probability of each style for each text.

        Raises: as `predict_logits`; InputError for a model whose outputs are no distribution over its labels.
        """
        from scipy.special import softmax

        self.check_distribution()
        return softmax(self.predict_logits(texts, second, batch_size, progress), axis=1)

    def check_distribution(self) -> None:
        """Raise an InputError unless a text has one of several labels."""
        if self.judges_each_label:
            raise InputError(
                f"{self.name} judges each label by itself (problem_type multi_label_classification), so "
                f"its probabilities are no distribution over styles; use one that chooses among labels, "
                f"or predict_logits"
            )
        self._check_outputs()

    def _check_outputs(self) -> None:
        if len(self.labels) == 1 and not self.judges_each_label:
            raise InputError(
                f"{self.name} has one output, a number on some scale, and no probability among labels; "
                f"use a classifier of two labels or more, or predict_logits"
            )

    @property
    def judges_each_label(self) -> bool:
        """Whether a text can have several labels or none."""
        return self.model.config.problem_type == "multi_label_classification"

    def label_probabilities(
        self,
        texts: Iterable[str],  # N texts
        second: Iterable[str] | None = None,  # N second texts, for a classifier of pairs of texts
        batch_size: int
        | None = None,  # texts scored at once, >= 1; changes speed and memory, not the result
        progress: bool = False,  # show a bar
    ) -> np.ndarray:  # (N, C) in 0..1; rows sum to 1 unless the model judges each label by itself
        """Probability of each label for each text, by itself or among the others, as the model was trained.

        Raises: as `predict_logits`; InputError for a model with one output.
        """
        from scipy.special import expit, softmax

        self._check_outputs()
        logits = self.predict_logits(texts, second, batch_size, progress)
        return expit(logits) if self.judges_each_label else softmax(logits, axis=1)

    def predict_logits(
        self,
        texts: Iterable[str],  # N texts
        second: Iterable[str] | None = None,  # N second texts, for a classifier of pairs of texts
        batch_size: int
        | None = None,  # texts scored at once, >= 1; changes speed and memory, not the result
        progress: bool = False,  # show a bar
    ) -> np.ndarray:  # (N, C) outputs of the model, before they become probabilities
        """What the model gives for each style and text, each distinct text once, in batches of similar length.

        Raises: InputTypeError (a TypeError) naming the row that is not a string; InputError (a ValueError) for a batch
        size below 1, or if there are not as many second texts.
        """
        rows = self.map_rows(
            {"texts": texts, "second": second},
            self._logits,
            batch_size=batch_size,
            progress=progress,
            desc="classifying",
        )
        return np.array(rows) if rows else np.zeros((0, len(self.labels)))

    @property
    def scores_words(self) -> bool:
        """Whether it scores each token, so that `token_scores` can be asked for."""
        return getattr(self.model.config, "pooling", "") == "words"

    def token_scores(
        self,
        texts: Iterable[str],  # N texts
        batch_size: int
        | None = None,  # texts scored at once, >= 1; changes speed and memory, not the result
        progress: bool = False,  # show a bar
    ) -> list[
        np.ndarray
    ]:  # N arrays (T,), in log-odds; the logsumexp of a text's is the log-odds of its style
        """What each token says for the first label, with the frame's tokens, which say nothing (-10,000).

        Raises: InputError for a classifier that scores whole texts alone; as `predict_logits`.
        """
        self.check_scores_words()
        return self.map_rows(
            {"texts": texts},
            lambda batch: [
                scores[mask == 1]
                for scores, mask in zip(self.model(**batch).token_scores, batch["attention_mask"])
            ],
            batch_size=batch_size,
            progress=progress,
            desc="scoring words",
        )

    def check_scores_words(self) -> None:
        """Raise an InputError unless it scores each token."""
        if not self.scores_words:
            raise InputError(
                f"{self.name} scores whole texts and has no scores of tokens; use one that was taught "
                f"words, such as subjectivity-words"
            )

    def _logits(self, batch):
        if self.model.config.is_encoder_decoder:
            ends = (batch["input_ids"] == self.model.config.eos_token_id).sum(dim=1)
            if not len(ends) or ends[0] == 0 or (ends != ends[0]).any():
                raise InputError(
                    f"{self.name} judges a text at its end mark, and a text here has none or one of its "
                    f"own; take marks such as {self.tokenizer.eos_token} out of the texts, or let the "
                    f"tokenizer write one behind each"
                )
        return self.model(**batch).logits

    def save(
        self,
        folder: Path | str,  # made if it does not exist
    ) -> None:
        """Write the adapter, or the whole model with its tokenizer, and beside it settings and a card."""
        only_head = hasattr(self.model.config, "head_over")
        is_adapter = hasattr(self.model, "peft_config")
        if only_head:
            _save_head(self, Path(folder))
        else:
            self.model.save_pretrained(
                folder, **({"save_embedding_layers": False} if is_adapter else {})
            )
        pooling = getattr(self.model.config, "pooling", "cls")
        style = {
            "labels": self.labels,
            "pooling": pooling,
            "temperature": self.temperature,
            "validation": self.validation,
            **({"check": self.check} if self.check else {}),
        }
        (Path(folder) / STYLE_FILE).write_text(json.dumps(style) + "\n", encoding="utf-8")
        # an adapter's tokenizer is that of its base model
        if not (only_head or is_adapter):
            self.tokenizer.save_pretrained(folder)
        (Path(folder) / "README.md").write_text(_card(self, Path(folder)), encoding="utf-8")


def settings_line(
    settings: Any,  # a `Training`, see `notebook/training`
    temperature: float,  # that the head was divided by
) -> str:
    """The settings of a training run in one line, for a card."""
    values = asdict(settings) | {"base": short_name(settings.base)}
    return (
        ", ".join(f"{name} {value}" for name, value in values.items())
        + f"; then logits divided by the temperature {temperature:.3f}."
    )


def confidence_line(
    validation: Mapping[str, float],  # texts, mean and spread
) -> str:
    """How sure a classifier was on validation, for a card."""
    return (
        f"Mean confidence on the {validation['texts']:,} validation texts: {validation['mean']:.3f} (standard "
        f"deviation "
        f"{validation['spread']:.3f}). A very different one on other texts says that they are of another kind."
    )


def short_name(
    name: Path | str,  # of a model
) -> str:  # the last part of a folder's path; any other name as it is
    """A model's name without the path of this machine."""
    return from_home(name).resolve().name if from_home(name).is_dir() else str(name)


def kind_of_weights(
    classifier: StyleClassifier,
) -> str:  # the beginning of a sentence, for a card
    """What a saved classifier's weights are: a head, an adapter with a head, or a whole model."""
    if hasattr(classifier.model.config, "head_over"):
        return (
            f"A linear head over all layers of {short_name(classifier.model.config.head_over)}, which was left as "
            f"it is"
        )
    if hasattr(classifier.model, "peft_config"):
        return (
            f"A LoRA adapter with a classification head over "
            f"{short_name(classifier.model.peft_config['default'].base_model_name_or_path)}"
        )
    base = "" if classifier.training is None else f" over {short_name(classifier.training.base)}"
    return f"All weights of an encoder with a classification head ({type(classifier.model).__name__}){base}"


def _card(classifier: StyleClassifier, folder: Path) -> str:
    settings = (
        []
        if classifier.training is None
        else ["## Settings", "", settings_line(classifier.training, classifier.temperature), ""]
    )
    settings += [confidence_line(classifier.validation), ""] if classifier.validation else []
    weights = sorted(path for path in folder.iterdir() if path.suffix == ".safetensors")
    return "\n".join(
        [
            f"# {folder.resolve().name}",
            "",
            f"Labels a text as one of: {', '.join(classifier.labels)}. {kind_of_weights(classifier)}; made with `tsteval`.",
            "",
            "## Use",
            "",
            "```python",
            "from tsteval.style import StyleClassifier",
            f'StyleClassifier.load("{folder.resolve().name}")  # this folder',
            "```",
            "",
            *settings,
            "## Checksums",
            "",
            *(f"- {path.name}: {file_sha256(path)}" for path in weights),
            "",
        ]
    )


def find_label(
    label: str,  # as a person writes it
    labels: Sequence[str],  # a classifier's C labels
) -> int | None:  # 0..C-1; None: there is no such label
    """Which class a label names: the one spelled so, or else the first that differs from it in letter case alone.
    Published models write NEGATIVE where people write negative."""
    if label in labels:
        return list(labels).index(label)
    return next(
        (
            place
            for place, candidate in enumerate(labels)
            if candidate.casefold() == label.casefold()
        ),
        None,
    )


def shipped_with(style: str) -> list[str]:
    """The shipped style models that know a style."""
    files = sorted(packaged_path("").glob(f"*/{STYLE_FILE}"))
    return [
        file.parent.name
        for file in files
        if find_label(style, read_json(file, {"labels": list})["labels"]) is not None
    ]


def label_probability(
    model: str
    | StyleClassifier,  # an embedded classifier, a folder, a Hugging Face model id, or a loaded classifier
    label: str,  # one of the classifier's labels, in any case
    texts: list[str],  # N texts
    second: list[str] | None = None,  # N second texts for a classifier of pairs
    *,
    batch_size: int | None = None,  # texts scored at once; changes speed and memory, not the result
    progress: bool = False,  # show a bar
) -> np.ndarray:  # (N,) in 0..1; NaN where the classifier knows no word of a text
    """Probability that a text classifier gives to one of its labels.

    Raises: AssetError if the model cannot be had; InputError for a label that it does not have, or different lengths;
    InputTypeError naming the row that is not a string.
    """
    classifier = StyleClassifier.load(model) if isinstance(model, str) else model
    place = find_label(label, classifier.labels)
    if place is None:
        raise InputError(
            f"{classifier.name} has no label {label!r}; its labels are {', '.join(classifier.labels)}"
        )
    shares = classifier.label_probabilities(texts, second, batch_size, progress)[:, place]
    columns = [texts] if second is None else [texts, second]
    return np.where(classifier.readable(*columns, empty=True), shares, np.nan)
