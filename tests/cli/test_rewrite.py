"""`tsteval rewrite`: outputs for sources, a run that was stopped goes on, and one path from sources to scores."""

import json
from pathlib import Path

import pandas as pd
import pytest

from tests.cli.conftest import refused, run, write
from tsteval.rewriting import Rewriter

SOURCES = [
    {"source": f"the bridge number {n} was grand", "reference": f"the bridge {n}"} for n in range(6)
]


class Shout:
    """Stands for a model: what it answers is known, and it counts what it was asked."""

    name = "shout"
    tag = "shout@1"

    def __init__(self, stop_after=None):
        self.asked = []
        self.stop_after = stop_after

    def rewrite(self, texts, batch_size=16, **decoding):
        if self.stop_after is not None and len(self.asked) >= self.stop_after:
            raise KeyboardInterrupt
        self.asked += texts
        return [text.upper() if "5" not in text else text for text in texts]


@pytest.fixture
def model(monkeypatch):
    """The model that the command will load, which a test may exchange."""
    held = {"model": Shout()}
    monkeypatch.setattr(Rewriter, "load", classmethod(lambda cls, *given, **more: held["model"]))
    return held


def test_outputs_stand_beside_their_sources_with_what_a_score_needs(folder, capsys, model):
    status, out, err = run(capsys, "rewrite", write("in.csv", SOURCES), "--output", "out.csv")
    made = pd.read_csv("out.csv")
    assert status == 0, err
    assert list(made.columns) == ["source", "reference", "output", "system"] and set(
        made.system
    ) == {"shout"}
    assert made.output.tolist() == [row["source"].upper() for row in SOURCES[:5]] + [
        SOURCES[5]["source"]
    ]
    assert "6 outputs in out.csv; 1 are copies" in out and "tsteval evaluate out.csv" in out
    assert not list(folder.glob("out.csv.part*"))


def test_a_table_that_was_evaluated_before_gives_each_source_once(folder, capsys, model):
    rows = [row | {"output": "x", "system": system} for system in ("a", "b") for row in SOURCES]
    status, _, err = run(
        capsys,
        "rewrite",
        write("in.jsonl", rows),
        "--output",
        "out.jsonl",
        "--system",
        "loud",
        "--limit",
        4,
    )
    made = pd.read_json("out.jsonl", lines=True)
    assert status == 0, err
    assert len(made) == 4 and set(made.system) == {"loud"} and len(model["model"].asked) == 4


def test_a_run_that_was_stopped_goes_on_and_ends_as_one_that_was_not(folder, capsys, model):
    command = ["rewrite", write("in.csv", SOURCES), "--output", "out.csv", "--batch-size", 1]
    run(capsys, *command)
    whole = Path("out.csv").read_bytes()
    Path("out.csv").unlink()
    model["model"] = Shout(stop_after=4)
    status, _, err = run(capsys, *command)
    assert status == 130 and "goes on from there" in err and not Path("out.csv").exists()
    # a crash in the middle of a line
    with open("out.csv.part", "a") as kept:
        kept.write('["the bridge number 5 was gr')
    model["model"] = Shout()
    status, _, err = run(capsys, *command)
    assert status == 0 and "4 of 6 outputs were kept" in err and len(model["model"].asked) == 2
    assert Path("out.csv").read_bytes() == whole


def test_what_another_run_kept_is_refused_unless_begun_anew(folder, capsys, model):
    command = ["rewrite", write("in.csv", SOURCES), "--output", "out.csv", "--batch-size", 1]
    model["model"] = Shout(stop_after=4)
    run(capsys, *command)
    model["model"] = Shout()
    refused(capsys, folder, *command, "--method", "beam", words=["out.csv.part", "--restart"])
    status, _, err = run(capsys, *command, "--method", "beam", "--restart")
    assert status == 0 and len(model["model"].asked) == 6, err


@pytest.mark.parametrize(
    "options, words",
    [
        (["--output", "out.txt"], ["--output", ".csv or .jsonl"]),
        (["--output", "no/out.csv"], ["--output", "not there"]),
        (["--output", "out.csv", "--source-column", "text"], ["in.csv", "no column text"]),
        (["--output", "out.csv", "--top-p", "2"], ["--top-p"]),
        (["--output", "out.csv", "--limit", "0"], ["--limit"]),
        (["--output", "out.csv", "--metrics", "chrf"], ["--metrics", "--evaluate"]),
    ],
)
def test_what_is_wrong_is_found_before_a_model_is_loaded(
    folder, capsys, options, words, monkeypatch
):
    monkeypatch.setattr(Rewriter, "load", None)
    refused(capsys, folder, "rewrite", write("in.csv", SOURCES), *options, words=words)


def test_one_path_from_sources_to_scores(folder, capsys, model):
    status, _, err = run(
        capsys,
        "rewrite",
        write("in.csv", SOURCES),
        "--output",
        "out.csv",
        "--evaluate",
        "scores",
        "--metrics",
        "rouge,chrf",
        "--references-as",
        "target",
    )
    assert status == 0, err
    found = json.loads(Path("scores/summary.json").read_text())
    assert [row["system"] for row in found["systems"]] == ["shout", "target"], found["systems"]


def test_the_sources_are_not_written_over(folder, capsys):
    before = Path("sources.csv")
    before.write_text("source\nIt was cold.\nIt was late.\n")
    refused(
        capsys,
        folder,
        "rewrite",
        "sources.csv",
        "--output",
        "./sources.csv",
        "--limit",
        "1",
        words=["is read, and would be written over"],
    )
    assert before.read_text() == "source\nIt was cold.\nIt was late.\n"


@pytest.mark.parametrize(
    "column, style, words",
    [
        ("before", ["--style", "formal"], ("pairs.csv", "no column source", "before, target")),
        ("source", [], ("examples", "say which")),
    ],
)
def test_examples_need_their_columns_and_a_style(folder, capsys, column, style, words):
    write("pairs.csv", [{column: "a", "target": "b"}])
    write("sources.csv", SOURCES)
    command = ["rewrite", "sources.csv", "--output", "o.csv", "--examples", "pairs.csv", *style]
    refused(capsys, folder, *command, words=words)
