"""Reports on errors: by class, controls, twins, length."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import confusion_matrix as sklearn_matrix
from sklearn.metrics import precision_recall_fscore_support

from tsteval import style
from tsteval.core.checks import InputError
from tsteval.style import (
    LABELS,
    accuracy_by_length,
    class_report,
    confusion_matrix,
    evaluate_classifier,
    labelled_sentences,
    order_accuracy,
    score_sentences,
    worst_errors,
)
from tsteval.training.errors import doubtful_pairs

from .files import pairs_frame


class Answers:
    """Stands in for a classifier: gives each text the probability of the first class that a table names."""

    def __init__(self, first):
        self.first = first

    def predict_proba(self, texts, second=None, batch_size=32, progress=False):
        first = np.array([self.first[text] for text in texts])
        return np.column_stack([first, 1 - first])


@settings(deadline=None)  # the first call may take long on a busy machine
@given(
    st.integers(2, 4),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=40),
)
def test_report_and_matrix_equal_those_of_scikit_learn(classes, rows):
    scored = pd.DataFrame(rows, columns=["label", "predicted"]) % classes
    names = tuple("abcd"[:classes])
    expected = precision_recall_fscore_support(
        scored.label, scored.predicted, labels=range(classes), zero_division=0
    )
    assert np.allclose(class_report(scored, names).to_numpy().T, expected)
    peer = sklearn_matrix(scored.label, scored.predicted, labels=range(classes))
    assert (confusion_matrix(scored, names).to_numpy() == peer).all()


def test_controls_are_counted_apart():
    pairs = pd.DataFrame({"source": ["s1", "s2", "c"], "target": ["t1", "t2", "c"]})
    result = evaluate_classifier(
        Answers({"s1": 0.9, "t1": 0.2, "s2": 0.4, "t2": 0.3, "c": 0.8}), pairs
    )
    assert result == {
        "accuracy": 0.75,
        "pairwise_accuracy": 1.0,
        "n_pairs": 2,
        "control_accuracy": 0.0,
        "n_controls": 1,
    }
    assert math.isnan(
        evaluate_classifier(Answers({"s1": 0.9, "t1": 0.2}), pairs.head(1))["control_accuracy"]
    )


def test_ties_and_lone_sentences():
    scored = pd.DataFrame(
        {
            "pair": [0, 0, 1, 1, 2],
            "label": [0, 1, 0, 1, 1],
            "probability": [0.5, 0.5, 0.7, 0.6, 0.9],
        }
    )
    assert (
        order_accuracy(scored) == 0.75
    )  # a tie counts as half: who never decides is a coin, not always wrong
    assert style.in_order(scored).tolist() == [0.5, 1]
    assert math.isnan(order_accuracy(scored.tail(1)))


def test_worst_errors_stand_beside_their_twins():
    pairs = pd.DataFrame({"source": ["s1", "s2", "c"], "target": ["t1", "t2", "c"]})
    scored = score_sentences(
        Answers({"s1": 0.9, "t1": 0.7, "s2": 0.4, "t2": 0.3, "c": 0.8}), labelled_sentences(pairs)
    )
    errors = worst_errors(scored, LABELS, n=5)
    assert errors.text.tolist() == ["c", "t1", "s2"] and errors.twin.tolist() == ["", "s1", "t2"]
    assert errors.error.tolist() == ["neutral, taken for subjective"] * 2 + [
        "subjective, taken for neutral"
    ]
    assert np.isnan(errors.twin_probability[0]) and errors.twin_probability.tolist()[1:] == [
        0.9,
        0.3,
    ]


def test_accuracy_by_length():
    scored = pd.DataFrame(
        {"text": ["word " * n for n in range(1, 41)], "label": 0, "predicted": [0] * 20 + [1] * 20}
    )
    table = accuracy_by_length(scored, groups=4)
    assert table.accuracy.tolist() == [1, 1, 0, 0] and table.sentences.tolist() == [10] * 4
    assert table[["shortest", "longest"]].to_numpy().tolist() == [
        [1, 10],
        [11, 20],
        [21, 30],
        [31, 40],
    ]
    assert (
        (table.low >= 0)
        & (table.low <= table.accuracy)
        & (table.accuracy <= table.high)
        & (table.high <= 1)
    ).all()
    assert (table.high - table.low > 0.2).all()


@pytest.mark.parametrize(
    "lengths, groups, expected",
    [
        ([3] * 6, 5, [6]),
        ([3], 5, [1]),
        ([], 5, []),
        ([1, 1, 1, 1, 9], 5, [4, 1]),
        ([1, 2, 3, 4], 1, [4]),
    ],
)
def test_accuracy_by_length_of_texts_that_are_equally_long(lengths, groups, expected):
    scored = pd.DataFrame({"text": ["word " * n for n in lengths], "label": 0, "predicted": 0})
    table = accuracy_by_length(scored, groups=groups)
    assert table.sentences.tolist() == expected and table.accuracy.tolist() == [1] * len(expected)


def encode(texts):
    """Counts of letters."""
    return np.array([[text.count(letter) for letter in "aeinost"] for text in texts], dtype=float)


@pytest.fixture
def pairs():
    return pairs_frame(60)


def test_turned_pairs_come_first(pairs):
    turned = [3, 17, 40]
    pairs.loc[turned, ["source", "target"]] = pairs.loc[turned, ["target", "source"]].to_numpy()
    found = doubtful_pairs(pairs, encode)
    assert set(found.index[:3]) == set(turned) and set(found.index[found.doubtful]) == set(turned)
    assert (
        sorted(found.index) == list(range(60)) and (found.source == pairs.source[found.index]).all()
    )


def test_a_pair_is_judged_without_itself_and_its_twins(pairs):
    """Where every pair differs by a word of its own, a judge that saw the pair would know its side; this one cannot."""
    rng = np.random.default_rng(0)
    own = pd.DataFrame(
        {
            "source": [f"The {n}x mill." for n in range(200)],
            "target": [f"The {n}y mill." for n in range(200)],
        }
    )
    found = doubtful_pairs(
        pd.concat([own] * 3, ignore_index=True), lambda texts: rng.normal(size=(len(texts), 4))
    )
    assert 0.4 < (found.by_words < 0).mean() < 0.6


def test_equal_sides_are_left_out_and_too_few_are_refused(pairs):
    pairs.loc[:4, "target"] = pairs.source[:5]
    assert sorted(doubtful_pairs(pairs, encode).index) == list(range(5, 60))
    with pytest.raises(InputError, match=r"15 pairs of 15 sources.*a review takes 20"):
        doubtful_pairs(pairs.head(20), encode)
    with pytest.raises(InputError, match="no column target"):
        doubtful_pairs(pairs[["source"]], encode)
    with pytest.raises(TypeError, match="row 2"):
        doubtful_pairs(pairs.assign(source=[*pairs.source[:2], None, *pairs.source[3:]]), encode)
