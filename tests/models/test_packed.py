"""Packed products give what plain ones give, for values and gradients, and leave alone what they should."""

import gc
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest
import torch

from tsteval.models.packed import BLOCK, SMALLEST, PackedProducts, _rounded


@pytest.fixture
def layer():
    torch.manual_seed(0)
    return torch.nn.Linear(384, 1536)


@pytest.mark.parametrize(
    "shape", [(384,), (1, 384), (7, 384), (3, 5, 384), (0, 384), (131, 384), (2, BLOCK + 7, 384)]
)
def test_values_and_gradients_equal_plain_ones(layer, shape):
    x = torch.randn(shape, requires_grad=True)
    plain = layer(x)
    packed = PackedProducts()
    with packed:
        fast = layer(x)
    assert torch.allclose(plain, fast, atol=1e-5) and fast.shape == plain.shape
    slopes = [torch.autograd.grad(y.square().sum(), x)[0] for y in (plain, fast)]
    assert torch.allclose(*slopes, rtol=1e-4, atol=1e-4)


def test_a_row_does_not_depend_on_its_batch(layer):
    x = torch.randn(64, 384)
    with torch.inference_mode(), PackedProducts():
        assert torch.allclose(layer(x)[:1], layer(x[:1]), atol=1e-6)


def test_strided_input(layer):
    x = torch.randn(384, 9).T
    with torch.inference_mode(), PackedProducts():
        fast = layer(x)
    assert torch.allclose(fast, layer(x), atol=1e-5)


def test_changed_weights_are_packed_anew(layer):
    packed = PackedProducts()
    x = torch.randn(2, 384)
    with torch.no_grad():
        with packed:
            before = layer(x)
        layer.weight.mul_(3)
        with packed:
            after = layer(x)
    assert torch.allclose(after - layer.bias, 3 * (before - layer.bias), atol=1e-4)
    assert len(packed.packed) == 1


def test_forgotten_weights_are_packed_again(layer):
    x = torch.randn(7, 384)
    packed = PackedProducts()
    with torch.inference_mode(), packed:
        first = layer(x)
        packed.forget()
        assert not packed.packed
        assert torch.equal(layer(x), first) and len(packed.packed) == 1


def test_small_and_double_weights_are_left_alone():
    small = torch.nn.Linear(8, 8)
    double = torch.nn.Linear(384, 384).double()
    assert small.weight.numel() < SMALLEST
    packed = PackedProducts()
    with packed:
        small(torch.randn(2, 8)), double(torch.randn(2, 384).double())
    assert packed.packed == {}


def test_weights_get_no_gradient(layer):
    with PackedProducts():
        layer(torch.randn(2, 384, requires_grad=True)).sum().backward()
    assert layer.weight.grad is None


def test_no_packed_copy_of_a_weight_that_was_made_for_one_product():
    """Sums of a weight and an adapter's change, and transposes, are new in every step: packing them filled the
    memory."""
    weight = torch.nn.Parameter(torch.randn(256, 256))
    packed = PackedProducts()
    with packed, torch.no_grad():
        for _ in range(5):
            merged = weight + torch.randn(256, 256)
            x = torch.randn(3, 256)
            assert torch.allclose(torch.nn.functional.linear(x, merged), x @ merged.T, atol=1e-3)
            torch.nn.functional.linear(x, weight.T)
    assert not packed.packed


def test_packed_copies_go_with_their_weights(layer):
    packed = PackedProducts()
    with packed, torch.inference_mode():
        layer(torch.randn(2, 384))
    assert len(packed.packed) == 1
    layer.weight = torch.nn.Parameter(torch.randn(1536, 384))
    gc.collect()
    assert not packed.packed


def test_training_with_an_adapter_keeps_the_number_of_packed_weights():
    peft = pytest.importorskip("peft")
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(
        vocab_size=50,
        hidden_size=128,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=128,
    )
    model = transformers.BertForSequenceClassification(config)
    model = peft.get_peft_model(
        model, peft.LoraConfig(task_type="SEQ_CLS", r=4, target_modules=["query", "value"])
    )
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    assert all(weight.numel() < SMALLEST for weight in trained)
    optimizer = torch.optim.AdamW(trained, lr=1e-2)
    packed = PackedProducts()
    counts = []
    before = [weight.clone() for weight in trained]
    with packed:
        for step in range(12):
            ids = torch.randint(50, (4, 3 + step))
            loss = model(input_ids=ids, labels=torch.zeros(4, dtype=torch.long)).loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            counts.append(len(packed.packed))
    assert len(set(counts)) == 1 and counts[0] > 0
    assert any(not torch.equal(old, new) for old, new in zip(before, trained))


def test_rows_come_in_few_numbers():
    sizes = {_rounded(rows) for rows in range(1, BLOCK + 1)}
    assert len(sizes) < 40 and max(sizes) == BLOCK
    assert all(_rounded(rows) >= rows for rows in range(1, BLOCK + 1))


@pytest.mark.all
def test_memory_stays_flat_over_products_of_many_shapes():
    """oneDNN keeps a program for each shape: 300 numbers of rows used to take some 200 MB."""
    code = """
import resource, sys, torch
from tsteval.models.packed import PackedProducts
torch.set_num_threads(1)
layer, packed = torch.nn.Linear(384, 384), PackedProducts()
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e3 if sys.platform != "darwin" else 1e6)
with torch.inference_mode(), packed:
    layer(torch.randn(330, 384)), layer(torch.randn(1, 384))
    before = peak()
    for rows in range(20, 320):
        layer(torch.randn(rows, 384))
print(peak() - before)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(run.stdout) < 60, f"{run.stdout} MB"


def test_threads_share_packed_weights(layer):
    x = torch.randn(9, 384)
    packed = PackedProducts()
    with torch.inference_mode():
        expected = layer(x)
    results = []

    def work():
        for _ in range(20):
            with torch.inference_mode(), packed:
                results.append(layer(x))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 80 and len(packed.packed) == 1
    assert all(torch.equal(result, results[0]) for result in results) and torch.allclose(
        results[0], expected, atol=1e-5
    )


def test_a_context_can_be_pickled_and_starts_anew(layer):
    packed = PackedProducts()
    with packed, torch.inference_mode():
        layer(torch.randn(2, 384))
    assert pickle.loads(pickle.dumps(packed)).packed == {} and len(packed.packed) == 1


def test_classifier_probabilities_equal_a_plain_forward_pass(classifier):
    texts = ["The stunning bridge was opened in 1932.", "The bridge was opened in 1932.", ""]
    encoded = classifier.tokenizer(texts, padding=True, return_tensors="pt")
    with torch.inference_mode():
        plain = classifier.model(**encoded).logits.softmax(dim=1).numpy()
    assert np.allclose(classifier.predict_proba(texts), plain, atol=1e-5)
    assert classifier.products.packed, "the packed products were not used"
