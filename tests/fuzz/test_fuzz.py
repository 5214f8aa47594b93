"""Everything that reads bytes, given the corpus, its neighbours, and what ten seconds of fuzzing make of it."""

import importlib.util
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.targets import TARGETS

TESTS = Path(__file__).parents[1]
CORPUS = Path(__file__).parent / "corpus"
SEEDS = sorted(path for path in CORPUS.glob("*/*"))
pytestmark = pytest.mark.filterwarnings("ignore")


def test_every_target_has_seeds_and_they_are_small():
    assert {path.parent.name for path in SEEDS} == set(TARGETS)
    assert sum(path.stat().st_size for path in SEEDS) < 300_000


@pytest.mark.parametrize("seed", SEEDS, ids=[f"{path.parent.name}-{path.name}" for path in SEEDS])
def test_the_corpus_is_read_or_refused_as_documented(seed):
    TARGETS[seed.parent.name](seed.read_bytes())


def neighbours(data: bytes, generator: random.Random):
    """The file cut short, with a byte changed, a piece doubled, and one gone."""
    yield b""
    for _ in range(3):
        a, b = sorted(generator.randrange(len(data) + 1) for _ in range(2))
        yield data[:a]
        yield data[:a] + bytes([generator.randrange(256)]) + data[a + 1 :]
        yield data[:b] + data[a:]
        yield data[:a] + data[b:]
    yield b"[" * 100_000
    yield b'{"a":' * 50_000


@pytest.mark.parametrize("name", TARGETS)
def test_damaged_files_are_refused_as_documented(name):
    for path in sorted((CORPUS / name).iterdir())[:2]:
        for data in neighbours(path.read_bytes(), random.Random(1)):
            TARGETS[name](data)


@pytest.mark.all
def test_ten_seconds_of_fuzzing_guided_by_coverage_find_nothing(tmp_path):
    """Some ten seconds, counted in executions: with one seed they are the same on a fast machine and on a slow one."""
    if not importlib.util.find_spec("atheris"):
        pytest.skip("atheris is not installed: pip install atheris (wheels for Linux on x86-64)")
    names = [
        "csv",
        "jsonl",
        "arpa",
        "npz_array",
        "wheel",
        "settings",
        "sheet",
        "own_ratings",
        "cache_entry",
        "key",
    ]
    run = subprocess.run(
        [
            sys.executable,
            "-W",
            "ignore",
            "-m",
            "tests.fuzz.run",
            "--seconds",
            "20",
            "--runs",
            "1000",
            "--out",
            str(tmp_path),
            *names,
        ],
        cwd=TESTS.parent,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(TESTS.parent), "OMP_NUM_THREADS": "1"},
        check=False,
    )
    logs = "\n".join(
        path.read_text(errors="replace")[-600:] for path in sorted(tmp_path.glob("*.log"))
    )
    assert run.returncode == 0, run.stdout + run.stderr[-1500:] + logs
    assert run.stdout.count("no fault") == len(names)
