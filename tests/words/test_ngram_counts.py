"""Counts of n-grams, the index of their keys, and the words found in a text."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsteval.core.checks import InputError
from tsteval.ngram import NgramLM
from tsteval.words.ngram_counts import (
    FEW_WORDS,
    HEAD,
    LONGEST,
    PIECE,
    KeyIndex,
    WordFinder,
    WordIds,
    add_markers,
    count_sentences,
    look_up,
    merge_runs,
    merge_stack,
)

CORPORA = st.lists(st.lists(st.sampled_from("abcdef"), max_size=7), min_size=1, max_size=12).filter(
    any
)


@given(corpus=CORPORA, order=st.integers(1, 4), batch=st.integers(1, 10))
@settings(max_examples=50, deadline=None)
def test_counts_do_not_depend_on_the_batches(corpus, order, batch):
    words, whole = count_sentences(corpus, order, (1, 1))
    same_words, pieces = count_sentences(iter(corpus), order, (1, 1), batch_words=batch)
    assert words == same_words
    for (keys, counts), (other_keys, other_counts) in zip(whole, pieces):
        assert (keys == other_keys).all() and (counts == other_counts).all()


def test_a_long_stream_is_held_as_few_runs():
    random = np.random.default_rng(0)
    runs = []
    largest = 0
    for _ in range(300):
        keys, counts = np.unique(random.integers(0, 500, 50), return_counts=True)
        runs.append([(keys, counts)])
        merge_stack(runs)
        largest = max(largest, len(runs))
    ((keys, counts),) = merge_runs(runs)
    assert largest <= 6 and counts.sum() == 300 * 50 and (np.diff(keys) > 0).all()


@given(
    st.lists(st.integers(0, 2**62), unique=True, max_size=200),
    st.lists(st.integers(-(2**62), 2**62), max_size=100),
)
def test_key_index_finds_all_and_only_its_keys(keys, others):
    keys = np.array(sorted(keys), dtype=np.int64)
    index = KeyIndex(keys)
    assert (index.find(keys) == np.arange(len(keys))).all()
    rows = {key: row for row, key in enumerate(keys.tolist())}
    assert index.find(np.array(others, dtype=np.int64)).tolist() == [
        rows.get(key, -1) for key in others
    ]


@given(
    st.lists(
        st.text(alphabet="ab\0é\ud800\u3000 \n", max_size=15) | st.text(max_size=200),
        unique=True,
        max_size=30,
    ),
    st.lists(st.text(alphabet="ab\0é\ud800\u3000 \n", max_size=15), max_size=30),
)
def test_finder_gives_the_ids_of_the_dictionary(listed, others):
    finder = WordFinder(
        WordIds({word: row for row, word in enumerate(dict.fromkeys(["<unk>", *listed]))})
    )
    for words in (listed + others, [word for word in listed + others if "\n" not in word]):
        many = words * (1 + FEW_WORDS // max(len(words), 1))
        assert finder.find_tokens(many).tolist() == look_up(finder.ids, many).tolist()
    found, lengths = finder.split(listed + others)
    split = [text.split() for text in listed + others]
    assert found.tolist() == [finder.ids[word] for words in split for word in words]
    assert lengths.tolist() == [len(words) for words in split]


def test_a_marker_among_the_words_is_named_by_its_row():
    with pytest.raises(InputError, match="row 7"):
        add_markers(np.array([5, 6, 5, 1]), np.array([1, 1, 2]), (1, 1), (1, 2), first_row=5)
    with pytest.raises(InputError, match="row 6"):
        add_markers(np.array([5, 2, 5, 6]), np.array([1, 1, 2]), (1, 1), (1, 2), first_row=5)


def test_words_of_every_length_are_found():
    lengths = sorted(
        {
            length + step
            for length in (1, HEAD, HEAD + PIECE, LONGEST - PIECE, LONGEST, 2 * LONGEST)
            for step in (0, 1, 2)
        }
    )
    listed = ["w" * length for length in lengths]
    model = NgramLM(1, "mle", padding="arpa").fit([listed, [listed[0]]])
    assert (
        np.concatenate(model.text_logprobs(listed)).tolist()
        == np.concatenate(model.logprobs([[word] for word in listed])).tolist()
    )
    finder = WordFinder(WordIds({word: row for row, word in enumerate(["<unk>", *listed])}))
    text = " ".join(listed).encode()
    starts = np.cumsum([0, *(length + 1 for length in lengths)])[:-1]
    assert finder.find(text, starts, np.array(lengths)).tolist() == list(range(1, len(listed) + 1))
