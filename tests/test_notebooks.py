"""Every notebook runs from top to bottom, and its stored outputs are clean.

A cell marked with one of the flags below (`tst_flags` in settings.ini) is run where what it needs is there.
"""
import importlib.util
import json
import os
import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted([*ROOT.glob("nbs/*.ipynb"), *ROOT.glob("nbs/solutions/*.ipynb")])
FLAGS = {"extdata": os.environ.get("TSTEVAL_DATA"),  # corpora that may not be shipped
         "kenlm": importlib.util.find_spec("kenlm")}  # a peer that does not build for Python 3.13
NAMES = [str(path.relative_to(ROOT / "nbs")) for path in NOTEBOOKS]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=NAMES)
def test_runs_from_top_to_bottom(path):
    notebook = nbformat.read(path, as_version=4)
    skipped = {f"#| {flag}" for flag, there in FLAGS.items() if not there}
    notebook.cells = [cell for cell in notebook.cells if not skipped & set(cell.source.splitlines()[:2])]
    NotebookClient(notebook, timeout=900, kernel_name="python3", resources={"metadata": {"path": str(path.parent)}}).execute()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=NAMES)
def test_stored_outputs_are_clean(path):
    cells = [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    assert any(cell["outputs"] for cell in cells), "no stored output at all"
    for cell in cells:
        for output in cell["outputs"]:
            assert output["output_type"] != "error" and output.get("name") != "stderr", "".join(cell["source"])[:200]
            text = "".join(output.get("text", [])) + "".join(output.get("data", {}).get("text/plain", []))
            assert not re.search(r"Warning:|Traceback|(?<![\w.])/(?:home|root|tmp|Users)/", text), text[:300]
            image = "".join(output.get("data", {}).get("image/png", []))
            assert len(image) * 3 / 4 <= 200_000, "a figure is larger than 200 kB"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=NAMES)
def test_prose_comes_before_every_shown_code_cell(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    assert cells[0]["cell_type"] == "markdown" and "".join(cells[0]["source"]).startswith("# ")
    for before, cell in zip(cells, cells[1:]):
        source = "".join(cell["source"])
        if cell["cell_type"] == "code" and cell["outputs"] and not source.startswith(("#| hide", "#| export")):
            assert before["cell_type"] == "markdown" or "".join(before["source"]).startswith("#|"), source[:200]
