"""Integrated gradients: equal to captum, complete within the tolerance, independent of the batch."""
import html
import re

import matplotlib

matplotlib.use("Agg")

import numpy as np
import pytest
import torch
from captum.attr import LayerIntegratedGradients
from hypothesis import given
from hypothesis import strategies as st

from tsteval.attribution import (TOKENS_AT_ONCE, WORD, Attribution, _batches, attribution_html, compare_rankings, edited_words,
                                 integrated_gradients, plot_attribution, ranking_quality, trapezoid)
from tsteval.style import load_pairs

SENTENCES = list(load_pairs().query("split == 'validation'").source[:12])
HOSTILE = ["", "[PAD]", "[CLS] [MASK] [SEP]", "<script>alert(1)</script>", "שלום עולם, זה טוב.", "naïve 😀 don't", "half \ud83d"]


@pytest.mark.parametrize("rule, method", [("midpoint", "riemann_middle"), ("gauss-legendre", "gausslegendre")])
@pytest.mark.parametrize("baseline, token", [("pad", "pad_token_id"), ("mask", "mask_token_id")])
def test_equals_captum(classifier, rule, method, baseline, token):
    layer = LayerIntegratedGradients(lambda ids: classifier.model(input_ids=ids).logits.softmax(dim=1)[:, 0],
                                     classifier.model.get_input_embeddings())
    for sentence, ours in zip(SENTENCES[:4], integrated_gradients(classifier, SENTENCES[:4], steps=12, rule=rule, baseline=baseline)):
        ids = classifier.tokenizer(sentence, return_tensors="pt")["input_ids"]
        start = torch.full_like(ids, getattr(classifier.tokenizer, token))
        start[:, [0, -1]] = ids[:, [0, -1]]
        theirs = layer.attribute(ids, start, n_steps=12, method=method).sum(dim=2)[0, 1:-1].detach().numpy()
        assert np.allclose(ours.scores, theirs, atol=1e-5)


def test_adaptive_steps_keep_the_tolerance(classifier):
    loose, tight = (integrated_gradients(classifier, SENTENCES[:6], tolerance=tolerance) for tolerance in (0.05, 0.005))
    assert max(a.completeness_error for a in loose) <= 0.05 and max(a.completeness_error for a in tight) <= 0.005
    assert sum(a.steps for a in tight) > sum(a.steps for a in loose)
    reference = integrated_gradients(classifier, SENTENCES[:6], steps=64)
    assert all(np.abs(a.scores - b.scores).max() < 0.02 for a, b in zip(tight, reference))


def test_scores_add_up_to_the_change_of_probability(classifier):
    for a in integrated_gradients(classifier, SENTENCES[:6], steps=32):
        probability = classifier.predict_proba([a.text])[0, 0]
        n_tokens = len(a.tokens)
        ids = torch.tensor([[classifier.tokenizer.cls_token_id, *[0] * n_tokens, classifier.tokenizer.sep_token_id]])
        with torch.inference_mode():
            nothing = classifier.model(input_ids=ids).logits.softmax(dim=1)[0, 0].item()
        assert abs(a.scores.sum() - (probability - nothing)) <= a.completeness_error + 1e-5
        assert np.isclose(a.scores.sum(), a.word_scores.sum())


def test_results_do_not_depend_on_the_batch(classifier):
    texts = [*SENTENCES, *HOSTILE, SENTENCES[0]]
    together = integrated_gradients(classifier, texts, steps=6)
    backwards = integrated_gradients(classifier, texts[::-1], steps=6, batch_size=5)[::-1]
    assert all(np.allclose(a.scores, b.scores, atol=1e-5) for a, b in zip(together, backwards))
    assert together[0] is together[-1], "the same text was attributed twice"


def test_the_two_classes_mirror_each_other(classifier):
    first, second = (integrated_gradients(classifier, SENTENCES[:3], target=target, steps=10) for target in (0, 1))
    assert all(np.allclose(a.scores, -b.scores, atol=1e-5) for a, b in zip(first, second))


def test_words_keep_the_text(classifier):
    for a in integrated_gradients(classifier, HOSTILE, steps=2):
        assert len(a.words) == len(a.word_spans) == len(a.word_scores) and len(a.tokens) == len(a.scores)
        assert [a.text[start:end] for start, end in a.word_spans] == a.words
        assert np.isfinite(a.scores).all()


def test_pieces_of_a_word_are_added(classifier):
    a = integrated_gradients(classifier, ["A strikingly unremarkable isn't."], steps=4)[0]
    assert a.words == ["A", "strikingly", "unremarkable", "isn't", "."]
    assert len(a.tokens) > len(a.words)


@pytest.mark.parametrize("options", [{"rule": "simpson"}, {"baseline": "nothing"}, {"steps": 0}, {"steps": 2.5}, {"tolerance": 0},
                                     {"target": 2}, {"quantity": "odds"}, {"rule": "gauss-legendre"}])
def test_options_are_checked(classifier, options):
    with pytest.raises(ValueError):
        integrated_gradients(classifier, ["text"], **options)


def test_texts_are_checked(classifier):
    with pytest.raises(TypeError, match="row 1"):
        integrated_gradients(classifier, ["text", None])
    assert integrated_gradients(classifier, []) == []


def test_the_logit_is_divided_too(classifier):
    for a in integrated_gradients(classifier, SENTENCES[:3], quantity="logit"):
        probability = classifier.predict_proba([a.text])[0, 0]
        assert abs(a.value - np.log(probability / (1 - probability))) < 1e-4 and a.completeness_error <= 0.05


def test_the_cap_is_kept_and_the_error_reported(classifier):
    a = integrated_gradients(classifier, SENTENCES[:1], tolerance=1e-12)[0]
    assert 50 < a.steps <= 256 and 0 < a.completeness_error < 1e-3


def test_long_text_is_cut_and_attributed(classifier):
    a = integrated_gradients(classifier, ["terribly " * 11_200], steps=1)[0]
    assert len(a.text) > 100_000 and len(a.tokens) == classifier.max_tokens - 2 and len(a.words) == 11_200
    assert np.isfinite(a.word_scores).all() and a.word_scores[600] == 0


def test_batches_are_bounded_in_tokens():
    class Path:
        def __init__(self, length):
            self.start = [0] * length
    points = [(Path(length), 0.5) for length in (5, 600, 5000, 30, 600) for _ in range(9)]
    cut = list(_batches(points, batch_size=4))
    assert sorted(id(point) for batch in cut for point in batch) == sorted(id(point) for point in points)
    for batch in cut:
        assert len(batch) == 1 or max(len(path.start) for path, _ in batch) * len(batch) <= TOKENS_AT_ONCE and len(batch) <= 4


@given(steps=st.integers(2, 200), bend=st.floats(0, 0.9))
def test_trapezoid_rule(steps, bend):
    positions, weights = trapezoid(steps, bend)
    assert positions[0] == 0 and positions[-1] == 1 and (np.diff(positions) > 0).all()
    assert np.isclose(weights.sum(), 1) and (weights > 0).all()
    assert set(positions) <= set(trapezoid(2 * steps, bend)[0])


def test_trapezoid_finds_a_narrow_jump():
    curve = lambda at: 1 / (1 + np.exp(-40 * (at - 0.45)))
    errors = [abs(weights @ (40 * curve(at) * (1 - curve(at))) - 1) for at, weights in (trapezoid(12), trapezoid(12, 0.0))]
    assert errors[0] < 0.005 and errors[1] > 0.05
    with pytest.raises(ValueError):
        trapezoid(0)
    with pytest.raises(ValueError):
        trapezoid(4, 1.0)


def test_html_shows_markup_and_does_not_obey_it():
    text = 'A <script>alert("x")</script> & so'
    spans = [match.span() for match in WORD.finditer(text)]
    a = Attribution(text, [], np.zeros(0), [text[s:e] for s, e in spans], np.linspace(-1, 1, len(spans)), 0.0, 1, spans)
    page = a._repr_html_()
    assert "<script" not in page and html.unescape(re.sub(r"</?(?:span|p)[^>]*>", "", page)) == text
    assert "underline dotted" in page and "script(" in repr(a)
    assert attribution_html(Attribution("", [], np.zeros(0), [], np.zeros(0), 0.0, 1)) == "<p></p>"


def test_bars_are_one_a_word():
    a = Attribution("a b", [], np.zeros(0), ["a", "b"], np.array([0.5, -0.25]), 0.0, 1, [(0, 1), (2, 3)])
    axes = plot_attribution(a)
    assert sorted(bar.get_width() for bar in axes.patches) == [-0.25, 0.5]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b"]


def test_ranking_quality_by_pencil():
    assert ranking_quality([0.1, 0.5, 0.2, 0.4, 0], [1, 0, 0, 1, 0]) == {
        "precision_at_1": 0, "recall_at_k": 0.5, "average_precision": 0.5}
    with pytest.raises(ValueError):
        ranking_quality([1, 2], [0, 0])
    with pytest.raises(ValueError):
        ranking_quality([1, 2], [1])


@given(st.lists(st.tuples(st.floats(-1, 1), st.booleans()), min_size=1, max_size=12).filter(lambda rows: any(e for _, e in rows)))
def test_ranking_quality_is_bounded_and_best_for_the_truth(rows):
    scores, edited = (np.array(column) for column in zip(*rows))
    assert all(0 <= value <= 1 for value in ranking_quality(scores, edited).values())
    assert ranking_quality(edited.astype(float), edited)["average_precision"] == 1


def test_rankings_skip_sentences_without_an_edit():
    table = compare_rankings({"good": [[1, 0], [0, 1]], "bad": [[0, 1], [1, 0]]}, [[True, False], [False, False]])
    assert table.precision_at_1.to_dict() == {"good": 1, "bad": 0}


def test_edited_words():
    assert edited_words("The stunning bridge opened.", "The bridge opened.").tolist() == [False, True, False, False, False]
    assert not edited_words("Same text", "same TEXT").any() and edited_words("", "x").tolist() == []


def test_texts_of_one_length_share_the_baseline_gradient(classifier):
    texts = ["The stunning bridge opened.", "The greedy owner resigned.", "The river rose."]
    shared = integrated_gradients(classifier, texts, tolerance=0.05)
    for text, ours in zip(texts, shared):
        alone = integrated_gradients(classifier, [text], tolerance=0.05)[0]
        assert np.allclose(ours.scores, alone.scores, atol=1e-5) and ours.steps == alone.steps
        fine = integrated_gradients(classifier, [text], steps=48)[0]
        assert np.abs(ours.scores - fine.scores).max() < 0.05
