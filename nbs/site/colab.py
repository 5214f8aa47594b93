"""Chapters for a machine that has no tsteval, such as Google Colab: a first cell that installs it, and a button.

Both are off until `repository_address` in settings.ini names the repository. The cell stands in the notebooks that the
site offers, not in those of the repository: it is of no use to who has cloned it. Colab opens the copies from the
branch that holds the made site, `site_branch`.
"""

import re
from configparser import ConfigParser
from dataclasses import dataclass
from pathlib import Path

import nbformat

CHAPTER = re.compile(r"\d\d_\w+\.ipynb")
ADDRESS = re.compile(r"https://github\.com/([\w.-]+/[\w.-]+?)(?:\.git)?/?")
INSTALL = '''# needed where tsteval is not installed, as in Colab; does nothing elsewhere
import importlib.util

if importlib.util.find_spec("tsteval") is None:
    %pip install -q "tsteval[course] @ git+{address}"'''


@dataclass(frozen=True)
class Repository:
    """Where the made site can be opened from."""

    name: str  # OWNER/NAME on GitHub, which is where Colab reads from
    branch: str  # the one that holds the made site

    def colab(self, name):
        """The address that opens a chapter in Colab; `name` is its path below nbs/."""
        return f"https://colab.research.google.com/github/{self.name}/blob/{self.branch}/notebooks/{name}"

    def installing(self, notebook):
        """The same notebook with the cell that installs, after the prose that it begins with."""
        cell = nbformat.v4.new_code_cell(
            INSTALL.format(address=f"https://github.com/{self.name}"), id="install"
        )
        return nbformat.from_dict(
            {**notebook, "cells": [notebook.cells[0], cell, *notebook.cells[1:]]}
        )


def read_repository(settings: Path) -> Repository | None:
    """What settings.ini says of it; None while no address is set. Ends the program for one that Colab cannot read."""
    parser = ConfigParser()
    parser.read(settings, encoding="utf-8")
    address, branch = (
        parser["DEFAULT"].get(name, "") for name in ("repository_address", "site_branch")
    )
    if not address:
        return None
    if not (found := ADDRESS.fullmatch(address)):
        raise SystemExit(
            f"repository_address in {settings.name} is {address!r}; write https://github.com/OWNER/NAME"
        )
    return Repository(found[1], branch or "gh-pages")
