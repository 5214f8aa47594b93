"""Roles: a model is loaded when it is asked for, once, and a shared result is computed once for what it depends on."""

import pytest

from tsteval.core.assets import ASSETS, packaged_path
from tsteval.core.checks import InputError, InputTypeError
from tsteval.models.base import Memory
from tsteval.models.causal_lm import CausalLM
from tsteval.models.encoder import SentenceEncoder
from tsteval.models.roles import LARGER_LANGUAGE_MODEL, TIERS, Models, usual_models
from tsteval.ngram import NgramLM


class Counted:
    identity = "0123456789ab"
    memory = None
    made = []

    def __init__(self, name, device):
        self.name = name
        self.device = device

    @classmethod
    def load(cls, name="the default", device="auto"):
        cls.made.append(name)
        return cls(name, device)


@pytest.fixture(autouse=True)
def nothing_made(monkeypatch):
    monkeypatch.setattr(Counted, "made", [])


def test_a_model_is_loaded_when_it_is_first_asked_for_and_once():
    models = Models({"style": "mine"}, device="cpu")
    assert not Counted.made
    first = models.get("style", Counted)
    assert models.get("style", Counted) is first and first.device == "cpu"
    assert models.get("encoder", Counted).name == "the default" and Counted.made == [
        "mine",
        "the default",
    ]
    assert list(models.used) == ["mine", "the default"]


def test_a_model_that_is_given_is_used_as_it_is():
    mine = Counted("ready", "cpu")
    assert Models({"style": mine}).get("style", Counted) is mine and not Counted.made


def test_memory_belongs_to_the_run_and_not_to_the_callers_model():
    mine = SentenceEncoder.load()
    models = Models({"encoder": mine}, remember=5)
    own = models.get("encoder", SentenceEncoder)
    assert own is not mine and isinstance(own.memory, Memory) and mine.memory is None
    assert own is models.get("encoder", SentenceEncoder) and own.model is mine.model


def test_a_shared_result_is_made_again_when_what_it_depends_on_changes():
    models = Models()
    calls = []
    results = [
        models.once("sums", key, lambda: calls.append(1) or len(calls)) for key in (1, 1, 2, 2, 1)
    ]
    assert results == [1, 1, 2, 2, 3] and models.once("other", 1, lambda: "x") == "x"


def test_names_and_batch_sizes_are_passed_on():
    assert Models(batch_size=7).batch == {"batch_size": 7} and Models().batch == {}


@pytest.mark.parametrize(
    "style, judge",
    [
        ("neutral", "subjectivity-mpnet"),
        ("subjective", "subjectivity-mpnet"),
        ("formal", "formality-mpnet"),
        ("informal", "formality-mpnet"),
        ("polite", None),
    ],
)
def test_the_larger_tier_has_a_judge_for_each_style_that_it_knows(style, judge):
    assert usual_models("base", style) == {
        "encoder": "all-mpnet-base-v2",
        **({"style": judge} if judge else {}),
    }
    assert usual_models("small", style) == {}
    assert usual_models("large", style) == usual_models("base", style) | {
        "language_model": LARGER_LANGUAGE_MODEL
    }


def test_there_are_three_tiers():
    assert TIERS == ("small", "base", "large")
    with pytest.raises(InputError, match="models must be one of"):
        usual_models("huge", "neutral")


def test_every_model_of_a_tier_is_embedded():
    for tier in TIERS:
        for name in usual_models(tier, "neutral").values():
            assert name in ASSETS or packaged_path(name).is_dir()


def test_an_ngram_model_is_refused_where_a_neural_one_is_asked_for():
    models = Models({"language_model": NgramLM(2).fit([["a", "b"]])})
    with pytest.raises(InputTypeError, match="asks for a CausalLM"):
        models.get("language_model", CausalLM)
