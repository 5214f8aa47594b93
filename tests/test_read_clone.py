"""Whoever reads the course leaves things in the clone; the tests pass with all of them there."""
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
READ = ("nbs", "nbs/solutions", "nbs/core", "nbs/runs")  # folders in which somebody opened a notebook
TESTED = ("test_package.py", "test_architecture.py", "test_sources.py", "test_threat_model.py")


def leave(folder):
    """Checkpoints, also of a notebook that has moved since; results, caches, a built site and a run notebook."""
    for name in READ:
        place = folder / name / ".ipynb_checkpoints"
        place.mkdir()
        for path in sorted((folder / name).glob("*.ipynb"))[:2]:
            shutil.copy(path, place / f"{path.stem}-checkpoint.ipynb")
    stale = json.loads((folder / "nbs" / "08_sti.ipynb").read_text(encoding="utf-8"))
    stale["cells"].insert(0, {"cell_type": "code", "source": ["#| default_exp moved\n"], "metadata": {}, "id": "stale",
                              "outputs": [], "execution_count": None})
    (folder / "nbs" / ".ipynb_checkpoints" / "08_moved-checkpoint.ipynb").write_text(json.dumps(stale))
    for name in ("nbs/tsteval-results/report.html", "tsteval-results/per_pair.csv", "tsteval-results/summary.json",
                 "_site/index.html", "nbs/__pycache__/a.pyc", ".hypothesis/constants/a", ".pytest_cache/README.md",
                 "build/lib/tsteval/old.py", "tsteval.egg-info/PKG-INFO", ".mypy_cache/a.json", "nbs/.DS_Store"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("left behind")
    read = folder / "nbs" / "01_text.ipynb"
    notebook = json.loads(read.read_text(encoding="utf-8"))
    code = next(cell for cell in notebook["cells"] if cell["cell_type"] == "code" and cell["outputs"])
    code["execution_count"], code["metadata"] = 7, {"execution": {"iopub.status.busy": "now"}}
    read.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


@pytest.mark.slow
def test_a_clone_that_was_read_passes(tmp_path):
    folder = tmp_path / "clone"
    shutil.copytree(ROOT, folder, symlinks=True, ignore=shutil.ignore_patterns(
        ".git", "__pycache__", ".ipynb_checkpoints", ".hypothesis", ".pytest_cache", ".mypy_cache", "build", "_site",
        "*.egg-info", "tsteval-results"))
    leave(folder)
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "not type_checker and "
                           "not fast", *(f"tests/{name}" for name in TESTED)], cwd=folder, capture_output=True,
                          text=True, env={**os.environ, "PYTHONPATH": str(folder)}, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
