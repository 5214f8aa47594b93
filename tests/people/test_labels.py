"""AUC and average precision against scikit-learn, by hand where it has no answer for ties, and over resamples"""

from itertools import permutations

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from tsteval.core.checks import InputError
from tsteval.core.resample import resample_counts
from tsteval.people.labels import auc, average_precision, weighted_auc

GENERATOR = np.random.default_rng(3)
LABELS = GENERATOR.integers(0, 2, 60)
SCORES = (LABELS + GENERATOR.normal(size=60)).round(1)  # with ties


def test_auc_is_the_peers():
    assert auc(SCORES, LABELS, n_boot=2).value == pytest.approx(roc_auc_score(LABELS, SCORES))
    assert auc(np.zeros(4), [0, 1, 0, 1], n_boot=2).value == 0.5
    assert auc([1, 2, 3], [0, 0, 1], n_boot=2).value == 1


def test_auc_of_a_resample_is_that_of_its_rows_written_out():
    groups = np.arange(60) // 3
    for counts in resample_counts(groups, 50, seed=1):
        values = weighted_auc(counts, SCORES, LABELS == 1)
        for row, value in zip(counts.astype(int), values):
            expected = roc_auc_score(np.repeat(LABELS, row), np.repeat(SCORES, row))
            assert value == pytest.approx(expected)


def test_the_interval_widens_where_rows_depend_on_each_other():
    copies = np.tile(np.arange(60), 5)
    alone = auc(SCORES[copies], LABELS[copies], n_boot=400)
    together = auc(SCORES[copies], LABELS[copies], copies, n_boot=400)
    assert alone.value == together.value
    assert together.high - together.low > 1.8 * (alone.high - alone.low)


def test_precision_is_the_peers_where_nothing_ties():
    scores = GENERATOR.permutation(60).astype(float)
    expected = average_precision_score(LABELS, scores)
    assert average_precision(scores, LABELS == 1) == pytest.approx(expected)


def test_ties_are_broken_in_every_order():
    labels = np.array([True, False, True, False, True])
    scores = np.array([3.0, 2, 2, 2, 1])
    orders = [[0, *middle, 4] for middle in permutations((1, 2, 3))]
    expected = np.mean(
        [average_precision_score(labels[order], [5, 4, 3, 2, 1]) for order in orders]
    )
    assert average_precision(scores, labels) == pytest.approx(expected)


@pytest.mark.parametrize("labels", [[0, 0, 0], [0, 1, 2], [0.5, 1, 0]])
def test_other_labels_are_refused(labels):
    with pytest.raises(InputError, match="labels"):
        auc([1, 2, 3], labels)
