"""An evaluation that nobody computed, the folder it is written to, and all explorers by name."""

from dataclasses import dataclass

import pandas as pd
import pytest

from tsteval.core.metric import Metric, Scores
from tsteval.evaluation import Evaluation
from tsteval.explorers import catalogue as catalogue_page
from tsteval.explorers import evaluation as evaluation_page
from tsteval.runs.results import SystemScores


@dataclass(frozen=True)
class Sti(Metric):
    name = "sti"
    needs = ("source", "output")
    columns = ("sti",)
    headings = ("STI",)


@dataclass(frozen=True)
class Cps(Metric):
    name = "cps"
    needs = ("source", "output")
    columns = ("cps",)
    headings = ("CPS",)


@pytest.fixture(scope="module")
def evaluation():
    """Four outputs of two systems with scores that nobody computed."""
    table = pd.DataFrame(
        {
            "system": ["copy", "copy", "edit", "edit"],
            "source": ["A fine bridge.", "A great dam."] * 2,
            "output": ["A fine bridge.", "A great dam.", "A bridge.", "<i>A great</i> lake."],
            "references": [("A bridge.",), ("A dam.",)] * 2,
        }
    )
    written = {"sti": [0.0, 0.0, 0.8, -0.3], "cps": [1.0, 1.0, 0.9, 0.4]}
    probability = [0.1, 0.2, 0.9, 0.6]
    scores = {name: Scores(pd.DataFrame({name: values})) for name, values in written.items()}
    return SystemScores(
        table.assign(**written, output_target_probability=probability),
        [Sti(), Cps()],
        scores,
        {},
        n_boot=20,
    )


@pytest.fixture
def explorers(evaluation):
    """Every explorer of the package by name, as a function that opens it."""
    return {
        **catalogue_page.EXPLORERS,
        "evaluation": lambda: evaluation_page.evaluation_explorer(evaluation),
    }


@pytest.fixture
def folder(tmp_path, evaluation):
    """A folder as `tsteval evaluate` writes it."""
    from argparse import Namespace

    from tsteval.cli.app import Printing
    from tsteval.cli.evaluate import write_results
    from tsteval.cli.request import Reading, Request
    from tsteval.runs.settings import Settings

    request = Request(
        Settings(n_boot=20), Reading(), Printing(report=("json",)), evaluation.metrics, None, {}
    )
    table = evaluation.per_pair.assign(input=evaluation.per_pair.source)
    write_results(
        Evaluation(table, evaluation.metrics, evaluation.scores, {}, n_boot=20),
        {"file": "x"},
        request,
        Namespace(output=str(tmp_path / "results")),
    )
    return tmp_path / "results"
