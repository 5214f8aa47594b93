"""The report: everything in it follows from the evaluation, in four formats, and no text in it does anything."""

import base64
import hashlib
import itertools
import json
import re
from dataclasses import dataclass
from html.parser import HTMLParser
from types import SimpleNamespace

import pytest

from tsteval.core.checks import InputError
from tsteval.core.metric import Metric, Scores
from tsteval.evaluation import evaluate, report_files
from tsteval.report import typeset
from tsteval.report.charts import Panel, ScoreInterval
from tsteval.report.page import drawn_panel

from .conftest import HOSTILE, Own


@pytest.fixture(scope="module")
def page(result):
    return report_files(result)["report.html"]


class Page(HTMLParser):
    """Tags with their attributes and the headings above them; the text without scripts and styles."""

    def __init__(self, page):
        super().__init__()
        self.tags = []
        self.words = []
        self.inside = []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.inside.append(tag)

    def handle_endtag(self, tag):
        while self.inside and self.inside.pop() != tag:
            pass

    def handle_data(self, data):
        if not {"script", "style"} & set(self.inside):
            self.words.append(data)

    def all(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


def test_the_only_script_is_the_one_whose_checksum_the_page_allows(page):
    scripts = re.findall("<script>(.*?)</script>", page, re.S)
    policy = re.search('http-equiv="Content-Security-Policy" content="([^"]*)"', page)[1]
    checksum = base64.b64encode(hashlib.sha256(scripts[0].encode()).digest()).decode()
    assert len(scripts) == 1 and f"script-src &#39;sha256-{checksum}&#39;".replace(
        "&#39;", "'"
    ) in policy.replace("&#39;", "'")
    assert "default-src 'none'" in policy and "unsafe-inline" not in policy.split("script-src")[1]


def test_hostile_texts_are_texts_on_the_page(page):
    parsed = Page(page)
    assert not [key for _, attributes in parsed.tags for key in attributes if key.startswith("on")]
    text = "".join(parsed.words)
    assert (
        "<script>alert(1)</script>" in text
        and "{{ 7 * 7 }}" in text
        and "\x1b" not in page
        and "<i>one" not in page
    )


def test_tables_have_captions_scopes_and_a_place_for_the_keyboard(page):
    parsed = Page(page)
    assert len(parsed.all("caption")) == len(
        [one for one in parsed.all("table") if one.get("class", "").startswith(("data", "panel"))]
    )
    assert all(one.get("scope") in ("row", "col") for one in parsed.all("th") if one)
    regions = [one for one in parsed.all("div") if one.get("role") == "region"]
    assert regions and all(one["tabindex"] == "0" and one["aria-label"] for one in regions)
    assert all(one.get("role") == "img" and one.get("aria-label") for one in parsed.all("svg"))
    targets = {one["href"][1:] for one in parsed.all("a")}
    assert (
        targets == {one["id"] for one in parsed.all("h2")} and parsed.all("html")[0]["lang"] == "en"
    )


def test_every_figure_names_its_signatures(page, result):
    captions = re.findall("<figcaption>(.*?)</figcaption>", page.replace("<wbr>", ""), re.S)
    assert len(captions) == 3  # the forest, the spread of outputs, and style against content
    assert (
        all(result.signatures["sti"] in caption for caption in captions)
        and result.signatures["bleu"] in captions[0]
    )


def test_two_systems_are_named_in_the_title_and_stand_side_by_side(page):
    assert "<title>&lt;i&gt;one&lt;/i&gt; beside two_%: tsteval</title>" in page
    galleries = page.split('class="pairs"')[1:]
    assert len(galleries) == 3  # a source each
    for gallery in galleries:
        shown = re.findall("<bdi>(&lt;i&gt;one&lt;/i&gt;|two_%)</bdi></b>", gallery)
        assert shown == ["&lt;i&gt;one&lt;/i&gt;", "two_%"]


def test_the_picture_comes_first_and_each_row_has_its_place_and_its_verdict(result, page):
    assert page.index("<figure>") < page.index('id="found"') < page.index('id="doubts"')
    labels = re.findall('<svg role="img" aria-label="([^"]*)"><line class="grid"', page)
    assert len(labels) == 4 * 2 * 2 and labels[0].startswith("&lt;i&gt;one&lt;/i&gt; ")
    places = [float(at) for at in re.findall('(?:cx|x)="([-0-9.]+)%"', page)]
    assert len(places) > 20 and min(places) >= 0 and max(places) <= 100


@pytest.mark.parametrize("low", [-0.9, -0.1, 0.0, 0.7])
def test_a_drawn_place_is_where_its_number_lies_on_the_axis(low):
    """The ends of all intervals are the margin away from the axis's ends, wherever the scores lie."""
    rows = [ScoreInterval("one", low + 0.1, low, low + 0.2), ScoreInterval("two", low + 0.05)]
    drawn = drawn_panel(Panel("score", rows, ceiling=low + 0.2))
    start, end = 100 * 0.05 / 1.1, 100 * 1.05 / 1.1
    first, second = drawn["rows"]
    assert first["ends"] == pytest.approx([start, end], abs=0.01)
    assert drawn["ceiling"] == pytest.approx(end, abs=0.01)
    assert first["at"] == pytest.approx(50, abs=0.01)
    assert second["at"] == pytest.approx((start + 50) / 2, abs=0.01)
    assert len(drawn["ticks"]) >= 2
    for at, label in drawn["ticks"]:
        there = start + (float(label) - low) / 0.2 * (end - start)
        assert at == pytest.approx(there, abs=0.01)


def test_every_system_is_in_every_picture():
    rows = [
        {"system": f"s{number}", "source": f"{text} one", "output": text, "reference": text}
        for number in range(12)
        for text in ("a b c", "d e f")
    ]
    page = report_files(evaluate(rows, ["bleu", Own], n_boot=5))["report.html"]
    tables = re.findall('<table class="panel">.*?</table>', page, re.S)
    assert len(tables) == 4
    assert all(table.count('<th scope="row">') == 12 for table in tables)


def test_formats_say_the_same(result):
    content = json.loads(report_files(result, "json")["report.json"])
    assert (
        content["systems"][0]["bleu"] == result.summary().bleu[0]
        and content["comparisons"][0]["a"] == "two_%"
    )
    for format, file in (("markdown", "report.md"), ("latex", "report.tex")):
        files = report_files(result, format)
        drawings = [name for name in files if name.endswith(".svg")]
        assert (
            len(drawings) == 3
            and list(files)[-1] == file
            and all(files[name].startswith("<svg xmlns=") for name in drawings)
        )
        assert f"{result.summary().bleu[0]:.3f}" in files[file] and all(
            name.removesuffix(".svg") in files[file] for name in drawings
        )
    with pytest.raises(InputError, match="format"):
        report_files(result, "docx")


def test_markdown_holds_no_markup_of_the_texts(result):
    text = report_files(result, "markdown")["report.md"]
    assert (
        "<script" not in text
        and "<i>" not in text
        and "](https:" not in text
        and "https://x" not in text
        and "**d**" not in text
    )
    rows = [line for line in text.splitlines() if line.startswith("|")]
    cells = [len(re.findall(r"(?<!\\)\|", row)) for row in rows]
    assert (
        all(
            a == b
            for a, b in itertools.pairwise(cells)
            if a == b or rows[cells.index(b)].count("---")
        )
        and min(cells) >= 3
    )


def test_latex_escapes_what_latex_obeys(result):
    text = report_files(result, "latex")["report.tex"]
    assert r"\input{x}" not in text and r"\textbackslash{}input\{x\}" in text
    assert r"\$x\_1\textasciicircum{}2\$" in text and r"100\%" in text and r"two\_\%" in text
    body = text.split(r"\begin{document}")[1]
    assert not re.search(r"(?<!\\)[#$]|(?<!\\)%", body)
    plain = re.sub(r"\\[{}]", "", text)
    assert plain.count("{") == plain.count("}") and text.count(r"\begin{") == text.count(r"\end{")


@pytest.mark.parametrize(
    "text, expected",
    [
        ("- item", r"\- item"),
        ("1. item", r"1\. item"),
        ("+ x", r"\+ x"),
        ("0.5", "0.5"),
        ("-0.5", "-0.5"),
    ],
)
def test_a_line_does_not_become_a_list(text, expected):
    assert typeset.in_markdown(text) == expected


def test_edits_are_marked_and_spaces_stay():
    assert (
        typeset.marked("a very big day", [(2, 6)], typeset.in_markdown, "~~", "~~")
        == "a ~~very~~ big day"
    )
    assert typeset.marked("day", [], typeset.in_latex, "<", ">") == "day"


def test_columns_are_dealt_to_tables_that_fit():
    metrics = [
        [f"{name}{n}" for n in range(size)]
        for name, size in (("a", 1), ("b", 5), ("c", 12), ("d", 1))
    ]
    dealt = typeset.dealt_columns(metrics)
    assert [len(table) for table in dealt] == [1, 5, 5, 5, 3] and [
        name for table in dealt for name in table
    ] == [name for metric in metrics for name in metric]


def test_galleries_may_be_chosen(result):
    page = report_files(result, galleries={"Nothing <changed>": result.per_pair.head(1)})[
        "report.html"
    ]
    assert (
        "Nothing &lt;changed&gt;" in page
        and "Telling pairs" not in page
        and page.count('class="pair"') == 1
    )


def test_figures_of_a_column_have_the_same_places_and_no_minus_before_a_nought():
    content = SimpleNamespace(
        metrics=[{"columns": {"a": "A", "b": "B"}}],
        headings={"a": "A", "b": "B"},
        systems=[
            {
                "system": name,
                "n": 3,
                "a": value,
                "a_low": value - 20,
                "a_high": value + 20,
                "b": -0.0001,
                "b_low": None,
                "b_high": None,
            }
            for name, value in (("one", -119.26), ("two", -60.333))
        ],
    )
    ((_, _, rows),) = typeset.score_tables(content, "ab")
    assert [row[2] for row in rows] == ["-119.3 [-139.3, -99.3]", "-60.3 [-80.3, -40.3]"] and rows[
        0
    ][3] == "0.000"


def test_tables_in_latex_fit_between_the_margins(result):
    text = report_files(result, "latex")["report.tex"]
    tables = re.findall(r"\\begin\{tabular\}\{(l+r+)\}(.*?)\\end\{tabular\}", text, re.S)
    assert tables and all(len(columns) <= 6 for columns, _ in tables)
    assert all(
        line.count(" & ") == len(columns) - 1
        for columns, body in tables
        for line in body.splitlines()
        if line.endswith(r" \\")
    )


@dataclass(frozen=True)
class Hostile(Metric):
    unit: str = "}{&|"

    name = "own"
    needs = ("output",)
    columns = ("own",)
    headings = (r"\own} & | _x_ <b>",)
    description = r"50% of \it & more | <i>"

    def score(self, rows, models=None):
        return Scores({"own": rows.output.map(len)})


@pytest.fixture(scope="module")
def hostile():
    names = [*HOSTILE, r"\end{document}\end{tabular} {{{ & | # \\", "one\n\n## two | \r\n- three"]
    rows = [
        {"system": name, "source": f"{text} one", "output": f"{text} {number}", "reference": text}
        for number, name in enumerate(names)
        for text in names
    ]
    result = evaluate(rows, ["bleu", Hostile], n_boot=5)
    return result, {r"A gallery } & | <b> \end{document}": result.telling_pairs(12)}


def test_latex_stays_whole_whatever_the_names(hostile):
    text = report_files(hostile[0], "latex", hostile[1])["report.tex"]
    plain = re.sub(r"\\[{}\\]", "", text)
    opened = []
    for kind, name in re.findall(
        r"\\(begin|end)\{([^}]*)\}", text.replace(r"\textbackslash{}", "")
    ):
        if kind == "begin":
            opened.append(name)
        else:
            assert opened.pop() == name
    assert opened == [] and text.count("\\begin{document}") == text.count("\\end{document}") == 1
    depth = 0
    for character in plain:
        depth += {"{": 1, "}": -1}.get(character, 0)
        assert depth >= 0
    assert depth == 0
    for columns, body in re.findall(
        r"\\begin\{tabular\}\{(l+r+)\}(.*?)\\end\{tabular\}", text, re.S
    ):
        cells = [
            len(re.findall(r"(?<!\\)&", line)) + 1
            for line in body.splitlines()
            if line.endswith(r"\\")
        ]
        assert cells and set(cells) == {len(columns)}


def test_markdown_stays_whole_whatever_the_names(hostile):
    text = report_files(hostile[0], "markdown", hostile[1])["report.md"]
    lines = text.splitlines()
    found = []
    assert "<" not in text and not [
        line for line in lines if line.startswith("## two") or line.startswith("- three")
    ]
    for at, line in enumerate(lines):
        if re.fullmatch(r"\|( :?-+:? \|)+", line):
            rows = [lines[at - 1], line]
            for row in lines[at + 1 :]:
                if not row.startswith("|"):
                    break
                rows.append(row)
            found.append({len(re.findall(r"(?<!\\)(?:\\\\)*\|", row)) for row in rows})
    assert len(found) >= 3 and all(len(widths) == 1 for widths in found)


def test_the_page_stays_whole_whatever_the_names(hostile):
    parsed = Page(report_files(hostile[0], "html", hostile[1])["report.html"])
    notes = len(hostile[0].notes())
    assert (
        len(parsed.all("b")) == notes + 4 and len(parsed.all("i")) == 1
    )  # the page's own: a note's kind, the titles of two scores in two figures, and Holm's p
    assert [len(parsed.all(tag)) for tag in ("html", "main", "script")] == [1, 1, 1]
