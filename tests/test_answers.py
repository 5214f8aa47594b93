"""Chapter 22: avoided answers, and relevance."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.test_tone import save_tiny_classifier
from tsteval.answers import (
    Anchors,
    Relevance,
    avoided_answer,
    closest_phrases,
    evaluate_avoidance,
    keyword_avoidance,
    load_answers,
    load_question_answers,
    relevance,
    relevance_anchors,
    word_similarity,
)
from tsteval.core.assets import packaged_path
from tsteval.core.checks import InputError
from tsteval.core.files import file_sha256
from tsteval.core.metric import find_metric
from tsteval.models.encoder import WordReader
from tsteval.models.roles import Models
from tsteval.words.english import Phrase


@pytest.fixture(scope="module")
def reader():
    return WordReader.load()


def test_hub_path_reads_two_texts_as_a_pair(tmp_path):
    model, tokenizer = save_tiny_classifier(tmp_path, ["answered", "avoided"])
    questions = ["what is the answer", "what"]
    replies = ["the mill", "doc is up"]
    expected = [
        model(**tokenizer(q, r, return_tensors="pt")).logits[0].double().softmax(0).tolist()[1]
        for q, r in zip(questions, replies)
    ]
    assert np.allclose(avoided_answer(questions, replies, model=str(tmp_path)), expected, atol=1e-6)


def test_answers_are_as_described():
    answers = load_answers()
    assert list(answers.columns) == ["question", "answer", "label", "kind", "domain", "split"]
    assert (answers.split == "train").sum() >= 300 and not answers.duplicated(
        ["question", "answer"]
    ).any()
    assert (
        set(answers.label) == {"avoided", "answered"}
        and (answers.groupby("domain").split.nunique() == 1).all()
    )
    assert answers.groupby("kind").label.nunique().eq(1).all() and answers.kind.nunique() == 11
    assert (
        answers.groupby("domain").label.apply(lambda label: (label == "avoided").mean()) == 0.5
    ).all()
    assert (
        not answers.answer.str.contains("[’“”—]").any()
        and answers.answer.str.strip().eq(answers.answer).all()
    )


def test_held_out_answers_hold_no_question_of_the_training_domains():
    answers = load_answers()
    train, test = (answers[answers.split == split] for split in ("train", "test"))
    assert not set(train.domain) & set(test.domain) and not set(train.question) & set(test.question)
    assert all(
        len(answer.split()) <= 2 for answer in set(train.answer) & set(test.answer)
    )  # "No comment." may recur


def test_card_and_weights_belong_together(making):
    folder = packaged_path("avoided-answer-minilm")
    answers = load_answers()
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert file_sha256(folder / "adapter_model.safetensors") in card
    assert (
        making("avoided_answer_model").answers_sha256(answers[answers.split == "train"]) in card
    ), "the answers changed: train again"
    held_out = answers[answers.split == "test"]
    for name, values in {
        "adapter": avoided_answer(held_out.question, held_out.answer),
        "key words": keyword_avoidance(held_out.answer),
    }.items():
        row = evaluate_avoidance(values, held_out)
        assert f"| {name} | {row['accuracy']:.3f} | {row['auc']:.3f} | {row['n_answers']} |" in card


def test_the_adapter_beats_the_key_words():
    answers = load_answers()
    held_out = answers[answers.split == "test"]
    adapter = evaluate_avoidance(avoided_answer(held_out.question, held_out.answer), held_out)
    words = evaluate_avoidance(keyword_avoidance(held_out.answer), held_out)
    assert adapter["accuracy"] > words["accuracy"] + 0.1 and adapter["auc"] > 0.85


def test_adapter_is_small_and_no_pickle(making):
    folder = packaged_path("avoided-answer-minilm")
    assert sum(path.stat().st_size for path in folder.iterdir()) < 1_000_000
    assert {path.suffix for path in folder.iterdir()} == {".json", ".safetensors", ".md"}
    settings = json.loads((folder / "adapter_config.json").read_text(encoding="utf-8"))
    assert settings["r"] == making("avoided_answer_model").SETTINGS["rank"]
    assert settings["base_model_name_or_path"] == "all-MiniLM-L6-v2"
    assert json.loads((folder / "style.json").read_text(encoding="utf-8"))["labels"] == [
        "avoided",
        "answered",
    ]


def test_score_of_an_answer_does_not_depend_on_its_batch():
    answers = load_answers().head(20)
    together = avoided_answer(answers.question, answers.answer)
    alone = [avoided_answer([q], [a])[0] for q, a in zip(answers.question, answers.answer)]
    assert np.allclose(together, alone, atol=1e-5)
    assert avoided_answer([], []).shape == (0,)


def test_inputs_and_outputs_must_match():
    with pytest.raises(ValueError, match="inputs has 2, outputs has 1"):
        avoided_answer(["a", "b"], ["c"])
    with pytest.raises(TypeError, match="outputs, row 1"):
        avoided_answer(["a", "b"], ["c", None])
    with pytest.raises(TypeError, match="outputs, row 0"):
        keyword_avoidance([None])


@pytest.mark.slow
def test_training_repeats_itself_and_round_trips(tmp_path, making):
    few = load_answers().head(6)
    first, second = (
        making("avoided_answer_model").train(few, epochs=2, batch_size=3, seed=3) for _ in range(2)
    )
    inputs = list(few.question), list(few.answer)
    expected, again = (
        trained.predict_proba(inputs[0], second=inputs[1])[:, 0] for trained in (first, second)
    )
    assert np.array_equal(expected, again)
    first.save(tmp_path)
    assert np.allclose(avoided_answer(*inputs, model=str(tmp_path)), expected, atol=1e-5)


def test_key_words():
    found = keyword_avoidance(
        [
            "I'm sorry, no.",
            "I can’t say.",
            "Ask the baker.",
            "Why do you ask?",
            "At nine.",
            "Cannery Row.",
        ]
    )
    assert found.tolist() == [1, 1, 1, 1, 0, 0]


@pytest.mark.slow
def test_the_pages_answers_come_out_in_its_order():
    answers = [
        "The answer is 42",
        "You should ask the appropriate authorities",
        "As a Large Language Model trained by Open AI, I can not answer this question",
    ]
    assert np.all(np.diff(avoided_answer([""] * 3, answers)) > 0.01)  # the page gives no questions
    for question in ("What is six times seven?", "What is the answer?"):
        given, redirected, refused = avoided_answer([question] * 3, answers)
        assert given < 0.1 and min(redirected, refused) > 0.9


# relevance

SKY = "What is the color of the sky?"
ATTACK = "Where was the first World War II attack in the United States?"


def test_relevance_examples_of_the_page():
    """The page gives 0.81 and 0.84; a scale that saturates gave 1.00 and 0.97."""
    found = relevance([SKY, ATTACK], ["The sky is blue", "Pearl Harbor"])
    assert np.abs(found - [0.81, 0.84]).max() < 0.12
    assert (
        relevance([SKY, ATTACK], ["I bake bread every Friday.", "Whisk four eggs."]) < 0.5
    ).all()


def test_relevance_at_its_edges():
    values = relevance([SKY, "And you?", SKY, SKY], [SKY, "Fine.", "", "And so it is."])
    assert values[0] == 1 and np.isnan(values[1]) and np.isnan(values[2]) and values[3] == 0


def test_an_answer_can_be_read_without_its_question():
    replies = ["It depends.", "At nine.", ""]
    found = avoided_answer(None, replies)
    assert np.array_equal(found, avoided_answer([""] * 3, replies), equal_nan=True) and np.isnan(
        found[2]
    )


def test_relevance_follows_its_definition(reader):
    inputs = ["The old bridge in Vienna collapsed."]
    outputs = ["Engineers in Graz closed two bridges."]
    anchors = Anchors(0, 0.25, 1)
    words, names = (kind[0] for kind in closest_phrases(inputs, outputs, reader))
    # old bridge Vienna collapse; bridges is a bridge
    assert len(words) == 4 and len(names) == 1 and np.isinf(words).sum() == 1
    similar = [np.sqrt(np.clip(found, 0, 1)) for found in (words, names)]
    assert np.isclose(
        relevance(inputs, outputs, anchors=anchors)[0], max(similar[0].mean(), similar[1].min())
    )


def test_relevance_does_not_depend_on_the_batch():
    pairs = load_question_answers().head(6)
    together = relevance(list(pairs.question), list(pairs.answer))
    alone = [
        relevance([question], [answer])[0] for question, answer in zip(pairs.question, pairs.answer)
    ]
    assert np.allclose(together, alone, atol=1e-5)


def test_phrase_vectors_are_means_of_word_pieces(reader):
    text = "The lighthousekeepers wept"
    vector = reader.phrase_vectors([text], [[Phrase(4, 20, "lighthousekeeper")]])[0][0]
    import torch

    encoded = reader.tokenizer(text, return_tensors="pt")
    places = [place for place, word in enumerate(encoded.word_ids()) if word == 1]
    with torch.inference_mode():
        mean = reader.model(**encoded).last_hidden_state[0, places].double().numpy().mean(axis=0)
    assert len(places) > 1 and np.allclose(vector, mean / np.linalg.norm(mean), atol=1e-6)


@given(st.floats(-1, 1), st.floats(-1, 1))
def test_similarity_rises_from_stranger_to_same(first, second):
    anchors = Anchors(0.07, 0.18, 0.82)
    low, high = word_similarity(sorted([first, second]), anchors)
    assert 0 <= low <= high <= 1
    assert np.allclose(
        word_similarity([0.07, 0.18, 0.82, np.inf, -np.inf], anchors), [0, 0.5, 1, 1, 0]
    )


@pytest.mark.parametrize(
    "anchors", [(0.2, 0.1, 0.8), (0.1, 0.9, 0.8), (0.1, 0.1, 0.8), (0.1, 0.2, 2)]
)
def test_anchors_must_rise(anchors):
    with pytest.raises(InputError):
        Anchors(*anchors)


@pytest.mark.slow
def test_the_stored_scale_is_what_the_code_makes(making):
    made = making("property_curves").relevance_scale()
    stored = relevance_anchors()
    assert np.allclose(
        [made["stranger"], made["even"], made["same"]],
        [stored.stranger, stored.even, stored.same],
        atol=1e-3,
    )


def test_questions_are_sound():
    table = load_question_answers()
    assert (
        len(table) == 60
        and table.id.is_unique
        and table.question.is_unique
        and table.question.str.endswith("?").all()
    )


def test_metrics_equal_the_functions_and_sign_their_scale():
    table = pd.DataFrame(
        {"input": [SKY, "Who built it?"], "output": ["The sky is blue", "Anna Berg, in 1871."]}
    )
    for name, function in (("avoided_answer", avoided_answer), ("relevance", relevance)):
        metric = find_metric(name)
        models = Models()
        scores = metric.score(table, models)
        signature = metric.sign(table, models)
        assert metric.needs == ("input", "output") and np.allclose(
            scores.frame[name], function(table.input, table.output), atol=1e-5
        )
        assert name == "avoided_answer" or "en_core_web_sm@e94cbf6c2424" in signature
        assert name == "avoided_answer" or "en_core_web_sm" in models.used
    plain, steep = Relevance(), Relevance(anchors=Anchors(0, 0.25, 1))
    assert "all-MiniLM-L6-v2@53aa51172d14" in plain.sign(table, Models())
    assert "scale:0.0000,0.2500,1.0000" in steep.sign(table, Models())
    assert not np.allclose(
        *(metric.score(table, Models()).frame.relevance for metric in (plain, steep))
    )
