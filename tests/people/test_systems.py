"""Many systems at once: ranks, clusters, power, agreement with people; joint scores; galleries; the ratings of Lai et
al."""

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from tsteval.core.checks import InputError
from tsteval.core.resample import mean_statistics, paired_bootstrap, resample_rows, resample_sums
from tsteval.people.systems import (
    _draw_clusters,
    compare_all,
    kendall_tau,
    permutation_p,
    power_curve,
    rank_systems,
    resampled_scores,
    sentences_needed,
    system_agreement,
)
from tsteval.report.charts import Means, distribution_plot, trade_off


@pytest.fixture(scope="module")
def systems():
    generator = np.random.default_rng(0)
    shared = generator.normal(size=60)
    return {
        name: mean_statistics(level + shared + 0.5 * generator.normal(size=60))
        for name, level in {"good": 1.0, "fair": 0.5, "also fair": 0.5, "poor": -1.0}.items()
    }


# ---- core.resample, people.systems


def test_rows_of_resamples_are_those_of_the_sums():
    values = np.random.default_rng(3).normal(size=(20, 2))
    sums = [values[rows].sum(axis=0) for rows in resample_rows(20, 7, seed=5)]
    assert np.allclose(sums, resample_sums(values, 7, seed=5))
    assert [len(rows) for rows in resample_rows(20, 2, size=50)] == [50, 50]


def test_all_pairs_are_the_paired_bootstrap(systems):
    compared = compare_all(systems, n_samples=500, seed=3)
    assert len(compared) == 6 and (compared.difference >= 0).all()
    for row in compared.itertuples():
        one = paired_bootstrap(systems[row.better], systems[row.worse], n_resamples=500, seed=3)
        assert np.allclose(
            [row.difference, row.low, row.high, row.p_bootstrap],
            [one.difference, one.low, one.high, one.p_value],
        )
    assert (
        compared.holm_bootstrap >= compared.p_bootstrap
    ).all() and compared.holm_bootstrap.max() <= 1


@pytest.mark.parametrize("n", [3, 5, 10, 20])
def test_equal_systems_of_few_sentences_are_rarely_told_apart(n):
    generator = np.random.default_rng(n)
    alarms = 0
    held = 0
    for _ in range(150):
        drawn = {name: mean_statistics(generator.normal(size=n)) for name in "ab"}
        pair = compare_all(drawn, n_samples=200).iloc[0]
        alarms += pair.p_randomization <= 0.05
        held += pair.low <= 0 <= pair.high
        assert np.isnan(pair.p_bootstrap) and (
            n > 5 or rank_systems(drawn, n_samples=50).cluster.max() == 1
        )
    assert alarms <= 16 and held >= 134  # of 150: 7.5 and 142.5 are promised


def test_orders_of_systems_keep_the_level():
    generator = np.random.default_rng(5)
    alarms = 0
    for _ in range(300):
        alarms += permutation_p(*generator.normal(size=(2, 6))) <= 0.05
    assert alarms <= 27


def test_a_low_score_may_be_the_better_one(systems):
    up = rank_systems(systems, n_samples=200)
    down = rank_systems(systems, lower=True, n_samples=200)
    assert (
        up.system[0] == down.system[3] == "good" and (down["rank"].to_numpy() == [1, 2, 3, 4]).all()
    )


def test_ranks_and_clusters(systems):
    ranked = rank_systems(systems, n_samples=500).set_index("system")
    assert ranked.cluster.to_dict() == {"good": 1, "fair": 2, "also fair": 2, "poor": 3}
    assert (ranked.rank_low <= ranked["rank"]).all() and (ranked["rank"] <= ranked.rank_high).all()
    assert (
        ranked.rank_high["fair"] == ranked.rank_high["also fair"] == 3
        and ranked.rank_high["good"] == 1
    )


def test_a_line_is_drawn_only_where_all_above_beat_all_below():
    compared = pd.DataFrame(
        {"better": ["a", "a", "b"], "worse": ["b", "c", "c"], "holm_bootstrap": [0.3, 0.01, 0.3]}
    )
    assert _draw_clusters(["a", "b", "c"], compared) == [1, 1, 1]  # a beats c, yet b links them
    assert _draw_clusters(["a", "b", "c"], compared.assign(holm_bootstrap=[0.3, 0.01, 0.01])) == [
        1,
        1,
        2,
    ]


def test_systems_need_the_same_sentences(systems):
    with pytest.raises(InputError, match="same sentences; good has shape"):
        resampled_scores({"good": systems["good"], "short": systems["good"][:5]})
    with pytest.raises(InputError, match="no system"):
        resampled_scores({})
    with pytest.raises(InputError, match="only one has poor"):
        system_agreement({name: systems[name] for name in ("good", "fair", "also fair")}, systems)


def test_power_follows_the_formula_and_keeps_the_level(systems):
    curve = power_curve(
        systems["good"], systems["fair"], (10, 20, 40), n_simulations=150, n_trials=200
    )
    gap = systems["good"][:, 0] - systems["fair"][:, 0]
    assert (
        np.abs(
            curve.power - scipy.stats.norm.cdf(np.sqrt(curve.n) * gap.mean() / gap.std() - 1.96)
        ).max()
        < 0.15
    )
    centred = systems["good"].copy()
    centred[:, 0] -= gap.mean()  # no difference is left
    assert (
        power_curve(centred, systems["fair"], (40,), n_simulations=150, n_trials=200).power[0]
        < 0.12
    )


def test_sentences_needed():
    curve = pd.DataFrame({"n": [10, 100, 1000], "power": [0.2, 0.6, 1.0]})
    assert np.isclose(sentences_needed(curve), 100 * 10**0.5) and sentences_needed(curve, 0.1) == 10
    assert np.isnan(sentences_needed(curve.head(2)))


def test_kendall_is_scipys():
    generator = np.random.default_rng(1)
    for k in (3, 6, 9):
        x, y = generator.normal(size=(2, k)).round(1)
        assert np.isclose(kendall_tau(x, y), scipy.stats.kendalltau(x, y).statistic)
        order = generator.permutation(k)
        other = generator.permutation(k)
        theirs = scipy.stats.kendalltau(order, other, method="exact").pvalue
        assert abs(permutation_p(order, other) - theirs) < (1e-12 if k <= 8 else 0.02)
    assert np.isnan(kendall_tau([1, 1, 1], [1, 2, 3])) and np.isnan(
        permutation_p([1, 1, 1], [1, 2, 3])
    )
    with pytest.raises(InputError, match="two or more systems"):
        kendall_tau([1], [1])


def test_agreement_pairs_systems_by_name(systems):
    turned = dict(reversed(systems.items()))
    found = system_agreement(turned, systems, n_resamples=200)
    assert (
        found.tau == found.low == found.high == 1
        and np.isclose(found.p_value, 2 / 24)
        and found.systems == 4
    )


# ---- people.pareto

# ---- pictures and galleries


def test_the_front_is_drawn_and_told():
    x = [0, 1, 0.5, 0.2]
    y = [1, 0, 0.5, 0.2]
    names = list("abcd")

    def stairs(chart):
        return [line for line in chart.axes[0].lines if line.get_gid() == "stairs"]

    chart = trade_off(x, y, names, means=Means(front=["a", "b", "c"]))
    assert "not dominated: a, b, c" in chart.alt
    (border,) = stairs(chart)
    assert border.get_xydata()[1:4].tolist() == [[0, 1], [0.5, 0.5], [1, 0]]
    assert not stairs(trade_off(x, y, names, means=Means())) and not stairs(trade_off(x, y, names))


def test_distributions_have_medians_and_escape_names():
    chart = distribution_plot({"<b>one": [0, 0, 1], "two": [0.5, np.nan, 0.7]}, "a score")
    assert "median 0.000" in chart.alt and "two\u200e (2), median 0.600" in chart.alt
    assert "<b>" not in chart.svg and "&lt;b&gt;one" in chart.svg
    for groups in ({}, {"a": []}, {name: [1] for name in "abcde"}):
        with pytest.raises(InputError, match="one to 4 groups"):
            distribution_plot(groups, "x")


def test_few_sentences_give_ranks_that_the_tests_tell_apart():
    noise = np.array([0.00, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.09])
    values = {"best": noise + 0.9, "middle": noise[::-1] + 0.5, "twin": noise + 0.5}
    ranked = rank_systems({name: mean_statistics(rows) for name, rows in values.items()})
    ranked = ranked.set_index("system")
    assert ranked.loc["best", ["rank_low", "rank_high", "cluster"]].tolist() == [1, 1, 1]
    for name in ("middle", "twin"):
        assert ranked.loc[name, ["rank_low", "rank_high", "cluster"]].tolist() == [2, 3, 2]


@pytest.mark.parametrize("n", [1, 2, 5])
def test_hardly_any_sentences_rank_nothing(n):
    values = {"a": np.full(n, 0.9), "b": np.full(n, 0.5), "c": np.full(n, 0.1)}
    ranked = rank_systems({name: mean_statistics(rows) for name, rows in values.items()})
    assert ranked["rank"].tolist() == [1, 2, 3]
    assert ranked.rank_low.tolist() == [1, 1, 1]
    assert ranked.rank_high.tolist() == [3, 3, 3]
    assert ranked.cluster.tolist() == [1, 1, 1]


def test_one_system_is_first():
    ranked = rank_systems({"a": mean_statistics(np.full(8, 0.9))})
    assert ranked[["rank", "rank_low", "rank_high", "cluster"]].to_numpy().tolist() == [[1] * 4]


@pytest.mark.parametrize("n", [8, 40])
def test_systems_that_differ_by_the_noise_of_floats_are_equal(n):
    values = {"a": np.full(n, 3e5), "b": np.full(n, (0.1 + 0.2) * 1e6)}
    systems = {name: mean_statistics(rows) for name, rows in values.items()}
    row = compare_all(systems, n_samples=300).iloc[0]
    assert (row.difference, row.low, row.high, row.p_randomization) == (0, 0, 0, 1)
    ranked = rank_systems(systems, n_samples=300)
    assert ranked.cluster.tolist() == [1, 1]
