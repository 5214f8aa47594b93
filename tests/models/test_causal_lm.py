"""A causal language model: only a causal one will do, a text's scores are its own, words and prompts are what they
say."""

import numpy as np
import pytest
import torch

from tests.models import tiny
from tsteval.core.assets import AssetError
from tsteval.core.checks import InputError
from tsteval.models.causal_lm import CausalLM, Prompt, next_words, task_tokens


def made(family, auto_class="AutoModelForCausalLM", **changes):
    return CausalLM(
        tiny.module(family, auto_class, **changes),
        tiny.tokenizer(framed=False, bos_token="[CLS]"),
        family,
    )


@pytest.mark.parametrize("family", tiny.DECODERS)
@pytest.mark.parametrize("batch_size", [1, 2, 32])
def test_a_texts_scores_are_those_of_a_plain_forward_pass(family, batch_size):
    lm = made(family)
    for text, found in zip(tiny.TEXTS, lm.token_logprobs(tiny.TEXTS, batch_size=batch_size)):
        ids = torch.tensor(
            [[lm.beginning, *lm.tokenizer(text, add_special_tokens=False)["input_ids"]]]
        )
        with torch.inference_mode():
            expected = (
                lm.model(input_ids=ids)
                .logits.log_softmax(-1)[0, :-1]
                .gather(1, ids[0, 1:, None])[:, 0]
            )
        assert np.allclose(found.logprobs, expected.numpy(), atol=1e-5)


@pytest.mark.parametrize("family", tiny.DECODERS)
@pytest.mark.parametrize("shared", [0, 5, 12])
def test_what_contexts_begin_with_is_read_once_and_changes_no_score(family, shared, monkeypatch):
    """Rows behind one long beginning, and one that is the beginning and a token; logits are taken three at a time."""
    monkeypatch.setattr("tsteval.models.causal_lm._HEAD_ROWS", 3)
    lm = made(family)
    contexts = [
        (lm.beginning, *[7 + place % 5 for place in range(shared)], *end)
        for end in ((5, 6, 9), (5,), (6, 6), (8, 5, 5, 5), (9,))
    ]
    read = tiny.beginnings_read(monkeypatch)
    found = lm.token_logprobs(tiny.TEXTS, contexts=contexts, likeliest=True)
    assert list(map(len, read)) == [shared + 1]
    for text, context, scores in zip(tiny.TEXTS, contexts, found):
        own = lm.tokenizer(text, add_special_tokens=False)["input_ids"]
        row = torch.tensor([[*context, *own]])
        with torch.inference_mode():
            logprobs = lm.model(input_ids=row).logits.log_softmax(-1)[0, len(context) - 1 : -1]
        expected = logprobs.gather(1, row[0, len(context) :, None])[:, 0]
        assert np.allclose(scores.logprobs, expected.numpy(), atol=1e-5)
        assert np.allclose(scores.likeliest, logprobs.amax(1).numpy(), atol=1e-5)


@pytest.mark.parametrize("family", tiny.DECODERS)
@pytest.mark.parametrize("batch_size", [1, 32])
def test_a_texts_states_are_those_of_a_plain_forward_pass(family, batch_size):
    lm = made(family)
    texts = [*tiny.TEXTS, "", tiny.TEXTS[0]]
    found = lm.read_states(texts, (0, 1), batch_size=batch_size)
    expected = lm.token_logprobs(texts)
    for text, (states, logprobs), scores in zip(texts, found, expected):
        assert np.allclose(logprobs, scores.logprobs, atol=1e-5) and states.shape[0] == 2
        if not text:
            assert np.isnan(states).all()
            continue
        ids = [[lm.beginning, *lm.tokenizer(text, add_special_tokens=False)["input_ids"]]]
        with torch.inference_mode():
            layers = lm.model(torch.tensor(ids), output_hidden_states=True).hidden_states
        means = np.array([layers[layer][0, 1:].mean(0).numpy() for layer in (0, 1)])
        assert np.allclose(states, means, atol=1e-5)


def test_of_a_long_text_the_beginning_is_read():
    lm = made(tiny.DECODERS[0])
    words = ["the", "cat", "sat", "the", "cat", "sat"]
    (states, logprobs), (short, _) = lm.read_states(
        [" ".join(words), " ".join(words[:3])], (1,), window=4
    )
    assert len(logprobs) == 3 and np.allclose(states, short, atol=1e-6)


@pytest.mark.parametrize("family", ["bert", "roberta", "electra", "xlnet"])
def test_a_model_that_sees_what_comes_is_refused(family, tmp_path):
    """Its scores would be numbers, and mean nothing."""
    with pytest.raises(AssetError, match=rf"{family}.*masked.*SmolLM2-135M-Instruct"):
        made(family)
    tiny.save(tmp_path, family, "AutoModelForCausalLM")
    with pytest.raises(AssetError, match="masked"):
        CausalLM.load(tmp_path)


@pytest.mark.parametrize("threads", [1, 2, 3, 4])
def test_the_embedded_model_is_causal_on_any_number_of_threads(threads):
    """Threads share a batch's rows, which moves the last digits of their numbers apart."""
    import torch

    from tsteval.models.causal_lm import check_causal

    model = CausalLM.load()
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        check_causal(model)
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_a_masked_language_model_is_refused_as_it_is_published(family, tmp_path):
    tiny.save(tmp_path, family, "AutoModelForMaskedLM")
    with pytest.raises(AssetError, match=r"masked.*SmolLM2-135M-Instruct"):
        CausalLM.load(tmp_path)


@pytest.mark.parametrize("family", ["bert", "electra"])
def test_a_decoder_made_of_an_encoder_is_causal(family):
    assert len(made(family, is_decoder=True).token_logprobs(["the cat sat"])[0].logprobs) == 3


def test_small_weights_hide_nothing():
    with pytest.raises(AssetError, match="masked"):
        made("bert", initializer_range=0.02)


def test_half_of_a_sequence_to_sequence_model_is_refused(tmp_path):
    tiny.save(tmp_path, "bart", "AutoModelForSeq2SeqLM")
    with pytest.raises(AssetError, match="reads one text and writes another"):
        CausalLM.load(tmp_path)


@pytest.mark.parametrize("family", ["mpnet", "distilbert", "deberta"])
def test_an_encoder_is_refused_in_a_sentence(family, tmp_path):
    tiny.save(tmp_path, family, "AutoModelForMaskedLM")
    with pytest.raises(AssetError, match="SmolLM2-135M-Instruct"):
        CausalLM.load(tmp_path)


def test_next_words_are_the_likeliest_words():
    lm = CausalLM.load()
    found = next_words(lm, ["The council met on", "He is a"], k=4)
    assert [len(words) for words in found] == [4, 4] and all(
        word.isalpha() for words in found for word in words
    )
    assert found[1] == next_words(lm, ["He is a"], k=4)[0] and next_words(lm, []) == []
    with pytest.raises(InputError, match="k must be"):
        next_words(lm, ["He"], k=0)


def test_a_task_holds_its_text_and_no_mark_of_it():
    lm = made("llama")
    context = task_tokens(lm, ["the old"], ["cat [SEP] sat"])[0]
    assert (
        lm.tokenizer.sep_token_id not in context
        and context[0] == lm.beginning
        and task_tokens(lm, [], []) == []
    )


def test_prompts_hold_the_text_once():
    assert Prompt.read("a {text} b") == Prompt("a ", " b")
    for wrong in ("no text", "{text}{text}", None):
        with pytest.raises(InputError, match=r"\{text\}"):
            Prompt.read(wrong)


def test_a_tokenizer_without_a_beginning_is_told_one(tmp_path):
    tiny.module("gpt2", "AutoModelForCausalLM").save_pretrained(tmp_path)
    tiny.tokenizer(framed=False).save_pretrained(tmp_path)
    with pytest.raises(InputError, match=r"name one of its tokens as `beginning`"):
        CausalLM.load(tmp_path)
    assert CausalLM.load(tmp_path, beginning="[CLS]").beginning == 2


@pytest.mark.parametrize("family", tiny.DECODERS)
def test_what_comes_next_is_what_a_text_would_get_there(family):
    lm = made(family)
    ids = [
        [lm.beginning, *lm.tokenizer(text, add_special_tokens=False)["input_ids"]]
        for text in tiny.TEXTS
    ]
    found = lm.next_logprobs(ids, [3, 5])
    assert found.shape == (len(ids), 2) and lm.next_logprobs([], [3, 5]).shape == (0, 2)
    for row, values in zip(ids, found):
        with torch.inference_mode():
            expected = lm.model(input_ids=torch.tensor([row])).logits[0, -1].log_softmax(-1)[[3, 5]]
        assert np.allclose(values, expected.numpy(), atol=1e-5)
