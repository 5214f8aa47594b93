"""A server that speaks `/v1/chat/completions`: probed first, asked again where it is busy, read with care"""

import json
import math
import os
import re
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..core.checks import InputError, check_number, tokenizable
from ..core.display import displayable
from ..core.pretrained import locate_model
from ..models.causal_lm import CausalLM
from ..models.loading import read_tokenizer
from .chat import Answer, LocalChat

KEY_VARIABLE = "TSTEVAL_JUDGE_KEY"  # the environment variable that holds the key


class _Unanswered(Exception):
    """A request without a usable answer; the message says why."""


def _key() -> str:
    key = os.environ.get(KEY_VARIABLE, "").strip()
    if key and not re.fullmatch(r"[!-~]+", key):
        raise InputError(
            f"the environment variable {KEY_VARIABLE} holds characters that no key has; set it anew"
        )
    return key


def _without_key(text: str) -> str:
    """What a server said, as one short line without the key."""
    key = _key()
    clean = text.replace(key, "***") if key else text
    return displayable(" ".join(clean.split()))[:200]


_LOCAL = re.compile(r"localhost|127(\.\d+){3}|\[?::1\]?")


def _checked_address(address: str) -> str:
    """An address without its last slash. Raises: InputError for what is none, or must not be sent a key."""
    import httpx2

    try:
        url = httpx2.URL(address)
    except (httpx2.InvalidURL, TypeError, ValueError):
        url = None
    whole = (
        url is not None
        and url.scheme in ("http", "https")
        and url.host
        and not re.search(r"\s", address)
    )
    if not whole or url.query or url.fragment:
        raise InputError(
            f"must be that of an API, such as http://127.0.0.1:8000/v1; got {address!r:.100}",
            argument="address",
        )
    if url.userinfo:
        raise InputError(
            f"holds a user or a password; leave it out, and set a key in {KEY_VARIABLE}",
            argument="address",
        )
    if url.scheme == "http" and _key() and not _LOCAL.fullmatch(url.host):
        raise InputError(
            f"begins with http, so the key in {KEY_VARIABLE} would go out in plain text; use https, or "
            f"unset the key",
            argument="address",
        )
    return str(url).rstrip("/")


_MOST_BYTES = 1_000_000
_DEADLINE = 300.0  # of an answer; seconds for one
_TRIES = 5
_LONGEST_WAIT = 60.0  # of one request; seconds between two


def _exchange(client, method: str, url: str, body: dict | None = None) -> tuple[int, Any, bytes]:
    """Status, headers and content of an answer."""
    key = _key()
    begun = time.monotonic()
    parts = bytearray()
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    with client.stream(method, url, json=body, headers=headers) as response:
        for part in response.iter_bytes():
            parts += part
            if len(parts) > _MOST_BYTES:
                raise _Unanswered(f"the answer is longer than {_MOST_BYTES:,} bytes")
            if time.monotonic() - begun > _DEADLINE:
                raise _Unanswered(f"no whole answer within {_DEADLINE:g} seconds")
        return response.status_code, response.headers, bytes(parts)


def _pause(asked: str | None, turn: int) -> float:
    """Seconds to wait before the next try: what the server asks for, a number or a date, or 1, 2, 4 ..."""
    if asked is None:
        return float(2**turn)
    try:
        return max(0.0, float(asked)) if math.isfinite(float(asked)) else float(2**turn)
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(asked).timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return float(2**turn)


def _request(client, method: str, url: str, body: dict | None = None) -> dict:
    """The object that a server answers with. Raises: _Unanswered."""
    import httpx2

    for turn in range(_TRIES):
        try:
            status, headers, content = _exchange(client, method, url, body)
        except (httpx2.HTTPError, httpx2.StreamError) as error:
            raise _Unanswered(f"no answer from the server ({type(error).__name__})") from None
        if 200 <= status < 300:
            break
        message = (
            f"the server answered {status}: {_without_key(content.decode('utf-8', 'replace'))}"
        )
        wait = _pause(headers.get("retry-after"), turn)
        if (status != 429 and status < 500) or turn == _TRIES - 1 or wait > _LONGEST_WAIT:
            raise _Unanswered(message)
        time.sleep(wait)
    try:
        reply = json.loads(content)
    except (ValueError, RecursionError):
        raise _Unanswered("the answer is no JSON, perhaps cut off") from None
    if not isinstance(reply, dict):
        raise _Unanswered("the answer is no object of JSON")
    return reply


def _listed(reply: dict, labels: Sequence[str]) -> np.ndarray | None:
    """(L,) probability of each label among the likeliest first tokens; None: they are not given, or no such numbers."""
    try:
        logprobs = [
            (entry["token"].strip(), float(entry["logprob"]))
            for entry in reply["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
        ]
        shares = np.array([math.exp(logprob) for _, logprob in logprobs])
    except (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError):
        return None
    if not len(logprobs) or not shares.sum() <= 1.001:
        return None
    return np.array(
        [
            sum(share for (token, _), share in zip(logprobs, shares) if token == label)
            for label in labels
        ]
    )


_LABEL = re.compile(
    r"[\s\"'*(\[]*(\w)"
    r"(?!\w|[.,]\d|\s*[-‐‑–—−~]\s*\d|\s+(?:to|through|and|or)\s+\d)"  # a range or a choice is no answer
)


def _begins_with(reply: dict, labels: Sequence[str]) -> int | None:
    """The number of the label with which the text of an answer begins; None: it begins otherwise, or with a range such
    as "1-5", which repeats the scale."""
    try:
        text = reply["choices"][0]["message"]["content"]
    except (IndexError, KeyError, TypeError):
        return None
    match = _LABEL.match(text) if isinstance(text, str) else None
    return labels.index(match[1]) if match and match[1] in labels else None


def _tokens(reply: dict) -> int:
    """Tokens that an answer cost, as the server says."""
    usage = reply.get("usage")
    used = usage.get("total_tokens") if isinstance(usage, dict) else None
    return used if type(used) is int and 0 <= used < 2**53 else 0


def _named_model(reply: dict) -> str:
    """The model as the server names it; empty: it does not."""
    model = reply.get("model")
    return _without_key(model) if isinstance(model, str) else ""


@dataclass(frozen=True)
class Probe:
    """What a server's first answer shows."""

    model: str  # as the server names it
    listed: int  # first tokens whose log-probabilities come; 0: none


_OFFERS = (20, 5, 0)  # numbers of likeliest tokens that are asked for
_SAMPLE_TOKENS = 8  # written where an answer is drawn


class ServedChat:
    """A chat model at an address that speaks /v1/chat/completions."""

    def __init__(
        self,
        address: str,  # such as http://127.0.0.1:8000/v1
        model: str | None = None,  # as the server knows it; None: the only one that it has
        *,
        samples: int = 5,  # answers drawn where log-probabilities do not come
        at_once: int = 4,  # requests under way at the same time
    ):
        check_number(samples, "samples", 1, 100, whole=True)
        check_number(at_once, "at_once", 1, 64, whole=True)
        if model is not None:
            [model] = tokenizable([model], "model")  # a half of a surrogate pair cannot be sent
        self.address = _checked_address(address)
        self.model = model
        self.samples = samples
        self.at_once = at_once

    @property
    def name(self) -> str:
        """The model as the server names it."""
        return self.probe.model

    @property
    def tag(self) -> str:
        """Back end and model, for signatures."""
        way = f"{self.probe.listed}-likeliest" if self.probe.listed else f"{self.samples}-samples"
        return f"served+{way}+{self.probe.model}"

    @cached_property
    def probe(self) -> Probe:
        """What the server gives, asked once. Raises: InputError if it cannot be reached or refuses."""
        with self._client() as client:
            try:
                self.model = self.model or self._only_model(client)
                for offer in _OFFERS:
                    try:
                        reply = self._post(
                            client, "Answer with the digit 1 and nothing else.", offer
                        )
                    except _Unanswered:
                        if not offer:
                            raise
                    else:
                        break
            except _Unanswered as error:
                start = "; if it is not running, `tsteval judge serve` starts one and says where"
                raise InputError(
                    f"the judge at {self.address} cannot be asked: {error}"
                    f"{start * str(error).startswith('no answer')}"
                ) from None
        return Probe(
            _named_model(reply) or self.model, offer if _listed(reply, "1") is not None else 0
        )

    def count(
        self,
        prompts: Sequence[str],  # N
    ) -> np.ndarray:  # (N,) tokens that are read for each, as the embedded model's tokenizer counts
        """About as many tokens as an answer costs; the server is not asked."""
        default = CausalLM.default_name
        tokenizer = read_tokenizer(locate_model(default, default), default)
        options = {"add_special_tokens": False, "return_attention_mask": False, "verbose": False}
        return np.array(
            [len(ids) for ids in tokenizer([*prompts], **options)["input_ids"]] if prompts else [],
            int,
        )

    def ask(
        self,
        prompts: Sequence[str],  # N
        labels: Sequence[str],  # L, each one character
    ) -> Iterator[tuple[int, Answer]]:  # the number of a prompt and its answer, as they come
        """The probability of each label as the first token of an answer, or its share of the answers drawn."""
        answered = self._listed_answer if self.probe.listed else self._drawn_answer
        # sorted, since a server reads what a prompt shares with the one before it only once
        order = sorted(range(len(prompts)), key=prompts.__getitem__)
        with self._client() as client, ThreadPoolExecutor(self.at_once) as pool:
            jobs = {pool.submit(answered, client, prompts[place], labels): place for place in order}
            try:
                for job in as_completed(jobs):
                    yield jobs[job], job.result()
            finally:
                for job in jobs:
                    job.cancel()

    def _listed_answer(self, client, prompt: str, labels: Sequence[str]) -> Answer:
        try:
            reply = self._answer(client, prompt, self.probe.listed)
        except _Unanswered as error:
            return Answer(reason=str(error))
        if (shares := _listed(reply, labels)) is None:
            return Answer(
                tokens=_tokens(reply), reason="the log-probabilities did not come this time"
            )
        return Answer(shares, _tokens(reply))

    def _drawn_answer(self, client, prompt: str, labels: Sequence[str]) -> Answer:
        shares = np.zeros(len(labels))
        tokens = 0
        for draw in range(self.samples):
            try:
                reply = self._answer(client, prompt, 0, seed=draw)
            except _Unanswered as error:
                return Answer(tokens=tokens, reason=str(error))
            tokens += _tokens(reply)
            if (number := _begins_with(reply, labels)) is not None:
                shares[number] += 1 / self.samples
        return Answer(shares, tokens)

    def _answer(self, client, prompt: str, listed: int, **more) -> dict:
        """The answer of the model that was probed. Raises: _Unanswered, also if another one answers."""
        reply = self._post(client, prompt, listed, **more)
        model = _named_model(reply)
        if model and model != self.probe.model:
            raise _Unanswered(f"the model {model} answered, and {self.probe.model} before")
        return reply

    def _post(self, client, prompt: str, listed: int, **more) -> dict:
        body = {
            "model": self.model,
            "messages": [{"role": "user", "content": prompt}],
            "temperature": 1,
            **more,
        }
        body |= (
            {"max_tokens": 1, "logprobs": True, "top_logprobs": listed}
            if listed
            else {"max_tokens": _SAMPLE_TOKENS}
        )
        return _request(client, "POST", f"{self.address}/chat/completions", body)

    def _only_model(self, client) -> str:
        models = _request(client, "GET", f"{self.address}/models").get("data")
        names = (
            [
                entry["id"]
                for entry in models
                if isinstance(entry, dict) and isinstance(entry.get("id"), str)
            ]
            if isinstance(models, list)
            else []
        )
        if len(names) != 1:
            listed = f" among {_without_key(', '.join(names[:8]))}" if names else ""
            raise InputError(
                f"name the model that {self.address} should answer with{listed}", argument="model"
            )
        return names[0]

    def _client(self):
        import httpx2

        outside = not _LOCAL.fullmatch(httpx2.URL(self.address).host)
        return httpx2.Client(
            timeout=httpx2.Timeout(_DEADLINE, connect=10), trust_env=outside, follow_redirects=False
        )


def load_chat(
    name: str
    | Path
    | CausalLM,  # an address; or a model: embedded, a folder, a Hugging Face model id, or loaded
    model: str
    | None = None,  # at an address: as the server knows it; None: the only one that it has
    *,
    device: str = "auto",  # auto | cpu | cuda | mps, in the process
    samples: int = 5,  # at an address: answers drawn where log-probabilities do not come
    at_once: int = 4,  # at an address: requests under way at the same time
) -> LocalChat | ServedChat:
    """A chat model to ask. Raises: AssetError if a model cannot be had; InputError for an address that is none."""
    if isinstance(name, str) and name.lower().startswith(("http://", "https://")):
        return ServedChat(name, model, samples=samples, at_once=at_once)
    if model is not None:
        raise InputError(
            "belongs to an address; a model in the process is named first", argument="model"
        )
    return LocalChat(name if isinstance(name, CausalLM) else CausalLM.load(name, device=device))
