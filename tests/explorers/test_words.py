"""The explorers of BLEU and ROUGE without a browser: marks, factors, scores."""

import html

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.explorers.pages import Page
from tsteval.bleu import SMOOTHINGS, corpus_bleu, sentence_bleu
from tsteval.explorers import words as words_page
from tsteval.report import words as marks
from tsteval.rouge import rouge_scores

words = st.lists(st.sampled_from(["a", "b", "c"]), max_size=8)


@given(words, st.lists(words, min_size=1, max_size=3), st.integers(1, 3))
def test_marks_agree_with_the_clipped_matches_of_bleu(candidate, references, order):
    found, reference_marks = marks.mark_ngrams(candidate, references, order)
    score = sentence_bleu(
        " ".join(candidate), [" ".join(r) for r in references], max_order=order, tokenize="none"
    )
    assert (
        found.count("matched") == score.matches[order - 1] and len(found) == score.totals[order - 1]
    )
    assert all(
        len(m) == max(len(r) - order + 1, 0) and "clipped" not in m
        for m, r in zip(reference_marks, references)
    )


@settings(deadline=None)
@given(
    words,
    words,
    st.lists(st.sampled_from([0.0, 0.25, 1.0]), min_size=1, max_size=4).filter(any),
    st.sampled_from(sorted(SMOOTHINGS)),
)
def test_the_last_product_is_the_score(candidate, reference, weights, smoothing):
    candidate = " ".join(candidate)
    reference = " ".join(reference)
    rows = words_page.score_factors(candidate, [reference], weights, smoothing, "none")
    score = sentence_bleu(
        candidate,
        reference,
        max_order=len(weights),
        weights=np.divide(weights, sum(weights)),
        smoothing=smoothing,
        tokenize="none",
    ).score
    assert rows[-1]["product"] == pytest.approx(score, abs=1e-12)


def test_bleu_picture_shows_marks_penalty_and_score():
    page = Page(words_page.bleu_picture("the the cat", ["the cat sat"], [1, 1]))
    score = sentence_bleu("the the cat", "the cat sat", max_order=2, weights=[0.5, 0.5]).score
    assert (
        f"BLEU = {score:.4f}" in page.text
        and "brevity penalty" in page.text
        and "2 of 3" in page.text
    )
    assert 'title="clipped"' in words_page.bleu_picture("the the cat", ["the cat sat"], [1, 1])


@pytest.mark.parametrize(
    "candidate, marked, said",
    [
        ("the cat sat", 1, "3 of 3 1-grams match a reference. BLEU is 1.000."),
        (
            "the the cat",
            1,
            "2 of 3 1-grams match a reference. BLEU is 0.577; what costs most: 2-grams (factor 0.707)",
        ),
        ("the the cat", 2, "1 of 2 2-grams match a reference. BLEU is 0.577"),
        (
            "a dog",
            1,
            "0 of 2 1-grams match a reference. BLEU is 0.000; what costs most: no word matches (factor 0.000)",
        ),
    ],
)
def test_the_sentence_of_bleu(candidate, marked, said):
    assert said in words_page.bleu_picture(candidate, ["the cat sat"], [1, 1], marked=marked)


@pytest.mark.parametrize(
    "kind, said",
    [
        (
            "rouge1",
            "50% of the reference's 1-grams stand in the candidate (recall), and 100% of the",
        ),
        (
            "rouge2",
            "33% of the reference's 2-grams stand in the candidate (recall), and 100% of the",
        ),
    ],
)
def test_the_sentence_of_rouge(kind, said):
    page = words_page.rouge_picture("the cat", "the cat sat there", kind)
    assert said in html.unescape(page)


def test_the_marks_of_rouge_are_its_matches():
    one = ["the", "dam", "opened", "in", "1932", "thousands", "came"]
    other = ["thousands", "came", "when", "the", "dam", "was", "opened", "in", "1932"]
    scores = rouge_scores([" ".join(one)], [" ".join(other)], ["rouge1", "rougeL"]).iloc[0]
    for kind, found in (
        ("rouge1", marks.mark_ngrams(one, [other], 1)[0]),
        ("rougeL", marks.mark_common(one, other)[0]),
    ):
        assert found.count("matched") / len(one) == pytest.approx(scores[kind, "precision"])
    for kind in ("rouge1", "rougeL"):
        assert (
            f"{scores[kind, 'f1']:.3f}"
            in Page(words_page.rouge_picture(" ".join(one), " ".join(other), kind)).text
        )


@settings(deadline=None)
@given(words, words)
def test_a_longest_common_subsequence_is_marked_on_both_sides(one, other):
    left, right = marks.mark_common(one, other)
    kept = [
        [token for token, mark in zip(tokens, found) if mark == "matched"]
        for tokens, found in ((one, left), (other, right))
    ]
    assert kept[0] == kept[1]
    expected = rouge_scores([" ".join(one)], [" ".join(other)], ["rougeL"]).iloc[0][
        "rougeL", "precision"
    ]
    assert len(kept[0]) == pytest.approx(expected * len(one))


def test_match_picture_counts_and_marks_the_edit():
    picture = words_page.match_picture("the cat sat on the mat", "the cat sat on a mat", "none", 2)
    assert "5 of 6" in picture and "3 of 5" in picture and "2 of 4" in picture
    assert Page(picture).text and "<ins" in picture and "<del" in picture
    assert "0 of 0" in words_page.match_picture(
        "", ""
    ) and "<script" not in words_page.match_picture("<script>", "a")


@settings(deadline=None)
@given(st.lists(st.tuples(words, words), min_size=1, max_size=4), st.integers(1, 4))
def test_the_sums_picture_has_the_score_of_the_corpus(pairs, order):
    outputs, references = ([" ".join(tokens) for tokens in side] for side in zip(*pairs))
    page = Page(words_page.sums_picture(outputs, references, order))
    whole = corpus_bleu(outputs, references, max_order=order).score
    each = [
        corpus_bleu([one], [other], max_order=order).score
        for one, other in zip(outputs, references)
    ]
    said = f"BLEU of all together is {whole:.3f}, the mean of the single scores is {np.mean(each):.3f}."
    assert said in page.text
    assert page.text.startswith("Here, yes" if abs(whole - np.mean(each)) <= 5e-4 else "No")


def test_the_sums_explorer_asks_for_as_many_references_as_outputs():
    one = words_page.sums_explorer("a b\nc", "a b")
    assert "2 outputs and 1 references" in one.message.value and not one.picture.value
    one.controls["references"].value = "a b\nc d"
    assert "of 2" in one.picture.value and not one.message.value
    one.controls["order"].value = 4
    assert "4-grams" in one.picture.value
    one.close()
