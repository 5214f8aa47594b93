"""Lai et al.'s ratings are the published lines, in order, or refused."""

import json

import pytest

from tsteval.core.assets import AssetError
from tsteval.tables import lai2022


def test_lai2022_is_read_whole_and_in_order():
    try:
        table = lai2022.load_lai2022()
    except AssetError:
        pytest.skip("needs the external corpus lai2022")
    assert (
        len(table) == 495
        and table.groupby("system").row.apply(list).map(lambda rows: rows == list(range(55))).all()
    )
    assert (
        table.to_formal.sum() == 28 * 9
        and (table[table.system == "ref"].output == table[table.system == "ref"].reference).all()
    )
    assert table.filter(like="human").notna().all(axis=None)


def test_lai2022_passes_over_other_sources_and_refuses_changed_lines(tmp_path, monkeypatch):
    lines = [json.dumps({"src": f"s{number}", "score": number}) for number in range(4)]

    def digest(text):
        return lai2022.sha256(text.encode()).hexdigest()

    monkeypatch.setattr(lai2022, "corpus_path", lambda name: tmp_path)
    monkeypatch.setattr(lai2022, "_LAI2022_SOURCES", [digest("s2")[:10], digest("s0")[:10]])
    monkeypatch.setattr(
        lai2022, "_LAI2022_FILES", {"style": digest("\n".join([lines[2], lines[0]]))}
    )
    (tmp_path / "style.json").write_text("\n".join(lines) + "\n")
    assert [line["score"] for line in lai2022._lai2022_lines("style")] == [2, 0]
    (tmp_path / "style.json").write_text("\n".join(lines).replace('"score": 2', '"score": 9'))
    with pytest.raises(AssetError, match="not the published file"):
        lai2022._lai2022_lines("style")
