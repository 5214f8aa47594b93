"""Earth Mover's Distance and the two intensities against solvers, axioms and published values."""

import os

import numpy as np
import ot
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from pyemd import emd
from scipy.optimize import linprog

from tsteval.core.assets import packaged_path
from tsteval.core.checks import _BLOCK as BLOCK
from tsteval.sti import (
    Sti,
    distance_drop,
    earth_movers_distance,
    intensity_table,
    normalized_intensity,
    ordered_cost,
    style_transfer_intensity,
    transport_plan,
)
from tsteval.tables.mir2019 import load_mir2019, with_unassigned

needs_mir2019 = pytest.mark.skipif(
    "TSTEVAL_DATA" not in os.environ,
    reason="needs the corpus: run `tsteval fetch "
    "mir2019`, and set TSTEVAL_DATA to the folder around it",
)


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
    return linprog(
        np.ravel(cost), A_eq=constraints, b_eq=np.concatenate([p, q]), method="highs"
    ).fun


def test_published_value():
    assert abs(earth_movers_distance([0.98914, 0.01086], [0.01070, 0.98930])[0] - 0.9784) < 1e-4


@given(distributions())
# the same cases each time: pyemd's solver can end the interpreter
@settings(derandomize=True, max_examples=60, deadline=None)
def test_equals_the_linear_programme_pot_and_pyemd(pair):
    p, q = pair
    for given_cost, cost in (
        (None, 1 - np.eye(len(p))),
        (ordered_cost(len(p)), ordered_cost(len(p))),
    ):
        ours = earth_movers_distance(p, q, given_cost)[0]
        assert abs(ours - by_programme(p, q, cost)) < 1e-9
        assert abs(ours - ot.emd2(p, q, cost)) < 1e-9
        assert abs(ours - emd(p, q, cost)) < 1e-9


@given(distributions(), st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_any_cost_equals_the_linear_programme(pair, seed):
    p, q = pair
    cost = np.random.default_rng(seed).uniform(0, 3, size=(len(p), len(p)))
    ours = earth_movers_distance(p, q, cost)[0]
    assert abs(ours - by_programme(p, q, cost)) < 1e-9 and abs(ours - ot.emd2(p, q, cost)) < 1e-9


@given(distributions(), st.integers(0, 2**32 - 1))
# the same cases each time: pyemd's solver can end the interpreter
@settings(derandomize=True, max_examples=40, deadline=None)
def test_any_metric_cost_equals_pyemd(pair, seed):
    """pyemd needs a cost that is a metric: distances between random points are one."""
    p, q = pair
    points = np.random.default_rng(seed).normal(size=(len(p), 2))
    cost = np.linalg.norm(points[:, None] - points[None], axis=2)
    assert abs(earth_movers_distance(p, q, cost)[0] - emd(p, q, cost)) < 1e-9


@given(distributions(rows=3), st.sampled_from(["unit", "ordered"]))
def test_metric_axioms(three, kind):
    p, q, r = three[:, None]
    cost = {"unit": None, "ordered": ordered_cost(p.shape[1])}[kind]
    assert earth_movers_distance(p, p, cost)[0] == 0
    assert (earth_movers_distance(p, q, cost)[0] > 0) == (p != q).any()
    assert np.isclose(
        earth_movers_distance(p, q, cost)[0], earth_movers_distance(q, p, cost)[0], atol=1e-12
    )
    detour = earth_movers_distance(p, r, cost)[0] + earth_movers_distance(r, q, cost)[0]
    assert earth_movers_distance(p, q, cost)[0] <= detour + 1e-12


@given(distributions(), st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_a_plan_empties_heaps_fills_holes_and_costs_the_distance(pair, seed):
    p, q = pair
    for cost in (
        None,
        ordered_cost(len(p)),
        np.random.default_rng(seed).uniform(0, 3, size=(len(p), len(p))),
    ):
        plan = transport_plan(p, q, cost)
        assert (
            (plan >= 0).all()
            and np.allclose(plan.sum(axis=1), p)
            and np.allclose(plan.sum(axis=0), q)
        )
        each = 1 - np.eye(len(p)) if cost is None else cost
        assert abs((plan * each).sum() - earth_movers_distance(p, q, cost)[0]) < 1e-9


def test_plan_of_the_worked_example():
    plan = transport_plan([0.7, 0.2, 0.1], [0.1, 0.4, 0.5])
    assert np.allclose(plan, [[0.1, 0.2, 0.4], [0, 0.2, 0], [0, 0, 0.1]])


def test_five_stars():
    stars = np.eye(5)
    assert earth_movers_distance(stars[[4, 4]], stars[[3, 0]], ordered_cost(5)).tolist() == [1, 4]
    assert earth_movers_distance(stars[[4, 4]], stars[[3, 0]]).tolist() == [1, 1]


def test_a_row_does_not_depend_on_its_neighbours():
    p, q = np.random.default_rng(0).dirichlet(np.ones(3), size=(2, BLOCK + 3))
    together = earth_movers_distance(p, q)
    assert all(
        earth_movers_distance(p[row], q[row])[0] == together[row]
        for row in (0, 1, BLOCK - 1, BLOCK, BLOCK + 2)
    )


def test_single_precision_passes():
    p, q = np.random.default_rng(0).dirichlet(np.ones(4), size=(2, 500)).astype(np.float32)
    expected = [
        ot.emd2(a / a.sum(), b / b.sum(), 1 - np.eye(4))
        for a, b in zip(p.astype(float), q.astype(float))
    ]
    assert np.allclose(earth_movers_distance(p, q), expected, atol=1e-6)
    assert earth_movers_distance(p, q).dtype == float


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


@given(distributions(), st.data())
@settings(max_examples=40, deadline=None)
def test_the_drop_is_how_much_less_is_left_to_go(pair, data):
    source, output = pair[:, None]
    target = data.draw(st.integers(0, source.shape[1] - 1))
    wanted = np.eye(source.shape[1])[[target]]
    for cost in (
        None,
        ordered_cost(source.shape[1]),
        np.random.default_rng(target).uniform(0, 3, size=(source.shape[1],) * 2)
        * (1 - np.eye(source.shape[1])),
    ):
        largest = 1 if cost is None else cost.max()
        left = [earth_movers_distance(side, wanted, cost)[0] for side in (source, output)]
        drop = distance_drop(source, output, target, cost)[0]
        assert -1 <= drop <= 1 and abs(drop - (left[0] - left[1]) / largest) < 1e-9
    change = output[0, target] - source[0, target]
    assert abs(distance_drop(source, output, target)[0] - change) < 1e-12


def test_the_drop_on_a_scale():
    low, middle, high = np.eye(3)
    steps = ordered_cost(3)
    before = [low, low, low, high, middle]
    after = [low, middle, high, middle, low]
    assert distance_drop(before, after, 2, steps).tolist() == [0, 0.5, 1, -0.5, -0.5]
    assert distance_drop(before, after, [2, 2, 1, 0, 1], steps).tolist() == [0, 0.5, 0, 0.5, -0.5]
    complaint, plain = [0.97, 0.01, 0.02], [0, 0.99, 0.01]
    assert style_transfer_intensity(complaint, plain, 2)[0] < -0.9
    assert np.isclose(distance_drop(complaint, plain, 2, steps)[0], 0.48)


def test_the_drop_of_a_row_does_not_depend_on_its_neighbours():
    p, q = np.random.default_rng(0).dirichlet(np.ones(3), size=(2, BLOCK + 3))
    target = np.arange(BLOCK + 3) % 3
    together = distance_drop(p, q, target, ordered_cost(3))
    for row in (0, 1, BLOCK - 1, BLOCK, BLOCK + 2):
        alone = distance_drop(p[row], q[row], target[row], ordered_cost(3))
        assert alone[0] == together[row]


def test_a_cost_of_nothing_has_no_drop():
    with pytest.raises(ValueError, match="cost is 0 for every move"):
        distance_drop([[0.5, 0.5]], [[0.4, 0.6]], 0, np.zeros((2, 2)))


def test_reports_two_cases_and_zero_room():
    before = [[0.1, 0.9], [0.9, 0.1], [0, 1], [0.5, 0.5]]
    after = [[0, 1], [0.8, 0.2], [0, 1], [0.5, 0.5]]
    assert np.allclose(normalized_intensity(before, after, 1), [1, 1 / 9, 0, 0])


def test_no_room_and_rounding_errors_of_the_sum():
    assert (
        normalized_intensity([0, 1], [0, 1], 1)[0] == 0
        and normalized_intensity([1, 0], [1, 0], 1)[0] == 0
    )
    assert (
        normalized_intensity([0, 1], [1, 0], 1)[0] == -1
        and normalized_intensity([1, 0], [0, 1], 1)[0] == 1
    )
    slightly_more = [0, 1 + 1e-6]
    still_more = [0, 1 + 2e-6]
    assert normalized_intensity(slightly_more, still_more, 1)[0] == 0
    assert np.isfinite(normalized_intensity([1 - 5e-324, 5e-324], [1, 0], 1)).all()


def test_no_movement_is_not_negative():
    assert not np.signbit(style_transfer_intensity([0.3, 0.7], [0.3, 0.7], 1)[0])


def test_one_table_for_an_output_and_a_system():
    output = [[0.55, 0.45], [0.49, 0.51], [0.05, 0.95], [0.5, 0.5]]
    table = intensity_table([[0.9, 0.1]] * 4, output, 1)
    assert table.reached.tolist() == [False, True, True, False]  # a tie is not reached
    assert np.allclose(table.sti, [0.35, 0.41, 0.85, 0.4]) and np.allclose(
        table.normalized, table.sti / 0.9
    )
    assert table.mean().reached == 0.5 and np.isclose(table.mean().sti, 0.5025)
    mixed = intensity_table([[0.2, 0.3, 0.5]] * 2, [[0.1, 0.5, 0.4]] * 2, [1, 2])
    assert mixed.reached.tolist() == [True, False] and mixed.before.tolist() == [0.3, 0.5]


def test_unassigned_probability_is_what_pyemd_charges():
    """pyemd charges what one side has more than the other at the highest cost.

    The tables are fixed: pyemd's solver can end the interpreter when a mass is as small as the numbers that hypothesis
    likes to try.
    """
    tables = np.random.default_rng(0).uniform(0, 0.3, (200, 2, 3))
    tables[::4, 0, 0] = tables[1::4, 1, 2] = 0
    for p, q in tables:
        assert (
            abs(
                earth_movers_distance(*with_unassigned([p, q])[:, None])[0]
                - emd(p, q, 1 - np.eye(3))
            )
            < 1e-9
        )


def test_a_target_for_each_row():
    before = [[0.9, 0.1]] * 2
    after = [[0.2, 0.8]] * 2
    assert np.allclose(style_transfer_intensity(before, after, [1, 0]), [0.7, -0.7])


@pytest.mark.parametrize(
    "bad, words",
    [
        ([[0.5, 0.5], [0.7, 0.4]], "row 1: the probabilities sum to 1.1"),
        ([[1.2, -0.2], [0.5, 0.5]], "row 0: a negative"),
        ([[0.5, 0.5], [np.nan, 0.5]], "row 1: a value that is not a finite"),
        ([[1.0], [1.0]], "at least two"),
        (np.full((2, 2, 2), 0.5), "shape"),
        ([[0.5, 0.5], [np.inf, 0.5]], "row 1: a value that is not a finite"),
        ([[0.5, 0.5], [0.5, 0.25, 0.25]], "row 1: its shape"),
        ([[0.5, 0.5], ["half", "half"]], "row 1: not a row of numbers"),
        ([[0.5, 0.5], [0.5, 0.5002]], "row 1: the probabilities sum to 1.0002"),
        (0.5, "at least two"),
    ],
)
def test_malformed_distributions_name_the_row(bad, words):
    good = [[0.5, 0.5]] * 2
    with pytest.raises(ValueError, match=words):
        earth_movers_distance(bad, good)
    for function in (style_transfer_intensity, distance_drop):
        with pytest.raises(ValueError, match="output"):
            function(good, bad, 0)


def test_a_bad_row_in_a_later_block_is_named():
    many = np.full((2 * BLOCK + 10, 2), 0.5)
    bad = many.copy()
    bad[BLOCK + 5, 0], bad[2 * BLOCK + 1, 0] = 0.6, -1
    with pytest.raises(ValueError, match=f"q, row {BLOCK + 5}: the probabilities sum to 1.1"):
        earth_movers_distance(many, bad)


def test_shapes_and_targets_are_checked():
    two = [[0.5, 0.5]]
    three = [[0.5, 0.25, 0.25]]
    for function in (style_transfer_intensity, normalized_intensity, distance_drop):
        with pytest.raises(ValueError, match="shape"):
            function(two, three, 0)
        with pytest.raises(ValueError, match="row 0: class 2"):
            function(two, two, 2)
        with pytest.raises(ValueError, match="target"):
            function(two, two, [0, 1])
        with pytest.raises(ValueError, match="target"):
            function(two, two, 0.5)
        with pytest.raises(ValueError, match="row 1: class -1"):
            function(two * 2, two * 2, [0, -1])
    for cost in (np.ones((3, 3)), [[0, -1], [1, 0]], [[0, np.nan], [1, 0]], [[0, np.inf], [1, 0]]):
        for function in (earth_movers_distance, transport_plan):
            with pytest.raises(ValueError, match="cost"):
                function(two, two, cost)
        with pytest.raises(ValueError, match="cost"):
            distance_drop(two, two, 0, cost)
    with pytest.raises(ValueError, match="one distribution"):
        transport_plan(two * 2, two * 2)


def test_no_rows():
    empty = np.zeros((0, 2))
    assert earth_movers_distance(empty, empty).shape == (0,)
    assert (
        style_transfer_intensity(empty, empty, 0).shape
        == normalized_intensity(empty, empty, 0).shape
        == distance_drop(empty, empty, 0).shape
        == (0,)
    )


@needs_mir2019
def test_the_published_correlations():
    rated = load_mir2019()
    assert (
        len(rated) == 1952 and set(rated.target[:122]) == {1} and set(rated.target[122:244]) == {0}
    )
    assert (
        rated.groupby(["system", "setting"]).size() == 244
    ).all() and rated.isna().sum().sum() == 0
    published = {
        "fasttext": {"ARAE": 0.516, "CAAE": 0.573},
        "textcnn": {"ARAE": 0.519, "CAAE": 0.589},
    }
    for classifier, values in published.items():
        source, output = (
            with_unassigned(rated[[f"{classifier}_{side}_{style}" for style in (0, 1)]])
            for side in ("source", "output")
        )
        sti = style_transfer_intensity(source, output, rated.target.to_numpy())
        assert np.abs(sti - rated[f"{classifier}_emd"]).max() < 1e-3
        for system, rows in rated.groupby("system").indices.items():
            assert round(np.corrcoef(sti[rows], rated.human_style[rows])[0, 1], 3) == values[system]


def test_the_metric_scores_a_table(classifier):
    from tsteval.models.roles import Models

    table = pd.DataFrame(
        {
            "source": ["The stunning bridge opened."] * 2,
            "output": ["The stunning bridge opened.", "The bridge opened."],
            "target_style": ["neutral", "subjective"],
        }
    )
    models = Models({"style": classifier})
    scores = Sti().score(table, models)
    signature = Sti().sign(table, models)
    p = classifier.predict_proba(table.source)
    q = classifier.predict_proba(table.output)
    assert (
        np.allclose(scores.frame.sti, style_transfer_intensity(p, q, [1, 0]), atol=1e-6)
        and scores.frame.sti[0] == 0
    )
    assert list(scores.frame.columns[:3]) == list(Sti.columns) and models.used == {
        classifier.name: classifier.identity
    }
    assert "neutral/subjective" in signature
    assert Sti().sign(table.assign(target_style="neutral"), models) != signature
    with pytest.raises(
        ValueError, match="column target_style, row 1: there is no style called 'angry'"
    ):
        Sti().score(table.assign(target_style=["neutral", "angry"]), models)
    with pytest.raises(ValueError, match="formality-minilm has it: classifier='formality-minilm'"):
        Sti().score(table.assign(target_style=["neutral", "formal"]), models)
    in_capitals = table.assign(target_style=["NEUTRAL", "Subjective"])
    assert Sti().score(in_capitals, models).frame.equals(scores.frame)
    assert Sti().sign(in_capitals, models) == signature


def test_an_option_names_the_style_of_every_row(classifier):
    from tsteval.evaluation import evaluate

    table = pd.DataFrame({"source": ["The stunning bridge."] * 2, "output": ["The bridge."] * 2})
    by_option = evaluate(table, [Sti(target="subjective")], classifier=classifier, n_boot=5)
    by_column = evaluate(
        table.assign(target_style="subjective"), [Sti()], classifier=classifier, n_boot=5
    )
    assert by_option.signatures == by_column.signatures
    assert by_option.headings == by_column.headings
    assert (
        by_option.per_pair.sti.equals(by_column.per_pair.sti) and (by_option.per_pair.sti < 0).all()
    )


def test_of_a_text_that_the_classifier_does_not_read_there_is_no_intensity():
    from tsteval.evaluation import evaluate

    rows = [
        {"source": "ዛሬ ዝናብ ነው።", "output": "It rained.", "target_style": "neutral"},
        {"source": "What rain!", "output": "It rained.", "target_style": "neutral"},
    ]
    result = evaluate(rows, ["sti"], n_boot=5)
    columns = ["sti", "normalized_intensity", "target_reached"]
    assert result.per_pair[columns].isna().all(axis=1).tolist() == [True, False]
    assert any("does not know" in text for text in result.notes().text)


def test_real_systems_beside_their_editors():
    """nbs/making/wnc_systems.py: five neutralisers, a copy and the editors on 916 edits."""
    table = pd.read_csv(packaged_path("wnc_systems.csv")).set_index(["part", "system"])
    whole = table.loc["all"]
    assert len(whole) == 7 and (whole.n == 916).all()
    assert whole.sti["copy"] == 0 and whole.copied["copy"] == whole.edited["human"] == 1
    assert (
        whole.sti["modular"] > 5 * whole.sti["strap_full"]
        and whole.bleu["copy"] > whole.bleu["strap_full"]
    )
    scores = ["sti", "cps", "edited", "copied", "bleu"]
    for name in scores:
        assert (table[f"{name}_low"] <= table[name]).all() and (
            table[name] <= table[f"{name}_high"]
        ).all()


def test_what_is_paid_for_a_deletion():
    """nbs/making/wnc_deletions.py: the 402 edits of one place, by what the editor and the systems did."""
    table = pd.read_csv(packaged_path("wnc_deletions.csv"))
    assert (table.low <= table["mean"]).all() and (table["mean"] <= table.high).all()
    means = pd.read_csv(packaged_path("wnc_systems.csv")).query("part == 'single'")
    means = means.set_index("system").sti
    for by in ("editor", "modular", "concurrent"):
        parts = table[table.by == by].pivot(index="group", columns="score", values="mean")
        n = table[table.by == by].groupby("group").n.first()
        assert n.sum() == 402
        for score, system in (("editor", "human"), ("modular", "modular")):
            assert abs((parts[score] * n).sum() / 402 - means[system]) < 2e-4
