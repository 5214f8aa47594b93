"""What the README shows is what the package gives: its picture, its outputs, its figures, its links, its commands."""

import importlib.util
import json
import re
import shlex
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def making():
    spec = importlib.util.spec_from_file_location(
        "making_readme", ROOT / "nbs" / "making" / "readme.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_outputs_and_figures_are_what_the_package_gives(making):
    for part in making.parts().values():
        assert part.strip() in README


@pytest.mark.ci
def test_the_first_lines_are_what_compare_prints(making):
    assert making.compared() in README


def test_the_picture_is_what_the_script_draws(making):
    drawn = making.picture(making.summary())
    assert drawn == (ROOT / "nbs" / "images" / "readme.svg").read_text(encoding="utf-8")
    assert "(nbs/images/readme.svg)" in README


def words(text):
    return " ".join(re.findall(r"\w+", text))


def test_the_picture_of_the_course_shows_the_course_as_it_is():
    """Made anew by nbs/making/course_picture.py where this fails."""
    from PIL import Image

    from tsteval.report.words import ROAD

    path = ROOT / "nbs" / "images" / "course.png"
    with Image.open(path) as image:
        shown = json.loads(image.info["shown"])
        wide = image.width
    assert path.stat().st_size < 100_000 and wide > 900 and "(nbs/images/course.png)" in README
    prose = {
        one.stem: [
            words("".join(cell["source"]))
            for cell in json.loads(one.read_text(encoding="utf-8"))["cells"]
            if cell["cell_type"] == "markdown"
        ]
        for one in ROOT.glob("nbs/[0-9]*.ipynb")
    }
    assert len(shown["paragraphs"]) >= 3 and len(shown["titles"]) >= 6 and len(ROAD) == len(prose)
    for text in shown["paragraphs"]:
        assert any(words(text) in cell for cell in prose[shown["chapter"]]), text
    for title in shown["titles"]:
        assert any(cells[0].startswith(words(title)) for cells in prose.values()), title
    assert shown["road"] == ROAD


def test_the_versions_of_the_other_tools_are_those_that_the_tests_use():
    heading = next(line for line in README.splitlines() if "| DeepEval" in line)
    settings = (ROOT / "settings.ini").read_text(encoding="utf-8")
    named = dict(re.findall(r"(sacreBLEU|evaluate) ([\d.]+)", heading))
    assert (
        f"sacrebleu=={named['sacreBLEU']}." in settings
        and f" evaluate>={named['evaluate']}." in settings
    )


def test_its_links_lead_somewhere():
    links = re.findall(r"\]\(([^)]*)\)", README)
    assert len(links) > 8 and all((ROOT / link).is_file() for link in links)


def test_its_commands_are_commands_with_options_that_there_are(capsys):
    from tsteval.cli import app

    lines = re.findall(
        r"tsteval (?:evaluate|compare|check|train|rate|study|explore)\b[^`\n]*", README
    )
    assert len(lines) > 8
    for line in lines:
        words = shlex.split(line.split("  #")[0])[1:]
        words = words[: words.index("&&")] if "&&" in words else words
        parser = app._parser({words[0]})
        _, extra = parser.parse_known_args([word.rstrip(",") for word in words])
        assert not [word for word in extra if word.startswith("-")], line


def test_what_needs_no_model_loads_no_torch_and_fetches_nothing(tmp_path):
    import os
    import subprocess
    import sys

    program = (
        "import sys; from tsteval.cli import main; status = main(['evaluate', '--metrics', 'bleu,rouge,chrf']); "
        "sys.exit(status or bool({'torch', 'transformers', 'captum', 'spacy'} & set(sys.modules)))"
    )
    environment = {**os.environ, "TSTEVAL_CACHE": str(tmp_path / "cache"), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-1500:]
    assert not (tmp_path / "cache").exists() and "\r" not in done.stderr + done.stdout
    again = subprocess.run(
        [sys.executable, "-m", "tsteval", "--version"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert again.stdout.startswith("tsteval")
