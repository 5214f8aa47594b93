"""What `tsteval explore` starts, asked over HTTP: who gets an answer, how many kernels run, and when they end."""

import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.explorers.pages import ROOT
from tsteval.explorers.server import chapter_page, one_cell, stored_chapters

SERVE = """
import sys
sys.path[:] = filter(None, sys.path)  # as for a command, which does not import from where it is called
from tsteval.explorers import server
server._MOST_KERNELS, server._IDLE, server._LOOK_EVERY = 2, 3, 1
server.serve("'the page'", ["--no-browser", "--port={port}"], server.stored_chapters())
"""


class Running:
    """A server of one small page on a free port of this machine."""

    def __init__(self, folder):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.log = folder / "log"
        environment = {key: value for key, value in os.environ.items() if key != "JUPYTER_TOKEN"}
        environment |= {
            "PYTHONPATH": str(ROOT),
            "JUPYTER_RUNTIME_DIR": str(folder),
            "IPYTHONDIR": str(folder),
        }
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", SERVE.format(port=self.port)],
                cwd=folder,
                env=environment,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        until = time.monotonic() + 60
        while not (found := re.search(r"token=(\w+)", self.log.read_text())):
            assert time.monotonic() < until and self.process.poll() is None, self.log.read_text()
            time.sleep(0.1)
        self.token = found[1]

    def ask(self, path, token=True, host=None):
        """Status and text of an answer, with the server's token and address or with others."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        headers = {"Authorization": f"token {self.token}"} if token is True else {}
        connection.request(
            "GET", path, headers={"Host": host or f"localhost:{self.port}", **headers}
        )
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, text

    def kernels(self):
        """Processes that this server started and that still run."""
        children = (
            Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        )
        return [
            pid for pid in children if b"ipykernel" in Path(f"/proc/{pid}/cmdline").read_bytes()
        ]


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    server = Running(tmp_path_factory.mktemp("server"))
    yield server
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(60) == 0


def wait_for(condition, seconds=30):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.2)


@pytest.mark.ci
@pytest.mark.parametrize(
    "path", ["/", "/chapter/02_bleu.ipynb", "/api/kernels/00000000-0000-0000-0000-000000000000"]
)
def test_a_request_without_the_token_is_refused(running, path):
    status, text = running.ask(path, token=False)
    assert status in (302, 403) and "the page" not in text and "BLEU" not in text
    assert not running.kernels()


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8866", "localhost.evil.example", "10.0.0.1", "[::2]"]
)
@pytest.mark.parametrize(
    "path", ["/", "/chapter/02_bleu.ipynb", "/voila/static/voila.js", "/login"]
)
def test_another_name_for_this_machine_is_refused(running, host, path):
    status, text = running.ask(path, host=host)
    assert status == 403 and "the page" not in text
    assert not running.kernels()


@pytest.mark.ci
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="counts processes in /proc")
def test_kernels_are_bounded_and_end_when_nobody_looks(running):
    assert all(running.ask("/")[0] == 200 for _ in range(2)) and len(running.kernels()) == 2
    status, text = running.ask("/")
    assert status == 503 and "close" in text and len(running.kernels()) == 2
    wait_for(lambda: not running.kernels())
    assert running.ask("/")[0] == 200
    wait_for(lambda: not running.kernels())


def test_a_page_names_no_other_host(running):
    status, page = running.ask("/")
    assert status == 200 and "the page" in page
    assert not re.findall(
        r"""<(?:link|script|img)\b[^>]*(?:href|src)=["'](?:https?:)?//[^>]*>""", page
    )


def test_a_chapter_is_shown_as_it_is_stored(running):
    status, page = running.ask("/chapter/02_bleu.ipynb")
    assert status == 200 and "This chapter as it is stored" in page and "<script src" not in page
    for path in (
        "/chapter/nothing.ipynb",
        "/chapter/../setup.ipynb",
        "/chapter/..%2f..%2fetc.ipynb",
    ):
        assert running.ask(path)[0] in (302, 404)


def test_settings_that_lie_in_the_folder_are_not_run(tmp_path):
    """Voila reads voila.py from the folder where it starts; a folder of results may be anybody's."""
    (tmp_path / "voila.py").write_text("open('was_run', 'w').close()")
    server = Running(tmp_path)
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(60) == 0 and not (tmp_path / "was_run").exists()


def test_a_notebook_of_one_cell():
    import nbformat

    notebook = nbformat.reads(one_cell("'<b>'\n1 + 1"), as_version=4)
    nbformat.validate(notebook)
    assert [cell.source for cell in notebook.cells] == ["'<b>'\n1 + 1"]


def test_the_stored_chapters_are_those_of_this_checkout():
    assert stored_chapters() == ROOT / "nbs"
    page = chapter_page(ROOT / "nbs" / "03_rouge.ipynb")
    assert page.count("<title>") == 1 and "default_exp" not in page
