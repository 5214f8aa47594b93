"""Blocks that were scored, kept as parts that are there completely or not at all, and added up"""

import hashlib
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..core.checks import InputError
from ..core.files import file_sha256, write_whole
from ..core.metric import Metric, Note, Scores
from ..core.resample import poisson_sums
from .results import SOURCE_KEY, Pairing, SystemScores

_PRIME = 2**521 - 1
_POINT = int.from_bytes(hashlib.sha512(b"the sources of a system").digest(), "big")


@dataclass(frozen=True)
class SourceHash:
    """A hash of a sequence of texts; that of a longer one is the sum of those of its pieces."""

    n: int = 0
    value: int = 0

    def __add__(self, other: "SourceHash") -> "SourceHash":
        return SourceHash(
            self.n + other.n, (self.value * pow(_POINT, other.n, _PRIME) + other.value) % _PRIME
        )

    @classmethod
    def of(cls, texts: Iterable[str]) -> "SourceHash":
        """The hash of some texts."""
        value = 0
        texts = list(texts)
        for text in texts:
            value = (
                value * _POINT
                + int.from_bytes(
                    hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest(), "big"
                )
            ) % _PRIME
        return cls(len(texts), value)


def part_name(
    number: int,
    kind: str,  # parquet | npy | json
) -> str:
    """What a file of a part is called."""
    return f"part-{number:06d}.{kind}"


def write_part(
    path: Path,  # in an existing folder
    data: bytes,
) -> str:  # its SHA-256
    """Write a file completely or not at all. Raises: OSError that names the file, and says that the run can go on."""
    try:
        write_whole(path, data)
    except OSError as error:
        raise OSError(
            error.errno,
            f"cannot be written: {error.strerror or error}; what is finished stays, and the "
            f"same call goes on",
            str(path),
        ) from error
    return hashlib.sha256(data).hexdigest()


def join_columns(
    metrics: Iterable[Metric],
    scores: Mapping[str, Scores],  # metric -> what it said of N rows
) -> np.ndarray:  # (S, N)
    """The statistics of all columns, one after the other."""
    return np.concatenate(
        [
            metric.summed(scores[metric.name], column)[0].T
            for metric in metrics
            for column in metric.columns
        ]
    )


def _seal(record: Any) -> str:
    return hashlib.sha256(json.dumps(record, ensure_ascii=True).encode()).hexdigest()


def sealed(
    record: Mapping[str, Any],
) -> bytes:
    """A record with its own checksum, as it is written."""
    return json.dumps(
        {"record": record, "sha256": _seal(record)}, ensure_ascii=True, indent=1
    ).encode()


def unsealed(
    path: Path,
) -> dict[str, Any] | None:
    """The record in a file; None if it is not there or damaged."""
    try:
        entry = json.loads(path.read_bytes())
        return entry["record"] if entry["sha256"] == _seal(entry["record"]) else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def as_parquet(
    frame: pd.DataFrame,  # rows with their scores
) -> bytes:
    """The rows as a Parquet file."""
    import pyarrow as pa
    from pyarrow import parquet

    buffer = io.BytesIO()
    table = pa.Table.from_pandas(
        frame.assign(references=frame.references.map(list)), preserve_index=False
    )
    parquet.write_table(table, buffer, compression="zstd")
    return buffer.getvalue()


def read_rows_of(
    path: Path,
    columns: list[str] | None = None,  # None: all
) -> pd.DataFrame:
    """The rows of a part."""
    part = pd.read_parquet(path, columns=columns)
    return (
        part.assign(references=[tuple(cell) for cell in part.references])
        if "references" in part
        else part
    )


def as_npy(
    which: np.ndarray,  # (N,) numbers of the rows' systems
    statistics: np.ndarray,  # (S, N)
) -> bytes:
    """The numbers that are added up, as a file of NumPy."""
    buffer = io.BytesIO()
    np.save(buffer, np.concatenate([which[None].astype(float), statistics]), allow_pickle=False)
    return buffer.getvalue()


@dataclass
class Run:
    """A folder in which a table is being scored."""

    folder: Path
    manifest: dict[
        str, Any
    ]  # description, block_rows, basis: metric -> its signatures without rows, once known
    records: dict[int, dict[str, Any]] = field(default_factory=dict)  # finished blocks

    @property
    def parts(self) -> Path:
        """Where the parts are."""
        return self.folder / "parts"

    @property
    def name(self) -> str:
        """What ties parts to this run."""
        material = {
            key: value for key, value in self.manifest["description"].items() if key != "versions"
        }
        return hashlib.sha256(
            json.dumps([material, self.manifest["block_rows"]], sort_keys=True).encode()
        ).hexdigest()[:16]

    def save(self) -> None:
        """Write the manifest. Raises: OSError."""
        write_part(self.folder / "manifest.json", sealed(self.manifest))

    def read(self, number: int) -> dict[str, Any] | None:
        """A part's record, if the part is there and nothing in it is damaged."""
        record = unsealed(self.parts / part_name(number, "json"))
        if record is None or record["run"] != self.name or record["number"] != number:
            return None
        try:
            whole = all(
                file_sha256(self.parts / part_name(number, kind)) == known
                for kind, known in record["files"].items()
            )
        except OSError:
            return None
        return record if whole else None


@dataclass(frozen=True)
class Basis:
    """What a metric says without any row: which weights and options it has, and how its sums become a score."""

    signature: str
    row_signature: str
    width: int  # of its sums; 0: it has none of its own


@dataclass(frozen=True)
class FinishedRun:
    """A run whose parts are all there, and what is known of the whole table."""

    run: Run
    metrics: list[Metric]
    basis: Mapping[str, Basis]  # metric -> what it says without any row
    facts: Mapping[str, tuple]  # metric -> signature of a system, signature of a row, headings
    notes: Mapping[str, tuple[Note, ...]]  # metric -> what has to be known about its scores
    data_notes: tuple[Note, ...] = ()  # on the rows, whatever the metrics say of them


EXACT_ROWS = 50_000  # up to here every interval is that of `evaluate`


class BlockScores(SystemScores):
    """What a finished run says of the systems."""

    def __init__(
        self,
        finished: FinishedRun,
        n_boot: int = 2000,  # bootstrap resamples
        seed: int = 0,  # of the bootstrap
        baseline: str
        | None = None,  # the system that reports compare the others with; None: the first
    ):
        self.run = finished.run
        self.metrics = finished.metrics
        self.data_notes = finished.data_notes
        self.n_boot = n_boot
        self.seed = seed
        self.baseline = baseline
        self._sums = {}
        self._totals = {}
        self._records = [self.run.records[number] for number in sorted(self.run.records)]
        self.scores = {metric.name: self._without_rows(metric, finished) for metric in self.metrics}
        self.models = {
            name: identity
            for record in self._records
            for name, identity in record["models"].items()
        }

    @staticmethod
    def _without_rows(metric: Metric, finished: FinishedRun) -> Scores:
        """All that a metric says of the table but its rows."""
        basis, (signature, row_signature, headings) = (
            finished.basis[metric.name],
            finished.facts[metric.name],
        )
        return Scores(
            pd.DataFrame({column: np.zeros(0) for column in metric.columns}),
            np.zeros((0, basis.width)) if basis.width else None,
            tuple(finished.notes.get(metric.name, ())),
            signature,
            row_signature,
            tuple(headings),
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.run.folder}, {self.n_outputs:,} outputs of {', '.join(self.systems)})"

    @property
    def systems(self) -> list[str]:
        """The systems in the order in which they first occur."""
        return list(dict.fromkeys(name for record in self._records for name in record["systems"]))

    @property
    def exact(self) -> bool:
        """Whether the intervals are those of `evaluate`."""
        return self.n_outputs <= EXACT_ROWS

    @property
    def n_outputs(self) -> int:
        """How many outputs were scored."""
        return sum(record["n"] for record in self._records)

    @property
    def per_pair(self) -> pd.DataFrame:
        """One row an output, in input order, as from `evaluate`; read from the parts each time."""
        return pd.concat(list(self.read_parts()), ignore_index=True)

    @property
    def skipped(self) -> pd.DataFrame:
        """The rows that were left out: file, row (in the file, counted from 0), reason."""
        return pd.DataFrame(
            [entry for record in self._records for entry in record["skipped"]],
            columns=["file", "row", "reason"],
        )

    @property
    def remarks(self) -> list[str]:
        """Sentences that a report should add to how the scores were made."""
        skipped = sum(len(record["skipped"]) for record in self._records)
        remarks = []
        if not self.exact:
            remarks.append(
                "The bootstrap is the Poisson bootstrap: each row is given a weight from a Poisson "
                "distribution of mean 1."
            )
        if skipped:
            told = "; ".join(
                f"{file} row {row}: {reason}"
                for file, row, reason in self.skipped.head(10).itertuples(index=False)
            )
            remarks.append(
                f"{skipped:,} row{' of the input was' if skipped == 1 else 's of the input were'} refused "
                f"and left out (counted from 0{', the first ten' if skipped > 10 else ''}: {told})."
            )
        return remarks

    def read_parts(
        self,
        columns: list[str] | None = None,  # None: all
    ) -> Iterator[pd.DataFrame]:
        """The rows, part by part, in input order."""
        for record in self._records:
            yield read_rows_of(self.run.parts / part_name(record["number"], "parquet"), columns)

    def _row_parts(self, columns: list[str]) -> Iterator[pd.DataFrame]:
        return self.read_parts(columns)

    def sample(
        self,
        columns: list[str],
        n: int = 2000,  # rows, at most
    ) -> pd.DataFrame:
        """Some rows for a picture, drawn with the run's seed, in input order; all if there are no more."""
        size = self.n_outputs
        start = 0
        found = []
        drawn = np.sort(np.random.default_rng(self.seed).choice(size, min(n, size), replace=False))
        for part in self.read_parts(columns):
            first, last = np.searchsorted(drawn, [start, start + len(part)])
            found.append(part.iloc[drawn[first:last] - start])
            start += len(part)
        return pd.concat(found, ignore_index=True)

    def extremes(
        self,
        n: int = 10,  # of each kind
    ) -> pd.DataFrame:
        """The rows among which the telling ones are: the worst by each metric, those left unchanged, the best by all
        metrics together.

        A row's rank is its place in a sample of the rows.
        """
        firsts = [metric.columns[0] for metric in self.metrics]
        judged = [metric for metric in self.metrics if metric.better != "neither"]
        known = {
            column: np.sort(values.dropna().to_numpy(float))
            for column, values in self.sample(firsts).items()
        }

        def chosen(rows: pd.DataFrame) -> pd.DataFrame:
            found = set(rows.index[rows.output == rows.source][:n])
            ranks = np.zeros(len(rows))
            for metric in judged:
                sign = 1 if metric.better == "higher" else -1
                values = rows[metric.columns[0]].to_numpy(float)
                found |= set(
                    rows.index[np.argsort(sign * values, kind="stable")[:n]]
                )  # NaN is last
                ranks += sign * np.where(
                    np.isnan(values), np.nan, np.searchsorted(known[metric.columns[0]], values)
                )
            return rows.loc[sorted(found | set(rows.index[np.argsort(-ranks, kind="stable")[:n]]))]

        kept = None
        start = 0
        for part in self.read_parts(["system", "source", "output", *firsts]):
            part.index = range(start, start := start + len(part))
            kept = chosen(part if kept is None else pd.concat([kept, part]))
        return kept

    def _blocks(self, system: str) -> Iterator[np.ndarray]:
        """(S, rows) statistics of a system, part by part."""
        self._count(system)
        for record in self._records:
            if system in record["systems"]:
                kept = np.load(
                    self.run.parts / part_name(record["number"], "npy"), allow_pickle=False
                )
                yield kept[1:, kept[0] == list(record["systems"]).index(system)]

    def _of(self, system: str) -> list[dict[str, Any]]:
        if system not in self.systems:
            raise InputError(
                f"there is no system called {system!r}; the systems are {', '.join(self.systems)}"
            )
        return [
            record["systems"][system] for record in self._records if system in record["systems"]
        ]

    def _count(self, system: str) -> int:
        return sum(entry["n"] for entry in self._of(system))

    def _statistics(self, system: str) -> np.ndarray:
        # added up in the order of `evaluate`
        return np.ascontiguousarray(np.concatenate(list(self._blocks(system)), axis=1)).T

    def _total(self, system: str) -> np.ndarray:
        if system not in self._totals:  # read once
            self._totals[system] = (
                super()._total(system)
                if self.exact
                else np.sum([entry["sums"] for entry in self._of(system)], axis=0)
            )
        return self._totals[system]

    def _draw(self, system: str) -> np.ndarray:
        if self.exact:
            return super()._draw(system)
        return poisson_sums((block.T for block in self._blocks(system)), self.n_boot, self.seed)

    def _keys(self, system: str) -> pd.Series:
        self._count(system)
        parts = self.read_parts(["system", *SOURCE_KEY])
        rows = pd.concat([part[part.system == system] for part in parts], ignore_index=True)
        return pd.Series(list(zip(*(rows[name] for name in SOURCE_KEY))), dtype=object)

    def _infinite(self) -> dict[str, int]:
        parts = [
            np.isinf(part.to_numpy(float)).sum(axis=0) for part in self.read_parts(self.columns)
        ]
        return dict(zip(self.columns, map(int, np.sum(parts, axis=0)))) if parts else {}

    def _n_sources(self, system: str) -> int:
        return super()._n_sources(system) if self.exact else self._count(system)

    def _by_source(self, system: str) -> tuple[np.ndarray, pd.Index]:
        if self.exact:
            return super()._by_source(system)
        raise InputError(
            f"{system}: a table of more than {EXACT_ROWS:,} rows is not put together by source"
        )

    def _few_rows(self, system: str) -> dict[str, np.ndarray]:
        return super()._few_rows(system) if self.exact else {}

    def pairing(self, a: str, b: str) -> Pairing:
        """Which sources two systems share; of a large table all of them, in the same order, or none."""
        if self.exact:
            return super().pairing(a, b)
        first, second = (
            sum(
                (SourceHash(entry["n"], int(entry["sources"], 16)) for entry in self._of(name)),
                SourceHash(),
            )
            for name in (a, b)
        )
        rows = {name: [] if first == second else list(range(self._count(name))) for name in (a, b)}
        return Pairing(a, b, first.n if first == second else 0, {a: rows[b], b: rows[a]})

    def _differences(self, pair: Pairing):
        if self.exact:
            yield from super()._differences(pair)
        else:
            ours = self._observed(pair.a)
            theirs = self._observed(pair.b)
            drawn = {
                name: self._resampled(pair.a)[name] - self._resampled(pair.b)[name] for name in ours
            }
            for column in self._layout:
                yield (
                    column,
                    self._bootstrapped(
                        float(ours[column.name] - theirs[column.name]), drawn[column.name], pair.n
                    ),
                )
