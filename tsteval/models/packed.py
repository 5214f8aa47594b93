"""Fast matrix products on CPUs with packed weights"""

import threading
import weakref

import torch
from torch.overrides import TorchFunctionMode

SMALLEST = 2**14  # numbers in a weight matrix below which packing saves nothing


def _pack(weight: torch.Tensor) -> torch.Tensor:
    return torch.ops.mkldnn._reorder_linear_weight(weight.detach().contiguous())


class _PackedWeight:
    """A weight matrix in oneDNN's order; its transpose is packed when the first gradient is asked for."""

    def __init__(self, weight: torch.Tensor):
        self.version = weight._version
        self.forward = _pack(weight)
        self._backward = None

    def backward(self, weight: torch.Tensor) -> torch.Tensor:
        """The packed transpose of the same weight."""
        if self._backward is None:
            self._backward = _pack(weight.T)
        return self._backward


BLOCK = 1024  # rows of the activations that are multiplied at once


def _rounded(rows: int) -> int:
    """The next larger number of rows for which a program is kept, in 1..BLOCK."""
    step = 1 if rows <= 16 else 16 if rows <= 128 else 64
    return -(-rows // step) * step


def _multiply(x: torch.Tensor, packed: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    """(..., K) times packed weights (K, N), in blocks of few different sizes."""
    rows = x.reshape(-1, x.shape[-1])
    products = []
    for block in rows.split(BLOCK):
        padded = torch.nn.functional.pad(
            block, (0, 0, 0, _rounded(len(block)) - len(block))
        ).contiguous()
        products.append(
            torch.ops.mkldnn._linear_pointwise(padded, packed, bias, "none", [], "")[: len(block)]
        )
    whole = products[0] if len(products) == 1 else torch.cat(products)
    return whole.reshape(*x.shape[:-1], whole.shape[-1])


class _PackedProduct(torch.autograd.Function):
    """x times packed weights plus bias, with the gradient for x alone."""

    @staticmethod
    def forward(context, x, weight, packed: _PackedWeight, bias):
        context.weight = weight.detach()
        context.packed = packed
        return _multiply(x, packed.forward, bias)

    @staticmethod
    def backward(context, gradient):
        return _multiply(gradient, context.packed.backward(context.weight), None), None, None, None


class PackedProducts(TorchFunctionMode):
    """Within this context, linear layers multiply by packed weights; gradients reach the inputs, not the weights.

    Does nothing where PyTorch has no oneDNN, and for weights that are small, not 32-bit floats, or not on the CPU.
    """

    def __init__(self):
        super().__init__()
        # id of a parameter -> the parameter, and its packed copy
        self.packed: dict[int, tuple[weakref.ref, _PackedWeight]] = {}
        self.stamp: int | None = None  # of the weights that were packed
        self._lock = (
            threading.RLock()
        )  # the same thread may come back, when a parameter goes while another is packed

    def __deepcopy__(self, memo):
        return PackedProducts()

    def __reduce__(self):
        return PackedProducts, ()

    def __torch_function__(self, function, types, arguments=(), keywords=None):
        if function is torch.nn.functional.linear and not keywords and self._suits(*arguments[:2]):
            x, weight, *bias = arguments
            return _PackedProduct.apply(x, weight, self._packed(weight), bias[0] if bias else None)
        return function(*arguments, **(keywords or {}))

    @staticmethod
    def _suits(x: torch.Tensor, weight: torch.Tensor) -> bool:
        return (
            isinstance(weight, torch.nn.Parameter)
            and torch.backends.mkldnn.is_available()
            and x.numel() > 0
            and weight.numel() >= SMALLEST
            and not weight.is_inference()
            and all(t.dtype == torch.float32 and t.device.type == "cpu" for t in (x, weight))
        )

    def _packed(self, weight: torch.Tensor) -> _PackedWeight:
        key = id(weight)
        with self._lock:
            holder, known = self.packed.get(key, (None, None))
            if known is None or holder() is not weight or known.version != weight._version:
                known = _PackedWeight(weight)
                self.packed[key] = weakref.ref(weight, lambda gone: self._drop(key, gone)), known
            return known

    def _drop(self, key: int, gone: weakref.ref) -> None:
        with self._lock:
            if key in self.packed and self.packed[key][0] is gone:
                del self.packed[key]

    def renew(
        self,
        stamp: int,  # that changes with the weights, however they are changed
    ) -> None:
        """Give the packed weights back if they are others by now."""
        if stamp != self.stamp:
            self.forget()
            self.stamp = stamp

    def forget(self) -> None:
        """Give the memory of the packed weights back; the next product packs them again."""
        with self._lock:
            self.packed.clear()
