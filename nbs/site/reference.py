"""A page for each public function and class, from its docstring and the comments beside its parameters (docments)."""

import ast
import io
import json
import re
import tokenize
from dataclasses import dataclass, field
from pathlib import Path

from chapters import ROOMS, title_of
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

NOTEBOOK = re.compile(r"^# %% (?:\.\./)+nbs/(\S+) #", re.M)
LABELS = ("Raises", "Source")
MOST_LINES = 12  # of an example's output


@dataclass
class Parameter:
    name: str
    kind: str  # annotation, as written
    default: str  # as written; empty where there is none
    words: str  # the comment beside it


@dataclass
class Entry:
    """One public name: a function, a class or a method."""

    module: str
    name: str
    node: ast.AST
    source: str
    notebook: str  # path below nbs/
    parameters: list = field(default_factory=list)
    returns: Parameter | None = None
    doc: str = ""
    members: list = field(default_factory=list)  # public methods, of a class
    fields: list = field(default_factory=list)  # of a dataclass


def comments(source):
    """Line number (from 1) to the comment that ends the line."""
    found = {}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            found[token.start[0]] = token.string.lstrip("# ").strip()
    return found


def written(node):
    return "" if node is None else ast.unparse(node)


def words_within(said, first, last):
    """The comments of some lines, from the first to the last, as one."""
    return " ".join(said[line] for line in range(first, last + 1) if line in said)


def last_line(arg, default):
    """Where a parameter ends: a long one stands on several lines, above or behind its comment."""
    return max(node.end_lineno for node in (arg, default) if node is not None)


def parameters_of(function, said):
    """The parameters of a function with their comments, and what it returns."""
    given = function.args
    plain = [*given.posonlyargs, *given.args]
    defaults = [None] * (len(plain) - len(given.defaults)) + given.defaults
    rows = [(arg, arg.arg, default) for arg, default in zip(plain, defaults)]
    if given.vararg:
        rows.append((given.vararg, "*" + given.vararg.arg, None))
    rows += [(arg, arg.arg, default) for arg, default in zip(given.kwonlyargs, given.kw_defaults)]
    if given.kwarg:
        rows.append((given.kwarg, "**" + given.kwarg.arg, None))
    # of several on one line, the comment belongs to all: the last one carries it
    ends = [last_line(arg, default) for arg, _, default in rows]
    lines = {end: name for end, (_, name, _) in zip(ends, rows)}
    starts = [function.lineno, *(end + 1 for end in ends)]
    found = [
        Parameter(
            name,
            written(arg.annotation),
            written(default),
            words_within(said, min(start, end), end) if lines[end] == name else "",
        )
        for (arg, name, default), start, end in zip(rows, starts, ends)
        if name not in ("self", "cls")
    ]
    body = function.body[0].lineno
    last = function.returns.end_lineno if function.returns else 0
    words = said.get(last, "") if last and last not in lines and last < body else ""
    if (
        last in lines
        and len(rows) == len([1 for arg, *_ in rows if arg.lineno == last])
        and not found
    ):
        words = said.get(last, "")
    return found, Parameter(
        "", written(function.returns), "", words
    ) if function.returns or words else None


def default_and_words(value, comment):
    """Of a field: what stands after the sign of equality and beside it, or in `field(default=..., metadata=...)`."""
    inside = (
        {word.arg: word.value for word in value.keywords} if isinstance(value, ast.Call) else {}
    )
    if "metadata" not in inside:
        return written(value), comment
    return written(inside.get("default")), next(
        (word.value for word in inside["metadata"].args), comment
    )


def read_module(path, module):
    """Docstring of the module and an entry for each public function and class: those that `__all__` names, where it
    stands, or whose names begin with a letter."""
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    said = comments(source)
    text = source.splitlines()
    listed = [
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__"
    ]
    nodes = {
        node.name: node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))
    }
    public = listed[0] if listed else [name for name in nodes if not name.startswith("_")]
    starts = [
        (source[: match.start()].count("\n") + 1, match[1]) for match in NOTEBOOK.finditer(source)
    ]

    def entry(node, name):
        origin = [notebook for line, notebook in starts if line < node.lineno]
        first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
        made = Entry(
            module,
            name,
            node,
            "\n".join(source.splitlines()[first - 1 : node.end_lineno]),
            origin[-1] if origin else "",
            doc=ast.get_docstring(node) or "",
        )
        if isinstance(node, ast.ClassDef):
            for part in node.body:
                if isinstance(part, ast.AnnAssign) and not part.target.id.startswith("_"):
                    above = part.lineno
                    while text[above - 2].lstrip().startswith("#"):
                        above -= 1
                    words = words_within(said, above, part.end_lineno)
                    made.fields.append(
                        Parameter(
                            part.target.id,
                            written(part.annotation),
                            *default_and_words(part.value, words),
                        )
                    )
                if not isinstance(part, ast.FunctionDef):
                    continue
                if part.name == "__init__":
                    made.parameters, _ = parameters_of(part, said)
                elif not part.name.startswith("_"):
                    made.members.append(entry(part, f"{name}.{part.name}"))
        else:
            made.parameters, made.returns = parameters_of(node, said)
        return made

    return (
        ast.get_docstring(tree) or "",
        [entry(nodes[name], name) for name in public if name in nodes],
        [name for name in public if name not in nodes],
    )


def escaped(words):
    """A comment or docstring as markdown: code stays code, everything else stands as it is written."""
    pieces = re.split(r"(`[^`]+`)", words)
    return (
        "".join(
            piece if place % 2 else re.sub(r"([\\*_$\[\]<>#|])", r"\\\1", piece)
            for place, piece in enumerate(pieces)
        )
        .replace("|", "\\|")
        .replace("\\\\|", "\\|")
    )


def code(words):
    """A type or default as code within a table cell."""
    return "`" + words.replace("|", "\\|") + "`" if words else ""


def table(rows, title):
    """The parameter table."""
    if not rows:
        return ""
    defaults = any(row.default for row in rows)
    head = f"| {title} | type |" + (" default |" if defaults else "") + " what it is |"
    lines = [head, "|---|---|" + ("---|" if defaults else "") + "---|"]
    lines += [
        f"| {code(row.name)} | {code(row.kind)} |"
        + (f" {code(row.default)} |" if defaults else "")
        + f" {escaped(row.words)} |"
        for row in rows
    ]
    return "\n".join(lines) + "\n"


def described(doc):
    """The docstring with its labels set apart."""
    for label in LABELS:
        doc = re.sub(rf"(?:(?<=\n)|(?<=\. )|^)\s*{label}: ", f"\n\n@{label}@ ", doc)
    parts = [" ".join(part.split()) for part in re.split(r"\n\s*\n", doc) if part.strip()]
    return "\n\n".join(re.sub(r"^@(\w+)@ ", r"**\1.** ", escaped(part)) for part in parts)


def signature(entry):
    """The call, for Sphinx."""
    node = entry.node
    if isinstance(node, ast.ClassDef):
        node = next(
            (
                part
                for part in node.body
                if isinstance(part, ast.FunctionDef) and part.name == "__init__"
            ),
            None,
        )
        if node is None:
            return (
                "("
                + ", ".join(
                    f"{row.name}: {row.kind}"
                    + (f" = {row.default}" if row.default and "(" not in row.default else "")
                    for row in entry.fields
                )
                + ")"
                if any(written(d).startswith("dataclass") for d in entry.node.decorator_list)
                else ""
            )
    given = ast.unparse(ast.fix_missing_locations(node.args))
    given = re.sub(r"^(self|cls)(, |$)", "", given)
    returned = (
        f" -> {written(node.returns)}"
        if node.returns and not isinstance(entry.node, ast.ClassDef)
        else ""
    )
    return f"({given}){returned}"


def body(entry, up):
    """What stands under a name's heading."""
    kind = (
        "class"
        if isinstance(entry.node, ast.ClassDef)
        else "function"
        if "." not in entry.name
        else "method"
    )
    fields = [row for row in entry.fields if row.words or entry.parameters == []]
    lines = [
        f"````{{py:{kind}}} {entry.name}{signature(entry)}",
        f":module: tsteval.{entry.module}",
        "",
        described(entry.doc) or "What it holds and does is told below.",
        "````",
        "",
        table(entry.parameters, "parameter"),
        table(fields, "field"),
    ]
    if entry.returns and (entry.returns.words or entry.returns.kind not in ("", "None")):
        lines.append(
            "**Returns** "
            + code(entry.returns.kind).replace("\\|", "|")
            + (f": {escaped(entry.returns.words)}" if entry.returns.words else "")
            + "\n"
        )
    return "\n".join(lines)


def examples(nbs):
    """Name of a notebook to its shown code cells: (source, exported, text of the output)."""
    found = {}
    for path in nbs.glob("*.ipynb"):
        cells = []
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            source = "".join(cell["source"])
            if cell["cell_type"] != "code" or "#| hide" in source:
                continue
            texts = [
                "".join(output.get("text", []))
                or "".join(output.get("data", {}).get("text/plain", []))
                for output in cell["outputs"]
                if not any(
                    kind.startswith(("image/", "text/html")) for kind in output.get("data", {})
                )
            ]
            cells.append(
                (
                    re.sub(r"^#\|.*\n?", "", source, flags=re.M).strip("\n"),
                    "#| export" in source,
                    "".join(texts).rstrip("\n"),
                )
            )
        found[str(path.relative_to(nbs))] = cells
    return found


def example(entry, cells):
    """The first cell after its definition that calls it, with what it prints."""
    shown = cells.get(entry.notebook, [])
    name = entry.name
    defined = next(
        (
            place
            for place, (source, exported, _) in enumerate(shown)
            if exported and re.search(rf"^(?:def|class) {name}\b", source, re.M)
        ),
        None,
    )
    if defined is None:
        return ""
    for source, exported, text in shown[defined + 1 :]:
        if not exported and re.search(rf"\b{name}[(.]", source):
            lines = text.splitlines()
            output = "\n".join(lines[:MOST_LINES] + (["..."] if len(lines) > MOST_LINES else []))
            return f"## In the chapter\n\n````python\n{source}\n````\n" + (
                f"\n````text\n{output}\n````\n" if output else ""
            )
    return ""


def folded_source(entry):
    """The source, folded; as HTML, so that the search does not index it."""
    coloured = highlight(entry.source, PythonLexer(), HtmlFormatter(nowrap=True)).rstrip("\n")
    return (
        '<details class="source"><summary>Source</summary>\n<div class="highlight"><pre tabindex="0">'
        + coloured.replace("\n\n", "\n&#8203;\n")
        + "</pre></div></details>\n"
    )


def write_reference(root: Path, book: Path, wanted=lambda module: True):
    """The pages of the reference. Returns the names of the modules' pages, chapters first."""
    package = root / "tsteval"
    cells = examples(root / "nbs")
    titles = {path.stem: path for path in root.glob("nbs/[0-9]*.ipynb")}
    order = {stem.split("_", 1)[1]: stem for stem in titles}
    chapters = sorted(
        (path for path in package.glob("*.py") if not path.stem.startswith("_")),
        key=lambda path: order.get(path.stem, "18_z" + path.stem),
    )
    rooms = [
        path
        for room in ROOMS
        for path in sorted(package.glob(f"{room}/*.py"))
        if not path.stem.startswith("_")
    ]
    (book / "reference").mkdir(parents=True)
    lists = {"": [], **{room: [] for room in ROOMS}}
    modules = []

    def title(notebook):
        return title_of(root / "nbs" / notebook)

    for path in [*chapters, *rooms]:
        room = "" if path.parent == package else path.parent.name
        module = f"{room}.{path.stem}" if room else path.stem
        if not wanted(module):
            continue
        words, entries, others = read_module(path, module)
        if not entries:
            continue
        modules.append(module)
        head = f"# tsteval.{module}\n\n{escaped(words)}\n\n"
        if origin := entries[0].notebook:
            head += f"Made in [{title(origin)}](../{origin}).\n\n"
        if room:  # one page a module
            text = head + "\n\n".join(
                f"## {entry.name}\n\n{body(entry, '../')}\n{members(entry, '../', '###')}\n{folded_source(entry)}"
                for entry in entries
            )
        else:
            text = (
                head
                + "| name | what it does |\n|---|---|\n"
                + "\n".join(
                    f"| [`{entry.name}`]({module}/{entry.name}.md) | {escaped(first_line(entry.doc))} |"
                    for entry in entries
                )
                + "\n"
            )
            (book / "reference" / module).mkdir()
            for entry in entries:
                page = (
                    f"---\norphan: true\n---\n# tsteval.{module}.{entry.name}\n\nFrom "
                    f"[{title(entry.notebook)}](../../{entry.notebook}), "
                    f"in the module "
                    f"[tsteval.{module}](../{module}.md).\n\n{body(entry, '../../')}\n{members(entry, '../../')}\n"
                    f"{example(entry, cells)}\n{folded_source(entry)}"
                )
                (book / "reference" / module / f"{entry.name}.md").write_text(
                    page, encoding="utf-8"
                )
        if others:
            text += "\n\nAlso here: " + ", ".join(f"`{name}`" for name in others) + ".\n"
        (book / "reference" / f"{module}.md").write_text(text, encoding="utf-8")
        lists[room].append(
            f"| [`tsteval.{module}`]({module}.md) | {escaped(words.splitlines()[0] if words else '')} "
            f"| {len(entries)} |"
        )
    top = "| module | what it holds | names |\n|---|---|---|\n"
    (book / "reference" / "index.md").write_text(
        "# The package\n\nEvery public function and class, by the chapter that derives it; below the chapters, the "
        "rooms that they build on.\n\n"
        f"## Chapters\n\n{top}"
        + "\n".join(lists[""])
        + "\n"
        + "".join(
            f"\n## {ROOMS[room]}\n\n{top}" + "\n".join(rows) + "\n"
            for room, rows in lists.items()
            if room and rows
        ),
        encoding="utf-8",
    )
    return modules


def first_line(doc):
    return (
        re.split(r"\n\s*\n|\n(?=Raises:|Source:)", doc.strip())[0].replace("\n", " ") if doc else ""
    )


def members(entry, up, level="##"):
    """The public methods of a class."""
    return "\n\n".join(f"{level} {member.name}\n\n{body(member, up)}" for member in entry.members)
