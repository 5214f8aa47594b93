"""The course as a static site: it builds, every link of it leads somewhere, and no page needs another machine.

`tests/browser/test_site.py` looks at the same pages in a browser; both use the site that `site` in conftest.py builds
once.
"""

import importlib.util
import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest

ROOT = Path(__file__).parent.parent
OUTSIDE = re.compile(r"^(?:https?:)?//")
# /home/ray is inside a container, /tmp/ray- on a cluster
MACHINE = re.compile(r"(?<![\w.:/])/(?:home(?!/ray/)|root|tmp(?!/ray-)|Users|work)/\w")
FOLDED = '<details class="admonition hide above-input"'
MOST_PAGE = 1_000_000
MOST_IMAGE = 200_000
sys.path.append(str(ROOT / "nbs" / "site"))


class Page(HTMLParser):
    """The links, names, pictures and title of one page."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.names = set()
        self.links = []
        self.loaded = []
        self.pictures = []
        self.title = ""
        self._in_title = False
        self.inline = []
        self.handlers = []
        self.policy = ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.names |= {
            given[key] for key in ("id", "name") if given.get(key) and (key == "id" or tag == "a")
        }
        self.handlers += [key for key in given if key.startswith("on")]
        if tag in ("a", "area") and given.get("href"):
            self.links.append(given["href"])
        if (
            tag == "link"
            and given.get("href")
            and given.get("rel") not in ("canonical", "search", "index", "next", "prev", "author")
        ):
            self.loaded.append(given["href"])
        if tag in ("script", "img", "iframe", "source", "video", "audio", "embed") and given.get(
            "src"
        ):
            self.loaded.append(given["src"])
        if tag == "img":
            self.pictures.append((given.get("src", ""), given.get("alt")))
        if tag == "meta" and (given.get("http-equiv") or "").lower() == "content-security-policy":
            self.policy = given["content"]
        self._in_title = tag == "title" and not self.title

    def handle_data(self, data):
        if self._in_title:
            self.title += data

    def handle_endtag(self, tag):
        if tag == "title":
            self._in_title = False


@pytest.fixture(scope="module")
def pages(site):
    return {
        path.relative_to(site).as_posix(): Page(path.read_text(encoding="utf-8"))
        for path in site.rglob("*.html")
        if "_static" not in path.parts
    }


def chapters():
    return sorted(path.stem for path in ROOT.glob("nbs/[0-9]*.ipynb"))


@pytest.mark.ci
def test_every_notebook_and_public_name_has_a_page(site, pages):
    for path in [*ROOT.glob("nbs/*.ipynb"), *ROOT.glob("nbs/[!.]*/*.ipynb")]:
        name = path.relative_to(ROOT / "nbs").with_suffix("")
        assert f"{name}.html" in pages, name
        assert (site / "notebooks" / f"{name}.ipynb").read_bytes() == path.read_bytes()
        assert f"notebooks/{name}.ipynb" in " ".join(pages[f"{name}.html"].links), (
            "no link to run it"
        )
    from reference import read_module

    names = [
        (path.stem, entry.name)
        for path in ROOT.glob("tsteval/*.py")
        if not path.stem.startswith("_")
        for entry in read_module(path, path.stem)[1]
    ]
    assert len(names) > 150 and all(
        f"reference/{module}/{name}.html" in pages for module, name in names
    )
    home = " ".join(pages["index.html"].links)
    for name in [
        *chapters(),
        "how_to_own_style",
        "changelog",
        "sliders/bleu",
        "sliders/emd",
        "sliders/mask",
        "reference/index",
        "solutions/index",
    ]:
        assert f"{name}.html" in home, name


@pytest.mark.ci
def test_every_link_leads_somewhere(site, pages):
    broken = []
    for name, page in pages.items():
        for link in page.links + page.loaded:
            if OUTSIDE.match(link) or link.startswith(("data:", "mailto:")):
                continue
            path, anchor = urldefrag(
                unquote(
                    link.split("?")[0]
                    + ("#" + link.split("#", 1)[1] if "#" in link and "?" in link else "")
                )
            )
            goal = (site / name).parent / path if path else site / name
            goal = goal / "index.html" if goal.is_dir() else goal
            if not goal.resolve().is_file():
                broken.append(f"{name}: {link}")
            elif anchor and goal.suffix == ".html":
                other = goal.resolve().relative_to(site.resolve()).as_posix()
                if other in pages and anchor not in pages[other].names:
                    broken.append(f"{name}: {link}")
    assert broken == []


@pytest.mark.ci
def test_no_page_loads_anything_from_elsewhere(site, pages):
    assert [
        (name, link) for name, page in pages.items() for link in page.loaded if OUTSIDE.match(link)
    ] == []
    for sheet in site.rglob("*.css"):
        loaded = re.findall(
            r"(?:url\(|@import\s+)[\"']?((?:https?:)?//[^\"')\s]+)",
            sheet.read_text(encoding="utf-8"),
        )
        assert loaded == [], sheet
    for name, page in pages.items():
        assert page.handlers == [], name
        assert "default-src 'self'" in page.policy and "'unsafe-eval'" not in page.policy, name
        assert "unsafe-inline" not in page.policy.split("script-src")[1].split(";")[0], name


@pytest.mark.ci
def test_no_complaint_and_no_machine_path(site, site_complaints):
    assert site_complaints == []
    for path in [*site.rglob("*.html"), site / "searchindex.js"]:
        if "_static" in path.parts:
            continue
        found = MACHINE.search(path.read_text(encoding="utf-8"))
        assert not found, f"{path.relative_to(site)}: {found[0]}"


@pytest.mark.ci
def test_pages_are_light(site, pages):
    for name in pages:
        assert (site / name).stat().st_size < MOST_PAGE, name
    for path in [*site.rglob("_images/*"), *site.rglob("_static/*.png")]:
        assert path.stat().st_size <= MOST_IMAGE, path.name
    assert (site / "searchindex.js").stat().st_size < 2 * MOST_PAGE


@pytest.mark.ci
def test_every_picture_says_what_it_shows(pages):
    seen = {}
    for name, page in pages.items():
        for source, alt in page.pictures:
            assert (
                alt
                and len(alt) >= (8 if source.startswith("data:") else 40)
                and not re.search(r"\.(png|svg|jpe?g)|_images|output_\d|[\\$]", alt)
            ), (name, source[:60], alt)
            if not source.startswith("data:"):
                seen.setdefault(name, []).append(alt)
    assert sum(map(len, seen.values())) >= 40


@pytest.mark.ci
def test_every_page_has_a_title_of_its_own(pages):
    titles = {}
    for name, page in pages.items():
        titles.setdefault(" ".join(page.title.split()), []).append(name)
    assert all("tsteval" in title for title in titles)
    double = {title: names for title, names in titles.items() if len(names) > 1}
    assert double == {}


@pytest.mark.ci
def test_what_nbdev_hides_is_hidden(site):
    page = (site / "02_bleu.html").read_text(encoding="utf-8")
    assert "use_course_style" not in page and "#| " not in re.sub(r"<[^>]+>", "", page)
    assert page.count(FOLDED) > 0  # what is long and beside the point is folded


@pytest.mark.ci
def test_the_front_page_shows_a_picture_then_the_tasks_then_the_course(site):
    page = (site / "index.html").read_text(encoding="utf-8")
    article = page[page.index("<article") :]
    places = [
        article.index(f">{words}<" if words != "<img" else words)
        for words in ("<img", "What do you want to do?", "compare two systems", "The road")
    ]
    assert places == sorted(places)
    assert 'class="highlight' not in article[: places[0]].partition("</details>")[2]


@pytest.mark.ci
def test_comments_beside_parameters_are_a_table(site):
    page = re.sub(
        r"<[^>]+>", " ", (site / "reference/bleu/corpus_bleu.html").read_text(encoding="utf-8")
    )
    page = " ".join(page.split())
    for words in (
        "longest n-gram, 1..8",
        "one score for all outputs together",
        "N rows: an output’s references",
        "Papineni et al. 2002, section 2.3",
        "BLEU of a corpus: counts and lengths are summed",
    ):
        assert words in page, words


def entries_of(tmp_path, source):
    from reference import read_module

    (tmp_path / "module.py").write_text(source)
    return {entry.name: entry for entry in read_module(tmp_path / "module.py", "module")[1]}


needs_builder = pytest.mark.skipif(
    not importlib.util.find_spec("pygments"), reason="needs Pygments"
)


@needs_builder
def test_docments_are_read(tmp_path):
    found = entries_of(
        tmp_path,
        '__all__ = ["f", "g", "h", "C", "NUMBER"]\nNUMBER = 1\n'
        "def h(\n    # above\n    a: dict[\n        str, int\n    ] = None,\n    b: list[\n        str\n    ]\n    "
        "| None = None,  # behind\n):\n    return a\n"
        "def f(\n    a: int,  # first\n    *b: str,  # others\n    c: float = 0.5,  # a share, 0..1\n  "
        "  **d: bool,\n) -> list[int]:  # what it gives\n"
        '    """One line.\n\n    Raises: ValueError. Source: a paper.\n    """\n    return 1  # no '
        "parameter\n"
        "def g(x, y=2):  # one comment for the line\n    return x\n"
        'class C:\n    """A class."""\n    size: int  # how large\n    def __init__(self, size: int = '
        "3): pass  # not of a parameter\n"
        "    def grow(self, by: int) -> int:  # the new size\n        return by\n    def "
        "_hidden(self): pass\n",
    )
    f = found["f"]
    assert [(row.name, row.kind, row.default, row.words) for row in f.parameters] == [
        ("a", "int", "", "first"),
        ("*b", "str", "", "others"),
        ("c", "float", "0.5", "a share, 0..1"),
        ("**d", "bool", "", ""),
    ]
    assert (f.returns.kind, f.returns.words) == ("list[int]", "what it gives")
    assert [row.words for row in found["h"].parameters] == ["above", "behind"]
    assert [member.name for member in found["C"].members] == ["C.grow"] and found["C"].fields[
        0
    ].words == "how large"
    from reference import described

    assert described(f.doc) == "One line.\n\n**Raises.** ValueError.\n\n**Source.** a paper."


@needs_builder
def test_pictures_get_their_words_from_the_prose():
    from chapters import link_chapters, picture_words, run_box

    prose = (
        "## Look\n\nSomething else.\n\nThe curve falls with $p_n = \\tfrac12$; the *dashed* line is [chapter "
        "2](02_bleu.ipynb)'s. Then more."
    )
    assert (
        picture_words(prose)
        == "Figure. The curve falls with p_n = 1/2; the dashed line is chapter 2's. Then more."
    )
    assert (
        link_chapters(
            "see chapter 2, `chapter 2`, $chapter 2$ and [chapter 2](x)", {2: "02_bleu"}, "../"
        )
        == "see [chapter 2](../02_bleu.ipynb), `chapter 2`, $chapter 2$ and [chapter 2](x)"
    )
    assert 'href="../notebooks/solutions/02_bleu.ipynb"' in run_box("solutions/02_bleu.ipynb")


def test_what_a_page_imports_is_one_folded_cell():
    import nbformat
    from chapters import as_page

    code = nbformat.v4.new_code_cell
    output = nbformat.v4.new_output("stream", text="1\n")
    text = 'import json\nfrom a import (\n    b,\n)\n\n\ntext = """\nimport no\n"""\nb(json)'
    made = nbformat.v4.new_notebook(
        cells=[
            nbformat.v4.new_markdown_cell("# 2. Title\n\n> words\n\nProse."),
            code('draw_road("bleu")'),
            code("#| hide\nimport hidden"),
            code(text, outputs=[output]),
            code('#| export\nimport json\n_all_ = ["b"]'),
            code("#| code-fold: true\nimport plt\nplt.show()", outputs=[output]),
            code("%%bash\nimport x"),
        ]
    )
    cells = [
        (cell.source, cell.metadata.tags, len(cell.outputs))
        for cell in as_page(made, "02_bleu.ipynb", {}).cells
        if cell.cell_type == "code"
    ]
    assert cells == [
        ('draw_road("bleu")', ["remove-input"], 0),
        ("import json\nfrom a import (\n    b,\n)", ["hide-input"], 0),
        ('text = """\nimport no\n"""\nb(json)', [], 1),
        ("import plt\nplt.show()", ["hide-input"], 1),
        ("%%bash\nimport x", [], 0),
    ]


def test_a_chapter_links_its_slider():
    from chapters import SLIDERS, run_box

    assert {page for page, _ in SLIDERS.values()} == {
        path.stem for path in (ROOT / "nbs" / "site" / "sliders").glob("*.md")
    }
    assert 'href="sliders/bleu.html"' in run_box("02_bleu.ipynb")
    assert "Move it" not in run_box("03_rouge.ipynb") + run_box("solutions/02_bleu.ipynb")


def test_the_how_tos_come_as_they_are_asked_for_and_say_how_to_once():
    path = ROOT / "nbs" / "site" / "build.py"  # there is another module called build
    spec = importlib.util.spec_from_file_location("site_build", path)
    builder = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(builder)
    names = ["how_to_cluster", "how_to_command", "how_to_compare", "how_to_gate"]
    titles = {name: f"How to: {name[7:]} it" for name in names}
    part = builder.contents(names, [], [], titles)["parts"][0]
    pages = part["chapters"]
    assert part["caption"] == "How to"
    assert [page["file"] for page in pages] == [*builder.HOW_TO, "how_to_cluster"]
    assert pages[0]["title"] == "Compare it"


@pytest.fixture
def settings(tmp_path):
    """Makes a settings.ini with this address of the repository in it."""

    def make(address):
        text = (ROOT / "settings.ini").read_text(encoding="utf-8")
        (tmp_path / "settings.ini").write_text(
            re.sub("(?m)^(repository_address =).*", rf"\1 {address}", text)
        )
        return tmp_path / "settings.ini"

    return make


def test_without_an_address_nothing_points_to_colab(tmp_path, settings):
    from chapters import run_box, write_downloads
    from colab import read_repository

    repository = read_repository(settings(""))
    assert repository is None and "colab" not in run_box("02_bleu.ipynb", repository)
    write_downloads(ROOT / "nbs", tmp_path, chapters(), repository)
    for name in chapters():
        assert (tmp_path / f"{name}.ipynb").read_bytes() == (
            ROOT / "nbs" / f"{name}.ipynb"
        ).read_bytes()


def test_with_an_address_each_chapter_has_one_cell_that_installs_and_a_button(tmp_path, settings):
    import nbformat
    from chapters import as_page, run_box, write_downloads
    from colab import read_repository

    repository = read_repository(settings("https://github.com/someone/tsteval"))
    others = ["index", "how_to_compare", "solutions/02_bleu", "more/13_facts"]
    write_downloads(ROOT / "nbs", tmp_path / "out", [*chapters(), *others], repository)
    for name in [*chapters(), *others]:
        original = nbformat.read(ROOT / "nbs" / f"{name}.ipynb", as_version=4)
        if name in others:
            assert (tmp_path / "out" / f"{name}.ipynb").read_bytes() == (
                ROOT / "nbs" / f"{name}.ipynb"
            ).read_bytes()
            assert "colab" not in run_box(f"{name}.ipynb", repository)
            continue
        made = nbformat.read(tmp_path / "out" / f"{name}.ipynb", as_version=4)
        nbformat.validate(made)
        first = made.cells.pop(1)
        assert (
            made.cells[0].cell_type == "markdown"
            and "git+https://github.com/someone/tsteval" in first.source
        )
        assert made == original, name  # no other cell, no output and no setting is touched
        page = as_page(original, f"{name}.ipynb", {}, repository)
        button = f"https://colab.research.google.com/github/someone/tsteval/blob/gh-pages/notebooks/{name}.ipynb"
        assert page.cells[0].source.count(f'href="{button}"') == 1
        assert not any("git+" in cell.source for cell in page.cells), (
            "the page itself shows no cell that installs"
        )


@pytest.mark.parametrize("there", [True, False])
def test_the_cell_installs_only_what_is_missing(monkeypatch, there):
    from colab import INSTALL
    from IPython.core.inputtransformer2 import TransformerManager

    called = []
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object() if there else None)
    shell = type("Shell", (), {"run_line_magic": lambda self, *given: called.append(given)})()
    code = TransformerManager().transform_cell(INSTALL.format(address="https://github.com/a/b"))
    exec(code, {"get_ipython": lambda: shell})
    assert called == (
        [] if there else [("pip", 'install -q "tsteval[course] @ git+https://github.com/a/b"')]
    )


@pytest.mark.parametrize(
    "address", ["github.com/a/b", "https://example.org/a/b", "https://github.com/a"]
)
def test_an_address_that_colab_cannot_read_is_refused(settings, address):
    from colab import read_repository

    with pytest.raises(SystemExit, match="write https://github"):
        read_repository(settings(address))


@needs_builder
def test_slider_states_are_the_packages_own():
    from states import REFERENCE, bleu_states, emd_states

    from tsteval.bleu import sentence_bleu
    from tsteval.sti import earth_movers_distance

    states = bleu_states()
    first = states["outputs"][0]
    assert [state["matched"] for state in first["states"]] == [1] * 8 and all(
        state["plain"] == 1 for state in first["states"]
    )
    for output in states["outputs"]:
        for length, state in enumerate(output["states"], 1):
            assert (
                state["bleu"]
                == sentence_bleu(
                    " ".join(output["words"][:length]),
                    [REFERENCE],
                    max_order=1,
                    smoothing="none",
                    tokenize="none",
                ).score
            )
    found = emd_states()["states"]
    assert len(found) == 3 * 2 * 66
    assert (
        abs(
            found["mostly negative|1 for every move|2|3"]["distance"]
            - earth_movers_distance([0.7, 0.2, 0.1], [0.2, 0.3, 0.5])[0]
        )
        < 1e-12
    )
    json.dumps(found)
