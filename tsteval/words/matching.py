"""Fast counting of n-grams and their clipped matches"""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import lru_cache
from itertools import chain

import numpy as np

from tsteval.core.checks import (
    InputTypeError,
    check_number,
    check_references,
    check_rows,
    check_texts,
    describe,
)


def remember(
    function: Callable,  # pure: equal arguments, equal results
    size: int | None = 2**16,  # how many results to keep; None keeps all
) -> Callable:  # the same function, with a memory; `.cache_clear()` empties it
    """Let a pure function of strings remember its latest results."""
    return lru_cache(maxsize=size)(function)


def distinct_rows(
    rows: Sequence[Hashable],  # N rows, repeats allowed
) -> tuple[
    list, np.ndarray
]:  # the D distinct rows in order of appearance; (N,) where each row is among them
    """Find the rows that have to be counted, and how to spread their counts over all rows."""
    number: dict = defaultdict()
    number.default_factory = number.__len__  # an unseen row gets the next free number
    where = np.fromiter((number[row] for row in rows), dtype=np.intp, count=len(rows))
    return list(number), where


def reference_count(
    references: Iterable[Sequence[str]],  # N rows of references
) -> int | None:  # the number of references that all rows have; None where they differ
    """What a signature says of the number of references."""
    counts = set(map(len, references))
    return counts.pop() if len(counts) == 1 else None


def checked_tokenizer(
    function: Callable[[str], list[str]],  # from a text to its tokens
) -> Callable[[str], list[str]]:  # the same, which refuses to return anything else
    """Make sure that a foreign tokeniser returns a list of strings. Raises: InputTypeError when it does not."""

    def split(text: str) -> list[str]:
        tokens = function(text)
        if not (isinstance(tokens, list) and all(isinstance(token, str) for token in tokens)):
            raise InputTypeError(
                f"a tokeniser must return a list of strings, got {describe(tokens)}"
            )
        return tokens

    return split


def encode(
    texts: Iterable[str],  # texts, repeats allowed
    split: Callable[[str], list[str]],  # a tokeniser, such as `tsteval.text.tokenizer("13a")`
) -> dict[str, np.ndarray]:  # {text: (T,) token numbers >= 0}
    """Tokenise each distinct text once and replace every distinct token by a number.

    Raises: InputTypeError for a text that is no string; what the tokeniser raises.
    """
    numbers: dict[str, int] = defaultdict()
    numbers.default_factory = numbers.__len__
    distinct = list(dict.fromkeys(check_texts(texts)))
    flat = []
    ends = [0]
    for text in distinct:
        flat += map(numbers.__getitem__, split(text.rstrip()))
        ends.append(len(flat))
    tokens = np.array(flat, dtype=np.int64)
    return {text: tokens[start:end] for text, start, end in zip(distinct, ends, ends[1:])}


def _narrow(numbers: np.ndarray) -> np.ndarray:
    """The same numbers, all >= 0, in the smallest unsigned type that holds them; NumPy sorts up to 16 bits by radix."""
    return numbers.astype(np.min_scalar_type(int(numbers.max(initial=0))))


def _run_starts(differs: np.ndarray) -> np.ndarray:
    """Where runs begin; `differs[i]` says whether place i + 1 differs from place i."""
    return np.flatnonzero(np.concatenate([[True], differs]))


def _matched_pairs(starts: np.ndarray, text_of: np.ndarray) -> np.ndarray:
    """Clipped matches of each n-gram for an output and one reference, of runs that begin at `starts`; text 0 is the
    output."""
    in_both = np.diff(starts, append=len(text_of))
    in_reference = np.add.reduceat(text_of, starts, dtype=np.int64)
    return np.minimum(in_reference, in_both - in_reference)


def _matched_runs(starts: np.ndarray, text_of: np.ndarray) -> np.ndarray:
    """The same for any number of references, of which the one that has most counts; within a run the texts ascend."""
    differs = text_of[1:] != text_of[:-1]
    differs[starts[1:] - 1] = True  # another n-gram, though perhaps in the same text
    parts = _run_starts(differs)  # of one n-gram in one text
    counts = np.diff(parts, append=len(text_of))
    is_output = text_of[parts] == 0
    first = np.searchsorted(parts, starts)
    in_output = np.where(is_output[first], counts[first], 0)
    return np.minimum(in_output, np.maximum.reduceat(np.where(is_output, 0, counts), first))


def _numbered(
    places: np.ndarray, starts: np.ndarray, shared: np.ndarray, n_places: int
) -> tuple[np.ndarray, np.ndarray]:
    """Each place's n-gram as a number, and where a longer one can be matched: where this one is shared and the next one
    too."""
    number = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(places)))
    numbers = np.zeros(n_places, dtype=np.min_scalar_type(len(starts)))
    shared_places = np.zeros(n_places + 1, dtype=bool)
    numbers[places], shared_places[places] = number, shared[number]  # other places are never read
    return numbers, shared_places[:-1] & shared_places[1:]


_BLOCK = 256  # rows counted at a time


def _match_block(rows: Sequence[Sequence[np.ndarray]], max_order: int) -> np.ndarray:
    """`match_ngrams` for one block of rows."""
    matches = np.zeros((len(rows), max_order), dtype=np.int64)
    texts = [text for row in rows for text in row]
    lengths = np.array(list(map(len, texts)), dtype=np.int64)
    n_texts = np.array(list(map(len, rows)), dtype=np.int64)
    tokens = _narrow(np.concatenate([*texts, np.empty(0, dtype=np.int64)]))
    row_of = _narrow(np.repeat(np.repeat(np.arange(len(rows)), n_texts), lengths))
    text_of = _narrow(
        np.repeat(np.arange(len(texts)) - np.repeat(np.cumsum(n_texts) - n_texts, n_texts), lengths)
    )
    last_places = np.cumsum(lengths)[lengths > 0] - 1
    matched_by = _matched_pairs if n_texts.max() == 2 else _matched_runs
    by_last_token = np.argsort(tokens, kind="stable")
    numbers = row_of
    possible = np.ones(len(tokens), dtype=bool)  # of the n-grams of no tokens
    for order in range(1, max_order + 1):
        places = by_last_token - (order - 1)
        places = places[possible[places] & (places >= 0)]  # below 0, NumPy would read from the back
        if len(places) == 0:
            break
        places = places[np.argsort(numbers[places], kind="stable")]
        beginnings = numbers[places]
        last = tokens[places + order - 1]
        starts = _run_starts((beginnings[1:] != beginnings[:-1]) | (last[1:] != last[:-1]))
        matched = matched_by(starts, text_of[places])
        matches[:, order - 1] = np.bincount(
            row_of[places[starts]], weights=matched, minlength=len(rows)
        )
        numbers, possible = _numbered(places, starts, matched > 0, len(tokens))
        possible[last_places] = False  # what is longer would reach into the next text
    return matches


_FEW = 4  # up to so many rows are counted with dictionaries


def _match_row(texts: Sequence[np.ndarray], max_order: int) -> list[int]:
    """`match_ngrams` for one row."""
    texts = [text.tolist() for text in texts]
    matches = []
    for order in range(1, max_order + 1):
        ngrams, *others = [
            list(zip(*[tokens[start:] for start in range(order)])) for tokens in texts
        ]
        distinct = set(ngrams)
        shared = distinct.intersection(chain(*others))
        matches.append(len(shared))
        if shared and len(distinct) < len(ngrams):  # else none occurs twice, as is usual for n >= 2
            counts = Counter(ngrams)
            in_others = list(map(Counter, others))
            matches[-1] += sum(
                [
                    min(counts[ngram], max([other[ngram] for other in in_others])) - 1
                    for ngram in shared
                    if counts[ngram] > 1
                ]
            )
    return matches


def match_ngrams(
    rows: Iterable[
        Sequence[np.ndarray]
    ],  # N rows: token numbers >= 0 of an output, then of its references
    max_order: int,  # longest n-gram to count, >= 1
) -> np.ndarray:  # (N, max_order) integers: clipped matches of 1-grams, 2-grams, ...
    """Count each row's clipped matches: an n-gram of the output counts at most as often as the reference that has it
    most.

    Raises: InputError for a max_order below 1; InputTypeError for rows or an order of another kind.
    Source: Papineni et al. 2002, section 2.1; Agrawal and Srikant 1994 for leaving out what cannot match.
    """
    check_number(max_order, "max_order", 1, whole=True)
    rows = check_rows(rows, "rows", "encoded texts")
    if len(rows) <= _FEW and all(map(len, rows)):
        return np.array([_match_row(row, max_order) for row in rows], dtype=np.int64).reshape(
            -1, max_order
        )
    blocks = [
        _match_block(rows[start : start + _BLOCK], max_order)
        for start in range(0, len(rows), _BLOCK)
    ]
    return np.concatenate([np.zeros((0, max_order), dtype=np.int64), *blocks])


def distinct_pairs(
    outputs: Iterable[str],  # N outputs
    references: Iterable[
        str | Sequence[str]
    ],  # N rows: an output's references, or one string for a single one
    # outputs and references of the D pairs; see below; all references
) -> tuple[list[str], list[str], Callable, list[str]]:
    """The distinct pairs of an output and one of its references, and the function from their D scores to the best of
    each row.

    Raises: as `check_references`.
    """
    outputs, references = check_references(outputs, references, "outputs")
    pairs, where = distinct_rows(
        [(output, text) for output, texts in zip(outputs, references) for text in texts]
    )
    starts = np.cumsum([0, *(len(texts) for texts in references)])[:-1]

    def best(scores: np.ndarray, choose: np.ufunc = np.maximum) -> np.ndarray:
        return choose.reduceat(scores[where], starts) if len(starts) else scores[:0]

    return (
        [output for output, _ in pairs],
        [text for _, text in pairs],
        best,
        [text for texts in references for text in texts],
    )


def letters_as_numbers(
    texts: Sequence[str],
    whitespace: bool,  # whether white space is a character; else it is left out
) -> list[np.ndarray]:
    """The characters of texts as small numbers."""
    counted_texts = texts if whitespace else ["".join(text.split()) for text in texts]
    codes = [
        np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.int64)
        for text in counted_texts
    ]
    numbers = np.unique(np.concatenate([*codes, np.zeros(0, dtype=np.int64)]), return_inverse=True)[
        1
    ]
    return np.split(numbers, np.cumsum([len(code) for code in codes])[:-1])


def ngram_triples(
    pairs: list[list[np.ndarray]],  # P pairs of texts as numbers
    orders: int,  # longest n-gram, >= 0
) -> np.ndarray:  # (P, 3 * orders)
    """Counts of the n-grams of each order: in the first text, in the second, in both; 0, 0, 0 where the second has
    none."""
    matches = match_ngrams(pairs, orders) if orders else np.zeros((len(pairs), 0), dtype=int)
    lengths = np.array([[len(text) for text in pair] for pair in pairs], dtype=int).reshape(-1, 2)
    first_counts, second_counts = (
        np.maximum(lengths[:, side, None] - np.arange(orders), 0) for side in (0, 1)
    )
    return np.stack(
        [np.where(second_counts > 0, first_counts, 0), second_counts, matches], axis=-1
    ).reshape(len(pairs), 3 * orders)
