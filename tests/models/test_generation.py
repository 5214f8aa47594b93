"""A model that answers: of which kinds one can be made. What it writes is tested in tests/test_rewriting.py."""

import pytest

from tests.models import tiny
from tsteval.core.assets import AssetError
from tsteval.core.checks import InputError
from tsteval.models.generation import Decoding, Generator


@pytest.mark.parametrize("family", ["bert", "roberta", "xlnet"])
def test_a_model_that_sees_what_comes_is_refused(family, tmp_path):
    tiny.save(tmp_path, family, "AutoModelForCausalLM")
    with pytest.raises(AssetError, match="masked"):
        Generator.load(tmp_path, prompt="the {text} was")


@pytest.mark.parametrize(
    "family, auto_class",
    [
        ("gpt2", "AutoModelForCausalLM"),
        ("llama", "AutoModelForCausalLM"),
        ("bart", "AutoModelForSeq2SeqLM"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*did not end before their limit")
def test_what_it_writes_does_not_depend_on_the_other_texts(family, auto_class, tmp_path):
    tiny.save(tmp_path, family, auto_class)
    model = Generator.load(tmp_path, prompt="the {text} was" if family != "bart" else None)
    for how in ({}, {"method": "beam"}, {"method": "sample", "seed": 3}):
        together = model.samples(tiny.TEXTS, longest=5, **how)
        assert together == [model.samples([text], longest=5, **how)[0] for text in tiny.TEXTS]


@pytest.mark.parametrize(
    "setting", [{"method": "best"}, {"beams": 0}, {"temperature": 0}, {"top_p": 0}, {"seed": -1}]
)
def test_settings_out_of_range_are_refused(setting):
    with pytest.raises(InputError, match=next(iter(setting))):
        Decoding(**setting)
