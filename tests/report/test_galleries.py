"""Galleries: the rows that belong, facts that were added, noise of labels."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

from tsteval.core.checks import InputError
from tsteval.core.metric import Metric, Scores
from tsteval.report.galleries import (
    GALLERIES,
    beside_target,
    facts_added,
    gallery_counts,
    label_noise_shares,
    new_facts,
    plot_distributions,
)
from tsteval.runs.results import SystemScores


def test_label_noise_is_what_judges_agree_on():
    random = np.random.default_rng(0)
    wrong = random.random(4000) < 0.1
    judges = {
        name: np.where(wrong ^ (random.random(4000) < 0.2), -1.0, 1.0)
        for name in ("one", "two", "three")
    }
    found = label_noise_shares(judges, n_resamples=200).set_index("judge")
    expected = 0.1 * 0.8**3 + 0.9 * 0.2**3
    assert abs(found.share["all of them"] - expected) < 0.015 and np.isclose(
        found.by_chance["all of them"], found.share.head(3).prod()
    )
    assert (found.low < found.share).all() and (found.share < found.high).all()
    # zero is not negative
    assert label_noise_shares({"one": [0.0, 0.1, -0.1]}, n_resamples=50).share.tolist() == [
        1 / 3,
        1 / 3,
    ]
    with pytest.raises(InputError, match="two has 1"):
        label_noise_shares({"one": [0.1, 0.2], "two": [0.1]})
    with pytest.raises(InputError, match="no judge"):
        label_noise_shares({})


@dataclass(frozen=True)
class Style(Metric):
    name = "sti"
    needs = ("source", "output")
    columns = ("sti",)
    question = "style"


@dataclass(frozen=True)
class Content(Metric):
    name = "cps"
    needs = ("source", "output")
    columns = ("cps",)
    question = "content"


@pytest.fixture()
def evaluation():
    table = pd.DataFrame(
        {
            "system": ["mine"] * 2 + ["human"] * 2,
            "source": ["He won in 1990.", "A fine day."] * 2,
            "output": ["He won the Derby in 1990.", "A  fine day.", "He won.", "A day."],
        }
    )
    marks = pd.DataFrame({"sti": [0.5, 0.0, 0.1, -0.3], "cps": [0.5, 1.0, 0.9, 0.7]})
    scores = dict.fromkeys(marks, Scores(marks))
    return SystemScores(pd.concat([table, marks], axis=1), [Style(), Content()], scores, {})


def test_galleries_hold_the_rows_that_belong(evaluation):
    rows = beside_target(evaluation, "mine")
    assert {name: list(choose(rows).index) for name, choose in GALLERIES.items()} == {
        "content lost": [0],
        "content beyond": [1],
        "label noise": [1],
        "style missed": [],
        "style beyond": [0, 1],
        "unchanged": [1],
        "facts added": [0],
    }
    assert (
        facts_added(rows).added[0] == ("Derby",)
        and gallery_counts(evaluation).mine["unchanged"] == 1
    )
    with pytest.raises(InputError, match="no system called 'gpt'"):
        beside_target(evaluation, "gpt")
    with pytest.raises(InputError, match="no column slor"):
        plot_distributions(evaluation, "slor")


@pytest.mark.parametrize(
    "source, output, facts",
    [
        ("It cost 9,000 pounds.", "It cost 9000 pounds.", []),
        ("It cost much.", "It cost 9,000 pounds.", ["9,000"]),
        ("the mayor of paris left.", "The mayor of Paris left. Then he slept.", []),
        ("He left.", "He left for Paris.", ["Paris"]),
    ],
)
def test_new_facts(source, output, facts):
    assert new_facts(source, output) == facts


def test_the_first_metric_of_a_question_stands_for_it_and_a_question_that_was_not_asked_is_named(
    evaluation,
):
    rows = beside_target(evaluation, "mine")
    assert rows.style_score.tolist() == rows.sti.tolist()
    assert rows.target_content_score.tolist() == rows.target_cps.tolist()
    bare = rows.drop(columns=[column for column in rows if column.endswith("_score")])
    for name in ("content lost", "label noise"):
        with pytest.raises(InputError, match=r"needs a score of (content|style)"):
            GALLERIES[name](bare)
    assert len(GALLERIES["unchanged"](bare)) == 1
