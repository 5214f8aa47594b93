"""Parts: there completely or not at all, trusted only if nothing in them changed, and added up in any order."""

import errno
import os
import random
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tsteval.runs.parts import (
    Run,
    SourceHash,
    as_npy,
    as_parquet,
    part_name,
    read_rows_of,
    sealed,
    unsealed,
    write_part,
)


def test_the_hash_of_sources_does_not_depend_on_the_cuts():
    texts = [str(number % 7) for number in range(40)]
    generator = random.Random(0)
    for _ in range(20):
        cut = generator.randrange(41)
        assert SourceHash.of(texts[:cut]) + SourceHash.of(texts[cut:]) == SourceHash.of(texts)
    assert SourceHash.of(["ab", "c"]) != SourceHash.of(["a", "bc"]) != SourceHash.of(["bc", "a"])


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"record": 1}',
        b'{"record": 1, "sha256": "0"}',
        b"\xff",
        b"[" * 100_000,
    ],
)
def test_a_damaged_record_is_none(tmp_path, content):
    (tmp_path / "r").write_bytes(content)
    assert unsealed(tmp_path / "r") is None and unsealed(tmp_path / "missing") is None


def test_a_record_comes_back_and_any_other_byte_of_it_is_noticed(tmp_path):
    record = {"n": 4, "systems": {"a \u00e4 \ud800": [1.5, None]}}
    data = sealed(record)
    write_part(tmp_path / "r", data)
    assert unsealed(tmp_path / "r") == record
    place = data.index(b"1.5")
    (tmp_path / "r").write_bytes(data[:place] + b"2.5" + data[place + 3 :])
    assert unsealed(tmp_path / "r") is None


def test_rows_and_numbers_come_back_as_they_were(tmp_path):
    frame = pd.DataFrame(
        {"output": ["a", "\u8a9e"], "references": [("x", "y"), ()], "score": [0.1, np.nan]}
    )
    (tmp_path / "rows").write_bytes(as_parquet(frame))
    pd.testing.assert_frame_equal(read_rows_of(tmp_path / "rows"), frame)
    assert list(read_rows_of(tmp_path / "rows", ["output"])) == ["output"]
    statistics = np.random.default_rng(0).normal(size=(3, 5))
    (tmp_path / "numbers").write_bytes(as_npy(np.array([0, 1, 1, 0, 2]), statistics))
    kept = np.load(tmp_path / "numbers")
    assert kept[0].tolist() == [0, 1, 1, 0, 2] and (kept[1:] == statistics).all()


def test_a_run_trusts_a_part_only_if_record_and_files_are_its_own(tmp_path):
    run = Run(
        tmp_path,
        {"description": {"input": {}, "versions": {"numpy": "1"}}, "block_rows": 5, "basis": None},
    )
    run.parts.mkdir()

    def written(**change):
        files = {"parquet": write_part(run.parts / part_name(3, "parquet"), b"rows")}
        write_part(
            run.parts / part_name(3, "json"),
            sealed({"run": run.name, "number": 3, "files": files} | change),
        )

    written()
    assert run.read(3)["number"] == 3 and run.read(4) is None
    for change in ({"run": "another"}, {"number": 4}):
        written(**change)
        assert run.read(3) is None
    written()
    (run.parts / part_name(3, "parquet")).write_bytes(b"row")
    assert run.read(3) is None
    (run.parts / part_name(3, "parquet")).unlink()
    assert run.read(3) is None


def test_a_part_that_cannot_be_written_names_its_file_and_leaves_nothing(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="cannot be written: No space left") as error:
        write_part(tmp_path / "part-000001.npy", b"x")
    assert error.value.filename == str(tmp_path / "part-000001.npy") and not list(
        tmp_path.iterdir()
    )
    with pytest.raises(OSError, match="cannot be written"):
        write_part(Path(tempfile.gettempdir()) / "no" / "x", b"")
