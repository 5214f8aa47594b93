"""Tables in: files and Python's own; files out: whole or not at all."""
import numpy as np
import pandas as pd
import pytest

from tsteval.core.checks import InputError
from tsteval.core.tables import FileError, prepare_pairs, read_table


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_the_bad_byte_is_named_with_and_without_a_mark(tmp_path, mark):
    path = tmp_path / "x.csv"
    path.write_bytes(mark + b"source,output\na,b\nc\xe9,d\n")
    with pytest.raises(FileError, match="line 3: byte 0xE9"):
        read_table(path)


def test_a_repeated_header_gets_a_number(tmp_path):
    (tmp_path / "x.csv").write_text("source,output,reference,reference\na,b,c,d\n")
    assert prepare_pairs(read_table(tmp_path / "x.csv")).references.tolist() == [("c", "d")]


def test_defaults_of_a_prepared_table():
    table = prepare_pairs([{"source": "a", "output": "b"}], target_style="formal")
    assert list(table.columns) == ["system", "source", "output", "references", "target_style", "input"]
    assert table.iloc[0].tolist() == ["output", "a", "b", (), "formal", "a"]
    assert prepare_pairs([{"source": "a", "output": "b", "input": "c", "target_style": "x"}]).iloc[0, -2:].tolist() == ["x", "c"]


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
