"""The one store of scores: cache and resume at once. A file of SQLite keeps each row's numbers under a checksum of all that they follow from"""

import hashlib
import json
import os
import sqlite3
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from ..core.checks import InputError, InputTypeError
from ..core.metric import Metric, Scores
from ..models.base import UNREAD

_DAMAGED = "an entry is damaged; delete the file, and the scores will be made anew"
# a damaged file may hold words that are no text, or ask for more memory than there is
_TROUBLE = (sqlite3.Error, UnicodeDecodeError, MemoryError)


def _packed(numbers: np.ndarray) -> bytes:
    data = np.ascontiguousarray(numbers, dtype="<f8").tobytes()
    return data + zlib.crc32(data).to_bytes(4, "big")


def _unpacked(entry: bytes) -> np.ndarray:
    data = entry[:-4]
    checksum = entry[-4:]
    whole = isinstance(entry, bytes) and len(data) % 8 == 0
    if not whole or zlib.crc32(data).to_bytes(4, "big") != checksum:
        raise ValueError("another checksum")
    return np.frombuffer(data, dtype="<f8")


class Store:
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
            for setting in ("journal_mode=WAL", "synchronous=NORMAL"):
                self._base.execute(f"PRAGMA {setting}")
            self._base.execute(
                "CREATE TABLE IF NOT EXISTS numbers "
                "(key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID"
            )
            self._base.execute(
                "CREATE TABLE IF NOT EXISTS layouts "
                "(signature TEXT PRIMARY KEY, layout TEXT NOT NULL) WITHOUT ROWID"
            )
            os.chmod(self.path, 0o600)
        except (*_TROUBLE, OSError) as error:
            raise InputError(
                f"cache {self.path}: cannot be used as a cache of scores ({error}); name another file, "
                f"or delete this one"
            ) from error

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def get(
        self,
        keys: Iterable[bytes],
        width: int,  # how many numbers an entry has
    ) -> dict[bytes, np.ndarray]:  # key -> (width,) numbers, for those that are there
        """The entries that are there. Raises: InputError for a damaged one."""
        entries = {}
        for key in keys:
            try:
                row = self._base.execute(
                    "SELECT value FROM numbers WHERE key = ?", (key,)
                ).fetchone()
                if row:
                    entries[key] = _unpacked(row[0])
                    if len(entries[key]) != width:
                        raise ValueError("another width")
            except (*_TROUBLE, ValueError, TypeError) as error:
                raise InputError(f"cache {self.path}: {_DAMAGED}") from error
        return entries

    def put(
        self,
        entries: Mapping[bytes, np.ndarray],  # key -> numbers
    ) -> None:
        """Write entries, all of them or none. Raises: InputError if they cannot be written."""
        rows = [(key, _packed(numbers)) for key, numbers in entries.items()]
        self._write("INSERT OR IGNORE INTO numbers VALUES (?, ?)", rows)

    def _write(self, statement: str, rows: list[tuple]) -> None:
        try:
            self._base.execute("BEGIN IMMEDIATE")
            self._base.executemany(statement, rows)
            self._base.execute("COMMIT")
        except _TROUBLE as error:
            raise InputError(
                f"cache {self.path}: cannot be written ({error}); make room, or name another file"
            ) from error

    def layout(self, signature: str) -> "Layout | None":
        """Which numbers an entry with this signature holds; None: there is none yet. Raises: InputError for a damaged
        one."""
        try:
            row = self._base.execute(
                "SELECT layout FROM layouts WHERE signature = ?", (signature,)
            ).fetchone()
            return Layout(*json.loads(row[0])) if row else None
        except (*_TROUBLE, ValueError, TypeError) as error:
            raise InputError(f"cache {self.path}: {_DAMAGED}") from error

    def keep_layout(self, signature: str, layout: "Layout") -> None:
        """Write down which numbers an entry with this signature holds."""
        row = (signature, json.dumps([layout.names, layout.sums]))
        self._write("INSERT OR IGNORE INTO layouts VALUES (?, ?)", [row])

    def __len__(self) -> int:
        return self._base.execute("SELECT count(*) FROM numbers").fetchone()[0]

    def close(self) -> None:
        """Let go of the file."""
        self._base.close()


class Layout:
    """The numbers of one row side by side: its columns, its sums, and what its model did not read of its texts."""

    def __init__(
        self,
        names: Iterable[str],  # of the columns
        sums: int | None,  # how many sums a row has; None: its metric has none
    ):
        self.names = list(names)
        self.sums = sums

    @classmethod
    def of(cls, metric: Metric, scores: Scores) -> "Layout":
        """The layout of scores that were made."""
        frame = scores.frame
        numeric = [name for name in frame if pd.api.types.is_numeric_dtype(frame[name])]
        sums = None if scores.sums is None else scores.sums.shape[1]
        return cls(dict.fromkeys([*metric.columns, *numeric]), sums)

    @property
    def width(self) -> int:
        """How many numbers a row has."""
        return len(self.names) + (self.sums or 0) + len(UNREAD)

    def numbers(
        self,
        scores: Scores,  # of N rows
        unread: np.ndarray,  # (N, 2) tokens at which a row's text was cut, and its unknown tokens; 0: none
    ) -> np.ndarray:  # (N, width)
        """The scores as numbers. Raises: InputTypeError for a column of the metric that holds something else."""
        try:
            columns = [scores.frame[name].to_numpy(dtype=float) for name in self.names]
        except (TypeError, ValueError) as error:
            raise InputTypeError(
                f"a cache of scores holds numbers ({error}); leave the cache out, or let the metric "
                f"have no version"
            ) from error
        parts = [np.array(columns).T, unread]
        if self.sums is not None:
            parts.insert(1, scores.sums)
        return np.concatenate(parts, axis=1)

    def scores(
        self,
        numbers: np.ndarray,  # (N, width)
    ) -> tuple[Scores, np.ndarray]:  # the scores, and what was not read
        """The numbers as scores."""
        last = len(self.names)
        frame = pd.DataFrame(numbers[:, :last], columns=self.names)
        sums = None if self.sums is None else numbers[:, last : last + self.sums]
        return Scores(frame, sums), numbers[:, -len(UNREAD) :]


def row_keys(
    signature: str,  # of the metric with its models
    rows: pd.DataFrame,  # N rows with the columns that the metric needs
) -> list[bytes]:  # (N,)
    """What the rows are found by."""
    base = json.dumps([signature, list(rows)]).encode()
    cells = zip(*(rows[name] for name in rows))
    return [hashlib.sha256(base + json.dumps(row).encode()).digest() for row in cells]
