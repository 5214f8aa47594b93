"""Ratings joined to scores, system by system; what is refused, and what a reader is warned of."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsteval.core.checks import InputError
from tsteval.estimation import differences, estimate
from tsteval.people.estimates import (
    cautions,
    difference_frame,
    estimate_frame,
    estimate_systems,
    join_ratings,
    rating_columns,
    score_names,
)
from tsteval.people.estimators import estimate_mean


def tables(n=150, rated=40, seed=0):
    generator = np.random.default_rng(seed)
    ease = generator.normal(size=n)
    parts = []
    for system, level in (("A", 4.0), ("B", 3.0), ("C", 3.0)):
        quality = level + 0.5 * ease + 0.4 * generator.normal(size=n)
        parts.append(
            pd.DataFrame(
                {
                    "system": system,
                    "source": [f"Source {k}." for k in range(n)],
                    "output": f"Output of {system}.",
                    "rating": quality,
                    "score": quality + 0.4 * generator.normal(size=n),
                }
            )
        )
    outputs = pd.concat(parts, ignore_index=True)
    ratings = outputs[outputs.index % n < rated][["system", "source", "output", "rating"]].assign(
        raters=2
    )
    return ratings, outputs.drop(columns="rating")


def test_each_system_has_a_row_and_the_scores_help():
    ratings, scores = tables()
    found = estimate_frame(estimate_systems(join_ratings(ratings, scores), ["score"]))
    assert found.system.tolist() == ["A", "B", "C"] and found.n_rated.tolist() == [40] * 3
    assert (
        (found.labels_worth > 55).all()
        and (found.n_scored == 150).all()
        and (found.low < found.high).all()
    )


def test_a_system_is_corrected_by_itself_alone():
    ratings, scores = tables()
    whole = estimate_systems(join_ratings(ratings, scores), ["score"])
    alone = estimate_systems(
        join_ratings(ratings.query("system == 'B'"), scores), ["score"], scale=(0, 9)
    )
    assert list(alone) == ["B"] and alone["B"].mean == whole["B"].mean


def test_differences_are_holms_and_on_common_sources():
    ratings, scores = tables()
    scores = scores.iloc[10:]
    ratings = ratings.iloc[10:]  # A lacks ten sources
    found = difference_frame(join_ratings(ratings, scores), ["score"])
    assert found.n.tolist() == [140, 140, 150] and found[["a", "b"]].agg(
        "".join, axis=1
    ).tolist() == ["AB", "AC", "BC"]
    assert (
        (found.p_holm >= found.p_value).all()
        and (found.p_holm[:2] < 0.01).all()
        and found.p_holm[2] > 0.05
    )


def test_rows_with_equal_texts_share_a_rating_and_count_once():
    ratings, scores = tables()
    twice = pd.concat([scores, scores], ignore_index=True)
    one, two = (
        estimate_systems(join_ratings(ratings, table), ["score"])["A"] for table in (scores, twice)
    )
    assert two.n_rated == 80 and np.isclose(one.mean, two.mean) and np.isclose(one.error, two.error)


def test_what_is_refused():
    ratings, scores = tables()
    with pytest.raises(InputError, match="not among the scored"):
        join_ratings(ratings, scores[20:])
    with pytest.raises(InputError, match="no column output in the scores"):
        join_ratings(ratings, scores.drop(columns="output"))
    with pytest.raises(InputError, match="no column rating"):
        join_ratings(ratings.drop(columns="rating"), scores)
    with pytest.raises(InputError, match="several criteria"):
        join_ratings(ratings.assign(criterion=["style"] * 60 + ["content"] * 60), scores)
    with pytest.raises(InputError, match="no rating in any row"):
        join_ratings(ratings.assign(rating=np.nan), scores)
    with pytest.raises(InputError, match="no column page"):
        join_ratings(ratings, scores, "page")


def test_the_scores_of_a_table_are_its_other_numbers():
    _, scores = tables()
    assert score_names(scores.assign(source_id=1, item=2, words="x")) == ["score"]


def said(ratings, scores):
    joined = join_ratings(ratings, scores)
    estimates = estimate_systems(joined, ["score"], scale=(-9, 9))
    return " ".join(cautions(ratings, joined, ["score"], estimates, (-9, 9)))


def test_warnings_are_given_where_they_are_due():
    ratings, scores = tables()
    assert "not drawn" in said(ratings, scores) and "do not look" not in said(ratings, scores)
    drawn = ratings.assign(inclusion=40 / 150)
    assert said(drawn, scores) == ""
    assert "One rater" in said(drawn.assign(raters=1), scores)
    best = scores.sort_values("score").groupby("system").tail(40)
    picked = best.assign(rating=best.score, raters=2)[
        ["system", "source", "output", "rating", "raters"]
    ]
    assert "They do not look like one: their score is" in said(picked, scores)
    other = scores.assign(system="unrated", score=scores.score + 9)
    everything = pd.concat([scores[scores.source.isin(ratings.source)], other])
    assert "not drawn" not in said(ratings, everything)  # all that is estimated was rated
    assert "closer than metrics do" in said(picked.assign(inclusion=0.3), scores)
    assert "fewer than 6 rated sources" in said(drawn.groupby("system").head(4), scores)
    assert "all equal" in said(drawn.assign(rating=3.0), scores)


def test_ratings_stand_beside_scores_in_the_order_of_the_scores():
    ratings, scores = tables(n=6, rated=2)
    ratings = pd.concat(
        [
            ratings.assign(criterion="content"),
            ratings[:1].assign(criterion="style", rating=4.0),
            ratings[:1].assign(criterion="style", rating=1.0),
        ]
    )  # two raters of one output
    turned = scores[::-1].reset_index(drop=True)
    found = rating_columns(ratings, turned)
    assert (
        list(found) == ["content", "style"]
        and len(found) == 18
        and found.content.notna().sum() == 6
    )
    assert found["style"].dropna().to_dict() == {17: 2.5}
    content = ratings[ratings.criterion == "content"]
    assert found.content.dropna().tolist() == content.rating.tolist()[::-1]


def test_texts_with_signs_for_control_characters_meet_those_without():
    ratings, scores = tables(n=2, rated=1)
    raw, shown = (
        table.assign(source=table.source + end)
        for table, end in ((ratings, "\x07"), (scores, "\u2407"))
    )
    assert rating_columns(raw.assign(criterion="style"), shown)["style"].notna().sum() == 3


def test_a_table_without_any_rating_is_refused():
    ratings, scores = tables(n=2, rated=1)
    with pytest.raises(InputError, match="no rating in any row"):
        rating_columns(ratings.assign(criterion="style", rating=np.nan), scores)


# ---- the scale, and who rated


def test_ratings_outside_the_scale_are_refused():
    ratings, scores = tables()
    percent = ratings.assign(rating=ratings.rating.clip(1, 5) * 20)
    with pytest.raises(InputError, match=r"scale: a rating of [\d.]+ is outside the scale, 1 to 5"):
        estimate(percent, scores, scale=(1, 5))
    with pytest.raises(InputError, match="outside the scale"):
        differences(percent, scores, scale=(1, 5))
    assert estimate(percent, scores, scale=(20, 100))["mean"].between(50, 90).all()


def test_a_scale_that_nobody_named_is_spoken_of():
    ratings, scores = tables()
    joined = join_ratings(ratings.assign(rating=ratings.rating.round().clip(2, 4)), scores)
    estimates = estimate_systems(joined, ["score"])
    assert "No scale was named" in cautions(ratings, joined, ["score"], estimates)[1]
    assert "highest rating, 2 and 4." in cautions(ratings, joined, ["score"], estimates)[1]
    named = cautions(ratings, joined, ["score"], estimates, (1, 5))
    assert not any("scale" in sentence for sentence in named)


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=8), st.integers(-9, 9), st.integers(0, 9))
def test_no_rating_is_cut_to_a_scale(ratings, low, width):
    scale = (low, low + width)
    if low <= min(ratings) and max(ratings) <= low + width:
        mean = estimate_mean(ratings, np.zeros(len(ratings)), scale=scale).mean
        assert mean == pytest.approx(np.mean(ratings))
    else:
        with pytest.raises(InputError, match="outside the scale"):
            estimate_mean(ratings, np.zeros(len(ratings)), scale=scale)


@given(st.lists(st.integers(1, 4), min_size=2, max_size=2))
def test_who_rated_an_output_twice_counts_once(times):
    output = {"system": "A", "source": "a dam", "output": "dam"}
    rows = [
        output | {"rater": rater, "rating": rating}
        for rater, rating, n in zip(("ann", "ben"), (1, 4), times)
        for _ in range(n)
    ]
    joined = join_ratings(pd.DataFrame(rows), pd.DataFrame([output | {"length": 3}]))
    assert joined.rating.tolist() == [2.5]


@given(st.integers(0, 2**20), st.integers(6, 30))
def test_where_every_output_is_rated_the_mean_is_that_of_the_ratings(seed, n):
    generator = np.random.default_rng(seed)
    ratings = generator.integers(1, 6, n)
    scores = ratings + generator.normal(size=n)
    whole = estimate_mean(ratings, scores, scale=(1, 5))
    assert whole.mean == pytest.approx(ratings.mean())
    alone = estimate_mean(ratings, np.zeros(n), scale=(1, 5))
    assert (whole.low, whole.high) == pytest.approx((alone.low, alone.high), nan_ok=True)
    assert np.isnan(whole.low) or whole.low < whole.high


def test_ratings_meet_scores_whatever_way_their_letters_are_written():
    ratings = pd.DataFrame([{"system": "A", "source": "caf\u00e9", "output": "x\ny", "rating": 3}])
    scores = pd.DataFrame([{"system": "A ", "source": "cafe\u0301", "output": "x\r\ny", "n": 1}])
    assert rating_columns(ratings.assign(criterion="style"), scores)["style"].tolist() == [3]
