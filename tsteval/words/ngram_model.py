"""An n-gram model: its tables from text or from counts, scoring of whole texts, probabilities, a checksum"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ClassVar, TypeVar

import numpy as np

from tsteval.core.checks import (
    InputError,
    InputTypeError,
    check_choice,
    check_number,
    check_rows,
    check_texts,
    describe,
)
from tsteval.words.ngram_counts import (
    END,
    START,
    UNKNOWN,
    KeyIndex,
    WordFinder,
    WordIds,
    add_markers,
    check_stream,
    context_rows,
    count_sentences,
    encode_sentences,
    merge_runs,
    pack,
    special_words,
)

from .ngram_smoothing import gather_level, suffix_rows


def replace_rare(
    words: list[str],  # the vocabulary, <unk> first
    levels: list,  # its counts
    cutoff: int,  # words seen less often become <unk>
) -> tuple[list[str], list]:  # the smaller vocabulary and its counts
    """Count every rare word as <unk>; the markers stay."""
    vocabulary_mask = np.array([word in (UNKNOWN, START, END) for word in words]) | (
        levels[0][1] >= cutoff
    )
    new_ids = np.where(vocabulary_mask, np.cumsum(vocabulary_mask) - 1, 0)
    return [word for word, stays in zip(words, vocabulary_mask) if stays], merge_runs(
        [levels], new_ids
    )


def _check_counts(
    tables: Sequence[Mapping[tuple, float]],  # for n = 1, 2, ...: counts by tuple of n words
) -> list[dict]:  # the tables as dictionaries of their own
    """Make sure that each table maps tuples of the right length to counts above 0. Raises: InputError naming the
    entry."""
    for n, table in enumerate(tables, 1):
        if not isinstance(table, Mapping):
            raise InputTypeError(
                f"table {n} must map tuples of {n} words to counts, got {describe(table)}"
            )
        for gram, count in table.items():
            if not (isinstance(gram, tuple) and len(gram) == n):
                raise InputError(
                    f"table {n} holds {gram!r:.80}; its keys must be tuples of {n} words"
                )
            if type(count) is not int or count <= 0:  # the quick look serves all but few
                check_number(
                    count,
                    f"table {n}, the count of {gram!r:.80}",
                    0,
                    float("inf"),
                    above=True,
                    below=True,
                )
    return [dict(table) for table in tables]


def index_counts(
    tables: Sequence[Mapping[tuple, float]],  # for n = 1, 2, ...: counts by tuple of n words
    specials: Sequence[str],  # the words that the vocabulary begins with
) -> tuple[list[str], list]:  # the vocabulary and its counts, as `count_sentences` returns them
    """Bring ready-made counts into sorted arrays; an n-gram's shorter versions that are missing get count 0.

    Raises: InputError for an n-gram of the wrong length, a count that is not positive, or a word that is no string.
    """
    tables = _check_counts(tables)
    for n in range(len(tables) - 1, 0, -1):
        for gram in tables[n]:
            tables[n - 1].setdefault(gram[:-1], 0)
            tables[n - 1].setdefault(gram[1:], 0)
    listed = check_texts([word for (word,) in tables[0]], "the words of the tables")
    words = list(dict.fromkeys([*specials, *listed]))
    ids = {word: row for row, word in enumerate(words)}
    tables[0] = {(word,): tables[0].get((word,), 0) for word in words}
    levels: list = []
    indexes: list[KeyIndex] = []
    for n, table in enumerate(tables, 1):
        grams = np.array([[ids[word] for word in gram] for gram in table], dtype=np.int64).reshape(
            -1, n
        )
        packed = pack(context_rows(grams, indexes), grams[:, -1])
        order = np.argsort(packed)
        levels.append((packed[order], np.array(list(table.values()), dtype=float)[order]))
        indexes.append(KeyIndex(packed[order]))
    return words, levels


def score_words(
    words: np.ndarray,  # (T,) word ids of all sentences, one after the other
    starts: np.ndarray,  # (N,) where each sentence starts in `words`, ascending
    indexes: list[KeyIndex],  # of the levels 2 .. order
    log_probabilities: list[
        np.ndarray
    ],  # per level: (rows,) natural log of each listed n-gram's probability
    log_weights: list[
        np.ndarray
    ],  # per level but the last: (rows + 1,) each context's weight, unlisted ones'
    shortcut: np.ndarray
    | None = None,  # (V,) what unseen n-grams fall back on instead of the shorter context
) -> np.ndarray:  # (T,) natural logs
    """Log-probability of every word after the words before it, all words at once, one pass per order."""
    scores = log_probabilities[0].take(words)
    rows = words
    place = np.arange(len(words)) - np.repeat(
        starts, np.diff(starts, append=len(words))
    )  # 0 for a sentence's first
    for n, (index, weights) in enumerate(zip(indexes, log_weights), 2):
        # the (n-1)-gram that ends just before each word; -1: not listed
        context = np.append(-1, rows)[:-1]
        context[place == 0] = -1
        plain = (
            shortcut is None and weights[-1] == 0
        )  # then a word after an unlisted context keeps its score
        # the words before have no context of this length
        asked = np.flatnonzero(context >= 0 if plain else place >= n - 1)
        context = context.take(asked)
        word = words.take(asked)
        ngram_rows = index.find(pack(context, word))
        scores[asked] = weights.take(context) + (
            scores.take(asked) if shortcut is None else shortcut.take(word)
        )
        listed = np.flatnonzero(ngram_rows >= 0)
        asked = asked.take(listed)
        ngram_rows = ngram_rows.take(listed)
        scores[asked] = log_probabilities[n - 1].take(ngram_rows)
        rows = np.full(len(words), -1)
        rows[asked] = ngram_rows
    return scores


class NotFittedError(InputError, AttributeError):
    """A model was asked before it had learned anything."""


_Fitted = TypeVar("_Fitted", bound="NgramModel")  # so that a subclass's `fit` returns that subclass


class NgramModel:
    """Probabilities and back-off weights of an n-gram model: filled from text or counts, then ready to score."""

    rules: ClassVar[
        Mapping[str, Callable]
    ] = {}  # smoothing -> function (level, model) -> (probabilities, weights)
    order: int
    smoothing: str
    discount: float | tuple
    padding: str
    unk_cutoff: int
    add_k: float
    backoff: float
    katz_cutoff: int
    SETTINGS: ClassVar = (
        "order",
        "smoothing",
        "discount",
        "padding",
        "unk_cutoff",
        "add_k",
        "backoff",
        "katz_cutoff",
    )

    def _configure(
        self, order, smoothing, discount, padding, unk_cutoff, add_k, backoff, katz_cutoff
    ) -> None:
        """Check and keep the settings. Raises: InputError naming the setting that does not fit."""
        for name, value, low in (
            ("order", order, 1),
            ("unk_cutoff", unk_cutoff, 1),
            ("katz_cutoff", katz_cutoff, 2),
        ):
            check_number(value, name, low, whole=True)
            setattr(self, name, int(value))
        check_number(add_k, "add_k", 0, float("inf"), above=True, below=True)
        check_number(backoff, "backoff", 0, 1)
        check_choice(padding, "padding", ("both", "arpa"))
        if smoothing != "arpa":  # the tables of an ARPA file may have come from any rule
            check_choice(smoothing, "smoothing", self.rules)
        if isinstance(discount, (tuple, list)):
            if smoothing != "modified_kneser_ney" or len(discount) != 3:
                raise InputError(
                    f"discount must be one number, or three for modified_kneser_ney; got {discount!r}"
                )
            for place, value in enumerate(discount, 1):
                check_number(value, f"discount {place} of 3", 0, place)
            self.discount = tuple(map(float, discount))
        else:
            check_number(discount, "discount", 0, 1)
            self.discount = float(discount)
        self.smoothing = str(smoothing)
        self.padding = str(padding)
        self.add_k = float(add_k)
        self.backoff = float(backoff)

    def __getattr__(self, name: str):  # called for attributes that are not there yet
        learned = (
            "words",
            "keys",
            "log_probabilities",
            "log_weights",
            "_ids",
            "_finder",
            "_indexes",
            "_shortcut",
            "_identity",
        )
        if name in learned or isinstance(getattr(type(self), name, None), property):
            raise NotFittedError("this model has not been fitted yet; call fit(sentences) first")
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def fit(
        self: _Fitted,
        sentences: Iterable[
            Sequence[str]
        ],  # lists of tokens; may be a generator over more text than fits in memory
        progress: bool = False,  # show a bar that counts sentences
    ) -> _Fitted:  # itself
        """Count the n-grams of a text and smooth them; memory grows with different n-grams, not with the text.

        Raises: InputError for a text without words; InputTypeError or InputError, naming the row, for a bad sentence.
        """
        self._refuse_arpa()
        check_stream(sentences)
        if progress:
            from tqdm.auto import tqdm

            sentences = tqdm(sentences, unit=" sentences")
        words, levels = count_sentences(sentences, self.order, self._markers)
        self._smooth(*replace_rare(words, levels, self.unk_cutoff))
        return self

    def fit_counts(
        self: _Fitted,
        tables: Sequence[Mapping[tuple, float]],  # for n = 1 .. order: counts by tuple of n words
    ) -> _Fitted:  # itself
        """Smooth ready-made counts, those of the markers around sentences among them; the same as `fit` where they are all
        there. Occurrences of a context that no listed n-gram accounts for count as unseen words, but for the last marker.

        Raises: InputError for the wrong number of tables, an n-gram of the wrong length, a count that is not positive.
        """
        self._refuse_arpa()
        if isinstance(tables, Mapping) or len(tables) != self.order:
            raise InputError(
                f"a model of order {self.order} needs a list of {self.order} tables of counts, "
                f"got {'one' if isinstance(tables, Mapping) else len(tables)}"
            )
        words, levels = index_counts(tables, special_words(self._markers))
        if self.unk_cutoff > 1:
            words, levels = replace_rare(words, levels, self.unk_cutoff)
        self._smooth(words, levels, context_counts=True)
        return self

    def _refuse_arpa(self) -> None:
        if self.smoothing == "arpa":
            raise InputError(
                "this model's probabilities came from an ARPA file; make a new NgramLM to fit"
            )

    def _smooth(self, words: list, levels: list, context_counts: bool = False) -> None:
        vocabulary = len(words) - (self.padding == "arpa")
        suffixes = suffix_rows([keys for keys, _ in levels])
        probabilities = np.array([1 / vocabulary])
        log_probabilities = []
        log_weights = []
        for n in range(1, self.order + 1):
            lower = probabilities[suffixes[n - 1]]
            if self.smoothing in ("mle", "add_k"):  # these two mix with the uniform distribution
                lower = np.full(len(lower), 1 / vocabulary)
            level = gather_level(
                n,
                levels,
                suffixes,
                lower,
                vocabulary,
                padding=self.padding,
                continuation="kneser_ney" in self.smoothing,
                context_counts=context_counts,
            )
            plain = (
                n == 1 and self.padding == "both" and self.smoothing != "add_k"
            )  # NLTK leaves unigrams as they are
            probabilities, weights = self.rules["mle" if plain else self.smoothing](level, self)
            if n == 1 and self.padding == "arpa":
                probabilities[words.index(START)] = 0
            unlisted = {"mle": 0, "stupid_backoff": self.backoff}.get(self.smoothing, 1)
            with np.errstate(divide="ignore"):
                log_probabilities.append(np.log(probabilities))
                log_weights.append(np.log(np.append(weights, unlisted)))
        self.set_tables(words, [keys for keys, _ in levels], log_probabilities, log_weights[1:])

    def set_tables(
        self,
        words: list[str],  # (V,) the vocabulary; a word's id is its place
        keys: list[np.ndarray],  # sorted keys of each level
        log_probabilities: list[np.ndarray],  # per level: (rows,) natural logs
        # per level but the last: (rows + 1,) natural logs, the last for unlisted contexts
        log_weights: list[np.ndarray],
    ) -> None:
        """Put finished tables into the model, as fitting and reading a file do."""
        self.words = words
        self.keys = keys
        self.log_probabilities = log_probabilities
        self.log_weights = log_weights
        self._ids = WordIds(zip(words, range(len(words))))
        self._finder = WordFinder(self._ids)
        self._indexes = [KeyIndex(level) for level in keys[1:]]
        self._shortcut = None
        self._identity = ""
        if self.smoothing in ("mle", "add_k"):
            self._shortcut = np.full(len(words), -np.log(self.vocabulary_size))
            if self.padding == "arpa":
                self._shortcut[self._ids[START]] = -np.inf

    @property
    def settings(self) -> dict:
        """The settings by name."""
        return {name: getattr(self, name) for name in self.SETTINGS}

    @property
    def identity(self) -> str:
        """SHA-256, 64 hexadecimal digits, over settings, words and tables; equal only for models that score alike."""
        if not self._identity:
            whole = hashlib.sha256(json.dumps([self.settings, self.words], sort_keys=True).encode())
            for table in (*self.keys, *self.log_probabilities, *self.log_weights):
                whole.update(
                    len(table).to_bytes(8, "little") + np.ascontiguousarray(table).tobytes()
                )
            self._identity = whole.hexdigest()
        return self._identity

    @property
    def name(self) -> str:
        """What the model is, such as ngram-2-kneser_ney-both."""
        return f"ngram-{self.order}-{self.smoothing}-{self.padding}"

    @property
    def tag(self) -> str:
        """The model's name in signatures, with a checksum, such as ngram-2-kneser_ney-both@0123456789ab."""
        return f"{self.name}@{self.identity[:12]}"

    @property
    def vocabulary_size(self) -> int:
        """How many words can be predicted; in ARPA's convention the start marker cannot."""
        return len(self.words) - (self.padding == "arpa")

    @property
    def _markers(self) -> tuple[int, int]:
        return (1, 1) if self.padding == "arpa" else (self.order - 1, self.order - 1)

    @property
    def _marker_ids(self) -> tuple[int, int]:
        return self._ids[START], self._ids[END]

    def score_ids(
        self,
        words: np.ndarray,  # (T,) places in `words` of all sentences, one after the other, markers included
        starts: np.ndarray,  # (N,) where each sentence starts, ascending
    ) -> np.ndarray:  # (T,) natural logs
        """Log-probability of every word of a text that is already in ids."""
        return score_words(
            words, starts, self._indexes, self.log_probabilities, self.log_weights, self._shortcut
        )

    def prob(
        self,
        word: str,  # a word; one outside the vocabulary counts as <unk>
        context: Sequence[str] = (),  # the words before it, at most order - 1
    ) -> float:  # in 0..1
        """Probability of a word after its context.

        Raises: InputTypeError for a word or context that is no string, no list of strings; InputError for a context
        longer than order - 1.
        """
        return float(self.distribution(context)[self._ids[word]])

    def distribution(
        self,
        context: Sequence[str] = (),  # at most order - 1 words
    ) -> np.ndarray:  # (V,) probability of each of `words`
        """Probability of every word of the vocabulary after one context.

        Raises: as `prob`.
        """
        before = [self._ids[word] for word in check_texts(context, "context")]
        if len(before) > self.order - 1:
            raise InputError(
                f"context has {len(before)} words, and a model of order {self.order} looks at "
                f"{self.order - 1} at most; pass its last {self.order - 1}"
            )
        vocabulary = np.arange(len(self.words))
        width = len(before) + 1
        words = np.tile(np.array([*before, 0]), len(vocabulary))
        words[width - 1 :: width] = vocabulary
        return np.exp(self.score_ids(words, np.arange(0, len(words), width))[width - 1 :: width])

    def logprobs(
        self,
        sentences: Sequence[Sequence[str]],  # N lists of tokens
    ) -> list[np.ndarray]:  # N arrays (T_i,), natural logs; T_i: tokens + 1, for "both" + order - 1
        """Log-probability of every token of every sentence, end markers included.

        Raises: InputTypeError or InputError, naming the row, for a sentence that is no list of strings or holds a
        marker.
        """
        rows = check_rows(sentences, "sentences", of="lists of tokens")
        return self._in_rows(
            *encode_sentences(rows, self._finder.find_tokens, self._markers, self._marker_ids)
        )

    def text_logprobs(
        self,
        texts: Sequence[str],  # N texts, whose tokens are what whitespace separates
    ) -> list[np.ndarray]:  # N arrays (T_i,), as from `logprobs`
        """`logprobs` of every `text.split()`, faster, since no token becomes a string of its own.

        Raises: InputTypeError for what is no text; InputError, naming the row, for a text that holds a marker.
        """
        tokens, lengths = self._finder.split(check_texts(texts, "texts"))
        return self._in_rows(*add_markers(tokens, lengths, self._markers, self._marker_ids))

    def _in_rows(self, words: np.ndarray, lengths: np.ndarray) -> list[np.ndarray]:
        ends = np.cumsum(lengths)
        scores = self.score_ids(words, ends - lengths)
        skip = self._markers[0]
        return [
            scores[start:end] for start, end in zip((ends - lengths + skip).tolist(), ends.tolist())
        ]

    def perplexity(
        self,
        sentences: Sequence[Sequence[str]],  # N >= 1 lists of tokens
    ) -> float:  # >= 1; infinite if any token has probability 0
        """Exponential of the mean negative log-probability a token.

        Raises: as `logprobs`; InputError for no sentences, or none with a token.
        """
        rows = self.logprobs(sentences)
        if not sum(map(len, rows)):
            raise InputError("perplexity needs at least one sentence with a token")
        return float(np.exp(-np.concatenate(rows).mean()))
