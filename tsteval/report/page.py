"""What an evaluation found, as a page, as Markdown, as LaTeX and as JSON, with its methods and citations"""

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Mapping

from markupsafe import Markup

from ..core.assets import packaged_path
from ..core.checks import check_choice
from ..core.display import displayable, number
from .charts import panels_chart
from .findings import Findings, column_digits
from .forest import differences_panels, systems_panels
from .methods import Evaluated
from .words import edited_pair


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


def _cell(row: Mapping, column: str, digits: int) -> str:
    value, low, high = (_number(row[column + end], digits) for end in ("", "_low", "_high"))
    return f"{value} [{low}, {high}]" if row[f"{column}_low"] is not None else value


def _number(value: float | None, digits: int = 3) -> str:
    return number(value, digits, missing="none")


_SCORES = "Scores"
_RELATIVES = "All other scores"  # what stands for each metric, and what follows from the same model


def _shown(content: Findings) -> list[tuple[str, list[str]]]:
    """The leading columns and their relatives, under their titles."""
    return [
        (title, columns)
        for title, columns in ((_SCORES, content.leading), (_RELATIVES, content.relatives))
        if columns
    ]


def _compared(
    content: Findings, columns: Iterable[str]
) -> Iterable[tuple[str, list[str], list[list[str]]]]:
    """Title, header and rows of each comparison, by some columns."""
    for pair in content.comparisons:
        rows = [
            [
                content.headings[row["metric"]],
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
            yield (
                f"{pair['a']} minus {pair['b']}",
                ["score", "difference", "95% interval", "p", "p (Holm)", "verdict"],
                rows,
            )


def _scored(
    content: Findings, columns: Iterable[str], most: int = 5
) -> Iterable[tuple[str, list[str], list[list[str]]]]:
    """Title, header and rows of each table of these columns, with so many at the most."""
    wanted = set(columns)
    for shown in dealt_columns(
        [[one for one in metric["columns"] if one in wanted] for metric in content.metrics], most
    ):
        headings = [content.headings[column] for column in shown]
        rows = [
            [
                row["system"],
                str(row["n"]),
                *(_cell(row, column, column_digits(content.systems, column)) for column in shown),
            ]
            for row in content.systems
        ]
        yield ", ".join(headings), ["system", "n", *headings], rows


def render_page(
    content: Findings,
    figures: Iterable[Mapping],  # caption, charts, signatures: what folds under the scores
) -> str:  # HTML
    """The report as one page that needs no other file; the texts in it are escaped."""
    import jinja2

    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["displayable"] = lambda value: displayable(str(value))
    environment.filters["number"] = _number
    environment.filters["breakable"] = lambda signature: Markup("|<wbr>").join(
        displayable(signature).split("|")
    )
    template = environment.from_string(
        packaged_path("report.html.jinja").read_text(encoding="utf-8")
    )
    script = packaged_path("report_sort.js").read_text(encoding="utf-8")
    checksum = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()

    def pair(row):
        return edited_pair(row["source"], row["output"], row["source_spans"], row["output_spans"])

    relatives = [
        [one for one in metric["columns"] if one in set(content.relatives)]
        for metric in content.metrics
    ]
    return template.render(
        content=content,
        figures=list(figures),
        pair=pair,
        forests=_forests(content),
        tables=[dealt_columns([[one] for one in content.leading]), dealt_columns(relatives)],
        digits=lambda column: column_digits(content.systems, column),
        script=Markup(script),
        checksum=checksum,
    )


def _forests(content: Findings) -> list[dict]:
    """The pictures that carry a report: the systems, and their differences where they were compared."""
    signatures = [metric["signature"] for metric in content.metrics]
    told = (
        "Filled circles are better than {}, squares worse, open circles not told apart.".format(
            content.comparisons[0]["b"]
        )
        if content.comparisons
        else ""
    )
    found = [
        {
            "caption": f"Scores with 95% intervals. {told}".strip(),
            "charts": [panels_chart([panel], above=True) for panel in systems_panels(content)],
            "signatures": signatures,
        }
    ]
    if content.comparisons:
        found.append(
            {
                "caption": f"Differences from {content.comparisons[0]['b']} with 95% intervals. An interval that "
                f"holds 0 leaves it open who is ahead.",
                "charts": [
                    panels_chart([panel], origin=True, above=True)
                    for panel in differences_panels(content)
                ],
                "signatures": signatures,
            }
        )
    return found


def _in_markdown(text) -> str:
    line = (
        " ".join(displayable(str(text)).split())
        .replace("&", "&amp;")
        .replace("<", "&lt;")
        .replace(">", "&gt;")
    )
    line = re.sub(r"([\\`*_{}\[\]#!|~])", r"\\\1", line)
    # else it becomes a link by itself
    line = re.sub(r"(https?|ftp|mailto):", r"\1&#58;", line, flags=re.I).replace("www.", "www&#46;")
    return re.sub(
        r"^(\d*)([-+.])(?=\s|$)", r"\1\\\2", line
    )  # else the line becomes an item of a list


def _marked(text: str, spans: Iterable, escape, before: str, after: str) -> str:
    """A text with its edited words between two marks."""
    parts = []
    at = 0
    for start, end in spans:
        word = escape(text[start:end])
        parts += [_kept_ends(text[at:start], escape), f"{before}{word}{after}" if word else ""]
        at = end
    return "".join([*parts, _kept_ends(text[at:], escape)])


def _kept_ends(text: str, escape) -> str:
    """Escaped, with a space where a space was at either end."""
    return f"{' ' * text[:1].isspace()}{escape(text)}{' ' * (text[-1:].isspace() and bool(text.strip()))}"


def markdown_lines(
    header: list[str],  # escaped
    rows: list[list[str]],  # cells, which are escaped here
) -> list[str]:
    """A table as lines of Markdown, the first column to the left."""
    lines = [
        header,
        [":--", *["--:"] * (len(header) - 1)],
        *([_in_markdown(cell) for cell in row] for row in rows),
    ]
    return [*(f"| {' | '.join(line)} |" for line in lines), ""]


def render_markdown(
    content: Findings,
    figures: Iterable[Mapping] = (),  # caption, files: names of SVG files beside the report
) -> str:
    """The report as Markdown with tables as GitHub writes them."""
    lines = _markdown_conclusions(content)
    for figure in figures:
        lines += [
            *(f"![{_in_markdown(figure['caption'])}]({file})" for file in figure["files"]),
            "",
        ]
    for heading, columns in _shown(content):
        lines += [f"## {heading}", ""]
        for title, header, rows in _scored(content, columns):
            lines += [
                f"{_in_markdown(title)}, with 95% intervals",
                "",
                *markdown_lines([*map(_in_markdown, header)], rows),
            ]
        for title, header, rows in _compared(content, columns):
            lines += [_in_markdown(title), "", *markdown_lines(header, rows)]
    for title, examples in content.galleries.items():
        lines += [f"## {_in_markdown(title)}", ""]
        for row in examples:
            told = ", ".join(f"{heading} {_number(value, 2)}" for heading, value in row["scores"])
            lines += [
                f"**{_in_markdown(row['reason'])}**, {_in_markdown(row['system'])} ({_in_markdown(told)})",
                "",
                f"- source: {_marked(row['source'], row['source_spans'], _in_markdown, '~~', '~~')}",
                f"- output: {_marked(row['output'], row['output_spans'], _in_markdown, '**', '**')}",
                "",
            ]
    lines += [
        "## Methods",
        "",
        _in_markdown(content.methods),
        "",
        *(f"- {_in_markdown(work)}" for work in content.references),
        "",
    ]
    lines += ["## Signatures", "", *markdown_lines(["metric", "signature"], _facts(content))]
    return "\n".join(lines)


def _markdown_conclusions(content: Findings) -> list[str]:
    """What was found and what not to believe."""
    lines = [
        "# Evaluation report",
        "",
        f"{_in_markdown(content.about)}.",
        "",
        "## What it found",
        "",
    ]
    if content.overall:
        lines += [f"**{_in_markdown(content.overall)}**", ""]
    lines += [*(f"- {_in_markdown(found.text)}" for found in content.conclusions), ""]
    if content.unsettled:
        lines += [_in_markdown(content.unsettled), ""]
    if content.doubts:
        lines += [
            "## What not to believe",
            "",
            *(f"- {_in_markdown(text)}" for text in content.doubts),
            "",
        ]
    for note in content.notes:
        lines += [f"> **{_TOLD[note['warning']]}.** {_in_markdown(note['text'])}", ""]
    return lines


_TOLD = {True: "Warning", False: "Note"}


def told_notes(
    result: Evaluated,
) -> list[str]:  # lines, warnings first
    """What has to be known about the scores, for a terminal."""
    return [
        f"{_TOLD[note.warning].lower()}: {displayable(note.text)}"
        for note in result.notes().itertuples()
    ]


def _facts(content: Findings) -> list[list[str]]:
    """What is needed to repeat the scores: signatures, checksums of models, versions."""
    rows = [[metric["name"], metric["signature"]] for metric in content.metrics]
    rows += [
        [f"{metric['name']}, a row", metric["row_signature"]]
        for metric in content.metrics
        if metric["row_signature"]
    ]
    rows += [[name, checksum] for name, checksum in content.models.items()]
    return [
        *rows,
        ["versions", ", ".join(f"{name} {version}" for name, version in content.versions.items())],
    ]


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
    "[": "{[}",
    "]": "{]}",
}


def _in_latex(text) -> str:
    return "".join(
        _LATEX.get(character, character) for character in " ".join(displayable(str(text)).split())
    )


def latex_lines(
    title: str,
    header: list[str],
    rows: list[list[str]],  # cells; all that is given is escaped here
) -> list[str]:
    """A table as lines of LaTeX, the first column to the left."""
    lines = [
        r"\begin{table}[htbp]",
        r"\centering\small",
        rf"\caption{{{_in_latex(title)}}}",
        rf"\begin{{tabular}}{{l{'r' * (len(header) - 1)}}}",
        r"\toprule",
        " & ".join(map(_in_latex, header)) + r" \\",
        r"\midrule",
        *(" & ".join(map(_in_latex, row)) + r" \\" for row in rows),
    ]
    return [*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}", ""]


_HEAD = [
    r"% run with lualatex; figures need the package svg and Inkscape",
    r"\documentclass{article}",
    r"\usepackage[a4paper,margin=2cm]{geometry}",
    r"\usepackage{fontspec,booktabs,xcolor,svg,xurl}",
    r"\usepackage[normalem]{ulem}",
    r"\begin{document}",
    r"\section*{Evaluation report}",
    "",
]


def render_latex(
    content: Findings,
    figures: Iterable[Mapping] = (),  # caption, files: names of SVG files beside the report
) -> str:
    """The report as a document for LuaLaTeX."""
    lines = [
        *_HEAD,
        f"{_in_latex(content.about)}.",
        r"\subsection*{What it found}",
        _in_latex(content.overall),
        r"\begin{itemize}",
        *(rf"\item {_in_latex(found.text)}" for found in content.conclusions),
        r"\end{itemize}",
        _in_latex(content.unsettled),
        "",
    ]
    if content.doubts:
        lines += [
            r"\subsection*{What not to believe}",
            r"\begin{itemize}",
            *(rf"\item {_in_latex(text)}" for text in content.doubts),
            r"\end{itemize}",
        ]
    for note in content.notes:
        lines += [rf"\paragraph{{{_TOLD[note['warning']]}}} {_in_latex(note['text'])}", ""]
    for heading, columns in _shown(content):
        lines += [rf"\subsection*{{{heading}}}"]
        for title, header, rows in _scored(content, columns, 3):  # what fits between the margins
            lines += latex_lines(f"{title}, with 95% intervals", header, rows)
        for title, header, rows in _compared(content, columns):
            lines += latex_lines(title, header, rows)
    for figure in figures:
        width = r"\linewidth" if len(figure["files"]) == 1 else r".48\linewidth"
        pictures = [
            rf"\includesvg[width={width}]{{{file.removesuffix('.svg')}}}"
            for file in figure["files"]
        ]
        lines += [
            r"\begin{figure}[htbp]",
            r"\centering",
            *pictures,
            rf"\caption{{{_in_latex(figure['caption'])}}}",
            r"\end{figure}",
            "",
        ]
    for title, examples in content.galleries.items():
        lines += [rf"\subsection*{{{_in_latex(title)}}}"]
        for row in examples:
            told = ", ".join(f"{heading} {_number(value, 2)}" for heading, value in row["scores"])
            lines += [
                rf"\paragraph{{{_in_latex(row['reason'])}}} {_in_latex(row['system'])} ({_in_latex(told)})\\",
                _marked(
                    row["source"],
                    row["source_spans"],
                    _in_latex,
                    r"\textcolor{red!70!black}{\sout{",
                    "}}",
                )
                + r"\\",
                _marked(
                    row["output"],
                    row["output_spans"],
                    _in_latex,
                    r"\textcolor{blue!70!black}{\uline{",
                    "}}",
                ),
                "",
            ]
    lines += [
        r"\subsection*{Methods}",
        _in_latex(content.methods),
        r"\begin{itemize}",
        *(rf"\item {_in_latex(work)}" for work in content.references),
        r"\end{itemize}",
        r"\subsection*{Signatures}",
        r"\begin{itemize}\raggedright",
        *(
            rf"\item {_in_latex(name)}: {{\footnotesize {_in_latex(said)}}}"
            for name, said in _facts(content)
        ),
        r"\end{itemize}",
        r"\end{document}",
        "",
    ]
    return "\n".join(lines)


_FORMATS = {
    "html": "html",
    "markdown": "md",
    "latex": "tex",
    "json": "json",
}  # and the ending of the file


def render(
    content: Findings,
    figures: Iterable[
        Mapping
    ] = (),  # caption, charts, signatures: beside those that every report has
    format: str = "html",  # html, markdown, latex or json
    name: str = "report",  # of the file, without its ending
) -> dict[str, str]:  # file -> text; the report comes last
    """The report in a format, with the files that it needs beside it. Raises: InputError for an unknown format."""
    check_choice(format, "format", _FORMATS)
    figures = list(figures)
    file = f"{name}.{_FORMATS[format]}"
    if format == "html":
        return {file: render_page(content, figures)}
    if format == "json":
        return {file: json.dumps(content.plain(), indent=1, ensure_ascii=False, allow_nan=False)}
    files = {}
    named = []
    for figure in [*_forests(content), *figures]:
        first = len(files) + 1
        names = [f"{name}-figure-{first + place}.svg" for place in range(len(figure["charts"]))]
        files |= {file: chart.svg for file, chart in zip(names, figure["charts"])}
        named.append({**figure, "files": names})
    return {
        **files,
        file: (render_markdown if format == "markdown" else render_latex)(content, named),
    }
