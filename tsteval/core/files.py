"""Files written whole or not at all, locks, checksums, what is read once, and pickles that run nothing"""

import contextlib
import errno
import functools
import hashlib
import io
import json
import os
import pickle
import re
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from .checks import InputError


@contextlib.contextmanager
def whole_file(
    path: Path | str,  # of a file, in an existing folder
) -> Iterator[Path]:  # of an empty file beside it, to be written
    """A file that takes its name when the block ends well, and is gone when it does not. A link is followed; a device
    or pipe is written to as it is. Raises: OSError that names the file; an earlier file of the name is then
    unharmed."""
    name = str(path)
    path = Path(os.path.realpath(path))
    temporary = None
    if path.exists() and not path.is_file():
        yield path
        return
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:40]}-")
        os.close(handle)
        yield Path(temporary)
        with open(temporary, "r+b") as file:
            os.fsync(file.fileno())
        os.chmod(temporary, path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException as error:
        if temporary:
            Path(temporary).unlink(missing_ok=True)
        if isinstance(error, OSError) and (not temporary or error.filename in (None, temporary)):
            raise OSError(error.errno, error.strerror or str(error), name) from error
        raise


def _umask() -> int:
    """Which permissions the user withholds from new files."""
    umask = os.umask(0o077)  # which can only be read by being set
    os.umask(umask)
    return umask


def write_whole(
    path: Path | str,  # a file in an existing folder
    content: str | bytes,  # of a text, half a surrogate pair becomes "?"
) -> None:
    """Write a file completely or not at all. Raises: as `whole_file`."""
    with whole_file(path) as temporary:
        _write(temporary, content)


def _write(path: Path, content: str | bytes) -> None:
    path.write_bytes(content.encode("utf-8", "replace") if isinstance(content, str) else content)


def file_stem(
    name: str,  # from a table, such as that of a criterion
) -> str:  # letters, digits, spaces, "-" and "_"; another one, and unlike all others, where the name has more
    """A name from a table as the beginning of a file's name, which never leads out of a folder."""
    clean = re.sub(r"[^\w -]", "_", name).strip()[:80]
    if clean == name and clean:
        return clean
    return f"{clean}-{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


_MARKER = (
    ".tsteval.json"  # in a folder: the files that this package wrote there, with their checksums
)


def _written_here(folder: Path) -> dict[str, list[str]]:
    """File -> SHA-256 of what this package wrote; empty where it wrote nothing."""
    try:
        files = json.loads((folder / _MARKER).read_text(encoding="utf-8"))["files"]
        return {str(name): list(map(str, checksums)) for name, checksums in files.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _marker(checksums: Mapping[str, list[str]]) -> bytes:
    return json.dumps({"files": checksums}, indent=1).encode()


def write_set(
    folder: Path | str,  # made if it is not there, with the folders above it
    files: Mapping[str, str | bytes],  # name -> content
) -> None:
    """Write files that belong together: all of them, or none. They take the place of the set that was written to the
    folder before; every other file stays.

    Raises: as `check_free`; OSError that names the file. The folder is then as it was.
    """
    folder = Path(folder)
    contents = {
        name: content.encode("utf-8", "replace") if isinstance(content, str) else content
        for name, content in files.items()
    }
    checksums = {name: [hashlib.sha256(content).hexdigest()] for name, content in contents.items()}
    if folder.is_dir():
        with locked(folder / ".tsteval.lock"):
            return _replace_set(folder, contents, checksums)
    contents[_MARKER] = _marker(checksums)
    folder.parent.mkdir(parents=True, exist_ok=True)
    staging = _staged(folder.parent, contents)
    try:
        os.rename(staging, folder)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise


_STAGING = ".tsteval-new-"
_ASIDE = ".tsteval-old-"
_DAY = 86_400


def _sweep(place: Path, prefix: str) -> None:
    """Remove what somebody left behind who was killed; what a living one needs is not a day old."""
    for left in place.glob(f"{prefix}*"):
        with contextlib.suppress(OSError):
            if time.time() - left.stat().st_mtime > _DAY:
                shutil.rmtree(left, ignore_errors=True)


def _staged(place: Path, files: Mapping[str, bytes]) -> Path:
    """A new folder with all the files in it."""
    _sweep(place, _STAGING)
    try:
        staging = Path(tempfile.mkdtemp(dir=place, prefix=_STAGING))
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(place)) from error
    try:
        for name, content in files.items():
            try:
                (staging / name).write_bytes(content)
                with open(staging / name, "r+b") as file:
                    os.fsync(file.fileno())
            except OSError as error:
                raise OSError(error.errno, error.strerror, name) from error
        os.chmod(staging, 0o777 & ~_umask())
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise
    return staging


def check_unread(
    path: Path | str,  # of a file that is to be written
    inputs: Iterable[Path | str | None],  # files that are read; None and "-" are none
) -> None:
    """Raise an InputError for a file that would be written over what was read."""
    for name in inputs:
        if name in (None, "-") or not Path(name).exists() or not Path(path).exists():
            continue
        if os.path.samefile(path, name):
            raise InputError(
                "is read, and would be written over; name another place for the output",
                file=str(path),
            )


def check_free(
    folder: Path | str,
    names: Iterable[str],  # of files that are to be written there by `write_set`
) -> None:
    """Raise an InputError for a file in the way that this package did not write, or that somebody changed since."""
    folder = Path(folder)
    ours = _written_here(folder)
    for name in names:
        path = folder / name
        if path.is_dir():
            why = "there is a folder of this name"
        elif not path.exists():
            continue
        elif name not in ours:
            why = "there is a file of this name, and nothing says that tsteval wrote it"
        elif file_sha256(path) not in ours[name]:
            why = "the file was changed since tsteval wrote it"
        else:
            continue
        raise InputError(f"{why}; move it away, or name another folder", file=str(path))


def _replace_set(
    folder: Path, files: Mapping[str, bytes], checksums: Mapping[str, list[str]]
) -> None:
    check_free(folder, files)
    ours = _written_here(folder)
    earlier = {
        name
        for name in ours
        if (folder / name).is_file() and file_sha256(folder / name) in ours[name]
    }
    staging = _staged(folder, files)
    aside = Path(tempfile.mkdtemp(dir=folder, prefix=_ASIDE))
    moved = []
    put = []
    both = {name: ours.get(name, []) + checksums.get(name, []) for name in {**ours, **checksums}}
    try:
        write_whole(
            folder / _MARKER, _marker(both)
        )  # so that a kill leaves no file that is nobody's
        for path in sorted(folder.iterdir()):
            if path.name in files or path.name in earlier:
                moved.append(path.name)
                os.rename(path, aside / path.name)
        for name in files:
            put.append(name)
            os.rename(staging / name, folder / name)
        write_whole(folder / _MARKER, _marker(checksums))
    except BaseException:
        for name in put:
            if (folder / name).exists():
                os.rename(folder / name, staging / name)
        for name in moved:
            if (aside / name).exists():
                os.rename(aside / name, folder / name)
        os.rmdir(aside)  # never with something in it
        if ours:
            write_whole(folder / _MARKER, _marker(ours))
        else:
            (folder / _MARKER).unlink(missing_ok=True)
        raise
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    shutil.rmtree(aside, ignore_errors=True)
    _sweep(folder, _ASIDE)


@contextlib.contextmanager
def locked(
    path: Path | str,  # of the lock: a file that nobody else needs, in an existing folder
    wait: bool = True,  # until it is free
) -> Iterator[None]:
    """Keep other processes out while the block runs. Raises: BlockingIOError that names the process which holds the
    lock, if we are not to wait; OSError where it cannot be made."""
    from filelock import FileLock, Timeout

    path, lock = Path(path), FileLock(path, timeout=-1 if wait else 0)
    try:
        lock.acquire()
    except Timeout:
        raise BlockingIOError(
            errno.EWOULDBLOCK, f"held by {_holder(path) or 'unknown'}", str(path)
        ) from None
    except NotImplementedError:  # a file system without locks
        yield
        return
    try:
        holder = _holder(path)
        if not holder or holder.startswith("process "):  # else the library keeps its own there
            with contextlib.suppress(OSError):
                path.write_text(f"process {os.getpid()}")
        yield
    finally:
        if os.name != "nt":
            _remove(path)  # while it is still ours
        lock.release()
        if os.name == "nt":
            _remove(path)  # which fails where somebody has it open


def _holder(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""  # such as on Windows, where a locked file cannot be read


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()


def file_sha256(
    path: Path | str,  # any file
) -> str:  # 64 hexadecimal digits
    """SHA-256 of a file.

    Raises: OSError if it cannot be read.
    """
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def known_sha256(
    path: Path | str,  # any file
) -> str:  # 64 hexadecimal digits
    """SHA-256 of a file, remembered until the file changes. Raises: OSError if it cannot be read."""
    state = os.stat(path)
    # may yet change within one tick of the clock
    if time.time_ns() - max(state.st_mtime_ns, state.st_ctime_ns) < 2_000_000_000:
        return file_sha256(path)
    return _remembered_sha256(
        str(path), state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino
    )


@functools.lru_cache(maxsize=4096)
def _remembered_sha256(path: str, *state: int) -> str:
    return file_sha256(path)


_Value = TypeVar("_Value")
_reading = threading.RLock()  # reading one thing may need another


def _state(path: Path) -> tuple:
    """Size and time of change of a file, or of every file of a folder."""
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    states = [file.stat() for file in files]
    return tuple(
        (str(file), state.st_size, state.st_mtime_ns) for file, state in zip(files, states)
    )


def read_once(
    path: Path | str,  # a file or folder
    read: Callable[[Path], _Value],  # a function with a name: what it makes is kept under it
) -> _Value:  # shared by all who ask, so nobody may change it
    """What `read` makes of a path: read when first asked for, and again when a file has changed. Raises: as `read`."""
    path = Path(path)
    with _reading:  # two threads that ask at once wait for one reading
        return _read(path, read, _state(path))


@functools.lru_cache(maxsize=16)
def _read(path: Path, read: Callable[[Path], _Value], state: tuple) -> _Value:
    return read(path)


class _Shell:
    """Stands where a file names a class of some library: holds its data, runs none of its code."""


class _DataUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str):
        import numpy as np

        if name == "_reconstruct" and module.endswith("core.multiarray"):
            return np.empty(0).__reduce__()[0]  # wherever this numpy keeps it
        if module == "numpy" and name in ("ndarray", "dtype", "float64"):
            return getattr(np, name)
        return type(name, (_Shell,), {})


def read_pickled_data(
    path: Path | str,  # the file
    sha256: str,  # of the whole file, hexadecimal
):
    """Data from a pickle that is known, without running any code that it names.

    Raises: InputError if the file is not the one that was pinned.
    """
    content = Path(path).read_bytes()
    if hashlib.sha256(content).hexdigest() != sha256:
        raise InputError("this is not the file that was pinned; fetch it again", file=str(path))
    return _DataUnpickler(io.BytesIO(content)).load()
