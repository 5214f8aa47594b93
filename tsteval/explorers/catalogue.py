"""Every explorer by name, grouped by what one wants to find out: what `tsteval explore` opens."""

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from markupsafe import Markup

from ..core.checks import InputError, check_choice
from ..core.metric import METRICS
from ..people.estimates import rating_columns
from ..people.study import read_study
from ..report.evidence import people_lines, plain
from ..report.markup import framed, tag
from ..runs.opened import OpenedResults, read_results
from .agreement import agreement_explorer, difference_explorer, digits_explorer, ratings_explorer
from .content import alignment_explorer, content_explorer, mask_explorer, overlap_explorer
from .controls import SPINNER, error_box, panel, running_loop
from .evaluation import demonstration_results, evaluation_explorer, systems_browser
from .likelihood import ameliorations_explorer, fluency_explorer, ngram_explorer
from .properties import first_records, properties_explorer
from .style import emd_explorer, style_explorer
from .words import bleu_explorer, rouge_explorer, sums_explorer


@dataclass(frozen=True)
class Tab:
    """An explorer among others."""

    question: str  # what it answers, as its reader would ask
    lesson: str  # what there is to learn, one sentence
    chapter: str  # the name of its notebook, such as "02_bleu"; empty for none
    open: Callable  # returns the explorer; takes what `prepare` made
    prepare: Callable | None = None  # slow work; takes a function that is told what is being done
    metrics: tuple[str, ...] = ()  # which of `METRICS` it shows
    title: str = ""  # of its button; empty: its question

    def __call__(self):
        """The explorer itself, without a row of buttons above it."""
        return self.open(self.prepare(lambda done: None)) if self.prepare else self.open()


def chapter_link(
    chapter: str,  # the name of a notebook, such as "02_bleu"
) -> Markup:
    """A link to a chapter where the page can open one, else the chapter's name."""
    number, _, name = chapter.partition("_")
    where = os.environ.get("TSTEVAL_CHAPTERS")
    words = f"Chapter {int(number)}, {name.replace('_', ' ')}" if number.isdigit() else chapter
    if where is None and not Path(f"{chapter}.ipynb").is_file():
        return tag("span", f"{words}: {chapter}.ipynb, which tsteval course opens")
    return tag(
        "a",
        words,
        href=f"{chapter}.ipynb" if where is None else where.format(chapter),
        target="_blank",
        rel="noopener",
        style="color:#0b5cad;text-decoration:underline",
    )


def tab_head(tab: Tab) -> Markup:
    """The question, what there is to learn, where to read on, and how closely its scores follow people."""
    end = tag("span", " Read: ", chapter_link(tab.chapter), ".") if tab.chapter else ""
    lines = [
        tag("strong", tab.question, style="font-size:16px"),
        tag("p", tab.lesson, end, style="margin:0;max-width:900px"),
    ]
    for name in tab.metrics:
        metric = METRICS[name]()
        found = plain(people_lines(metric, most=1)[0])
        lines.append(
            tag(
                "p",
                f"{metric.heading(metric.columns[0])} beside people: {found}.",
                style="margin:.2em 0 0;max-width:900px",
            )
        )
    return framed(*lines)


class _Tabs:
    """A choice of explorers, and the one that is open; the others do not exist."""

    def __init__(self, tabs: Mapping[str, Tab], name: str, groups: Mapping[str, Sequence[str]]):
        import ipywidgets

        self.tabs = tabs
        self.place = panel()
        self.turn = 0
        if groups:  # many, which as buttons would fill a telephone's first screen
            names = [(group, key) for group, keys in groups.items() for key in keys]
            self.chosen = ipywidgets.Dropdown(
                options=[(f"{group} {tabs[key].title}", key) for group, key in names],
                value=name,
                description="explorer",
                style={"description_width": "auto"},
                layout={"width": "calc(100% - 4px)", "max_width": "480px"},
            )
        else:
            self.chosen = ipywidgets.ToggleButtons(
                options=[(tab.title or tab.question, key) for key, tab in tabs.items()],
                value=name,
                style={"button_width": "auto"},
                layout={"width": "auto"},
            )
        self.chosen.observe(lambda change: self.open(change["new"]), "value")
        self.open(name)

    def open(self, name: str) -> None:
        import ipywidgets

        self.turn += 1
        turn = self.turn
        tab = self.tabs[name]
        loop = running_loop()
        head = ipywidgets.HTML(tab_head(tab))
        work = ipywidgets.HTML(SPINNER)
        self._put(head, work)
        if tab.prepare is None:
            self._finish(turn, head, tab.open)
        elif loop is None:
            self._prepare(turn, tab, head, work, lambda call, *arguments: call(*arguments))
        else:
            threading.Thread(
                target=self._prepare,
                args=(turn, tab, head, work, loop.call_soon_threadsafe),
                daemon=True,
            ).start()

    def _prepare(self, turn: int, tab: Tab, head, work, later: Callable) -> None:
        """The slow part of a tab, beside the kernel's loop where there is one."""
        assert tab.prepare is not None
        try:
            result = tab.prepare(lambda done: later(self._tell, turn, work, done))
        except Exception as error:
            later(self._tell, turn, work, error)
        else:
            later(self._finish, turn, head, lambda: tab.open(result))

    def _tell(self, turn: int, work, done) -> None:
        if turn != self.turn:
            return
        message = (
            error_box(done)
            if isinstance(done, Exception)
            else f"{SPINNER} {tag('span', done, role='status')}"
        )
        work.value = str(message)

    def _finish(self, turn: int, head, make: Callable) -> None:
        if turn != self.turn:
            return  # another tab was opened meanwhile
        import ipywidgets

        try:
            made = make()
        except Exception as error:
            made = ipywidgets.HTML(str(error_box(error)))
        else:
            if hasattr(made, "heading"):
                made.heading.layout.display = "none"  # the question stands above
        self._put(head, made)

    def _put(self, *parts) -> None:
        old = self.place.children
        self.place.children = parts
        for part in old:
            if part not in parts:
                panel(part).close()


def tab_row(
    tabs: Mapping[str, Tab],
    name: str,  # of the tab that is open at first
    # heading -> names of tabs, for a list; None: buttons
    groups: Mapping[str, Sequence[str]] | None = None,
):
    """Explorers of which one is chosen; only that one exists. Returns a widget. Raises: InputError for an unknown
    name."""
    check_choice(name, "the explorer", tabs)
    made = _Tabs(tabs, name, groups or {})
    return panel(made.chosen, made.place)


EXPLORERS = {
    "bleu": Tab(
        "Which words match a reference?",
        "Learn what BLEU counts, and how a product of precisions and a penalty becomes the score.",
        "02_bleu",
        bleu_explorer,
        metrics=("bleu",),
        title="BLEU",
    ),
    "rouge": Tab(
        "How much of the reference is covered?",
        "Learn how precision and recall part ways, and what ROUGE-L sees that ROUGE-1 does not.",
        "03_rouge",
        rouge_explorer,
        metrics=("rouge",),
        title="ROUGE",
    ),
    "ngram": Tab(
        "How likely is each word?",
        "Learn what smoothing gives to words that were never seen, and what shuffling takes.",
        "04_ngram",
        ngram_explorer,
        title="n-gram model",
    ),
    "ameliorations": Tab(
        "Which words are familiar or strange?",
        "Learn what a score does with good and with bad words, and what shuffling takes.",
        "05_ameliorations",
        ameliorations_explorer,
        metrics=("amelioration_1", "amelioration_2"),
        title="ameliorations",
    ),
    "fluency": Tab(
        "Which sentence reads better?",
        "Learn why rare words need an excuse, and which of four scores gives it.",
        "06_fluency",
        fluency_explorer,
        metrics=("fluency",),
        title="fluency",
    ),
    "emd": Tab(
        "How far did the style move?",
        "Learn how the distance depends on costs, and why the intensity does not.",
        "08_sti",
        emd_explorer,
        metrics=("sti",),
        title="STI",
    ),
    "style": Tab(
        "Which words carry the style?",
        "Learn which words a classifier listens to, in the source and in the output.",
        "09_attribution",
        style_explorer,
        metrics=("sti",),
        title="style words",
    ),
    "mask": Tab(
        "What is left without the style?",
        "Learn how far a content score depends on what is covered first.",
        "10_cps",
        mask_explorer,
        metrics=("cps",),
        title="CPS with a mask",
    ),
    "overlap": Tab(
        "What do the two have in common?",
        "Learn which runs of letters chrF counts, and which words METEOR pairs.",
        "11_overlap",
        overlap_explorer,
        metrics=("chrf", "meteor"),
        title="chrF, METEOR",
    ),
    "alignment": Tab(
        "Which words mean the same?",
        "Learn which tokens BERTScore matches, and what Word Mover's Distance moves.",
        "12_alignment",
        alignment_explorer,
        metrics=("bert_score", "wmd"),
        title="BERTScore, WMD",
    ),
    "content": Tab(
        "Did the rewrite change what it says?",
        "Learn which lost words a style-aware score forgives.",
        "13_content",
        content_explorer,
        metrics=("content",),
        title="content",
    ),
    "properties": Tab(
        "What can one see in one text?",
        "Learn where each of eight numbers comes from, and which of them to distrust.",
        "23_grounded",
        lambda records: properties_explorer(records=records),
        first_records,
        title="one text",
    ),
    "agreement": Tab(
        "Does this metric follow people?",
        "Learn how wide the interval of a correlation is, and which outputs pull at it.",
        "17_agreement",
        agreement_explorer,
        title="metric and people",
    ),
    "evaluation": Tab(
        "Which texts lie behind a score?",
        "Learn to read the outputs that pull a mean up or down.",
        "15_evaluation",
        lambda: evaluation_explorer(demonstration_results()),
        title="single outputs",
    ),
    "difference": Tab(
        "Would you see that one is better?",
        "Learn why two intervals decide nothing, and how many sentences a difference takes.",
        "16_differences",
        difference_explorer,
        title="size of a test set",
    ),
    "ratings": Tab(
        "What is a rating worth?",
        "Learn how far a score of a given correlation makes a few ratings go.",
        "18_estimation",
        ratings_explorer,
        title="worth of a rating",
    ),
    "digits": Tab(
        "What score does the judge give?",
        "Learn what a judge's expected score keeps, and what only the mass on its scale tells.",
        "19_judge",
        digits_explorer,
        title="judge",
    ),
    "sums": Tab(
        "Can BLEU be averaged?",
        "Learn why the score of two parts is neither mean of theirs.",
        "24_scale",
        sums_explorer,
        title="BLEU of many texts",
    ),
}

GROUPS = {  # what one wants to find out -> names of `EXPLORERS`
    "Which system is better?": ("evaluation", "difference"),
    "Is it close to a reference?": ("bleu", "rouge", "overlap", "alignment", "sums"),
    "Does it read well?": ("fluency", "ngram", "ameliorations"),
    "Did the style change?": ("emd", "style"),
    "Is the content still there?": ("content", "mask"),
    "What is in one text?": ("properties",),
    "What do people say?": ("agreement", "ratings", "digits"),
}


def explorer_app(
    name: str = next(iter(EXPLORERS)),  # the explorer that is open at first, a key of `EXPLORERS`
):
    """All explorers behind one choice; only the chosen one exists, so that models load when they are needed. A widget.

    Raises: InputError for an unknown name.
    """
    return tab_row(EXPLORERS, name, GROUPS)


def open_rated(
    folder: str,  # what `tsteval evaluate` wrote
    ratings: str | None,  # people's, as `read_study` takes them; None: there are none
) -> tuple[
    OpenedResults, pd.DataFrame | None
]:  # the results; a row an output and a column a criterion
    """Results, and what people say of their outputs.

    Raises: FileError that says what the folder or the file lacks; InputError for ratings of other outputs.
    """
    results = read_results(folder)
    if ratings is None:
        return results, None
    answers = read_study(
        [ratings], unfinished=True
    ).ratings  # to look at them, nothing has to be complete
    try:
        return results, rating_columns(answers, results.per_pair)
    except InputError as error:
        raise error.at(file=ratings, argument=None) from error


def results_app(
    folder: str,  # as for `open_rated`
    ratings: str | None = None,  # likewise
):
    """The systems and the pairs of your own results. Returns a widget. Raises: as `open_rated`."""
    results, rated = open_rated(folder, ratings)
    tabs = {
        "systems": Tab(
            "Which system is better?",
            "See which scores set the systems apart, and which differences are within what chance does.",
            "15_evaluation",
            lambda: systems_browser(results),
        ),
        "pairs": Tab(
            "Which texts lie behind a score?",
            "Read the outputs that pull a mean up or down, and see what a score does not see."
            + " Those that nobody rated come last and have no point." * (rated is not None),
            "15_evaluation",
            lambda: evaluation_explorer(results, ratings=rated),
        ),
    }
    return tab_row(tabs, next(iter(tabs)))
