"""All explorers together: hostile text in every field, what stays behind, tabs, defaults."""

import html
import inspect
import re
import subprocess
import sys

import numpy as np
import pytest

from tests.explorers.pages import HOSTILE, ROOT, assert_harmless, defaults_of
from tsteval import alignment
from tsteval.core.display import displayable
from tsteval.core.metric import METRICS
from tsteval.cps import Cps, content_preservation, mask_style
from tsteval.explorers import catalogue as catalogue_page
from tsteval.explorers import content as content_page
from tsteval.explorers import controls as controls_page
from tsteval.explorers import evaluation as evaluation_page
from tsteval.explorers import likelihood as likelihood_page
from tsteval.explorers import style as style_page
from tsteval.explorers import words as words_page
from tsteval.ngram import NgramLM
from tsteval.overlap import Chrf
from tsteval.report.evidence import people_lines, plain
from tsteval.rouge import Rouge
from tsteval.runs.opened import read_results
from tsteval.runs.results import SystemScores
from tsteval.tables.formats import FileError
from tsteval.text import TOKENIZERS, tokenize


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_in_pictures(text, evaluation):
    for tokenizer in TOKENIZERS:
        assert_harmless(
            words_page.bleu_picture(
                text, [text, "the cat"], [1, 1, 1, 1], tokenizer=tokenizer, marked=2
            )
        )
    lm = NgramLM(order=2).fit([["a", "b"], ["b"]])
    assert_harmless(likelihood_page.ngram_picture(lm, tokenize(displayable(text))))
    tokens = tokenize(text)
    scored = likelihood_page.ScoredText(tokens, -np.ones(len(tokens)), -np.ones(len(tokens)))
    assert_harmless(likelihood_page.fluency_picture(scored, scored))
    sound = text.encode(
        "utf-8", "replace"
    ).decode()  # as `evaluate` does; a frame cannot hold a lone surrogate
    assert_harmless(words_page.rouge_picture(text, "the cat\n" + text, "rougeL"))
    table = evaluation.per_pair.assign(source=sound, output=sound + "!", system=sound)
    explorer = evaluation_page.evaluation_explorer(
        SystemScores(table, evaluation.metrics, evaluation.scores, {}, n_boot=20)
    )
    chart = explorer.controls["point"]
    assert_harmless(explorer.picture.value + chart.drawing.value)
    for name in (*chart.buttons.tooltips, *chart.buttons._options_labels):
        name.encode("utf-8")
    assert not explorer.message.value
    explorer.close()


@pytest.mark.parametrize("name", ["bleu", "rouge", "ngram", "emd", "style", "mask"])
@pytest.mark.ci
def test_hostile_text_in_every_field_and_the_explorer_lives_on(explorers, name):
    explorer = explorers[name]()
    first = explorer.picture.value
    fields = [
        control
        for control in explorer.controls.values()
        if isinstance(control, controls_page.widget_classes()["TextField"])
    ]
    if name == "emd":
        explorer.controls["cost"].value = "as typed below"
    for field in fields:
        usual = field.value
        for text in HOSTILE[:8] if name in ("style", "mask") else HOSTILE:
            field.set_state({"value": text})  # what a message from the browser does
            assert_harmless(explorer.picture.value + explorer.message.value)
            assert explorer.picture.value or 'role="alert"' in explorer.message.value
        field.value = usual
    if name == "emd":
        explorer.controls["cost"].value = next(iter(style_page._COSTS))
    assert explorer.picture.value == first and not explorer.message.value
    explorer.close()


def test_every_control_has_a_label_and_changes_the_picture(explorers):
    """Each control in turn takes a new value; controls that others bring up are reached with those set."""
    for name in ("bleu", "rouge", "ngram", "emd", "mask", "agreement", "evaluation"):
        explorer = explorers[name]()
        if name == "emd":
            explorer.controls["classes"].value = 5
        for key, control in explorer.controls.items():
            if not control.has_trait("value"):
                continue
            assert control.description, (name, key)
            before = explorer.picture.value + explorer.message.value
            usual = control.value
            move(explorer, name, key, control)
            assert explorer.picture.value + explorer.message.value != before, (name, key)
            control.value = usual
        explorer.close()


def move(explorer, name, key, control):
    if key == "matrix":
        explorer.controls["cost"].value = "as typed below"
        explorer.controls["classes"].value = 3
    if key == "tokenizer":
        control.value = "none"
    elif hasattr(control, "options"):
        values = list(control.options)
        values = [value if isinstance(value, str) else value[1] for value in values]
        control.value = next(value for value in values[::-1] if value != control.value)
    elif isinstance(control.value, bool):
        control.value = not control.value
    elif isinstance(control.value, str):
        control.value = "0 2 2\n2 0 2\n2 2 0" if key == "matrix" else "this cat isn't on a mat."
    else:
        control.value = (
            control.min if control.value > (control.min + control.max) / 2 else control.max
        )


def alive():
    """Widgets and observers that the kernel still holds, and open matplotlib figures."""
    import ipywidgets.widgets.widget as registry
    import matplotlib.pyplot as plt

    observers = sum(
        len(handlers)
        for widget in registry._instances.values()
        for kinds in widget._trait_notifiers.values()
        for handlers in kinds.values()
    )
    return {
        "widgets": len(registry._instances),
        "observers": observers,
        "figures": len(plt.get_fignums()),
    }


@pytest.mark.ci
def test_closing_leaves_no_widget_observer_or_figure(explorers):
    explorers["bleu"]().close()  # makes what is made once
    before = alive()
    for name, open_explorer in explorers.items():
        explorer = open_explorer()
        assert alive()["observers"] > before["observers"]
        explorer.close()
        assert alive() == before, name


def press(app, name):
    """Open an explorer by the choice above it."""
    app.children[0].value = name


def test_every_explorer_is_a_line_of_one_list_under_its_group_and_few_are_buttons():
    import ipywidgets

    tabs = {
        name: catalogue_page.Tab(f"{name}?", "Learn.", "", controls_page.panel, title=name)
        for name in "abc"
    }
    app = catalogue_page.tab_row(tabs, "b", {"First?": ("a", "b"), "Second?": ("c",)})
    assert isinstance(app.children[0], ipywidgets.Dropdown)  # one line, however many there are
    assert [label for label, _ in app.children[0].options] == ["First? a", "First? b", "Second? c"]
    assert "b?" in app.children[1].children[0].value
    press(app, "c")
    assert "c?" in app.children[1].children[0].value
    app.close()
    app = catalogue_page.tab_row(tabs, "b")
    assert isinstance(app.children[0], ipywidgets.ToggleButtons)
    app.close()
    grouped = [name for names in catalogue_page.GROUPS.values() for name in names]
    assert sorted(grouped) == sorted(catalogue_page.EXPLORERS)
    titles = [tab.title for tab in catalogue_page.EXPLORERS.values()]
    assert all(titles) and len(set(titles)) == len(titles)


@pytest.mark.ci
def test_the_app_holds_one_explorer_at_a_time(monkeypatch, evaluation):
    asked = catalogue_page.Tab(
        "Which texts lie behind a score?",
        "Learn.",
        "15_evaluation",
        evaluation_page.evaluation_explorer,
        lambda tell: tell("1 of 1") or evaluation,
    )
    monkeypatch.setitem(catalogue_page.EXPLORERS, "evaluation", asked)
    before = alive()
    app = catalogue_page.explorer_app()
    place = app.children[1]
    first = alive()
    for name in [*list(catalogue_page.EXPLORERS)[1:], "bleu"]:
        press(app, name)
        tab = catalogue_page.EXPLORERS[name]
        head, made = place.children
        assert all(words in html.unescape(head.value) for words in (tab.question, tab.lesson))
        assert made.controls and 'role="alert"' not in made.message.value
        assert made.title == tab.question and made.heading.layout.display == "none"
        assert "<p" in made.picture.value and re.search("<p[^>]*><strong><bdi>", made.picture.value)
    assert alive() == first
    app.close()
    assert alive() == before


def test_the_app_refuses_an_unknown_name():
    with pytest.raises(ValueError, match="bleu, rouge"):
        catalogue_page.explorer_app("rogue")


def test_importing_the_module_loads_neither_ipywidgets_nor_a_model():
    code = (
        "import tsteval.explorers.catalogue, sys; "
        "print([name for name in ('ipywidgets', 'torch', 'transformers', 'ot') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_results_are_opened_with_their_systems_and_pairs(folder):
    app = catalogue_page.results_app(folder)
    place = app.children[1]
    page = place.children[1].picture.value + place.children[1].controls["point"].drawing.value
    assert "copy, 2 outputs" in page and "95% interval" in page and "<use " in page
    press(app, "pairs")
    place.children[1].controls["pair"].value = 3
    assert "&lt;i&gt;A great&lt;/i&gt;" in re.sub(
        "</?(ins|del|bdi|span)[^>]*>", "", place.children[1].picture.value
    )
    assert_harmless(place.children[1].picture.value)
    app.close()


@pytest.mark.parametrize(
    "spoil, words",
    [
        (
            lambda folder: (folder / "summary.json").unlink(),
            ["no summary.json", "tsteval evaluate"],
        ),
        (
            lambda folder: [(folder / name).unlink() for name in ("summary.json", "per_pair.csv")],
            ["no per_pair.csv and no summary.json"],
        ),
        (
            lambda folder: (folder / "summary.json").write_text("{"),
            ["summary.json", "not valid JSON"],
        ),
        (lambda folder: (folder / "summary.json").write_text("[1]"), ["no list of systems"]),
        (
            lambda folder: (folder / "per_pair.csv").write_text("system,source,output\na,b,c\n"),
            ["no column sti"],
        ),
        (
            lambda folder: (folder / "per_pair.csv").write_text(
                "system,source,output,sti,cps\na,b,c,1,1\n"
            ),
            ["different runs"],
        ),
        (lambda folder: (folder / "per_pair.csv").write_bytes(b"\xff"), ["not UTF-8"]),
    ],
)
def test_a_folder_that_is_none_is_refused_in_one_line(folder, capsys, spoil, words):
    from tsteval.cli import main

    spoil(folder)
    with pytest.raises(FileError) as told:
        read_results(folder)
    assert all(word in str(told.value) for word in words) and str(folder) in str(told.value)
    assert main(["explore", str(folder), "--no-browser"]) == 2  # before a server starts
    told = capsys.readouterr().err
    assert told.count("\n") == 1 and all(word in told for word in words)


def test_explorers_start_from_the_defaults_of_what_they_show(explorers):
    """Every control that stands for an argument of a function begins at that function's own default."""
    from tsteval import ameliorations, bleu

    opened = {
        name: explorers[name]()
        for name in ("bleu", "rouge", "ameliorations", "mask", "overlap", "alignment")
    }

    def value(name, control):
        return opened[name].controls[control].value

    usual = defaults_of(bleu.corpus_bleu)
    assert [value("bleu", name) for name in ("order", "smoothing", "tokenizer")] == [
        usual[name] for name in ("max_order", "smoothing", "tokenize")
    ]
    assert (
        len({value("bleu", f"weight_{order}") for order in range(1, 5)}) == 1
        and usual["weights"] is None
    )
    assert value("rouge", "stemmer") == Rouge().stemmer
    usual = defaults_of(ameliorations.good_bad_thresholds)
    shares = ("good_share", "bad_share")
    assert [value("ameliorations", name) for name in shares] == [usual[name] for name in shares]
    usual = dict(zip(("threshold", "strategy", "unit"), mask_style.__defaults__))
    assert all(value("mask", name) == usual[name] for name in ("threshold", "strategy", "unit"))
    assert (
        set(Cps.options().values()) == {None} and "without a mask" in opened["mask"].picture.value
    )
    texts = [
        inspect.signature(content_page.mask_explorer).parameters[name].default
        for name in ("source", "output")
    ]
    unmasked = content_preservation(*([text] for text in texts), strategy="none").cps[0]
    assert f"as evaluate takes it, {unmasked:.3f}" in opened["mask"].picture.value
    assert value("overlap", "order") == Chrf().char_order
    assert value("alignment", "layer") == alignment.LAYERS["all-MiniLM-L6-v2"]
    for one in opened.values():
        one.close()


def test_every_tab_asks_and_teaches_and_leads_to_its_chapter():
    for name, tab in catalogue_page.EXPLORERS.items():
        assert tab.question.endswith("?") and len(tab.question) <= 40, name
        assert tab.lesson.endswith(".") and tab.lesson.count(". ") == 0, name
        assert (ROOT / "nbs" / f"{tab.chapter}.ipynb").is_file(), name


def test_a_tab_links_where_the_page_can_open_a_chapter(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "<a" not in catalogue_page.chapter_link(
        "02_bleu"
    ) and "tsteval course" in catalogue_page.chapter_link("02_bleu")
    (tmp_path / "02_bleu.ipynb").write_text("{}")
    assert 'href="02_bleu.ipynb"' in catalogue_page.chapter_link("02_bleu")
    monkeypatch.setenv("TSTEVAL_CHAPTERS", "chapter/{}.ipynb")
    assert 'href="chapter/02_bleu.ipynb"' in catalogue_page.chapter_link(
        "02_bleu"
    ) and "Chapter 2, bleu" in catalogue_page.chapter_link("02_bleu")


def test_slow_work_lets_the_page_live_and_tells_what_it_does():
    """The row of tabs is there before the work is done, each step is shown, and an error is told."""
    import asyncio
    import threading

    async def open_three():
        go = threading.Event()
        seen = []

        def wait(tell):
            return (tell("step 1 of 2"), go.wait(20), 7)[-1]

        def make(found=None):
            return controls_page.explorer(
                "one",
                [{"n": controls_page.slider("n", found or 1, 1, 9, 1)}],
                lambda n: f"<p>{n}</p>",
            )

        tabs = {
            "slow": catalogue_page.Tab("Slow?", "Learn.", "", make, wait),
            "wrong": catalogue_page.Tab("Wrong?", "Learn.", "", make, lambda tell: 1 / 0),
            "quick": catalogue_page.Tab("Quick?", "Learn.", "", make),
        }
        app = catalogue_page.tab_row(tabs, "slow")
        place = app.children[1]
        await asyncio.sleep(0.2)
        seen.append(place.children[1].value)
        go.set()
        for _ in range(100):
            await asyncio.sleep(0.05)
            if hasattr(place.children[1], "controls"):
                break
        seen.append(place.children[1].picture.value)
        press(app, "wrong")
        await asyncio.sleep(0.3)
        seen.append(place.children[1].value)
        app.close()
        return seen

    first, second, third = asyncio.run(open_three())
    assert (
        "step 1 of 2" in first
        and 'role="status"' in first
        and second == "<p>7</p>"
        and "division" in third
        and 'role="alert"' in third
    )


def test_a_tab_says_how_closely_its_scores_follow_people():
    shown = str(catalogue_page.tab_head(catalogue_page.EXPLORERS["overlap"]))
    for name in ("chrf", "meteor"):
        assert plain(people_lines(METRICS[name](), most=1)[0]) in shown
    assert "beside people" not in str(catalogue_page.tab_head(catalogue_page.EXPLORERS["sums"]))
