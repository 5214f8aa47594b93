"""What an evaluation found, as Markdown and as LaTeX: one document, two ways to write it, which escape every text"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

import pandas as pd

from ..core.display import displayable, number
from .findings import Findings, column_digits

Table = tuple[str, list[str], list[list[str]]]  # title, header, rows of cells


def dealt_columns(
    metrics: Iterable[Iterable[str]],  # the columns of each metric
    most: int = 5,  # columns in a table
) -> list[list[str]]:  # the columns of each table
    """The columns of all metrics, in tables that fit a page."""
    tables: list[list[str]] = [[]]
    for columns in map(list, metrics):
        if len(tables[-1]) + len(columns) > most and tables[-1]:
            tables.append([])
        for column in columns:
            if len(tables[-1]) == most:
                tables.append([])
            tables[-1].append(column)
    return [table for table in tables if table]


def score_tables(
    findings: Findings,
    columns: Sequence[str],
    most: int = 5,  # columns in a table
) -> Iterator[Table]:
    """The systems with these scores and their intervals."""
    metrics = [
        [column for column in metric["columns"] if column in columns] for metric in findings.metrics
    ]
    for shown in dealt_columns(metrics, most):
        headings = [findings.headings[column] for column in shown]
        digits = {column: column_digits(findings.systems, column) for column in shown}
        rows = [
            [row["system"], str(row["n"]), *(_score(row, *one) for one in digits.items())]
            for row in findings.systems
        ]
        title = f"{', '.join(headings)}, with 95% intervals"
        yield title, ["system", "n", *headings], rows


def _score(row: Mapping, column: str, digits: int) -> str:
    value, low, high = (_number(row[column + end], digits) for end in ("", "_low", "_high"))
    return f"{value} [{low}, {high}]" if row[f"{column}_low"] is not None else value


def _number(value: float | None, digits: int = 3) -> str:
    return number(value, digits, missing="none")


def comparison_tables(
    findings: Findings,
    columns: Sequence[str],
) -> Iterator[Table]:
    """Each system against the baseline, by these scores."""
    header = ["score", "difference", "95% interval", "p", "p (Holm)", "verdict"]
    for pair in findings.comparisons:
        rows = [
            [
                findings.headings[row["metric"]],
                _number(row["difference"]),
                f"[{_number(row['low'])}, {_number(row['high'])}]",
                _number(row["p_value"], 4),
                _number(row["p_holm"], 4),
                row["verdict"],
            ]
            for row in pair["metrics"]
            if row["metric"] in columns
        ]
        if rows:
            yield f"{pair['a']} minus {pair['b']}", header, rows


class _Language(Protocol):
    """How the parts of a document are written. Whatever text is handed to it is escaped there."""

    columns: int  # scores in a table: what fits between the margins
    head: list[str]
    tail: list[str]

    def section(self, title: str) -> list[str]: ...
    def paragraph(self, text: str) -> list[str]: ...
    def emphasis(self, text: str) -> list[str]: ...
    def items(self, texts: Iterable[str]) -> list[str]: ...
    def note(self, kind: str, text: str) -> list[str]: ...
    def table(self, title: str, header: list[str], rows: list[list[str]]) -> list[str]: ...
    def figure(self, caption: str, files: list[str]) -> list[str]: ...
    def pair(self, row: Mapping, scores: str) -> list[str]: ...
    def facts(self, rows: list[list[str]]) -> list[str]: ...


def _document(
    language: _Language,
    findings: Findings,
    figures: Iterable[Mapping],  # caption, files
) -> str:
    """The whole report from its conclusions to its signatures."""
    lines = [*language.head, *language.paragraph(f"{findings.about}.")]
    lines += language.section("What it found")
    lines += language.emphasis(findings.overall) if findings.overall else []
    lines += language.items(conclusion.text for conclusion in findings.conclusions)
    lines += language.paragraph(findings.unsettled) if findings.unsettled else []
    if findings.doubts:
        lines += [*language.section("What not to believe"), *language.items(findings.doubts)]
    for note in findings.notes:
        lines += language.note(NOTES[note["warning"]], note["text"])
    for figure in figures:
        lines += language.figure(figure["caption"], figure["files"])
    for title, columns in (("Scores", findings.leading), ("All other scores", findings.relatives)):
        if columns:
            lines += language.section(title)
        for table in score_tables(findings, columns, language.columns):
            lines += language.table(*table)
        for table in comparison_tables(findings, columns):
            lines += language.table(*table)
    for title, examples in findings.galleries.items():
        lines += language.section(title)
        for row in examples:
            scores = ", ".join(f"{name} {_number(value, 2)}" for name, value in row["scores"])
            lines += language.pair(row, "; ".join([scores, *row["objections"]]))
    lines += [*language.section("Methods"), *language.paragraph(findings.methods)]
    lines += language.items(findings.references)
    lines += [*language.section("Signatures"), *language.facts(_facts(findings))]
    return "\n".join([*lines, *language.tail])


NOTES = {True: "Warning", False: "Note"}


def _facts(findings: Findings) -> list[list[str]]:
    """What is needed to repeat the scores: signatures, checksums of models, versions."""
    rows = [[metric["name"], metric["signature"]] for metric in findings.metrics]
    rows += [
        [f"{metric['name']}, a row", metric["row_signature"]]
        for metric in findings.metrics
        if metric["row_signature"]
    ]
    rows += [[name, checksum] for name, checksum in findings.models.items()]
    versions = ", ".join(f"{name} {version}" for name, version in findings.versions.items())
    return [*rows, ["versions", versions]]


def marked(
    text: str,
    spans: Iterable[tuple[int, int]],  # (start, end) of the edited words, ascending
    escape: Callable[[str], str],
    before: str,
    after: str,
) -> str:
    """A text with its edited words between two marks; spaces stay outside of them."""
    parts = []
    at = 0
    for start, end in spans:
        word = escape(text[start:end])
        parts += [_with_spaces(text[at:start], escape), f"{before}{word}{after}" if word else ""]
        at = end
    return "".join([*parts, _with_spaces(text[at:], escape)])


def _with_spaces(text: str, escape: Callable[[str], str]) -> str:
    """Escaped, with a space where a space was at either end."""
    last = text[-1:].isspace() and bool(text.strip())
    return f"{' ' * text[:1].isspace()}{escape(text)}{' ' * last}"


def _one_line(text) -> str:
    return " ".join(displayable(str(text)).split())


def in_markdown(text) -> str:
    """Any text as one line of Markdown that shows it and does nothing."""
    line = _one_line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    line = re.sub(r"([\\`*_{}\[\]#!|~])", r"\\\1", line)
    # else it becomes a link by itself
    line = re.sub(r"(https?|ftp|mailto):", r"\1&#58;", line, flags=re.I).replace("www.", "www&#46;")
    # else the line becomes an item of a list
    return re.sub(r"^(\d*)([-+.])(?=\s|$)", r"\1\\\2", line)


def markdown_lines(
    header: list[str],
    rows: list[list[str]],  # cells; all that is given is escaped here
) -> list[str]:
    """A table as lines of Markdown, the first column to the left."""
    cells = [map(in_markdown, header), [":--", *["--:"] * (len(header) - 1)]]
    cells += [map(in_markdown, row) for row in rows]
    return [*(f"| {' | '.join(row)} |" for row in cells), ""]


class _Markdown:
    """As GitHub writes it."""

    columns = 5
    head = ["# Evaluation report", ""]
    tail: list[str] = []

    def section(self, title):
        return [f"## {in_markdown(title)}", ""]

    def paragraph(self, text):
        return [in_markdown(text), ""]

    def emphasis(self, text):
        return [f"**{in_markdown(text)}**", ""]

    def items(self, texts):
        return [*(f"- {in_markdown(text)}" for text in texts), ""]

    def note(self, kind, text):
        return [f"> **{kind}.** {in_markdown(text)}", ""]

    def table(self, title, header, rows):
        return [in_markdown(title), "", *markdown_lines(header, rows)]

    def figure(self, caption, files):
        return [*(f"![{in_markdown(caption)}]({file})" for file in files), ""]

    def pair(self, row, scores):
        system = f"{in_markdown(row['system'])} ({in_markdown(scores)})"
        return [
            f"**{in_markdown(row['reason'])}**, {system}",
            "",
            f"- source: {marked(row['source'], row['source_spans'], in_markdown, '~~', '~~')}",
            f"- output: {marked(row['output'], row['output_spans'], in_markdown, '**', '**')}",
            "",
        ]

    def facts(self, rows):
        return markdown_lines(["metric", "signature"], rows)


_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "_": r"\_",
    "%": r"\%",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    '"': r"\textquotedbl{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "`": "{`}",
    "'": "{'}",
    "-": "{-}",
    "[": "{[}",  # pandas leaves these six alone: they make ligatures, or options of a line's end
    "]": "{]}",
}


def in_latex(text) -> str:
    """Any text as one line of LaTeX that shows it and does nothing."""
    return "".join(_LATEX.get(character, character) for character in _one_line(text))


def latex_lines(
    title: str,
    header: list[str],
    rows: list[list[str]],  # cells; all that is given is escaped here
) -> list[str]:
    """A table as lines of LaTeX, the first column to the left."""
    frame = pd.DataFrame(
        [[in_latex(cell) for cell in row] for row in rows], columns=[*map(in_latex, header)]
    )
    table = frame.to_latex(
        index=False,
        escape=False,
        caption=in_latex(title),
        position="htbp",
        column_format="l" + "r" * (len(header) - 1),
    )
    table = table.replace(r"\begin{tabular}", "\\centering\\small\n\\begin{tabular}", 1)
    return [*table.splitlines(), ""]


class _Latex:
    """For LuaLaTeX."""

    columns = 3
    head = [
        r"% run with lualatex; figures need the package svg and Inkscape",
        r"\documentclass{article}",
        r"\usepackage[a4paper,margin=2cm]{geometry}",
        r"\usepackage{fontspec,booktabs,xcolor,svg,xurl}",
        r"\usepackage[normalem]{ulem}",
        r"\begin{document}",
        r"\section*{Evaluation report}",
        "",
    ]
    tail = [r"\end{document}", ""]

    def section(self, title):
        return [rf"\subsection*{{{in_latex(title)}}}"]

    def paragraph(self, text):
        return [in_latex(text), ""]

    def emphasis(self, text):
        return [rf"\textbf{{{in_latex(text)}}}"]

    def items(self, texts):
        items = [rf"\item {in_latex(text)}" for text in texts]
        return [r"\begin{itemize}", *items, r"\end{itemize}"] if items else []

    def note(self, kind, text):
        return [rf"\paragraph{{{kind}}} {in_latex(text)}", ""]

    def table(self, title, header, rows):
        return latex_lines(title, header, rows)

    def figure(self, caption, files):
        width = r"\linewidth" if len(files) == 1 else r".48\linewidth"
        return [
            r"\begin{figure}[htbp]",
            r"\centering",
            *(rf"\includesvg[width={width}]{{{file.removesuffix('.svg')}}}" for file in files),
            rf"\caption{{{in_latex(caption)}}}",
            r"\end{figure}",
            "",
        ]

    def pair(self, row, scores):
        dropped = r"\textcolor{red!70!black}{\sout{"
        added = r"\textcolor{blue!70!black}{\uline{"
        system = f"{in_latex(row['system'])} ({in_latex(scores)})"
        return [
            rf"\paragraph{{{in_latex(row['reason'])}}} {system}\\",
            marked(row["source"], row["source_spans"], in_latex, dropped, "}}") + r"\\",
            marked(row["output"], row["output_spans"], in_latex, added, "}}"),
            "",
        ]

    def facts(self, rows):
        items = [
            rf"\item {in_latex(name)}: {{\footnotesize {in_latex(text)}}}" for name, text in rows
        ]
        return [r"\begin{itemize}\raggedright", *items, r"\end{itemize}"]


def render_markdown(
    findings: Findings,
    figures: Iterable[Mapping] = (),  # caption, files: names of SVG files beside the report
) -> str:
    """The report as Markdown with tables as GitHub writes them."""
    return _document(_Markdown(), findings, figures)


def render_latex(
    findings: Findings,
    figures: Iterable[Mapping] = (),  # caption, files: names of SVG files beside the report
) -> str:
    """The report as a document for LuaLaTeX."""
    return _document(_Latex(), findings, figures)
