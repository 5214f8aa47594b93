"""What README.md shows: python nbs/making/readme.py writes nbs/images/readme.svg and renews what README.md shows.

The picture is drawn from tsteval/data/demonstration, which is what `tsteval evaluate` writes; the figures beside people
are those of evidence.csv, and the outputs are what the commands print. `tests/test_readme.py` holds all of them.
"""

import contextlib
import io
import json
import re
import sys
import tempfile
from pathlib import Path

from tsteval.core.assets import packaged_path
from tsteval.core.metric import find_metric
from tsteval.report.charts import BASELINE, Panel, ScoreInterval, panels_chart
from tsteval.report.evidence import beside_people, in_words
from tsteval.report.words import ROAD
from tsteval.rewriting import load_rewrites

ROOT = Path(__file__).parent.parent.parent
SHOWN = {
    "sti": "style: STI",
    "cps": "content: CPS",
    "pen_lp": "naturalness: PenLP",
    "bleu": "reference: BLEU",
}
FILES = {"new.csv": "neural", "old.csv": "delete"}  # that are compared, with the systems in them
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


def summary() -> dict:
    """What `tsteval evaluate` writes of the embedded pairs."""
    return json.loads(packaged_path("demonstration/summary.json").read_text(encoding="utf-8"))


def verdicts(told: dict) -> dict[tuple[str, str], str]:
    """System and score -> how it stands to the baseline."""
    return {
        (pair["a"], row["metric"]): row["verdict"]
        for pair in told["comparisons"]
        for row in pair["metrics"]
    }


def picture(told: dict) -> str:
    """The scores of the systems with their intervals as one drawing."""
    stands = verdicts(told) | {(told["baseline"], column): BASELINE for column in SHOWN}
    panels = [
        Panel(
            title,
            [
                ScoreInterval(
                    row["system"],
                    row[column],
                    row[f"{column}_low"],
                    row[f"{column}_high"],
                    stands[row["system"], column],
                )
                for row in told["systems"]
            ],
            notes=("higher is better \u2192",),
        )
        for column, title in SHOWN.items()
    ]
    return f"{panels_chart(panels).svg}\n"


def proof(told: dict) -> str:
    """What the picture shows and what in it is not to be believed, or an error where that is no longer so."""
    style = {row["system"]: row["sti"] for row in told["systems"]}
    stands = verdicts(told)
    assert style["delete"] > style["human"]
    assert stands["delete", "cps"] == stands["delete", "pen_lp"] == "worse"
    return (
        f"*What `tsteval evaluate` finds on {told['systems'][0]['n']} embedded pairs, with 95% intervals and how each "
        f'system stands to an untouched copy. Do not believe the style of "delete" ({style["delete"]:.3f}, people '
        f"{style['human']:.3f}): the judge that measures it chose the words to delete. Content and naturalness say what "
        'that broke. "human" are the references themselves, so its BLEU is 1.*'
    )


def compared() -> str:
    """What `tsteval compare` says of two systems; its tables follow."""
    from tsteval.cli import main

    outputs = load_rewrites()
    printed = io.StringIO()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(printed):
        for name, system in FILES.items():
            own = outputs[outputs.system == system]
            own[["source", "output"]].to_csv(Path(folder) / name, index=False)
        assert main(["compare", *(str(Path(folder) / name) for name in FILES)]) == 0
    said = printed.getvalue().partition("\n\n")[0]
    return f"```\n$ tsteval compare {' '.join(FILES)}\n{said}\n```"


def chapters() -> str:
    """All chapters, a line a part of the course."""
    sys.path.insert(0, str(ROOT / "nbs" / "site"))  # there is a package called build too
    from build import PARTS

    firsts = list(PARTS.values())
    lines = []
    for title, first in PARTS.items():
        after = next((number for number in firsts if number > first), len(ROAD) + 1)
        names = list(ROAD)[first - 1 : after - 1]
        links = [
            f"[{number} {ROAD[name].replace(chr(10), ' ')}](nbs/{number:02}_{name}.ipynb)"
            for number, name in enumerate(names, first)
        ]
        lines.append(f"- **{title}** {' · '.join(links)}")
    return "\n".join(lines)


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
                verdict = "" if row.beats else "worse" if row.lead_high < 0 else "not told apart"
                figure = figure.partition("]")[0] + "]" + (f" ({verdict})" if verdict else "")
                rival = f"{row.rival_value:.2f}, {row.rival}"
                lines.append(
                    f"| {wanted if len(lines) == first else ''} | `{name}` | {about} | {figure} | {rival} |"
                )
    return "\n".join(lines)


def parts() -> dict[str, str]:
    """What README.md shows and no model is needed for, by the expression that finds it."""
    return {
        r"\*What `tsteval evaluate` finds .*?\*\n": f"{proof(summary())}\n",
        "```python\n.*?```": three_lines(),
        r"\| to measure .*?\|(?=\n\n)": beside(),
        r"- \*\*Words against words\*\* .*?(?=\n\n)": chapters(),
    }


if __name__ == "__main__":
    (ROOT / "nbs" / "images").mkdir(exist_ok=True)
    (ROOT / "nbs" / "images" / "readme.svg").write_text(picture(summary()), encoding="utf-8")
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for where, part in {"```\n\\$ tsteval compare .*?```": compared(), **parts()}.items():
        text, found = re.subn(where, lambda _, part=part: part, text, flags=re.S)
        assert found == 1, where
    (ROOT / "README.md").write_text(text, encoding="utf-8")
