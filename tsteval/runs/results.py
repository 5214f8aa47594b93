"""Scores of systems with intervals and comparisons, from what metrics said of each row"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

import numpy as np
import pandas as pd

from tsteval.core.resample import (
    FEW,
    FEWEST,
    holm,
    p_value,
    percentiles,
    poisson_sums,
    resample_sums,
    share_as_large,
    student_interval,
    swapped_sums,
)

from ..core.checks import InputError
from ..core.display import enumerated, printable
from ..core.metric import INPUTS, Metric, Note, Scores, ScoreWarning
from ..models.base import warn_caller
from ..report.conclusions import BETTER, LEVEL, WORSE, verdict
from ..report.evidence import not_shown
from ..tables.outputs import SOURCE_KEY
from ..words.english import count_language_signs, only_omits, reads_otherwise

MOST_DRAWN = 50_000  # sources; of more, a resample is a Poisson weight for each


def _short(name) -> str:
    return printable(" ".join(str(name).split()), 40)


def _answers(rows: pd.DataFrame) -> bool:
    """Whether outputs answer or rest on something that is not their source; an input that nobody gave is the source."""
    given = [name for name in INPUTS if name != "input" and name in rows]
    return bool(given) or ("input" in rows and bool((rows.input != rows.source).any()))


@dataclass(frozen=True)
class Pairing:
    """Which sources two systems share."""

    a: str
    b: str
    n: int  # sources that both rewrote
    lacking: Mapping[str, int]  # system -> sources of the other one that it lacks

    @property
    def omissions(self) -> str:
        """What is left out of a comparison, in words; empty if nothing is."""
        if not self.n:
            return f"{_short(self.a)} and {_short(self.b)} are not compared: they have no source in common"
        other = {self.a: self.b, self.b: self.a}
        parts = [
            f"{_short(name)} lacks {count:,} that {_short(other[name])} has"
            for name, count in self.lacking.items()
            if count
        ]
        total = self.n + sum(self.lacking.values())
        return (
            f"{_short(self.a)} and {_short(self.b)}: {self.n:,} of {total:,} sources shared; {'; '.join(parts)}"
            if parts
            else ""
        )


@dataclass(frozen=True)
class _Column:
    """Where a column's statistics stand among those of all columns."""

    name: str
    metric: Metric
    places: slice
    score: Callable[[np.ndarray], np.ndarray]

    @property
    def leads(self) -> bool:
        """Whether it stands for its metric."""
        return self.name == self.metric.columns[0]

    def defined(self, statistics: np.ndarray) -> np.ndarray:
        """(N,) which rows have a value; sums that are all zero are those of a row without one."""
        return (statistics[:, self.places] != 0).any(axis=1)

    def of_sources(self, statistics: np.ndarray, codes: np.ndarray, n: int) -> np.ndarray:
        """(n, s) statistics of sources, from (N, S) of rows and the source of each: the mean over a source's rows that
        have a value, so that a source that occurs often counts once."""
        own = statistics[:, self.places]
        sums = np.stack([np.bincount(codes, values, n) for values in own.T], axis=1)
        rows = np.bincount(codes, self.defined(statistics), n)
        return sums / np.maximum(rows, 1)[:, None]


@dataclass
class SystemScores:
    """What metrics said of the outputs of one or more systems, and what follows for the systems."""

    per_pair: (
        pd.DataFrame
    )  # one row an output, in input order: the checked table, then what the metrics wrote
    metrics: list[Metric]  # in the order in which they were asked for
    scores: Mapping[str, Scores] = field(repr=False)  # metric -> what it said
    models: Mapping[str, str]  # model name -> checksum of its weights
    n_boot: int = 2000  # bootstrap resamples
    seed: int = 0  # of the bootstrap
    baseline: str | None = None  # the system that reports compare the others with; None: the first
    data_notes: tuple[Note, ...] = ()  # on the rows, whatever the metrics say of them
    answers: bool = False  # whether the table says what was answered and not what was rewritten
    # worked out when they are needed: of each system the statistics of its sources, and their resampled sums
    _sources: dict[str, tuple[np.ndarray, pd.Index]] = field(default_factory=dict, repr=False)
    _sums: dict[str, np.ndarray] = field(default_factory=dict, repr=False)
    # baseline -> p-values corrected over all systems and scores
    _corrected: dict[str, pd.DataFrame] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.n_outputs:,} outputs of {', '.join(self.systems)}; "
            f"{', '.join(metric.name for metric in self.metrics)})"
        )

    def __getattr__(self, name: str):
        raise AttributeError(
            f"{type(self).__name__} has no {name!r}; its frames are per_pair, summary(), comparisons() (which "
            "has a column better), compare(a, b) and notes(), each with to_csv(path); plot() and "
            "report(path) show it"
        )

    @property
    def systems(self) -> list[str]:
        """The systems in the order in which they first occur."""
        return list(dict.fromkeys(self.per_pair.system))

    @property
    def columns(self) -> list[str]:
        """The columns that are summarised: those of every metric."""
        return [column for metric in self.metrics for column in metric.columns]

    @property
    def headings(self) -> dict[str, str]:
        """How those columns are called in tables and figures."""
        return {
            column: metric.heading(column, self.scores[metric.name])
            for metric in self.metrics
            for column in metric.columns
        }

    def heading(self, column: str) -> str:
        """How any column of `per_pair` is called in tables and figures."""
        return self.headings.get(column, column.replace("_", " "))

    @property
    def signatures(self) -> dict[str, str]:
        """Metric -> what someone else needs to repeat the score of a system."""
        return {name: scores.signature for name, scores in self.scores.items()}

    @property
    def row_signatures(self) -> dict[str, str]:
        """Metric -> the same for a single row, where a row's score is made in another way than a system's."""
        return {
            name: scores.row_signature
            for name, scores in self.scores.items()
            if scores.row_signature
        }

    @cached_property
    def unfit(self) -> dict[str, str]:
        """Column -> why no system is called better by it, as it stands behind "since it": a metric's note says so, the
        score is not shown to follow people, or it was on English alone and these texts are not."""
        answers = self.answers or any(map(_answers, self._texts()))
        return {
            column: why
            for metric in self.metrics
            for column in metric.columns
            if (why := self._doubt(metric, column, answers))
        }

    def _doubt(self, metric: Metric, column: str, answers: bool) -> str:
        scores = self.scores[metric.name]
        noted = next((note.unfit for note in scores.notes if note.unfit), "")
        if why := noted or not_shown(metric, column, scores.signature, answers):
            return why
        if metric.english and (foreign := self._foreign(metric)):
            texts = enumerated(foreign)
            return f"was held beside people on English alone, and {texts} are not in English"
        return ""

    def _foreign(self, metric: Metric) -> list[str]:
        """Which texts that a metric looks at read as another language than English, in words."""
        needed = {*metric.needed}
        return [
            name
            for (column, name), signs in self._language_signs.items()
            if column in needed and reads_otherwise(signs)
        ]

    def _foreign_texts(self) -> str:
        """That metrics made for English were given other texts; empty if none were."""
        made = [metric for metric in self.metrics if metric.english and self._foreign(metric)]
        headings = [self.heading(metric.columns[0]) for metric in made]
        texts = dict.fromkeys(text for metric in made for text in self._foreign(metric))
        return (
            f"{enumerated([*texts])} are not in English, for which {enumerated(headings)} "
            f"{'is' if len(headings) == 1 else 'are'} made"
            if headings
            else ""
        )

    @cached_property
    def _language_signs(self) -> dict[tuple[str, str], Counter[str]]:
        """Column of texts, and what they are called -> what tells their language, see `count_language_signs`."""
        signs: dict[tuple[str, str], Counter[str]] = {}
        for rows in self._texts():
            texts = {
                (name, f"the {name.removesuffix('s')}s"): rows[name]
                for name in ("source", *INPUTS)
                if name in rows
            }
            texts["references", "the references"] = rows.references.explode().dropna()
            for system, own in rows.groupby("system", sort=False):
                texts["output", f"the outputs of {_short(system)}"] = own.output
            for key, column in texts.items():
                signs.setdefault(key, Counter()).update(count_language_signs(column))
        return signs

    def _texts(self) -> Iterator[pd.DataFrame]:
        """The texts of the rows, as many at a time as are held together."""
        return self._row_parts(["system", "source", "output", "references", *INPUTS])

    def notes(self) -> pd.DataFrame:
        """What has to be known about the scores, warnings first: metric, warning (True or False), text, figures (names
        and numbers)."""
        named_notes = [
            *((name, scores.notes) for name, scores in self.scores.items()),
            ("", self.data_notes),
        ]
        rows = [
            {
                "metric": name,
                "warning": note.warning,
                "text": note.text,
                "figures": dict(note.figures),
            }
            for name, notes in named_notes
            for note in notes
        ]
        if foreign := self._foreign_texts():
            rows.append({"metric": "", "warning": True, "text": foreign, "figures": {}})
        rows += [
            {"metric": "", "warning": False, "text": text, "figures": {}} for text in self._doubts()
        ]
        frame = pd.DataFrame(
            rows, columns=["metric", "warning", "text", "figures"]
        ).drop_duplicates("text")
        return frame.sort_values("warning", ascending=False, kind="stable", ignore_index=True)

    def _doubts(self) -> list[str]:
        """What has to be known of the rows: few of them, repeated sources, sources that only one system has."""
        doubts = []
        for system in self.systems:
            rows = self._count(system)
            sources = self._n_sources(system)
            if sources < FEWEST:
                doubts.append(
                    f"{_short(system)}: {sources} source{'s' * (sources > 1)}; below {FEWEST} no difference "
                    f"is "
                    f"called one"
                )
            if sources < rows:
                doubts.append(
                    f"{_short(system)}: {rows - sources} of {rows} rows repeat a source; each source counts "
                    f"once"
                )
        doubts += [
            f"{self.heading(column)}: {n} value{'s are' if n > 1 else ' is'} infinite and left out of means and "
            f"tests"
            for column, n in self._infinite().items()
            if n
        ]
        return (
            doubts
            + self._too_few_resamples()
            + [pair.omissions for pair in self.pairings() if pair.omissions]
        )

    def _too_few_resamples(self) -> list[str]:
        """That so many comparisons ask for more resamples."""
        n = sum(pair.n >= FEW for pair in self.pairings()) * len(self.metrics)
        if n < 2 or n / (self.n_boot + 1) <= LEVEL:
            return []
        least = int(np.ceil(n / LEVEL))
        return [
            f"With {self.n_boot:,} resamples no p-value that is corrected for {n:,} comparisons is below "
            f"{LEVEL:g}; take n_boot of {least:,} or more"
        ]

    def tallies(self) -> list[dict]:
        """A system each: system, outputs, unchanged (outputs that equal their source), shortened (outputs that only
        leave words of it out; looked at where a score of content is asked for), given (outputs that equal a
        reference), alike (whether all are one text), and unscored (column -> outputs without a score)."""
        firsts = [metric.columns[0] for metric in self.metrics]
        asks_content = any(one.aspect == "content" for one in self.metrics)
        counts: dict[str, Counter] = {system: Counter() for system in self.systems}
        texts: dict[str, set[str]] = {system: set() for system in self.systems}  # two at most
        for rows in self._row_parts(["system", "source", "output", "references", *firsts]):
            matches = [
                output in references for output, references in zip(rows.output, rows.references)
            ]
            frame = rows.assign(
                unchanged=rows.output.str.strip() == rows.source.str.strip(),
                shortened=asks_content and [*map(only_omits, rows.source, rows.output)],
                given=matches,
            )
            for system, own in frame.groupby("system", sort=False):
                counts[system].update(
                    {"outputs": len(own)}
                    | own[["unchanged", "shortened", "given"]].sum().astype(int).to_dict()
                )
                counts[system].update({column: int(own[column].isna().sum()) for column in firsts})
                texts[system] = {*[*texts[system], *own.output.unique()[:2]][:2]}
        # in a table without sources, what was answered or the output itself stands in the source's place
        alone = all(count["unchanged"] == count["outputs"] for count in counts.values())
        if not any("source" in metric.needed for metric in self.metrics) and (
            self.answers or alone
        ):
            counts = {system: {**count, "unchanged": 0} for system, count in counts.items()}
        return [
            {
                "system": system,
                "unscored": {column: count[column] for column in firsts},
                "alike": len(texts[system]) == 1 and count["outputs"] > 1,
                **{name: count[name] for name in ("outputs", "unchanged", "shortened", "given")},
            }
            for system, count in counts.items()
        ]

    def _row_parts(self, columns: list[str]) -> Iterator[pd.DataFrame]:
        """The rows, as many at a time as are held together."""
        rows = self.per_pair
        if "references" not in rows:
            rows = rows.assign(references=[()] * len(rows))
        yield rows[[name for name in columns if name in rows]]

    def _infinite(self) -> dict[str, int]:
        """Column -> how many of its values are infinite."""
        return {
            column: int(np.isinf(self.scores[metric.name].frame[column].to_numpy(float)).sum())
            for metric in self.metrics
            for column in metric.columns
        }

    @property
    def reference_system(self) -> str:
        """The system that the others are compared with."""
        return self.baseline or self.systems[0]

    def pairings(self) -> list[Pairing]:
        """Every other system and the one that they are compared with."""
        return [
            self.pairing(system, self.reference_system)
            for system in self.systems
            if system != self.reference_system
        ]

    def _rows(self, system: str) -> np.ndarray:
        if system not in self.systems:
            raise InputError(
                f"there is no system called {system!r}; the systems are {', '.join(self.systems)}"
            )
        return np.flatnonzero((self.per_pair.system == system).to_numpy())

    def _count(self, system: str) -> int:
        return len(self._rows(system))

    def _keys(self, system: str) -> pd.Series:
        """What tells the sources of a system's rows apart."""
        rows = self.per_pair[[name for name in SOURCE_KEY if name in self.per_pair]].iloc[
            self._rows(system)
        ]
        return pd.Series(list(zip(*(rows[name] for name in rows))), dtype=object)

    def _n_sources(self, system: str) -> int:
        return self._keys(system).nunique()

    @property
    def n_outputs(self) -> int:
        """How many outputs were scored."""
        return sum(map(self._count, self.systems))

    @property
    def remarks(self) -> list[str]:
        """Sentences that a report should add to how the scores were made."""
        if self.bootstrap == "multinomial":
            return []
        return [
            "The bootstrap is the Poisson bootstrap: each source is given a weight from a Poisson "
            "distribution of mean 1."
        ]

    @property
    def bootstrap(self) -> str:
        """How resamples are made: multinomial or, of many sources, Poisson."""
        most = max(len(self._by_source(system)[0]) for system in self.systems)
        return "multinomial" if most <= MOST_DRAWN else "Poisson"

    @cached_property
    def _layout(self) -> list[_Column]:
        """The columns side by side, as `_statistics` has them."""
        columns = []
        first = 0
        for metric in self.metrics:
            for name in metric.columns:
                statistics, score = metric.summed(self.scores[metric.name], name)
                columns.append(
                    _Column(name, metric, slice(first, first + statistics.shape[1]), score)
                )
                first += statistics.shape[1]
        return columns

    def _statistics(self, system: str) -> np.ndarray:
        """What is summed, all columns side by side: (rows, S), each column in one piece of memory."""
        rows = self._rows(system)
        statistics = np.empty((self._layout[-1].places.stop, len(rows)))
        for column in self._layout:  # filled one after another, so that nothing is held twice
            part, _ = column.metric.summed(self.scores[column.metric.name], column.name)
            statistics[column.places] = part[rows].T
        return statistics.T

    def _by_source(self, system: str) -> tuple[np.ndarray, pd.Index]:
        """(G, S) statistics of sources, in the order of their sorted keys, and the keys: what follows does not depend
        on the order of the rows."""
        if system not in self._sources:
            codes, keys = pd.factorize(self._keys(system), sort=True)
            statistics = self._statistics(system)
            parts = [column.of_sources(statistics, codes, len(keys)) for column in self._layout]
            self._sources[system] = np.asfortranarray(np.concatenate(parts, axis=1)), pd.Index(keys)
        return self._sources[system]

    def _split(self, sums: np.ndarray) -> dict[str, np.ndarray]:
        """Column -> scores (...), from sums (..., S) of all columns side by side."""
        return {column.name: column.score(sums[..., column.places]) for column in self._layout}

    def _observed(self, system: str) -> dict[str, float]:
        return {column: float(value) for column, value in self._split(self._total(system)).items()}

    def _total(self, system: str) -> np.ndarray:
        return self._by_source(system)[0].sum(axis=0)

    def _draw(self, statistics: np.ndarray) -> np.ndarray:
        """(n_boot, S) sums of the resamples; the same sources for statistics of as many sources."""
        if len(statistics) <= MOST_DRAWN:
            return resample_sums(statistics, self.n_boot, self.seed)
        return poisson_sums([statistics], self.n_boot, self.seed)

    def _resampled(self, system: str) -> dict[str, np.ndarray]:
        """Column -> (n_boot,) scores of the resamples; drawn once, since every table and figure asks for them."""
        if system not in self._sums:
            self._sums[system] = self._draw(self._by_source(system)[0])
        return self._split(self._sums[system])

    def summary(self) -> pd.DataFrame:
        """One row a system: system, n, and for each column its score with the ends of the 95% interval (`_low`,
        `_high`), a percentile interval from `FEW` sources with a value on, and Student's below, cut at the ends of
        the metric's range."""
        table = []
        for system in self.systems:
            row = {"system": system, "n": self._count(system)}
            observed = self._observed(system)
            resampled = self._resampled(system)
            few = self._few_rows(system)
            for column in self._layout:
                low, high = percentiles(resampled[column.name])
                if column.name in few:
                    low, high = student_interval(few[column.name], observed[column.name])
                    if column.leads and column.metric.range:  # a share of 1.2 is none
                        low, high = np.clip((low, high), *column.metric.range)
                row |= {
                    column.name: observed[column.name],
                    f"{column.name}_low": low,
                    f"{column.name}_high": high,
                }
            table.append(row)
        return pd.DataFrame(table)

    def _few_rows(self, system: str) -> dict[str, np.ndarray]:
        """Column -> scores without each of the sources that have a value, for columns where these are few."""
        statistics, _ = self._by_source(system)
        defined = [(column, column.defined(statistics)) for column in self._layout]
        return {
            column.name: column.score((statistics.sum(axis=0) - statistics[has])[:, column.places])
            for column, has in defined
            if has.sum() < FEW
        }

    def pairing(self, a: str, b: str) -> Pairing:
        """Which sources two systems share. Raises: InputError for an unknown system."""
        keys = {name: self._keys(name) for name in (a, b) if self._count(name)}
        lacking = {
            name: int(keys[other][~keys[other].isin(keys[name])].nunique())
            for name, other in ((a, b), (b, a))
        }
        return Pairing(a, b, int(keys[a][keys[a].isin(keys[b])].nunique()), lacking)

    def compare(self, a: str, b: str) -> pd.DataFrame:
        """One row a column: a, b, metric (the column's name), difference (a minus b), low, high, n (sources with a
        value on both sides), p_value, p_holm and better (the name of the better system, or "" where nothing is
        settled, no end is good, or the column is `unfit` to say it).

        On the sources where both have a value, each counted once and drawn as a whole. From `FEW` sources on by paired
        bootstrap; below, p-values are those of swapping the systems' outputs source by source, and intervals Student's;
        below `FEWEST` nothing is called better. p_holm corrects for all systems that are compared with b and for the
        columns that stand for their metrics, and apart from these for their relatives.
        Raises: InputError for an unknown system, or for two that share no source.
        Source: Koehn 2004 (paired bootstrap); Noreen 1989 (swaps); Holm 1979.
        """
        if not self.pairing(a, b).n:
            raise InputError(
                f"{a} and {b} cannot be compared: they rewrote no source that is the same"
            )
        family = self._against(b)
        return family[family.a == a].reset_index(drop=True)

    def _against(self, baseline: str) -> pd.DataFrame:
        """The rows of `compare` of all other systems that share a source with a baseline."""
        if baseline not in self._corrected:
            pairs = [self.pairing(name, baseline) for name in self.systems if name != baseline]
            rows = [
                {"a": pair.a, "b": pair.b, "metric": column.name, **figures}
                for pair in pairs
                if pair.n
                for column, figures in self._differences(pair)
            ]
            frame = pd.DataFrame(rows)
            leads = frame.metric.isin([column.name for column in self._layout if column.leads])
            frame["p_holm"] = np.nan
            for family in (leads, ~leads):
                frame.loc[family, "p_holm"] = holm(frame.p_value[family].to_numpy())
            frame["better"] = [self._better(row) for row in frame.to_dict("records")]
            self._corrected[baseline] = frame
        return self._corrected[baseline]

    def _better(self, row: Mapping) -> str:
        metric = next(column.metric for column in self._layout if column.name == row["metric"])
        outcome = verdict(row, "neither" if row["metric"] in self.unfit else metric.better)
        return {BETTER: row["a"], WORSE: row["b"]}.get(outcome, "")

    def _differences(self, pair: Pairing):
        """For each column the difference of two systems on the sources where both have a value, its interval, the
        number of these sources, and its p-value."""
        (left, keys), (right, others) = self._by_source(pair.a), self._by_source(pair.b)
        shared = keys.intersection(others)  # in the order of both
        left = left[keys.get_indexer_for(shared)]
        right = right[others.get_indexer_for(shared)]
        paired = {
            column.name: column.defined(left) & column.defined(right) for column in self._layout
        }
        figures = {}
        for places in {places.tobytes(): places for places in paired.values()}.values():
            columns = [column for column in self._layout if (paired[column.name] == places).all()]
            figures |= self._compared(pair, columns, left[places], right[places])
        for column in self._layout:
            yield column, figures[column.name]

    def _compared(
        self, pair: Pairing, columns: list[_Column], left: np.ndarray, right: np.ndarray
    ) -> dict[str, dict[str, float]]:
        """Column -> difference, low, high, n and p_value, for columns that have values on the same sources."""
        n = len(left)
        ours, theirs = (self._split(side.sum(axis=0)) for side in (left, right))
        observed = {
            column.name: float(ours[column.name] - theirs[column.name]) for column in columns
        }
        if n >= FEW:
            first, second = (
                self._resampled(name)
                if n == len(self._by_source(name)[0])
                else self._split(self._draw(side))
                for name, side in ((pair.a, left), (pair.b, right))
            )
            return {
                name: self._bootstrapped(difference, first[name] - second[name], n)
                for name, difference in observed.items()
            }
        figures = {}
        chance = self._swapped(left, right) if n else {}
        for column in columns:
            difference = observed[column.name]
            low, high = student_interval(self._without(column, left, right), difference)
            p = share_as_large(chance[column.name], difference, n) if n else np.nan
            figures[column.name] = {
                "difference": difference,
                "low": low,
                "high": high,
                "n": n,
                "p_value": p,
            }
        return figures

    @staticmethod
    def _bootstrapped(observed: float, drawn: np.ndarray, n: int) -> dict[str, float]:
        """A difference with what its resamples say of it."""
        low, high = percentiles(drawn)
        return {
            "difference": observed,
            "low": low,
            "high": high,
            "n": n,
            "p_value": p_value(drawn - observed, observed),
        }

    def _swapped(self, left: np.ndarray, right: np.ndarray) -> dict[str, np.ndarray]:
        """Column -> differences after the two systems' outputs changed sides by chance."""
        swapped_scores = [
            (self._split(first), self._split(second))
            for first, second in swapped_sums(left, right, seed=self.seed)
        ]
        return {
            column.name: np.concatenate(
                [first[column.name] - second[column.name] for first, second in swapped_scores]
            )
            for column in self._layout
        }

    @staticmethod
    def _without(column: _Column, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """The difference without each of the sources."""
        first, second = (
            column.score((side.sum(axis=0) - side)[:, column.places]) for side in (left, right)
        )
        return first - second

    def comparisons(self) -> pd.DataFrame:
        """The rows of `compare` for every other system and the baseline, where the two share a source."""
        others = [pair for pair in self.pairings() if pair.n]
        return self._against(self.reference_system) if others else pd.DataFrame()


_Result = TypeVar("_Result", bound=SystemScores)


def with_warnings(
    result: _Result,
) -> _Result:
    """The result, once its warnings were given as `ScoreWarning`."""
    for note in result.notes().itertuples():
        if note.warning:
            warn_caller(note.text, ScoreWarning)
    return result
