"""What a finished run says of the systems: of a small table as `evaluate` says it, of a large one in passes over its parts"""

import tempfile
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pandas as pd

from ..core.metric import Metric, Scores
from ..models.base import collected_unread
from ..tables.data_check import cut_notes, repeat_notes, unknown_notes
from ..tables.outputs import SOURCE_KEY
from .parts import Part, read_all
from .results import SystemScores
from .run import FinishedRun
from .scoring import row_kinds, signed, with_roles

_COLUMNS = ["system", *SOURCE_KEY, "output", "references"]


def _with_notes(
    run: FinishedRun,
    metric: Metric,
    scores: Scores,
    rows: pd.DataFrame,  # checked rows; of a large table the first ones
    kinds: pd.DataFrame,  # a row of each kind, of the whole table
) -> Scores:
    """The scores with their signatures and with what has to be known of them."""
    scores = signed(metric, scores, kinds, run.models)
    full = rows[rows.output != ""].reset_index(drop=True)
    with collected_unread():  # told already
        review = metric.review(with_roles(metric, full), run.models)
    heading = metric.heading(metric.columns[0], scores)
    notes = (
        *run.notes(metric),
        *cut_notes(heading, run.unread(metric, "cut"), run.n_outputs),
        *unknown_notes(heading, run.unread(metric, "unknown"), run.n_outputs),
        *review,
    )
    return Scores(
        scores.frame,
        scores.sums,
        notes,
        scores.signature,
        scores.row_signature,
        scores.headings,
    )


class TableScores(SystemScores):
    """What a finished run says of the systems."""

    def __init__(self, run: FinishedRun):
        self.run = run
        parts = list(read_all(run.parts, run.records, metrics=run.metrics))
        rows = pd.concat([part.rows for part in parts if len(part.rows)], ignore_index=True)
        scores = {}
        for metric in run.metrics:
            sums = [part.sums[metric.name] for part in parts if metric.name in part.sums]
            whole = Scores(rows[[*metric.columns]], np.concatenate(sums) if sums else None)
            scores[metric.name] = _with_notes(run, metric, whole, rows, rows)
        notes = (*run.text_notes(), *repeat_notes(rows, run.places(run.records)))
        settings = run.settings
        super().__init__(
            rows,
            run.metrics,
            scores,
            run.models.used,
            settings.n_boot,
            settings.seed,
            settings.baseline,
            notes,
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.run.folder}, {self.n_outputs:,} outputs of {', '.join(self.systems)})"

    @property
    def skipped(self) -> pd.DataFrame:
        """The rows that were left out: file, row (in the file, counted from 0), reason."""
        return pd.DataFrame(self.run.skipped, columns=["file", "row", "reason"])

    @property
    def remarks(self) -> list[str]:
        """Sentences that a report should add to how the scores were made."""
        n = len(self.skipped)
        reasons = "; ".join(
            f"{file} row {row}: {reason}"
            for file, row, reason in self.skipped.head(10).itertuples(index=False)
        )
        skipped = (
            f"{n:,} row{' of the input was' if n == 1 else 's of the input were'} refused "
            f"and left out (counted from 0{', the first ten' if n > 10 else ''}: {reasons})."
        )
        return [*super().remarks, *([skipped] if n else [])]


class LargeTableScores(TableScores):
    """The same of a table that need not fit into memory: of every row a hash of its source is held, and of every
    source the statistics of one system, in a temporary file."""

    def __init__(self, run: FinishedRun):
        self.run = run
        self.metrics = run.metrics
        self.n_boot = run.settings.n_boot
        self.seed = run.settings.seed
        self.baseline = run.settings.baseline
        self.models = run.models.used
        self._sources, self._sums, self._corrected = {}, {}, {}
        self._infinite_values: Counter[str] = Counter()
        hashes: dict[str, list[np.ndarray]] = {}  # of a system's sources
        kinds = []
        first_numbers = run.first_parts()
        first_parts: list[Part] = []
        for part in read_all(run.parts, run.records, [*_COLUMNS, *self.columns], run.metrics):
            rows = part.rows
            kinds.append(row_kinds(rows))
            if part.number in first_numbers:
                first_parts.append(part)
            key = [name for name in SOURCE_KEY if name in rows]
            sources = pd.util.hash_pandas_object(rows[key], index=False).to_numpy()
            for system, places in rows.groupby("system", sort=False).indices.items():
                hashes.setdefault(system, []).append(sources[places])
            for column in self.columns:
                infinite = int(np.isinf(rows[column].to_numpy(float)).sum())
                self._infinite_values[column] += infinite
        self._hashes = {system: np.concatenate(several) for system, several in hashes.items()}
        first = pd.concat([part.rows for part in first_parts], ignore_index=True)
        every_kind = row_kinds(pd.concat(kinds, ignore_index=True))
        none = first_parts[0].only([])
        self.scores = {
            metric.name: _with_notes(run, metric, none.scores(metric), first, every_kind)
            for metric in run.metrics
        }
        self.data_notes = (
            *run.text_notes(),
            *repeat_notes(first, run.places(first_numbers)),
        )

    @property
    def systems(self) -> list[str]:
        """The systems in the order in which they first occur."""
        return list(self._hashes)

    @property
    def n_outputs(self) -> int:
        """How many outputs were scored."""
        return self.run.n_outputs

    @property
    def per_pair(self) -> pd.DataFrame:
        """One row an output, in input order, as from `evaluate`; read from the parts each time."""
        return pd.concat([part.rows for part in self._parts()], ignore_index=True)

    def _parts(self, columns: list[str] | None = None, sums: bool = False) -> Iterator[Part]:
        metrics = self.metrics if sums else ()
        return read_all(self.run.parts, self.run.records, columns, metrics)

    def _row_parts(self, columns: list[str]) -> Iterator[pd.DataFrame]:
        return (part.rows for part in self._parts(columns))

    def sample(
        self,
        columns: list[str],
        n: int = 2000,  # rows, at most
    ) -> pd.DataFrame:
        """Some rows for a picture, drawn with the run's seed, in input order; all if there are no more."""
        size = self.n_outputs
        drawn = np.sort(np.random.default_rng(self.seed).choice(size, min(n, size), replace=False))
        start = 0
        chosen = []
        for rows in self._row_parts(columns):
            first, last = np.searchsorted(drawn, [start, start + len(rows)])
            chosen.append(rows.iloc[drawn[first:last] - start])
            start += len(rows)
        return pd.concat(chosen, ignore_index=True)

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
        sampled = {
            column: np.sort(values.dropna().to_numpy(float))
            for column, values in self.sample(firsts).items()
        }

        def extreme(rows: pd.DataFrame) -> pd.DataFrame:
            chosen = set(rows.index[rows.output == rows.source][:n])
            ranks = np.zeros(len(rows))
            for metric in judged:
                column = metric.columns[0]
                sign = 1 if metric.better == "higher" else -1
                values = rows[column].to_numpy(float)
                worst = np.argsort(sign * values, kind="stable")[:n]  # NaN is last
                chosen |= set(rows.index[worst])
                ranks += sign * np.where(
                    np.isnan(values), np.nan, np.searchsorted(sampled[column], values)
                )
            best = np.argsort(-ranks, kind="stable")[:n]
            return rows.loc[sorted(chosen | set(rows.index[best]))]

        rows = None
        start = 0
        for part in self._row_parts(["system", "source", "output", *firsts]):
            part.index = range(start, start := start + len(part))
            rows = extreme(part if rows is None else pd.concat([rows, part]))
        return rows

    def _count(self, system: str) -> int:
        return len(self._keys(system))

    def _keys(self, system: str) -> pd.Series:
        if system not in self._hashes:
            super()._rows(system)  # which says that there is none
        return pd.Series(self._hashes[system])

    def _by_source(self, system: str) -> tuple[np.ndarray, pd.Index]:
        if system not in self._sources:
            codes, keys = pd.factorize(self._keys(system), sort=True)
            shape = len(keys), self._layout[-1].places.stop
            with tempfile.TemporaryFile() as file:
                sums = np.memmap(file, float, "w+", shape=shape, order="F")
            rows = np.zeros((len(keys), len(self._layout)))  # that have a value
            start = 0
            for part in self._parts(["system", *self.columns], sums=True):
                own = part.only(np.flatnonzero(part.rows.system == system))
                statistics = own.statistics(self.metrics)
                sources = codes[start : start + len(statistics)]
                start += len(statistics)
                np.add.at(sums, sources, statistics)
                for place, column in enumerate(self._layout):
                    np.add.at(rows[:, place], sources, column.defined(statistics))
            for place, column in enumerate(self._layout):
                sums[:, column.places] /= np.maximum(rows[:, place], 1)[:, None]
            self._sources[system] = sums, pd.Index(keys)
        return self._sources[system]

    def _infinite(self) -> dict[str, int]:
        return dict(self._infinite_values)
