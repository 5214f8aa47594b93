"""A page taken apart, texts that would break one, and the defaults of a function."""

import inspect
from html.parser import HTMLParser
from pathlib import Path

ROOT = Path(__file__).parents[2]


HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "word <b> & " * 1_820,
    "\u05e9\u05dc\u05d5\u05dd \u202eabc",
    "\U0001f469\u200d\U0001f52c \U0001f600",
    "\ud83d alone \udc00",
    "\x00\x07",
    "",
    "a" * 20_000,
    " \n ",
    "</bdi></svg></div>",
    "{0} %s {evil}",
]


class Page(HTMLParser):
    """The elements of a page, its text, and everything that could run."""

    def __init__(self, page):
        super().__init__()
        self.open = []
        self.text = ""
        self.elements = []
        self.active = []
        self.feed(page)
        assert not self.open, f"left open: {self.open}"

    def handle_starttag(self, name, attributes):
        self.elements.append(name)
        if name not in ("br", "img"):
            self.open.append(name)
        drawing = dict(attributes).get("src", "").startswith("data:image/svg+xml;base64,")
        self.active += (
            [name] if name in ("script", "img", "iframe", "object", "b") and not drawing else []
        )
        self.active += [key for key, _ in attributes if key.startswith("on")]

    def handle_endtag(self, name):
        assert self.open.pop() == name

    def handle_data(self, data):
        self.text += data


def assert_harmless(page):
    page.encode("utf-8")  # a lone surrogate would stop the message that carries the page
    assert not Page(page).active


def defaults_of(function):
    return {name: one.default for name, one in inspect.signature(function).parameters.items()}
