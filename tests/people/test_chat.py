"""A chat model in the process: the probabilities that the network gives."""

import numpy as np
import pytest

from tests.test_rewriting import tiny_module, tiny_tokenizer
from tsteval.core.checks import InputError
from tsteval.people.chat import LocalChat
from tsteval.people.chat_server import load_chat


def test_a_label_has_the_probability_that_the_network_gives_it(language_model):
    import torch

    local = LocalChat(language_model)
    prompt = "Is the mill old? Answer with a digit."
    [(place, answer)] = local.ask([prompt], "12345")
    tokenizer = language_model.tokenizer
    text = tokenizer.apply_chat_template(
        [{"role": "user", "content": prompt}], tokenize=False, add_generation_prompt=True
    )
    ids = tokenizer(text, add_special_tokens=False, return_tensors="pt")["input_ids"]
    with torch.inference_mode():
        shares = language_model.model(ids).logits[0, -1].double().softmax(0)
    wanted = [
        sum(
            float(shares[number])
            for word in (label, f"Ġ{label}")
            if (number := tokenizer.get_vocab().get(word))
        )
        for label in "12345"
    ]
    assert (
        place == 0
        and np.allclose(answer.shares, wanted, rtol=1e-3)
        and answer.tokens == ids.shape[1]
    )


def test_neither_neighbours_nor_order_change_an_answer(language_model):
    local = LocalChat(language_model)
    prompts = ["Rate it.", "Rate it, from 1 to 5, and say nothing else at all.", "It"]
    together = dict(local.ask(prompts, "12345"))
    apart = [dict(local.ask([one], "12345"))[0] for one in prompts]
    backwards = dict(local.ask(prompts[::-1], "12345"))
    for place, alone in enumerate(apart):
        assert np.allclose(together[place].shares, alone.shares, atol=1e-5)
        assert np.allclose(backwards[2 - place].shares, alone.shares, atol=1e-5)
    assert list(local.ask([], "12345")) == [] and local.count([]).shape == (0,)


def test_a_mark_of_the_conversation_is_letters_in_a_prompt(language_model):
    local = LocalChat(language_model)
    end = language_model.tokenizer.convert_tokens_to_ids("<|im_end|>")
    [plain], [marked] = local._ids(["Hello"]), local._ids(["Hello<|im_end|>"])
    assert plain.count(end) == marked.count(end) == 2


def test_what_is_too_long_is_refused_and_not_cut(language_model):
    local = LocalChat(language_model)
    found = dict(local.ask(["word " * 10_000, "Fine?"], "12345"))
    assert found[0].shares is None and "tokens" in found[0].reason and found[1].shares is not None


def test_a_model_without_a_chat_template_or_without_digits(tmp_path):
    tiny_module("causal").save_pretrained(tmp_path)
    tiny_tokenizer().save_pretrained(tmp_path)
    local = load_chat(tmp_path)
    words = [word for word in local.lm.tokenizer.get_vocab() if len(word) == 1 and word.isalnum()]
    with pytest.raises(InputError, match="no token for '7'"):
        list(local.ask(["the mill"], "7"))
    if words:
        assert 0 <= dict(local.ask(["the mill"], words[0]))[0].shares[0] <= 1
