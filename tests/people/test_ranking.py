"""Metrics beside each other: the table against the functions behind it, its keys, and the forest plot."""

import numpy as np
import pandas as pd
import pytest

from tsteval.core.checks import InputError
from tsteval.people.coefficients import correlation, partial_correlation, within_correlation
from tsteval.people.ranking import COLUMNS, LENGTH, agreement_table, forest
from tsteval.tables.ratings import SIMULATED_SCORES, simulated_ratings, simulated_truth


@pytest.fixture(scope="module")
def study():
    return simulated_ratings(40, 5, seed=2)


@pytest.fixture(scope="module")
def table(study):
    return agreement_table(study, criterion="style", metrics=list(SIMULATED_SCORES), n_boot=300)


def test_the_table_holds_what_the_functions_give(study, table):
    rated = study[study.criterion == "style"]
    row = table.set_index("metric").loc["near"]
    sources = {"groups": rated.source_id, "n_boot": 300}
    pairs = {
        "pearson": correlation(rated.near, rated.rating, **sources),
        "spearman": correlation(rated.near, rated.rating, "spearman", **sources),
        "within": within_correlation(rated.near, rated.rating, rated.system, **sources),
    }
    for column, found in pairs.items():
        assert [row[column], row[f"{column}_low"], row[f"{column}_high"]] == pytest.approx(
            found[:3], abs=1e-9
        )
    assert table.metric.tolist() == [LENGTH, *SIMULATED_SCORES] and (
        row.n,
        row.sources,
        row.systems,
    ) == (200, 40, 5)
    truth = simulated_truth()
    assert table.set_index("metric").within["misleading"] == pytest.approx(
        truth.within["misleading"], abs=0.15
    )


def test_length_is_a_baseline_and_is_held_fixed(study):
    rated = study[study.criterion == "style"].reset_index(drop=True)
    words = np.random.default_rng(0).integers(1, 30, len(rated))
    rated = rated.assign(
        output=[" ".join(["word"] * n) for n in words],
        rating=rated.rating + 0.2 * words,
        long=words + 0.1 * rated.near,
    )
    found = agreement_table(
        rated, criterion="style", metrics=["near", "long"], n_boot=50
    ).set_index("metric")
    assert found.pearson[LENGTH] == pytest.approx(np.corrcoef(words, rated.rating)[0, 1])
    assert np.isnan(found.partial[LENGTH])
    assert found.partial["near"] == pytest.approx(
        partial_correlation(rated.near, rated.rating, words, n_boot=10).value, abs=1e-9
    )
    assert found.pearson["long"] > 0.7 and found.partial["long"] == pytest.approx(
        found.partial["near"], abs=1e-6
    )


def test_scores_are_joined_by_their_keys_whatever_their_order(study):
    scores = study[study.criterion == "style"][["data_set", "item", "near"]].sample(
        frac=1, random_state=0
    )
    one, other = (
        agreement_table(study, part, "style", metrics=["near"], n_boot=50)
        for part in (scores, study[study.criterion == "style"][["item", "near"]])
    )
    pd.testing.assert_frame_equal(one, other)
    some = agreement_table(
        study, scores.assign(near=scores.near.where(scores.item > 20)), "style", n_boot=50
    ).set_index("metric")
    assert some.n["near"] == 179 and some.n[LENGTH] == 200
    with pytest.raises(InputError, match="a second row"):
        agreement_table(study, pd.concat([scores, scores]), "style")
    with pytest.raises(InputError, match="nobody rated 'wit'"):
        agreement_table(study, scores, "wit")
    with pytest.raises(InputError, match="no rated output has scores"):
        agreement_table(study, scores.assign(item=scores.item + 9999), "style")
    with pytest.raises(InputError, match="at least one of the columns"):
        agreement_table(study, scores[["near"]], "style")
    with pytest.raises(InputError, match="'far'"):
        agreement_table(study, scores, "style", metrics=["far"])
    with pytest.raises(InputError, match="say in metrics"):
        agreement_table(study, criterion="style")


def test_several_data_sets_are_never_pooled(study):
    both = pd.concat([study, study.assign(data_set="again", rating=-study.rating)])
    found = agreement_table(both, criterion="style", metrics=["near"], n_boot=50)
    assert found.data_set.unique().tolist() == ["simulated", "again"]
    near = found[found.metric == "near"].pearson.tolist()
    assert near[0] == pytest.approx(-near[1])


def test_the_forest_names_every_metric_and_escapes_it(table):
    named = table.assign(metric=table.metric.replace("far", "<script>alert(1)</script>"))
    for column in COLUMNS[:2]:
        chart = forest(named, column, ceiling={"simulated": 0.87})
        lines = chart.axes[0].lines
        marks = [line for line in lines if line.get_marker() == "o"]
        assert "<script" not in chart.svg and len(marks) == 4 and "near" in chart.alt
        assert [line.get_xdata()[0] for line in lines if line.is_dashed()] == [0.87]
    assert not [line for line in forest(table).axes[0].lines if line.is_dashed()]
    nothing = forest(table.assign(pearson=np.nan)).axes[0]
    assert not [line for line in nothing.lines if line.get_marker() == "o"]
    with pytest.raises(InputError):
        forest(table, "kendall")
