"""MathJax from a wheel on the package index, so that formulas show without the network. It is never committed; its
files are pinned by hash."""

import hashlib
import shutil
from importlib.util import find_spec
from pathlib import Path

SHA256 = "32cc66d4af4d22386b194058db01bd599ef4479683be1a40b17759633e55645b"
FILES = (
    "startup.js",
    "core.js",
    "input/tex.js",
    "output/chtml.js",
    "output/chtml/fonts/tex.js",
    "a11y/assistive-mml.js",
)


def copy_mathjax(out: Path):
    """Copy what the pages use of MathJax 3.2.2 into a new folder."""
    found = find_spec("sphinx-mathjax-offline")
    if found is None:
        raise SystemExit("MathJax is not installed: pip install -e '.[site]'")
    source = Path(found.origin).parent / "static" / "mathjax"
    paths = sorted(
        [
            *(source / name for name in FILES),
            *source.glob("output/chtml/fonts/woff-v2/*.woff"),
            *source.glob("input/tex/extensions/*.js"),
        ]
    )
    digest = hashlib.sha256()
    for path in paths:
        digest.update(str(path.relative_to(source)).encode() + b"\0" + path.read_bytes())
        (out / path.relative_to(source)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, out / path.relative_to(source))
    if digest.hexdigest() != SHA256:
        raise SystemExit(f"MathJax is not the pinned version: {digest.hexdigest()}")
