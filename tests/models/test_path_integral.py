"""Along a path: a text's attribution is its own whatever stands beside it, and ends at the probability that is told."""

import numpy as np
import pytest
import torch

from tests.models import tiny
from tsteval.attribution import attribute, integrated_gradients
from tsteval.core.assets import AssetError
from tsteval.core.checks import InputError
from tsteval.models.classifier import StyleClassifier

FAMILIES = (*tiny.ENCODERS, *tiny.DECODERS)


def classifier(family, framed=None, **changes):
    framed = family not in tiny.DECODERS if framed is None else framed
    return StyleClassifier(tiny.module(family, **changes), tiny.tokenizer(framed), family)


@pytest.mark.filterwarnings("ignore:.*do not add up")
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("method", ["integrated_gradients", "occlusion"])
def test_an_attribution_does_not_depend_on_the_other_rows(family, method):
    model = classifier(family)
    together = attribute(model, tiny.TEXTS, method=method, quantity="logit")
    for text, found in zip(tiny.TEXTS, together):
        alone = attribute(model, [text], method=method, quantity="logit")[0]
        assert (
            np.allclose(found.scores, alone.scores, rtol=1e-4, atol=1e-4)
            and abs(found.value - alone.value) < 1e-4
        )


@pytest.mark.filterwarnings(
    "ignore:.*do not add up"
)  # a tiny Llama is steep near its [PAD], a vector of zeros
@pytest.mark.parametrize("family", FAMILIES)
def test_a_path_ends_at_the_probability_that_the_classifier_gives(family):
    model = classifier(family)
    for found, expected in zip(
        integrated_gradients(model, tiny.TEXTS), model.predict_proba(tiny.TEXTS)
    ):
        assert abs(found.value - expected[0]) < 1e-5
        missed = abs(found.scores.sum() - (found.value - start(model, found)))
        assert np.isclose(found.completeness_error, missed, rtol=1e-3, atol=1e-5)
        assert missed < 0.05 or family == "llama"


def start(model, found):
    """The probability of the text's frame around so many [PAD]s, by another way: the vectors given in place of ids."""
    table = model.model.get_input_embeddings().weight.detach()
    row = model.encode_rows({"texts": [found.text]}, return_special_tokens_mask=True)
    ids = [
        token if special else 0
        for token, special in zip(
            row.encoded["input_ids"][0], row.encoded["special_tokens_mask"][0]
        )
    ]
    with torch.inference_mode():
        return model.model(inputs_embeds=table[ids][None]).logits.softmax(dim=1)[0, 0].item()


def test_a_text_that_ends_with_the_token_that_fills_batches_is_read_as_the_classifier_reads_it():
    """GPT-2 reads the last token that is no padding; where the padding is a token of texts, that is not the last."""
    model = StyleClassifier(
        tiny.module("gpt2", pad_token_id=13), tiny.tokenizer(False, pad_token="."), "gpt2"
    )
    found = integrated_gradients(model, ["the cat sat .", "a dog ran on the mat ."])
    assert np.allclose(
        [one.value for one in found],
        model.predict_proba([one.text for one in found])[:, 0],
        atol=1e-5,
    )


@pytest.mark.parametrize("family", ["bart", "xlnet"])
def test_a_model_whose_vectors_cannot_be_exchanged_is_refused_in_a_sentence(family):
    with pytest.raises(InputError, match=rf"{family}.*words cannot be attributed"):
        integrated_gradients(classifier(family), tiny.TEXTS[:2])


@pytest.mark.parametrize("family", tiny.DECODERS)
def test_a_decoder_that_does_not_know_what_fills_its_batches_is_refused(family):
    """It reads a text's last token, and would read the padding's."""
    with pytest.raises(AssetError, match="pad_token_id"):
        classifier(family, pad_token_id=None)
    with pytest.raises(AssetError, match="pad_token_id"):
        classifier(family, pad_token_id=7)


def test_what_does_not_add_up_at_the_last_step_is_said_with_its_row(monkeypatch):
    monkeypatch.setattr("tsteval.models.path_integral._STEP_CAP", 12)
    model = classifier("llama", initializer_range=1.0)
    with pytest.warns(UserWarning, match=r"texts, rows? .*3.* do not add up"):
        integrated_gradients(model, tiny.TEXTS, tolerance=1e-6)
