"""What was read is what is handed out: files, copies and processes are apart."""

import multiprocessing
import os
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from tests.models import tiny
from tsteval.core.checks import InputError
from tsteval.models import loading
from tsteval.models.classifier import StyleClassifier
from tsteval.models.encoder import SentenceEncoder


@pytest.fixture
def folder(tmp_path):
    """One with a tiny classifier."""
    return tiny.save(tmp_path / "model", "bert", hidden_size=128, intermediate_size=256)


def test_a_copy_of_ones_own_may_be_changed(folder):
    loaded = StyleClassifier.load(folder)
    expected = loaded.predict_logits(tiny.TEXTS)
    own = loaded.own()
    assert np.array_equal(own.predict_logits(tiny.TEXTS), expected) and own.made_here
    tag = own.tag
    with torch.no_grad():
        own.model.bert.encoder.layer[0].intermediate.dense.weight.mul_(2)
    assert own.tag != tag and not np.allclose(own.predict_logits(tiny.TEXTS), expected, atol=1e-3)
    assert np.array_equal(loaded.predict_logits(tiny.TEXTS), expected) and not loaded.made_here


def test_a_file_that_is_written_again_does_not_reach_into_a_model_that_was_read(folder):
    """The file was the model's memory: cut short, it ended the program."""
    model = StyleClassifier.load(folder)
    expected = model.predict_logits(tiny.TEXTS)
    file = folder / "model.safetensors"
    file.write_bytes(b"\0" * file.stat().st_size)
    assert np.array_equal(model.predict_logits(tiny.TEXTS), expected)
    file.write_bytes(b"")
    assert np.array_equal(model.predict_logits(tiny.TEXTS), expected)


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
    bounds = loading.batches_by_length(lengths, 3, 50)
    assert [row for first, last in bounds for row in range(first, last)] == list(range(7))
    for first, last in bounds:
        assert last - first <= 3 and (last - first == 1 or (last - first) * lengths[last - 1] <= 50)
    assert loading.batches_by_length([], 3, 50) == []
    assert loading.batches_by_length([2, 2, 2, 2, 9], None, 8) == [(0, 4), (4, 5)]


def test_a_batch_takes_half_of_the_free_memory():
    """Of SmolLM2's sizes: 2 bytes x (3 x 30 + 32) x 576 for the states, and 8 x 49,152 for the logits."""
    sizes = SimpleNamespace(num_hidden_layers=30, hidden_size=576, vocab_size=49_152)
    a_token = 140_544 + 393_216
    assert loading.positions_within(80 * 10**9, 2, sizes, head=True) == 40 * 10**9 // a_token
    assert loading.positions_within(80 * 10**9, 2, sizes) == 40 * 10**9 // 140_544
    assert loading.positions_within(80 * 10**9, 4, sizes) == 40 * 10**9 // 281_088
    assert loading.positions_within(1000, 4, sizes, head=True) == 1


@pytest.mark.parametrize("device", ["toaster", "cpu:3", "cuda:99", ""])
def test_a_device_that_is_not_there_is_refused(device):
    with pytest.raises(InputError, match="device"):
        loading.find_device(device)
