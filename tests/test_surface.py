"""Chapter 20: links against a server on loopback, and readability."""
import asyncio
import http.server
import math
import signal
import socket
import ssl
import string
import subprocess
import sys
import threading
import time
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsteval.core.assets import AssetError
from tsteval.core.checks import InputError, tokenizable
from tsteval.core.metric import find_metric
from tsteval.lexical import english
from tsteval.lexical import links as client
from tsteval.lexical.english import pronunciations, syllable_source, syllables_by_rule
from tsteval.lexical.links import LinkLimits, check_links, is_public_address
from tsteval.models.roles import Models
from tsteval.surface import find_links, flesch_reading_ease, link_validity, readability, reading_counts

HERE = LinkLimits(allow_private=("127.0.0.1/32",))


class Server(http.server.ThreadingHTTPServer):
    """A server on loopback whose answers depend on the path; it remembers what it was asked."""

    daemon_threads, request_queue_size = True, 256

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked, self.headers_seen, self.open_now, self.most_open = [], [], 0, 0
        self.lock = threading.Lock()
        self.scheme = "http"
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def handle_error(self, request, client_address):
        """A client that hangs up, as one does after a time-out or a refused certificate, is no error here."""

    def url(self, path):
        return f"{self.scheme}://127.0.0.1:{self.server_port}{path}"


class Handler(http.server.BaseHTTPRequestHandler):
    def answer(self):
        server, path = self.server, self.path.split("?")[0]
        with server.lock:
            server.asked.append((self.command, self.path))
            server.headers_seen.append({name.lower(): value for name, value in self.headers.items()})
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


@pytest.fixture
def server():
    running = Server()
    yield running
    running.shutdown()
    running.server_close()


def status(server, path, limits=HERE):
    return check_links([server.url(path)], limits=limits)[server.url(path)]


@pytest.mark.parametrize(
    "path, answer",
    [
        ("/200", "200"),
        ("/301/200", "200"),
        ("/302/301/200", "200"),
        ("/307/200", "200"),
        ("/404", "404"),
        ("/301/404", "404"),
        ("/500", "500"),
        ("/403", "403"),
        ("/204", "204"),
        ("/no-head", "200"),
        ("/301/no-head", "200"),
    ],
)
def test_each_answer_of_a_server(server, path, answer):
    assert status(server, path) == answer


def test_get_is_used_only_after_405_and_does_not_read_the_page(server):
    start = time.perf_counter()
    assert status(server, "/no-head") == "200" and status(server, "/404") == "404"
    assert server.asked == [("HEAD", "/no-head"), ("GET", "/no-head"), ("HEAD", "/404")]
    assert time.perf_counter() - start < 5  # the page has 100 MB


@pytest.mark.parametrize("target", ["private", "metadata", "other-loopback"])
def test_a_redirect_to_a_private_address_is_refused(server, target):
    with mock.patch("tsteval.lexical.links._ask", side_effect=client._ask) as asked:
        assert status(server, f"/302/{target}") == "refused: not a public address"
    assert asked.call_count == 2 and server.asked == [("HEAD", f"/302/{target}")]


@pytest.mark.parametrize(
    "target, answer",
    [
        ("file", "refused: neither http nor https"),
        ("script", "refused: neither http nor https"),
        ("loop", "more than 5 redirects"),
        ("broken", "not an address"),
        ("far-too-long", "refused: longer than 2,048 characters"),
    ],
)
def test_other_redirects_that_lead_nowhere(server, target, answer):
    assert status(server, f"/302/{target}") == answer


def test_redirects_are_counted(server):
    assert len([path for _, path in server.asked]) == 0 and status(server, "/302/loop") == "more than 5 redirects"
    assert len(server.asked) == 6


@pytest.mark.parametrize("path", ["/slow/5", "/drip"])
def test_a_link_that_takes_too_long_is_given_up(server, path):
    start = time.perf_counter()
    assert status(server, path, LinkLimits(per_link=0.5, allow_private=HERE.allow_private)) == "timed out"
    assert time.perf_counter() - start < 3


def test_the_whole_call_is_bounded_and_says_what_it_left_out(server):
    text = " ".join(server.url(f"/slow/2?{number}") for number in range(20)) + " " + server.url("/200")
    limits = LinkLimits(total=0.7, at_once=2, allow_private=HERE.allow_private)
    start = time.perf_counter()
    with pytest.warns(UserWarning, match="links were not checked within 0.7 s"):
        assert link_validity([text], limits=limits).tolist() == [0]
    assert time.perf_counter() - start < 3


def test_one_request_for_an_address_however_often_it_occurs(server):
    texts = [f"see {server.url('/200')} and {server.url('/200#part')}"] * 5000
    assert (link_validity(texts, limits=HERE) == 1).all()
    assert server.asked == [("HEAD", "/200")]


@pytest.mark.slow
def test_many_links_at_once_in_bounded_time_and_number(server):
    links = [server.url(f"/slow/0.1?{number}") for number in range(200)]
    start = time.perf_counter()
    answers = check_links(links, limits=HERE)
    assert time.perf_counter() - start < 10 and set(answers.values()) == {"200"} and list(answers) == links
    # the server may still be closing a request that the client already has its answer to, so twice the number is let
    # pass
    assert len(server.asked) == 200 and 2 <= server.most_open <= 2 * HERE.at_once


def test_no_credentials_cookies_or_proxies_are_used(server, monkeypatch, tmp_path):
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password secret")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    link = server.url("/302/200").replace("http://", "http://name:secret@")
    TARGETS["with-user"] = server.url("/200").replace("http://", "http://name:secret@")
    assert check_links([link, server.url("/302/with-user")], limits=HERE) == {
        link: "200",
        server.url("/302/with-user"): "200",
    }
    assert len(server.headers_seen) == 4
    for headers in server.headers_seen:
        assert (
            set(headers) == {"host", "user-agent", "accept"} and headers["host"] == f"127.0.0.1:{server.server_port}"
        )


def test_certificates(server, tmp_path, monkeypatch):
    trustme = pytest.importorskip("trustme")
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    links = [f"https://localhost:{server.server_port}/200", f"https://127.0.0.1:{server.server_port}/200"]
    limits = LinkLimits(allow_private=("127.0.0.1/32", "::1/128"))
    assert set(check_links(links, limits=limits).values()) == {"certificate not accepted"}
    authority.cert_pem.write_to_path(tmp_path / "authority.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    # connected by address, but the name in the link is the one that the certificate is checked against
    assert check_links(links, limits=limits) == {links[0]: "200", links[1]: "certificate not accepted"}


def test_a_name_is_resolved_once_and_the_connection_goes_to_the_address_that_was_checked(server):
    """A name server that changes its answer after the check must not change where we connect."""
    answers = iter([[(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 80))]])
    with mock.patch("socket.getaddrinfo", side_effect=lambda *a, **k: next(answers)) as looked_up:
        link = f"http://rebinding.example:{server.server_port}/200"
        assert check_links([link], limits=HERE) == {link: "200"}
    assert looked_up.call_count == 1 and server.headers_seen[0]["host"] == f"rebinding.example:{server.server_port}"


@pytest.mark.parametrize("addresses", [["10.0.0.1"], ["93.184.215.14", "10.0.0.1"], ["::ffff:10.0.0.1"]])
def test_a_public_name_with_a_private_address_is_refused(addresses):
    found = [(0, socket.SOCK_STREAM, 6, "", (address, 80)) for address in addresses]
    with mock.patch("socket.getaddrinfo", return_value=found):
        assert check_links(["http://inside.example/"]) == {"http://inside.example/": "refused: not a public address"}


def test_a_second_address_is_tried_where_the_first_cannot_be_reached(server):
    found = [(0, socket.SOCK_STREAM, 6, "", (address, 80)) for address in ("127.0.0.9", "127.0.0.1")]
    link = f"http://two.example:{server.server_port}/200"
    with mock.patch("socket.getaddrinfo", return_value=found):
        assert check_links([link], limits=LinkLimits(allow_private=("127.0.0.0/8",))) == {link: "200"}


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "0", "[::1]", "[::ffff:127.0.0.1]", "127.1"]
)
def test_loopback_is_refused_however_it_is_written(server, host):
    link = f"http://{host}:{server.server_port}/200"
    assert check_links([link])[link] in ("refused: not a public address", "unknown host", "not an address")
    assert not server.asked


@pytest.mark.parametrize(
    "address",
    [
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "127.9.9.9",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "255.255.255.255",
        "224.0.0.1",
        "240.0.0.1",
        "192.0.2.1",
        "::",
        "::1",
        "fe80::1",
        "fc00::1",
        "ff02::1",
        "::ffff:10.0.0.1",
        "64:ff9b::a00:1",
        "2002:a00:1::",
        "2001:db8::1",
        "fe80::1%1",
    ],
)
def test_addresses_that_are_not_public(address):
    assert not is_public_address(address)


@pytest.mark.parametrize("address", ["8.8.8.8", "93.184.215.14", "2606:2800:21f:cb07::1", "::ffff:8.8.8.8"])
def test_addresses_that_are_public(address):
    assert is_public_address(address)


def test_a_silent_name_server_does_not_hold_the_call_up():
    release = threading.Event()
    with mock.patch("socket.getaddrinfo", side_effect=lambda *a, **k: release.wait(20) and []):
        start = time.perf_counter()
        links = [f"http://host{number}.example/" for number in range(30)]
        answers = check_links(links, limits=LinkLimits(per_link=0.3, total=1.0))
        took = time.perf_counter() - start  # a busy machine may take seconds; the name server is silent for 20
        release.set()
    assert took < 15 and set(answers.values()) <= {"timed out", client.OUT_OF_TIME}


def test_an_interrupt_is_obeyed_while_links_are_slow():
    code = ("import signal, socket, sys, time\nfrom tsteval.lexical.links import check_links\n"
            "signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it\n"
            "def silent(*a, **k):\n    print('asked', flush=True)\n    time.sleep(60)\nsocket.getaddrinfo = silent\n"
            "check_links(['http://host.example/'])")
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "asked\n"
    child.send_signal(signal.SIGINT)
    _, told = child.communicate(timeout=40)  # the server's silence is sixty seconds
    assert "KeyboardInterrupt" in told


def test_it_works_inside_a_running_event_loop(server):
    async def cell():
        return link_validity([server.url("/200")], limits=HERE)

    assert asyncio.run(cell()).tolist() == [1]


@pytest.mark.parametrize(
    "text, valid",
    [
        ("javascript:alert(1)", 0),
        ("file:///etc/passwd", 0),
        ("data:text/html,<b>", 0),
        ("http://" + "x" * 10_000, 0),
        ("http://a.invalid/" + "y" * 10_000, 0),
        ("http://[", 0),
        ("http://:0/", 0),
        ("http://%00/", 0),
        ("http://a:99999999/", 0),
        ("ftp://a.example/", 0),
        ("http://ü.invalid", 0),
        ("no link", 1),
        ("", 1),
        ("http://", 1),
        ("javascript: is", 1),
    ],
)
def test_hostile_links_break_nothing(text, valid):
    with mock.patch("socket.getaddrinfo", side_effect=socket.gaierror):
        assert link_validity([text]).tolist() == [valid]


def test_ports_that_no_machine_has():
    links = ["http://127.0.0.1:99999/", "http://a.example:" + "9" * 23]
    assert set(check_links(links).values()) == {"not an address"}


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.one_of(st.text(), st.text().map("http://".__add__), st.text(string.printable).map("https://".__add__)),
        max_size=4,
    )
)
@pytest.mark.slow
def test_no_text_breaks_the_link_check(texts):
    with mock.patch("socket.getaddrinfo", side_effect=socket.gaierror):
        values = link_validity(texts)
    assert values.shape == (len(texts),) and ((values >= 0) & (values <= 1)).all()
    assert all((value == 1) == (not find_links(text)) for value, text in zip(values, tokenizable(texts)))


@pytest.mark.parametrize(
    "text, links",
    [
        ("(see http://a.example/b_(c)).", ["http://a.example/b_(c)"]),
        ("[x](https://a.example/y)!", ["https://a.example/y"]),
        ("WWW.A.example, HTTP://B.example;", ["WWW.A.example", "HTTP://B.example"]),
        ("me@www.a.example", []),
        ('<a href="http://a.example/">', ["http://a.example/"]),
        ("http://a.example...", ["http://a.example"]),
        ("[https://a.example](https://a.example)", ["https://a.example", "https://a.example"]),
        ("[x](http://a.example)[y](http://b.example)", ["http://a.example", "http://b.example"]),
        ("`http://a.example/`", ["http://a.example/"]),
    ],
)
def test_links_in_running_text(text, links):
    assert find_links(text) == links


def test_long_runs_of_brackets_stay_fast():
    start = time.perf_counter()
    find_links("http://a.example/" + ")" * 100_000 + "." * 20_000)
    find_links("http://a.example/" + "(" * 100_000)
    assert time.perf_counter() - start < 2


# readability


@pytest.mark.parametrize("counts, value", [((9, 2, 9), 117.6675), ((1, 1, 3), -47.98), ((1, 1, 1), 121.22)])
def test_flesch_by_hand(counts, value):
    assert math.isclose(flesch_reading_ease(*counts)[0], value, abs_tol=1e-9)


def test_flesch_without_words_is_undefined_and_bad_counts_are_refused():
    assert np.isnan(flesch_reading_ease([0], [0], [0])[0])
    with pytest.raises(ValueError, match=r"row 1.*: there are words but no sentence"):
        flesch_reading_ease([1, 2], [1, 0], [1, 2])
    with pytest.raises(ValueError, match=r"row 0.* at least 0"):
        flesch_reading_ease([-1], [1], [1])


@given(st.integers(1, 500), st.integers(1, 50), st.integers(0, 1000))
def test_flesch_stays_below_its_upper_end_and_falls_with_length(words, sentences, more):
    value = flesch_reading_ease(words, sentences, words + more)[0]
    assert value < 206.835 and flesch_reading_ease(words, sentences, words + more + 1)[0] < value


def test_flesch_equals_textstat_given_its_counts():
    textstat = pytest.importorskip("textstat")
    texts = [
        "The cat sat on the mat. It was warm.",
        "Notwithstanding considerable opposition, parliament ratified it.",
        "Go!",
        "A well-known author wrote 12 books; none of them sold. Why? Nobody could say so for certain.",
    ]
    with (
        mock.patch("nltk.download"),
        mock.patch("textstat.backend.counts._count_syllables.get_cmudict", return_value=None),
    ):
        for text in texts:
            counts = textstat.lexicon_count(text), textstat.sentence_count(text), textstat.syllable_count(text)
            assert abs(flesch_reading_ease(*counts)[0] - textstat.flesch_reading_ease(text)) < 0.01


@pytest.mark.parametrize(
    "text, words, sentences",
    [
        ("", 0, 0),
        ("?!", 0, 0),
        ("One", 1, 1),
        ("Dr. J. R. Smith came, e.g., at 5 p.m. today. He left!", 12, 2),
        ('He said "no." She left.', 5, 2),
        ("It costs 1,250.50 in all", 5, 1),
        ("Wait... what?! No…", 3, 3),
        ("don't re-open", 2, 1),
    ],
)
def test_words_and_sentences(text, words, sentences):
    assert reading_counts([text], "rule")[0, :2].tolist() == [words, sentences]


@pytest.mark.parametrize(
    "word, count",
    [
        ("cat", 1),
        ("the", 1),
        ("wanted", 2),
        ("walked", 1),
        ("table", 2),
        ("tables", 2),
        ("metre", 2),
        ("boxes", 2),
        ("science", 2),
        ("reading", 2),
        ("being", 2),
        ("nation", 2),
        ("create", 2),
        ("1963", 4),
        ("rhythm", 1),
        ("hmm", 1),
        ("日本", 1),
    ],
)
def test_syllables_by_rule(word, count):
    assert syllables_by_rule(word) == count


def test_the_way_of_counting_syllables_is_named_and_never_silently_another():
    assert syllable_source("rule") == "rule"
    with mock.patch.object(english, "pronunciations", return_value={}):
        assert syllable_source("auto") == "rule"
        with pytest.raises(AssetError, match="CMUdict"):
            readability(["a"], syllables="cmudict")
    with pytest.raises(ValueError, match="one of auto, cmudict, rule"):
        readability(["a"], syllables="guess")


def test_cmudict_is_used_where_it_is_present():
    if not pronunciations():
        pytest.skip("needs CMUdict: nltk.download('cmudict') and NLTK_DATA set to its folder")
    assert syllable_source() == "cmudict"
    assert reading_counts(["people fire idea", "the people's judge's"], "cmudict")[:, 2].tolist() == [7, 5]
    agree = [syllables_by_rule(word) == count for word, count in pronunciations().items() if word.isalpha()]
    assert np.mean(agree) > 0.9


@settings(deadline=None)
@given(st.lists(st.text(), max_size=5))
def test_readability_of_anything(texts):
    values = readability(texts, syllables="rule")
    assert values.shape == (len(texts),) and not (values >= 206.835).any() and not np.isinf(values).any()


def test_bad_rows_are_named():
    for function in (readability, link_validity):
        with pytest.raises(TypeError, match="row 1"):
            function(["fine", None])
        with pytest.raises(TypeError, match="list of strings"):
            function("one text")




# as metrics


def test_metrics_say_what_they_need_and_sign_what_they_did(server):
    table = pd.DataFrame({"output": [f"see {server.url('/200')} or {server.url('/404')}", "no link"]})
    metric = find_metric("link_validity")
    scores = metric.score(table, Models(), limits=HERE)
    assert metric.needs == ("output",) and scores.frame.link_validity.tolist() == [0.5, 1]
    assert "127.0.0.1/32" in scores.signature
    assert scores.signature != metric.score(table.tail(1), Models()).signature
    read = find_metric("readability")
    by_rule, auto = (read.score(table, Models(), syllables=way).signature for way in ("rule", "auto"))
    assert "syllables:rule" in by_rule and (by_rule == auto) == (syllable_source() == "rule")
    with pytest.raises(InputError, match="auto, cmudict, rule"):
        read.check_options(table, {"syllables": "guess"})
