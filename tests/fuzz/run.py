"""Coverage-guided fuzzing of `targets.py`: python -m tests.fuzz.run [--seconds N] [--runs N] [--out FOLDER] [TARGET
...], in tests/, with atheris.

Each target has a process of its own, which begins with `corpus/TARGET` and writes what it finds to FOLDER. Exits 1
after a fault.
"""

import argparse
import os
import shutil
import sys
import traceback
import warnings
from pathlib import Path

import atheris

warnings.simplefilter("ignore")
with atheris.instrument_imports(include=["tsteval"]):
    from tests.fuzz.targets import ROOM, TARGETS

CORPUS = Path(__file__).parent / "corpus"


def recorded(name: str, found: Path):
    """The target, which writes the first input of each kind of fault to a file and goes on."""
    known: set[tuple] = set()

    def run(data: bytes):
        try:
            TARGETS[name](data)
        except Exception as error:
            places = [
                frame
                for frame in traceback.extract_tb(error.__traceback__)
                if "tsteval" in frame.filename or frame.filename.endswith("targets.py")
            ]
            kind = (type(error).__name__, places[-1].name, places[-1].lineno)
            if kind not in known:
                known.add(kind)
                (found / f"{name}-{'-'.join(map(str, kind))}").write_bytes(data)
                traceback.print_exc()

    return run


def fuzz(name: str, seconds: int, runs: int, out: Path, seed: int) -> bool:
    """Fuzz one target; whether nothing was found."""
    made = out / name
    found = out / "found"
    for folder in (made, found):
        folder.mkdir(parents=True, exist_ok=True)
    child = os.fork()
    if not child:
        for place in (1, 2):
            os.dup2(os.open(out / f"{name}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND), place)
        # a file may promise more than any memory holds; whether that ends in a refusal is seen only if the allocator is
        # asked
        atheris.Setup(
            [
                sys.argv[0],
                f"-max_total_time={seconds}",
                f"-runs={runs}",
                "-timeout=60",
                "-rss_limit_mb=4096",
                "-malloc_limit_mb=1000000",
                "-max_len=8192",
                f"-seed={seed}",
                "-use_value_profile=1",
                f"-artifact_prefix={found}/{name}-",
                "-print_final_stats=1",
                str(made),
                *filter(os.path.isdir, [str(CORPUS / name)]),
            ],
            recorded(name, found),
        )
        atheris.Fuzz()
        os._exit(0)
    died = os.waitpid(child, 0)[1]  # out of memory, too slow, or killed by a library
    shutil.rmtree(ROOM / str(child), ignore_errors=True)
    done = [
        int(line.split()[-1])
        for line in (out / f"{name}.log").read_text(errors="replace").splitlines()
        if "number_of_executed_units" in line
    ]
    faults = sorted(path.name for path in found.glob(f"{name}-*"))
    print(
        f"{name}: {done[-1] if done else 0} executions, "
        f"{'faults: ' + ', '.join(faults) if faults else 'died' if died else 'no fault'}",
        flush=True,
    )
    return not died and not faults


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    parser.add_argument("--seconds", type=int, default=10, help="for each target")
    parser.add_argument(
        "--runs",
        type=int,
        default=-1,
        help="executions for each target, at most; with the same seed they are the same on every "
        "machine",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("fuzzed"),
        help="folder for inputs that reach new code, logs and faults",
    )
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    sound = [
        fuzz(name, options.seconds, options.runs, options.out, options.seed)
        for name in options.targets or TARGETS
    ]
    shutil.rmtree(ROOM, ignore_errors=True)
    sys.exit(not all(sound))
