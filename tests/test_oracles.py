"""Public numbers against other code's, and under every change of form that must not matter; the README's table of
it."""

import functools
import importlib
import inspect
import re
import unicodedata
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import tests.oracles.counting
import tests.oracles.insides
import tests.oracles.models
import tests.oracles.samples
import tests.oracles.words  # noqa: F401  add their oracles
import tsteval
from tests.oracles.catalogue import ELSEWHERE, ORACLES
from tests.oracles.registry import changes_of, check_changes, numbers
from tests.oracles.rooms import NO_COMPUTATION
from tests.test_public_functions import exported

CASES = 5  # draws of an oracle, each of so many rows:
ROWS = 12
TABLE = Path(__file__).parent / "README.md"


def need(corpus):
    """Skip a test whose corpus NLTK does not have here."""
    import nltk

    for place in (corpus, f"{corpus}.zip"):
        try:
            return nltk.data.find(place)
        except LookupError:
            continue
    pytest.skip(f"needs NLTK's {corpus}")


@pytest.mark.parametrize("name", ORACLES)
def test_equals_other_code_and_does_not_depend_on_form(name):
    oracle = ORACLES[name]
    if oracle.needs:
        need(oracle.needs)
    for seed in range(CASES):
        generator = np.random.default_rng(seed)
        data = oracle.draw(generator, ROWS)
        np.testing.assert_allclose(
            numbers(oracle.ours(*data)), numbers(oracle.theirs(*data)), atol=oracle.near, rtol=1e-9
        )
        check_changes(oracle, data, generator)


def rows_of_table():
    """The table in the tests' README, a line an oracle."""
    for name, oracle in ORACLES.items():
        yield f"| `{name}` | {oracle.library} | {', '.join(changes_of(oracle))} | {CASES} x {ROWS} |"


def test_the_readme_lists_every_oracle():
    written = [
        line
        for line in TABLE.read_text(encoding="utf-8").split("| function |")[1].splitlines()[2:]
        if line
    ]
    assert written == list(rows_of_table()), "write the table anew: python -m tests.test_oracles"


def held(name):
    """The function that an oracle's name means, where it was written."""
    parts = name.split(":")[0].split(".")
    for place in range(len(parts) - 1, 0, -1):
        try:
            module = importlib.import_module("tsteval." + ".".join(parts[:place]))
        except ModuleNotFoundError:
            continue
        return functools.reduce(getattr, parts[place:], module)
    raise AssertionError(name)


def test_every_number_of_a_chapter_has_an_oracle_or_a_reason():
    """Functions that say of their result that it is a float or an array."""
    known = {id(held(name)) for name in ORACLES}
    reasons = [name for names in ELSEWHERE.values() for name in names.split()]
    assert len(reasons) == len(set(reasons))
    found = set()
    for path in sorted(Path(tsteval.__file__).parent.glob("[a-z]*.py")):
        module = importlib.import_module(f"tsteval.{path.stem}")
        for name in module.__all__:
            function = getattr(module, name)
            if not inspect.isfunction(function) or function.__module__ != module.__name__:
                continue
            told = inspect.formatannotation(inspect.signature(function).return_annotation)
            if re.search(r"float|ndarray|Interval|\bint\b", told) and id(function) not in known:
                found.add(f"{path.stem}.{name}")
    assert found == set(reasons), found ^ set(reasons)


def test_every_number_of_a_room_has_an_oracle_or_a_reason():
    """Functions beneath the chapters that say of their result that it is a number or an array."""
    known = {id(held(name)) for name in ORACLES}
    found = set()
    reasons = [name for names in NO_COMPUTATION.values() for name in names.split()]
    for name, function in exported().items():
        room = name.partition(".")[0]
        if (
            not inspect.isfunction(function)
            or name.count(".") < 2
            or room in ("cli", "explorers", "report")
        ):
            continue
        told = inspect.formatannotation(inspect.signature(function).return_annotation)
        if re.search(r"float|ndarray|Interval|\bint\b", told) and id(function) not in known:
            found.add(name)
    assert len(reasons) == len(set(reasons)) and found == set(reasons), found ^ set(reasons)


WRITTEN = [
    {
        "source": "The naïve king asked the well-\nknown queen",
        "output": "The king asked\nthe naïve queen.",
        "reference": "The Ärger of the\nnaïve king was known.",
        "input": "What did the naïve\nking ask?",
    },
    {
        "source": "Zoë was 1,932 days\nold",
        "output": "Zoë was old.",
        "reference": "Zoë is très old",
        "input": "Who is Zoë?",
    },
]


@pytest.mark.parametrize(
    "names",
    [
        [
            "bleu",
            "rouge",
            "chrf",
            "meteor",
            "ngram",
            "amelioration_1",
            "amelioration_2",
            "readability",
            "formality",
        ],
        pytest.param(
            [
                "sti",
                "cps",
                "fluency",
                "perplexity",
                "wmd",
                "bert_score",
                "content",
                "toxicity",
                "acceptability",
                "avoided_answer",
                "grounded_in_context",
                "relevance",
            ],
            marks=pytest.mark.slow,
        ),
    ],
)
def test_no_metric_depends_on_the_program_that_wrote_the_texts(names):
    from tsteval.evaluation import evaluate

    found = []
    for form, end in (("NFC", "\n"), ("NFD", "\r\n")):
        table = [
            {
                column: unicodedata.normalize(form, text).replace("\n", end)
                for column, text in row.items()
            }
            for row in WRITTEN
        ]
        found.append(evaluate(table, names, n_boot=20).per_pair)
    pd.testing.assert_frame_equal(*found, check_exact=True)
    assert found[0].select_dtypes("number").notna().any().all()  # else equal for want of a score


if __name__ == "__main__":
    head = TABLE.read_text(encoding="utf-8").split("| function |")[0]
    lines = [
        "| function | held against | does not change with | cases |",
        "|---|---|---|---|",
        *rows_of_table(),
    ]
    TABLE.write_text(head + "\n".join(lines) + "\n", encoding="utf-8")
