"""Systems or differences with their intervals, a panel a score, as the comparisons judged them"""

from .charts import Panel, ScoreInterval
from .findings import Findings, column_digits


def systems_panels(
    findings: Findings,
) -> list[Panel]:
    """Each system's scores with their intervals, by the columns that stand for their metrics."""
    verdicts = {
        (pair["a"], row["metric"]): row["verdict"]
        for pair in findings.comparisons
        for row in pair["metrics"]
    }
    headings = _titles(findings)
    panels = []
    for column in findings.leading:
        digits = column_digits(findings.systems, column)
        intervals = [
            ScoreInterval(
                str(row["system"]),
                row[column],
                row[f"{column}_low"],
                row[f"{column}_high"],
                verdicts.get((row["system"], column), ""),
                digits,
            )
            for row in findings.systems
        ]
        panels.append(Panel(headings[column], intervals))
    return panels


def differences_panels(
    findings: Findings,  # with at least one comparison
) -> list[Panel]:
    """The differences of the other systems from the baseline, with their intervals."""
    headings = _titles(findings)
    panels = []
    for column in findings.leading:
        digits = column_digits(findings.systems, column)
        intervals = [
            ScoreInterval(
                pair["a"], row["difference"], row["low"], row["high"], row["verdict"], digits
            )
            for pair in findings.comparisons
            for row in pair["metrics"]
            if row["metric"] == column
        ]
        panels.append(Panel(headings[column], intervals))
    return panels


def _titles(findings: Findings) -> dict[str, str]:
    """The headings of the leading columns with their questions."""
    return {
        column: f"{metric['question']}: {heading}" if metric["question"] else heading
        for metric in findings.metrics
        for column, heading in list(metric["columns"].items())[:1]
    }
