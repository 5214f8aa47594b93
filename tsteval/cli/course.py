"""`tsteval course` opens the chapters in JupyterLab, `tsteval explore` opens the explorers in the browser"""

import importlib.util
import os
import subprocess
import sys
from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path

from ..core.checks import InputError, check_number, meant
from ..core.files import write_whole
from .app import Command, chosen, option, options_of


@dataclass(frozen=True)
class _Server:
    no_browser: bool = option("start the server, print its address, open no window", False)
    port: int | None = option("listen here (default: the first port that is free)", metavar="N")

    @property
    def words(self) -> list[str]:
        """The options of Jupyter's servers that mean the same."""
        if self.port is not None:
            check_number(self.port, "--port", 1, 65_535, whole=True)
        return ["--no-browser"] * self.no_browser + [f"--port={self.port}"] * (
            self.port is not None
        )


def _require(module: str, command: str) -> None:
    if importlib.util.find_spec(module) is None:
        raise InputError(
            f"tsteval {command} needs what readers of the course have; install it with pip install "
            f"'tsteval[course]'"
        )


def _chapters() -> Path:
    """Where the chapters are: beside the package in a checkout, or among the environment's shared files."""
    import tsteval

    beside = Path(tsteval.__file__).resolve().parent.parent / "nbs"
    for place in (beside, Path(sys.prefix) / "share" / "tsteval" / "nbs"):
        if (place / "index.ipynb").is_file():
            return place
    raise InputError(
        "the chapters were not installed with this package; clone the repository and install it with "
        "pip install -e ."
    )


def _course_folder() -> Path:
    """The reader's copy of the chapters, made where it is missing. Raises: InputError if they were not installed."""
    chapters = _chapters()
    here = Path.cwd().resolve()
    mine = (Path.home() if here.is_relative_to(chapters.parent) else here) / "tsteval-course"
    for chapter in sorted(chapters.rglob("*.ipynb")):
        copy = mine / chapter.relative_to(chapters)
        if os.path.lexists(copy) or ".ipynb_checkpoints" in chapter.parts:
            continue  # a reader's own by now
        copy.parent.mkdir(parents=True, exist_ok=True)
        write_whole(copy, chapter.read_text(encoding="utf-8"))
    return mine


def _course(arguments: Namespace) -> int:
    _require("jupyterlab", "course")
    root = ["--allow-root"] if getattr(os, "geteuid", lambda: 1)() == 0 else []
    options = [
        *chosen(_Server, arguments).words,
        *root,
        *(word for word in arguments.extra if word != "--"),
    ]
    return subprocess.call(
        [
            sys.executable,
            "-m",
            "jupyterlab",
            *options,
            "--LabApp.default_url=/lab/tree/index.ipynb",
            "--notebook-dir",
            str(_course_folder()),
        ]
    )


course_command = Command(
    _course,
    options_of(_Server),
    "Open a copy of the chapters. Options that are not listed here go to JupyterLab.",
    passes_on=True,
)


@dataclass(frozen=True)
class _Explore:
    name: str | None = option(
        "open this one first: bleu, rouge, ngram, ameliorations, fluency, emd, style, mask, "
        "overlap, alignment, content, properties, agreement, evaluation, difference, "
        "ratings, digits or sums; or a folder that "
        "tsteval evaluate wrote",
        metavar="NAME|FOLDER",
        flags=(),
    )
    ratings: str | None = option(
        "show people's ratings beside the scores of FOLDER: a table, or the folder of "
        "`tsteval rate`, as `tsteval estimate` takes them",
        metavar="FILE",
    )


def _explorer_code(name: str | None, ratings: str | None) -> str:
    """What opens the explorers, one of them, or the results in a folder, with ratings or without."""
    from tsteval.explorers.catalogue import EXPLORERS, open_rated
    from tsteval.people.study import STUDIES

    if name is None or name in EXPLORERS:
        if ratings is not None:
            raise InputError(
                "this goes with results: tsteval explore FOLDER --ratings FILE",
                argument="--ratings",
            )
        return f"from tsteval.explorers.catalogue import explorer_app\nexplorer_app({repr(name) if name else ''})"
    if not Path(name).exists() and not set(name) & {"/", os.sep}:
        raise InputError(
            f"there is no explorer called {name!r}{meant(name, EXPLORERS)} and no folder; the explorers "
            f"are {', '.join(EXPLORERS)}"
        )
    open_rated(name, ratings)  # what is wrong with a file is said before a server starts
    places = [str(Path(name).resolve())]
    if ratings is not None:
        places.append(ratings if ratings in STUDIES else str(Path(ratings).resolve()))
    return f"from tsteval.explorers.catalogue import results_app\nresults_app({', '.join(map(repr, places))})"


def _explore(arguments: Namespace) -> int:
    _require("voila", "explore")
    from tsteval.explorers.server import serve, stored_chapters

    options = chosen(_Server, arguments).words
    code = _explorer_code(arguments.name, arguments.ratings)
    serve(code, options, stored_chapters())
    return 0


explore_command = Command(_explore, (*options_of(_Explore), *options_of(_Server)))
