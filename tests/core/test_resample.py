"""The one bootstrap: draws, intervals, coverage, paired tests, Holm."""

import tracemalloc
from itertools import product

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from tsteval.bleu import bleu_from_statistics, bleu_statistics
from tsteval.core.checks import InputError
from tsteval.core.resample import (
    FEWEST,
    approximate_randomization,
    bootstrap_interval,
    has_spread,
    holm,
    mean_of_sums,
    mean_statistics,
    p_value,
    paired_bootstrap,
    paired_test,
    percentiles,
    poisson_sums,
    resample_counts,
    resample_sums,
    steady,
    student_interval,
)


def test_sums_are_those_of_the_drawn_rows():
    statistics = np.random.default_rng(0).normal(size=(7, 3))
    generator = np.random.default_rng(5)
    expected = [statistics[generator.integers(7, size=7)].sum(axis=0) for _ in range(20)]
    assert np.allclose(resample_sums(statistics, 20, seed=5), expected)


def test_draws_depend_on_the_seed_and_the_number_of_rows_alone():
    narrow = np.arange(9.0)[:, None]
    wide = np.random.default_rng(0).normal(size=(9, 4))
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


@pytest.mark.all
def test_intervals_cover_what_they_promise():
    generator = np.random.default_rng(0)
    hits = 0
    for trial in range(400):
        low, high = bootstrap_interval(
            mean_statistics(generator.normal(3, 2, size=60)), n_resamples=400, seed=trial
        )[1:3]
        hits += low <= 3 <= high
    assert 0.915 <= hits / 400 <= 0.975  # nominal 95%; two standard errors of 400 trials are 0.022


def test_undefined_values_belong_to_no_mean():
    interval = bootstrap_interval(mean_statistics([1.0, np.nan, 3.0, np.inf]), n_resamples=50)
    assert interval.score == 2 and 1 <= interval.low <= interval.high <= 3
    nothing = bootstrap_interval(mean_statistics([np.nan, np.nan]), n_resamples=5)
    assert np.isnan(nothing.score) and np.isnan(nothing.low) and np.isnan(nothing.mean)
    assert all(np.isnan(percentiles(np.array([np.nan]))))


def _cut(rows, size):
    return (rows[start : start + size] for start in range(0, len(rows), size))


@pytest.mark.parametrize("size", [1, 7, 1000, 1024, 1025, 5000])
def test_poisson_sums_do_not_depend_on_how_rows_are_cut(size):
    rows = np.random.default_rng(0).normal(size=(3000, 3))
    assert np.array_equal(
        poisson_sums(_cut(rows, size), 150, seed=4), poisson_sums([rows], 150, seed=4)
    )
    with_empty = [np.zeros((0, 3)), rows[:size], np.zeros((0, 3)), rows[size:]]
    assert np.array_equal(poisson_sums(with_empty, 150, seed=4), poisson_sums([rows], 150, seed=4))


def test_parts_of_a_table_add_up():
    rows = np.random.default_rng(0).integers(0, 9, size=(2500, 2)).astype(float)
    parts = [
        poisson_sums([part], 140, 3, first_row=first)
        for first, part in ((0, rows[:700]), (700, rows[700:1900]), (1900, rows[1900:]))
    ]
    assert np.array_equal(
        sum(parts), poisson_sums([rows], 140, 3)
    )  # whole numbers, so no rounding hides a difference


def test_a_poisson_weight_belongs_to_its_row_and_resample():
    weights = poisson_sums([np.eye(60)], 300, seed=2)
    assert np.array_equal(
        poisson_sums([np.eye(40)], 300, seed=2), weights[:, :40]
    )  # rows that follow change nothing
    assert np.array_equal(
        poisson_sums([np.eye(60)], 130, seed=2), weights[:130]
    )  # nor do further resamples
    assert not np.array_equal(poisson_sums([np.eye(60)], 300, seed=3), weights)
    assert not np.array_equal(poisson_sums([np.eye(60)], 300, seed=2, first_row=1024), weights)


def test_weights_are_independent_poisson_numbers_of_mean_one():
    weights = poisson_sums(
        [np.eye(1100)[:, 1000:]], 6000, seed=11
    )  # rows on both sides of a chunk's end
    found = np.bincount(np.minimum(weights.astype(int).ravel(), 7), minlength=8)
    expected = scipy.stats.poisson(1).pmf(np.arange(8))
    expected[7] = 1 - expected[:7].sum()
    assert scipy.stats.chisquare(found, expected * weights.size).pvalue > 0.001
    between = np.corrcoef(weights.T)[np.triu_indices(100, 1)]  # of 4,950 pairs of rows
    assert abs(between.mean()) < 5 / (6000 * 4950) ** 0.5 and np.abs(between).max() < 6 / 6000**0.5
    along = np.corrcoef(weights)[
        np.triu_indices(1000, 1)[0], np.triu_indices(1000, 1)[1]
    ]  # of pairs of resamples
    assert abs(along.mean()) < 5 / (100 * len(along)) ** 0.5


def test_rare_weights_are_as_rare_as_they_should_be():
    # 6.1 million draws; parts of the table that two numbers share matter here
    weights = poisson_sums([np.eye(1024)], 6000).ravel()
    for number in (6, 7, 8):
        expected = scipy.stats.poisson(1).pmf(number) * weights.size
        assert abs((weights == number).sum() - expected) < 4 * expected**0.5
    assert 8 <= weights.max() <= 13


def test_given_their_total_poisson_weights_are_a_bootstrap_draw():
    weights = poisson_sums([np.eye(4)], 50_000, seed=5)
    drawn = weights[weights.sum(axis=1) == 4].astype(int)
    outcomes, found = np.unique(drawn, axis=0, return_counts=True)
    assert len(outcomes) == 35  # all ways to draw four times from four rows
    expected = scipy.stats.multinomial(4, [0.25] * 4).pmf(outcomes) * len(drawn)
    assert scipy.stats.chisquare(found, expected).pvalue > 0.001
    counts = np.vstack(list(resample_counts(np.arange(4), len(drawn), seed=5))).astype(int)
    assert scipy.stats.chi2_contingency([found, _times(counts, outcomes)]).pvalue > 0.001


def _times(counts, outcomes):
    codes = counts @ 5 ** np.arange(4)
    known = outcomes @ 5 ** np.arange(4)
    return [(codes == code).sum() for code in known]


def test_both_bootstraps_give_a_mean_the_same_distribution():
    rows = mean_statistics(np.random.default_rng(0).gamma(2, size=400))
    poisson, drawn = (
        mean_of_sums(sums) for sums in (poisson_sums([rows], 4000, 1), resample_sums(rows, 4000, 2))
    )
    error = drawn.std()
    assert abs(poisson.mean() - drawn.mean()) < 4 * error * (2 / 4000) ** 0.5
    assert (
        abs(poisson.std() / error - 1) < 0.06
    )  # four standard errors of a ratio of two spreads of 4,000 draws
    assert scipy.stats.ks_2samp(poisson, drawn).pvalue > 0.001


def test_both_bootstraps_give_bleu_the_same_interval():
    generator = np.random.default_rng(3)
    words = ["the", "a", "cat", "sat", "on", "mat", "old", "red", "house", "there"]
    references = [" ".join(generator.choice(words, 9)) for _ in range(600)]
    outputs = [
        " ".join(word if generator.random() < 0.8 else "dog" for word in text.split())
        for text in references
    ]
    rows = bleu_statistics(outputs, references)
    scores = [
        bleu_from_statistics(poisson_sums([rows], 3000, 1)),
        bleu_from_statistics(resample_sums(rows, 3000, 2)),
    ]
    width = np.ptp(percentiles(scores[1]))
    assert np.allclose(percentiles(scores[0]), percentiles(scores[1]), atol=0.1 * width)
    assert scipy.stats.ks_2samp(*scores).pvalue > 0.001


def test_poisson_intervals_cover_what_they_promise():
    samples = np.random.default_rng(0).normal(
        3, 2, size=(60, 400)
    )  # 400 studies of 60 rows, one a column
    sums = poisson_sums([np.column_stack([samples, np.ones(60)])], 400)
    low, high = np.quantile(sums[:, :-1] / sums[:, -1:], [0.025, 0.975], axis=0)
    # nominal 95%; two standard errors of 400 studies are 0.022
    assert 0.915 <= ((low <= 3) & (high >= 3)).mean() <= 0.975


def test_pairs_stay_pairs_under_poisson_weights():
    rows = np.random.default_rng(1).normal(size=(3000, 1))
    shifted = np.column_stack([rows + 1, np.ones(3000)])
    both = [
        poisson_sums(_cut(table, size), 50, 9)
        for table, size in ((np.column_stack([rows, np.ones(3000)]), 100), (shifted, 999))
    ]
    assert np.allclose(mean_of_sums(both[1]) - mean_of_sums(both[0]), 1)


def test_memory_does_not_grow_with_blocks_that_stream():
    peaks = []
    for n_blocks in (10, 60):
        tracemalloc.start()
        poisson_sums((np.ones((500, 4)) for _ in range(n_blocks)), 300)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1e7 and peaks[1] < peaks[0] + 1e5


@pytest.mark.parametrize(
    "blocks", [[], [np.zeros((0, 2))], [np.zeros(3)], [np.zeros((2, 2)), np.zeros((2, 3))], [5]]
)
def test_poisson_sums_of_blocks_that_do_not_fit(blocks):
    with pytest.raises(InputError, match="statistics must have"):
        poisson_sums(blocks)


@pytest.mark.parametrize(
    "options", [{"n_resamples": 0}, {"seed": -1}, {"first_row": -5}, {"n_resamples": 2.5}]
)
def test_senseless_poisson_options(options):
    with pytest.raises(InputError, match=next(iter(options))):
        poisson_sums([np.ones((3, 2))], **options)


@pytest.mark.parametrize("statistics", [np.zeros((0, 2)), np.zeros(3), 5])
def test_statistics_without_rows(statistics):
    with pytest.raises(InputError, match="one row a sentence"):
        resample_sums(statistics)


@pytest.mark.parametrize(
    "options", [{"n_resamples": 0}, {"level": 1.0}, {"level": 0}, {"n_resamples": 2.5}]
)
def test_senseless_options(options):
    with pytest.raises(InputError, match=next(iter(options))):
        bootstrap_interval(np.ones((3, 2)), **options)


def test_a_system_is_never_different_from_itself():
    rows = mean_statistics(np.random.default_rng(0).normal(size=30))
    assert (
        paired_bootstrap(rows, rows).p_value == 1
        and approximate_randomization(rows, rows, n_trials=50).p_value == 1
    )


def test_tests_are_antisymmetric_and_agree_with_the_t_test():
    generator = np.random.default_rng(1)
    a = generator.normal(size=100)
    b = a - 0.15 + generator.normal(0, 0.6, size=100)
    one = mean_statistics(a)
    two = mean_statistics(b)
    there = paired_bootstrap(one, two, n_resamples=4000)
    back = paired_bootstrap(two, one, n_resamples=4000)
    assert (
        np.isclose(there.difference, -back.difference)
        and np.isclose(there.low, -back.high)
        and there.p_value == back.p_value
    )
    expected = scipy.stats.ttest_rel(a, b).pvalue
    for found in (there, approximate_randomization(one, two, n_trials=4000)):
        assert abs(found.p_value - expected) < 0.02


def test_different_sentences_are_not_compared():
    with pytest.raises(InputError, match="same sentences"):
        paired_bootstrap(np.ones((3, 2)), np.ones((4, 2)))


def test_p_values_count_the_observed_difference():
    assert (
        p_value(np.array([0.0, 0.0, 0.0]), 1.0) == 0.25
        and p_value(np.array([1.0, -1.0]), 1.0) == 1
        and np.isnan(p_value(np.ones(2), np.nan))
    )


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
@settings(max_examples=60)
def test_holm_follows_its_definition(p_values):
    found = holm(p_values)
    order = np.argsort(p_values, kind="stable")
    expected = np.empty(len(p_values))
    highest = 0.0
    for place, row in enumerate(order):
        highest = max(highest, p_values[row] * (len(p_values) - place))
        expected[row] = min(1, highest)
    assert np.allclose(found, expected) and (found >= np.array(p_values) - 1e-15).all()
    assert (found <= np.minimum(1, np.array(p_values) * len(p_values)) + 1e-12).all()


def test_holm_refuses_what_is_no_probability():
    with pytest.raises(InputError, match=r"0..1"):
        holm([0.5, 1.5])


# ---- few sentences


def _times_ratio(sums):
    return sums[..., 0] / sums[..., 1]


@pytest.mark.parametrize("kind", ["normal", "skewed", "five steps", "right or wrong", "ratio"])
def test_tests_of_few_sentences_keep_their_level_and_intervals_hold_the_truth(kind):
    """A fast version of the notebook's tables; `paired_test` swaps below 30 sentences and resamples above."""
    draw = {
        "normal": lambda g, n: g.normal(size=n),
        "skewed": lambda g, n: g.exponential(size=n),
        "five steps": lambda g, n: g.integers(1, 6, n),
        "right or wrong": lambda g, n: g.random(n) < 0.75,
        "ratio": lambda g, n: g.integers(3, 9, n),
    }[kind]
    for n in (2, 3, 5, 10, 20, 50):
        generator = np.random.default_rng(n)
        alarms = 0
        held = 0
        for _ in range(120):
            a, b = (mean_statistics(np.asarray(draw(generator, n), dtype=float)) for _ in range(2))
            if kind == "ratio":
                a[:, 1], b[:, 1] = generator.integers(10, 20, (2, n))
            found = paired_test(
                a, b, _times_ratio if kind == "ratio" else mean_of_sums, n_samples=200
            )
            alarms = alarms + (found.p_value <= 0.05)
            held = held + (found.low <= 0 <= found.high)
        assert alarms <= (0 if n < FEWEST else 14), (
            n,
            alarms,
        )  # of 120: 6 are allowed, 14 come up once in 500
        assert held >= 100 or (kind == "right or wrong" and n < 20), (n, held)  # 114 are promised


def test_all_swaps_are_made_where_they_are_few():
    a, b = np.random.default_rng(3).normal(size=(2, 6))
    found = approximate_randomization(mean_statistics(a), mean_statistics(b))
    signs = np.array(list(product([-1, 1], repeat=6)))
    assert found.n_samples == 64
    assert found.p_value == np.mean(np.abs(signs @ (a - b)) >= abs((a - b).sum()) - 1e-12)


def test_undefined_sentences_leave_the_count():
    generator = np.random.default_rng(0)
    a, b = generator.normal(size=(2, 40)) + np.array([[0.0], [3.0]])
    a[20:] = np.nan
    assert (
        paired_test(mean_statistics(a), mean_statistics(b)).method
        == "swaps, and Student's interval"
    )
    assert paired_test(mean_statistics(b), mean_statistics(b)).method == "paired bootstrap"
    alarms = 0
    for _ in range(
        200
    ):  # 30 sentences of which 15% have a value: resamples called a fifth of equal systems different
        sides = [
            mean_statistics(
                np.where(generator.random(30) < 0.15, generator.normal(size=30), np.nan)
            )
            for _ in "ab"
        ]
        alarms += paired_test(*sides, n_samples=200).p_value <= 0.05
    assert alarms <= 20


@pytest.mark.filterwarnings("ignore:with 10 sentences")
def test_a_resample_without_a_value_never_speaks_for_a_difference():
    a = np.full(10, np.nan)
    b = np.random.default_rng(1).normal(size=10)
    a[0] = 9.0
    assert (
        paired_bootstrap(mean_statistics(a), mean_statistics(b)).p_value > 0.3
    )  # a third of them draw no row of a


def test_students_interval_is_scipys():
    values = np.random.default_rng(2).normal(size=9)
    rows = mean_statistics(values)
    found = student_interval(mean_of_sums(rows.sum(axis=0) - rows), values.mean(), 0.9)
    assert found == pytest.approx(
        scipy.stats.t.interval(0.9, 8, values.mean(), scipy.stats.sem(values))
    )
    assert np.isnan(student_interval(np.array([np.nan]), 1.0)).all()


@pytest.mark.parametrize("unit", [1.0, 1e6, 1e-6])
@pytest.mark.parametrize("n", [8, 40])
def test_the_noise_of_floats_is_no_difference(unit, n):
    a = mean_statistics(np.full(n, 0.3) * unit)
    b = mean_statistics(np.full(n, 0.1 + 0.2) * unit)
    for compared in (paired_test(a, b), approximate_randomization(a, b, n_trials=500)):
        assert compared.difference == 0
        assert compared.p_value == 1
    test = paired_test(b, a)
    assert (test.low, test.high) == (0, 0)


def test_what_is_spread_and_what_is_noise():
    assert not has_spread(np.full(9, 0.04) * 3 / 3)
    assert not has_spread(np.array([0.3, 0.1 + 0.2]))
    assert not has_spread(np.zeros(3))
    assert has_spread(np.array([0.0, 5e-324]))
    assert has_spread(np.array([1.0, 1.0 + 1e-8]))
    assert steady(np.array([0.1 + 0.2])).tolist() == [0.3]
    assert steady(np.array([5e-324, -1e300, 7.0])) == pytest.approx([5e-324, -1e300, 7.0], 1e-12)
