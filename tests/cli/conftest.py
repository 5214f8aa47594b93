"""What the tests of the command share."""

import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from tsteval import cli

FILES = ["per_pair.csv", "report.html", "summary.json"]


ROWS = [
    {
        "source": "The great bridge opened.",
        "output": "The bridge, new, opened.",
        "reference": "The bridge opened.",
    },
    {"source": 'A "fine" day in May.', "output": "null", "reference": "A day in May."},
]


OWN = """
from dataclasses import dataclass
from tsteval.core.metric import Metric, Scores

@dataclass(frozen=True)
class Length(Metric):
    unit: str = "words"  # words | characters

    name = "length"
    needs = ("output",)
    columns = ("length",)
    better = "neither"

    def score(self, rows, models=None):
        measure = len if self.unit == "characters" else lambda text: len(text.split())
        return Scores({"length": rows.output.map(measure)})
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(name, rows=ROWS):
    frame = pd.DataFrame(rows)
    if name.endswith(".parquet"):
        frame.to_parquet(name)
    elif name.endswith(".jsonl"):
        frame.to_json(name, orient="records", lines=True)
    else:
        frame.to_csv(name, index=False, sep="\t" if name.endswith(".tsv") else ",")
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


def pipe(monkeypatch, text):
    import io

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


def two_files():
    write(
        "a.csv",
        [
            {"source": f"text {n}", "output": f"the text {n}", "reference": f"the text {n}"}
            for n in range(8)
        ],
    )
    write(
        "b.csv",
        [
            {"source": f"text {n}", "output": f"a text {n}", "reference": f"the text {n}"}
            for n in reversed(range(8))
        ],
    )


def lines(**files):
    for name, text in files.items():
        Path(f"{name}.txt").write_text(text)


def systems(*names):
    return [
        row | {"system": name, "output": row["output"] if place else row["reference"]}
        for place, name in enumerate(names)
        for row in ROWS
    ]


def command(*arguments, encoding="utf-8", shell="", **options):
    line = "from tsteval.cli import main; import sys; sys.argv[0] = 'tsteval'; sys.exit(main())"
    return subprocess.run(
        ["bash", "-c", f'"$@" {shell}', "bash", sys.executable, "-c", line, *map(str, arguments)],
        capture_output=True,
        text=True,
        errors="replace",
        env={**os.environ, "PYTHONIOENCODING": encoding},
        **options,
        check=False,
    )
