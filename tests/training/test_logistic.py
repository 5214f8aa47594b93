"""The logistic curve: its fit is the best there is, its folds see nothing of each other, and nothing overflows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsteval.training.logistic import cross_validated, fit_even_logistic, fit_logistic, logistic

# curves


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.floats(0, 3))
def test_fit_is_at_the_maximum(seed, ridge):
    """The penalised likelihood falls in every direction from the fit."""
    random = np.random.default_rng(seed)
    features = random.normal(size=(60, 2)) * [1, 50] + [0, 100]
    labels = (random.random(60) < 1 / (1 + np.exp(-features[:, 0]))).astype(int)
    labels[:2] = 0, 1
    mean = features.mean(0)
    scale = features.std(0)

    def loss(intercept, coefficients):
        p = logistic(features, intercept, coefficients)
        return -np.sum(np.log(np.where(labels == 1, p, 1 - p))) + ridge / 2 * np.sum(
            (coefficients * scale) ** 2
        )

    intercept, coefficients = fit_logistic(features, labels, ridge)
    best = loss(intercept, coefficients)
    for step in (
        [0.01, 0, 0],
        [-0.01, 0, 0],
        [0, 0.01, 0],
        [0, -0.01, 0],
        [0, 0, 0.01],
        [0, 0, -0.01],
    ):
        moved = np.array(step[1:]) / scale
        assert loss(intercept + step[0] - moved @ mean, coefficients + moved) > best


def test_fit_refuses_what_has_no_answer():
    with pytest.raises(ValueError, match="both 0 and 1"):
        fit_logistic([1.0, 2.0], [1, 1])
    with pytest.raises(ValueError, match="finite"):
        fit_logistic([1.0, np.nan], [0, 1])
    with pytest.raises(ValueError, match="more than one value"):
        fit_logistic([1.0, 1.0], [0, 1])
    with pytest.raises(ValueError, match="folds"):
        cross_validated([1.0, 2, 3, 4], [0, 1, 0, 1], [0, 0, 1, 1], folds=3)


def test_perfectly_separable_examples_have_a_finite_fit():
    _, coefficients = fit_logistic([0.0, 1, 2, 3], [0, 0, 1, 1])
    assert np.isfinite(coefficients).all() and coefficients[0] > 0


def test_cross_validation_does_not_see_the_held_out_group():
    """With as many folds as groups, each group is predicted by a fit to all the others."""
    features = np.random.default_rng(0).normal(size=(24, 2))
    labels = np.tile([0, 1, 1], 8)
    groups = np.repeat(list("abcdefgh"), 3)
    found = cross_validated(features, labels, groups, folds=8)
    for group in "abcdefgh":
        rows = groups == group
        assert np.allclose(
            found[rows], logistic(features[rows], *fit_logistic(features[~rows], labels[~rows]))
        )


def test_a_curve_of_shares_meets_their_mean():
    shares = np.array([0.1, 0.4, 0.3, 0.9, 0.6])
    intercept, coefficients = fit_logistic(np.arange(5.0), shares, ridge=0)
    found = logistic(np.arange(5.0), intercept, coefficients)
    assert np.isclose(found.sum(), shares.sum()) and np.isclose(
        found @ np.arange(5), shares @ np.arange(5)
    )


def test_no_curve_overflows():
    assert logistic([-1000.0, 1000.0], 0, [1.0]).tolist() == [0, 1]
    loud = fit_logistic([-1e6, -1.0, 1.0, 1e6], [0, 0, 1, 1])
    assert np.isfinite(loud[0]) and np.isfinite(loud[1]).all()


def test_an_even_curve_undoes_the_ratio_of_the_labels():
    rng = np.random.default_rng(0)
    values = np.concatenate(
        [rng.normal(1, 1, 5000), rng.normal(-1, 1, 15_000)]
    )  # log odds of two such bells: 2 * value
    intercept, slope = fit_even_logistic(values, np.arange(20_000) < 5000)
    assert abs(intercept) < 0.1 and abs(slope - 2) < 0.1


@pytest.mark.parametrize(
    "form", [list, tuple, lambda labels: labels.astype(int), lambda labels: labels.astype(float)]
)
def test_an_even_curve_takes_labels_in_any_form(form):
    values = np.arange(12.0)
    labels = np.arange(12) % 5 > 2
    assert fit_even_logistic(values, form(labels)) == fit_even_logistic(values, labels)
