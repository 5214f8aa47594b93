"""Parts: there completely or not at all, trusted only if nothing in them changed."""

import errno
import os
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.own_metrics import Length
from tsteval.bleu import Bleu
from tsteval.core.checks import InputError
from tsteval.runs.parts import Parts, read_all, write_file, write_part

ROWS = pd.DataFrame(
    {
        "system": ["one", "two"],
        "output": ["a", "\u8a9e"],
        "references": [("x", "y"), ()],
        "bleu": [0.1, np.nan],
        "length": [1.0, 2.0],
    }
)
SUMS = {"bleu": np.arange(20.0).reshape(2, 10), "length": None}


def written(folder, number=3, rows=ROWS):
    parts = Parts(folder)
    write_part(parts.path(number), rows, SUMS, {"made_from": {"input": "x \ud800"}})
    return parts


def test_rows_and_sums_come_back_as_they_were(tmp_path):
    parts = written(tmp_path)
    assert parts.numbers() == [3]
    part = parts.read(3, metrics=[Bleu(), Length()])
    pd.testing.assert_frame_equal(part.rows, ROWS)
    assert (part.sums["bleu"] == SUMS["bleu"]).all() and "length" not in part.sums
    assert list(parts.read(3, ["output"]).rows) == ["output"] and not parts.read(3).sums
    statistics = part.statistics([Bleu(), Length()])
    assert (statistics == np.column_stack([SUMS["bleu"], [1, 2], [1, 1]])).all()
    assert (part.only([1]).statistics([Bleu()]) == SUMS["bleu"][1:]).all()


def test_parts_are_read_in_the_order_of_their_numbers(tmp_path):
    for number in (10, 2):
        written(tmp_path, number)
    records = {number: {} for number in (10, 2)}
    assert [part.number for part in read_all(Parts(tmp_path), records)] == [2, 10]


def test_a_record_is_read_only_from_a_part_that_is_whole(tmp_path):
    parts = written(tmp_path)
    record = {"made_from": {"input": "x \ud800"}}
    assert parts.record(3) == parts.record(3, True) == record and parts.record(4) is None
    sound = parts.path(3).read_bytes()
    for damaged in (b"", b"PAR1", sound[:-1], sound[:30] + bytes([sound[30] ^ 1]) + sound[31:]):
        parts.path(3).write_bytes(damaged)
        assert parts.record(3, True) is None
    ROWS[["output"]].to_parquet(parts.path(3))
    with pytest.raises(InputError, match="is no part of a run of this version"):
        parts.record(3)


def test_what_is_cleared(tmp_path):
    parts = written(tmp_path, 1)
    written(tmp_path, 2)
    for name in (".part-000004.parquet-x", "part-000001.npy", "mine.parquet"):
        (tmp_path / name).touch()
    parts.clear(finished=[2])
    assert {file.name for file in tmp_path.iterdir()} == {"part-000002.parquet", "mine.parquet"}


def test_a_part_that_cannot_be_written_names_its_file_and_leaves_nothing(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    path = Parts(tmp_path).path(1)
    with pytest.raises(OSError, match="cannot be written: No space left") as error:
        write_part(path, ROWS, SUMS, {})
    assert error.value.filename == str(path) and not list(tmp_path.iterdir())
    with pytest.raises(OSError, match="cannot be written"):
        write_file(Path(tempfile.gettempdir()) / "no" / "x", b"")
