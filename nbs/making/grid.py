"""A search over settings of the training that an interruption does not cost."""

import itertools
import json
from pathlib import Path

import pandas as pd
from tqdm.auto import tqdm

from tsteval.style import Training, evaluate_classifier, text_sha256, train_classifier


def search_grid(
    train: pd.DataFrame,
    validation: pd.DataFrame,
    grid: dict[str, list],
    folder: Path | str,
    *,
    progress: bool = True,
) -> pd.DataFrame:
    """Train and measure every combination of settings; runs that the folder already holds are not repeated.

    `grid` names settings of `Training` and the values to try. Each finished run is a line of runs.jsonl in the folder,
    known by its settings and by the checksum of the texts, so a changed text is not mistaken for a finished run. The
    result has one row a run: settings, accuracy, pairwise_accuracy, validation_loss, epochs.
    Raises: TypeError for an unknown setting; ValueError for one out of range.
    """
    combinations = [dict(zip(grid, values)) for values in itertools.product(*grid.values())]
    for settings in combinations:
        Training(**settings)  # a misspelt setting should not surface after hours
    path = Path(folder) / "runs.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    data = text_sha256([*train.source, *train.target, *validation.source, *validation.target])[:12]
    finished = _finished_runs(path)
    for settings in tqdm(combinations, desc="runs", disable=not progress):
        key = json.dumps({"data": data, **settings}, sort_keys=True)
        if key not in finished:
            finished[key] = _run(train, validation, settings)
            with open(path, "a", encoding="utf-8") as file:
                file.write(json.dumps({"key": key, "result": finished[key]}) + "\n")
    return pd.DataFrame(
        [
            {**settings, **finished[json.dumps({"data": data, **settings}, sort_keys=True)]}
            for settings in combinations
        ]
    )


def _run(train: pd.DataFrame, validation: pd.DataFrame, settings: dict) -> dict:
    classifier = train_classifier(train, validation, **settings)
    result = evaluate_classifier(classifier, validation)
    return {
        "accuracy": result["accuracy"],
        "pairwise_accuracy": result["pairwise_accuracy"],
        "validation_loss": classifier.history.validation_loss.min(),
        "epochs": len(classifier.history),
    }


def _finished_runs(path: Path) -> dict[str, dict]:
    """Finished runs by their key. A last line without its end was cut off by an interruption and is removed."""
    if not path.exists():
        return {}
    whole = path.read_text(encoding="utf-8").rpartition("\n")[0]
    path.write_text(whole + "\n" if whole else "", encoding="utf-8")
    return {run["key"]: run["result"] for run in map(json.loads, whole.splitlines())}
