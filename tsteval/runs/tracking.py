"""Scores of an evaluation where the rest of an experiment is kept: MLflow, Weights and Biases"""

import math
import re
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..core.checks import InputTypeError, describe
from ..report.findings import work_out
from .results import SystemScores


def _keys(systems: list[str]) -> dict[str, str]:
    """System -> a name that every tracker takes, each another one."""
    names: dict[str, str] = {}
    for system in systems:
        name = plain = re.sub(r"[^\w. -]", "_", system, flags=re.A).strip(". ") or "system"
        number = 2
        while name in names.values():
            name = f"{plain}_{number}"
            number = number + 1
        names[system] = name
    return names


def _tracked_numbers(
    result: SystemScores,
) -> dict[
    str, float
]:  # "system/column", "system/column_low", "system/column_high", "system/n" -> value
    """The scores as a tracker takes them; what is undefined is left out."""
    keys = _keys(result.systems)
    rows = [(keys[row.pop("system")], row) for row in result.summary().to_dict("records")]
    return {
        f"{key}/{name}": float(value)
        for key, row in rows
        for name, value in row.items()
        if not math.isnan(value)
    }


def _tracked_words(
    result: SystemScores,
) -> dict[str, str]:  # name -> text
    """What is needed to repeat the scores, and what not to believe."""
    words = {f"signature.{name}": signature for name, signature in result.signatures.items()}
    words |= {f"model.{name}": checksum for name, checksum in result.models.items()}
    doubted = [
        *work_out(result).doubts,
        *(note.text for note in result.notes().itertuples() if note.warning),
    ]
    words |= {
        "n_boot": str(result.n_boot),
        "seed": str(result.seed),
        "warnings": "\n".join(doubted)[:4000] or "none",
    }
    return {
        f"tsteval.{re.sub(r'[^A-Za-z0-9_. -]', '_', name)}": text for name, text in words.items()
    }


def _log_to_mlflow(
    mlflow,
    run_id: str,
    numbers: Mapping[str, float],
    words: Mapping[str, str],
    files: Mapping[str, str],
) -> None:
    client = mlflow.MlflowClient()
    now = int(time.time() * 1000)
    most = 900  # of a batch; MLflow takes 1,000
    metrics = [mlflow.entities.Metric(name, value, now, 0) for name, value in numbers.items()]
    for first in range(0, len(metrics), most):
        client.log_batch(run_id, metrics=metrics[first : first + most])
    client.log_batch(
        run_id, tags=[mlflow.entities.RunTag(name, text) for name, text in words.items()]
    )
    for file, text in files.items():
        client.log_text(run_id, text, f"tsteval/{file}")


def _log_to_wandb(
    run, numbers: Mapping[str, float], words: Mapping[str, str], files: Mapping[str, str]
) -> None:
    run.config.update(dict(words), allow_val_change=True)
    run.log(dict(numbers))
    for file, text in files.items():
        path = Path(run.dir) / "tsteval" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        run.save(str(path), base_path=run.dir, policy="now")


def log_scores(
    result: SystemScores,
    run: Any,  # the module mlflow, a run of MLflow, or a run of Weights and Biases
    files: Mapping[str, str],  # name -> text, to be kept beside the scores
) -> None:
    """Log an evaluation. Raises: InputTypeError for anything that is none of the three."""
    log_entries = _tracked_numbers(result), _tracked_words(result), files
    if hasattr(run, "MlflowClient") and hasattr(run, "active_run"):  # the module
        active = run.active_run() or run.start_run()
        _log_to_mlflow(run, active.info.run_id, *log_entries)
    elif hasattr(getattr(run, "info", None), "run_id") and "mlflow" in sys.modules:
        _log_to_mlflow(sys.modules["mlflow"], run.info.run_id, *log_entries)
    elif all(hasattr(run, name) for name in ("log", "config", "save", "dir")):
        _log_to_wandb(run, *log_entries)
    else:
        raise InputTypeError(
            f"run must be the module mlflow, a run of MLflow or a run of Weights and Biases, got "
            f"{describe(run)}"
        )
