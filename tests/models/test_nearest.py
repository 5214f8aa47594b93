"""The search for nearest texts finds what solving every transport finds."""
import itertools

import numpy as np
import pytest

from tsteval.alignment import word_movers_distance
from tsteval.core.checks import InputError
from tsteval.models.encoder import SentenceEncoder
from tsteval.models.nearest import nearest_texts


@pytest.fixture(scope="module")
def encoder():
    return SentenceEncoder.load()


def test_the_search_finds_what_solving_everything_finds(encoder):
    texts = [f"{subject} {verb} {thing}" for subject, verb, thing in itertools.product(
        ("the mayor", "a cook", "my sister"), ("opened", "sold", "praised"), ("the bridge", "a cake", "two books"))]
    queries = ["the mayor praised a bridge", "her sister bakes cakes"]
    found = nearest_texts(queries, texts, 3, encoder=encoder)
    for number, query in enumerate(queries):
        every = word_movers_distance([query] * len(texts), texts, encoder=encoder)
        own = found[found["query"] == number]
        np.testing.assert_allclose(own.distance, np.sort(every)[:3], atol=1e-9)
        assert np.allclose(every[own.text.to_numpy()], own.distance) and own.solved.iloc[0] < len(texts)


def test_a_search_names_the_text_without_words(encoder):
    with pytest.raises(InputError, match="texts, row 1"):
        nearest_texts(["a"], ["b", " "], encoder=encoder)
    with pytest.raises(InputError, match="k must be"):
        nearest_texts(["a"], ["b"], 2, encoder=encoder)


def test_a_text_is_brought_to_one_form_and_split_as_asked(encoder):
    found = nearest_texts(["cafe\u0301 |now"], ["a bridge", "caf\u00e9 |now"], encoder=encoder,
                          split=lambda text: text.split("|"))
    assert found.text[0] == 1 and found.distance[0] == 0
