"""The store of rows: what is found is what would be made, by one process or several, whenever the last run was
killed."""

import contextlib
import multiprocessing
import os
import sqlite3
import subprocess
import sys
import textwrap
import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.own_metrics import Length, metric_of
from tsteval import cli
from tsteval.core.checks import InputError
from tsteval.core.metric import METRICS, Scores
from tsteval.evaluation import evaluate
from tsteval.runs.store import Store


def pairs(n, systems=("one", "two")):
    return [
        {
            "system": system,
            "source": f"the mill number {row}",
            "output": f"the {system} mill was built in {row}",
            "reference": ["the mill", "a mill"][: 1 + row % 2],
        }
        for system in systems
        for row in range(n)
    ]


@pytest.fixture
def scored():
    Length.calls.clear()
    return lambda: [text for call in Length.calls for text in call]


def test_what_is_stored_is_what_was_made(tmp_path, scored):
    names = ["bleu", "rouge", "chrf", "readability", Length()]
    plain = evaluate(pairs(50), names, n_boot=20)
    Length.calls.clear()
    first = evaluate(pairs(50), names, n_boot=20, score_cache=tmp_path / "c")
    assert len(scored()) == 100  # each row once
    assert "shouted" in plain.per_pair
    assert "shouted" not in first.per_pair  # what a metric says in words is not kept
    Length.calls.clear()
    again = evaluate(pairs(50), names, n_boot=20, score_cache=tmp_path / "c")
    assert scored() == []
    assert plain.signatures == first.signatures == again.signatures
    assert plain.row_signatures == again.row_signatures
    pd.testing.assert_frame_equal(first.per_pair, again.per_pair)
    pd.testing.assert_frame_equal(
        plain.per_pair.drop(columns="shouted"), first.per_pair, check_dtype=False
    )
    pd.testing.assert_frame_equal(plain.summary(), again.summary())


def test_only_new_rows_options_and_versions_are_scored(tmp_path, scored):
    cache = tmp_path / "c"
    evaluate(pairs(20), [Length()], n_boot=5, score_cache=cache)
    Length.calls.clear()
    evaluate(pairs(20, ("one", "two", "new")), [Length()], n_boot=5, score_cache=cache)
    assert len(scored()) == 20
    assert all("new" in text for text in scored())
    Length.calls.clear()
    result = evaluate(pairs(20), [Length(unit="characters")], n_boot=5, score_cache=cache)
    assert len(scored()) == 40
    assert result.per_pair.length[0] == len("the one mill was built in 0")

    def doubled(rows, models):
        return Scores({"length": rows.output.map(str.split).map(len) * 2})

    other = metric_of(doubled, by_row=True, version="2")
    assert evaluate(pairs(20), [other], n_boot=5, score_cache=cache).per_pair.length[0] == 14


def test_metrics_that_may_not_be_stored_are_made_anew(tmp_path, scored):
    dependent = type("Dependent", (Length,), {"by_row": False})
    without_version = type("WithoutVersion", (Length,), {"version": None})
    for metric in (dependent(), without_version(), Length(weights=eval_of_its_own)):
        for _ in range(2):
            Length.calls.clear()
            result = evaluate(pairs(3), [metric], n_boot=5, score_cache=tmp_path / "c")
            assert len(scored()) == 6
        notes = " ".join(result.notes().text)
        assert ("not kept in the cache" in notes) == metric.by_row
    assert METRICS["bert_score"]().storable
    assert not METRICS["bert_score"](idf=True).storable
    assert not METRICS["link_validity"]().storable
    assert Length(weights={"a": 1}).storable


def eval_of_its_own(text):
    return 1.0


def test_an_error_names_the_row_of_the_table(tmp_path):
    def refuse(rows, models):
        if (bad := rows.output.str.contains("149").to_numpy()).any():
            raise InputError("no", column="output", row=int(bad.argmax()))
        return Scores({"x": rows.output.map(len)})

    metric = metric_of(refuse, "x", by_row=True, version="1")
    with pytest.raises(InputError, match="row 149"):
        evaluate(pairs(150, ("one",)), [metric], n_boot=5, score_cache=tmp_path / "c")


def test_no_text_is_in_the_file_and_others_cannot_read_it(tmp_path):
    evaluate(pairs(3), [Length()], n_boot=5, score_cache=tmp_path / "c")
    content = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"mill" not in content
    assert b"MILL" not in content
    assert (tmp_path / "c").stat().st_mode & 0o077 == 0


def test_what_is_no_cache_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text(
        "my notes, which are longer than a header of SQLite would be " * 20
    )
    for path, words in (
        (tmp_path / "notes.txt", "delete this one"),
        (tmp_path, "name a file"),
        (tmp_path / "no" / "c", "folder that exists"),
    ):
        with pytest.raises(InputError, match=words):
            Store(path)
    assert (tmp_path / "notes.txt").read_text().startswith("my notes")


@pytest.mark.parametrize(
    "damage", ["x'00'", "x''", "zeroblob(12)", "'words'", "substr(value, 1, 12)", "NULL OR 7"]
)
def test_a_damaged_entry_is_refused_by_the_name_of_the_file(tmp_path, damage):
    with contextlib.closing(Store(tmp_path / "c")) as store:
        store.put({b"a": np.array([1.0, np.nan])})
    with contextlib.closing(sqlite3.connect(tmp_path / "c")) as base, base:
        base.execute(f"UPDATE numbers SET value = {damage}")
    with pytest.raises(InputError, match=rf"cache {tmp_path / 'c'}: an entry is damaged"):
        Store(tmp_path / "c").get([b"a"], 2)


def test_a_read_only_folder_and_a_full_disk_are_one_error_that_names_the_file(tmp_path):
    code = (
        "import resource, sys\nfrom tests.own_metrics import Length\nfrom tests.runs.test_store import pairs\nfrom tsteval.evaluation import "
        "evaluate\nresource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))\n"
        "evaluate(pairs(2000), [Length()], n_boot=5, score_cache=sys.argv[1])"
    )
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, str(tmp_path / "c")],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert (
        run.returncode == 1
        and f"cache {tmp_path / 'c'}: cannot be written" in run.stderr.splitlines()[-1]
    )
    found = evaluate(
        pairs(2000), [Length()], n_boot=5, score_cache=tmp_path / "c"
    )  # what was kept is sound
    assert (
        found.per_pair.length.tolist()
        == evaluate(pairs(2000), [Length()], n_boot=5).per_pair.length.tolist()
    )


def put_many(path, start):
    store = Store(path)
    for row in range(start, start + 200):
        store.put({str(row % 250).encode(): np.full(20, row % 250)})


@pytest.mark.ci
def test_two_processes_share_a_file(tmp_path):
    workers = [
        multiprocessing.get_context("spawn").Process(target=put_many, args=(tmp_path / "c", start))
        for start in (0, 100)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    assert all(worker.exitcode == 0 for worker in workers)
    store = Store(tmp_path / "c")
    assert len(store) == 250 and store.get([b"249"], 20)[b"249"].tolist() == [249] * 20


@pytest.mark.all
def test_memory_does_not_grow_with_the_rows_beyond_the_table(tmp_path):
    def peak(n):
        rows = pd.DataFrame(pairs(n, ("one",)))
        tracemalloc.start()
        result = evaluate(rows, ["bleu", Length()], n_boot=20, score_cache=tmp_path / f"{n}")
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most, result.per_pair.memory_usage(deep=True).sum()

    evaluate(pairs(2), ["bleu", Length()], n_boot=20)  # what is imported and kept for good
    (small, table), (large, longer) = peak(300), peak(3000)
    assert large - small < 6 * (longer - table), (small, large, table, longer)


# ---- SIGKILL

RUNS = textwrap.dedent("""
    import os, random, signal, sys, time
    from pathlib import Path
    import tsteval.evaluation, torch, transformers
    from tsteval import cli

    def start(name, folder):
        child = os.fork()
        if child == 0:
            sys.stdout, sys.stderr = open(os.devnull, "w"), open("said", "w")
            torch.set_num_threads(1)
            os._exit(cli.main(["evaluate", "pairs.csv", "--metrics", "bleu,rouge,sti,counted:Length", "--style-model",
                               "tiny", "--target-style",
                               "neutral", "--n-boot", "10", "--cache", f"{name}.sqlite", "--output", folder]))
        return child

    def scored(): return Path("log").read_text().splitlines() if Path("log").exists() else []

    def wait(child, point):  # half of the points lie anywhere in the time of a run, half anywhere among the rows
        if point % 2: return time.sleep(generator.uniform(0, length))
        rows = generator.randrange(1, 580)
        ended = lambda: os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        while len(scored()) < rows and not ended(): time.sleep(0.002)

    def finish(child): return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    os.chdir(sys.argv[1])
    began = time.monotonic()
    assert finish(start("whole", "whole")) == 0
    length, expected = time.monotonic() - began, Path("whole/per_pair.csv").read_bytes()
    generator, met = random.Random(17), 0
    for point in range(int(sys.argv[2])):
        Path("log").unlink(missing_ok=True)
        child = start(point, f"out{point}")
        wait(child, point)
        os.kill(child, signal.SIGKILL)
        killed = finish(child) == -signal.SIGKILL
        written = Path(f"out{point}/per_pair.csv")
        assert not written.exists() or written.read_bytes() == expected, "a half-written file"
        first = scored()
        Path("log").unlink(missing_ok=True)
        assert finish(start(point, f"out{point}")) == 0, f"point {point}: {Path('said').read_text()[-800:]}"
        second = scored()
        assert written.read_bytes() == expected, f"point {point}: other bytes"
        again = set(first) & set(second)
        # the piece in which it was killed, and the row of the rehearsal
        assert len(again) <= 257, f"point {point}: {len(again)} rows were scored again"
        met += killed and 0 < len(first) < 600
    print(met)
""")
COUNTED = """
import time
import pandas as pd
from tsteval.core.metric import Metric, Scores

class Log:
    # writes down what is scored, and is no part of what the metric does
    tag = "log"

    def __call__(self, texts):
        with open("log", "a") as file: file.writelines(f"{text}\\n" for text in texts)

log = Log()

class Length(Metric):
    name, needs, columns, by_row, version = "length", ("output",), ("length",), True, "1"

    def score(self, rows, models=None):
        time.sleep(0.002 * len(rows))
        log(rows.output)
        return Scores({"length": rows.output.map(len)})
"""


@pytest.mark.all
def test_killed_at_random_points_the_run_goes_on(tmp_path, request):
    kills = request.config.getoption("--kills") or 10
    from tests.test_tone import save_tiny_classifier

    save_tiny_classifier(tmp_path / "tiny", ["subjective", "neutral"])
    (tmp_path / "counted.py").write_text(COUNTED)
    pd.DataFrame(pairs(300)).assign(reference=lambda rows: rows.reference.str[0]).to_csv(
        tmp_path / "pairs.csv", index=False
    )
    (tmp_path / "runs.py").write_text(RUNS)
    environment = {
        **os.environ,
        "PYTHONPATH": f"{Path(cli.__file__).parents[2]}:{tmp_path}",
        "OMP_NUM_THREADS": "1",
    }
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "runs.py", str(tmp_path), str(kills)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-1500:]
    assert int(run.stdout) >= kills // 4  # many of the points lay in the middle of the scoring


def counted(folder, n=100):
    """A folder with a table, a metric that writes down what it scores, and the command that evaluates both with a
    cache."""
    (folder / "counted.py").write_text(COUNTED)
    pd.DataFrame(pairs(n)).assign(reference=lambda rows: rows.reference.str[0]).to_csv(
        folder / "pairs.csv", index=False
    )
    environment = {
        **os.environ,
        "PYTHONPATH": f"{Path(cli.__file__).parents[2]}:{folder}",
        "OMP_NUM_THREADS": "1",
    }
    return lambda output: subprocess.Popen(
        [
            sys.executable,
            "-W",
            "ignore",
            "-c",
            "import sys; from tsteval.cli import main; sys.exit(main())",
            "evaluate",
            "pairs.csv",
            "--metrics",
            "bleu,rouge,counted:Length",
            "--n-boot",
            "10",
            "--cache",
            "scores.sqlite",
            "--output",
            output,
        ],
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def test_two_runs_at_once_share_a_cache(tmp_path):
    start = counted(tmp_path)
    runs = [start(name) for name in ("one", "two")]
    assert [run.wait(300) for run in runs] == [0, 0]
    assert (tmp_path / "one" / "per_pair.csv").read_bytes() == (
        tmp_path / "two" / "per_pair.csv"
    ).read_bytes()
    scored = (tmp_path / "log").read_text().splitlines()
    # at worst both score each row, and one row as a rehearsal
    assert len(set(scored)) == 200
    assert len(scored) <= 2 * 201
    assert start("three").wait(300) == 0
    # all is stored; the rehearsal of one row asks no store
    assert len((tmp_path / "log").read_text().splitlines()) <= len(scored) + 1
    assert (tmp_path / "three" / "per_pair.csv").read_bytes() == (
        tmp_path / "one" / "per_pair.csv"
    ).read_bytes()


@pytest.mark.all
def test_one_two_and_four_threads_agree(classifier, encoder, language_model):
    import torch

    found = {}
    threads = torch.get_num_threads()
    try:
        for number in (1, 2, 4):
            torch.set_num_threads(number)
            result = evaluate(
                pairs(3),
                n_boot=5,
                classifier=classifier,
                encoder=encoder,
                language_model=language_model,
            )
            columns = [column for metric in result.metrics for column in metric.columns]
            found[number] = (
                result.per_pair[columns].astype(float),
                result.summary()[columns].astype(float),
            )
    finally:
        torch.set_num_threads(threads)
    assert {"sti", "cps", "slor", "logprob"} <= set(columns) and len(found[1][0]) == 6
    for number in (2, 4):
        for mine, other in zip(found[number], found[1]):
            np.testing.assert_allclose(mine, other, rtol=0, atol=1e-4)
