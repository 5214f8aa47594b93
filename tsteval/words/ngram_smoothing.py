"""Smoothing: the level that a rule gets, Good-Turing and Katz, modified Kneser-Ney's discounts, stupid backoff"""

from dataclasses import dataclass

import numpy as np

from ..core.checks import InputError
from .ngram_counts import WORD_BITS, WORD_MASK, KeyIndex, pack


@dataclass
class Level:
    """The counts of all n-grams of one order, and what a smoothing rule needs to know about their contexts."""

    counts: np.ndarray  # (rows,) count of each n-gram, >= 0
    seen: np.ndarray  # (rows,) bool: whether the n-gram gives up probability
    context: np.ndarray  # (rows,) which context each n-gram belongs to
    totals: np.ndarray  # (contexts,) how often each context occurred, >= the sum of its counts
    lower: (
        np.ndarray
    )  # (rows,) probability of each n-gram's last word after the next shorter context
    vocabulary: int  # words that can be predicted

    def per_context(self, values: np.ndarray) -> np.ndarray:
        """Sum values, (rows,), over the n-grams of each context, (contexts,)."""
        return np.bincount(self.context, values, minlength=len(self.totals))


def suffix_rows(
    keys: list[np.ndarray],  # sorted keys of the levels 1 .. order
) -> list[
    np.ndarray
]:  # for each level: (rows,) row, in the level below, of the n-gram without its first word
    """Where each n-gram's shorter version is listed; all zeros for level 1."""
    suffixes = [np.zeros(len(keys[0]), dtype=np.int64)]
    for n, level_keys in enumerate(keys[1:], 2):
        context = level_keys >> WORD_BITS
        word = level_keys & WORD_MASK
        suffixes.append(
            word if n == 2 else KeyIndex(keys[n - 2]).find(pack(suffixes[-1][context], word))
        )
    return suffixes


def continuation_counts(
    suffixes: np.ndarray,  # (longer,) row of each n-gram of the level above without its first word
    rows: int,  # number of n-grams at this level
) -> np.ndarray:  # (rows,) number of different words that were seen before each n-gram
    """Count the different left neighbours of each n-gram, not its occurrences.

    Source: Kneser and Ney 1995; Chen and Goodman 1999, section 2.7.
    """
    return np.bincount(suffixes, minlength=rows)


def gather_level(
    n: int,  # the order, 1 .. len(levels)
    levels: list,  # (keys, counts) of all orders
    suffixes: list[np.ndarray],  # as `suffix_rows` returns them
    lower: np.ndarray,  # (rows,) as in `Level`
    vocabulary: int,  # words that can be predicted
    *,
    padding: str = "both",  # both | arpa
    continuation: bool = False,  # count left neighbours below the highest order, as Kneser and Ney do
    context_counts: bool = False,  # a context's own count stands where its n-grams do not add up to it
) -> Level:
    """Put together what a smoothing rule needs to know about one order."""
    keys, raw = levels[n - 1]
    counts = raw.astype(float)
    adjusted = continuation and n < len(levels)
    if adjusted:
        counts = continuation_counts(suffixes[n], len(keys)).astype(float)
    if padding == "arpa":
        first = np.arange(len(keys))
        for longer, _ in levels[n - 1 : 0 : -1]:
            first = longer[first] >> WORD_BITS
        counts = np.where(first == 1, raw if n > 1 else 0, counts)  # word 1 is the start marker
    context = keys >> WORD_BITS
    totals = np.bincount(context, counts, minlength=len(levels[n - 2][0]) if n > 1 else 1)
    if context_counts and n > 1 and not adjusted:
        shorter, occurrences = levels[n - 2]
        totals = np.where(  # word 2 is the end marker, after whose last nothing comes
            shorter & WORD_MASK == 2, totals, np.maximum(totals, occurrences)
        )
    totals = np.where(
        totals > 0, totals, 1
    )  # a context that nothing followed hands all its mass on
    return Level(
        counts, (raw if padding == "both" else counts) > 0, context, totals, lower, vocabulary
    )


def counts_of_counts(
    counts: np.ndarray,  # (rows,) counts of one order
    up_to: int,  # largest count of interest, >= 1
) -> (
    np.ndarray
):  # (up_to + 1,) entry r is the number of n-grams that occurred exactly r times; entry 0 is 0
    """How many n-grams were seen once, twice, ...

    Source: Good 1953, where entry r is written n_r.
    """
    small = counts[(counts >= 1) & (counts <= up_to)].astype(np.int64)
    return np.bincount(small, minlength=up_to + 1)


def katz_ratios(
    counts: np.ndarray,  # (rows,) counts of one order
    cutoff: int,  # counts above it are trusted as they are, >= 2
) -> (
    np.ndarray
):  # (cutoff + 1,) share of its count that an n-gram seen r times keeps, in 0..1; entry 0 is 0
    """Good-Turing discounts, scaled so that they free exactly the mass that Good-Turing gives to the unseen.

    Raises: InputError where the text is too small or too odd for a usable estimate.
    Source: Katz 1987; Chen and Goodman 1999, section 2.4.
    """
    number = counts_of_counts(counts, cutoff + 1)
    if number[1] == 0:  # nothing was seen just once, so Good-Turing expects nothing unseen
        return np.append(0, np.ones(cutoff))
    times = np.arange(1, cutoff + 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = (cutoff + 1) * number[cutoff + 1] / number[1]
        ratios = ((times + 1) * number[2:] / (times * number[1:-1]) - scale) / (1 - scale)
    ratios[number[1:-1] == 0] = 1  # no n-gram has this count, so nothing is discounted by it
    if not (np.isfinite(ratios).all() and (ratios > 0).all() and (ratios <= 1).all()):
        raise InputError(
            f"Katz smoothing finds {number[1:].tolist()} n-grams seen 1, 2, ... {cutoff + 1} times and "
            "cannot estimate discounts; use more text, a smaller katz_cutoff, or another smoothing"
        )
    return np.concatenate([[0], ratios])


def smooth_katz(
    level: Level,  # counts of one order
    cutoff: int,  # counts above it are not discounted, >= 2
) -> tuple[
    np.ndarray, np.ndarray
]:  # (rows,) probabilities, (contexts,) weight of the shorter context
    """Back off to the shorter context, scaled, for unseen n-grams only.

    Raises: InputError where discounts cannot be estimated.
    Source: Katz 1987; for contexts of counts above the cutoff only, Stolcke 2002, ngram-discount(7).
    """
    ratios = np.append(katz_ratios(level.counts, cutoff), 1)
    discount_ratios = ratios[np.minimum(level.counts, cutoff + 1).astype(np.int64)]
    unseen_mass = 1 - level.per_context(level.seen * level.lower)
    saturated = (
        unseen_mass < 1e-12
    )  # every word has followed this context: no one is left to receive the mass
    discount_ratios = np.where(saturated[level.context] & (level.counts > 0), 1, discount_ratios)
    discounted_counts = discount_ratios * level.counts
    nothing_freed = (level.totals - level.per_context(discounted_counts) < 1e-9) & ~saturated
    totals = (
        level.totals + nothing_freed
    )  # SRILM's remedy: one more occurrence, of something unseen
    probabilities = discounted_counts / totals[level.context]
    freed = 1 - level.per_context(probabilities)
    weights = np.where(saturated, 0, freed / np.where(saturated, 1, unseen_mass))
    return np.where(level.seen, probabilities, weights[level.context] * level.lower), weights


def modified_discounts(
    counts: np.ndarray,  # (rows,) counts of one order
) -> np.ndarray:  # (4,) discount for an n-gram seen 0, 1, 2 and at least 3 times
    """Estimate the three discounts of modified Kneser-Ney from the counts of counts.

    Raises: InputError where no n-gram has count 1, 2, 3 or 4, or an estimate falls outside 0 .. count.
    Source: Chen and Goodman 1999, section 3.
    """
    once, twice, thrice, four_times = number = counts_of_counts(counts, 4)[1:]
    if number.min() > 0:
        share = once / (once + 2 * twice)
        discounts = np.array(
            [
                0,
                1 - 2 * share * twice / once,
                2 - 3 * share * thrice / twice,
                3 - 4 * share * four_times / thrice,
            ]
        )
        if (discounts >= 0).all() and (discounts <= np.arange(4)).all():
            return discounts
    raise InputError(
        f"modified Kneser-Ney finds {number.tolist()} n-grams seen 1, 2, 3 and 4 times and cannot "
        "estimate its discounts; use more text, pass discount=(d1, d2, d3), or smoothing='kneser_ney'"
    )


def discounts_by_count(
    counts: np.ndarray,  # (rows,) counts of one order
    discount: float
    | tuple,  # three discounts to use; a single number is not used, and they are estimated
) -> np.ndarray:  # (rows,) what each n-gram gives up
    """The discount of each n-gram in modified Kneser-Ney, by how often it was seen. Raises: as `modified_discounts`."""
    three = (
        np.array([0, *discount])
        if isinstance(discount, (tuple, list))
        else modified_discounts(counts)
    )
    return three[np.minimum(counts, 3).astype(np.int64)]


def smooth_stupid(
    level: Level,  # counts of one order
    factor: float,  # score of the shorter context is multiplied by it, in 0..1
) -> tuple[np.ndarray, np.ndarray]:  # (rows,) scores, which do not sum to 1; (contexts,) the factor
    """Relative frequency where there is one, else a fixed share of the shorter context's score.

    Source: Brants et al. 2007, section 4.
    """
    frequencies = level.counts / level.totals[level.context]
    return np.where(level.seen, frequencies, factor * level.lower), np.full(
        len(level.totals), factor
    )
