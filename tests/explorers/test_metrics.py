"""The explorers without a browser: what a picture shows for a state, hostile text, what stays behind, rendering."""
import base64
import html
import inspect
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsteval import properties, similarity
from tsteval.attribution import integrated_gradients
from tsteval.bleu import SMOOTHINGS, sentence_bleu
from tsteval.core.display import displayable
from tsteval.core.metric import Metric, Scores, find_metric
from tsteval.cps import content_preservation, masked_places
from tsteval.datasets.formats import FileError
from tsteval.evaluation import Evaluation, evaluate
from tsteval.explorers import controls as engine
from tsteval.explorers import metrics as widgets
from tsteval.explorers import pair_browser
from tsteval.fluency import fluency_scores
from tsteval.ngram import NgramLM
from tsteval.report import marks
from tsteval.rouge import rouge_scores
from tsteval.runs.opened import read_results
from tsteval.runs.results import SystemScores
from tsteval.sti import earth_movers_distance, transport_plan
from tsteval.text import TOKENIZERS, edited_spans, tokenize

ROOT = Path(__file__).parents[2]
HOSTILE = ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "word <b> & " * 1_820,
           "\u05e9\u05dc\u05d5\u05dd \u202eabc", "\U0001f469\u200d\U0001f52c \U0001f600", "\ud83d alone \udc00",
           "\x00\x07", "",
           "a" * 20_000, " \n ", "</bdi></svg></div>", "{0} %s {evil}"]


class Page(HTMLParser):
    """The elements of a page, its text, and everything that could run."""

    def __init__(self, page):
        super().__init__()
        self.open, self.text, self.elements, self.active = [], "", [], []
        self.feed(page)
        assert not self.open, f"left open: {self.open}"

    def handle_starttag(self, name, attributes):
        self.elements.append(name)
        if name not in ("br", "img"):
            self.open.append(name)
        drawing = dict(attributes).get("src", "").startswith("data:image/svg+xml;base64,")
        self.active += [name] if name in ("script", "img", "iframe", "object", "b") and not drawing else []
        self.active += [key for key, _ in attributes if key.startswith("on")]

    def handle_endtag(self, name):
        assert self.open.pop() == name

    def handle_data(self, data):
        self.text += data


def assert_harmless(page):
    page.encode("utf-8")  # a lone surrogate would stop the message that carries the page
    assert not Page(page).active


@pytest.fixture(scope="module")
def evaluation():
    """Four outputs of two systems with scores that nobody computed."""
    table = pd.DataFrame({
        "system": ["copy", "copy", "edit", "edit"], "source": ["A fine bridge.", "A great dam."] * 2,
        "output": ["A fine bridge.", "A great dam.", "A bridge.", "<i>A great</i> lake."],
        "references": [("A bridge.",), ("A dam.",)] * 2})
    written = {"sti": [0.0, 0.0, 0.8, -0.3], "cps": [1.0, 1.0, 0.9, 0.4]}
    probability = [0.1, 0.2, 0.9, 0.6]
    scores = {name: Scores(pd.DataFrame({name: values})) for name, values in written.items()}
    metrics = [Metric(name, ("source", "output"), (name,), lambda table, models: None, headings=(name.upper(),))
               for name in written]
    return SystemScores(table.assign(**written, output_target_probability=probability), metrics, scores, {}, n_boot=20)


@pytest.fixture
def explorers(evaluation):
    """Every explorer of the package by name, as a function that opens it."""
    return {**widgets.EXPLORERS, "evaluation": lambda: widgets.evaluation_explorer(evaluation)}


# ---- state to picture

words = st.lists(st.sampled_from(["a", "b", "c"]), max_size=8)


@given(words, st.lists(words, min_size=1, max_size=3), st.integers(1, 3))
def test_marks_agree_with_the_clipped_matches_of_bleu(candidate, references, order):
    found, reference_marks = marks.mark_ngrams(candidate, references, order)
    score = sentence_bleu(" ".join(candidate), [" ".join(r) for r in references], max_order=order, tokenize="none")
    assert found.count("matched") == score.matches[order - 1] and len(found) == score.totals[order - 1]
    assert all(len(m) == max(len(r) - order + 1, 0) and "clipped" not in m for m, r in zip(reference_marks, references))


@settings(deadline=None)
@given(words, words, st.lists(st.sampled_from([0.0, 0.25, 1.0]), min_size=1, max_size=4).filter(any),
       st.sampled_from(sorted(SMOOTHINGS)))
def test_the_last_product_is_the_score(candidate, reference, weights, smoothing):
    candidate, reference = " ".join(candidate), " ".join(reference)
    rows = widgets.score_factors(candidate, [reference], weights, smoothing, "none")
    score = sentence_bleu(candidate, reference, max_order=len(weights), weights=np.divide(weights, sum(weights)),
                          smoothing=smoothing, tokenize="none").score
    assert rows[-1]["product"] == pytest.approx(score, abs=1e-12)


def test_bleu_picture_shows_marks_penalty_and_score():
    page = Page(widgets.bleu_picture("the the cat", ["the cat sat"], [1, 1]))
    score = sentence_bleu("the the cat", "the cat sat", max_order=2, weights=[0.5, 0.5]).score
    assert f"BLEU = {score:.4f}" in page.text and "brevity penalty" in page.text and "2 of 3" in page.text
    assert 'title="clipped"' in widgets.bleu_picture("the the cat", ["the cat sat"], [1, 1])


def test_ngram_picture_shows_probabilities_and_both_ameliorations():
    lm = NgramLM(order=2, smoothing="mle").fit([["a", "b"], ["a", "c"]])
    page = Page(widgets.ngram_picture(lm, ["a", "b", "zebra"])).text
    assert f"{lm.prob('b', ['a']):.2g}" in page and "zebra (unk)" in page and "shuffled (0)" in page and "(end)" in page
    for seed in range(5):
        assert Page(widgets.ngram_picture(lm, ["a", "b"], seed=seed)).text.count(f"shuffled ({seed})") == 2


def test_ngram_picture_refuses_shares_that_overlap():
    with pytest.raises(ValueError, match="share"):
        widgets.ngram_picture(NgramLM(order=2).fit([["a", "b"]]), ["a"], 0.9, 0.2)


def test_fluency_picture_says_what_each_score_prefers():
    better = widgets.ScoredText(["x", "y"], np.array([-1.0, -1.0]), np.array([-3.0, -3.0]))
    worse = widgets.ScoredText(["x", "y"], np.array([-5.0, -5.0]), np.array([-3.0, -3.0]))
    table = widgets.fluency_picture(better, worse).split("</table>")[0]
    assert table.count(">first</td>") == 4 and widgets.fluency_picture(worse, better).count(">second</td>") == 4
    assert widgets.fluency_picture(worse, worse).count(">neither</td>") == 4


def test_ngram_fluency_is_that_of_fluency_scores():
    lm, unigram = widgets._fluency_models(widgets.NGRAM_MODEL)
    text = "The bridge was opened in 1932."
    scored = widgets._score_text((lm, unigram), text)
    expected = fluency_scores(lm, [tokenize(text.lower())], unigram).iloc[0]
    assert scored.logprobs.sum() == pytest.approx(expected.logprob)
    assert (scored.logprobs.sum() - scored.unigram_logprobs.sum()) / len(scored.tokens) == pytest.approx(expected.slor)


@settings(deadline=None)
@given(st.lists(st.floats(0.01, 1), min_size=3, max_size=3), st.lists(st.floats(0.01, 1), min_size=3, max_size=3),
       st.sampled_from(sorted(widgets._COSTS)))
def test_the_drawn_moves_cost_the_distance(p, q, cost):
    p, q, costs = np.divide(p, sum(p)), np.divide(q, sum(q)), widgets._COSTS[cost](3)
    flow = transport_plan(p, q, costs)
    assert np.allclose(flow.sum(axis=1), p) and np.allclose(flow.sum(axis=0), q)
    assert (flow * costs).sum() == pytest.approx(earth_movers_distance(p, q, costs)[0], abs=1e-9)
    assert f"{earth_movers_distance(p, q, costs)[0]:.3f}" in Page(widgets.emd_picture(p, q, costs)).text


@pytest.mark.parametrize("text, words", [("0 1", ["1 rows", "write 2"]), ("0 1 2\n1 0 2", ["row 0 ", "write 2"]),
                                         ("0 1\n2", ["row 1 (counted from 0)"]), ("0 1\n<b> 0", ["row 1 ", "<b>"]),
                                         ("0 1\n-1 0", ["row 1 ", "-1"]), ("0 inf\n1 0", ["row 0 "]), ("", ["0 rows"])])
def test_a_wrong_cost_matrix_is_refused_by_row(text, words):
    with pytest.raises(ValueError) as told:
        widgets.read_costs(text, 2)
    assert all(word in str(told.value) for word in words)


def test_a_cost_matrix_with_commas_or_spaces():
    assert widgets.read_costs("0, 1\n2.5 0\n", 2).tolist() == [[0, 1], [2.5, 0]]


def test_style_picture_has_both_distributions_and_every_word(classifier):
    pair = ["A stunning bridge.", "A bridge."]
    probabilities = classifier.predict_proba(pair)
    page = Page(widgets.style_picture(probabilities, classifier.labels, integrated_gradients(classifier, pair))).text
    assert all(f"{value:.3f}" in page for value in probabilities.ravel()) and "stunning" in page


@pytest.mark.parametrize("unit", ["token", "word"])
@pytest.mark.parametrize("strategy", ["pad", "remove", "none"])
def test_mask_picture_crosses_out_what_is_masked_and_shows_the_score(classifier, encoder, unit, strategy):
    pair = ["The stunning bridge was finally opened.", "The bridge was opened."]
    attributions = integrated_gradients(classifier, pair)
    curve = widgets.cps_curve(*attributions, encoder, strategy, unit)
    for threshold in (0.0, 0.3, 0.76, 1.0):
        page = widgets.mask_picture(*attributions, threshold, strategy, unit, curve, 0.125)
        assert "without a mask, as evaluate takes it, 0.125" in page
        places = [[] if strategy == "none" else masked_places(text, threshold, unit) for text in attributions]
        assert page.count("line-through") == sum(map(len, places))
        expected = content_preservation(*[[text] for text in pair], classifier=classifier, encoder=encoder, unit=unit,
                                        threshold=threshold, strategy=strategy).iloc[0]
        assert f"CPS {expected.cps:.3f}" in page and html.escape(expected.masked_source) in page


def test_filters_of_an_evaluation(evaluation):
    rows = lambda *arguments, **filters: pair_browser.choose_rows(evaluation.per_pair, *arguments, **filters).tolist()
    assert rows() == [0, 1, 2, 3] and rows("edit") == [2, 3] and rows(unchanged=True) == [0, 1]
    assert rows(negative=True) == [3] and rows(against=True) == [0, 1] and rows(highest=0.9) == [2, 3]
    assert rows("edit", unchanged=True) == [] and rows("edit", negative=True, highest=0.5) == [3]


def test_the_browser_shows_the_selected_pair(evaluation):
    explorer = widgets.evaluation_explorer(evaluation)
    explorer.controls["system"].value, explorer.controls["pair"].value = "edit", 3
    page, chart = explorer.picture.value, explorer.controls["point"].drawing.value
    text = Page(page).text
    assert "2 of 4 outputs" in text and "copy (0)edit (2)" in Page(chart).text and "STI -0.300, CPS 0.400" in text
    assert "lake" in text and "<ins" in page and "<del" in page and not Page(page).active
    explorer.controls["negative"].value, explorer.controls["unchanged"].value = True, True
    assert "no pair passes" in explorer.picture.value and not explorer.controls["point"].options
    explorer.close()


def test_export_holds_the_selection(evaluation):
    import io
    table = pd.read_csv(io.StringIO(pair_browser.selection_csv(evaluation.per_pair, np.array([1, 3]))))
    assert table.output.tolist() == ["A great dam.", "<i>A great</i> lake."]
    assert json.loads(table.references[0]) == ["A dam."]


# ---- hostile text, function by function and field by field

@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_in_pictures(text, evaluation):
    for tokenizer in TOKENIZERS:
        assert_harmless(widgets.bleu_picture(text, [text, "the cat"], [1, 1, 1, 1], tokenizer=tokenizer, marked=2))
    lm = NgramLM(order=2).fit([["a", "b"], ["b"]])
    assert_harmless(widgets.ngram_picture(lm, tokenize(displayable(text))))
    tokens = tokenize(text)
    scored = widgets.ScoredText(tokens, -np.ones(len(tokens)), -np.ones(len(tokens)))
    assert_harmless(widgets.fluency_picture(scored, scored))
    sound = text.encode("utf-8", "replace").decode()  # as `evaluate` does; a frame cannot hold a lone surrogate
    assert_harmless(widgets.rouge_picture(text, "the cat\n" + text, "rougeL"))
    table = evaluation.per_pair.assign(source=sound, output=sound + "!", system=sound)
    explorer = widgets.evaluation_explorer(SystemScores(table, evaluation.metrics, evaluation.scores, {}, n_boot=20))
    chart = explorer.controls["point"]
    assert_harmless(explorer.picture.value + chart.drawing.value)
    for name in (*chart.buttons.tooltips, *chart.buttons._options_labels): name.encode("utf-8")
    assert not explorer.message.value
    explorer.close()


@pytest.mark.parametrize("name", ["bleu", "rouge", "ngram", "emd", "style", "mask"])
@pytest.mark.slow
def test_hostile_text_in_every_field_and_the_explorer_lives_on(explorers, name):
    explorer = explorers[name]()
    first = explorer.picture.value
    fields = [control for control in explorer.controls.values()
              if isinstance(control, engine.widget_classes()["TextField"])]
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
        explorer.controls["cost"].value = next(iter(widgets._COSTS))
    assert explorer.picture.value == first and not explorer.message.value
    explorer.close()


def test_an_explorer_opens_with_hostile_texts_and_its_drawings_become_images():
    for text in [*HOSTILE, "\ufffe\uffff \x85"]:
        for explorer in (widgets.bleu_explorer(text, text), widgets.ngram_explorer(text)):
            page = str(explorer.static_picture())
            images = re.findall('<img alt="[^"]+" src="data:image/svg.xml;base64,([^"]+)">', page)
            assert images and "<svg" not in page
            for image in images:  # XML is strict: one wrong character and there is no image
                assert ElementTree.fromstring(base64.b64decode(image)).tag == "{http://www.w3.org/2000/svg}svg"
            assert_harmless(page)
            explorer.close()


# ---- wiring

@pytest.mark.slow
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
            before, usual = explorer.picture.value + explorer.message.value, control.value
            move(explorer, name, key, control)
            assert explorer.picture.value + explorer.message.value != before, (name, key)
            control.value = usual
        explorer.close()


def move(explorer, name, key, control):
    if key == "matrix":
        explorer.controls["cost"].value, explorer.controls["classes"].value = "as typed below", 3
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
        control.value = control.min if control.value > (control.min + control.max) / 2 else control.max


def test_weights_and_classes_show_only_the_sliders_that_count(explorers):
    bleu, emd = explorers["bleu"](), explorers["emd"]()
    bleu.controls["order"].value, emd.controls["classes"].value = 2, 3
    hidden = lambda explorer: {key for key, control in explorer.controls.items() if control.layout.display == "none"}
    assert hidden(bleu) == {"weight_3", "weight_4"} and hidden(emd) == {"p4", "p5", "q4", "q5", "matrix"}
    bleu.close(), emd.close()


def test_emd_explorer_scales_what_it_is_given():
    explorer = widgets.emd_explorer(p=(3, 1), q=(0.5, 0.5))
    assert [explorer.controls[name].value for name in ("p1", "p2")] == [0.75, 0.25]
    explorer.close()
    for p, q in (((0, 0), (1, 1)), ((1,), (1,)), ((1, 1), (1, 1, 1))):
        with pytest.raises(ValueError):
            widgets.emd_explorer(p=p, q=q)


def test_a_mistake_is_told_and_the_explorer_lives_on(explorers):
    explorer = explorers["emd"]()
    for place in range(1, 6):
        explorer.controls[f"p{place}"].value = 0
    assert "all sliders of p are at 0" in explorer.message.value and not explorer.picture.value
    explorer.controls["p1"].value = 1
    assert explorer.picture.value and not explorer.message.value
    explorer.close()


def test_a_classifier_that_cannot_be_had_is_named(explorers):
    explorer = explorers["style"]()
    explorer.controls["classifier"].value = "<b>no-such-model</b>"
    assert "no-such-model" in explorer.message.value and "<b>" not in explorer.message.value
    explorer.controls["classifier"].value = "subjectivity-minilm"
    assert explorer.picture.value and not explorer.message.value
    explorer.close()


def test_sliders_never_call_a_model_and_a_text_calls_it_once(classifier, monkeypatch):
    calls = []
    real_attribution, real_curve = widgets.integrated_gradients, widgets.cps_curve

    def counted(name, function):
        return lambda *arguments, **options: calls.append(name) or function(*arguments, **options)

    monkeypatch.setattr(widgets, "integrated_gradients", counted("gradients", real_attribution))
    monkeypatch.setattr(widgets, "cps_curve", counted("curve", real_curve))
    explorer = widgets.mask_explorer()
    assert calls == ["gradients", "gradients", "curve", "curve"]  # one of them without a mask
    for threshold in np.linspace(0, 1, 51):
        explorer.controls["threshold"].value = threshold
    assert len(calls) == 4
    explorer.controls["output"].value = "Another long bridge opened in 1932."
    assert calls[4:] == ["gradients", "curve", "curve"]
    explorer.controls["output"].value = "The long bridge was opened in 1932."  # known already
    assert len(calls) == 7
    explorer.close()


def test_the_spinner_turns_during_slow_work_only(explorers):
    explorer = explorers["mask"]()
    seen = []
    explorer.message.observe(lambda change: seen.append("status" in change["new"]), "value")
    explorer.controls["threshold"].value = 0.5
    assert not seen
    explorer.controls["unit"].value = "word"
    assert seen == [True, False]
    explorer.close()


def test_a_text_counts_as_typed_after_a_pause():
    import asyncio

    async def type_three_letters():
        explorer = widgets.bleu_explorer("the", "the cat")
        drawn = []
        explorer.picture.observe(lambda change: drawn.append(change["new"]), "value")
        for text in ("the c", "the ca", "the cat"):
            explorer.controls["candidate"].value = text
        assert not drawn
        await asyncio.sleep(engine.TYPING_PAUSE + 0.2)
        assert len(drawn) == 1
        explorer.controls["candidate"].value = "the"
        explorer.close()  # with a redraw still due
        await asyncio.sleep(engine.TYPING_PAUSE + 0.2)
        assert len(drawn) == 1

    asyncio.run(type_three_letters())


# ---- nothing stays behind

def alive():
    """Widgets and observers that the kernel still holds, and open matplotlib figures."""
    import ipywidgets.widgets.widget as registry
    import matplotlib.pyplot as plt
    observers = sum(len(handlers) for widget in registry._instances.values()
                    for kinds in widget._trait_notifiers.values() for handlers in kinds.values())
    return {"widgets": len(registry._instances), "observers": observers, "figures": len(plt.get_fignums())}


@pytest.mark.slow
def test_closing_leaves_no_widget_observer_or_figure(explorers):
    explorers["bleu"]().close()  # makes what is made once
    before = alive()
    for name, open_explorer in explorers.items():
        explorer = open_explorer()
        assert alive()["observers"] > before["observers"]
        explorer.close()
        assert alive() == before, name


@pytest.mark.slow
def test_the_app_holds_one_explorer_at_a_time(monkeypatch, evaluation):
    asked = engine.Tab("Which?", "Learn.", "14_evaluation", widgets.evaluation_explorer, lambda tell: tell("1 of 1")
                       or evaluation)
    monkeypatch.setitem(widgets.EXPLORERS, "evaluation", asked)
    before = alive()
    app = widgets.explorer_app()
    choice, place = app.children
    first = alive()
    for name in [*list(widgets.EXPLORERS)[1:], "bleu"]:
        choice.value = name
        assert len(place.children) == 2 and widgets.EXPLORERS[name].lesson in html.unescape(place.children[0].value)
        assert place.children[1].controls and 'role="alert"' not in place.children[1].message.value
    assert alive() == first
    app.close()
    assert alive() == before


def test_the_app_refuses_an_unknown_name():
    with pytest.raises(ValueError, match="bleu, rouge"):
        widgets.explorer_app("rogue")


def test_importing_the_module_loads_neither_ipywidgets_nor_a_model():
    code = ("import tsteval.explorers.metrics, sys; "
            "print([name for name in ('ipywidgets', 'torch', 'transformers', 'ot') if name in sys.modules])")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_evaluation_without_a_column_is_refused_and_others_can_be_drawn(evaluation):
    few = SystemScores(evaluation.per_pair.drop(columns=["cps", "output_target_probability"]), evaluation.metrics[:1],
                       evaluation.scores, {})
    with pytest.raises(ValueError, match="cps"):
        widgets.evaluation_explorer(few, y="cps")
    explorer = widgets.evaluation_explorer(few)
    assert "against" not in explorer.controls and explorer.controls["highest"].description == "STI at most"
    assert "4 of 4 outputs" in explorer.picture.value
    explorer.controls["highest"].value = -0.1
    assert "1 of 4 outputs" in explorer.picture.value
    explorer.close()


def test_an_output_without_a_score_is_listed_until_a_limit_is_set(evaluation):
    table = evaluation.per_pair.assign(cps=[np.nan, 1.0, 0.9, 0.4])
    explorer = widgets.evaluation_explorer(SystemScores(table, evaluation.metrics, evaluation.scores, {}))
    assert "4 of 4 outputs" in explorer.picture.value
    explorer.controls["highest"].value = 0.95
    assert "2 of 4 outputs" in explorer.picture.value
    explorer.close()


# ---- points that can be pressed

def test_a_point_chooses_its_pair_and_a_pair_its_point(evaluation):
    explorer = widgets.evaluation_explorer(evaluation)
    chart, pairs = explorer.controls["point"], explorer.controls["pair"]
    assert sorted(value for _, value in chart.options) == [0, 1, 2, 3] and chart.buttons.value == pairs.value == 0
    chart.buttons.value = 3  # what a press does
    assert pairs.value == 3 and "lake" in explorer.picture.value
    pairs.value = 2
    assert chart.value == chart.buttons.value == 2 and "edit" in Page(explorer.picture.value).text
    explorer.controls["system"].value = "copy"
    assert {value for _, value in chart.options} == {0, 1} and pairs.value == chart.value == 0
    explorer.close()


def test_buttons_lie_on_the_points_that_are_drawn(evaluation):
    explorer = widgets.evaluation_explorer(evaluation)
    chart = explorer.controls["point"]
    places = re.findall(r"nth-child\((\d+)\) {left:(\d+)px; top:(\d+)px}", chart.places.value)
    for (_, left, top), (_, row) in zip(places, chart.options):
        drawn = [(int(x), int(y)) for x, y in re.findall(r"M(\d+) (\d+)m", chart.drawing.value)]
        assert min(abs(int(left) - x) + abs(int(top) - y) for x, y in drawn) <= 2, row
    assert len(places) == 4 and all(re.match(r"\d+\. ", name) for name, _ in chart.options)
    explorer.close()


def test_the_list_can_be_put_in_the_order_of_a_score(evaluation):
    explorer = widgets.evaluation_explorer(evaluation)
    explorer.controls["by"].value = "cps"
    assert [row for _, row in explorer.controls["pair"].options] == [3, 2, 0, 1]
    explorer.controls["falling"].value = True
    assert [row for _, row in explorer.controls["pair"].options] == [0, 1, 2, 3]
    explorer.close()


# ---- one's own results

@pytest.fixture
def folder(tmp_path, evaluation):
    """A folder as `tsteval evaluate` writes it."""
    from types import SimpleNamespace

    from tsteval.cli.app import _write_results
    arguments = SimpleNamespace(set=[], target_style="neutral", limit=None, n_boot=20, seed=0, format="text",
                                report=["json"], csv_safe=False, output=str(tmp_path / "results"))
    table = evaluation.per_pair.assign(input=evaluation.per_pair.source)
    _write_results(Evaluation(table, evaluation.metrics, evaluation.scores, {}, n_boot=20), {"file": "x"}, arguments,
                   ["sti", "cps"])
    return tmp_path / "results"


def test_results_come_back_as_they_were_written(folder, evaluation):
    opened = read_results(folder)
    assert (opened.systems == evaluation.systems and opened.columns == evaluation.columns and opened.headings
            == evaluation.headings)
    pd.testing.assert_frame_equal(opened.summary(), evaluation.summary(), check_dtype=False)
    for column in ("source", "output", "references", "sti", "cps"):
        assert opened.per_pair[column].tolist() == evaluation.per_pair[column].tolist()


def test_results_are_opened_with_their_systems_and_pairs(folder):
    app = widgets.results_app(folder)
    choice, place = app.children
    page = place.children[1].picture.value + place.children[1].controls["point"].drawing.value
    assert "copy, 2 outputs" in page and "95% bootstrap interval" in page and "<circle" in page
    choice.value = "pairs"
    place.children[1].controls["pair"].value = 3
    assert "&lt;i&gt;A great&lt;/i&gt;" in re.sub("</?(ins|del|bdi|span)[^>]*>", "", place.children[1].picture.value)
    assert_harmless(place.children[1].picture.value)
    app.close()


@pytest.mark.parametrize("text", HOSTILE[:7], ids=range(7))
def test_hostile_results_are_shown_as_text(folder, text):
    sound = text.encode("utf-8", "replace").decode()
    table = pd.read_csv(folder / "per_pair.csv")
    told = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    table["output"], table["system"] = sound or "-", table.system.map({"copy": f"1{sound[:80]}",
                                                                       "edit": f"2{sound[:80]}"})
    for row, name in zip(told["systems"], dict.fromkeys(table.system)): row["system"] = name
    table.to_csv(folder / "per_pair.csv", index=False)
    (folder / "summary.json").write_text(json.dumps(told), encoding="utf-8")
    opened = read_results(folder)
    for explorer in (pair_browser.pair_browser(opened, edited_spans), pair_browser.systems_browser(opened)):
        assert_harmless(explorer.picture.value + explorer.controls["point"].drawing.value)
        assert not explorer.message.value
        explorer.close()


@pytest.mark.parametrize("spoil, words", [
    (lambda folder: (folder / "summary.json").unlink(), ["no summary.json", "tsteval evaluate"]),
    (lambda folder: [(folder / name).unlink() for name in ("summary.json", "per_pair.csv")],
     ["no per_pair.csv and no summary.json"]),
    (lambda folder: (folder / "summary.json").write_text("{"), ["summary.json", "not valid JSON"]),
    (lambda folder: (folder / "summary.json").write_text("[1]"), ["no list of systems"]),
    (lambda folder: (folder / "per_pair.csv").write_text("system,source,output\na,b,c\n"), ["no column sti"]),
    (lambda folder: (folder / "per_pair.csv").write_text("system,source,output,sti,cps\na,b,c,1,1\n"),
     ["different runs"]),
    (lambda folder: (folder / "per_pair.csv").write_bytes(b"\xff"), ["not UTF-8"])])
def test_a_folder_that_is_none_is_refused_in_one_line(folder, capsys, spoil, words):
    from tsteval.cli import main
    spoil(folder)
    with pytest.raises(FileError) as told:
        read_results(folder)
    assert all(word in str(told.value) for word in words) and str(folder) in str(told.value)
    assert main(["explore", str(folder), "--no-browser"]) == 2  # before a server starts
    told = capsys.readouterr().err
    assert told.count("\n") == 1 and all(word in told for word in words)


# ---- ROUGE and properties

def test_the_marks_of_rouge_are_its_matches():
    one, other = (["the", "dam", "opened", "in", "1932", "thousands", "came"],
                  ["thousands", "came", "when", "the", "dam", "was", "opened", "in", "1932"])
    scores = rouge_scores([" ".join(one)], [" ".join(other)], ["rouge1", "rougeL"]).iloc[0]
    for kind, found in (("rouge1", marks.mark_ngrams(one, [other], 1)[0]),
                        ("rougeL", marks.mark_common(one, other)[0])):
        assert found.count("matched") / len(one) == pytest.approx(scores[kind, "precision"])
    for kind in ("rouge1", "rougeL"):
        assert f"{scores[kind, 'f1']:.3f}" in Page(widgets.rouge_picture(" ".join(one), " ".join(other), kind)).text


@settings(deadline=None)
@given(words, words)
def test_a_longest_common_subsequence_is_marked_on_both_sides(one, other):
    left, right = marks.mark_common(one, other)
    kept = [[token for token, mark in zip(tokens, found) if mark == "matched"] for tokens,
            found in ((one, left), (other, right))]
    assert kept[0] == kept[1]
    expected = rouge_scores([" ".join(one)], [" ".join(other)], ["rougeL"]).iloc[0]["rougeL", "precision"]
    assert len(kept[0]) == pytest.approx(expected * len(one))


@pytest.mark.slow
def test_every_property_says_where_it_comes_from():
    told = []
    records = properties.property_records("The bridge opened in 1932.", "When did the bridge open?", tell=told.append)
    assert [row["name"] for row in records] == list(properties.PROPERTIES) and len(told) == 8
    table = properties.calculate_properties(["The bridge opened in 1932."], ["When did the bridge open?"])
    for row in records:
        assert row["from"] and row["is"]
        if row["name"] != "link_validity": assert row["value"] == pytest.approx(table[row["name"]][0], nan_ok=True)
    assert {row["name"]: row["from"] for row in properties.property_records("No.")}["relevance"] == "needs an input"
    page = properties.properties_picture([{**records[1], "from": HOSTILE[0]}])
    assert_harmless(page)


# ---- defaults, names, progress

def defaults_of(function):
    import inspect
    return {name: one.default for name, one in inspect.signature(function).parameters.items()}


def test_explorers_start_from_the_defaults_of_what_they_show(explorers):
    """Every control that stands for an argument of a function begins at that function's own default."""
    from tsteval import ameliorations, bleu
    opened = {name: explorers[name]() for name in ("bleu", "rouge", "ngram", "mask", "similarity")}
    value = lambda name, control: opened[name].controls[control].value
    usual = defaults_of(bleu.corpus_bleu)
    assert [value("bleu", name) for name in ("order", "smoothing", "tokenizer")] == [usual[name]
                                                                                     for name in ("max_order",
                                                                                                  "smoothing",
                                                                                                  "tokenize")]
    assert len({value("bleu", f"weight_{order}") for order in range(1, 5)}) == 1 and usual["weights"] is None
    assert value("rouge", "stemmer") == find_metric("rouge").options["stemmer"]
    usual = defaults_of(ameliorations.good_bad_thresholds)
    assert [value("ngram", name) for name in ("good_share", "bad_share")] == [usual[name]
                                                                              for name in ("good_share", "bad_share")]
    usual = content_preservation.__kwdefaults__
    assert all(value("mask", name) == usual[name] for name in ("threshold", "strategy", "unit"))
    assert set(find_metric("cps").options.values()) == {None} and "without a mask" in opened["mask"].picture.value
    texts = [inspect.signature(widgets.mask_explorer).parameters[name].default for name in ("source", "output")]
    assert (f"as evaluate takes it, {content_preservation(*([text] for text in texts), strategy='none').cps[0]:.3f}" in opened["mask"].picture.value)
    assert value("similarity", "order") == find_metric("chrf").options["char_order"]
    assert value("similarity", "layer") == similarity.LAYERS["all-MiniLM-L6-v2"]
    for one in opened.values(): one.close()


def test_the_demonstration_is_what_evaluate_gives_by_default(monkeypatch):
    from tsteval import evaluation as chapter
    given = {}
    monkeypatch.setattr(widgets, "demonstration_pairs", lambda classifier, limit: (pd.DataFrame({"a": [1]}), {}))
    monkeypatch.setattr(widgets, "evaluate", lambda pairs, metrics,
                        **options: given.update(names=[one.name for one in metrics], options=options,
                                                                                            known=[one.options
                                                                                                   for one in metrics]))
    monkeypatch.setattr(widgets.StyleClassifier, "load", lambda *name: None)
    widgets._demonstration(lambda done: None)
    assert tuple(given["names"]) == chapter.DEFAULT_METRICS == defaults_of(evaluate)["metrics"] and not given["options"]
    assert given["known"] == [find_metric(name).options for name in chapter.DEFAULT_METRICS]


def test_every_tab_asks_and_teaches_and_leads_to_its_chapter():
    for name, tab in widgets.EXPLORERS.items():
        assert tab.question.endswith("?") and len(tab.question) <= 40 and tab.lesson.endswith(".") and tab.lesson.count(". ") == 0, name
        assert (ROOT / "nbs" / f"{tab.chapter}.ipynb").is_file(), name


def test_a_tab_links_where_the_page_can_open_a_chapter(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "<a" not in engine.chapter_link("02_bleu") and "tsteval course" in engine.chapter_link("02_bleu")
    (tmp_path / "02_bleu.ipynb").write_text("{}")
    assert 'href="02_bleu.ipynb"' in engine.chapter_link("02_bleu")
    monkeypatch.setenv("TSTEVAL_CHAPTERS", "chapter/{}.ipynb")
    assert ('href="chapter/02_bleu.ipynb"' in engine.chapter_link("02_bleu")
            and "Chapter 2, bleu" in engine.chapter_link("02_bleu"))


def test_slow_work_lets_the_page_live_and_tells_what_it_does():
    """The row of tabs is there before the work is done, each step is shown, and an error is told."""
    import asyncio
    import threading

    async def open_three():
        go, seen = threading.Event(), []
        wait = lambda tell: (tell("step 1 of 2"), go.wait(20), 7)[-1]
        make = lambda found=None: engine.explorer("one", [{"n": engine.slider("n", found or 1, 1, 9, 1)}],
                                                  lambda n: f"<p>{n}</p>")
        tabs = {"slow": engine.Tab("Slow?", "Learn.", "", make, wait),
                "wrong": engine.Tab("Wrong?", "Learn.", "", make, lambda tell: 1 / 0),
                "quick": engine.Tab("Quick?", "Learn.", "", make)}
        app = engine.tab_row(tabs, "slow")
        choice, place = app.children
        await asyncio.sleep(0.2)
        seen.append(place.children[1].value)
        go.set()
        for _ in range(100):
            await asyncio.sleep(0.05)
            if hasattr(place.children[1], "controls"): break
        seen.append(place.children[1].picture.value)
        choice.value = "wrong"
        await asyncio.sleep(0.3)
        seen.append(place.children[1].value)
        app.close()
        return seen

    first, second, third = asyncio.run(open_three())
    assert ("step 1 of 2" in first and 'role="status"' in first and second == "<p>7</p>" and "division" in third
            and 'role="alert"' in third)


# ---- where no kernel runs

NOTEBOOK = """
from tsteval.explorers import metrics as widgets
explorer = widgets.{name}_explorer()
explorer
"""


def rendered(environment):
    """A notebook with an explorer, run, stripped of widget state as nbdev_clean does, and rendered to HTML."""
    import nbformat
    from nbclient import NotebookClient
    from nbconvert import HTMLExporter
    cells = [nbformat.v4.new_code_cell(NOTEBOOK.format(name=name)) for name in ("bleu", "emd")]
    notebook = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute(env=environment)
    notebook.metadata.pop("widgets", None)
    return notebook, HTMLExporter().from_notebook_node(notebook)[0]


@pytest.mark.parametrize("static", [False, True])
@pytest.mark.slow
def test_a_rendered_notebook_shows_the_picture(static):
    import os
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop("TSTEVAL_STATIC", None)
    notebook, page = rendered({**environment, **({"TSTEVAL_STATIC": "1"} if static else {})})
    for cell, words in zip(notebook.cells, ("brevity penalty", "flow of mass")):
        data = cell.outputs[0]["data"]
        assert words in data["text/html"] and ("application/vnd.jupyter.widget-view+json" in data) is not static
        assert len(data["text/html"]) < 60_000
        assert Page(data["text/html"]).text in html.unescape(re.sub("<[^>]*>", "", page))
    assert "application/vnd.jupyter.widget" not in page.split("<body")[1]


def test_no_chapter_with_an_explorer_stores_a_widget():
    seen = 0
    for path in [*ROOT.glob("nbs/*.ipynb"), *ROOT.glob("nbs/solutions/*.ipynb")]:
        notebook = json.loads(path.read_text(encoding="utf-8"))
        stored = [output.get("data", {}) for cell in notebook["cells"] for output in cell.get("outputs", [])]
        pages = ["".join(data.get("text/html", "")) for data in stored]
        pictures = [page for page in pages if "This picture stands still" in page]
        if pictures:
            seen += 1
            how = f"{path.name}: run it with TSTEVAL_STATIC=1, and without storing widget state"
            assert "widgets" not in notebook["metadata"], how
            assert not any("application/vnd.jupyter.widget-view+json" in data for data in stored), how
            assert max(map(len, pictures)) < 60_000, path.name
    assert seen
