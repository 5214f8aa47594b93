"""A server on loopback whose answers depend on the path, for tests of links."""

import http.server
import threading
import time

from tsteval.words.links import LinkLimits

HERE = LinkLimits(allow_private=("127.0.0.1/32",))


class Server(http.server.ThreadingHTTPServer):
    """A server on loopback whose answers depend on the path; it remembers what it was asked."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked = []
        self.headers_seen = []
        self.open_now = 0
        self.most_open = 0
        self.lock = threading.Lock()
        self.scheme = "http"
        threading.Thread(
            target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        ).start()

    def handle_error(self, request, client_address):
        """A client that hangs up, as one does after a time-out or a refused certificate, is no error here."""

    def url(self, path):
        return f"{self.scheme}://127.0.0.1:{self.server_port}{path}"


class Handler(http.server.BaseHTTPRequestHandler):
    def answer(self):
        server = self.server
        path = self.path.split("?")[0]
        with server.lock:
            server.asked.append((self.command, self.path))
            server.headers_seen.append(
                {name.lower(): value for name, value in self.headers.items()}
            )
            server.open_now += 1
            server.most_open = max(server.most_open, server.open_now)
        try:
            self.send(path)
        finally:
            with server.lock:
                server.open_now -= 1

    def send(self, path):
        kind, _, rest = path[1:].partition("/")
        if kind == "no-head":
            status = 405 if self.command == "HEAD" else 200
        elif kind == "slow":
            time.sleep(float(rest))
            status = 200
        elif kind == "drip":  # a byte now and then, so that no single read takes long
            for byte in b"HTTP/1.1 200 OK\r\n" * 20:
                self.wfile.write(bytes([byte]))
                self.wfile.flush()
                time.sleep(0.1)
            return
        else:
            status = int(kind)
        self.send_response(status)
        if 300 <= status < 400:
            self.send_header("Location", self.headers.get("X-To") or TARGETS.get(rest, "/" + rest))
        self.send_header("Set-Cookie", "id=1")
        self.end_headers()
        if self.command == "GET":
            for _ in range(10_000):
                self.wfile.write(b"x" * 10_000)

    do_HEAD = do_GET = answer

    def log_message(self, *arguments):
        pass


TARGETS = {
    "private": "http://192.168.0.1/",
    "metadata": "http://169.254.169.254/latest/",
    "other-loopback": "http://127.0.0.2/",
    "file": "file:///etc/passwd",
    "script": "javascript:alert(1)",
    "loop": "/302/loop",
    "broken": "http://[::1/",
    "far-too-long": "/200?" + "x" * 5000,
    "user": "http://name:secret@{host}/200",
}
