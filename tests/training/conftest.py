"""A folder with files to train on."""

import pytest

from .files import pairs_frame, texts_frame


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pairs_frame().to_csv("pairs.csv", index=False)
    texts_frame().to_json("texts.jsonl", orient="records", lines=True)
    return tmp_path
