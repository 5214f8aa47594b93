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


@pytest.fixture(autouse=True)
def shown(monkeypatch):
    """The scores of these tables stand for some that are shown to follow people."""
    monkeypatch.setattr("tsteval.runs.results.not_shown", lambda *about: "")


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
        ["new moved further towards the target style than old: its own is higher by"],
        [],
    ),
    "a clear loss": (
        table(old=BASE, new=BASE - 1 + noise(1, scale=0.2)),
        "old",
        ["old moved further towards the target style than new: its own is higher by"],
        [],
    ),
    "lower is better": (
        table("lower", old=BASE, new=BASE - 1 + noise(1, scale=0.2)),
        "new",
        ["new moved further towards the target style than old: its own is lower by"],
        ["-"],
    ),
    "no end is good": (
        table("neither", old=BASE, new=BASE + 1 + noise(1, scale=0.2)),
        "",
        ["The own of new is higher than that of old by", "Neither end of it is better"],
        ["further", "towards"],
    ),
    "the same outputs": (table(old=BASE, new=BASE), "", ["score the same"], ["further", "chance"]),
    "the same but for noise": (
        table(old=BASE, new=noise(5)),
        "",
        ["not told apart: new minus old is", "which chance could do"],
        ["further"],
    ),
    "lower is better of three": (
        table(
            "lower",
            old=BASE,
            mid=BASE - 1 + noise(1, scale=0.2),
            new=BASE - 2 + noise(2, scale=0.2),
        ),
        "new",
        ["new moved further towards the target style than both others: its own is lower than"],
        ["mid moved", "old moved"],
    ),
    "the lowest of three is not alone": (
        table("lower", old=BASE + 5, mid=BASE + noise(3), new=BASE + noise(4)),
        "",
        [
            "no system is shown to be better than all others",
            "has the lowest",
            "is not told apart from it",
        ],
        ["old has the lowest", "moved"],
    ),
    "one row": (table(old=[0.1], new=[0.9]), "", ["too few rows (1)"], ["moved"]),
    "five rows": (table(old=[0.1] * 5, new=[0.9] * 5), "", ["too few rows (5)"], ["moved"]),
    "one system": (table(old=BASE), "", ["one system alone"], ["moved", "told apart"]),
    "the best of three": (
        table(old=BASE, mid=BASE + 1 + noise(1, scale=0.2), new=BASE + 2 + noise(2, scale=0.2)),
        "new",
        [
            "new moved further towards the target style than both others",
            "Against old, better: mid by",
        ],
        [],
    ),
    "two that tie at the top": (
        table(old=BASE, mid=BASE + 1 + noise(1, scale=0.5), new=BASE + 1 + noise(2, scale=0.5)),
        "",
        ["is not told apart from it", "Against old, better: mid by"],
        ["than both others"],
    ),
    "two that are equal at the top": (
        table(old=BASE, mid=BASE + 1, new=BASE + 1),
        "",
        ["scores the same"],
        ["than both others"],
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
        ahead = re.search(rf"[ ,]better: [^;.]*\b{row.a} by", conclusion.text)
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
        verdict(row, "neither") == "higher"
        and verdict(row | {"difference": -0.2}, "neither") == "lower"
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


def test_a_score_that_may_not_say_it_puts_nobody_ahead():
    """However small the p-value: the sentence says what the score is, and why it says no more."""
    row = {
        "a": "x",
        "b": "y",
        "difference": 0.2,
        "low": 0.1,
        "high": 0.3,
        "n": 40,
        "p_holm": 0.0001,
    }
    style = Score("style", "style", "STI", "higher", unfit="is not shown to know this style")
    content = Score("content", "content", "CPS", "higher")
    values = {"x": 0.5, "y": 0.3}
    found = [conclude(score, values, [row], lambda a, b: None) for score in (style, content)]
    assert style.good_end == "neither" and content.good_end == "higher"
    assert found[0].text == (
        "No verdict by STI, since it is not shown to know this style. The STI of x is higher than that of y by "
        "0.200 [0.100, 0.300] (Holm's p < .001)."
    )
    assert not found[0].leader and found[1].text == (
        "x keeps more of the source than y: its CPS is higher by 0.200 [0.100, 0.300] (Holm's p < .001)."
    )
    assert conclusions.overall(found) == "x keeps more of the source; no verdict by STI."
    assert conclusions.overall(found[:1]) == "No verdict by STI."
    assert conclusions.unsettled(found) == ""
    three = conclude(style, values | {"z": 0.1}, [row, row | {"a": "z"}], lambda a, b: None)
    assert three.text.endswith(
        "By STI, against y, higher: x by 0.200 [0.100, 0.300], z by 0.200 [0.100, 0.300]."
    )
    assert "better" not in three.text and not three.leader


def test_what_is_no_merit_is_counted():
    scores = [
        Score(question, question, question, "higher")
        for question in ("style", "content", "reference")
    ]
    row = {
        "system": "copy\n\x1b",
        "outputs": 9,
        "unchanged": 9,
        "shortened": 0,
        "given": 2,
        "alike": False,
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
    assert doubts([row | {"unscored": {}, "alike": True}], scores[:1]) == [
        "copy ?: all 9 outputs are one and the same text."
    ]


def test_who_keeps_most_by_leaving_words_out_is_doubted():
    scores = [Score("content", "cps", "CPS", "higher")]
    row = {
        "system": "cut",
        "outputs": 9,
        "unchanged": 0,
        "shortened": 5,
        "given": 0,
        "alike": False,
        "unscored": {},
    }
    leads = conclusions.Conclusion("content", "cps", "", "cut", True)
    [doubt] = doubts([row], scores, [leads])
    assert doubt.startswith("cut: 5 of 9 outputs only leave words of their source out. What stays")
    assert doubts([row | {"shortened": 4}], scores, [leads]) == []
    assert doubts([row | {"system": "other"}], scores, [leads]) == doubts([row], scores) == []


def test_which_system_is_better_in_what_is_one_sentence():
    def of(question, leader, heading="", settled=True):
        return conclusions.Conclusion(
            question, question, "", leader, settled, heading=heading or question
        )

    assert conclusions.overall(
        [of("style", "a"), of("content", "b"), of("reference", "a"), of("naturalness", "")]
    ) == (
        "a moved further towards the target style and is closer to the references; b keeps more of the source; in how "
        "naturally they read no system is shown to be better than all others."
    )
    assert (
        conclusions.overall([of("style", "", settled=False)]) == "No system is shown to be better."
    )
    assert conclusions.unsettled([of("style", "", "STI", False), of("content", "a")]) == (
        "Not told apart by STI."
    )
    scores = [Score("", "x", "", ""), Score("reference", "r", "", ""), Score("style", "s", "", "")]
    assert [score.column for score in conclusions.in_question_order(scores)] == ["s", "r", "x"]
    assert conclusions.p_text(0.0004) == "p < .001" and conclusions.p_text(0.034) == "p = .034"
    assert conclusions.p_text(0.0009995) == "p = .001"  # as a table has it: 0.0010


def test_better_by_stands_once_before_a_system_s_scores():
    found = [
        conclusions.Conclusion("", name, "", "kestrel", True, heading=name)
        for name in ("relevance", "readability")
    ]
    assert conclusions.overall(found) == "kestrel is better by relevance and readability."


def test_two_scores_of_one_question_do_not_contradict_each_other_in_the_headline():
    def of(leader, heading):
        return conclusions.Conclusion("reference", heading, "", leader, True, heading=heading)

    assert (
        conclusions.overall([of("a", "BLEU"), of("a", "chrF")]) == "a is closer to the references."
    )
    assert conclusions.overall([of("a", "BLEU"), of("b", "chrF"), of("", "WMD")]) == (
        "In closeness to the references the scores do not agree on which is best: a by BLEU, b by chrF."
    )
    assert (
        conclusions.overall([of("a", "BLEU"), of("", "chrF")])
        == "a is closer to the references by BLEU, not by chrF."
    )
