"""Which printed numbers of the course moved since a revision: `python nbs/making/compare_outputs.py REVISION`.

Compares the stored outputs of every notebook with those of the same notebook at an earlier revision of the repository.
Numbers are matched in the order in which a notebook prints them, so that reformatted code changes nothing. What is drawn is left
out: only the numbers that a reader can read as text count, in plain text, tables and words of HTML.
"""

import argparse
import difflib
import json
import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path

ROOT = Path(__file__).parents[2]
NUMBER = re.compile(r"(?<![\w.])[-+−]?(?:\d[\d,]*\.?\d*|\.\d+)(?:e[-+]?\d+)?(?!\w)")


class _Words(HTMLParser):
    """The words of a page without its pictures and scripts."""

    def __init__(self):
        super().__init__()
        self.words = []
        self.hidden = 0

    def handle_starttag(self, tag, attributes):
        self.hidden += tag in ("svg", "script", "style")

    def handle_endtag(self, tag):
        self.hidden -= tag in ("svg", "script", "style")

    def handle_data(self, data):
        if not self.hidden:
            self.words.append(data)


def output_text(output: dict) -> str:
    """What can be read of one stored output."""
    data = output.get("data", {})
    if output["output_type"] == "stream":
        return "".join(output["text"]) if output["name"] == "stdout" else ""
    if "text/html" in data:
        page = _Words()
        page.feed("".join(data["text/html"]))
        return " ".join(page.words)
    text = "".join(data.get("text/plain", ""))
    return "" if text.startswith(("<Figure", "<IPython", "<tsteval")) else text


def cell_numbers(notebook: dict) -> list[tuple[str, list[str]]]:
    """For each code cell with output: the head of its source, and the numbers that its outputs print."""
    cells = []
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code" or not cell["outputs"]:
            continue
        text = "\n".join(map(output_text, cell["outputs"]))
        source = " ".join("".join(cell["source"]).split())[:70]
        cells.append((source, NUMBER.findall(text)))
    return cells


def compare(old: dict, new: dict) -> tuple[int, list[str]]:
    """How many numbers stand in both notebooks, and a line for each place where they differ."""
    before = cell_numbers(old)
    after = cell_numbers(new)
    old_numbers = [number for _, numbers in before for number in numbers]
    new_numbers = [number for _, numbers in after for number in numbers]
    places = [source for source, numbers in after for _ in numbers] + ["the end"]
    matcher = difflib.SequenceMatcher(None, old_numbers, new_numbers, autojunk=False)
    equal = 0
    lines = []
    for kind, i, j, k, m in matcher.get_opcodes():
        if kind == "equal":
            equal += j - i
        else:
            gone = " ".join(old_numbers[i:j]) or "nothing"
            there = " ".join(new_numbers[k:m]) or "nothing"
            lines.append(f"{places[k]}: {gone} -> {there}")
    return equal, lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("revision", help="of the repository, such as v0.3.0")
    arguments = parser.parse_args()
    total = 0
    moved = 0
    for path in sorted([*ROOT.glob("nbs/*.ipynb"), *ROOT.glob("nbs/solutions/*.ipynb")]):
        name = path.relative_to(ROOT).as_posix()
        show = ["git", "show", f"{arguments.revision}:{name}"]
        earlier = subprocess.run(show, cwd=ROOT, capture_output=True, check=False)
        if earlier.returncode:
            print(f"{name}: not there at {arguments.revision}")
            continue
        equal, lines = compare(json.loads(earlier.stdout), json.loads(path.read_bytes()))
        total += equal
        moved += len(lines)
        print(f"{name}: {equal} numbers equal, {len(lines)} places differ")
        for line in lines:
            print(f"    {line[:300]}")
    print(f"{total} numbers equal, {moved} places differ")


if __name__ == "__main__":
    main()
