"""What README.md shows: python nbs/making/readme.py writes nbs/images/readme.svg and renews what README.md shows.

The picture is drawn from tsteval/data/rewrite_scores.csv, the figures beside people are those of evidence.csv, and the
outputs are what the commands print. `tests/test_readme.py` holds all of them.
"""

import contextlib
import io
import re
import tempfile
from pathlib import Path

import pandas as pd

from tsteval.core.assets import packaged_path
from tsteval.core.metric import Metric, Scores, find_metric
from tsteval.report.charts import panels_chart
from tsteval.report.evidence import beside_people, in_words
from tsteval.report.findings import work_out
from tsteval.report.forest import systems_panels
from tsteval.runs.results import SystemScores

ROOT = Path(__file__).parent.parent.parent
SYSTEMS = ["copy", "delete", "neural", "human"]
SHOWN = {"sti": "style: how far it moved", "cps": "content that is left", "slor": "fluency (SLOR)"}
COMMAND = ["evaluate", "--metrics", "chrf"]  # needs no model
# what a reader wants to measure -> the metrics that he chooses between, each with the sets to show, a measure after a colon
ROWS = {
    "style": {"sti": ("mir2019",)},
    "content of a rewrite": {
        "cps": ("lai2022",),
        "bert_score:against=source": ("lai2022",),
        "content": ("lai2022",),
    },
    "how it reads": {"fluency": ("gug",), "acceptability": ("gug",)},
    "closeness to references": {
        "bleu": ("wmt23_mqm_zhen", "wmt23_mqm_zhen:systems"),
        "rouge": ("realsumm",),
        "chrf": ("simplicity_da",),
        "bert_score": ("simplicity_da",),
    },
    "an answer": {
        "relevance": ("wikiqa",),
        "grounded_in_context": ("qags_cnndm",),
        "avoided_answer": ("xstest",),
    },
    "one text": {"readability": ("clear",), "toxicity": ("paradetox", "hatecheck")},
}

# what people were asked that these scores stand for
ASKED = {"sti": "style", "cps": "content", "slor": "naturalness"}


def evaluation() -> SystemScores:
    """The stored scores of the embedded test pairs, as an evaluation."""
    rows = pd.read_csv(packaged_path("rewrite_scores.csv")).query("system in @SYSTEMS")
    rows = rows.assign(source=rows.row.map("source {}".format), output=rows.system).reset_index(
        drop=True
    )
    metrics = [
        type(
            name,
            (Metric,),
            {
                "__module__": "tsteval.data",  # the package's scores, as they were once made
                "name": name,
                "needs": ("output",),
                "columns": (name,),
                "headings": (title,),
                "criteria": (ASKED[name],),
            },
        )()
        for name, title in SHOWN.items()
    ]
    scores = {name: Scores(rows[[name]]) for name in SHOWN}
    return SystemScores(
        rows.sort_values("system", key=lambda names: names.map(SYSTEMS.index), kind="stable"),
        metrics,
        scores,
        {},
    )


def picture(evaluated: SystemScores) -> str:
    """The scores of the systems with their intervals as one drawing."""
    return f"{panels_chart(systems_panels(work_out(evaluated))).svg}\n"


def proof(evaluated: SystemScores) -> str:
    """The sentence that the picture proves, or an error where it no longer does."""
    means = evaluated.summary().set_index("system")
    style = evaluated.compare("delete", "human").set_index("metric").loc["sti"]
    behind = evaluated.compare("delete", "neural").set_index("metric").loc[["cps", "slor"]]
    assert style.p_holm > 0.05 and (behind.better == "neural").all()
    return (
        f"*Deleting words moves the style as far as people do ({means.sti['delete']:.3f} against "
        f"{means.sti['human']:.3f}, not told apart, p = {style.p_holm:.2f}) before the judge that chose the "
        f"words; content and fluency say what it broke. 72 embedded pairs, 95% intervals; marks say how each stands to an untouched copy.*"
    )


def output() -> str:
    """What the command prints."""
    from tsteval.cli import main

    printed = io.StringIO()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(printed):
        assert main([*COMMAND, "--output", folder]) == 0
    return f"```\n$ tsteval {' '.join(COMMAND)}\n{printed.getvalue().replace(folder, 'tsteval-results')}```"


def three_lines() -> str:
    """Python that needs no download, and what it prints."""
    code = (
        "from tsteval.bleu import corpus_bleu\n"
        'bleu = corpus_bleu(["the cat is on the mat"], [["there is a cat on the mat"]])\n'
        'print(f"{bleu.score:.4f}", bleu.signature)'
    )
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, {})
    return f"```python\n{code}\n# {printed.getvalue().strip()}\n```"


def beside() -> str:
    """How far each score follows people, and what a trivial rival reaches there."""
    lines = [
        "| to measure | take | beside people | 95% interval | trivial rival |",
        "|---|---|---|---|---|",
    ]
    for wanted, metrics in ROWS.items():
        first = len(lines)
        for name, sets in metrics.items():
            for asked in sets:
                data_set, _, measure = asked.partition(":")
                rows = beside_people(find_metric(name), measure or None).set_index("data_set")
                row = rows.loc[[data_set]].iloc[0]
                # the first line of what the package says of it, cut where the figures begin
                about, _, figure = in_words(row).partition(": ")
                figure = (
                    figure.partition("]")[0] + "]" + ("" if row.beats else " (not shown better)")
                )
                rival = f"{row.rival_value:.2f}, {row.rival}"
                lines.append(
                    f"| {wanted if len(lines) == first else ''} | `{name}` | {about} | {figure} | {rival} |"
                )
    return "\n".join(lines)


def parts() -> dict[str, str]:
    """What README.md shows, by the expression that finds it."""
    evaluated = evaluation()
    return {
        r"\*Deleting words .*?\*\n": f"{proof(evaluated)}\n",
        "```\n\\$ tsteval .*?```": output(),
        "```python\n.*?```": three_lines(),
        r"\| to measure .*?\|(?=\n\n)": beside(),
    }


if __name__ == "__main__":
    (ROOT / "nbs" / "images").mkdir(exist_ok=True)
    (ROOT / "nbs" / "images" / "readme.svg").write_text(picture(evaluation()), encoding="utf-8")
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for where, part in parts().items():
        text, found = re.subn(where, lambda _, part=part: part, text, flags=re.S)
        assert found == 1, where
    (ROOT / "README.md").write_text(text, encoding="utf-8")
