"""Joint scores, and fronts that nobody dominates."""

import numpy as np
import pytest

from tsteval.core.checks import InputError
from tsteval.people.pareto import dominates, joint_scores, pareto_front


def test_joint_scores_by_pencil():
    found = joint_scores([0.9, 0.5], [0.8, 0.8], [0.6, 0.8], thresholds=(0.5, 0.8, 0.8))
    assert np.allclose(found["product"], [0.432, 0.32]) and np.allclose(
        found.geometric_mean**3, found["product"]
    )
    assert found.passes.tolist() == [0, 1]
    with pytest.raises(InputError, match=r"content, row 1: 1.2 is not in 0..1"):
        joint_scores([0.1, 0.1], [0.1, 1.2], [0.1, 0.1])
    with pytest.raises(InputError, match="three numbers"):
        joint_scores([0.1], [0.1], [0.1], thresholds=(0.5,))


def test_the_front_is_who_nobody_dominates():
    points = np.random.default_rng(2).integers(0, 4, size=(30, 3))
    slow = [
        not any((other >= point).all() and (other > point).any() for other in points)
        for point in points
    ]
    assert pareto_front(points).tolist() == slow and not dominates(points[0], points[0])
