"""Excel files: the first sheet as text cells, and everything else refused in words."""
import datetime
import io
import sys

import pytest

from tsteval.datasets.excel import read_excel
from tsteval.datasets.formats import FileError
from tsteval.datasets.tables import open_bytes, open_table


def book(*sheets):
    openpyxl = pytest.importorskip("openpyxl")
    made = openpyxl.Workbook()
    made.remove(made.active)
    for number, rows in enumerate(sheets):
        sheet = made.create_sheet(f"sheet {number}")
        for row in rows: sheet.append(row)
    written = io.BytesIO()
    made.save(written)
    return written.getvalue()


ROWS = [("source", "output", None, "id"), ("A day <b>", "A = day", None, 7), (None, None, None, None),
        ("été", None, None, datetime.date(2024, 5, 3))]


def test_the_first_sheet_is_a_table_of_text_cells(tmp_path):
    data = book(ROWS, [("other",), ("x",)])
    (tmp_path / "pairs.xlsx").write_bytes(data)
    for opened in (open_bytes(data, "pairs"), open_table(tmp_path / "pairs.xlsx")):
        assert list(opened.frame) == ["source", "output", "id"] and len(opened.frame) == 2
        assert opened.frame.source.tolist() == ["A day <b>", "été"] and opened.frame.id[0] == "7"
        assert opened.frame.output[1] is None and opened.frame.id[1].startswith("2024-05-03")
        assert "the first of 2 sheets is read" in opened.notes[0]


@pytest.mark.parametrize("sheet, said", [([], "no rows"), ([("source",)], "a header and no rows"),
                                         ([("a", "a"), ("x", "y")], "two columns are called 'a'")])
def test_a_sheet_without_a_table_is_refused(sheet, said):
    with pytest.raises(FileError, match=said): read_excel(book(sheet))


def test_what_is_broken_or_too_large_is_refused():
    data = book(ROWS)
    for broken in (data[:200], b"PK\x03\x04", data.replace(b"sheet", b"sheep")):
        with pytest.raises(FileError, match="not a readable Excel file"): read_excel(broken)
    large = book([("source", "output"), *[("a" * 30_000, "b")] * 40])
    with pytest.raises(FileError, match="--max-unpacked"): read_excel(large, max_unpacked=100_000)


def test_without_the_library_its_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(FileError, match=r"tsteval\[excel\]"): read_excel(b"PK\x03\x04")
