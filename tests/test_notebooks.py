"""Every notebook runs from top to bottom and gives what it has stored.

A cell marked with one of the flags below (`tst_flags` in settings.ini) is run where what it needs is there.
"""

import importlib.util
import json
import os
import re
from itertools import pairwise, zip_longest
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parent.parent
CHAPTERS = sorted(ROOT.glob("nbs/[0-9]*.ipynb"))
# not the copies that JupyterLab keeps
NOTEBOOKS = sorted([*ROOT.glob("nbs/*.ipynb"), *ROOT.glob("nbs/[!.]*/*.ipynb")])
FLAGS = {
    "extdata": os.environ.get("TSTEVAL_DATA")
    and os.environ.get("NLTK_DATA"),  # corpora that may not be shipped
    "kenlm": importlib.util.find_spec("kenlm"),
}  # a peer that does not build for Python 3.13
NUMBER = re.compile(r"(?<![\w.])[-+−]?(?:\d[\d,]*\.?\d*|\.\d+)(?:e[-+]?\d+)?(?![\w])")
ADDRESS = re.compile(r"0x[0-9a-f]{6,}")
# of a printed number: models in 32 bits on another processor move the last printed digit
RELATIVE = 0.02
ABSOLUTE = 0.011


NAMES = {path: path.relative_to(ROOT / "nbs").as_posix() for path in NOTEBOOKS}


def named(paths):
    return pytest.mark.parametrize("path", paths, ids=[NAMES[path] for path in paths])


def cells_of(path, kind=None):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [
        cell | {"source": "".join(cell["source"])}
        for cell in cells
        if kind in (None, cell["cell_type"])
    ]


def text_of(output):
    """What a reader sees of one output as text; None for a picture or a widget, which is compared by being there."""
    data = output.get("data", {})
    if output["output_type"] == "stream":
        return "".join(output["text"])
    if (
        any(kind.startswith(("image/", "application/")) for kind in data)
        or "<svg" in "".join(data.get("text/html", ""))
        or "data:image" in "".join(data.get("text/html", ""))
    ):
        return None
    return "".join(data.get("text/plain", data.get("text/html", "")))


def is_passing(output):
    """Whether an output tells of the run and not of its result: a warning, or the bar of a model that is fetched."""
    text = "".join(output.get("data", {}).get("text/plain", ""))
    return output.get("name") == "stderr" or text.startswith("fetching ")


def differences(stored, found):
    """The first place where two outputs differ in words, or in numbers by more than the tolerance; empty if nowhere."""
    stored, found = (ADDRESS.sub("0x", text) for text in (stored, found))
    words, new_words = (NUMBER.sub("#", text).split() for text in (stored, found))
    if words != new_words:
        place = next(place for place, (a, b) in enumerate(zip_longest(words, new_words)) if a != b)
        return (
            f"stored ...{' '.join(words[place : place + 12])}... but a run gives "
            f"...{' '.join(new_words[place : place + 12])}..."
        )
    for a, b in zip(NUMBER.findall(stored), NUMBER.findall(found)):
        x, y = (float(number.replace(",", "").replace("−", "-")) for number in (a, b))
        if abs(x - y) > max(ABSOLUTE, RELATIVE * abs(x)):
            return f"stored {a} but a run gives {b}"
    return ""


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(
            path,
            id=name,
            # what they export is tested without them; together they take longer than all that `pytest` runs
            marks=[pytest.mark.xdist_group(f"nbs/{name}"), pytest.mark.ci],
        )
        for path, name in NAMES.items()
    ],
)
def test_runs_and_gives_what_it_has_stored(path, kernels, monkeypatch):
    if kernels:
        monkeypatch.setenv("JUPYTER_PATH", kernels)
    # notebooks store still pictures, since no kernel stands behind a stored widget
    monkeypatch.setenv("TSTEVAL_STATIC", "1")
    notebook = nbformat.read(path, as_version=4)
    skipped = {f"#| {flag}" for flag, there in FLAGS.items() if not there}
    notebook.cells = [
        cell for cell in notebook.cells if not skipped & set(cell.source.splitlines()[:2])
    ]
    stored = [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]
    NotebookClient(
        notebook,
        timeout=900,
        startup_timeout=600,  # of a machine that does other work
        kernel_name="python3",
        coalesce_streams=True,  # a busy machine sends what one cell prints in pieces
        resources={"metadata": {"path": str(path.parent)}},
    ).execute()
    if skipped:
        return  # cells that follow a skipped one may rightly say less
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for cell, outputs in zip(code, stored):
        place = f"cell that begins with {cell.source[:80]!r}"
        before, after = (
            [text_of(output) for output in outputs if not is_passing(output)]
            for outputs in (outputs, cell.outputs)
        )
        pictures = before.count(None), after.count(None)
        assert pictures[0] == pictures[1], (
            f"{place}: {pictures[0]} pictures are stored, a run gives {pictures[1]}"
        )
        problem = differences("\n".join(filter(None, before)), "\n".join(filter(None, after)))
        assert not problem, f"{place}: {problem}"


@named(NOTEBOOKS)
def test_stored_outputs_are_clean(path):
    cells = cells_of(path, "code")
    assert any(cell["outputs"] for cell in cells), "no stored output at all"
    for cell in cells:
        for output in cell["outputs"]:
            assert output["output_type"] != "error" and output.get("name") != "stderr", cell[
                "source"
            ][:200]
            text = "".join(output.get("text", [])) + "".join(
                output.get("data", {}).get("text/plain", [])
            )
            assert not re.search(r"Warning:|Traceback|(?<![\w.])/(?:home|root|tmp|Users)/", text), (
                text[:300]
            )
            page = "".join(output.get("data", {}).get("text/html", []))
            assert not re.search(r"&lt;(?:p|div|span|bdi|svg|table)[ &]", page), "escaped markup"
            image = "".join(output.get("data", {}).get("image/png", []))
            assert len(image) * 3 / 4 <= 200_000, "a figure is larger than 200 kB"


@named(NOTEBOOKS)
def test_prose_comes_before_every_shown_code_cell(path):
    cells = cells_of(path)
    assert cells[0]["cell_type"] == "markdown" and cells[0]["source"].startswith("# ")
    for before, cell in pairwise(cells):
        if (
            cell["cell_type"] == "code"
            and cell["outputs"]
            and not cell["source"].startswith(("#| hide", "#| export"))
        ):
            assert before["cell_type"] == "markdown" or before["source"].startswith("#|"), cell[
                "source"
            ][:200]


@named(CHAPTERS)
def test_a_chapter_has_a_summary_exercises_and_solutions(path):
    prose = "\n\n".join(cell["source"] for cell in cells_of(path, "markdown"))
    headings = re.findall(r"^## (.+)$", prose, re.M)
    wanted = ["Summary", "Exercises", "References"]
    assert [heading for heading in headings if heading in wanted] == wanted
    assert f"](solutions/{path.name})" in prose
    assert (path.parent / "solutions" / path.name).is_file()


@named(NOTEBOOKS)
def test_links_between_notebooks_lead_somewhere(path):
    for cell in cells_of(path, "markdown"):
        for target in re.findall(r"\]\(([^)#]+\.ipynb)(?:#[^)]*)?\)", cell["source"]):
            assert (path.parent / target).is_file(), f"{target} in {cell['source'][:100]!r}"
