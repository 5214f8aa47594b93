"""Shared fixtures, and which tests a plain run leaves out.

`pytest` says within minutes whether the package is sound; `pytest --all` also executes every notebook, drives the
explorers in a browser and runs what is marked slow.
"""
import os

import hypothesis
import pytest

# a busy machine is no fault of the code
hypothesis.settings.register_profile("patient", hypothesis.settings(), deadline=None)
hypothesis.settings.load_profile("patient")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
if "PYTEST_XDIST_WORKER" in os.environ: os.environ.setdefault("OMP_NUM_THREADS", "1")  # processes that share the cores


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


def pytest_addoption(parser):
    parser.addoption("--all", action="store_true",
                     help="also the notebooks, the browser and the tests that are marked slow")
    parser.addoption("--fuzz-minutes", type=float, default=0,
                     help="with --all: how long to look for texts that break a function, all in all")
    parser.addoption("--kills", type=int, default=0,
                     help="with --all: how often each kind of run is killed at a random point")


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: takes long; runs with --all")


def pytest_collection_modifyitems(config, items):
    if config.getoption("--all"): return
    skip = pytest.mark.skip(reason="runs with pytest --all")
    for item in items:
        slow = (item.get_closest_marker("slow") or "tests/browser/" in item.nodeid
                or "test_runs_and_gives_what_it_has_stored" in item.nodeid)
        if slow: item.add_marker(skip)


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
    if os.environ.get("TSTEVAL_SITE"): return Path(os.environ["TSTEVAL_SITE"]), []
    for module in ("jupyter_book", "sphinx-mathjax-offline"):
        if importlib.util.find_spec(module) is None: pytest.skip(f"{module} is not installed: pip install -e '.[site]'")
    import filelock
    own = tmp_path_factory.getbasetemp()
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own  # what all processes of this run can see
    out, complaints = shared / "site", shared / "complaints.txt"
    with filelock.FileLock(shared / "site.lock"):
        if not complaints.exists():
            run = subprocess.run([sys.executable, "nbs/site/build.py", str(out)], capture_output=True, text=True,
                                 cwd=Path(__file__).parent.parent, check=False)
            assert run.returncode == 0, run.stderr[-3000:]
            complaints.write_text(run.stderr, encoding="utf-8")
    return out, complaints.read_text(encoding="utf-8").splitlines()


@pytest.fixture(scope="session")
def site(built_site):
    return built_site[0]


@pytest.fixture(scope="session")
def site_complaints(built_site):
    return built_site[1]
