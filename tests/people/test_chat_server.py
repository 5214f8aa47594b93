"""A chat model at an address: what it says, and what is made of servers that are busy, broken or
hostile."""

import json
import math
import pickle
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.chat_server import chat_server, reply
from tsteval.core.checks import InputError
from tsteval.people import chat_server as served_chat
from tsteval.people.chat import LocalChat
from tsteval.people.chat_server import KEY_VARIABLE, Probe, ServedChat, _begins_with, load_chat

SECRET = "sk-very-secret-0123456789"
LISTED = {"4": math.log(0.5), " 5": math.log(0.25), "The": math.log(0.125)}


@pytest.fixture(autouse=True)
def no_key(monkeypatch):
    monkeypatch.delenv(KEY_VARIABLE, raising=False)


@pytest.fixture
def waits(monkeypatch):
    """The pauses that were asked for; nobody waits."""
    found = []
    monkeypatch.setattr(served_chat.time, "sleep", found.append)
    return found


def answers(address, prompts=("How good?",), labels="12345", **options):
    served = ServedChat(address, "any", **options)
    return served, [
        answer for _, answer in sorted(served.ask(list(prompts), labels), key=lambda one: one[0])
    ]


def test_log_probabilities_are_read_where_they_come():
    with chat_server(lambda body, number: reply("4", LISTED)) as (address, seen):
        served, [answer] = answers(address)
        assert served.probe == Probe("served-1", 20) and np.allclose(
            answer.shares, [0, 0, 0, 0.5, 0.25]
        )
        assert (
            answer.tokens == 10
            and answer.reason == ""
            and served.tag == "served+20-likeliest+served-1"
        )
        assert (
            len(seen.bodies) == 2
            and seen.bodies[1]["max_tokens"] == 1
            and seen.bodies[1]["temperature"] == 1
        )
        assert seen.bodies[0]["model"] == "any"


def test_a_server_that_lists_five_tokens_at_most_is_asked_for_five():
    def answer(body, number):
        return (
            (400, {}, {"error": "top_logprobs"})
            if body.get("top_logprobs", 0) > 5
            else reply("4", LISTED)
        )

    with chat_server(answer) as (address, _):
        served, [found] = answers(address)
        assert served.probe.listed == 5 and found.shares[3] == pytest.approx(0.5)


def test_where_log_probabilities_are_ignored_answers_are_drawn():
    said = iter(["4", "4/5", "I would say 4", "4.5", "**5**"])
    with chat_server(lambda body, number: reply("1" if number == 0 else next(said))) as (
        address,
        seen,
    ):
        served, [answer] = answers(address, samples=5, at_once=1)
        assert served.probe.listed == 0 and "5-samples" in served.tag
        assert np.allclose(answer.shares, [0, 0, 0, 0.4, 0.2]) and answer.tokens == 50
        assert [body["seed"] for body in seen.bodies[1:]] == [0, 1, 2, 3, 4]
        assert not any("logprobs" in body for body in seen.bodies[1:])


@pytest.mark.parametrize(
    "text, point",
    [
        ("1-5 scale: 4", None),  # once 1
        ("1 – 5, and here 4", None),
        ("1 to 5: 4", None),
        ("4 or 5", None),
        ("4-star", 4),
        ("4 - mostly", 4),
        ("4/5", 4),
        ("4: mostly", 4),
    ],
)
def test_a_range_is_no_answer(text, point):
    number = _begins_with(reply(text), "12345")
    assert (None if number is None else number + 1) == point


@given(st.integers(0, 9), st.integers(0, 9), st.sampled_from(["-", " - ", "–", " to ", " and "]))
def test_no_range_is_an_answer(low, high, between):
    assert _begins_with(reply(f"{low}{between}{high}: {high}"), "0123456789") is None


def test_busy_and_broken_servers_are_asked_again_as_they_wish(waits):
    script = {
        1: (429, {"Retry-After": "7"}, b"busy"),
        2: (503, {}, b""),
        3: (500, {"Retry-After": "soon"}, b""),
    }
    with chat_server(lambda body, number: script.get(number, reply("4", LISTED))) as (
        address,
        seen,
    ):
        _, [answer] = answers(address)
        assert answer.reason == "" and waits == [7, 2, 4] and len(seen.bodies) == 5


def test_what_stays_broken_becomes_a_reason_after_five_tries(waits):
    with chat_server(
        lambda body, number: (500, {}, b"out of memory") if number else reply("4", LISTED)
    ) as (address, seen):
        _, [answer] = answers(address)
        assert answer.shares is None and answer.reason == "the server answered 500: out of memory"
        assert waits == [1, 2, 4, 8] and len(seen.bodies) == 6


@pytest.mark.parametrize("status", [400, 401, 404, 413, 422])
def test_a_refusal_is_not_asked_again(waits, status):
    with chat_server(
        lambda body, number: (status, {}, b"no") if number else reply("4", LISTED)
    ) as (address, seen):
        _, [answer] = answers(address)
        assert str(status) in answer.reason and len(seen.bodies) == 2 and waits == []


def test_nobody_waits_an_hour(waits):
    with chat_server(
        lambda body, number: (429, {"Retry-After": "3600"}, b"") if number else reply("4", LISTED)
    ) as (address, _):
        assert "429" in answers(address)[1][0].reason and waits == []


def test_dates_and_nonsense_after_retry_after():
    from email.utils import formatdate

    assert 25 < served_chat._pause(formatdate(time.time() + 30, usegmt=True), 0) < 31
    assert (
        served_chat._pause("Thu, 01 Jan 1970 00:00:00 GMT", 0) == 0
        and served_chat._pause("-5", 0) == 0
    )
    assert [
        served_chat._pause(asked, 3) for asked in (None, "", "nan", "inf", "x" * 99, "1e400")
    ] == [8] * 6


HOSTILE = {
    "cut off": json.dumps(reply("4", LISTED)).encode()[:-20],
    "no JSON": b"<html>502</html>",
    "empty": b"",
    "a list": b"[1]",
    "a number": b"4",
    "nested": b"[" * 100_000,
    "not UTF-8": b'{"choices": "\xff\xfe"}',
    "long": b'{"x": "' + b"a" * 2_000_000 + b'"}',
    "no choices": b"{}",
    "choices are none": b'{"choices": null}',
    "a long number": b'{"choices": ' + b"9" * 10_000 + b"}",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_an_answer_that_cannot_be_read_is_a_reason(name):
    with chat_server(lambda body, number: HOSTILE[name] if number else reply("4", LISTED)) as (
        address,
        _,
    ):
        _, [answer] = answers(address)
        assert answer.shares is None and answer.reason


NO_LOGS = [
    {"4": math.nan},
    {"4": 0.5},
    {"4": 1e308},
    {"4": 0.0, "5": 0.0},
    {"4": "x"},
    {"4": None},
    {},
    {"4": True},
]


@pytest.mark.parametrize("listed", NO_LOGS, ids=map(str, NO_LOGS))
def test_numbers_that_are_no_log_probabilities_are_not_repaired(listed):
    with chat_server(lambda body, number: reply("4", listed if number else LISTED)) as (address, _):
        _, [answer] = answers(address)
        assert answer.shares is None and "did not come" in answer.reason


def test_a_token_without_probability_is_no_fault():
    with chat_server(lambda body, number: reply("4", {"4": -0.1, "5": -math.inf})) as (address, _):
        assert answers(address)[1][0].shares[4] == 0


def test_a_server_that_breaks_off_is_a_reason_and_one_that_is_not_there_is_refused():
    with chat_server(
        lambda body, number: (
            (200, {"Content-Length": "999"}, b"{") if number else reply("4", LISTED)
        )
    ) as (address, _):
        assert "no answer" in answers(address)[1][0].reason
    with pytest.raises(InputError, match=r"cannot be asked: no answer.*`tsteval judge serve`"):
        _ = ServedChat(address, "any").probe


def test_an_answer_that_drips_ends_at_the_deadline(monkeypatch):
    monkeypatch.setattr(served_chat, "_DEADLINE", 0.0)
    with (
        chat_server(lambda body, number: reply("4", LISTED), slow=0.01) as (address, _),
        pytest.raises(InputError, match="cannot be asked"),
    ):
        _ = ServedChat(address, "any").probe


def test_no_more_requests_at_once_than_wanted():
    with chat_server(lambda body, number: reply("4", LISTED), slow=0.02) as (address, seen):
        _, found = answers(address, [f"How good is {number}?" for number in range(12)], at_once=3)
        assert len(found) == 12 and 1 < seen.most <= 3


def test_whoever_stops_listening_stops_asking():
    with chat_server(lambda body, number: reply("4", LISTED), slow=0.02) as (address, seen):
        asking = ServedChat(address, "any", at_once=1).ask(
            [str(number) for number in range(50)], "12345"
        )
        next(asking)
        asking.close()
        assert len(seen.bodies) < 10


def test_the_model_is_named_where_there_is_a_choice():
    with chat_server(lambda body, number: reply("4", LISTED), models=("a", "b")) as (address, _):
        with pytest.raises(InputError, match=r"model: name the model .* among a, b"):
            _ = ServedChat(address).probe
        assert ServedChat(address, "b").probe.model == "served-1"
    with chat_server(lambda body, number: reply("4", LISTED, model=None), models=("a",)) as (
        address,
        seen,
    ):
        assert ServedChat(address).name == "a" and seen.bodies[0]["model"] == "a"
    with (
        chat_server(lambda body, number: reply(), models=()) as (address, _),
        pytest.raises(InputError, match="name the model"),
    ):
        _ = ServedChat(address).probe


@pytest.mark.parametrize(
    "address",
    [
        "ftp://a/v1",
        "http://",
        "127.0.0.1:8000",
        "https://a/v1?key=1",
        "http://u:p@a/v1",
        "http://a b",
        7,
    ],
)
def test_what_is_no_address_is_refused(address):
    with pytest.raises(InputError, match="address"):
        ServedChat(address)


def test_settings_out_of_range_are_refused():
    for wrong in ({"samples": 0}, {"at_once": 0}, {"at_once": 1.5}):
        with pytest.raises(InputError):
            ServedChat("http://127.0.0.1:1/v1", **wrong)
    with pytest.raises(InputError, match="model"):
        load_chat("SmolLM2-135M-Instruct", "other")


def test_tokens_are_counted_without_asking():
    served = load_chat("http://127.0.0.1:1/v1")
    assert (
        isinstance(served, ServedChat)
        and served.count(["The old mill.", ""])[0] >= 3
        and served.count([]).size == 0
    )


# ---- the key


def test_the_key_is_sent_and_shows_nowhere(monkeypatch):
    monkeypatch.setenv(KEY_VARIABLE, SECRET)
    echo = f"your key {SECRET} is wrong".encode()
    with chat_server(
        lambda body, number: (401, {}, echo) if number else reply("4", LISTED, model=SECRET)
    ) as (address, seen):
        served, [answer] = answers(address)
        assert seen.headers[0]["Authorization"] == f"Bearer {SECRET}"
        shown = [
            repr(served),
            str(vars(served)),
            served.tag,
            answer.reason,
            str(pickle.dumps(served)),
        ]
        assert (
            not any(SECRET in text for text in shown)
            and "***" in answer.reason
            and "***" in served.tag
        )


def test_no_error_holds_the_key(monkeypatch):
    monkeypatch.setenv(KEY_VARIABLE, SECRET)
    padded = b" " * 1990 + SECRET.encode() * 3
    with (
        chat_server(lambda body, number: (403, {}, padded)) as (address, _),
        pytest.raises(InputError) as caught,
    ):
        _ = ServedChat(address, "any").probe
    found = caught.value
    told = []
    while found is not None:
        told.append(repr(found) + str(found))
        found = found.__cause__ or (None if found.__suppress_context__ else found.__context__)
    assert not any("sk-very" in text for text in told)


def test_a_key_that_cannot_be_sent_is_refused_without_being_shown(monkeypatch):
    monkeypatch.setenv(KEY_VARIABLE, f"{SECRET}\nX-Other: 1")
    with chat_server(lambda body, number: reply("4", LISTED)) as (address, _):
        with pytest.raises(InputError, match=KEY_VARIABLE) as caught:
            _ = ServedChat(address, "any").probe
        assert SECRET not in str(caught.value)


def test_no_key_leaves_in_plain_text_or_follows_a_redirect(monkeypatch):
    monkeypatch.setenv(KEY_VARIABLE, SECRET)
    with pytest.raises(InputError, match="plain text"):
        ServedChat("http://example.org/v1", "any")
    ServedChat("https://example.org/v1", "any")
    with (
        chat_server(lambda body, number: reply("4", LISTED)) as (other, elsewhere),
        chat_server(lambda body, number: (307, {"Location": f"{other}/chat/completions"}, b"")) as (
            address,
            _,
        ),
    ):
        with pytest.raises(InputError, match="307"):
            _ = ServedChat(address, "any").probe
        assert elsewhere.bodies == []


# ---- real servers


def test_llama_cpp_gives_what_the_model_gives_in_the_process(llama_server, language_model):
    prompts = [
        "Is snow white? Answer with one digit from 1 to 5.",
        "Rate the text 'Thank you, sir.' from 1 to 5.",
    ]
    served, found = answers(llama_server, prompts)
    assert served.probe.listed == 20
    for place, local in LocalChat(language_model).ask(prompts, "12345"):
        assert found[place].reason == ""
        seen = found[place].shares > 0  # of the twenty likeliest
        assert seen.any() and np.allclose(found[place].shares[seen], local.shares[seen], atol=0.03)
        assert abs(found[place].tokens - local.tokens) <= 3


@pytest.mark.ci
def test_transformers_serve_ignores_log_probabilities_and_answers_are_drawn(transformers_server):
    address, model = transformers_server
    served = ServedChat(address, model, samples=2, at_once=1)
    [(_, answer)] = served.ask(["Answer with the digit 3."], "12345")
    assert served.probe.listed == 0 and answer.reason == "" and answer.tokens > 0
    assert set(np.unique(answer.shares)) <= {0, 0.5, 1}
