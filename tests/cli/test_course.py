"""`tsteval course` and `explore`."""

import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.cli.conftest import refused, run, systems, write
from tsteval import cli


def opened(monkeypatch):
    """The folder that `tsteval course` opens."""
    called = []
    monkeypatch.setattr(
        "tsteval.cli.course.subprocess.call", lambda command: called.append(command) or 0
    )
    assert cli.main(["course", "--no-browser"]) == 0
    return Path(called[0][-1])


def test_course_opens_the_chapters(folder, monkeypatch):
    called = []
    monkeypatch.setattr(
        "tsteval.cli.course.subprocess.call", lambda command: called.append(command) or 0
    )
    assert cli.main(["course", "--no-browser"]) == 0
    assert (
        called[0][1:4] == ["-m", "jupyterlab", "--no-browser"]
        and Path(called[0][-1]) == folder / "tsteval-course"
    )
    assert (
        "--LabApp.default_url=/lab/tree/index.ipynb" in called[0]
        and Path(called[0][-1], "index.ipynb").is_file()
    )


def test_course_copies_installed_chapters(folder, monkeypatch):
    import tsteval

    chapters = folder / "prefix" / "share" / "tsteval" / "nbs"
    chapters.mkdir(parents=True)
    (chapters / "index.ipynb").write_text("{}")
    monkeypatch.setattr(
        tsteval, "__file__", str(folder / "site-packages" / "tsteval" / "__init__.py")
    )
    monkeypatch.setattr(sys, "prefix", str(folder / "prefix"))
    mine = opened(monkeypatch)
    assert mine == folder / "tsteval-course" and (mine / "index.ipynb").is_file()
    (mine / "index.ipynb").write_text("my notes")
    assert (opened(monkeypatch) / "index.ipynb").read_text() == "my notes"


def test_explore_help_names_every_explorer(capsys):
    from tsteval.explorers.catalogue import EXPLORERS

    status, out, _err = run(capsys, "explore", "--help")
    assert status == 0 and all(name in out for name in EXPLORERS)


def test_explore_refuses_an_unknown_name(folder, capsys):
    refused(capsys, folder, "explore", "rogue", words=["'rogue'", "bleu", "evaluation"])


def test_explore_without_voila_says_what_to_install(folder, capsys, monkeypatch):
    monkeypatch.setattr("tsteval.cli.course.importlib.util.find_spec", lambda name: None)
    refused(capsys, folder, "explore", words=["pip install 'tsteval[course]'"])


@pytest.mark.parametrize("name", [None, "mask"])
def test_explore_hands_a_runnable_notebook_to_voila(folder, capsys, monkeypatch, name):
    import nbformat
    from voila.app import Voila

    given = []
    monkeypatch.setattr(
        Voila,
        "launch_instance",
        lambda argv: given.append((argv, nbformat.read(argv[-1], as_version=4))),
    )
    status, _, _ = run(
        capsys, "explore", *([name] if name else []), "--no-browser", "--port", "8901"
    )
    ((options, notebook),) = given
    nbformat.validate(notebook)
    assert (
        status == 0
        and options[:2] == ["--no-browser", "--port=8901"]
        and not Path(options[-1]).exists()
    )
    assert notebook.cells[0].source.endswith(
        f"explorer_app({name!r})" if name else "explorer_app()"
    )


RATED = [
    {
        "system": row["system"],
        "source": row["source"],
        "output": row["output"],
        "criterion": "content",
        "rating": place + 1,
    }
    for place, row in enumerate(systems("a", "b"))
]


@pytest.fixture
def results(folder, capsys):
    write("pairs.csv", systems("a", "b"))
    assert (
        run(
            capsys,
            "evaluate",
            "pairs.csv",
            "--metrics",
            "rouge",
            "--n-boot",
            20,
            "--output",
            "results",
        )[0]
        == 0
    )
    return folder


def test_explore_puts_ratings_beside_scores(results, capsys, monkeypatch):
    write("ratings.csv", RATED[:3])
    given = []
    monkeypatch.setattr(
        "tsteval.explorers.server.serve", lambda code, options, chapters: given.append(code)
    )
    status, _out, err = run(
        capsys, "explore", "results", "--ratings", "ratings.csv", "--no-browser"
    )
    assert status == 0, err
    monkeypatch.chdir("/")  # a kernel runs somewhere else
    held = {}
    exec(given[0].replace("\nresults_app", "\napp = results_app"), held)
    app = held["app"]
    app.children[0].value = "pairs"
    pairs = app.children[1].children[1].controls["pair"].options
    assert [name.split(": ")[0].split(", ")[1] for name, _ in pairs] == [
        "rating of content 1.00",
        "rating of content 2.00",
        "rating of content 3.00",
        "not rated",
    ]
    assert "nobody rated" in app.children[1].children[0].value
    app.close()


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["results", "--ratings", "nothing.csv"], ["nothing.csv"]),
        (["results", "--ratings", "bare.csv"], ["bare.csv", "rating"]),
        (
            ["results", "--ratings", "other.csv"],
            ["other.csv", "1 of 1 rated outputs are not among the scored ones"],
        ),
        (["results", "--ratings", "words.csv"], ["words.csv", "rating"]),
        (["results", "--ratings", "empty.csv"], ["empty.csv", "rating"]),
        (["--ratings", "bare.csv"], ["--ratings", "FOLDER"]),
        (["evaluation", "--ratings", "bare.csv"], ["--ratings", "FOLDER"]),
    ],
)
def test_explore_with_ratings_that_cannot_be_used_is_one_line(results, capsys, arguments, words):
    write(
        "bare.csv",
        [{name: value for name, value in row.items() if name != "rating"} for row in RATED],
    )
    write("other.csv", [RATED[0] | {"output": "an output that nobody scored"}])
    write("words.csv", [RATED[0] | {"rating": "fine"}])
    write("empty.csv", [row | {"rating": ""} for row in RATED])
    refused(capsys, results, "explore", *arguments, "--no-browser", words=words)


def test_the_course_is_opened_for_root_and_options_go_through(folder, monkeypatch):
    called = []
    monkeypatch.setattr(
        "tsteval.cli.course.subprocess.call", lambda command: called.append(command) or 0
    )
    monkeypatch.setattr("tsteval.cli.course.os.geteuid", lambda: 0, raising=False)
    assert cli.main(["course", "--no-browser", "--port", "9000", "--ip=0.0.0.0", "--debug"]) == 0
    monkeypatch.setattr("tsteval.cli.course.os.geteuid", lambda: 1000, raising=False)
    assert cli.main(["course"]) == 0
    assert called[0][3:8] == [
        "--no-browser",
        "--port=9000",
        "--allow-root",
        "--ip=0.0.0.0",
        "--debug",
    ] and called[1][3].startswith("--LabApp.default_url")


def test_the_course_adds_what_is_missing_and_touches_nothing_else(folder, monkeypatch):
    import tsteval

    chapters = folder / "prefix" / "share" / "tsteval" / "nbs"
    (chapters / "solutions").mkdir(parents=True)
    for name in ("index", "01_text", "solutions/02_bleu"):
        (chapters / f"{name}.ipynb").write_text("{}")
    monkeypatch.setattr(
        tsteval, "__file__", str(folder / "site-packages" / "tsteval" / "__init__.py")
    )
    monkeypatch.setattr(sys, "prefix", str(folder / "prefix"))
    mine = folder / "tsteval-course"
    mine.mkdir()  # a copy that was interrupted
    (mine / "01_text.ipynb").write_text("my notes")
    assert opened(monkeypatch) == mine and (mine / "01_text.ipynb").read_text() == "my notes"
    assert (
        (mine / "index.ipynb").read_text()
        == (mine / "solutions" / "02_bleu.ipynb").read_text()
        == "{}"
    )


def test_a_checkout_stays_as_it_is(folder, monkeypatch):
    checkout = Path(cli.__file__).parents[2]
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.chdir(checkout / "tests")
    mine = opened(monkeypatch)
    assert mine == folder / "tsteval-course" and (mine / "solutions" / "02_bleu.ipynb").is_file()
    assert (
        not (checkout / "tsteval-course").exists()
        and not (checkout / "tests" / "tsteval-course").exists()
    )


def test_the_course_is_served_to_whoever_has_its_token_and_ends(tmp_path):
    """The server itself: its page, a chapter and its folder with the token, nothing without, and no process behind."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    for name in ("home", "here"):
        (tmp_path / name).mkdir()
    environment = {key: value for key, value in os.environ.items() if not key.startswith("JUPYTER")}
    environment |= {
        "PYTHONPATH": str(Path(cli.__file__).parents[2]),
        "HOME": str(tmp_path / "home"),
        "JUPYTER_RUNTIME_DIR": str(tmp_path),
    }
    log = tmp_path / "log"
    with open(log, "w") as told:
        server = subprocess.Popen(
            [sys.executable, "-m", "tsteval", "course", "--no-browser", f"--port={port}"],
            cwd=tmp_path / "here",
            env=environment,
            stdout=told,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        until = time.monotonic() + 90
        while not (found := re.search(rf"127\.0\.0\.1:{port}/\S*token=(\w+)", log.read_text())):
            assert time.monotonic() < until and server.poll() is None, log.read_text()
            time.sleep(0.2)

        def asked(path, token=None, method="GET"):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            while True:  # the address is printed a moment before the server answers at it
                try:
                    connection.connect()
                except ConnectionRefusedError:
                    assert time.monotonic() < until and server.poll() is None, log.read_text()
                    time.sleep(0.2)
                else:
                    break
            connection.request(
                method, path, headers={"Authorization": f"token {token}"} if token else {}
            )
            answer = connection.getresponse()
            return answer.status, answer.read().decode()

        assert (
            asked("/api/contents/index.ipynb")[0]
            == asked("/api/contents/index.ipynb", "wrong")[0]
            == 403
        )
        assert asked("/lab")[0] == 302  # to the page that asks for the token
        assert asked("/lab/tree/index.ipynb", found[1])[0] == 200
        status, page = asked("/api/contents/02_bleu.ipynb?content=1", found[1])
        assert (
            status == 200
            and "BLEU" in page
            and (tmp_path / "here" / "tsteval-course" / "02_bleu.ipynb").is_file()
        )
        assert asked("/api/contents/%2e%2e/log", found[1])[0] in (
            400,
            403,
            404,
        )  # nothing above the copy
        assert asked("/api/shutdown", found[1], "POST")[0] == 200
        assert server.wait(60) == 0
    finally:
        if server.poll() is None:
            os.killpg(server.pid, signal.SIGKILL)
    until = time.monotonic() + 30
    while left := running(
        server.pid
    ):  # JupyterLab ends with the command, on a busy machine a moment later
        assert time.monotonic() < until, left
        time.sleep(0.2)


def running(group):
    """Names of the processes of a group that still run; one that has ended and waits to be told so does not."""
    found = []
    for process in psutil.process_iter():
        try:
            ours = os.getpgid(process.pid) == group
            if ours and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.name())
        except (ProcessLookupError, psutil.NoSuchProcess):
            pass
    return found
