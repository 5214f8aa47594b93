"""The command as a person uses it: results whole or not at all, mistakes in one line with status 2."""
import dataclasses
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pandas as pd
import pytest
import sacrebleu

from tsteval import __version__
from tsteval.cli import app as cli
from tsteval.core.assets import packaged_path

FILES = ["per_pair.csv", "report.html", "summary.json"]
ROWS = [{"source": "The great bridge opened.", "output": "The bridge, new, opened.", "reference": "The bridge opened."},
        {"source": 'A "fine" day in May.', "output": "null", "reference": "A day in May."}]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(name, rows=ROWS):
    frame = pd.DataFrame(rows)
    if name.endswith(".parquet"): frame.to_parquet(name)
    elif name.endswith(".jsonl"): frame.to_json(name, orient="records", lines=True)
    else: frame.to_csv(name, index=False, sep="\t" if name.endswith(".tsv") else ",")
    return name


def run(capsys, *arguments):
    try:
        status = cli.main([str(argument) for argument in arguments])
    except SystemExit as stop:
        status = stop.code
    told = capsys.readouterr()
    return status, told.out, told.err


def refused(capsys, folder, *arguments, words=()):
    """Status 2, one line on standard error that holds these words, nothing written."""
    before = sorted(p.name for p in folder.iterdir())
    status, out, err = run(capsys, *arguments)
    assert status == 2 and out == "" and err.count("\n") == 1, (status, out, err)
    assert err.startswith("tsteval: error: ") and "Traceback" not in err
    for word in words:
        assert word in err, err
    assert sorted(p.name for p in folder.iterdir()) == before


@pytest.mark.parametrize("name", ["pairs.csv", "pairs.tsv", "pairs.jsonl", "pairs.parquet"])
def test_formats_give_the_same_scores(folder, capsys, name):
    status, out, _err = run(capsys, "evaluate", write(name), "--metrics", "bleu", "--output", "out")
    assert status == 0 and sorted(p.name for p in Path("out").iterdir()) == FILES
    scored = pd.read_csv("out/per_pair.csv", keep_default_na=False)
    assert scored.output.tolist() == [row["output"]
                                      for row in ROWS] and scored.reference.tolist() == [r["reference"] for r in ROWS]
    summary = json.loads(Path("out/summary.json").read_text())
    bleu = sacrebleu.corpus_bleu([row["output"] for row in ROWS], [[row["reference"] for row in ROWS]]).score / 100
    assert summary["systems"][0]["n"] == 2 and abs(summary["systems"][0]["bleu"] - bleu) < 1e-9
    assert summary["input"]["file"] == name and len(summary["input"]["sha256"]) == 64
    assert {"tsteval", "python", "torch"} <= set(summary["versions"]) and "tok:13a" in summary["signatures"]["bleu"]
    assert "BLEU" in out and f"{summary['systems'][0]['bleu']:.3f}" in out


@pytest.mark.slow
def test_all_metrics_on_a_file(folder, capsys):
    rows = [row | {"system": system} for system in ("one", "two") for row in ROWS]
    status, out, err = run(capsys, "evaluate", write("pairs.csv", rows), "--output", "out")
    assert status == 0, err
    from tsteval.core.metric import METRICS
    columns = [column for name in ("bleu", "sti", "cps", "fluency") for column in METRICS[name].columns]
    scored = json.loads(Path("out/summary.json").read_text())["systems"]
    assert all(column in row for column in columns for row in scored)
    headers = [line for line in out.splitlines() if line.startswith("system")]
    assert all(METRICS[name].headings[0] in "".join(headers) for name in ("bleu", "sti", "cps", "fluency"))
    summary = json.loads(Path("out/summary.json").read_text())
    assert set(summary["models"]) == {"subjectivity-minilm", "all-MiniLM-L6-v2", "SmolLM2-135M-Instruct"}
    assert summary["comparisons"][0]["a"] == "two" and len(summary["comparisons"][0]["metrics"]) == len(columns)


def test_columns_systems_and_limit(folder, capsys):
    rows = [{"in": f"text {n}", "out": f"text {n}", "ref a": "text", "ref b": f"text {n}", "by": system}
            for system in "ab" for n in range(3)]
    status, _out, err = run(capsys, "evaluate", write("x.csv", rows), "--source-column", "in", "--output-column", "out",
                           "--reference-column", "ref a", "--reference-column", "ref b", "--system-column", "by",
                           "--system", "b", "--limit", 2, "--metrics", "bleu", "--output", "out")
    assert status == 0, err
    scored = pd.read_csv("out/per_pair.csv")
    assert scored.system.tolist() == ["b", "b"] and {"reference", "reference_2"} <= set(scored.columns)


@pytest.mark.slow
def test_bleu_is_left_out_without_references(folder, capsys):
    rows = [{"source": row["source"], "output": row["output"]} for row in ROWS]
    status, out, err = run(capsys, "evaluate", write("pairs.csv", rows), "--output", "out")
    assert status == 0 and "BLEU is left out" in err and "STI" in out and "BLEU" not in out


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
    "windows.csv": (b"source,output\na,b\ncr\xe8me,b\n", ["line 3", "0xE8", "UTF-8", "--encoding cp1252"]),
    "marked.csv": (b"\xef\xbb\xbfsource,output\na,b\ncr\xe8me,b\n", ["line 3", "0xE8", "UTF-8"]),
    "russian.csv": ("source,output\nдень,б\n".encode("cp1251"), ["line 2", "UTF-8"]),
    "cut.csv": ("source,output\na,b\n".encode("utf-16")[:-1], ["UTF-16"]),
    "bomb.csv.gz": (b"\x1f\x8b\x08 not really", ["gzip"]),
    "twice.csv": (b"source,output,source\na,b,c\n", ["names source 2 times"]),
    "twice.jsonl": (b'{"source": "a", "output": "b", "output": "c"}\n', ["line 1", "'output' stands twice"]),
    "surrogate.jsonl": (b'{"source": "a", "\\ud800": "b"}\n', ["no column output", "source, \ufffd"]),
    "text.json": (b'"a"', ["array of objects"]),
    "row.json": (b'[{"source": "a", "output": "b"}, 3]', ["row 1", "object"]),
    "uneven.json": (b'{"source": ["a"], "output": []}', ["equally long"]),
    "nothing.json": (b"[]", ["no rows"]),
    "nan.csv": (b"source,output\na,NaN\n", ["column output, row 0:", "got None", "counted from 0"]),
    "gap.csv": (b"source,output\na,b\nc,\n", ["column output, row 1:", "empty"]),
    "null.jsonl": (b'{"source": "a", "output": null}\n', ["column output, row 0:", "got None"]),
    "nan.jsonl": (b'{"source": "a", "output": "b"}\n{"source": NaN, "output": "b"}\n',
                  ["column source, row 1:", "NaN"]),
    "absent_key.jsonl": (b'{"source": "a", "output": "b"}\n{"source": "c"}\n', ["column output, row 1:"]),
    "number.jsonl": (b'{"source": "a", "output": 3}\n', ["column output, row 0:", "expected a string"]),
    "array.jsonl": (b'["a", "b"]\n', ["line 1", "object"]),
    "broken.jsonl": (b'{"source": "a"\n', ["line 1", "not valid JSON"]),
    "deep.jsonl": (b"[" * 100_000 + b"\n", ["line 1"]),
    "huge.csv": (b"source,output\na," + b"x" * 100_000 + b"\n", ["column output, row 0:", "100,000 characters"]),
    "wrong.parquet": (b"PAR1 not really", ["Parquet"]),
    "what.xlsx": (b"PK", [".xlsx", ".csv"]),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_files(folder, capsys, name):
    content, words = BAD_FILES[name]
    Path(name).write_bytes(content)
    refused(capsys, folder, "evaluate", name, "--output", "out", words=[name, *words])


@pytest.mark.parametrize("arguments, words", [
    (["--metrics", "blue"], ["error: --metrics: there is no metric called 'blue'", "bleu, rouge, sti, cps, fluency"]),
    (["--metrics", "no_module:metric"], ["no_module", "cannot import"]),
    (["--metrics", "json:loads"], ["Metric", "function"]),
    (["--metrics", "bleu", "--set", "bleu.smoothings=exp"],
     ["error: --set bleu.smoothings: bleu has no option 'smoothings'", "smoothing"]),
    (["--metrics", "bleu", "--set", "bleu.smoothing=expo"], ["smoothing", "'expo'"]),
    (["--metrics", "bleu", "--set", "cps.strategy=none"], ["error: --set cps.strategy: there are options for cps"]),
    (["--metrics", "bleu", "--set", "strategy"], ["--set strategy", "METRIC.OPTION=VALUE"]),
    (["--metrics", "cps", "--set", "cps.threshold=3"], ["error: --set cps.threshold: threshold must be"]),
    (["--n-boot", "0"], ["--n-boot"]),
    (["--metrics", "bleu", "--output", "/proc/none"], ["error: --output /proc/none: cannot be made"]),
    (["--metrics", "bleu", "--cache", "none/scores"],
     ["error: cache none/scores: name a file in a folder that exists"]),
    (["--device", "abacus"], ["--device"]),
    (["--system", "gpt"], ["no system called 'gpt'"]),
    (["--source-column", "input"], ["no column input", "source, output, reference"]),
    (["--reference-column", "gold"], ["no column gold"]),
    (["--limit", "0"], ["--limit"]),
    (["--limit", "many"], ["--limit"]),
    (["--seed", "-1"], ["--seed"]),
    (["--colour"], ["--colour"]),
    (["--target-style", "angry", "--metrics", "sti"], ["no style called 'angry'", "subjective, neutral"]),
])
def test_bad_options(folder, capsys, arguments, words):
    refused(capsys, folder, "evaluate", write("pairs.csv"), *arguments, words=words)


def test_missing_file_folder_and_occupied_output(folder, capsys):
    write("pairs.csv")
    refused(capsys, folder, "evaluate", "nothing.csv", words=["nothing.csv", "no such file"])
    Path("empty").mkdir()
    refused(capsys, folder, "evaluate", "empty", words=["folder", ".csv"])
    refused(capsys, folder, "evaluate", "pairs.csv", "--metrics", "bleu", "--output", "pairs.csv", words=["--output"])


def test_bleu_asked_for_without_references(folder, capsys):
    rows = [{"source": "a", "output": "b"}]
    refused(capsys, folder, "evaluate", write("x.csv", rows), "--metrics", "bleu",
            words=["x.csv", "no column reference"])


def test_fetch_of_something_unknown(folder, capsys):
    refused(capsys, folder, "fetch", "moon", words=["'moon'", "all-MiniLM-L6-v2", "wnc_sample"])
    refused(capsys, folder, "fetch", "msr_compression", words=["cannot be fetched automatically"])


def test_fetch_of_an_asset(folder, capsys):
    status, out, _err = run(capsys, "fetch", "web-ngrams")
    assert status == 0 and out.startswith("web-ngrams: ")


def test_version_and_help(folder):
    code = "import sys; from tsteval.cli import main; sys.argv[0] = 'tsteval'; main()"
    version = subprocess.run([sys.executable, "-c", code, "--version"], capture_output=True, text=True, check=False)
    assert version.stdout == f"tsteval {__version__}\n" and version.returncode == 0
    for words in (["--help"], ["evaluate", "--help"], ["course", "--help"], ["fetch", "--help"]):
        assert subprocess.run([sys.executable, "-c", code, *words], capture_output=True, check=False).returncode == 0


def test_no_command_is_an_error(folder, capsys):
    refused(capsys, folder, words=["COMMAND"])


def test_course_opens_the_chapters(folder, monkeypatch):
    called = []
    monkeypatch.setattr(cli.subprocess, "call", lambda command: called.append(command) or 0)
    assert cli.main(["course", "--no-browser"]) == 0
    assert called[0][1:4] == ["-m", "jupyterlab", "--no-browser"] and Path(called[0][-1]).name == "index.ipynb"
    assert Path(called[0][-1]).is_file()


def test_course_copies_installed_chapters(folder, monkeypatch):
    import tsteval
    chapters = folder / "prefix" / "share" / "tsteval" / "nbs"
    chapters.mkdir(parents=True)
    (chapters / "index.ipynb").write_text("{}")
    monkeypatch.setattr(tsteval, "__file__", str(folder / "site-packages" / "tsteval" / "__init__.py"))
    monkeypatch.setattr(sys, "prefix", str(folder / "prefix"))
    mine = cli.course_folder()
    assert mine == folder / "tsteval-course" and (mine / "index.ipynb").is_file()
    (mine / "index.ipynb").write_text("my notes")
    assert (cli.course_folder() / "index.ipynb").read_text() == "my notes"


def test_interrupt(folder, capsys, monkeypatch):
    monkeypatch.setattr(cli, "open_table", lambda *options: (_ for _ in ()).throw(KeyboardInterrupt))
    status, _out, err = run(capsys, "evaluate", write("pairs.csv"))
    assert status == 130 and "stopped" in err and not Path("tsteval-results").exists()


@pytest.mark.slow
def test_embedded_pairs_without_a_file(folder, capsys):
    status, _out, _err = run(capsys, "evaluate", "--limit", 4, "--output", "out")
    assert status == 0 and sorted(p.name for p in Path("out").iterdir()) == FILES
    scored = pd.read_csv("out/per_pair.csv")
    assert scored.system.tolist() == ["copy"] * 4 + ["delete"] * 4 + ["human"] * 4
    embedded = pd.read_json(packaged_path("npov_pairs.jsonl"), lines=True).query("split == 'test'")
    assert set(scored.source) <= set(embedded.source)


# ---- explore

def test_explore_help_names_every_explorer(capsys):
    from tsteval.explorers.catalogue import EXPLORERS
    status, out, _err = run(capsys, "explore", "--help")
    assert status == 0 and all(name in out for name in EXPLORERS)


def test_explore_refuses_an_unknown_name(folder, capsys):
    refused(capsys, folder, "explore", "rogue", words=["'rogue'", "bleu", "evaluation"])


def test_explore_without_voila_says_what_to_install(folder, capsys, monkeypatch):
    monkeypatch.setattr(cli.importlib.util, "find_spec", lambda name: None)
    refused(capsys, folder, "explore", words=["pip install 'tsteval[course]'"])


@pytest.mark.parametrize("name", [None, "mask"])
def test_explore_hands_a_runnable_notebook_to_voila(folder, capsys, monkeypatch, name):
    import nbformat
    from voila.app import Voila
    given = []
    monkeypatch.setattr(Voila, "launch_instance", lambda argv: given.append((argv,
                                                                             nbformat.read(argv[-1], as_version=4))))
    status, _, _ = run(capsys, "explore", *([name] if name else []), "--no-browser", "--port", "8901")
    (options, notebook), = given
    nbformat.validate(notebook)
    assert status == 0 and options[:2] == ["--no-browser", "--port=8901"] and not Path(options[-1]).exists()
    assert notebook.cells[0].source.endswith(f"explorer_app({name!r})" if name else "explorer_app()")


# ---- metrics

OWN = """
import pandas as pd
from tsteval.core.metric import Metric, Scores, sign

def score(table, models, unit="words"):
    measure = len if unit == "characters" else lambda text: len(text.split())
    return Scores(pd.DataFrame({"length": table.output.map(measure)}), signature=sign("length", unit=unit))

length = Metric("length", ("output",), ("length",), score, better="neither")
"""


def test_a_metric_of_ones_own_is_found(folder, capsys):
    Path("my_metrics.py").write_text(OWN)
    status, out, err = run(capsys, "evaluate", write("pairs.csv"), "--metrics", "bleu,my_metrics:length", "--set",
                           "length.unit=characters", "--output", "out")
    assert status == 0 and "length" in out, err
    summary = json.loads(Path("out/summary.json").read_text())
    assert summary["systems"][0]["length"] == 14 and "unit:characters" in summary["signatures"]["length"]
    assert pd.read_csv("out/per_pair.csv").length.tolist() == [24, 4]


def test_every_column_is_shown(folder, capsys):
    status, out, err = run(capsys, "evaluate", write("pairs.csv"), "--metrics", "rouge,readability", "--output", "out")
    assert status == 0, err
    row = json.loads(Path("out/summary.json").read_text())["systems"][0]
    page, scored = Path("out/report.html").read_text(), pd.read_csv("out/per_pair.csv")
    for name in ("rouge", "readability"):
        from tsteval.core.metric import METRICS
        for column in METRICS[name].columns:
            heading = METRICS[name].heading(column)
            assert column in row and column in scored and heading in out and heading in page


def test_metrics_are_listed_with_what_they_need(capsys):
    from tsteval.core.metric import METRICS
    status, out, _err = run(capsys, "metrics")
    assert status == 0 and all(f"{name}: {METRICS[name].description}" in out for name in METRICS)
    assert "needs output, references" in out and "strategy=None" in out


def test_a_wide_summary_is_cut_into_blocks():
    from tsteval.report.terminal import format_summary
    summary = pd.DataFrame({"system": ["one", "two\x1b[2J"], "n": [2, 2]}
                           | {f"c{n}{end}": [0.5, 0.25] for n in range(9) for end in ("", "_low", "_high")})
    text = format_summary(summary, {f"c{n}": f"C{n}" for n in range(9)}, width=80)
    blocks = text.split("\n\n")
    assert len(blocks) > 1 and all(len(line) <= 80 for line in text.splitlines()) and "\x1b" not in text
    assert all(block.startswith("system") and "one" in block
               for block in blocks) and all(f"C{n}" in text for n in range(9))


# ---- compare, check, what is piped in, formats of the report, cache

def pipe(monkeypatch, text):
    import io
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


@pytest.mark.parametrize("text", ["source,output,reference\na b,a c,a c d\n",
                                  "source\toutput\treference\na b\ta c\ta c d\n",
                                  '{"source": "a b", "output": "a c", "reference": "a c d"}\n'])
def test_what_is_piped_in_is_read(folder, capsys, monkeypatch, text):
    pipe(monkeypatch, text)
    status, _out, err = run(capsys, "evaluate", "-", "--metrics", "rouge", "--output", "out")
    assert status == 0, err
    assert (pd.read_csv("out/per_pair.csv").output.tolist() == ["a c"]
            and json.loads(Path("out/summary.json").read_text())["input"]["file"] == "-")


def test_what_is_wrong_in_a_pipe_is_said(folder, capsys, monkeypatch):
    pipe(monkeypatch, "source,output\na,\n")
    refused(capsys, folder, "evaluate", "-", "--metrics", "readability", words=["-: column output, row 0", "empty"])


def two_files():
    write("a.csv", [{"source": f"text {n}", "output": f"the text {n}", "reference": f"the text {n}"} for n in range(8)])
    write("b.csv", [{"source": f"text {n}", "output": f"a text {n}", "reference": f"the text {n}"}
                    for n in reversed(range(8))])


def test_two_files_are_compared_whatever_their_order(folder, capsys):
    two_files()
    status, out, err = run(capsys, "compare", "a.csv", "b.csv", "--metrics", "rouge", "--output", "out")
    assert status == 0, err
    summary = json.loads(Path("out/summary.json").read_text())
    row = summary["comparisons"][0]["metrics"][0]
    assert (summary["comparisons"][0]["a"] == "b" and row["difference"] == pytest.approx(-1 / 3)
            and row["p_holm"] >= row["p_value"])
    line = next(line for line in out.splitlines() if line.startswith("ROUGE-1 "))
    assert "1.000" in line and "0.667" in line and "0.333 [0.333, 0.333]" in line and "p (Holm)" in out
    assert [source["file"] for source in summary["input"]] == ["a.csv", "b.csv"]


def test_files_that_cannot_be_compared_are_refused(folder, capsys):
    two_files()
    write("c.csv", [{"source": f"text {n}", "output": "x", "reference": "y"} for n in range(1, 9)])
    write("d.csv", [{"source": "text 0", "output": "x", "reference": "y", "system": name} for name in "ab"])
    write("e.csv", [{"source": f"text {n}", "output": "x", "reference": "y"} for n in [*range(8), 7]])
    refused(capsys, folder, "compare", "a.csv", "c.csv", "--metrics", "rouge", words=["row 0", "same sources"])
    refused(capsys, folder, "compare", "a.csv", "e.csv", "--metrics", "rouge", words=["9 rows", "same sources"])
    refused(capsys, folder, "compare", "a.csv", "d.csv", words=["d.csv", "2 systems", "--system"])
    refused(capsys, folder, "compare", "a.csv", "nothing.csv", words=["nothing.csv", "no such file"])
    refused(capsys, folder, "compare", "a.csv", "a.csv", words=["twice"])
    refused(capsys, folder, "compare", "a.csv", words=["FILE"])


def test_a_mistake_in_either_file_is_named_by_its_file_and_row(folder, capsys):
    good = [{"source": f"text {n}", "output": "x", "reference": "y"} for n in range(4)]
    write("good.csv", good)
    write("gap.csv", [*reversed(good[1:]), good[0] | {"output": ""}])  # in another order
    for files in (("good.csv", "gap.csv"), ("gap.csv", "good.csv")):
        refused(capsys, folder, "compare", *files, "--metrics", "rouge",
                words=["error: gap.csv: column output, row 3: the text is empty"])
    write("list.jsonl", [row | {"source": [1]} for row in good])
    refused(capsys, folder, "compare", "good.csv", "list.jsonl", "--metrics", "rouge",
            words=["list.jsonl: column source, row 0"])
    write("bare.csv", [{"source": row["source"], "output": "x"} for row in good])
    refused(capsys, folder, "compare", "good.csv", "bare.csv",
            words=["bare.csv: there is no column reference", "other file has one"])
    write("style.csv", [row | {"target_style": "neutral" if n < 2 else "angry"} for n,
                        row in enumerate(reversed(good))])
    refused(capsys, folder, "compare", "good.csv", "style.csv", "--metrics", "sti",
            words=["style.csv: column target_style, row 3: there is no style"])


def test_a_mistake_is_named_by_its_row_in_the_file_whatever_rows_are_chosen(folder, capsys):
    rows = [{"system": system, "source": "a", "output": output} for system,
            output in (("one", "x"), ("one", ""), ("two", "x"), ("two", ""))]
    refused(capsys, folder, "evaluate", write("gap.csv", rows), "--system", "two", "--metrics", "readability",
            words=["gap.csv: column output, row 3:"])
    assert run(capsys, "evaluate", "gap.csv", "--limit", 1, "--metrics", "readability", "--output", "out")[0] == 0
    write("list.jsonl", [{"system": ["one"], "source": "a", "output": "b"}])
    refused(capsys, folder, "evaluate", "list.jsonl", "--limit", 1, "--metrics", "readability",
            words=["list.jsonl: column system, row 0:"])


def test_a_check_fails_with_one_and_passes_with_nought(folder, capsys):
    two_files()
    assert run(capsys, "check", "a.csv", "--fail-if", "rouge2<0.5", "--fail-if", "rouge<0.9")[0] == 0
    status, out, _err = run(capsys, "check", "b.csv", "--fail-if", "rouge1<0.9", "--fail-if", "rougeL>=0.9")
    assert (status == 1 and out.count("FAIL") == 1 and "FAIL  rouge1<0.9  output: 0.667" in out
            and "1 of 2 checks failed" in out)
    assert sorted(p.name for p in folder.iterdir()) == ["a.csv", "b.csv"]


def test_a_check_knows_ones_own_metric_and_fails_where_there_is_no_score(folder, capsys):
    Path("own_metric.py").write_text(OWN.replace("table.output.map(measure)",
                                                 "table.output.map(measure) * float('nan')"))
    status, out, err = run(capsys, "check", write("pairs.csv"), "--metrics", "own_metric:length", "--fail-if",
                           "length>100")
    assert status == 1 and "nan" in out, err


@pytest.mark.parametrize("condition, words", [
    ("cps", ["--fail-if cps", "'cps<0.8'"]), ("cps==1", ["--fail-if"]), ("__import__('os')<1", ["--fail-if"]),
    ("cps<0.8 or 1", ["--fail-if"]),
    ("cps<nan", ["--fail-if"]), ("cps<1e999", ["--fail-if", "finite"]), ("colour<1", ["'colour'", "tsteval metrics"]),
    ("cps<", ["--fail-if"])])
def test_a_condition_is_no_code(folder, capsys, condition, words):
    refused(capsys, folder, "check", write("pairs.csv"), "--fail-if", condition, words=words)


def test_a_check_of_a_bad_file_is_no_failed_check(folder, capsys):
    refused(capsys, folder, "check", "nothing.csv", "--fail-if", "bleu<0.5", words=["nothing.csv"])
    refused(capsys, folder, "check", write("pairs.csv"), words=["--fail-if"])


def test_formats_of_the_report(folder, capsys):
    status, _out, _err = run(capsys, "evaluate", write("pairs.csv"), "--metrics", "bleu", "--report", "markdown",
                           "--report", "json", "--output", "out")
    assert status == 0 and sorted(p.name for p in Path("out").iterdir()) == ["per_pair.csv", "report-figure-1.svg",
                                                                             "report.json", "report.md", "summary.json"]
    refused(capsys, folder, "evaluate", "pairs.csv", "--report", "pdf", words=["--report"])


def test_a_cache_changes_no_byte(folder, capsys):
    write("pairs.csv")
    for name, options in (("plain", []), ("first", ["--cache", "scores.sqlite"]),
                          ("again", ["--cache", "scores.sqlite"])):
        assert run(capsys, "evaluate", "pairs.csv", "--metrics", "bleu,rouge", "--output", name, *options)[0] == 0
    assert (Path("plain/per_pair.csv").read_bytes() == Path("first/per_pair.csv").read_bytes()
            == Path("again/per_pair.csv").read_bytes())
    refused(capsys, folder, "evaluate", "pairs.csv", "--metrics", "bleu", "--cache", "pairs.csv", "--output", "no",
            words=["cache", "delete"])


# ---- other libraries

def test_a_data_set_of_hugging_face_is_a_table():
    datasets = pytest.importorskip("datasets")
    from tsteval.core.checks import InputError
    from tsteval.evaluation import evaluate
    data = datasets.Dataset.from_list([{"source": "a b", "output": "a", "reference": ["a b", "b"]},
                                       {"source": "c", "output": "c", "reference": ["d"]}])
    expected = evaluate(data.to_list(), ["bleu", "rouge"], n_boot=5).summary()
    for pairs in (data, data.to_iterable_dataset(), data.to_pandas()):
        pd.testing.assert_frame_equal(evaluate(pairs, ["bleu", "rouge"], n_boot=5).summary(), expected)
    with pytest.raises(InputError, match=r"pairs\['test'\]"):
        evaluate(datasets.DatasetDict({"test": data}), ["bleu"])


@pytest.mark.slow
def test_metrics_are_modules_of_the_library_evaluate(tmp_path):
    pytest.importorskip("evaluate")
    program = """
import evaluate
from tsteval.bleu import corpus_bleu
from tsteval.core.assets import packaged_path
folder = str(packaged_path("tsteval_metric"))
outputs, references = ["a b c d e", "x y z w"], [["a b c d e"], ["x y z v", "x y"]]
found = evaluate.load(folder, "bleu").compute(predictions=outputs, references=references, n_boot=50)
assert abs(found["bleu"] - corpus_bleu(outputs, references).score) < 1e-9 and found["bleu_low"] <= found["bleu"] and "tok:13a" in found["signature"]
assert "stem:no" not in evaluate.load(folder, "rouge").compute(predictions=["running"], references=["runs"], stemmer=True, n_boot=5)["signature"]
assert abs(evaluate.load(folder, "chrf").compute(predictions=["a long day"], references=["a long day"], n_boot=5)["chrf"] - 1) < 1e-9
assert "readability" in evaluate.load(folder, "readability").compute(predictions=["A good day in May."], n_boot=5)
"""
    import os
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_EVALUATE_OFFLINE": "1", "HF_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True,
                          env=environment, check=False)
    assert done.returncode == 0, done.stderr[-1500:]


# ---- inputs

def lines(**files):
    for name, text in files.items(): Path(f"{name}.txt").write_text(text)


def test_files_aligned_by_lines_are_scored_as_their_table_is(folder, capsys):
    lines(s="a b c d e\nx y z w v\n", one="a b c d\nx y z\n", two="a b c d\nx y z w\n", r="a b c d\nx y z w\n")
    rows = [{"system": name, "source": source, "output": output, "reference": reference} for name in ("one", "two")
            for source, output, reference in zip(*(Path(f"{file}.txt").read_text().splitlines()
                                                   for file in ("s", name, "r")))]
    write("pairs.csv", rows)
    given = ["--source", "s.txt", "--output-lines", "one.txt", "--output-lines", "two.txt", "--reference", "r.txt",
             "--metrics", "bleu,rouge"]
    assert run(capsys, "evaluate", "pairs.csv", "--metrics", "bleu,rouge", "--output", "table")[0] == 0
    assert run(capsys, "evaluate", *given, "--output", "lines")[0] == 0
    assert Path("table/per_pair.csv").read_bytes() == Path("lines/per_pair.csv").read_bytes()
    status, out, err = run(capsys, "compare", *given)
    assert status == 0 and "one minus two" in out, err
    assert run(capsys, "check", *given, "--fail-if", "rouge1<0.99")[0] == 1


@pytest.mark.parametrize("arguments, words", [
    (["evaluate", "--source", "s.txt"], ["--source-lines and --output-lines are needed both"]),
    (["evaluate", "--source", "s.txt", "--output", "s.txt"], ["--output s.txt is a file", "--output-lines"]),
    (["evaluate", "s.txt", "--source", "s.txt", "--output-lines", "s.txt"], ["not in both"]),
    (["evaluate", "--source", "s.txt", "--output-lines", "short.txt"], ["short.txt: 1 lines, where s.txt has 2"]),
    (["compare", "--source", "s.txt", "--output-lines", "s.txt"], ["--output-lines: compare needs two systems, got 1"]),
    (["check", "--fail-if", "bleu<1"], ["name a table FILE"]), (["rate"], ["name a table FILE"])])
def test_what_is_wrong_with_files_of_lines(folder, capsys, arguments, words):
    lines(s="a\nb\n", short="a\n")
    refused(capsys, folder, *arguments, words=words)


@pytest.mark.slow
def test_a_pipe_by_its_name_is_read_and_other_devices_are_not(folder):
    code = ("import sys; from tsteval.cli import main; sys.exit(main(['evaluate', sys.argv[1], '--metrics', 'bleu', "
            "'--quiet']))")
    call = lambda name: subprocess.run([sys.executable, "-c", code, name], input=Path(write("pairs.csv")).read_text(),
                                       capture_output=True, text=True, check=False)
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
    status, _out, err = run(capsys, "evaluate", name, "--metrics", "bleu", "--output", "out", "--quiet")
    assert status == 0 and sorted(path.name for path in Path("out").iterdir()) == FILES, err
    assert json.loads(Path("out/summary.json").read_text())["input"]["file"] == "caf\ufffd-\ufffd.csv"
    assert run(capsys, "compare", name, "pairs.csv", "--metrics", "bleu", "--output", os.fsdecode(b"out-\xff"))[0] == 0


def test_an_encoding_is_noted_or_named(folder, capsys):
    Path("x.csv").write_bytes("source,output\nIt’s fine,It’s\n".encode("cp1252"))
    status, _out, err = run(capsys, "evaluate", "x.csv", "--metrics", "readability", "--quiet", "--output", "out")
    assert status == 0 and err.startswith("tsteval: note: x.csv: not UTF-8, read as cp1252") and err.count("\n") == 1
    Path("y.csv").write_bytes("source,output\nкот,кот\n".encode("cp1251"))
    assert run(capsys, "evaluate", "y.csv", "--encoding", "cp1251", "--metrics", "readability", "--output",
               "out")[0] == 0
    assert pd.read_csv("out/per_pair.csv").output[0] == "кот"
    refused(capsys, folder, "evaluate", "y.csv", "--encoding", "klingon", words=["'klingon'"])


def test_a_folder_of_files_is_one_table_and_a_mistake_is_named_by_its_file(folder, capsys):
    Path("parts").mkdir()
    Path("parts/1.csv").write_text("source,output\na,b\nc,d\n")
    Path("parts/2.csv").write_text("source,output\ne,f\ng,\n")
    refused(capsys, folder, "evaluate", "parts", "--metrics", "readability", words=["2.csv: column output, row 1"])


REACHED = {"metrics": "metrics", "options": "set", "target_style": "target_style", "classifier": "style_model",
           "encoder": "encoder",
           "language_model": "language_model", "device": "device", "batch_size": "batch_size", "n_boot": "n_boot",
           "seed": "seed",
           # argument of `evaluate` -> where the command's options put it
           "progress": "quiet", "score_cache": "score_cache"}


def test_all_that_evaluate_takes_has_an_option(folder, capsys, monkeypatch):
    """A new argument of `evaluate` belongs into REACHED, with an option that gives it another value than its
    default."""
    import inspect

    from tsteval import evaluation
    parameters = dict(list(inspect.signature(evaluation.evaluate).parameters.items())[1:])
    assert list(parameters) == list(REACHED), "an argument of evaluate has no option of the command"
    given, real = {}, evaluation.evaluate
    monkeypatch.setattr(evaluation, "evaluate", lambda pairs, metrics, **options: given.update(options, metrics=metrics)
                        or real(pairs, metrics, n_boot=5))
    monkeypatch.setattr(cli, "locate_model", lambda *options: None)
    status, _out, err = run(capsys, "evaluate", write("pairs.csv"), "--metrics", "bleu", "--set", "bleu.smoothing=exp",
                           "--target-style", "subjective",
                           "--style-model", "a", "--encoder", "b", "--language-model", "c", "--device", "cpu",
                           "--batch-size", 3, "--n-boot", 7, "--seed", 9, "--cache", "d")
    assert status == 0 and list(given) and set(given) == set(REACHED), err
    assert all(given[name] != parameter.default for name, parameter in parameters.items())


# ---- the terminal

def systems(*names):
    return [row | {"system": name, "output": row["output"] if place else row["reference"]} for place,
            name in enumerate(names) for row in ROWS]


def test_the_table_is_printed_in_five_formats(folder, capsys):
    write("pairs.csv", systems("one", "two"))
    printed = {}
    for format in ("text", "markdown", "latex", "json", "csv"):
        status, printed[format], err = run(capsys, "evaluate", "pairs.csv", "--metrics", "bleu,rouge", "--format",
                                           format, "--quiet")
        assert status == 0 and ("Written to" in printed[format]) == (format
                                                                     == "text") and "Written to" in printed[format] + err
    summary = json.loads(Path("tsteval-results/summary.json").read_text())
    assert (json.loads(printed["json"])["systems"] == summary["systems"] and json.loads(printed["json"])["comparisons"]
            == summary["comparisons"])
    import io
    frame = pd.read_csv(io.StringIO(printed["csv"]))
    row, = frame[(frame.system == "two") & (frame.score == "rouge1")].to_dict("records")
    said, = [entry for entry in summary["comparisons"][0]["metrics"] if entry["metric"] == "rouge1"]
    assert (row["baseline"] == "one" and row["difference"] == pytest.approx(said["difference"]) and row["p_holm"]
            == pytest.approx(said["p_holm"]))
    difference = f"{said['difference']:.3f} [{said['low']:.3f}, {said['high']:.3f}]"
    assert f"two minus one  ROUGE-1     {difference}" in printed["text"] and f"{said['p_holm']:.4f}" in printed["text"]
    assert f"| two minus one | ROUGE-1 | {difference}".replace("[", r"\[").replace("]",
                                                                                   r"\]") in printed["markdown"] and r"\toprule" in printed["latex"]
    refused(capsys, folder, "evaluate", "pairs.csv", "--format", "latex", "--format", "csv",
            words=["--format", "--report", "tsteval evaluate --help"])
    refused(capsys, folder, "evaluate", "pairs.csv", "--format", "html", words=["--format", "markdown"])


def test_percent_is_for_what_is_printed_alone(folder, capsys):
    write("pairs.csv", systems("one", "two"))
    plain = run(capsys, "evaluate", "pairs.csv", "--metrics", "bleu,readability", "--format", "json")[1]
    files = {path.name: path.read_bytes() for path in Path("tsteval-results").iterdir()}
    percent = run(capsys, "evaluate", "pairs.csv", "--metrics", "bleu,readability", "--format", "json", "--percent")[1]
    for name, kept in files.items(): assert kept == Path("tsteval-results", name).read_bytes()
    one, hundred = json.loads(plain), json.loads(percent)
    assert hundred["percent"] == ["bleu"] and one["percent"] == []
    for row, other in zip(one["systems"], hundred["systems"]):
        assert (other["bleu"] == pytest.approx(100 * row["bleu"]) and other["bleu_low"]
                == pytest.approx(100 * row["bleu_low"]) and other["readability"] == row["readability"])
    assert (hundred["comparisons"][0]["metrics"][0]["difference"]
            == pytest.approx(100 * one["comparisons"][0]["metrics"][0]["difference"]))
    assert "BLEU (0-1)" in run(capsys, "evaluate", "pairs.csv", "--metrics", "bleu")[1]
    assert "BLEU (0-100)" in run(capsys, "evaluate", "pairs.csv", "--metrics", "bleu", "--percent")[1]


def test_any_system_may_be_the_baseline(folder, capsys):
    write("pairs.csv", systems("one", "two", "three"))
    status, out, err = run(capsys, "evaluate", "pairs.csv", "--metrics", "rouge", "--baseline", "two", "--report",
                           "json")
    assert status == 0 and "one minus two" in out and "three minus two" in out and "minus one" not in out, err
    for name in ("summary.json", "report.json"):
        assert [(pair["a"], pair["b"]) for pair in json.loads(Path("tsteval-results",
                                                                   name).read_text())["comparisons"]] == [("one",
                                                                                                           "two"),
                                                                                                          ("three",
                                                                                                           "two")]
    refused(capsys, folder, "evaluate", "pairs.csv", "--baseline", "four",
            words=["--baseline", "'four'", "one, two, three"])


def test_names_cannot_harm_a_terminal(folder, capsys):
    names = ["two\x1b[2J\x07", "right\u202eleft", "x" * 19_000 + "-v2", "last"]
    status, out, err = run(capsys, "evaluate", write("pairs.csv", systems(*names)), "--metrics", "rouge", "--quiet")
    assert status == 0 and not any(bad in out + err
                                   for bad in "\x1b\x07\u202e") and max(map(len,
                                                                            out.splitlines())) < 200 and "xxx-v2" in out, err
    status, out, err = run(capsys, "evaluate", write("head.csv", [{"sou\x1b[2Jrce" + "y" * 30_000: "a"}]))
    assert status == 2 and "\x1b" not in err and len(err) < 1_200 and err.count("\n") == 1


def command(*arguments, encoding="utf-8", shell="", **options):
    line = "from tsteval.cli import main; import sys; sys.argv[0] = 'tsteval'; sys.exit(main())"
    return subprocess.run(["bash", "-c", f'"$@" {shell}', "bash", sys.executable, "-c", line, *map(str, arguments)],
                          capture_output=True, text=True,
                          errors="replace", env={**os.environ, "PYTHONIOENCODING": encoding}, **options, check=False)


def test_a_console_without_the_letters_gets_question_marks(folder):
    write("pairs.csv", systems("最終", "naïve"))
    done = command("evaluate", "pairs.csv", "--metrics", "rouge", "--quiet", encoding="cp1252")
    assert done.returncode == 0 and "??" in done.stdout and "Traceback" not in done.stderr, done.stderr
    done = command("evaluate", "pairs.csv", "--system", "無", encoding="ascii")
    assert done.returncode == 2 and "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_closed_pipe_ends_the_command_without_a_word(folder):
    write("pairs.csv", systems("one", "two"))
    for arguments in (["evaluate", "pairs.csv", "--metrics", "rouge", "--quiet"], ["metrics"], ["evaluate", "--help"],
                      ["--completion", "zsh"]):
        done = command(*arguments, shell="| (sleep 0; exec 0<&-; true); echo ${PIPESTATUS[0]}")
        # 0 where all was written before the pipe was closed
        assert done.stdout in ("141\n", "0\n") and done.stderr == "", (arguments, done)
    reader = ("import os, subprocess, sys; r, w = os.pipe(); os.close(r); sys.exit(subprocess.run(sys.argv[1:], "
              "stdout=w).returncode)")
    line = "from tsteval.cli import main; import sys; sys.exit(main())"
    done = subprocess.run([sys.executable, "-c", reader, sys.executable, "-c", line, "evaluate", "pairs.csv",
                           "--metrics", "rouge", "--quiet"], capture_output=True, text=True, check=False)
    assert done.returncode == 141 and done.stderr == "" and Path("tsteval-results/report.html").is_file()


def test_an_interrupt_after_the_last_file_says_where_the_results_are(folder, capsys, monkeypatch):
    monkeypatch.setattr(cli, "_print_table", lambda *options: (_ for _ in ()).throw(KeyboardInterrupt))
    status, _out, err = run(capsys, "evaluate", write("pairs.csv"), "--metrics", "rouge", "--quiet", "--output", "out")
    assert status == 130 and "the results are in out" in err and Path("out/report.html").is_file()


@pytest.mark.parametrize("arguments, words", [
    (["evaluate", "--colour"], ["--colour", "tsteval evaluate --help"]),
    (["fetch", "a", "b"], ["b is too much", "tsteval fetch --help"]),
    (["evaluate", "pairs.csv", "--metrics", "bleu", "rouge"], ["rouge is too much", "comma"]),
    (["evaluate", ""], ["the argument after evaluate is empty"]),
    (["evaluate", "pairs.csv", "--output", ""], ["the argument after --output is empty"]),
    (["evaluate", "pairs.csv", "--metrics="], ["nothing stands after --metrics="]),
    (["evaluate", "pairs.csv", "--n-boot", "99999999999"],
     ["--n-boot must be a whole number of at least 1 and at most 1000000"]),
    (["evaluate", "pairs.csv", "--engine", "local", "--block-rows", "0"],
     ["--block-rows must be a whole number of at least 1"]),
    (["evaluate", "pairs.csv", "--engine", "ray", "--workers", "0"],
     ["--workers must be a whole number of at least 1"]),
    (["explore", "--port", "99999"], ["--port", "65535"]), (["course", "--port", "0"], ["--port"]),
    (["--citation", "ris"], ["bibtex"])])
def test_help_is_that_of_the_sub_command_and_ports_have_a_range(folder, capsys, arguments, words):
    refused(capsys, folder, *arguments, words=words)


@pytest.mark.parametrize("style", ["text", "bibtex"])
def test_a_citation_comes_from_the_file(capsys, style):
    import yaml
    facts = yaml.safe_load(packaged_path("CITATION.cff").read_text())
    status, out, _err = run(capsys, "--citation", style)
    assert (status == 0 and facts["title"] in out and str(facts["version"]) in out
            and facts["authors"][0]["name"] in out and "2026" in out)
    assert out.startswith("@software{") == (style == "bibtex") and out.count("{") == out.count("}")
    assert packaged_path("CITATION.cff").read_bytes() == (Path(__file__).parents[2] / "CITATION.cff").read_bytes()


@pytest.mark.slow
def test_a_shell_completes_the_command(folder):
    write("pairs.csv")
    script = command("--completion", "bash").stdout
    Path("complete.bash").write_text(script
                                     + '\nask() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _shtab_tsteval; echo '
                                       '"${COMPREPLY[@]}"; }\n')
    ask = lambda words: subprocess.run(["bash", "-c", f"source ./complete.bash; ask {words}"], capture_output=True,
                                       text=True, check=False).stdout.split()
    assert (ask("tsteval ev") == ["evaluate"] and ask("tsteval evaluate --form") == ["--format"]
            and ask("tsteval evaluate pai") == ["pairs.csv"])
    assert ask("tsteval evaluate --format ''") == ["text", "markdown", "latex", "json", "csv"]
    for shell, word in (("zsh", "--style-model"), ("fish", "style-model"), ("tcsh", "evaluate")):
        assert word in command("--completion", shell).stdout


# ---- results: early checks, one set, spreadsheets

def never(*options, **more): raise AssertionError("nothing may be scored before this is checked")


def test_a_model_that_cannot_be_had_is_found_before_the_first_score(folder, capsys, monkeypatch):
    from tsteval import evaluation
    monkeypatch.setattr(evaluation, "evaluate", never)
    for option in ("--style-model", "--encoder", "--language-model"):
        refused(capsys, folder, "evaluate", write("pairs.csv"), option, "nobody/nothing", words=["nobody/nothing"])


def test_a_default_model_that_cannot_be_had_is_found_on_one_row(folder, capsys, monkeypatch):
    from tsteval.core.assets import AssetError
    from tsteval.fluency import CausalLM
    scored = []
    Path("counting.py").write_text(OWN)
    sys.path.insert(0, str(folder))
    import counting
    monkeypatch.setattr(counting, "length", dataclasses.replace(counting.length, score=lambda table,
                                                                models: scored.append(len(table))
                                                                or counting.score(table, models)))
    monkeypatch.setattr(CausalLM, "load", classmethod(lambda *options,
                                                      **more: (_
                                                               for _ in ()).throw(AssetError("there is no such model"))))
    refused(capsys, folder, "evaluate", write("pairs.csv", ROWS * 20), "--metrics", "counting:length,fluency",
            words=["no such model"])
    assert scored == [1]
    sys.path.remove(str(folder))


@pytest.mark.skipif(not hasattr(os, "geteuid") or (os.geteuid() == 0 and not Path("/proc/self").exists()),
                    reason="needs a folder in which nobody can write")
def test_a_folder_that_cannot_be_written_is_found_before_the_first_score(folder, capsys, monkeypatch):
    from tsteval import evaluation
    monkeypatch.setattr(evaluation, "evaluate", never)
    refused(capsys, folder, "evaluate", write("pairs.csv"), "--output", "/proc/none",
            words=["--output /proc/none", "cannot be made"])
    monkeypatch.setattr(cli.shutil, "disk_usage", lambda place: type("Usage", (), {"free": 1_000_000}))
    refused(capsys, folder, "evaluate", "pairs.csv", "--output", "out", words=["--output out", "1.0 MB are free"])


def test_a_result_set_is_never_mixed(folder, capsys, monkeypatch):
    write("pairs.csv")
    assert run(capsys, "evaluate", "pairs.csv", "--metrics", "bleu", "--report", "markdown", "--output", "out")[0] == 0
    Path("out/mine.txt").write_text("mine")
    before = {path.name: path.read_bytes() for path in Path("out").iterdir()}
    import tsteval.datasets.tables as tables
    real, calls = os.fsync, []

    def full(handle):
        calls.append(handle)
        if len(calls) == 2: raise OSError(28, "No space left on device")
        real(handle)
    monkeypatch.setattr(tables.os, "fsync", full)
    status, _out, err = run(capsys, "evaluate", "pairs.csv", "--metrics", "rouge", "--output", "out", "--quiet")
    assert status == 2 and err == ("tsteval: error: --output out: summary.json: cannot be written (No space left on "
                                   "device); nothing was changed\n")
    assert {path.name: path.read_bytes() for path in Path("out").iterdir()} == before
    assert run(capsys, "evaluate", "pairs.csv", "--metrics", "rouge", "--output", "out")[0] == 0
    # the old report is gone with its table
    assert sorted(path.name for path in Path("out").iterdir()) == sorted([*FILES, "mine.txt"])


def test_formulas_are_escaped_when_asked(folder, capsys):
    rows = [{"system": "@sum", "source": "=HYPERLINK(\"x\")", "output": "-2+3 is one", "reference": "a - b"}]
    for options, first in (([], "=HYPERLINK"), (["--csv-safe"], "'=HYPERLINK")):
        assert run(capsys, "evaluate", write("pairs.csv", rows), "--metrics", "rouge,readability", "--output", "out",
                   *options)[0] == 0
        scored = pd.read_csv("out/per_pair.csv")
        assert scored.source[0].startswith(first) and scored.output[0].startswith(first[0] * bool(options)
                                                                                  + "-2") and scored.reference[0] == "a - b"
        assert scored.readability.dtype == float


# ---- the course

def test_the_course_is_opened_for_root_and_options_go_through(folder, monkeypatch):
    called = []
    monkeypatch.setattr(cli.subprocess, "call", lambda command: called.append(command) or 0)
    monkeypatch.setattr(cli.os, "geteuid", lambda: 0, raising=False)
    assert cli.main(["course", "--no-browser", "--port", "9000", "--ip=0.0.0.0", "--debug"]) == 0
    monkeypatch.setattr(cli.os, "geteuid", lambda: 1000, raising=False)
    assert cli.main(["course"]) == 0
    assert called[0][3:8] == ["--no-browser", "--port=9000", "--allow-root", "--ip=0.0.0.0",
                              "--debug"] and called[1][3] == "--notebook-dir"


def test_the_course_adds_what_is_missing_and_touches_nothing_else(folder, monkeypatch):
    import tsteval
    chapters = folder / "prefix" / "share" / "tsteval" / "nbs"
    (chapters / "core").mkdir(parents=True)
    for name in ("index", "01_text", "core/files"): (chapters / f"{name}.ipynb").write_text("{}")
    monkeypatch.setattr(tsteval, "__file__", str(folder / "site-packages" / "tsteval" / "__init__.py"))
    monkeypatch.setattr(sys, "prefix", str(folder / "prefix"))
    mine = folder / "tsteval-course"
    mine.mkdir()  # a copy that was interrupted
    (mine / "01_text.ipynb").write_text("my notes")
    assert cli.course_folder() == mine and (mine / "01_text.ipynb").read_text() == "my notes"
    assert (mine / "index.ipynb").read_text() == (mine / "core" / "files.ipynb").read_text() == "{}"


def test_a_style_model_that_does_not_know_the_style_is_said_below_the_table(folder, capsys):
    pairs = pd.read_json(packaged_path("formality_pairs.jsonl"), lines=True)
    pd.DataFrame({"source": pairs.informal, "output": pairs.formal,
                  "reference": pairs.formal}).to_csv("formal.csv", index=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cli.main(["evaluate", "formal.csv", "--metrics", "sti", "--n-boot", "5"]) == 0
    said = capsys.readouterr().out
    assert "STI (neutrality)" in said and ("warning: neutrality: on these texts subjectivity-minilm does no better "
                                           "than length") in said
    notes = json.loads(Path("tsteval-results/summary.json").read_text())["notes"]
    assert (notes[0]["warning"] and notes[0]["figures"]["pairs"] == 40
            and "no better than length" in Path("tsteval-results/report.html").read_text())
    assert cli.main(["check", "formal.csv", "--fail-if", "sti<-1", "--n-boot",
                     "5"]) == 0 and "warning: neutrality" in capsys.readouterr().out
