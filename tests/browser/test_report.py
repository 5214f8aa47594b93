"""The report as a reader meets it: on a screen, on a phone, in the dark, on paper, and with a keyboard alone."""

import numpy as np
import pytest

from tsteval.core.metric import Metric, Scores, sign
from tsteval.evaluation import evaluate


def stand_in(name, values):
    described = {
        "name": name,
        "needs": ("source", "output"),
        "columns": (name, f"{name}_of_a_long_name"),
    }

    def score(self, rows, models=None):
        numbers = np.resize(values, len(rows))
        return Scores(dict.fromkeys(self.columns, numbers), signature=sign(name, kind="stand-in"))

    return type(name, (Metric,), {**described, "score": score})()


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    rows = [
        {
            "system": system,
            "source": f"The {n}th mill, " + "built of stone " * 5,
            "output": f"The mill of {system}",
            "reference": "A mill",
        }
        for system in ("one", "two", "three")
        for n in range(4)
    ]
    metrics = [
        "bleu",
        stand_in("sti", [0.3, 0.5, 0.1]),
        stand_in("cps", [0.9, 0.2, 0.4]),
        stand_in("length", [-150.0, -2.5, 30.0]),
    ]
    path = tmp_path_factory.mktemp("report") / "report.html"
    evaluate(rows, metrics, n_boot=20).to_html(path)
    return f"file://{path}"


@pytest.fixture
def open_page(chromium, address):
    pages = []
    said = []

    def open_page(width=1200, scheme="light"):
        page = chromium.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(address)
        pages.append(page)
        return page

    yield open_page
    for page in pages:
        page.close()
    assert said == []  # the page's own policy refused nothing, and no script failed


@pytest.mark.ci
@pytest.mark.parametrize("width", [1200, 420, 320])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_cut(open_page, width, scheme):
    page = open_page(width, scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    outside = page.evaluate(
        "[...document.querySelectorAll('body *')].filter(e => !e.closest('tbody, thead, svg') && "
        "!e.matches('table, caption, picture')"
        " && !e.closest('figure .wide *') && e.getBoundingClientRect().right > innerWidth + "
        "1).map(e => e.outerHTML.slice(0, 80))"
    )
    assert outside == []
    small = page.evaluate(
        "Math.min(...[...document.querySelectorAll('p, dd, td, th, code, span')].filter(e => "
        "e.textContent.trim() && !e.closest('svg'))"
        ".map(e => parseFloat(getComputedStyle(e).fontSize)))"
    )
    assert small >= 11


@pytest.mark.ci
@pytest.mark.parametrize("width", [1280, 390])
def test_every_letter_of_a_figure_is_legible_and_nothing_in_it_is_scrolled_to(open_page, width):
    page = open_page(width)
    page.evaluate("document.querySelectorAll('main > details').forEach(one => one.open = true)")
    sizes = page.evaluate("""() => [
        ...[...document.querySelectorAll('figure svg text')].map(one =>
            parseFloat(getComputedStyle(one).fontSize) * one.getScreenCTM().a),
        ...[...document.querySelectorAll('.panel :is(b, span, small, th, td)')].map(one =>
            parseFloat(getComputedStyle(one).fontSize))]""")
    assert len(sizes) > 100 and min(sizes) >= 11
    wider = "() => [...document.querySelectorAll('.wide')].filter(e => e.scrollWidth > e.clientWidth + 1).length"
    assert page.evaluate(wider) == 0


@pytest.mark.ci
def test_the_questions_stand_in_one_row_on_the_first_screen_and_below_each_other_on_a_phone(
    open_page,
):
    boxes = """() => [...document.querySelectorAll('.panels')[0].querySelectorAll('.panel')].map(one => {
        const {x, y, bottom} = one.getBoundingClientRect();
        const names = [...one.querySelectorAll('th')].filter(name => name.offsetWidth).length;
        return {x, y, bottom, names}; })"""
    wide = open_page(1280).evaluate(boxes)
    assert len(wide) == 4 and len({round(one["y"]) for one in wide}) == 1
    assert [one["names"] for one in wide] == [3, 0, 0, 0] and wide[0]["bottom"] < 800
    page = open_page(390)
    narrow = page.evaluate(boxes)
    assert len({round(one["x"]) for one in narrow}) == 1
    assert [one["names"] for one in narrow] == [3, 3, 3, 3]
    assert page.evaluate("document.documentElement.scrollHeight") < 6000


@pytest.mark.ci
def test_ink_and_ground_differ_enough(open_page):
    luminance = """colour => { const c = colour.match(/[\\d.]+/g).slice(0, 3).map(v => v / 255)
        .map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
                               return .2126 * c[0] + .7152 * c[1] + .0722 * c[2]; }"""
    for scheme in ("light", "dark"):
        page = open_page(scheme=scheme)
        ground = page.evaluate(f"({luminance})(getComputedStyle(document.body).backgroundColor)")
        for place in ("body", ".quiet", "a", "figcaption", "caption", "th button"):
            ink = page.evaluate(
                f"({luminance})(getComputedStyle(document.querySelector('{place}')).color)"
            )
            assert (max(ink, ground) + 0.05) / (min(ink, ground) + 0.05) >= 4.5, (scheme, place)


@pytest.mark.ci
def test_a_table_is_sorted_with_the_keyboard(open_page):
    page = open_page()
    table = page.locator("table.sortable").first
    header = table.locator("th[scope=col]").nth(2)
    status = page.locator("[role=status]").first

    def systems():
        return table.locator("tbody th").all_inner_texts()

    before = systems()
    values = dict(
        zip(
            before,
            map(
                float,
                (
                    cell.get_attribute("data-value")
                    for cell in table.locator("tbody td:nth-child(3)").all()
                ),
            ),
        )
    )
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate(
            "document.activeElement.parentElement === document.querySelectorAll('table.sortable "
            "th[scope=col]')[2]"
        ):
            break
    for key, order in (("Enter", "ascending"), ("Space", "descending")):
        page.keyboard.press(key)
        assert header.get_attribute("aria-sort") == order and order in status.inner_text()
        found = [values[name] for name in systems()]
        assert found == sorted(found, reverse=order == "descending")
    page.keyboard.press("Enter")
    assert systems() == before and header.get_attribute("aria-sort") == "none"


@pytest.mark.ci
def test_paper_shows_all_in_black_on_white(open_page):
    page = open_page(scheme="dark")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(17, 17, 17)"
    assert not page.locator("nav").is_visible()
    page.set_viewport_size(
        {"width": 680, "height": 1000}
    )  # A4 between its margins, at 96 dots an inch
    assert page.evaluate("document.documentElement.scrollWidth") <= 680
    assert page.pdf(format="A4", prefer_css_page_size=True).startswith(b"%PDF")
