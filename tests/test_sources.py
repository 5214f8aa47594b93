"""Where the details of the four sources went: every place is there, and the index shows the table.

`python -m tests.test_sources` writes the index's cell anew from tests/sources.csv.
"""

import html
import importlib
import json
import re
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).parent.parent
INDEX, HEADING = ROOT / "nbs" / "index.ipynb", "## Where each detail of the sources went"
ROWS = pd.read_csv(ROOT / "tests" / "sources.csv")
NAMES = {
    "report": "Fast Forward Labs (2022), *Text Style Transfer*, evaluation",
    "properties": "Deepchecks, *Properties*",
    "blog post": "*Understanding BLEU and Perplexity* (2025)",
    "slides": "*Measure Text Fluency*, slides",
    "packages": "The packages beneath",
}


def found(where):
    """What a place names: a file, a module, or a name in a module. Raises where it is gone."""
    if where.startswith("nbs/"):
        if not (ROOT / where).is_file():
            raise FileNotFoundError(where)
        return ROOT / where
    try:
        return importlib.import_module(where)
    except ModuleNotFoundError:
        module, _, name = where.rpartition(".")
        return getattr(importlib.import_module(module), name)


def shown():
    """The table as the index shows it, folded: a paragraph a source, a line a detail."""
    lines = [
        HEADING,
        "",
        "The course began with four texts, which were read line by line, and a list of packages. "
        "What is whole has no remark.",
        "",
        f"<details><summary>{len(ROWS)} details, each with its place</summary>",
    ]
    for source, rows in ROWS.groupby("source", sort=False):
        lines += ["", f"**{NAMES[source]}**", ""]
        for row in rows.itertuples():
            place = row.where.removeprefix("tsteval.")
            place = (
                f"[{Path(place).name}]({place.removeprefix('nbs/')})"
                if place.endswith(".ipynb")
                else f"`{place}`"
            )
            lines.append(
                f"- {html.escape(row.detail, quote=False)}: {place}"
                + (f" ({row.state})" if row.state != "whole" else "")
            )
    return "\n".join([*lines, "", "</details>"])


@pytest.mark.parametrize("where", sorted(set(ROWS["where"])))
def test_every_place_is_there(where):
    assert found(where) is not None


def test_a_place_that_is_gone_is_seen():
    for gone in ("nbs/99_gone.ipynb", "tsteval.bleu.gone", "tsteval.gone.bleu"):
        with pytest.raises((FileNotFoundError, AttributeError, ModuleNotFoundError)):
            found(gone)


def test_each_detail_stands_once_and_says_what_is_left():
    assert (
        set(ROWS.source) == set(NAMES)
        and not ROWS.isna().any(axis=None)
        and not ROWS.detail.duplicated().any()
    )
    assert all(re.fullmatch(r"whole|(in part|no): .+", state) for state in ROWS.state)


def test_the_index_shows_the_table():
    cells = [
        "".join(cell["source"]) for cell in json.loads(INDEX.read_text(encoding="utf-8"))["cells"]
    ]
    assert shown() in cells, "write it anew: python -m tests.test_sources"


def test_the_packages_are_required():
    settings = (ROOT / "settings.ini").read_text(encoding="utf-8").lower()
    for detail in ROWS.detail[ROWS.source == "packages"]:
        assert detail.split(":")[0].lower() in settings


if __name__ == "__main__":
    notebook = json.loads(INDEX.read_text(encoding="utf-8"))
    cells = [cell for cell in notebook["cells"] if not "".join(cell["source"]).startswith(HEADING)]
    cells.append(
        {
            "cell_type": "markdown",
            "id": "sources01",
            "metadata": {},
            "source": shown().splitlines(keepends=True),
        }
    )
    notebook["cells"] = cells
    INDEX.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
