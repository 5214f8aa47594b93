"""What is written is read again as it was, whatever a text holds."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.strategies import HOSTILE
from tsteval.core.files import write_whole
from tsteval.core.metric import Metric, Scores
from tsteval.evaluation import evaluate
from tsteval.explorers.evaluation import selection_csv
from tsteval.people.pages import study_files
from tsteval.people.study import read_study, study_tables
from tsteval.report.terminal import csv_text, per_pair_csv
from tsteval.tables.blocks import read_batches
from tsteval.tables.formats import parse_table
from tsteval.tables.outputs import in_one_form, is_blank, prepare_pairs
from tsteval.tables.ratings import load_ratings

TEXT = st.text(st.characters(exclude_categories=("Cs",)))
ROWS = st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=4)
WORDS = ["nan", "NaN", "NA", "", "null", "#N/A", "=1+1", '"', "'", "a\rb", "\r", "\n", "[]", ' "a"']
HARD = [(word, word) for word in WORDS]


@dataclass(frozen=True)
class Length(Metric):
    name = "length"
    needs = ("source", "output")
    columns = ("length",)

    def score(self, rows, models=None):
        return Scores({"length": [float(len(text)) for text in rows.output]})


@settings(deadline=None)
@given(ROWS)
@example(HARD)
@example([("x", text.encode("utf-8", "replace").decode()) for text in HOSTILE])
def test_any_table_is_read_as_it_was_written(rows):
    table = pd.DataFrame(rows, columns=["source", "output"], dtype=object)
    data = csv_text(table).encode()
    assert parse_table(data, "csv").to_dict("list") == table.to_dict("list")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.csv"
        write_whole(path, csv_text(table))
        batches = pd.concat(read_batches(path, 2), ignore_index=True)
    assert batches.to_dict("list") == table.to_dict("list")


@settings(deadline=None)
@given(ROWS)
@example(HARD)
def test_rewrites_as_lines_of_json_are_read_as_they_were_written(rows):
    table = pd.DataFrame(rows, columns=["source", "output"], dtype=object)
    text = table.to_json(orient="records", lines=True, force_ascii=False)
    assert parse_table(text.encode(), "jsonl").to_dict("list") == table.to_dict("list")


def evaluated(rows, references=True):
    """An evaluation of the rows that hold texts."""
    rows = [row for row in rows if not any(map(is_blank, row))] or [("a dam", "dam")]
    table = pd.DataFrame(rows, columns=["source", "output"], dtype=object)
    if references:
        table = table.assign(reference=table.output, reference_2=table.source)
    return evaluate(table, [Length()], n_boot=2)


@settings(deadline=None, max_examples=30)
@given(ROWS, st.booleans())
@example(HARD, True)
@example(HARD, False)
def test_the_pairs_of_an_evaluation_are_read_as_they_were_written(rows, references):
    result = evaluated(rows, references)
    texts = ["system", "source", "output", "references"]
    for text in (
        per_pair_csv(result),
        selection_csv(result.per_pair, np.arange(len(result.per_pair))),
    ):
        again = prepare_pairs(parse_table(text.encode(), "csv"))
        assert again[texts].to_dict("list") == result.per_pair[texts].to_dict("list")


@settings(deadline=None, max_examples=30)
@given(ROWS)
@example(HARD)
def test_ratings_are_read_as_they_were_written(rows):
    texts = dict.fromkeys(row for row in rows if not any(map(is_blank, row))) or {("a", "b"): None}
    table = pd.DataFrame(list(texts), columns=["source", "output"], dtype=object)
    table = table.map(lambda text: in_one_form([text])[0]).drop_duplicates(ignore_index=True)
    table = table.assign(system="A", criterion="style", rating=np.arange(len(table)) % 5 + 1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ratings.csv"
        write_whole(path, csv_text(table))
        again = load_ratings(path)
        study = read_study([path])
    assert again[["source", "output", "rating"]].to_numpy().tolist() == (
        table[["source", "output", "rating"]].to_numpy().tolist()
    )
    assert len(study.ratings) == len(table)


@pytest.mark.parametrize("output", ["a\rb", "nan", "=1"])
def test_the_ratings_of_a_study_are_written_to_be_read(tmp_path, output):
    rows = [
        {
            "system": "A",
            "source": f"a dam {row}",
            "output": output,
            "criterion": "style",
            "rating": row,
        }
        for row in range(5)
    ]
    write_whole(tmp_path / "mine.csv", csv_text(pd.DataFrame(rows)))
    study = read_study([tmp_path / "mine.csv"])
    scores = study.ratings[["data_set", "item"]].assign(length=1.0)
    files = study_files(study, scores, study_tables(study, scores, n_boot=2), {})
    for name in ("ratings.csv", "scores.csv"):
        assert parse_table(files[name].encode(), "csv").output.tolist() == [output] * 5
