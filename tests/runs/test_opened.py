"""Results that are opened again are those of one run, whatever an earlier one left in the folder."""

import json
from pathlib import Path

import pandas as pd
import pytest

from tsteval import cli
from tsteval.runs.opened import read_results
from tsteval.tables.formats import FileError


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, n in (("old", 9), ("new", 12)):
        pd.DataFrame(
            [
                {"system": "rules", "source": f"the {name} mill {row}", "output": f"{name} {row}"}
                for row in range(n)
            ]
        ).to_csv(f"{name}.csv", index=False)


def evaluated(name, *more):
    assert (
        cli.main(
            [
                "evaluate",
                f"{name}.csv",
                "--metrics",
                "readability",
                "--n-boot",
                "5",
                "--output",
                "run",
                "--quiet",
                *more,
            ]
        )
        == 0
    )
    found = read_results("run")
    assert found.records[0]["n"] == len(found.per_pair) == {"old": 9, "new": 12}[name]
    assert found.per_pair.source.str.contains(name).all()
    assert found.columns == ["readability"] and found.headings == {"readability": "readability"}
    return found


def test_a_run_in_blocks_and_a_later_whole_one_are_told_apart():
    evaluated("old", "--engine", "local", "--block-rows", "4")
    evaluated("new")
    evaluated("new")


def test_a_whole_run_and_a_later_one_in_blocks_are_told_apart():
    evaluated("old")
    evaluated("new", "--engine", "local", "--block-rows", "4")
    evaluated("new", "--engine", "local")


def test_parts_that_are_not_all_there_are_refused():
    found = evaluated("new", "--engine", "local", "--block-rows", "4")
    part = "run/parts/part-000001.parquet"
    pd.read_parquet(part)[:-1].to_parquet(part)
    with pytest.raises(FileError, match=r"11 rows, and summary\.json tells of 12"):
        read_results("run")
    assert found.metadata["run"]


def test_results_of_an_earlier_version_in_blocks_are_opened():
    """Their summary does not name the run."""
    evaluated("new", "--engine", "local", "--block-rows", "4")
    said = json.loads(Path("run/summary.json").read_text("utf-8"))
    del said["run"]
    Path("run/summary.json").write_text(json.dumps(said), "utf-8")
    assert len(read_results("run").per_pair) == 12


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"systems": []}',
        '{"systems": [{"system": "a"}]}',
        '{"systems": [{"system": "a", "n": "12"}]}',
        "[" * 10**5,
    ],
)
def test_a_summary_that_is_none_is_refused_by_name(content):
    evaluated("new")
    Path("run/summary.json").write_text(content, "utf-8")
    with pytest.raises(FileError, match=r"summary\.json"):
        read_results("run")


def test_what_is_missing_is_named():
    with pytest.raises(FileError, match="there is no such folder"):
        read_results("nowhere")
    evaluated("new")
    pd.DataFrame(
        {"system": ["another"], "source": ["a"], "output": ["b"], "readability": [1]}
    ).to_csv("run/per_pair.csv", index=False)
    with pytest.raises(FileError, match="of different runs"):
        read_results("run")
