"""The package as a whole: it imports fast, and it is what the notebooks export."""
import configparser
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MODULES = sorted(path.stem for path in (ROOT / "tsteval").glob("*.py") if not path.stem.startswith("_"))
CHAPTER_OF = {"text": 1, "bleu": 2, "rouge": 3, "ngram": 4, "fluency": 5, "style": 6, "sti": 7, "attribution": 8, "cps": 9,
              "evaluation": 10, "agreement": 11, "properties": 12, "widgets": 13, "cli": 91, "assets": 0, "figures": 0,
              "speed": 0}


def test_import_is_fast_and_light():
    code = ("import time; start = time.perf_counter(); import tsteval, sys; "
            "print(time.perf_counter() - start, *(m for m in ('torch', 'transformers', 'matplotlib') if m in sys.modules))")
    seconds, *heavy = min((subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
                           for _ in range(3)), key=lambda words: float(words[0]))
    assert float(seconds) < 0.3 and not heavy


@pytest.mark.parametrize("module", [name for name in MODULES if name != "speed"])  # it works on torch's own tensors
def test_modules_do_not_import_torch(module):
    code = f"import tsteval.{module}, sys; assert not {{'torch', 'transformers', 'captum', 'peft', 'ipywidgets'}} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("module", MODULES)
def test_no_module_imports_a_later_chapter_or_a_development_tool(module):
    source = (ROOT / "tsteval" / f"{module}.py").read_text(encoding="utf-8")
    for imported in re.findall(r"^\s*from (?:tsteval)?\.(\w+) import", source, re.M):
        assert CHAPTER_OF[imported] < CHAPTER_OF[module], f"{module} imports {imported}"
    assert not re.search(r"^\s*(?:import|from) (?:nbdev|fastcore)", source, re.M)


def test_export_changes_nothing(tmp_path):
    for name in ("nbs", "tsteval", "settings.ini"):
        source = ROOT / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, tmp_path / name)
    subprocess.run([sys.executable, "-c", "from nbdev.doclinks import nbdev_export; nbdev_export()"],
                   cwd=tmp_path, check=True)
    for path in (ROOT / "tsteval").glob("*.py"):
        assert (tmp_path / "tsteval" / path.name).read_text() == path.read_text(), f"{path.name} is not what nbs/ exports"


def test_settings_keep_torch_below_the_large_builds():
    settings = configparser.ConfigParser()
    settings.read(ROOT / "settings.ini")
    torch = next(r for r in settings["DEFAULT"]["requirements"].split() if r.startswith("torch"))
    assert torch.endswith("<2.14") and settings["DEFAULT"].getboolean("update_pyproject") is False


def test_readme_holds_both_commands():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "pip install -e '.[dev]' && tsteval evaluate" in readme and "pip install -e '.[dev]' && pytest" in readme
