"""An evaluation of two systems by metrics that are stand-ins, with texts that mean no good."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

from tsteval.core.metric import Metric, Scores
from tsteval.evaluation import evaluate

HOSTILE = [
    "<script>alert(1)</script> & $x_1^2$ 100%",
    "a | b [x](https://x.y) `c` **d** \\input{x}",
    '\x1b[2J \u202e {{ 7 * 7 }} #1 ~ "q"',
]


@dataclass(frozen=True)
class StandIn(Metric):
    unit: str = "x"

    name = "stand_in"
    needs = ("source", "output")
    columns = ("stand_in",)

    def score(self, rows, models=None):
        values = np.linspace(-0.5, 0.5, len(rows))
        return Scores(pd.DataFrame(dict.fromkeys(self.columns, values)))


class Sti(StandIn):
    name = "sti"
    columns = ("sti", "normalized_intensity")
    headings = ("STI", "NORMALIZED_INTENSITY")


class Cps(StandIn):
    name = "cps"
    columns = ("cps",)
    headings = ("CPS",)


class Own(StandIn):
    name = "own"
    columns = ("own",)
    better = "lower"
    headings = ("OWN",)


@pytest.fixture(scope="session")
def result():
    rows = [
        {"system": system, "source": f"{text} one", "output": f"{text} {system}", "reference": text}
        for system in ("<i>one</i>", "two_%")
        for text in HOSTILE
    ]
    return evaluate(rows, ["bleu", Sti, Cps, Own], n_boot=50)
