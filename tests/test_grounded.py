"""Chapter 23: quantities and dates, grounding, and relevance."""
import importlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsteval.core.assets import AssetError
from tsteval.core.checks import InputError
from tsteval.core.metric import find_metric
from tsteval.grounded import (
    Anchors,
    Phrase,
    WordReader,
    closest_phrases,
    fit_even_logistic,
    grounded_in_context,
    load_question_answers,
    relevance,
    relevance_anchors,
    word_similarity,
)
from tsteval.models.roles import Models


@pytest.fixture(scope="module")
def making():
    """A script of nbs/making as a module."""
    folder = str(Path(__file__).parents[1] / "nbs" / "making")
    sys.path.insert(0, folder)
    yield importlib.import_module
    sys.path.remove(folder)


@pytest.fixture(scope="module")
def reader():
    return WordReader.load()


JORDAN = "Michael Jordan (1963) is an American former professional basketball player and businessman. "


@pytest.mark.parametrize(
    "question, output, value",
    [
        ("In what year was he born?", "He was born in 1963.", 1.0),
        ("When was Michael born?", "Michael Jeffrey Jordan was born in 1963", 0.5),
        ("What did he achieve?", "He won many NBA championships with the Chicago Bulls", 0.0),
    ],
)
def test_grounding_examples_of_the_page(question, output, value):
    assert grounded_in_context([JORDAN + question], [output]).tolist() == [value]


@pytest.mark.parametrize(
    "given_text, output, value",
    [
        ("It opened on 5 May 1963.", "It opened in May 1963.", 1),
        ("It opened on 5 May 1963.", "It opened in 1963.", 1),
        ("It opened in 1963.", "It opened on 5 May 1963.", 0),
        ("It opened in May 1963.", "It opened in June 1963.", 0),
        ("It cost $5m.", "It cost five million dollars.", 1),
        ("It cost $5m.", "It cost 5 million euros.", 0),
        ("It cost $5m.", "It cost 5 million.", 1),
        ("They sold five ships.", "They sold 5 ships.", 1),
        ("anything", "There is nothing to check here.", 1),
        ("", "Paris", 0),
        ("", "", 1),
        ("We met Anna Berg's sister.", "Anna Berg was there.", 1),
        ("Annapolis", "Anna Berg was there.", 0),
    ],
)
def test_grounding(given_text, output, value):
    assert grounded_in_context([given_text], [output]).tolist() == [value]


def test_grounding_does_not_depend_on_the_batch():
    outputs = ["Anna Berg built it in 1871.", "No facts.", "The Danube flows through Vienna and Budapest."]
    together = grounded_in_context(["Anna Berg lives in Vienna."] * 3, outputs)
    assert together.tolist() == [
        grounded_in_context(["Anna Berg lives in Vienna."], [output])[0] for output in outputs
    ]


def test_pairs_must_be_of_equal_number():
    for function in (grounded_in_context, relevance):
        with pytest.raises(ValueError, match="inputs has 1, outputs has 2"):
            function(["a"], ["b", "c"])
        with pytest.raises(TypeError, match="outputs, row 0"):
            function(["a"], [None])
        assert function([], []).shape == (0,)


@pytest.mark.slow
def test_the_pipeline_is_loaded_without_a_pickle():
    code = (
        "import pickle, spacy, srsly, srsly.cloudpickle, sys\n"
        "from tsteval.lexical.english import load_english\n"
        "def refuse(*a, **k): raise AssertionError('a pickle was read')\n"
        "pickle.load = pickle.loads = pickle.Unpickler = srsly.pickle_loads = srsly.cloudpickle.loads = refuse\n"
        "print([name.label_ for name in load_english()('Anna Berg lives in Vienna.').ents])\n"
        "assert not any('en_core_web' in name for name in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.strip() == "['PERSON', 'GPE']", done.stderr


def test_without_spacy_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(AssetError, match=r"pip install 'tsteval\[properties\]'"):
        grounded_in_context(["a"], ["b"])


# relevance

SKY, ATTACK = "What is the color of the sky?", "Where was the first World War II attack in the United States?"


def test_relevance_examples_of_the_page():
    """The page gives 0.81 and 0.84; a scale that saturates gave 1.00 and 0.97."""
    found = relevance([SKY, ATTACK], ["The sky is blue", "Pearl Harbor"])
    assert np.abs(found - [0.81, 0.84]).max() < 0.12
    assert (relevance([SKY, ATTACK], ["I bake bread every Friday.", "Whisk four eggs."]) < 0.5).all()


def test_relevance_at_its_edges():
    values = relevance([SKY, "And you?", SKY, SKY], [SKY, "Fine.", "", "And so it is."])
    assert values[0] == 1 and np.isnan(values[1]) and values[2] == values[3] == 0


def test_relevance_follows_its_definition(reader):
    inputs, outputs, anchors = (["The old bridge in Vienna collapsed."], ["Engineers in Graz closed two bridges."],
                                Anchors(0, 0.25, 1))
    words, names = (kind[0] for kind in closest_phrases(inputs, outputs, reader))
    # old bridge Vienna collapse; bridges is a bridge
    assert len(words) == 4 and len(names) == 1 and np.isinf(words).sum() == 1
    similar = [np.sqrt(np.clip(found, 0, 1)) for found in (words, names)]
    assert np.isclose(relevance(inputs, outputs, anchors=anchors)[0], max(similar[0].mean(), similar[1].min()))


def test_relevance_does_not_depend_on_the_batch():
    pairs = load_question_answers().head(6)
    together = relevance(list(pairs.question), list(pairs.answer))
    alone = [relevance([question], [answer])[0] for question, answer in zip(pairs.question, pairs.answer)]
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
    assert np.allclose(word_similarity([0.07, 0.18, 0.82, np.inf, -np.inf], anchors), [0, 0.5, 1, 1, 0])


@pytest.mark.parametrize("anchors", [(0.2, 0.1, 0.8), (0.1, 0.9, 0.8), (0.1, 0.1, 0.8), (0.1, 0.2, 2)])
def test_anchors_must_rise(anchors):
    with pytest.raises(InputError):
        Anchors(*anchors)


@pytest.mark.slow
def test_the_stored_scale_is_what_the_code_makes(making):
    made = making("property_curves").relevance_scale()
    stored = relevance_anchors()
    assert np.allclose([made["stranger"], made["even"], made["same"]], [stored.stranger, stored.even, stored.same],
                       atol=1e-3)


def test_questions_are_sound():
    table = load_question_answers()
    assert (len(table) == 60 and table.id.is_unique and table.question.is_unique
            and table.question.str.endswith("?").all())

def test_an_even_curve_undoes_the_ratio_of_the_labels():
    rng = np.random.default_rng(0)
    values = np.concatenate(
        [rng.normal(1, 1, 5000), rng.normal(-1, 1, 15_000)]
    )  # log odds of two such bells: 2 * value
    intercept, slope = fit_even_logistic(values, np.arange(20_000) < 5000)
    assert abs(intercept) < 0.1 and abs(slope - 2) < 0.1


def test_metrics_equal_the_functions_and_sign_their_scale():
    table = pd.DataFrame({"input": [SKY, "Who built it?"], "output": ["The sky is blue", "Anna Berg, in 1871."]})
    for name, function in (("grounded_in_context", grounded_in_context), ("relevance", relevance)):
        metric, models = find_metric(name), Models()
        scores = metric.score(table, models)
        assert metric.needs == ("input", "output") and np.allclose(scores.frame[name],
                                                                   function(table.input, table.output), atol=1e-6)
        assert "en_core_web_sm@e94cbf6c2424" in scores.signature and "en_core_web_sm" in models.used
    plain, steep = (find_metric("relevance").score(table, Models(), **options)
                    for options in ({}, {"anchors": Anchors(0, 0.25, 1)}))
    assert "all-MiniLM-L6-v2@53aa51172d14" in plain.signature and "scale:0.0000,0.2500,1.0000" in steep.signature
    assert not np.allclose(plain.frame, steep.frame)


@pytest.mark.parametrize("scored", [grounded_in_context, relevance])
def test_a_text_that_spacy_refuses_is_named_by_its_row(scored):
    long = "a " * 500_001
    with pytest.raises(InputError, match=r"outputs, row 1: .*1,000,002 characters"): scored(["a", "b"], ["c", long])
    with pytest.raises(InputError, match=r"inputs, row 0: .*1,000,002 characters"): scored([long, "b"], ["c", "d"])


@pytest.mark.parametrize("given, said, share", [
    ("It was -5 degrees.", "It was 5 degrees.", 0), ("It was 5 degrees.", "It was -5 degrees.", 0),
    ("It was -5 degrees.", "It was minus five degrees.", 1), ("It fell by -3%.", "It fell by \u22123 percent.", 1),
    ("From 10-20 people.", "From 10 to 20 people.", 1)])
def test_a_minus_sign_is_part_of_a_number(given, said, share):
    assert grounded_in_context([given], [said])[0] == share
