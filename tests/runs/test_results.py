"""Scores of systems: intervals and tests of few rows, repeated sources, sources that one system lacks."""

import numpy as np
import pandas as pd
import pytest

from tests.own_metrics import metric_of
from tsteval.core.checks import InputError
from tsteval.core.metric import Scores, find_metric
from tsteval.core.resample import FEW, FEWEST
from tsteval.runs.results import SystemScores

LENGTH = metric_of(None)
RATIO = metric_of(
    None,
    "ratio",
    ("ratio", "relative"),
    aggregate=lambda self, sums: sums[..., 0] / sums[..., 1],
    better="lower",
)


@pytest.fixture(autouse=True)
def shown(monkeypatch):
    """The scores of these tables stand for some that are shown to follow people."""
    monkeypatch.setattr("tsteval.runs.results.not_shown", lambda *about: "")


def systems(values, sources=None, n_boot=300, **more):
    """A result of one metric; `values` maps a system to the scores of its rows."""
    names = [name for name, scores in values.items() for _ in scores]
    found = [
        source
        for name, scores in values.items()
        for source in (sources or {}).get(name, [f"s{row}" for row in range(len(scores))])
    ]
    table = pd.DataFrame({"system": names, "source": found, "output": "x", **more})
    numbers = np.concatenate([np.asarray(scores, float) for scores in values.values()])
    return SystemScores(
        table, [LENGTH], {"length": Scores(pd.DataFrame({"length": numbers}))}, {}, n_boot
    )


def test_python_calls_nothing_better_by_a_score_that_is_not_shown_to_follow_people(monkeypatch):
    monkeypatch.setattr("tsteval.runs.results.not_shown", lambda *about: "is not shown to")
    found = systems({"a": [0.0, 1] * 20, "b": [1.0, 2] * 20})
    row = found.compare("b", "a").iloc[0]
    assert found.unfit == {"length": "is not shown to"}
    assert row.difference == 1 and row.p_holm < 0.01 and row.better == ""


def test_a_result_is_shown_on_one_line():
    assert (
        repr(systems({"a": [1.0] * 8, "b": [2.0] * 8}))
        == "SystemScores(16 outputs of a, b; length)"
    )


@pytest.mark.all
@pytest.mark.parametrize("n", [1, 2, 3, 5, 10, 20])
@pytest.mark.parametrize("undefined", [0.0, 0.3])
def test_equal_systems_are_rarely_called_different(n, undefined):
    generator = np.random.default_rng(n)
    alarms = 0
    calls = 0
    for _ in range(100):
        a, b = generator.normal(size=(2, n)) + generator.normal(size=n)
        for side in (a, b):
            side[generator.random(n) < undefined] = np.nan
        found = systems({"a": a, "b": b}, n_boot=60).compare("a", "b").iloc[0]
        alarms = alarms + (found.p_value <= 0.05)
        calls = calls + (found.better != "")
    assert alarms <= 12 and (
        calls == 0 if n < FEWEST else calls <= alarms
    )  # 12 of 100: 1 in 500 if 5 is right


def test_one_row_says_nothing():
    found = systems({"a": [1.0], "b": [0.0]})
    row = found.compare("a", "b").iloc[0]
    summary = found.summary()
    assert (
        row.p_value == 1 and row.better == "" and np.isnan([row.low, row.high]).all() and row.n == 1
    )
    assert summary.length.tolist() == [1, 0] and summary.length_low.isna().all()
    assert f"a: 1 source; below {FEWEST} no difference is called one" in set(found.notes().text)


def test_an_interval_of_few_rows_stays_on_the_scale():
    share = Scores(pd.DataFrame({"relevance": [0.0, 1.0, 1.0]}))
    table = pd.DataFrame({"system": "a", "source": list("abc"), "output": "x"})
    summary = SystemScores(
        table, [find_metric("relevance")], {"relevance": share}, {}, 300
    ).summary()
    assert summary.loc[0, ["relevance_low", "relevance_high"]].tolist() == [0, 1]


def test_intervals_of_few_rows_hold_the_truth():
    held = 0
    for seed in range(200):
        values = np.random.default_rng(seed).normal(size=8)
        low, high = (
            systems({"a": values}, n_boot=5).summary()[["length_low", "length_high"]].iloc[0]
        )
        held += low <= 0 <= high
    assert held >= 180  # 190 are promised; fewer than 180 come up once in two thousand


def test_undefined_rows_leave_n_and_a_column_may_be_small_where_the_table_is_not():
    generator = np.random.default_rng(1)
    a, b = generator.normal(size=(2, 40))
    a[5:] = np.nan
    row = systems({"a": a, "b": b}).compare("a", "b").iloc[0]
    assert row.n == 5 < FEW and row.p_value > 0.05 and row.better == ""


def test_infinite_values_leave_n_and_are_told():
    a, b = np.random.default_rng(1).normal(size=(2, 40))
    a[3], b[5] = np.inf, -np.inf
    found = systems({"a": a, "b": b})
    assert found.compare("a", "b").n[0] == 38 and np.isfinite(found.summary().length).all()
    assert found.notes().text.tolist() == [
        "length: 2 values are infinite and left out of means and tests"
    ]


def test_copies_of_rows_are_no_evidence():
    a, b = np.random.default_rng(7).normal(0.1, 0.3, size=(2, 60))
    once = systems({"a": a, "b": b})
    five = systems(
        {"a": np.tile(a, 5), "b": np.tile(b, 5)},
        {name: [f"s{row}" for row in range(60)] * 5 for name in "ab"},
    )
    columns = ["difference", "low", "high", "n", "p_value", "p_holm"]
    np.testing.assert_allclose(
        five.compare("a", "b")[columns].astype(float), once.compare("a", "b")[columns].astype(float)
    )
    np.testing.assert_allclose(
        five.summary().drop(columns=["system", "n"]), once.summary().drop(columns=["system", "n"])
    )
    assert "a: 240 of 300 rows repeat a source; each source counts once" in set(five.notes().text)
    assert once.notes().empty


def test_what_else_was_asked_of_a_source_tells_rows_apart():
    a, b = np.random.default_rng(7).normal(size=(2, 60))
    styles = ["formal", "informal"] * 60
    apart = systems(
        {"a": a, "b": b},
        {name: [f"s{row // 2}" for row in range(60)] for name in "ab"},
        target_style=styles,
    )
    assert apart.compare("a", "b").n[0] == 60 and apart.notes().empty


def test_a_file_against_itself_in_another_order_is_equal():
    values = np.random.default_rng(2).normal(size=50)
    found = (
        systems({"a": values, "b": values[::-1]}, {"b": [f"s{row}" for row in range(50)][::-1]})
        .compare("a", "b")
        .iloc[0]
    )
    assert found.difference == 0 and found.low == found.high == 0 and found.p_value == 1


def test_a_missing_source_is_left_out_and_named():
    values = np.random.default_rng(3).normal(size=60)
    found = systems(
        {"rules": values, "llm": np.delete(values, 7) + 1},
        {"llm": [f"s{row}" for row in range(60) if row != 7]},
    )
    row = found.compare("llm", "rules").iloc[0]
    assert row.n == 59 and np.isclose(row.difference, 1) and row.better == "llm"
    assert found.notes().text.tolist() == [
        "llm and rules: 59 of 60 sources shared; llm lacks 1 that rules has"
    ]


def test_three_systems_are_each_compared_or_said_not_to_be():
    found = systems(
        {"one": [1.0] * 8, "two": [2.0] * 8, "far": [3.0] * 8},
        {"far": [f"other {row}" for row in range(8)]},
    )
    rows = found.comparisons()
    assert (
        rows.a.tolist() == ["two"]
        and rows.b.tolist() == ["one"]
        and rows.better.tolist() == ["two"]
    )
    assert found.notes().text.tolist() == [
        "far and one are not compared: they have no source in common"
    ]
    with pytest.raises(InputError, match="no source that is the same"):
        found.compare("far", "one")


def test_the_difference_is_a_minus_b_and_better_knows_which_end_is_good():
    counts = np.stack([np.arange(1.0, 81), np.full(80, 100)], axis=1)
    table = pd.DataFrame(
        {"system": ["a"] * 40 + ["b"] * 40, "source": list(range(40)) * 2, "output": "x"}
    ).astype({"source": str})
    frame = pd.DataFrame({"ratio": counts[:, 0] / 100, "relative": np.ones(80)})
    found = (
        SystemScores(table, [RATIO], {"ratio": Scores(frame, counts)}, {}, 200)
        .compare("a", "b")
        .set_index("metric")
    )
    assert (
        found.difference["ratio"] < 0
        and found.better["ratio"] == "a"
        and found.better["relative"] == ""
    )
    assert found.p_holm["ratio"] == found.p_value["ratio"]  # its relative is of another family


def test_p_values_of_leading_columns_are_corrected_among_themselves():
    generator = np.random.default_rng(0)
    metrics = [metric_of(None, name, (name, f"{name}_too")) for name in "uvw"]
    table = pd.DataFrame(
        {
            "system": ["a"] * 40 + ["b"] * 40,
            "source": [str(row) for row in range(40)] * 2,
            "output": "x",
        }
    )
    scores = {
        metric.name: Scores(
            pd.DataFrame({column: generator.normal(size=80) for column in metric.columns})
        )
        for metric in metrics
    }
    found = SystemScores(table, metrics, scores, {}, 200).compare("a", "b")
    from tsteval.core.resample import holm

    leads = found.metric.isin(list("uvw"))
    for family in (leads, ~leads):
        np.testing.assert_allclose(found.p_holm[family], holm(found.p_value[family]))


# ---- what is told is what was counted


def random_systems(generator, names="ab", most=80):
    """Tables in which systems lack values, lack sources, and repeat sources unequally."""
    values, sources = {}, {}
    for name in names:
        own = np.flatnonzero(generator.random(generator.integers(8, most)) < 0.9)
        rows = np.repeat(own, generator.integers(1, 4, len(own)))
        scores = generator.normal(size=len(rows))
        scores[generator.random(len(rows)) < 0.2] = np.nan
        order = generator.permutation(len(rows))
        values[name] = scores[order]
        sources[name] = [f"s{row}" for row in rows[order]]
    return values, sources


def means_of_sources(values, sources):
    frame = pd.DataFrame({"source": sources, "value": values})
    return frame.groupby("source").value.mean().dropna()


@pytest.mark.parametrize("seed", range(12))
def test_difference_n_and_interval_are_of_the_same_pairs(seed):
    """Against pandas: a source counts once, and only where both systems have a value."""
    values, sources = random_systems(np.random.default_rng(seed))
    found = systems(values, sources)
    one, other = (means_of_sources(values[name], sources[name]) for name in "ab")
    row = found.compare("a", "b").iloc[0]
    difference = (one - other).dropna()
    assert row.n == len(difference) and np.isclose(row.difference, difference.mean())
    assert row.low <= row.difference <= row.high
    summary = found.summary().set_index("system").length
    assert np.allclose([summary["a"], summary["b"]], [one.mean(), other.mean()])


def test_values_that_one_side_lacks_are_paired_first():
    """Equal outputs of which one system's are scored every second time: no difference."""
    values = np.arange(60.0)
    half = np.where(np.arange(60) % 2, np.nan, values)
    row = systems({"a": half, "b": values}).compare("a", "b").iloc[0]
    assert row.n == 30 and row.difference == row.low == row.high == 0 and row.better == ""


@pytest.mark.parametrize("seed", range(6))
def test_nothing_depends_on_the_order_of_the_rows(seed):
    generator = np.random.default_rng(seed)
    values, sources = random_systems(generator)
    orders = {name: generator.permutation(len(rows)) for name, rows in values.items()}
    one = systems(values, sources)
    other = systems(
        {name: values[name][orders[name]] for name in values},
        {name: [sources[name][row] for row in orders[name]] for name in values},
    )
    pd.testing.assert_frame_equal(one.compare("a", "b"), other.compare("a", "b"))
    pd.testing.assert_frame_equal(one.summary(), other.summary())


@pytest.mark.parametrize("seed", range(6))
def test_rows_that_are_pasted_again_change_nothing(seed):
    """Also where only one system's rows are, and only some of them."""
    generator = np.random.default_rng(seed)
    values = {name: generator.normal(size=40) for name in "ab"}
    sources = {name: [f"s{row}" for row in range(40)] for name in "ab"}
    once = systems(values, sources)
    again = generator.integers(0, 40, 60)
    values["a"] = np.append(values["a"], values["a"][again])
    sources["a"] = [*sources["a"], *(f"s{row}" for row in again)]
    pasted = systems(values, sources)
    for table in (
        lambda found: found.compare("a", "b"),
        lambda found: found.summary().drop(columns="n"),
    ):
        pd.testing.assert_frame_equal(table(pasted), table(once))


def test_p_values_are_corrected_over_the_systems_that_are_compared_with_one():
    generator = np.random.default_rng(3)
    found = systems({name: generator.normal(size=50) for name in "abcd"}, n_boot=400)
    rows = found.comparisons()
    from tsteval.core.resample import holm

    np.testing.assert_allclose(rows.p_holm, holm(rows.p_value.to_numpy()))
    assert len(rows) == 3
    pd.testing.assert_frame_equal(
        found.compare("c", "a"), rows[rows.a == "c"].reset_index(drop=True)
    )


@pytest.mark.ci
@pytest.mark.parametrize("k", [5, 12])
def test_equal_systems_seldom_give_a_verdict_however_many_they_are(k):
    generator = np.random.default_rng(k)
    names = [f"system {number:02}" for number in range(k)]
    tables = 60
    alarms = 0
    for _ in range(tables):
        level = generator.normal(size=40)
        found = systems({name: level + generator.normal(size=40) for name in names}, n_boot=400)
        alarms += (found.comparisons().better != "").any()
    assert alarms <= 8  # of 60, if 5% is right: more in 1 of 200


def test_too_few_resamples_for_so_many_comparisons_are_told():
    generator = np.random.default_rng(0)
    found = systems({str(name): generator.normal(size=40) for name in range(12)}, n_boot=100)
    assert "take n_boot of 220 or more" in " ".join(found.notes().text)
