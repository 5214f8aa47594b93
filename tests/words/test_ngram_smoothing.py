"""Estimates of unseen n-grams against the pencil."""

import numpy as np
import pytest

from tsteval.words.ngram_smoothing import (
    Level,
    counts_of_counts,
    discounts_by_count,
    katz_ratios,
    modified_discounts,
    smooth_katz,
)


def test_estimates_against_the_pencil():
    assert counts_of_counts(np.array([1, 1, 3, 0, 7]), 3).tolist() == [0, 2, 0, 1]
    assert modified_discounts(np.repeat([1, 2, 3, 4], [100, 40, 20, 12])) == pytest.approx(
        [0, 5 / 9, 7 / 6, 5 / 3]
    )
    assert katz_ratios(np.repeat([1, 2, 3, 4, 5, 6], [60, 20, 10, 6, 4, 3]), 5)[1] == pytest.approx(
        (40 / 60 - 0.3) / 0.7
    )
    assert katz_ratios(np.array([2, 2, 3]), 5).tolist() == [
        0,
        1,
        1,
        1,
        1,
        1,
    ]  # no n-gram seen once: nothing to free
    assert discounts_by_count(np.array([9, 1, 0]), (0.5, 1, 1.5)).tolist() == [1.5, 0.5, 0]
    for estimate in (modified_discounts, lambda counts: katz_ratios(counts, 5)):
        with pytest.raises(ValueError, match="cannot estimate"):
            estimate(np.array([1, 1, 2]))


def katz_level(lower):
    """86 bigrams, two a context, seen once to four times, and the share that each keeps: the discounts are 7/12 and
    1/8."""
    counts = np.random.default_rng(3).permutation(np.repeat([1.0, 2, 3, 4], [60, 20, 4, 2]))
    context = np.arange(86) // 2
    level = Level(counts, counts > 0, context, np.bincount(context, counts), np.full(86, lower), 10)
    return level, counts, np.where(counts == 1, 7 / 12, np.where(counts == 2, 1 / 8, 1))


def test_katz_keeps_what_was_seen_more_often_than_the_cutoff():
    level, counts, share = katz_level(lower=0.1)
    probabilities, weights = smooth_katz(level, 2)
    for context in range(43):
        seen = counts[2 * context : 2 * context + 2]
        total = seen.sum() + (seen.min() > 2)  # a context that frees nothing is seen once more
        assert probabilities[2 * context : 2 * context + 2] == pytest.approx(
            seen * share[2 * context : 2 * context + 2] / total
        )
        assert weights[context] == pytest.approx(
            (1 - probabilities[2 * context : 2 * context + 2].sum()) / 0.8
        )


def test_katz_discounts_nothing_where_every_word_was_seen():
    level, counts, _ = katz_level(lower=0.5)
    probabilities, weights = smooth_katz(level, 2)
    assert (
        probabilities == pytest.approx(counts / level.totals[level.context]) and not weights.any()
    )
