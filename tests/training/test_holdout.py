"""What a file holds, and what is held out of it."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest

from tsteval.core.checks import InputError
from tsteval.training import holdout
from tsteval.training.holdout import open_training_file, plan_run

from .files import pairs_frame, texts_frame, wnc_line


def held_texts(plan, split="validation"):
    return set(plan.held[split].text)


def trained_texts(plan):
    return [text for piece in plan.stream.pieces() for text in piece.text]


def test_pairs_are_never_split_apart_and_the_order_of_rows_does_not_matter(folder):
    plan = plan_run(open_training_file("pairs.csv"), share=0.1)
    assert plan.rows == {"train": 54, "validation": 6} and plan.classes == [54, 54]
    whole = plan_run(open_training_file("pairs.csv"))  # of pairs at least twenty
    assert whole.rows == {"train": 40, "validation": 20}
    plan = whole
    pairs = pairs_frame()
    for source, target in zip(pairs.source, pairs.target):
        assert ({source, target} <= held_texts(plan)) != (
            {source, target} <= set(trained_texts(plan))
        )
    pairs.sample(frac=1, random_state=1).to_csv("shuffled.csv", index=False)
    assert held_texts(plan_run(open_training_file("shuffled.csv"))) == held_texts(plan)
    assert held_texts(plan_run(open_training_file("pairs.csv"), seed=1)) != held_texts(plan)


def test_what_is_held_out_is_not_trained_on(folder):
    """The same text in both splits, as source, target or repeated row, is left out of training and counted."""
    pairs = pairs_frame(20).assign(split="train")
    pairs.loc[:3, "split"], pairs.loc[4:5, "split"] = "validation", "test"
    more = pd.DataFrame(
        {
            "source": [pairs.source[0], "A new one, great.", "Unlike all others, fine."],
            "target": ["The first again.", pairs.target[5], "Unlike all others."],
            "split": "train",
        }
    )
    pd.concat([pairs, more]).to_csv("split.csv", index=False)
    plan = plan_run(open_training_file("split.csv"))
    assert plan.rows == {"train": 15, "validation": 4, "test": 2} and plan.left_out == 2
    assert not set(trained_texts(plan)) & (
        held_texts(plan) | held_texts(plan, "test")
    ) and "Unlike all others." in trained_texts(plan)
    assert plan.stream.sentences == len(trained_texts(plan)) == sum(plan.classes)


def test_every_class_is_held_out_and_weighs_the_same(folder):
    texts = pd.concat(
        [texts_frame(80), texts_frame(100).query("label == 'loud'").tail(8).assign(label="rare")]
    )
    texts.to_json("three.jsonl", orient="records", lines=True)
    opened = open_training_file("three.jsonl")
    assert opened.labels == ("loud", "plain", "rare")
    plan = plan_run(opened)
    assert plan.held["validation"].label.value_counts().to_dict() == {0: 4, 1: 4, 2: 1}
    piece = next(iter(plan.stream.pieces()))
    totals = piece.groupby("label").weight.sum()
    assert np.allclose(totals, totals.mean()) and np.isclose(piece.weight.mean(), 1)
    ordered = open_training_file("three.jsonl", ("rare", "loud", "plain"))
    assert next(ordered.pieces()).label.max() == 2 and next(ordered.pieces()).label.iloc[-1] == 0


def test_controls_are_one_text_of_the_second_style(folder):
    pairs = pd.concat(
        [pairs_frame(20), pd.DataFrame({"source": ["A fact."], "target": ["A fact."]})]
    )
    pairs.to_csv("controls.csv", index=False)
    plan = plan_run(open_training_file("controls.csv"), share=0.05)
    pieces = pd.concat(plan.stream.pieces())
    assert pieces[pieces.text == "A fact."].label.tolist() == [1] and plan.classes == [19, 20]


def peak_of_passes(path):
    tracemalloc.start()
    plan = plan_run(open_training_file(path, piece=250))
    sentences = sum(len(piece) for piece in plan.stream.pieces())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return plan, sentences, peak


@pytest.mark.all
def test_the_full_corpus_is_passed_over_in_flat_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(holdout, "_MOST_HELD", 100)
    peaks = {}
    sizes = {}
    for number in (1_000, 5_000):
        path = tmp_path / f"biased.{number}.train"
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(wnc_line(line, 500) for line in range(number))
        plan, sentences, peaks[number] = peak_of_passes(path)
        assert (
            plan.rows == {"train": number - 100, "validation": 100}
            and sentences == 2 * plan.rows["train"] == plan.stream.sentences
        )
        assert sum(plan.stream.pairs) == plan.rows["train"] and max(plan.stream.pairs) <= 250
        sizes[number] = path.stat().st_size
    # a number a row stays
    assert (
        peaks[5_000] - peaks[1_000] < 0.05 * (sizes[5_000] - sizes[1_000])
        and peaks[5_000] < sizes[5_000] / 10
    )


@pytest.mark.parametrize(
    "variant",
    [
        str.upper,
        str.title,
        lambda text: f"  {text} ",
        lambda text: text.replace(" ", "  "),
        lambda text: text.replace("fi", "\ufb01"),
        lambda text: text.replace(".", "!!"),
        lambda text: f'"{text}"',
    ],
)
def test_a_held_out_text_in_other_letters_is_not_trained_on(folder, variant):
    """On noise, a judge that had seen the capitals of what it was measured on ordered .569 [.512, .622]."""
    texts = pd.DataFrame(
        {
            "text": [f"A fine day {chr(97 + n)}." for n in range(20)],
            "label": ["loud", "plain"] * 10,
            "split": ["validation"] * 4 + ["train"] * 16,
        }
    )
    copies = texts.head(4).assign(text=texts.text.head(4).map(variant), split="train")
    pd.concat([texts, copies]).to_csv("texts.csv", index=False)
    plan = plan_run(open_training_file("texts.csv"))
    assert plan.left_out == 4 and plan.rows == {"train": 16, "validation": 4}
    assert not set(copies.text) & set(trained_texts(plan))


def test_texts_that_are_alike_stay_on_one_side(folder):
    """Twelve texts with random labels, each thirty times with other numbers: a judge learns the texts by heart."""
    nouns = [
        "gate",
        "mill",
        "road",
        "barn",
        "lake",
        "hill",
        "wood",
        "farm",
        "yard",
        "lane",
        "pond",
        "well",
    ]
    rows = [
        {
            "text": f"The {noun} cost {copy}.{copy} {'pounds' + '!' * (copy % 3)}",
            "label": "ab"[place % 2],
        }
        for place, noun in enumerate(nouns)
        for copy in range(30)
    ]
    pd.DataFrame(rows).to_csv("alike.csv", index=False)
    plan = plan_run(open_training_file("alike.csv"), share=0.3)
    assert plan.left_out == 0
    held = {holdout.same_text(text) for text in held_texts(plan)}
    assert held
    assert not held & {holdout.same_text(text) for text in trained_texts(plan)}
    assert len(plan.held["validation"]) == 30 * len(held)
    assert holdout.same_text("In 1,850 it cost 3.50!") == "in 0 it cost 0"
    assert holdout.same_text("?!") == "?!"


def test_labels_in_other_capitals_and_spaces_are_one_and_that_is_said(folder):
    rows = texts_frame(40)
    rows.loc[0, "label"], rows.loc[1, "label"] = "Loud", " loud "
    rows.to_json("labels.jsonl", orient="records", lines=True)
    with pytest.warns(UserWarning, match="count as one: .*'Loud' as 'loud'"):
        opened = open_training_file("labels.jsonl")
    assert opened.labels == ("loud", "plain")
    with pytest.warns(UserWarning, match="count as one"):
        assert open_training_file("labels.jsonl", ["Plain", "Loud"]).labels == ("Plain", "Loud")
    with pytest.raises(InputError, match="different names"):
        open_training_file("labels.jsonl", ["loud", "Loud "])


def test_pairs_of_one_source_stay_on_one_side(folder):
    pairs = pairs_frame(30)
    other = pairs.assign(target=[f"{text} once more {n}" for n, text in enumerate(pairs.target)])
    pd.concat([pairs, other]).to_csv("twice.csv", index=False)
    plan = plan_run(open_training_file("twice.csv"))
    held = held_texts(plan)
    assert plan.left_out == 0 and not held & set(trained_texts(plan))
    assert plan.rows["validation"] == 2 * len(held & set(pairs.source))
