"""What axe-core finds on a page: `python tests/browser/axe.py URL [URL ...]` prints it, `violations(page)` gives it to
a test.

The script comes from the wheel axe-playwright-python, so that no registry but the package index is asked; its hash is
pinned here. Serious and critical violations make the command end with status 1, and `assert violations(page) == []`
fail.
"""

import argparse
import hashlib
import os
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

SHA256 = "84494fec757e4710dc751c8d7a636e457f4532f08f85c86dc9070133fbff53bc"
# Compiled, axe-core keeps each private field of its colours in a WeakMap, millions of them on a long page, and to clear
# them away takes half of its time. A property of the object does the same.
QUICK = """(() => {
    class Fields {
        constructor() { this.name = Symbol(); }
        has(key) { return Object.hasOwn(key, this.name); }
        get(key) { return key[this.name]; }
        set(key, value) { key[this.name] = value; return this; }
        add(key) { return this.set(key, true); }
        delete(key) { return delete key[this.name]; }
    }
    const WeakMap = Fields, WeakSet = Fields;
    %s
})(); 0"""
GRAVE = ("serious", "critical")
RULES = {
    "type": "tag",
    "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
}


def script():
    """axe-core's source; a ModuleNotFoundError says what to install."""
    found = find_spec("axe_playwright_python")
    if found is None:
        raise ModuleNotFoundError("axe-core is not installed: pip install -e '.[dev]'")
    source = (Path(found.origin).parent / "axe.min.js").read_bytes()
    if hashlib.sha256(source).hexdigest() != SHA256:
        raise ValueError("axe.min.js is not the pinned version")
    return QUICK % source.decode("utf-8")


def inject(page):
    """Bring axe-core into a page and its frames through the debugger's door, which a content policy does not close."""
    for frame in page.frames:
        if frame.url.startswith(("http", "file")) and not frame.evaluate("typeof axe === 'object'"):
            frame.evaluate(script())


def violations(page, within=None, impacts=GRAVE, without=()):
    """One line for each element that breaks a rule: impact, rule, help, element and what to mend.

    `within` is a selector that limits what is looked at; `without` names rules that are left out.
    """
    inject(page)
    return found_by(
        page,
        {"runOnly": RULES, "rules": {rule: {"enabled": False} for rule in without}},
        within,
        impacts,
    )


def found_by(page, options, within=None, impacts=GRAVE):
    """The same for axe-core's own options, where it is in the page already."""
    # preloading would ask for what style sheets name, in wrong places
    found = page.evaluate(
        "([within, options]) => axe.run(within || document, options)",
        [within, {"resultTypes": ["violations"], "preload": False, **options}],
    )
    return [
        f"{rule['impact']} | {rule['id']} | {rule['help']} | {' '.join(map(str, node['target']))} | "
        f"{node['html'][:160]} | " + " ".join((node.get("failureSummary") or "").split())[:300]
        for rule in found["violations"]
        if rule["impact"] in impacts
        for node in rule["nodes"]
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("url", nargs="+", help="an address, or a file")
    parser.add_argument("--width", type=int, default=1250)
    parser.add_argument("--dark", action="store_true", help="ask for dark colours")
    parser.add_argument("--all", action="store_true", help="minor and moderate violations too")
    parser.add_argument(
        "--wait", type=float, default=1.0, help="seconds from loading to looking (for widgets)"
    )
    given = parser.parse_args()
    from playwright.sync_api import sync_playwright

    browser_path = next(
        filter(
            None,
            map(
                shutil.which,
                (os.environ.get("CHROMIUM", ""), "chromium", "chromium-browser", "google-chrome"),
            ),
        )
    )
    grave = 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=browser_path,
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        for url in given.url:
            page = browser.new_page(
                viewport={"width": given.width, "height": 1000},
                color_scheme="dark" if given.dark else "light",
            )
            page.goto(url if "://" in url else Path(url).resolve().as_uri(), timeout=180_000)
            page.wait_for_timeout(1000 * given.wait)
            lines = violations(page, impacts=(*GRAVE, "moderate", "minor") if given.all else GRAVE)
            grave += sum(line.startswith(GRAVE) for line in lines)
            print(f"{url}: {len(lines)} violations", *lines, sep="\n  ")
            page.close()
        browser.close()
    return 1 if grave else 0


if __name__ == "__main__":
    sys.exit(main())
