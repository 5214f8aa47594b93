"""What is printed: harmless, aligned, on the scale that is asked for, and the same in every format."""

import argparse
import io
import json
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

from tsteval.core.metric import Metric, Scores
from tsteval.evaluation import evaluate
from tsteval.report.findings import work_out
from tsteval.report.terminal import (
    aligned,
    citation,
    comparison_table,
    completion_script,
    csv_text,
    difference_rows,
    format_summary,
    one_line,
    per_pair_csv,
    render_table,
    say,
)


@dataclass(frozen=True)
class Constant(Metric):
    name = "constant"
    needs = ("output", "system")
    columns = ("constant",)

    def score(self, rows, models=None):
        return Scores({self.name: np.where(rows.system == "a", 0.5, 0.25)})


class Hundred(Constant):
    name = "hundred"
    columns = ("hundred",)
    headings = ("HUNDRED",)
    percent = "papers"


class Both(Constant):
    name = "both"
    columns = ("both",)
    headings = ("BOTH",)
    percent = "libraries"


class Own(Constant):
    name = "own"
    columns = ("own",)
    headings = ("OWN",)


@pytest.fixture(scope="module")
def two():
    rows = [
        {"system": system, "source": f"s{n}", "output": f"o{n}"}
        for system in "ab"
        for n in range(8)
    ]
    return evaluate(rows, [Hundred, Both, Own], n_boot=20)


def test_a_message_is_one_line_of_bounded_length():
    told = one_line("two\nlines \x1b[2J " + "x" * 5_000)
    assert "\n" not in told and "\x1b" not in told and len(told) <= 1_000


def test_a_stream_gets_what_it_can_print():
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii", newline="\n")
    say("café", "ok", file=stream)
    stream.flush()
    assert raw.getvalue() == b"caf?\nok\n"


def test_columns_are_as_wide_as_their_widest_cell_by_what_a_terminal_shows():
    lines = aligned([["a", "最終", "e\u0301x"], ["1", "22", "3"]]).splitlines()
    assert lines == ["a     1", "最終  22", "e\u0301x    3"]


def test_a_wide_summary_is_cut_into_blocks():
    summary = [
        {"system": name, "n": 2}
        | {f"c{n}{end}": 0.5 for n in range(9) for end in ("", "_low", "_high")}
        for name in ("one", "two\x1b[2J")
    ]
    text = format_summary(summary, {f"c{n}": f"C{n}" for n in range(9)}, width=80)
    blocks = text.split("\n\n")
    assert (
        len(blocks) > 1
        and all(len(line) <= 80 for line in text.splitlines())
        and "\x1b" not in text
    )
    assert all(block.startswith("system") and "one" in block for block in blocks) and all(
        f"C{n}" in text for n in range(9)
    )


def test_differences_are_those_of_the_scores_that_are_asked_for(two):
    found = work_out(two, percent=False)
    assert [row[1] for row in difference_rows(found)] == ["score", "HUNDRED", "BOTH (0-1)", "OWN"]
    assert [row[1] for row in difference_rows(found, ["own"])[1:]] == ["OWN"]
    assert "b minus a" in difference_rows(found)[1][0] and difference_rows(found)[1][-1] == "lower"
    assert "HUNDRED" in comparison_table(found, found.leading) and "OWN" not in comparison_table(
        found, ["hundred"]
    )


def test_every_format_says_the_same_numbers(two):
    table = work_out(two, percent=True)
    content = json.loads(render_table(table, "json"))
    assert content["systems"][0]["hundred"] == 50 and content["percent"] == ["hundred", "both"]
    rows = pd.read_csv(io.StringIO(render_table(table, "csv")))
    assert rows.query("system == 'b' and score == 'own'").difference.tolist() == [-0.25]
    for format in ("text", "markdown", "latex"):
        text = render_table(table, format)
        assert "50.0" in text and "0.250" in text and "BOTH" in text, format


def test_texts_of_a_csv_are_no_formulas_where_that_is_asked_for(two):
    cells = pd.DataFrame(
        {"output": pd.Series(["=1+1", "a", "half \ud83d"], dtype=object), "score": [-0.5, 0, 1]}
    )
    assert csv_text(cells).splitlines()[1] == "=1+1,-0.5" and "half ?" in csv_text(cells)
    assert csv_text(cells, safe=True).splitlines()[1] == "'=1+1,-0.5"
    frame = pd.read_csv(io.StringIO(per_pair_csv(two)))
    assert (
        len(frame) == 16 and "input" not in frame and frame.own.tolist() == [0.5] * 8 + [0.25] * 8
    )


def test_a_citation_has_the_version_in_both_styles():
    from tsteval.core.version import __version__

    assert __version__ in citation() and f"version = {{{__version__}}}" in citation("bibtex")


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_a_shell_learns_the_words(shell):
    parser = argparse.ArgumentParser(prog="small")
    parser.add_subparsers().add_parser("score", help="score").add_argument(
        "--output", metavar="FOLDER"
    )
    assert "--output" in completion_script(parser, shell)
