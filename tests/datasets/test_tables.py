"""Tables in: files and Python's own; files out: whole or not at all."""
import gzip
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from tsteval.core.checks import InputError
from tsteval.datasets import blocks, tables
from tsteval.datasets.tables import FileError, prepare_pairs, read_table


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_the_bad_byte_is_named_with_and_without_a_mark(tmp_path, mark):
    path = tmp_path / "x.csv"
    path.write_bytes(mark + b"source,output\na,b\nc\xe8,d\n")
    with pytest.raises(FileError, match="line 3: byte 0xE8"):
        read_table(path)


def test_a_repeated_header_gets_a_number(tmp_path):
    (tmp_path / "x.csv").write_text("source,output,reference,reference\na,b,c,d\n")
    assert prepare_pairs(read_table(tmp_path / "x.csv")).references.tolist() == [("c", "d")]


def test_defaults_of_a_prepared_table():
    table = prepare_pairs([{"source": "a", "output": "b"}], target_style="formal")
    assert list(table.columns) == ["system", "source", "output", "references", "target_style", "input"]
    assert table.iloc[0].tolist() == ["output", "a", "b", (), "formal", "a"]
    assert prepare_pairs([{"source": "a", "output": "b", "input": "c",
                           "target_style": "x"}]).iloc[0, -2:].tolist() == ["x", "c"]


@pytest.mark.parametrize("pairs, words", [
    ("file.csv", "must be a table"), (3, "must be a table"), ([("a", "b")], "pairs, row 0: expected a dictionary"),
    ({"source": ["a", "b"], "output": ["c"]}, "equally long"), ([], "no column source|no rows"),
    (pd.DataFrame([["a", "b", "c"]], columns=["source", "output", "output"]), "more than one column output"),
    ([{"source": "a", "output": np.nan}], "column output, row 0: expected a string, got NaN"),
    ([{"source": "a", "output": "b", "reference": ["c", 3]}], "column reference, row 0: expected a string, got int 3"),
    ([{"source": "a", "output": "b", "reference": []}], "column reference, row 0: there is no reference")])
def test_bad_tables(pairs, words):
    with pytest.raises(InputError, match=words):
        prepare_pairs(pairs)


def test_something_with_to_pandas_is_a_table():
    class Dataset:
        def to_pandas(self): return pd.DataFrame({"source": ["a"], "output": ["b"]})
    assert prepare_pairs(Dataset()).output.tolist() == ["b"]


ROWS = [{"system": "one", "source": "a b", "output": "a", "reference": ["a b", "b"]},
        {"system": "two", "source": "a b", "output": "b", "reference": ["c"]}]


@pytest.mark.parametrize("kind", [
    list, tuple, iter, lambda rows: (row for row in rows), lambda rows: map(dict, rows), pd.DataFrame,
    lambda rows: pd.DataFrame(rows, index=[7, 7]),
    lambda rows: {name: [row[name] for row in rows] for name in rows[0]},
    lambda rows: {name: np.array([row[name] for row in rows], object) for name in rows[0]}])
def test_whatever_holds_rows_is_evaluated_alike(kind):
    from tsteval.evaluation import evaluate
    expected = evaluate(ROWS, ["bleu", "rouge"], n_boot=5)
    given = kind(ROWS)
    found = evaluate(given, ["bleu", "rouge"], n_boot=5)
    pd.testing.assert_frame_equal(found.per_pair, expected.per_pair)
    pd.testing.assert_frame_equal(found.summary(), expected.summary())
    # and nobody's rows are changed
    assert ROWS[0] == {"system": "one", "source": "a b", "output": "a", "reference": ["a b", "b"]}


def test_a_mistake_in_a_generator_is_named_by_its_row():
    with pytest.raises(InputError, match="column output, row 2"):
        prepare_pairs({"source": "a", "output": "" if n == 2 else "b"} for n in range(4))


# ---- kinds of files, encodings, lines

CSV = b"source,output\na day,a day\n"


@pytest.mark.parametrize("name, data", [
    ("x.json", b'[{"source": "a day", "output": "a day"}]'), ("y.json", b'{"source": ["a day"], "output": ["a day"]}'),
    ("x.csv.gz", gzip.compress(CSV)),
    ("x.jsonl.gz", gzip.compress(b'{"source": "a day", "output": "a day"}\n')),
    ("x.tsv.gz", gzip.compress(CSV.replace(b",", b"\t"))),
    ("z.json.gz", gzip.compress(b'[{"source": "a day", "output": "a day"}]'))],
                         ids=["x.json", "y.json", "x.csv.gz", "x.jsonl.gz", "x.tsv.gz", "z.json.gz"])
def test_a_table_is_read_from_every_kind_of_file(tmp_path, name, data):
    (tmp_path / name).write_bytes(data)
    assert read_table(tmp_path / name).to_dict("records") == [{"source": "a day", "output": "a day"}]
    # piped, it is told by how it begins
    assert (tables.open_bytes(data).frame.to_dict("records") == read_table(tmp_path / name).to_dict("records") or name
            == "y.json")


def test_parquet_may_be_compressed_once_more(tmp_path):
    pd.DataFrame({"source": ["a"], "output": ["b"]}).to_parquet(tmp_path / "x.parquet")
    (tmp_path / "x.parquet.gz").write_bytes(gzip.compress((tmp_path / "x.parquet").read_bytes()))
    assert read_table(tmp_path / "x.parquet.gz").output.tolist() == ["b"]


def test_a_saved_data_set_is_read_without_its_library(tmp_path, monkeypatch):
    datasets = pytest.importorskip("datasets")
    data = datasets.Dataset.from_list([{"source": f"a {n}", "output": "b", "reference": ["c", "d"]} for n in range(5)])
    data.select([4, 0, 2]).save_to_disk(tmp_path / "one", num_shards=2)
    datasets.DatasetDict({"test": data}).save_to_disk(tmp_path / "two")
    monkeypatch.setitem(sys.modules, "datasets", None)
    table = prepare_pairs(tables.open_table(tmp_path / "one").frame)
    assert table.source.tolist() == ["a 4", "a 0", "a 2"] and table.references.tolist() == [("c", "d")] * 3
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
    assert opened.frame.source.tolist() == ["one", "two",
                                            "three"] and opened.places == [("a.csv.gz", 0), ("a.csv.gz", 1),
                                                                           ("b.csv", 0)]
    (tmp_path / "c.csv").write_bytes(b"source,text\nx,y\n")
    with pytest.raises(FileError, match=r"c.csv: its columns are not those of a.csv.gz"):
        read_table(tmp_path)


TEXT = "source,output\n“It’s fine” – café,naïve\n"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32"])
def test_a_mark_says_the_encoding(tmp_path, encoding):
    data = TEXT.encode(encoding) if encoding != "utf-16-le" else b"\xff\xfe" + TEXT.encode(encoding)
    (tmp_path / "x.csv").write_bytes(data)
    with pytest.warns(UserWarning, match="x.csv: read as UTF-"):
        assert read_table(tmp_path / "x.csv").to_csv(index=False) == TEXT


@pytest.mark.parametrize("text, encoding, certain", [
    ("don’t – “so”… café über", "cp1252", True), ("crème", "cp1252", False), ("año", "cp1252", False),
    ("день", "cp1251", False), ("łódź", "cp1250", False),
    ("日本語", "shift_jis", False), ("中文", "gbk", False), ("λόγος", "cp1253", False), ("schön", "cp850", False),
    ("café", "mac_roman", False), ("‹‚ƒ\x07", "cp1252", False)])
def test_only_what_leaves_no_choice_is_read(text, encoding, certain):
    data, notes = f"source,output\na,{text}\n".encode(encoding, "replace"), []
    if certain:
        assert tables.parse_table(data, notes=notes).output.tolist() == [text] and "cp1252" in notes[0]
    else:
        with pytest.raises(FileError, match="--encoding"): tables.parse_table(data)
    assert tables.parse_table(data, encoding=encoding).output.tolist() == [text]
    with pytest.raises(FileError, match="no encoding called 'klingon'"): tables.parse_table(data, encoding="klingon")


@pytest.mark.parametrize("header, words", [("source,output,output", "names output 2 times"),
                                           (" source ,output,source", "names source 2 times"),
                                           ("source,output,system,system", "names system 2 times")])
def test_a_repeated_column_of_ours_is_refused_by_name(header, words):
    with pytest.raises(FileError, match=words):
        tables.parse_table(f"{header}\n{'a,' * header.count(',')}a\n".encode())


def test_other_repeated_columns_keep_their_cells_and_are_refused_when_asked_for():
    table = tables.parse_table(b"source,output,reference,reference_2,reference,,\na,b,c,d,e,,\n")
    assert sorted(prepare_pairs(table).references[0]) == ["c", "d", "e"]
    twice = tables.parse_table(b"text,text,output\na,b,c\n")
    with pytest.raises(FileError, match="more than one column text"):
        tables.choose_columns(twice, {"source": "text", "output": "output"})
    with pytest.raises(FileError, match="more than one column source"):
        tables.choose_columns(pd.DataFrame([["a", "b", "c"]], columns=["source", "source", "output"]),
                              {"source": "source", "output": "output"})


def test_files_aligned_by_lines(tmp_path):
    write = lambda name, data: (tmp_path / name).write_bytes(data) and tmp_path / name
    source, one = write("s.txt", "a\u2028b\nc\n".encode()), write("one.txt", b"d\r\ne\r\n")
    two, reference = write("two.txt.gz", gzip.compress(b"f\ng")), write("r.txt", b"h\ni\n")
    opened = tables.open_lines(source, [one, two], [reference, source])
    table = prepare_pairs(opened.frame)
    assert table.system.tolist() == ["one", "one", "two", "two"] and table.output.tolist() == ["d", "e", "f", "g"]
    assert table.source.tolist() == ["a\u2028b", "c"] * 2 and table.references[1] == ("i",
                                                                                      "c") and opened.places[3] == ("two.txt.gz", 1)
    for bad, words in ((write("short.txt", b"a\n"), "short.txt: 1 lines, where .*s.txt has 2"),
                       (write("gap.txt", b"a\n\n"), "gap.txt: line 2 is empty"),
                       (write("none.txt", b"\n"), "none.txt: the file is empty$"),
                       (tmp_path / "no.txt", "no.txt: there is no such file"), (tmp_path, "folder")):
        with pytest.raises(FileError, match=words): tables.open_lines(source, [bad])
    with pytest.raises(FileError, match="given twice"): tables.open_lines(source, [one, one])


@pytest.mark.parametrize("pairs", [{"source": "a bridge", "output": "a ridge."}, {"source": ["a"], "output": "b"},
                                   {"source": b"a", "output": b"b"}])
def test_one_row_as_a_dictionary_is_not_scored_letter_by_letter(pairs):
    with pytest.raises(InputError, match="is one text, not a list"):
        prepare_pairs(pairs)


def test_rows_as_dictionaries_are_evaluated():
    from tsteval.evaluation import evaluate
    assert evaluate([{"source": "a", "output": "b"}], ["readability"], n_boot=5).summary().n[0] == 1


def test_a_header_of_thousands_of_empty_names_is_read_at_once(tmp_path):
    (tmp_path / "x.csv").write_text("source,output" + "," * 20_000 + "\na,b" + "," * 20_000 + "\n")
    started = time.process_time()
    names = read_table(tmp_path / "x.csv").columns
    # 2,000 took nine seconds, where each was sought among all
    assert time.process_time() - started < 5 and names.is_unique and list(names[2:5]) == ["", "_2", "_3"]


def test_numbered_names_pass_over_those_that_are_there(tmp_path):
    (tmp_path / "x.csv").write_text("source,output,x,x,x_2,x,x_2\na,b,1,2,3,4,5\n")
    assert list(read_table(tmp_path / "x.csv").columns) == ["source", "output", "x", "x_3", "x_2", "x_4", "x_2_2"]


def not_utf8():
    """A table of Arrow whose second output is not the UTF-8 text that its column promises."""
    table = pa.table({"source": ["a", "b"], "output": pa.array([b"c", b"\x97"], pa.binary())})
    return pa.table({"source": table["source"],
                     "output": pa.chunked_array([pa.Array.from_buffers(pa.string(), 2,
                                                                       table["output"].chunk(0).buffers())])})


def test_columnar_text_that_is_not_utf8_is_refused_when_it_is_read(tmp_path):
    path = tmp_path / "x.parquet"
    parquet.write_table(not_utf8(), path)
    with pytest.raises(FileError, match=r"Parquet.*UTF8.*index 1"): read_table(path)
    with pytest.raises(FileError, match=r"rows 0 to 1.*UTF8.*index 1"):
        blocks.read_block(blocks.index_table(path, 2).blocks[0])


def test_a_saved_data_set_reads_nothing_outside_its_folder(tmp_path):
    datasets = pytest.importorskip("datasets")
    datasets.Dataset.from_dict({"source": ["a"], "output": ["secret"]}).save_to_disk(tmp_path / "other")
    datasets.Dataset.from_dict({"source": ["a"], "output": ["b"]}).save_to_disk(tmp_path / "saved")
    state = tmp_path / "saved" / "state.json"
    name = next((tmp_path / "other").glob("*.arrow")).name
    state.write_text(json.dumps({"_data_files": [{"filename": f"../other/{name}"}]}))
    assert read_table(tmp_path / "saved").output.tolist() == ["b"]
    assert blocks.read_block(blocks.index_table(tmp_path / "saved", 1).blocks[0]).output.tolist() == ["b"]
    for broken in ("", "[]", '{"_data_files": [1]}', '{"_data_files": null}'):
        state.write_text(broken)
        for read in (read_table, blocks.index_table):
            with pytest.raises(FileError, match="not a readable folder of a data set"): read(tmp_path / "saved")


def test_a_parquet_file_that_promises_more_rows_than_memory_holds_is_harmless():
    data = (Path(__file__).parents[1] / "fuzz" / "corpus" / "parquet" / "promises_much").read_bytes()
    line = "import sys; from tsteval.datasets import tables; print(len(tables.parse_table(sys.stdin.buffer.read())))"
    done = subprocess.run([sys.executable, "-c",
                           f"import resource; resource.setrlimit(resource.RLIMIT_AS, (2**33, 2**33)); {line}"],
                          input=data, capture_output=True, check=False)
    assert done.stdout == b"1\n", done.stderr.decode()[-500:]


def test_parquet_columns_of_categories_and_an_index_are_read(tmp_path):
    table = pd.DataFrame({"source": ["a", "b"], "output": ["c", "d"], "system": pd.Categorical(["x", "x"])},
                         index=pd.Index([5, 7], name="id"))
    table.to_parquet(tmp_path / "x.parquet")
    read = prepare_pairs(read_table(tmp_path / "x.parquet"))
    assert read.system.tolist() == ["x", "x"] and read.output.tolist() == ["c", "d"]
    table.set_index("source").to_parquet(tmp_path / "y.parquet")
    assert prepare_pairs(read_table(tmp_path / "y.parquet")).source.tolist() == ["a", "b"]
