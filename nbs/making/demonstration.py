"""What the evaluation explorer opens with: python nbs/making/demonstration.py writes tsteval/data/demonstration/.

It holds what `tsteval evaluate` writes where it is given no file: the embedded test pairs as copies, with words
deleted, and as people rewrote them. Six digits of a score are kept, and the masked texts, which no explorer shows, are
left out.
`tests/explorers/test_evaluation.py` holds the folder to a fresh run.
"""

import shutil
import tempfile
from pathlib import Path

import pandas as pd

from tsteval.cli import main
from tsteval.core.assets import packaged_path

FOLDER = packaged_path("demonstration")


def make(folder: Path) -> None:
    """The results of a fresh run, in `folder`."""
    with tempfile.TemporaryDirectory() as made:
        assert main(["evaluate", "--output", made]) == 0
        rows = pd.read_csv(Path(made) / "per_pair.csv")
        folder.mkdir(exist_ok=True)
        rows.drop(columns=["masked_source", "masked_output"]).to_csv(
            folder / "per_pair.csv", index=False, float_format="%.6g", lineterminator="\n"
        )
        shutil.copy(Path(made) / "summary.json", folder)


if __name__ == "__main__":
    make(FOLDER)
