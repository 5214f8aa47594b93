"""Servers and a browser for the explorers: JupyterLab and Voila on loopback, Chromium driven by Playwright."""

import importlib.util
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
CHROMIUM = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
NEEDED = "for the browser tests, apt-get install chromium, and pip install -e '.[dev]' for Playwright and Voila"


def missing(what):
    """Skip where a browser is not to be expected; fail where it is."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"{what}; {NEEDED}")
    pytest.skip(f"{what}; {NEEDED}")


@pytest.fixture(scope="module")
def chromium():
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("Playwright is not installed")
    names = (os.environ.get("CHROMIUM", ""), "chromium", "chromium-browser", "google-chrome")
    path = next(filter(None, map(shutil.which, names)), None)
    if path is None:
        missing("there is no Chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path, args=CHROMIUM
        )  # with a user folder of its own
        yield browser
        browser.close()


def environment(folder):
    """The tests' environment, with every setting and state of Jupyter in `folder`."""
    mine = {"PYTHONPATH": str(ROOT), "TOKENIZERS_PARALLELISM": "false"}
    folders = (
        "JUPYTER_CONFIG_DIR",
        "JUPYTER_DATA_DIR",
        "JUPYTER_RUNTIME_DIR",
        "JUPYTERLAB_SETTINGS_DIR",
        "JUPYTERLAB_WORKSPACES_DIR",
        "IPYTHONDIR",
    )
    mine |= {name: str(folder / name.lower()) for name in folders}
    return {**{key: value for key, value in os.environ.items() if key != "TSTEVAL_STATIC"}, **mine}


class Server:
    """A server on a free port of this machine, with its log, in which the kernels' errors appear too."""

    def __init__(self, command, folder, path, **more):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}"
        self.log = folder / f"server-{self.port}.log"
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                [*command, f"--port={self.port}"],
                cwd=folder,
                env=environment(folder) | more,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self._wait(path)
        token = re.search(r"\?token=\w+", self.log.read_text(errors="replace"))
        self.start = (
            f"{self.address}/{token[0] if token else ''}"  # the address that a person is given
        )

    def _wait(self, path):
        until = time.monotonic() + 180
        while time.monotonic() < until and self.process.poll() is None:
            try:
                urllib.request.urlopen(self.address + path, timeout=5)
                return
            except urllib.error.HTTPError:
                return
            except OSError:
                time.sleep(0.3)
        pytest.fail(f"the server did not come up:\n{self.log.read_text()[-3000:]}")

    def errors(self):
        """Lines of the log that tell of an error, in the server or in a kernel."""
        return [
            line
            for line in self.log.read_text(errors="replace").splitlines()
            if re.search(r"Traceback|\bERROR\b|\bCRITICAL\b|Error:|Exception", line)
        ]

    def stop_kernels(self):
        """End the kernels of JupyterLab, each of which may hold a model."""
        for kernel in self._kernels():
            request = urllib.request.Request(
                f"{self.address}/api/kernels/{kernel['id']}", method="DELETE"
            )
            urllib.request.urlopen(request, timeout=60).close()

    def _kernels(self):
        """JupyterLab's kernels; while one of them is being started, its server answers with an error (500)."""
        until = time.monotonic() + 60
        while True:
            try:
                with urllib.request.urlopen(f"{self.address}/api/kernels", timeout=30) as answer:
                    return json.load(answer)
            except urllib.error.HTTPError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.3)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(90)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


@pytest.fixture(scope="module")
def lab(tmp_path_factory, chromium, kernels):
    folder = tmp_path_factory.mktemp("lab")
    settings = folder / "jupyter_config_dir" / "labconfig" / "default_setting_overrides.json"
    settings.parent.mkdir(parents=True)
    settings.write_text(
        json.dumps({"@jupyterlab/apputils-extension:notification": {"fetchNews": "false"}})
    )
    server = Server(
        [
            sys.executable,
            "-m",
            "jupyterlab",
            "--no-browser",
            "--ip=127.0.0.1",
            "--allow-root",
            "--ServerApp.token=",
            "--ServerApp.port_retries=0",
            "--ServerApp.disable_check_xsrf=True",
            "--expose-app-in-browser",
            "--LabApp.check_for_updates_class=jupyterlab.handlers.announcements.NeverCheckForUpdate",
            f"--ServerApp.root_dir={folder}",
        ],
        folder,
        "/api/status",
        **({"JUPYTER_PATH": kernels} if kernels else {}),
    )
    server.folder = folder
    yield server
    server.stop()


@pytest.fixture(scope="module")
def voila(tmp_path_factory, chromium):
    if importlib.util.find_spec("voila") is None:
        missing("Voila is not installed")
    folder = tmp_path_factory.mktemp("voila")
    command = "import sys; from tsteval.cli import main; sys.exit(main())"
    server = Server(
        [sys.executable, "-c", command, "explore", "--no-browser"], folder, "/static/none"
    )
    yield server
    assert server.stop() == 0


class Watched:
    """A page whose console and failed requests are kept."""

    def __init__(self, browser):
        self.context = browser.new_context(
            viewport={"width": 1250, "height": 1300}, accept_downloads=True
        )
        self.page = self.context.new_page()
        self.page.set_default_timeout(180_000)
        self.complaints = []
        self.elsewhere = []
        self.page.on("request", self._ask)
        self.page.on("console", lambda told: self._note(told) if told.type == "error" else None)
        self.page.on("pageerror", lambda error: self.complaints.append(f"page error: {error}"))
        self.page.on("dialog", self._refuse)

    def _ask(self, request):
        """Keep what a page asks of any machine but this one."""
        asked = urllib.parse.urlsplit(request.url)
        if asked.scheme in ("http", "https", "ws", "wss") and asked.hostname not in (
            "127.0.0.1",
            "localhost",
        ):
            self.elsewhere.append(request.url)

    def _note(self, told):
        away = told.location.get("url", "")
        if "net::ERR_" in told.text and away.startswith(
            "https://"
        ):  # a library reaches for a content network in vain
            return
        self.complaints.append(f"console: {told.text} ({away})")

    def _refuse(self, dialog):
        self.complaints.append(f"a dialog opened, so text was run: {dialog.message}")
        dialog.dismiss()


@pytest.fixture
def watched(chromium):
    watched = Watched(chromium)
    yield watched
    watched.context.close()


def write_notebook(path, code):
    cell = {
        "cell_type": "code",
        "id": "explorer",
        "execution_count": None,
        "metadata": {},
        "outputs": [],
        "source": code,
    }
    path.write_text(
        json.dumps(
            {
                "cells": [cell],
                "nbformat": 4,
                "nbformat_minor": 5,
                "metadata": {
                    "kernelspec": {
                        "display_name": "python3",
                        "language": "python",
                        "name": "python3",
                    }
                },
            }
        )
    )
