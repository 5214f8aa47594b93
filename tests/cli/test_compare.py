"""`tsteval compare` and `check`."""

import json
import sys
from pathlib import Path

import pandas as pd
import pytest

from tests.cli.conftest import OWN, refused, run, two_files, write
from tsteval.evaluation import evaluate


def test_two_files_are_compared_whatever_their_order(folder, capsys):
    two_files()
    status, out, err = run(
        capsys, "compare", "a.csv", "b.csv", "--metrics", "rouge", "--output", "out"
    )
    assert status == 0, err
    summary = json.loads(Path("out/summary.json").read_text())
    row = summary["comparisons"][0]["metrics"][0]
    assert (
        summary["comparisons"][0]["a"] == "a"
        and row["difference"] == pytest.approx(1 / 3)
        and row["p_holm"] >= row["p_value"]
    )
    line = next(line for line in out.splitlines() if line.startswith("ROUGE-1 "))
    assert (
        "1.000" in line and "0.667" in line and "0.333 [0.333, 0.333]" in line and "p (Holm)" in out
    )
    assert [source["file"] for source in summary["input"]] == ["a.csv", "b.csv"]


def test_one_table_with_both_systems_says_the_same_as_two(folder, capsys):
    two_files()
    one, other = map(pd.read_csv, ("a.csv", "b.csv"))
    wide = one.rename(columns={"output": "a"}).merge(other.rename(columns={"output": "b"}))
    wide.sample(frac=1, random_state=0).to_csv("wide.csv", index=False)
    pd.concat([one.assign(system="a"), other.assign(system="b")]).to_csv("long.csv", index=False)
    beside = ["--metrics", "rouge", "--format", "json"]
    calls = (
        ["a.csv", "b.csv"],
        ["wide.csv", "--output-column", "a", "--output-column", "b"],
        ["long.csv"],
    )
    found = []
    for call in calls:
        status, out, err = run(capsys, "compare", *call, *beside)
        assert status == 0, err
        [compared] = json.loads(out)["comparisons"]
        found.append([(row["metric"], row["difference"], row["n"]) for row in compared["metrics"]])
    assert found[0] == found[1] == found[2]
    _, out, _ = run(capsys, "compare", "long.csv", "--system", "b", "--system", "a", *beside)
    [turned] = json.loads(out)["comparisons"]
    assert (turned["a"], turned["b"]) == ("b", "a")
    for call, words in (
        (["a.csv"], ["two systems", "has 1;", "--output-column"]),
        (["long.csv", "--system", "a"], ["has 1 (a)", "--system"]),
    ):
        refused(capsys, folder, "compare", *call, *beside, words=words)


def test_files_that_cannot_be_compared_are_refused(folder, capsys):
    two_files()
    write("c.csv", [{"source": f"other {n}", "output": "x", "reference": "y"} for n in range(8)])
    write(
        "d.csv",
        [{"source": "text 0", "output": "x", "reference": "y", "system": name} for name in "ab"],
    )
    refused(
        capsys,
        folder,
        "compare",
        "a.csv",
        "c.csv",
        "--metrics",
        "rouge",
        words=["c.csv: has no source in common", "same sources"],
    )
    refused(capsys, folder, "compare", "a.csv", "d.csv", words=["d.csv", "2 systems", "--system"])
    refused(
        capsys, folder, "compare", "a.csv", "nothing.csv", words=["nothing.csv", "no such file"]
    )
    refused(capsys, folder, "compare", "a.csv", "a.csv", words=["twice"])
    refused(capsys, folder, "compare", words=["FILE"])


def _system(name, output="a gate", **columns):
    rows = [{"source": f"gate {n}", "output": output, "reference": "a gate"} for n in range(6)]
    return write(name, [row | columns for row in rows])


@pytest.mark.parametrize(
    "one, other",
    [
        ({"target_style": "neutral"}, {"target_style": "formal"}),
        ({"input": "What is it?"}, {"input": "Why?"}),
        ({"target_style": "formal"}, {}),  # the other's is the default, neutral
    ],
)
def test_files_whose_sources_have_another_style_or_input_are_refused(folder, capsys, one, other):
    files = _system("one.csv", **one), _system("two.csv", "the gate", **other)
    words = ["two.csv: has no source in common", "target_style and input"]
    if other:
        refused(capsys, folder, "compare", *files, "--metrics", "rouge", words=words)
    else:  # a file without the column takes the option's
        assert (
            run(capsys, "compare", *files, "--metrics", "rouge", "--target-style", "formal")[0] == 0
        )
        refused(capsys, folder, "compare", *files, "--metrics", "rouge", words=words)


def test_files_whose_common_sources_have_no_output_are_refused(folder, capsys):
    for name, blank in (("one", range(3)), ("two", range(3, 6))):
        rows = [
            {"source": f"gate {n}", "output": "" if n in blank else "a gate", "reference": "gate"}
            for n in range(6)
        ]
        write(f"{name}.csv", rows)
    options = ["--metrics", "readability", "--empty", "skip"]
    words = ["has no source in common"]
    refused(capsys, folder, "compare", "one.csv", "two.csv", *options, words=words)


TWINS = """
from dataclasses import dataclass
from tsteval.core.metric import Metric, Scores

@dataclass(frozen=True)
class Twin(Metric):
    name, needs, columns = "chrf", ("output",), ("chrf",)

    def score(self, rows, models=None):
        return Scores({"chrf": [42.0] * len(rows)})

@dataclass(frozen=True)
class Column(Twin):
    name = "twin"
"""


@pytest.mark.parametrize(
    "metrics, words",
    [
        ("chrf,twins:Twin", "two of the metrics are called chrf"),
        ("twins:Twin,chrf", "two of the metrics are called chrf"),
        ("chrf,chrf:beta=3", "two of the metrics are called chrf"),
        ("chrf,twins:Column", "two of the metrics write a column called chrf"),
    ],
)
@pytest.mark.parametrize(
    "command",
    [
        ["evaluate", "a.csv", "--output", "out"],
        ["check", "a.csv", "--fail-if", "chrf<0.1"],
        ["compare", "a.csv", "b.csv"],
        ["study", "a.csv"],
    ],
)
def test_two_metrics_of_one_name_are_refused(folder, capsys, monkeypatch, metrics, words, command):
    Path("twins.py").write_text(TWINS)
    monkeypatch.delitem(sys.modules, "twins", raising=False)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    _system("a.csv")
    _system("b.csv")
    refused(capsys, folder, *command, "--metrics", metrics, words=["--metrics", words])


def test_one_metric_that_is_named_twice_is_one(folder, capsys):
    status, out, _ = run(
        capsys, "check", _system("a.csv"), "--fail-if", "chrf<0.1", "--metrics", "chrf,chrf"
    )
    assert status == 0
    assert "ok    chrf<0.1  output: 1.000" in out


def test_what_one_file_lacks_is_left_out_and_said(folder, capsys):
    two_files()
    pd.read_csv("b.csv").head(7).to_csv(
        "short.csv", index=False
    )  # without the source of the other's row 0
    status, out, err = run(capsys, "compare", "a.csv", "short.csv", "--metrics", "rouge")
    assert (
        status == 0
        and "7 sources" in out
        and "7 of 8 sources shared" in out
        and "short lacks 1 that a has" in out
    ), err


def test_terminal_report_and_python_agree_on_who_is_ahead(folder, capsys):
    two_files()
    status, out, _ = run(
        capsys,
        "compare",
        "b.csv",
        "a.csv",
        "--metrics",
        "rouge",
        "--output",
        "out",
        "--report",
        "json",
    )
    assert status == 0 and "b minus a" in out and "-0.333 [-0.333, -0.333]" in out
    for name in ("summary.json", "report.json"):
        (pair,) = json.loads(Path("out", name).read_text())["comparisons"]
        assert (pair["a"], pair["b"]) == ("b", "a") and pair["metrics"][0][
            "difference"
        ] == pytest.approx(-1 / 3)
    rows = [
        row | {"system": name}
        for name in "ba"
        for row in pd.read_csv(f"{name}.csv").to_dict("records")
    ]
    found = evaluate(rows, ["rouge"], baseline="a").compare("b", "a")
    assert found.difference[0] == pytest.approx(-1 / 3)


def test_a_mistake_in_either_file_is_named_by_its_file_and_row(folder, capsys):
    good = [{"source": f"text {n}", "output": "x", "reference": "y"} for n in range(4)]
    write("good.csv", good)
    write("gap.csv", [*reversed(good[1:]), good[0] | {"output": ""}])  # in another order
    for files in (("good.csv", "gap.csv"), ("gap.csv", "good.csv")):
        refused(
            capsys,
            folder,
            "compare",
            *files,
            "--metrics",
            "rouge",
            words=["error: gap.csv: column output, row 3: the text is empty"],
        )
    write("list.jsonl", [row | {"source": [1]} for row in good])
    refused(
        capsys,
        folder,
        "compare",
        "good.csv",
        "list.jsonl",
        "--metrics",
        "rouge",
        words=["list.jsonl: column source, row 0"],
    )
    write("bare.csv", [{"source": row["source"], "output": "x"} for row in good])
    refused(
        capsys,
        folder,
        "compare",
        "good.csv",
        "bare.csv",
        words=["bare.csv: there is no column reference", "other file has one"],
    )
    write(
        "style.csv",
        [
            row | {"target_style": "neutral" if n < 2 else "angry"}
            for n, row in enumerate(reversed(good))
        ],
    )
    refused(
        capsys,
        folder,
        "compare",
        "good.csv",
        "style.csv",
        "--metrics",
        "sti",
        words=["style.csv: column target_style, row 2: there is no style"],
    )


def test_a_check_fails_with_one_and_passes_with_nought(folder, capsys):
    two_files()
    assert (
        run(capsys, "check", "a.csv", "--fail-if", "rouge2<0.5", "--fail-if", "rouge<0.9")[0] == 0
    )
    status, out, _err = run(
        capsys, "check", "b.csv", "--fail-if", "rouge1<0.9", "--fail-if", "rougeL>=0.9"
    )
    assert (
        status == 1
        and out.count("FAIL") == 1
        and "FAIL  rouge1<0.9  output: 0.667" in out
        and "1 of 2 checks failed" in out
    )
    assert sorted(p.name for p in folder.iterdir()) == ["a.csv", "b.csv"]


def test_a_check_knows_ones_own_metric_and_fails_where_there_is_no_score(folder, capsys):
    Path("own_metric.py").write_text(
        OWN.replace("rows.output.map(measure)", "rows.output.map(measure) * float('nan')")
    )
    status, out, err = run(
        capsys,
        "check",
        write("pairs.csv"),
        "--metrics",
        "own_metric:Length",
        "--fail-if",
        "length>100",
    )
    assert status == 1 and "undefined no interval" in out, err


def test_a_check_asks_for_the_end_of_an_interval(folder, capsys):
    """The score is above the floor and its lower end beneath it: one gate opens, the other does not."""
    rows = [
        {
            "source": f"text {n}",
            "output": "the mill" if n % 2 else f"text {n}",
            "reference": f"text {n}",
        }
        for n in range(12)
    ]
    asked = ("check", write("half.csv", rows), "--n-boot", "200", "--fail-if")
    row = pd.Series(evaluate(rows, ["rouge"], n_boot=200).summary().iloc[0])
    assert row.rouge1_low < 0.45 and row.rouge1 == pytest.approx(0.5) and row.rouge1_high > 0.55
    for condition, failed in (
        ("rouge1<0.45", 0),
        ("rouge1_low<0.45", 1),
        ("rouge_low<0.45", 1),
        ("rouge1>0.55", 0),
        ("rouge1_high>0.55", 1),
        (f"rouge1_low<{row.rouge1_low - 1e-6}", 0),
        (f"rouge1_low<{row.rouge1_low + 1e-6}", 1),
    ):
        status, out, err = run(capsys, *asked, condition)
        assert status == failed and out.startswith(
            f"{'FAIL' if failed else 'ok  '}  {condition[:6]}"
        ), err
        assert f"0.500 [{row.rouge1_low:.3f}, {row.rouge1_high:.3f}], n 12" in out


def test_a_check_of_an_interval_that_is_none_fails(folder, capsys):
    one = write("one.csv", [{"source": "text", "output": "the text", "reference": "the text"}])
    assert run(capsys, "check", one, "--fail-if", "rouge1<0.5")[0] == 0
    status, out, _ = run(capsys, "check", one, "--fail-if", "rouge1_low<0.5")
    assert status == 1 and "FAIL  rouge1_low<0.5  output: 1.000 no interval, n 1" in out


@pytest.mark.parametrize(
    "condition, words",
    [
        ("cps", ["--fail-if cps", "'cps<0.8'"]),
        ("cps==1", ["--fail-if"]),
        ("__import__('os')<1", ["--fail-if"]),
        ("cps<0.8 or 1", ["--fail-if"]),
        ("cps<nan", ["--fail-if"]),
        ("cps<1e999", ["--fail-if", "finite"]),
        ("colour<1", ["'colour'", "tsteval metrics"]),
        ("chrf_lo<1", ["did you mean chrf_low"]),
        ("cps<", ["--fail-if"]),
    ],
)
def test_a_condition_is_no_code(folder, capsys, condition, words):
    refused(capsys, folder, "check", write("pairs.csv"), "--fail-if", condition, words=words)


def test_a_check_of_a_bad_file_is_no_failed_check(folder, capsys):
    refused(capsys, folder, "check", "nothing.csv", "--fail-if", "bleu<0.5", words=["nothing.csv"])
    refused(capsys, folder, "check", write("pairs.csv"), words=["--fail-if"])


def test_rows_of_one_source_are_told_apart_by_input_and_target_style(folder, capsys):
    """The same file twice, once backwards: nothing differs, though every row has the same source."""
    rows = [
        {
            "source": "the mill was old",
            "input": f"question {n}",
            "target_style": ["plain", "fair"][n % 2],
            "output": "a very " * n + "old mill",
            "reference": "the old mill",
        }
        for n in range(12)
    ]
    pd.DataFrame(rows).to_csv("forth.csv", index=False)
    pd.DataFrame(rows[::-1]).to_csv("back.csv", index=False)
    status, _out, _err = run(
        capsys,
        "compare",
        "forth.csv",
        "back.csv",
        "--metrics",
        "rouge",
        "--n-boot",
        "50",
        "--output",
        "both",
    )
    found = json.loads(Path("both/summary.json").read_text("utf-8"))["comparisons"][0]["metrics"]
    assert (
        status == 0
        and found
        and all(row["difference"] == row["low"] == row["high"] == 0 for row in found)
    )


@pytest.mark.parametrize("option", [["--percent"], ["--all-scores"], ["--format", "json"]])
def test_a_check_takes_no_option_of_a_table_that_it_does_not_print(folder, capsys, option):
    asked = ["check", write("pairs.csv"), "--fail-if", "rouge1<0.5", *option]
    refused(capsys, folder, *asked, words=[option[0]])


def test_a_score_that_fell_since_the_last_release_fails(folder, capsys):
    texts = [f"The mill number {word} stands here." for word in "abcdefgh"]
    old = [{"source": text, "output": text, "reference": text} for text in texts]
    write("old.csv", old)
    write("new.csv", [{**row, "output": row["output"][:12]} for row in old])
    fell = ["--metrics", "chrf", "--fail-if", "chrf fell"]
    status, out, _err = run(capsys, "compare", "new.csv", "old.csv", *fell)
    assert status == 1 and "FAIL  chrf fell  new minus old: -0." in out
    assert out.rstrip().endswith("1 of 1 checks failed")
    status, out, _err = run(capsys, "compare", "old.csv", "new.csv", *fell)
    assert status == 0 and "ok    chrf not shown to have fallen  old minus new: 0." in out
    level = ["--fail-if", "chrf<0.99", "--fail-if", "chrf_high<0.1"]
    status, out, _err = run(capsys, "compare", "new.csv", "old.csv", "--metrics", "chrf", *level)
    assert status == 1 and "1 of 2 checks failed" in out and "new: 0." in out
    status, out, _err = run(capsys, "compare", "old.csv", "new.csv", *fell, "--limit", 3)
    assert status == 1 and "n 3, too few to tell" in out  # what cannot be found out stops a build


@pytest.mark.parametrize(
    ("command", "condition", "words"),
    [
        (["compare", "a.csv", "b.csv"], "rouge rose", ["write 'rouge fell'"]),
        (["compare", "a.csv", "b.csv"], "perplexity fell", ["write 'perplexity rose'"]),
        (["compare", "a.csv", "b.csv"], "rouge_low fell", ["write 'rouge fell'"]),
        (["compare", "a.csv", "b.csv"], "rouge sank", ["'cps fell'"]),
        (["check", "a.csv"], "rouge fell", ["tsteval compare NEW OLD --fail-if 'rouge fell'"]),
    ],
)
def test_a_change_for_the_better_or_of_one_table_is_no_condition(
    folder, capsys, command, condition, words
):
    two_files()
    refused(capsys, folder, *command, "--metrics", "rouge", "--fail-if", condition, words=words)


ANSWERS = [
    ("How long do I boil an egg?", "Boil it for ten minutes and then cool it."),
    ("Can I freeze cooked rice?", "Freeze it within an hour of cooking."),
    ("How do I roast a chicken?", "Roast it at 190 degrees for 80 minutes."),
    ("How much salt goes in pasta water?", "Use ten grams of salt a litre."),
    ("What replaces buttermilk?", "Stir lemon juice into a cup of milk."),
    ("How do I stop onions from making me cry?", "Chill the onion and use a sharp knife."),
]


def test_answers_are_compared_and_words_around_them_are_no_fault(folder, capsys):
    """Once the error asked for --source-column, and the same answers with a courtesy around them lost."""
    for name, before, after in (
        ("terse", "", ""),
        (
            "polite",
            "We value your call, and hope the day at the lake goes well. ",
            " All the best.",
        ),
    ):
        rows = [{"question": asked, "answer": before + said + after} for asked, said in ANSWERS]
        pd.DataFrame(rows).to_csv(folder / f"{name}.csv", index=False)
    status, out, _ = run(
        capsys, "compare", "polite.csv", "terse.csv", "--metrics", "relevance,readability",
        "--fail-if", "relevance fell",
    )  # fmt: skip
    assert status == 1 and "better by relevance" not in out
    assert "most outputs of polite are those of terse with more around them" in " ".join(
        out.split()
    )
    assert "FAIL" in out and "no verdict on the texts" in out
    status, out, err = run(capsys, "compare", "polite.csv", "terse.csv", "--metrics", "cps")
    assert status == 2 and out == "" and "cps compares an output with its source" in err
