"""Sufficient statistics of BLEU, precisions, weights, the record of a score and its signature"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ..core.checks import InputError, InputTypeError, check_flag, check_number, describe
from ..core.metric import sign
from .bleu_smoothing import find_smoothing
from .matching import distinct_rows, encode, match_ngrams
from .tokenization import checked_pairs, tokenizer


def closest_length(
    hypothesis_length: int,  # tokens in the output
    reference_lengths: Sequence[int],  # tokens in each reference, at least one
) -> int:  # the reference length nearest to the output's; of two equally near, the shorter
    """Choose the reference length that the brevity penalty uses.

    Source: Papineni et al. 2002, section 2.2.2; the tie rule is sacreBLEU's and NLTK's.
    """
    return min(reference_lengths, key=lambda length: (abs(length - hypothesis_length), length))


def count_statistics(
    outputs: list[str],  # N outputs, checked
    references: list[tuple[str, ...]],  # N rows of references, checked
    max_order: int,  # longest n-gram, 1..9
    tokenize: str | Callable[[str], list[str]],
    lowercase: bool,
) -> np.ndarray:  # as `bleu_statistics`
    """`bleu_statistics` of texts that were checked."""
    check_flag(lowercase, "lowercase")
    split = tokenizer(tokenize)
    rows = [(output, *texts) for output, texts in zip(outputs, references)]
    if lowercase:
        rows = [tuple(text.lower() for text in row) for row in rows]
    distinct, where = distinct_rows(rows)  # a pair that occurs again is not counted again
    encoded = encode((text for row in distinct for text in row), split)
    numbered = [[encoded[text] for text in row] for row in distinct]
    lengths = np.array(
        [
            (
                len(output),
                len(texts[0])
                if len(texts) == 1
                else closest_length(len(output), list(map(len, texts))),
            )
            for output, *texts in numbered
        ],
        dtype=np.int64,
    ).reshape(-1, 2)
    totals = np.maximum(lengths[:, :1] - np.arange(max_order), 0)
    return np.concatenate([lengths, match_ngrams(numbered, max_order), totals], axis=1)[where]


def bleu_statistics(
    hypotheses: Iterable[str | Sequence[str]],  # N outputs: strings, or lists of tokens
    references: Iterable[
        str | Sequence
    ],  # N rows: an output's references, or a single one; split if outputs are
    *,
    max_order: int = 4,  # longest n-gram, 1..9
    tokenize: str | Callable[[str], list[str]] = "13a",  # see `tsteval.text.tokenize`
    lowercase: bool = False,  # lower-case all texts first
) -> np.ndarray:  # (N, 2*max_order+2) integers: output length, reference length, matches by order, totals by order
    """Count all that BLEU needs to know of each sentence; the sum of rows gives the score of their corpus.

    Raises: InputError that names the row (counted from 0) for missing text, no reference, unequal lengths.
    Source: Papineni et al. 2002, section 2.2; the order of the columns is sacreBLEU's.
    """
    outputs, rows, tokenize = checked_pairs(hypotheses, references, tokenize)
    check_number(max_order, "max_order", 1, 9, whole=True)
    return count_statistics(outputs, rows, max_order, tokenize, lowercase)


def counted_orders(
    max_order: int,  # of the score, 1..8
    smoothing: str,  # a key of `SMOOTHINGS`
) -> int:
    """How many orders have to be counted."""
    check_number(max_order, "max_order", 1, 8, whole=True)
    return max_order + find_smoothing(smoothing, None)[0].extra_orders


def split_statistics(
    statistics: np.ndarray,  # (..., 2*orders+2) as from `bleu_statistics`
    orders: int,  # how many are needed
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Output lengths, reference lengths, matches and totals of the first `orders` orders, as floats.

    Raises: InputError for statistics with too few orders.
    """
    statistics = np.asarray(statistics, dtype=float)
    counted = (statistics.shape[-1] - 2) // 2 if statistics.ndim else 0
    if statistics.ndim == 0 or statistics.shape[-1] != 2 * counted + 2 or counted < orders:
        raise InputError(
            f"{orders} orders are needed, statistics of shape {statistics.shape} hold {max(counted, 0)}; "
            f"make them with bleu_statistics(..., max_order={orders})"
        )
    return (
        statistics[..., 0],
        statistics[..., 1],
        statistics[..., 2 : 2 + orders],
        statistics[..., 2 + counted : 2 + counted + orders],
    )


def smoothed_precisions(
    statistics: np.ndarray,  # (..., 2*orders+2) as from `bleu_statistics`, of one sentence each or summed
    *,
    max_order: int = 4,  # longest n-gram of the score, 1..8
    smoothing: str = "exp",  # a key of `SMOOTHINGS`
    smoothing_value: float | None = None,  # the method's parameter; None takes its default
) -> np.ndarray:  # (..., max_order) precisions; NaN where there is no n-gram
    """Precisions of each order after smoothing. Raises: InputError for an unknown method or too few orders.

    Source: Chen and Cherry 2014; Post 2018 (floor, add-k, exp); NLTK's SmoothingFunction (method1 to method7).
    """
    method, value = find_smoothing(smoothing, smoothing_value)
    length, _, matches, totals = split_statistics(statistics, max_order + method.extra_orders)
    return method.function(
        matches, np.maximum(totals, 1) if method.at_least_one else totals, length, value
    )


def checked_weights(
    weights: Sequence[float]
    | None,  # (max_order,) not negative, not all 0; None weighs all orders alike
    max_order: int,
) -> np.ndarray:  # (max_order,)
    """Weights of the orders. Raises: InputError or InputTypeError for what cannot weigh them."""
    if weights is None:
        return np.full(max_order, 1 / max_order)
    try:
        weights = np.asarray(weights, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise InputTypeError(
            f"weights must be {max_order} numbers, one for each order; got {describe(weights)}"
        ) from None
    if weights.shape != (max_order,):
        raise InputError(
            f"weights must be {max_order} numbers, one for each order; got shape {weights.shape}"
        )
    if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.sum() > 0):
        raise InputError(
            f"weights must be finite, none negative and not all zero, got {weights.tolist()}"
        )
    return weights


def geometric_mean(
    precisions: np.ndarray,  # (..., max_order); NaN where undefined
    weights: np.ndarray,  # (max_order,)
    effective_order: bool,  # an undefined precision hands its weight to the others; else it makes the mean 0
) -> np.ndarray:  # (...)
    """exp(sum of w_n ln p_n). Source: Papineni et al. 2002, section 2.3."""
    defined = ~np.isnan(precisions)
    kept = np.where(defined | (not effective_order), weights, 0)
    logs = np.log(precisions, out=np.full(kept.shape, -np.inf), where=precisions > 0)
    kept_sum = kept.sum(axis=-1)
    scale = weights.sum() / np.where(kept_sum > 0, kept_sum, np.inf)
    mean = np.exp((np.where(kept > 0, logs, 0) * kept).sum(axis=-1) * scale)
    return np.where(kept_sum > 0, mean, 0)


def bleu_signature(
    n_references: int | None,  # references of every output; None if outputs have different numbers
    *,
    max_order: int = 4,  # the settings are those of `corpus_bleu`
    weights: Sequence[float] | None = None,
    smoothing: str = "exp",
    smoothing_value: float | None = None,
    tokenize: str | Callable[[str], list[str]] = "13a",
    lowercase: bool = False,
    effective_order: bool = False,
) -> str:  # fields name:value, separated by |
    """Write down the settings of a score in sacreBLEU's manner.

    Source: Post 2018.
    """
    _, value = find_smoothing(smoothing, smoothing_value)
    given = None if weights is None else checked_weights(weights, max_order)
    if given is not None and np.array_equal(given, checked_weights(None, max_order)):
        given = None
    if value is not None:  # two decimals, as sacreBLEU, unless they would not tell the value
        smoothing += f"[{value:.2f}]" if float(f"{value:.2f}") == value else f"[{value!r}]"
    return sign(
        nrefs="var" if n_references is None else n_references,
        case="lc" if lowercase else "mixed",
        eff="yes" if effective_order else "no",
        tok=tokenize,
        smooth=smoothing,
        order=None if max_order == 4 else max_order,
        weights=given,
    )


def reference_count(
    references: Sequence[Sequence[str]],  # N rows of references
) -> int | None:
    """The number of references that all rows have; None where they differ."""
    counts = set(map(len, references))
    return counts.pop() if len(counts) == 1 else None


@dataclass(frozen=True, eq=False)
class BleuScore:
    """A BLEU score with all that it was made from."""

    score: float  # 0..1 (method5 and method7 can pass 1)
    precisions: (
        np.ndarray
    )  # (max_order,) smoothed precisions of 1-grams, 2-grams, ...; 0 where undefined
    brevity_penalty: float  # 0..1
    hypothesis_length: int  # tokens in the output or the outputs
    reference_length: int  # tokens in the closest references
    matches: np.ndarray  # (max_order,) clipped matches
    totals: np.ndarray  # (max_order,) n-grams in the output or the outputs
    signature: str  # what someone else needs to repeat the score

    def __str__(self) -> str:
        precisions = "/".join(f"{precision:.4f}" for precision in self.precisions)
        return (
            f"BLEU {self.score:.4f} = {precisions} (BP {self.brevity_penalty:.4f}, "
            f"output {self.hypothesis_length}, reference {self.reference_length} tokens) {self.signature}"
        )
