"""Which metrics score a table where nobody named any: they follow from its columns, by one rule"""

import importlib.util
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from ..core.display import enumerated
from ..core.metric import Metric, Note, find_metric
from ..tables.formats import PAIR_COLUMNS, REFERENCE_COLUMN
from .settings import Settings

_NEAR = ("bleu", "chrf", "bert_score")  # to references, of outputs that rewrite no source
_REWRITE = ("cps", "fluency")  # of a source
_ALONE = ("fluency", "acceptability", "readability")  # outputs


@dataclass(frozen=True)
class Defaults:
    """The metrics of a table, and why."""

    metrics: list[Metric]
    why: str  # in a line


def asks_for_style(
    settings: Settings,
    given: Collection[str],  # names of the settings that somebody chose
) -> bool:
    """Whether somebody wants a style, though no column names it."""
    wanted = settings.classifier is not None or settings.target_style != Settings.target_style
    return wanted or bool({"target_style", "classifier"} & set(given))


def style_notes(
    metrics: Iterable[Metric],
    columns: Collection[object],  # of the table, by our names
    settings: Settings,
    given: Collection[str],  # names of the settings that somebody chose
) -> tuple[Note, ...]:  # none, or one
    """That scores of style ask for one which nobody named."""
    named = "target_style" in {*columns, *given} or settings.target_style != Settings.target_style
    asking = [
        metric.heading(metric.columns[0])
        for metric in metrics
        if metric.question == "style"
        and "target_style" in metric.needs
        and not getattr(metric, "target", None)
    ]
    if named or not asking:
        return ()
    return (
        Note(
            f"{enumerated(asking)}: no style was named, so every output is to reach {settings.target_style}; name "
            f"another with target_style."
        ),
    )


def default_metrics(
    columns: Collection[object],  # of the table, by our names
    style_asked: bool = False,  # whether a style is to be reached that no column names
) -> Defaults:
    """The metrics that a table is scored with where nobody named any."""
    parts = set(PAIR_COLUMNS) & set(columns)
    referenced = any(REFERENCE_COLUMN.fullmatch(str(name)) for name in columns)
    lacking = ""
    if "source" in parts:
        styled = style_asked or "target_style" in parts
        names = [*["bleu"] * referenced, *["sti"] * styled, *_REWRITE]
        seen = "source and output" + (" and a style to reach" if styled else "")
        if not styled:
            lacking = "no style was asked for, so no STI: name one with target_style"
    elif parts & {"question", "context"}:
        names = []
        if "context" in parts:
            if importlib.util.find_spec("spacy"):
                names.append("grounded_in_context")
            else:
                lacking = "grounding needs spaCy: pip install 'tsteval[properties]'"
        if "question" in parts:
            names += ["relevance", "avoided_answer"]
        names += ["readability", *_NEAR * referenced]
        given = [name for name in ("question", "context") if name in parts]
        seen = ", ".join([*given[:-1], f"{given[-1]} and output"])
    elif referenced:
        names = list(_NEAR)
        seen = "output"
    else:
        names = list(_ALONE)
        seen = "output alone"
        if "input" in parts:
            seen = "output and input"
            lacking = "call input question or context to have relevance or grounding"
    seen += " and reference" * referenced
    metrics = [find_metric(name) for name in names]
    headings = ", ".join(metric.heading(metric.columns[0]) for metric in metrics)
    why = f"no metrics named: the table has {seen}, so it is scored by {headings}"
    return Defaults(metrics, why + (f" ({lacking})" if lacking else ""))
