"""Shared fixtures, and which tests a plain run leaves out.

`pytest` says within minutes whether the package is sound; `pytest --all` also executes every notebook, drives the explorers in a
browser and runs what is marked slow.
"""
import os

import pytest

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


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
    parser.addoption("--all", action="store_true", help="also the notebooks, the browser and the tests that are marked slow")


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: takes long; runs with --all")


def pytest_collection_modifyitems(config, items):
    if config.getoption("--all"): return
    skip = pytest.mark.skip(reason="runs with pytest --all")
    for item in items:
        slow = item.get_closest_marker("slow") or "tests/browser/" in item.nodeid or "test_runs_and_gives_what_it_has_stored" in item.nodeid
        if slow: item.add_marker(skip)
