"""Numbers of rows kept on disk, so that a run that was stopped goes on"""

import hashlib
import json
import os
import sqlite3
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..core.checks import InputError, InputTypeError
from ..core.metric import Metric, Scores, describable, describe_setting

_DAMAGED = "an entry is damaged; delete the file, and the scores will be made anew"
# a damaged file may hold words that are no text, or ask for more memory than there is
_TROUBLE = (sqlite3.Error, UnicodeDecodeError, MemoryError)


def _packed(numbers: np.ndarray) -> bytes:
    data = np.ascontiguousarray(numbers, dtype="<f8").tobytes()
    return data + zlib.crc32(data).to_bytes(4, "big")


def _unpacked(entry: bytes) -> np.ndarray:
    data = entry[:-4]
    sum_ = entry[-4:]
    if not isinstance(entry, bytes) or len(data) % 8 or zlib.crc32(data).to_bytes(4, "big") != sum_:
        raise ValueError("another checksum")
    return np.frombuffer(data, dtype="<f8")


class RowStore:
    """Numbers by key in one file of SQLite, safe for several processes on one machine."""

    def __init__(
        self,
        path: Path | str,  # of the file; it is made if it is not there, in an existing folder
    ):
        self.path = Path(path)
        if not self.path.parent.is_dir() or self.path.is_dir():
            raise InputError(f"cache {self.path}: name a file in a folder that exists")
        try:
            self._base = sqlite3.connect(self.path, timeout=120, isolation_level=None)
            for word in ("journal_mode=WAL", "synchronous=NORMAL"):
                self._base.execute(f"PRAGMA {word}")
            self._base.execute(
                "CREATE TABLE IF NOT EXISTS numbers (key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT "
                "ROWID"
            )
            os.chmod(self.path, 0o600)
        except (*_TROUBLE, OSError) as error:
            raise InputError(
                f"cache {self.path}: cannot be used as a cache of scores ({error}); name another file, "
                f"or delete this one"
            ) from error

    def get(
        self,
        keys: Iterable[bytes],
        width: int,  # how many numbers an entry has
    ) -> dict[bytes, np.ndarray]:  # key -> (width,) numbers, for those that are there
        """What is known. Raises: InputError for a damaged entry."""
        found = {}
        for key in keys:
            try:
                if row := self._base.execute(
                    "SELECT value FROM numbers WHERE key = ?", (key,)
                ).fetchone():
                    found[key] = _unpacked(row[0])
                    if len(found[key]) != width:
                        raise ValueError("another width")
            except (*_TROUBLE, ValueError, TypeError) as error:
                raise InputError(f"cache {self.path}: {_DAMAGED}") from error
        return found

    def put(
        self,
        entries: Mapping[bytes, np.ndarray],  # key -> numbers
    ) -> None:
        """Write entries, all of them or none. Raises: InputError if they cannot be written."""
        try:
            self._base.execute("BEGIN IMMEDIATE")
            self._base.executemany(
                "INSERT OR IGNORE INTO numbers VALUES (?, ?)",
                [(key, _packed(numbers)) for key, numbers in entries.items()],
            )
            self._base.execute("COMMIT")
        except _TROUBLE as error:
            raise InputError(
                f"cache {self.path}: cannot be written ({error}); make room, or name another file"
            ) from error

    def __len__(self) -> int:
        return self._base.execute("SELECT count(*) FROM numbers").fetchone()[0]

    def close(self) -> None:
        """Let go of the file."""
        self._base.close()


def stands_alone(
    metric: Metric,
    options: Mapping[str, Any],
) -> bool:
    """Whether a row's scores follow from that row alone, so that a table may be scored in pieces."""
    return bool(metric.by_row(**options) if callable(metric.by_row) else metric.by_row)


def may_be_kept(
    metric: Metric,
    options: Mapping[str, Any],
) -> bool:
    """Whether a row's scores may be found again later: they stand alone, all that makes them can be described, and the
    metric does not keep them itself."""
    return (
        stands_alone(metric, options)
        and not metric.own_store
        and all(map(describable, [metric.score, *options.values()]))
    )


def check_by_row(
    metrics: Iterable[Metric],
    options: Mapping[str, Mapping[str, Any]],  # metric -> its options
) -> None:
    """Raise an InputError unless every metric scores a row from that row alone."""
    for metric in metrics:
        if not stands_alone(metric, options[metric.name]):
            raise InputError(
                f"{metric.name} does not promise that a row's score follows from that row alone "
                f"(by_row), so it cannot be made block by block; "
                "leave it out, choose other options for it, or score the whole table with evaluate"
            )


class KeptRows:
    """The rows of one metric in a store: their keys, and their scores as numbers and back."""

    def __init__(
        self,
        metric: Metric,
        options: Mapping[str, Any],
        bare: Scores,  # what it says of no rows: its weights and options are in the signature
        example: Scores,  # what it says of some rows: which numbers there are
    ):
        numeric = [
            name for name in example.frame if pd.api.types.is_numeric_dtype(example.frame[name])
        ]
        self.names = list(dict.fromkeys([*metric.columns, *numeric]))
        self.sums = None if example.statistics is None else example.statistics.shape[1]
        settings = {name: describe_setting(value) for name, value in sorted(options.items())}
        self._base = json.dumps(
            [
                metric.name,
                bare.signature,
                bare.row_signature,
                describe_setting(metric.score),
                settings,
                self.names,
                self.sums,
            ]
        ).encode()
        self._needs = {*metric.needs, *metric.needed(options)}

    @property
    def width(self) -> int:
        """How many numbers a row has: its columns, its statistics, and the tokens at which one of its texts was cut."""
        return len(self.names) + (self.sums or 0) + 1

    def keys(
        self,
        table: pd.DataFrame,  # N rows of the checked table
    ) -> list[bytes]:  # (N,)
        """What the rows are found by."""
        cells = zip(*(table[name] for name in table if name in self._needs))
        return [hashlib.sha256(self._base + json.dumps(row).encode()).digest() for row in cells]

    def numbers(
        self,
        scores: Scores,  # of N rows
        cut: np.ndarray,  # (N,) tokens at which a row's text was cut; 0: it was not
    ) -> np.ndarray:  # (N, width)
        """The scores as numbers. Raises: InputTypeError for a column of the metric that holds something else."""
        try:
            columns = [scores.frame[name].to_numpy(dtype=float) for name in self.names]
        except (TypeError, ValueError) as error:
            raise InputTypeError(
                f"a cache of scores holds numbers ({error}); leave the cache out, or let the metric "
                f"say by_row=False"
            ) from error
        parts = [np.array(columns).T, cut[:, None]]
        if self.sums is not None:
            parts.insert(1, scores.statistics)
        return np.concatenate(parts, axis=1)

    def scores(
        self,
        numbers: np.ndarray,  # (N, width)
    ) -> tuple[
        pd.DataFrame, np.ndarray | None, np.ndarray
    ]:  # the columns, the statistics, and where texts were cut
        """The numbers as scores."""
        last = len(self.names)
        frame = pd.DataFrame(numbers[:, :last], columns=self.names)
        return (
            frame,
            None if self.sums is None else numbers[:, last : last + self.sums],
            numbers[:, -1],
        )
