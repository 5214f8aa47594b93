"""What makes controls work: typing, closing, still pictures where no kernel runs."""

import base64
import html
import json
import re
import subprocess
import sys
from xml.etree import ElementTree

import pytest

from tests.explorers.pages import HOSTILE, ROOT, Page, assert_harmless
from tsteval.explorers import controls as controls_page
from tsteval.explorers import likelihood as likelihood_page
from tsteval.explorers import words as words_page


def test_a_text_counts_as_typed_after_a_pause():
    import asyncio

    async def type_three_letters():
        explorer = words_page.bleu_explorer("the", "the cat")
        drawn = []
        explorer.picture.observe(lambda change: drawn.append(change["new"]), "value")
        for text in ("the c", "the ca", "the cat"):
            explorer.controls["candidate"].value = text
        assert not drawn
        await asyncio.sleep(controls_page._TYPING_PAUSE + 0.2)
        assert len(drawn) == 1
        explorer.controls["candidate"].value = "the"
        explorer.close()  # with a redraw still due
        await asyncio.sleep(controls_page._TYPING_PAUSE + 0.2)
        assert len(drawn) == 1

    asyncio.run(type_three_letters())


def test_weights_and_classes_show_only_the_sliders_that_count(explorers):
    bleu = explorers["bleu"]()
    emd = explorers["emd"]()
    bleu.controls["order"].value = 2
    emd.controls["classes"].value = 3

    def hidden(explorer):
        return {
            key for key, control in explorer.controls.items() if control.layout.display == "none"
        }

    assert hidden(bleu) == {"weight_3", "weight_4"} and hidden(emd) == {
        "p4",
        "p5",
        "q4",
        "q5",
        "matrix",
    }
    bleu.close(), emd.close()


def test_an_explorer_opens_with_hostile_texts_and_its_drawings_become_images():
    for text in [*HOSTILE, "\ufffe\uffff \x85"]:
        for explorer in (
            words_page.bleu_explorer(text, text),
            likelihood_page.ngram_explorer(text),
        ):
            page = str(explorer.static_picture())
            images = re.findall('<img alt="[^"]+" src="data:image/svg.xml;base64,([^"]+)">', page)
            assert images and "<svg" not in page
            for image in images:  # XML is strict: one wrong character and there is no image
                assert (
                    ElementTree.fromstring(base64.b64decode(image)).tag
                    == "{http://www.w3.org/2000/svg}svg"
                )
            assert_harmless(page)
            explorer.close()


NOTEBOOK = """
from tsteval.explorers.{module} import {name}_explorer
explorer = {name}_explorer()
explorer
"""


def rendered(environment):
    """A notebook with an explorer, run, stripped of widget state as nbdev_clean does, and rendered to HTML."""
    import nbformat
    from nbclient import NotebookClient
    from nbconvert import HTMLExporter

    cells = [
        nbformat.v4.new_code_cell(NOTEBOOK.format(module=module, name=name))
        for module, name in (("words", "bleu"), ("style", "emd"))
    ]
    notebook = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute(env=environment)
    notebook.metadata.pop("widgets", None)
    return notebook, HTMLExporter().from_notebook_node(notebook)[0]


@pytest.mark.parametrize("static", [False, True])
@pytest.mark.ci
def test_a_rendered_notebook_shows_the_picture(static):
    import os

    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop("TSTEVAL_STATIC", None)
    notebook, page = rendered({**environment, **({"TSTEVAL_STATIC": "1"} if static else {})})
    for cell, words in zip(notebook.cells, ("brevity penalty", "flow of mass")):
        data = cell.outputs[0]["data"]
        assert (
            words in data["text/html"]
            and ("application/vnd.jupyter.widget-view+json" in data) is not static
        )
        assert len(data["text/html"]) < 60_000
        assert Page(data["text/html"]).text in html.unescape(re.sub("<[^>]*>", "", page))
    assert "application/vnd.jupyter.widget" not in page.split("<body")[1]


def test_no_chapter_with_an_explorer_stores_a_widget():
    seen = 0
    for path in [*ROOT.glob("nbs/*.ipynb"), *ROOT.glob("nbs/solutions/*.ipynb")]:
        notebook = json.loads(path.read_text(encoding="utf-8"))
        stored = [
            output.get("data", {})
            for cell in notebook["cells"]
            for output in cell.get("outputs", [])
        ]
        pages = ["".join(data.get("text/html", "")) for data in stored]
        pictures = [page for page in pages if "This picture stands still" in page]
        if pictures:
            seen += 1
            how = f"{path.name}: run it with TSTEVAL_STATIC=1, and without storing widget state"
            assert "widgets" not in notebook["metadata"], how
            assert not any("application/vnd.jupyter.widget-view+json" in data for data in stored), (
                how
            )
            assert max(map(len, pictures)) < 60_000, path.name
    assert seen


def test_an_explorer_that_lives_until_python_ends_says_nothing():
    code = "from tsteval.explorers.words import bleu_explorer; kept = bleu_explorer()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""
