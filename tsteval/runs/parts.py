"""Scored rows on disk: a Parquet file for each batch, there completely or not at all, that knows what it was made from"""

import io
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..core.checks import InputError
from ..core.files import write_whole
from ..core.metric import Metric, Scores

_RECORD = b"tsteval"  # the key in the file's metadata
SUMS = "_sums_"  # begins the name of the column with the sums of a metric


def write_file(
    path: Path,  # in an existing folder
    content: str | bytes,
) -> None:
    """Write a file completely or not at all. Raises: OSError that names the file, and says that the run can go on."""
    try:
        write_whole(path, content)
    except OSError as error:
        raise OSError(
            error.errno,
            f"cannot be written: {error.strerror or error}; what is finished stays, and the "
            f"same call goes on",
            str(path),
        ) from error


def write_part(
    path: Path,
    rows: pd.DataFrame,  # N checked rows with their scores
    sums: Mapping[str, np.ndarray | None],  # metric -> (N, S) what a corpus score is made of
    record: Mapping[str, Any],  # what the part was made from, and what must be known of its rows
) -> None:
    """Write a part. Raises: as `write_file`."""
    import pyarrow as pa
    from pyarrow import parquet

    table = pa.Table.from_pandas(
        rows.assign(references=rows.references.map(list)), preserve_index=False
    )
    for name, values in sums.items():
        if values is not None:
            flat = pa.array(np.ascontiguousarray(values, dtype=float).ravel())
            table = table.append_column(
                f"{SUMS}{name}", pa.FixedSizeListArray.from_arrays(flat, values.shape[1])
            )
    own = {_RECORD: json.dumps(record).encode()}
    buffer = io.BytesIO()
    parquet.write_table(
        table.replace_schema_metadata({**(table.schema.metadata or {}), **own}),
        buffer,
        compression="zstd",
        write_page_checksum=True,
    )
    write_file(path, buffer.getvalue())


@dataclass(frozen=True)
class Part:
    """The scored rows of one batch."""

    number: int
    rows: pd.DataFrame  # N checked rows with their scores
    sums: Mapping[str, np.ndarray]  # metric -> (N, S), for metrics that have sums of their own

    def only(self, places: Sequence[int]) -> "Part":
        """Some of the rows."""
        sums = {name: values[places] for name, values in self.sums.items()}
        return Part(self.number, self.rows.iloc[places], sums)

    def scores(self, metric: Metric) -> Scores:
        """What a metric said of the rows."""
        return Scores(self.rows[[*metric.columns]], self.sums.get(metric.name))

    def statistics(self, metrics: Iterable[Metric]) -> np.ndarray:
        """(N, S) what is summed, for all columns of the metrics side by side."""
        columns = [
            metric.summed(self.scores(metric), column)[0]
            for metric in metrics
            for column in metric.columns
        ]
        return np.concatenate(columns, axis=1)


class Parts:
    """The parts in a folder, in the order of the table."""

    def __init__(self, folder: Path):
        self.folder = folder

    def path(self, number: int) -> Path:
        """Where a part is, or would be."""
        return self.folder / f"part-{number:06d}.parquet"

    def numbers(self) -> list[int]:
        """The parts that are there, whole or damaged."""
        names = (re.fullmatch(r"part-(\d{6,})\.parquet", file.name) for file in self._files())
        return sorted(int(name[1]) for name in names if name)

    def _files(self) -> list[Path]:
        return list(self.folder.iterdir()) if self.folder.is_dir() else []

    def record(
        self, number: int, whole: bool = False
    ) -> dict[str, Any] | None:  # None: the part is not there, or damaged
        """What a part was made from and what must be known of its rows; with `whole`, all of it is read and checked.
        Raises: InputError for a file that is no part of a run."""
        from pyarrow import parquet

        path = self.path(number)
        try:
            with parquet.ParquetFile(path, page_checksum_verification=whole) as file:
                record = (file.schema_arrow.metadata or {}).get(_RECORD)
                if whole:
                    for _ in file.iter_batches():
                        pass
        except (OSError, ValueError):  # those of pyarrow are among them
            return None
        if record is None:
            raise InputError(
                f"{path} is no part of a run of this version; name another folder, or begin anew with "
                f"restart (--restart), which deletes it"
            )
        return json.loads(record)

    def read(
        self,
        number: int,
        columns: Collection[str] | None = None,  # of the rows; None: all
        metrics: Iterable[Metric] = (),  # whose sums are read too
    ) -> Part:
        """The rows of a part."""
        from pyarrow import parquet

        with parquet.ParquetFile(self.path(number)) as file:
            names = file.schema_arrow.names
            sums = [name for name in names if name in {SUMS + metric.name for metric in metrics}]
            chosen = [
                name
                for name in names
                if not name.startswith(SUMS) and (columns is None or name in columns)
            ]
            table = file.read(columns=[*chosen, *sums])
        rows = table.select(chosen).to_pandas()
        if "references" in rows:
            rows["references"] = [tuple(cell) for cell in rows.references]
        arrays = {}
        for name in sums:
            column = table[name].combine_chunks()
            width = column.type.list_size
            arrays[name.removeprefix(SUMS)] = column.flatten().to_numpy().reshape(-1, width)
        return Part(number, rows, arrays)

    def clear(self, finished: Collection[int] = ()) -> None:
        """Delete the parts but some, and what an interrupted write left."""
        for file in self._files():
            if re.match(r"\.?part-\d", file.name) and file not in map(self.path, finished):
                file.unlink()


def what_changed(
    before: Mapping[str, Any],  # what the parts were made from
    now: Mapping[str, Any],
) -> str | None:  # in words; None: nothing
    """The first difference between two descriptions of a run."""
    for name, value in now.items():
        old = before.get(name)
        if old == value:
            continue
        if name == "metrics" and [*old] != [*value]:
            return f"the metrics changed since: {', '.join(old)}, now {', '.join(value)}"
        if name == "metrics":
            metric = next(metric for metric in value if old[metric] != value[metric])
            return (
                f"{metric} changed since, in its options, version or weights: {old[metric]}, now "
                f"{value[metric]}"
            )
        if name == "input":
            return f"the input changed since: sha256 {old[:12]}, now {value[:12]}"
        return f"{name} changed since: {old}, now {value}"
    return None


def refuse_changes(folder: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Raise an InputError if parts were made from something else than now."""
    if changed := what_changed(before, now):
        raise InputError(
            f"{folder}: {changed}; name another folder, or begin anew with restart (--restart)"
        )


def read_all(
    parts: Parts,
    records: Mapping[int, Mapping[str, Any]],  # number of a part -> its record
    columns: Collection[str] | None = None,
    metrics: Iterable[Metric] = (),
) -> Iterator[Part]:
    """The parts one after the other, in the order of the table."""
    metrics = list(metrics)
    for number in sorted(records):
        yield parts.read(number, columns, metrics)
