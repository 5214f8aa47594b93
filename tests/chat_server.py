"""A server of the standard library that speaks /v1/chat/completions, as well or as badly as a test wants."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from time import sleep


def reply(text="4", listed=None, **more):
    """The object of an answer: its text, and perhaps the likeliest first tokens as {token: log-probability}."""
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": text},
        "finish_reason": "stop",
    }
    if listed is not None:
        entries = [{"token": token, "logprob": value} for token, value in listed.items()]
        choice["logprobs"] = {"content": [{"token": text, "logprob": 0.0, "top_logprobs": entries}]}
    return {"model": "served-1", "choices": [choice], "usage": {"total_tokens": 10}, **more}


class Seen:
    """What a server was asked, and how much of it at once."""

    def __init__(self):
        self.bodies = []
        self.headers = []
        self.now = 0
        self.most = 0
        self.lock = threading.Lock()

    def texts(self):
        return [body["messages"][0]["content"] for body in self.bodies if "messages" in body]


@contextlib.contextmanager
def chat_server(answer, models=("only",), slow=0.0):
    """The address of a server and what it has seen. `answer(body, number)` gives an object, bytes, or (status, headers,
    either); bytes are sent as they are."""
    seen = Seen()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.give(200, {}, {"data": [{"id": name} for name in models]})

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with seen.lock:
                seen.bodies.append(body)
                seen.headers.append(dict(self.headers))
                seen.now += 1
                seen.most, number = max(seen.most, seen.now), len(seen.bodies) - 1
            sleep(slow)
            with seen.lock:
                seen.now -= 1
            given = answer(body, number)
            self.give(*(given if isinstance(given, tuple) else (200, {}, given)))

        def give(self, status, headers, content):
            data = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            if "Content-Length" not in headers:
                self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            with contextlib.suppress(OSError):
                self.wfile.write(data)

        def log_message(self, *told):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1", seen
        finally:
            server.shutdown()


# ---- real ones, each a process of its own

_LLAMA = """
import sys
import xllamacpp
settings = xllamacpp.CommonParams()
settings.model.path, settings.n_parallel, settings.n_ctx = sys.argv[1], 1, 4096
settings.cpuparams.n_threads, settings.warmup = 1, False
server = xllamacpp.Server(settings)
print(server.listening_address, flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def llama_server():
    """The address of llama.cpp's server with the embedded model."""
    from tsteval.core.fetch import asset_path

    [weights] = asset_path("SmolLM2-135M-Instruct").glob("*.gguf")
    with subprocess.Popen(
        [sys.executable, "-c", _LLAMA, str(weights)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            lines = iter(process.stdout.readline, "")
            address = next((line.strip() for line in lines if line.startswith("http")), None)
            assert address, "llama.cpp's server did not start"
            # what it says must be read, or it would wait for a reader
            threading.Thread(target=lambda: [*lines], daemon=True).start()
            yield f"{address}/v1"
        finally:
            process.kill()


@contextlib.contextmanager
def transformers_server(model, folder):
    """The address of `transformers serve` with a model saved in a folder, and the model's name there."""
    model.model.save_pretrained(folder)
    model.tokenizer.save_pretrained(folder)
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        port = place.getsockname()[1]
    command = [
        str(Path(sys.executable).with_name("transformers")),
        "serve",
        str(folder),
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--device",
        "cpu",
        "--dtype",
        "float32",
    ]
    log = Path(folder) / "log.txt"
    with (
        log.open("w") as told,
        subprocess.Popen(
            command, stdout=told, stderr=told, env={**os.environ, "HF_HUB_OFFLINE": "1"}
        ) as process,
    ):
        try:
            for _ in range(600):
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                    break
                assert process.poll() is None, log.read_text()[-2000:]
                sleep(0.2)
            yield f"http://127.0.0.1:{port}/v1", str(folder)
        finally:
            process.kill()
