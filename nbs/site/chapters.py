"""From a notebook of the course to a page: what nbdev hides is hidden, pictures get their words."""

import ast
import copy
import re
import shutil
from pathlib import Path

import nbformat
from colab import CHAPTER

DIRECTIVE = re.compile(r"^#\|.*\n?", re.M)
FIRST, LAST = "#| ", ("hide", "default_exp")
NEEDS = {
    "extdata": "This cell reads a corpus that is not shipped; `tsteval fetch` gets those that can be fetched.",
    "kenlm": "This cell needs the library kenlm.",
}
LONGEST_ALT = 300
SHORTEST_ALT = 40
SLIDERS = {  # chapter -> the page where what it derives moves, and what it says there
    "02_bleu": ("bleu", "clipping and brevity under a slider"),
    "08_sti": ("emd", "Earth Mover's Distance under a slider"),
    "10_cps": ("mask", "masking under a slider"),
}
ROOMS = {
    "core": "What all rooms share",
    "tables": "Tables, pairs and ratings",
    "words": "Words, counts and n-gram models",
    "models": "Models",
    "training": "Training",
    "report": "Reports and pictures",
    "runs": "Runs",
    "people": "People and judges",
    "explorers": "Explorers",
    "cli": "The command",
}
MATH_WORDS = {
    "cdot": "·",
    "times": "×",
    "le": "≤",
    "leq": "≤",
    "ge": "≥",
    "geq": "≥",
    "ne": "≠",
    "approx": "≈",
    "to": "→",
    "ln": "ln",
    "log": "log",
    "exp": "exp",
    "sum": "sum",
    "max": "max",
    "min": "min",
    "dots": "…",
    "ldots": "…",
    "pm": "±",
    "in": "in",
    "sqrt": "root of ",
}


def directives(source):
    """Names of nbdev's directives at the top of a cell."""
    return [
        line[2:].split()[0]
        for line in source.splitlines()
        if line.startswith("#|") and line[2:].split()
    ]


def plain_math(tex):
    """A formula as words that can be spoken, well enough for a text that stands in for a picture."""
    tex = re.sub(
        r"\\(?:mathrm|text|mathbf|operatorname|mathit|hat|bar|tilde|vec)\s*\{([^{}]*)\}", r"\1", tex
    )
    tex = re.sub(
        r"\\t?frac\s*(?:\{([^{}]*)\}\{([^{}]*)\}|(\d)(\d))",
        lambda m: f"{m[1] or m[3]}/{m[2] or m[4]}",
        tex,
    )
    tex = re.sub(
        r"\\([a-zA-Z]+)", lambda m: MATH_WORDS.get(m[1], m[1] if len(m[1]) > 1 else ""), tex
    )
    return re.sub(r"[{}\\$]", "", tex)


def plain(markdown):
    """The words of a piece of markdown."""
    text = re.sub(r"\$\$?(.+?)\$\$?", lambda m: plain_math(m[1]), markdown, flags=re.S)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"(\*\*|\*|`)(.+?)\1", r"\2", text, flags=re.S)
    return " ".join(re.sub(r"^\s*(?:[#>-]+|\d+\.)\s+", "", text, flags=re.M).split())


def picture_words(markdown):
    """What the prose before a picture says of it: its last paragraph, in whole sentences, and the one before if that is short."""
    paragraphs = [
        part
        for part in re.split(r"\n\s*\n", markdown)
        if part.strip() and not part.lstrip().startswith(("#", "|", "$$", "```"))
    ]
    if not paragraphs:
        return plain(markdown)[:LONGEST_ALT]
    last = plain(paragraphs[-1])
    if len(last) < SHORTEST_ALT and len(paragraphs) > 1:  # such as "Guess first."
        last = f"{plain(paragraphs[-2])} {last}"
    words = ""
    for sentence in re.split(r"(?<=[.?:]) ", last):
        if words and len(words) + len(sentence) >= LONGEST_ALT:
            break
        words = f"{words} {sentence}".strip()
    return f"Figure. {words}"


def without_imports(source):
    """What a cell imports, a statement each, and the rest of it, without the names that nbdev alone reads (`_all_`). A
    cell that Python alone does not understand, such as one with a magic, is left whole."""
    try:
        statements = ast.parse(source).body
    except SyntaxError:
        return [], source
    lines = source.splitlines()
    imports = []
    for one in reversed(statements):
        imported = isinstance(one, ast.Import | ast.ImportFrom)
        if imported:
            imports.insert(0, "\n".join(lines[one.lineno - 1 : one.end_lineno]))
        if imported or ast.unparse(one).startswith("_all_ ="):
            del lines[one.lineno - 1 : one.end_lineno]
    return imports, re.sub(r"\n{4,}", "\n\n\n", "\n".join(lines)).strip("\n")


def fold_imports(cells):
    """The same cells, with all that the open ones import in one folded cell before the first of them."""
    imports = []
    shown = []
    first = None
    for cell in cells:
        tags = cell.metadata.get("tags", [])
        if cell.cell_type == "code" and not set(tags) & {"hide-input", "remove-input"}:
            found, rest = without_imports(cell.source)
            imports += found
            if rest != cell.source and not (cell.outputs or re.search(r"^[^#\s]", rest, re.M)):
                continue
            cell.source = rest
            first = len(shown) if first is None else first
        shown.append(cell)
    if imports and first is not None:
        folded = nbformat.v4.new_code_cell("\n".join(dict.fromkeys(imports)), id="imports")
        folded.metadata = nbformat.from_dict(
            {
                "tags": ["hide-input"],
                "mystnb": {"code_prompt_show": "Imports", "code_prompt_hide": "Imports"},
            }
        )
        shown.insert(first, folded)
    return shown


def link_chapters(markdown, chapters, here):
    """'chapter 9' in prose becomes a link. `chapters` maps numbers to page names, `here` is the folder of this page, as
    `../`."""

    def link(found):
        name = chapters.get(int(found[2]))
        return f"[{found[0]}]({here}{name}.ipynb)" if name else found[0]

    pieces = re.split(
        r"(```.*?```|`[^`]*`|\$\$.*?\$\$|\$[^$]*\$|\[[^\]]*\]\([^)]*\)|^#.*$|<[^>]*>)",
        markdown,
        flags=re.S | re.M,
    )
    return "".join(
        piece if place % 2 else re.sub(r"\b([Cc]hapter) (\d{1,2})\b(?!\.\d)", link, piece)
        for place, piece in enumerate(pieces)
    )


def run_box(name, repository=None):
    """How to run the notebook that a page was made from. `name` is its path below nbs/."""
    up = "../" * name.count("/")
    colab = (
        f', or <a href="{repository.colab(name)}">open it in Colab</a>'
        if _opens(name, repository)
        else ""
    )
    page, words = SLIDERS.get(name.removesuffix(".ipynb"), ("", ""))
    move = (
        f' <strong>Move it.</strong> <a href="{up}sliders/{page}.html">{words}</a>, on this site.'
        if page
        else ""
    )
    return (
        f'<p class="run-box" role="note"><strong>Run it.</strong> <code>tsteval course</code> opens the chapters '
        f"in JupyterLab, "
        f'or <a href="{up}notebooks/{name}" download>download this notebook</a>{colab}.{move}</p>'
    )


def _opens(name, repository):
    return repository is not None and CHAPTER.fullmatch(name) is not None


def as_page(notebook, name, chapters, repository=None):
    """The notebook as the site shows it; `name` is its path below nbs/."""
    page = copy.deepcopy(notebook)
    cells = []
    prose = ""
    here = "../" * name.count("/")
    own = int(match[1]) if (match := re.match(r"(?:solutions/)?(\d+)_", name)) else None
    for cell in page.cells:
        if cell.cell_type == "markdown":
            prose = cell.source
            cell.source = link_chapters(
                cell.source, {n: page for n, page in chapters.items() if n != own or here}, here
            )
            cells.append(cell)
        if cell.cell_type != "code":
            continue
        given = directives(cell.source)
        if set(given) & set(LAST):
            continue
        tags = ["hide-input"] if {"exporti", "code-fold:"} & set(given) else []
        for need in set(given) & set(NEEDS):
            cells.append(
                nbformat.v4.new_markdown_cell(
                    f'<p class="needs">{NEEDS[need].replace("`tsteval fetch`", "<code>tsteval fetch</code>")}</p>',
                    id=f"needs-{cell.id}",
                )
            )
        cell.source = DIRECTIVE.sub("", cell.source).strip("\n")
        # every chapter has it, and it says nothing of its own
        if re.fullmatch(r"draw_road\([^)]*\)", cell.source):
            tags.append("remove-input")
        cell.metadata = nbformat.from_dict(
            {"tags": tags, "mystnb": {"image": {"alt": picture_words(prose)}}}
        )
        if cell.source:
            cells.append(cell)
    box = run_box(name, repository)
    if name == "index.ipynb":  # which begins with its picture
        cells[-1].source += f"\n\n{box}"
    else:
        head = re.match(r"# .+\n?(?:\s*>.*\n?)*", cells[0].source)[0].rstrip("\n")
        cells[0].source = f"{head}\n\n{box}\n{cells[0].source[len(head) :]}"
    page.cells = fold_imports(cells)
    page.metadata = nbformat.from_dict(
        {
            "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
            "language_info": {"name": "python"},
        }
    )
    return page


def write_pages(nbs: Path, out: Path, wanted=lambda name: True, repository=None):
    """Every notebook below `nbs` that is wanted, as a page below `out`. Returns their names without the ending, in
    order."""
    names = sorted(
        str(path.relative_to(nbs)) for path in [*nbs.glob("*.ipynb"), *nbs.glob("[!.]*/*.ipynb")]
    )
    chapters = {
        int(match[1]): match[0] for name in names if (match := re.match(r"(\d+)_\w+", name))
    }
    names = [name for name in names if wanted(name.removesuffix(".ipynb"))]
    for name in names:
        notebook = nbformat.read(nbs / name, as_version=4)
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(as_page(notebook, name, chapters, repository), out / name)
    return [name.removesuffix(".ipynb") for name in names]


def write_downloads(nbs: Path, out: Path, names, repository=None):
    """The notebooks that can be downloaded; chapters with the cell that installs, where the repository's address is
    known."""
    for name in (f"{name}.ipynb" for name in names):
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        if _opens(name, repository):
            nbformat.write(
                repository.installing(nbformat.read(nbs / name, as_version=4)), out / name
            )
        else:
            shutil.copy(nbs / name, out / name)


def title_of(path):
    """The first heading of a notebook."""
    cell = next(
        cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "markdown"
    )
    return re.search(r"^# (.+)$", cell.source, re.M)[1]
