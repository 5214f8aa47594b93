"""Tables in: files and Python's own."""

import datetime
import gzip
import io
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsteval.tables import formats, tables
from tsteval.tables.formats import FileError, read_excel
from tsteval.tables.outputs import prepare_pairs
from tsteval.tables.tables import open_bytes, open_table, read_table

CSV = b"source,output\na day,a day\n"


@pytest.mark.parametrize(
    "name, data",
    [
        ("x.json", b'[{"source": "a day", "output": "a day"}]'),
        ("y.json", b'{"source": ["a day"], "output": ["a day"]}'),
        ("x.csv.gz", gzip.compress(CSV)),
        ("x.jsonl.gz", gzip.compress(b'{"source": "a day", "output": "a day"}\n')),
        ("x.tsv.gz", gzip.compress(CSV.replace(b",", b"\t"))),
        ("z.json.gz", gzip.compress(b'[{"source": "a day", "output": "a day"}]')),
    ],
    ids=["x.json", "y.json", "x.csv.gz", "x.jsonl.gz", "x.tsv.gz", "z.json.gz"],
)
def test_a_table_is_read_from_every_kind_of_file(tmp_path, name, data):
    (tmp_path / name).write_bytes(data)
    assert read_table(tmp_path / name).to_dict("records") == [
        {"source": "a day", "output": "a day"}
    ]
    # piped, it is told by how it begins
    assert (
        tables.open_bytes(data).frame.to_dict("records")
        == read_table(tmp_path / name).to_dict("records")
        or name == "y.json"
    )


def test_a_saved_data_set_is_read_without_its_library(tmp_path, monkeypatch):
    datasets = pytest.importorskip("datasets")
    data = datasets.Dataset.from_list(
        [{"source": f"a {n}", "output": "b", "reference": ["c", "d"]} for n in range(5)]
    )
    data.select([4, 0, 2]).save_to_disk(tmp_path / "one", num_shards=2)
    datasets.DatasetDict({"test": data}).save_to_disk(tmp_path / "two")
    monkeypatch.setitem(sys.modules, "datasets", None)
    table = prepare_pairs(tables.open_table(tmp_path / "one").frame)
    assert (
        table.source.tolist() == ["a 4", "a 0", "a 2"]
        and table.references.tolist() == [("c", "d")] * 3
    )
    with pytest.raises(FileError, match=r"splits of a data set; choose one, such as .*two.test"):
        read_table(tmp_path / "two")
    assert len(read_table(tmp_path / "two" / "test")) == 5
    next((tmp_path / "one").glob("*.arrow")).write_bytes(b"half")
    with pytest.raises(FileError, match="not a readable folder of a data set"):
        read_table(tmp_path / "one")


def test_the_files_of_a_folder_are_parts_of_one_table(tmp_path):
    (tmp_path / "b.csv").write_bytes(b"source,output\nthree,c\n")
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"source,output\none,a\ntwo,b\n"))
    (tmp_path / "notes.txt").write_text("not a table")
    opened = tables.open_table(tmp_path)
    assert opened.frame.source.tolist() == ["one", "two", "three"] and opened.places == [
        ("a.csv.gz", 0),
        ("a.csv.gz", 1),
        ("b.csv", 0),
    ]
    (tmp_path / "c.csv").write_bytes(b"source,text\nx,y\n")
    with pytest.raises(FileError, match=r"c\.csv: its columns are not those of a\.csv\.gz"):
        read_table(tmp_path)


def test_other_repeated_columns_keep_their_cells_and_are_refused_when_asked_for():
    table = formats.parse_table(b"source,output,reference,reference_2,reference,,\na,b,c,d,e,,\n")
    assert sorted(prepare_pairs(table).references[0]) == ["c", "d", "e"]
    twice = formats.parse_table(b"text,text,output\na,b,c\n")
    with pytest.raises(FileError, match="more than one column text"):
        tables.choose_columns(twice, {"source": ["text"]})
    with pytest.raises(FileError, match="more than one column source"):
        tables.choose_columns(
            pd.DataFrame([["a", "b", "c"]], columns=["source", "source", "output"]),
            {},
        )


def test_files_aligned_by_lines(tmp_path):
    def write(name, data):
        return (tmp_path / name).write_bytes(data) and tmp_path / name

    source = write("s.txt", "a\u2028b\nc\n".encode())
    one = write("one.txt", b"d\r\ne\r\n")
    two = write("two.txt.gz", gzip.compress(b"f\ng"))
    reference = write("r.txt", b"h\ni\n")
    opened = tables.open_lines(source, [one, two], [reference, source])
    table = prepare_pairs(opened.frame)
    assert table.system.tolist() == ["one", "one", "two", "two"] and table.output.tolist() == [
        "d",
        "e",
        "f",
        "g",
    ]
    assert table.source.tolist() == ["a\u2028b", "c"] * 2 and table.references[1] == ("i", "c")
    assert opened.places[3] == ("two.txt.gz", 1)
    for bad, words in (
        (write("short.txt", b"a\n"), "short.txt: 1 lines, where .*s.txt has 2"),
        (write("gap.txt", b"a\n\n"), "gap.txt: line 2 is empty"),
        (write("none.txt", b"\n"), "none.txt: the file is empty$"),
        (tmp_path / "no.txt", "no.txt: there is no such file"),
        (tmp_path, "folder"),
    ):
        with pytest.raises(FileError, match=words):
            tables.open_lines(source, [bad])
    with pytest.raises(FileError, match="given twice"):
        tables.open_lines(source, [one, one])


@pytest.mark.all
def test_no_reader_takes_the_memory_that_a_packed_gigabyte_asks_for():
    """Eighteen readers, each in a process of its own; see the benchmark."""
    script = Path(__file__).parents[1] / "benchmarks" / "reading.py"
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    _, *rows = done.stdout.splitlines()
    small = [row for row in rows if not row.startswith("survey_table")]  # which reads in blocks
    assert len(rows) == 18 and all("unpacks to" in row for row in small), done.stdout


def book(*sheets):
    openpyxl = pytest.importorskip("openpyxl")
    made = openpyxl.Workbook()
    made.remove(made.active)
    for number, rows in enumerate(sheets):
        sheet = made.create_sheet(f"sheet {number}")
        for row in rows:
            sheet.append(row)
    written = io.BytesIO()
    made.save(written)
    return written.getvalue()


ROWS = [
    ("source", "output", None, "id"),
    ("A day <b>", "A = day", None, 7),
    (None, None, None, None),
    ("été", None, None, datetime.date(2024, 5, 3)),
]


def test_the_first_sheet_is_a_table_of_text_cells(tmp_path):
    data = book(ROWS, [("other",), ("x",)])
    (tmp_path / "pairs.xlsx").write_bytes(data)
    for opened in (open_bytes(data, "pairs"), open_table(tmp_path / "pairs.xlsx")):
        assert list(opened.frame) == ["source", "output", "id"] and len(opened.frame) == 2
        assert opened.frame.source.tolist() == ["A day <b>", "été"] and opened.frame.id[0] == "7"
        assert opened.frame.output[1] is None and opened.frame.id[1].startswith("2024-05-03")
        assert (
            "sheet 'sheet 0', the first of 2, is read; --sheet NAME reads another"
            in (opened.notes[0])
        )
    other = open_bytes(data, "pairs", sheet="sheet 1")
    assert other.frame.to_dict("list") == {"other": ["x"]} and not other.notes
    with pytest.raises(FileError, match="no sheet 'third'; the sheets are sheet 0, sheet 1"):
        open_bytes(data, "pairs", sheet="third")
    with pytest.raises(FileError, match="only an Excel file has sheets"):
        open_bytes(b"source,output\na,b\n", "pairs", sheet="one")


@pytest.mark.parametrize(
    "sheet, said",
    [
        ([], "no rows"),
        ([("source",)], "a header and no rows"),
        ([("a", "a"), ("x", "y")], "two columns are called 'a'"),
    ],
)
def test_a_sheet_without_a_table_is_refused(sheet, said):
    with pytest.raises(FileError, match=said):
        read_excel(book(sheet))


def test_what_is_broken_or_too_large_is_refused():
    data = book(ROWS)
    for broken in (data[:200], b"PK\x03\x04", data.replace(b"sheet", b"sheep")):
        with pytest.raises(FileError, match="not a readable Excel file"):
            read_excel(broken)
    large = book([("source", "output"), *[("a" * 30_000, "b")] * 40])
    with pytest.raises(FileError, match="--max-unpacked"):
        read_excel(large, max_unpacked=100_000)


def test_without_the_library_its_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(FileError, match=r"tsteval\[excel\]"):
        read_excel(b"PK\x03\x04")


# ---- what a sheet says beside its texts


def sheet_with(data, *changes):
    """The same book with other XML in its first sheet."""
    written = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(written, "w") as new:
        for name in old.namelist():
            part = old.read(name)
            for before, after in changes if name == "xl/worksheets/sheet1.xml" else ():
                part, n = re.subn(before, after, part)
                assert n == 1
            new.writestr(name, part)
    return written.getvalue()


@pytest.mark.parametrize("size", [b"A1:B2", b"A1", b"A1:C900000"])
def test_a_wrong_dimension_loses_no_row_and_no_column(size):
    rows = [
        ("source", "output", "reference"),
        *[("a dam", "dam", f"dam {row}") for row in range(4)],
    ]
    data = sheet_with(book(rows), (b'<dimension ref="A1:C5"', b'<dimension ref="' + size + b'"'))
    assert read_excel(data).to_numpy().tolist() == [list(row) for row in rows[1:]]


@pytest.mark.parametrize(
    "cell, words",
    [
        ("#N/A", "sheet 'sheet 0', cell B3 holds the error #N/A"),
        ("#DIV/0!", "cell B3 holds the error #DIV/0!"),
        ('=CONCATENATE("a","b")', "cell B3 holds a formula without its result"),
    ],
)
def test_a_cell_without_a_text_is_named(cell, words):
    with pytest.raises(FileError, match=words):
        read_excel(book([("source", "output"), ("a dam", "dam"), ("a mill", cell)]))


def test_the_result_of_a_formula_is_read_and_an_empty_one_is_an_empty_text():
    data = book([("source", "output"), ("a dam", '="d"&"am"'), ("a mill", '=""')])
    data = sheet_with(
        data,
        (rb'<c r="B2">(<f>.*?</f>)<v( /|></v)>', rb'<c r="B2" t="str">\1<v>dam</v>'),
        (rb'<c r="B3">(<f>.*?</f>)<v( /|></v)>', rb'<c r="B3" t="str">\1<v></v>'),
    )
    assert read_excel(data).output.tolist() == ["dam", ""]


def test_escapes_dates_and_truth_values_are_read_as_the_sheet_shows_them():
    moment = datetime.datetime(2024, 5, 3, 14, 30)
    cells = ["a_x000D_\nb", True, False, datetime.date(2024, 5, 3), moment, 3, 2.5]
    read = read_excel(book([("source", "output"), *[("a dam", cell) for cell in cells]]))
    texts = ["a\r\nb", "TRUE", "FALSE", "2024-05-03", "2024-05-03 14:30:00", "3", "2.5"]
    assert read.output.tolist() == texts


def test_a_column_of_a_sheet_without_a_name_keeps_its_cells():
    read = read_excel(book([("source", None, "output"), ("a dam", "seen", "dam")]))
    assert read.to_dict("list") == {"source": ["a dam"], "": ["seen"], "output": ["dam"]}


CELL = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1).filter(
    lambda text: not text.startswith(("=", "#")) and "_x" not in text
)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(CELL, st.none() | CELL), min_size=1, max_size=4), st.integers(1, 9))
def test_a_sheet_is_read_as_it_is_whatever_size_it_says(rows, size):
    data = book([("source", "output"), *rows])
    size = f'<dimension ref="A1:A{size}"'.encode()
    data = sheet_with(data, (f'<dimension ref="A1:B{len(rows) + 1}"'.encode(), size))
    columns = [list(column) for column in zip(*rows)]
    read = read_excel(data)
    assert read.source.tolist() == columns[0]
    assert ("output" in read) and read.output.tolist() == columns[1]
