"""The form of a rating sheet in Chromium: worked by keyboard, reloaded, saved, and read back with its key.

Screenshots are written where BROWSER_SHOTS names a folder.
"""

import os
import re
from pathlib import Path

import pandas as pd
import pytest
from playwright.sync_api import expect

from tsteval.people.raters import read_sheets, unblind
from tsteval.people.sheets import plan_ratings, read_key, write_sheets

expect.set_options(timeout=60_000)  # a machine may be busy
SHOTS = os.environ.get("BROWSER_SHOTS")
HOSTILE = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(2)> \"quoted\" & 'so on'",
    "=1+1",
    "\u05e9\u05dc\u05d5\u05dd \u202eabc",
    "\ud83d alone \udc00",
    "\x00\x07 <!-- {{ 7 * 7 }}",
    "word " * 300,
]
PAIRS = [
    {
        "system": system,
        "source": f"The superb {thing} finally opened.",
        "output": f"The {thing} opened{end}",
    }
    for thing in ("bridge", "mill")
    for system, end in (("a", "."), ("b", " at last."))
]


def opened(folder, watched, pairs=PAIRS, **options):
    """The page of the first sheet, with its plan."""
    plan = plan_ratings(pairs, **options)
    write_sheets(plan, folder)
    watched.page.goto((folder / "for-raters" / "rater-1.html").as_uri())
    watched.page.wait_for_selector("#form:not([hidden])")
    return watched.page, plan


@pytest.mark.ci
@pytest.mark.parametrize("size", [(1280, 800), (390, 844)])
def test_the_first_question_is_on_the_first_screen(tmp_path, watched, size):
    watched.page.set_viewport_size(dict(zip(("width", "height"), size)))
    page, _ = opened(tmp_path, watched, [{**PAIRS[0], "source": "The superb bridge " * 8}])
    assert page.locator("fieldset").first.bounding_box()["height"] > 50
    box = page.locator("fieldset").first.bounding_box()
    assert box["y"] + box["height"] <= size[1]


def press(page, *keys):
    for key in keys:
        page.keyboard.press(key)


def pressed(page):
    """The rating of each question of the item that is open."""
    return page.eval_on_selector_all(
        "fieldset", "all => all.map(one => one.querySelector('[aria-pressed=true]')?.value ?? null)"
    )


def shoot(page, name):
    if SHOTS:
        Path(SHOTS).mkdir(exist_ok=True)
        page.screenshot(path=f"{SHOTS}/{name}.png", full_page=True)


def save(page, folder, name="ann.csv"):
    with page.expect_download() as download:
        page.get_by_role("button", name="Save to a file").press("Enter")
    assert download.value.suggested_filename == "rater-1.csv"
    download.value.save_as(folder / "ratings" / name)
    return folder / "ratings" / name


@pytest.mark.ci
def test_three_items_by_keyboard_a_reload_and_back_with_the_key(tmp_path, watched):
    page, plan = opened(tmp_path, watched, repeat=0)
    shoot(page, "rating-start")
    press(page, *"543", *"211", *"123")
    assert (
        page.locator("#place").inner_text() == "Item 4 of 4"
        and page.locator("#done").inner_text() == "3 of 4 rated"
    )
    page.reload()
    assert (
        page.locator("#place").inner_text() == "Item 4 of 4"
        and page.locator("#done").inner_text() == "3 of 4 rated"
    )
    found = []
    for _ in range(3):
        press(page, "ArrowLeft")
        found.append(pressed(page))
    assert found == [["1", "2", "3"], ["2", "1", "1"], ["5", "4", "3"]]
    shoot(page, "rating-rated")
    file = save(page, tmp_path)
    assert "3 ratings are missing" in page.locator("#told").inner_text()
    assert "superb" not in file.read_text()
    key = read_key(tmp_path / "key.json")
    with pytest.raises(
        ValueError, match=r"ann\.csv: column style, row 3: item r1-4 has no rating.*3 of 12"
    ):
        read_sheets([file], key)
    ratings = read_sheets([file], key, unfinished=True)
    assert ratings.rating.tolist() == [5, 4, 3, 2, 1, 1, 1, 2, 3] and set(ratings.rater) == {"ann"}
    rows = unblind(ratings, key)
    shown = [item.shown for item in plan.sheets[0].items]
    assert {(row.shown, row.criterion): row.rating for row in rows.itertuples()} == {
        (shown[item], criterion): rating
        for item, all_three in enumerate(([5, 4, 3], [2, 1, 1], [1, 2, 3]))
        for criterion, rating in zip(("style", "content", "naturalness"), all_three)
    }
    assert not watched.complaints


@pytest.mark.ci
def test_keys_mice_and_taking_back(tmp_path, watched):
    page, _ = opened(tmp_path, watched, repeat=0, scale=(1, 4))
    press(page, "9")
    assert "not on the scale" in page.locator("#told").inner_text() and pressed(page) == [None] * 3
    press(page, "ArrowDown", "ArrowDown", "2", "ArrowLeft", "ArrowUp")
    assert page.locator("#place").inner_text() == "Item 1 of 4" and pressed(page) == [
        None,
        None,
        "2",
    ]
    page.locator("fieldset").nth(1).get_by_role("button", name="3").click()
    assert pressed(page) == [None, "3", "2"]
    press(page, "Delete")
    assert pressed(page) == [None, None, "2"]
    page.locator("fieldset").nth(2).get_by_role("button", name="2").click()
    assert pressed(page) == [None] * 3
    press(page, "ArrowUp", "ArrowUp", "Control+3")
    assert page.locator("#place").inner_text() == "Item 1 of 4" and pressed(page) == [None] * 3
    for _ in range(4):
        press(page, *"123")
    assert "All 4 items are rated" in page.locator("#told").inner_text()
    assert not watched.complaints


@pytest.mark.ci
def test_every_button_is_reached_with_tab_named_and_seen(tmp_path, watched):
    page, _ = opened(tmp_path, watched, repeat=0)
    press(page, "ArrowRight")
    reached = []
    for _ in range(40):
        press(page, "Tab")
        told = page.evaluate("""() => {
            const one = document.activeElement, look = getComputedStyle(one.id === 'load' ? one.closest('label') : one);
            return [one.closest('fieldset')?.querySelector('legend b').textContent ?? '',
                (one.textContent || one.id).trim(), look.outlineStyle, parseFloat(look.outlineWidth)]; }""")
        reached.append(told)
    names = {(group, name) for group, name, *_ in reached}
    assert {
        (criterion, str(rating))
        for criterion in ("style", "content", "naturalness")
        for rating in range(1, 6)
    } <= names
    assert {
        ("", name)
        for name in (
            "← Before",
            "Next →",
            "Next without a rating",
            "Save to a file",
            "load",
            "More, and the keys",
        )
    } <= names
    assert all(
        style == "solid" and width >= 2
        for group, name, style, width in reached
        if group or name == "load"
    )
    tree = page.locator("fieldset").first.aria_snapshot()
    assert "How neutral is the rewrite?" in tree and 'button "5"' in tree
    assert (
        page.locator("#told").get_attribute("role")
        == page.locator("#keeping").get_attribute("role")
        == "status"
    )
    assert page.locator("html").get_attribute("lang") == "en"


@pytest.mark.ci
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_narrow_window_cuts_nothing_off(tmp_path, watched, scheme):
    page, _ = opened(tmp_path, watched, scale=(0, 9))
    page.emulate_media(color_scheme=scheme)
    for width in (420, 1000):
        page.set_viewport_size({"width": width, "height": 900})
        shoot(page, f"rating-{scheme}-{width}")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        press(page, "ArrowRight", "4", "7")
        shoot(page, f"rating-{scheme}-{width}-item")
        boxes = page.eval_on_selector_all(
            "fieldset button",
            "all => all.map(one => one.getBoundingClientRect()).map(box => [box.left, "
            "box.right, box.height])",
        )
        assert all(left >= 0 and right <= width and height >= 40 for left, right, height in boxes)


@pytest.mark.ci
def test_hostile_texts_are_shown_and_never_run(tmp_path, watched):
    pairs = [
        {"source": text, "output": other, "target_style": text[:40]}
        for text, other in zip(HOSTILE, HOSTILE[1:] + HOSTILE[:1])
    ]
    page, plan = opened(tmp_path, watched, pairs, repeat=0)
    for item in plan.sheets[0].items:
        source = plan.table.source[item.shown]
        assert page.locator("#source").evaluate("one => one.children.length") == 0
        if source.isascii() and source.isprintable():
            assert page.locator("#source").evaluate("one => one.textContent") == source
        press(page, *"111")
    assert page.locator("script").count() == 2 and not page.locator("main img").count()
    save(page, tmp_path)
    assert not watched.complaints
    policy = page.locator("meta[http-equiv]").get_attribute("content")
    assert policy.startswith("default-src 'none'") and "unsafe" not in policy
    # the policy stands: a script that is not the form's own does not run
    with page.expect_console_message(lambda message: "Content Security Policy" in message.text):
        page.evaluate(
            "() => { const one = document.createElement('script'); one.textContent = 'window.ran = true'; "
            "document.body.append(one); }"
        )
    assert page.evaluate("window.ran") is None


@pytest.mark.ci
def test_without_storage_it_says_so_and_goes_on_from_a_file(tmp_path, watched):
    watched.context.add_init_script(
        "Object.defineProperty(window, 'localStorage', { get() { throw new "
        "DOMException('no', 'SecurityError'); } })"
    )
    page, _ = opened(tmp_path, watched, repeat=0)
    assert "does not keep ratings" in page.locator("#keeping").inner_text()
    press(page, *"543", *"2")
    file = save(page, tmp_path)
    page.reload()
    # the window itself remembers
    assert page.locator("#place").inner_text() == "Item 2 of 4" and pressed(page) == [
        "2",
        None,
        None,
    ]
    address = page.url
    page = watched.context.new_page()
    page.goto(address)
    assert page.locator("#done").inner_text() == "0 of 4 rated"
    page.set_input_files("#load", file)
    expect(page.locator("#told")).to_contain_text("4 ratings were read")
    assert page.locator("#place").inner_text() == "Item 2 of 4" and pressed(page) == [
        "2",
        None,
        None,
    ]
    other = tmp_path / "other"
    write_sheets(plan_ratings(PAIRS, seed=5), other)
    page.set_input_files("#load", other / "for-raters" / "rater-1.csv")
    expect(page.locator("#told")).to_contain_text("no rating of this sheet")
    assert not watched.complaints


@pytest.mark.ci
def test_a_full_disk_is_told(tmp_path, watched):
    watched.context.add_init_script("""{ const set = Storage.prototype.setItem; let n = 0;
        Storage.prototype.setItem = function (...given) { if (++n > 3)
            throw new DOMException('full', 'QuotaExceededError');
            return set.apply(this, given); } }""")
    page, _ = opened(tmp_path, watched, repeat=0)
    assert "kept in this browser" in page.locator("#keeping").inner_text()
    press(page, *"543")
    assert (
        "does not keep ratings" in page.locator("#keeping").inner_text() and not watched.complaints
    )


@pytest.mark.ci
def test_two_windows_lose_nothing_and_two_sheets_do_not_meet(tmp_path, watched):
    page, _ = opened(tmp_path, watched, repeat=0, raters=2)
    second = watched.context.new_page()
    second.goto(page.url)
    page.bring_to_front()  # a browser lets windows behind wait where a machine is busy
    press(page, *"543")
    expect(page.locator("#done")).to_have_text("1 of 4 rated")
    second.bring_to_front()
    press(second, "ArrowRight", *"211")
    expect(second.locator("#done")).to_have_text("2 of 4 rated")
    expect(page.locator("#done")).to_have_text("2 of 4 rated")
    press(second, "ArrowLeft", "Delete")
    expect(page.locator("#done")).to_have_text("1 of 4 rated")
    page.reload()
    assert (
        page.locator("#done").inner_text() == "1 of 4 rated"
    )  # what was taken back in the other window stays so
    third = watched.context.new_page()
    third.goto(re.sub("rater-1", "rater-2", page.url))
    assert third.locator("#done").inner_text() == "0 of 4 rated"


@pytest.mark.ci
def test_the_form_and_the_table_ask_the_same(tmp_path, watched):
    page, _ = opened(tmp_path, watched)
    table = pd.read_csv(tmp_path / "for-raters" / "rater-1.csv")
    for row in table.itertuples():
        assert (page.locator("#source").inner_text(), page.locator("#output").inner_text()) == (
            row.source,
            row.output,
        )
        press(page, "ArrowRight")
