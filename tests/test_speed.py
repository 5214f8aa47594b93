"""Packed products give what plain ones give, for values and gradients, and leave alone what they should."""

import numpy as np
import pytest
import torch

from tsteval.core.speed import SMALLEST, PackedProducts


@pytest.fixture
def layer():
    torch.manual_seed(0)
    return torch.nn.Linear(384, 1536)


@pytest.mark.parametrize("shape", [(384,), (1, 384), (7, 384), (3, 5, 384), (0, 384)])
def test_values_and_gradients_equal_plain_ones(layer, shape):
    x = torch.randn(shape, requires_grad=True)
    plain, packed = layer(x), PackedProducts()
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
    packed, x = PackedProducts(), torch.randn(2, 384)
    with torch.no_grad():
        with packed:
            before = layer(x)
        layer.weight.mul_(3)
        with packed:
            after = layer(x)
    assert torch.allclose(after - layer.bias, 3 * (before - layer.bias), atol=1e-4)
    assert len(packed.packed) == 1


def test_forgotten_weights_are_packed_again(layer):
    x, packed = torch.randn(7, 384), PackedProducts()
    with torch.inference_mode(), packed:
        first = layer(x)
        packed.forget()
        assert not packed.packed
        assert torch.equal(layer(x), first) and len(packed.packed) == 1


def test_small_and_double_weights_are_left_alone():
    small, double = torch.nn.Linear(8, 8), torch.nn.Linear(384, 384).double()
    assert small.weight.numel() < SMALLEST
    packed = PackedProducts()
    with packed:
        small(torch.randn(2, 8)), double(torch.randn(2, 384).double())
    assert packed.packed == {}


def test_weights_get_no_gradient(layer):
    with PackedProducts():
        layer(torch.randn(2, 384, requires_grad=True)).sum().backward()
    assert layer.weight.grad is None


def test_classifier_probabilities_equal_a_plain_forward_pass(classifier):
    texts = ["The stunning bridge was opened in 1932.", "The bridge was opened in 1932.", ""]
    encoded = classifier.tokenizer(texts, padding=True, return_tensors="pt")
    with torch.inference_mode():
        plain = classifier.model(**encoded).logits.softmax(dim=1).numpy()
    assert np.allclose(classifier.predict_proba(texts), plain, atol=1e-5)
    assert classifier.products.packed, "the packed products were not used"
