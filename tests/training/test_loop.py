"""The loop: batches, masks, the learning rate, early stopping, repetition."""

import math

import numpy as np
import pandas as pd
import pytest

from tsteval.style import (
    LABELS,
    StyleClassifier,
    Training,
    calibrate,
    labelled_sentences,
    load_pairs,
    train_classifier,
    train_on_sentences,
)
from tsteval.training import batches
from tsteval.training.trainer import rise_and_fall

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


@pytest.mark.ci
def test_training_repeats_itself_and_round_trips(tmp_path):
    first, second = (train_classifier(FEW, epochs=2, batch_size=4, seed=3) for _ in range(2))
    texts = list(FEW.source)
    assert np.array_equal(first.predict_proba(texts), second.predict_proba(texts))
    first = calibrate(first, labelled_sentences(FEW))
    first.save(tmp_path)
    loaded = StyleClassifier.load(str(tmp_path))
    assert np.allclose(loaded.predict_proba(texts), first.predict_proba(texts), atol=1e-5)
    assert loaded.temperature == first.temperature and loaded.labels == LABELS
    other = train_classifier(FEW, epochs=2, batch_size=4, seed=4)
    assert not np.allclose(other.predict_proba(texts), second.predict_proba(texts))


def test_a_control_teaches_neutral_and_no_order(other_encoders):
    """One control among the pairs adds one neutral sentence to the loss and no term to the ranking."""
    trained = train_classifier(FEW, base=other_encoders["electra"], method="full", epochs=1)
    mixed = pd.concat([FEW.head(2), PAIRS[PAIRS.source == PAIRS.target].head(1)], ignore_index=True)
    sentences = labelled_sentences(mixed)
    log_odds = np.log(trained.predict_proba(sentences.text.tolist())) @ [1, -1]
    cross_entropy = np.log1p(np.exp(np.where(sentences.label == 0, -log_odds, log_odds)))
    ranking = np.log1p(np.exp(log_odds[[1, 3]] - log_odds[[0, 2]]))
    expected = (cross_entropy * sentences.weight).mean() + 0.7 * ranking.mean()
    assert math.isclose(
        batches.batch_loss(trained, sentences, Training(ranking_weight=0.7)).item(),
        expected,
        rel_tol=1e-4,
    )


def test_batches_hold_whole_pairs_and_every_sentence_once():
    sentences = labelled_sentences(PAIRS.head(50))
    for shuffle in (True, False):
        dealt = list(
            batches.deal_batches(
                sentences, Training(batch_size=8, shuffle=shuffle), np.random.default_rng(0)
            )
        )
        assert sorted(index for batch in dealt for index in batch.index) == list(
            range(len(sentences))
        )
        assert all(batch.pair.nunique() <= 8 for batch in dealt) and len(dealt) == 7
        owners = [set(batch.pair) for batch in dealt]
        assert len(set.union(*owners)) == sum(map(len, owners))
    assert dealt[0].index.tolist() == list(range(len(dealt[0])))


def test_masking_hides_words_and_nothing_else(classifier):
    import torch

    torch.manual_seed(0)
    texts = [*PAIRS.source[:40], ""]
    tokenizer = classifier.tokenizer
    sentences = pd.DataFrame({"text": texts})
    whole, masked = (batches._encode_masked(classifier, sentences, share) for share in (0.0, 0.5))
    changed = whole["input_ids"] != masked["input_ids"]
    special = torch.isin(whole["input_ids"], torch.tensor(tokenizer.all_special_ids))
    assert (masked["input_ids"][changed] == tokenizer.mask_token_id).all() and not (
        changed & special
    ).any()
    assert 0.45 < changed.sum() / (~special).sum() < 0.55


def test_the_learning_rate_rises_and_falls():
    for steps in (1, 2, 10, 11, 200):
        shares = [rise_and_fall(step, steps) for step in range(steps)]
        peak = shares.index(max(shares))
        assert (
            max(shares) == 1
            and peak <= steps / 10
            and shares == sorted(shares[:peak]) + sorted(shares[peak:])[::-1]
        )
        assert abs(rise_and_fall(steps, steps)) < 1e-9 or steps == 1


def test_early_stopping_keeps_the_best_epoch(other_encoders):
    validation = EDITED[EDITED.split == "validation"].head(10)
    stopped = train_classifier(
        FEW,
        validation,
        base=other_encoders["electra"],
        method="full",
        learning_rate=0.05,
        batch_size=2,
        ranking_weight=0,
        epochs=40,
        patience=2,
    )
    losses = stopped.history.validation_loss
    assert len(losses) == losses.idxmin() + 2 < 40
    again = batches.validate(stopped, labelled_sentences(validation))
    assert math.isclose(again["validation_loss"], losses.min(), rel_tol=1e-5)


def test_three_classes_from_sentences():
    sentences = pd.DataFrame(
        {"text": ["one star", "three stars", "five stars"] * 4, "label": [0, 1, 2] * 4}
    )
    trained = train_on_sentences(
        sentences, ("bad", "so-so", "good"), learning_rate=5e-3, epochs=12, batch_size=6
    )
    probabilities = trained.predict_proba(["one star", "three stars", "five stars"])
    assert probabilities.shape == (3, 3) and (probabilities.argmax(axis=1) == [0, 1, 2]).all()
    assert trained.labels == ("bad", "so-so", "good")
