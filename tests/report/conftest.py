"""An evaluation of two systems by metrics that are stand-ins, with texts that mean no good."""

import numpy as np
import pandas as pd
import pytest

from tsteval.core.metric import Metric, Scores, sign
from tsteval.evaluation import evaluate

HOSTILE = [
    "<script>alert(1)</script> & $x_1^2$ 100%",
    "a | b [x](https://x.y) `c` **d** \\input{x}",
    '\x1b[2J \u202e {{ 7 * 7 }} #1 ~ "q"',
]


def stand_in(name, columns, better="higher"):
    def score(table, models, unit="x"):
        values = np.linspace(-0.5, 0.5, len(table))
        return Scores(pd.DataFrame(dict.fromkeys(columns, values)), signature=sign(name, unit=unit))

    return Metric(
        name,
        ("source", "output"),
        columns,
        score,
        better=better,
        headings=tuple(column.upper() for column in columns),
    )


@pytest.fixture(scope="session")
def result():
    rows = [
        {"system": system, "source": f"{text} one", "output": f"{text} {system}", "reference": text}
        for system in ("<i>one</i>", "two_%")
        for text in HOSTILE
    ]
    return evaluate(
        rows,
        [
            "bleu",
            stand_in("sti", ("sti", "normalized_intensity")),
            stand_in("cps", ("cps",)),
            stand_in("own", ("own",), "lower"),
        ],
        n_boot=50,
    )
