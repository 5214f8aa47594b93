"""`tsteval estimate`: ratings of some and scores of all, from the embedded pairs to sentences, and each mistake in one
line. The raters of `simulated_ratings.csv` are simulated."""

import re
from pathlib import Path

import pandas as pd
import pytest

from tests.cli.conftest import refused, run
from tsteval.core.assets import packaged_path
from tsteval.people.estimates import ESTIMATE_COLUMNS
from tsteval.tables.pairs import load_pairs

ROWS = [
    {
        "system": system,
        "source": f"Source {n}.",
        "output": f"{system} {n}.",
        "score": (n * 7 + place) % 40,
        "note": "words",
    }
    for place, system in enumerate("AB")
    for n in range(40)
]


@pytest.fixture
def files(folder):
    table = pd.DataFrame(ROWS)
    table.to_csv("scores.csv", index=False)
    rated = table[table.index % 40 < 12].drop(columns=["score", "note"])
    rated.assign(criterion="content", rating=1 + table.score // 10).to_csv(
        "ratings.csv", index=False
    )
    return folder


def test_from_two_tables_to_sentences(files, capsys):
    asked = ["--scale", "1-5", "--plan", 1, "--output", "told"]
    status, out, err = run(capsys, "estimate", "ratings.csv", "scores.csv", *asked)
    assert status == 0, err
    assert (
        re.search(r"^A +\d\.\d\d \[\d\.\d\d, \d\.\d\d\] ", out, re.M) and "content, by score" in out
    )
    assert (
        re.search(r"for an interval 1 wide: A \d+(, more than| of) its \d+; B", out)
        and "not drawn by tsteval rate --sample" in out
    )
    assert "One rater" in out and re.search(
        r"^A and B are not told apart|^A is rated (above|below) B", out, re.M
    )
    table = pd.read_csv("told/content_estimates.csv")
    assert list(table) == ["system", *ESTIMATE_COLUMNS]
    assert len(pd.read_csv("told/content_differences.csv")) == 1


def test_the_embedded_pairs_with_simulated_raters_from_end_to_end(folder, capsys):
    """The two systems of the demonstration that need no model; the third is in the slow test."""
    pairs = load_pairs("npov_pairs").query("split == 'test' and source != target")
    outputs = [
        {
            "system": system,
            "source": row.source,
            "output": getattr(row, side),
            "reference": row.target,
        }
        for system, side in (("copy", "source"), ("human", "target"))
        for row in pairs.itertuples()
    ]
    pd.DataFrame(outputs).to_csv("pairs.csv", index=False)
    simulated = pd.read_csv(packaged_path("simulated_ratings.csv"))
    assert simulated.rater.str.startswith("simulated-").all()
    simulated[simulated.system != "delete"].to_csv("simulated_ratings.csv", index=False)
    assert (
        run(
            capsys,
            "evaluate",
            "pairs.csv",
            "--metrics",
            "rouge",
            "--n-boot",
            20,
            "--output",
            "results",
        )[0]
        == 0
    )
    status, out, err = run(capsys, "estimate", "simulated_ratings.csv", "results", "--scale", "1-5")
    assert status == 0, err
    style = out.split("content, by")[0]
    assert (
        "copy is rated below human" in style and "not drawn" not in out and "One rater" not in out
    )
    assert f"{len(pairs)}" in style


def test_the_whole_demonstration_from_end_to_end(folder, capsys):
    assert (
        run(capsys, "evaluate", "--metrics", "sti", "--n-boot", 20, "--output", "results")[0] == 0
    )
    status, out, err = run(
        capsys, "estimate", packaged_path("simulated_ratings.csv"), "results", "--scale", "1-5"
    )
    assert status == 0 and all(name in out for name in ("copy", "delete", "human")), err


def test_sheets_of_a_sample_bring_their_scale_and_probabilities(files, capsys):
    assert (
        run(capsys, "rate", "scores.csv", "--sample", 40, "--criteria", "content", "--raters", 2)[0]
        == 0
    )
    for sheet in Path("tsteval-ratings/for-raters").glob("*.csv"):
        filled = pd.read_csv(sheet).assign(
            content=[1 + row % 5 for row in range(len(pd.read_csv(sheet)))]
        )
        filled.to_csv(Path("tsteval-ratings/ratings", sheet.name), index=False)
    status, out, err = run(capsys, "estimate", "tsteval-ratings", "scores.csv", "--scores", "score")
    assert status == 0 and "not drawn" not in out and "20     40" in out, (out, err)


@pytest.mark.parametrize(
    "options, words",
    [
        (["--scores", "scor"], ["--scores", "did you mean score?"]),
        (["--criterion", "contents"], ["did you mean content?"]),
        (["--scale", "5-1"], ["--scale", "1-5"]),
        (["--level", "2"], ["--level"]),
        (["--plan", "-1"], ["--plan"]),
    ],
)
def test_a_wrong_option_is_one_line(files, capsys, options, words):
    refused(capsys, files, "estimate", "ratings.csv", "scores.csv", *options, words=words)


def test_files_that_do_not_belong_together(files, capsys):
    pd.DataFrame(ROWS[20:]).to_csv("other.csv", index=False)
    refused(
        capsys, files, "estimate", "ratings.csv", "other.csv", words=["not among the scored ones"]
    )
    refused(capsys, files, "estimate", "ratings.csv", "nothing.csv", words=["nothing.csv"])
    refused(capsys, files, "estimate", "ratings.csv", words=["RESULTS"])
