"""Training from a file: what its rows are, and which of them are kept to measure with"""

import hashlib
import re
import sys
import unicodedata
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from ..core.checks import InputError, check_choice, check_number, check_texts, describe, tokenizable
from ..tables.formats import FileError
from ..tables.pairs import LABELS, WNC_COLUMNS, balanced_weights, iterate_wnc
from ..tables.tables import read_table
from .batches import Stream

_SPLITS = ("train", "validation", "test")
_TABLES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet", ".pq")
_PIECE = 10_000
_MOST_LABELS = 100  # pairs in memory at a time, of a file that is passed over; classes


@dataclass(frozen=True)
class TrainingFile:
    """A file of rows to train on."""

    path: Path
    kind: str  # pairs | texts
    labels: tuple[str, ...]  # C names of classes; of pairs: the source's, then the target's
    # each call gives all rows: source and target, or text and label (a number); perhaps split
    pieces: Callable[[], Iterator[pd.DataFrame]]


def open_training_file(
    path: Path | str,  # .csv, .tsv, .jsonl or .parquet with a header, or a file of the full WNC
    # names of the classes, of pairs the source's first; None: subjective and neutral, or all there are
    labels: Sequence[str] | None = None,
    *,
    # what the file calls source, target, text, label, split, where it is something else
    columns: Mapping[str, str] | None = None,
    limit: int | None = None,  # at most so many rows, from the beginning, >= 1
    piece: int = _PIECE,  # pairs in memory at a time, of a file of the WNC
) -> TrainingFile:
    """Find out what a file holds. Raises: FileError or InputError naming the row, line or column that is wrong."""
    path = Path(path)
    if limit is not None:
        check_number(limit, "limit", 1, whole=True)
    if _is_wnc(path, {"source", "target", "text", "label", *(columns or {}).values()}):
        return TrainingFile(
            path,
            "pairs",
            _two(labels),
            lambda: (rows.drop(columns="split") for rows in iterate_wnc(path, piece, limit)),
        )
    frame = _renamed(read_table(path), dict(columns or {})).head(limit or sys.maxsize)
    if {"source", "target"} <= set(frame.columns):
        kind = "pairs"
        names = _two(labels)
        required_columns = ["source", "target"]
    elif {"text", "label"} <= set(frame.columns):
        kind = "texts"
        required_columns = ["text", "label"]
        frame, names = _numbered(frame, labels)
    else:
        raise FileError(
            f"there are neither columns source and target nor text and label; the columns are "
            f"{', '.join(map(str, frame.columns))}. Say which they are with --source-column and "
            f"--target-column, or with --text-column and --label-column"
        )
    for column in set(required_columns) - {"label"}:
        check_texts(frame[column], column=column, empty=False)
    if "split" in frame:
        _check_splits(frame.split)
    frame = frame[[*required_columns, *["split"] * ("split" in frame)]].reset_index(drop=True)
    return TrainingFile(path, kind, names, lambda: iter((frame,)))


def _is_wnc(path: Path, names: set[str]) -> bool:
    """Whether the first line has the corpus' tabs rather than a header with any of these names."""
    if not path.is_file() or path.suffix.lower() in set(_TABLES) - {".tsv"}:
        return False
    with open(path, encoding="utf-8", errors="replace") as lines:
        fields = lines.readline().rstrip("\n").split("\t")
    return fields[0] == WNC_COLUMNS[0] or (len(fields) in (5, 7) and not names & set(fields))


def _renamed(frame: pd.DataFrame, columns: Mapping[str, str]) -> pd.DataFrame:
    """The table with our names for its columns."""
    for theirs in columns.values():
        if theirs not in frame:
            raise FileError(
                f"there is no column {theirs}; the columns are {', '.join(map(str, frame.columns))}"
            )
    hidden = [ours for ours in columns if ours in frame and ours not in columns.values()]
    return frame.drop(columns=hidden).rename(
        columns={theirs: ours for ours, theirs in columns.items()}
    )


def _two(labels: Sequence[str] | None) -> tuple[str, ...]:
    names = LABELS if labels is None else tuple(labels)
    if len(set(names)) != 2 or len(names) != 2:
        raise InputError(
            f"labels: pairs have two styles, the source's and the target's; got {', '.join(names)}"
        )
    return names


def _numbered(
    frame: pd.DataFrame, labels: Sequence[str] | None
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """The frame with its labels as numbers, and their names."""
    for row, label in enumerate(frame.label):
        if label is None or label != label or not str(label).strip():
            raise InputError(
                f"expected a label, got {describe(label)}; fill it in or drop the row",
                column="label",
                row=row,
            )
    row_labels = _one_spelling(frame.label.map(str), labels)
    names = tuple(sorted(set(row_labels))) if labels is None else tuple(labels)
    if not 2 <= len({_folded(name) for name in names}) == len(names) <= _MOST_LABELS:
        raise InputError(
            f"labels: expected 2 to {_MOST_LABELS} different names of styles, got {len(names)}: "
            f"{', '.join(names[:5])}"
        )
    unknown = np.flatnonzero(~row_labels.isin(names))
    if len(unknown):
        raise InputError(
            f"{row_labels.iloc[unknown[0]]!r} is none of {', '.join(names)}",
            column="label",
            row=unknown[0],
        )
    return frame.assign(label=row_labels.map(names.index).astype(int)), names


def _folded(label: str) -> str:
    return label.strip().casefold()


def _one_spelling(written: pd.Series, labels: Sequence[str] | None) -> pd.Series:
    """Labels that differ in capitals or outer spaces as one: as it is named, or else as it is written most often."""
    spellings = written.value_counts()
    names = {_folded(name): name.strip() for name in reversed(spellings.index)}
    names |= {_folded(name): name for name in labels or ()}
    merged = [name for name in spellings.index if names[_folded(name)] != name]
    if merged:
        pairs = ", ".join(f"{name!r} as {names[_folded(name)]!r}" for name in merged[:5])
        warnings.warn(
            f"labels that differ in capitals or outer spaces count as one: {pairs}", stacklevel=4
        )
    return written.map(lambda name: names[_folded(name)])


def _check_splits(splits) -> None:
    for row, split in enumerate(splits):
        try:
            check_choice(split, "split", _SPLITS)
        except InputError as error:
            raise error.at(argument=None, column="split", row=row) from None


_MOST_HELD = (
    2_000  # rows held out for validation, at most; an interval is narrow enough with that many
)


_SHARE = 0.1
_FEWEST_ASIDE = 20  # pairs: fewer do not show whether a judge knows the style


@dataclass(frozen=True)
class Plan:
    """What a run will train on and what it will be measured on."""

    stream: Stream
    held: dict[
        str, pd.DataFrame
    ]  # "validation", and "test" if the file names it -> text, label, pair, weight
    rows: dict[str, int]  # rows of each split
    classes: list[int]  # training texts of each class
    left_out: int  # training rows that hold a held-out text, see `same_text`


def plan_run(
    opened: TrainingFile,
    validation: TrainingFile | None = None,  # rows to hold out, from a file of their own
    *,
    # of the rows of each class to hold out, between 0 and 1, where no file and no column says which; None: a tenth, and
    # of pairs at least 20 where that leaves as many to learn from
    share: float | None = None,
    seed: int = 0,  # of that choice
) -> Plan:
    """Hold rows out, and count the rest; two or three passes over the file.

    Raises: InputError if a class has too few rows to learn from and to measure.
    """
    if share is not None:
        check_number(share, "share", 0, 1, above=True, below=True)
    limits = _limits(opened, share, seed) if validation is None else {}
    held_pieces = {
        split: [rows[side == split] for rows, side in _sides(opened, limits, seed)]
        for split in _SPLITS[1:]
    }
    if validation is not None:
        held_pieces["validation"] = list(validation.pieces())
    held = {
        split: pd.concat(rows, ignore_index=True)
        for split, rows in held_pieces.items()
        if sum(map(len, rows))
    }
    texts = {
        same_text(text)
        for rows in held.values()
        for column in _text_columns(opened)
        for text in rows[column]
    }
    counted = _count(opened, limits, seed, texts)
    # as `balanced_weights`
    weights = sum(counted.classes) / (len(opened.labels) * np.array(counted.classes, dtype=float))

    def pieces() -> Iterator[pd.DataFrame]:
        for rows, side in _sides(opened, limits, seed):
            training_rows = rows[_to_train(opened, rows, side, texts)]
            if len(training_rows):
                yield _labelled(training_rows, opened.kind, weights)

    measured = {split: _labelled(rows, opened.kind) for split, rows in held.items()}
    measured = {
        split: sentences.assign(weight=balanced_weights(sentences.label))
        for split, sentences in measured.items()
    }
    _check_classes(measured["validation"], opened.labels)
    return Plan(
        Stream(pieces, tuple(counted.pairs), sum(counted.classes)),
        measured,
        {"train": counted.rows, **{split: len(rows) for split, rows in held.items()}},
        counted.classes,
        counted.left_out,
    )


def _text_columns(opened: TrainingFile) -> list[str]:
    return ["source", "target"] if opened.kind == "pairs" else ["text"]


def _keys(opened: TrainingFile, rows: pd.DataFrame, seed: int) -> np.ndarray:
    """A number for each row from the checksum of its text; texts that count as one have one."""
    texts = rows[_text_columns(opened)[0]]
    return np.array(
        [
            int.from_bytes(
                hashlib.sha256(f"{seed}\0{text}".encode("utf-8", "replace")).digest()[:8], "big"
            )
            for text in map(same_text, texts)
        ],
        dtype=np.uint64,
    )


def _classes_of(opened: TrainingFile, rows: pd.DataFrame) -> np.ndarray:
    """By what the held-out rows are balanced: the class of a text; pairs are all alike."""
    return rows.label.to_numpy() if opened.kind == "texts" else np.zeros(len(rows), dtype=int)


def _limits(opened: TrainingFile, share: float | None, seed: int) -> dict[int, int]:
    """For each class the largest key that is held out; empty where the column `split` names rows for validation."""
    class_keys: dict[int, list[np.ndarray]] = {}
    for piece in opened.pieces():
        rows = piece
        if "split" in rows:
            if (rows.split == "validation").any():
                return {}
            rows = rows[rows.split == "train"]
        keys = _keys(opened, rows, seed)
        classes = _classes_of(opened, rows)
        for which in np.unique(classes):
            class_keys.setdefault(int(which), []).append(keys[classes == which])
    limits = {}
    for which, parts in class_keys.items():
        keys = np.unique(np.concatenate(parts))
        if len(keys) < 2:
            what = "pairs" if opened.kind == "pairs" else f"texts labelled {opened.labels[which]}"
            raise InputError(
                f"there is one row only of {what}, or all are alike but for numbers and punctuation; a class needs one to learn from and one to measure, "
                f"and better hundreds"
            )
        wanted = round((_SHARE if share is None else share) * len(keys))
        if share is None and opened.kind == "pairs":
            wanted = max(wanted, min(_FEWEST_ASIDE, len(keys) // 2))
        number = min(max(1, wanted), _MOST_HELD // max(len(class_keys), 1), len(keys) - 1)
        limits[which] = int(np.partition(keys, number - 1)[number - 1])
    return limits


def _sides(
    opened: TrainingFile, limits: dict[int, int], seed: int
) -> Iterator[tuple[pd.DataFrame, np.ndarray]]:
    """Each piece with the split of its rows."""
    for piece in opened.pieces():
        rows = piece
        side = (
            rows.split.to_numpy(dtype=object)
            if "split" in rows
            else np.full(len(rows), "train", dtype=object)
        )
        if limits and len(rows):
            least = np.array(
                [limits.get(int(which), 0) for which in _classes_of(opened, rows)], dtype=np.uint64
            )
            side = np.where(
                (side == "train") & (_keys(opened, rows, seed) <= least), "validation", side
            )
        yield rows, side


def same_text(
    text: str,
) -> str:  # alike for texts that count as one
    """A text as it is compared with those held out: capitals, spaces, punctuation, which digits a number has and forms
    of Unicode make no other text of it."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    words = re.sub(r"[^\w\s]|_", "", re.sub(r"\d+([.,]\d+)*", "0", folded)).split()
    return " ".join(words or folded.split())


def _to_train(
    opened: TrainingFile, rows: pd.DataFrame, side: np.ndarray, held: set[str]
) -> np.ndarray:
    """Which rows are trained on: those of the training side that share no text with what is held out."""
    overlaps = [
        rows[column].map(same_text).isin(held).to_numpy() for column in _text_columns(opened)
    ]
    return (side == "train") & ~np.any(overlaps, axis=0)


@dataclass(frozen=True)
class _Counts:
    rows: int
    pairs: list[int]  # of each piece that holds any
    classes: list[int]  # texts of each class
    left_out: int


def _count(opened: TrainingFile, limits: dict[int, int], seed: int, held: set[str]) -> _Counts:
    pairs = []
    classes = np.zeros(len(opened.labels), dtype=int)
    left_out = 0
    for rows, side in _sides(opened, limits, seed):
        training_rows = rows[_to_train(opened, rows, side, held)]
        left_out += int((side == "train").sum()) - len(training_rows)
        if len(training_rows):
            pairs.append(len(training_rows))
            classes += np.bincount(
                _labelled(training_rows, opened.kind).label, minlength=len(classes)
            )
    for name, number in zip(opened.labels, classes):
        if not number:
            raise InputError(
                f"there is no text to train on in style {name}; give some, or hold out fewer"
            )
    return _Counts(sum(pairs), pairs, classes.tolist(), left_out)


def _labelled(rows: pd.DataFrame, kind: str, weights: np.ndarray | None = None) -> pd.DataFrame:
    """Sentences of rows: text, label, pair (place of the row), and weight where those of the classes are given."""
    place = np.arange(len(rows))
    if kind == "texts":
        sentences = pd.DataFrame(
            {"text": tokenizable(rows.text), "label": rows.label.to_numpy(), "pair": place}
        )
    else:
        sides = [tokenizable(rows[column], column) for column in ("source", "target")]
        frame = pd.DataFrame(
            {
                "text": np.array(sides, dtype=object).T.ravel(),
                "label": np.tile([0, 1], len(rows)),
                "pair": np.repeat(place, 2),
            }
        )
        control = np.repeat((rows.source.to_numpy() == rows.target.to_numpy()), 2) & (
            frame.label.to_numpy() == 0
        )
        sentences = frame[~control].reset_index(drop=True)
    return sentences if weights is None else sentences.assign(weight=weights[sentences.label])


def _check_classes(sentences: pd.DataFrame, labels: Sequence[str]) -> None:
    absent = sorted(set(range(len(labels))) - set(sentences.label))
    if absent:
        raise InputError(
            f"validation: no text of style {labels[absent[0]]} is held out, so nothing can be measured "
            f"of it; add some"
        )
