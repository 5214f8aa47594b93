"""A table on disk in blocks: any block reads as in the whole table, in bounded memory, and errors name the file's
place."""

import json
import subprocess
import sys

import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from tsteval.tables import blocks
from tsteval.tables.blocks import numbered_batches, read_batches, survey_table
from tsteval.tables.formats import FileError
from tsteval.tables.tables import read_table


def not_utf8():
    """A table of Arrow whose second output is not the UTF-8 text that its column promises."""
    table = pa.table({"source": ["a", "b"], "output": pa.array([b"c", b"\x97"], pa.binary())})
    return pa.table(
        {
            "source": table["source"],
            "output": pa.chunked_array(
                [pa.Array.from_buffers(pa.string(), 2, table["output"].chunk(0).buffers())]
            ),
        }
    )


def test_columnar_text_that_is_not_utf8_is_refused_when_it_is_read(tmp_path):
    path = tmp_path / "x.parquet"
    parquet.write_table(not_utf8(), path)
    with pytest.raises(FileError, match=r"Parquet.*UTF8.*index 1"):
        read_table(path)
    with pytest.raises(FileError, match=r"rows 0 to 1.*UTF8.*index 1"):
        list(read_batches(path, 2))


def test_a_saved_data_set_reads_nothing_outside_its_folder(tmp_path):
    datasets = pytest.importorskip("datasets")
    datasets.Dataset.from_dict({"source": ["a"], "output": ["secret"]}).save_to_disk(
        tmp_path / "other"
    )
    datasets.Dataset.from_dict({"source": ["a"], "output": ["b"]}).save_to_disk(tmp_path / "saved")
    state = tmp_path / "saved" / "state.json"
    name = next((tmp_path / "other").glob("*.arrow")).name
    state.write_text(json.dumps({"_data_files": [{"filename": f"../other/{name}"}]}))
    assert read_table(tmp_path / "saved").output.tolist() == ["b"]
    assert next(read_batches(tmp_path / "saved")).output.tolist() == ["b"]
    for broken in ("", "[]", '{"_data_files": [1]}', '{"_data_files": null}'):
        state.write_text(broken)
        for read in (read_table, blocks.survey_table):
            with pytest.raises(FileError, match="not a readable folder of a data set"):
                read(tmp_path / "saved")


ROWS = [{"source": f"a {n}\u2028é", "output": f'b, "{n}"\nc', "extra": "x"} for n in range(7)]


def written(folder, kind):
    frame = pd.DataFrame(ROWS)
    if kind == "tsv":  # in which a row is a line
        frame["output"] = frame.output.str.replace("\n", " ")
    path = folder / f"t.{kind}"
    if kind == "parquet":
        frame.to_parquet(path, row_group_size=3)
    elif kind == "jsonl":
        path.write_text("\n".join(map(json.dumps, ROWS)) + "\n\n")
    else:
        frame.to_csv(path, index=False, sep="," if kind == "csv" else "\t")
    return path


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "parquet"])
@pytest.mark.parametrize("size", [1, 3, 7, 100])
def test_every_batch_knows_its_place(tmp_path, kind, size):
    path = written(tmp_path, kind)
    survey = survey_table(path)
    batches = list(numbered_batches(path, size))
    assert survey.n_rows == 7 and survey.columns == ("source", "output", "extra")
    assert [batch.first_row for batch in batches] == list(range(0, 7, size))
    assert [batch.number for batch in batches] == list(range(len(batches)))
    assert [len(batch) for batch in batches] == survey.batch_lengths(size)
    for batch in batches:
        frame, places, refused = batch.readable()
        assert places.tolist() == list(range(batch.first_row, batch.first_row + len(batch)))
        pd.testing.assert_frame_equal(frame, batch.frame())
        assert not refused


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "parquet"])
@pytest.mark.parametrize("size", [1, 3, 7, 100])
def test_batches_are_the_table_in_order(tmp_path, kind, size):
    path = written(tmp_path, kind)
    batches = list(read_batches(path, size))
    assert [len(batch) for batch in batches[:-1]] == [size] * (len(batches) - 1)
    pd.testing.assert_frame_equal(
        pd.concat(batches, ignore_index=True), read_table(path), check_dtype=False
    )


def test_a_mistake_in_a_batch_names_the_file_of_several(tmp_path):
    written(tmp_path, "csv")
    (tmp_path / "u.csv").write_text("source,output,extra\na,b,c\nd,e\n")
    with pytest.raises(FileError, match=r"u\.csv: row 1: 2 fields where the header has 3"):
        list(read_batches(tmp_path, 2))


@pytest.mark.parametrize(
    "kind, bad, words",
    [
        ("csv", "a,b,c,d\n", "row 7: 4 fields"),
        ("jsonl", '{"a\n', "line 9: not valid JSON"),
        ("jsonl", "3\n", "line 9: expected an object"),
    ],
)
def test_a_mistake_is_named_by_its_place_in_the_file(tmp_path, kind, bad, words):
    path = written(tmp_path, kind)
    with path.open("a") as file:
        file.write(bad)
    *_, batch = numbered_batches(path, 2)
    with pytest.raises(FileError, match=words):
        batch.frame()
    frame, places, [(row, reason)] = batch.readable()
    assert row == 7 and words in reason and places.tolist() == [6] and len(frame) == 1


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_line_without_end_is_refused_in_bounded_memory(tmp_path, kind):
    path = tmp_path / f"t.{kind}"
    with path.open("wb") as file:
        file.write(b"source,output\n" if kind == "csv" else b'{"source": "')
        file.seek(10**9)
        file.write(b"a")
    code = (
        "import resource, sys\nfrom tsteval.tables import blocks\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "try: blocks.survey_table(sys.argv[1])\n"
        "except blocks.FileError as error:\n"
        "    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, error, sep='|')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, check=True, text=True
    )
    taken, error = done.stdout.split("|")
    assert int(taken) < 200_000 and error.startswith(
        f"line {2 if kind == 'csv' else 1}: more than 1,000,000 characters"
    )
