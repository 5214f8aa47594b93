"""What the command reads: tables, pipes, files of lines; a mistake is named by file and row."""
import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import sacrebleu

from tests.cli.conftest import FILES, ROWS, lines, pipe, refused, run, write


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


def test_columns_systems_and_limit(folder, capsys):
    rows = [{"in": f"text {n}", "out": f"text {n}", "ref a": "text", "ref b": f"text {n}", "by": system}
            for system in "ab" for n in range(3)]
    status, _out, err = run(capsys, "evaluate", write("x.csv", rows), "--source-column", "in", "--output-column", "out",
                           "--reference-column", "ref a", "--reference-column", "ref b", "--system-column", "by",
                           "--system", "b", "--limit", 2, "--metrics", "bleu", "--output", "out")
    assert status == 0, err
    scored = pd.read_csv("out/per_pair.csv")
    assert scored.system.tolist() == ["b", "b"] and {"reference", "reference_2"} <= set(scored.columns)


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
    "what.doc": (b"PK", [".doc", ".csv"]),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_files(folder, capsys, name):
    content, words = BAD_FILES[name]
    Path(name).write_bytes(content)
    refused(capsys, folder, "evaluate", name, "--output", "out", words=[name, *words])


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


def test_a_mistake_is_named_by_its_row_in_the_file_whatever_rows_are_chosen(folder, capsys):
    rows = [{"system": system, "source": "a", "output": output} for system,
            output in (("one", "x"), ("one", ""), ("two", "x"), ("two", ""))]
    refused(capsys, folder, "evaluate", write("gap.csv", rows), "--system", "two", "--metrics", "readability",
            words=["gap.csv: column output, row 3:"])
    assert run(capsys, "evaluate", "gap.csv", "--limit", 1, "--metrics", "readability", "--output", "out")[0] == 0
    write("list.jsonl", [{"system": ["one"], "source": "a", "output": "b"}])
    refused(capsys, folder, "evaluate", "list.jsonl", "--limit", 1, "--metrics", "readability",
            words=["list.jsonl: column system, row 0:"])
