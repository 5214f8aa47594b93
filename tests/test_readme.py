"""What the README shows is what the package gives: its picture, its outputs, its figures, its links, its commands."""
import importlib.util
import re
import shlex
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def making():
    spec = importlib.util.spec_from_file_location("making_readme", ROOT / "nbs" / "making" / "readme.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_outputs_and_figures_are_what_the_package_gives(making):
    for part in making.parts().values(): assert part.strip() in README


def test_the_picture_is_what_the_script_draws(making):
    drawn = making.picture(making.evaluation())
    assert drawn == (ROOT / "nbs" / "images" / "readme.svg").read_text(encoding="utf-8")
    assert "(nbs/images/readme.svg)" in README


def test_it_is_short_and_its_links_lead_somewhere():
    assert len(README.splitlines()) <= 120
    links = re.findall(r"\]\(([^)]*)\)", README)
    assert len(links) > 8 and all((ROOT / link).is_file() for link in links)


def test_its_commands_are_commands_with_options_that_there_are(capsys):
    from tsteval.cli import app
    lines = re.findall(r"tsteval (?:evaluate|compare|check|train|rate|study|explore)\b[^`\n]*", README)
    assert len(lines) > 8
    for line in lines:
        words = shlex.split(line.split("  #")[0])[1:]
        words = words[:words.index("&&")] if "&&" in words else words
        parser = app._parser({words[0]})
        _, extra = parser.parse_known_args([word.rstrip(",") for word in words])
        assert not [word for word in extra if word.startswith("-")], line


def test_what_needs_no_model_loads_no_torch_and_fetches_nothing(tmp_path):
    import os
    import subprocess
    import sys
    program = ("import sys; from tsteval.cli import main; status = main(['evaluate', '--metrics', 'bleu,rouge,chrf']); "
               "sys.exit(status or bool({'torch', 'transformers', 'captum', 'spacy'} & set(sys.modules)))")
    environment = {**os.environ, "TSTEVAL_CACHE": str(tmp_path / "cache"), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True,
                          text=True, check=False)
    assert done.returncode == 0, done.stderr[-1500:]
    assert not (tmp_path / "cache").exists() and "\r" not in done.stderr + done.stdout
    again = subprocess.run([sys.executable, "-m", "tsteval", "--version"], env=environment, capture_output=True,
                           text=True, check=True)
    assert again.stdout.startswith("tsteval")
