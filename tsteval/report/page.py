"""What an evaluation found as one page, and the choice between page, Markdown, LaTeX and JSON"""

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping

from markupsafe import Markup

from ..core.assets import packaged_path
from ..core.checks import check_choice
from ..core.display import displayable, number
from .charts import panels_chart
from .findings import Findings, column_digits
from .forest import differences_panels, systems_panels
from .methods import Evaluated
from .typeset import NOTES, dealt_columns, render_latex, render_markdown
from .words import edited_pair


def render_page(
    findings: Findings,
    figures: Iterable[Mapping],  # caption, charts, signatures: what folds under the scores
) -> str:  # HTML
    """The report as one page that needs no other file; the texts in it are escaped."""
    import jinja2

    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["displayable"] = lambda value: displayable(str(value))
    environment.filters["number"] = lambda value, digits=3: number(value, digits, missing="none")
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
        [column for column in metric["columns"] if column in set(findings.relatives)]
        for metric in findings.metrics
    ]
    return template.render(
        content=findings,
        figures=list(figures),
        pair=pair,
        forests=_forests(findings),
        tables=[dealt_columns([[one] for one in findings.leading]), dealt_columns(relatives)],
        digits=lambda column: column_digits(findings.systems, column),
        script=Markup(script),
        checksum=checksum,
    )


def _forests(findings: Findings) -> list[dict]:
    """The figures that carry a report: the systems, and their differences where they were compared."""
    signatures = [metric["signature"] for metric in findings.metrics]
    caption = "Scores with 95% intervals."
    systems = [panels_chart([panel], above=True) for panel in systems_panels(findings)]
    if not findings.comparisons:
        return [{"caption": caption, "charts": systems, "signatures": signatures}]
    baseline = findings.comparisons[0]["b"]
    caption += f" Filled circles are better than {baseline}, squares worse, open circles neither."
    differences = [
        panels_chart([panel], origin=True, above=True) for panel in differences_panels(findings)
    ]
    return [
        {"caption": caption, "charts": systems, "signatures": signatures},
        {
            "caption": f"Each system minus {baseline}, with 95% intervals. An interval that holds 0 leaves it open "
            "which is better.",
            "charts": differences,
            "signatures": signatures,
        },
    ]


def told_notes(
    result: Evaluated,
) -> list[str]:  # lines, warnings first
    """What has to be known about the scores, for a terminal."""
    return [
        f"{NOTES[note.warning].lower()}: {displayable(note.text)}"
        for note in result.notes().itertuples()
    ]


_ENDINGS = {"html": "html", "markdown": "md", "latex": "tex", "json": "json"}  # of the file


def render(
    findings: Findings,
    figures: Iterable[
        Mapping
    ] = (),  # caption, charts, signatures: beside those that every report has
    format: str = "html",  # html, markdown, latex or json
    name: str = "report",  # of the file, without its ending
) -> dict[str, str]:  # file -> text; the report comes last
    """The report in a format, with the files that it needs beside it. Raises: InputError for an unknown format."""
    check_choice(format, "format", _ENDINGS)
    report = f"{name}.{_ENDINGS[format]}"
    if format == "html":
        return {report: render_page(findings, figures)}
    if format == "json":
        text = json.dumps(findings.plain(), indent=1, ensure_ascii=False, allow_nan=False)
        return {report: text}
    files: dict[str, str] = {}
    named = []
    for figure in [*_forests(findings), *figures]:
        first = len(files) + 1
        names = [f"{name}-figure-{first + place}.svg" for place in range(len(figure["charts"]))]
        files |= {file: chart.svg for file, chart in zip(names, figure["charts"])}
        named.append({**figure, "files": names})
    write = render_markdown if format == "markdown" else render_latex
    return {**files, report: write(findings, named)}
