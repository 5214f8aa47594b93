"""Teaching words: marks against difflib by hand, the loss against plain formulas, a gradient, the bias, and a run."""

import numpy as np
import pandas as pd
import pytest
import torch

from tests.models import tiny
from tsteval.core.checks import InputError
from tsteval.models.classifier import base_model
from tsteval.style import StyleClassifier, calibrate
from tsteval.training.batches import Training
from tsteval.training.loop import train_on_sentences
from tsteval.training.words import add_bias, fit_bias, mark_edits, word_loss, word_precision

WORDS = {"method": "words", "pooling": "words", "modules": ("query", "value"), "rank": 2}
PAIRS = [
    ("the stunning bridge was old .", "the bridge was old ."),
    ("a cat sat .", "the cat sat ."),
    ("the dog ran .", "the old dog ran ."),
]


def sentences(pairs=tuple(PAIRS)):
    return pd.DataFrame(
        [
            {"text": text, "label": label, "pair": number}
            for number, pair in enumerate(pairs)
            for label, text in enumerate(pair)
        ]
    )


@pytest.fixture
def judge(tmp_path):
    tiny.save(tmp_path, "bert", "AutoModel")
    return StyleClassifier(*base_model(tmp_path, ("loud", "plain"), "words"), "bert")


def test_marks_say_what_the_editor_changed():
    encoded = tiny.tokenizer()([text for pair in PAIRS for text in pair], padding=True)
    marks = mark_edits(encoded, [0, 2, 4], [1, 3, 5], [1, 3, 5])
    assert (
        marks[0][1:7].tolist() == [0, 1, 0, 0, 0, 0]
        and np.isnan(marks[0][0])
        and np.isnan(marks[0][7])
    )
    assert marks[2][1:5].tolist() == [1, 0, 0, 0]
    assert np.isnan(marks[4]).all()  # a word was added, none of the source's was touched
    assert not marks[[1, 3, 5]].any()


def test_the_loss_is_the_weighted_cross_entropy_by_hand():
    scores = torch.tensor([[0.5, -1.0, -1e4]])
    marks = np.array([[1.0, 0.0, 0.0]])
    shifted = np.array([0.5, -1.0]) + np.log(5)
    expected = (5 * np.log1p(np.exp(-shifted[0])) + np.log1p(np.exp(shifted[1]))) / 2
    assert word_loss(scores, marks, 5.0).item() == pytest.approx(expected, rel=1e-6)
    assert word_loss(scores, np.full((1, 3), np.nan), 5.0).item() == 0


@pytest.mark.parametrize("weight", [1.0, 5.0])
def test_the_score_of_a_token_is_its_log_odds_whatever_the_weight(weight):
    """Of tokens that look alike a tenth is edited: the best score is the log-odds of a tenth."""
    score = torch.zeros(1, requires_grad=True)
    marks = np.array([[1.0, *[0.0] * 9]])
    optimizer = torch.optim.LBFGS([score], max_iter=100)

    def closure():
        optimizer.zero_grad()
        loss = word_loss(score.expand(1, 10), marks, weight)
        loss.backward()
        return loss

    optimizer.step(closure)
    assert score.item() == pytest.approx(np.log(0.1 / 0.9), abs=1e-2)


def test_the_bias_makes_the_mean_probability_right_and_moves_every_token(judge):
    log_odds = np.array([3.0, 1.0, 2.0, 5.0])
    labels = np.array([0, 1, 1, 0])
    bias = fit_bias(log_odds, labels)
    assert (1 / (1 + np.exp(-(log_odds + bias)))).mean() == pytest.approx(0.5, abs=1e-3)
    moved = add_bias(judge, 0.7)
    for before, after in zip(judge.token_scores(tiny.TEXTS), moved.token_scores(tiny.TEXTS)):
        assert np.allclose(after[1:-1] - before[1:-1], 0.7, atol=1e-5)
    with pytest.raises(InputError, match="no sentences"):
        fit_bias(np.zeros(0), np.zeros(0))


def test_calibration_is_the_bias(judge):
    tuned = calibrate(judge, sentences())
    shift = tuned.predict_logits(tiny.TEXTS)[:, 0] - judge.predict_logits(tiny.TEXTS)[:, 0]
    assert np.allclose(shift, shift[0], atol=1e-4) and tuned.temperature == 1.0
    assert tuned.validation["texts"] == 6


def test_precision_counts_the_sources_whose_strongest_word_was_edited(judge):
    found = word_precision(judge, sentences())
    assert found.chance.tolist() == [1 / 6, 1 / 4]  # the pair without an edited word is left out
    for hit, (source, _), edited in zip(found.hit, PAIRS, (1, 0)):
        assert hit == (np.argmax(judge.token_scores([source])[0][1:-1]) == edited)
    with pytest.raises(InputError, match="scores whole texts"):
        word_precision(StyleClassifier(tiny.module("bert"), tiny.tokenizer(), "plain"), sentences())


def test_words_are_learnt_and_the_file_holds_them(tmp_path):
    tiny.save(tmp_path / "encoder", "bert", "AutoModel")
    many = sentences(
        [*PAIRS[:2], ("a stunning dog ran .", "a dog ran ."), ("a stunning mat .", "a mat .")] * 4
    )
    made = train_on_sentences(
        many,
        ("loud", "plain"),
        base=str(tmp_path / "encoder"),
        epochs=50,
        batch_size=4,
        learning_rate=1e-2,
        hidden_dropout=0.0,
        **{**WORDS, "modules": ("query", "key", "value", "dense")},
    )
    assert made.history.loss.iloc[-1] < 0.6 * made.history.loss.iloc[0]
    assert word_precision(made, many).hit.mean() > 2 * word_precision(made, many).chance.mean()
    made.save(tmp_path / "judge")
    read = StyleClassifier.load(tmp_path / "judge")
    assert read.scores_words and np.allclose(
        read.predict_proba(tiny.TEXTS), made.predict_proba(tiny.TEXTS), atol=1e-5
    )


@pytest.mark.parametrize(
    "wrong", [{"method": "words"}, {"pooling": "words"}, {**WORDS, "word_weight": 0.0}]
)
def test_settings_that_do_not_go_together(wrong):
    with pytest.raises(InputError):
        Training(**wrong)
