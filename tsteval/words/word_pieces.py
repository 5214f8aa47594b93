"""A vocabulary of word pieces learned from a text, and how a word is cut with it"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from ..core.checks import InputError, check_number, check_texts
from ..core.files import write_whole
from ..core.metric import digest

_UNKNOWN_PIECE = "[UNK]"


def _sound(text: str) -> str:
    """The text with a question mark for half a surrogate pair, which the library cannot read."""
    return text.encode("utf-8", "replace").decode("utf-8")


class WordPieces:
    """A vocabulary of word pieces; called with a text, it gives the text's pieces in lower case."""

    def __init__(
        self,
        tokenizer,  # a `tokenizers.Tokenizer`
    ):
        self.tokenizer = tokenizer
        self.tag = f"word-pieces-{tokenizer.get_vocab_size()}@{digest(tokenizer.to_str())}"  # for signatures

    @classmethod
    def train(
        cls,
        texts: Iterable[str],  # at least one with a word
        size: int = 8000,  # pieces in the vocabulary, at most; as many as there are characters, at least
    ) -> WordPieces:
        """Learn pieces from a text. Raises: InputError for no words; InputTypeError, naming the row, for no text."""
        from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

        check_number(size, "size", 1, 10**6, whole=True)
        texts = [_sound(text) for text in check_texts(list(texts), "texts")]
        if not any(text.strip() for text in texts):
            raise InputError("texts hold no word to learn pieces from")
        tokenizer = Tokenizer(models.WordPiece(unk_token=_UNKNOWN_PIECE))
        tokenizer.normalizer = normalizers.Lowercase()
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        # The trainer breaks ties between pairs by the numbers of their pieces, and numbers characters within words in
        # an order that differs from run to run. Naming them first makes the same text give the same pieces.
        letters = sorted(
            {letter for text in texts for letter in text.lower() if not letter.isspace()}
        )
        named = [_UNKNOWN_PIECE, *(f"##{letter}" for letter in letters)]
        tokenizer.train_from_iterator(
            texts,
            trainers.WordPieceTrainer(vocab_size=size, special_tokens=named, show_progress=False),
        )
        # without the trainer's special tokens, which would be taken out of a text before it is cut
        tokenizer = Tokenizer.from_str(
            json.dumps(json.loads(tokenizer.to_str()) | {"added_tokens": []})
        )
        return cls(tokenizer)

    @classmethod
    def load(
        cls,
        path: str | Path,  # a file that `save` wrote, or a `tokenizer.json`
    ) -> WordPieces:
        """Read a vocabulary. Raises: InputError, naming the file, if it holds none."""
        from tokenizers import Tokenizer

        try:
            return cls(Tokenizer.from_file(str(path)))
        except Exception as error:  # the library raises nothing narrower
            raise InputError(
                f"{path} cannot be read as a tokenizer ({error}); save it anew"
            ) from None

    def save(
        self,
        path: str | Path,  # file to write; .json is the usual ending
    ) -> None:
        """Write the vocabulary to one file, completely or not at all."""
        write_whole(Path(path), self.tokenizer.to_str())

    def __call__(
        self,
        text: str,
    ) -> list[str]:  # pieces; [UNK] for a word with a character never seen
        """The text's pieces, the longest known one from the left each time."""
        return self.tokenizer.encode(_sound(text)).tokens
