"""Blocks of a table scored by the workers of a Ray cluster"""

import contextlib
import math
import os
import pickle
import secrets
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from tqdm.auto import tqdm

from ..core.checks import InputError, check_number, describe
from ..core.version import __version__


class ClusterError(InputError):
    """Ray is missing, its cluster cannot be reached, or was lost. What is finished stays finished."""


class Worker:
    """What each actor of Ray Data's pool is: the scoring function, made once."""

    def __init__(
        self,
        make: bytes,  # pickled: called once in this worker, returns the function that scores a block
        version: str,  # of the package, where the run was started
        folder: str,  # where the run was started
    ):
        self._make = make
        self._version = version
        self._score = None
        with contextlib.suppress(OSError):
            os.chdir(folder)

    def __call__(self, batch):
        """A table with the column "block" becomes one with the column "outcome"."""
        import pyarrow as pa

        return pa.table(
            {
                "outcome": pa.array(
                    [self.outcome(block.as_py()) for block in batch.column("block")], pa.binary()
                )
            }
        )

    def outcome(
        self,
        block: bytes,  # pickled
    ) -> bytes:  # pickled: (True, what the scoring function returned) or (False, (exception, traceback as text))
        """Score one block, or tell why not."""
        from ray import cloudpickle

        try:
            if self._score is None:
                self._score = self._begin()
            return cloudpickle.dumps((True, self._score(pickle.loads(block))))
        except Exception as error:
            told = traceback.format_exc()
            with contextlib.suppress(Exception):
                content = cloudpickle.dumps((False, (error, told)))
                pickle.loads(content)
                return content
            # one that cannot travel
            return cloudpickle.dumps(
                (False, (RuntimeError(f"{type(error).__name__}: {error}"), told))
            )

    def _begin(self) -> Callable:
        if self._version != __version__:
            raise ClusterError(
                f"worker on {socket.gethostname()}: it has tsteval {__version__}, the run was started "
                f"with {self._version}; "
                "install the same version on all machines"
            )
        return pickle.loads(self._make)()


def _send(pipe: BinaryIO, kind: bytes, content: bytes = b"") -> None:
    pipe.write(struct.pack(">cQ", kind, len(content)) + content)
    pipe.flush()


def _receive(pipe: BinaryIO) -> tuple[bytes, bytes]:
    head = pipe.read(9)
    if len(head) < 9:
        return b"", b""
    kind, length = struct.unpack(">cQ", head)
    content = pipe.read(length)
    return (kind, content) if len(content) == length else (b"", b"")


_OBJECT_STORE = 128 * 1024 * 1024  # bytes
_MOST_TASKS = 2000
_TRIES = 4  # of a block whose worker is lost
_SECONDS_TO_CONNECT = 20
_SECONDS_TO_START = 300
_SECONDS_TO_STOP = 20


def _cpus_here() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _cpus_per_worker(workers: int, cluster: float | None = None) -> float:
    """CPUs of one worker; `cluster`: those of a cluster that was there before."""
    if cluster is None:
        return max(1, _cpus_here() // workers)
    if cluster > workers:
        return 1
    return max(math.floor(100 * (cluster - min(0.5, cluster / 2)) / workers) / 100, 0.01)


def _map(ray, task: Mapping, cpus: float) -> Iterator[bytes]:
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = context.print_on_execution_start = False
    context.target_max_block_size = (
        1024 * 1024
    )  # of outcomes; Ray Data reserves as much for every task
    blocks = ray.data.from_items(
        [{"block": block} for block in task["blocks"]],
        override_num_blocks=min(len(task["blocks"]), max(_MOST_TASKS, 4 * task["workers"])),
    )
    outcomes = blocks.map_batches(
        Worker,
        fn_constructor_args=[task["make"], __version__, task["here"]],
        batch_size=1,
        batch_format="pyarrow",
        compute=ray.data.ActorPoolStrategy(size=task["workers"]),
        num_cpus=cpus,
        num_gpus=task["gpus_per_worker"] or None,
        max_restarts=-1,
        max_task_retries=_TRIES - 1,
    )
    for row in outcomes.iter_rows():
        yield row["outcome"]


def _connect(ray, task: Mapping) -> float:
    """Join the cluster, or start one; return the CPUs that a worker takes."""
    quiet = {"log_to_driver": False, "logging_level": "CRITICAL"}
    workers = task["workers"]
    gpus = task["gpus_per_worker"]
    cpus = _cpus_per_worker(workers)
    if task["address"] is None:
        ray.init(
            address="local",
            num_cpus=workers * cpus + 1,
            include_dashboard=False,
            object_store_memory=_OBJECT_STORE + 2 * len(task["make"]),
            _temp_dir=task["folder"],
            _node_ip_address="127.0.0.1",
            **quiet,
        )
    else:
        ray.init(address=task["address"], **quiet)
        cpus = _cpus_per_worker(workers, ray.cluster_resources().get("CPU", 1))
    there = ray.cluster_resources().get("GPU", 0)
    if gpus > there:
        raise ClusterError(f"gpus_per_worker {gpus:g}: the cluster has {there:g} GPUs")
    return cpus


def _leave_with_the_run(folder: str) -> None:
    while sys.stdin.buffer.read(1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_SECONDS_TO_STOP / 2)
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(1)


def _companion() -> None:
    """The main function of the process that Ray lives in."""
    messages = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what Ray prints goes to the log
    task = pickle.loads(_receive(sys.stdin.buffer)[1])
    ray = None
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    threading.Thread(target=_leave_with_the_run, args=[task["folder"]], daemon=True).start()
    try:
        import ray
        import ray.data

        _send(messages, b"I")
        cpus = _connect(ray, task)
        _send(messages, b"R")
        for outcome in _map(ray, task, cpus):
            _send(messages, b"O", outcome)
        _send(messages, b"D")
    except Exception as error:
        traceback.print_exc()
        with contextlib.suppress(OSError):
            _send(messages, b"E", _in_one_line(error).encode())
    finally:
        with contextlib.suppress(Exception):
            if ray is not None:
                ray.shutdown()
        shutil.rmtree(task["folder"], ignore_errors=True)


_AGAIN = "the finished blocks are kept, and the same call goes on with the others"


def _in_one_line(error: BaseException) -> str:
    if isinstance(error, ClusterError):
        return str(error)
    kinds = {
        type(cause).__name__
        for cause in (error, error.__cause__, error.__context__)
        if cause is not None
    }
    if isinstance(error, ConnectionError):
        return (
            f"no Ray cluster: {_first_line(error)}; if it asks for a token, set RAY_AUTH_TOKEN, or "
            f"RAY_AUTH_MODE=disabled if it does not"
        )
    if kinds & {
        "ActorDiedError",
        "RayActorError",
        "OutOfMemoryError",
        "WorkerCrashedError",
        "ActorUnavailableError",
    }:
        return (
            f"a block was tried {_TRIES} times, and each time its worker was lost, for instance because memory ran "
            f"out; "
            f"take smaller blocks or fewer workers: {_AGAIN}"
        )
    return f"Ray gave up ({type(error).__name__}: {_first_line(error)}); {_AGAIN}"


def _first_line(error: BaseException) -> str:
    return next(
        (line.strip() for line in str(error).splitlines() if line.strip()), "no reason given"
    )


def _for_a_cluster_of_its_own() -> dict[str, str]:
    return {
        "RAY_gcs_rpc_server_reconnect_timeout_s": "5",
        "RAY_raylet_start_wait_time_s": "120",
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": secrets.token_hex(32),
    }


def _for_a_cluster_that_was_there() -> dict[str, str]:
    token = {"RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"} & set(os.environ) or (
        Path.home() / ".ray" / "auth_token"
    ).is_file()
    mode = {"RAY_AUTH_MODE": "token"} if token and "RAY_AUTH_MODE" not in os.environ else {}
    return {"RAY_NUM_REDIS_GET_RETRIES": "5", **mode}


_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_BACKEND_LOG_LEVEL": "fatal",
    "RAY_LOGGER_LEVEL": "critical",
    "RAY_DEDUP_LOGS": "0",
    "RAY_DATA_DISABLE_PROGRESS_BARS": "1",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}


def _end_session(leader: int) -> None:
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if os.getsid(int(folder.name)) == leader:
                os.kill(int(folder.name), signal.SIGKILL)


@contextlib.contextmanager
def _started(task: Mapping) -> Iterator[subprocess.Popen]:
    """The companion with its task; it is gone when the block is left, however that happens."""
    folder = Path(
        tempfile.mkdtemp(prefix="tsteval-ray-", dir="/tmp" if os.path.isdir("/tmp") else None)
    )
    environment = {
        **os.environ,
        **_QUIET,
        "PYTHONPATH": os.pathsep.join(filter(None, [*sys.path, os.environ.get("PYTHONPATH")])),
        **(
            _for_a_cluster_of_its_own()
            if task["address"] is None
            else _for_a_cluster_that_was_there()
        ),
    }
    with open(folder / "companion.log", "wb") as log:
        companion = subprocess.Popen(
            [sys.executable, "-c", "from tsteval.runs.ray_engine import _companion; _companion()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env=environment,
            start_new_session=True,
        )
    try:
        with contextlib.suppress(BrokenPipeError):
            _send(companion.stdin, b"T", pickle.dumps({**task, "folder": str(folder)}))
        yield companion
    finally:
        with contextlib.suppress(BrokenPipeError):
            companion.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            companion.wait(_SECONDS_TO_STOP)
        if companion.poll() is None:
            companion.kill()
        _end_session(companion.pid)
        companion.wait()
        companion.stdout.close()
        shutil.rmtree(folder, ignore_errors=True)


def _check_address(address: str | None) -> str | None:
    if address in (None, "local"):
        return None
    if address == "auto":
        return address
    host, _, port = address.rpartition(":") if isinstance(address, str) else ("", "", "")
    if not host or not port.isdecimal() or "/" in host:
        raise ClusterError(
            f"address must be 'auto' or HOST:PORT, got {describe(address)}; start the run on a machine "
            f"of the cluster"
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=5).close()
    except (OSError, OverflowError) as error:
        raise ClusterError(f"address {address}: no Ray cluster answers there ({error})") from error
    return address


class _InWorker(Exception):
    """The traceback of an exception, as it was in the worker."""


def _outcomes(task: Mapping, progress: bool) -> Iterator[Any]:
    with (
        _started(task) as companion,
        tqdm(total=len(task["blocks"]), desc="blocks", unit="block", disable=not progress) as bar,
    ):
        # to import, to connect
        for seconds in (
            _SECONDS_TO_START,
            _SECONDS_TO_START if task["address"] is None else _SECONDS_TO_CONNECT,
        ):
            late = threading.Timer(seconds, companion.kill)
            late.start()
            kind, content = _receive(companion.stdout)
            late.cancel()
            if kind == b"":
                raise ClusterError(
                    f"no Ray cluster: no answer within {seconds} seconds, or Ray ended"
                )
            if kind == b"E":
                break
        while kind in (b"R", b"O"):
            if kind == b"O":
                fine, outcome = pickle.loads(content)
                if not fine:
                    raise outcome[0] from _InWorker("\n" + outcome[1])
                yield outcome
                bar.update()
            kind, content = _receive(companion.stdout)
        if kind == b"E":
            raise ClusterError(content.decode())
        if kind != b"D":
            raise ClusterError(
                f"the Ray cluster was lost: its head, or Ray on this machine, has ended; {_AGAIN}"
            )


def run_on_ray(
    make: Callable[
        [], Callable[[Any], Any]
    ],  # called once in each worker; returns what turns a block into its outcome
    blocks: Iterable[Any],  # descriptions of blocks, small and picklable
    *,
    workers: int = 2,  # processes that score, >= 1
    # of a cluster: HOST:PORT, or "auto" for the one this machine belongs to; None: one started for the run
    address: str | None = None,
    gpus_per_worker: float = 0.0,  # such as 1, or 0.5 where two workers share a GPU
    progress: bool = False,  # whether a bar counts the blocks
) -> Iterator[Any]:  # outcomes, as they are finished
    """Score blocks on Ray Data's pool of actors; a lost actor's block is scored by another one.

    Raises: ClusterError where Ray is missing, cannot be reached or is lost; what the scoring function raised, from a
    worker.
    """
    check_number(workers, "workers", 1, whole=True)
    check_number(gpus_per_worker, "gpus_per_worker", 0)
    try:
        from ray import cloudpickle
    except ImportError as error:
        raise ClusterError(
            "engine 'ray' needs Ray; install it with: pip install 'tsteval[ray]'"
        ) from error
    task = {
        "make": cloudpickle.dumps(make),
        "blocks": [cloudpickle.dumps(block) for block in blocks],
        "workers": int(workers),
        "gpus_per_worker": float(gpus_per_worker),
        "here": os.getcwd(),
        "address": _check_address(address),
    }
    return _outcomes(task, progress) if task["blocks"] else iter(())
