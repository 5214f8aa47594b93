"""The one bootstrap: draws, intervals, coverage, paired tests, Holm."""
import tracemalloc

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings, strategies as st

from tsteval.core.checks import InputError
from tsteval.core.resample import (approximate_randomization, bootstrap_interval, holm, mean_of_sums, mean_statistics, p_value,
                                   paired_bootstrap, percentiles, resample_sums)


def test_sums_are_those_of_the_drawn_rows():
    statistics = np.random.default_rng(0).normal(size=(7, 3))
    generator = np.random.default_rng(5)
    expected = [statistics[generator.integers(7, size=7)].sum(axis=0) for _ in range(20)]
    assert np.allclose(resample_sums(statistics, 20, seed=5), expected)


def test_draws_depend_on_the_seed_and_the_number_of_rows_alone():
    narrow, wide = np.arange(9.0)[:, None], np.random.default_rng(0).normal(size=(9, 4))
    wide[:, 2] = narrow[:, 0]
    assert np.array_equal(resample_sums(narrow, 30, 1)[:, 0], resample_sums(wide, 30, 1)[:, 2])
    assert not np.array_equal(resample_sums(narrow, 30, 1), resample_sums(narrow, 30, 2))


def test_memory_does_not_grow_with_the_resamples():
    statistics = mean_statistics(np.random.default_rng(0).normal(size=50_000))
    peaks = []
    for n_resamples in (20, 200):
        tracemalloc.start()
        resample_sums(statistics, n_resamples)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 4e6 and peaks[1] < peaks[0] + 1e5


def test_intervals_cover_what_they_promise():
    generator, hits = np.random.default_rng(0), 0
    for trial in range(400):
        low, high = bootstrap_interval(mean_statistics(generator.normal(3, 2, size=60)), n_resamples=400, seed=trial)[1:3]
        hits += low <= 3 <= high
    assert 0.915 <= hits / 400 <= 0.975  # nominal 95%; two standard errors of 400 trials are 0.022


def test_undefined_values_belong_to_no_mean():
    interval = bootstrap_interval(mean_statistics([1.0, np.nan, 3.0, np.inf]), n_resamples=50)
    assert interval.score == 2 and 1 <= interval.low <= interval.high <= 3
    nothing = bootstrap_interval(mean_statistics([np.nan, np.nan]), n_resamples=5)
    assert np.isnan(nothing.score) and np.isnan(nothing.low) and np.isnan(nothing.mean)
    assert all(np.isnan(percentiles(np.array([np.nan]))))


@pytest.mark.parametrize("statistics", [np.zeros((0, 2)), np.zeros(3), 5])
def test_statistics_without_rows(statistics):
    with pytest.raises(InputError, match="one row a sentence"):
        resample_sums(statistics)


@pytest.mark.parametrize("options", [{"n_resamples": 0}, {"level": 1.0}, {"level": 0}, {"n_resamples": 2.5}])
def test_senseless_options(options):
    with pytest.raises(InputError, match=next(iter(options))):
        bootstrap_interval(np.ones((3, 2)), **options)


def test_a_system_is_never_different_from_itself():
    rows = mean_statistics(np.random.default_rng(0).normal(size=30))
    assert paired_bootstrap(rows, rows).p_value == 1 and approximate_randomization(rows, rows, n_trials=50).p_value == 1


def test_tests_are_antisymmetric_and_agree_with_the_t_test():
    generator = np.random.default_rng(1)
    a = generator.normal(size=100)
    b = a - 0.15 + generator.normal(0, 0.6, size=100)
    one, two = mean_statistics(a), mean_statistics(b)
    there, back = paired_bootstrap(one, two, n_resamples=4000), paired_bootstrap(two, one, n_resamples=4000)
    assert np.isclose(there.difference, -back.difference) and np.isclose(there.low, -back.high) and there.p_value == back.p_value
    expected = scipy.stats.ttest_rel(a, b).pvalue
    for found in (there, approximate_randomization(one, two, n_trials=4000)):
        assert abs(found.p_value - expected) < 0.02


def test_different_sentences_are_not_compared():
    with pytest.raises(InputError, match="same sentences"):
        paired_bootstrap(np.ones((3, 2)), np.ones((4, 2)))


def test_p_values_count_the_observed_difference():
    assert p_value(np.array([0.0, 0.0, 0.0]), 1.0) == 0.25 and p_value(np.array([1.0, -1.0]), 1.0) == 1 and np.isnan(p_value(np.ones(2), np.nan))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
@settings(max_examples=60)
def test_holm_follows_its_definition(p_values):
    found, order = holm(p_values), np.argsort(p_values, kind="stable")
    expected, highest = np.empty(len(p_values)), 0.0
    for place, row in enumerate(order):
        highest = max(highest, p_values[row] * (len(p_values) - place))
        expected[row] = min(1, highest)
    assert np.allclose(found, expected) and (found >= np.array(p_values) - 1e-15).all()
    assert (found <= np.minimum(1, np.array(p_values) * len(p_values)) + 1e-12).all()


def test_holm_refuses_what_is_no_probability():
    with pytest.raises(InputError, match="0..1"):
        holm([0.5, 1.5])
