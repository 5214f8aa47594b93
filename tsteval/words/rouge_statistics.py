"""The tokeniser of ROUGE, its matches for every kind, and its signature"""

import re
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from ..core.checks import InputError, check_flag, check_texts
from ..core.metric import sign
from .matching import encode, match_ngrams, remember


def rouge_tokenizer(
    stemmer: bool = False,  # cut words of more than three letters down to their Porter stems
    tokens: bool = False,  # the texts are tokens with a space between them
) -> Callable[
    [str], list[str]
]:  # a function from a text to its tokens: lower-case runs of a-z and 0-9, or those given
    """The tokeniser of ROUGE: everything but the letters a to z and the digits separates words.

    Raises: InputTypeError for a stemmer that is neither True nor False.
    Source: Lin 2004, ROUGE-1.5.5; rouge-score 0.1.2.
    """
    check_flag(stemmer, "stemmer")
    words = re.compile("[a-z0-9]+").findall
    split = str.split if tokens else lambda text: words(text.lower())
    return (lambda text: list(map(_stem, split(text)))) if stemmer else split


@remember
def _porter_stemmer():
    from nltk.stem.porter import PorterStemmer

    return PorterStemmer()


@remember  # texts repeat their words
def _stem(word: str) -> str:
    return _porter_stemmer().stem(word) if len(word) > 3 else word


_LARGE = 2**24  # cells of a table


def _marked(reference: np.ndarray, output: np.ndarray) -> list[int]:
    """Positions in the reference of one longest common subsequence, ties as in rouge-score."""
    if len(reference) * len(output) > _LARGE:
        from rapidfuzz.distance import LCSseq

        blocks = LCSseq.opcodes(reference.tolist(), output.tolist()).as_matching_blocks()
        return [place for block in blocks for place in range(block.a, block.a + block.size)]
    table = np.zeros((len(reference) + 1, len(output) + 1), dtype=np.int32)
    for i, token in enumerate(reference, start=1):
        table[i, 1:] = np.maximum.accumulate(
            np.maximum(table[i - 1, 1:], table[i - 1, :-1] + (output == token))
        )
    i = len(reference)
    j = len(output)
    found = []
    while i and j:
        if reference[i - 1] == output[j - 1]:
            i = i - 1
            j = j - 1
            found.append(i)
        elif table[i, j - 1] > table[i - 1, j]:
            j -= 1
        else:
            i -= 1
    return found


def summary_matches(
    output: list[np.ndarray],  # token numbers of each sentence of the output
    reference: list[np.ndarray],  # likewise of the reference
) -> int:
    """Words of the reference's sentences that the output's sentences mark, each at most as often as both texts have it.

    Source: Lin 2004, section 3.2.
    """
    left = Counter(np.concatenate([*output, []]).tolist()) & Counter(
        np.concatenate([*reference, []]).tolist()
    )
    marked = Counter(
        float(sentence[place])
        for sentence in reference
        for place in set().union(*(_marked(sentence, other) for other in output))
    )
    return (marked & left).total()


def rouge_overlap(
    pairs: list[tuple[str, str]],  # N pairs of an output and a reference
    kinds: Sequence[str],  # as from `check_kinds`
    split: Callable[[str], list[str]],  # as from `rouge_tokenizer`
) -> dict[
    str, tuple[np.ndarray, ...]
]:  # for each kind: (N,) matches, units of the output, units of the reference
    """Matches of every kind."""
    from rapidfuzz.distance import LCSseq

    in_lines = enumerate(pairs) if "rougeLsum" in kinds else ()
    summaries = {
        row: tuple(map(_lines, pair))
        for row, pair in in_lines
        if any("\n" in text for text in pair)
    }
    lines = (line for sides in summaries.values() for side in sides for line in side)
    encoded = encode([*(text for pair in pairs for text in pair), *lines], split)
    rows = [[encoded[text] for text in pair] for pair in pairs]
    lengths = np.array([[len(text) for text in row] for row in rows]).reshape(-1, 2).T
    orders = [int(kind[5:]) for kind in kinds if kind[5:].isdigit()]
    matches = match_ngrams(rows, max(orders)) if orders else None
    overlap = {
        f"rouge{order}": (matches[:, order - 1], *np.maximum(lengths - order + 1, 0))
        for order in orders
    }
    common = (
        [LCSseq.similarity(*(text.tolist() for text in row)) for row in rows]
        if len(orders) < len(kinds)
        else []
    )
    overlap["rougeL"] = np.array(common, dtype=int), *lengths
    if "rougeLsum" in kinds:
        for row, sides in summaries.items():
            common[row] = summary_matches(*([encoded[line] for line in side] for side in sides))
        overlap["rougeLsum"] = np.array(common, dtype=int), *lengths
    return overlap


def _lines(text: str) -> list[str]:
    return [line for line in text.split("\n") if line]


def check_kinds(
    kinds: Sequence[str],  # rouge1 to rouge9, rougeL, rougeLsum
) -> list[str]:  # each once
    """The kinds asked for. Raises: InputError for an unknown one, or none."""
    kinds = [kinds] if isinstance(kinds, str) else list(dict.fromkeys(check_texts(kinds, "kinds")))
    unknown = [kind for kind in kinds if not re.fullmatch("rouge([1-9]|L|Lsum)", kind)]
    if unknown or not kinds:
        raise InputError(
            f"kinds must name at least one of rouge1 to rouge9, rougeL and rougeLsum, got "
            f"{unknown or kinds}"
        )
    return kinds


def rouge_signature(
    n_references: int | None,  # references of every output; None if outputs have different numbers
    kinds: Sequence[str],  # as in `rouge_scores`
    stemmer: bool = False,  # likewise
    tokens: bool = False,  # whether the texts were lists of tokens
) -> str:  # fields name:value, separated by |
    """Write down the settings of a ROUGE score. Source: Post 2018, for the idea and the form."""
    return sign(
        "rouge",
        nrefs="var" if n_references is None else n_references,
        kinds=check_kinds(kinds),
        tok="none" if tokens else "a-z0-9",
        case="mixed" if tokens else "lc",
        stem="porter" if stemmer else "no",
        sentences="lines",
        best="f1",
    )
