"""Means from few ratings and many scores: held against statsmodels, glide-py and populations whose truth is known."""

import math

import numpy as np
import pytest
from scipy.stats import t

from tsteval.core.checks import InputError
from tsteval.people.estimators import difference, estimate_mean, ratings_needed


def population(n=2000, r=0.6, seed=0, rated=60):
    generator = np.random.default_rng(seed)
    score = generator.normal(size=n)
    rating = 3 + r * score + math.sqrt(1 - r * r) * generator.normal(size=n)
    return score, rating, np.where(np.arange(n) < rated, rating, np.nan)


def test_without_helpful_scores_it_is_students_interval():
    _, rating, some = population()
    found = estimate_mean(some, np.full(2000, 7.0))
    known = rating[:60]
    reach = t.ppf(0.975, 59) * known.std(ddof=1) / math.sqrt(60)
    assert np.allclose(
        [found.mean, found.low, found.high],
        [known.mean(), known.mean() - reach, known.mean() + reach],
    )
    assert found.labels_worth == pytest.approx(60) and found.r == 0 and found.scored_variance == 0


def test_the_plain_error_by_source_is_that_of_statsmodels():
    import statsmodels.api as sm

    _, _rating, some = population()
    groups = np.arange(2000) // 3
    found = estimate_mean(some, np.zeros(2000), groups)
    fitted = sm.OLS(some[:60], np.ones(60)).fit(
        cov_type="cluster", cov_kwds={"groups": groups[:60]}
    )
    assert np.isclose(found.error**2, fitted.cov_params()[0, 0], rtol=1e-9)


def test_with_a_score_it_is_the_regression_estimator_of_statsmodels_to_a_hundredth():
    import statsmodels.api as sm

    score, rating, some = population()
    found = estimate_mean(some, score)
    fitted = sm.OLS(rating[:60], sm.add_constant(score[:60])).fit(cov_type="HC3")
    here = np.array([1, score.mean()])
    variance = here @ fitted.cov_params() @ here + fitted.params[1] ** 2 * score.var() / 2000
    assert abs(found.mean - here @ fitted.params) < 0.01 * found.error
    assert np.isclose(found.error, math.sqrt(variance), rtol=0.03)


def test_the_arithmetic_is_that_of_glide():
    glide = pytest.importorskip(
        "glide.estimators", reason="glide-py needs Python 3.12; pip install glide-py there"
    )
    for seed in range(5):
        score, _, some = population(seed=seed, rated=200)
        found = estimate_mean(some, score)
        theirs = glide.PPIMeanEstimator().estimate(some, score)
        # theirs takes the variance of all scores for the slope, and no row out
        assert abs(found.mean - theirs.mean) < 0.15 * found.error
        assert np.isclose(found.error, theirs.std, rtol=0.03)
        assert np.isclose(found.labels_worth, theirs.effective_sample_size, rtol=0.06)


def test_units_signs_and_the_order_of_rows_do_not_matter():
    score, _, some = population()
    turned = np.random.default_rng(1).permutation(2000)
    found = estimate_mean(some, score, np.arange(2000) // 2)
    again = estimate_mean(some[turned], -1e4 - 300 * score[turned], (np.arange(2000) // 2)[turned])
    assert np.allclose(
        [found.mean, found.low, found.high, found.r], [again.mean, again.low, again.high, again.r]
    )


@pytest.mark.parametrize("r, low, high", [(0.0, 58, 64), (0.5, 72, 84), (0.8, 130, 172)])
def test_labels_are_worth_what_the_correlation_says(r, low, high):
    worth = [
        estimate_mean(population(10_000, r, seed)[2], population(10_000, r, seed)[0]).labels_worth
        for seed in range(40)
    ]
    assert low < np.median(worth) < high  # 60 / (1 - r^2): 60, 80, 167


@pytest.mark.parametrize("columns", [1, 6])
def test_intervals_hold_the_truth_as_often_as_they_say(columns):
    held = []
    for seed in range(400):
        score, _, some = population(1000, 0.5, seed, 40)
        noise = np.random.default_rng(1000 + seed).normal(size=(1000, columns - 1))
        found = estimate_mean(some, np.column_stack([score, noise]))
        held.append(found.low <= 3 <= found.high)
    assert 0.915 <= np.mean(held) <= 0.985  # .95, within three standard errors and a little


def test_many_useless_scores_do_not_pretend_to_help():
    worth = []
    for seed in range(60):
        _, _, some = population(500, 0, seed, 30)
        worth.append(
            estimate_mean(some, np.random.default_rng(seed).normal(size=(500, 8))).labels_worth
        )
    assert np.median(worth) == pytest.approx(30) and np.mean(worth) < 36


def test_rows_of_one_source_count_as_one_draw():
    _, _, some = population(2000, rated=120)
    values = np.repeat(some[:20], 6)  # six rows that say the same
    table = np.concatenate([values, np.full(1000, np.nan)])
    groups = np.concatenate([np.repeat(np.arange(20), 6), np.arange(100, 1100)])
    found = estimate_mean(table, np.zeros(1120), groups)
    assert np.isclose(found.error, some[:20].std(ddof=1) / math.sqrt(20))
    assert estimate_mean(table, np.zeros(1120)).error < found.error / 2


def test_probabilities_undo_an_unequal_draw():
    generator = np.random.default_rng(3)
    means = []
    for _ in range(300):
        rating = generator.normal(3, 1, 1000)
        chance = np.where(rating > 3, 0.2, 0.05)
        some = np.where(generator.random(1000) < chance, rating, np.nan)
        means.append(
            [
                estimate_mean(some, np.zeros(1000), inclusion=chance).mean - rating.mean(),
                np.nanmean(some) - rating.mean(),
            ]
        )
    weighted, bare = np.mean(means, axis=0)
    assert abs(weighted) < 0.03 and bare > 0.3


def test_an_interval_never_leaves_the_scale():
    ratings = np.where(np.arange(200) < 12, 5.0, np.nan)
    ratings[0] = 4
    found = estimate_mean(ratings, np.zeros(200), scale=(1, 5))
    assert found.high == 5 and found.low < found.mean <= 5
    assert estimate_mean(ratings, np.zeros(200)).high > 5


def test_few_or_equal_ratings_give_a_mean_and_no_interval():
    score, _, some = population(rated=5)
    found = estimate_mean(some, score)
    assert (
        math.isnan(found.low)
        and found.mean == found.mean_of_ratings
        and math.isnan(found.labels_worth)
    )
    equal = estimate_mean(np.where(np.arange(2000) < 50, 4.0, np.nan), score)
    assert math.isnan(equal.low) and equal.mean == 4


def test_a_missing_score_is_the_mean_score_and_an_infinite_one_is_refused():
    score, _, some = population()
    filled = score.copy()
    missing = score.copy()
    missing[::7] = np.nan
    filled[::7] = np.nanmean(missing)
    assert estimate_mean(some, missing).mean == pytest.approx(
        estimate_mean(some, filled).mean, abs=1e-12
    )
    with pytest.raises(InputError, match=r"scores.*row 3.*infinite|infinite.*row 3|row 3"):
        estimate_mean(some, np.where(np.arange(2000) == 3, np.inf, score))


@pytest.mark.parametrize(
    "wrong",
    [{"ratings": [math.nan] * 9}, {"level": 1.0}, {"inclusion": [0.0] * 9}, {"scores": [1.0] * 8}],
)
def test_what_is_refused(wrong):
    with pytest.raises(InputError):
        estimate_mean(**({"ratings": np.arange(9.0), "scores": np.arange(9.0)} | wrong))


def test_differences_are_paired_by_source():
    score, rating, some = population()
    other = np.where(
        np.isnan(some), np.nan, rating + 0.2 + 0.1 * np.random.default_rng(5).normal(size=2000)
    )
    a = estimate_mean(other, score)
    b = estimate_mean(some, score)
    told = difference(a, b)
    assert told.low < 0.2 < told.high and told.high - told.low < 0.1 and told.p_value < 1e-6
    turned = difference(b, a)
    assert np.allclose(
        [turned.difference, turned.low, turned.high], [-told.difference, -told.high, -told.low]
    )
    assert np.isclose(difference(a, a).difference, 0)


def test_the_planner_tells_what_the_width_takes():
    score, rating, some = population(10_000)
    pilot = estimate_mean(some, score)
    assert abs(ratings_needed(pilot, pilot.high - pilot.low) - 60) <= 1
    n = int(ratings_needed(pilot, 0.25))
    wide = estimate_mean(np.where(np.arange(10_000) < n, rating, np.nan), score)
    assert 0.21 < wide.high - wide.low < 0.29
    assert ratings_needed(pilot, 1e-3) == math.inf
    with pytest.raises(InputError, match="width"):
        ratings_needed(pilot, 0)
