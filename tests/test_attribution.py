"""Attributions: integrated gradients equal to captum and complete, captum's other methods, the style lexicon,
rankings."""

import html
import itertools
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from captum.attr import LayerIntegratedGradients
from hypothesis import given
from hypothesis import strategies as st

from tsteval.attribution import (
    METHODS,
    WORD,
    Attribution,
    StyleLexicon,
    attribute,
    attribution_html,
    compare_rankings,
    edited_words,
    integrated_gradients,
    ranking_quality,
    style_lexicon,
)
from tsteval.core.assets import packaged_path
from tsteval.core.checks import InputError
from tsteval.models.path_integral import _TOKENS_AT_ONCE, _cut_batches, _LinearFit, trapezoid
from tsteval.style import load_pairs

SENTENCES = list(load_pairs().query("split == 'validation'").source[:12])
HOSTILE = [
    "",
    "[PAD]",
    "[CLS] [MASK] [SEP]",
    "<script>alert(1)</script>",
    "שלום עולם, זה טוב.",
    "naïve 😀 don't",
    "half \ud83d",
]


@pytest.mark.parametrize(
    "rule, method", [("midpoint", "riemann_middle"), ("gauss-legendre", "gausslegendre")]
)
@pytest.mark.parametrize("baseline, token", [("pad", "pad_token_id"), ("mask", "mask_token_id")])
def test_equals_captum(classifier, rule, method, baseline, token):
    layer = LayerIntegratedGradients(
        lambda ids: classifier.model(input_ids=ids).logits.softmax(dim=1)[:, 0],
        classifier.model.get_input_embeddings(),
    )
    for sentence, ours in zip(
        SENTENCES[:4],
        integrated_gradients(classifier, SENTENCES[:4], steps=12, rule=rule, baseline=baseline),
    ):
        ids = classifier.tokenizer(sentence, return_tensors="pt")["input_ids"]
        start = torch.full_like(ids, getattr(classifier.tokenizer, token))
        start[:, [0, -1]] = ids[:, [0, -1]]
        theirs = (
            layer.attribute(ids, start, n_steps=12, method=method)
            .sum(dim=2)[0, 1:-1]
            .detach()
            .numpy()
        )
        assert np.allclose(ours.scores, theirs, atol=1e-5)


@pytest.mark.ci
def test_adaptive_steps_keep_the_tolerance(classifier):
    loose, tight = (
        integrated_gradients(classifier, SENTENCES[:6], tolerance=tolerance)
        for tolerance in (0.05, 0.005)
    )
    assert (
        max(a.completeness_error for a in loose) <= 0.05
        and max(a.completeness_error for a in tight) <= 0.005
    )
    assert sum(a.steps for a in tight) > sum(a.steps for a in loose)
    reference = integrated_gradients(classifier, SENTENCES[:6], steps=64)
    assert all(np.abs(a.scores - b.scores).max() < 0.02 for a, b in zip(tight, reference))


def test_scores_add_up_to_the_change_of_probability(classifier):
    for a in integrated_gradients(classifier, SENTENCES[:6], steps=32):
        probability = classifier.predict_proba([a.text])[0, 0]
        n_tokens = len(a.tokens)
        ids = torch.tensor(
            [
                [
                    classifier.tokenizer.cls_token_id,
                    *[0] * n_tokens,
                    classifier.tokenizer.sep_token_id,
                ]
            ]
        )
        with torch.inference_mode():
            nothing = classifier.model(input_ids=ids).logits.softmax(dim=1)[0, 0].item()
        assert abs(a.scores.sum() - (probability - nothing)) <= a.completeness_error + 1e-5
        assert np.isclose(a.scores.sum(), a.word_scores.sum())


@pytest.mark.ci
def test_results_do_not_depend_on_the_batch(classifier):
    texts = [*SENTENCES, *HOSTILE, SENTENCES[0]]
    together = integrated_gradients(classifier, texts, steps=6)
    backwards = integrated_gradients(classifier, texts[::-1], steps=6, batch_size=5)[::-1]
    assert all(np.allclose(a.scores, b.scores, atol=1e-5) for a, b in zip(together, backwards))
    assert together[0] is together[-1], "the same text was attributed twice"


def test_the_two_classes_mirror_each_other(classifier):
    first, second = (
        integrated_gradients(classifier, SENTENCES[:3], target=target, steps=10)
        for target in (0, 1)
    )
    assert all(np.allclose(a.scores, -b.scores, atol=1e-5) for a, b in zip(first, second))


def test_words_keep_the_text(classifier):
    for a in integrated_gradients(classifier, HOSTILE, steps=2):
        assert len(a.words) == len(a.word_spans) == len(a.word_scores) and len(a.tokens) == len(
            a.scores
        )
        assert [a.text[start:end] for start, end in a.word_spans] == a.words
        assert np.isfinite(a.scores).all()


def test_pieces_of_a_word_are_added(classifier):
    a = integrated_gradients(classifier, ["A strikingly unremarkable isn't."], steps=4)[0]
    assert a.words == ["A", "strikingly", "unremarkable", "isn't", "."]
    assert len(a.tokens) > len(a.words)


@pytest.mark.parametrize(
    "options",
    [
        {"rule": "simpson"},
        {"baseline": "nothing"},
        {"steps": 0},
        {"steps": 2.5},
        {"tolerance": 0},
        {"target": 2},
        {"quantity": "odds"},
        {"rule": "gauss-legendre"},
    ],
)
def test_options_are_checked(classifier, options):
    with pytest.raises(ValueError):
        integrated_gradients(classifier, ["text"], **options)


def test_texts_are_checked(classifier):
    for method in METHODS:
        with pytest.raises(TypeError, match=r"texts, row 1"):
            attribute(classifier, ["text", None], method=method)
        assert attribute(classifier, [], method=method) == []
    words = integrated_gradients(classifier, (text for text in ["A generator."]), steps=1)
    series = integrated_gradients(classifier, pd.Series(["A generator."], index=[7]), steps=1)
    assert len(words) == 1 and np.array_equal(words[0].scores, series[0].scores)


def test_the_logit_is_divided_too(classifier):
    for a in integrated_gradients(classifier, SENTENCES[:3], quantity="logit"):
        probability = classifier.predict_proba([a.text])[0, 0]
        assert (
            abs(a.value - np.log(probability / (1 - probability))) < 1e-4
            and a.completeness_error <= 0.05
        )


def test_the_cap_is_kept_and_the_error_reported(classifier):
    a = integrated_gradients(classifier, SENTENCES[:1], tolerance=1e-12)[0]
    assert 50 < a.steps <= 256 and 0 < a.completeness_error < 1e-3


def test_long_text_is_cut_and_attributed(classifier):
    with pytest.warns(UserWarning, match="1 of 1 texts cut"):
        a = integrated_gradients(classifier, ["terribly " * 11_200], steps=1)[0]
    assert (
        len(a.text) > 100_000
        and len(a.tokens) == classifier.max_tokens - 2
        and len(a.words) == 11_200
    )
    assert np.isfinite(a.word_scores).all() and a.word_scores[600] == 0


def test_batches_are_bounded_in_tokens():
    class Path:
        def __init__(self, length):
            self.start = [0] * length

    points = [(Path(length), 0.5) for length in (5, 600, 5000, 30, 600) for _ in range(9)]
    cut = list(_cut_batches(points, batch_size=4))
    assert sorted(id(point) for batch in cut for point in batch) == sorted(
        id(point) for point in points
    )
    for batch in cut:
        assert len(batch) == 1 or (
            max(len(path.start) for path, _ in batch) * len(batch) <= _TOKENS_AT_ONCE
            and len(batch) <= 4
        )


@given(steps=st.integers(2, 200), bend=st.floats(0, 0.9))
def test_trapezoid_rule(steps, bend):
    positions, weights = trapezoid(steps, bend)
    assert positions[0] == 0 and positions[-1] == 1 and (np.diff(positions) > 0).all()
    assert np.isclose(weights.sum(), 1) and (weights > 0).all()
    assert set(positions) <= set(trapezoid(2 * steps, bend)[0])


def test_trapezoid_finds_a_narrow_jump():
    def curve(at):
        return 1 / (1 + np.exp(-40 * (at - 0.45)))

    errors = [
        abs(weights @ (40 * curve(at) * (1 - curve(at))) - 1)
        for at, weights in (trapezoid(12), trapezoid(12, 0.0))
    ]
    assert errors[0] < 0.005 and errors[1] > 0.05
    with pytest.raises(ValueError):
        trapezoid(0)
    with pytest.raises(ValueError):
        trapezoid(4, 1.0)


def test_html_shows_markup_and_does_not_obey_it():
    text = 'A <script>alert("x")</script> & so'
    spans = [match.span() for match in WORD.finditer(text)]
    a = Attribution(
        text,
        [],
        np.zeros(0),
        [text[s:e] for s, e in spans],
        np.linspace(-1, 1, len(spans)),
        0.0,
        1,
        spans,
    )
    page = str(attribution_html(a))
    assert "<script" not in page and html.unescape(re.sub(r"<[^>]*>", "", page)) == text
    assert "underline dotted" in page and "script(" in repr(a) and "<script" not in a._repr_html_()
    assert (
        "tsteval-picture" in Attribution("", [], np.zeros(0), [], np.zeros(0), 0.0, 1)._repr_html_()
    )


def test_ranking_quality_by_pencil():
    assert ranking_quality([0.1, 0.5, 0.2, 0.4, 0], [1, 0, 0, 1, 0]) == {
        "precision_at_1": 0,
        "recall_at_k": 0.5,
        "average_precision": 0.5,
    }
    with pytest.raises(ValueError):
        ranking_quality([1, 2], [0, 0])
    with pytest.raises(ValueError):
        ranking_quality([1, 2], [1])


@given(
    st.lists(st.tuples(st.floats(-1, 1), st.booleans()), min_size=1, max_size=12).filter(
        lambda rows: any(e for _, e in rows)
    )
)
def test_ranking_quality_is_bounded_and_best_for_the_truth(rows):
    scores, edited = (np.array(column) for column in zip(*rows))
    assert all(0 <= value <= 1 for value in ranking_quality(scores, edited).values())
    assert ranking_quality(edited.astype(float), edited)["average_precision"] == 1


def test_rankings_skip_sentences_without_an_edit():
    table = compare_rankings(
        {"good": [[1, 0], [0, 1]], "bad": [[0, 1], [1, 0]]}, [[True, False], [False, False]]
    )
    assert table.precision_at_1.to_dict() == {"good": 1, "bad": 0}


def test_edited_words():
    assert edited_words("The stunning bridge opened.", "The bridge opened.").tolist() == [
        False,
        True,
        False,
        False,
        False,
    ]
    assert not edited_words("Same text", "same TEXT").any() and edited_words("", "x").tolist() == []


def test_texts_of_one_length_share_the_baseline_gradient(classifier):
    texts = ["The stunning bridge opened.", "The greedy owner resigned.", "The river rose."]
    shared = integrated_gradients(classifier, texts, tolerance=0.05)
    for text, ours in zip(texts, shared):
        alone = integrated_gradients(classifier, [text], tolerance=0.05)[0]
        assert np.allclose(ours.scores, alone.scores, atol=1e-5) and ours.steps == alone.steps
        fine = integrated_gradients(classifier, [text], steps=48)[0]
        assert np.abs(ours.scores - fine.scores).max() < 0.05


def by_hand(classifier, text, method):
    """Occlusion and input x gradient of the probability of the first class, straight from their definitions."""
    ids = torch.tensor([classifier.tokenizer(text)["input_ids"]])
    start = torch.full_like(ids, classifier.tokenizer.pad_token_id)
    start[:, [0, -1]] = ids[:, [0, -1]]
    table = classifier.model.get_input_embeddings()
    start = table(start).detach()
    end = table(ids).detach()

    def probability(points):
        return classifier.model(inputs_embeds=points).logits.softmax(dim=1)[:, 0]

    if method == "input_x_gradient":
        end.requires_grad_()
        return (
            (torch.autograd.grad(probability(end).sum(), end)[0] * (end - start))
            .sum(dim=2)[0, 1:-1]
            .detach()
            .numpy()
        )
    scores = []
    for place in range(1, ids.shape[1] - 1):
        without = end.clone()
        without[0, place] = start[0, place]
        scores.append(float((probability(end) - probability(without)).detach()))
    return np.array(scores)


@pytest.mark.parametrize("method", ["occlusion", "input_x_gradient"])
def test_methods_equal_their_definitions(classifier, method):
    for text, found in zip(SENTENCES[:2], attribute(classifier, SENTENCES[:2], method=method)):
        assert np.allclose(found.scores, by_hand(classifier, text, method), atol=1e-5)


def test_shapley_values_of_two_tokens(classifier):
    """With two tokens the two orders can be counted out; 60 draws come close, and every draw adds up."""
    a = attribute(classifier, ["great bridge"], method="shapley_sampling", samples=60)[0]
    table = classifier.model.get_input_embeddings()
    ids = torch.tensor([classifier.tokenizer("great bridge")["input_ids"]])
    pad = classifier.tokenizer.pad_token_id
    value = {}
    for kept in itertools.product((0, 1), repeat=2):
        row = ids.clone()
        row[0, 1:3] = torch.tensor(
            [token if keep else pad for token, keep in zip(ids[0, 1:3].tolist(), kept)]
        )
        with torch.inference_mode():
            value[kept] = (
                classifier.model(inputs_embeds=table(row)).logits.softmax(dim=1)[0, 0].item()
            )
    exact = [
        (value[1, 0] - value[0, 0] + value[1, 1] - value[0, 1]) / 2,
        (value[0, 1] - value[0, 0] + value[1, 1] - value[1, 0]) / 2,
    ]
    assert a.completeness_error < 1e-5 and np.allclose(a.scores, exact, atol=0.05)
    kernel = attribute(classifier, ["great bridge"], method="kernel_shap", samples=20)[0]
    assert np.allclose(kernel.scores, exact, atol=0.05)  # the two orders are drawn unequally often


@pytest.mark.parametrize("method", METHODS[1:])
def test_methods_do_not_depend_on_the_neighbours(classifier, method):
    texts = ["The stunning bridge opened.", "", "Good", "A [PAD] word"]
    torch.manual_seed(3)
    together = attribute(
        classifier,
        texts,
        method=method,
        samples=3 if method not in ("occlusion", "input_x_gradient") else None,
    )
    drawn = torch.rand(1)
    torch.manual_seed(3)
    assert torch.rand(1) == drawn, "a program's own draws were disturbed"
    alone = attribute(
        classifier,
        texts[-1:],
        method=method,
        samples=3 if method not in ("occlusion", "input_x_gradient") else None,
    )[0]
    assert np.allclose(together[-1].scores, alone.scores, atol=1e-5)
    assert together[1].tokens == [] and len(together[2].scores) == 1
    assert together[-1].scores[together[-1].tokens.index("[PAD]")] == pytest.approx(
        0, abs=1e-6
    ) or method in (
        "lime",
        "kernel_shap",
    )


def test_every_option_is_in_the_name(classifier):
    settings = [
        {},
        {"baseline": "zero"},
        {"quantity": "logit"},
        {"target": 1},
        {"steps": 3},
        {"steps": 4},
        {"steps": 3, "rule": "gauss-legendre"},
        {"tolerance": 0.01},
        {"method": "occlusion"},
        *(
            {"method": "shapley_sampling", "samples": n, "seed": seed}
            for n in (1, 2)
            for seed in (0, 1)
        ),
        {"method": "lime", "samples": 2},
        {"method": "kernel_shap", "samples": 2},
        {"method": "input_x_gradient"},
    ]
    names = [attribute(classifier, ["A word."], **setting)[0].method for setting in settings]
    assert len(set(names)) == len(names) and names[0] == "ig-pad-adaptive-0.05"
    assert not any(character in name for name in names for character in "|: ")


@pytest.mark.parametrize(
    "options",
    [
        {"method": "guess"},
        {"method": "occlusion", "samples": 5},
        {"method": "lime", "samples": 0},
        {"method": "lime", "steps": 5},
        {"samples": 5},
        {"method": "lime", "seed": 0.5},
        {"batch_size": 0},
        {"method": "occlusion", "baseline": "nothing"},
    ],
)
def test_options_of_methods_are_checked(classifier, options):
    with pytest.raises((InputError, TypeError)):
        attribute(classifier, ["text"], **options)


@pytest.mark.ci
def test_captum_needs_no_scikit_learn():
    """LIME and kernel SHAP are fitted here; a plain installation has no scikit-learn."""
    code = (
        "import sys; sys.modules['sklearn'] = None\n"
        "from tsteval.attribution import attribute; from tsteval.style import StyleClassifier\n"
        "c = StyleClassifier.load()\n"
        "print([len(attribute(c, ['a great day'], method=m, samples=4)[0].scores) for m in ('lime', "
        "'kernel_shap')])"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.strip()
        == "[3, 3]"
    )


def test_linear_fit_is_weighted_ridge_regression():
    rng = np.random.default_rng(0)
    features = rng.integers(0, 2, (40, 3)).astype(float)
    answers = rng.normal(size=40)
    weights = rng.random(40)
    for ridge in (0.0, 2.0):
        fit = _LinearFit(ridge)
        fit.fit(
            [
                (features[:25], answers[:25], weights[:25]),
                (features[25:], answers[25:], weights[25:]),
            ]
        )

        def mean(values):
            return np.average(values, axis=0, weights=weights)

        x = features - mean(features)
        y = answers - mean(answers)
        expected = np.linalg.solve((x.T * weights) @ x + ridge * np.eye(3), (x.T * weights) @ y)
        assert np.allclose(fit.representation().numpy()[0], expected)


PAIRS = pd.DataFrame(
    {
        "source": ["a great film", "a great day", "great news", "the same"],
        "target": ["a film", "a day", "news", "the same"],
    }
)


def test_lexicon_learns_what_the_sources_have():
    lexicon = style_lexicon(PAIRS)
    assert (
        max(lexicon.weights, key=lexicon.weights.get) == "great" and "same" not in lexicon.weights
    )
    found = lexicon.attribute(["A great, great film."])[0]
    assert found.words == found.tokens == ["A", "great", ",", "great", "film", "."]
    assert (
        found.word_scores[1] == found.word_scores[3] == lexicon.weights["great"]
        and found.word_scores[2] == 0
    )
    assert (
        found.value == pytest.approx(lexicon.constant + found.word_scores.sum())
        and found.quantity == "logit"
    )


def test_lexicon_is_the_logistic_regression_of_scikit_learn():
    linear_model = pytest.importorskip("sklearn.linear_model")
    pairs = load_pairs().query("split == 'validation' and source != target")
    lexicon = style_lexicon(pairs, penalty=0.01)
    words = None
    words = list(lexicon.weights)
    counts = np.array(
        [
            [[w.lower() for w in WORD.findall(text)].count(word) for word in words]
            for text in [*pairs.source, *pairs.target]
        ]
    )
    labels = np.repeat([1, 0], len(pairs))
    peer = linear_model.LogisticRegression(C=1 / (0.01 * len(labels)), tol=1e-8, max_iter=5000).fit(
        counts, labels
    )
    assert np.allclose(peer.coef_[0], list(lexicon.weights.values()), atol=2e-3)


def test_lexicons_sign_by_their_words_and_check_their_input():
    whole = style_lexicon(PAIRS)
    small = style_lexicon(PAIRS, size=1)
    other = style_lexicon(PAIRS, penalty=0.1)
    assert (
        list(small.weights) == ["great"]
        and len({whole.tag, small.tag, other.tag, StyleLexicon({}, 0.0).tag}) == 4
    )
    assert style_lexicon(PAIRS).tag == whole.tag == whole.attribute(["x"])[0].method
    with pytest.raises(TypeError, match="row 1"):
        whole.attribute(["x", 1])
    with pytest.raises(TypeError, match="target, row 0"):
        style_lexicon(pd.DataFrame({"source": ["a"], "target": [None]}))
    for wrong in ({"penalty": 0}, {"penalty": -1.0}):
        with pytest.raises(InputError):
            style_lexicon(PAIRS, **wrong)
    with pytest.raises(InputError, match="target"):
        style_lexicon(PAIRS[["source"]])


def test_stored_tables_bear_what_the_chapter_says():
    """Fixed points are enough for one classifier and too few for a surer one; the adaptive rule leaves no sentence
    above the tolerance."""
    every = pd.read_csv(packaged_path("attribution_rules.csv")).query("data == 'teaching'")
    rules, surest = (every[every.log_odds_times == factor].set_index("rule") for factor in (1, 16))
    assert (
        rules.above_tolerance["midpoint 8"] == 0 and rules.above_tolerance["gauss-legendre 8"] == 5
    )
    assert (
        surest.above_tolerance["midpoint 8"] == 9
        and surest.above_tolerance["gauss-legendre 50"] == 2
    )
    assert (every[every.rule == "trapezoid, doubled"].above_tolerance == 0).all()
    assert rules.gradients["trapezoid, doubled"] < 8 < rules.gradients["gauss-kronrod, then halves"]
    methods = pd.read_csv(packaged_path("attribution_methods.csv"))
    assert set(methods.columns) == {
        "data",
        "row",
        "method",
        "precision_at_1",
        "recall_at_k",
        "average_precision",
        "evaluations",
        "completeness_error",
    }
    assert (
        set(METHODS[1:]) <= set(methods.method)
        and (methods.query("data == 'teaching'").groupby("method").size() == 72).all()
    )
