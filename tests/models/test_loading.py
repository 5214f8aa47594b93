"""What was read is what is handed out: changes of weights are seen however they are made, files and processes are
apart."""

import multiprocessing
import os

import numpy as np
import pytest
import torch

from tests.models import tiny
from tsteval.core.checks import InputError
from tsteval.models import loading
from tsteval.models.base import Memory
from tsteval.models.classifier import StyleClassifier
from tsteval.models.encoder import SentenceEncoder


@pytest.fixture
def folder(tmp_path):
    """One with weights that are large enough to be packed."""
    return tiny.save(tmp_path / "model", "bert", hidden_size=128, intermediate_size=256)


CHANGES = {
    "one number": lambda weight: weight.data.view(-1)[5].add_(1e-6),
    "all": lambda weight: weight.data.mul_(2),
    "other memory": lambda weight: setattr(weight, "data", weight.data * 2),
    "rows that change places": lambda weight: weight.data.copy_(weight.data.flip(0)),
    "numpy": lambda weight: np.negative(weight.detach().numpy(), out=weight.detach().numpy()),
    "counted": lambda weight: torch.no_grad()(weight.mul_)(2),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_module_is_never_under_the_name_of_its_files(folder, change):
    before = StyleClassifier.load(folder)
    expected = before.predict_logits(tiny.TEXTS)
    tag = before.tag
    CHANGES[change](before.model.bert.encoder.layer[0].intermediate.dense.weight)
    assert before.changed and before.tag != tag
    after = StyleClassifier.load(folder)
    assert after.model is not before.model and after.tag == tag and not after.changed
    assert np.array_equal(after.predict_logits(tiny.TEXTS), expected)


@pytest.mark.parametrize(
    "change", ["all", "other memory", "rows that change places", "numpy", "counted"]
)
def test_packed_weights_and_memories_follow_a_change(folder, change):
    model = StyleClassifier.load(folder).own()
    model.memory = Memory(100)
    before = model.predict_logits(tiny.TEXTS)
    assert model.products.packed or not torch.backends.mkldnn.is_available()
    CHANGES[change](model.model.bert.encoder.layer[0].intermediate.dense.weight)
    after = model.predict_logits(tiny.TEXTS)
    with torch.inference_mode():
        ids = [torch.tensor([model.tokenizer(text)["input_ids"]]) for text in tiny.TEXTS]
        plain = np.concatenate([model.model(input_ids=row).logits.numpy() for row in ids])
    assert not np.allclose(before, after, atol=1e-3) and np.allclose(after, plain, atol=1e-3)


def test_a_change_taken_back_is_none(folder):
    model = StyleClassifier.load(folder)
    tag = model.tag
    weight = model.model.classifier.weight
    weight.data.add_(1)
    assert model.changed
    weight.data.copy_(StyleClassifier.load(folder).model.classifier.weight)
    assert not model.changed and model.tag == tag


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_stamps_tell_any_bit_in_any_place(dtype):
    layer = torch.nn.Linear(257, 129).to(getattr(torch, dtype))
    seen = {loading.weights_stamp(layer)}
    for place in (0, 1, 256, 257, 8191, 8192, 257 * 129 - 1):
        kept = layer.weight.data.view(-1)[place].clone()
        layer.weight.data.view(-1)[place] += 1
        seen.add(loading.weights_stamp(layer))
        layer.weight.data.view(-1)[place] = kept
    assert len(seen) == 8 and loading.weights_stamp(layer) in seen


def test_a_file_that_is_written_again_does_not_reach_into_a_model_that_was_read(folder):
    """The file was the model's memory: cut short, it ended the program."""
    model = StyleClassifier.load(folder)
    expected = model.predict_logits(tiny.TEXTS)
    file = folder / "model.safetensors"
    file.write_bytes(b"\0" * file.stat().st_size)
    model.products.forget()
    assert np.array_equal(model.predict_logits(tiny.TEXTS), expected)
    file.write_bytes(b"")
    assert np.array_equal(model.predict_logits(tiny.TEXTS), expected) and not model.changed


def test_a_folder_that_cannot_be_written_is_read(folder):
    """It stays as it was: no file is added, none touched."""
    expected = StyleClassifier.load(folder).predict_logits(tiny.TEXTS)
    loading._ALIVE.clear()
    for path in (*folder.iterdir(), folder):
        path.chmod(0o555 if path.is_dir() else 0o444)
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    try:
        assert np.array_equal(StyleClassifier.load(folder).predict_logits(tiny.TEXTS), expected)
        assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before
    finally:
        folder.chmod(0o755)


# ---- threads and processes


@pytest.mark.parametrize(
    "kind, auto_class, score",
    [
        (StyleClassifier, "AutoModelForSequenceClassification", "predict_proba"),
        (SentenceEncoder, "AutoModel", "encode"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*does not say how")
def test_the_number_of_threads_changes_nothing(kind, auto_class, score, tmp_path):
    tiny.save(tmp_path, "bert", auto_class, hidden_size=128, intermediate_size=256)
    model = kind.load(tmp_path)
    before = torch.get_num_threads()
    found = []
    try:
        for threads in (1, 2, (os.cpu_count() or 1) + 3):
            torch.set_num_threads(threads)
            model.products.forget()
            found.append(getattr(model, score)(tiny.TEXTS * 8))
    finally:
        torch.set_num_threads(before)
    for other in found[1:]:
        assert np.allclose(other, found[0], rtol=0, atol=1e-6)


def score_in_child(model, queue):
    queue.put((model.tag, model.predict_proba(tiny.TEXTS).tolist()))


@pytest.mark.ci
def test_a_model_travels_into_a_spawned_process_with_other_threads(folder, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    model = StyleClassifier.load(folder)
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    child = context.Process(target=score_in_child, args=(model, queue))
    child.start()
    tag, found = queue.get(timeout=120)
    child.join()
    assert tag == model.tag and np.allclose(
        found, model.predict_proba(tiny.TEXTS), rtol=0, atol=1e-6
    )


# ---- batches


def test_batches_hold_every_row_once_and_keep_their_bounds():
    lengths = sorted([5, 100, 3, 3, 40, 2, 7])
    bounds = loading.batches_by_length(lengths, 3, 50, apart=4)
    assert [row for first, last in bounds for row in range(first, last)] == list(range(7))
    for first, last in bounds:
        assert last - first <= 3 and (last - first == 1 or (last - first) * lengths[last - 1] <= 50)
        assert len({length > 4 for length in lengths[first:last]}) == 1
    assert loading.batches_by_length([], 3, None) == []


@pytest.mark.parametrize("device", ["toaster", "cpu:3", "cuda:99", ""])
def test_a_device_that_is_not_there_is_refused(device):
    with pytest.raises(InputError, match="device"):
        loading.find_device(device)
