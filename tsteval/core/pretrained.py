"""A named model: found, identified by its checksums, and loaded without running its code"""

import functools
import hashlib
import json
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path

from .assets import ASSETS, Asset, AssetError, from_home, packaged_path, read_json
from .fetch import asset_path, unpacked_gguf
from .files import known_sha256


@functools.cache
def hub_reachable(
    timeout: float = 3.0,  # seconds
) -> bool:
    """Whether the Hugging Face hub answers. Asked once a process; if it does not, the hub's offline switch is set."""
    if os.environ.get("HF_HUB_OFFLINE", "").lower() in {"1", "true", "yes", "on"}:
        return False
    import httpx2
    from huggingface_hub import constants

    try:
        httpx2.head(constants.ENDPOINT, timeout=timeout, follow_redirects=True)
        return True
    except httpx2.HTTPError:
        os.environ["HF_HUB_OFFLINE"] = "1"
        # the variable is read at import, which has already happened
        constants.HF_HUB_OFFLINE = True
        return False


_WEIGHTS = (".safetensors", ".gguf", ".bin", "unigrams.txt")
ADAPTER_CONFIG = "adapter_config.json"


def _own_sha256(folder: Path) -> str:
    """One SHA-256 for all weight files of a folder, in the order of their names."""
    files = sorted(path for path in Path(folder).iterdir() if path.name.endswith(_WEIGHTS))
    if not files:
        raise AssetError(f"{folder} holds no model weights (looked for {', '.join(_WEIGHTS)})")
    return _joined_sha256([known_sha256(path) for path in files])


def _joined_sha256(digests: list[str]) -> str:
    return (
        digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()
    )


def _base_name(folder: Path) -> str:
    """The model that an adapter was made for."""
    key = "base_model_name_or_path"
    return read_json(folder / ADAPTER_CONFIG, {key: str})[key]


@dataclass(frozen=True)
class ModelSource:
    """Where a named model is, in the form that transformers' `from_pretrained` takes."""

    name: str  # as the user wrote it
    location: str  # a folder
    options: dict = field(default_factory=dict)  # further arguments of `from_pretrained`
    # what its weights consist of: short name -> SHA-256
    parts: dict[str, str] = field(default_factory=dict)
    fingerprint: str = ""  # SHA-256 of every file that is read: weights, settings, tokenizer
    pinned: bool = False  # whether its files are those that this package names
    base: "ModelSource | None" = None  # of an adapter: the model that it changes

    @property
    def identity(self) -> str:
        """One SHA-256 of all weights."""
        return _joined_sha256(list(self.parts.values())) if self.parts else ""


# endings of files that a model is made of
_READ = (".safetensors", ".gguf", ".json", ".jinja", ".txt", ".model", ".bpe", ".tiktoken")


def locate_model(
    name: str | Path,  # an embedded model, a folder, or a Hugging Face model id
    default: str = "all-MiniLM-L6-v2",  # the embedded model to name in an error
) -> ModelSource:
    """Find a model by name; an embedded one is fetched on first use. What is written as a path is one.

    Raises: AssetError if an embedded model cannot be fetched, or the name is none of the three kinds.
    """
    bare = isinstance(name, str) and Path(name).name == name
    name = str(name)
    if bare and name in ASSETS:
        asset = ASSETS[name]
        return _source(
            name,
            unpacked_gguf(asset) if asset.gguf_file else asset_path(name),
            _pinned_parts(asset),
            pinned=True,
        )
    shipped = packaged_path(name)
    if bare and name and (shipped / ADAPTER_CONFIG).is_file():
        return _source(name, shipped, {name: _own_sha256(shipped)}, pinned=True)
    folder = from_home(name)
    if name and folder.is_dir():
        return _source(name, folder, {folder.resolve().name: _own_sha256(folder)})
    if name.startswith((".", "/", "~")):  # a path, which no hub has
        raise AssetError(f"cannot load {name!r}: there is no such folder on this machine")
    folder = _hub_snapshot(name, default)
    return _source(name, folder, {name: _own_sha256(folder)})


def _pinned_parts(asset: Asset) -> dict[str, str]:
    digests = [digest for name, digest in sorted(asset.digests.items()) if name.endswith(_WEIGHTS)]
    if not digests:
        raise AssetError(f"{asset.name} is no model but a table or a pipeline: {asset.description}")
    return {asset.name: _joined_sha256(digests)}


def _source(name: str, folder: Path, parts: dict[str, str], pinned: bool = False) -> ModelSource:
    files = sorted(path for path in folder.iterdir() if path.name.endswith(_READ))
    digests = [part for path in files for part in (path.name, known_sha256(path))]
    base = locate_model(_base_name(folder)) if (folder / ADAPTER_CONFIG).is_file() else None
    if base:
        digests = [*digests, base.fingerprint]
        parts = parts | base.parts
        pinned = pinned and base.pinned
    fingerprint = hashlib.sha256(json.dumps(digests).encode()).hexdigest()
    return ModelSource(
        name, str(folder), {"local_files_only": True}, parts, fingerprint, pinned, base
    )


def _hub_snapshot(name: str, default: str) -> Path:
    """The folder of a model of the Hugging Face hub, fetched or found in the hub's own cache."""
    reachable = hub_reachable()
    from huggingface_hub import snapshot_download

    try:
        return Path(
            snapshot_download(
                name,
                allow_patterns=[f"*{ending}" for ending in _READ],
                local_files_only=not reachable,
                ignore_patterns=["*.gguf", *(f"*/*{ending}" for ending in _WEIGHTS)],
            )
        )
    except Exception as error:  # the hub's library and the one below it raise what they like
        where = "" if reachable else " and the Hugging Face hub cannot be reached from here"
        first_line = str(error).strip().split("\n")[0]
        raise AssetError(
            f"cannot load {name!r}: it is not an embedded model ({', '.join(ASSETS)}), there is no such "
            f"folder{where}. {first_line} "
            f"To mend it: give a folder that holds the model, or use the embedded default {default!r}."
        ) from error


def _quiet_transformers() -> None:
    """Errors only: loading bars and advice meant for developers are noise to a reader."""
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()


def load_pretrained(
    auto_class,  # a class of transformers with `from_pretrained`
    source: ModelSource,  # from `locate_model`
    default: str,  # the embedded model to name in an error
    **options,  # further arguments of `from_pretrained`
):
    """Load a model or tokenizer. Only safetensors and GGUF weights are read, and no code from the model's repository.

    Raises: AssetError, naming the model, the cause and the embedded default; and under `python -OO`.
    """
    if sys.flags.optimize > 1:
        raise AssetError(
            f"cannot load {source.name!r} under python -OO, which leaves out the docstrings that "
            "transformers reads. To mend it: run python without -OO, and unset PYTHONOPTIMIZE"
        )
    _quiet_transformers()
    try:
        return auto_class.from_pretrained(
            source.location, trust_remote_code=False, **source.options, **options
        )
    except Exception as error:  # damaged files make the libraries below raise whatever they like
        first_line = next(iter(str(error).strip().split("\n")), "")
        raise AssetError(
            f"cannot load {source.name!r} from the folder {source.location}: {type(error).__name__}: {first_line} To "
            f"mend it: "
            f"copy or save the folder again, or use the embedded default {default!r}."
        ) from error
