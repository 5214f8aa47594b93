"""The report that chapter 15 ends in, as a picture: python nbs/making/report_picture.py writes tsteval/data/report_page.png

The outputs of the copy, of neural and of the person are scored as the chapter scores them, the report is written, and
the page is photographed by Chromium, whose command has to be on the path. Of the photograph stay the top and the
doubts, since the chapter prints what lies between. Two minutes.
"""

import subprocess
import tempfile
from pathlib import Path

from PIL import Image

from tsteval.core.assets import packaged_path
from tsteval.evaluation import evaluate
from tsteval.rewriting import load_rewrites

WIDE, TALL, SCALE = 680, 1100, 1.5  # pixels of the page, and how much larger they are photographed
KEPT = ((0, 626), (938, 1098))  # from which height to which
MARGIN = 24  # white below, so that the last line doesn't look cut off


def photograph(page: Path) -> None:
    """The kept parts of a page, one below the other, as a file of the package."""
    there = packaged_path("report_page.png")
    command = ["chromium", "--headless", "--no-sandbox", "--hide-scrollbars", "--disable-gpu"]
    command += [f"--force-device-scale-factor={SCALE}", f"--screenshot={there}"]
    subprocess.run([*command, f"--window-size={WIDE},{TALL}", page.absolute().as_uri()], check=True)
    whole = Image.open(there).convert("RGB")
    parts = [whole.crop((0, int(a * SCALE), whole.width, int(b * SCALE))) for a, b in KEPT]
    kept = Image.new("RGB", (whole.width, sum(part.height for part in parts) + MARGIN), "white")
    kept.paste(parts[0], (0, 0))
    kept.paste(parts[1], (0, parts[0].height))
    kept.save(there, optimize=True)


def main() -> None:
    outputs = load_rewrites().rename(columns={"target": "reference"})
    systems = [outputs[outputs.system == name] for name in ("copy", "neural", "human")]
    result = evaluate(
        [row for rows in systems for row in rows.to_dict("records")],
        ["sti", "cps"],
        baseline="human",
    )
    with tempfile.TemporaryDirectory() as folder:
        result.report(Path(folder) / "report.html")
        photograph(Path(folder) / "report.html")


if __name__ == "__main__":
    main()
