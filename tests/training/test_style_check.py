"""A style model that does not know the style is never believed in silence."""

import json
import os
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

from tsteval.core.assets import AssetError, packaged_path
from tsteval.core.metric import Metric, Note, Scores, ScoreWarning
from tsteval.cps import Cps
from tsteval.evaluation import evaluate, report_files
from tsteval.models.roles import Models
from tsteval.report import page as reporting
from tsteval.sti import Sti
from tsteval.style import StyleClassifier, load_pairs
from tsteval.tables.outputs import prepare_pairs
from tsteval.training.calibration import calibrate, confidence_of
from tsteval.training.style_check import (
    MOST,
    PairOrder,
    check_record,
    check_sentence,
    is_far,
    order_aside,
    pair_order,
    passes,
    review_style,
    style_name,
    style_notes,
    wilson_interval,
)

NEEDS_DATA = pytest.mark.skipif(
    not os.environ.get("TSTEVAL_DATA"), reason="needs the corpora in TSTEVAL_DATA"
)
FORMALITY = pd.read_json(packaged_path("formality_pairs.jsonl"), lines=True)


class Fake:
    """Knows of each text what it was told: the probability of the second label."""

    labels = ("rough", "smooth")
    name = "fake"
    tag = "fake@0"
    identity = "0" * 64
    validation = None
    check = None

    def __init__(self, smooth, validation=None):
        self.smooth = smooth
        self.validation = validation
        self.asked = []

    def predict_proba(self, texts, second=None, batch_size=32, progress=False):
        self.asked += list(texts)
        values = np.array([self.smooth(text) for text in texts])
        return np.stack([1 - values, values], axis=1)


def table(n, right, **more):
    """n pairs of equal length, of which the fake orders the first `right` rightly."""
    rows = [
        {
            "system": "one",
            "source": f"s{number:03d}",
            "output": "x",
            "reference": f"r{number:03d}",
            "target_style": "smooth",
            **more,
        }
        for number in range(n)
    ]

    def probability(text):
        return (
            0.5 if text == "x" else 0.4 if text[0] == "s" else 0.6 if int(text[1:]) < right else 0.3
        )

    return rows, probability


@pytest.mark.parametrize(
    "n, right, warns, words",
    [
        (20, 20, False, "knows this style: it orders 100.0% of 20"),
        (20, 11, True, "holds one half"),
        (20, 1, True, "wrong way round"),
        (3, 3, False, "too few pairs"),
        (4, 2, True, "holds one half"),
    ],
)
def test_the_order_of_pairs_is_counted_and_judged(n, right, warns, words):
    rows, probability = table(n, right)
    order = style_notes(prepare_pairs(rows), Fake(probability))[0]
    assert order.warning is warns and words in order.text and order.text.startswith("smooth: ")
    if n >= 4:
        expected = binomtest(right, n).proportion_ci(method="wilson")
        assert np.allclose(
            [order.figures[name] for name in ("ordered", "low", "high")],
            [right / n, expected.low, expected.high],
        )


def test_length_alone_is_a_baseline_that_must_be_beaten():
    rows, probability = table(30, 27)
    longer = [row | {"reference": row["reference"] + " and more"} for row in rows]
    order = style_notes(prepare_pairs(longer), Fake(lambda text: probability(text.split()[0])))[0]
    assert (
        order.warning
        and "no better than length" in order.text
        and order.figures["ordered_by_length"] == 1
    )
    near = style_notes(
        prepare_pairs(longer[:1] + rows[1:]), Fake(lambda text: probability(text.split()[0]))
    )[0]
    assert not near.warning and "knows this style" in near.text
    mostly = [row if place < 9 else long for place, (row, long) in enumerate(zip(rows, longer))]
    beside = style_notes(prepare_pairs(mostly), Fake(lambda text: probability(text.split()[0])))[0]
    assert (
        not beside.warning
        and "not shown to order these texts better than their length does" in beside.text
    )
    tie = style_notes(prepare_pairs(longer), Fake(lambda text: 0.4 if text[0] == "s" else 0.6))[0]
    assert not tie.warning and "cannot tell whether" in tie.text, (
        "a model that is right everywhere is not accused"
    )


def test_references_of_one_source_count_once_and_ties_half():
    found = pair_order([0.2, 0.2, 0.5, 0.4], [0.6, 0.1, 0.7, 0.4], [-3, -1, -2, 0], [0, 0, 1, 2])
    assert (
        np.isclose(found.share, (0.5 + 1 + 0.5) / 3)
        and found.n == 3
        and np.isclose(found.by_length, 2.5 / 3)
    )
    for n, share in ((1, 1.0), (1, 0.0), (50, 0.5)):
        low, high = wilson_interval(share, n)
        assert 0 <= low <= share <= high <= 1


def test_without_references_it_says_what_could_not_be_checked():
    rows = [
        {key: value for key, value in row.items() if key != "reference"} for row in table(5, 5)[0]
    ]
    order, _ = style_notes(prepare_pairs(rows), Fake(lambda text: 0.5))
    assert (
        not order.warning and "could not be checked" in order.text and "no references" in order.text
    )
    same = [row | {"reference": row["source"]} for row in rows]
    assert (
        "could not be checked" in style_notes(prepare_pairs(same), Fake(lambda text: 0.5))[0].text
    )


def test_confidence_is_compared_with_that_on_validation():
    rows, _ = table(20, 20)
    for value, known, warns, words in (
        (0.99, {"texts": 100, "mean": 0.7, "spread": 0.1}, True, "unlike those"),
        (0.72, {"texts": 100, "mean": 0.7, "spread": 0.1}, False, "alike"),
        (0.99, None, False, "does not say how confident it was"),
    ):
        confidence = style_notes(prepare_pairs(rows), Fake(lambda text: value, known))[1]
        assert confidence.warning is warns and words in confidence.text
    known = {"texts": 100, "mean": 0.7, "spread": 0.1}
    assert not is_far({"texts": 2, "mean": 0.8, "spread": 0.2}, known), "two texts say nothing"
    assert is_far({"texts": 50, "mean": 0.6, "spread": 0.1}, known) and not is_far(
        {"texts": 50, "mean": 0.66, "spread": 0.1}, known
    )


def test_many_sources_are_not_all_looked_at_and_systems_share_theirs():
    rows, probability = table(900, 900)
    fake = Fake(probability)
    order = style_notes(prepare_pairs([*rows, *(row | {"system": "two"} for row in rows)]), fake)[0]
    assert (
        order.figures["pairs"] == MOST
        and len(fake.asked) == 2 * MOST
        and f"{MOST} of 900" in order.text
    )
    first = list(fake.asked)
    style_notes(prepare_pairs(rows), fake)
    assert fake.asked[len(first) :] == first, "the same sources are chosen each time"


def test_two_metrics_share_one_check():
    rows, probability = table(10, 10)
    models = Models({"style": Fake(probability)})
    rows = prepare_pairs(rows)
    assert Sti().review(rows, models) is Cps(strategy="pad").review(rows, models)


def test_styles_have_names():
    assert (
        style_name("neutral") == "neutrality"
        and style_name(["formal", "informal", "formal"]) == "formality/informality"
    )
    assert style_name("house voice") == "house voice"
    rows, probability = table(4, 4)
    result = evaluate(rows, ["sti"], classifier=Fake(probability), n_boot=5)
    assert list(result.headings.values()) == [
        "STI (smooth)",
        "normalised intensity (smooth)",
        "smooth reached",
    ]
    assert "lowest STI (smooth)" in set(result.telling_pairs().reason)


@pytest.fixture(scope="module")
def chance():
    rows, probability = table(20, 10)
    with pytest.warns(ScoreWarning, match="holds one half") as said:
        result = evaluate(rows, ["sti"], classifier=Fake(probability), n_boot=20)
    assert said[0].filename == __file__, "the warning points at the caller's line"
    return result


def test_every_consumer_shows_the_warning(chance):
    notes = chance.notes()
    assert (
        notes.warning.tolist() == [True, False]
        and set(notes.metric) == {"sti"}
        and notes.figures[0]["pairs"] == 20
    )
    content = json.loads(report_files(chance, "json")["report.json"])
    assert [note["warning"] for note in content["notes"]] == [True, False] and content["notes"][0][
        "figures"
    ]["ordered"] == 0.5
    page, markdown, latex = (
        list(report_files(chance, format).values())[-1] for format in ("html", "markdown", "latex")
    )
    assert (
        page.index("holds one half") < page.index('id="scores"') and 'class="note warning"' in page
    )
    assert (
        "> **Warning.** smooth: fake is not shown" in markdown
        and r"\paragraph{Warning} smooth: fake is not shown" in latex
    )
    assert reporting.told_notes(chance)[0].startswith(
        "warning: smooth: fake is not shown"
    ) and reporting.told_notes(chance)[1].startswith("note: ")
    assert "STI (smooth)" in page and "STI (smooth)" in markdown and "STI (smooth)" in latex


def test_notes_of_any_metric_are_shown_and_escaped():
    class Own(Metric):
        name = "own"
        needs = ("output",)
        columns = ("own",)

        def score(self, rows, models=None):
            return Scores({"own": np.ones(len(rows))}, notes=(Note("<b>Odd</b>", warning=True),))

    with pytest.warns(ScoreWarning, match="Odd"):
        result = evaluate([{"source": "a", "output": "b"}], [Own], n_boot=5)
    assert "&lt;b&gt;Odd" in result.render_html() and "<b>Odd" not in result.render_html()


def test_the_cache_of_scores_keeps_headings_and_says_the_notes(tmp_path):
    rows, probability = table(70, 35)
    found = []
    for _ in range(2):
        with pytest.warns(ScoreWarning, match="holds one half"):
            found.append(
                evaluate(
                    rows,
                    ["sti"],
                    classifier=Fake(probability),
                    n_boot=5,
                    score_cache=tmp_path / "scores",
                )
            )
    with pytest.warns(ScoreWarning):
        found.append(evaluate(rows, ["sti"], classifier=Fake(probability), n_boot=5))
    assert all(
        one.headings == found[2].headings and one.notes().equals(found[2].notes()) for one in found
    )


@pytest.mark.parametrize(
    "options, warned",
    [
        ({}, False),
        ({"strategy": "pad"}, True),
        ({"strategy": "pad", "attributions": "lexicon"}, False),
    ],
)
def test_a_mask_made_by_the_style_model_is_reviewed_too(options, warned):
    rows, probability = table(20, 10)
    notes = Cps(**options).review(prepare_pairs(rows), Models({"style": Fake(probability)}))
    assert bool(notes) is warned


def test_the_shipped_model_knows_its_own_pairs_and_not_formality(classifier):
    own = load_pairs("npov_pairs").query("split == 'test'")
    rows = prepare_pairs(
        [{"source": row.source, "output": "x", "reference": row.target} for row in own.itertuples()]
    )
    order, confidence = style_notes(rows, classifier)
    assert (
        not order.warning
        and order.figures["pairs"] == 72
        and order.figures["ordered"] > 0.9
        and not confidence.warning
    )
    assert confidence.figures["validation_texts"] == 354
    wrong = prepare_pairs(
        [
            {"source": row.informal, "output": "x", "reference": row.formal}
            for row in FORMALITY.itertuples()
        ]
    )
    order, _ = style_notes(wrong, classifier)
    assert order.warning and "no better than length" in order.text
    right, _ = style_notes(
        wrong.assign(target_style="formal"), StyleClassifier.load("formality-minilm")
    )
    assert not right.warning and right.figures["ordered"] == 1


@NEEDS_DATA
def test_formality_rewrites_are_chance_for_the_model_of_neutrality():
    from tsteval.tables.lai2022 import load_lai2022

    lai = load_lai2022().drop_duplicates("row")[["source", "output", "reference", "to_formal"]]
    with pytest.warns(
        ScoreWarning,
        match="subjectivity-minilm is not shown to know this style: it orders 47.2% of 53",
    ):
        evaluate(lai, ["sti"], n_boot=5)
    named = lai.assign(target_style=lai.to_formal.map({True: "formal", False: "informal"}))
    with warnings.catch_warnings():
        warnings.simplefilter("error", ScoreWarning)
        result = evaluate(named, ["sti"], n_boot=5, classifier="formality-minilm")
    assert (
        result.notes().figures[0]["ordered"] > 0.9
        and result.headings["sti"] == "STI (formality/informality)"
    )


@NEEDS_DATA
@pytest.mark.ci
def test_the_editors_of_wikipedia_are_ordered_well(classifier):
    pairs = load_pairs("wnc_sample").query("split == 'test'")
    order, confidence = style_notes(
        prepare_pairs(
            pairs.assign(output="x", reference=pairs.target)[["source", "output", "reference"]]
        ),
        classifier,
    )
    assert not order.warning and order.figures["low"] > 0.65 and not confidence.warning


def test_calibration_keeps_the_confidence_and_a_saved_classifier_has_it(classifier, tmp_path):
    sentences = pd.DataFrame(
        {"text": [*FORMALITY.informal, *FORMALITY.formal], "label": [0] * 40 + [1] * 40}
    )
    tuned = calibrate(StyleClassifier.load("formality-minilm"), sentences)
    after = confidence_of(tuned.predict_proba(sentences.text))
    assert (
        tuned.validation["texts"] == 80
        and np.isclose(tuned.validation["mean"], after["mean"], atol=1e-4)
        and tuned.validation != classifier.validation
    )
    head = calibrate(classifier, sentences)
    head.save(tmp_path / "mine")
    again = StyleClassifier.load(tmp_path / "mine")
    assert again.validation == head.validation
    assert (
        f"Mean confidence on the 80 validation texts: {head.validation['mean']:.3f}"
        in (tmp_path / "mine" / "README.md").read_text()
    )
    (tmp_path / "mine" / "style.json").write_text(
        json.dumps(
            json.loads((tmp_path / "mine" / "style.json").read_text())
            | {"validation": {"mean": "high"}}
        )
    )
    with pytest.raises(AssetError, match=r"validation.*style.json"):
        StyleClassifier.load(tmp_path / "mine")


@pytest.mark.parametrize("name", ["subjectivity-minilm", "formality-minilm", "sentiment-minilm"])
def test_cards_of_the_shipped_models_say_how_sure_they_were(name):
    style = json.loads(packaged_path(f"{name}/style.json").read_text())["validation"]
    assert (
        f"{style['texts']:,} validation texts: {style['mean']:.3f} (standard deviation {style['spread']:.3f})"
        in packaged_path(f"{name}/README.md").read_text()
    )


def test_the_confidence_of_the_card_can_be_measured_again(classifier):
    if not os.environ.get("TSTEVAL_DATA"):
        pytest.skip("needs the corpora in TSTEVAL_DATA")
    from tsteval.style import labelled_sentences

    pairs = pd.concat(
        [
            load_pairs(name).query("split == 'validation'")
            for name in ("npov_pairs", "npov_hard", "wnc_sample")
        ],
        ignore_index=True,
    )
    found = confidence_of(classifier.predict_proba(labelled_sentences(pairs).text))
    assert found["texts"] == classifier.validation["texts"] and np.isclose(
        found["mean"], classifier.validation["mean"], atol=1e-4
    )


def test_the_metric_is_still_what_it_was_without_a_table():
    rows, probability = table(20, 10)
    rows = prepare_pairs(rows)
    models = Models({"style": Fake(probability)})
    assert Sti.heading("sti") == "STI"
    assert Sti().review(rows, models) == review_style(rows, models) != ()


# ---- a model of one's own


def order(n, ordered, by_length=0.5):
    return PairOrder(ordered, *wilson_interval(ordered, n), n, by_length)


@pytest.mark.parametrize(
    ("found", "passed"),
    [
        (order(20, 1.0), True),
        (order(19, 1.0), False),  # too few, however right
        (order(20, 0.7), False),  # a coin
        (order(200, 0.9, 0.9), False),  # length
        (order(200, 0.97, 0.9), True),
    ],
)
def test_a_model_of_ones_own_is_a_judge_once_its_check_passes(found, passed):
    assert passes(found) == passed
    assert ("knows the style" in check_sentence(found, "mine")) == passed
    assert ("mine is no judge yet" in check_sentence(found, "mine")) != passed


def test_nothing_is_called_better_by_a_model_that_has_not_passed():
    fake = Fake(lambda text: 0.6 if text[0] == "r" else 0.4)
    few = prepare_pairs([{"source": "sa", "output": "x", "reference": "ra"}], "smooth")
    many = prepare_pairs(
        [{"source": f"s{n:03d}", "output": "x", "reference": f"r{n:03d}"} for n in range(20)],
        "smooth",
    )
    bare = prepare_pairs([{"source": "sa", "output": "x"}], "smooth")
    for check, unfit in ((None, ""), (order(19, 1.0), "has not passed"), (order(20, 1.0), "")):
        fake.check = check and check_record(check)
        for table in (few, bare):
            assert unfit in style_notes(table, fake)[0].unfit
            assert bool(unfit) == bool(style_notes(table, fake)[0].unfit)
        assert not style_notes(many, fake)[0].unfit  # the table's own pairs show it


def test_the_pairs_put_aside_are_counted():
    sentences = pd.DataFrame(
        {
            "text": ["sa", "ra!", "sb", "rb!", "sa", "xc"],
            "label": [0, 1, 0, 1, 0, 1],
            "pair": [0, 0, 1, 1, 2, 2],
        }
    )
    found = order_aside(Fake(lambda text: 0.6 if text[0] == "r" else 0.4), sentences)
    # the two pairs of one source count together: one right, one undecided
    assert (found.n, found.share) == (2, 0.875) and order_aside(None, sentences[:1]).n == 0
