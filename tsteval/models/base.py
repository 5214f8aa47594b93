"""The base of all models: loaded by name, known by its weights, run in batches"""

import contextlib
import copy
import hashlib
import json
import pickle
import re
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from tsteval.models.loading import (
    DTYPES,
    LOADING,
    POSITIONS,
    LoadedModule,
    as_numbers,
    batches_by_length,
    check_process,
    check_vocabulary,
    find_device,
    load_once,
    module_sha256,
    positions_within,
    read_module,
    read_tokenizer,
    token_limit,
)

from ..core.assets import AssetError, from_home
from ..core.checks import check_choice, check_equal_lengths, check_number, tokenizable
from ..core.pretrained import ModelSource, locate_model

_TOKENIZING = threading.Lock()  # a fast tokenizer cannot be set and used at once


@dataclass(frozen=True)
class Rows:
    """Texts as token ids, each distinct row once."""

    distinct: list[
        tuple[str, ...]
    ]  # D distinct rows; one text each, or several for a model of pairs
    places: np.ndarray  # (N,) for each row that was given, its place in `distinct`
    encoded: Mapping[str, list]  # what the tokenizer gives: name -> D lists
    lengths: list[int]  # D, in tokens


class Memory(dict):
    """Results of rows that may be met again in a later call, up to `size` of them. A full one keeps what it has: where
    systems follow each other in a table, the sources come round in one order, and whoever forgets the oldest forgets
    what comes next."""

    def __init__(self, size: int):
        self.size = size

    def keep(
        self,
        results: Mapping,  # row -> its result
    ) -> None:
        """Take in as many as there is room for."""
        self.update(list(results.items())[: max(0, self.size - len(self))])


class Model:
    """A neural network with its tokenizer: loaded by name, known by its weights, run in batches on one device.

    Models of one name share their weights. A model that you change in place keeps the name and checksum that it had, so
    change an `own` copy.
    """

    default_name = "all-MiniLM-L6-v2"  # what `load` takes if no name is given
    auto_class = "AutoModel"  # the class of transformers that reads it
    card_dtype = "float32"  # in which numbers it computes on a graphics card, if nobody says
    longest: int | None = None  # tokens at which texts are cut; None: the model's own limit
    # of a run over many blocks, whose texts come back
    memory: Memory | None = None

    def __init__(
        self,
        model,  # a module of PyTorch, with a `config` as in transformers
        tokenizer,  # of transformers
        name: str,  # for messages and signatures
        identity: str = "",  # SHA-256 of the weights, where it is known; empty: computed when asked for
    ):
        check_process()
        self.model = model.eval()
        self.tokenizer = tokenizer
        self.name = str(name)
        self.max_tokens = token_limit(model, tokenizer, self.longest)
        self._own_limit = self.max_tokens
        self._identity = identity or ""
        self._source: ModelSource | None = None
        self._loaded: LoadedModule | None = None  # keeps what was read in the cache
        self._asked_device = "auto"

    @classmethod
    def load(
        cls,
        # an embedded model, a folder, or a Hugging Face model id; None: the class's default
        name: str | Path | None = None,
        *,
        device: str = "auto",  # auto | cpu | cuda | mps
        # float32 | bfloat16 | float16; None: float32, and on a graphics card the class's `card_dtype`
        dtype: str | None = None,
    ):
        """Load a model by name. Raises: AssetError if it cannot be had; InputError for a device that is not there."""
        place = find_device(device)
        if dtype is None:
            dtype = cls.card_dtype if place.startswith("cuda") else "float32"
        check_choice(dtype, "dtype", DTYPES)
        check_process()
        with LOADING:
            source = locate_model(cls.default_name if name is None else name, cls.default_name)
            loaded = load_once(
                (cls, source.fingerprint, place, dtype), lambda: cls._placed(source, place, dtype)
            )
            model = cls(loaded.module, loaded.tokenizer, source.name, source.identity)
            model._source = source
            model._loaded = loaded
            model._asked_device = device
            model._settle(source)
        return model

    @classmethod
    def _placed(cls, source: ModelSource, place: str, dtype: str):
        """Module and tokenizer, looked at and on their device."""
        module, tokenizer = cls._read(source, dtype)
        check_vocabulary(module, tokenizer, source)
        return module.to(place), tokenizer

    @classmethod
    def _read(cls, source: ModelSource, dtype: str):
        """Module and tokenizer from files. A subclass that reads otherwise overrides this."""
        if source.base:
            raise AssetError(
                f"{source.name!r} is an adapter, which {cls.__name__} cannot read; load "
                f"{source.base.name!r}, for which it "
                f"was made, or the embedded default {cls.default_name!r}"
            )
        module = read_module(cls.auto_class, source, cls.default_name, dtype=dtype)
        return module, read_tokenizer(source, cls.default_name)

    def _settle(self, source: ModelSource) -> None:
        """Called once after loading. A subclass that keeps settings of its own beside the weights reads them here."""

    @property
    def device(self):
        """Where the weights are, as PyTorch names it."""
        return next(self.model.parameters()).device

    @property
    def dtype(self) -> str:
        """In which numbers it computes: float32 | bfloat16 | float16."""
        return str(next(self.model.parameters()).dtype).removeprefix("torch.")

    @property
    def made_here(self) -> bool:
        """Whether it was made in memory, or is an `own` copy, so that no file has its weights for certain."""
        return self._source is None

    @property
    def identity(self) -> str:
        """SHA-256 of all weights: of the files they were read from, or of the numbers as they are now if they were made
        here."""
        return self._identity or module_sha256(self.model)

    @property
    def tag(self) -> str:
        """Name and checksum for signatures: each file of weights with 12 digits, settings that this package does not
        pin, and where texts are cut if not at the model's own limit."""
        identity = self.identity
        parts = self._source.parts if self._source else {self.name: identity}
        tags = [
            f"{re.sub(r'[|@+:]|[^!-~]', '_', name)}@{digest[:12]}" for name, digest in parts.items()
        ]
        if self._source is None:
            tags.append(f"settings@{_settings_sha256(self)[:12]}")
        elif not self._source.pinned:
            tags.append(f"files@{self._source.fingerprint[:12]}")
        cut = [f"{self.max_tokens}tokens"] * (self.max_tokens != self._own_limit)
        return "+".join([*tags, *[self.dtype] * (self.dtype != "float32"), *cut])

    @property
    def positions(self) -> int:
        """Tokens that a batch may hold, with padding: what fits into a graphics card's free memory (see
        `positions_within`), and on any other device POSITIONS."""
        if self.device.type != "cuda":
            return POSITIONS
        import torch

        free = (
            torch.cuda.mem_get_info(self.device)[0]
            + torch.cuda.memory_reserved(self.device)  # what PyTorch holds back for itself
            - torch.cuda.memory_allocated(self.device)
        )
        head = self.model.get_output_embeddings() is not None
        weight = next(self.model.parameters())
        return positions_within(free, weight.element_size(), self.model.config, head)

    def own(self):
        """The same model with a module of its own, for code that changes weights."""
        other = copy.copy(self)
        other.model = copy.deepcopy(self.model)
        other._loaded = None
        other.memory = None
        other._identity = ""
        other._source = None
        return other

    def __copy__(self):
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        return other

    def __deepcopy__(self, memo):
        return self.own()

    def __reduce__(self):
        if self.made_here:
            raise pickle.PicklingError(
                f"the model {self.name!r} was made or changed in memory, and a model travels "
                f"by name and "
                "checksum; save it into a folder and load it from there first"
            )
        address = (
            str(from_home(self.name).resolve()) if from_home(self.name).is_dir() else self.name
        )
        address = self.name if self._source.pinned else address
        return (
            _unpickle,
            (
                type(self),
                address,
                self.name,
                self._source.fingerprint,
                self._asked_device,
                self.dtype,
            ),
            {"max_tokens": self.max_tokens},
        )

    def tokenize(
        self,
        *columns: list[str],  # texts, and for pairs their second texts
        **options,  # further arguments of the tokenizer
    ):  # a BatchEncoding
        """What the tokenizer gives; safe in threads, where the tokenizer itself is not."""
        with _TOKENIZING:
            return self.tokenizer(*columns, **options)

    def encode_rows(
        self,
        # the caller's name -> N texts; None is left out, but for the first
        columns: Mapping[str, Iterable[str] | None],
        # tokens at which a text is cut, at most what the model can read; None: `max_tokens`
        max_length: int | None = None,
        **options,  # further arguments of the tokenizer
    ) -> Rows:
        """Check texts, find the distinct rows, and turn them into token ids; a warning counts texts that were cut.

        Raises: InputTypeError for a row that is no string; InputError for columns of unequal length.
        """
        column_texts = {
            name: tokenizable(texts, name)
            for place, (name, texts) in enumerate(columns.items())
            if texts is not None or place == 0
        }
        check_equal_lengths(**column_texts)
        rows = list(zip(*column_texts.values()))
        numbers = {row: number for number, row in enumerate(dict.fromkeys(rows))}
        places = np.array([numbers[row] for row in rows], dtype=int)
        if not rows:
            return Rows([], places, {}, [])
        limit = (
            self.max_tokens
            if max_length is None
            else min(max_length, token_limit(self.model, self.tokenizer, None))
        )
        encoded = self.tokenize(
            *map(list, zip(*numbers)), truncation=True, max_length=limit, **options
        )
        cut = np.array(
            [bool(encoding.overflowing) for encoding in encoded.encodings or []]
            or [False] * len(numbers)
        )
        if count := int(cut[places].sum()):
            _tell(
                f"{count} of {len(rows)} texts cut at {limit} tokens, the limit of {self.name}",
                "cut",
                {row: limit for row, number in numbers.items() if cut[number]},
            )
        return Rows(list(numbers), places, encoded, [len(ids) for ids in encoded["input_ids"]])

    @property
    def _unknown_id(self) -> int | None:
        """The token that stands for whatever the tokenizer does not know; None: it knows every character."""
        tokenizer = self.tokenizer
        unknown = tokenizer.unk_token_id
        return None if unknown in (tokenizer.bos_token_id, tokenizer.eos_token_id) else unknown

    def readable(
        self,
        *columns: Iterable[str],  # N texts each
        empty: bool = False,  # whether a text without tokens counts as readable
    ) -> np.ndarray:  # (N,)
        """Whether something is read of each text of a row: not of one that has unknown tokens and beside them no letter or
        digit. A warning counts texts with unknown tokens. Raises: InputTypeError for a row that is no string."""
        texts = [text for column in columns for text in tokenizable(column)]
        distinct = [*dict.fromkeys(texts)]
        lower = getattr(self, "lower_case", False)
        ids = (
            self.tokenize(
                [text.lower() if lower else text for text in distinct],
                add_special_tokens=False,
                verbose=False,
            )["input_ids"]
            if distinct
            else []
        )
        unknown = {text: row.count(self._unknown_id) for text, row in zip(distinct, ids)}
        if count := sum(unknown[text] > 0 for text in texts):
            _tell(
                f"{count} of {len(texts)} texts hold words or characters that {self.name} does not "
                "know, and reads all alike",
                "unknown",
                {(text,): number for text, number in unknown.items() if number},
            )
        answers = {text: self._reads(row) if row else empty for text, row in zip(distinct, ids)}
        rows = np.array([answers[text] for text in texts], dtype=bool)
        return rows.reshape(len(columns), -1).all(axis=0)

    def _reads(self, ids: list[int]) -> bool:
        unknown = self._unknown_id
        if unknown not in ids:
            return True
        pieces = self.tokenizer.convert_ids_to_tokens([id for id in ids if id != unknown])
        return any(map(str.isalnum, "".join(pieces)))

    def pad(
        self,
        encoded: Mapping[str, list],  # from `encode_rows`
        rows: Sequence[int],  # which of them
    ) -> dict[str, Any]:  # tensors on the model's device, padded to one length
        """A batch for the model."""
        names = [name for name in encoded if name in self.tokenizer.model_input_names]
        # at the end, where no position is moved by it, but for a model such as XLNet, which reads the last one
        side = "left" if getattr(self.model.config, "summary_type", "") == "last" else "right"
        batch = self.tokenizer.pad(
            {name: [encoded[name][row] for row in rows] for name in names},
            return_tensors="pt",
            padding_side=side,
        )
        return {name: tensor.to(self.device) for name, tensor in batch.items()}

    @contextlib.contextmanager
    def running(
        self,
        *,
        gradients: bool = False,  # whether gradients are wanted
    ):
        """A context in which the model may be called. Raises: RuntimeError in a process that was forked from this
        one."""
        import torch

        check_process()
        with torch.set_grad_enabled(True) if gradients else torch.inference_mode():
            yield

    def in_batches(
        self,
        lengths: Sequence[int],  # (D,) of the rows to score, in tokens
        compute: Callable[
            [list[int]], Any
        ],  # row numbers -> one result a row: a tensor, or a list of tensors
        *,
        batch_size: int | None = None,  # rows at once, at most; None: as many as `positions` hold
        positions: int
        | None = None,  # tokens at once with padding, at most, a longer row alone; None: the model's own
        progress: bool = False,  # show a bar
        desc: str = "scoring",  # beside the bar
    ) -> list[np.ndarray]:  # D results as 64-bit floats, in the order of `lengths`
        """Score rows in batches of similar length. Raises: InputError for a batch size below 1; as `running`."""
        check_batch_size(batch_size)
        positions = self.positions if positions is None else positions
        order = sorted(range(len(lengths)), key=lengths.__getitem__)
        results: list = [None] * len(order)
        for first, last in tqdm(
            batches_by_length([lengths[row] for row in order], batch_size, positions),
            desc=desc,
            disable=not progress,
        ):
            rows = order[first:last]
            with self.running():
                computed = compute(rows)
            for row, result in zip(rows, as_numbers(computed), strict=True):
                results[row] = result
        return results

    def map_rows(
        self,
        # the caller's name -> N texts; None is left out, but for the first
        columns: Mapping[str, Iterable[str] | None],
        # a batch of tensors -> one result a row: a tensor, or a list of tensors
        compute: Callable[[dict[str, Any]], Any],
        *,
        max_length: int | None = None,  # tokens at which a text is cut; None: `max_tokens`
        batch_size: int | None = None,
        progress: bool = False,
        desc: str = "scoring",
    ) -> list[np.ndarray]:  # N results as 64-bit floats
        """Score texts: each distinct row once, in batches of similar length. Raises: as `encode_rows` and
        `in_batches`."""
        check_batch_size(batch_size)
        rows = self.encode_rows(columns, max_length)
        memory = Memory(0) if self.memory is None else self.memory
        keys = [(desc, max_length, row) for row in rows.distinct]
        new = [number for number, key in enumerate(keys) if key not in memory]
        made = self.in_batches(
            [rows.lengths[number] for number in new],
            lambda chosen: compute(self.pad(rows.encoded, [new[place] for place in chosen])),
            batch_size=batch_size,
            progress=progress,
            desc=desc,
        )
        fresh = {keys[number]: result for number, result in zip(new, made)}
        results = [fresh[key] if key in fresh else memory[key] for key in keys]
        memory.keep(fresh)
        return [results[place] for place in rows.places]


def check_batch_size(
    batch_size: int
    | None,  # rows that a model reads at once, at most; None: as many as its memory holds
) -> None:
    """Raise an InputError for a batch size that is no whole number from 1 upwards."""
    if batch_size is not None:
        check_number(batch_size, "batch_size", 1, whole=True)


def _settings_sha256(model: Model) -> str:
    """Of what decides a score beside the weights: the configuration and the tokenizer."""
    config = {
        name: value
        for name, value in model.model.config.to_dict().items()
        if name not in ("transformers_version", "_name_or_path")
    }
    backend = getattr(model.tokenizer, "backend_tokenizer", None)
    words = backend.to_str() if backend else json.dumps(model.tokenizer.get_vocab(), sort_keys=True)
    return hashlib.sha256(
        json.dumps([config, words], sort_keys=True, default=str).encode("utf-8", "replace")
    ).hexdigest()


def _unpickle(cls, address: str, name: str, fingerprint: str, device: str, dtype: str):
    model = cls.load(address, device=device, dtype=dtype)
    if model._source.fingerprint != fingerprint:
        raise AssetError(
            f"the model {name!r} was pickled with other files than those that are here now "
            f"({model._source.location}); copy the same model to this machine"
        )
    model.name = name
    return model


def warn_caller(
    message: str,
    category: type[Warning] = UserWarning,
) -> None:
    """Warn, and point at the line outside this package that called into it."""
    frame = sys._getframe(1)
    level = 2
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("tsteval."):
        frame = frame.f_back
        level = level + 1
    warnings.warn(message, category, stacklevel=level)


UNREAD = ("cut", "unknown")  # what a model may not read of a text: its end, or some of its words
_UnreadRows = dict[str, dict[tuple[str, ...], int]]
_COLLECTED: ContextVar[_UnreadRows | None] = ContextVar("unread", default=None)  # of this thread


@contextlib.contextmanager
def collected_unread() -> Iterator[_UnreadRows]:
    """Within the block, texts of which a model does not read all are listed, and not warned of: under "cut" with the
    tokens at which they were cut, under "unknown" with the number of unknown tokens."""
    rows: _UnreadRows = {kind: {} for kind in UNREAD}
    token = _COLLECTED.set(rows)
    try:
        yield rows
    finally:
        _COLLECTED.reset(token)


def _tell(message: str, kind: str, rows: Mapping[tuple[str, ...], int]) -> None:
    listed = _COLLECTED.get()
    if listed is None:
        warn_caller(message)
    else:
        listed[kind].update(rows)
