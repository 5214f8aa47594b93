"""Batches of a table scored by the workers of a Ray cluster: Ray Data maps their numbers to parts that the workers write"""

import contextlib
import logging
import math
import os
import socket
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..core.assets import AssetError
from ..core.checks import InputError, describe
from ..core.version import __version__
from .batches import BatchPlan, BatchScorer


class ClusterError(InputError):
    """Ray is missing, its cluster cannot be reached, or was lost. What is finished stays finished."""


_AGAIN = "the finished batches are kept, and the same call goes on with the others"
_TRIES = 4  # of a batch whose worker is lost
_OBJECT_STORE = 128 * 1024 * 1024  # bytes; only numbers of batches travel


_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",  # or Ray reports home
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # or it warns of GPUs
    "RAY_BACKEND_LOG_LEVEL": "fatal",
    "RAY_DEDUP_LOGS": "0",
}


class _Worker:
    """What each actor of Ray Data's pool is: a `BatchScorer`, made once."""

    def __init__(self, plan: BatchPlan, version: str, folder: str):
        if version != __version__:
            raise ClusterError(
                f"worker on {socket.gethostname()}: it has tsteval {__version__}, the run was "
                f"started with {version}; install the same version on all machines"
            )
        with contextlib.suppress(OSError):
            os.chdir(folder)  # relative paths are those of the run
        self.scorer = BatchScorer(plan)

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        from ray import cloudpickle

        error: Exception | None = None
        try:
            self.scorer(int(row["number"]))
        except (InputError, AssetError, OSError) as failure:
            error = failure
        return {"number": row["number"], "error": cloudpickle.dumps(error)}


def _cpus_here() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _start(ray, **settings: Any) -> None:
    """A cluster on this machine. Ray gives its start half a minute, which a busy machine may need three times."""
    for last in (False, False, True):
        try:
            ray.init(
                address="local",
                include_dashboard=False,
                object_store_memory=_OBJECT_STORE,
                _node_ip_address="127.0.0.1",
                **settings,
            )
            return
        except Exception as error:  # Ray raises no narrower one
            ray.shutdown()
            if last or "timed out during startup" not in str(error):
                raise


def _connect(ray, address: str | None, workers: int, gpus_per_worker: float) -> float:
    """Join a cluster, or start one; return the CPUs that a worker takes. Raises: ClusterError."""
    quiet = {"log_to_driver": False, "logging_level": "CRITICAL"}
    cpus: float = max(1, _cpus_here() // workers)
    try:
        if address is None:
            _start(ray, num_cpus=workers * cpus + 1, **quiet)
        else:
            ray.init(address=address, **quiet)
            there = ray.cluster_resources().get("CPU", 1)
            # a cluster with few CPUs shares them, and leaves some for reading
            cpus = 1 if there > workers else math.floor(50 * there / workers) / 100
    except Exception as error:  # Ray raises a bare one where its start takes too long
        raise ClusterError(
            f"no Ray cluster: {_first_line(error)}; if it asks for a token, set RAY_AUTH_TOKEN, or "
            f"RAY_AUTH_MODE=disabled if it does not"
        ) from error
    gpus = ray.cluster_resources().get("GPU", 0)
    if gpus_per_worker > gpus:
        raise ClusterError(f"gpus_per_worker {gpus_per_worker:g}: the cluster has {gpus:g} GPUs")
    return cpus


def _first_line(error: BaseException) -> str:
    lines = (line.strip() for line in str(error).splitlines())
    return next(filter(None, lines), "no reason given")


def _check_address(address: str | None) -> str | None:
    """An address that can be joined; None: a cluster of the run's own. Raises: ClusterError."""
    if address in (None, "local"):
        return None
    if address == "auto":
        return address
    host, _, port = address.rpartition(":")
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


def score_on_ray(
    scorer: BatchScorer,  # whose plan the workers follow
    numbers: list[int],  # of batches
) -> Iterator[int]:  # the numbers of those that are done, as they are
    """Score batches on Ray Data's pool of actors; a lost actor's batch is scored by another one.

    Raises: ClusterError where Ray is missing, cannot be reached or is lost; else what a worker's `BatchScorer` raised.
    """
    if not numbers:
        return
    settings = scorer.plan.settings
    address = _check_address(settings.address)
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    token = {"RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"} & {*os.environ}
    if address and (token or (Path.home() / ".ray" / "auth_token").is_file()):
        os.environ.setdefault("RAY_AUTH_MODE", "token")  # read as Ray is imported
    try:
        import ray
        import ray.data
        from ray import cloudpickle
        from ray.exceptions import RayError
    except ImportError as error:
        raise ClusterError(
            "engine 'ray' needs Ray; install it with: pip install 'tsteval[ray]'"
        ) from error
    own = not ray.is_initialized()
    cpus = _connect(ray, address, settings.workers, settings.gpus_per_worker) if own else 1
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = context.print_on_execution_start = False
    try:
        batches = ray.data.from_items(
            [{"number": number} for number in numbers],
            override_num_blocks=min(len(numbers), max(2000, 4 * settings.workers)),
        )
        with (
            warnings.catch_warnings()
        ):  # of how often a lost worker is tried again, which has no other name
            warnings.simplefilter("ignore")
            done = batches.map(
                _Worker,
                fn_constructor_args=[scorer.plan, __version__, os.getcwd()],
                compute=ray.data.ActorPoolStrategy(size=settings.workers),
                num_cpus=cpus,
                num_gpus=settings.gpus_per_worker or None,
                max_restarts=-1,
                max_task_retries=_TRIES - 1,
            )
        for row in done.iter_rows():
            if error := cloudpickle.loads(row["error"]):
                raise error
            yield row["number"]
    except RayError as error:
        raise ClusterError(_in_one_line(error)) from error
    finally:
        if own:
            ray.shutdown()


def _in_one_line(error: BaseException) -> str:
    causes = (error, error.__cause__, error.__context__)
    kinds = {type(cause).__name__ for cause in causes}
    cluster_errors = [cause for cause in causes if isinstance(cause, ClusterError)]
    if cluster_errors:
        return str(cluster_errors[0])
    lost = {"ActorDiedError", "ActorUnavailableError", "RayActorError", "WorkerCrashedError"}
    if kinds & {*lost, "OutOfMemoryError"}:
        return (
            f"a batch was tried {_TRIES} times, and each time its worker was lost, for instance "
            f"because memory ran out; take smaller batches (block_rows) or fewer workers: {_AGAIN}"
        )
    return f"Ray gave up ({type(error).__name__}: {_first_line(error)}); {_AGAIN}"
