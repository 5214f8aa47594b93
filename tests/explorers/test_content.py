"""The explorers of masking, overlap, alignment and content without a browser."""

import html

import numpy as np
import pytest

from tsteval.alignment import bert_score
from tsteval.attribution import integrated_gradients
from tsteval.content import content_evidence, style_aware_content
from tsteval.cps import content_preservation, masked_places
from tsteval.explorers import content as content_page
from tsteval.overlap import chrf, meteor


@pytest.mark.parametrize("unit", ["token", "word"])
@pytest.mark.parametrize("strategy", ["pad", "remove", "none"])
def test_mask_picture_crosses_out_what_is_masked_and_shows_the_score(
    classifier, encoder, unit, strategy
):
    pair = ["The stunning bridge was finally opened.", "The bridge was opened."]
    attributions = integrated_gradients(classifier, pair)
    curve = content_page.cps_curve(*attributions, encoder, strategy, unit)
    for threshold in (0.0, 0.3, 0.76, 1.0):
        page = content_page.mask_picture(*attributions, threshold, strategy, unit, curve, 0.125)
        assert "without a mask, as evaluate takes it, 0.125" in page
        places = [
            [] if strategy == "none" else masked_places(text, threshold, unit)
            for text in attributions
        ]
        assert page.count("line-through") == sum(map(len, places))
        expected = content_preservation(
            *[[text] for text in pair],
            classifier=classifier,
            encoder=encoder,
            unit=unit,
            threshold=threshold,
            strategy=strategy,
        ).iloc[0]
        assert f"CPS {expected.cps:.3f}" in page and html.escape(expected.masked_source) in page
        assert f"{len(places[0])} of " in page and f"{len(places[1])} of " in page


def test_sliders_never_call_a_model_and_a_text_calls_it_once(classifier, monkeypatch):
    calls = []
    real_attribution = content_page.integrated_gradients
    real_curve = content_page.cps_curve

    def counted(name, function):
        return lambda *arguments, **options: calls.append(name) or function(*arguments, **options)

    monkeypatch.setattr(
        content_page, "integrated_gradients", counted("gradients", real_attribution)
    )
    monkeypatch.setattr(content_page, "cps_curve", counted("curve", real_curve))
    explorer = content_page.mask_explorer()
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


PAIR = "The present pleased the kids.", "The gift made the children happy."


def test_the_pictures_show_what_is_counted_paired_matched_and_moved_with_the_scores(encoder):
    texts = [[text] for text in PAIR]
    page = content_page.overlap_picture(*PAIR)
    found = chrf(*texts)[0]
    assert all(part in page for part in ("What is counted", "What is paired", f"{found:.3f}"))
    assert (
        f"METEOR pairs 3 of the output's 6 words and marks with the reference's 7, and gives "
        f"{meteor(*texts)[0]:.3f}; chrF, of runs of letters, is {found:.3f}." in html.unescape(page)
    )
    alike = html.unescape(content_page.overlap_picture("The kids.", "The kids.", order=2))
    assert "pairs 3 of the output's 3" in alike and "chrF, of runs of letters, is 1.000" in alike
    page = content_page.alignment_picture(*PAIR, encoder=encoder)
    found = bert_score(*texts, encoder=encoder).f1[0]
    assert f"F1 {found:.3f}. The words lie" in page
    same = content_page.alignment_picture(PAIR[0], PAIR[0], encoder=encoder)
    assert "F1 1.000. The words lie 0.000 apart" in same
    assert all(
        part in page
        for part in ("What is matched", "What is moved", "kids with children", f"{found:.3f}")
    )


def test_texts_without_words_have_no_pairs_and_markup_is_text(encoder):
    assert "What is paired" not in content_page.overlap_picture("", "a gift")
    assert "What is moved" not in content_page.alignment_picture("", "a gift", encoder=encoder)
    hostile = "<script>alert(1)</script>", '"><img src=x>'
    for page in (
        content_page.overlap_picture(*hostile),
        content_page.alignment_picture(*hostile, encoder=encoder),
    ):
        assert "<script" not in page and "<img src=x" not in page


@pytest.mark.parametrize(
    "output",
    ["Great news: the desk is now on the top floor!", "The desk moved to the ground floor."],
)
def test_the_sentence_of_the_content_explorer_names_words_alone(output):
    """The value is the score's, the word the least supported one that is a word; a mark is none."""
    source = "The clinic moved its vaccination desk to the ground floor."
    one = content_page.content_explorer(source, output, "positive")
    score = style_aware_content([source], [output], "positive")[0]
    page = html.unescape(one.picture.value)
    assert f"Content {score:.2f}, where 1 is surely kept; supported least: \u201c" in page
    _, (links,), (back,) = content_evidence([source], [output], "positive")
    for side, text, found, counted in (
        ("output", output, links, [output[start].isalnum() for start, _ in links.spans]),
        ("source", source, back, back.is_content),
    ):
        place = np.where(counted, found.support, np.inf).argmin()
        times = np.exp(abs(found.support[place]))
        said = f"{times:,.0f}" if times >= 10 else f"{times:.1f}"
        word = text[slice(*found.spans[place])]
        assert f"\u201c{word}\u201d in the {side} ({said} times " in page
    assert "cosine again" not in page and "nats" not in page
    one.close()
