"""What tests of pictures share: a page taken apart, hostile texts, one of each picture, boxes of labels."""

import re
import unicodedata
import warnings
from html.parser import HTMLParser

import numpy as np

from tsteval.report.charts import (
    Means,
    Panel,
    ScoreInterval,
    curve_and_point,
    distribution_plot,
    interval_plot,
    panels_chart,
    scatter_plot,
    trade_off,
    word_bars,
)
from tsteval.report.words import (
    coloured_words,
    draw_road,
    edited_pair,
    linked_words,
    transport_flow,
)
from tsteval.report.workflow import Stage, workflow

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


def every_chart(text):
    """All charts, with one text wherever a text goes."""
    names = [f"{place} {text}" for place in range(9)]
    points = np.linspace(-0.3, 0.9, 18)
    systems = names * 2
    ends = dict.fromkeys(names, (0.1, 0.3, 0.2, 0.4))
    verdicts = ("better", "worse", "", "not told apart")
    rows = [ScoreInterval(text, 0.2, 0.1, 0.3, verdict) for verdict in verdicts]
    return {
        "intervals": interval_plot(summary(names), ["sti"], {"sti": text}),
        "panels": panels_chart([Panel(text, rows, 0.9), Panel("b", rows)], caption=text),
        "distributions": distribution_plot({"one": [0.1, 0.2, 0.7], text: [0.3, 0.4]}, text),
        "outputs": trade_off(points, points[::-1], systems, labels=(text, text), selected=3),
        "means": trade_off(points, points[::-1], systems, means=Means(ends, names[:2])),
        "scatter": scatter_plot(points, points**2, (1, 0), [2], x_label=text, y_label=text),
        "bars": word_bars(
            [text] * 3,
            [[0.1, 0.2]] * 3,
            [text] * 3,
            alt=f"three bars of {text}",
            looks=["full", "pale", "dashed"],
            axis=text,
        ),
        "curve": curve_and_point(
            [0, 1], [0, 1], (0.5, 0.5), x_label="across", y_label="upwards", mark=(0.2, text)
        ),
    }


def every_picture(text):
    """All pictures of words, with one text wherever a text goes."""
    whole = [(0, len(text))]
    names = [f"{place} {text}" for place in range(9)]
    plan = np.diag(np.full(9, 1 / 9)) @ (0.9 * np.eye(9) + 0.1 * np.roll(np.eye(9), 1, axis=1))
    boxes = {"one": Stage(0, 0, (text, "again")), "two": Stage(1, 0, (text,), True)}
    return {
        "words": coloured_words(text, whole, [-0.5], marked=[0], title=text),
        "list": coloured_words([text] * 2, None, [1, 2]),
        "pair": edited_pair(text, text, whole, whole, references=[text], title=text),
        "flow": transport_flow(plan, names, 1 - np.eye(9)),
        "links": linked_words([text], [text], {(0, 0): 0.5}, alt="two words that are partners"),
        "road": draw_road("sti"),
        "workflow": workflow(boxes, [("one", "two")], "from the first box to the second"),
    }


def bands(page):
    """Thickness at the left, whether its edge is dashed: of each band."""
    found = re.findall(
        r'<path d="M\d+ ([\d.]+)[^"]*?V[^"]*? \d+ ([\d.]+)Z"[^>]*stroke-dasharray="([^"]*)"', page
    )
    return [(float(low) - float(high), dashes != "none") for high, low, dashes in found]


def all_texts(chart):
    """The texts that a chart shows, as artists of matplotlib's."""
    found = list(chart.texts)
    for axes in chart.axes:
        found += axes.texts
        if axes.axison:
            low, high = sorted(axes.get_xlim())
            ticks = zip(axes.get_xticks(), axes.get_xticklabels())
            found += [tick for place, tick in ticks if low <= place <= high]
            low, high = sorted(axes.get_ylim())
            ticks = zip(axes.get_yticks(), axes.get_yticklabels())
            found += [tick for place, tick in ticks if low <= place <= high]
            found += [axes.title, axes._left_title, axes.xaxis.label, axes.yaxis.label]
    return [text for text in found if text.get_text()]


def label_boxes(chart):
    """(left, right, bottom, top, text) of every text of a chart, in pixels; wide letters as a page shows them."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph ", UserWarning)  # the font has no wide letters
        FigureCanvasAgg(chart).draw()
    boxes = []
    for text in all_texts(chart):
        box = text.get_window_extent()
        left, right, bottom, top = (
            72 / chart.dpi * one for one in (box.x0, box.x1, box.y0, box.y1)
        )
        widths = [
            12 if unicodedata.east_asian_width(one) in "WF" else 6.5 for one in text.get_text()
        ]
        if 12 in widths:
            side = {"left": 0, "center": 0.5, "right": 1}[text.get_ha()]
            anchor = left + side * (right - left)
            left, right = anchor - side * sum(widths), anchor + (1 - side) * sum(widths)
        boxes.append((left, right, bottom, top, text.get_text()))
    return boxes
