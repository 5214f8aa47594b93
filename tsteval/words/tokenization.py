"""Five tokenisers with fixed rules, equal to those of sacreBLEU and NLTK; four more by sacreBLEU itself"""

import re
from collections.abc import Callable, Iterable, Sequence

from ..core.checks import (
    InputError,
    InputTypeError,
    check_choice,
    check_references,
    check_rows,
    describe,
)
from .handed_over import HANDED_OVER, handed_over_tokenizer
from .matching import checked_tokenizer, remember

_RULES_13A = [
    (re.compile(r"([!-&(-+:-@\[-`{-~/])"), r" \1 "),  # ASCII punctuation, but for ' , - .
    (re.compile(r"([^0-9])([.,])"), r"\1 \2 "),  # full stop and comma, unless a digit comes before
    (re.compile(r"([.,])([^0-9])"), r" \1 \2"),  # ... or unless a digit comes after
    (re.compile(r"([0-9])(-)"), r"\1 \2 "),  # a dash that follows a digit
]
_ENTITIES = {
    "&quot;": '"',
    "&amp;": "&",
    "&lt;": "<",
    "&gt;": ">",
}  # in mteval's order: "&amp;lt;" becomes "<"


@remember
def _split_word_13a(
    word: str,  # no white space in it
) -> tuple[str, ...]:  # its tokens
    """Apply the rules of mteval-v13a to one word."""
    word = f" {word} "
    for pattern, replacement in _RULES_13A:
        word = pattern.sub(replacement, word)
    return tuple(word.split())


def _tokenize_13a(text: str) -> list[str]:
    """WMT's tokeniser of 2009 and sacreBLEU's default."""
    text = text.replace("<skipped>", "").replace("-\n", "")
    if "&" in text:
        for entity, character in _ENTITIES.items():
            text = text.replace(entity, character)
    tokens = []
    for word in text.split():
        if word.isalnum():
            tokens.append(word)
        else:
            tokens.extend(_split_word_13a(word))
    return tokens


@remember
def _intl_rules() -> list[tuple]:
    import regex  # the standard library's re knows no Unicode classes

    return [
        (regex.compile(r"(\P{N})(\p{P})"), r"\1 \2 "),  # punctuation, unless a digit comes before
        (regex.compile(r"(\p{P})(\P{N})"), r" \1 \2"),  # ... or unless a digit comes after
        (regex.compile(r"(\p{S})"), r" \1 "),  # every symbol: currencies, arrows, emoji
    ]


def _tokenize_intl(text: str) -> list[str]:
    """The tokeniser of mteval-v14 --international-tokenization."""
    for pattern, replacement in _intl_rules():
        text = pattern.sub(replacement, text)
    return text.split()


def _tokenize_treebank(text: str) -> list[str]:
    """The Penn Treebank's conventions, as NLTK implements them."""
    from nltk.tokenize.treebank import TreebankWordTokenizer

    return TreebankWordTokenizer().tokenize(text)


TOKENIZERS = {
    "13a": _tokenize_13a,
    "intl": _tokenize_intl,
    "char": lambda text: list("".join(text.split())),
    "none": str.split,
    "treebank": _tokenize_treebank,
}


def tokenizer(
    # a key of `TOKENIZERS` or of `HANDED_OVER`, or a function
    method: str | Callable[[str], list[str]] = "13a",
) -> Callable[[str], list[str]]:  # the function
    """Look up a tokeniser by name; a function is wrapped in a check of what it returns.

    Raises: InputError (a ValueError) for an unknown name; InputTypeError for what is neither a name nor a function;
    AssetError where sacreBLEU has to do it and lacks something.
    """
    if callable(method):
        return checked_tokenizer(method)
    if not isinstance(method, str):
        raise InputTypeError(
            f"must be a name or a function, got {describe(method)}", argument="tokenize"
        )
    check_choice(method, "tokenize", (*TOKENIZERS, *HANDED_OVER))
    return TOKENIZERS[method] if method in TOKENIZERS else handed_over_tokenizer(method)


def tokenize(
    text: str,  # any Unicode text; white space at its end is dropped first
    # 13a | intl | char | none | treebank; by sacreBLEU zh | ja-mecab | ko-mecab | flores200; or a function
    method: str | Callable[[str], list[str]] = "13a",
) -> list[str]:  # the tokens, in order, without white space
    """Split a text into tokens.

    Raises: InputError for an unknown method; InputTypeError for a text that is no string or a function that returns no
    list; AssetError where sacreBLEU has to do it and lacks something, with what to install.
    Source: mteval-v13a.pl and mteval-v14.pl of NIST, as sacreBLEU has them (Post 2018).
    """
    if not isinstance(text, str):
        raise InputTypeError(f"tokenize takes a string, got {describe(text)}")
    return tokenizer(method)(text.rstrip())


def checked_pairs(
    hypotheses: Iterable[str | Sequence[str]],  # N outputs: strings, or lists of tokens
    # N rows: a string or a list of strings; where the outputs are tokens, a list of tokens or a list of such lists
    references: Iterable[str | Sequence],
    tokenize: str
    | Callable[
        [str], list[str]
    ] = "13a",  # how strings are to be split; tokens are left as they are
) -> tuple[
    list[str], list[tuple[str, ...]], str | Callable
]:  # outputs, rows of references, how to split them
    """Outputs and references as strings in one shape. Tokens get a space between them, and `none` splits them again.

    Raises: InputTypeError that names the row for what is no token; InputError for a tokeniser beside tokens; otherwise
    as `check_references`.
    """
    outputs = check_rows(hypotheses, "hypotheses")
    if not outputs or not isinstance(outputs[0], (list, tuple)):
        return *check_references(outputs, references), tokenize
    if tokenize not in ("13a", "none"):
        raise InputError(
            "the texts are split into tokens already; leave it out", argument="tokenize"
        )
    rows = [
        [reference_row]
        if isinstance(reference_row, str)
        or (reference_row and all(isinstance(one, str) for one in reference_row))
        else reference_row
        for reference_row in check_rows(references, "references", "references")
    ]
    joined = [_joined(tokens, "hypotheses", row) for row, tokens in enumerate(outputs)]
    rows = [
        (tuple if isinstance(reference_row, tuple) else list)(
            _joined(tokens, "references", row) for tokens in reference_row
        )
        for row, reference_row in enumerate(rows)
    ]
    return *check_references(joined, rows), "none"


def _joined(tokens: Sequence[str], argument: str, row: int) -> str:
    if not isinstance(tokens, (list, tuple)):
        raise InputTypeError(
            f"expected a list of tokens, since the first output is one; got {describe(tokens)}",
            argument=argument,
            row=row,
        )
    for token in tokens:
        if not isinstance(token, str) or token.split() != [token]:
            raise InputTypeError(
                f"a token is a string without white space, got {describe(token)}; a whole text is a "
                "string of its own, without a list around it",
                argument=argument,
                row=row,
            )
    return " ".join(tokens)
