"""What is found wrong before any model is loaded."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import sacrebleu

from tests.cli.conftest import FILES, OWN, ROWS, lines, pipe, refused, run, write
from tsteval.cli.request import named_metrics
from tsteval.core.checks import InputError


@pytest.mark.parametrize(
    "arguments, words",
    [
        (
            ["--metrics", "blue"],
            [
                "error: --metrics: there is no metric called 'blue' (did you mean bleu?)",
                "bleu, rouge, sti, cps, ngram",
            ],
        ),
        (["--metrics", "no_module:metric"], ["no_module", "cannot import"]),
        (["--metrics", "json:loads"], ["Metric", "function"]),
        (
            ["--metrics", "bleu:smoothings=exp"],
            ["error: --metrics: bleu has no option 'smoothings'", "smoothing"],
        ),
        (["--metrics", "bleu:smoothing=expo"], ["--metrics bleu:smoothing must be", "'expo'"]),
        (
            ["--metrics", "bleu", "--set", "cps.strategy=none"],
            ["stand behind its name: --metrics cps:strategy=none"],
        ),
        (["--metrics", "bleu:floor"], ["error: --metrics: write bleu:OPTION=VALUE", "'floor'"]),
        (["--metrics", "cps:threshold=3"], ["error: --metrics cps:threshold must be"]),
        (["--n-boot", "0"], ["--n-boot"]),
        (
            ["--metrics", "bleu", "--output", "/proc/none"],
            ["error: --output /proc/none: cannot be made"],
        ),
        (
            ["--metrics", "bleu", "--cache", "none/scores"],
            ["cache none/scores: name a file in a folder that exists"],
        ),
        (["--device", "abacus"], ["--device"]),
        (["--system", "gpt"], ["no system called 'gpt'"]),
        (["--source-column", "input"], ["no column input", "source, output, reference"]),
        (["--reference-column", "gold"], ["no column gold"]),
        (["--limit", "0"], ["--limit"]),
        (["--limit", "many"], ["--limit"]),
        (["--seed", "-1"], ["--seed"]),
        (["--colour"], ["--colour"]),
        (
            ["--target-style", "angry", "--metrics", "sti"],
            ["no style called 'angry'", "subjective, neutral"],
        ),
    ],
)
def test_bad_options(folder, capsys, arguments, words):
    refused(capsys, folder, "evaluate", write("pairs.csv"), *arguments, words=words)


def test_missing_file_folder_and_occupied_output(folder, capsys):
    write("pairs.csv")
    refused(capsys, folder, "evaluate", "nothing.csv", words=["nothing.csv", "no such file"])
    Path("empty").mkdir()
    refused(capsys, folder, "evaluate", "empty", words=["folder", ".csv"])
    refused(
        capsys,
        folder,
        "evaluate",
        "pairs.csv",
        "--metrics",
        "bleu",
        "--output",
        "pairs.csv",
        words=["--output"],
    )


def test_bleu_asked_for_without_references(folder, capsys):
    rows = [{"source": "a", "output": "b"}]
    refused(
        capsys,
        folder,
        "evaluate",
        write("x.csv", rows),
        "--metrics",
        "bleu",
        words=["x.csv", "no column reference"],
    )


CHOSEN = {
    "--target-style": "subjective",
    "--empty": "skip",
    "--style-model": "a",
    "--encoder": "b",
    "--language-model": "c",
    "--device": "cpu",
    "--batch-size": "3",
    "--baseline": "output",
    "--n-boot": "7",
    "--seed": "9",
    "--cache": "d",
    "--models": "base",
    "--references-as": "people",
}  # each setting of a table in memory, not its default


def test_every_setting_is_an_option_and_reaches_the_evaluation(folder, capsys, monkeypatch):
    from tsteval import evaluation
    from tsteval.runs.settings import Settings, list_settings

    flags = [setting.flag for setting in list_settings(False)]
    assert set(flags) <= set(CHOSEN), "give the new setting a value in CHOSEN"
    given = {}
    real = evaluation.evaluate
    monkeypatch.setattr(
        evaluation,
        "evaluate",
        lambda pairs, metrics, **options: given.update(options) or real(pairs, metrics, n_boot=5),
    )
    monkeypatch.setattr("tsteval.cli.request.locate_model", lambda *options: None)
    words = [word for flag in flags for word in (flag, CHOSEN[flag])]
    status, _out, err = run(capsys, "evaluate", write("pairs.csv"), "--metrics", "bleu", *words)
    assert status == 0, err
    chosen = Settings(**{name: value for name, value in given.items() if name != "progress"})
    assert all(getattr(chosen, setting.name) != setting.default for setting in list_settings(False))


def never(*options, **more):
    raise AssertionError("nothing may be scored before this is checked")


def test_a_model_that_cannot_be_had_is_found_before_the_first_score(folder, capsys, monkeypatch):
    from tsteval import evaluation

    monkeypatch.setattr(evaluation, "evaluate", never)
    for option in ("--style-model", "--encoder", "--language-model"):
        refused(
            capsys,
            folder,
            "evaluate",
            write("pairs.csv"),
            option,
            "nobody/nothing",
            words=["nobody/nothing"],
        )


def test_a_default_model_that_cannot_be_had_is_found_on_one_row(folder, capsys, monkeypatch):
    from tsteval.core.assets import AssetError
    from tsteval.fluency import CausalLM

    scored = []
    Path("counting.py").write_text(OWN)
    sys.path.insert(0, str(folder))
    import counting

    def score(self, rows, models):
        scored.append(len(rows))
        return length(self, rows, models)

    def load(*options, **more):
        raise AssetError("there is no such model")

    length = counting.Length.score
    monkeypatch.setattr(counting.Length, "score", score)
    monkeypatch.setattr(CausalLM, "load", classmethod(load))
    refused(
        capsys,
        folder,
        "evaluate",
        write("pairs.csv", ROWS * 20),
        "--metrics",
        "counting:Length,fluency",
        words=["no such model"],
    )
    assert scored == [1]
    sys.path.remove(str(folder))


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or (os.geteuid() == 0 and not Path("/proc/self").exists()),
    reason="needs a folder in which nobody can write",
)
def test_a_folder_that_cannot_be_written_is_found_before_the_first_score(
    folder, capsys, monkeypatch
):
    from tsteval import evaluation

    monkeypatch.setattr(evaluation, "evaluate", never)
    refused(
        capsys,
        folder,
        "evaluate",
        write("pairs.csv"),
        "--output",
        "/proc/none",
        words=["--output /proc/none", "cannot be made"],
    )
    monkeypatch.setattr(
        "tsteval.cli.request.shutil.disk_usage",
        lambda place: type("Usage", (), {"free": 1_000_000}),
    )
    refused(
        capsys,
        folder,
        "evaluate",
        "pairs.csv",
        "--output",
        "out",
        words=["--output out", "1.0 MB are free"],
    )


BLOCKED = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "transformers", "captum", "peft"): raise ImportError(f"{name} is blocked")
sys.meta_path.insert(0, Block())
from tsteval.cli import main
sys.exit(main(sys.argv[1:]))
"""


def without_torch(*words):
    environment = {**os.environ, "TSTEVAL_CACHE": os.path.abspath("cache")}
    return subprocess.run(
        [sys.executable, "-c", BLOCKED, *words],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )


def test_counting_metrics_fetch_nothing_and_need_no_torch(folder):
    done = without_torch("evaluate", write("pairs.csv"), "--metrics", "bleu,rouge,chrf")
    assert done.returncode == 0 and "BLEU" in done.stdout and not Path("cache").exists(), (
        done.stderr
    )
    assert "\r" not in done.stderr  # no bar where nobody looks at a terminal


@pytest.mark.parametrize(
    "options, words",
    [
        (
            ["--target-style", "formal"],
            [
                "--target-style: there is no style called 'formal'; formality-minilm has it: "
                "--style-model formality-minilm"
            ],
        ),
        (["--target-style", "natural"], ["'natural' (did you mean neutral?)"]),
        (
            ["--style-model", "formality-minilm"],
            ["--target-style: name the style to be reached", "informal, formal"],
        ),
        (
            ["--style-model", "formality-minilm", "--target-style", "neutral"],
            ["subjectivity-minilm has it"],
        ),
    ],
)
def test_a_wrong_style_is_told_before_any_model_is_loaded(folder, options, words):
    done = without_torch("evaluate", write("pairs.csv"), "--metrics", "sti", *options)
    assert (
        done.returncode == 2
        and done.stderr.count("\n") == 1
        and all(word in done.stderr for word in words)
    ), done


def test_the_styles_of_a_column_are_told_by_their_row(folder):
    rows = [row | {"target_style": style} for row, style in zip(ROWS, ("neutral", "formal"))]
    done = without_torch("evaluate", write("pairs.csv", rows), "--metrics", "sti")
    assert (
        done.returncode == 2
        and "pairs.csv: column target_style, row 1: there is no style" in done.stderr
    )
    rows = [row | {"target_style": "pirate"} for row in ROWS]
    done = without_torch("evaluate", write("pirates.csv", rows), "--metrics", "sti")
    assert "'pirate'; name a model that knows it with --style-model;" in done.stderr


def test_labels_of_a_model_of_transformers_come_from_its_config(folder):
    Path("own").mkdir()
    Path("own/config.json").write_text(
        json.dumps({"id2label": {"1": "rude", "0": "polite", "10": "x", "2": "y"}})
    )
    Path("own/model.safetensors").write_bytes(b"")
    rows = [row | {"target_style": style} for row, style in zip(ROWS, ("rude", "loud"))]
    done = without_torch(
        "evaluate", write("pairs.csv", rows), "--metrics", "sti", "--style-model", "./own"
    )
    assert (
        done.returncode == 2
        and "column target_style, row 1: there is no style called 'loud'" in done.stderr
    )
    assert "the styles of ./own are polite, rude, y, x" in done.stderr
    rows = [
        row | {"target_style": style} for row, style in zip(ROWS, ("RUDE", "loud"))
    ]  # the first is known
    done = without_torch(
        "evaluate", write("pairs.csv", rows), "--metrics", "sti", "--style-model", "./own"
    )
    assert "column target_style, row 1: there is no style called 'loud'" in done.stderr


def test_groups_of_metrics():
    def names(*lists):
        return [metric.name for metric in named_metrics(lists)]

    assert set(names("content")) == {"cps", "content"}
    assert "fluency" in names("naturalness")
    assert names("reference,bleu").count("bleu") == 1
    assert names("style", "bleu")[:: len(names("style"))] == ["sti", "bleu"]
    with pytest.raises(InputError, match=r"did you mean naturalness"):
        names("naturalnes")


@pytest.mark.parametrize(
    "options, words",
    [
        (["--metrics", "bleu:smoothings=exp"], ["did you mean smoothing?"]),
        (["--metrix", "bleu"], ["did you mean --metrics?"]),
    ],
)
def test_a_near_miss_is_suggested(folder, capsys, options, words):
    refused(
        capsys, folder, "evaluate", write("pairs.csv"), "--metrics", "bleu", *options, words=words
    )


def test_empty_outputs_are_skipped_or_counted_as_zero(folder, capsys):
    write("pairs.csv", [*ROWS, ROWS[0] | {"source": "One more.", "output": ""}])
    refused(
        capsys,
        folder,
        "evaluate",
        "pairs.csv",
        "--metrics",
        "rouge",
        words=["row 2", "line 4 of a spreadsheet"],
    )
    for choice, rows in (("skip", 2), ("zero", 3)):
        status, *_ = run(capsys, "evaluate", "pairs.csv", "--metrics", "rouge", "--empty", choice)
        assert (
            status == 0
            and json.loads(Path("tsteval-results/summary.json").read_text())["systems"][0]["n"]
            == rows
        )


@pytest.mark.parametrize("name", ["pairs.csv", "pairs.tsv", "pairs.jsonl", "pairs.parquet"])
def test_formats_give_the_same_scores(folder, capsys, name):
    status, out, _err = run(capsys, "evaluate", write(name), "--metrics", "bleu", "--output", "out")
    assert status == 0 and sorted(p.name for p in Path("out").glob("[!.]*")) == FILES
    scored = pd.read_csv("out/per_pair.csv", keep_default_na=False)
    assert scored.output.tolist() == [
        row["output"] for row in ROWS
    ] and scored.reference.tolist() == [r["reference"] for r in ROWS]
    summary = json.loads(Path("out/summary.json").read_text())
    bleu = (
        sacrebleu.corpus_bleu(
            [row["output"] for row in ROWS], [[row["reference"] for row in ROWS]]
        ).score
        / 100
    )
    assert summary["systems"][0]["n"] == 2 and abs(summary["systems"][0]["bleu"] - bleu) < 1e-9
    assert summary["input"]["file"] == name and len(summary["input"]["sha256"]) == 64
    assert {"tsteval", "python", "torch"} <= set(summary["versions"]) and "tok:13a" in summary[
        "signatures"
    ]["bleu"]
    assert "BLEU" in out and f"{summary['systems'][0]['bleu']:.3f}" in out


def test_columns_systems_and_limit(folder, capsys):
    rows = [
        {"in": f"text {n}", "out": f"text {n}", "ref a": "text", "ref b": f"text {n}", "by": system}
        for system in "ab"
        for n in range(3)
    ]
    status, _out, err = run(
        capsys,
        "evaluate",
        write("x.csv", rows),
        "--source-column",
        "in",
        "--output-column",
        "out",
        "--reference-column",
        "ref a",
        "--reference-column",
        "ref b",
        "--system-column",
        "by",
        "--system",
        "b",
        "--limit",
        2,
        "--metrics",
        "bleu",
        "--output",
        "out",
    )
    assert status == 0, err
    scored = pd.read_csv("out/per_pair.csv")
    assert scored.system.tolist() == ["b", "b"] and {"reference", "reference_2"} <= set(
        scored.columns
    )


def test_repeated_header(folder, capsys):
    Path("twice.csv").write_text("source,output,reference,reference\na b,a c,a d,a c\n")
    status, *_ = run(capsys, "evaluate", "twice.csv", "--metrics", "bleu", "--output", "out")
    assert status == 0 and pd.read_csv("out/per_pair.csv").reference_2.tolist() == ["a c"]


BAD_FILES = {
    "missing_column.csv": (b"source,text\na,b\n", ["no column output", "source, text"]),
    "empty.csv": (b"", ["empty"]),
    "spaces.jsonl": (b" \n\n", ["empty"]),
    "header_only.csv": (b"source,output\n", ["no rows"]),
    "short_row.csv": (b"source,output\na,b\nc\n", ["row 1:", "1 fields", "2", "counted from 0"]),
    "long_row.tsv": (b"source\toutput\na\tb\tc\n", ["row 0:", "3 fields"]),
    "open_quote.csv": (b'source,output\n"a,b\n', ["line 2"]),
    # cp1250 reads another letter
    "windows.csv": (
        b"source,output\na,b\ncr\xe8me,b\n",
        ["line 3", "0xE8", "UTF-8", "--encoding cp1252"],
    ),
    "marked.csv": (b"\xef\xbb\xbfsource,output\na,b\ncr\xe8me,b\n", ["line 3", "0xE8", "UTF-8"]),
    "russian.csv": ("source,output\nдень,б\n".encode("cp1251"), ["line 2", "UTF-8"]),
    "cut.csv": ("source,output\na,b\n".encode("utf-16")[:-1], ["UTF-16"]),
    "bomb.csv.gz": (b"\x1f\x8b\x08 not really", ["gzip"]),
    "twice.csv": (b"source,output,source\na,b,c\n", ["names source 2 times"]),
    "twice.jsonl": (
        b'{"source": "a", "output": "b", "output": "c"}\n',
        ["line 1", "'output' stands twice"],
    ),
    "surrogate.jsonl": (
        b'{"source": "a", "\\ud800": "b"}\n',
        ["no column output", "source, \ufffd"],
    ),
    "text.json": (b'"a"', ["array of objects"]),
    "row.json": (b'[{"source": "a", "output": "b"}, 3]', ["row 1", "object"]),
    "uneven.json": (b'{"source": ["a"], "output": []}', ["equally long"]),
    "nothing.json": (b"[]", ["no rows"]),
    "gap.csv": (b"source,output\na,b\nc,\n", ["column output, row 1:", "empty"]),
    "null.jsonl": (
        b'{"source": "a", "output": null}\n',
        ["column output, row 0:", "got None", "counted from 0"],
    ),
    "nan.jsonl": (
        b'{"source": "a", "output": "b"}\n{"source": NaN, "output": "b"}\n',
        ["column source, row 1:", "NaN"],
    ),
    "absent_key.jsonl": (
        b'{"source": "a", "output": "b"}\n{"source": "c"}\n',
        ["column output, row 1:"],
    ),
    "number.jsonl": (
        b'{"source": "a", "output": 3}\n',
        ["column output, row 0:", "expected a string"],
    ),
    "array.jsonl": (b'["a", "b"]\n', ["line 1", "object"]),
    "broken.jsonl": (b'{"source": "a"\n', ["line 1", "not valid JSON"]),
    "deep.jsonl": (b"[" * 100_000 + b"\n", ["line 1"]),
    "huge.csv": (
        b"source,output\na," + b"x" * 100_000 + b"\n",
        ["column output, row 0:", "100,000 characters"],
    ),
    "wrong.parquet": (b"PAR1 not really", ["Parquet"]),
    "what.doc": (b"PK", [".doc", ".csv"]),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_files(folder, capsys, name):
    content, words = BAD_FILES[name]
    Path(name).write_bytes(content)
    refused(capsys, folder, "evaluate", name, "--output", "out", words=[name, *words])


@pytest.mark.parametrize(
    "text",
    [
        "source,output,reference\na b,a c,a c d\n",
        "source\toutput\treference\na b\ta c\ta c d\n",
        '{"source": "a b", "output": "a c", "reference": "a c d"}\n',
    ],
)
def test_what_is_piped_in_is_read(folder, capsys, monkeypatch, text):
    pipe(monkeypatch, text)
    status, _out, err = run(capsys, "evaluate", "-", "--metrics", "rouge", "--output", "out")
    assert status == 0, err
    assert (
        pd.read_csv("out/per_pair.csv").output.tolist() == ["a c"]
        and json.loads(Path("out/summary.json").read_text())["input"]["file"] == "-"
    )


def test_what_is_wrong_in_a_pipe_is_said(folder, capsys, monkeypatch):
    pipe(monkeypatch, "source,output\na,\n")
    refused(
        capsys,
        folder,
        "evaluate",
        "-",
        "--metrics",
        "readability",
        words=["-: column output, row 0", "empty"],
    )


def test_files_aligned_by_lines_are_scored_as_their_table_is(folder, capsys):
    lines(
        s="a b c d e\nx y z w v\n",
        one="a b c d\nx y z\n",
        two="a b c d\nx y z w\n",
        r="a b c d\nx y z w\n",
    )
    rows = [
        {"system": name, "source": source, "output": output, "reference": reference}
        for name in ("one", "two")
        for source, output, reference in zip(
            *(Path(f"{file}.txt").read_text().splitlines() for file in ("s", name, "r"))
        )
    ]
    write("pairs.csv", rows)
    given = [
        "--source",
        "s.txt",
        "--output-lines",
        "one.txt",
        "--output-lines",
        "two.txt",
        "--reference",
        "r.txt",
        "--metrics",
        "bleu,rouge",
    ]
    assert (
        run(capsys, "evaluate", "pairs.csv", "--metrics", "bleu,rouge", "--output", "table")[0] == 0
    )
    assert run(capsys, "evaluate", *given, "--output", "lines")[0] == 0
    assert Path("table/per_pair.csv").read_bytes() == Path("lines/per_pair.csv").read_bytes()
    status, out, err = run(capsys, "compare", *given)
    assert status == 0 and "one minus two" in out, err
    assert run(capsys, "check", *given, "--fail-if", "rouge1<0.99")[0] == 1


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["evaluate", "--source", "s.txt"], ["--source-lines and --output-lines are needed both"]),
        (
            ["evaluate", "--source", "s.txt", "--output", "s.txt"],
            ["--output s.txt is a file", "--output-lines"],
        ),
        (["evaluate", "s.txt", "--source", "s.txt", "--output-lines", "s.txt"], ["not in both"]),
        (
            ["evaluate", "--source", "s.txt", "--output-lines", "short.txt"],
            ["short.txt: 1 lines, where s.txt has 2"],
        ),
        (
            ["compare", "--source", "s.txt", "--output-lines", "s.txt"],
            ["--output-lines: compare needs two systems, and this has 1 (s)"],
        ),
        (["check", "--fail-if", "bleu<1"], ["name a table FILE"]),
        (["rate"], ["name a table FILE"]),
    ],
)
def test_what_is_wrong_with_files_of_lines(folder, capsys, arguments, words):
    lines(s="a\nb\n", short="a\n")
    refused(capsys, folder, *arguments, words=words)


@pytest.mark.ci
def test_a_pipe_by_its_name_is_read_and_other_devices_are_not(folder):
    code = (
        "import sys; from tsteval.cli import main; sys.exit(main(['evaluate', sys.argv[1], '--metrics', 'bleu', "
        "'--quiet']))"
    )

    def call(name):
        return subprocess.run(
            [sys.executable, "-c", code, name],
            input=Path(write("pairs.csv")).read_text(),
            capture_output=True,
            text=True,
            check=False,
        )

    done = call("/dev/stdin")
    assert done.returncode == 0 and "BLEU" in done.stdout, done.stderr
    os.mkfifo("pipe")
    feeder = subprocess.Popen(["sh", "-c", "cat pairs.csv > pipe"])
    assert call("pipe").returncode == 0 and feeder.wait() == 0
    for name, words in (("/dev/null", "the file is empty"), ("/dev/zero", "this is a device")):
        assert call(name).returncode == 2 and words in call(name).stderr


def test_a_name_of_bytes_that_are_no_letters(folder, capsys):
    name = os.fsdecode(b"caf\xe9-\xff.csv")
    Path(name).write_bytes(Path(write("pairs.csv")).read_bytes())
    status, _out, err = run(
        capsys, "evaluate", name, "--metrics", "bleu", "--output", "out", "--quiet"
    )
    assert status == 0 and sorted(path.name for path in Path("out").glob("[!.]*")) == FILES, err
    assert (
        json.loads(Path("out/summary.json").read_text())["input"]["file"] == "caf\ufffd-\ufffd.csv"
    )
    assert (
        run(
            capsys,
            "compare",
            name,
            "pairs.csv",
            "--metrics",
            "bleu",
            "--output",
            os.fsdecode(b"out-\xff"),
        )[0]
        == 0
    )


def test_an_encoding_is_noted_or_named(folder, capsys):
    Path("x.csv").write_bytes("source,output\nIt’s fine,It’s\n".encode("cp1252"))
    status, _out, err = run(
        capsys, "evaluate", "x.csv", "--metrics", "readability", "--quiet", "--output", "out"
    )
    assert (
        status == 0
        and err.startswith("tsteval: note: x.csv: not UTF-8, read as cp1252")
        and err.count("\n") == 1
    )
    Path("y.csv").write_bytes("source,output\nкот,кот\n".encode("cp1251"))
    assert (
        run(
            capsys,
            "evaluate",
            "y.csv",
            "--encoding",
            "cp1251",
            "--metrics",
            "readability",
            "--output",
            "out",
        )[0]
        == 0
    )
    assert pd.read_csv("out/per_pair.csv").output[0] == "кот"
    refused(capsys, folder, "evaluate", "y.csv", "--encoding", "klingon", words=["'klingon'"])


def test_a_folder_of_files_is_one_table_and_a_mistake_is_named_by_its_file(folder, capsys):
    Path("parts").mkdir()
    Path("parts/1.csv").write_text("source,output\na,b\nc,d\n")
    Path("parts/2.csv").write_text("source,output\ne,f\ng,\n")
    refused(
        capsys,
        folder,
        "evaluate",
        "parts",
        "--metrics",
        "readability",
        words=["2.csv: column output, row 1"],
    )


def test_an_empty_output_of_several_columns_is_named_by_its_column(folder, capsys):
    write("wide.csv", [{"source": "a", "mine": "x", "theirs": ""}])
    columns = ("--output-column", "mine", "--output-column", "theirs")
    status, _out, err = run(capsys, "evaluate", "wide.csv", *columns, "--metrics", "readability")
    assert status == 2 and "wide.csv: column theirs, row 0: the text is empty" in err


def test_a_mistake_is_named_by_its_row_in_the_file_whatever_rows_are_chosen(folder, capsys):
    rows = [
        {"system": system, "source": "a", "output": output}
        for system, output in (("one", "x"), ("one", ""), ("two", "x"), ("two", ""))
    ]
    refused(
        capsys,
        folder,
        "evaluate",
        write("gap.csv", rows),
        "--system",
        "two",
        "--metrics",
        "readability",
        words=["gap.csv: column output, row 3:"],
    )
    assert (
        run(
            capsys,
            "evaluate",
            "gap.csv",
            "--limit",
            1,
            "--metrics",
            "readability",
            "--output",
            "out",
        )[0]
        == 0
    )
    write("list.jsonl", [{"system": ["one"], "source": "a", "output": "b"}])
    refused(
        capsys,
        folder,
        "evaluate",
        "list.jsonl",
        "--limit",
        1,
        "--metrics",
        "readability",
        words=["list.jsonl: column system, row 0:"],
    )
