"""Chapter 20: links against a server on loopback, and readability."""

import asyncio
import math
import socket
import string
import time
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.words.link_server import HERE, Server
from tsteval.core.checks import InputError, tokenizable
from tsteval.models.roles import Models
from tsteval.surface import (
    LinkValidity,
    Readability,
    find_links,
    flesch_reading_ease,
    link_validity,
    readability,
    reading_counts,
)
from tsteval.words.english import has_words, syllable_source
from tsteval.words.links import check_links


@pytest.fixture
def server():
    running = Server()
    yield running
    running.shutdown()
    running.server_close()


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
        ("no link: http://", 1),
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
        st.one_of(
            st.text(),
            st.text().map("http://".__add__),
            st.text(string.printable).map("https://".__add__),
        ),
        max_size=4,
    )
)
def test_no_text_breaks_the_link_check(texts):
    with mock.patch("socket.getaddrinfo", side_effect=socket.gaierror):
        values = link_validity(texts)
    worded = has_words(texts)
    assert values.shape == (len(texts),) and (np.isnan(values) == ~worded).all()
    assert ((values[worded] >= 0) & (values[worded] <= 1)).all()
    read = [text for text, words in zip(tokenizable(texts), worded) if words]
    assert all((value == 1) == (not find_links(text)) for value, text in zip(values[worded], read))


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


@pytest.mark.parametrize(
    "counts, value", [((9, 2, 9), 117.6675), ((1, 1, 3), -47.98), ((1, 1, 1), 121.22)]
)
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
            counts = (
                textstat.lexicon_count(text),
                textstat.sentence_count(text),
                textstat.syllable_count(text),
            )
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


@settings(deadline=None)
@given(st.lists(st.text(), max_size=5))
def test_readability_of_anything(texts):
    values = readability(texts, syllables="rule")
    assert (
        values.shape == (len(texts),)
        and not (values >= 206.835).any()
        and not np.isinf(values).any()
    )


@pytest.mark.parametrize(
    "text, defined",
    [
        ("Сегодня шёл дождь. Мы остались дома.", False),  # once 118
        ("今天下雨。", False),
        ("В 1963 году", False),
        ("Он сказал OK", True),
        ("1963", True),
    ],
)
def test_a_text_in_another_script_has_no_reading_ease(text, defined):
    assert np.isfinite(readability([text], syllables="rule")[0]) == defined


@given(st.text())
def test_reading_ease_needs_a_letter_of_english_where_there_are_letters(text):
    other = any(map(str.isalpha, text)) and not any(
        one in string.ascii_lowercase for one in text.lower()
    )
    assert not other or np.isnan(readability([text], syllables="rule")[0])


def test_bad_rows_are_named():
    for function in (readability, link_validity):
        with pytest.raises(TypeError, match="row 1"):
            function(["fine", None])
        with pytest.raises(TypeError, match="list of strings"):
            function("one text")


# as metrics


def test_metrics_say_what_they_need_and_sign_what_they_did(server):
    table = pd.DataFrame(
        {"output": [f"see {server.url('/200')} or {server.url('/404')}", "no link"]}
    )
    metric = LinkValidity(limits=HERE)
    scores = metric.score(table, Models())
    assert metric.needs == ("output",) and scores.frame.link_validity.tolist() == [0.5, 1]
    assert "127.0.0.1/32" in metric.sign(table)
    assert metric.sign(table) != LinkValidity().sign(table)
    by_rule, auto = (Readability(way).sign(table) for way in ("rule", "auto"))
    assert "syllables:rule" in by_rule and (by_rule == auto) == (syllable_source() == "rule")
    with pytest.raises(InputError, match="auto, cmudict, rule"):
        Readability(syllables="guess")
