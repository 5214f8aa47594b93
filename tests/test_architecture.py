"""The house as designed: imports point down and nothing heavy is imported before it is used."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "tsteval"
ORDER = [
    path.stem.split("_", 1)[1] for path in sorted(ROOT.glob("nbs/[0-9]*.ipynb"))
]  # of the chapters
MODULES = sorted(
    path
    for path in PACKAGE.rglob("*.py")
    if not path.stem.startswith("_") and "data" not in path.relative_to(PACKAGE).parts
)
OUTSIDE = [path for path in MODULES if path.parent == PACKAGE]  # the chapters
HEAVY = {"torch", "transformers", "captum", "peft", "spacy", "ipywidgets", "matplotlib", "jinja2"}


def name_of(path):
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts)


def imports(path):
    """Modules of this package that a file names, at its top or inside a function."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            base = path.parent if node.level <= 1 else path.parents[node.level - 1]
            parts = (
                [*base.relative_to(ROOT).parts, *(node.module or "").split(".")]
                if node.level
                else (node.module or "").split(".")
            )
            if parts[0] == "tsteval" and len(parts) > 1 and parts[1]:
                found.add(".".join(filter(None, parts[1:])))
    return found


def by_module(paths):
    return pytest.mark.parametrize("path", paths, ids=[name_of(path) for path in paths])


def test_a_room_imports_only_rooms_beneath_it():
    """The contract stands in .importlinter, where a reader can read it."""
    run = subprocess.run(
        ["lint-imports", "--no-cache"], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert run.returncode == 0, run.stdout[-3000:]


@by_module([path for path in OUTSIDE if path.stem in ORDER])
def test_a_chapter_imports_no_later_chapter_and_no_room_above(path):
    later = set(ORDER[ORDER.index(path.stem) + 1 :])
    assert not imports(path) & later
    assert not [name for name in imports(path) if name.split(".")[0] in ("explorers", "cli")]


@by_module(
    [
        path
        for path in MODULES
        if path.parent != PACKAGE and path.parent.name not in ("explorers", "cli")
    ]
)
def test_a_room_beneath_the_chapters_imports_no_chapter(path):
    assert not imports(path) & {name_of(chapter) for chapter in OUTSIDE}


def test_no_modules_import_each_other_in_a_circle():
    graph = {name_of(path): imports(path) for path in MODULES}
    while graph:
        free = [module for module, below in graph.items() if not below & set(graph)]
        assert free, f"these import each other in a circle: {sorted(graph)}"
        graph = {module: below for module, below in graph.items() if module not in free}


@by_module(MODULES)
def test_no_development_tool_is_imported(path):
    assert not re.search(
        r"^\s*(?:import|from) (?:nbdev|fastcore|IPython)\b", path.read_text(encoding="utf-8"), re.M
    )


def test_modules_import_nothing_heavy():
    """One process imports them all, lowest first, and says after which a heavy library was there."""
    # trainer inherits from a class of transformers, and is imported where something is trained
    names = sorted(name_of(path) for path in MODULES if path.stem != "trainer")
    code = (
        "import importlib, sys\n"
        f"for name in {names!r}:\n    importlib.import_module('tsteval.' + name)\n"
        f"    assert not {HEAVY!r} & set(sys.modules), (name, {HEAVY!r} & set(sys.modules))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert run.returncode == 0, run.stderr[-300:]


def test_import_is_fast():
    code = "import time; start = time.perf_counter(); import tsteval; print(time.perf_counter() - start)"
    seconds = min(
        float(
            subprocess.run(
                [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
            ).stdout
        )
        for _ in range(3)
    )
    assert seconds < 0.3


@by_module(MODULES)
def test_every_module_says_what_it_is(path):
    assert (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").strip()


@by_module(MODULES)
def test_no_private_name_crosses_a_module(path):
    crossed = [
        alias.name
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom)
        and (node.level or (node.module or "").startswith("tsteval"))
        for alias in node.names
        if alias.name.startswith("_") and not alias.name.startswith("__")
    ]
    known = {
        "attribution": ["_matching_blocks"],
        "rewriting": ["_matching_blocks"],
    }  # of chapter 1, by two others
    assert crossed == known.get(name_of(path), [])


CLIENT = """
from dataclasses import dataclass

import numpy as np
import pandas as pd
from tsteval.attribution import integrated_gradients
from tsteval.bleu import Bleu, BleuScore, corpus_bleu, sentence_bleu
from tsteval.core.metric import METRICS, Metric, Scores
from tsteval.models.roles import Models
from tsteval.cps import SentenceEncoder, content_preservation, cosine
from tsteval.evaluation import Evaluation, evaluate
from tsteval.fluency import CausalLM, fluency_scores
from tsteval.ngram import NgramLM
from tsteval.properties import calculate_properties
from tsteval.rouge import rouge
from tsteval.sti import earth_movers_distance, style_transfer_intensity
from tsteval.style import StyleClassifier

bleu: BleuScore = corpus_bleu(["a"], [["a", "b"]], max_order=2)
value: float = sentence_bleu("a", "a").score
frame: pd.DataFrame = rouge(["a"], ["a"], stemmer=True)
lm: NgramLM = NgramLM(order=2, smoothing="witten_bell").fit([["a", "b"]])
moved: np.ndarray = style_transfer_intensity([[0.9, 0.1]], [[0.2, 0.8]], target=1)
moved = moved + earth_movers_distance([[1, 0]], [[0, 1]])
classifier: StyleClassifier = StyleClassifier.load(device="cpu")
probabilities: np.ndarray = classifier.predict_proba(["a", "b"], batch_size=8)
encoder: SentenceEncoder = SentenceEncoder.load("all-MiniLM-L6-v2")
alike: np.ndarray = cosine(encoder.encode(["a"]), encoder.encode(["b"]))
fluent: pd.DataFrame = fluency_scores(CausalLM.load(), ["a text"])
kept: pd.DataFrame = content_preservation(["a"], ["b"], classifier=classifier, encoder=encoder, strategy="none")
words: list[str] = integrated_gradients(classifier, ["a text"])[0].words
table: pd.DataFrame = calculate_properties(["a text"], properties=["readability"])

@dataclass(frozen=True)
class Length(Metric):
    unit: str = "words"

    name = "length"
    needs = ("output",)
    columns = ("length",)

    def score(self, rows: pd.DataFrame, models: Models | None = None) -> Scores:
        return Scores(pd.DataFrame({"length": rows.output.map(len)}))

result: Evaluation = evaluate(
    [{"source": "a", "output": "b"}], ["readability", METRICS["formality"], Length(unit="x"), Bleu()]
)
summary: pd.DataFrame = result.summary()
result.plot_intervals()
page: str = result.render_html()
"""
MISTAKES = """
from tsteval.bleu import corpus_bleu
from tsteval.evaluation import evaluate
score: str = corpus_bleu(["a"], ["a"]).score
evaluate([{"source": "a", "output": "b"}], n_boot="many")
"""


@pytest.mark.ci
def test_a_typed_program_that_uses_the_package_passes_the_type_checker(tmp_path):
    found = {}
    others = ",".join(
        f"{name}.*"
        for name in (
            "torch",
            "transformers",
            "matplotlib",
            "scipy",
            "sklearn",
            "pandas",
            "ipywidgets",
            "spacy",
            "IPython",
        )
    )
    (tmp_path / "mypy.ini").write_text(
        f"[mypy]\nignore_missing_imports = True\nfollow_imports = "
        f"silent\n[mypy-{others}]\nfollow_imports = skip\n"
    )
    for name, program in (("client", CLIENT), ("mistakes", MISTAKES)):
        (tmp_path / f"{name}.py").write_text(program)
        found[name] = subprocess.run(
            [
                sys.executable,
                "-m",
                "mypy",
                "--config-file",
                str(tmp_path / "mypy.ini"),
                "--cache-dir",
                str(tmp_path / "cache"),
                str(tmp_path / f"{name}.py"),
            ],
            capture_output=True,
            text=True,
            env={**os.environ, "MYPYPATH": str(ROOT)},
            cwd=tmp_path,
            check=False,
        ).stdout
    assert "Success" in found["client"], found["client"][:3000]
    assert found["mistakes"].count("error:") == 2, found["mistakes"]
