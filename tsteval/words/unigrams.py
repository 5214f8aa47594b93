"""What a token costs without any context, for the tokens of any language model"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, TypeVar

import numpy as np

from ..core.assets import packaged_path
from ..core.checks import InputError, InputTypeError, check_number, check_rows
from ..core.fetch import asset_path
from ..core.metric import digest
from .ngram_counts import UNKNOWN, check_sentence_types
from .ngram_model import NgramModel

Split = Callable[[str], list[str]]


class _NeuralModel(Protocol):
    """What is asked of a neural model, which is made in a room above."""

    tokenizer: Any

    def text_tokens(self, texts: Iterable[str]) -> list[list[str]]: ...


def own_tokens(
    lm: _NeuralModel | NgramModel,
    texts: Iterable,  # N texts; for an n-gram model also lists of tokens
    split: Split
    | None = None,  # how an n-gram model's training text was split; None for a neural model
) -> list[list[str]]:  # N lists of tokens
    """Texts as lists of a model's own tokens; a word that an n-gram model does not know becomes <unk>.

    Raises: InputTypeError, naming the row, for what is neither a text nor a list of tokens, or for `split` with a
    neural model.
    """
    if not isinstance(lm, NgramModel):
        if split is not None:
            raise InputTypeError(
                "tokenize is for n-gram models; a CausalLM brings its own tokenizer, so leave it out"
            )
        return lm.text_tokens(texts)
    rows = [
        split(row) if split and isinstance(row, str) else row for row in check_rows(texts, "texts")
    ]
    check_sentence_types(rows, name="texts")
    vocabulary = set(lm.words)
    return [[token if token in vocabulary else UNKNOWN for token in row] for row in rows]


def teaching_texts() -> list[str]:
    """Both sides of the embedded training pairs."""
    lines = packaged_path("npov_pairs.jsonl").read_text(encoding="utf-8").splitlines()
    pairs = [json.loads(line) for line in lines]
    return [
        pair[side] for pair in pairs if pair["split"] == "train" for side in ("source", "target")
    ]


def _opening_shares(texts: list[str], imagined: float = 50) -> tuple[dict[str, float], float]:
    """Word in lower case -> how often it opens a sentence, of all its occurrences; and the share of a word never
    met."""
    words = [re.findall("[a-z]+", text.lower()) for text in texts]
    all_words = Counter(word for row in words for word in row)
    openers = Counter(row[0] for row in words if row)
    share = sum(openers.values()) / sum(all_words.values())
    return {
        word: (openers[word] + imagined * share) / (count + imagined)
        for word, count in all_words.items()
    }, share


WEB_WORDS = 333_213  # words in the embedded list


def _spread_web_counts(lm, words: int, split: Split | None) -> tuple[dict[str, float], float]:
    """Token -> share of the web counts of the most frequent words; and the count of the rarest of them."""
    lines = (
        (asset_path("web-ngrams") / "unigrams.txt").read_text(encoding="utf-8").splitlines()[:words]
    )
    entries = [(word, float(count)) for word, count in (line.split("\t") for line in lines)]
    spellings = [[f" {word}", f" {word.capitalize()}", word.capitalize()] for word, _ in entries]
    tokens = own_tokens(lm, [spelling for row in spellings for spelling in row], split)
    shares, usual_share = _opening_shares(teaching_texts())
    counts: dict[str, float] = defaultdict(float)
    for (word, count), small, large, first in zip(entries, tokens[::3], tokens[1::3], tokens[2::3]):
        opening = shares.get(word, usual_share) * count
        inside = (
            small
            if len(small) + small.count(UNKNOWN) <= len(large) + large.count(UNKNOWN)
            else large
        )
        for form, share in ((inside, count - opening), (large, opening / 2), (first, opening / 2)):
            for token in form:
                counts[token] += share
    return counts, entries[-1][1]


def _count_web_tokens(lm, words: int, split: Split | None) -> tuple[dict[str, float], float, int]:
    """Counts of a model's tokens, the count of a token never seen, and the size of the vocabulary."""
    counts, rarest = _spread_web_counts(lm, words, split)
    tokens = [token for sentence in own_tokens(lm, teaching_texts(), split) for token in sentence]
    signs = Counter(
        token for token in tokens if token != UNKNOWN and not re.search("[A-Za-z]", token)
    )
    scale = sum(counts.values()) / (len(tokens) - sum(signs.values()))
    for token, count in signs.items():
        counts[token] += count * scale
    return counts, rarest, lm.vocabulary_size if isinstance(lm, NgramModel) else len(lm.tokenizer)


_counted: dict[
    str, tuple[dict[str, float], float, int]
] = {}  # of the latest tokenizers: each takes seconds


def _web_token_counts(lm, words: int, split: Split | None) -> tuple[dict[str, float], float, int]:
    """`_count_web_tokens`, once for each state of a fast tokenizer, since nothing else of a neural model counts."""
    backend = getattr(getattr(lm, "tokenizer", None), "backend_tokenizer", None)
    if backend is None or split is not None:
        return _count_web_tokens(lm, words, split)
    key = digest(type(lm).__qualname__, backend.to_str(), str(len(lm.tokenizer)), str(words))
    if key not in _counted:
        _counted[key] = _count_web_tokens(lm, words, None)
    while len(_counted) > 4:
        _counted.pop(next(iter(_counted)), None)  # the oldest
    return _counted[key]


Own = TypeVar("Own", bound="Unigrams")  # so that a subclass's constructors return that subclass


class Unigrams:
    """Log-probability of a token without context: `from_counts`, `from_sentences` or `from_web_counts`."""

    def __init__(
        self,
        logprobs: dict[str, float],  # token -> natural log of its probability
        unseen: float,  # the same for a token that is not among them
        name: str,  # for signatures, which add a checksum of the probabilities
    ):
        self.logprobs = logprobs
        self.unseen = unseen
        self.name = name
        self.tag = f"{name}@{digest(*(f'{token} {value:.9g}' for token, value in sorted(logprobs.items())), f'{unseen:.9g}')}"

    @classmethod
    def from_counts(
        cls: type[Own],
        counts: Mapping[str, float],  # token -> count, > 0
        unseen: float = 1.0,  # count given to every token that is not in `counts`, > 0
        vocabulary: int
        | None = None,  # number of possible tokens; None: those in `counts` and one more
        name: str = "counts",  # for signatures
    ) -> Own:
        """Unigram model from counts; the probabilities of the whole vocabulary sum to 1. Raises: InputError if
        empty."""
        if not counts or min(counts.values()) <= 0 or unseen <= 0:
            raise InputError("a unigram model needs at least one token and counts above 0")
        missing = max((vocabulary if vocabulary is not None else len(counts) + 1) - len(counts), 0)
        total = sum(counts.values()) + missing * unseen
        logprobs = {token: float(np.log(count / total)) for token, count in counts.items()}
        return cls(logprobs, float(np.log(unseen / total)), name)

    @classmethod
    def from_sentences(
        cls: type[Own],
        sentences: Iterable[list[str]],  # token lists
        name: str = "sentences",  # for signatures
    ) -> Own:
        """Unigram model from tokenised text, with one added for a token never seen. Raises: InputError if empty."""
        return cls.from_counts(
            Counter(token for sentence in sentences for token in sentence), name=name
        )

    @classmethod
    def from_web_counts(
        cls: type[Own],
        lm: _NeuralModel | NgramModel,  # the model whose tokens are to be counted
        words: int = 60_000,  # how many of the most frequent words to use, in 1..333,213
        tokenize: Split
        | None = None,  # how an n-gram model's training text was split; None for a neural model
    ) -> Own:
        """Web word counts spread over a model's own tokens; the teaching pairs supply punctuation and how sentences
        open.

        Raises: InputError for a number of words out of range; AssetError if the counts cannot be had.
        """
        check_number(words, "words", 1, WEB_WORDS, whole=True)
        counts, unseen, vocabulary = _web_token_counts(lm, words, tokenize)
        return cls.from_counts(counts, unseen, vocabulary, f"web-ngrams-{words}")

    def score(
        self,
        tokens: list[str],  # T tokens
    ) -> np.ndarray:  # (T,) natural logs, finite
        """Log-probability of each token."""
        return np.array([self.logprobs.get(token, self.unseen) for token in tokens])
