"""The style classifiers: their data, training, calibration and measures, and the two that are shipped."""

import copy
import importlib
import inspect
import json
import math
import os
import pickle
import shutil
import sys
import threading
import tracemalloc
import warnings
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsteval import style
from tsteval.core.assets import AssetError, packaged_path
from tsteval.core.checks import InputError
from tsteval.core.files import file_sha256
from tsteval.models.classifier import short_name
from tsteval.style import (
    LABELS,
    SENTIMENTS,
    StyleClassifier,
    Training,
    balanced_weights,
    calibrate,
    evaluate_classifier,
    expected_calibration_error,
    iterate_wnc,
    labelled_sentences,
    load_pairs,
    load_sentence_polarity,
    load_wiki_npov,
    reliability_bins,
    temper,
    text_sha256,
    train_classifier,
    train_on_sentences,
)
from tsteval.tables import pairs as pairs_module
from tsteval.training import cards
from tsteval.training import loop as training

# runs and cards of what is shipped; there in the repository only
MAKING = Path(__file__).parent.parent / "nbs" / "making"
sys.path.insert(0, str(MAKING))
grid, makers = (importlib.import_module(name) for name in ("grid", "style_classifiers"))
SHIPPED = makers.SHIPPED
SENTIMENT = makers.SENTIMENT

TEXTS = [
    "The stunning bridge opened in 1932.",
    "The bridge opened in 1932.",
    "",
    "😀 <b>x</b> \ud83d",
    "[PAD] [CLS] text",
]
NEEDS_WNC = "needs the WNC sample: run `tsteval fetch wnc_sample`, then set TSTEVAL_DATA"
PAIRS = load_pairs()
EDITED = PAIRS[PAIRS.source != PAIRS.target]


# The classifier ------------------------------------------------------------------------------------------------------


def test_labels_and_probabilities(classifier):
    assert classifier.labels == LABELS
    probabilities = classifier.predict_proba(TEXTS)
    assert probabilities.shape == (len(TEXTS), 2) and np.allclose(probabilities.sum(axis=1), 1)
    assert probabilities[0, 0] > probabilities[1, 0]
    assert classifier.predict_proba([]).shape == (0, 2)


@pytest.mark.parametrize(
    "setting, message",
    [
        ({"learning_rate": 0.0}, "learning_rate must be a number above 0"),
        ({"learning_rate": -1e-3}, "learning_rate"),
        ({"patience": 0}, "patience must be a whole number of at least 1"),
        ({"epochs": 1.5}, "epochs must be a whole number"),
        ({"mask_share": 1.0}, "mask_share must be a number of at least 0 and below 1"),
        ({"hidden_dropout": -0.1}, "hidden_dropout"),
        ({"ranking_weight": -1}, "ranking_weight must be a number of at least 0"),
    ],
)
def test_settings_out_of_range(setting, message):
    with pytest.raises(ValueError, match=message):
        Training(**setting)


def test_a_batch_size_below_one_is_refused(classifier):
    for batch_size in (0, -1):
        with pytest.raises(ValueError, match="batch_size"):
            classifier.predict_proba(["a text"], batch_size=batch_size)


def test_scores_do_not_depend_on_the_batch(classifier):
    texts = [*TEXTS, *load_pairs().source[:20], TEXTS[0]]
    together = classifier.predict_proba(texts, batch_size=7)
    alone = np.vstack([classifier.predict_proba([text]) for text in texts])
    assert np.allclose(together, alone, atol=1e-5) and np.array_equal(together[0], together[-1])


def test_same_probabilities_as_a_pipeline_of_transformers(classifier):
    from transformers import pipeline

    texts = list(PAIRS.source[:12])
    peer = pipeline("text-classification", model=classifier.model, tokenizer=classifier.tokenizer)
    expected = [{row["label"]: row["score"] for row in rows} for rows in peer(texts, top_k=None)]
    found = classifier.predict_proba(texts)
    assert np.allclose(
        found, [[row[label] for label in classifier.labels] for row in expected], atol=1e-4
    )


def test_long_texts_are_cut_and_it_is_said_once(classifier):
    long = [f"{word} " * 20_000 for word in ("word", "text")]
    assert min(map(len, long)) >= 100_000
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        probabilities = classifier.predict_proba([long[0], "short", long[1]], batch_size=1)
    assert np.isfinite(probabilities).all()
    assert [str(w.message) for w in caught] == [
        f"2 of 3 texts cut at 512 tokens, the limit of {classifier.name}"
    ]


def test_a_text_of_exactly_the_limit_is_not_called_cut(classifier):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        classifier.predict_proba(["word " * 510])
    with pytest.warns(UserWarning, match="1 of 1 texts cut"):
        classifier.predict_proba(["word " * 511])


@pytest.mark.parametrize(
    "bad, row",
    [
        (["fine", None], r"texts, row 1"),
        ([1.0], "row 0"),
        ("one string", "list of strings"),
        (None, "got None"),
        (pd.DataFrame({"text": ["a"]}), "a DataFrame; choose one of its columns"),
        ({"a": 1}, "a dict"),
        ({"a"}, "set"),
    ],
)
def test_not_a_list_of_strings(classifier, bad, row):
    for call in (classifier.predict_proba, classifier.predict_logits):
        with pytest.raises(TypeError, match=row):
            call(bad)
    if bad is not None:  # which means here that there are no second texts
        with pytest.raises(TypeError, match=row.replace("texts", "second")):
            classifier.predict_proba(["a", "b"], bad)


def test_texts_may_come_from_anything_that_holds_strings(classifier):
    texts = ["a grand pier", "a pier"]
    expected = classifier.predict_proba(texts)
    for same in (
        map(str, texts),
        (text for text in texts),
        tuple(texts),
        np.array(texts),
        pd.Series(texts, index=[7, 3]),
    ):
        assert np.array_equal(classifier.predict_proba(same), expected)
    assert list(inspect.signature(classifier.predict_proba).parameters) == [
        "texts",
        "second",
        "batch_size",
        "progress",
    ]


@pytest.mark.all
def test_four_threads_score_as_one_does(classifier):
    """The mean over tokens once used the mask of whichever thread had come last."""
    texts = [
        ["Short.", "A text that is rather longer."],
        ["word " * 12, "a"],
        ["One.", "Two words."],
        ["Yes.", "a b c d e f g"],
    ]
    expected = [classifier.predict_proba(rows) for rows in texts]
    wrong = []

    def score(turn):
        for call in range(200):
            place = (turn + call) % len(texts)
            if not np.array_equal(classifier.predict_proba(texts[place]), expected[place]):
                wrong.append((turn, call))

    threads = [threading.Thread(target=score, args=(turn,)) for turn in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_copy_pools_by_its_own_mask(classifier):
    """Two copies of one module, called in turn: hooks must not share what they remember."""
    other = copy.deepcopy(classifier)
    assert other.model is not classifier.model
    assert np.allclose(other.predict_proba(TEXTS), classifier.predict_proba(TEXTS), atol=1e-6)


def test_pickled_by_name_and_hash(classifier):
    letter = pickle.dumps(classifier)
    assert len(letter) < 4_000
    again = pickle.loads(letter)
    assert (
        np.array_equal(again.predict_proba(TEXTS), classifier.predict_proba(TEXTS))
        and again.tag == classifier.tag
    )
    assert again.temperature == classifier.temperature
    with pytest.raises(pickle.PicklingError, match="save it"):
        pickle.dumps(
            classifier.own().__class__(classifier.own().model, classifier.tokenizer, "mine")
        )


def test_a_model_without_a_head_is_refused():
    for name in ("SmolLM2-135M-Instruct", "all-MiniLM-L6-v2"):
        with pytest.raises(AssetError, match="lacks weights"):
            StyleClassifier.load(name)


def test_adapter_without_its_labels_or_as_a_pickle_is_refused(tmp_path):
    folder = tmp_path / "adapter"
    shutil.copytree(packaged_path("sentiment-minilm"), folder)
    (folder / "style.json").unlink()
    with pytest.raises(AssetError, match=r"style.json is missing"):
        StyleClassifier.load(folder)
    (folder / "style.json").write_text('{"labels": ["a", "b"], "temperature": 1.0}')
    with pytest.raises(AssetError, match=r"'pooling' in .*style.json should hold a str"):
        StyleClassifier.load(folder)
    (folder / "style.json").write_text(
        '{"labels": ["a", "b"], "pooling": "cls", "temperature": 1.0}'
    )
    (folder / "adapter_model.safetensors").rename(folder / "adapter_model.bin")
    with pytest.raises(AssetError, match="cannot be read"):
        StyleClassifier.load(folder)


# What is shipped -----------------------------------------------------------------------------------------------------


def test_ranks_the_embedded_test_pairs(classifier):
    assert (
        evaluate_classifier(classifier, PAIRS.query("split == 'test'"))["pairwise_accuracy"] >= 0.8
    )


@pytest.mark.ci
def test_weights_and_card_belong_together(classifier):
    folder = packaged_path("subjectivity-minilm")
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert file_sha256(folder / "head.safetensors") in card
    assert text_sha256(makers.training_text()) in card, (
        "the teaching pairs changed: train the classifier again"
    )
    for name in makers.OWN:
        for split in ("validation", "test"):
            pairs = makers.split_of(split, load_pairs(name))
            row = {
                "pairs": name,
                "split": split,
                **evaluate_classifier(classifier, pairs),
                **makers.interval(classifier, pairs),
            }
            assert cards.markdown_table([row]).splitlines()[-1] in card


@pytest.mark.parametrize("name", ["subjectivity-mpnet", "formality-mpnet"])
def test_larger_judges_are_heads_whose_cards_name_their_weights(name):
    folder = packaged_path(name)
    assert file_sha256(folder / "head.safetensors") in (folder / "README.md").read_text(
        encoding="utf-8"
    )
    assert (
        json.loads((folder / "adapter_config.json").read_text())["base_model_name_or_path"]
        == "all-mpnet-base-v2"
    )
    assert (folder / "head.safetensors").stat().st_size < 100_000


@pytest.mark.ci
def test_four_of_five_held_out_controls_are_left_neutral(classifier):
    """Facts with strong words, and opinions with a holder: 125 sentences of which the classifier has seen none like
    them."""
    held_out = pd.concat(
        [
            makers.split_of(split, load_pairs(name))
            for name in makers.OWN
            for split in ("validation", "test")
        ]
    )
    found = evaluate_classifier(classifier, held_out)
    assert found["n_controls"] == 150 and found["control_accuracy"] >= 0.75


@pytest.mark.parametrize(
    "name, made_with, weights",
    [
        ("subjectivity-minilm", SHIPPED, "head.safetensors"),
        ("sentiment-minilm", SENTIMENT, "adapter_model.safetensors"),
    ],
)
def test_what_is_shipped_matches_the_training_code(name, made_with, weights):
    folder = packaged_path(name)
    adapter = json.loads((folder / "adapter_config.json").read_text(encoding="utf-8"))
    assert adapter["base_model_name_or_path"] == made_with.base
    if made_with.method == "lora":
        assert adapter["r"] == made_with.rank and set(adapter["target_modules"]) == set(
            made_with.modules
        )
    card = (folder / "README.md").read_text(encoding="utf-8")
    style_file = json.loads((folder / "style.json").read_text())
    # a card may be older than a setting
    said = {key: value for key, value in asdict(made_with).items() if f"{key} " in card}
    assert (
        said
        and all(f"{key} {value}" in card for key, value in said.items())
        and style_file["pooling"] == made_with.pooling
    )
    assert f"{style_file['temperature']:.3f}" in card
    assert (folder / weights).stat().st_size < (1_000_000 if made_with.method == "lora" else 25_000)
    assert not [path for path in folder.iterdir() if path.suffix in (".bin", ".pt", ".pkl")]


@pytest.mark.all
def test_the_shipped_head_can_be_made_again(classifier, tmp_path):
    """The minimum is one, so the script gives the same probabilities, not just as good ones."""
    if not os.environ.get("TSTEVAL_DATA"):
        pytest.skip(NEEDS_WNC)
    makers.make_subjectivity(tmp_path / "subjectivity-minilm")
    texts = [*EDITED.source.head(100), *EDITED.target.head(100)]
    assert np.allclose(
        StyleClassifier.load(str(tmp_path / "subjectivity-minilm")).predict_proba(texts),
        classifier.predict_proba(texts),
        atol=1e-3,
    )


@pytest.mark.ci
def test_wnc_figures_of_the_card(classifier):
    if not os.environ.get("TSTEVAL_DATA"):
        pytest.skip(NEEDS_WNC)
    pairs = load_pairs("wnc_sample")
    assert pairs.split.value_counts().to_dict() == {"train": 720, "test": 200, "validation": 80}
    result = evaluate_classifier(classifier, pairs[pairs.split == "test"])
    result |= makers.interval(classifier, pairs[pairs.split == "test"])
    row = cards.markdown_table([{"pairs": "wnc_sample", "split": "test", **result}]).splitlines()[
        -1
    ]
    assert row in packaged_path("subjectivity-minilm/README.md").read_text(encoding="utf-8")


def test_sentiment_adapter():
    sentiment = StyleClassifier.load("sentiment-minilm")
    card = packaged_path("sentiment-minilm/README.md").read_text(encoding="utf-8")
    assert sentiment.labels == SENTIMENTS and sentiment.temperature != 1
    assert file_sha256(packaged_path("sentiment-minilm/adapter_model.safetensors")) in card
    texts = [
        "A joy from the first scene to the last.",
        "A dull and lazy film.",
        "I loved every minute.",
        "What a waste of time.",
    ]
    assert (sentiment.predict_proba(texts).argmax(axis=1) == [1, 0, 1, 0]).all()


def test_sentence_polarity():
    try:
        sentences = load_sentence_polarity()
    except AssetError as error:
        assert "nltk.download" in str(error)
        pytest.skip(str(error))
    assert 10_500 < len(sentences) <= 10_662 and sentences.text.is_unique
    shares = sentences.split.value_counts(normalize=True).round(2)
    assert shares.to_dict() == {"train": 0.7, "test": 0.2, "validation": 0.1}
    assert abs(sentences.label.mean() - 0.5) < 0.01


# Data ----------------------------------------------------------------------------------------------------------------


def wnc_line(number, columns=7):
    text = f"This grand sentence has the number {number} ."
    target = f"This sentence has the number {number} ."
    fields = [str(number), text.lower(), target.lower(), text, target, "DET " * 8, "x " * 8]
    return "\t".join(fields[:columns]) + "\n"


@pytest.mark.ci
def test_full_wnc_is_streamed(tmp_path):
    """180,000 rows in pieces: the memory at any time is that of a piece, not that of the file."""
    path = tmp_path / "biased.full.train"
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(wnc_line(number, 7 if number % 3 else 5) for number in range(180_000))
    tracemalloc.start()
    rows = sum(len(piece) for piece in iterate_wnc(path, chunk_size=2_000))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert rows == 180_000
    assert peak < 6e6 < path.stat().st_size / 4
    pairs = load_pairs(str(path), limit=25_000)
    assert len(pairs) == 25_000 and list(pairs.columns) == ["rev_id", "source", "target", "split"]
    assert pairs.source[24_999] == "This grand sentence has the number 24999 ." and set(
        pairs.split
    ) == {"train"}


@pytest.mark.parametrize("chunk_size", [0, -1, 1.5, None])
def test_a_piece_holds_at_least_one_pair(tmp_path, chunk_size):
    """With 0 the reader once gave empty pieces without end. It is refused at the call, not at the first piece."""
    path = tmp_path / "biased.word.train"
    path.write_text(wnc_line(1), encoding="utf-8")
    with pytest.raises(InputError, match="chunk_size"):
        iterate_wnc(path, chunk_size=chunk_size)
    with pytest.raises(InputError, match="limit"):
        iterate_wnc(path, limit=-1)


def test_full_wnc_header_split_and_errors(tmp_path):
    path = tmp_path / "biased.word.dev"
    header = "\t".join(pairs_module.WNC_COLUMNS) + "\n"
    path.write_text(header + wnc_line(1) + wnc_line(2, 5) + "3\tbroken\n", encoding="utf-8")
    assert load_pairs(str(path), limit=2).rev_id.tolist() == ["1", "2"]
    assert set(load_pairs(str(path), limit=2).split) == {"validation"}
    with pytest.raises(
        ValueError, match=r"biased.word.dev.* line 4: expected 5 or 7 tab-separated columns, got 2"
    ):
        load_pairs(str(path))
    path.write_text("1\ta\tb\t \tb\n", encoding="utf-8")
    with pytest.raises(ValueError, match="line 1: src_raw or tgt_raw is empty"):
        load_pairs(str(path))
    path.write_text("", encoding="utf-8")
    assert load_pairs(str(path)).columns.tolist() == ["rev_id", "source", "target", "split"]


def test_csv_pairs(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text("source,target\nA great null.,NA\nb,c\n", encoding="utf-8")
    assert load_pairs(str(path)).target[0] == "NA" and len(load_pairs(str(path), limit=1)) == 1
    path.write_text("source,goal\na,b\n", encoding="utf-8")
    with pytest.raises(ValueError, match="no column target"):
        load_pairs(str(path))
    path.write_text("source,target\na,b\nc,\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"target, row 1: the text is empty"):
        load_pairs(str(path))


def test_labelled_sentences():
    sentences = labelled_sentences(PAIRS)
    assert len(sentences) == len(PAIRS) + len(EDITED)
    assert np.allclose(sentences.groupby("label").weight.sum(), len(sentences) / 2)
    controls = sentences[sentences.pair.isin(np.flatnonzero(PAIRS.source == PAIRS.target))]
    assert (controls.label == 1).all() and controls.pair.is_unique
    for pair, group in list(sentences.groupby("pair"))[:50]:
        assert group.text.tolist() in (
            [PAIRS.source[pair], PAIRS.target[pair]],
            [PAIRS.target[pair]],
        )


def test_a_control_counts_as_often_as_is_said():
    """By pencil: two pairs and one control that counts three times; the neutral class has the shares 1, 1 and 3."""
    pairs = pd.DataFrame(
        {
            "source": ["A fine day.", "A fact.", "A great pier."],
            "target": ["A day.", "A fact.", "A pier."],
        }
    )
    sentences = labelled_sentences(pairs, 3.0)
    assert sentences.text.tolist() == [
        "A fine day.",
        "A day.",
        "A fact.",
        "A great pier.",
        "A pier.",
    ]
    assert np.allclose(
        sentences.weight, [1.25, 0.5, 1.5, 1.25, 0.5]
    ) and sentences.pair.tolist() == [0, 0, 1, 2, 2]
    for weight in (1.0, 0.5, 5.0):
        weighed = labelled_sentences(PAIRS, weight)
        assert np.allclose(weighed.groupby("label").weight.sum(), len(weighed) / 2)
        control = weighed.pair.isin(np.flatnonzero(PAIRS.source == PAIRS.target))
        of_class = weighed[weighed.label == 1].weight
        assert np.allclose(of_class[control].to_numpy(), weight * of_class[~control].iloc[0])
    assert np.allclose(labelled_sentences(pairs, 1).weight, balanced_weights([0, 1, 1, 0, 1]))
    assert labelled_sentences(pairs.iloc[[1]], 4.0).weight.tolist() == [1] and labelled_sentences(
        pairs.iloc[[0]], 4.0
    ).weight.tolist() == [1, 1]
    for wrong in (0, -1, math.nan, "2"):
        with pytest.raises(InputError, match="control_weight"):
            labelled_sentences(pairs, wrong)


@pytest.fixture
def wiki_npov(tmp_path, monkeypatch):
    """A corpus of the same form, since the sentences of the real one may not be written down here."""
    folder = tmp_path / "wiki_npov"
    folder.mkdir()
    (folder / "statements_biased").write_text(
        "A grand old pier .\n\n  A sad tale .  \nBoth call it so .\n", encoding="utf-8"
    )
    (folder / "statements_neutral_cw-hard").write_text(
        "A pier .\nBoth call it so .\nA pier .\nA tale .\n", encoding="utf-8"
    )
    (folder / "statements_neutral_featured").write_bytes(
        "A caf\u00e9 .\n".encode() + b"A caf\xe9 too .\n"
    )
    monkeypatch.setenv("TSTEVAL_DATA", str(tmp_path))
    return folder


def test_wiki_npov(wiki_npov):
    """A text under both labels, or written down twice, says nothing sure and is left out."""
    sentences = load_wiki_npov()
    assert sentences.columns.tolist() == ["text", "label"] and sentences.text.is_unique
    assert sentences.to_numpy().tolist() == [
        ["A grand old pier .", 0],
        ["A sad tale .", 0],
        ["A tale .", 1],
    ]
    assert load_wiki_npov("featured").query("label == 1").text.tolist() == [
        "A caf\u00e9 .",
        "A caf\ufffd too .",
    ]
    with pytest.raises(InputError, match="neutral must be one of cw-hard, type_balanced, featured"):
        load_wiki_npov("easy")


def test_wiki_npov_that_is_not_there(tmp_path, monkeypatch):
    monkeypatch.setenv("TSTEVAL_DATA", str(tmp_path))
    monkeypatch.setenv("TSTEVAL_CACHE", str(tmp_path / "cache"))
    with pytest.raises(AssetError, match="wiki_npov"):
        load_wiki_npov()


def test_wiki_npov_as_its_makers_publish_it():
    try:
        sentences = load_wiki_npov()
    except AssetError as error:
        pytest.skip(str(error))
    counts = sentences.label.value_counts()
    assert sentences.text.is_unique and 1_800 < counts[0] < 1_850 and 3_000 < counts[1] < 3_150
    assert len(load_wiki_npov("type_balanced")) < len(sentences) < len(load_wiki_npov("featured"))


@given(st.lists(st.integers(0, 4), max_size=40))
def test_weights_balance_any_classes(labels):
    weights = balanced_weights(labels)
    totals = pd.Series(weights).groupby(np.array(labels, dtype=int)).sum()
    assert len(weights) == len(labels) and (not labels or np.isclose(weights.mean(), 1))
    assert np.allclose(totals, totals.mean())


def test_removed_words_are_those_of_single_edits_by_part_of_speech():
    pairs = pd.DataFrame(
        {
            "source": ["The lovely pier opened in 1900.", "The lovely pier sadly closed in 1990."],
            "target": ["The pier opened in 1900.", "The pier closed in 1990."],
        }
    )
    assert style.removed_words(pairs).to_dict() == {
        ("ADJ", "lovely"): 1
    }  # the second pair has two edits
    words = style.source_words(pairs)
    assert words.word[words.removed].tolist() == ["lovely", "lovely", "sadly"] and set(
        words.edits
    ) == {1, 2}
    assert style.removed_words(pairs.assign(target=pairs.source)).empty


def test_parts_of_speech():
    pytest.importorskip("spacy", reason="needs spaCy: pip install 'tsteval[properties]'")
    pairs = pd.DataFrame(
        {
            "source": ["The lovely harbour opened.", "The old harbour stayed shut."],
            "target": ["The harbour opened.", "The old harbour stayed shut."],
        }
    )
    table = style.parts_of_speech(pairs)
    assert (
        table.removed.to_dict()["ADJ"] == 1 and table.removed.sum() == 1 and table["all"].sum() == 9
    )
    assert np.isclose(table.lift["ADJ"], table.removed_share["ADJ"] / table.all_share["ADJ"])


# Training ------------------------------------------------------------------------------------------------------------

FEW = EDITED[EDITED.split == "train"].head(6)


def test_full_training_changes_the_encoder_and_round_trips(tmp_path):
    full = train_classifier(FEW, method="full", epochs=1, batch_size=6)
    assert all(weight.requires_grad for weight in full.model.parameters())
    full.save(tmp_path)
    loaded = StyleClassifier.load(str(tmp_path))
    assert loaded.labels == LABELS
    assert np.allclose(loaded.predict_proba(TEXTS), full.predict_proba(TEXTS), atol=1e-5)


def test_mean_pooling_is_the_mean_of_the_tokens_that_are_no_padding(tmp_path):
    import torch

    pooled = train_classifier(FEW, pooling="mean", epochs=1, batch_size=6)
    pooled.save(tmp_path)
    loaded = StyleClassifier.load(str(tmp_path))
    encoded = loaded.tokenizer(
        ["A short text.", "A text that is rather longer than the other one."],
        padding=True,
        return_tensors="pt",
    )
    with torch.no_grad():
        hidden = loaded.model.bert(**encoded).last_hidden_state
        means = [
            row[mask.bool()].mean(dim=0) for row, mask in zip(hidden, encoded["attention_mask"])
        ]
        expected = loaded.model.classifier(torch.stack(means))
        assert torch.allclose(loaded.model(**encoded).logits, expected, atol=1e-5)
        alone = loaded.tokenizer(["A short text."], return_tensors="pt")["input_ids"]
        assert torch.allclose(loaded.model(input_ids=alone).logits, expected[:1], atol=1e-5)
    assert np.allclose(loaded.predict_proba(TEXTS), pooled.predict_proba(TEXTS), atol=1e-5)


def test_mean_pooling_needs_no_pooling_layer(other_encoders, tmp_path):
    pooled = train_classifier(
        FEW,
        base=other_encoders["distilbert"],
        pooling="mean",
        method="full",
        epochs=1,
        batch_size=6,
    )
    pooled.save(tmp_path)
    assert np.allclose(
        StyleClassifier.load(str(tmp_path)).predict_proba(TEXTS),
        pooled.predict_proba(TEXTS),
        atol=1e-5,
    )


@pytest.mark.parametrize("name", ["distilbert", "electra", "roberta"])
def test_any_encoder_can_be_trained_in_full_and_calibrated(other_encoders, name, tmp_path):
    trained = train_classifier(
        FEW, base=other_encoders[name], method="full", epochs=2, batch_size=3
    )
    before = trained.predict_proba(TEXTS)
    tuned = calibrate(trained, labelled_sentences(FEW))
    assert np.allclose(tuned.predict_proba(TEXTS), temper(before, tuned.temperature), atol=1e-5)
    assert np.array_equal(trained.predict_proba(TEXTS), before) and trained.temperature == 1
    tuned.save(tmp_path)
    loaded = StyleClassifier.load(str(tmp_path))
    assert np.allclose(loaded.predict_proba(TEXTS), tuned.predict_proba(TEXTS), atol=1e-5)


def test_pairs_of_texts(classifier):
    """A second text is scored as transformers' tokenizer joins the two, each pair on its own."""
    import torch

    first = ["Who built it?", "Who built it?", "When?"]
    second = ["A mason.", "Nobody knows.", ""]
    found = classifier.predict_proba(first, second=second)
    for row, pair in enumerate(zip(first, second)):
        with torch.inference_mode():
            alone = classifier.model(
                **classifier.tokenizer(*([text] for text in pair), return_tensors="pt")
            ).logits.softmax(dim=1)
        assert np.allclose(found[row], alone[0].numpy(), atol=1e-5)
    with pytest.raises(ValueError, match="texts has 3, second has 2"):
        classifier.predict_proba(first, second=second[:2])


def test_a_saved_classifier_has_a_card_without_placeholders_and_paths(tmp_path):
    base = tmp_path / "an_encoder"
    fresh = StyleClassifier(*training.base_model("all-MiniLM-L6-v2", LABELS), "fresh")
    fresh.save(base)
    trained = train_classifier(FEW, base=str(base), epochs=1, batch_size=6)
    trained.save(tmp_path / "mine")
    card = (tmp_path / "mine" / "README.md").read_text(encoding="utf-8")
    assert (
        str(tmp_path) not in card
        and "ore information" not in card.lower()
        and "base an_encoder, method lora" in card
    )
    assert file_sha256(tmp_path / "mine" / "adapter_model.safetensors") in card
    assert (
        str(tmp_path) not in trained.name
        and short_name(base) == "an_encoder"
        and short_name("a/b") == "a/b"
    )
    assert "More" not in (base / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: train_classifier(PAIRS.head(0)), ValueError, "no sentences to train on"),
        (lambda: train_classifier(FEW, method="half"), ValueError, "one of head, lora, full"),
        (lambda: train_classifier(FEW, epochs=0), ValueError, "at least 1"),
        (lambda: train_classifier(FEW, label_smoothing=1.5), ValueError, "label_smoothing"),
        (lambda: train_classifier(FEW, patience=1), ValueError, "needs validation"),
        (lambda: train_classifier(FEW, learning=1), TypeError, "learning"),
        (lambda: train_classifier(FEW, pooling="max"), ValueError, "one of cls, mean"),
        (
            lambda: train_on_sentences(
                pd.DataFrame({"text": ["a", "b"], "label": [0, 2]}), SENTIMENTS
            ),
            ValueError,
            r"sentences, row 1\b.*: expected a label",
        ),
        (
            lambda: train_on_sentences(
                pd.DataFrame({"text": ["a", None], "label": [0, 1]}), SENTIMENTS
            ),
            TypeError,
            "row 1",
        ),
    ],
)
def test_what_cannot_be_trained_is_refused_before_a_model_is_loaded(
    call, error, message, monkeypatch
):
    monkeypatch.setattr(training, "base_model", lambda *_: pytest.fail("a model was loaded"))
    with pytest.raises(error, match=message):
        call()


def test_a_search_goes_on_where_it_stopped(tmp_path, other_encoders, monkeypatch):
    values = {
        "base": [other_encoders["electra"]],
        "method": ["full"],
        "epochs": [1],
        "batch_size": [2, 3],
        "shuffle": [True, False],
    }
    runs = []
    train = grid.train_classifier

    def counted(*arguments, **options):
        if len(runs) == 3:
            raise KeyboardInterrupt
        runs.append(options)
        return train(*arguments, **options)

    monkeypatch.setattr(grid, "train_classifier", counted)
    with pytest.raises(KeyboardInterrupt):
        grid.search_grid(FEW, FEW, values, tmp_path, progress=False)
    path = tmp_path / "runs.jsonl"
    whole = path.read_text()
    assert whole.count("\n") == 3
    path.write_text(whole[:-20])  # as if the machine had gone down while the third line was written
    monkeypatch.setattr(grid, "train_classifier", train)
    table = grid.search_grid(FEW, FEW, values, tmp_path, progress=False)
    assert (
        len(table) == 4
        and path.read_text().count("\n") == 4
        and path.read_text().startswith(whole.splitlines()[0])
    )
    assert (
        table[["batch_size", "shuffle"]].drop_duplicates().shape == (4, 2)
        and table.accuracy.between(0, 1).all()
    )
    monkeypatch.setattr(
        grid, "train_classifier", lambda *_, **__: pytest.fail("a finished run was repeated")
    )
    pd.testing.assert_frame_equal(
        grid.search_grid(FEW, FEW, values, tmp_path, progress=False), table
    )


def test_a_search_refuses_a_misspelt_setting_at_once(tmp_path):
    with pytest.raises(TypeError, match="rnk"):
        grid.search_grid(FEW, FEW, {"rnk": [1]}, tmp_path)
    assert not list(Path(tmp_path).iterdir())


# Calibration ---------------------------------------------------------------------------------------------------------

# Measures ------------------------------------------------------------------------------------------------------------


def test_figures_have_named_axes():
    pairs = EDITED.head(30)
    scored = pd.DataFrame(
        {"text": pairs.source, "pair": range(30), "label": 0, "predicted": 0, "probability": 0.6}
    )
    both = pd.concat([scored, scored.assign(label=1, probability=0.4)], ignore_index=True)
    table = reliability_bins(np.tile([0.8, 0.2], (5, 1)), [0, 0, 0, 0, 1])
    marks = style.plot_pairs(both, LABELS)
    diagrams = style.plot_reliability({"before": table, "after": table})
    axes = marks.axes[0]
    assert axes.get_ylabel() == "probability of subjective: source (subjective)"
    assert axes.get_xlabel() == "probability of subjective: target (neutral)"
    assert "right order (30)" in axes.get_title() and "not (0)" in axes.get_title()
    assert [text.get_text() for text in axes.texts] == ["30 pairs", "0 pairs", "0 pairs", "0 pairs"]
    circles, squares = axes.lines[-2:]
    assert np.allclose(circles.get_xydata(), [[0.4, 0.6]] * 30) and len(squares.get_xydata()) == 0
    assert (
        diagrams.axes[0].get_ylabel() == "accuracy of the bin"
        and diagrams.axes[1].get_xlabel() == "mean confidence of a bin"
    )
    assert diagrams.axes[0].get_title() == f"before: ECE {expected_calibration_error(table):.3f}"


def test_real_edits_under_the_classifiers_of_the_chapter():
    """nbs/making/style_edits.py: order, labels, and what is left of the order where the text did not get shorter."""
    table = pd.read_csv(packaged_path("style_edits.csv"))
    assert len(table) == 915 and table.edit.is_unique and table.notna().all().all()

    def order(name, rows):
        source, target = (rows[f"{name}_{side}"] for side in ("source", "target"))
        return np.mean(0.5 + 0.5 * np.sign(source - target))

    longer = table[table.longer_target >= table.longer_source]
    assert order("all_ranked", table) > order("longer", table) > order("bag", table)
    assert order("last", longer) > order("all_ranked", longer)
    source, target = table.shipped_source.to_numpy(), table.shipped_target.to_numpy()
    cuts = np.linspace(-4, 4, 81)
    labels = [(np.mean(source > cut) + np.mean(target <= cut)) / 2 for cut in cuts]
    assert max(labels) < 0.65 < order("shipped", table)
    labels = {
        name: np.mean([table[f"{name}_source"] > 0, table[f"{name}_target"] <= 0])
        for name in ("shipped", "fine_tuned", "all_ranked", "last")
    }
    assert max(labels, key=labels.get) == "fine_tuned"  # and by order it is far behind
    assert order("fine_tuned", table) < order("all_ranked", table)


def test_words_that_editors_took_out():
    table = pd.read_csv(packaged_path("style_words.csv"), keep_default_na=False)
    assert (table.removed <= table["all"]).all() and set(table["set"]) == {"real", "written"}
    assert not table.word.str.contains(" ").any()  # single words, no sentences
