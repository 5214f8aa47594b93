"""An oracle and its check: the same numbers from other code, and under every change of form that must not matter."""

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

WORDS = (
    "the",
    "mill",
    "was",
    "built",
    "in",
    "1932",
    "old",
    "stunning",
    "river",
    "by",
    "a",
    "man",
    ",",
    ".",
    "well-known",
    "don't",
    "$5",
    "3.5",
    "naïve",
    "Ärger",
    "of",
    "is",
    "it",
    "claimed",
    "that",
    "very",
    "good",
    "Bridge",
)


@dataclass(frozen=True)
class Oracle:
    """A public function, what it is held against, and what must not change its result."""

    name: str  # module.function
    library: str  # whose computation it is held against
    ours: Callable  # (*columns) -> (N,) or (N, K) numbers; one number for a function of the whole
    theirs: Callable  # the same from the other code
    draw: Callable  # (generator, n) -> tuple of columns, N rows each
    near: float = 1e-9
    rows: bool = True  # whether a row's number follows from that row alone
    texts: bool = False  # whether the columns are texts: they may come in any container
    whole_is_symmetric: bool = (
        True  # for a function of the whole: whether the order of rows is nothing to it
    )
    decomposed: bool = (
        True  # of texts: whether letters apart from their accents (NFD, on every side) are the same
    )
    threads: bool = False  # whether PyTorch computes it
    needs: str = ""  # a corpus or model that has to be there


def sentence(generator, longest=12):
    return " ".join(generator.choice(WORDS, size=generator.integers(1, longest + 1)))


def near_copy(generator, text):
    """A text with some words dropped, doubled, replaced or moved."""
    words = text.split()
    for _ in range(generator.integers(0, 4)):
        place = generator.integers(len(words))
        match generator.integers(4):
            case 0:
                words[place] = str(generator.choice(WORDS))
            case 1:
                words.insert(place, str(generator.choice(WORDS)))
            case 2 if len(words) > 1:
                words.pop(place)
            case 3:
                words[place], words[-1] = words[-1], words[place]
    return " ".join(words)


def text_pairs(generator, n):
    """Outputs and references, from copies to strangers."""
    references = [sentence(generator) for _ in range(n)]
    outputs = [
        near_copy(generator, text) if generator.random() < 0.8 else sentence(generator)
        for text in references
    ]
    return outputs, references


def distributions(classes):
    """Rows of three tables: sources, outputs, targets' numbers."""

    def draw(generator, n):
        p, q = (generator.dirichlet(np.full(classes, 0.7), size=n) for _ in range(2))
        p[0], q[0] = np.eye(classes)[0], np.eye(classes)[-1]  # sure of both
        return p, q, generator.integers(classes, size=n)

    return draw


def columns(*kinds):
    """Columns of numbers: normal, tied (small whole numbers), skewed, or positive."""

    def draw(generator, n):
        shared = generator.normal(size=n)
        made = {
            "normal": lambda: shared + generator.normal(size=n),
            "tied": lambda: np.round(2 * shared + generator.normal(size=n)),
            "skewed": lambda: np.exp(shared + 0.5 * generator.normal(size=n)),
            "groups": lambda: np.arange(n) // 4,
        }
        return tuple(made[kind]() for kind in kinds)

    return draw


CONTAINERS = {
    "tuple": tuple,
    "array": lambda column: np.array(column, dtype=object),
    "generator": iter,
    "Series": lambda column: pd.Series(list(column), index=range(7, 7 + len(column))[::-1]),
    "categorical": lambda column: pd.Series(list(column)).astype("category"),
    "pyarrow": lambda column: pd.Series(list(column), dtype=pd.ArrowDtype(pa.string())),
    "polars": lambda column: pl.Series(list(column)),
}


def numbers(result):
    """Whatever a function returns, as an array of floats."""
    if isinstance(result, pd.DataFrame):
        result = result.to_numpy(float)
    return np.asarray(result, dtype=float)


def take(data, rows):
    return tuple(
        [column[row] for row in rows] if isinstance(column, list) else column[rows]
        for column in data
    )


def changes_of(oracle):
    """Names of the changes of form that are tried for an oracle."""
    names = (
        ["order of rows", "repeated rows"]
        if oracle.rows
        else ["order of rows"] * oracle.whole_is_symmetric
    )
    if oracle.rows:
        names.append("one row alone")
    if oracle.texts:
        names += ["line ends"] + ["NFD"] * oracle.decomposed
    names += ["threads"] * oracle.threads
    return names + (["container: " + ", ".join(CONTAINERS)] if oracle.texts else ["list"])


LINE_ENDS = {
    "LF": lambda text: text.replace(" ", "\n", 1),
    "CR LF": lambda text: text.replace(" ", "\r\n", 1),
}


def rewritten(data, change):
    """The columns with each of their texts changed."""
    return [
        [change(text) for text in column] if isinstance(column[0], str) else column
        for column in data
    ]


def check_writing(oracle, data, found):
    """Assert that it makes no difference which program wrote the texts, or how many threads read them."""
    if oracle.texts:
        changes = [
            *LINE_ENDS.values(),
            *[lambda text: unicodedata.normalize("NFD", text)] * oracle.decomposed,
        ]
        for change in changes:
            np.testing.assert_allclose(
                numbers(oracle.ours(*rewritten(data, change))),
                found,
                atol=max(oracle.near, 1e-12),
                rtol=0,
            )
    if oracle.threads:
        import torch

        before = torch.get_num_threads()
        try:
            for threads in (1, 2, 3):
                torch.set_num_threads(threads)
                np.testing.assert_allclose(
                    numbers(oracle.ours(*data)), found, atol=oracle.near, rtol=0
                )
        finally:
            torch.set_num_threads(before)


def check_changes(oracle, data, generator):
    """Assert that no change of form moves a number."""
    n = len(data[0])
    found = numbers(oracle.ours(*data))
    check_writing(oracle, data, found)
    order = generator.permutation(n)
    if oracle.rows:
        np.testing.assert_allclose(
            numbers(oracle.ours(*take(data, order))), found[order], atol=oracle.near, rtol=0
        )
        twice = np.concatenate([np.arange(n), order])
        np.testing.assert_allclose(
            numbers(oracle.ours(*take(data, twice))), found[twice], atol=oracle.near, rtol=0
        )
        for row in range(min(n, 3)):
            alone = numbers(oracle.ours(*take(data, np.array([row]))))
            np.testing.assert_allclose(alone, found[[row]], atol=oracle.near, rtol=0)
    elif oracle.whole_is_symmetric:
        np.testing.assert_allclose(
            numbers(oracle.ours(*take(data, order))), found, atol=max(oracle.near, 1e-9), rtol=0
        )
    forms = CONTAINERS.values() if oracle.texts else [list]
    for form in forms:
        changed = [
            form(column) if not oracle.texts or isinstance(column[0], str) else column
            for column in data
        ]
        np.testing.assert_allclose(
            numbers(oracle.ours(*changed)), found, atol=max(oracle.near, 1e-12), rtol=0
        )
