"""Public numbers against other code's, and under every change of form that must not matter; the README's table of
it."""
import functools
import importlib
import inspect
import re
from pathlib import Path

import numpy as np
import pytest

import tests.oracles.models  # noqa: F401  adds the oracles of models
import tsteval
from tests.oracles.catalogue import ELSEWHERE, ORACLES
from tests.oracles.registry import changes_of, check_changes, numbers

CASES = 5  # draws of an oracle, each of so many rows:
ROWS = 12
TABLE = Path(__file__).parent / "README.md"


@pytest.mark.parametrize("name", ORACLES)
def test_equals_other_code_and_does_not_depend_on_form(name):
    oracle = ORACLES[name]
    for seed in range(CASES):
        generator = np.random.default_rng(seed)
        data = oracle.draw(generator, ROWS)
        np.testing.assert_allclose(numbers(oracle.ours(*data)), numbers(oracle.theirs(*data)), atol=oracle.near,
                                   rtol=1e-9)
        check_changes(oracle, data, generator)


def rows_of_table():
    """The table in the tests' README, a line an oracle."""
    for name, oracle in ORACLES.items():
        yield f"| `{name}` | {oracle.library} | {', '.join(changes_of(oracle))} | {CASES} x {ROWS} |"


def test_the_readme_lists_every_oracle():
    written = [line for line in TABLE.read_text(encoding="utf-8").split("| function |")[1].splitlines()[2:] if line]
    assert written == list(rows_of_table()), "write the table anew: python -m tests.test_oracles"


def held(name):
    """The function that an oracle's name means, where it was written."""
    parts = name.split(":")[0].split(".")
    for place in range(len(parts) - 1, 0, -1):
        try: module = importlib.import_module("tsteval." + ".".join(parts[:place]))
        except ModuleNotFoundError: continue
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
            if not inspect.isfunction(function) or function.__module__ != module.__name__: continue
            told = inspect.formatannotation(inspect.signature(function).return_annotation)
            if re.search(r"float|ndarray|Interval|\bint\b", told) and id(function) not in known:
                found.add(f"{path.stem}.{name}")
    assert found == set(reasons), found ^ set(reasons)


if __name__ == "__main__":
    head = TABLE.read_text(encoding="utf-8").split("| function |")[0]
    lines = ["| function | held against | does not change with | cases |", "|---|---|---|---|", *rows_of_table()]
    TABLE.write_text(head + "\n".join(lines) + "\n", encoding="utf-8")
