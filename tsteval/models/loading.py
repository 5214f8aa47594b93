"""What stands between a folder of weights and a module: reading, devices, checksums, one cache, batches by length"""

import hashlib
import json
import logging
import os
import re
import threading
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path

import numpy as np

from ..core.assets import AssetError
from ..core.checks import InputError, check_choice
from ..core.pretrained import ModelSource, load_pretrained

_TOKENIZER_FILES = (
    "tokenizer.json",
    "vocab.txt",
    "vocab.json",
    "tokenizer.model",
    "spiece.model",
    "sentencepiece.bpe.model",
    "tekken.json",
    "tiktoken.model",
)


def read_tokenizer(
    source: ModelSource,  # from `locate_model`; of an adapter, its base model's is read
    default: str,  # the embedded model to name in an error
):  # a tokenizer of transformers
    """Read a model's tokenizer. Raises: AssetError if it is missing or damaged, or knows no word."""
    source = source.base or source
    if not any((Path(source.location) / name).is_file() for name in _TOKENIZER_FILES):
        raise AssetError(
            f"{source.location} holds no tokenizer (looked for {', '.join(_TOKENIZER_FILES)}); without "
            f"its own one a model reads noise. Copy its tokenizer files there, or use the embedded "
            f"default {default!r}"
        )
    from transformers import AutoTokenizer

    with LOADING:
        tokenizer = load_pretrained(AutoTokenizer, source, default)
    words = sorted(set(tokenizer.get_vocab()) - set(tokenizer.all_special_tokens))[:50]
    ids = tokenizer(["the", *words], add_special_tokens=False)["input_ids"] if words else []
    if all(token == tokenizer.unk_token_id for row in ids for token in row):
        raise AssetError(
            f"the tokenizer in {source.location} knows no word: it turns all text into "
            f"{tokenizer.unk_token!r}. Copy "
            f"the model's own tokenizer files there, or use the embedded default {default!r}"
        )
    return tokenizer


LOADING = threading.RLock()  # transformers changes its own globals while it loads, so one at a time
DTYPES = ("float32", "bfloat16", "float16")


def read_module(
    auto_class: str,  # a class of transformers, such as "AutoModel"
    source: ModelSource,  # from `locate_model`; of an adapter, its base model is read
    default: str,  # the embedded model to name in an error
    *,
    dtype: str = "float32",  # of DTYPES
    fresh_head: bool = False,  # True: weights that the task needs and the folder lacks start at random, to be trained
    **options,  # further arguments of `from_pretrained`
):  # a module of PyTorch
    """Read a model's weights. Raises: AssetError if they are damaged, or lack what the class needs."""
    import torch
    import transformers

    source = source.base or source
    with LOADING:
        module, loading_info = load_pretrained(
            getattr(transformers, auto_class),
            source,
            default,
            dtype=getattr(torch, dtype),
            use_safetensors=True,
            output_loading_info=True,
            **options,
        )
    prefix = f"{module.base_model_prefix}."
    body = [
        name
        for name in loading_info["missing_keys"]
        if not re.search(r"(^|\.)pooler\.", name)
        and (auto_class == "AutoModel" or name.startswith(prefix))
    ]
    lacking = (
        body if fresh_head or auto_class == "AutoModel" else sorted(loading_info["missing_keys"])
    )
    if lacking or loading_info["mismatched_keys"]:
        names = ", ".join([*map(str, lacking), *map(str, loading_info["mismatched_keys"])][:3])
        raise AssetError(
            f"{source.name!r} ({source.location}) lacks weights that {auto_class} needs, such as "
            f"{names}; they would be random. Give a model that was trained for this task, or use the "
            f"embedded default {default!r}"
        )
    return module if source.pinned else _in_own_memory(module)


def _in_own_memory(module):
    """The module apart from its file, which would otherwise be its memory: whoever writes into it, changes the
    weights."""
    for tensor in (*module.parameters(), *module.buffers()):
        tensor.data = tensor.data.clone()
    return module


def read_adapter(
    module,  # the base model, from `read_module`
    source: ModelSource,  # of the adapter
    default: str,  # the embedded model to name in an error
):  # the base model with the adapter merged into it
    """Read a LoRA adapter and add it to its base model. Raises: AssetError if it is damaged or incomplete."""
    from peft import PeftModel, get_peft_model_state_dict
    from safetensors import safe_open

    file = Path(source.location) / "adapter_model.safetensors"
    try:
        with LOADING, warnings.catch_warnings():
            # about an attribute that one library renamed; missing weights are looked for below
            warnings.simplefilter("ignore")
            with safe_open(file, "np") as weights:
                weight_names = set(weights.keys())
            adapted = PeftModel.from_pretrained(module, source.location)
            lacking = sorted(
                set(get_peft_model_state_dict(adapted, save_embedding_layers=False)) - weight_names
            )
            if not lacking:
                return adapted.merge_and_unload()
    except Exception as error:  # damaged files make the libraries below raise whatever they like
        first_line = next(iter(str(error).splitlines()), "")
        raise AssetError(
            f"the adapter in {source.location} cannot be read: {type(error).__name__}: {first_line}. "
            f"Save it again, or use "
            f"the embedded default {default!r}"
        ) from error
    raise AssetError(
        f"the adapter in {source.location} lacks weights, such as {', '.join(lacking[:3])}. "
        f"Save it again, or use the embedded default {default!r}"
    )


def find_device(
    device: str = "auto",  # auto | cpu | cuda | cuda:1 ... | mps; auto: the first of cuda, mps, cpu that there is
) -> str:  # as PyTorch names it
    """The device that is meant. Raises: InputError for one that this machine does not have."""
    import torch

    present = [
        *["cuda"] * torch.cuda.is_available(),
        *["mps"] * torch.backends.mps.is_available(),
        "cpu",
    ]
    if device == "auto":
        return present[0]
    kind, _, number = str(device).partition(":")
    check_choice(kind, "device", ("auto", "cpu", "cuda", "mps"))
    if kind not in present or (
        number
        and (kind != "cuda" or not number.isdigit() or int(number) >= torch.cuda.device_count())
    ):
        raise InputError(
            f"device {device!r} is not on this machine, which has {', '.join(present)}; use auto or cpu",
            argument="device",
        )
    return str(device)


def module_sha256(
    module,  # a module of PyTorch
) -> str:  # 64 hexadecimal digits
    """SHA-256 of a module's weights: names, shapes, types and numbers."""
    import torch

    whole = hashlib.sha256()
    for name, tensor in sorted(module.state_dict().items()):
        plain = tensor.detach().cpu().contiguous()
        whole.update(json.dumps([name, str(plain.dtype), list(plain.shape)]).encode())
        whole.update(plain.reshape(-1).view(torch.uint8).numpy().data)
    return whole.hexdigest()


_LOGGER = logging.getLogger("tsteval.models.loading")
_ALIVE = weakref.WeakValueDictionary()  # what was read -> the module, as long as somebody holds it
_KEPT = OrderedDict()
_KEEP = 4  # the modules used last are held here
_HOME = []  # the process in which the first model was made


class LoadedModule:
    """A module with its tokenizer, shared by all models that were loaded from the same files."""

    def __init__(self, module, tokenizer):
        self.module = module.eval()
        self.tokenizer = tokenizer


def load_once(
    key: Hashable,  # of everything that was read
    read: Callable,  # gives module and tokenizer
) -> LoadedModule:
    """What was read under a key, read again only if nobody holds it."""
    loaded = _ALIVE.get(key)
    if loaded is None:
        _LOGGER.info("reading %s", key)
        loaded = _ALIVE[key] = LoadedModule(*read())
    _KEPT[key] = loaded
    _KEPT.move_to_end(key)
    while len(_KEPT) > _KEEP:
        _KEPT.popitem(last=False)
    return loaded


def check_process() -> None:
    """Raise a RuntimeError in a process that was forked from one that holds models."""
    if not _HOME:
        _HOME.append(os.getpid())
    if _HOME[0] != os.getpid():
        raise RuntimeError(
            "this process was forked from one that holds models, whose threads do not survive a fork. "
            "Start it "
            'with multiprocessing.get_context("spawn"), or load models only after the fork'
        )


def token_limit(
    module,  # of transformers
    tokenizer,  # of transformers
    longest: int
    | None,  # tokens at which texts are cut in any case; None: at the model's own limit
) -> int:
    """How many tokens fit."""
    limit = getattr(module.config, "max_position_embeddings", None) or 512
    limit = limit if limit > 0 else 512  # XLNet says -1: it reads texts of any length
    places = next(
        (part for name, part in module.named_modules() if name.endswith("position_embeddings")),
        None,
    )
    if (
        getattr(places, "padding_idx", None) is not None
    ):  # as RoBERTa: positions are counted from behind the padding's
        limit -= places.padding_idx + 1
    return int(min(tokenizer.model_max_length, limit, longest or limit))


def check_vocabulary(
    module,  # of transformers
    tokenizer,  # of transformers
    source: ModelSource,
) -> None:
    """Raise an AssetError if the tokenizer knows more tokens than the module."""
    rows = module.get_input_embeddings().weight.shape[0]
    if tokenizer.vocab_size > rows:
        raise AssetError(
            f"the tokenizer of {source.name!r} ({source.location}) knows {tokenizer.vocab_size:,} tokens "
            f"and its model "
            f"{rows:,}; they do not belong together. Copy the model's own tokenizer files there"
        )


# oneDNN keeps what it prepares for each shape of a product, small pieces that hold the heap open between a batch's large
# arrays; texts have many lengths, and the same few products are prepared again at no cost that could be measured
os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "0")
POSITIONS = (
    1024  # tokens in a batch on a processor, with padding, at most: more are no faster there
)


def positions_within(
    free: int,  # bytes
    number_bytes: int,  # of a number of the model
    config,  # of transformers: the model's sizes
    head: bool = False,  # whether it gives each token a logit for every word
) -> int:  # tokens in a batch with padding, at least 1
    """How many tokens fit into half of the free memory.

    A token takes a state of the model, a key and a value in every layer, and 32 states' room within one: the wide part
    of the layer, its queries and what is added up. A logit takes 8 bytes, itself and its exponential. Attention is that
    of `scaled_dot_product_attention`, which holds no square of the tokens. The other half of the memory is for what
    this leaves out. The formula follows from a model's sizes alone: no graphics card was there to measure it on.
    """
    states = 3 * config.num_hidden_layers + 32
    a_token = number_bytes * states * config.hidden_size + 8 * config.vocab_size * head
    return max(1, free // 2 // a_token)


def batches_by_length(
    lengths: Sequence[int],  # of the rows, ascending
    batch_size: int | None,  # rows in a batch, at most; None: any number
    positions: int,  # tokens in a batch with padding, at most
) -> list[tuple[int, int]]:
    """(first, end) of batches of rows that are sorted by length."""
    bounds = []
    first = 0
    for row in range(1, len(lengths) + 1):
        if (
            row == len(lengths)
            or row - first == batch_size
            or (row - first + 1) * lengths[row] > positions
        ):
            bounds.append((first, row))
            first = row
    return bounds


def as_numbers(
    computed,  # a tensor with a row for each result, or a list of tensors
) -> Sequence[np.ndarray]:
    """Tensors as 64-bit floats on the processor, one a row."""
    if hasattr(computed, "detach"):
        return computed.detach().cpu().double().numpy()
    return [as_numbers(row) if hasattr(row, "detach") else np.asarray(row) for row in computed]
