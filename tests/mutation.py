"""Mutation testing of the pure functions: how many small changes to the code do its tests notice?

pip install cosmic-ray, then: python tests/mutation.py [--sample N] [--seed S] [--seconds S] [--out FILE] [MODULE ...]
Each mutant (an operator of cosmic-ray at one place, annotations and error messages left out) gets a forked pytest of
the tests beside it in TESTS. Prints those that survive, and the share that was noticed. Not part of the test run.
"""
import argparse
import ast
import difflib
import importlib
import importlib.abc
import importlib.util
import json
import os
import random
import resource
import sys
import time
from pathlib import Path

import hypothesis
import parso
import pytest
from cosmic_ray.ast import ast_nodes
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

ROOT = Path(__file__).parents[1]
TESTS = {"text": "text defaults", "bleu": "bleu defaults", "lexical.bleu_smoothing": "bleu",
         "lexical.matching": "bleu rouge text",
         "rouge": "rouge defaults", "sti": "sti defaults", "ngram": "ngram defaults",
         "ngram_models.ngram_counts": "ngram",
         "ngram_models.ngram_model": "ngram", "lexical.word_alignment": "overlap",
         "ngram_models.ngram_smoothing": "ngram"}


def source_of(module): return (ROOT / "tsteval" / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8")


def left_out(source):
    """Places of annotations, decorators and error messages: from (line, column) to (line, column)."""
    for node in ast.walk(ast.parse(source)):
        parts = []
        if isinstance(node, ast.FunctionDef):
            arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg,
                         node.args.kwarg]
            parts = [*(one.annotation for one in arguments if one), node.returns, *node.decorator_list]
        if isinstance(node, ast.AnnAssign): parts = [node.annotation]
        if isinstance(node, ast.ClassDef): parts = node.decorator_list
        if isinstance(node, ast.Raise): parts = [node]
        for part in parts:
            if part is not None: yield (part.lineno, part.col_offset), (part.end_lineno, part.end_col_offset)


def mutants(module):
    """Every (module, operator, number of its place, line)."""
    source = source_of(module)
    skipped, tree = list(left_out(source)), parso.parse(source)
    for name in operator_names():
        if "decorator" in name.lower(): continue
        try: operator = get_operator(name)()
        except TypeError: continue  # needs arguments
        places = [place for node in ast_nodes(tree) for place in operator.mutation_positions(node)]
        for number, (start, end) in enumerate(places):
            if not any(first <= start and end <= last for first, last in skipped): yield module, name, number, start[0]


class Mutated(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives one module another source."""

    def __init__(self, module, source): self.name, self.source = f"tsteval.{module}", source

    def find_spec(self, name, path=None, target=None):
        return (
            importlib.util.spec_from_loader(name, self, origin=str(ROOT / f"{name.replace('.', '/')}.py"))
            if name == self.name
            else None
        )

    def exec_module(self, module):
        module.__file__ = module.__spec__.origin
        exec(compile(self.source, module.__file__, "exec"), module.__dict__)


def passes(module, source, seconds):
    """Whether the tests pass with this source, and the seconds of computing that they took."""
    child = os.fork()
    if not child:
        code = 99
        try:
            for place in (1, 2): os.dup2(os.open(os.devnull, os.O_WRONLY), place)
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
            sys.dont_write_bytecode = True
            hypothesis.settings.register_profile("mutation", max_examples=15, derandomize=True, database=None,
                                                 deadline=None)
            hypothesis.settings.load_profile("mutation")
            sys.meta_path.insert(0, Mutated(module, source))
            os.chdir(ROOT)
            code = int(pytest.main(["-x", "-q", "-p", "no:cacheprovider",
                                    *(f"tests/test_{name}.py" for name in TESTS[module].split())]))
        finally: os._exit(code)
    _, status, used = os.wait4(child, 0)
    return os.waitstatus_to_exitcode(status) == 0, used.ru_utime + used.ru_stime


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("modules", nargs="*", metavar="MODULE", help=", ".join(TESTS))
    parser.add_argument("--sample", type=int, default=300, help="mutants, drawn at random from all modules")
    parser.add_argument(
        "--seed",
        type=int,
        default=7,
        help="of the draw: another one shows what the tests notice of mutants they were not written for",
    )
    parser.add_argument("--seconds", type=float, default=3600, help="stop after so many")
    parser.add_argument("--out", type=Path, default=Path("mutants.jsonl"))
    options = parser.parse_args()
    sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
    # once, not in each fork
    for library in ("nltk.lm", "pandas", "sacrebleu", "scipy.stats", "sklearn", "torch"):
        importlib.import_module(library)
    modules = options.modules or list(TESTS)
    limits = {}
    for module in modules:
        sound, used = passes(module, source_of(module), 3600)
        if not sound: sys.exit(f"the tests of {module} fail without any mutant")
        limits[module] = int(3 * used + 10)
    drawn = [mutant for module in modules for mutant in mutants(module)]
    random.Random(options.seed).shuffle(drawn)
    until, noticed = time.monotonic() + options.seconds, []
    with open(options.out, "a", encoding="utf-8") as file:
        for module, operator, number, line in drawn[:options.sample]:
            if time.monotonic() > until: break
            source = source_of(module)
            changed = mutate_code(source, get_operator(operator)(), number)
            if changed in (None, source): continue
            survived, _ = passes(module, changed, limits[module])
            noticed.append(not survived)
            told = [text for text in difflib.unified_diff(source.splitlines(), changed.splitlines(), lineterm="", n=0)
                    if text[:1] in "+-" and text[:3] not in ("+++", "---")]
            file.write(json.dumps({"module": module, "line": line, "operator": operator, "noticed": not survived,
                                   "change": told}) + "\n")
            if survived: print(f"{module}, line {line}: {' / '.join(told)}", flush=True)
    print(f"{sum(noticed)} of {len(noticed)} mutants were noticed")
