"""The house as designed: arrows point down, and what all chapters share exists once."""
import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "tsteval"
ORDER = [path.stem.split("_", 1)[1] for path in sorted(ROOT.glob("nbs/[0-9]*.ipynb"))]  # of the chapters
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if not path.stem.startswith("_")
                 and "data" not in path.relative_to(PACKAGE).parts)
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
            parts = [*base.relative_to(ROOT).parts, *(node.module
                                                      or "").split(".")] if node.level else (node.module
                                                                                             or "").split(".")
            if parts[0] == "tsteval" and len(parts) > 1 and parts[1]: found.add(".".join(filter(None, parts[1:])))
    return found


def by_module(paths):
    return pytest.mark.parametrize("path", paths, ids=[name_of(path) for path in paths])


def test_a_room_imports_only_rooms_beneath_it():
    """The contract stands in .importlinter, where a reader can read it."""
    run = subprocess.run(["lint-imports", "--no-cache"], capture_output=True, text=True, cwd=ROOT, check=False)
    assert run.returncode == 0, run.stdout[-3000:]


@by_module([path for path in OUTSIDE if path.stem in ORDER])
def test_a_chapter_imports_no_later_chapter_and_no_room_above(path):
    later = set(ORDER[ORDER.index(path.stem) + 1:])
    assert not imports(path) & later
    assert not [name for name in imports(path) if name.split(".")[0] in ("explorers", "cli")]


@by_module([path for path in MODULES if path.parent != PACKAGE and path.parent.name not in ("explorers", "cli")])
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
    assert not re.search(r"^\s*(?:import|from) (?:nbdev|fastcore|IPython)\b", path.read_text(encoding="utf-8"), re.M)


def strings(tree):
    return [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]


@by_module(OUTSIDE)
def test_what_all_share_lives_in_core(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} \
        | {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert not names & {"cache", "lru_cache", "cached_property"}, "a cache"
    assert not names & {"multinomial", "bincount_resamples"}, "a bootstrap"
    assert not any(re.search(r"(^|\|)version:", text) for text in strings(tree)), "a signature format"
    joined = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
              and node.func.attr == "join" and isinstance(node.func.value, ast.Constant) and node.func.value.value
              == "|"]
    assert not joined, "a signature format"
    for loop in [node for node in ast.walk(tree) if isinstance(node, (ast.For, ast.ListComp, ast.GeneratorExp))]:
        checks = [call for call in ast.walk(loop) if isinstance(call, ast.Call) and getattr(call.func, "id", "")
                  == "isinstance"
                  and "str" in {getattr(name, "id", "") for name in ast.walk(call.args[1])}]
        raises = [node for node in ast.walk(loop) if isinstance(node, ast.Raise)]
        assert not (checks and raises), f"a check of texts, line {loop.lineno}"


NOT_A_METRIC = {  # module -> what a word that is a metric's name means there
    "core.metric": {"content": "a question"}, "datasets.compressions": {"judge": "a person"},
    "datasets.lai2022": {"content": "what people rated", "fluency": "likewise"},
    "datasets.mir2019": {"content": "what people rated"},
    "datasets.ratings": {"content": "what people rated", "fluency": "likewise"},
    "lexical.rouge_statistics": {"rouge": "the head of a signature", "rougeL": "a kind of count",
                                 "rougeLsum": "likewise"},
    "models.causal_lm": {"content": "a part of a message", "fluency": "the name of a bar"},
    "judges.chat": {"content": "a field of a message"},
    "judges.chat_server": {"content": "a field of an answer", "logprob": "likewise"},
    "judges.prompts": {"content": "a criterion", "fluency": "likewise"},
    "report.conclusions": {"content": "a question"},
    "pictures.galleries": {"content": "a question", "judge": "a classifier"},
    "judges.judging": {"judge": "the head of a signature"}, "studies.systems": {"judge": "a classifier"},
    "studies.pareto": {"content": "an aspect", "fluency": "likewise"},
    "studies.ranking": {"content": "what people rated"}, "studies.sheets": {"content": "what people rate"},
    "training.style_check": {"formality": "a style", "toxicity": "likewise"}}


def test_nothing_beneath_the_chapters_knows_a_metric_by_name():
    """What a report, a study or a terminal has to know of a metric is a field of `Metric`. The registry is the one
    list of names, and the road's stops are chapters."""
    from tsteval.core.metric import METRICS
    names, found = set(METRICS) | {column for metric in METRICS.values() for column in metric.columns}, set()
    for path in MODULES:
        if path.parent == PACKAGE or path.parent.name == "explorers": continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        lists = [node for node in tree.body if isinstance(node, (ast.Assign, ast.AnnAssign))
                 and ast.unparse(node).startswith(("METRICS = ", "ROAD = "))]
        listed = {id(node) for one in lists for node in ast.walk(one)}
        found |= {(name_of(path), node.value) for node in ast.walk(tree)
                  if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in listed
                  and (node.value in names or node.value.removeprefix("target_") in names)}
    allowed = {(module, name) for module, names in NOT_A_METRIC.items() for name in names}
    assert found == allowed, found ^ allowed


def test_draws_with_replacement_are_made_in_one_place():
    """A bootstrap draws row numbers with replacement: `integers(n, size=n)` stands in core.resample alone."""
    found = [name_of(path) for path in MODULES if re.search(r"\.integers\(|replace=True",
                                                            path.read_text(encoding="utf-8"))]
    assert found == ["core.resample"]


def test_modules_import_nothing_heavy():
    """One process imports them all, lowest first, and says after which a heavy library was there."""
    # packed works on torch's own tensors
    names = sorted(name_of(path) for path in MODULES if path.stem != "packed")
    code = ("import importlib, sys\n"
            f"for name in {names!r}:\n    importlib.import_module('tsteval.' + name)\n"
            f"    assert not {HEAVY!r} & set(sys.modules), (name, {HEAVY!r} & set(sys.modules))")
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert run.returncode == 0, run.stderr[-300:]


def test_import_is_fast():
    code = "import time; start = time.perf_counter(); import tsteval; print(time.perf_counter() - start)"
    seconds = min(float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                                       cwd=ROOT).stdout)
                  for _ in range(3))
    assert seconds < 0.3


@by_module(MODULES)
def test_every_module_says_what_it_is(path):
    assert (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").strip()


@by_module(MODULES)
def test_no_private_name_crosses_a_module(path):
    crossed = [alias.name for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
               if isinstance(node, ast.ImportFrom) and (node.level or (node.module or "").startswith("tsteval"))
               for alias in node.names if alias.name.startswith("_") and not alias.name.startswith("__")]
    known = {"attribution": ["_matching_blocks"], "rewriting": ["_matching_blocks"]}  # of chapter 1, by two others
    assert crossed == known.get(name_of(path), [])


# public names in two modules: chapter 2 derives the two tests for BLEU, and `core.resample` has them for every score
TWICE = {"approximate_randomization", "paired_bootstrap"}


def test_a_public_name_is_defined_in_one_module():
    homes = {}
    for path in MODULES:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            names = [node.name] if isinstance(node, (ast.FunctionDef, ast.ClassDef)) else \
                [target.id for target in node.targets if isinstance(target, ast.Name)] \
                if isinstance(node, ast.Assign) else []
            for name in names: homes.setdefault(name, set()).add(name_of(path))
    assert {name for name, found in homes.items() if len(found) > 1 and not name.startswith("_")} == TWICE


def _words(text): return set(re.findall(r"\b[A-Za-z_]\w*\b", text))


def _words_beside_exports():
    """The words of what readers run and read: cells that aren't exported, and code in prose."""
    for path in ROOT.glob("nbs/**/*.ipynb"):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            source = "".join(cell["source"])
            if cell["cell_type"] != "code":
                for quoted in re.findall(r"`([^`]+)`", source): yield from _words(quoted)
            elif not re.search(r"^#\|\s*export", source, re.M): yield from _words(source)


def test_a_public_name_has_a_user_beyond_its_module():
    """Classes aside, which functions take and return, and the commands, which typer calls."""
    own = {path: path.read_text(encoding="utf-8") for path in MODULES}
    words = {path: _words(text) for path, text in own.items()}
    others = {*_words_beside_exports(),
              *(word for folder in ("tests", "nbs/making") for path in ROOT.glob(f"{folder}/**/*.py")
                if path != Path(__file__) for word in _words(path.read_text(encoding="utf-8")))}
    alone = set()
    for path, text in own.items():
        if path.parent.name == "cli": continue
        for node in ast.parse(text).body:
            names = [node.name] if isinstance(node, ast.FunctionDef) else \
                [target.id for target in node.targets if isinstance(target, ast.Name)] \
                if isinstance(node, ast.Assign) else []
            alone |= {f"{name_of(path)}.{name}" for name in names if not name.startswith("_") and name not in others
                      and not any(name in found for other, found in words.items() if other != path)}
    assert not alone, "\n".join(sorted(alone))


# functions of more than eight parameters: the contract's, and METEOR's, whose parameters are the metric's options
MANY_PARAMETERS = {"attribution.attribute", "attribution.integrated_gradients",
                   "bleu.corpus_bleu", "cps.content_preservation", "overlap.score_meteor"}


def test_a_function_has_at_most_eight_parameters():
    found = set()
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)): continue
            given = [one.arg for one in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]]
            more = [one for one in (node.args.vararg, node.args.kwarg) if one]
            if len(set(given) - {"self", "cls"}) + len(more) > 8: found.add(f"{name_of(path)}.{node.name}")
    assert found <= MANY_PARAMETERS, found - MANY_PARAMETERS


@by_module([path for path in MODULES if path.parent != PACKAGE])
def test_every_module_of_a_room_has_a_test_file_of_its_own(path):
    assert (ROOT / "tests" / path.parent.name / f"test_{path.stem}.py").is_file()


@pytest.mark.parametrize("room", sorted({path.parent.name for path in MODULES} - {"tsteval"}))
def test_a_room_has_four_to_ten_modules(room):
    assert 4 <= len([path for path in MODULES if path.parent.name == room]) <= 10


@by_module(MODULES)
def test_no_line_is_longer_than_120_characters(path):
    """But for the list of names, which nbdev wraps at its own width."""
    lines = enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
    assert [number for number, line in lines if len(line) > 120 and not line.startswith("__all__")] == []


@by_module(MODULES)
def test_a_module_has_at_most_400_lines(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400


CLIENT = """
import numpy as np
import pandas as pd
from tsteval.attribution import integrated_gradients
from tsteval.bleu import BleuScore, corpus_bleu, sentence_bleu
from tsteval.core.metric import METRICS, Metric, Scores, sign
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

def score(table: pd.DataFrame, models: Models, unit: str = "words") -> Scores:
    return Scores(pd.DataFrame({"length": table.output.map(len)}), signature=sign("length", unit=unit))

length = Metric("length", ("output",), ("length",), score)
result: Evaluation = evaluate([{"source": "a", "output": "b"}], ["readability", METRICS["formality"], length],
    options={"length": {"unit": "x"}})
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


@pytest.mark.slow
def test_a_typed_program_that_uses_the_package_passes_the_type_checker(tmp_path):
    found, others = {}, ",".join(f"{name}.*" for name in ("torch", "transformers", "matplotlib", "scipy", "sklearn",
                                                          "pandas", "ipywidgets", "spacy", "IPython"))
    (tmp_path / "mypy.ini").write_text(f"[mypy]\nignore_missing_imports = True\nfollow_imports = "
                                       f"silent\n[mypy-{others}]\nfollow_imports = skip\n")
    for name, program in (("client", CLIENT), ("mistakes", MISTAKES)):
        (tmp_path / f"{name}.py").write_text(program)
        found[name] = subprocess.run([sys.executable, "-m", "mypy", "--config-file", str(tmp_path / "mypy.ini"),
                                      "--cache-dir", str(tmp_path / "cache"), str(tmp_path / f"{name}.py")],
                                     capture_output=True, text=True, env={**os.environ, "MYPYPATH": str(ROOT)},
                                     cwd=tmp_path, check=False).stdout
    assert "Success" in found["client"], found["client"][:3000]
    assert found["mistakes"].count("error:") == 2, found["mistakes"]
