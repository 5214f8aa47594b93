"""Agreement with people: Fisher's interval, Williams' test, pairs with ties, raters' noise, and the power of a
study."""

from itertools import combinations

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from tsteval import agreement
from tsteval.agreement import (
    calibrate_ties,
    compare_correlations,
    comparison_power,
    corrected_correlation,
    correlation,
    fisher_interval,
    pairwise_accuracy,
    spearman_brown,
    williams_test,
)
from tsteval.core.checks import InputError


def test_the_chapters_interface():
    for name in (
        "correlation",
        "Correlation",
        "williams_test",
        "compare_correlations",
        "partial_correlation",
        "within_correlation",
        "agreement_table",
        "forest",
        "load_ratings",
        "reliability",
        "raters_alpha",
    ):
        assert name in agreement.__all__ and hasattr(agreement, name)


def test_fishers_interval_is_scipys():
    x, y = np.random.default_rng(0).normal(size=(2, 40))
    peer = scipy.stats.pearsonr(x, y + x)
    for level in (0.8, 0.95):
        assert fisher_interval(peer.statistic, 40, level) == pytest.approx(
            tuple(peer.confidence_interval(level)), abs=1e-9
        )
    assert fisher_interval(-1, 10) == (-1, -1)
    for wrong in ((1.1, 10), (0.5, 3), (0.5, 10, 1.0)):
        with pytest.raises(InputError):
            fisher_interval(*wrong)


# published: Silver, Hittner and May 2006 (also a test of the R package cocor); Howell, Statistical Methods for
# Psychology, 6th edition,
# page 262; Steiger 1980, case A, as the R package psych prints it (r.test(103, .4, .5, .1))
@pytest.mark.parametrize(
    "r_xy, r_zy, r_xz, n, t, p, digits",
    [
        (0.3, 0.4, 0.5, 100, -1.0767, 0.2843, 4),
        (0.80, 0.72, 0.89, 26, 1.361, 0.187, 3),
        (0.4, 0.5, 0.1, 103, -0.89, 0.37, 2),
    ],
)
def test_williams_test_on_published_cases(r_xy, r_zy, r_xz, n, t, p, digits):
    found = williams_test(r_xy, r_zy, r_xz, n)
    assert (round(float(found[0]), digits), round(float(found[1]), digits)) == (t, p)


def test_williams_test_against_another_writing_of_the_formula():
    """Hendrickson, Stanley and Hills 1970 write it with the determinant of the correlation matrix; here by NumPy, to
    1e-9."""
    generator = np.random.default_rng(0)
    for _ in range(50):
        n = int(generator.integers(5, 300))
        r = np.corrcoef(generator.normal(size=(3, 3)) @ generator.normal(size=(3, 50)))
        top = (r[0, 1] - r[1, 2]) * np.sqrt((n - 1) * (1 + r[0, 2]))
        bottom = np.sqrt(
            2 * (n - 1) / (n - 3) * np.linalg.det(r)
            + (r[0, 1] + r[1, 2]) ** 2 / 4 * (1 - r[0, 2]) ** 3
        )
        t, p = williams_test(r[0, 1], r[1, 2], r[0, 2], n)
        assert t == pytest.approx(top / bottom, abs=1e-9, rel=1e-9) and p == pytest.approx(
            2 * scipy.stats.t.sf(abs(top / bottom), n - 3), rel=1e-6
        )


def test_williams_test_edges():
    assert williams_test(0.5, 0.5, 1.0, 30) == (0, 1)
    t, p = williams_test(np.array([0.3, 0.4]), np.array([0.4, 0.3]), 0.5, 100)
    assert t[0] == pytest.approx(-t[1]) and p[0] == pytest.approx(p[1])
    with pytest.raises(InputError, match="no three columns"):
        williams_test(0.9, -0.9, 0.9, 50)
    with pytest.raises(InputError, match="n must be"):
        williams_test(0.5, 0.4, 0.5, 3)
    for opposite in (0.5, 1.0):
        with pytest.raises(InputError, match="nothing to compare"):
            williams_test(opposite, -opposite, -1.0, 30)
    assert williams_test(0.5, 0.5 + 1e-16, 1.0, 30) == (0, 1) and williams_test(
        0.0, 0.0, -1.0, 30
    ) == (0, 1)


def test_williams_test_keeps_its_level_with_few_outputs():
    for n in (4, 6, 10, 30):
        generator = np.random.default_rng(n)
        human = generator.normal(size=(2000, n))
        a, b = (human + generator.normal(size=(2000, n)) for _ in range(2))
        r = np.array(
            [np.corrcoef([x, z, y])[[0, 1, 0], [2, 2, 1]] for x, z, y in zip(a, b, human)]
        ).T
        assert (williams_test(*r, n)[1] <= 0.05).mean() < 0.07


def test_fishers_interval_holds_the_truth_with_few_outputs():
    for n in (4, 6, 10, 30):
        generator = np.random.default_rng(n)
        x, noise = generator.normal(size=(2, 1000, n))
        ends = np.array(
            [
                fisher_interval(np.corrcoef(one, 0.5 * one + 0.75**0.5 * other)[0, 1], n)
                for one, other in zip(x, noise)
            ]
        )
        assert 0.93 < ((ends[:, 0] <= 0.5) & (ends[:, 1] >= 0.5)).mean() < 0.97


def test_williams_and_its_rival_agree_on_independent_normal_rows():
    generator = np.random.default_rng(3)
    for scale in (1.2, 1.5, 2.5):
        human = generator.normal(size=300)
        a = human + generator.normal(size=300)
        b = human + scale * generator.normal(size=300)
        r = np.corrcoef([a, b, human])
        by_test = williams_test(r[0, 2], r[1, 2], r[0, 1], 300)[1]
        by_draws = compare_correlations(a, b, human, n_boot=1000).p_value
        assert abs(by_test - by_draws) < 0.06


# ---- pairs

rows = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(0, 2)), min_size=3, max_size=14
)


def naive_accuracy(metric, human, groups, epsilon):
    shares = []
    for group in sorted(set(groups)):
        pairs = list(combinations([place for place, one in enumerate(groups) if one == group], 2))
        right = 0
        for i, j in pairs:
            said = 0 if abs(metric[i] - metric[j]) <= epsilon else np.sign(metric[i] - metric[j])
            right += said == np.sign(human[i] - human[j])
        if pairs:
            shares.append(right / len(pairs))
    return np.mean(shares) if shares else np.nan


@settings(max_examples=150, deadline=None)
@given(rows)
def test_pairwise_accuracy_and_its_best_threshold_by_brute_force(table):
    metric, human, groups = (list(column) for column in zip(*table))
    for epsilon in (0, 1, 2.5):
        assert pairwise_accuracy(metric, human, groups, epsilon) == pytest.approx(
            naive_accuracy(metric, human, groups, epsilon), nan_ok=True
        )
    if max(groups.count(group) for group in groups) < 2:
        return
    every = {epsilon: naive_accuracy(metric, human, groups, epsilon) for epsilon in range(6)}
    found = calibrate_ties(metric, human, groups)
    assert found.accuracy == pytest.approx(max(every.values())) and every[
        found.epsilon
    ] == pytest.approx(found.accuracy)
    assert found.epsilon == min(
        epsilon for epsilon, share in every.items() if share == pytest.approx(found.accuracy)
    )


def test_accuracy_of_a_perfect_metric_and_of_its_opposite():
    human = [1, 2, 2, 5, 3]
    # the tie
    assert pairwise_accuracy(human, human) == pytest.approx(1) and pairwise_accuracy(
        [-one for one in human], human
    ) == pytest.approx(0.1)
    assert calibrate_ties([0.1, 0.5, 0.6], [1, 2, 2]) == (pytest.approx(0.1), 1)
    assert np.isnan(pairwise_accuracy([1, 2, 3], [1, 2, 3], groups=[0, 1, 2]))
    with pytest.raises(InputError, match="no pair"):
        calibrate_ties([1, 2, 3], [1, 2, 3], groups=["a", "b", "c"])
    with pytest.raises(InputError, match="epsilon"):
        pairwise_accuracy([1, 2, 3], [1, 2, 3], epsilon=-1)


def test_a_missing_group_is_refused_as_by_correlation():
    columns = [1, 2, 3, 4], [2, 1, 4, 3]
    for groups in (["a", None, "b", "c"], [1, np.nan, 2, 3]):
        for one in (pairwise_accuracy, calibrate_ties, correlation):
            with pytest.raises(InputError, match=r"groups, row 1.*the group is missing"):
                one(*columns, groups=groups)


# ---- raters and power


def test_spearman_brown_and_the_correction():
    assert spearman_brown(0.5, 3) == pytest.approx(0.75) and spearman_brown(
        0.75, 1 / 3
    ) == pytest.approx(0.5)
    assert corrected_correlation(0.6, 0.64) == pytest.approx(0.75)
    with pytest.raises(InputError, match="cannot all"):
        spearman_brown(-0.6, 3)
    with pytest.raises(InputError):
        corrected_correlation(0.5, 0)


def test_spearman_brown_describes_means_of_simulated_raters():
    generator = np.random.default_rng(0)
    truth = generator.normal(size=(20_000, 1))
    halves = [(truth + generator.normal(size=(20_000, 4)) * 1.5).mean(axis=1) for _ in range(2)]
    assert np.corrcoef(*halves)[0, 1] == pytest.approx(spearman_brown(1 / 3.25, 4), abs=0.02)


def test_power_grows_with_the_study_and_is_the_level_where_metrics_are_equal():
    curve = comparison_power(0.6, 0.4, 0.7, (20, 60, 180), n_simulations=300)
    assert (
        curve.power.is_monotonic_increasing
        and curve.power.iloc[-1] > 0.9
        and (curve.low <= curve.power).all()
    )
    same = comparison_power(0.5, 0.5, 0.7, (100,), n_simulations=1000)
    assert 0.03 < same.power[0] < 0.075
    with pytest.raises(InputError, match="no three columns"):
        comparison_power(0.9, -0.9, 0.9)
    with pytest.raises(InputError, match="a size"):
        comparison_power(0.5, 0.4, 0.5, (5,))
