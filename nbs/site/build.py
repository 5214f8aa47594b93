"""Make the course a static site: `python nbs/site/build.py OUT`.

Everything is made in a temporary folder, with Jupyter Book 1, and then copied to OUT; nothing is loaded from elsewhere
when the site is read, and no notebook is executed. What it needs comes with `pip install -e '.[site]'`.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
PARTS = {
    "Words against words": 1,
    "How likely is it?": 4,
    "Style": 7,
    "Content": 10,
    "Systems": 14,
    "People": 17,
    "One text alone": 20,
    "Large": 24,
}  # each with its first chapter
HOW_TO = ("how_to_compare", "how_to_command", "how_to_gate")  # asked for most, so they come first
sys.path[:0] = [str(ROOT)]  # the package that these notebooks export, not one installed elsewhere


def contents(names, modules, sliders, titles):
    """The table of contents of Jupyter Book: parts and their pages, the how-tos by their titles without "How to"."""
    chapters = sorted(name for name in names if re.match(r"\d+_", name))
    ends = [*list(PARTS.values())[1:], 1000]
    parts = [
        (title, [{"file": name} for name in chapters if first <= int(name.split("_")[0]) < end])
        for (title, first), end in zip(PARTS.items(), ends)
    ]
    rooms = {"reference": [f"reference/{module}" for module in modules]}
    rooms |= {
        name: [page for page in names if page.startswith(name + "/")]
        for name in ("solutions", "more")
    }
    rooms = {name: pages for name, pages in rooms.items() if pages}

    def room(name, pages):
        return {
            "file": name,
            **({"sections": [{"file": page} for page in pages]} if pages else {}),
        }

    def asked_for(name):
        return (HOW_TO.index(name) if name in HOW_TO else len(HOW_TO), name)

    def short(title):
        task = title.removeprefix("How to: ")
        return task[:1].upper() + task[1:]

    beside = {
        "ngram_metrics": "How likely is it?",
        "properties": "One text alone",
    }  # tables of metrics, no chapters
    for name, title in beside.items():
        dict(parts)[title].extend({"file": page} for page in names if page == name)
    tasks = [name for name in names if name.startswith("how_to")]
    parts += [
        (
            "How to",
            [{"file": name, "title": short(titles[name])} for name in sorted(tasks, key=asked_for)],
        ),
        ("Under a slider", [{"file": f"sliders/{name}"} for name in sliders]),
        (
            "To look things up",
            [room(f"{name}/index", pages) for name, pages in rooms.items()]
            + [{"file": "changelog"}],
        ),
    ]
    return {
        "format": "jb-book",
        "root": "index",
        "parts": [{"caption": title, "chapters": pages} for title, pages in parts if pages],
    }


def write_lists(book, names):
    """The pages that list what is in a folder."""
    from chapters import title_of

    lists = [
        ("solutions", "Solutions", "Each chapter's exercises, solved. Try first."),
        ("more", "Further readings", "What a chapter left out, with its number."),
    ]
    for room, title, words in lists:
        lines = [
            f"- [{title_of(book / (name + '.ipynb'))}]({name.split('/')[1]}.ipynb)"
            for name in names
            if name.startswith(room + "/")
        ]
        (book / room).mkdir(exist_ok=True)
        (book / room / "index.md").write_text(
            f"# {title}\n\n{words}\n\n" + "\n".join(lines) + "\n", encoding="utf-8"
        )
    (book / "changelog.md").write_text(
        (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), encoding="utf-8"
    )


def write_book(book, only=""):
    """All sources of the book, in an empty folder; with `only`, the pages alone whose name matches that pattern, and
    the map."""
    from chapters import title_of, write_downloads, write_pages
    from colab import read_repository
    from reference import write_reference
    from states import STATES, write_sliders

    def wanted(name):
        return not only or re.search(only, name)

    repository = read_repository(ROOT / "settings.ini")
    names = write_pages(
        ROOT / "nbs", book, lambda name: name == "index" or wanted(name), repository
    )
    modules = write_reference(ROOT, book, lambda module: wanted(f"reference/{module}"))
    sliders = [name for name in STATES if wanted(f"sliders/{name}")]
    write_sliders(HERE, book, sliders)
    write_lists(book, names)
    shutil.copytree(HERE / "static", book / "_static")
    for path in (ROOT / "nbs" / "making").glob("*.py"):
        (book / "making").mkdir(exist_ok=True)
        shutil.copy(path, book / "making")
    write_downloads(ROOT / "nbs", book / "extra" / "notebooks", names, repository)
    titles = {name: title_of(book / f"{name}.ipynb") for name in names if "/" not in name}
    (book / "_toc.yml").write_text(
        yaml.safe_dump(contents(names, modules, sliders, titles), sort_keys=False), encoding="utf-8"
    )
    shutil.copy(HERE / "book.yml", book / "_config.yml")
    shutil.copy(HERE / "scorer.js", book)
    subprocess.run(
        [
            sys.executable,
            "-c",
            "from jupyter_book.cli.main import main; main()",
            "config",
            "sphinx",
            str(book),
        ],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    with open(book / "conf.py", "a", encoding="utf-8") as conf:
        conf.write((HERE / "conf_end.py").read_text(encoding="utf-8"))


def build(out, jobs=2, only=""):
    """Make the site in the folder `out`; one that holds a site is replaced. Returns what Sphinx complained of."""
    from finish import finish

    out = Path(out).resolve()
    if out.exists() and any(out.iterdir()) and not (out / "searchindex.js").is_file():
        raise SystemExit(f"{out} holds something that is no site; name an empty folder")
    with tempfile.TemporaryDirectory() as folder:
        book = Path(folder) / "book"
        made = Path(folder) / "site"
        book.mkdir()
        write_book(book, only)
        run = subprocess.run(
            [
                sys.executable,
                "-m",
                "sphinx",
                "-q",
                "-b",
                "html",
                "-j",
                str(jobs),
                str(book),
                str(made),
            ],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        complaints = [
            line.replace(str(book) + "/", "") for line in run.stderr.splitlines() if line.strip()
        ]
        if run.returncode:
            raise SystemExit("\n".join(complaints[-30:]))
        finish(HERE, made)
        if out.exists():
            shutil.rmtree(out)
        shutil.copytree(made, out)
    return complaints


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", help="the folder to be made")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: 2)")
    parser.add_argument(
        "--only",
        default="",
        metavar="PATTERN",
        help="pages whose name matches, such as 02_bleu, while writing; links to others stay open",
    )
    given = parser.parse_args()
    for line in build(given.out, given.jobs, given.only):
        print(line, file=sys.stderr)
    print(
        f"{given.out}: {sum(1 for _ in Path(given.out).rglob('*.html'))} pages; open {Path(given.out) / 'index.html'}"
    )
