"""Shared fixtures, and which tests a plain run leaves out.

`pytest` says within minutes whether the package is sound; `pytest --all` also executes every notebook, drives the
explorers in a browser and runs what is marked slow, or took a second or more when it was last measured.

With `-n 2 --dist loadgroup` a file's tests run in one process, since they share what it has loaded, and each notebook
is a group of its own. The longest groups come first, so that all processes are busy to the end; durations.json says how
long each test takes (`--store-durations` writes down what a run measures).
"""

import collections
import importlib
import json
import os
import sys
from pathlib import Path

import hypothesis
import pytest

# a busy machine is no fault of the code
hypothesis.settings.register_profile("patient", hypothesis.settings(), deadline=None)
hypothesis.settings.load_profile("patient")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # processes that share the cores


@pytest.fixture(scope="session")
def classifier():
    from tsteval.style import StyleClassifier

    return StyleClassifier.load()


@pytest.fixture(scope="session")
def encoder():
    from tsteval.cps import SentenceEncoder

    return SentenceEncoder.load()


@pytest.fixture(scope="session")
def language_model():
    from tsteval.fluency import CausalLM

    return CausalLM.load()


@pytest.fixture(scope="session")
def other_encoders(tmp_path_factory):
    """Tiny encoders of three other architectures with random weights, as folders."""
    import torch
    from transformers import (
        AutoTokenizer,
        DistilBertConfig,
        DistilBertForSequenceClassification,
        ElectraConfig,
        ElectraForSequenceClassification,
        RobertaConfig,
        RobertaForSequenceClassification,
    )

    from tsteval.core.fetch import asset_path

    torch.manual_seed(2)
    tokenizer = AutoTokenizer.from_pretrained(asset_path("all-MiniLM-L6-v2"))
    size = {
        "vocab_size": len(tokenizer),
        "pad_token_id": tokenizer.pad_token_id,
        "max_position_embeddings": 520,
    }
    plain = {
        "hidden_size": 8,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 16,
    }
    small = DistilBertConfig(dim=8, n_layers=1, n_heads=2, hidden_dim=16, **size)
    models = {
        "distilbert": DistilBertForSequenceClassification(small),
        "electra": ElectraForSequenceClassification(
            ElectraConfig(embedding_size=8, **plain, **size)
        ),
        "roberta": RobertaForSequenceClassification(
            RobertaConfig(type_vocab_size=2, **plain, **size)
        ),
    }
    folders = {}
    for name, model in models.items():
        folders[name] = str(tmp_path_factory.mktemp(name))
        model.base_model.save_pretrained(folders[name])  # without its head
        tokenizer.save_pretrained(folders[name])
    return folders


@pytest.fixture(scope="session")
def llama_server():
    """The address of llama.cpp's server with the embedded model."""
    from tests.chat_server import llama_server

    with llama_server() as address:
        yield address


@pytest.fixture(scope="session")
def transformers_server(language_model, tmp_path_factory):
    """The address of `transformers serve` with the embedded model, and the model's name there."""
    from tests.chat_server import transformers_server

    with transformers_server(language_model, tmp_path_factory.mktemp("served")) as found:
        yield found


@pytest.fixture(scope="session")
def kernels():
    """A folder for `JUPYTER_PATH`, in which kernels are forked from one process; None where they cannot be."""
    from tests.kernels import forked_kernels

    with forked_kernels() as folder:
        yield folder


def pytest_addoption(parser):
    parser.addoption(
        "--all",
        action="store_true",
        help="also the notebooks, the browser and the tests that are marked slow",
    )
    parser.addoption(
        "--fuzz-minutes",
        type=float,
        default=0,
        help="with --all: how long to look for texts that break a function, all in all",
    )
    parser.addoption(
        "--store-durations",
        action="store_true",
        help="with --dist loadgroup: write down how long each test took",
    )
    parser.addoption(
        "--kills",
        type=int,
        default=0,
        help="with --all: how often each kind of run is killed at a random point",
    )


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: takes long; runs with --all")
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False  # the order is made below
    if config.getoption("--store-durations"):
        config.pluginmanager.register(Durations())


@pytest.hookimpl(tryfirst=True)  # xdist reads the groups afterwards
def pytest_collection_modifyitems(config, items):
    if getattr(config.option, "loadgroup", False):
        arrange(items)
    if config.getoption("--all"):
        return
    skip = pytest.mark.skip(reason="runs with pytest --all")
    measured = measured_seconds()
    for item in items:
        slow = (
            item.get_closest_marker("slow")
            or "tests/browser/" in item.nodeid
            or item.nodeid in measured
            or "test_runs_and_gives_what_it_has_stored" in item.nodeid
        )
        if slow:
            item.add_marker(skip)


# ---- who runs what, and when

DURATIONS = Path(__file__).parent / "durations.json"


def measured_seconds():
    """Of the tests that took a second or more when they were last measured, how long they took."""
    return json.loads(DURATIONS.read_text(encoding="utf-8"))


def arrange(items):
    """Give each test its group, and put the groups in order, the longest first."""
    measured = measured_seconds()
    groups = {}
    seconds = collections.Counter()
    for item in items:
        given = item.get_closest_marker("xdist_group")
        groups[item] = (
            given.args[0] if given else item.nodeid.partition("::")[0].removeprefix("tests/")
        )
        seconds[groups[item]] += measured.get(item.nodeid, 0)
        if not given:
            item.add_marker(pytest.mark.xdist_group(groups[item]))
    items.sort(key=lambda item: (-seconds[groups[item]], groups[item]))


class Durations:
    """Adds up how long each test takes, and writes down those of a second and more, beside those that did not run."""

    def __init__(self):
        self.seconds = collections.Counter()

    def pytest_runtest_logreport(self, report):
        self.seconds[report.nodeid.rpartition("@")[0] or report.nodeid] += (
            report.duration
        )  # "test@group"

    def pytest_sessionfinish(self, session):
        if hasattr(session.config, "workerinput"):
            return
        known = measured_seconds() | self.seconds
        kept = {
            test: round(known[test])
            for test in sorted(known, key=known.get, reverse=True)
            if known[test] >= 1
        }
        DURATIONS.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


@pytest.fixture(scope="session")
def built_site(tmp_path_factory):
    """The course as a site, built once for all processes by its documented command; its folder and what was complained
    of.

    TSTEVAL_SITE names a site that is built already, while working on its tests.
    """
    import importlib.util
    import subprocess
    import sys
    from pathlib import Path

    if os.environ.get("TSTEVAL_SITE"):
        return Path(os.environ["TSTEVAL_SITE"]), []
    for module in ("jupyter_book", "sphinx-mathjax-offline"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed: pip install -e '.[site]'")
    import filelock

    own = tmp_path_factory.getbasetemp()
    shared = (
        own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    )  # what all processes of this run can see
    out = shared / "site"
    complaints = shared / "complaints.txt"
    with filelock.FileLock(shared / "site.lock"):
        if not complaints.exists():
            run = subprocess.run(
                [sys.executable, "nbs/site/build.py", str(out)],
                capture_output=True,
                text=True,
                cwd=Path(__file__).parent.parent,
                check=False,
            )
            assert run.returncode == 0, run.stderr[-3000:]
            complaints.write_text(run.stderr, encoding="utf-8")
    return out, complaints.read_text(encoding="utf-8").splitlines()


@pytest.fixture(scope="session")
def site(built_site):
    return built_site[0]


@pytest.fixture(scope="session")
def site_complaints(built_site):
    return built_site[1]


@pytest.fixture(scope="module")
def making():
    """A script of nbs/making as a module."""
    folder = str(Path(__file__).parents[1] / "nbs" / "making")
    sys.path.insert(0, folder)
    yield importlib.import_module
    sys.path.remove(folder)
