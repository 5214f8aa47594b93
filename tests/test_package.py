"""The package as it is installed: what the notebooks export, what the wheel brings, what the README promises."""

import ast
import configparser
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
STANDARD = set(sys.stdlib_module_names)
DISTRIBUTION = {
    "ot": "POT",
    "jinja2": "Jinja2",
    "markupsafe": "MarkupSafe",
    "sklearn": "scikit-learn",
    "huggingface_hub": "transformers",
    "safetensors": "transformers",
    "tokenizers": "transformers",
    "traitlets": "ipywidgets",
    "packaging": "transformers",
    "yaml": "transformers",
}
# read by Hugging Face's library evaluate alone, and never imported here
FOR_EVALUATE = "data/tsteval_metric/tsteval_metric"


@pytest.fixture(scope="module")
def settings():
    parser = configparser.ConfigParser()
    parser.read(ROOT / "settings.ini", encoding="utf-8")
    return parser["DEFAULT"]


def required(settings, extra=""):
    """Names of the distributions of an extra, or of a plain install."""
    return {
        Requirement(line).name
        for line in settings[f"{extra}_requirements" if extra else "requirements"].split()
    }


def test_export_changes_nothing(tmp_path):
    for name in ("nbs", "tsteval", "settings.ini", "ruff.toml"):
        source = ROOT / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, tmp_path / name)
    command = "from nbdev.doclinks import nbdev_export; nbdev_export()"
    subprocess.run([sys.executable, "-c", command], cwd=tmp_path, check=True)
    subprocess.run(["ruff", "format", "--quiet", "tsteval"], cwd=tmp_path, check=True)
    for path in (ROOT / "tsteval").glob("[a-z]*.py"):
        again = tmp_path / "tsteval" / path.name
        assert again.read_text() == path.read_text(), f"{path.name} is not what nbs/ exports"


def test_settings_keep_torch_below_the_large_builds(settings):
    torch = next(line for line in settings["requirements"].split() if line.startswith("torch"))
    assert torch.endswith("<2.14") and settings.getboolean("update_pyproject") is False


def test_the_lock_fits_what_is_required_and_every_line_has_a_hash(settings):
    lines = (ROOT / ".ci" / "lock.txt").read_text(encoding="utf-8").splitlines()[1:]
    assert all(
        re.fullmatch(r"[\w.-]+==[\w.!+]+ --hash=sha256:[0-9a-f]{64}", line) for line in lines
    )
    locked = {
        canonicalize_name(name): version
        for name, version in (line.split()[0].split("==") for line in lines)
    }
    place = {"python_version": "3.11", "sys_platform": "linux", "platform_machine": "x86_64"}
    for extra in ("", "properties", "excel", "course", "ray", "site", "dev"):
        for requirement in map(
            Requirement, settings[f"{extra}_requirements" if extra else "requirements"].split()
        ):
            if requirement.name == "torch" or (
                requirement.marker and not requirement.marker.evaluate(place)
            ):
                continue
            assert requirement.specifier.contains(locked[canonicalize_name(requirement.name)]), (
                requirement
            )


def test_a_plain_install_holds_what_the_library_imports(settings):
    imported = set()
    for path in set((ROOT / "tsteval").rglob("*.py")) - {
        (ROOT / "tsteval" / FOR_EVALUATE).with_suffix(".py")
    }:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {name.name.split(".")[0] for name in node.names}
            if isinstance(node, ast.ImportFrom) and not node.level and node.module:
                imported.add(node.module.split(".")[0])
    names = {DISTRIBUTION.get(name, name) for name in imported - STANDARD - {"tsteval"}}
    names -= {
        "jupyter_core",
        "jupyter_server",
        "nbconvert",
        "nbformat",
        "tornado",
    }  # of Voila, used where it is
    extras = set().union(
        *(required(settings, extra) for extra in ("properties", "course", "ray", "excel", "judge"))
    )
    assert names - required(settings) <= extras


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    copy = folder / "source"
    shutil.copytree(
        ROOT,
        copy,
        ignore=shutil.ignore_patterns(".git", "*.egg-info", "build", "dist", "__pycache__"),
    )
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "-q",
            "--no-deps",
            "--no-build-isolation",
            "-w",
            str(folder),
            str(copy),
        ],
        check=True,
    )
    return zipfile.ZipFile(next(folder.glob("*.whl")))


def test_the_wheel_is_whole(wheel, settings):
    names = set(wheel.namelist())
    assert {
        "tsteval/py.typed",
        "tsteval/core/__init__.py",
        "tsteval/models/base.py",
        "tsteval/data/report.html.jinja",
        "tsteval/data/parts.html.jinja",
        "tsteval/data/subjectivity-minilm/head.safetensors",
        "tsteval/data/sentiment-minilm/adapter_model.safetensors",
        "tsteval/data/npov_pairs.jsonl",
        "tsteval/data/npov_hard.jsonl",
    } <= names
    shared = {name.split("share/tsteval/nbs/")[1] for name in names if "share/tsteval/nbs/" in name}
    assert shared == {
        str(path.relative_to(ROOT / "nbs"))
        for path in ROOT.glob("nbs/**/*.ipynb")
        if not {"making", ".ipynb_checkpoints"} & set(path.parts)
    }
    metadata = wheel.read(next(name for name in names if name.endswith("/METADATA"))).decode()
    extras = set(re.findall(r"^Provides-Extra: (\S+)$", metadata, re.M))
    assert extras == {"course", "excel", "judge", "properties", "ray", "site", "dev"}
    lines = {
        extra: {
            Requirement(line.split(";")[0]).name
            for line in re.findall(r"^Requires-Dist: (.*)$", metadata, re.M)
            if f'extra == "{extra}"' in line.replace("'", '"')
        }
        for extra in extras
    }
    assert set().union(*(lines[extra] for extra in extras)) <= lines["dev"]


def test_readme_holds_both_commands():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert (
        "pip install -e . && tsteval evaluate" in readme
        and "pip install -e '.[dev]' && pytest\n" in readme
    )


def test_readme_and_citation_name_what_is_there(settings):
    readme, citation = (
        (ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "CITATION.cff")
    )
    for chapter in re.findall(r"`(\d\d_\w+)`", readme):
        assert (ROOT / "nbs" / f"{chapter}.ipynb").is_file(), chapter
    assert (
        f"version: {settings['version']}" in citation
        and f"## {settings['version']}" in (ROOT / "CHANGELOG.md").read_text()
    )


def test_the_names_of_the_package_are_those_of_its_modules():
    """They are listed twice in `tsteval/__init__.py`, for programs and for type checkers."""
    import importlib

    import tsteval

    assert {
        "evaluate",
        "Evaluation",
        "StyleClassifier",
        "SentenceEncoder",
        "corpus_bleu",
        "calculate_properties",
    } <= set(dir(tsteval))
    for module, names in tsteval._NAMES.items():
        for name in names:
            assert getattr(tsteval, name) is getattr(
                importlib.import_module(f"tsteval.{module}"), name
            )
    tree = ast.parse((ROOT / "tsteval" / "__init__.py").read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If)).body
    assert {node.module: {name.name for name in node.names} for node in block} == {
        name: set(names) for name, names in tsteval._NAMES.items()
    }
    assert tsteval.rouge.rouge(["a"], ["a"]).rouge1[0] == 1
    with pytest.raises(AttributeError, match="no attribute 'evalute'"):
        getattr(tsteval, "evalute")  # noqa: B009  asked for by name, as a typing mistake does


def test_what_is_named_in_the_package_is_imported_when_it_is_asked_for():
    code = (
        "import sys, tsteval; heavy = {'numpy', 'pandas', 'scipy', 'torch', 'transformers', 'matplotlib'}; assert "
        "not heavy & set(sys.modules)\n"
        "dir(tsteval)\nassert not heavy & set(sys.modules)\nfrom tsteval import evaluate, Metric\nassert not "
        "{'torch', 'transformers', 'matplotlib'} & set(sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_library_prints_nothing_and_its_loggers_bear_the_names_of_modules():
    for path in (ROOT / "tsteval").rglob("*.py"):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            called = (
                node.func.attr
                if isinstance(node.func, ast.Attribute)
                else getattr(node.func, "id", "")
            )
            assert called != "print" or name in ("tsteval.cli", "tsteval.report.terminal"), (
                f"{name}, line {node.lineno} prints"
            )
            if called == "getLogger":
                # and Ray's, which is told to be quiet
                assert ast.unparse(node.args[0]) in ("__name__", repr(name), "'ray.data'")
