"""The site as a reader meets it: formulas, the dark, a phone, the keyboard, sliders without a server, search, and what
axe-core finds."""

import contextlib
import functools
import http.server
import sys
import threading
from pathlib import Path

import pytest

from tests.browser.test_report import address as report_address  # noqa: F401  a fixture

from .axe import violations
from .looks import Looks

ROOT = Path(__file__).parent.parent.parent
PARTS = (
    "templates",  # one page of each kind
    "course",
    "solutions",
    "rooms",
    "reference",
)  # of the site, each with its share of the pages
FORMULAS = {
    "templates": 20,
    "course": 500,
    "solutions": 100,
    "rooms": 40,
    "reference": 0,
}  # each part has these and more
PHONE = {"width": 390, "height": 900}
DESK = {"width": 1250, "height": 900}
# in the dark all rules are asked of these too, and of the last two on a phone
NIGHT = [
    "index",
    "09_attribution",
    "15_evaluation",
    "reference/bleu/corpus_bleu",
    "02_bleu",
    "sliders/emd",
]
sys.path.append(str(ROOT / "nbs" / "site"))


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class WithoutSearch(Quiet):
    """Every page asks for the whole index of the search, a megabyte, and only the search needs it."""

    def do_GET(self):
        if not self.path.startswith("/searchindex.js"):
            return super().do_GET()
        self.send_response(200)
        self.send_header("Content-Type", "text/javascript")
        self.send_header("Content-Length", "0")
        return self.end_headers()

    def end_headers(self):
        self.send_header("Cache-Control", "max-age=3600")
        super().end_headers()


@contextlib.contextmanager
def served(site, handler):
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(handler, directory=str(site))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()


@pytest.fixture(scope="module")
def home(site):
    with served(site, Quiet) as address:
        yield address


def listen(page, said, home):
    """Keep what the page complains of, and what it asks of others than its own server."""

    def note(words):
        said.append(f"{page.url.removeprefix(home)}: {words}")

    page.on(
        "console",
        lambda message: note(message.text) if message.type in ("error", "warning") else None,
    )
    page.on("pageerror", note)
    page.on(
        "request",
        lambda request: (
            None
            if request.url.startswith((home, "data:", "blob:"))
            else note(f"asks for {request.url}")
        ),
    )


@pytest.fixture
def visit(chromium, home):
    contexts = []
    said = []

    def visit(name, width=1250, scheme="light", base=home):
        context = chromium.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme
        )
        contexts.append(context)
        page = context.new_page()
        listen(page, said, base)
        page.goto(base + name + ".html")
        settle(page)
        return page

    yield visit
    for context in contexts:
        context.close()
    assert said == []


def settle(page):
    """Wait for the formulas, the letters, and site.js, which puts what is too wide into places that scroll."""
    page.evaluate(
        "() => window.MathJax && MathJax.startup ? MathJax.startup.promise.then(() => null) : null"
    )
    page.evaluate(
        "() => document.fonts.ready.then(() => new Promise(done => requestAnimationFrame(() => done())))"
    )
    page.wait_for_function("() => document.documentElement.dataset.lookedAt === String(innerWidth)")


# ---- every page, opened once


def pages_of(site, part):
    """The pages of one part; all but the templates are together all pages of the site."""
    if part == "templates":
        return [*NIGHT, "solutions/02_bleu"]
    names = sorted(
        path.relative_to(site).with_suffix("").as_posix()
        for path in site.rglob("*.html")
        if "_static" not in path.parts
    )
    parts = {name: name.split("/")[0] if "/" in name else "course" for name in names}
    return [name for name in names if part == (parts[name] if parts[name] in PARTS else "rooms")]


FORMULAS_FOUND = r"""() => ({
    written: document.querySelectorAll('.math').length,
    set: document.querySelectorAll('.math mjx-container').length,
    wrong: [...document.querySelectorAll('mjx-merror, merror, [data-mjx-error]')].map(e => e.textContent),
    left: [...document.querySelectorAll('article p, article li, article td')].filter(e =>
        !e.closest('.highlight') && /\\\(|\\\[|\$\$|\\frac|\\mathrm/.test(
            [...e.childNodes].filter(n => n.nodeType === 3).map(n => n.data).join('')))
        .map(e => e.textContent.slice(0, 80))})"""
TOO_WIDE = """() => [...document.querySelectorAll('article *')]
    .filter(e => e.getBoundingClientRect().right > innerWidth + 1 &&
        ![...(function*() { for (let a = e.parentElement; a; a = a.parentElement) yield a })()]
            .some(a => /auto|scroll|hidden/.test(getComputedStyle(a).overflowX) &&
                  a !== document.body && a !== document.documentElement))
    .slice(0, 4).map(e => e.outerHTML.slice(0, 120))"""


def moves_sideways(page):
    """What is wider than the window."""
    if page.evaluate("document.documentElement.scrollWidth <= innerWidth"):
        return []
    width = page.evaluate("document.documentElement.scrollWidth")
    return [
        f"{width} pixels wide, because of {part}"
        for part in page.evaluate(TOO_WIDE) or ["the page"]
    ]


def colour(page, scheme):
    page.emulate_media(color_scheme=scheme)
    page.wait_for_function(
        "scheme => document.documentElement.dataset.theme === scheme", arg=scheme
    )


def look_at(page, name, looks):
    """The number of formulas on an opened page, and what is wrong with it: by day, in the dark and on a phone."""
    formulas = page.evaluate(FORMULAS_FOUND)
    yield formulas["set"]
    yield from (f"wrong formula: {text}" for text in formulas["wrong"])
    yield from (f"formula left as it was written: {text}" for text in formulas["left"])
    if formulas["set"] != formulas["written"]:
        yield f"{formulas['written']} formulas, {formulas['set']} are set"
    yield from looks.violations(page)[:5]
    colour(page, "dark")
    yield from (
        f"dark: {line}"
        for line in (looks.violations if name in NIGHT else looks.contrast)(page)[:5]
    )
    page.set_viewport_size(PHONE)
    settle(page)
    yield from (f"dark, phone: {line}" for line in moves_sideways(page))
    if name in NIGHT[-2:]:
        yield from (f"dark, phone: {line}" for line in looks.violations(page)[:5])
    colour(page, "light")
    yield from (f"phone: {line}" for line in moves_sideways(page))
    if name in NIGHT[-2:]:
        yield from (f"phone: {line}" for line in looks.violations(page)[:5])


@pytest.mark.parametrize(
    "part",
    [
        pytest.param(
            part,
            marks=[
                pytest.mark.xdist_group(f"site, {part}"),
                pytest.mark.ci if part == "templates" else pytest.mark.all,
            ],
        )
        for part in PARTS
    ],
)
def test_every_page_shows_its_formulas_fits_a_phone_and_breaks_no_rule_of_axe(chromium, site, part):
    """No page says anything on the console or asks another machine for anything either."""
    context = chromium.new_context(reduced_motion="reduce")
    looks = Looks()
    wrong = {}
    formulas = 0
    said = []
    page = context.new_page()
    with served(site, WithoutSearch) as home:
        listen(page, said, home)
        for name in pages_of(site, part):
            page.set_viewport_size(DESK)
            page.goto(f"{home}{name}.html")
            settle(page)
            found, *lines = look_at(page, name, looks)
            formulas += found
            if lines or said:
                wrong[name] = [*lines, *said]
            said.clear()
    context.close()
    assert wrong == {} and formulas >= FORMULAS[part]


# ---- some pages, looked at more closely


@pytest.mark.ci
def test_a_picture_is_shown_whole_and_a_tap_turns_small_letters_to_their_own_size(visit):
    widths = """() => [...document.querySelectorAll('article .cell_output img')].map(one =>
        [one.naturalWidth, one.getBoundingClientRect().width, one.closest('.cell_output').clientWidth])"""
    pages = [(name, 390) for name in ("index", "06_fluency", "15_evaluation")]
    for name, width in [*pages, ("13_content", 1280)]:
        page = visit(name, width)
        sizes = page.evaluate(widths)
        assert len(sizes) > 1 and all(shown <= room for _, shown, room in sizes), name
        wide = [place for place, (natural, _, room) in enumerate(sizes) if natural > 1.2 * room]
        buttons = page.locator(".enlarge")
        assert wide and buttons.count() == len(wide)
        buttons.first.focus()
        page.keyboard.press("Enter")
        natural, shown, _ = page.evaluate(widths)[wide[0]]
        assert shown >= natural and page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.locator("img.large").evaluate(
            "one => Boolean(one.closest('[data-stop]'))"  # which says that it scrolls
        )
        page.locator("img.large").click()
        assert page.evaluate(widths) == sizes
        page.set_viewport_size({"width": 2200, "height": 900})
        settle(page)
        narrow = sum(natural > 1.2 * room for natural, _, room in page.evaluate(widths))
        assert sum(one.is_visible() for one in buttons.all()) == narrow


@pytest.mark.ci
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_that_is_opened_on_a_phone_does_not_move_sideways(visit, scheme):
    assert {
        name: found
        for name in ("02_bleu", "reference/bleu", "sliders/emd")
        if (found := moves_sideways(visit(name, 420, scheme)))
    } == {}


@pytest.mark.ci
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_grave_in_the_report(chromium, report_address, scheme):  # noqa: F811
    page = chromium.new_page(viewport={"width": 1200, "height": 900}, color_scheme=scheme)
    page.goto(report_address)
    assert violations(page) == []
    page.close()


@pytest.mark.ci
def test_the_policy_holds_without_a_server_too(chromium, site):
    page = chromium.new_page()
    said = []
    page.on(
        "console", lambda message: said.append(message.text) if message.type == "error" else None
    )
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto((site / "02_bleu.html").as_uri())
    settle(page)
    assert page.locator("mjx-container").count() > 50 and said == []
    for smuggle in (
        "const s = document.createElement('script'); s.textContent = 'window.smuggled = 1'; "
        "document.body.append(s)",
        "const i = document.createElement('img'); i.setAttribute('onerror', 'window.smuggled = 2'); "
        "i.src = 'none'; document.body.append(i)",
    ):
        with page.expect_console_message(lambda message: "Content Security Policy" in message.text):
            page.evaluate(smuggle)
    assert page.evaluate("window.smuggled") is None
    page.close()


def press(page, name, key, times=1):
    page.locator(f"#{name}").focus()
    for _ in range(times):
        page.keyboard.press(key)


def number_after(page, words, where):
    text = page.locator(where).inner_text()
    assert words in text, text
    return float(text.split(words)[1].split()[0].rstrip(".,").replace("−", "-"))


@pytest.mark.ci
def test_bleu_under_a_slider_is_the_packages(visit):
    from states import OUTPUTS, REFERENCE

    from tsteval.bleu import brevity_penalty, sentence_bleu

    page = visit("sliders/bleu")
    for place, output in enumerate(OUTPUTS):
        page.locator("#output").select_option(str(place))
        press(page, "kept", "Home")
        for length in range(1, len(output.split()) + 1):
            score = sentence_bleu(
                " ".join(output.split()[:length]),
                [REFERENCE],
                max_order=1,
                smoothing="none",
                tokenize="none",
            )
            assert number_after(page, "BLEU-1 ", "#clipping-said") == pytest.approx(
                score.score, abs=5.1e-4
            )
            assert number_after(page, "clipped ", "#clipping-said") == pytest.approx(
                score.precisions[0], abs=5.1e-4
            )
            assert page.locator("#chips .matched").count() == score.matches[0]
            assert (
                page.locator("#kept").get_attribute("aria-valuetext")
                == f"{length} of {len(output.split())}"
            )
            press(page, "kept", "ArrowRight")
    press(page, "c", "Home")
    press(page, "r", "End")
    for c in range(1, 15):
        assert number_after(page, "penalty is ", "#brevity-said") == pytest.approx(
            brevity_penalty(c, 12), abs=5.1e-4
        )
        press(page, "c", "ArrowRight")
    assert "brevity penalty is 1.000" in page.locator("#penalty-drawing svg").get_attribute(
        "aria-label"
    )


@pytest.mark.ci
def test_earth_movers_distance_under_a_slider_is_the_packages(visit):
    from states import CLASSES, SOURCES

    from tsteval.sti import (
        earth_movers_distance,
        normalized_intensity,
        ordered_cost,
        style_transfer_intensity,
    )

    page = visit("sliders/emd", 420)
    for name, source in SOURCES.items():
        page.locator("#source").select_option(name)
        for cost_name, cost in (
            ("1 for every move", None),
            ("1 for each step on the scale", ordered_cost(3)),
        ):
            page.locator("#cost").select_option(cost_name)
            for target in range(3):
                page.locator("#target").select_option(str(target))
                press(page, "q1", "Home")
                press(page, "q2", "Home")
                press(page, "q1", "ArrowRight", 2 + target)
                press(page, "q2", "ArrowRight", 5)
                output = [(2 + target) / 10, 0.5, (3 - target) / 10]
                assert number_after(page, "Distance ", "#emd-said") == pytest.approx(
                    earth_movers_distance(source, output, cost)[0], abs=5.1e-4
                )
                assert number_after(page, "STI ", "#emd-said") == pytest.approx(
                    style_transfer_intensity([source], [output], target)[0], abs=5.1e-4
                )
                assert number_after(
                    page, f"normalised intensity towards {CLASSES[target]}", "#emd-numbers"
                ) == pytest.approx(normalized_intensity([source], [output], target)[0], abs=5.1e-4)
    press(page, "q1", "End")  # all of it: the other share gives way
    assert (
        page.locator("#q2 + output").inner_text() == "0.0"
        and page.locator("#q1 + output").inner_text() == "1.0"
    )
    press(page, "q2", "End")
    assert page.locator("#q1 + output").inner_text() == "0.0"


@pytest.mark.ci
def test_masking_under_a_slider_is_the_packages(visit, classifier, encoder):
    from states import PAIR

    from tsteval.attribution import integrated_gradients
    from tsteval.cps import cosine, mask_style

    found = integrated_gradients(classifier, list(PAIR.values()))
    page = visit("sliders/mask")
    for strategy in ("pad", "remove"):
        page.locator("#strategy").select_option(strategy)
        press(page, "threshold", "Home")
        for threshold in (0.0, 0.3, 0.6, 1.0):
            masked = [mask_style(text, threshold, strategy, "word") for text in found]
            assert page.locator("#masked td").all_inner_texts() == masked
            before, after = encoder.encode(masked)
            assert number_after(page, "score is ", "#mask-said") == pytest.approx(
                cosine([before], [after])[0], abs=6e-4
            )
            press(page, "threshold", "ArrowRight", {0.0: 15, 0.3: 15, 0.6: 20, 1.0: 0}[threshold])


@pytest.mark.ci
def test_search_finds_a_word_and_a_function(visit, home):
    page = visit("index")
    for words, goal in (("brevity penalty", "02_bleu.html"), ("corpus_bleu", "corpus_bleu")):
        page.goto(f"{home}search.html?q={words.replace(' ', '+')}")
        # Sphinx puts one result after the other onto the page
        page.wait_for_function(
            "goal => [...document.querySelectorAll('#search-results li a')].slice(0, 12)"
            ".some(link => link.getAttribute('href').includes(goal))",
            arg=goal,
        )


@pytest.mark.ci
def test_search_finds_the_task_first(visit, home):
    page = visit("index")
    for words, goal in (("compare", "how_to_compare"), ("release", "how_to_gate")):
        page.goto(f"{home}search.html?q={words}")
        first = page.locator("#search-results li a").first
        first.wait_for()
        assert first.get_attribute("href").startswith(f"{goal}.html"), words


@pytest.mark.ci
def test_code_is_wrapped_and_not_cut(visit):
    for width in (1280, 390):
        wide = visit("02_bleu", width).evaluate(
            """[...document.querySelectorAll('div.cell_input pre')].filter(e => e.offsetParent)
            .map(e => [e, e.parentElement].some(one => one.scrollWidth > one.clientWidth + 1))"""
        )
        assert len(wide) > 20 and not any(wide), width


@pytest.mark.ci
def test_a_reader_with_a_keyboard_gets_everywhere(visit):
    page = visit("02_bleu")
    page.keyboard.press("Tab")
    assert "Skip to main content" in page.evaluate("document.activeElement.textContent")
    page.locator("details.hide summary").first.focus()
    page.keyboard.press("Enter")
    assert page.locator("details.hide").first.get_attribute("open") is not None
    button = page.locator("button.theme-switch-button:visible").first
    button.focus()
    before = page.evaluate("document.documentElement.dataset.theme")
    for _ in range(3):
        page.keyboard.press("Enter")
        if page.evaluate("document.documentElement.dataset.theme") != before:
            break
    assert page.evaluate("document.documentElement.dataset.theme") != before
