"""Scores in other people's tools: trackers by their public calls, and every example of the how-to page."""

import importlib.util
import json
import os
import re
import subprocess
import sys
import types
import typing
from pathlib import Path

import pytest

from tsteval.core.checks import InputError
from tsteval.evaluation import evaluate
from tsteval.runs.tracking import _tracked_numbers, _tracked_words

ROOT = Path(__file__).parents[2]
CELLS = [
    (cell["cell_type"], "".join(cell["source"]))
    for cell in json.loads((ROOT / "nbs" / "how_to_in_your_tools.ipynb").read_text("utf-8"))[
        "cells"
    ]
]
PAGE = "\n".join(source for kind, source in CELLS if kind == "markdown")
BEFORE = next(source for kind, source in CELLS if kind == "code")  # what every snippet goes on from
PRINTED = "what the page's cell prints ends here"
EXAMPLES = {
    re.search(r"import (mlflow|wandb|lm_eval)|from (inspect_ai)", code)[0].split()[-1]: (
        code,
        shown,
    )
    for code, shown in re.findall(r"```python\n(.*?)```\n\n[^`]*?```text\n(.*?)```", PAGE, re.S)
}


@pytest.fixture(scope="module")
def result():
    rows = [
        {
            "system": system,
            "source": f"text {n} one",
            "output": f"text {n} {system}",
            "reference": f"text {n} two",
        }
        for system in ("a/b", "a_b", "../c")
        for n in range(4)
    ]
    return evaluate(rows, ["bleu", "chrf"], n_boot=20)


def test_names_are_such_as_trackers_take_and_none_is_lost(result):
    numbers = _tracked_numbers(result)
    assert {name.split("/")[0] for name in numbers} == {"a_b", "a_b_2", "_c"} and all(
        re.fullmatch(r"[\w. -]+/\w+", name) for name in numbers
    )
    assert (
        numbers["a_b_2/chrf_low"] == result.summary().chrf_low[1]
        and numbers["a_b/n"] == 4
        and len(numbers) == 3 * 7
    )
    assert _tracked_words(result)["tsteval.signature.bleu"] == result.signatures["bleu"]


class Client:
    """What is called of mlflow.MlflowClient, with its parameters' names."""

    logged: typing.ClassVar[dict] = {}

    def log_batch(self, run_id, metrics=(), params=(), tags=()):
        assert len(metrics) <= 1000 and len(tags) <= 100
        self.logged.setdefault(run_id, {}).update({one.key: one.value for one in [*metrics, *tags]})

    def log_text(self, run_id, text, artifact_file):
        self.logged[run_id][artifact_file] = text


def as_mlflow():
    def pair(key, value, *_):
        return types.SimpleNamespace(key=key, value=value)

    run = types.SimpleNamespace(info=types.SimpleNamespace(run_id="r1"))
    return types.SimpleNamespace(
        MlflowClient=Client,
        entities=types.SimpleNamespace(Metric=pair, RunTag=pair),
        active_run=lambda: None,
        start_run=lambda: run,
    ), run


def test_what_the_report_doubts_goes_along():
    rows = [
        {"system": "person", "source": f"text {n}", "output": f"word {n}", "reference": f"word {n}"}
        for n in range(6)
    ]
    result = evaluate(rows, ["chrf"], n_boot=5)
    assert "6 of 6 outputs equal a reference" in _tracked_words(result)["tsteval.warnings"]


@pytest.mark.parametrize("report", [True, False])
def test_mlflow_gets_the_same_by_module_and_by_run(result, monkeypatch, report):
    mlflow, run = as_mlflow()
    monkeypatch.setitem(sys.modules, "mlflow", mlflow)
    for given in (mlflow, run):
        monkeypatch.setattr(Client, "logged", {})
        result.log_to(given, report=report)
        logged = Client.logged["r1"]
        assert (
            logged["a_b/bleu"] == result.summary().bleu[0] and logged["tsteval.warnings"] == "none"
        )
        assert ("tsteval/report.html" in logged) is ("tsteval/report.json" in logged) is report


def test_what_is_no_run_is_refused(result):
    with pytest.raises(InputError, match="run must be the module mlflow"):
        result.log_to({})


@pytest.mark.skipif(not importlib.util.find_spec("mlflow"), reason="needs MLflow")
def test_mlflow_stores_it_in_its_local_file_store(result, tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "store").as_uri())  # ends with the test
    import mlflow

    with mlflow.start_run() as run:
        result.log_to(mlflow)
    result.log_to(run)  # a second time: nothing refuses it
    client = mlflow.MlflowClient()
    stored = client.get_run(run.info.run_id).data
    assert (
        stored.metrics == pytest.approx(_tracked_numbers(result))
        and _tracked_words(result).items() <= stored.tags.items()
    )
    assert {file.path for file in client.list_artifacts(run.info.run_id, "tsteval")} == {
        "tsteval/report.html",
        "tsteval/report.json",
    }


@pytest.mark.skipif(not importlib.util.find_spec("wandb"), reason="needs Weights and Biases")
def test_weights_and_biases_keeps_it_offline(result, tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_SILENT", "true")
    import wandb

    run = wandb.init(mode="offline", dir=str(tmp_path), project="tsteval")
    result.log_to(run)
    assert {name: run.summary[name] for name in _tracked_numbers(result)} == pytest.approx(
        _tracked_numbers(result)
    )
    assert _tracked_words(result).items() <= dict(run.config).items()
    run.finish()
    assert list(tmp_path.rglob("files/tsteval/report.html"))


@pytest.mark.parametrize("library", ["mlflow", "wandb", "lm_eval", "inspect_ai"])
def test_the_example_of_the_how_to_page_prints_what_the_page_shows(library, tmp_path):
    assert set(EXAMPLES) == {"mlflow", "wandb", "lm_eval", "inspect_ai"}
    code, shown = EXAMPLES[library]
    compile(code, library, "exec")
    if not importlib.util.find_spec(library):
        pytest.skip(f"needs {library}")
    settings = {"PYTHONPATH": str(ROOT), "WANDB_SILENT": "true"}
    done = subprocess.run(
        [sys.executable, "-c", f"{BEFORE}\nprint({PRINTED!r})\n{code}"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, **settings},
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split(PRINTED + "\n")[1] == shown  # the page shows what the snippet prints
