"""Metrics of one's own, as tests need them."""

from dataclasses import dataclass
from typing import Any

from tsteval.core.metric import Metric, Scores


def metric_of(score, name="length", columns=None, needs=("output",), **attributes):
    """A metric that scores rows by a function of the rows and the models."""
    described = {
        "name": name,
        "needs": needs,
        "columns": columns or (name,),
        "score": lambda self, rows, models=None: score(rows, models),
        **attributes,
    }
    return type(name.title(), (Metric,), described)()


@dataclass(frozen=True)
class Length(Metric):
    """How long an output is; a row's number follows from that row, and may be stored."""

    unit: str = "words"  # words | characters
    weights: Any = None  # of no use

    name = "length"
    needs = ("output",)
    columns = ("length",)
    by_row = True
    version = "1"

    calls = []  # the outputs that were scored, call by call; no part of what it does

    def score(self, rows, models=None):
        self.calls.append(list(rows.output))
        values = rows.output.map(
            len if self.unit == "characters" else lambda text: len(text.split())
        )
        return Scores({"length": values, "shouted": rows.output.str.upper()})
