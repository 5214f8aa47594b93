"""What is known of assets and corpora: every file has a checksum, and what is damaged is told by name."""

import hashlib
import os
from pathlib import Path

import pytest

from tsteval.core import assets
from tsteval.core.assets import Asset, AssetError
from tsteval.core.files import file_sha256


def test_every_file_needs_a_checksum():
    with pytest.raises(ValueError, match="checksum"):
        Asset("tiny", "tiny", "1", "0" * 64, 1, {"a": "b"}, "", digests={})
    for asset in assets.ASSETS.values():
        assert len(asset.sha256) == 64 and all(
            len(digest) == 64 for digest in asset.digests.values()
        )


@pytest.mark.parametrize(
    "spoil, only, words",
    [
        (lambda folder: None, False, ""),
        (lambda folder: (folder / "a").write_text("y"), False, "a has changed"),
        (lambda folder: (folder / "a").unlink(), True, "a is missing"),
        (lambda folder: (folder / "b").touch(), False, "b does not belong there"),
        (lambda folder: (folder / "b").touch(), True, ""),
        (
            lambda folder: ((folder / "a").unlink(), (folder / "a").mkdir()),
            False,
            "a: Is a directory",
        ),
    ],
)
def test_what_is_wrong_with_a_folder_is_said(tmp_path, spoil, only, words):
    (tmp_path / "a").write_text("x")
    spoil(tmp_path)
    assert assets.damage(tmp_path, {"a": hashlib.sha256(b"x").hexdigest()}, only) == words


def test_a_corpus_is_found_in_the_folder_that_is_named_and_else_in_the_cache(tmp_path, monkeypatch):
    corpus = assets.Corpus(
        "lines", "free", "the site", files={"a": hashlib.sha256(b"x").hexdigest()}
    )
    monkeypatch.setattr(assets, "corpora", lambda: {"lines": corpus})
    monkeypatch.setenv("TSTEVAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("TSTEVAL_DATA", str(tmp_path / "data"))
    with pytest.raises(AssetError, match=r"is not on this machine.*set TSTEVAL_DATA"):
        assets.corpus_path("lines")
    for folder in (tmp_path / "cache" / "corpora" / "lines", tmp_path / "data" / "lines"):
        folder.mkdir(parents=True)
        (folder / "a").write_text("x")
        assert assets.corpus_path("lines") == folder
    with pytest.raises(AssetError, match="no corpus called 'words'; the corpora are lines"):
        assets.corpus_path("words")


@pytest.mark.parametrize("content", ["", "{", "[1]", '{"a": 1}', '{"a": null}'])
def test_damaged_settings_name_their_file(tmp_path, content):
    (tmp_path / "style.json").write_text(content)
    with pytest.raises(AssetError, match=r"style.json"):
        assets.read_json(tmp_path / "style.json", {"a": str})
    with pytest.raises(AssetError, match=r"none.json is missing"):
        assets.read_json(tmp_path / "none.json")


def test_every_corpus_says_how_to_get_it():
    for corpus in assets.corpora().values():
        assert (
            corpus.terms
            and corpus.get_it
            and all(len(digest) == 64 for digest in corpus.files.values())
        )


def test_local_corpora_match_their_pinned_files():
    root = os.environ.get("TSTEVAL_DATA")
    if not root:
        pytest.skip("needs the external corpora: set TSTEVAL_DATA to the folder that holds them")
    for corpus in assets.corpora().values():
        for path, digest in corpus.files.items():
            assert file_sha256(Path(root) / corpus.name / path) == digest
