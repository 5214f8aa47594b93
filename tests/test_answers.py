"""Chapter 22: avoided answers, and relevance."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.test_tone import save_tiny_classifier
from tsteval.answers import (
    FIRST_WORDS,
    Anchors,
    Relevance,
    avoided_answer,
    beginning,
    closest_phrases,
    evaluate_avoidance,
    keyword_avoidance,
    load_answers,
    load_question_answers,
    relevance,
    relevance_anchors,
    without_courtesies,
    word_similarity,
)
from tsteval.core.assets import AssetError, packaged_path
from tsteval.core.checks import InputError, InputTypeError
from tsteval.core.files import file_sha256
from tsteval.core.metric import find_metric
from tsteval.cps import cosine
from tsteval.models.classifier import StyleClassifier
from tsteval.models.encoder import WordReader
from tsteval.models.roles import Models
from tsteval.tables.rated_sets import same_tables
from tsteval.tables.ratings import load_ratings
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


@pytest.fixture(scope="module")
def model():
    return StyleClassifier.load("avoided-answer-minilm")


def test_card_and_weights_belong_together(making):
    folder = packaged_path("avoided-answer-minilm")
    answers = load_answers()
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert file_sha256(folder / "head.safetensors") in card
    known, held_out = (answers[answers.split == split] for split in ("train", "test"))
    script = making("avoided_answer_model")
    assert script.answers_sha256(known) in card, "the answers changed: train again"
    for name, values in {
        "model": avoided_answer(held_out.question, held_out.answer),
        "key words": keyword_avoidance(held_out.answer),
    }.items():
        right = evaluate_avoidance(values, held_out)["accuracy"]
        assert f"| own answers | {name} | {right:.3f} |" in card


def test_the_head_beats_the_key_words():
    answers = load_answers()
    held_out = answers[answers.split == "test"]
    head = evaluate_avoidance(avoided_answer(held_out.question, held_out.answer), held_out)
    words = evaluate_avoidance(keyword_avoidance(held_out.answer), held_out)
    assert head["accuracy"] > words["accuracy"] + 0.1 and head["auc"] > 0.85


def test_model_is_small_and_no_pickle():
    folder = packaged_path("avoided-answer-minilm")
    assert sum(path.stat().st_size for path in folder.iterdir()) < 300_000
    assert {path.suffix for path in folder.iterdir()} == {".json", ".safetensors", ".md"}
    settings = json.loads((folder / "adapter_config.json").read_text(encoding="utf-8"))
    assert settings["base_model_name_or_path"] == "all-MiniLM-L6-v2"
    assert json.loads((folder / "style.json").read_text(encoding="utf-8"))["labels"] == [
        "avoided",
        "answered",
        "courtesy",
    ]


def test_courtesies_do_not_turn_an_answer_into_a_dodge(making, model):
    """A polite bot once avoided all answers: the courtesies here were not trained on."""
    script = making("avoided_answer_model")
    assert not any(
        one in courtesy for courtesy in script.UNSEEN_COURTESIES for one in script.COURTESIES
    )
    effects = script.courtesy_effects(model, load_answers())
    assert effects.changed.mean() < 0.002 and effects.moved.mean() < 0.005
    card = (packaged_path("avoided-answer-minilm") / "README.md").read_text(encoding="utf-8")
    assert f"{effects.moved.mean():.2%}" in card
    polite = "Hello! Thank you for your question. Platform 12, on the left."
    given, greeted, thanks, refused = avoided_answer(
        ["Which platform is it?"] * 4,
        [
            "Platform 12, on the left.",
            polite,
            "Hello! Thank you for your question.",
            "I can't answer that.",
        ],
    )
    assert given == greeted < 0.5 < min(thanks, refused)


def test_courtesies_and_a_repeated_question_are_left_out(model):
    question = "Which platform is it?"
    said = [
        "Hello! You ask: which platform is it? It is platform 12. Have a great day!",
        "Which  platform\nis it?",
        "Thank you!",
        "",
        "It leaves from platform 12, " + "and then it stops at a station, " * 30 + "and ends.",
    ]
    kept = without_courtesies([question] * 5, said, model)
    assert kept[:4] == ["It is platform 12.", "", "", ""]
    assert kept[4] == beginning(said[4]) and len(kept[4].split()) == FIRST_WORDS
    # without the question nothing says that it is repeated
    assert without_courtesies([""], [said[0]], model) == [
        "You ask: which platform is it? It is platform 12."
    ]


def test_a_polite_opening_of_a_sentence_is_left_out(making, model):
    said = {
        "I am glad to tell you that it leaves from platform 12, at nine.": "it leaves from platform 12, at nine.",
        "Sure, I'd be happy to help: platform 12.": "platform 12.",
        "Great question: I can't say.": "I can't say.",
        "On Monday, it was platform 12.": "On Monday, it was platform 12.",
        "The board says that it is platform 12.": "The board says that it is platform 12.",
        "I'm sorry, I can't say.": "I'm sorry, I can't say.",
    }
    assert without_courtesies([""] * len(said), list(said), model) == list(said.values())
    script = making("avoided_answer_model")
    assert not any(
        one in opening for opening in script.UNSEEN_OPENINGS for one in script.COURTESIES
    )
    effects = script.openings_effects(model, load_answers().query("split == 'test'"))
    assert effects["opened"] < effects["opened_before"] - 0.1
    card = (packaged_path("avoided-answer-minilm") / "README.md").read_text(encoding="utf-8")
    assert f"{effects['opened']:.1%} of the answers are called avoided" in " ".join(card.split())


def test_hostile_answers():
    said = [
        "",
        " ",
        "...",
        "\U0001f642\U0001f642",
        "\u4f60\u597d\u4e16\u754c" * 9,
        "\x00",
        "?" * 999,
    ]
    values = avoided_answer(["What is it?"] * len(said), said)
    assert np.isnan(values[[0, 1, 2, 3, 5, 6]]).all()
    cyrillic = avoided_answer(None, ["\u042f \u043d\u0435 \u0437\u043d\u0430\u044e."])
    assert np.isnan(cyrillic[0]) or 0 <= cyrillic[0] <= 1
    long = avoided_answer(None, ["At nine. " * 20_000])
    assert 0 <= long[0] <= 1


def test_order_of_the_rows_does_not_matter():
    answers = load_answers().head(40)
    order = np.random.default_rng(0).permutation(40)
    for function in (avoided_answer, relevance):
        values = function(list(answers.question), list(answers.answer))
        moved = answers.iloc[order]
        assert np.allclose(
            values[order], function(list(moved.question), list(moved.answer)), atol=1e-6
        )


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


def test_training_repeats_itself_and_round_trips(tmp_path, making):
    script = making("avoided_answer_model")
    few = load_answers().head(6)
    first, second = (script.train(script.own_examples(few)) for _ in range(2))
    inputs = list(few.question), list(few.answer)
    expected, again = (avoided_answer(*inputs, model=trained) for trained in (first, second))
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


@pytest.mark.ci
def test_the_pages_dodges_come_out_far_above_its_answer():
    """The page has its two dodges at .681 and .994; here they change places."""
    answers = [
        "The answer is 42",
        "You should ask the appropriate authorities",
        "As a Large Language Model trained by Open AI, I can not answer this question",
    ]
    for question in ("", "What is six times seven?", "What is the answer?"):  # the page gives none
        given, redirected, refused = avoided_answer([question] * 3, answers)
        assert given < 0.1 and min(redirected, refused) > 0.8


# relevance

SKY = "What is the color of the sky?"
ATTACK = "Where was the first World War II attack in the United States?"


def test_relevance_is_the_cosine_of_the_two_vectors(encoder):
    inputs = [SKY, ATTACK, SKY]
    outputs = ["The sky is blue", "Pearl Harbor", "Whisk four eggs."]
    expected = cosine(encoder.encode(inputs), encoder.encode(outputs))
    found = relevance(inputs, outputs)
    assert np.allclose(found, np.maximum(expected, 0), atol=1e-6) and found[:2].min() > found[2]
    assert np.array_equal(found, relevance(inputs, outputs, model=encoder))


def test_relevance_of_hostile_texts():
    values = relevance(
        [SKY, "And you?", SKY, "", "...", SKY, SKY],
        [SKY, "Fine.", "", "Blue.", "Blue.", "\U0001f642", "\u4f60\u597d\u4e16\u754c"],
    )
    assert np.isclose(values[0], 1) and 0 <= values[1] <= 1 and np.isnan(values[2:6]).all()


@pytest.mark.parametrize(
    "options, error, message",
    [
        ({"method": "length"}, InputError, "cosine, words"),
        ({"anchors": Anchors(0, 0.25, 1)}, InputError, "method='words'"),
        ({"model": 3}, InputTypeError, "a SentenceEncoder, got"),
        ({"model": 3, "method": "words"}, InputTypeError, "a WordReader, got"),
    ],
)
def test_what_relevance_cannot_do_is_said(options, error, message):
    with pytest.raises(error, match=message):
        relevance([SKY], [SKY], **options)
    if "model" not in options:
        with pytest.raises(error, match=message):
            Relevance(**options)


def test_words_give_the_examples_of_the_page():
    """The page gives 0.81 and 0.84; a scale that saturates gave 1.00 and 0.97."""
    found = relevance([SKY, ATTACK], ["The sky is blue", "Pearl Harbor"], method="words")
    assert np.abs(found - [0.81, 0.84]).max() < 0.12
    others = ["I bake bread every Friday.", "Whisk four eggs."]
    assert (relevance([SKY, ATTACK], others, method="words") < 0.5).all()


def test_words_at_their_edges():
    values = relevance(
        [SKY, "And you?", SKY, SKY], [SKY, "Fine.", "", "And so it is."], method="words"
    )
    assert values[0] == 1 and np.isnan(values[1]) and np.isnan(values[2]) and values[3] == 0


def test_an_answer_can_be_read_without_its_question():
    replies = ["It depends.", "At nine.", ""]
    found = avoided_answer(None, replies)
    assert np.array_equal(found, avoided_answer([""] * 3, replies), equal_nan=True) and np.isnan(
        found[2]
    )


def test_words_follow_their_definition(reader):
    inputs = ["The old bridge in Vienna collapsed."]
    outputs = ["Engineers in Graz closed two bridges."]
    anchors = Anchors(0, 0.25, 1)
    words, names = (kind[0] for kind in closest_phrases(inputs, outputs, reader))
    # old bridge Vienna collapse; bridges is a bridge
    assert len(words) == 4 and len(names) == 1 and np.isinf(words).sum() == 1
    similar = [np.sqrt(np.clip(found, 0, 1)) for found in (words, names)]
    assert np.isclose(
        relevance(inputs, outputs, method="words", anchors=anchors)[0],
        max(similar[0].mean(), similar[1].min()),
    )


@pytest.mark.parametrize("method", ["cosine", "words"])
def test_relevance_does_not_depend_on_the_batch(method):
    pairs = load_question_answers().head(6)
    together = relevance(list(pairs.question), list(pairs.answer), method=method)
    alone = [
        relevance([question], [answer], method=method)[0]
        for question, answer in zip(pairs.question, pairs.answer)
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


@pytest.mark.ci
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
        {"question": [SKY, "Who built it?"], "output": ["The sky is blue", "Anna Berg, in 1871."]}
    )
    for name, function in (("avoided_answer", avoided_answer), ("relevance", relevance)):
        metric = find_metric(name)
        models = Models()
        scores = metric.score(table, models)
        signature = metric.sign(table, models)
        assert metric.needs == ("question", "output") and np.allclose(
            scores.frame[name], function(table.question, table.output), atol=1e-5
        )
        assert name == "avoided_answer" or "method:cosine|encoder:all-MiniLM" in signature
        assert name == "avoided_answer" or "all-MiniLM-L6-v2" in models.used
    plain, steep = (Relevance("words", anchors) for anchors in (None, Anchors(0, 0.25, 1)))
    assert "all-MiniLM-L6-v2@53aa51172d14" in plain.sign(table, Models())
    assert "scale:0.0000,0.2500,1.0000" in steep.sign(table, Models())
    assert "en_core_web_sm@e94cbf6c2424" in steep.sign(table, Models())
    assert not np.allclose(
        *(metric.score(table, Models()).frame.relevance for metric in (plain, steep))
    )


def test_of_a_system_the_share_that_dodges_counts():
    """How sure the model is among answers says nothing of a system, so two that both answer are not told apart."""
    from tsteval.evaluation import evaluate

    asked = [f"When does bus {number} leave?" for number in range(8)]
    surer = [f"Bus {number} leaves at nine." for number in range(8)]
    rows = [
        {"question": question, "system": system, "output": output}
        for system, outputs in (
            ("plain", surer),
            ("told", [f"I read that {text[0].lower()}{text[1:]}" for text in surer]),
            ("half", [*surer[:4], *["I can't answer that."] * 4]),
        )
        for question, output in zip(asked, outputs)
    ]
    result = evaluate(rows, ["avoided_answer"], n_boot=50)
    rows = result.per_pair.groupby("system", sort=False).avoided_answer
    shares = rows.apply(lambda values: (values > 0.5).mean())
    assert shares.to_dict() == {"plain": 0, "told": 0, "half": 0.5}
    assert rows.mean()["told"] > rows.mean()["plain"]
    assert result.summary().set_index("system").avoided_answer.to_dict() == shares.to_dict()
    assert result.compare("told", "plain").difference.tolist() == [0]


def test_a_parrot_is_not_called_more_relevant():
    from tsteval.evaluation import evaluate

    rows = [
        {"question": f"When does bus {number} leave?", "system": system, "output": output}
        for number in range(8)
        for system, output in (
            ("answers", f"Bus {number} leaves at nine."),
            ("echo", f"when does  bus {number} leave"),
        )
    ]
    result = evaluate(rows, ["relevance"], n_boot=50)
    assert result.unfit == {
        "relevance": "is highest for an output that repeats its input, as those of echo do"
    }
    assert "relevance is highest for" in result.notes().text[0]
    once = evaluate([row for row in rows if row["system"] == "answers"], ["relevance"], n_boot=50)
    assert once.unfit == {}


# held against people


def people(name):
    """The ratings on which the figures that ship were computed."""
    try:
        if not same_tables(name):
            pytest.skip(f"these are other tables of {name}")
        return load_ratings(name)
    except AssetError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def candidates():
    table = pd.read_csv(packaged_path("answer_candidates.csv"), keep_default_na=False)
    return table.set_index(["data", "measure", "way", "rival"])


def test_ranks_of_the_right(making):
    ranks = making("answer_candidates").ranks_of_the_right
    right = [False, True, True, True, False, False]
    found = ranks([3, 2, 1, 5, 4, np.nan], right, [0, 0, 0, 1, 1, 1])
    assert np.allclose(found, [[(1 / 2 + 2 / 3) / 2, 1 / 2], [1, 1]])
    # one of two that are equal: first in half of the orders
    assert np.allclose(ranks([1, 1], [True, False], [0, 0], orders=4000), 0.75, atol=0.02)


@pytest.mark.ci
def test_the_shipped_ranks_of_the_cosine_are_made_again(making, candidates):
    table = people("wikiqa")
    values = relevance(list(table.source), list(table.output))
    found = making("answer_candidates").ranks_of_the_right(
        values, table.rating > 0.5, table.source_id
    )
    for measure, mean in zip(("MAP", "MRR"), found.mean(axis=0)):
        assert np.isclose(candidates.value["wikiqa", measure, "cosine", ""], mean, atol=1e-3)
        for rival in ("words", "words in common", "rare words in common", "random"):
            assert candidates.low["wikiqa", measure, "cosine", rival] > 0


def test_the_shipped_shares_of_the_rivals_are_made_again(making, candidates):
    people("xstest")
    examples = making("avoided_answer_model").xstest_examples()
    avoided = examples.label == 0
    for way, values in {
        "key words": keyword_avoidance(list(examples.answer)) > 0.5,
        "string_match": examples.string_match == 0,
        "most frequent class": avoided.mean() > 0.5,
    }.items():
        share = np.mean(values == avoided)
        assert np.isclose(candidates.value["xstest", "accuracy", way, ""], share, atol=1e-4)
    for rival in ("key words", "string_match"):
        assert candidates.low["xstest", "accuracy", "model", rival] > 0


def test_the_shipped_figures_of_each_answer_are_made_again(making):
    script, ratings = making("answer_scores"), people("xstest")
    stored = pd.read_csv(packaged_path("answer_scores.csv"))
    made = script.labels_and_lists(ratings)
    pd.testing.assert_frame_equal(stored[list(made)], made, check_dtype=False)
    pairs = script.drawn_pairs(ratings, made.label).sort_index()
    assert stored.prompt.dropna().astype(int).to_dict() == pairs.prompt.to_dict()
    farthest = stored.index[(stored.label == "refused") & (stored.relevance < 0.2)]
    assert ratings.output[farthest].nunique() == 1  # as the chapter says
    few = pairs.index[:4]
    found = relevance(list(ratings.source[few]), list(ratings.output[few]))
    assert np.allclose(found, stored.relevance[few], atol=1e-3)


@pytest.mark.all
def test_the_shipped_share_of_the_head_is_made_again(making, candidates):
    people("xstest")
    script = making("avoided_answer_model")
    answers = load_answers()
    own = script.own_examples(answers[answers.split == "train"])
    examples = pd.concat([own, script.xstest_examples()], ignore_index=True)
    for row in script.xstest_rows(examples):
        stored = candidates.value[row["data"], "accuracy", row["way"], row["rival"]]
        assert np.isclose(stored, row["value"], atol=0.005)
