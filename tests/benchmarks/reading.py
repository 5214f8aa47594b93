"""Claim: no reader takes more than 100 MB for a file of a megabyte or less that unpacks to a gigabyte of noughts.

Prints the growth of the largest resident memory of a child process for each reader, and exits with 1 where one takes
more. tests/tables/test_tables.py holds the same in a run of the tests.
"""

import io
import os
import resource
import shutil
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

MB = 2**20
MOST = 100  # MB


def packed_noughts(size: int = 1024) -> bytes:
    """So many MB of noughts in one stream of gzip; every 16 MB are packed alike, so they are packed once."""
    piece = bytes(16 * MB)
    check = 0
    packer = zlib.compressobj(9, wbits=-15)
    block = packer.compress(piece) + packer.flush(zlib.Z_FULL_FLUSH)
    for _ in range(size // 16):
        check = zlib.crc32(piece, check)
    end = zlib.compressobj(9, wbits=-15).flush()
    return (
        b"\x1f\x8b\x08\0\0\0\0\0\x02\xff"
        + block * (size // 16)
        + end
        + check.to_bytes(4, "little")
        + (size * MB % 2**32).to_bytes(4, "little")
    )


def swollen_parquet(path: Path) -> None:
    """Rows of 900,000 noughts each, a gigabyte of them, which Zstandard packs."""
    import pyarrow as pa
    from pyarrow import parquet

    rows = pa.table(
        {
            "system": ["a"] * 100,
            "source": ["a"] * 100,
            "output": ["\0" * 900_000] * 100,
            "references": [["a"]] * 100,
        }
    )
    with parquet.ParquetWriter(path, rows.schema, compression="zstd", use_dictionary=False) as file:
        for _ in range(12):
            file.write_table(rows)


def packed_member(path: Path, name: str) -> None:
    """A zip file with a member of a gigabyte of noughts."""
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open(name, "w") as member,
    ):
        for _ in range(64):
            member.write(bytes(16 * MB))


def write_files(folder: Path) -> None:
    """The files that the readers are given, each under the name that its reader wants."""
    noughts = packed_noughts()
    for name in (
        "x.csv.gz",
        "x.tsv.gz",
        "x.jsonl.gz",
        "x.json.gz",
        "x.txt.gz",
        "ratings.csv.gz",
        "sheet.csv",
        "results/per_pair.csv",
        "model.arpa",
    ):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(noughts)
    (folder / "results" / "summary.json").write_text('{"systems": [{"system": "a", "n": 1}]}')
    swollen_parquet(folder / "x.parquet")
    (folder / "blocks" / "parts").mkdir(parents=True)
    (folder / "blocks" / "summary.json").write_text(
        '{"run": {}, "systems": [{"system": "a", "n": 1}]}'
    )
    (folder / "blocks" / "parts" / "part-00000.parquet").write_bytes(
        (folder / "x.parquet").read_bytes()
    )
    packed_member(folder / "x.xlsx", "xl/worksheets/sheet1.xml")
    shutil.copy(folder / "x.xlsx", folder / "model.npz")  # a zip file, too


def readers(folder: Path) -> dict[str, Callable]:
    """What reads a file -> a call that reads such a file."""
    from tsteval.people.study import read_scores, read_study
    from tsteval.runs.opened import read_results
    from tsteval.tables.blocks import survey_table
    from tsteval.tables.ratings import load_ratings
    from tsteval.tables.tables import open_lines, read_table
    from tsteval.training.holdout import open_training_file
    from tsteval.words.ngram_files import read_arpa_rows, read_npz

    tables = {
        f"read_table of {kind}": lambda kind=kind: read_table(folder / f"x.{kind}")
        for kind in ("csv.gz", "tsv.gz", "jsonl.gz", "json.gz", "parquet", "xlsx")
    }
    surveyed = {
        f"survey_table of {kind}": lambda kind=kind: survey_table(folder / f"x.{kind}")
        for kind in ("csv.gz", "jsonl.gz", "parquet")
    }
    return (
        tables
        | surveyed
        | {
            "open_lines": lambda: open_lines(folder / "x.txt.gz", [folder / "x.txt.gz"]),
            "load_ratings": lambda: load_ratings(folder / "ratings.csv.gz"),
            "read_results": lambda: read_results(folder / "results"),
            "read_results of blocks": lambda: read_results(folder / "blocks"),
            "read_study": lambda: read_study([folder / "ratings.csv.gz"]),
            "read_scores": lambda: read_scores(folder / "x.csv.gz", None),
            "open_training_file": lambda: open_training_file(folder / "x.csv.gz"),
            "read_npz": lambda: read_npz(folder / "model.npz"),
            "read_arpa_rows": lambda: read_arpa_rows(folder / "model.arpa"),
        }
    )


def growth(call: Callable) -> tuple[float, str]:
    """MB by which a child process grows that makes a call, and the error that the call ends in."""
    read, write = os.pipe()
    if not (child := os.fork()):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        try:
            call()
            told = ""
        except Exception as error:
            told = f"{type(error).__name__}: {error}"
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        os.write(write, f"{grown:.1f} {told}".encode()[:4000])
        os._exit(0)
    os.close(write)
    with open(read, "rb") as pipe:
        grown, _, told = pipe.read().decode(errors="replace").partition(" ")
    os.waitpid(child, 0)
    return float(grown or "inf"), told


def measured(folder: Path) -> dict[str, tuple[float, str]]:
    """Reader -> growth in MB, and the error."""
    import openpyxl  # noqa: F401  what a reader imports is not what a file costs
    import pandas as pd
    import pyarrow.parquet  # noqa: F401

    pd.DataFrame({"source": ["a"], "output": ["b"]}).to_csv(io.StringIO())
    write_files(folder)
    return {name: growth(call) for name, call in readers(folder).items()}


def main():
    with tempfile.TemporaryDirectory() as folder:
        found = measured(Path(folder))
    print(f"{'reader':24} {'MB':>6}  told")
    for name, (grown, told) in found.items():
        print(
            f"{name:24} {grown:6.1f}  {told.splitlines()[0].replace(folder, '')[:90] if told else ''}"
        )
    return int(any(grown > MOST for grown, _ in found.values()))


if __name__ == "__main__":
    sys.exit(main())
