"""A run in a folder: begun, gone on with, refused if something changed, and told of as `evaluate` tells."""

import json
import typing

import numpy as np
import pandas as pd
import pytest

from tests.own_metrics import metric_of
from tsteval.core.checks import InputError
from tsteval.core.metric import Scores
from tsteval.evaluation import evaluate
from tsteval.runs import run as run_module
from tsteval.runs.parts import BlockScores
from tsteval.runs.run import (
    _describe_run,
    _open_run,
    _stored_table,
    _what_changed,
    read_manifest,
    run_folder,
    score_table,
)
from tsteval.runs.settings import Settings
from tsteval.runs.worker import RunPlan, ScoreBlock
from tsteval.scale import evaluate_table
from tsteval.tables.blocks import index_table

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


def described(**change):
    return {
        "input": {"sha256": "a" * 64},
        "metrics": {"m": "m@1"},
        "options": {},
        "models": {"style": None},
        "target_style": "neutral",
        "empty": "fail",
        "untold": [],
        "versions": {"tsteval": "1"},
    } | change


@pytest.mark.parametrize(
    "change, said",
    [
        ({}, None),
        ({"input": {"sha256": "b" * 64}}, "the input changed since"),
        ({"metrics": {"n": "m@1"}}, "the metrics changed since: m, now n"),
        ({"metrics": {"m": "m@2"}}, "the options or the version of m changed since"),
        ({"models": {"style": "x"}}, "the model for style changed since: the default, now x"),
        ({"target_style": "formal"}, "target_style changed since: neutral, now formal"),
        (
            {"untold": ["m"]},
            "m may have changed since: its class, or a function among its options, declares no version",
        ),
        ({"empty": "skip"}, "empty changed since: fail, now skip"),
        ({"versions": {"tsteval": "2"}}, "version 1, now 2"),
        ({"versions": {"tsteval": "1", "numpy": "9"}}, None),
    ],
)
def test_the_first_thing_that_changed_is_named(change, said):
    found = _what_changed(described(), described(**change))
    assert found is said if said is None else said in found
    older = described()
    del older["empty"]
    assert _what_changed(older, described()) is None


def test_a_folder_is_begun_gone_on_with_or_refused(tmp_path):
    index = index_table(written(tmp_path), 5)
    description = _describe_run(index, RunPlan("", "", (length(),), Settings()), {"tsteval": "1"})
    (tmp_path / "run").mkdir()
    begun = _open_run(tmp_path / "run", description, 5)
    assert read_manifest(tmp_path / "run")["description"] == json.loads(json.dumps(description))
    (begun.parts / "part-000000.json").write_text("{}")
    assert _open_run(tmp_path / "run", description, 9).manifest["block_rows"] == 5
    with pytest.raises(InputError, match="target_style changed"):
        _open_run(tmp_path / "run", description | {"target_style": "x"}, 5)
    (tmp_path / "run" / "manifest.json").unlink()
    with pytest.raises(InputError, match="missing or damaged"):
        _open_run(tmp_path / "run", description, 5)
    assert not list(_open_run(tmp_path / "run", description, 5, restart=True).parts.iterdir())


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
        _stored_table(ROWS, tmp_path, 5)


@pytest.mark.parametrize("block_rows", [1, 5, 100])
@pytest.mark.parametrize("empty", ["skip", "zero"])
def test_outputs_without_a_text_are_what_they_are_in_evaluate(tmp_path, block_rows, empty):
    rows = [row | {"output": ""} if place in (3, 4, 20) else row for place, row in enumerate(ROWS)]
    path = written(tmp_path, rows)
    names = ["bleu", "rouge", length()]
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

    monkeypatch.setattr(run_module, "tqdm", Bar)
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


def test_the_engine_is_handed_only_what_is_missing(tmp_path):
    asked = []

    def engine(plan, blocks, tick):
        asked.append([block.number for block in blocks])
        return map(ScoreBlock(plan), blocks)

    path = written(tmp_path)
    for _ in range(2):
        with run_folder(tmp_path / "run") as folder:
            found = BlockScores(
                score_table(path, folder, [length()], engine, Settings(block_rows=7)), n_boot=5
            )
        assert found.summary().n.tolist() == [12, 12] and np.isfinite(found.summary().length).all()
        for file in found.run.parts.glob("part-000002.*"):
            file.unlink()
    assert asked == [[0, 1, 2, 3], [2]]
