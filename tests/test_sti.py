"""Earth Mover's Distance and the two intensities against solvers, axioms and published values."""
import numpy as np
import ot
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import linprog

from tsteval.sti import earth_movers_distance, normalized_intensity, style_transfer_intensity


@st.composite
def distributions(draw, rows=2, classes=None):
    """`rows` distributions over the same number of classes.

    Whole-number weights keep the solver's own tolerance (1e-7 on a constraint) out of the comparison.
    """
    classes = classes or draw(st.integers(2, 6))
    weights = draw(arrays(int, (rows, classes), elements=st.integers(0, 50))).astype(float)
    weights[weights.sum(axis=1) == 0, 0] = 1
    return weights / weights.sum(axis=1, keepdims=True)


def by_programme(p, q, cost):
    n = len(p)
    constraints = np.vstack([np.kron(np.eye(n), np.ones(n)), np.kron(np.ones(n), np.eye(n))])
    return linprog(np.ravel(cost), A_eq=constraints, b_eq=np.concatenate([p, q]), method="highs").fun


def test_published_value():
    assert abs(earth_movers_distance([0.98914, 0.01086], [0.01070, 0.98930])[0] - 0.9784) < 1e-4


@given(distributions())
@settings(max_examples=60, deadline=None)
def test_equals_the_linear_programme_and_pot(pair):
    p, q = pair
    cost = 1 - np.eye(len(p))
    ours = earth_movers_distance(p, q)[0]
    assert abs(ours - by_programme(p, q, cost)) < 1e-9
    assert abs(ours - ot.emd2(p, q, cost)) < 1e-9


@given(distributions(), st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_any_cost_equals_the_linear_programme(pair, seed):
    p, q = pair
    cost = np.random.default_rng(seed).uniform(0, 3, size=(len(p), len(p)))
    assert abs(earth_movers_distance(p, q, cost)[0] - by_programme(p, q, cost)) < 1e-9


@given(distributions(rows=3))
def test_metric_axioms(three):
    p, q, r = three[:, None]
    assert earth_movers_distance(p, p)[0] == 0
    assert earth_movers_distance(p, q)[0] == earth_movers_distance(q, p)[0]
    assert earth_movers_distance(p, q)[0] <= earth_movers_distance(p, r)[0] + earth_movers_distance(r, q)[0] + 1e-12


@given(distributions(classes=2), st.integers(0, 1))
def test_two_classes_are_a_signed_difference(pair, target):
    source, output = pair
    change = output[target] - source[target]
    assert np.isclose(style_transfer_intensity(source, output, target)[0], change, atol=1e-12)


@given(distributions(), st.data())
def test_normalized_intensity_is_bounded_and_signed(pair, data):
    source, output = pair
    target = data.draw(st.integers(0, len(source) - 1))
    share = normalized_intensity(source, output, target)[0]
    assert -1 <= share <= 1 and np.sign(share) == np.sign(output[target] - source[target])


def test_reports_two_cases_and_zero_room():
    before, after = [[0.1, 0.9], [0.9, 0.1], [0, 1], [0.5, 0.5]], [[0, 1], [0.8, 0.2], [0, 1], [0.5, 0.5]]
    assert np.allclose(normalized_intensity(before, after, 1), [1, 1 / 9, 0, 0])


def test_a_target_for_each_row():
    before, after = [[0.9, 0.1]] * 2, [[0.2, 0.8]] * 2
    assert np.allclose(style_transfer_intensity(before, after, [1, 0]), [0.7, -0.7])


@pytest.mark.parametrize("bad, words", [
    ([[0.5, 0.5], [0.7, 0.4]], "row 1: the probabilities sum to 1.1"),
    ([[1.2, -0.2], [0.5, 0.5]], "row 0: a negative"),
    ([[0.5, 0.5], [np.nan, 0.5]], "row 1: a value that is not a finite"),
    ([[1.0], [1.0]], "at least two"),
    (np.full((2, 2, 2), 0.5), "shape"),
])
def test_malformed_distributions_name_the_row(bad, words):
    good = [[0.5, 0.5]] * 2
    with pytest.raises(ValueError, match=words):
        earth_movers_distance(bad, good)
    with pytest.raises(ValueError, match="output"):
        style_transfer_intensity(good, bad, 0)


def test_shapes_and_targets_are_checked():
    two, three = [[0.5, 0.5]], [[0.5, 0.25, 0.25]]
    for function in (style_transfer_intensity, normalized_intensity):
        with pytest.raises(ValueError, match="shape"):
            function(two, three, 0)
        with pytest.raises(ValueError, match="row 0: class 2"):
            function(two, two, 2)
        with pytest.raises(ValueError, match="target"):
            function(two, two, [0, 1])
        with pytest.raises(ValueError, match="target"):
            function(two, two, 0.5)
    with pytest.raises(ValueError, match="cost"):
        earth_movers_distance(two, two, np.ones((3, 3)))


def test_no_rows():
    empty = np.zeros((0, 2))
    assert earth_movers_distance(empty, empty).shape == (0,)
