"""Heaps of words, vectors of tokens and their weights: prices by POT on the whole problem, blocks that change
nothing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsteval.core.checks import InputError
from tsteval.models import alignment
from tsteval.models.alignment import (
    Tokens,
    TokenWeights,
    cheapest,
    check_layer,
    idf_weights,
    moving_prices,
    paired_tokens,
    token_grams,
    word_vectors,
)
from tsteval.models.encoder import SentenceEncoder


@pytest.fixture(scope="module")
def encoder():
    return SentenceEncoder.load()


@given(
    st.lists(st.floats(0.1, 9), min_size=1, max_size=5),
    st.lists(st.floats(0.1, 9), min_size=1, max_size=5),
    st.integers(0, 99),
)
@settings(deadline=None, max_examples=40)
def test_the_cheapest_transport_is_a_linear_programs(p, q, seed):
    from scipy.optimize import linprog

    p, q = np.array(p), np.array(q) * sum(p) / sum(q)
    cost = np.random.default_rng(seed).random((len(p), len(q)))
    rows = np.vstack([np.kron(np.eye(len(p)), np.ones(len(q))), np.tile(np.eye(len(q)), len(p))])
    assert np.isclose(
        cheapest(p, q, cost), linprog(cost.ravel(), A_eq=rows, b_eq=[*p, *q]).fun, rtol=1e-6
    )


def test_blocks_change_no_price_and_no_vector(encoder, monkeypatch):
    first = ["a gift", "the old cat", "a gift", ""]
    second = ["a present", "a dog", "the bridge", "a"]
    prices = moving_prices(encoder, first, second, str.split)
    tokens = {
        number: one.vectors @ other.vectors.T
        for number, one, other in paired_tokens(encoder, first, second, 2)
    }
    for name, size in (("_BLOCK_PAIRS", 1), ("_BLOCK_TOKENS", 5)):
        monkeypatch.setattr(alignment, name, size)
    assert (
        np.allclose(moving_prices(encoder, first, second, str.split), prices, atol=1e-12)
        and prices[3] == 2
    )
    for number, one, other in paired_tokens(encoder, first, second, 2):
        assert np.allclose(one.vectors @ other.vectors.T, tokens[number], atol=1e-5)


def test_words_have_one_vector_wherever_they_stand(encoder):
    vectors = word_vectors(encoder, ["gift", "present", "\u200b"])
    assert (
        np.allclose(np.linalg.norm(vectors, axis=1), [1, 1, 0])
        and not word_vectors(encoder, []).size
    )
    np.testing.assert_allclose(vectors[:1], word_vectors(encoder, ["gift"]))


def test_pairs_come_with_the_marks_of_their_texts(encoder):
    ((_, one, other),) = paired_tokens(encoder, ["a cat"], [""], 2)
    assert (
        one.marks.tolist() == [True, False, False, True]
        and other.marks.all()
        and isinstance(one, Tokens)
    )


def test_weights_change_their_tag_with_their_texts(encoder):
    one = idf_weights(["a b", "a"], encoder)
    other = idf_weights(["a b", "b"], encoder)
    assert (
        one.tag != other.tag
        and one.tag == idf_weights(["a b", "a"], encoder).tag
        and TokenWeights().tag == "1"
    )
    assert idf_weights(["a", "a", "b"], encoder).others == np.log(4)


def test_a_layer_that_is_not_there_is_refused(encoder):
    assert check_layer(None, encoder, 4) == 4 and check_layer(0, encoder, 4) == 0
    for layer in (-1, 7, 2.5):
        with pytest.raises(InputError, match="layer"):
            check_layer(layer, encoder, 4)


def test_grams_of_tokens_weigh_what_their_tokens_weigh():
    tokens = Tokens(np.arange(4), np.eye(4), np.array([True, False, False, False]))
    masses, vectors = token_grams(tokens, TokenWeights({1: 3.0}, 1.0), 2)
    assert np.allclose(masses, [4 / 6, 2 / 6]) and np.allclose(vectors[0], [0, 0.75, 0.25, 0])
