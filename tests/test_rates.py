"""How often tests err and intervals hold the truth; the table of it, made by `python -m tests.test_rates`."""

import inspect
import math
import sys
from pathlib import Path

import pytest

from tests.peers.chapters import held
from tests.rates import DEAR, STUDIES, simulated

TABLE = Path(__file__).parent / "RATES.md"
HEAD = (
    "| test or interval | kind | rows | distribution | rate | standard error | trials |\n"
    "|---|---|---|---|---|---|---|\n"
)
CELLS = {
    f"| `{one.name}` | {one.kind} | {n} | {shape} |": (one, n, shape)
    for one in STUDIES.values()
    for n, shape in one.cells
}
WANTED = {"test": 0.05, "interval": 0.95}


def written():
    """The table's rows: a cell's beginning -> rate, standard error, trials."""
    lines = TABLE.read_text(encoding="utf-8").split(HEAD)[1].split("\n\n")[0].splitlines()
    parts = [line.split("|") for line in lines]
    return {"|".join(part[:5]) + "|": tuple(map(float, part[5:8])) for part in parts}


def test_the_table_has_every_cell():
    assert list(written()) == list(CELLS), "simulate anew: python -m tests.test_rates [NAME ...]"


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.all) if one.trials == DEAR else name
        for name, one in STUDIES.items()
    ],
)
def test_a_smaller_simulation_finds_the_rate_of_the_table(name):
    """A tenth of the trials, with other draws, of a study's first cell: within four standard errors of both."""
    one, (n, shape) = STUDIES[name], STUDIES[name].cells[0]
    share, error, _ = written()[f"| `{one.name}` | {one.kind} | {n} | {shape} |"]
    found = simulated(one, n, shape, one.trials // 10, seed=1)
    spread = math.hypot(error, math.sqrt(max(share * (1 - share), 0.02) / found.trials))
    assert abs(found.share - share) < 4 * spread


@pytest.mark.parametrize("name", STUDIES)
def test_a_rate_that_is_off_is_told_where_the_function_is_described(name):
    """A test that errs more often than in 5%, or an interval that holds the truth less often than in 95%, by more than
    three standard errors and two points: the worst rate stands in the docstring."""
    one = STUDIES[name]
    side = {"test": 1, "interval": -1}[STUDIES[name].kind]
    rates = [
        written()[f"| `{one.name}` | {one.kind} | {n} | {shape} |"][:2] for n, shape in one.cells
    ]
    off = [rate for rate, error in rates if side * (rate - WANTED[one.kind]) > max(3 * error, 0.02)]
    if off:
        assert f"{100 * (max if side > 0 else min)(off):.0f}%" in (
            inspect.getdoc(held(one.name)) or ""
        )


def simulate(names):
    """Write the table, with the rates of these studies anew; of all where none is named."""
    before, _, after = TABLE.read_text(encoding="utf-8").partition(HEAD)
    known = written() if names else {}
    rows = []
    for place, (cell, (one, n, shape)) in enumerate(CELLS.items()):
        if not names or any(name in one.name for name in names):
            print(f"{place + 1} of {len(CELLS)} {cell}", file=sys.stderr)
            rate = simulated(one, n, shape)
            known[cell] = rate.share, rate.error, rate.trials
        share, error, trials = known[cell]
        rows.append(f"{cell} {share:.3f} | {error:.3f} | {trials:.0f} |")
    TABLE.write_text(
        before + HEAD + "\n".join(rows) + "\n\n" + after.partition("\n\n")[2], encoding="utf-8"
    )


if __name__ == "__main__":
    simulate(sys.argv[1:])
