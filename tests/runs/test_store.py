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
from tsteval.runs.row_store import RowStore, may_be_kept, stands_alone

from tsteval import cli
from tsteval.core.checks import InputError
from tsteval.core.metric import METRICS, Metric, Scores, sign
from tsteval.evaluation import evaluate


class Calls(list):
    """A list that grows while a metric is used, and is no part of what the metric does."""

    tag = "calls"


calls = Calls()


def score_length(table, models, unit="words", weights=None):
    calls.append(list(table.output))
    values = table.output.map(len if unit == "characters" else lambda text: len(text.split()))
    return Scores(
        pd.DataFrame({"length": values, "shouted": table.output.str.upper()}),
        signature=sign("length", unit=unit),
    )


LENGTH = Metric("length", ("output",), ("length",), score_length, by_row=True)


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
    calls.clear()
    return lambda: [text for call in calls for text in call]


def test_found_is_made(tmp_path, scored):
    names = ["bleu", "rouge", "chrf", "readability", LENGTH]
    plain = evaluate(pairs(50), names, n_boot=20)
    calls.clear()
    first = evaluate(pairs(50), names, n_boot=20, score_cache=tmp_path / "c")
    assert (
        len(scored()) == 102
    )  # each row once, and two witnesses: one for each number of references
    assert (
        "shouted" in plain.per_pair and "shouted" not in first.per_pair
    )  # what a metric says in words is not kept
    calls.clear()
    again = evaluate(pairs(50), names, n_boot=20, score_cache=tmp_path / "c")
    assert len(scored()) == 2  # the witnesses sign
    assert (
        plain.signatures == first.signatures == again.signatures
        and plain.row_signatures == again.row_signatures
    )
    pd.testing.assert_frame_equal(first.per_pair, again.per_pair)
    pd.testing.assert_frame_equal(
        plain.per_pair.drop(columns="shouted"), first.per_pair, check_dtype=False
    )
    pd.testing.assert_frame_equal(plain.summary(), again.summary())


def test_only_new_rows_options_and_code_are_scored(tmp_path, scored):
    evaluate(pairs(20), [LENGTH], n_boot=5, score_cache=tmp_path / "c")
    calls.clear()
    evaluate(pairs(20, ("one", "two", "new")), [LENGTH], n_boot=5, score_cache=tmp_path / "c")
    fresh = [text for text in scored() if "new" in text]
    assert len(fresh) == 20 and len(scored()) == 22  # and two witnesses
    calls.clear()
    found = evaluate(
        pairs(20),
        [LENGTH],
        n_boot=5,
        options={"length": {"unit": "characters"}},
        score_cache=tmp_path / "c",
    )
    assert len(scored()) == 42 and found.per_pair.length[0] == len("the one mill was built in 0")
    other = Metric(
        "length",
        ("output",),
        ("length",),
        lambda table, models: Scores(
            pd.DataFrame({"length": table.output.map(str.split).map(len) * 2}),
            signature=sign("length", unit="words"),
        ),
        by_row=True,
    )
    assert (
        evaluate(pairs(20), [other], n_boot=5, score_cache=tmp_path / "c").per_pair.length[0] == 14
    )


def test_metrics_whose_rows_depend_on_each_other_are_made_anew(tmp_path, scored):
    for metric, options in (
        (Metric("length", ("output",), ("length",), score_length), {}),
        (LENGTH, {"weights": eval}),
    ):
        for _ in range(2):
            calls.clear()
            evaluate(
                pairs(3),
                [metric],
                n_boot=5,
                options={"length": options},
                score_cache=tmp_path / "c",
            )
            assert len(scored()) == 6
    bert_score = METRICS["bert_score"]
    assert stands_alone(bert_score, {}) and not stands_alone(bert_score, {"idf": True})
    assert not stands_alone(METRICS["link_validity"], {})
    assert stands_alone(LENGTH, {"weights": {"a": 1}}) and may_be_kept(
        LENGTH, {"weights": {"a": 1}}
    )
    assert stands_alone(LENGTH, {"weights": eval}) and not may_be_kept(LENGTH, {"weights": eval})


def factor(text):
    return 1.0


def score_helped(table, models):
    values = [len(text) * factor(text) for text in table.output]
    return Scores(pd.DataFrame({"helped": values}), signature=sign("helped"))


def test_a_helper_that_was_edited_is_not_overlooked(tmp_path, monkeypatch):
    """The cache gave 2.0 where 300.0 was true."""
    helped = Metric("helped", ("output",), ("helped",), score_helped, by_row=True)
    table = [{"source": "a", "output": "bb"}]
    values = [
        evaluate(table, [helped], n_boot=5, score_cache=tmp_path / "cache").per_pair.helped[0]
        for _ in range(2)
    ]
    monkeypatch.setitem(globals(), "factor", lambda text: 150.0)
    values.append(
        evaluate(table, [helped], n_boot=5, score_cache=tmp_path / "cache").per_pair.helped[0]
    )
    assert values == [2.0, 2.0, 300.0]


def test_what_cannot_be_described_is_not_kept(tmp_path, monkeypatch):
    def reads(table, models):
        with open(tmp_path / "factor") as file:
            by = float(file.read())
        return Scores(
            pd.DataFrame({"read": [len(text) * by for text in table.output]}),
            signature=sign("read"),
        )

    metric = Metric("read", ("output",), ("read",), reads, by_row=True)
    found = []
    for by in "13":
        (tmp_path / "factor").write_text(by)
        result = evaluate(
            [{"source": "a", "output": "bb"}], [metric], n_boot=5, score_cache=tmp_path / "cache"
        )
        found.append(result.per_pair.read[0])
    assert found == [2.0, 6.0]


def test_an_error_names_the_row_of_the_table(tmp_path):
    def refuse(table, models):
        if (bad := table.output.str.contains("149").to_numpy()).any():
            raise InputError(f"column output, row {bad.argmax()}: no")
        return Scores(pd.DataFrame({"x": table.output.map(len)}), signature="x")

    with pytest.raises(InputError, match="row 149"):
        evaluate(
            pairs(150, ("one",)),
            [Metric("x", ("output",), ("x",), refuse, by_row=True)],
            n_boot=5,
            score_cache=tmp_path / "c",
        )


def test_no_text_is_in_the_file_and_others_cannot_read_it(tmp_path):
    evaluate(pairs(3), [LENGTH], n_boot=5, score_cache=tmp_path / "c")
    content = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"mill" not in content and b"MILL" not in content and b"length" not in content
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
            RowStore(path)
    assert (tmp_path / "notes.txt").read_text().startswith("my notes")


@pytest.mark.parametrize(
    "damage", ["x'00'", "x''", "zeroblob(12)", "'words'", "substr(value, 1, 12)", "NULL OR 7"]
)
def test_a_damaged_entry_is_refused_by_the_name_of_the_file(tmp_path, damage):
    with contextlib.closing(RowStore(tmp_path / "c")) as store:
        store.put({b"a": np.array([1.0, np.nan])})
    with contextlib.closing(sqlite3.connect(tmp_path / "c")) as base, base:
        base.execute(f"UPDATE numbers SET value = {damage}")
    with pytest.raises(InputError, match=rf"cache {tmp_path / 'c'}: an entry is damaged"):
        RowStore(tmp_path / "c").get([b"a"], 2)


def test_a_read_only_folder_and_a_full_disk_are_one_error_that_names_the_file(tmp_path):
    code = (
        "import resource, sys\nfrom tests.runs.test_row_store import LENGTH, pairs\nfrom tsteval.evaluation import "
        "evaluate\nresource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))\n"
        "evaluate(pairs(2000), [LENGTH], n_boot=5, score_cache=sys.argv[1])"
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
        pairs(2000), [LENGTH], n_boot=5, score_cache=tmp_path / "c"
    )  # what was kept is sound
    assert (
        found.per_pair.length.tolist()
        == evaluate(pairs(2000), [LENGTH], n_boot=5).per_pair.length.tolist()
    )


def put_many(path, start):
    store = RowStore(path)
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
    store = RowStore(tmp_path / "c")
    assert len(store) == 250 and store.get([b"249"], 20)[b"249"].tolist() == [249] * 20


@pytest.mark.all
def test_memory_does_not_grow_with_the_rows_beyond_the_table(tmp_path):
    def peak(n):
        rows = pd.DataFrame(pairs(n, ("one",)))
        tracemalloc.start()
        result = evaluate(rows, ["bleu", LENGTH], n_boot=20, score_cache=tmp_path / f"{n}")
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most, result.per_pair.memory_usage(deep=True).sum()

    evaluate(pairs(2), ["bleu", LENGTH], n_boot=20)  # what is imported and kept for good
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
            os._exit(cli.main(["evaluate", "pairs.csv", "--metrics", "bleu,rouge,sti,counted:length", "--style-model",
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
        # the piece in which it was killed, and a witness
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

def score(table, models):
    time.sleep(0.002 * len(table))
    log(table.output)
    return Scores(pd.DataFrame({"length": table.output.map(len)}), signature="length")

length = Metric("length", ("output",), ("length",), score, by_row=True)
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
            "bleu,rouge,counted:length",
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
    # at worst both score each row, a witness, and one row with its witness as a rehearsal
    assert len(set(scored)) == 200 and len(scored) <= 2 * 203
    # all is known; the witness signs, in the rehearsal too
    assert (
        start("three").wait(300) == 0
        and len((tmp_path / "log").read_text().splitlines()) == len(scored) + 2
    )
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
