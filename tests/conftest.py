"""Shared fixtures: the embedded models are loaded once for the whole run."""
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
