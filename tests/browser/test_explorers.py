"""Each explorer in JupyterLab and in Voila: every control is moved in the browser, and the new picture is read back.

Screenshots are written where BROWSER_SHOTS names a folder.
"""

import csv
import json
import os
import re
from pathlib import Path

import pytest

from tsteval.explorers.catalogue import EXPLORERS, GROUPS

from .axe import violations
from .conftest import Server, write_notebook

SOURCE = "The wonderful museum finally reopened in May."
OUTPUT = "The museum reopened in May."
MOVES = {  # explorer: (kind of control, its label, what to do)
    "bleu": [
        ("choice", "smoothing", "floor"),
        ("text", "candidate", "A cat, on a mat."),
        ("text", "references", "A cat sat on a mat.\nOn a mat: a cat."),
        ("slider", "marked n-grams", "ArrowRight"),
        ("slider", "longest n-gram", "ArrowLeft"),
        ("choice", "tokeniser", "char"),
        ("slider", "1-gram weight", "ArrowLeft"),
        ("slider", "2-gram weight", "ArrowLeft"),
        ("slider", "3-gram weight", "ArrowLeft"),
    ],
    "rouge": [
        ("text", "candidate", "A cat, on a mat."),
        ("text", "reference", "A cat sat on a mat."),
        ("choice", "marked", "ROUGE-L"),
        ("choice", "marked", "ROUGE-2"),
        ("text", "candidate", "The cats sat."),
        ("check", "compare stems", None),
    ],
    "ngram": [
        ("text", "sentence", "The church was built in 1880."),
        ("choice", "smoothing", "witten_bell"),
        ("slider", "order", "ArrowRight"),
        ("slider", "shuffle number", "ArrowRight"),
    ],
    "ameliorations": [
        ("text", "sentence", "The church was built in 1880."),
        ("choice", "smoothing", "witten_bell"),
        ("slider", "order", "ArrowRight"),
        ("slider", "share of good", "ArrowLeft"),
        ("slider", "share of bad", "ArrowLeft"),
        ("slider", "shuffle number", "ArrowRight"),
    ],
    "fluency": [
        ("text", "first", SOURCE),
        ("text", "second", "Museum the reopened May in."),
        ("choice", "language model", "3-grams of the teaching pairs"),
    ],
    "emd": [
        ("slider", "p of class 1", "ArrowLeft"),
        ("slider", "q of class 2", "ArrowRight"),
        ("slider", "target class", "ArrowLeft"),
        ("choice", "cost", "steps between classes"),
        ("choice", "cost", "as typed below"),
        ("text", "own costs", "0 2 9\n2 0 2\n9 2 0"),
        ("choice", "cost", "1 for every move"),
        ("slider", "classes", "ArrowLeft"),
    ],
    "style": [
        ("text", "source", SOURCE),
        ("text", "output", OUTPUT),
        ("text", "classifier", "./no-such-model"),
    ],
    "mask": [
        ("text", "source", SOURCE),
        ("text", "output", OUTPUT),
        ("slider", "threshold", "End"),
        ("choice", "strategy", "remove"),
        ("choice", "unit", "word"),
    ],
    "properties": [
        ("text", "text", "I can't tell, sorry."),
        ("text", "input", "When did it open?"),
    ],
    "agreement": [
        ("choice", "metric", "chrf"),
        ("choice", "criterion", "overall"),
        ("choice", "data set", "simulated, 50 sources"),
        ("choice", "metric", "misleading"),
        ("choice", "data set", "simulated, 12 sources"),
    ],
    "evaluation": [
        ("list", "pair", 3),
        *[
            ("check", label, None)
            for label in ("unchanged", "output not in the target style", "negative STI")
            for _ in ("on", "off")
        ],
        ("choice", "system", "copy"),
        ("choice", "system", "all systems"),
        ("slider", "CPS at most", "PageDown"),
    ],
}
HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "x " * 10_000,
    "\u05e9\u05dc\u05d5\u05dd \u202eabc",
    "\U0001f469\u200d\U0001f52c \U0001f600",
    "\ud83d alone \udc00",
]
SHOTS = os.environ.get("BROWSER_SHOTS")


# what an explorer draws last: its map of points comes first, and while only that is new, the explorer still works
PICTURE = """() => {
    if (document.querySelector('[role=status]')) return null;
    return [...document.querySelectorAll('.tsteval-picture, [role=alert]')]
        .filter(part => !part.closest('[class*=tsteval-points]')).map(part => part.outerHTML).join('');
}"""
LABEL = """() => {
    const box = document.activeElement.closest('.widget-inline-hbox, .widget-toggle-buttons');
    return box?.querySelector('label, .widget-label')?.textContent ?? '';
}"""


def open_explorer(place, name, watched, request):
    """Load the page with one explorer, and wait for its first picture."""
    page = watched.page
    server = request.getfixturevalue(place)
    server.seen = len(server.errors())
    if place == "lab":
        write_notebook(
            server.folder / f"{name}.ipynb",
            f"from tsteval.explorers.catalogue import EXPLORERS\nEXPLORERS['{name}']()",
        )
        page.goto(f"{server.address}/doc/tree/{name}.ipynb?reset")
        page.wait_for_function(
            "window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'"
        )
        page.evaluate("() => { window.jupyterapp.commands.execute('notebook:run-all-cells') }")
    else:
        page.goto(server.start)
        page.wait_for_selector(".tsteval-picture")
        if name != "bleu":
            order = [key for keys in GROUPS.values() for key in keys]
            control(page, "explorer").locator("select").select_option(index=order.index(name))
    page.get_by_text(EXPLORERS[name].question, exact=True).first.wait_for(timeout=300_000)
    page.wait_for_function(PICTURE, timeout=300_000)
    return page, server


def shown(page):
    """The picture and the message as the browser holds them; None while the explorer works."""
    return page.evaluate(PICTURE)


def control(page, label):
    """The box of the control with this label."""
    exact = re.compile(f"^{re.escape(label)}$")
    return (
        page.locator(".widget-inline-hbox, .widget-checkbox")
        .filter(has=page.locator("label, .widget-label, span").filter(has_text=exact))
        .last
    )


def move(page, kind, label, value):
    """Move a control as a person at the keyboard does, and wait for another picture."""
    before = shown(page)
    box = control(page, label)
    if kind == "text":
        box.locator("textarea").fill(value)
    elif kind == "slider":
        handle = box.locator(".noUi-handle")
        handle.focus()
        handle.press(value)
    elif kind == "choice":
        box.locator("select").select_option(label=value)
    elif kind == "list":
        box.locator("select").select_option(index=value)
    else:
        box.locator("input").press("Space")
    return wait_for_another(page, before, f"{kind} {label!r}")


def wait_for_another(page, before, what):
    for _ in range(1200):  # two minutes: a machine may be busy
        picture = shown(page)
        if picture not in (None, before):
            return picture
        page.wait_for_timeout(100)
    raise AssertionError(f"{what}: the picture did not change")


def wait_until_done(page):
    page.wait_for_timeout(1500)  # the control waits a moment before the explorer begins
    for _ in range(1200):
        if shown(page) is not None:
            return
        page.wait_for_timeout(100)
    raise AssertionError("the explorer does not end")


def shoot(page, name):
    if SHOTS:
        Path(SHOTS).mkdir(exist_ok=True)
        page.screenshot(path=f"{SHOTS}/{name}.png", full_page=True)


def assert_quiet(watched, server):
    assert not watched.complaints
    assert server.errors()[server.seen :] == []


@pytest.fixture(autouse=True)
def no_kernel_stays(request):
    """Ends the kernels that a test started in JupyterLab; Voila ends its own when a page is closed."""
    yield
    place = request.node.callspec.params.get("place") if hasattr(request.node, "callspec") else None
    if place == "lab" or "lab" in request.fixturenames:
        request.getfixturevalue("lab").stop_kernels()


IN_CI = {("lab", "emd"), ("voila", "bleu"), ("voila", "evaluation")}  # one of each kind


@pytest.mark.parametrize(
    "place, name",
    [
        pytest.param(
            place, name, marks=pytest.mark.ci if (place, name) in IN_CI else pytest.mark.all
        )
        for place in ("lab", "voila")
        for name in MOVES
    ],
)
def test_every_control_moves_the_picture(place, name, watched, request):
    page, server = open_explorer(place, name, watched, request)
    shoot(page, f"{place}-{name}")
    if place == "lab":
        type_hostile_texts(page, name)
    for kind, label, value in MOVES[name]:
        picture = move(page, kind, label, value)
    shoot(page, f"{place}-{name}-moved")
    if name == "style":
        assert 'role="alert"' in picture and "no-such-model" in picture
    assert_quiet(watched, server)


def type_hostile_texts(page, name):
    """Into every text field; each is shown as text, none is run, and afterwards the explorer is as it was."""
    first = shown(page)
    if name == "emd":
        move(page, "choice", "cost", "as typed below")
    for label in (label for kind, label, _ in MOVES[name] if kind == "text"):
        field = control(page, label).locator("textarea")
        usual = field.input_value()
        for text in HOSTILE:
            before = shown(page)
            put = "field => { field.value = %s; field.dispatchEvent(new Event('input', {bubbles: true})) }"
            field.evaluate(
                put % json.dumps(text)
            )  # written into the code: half a character travels only escaped
            # two odd inputs may have the same properties
            if (name, label) == ("properties", "input"):
                wait_until_done(page)
            else:
                wait_for_another(page, before, f"hostile text in {label!r}: {text[:30]!r}")
            assert not page.locator(
                ".tsteval-picture script, .tsteval-picture img, [role=alert] img"
            ).count()
        move(page, "text", label, usual)
    if name == "emd":
        move(page, "choice", "cost", "1 for every move")
    for _ in range(300):  # on a busy machine a picture of the step before may come first
        if shown(page) == first:
            return
        page.wait_for_timeout(100)
    assert shown(page) == first


@pytest.mark.all
def test_the_selection_is_exported(watched, request):
    page, server = open_explorer("voila", "evaluation", watched, request)
    move(page, "choice", "system", "copy")
    page.get_by_role("button", name="Make a CSV file of these pairs").click()
    with page.expect_download() as download:
        page.get_by_role("link", name="Download 72 pairs").click()
    with open(download.value.path(), newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert download.value.suggested_filename == "selection.csv" and len(rows) == 72
    assert {row["system"] for row in rows} == {"copy"} and all(
        row["source"] == row["output"] for row in rows
    )
    assert_quiet(watched, server)


# what ipywidgets itself draws: its sliders have no name of their own, and no option gives them one
THEIRS = re.compile(r"noUi-|aria-input-field-name \\|.*slider")
# a point is smaller than a finger where points are dense; the list beside does the same (WCAG 2.5.8, exception
# "equivalent")
EQUIVALENT = re.compile(r"target-size .*(tsteval-points|widget-toggle-button)")


DOUBT = "system 1 of nine: 2 of 2 outputs equal their source."


@pytest.fixture(scope="module")
def results(tmp_path_factory, chromium):
    """A server of one's own results, as a reader starts it."""
    import sys

    import pandas as pd

    folder = tmp_path_factory.mktemp("results")
    names = [f"system {place} of nine" for place in range(9)]
    texts = ["A fine bridge.", "A great dam."]
    rows = [
        {
            "system": name,
            "source": text,
            "output": f"{text[:-1]} {place}.",
            "sti": place / 10 - turn / 5,
            "cps": 1 - place / 20 - turn / 10,
        }
        for place, name in enumerate(names)
        for turn, text in enumerate(texts)
    ]
    pd.DataFrame(rows).to_csv(folder / "per_pair.csv", index=False)
    systems = [
        {"system": name, "n": 2}
        | {
            f"{score}{end}": value + shift
            for score, value in (("sti", place / 10 - 0.1), ("cps", 0.95 - place / 20))
            for end, shift in (("", 0), ("_low", -0.05), ("_high", 0.05))
        }
        for place, name in enumerate(names)
    ]
    (folder / "summary.json").write_text(
        json.dumps({"systems": systems, "settings": {"metrics": ["sti", "cps"]}, "doubts": [DOUBT]})
    )
    code = "import sys; from tsteval.cli import main; sys.exit(main())"
    server = Server(
        [sys.executable, "-c", code, "explore", str(folder), "--no-browser"], folder, "/static/none"
    )
    yield server
    server.stop()


@pytest.mark.ci
def test_own_results_are_read_with_the_mouse_and_with_the_keyboard(results, watched):
    page = watched.page
    page.goto(results.start)
    page.get_by_text("All scores of").wait_for(timeout=300_000)
    page.get_by_role("button", name="Which texts lie behind a score?").click()
    page.get_by_text("The lowest CPS").wait_for(timeout=300_000)
    points = page.locator("[class*=tsteval-points] button")
    assert points.count() == 18
    away = page.evaluate("""() => {
        const rules = document.querySelector('[class*=tsteval-points] style').sheet.cssRules;
        const frame = document.querySelector('[class*=tsteval-points]').getBoundingClientRect();
        return Math.max(...[...document.querySelectorAll('[class*=tsteval-points] button')].map((button, place) => {
            const rule = [...rules].find(rule => rule.selectorText?.endsWith(`nth-child(${place + 1})`)),
                box = button.getBoundingClientRect();
            return Math.hypot(box.x + box.width / 2 - frame.x - parseFloat(rule.style.left) / 100 * frame.width,
                box.y + box.height / 2 - frame.y - parseFloat(rule.style.top) / 100 * frame.height);
        }))}""")
    assert away < 1.5  # each button lies on its point
    before = shown(page)
    points.nth(3).focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    after = wait_for_another(page, before, "Enter on a point")
    assert "<ins" in after
    box = points.nth(17).bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert wait_for_another(page, after, "a click on a point") != after
    shoot(page, "voila-results")
    found = [
        line for line in violations(page) if not THEIRS.search(line) and not EQUIVALENT.search(line)
    ]
    assert found == []
    assert not watched.complaints


CUT = """() => [...document.querySelectorAll('.tsteval-explorer :is(svg, select, button, textarea, td, label)')]
    .map(part => {
        const box = part.getBoundingClientRect();
        let left = 0, right = document.documentElement.clientWidth;
        for (let above = part.parentElement; above; above = above.parentElement)
            if (getComputedStyle(above).overflowX != 'visible') {
                const frame = above.getBoundingClientRect();
                [left, right] = [Math.max(left, frame.left), Math.min(right, frame.right)];
            }
        const cut = box.width && (box.left < left - 1 || box.right > right + 1);
        return cut ? `${part.tagName} ${part.textContent.slice(0, 30)}: ${box.left} to ${box.right}` : '';
    }).filter(Boolean)"""


@pytest.mark.all
@pytest.mark.parametrize(
    "tab, title",
    [
        ("Which system is better?", "All scores of"),
        ("Which texts lie behind a score?", "The lowest CPS"),
    ],
)
def test_own_results_are_whole_on_a_telephone(results, watched, tab, title):
    """Map, list and tables end within 390 pixels, and nothing has to be moved sideways."""
    page = watched.page
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(results.start)
    page.get_by_role("button", name=tab).click()
    page.get_by_text(title).last.wait_for(timeout=300_000)
    assert page.get_by_text(f"doubt: {DOUBT}").is_visible()
    shoot(page, f"voila-results-390-{tab.split()[1]}")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.evaluate(CUT) == []
    assert page.evaluate(SMALL) == []
    assert not watched.elsewhere and not watched.complaints


# letters of less than 11 pixels, as they are drawn
SMALL = """() => [...document.querySelectorAll('.tsteval-explorer *')].filter(part => {
    if (![...part.childNodes].some(node => node.nodeType === 3 && node.data.trim())) return false;
    const svg = part.closest('svg'), box = part.getBoundingClientRect();
    if (!box.width || part.matches('style, [class*=tsteval-points] button')) return false;
    const scale = svg ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : 1;
    return parseFloat(getComputedStyle(part).fontSize) * scale < 10.9;
}).map(part => part.textContent.slice(0, 30))"""


@pytest.mark.all
@pytest.mark.parametrize("name", [name for name in MOVES if name != "evaluation"])
def test_a_narrow_page_needs_no_sideways_scrolling_and_breaks_no_rule(name, watched, request):
    watched.page.set_viewport_size({"width": 390, "height": 900})
    page, _ = open_explorer("voila", name, watched, request)
    shoot(page, f"voila-{name}-390")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.evaluate(CUT) == []
    assert page.evaluate(SMALL) == []
    narrow = page.evaluate("""() => [...document.querySelectorAll('.tsteval-picture td')].filter(cell => {
        const text = cell.textContent.trim(), box = cell.getBoundingClientRect();
        return text.length > 4 && !cell.querySelector('svg') && box.width < 24;}).map(cell => cell.textContent)""")
    assert narrow == []  # no column of single letters
    assert [line for line in violations(page) if not THEIRS.search(line)] == []


@pytest.mark.ci
def test_a_phone_shows_the_question_on_the_first_screen_and_a_desk_larger_drawings(
    watched, request
):
    page, _ = open_explorer("voila", "bleu", watched, request)
    width = "document.querySelector('.tsteval-picture svg').getBoundingClientRect().width"
    large = page.evaluate(width)
    page.set_viewport_size({"width": 390, "height": 844})
    assert large > 1.2 * page.evaluate(width)
    box = page.get_by_text(EXPLORERS["bleu"].question, exact=True).first.bounding_box()
    assert box["y"] < 150
    assert control(page, "candidate").locator("textarea").bounding_box()["width"] > 320
    assert page.evaluate(SMALL) == [] and page.evaluate(CUT) == []


@pytest.mark.all
def test_a_tab_leads_to_its_chapter(watched, request):
    page, _server = open_explorer("voila", "rouge", watched, request)
    with page.expect_popup() as opened:
        page.get_by_role("link", name="Chapter 3, rouge").click()
    opened.value.get_by_role("heading", name=re.compile("^3. ROUGE")).first.wait_for(
        timeout=120_000
    )
    assert "#| hide" not in opened.value.content()
    assert (
        not watched.elsewhere
    )  # neither the page nor the chapter asks another machine for anything


@pytest.mark.ci
def test_every_control_is_reached_with_the_tab_key(watched, request):
    page, _server = open_explorer("voila", "mask", watched, request)
    page.locator("body").press("Tab")
    reached = set()
    for _ in range(40):
        reached.add(page.evaluate(LABEL))
        page.keyboard.press("Tab")
    assert {
        "explorer",
        "source",
        "output",
        "threshold",
        "strategy",
        "unit",
    } <= reached


@pytest.mark.ci
def test_a_notebook_without_its_kernel_shows_the_picture(lab, watched):
    """A chapter as it is stored, from somebody whom JupyterLab has no reason to trust, opened and not run."""
    from tsteval.explorers.words import bleu_explorer

    explorer = bleu_explorer()
    output = {
        "output_type": "execute_result",
        "execution_count": 1,
        "metadata": {},
        "data": {"text/plain": "BLEU", "text/html": str(explorer.static_picture())},
    }
    explorer.close()
    write_notebook(lab.folder / "still.ipynb", "bleu_explorer()")
    notebook = json.loads((lab.folder / "still.ipynb").read_text())
    notebook["cells"][0]["outputs"] = [output]
    (lab.folder / "still.ipynb").write_text(json.dumps(notebook))
    page = watched.page
    page.goto(f"{lab.address}/doc/tree/still.ipynb?reset")
    page.wait_for_selector(".tsteval-picture")
    assert "brevity penalty" in page.locator(".tsteval-picture").inner_text()
    width = page.evaluate("document.querySelector('.tsteval-picture img').naturalWidth")
    assert width > 100  # the drawing was decoded
    shoot(page, "lab-still")
    assert not watched.complaints
