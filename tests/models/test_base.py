"""The base of all models: what was read is what the tag says, damage is an AssetError, threads change nothing."""

import json
import multiprocessing
import os
import pickle
import re
import shutil
import threading
import warnings

import numpy as np
import pytest
import torch
import transformers
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from tsteval.core.assets import AssetError
from tsteval.core.checks import InputError, InputTypeError
from tsteval.core.files import file_sha256
from tsteval.core.metric import sign
from tsteval.core.pretrained import locate_model
from tsteval.models import base as core
from tsteval.models import loading
from tsteval.models.base import Model
from tsteval.models.loading import find_device, read_adapter, read_module, read_tokenizer

WORDS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "the",
    "a",
    "cat",
    "dog",
    "sat",
    "ran",
    "on",
    "mat",
    ".",
]


class Head(Model):
    default_name = "tiny"
    auto_class = "AutoModelForSequenceClassification"

    def logits(self, texts, second=None, **options):
        rows = self.map_rows(
            {"texts": texts, "second": second}, lambda batch: self.model(**batch).logits, **options
        )
        return np.array(rows) if rows else np.zeros((0, 2))


def tokenizer_of(words):
    tokenizer = Tokenizer(
        models.WordLevel({word: place for place, word in enumerate(words)}, unk_token="[UNK]")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    if "[CLS]" in words:
        tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token="[UNK]",
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_max_length=32,
    )


def tiny(**changes):
    torch.manual_seed(0)
    settings = {
        "vocab_size": len(WORDS),
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 16,
        "max_position_embeddings": 32,
        "initializer_range": 0.5,
    } | changes
    return transformers.BertForSequenceClassification(transformers.BertConfig(**settings))


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "tiny"
    tiny().save_pretrained(path)
    tokenizer_of(WORDS).save_pretrained(path)
    return path


@pytest.fixture
def adapter(folder, tmp_path):
    peft = pytest.importorskip("peft")
    path = tmp_path / "adapter"
    model = peft.get_peft_model(
        tiny(), peft.LoraConfig(task_type="SEQ_CLS", r=2, target_modules=["query"])
    )
    model.peft_config["default"].base_model_name_or_path = str(folder)
    model.save_pretrained(path, save_embedding_layers=False)
    return path


class Adapted(Head):
    @classmethod
    def _read(cls, source, dtype):
        module = read_module(cls.auto_class, source, cls.default_name, dtype=dtype, fresh_head=True)
        return read_adapter(module, source, cls.default_name), read_tokenizer(
            source, cls.default_name
        )


TEXTS = ["the cat sat .", "a dog ran on the mat", "the", "", "the cat sat ."]


# ---- what is read, and how it is named


def test_a_folder_gives_what_transformers_gives(folder):
    model = Head.load(folder)
    peer = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    with torch.inference_mode():
        expected = np.concatenate(
            [peer(**tokenizer(text, return_tensors="pt")).logits.double().numpy() for text in TEXTS]
        )
    found = model.logits(TEXTS)
    assert found.dtype == np.float64 and np.allclose(found, expected, atol=1e-5)
    assert np.array_equal(found[0], found[4]) and model.logits([]).shape == (0, 2)


@pytest.mark.parametrize("batch_size", [1, 2, 100])
def test_the_size_of_a_batch_changes_nothing(folder, batch_size):
    assert np.allclose(
        Head.load(folder).logits(TEXTS, batch_size=batch_size),
        Head.load(folder).logits(TEXTS),
        atol=1e-6,
    )


def test_identity_is_the_checksum_of_the_file(folder):
    model = Head.load(folder)
    assert model.identity == file_sha256(folder / "model.safetensors")
    assert re.fullmatch(r"tiny@[0-9a-f]{12}\+files@[0-9a-f]{12}", model.tag) and not model.made_here
    assert model.tag in sign("x", model=model)


def test_the_tag_does_not_hold_the_place_of_a_folder(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "elsewhere" / "tiny")
    assert Head.load(tmp_path / "elsewhere" / "tiny").tag == Head.load(folder).tag


def test_a_changed_tokenizer_changes_the_tag(folder):
    before = Head.load(folder)
    tokenizer_of([*WORDS[:5], "dog", "cat", "a", *WORDS[8:]]).save_pretrained(folder)
    after = Head.load(folder)
    assert after.identity == before.identity and after.tag != before.tag


def test_an_adapters_tag_names_every_file_of_weights(folder, adapter):
    model = Adapted.load(adapter)
    assert re.fullmatch(r"adapter@[0-9a-f]{12}\+tiny@[0-9a-f]{12}\+files@[0-9a-f]{12}", model.tag)
    own = locate_model(adapter).identity
    base = tiny(initializer_range=0.1)
    base.save_pretrained(folder)
    assert locate_model(adapter).identity != own == model.identity, (
        "the base's weights are not in the checksum"
    )
    assert Adapted.load(adapter).tag != model.tag


def test_two_models_made_in_memory_are_told_apart():
    one, same, other = (
        Head(tiny(initializer_range=size), tokenizer_of(WORDS), "made") for size in (0.5, 0.5, 0.4)
    )
    assert re.fullmatch("[0-9a-f]{64}", one.identity)
    assert one.identity == same.identity != other.identity and one.tag == same.tag != other.tag
    renamed = Head(tiny(), tokenizer_of([*WORDS[:5], "dog", "cat", "a", *WORDS[8:]]), "made")
    assert renamed.identity == one.identity and renamed.tag != one.tag


def test_changed_weights_change_the_identity(folder):
    model = Head.load(folder).own()
    before = model.identity
    with torch.no_grad():
        model.model.classifier.weight.mul_(2)
    assert model.made_here and model.identity != before and model.tag != Head.load(folder).tag


# ---- one cache


def test_models_of_one_folder_share_a_module_until_one_needs_its_own(folder):
    one = Head.load(folder)
    two = Head.load(folder)
    assert one is not two and one.model is two.model
    own = one.own()
    assert own.model is not one.model
    assert np.array_equal(own.logits(TEXTS), one.logits(TEXTS))
    with torch.no_grad():
        own.model.classifier.weight.zero_()
    assert not np.allclose(own.logits(TEXTS), two.logits(TEXTS))


def test_a_folder_that_changed_is_read_again(folder):
    before = Head.load(folder)
    tiny(initializer_range=0.1).save_pretrained(folder)
    after = Head.load(folder)
    assert after.model is not before.model and after.identity != before.identity
    assert not np.allclose(after.logits(TEXTS), before.logits(TEXTS))


def test_a_full_memory_keeps_what_it_has():
    memory = core.Memory(2)
    memory.keep({"a": 1})
    memory.keep({"b": 2, "c": 3})
    assert memory == {"a": 1, "b": 2}


def test_the_cache_is_bounded(folder, tmp_path):
    for number in range(loading._KEEP + 2):
        shutil.copytree(folder, tmp_path / str(number))
        (tmp_path / str(number) / "note.txt").write_text(str(number))
        Head.load(tmp_path / str(number))
    assert len(loading._KEPT) <= loading._KEEP
    loading._KEPT.clear()
    assert not loading._KEPT


# ---- damage


def write(name, content):
    def damage(folder):
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())

    return damage


def remove(*names):
    def damage(folder):
        for name in names:
            (folder / name).unlink()

    return damage


def edit(name, **changes):
    def damage(folder):
        content = json.loads((folder / name).read_text())
        (folder / name).write_text(json.dumps(content | changes))

    return damage


def truncate(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])


def pickled(folder):
    torch.save(tiny().state_dict(), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


def headless(folder):
    tiny().bert.save_pretrained(folder)


def knows_no_word(folder):
    tokenizer_of(WORDS[:4]).save_pretrained(folder)


def too_many_words(folder):
    tokenizer_of([*WORDS, *(f"word{number}" for number in range(50))]).save_pretrained(folder)


def empty(folder):
    for path in folder.iterdir():
        path.unlink()


DAMAGE = {
    "weights cut short": truncate,
    "weights empty": write("model.safetensors", b""),
    "weights noise": write("model.safetensors", b"noise" * 99),
    "weights missing": remove("model.safetensors"),
    "weights pickled": pickled,
    "head missing": headless,
    "folder empty": empty,
    "config missing": remove("config.json"),
    "config no JSON": write("config.json", "{"),
    "config a list": write("config.json", "[1]"),
    "config bytes": write("config.json", b"\xff\xfe\x00"),
    "config of nothing known": edit("config.json", model_type="no-such-type"),
    "config with a word for a number": edit("config.json", hidden_size="wide"),
    "config of another size": edit("config.json", hidden_size=32),
    "tokenizer missing": remove("tokenizer.json"),
    "tokenizer noise": write("tokenizer.json", "noise"),
    "tokenizer empty": write("tokenizer.json", "{}"),
    "tokenizer a list": write("tokenizer.json", "[]"),
    "tokenizer settings noise": write("tokenizer_config.json", "{"),
    "tokenizer knows no word": knows_no_word,
    "tokenizer of another model": too_many_words,
}


@pytest.mark.parametrize("case", DAMAGE)
def test_a_damaged_folder_is_an_asset_error(folder, case):
    Head.load(folder)
    DAMAGE[case](folder)
    with pytest.raises(AssetError) as caught:
        Head.load(folder)
    assert str(folder) in str(caught.value) and len(str(caught.value)) < 900
    assert re.search("default|again|Copy|copy|folder", str(caught.value))


ADAPTER_DAMAGE = {
    "base gone": lambda folder: shutil.rmtree(
        json.loads((folder / "adapter_config.json").read_text())["base_model_name_or_path"]
    ),
    "base unnamed": edit("adapter_config.json", base_model_name_or_path=None),
    "config noise": write("adapter_config.json", "{"),
    "config a list": write("adapter_config.json", "[]"),
    "weights missing": remove("adapter_model.safetensors"),
    "weights noise": write("adapter_model.safetensors", b"noise" * 99),
    "kind unknown": edit("adapter_config.json", peft_type="NO_SUCH"),
}


@pytest.mark.parametrize("case", ADAPTER_DAMAGE)
def test_a_damaged_adapter_is_an_asset_error(adapter, case, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    Adapted.load(adapter)
    ADAPTER_DAMAGE[case](adapter)
    with pytest.raises(AssetError):
        Adapted.load(adapter)


def test_an_adapter_without_its_head_is_refused(adapter):
    from safetensors.numpy import load_file, save_file

    file = adapter / "adapter_model.safetensors"
    save_file(
        {name: numbers for name, numbers in load_file(file).items() if "classifier" not in name},
        file,
    )
    with pytest.raises(AssetError, match=r"classifier.*Save it again"):
        Adapted.load(adapter)


def test_an_adapter_is_no_encoder(adapter):
    with pytest.raises(AssetError, match="is an adapter"):
        Model.load(adapter)


def test_a_missing_head_may_start_fresh_for_training(folder):
    headless(folder)
    source = locate_model(folder)
    with pytest.raises(AssetError, match=r"lacks weights.*classifier"):
        read_module("AutoModelForSequenceClassification", source, "tiny")
    assert read_module(
        "AutoModelForSequenceClassification", source, "tiny", fresh_head=True
    ).classifier.weight.shape == (2, 16)


def test_a_language_model_is_no_classifier():
    """Its head would be random: p = 0.717 at one load and 0.477 at the next, under one signature."""
    with pytest.raises(AssetError, match=r"lacks weights.*score"):
        Head.load("SmolLM2-135M-Instruct")


@pytest.mark.parametrize(
    "name", ["web-ngrams", "en_core_web_sm", "no/such-model", "./no-such-folder", ""]
)
def test_a_name_that_is_no_model(name, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    core.locate_model.__globals__["hub_reachable"].cache_clear()
    with pytest.raises(AssetError):
        Head.load(name)
    core.locate_model.__globals__["hub_reachable"].cache_clear()


# ---- devices and numbers


def test_devices_are_those_of_this_machine(folder):
    cuda = torch.cuda.is_available()
    mps = torch.backends.mps.is_available()
    assert (
        find_device("auto") == ("cuda" if cuda else "mps" if mps else "cpu")
        and find_device("cpu") == "cpu"
    )
    for device, present in (("cuda", cuda), ("mps", mps)):
        if present:
            on_it = Head.load(folder, device=device)
            assert on_it.device.type == device
            assert np.allclose(
                on_it.logits(TEXTS), Head.load(folder, device="cpu").logits(TEXTS), atol=1e-4
            )
        else:
            with pytest.raises(InputError, match=f"{device}.*not on this machine"):
                Head.load(folder, device=device)
    with pytest.raises(InputError, match="device"):
        Head.load(folder, device="toaster")


def test_inputs_go_to_the_models_device(folder):
    """On a machine without a graphics card, PyTorch's own stand-in device shows that nothing stays behind."""
    model = Head.load(folder).own()
    seen = []
    model.model.to("meta")
    model.map_rows(
        {"texts": ["the cat"]},
        lambda batch: (
            seen.append({part.device.type for part in batch.values()}) or [torch.zeros(1)]
        ),
    )
    assert seen == [{"meta"}]


def test_dtype(folder):
    half = Head.load(folder, dtype="bfloat16")
    assert (
        half.dtype == "bfloat16"
        and half.tag.endswith("+bfloat16")
        and half.logits(TEXTS).dtype == np.float64
    )
    assert np.allclose(half.logits(TEXTS), Head.load(folder).logits(TEXTS), atol=0.3)
    with pytest.raises(InputError, match="dtype"):
        Head.load(folder, dtype="int8")


# ---- texts


def test_cut_texts_are_said_once_with_their_number_and_at_the_callers_line(folder):
    model = Head.load(folder)
    texts = ["the " * 40, "the " * 40, "the cat", "a " * 50]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.logits(texts, batch_size=1)
    messages = [str(warning.message) for warning in caught]
    assert (
        messages == [f"3 of 4 texts cut at 32 tokens, the limit of {folder}"]
        and caught[0].filename == __file__
    )


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(st.sampled_from(["cat", "mat", "zebra", "😀", "."]), max_size=4)))
def test_a_text_is_readable_where_a_word_is_known(folder, texts):
    model = Head.load(folder)
    unknown = [bool({"zebra", "😀"} & {*words}) for words in texts]
    readable = [
        bool(words) and (not strange or bool({"cat", "mat"} & {*words}))
        for words, strange in zip(texts, unknown)
    ]
    rows = [" ".join(words) for words in texts]
    with core.collected_unread() as unread:
        assert model.readable(rows).tolist() == readable
        assert model.readable(rows, rows).tolist() == readable
    assert set(unread["unknown"]) == {(row,) for row, strange in zip(rows, unknown) if strange}


def test_no_warning_where_nothing_is_cut(folder):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Head.load(folder).logits(["the " * 30])


@pytest.mark.parametrize("texts", [None, "the cat", 3, b"the", {"a": 1}])
def test_what_is_no_list_of_texts(folder, texts):
    with pytest.raises(InputTypeError, match="texts"):
        Head.load(folder).map_rows({"texts": texts if texts is not None else [None]}, None)


def test_rows_that_are_no_text_are_named(folder):
    with pytest.raises(InputTypeError, match=r"second, row 1:"):
        Head.load(folder).logits(["a", "a"], second=["a", None])
    with pytest.raises(InputError, match="same number of rows"):
        Head.load(folder).logits(["a", "a"], second=["a"])


def test_generators_are_taken(folder):
    model = Head.load(folder)
    assert np.array_equal(model.logits(map(str, TEXTS)), model.logits(TEXTS))


@pytest.mark.parametrize("batch_size", [0, -1, 1.5, True, "2"])
def test_batch_sizes_are_checked(folder, batch_size):
    with pytest.raises(InputError, match="batch_size"):
        Head.load(folder).logits(TEXTS, batch_size=batch_size)


def test_batches_keep_to_the_number_of_positions(folder):
    seen = []
    lengths = [5, 100, 3, 3, 40, 2, 7]
    results = Head.load(folder).in_batches(
        lengths,
        lambda rows: seen.append(rows) or [torch.tensor(lengths[row]) for row in rows],
        batch_size=3,
        positions=50,
    )
    assert [int(result) for result in results] == lengths
    assert (
        sorted(row for rows in seen for row in rows) == list(range(7)) and max(map(len, seen)) <= 3
    )
    for rows in seen:
        assert len(rows) == 1 or len(rows) * max(lengths[row] for row in rows) <= 50


def test_a_processor_s_batches_hold_so_many_positions_and_a_card_s_what_is_free(
    folder, monkeypatch
):
    """No card is there: PyTorch's answers about one are put in its place, 40,000 bytes free and 20,000 held back."""
    model = Head.load(folder, device="cpu")
    assert model.positions == loading.POSITIONS == 1024
    seen = []
    model.in_batches(
        [100] * 25, lambda rows: seen.append(len(rows)) or [torch.zeros(1) for _ in rows]
    )
    assert seen == [10, 10, 5]
    monkeypatch.setattr(Head, "device", torch.device("cuda"))
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (40_000, 80_000))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: 30_000)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: 10_000)
    assert model.positions == loading.positions_within(60_000, 4, model.model.config)
    assert model.positions < loading.POSITIONS


@pytest.mark.parametrize(
    ("place", "dtype", "expected"),
    [
        ("cpu", None, "float32"),
        ("mps", None, "float32"),
        ("cuda", None, "bfloat16"),
        ("cuda:1", None, "bfloat16"),
        ("cuda", "float32", "float32"),
        ("cpu", "bfloat16", "bfloat16"),
    ],
)
def test_a_language_model_is_read_in_16_bits_where_a_card_is_there(
    place, dtype, expected, monkeypatch
):
    from tsteval.fluency import CausalLM

    class Asked(Exception):
        pass

    def asked(key, read):
        raise Asked(*key[2:])

    monkeypatch.setattr(core, "find_device", lambda device: place)
    monkeypatch.setattr(core, "load_once", asked)
    with pytest.raises(Asked) as caught:
        CausalLM.load(dtype=dtype)
    assert caught.value.args == (place, expected)
    if dtype is None:
        with pytest.raises(Asked) as caught:
            Head.load("all-MiniLM-L6-v2")
        assert caught.value.args == (place, "float32")


def test_attention_holds_no_square_of_the_tokens():
    from tsteval.cps import SentenceEncoder
    from tsteval.fluency import CausalLM
    from tsteval.style import StyleClassifier

    for kind in (CausalLM, SentenceEncoder, StyleClassifier):
        assert kind.load().model.config._attn_implementation == "sdpa"


# ---- threads and processes


def in_threads(work, n=4):
    results = [None] * n
    errors = []

    def run(number):
        try:
            results[number] = work()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors
    return results


def test_four_threads_give_what_one_gives(folder):
    model = Head.load(folder)
    texts = [" ".join(WORDS[4 : 4 + n % 9]) + " " + "cat " * n for n in range(12)]
    expected = model.logits(texts, batch_size=3)
    for results in in_threads(lambda: [model.logits(texts, batch_size=3) for _ in range(25)]):
        assert all(np.array_equal(result, expected) for result in results)


def test_threads_that_load_get_one_module(folder):
    loading._KEPT.clear()
    loaded = in_threads(lambda: Head.load(folder))
    assert len({id(model.model) for model in loaded}) == 1


def score_in_child(model, queue):
    try:
        queue.put(model.logits(["the cat"]).tolist())
    except RuntimeError as error:
        queue.put(str(error))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_process_says_what_to_do(folder):
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = context.Process(target=score_in_child, args=(Head.load(folder), queue))
        child.start()
    message = queue.get(timeout=60)
    child.join()
    assert "spawn" in message


def test_a_model_travels_by_name_and_checksum(folder, monkeypatch):
    monkeypatch.chdir(folder.parent)
    model = Head.load("tiny")
    packet = pickle.dumps(model)
    assert len(packet) < 2000
    monkeypatch.chdir("/")
    copy = pickle.loads(packet)
    assert (
        copy.tag == model.tag
        and copy.name == "tiny"
        and np.array_equal(copy.logits(TEXTS), model.logits(TEXTS))
    )


def test_a_packet_refuses_other_weights(folder):
    packet = pickle.dumps(Head.load(folder))
    tiny(initializer_range=0.1).save_pretrained(folder)
    with pytest.raises(AssetError, match="other files"):
        pickle.loads(packet)


def test_a_model_made_in_memory_asks_to_be_saved(folder):
    with pytest.raises(pickle.PicklingError, match="save it"):
        pickle.dumps(Head(tiny(), tokenizer_of(WORDS), "made"))
    own = Head.load(folder).own()
    with torch.no_grad():
        own.model.classifier.weight.mul_(2)
    with pytest.raises(pickle.PicklingError, match="save it"):
        pickle.dumps(own)


# ---- the package's own classes, as soon as they stand on this base


def packages_models():
    from tsteval.cps import SentenceEncoder
    from tsteval.fluency import CausalLM
    from tsteval.style import StyleClassifier

    scores = {
        "predict_proba": StyleClassifier,
        "encode": SentenceEncoder,
        "token_logprobs": CausalLM,
    }
    return [
        pytest.param(
            kind,
            score,
            id=kind.__name__,
            marks=[] if issubclass(kind, Model) else pytest.mark.skip("not on this base yet"),
        )
        for score, kind in scores.items()
    ]


def numbers(result):
    return np.concatenate([np.ravel(getattr(row, "logprobs", row)) for row in result])


@pytest.mark.all
@pytest.mark.parametrize("kind, score", packages_models())
def test_four_threads_give_what_one_gives_with_the_embedded_models(kind, score):
    model = kind.load()
    texts = [
        "The stunning bridge was opened in 1932.",
        "A short one.",
        "It rained.",
        "She said that the committee would meet again soon.",
    ]
    n_calls = 3 if score == "token_logprobs" else 10
    expected = numbers(getattr(model, score)(texts, batch_size=2))
    for results in in_threads(
        lambda: [numbers(getattr(model, score)(texts, batch_size=2)) for _ in range(n_calls)]
    ):
        assert all(np.array_equal(result, expected) for result in results)


@pytest.mark.parametrize("kind, score", packages_models())
def test_the_embedded_models_travel_and_sign(kind, score):
    model = kind.load()
    copy = pickle.loads(pickle.dumps(model))
    assert (
        copy.model is model.model
        and copy.tag == model.tag
        and "@" in model.tag
        and "files@" not in model.tag
    )
    with pytest.raises(InputError, match="batch_size"):
        getattr(model, score)(["a"], batch_size=-1)
    assert np.array_equal(
        numbers(getattr(model, score)(x for x in ["It rained.", "a"])),
        numbers(getattr(model, score)(["It rained.", "a"])),
    )
