"""The style classifier: a distribution or a refusal, a signature of all that decides it, any encoder under its head."""

import pickle
import warnings

import numpy as np
import pytest
import torch

from tests.models import tiny
from tsteval.core.assets import AssetError
from tsteval.core.checks import InputError
from tsteval.models.classifier import StyleClassifier, base_model, find_label, label_probability


def made(family="bert", **changes):
    return StyleClassifier(
        tiny.module(family, **changes), tiny.tokenizer(family not in tiny.DECODERS), family
    )


@pytest.mark.parametrize("family", [*tiny.ENCODERS, *tiny.DECODERS, "bart", "xlnet"])
def test_a_row_does_not_depend_on_the_other_rows(family):
    model = made(family)
    together = model.predict_proba(tiny.TEXTS)
    assert np.allclose(together.sum(axis=1), 1) and np.array_equal(together[0], together[4])
    for text, found in zip(tiny.TEXTS, together):
        assert np.allclose(model.predict_proba([text])[0], found, atol=1e-5)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("family", tiny.DECODERS)
def test_where_a_tokenizer_fills_up_moves_no_position(family, side):
    model = StyleClassifier(tiny.module(family), tiny.tokenizer(False, padding_side=side), family)
    assert np.allclose(
        model.predict_proba(tiny.TEXTS)[2],
        made(family).predict_proba(tiny.TEXTS[2:3])[0],
        atol=1e-5,
    )


def test_a_model_of_several_labels_at_once_has_no_distribution_over_them():
    model = made(num_labels=3, problem_type="multi_label_classification")
    with pytest.raises(InputError, match=r"each label by itself.*predict_logits"):
        model.predict_proba(tiny.TEXTS)
    expected = torch.from_numpy(model.predict_logits(tiny.TEXTS)).sigmoid()[:, 1]
    assert np.allclose(label_probability(model, "label_1", tiny.TEXTS), expected)


@pytest.mark.parametrize(
    "label, labels, place",
    [
        ("neutral", ("SUBJECTIVE", "NEUTRAL"), 1),
        ("Neutral", ("subjective", "neutral"), 1),
        ("pos", ("POS", "pos"), 1),
        ("Pos", ("POS", "pos"), 0),
        ("neutra", ("neutral",), None),
        ("", ("neutral",), None),
    ],
)
def test_a_label_is_found_in_any_case_and_first_as_it_is_spelled(label, labels, place):
    assert find_label(label, labels) == place


def test_one_output_is_no_distribution():
    model = made(num_labels=1)
    for ask in (model.predict_proba, lambda texts: label_probability(model, "label_0", texts)):
        with pytest.raises(InputError, match="one output"):
            ask(tiny.TEXTS)


def test_where_texts_are_cut_is_in_the_signature(tmp_path):
    tiny.save(tmp_path, "bert")
    model = StyleClassifier.load(tmp_path)
    other = StyleClassifier.load(tmp_path)
    other.max_tokens = 5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert not np.allclose(model.predict_proba(tiny.TEXTS), other.predict_proba(tiny.TEXTS))
    assert other.tag == f"{model.tag}+5tokens"
    assert (
        pickle.loads(pickle.dumps(other)).tag == other.tag
        and pickle.loads(pickle.dumps(model)).tag == model.tag
    )


@pytest.mark.parametrize("pooling", ["mean", "layers"])
@pytest.mark.parametrize("family", [*tiny.ENCODERS, *tiny.DECODERS])
def test_any_encoder_pools_over_its_tokens(family, pooling, tmp_path):
    tiny.save(tmp_path, family, "AutoModel")
    module, tokenizer = base_model(tmp_path, ("low", "high", "top"), pooling)
    model = StyleClassifier(module, tokenizer, family)
    together = model.predict_logits(tiny.TEXTS)
    assert together.shape == (5, 3) and np.array_equal(together[0], together[4])
    for text, found in zip(tiny.TEXTS, together):
        assert np.allclose(model.predict_logits([text])[0], found, atol=1e-4)


@pytest.mark.parametrize("family", tiny.ENCODERS)
def test_a_head_over_all_layers_reads_each_layers_mean(family, tmp_path):
    tiny.save(tmp_path, family, "AutoModel")
    module, tokenizer = base_model(tmp_path, ("low", "high"), "layers")
    model = StyleClassifier(module, tokenizer, family)
    ids = torch.tensor([tokenizer(tiny.TEXTS[1])["input_ids"]])
    plain = tiny.transformers.AutoModel.from_pretrained(tmp_path).eval()
    with torch.inference_mode():
        states = plain(input_ids=ids, output_hidden_states=True).hidden_states
        expected = module.classifier(torch.cat([state.mean(dim=1) for state in states], dim=1))[0]
    assert np.allclose(model.predict_logits([tiny.TEXTS[1]])[0], expected.numpy(), atol=1e-4)


@pytest.mark.parametrize("family", tiny.ENCODERS)
def test_a_head_over_the_mean_reads_the_mean(family, tmp_path):
    tiny.save(tmp_path, family, "AutoModel")
    model = StyleClassifier(*base_model(tmp_path, ("low", "high"), "mean"), family)
    ids = torch.tensor([model.tokenizer(tiny.TEXTS[1])["input_ids"]])
    seen = {}
    model.model.base_model.register_forward_hook(
        lambda module, arguments, output: seen.update(out=output)
    )
    with torch.inference_mode():
        plain = (
            tiny.transformers.AutoModel.from_pretrained(tmp_path)
            .eval()(input_ids=ids)
            .last_hidden_state
        )
        model.model(input_ids=ids)
    pooled = seen["out"].get("pooler_output")
    read = seen["out"].last_hidden_state[:, 0] if pooled is None else pooled
    assert torch.allclose(read, plain.mean(dim=1), atol=1e-4)


def test_a_model_of_two_sequences_pools_as_it_was_made_to(tmp_path):
    tiny.save(tmp_path, "bart", "AutoModel")
    with pytest.raises((InputError, AssetError), match=r"two sequences|pooling"):
        base_model(tmp_path, ("low", "high"), "layers")


def test_end_marks_in_a_text_of_bart_are_told_in_a_sentence():
    """Its library said that all examples must have the same number of them."""
    model = made("bart")
    with pytest.raises(InputError, match="end mark"):
        model.predict_proba(["the cat sat .", "the [SEP] cat"])
    unframed = StyleClassifier(tiny.module("bart"), tiny.tokenizer(framed=False), "bart")
    with pytest.raises(InputError, match="end mark"):
        unframed.predict_proba(tiny.TEXTS)
