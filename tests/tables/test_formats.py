"""Bytes become rows of text, whatever the format and the encoding, and in bounded memory."""

import csv
import gzip
import io
import json
import subprocess
import sys
import time
import zlib
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsteval.tables import formats
from tsteval.tables.blocks import survey_table
from tsteval.tables.formats import FileError
from tsteval.tables.outputs import prepare_pairs
from tsteval.tables.tables import open_lines, read_table

TEXT = "source,output\n“It’s fine” – café,naïve\n"


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_the_bad_byte_is_named_with_and_without_a_mark(tmp_path, mark):
    path = tmp_path / "x.csv"
    path.write_bytes(mark + b"source,output\na,b\nc\xe8,d\n")
    with pytest.raises(FileError, match="line 3: byte 0xE8"):
        read_table(path)


def test_a_repeated_header_gets_a_number(tmp_path):
    (tmp_path / "x.csv").write_text("source,output,reference,reference\na,b,c,d\n")
    assert prepare_pairs(read_table(tmp_path / "x.csv")).references.tolist() == [("c", "d")]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32"])
def test_a_mark_says_the_encoding(tmp_path, encoding):
    data = TEXT.encode(encoding) if encoding != "utf-16-le" else b"\xff\xfe" + TEXT.encode(encoding)
    (tmp_path / "x.csv").write_bytes(data)
    with pytest.warns(UserWarning, match="x.csv: read as UTF-"):
        assert read_table(tmp_path / "x.csv").to_csv(index=False) == TEXT


@pytest.mark.parametrize(
    "text, encoding, certain",
    [
        ("don’t – “so”… café über", "cp1252", True),
        ("crème", "cp1252", False),
        ("año", "cp1252", False),
        ("день", "cp1251", False),
        ("łódź", "cp1250", False),
        ("日本語", "shift_jis", False),
        ("中文", "gbk", False),
        ("λόγος", "cp1253", False),
        ("schön", "cp850", False),
        ("café", "mac_roman", False),
        ("‹‚ƒ\x07", "cp1252", False),
    ],
)
def test_only_what_leaves_no_choice_is_read(text, encoding, certain):
    data = f"source,output\na,{text}\n".encode(encoding, "replace")
    notes = []
    if certain:
        assert (
            formats.parse_table(data, notes=notes).output.tolist() == [text]
            and "cp1252" in notes[0]
        )
    else:
        with pytest.raises(FileError, match="--encoding"):
            formats.parse_table(data)
    assert formats.parse_table(data, encoding=encoding).output.tolist() == [text]
    with pytest.raises(FileError, match="no encoding called 'klingon'"):
        formats.parse_table(data, encoding="klingon")


@pytest.mark.parametrize(
    "data, words",
    [
        (b"\x89PNG\r\n\x1a\n\x00\xff", "is no text"),
        ("a,é\n".encode("cp1252") + "b,é\n".encode(), "line 2 is not UTF-8 and other lines are"),
    ],
)
def test_what_no_encoding_reads_is_told(data, words):
    with pytest.raises(FileError, match=words):
        formats.parse_table(b"source,output\n" + data)


@pytest.mark.parametrize(
    "header, words",
    [
        ("source,output,output", "names output 2 times"),
        (" source ,output,source", "names source 2 times"),
        ("source,output,system,system", "names system 2 times"),
    ],
)
def test_a_repeated_column_of_ours_is_refused_by_name(header, words):
    with pytest.raises(FileError, match=words):
        formats.parse_table(f"{header}\n{'a,' * header.count(',')}a\n".encode())


def test_a_header_of_thousands_of_empty_names_is_read_at_once(tmp_path):
    (tmp_path / "x.csv").write_text("source,output" + "," * 16_382 + "\na,b" + "," * 16_382 + "\n")
    started = time.process_time()
    names = read_table(tmp_path / "x.csv").columns
    # 2,000 took nine seconds, where each was sought among all
    assert (
        time.process_time() - started < 5
        and names.is_unique
        and list(names[2:5]) == ["", "_2", "_3"]
    )


def test_numbered_names_pass_over_those_that_are_there(tmp_path):
    (tmp_path / "x.csv").write_text("source,output,x,x,x_2,x,x_2\na,b,1,2,3,4,5\n")
    assert list(read_table(tmp_path / "x.csv").columns) == [
        "source",
        "output",
        "x",
        "x_3",
        "x_2",
        "x_4",
        "x_2_2",
    ]


def test_parquet_may_be_compressed_once_more(tmp_path):
    pd.DataFrame({"source": ["a"], "output": ["b"]}).to_parquet(tmp_path / "x.parquet")
    (tmp_path / "x.parquet.gz").write_bytes(gzip.compress((tmp_path / "x.parquet").read_bytes()))
    assert read_table(tmp_path / "x.parquet.gz").output.tolist() == ["b"]


def test_a_parquet_file_that_promises_more_rows_than_memory_holds_is_harmless():
    data = (
        Path(__file__).parents[1] / "fuzz" / "corpus" / "parquet" / "promises_much"
    ).read_bytes()
    line = "import sys; from tsteval.tables import formats; print(len(formats.parse_table(sys.stdin.buffer.read())))"
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            f"import resource; resource.setrlimit(resource.RLIMIT_AS, (2**33, 2**33)); {line}",
        ],
        input=data,
        capture_output=True,
        check=False,
    )
    assert done.stdout == b"1\n", done.stderr.decode()[-500:]


def test_parquet_columns_of_categories_and_an_index_are_read(tmp_path):
    table = pd.DataFrame(
        {"source": ["a", "b"], "output": ["c", "d"], "system": pd.Categorical(["x", "x"])},
        index=pd.Index([5, 7], name="id"),
    )
    table.to_parquet(tmp_path / "x.parquet")
    read = prepare_pairs(read_table(tmp_path / "x.parquet"))
    assert read.system.tolist() == ["x", "x"] and read.output.tolist() == ["c", "d"]
    table.set_index("source").to_parquet(tmp_path / "y.parquet")
    assert prepare_pairs(read_table(tmp_path / "y.parquet")).source.tolist() == ["a", "b"]


# ---- how much is read


def packed(size, begin=b"", byte=b"\0"):
    """What gzip makes of so many bytes that are all alike."""
    packer = zlib.compressobj(9, wbits=31)
    parts = [
        packer.compress(begin),
        *(packer.compress(byte * 2**20) for _ in range(size // 2**20)),
        packer.flush(),
    ]
    return b"".join(parts)


def shortened(data):
    """A packed file that says of itself that it is short."""
    return data[:-4] + (100).to_bytes(4, "little")


@pytest.mark.parametrize("make", [lambda data: data, shortened], ids=["honest", "lying"])
def test_a_packed_file_may_not_unpack_beyond_its_bound(make):
    data = make(packed(2**25))
    with pytest.raises(
        FileError, match=r"unpacks to more than 16,777,216 bytes.*--max-unpacked.*max_unpacked"
    ):
        formats.parse_table(data, "csv", max_unpacked=2**24)
    with pytest.raises(FileError, match="unpacks to more"):
        formats.parse_lines(data, max_unpacked=2**24)


def test_a_file_that_is_cut_off_is_called_that(tmp_path):
    """Its last bytes are no length, although they stand where a length should."""
    with pytest.raises(FileError, match="not a readable gzip file"):
        formats.parse_table(gzip.compress(b"source,output\n" + bytes(range(256)) * 99)[:-2])


@pytest.mark.parametrize("extra, taken", [(0, True), (1, False)])
def test_the_bound_itself_is_allowed(extra, taken):
    content = b"source,output\na day,a day\n"
    data = gzip.compress(content)
    bound = len(content) - extra
    if taken:
        assert len(formats.parse_table(data, max_unpacked=bound)) == 1
    else:
        with pytest.raises(FileError, match="unpacks"):
            formats.parse_table(data, max_unpacked=bound)


def test_the_bound_is_handed_on(tmp_path):
    for name in ("x.csv.gz", "x.txt.gz"):
        (tmp_path / name).write_bytes(gzip.compress(b"source,output\na,b\n" * 2))
    with pytest.raises(FileError, match="unpacks"):
        read_table(tmp_path / "x.csv.gz", max_unpacked=10)
    with pytest.raises(FileError, match=r"x\.csv\.gz: unpacks"):
        read_table(tmp_path, max_unpacked=10)
    with pytest.raises(FileError, match=r"x\.txt\.gz: unpacks"):
        open_lines(tmp_path / "x.txt.gz", [tmp_path / "x.txt.gz"], max_unpacked=10)


LONG = "a" * (formats.LONGEST_ROW + 1)


@pytest.mark.parametrize(
    "kind, text, place",
    [
        ("csv", f"source,output\na,b\n{LONG},b\n", "line 3"),
        ("tsv", f"source\toutput\n{LONG}\tb\n", "line 2"),
        ("csv", "source,output\n" + f'"{LONG[:700_000]}\n{LONG[:700_000]}",b\n', "row 0"),
        ("csv", 'source,output\na,"b\n' + "c d\n" * 1_500_000, "line "),
        ("jsonl", '{"source": "a"}\n' + json.dumps({"source": LONG}) + "\n", "line 2"),
        (
            "json",
            json.dumps([{"source": "a"}, {"source": LONG[:600_000], "output": LONG[:600_000]}]),
            "row 1",
        ),
    ],
)
def test_a_row_that_is_too_long_is_refused_by_name(kind, text, place):
    with pytest.raises(FileError) as caught:
        formats.parse_table(text.encode(), kind)
    assert str(caught.value).startswith(place) and len(str(caught.value)) < 300


def test_a_line_that_is_too_long_is_refused_by_name():
    with pytest.raises(FileError, match="line 2: more than 1,000,000 characters"):
        formats.parse_lines(f"a\n{LONG}".encode())


@pytest.mark.parametrize(
    "kind, text",
    [
        ("csv", "," * 16_384 + "\n" + "," * 16_384 + "\n"),
        ("jsonl", json.dumps(dict.fromkeys(map(str, range(16_385)), ""))),
        ("jsonl", "\n".join(json.dumps({str(row): ""}) for row in range(16_385))),
        ("json", json.dumps({str(name): ["a"] for name in range(16_385)})),
    ],
)
def test_a_table_that_is_too_wide_is_refused(kind, text):
    with pytest.raises(FileError, match="16,385 columns, more than the 16,384"):
        formats.parse_table(text.encode(), kind)


def test_objects_with_other_keys_each_do_not_multiply():
    text = "\n".join(json.dumps({str(row % 16_000): ""}) for row in range(20_000))
    with pytest.raises(FileError, match="20,000 rows of 16,000 columns are more cells"):
        formats.parse_table(text.encode(), "jsonl")


def test_a_wide_or_swollen_parquet_file_is_refused(tmp_path):
    pd.DataFrame([[""] * 16_385], columns=list(map(str, range(16_385)))).to_parquet(
        tmp_path / "wide.parquet"
    )
    with pytest.raises(FileError, match="16,385 columns"):
        read_table(tmp_path / "wide.parquet")
    pd.DataFrame({"source": ["a" * 10_000] * 5_000}).to_parquet(tmp_path / "swollen.parquet")
    assert (tmp_path / "swollen.parquet").stat().st_size < 10_000
    with pytest.raises(FileError, match="unpacks to more"):
        read_table(tmp_path / "swollen.parquet", max_unpacked=2**20)
    assert len(read_table(tmp_path / "swollen.parquet")) == 5_000
    pd.DataFrame({"source": ["a" * 5_000_000]}).to_parquet(tmp_path / "long.parquet")
    with pytest.raises(FileError, match="more than 1,000,000 characters in one row"):
        read_table(tmp_path / "long.parquet")
    with pytest.raises(FileError, match="more than 1,000,000 characters in one row"):
        survey_table(tmp_path / "long.parquet")


@pytest.mark.ci
@pytest.mark.parametrize(
    "begin, byte, kind",
    [
        (b"", b"\0", "csv"),
        (b"source,output\n", b"a", "csv"),
        (b"{", b"a", "jsonl"),
        (b"source,output\n", b"\xe9", "csv"),
        (b"[", b"[", "json"),
    ],
)
def test_the_memory_for_a_hostile_file_is_bounded(begin, byte, kind):
    """200 MB of one character, in 200 kB of gzip: below the bound of what is unpacked, and not eleven times as much."""
    code = (
        "import resource, sys\nfrom tsteval.tables import formats\ndata = sys.stdin.buffer.read()\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        f"try: formats.parse_table(data, {kind!r})\n"
        "except formats.FileError: print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=packed(200 * 2**20, begin, byte),
        capture_output=True,
        check=True,
    )
    assert int(done.stdout) < 700_000  # kB


# ---- what a line says beside its texts


@pytest.mark.parametrize(
    "kind, text, words",
    [
        ("tsv", 'source\toutput\n"A dam\tDam\nA mill\tMill"\n', "line 2: a quotation mark opens"),
        ("tsv", 'source\toutput\nA dam\t"Dam\nA mill\tMill\n', "line 2: a quotation mark opens"),
        ("tsv", 'source\toutput\nA dam\t"Dam" here\n', "line 2: .*check the quotation marks"),
        ("csv", 'source,output\nA dam,Dam\nA mill, "Mill"\n', "line 3: a space stands before"),
        ("csv", 'source, "output"\nA dam,Dam\n', "line 1: a space stands before"),
        ("csv", 'source,output\nA dam, "Dam, old"\n', "line 2: a space stands before"),
        (
            "csv",
            'source,output\n"A\ndam",x\nA mill, "Mill\nold"\n',
            "line 4: a space stands before",
        ),
        ("csv", 'source,output\nA dam,"Dam\nA mill,Mill\n', "line 2: unexpected end"),
    ],
)
def test_a_quotation_mark_out_of_place_is_refused_by_its_line(kind, text, words):
    with pytest.raises(FileError, match=words):
        formats.parse_table(text.encode(), kind)


def test_a_quotation_mark_within_a_text_belongs_to_it():
    text = 'source\toutput\nA 5" pipe\t"Say ""dam"""\n'
    assert formats.parse_table(text.encode(), "tsv").to_numpy().tolist() == [
        ['A 5" pipe', 'Say "dam"']
    ]
    text = 'source,output\n" ""Dam"" ",  Dam\n'
    assert formats.parse_table(text.encode(), "csv").to_numpy().tolist() == [[' "Dam" ', "  Dam"]]


@pytest.mark.parametrize("text", ["nan", "NaN", "NA", "None", "null", "", "#N/A", "=1+1", "'"])
@pytest.mark.parametrize("kind", ["csv", "tsv"])
def test_a_word_that_means_missing_elsewhere_is_a_text(kind, text):
    data = f"source,output\na dam,{text}\n".replace(",", "," if kind == "csv" else "\t").encode()
    notes = []
    assert formats.parse_table(data, kind, notes=notes).output.tolist() == [text]
    assert bool(notes) == (text.lower() == "nan")
    assert all("column output, row 0: " in note and "is read as a word" in note for note in notes)


@pytest.mark.parametrize(
    "text, rows",
    [
        ('{"source": "a", "output": "b"}\n{"source": "c", "output": "d"}\n', 2),
        ('{"source": "a", "output": "b"}', 1),
        ('\n{"source": "a", "output": "b"}\n\n', 1),
        ('{"source": ["a", "c"], "output": ["b", "d"]}', 2),
        ('{"source": ["a"],\n "output": ["b"]}', 1),
        ('[{"source": "a", "output": "b"}]', 1),
    ],
)
def test_a_json_file_may_hold_an_object_a_line(tmp_path, text, rows):
    (tmp_path / "x.json").write_text(text)
    read = read_table(tmp_path / "x.json")
    assert len(read) == rows and read.iloc[0].tolist() == ["a", "b"]


def test_a_broken_line_of_a_json_file_is_named(tmp_path):
    (tmp_path / "x.json").write_text('{"source": "a", "output": "b"}\n{"source": \n')
    with pytest.raises(FileError, match="line 2: not valid JSON"):
        read_table(tmp_path / "x.json")


def test_the_ends_of_lines_are_those_of_any_machine():
    for end in ("\n", "\r\n", "\r"):
        for last in ("", end):
            assert formats.parse_lines(f"A dam.{end}A mill.{last}".encode()) == [
                "A dam.",
                "A mill.",
            ]
    with pytest.raises(FileError, match="line 2: a carriage return stands inside"):
        formats.parse_lines(b"A dam.\nA mill.\rA well.\n")


LINE = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\r\n"), min_size=1)


@given(st.lists(LINE, min_size=1, max_size=5), st.sampled_from(["\n", "\r\n", "\r"]))
def test_lines_are_read_as_they_were_written(lines, end):
    data = "".join(line + end for line in ["first", *lines]).encode()
    assert formats.parse_lines(data) == ["first", *lines]


@given(st.lists(st.tuples(LINE, LINE), min_size=1, max_size=5), st.sampled_from([",", "\t"]))
def test_cells_are_read_as_they_were_written(rows, delimiter):
    written = io.StringIO()
    csv.writer(written, delimiter=delimiter).writerows([("source", "output"), *rows])
    kind = "csv" if delimiter == "," else "tsv"
    read = formats.parse_table(written.getvalue().encode(), kind)
    assert read.to_numpy().tolist() == [list(row) for row in rows]
