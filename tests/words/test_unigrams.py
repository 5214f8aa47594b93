"""Unigram models over any model's tokens."""

import numpy as np
import pytest

from tests.models import tiny
from tsteval.core.checks import InputError, InputTypeError
from tsteval.ngram import NgramLM
from tsteval.words.ngram_counts import UNKNOWN
from tsteval.words.unigrams import Unigrams, own_tokens, teaching_texts

LM = NgramLM(2, padding="arpa").fit([["the", "cat", "sat"], ["a", "dog"]])


def test_pencil_and_a_token_never_seen():
    model = Unigrams.from_counts({"the": 6, "cat": 3})
    assert np.exp(model.score(["the", "cat", "xylophone"])) == pytest.approx([0.6, 0.3, 0.1])
    assert Unigrams.from_sentences([["the"] * 6, ["cat"] * 3]).score(["xylophone"]) == model.score(
        ["xylophone"]
    )


@pytest.mark.parametrize("counts, unseen", [({}, 1), ({"a": 0}, 1), ({"a": 1}, 0)])
def test_counts_that_make_no_model_are_refused(counts, unseen):
    with pytest.raises(InputError):
        Unigrams.from_counts(counts, unseen)


def test_probabilities_of_a_whole_vocabulary_sum_to_one():
    model = Unigrams.from_counts({"a": 2, "b": 5}, unseen=0.5, vocabulary=10)
    assert np.exp(model.score(["a", "b"])).sum() + 8 * np.exp(model.unseen) == pytest.approx(1)


def test_the_tag_follows_the_probabilities_and_not_the_order():
    one = Unigrams.from_counts({"a": 2, "b": 5})
    two = Unigrams.from_counts({"b": 5, "a": 2})
    assert one.tag == two.tag != Unigrams.from_counts({"a": 2, "b": 6}).tag


def test_words_that_an_ngram_model_does_not_know_become_unknown():
    assert own_tokens(LM, ["the zebra", ["cat", "sat"]], str.split) == [
        ["the", UNKNOWN],
        ["cat", "sat"],
    ]
    with pytest.raises(InputTypeError, match="row 1"):
        own_tokens(LM, ["the", 3], str.split)


def test_a_neural_model_splits_its_texts_itself(language_model):
    assert own_tokens(language_model, ["A cat."]) == language_model.text_tokens(["A cat."])
    with pytest.raises(InputTypeError, match="leave it out"):
        own_tokens(language_model, ["A cat."], str.split)


def test_web_counts_lead_to_the_words_of_the_model():
    few = Unigrams.from_web_counts(LM, 1000, str.split)
    assert few.score(["the"]) > few.score(["dog"]) > few.unseen - 1e-9
    for words in (0, 400_000):
        with pytest.raises(InputError, match="words"):
            Unigrams.from_web_counts(LM, words, str.split)


def test_teaching_texts_are_both_sides_of_the_training_pairs():
    texts = teaching_texts()
    assert len(texts) > 1000 and len(texts) % 2 == 0 and all(texts)


class Reader:
    """A neural model as far as its tokens are concerned, which counts how often it is asked."""

    def __init__(self):
        self.tokenizer = tiny.tokenizer(framed=False)
        self.asked = 0

    def text_tokens(self, texts):
        self.asked += 1
        return [self.tokenizer.tokenize(text) for text in texts]


def test_web_counts_are_taken_once_for_a_tokenizer_and_anew_for_one_that_changed():
    reader = Reader()
    twin = Reader()
    first = Unigrams.from_web_counts(reader, 300)
    asked = reader.asked
    assert (
        asked
        and Unigrams.from_web_counts(reader, 300).logprobs == first.logprobs
        and reader.asked == asked
    )
    assert Unigrams.from_web_counts(twin, 300).tag == first.tag and twin.asked == 0
    assert Unigrams.from_web_counts(reader, 200).tag != first.tag
    twin.tokenizer.add_tokens(["people"])
    changed = Unigrams.from_web_counts(twin, 300)
    assert "people" in changed.logprobs and "people" not in first.logprobs and twin.asked
    with pytest.raises(InputTypeError, match="tokenize"):
        Unigrams.from_web_counts(reader, 300, str.split)
