"""A sentence encoder: a transformer whose token vectors are pooled into one vector a text"""

import json
from collections.abc import Iterable
from pathlib import Path
from types import MethodType, SimpleNamespace
from typing import Any

import numpy as np

from ..core.assets import AssetError, read_json
from ..core.checks import InputError, tokenizable
from ..core.pretrained import ModelSource
from ..words.english import Phrase
from .base import Model, warn_caller
from .loading import token_limit
from .path_integral import Explained
from .path_integral import Path as Journey

_POOLINGS = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
}


def _read_pooling(
    folder: Path,  # a model's folder
    name: str,  # of the model, for messages
    # pooling, tokens that are read (None: not said), whether texts are lower-cased first
) -> tuple[str, int | None, bool]:
    """How an encoder pools and how long it reads, as sentence-transformers writes it into a folder.

    A folder that says nothing is taken to pool by the mean, with a warning.
    Raises: AssetError for a pooling or a further layer that `SentenceEncoder` does not have.
    """
    modules = folder / "modules.json"
    kinds = (
        [
            part["type"].rsplit(".", 1)[-1]
            for part in json.loads(modules.read_text(encoding="utf-8"))
        ]
        if modules.is_file()
        else []
    )
    if more := set(kinds) - {"Transformer", "Pooling", "Normalize"}:
        raise AssetError(
            f"{name} has a layer {sorted(more)[0]} behind its pooling, which SentenceEncoder would leave "
            f"out; "
            "use an encoder that ends with its pooling, such as all-MiniLM-L6-v2"
        )
    file = folder / "1_Pooling" / "config.json"
    limits = folder / "sentence_bert_config.json"
    limits = read_json(limits) if limits.is_file() else {}
    if not file.is_file():
        warn_caller(
            f"{name} does not say how it makes one vector of many (there is no {file.parent.name}/{file.name} "
            f"beside it); "
            "assuming the mean of its tokens' vectors"
        )
        return "mean", limits.get("max_seq_length"), bool(limits.get("do_lower_case"))
    settings = read_json(file)
    chosen = (
        [settings["pooling_mode"]]
        if isinstance(settings.get("pooling_mode"), str)
        else [
            _POOLINGS.get(key, key)
            for key, value in settings.items()
            if key.startswith("pooling_mode_") and value is True
        ]
    )
    if len(chosen) != 1 or chosen[0] not in _POOLINGS.values():
        raise AssetError(
            f"{name} pools by {' and '.join(chosen) or 'nothing'}; SentenceEncoder knows "
            f"{', '.join(_POOLINGS.values())}"
        )
    return chosen[0], limits.get("max_seq_length"), bool(limits.get("do_lower_case"))


def pool(
    vectors,  # (B, T, D) tensor
    mask,  # (B, T) tensor, 0 for padding
    pooling: str,  # mean | cls | max | mean_sqrt_len_tokens
):  # (B, D) tensor
    """One vector for each text of a batch."""
    if pooling == "cls":
        return vectors[:, 0]
    mask = mask[:, :, None]
    if pooling == "max":
        return vectors.masked_fill(mask == 0, float("-inf")).amax(dim=1)
    return (vectors * mask).sum(dim=1) / mask.sum(dim=1) ** (
        0.5 if pooling == "mean_sqrt_len_tokens" else 1
    )


class SentenceEncoder(Model):
    """A transformer whose token vectors are pooled: texts in, one vector each out."""

    default_name = "all-MiniLM-L6-v2"
    auto_class = "AutoModel"
    longest = 256
    pooling = "mean"
    lower_case = False  # what `_settle` reads from a model's folder

    def __init__(self, model, tokenizer, name: str, identity: str = ""):
        if model.config.is_encoder_decoder:
            raise AssetError(
                f"{name!r} reads two sequences, and its vectors are those of the second; give an encoder, "
                f"or use the embedded default {self.default_name!r}"
            )
        super().__init__(model, tokenizer, name, identity)

    def _settle(self, source: ModelSource) -> None:
        if source.pinned and not (Path(source.location) / "modules.json").is_file():
            return
        self.pooling, limit, self.lower_case = _read_pooling(Path(source.location), self.name)
        self.max_tokens = token_limit(self.model, self.tokenizer, limit or self.longest)

    @property
    def tag(self) -> str:  # for signatures, with the pooling where it is not the mean
        return "+".join(
            [super().tag, *[self.pooling] * (self.pooling != "mean"), *["lower"] * self.lower_case]
        )

    def encode(
        self,
        texts: Iterable[str],  # N texts, cut at `max_tokens` with a warning
        batch_size: int
        | None = None,  # texts encoded at once; changes speed and memory, not the result
        progress: bool = False,  # show a bar
    ) -> np.ndarray:  # (N, D) vectors, not normalised
        """One vector a text. Raises: InputTypeError naming the row that is no string."""
        texts = [text.lower() for text in tokenizable(texts)] if self.lower_case else texts
        vectors = self.map_rows(
            {"texts": texts},
            self._pooled,
            batch_size=batch_size,
            progress=progress,
            desc="encoding",
        )
        return np.array(vectors) if vectors else np.zeros((0, self.model.config.hidden_size))

    def _pooled(self, batch):
        return pool(self.model(**batch).last_hidden_state, batch["attention_mask"], self.pooling)


class WordReader(Model):
    """The encoder of chapter 10 before its pooling, on texts of up to 512 tokens: a vector for each phrase of a
    text."""

    default_name = "all-MiniLM-L6-v2"
    auto_class = "AutoModel"
    longest = 512

    def phrase_vectors(
        self,
        texts: list[str],  # N texts
        phrases: list[list[Phrase]],  # the phrases of each
        batch_size: int
        | None = None,  # texts encoded at once; changes speed and memory, not the result
        progress: bool = False,  # show a bar
    ) -> list[
        np.ndarray
    ]:  # N arrays (P_i, 384) of unit length; zero for a phrase beyond the last token
        """The vector of each phrase as it is meant in its text: the mean over its word pieces in the last layer."""
        if not texts:
            return []
        hidden_states = self.map_rows(
            {"texts": texts},
            lambda batch: self.model(**batch).last_hidden_state,
            batch_size=batch_size,
            progress=progress,
            desc="words",
        )
        places = self.tokenize(
            texts, truncation=True, max_length=self.max_tokens, return_offsets_mapping=True
        )["offset_mapping"]
        return [
            _phrase_means(np.array(spans), states, row)
            for spans, states, row in zip(places, hidden_states, phrases)
        ]


def _phrase_means(spans: np.ndarray, states: np.ndarray, phrases: list[Phrase]) -> np.ndarray:
    """(P, D) unit vectors from the characters (T, 2) and vectors (T or more, D) of a text's word pieces."""
    parts = [(spans[:, 0] < phrase.end) & (spans[:, 1] > phrase.start) for phrase in phrases]
    sums = np.array([states[: len(spans)][part].sum(axis=0) for part in parts]).reshape(
        len(parts), states.shape[1]
    )
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    return np.divide(sums, lengths, out=np.zeros_like(sums), where=lengths > 0)


TOKEN_SCORES = "token_scores"  # what the attribution by these scores is called
ABSENT = -1e4  # log-odds of a token that is no word; finite, so that no sum is lost in infinities


def add_word_head(
    model,  # a sequence classifier of transformers, whose head is replaced
    tokenizer,  # its own
) -> None:
    """Let one linear layer score every token, and the smooth maximum of the scores be the log-odds of the first class,
    in place.

    Raises: InputError for a model of two sequences, or of more or fewer than two classes.
    """
    import torch

    if model.config.is_encoder_decoder or model.config.num_labels != 2:
        raise InputError(
            f"{type(model).__name__} with {model.config.num_labels} classes cannot score words; they need "
            f"an encoder, and two classes: with the style and without it"
        )
    words = {tokenizer.unk_token_id, tokenizer.mask_token_id}
    model.config.frame_tokens = sorted(set(tokenizer.all_special_ids) - words)
    model.classifier = torch.nn.Linear(
        model.config.hidden_size, 1, device=model.device, dtype=model.dtype
    )
    with torch.no_grad():
        model.classifier.bias.fill_(-3.0)  # so that thirty tokens begin near even odds
    model.forward = MethodType(_smooth_maximum, model)


def _smooth_maximum(model, **batch: Any) -> SimpleNamespace:
    """What the model gives in place of its family's own head: logits (B, 2), and token_scores (B, T)."""
    import torch

    inputs = {name: value for name, value in batch.items() if value is not None}
    scores = model.classifier(model.base_model(**inputs).last_hidden_state)[..., 0].float()
    ids = inputs["input_ids"]
    absent = torch.isin(ids, torch.tensor(model.config.frame_tokens, device=ids.device))
    scores = scores.masked_fill(absent | (inputs["attention_mask"] == 0), ABSENT)
    log_odds = scores.logsumexp(dim=1)
    return SimpleNamespace(
        logits=torch.stack([log_odds, torch.zeros_like(log_odds)], dim=1), token_scores=scores
    )


def token_shares(
    explained: Explained,  # one class of a classifier that scores words
    paths: list[Journey],  # P texts as tokens; what `Path.error` compares with is written into them
) -> list[np.ndarray]:  # P arrays (T,), the probability of the class divided among the tokens
    """The probability that each token brings, 0 for the frame; of the second class, the probability that it takes."""
    from scipy.special import expit, logsumexp, softmax

    classifier = explained.classifier
    shares = []
    ids = [list(path.ids) for path in paths]
    encoded = {"input_ids": ids, "attention_mask": [[1] * len(row) for row in ids]}
    scores = classifier.in_batches(
        [len(row) for row in ids],
        lambda rows: classifier.model(**classifier.pad(encoded, rows)).token_scores,
        batch_size=explained.batch_size,
    )
    sign = 1 if explained.target == 0 else -1
    for path, padded in zip(paths, scores):
        odds = padded[: len(path.ids)]  # log-odds, without what filled the batch up
        probability = float(expit(logsumexp(odds)))
        path.values = {0.0: float(explained.target), 1.0: explained.target + sign * probability}
        shares.append(sign * probability * softmax(odds))
    return shares
