"""Costs, distances of many rows and the target's probability, as chapter 8 uses them."""
import numpy as np
import ot
import pytest

from tsteval.core.distributions import (
    cost_matrix,
    ordered_cost,
    target_probabilities,
    total_variation,
    transport_distance,
)


def rows(classes, n=30):
    return np.random.default_rng(classes).dirichlet(np.ones(classes), size=(2, n))


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_every_way_gives_what_pot_gives(classes):
    p, q = rows(classes)
    for cost in (cost_matrix(None, classes), ordered_cost(classes), np.arange(classes**2.0).reshape(classes, classes)):
        expected = [ot.emd2(a, b, cost) for a, b in zip(p, q)]
        assert np.allclose(transport_distance(p, q, cost), expected, atol=1e-9)
    assert np.allclose(total_variation(p, q), np.abs(p - q).sum(axis=1) / 2, atol=1e-12)


def test_a_cost_that_does_not_fit_is_refused():
    for wrong in (np.ones((3, 3)), [[0, -1], [1, 0]], [[0, np.nan], [1, 0]]):
        with pytest.raises(ValueError, match="cost must be a"): cost_matrix(wrong, 2)


def test_each_row_has_its_target():
    p, q = rows(3, 2)
    before, after = target_probabilities(p, q, np.array([2, 0]))
    assert before.tolist() == [p[0, 2], p[1, 0]] and after.tolist() == [q[0, 2], q[1, 0]]
    for wrong, words in (([0, 3], "row 1.*class 3 does not exist"), (0.5, "class index"), ([0, 1, 2], "class index")):
        with pytest.raises(ValueError, match=words): target_probabilities(p, q, wrong)
