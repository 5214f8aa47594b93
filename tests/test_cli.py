"""The command as a person uses it: results whole or not at all, mistakes in one line with status 2."""
import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import sacrebleu

from tsteval import __version__, cli
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
    status, out, err = run(capsys, "evaluate", write(name), "--metrics", "bleu", "--output", "out")
    assert status == 0 and sorted(p.name for p in Path("out").iterdir()) == FILES
    scored = pd.read_csv("out/per_pair.csv", keep_default_na=False)
    assert scored.output.tolist() == [row["output"] for row in ROWS] and scored.reference.tolist() == [r["reference"] for r in ROWS]
    summary = json.loads(Path("out/summary.json").read_text())
    bleu = sacrebleu.corpus_bleu([row["output"] for row in ROWS], [[row["reference"] for row in ROWS]]).score / 100
    assert summary["systems"][0]["n"] == 2 and abs(summary["systems"][0]["bleu"] - bleu) < 1e-9
    assert summary["input"]["file"] == name and len(summary["input"]["sha256"]) == 64
    assert {"tsteval", "python", "torch"} <= set(summary["versions"]) and "tok:13a" in summary["signatures"]["bleu"]
    assert "BLEU" in out and f"{summary['systems'][0]['bleu']:.3f}" in out


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
    status, out, err = run(capsys, "evaluate", write("x.csv", rows), "--source-column", "in", "--output-column", "out",
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
    "latin1.csv": (b"source,output\na,b\ncaf\xe9,b\n", ["line 3", "0xE9", "UTF-8"]),
    "marked.csv": (b"\xef\xbb\xbfsource,output\na,b\ncaf\xe9,b\n", ["line 3", "0xE9", "UTF-8"]),
    "utf16.csv": ("source,output\na,b\n".encode("utf-16"), ["line 1", "UTF-8"]),
    "nan.csv": (b"source,output\na,NaN\n", ["column output, row 0:", "got None", "counted from 0"]),
    "gap.csv": (b"source,output\na,b\nc,\n", ["column output, row 1:", "empty"]),
    "null.jsonl": (b'{"source": "a", "output": null}\n', ["column output, row 0:", "got None"]),
    "nan.jsonl": (b'{"source": "a", "output": "b"}\n{"source": NaN, "output": "b"}\n', ["column source, row 1:", "NaN"]),
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
    (["--metrics", "blue"], ["no metric called 'blue'", "bleu, rouge, sti, cps, fluency"]),
    (["--metrics", "no_module:metric"], ["no_module", "cannot import"]),
    (["--metrics", "json:loads"], ["Metric", "function"]),
    (["--metrics", "bleu", "--set", "bleu.smoothings=exp"], ["no option 'smoothings'", "smoothing"]),
    (["--metrics", "bleu", "--set", "bleu.smoothing=expo"], ["smoothing", "'expo'"]),
    (["--metrics", "bleu", "--set", "cps.strategy=none"], ["options for cps"]),
    (["--metrics", "bleu", "--set", "strategy"], ["--set strategy", "METRIC.OPTION=VALUE"]),
    (["--metrics", "cps", "--set", "cps.threshold=3"], ["threshold"]),
    (["--n-boot", "0"], ["--n-boot"]),
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
    refused(capsys, folder, "evaluate", folder, words=["folder"])
    refused(capsys, folder, "evaluate", "pairs.csv", "--metrics", "bleu", "--output", "pairs.csv", words=["--output"])


def test_bleu_asked_for_without_references(folder, capsys):
    rows = [{"source": "a", "output": "b"}]
    refused(capsys, folder, "evaluate", write("x.csv", rows), "--metrics", "bleu", words=["x.csv", "no column reference"])


def test_fetch_of_something_unknown(folder, capsys):
    refused(capsys, folder, "fetch", "moon", words=["'moon'", "all-MiniLM-L6-v2", "wnc_sample"])
    refused(capsys, folder, "fetch", "msr_compression", words=["cannot be fetched automatically"])


def test_fetch_of_an_asset(folder, capsys):
    status, out, err = run(capsys, "fetch", "web-ngrams")
    assert status == 0 and out.startswith("web-ngrams: ")


def test_version_and_help(folder):
    code = "import sys; from tsteval.cli import main; sys.argv[0] = 'tsteval'; main()"
    version = subprocess.run([sys.executable, "-c", code, "--version"], capture_output=True, text=True)
    assert version.stdout == f"tsteval {__version__}\n" and version.returncode == 0
    for words in (["--help"], ["evaluate", "--help"], ["course", "--help"], ["fetch", "--help"]):
        assert subprocess.run([sys.executable, "-c", code, *words], capture_output=True).returncode == 0


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
    monkeypatch.setattr(cli, "read_table", lambda path: (_ for _ in ()).throw(KeyboardInterrupt))
    status, out, err = run(capsys, "evaluate", write("pairs.csv"))
    assert status == 130 and "stopped" in err and not Path("tsteval-results").exists()


@pytest.mark.slow
def test_embedded_pairs_without_a_file(folder, capsys):
    status, out, err = run(capsys, "evaluate", "--limit", 4, "--output", "out")
    assert status == 0 and sorted(p.name for p in Path("out").iterdir()) == FILES
    scored = pd.read_csv("out/per_pair.csv")
    assert scored.system.tolist() == ["copy"] * 4 + ["delete"] * 4 + ["human"] * 4
    embedded = pd.read_json(packaged_path("npov_pairs.jsonl"), lines=True).query("split == 'test'")
    assert set(scored.source) <= set(embedded.source)


# ---- explore

def test_explore_help_names_every_explorer(capsys):
    from tsteval.widgets import EXPLORERS
    status, out, err = run(capsys, "explore", "--help")
    assert status == 0 and all(name in out for name in EXPLORERS)


def test_explore_refuses_an_unknown_name(folder, capsys):
    refused(capsys, folder, "explore", "rouge", words=["'rouge'", "bleu", "evaluation"])


def test_explore_without_voila_says_what_to_install(folder, capsys, monkeypatch):
    monkeypatch.setattr(cli.importlib.util, "find_spec", lambda name: None)
    refused(capsys, folder, "explore", words=["pip install 'tsteval[course]'"])


@pytest.mark.parametrize("name", [None, "mask"])
def test_explore_hands_a_runnable_notebook_to_voila(folder, capsys, monkeypatch, name):
    import nbformat
    from voila.app import Voila
    given = []
    monkeypatch.setattr(Voila, "launch_instance", lambda argv: given.append((argv, nbformat.read(argv[-1], as_version=4))))
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
    status, out, err = run(capsys, "metrics")
    assert status == 0 and all(f"{name}: {METRICS[name].description}" in out for name in METRICS)
    assert "needs output, references" in out and "strategy='pad'" in out


def test_a_wide_summary_is_cut_into_blocks():
    summary = pd.DataFrame({"system": ["one", "two\x1b[2J"], "n": [2, 2]} | {f"c{n}{end}": [0.5, 0.25] for n in range(9) for end in ("", "_low", "_high")})
    text = cli.format_summary(summary, {f"c{n}": f"C{n}" for n in range(9)}, width=80)
    blocks = text.split("\n\n")
    assert len(blocks) > 1 and all(len(line) <= 80 for line in text.splitlines()) and "\x1b" not in text
    assert all(block.startswith("system") and "one" in block for block in blocks) and all(f"C{n}" in text for n in range(9))
