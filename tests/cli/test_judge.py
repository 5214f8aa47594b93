"""`tsteval judge serve`: a server that can be asked, and what is said where there is none."""

import importlib.util
import os
import signal
import socket
import subprocess
import sys

import pytest

from tests.cli.conftest import refused
from tsteval.people.judging import Judge

_COMMAND = "import sys; from tsteval.cli import main; sys.exit(main())"


@pytest.mark.ci
def test_a_served_model_rates_and_ends_when_it_is_told_to():
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        port = place.getsockname()[1]
    words = ["judge", "serve", "--model", "SmolLM2-135M-Instruct", "--port", str(port)]
    with subprocess.Popen(
        [sys.executable, "-c", _COMMAND, *words, "--threads", "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as server:
        try:
            lines = [server.stdout.readline(), server.stdout.readline()]
            address = f"http://127.0.0.1:{port}/v1"
            assert f"SmolLM2-135M-Instruct answers at {address}" in lines[0]
            assert f"--metrics judge:criterion=content,address={address}" in lines[1]
            judge = Judge.load(address, criterion="fluency")
            rating = judge.score(["The mill is old."], ["The mill is old."])
            assert 1 <= rating.expected[0] <= 5 and not rating.reason[0]
            server.send_signal(signal.SIGINT)
            assert server.wait() == 0
        finally:
            server.kill()


def test_without_llama_cpp_it_says_what_to_install(folder, capsys, monkeypatch):
    there = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "xllamacpp" else there(name)
    )
    refused(capsys, folder, "judge", "serve", words=("pip install 'tsteval[judge]'",))


@pytest.mark.parametrize(
    "words, said",
    [
        (["serve", "--port", "0"], "--port"),
        (["serve", "--model", "cats"], "SmolLM2-135M-Instruct"),
    ],
)
def test_what_is_wrong_is_named(folder, capsys, words, said):
    assert os.listdir(folder) == []
    refused(capsys, folder, "judge", *words, words=(said,))
