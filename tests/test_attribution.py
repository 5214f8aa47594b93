"""Integrated gradients: equal to captum, complete within the tolerance, independent of the batch."""
import numpy as np
import pytest
import torch
from captum.attr import LayerIntegratedGradients

from tsteval.attribution import integrated_gradients
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
                                     {"target": 2}, {"rule": "gauss-legendre"}])
def test_options_are_checked(classifier, options):
    with pytest.raises(ValueError):
        integrated_gradients(classifier, ["text"], **options)


def test_texts_are_checked(classifier):
    with pytest.raises(TypeError, match="row 1"):
        integrated_gradients(classifier, ["text", None])
    assert integrated_gradients(classifier, []) == []
