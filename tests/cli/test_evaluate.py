"""`tsteval evaluate`: results whole or not at all."""

import json
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.cli.conftest import FILES, OWN, ROWS, refused, run, systems, write
from tsteval import cli
from tsteval.core.assets import packaged_path


@pytest.mark.ci
def test_all_metrics_on_a_file(folder, capsys):
    rows = [row | {"system": system} for system in ("one", "two") for row in ROWS]
    pairs = write("pairs.csv", rows)
    style = ["--target-style", "neutral"]
    status, out, err = run(capsys, "evaluate", pairs, *style, "--output", "out")
    assert status == 0, err
    from tsteval.core.metric import METRICS

    columns = [
        column for name in ("bleu", "sti", "cps", "fluency") for column in METRICS[name].columns
    ]
    scored = json.loads(Path("out/summary.json").read_text())["systems"]
    assert all(column in row for column in columns for row in scored)
    headers = [line for line in out.splitlines() if line.startswith("system")]
    assert all(
        METRICS[name].headings[0] in "".join(headers) for name in ("bleu", "sti", "cps", "fluency")
    )
    summary = json.loads(Path("out/summary.json").read_text())
    assert set(summary["models"]) == {
        "subjectivity-minilm",
        "all-MiniLM-L6-v2",
        "SmolLM2-135M-Instruct",
    }
    assert summary["comparisons"][0]["a"] == "two" and len(
        summary["comparisons"][0]["metrics"]
    ) == len(columns)


@pytest.mark.ci
def test_the_columns_choose_the_metrics_and_that_is_said(folder, capsys):
    rows = [{"source": row["source"], "output": row["output"]} for row in ROWS]
    write("pairs.csv", rows)
    status, out, err = run(capsys, "evaluate", "pairs.csv", "--output", "out")
    assert status == 0 and "so it is scored by CPS" in err and "no style was asked for" in err
    assert "STI" not in out and "BLEU" not in out
    style = ["--target-style", "neutral", "--output", "out"]
    status, out, err = run(capsys, "evaluate", "pairs.csv", *style)
    assert status == 0 and "STI (neutrality)" in out and "source and output and a style" in err


ANSWERS = [
    {"question": "Who?", "context": "Anna Berg built it.", "answer": "Anna Berg."},
    {"question": "When?", "context": "It was built in 1871.", "answer": "In 1871."},
]


@pytest.mark.parametrize("engine", [[], ["--engine", "local"]])
def test_a_dry_run_scores_nothing_and_writes_nothing(folder, capsys, monkeypatch, engine):
    for name in ("tsteval.evaluation.evaluate", "tsteval.scale.evaluate_table"):
        monkeypatch.setattr(name, lambda *_, **__: pytest.fail("it was scored"))
    write("answers.csv", ANSWERS * 3000)
    metrics = ["--metrics", "relevance", "--output", "out/deep"]
    status, out, err = run(capsys, "evaluate", "answers.csv", *metrics, "--dry-run", *engine)
    assert status == 0 and "read `answer` as output" in err
    relevance, last = out.splitlines()
    # 28.9 s for a thousand rows of 17.7 words; here outputs have two
    assert relevance == "relevance: computed here, about 0.3 minutes"
    assert "6,000 rows would take about 0.3 minutes of one processor core" in last
    assert "An estimate" in last and "Nothing was scored or written" in last
    assert [path.name for path in folder.iterdir()] == ["answers.csv"]


def test_a_dry_run_says_what_nobody_timed(folder, capsys):
    write("answers.csv", ANSWERS)
    metrics = ["--metrics", "link_validity", "--dry-run"]
    _status, out, _err = run(capsys, "evaluate", "answers.csv", *metrics)
    assert out.splitlines() == [
        "link_validity: computed here",
        "link_validity: never timed, so how long that takes is unknown",
    ]


def test_two_output_columns_and_two_sheets_are_two_systems(folder, capsys):
    wide = [{"source": "A dam.", "one": "Dam.", "two": "A mill."}] * 2
    write("wide.csv", wide)
    words = ["there is no column output", "--output-column", "the columns are source, one, two"]
    refused(capsys, folder, "evaluate", "wide.csv", words=words)
    several = ["--output-column", "one", "--output-column", "two", "--metrics", "readability"]
    status, _out, err = run(capsys, "evaluate", "wide.csv", *several)
    assert status == 0 and "read `one` and `two` as output, a system each" in err
    assert pd.read_csv("tsteval-results/per_pair.csv").system.tolist() == ["one"] * 2 + ["two"] * 2
    with pd.ExcelWriter("book.xlsx") as book:
        for name in ("first", "second"):
            pd.DataFrame(ANSWERS).to_excel(book, sheet_name=name, index=False)
    sheets = ["--sheet", "first", "--sheet", "second", "--metrics", "readability"]
    assert run(capsys, "evaluate", "book.xlsx", *sheets)[0] == 0
    systems = pd.read_csv("tsteval-results/per_pair.csv").system
    assert systems.tolist() == ["first"] * 2 + ["second"] * 2
    refused(
        capsys,
        folder,
        "evaluate",
        "book.xlsx",
        *["--sheet", "third"],
        words=["no sheet 'third'; the sheets are first, second"],
    )


def test_an_option_that_is_given_twice_is_refused(folder, capsys):
    write("pairs.csv")
    refused(
        capsys,
        folder,
        "evaluate",
        "pairs.csv",
        *["--limit", "1", "--limit", "2"],
        words=["--limit is given twice"],
    )


def test_a_column_that_a_metric_lacks_is_named_with_its_option(folder, capsys):
    write("answers.csv", [{"question": "Who?", "output": "Anna Berg."}])
    asked = ["evaluate", "answers.csv", "--metrics"]
    for metric, part in (("sti", "source"), ("grounded_in_context", "context")):
        words = [f"no column {part}", f"--{part}-column", "the columns are question, output"]
        refused(capsys, folder, *asked, metric, words=words)
    words = ["no column reference", "--reference-column", "the columns are question, output"]
    refused(capsys, folder, *asked, "bleu", words=words)


def test_the_sentence_comes_first_and_tables_fit_eighty_columns(folder, capsys):
    rows = [
        {"system": name, "source": f"A dam {n}.", "output": text, "reference": "A dam."}
        for n in range(8)
        for name, text in (("a rather long name of a system", "A dam."), ("copy", f"A dam {n}."))
    ]
    write("pairs.csv", rows)
    status, out, _err = run(capsys, "evaluate", "pairs.csv", "--metrics", "bleu,rouge,chrf")
    sentences, *tables, _notes = out.split("\n\n")
    assert status == 0 and "closer to the references" in sentences.splitlines()[0]
    assert tables and all(len(line) <= 80 for table in tables for line in table.splitlines())


@pytest.mark.ci
def test_embedded_pairs_without_a_file(folder, capsys):
    status, _out, _err = run(capsys, "evaluate", "--limit", 4, "--output", "out")
    assert status == 0 and sorted(p.name for p in Path("out").glob("[!.]*")) == FILES
    scored = pd.read_csv("out/per_pair.csv")
    assert scored.system.tolist() == ["copy"] * 4 + ["delete"] * 4 + ["human"] * 4
    embedded = pd.read_json(packaged_path("npov_pairs.jsonl"), lines=True).query("split == 'test'")
    assert set(scored.source) <= set(embedded.source)


def test_a_metric_of_ones_own_is_found(folder, capsys):
    Path("my_metrics.py").write_text(OWN)
    status, out, err = run(
        capsys,
        "evaluate",
        write("pairs.csv"),
        "--metrics",
        "bleu,my_metrics:Length:unit=characters",
        "--output",
        "out",
    )
    assert status == 0 and "length" in out, err
    summary = json.loads(Path("out/summary.json").read_text())
    assert summary["settings"]["metrics"] == ["bleu", "length"]
    assert summary["settings"]["options"] == {"length": {"unit": "characters"}}
    assert (
        summary["systems"][0]["length"] == 14
        and "unit:characters" in summary["signatures"]["length"]
    )
    assert pd.read_csv("out/per_pair.csv").length.tolist() == [24, 4]


def test_every_column_is_shown(folder, capsys):
    status, out, err = run(
        capsys,
        "evaluate",
        write("pairs.csv"),
        "--metrics",
        "rouge,readability",
        "--all-scores",
        "--output",
        "out",
    )
    assert status == 0, err
    row = json.loads(Path("out/summary.json").read_text())["systems"][0]
    page = Path("out/report.html").read_text()
    scored = pd.read_csv("out/per_pair.csv")
    for name in ("rouge", "readability"):
        from tsteval.core.metric import METRICS

        for column in METRICS[name].columns:
            heading = METRICS[name].heading(column)
            assert column in row and column in scored and heading in out and heading in page


def test_formats_of_the_report(folder, capsys):
    status, _out, _err = run(
        capsys,
        "evaluate",
        write("pairs.csv"),
        "--metrics",
        "bleu",
        "--report",
        "markdown",
        "--report",
        "json",
        "--output",
        "out",
    )
    assert status == 0 and sorted(p.name for p in Path("out").glob("[!.]*")) == [
        "per_pair.csv",
        "report-figure-1.svg",
        "report-figure-2.svg",
        "report.json",
        "report.md",
        "summary.json",
    ]
    refused(capsys, folder, "evaluate", "pairs.csv", "--report", "pdf", words=["--report"])


def test_a_cache_changes_no_byte(folder, capsys):
    write("pairs.csv")
    for name, options in (
        ("plain", []),
        ("first", ["--cache", "scores.sqlite"]),
        ("again", ["--cache", "scores.sqlite"]),
    ):
        assert (
            run(
                capsys,
                "evaluate",
                "pairs.csv",
                "--metrics",
                "bleu,rouge",
                "--output",
                name,
                *options,
            )[0]
            == 0
        )
    assert (
        Path("plain/per_pair.csv").read_bytes()
        == Path("first/per_pair.csv").read_bytes()
        == Path("again/per_pair.csv").read_bytes()
    )
    refused(
        capsys,
        folder,
        "evaluate",
        "pairs.csv",
        "--metrics",
        "bleu",
        "--cache",
        "pairs.csv",
        "--output",
        "no",
        words=["cache", "delete"],
    )


def test_a_data_set_of_hugging_face_is_a_table():
    datasets = pytest.importorskip("datasets")
    from tsteval.core.checks import InputError
    from tsteval.evaluation import evaluate

    data = datasets.Dataset.from_list(
        [
            {"source": "a b", "output": "a", "reference": ["a b", "b"]},
            {"source": "c", "output": "c", "reference": ["d"]},
        ]
    )
    expected = evaluate(data.to_list(), ["bleu", "rouge"], n_boot=5).summary()
    for pairs in (data, data.to_iterable_dataset(), data.to_pandas()):
        pd.testing.assert_frame_equal(
            evaluate(pairs, ["bleu", "rouge"], n_boot=5).summary(), expected
        )
    with pytest.raises(InputError, match=r"pairs\['test'\]"):
        evaluate(datasets.DatasetDict({"test": data}), ["bleu"])


@pytest.mark.ci
def test_metrics_are_modules_of_the_library_evaluate(tmp_path):
    pytest.importorskip("evaluate")
    program = """
import evaluate
from tsteval.bleu import corpus_bleu
from tsteval.core.assets import packaged_path
folder = str(packaged_path("tsteval_metric"))
outputs, references = ["a b c d e", "x y z w"], [["a b c d e"], ["x y z v", "x y"]]
found = evaluate.load(folder, "bleu").compute(predictions=outputs, references=references, n_boot=50)
assert abs(found["bleu"] - corpus_bleu(outputs, references).score) < 1e-9
from math import exp
three = {"predictions": ["a b c d e"], "references": [["a b c d e f", "a b"]], "smoothing": "none", "n_boot": 5}
assert abs(evaluate.load(folder, "bleu").compute(**three)["bleu"] - exp(1 - 6 / 5)) < 1e-9  # the library's: 1
assert "library's own module bleu takes the shortest reference" in evaluate.load(folder, "bleu").description
assert "shortest" not in evaluate.load(folder, "chrf").description
assert found["bleu_low"] <= found["bleu"] and "tok:13a" in found["signature"]
stemmed = evaluate.load(folder, "rouge").compute(predictions=["running"], references=["runs"], stemmer=True, n_boot=5)
assert "stem:no" not in stemmed["signature"]
same = {"predictions": ["a long day"], "references": ["a long day"]}
assert abs(evaluate.load(folder, "chrf").compute(**same, n_boot=5)["chrf"] - 1) < 1e-9
assert "readability" in evaluate.load(folder, "readability").compute(predictions=["A good day in May."], n_boot=5)
"""
    import os

    environment = {
        **os.environ,
        "HF_HUB_OFFLINE": "1",
        "HF_EVALUATE_OFFLINE": "1",
        "HF_HOME": str(tmp_path),
    }
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-1500:]


def test_the_table_is_printed_in_five_formats(folder, capsys):
    write("pairs.csv", systems("one", "two"))
    printed = {}
    for format in ("text", "markdown", "latex", "json", "csv"):
        status, printed[format], err = run(
            capsys,
            "evaluate",
            "pairs.csv",
            "--metrics",
            "bleu,rouge",
            "--format",
            format,
            "--quiet",
        )
        assert status == 0 and ("Written to" in printed[format]) == (format == "text")
        assert "Written to" in printed[format] + err
    summary = json.loads(Path("tsteval-results/summary.json").read_text())
    assert (
        json.loads(printed["json"])["systems"] == summary["systems"]
        and json.loads(printed["json"])["comparisons"] == summary["comparisons"]
    )
    import io

    frame = pd.read_csv(io.StringIO(printed["csv"]))
    (row,) = frame[(frame.system == "two") & (frame.score == "rouge1")].to_dict("records")
    (said,) = [
        entry for entry in summary["comparisons"][0]["metrics"] if entry["metric"] == "rouge1"
    ]
    assert (
        row["baseline"] == "one"
        and row["difference"] == pytest.approx(said["difference"])
        and row["p_holm"] == pytest.approx(said["p_holm"])
    )
    difference = f"{said['difference']:.3f} [{said['low']:.3f}, {said['high']:.3f}]"
    assert (
        f"\nROUGE-1     {difference}" in printed["text"]
        and "\ntwo minus one\n" in printed["text"]
        and f"{said['p_holm']:.4f}" in printed["text"]
    )
    escaped = difference.replace("[", r"\[").replace("]", r"\]")
    assert (
        f"| two minus one | ROUGE-1 | {escaped}" in printed["markdown"]
        and r"\toprule" in printed["latex"]
    )
    refused(
        capsys,
        folder,
        "evaluate",
        "pairs.csv",
        "--format",
        "latex",
        "--format",
        "csv",
        words=["--format", "--report", "tsteval evaluate --help"],
    )
    refused(
        capsys, folder, "evaluate", "pairs.csv", "--format", "html", words=["--format", "markdown"]
    )


def test_percent_is_for_what_is_printed_alone(folder, capsys):
    write("pairs.csv", systems("one", "two"))
    plain = run(
        capsys, "evaluate", "pairs.csv", "--metrics", "bleu,readability", "--format", "json"
    )[1]
    files = {path.name: path.read_bytes() for path in Path("tsteval-results").glob("[!.]*")}
    percent = run(
        capsys,
        "evaluate",
        "pairs.csv",
        "--metrics",
        "bleu,readability",
        "--format",
        "json",
        "--percent",
    )[1]
    for name, kept in files.items():
        assert kept == Path("tsteval-results", name).read_bytes()
    one = json.loads(plain)
    hundred = json.loads(percent)
    assert hundred["percent"] == ["bleu"] and one["percent"] == []
    for row, other in zip(one["systems"], hundred["systems"]):
        assert (
            other["bleu"] == pytest.approx(100 * row["bleu"])
            and other["bleu_low"] == pytest.approx(100 * row["bleu_low"])
            and other["readability"] == row["readability"]
        )
    assert hundred["comparisons"][0]["metrics"][0]["difference"] == pytest.approx(
        100 * one["comparisons"][0]["metrics"][0]["difference"]
    )
    assert "BLEU (0-1)" in run(capsys, "evaluate", "pairs.csv", "--metrics", "bleu")[1]
    assert (
        "BLEU (0-100)" in run(capsys, "evaluate", "pairs.csv", "--metrics", "bleu", "--percent")[1]
    )


def test_percent_holds_for_intensity_and_its_share_of_the_possible(folder, capsys):
    write("pairs.csv", systems("one"))
    style = ("evaluate", "pairs.csv", "--metrics", "sti", "--target-style", "neutral")
    one, hundred = (
        json.loads(run(capsys, *style, "--format", "json", *more)[1])
        for more in ((), ("--percent",))
    )
    assert hundred["percent"] == ["sti", "normalized_intensity", "target_reached"]
    for column in hundred["percent"]:
        assert hundred["systems"][0][column] == pytest.approx(100 * one["systems"][0][column])
    assert "STI (neutrality) (%)" in run(capsys, *style, "--percent")[1]


def test_any_system_may_be_the_baseline(folder, capsys):
    write("pairs.csv", systems("one", "two", "three"))
    status, out, err = run(
        capsys,
        "evaluate",
        "pairs.csv",
        "--metrics",
        "rouge",
        "--baseline",
        "two",
        "--report",
        "json",
    )
    assert (
        status == 0
        and "one minus two" in out
        and "three minus two" in out
        and "minus one" not in out
    ), err
    for name in ("summary.json", "report.json"):
        assert [
            (pair["a"], pair["b"])
            for pair in json.loads(Path("tsteval-results", name).read_text())["comparisons"]
        ] == [("one", "two"), ("three", "two")]
    refused(
        capsys,
        folder,
        "evaluate",
        "pairs.csv",
        "--baseline",
        "four",
        words=["--baseline", "'four'", "one, two, three"],
    )


def test_names_cannot_harm_a_terminal(folder, capsys):
    names = ["two\x1b[2J\x07", "right\u202eleft", "x" * 19_000 + "-v2", "last"]
    status, out, err = run(
        capsys, "evaluate", write("pairs.csv", systems(*names)), "--metrics", "rouge", "--quiet"
    )
    assert status == 0 and not any(bad in out + err for bad in "\x1b\x07\u202e"), err
    assert max(map(len, out.splitlines())) <= 600 and "xxx-v2" in out
    status, out, err = run(
        capsys, "evaluate", write("head.csv", [{"sou\x1b[2Jrce" + "y" * 30_000: "a"}])
    )
    assert status == 2 and "\x1b" not in err and len(err) < 1_200 and err.count("\n") == 1


def test_an_interrupt_after_the_last_file_says_where_the_results_are(folder, capsys, monkeypatch):
    monkeypatch.setattr(
        "tsteval.cli.evaluate.print_table",
        lambda *options: (_ for _ in ()).throw(KeyboardInterrupt),
    )
    status, _out, err = run(
        capsys, "evaluate", write("pairs.csv"), "--metrics", "rouge", "--quiet", "--output", "out"
    )
    assert status == 130 and "the results are in out" in err and Path("out/report.html").is_file()


def test_a_result_set_is_never_mixed(folder, capsys, monkeypatch):
    write("pairs.csv")
    assert (
        run(
            capsys,
            "evaluate",
            "pairs.csv",
            "--metrics",
            "bleu",
            "--report",
            "markdown",
            "--output",
            "out",
        )[0]
        == 0
    )
    Path("out/mine.txt").write_text("mine")
    before = {path.name: path.read_bytes() for path in Path("out").glob("[!.]*")}
    import tsteval.tables.tables as tables

    real = os.fsync
    calls = []

    def full(handle):
        calls.append(handle)
        if len(calls) == 2:
            raise OSError(28, "No space left on device")
        real(handle)

    monkeypatch.setattr(tables.os, "fsync", full)
    status, _out, err = run(
        capsys, "evaluate", "pairs.csv", "--metrics", "rouge", "--output", "out", "--quiet"
    )
    assert status == 2 and err == (
        "tsteval: error: --output out: summary.json: cannot be written (No space left on "
        "device); nothing was changed\n"
    )
    assert {path.name: path.read_bytes() for path in Path("out").glob("[!.]*")} == before
    assert run(capsys, "evaluate", "pairs.csv", "--metrics", "rouge", "--output", "out")[0] == 0
    # the old report is gone with its table
    assert sorted(path.name for path in Path("out").glob("[!.]*")) == sorted([*FILES, "mine.txt"])


def test_formulas_are_escaped_when_asked(folder, capsys):
    rows = [
        {
            "system": "@sum",
            "source": '=HYPERLINK("x")',
            "output": "-2+3 is one",
            "reference": "a - b",
        }
    ]
    for options, first in (([], "=HYPERLINK"), (["--csv-safe"], "'=HYPERLINK")):
        assert (
            run(
                capsys,
                "evaluate",
                write("pairs.csv", rows),
                "--metrics",
                "rouge,readability",
                "--output",
                "out",
                *options,
            )[0]
            == 0
        )
        scored = pd.read_csv("out/per_pair.csv")
        assert scored.source[0].startswith(first) and scored.reference[0] == "a - b"
        assert scored.output[0].startswith(first[0] * bool(options) + "-2")
        assert scored.readability.dtype == float


def test_a_style_model_that_does_not_know_the_style_is_said_below_the_table(folder, capsys):
    pairs = pd.read_json(packaged_path("formality_pairs.jsonl"), lines=True)
    pd.DataFrame(
        {"source": pairs.informal, "output": pairs.formal, "reference": pairs.formal}
    ).to_csv("formal.csv", index=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        line = "evaluate formal.csv --metrics sti --target-style neutral --n-boot 5"
        assert cli.main(line.split()) == 0
    said = capsys.readouterr().out
    assert (
        "STI (neutrality)" in said
        and ("warning: neutrality: on these texts subjectivity-minilm does no better than length")
        in said
    )
    notes = json.loads(Path("tsteval-results/summary.json").read_text())["notes"]
    assert (
        notes[0]["warning"]
        and notes[0]["figures"]["pairs"] == 40
        and "no better than length" in Path("tsteval-results/report.html").read_text()
    )
    assert (
        cli.main(["check", "formal.csv", "--fail-if", "sti<-1", "--n-boot", "5"]) == 0
        and "warning: neutrality" in capsys.readouterr().out
    )


def test_ngram_models_are_named_by_files(folder, capsys):
    from tsteval.ngram import NgramLM

    Path("corpus.txt").write_text("The cat sat.\nThe dog sat on the mat.\nA cat ran.\n")
    NgramLM(2, padding="arpa").fit([["the", "cat", "sat"], ["a", "dog", "ran"]]).to_arpa(
        "model.arpa"
    )
    names = ["ngram", "amelioration_1", "amelioration_2"]
    options = "text=corpus.txt,order=2"
    status, out, err = run(
        capsys,
        "evaluate",
        write("pairs.csv"),
        "--metrics",
        f"ngram:{options},amelioration_1:{options}",
        "--metrics",
        f"amelioration_2:{options},good_share=0.3,perplexity",
        "--language-model",
        "model.arpa",
        "--output",
        "out",
    )
    assert status == 0, err
    scored = pd.read_csv("out/per_pair.csv")
    assert np.isfinite(scored[[*names, "perplexity"]]).all(axis=None) and "ln A2" in out
    models = json.loads(Path("out/summary.json").read_text())["models"]
    assert set(models) == {"ngram-2-kneser_ney-arpa", "ngram-2-arpa-arpa"}
    refused(
        capsys,
        folder,
        "evaluate",
        "pairs.csv",
        "--metrics",
        "perplexity",
        "--language-model",
        "none.arpa",
        words=["--language-model", "none.arpa"],
    )
    refused(
        capsys,
        folder,
        "evaluate",
        "pairs.csv",
        "--metrics",
        "ngram:model=none.arpa",
        words=["none.arpa"],
    )


GERMAN = [
    "Das Essen war sehr gut und die Bedienung freundlich.",
    "Ich komme nicht wieder, weil es zu teuer ist.",
    "Der Film hat mir in jeder Hinsicht gefallen.",
    "Wir haben lange auf das Essen gewartet.",
    "Die Zimmer sind sauber und das Bett ist bequem.",
    "Leider war der Kellner nicht sehr aufmerksam.",
    "Am Abend gehen wir oft in den Park.",
]
ENGLISH = [
    "The food was very good and the service was friendly.",
    "I will not come back because it is too expensive.",
    "I liked the film in every respect.",
    "We waited for the food for a long time.",
    "The rooms are clean and the bed is comfortable.",
    "Unfortunately the waiter was not very attentive.",
    "In the evening we often go to the park.",
]


def test_a_german_system_is_told_apart_by_bleu_and_gets_no_verdict_by_a_score_for_english(
    folder, capsys
):
    rows = [
        {"system": system, "source": f"{english} Honestly.", "output": text, "reference": english}
        for system, texts in (("english", ENGLISH), ("german", GERMAN))
        for english, text in zip(ENGLISH, texts)
    ]
    status, out, err = run(
        capsys, "evaluate", write("two.csv", rows), "--metrics", "bleu,readability"
    )
    assert status == 0, err
    assert "english is closer to the references; no verdict by readability." in out
    assert "english is closer to the references than german: its BLEU" in out
    # without the pronouncing dictionary, that syllables were counted by rule is reason enough
    reason = r"(the outputs of german are not in English|not with syllables rule)"
    assert re.search(rf"No verdict by readability, since .*{reason}", " ".join(out.split()))
    assert "warning: the outputs of german are not in English, for which readability is made" in out
    assert re.search(r"german minus english\n.*\nBLEU .* worse\n", out)
    assert re.search(r"\nreadability .* (lower|higher|not told apart)\n", out)


def test_texts_that_are_not_in_english_are_named_once_for_all_scores(folder, capsys):
    rows = [
        {"system": system, "source": text, "output": text, "reference": text}
        for system in ("one", "two")
        for text in GERMAN
    ]
    status, out, err = run(
        capsys, "evaluate", write("german.csv", rows), "--metrics", "meteor,readability"
    )
    assert status == 0, err
    assert (
        "warning: the references, the outputs of one and the outputs of two are not in English, for which METEOR "
        "and readability are made" in out
    )


def test_fluency_of_answers_and_a_score_of_ones_own_give_no_verdict(folder, capsys):
    Path("mine.py").write_text(
        "from dataclasses import dataclass\nfrom tsteval.core.metric import Metric, Scores\n\n\n"
        "@dataclass(frozen=True)\nclass Long(Metric):\n    name = 'bleu'\n    needs = ('output',)\n"
        "    columns = ('bleu',)\n\n    def score(self, rows, models=None):\n"
        "        return Scores({'bleu': rows.output.str.len().astype(float)})\n"
    )
    rows = [
        {"system": system, "input": f"What is said here, {n}?", "output": text}
        for system, texts in (("one", ENGLISH), ("two", [text[:9] for text in ENGLISH]))
        for n, text in enumerate(texts)
    ]
    line = ("evaluate", write("chat.csv", rows), "--metrics", "mine:Long,ngram")
    status, out, err = run(capsys, *line)
    assert status == 0, err
    assert "No verdict by bleu, since it is a score of your own, and nothing shows yet" in out
    assert "The bleu of two is lower than that of one by" in out
    assert "better" not in out and "ahead" not in out and "closer" not in out


def test_a_score_of_style_asks_for_the_style(folder, capsys):
    refused(
        capsys,
        folder,
        "evaluate",
        write("pairs.csv"),
        "--metrics",
        "sti",
        words=["--target-style: name the style to be reached; those of subjectivity-minilm are"],
    )


def test_texts_that_stand_alone_are_scored(folder, capsys):
    alone = write(
        "alone.csv", [{"output": text} for text in ("It rained all day.", "The dogs barked.")]
    )
    status, out, err = run(capsys, "evaluate", alone, "--metrics", "readability", "--output", "out")
    assert status == 0 and "readability" in out, err
    assert pd.read_csv("out/per_pair.csv").readability.notna().all()
    for metrics, words in (
        ("relevance", "no column question, and relevance"),
        ("chrf", "reference"),
        ("sti", "no column source, and sti"),
    ):
        refused(
            capsys,
            folder,
            "evaluate",
            alone,
            "--metrics",
            metrics,
            "--output",
            "out",
            words=[words],
        )


def test_nothing_is_written_over_what_is_read_or_what_others_wrote(folder, capsys):
    """Results go into a folder beside other files, and replace none that is not theirs."""
    write("pairs.csv")
    for name in ("report.docx", "report.tex", "manifest.json", "notes.csv"):
        Path(name).write_text("theirs")
    call = ("evaluate", "pairs.csv", "--metrics", "bleu", "--n-boot", "5", "--output", ".")
    assert run(capsys, *call)[0] == 0 and run(capsys, *call)[0] == 0  # its own it replaces
    for name in ("report.docx", "report.tex", "manifest.json", "notes.csv"):
        assert Path(name).read_text() == "theirs"
    scores = Path("per_pair.csv").read_bytes()
    again = ("evaluate", "per_pair.csv", "--metrics", "bleu", "--n-boot", "5", "--output", ".")
    refused(capsys, folder, *again, words=["per_pair.csv", "would be written over"])
    Path("per_pair.csv").write_text("filled by hand")
    refused(capsys, folder, *call, words=["per_pair.csv", "changed since tsteval wrote it"])
    assert Path("per_pair.csv").read_text() == "filled by hand" and scores
