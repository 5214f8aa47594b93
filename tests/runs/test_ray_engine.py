"""The same blocks on Ray: same results, and what is lost where something dies.

Most tests share one small cluster, which is stopped after the file; those that kill a cluster start their own.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from tsteval.core.checks import InputError
from tsteval.core.metric import Metric, Scores
from tsteval.runs.ray_engine import ClusterError, run_on_ray

ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.skipif(not Path("/proc").is_dir(), reason="processes are looked up in /proc"),
]
ENVIRONMENT = {
    **os.environ,
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_raylet_start_wait_time_s": "120",
    "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}",
}


def processes():
    """Of every process: its parent and its command line."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
            if state != "Z":
                found[int(folder.name)] = (
                    int(parent),
                    (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(),
                )
    return found


def below(process):
    """The processes that a process started, and those that they started: number -> command line."""
    there = processes()
    found = {}
    while new := {
        number: line
        for number, (parent, line) in there.items()
        if parent in {process, *found} and number not in found
    }:
        found |= new
    return found


def gone(numbers, seconds=120):
    """Whether processes end by themselves."""
    end = time.monotonic() + seconds
    while (left := set(numbers) & set(processes())) and time.monotonic() < end:
        time.sleep(0.2)
    return not left


def cluster_of(process):
    """The processes of the Ray that a run started: number -> command line. The run's companion is the first."""
    (companion,) = [number for number, line in below(process).items() if "_companion()" in line]
    return {companion: "companion", **below(companion)}


@pytest.fixture(scope="module")
def address():
    pytest.importorskip("ray")
    token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "of the tests" * 3}
    code = (
        "import ray, sys, tempfile\n"
        "with tempfile.TemporaryDirectory(dir='/tmp') as folder:\n"
        "    found = ray.init(address='local', num_cpus=2, object_store_memory=10 ** 8, include_dashboard=False, "
        "_temp_dir=folder,\n"
        "                     log_to_driver=False, logging_level='CRITICAL')\n"
        "    print('address', found.address_info['gcs_address'], flush=True)\n"
        "    sys.stdin.read()\n"
        "    ray.shutdown()\n"
    )
    os.environ |= token
    head = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**ENVIRONMENT, **token},
        start_new_session=True,
    )
    yield next(line.split()[1] for line in head.stdout if line.startswith("address"))
    for name in token:
        del os.environ[name]
    started = below(head.pid)
    head.stdin.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        head.wait(20)
    if head.poll() is None:
        os.killpg(head.pid, signal.SIGKILL)
    assert gone(started)


class Square:
    """A scoring function that takes its time; `wrong` is the block that it cannot score."""

    def __init__(self, seconds=0.0, wrong=None, deadly=None):
        self.seconds = seconds
        self.wrong = wrong
        self.deadly = deadly

    def __call__(self, block):
        time.sleep(self.seconds)
        if block == self.wrong:
            raise InputError(f"outputs, row {block}: the text is empty")
        if block == self.deadly:
            os.kill(os.getpid(), signal.SIGKILL)
        return block, block**2, os.getpid()


@pytest.mark.all
def test_every_block_comes_back_once_from_two_workers(address):
    outcomes = list(run_on_ray(partial(Square, 0.05), range(30), address=address))
    assert sorted(outcome[:2] for outcome in outcomes) == [(block, block**2) for block in range(30)]
    assert len({process for *_, process in outcomes}) == 2 and os.getpid() not in {
        process for *_, process in outcomes
    }


@pytest.mark.all
def test_a_worker_that_is_killed_is_replaced_and_its_block_scored(address):
    outcomes = []
    killed = set()
    for outcome in run_on_ray(partial(Square, 0.2), range(20), address=address):
        outcomes.append(outcome)
        if len(outcomes) in (3, 9):
            os.kill(outcome[2], signal.SIGKILL)
            killed.add(outcome[2])
    assert sorted(outcome[:2] for outcome in outcomes) == [(block, block**2) for block in range(20)]
    assert len(killed) == 2 and len({process for *_, process in outcomes}) >= 3


@pytest.mark.all
def test_a_block_that_kills_each_worker_ends_the_run_in_one_line(address):
    with pytest.raises(ClusterError, match=r"tried 4 times.*memory") as error:
        list(run_on_ray(partial(Square, deadly=2), range(4), address=address))
    assert "\n" not in str(error.value)


@pytest.mark.all
def test_what_the_scoring_function_raises_is_raised_here_and_not_tried_again(address, tmp_path):
    def make():
        def score(block):
            if block != 5:
                return block
            with open(tmp_path / "tries", "a") as file:
                file.write("x")
            raise InputError("outputs, row 5: the text is empty")

        return score

    with pytest.raises(InputError, match=r"^outputs, row 5: the text is empty$") as error:
        list(run_on_ray(make, range(8), address=address))
    assert not isinstance(error.value, ClusterError) and "in score" in str(error.value.__cause__)
    assert (tmp_path / "tries").read_text() == "x"


@pytest.mark.all
def test_more_gpus_than_there_are_is_refused(address):
    with pytest.raises(ClusterError, match="gpus_per_worker 1: the cluster has 0 GPUs"):
        list(run_on_ray(Square, range(2), address=address, gpus_per_worker=1))


@pytest.mark.all
def test_leaving_early_leaves_nothing_behind(address):
    outcomes = run_on_ray(partial(Square, 0.1), range(50), address=address)
    process = next(outcomes)[2]
    (companion,) = cluster_of(os.getpid())
    outcomes.close()
    assert gone([process, companion])


@pytest.mark.all
@pytest.mark.parametrize(
    "call, words",
    [
        ({"address": "127.0.0.1:9"}, "127.0.0.1:9: no Ray cluster answers there"),
        ({"address": "ray://head:10001"}, "'auto' or HOST:PORT"),
        ({"address": "head"}, "'auto' or HOST:PORT"),
        ({"workers": 0}, "workers"),
        ({"workers": 1.5}, "workers"),
        ({"gpus_per_worker": -1}, "gpus_per_worker"),
    ],
)
def test_what_cannot_be_is_refused_at_once(call, words):
    pytest.importorskip("ray")
    start = time.monotonic()
    with pytest.raises(InputError, match=words) as error:
        run_on_ray(Square, [1], **call)
    assert time.monotonic() - start < 10 and "\n" not in str(error.value)


@pytest.mark.all
def test_a_port_where_something_else_listens_is_told_within_seconds():
    pytest.importorskip("ray")
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server, pytest.raises(ClusterError) as error:
        list(run_on_ray(Square, [1], address=f"127.0.0.1:{server.getsockname()[1]}"))
    assert "\n" not in str(error.value)


@pytest.mark.all
def test_no_blocks_need_no_cluster():
    pytest.importorskip("ray")
    assert list(run_on_ray(Square, [])) == []


@pytest.mark.all
def test_without_ray_the_error_says_what_to_install():
    code = (
        "import sys\nsys.modules['ray'] = None\nfrom tsteval.runs.ray_engine import ClusterError, run_on_ray\n"
        "try: run_on_ray(int, [1])\nexcept ClusterError as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=ENVIRONMENT, check=False
    )
    assert (
        done.stdout == "engine 'ray' needs Ray; install it with: pip install 'tsteval[ray]'\n"
        and not done.stderr
    )


# What follows scores tables. The rows are the embedded pairs, as two systems: one copies its input.


def rows(n=20):
    from tsteval.core.assets import packaged_path

    lines = packaged_path("formality_pairs.jsonl").read_text(encoding="utf-8").splitlines()[:n]
    return [
        {
            "system": system,
            "source": pair["informal"],
            "output": pair[side],
            "reference": pair["formal"],
        }
        for pair in map(json.loads, lines)
        for system, side in (("copy", "informal"), ("person", "formal"))
    ]


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "outputs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows()), encoding="utf-8")
    return path


def scored(path, folder, metrics=("bleu", "rouge"), **settings):
    from tsteval.scale import evaluate_table

    return evaluate_table(path, folder, list(metrics), n_boot=200, **settings)


def assert_same(found, expected, tolerance=1e-9):
    """Rows, summary with intervals, and the comparison of the two systems."""
    import pandas as pd

    for a, b in (
        (found.per_pair, expected.per_pair),
        (found.summary(), expected.summary()),
        (found.compare("copy", "person"), expected.compare("copy", "person")),
    ):
        pd.testing.assert_frame_equal(
            a[b.columns], b, check_dtype=False, rtol=tolerance, atol=tolerance
        )
    assert found.signatures == expected.signatures


@pytest.mark.ci
@pytest.mark.parametrize("block_rows", [3, 16, 1000])
def test_ray_gives_what_evaluate_gives(address, table, tmp_path, block_rows):
    from tsteval.evaluation import evaluate

    found = scored(
        table, tmp_path / "run", engine="ray", workers=2, address=address, block_rows=block_rows
    )
    assert_same(found, evaluate(rows(), ["bleu", "rouge"], n_boot=200))


@pytest.mark.all
def test_ray_gives_what_evaluate_gives_with_models(address, tmp_path):
    from tsteval.evaluation import DEFAULT_METRICS, evaluate

    path = tmp_path / "outputs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows(4)), encoding="utf-8")
    found = scored(
        path,
        tmp_path / "run",
        DEFAULT_METRICS,
        engine="ray",
        workers=2,
        address=address,
        block_rows=4,
    )
    assert_same(found, evaluate(rows(4), DEFAULT_METRICS, n_boot=200), 1e-5)


@dataclass(frozen=True)
class Words(Metric):
    """Words of the output, after a while; where there is a marker, the first worker to find it takes it away and
    dies."""

    marker: str = ""

    name = "words"
    needs = ("output",)
    columns = ("words",)
    by_row = True
    version = "1"

    def score(self, rows, models=None):
        time.sleep(0.02 * len(rows))
        if self.marker and len(rows):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.marker)
                os.kill(os.getpid(), signal.SIGKILL)
        return Scores({"words": [float(len(text.split())) for text in rows.output]})


@pytest.mark.all
def test_a_table_survives_a_worker_that_is_killed(address, table, tmp_path):
    marker = tmp_path / "marker"
    marker.touch()
    metrics = [Words(str(marker)), "bleu"]
    found = scored(
        table,
        tmp_path / "run",
        metrics,
        engine="ray",
        workers=2,
        address=address,
        block_rows=4,
    )
    assert not marker.exists()
    assert_same(found, scored(table, tmp_path / "local", metrics))


@pytest.mark.all
def test_a_row_that_is_refused_is_named_or_left_out(address, table, tmp_path):
    lines = table.read_text(encoding="utf-8").splitlines(keepends=True)
    lines[17] = json.dumps(json.loads(lines[17]) | {"output": None}) + "\n"
    table.write_text("".join(lines), encoding="utf-8")
    with pytest.raises(InputError, match=r"outputs\.jsonl.*row 17") as error:
        scored(table, tmp_path / "run", engine="ray", workers=2, address=address, block_rows=5)
    assert not isinstance(error.value, ClusterError) and "\n" not in str(error.value)
    found = scored(
        table,
        tmp_path / "run",
        engine="ray",
        workers=2,
        address=address,
        block_rows=5,
        on_error="skip",
        restart=True,
    )
    assert (
        len(found.skipped) == 1 and found.skipped.row.tolist() == [17] and len(found.per_pair) == 39
    )


@pytest.mark.all
@pytest.mark.parametrize("victim", ["gcs_server", "raylet"])
def test_a_cluster_that_is_killed_ends_the_run_in_one_line_and_a_rerun_goes_on(
    table, tmp_path, victim
):
    pytest.importorskip("ray")
    parts = tmp_path / "run" / "parts"
    started = {}

    def kill():
        while not list(parts.glob("*.json")):
            time.sleep(0.05)
        started.update(cluster_of(os.getpid()))
        os.kill(
            next(number for number, line in started.items() if line.split()[0].endswith(victim)),
            signal.SIGKILL,
        )

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    with pytest.raises(ClusterError, match="the finished blocks are kept") as error:
        scored(table, tmp_path / "run", [Words(), "bleu"], engine="ray", workers=1, block_rows=1)
    killer.join(1)
    assert "\n" not in str(error.value) and gone(started)
    done = {path: path.read_bytes() for path in parts.glob("*.json")}
    assert 0 < len(done) < 40
    found = scored(table, tmp_path / "run", [Words(), "bleu"])
    assert all(path.read_bytes() == content for path, content in done.items())
    assert_same(found, scored(table, tmp_path / "other", [Words(), "bleu"]))


RUN = """
import signal, sys
from tests.runs import test_ray_engine as test_ray
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
test_ray.scored(sys.argv[1], sys.argv[2], [test_ray.Words(), "bleu"], engine="ray", workers=1, block_rows=1)
"""


@pytest.mark.all
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_run_that_is_killed_takes_its_cluster_with_it_and_a_rerun_goes_on(table, tmp_path, how):
    pytest.importorskip("ray")
    run = subprocess.Popen(
        [sys.executable, "-c", RUN, str(table), str(tmp_path / "run")],
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    )
    while not list((tmp_path / "run" / "parts").glob("*.json")):
        assert run.poll() is None, run.stderr.read()
        time.sleep(0.05)
    started = cluster_of(run.pid)
    (folder,) = {
        match[0]
        for line in started.values()
        for match in re.finditer(r"/tmp/tsteval-ray-\w+", line)
    }
    run.send_signal(how)
    _, told = run.communicate(timeout=120)
    assert gone(started) and not Path(folder).exists()
    # 0: it was done already
    assert told.strip().splitlines()[-1:] == (
        [] if how == signal.SIGKILL or run.returncode == 0 else ["KeyboardInterrupt"]
    )
    assert_same(
        scored(table, tmp_path / "run", [Words(), "bleu"]),
        scored(table, tmp_path / "other", [Words(), "bleu"]),
    )
