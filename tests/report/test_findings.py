"""What an evaluation found, worked out once: plain, on the scale that is asked for, the same in every format."""

import json
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

from tsteval.core.metric import METRICS, Metric, Note, Scores, described
from tsteval.evaluation import evaluate, report_files
from tsteval.report.findings import comparisons, plain_records, work_out


@dataclass(frozen=True)
class Constant(Metric):
    name = "constant"
    needs = ("output", "system")
    columns = ("constant", "constant_too")

    def score(self, rows, models=None):
        score, other = self.columns
        return Scores({score: np.where(rows.system == "a", 0.5, 0.25), other: 1.0})


class Hundred(Constant):
    name = "hundred"
    columns = ("hundred", "hundred_too")
    headings = ("HUNDRED", "TOO")
    percent = "papers"


class Both(Constant):
    name = "both"
    columns = ("both", "both_too")
    headings = ("BOTH", "TOO")
    percent = "libraries"


class Own(Constant):
    name = "own"
    columns = ("own", "own_too")
    headings = ("OWN", "TOO")


@dataclass(frozen=True)
class Doubted(Metric):
    """A score of outputs whose judge is not shown to know the style."""

    name = "doubted"
    needs = ("output", "system")
    columns = ("doubted",)

    def score(self, rows, models=None):
        why = Note(
            "smooth: fake is not shown to know this style.",
            True,
            unfit="reads by fake, which is not shown to know this style",
        )
        return Scores({self.name: np.where(rows.system == "a", 0.5, 0.25)}, notes=(why,))


class DoubtedStyle(Doubted):
    name = "own"
    columns = ("own",)
    question = "style"


class SureContent(Doubted):
    name = "kept"
    columns = ("kept",)
    question = "content"

    def score(self, rows, models=None):
        return Scores({"kept": np.where(rows.system == "a", 0.5, 0.25)})


@dataclass(frozen=True)
class Gaps(Metric):
    name = "gaps"
    needs = ("output",)
    columns = ("gaps",)
    question = "content"

    def score(self, rows, models=None):
        return Scores({"gaps": [np.nan] * 2 + [1.0] * 7})


@pytest.fixture(scope="module")
def two():
    rows = [
        {"system": system, "source": f"s{n}", "output": f"o{n}"}
        for system in "ab"
        for n in range(8)
    ]
    return evaluate(rows, [Hundred, Both, Own], n_boot=20)


def test_a_metric_says_whether_percent_is_for_it(two):
    plain = work_out(two, percent=False)
    hundred = work_out(two, percent=True)
    report = work_out(two)

    def lead(found):
        return [found.headings[column] for column in found.leading]

    assert plain.percent == report.percent == () and hundred.percent == (
        "hundred",
        "hundred_too",
        "both",
        "both_too",
    )
    assert lead(plain) == ["HUNDRED", "BOTH (0-1)", "OWN"] and lead(report) == [
        "HUNDRED",
        "BOTH",
        "OWN",
    ]
    assert lead(hundred) == ["HUNDRED (0-100)", "BOTH (0-100)", "OWN"]
    assert [row["hundred"] for row in hundred.systems] == [50, 25] and hundred.systems[0][
        "own"
    ] == 0.5
    [pair] = hundred.comparisons
    assert [row["difference"] for row in pair["metrics"] if row["metric"] in hundred.leading] == [
        -25,
        -25,
        -0.25,
    ]
    assert "by 25.0" in hundred.conclusions[0].text and two.summary().hundred.tolist() == [
        0.5,
        0.25,
    ]


def test_leading_columns_and_relatives_are_all_columns(two):
    found = work_out(two)
    assert sorted([*found.leading, *found.relatives]) == sorted(two.columns)
    assert found.relatives == ["hundred_too", "both_too", "own_too"]


def test_it_is_plain_and_cannot_be_changed(two):
    found = work_out(two, {"Pairs": []}, {"tsteval": "1"}, "my.csv")
    assert (
        json.loads(json.dumps(found.plain(), allow_nan=False))["file"] == "my.csv"
        and "from my.csv" in found.about
    )
    with pytest.raises(AttributeError):
        found.file = "x"
    assert plain_records(pd.DataFrame({"a": [np.nan, np.inf, 1.0]})) == [
        {"a": None},
        {"a": None},
        {"a": 1.0},
    ]


def test_every_format_says_the_same_conclusion_and_verdict(two):
    found = work_out(two)
    text = found.conclusions[0].text
    assert text == (
        "No verdict by HUNDRED, since it is a score of your own, and nothing shows yet that it follows people. The "
        "HUNDRED of b is lower than that of a by 0.250 [0.250, 0.250] (Holm's p = .023)."
    )
    plain = json.loads(report_files(two, "json")["report.json"])
    assert (
        plain["conclusions"][0]["text"] == text
        and plain["comparisons"][0]["metrics"][0]["verdict"] == "lower"
    )
    assert text.replace("'", "&#39;") in report_files(two)["report.html"]
    assert "lower than that of a by 0.250" in report_files(two, "markdown")["report.md"]
    assert "lower than that of a by 0.250" in report_files(two, "latex")["report.tex"]
    assert [row["verdict"] for row in comparisons(two)[0]["metrics"]] == ["lower", "equal"] * 3
    assert set(two.compare("b", "a").better) == {""}


def test_a_style_that_the_judge_does_not_know_is_called_better_nowhere(monkeypatch):
    """In Python, JSON, every format of the report and the terminal alike."""
    monkeypatch.setattr("tsteval.runs.results.not_shown", lambda *about: "")
    rows = [
        {"system": system, "source": f"s{n}", "output": f"o{n}"}
        for system in "ab"
        for n in range(30)
    ]
    with pytest.warns(match="is not shown to know"):
        result = evaluate(rows, [DoubtedStyle, SureContent], n_boot=50)
    assert result.unfit == {"own": "reads by fake, which is not shown to know this style"}
    assert dict(zip(result.compare("a", "b").metric, result.compare("a", "b").better)) == {
        "own": "",
        "kept": "a",
    }
    found = work_out(result)
    assert found.overall == "a keeps more of the source; no verdict by own."
    plain = json.loads(report_files(result, "json")["report.json"])
    assert {row["metric"]: row["verdict"] for row in plain["comparisons"][0]["metrics"]} == {
        "own": "lower",
        "kept": "worse",
    }
    for form in ("html", "markdown", "latex"):
        [text] = (
            text for name, text in report_files(result, form).items() if name.startswith("report.")
        )
        assert (
            "No verdict by own, since it reads by fake, which is not shown to know" in text
            and "towards the target style" not in text
        )


def test_copies_and_rows_without_a_score_are_counted():
    rows = [
        {"system": "a", "source": f"s{n}", "output": f"s{n}" if n < 3 else "x", "reference": "x"}
        for n in range(9)
    ]
    result = evaluate(rows, ["bleu", Gaps], n_boot=5)
    assert result.tallies() == [
        {
            "system": "a",
            "unscored": {"bleu": 0, "gaps": 2},
            "alike": False,
            "outputs": 9,
            "unchanged": 3,
            "shortened": 0,
            "given": 6,
        }
    ]
    assert len(work_out(result).doubts) == 3
    same = evaluate([row | {"output": "x"} for row in rows], ["bleu"], n_boot=5)
    assert work_out(same).doubts[0] == "a: all 9 outputs are one and the same text."


def test_words_shared_with_the_source_are_not_said_to_be_close_to_references():
    rows = [
        {"system": system, "source": text, "output": output}
        for text in (f"the mill number {n} was built in {1850 + n}" for n in range(8))
        for system, output in (("whole", f"well, {text}"), ("half", text[:14]))
    ]
    found = work_out(evaluate(rows, ["chrf:against=source"], n_boot=200))
    assert "whole keeps more of the source than half" in found.conclusions[0].text
    assert found.metrics[0]["description"] == "runs of characters shared with the source, 0 to 1"


def test_what_compares_with_references_or_the_source_says_with_which():
    for name in ("chrf", "meteor", "ter", "wmd", "bert_score"):
        assert "the references" in described(METRICS[name])
        of_source = described(METRICS[name](against="source"))
        assert "the source" in of_source and "reference" not in of_source
