"""Fixtures that several files share, and which process runs what; pytest.ini says what a run leaves out."""

import importlib
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
        "--fuzz-minutes",
        type=float,
        default=0,
        help="with -m all: how long to look for bytes that break a reader, all in all",
    )
    parser.addoption(
        "--kills",
        type=int,
        default=0,
        help="with -m all: how often each kind of run is killed at a random point",
    )


@pytest.hookimpl(tryfirst=True)  # xdist reads the groups afterwards
def pytest_collection_modifyitems(items):
    """A file's tests run in one process, since they share what it has loaded; tests with a group of their own, which
    take long, come first."""
    items.sort(key=lambda item: item.get_closest_marker("xdist_group") is None)
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))


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
