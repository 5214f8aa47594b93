"""The chapter's two functions: contract, invariances, and what their figures rest on."""

import numpy as np
import pandas as pd
import pytest

from tsteval.core.assets import packaged_path
from tsteval.core.checks import InputError
from tsteval.estimation import differences, estimate
from tsteval.people.estimates import ESTIMATE_COLUMNS


def tables(n=120, rated=40):
    generator = np.random.default_rng(0)
    ease = generator.normal(size=n)
    parts = []
    for system, level in (("A", 3.6), ("B", 3.0)):
        quality = level + 0.5 * ease + 0.4 * generator.normal(size=n)
        parts.append(
            pd.DataFrame(
                {
                    "system": system,
                    "source": [f"Source {k}." for k in range(n)],
                    "output": system,
                    "score": quality + 0.4 * generator.normal(size=n),
                    "rating": quality,
                }
            )
        )
    outputs = pd.concat(parts, ignore_index=True)
    return outputs[outputs.index % n < rated].drop(columns="score"), outputs.drop(columns="rating")


def test_one_row_a_system_in_the_columns_of_the_contract():
    found = estimate(*tables())
    assert list(found) == ["system", *ESTIMATE_COLUMNS] and found.system.tolist() == ["A", "B"]
    assert (
        (found.n_rated == 40).all()
        and (found.n_scored == 120).all()
        and (found.labels_worth > 55).all()
    )


def test_the_unit_of_a_score_and_the_order_of_rows_do_not_matter():
    ratings, scores = tables()
    turned = scores.assign(score=100 - 7 * scores.score).sample(frac=1, random_state=1)
    found = (
        estimate(ratings.sample(frac=1, random_state=2), turned)
        .sort_values("system")
        .reset_index(drop=True)
    )
    pd.testing.assert_frame_equal(found, estimate(ratings, scores), rtol=1e-9)


def test_a_wider_level_and_a_scale():
    ratings, scores = tables()
    usual = estimate(ratings, scores)
    wide = estimate(ratings, scores, level=0.99)
    assert ((wide.high - wide.low) > (usual.high - usual.low)).all()
    few = ratings.groupby("system").head(7)
    ends = few.rating.min(), few.rating.max()
    cut = estimate(few, scores, scale=ends, level=0.9999)
    assert all(cut[name].between(*ends).all() for name in ("low", "mean", "high"))
    assert (cut.low == ends[0]).any() or (cut.high == ends[1]).any()


def test_rows_of_a_group_count_as_one():
    ratings, scores = tables()
    coarse = scores.assign(page=[n // 5 for n in range(len(scores))])
    assert estimate(
        ratings, coarse.assign(page=coarse.page.astype(str)), groups="page"
    ).n_rated.tolist() == [40, 40]


def test_differences_are_paired():
    found = differences(*tables())
    assert (
        found[["a", "b"]].iloc[0].tolist() == ["A", "B"]
        and found.low[0] > 0.2
        and found.p_holm[0] < 0.001
    )


def test_several_criteria_are_refused():
    ratings, scores = tables()
    with pytest.raises(InputError, match="several criteria"):
        estimate(ratings.assign(criterion=["style"] * 40 + ["content"] * 40), scores)


def test_the_shipped_coverage_is_what_the_chapter_claims():
    figures = pd.read_csv(packaged_path("estimation_coverage.csv"))
    hundred, thirty = (figures[(figures.n == n) & (figures.scope == "set")] for n in (100, 30))
    assert (figures.draws >= 4000).all() and set(figures.data_set) == {
        "mir2019",
        "lai2022",
        "style_gap",
        "msr_compression",
    }
    assert hundred.coverage.between(0.9395, 0.9605).all()
    easy = thirty[thirty.data_set != "msr_compression"]
    assert (easy.coverage >= 0.93).all() and (
        thirty.coverage >= thirty.plain_coverage - 0.015
    ).all()
