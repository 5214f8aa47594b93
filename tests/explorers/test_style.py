"""The explorers of the Earth Mover's Distance and of style without a browser."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.explorers.pages import Page
from tsteval.attribution import integrated_gradients
from tsteval.core.checks import InputError
from tsteval.explorers import style as style_page
from tsteval.sti import earth_movers_distance, transport_plan


@settings(deadline=None)
@given(
    st.lists(st.floats(0.01, 1), min_size=3, max_size=3),
    st.lists(st.floats(0.01, 1), min_size=3, max_size=3),
    st.sampled_from(sorted(style_page._COSTS)),
)
def test_the_drawn_moves_cost_the_distance(p, q, cost):
    p = np.divide(p, sum(p))
    q = np.divide(q, sum(q))
    costs = style_page._COSTS[cost](3)
    flow = transport_plan(p, q, costs)
    assert np.allclose(flow.sum(axis=1), p) and np.allclose(flow.sum(axis=0), q)
    assert (flow * costs).sum() == pytest.approx(earth_movers_distance(p, q, costs)[0], abs=1e-9)
    assert (
        f"{earth_movers_distance(p, q, costs)[0]:.3f}"
        in Page(style_page.emd_picture(p, q, costs)).text
    )


@pytest.mark.parametrize(
    "text, words",
    [
        ("0 1", ["1 rows", "write 2"]),
        ("0 1 2\n1 0 2", ["row 0 ", "write 2"]),
        ("0 1\n2", ["row 1 (counted from 0)"]),
        ("0 1\n<b> 0", ["row 1 ", "<b>"]),
        ("0 1\n-1 0", ["row 1 ", "-1"]),
        ("0 inf\n1 0", ["row 0 "]),
        ("", ["0 rows"]),
    ],
)
def test_a_wrong_cost_matrix_is_refused_by_row(text, words):
    with pytest.raises(ValueError) as told:
        style_page.read_costs(text, 2)
    assert all(word in str(told.value) for word in words)


def test_a_cost_matrix_with_commas_or_spaces():
    assert style_page.read_costs("0, 1\n2.5 0\n", 2).tolist() == [[0, 1], [2.5, 0]]


def test_style_picture_has_both_distributions_and_every_word(classifier):
    pair = ["A stunning bridge.", "A bridge."]
    probabilities = classifier.predict_proba(pair)
    page = Page(
        style_page.style_picture(
            probabilities, classifier.labels, integrated_gradients(classifier, pair)
        )
    ).text
    assert all(f"{value:.3f}" in page for value in probabilities.ravel()) and "stunning" in page


def test_emd_explorer_scales_what_it_is_given():
    explorer = style_page.emd_explorer(p=(3, 1), q=(0.5, 0.5))
    assert [explorer.controls[name].value for name in ("p1", "p2")] == [0.75, 0.25]
    explorer.close()
    for p, q in (((0, 0), (1, 1)), ((1,), (1,)), ((1, 1), (1, 1, 1))):
        with pytest.raises(ValueError):
            style_page.emd_explorer(p=p, q=q)


def test_a_mistake_is_told_and_the_explorer_lives_on(explorers):
    explorer = explorers["emd"]()
    for place in range(1, 6):
        explorer.controls[f"p{place}"].value = 0
    assert "all sliders of p are at 0; raise one of them. Until then" in explorer.message.value
    assert "by -0.500 (STI)" in explorer.picture.value  # the last that could be drawn stays
    explorer.controls["p1"].value = 1
    assert "by +0.800 (STI)" in explorer.picture.value and not explorer.message.value
    explorer.close()


def test_a_classifier_that_cannot_be_had_is_named(explorers):
    explorer = explorers["style"]()
    explorer.controls["classifier"].value = "<b>no-such-model</b>"
    assert "no-such-model" in explorer.message.value and "<b>" not in explorer.message.value
    explorer.controls["classifier"].value = "subjectivity-minilm"
    assert explorer.picture.value and not explorer.message.value
    explorer.close()


def test_a_style_picture_shows_the_parts_that_are_asked_for(classifier):
    pair = ["The stunning bridge opened.", "The bridge opened."]
    probabilities = classifier.predict_proba(pair)
    found = integrated_gradients(classifier, pair)
    pages = {
        parts: Page(style_page.style_picture(probabilities, classifier.labels, found, parts)).text
        for parts in (("style",), ("style", "words"), ("words",))
    }
    assert ["STI" in text for text in pages.values()] == [False] * 3
    assert ["stunning" in text for text in pages.values()] == [False, True, True]
    assert [classifier.labels[1] in text for text in pages.values()] == [True, True, False]
    sides = [f"{classifier.labels[row.argmax()]} ({row.max():.0%})" for row in probabilities]
    assert f"calls the source {sides[0]} and the output {sides[1]}" in pages["style", "words"]
    heaviest = [text.words[text.word_scores.argmax()] for text in found]
    for words in (pages["style", "words"], pages["words",]):
        assert f"towards {classifier.labels[0]}: {heaviest[0]} in the source" in words
    with pytest.raises(InputError, match="parts"):
        style_page.style_picture(probabilities, classifier.labels, found, ("colours",))
