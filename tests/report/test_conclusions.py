"""The sentences of a report on tables whose truth is known: nobody is called better who is not."""

import re
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

from tsteval.core.metric import Metric, Scores
from tsteval.report import conclusions
from tsteval.report.conclusions import Score, conclude, doubts, verdict
from tsteval.report.findings import work_out
from tsteval.runs.results import SystemScores


def own_metric(good, asked):
    @dataclass(frozen=True)
    class Own(Metric):
        name = "own"
        needs = ("output",)
        columns = ("own",)
        better = good
        question = asked

    return Own()


def table(better="higher", question="style", **systems):
    """An evaluation by one score of systems, given each system's numbers."""
    metric = own_metric(better, question)
    frame = pd.concat(
        [
            pd.DataFrame(
                {
                    "system": name,
                    "source": [f"s{n}" for n in range(len(values))],
                    "output": [f"{name} {n}" for n in range(len(values))],
                    "own": values,
                }
            )
            for name, values in systems.items()
        ],
        ignore_index=True,
    )
    return SystemScores(
        frame,
        [metric],
        {"own": Scores(frame[["own"]].astype(float), signature="own")},
        {},
        n_boot=400,
    )


def said(result):
    return work_out(result).conclusions[0]


def noise(seed, n=60, scale=1.0):
    return np.random.default_rng(seed).normal(0, scale, n)


BASE = noise(0)

# name -> (evaluation, who is ahead of all others, words that stand there, words that must not)
TABLES = {
    "a clear lead": (
        table(old=BASE, new=BASE + 1 + noise(1, scale=0.2)),
        "new",
        ["new is ahead of old by"],
        [],
    ),
    "a clear loss": (
        table(old=BASE, new=BASE - 1 + noise(1, scale=0.2)),
        "old",
        ["old is ahead of new by"],
        [],
    ),
    "lower is better": (
        table("lower", old=BASE, new=BASE - 1 + noise(1, scale=0.2)),
        "new",
        ["new is ahead of old by"],
        ["-"],
    ),
    "no end is good": (
        table("neither", old=BASE, new=BASE + 1 + noise(1, scale=0.2)),
        "",
        ["no end is better"],
        ["ahead"],
    ),
    "the same outputs": (table(old=BASE, new=BASE), "", ["score the same"], ["ahead", "chance"]),
    "the same but for noise": (
        table(old=BASE, new=noise(5)),
        "",
        ["not told apart", "chance could do it"[:11]],
        ["is ahead"],
    ),
    "lower is better of three": (
        table(
            "lower",
            old=BASE,
            mid=BASE - 1 + noise(1, scale=0.2),
            new=BASE - 2 + noise(2, scale=0.2),
        ),
        "new",
        ["new is ahead of both others"],
        ["mid is ahead", "old is ahead"],
    ),
    "the lowest of three is not alone": (
        table("lower", old=BASE + 5, mid=BASE + noise(3), new=BASE + noise(4)),
        "",
        ["the lowest score is that of", "is not told apart from it"],
        ["the lowest score is that of old"],
    ),
    "one row": (table(old=[0.1], new=[0.9]), "", ["too few rows (1)"], ["is ahead"]),
    "five rows": (table(old=[0.1] * 5, new=[0.9] * 5), "", ["too few rows (5)"], ["is ahead"]),
    "one system": (table(old=BASE), "", ["one system alone"], ["ahead", "told apart"]),
    "the best of three": (
        table(old=BASE, mid=BASE + 1 + noise(1, scale=0.2), new=BASE + 2 + noise(2, scale=0.2)),
        "new",
        ["new is ahead of both others", "Against old, ahead: mid by"],
        [],
    ),
    "two that tie at the top": (
        table(old=BASE, mid=BASE + 1 + noise(1, scale=0.5), new=BASE + 1 + noise(2, scale=0.5)),
        "",
        ["is not told apart from it", "Against old, ahead: mid by"],
        ["of both others"],
    ),
    "two that are equal at the top": (
        table(old=BASE, mid=BASE + 1, new=BASE + 1),
        "",
        ["scores the same"],
        ["of both others"],
    ),
}


@pytest.mark.parametrize("name", TABLES)
def test_the_sentence_says_the_truth_and_no_more(name):
    result, leader, there, absent = TABLES[name]
    found = said(result)
    assert found.leader == leader and all(words in found.text for words in there), found.text
    assert not any(words in found.text for words in absent), found.text


@pytest.mark.parametrize("seed", range(25))
def test_nobody_is_ahead_where_the_corrected_p_value_is_above_the_level(seed):
    """Five systems that are equally good: who is said to be ahead of the baseline has a p-value that says so, and the
    best one is said to be ahead of all others only if it beats each of them."""
    result = table(**{name: noise(1000 * seed + place, 40) for place, name in enumerate("abcde")})
    found = work_out(result)
    rows = result.comparisons()
    conclusion = found.conclusions[0]
    for row in rows.itertuples():
        ahead = re.search(rf"[ ,]ahead: [^;.]*\b{row.a} by", conclusion.text)
        assert not ahead or (row.p_holm <= 0.05 and row.difference > 0)
    if conclusion.leader:
        assert all(
            (result.compare(conclusion.leader, other).p_holm <= 0.05).all()
            for other in "abcde"
            if other != conclusion.leader
        )


@pytest.mark.all
def test_of_equal_systems_hardly_any_is_ahead_of_all_others():
    """Two hundred tables of three equal systems: the claim is made no more often than the level allows."""
    made = sum(
        bool(
            said(
                table(a=noise(3 * seed, 40), b=noise(3 * seed + 1, 40), c=noise(3 * seed + 2, 40))
            ).leader
        )
        for seed in range(100, 300)
    )
    assert made <= 200 * 0.05 + 3 * np.sqrt(200 * 0.05 * 0.95)


def test_a_verdict_needs_rows_a_difference_and_a_small_p():
    row = {"a": "x", "b": "y", "difference": 0.2, "low": 0.1, "high": 0.3, "n": 40, "p_holm": 0.05}
    assert verdict(row, "higher") == "better" and verdict(row, "lower") == "worse"
    assert (
        verdict(row, "neither") == "differs"
        and verdict(row | {"p_holm": 0.0501}, "higher") == "not told apart"
    )
    assert (
        verdict(row | {"n": 5}, "higher") == "too few rows"
        and verdict(row | {"difference": None}, "higher") == "too few rows"
    )
    assert verdict(row | {"p_holm": None}, "higher") == "not told apart"
    assert verdict(row | {"difference": 0, "low": 0, "high": 0, "p_holm": 1.0}, "higher") == "equal"


def test_systems_without_a_common_source_are_not_compared():
    score = Score("style", "own", "own", "higher")
    assert "not compared" in conclude(score, {"a": 1.0, "b": 2.0}, [], lambda a, b: None).text


def test_a_judge_that_is_not_shown_to_know_the_style_puts_nobody_ahead():
    """However small the p-value: the sentence, the verdict, and the sentence over all questions agree."""
    row = {
        "a": "x",
        "b": "y",
        "difference": 0.2,
        "low": 0.1,
        "high": 0.3,
        "n": 40,
        "p_holm": 0.0001,
    }
    style, content = (Score(name, name, name.upper(), "higher") for name in ("style", "content"))
    assert verdict(row, "higher", True) == "not judged"
    found = [
        conclude(
            style,
            {"x": 0.5, "y": 0.3},
            [row],
            lambda a, b: None,
            "it is not shown to know this style",
        ),
        conclude(content, {"x": 0.5, "y": 0.3}, [row], lambda a, b: None),
    ]
    assert (
        found[0].text
        == (
            "Style, by STYLE: not judged. It is not shown to know this style, so who is ahead by its "
            "scores may mean nothing."
        )
        and not found[0].leader
    )
    assert (
        conclusions.overall(found) == "x is ahead in content; in style the systems are not judged."
    )
    assert conclusions.overall(found[:1]) == "In style the systems are not judged."
    assert conclusions.unsettled(found) == ""


def test_what_is_no_merit_is_counted():
    scores = [
        Score(question, question, question, "higher")
        for question in ("style", "content", "reference")
    ]
    row = {
        "system": "copy\n\x1b",
        "outputs": 9,
        "unchanged": 9,
        "given": 2,
        "unscored": {"style": 3},
    }
    copied, given, unscored = doubts([row], scores)
    assert (
        "9 of 9 outputs equal their source" in copied
        and "content say" in copied
        and "\x1b" not in copied
    )
    assert (
        "2 of 9 outputs equal a reference" in given
        and unscored == "copy ?: 3 of 9 outputs have no style."
    )
    assert doubts([row | {"unscored": {}}], scores[:1]) == []


def test_who_is_ahead_in_what_is_one_sentence():
    def of(question, leader):
        return conclusions.Conclusion(question, question, "", leader, bool(leader))

    assert conclusions.overall(
        [of("style", "a"), of("content", "b"), of("reference", "a"), of("naturalness", "")]
    ) == (
        "a is ahead in style and reference; b is ahead in content; in naturalness nobody is shown to be ahead of "
        "all others."
    )
    assert conclusions.overall([of("style", "")]) == "In style nobody is shown to be ahead."
    assert conclusions.unsettled([of("style", ""), of("content", "a")]) == "Not settled: style."
    scores = [Score("", "x", "", ""), Score("reference", "r", "", ""), Score("style", "s", "", "")]
    assert [score.column for score in conclusions.in_question_order(scores)] == ["s", "r", "x"]
    assert conclusions.p_text(0.0004) == "p < .001" and conclusions.p_text(0.034) == "p = .034"
