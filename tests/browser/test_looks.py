"""What tests/browser/looks.py leaves out, axe-core would have found sufficient too."""
import re

import pytest

from .axe import inject, violations
from .looks import Looks

PAGE = """<!doctype html><html lang="en" data-theme="light"><head><title>Looks</title><style>
    body { color: #222; background: #fff } .pale { color: #bbb } .box { background: #333; color: #eee }
    .box .dim { color: #666 } .cover { position: absolute; width: 9em; height: 1.2em; background: #000; z-index: 2 }
    @media (prefers-color-scheme: dark) { body { color: #ddd; background: #111 } .night { color: #333 } }
</style></head><body><main><h1>Looks</h1>%s</main></body></html>"""
USUAL = "".join(f"<p>Paragraph {number} <code>x</code></p>" for number in range(30))


@pytest.fixture
def opened(chromium, tmp_path):
    """Opens a page with these paragraphs; all are closed at the end."""
    context = chromium.new_context(reduced_motion="reduce")
    def opened(body, scheme="light"):
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.html"
        path.write_text(PAGE % body, encoding="utf-8")
        page = context.new_page()
        page.emulate_media(color_scheme=scheme)
        page.goto(path.as_uri())
        return page
    yield opened
    context.close()


def elements(lines): return {re.search(r"<(\w+)[^|]*>([^<|]*)<", line)[2].strip() for line in lines}


BAD = {"a pale text among many": '<p class="pale">pale</p>',
       "in a box": '<div class="box"><p>bright</p><p class="dim">dim</p></div>',
       "behind a half transparent layer": '<div style="opacity: 0.3"><p>faint</p></div>',
       "after one of its look that is covered":
           '<div class="cover"></div><p class="pale">covered and longer</p>'
           '<p style="margin-top: 3em" class="pale">pale</p>'}


@pytest.mark.parametrize("body", BAD.values(), ids=BAD)
def test_of_each_look_that_fails_one_text_is_named(opened, body):
    looks, body = Looks(), USUAL + body + USUAL
    assert looks.violations(opened(USUAL)) == []
    page = opened(body)
    found, alone = looks.violations(page), violations(opened(body))
    assert elements(found) == elements(alone) != set()
    assert all("color-contrast" in line for line in found)
    assert elements(looks.violations(opened(body))) == elements(alone)  # and again on the next page


def test_colours_of_the_dark_are_looks_of_their_own(opened):
    looks, body = Looks(), USUAL + '<p class="night">lost by night</p>'
    page = opened(body)
    assert looks.violations(page) == []
    page.emulate_media(color_scheme="dark")
    assert elements(looks.contrast(page)) == {"lost by night"}


def test_other_rules_are_asked_of_every_element(opened):
    looks = Looks()
    assert looks.violations(opened(USUAL)) == []
    found = looks.violations(opened(USUAL + "<button></button>" + '<a href="#"></a>'))
    assert {line.split(" | ")[1] for line in found} == {"button-name", "link-name"}


def test_what_is_known_is_not_measured_again(opened):
    looks = Looks()
    looks.violations(opened(USUAL))
    page = opened(USUAL)
    inject(page)
    looks.violations(page)
    assert page.evaluate("document.querySelectorAll('p:not([data-alike]), code:not([data-alike])').length") == 0
