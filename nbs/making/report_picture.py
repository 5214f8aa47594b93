"""The report that chapter 15 ends in, as a picture: python nbs/making/report_picture.py writes tsteval/data/report_page.png

The outputs of the copy, of neural and of the person are scored as the chapter scores them, the report is written, and
the top of the page is photographed by Chromium, whose command has to be on the path. Two minutes.
"""

import subprocess
import tempfile
from pathlib import Path

from tsteval.core.assets import packaged_path
from tsteval.evaluation import evaluate
from tsteval.rewriting import load_rewrites

WIDE, TALL = 900, 1150  # pixels


def photograph(page: Path) -> None:
    """The top of a page, as a file of the package."""
    command = ["chromium", "--headless", "--no-sandbox", "--hide-scrollbars", "--disable-gpu"]
    picture = f"--screenshot={packaged_path('report_page.png')}"
    subprocess.run(
        [*command, f"--window-size={WIDE},{TALL}", picture, page.absolute().as_uri()], check=True
    )


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
