"""The last hand on the made pages: scripts that only some pages load, and a content policy that names every script."""

import base64
import hashlib
import re
import shutil
from pathlib import Path

from mathjax import copy_mathjax

SCRIPT = re.compile(r"<script(?![^>]*\bsrc=)(?![^>]*application/json)[^>]*>(.*?)</script>", re.S)
FOLDED_LIST = re.compile(r"(>\s*)([^<>]+?)(\s*</a>\s*<details[^>]*>\s*<summary)>")

SIGNATURE_LIST = re.compile(r"<dl>\s*((?:<dd>\s*<em class=\"sig-param\">.*?</dd>\s*)+)</dl>", re.S)


def without_terms(page):
    """Sphinx writes the parameters of a long signature as a list of definitions without terms, which is no list."""
    return SIGNATURE_LIST.sub(
        lambda found: (
            '<div class="sig-list">'
            + found[1].replace("<dd>", "<div>").replace("</dd>", "</div>")
            + "</div>"
        ),
        page,
    )


def named(page):
    """The sidebar's arrows have no words; a reader who cannot see them is told what they open."""
    return FOLDED_LIST.sub(r'\1\2\3 aria-label="Pages below \2">', page)


def policy(page):
    """The content policy of one page: scripts of the site itself, and the inline ones that the page was made with."""
    hashes = sorted(
        {
            base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
            for script in SCRIPT.findall(page)
        }
    )
    scripts = " ".join(["'self'", *(f"'sha256-{found}'" for found in hashes)])
    return (
        f"default-src 'self'; script-src {scripts}; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
        f"font-src 'self' data:; "
        "object-src 'none'; base-uri 'none'; form-action 'self'"
    )


def finish(here: Path, site: Path):
    """Jupyter Book makes every page load every script below _static; what only some pages need comes afterwards."""
    late = site / "_static" / "late"
    late.mkdir()
    copy_mathjax(late / "mathjax")
    shutil.copy(here / "sliders" / "sliders.js", late)
    for path in site.rglob("*.html"):
        page = path.read_text(encoding="utf-8")
        if "<head>" not in page:
            continue
        page = without_terms(named(page))
        page = page.replace(
            "<head>",
            f'<head>\n    <meta http-equiv="Content-Security-Policy" content="{policy(page)}">',
            1,
        )
        path.write_text(page, encoding="utf-8")
    for left in ("objects.inv", ".buildinfo"):
        (site / left).unlink(missing_ok=True)
