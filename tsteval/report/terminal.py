"""Tables for a terminal, a paper or a program, made harmless; a citation; completion in the shell"""

import csv
import json
import re
import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from ..core.assets import packaged_path
from ..core.display import number, printable, spreadsheet_safe
from .findings import Findings
from .methods import Evaluated
from .typeset import latex_lines, markdown_lines


def one_line(
    message,  # anything
) -> str:
    """A message that holds somebody's texts, harmless and no longer than a person reads."""
    return printable(" ".join(str(message).split()), 1_000)


def say(
    *lines,  # printed one below the other
    file=None,  # a text stream; None: standard output
) -> None:
    """Print what the stream can print, and a question mark for each character that it cannot."""
    file = sys.stdout if file is None else file
    encoding = getattr(file, "encoding", None) or "utf-8"
    print(
        *(str(line).encode(encoding, "replace").decode(encoding, "replace") for line in lines),
        sep="\n",
        file=file,
    )


def _width(text: str) -> int:
    return sum(
        0
        if unicodedata.combining(c) or c in "\u200c\u200d"
        else 1 + (unicodedata.east_asian_width(c) in "WF")
        for c in text
    )


def aligned(
    columns: list[list[str]],  # cells, from top to bottom
) -> str:
    """Columns of cells as lines of text."""
    wide = [max(map(_width, column)) for column in columns]
    return "\n".join(
        "  ".join(cell + " " * (size - _width(cell)) for cell, size in zip(cells, wide)).rstrip()
        for cells in zip(*columns)
    )


def _aligned_rows(rows: list[list[str]]) -> str:
    return aligned([list(column) for column in zip(*rows)])


WIDTH = 80  # characters in a line of a table


def _fits(text: str) -> bool:
    return all(_width(line) <= WIDTH for line in text.split("\n"))


def _narrow_rows(rows: list[list[str]]) -> str:
    """A table whose first column gives way where a line would be too long."""
    text = _aligned_rows(rows)
    over = max(map(_width, text.split("\n"))) - WIDTH
    if over <= 0:
        return text
    room = max(max(_width(row[0]) for row in rows) - over, 10)
    return _aligned_rows([[printable(row[0], room), *row[1:]] for row in rows])


NAME = 40  # characters of a system's name in a table


def format_summary(
    rows: Sequence[Mapping],  # a system each: system, n, and each column with its _low and _high
    headings: dict[str, str],  # column -> heading, in the order of the table
    width: int = WIDTH,  # characters in a line
    digits: Mapping[str, int]
    | None = None,  # column -> places after the point; 3 where it says nothing
) -> str:  # lines of text, one a system, in as many blocks as are needed
    """The summary as tables for a terminal."""
    first = [
        ["system", *(printable(row["system"], NAME) for row in rows)],
        ["n", *(str(row["n"]) for row in rows)],
    ]
    room = max(width - sum(max(map(_width, cells)) + 2 for cells in first), 10)
    columns = [
        [printable(heading, min(NAME, room)), *(_score(row, name, digits) for row in rows)]
        for name, heading in headings.items()
    ]
    blocks = []
    block = list(first)
    for column in columns:
        if (
            len(block) > len(first)
            and sum(max(map(_width, cells)) + 2 for cells in [*block, column]) - 2 > width
        ):
            blocks = [*blocks, block]
            block = list(first)
        block.append(column)
    return "\n\n".join(map(aligned, [*blocks, block]))


def _score(row: Mapping, name: str, digits: Mapping[str, int] | None) -> str:
    return _with_interval(
        row[name], row[f"{name}_low"], row[f"{name}_high"], (digits or {}).get(name, 3)
    )


def _with_interval(value: float | None, low: float | None, high: float | None, digits: int) -> str:
    value, low, high = (number(figure, digits, missing="nan") for figure in (value, low, high))
    return value if low == high == "nan" else f"{value} [{low}, {high}]"


def csv_text(
    frame: pd.DataFrame,
    safe: bool = False,  # whether texts that a spreadsheet takes for formulas get an apostrophe before them
) -> str:
    """A table as CSV that is read again as it is; half of a surrogate pair, which no file can hold, becomes a question
    mark."""

    def written(cell):
        if not isinstance(cell, str):
            return cell
        text = cell.encode("utf-8", "replace").decode("utf-8")
        return spreadsheet_safe(text) if safe else text

    texts = frame.columns[[not pd.api.types.is_numeric_dtype(kind) for kind in frame.dtypes]]
    frame = frame.assign(
        **{
            name: pd.Series(map(written, frame[name]), index=frame.index, dtype=object)
            for name in texts
        }
    )
    # only what stands in quotation marks keeps a carriage return
    returns = any(isinstance(cell, str) and "\r" in cell for name in texts for cell in frame[name])
    quoting = csv.QUOTE_NONNUMERIC if returns else csv.QUOTE_MINIMAL
    return frame.to_csv(index=False, lineterminator="\n", quoting=quoting)


def per_pair_csv(
    result: Evaluated,
    safe: bool = False,  # as for `csv_text`
) -> str:
    """Every text and score of an evaluation as CSV, one row an output."""
    frame = result.per_pair.drop(columns="references")
    if (frame.input == frame.source).all():
        frame = frame.drop(columns="input")
    for place in range(result.per_pair.references.map(len).max()):
        values = [
            texts[place] if place < len(texts) else "" for texts in result.per_pair.references
        ]
        frame.insert(3 + place, "reference" if place == 0 else f"reference_{place + 1}", values)
    return csv_text(frame, safe)


def _places(findings: Findings) -> dict[str, int]:
    return dict.fromkeys(findings.percent, 1)


def difference_rows(
    findings: Findings,
    columns: Iterable[str] | None = None,  # which scores; None: all
) -> list[
    list[str]
]:  # the header, and one row a system and score; only the header if nothing can be compared
    """Every system against the baseline."""
    shown = set(findings.headings if columns is None else columns)
    rows = []
    for pair in findings.comparisons:
        for row in pair["metrics"]:
            if row["metric"] not in shown:
                continue
            places = _places(findings).get(row["metric"], 3)
            figures = _with_interval(row["difference"], row["low"], row["high"], places)
            rows.append(
                [
                    f"{printable(pair['a'], NAME)} minus {printable(pair['b'], NAME)}",
                    findings.headings[row["metric"]],
                    figures,
                    *(number(row[key], 4, missing="nan") for key in ("p_value", "p_holm")),
                    row["verdict"],
                ]
            )
    return [["systems", "score", "difference", "p", "p (Holm)", "verdict"], *rows]


def comparison_table(
    findings: Findings,  # of two systems, of which the second is the baseline
    columns: Sequence[str],  # which scores
) -> str:
    """One row a score: both systems, the difference, p-values, and the verdict on the first."""
    (pair,), scores = findings.comparisons, {row["system"]: row for row in findings.systems}
    places = {column: _places(findings).get(column, 3) for column in columns}
    own = [row["metric"] for row in pair["metrics"] if row["metric"] in places]

    def own_scores(column):
        return (number(scores[pair[side]][column], places[column], missing="nan") for side in "ab")

    rows = [
        [findings.headings[column], *own_scores(column), *row[2:]]
        for column, row in zip(own, difference_rows(findings, columns)[1:])
    ]
    systems = [printable(pair[side], NAME) for side in "ab"]
    rows = [["score", *systems, *difference_rows(findings)[0][2:]], *rows]
    text = _aligned_rows(rows)
    if _fits(text):
        return text
    values = _narrow_rows([row[:3] for row in rows])
    return f"{values}\n\n{_narrow_rows([[row[0], *row[3:]] for row in rows])}"


def _difference_table(
    rows: list[list[str]],  # from `difference_rows`
) -> str:
    """The differences; where a line would be too long, those of each pair of systems below its names."""
    text = _aligned_rows(rows)
    if _fits(text):
        return text
    header, *others = rows
    pairs: dict[str, list[list[str]]] = {}
    for pair, *cells in others:
        pairs.setdefault(pair, []).append(cells)
    return "\n\n".join(
        f"{pair}\n{_narrow_rows([header[1:], *cells])}" for pair, cells in pairs.items()
    )


TABLES = ("text", "markdown", "latex", "json", "csv")


def render_table(
    findings: Findings,
    format: str = "text",  # of TABLES
    safe: bool = False,  # as for `csv_text`
    all_scores: bool = False,  # with the relatives of the scores that stand for their metrics
) -> str:
    """The figures in a format, the texts in it escaped; JSON and CSV hold all scores in any case."""
    if format == "json":
        content = {
            "systems": list(findings.systems),
            "comparisons": list(findings.comparisons),
            "conclusions": [conclusion.text for conclusion in findings.conclusions],
            "percent": list(findings.percent),
        }
        return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
    if format == "csv":
        return csv_text(pd.DataFrame(_long_rows(findings)), safe).removesuffix("\n")
    digits = _places(findings)
    columns = list(findings.headings) if all_scores else findings.leading
    compared = difference_rows(findings, columns)
    if format == "text":
        headings = {name: findings.headings[name] for name in columns}
        blocks = [format_summary(findings.systems, headings, digits=digits)]
        if len(compared) > 1:
            blocks.append(_difference_table(compared))
        return "\n\n".join(blocks)
    lines = []
    for start in range(0, len(columns), 3):
        shown = columns[start : start + 3]
        cells = [
            [
                printable(row["system"], NAME),
                str(row["n"]),
                *(_score(row, name, digits) for name in shown),
            ]
            for row in findings.systems
        ]
        lines += _typeset(
            format,
            "Scores with 95% intervals",
            ["system", "n", *(findings.headings[name] for name in shown)],
            cells,
        )
    if len(compared) > 1:
        lines += _typeset(format, "Differences with 95% intervals", compared[0], compared[1:])
    return "\n".join(lines).rstrip("\n")


def _typeset(format: str, title: str, header: list[str], rows: list[list[str]]) -> list[str]:
    return (
        latex_lines(title, header, rows)
        if format == "latex"
        else markdown_lines([printable(name) for name in header], rows)
    )


def _long_rows(findings: Findings) -> list[dict[str, Any]]:
    """One row a system and score, with its difference from the baseline."""
    pairs = {
        (pair["a"], row["metric"]): (pair["b"], row)
        for pair in findings.comparisons
        for row in pair["metrics"]
    }
    rows = []
    for system in findings.systems:
        for column in findings.headings:
            row = {
                "system": system["system"],
                "n": system["n"],
                "score": column,
                "value": system[column],
                "low": system[f"{column}_low"],
                "high": system[f"{column}_high"],
            }
            if findings.comparisons:
                baseline, other = pairs.get((system["system"], column), (None, {}))
                row |= {
                    "baseline": baseline,
                    "difference": other.get("difference"),
                    "difference_low": other.get("low"),
                    "difference_high": other.get("high"),
                    "p_value": other.get("p_value"),
                    "p_holm": other.get("p_holm"),
                    "verdict": other.get("verdict"),
                }
            rows.append(row)
    return rows


def citation(
    style: str = "text",  # text | bibtex
) -> str:
    """How to cite this package, from its CITATION.cff."""
    import yaml

    facts = yaml.safe_load(packaged_path("CITATION.cff").read_text(encoding="utf-8"))
    people = [
        author.get("name") or f"{author['given-names']} {author['family-names']}"
        for author in facts["authors"]
    ]
    year = str(facts["date-released"])[:4]
    title = facts["title"]
    version = facts["version"]
    if style == "text":
        return f"{', '.join(people)} ({year}). {title} (version {version}) [Computer software]."
    fields = {
        "author": " and ".join(f"{{{name}}}" for name in people),
        "title": f"{{{title}}}",
        "version": version,
        "year": year,
        "license": facts["license"],
    }
    escaped = {name: re.sub(r"([&%#_$])", r"\\\1", str(value)) for name, value in fields.items()}
    lines = [f"  {name} = {{{value}}}," for name, value in escaped.items()]
    return "\n".join([f"@software{{tsteval{year},", *lines, "}"])


_SHELLS = ("bash", "zsh", "fish", "tcsh")


def completion_script(
    parser,  # of argparse
    shell: str,  # bash, zsh, fish or tcsh
) -> str:
    """A script that teaches a shell the words of a command."""
    import shtab

    for part in _parsers(parser):
        for action in part._actions:
            if action.metavar in ("FILE", "RATINGS"):
                action.complete = shtab.FILE
            if action.metavar == "FOLDER":
                action.complete = shtab.DIRECTORY
    return shtab.complete(parser, shell)


def _parsers(parser):
    """A parser and those of its sub-commands."""
    yield parser
    for action in parser._actions:
        if isinstance(action.choices, dict):
            yield from action.choices.values()
