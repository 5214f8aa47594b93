"""What a function does has one checksum, and two that differ in anything they rest on have two."""

import collections
import enum
import fractions
import functools
import importlib
import itertools
import operator
import os
import re
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tsteval.core.fingerprint import fingerprint
from tsteval.core.metric import describable, describe_setting, sign

LIMIT = 3


def whole(value):
    """The checksum of a value that must be described whole, twice the same."""
    first = fingerprint(value)
    again = fingerprint(value)
    assert first == again and first[1], value
    return first[0]


class Slots:
    __slots__ = ("mark",)

    def __init__(self, mark):
        self.mark = mark

    def __call__(self, text):
        return text.split(self.mark)

    def cut(self, text):
        return text.split(self.mark)


class Child(Slots):
    __slots__ = ("other",)

    def __init__(self, mark, other):
        super().__init__(mark)
        self.other = other


@dataclass(frozen=True)
class Frozen:
    mark: str

    def cut(self, text):
        return text.split(self.mark)


class Kind(enum.Enum):
    ONE = 1
    TWO = 2


Pair = collections.namedtuple("Pair", "first second")


def with_default(text, *, mark=" "):
    return text.split(mark)


def made(mark):
    def split(text, *, limit=-1):
        return text.split(mark, limit)

    return split


def limited(limit):
    def split(text, *, limit=limit):
        return text.split(" ", limit)

    return split


PAIRS = {
    "a method of a pattern": (re.compile(r"\w+").findall, re.compile(r"\S+").findall),
    "flags of a pattern": (re.compile("a").split, re.compile("a", re.I).split),
    "a bound method": (Frozen(" ").cut, Frozen(",").cut),
    "slots": (Slots(" "), Slots(",")),
    "a method of slots": (Slots(" ").cut, Slots(",").cut),
    "slots of a parent": (Child(" ", 1), Child(",", 1)),
    "slots of a child": (Child(" ", 1), Child(" ", 2)),
    "defaults by name only": (limited(1), limited(2)),
    "closed values": (made(" "), made(",")),
    "a method of a text": ("a".join, "b".join),
    "a partial of a method": (functools.partial(Slots(" ").cut), functools.partial(Slots(",").cut)),
    "a name for an argument": (
        functools.partial(with_default, mark=","),
        functools.partial(with_default, mark=";"),
    ),
    "a getter": (operator.itemgetter(1), operator.itemgetter(2)),
    "a caller": (operator.methodcaller("strip", "a"), operator.methodcaller("strip", "b")),
    "what is wrapped": (functools.cache(made(" ")), functools.cache(made(","))),
    "members": (Kind.ONE, Kind.TWO),
    "named tuples": (Pair(1, 2), Pair(1, 3)),
    "arrays": (np.arange(4), np.arange(4).reshape(2, 2)),
    "kinds of arrays": (np.arange(4, dtype="i8"), np.arange(4, dtype="u8")),
    "sets": ({"a", "b"}, {"a", "c"}),
    "fractions": (fractions.Fraction(1, 3), fractions.Fraction(2, 3)),
    "keys": ({"a": 1}, {"b": 1}),
    "frames": (pd.DataFrame({"a": [1]}), pd.DataFrame({"a": [2]})),
    "nested": ([[1], 2], [1, [2]]),
    "a number and its text": (1, "1"),
    "a truth and a number": (True, 1),
    "counters": (itertools.count(1), itertools.count(2)),
    "generators of chance": (np.random.default_rng(1), np.random.default_rng(2)),
    "paths": (Path("a"), Path("b")),
    "a place in a table": ({"f": made(" ")}, {"f": made(",")}),
}


@pytest.mark.parametrize("name", PAIRS)
def test_two_that_differ_in_what_they_rest_on_differ(name):
    one, other = PAIRS[name]
    assert whole(one) != whole(other)
    assert describable(one) and "0x" not in describe_setting(one)
    assert (
        describe_setting(one) != describe_setting(other) or name == "kinds of arrays"
    )  # they hold the same numbers


@pytest.mark.parametrize(
    "make",
    [
        lambda: made(" "),
        lambda: Slots(" ").cut,
        lambda: re.compile(r"\w+").findall,
        lambda: {"b", "a", "c"},
        lambda: functools.partial(with_default, mark=","),
        lambda: lambda text: text in {"a", "b", "c"},
    ],
)
def test_two_that_are_made_alike_are_alike(make):
    assert whole(make()) == whole(make())


# ---- what a function calls

HELPERS = {
    "helper.py": "SIZE = 1\ndef clean(text): return text[:SIZE]\ndef other(text): return text\n",
    "use.py": "import helper\nfrom helper import clean\ndef by_name(text): return clean(text)\n"
    "def by_module(text): return helper.clean(text)\n"
    "def inside(text):\n    from helper import clean\n    return clean(text)\n"
    "class Own:\n    def __call__(self, text): return helper.clean(text)\n"
    "own = Own()\nnested = lambda text: (lambda: by_module(text))()\n"
    "listed = lambda text: [by_name(word) for word in text]\n",
}
USERS = ("by_name", "by_module", "inside", "own", "nested", "listed")


@pytest.fixture
def own(tmp_path, monkeypatch):
    """Modules of one's own, written anew and imported."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def written(*change):
        change = change or ("", "")
        for name, text in HELPERS.items():
            (tmp_path / name).write_text(text.replace(*change))
        for name in ("helper", "use"):
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        return importlib.import_module("use")

    yield written
    for name in ("helper", "use"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("user", USERS)
def test_a_helper_that_is_edited_changes_who_calls_it(own, user):
    before = whole(getattr(own(), user))
    assert whole(getattr(own(), user)) == before
    assert whole(getattr(own("[:SIZE]", "[:SIZE].strip()"), user)) != before
    assert whole(getattr(own("SIZE = 1", "SIZE = 2"), user)) != before


def test_what_else_is_in_a_module_does_not_matter_to_who_reads_one_name(own):
    module = own()
    before = whole(module.by_module)
    module.helper.other = None
    module.helper.file = sys.stdout  # which nobody can describe
    assert whole(module.by_module) == before


def test_a_constant_that_is_set_while_the_program_runs_counts(own):
    module = own()
    before = whole(module.by_name)
    module.helper.SIZE = 7
    assert whole(module.by_name) != before


def test_functions_that_call_each_other_end():
    def even(n):
        return n == 0 or odd(n - 1)

    def odd(n):
        return n != 0 and even(n - 1)

    ring = []
    ring.append(ring)
    assert whole(even) != whole(odd) and whole(ring)


def test_the_checksum_is_that_of_another_process(tmp_path):
    """Neither addresses nor the order of sets, which is another one in each process, are part of it."""
    (tmp_path / "mine.py").write_text(
        "import re\nWORDS = {'a', 'the', 'of', 'an'}\nclass Own:\n    def __init__(self): self.words = WORDS\n"
        "    def cut(self, text): return [w for w in re.findall(r'\\w+', text) if w not in self.words | {'is', 'was', "
        "'be'}]\n"
    )
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import mine; from tsteval.core.fingerprint import "
        "fingerprint;"
        "print(fingerprint(mine.Own().cut))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code, str(tmp_path)],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"PYTHONHASHSEED": seed},
        ).stdout
        for seed in "123"
    }
    assert len(found) == 1 and "True" in next(iter(found))


# ---- what cannot be told

COUNT = 0


def counts(text):
    global COUNT  # noqa: PLW0603 (that is the point)
    COUNT += 1
    return COUNT


def reads(text):
    with open("words.txt") as file:
        return text in file


def evaluates(text):
    return eval(text)


def lacks(text):
    return nowhere(text)  # noqa: F821


def imports(text):
    import no_such_module

    return no_such_module.f(text)


class Locked:
    def __init__(self):
        self.lock = threading.Lock()

    def __call__(self, text):
        return text


class Unpicklable:
    def __reduce_ex__(self, protocol):
        raise ValueError("no")

    def __call__(self, text):
        return text


@pytest.mark.parametrize(
    "value",
    [
        counts,
        reads,
        evaluates,
        lacks,
        imports,
        Locked(),
        Unpicklable(),
        sys.stdout,
        eval,
        open,
        (word for word in "ab"),
        made(threading.Lock()),
        [Locked()],
        {"f": {"g": reads}},
        {reads},
        functools.partial(reads),
        functools.lru_cache(reads),
    ],
)
def test_what_cannot_be_described_whole_says_so(value):
    assert not fingerprint(value)[1] and not describable(value)
    assert "|uncached:split|version" in sign("x", split=value, n=3)


def test_what_has_a_tag_of_its_own_is_described_by_it():
    class Tagged(Locked):
        tag = "mine@1"

    assert (
        describe_setting(Tagged()) == "mine@1"
        and describable(Tagged())
        and fingerprint([Tagged()])[1]
    )


def test_who_holds_too_much_is_not_described():
    assert (
        not fingerprint([[number] for number in range(400_000)])[1]
        and fingerprint(list(range(1_000)))[1]
    )
    deep = []
    for _ in range(100_000):
        deep = [deep]
    assert not fingerprint(deep)[1]


def test_settings_are_written_so_that_none_passes_for_another():
    told = [
        0.1,
        0.1 + 1e-12,
        "a b",
        "a_b",
        "a|b",
        ["a", "b"],
        ["a,b"],
        [["a"], "b", "c"],
        ["a", ["b", "c"]],
        np.array([[1, 2]]),
        np.array([1, 2]),
        {"a": 1},
        {"a": 2},
        [0.1, 1],
        [0.1 + 1e-12, 1],
    ]
    assert len({describe_setting(value) for value in told}) == len(told)
    assert [
        describe_setting(value)
        for value in (
            0.3,
            "pad",
            3,
            True,
            None,
            ["rouge1", "rougeL"],
            np.float64(0.5),
            np.int64(2),
            str.split,
            len,
        )
    ] == ["0.3", "pad", "3", "True", "None", "rouge1,rougeL", "0.5", "2", "str.split", "len"]
    assert not any(
        "|" in describe_setting(value) or " " in describe_setting(value) for value in told
    )


def test_tokenizers_of_one_class_sign_differently():
    """They shared a signature, and a cache served BLEU 1.0 where .124 was true."""
    from nltk.tokenize import RegexpTokenizer

    from tsteval.bleu import corpus_bleu

    signatures = [
        corpus_bleu(["a b"], ["a b"], tokenize=RegexpTokenizer(pattern).tokenize).signature
        for pattern in (r"\w+", r"\S+", r"\w+")
    ]
    assert signatures[0] == signatures[2] != signatures[1] and "uncached" not in signatures[0]
