"""Public numbers against other code's, and under every change of form that must not matter; the README's table of
it."""
from pathlib import Path

import numpy as np
import pytest

import tests.oracles.models  # noqa: F401  adds the oracles of models
from tests.oracles.catalogue import ORACLES
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


if __name__ == "__main__":
    head = TABLE.read_text(encoding="utf-8").split("| function |")[0]
    lines = ["| function | held against | does not change with | cases |", "|---|---|---|---|", *rows_of_table()]
    TABLE.write_text(head + "\n".join(lines) + "\n", encoding="utf-8")
