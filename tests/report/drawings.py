"""What tests of pictures share: a page taken apart, hostile texts, one of each picture, boxes of labels."""

import html
import re
import unicodedata
from html.parser import HTMLParser

import numpy as np

from tsteval.report.charts import curve_and_point, interval_plot, word_bars
from tsteval.report.trade_off import Means, trade_off
from tsteval.report.words import coloured_words, draw_road, edited_pair, transport_flow

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "word <b> & " * 1_820,
    "\u05e9\u05dc\u05d5\u05dd \u202eabc",
    "\U0001f469\u200d\U0001f52c \U0001f600",
    "\ud83d alone \udc00",
    "\x00\x07\x7f\x9f",
    "",
    "a" * 20_000,
    " \n ",
    "</bdi></svg></div>",
    "{0} %s {evil}",
    "\ufffe\uffff \x85",
]


class Page(HTMLParser):
    """The elements of a page, its text, and everything that could run."""

    def __init__(self, page):
        super().__init__()
        self.open = []
        self.text = ""
        self.elements = []
        self.active = []
        self.feed(str(page))
        assert not self.open, f"left open: {self.open}"

    def handle_starttag(self, name, attributes):
        self.elements.append(name)
        if name not in ("br", "img"):
            self.open.append(name)
        drawn = dict(attributes).get("src", "").startswith("data:image/svg+xml;base64,")
        self.active += (
            [name] if name in ("script", "img", "iframe", "object", "b") and not drawn else []
        )
        self.active += [key for key, _ in attributes if key.startswith("on")]

    def handle_endtag(self, name):
        assert self.open.pop() == name

    def handle_data(self, data):
        self.text += data


def summary(names):
    """A made-up summary of systems, the last one without a score."""
    score = np.linspace(0.2, 0.6, len(names))
    score[-1] = np.nan
    # a frame cannot hold half a character
    return {"system": names, "sti": score, "sti_low": score - 0.1, "sti_high": score + 0.1}


def every_picture(text):
    """All pictures, with one text wherever a text goes."""
    whole = [(0, len(text))]
    names = [f"{place} {text}" for place in range(9)]
    plan = np.diag(np.full(9, 1 / 9)) @ (0.9 * np.eye(9) + 0.1 * np.roll(np.eye(9), 1, axis=1))
    points = np.linspace(-0.3, 0.9, 18)
    systems = names * 2
    ends = dict.fromkeys(names, (0.1, 0.3, 0.2, 0.4))
    return {
        "words": coloured_words(text, whole, [-0.5], marked=[0], title=text),
        "list": coloured_words([text] * 2, None, [1, 2]),
        "pair": edited_pair(text, text, whole, whole, references=[text], title=text),
        "flow": transport_flow(plan, names, 1 - np.eye(9)),
        "intervals": interval_plot(summary(names), ["sti"], {"sti": text}),
        "outputs": trade_off(points, points[::-1], systems, labels=(text, text), selected=3),
        "means": trade_off(points, points[::-1], systems, means=Means(ends)),
        "road": draw_road("sti"),
        "bars": word_bars(
            [text] * 3,
            [[0.1, 0.2]] * 3,
            [text] * 3,
            told=text,
            looks=["full", "pale", "dashed"],
            axis=text,
        ),
        "curve": curve_and_point(
            [0, 1], [0, 1], (0.5, 0.5), x_label="across", y_label="upwards", mark=(0.2, text)
        ),
    }


def bands(page):
    """Thickness at the left, whether its edge is dashed: of each band."""
    found = re.findall(
        r'<path d="M156 ([\d.]+)[^"]*?V[^"]*? 156 ([\d.]+)Z"[^>]*stroke-dasharray="([^"]*)"', page
    )
    return [(float(low) - float(high), dashes != "none") for high, low, dashes in found]


def label_boxes(page):
    """(left, right, top, bottom, text) of every text of a drawing."""
    for x, y, anchor, written in re.findall(
        r'<text x="([\d.-]+)" y="([\d.-]+)" text-anchor="(\w+)"[^>]*>(.*?)</text>', page
    ):
        text = html.unescape(re.sub("<[^>]*>", "", written))
        wide = sum(12 if unicodedata.east_asian_width(one) in "WF" else 6.5 for one in text)
        left = float(x) - wide * {"start": 0, "middle": 0.5, "end": 1}[anchor]
        yield left, left + wide, float(y) - 9, float(y) + 2, text
