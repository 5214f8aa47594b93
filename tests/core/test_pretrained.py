"""Models by name: the same name gives the same weights, and nothing that could run is read."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tsteval.core import assets, fetch, pretrained
from tsteval.core.assets import AssetError
from tsteval.core.fetch import asset_path
from tsteval.core.pretrained import locate_model


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """A folder of one's own that is called like an embedded model and holds other weights."""
    shutil.copytree(assets.packaged_path("subjectivity-minilm"), tmp_path / "subjectivity-minilm")
    (tmp_path / "subjectivity-minilm" / "head.safetensors").write_bytes(b"other weights")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "subjectivity-minilm"


def test_a_path_wins_over_an_embedded_model_of_the_same_name(mine):
    shipped = locate_model("subjectivity-minilm")
    assert shipped.pinned and shipped.location == str(assets.packaged_path("subjectivity-minilm"))
    for path in (
        "./subjectivity-minilm",
        "subjectivity-minilm/",
        str(mine),
        mine,
        mine.relative_to(mine.parent),
    ):
        found = locate_model(path)
        assert (
            not found.pinned
            and os.path.samefile(found.location, mine)
            and found.identity != shipped.identity
        )


def test_a_path_that_is_not_there_is_no_embedded_model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    for path in ("./subjectivity-minilm", "./all-MiniLM-L6-v2", "x/../all-MiniLM-L6-v2"):
        pretrained.hub_reachable.cache_clear()
        with pytest.raises(AssetError, match="cannot load"):
            locate_model(path)
    pretrained.hub_reachable.cache_clear()


def test_the_unpacked_language_model_is_redone_when_it_was_changed(tmp_path, monkeypatch, caplog):
    """The weights of the unpacked copy are no more believed than those of the packed file."""
    name = "SmolLM2-135M-Instruct"
    fetch.fetch_asset(name, progress=False)
    real = assets.cache_folder() / "assets"
    asset = assets.ASSETS[name]
    monkeypatch.setenv("TSTEVAL_CACHE", str(tmp_path))
    (tmp_path / "assets").mkdir()
    for suffix, names in (("", asset.digests), ("-unpacked", asset.unpacked)):
        folder = tmp_path / "assets" / f"{name}-{asset.version}{suffix}"
        folder.mkdir()
        for file in names:
            (folder / file).symlink_to(real / folder.name / file)
    (folder / "config.json").unlink()
    (folder / "config.json").write_text("{}")
    written = []

    def unpack(gguf, settings, target):  # the work itself takes 15 s; here it is a copy
        written.append(gguf.name)
        for file in asset.unpacked:
            (target / file).symlink_to(real / folder.name / file)

    monkeypatch.setattr(fetch, "_unpack_gguf", unpack)
    assert pretrained.locate_model(name).identity == asset.digests[asset.gguf_file]
    assert written == [asset.gguf_file] and "damaged (config.json has changed)" in caplog.text
    assert json.loads((folder / "config.json").read_text())["model_type"] == "llama"


def test_the_unpacked_language_model_equals_what_transformers_reads():
    import torch
    from safetensors import safe_open

    asset = assets.ASSETS["SmolLM2-135M-Instruct"]
    from gguf import GGUFReader, dequantize

    folder = Path(pretrained.locate_model(asset.name).location)
    packed = {
        tensor.name: tensor
        for tensor in GGUFReader(asset_path(asset.name) / asset.gguf_file).tensors
    }
    with safe_open(folder / "model.safetensors", "pt") as weights:
        assert sorted(weights.keys()) == sorted(map(fetch._module_name, packed))
        for name in ("blk.3.ffn_down.weight", "output_norm.weight", "blk.0.attn_v.weight"):
            expected = torch.tensor(dequantize(packed[name].data, packed[name].tensor_type))
            assert torch.equal(weights.get_tensor(fetch._module_name(name)), expected)
        # pairs in the file, halves in the model: Rotary embeddings, two ways
        for part, heads in (("attn_q", 9), ("attn_k", 3)):
            name = f"blk.7.{part}.weight"
            rows = dequantize(packed[name].data, packed[name].tensor_type)
            size = len(rows) // heads
            order = [
                head * size + place
                for head in range(heads)
                for place in [*range(0, size, 2), *range(1, size, 2)]
            ]
            assert torch.equal(
                weights.get_tensor(fetch._module_name(name)), torch.tensor(rows[order])
            )


@pytest.mark.ci
def test_missing_model_fails_fast_without_the_hub():
    code = """
import time, huggingface_hub, httpx2, transformers
from tsteval.core import assets, pretrained
started = time.monotonic()
try:
    source = pretrained.locate_model("nobody/no-such-model")
    pretrained.load_pretrained(transformers.AutoModel, source, default="all-MiniLM-L6-v2")
except assets.AssetError as error:
    print(time.monotonic() - started)
    print(error)
"""
    # an address that refuses connections stands for a hub that cannot be reached
    environment = os.environ | {"HF_ENDPOINT": "http://127.0.0.1:9"}
    environment.pop("HF_HUB_OFFLINE", None)
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    seconds, message = run.stdout.splitlines()
    assert float(seconds) < 15  # without the hub's offline switch it is minutes
    assert (
        "nobody/no-such-model" in message
        and "all-MiniLM-L6-v2" in message
        and "cannot be reached" in message
    )


def test_a_folder_loads_like_an_embedded_model(encoder):
    import numpy as np

    from tsteval.cps import SentenceEncoder

    from_folder = SentenceEncoder.load(str(asset_path("all-MiniLM-L6-v2")))
    assert np.array_equal(from_folder.encode(["a text"]), encoder.encode(["a text"]))


def test_pickled_weights_are_refused(tmp_path):
    import torch

    from tsteval.cps import SentenceEncoder

    source = asset_path("all-MiniLM-L6-v2")
    for path in source.iterdir():
        if path.suffix != ".safetensors":
            shutil.copy(path, tmp_path)
    torch.save({"x": torch.zeros(1)}, tmp_path / "pytorch_model.bin")
    with pytest.raises(AssetError):
        SentenceEncoder.load(str(tmp_path))


@pytest.mark.ci
def test_python_without_docstrings_is_refused_by_name():
    """transformers reads docstrings; what it said of their lack had nothing to do with it."""
    code = (
        "from tsteval.core.assets import AssetError; from tsteval.style import StyleClassifier\n"
        "try: StyleClassifier.load()\nexcept AssetError as error: print(error)\n"
        "from tsteval.evaluation import evaluate\n"
        "print(evaluate([{'source': 'a', 'output': 'a b c d', 'reference': 'a b c d'}], ['bleu'], "
        "n_boot=5).summary().bleu[0])"
    )
    done = subprocess.run(
        [sys.executable, "-OO", "-W", "ignore", "-c", code],
        capture_output=True,
        text=True,
        check=True,
    )
    said, bleu = done.stdout.strip().split("\n")
    assert "under python -OO" in said and "run python without -OO" in said and float(bleu) == 1
