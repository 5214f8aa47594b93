"""`tsteval rate` and `study`: sheets from a table, and what is wrong with either in one line."""

import json
from pathlib import Path

import pandas as pd
import pytest

from tests.cli.conftest import ROWS, refused, run, write

PAIRS = [
    {"source": f"The great bridge {n} opened.", "output": f"The bridge {n} opened."}
    for n in range(8)
]


@pytest.mark.parametrize(
    "options, words",
    [
        (["--raters", "0"], ["--raters must be a whole number of at least 1"]),
        (["--repeat", "1"], ["--repeat"]),
        (["--overlap", "2"], ["--overlap"]),
        (["--question", "style"], ["--question style: write CRITERION=TEXT"]),
        (["--scale", "5-1"], ["--scale"]),
        (["--output", "x.csv"], ["--output x.csv is a file"]),
        (["--system", "gpt"], ["--system: there is no system called 'gpt'"]),
    ],
)
def test_what_is_wrong_with_a_plan_of_ratings(folder, capsys, options, words):
    refused(capsys, folder, "rate", write("x.csv", PAIRS), *options, words=words)


def test_an_empty_output_is_named_by_its_row(folder, capsys):
    refused(
        capsys,
        folder,
        "rate",
        write("x.csv", [ROWS[0], ROWS[1] | {"output": ""}]),
        words=["x.csv: column output, row 1", "line 3 of a spreadsheet"],
    )


def test_from_sheets_to_a_study(folder, capsys):
    status, out, err = run(
        capsys, "rate", write("x.csv", PAIRS), "--criteria", "content", "--raters", 2
    )
    assert status == 0 and Path("tsteval-ratings/key.json").is_file(), err
    for number, sheet in enumerate(sorted(Path("tsteval-ratings/for-raters").glob("*.csv"))):
        filled = pd.read_csv(sheet)
        column = next(name for name in filled if name.startswith("content"))
        filled[column] = [1 + (row + number) % 5 for row in range(len(filled))]
        filled.to_csv(Path("tsteval-ratings/ratings", sheet.name), index=False)
    status, out, err = run(
        capsys, "study", "tsteval-ratings", "--metrics", "readability", "--n-boot", 50
    )
    assert status == 0 and "Written to tsteval-study" in out, err


def test_the_style_that_raters_are_asked_about_is_said(folder, capsys):
    """Where the table does not name it, it is the option's default, which may not be what was meant."""
    _, out, _ = run(capsys, "rate", write("x.csv", PAIRS))
    assert "The style that is asked about: neutral." in out
    _, out, _ = run(
        capsys, "rate", write("y.csv", PAIRS), "--target-style", "formal", "--output", "formal"
    )
    assert "The style that is asked about: formal." in out
    _, out, _ = run(
        capsys, "rate", write("z.csv", PAIRS), "--criteria", "content", "--output", "content"
    )
    assert "asked about" not in out


def test_a_draw_of_few_sources_is_warned_of_and_one_of_many_is_not(folder, capsys):
    rows = [{"source": f"The great bridge {n}.", "output": f"The bridge {n}."} for n in range(40)]
    write("a table.csv", rows)
    _, out, _ = run(capsys, "rate", "a table.csv", "--sample", 29, "--output", "two words")
    assert "29 sources" in out and "--sample 30 draws about 30." in out
    assert "tsteval evaluate 'a table.csv'\n  tsteval estimate 'two words' tsteval-results" in out
    _, out, _ = run(capsys, "rate", "a table.csv", "--sample", 30, "--output", "more")
    assert "warning" not in out


def test_a_study_of_nothing(folder, capsys):
    refused(capsys, folder, "study", "nothing", words=["nothing"])
    refused(capsys, folder, "study", words=["RATINGS"])
    refused(
        capsys,
        folder,
        "study",
        "mir2019",
        "--metrics",
        "blue",
        words=["--metrics", "did you mean bleu?"],
    )


def test_a_sample_is_drawn_with_its_seed_and_probability(folder, capsys):
    rows = [row | {"system": system} for system in "AB" for row in PAIRS]
    status, out, err = run(
        capsys, "rate", write("x.csv", rows), "--sample", 8, "--seed", 3, "--repeat", 0
    )
    assert (
        status == 0
        and "A random sample of 8 of 16 rows (seed 3)" in out
        and "\n  tsteval evaluate x.csv\n  tsteval estimate tsteval-ratings tsteval-results\n"
        in out
        and "\n  tsteval study tsteval-ratings\n" in out
        and "warning: 8 outputs of only 4 sources" in out
    ), err
    key = json.loads(Path("tsteval-ratings/key.json").read_text())
    assert (
        key["seed"] == 3
        and len(key["rows"]) == 8
        and {row["inclusion"] for row in key["rows"]} == {0.5}
    )
    refused(
        capsys,
        folder,
        "rate",
        "x.csv",
        "--sample",
        2,
        words=["leave system 'A' with 1 of its 8 sources"],
    )
    refused(
        capsys, folder, "rate", "x.csv", "--sample", 2, "--limit", 2, words=["--sample", "--limit"]
    )


def test_a_wrong_row_is_told_by_its_place_in_the_whole_table(folder, capsys):
    refused(
        capsys,
        folder,
        "rate",
        write("x.csv", [*PAIRS, PAIRS[0] | {"output": ""}]),
        "--sample",
        4,
        words=["x.csv: column output, row 8"],
    )


def test_raters_see_the_content_alone(folder, capsys):
    rows = [
        {"source": f"The superb bridge {n} opened.", "output": f"The bridge {n} opened."}
        for n in range(6)
    ]
    status, _out, err = run(
        capsys, "rate", write("x.csv", rows), "--masked", "--criteria", "content"
    )
    sheet = pd.read_csv(next(Path("tsteval-ratings/for-raters").glob("*.csv")))
    assert status == 0 and sheet.source.str.contains("____").all(), err
    assert not sheet.source.str.contains("superb").any()


def test_a_full_disk_names_the_file_of_the_raters(folder, capsys, monkeypatch):
    write("t.csv", [{"source": f"s {n} great.", "output": f"s {n}."} for n in range(8)])

    def full(*_arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    status, out, err = run(capsys, "rate", "t.csv", "--output", "out")
    assert status == 2 and out == "" and err.count("\n") == 1 and "No space left on device" in err
    assert "out/for-raters/rater-1" in err and not [
        path for path in Path("out").rglob("*") if path.is_file()
    ]
