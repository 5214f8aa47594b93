"""What holds for a model of any smoothing: sums, batches, ready-made counts, texts and tokens."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import zipf_text
from tsteval.ngram import NgramLM
from tsteval.words.ngram_model import NotFittedError


def test_ready_made_counts_equal_counting():
    corpus = [sentence for sentence in zipf_text(50) if len(sentence) > 1]
    padded = [["<s>", *sentence, "</s>"] for sentence in corpus]
    tables = [{}, {}]
    for n, table in enumerate(tables, 1):
        for sentence in padded:
            for i in range(len(sentence) - n + 1):
                gram = tuple(sentence[i : i + n])
                table[gram] = table.get(gram, 0) + 1
    for smoothing in ("witten_bell", "kneser_ney", "absolute"):
        counted = NgramLM(2, smoothing, padding="arpa").fit(corpus)
        given_counts = NgramLM(2, smoothing, padding="arpa").fit_counts(tables)
        assert [row.tolist() for row in counted.logprobs(corpus)] == [
            pytest.approx(row.tolist(), rel=1e-12) for row in given_counts.logprobs(corpus)
        ]


@pytest.mark.parametrize("smoothing", ["mle", "add_k", "absolute", "kneser_ney", "witten_bell"])
@pytest.mark.parametrize("padding", ["both", "arpa"])
@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("unk_cutoff", [1, 2])
def test_counts_of_any_order_and_padding_equal_fitting(smoothing, padding, order, unk_cutoff):
    texts = ["the old gate is old", "a gate by the mill", "the mill is by the road", "a new road"]
    corpus = [text.split() for text in texts]
    tables = [{} for _ in range(order)]
    markers = 1 if padding == "arpa" else order - 1
    for sentence in corpus:
        padded = ["<s>"] * markers + sentence + ["</s>"] * markers
        for n, table in enumerate(tables, 1):
            for gram in zip(*(padded[start:] for start in range(n))):
                table[gram] = table.get(gram, 0) + 1
    model = NgramLM(order, smoothing, padding=padding, unk_cutoff=unk_cutoff).fit(corpus)
    other = NgramLM(order, smoothing, padding=padding, unk_cutoff=unk_cutoff).fit_counts(tables)
    assert other.vocabulary_size == model.vocabulary_size
    for row, same in zip(model.logprobs(corpus), other.logprobs(corpus)):
        assert same.tolist() == pytest.approx(row.tolist(), rel=1e-12)


def test_counts_without_sentences_have_no_markers():
    """Laplace's rule over four words and <unk>: (2 + 1) / (6 + 5), not (2 + 1) / (6 + 7)."""
    words = ["the", "gate", "the", "mill", "a", "gate"]
    model = NgramLM(1, "add_k").fit_counts([{(word,): words.count(word) for word in words}])
    assert model.prob("gate") == pytest.approx(3 / 11)
    assert NgramLM(1, "add_k").fit([words]).prob("gate") == pytest.approx(3 / 11)


def test_occurrences_that_no_bigram_accounts_for_count_as_unseen():
    model = NgramLM(2, "stupid_backoff", padding="arpa").fit_counts(
        [{("a",): 90, ("b",): 10}, {("a", "b"): 9}]
    )
    assert model.prob("b", ["a"]) == pytest.approx(0.1)
    for smoothing in ("witten_bell", "absolute", "kneser_ney", "add_k"):
        model = NgramLM(2, smoothing, padding="arpa").fit_counts(
            [{("a",): 90, ("b",): 10}, {("a", "b"): 9, ("c", "a"): 2}]
        )
        for context in (["a"], ["b"], ["c"], []):
            assert model.distribution(context).sum() == pytest.approx(1, rel=0, abs=1e-12)
        assert smoothing in ("add_k", "kneser_ney") or 1 - model.prob("b", ["a"]) > 0.8


@given(
    st.lists(
        st.lists(st.sampled_from(["a", "b", "abcdefgh", "abcdefghi", "é", "new"]), max_size=6),
        max_size=6,
    )
)
def test_texts_are_scored_as_their_tokens(sentences):
    for smoothing in ("kneser_ney", "mle", "stupid_backoff"):
        for padding in ("both", "arpa"):
            model = NgramLM(3, smoothing, padding=padding, discount=0.5).fit(
                [["a", "b", "abcdefgh"], ["é", "a", "abcdefghi"]]
            )
            texts = model.text_logprobs([" \t".join(tokens) + "\n" for tokens in sentences])
            assert [row.tolist() for row in texts] == [
                row.tolist() for row in model.logprobs(sentences)
            ]


def test_texts_with_markers_or_without_text_are_refused():
    model = NgramLM(2).fit([["a", "b"]])
    with pytest.raises(ValueError, match=r"row 1.*<s>"):
        model.text_logprobs(["a", "b <s>"])
    with pytest.raises(TypeError):
        model.text_logprobs(["a", None])


@pytest.mark.parametrize("question", ["identity", "tag", "words", "keys", "vocabulary_size"])
def test_a_model_that_learned_nothing_says_so(question):
    with pytest.raises(NotFittedError, match="not been fitted"):
        getattr(NgramLM(), question)
    with pytest.raises(AttributeError, match="no attribute 'perplexities'"):
        getattr(NgramLM(), "perplexities")  # noqa: B009  asked for by name, as a typing mistake does
