"""Temperatures: fitted, applied, and their reliability."""

import math
import warnings

import numpy as np
import ot
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tsteval.core.checks import InputError
from tsteval.style import (
    StyleClassifier,
    calibrate,
    expected_calibration_error,
    fit_temperature,
    labelled_sentences,
    load_pairs,
    reliability_bins,
    score_sentences,
    temper,
    train_classifier,
)
from tsteval.training import loop as training
from tsteval.training.calibration import (
    cost_matrix,
    ordered_cost,
    target_probabilities,
    total_variation,
    transport_distance,
)

TEXTS = [
    "The stunning bridge opened in 1932.",
    "The bridge opened in 1932.",
    "",
    "😀 <b>x</b> \ud83d",
    "[PAD] [CLS] text",
]
PAIRS = load_pairs()
EDITED = PAIRS[PAIRS.source != PAIRS.target]
FEW = EDITED[EDITED.split == "train"].head(6)


def distributions(classes):
    rows = arrays(
        float, st.tuples(st.integers(1, 30), st.just(classes)), elements=st.floats(0.01, 1)
    )
    return rows.map(lambda values: values / values.sum(axis=1, keepdims=True))


@given(distributions(3), st.floats(0.2, 5))
def test_tempering(probabilities, temperature):
    tempered = temper(probabilities, temperature)
    assert np.allclose(tempered.sum(axis=1), 1)
    assert np.allclose(temper(tempered, 1 / temperature), probabilities, atol=1e-6)
    assert np.allclose(temper(probabilities, 1), probabilities)
    moved = tempered.max(axis=1) - probabilities.max(axis=1)
    assert (moved <= 1e-9).all() if temperature >= 1 else (moved >= -1e-9).all()


def test_tempering_certain_rows_and_bad_temperatures():
    assert np.allclose(temper([[1.0, 0.0]], 2), [[1, 0]])
    for bad in (0, -1, math.nan):
        with pytest.raises(ValueError, match="above 0"):
            temper([[0.5, 0.5]], bad)


@settings(max_examples=20, deadline=None)
@given(st.floats(0.3, 3), st.integers(0, 10))
def test_the_temperature_of_drawn_labels_is_found(temperature, seed):
    random = np.random.default_rng(seed)
    true = random.dirichlet([1, 1], size=20_000)
    labels = (random.random(len(true)) > true[:, 0]).astype(int)
    assert math.isclose(
        fit_temperature(temper(true, 1 / temperature), labels), temperature, rel_tol=0.08
    )


def test_weights_of_the_fit_count_like_copies():
    probabilities = np.array([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3]])
    labels = np.array([0, 1, 0])
    copies = [0, 0, 0, 1, 2]
    copied = fit_temperature(probabilities[copies], labels[copies])
    assert math.isclose(fit_temperature(probabilities, labels, [3, 1, 1]), copied, rel_tol=1e-4)


def test_reliability_by_hand():
    probabilities = [[0.95, 0.05], [0.94, 0.06], [0.3, 0.7], [0.45, 0.55]]
    table = reliability_bins(probabilities, [0, 1, 1, 0], bins=5)
    assert table.sentences.tolist() == [1, 1, 2] and table.accuracy.tolist() == [0, 1, 0.5]
    assert np.allclose(table.confidence, [0.55, 0.7, 0.945])
    assert math.isclose(expected_calibration_error(table), (0.55 + 0.3 + 2 * 0.445) / 4)
    assert reliability_bins([[1.0, 0.0]], [0]).index.tolist() == [9]


def test_second_texts_are_calibrated_and_scored():
    """The classifier of question and answer was once calibrated on the questions alone; the temperature ran to its
    bound."""
    avoided = StyleClassifier.load("avoided-answer-minilm")
    questions = [
        "When was the bridge built?",
        "Who signed the report?",
        "How many people work there?",
        "Will you resign?",
    ]
    answers = [
        "It was built in 1932.",
        "I would rather talk about the future.",
        "About three hundred people.",
        "Let us not get ahead of events.",
    ]
    sentences = pd.DataFrame({"text": questions, "second": answers, "label": [1, 0, 1, 0]})
    scored = score_sentences(avoided, sentences)
    assert np.array_equal(scored.probability, avoided.predict_proba(questions, answers)[:, 0])
    assert not np.allclose(
        scored.probability, score_sentences(avoided, sentences.drop(columns="second")).probability
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = calibrate(avoided, sentences).temperature / avoided.temperature
    assert math.isclose(
        found,
        fit_temperature(avoided.predict_proba(questions, answers), sentences.label),
        rel_tol=1e-6,
    )


def test_the_cache_is_not_changed_by_calibrating(classifier):
    before = classifier.predict_proba(TEXTS)
    identity = classifier.identity
    tuned = calibrate(StyleClassifier.load(), labelled_sentences(EDITED.head(20)))
    assert np.array_equal(StyleClassifier.load().predict_proba(TEXTS), before)
    assert classifier.identity == StyleClassifier.load().identity == identity != tuned.identity
    assert tuned.tag != classifier.tag


def test_a_temperature_at_the_end_of_its_range_is_said():
    toy = np.tile([0.9, 0.1], (10, 1))
    with pytest.warns(UserWarning, match="ran to the end of its range"):
        fit_temperature(toy, [1] * 9 + [0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit_temperature(toy, [0] * 7 + [1] * 3)
    with pytest.raises(InputError, match="no sentences"):
        fit_temperature(np.zeros((0, 2)), [])


def test_calibration_changes_no_answer_and_lowers_the_loss(other_encoders):
    trained = train_classifier(
        FEW, base=other_encoders["electra"], method="full", epochs=10, learning_rate=0.02
    )
    sentences = labelled_sentences(EDITED.tail(20))
    before = trained.predict_proba(sentences.text.tolist())
    loss = training.validate(trained, sentences)["validation_loss"]
    tuned = calibrate(trained, sentences)
    assert training.validate(tuned, sentences)["validation_loss"] <= loss + 1e-6
    assert (
        tuned.predict_proba(sentences.text.tolist()).argmax(axis=1) == before.argmax(axis=1)
    ).all()
    assert math.isclose(calibrate(tuned, sentences).temperature, tuned.temperature, rel_tol=0.01)


@pytest.mark.all
def test_threads_and_batches_change_no_calibration(classifier):
    """Of a model that is not sure enough, so that its temperature is below 1."""
    import torch

    shy = classifier.own()
    texts = EDITED.source.head(12).tolist()
    sentences = labelled_sentences(EDITED.tail(30))
    head = [layer for layer in shy.model.modules() if isinstance(layer, torch.nn.Linear)][-1]
    with torch.no_grad():
        for weight in head.parameters(recurse=False):
            weight.div_(4)
    before = torch.get_num_threads()
    found = []
    try:
        for threads, batch in ((1, 1), (2, 7), (3, 64)):
            torch.set_num_threads(threads)
            tuned = calibrate(shy, sentences)
            found.append(
                [
                    tuned.temperature / shy.temperature,
                    *tuned.predict_proba(texts, batch_size=batch)[:, 0],
                ]
            )
    finally:
        torch.set_num_threads(before)
    assert 0.06 < found[0][0] < 1
    np.testing.assert_allclose(found, np.tile(found[0], (3, 1)), rtol=1e-4)


def rows(classes, n=30):
    return np.random.default_rng(classes).dirichlet(np.ones(classes), size=(2, n))


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_every_way_gives_what_pot_gives(classes):
    p, q = rows(classes)
    for cost in (
        cost_matrix(None, classes),
        ordered_cost(classes),
        np.arange(classes**2.0).reshape(classes, classes),
    ):
        expected = [ot.emd2(a, b, cost) for a, b in zip(p, q)]
        assert np.allclose(transport_distance(p, q, cost), expected, atol=1e-9)
    assert np.allclose(total_variation(p, q), np.abs(p - q).sum(axis=1) / 2, atol=1e-12)


def test_a_cost_that_does_not_fit_is_refused():
    for wrong in (np.ones((3, 3)), [[0, -1], [1, 0]], [[0, np.nan], [1, 0]]):
        with pytest.raises(ValueError, match="cost must be a"):
            cost_matrix(wrong, 2)


def test_each_row_has_its_target():
    p, q = rows(3, 2)
    before, after = target_probabilities(p, q, np.array([2, 0]))
    assert before.tolist() == [p[0, 2], p[1, 0]] and after.tolist() == [q[0, 2], q[1, 0]]
    for wrong, words in (
        ([0, 3], "row 1.*class 3 does not exist"),
        (0.5, "class index"),
        ([0, 1, 2], "class index"),
    ):
        with pytest.raises(ValueError, match=words):
            target_probabilities(p, q, wrong)


def test_few_texts_that_are_all_told_apart_make_nobody_sure():
    """n texts of a class are taken for (n + 1) / (n + 2) sure, as Platt 1999 has it."""
    labels = np.array([0, 1] * 20)
    probabilities = np.eye(2)[labels] * 0.98 + 0.01
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nothing is too sure of labels that are all right
        sure = temper(probabilities, fit_temperature(probabilities, labels)).max()
    smoothed = temper(probabilities, fit_temperature(probabilities, labels, smooth=True))
    assert sure > 0.999 and np.allclose(smoothed.max(axis=1), 21 / 22, atol=1e-3)
