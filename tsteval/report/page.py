"""What an evaluation found as one page, and the choice between page, Markdown, LaTeX and JSON"""

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping

from markupsafe import Markup

from ..core.assets import packaged_path
from ..core.checks import check_choice
from ..core.display import displayable, number
from .charts import NAME_WIDTH, Panel, panels_chart
from .findings import Findings, column_digits
from .forest import systems_caption, systems_panels
from .markup import shortened
from .methods import Evaluated
from .typeset import NOTES, dealt_columns, render_latex, render_markdown
from .words import edited_pair


def fill_template(
    name: str,  # of a file of the package
    **content,  # what it shows; texts in it are escaped
) -> str:  # HTML
    """A page that needs no other file, with the looks and the script that all pages share."""
    import jinja2

    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["displayable"] = lambda value: displayable(str(value))
    environment.filters["number"] = lambda value, digits=3: number(value, digits, missing="none")
    environment.filters["breakable"] = lambda signature: Markup("|<wbr>").join(
        displayable(signature).split("|")
    )
    parts, page, script = (
        packaged_path(file).read_text(encoding="utf-8")
        for file in ("parts.html.jinja", name, "report_sort.js")
    )
    checksum = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    template = environment.from_string(parts + page)
    return template.render(script=Markup(script), checksum=checksum, **content)


def render_page(
    findings: Findings,
    figures: Iterable[Mapping],  # see `render`: what folds under the scores
) -> str:  # HTML
    """The report as one page that needs no other file; the texts in it are escaped."""

    def pair(row):
        return edited_pair(row["source"], row["output"], row["source_spans"], row["output_spans"])

    order = {column: place for place, column in enumerate(findings.leading)}
    metrics = sorted(findings.metrics, key=lambda metric: order[next(iter(metric["columns"]))])
    relatives = [list(metric["columns"])[1:] for metric in metrics]
    names = [str(row["system"]) for row in findings.systems]
    return fill_template(
        "report.html.jinja",
        content=findings,
        metrics=metrics,
        title=" beside ".join(shortened(name, 60, middle=True) for name in names)
        if len(names) == 2
        else "Evaluation report",
        baseline=findings.comparisons[0]["b"] if findings.comparisons else "",
        figures=[
            {**figure, "panels": [*map(drawn_panel, figure["panels"])]}
            if "panels" in figure
            else figure
            for figure in [_forest(findings), *figures]
        ],
        pair=pair,
        tables=[dealt_columns([[one] for one in findings.leading]), dealt_columns(relatives)],
        digits=lambda column: column_digits(findings.systems, column),
    )


def _forest(findings: Findings) -> dict:
    """The figure that carries a report: each system's scores, and how they stand to the baseline."""
    return {
        "caption": systems_caption(findings),
        "panels": systems_panels(findings),
        "signatures": [metric["signature"] for metric in findings.metrics],
    }


def drawn_panel(
    panel: Panel,
) -> dict:
    """What a page's own drawing of a panel needs: its places as percentages of the axis."""
    from matplotlib.ticker import MaxNLocator

    low, high = panel.limits

    def place(value: float | None) -> float | None:
        return None if value is None else round(100 * (value - low) / (high - low), 2)

    ticks = MaxNLocator(3, steps=[1, 2, 5, 10]).tick_values(low, high)
    return {
        "panel": panel,
        "ceiling": place(panel.ceiling),
        "ticks": [(place(tick), f"{tick:.6g}") for tick in ticks if low <= tick <= high],
        "rows": [
            {
                "name": shortened(row.name, NAME_WIDTH, middle=True),
                "label": str(row),
                "text": number(row.value, row.digits, missing="none"),
                "verdict": row.verdict,
                "at": place(row.value),
                "ends": [place(row.low), place(row.high)] if row.bounded else [],
            }
            for row in panel.intervals
        ],
    }


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
    # caption, panels or charts, signatures: beside the one that every report has
    figures: Iterable[Mapping] = (),
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
    for figure in [_forest(findings), *figures]:
        charts = [panels_chart(figure["panels"])] if "panels" in figure else figure["charts"]
        first = len(files) + 1
        names = [f"{name}-figure-{first + place}.svg" for place in range(len(charts))]
        files |= {file: chart.svg for file, chart in zip(names, charts)}
        named.append({**figure, "files": names})
    write = render_markdown if format == "markdown" else render_latex
    return {**files, report: write(findings, named)}
