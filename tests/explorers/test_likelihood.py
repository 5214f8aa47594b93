"""The explorers of n-grams and fluency without a browser."""

import numpy as np
import pytest

from tests.explorers.pages import Page
from tsteval.ameliorations import good_bad_thresholds
from tsteval.explorers import likelihood as likelihood_page
from tsteval.fluency import fluency_scores
from tsteval.ngram import NgramLM
from tsteval.text import tokenize


def test_ngram_picture_shows_probabilities_and_nothing_of_the_next_chapter():
    lm = NgramLM(order=2, smoothing="mle").fit([["a", "b"], ["a", "c"]])
    for picture in (likelihood_page.ngram_picture, likelihood_page.ameliorations_picture):
        page = Page(picture(lm, ["a", "b", "zebra"])).text
        assert (
            f"1 in {1 / lm.prob('b', ['a']):.2g}" in page
            and "zebra (unk)" in page
            and "shuffled (0)" in page
        )
        assert "(end)" in page
        assert ("A1" in page and "good" in page) == (
            picture is likelihood_page.ameliorations_picture
        )
    for seed in range(5):
        page = Page(likelihood_page.ngram_picture(lm, ["a", "b"], seed=seed)).text
        assert page.count(f"shuffled ({seed})") == 1


def test_the_sentence_of_the_ngram_model_names_the_least_likely_word():
    lm = NgramLM(order=1, smoothing="mle").fit([["a", "a", "b"]])  # a is 2 of 3 words, b 1 of 3
    for tokens, least in (
        (["a", "b"], "b is least likely: 1 in 3."),
        (["a"], "a is least likely: 1 in 1.5."),
    ):
        page = Page(likelihood_page.ngram_picture(lm, tokens)).text
        assert least in page
        assert f"as likely as 1 in {lm.perplexity([tokens]):.0f} (the perplexity)" in page
    assert "There is no word." in likelihood_page.ngram_picture(lm, [])


def test_the_sentence_of_the_ameliorations_counts_good_and_bad_words():
    lm = NgramLM(order=1, smoothing="mle").fit([["a"] * 7 + ["b"] * 2 + ["c"]])
    good, bad = good_bad_thresholds(lm, 0.4, 0.2)
    for tokens in (["a", "a", "b"], ["c", "c"]):
        values = [lm.prob(token) for token in tokens]
        counts = sum(value >= good for value in values), sum(value <= bad for value in values)
        page = Page(likelihood_page.ameliorations_picture(lm, tokens)).text
        assert (
            f"As written, {counts[0]} of {len(values)} words are familiar (good) and {counts[1]} "
            f"strange (bad); shuffled (0), " in page
        )


def test_ameliorations_picture_refuses_shares_that_overlap():
    with pytest.raises(ValueError, match="share"):
        likelihood_page.ameliorations_picture(NgramLM(order=2).fit([["a", "b"]]), ["a"], 0.9, 0.2)


def test_fluency_picture_says_what_each_score_prefers():
    better = likelihood_page.ScoredText(["x", "y"], np.array([-1.0, -1.0]), np.array([-3.0, -3.0]))
    worse = likelihood_page.ScoredText(["x", "y"], np.array([-5.0, -5.0]), np.array([-3.0, -3.0]))
    table = likelihood_page.fluency_picture(better, worse).split("</table>")[0]
    assert "All four scores prefer the first sentence." in table
    assert "All four scores prefer neither." in likelihood_page.fluency_picture(worse, worse)
    rare = likelihood_page.ScoredText(["x", "y"], np.array([-5.0, -5.0]), np.array([-9.0, -9.0]))
    parted = (
        "NCE, perplexity and PenLP prefer the first sentence; SLOR prefers the second sentence."
    )
    assert parted in likelihood_page.fluency_picture(better, rare)
    assert (
        table.count(">first</td>") == 4
        and likelihood_page.fluency_picture(worse, better).count(">second</td>") == 4
    )
    assert likelihood_page.fluency_picture(worse, worse).count(">neither</td>") == 4


def test_ngram_fluency_is_that_of_fluency_scores():
    lm, unigram = likelihood_page._fluency_models(likelihood_page.NGRAM_MODEL)
    text = "The bridge was opened in 1932."
    scored = likelihood_page._score_text((lm, unigram), text)
    expected = fluency_scores(lm, [tokenize(text.lower())], unigram).iloc[0]
    assert scored.logprobs.sum() == pytest.approx(expected.logprob)
    assert (scored.logprobs.sum() - scored.unigram_logprobs.sum()) / len(
        scored.tokens
    ) == pytest.approx(expected.slor)
