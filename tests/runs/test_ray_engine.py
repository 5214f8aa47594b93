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
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

from tsteval.core.checks import InputError
from tsteval.core.metric import Metric, Scores
from tsteval.runs.ray_engine import ClusterError

ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.skipif(not Path("/proc").is_dir(), reason="processes are looked up in /proc"),
    pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed"),
]
ENVIRONMENT = {
    **os.environ,
    "RAY_USAGE_STATS_ENABLED": "0",
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


@pytest.fixture(scope="module")
def address():
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
    for _ in range(3):  # Ray gives up on its own start where a machine is busy
        head = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=ENVIRONMENT,
            start_new_session=True,
        )
        printed = []
        for line in head.stdout:
            printed.append(line)
            if line.startswith("address"):
                break
        else:
            head.wait()
            continue
        break
    else:
        pytest.fail("Ray started no cluster in three tries: " + "".join(printed[-20:]))
    yield line.split()[1]
    started = below(head.pid)
    head.stdin.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        head.wait(20)
    if head.poll() is None:
        os.killpg(head.pid, signal.SIGKILL)
    assert gone(started)


# The rows are the embedded pairs, as two systems: one copies its input.


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
def test_ray_gives_what_evaluate_gives(address, table, tmp_path):
    from tsteval.evaluation import evaluate

    expected = evaluate(rows(), ["bleu", "rouge"], n_boot=200)
    for block_rows in (3, 16, 1000):
        folder = tmp_path / f"run-{block_rows}"
        found = scored(
            table, folder, engine="ray", workers=2, address=address, block_rows=block_rows
        )
        assert_same(found, expected)


@pytest.mark.all
def test_ray_gives_what_evaluate_gives_with_models(address, tmp_path):
    from tsteval.evaluation import evaluate

    metrics = ["bleu", "sti", "cps", "fluency"]

    path = tmp_path / "outputs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows(4)), encoding="utf-8")
    found = scored(
        path,
        tmp_path / "run",
        metrics,
        engine="ray",
        workers=2,
        address=address,
        block_rows=4,
    )
    assert_same(found, evaluate(rows(4), metrics, n_boot=200), 1e-5)


@dataclass(frozen=True)
class Words(Metric):
    """Words of the output, after a while; where there is a marker, the worker that finds it dies, and takes it away
    unless the next one is to die too."""

    marker: str = ""
    again: bool = False

    name = "words"
    needs = ("output",)
    columns = ("words",)
    by_row = True
    version = "1"

    def score(self, rows, models=None):
        time.sleep(0.02 * len(rows))
        if self.marker and len(rows):
            with contextlib.suppress(FileNotFoundError):
                if not self.again:
                    os.unlink(self.marker)
                if not self.again or os.path.exists(self.marker):
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
def test_a_batch_that_kills_each_worker_ends_the_run_in_one_line(address, table, tmp_path):
    """And what was finished before is not done again."""
    deadly = tmp_path / "deadly"
    deadly.touch()
    metrics = [Words(str(deadly), again=True)]
    with pytest.raises(ClusterError, match=r"tried 4 times.*memory") as error:
        scored(table, tmp_path / "run", metrics, engine="ray", address=address, block_rows=4)
    assert "\n" not in str(error.value)
    made = {file: file.stat().st_mtime_ns for file in (tmp_path / "run").glob("parts/*")}
    deadly.unlink()
    found = scored(table, tmp_path / "run", metrics)
    assert all(file.stat().st_mtime_ns == made[file] for file in made)
    assert_same(found, scored(table, tmp_path / "local", metrics))


@pytest.mark.all
def test_more_gpus_than_there_are_is_refused(address, table, tmp_path):
    with pytest.raises(ClusterError, match="gpus_per_worker 1: the cluster has 0 GPUs"):
        scored(table, tmp_path / "run", engine="ray", address=address, gpus_per_worker=1)


@pytest.mark.parametrize(
    "address, words",
    [
        ("127.0.0.1:9", "127.0.0.1:9: no Ray cluster answers there"),
        ("ray://head:10001", "'auto' or HOST:PORT"),
        ("head", "'auto' or HOST:PORT"),
    ],
)
def test_an_address_that_cannot_be_is_refused_at_once(table, tmp_path, address, words):
    with pytest.raises(InputError, match=words) as error:
        scored(table, tmp_path / "run", engine="ray", address=address)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "failures, words", [(2, None), (3, "no Ray cluster: The current node timed out during startup")]
)
def test_a_slow_start_is_tried_again(monkeypatch, failures, words):
    import ray

    from tsteval.runs.ray_engine import _connect

    tries = []

    def init(**settings):
        tries.append(settings)
        if len(tries) <= failures:
            raise Exception("The current node timed out during startup.")

    monkeypatch.setattr(ray, "init", init)
    monkeypatch.setattr(ray, "shutdown", lambda: None)
    monkeypatch.setattr(ray, "cluster_resources", dict)
    if words is None:
        _connect(ray, None, 1, 0)
    else:
        with pytest.raises(ClusterError, match=words):
            _connect(ray, None, 1, 0)
    assert len(tries) == 3


def test_without_ray_the_error_says_what_to_install(table, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ClusterError, match=re.escape("pip install 'tsteval[ray]'")):
        scored(table, tmp_path / "run", engine="ray")


RUN = """
import signal, sys
from tests.runs import test_ray_engine as test_ray
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
test_ray.scored(sys.argv[1], sys.argv[2], [test_ray.Words(), "bleu"], engine="ray", workers=1, block_rows=1)
"""


@pytest.mark.all
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_run_that_is_killed_takes_its_cluster_with_it_and_a_rerun_goes_on(table, tmp_path, how):
    run = subprocess.Popen(
        [sys.executable, "-c", RUN, str(table), str(tmp_path / "run")],
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    )
    while not list((tmp_path / "run" / "parts").glob("part-*")):
        assert run.poll() is None, run.stderr.read()
        time.sleep(0.05)
    started = below(run.pid)
    assert started
    run.send_signal(how)
    run.communicate(timeout=120)
    assert gone(started)
    made = {file: file.stat().st_mtime_ns for file in (tmp_path / "run").glob("parts/part-*")}
    found = scored(table, tmp_path / "run", [Words(), "bleu"])
    assert all(file.stat().st_mtime_ns == made[file] for file in made)
    assert_same(found, scored(table, tmp_path / "other", [Words(), "bleu"]))
