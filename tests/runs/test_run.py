"""A run in a folder: begun, gone on with, refused if something changed, and told of as `evaluate` tells."""

import json
import typing

import numpy as np
import pandas as pd
import pytest

from tests.own_metrics import metric_of
from tsteval.core.checks import InputError
from tsteval.core.metric import Note, Scores
from tsteval.evaluation import evaluate
from tsteval.runs import batches
from tsteval.runs.parts import what_changed
from tsteval.runs.run import _table_on_disk, run_folder
from tsteval.scale import evaluate_table

ROWS = [
    {
        "system": system,
        "source": f"the mill number {n} was old",
        "output": f"mill {n} was {system}",
        "reference": f"the mill {n}",
    }
    for system in ("one", "two")
    for n in range(12)
]


def length(by_row=True):
    return metric_of(
        lambda rows, models: Scores({"length": rows.output.map(len)}), by_row=by_row, version="1"
    )


def written(folder, rows=ROWS, name="t.csv"):
    pd.DataFrame(rows).to_csv(folder / name, index=False)
    return folder / name


BEFORE = {
    "tsteval": "1",
    "input": "a" * 64,
    "batch_rows": 5,
    "target_style": "neutral",
    "empty": "fail",
    "metrics": {"m": "m@1"},
}


@pytest.mark.parametrize(
    "change, said",
    [
        ({}, None),
        ({"input": "b" * 64}, "the input changed since: sha256 aaaaaaaaaaaa, now bbbbbbbbbbbb"),
        ({"metrics": {"n": "m@1"}}, "the metrics changed since: m, now n"),
        (
            {"metrics": {"m": "m@2"}},
            "m changed since, in its options, version or weights: m@1, now m@2",
        ),
        ({"target_style": "formal"}, "target_style changed since: neutral, now formal"),
        ({"empty": "skip"}, "empty changed since: fail, now skip"),
        ({"tsteval": "2"}, "tsteval changed since: 1, now 2"),
    ],
)
def test_the_first_thing_that_changed_is_named(change, said):
    assert what_changed(BEFORE, BEFORE | change) == said


def test_one_process_has_the_folder_at_a_time(tmp_path):
    with run_folder(tmp_path / "a" / "b") as folder:
        assert folder.is_dir()
        with pytest.raises(InputError, match="written by another process"), run_folder(folder):
            pass
    with run_folder(tmp_path / "a" / "b"):
        pass
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="is a file"), run_folder(tmp_path / "file"):
        pass


def test_a_table_in_memory_is_refused_with_what_takes_it(tmp_path):
    with pytest.raises(TypeError, match="evaluate takes one in memory"):
        _table_on_disk(ROWS, tmp_path)


@pytest.mark.parametrize("block_rows", [1, 5, 100])
@pytest.mark.parametrize("empty", ["skip", "zero"])
def test_outputs_without_a_text_are_what_they_are_in_evaluate(tmp_path, block_rows, empty):
    rows = [row | {"output": ""} if place in (3, 4, 20) else row for place, row in enumerate(ROWS)]
    path = written(tmp_path, rows)
    names = ["bleu", "rouge", "chrf"]
    with pytest.raises(InputError, match=r"t\.csv: column output, row 3: the text is empty"):
        evaluate_table(path, tmp_path / "stopped", names, block_rows=block_rows)
    whole = evaluate(rows, names, n_boot=20, empty=empty)
    found = evaluate_table(
        path, tmp_path / "run", names, n_boot=20, empty=empty, block_rows=block_rows
    )
    pd.testing.assert_frame_equal(found.per_pair, whole.per_pair, check_dtype=False)
    pd.testing.assert_frame_equal(found.summary(), whole.summary())
    assert found.notes().text.tolist() == whole.notes().text.tolist()
    assert "rows 3, 4, 20 (5, 6, 22 in a spreadsheet)" in found.notes().text[0]
    again = evaluate_table(path, tmp_path / "run", names, n_boot=20, empty=empty)
    assert again.notes().equals(found.notes())


def test_repeated_and_cut_rows_are_told_with_their_places_in_the_file(tmp_path):
    from tests.test_tone import save_tiny_classifier
    from tsteval.style import StyleClassifier

    save_tiny_classifier(tmp_path / "tiny", ["subjective", "neutral"])
    tiny = StyleClassifier.load(tmp_path / "tiny")
    rows = [*ROWS, ROWS[2]]
    rows[7] = rows[7] | {"output": "the mill was built " * tiny.max_tokens}
    with pytest.warns(UserWarning):
        whole = evaluate(rows, ["sti"], n_boot=5, classifier=tiny)
        found = evaluate_table(
            written(tmp_path, rows),
            tmp_path / "run",
            ["sti"],
            n_boot=5,
            classifier=tiny,
            block_rows=4,
        )
    texts = [text for text in whole.notes().text if "cut at" in text or "word for word" in text]
    assert len(texts) == 2 and [text for text in found.notes().text if text in texts] == texts
    assert "row 7 (9 in a spreadsheet)" in texts[0] and "row 24 (26 in a spreadsheet)" in texts[1]
    said = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert [note["text"] for note in said["notes"] if note["text"] in texts] == texts


def test_several_files_are_told_apart(tmp_path):
    (tmp_path / "in").mkdir()
    for name, place in (("a.csv", 1), ("b.csv", 2)):
        written(
            tmp_path / "in",
            [row | {"output": ""} if n == place else row for n, row in enumerate(ROWS)],
            name,
        )
    found = evaluate_table(
        tmp_path / "in", tmp_path / "run", [length()], n_boot=5, empty="skip", block_rows=7
    )
    note = found.notes().iloc[0]
    assert "a.csv, row 1 (3 in a spreadsheet); b.csv, row 2 (4 in a spreadsheet)" in note.text
    assert note.figures["rows"] == {"a.csv": [1], "b.csv": [2]} and note.figures["n"] == {"one": 2}


def test_a_table_of_nothing_but_empty_outputs_is_an_error(tmp_path):
    path = written(tmp_path, [row | {"output": ""} for row in ROWS])
    with pytest.raises(InputError, match="every output is empty"):
        evaluate_table(path, tmp_path / "run", [length()], empty="skip")


class Seen(list):
    """A list that grows while a metric is used, and is no part of what the metric does."""

    tag = "seen"


seen = Seen()


def score_and_tell(table, models):
    seen.extend(table.output)
    return Scores(pd.DataFrame({"length": table.output.map(len)}))


def test_a_run_with_a_cache_finds_what_evaluate_kept(tmp_path):
    metric = metric_of(score_and_tell, by_row=True, version="1")
    whole = evaluate(ROWS, [metric], n_boot=5, score_cache=tmp_path / "c")
    seen.clear()
    found = evaluate_table(
        written(tmp_path),
        tmp_path / "run",
        [metric],
        n_boot=5,
        score_cache=tmp_path / "c",
        block_rows=6,
    )
    assert len(seen) == 0
    assert found.per_pair.length.tolist() == whole.per_pair.length.tolist()
    with pytest.raises(InputError, match="score_cache must not be set with engine='ray'"):
        evaluate_table(
            tmp_path / "t.csv", tmp_path / "ray", [metric], engine="ray", score_cache=tmp_path / "c"
        )


class Bar:
    """What tqdm shows, as numbers."""

    made: typing.ClassVar[list] = []

    def __init__(self, total, initial=0, **options):
        self.total = total
        self.n = initial
        self.seen = [initial]

    def __enter__(self):
        return Bar.made.append(self) or self

    def __exit__(self, *_):
        pass

    def update(self, n):
        self.n += n
        self.seen.append(self.n)


def test_one_bar_moves_inside_a_block_and_ends_with_the_rows(tmp_path, monkeypatch):
    from tsteval.runs import scoring

    monkeypatch.setattr("tqdm.auto.tqdm", Bar)
    monkeypatch.setattr(scoring, "_PIECE", 4)
    Bar.made.clear()
    evaluate_table(
        written(tmp_path), tmp_path / "run", [length()], n_boot=5, block_rows=12, progress=True
    )
    assert (
        len(Bar.made) == 1
        and sorted(set(Bar.made[0].seen)) == [0, 4, 8, 12, 16, 20, 24]
        and Bar.made[0].total == 24
    )
    evaluate_table(tmp_path / "t.csv", tmp_path / "run", [length()], n_boot=5, progress=True)
    assert Bar.made[1].seen == [24]


def test_only_what_is_missing_is_scored_again(tmp_path, monkeypatch):
    scored = []
    call = batches.BatchScorer.__call__
    monkeypatch.setattr(
        batches.BatchScorer, "__call__", lambda self, n: (scored.append(n), call(self, n))
    )
    path = written(tmp_path)
    for _ in range(2):
        found = evaluate_table(path, tmp_path / "run", [length()], block_rows=7, n_boot=5)
        assert found.summary().n.tolist() == [12, 12] and np.isfinite(found.summary().length).all()
        (tmp_path / "run" / "parts" / "part-000002.parquet").unlink()
    assert scored == [0, 1, 2, 3, 2]


def test_a_skipped_row_leaves_the_others_their_places(tmp_path):
    rows = [row | {"output": ""} if place in (5, 6) else row for place, row in enumerate(ROWS)]
    path = written(tmp_path, rows)
    found = evaluate_table(
        path, tmp_path / "run", [length()], block_rows=4, n_boot=5, on_error="skip"
    )
    assert found.skipped.row.tolist() == [5, 6] and set(found.skipped.file) == {"t.csv"}
    assert found.run.records[1]["places"] == [[4, 5], [7, 8]]


def test_what_a_metric_notes_as_it_scores_is_kept(tmp_path):
    noted = metric_of(
        lambda rows, models: Scores(
            {"length": rows.output.map(len)}, notes=(Note("by hand", True, {"n": 1}),)
        ),
        by_row=True,
        version="1",
    )
    with pytest.warns(UserWarning, match="by hand"):
        whole = evaluate(ROWS, [noted], n_boot=5)
    with pytest.warns(UserWarning, match="by hand"):
        found = evaluate_table(written(tmp_path), tmp_path / "run", [noted], block_rows=5, n_boot=5)
    assert found.notes().to_dict("records") == whole.notes().to_dict("records")
