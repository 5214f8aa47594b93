"""The site as a reader meets it: formulas, the dark, a phone, the keyboard, sliders without a server, search, and what
axe-core finds."""
import functools
import http.server
import sys
import threading
from pathlib import Path

import pytest

from tests.browser.test_report import address as report_address  # noqa: F401  a fixture

from .axe import violations

ROOT = Path(__file__).parent.parent.parent
CHAPTERS = sorted(path.stem for path in ROOT.glob("nbs/[0-9]*.ipynb"))
NOTEBOOKS = sorted(str(path.relative_to(ROOT / "nbs").with_suffix(""))
                   for path in [*ROOT.glob("nbs/*.ipynb"), *ROOT.glob("nbs/[!.]*/*.ipynb")])
OTHERS = ["index", "how_to_own_style", "changelog", "sliders/bleu", "sliders/emd", "sliders/mask", "reference/index",
          "reference/bleu",
          "reference/bleu/corpus_bleu", "reference/evaluation/Evaluation", "reference/core.metric", "report/charts",
          "solutions/08_sti", "search", "genindex"]
sys.path.append(str(ROOT / "nbs" / "site"))


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_): pass


@pytest.fixture(scope="module")
def home(site):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()


@pytest.fixture
def visit(chromium, home):
    contexts, said = [], []
    def visit(name, width=1250, scheme="light", base=home):
        context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: said.append(f"{name}: {message.text}")
                if message.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: said.append(f"{name}: {error}"))
        page.on("request", lambda request: said.append(f"{name} asks for {request.url}")
                if not request.url.startswith((base, "data:", "blob:")) else None)
        page.goto(base + name + ".html")
        settle(page)
        return page
    yield visit
    for context in contexts: context.close()
    assert said == []


def settle(page):
    """Wait for the formulas, and for what site.js does after them."""
    page.evaluate("() => window.MathJax && MathJax.startup ? MathJax.startup.promise : null")
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => setTimeout(done, 50)))")


@pytest.mark.parametrize("room", ["", "solutions/", "lexical/", "studies/"])
def test_every_formula_is_set(visit, room):
    formulas = 0
    page = None
    for name in [name for name in NOTEBOOKS if name.startswith(room) and "/" not in name[len(room):]]:
        if page is None: page = visit(name)
        else:
            page.goto(page.url.rsplit("/" + room if room else "/", 1)[0] + f"/{name}.html")
            settle(page)
        found = page.evaluate("""() => ({written: document.querySelectorAll('.math').length,
            set: document.querySelectorAll('.math mjx-container').length,
            wrong: [...document.querySelectorAll('mjx-merror, merror, [data-mjx-error]')].map(e => e.textContent),
            left: [...document.querySelectorAll('article p, article li, article td')].filter(e =>
                !e.closest('.highlight') &&
                  /\\\\\\(|\\\\\\[|\\$\\$|\\\\frac|\\\\mathrm/.test(
                      [...e.childNodes].filter(n => n.nodeType === 3).map(n => n.data).join('')))
                  .map(e => e.textContent.slice(0, 80))})""")
        assert found["wrong"] == [] and found["left"] == [], (name, found)
        assert found["set"] == found["written"], name
        formulas += found["set"]
    assert formulas > {"": 500, "solutions/": 100, "lexical/": 20, "studies/": 20}[room]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_every_page_without_moving_sideways(visit, scheme):
    wide = {}
    for name in [*CHAPTERS, *OTHERS] if scheme == "light" else ["02_bleu", "reference/bleu", "sliders/emd"]:
        page = visit(name, 420, scheme)
        width = page.evaluate("document.documentElement.scrollWidth")
        if width > 420:
            wide[name] = width, page.evaluate("""[...document.querySelectorAll('article *')]
                .filter(e => e.getBoundingClientRect().right > innerWidth + 1 &&
                ![...(function*() { for (let a = e.parentElement; a; a = a.parentElement) yield a })()]
                    .some(a => /auto|scroll|hidden/.test(getComputedStyle(a).overflowX) &&
                          a !== document.body && a !== document.documentElement))
                .slice(0, 4).map(e => e.outerHTML.slice(0, 120))""")
        page.context.close()
    assert wide == {}


def test_a_phone_shows_pictures_with_letters_of_their_size(visit):
    for name in ("index", "06_fluency", "15_evaluation"):
        sizes = visit(name, 390).evaluate("""[...document.querySelectorAll('article .cell_output img')].map(
            one => [one.naturalWidth, one.getBoundingClientRect().width, one.closest('.cell_output').clientWidth])""")
        assert len(sizes) > 1 and all(shown >= natural - 1 for natural, shown, _ in sizes), name
        assert max(natural for natural, *_ in sizes) > sizes[0][2], "one picture at least is wider than a phone"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_grave(visit, scheme):
    found = {}  # in every fourth chapter: axe takes seconds for a long page
    for name in [*CHAPTERS[::4], *OTHERS] if scheme == "light" else ["index", "02_bleu", "09_attribution",
                                                                     "15_evaluation", "sliders/emd",
                                                                     "reference/bleu/corpus_bleu"]:
        page = visit(name, 1250, scheme)
        if lines := violations(page): found[name] = lines[:5]
        page.context.close()
    for name in ("02_bleu", "sliders/emd"):
        if lines := violations(visit(name, 420, scheme)): found[f"{name}, 420"] = lines[:5]
    assert found == {}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_grave_in_the_report(chromium, report_address, scheme):  # noqa: F811
    page = chromium.new_page(viewport={"width": 1200, "height": 900}, color_scheme=scheme)
    page.goto(report_address)
    assert violations(page) == []
    page.close()


def test_the_policy_holds_without_a_server_too(chromium, site):
    page = chromium.new_page()
    said = []
    page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto((site / "02_bleu.html").as_uri())
    settle(page)
    assert page.locator("mjx-container").count() > 50 and said == []
    page.evaluate("const s = document.createElement('script'); s.textContent = 'window.smuggled = 1'; "
                  "document.body.append(s)")
    page.evaluate("const i = document.createElement('img'); i.setAttribute('onerror', 'window.smuggled = 2'); i.src = "
                  "'none'; document.body.append(i)")
    page.wait_for_timeout(200)
    assert page.evaluate("window.smuggled") is None and any("Content Security Policy" in line for line in said)
    page.close()


def press(page, name, key, times=1):
    page.locator(f"#{name}").focus()
    for _ in range(times): page.keyboard.press(key)


def number_after(page, words, where):
    text = page.locator(where).inner_text()
    assert words in text, text
    return float(text.split(words)[1].split()[0].rstrip(".,").replace("−", "-"))


def test_bleu_under_a_slider_is_the_packages(visit):
    from states import OUTPUTS, REFERENCE

    from tsteval.bleu import brevity_penalty, sentence_bleu
    page = visit("sliders/bleu")
    for place, output in enumerate(OUTPUTS):
        page.locator("#output").select_option(str(place))
        press(page, "kept", "Home")
        for length in range(1, len(output.split()) + 1):
            score = sentence_bleu(" ".join(output.split()[:length]), [REFERENCE], max_order=1, smoothing="none",
                                  tokenize="none")
            assert number_after(page, "BLEU-1 ", "#clipping-said") == pytest.approx(score.score, abs=5.1e-4)
            assert number_after(page, "clipped ", "#clipping-said") == pytest.approx(score.precisions[0], abs=5.1e-4)
            assert page.locator("#chips .matched").count() == score.matches[0]
            assert page.locator("#kept").get_attribute("aria-valuetext") == f"{length} of {len(output.split())}"
            press(page, "kept", "ArrowRight")
    press(page, "c", "Home")
    press(page, "r", "End")
    for c in range(1, 15):
        assert number_after(page, "penalty is ", "#brevity-said") == pytest.approx(brevity_penalty(c, 12), abs=5.1e-4)
        press(page, "c", "ArrowRight")
    assert "brevity penalty is 1.000" in page.locator("#penalty-drawing svg").get_attribute("aria-label")


def test_earth_movers_distance_under_a_slider_is_the_packages(visit):
    from states import CLASSES, SOURCES

    from tsteval.sti import earth_movers_distance, normalized_intensity, ordered_cost, style_transfer_intensity
    page = visit("sliders/emd", 420)
    for name, source in SOURCES.items():
        page.locator("#source").select_option(name)
        for cost_name, cost in (("1 for every move", None), ("1 for each step on the scale", ordered_cost(3))):
            page.locator("#cost").select_option(cost_name)
            for target in range(3):
                page.locator("#target").select_option(str(target))
                press(page, "q1", "Home")
                press(page, "q2", "Home")
                press(page, "q1", "ArrowRight", 2 + target)
                press(page, "q2", "ArrowRight", 5)
                output = [(2 + target) / 10, 0.5, (3 - target) / 10]
                assert number_after(page, "Distance ",
                                    "#emd-said") == pytest.approx(earth_movers_distance(source, output, cost)[0],
                                                                  abs=5.1e-4)
                assert number_after(page, "STI ",
                                    "#emd-said") == pytest.approx(style_transfer_intensity([source], [output],
                                                                                           target)[0], abs=5.1e-4)
                assert number_after(page, f"normalised intensity towards {CLASSES[target]}",
                                    "#emd-numbers") == pytest.approx(
                    normalized_intensity([source], [output], target)[0], abs=5.1e-4)
    press(page, "q1", "End")  # all of it: the other share gives way
    assert page.locator("#q2 + output").inner_text() == "0.0" and page.locator("#q1 + output").inner_text() == "1.0"
    press(page, "q2", "End")
    assert page.locator("#q1 + output").inner_text() == "0.0"


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
            assert number_after(page, "score is ", "#mask-said") == pytest.approx(cosine([before], [after])[0],
                                                                                  abs=6e-4)
            press(page, "threshold", "ArrowRight", {0.0: 15, 0.3: 15, 0.6: 20, 1.0: 0}[threshold])


def test_search_finds_a_word_and_a_function(visit, home):
    page = visit("index")
    for words, goal in (("brevity penalty", "02_bleu.html"), ("corpus_bleu", "corpus_bleu")):
        page.goto(f"{home}search.html?q={words.replace(' ', '+')}")
        page.locator("#search-results li a").first.wait_for()
        page.wait_for_timeout(500)
        assert any(goal in link
                   for link in page.locator("#search-results li a").evaluate_all("found => found.slice(0, 12).map(a "
                                                                                 "=> a.getAttribute('href'))")), words


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
        if page.evaluate("document.documentElement.dataset.theme") != before: break
    assert page.evaluate("document.documentElement.dataset.theme") != before
