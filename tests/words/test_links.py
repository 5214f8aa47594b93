"""Links: what a server answers, what is refused, and what is bounded."""

import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from unittest import mock

import pytest

from tests.words.link_server import HERE, TARGETS, Server
from tsteval.surface import link_validity
from tsteval.words import links as client
from tsteval.words.links import LinkLimits, check_links, is_public_address


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
    with mock.patch("tsteval.words.links._ask", side_effect=client._ask) as asked:
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
    assert (
        len([path for _, path in server.asked]) == 0
        and status(server, "/302/loop") == "more than 5 redirects"
    )
    assert len(server.asked) == 6


@pytest.mark.parametrize("path", ["/slow/5", "/drip"])
def test_a_link_that_takes_too_long_is_given_up(server, path):
    start = time.perf_counter()
    assert (
        status(server, path, LinkLimits(per_link=0.5, allow_private=HERE.allow_private))
        == "timed out"
    )
    assert time.perf_counter() - start < 4.5  # the server takes five seconds and more


def test_the_whole_call_is_bounded_and_says_what_it_left_out(server):
    text = (
        " ".join(server.url(f"/slow/2?{number}") for number in range(20)) + " " + server.url("/200")
    )
    limits = LinkLimits(total=0.7, at_once=2, allow_private=HERE.allow_private)
    start = time.perf_counter()
    with pytest.warns(UserWarning, match="links were not checked within 0.7 s"):
        assert link_validity([text], limits=limits).tolist() == [0]
    assert time.perf_counter() - start < 10  # all of them take twenty


def test_one_request_for_an_address_however_often_it_occurs(server):
    texts = [f"see {server.url('/200')} and {server.url('/200#part')}"] * 5000
    assert (link_validity(texts, limits=HERE) == 1).all()
    assert server.asked == [("HEAD", "/200")]


def test_many_links_at_once_in_bounded_time_and_number(server):
    links = [server.url(f"/slow/0.1?{number}") for number in range(200)]
    start = time.perf_counter()
    answers = check_links(links, limits=HERE)
    assert (
        time.perf_counter() - start < 15
        and set(answers.values()) == {"200"}
        and list(answers) == links
    )
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
            set(headers) == {"host", "user-agent", "accept"}
            and headers["host"] == f"127.0.0.1:{server.server_port}"
        )


def test_certificates(server, tmp_path, monkeypatch):
    trustme = pytest.importorskip("trustme")
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    links = [
        f"https://localhost:{server.server_port}/200",
        f"https://127.0.0.1:{server.server_port}/200",
    ]
    limits = LinkLimits(allow_private=("127.0.0.1/32", "::1/128"))
    assert set(check_links(links, limits=limits).values()) == {"certificate not accepted"}
    authority.cert_pem.write_to_path(tmp_path / "authority.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    # connected by address, but the name in the link is the one that the certificate is checked against
    assert check_links(links, limits=limits) == {
        links[0]: "200",
        links[1]: "certificate not accepted",
    }


def test_a_name_is_resolved_once_and_the_connection_goes_to_the_address_that_was_checked(server):
    """A name server that changes its answer after the check must not change where we connect."""
    answers = iter([[(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 80))]])
    with mock.patch("socket.getaddrinfo", side_effect=lambda *a, **k: next(answers)) as looked_up:
        link = f"http://rebinding.example:{server.server_port}/200"
        assert check_links([link], limits=HERE) == {link: "200"}
    assert (
        looked_up.call_count == 1
        and server.headers_seen[0]["host"] == f"rebinding.example:{server.server_port}"
    )


@pytest.mark.parametrize(
    "addresses", [["10.0.0.1"], ["93.184.215.14", "10.0.0.1"], ["::ffff:10.0.0.1"]]
)
def test_a_public_name_with_a_private_address_is_refused(addresses):
    found = [(0, socket.SOCK_STREAM, 6, "", (address, 80)) for address in addresses]
    with mock.patch("socket.getaddrinfo", return_value=found):
        assert check_links(["http://inside.example/"]) == {
            "http://inside.example/": "refused: not a public address"
        }


def test_a_second_address_is_tried_where_the_first_cannot_be_reached(server):
    found = [
        (0, socket.SOCK_STREAM, 6, "", (address, 80)) for address in ("127.0.0.9", "127.0.0.1")
    ]
    link = f"http://two.example:{server.server_port}/200"
    with mock.patch("socket.getaddrinfo", return_value=found):
        assert check_links([link], limits=LinkLimits(allow_private=("127.0.0.0/8",))) == {
            link: "200"
        }


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "0", "[::1]", "[::ffff:127.0.0.1]", "127.1"],
)
def test_loopback_is_refused_however_it_is_written(server, host):
    link = f"http://{host}:{server.server_port}/200"
    assert check_links([link])[link] in (
        "refused: not a public address",
        "unknown host",
        "not an address",
    )
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


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "93.184.215.14", "2606:2800:21f:cb07::1", "::ffff:8.8.8.8"]
)
def test_addresses_that_are_public(address):
    assert is_public_address(address)


def test_a_silent_name_server_does_not_hold_the_call_up():
    release = threading.Event()
    with mock.patch("socket.getaddrinfo", side_effect=lambda *a, **k: release.wait(20) and []):
        start = time.perf_counter()
        links = [f"http://host{number}.example/" for number in range(30)]
        answers = check_links(links, limits=LinkLimits(per_link=0.3, total=1.0))
        took = (
            time.perf_counter() - start
        )  # a busy machine may take seconds; the name server is silent for 20
        release.set()
    assert took < 15 and set(answers.values()) <= {"timed out", client.OUT_OF_TIME}


def test_an_interrupt_is_obeyed_while_links_are_slow():
    code = (
        "import signal, socket, sys, time\nfrom tsteval.words.links import check_links\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it\n"
        "def silent(*a, **k):\n    print('asked', flush=True)\n    time.sleep(60)\nsocket.getaddrinfo = silent\n"
        "check_links(['http://host.example/'])"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert child.stdout.readline() == "asked\n"
    child.send_signal(signal.SIGINT)
    _, told = child.communicate(timeout=40)  # the server's silence is sixty seconds
    assert "KeyboardInterrupt" in told
