"""The picture of the course in README.md: python nbs/making/course_picture.py writes nbs/images/course.png.

It is the top of a chapter on the site, in Chromium, with 32 colours. The paragraphs and titles that can be read in it
are kept in the file, and the questions of its road; `tests/test_readme.py` holds them to the course as it is.
"""

import io
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

from PIL import Image
from PIL.PngImagePlugin import PngInfo
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parent.parent.parent
CHAPTER = "06_fluency"
WIDTH = 1040
HEIGHT = 736
READ = """where => [...document.querySelectorAll(where)].filter(one => {
    const {top, bottom, width} = one.getBoundingClientRect();
    return top > 0 && bottom < innerHeight && width && one.innerText.trim() && !one.closest('summary, .run-box');
}).map(one => one.innerText.replaceAll('#', '').trim())"""
SEEN = {"paragraphs": "article h1, article p", "titles": ".bd-sidebar li a"}


def photograph(site: Path) -> tuple[Image.Image, dict[str, list[str]]]:
    """The page as it is first seen, and what can be read in it."""
    names = (os.environ.get("CHROMIUM", ""), "chromium", "chromium-browser", "google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=next(filter(None, map(shutil.which, names)), None),
            args=["--no-sandbox"],
        )
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        page.goto(f"{(site / CHAPTER).as_uri()}.html", wait_until="networkidle")
        seen = page.screenshot()
        read = {name: page.evaluate(READ, where) for name, where in SEEN.items()}
        browser.close()
    return Image.open(io.BytesIO(seen)).convert("RGB").quantize(32, dither=Image.Dither.NONE), read


def main() -> None:
    from tsteval.report.words import ROAD

    sys.path.insert(0, str(ROOT / "nbs" / "site"))  # there is a package called build too
    from build import build

    with tempfile.TemporaryDirectory() as folder:
        build(Path(folder) / "site", only=r"^\d\d_")
        picture, read = photograph(Path(folder) / "site")
    kept = PngInfo()
    kept.add_text("shown", json.dumps({"chapter": CHAPTER, **read, "road": ROAD}))
    picture.save(ROOT / "nbs" / "images" / "course.png", optimize=True, pnginfo=kept)


if __name__ == "__main__":
    main()
