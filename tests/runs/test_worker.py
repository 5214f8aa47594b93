"""A worker: what is wrong with a block is found, placed and said; what is right is scored as `evaluate` scores it."""

import json
import pickle

import numpy as np
import pandas as pd
import pytest

from tests.own_metrics import metric_of
from tsteval.core.checks import InputError
from tsteval.core.metric import Scores
from tsteval.runs import worker
from tsteval.runs.parts import part_name, read_rows_of
from tsteval.runs.scoring import Scored
from tsteval.runs.settings import Settings
from tsteval.runs.worker import RunPlan, ScoreBlock, find_basis, plan_models
from tsteval.tables.blocks import index_table
from tsteval.tables.data_check import take_rows


def lengths(refuses=lambda text: False, told=True):
    def score(table, models):
        if bad := [row for row, text in enumerate(table.output) if refuses(text)]:
            raise (
                InputError("refused", column="output", row=bad[0])
                if told
                else InputError("refused")
            )
        return Scores(pd.DataFrame({"length": table.output.map(len).astype(float)}))

    return metric_of(score, by_row=True)


def plan(folder, metric, **settings):
    (folder / "parts").mkdir()
    return RunPlan(str(folder / "parts"), "run", (metric,), Settings(**settings))


def written(folder, outputs):
    pd.DataFrame({"source": [f"s{n}" for n in range(len(outputs))], "output": outputs}).to_csv(
        folder / "t.csv", index=False
    )
    return index_table(folder / "t.csv", 4).blocks


@pytest.mark.parametrize("told", [True, False])
def test_every_poisoned_row_is_found_whether_it_is_named_or_not(told):
    generator = np.random.default_rng(3)
    for _ in range(20):
        bad = generator.random(23) < generator.random()
        taken = take_rows(
            [{"source": "s", "output": "z" if one else "a" * (n + 1)} for n, one in enumerate(bad)]
        )
        metric = lengths(lambda text: text == "z", told)

        def score(rows, metric=metric):
            return Scored({"length": metric.score(rows.table, None)}, {})

        scored, kept, refused = worker._score_rows(taken, score)
        assert (
            sorted(refused) == np.flatnonzero(bad).tolist()
            and kept.places.tolist() == np.flatnonzero(~bad).tolist()
        )
        assert scored.scores["length"].frame.length.tolist() == (np.flatnonzero(~bad) + 1).tolist()


def test_rows_that_are_refused_only_together_are_an_error():
    def score(taken):
        if len(taken.table) > 1:
            raise InputError("too many")
        return Scored({"length": Scores(pd.DataFrame({"length": [1.0]}))}, {})

    with pytest.raises(InputError, match="too many"):
        worker._score_rows(take_rows([{"source": "s", "output": "a"}] * 3), score)


@pytest.mark.parametrize(
    "told, said", [(True, "t.csv: column output, row 6: refused"), (False, "t.csv: refused")]
)
def test_a_row_that_is_refused_is_placed_in_the_file(tmp_path, told, said):
    blocks = written(tmp_path, ["a", "b", "c", "d", "e", "f", "zz", "h"])
    outcome = ScoreBlock(plan(tmp_path, lengths(lambda text: text == "zz", told)))(blocks[1])
    trouble = outcome.trouble
    assert trouble.kind == "input" and str(InputError(trouble.message, **trouble.place)) == said
    assert pickle.loads(pickle.dumps(outcome)) == outcome and outcome.record is None


def test_a_skipped_row_leaves_the_others_their_places(tmp_path):
    blocks = written(tmp_path, ["a", "b", "c", "d", "ee", "zz", "", "hhh"])
    outcome = ScoreBlock(plan(tmp_path, lengths(lambda text: text == "zz"), on_error="skip"))(
        blocks[1]
    )
    record = outcome.record
    assert [entry[:2] for entry in record["skipped"]] == [["t.csv", 5], ["t.csv", 6]]
    assert record["places"] == [[4, 5], [7, 8]] and record["n"] == 2
    assert read_rows_of(tmp_path / "parts" / part_name(1, "parquet")).length.tolist() == [2, 3]


@pytest.mark.parametrize(
    "empty, lengths_of, places", [("skip", [2, 3], [[4, 6]]), ("zero", [2, 3, 0, 0], [[4, 8]])]
)
def test_outputs_without_a_text_are_recorded_with_their_places(tmp_path, empty, lengths_of, places):
    blocks = written(tmp_path, ["a", "b", "c", "d", "ee", "fff", "", " "])
    record = ScoreBlock(plan(tmp_path, lengths(), empty=empty))(blocks[1]).record
    assert record["empty"] == {"output": [6, 7]} and record["places"] == places
    assert read_rows_of(tmp_path / "parts" / part_name(1, "parquet")).length.tolist() == lengths_of


@pytest.mark.parametrize("empty", ["skip", "zero"])
def test_a_block_of_nothing_but_empty_outputs_is_a_part_too(tmp_path, empty):
    blocks = written(tmp_path, ["a", "b", "c", "d", "", "", "", ""])
    record = ScoreBlock(plan(tmp_path, lengths(), empty=empty))(blocks[1]).record
    assert record["n"] == (0 if empty == "skip" else 4) and record["empty"] == {
        "output": [4, 5, 6, 7]
    }


def test_a_worker_tells_of_rows_while_it_scores_and_its_record_is_json(tmp_path):
    ticks = []
    blocks = written(tmp_path, ["a", "b", "c", "d"])
    record = ScoreBlock(plan(tmp_path, lengths()), ticks.append)(blocks[0]).record
    assert ticks == [4] and json.loads(json.dumps(record)) == record


def test_the_basis_is_what_metrics_say_of_no_rows(tmp_path):
    made = plan(tmp_path, lengths())
    basis = find_basis(made, plan_models(made))["length"]
    assert basis.signature == lengths().signature
    assert basis.width == 0
    assert plan_models(made).remember == worker._REMEMBER


def test_places_are_kept_as_ranges():
    for places in ([], [3], [0, 1, 2], [0, 2, 3, 7, 8, 9], [5, 9]):
        ranges = worker._ranges(np.array(places, dtype=int))
        assert [row for first, last in ranges for row in range(first, last)] == places
