"""What ROUGE counts: tokens, marked words, and the counts of all kinds against counts made the slow way."""

from collections import Counter
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsteval.core.checks import InputError
from tsteval.words.rouge_statistics import (
    check_kinds,
    rouge_overlap,
    rouge_signature,
    rouge_tokenizer,
    summary_matches,
)

words = st.lists(st.sampled_from("abc"), max_size=6)
sentences = st.lists(st.lists(st.integers(0, 3), max_size=5), max_size=3)


def longest_common(one, other):
    return max(
        size
        for size in range(len(one) + 1)
        if set(combinations(one, size)) & set(combinations(other, size))
    )


@settings(max_examples=60, deadline=None)
@given(output=words, reference=words)
def test_counts_are_those_of_the_definitions(output, reference):
    overlap = rouge_overlap(
        [(" ".join(output), " ".join(reference))],
        check_kinds(["rouge1", "rouge2", "rougeL"]),
        rouge_tokenizer(),
    )
    bigrams = [Counter(pairwise(text)) for text in (output, reference)]
    sizes = len(output), len(reference)
    assert [int(part[0]) for part in overlap["rouge1"]] == [
        (Counter(output) & Counter(reference)).total(),
        *sizes,
    ]
    assert [int(part[0]) for part in overlap["rouge2"]] == [
        (bigrams[0] & bigrams[1]).total(),
        *(max(size - 1, 0) for size in sizes),
    ]
    assert [int(part[0]) for part in overlap["rougeL"]] == [
        longest_common(output, reference),
        *sizes,
    ]


@settings(max_examples=60, deadline=None)
@given(output=sentences, reference=sentences)
def test_marked_words_lie_between_the_best_sentence_and_all_shared_words(output, reference):
    found = summary_matches(
        *([np.array(one, dtype=np.int64) for one in text] for text in (output, reference))
    )
    flat = [Counter(word for one in text for word in one) for text in (output, reference)]
    best = max((longest_common(one, other) for one in output for other in reference), default=0)
    assert best <= found <= (flat[0] & flat[1]).total()


def test_tokens_are_lower_case_runs_of_letters_and_digits_or_those_given():
    assert rouge_tokenizer()("Don't pay $3.50") == ["don", "t", "pay", "3", "50"]
    assert rouge_tokenizer(tokens=True)("Don't pay $3.50") == ["Don't", "pay", "$3.50"]
    assert rouge_tokenizer(stemmer=True)("its running") == ["its", "run"]
    with pytest.raises(InputError, match="stemmer must be True or False"):
        rouge_tokenizer("yes")


def test_kinds_are_checked_and_everything_is_signed():
    assert check_kinds("rougeL") == ["rougeL"] and check_kinds(["rouge1", "rouge1"]) == ["rouge1"]
    for wrong in (["rouge0"], ["rougeW"], []):
        with pytest.raises(InputError, match="rouge1 to rouge9"):
            check_kinds(wrong)
    signatures = {
        rouge_signature(1, ["rouge1"]),
        rouge_signature(None, ["rouge1"]),
        rouge_signature(1, ["rouge2"]),
        rouge_signature(1, ["rouge1"], True),
        rouge_signature(1, ["rouge1"], False, True),
    }
    assert len(signatures) == 5
