"""Files are whole or not there, locks keep others out, and a checksum is that of the file as it is now."""

import errno
import hashlib
import multiprocessing
import os
import pickle
import stat
import subprocess
import sys
import time

import numpy as np
import pytest

from tsteval.core import files
from tsteval.core.checks import InputError
from tsteval.core.files import file_stem, locked, whole_file, write_set, write_whole

# ---- one file


@pytest.mark.parametrize(
    "content, found",
    [("text\r\n", b"text\r\n"), (b"\x00\xff", b"\x00\xff"), ("half \ud83d", b"half ?"), ("", b"")],
)
def test_a_file_holds_what_was_written(tmp_path, content, found):
    (tmp_path / "a").write_text("earlier")
    write_whole(tmp_path / "a", content)
    assert (tmp_path / "a").read_bytes() == found and [
        path.name for path in tmp_path.iterdir()
    ] == ["a"]
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o644 or os.name != "posix"


def test_the_bytes_reach_the_disk_before_the_name_does(tmp_path, monkeypatch):
    done = []
    sync = os.fsync
    replace = os.replace
    monkeypatch.setattr(os, "fsync", lambda handle: (done.append("sync"), sync(handle)))
    monkeypatch.setattr(os, "replace", lambda *paths: (done.append("name"), replace(*paths)))
    write_whole(tmp_path / "a", "text")
    assert done == ["sync", "name"]


@pytest.mark.parametrize(
    "error",
    [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt(), ValueError("x")],
)
def test_a_writing_that_fails_leaves_what_was_there(tmp_path, error):
    write_whole(tmp_path / "a", "earlier")
    with pytest.raises(type(error)) as caught, whole_file(tmp_path / "a") as fresh:
        fresh.write_text("half")
        raise error
    assert (tmp_path / "a").read_text() == "earlier" and [
        path.name for path in tmp_path.iterdir()
    ] == ["a"]
    if isinstance(error, OSError):
        assert caught.value.filename == str(tmp_path / "a")


def test_a_link_stays_a_link_and_a_device_a_device(tmp_path):
    (tmp_path / "real").write_text("earlier")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_whole(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real").read_text() == "new"
    write_whole(os.devnull, "nothing")
    assert not os.path.isfile(os.devnull) and os.path.exists(os.devnull)
    with pytest.raises(IsADirectoryError):
        write_whole(tmp_path, "text")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "real"]


def test_a_folder_that_is_not_there_is_told_by_the_name_of_the_file(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        write_whole(tmp_path / "none" / "a", "text")
    assert caught.value.filename == str(tmp_path / "none" / "a")


def test_a_trouble_with_another_file_is_not_blamed_on_this_one(tmp_path):
    with pytest.raises(FileNotFoundError) as caught, whole_file(tmp_path / "a") as fresh:
        fresh.write_bytes((tmp_path / "source").read_bytes())
    assert caught.value.filename == str(tmp_path / "source")


@pytest.mark.skipif(
    os.name != "posix" or os.geteuid() == 0, reason="the administrator may write anywhere"
)
def test_a_folder_that_cannot_be_written_to_is_told(tmp_path):
    tmp_path.chmod(0o555)
    try:
        with pytest.raises(PermissionError) as caught:
            write_whole(tmp_path / "a", "text")
    finally:
        tmp_path.chmod(0o755)
    assert caught.value.filename == str(tmp_path / "a")


def _write_often(path, letter):
    for _ in range(50):
        write_whole(path, letter * 100_000)


def test_two_writers_never_mix(tmp_path):
    """Both write under one name, and whoever reads finds one of them, whole."""
    write_whole(tmp_path / "a", "x" * 100_000)
    writers = [
        multiprocessing.get_context("spawn").Process(
            target=_write_often, args=(tmp_path / "a", letter)
        )
        for letter in "yz"
    ]
    for writer in writers:
        writer.start()
    found = set()
    while any(writer.is_alive() for writer in writers):
        found.add((tmp_path / "a").read_text())
    for writer in writers:
        writer.join()
    assert all(writer.exitcode == 0 for writer in writers)
    assert all(len(text) == 100_000 and len(set(text)) == 1 for text in found)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


# ---- sets of files


def names(folder):
    """The files in a folder but those that say which are ours."""
    return {
        path.name: path.read_text()
        for path in folder.iterdir()
        if not path.name.startswith(".tsteval")
    }


def test_a_set_replaces_the_earlier_one_and_nothing_else(tmp_path):
    out = tmp_path / "new" / "out"
    write_set(out, {"a.csv": "1", "report.md": "1"})
    (out / "mine.txt").write_text("mine")
    write_set(out, {"a.csv": "2"})
    assert names(out) == {"a.csv": "2", "mine.txt": "mine"} and [
        path.name for path in out.parent.iterdir()
    ] == ["out"]


@pytest.mark.parametrize("at", range(6))
def test_a_set_that_fails_anywhere_changes_nothing(tmp_path, monkeypatch, at):
    out = tmp_path / "out"
    rename = os.rename
    calls = []

    def failing(*paths):
        calls.append(paths)
        if len(calls) == at + 1:
            raise OSError(28, "No space left on device")
        rename(*paths)

    write_set(out, {"a": "1", "b": "1", "report.md": "1"})
    monkeypatch.setattr(os, "rename", failing)
    try:
        write_set(out, {"a": "2", "b": "2"})
    except OSError:
        assert names(out) == {"a": "1", "b": "1", "report.md": "1"}
    else:
        assert at == 5 and names(out) == {"a": "2", "b": "2"}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills a copy of the process")
@pytest.mark.parametrize("at", range(6))
def test_a_set_that_is_killed_anywhere_is_never_mixed(tmp_path, monkeypatch, at):
    out = tmp_path / "out"
    rename = os.rename
    calls = []
    write_set(out, {"a": "1", "b": "1", "report.md": "1"})
    if not (child := os.fork()):

        def killed(*paths):
            calls.append(paths)
            if len(calls) == at + 1:
                os._exit(9)
            rename(*paths)

        os.rename = killed
        write_set(out, {"a": "2", "b": "2"})
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    seen = {path.name: path.read_text() for path in out.iterdir() if path.name[0] != "."}
    assert len(set(seen.values())) <= 1 and status == (0 if at == 5 else 9)
    earlier = [path.name for path in out.rglob("*") if path.is_file() and path.read_text() == "1"]
    assert sorted(earlier) == ["a", "b", "report.md"] or seen == {"a": "2", "b": "2"}
    for path in out.glob(".tsteval-*"):
        os.utime(path, (0, 0))
    write_set(out, {"a": "3", "b": "3"})
    assert names(out) == {"a": "3", "b": "3"}  # and what was left behind is swept a day later


def test_a_disk_that_is_full_is_named_with_the_file(tmp_path):
    write_set(tmp_path / "out", {"a": "1"})
    program = (
        "import resource, signal, sys; from tsteval.core.files import write_set\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (1000, "
        "1000))\n"
        "try: write_set(sys.argv[1], {'a': '2', 'large': 'x' * 2000})\n"
        "except OSError as error: print(error.filename)"
    )
    for folder in ("out", "fresh"):
        done = subprocess.run(
            [sys.executable, "-c", program, str(tmp_path / folder)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stdout == "large\n", done.stderr
    assert names(tmp_path / "out") == {"a": "1"} and [path.name for path in tmp_path.iterdir()] == [
        "out"
    ]


def test_files_that_somebody_else_wrote_or_changed_are_never_replaced(tmp_path):
    (tmp_path / "theirs.csv").write_text("theirs")
    with pytest.raises(
        InputError, match=r"theirs\.csv: there is a file .* nothing says that tsteval wrote it"
    ):
        write_set(tmp_path, {"a.csv": "1", "theirs.csv": "2"})
    assert names(tmp_path) == {"theirs.csv": "theirs"}
    write_set(tmp_path, {"a.csv": "1", "b.csv": "1"})
    (tmp_path / "b.csv").write_text("filled")
    with pytest.raises(InputError, match="was changed since tsteval wrote it"):
        write_set(tmp_path, {"a.csv": "2", "b.csv": "2"})
    write_set(tmp_path, {"a.csv": "2"})  # and one that somebody changed does not go away either
    assert names(tmp_path) == {"a.csv": "2", "b.csv": "filled", "theirs.csv": "theirs"}


def test_files_of_a_private_user_stay_private(tmp_path):
    before = os.umask(0o077)
    try:
        write_set(tmp_path / "new", {"a": "1"})
        write_whole(tmp_path / "b", "1")
    finally:
        os.umask(before)
    for path in (tmp_path / "new", tmp_path / "new" / "a", tmp_path / "b"):
        assert path.stat().st_mode & 0o077 == 0
    (tmp_path / "b").chmod(0o640)
    write_whole(tmp_path / "b", "2")
    assert (tmp_path / "b").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("name", ["../../evil", "/etc/x", "..", "", "a/b", "a\\b", "a.b", "\x00"])
def test_a_name_from_a_table_never_leads_out_of_a_folder(name):
    stem = file_stem(name)
    assert stem and not set(stem) & set("/\\.\x00") and stem != file_stem(name + "x")
    assert file_stem("meaning kept") == "meaning kept"


def test_a_folder_in_the_place_of_a_file_is_left_alone(tmp_path):
    (tmp_path / "out" / "a").mkdir(parents=True)
    with pytest.raises(InputError, match="there is a folder of this name"):
        write_set(tmp_path / "out", {"a": "1"})
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["a"]


def test_a_set_may_hold_bytes(tmp_path):
    write_set(tmp_path / "out", {"a.png": b"\x89PNG\r\n", "b.txt": "b"})
    assert (tmp_path / "out" / "a.png").read_bytes() == b"\x89PNG\r\n"


# ---- locks

HOLD = (
    "import sys, time; from tsteval.core.files import locked\n"
    "with locked(sys.argv[1]): print('held', flush=True); time.sleep(60)"
)


def test_a_lock_keeps_another_process_out_until_it_ends_however_it_ends(tmp_path):
    lock = tmp_path / ".lock"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(lock)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(BlockingIOError) as caught, locked(lock, wait=False):
            pytest.fail("two hold it")
        assert caught.value.strerror == (
            f"held by process {holder.pid}" if os.name == "posix" else "held by unknown"
        )
    finally:
        holder.kill()
        holder.wait()
    with locked(lock, wait=False):
        pass
    assert not list(tmp_path.iterdir())


def test_who_waits_gets_the_lock_when_it_is_free(tmp_path):
    lock = tmp_path / ".lock"
    started = time.monotonic()
    code = HOLD.replace("60", "1")
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(lock)], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout.readline() == "held\n"
    with locked(lock):
        assert time.monotonic() - started < 60
    assert holder.wait() == 0


def _count(folder):
    for _ in range(25):
        with locked(folder / ".lock"):
            known = int((folder / "count").read_text())
            time.sleep(0.001)
            (folder / "count").write_text(str(known + 1))


def test_nothing_is_counted_twice_although_the_locks_file_comes_and_goes(tmp_path):
    (tmp_path / "count").write_text("0")
    counters = [
        multiprocessing.get_context("spawn").Process(target=_count, args=(tmp_path,))
        for _ in range(3)
    ]
    for counter in counters:
        counter.start()
    for counter in counters:
        counter.join()
    assert (tmp_path / "count").read_text() == "75" and not (tmp_path / ".lock").exists()


def test_an_error_inside_lets_go_of_the_lock(tmp_path):
    with pytest.raises(BlockingIOError, match="own"), locked(tmp_path / ".lock"):
        raise BlockingIOError(1, "own")
    with locked(tmp_path / ".lock", wait=False):
        pass
    (tmp_path / "file").touch()
    with pytest.raises(OSError), locked(tmp_path / "file" / ".lock", wait=False):
        pass


# ---- checksums


def test_a_checksum_is_that_of_the_bytes(tmp_path):
    content = bytes(range(256)) * 10_000
    (tmp_path / "a").write_bytes(content)
    assert files.file_sha256(tmp_path / "a") == hashlib.sha256(content).hexdigest()
    with pytest.raises(FileNotFoundError):
        files.known_sha256(tmp_path / "b")


def test_a_checksum_is_remembered_until_the_file_changes(tmp_path, monkeypatch):
    path = tmp_path / "file"
    read = []
    path.write_bytes(b"one")
    os.utime(path, (1, 1))
    monkeypatch.setattr(
        files.time, "time_ns", lambda: time.time() * 1e9 + 1e10
    )  # the file looks ten seconds old
    original = files.file_sha256
    monkeypatch.setattr(files, "file_sha256", lambda path: read.append(path) or original(path))
    assert (
        files.known_sha256(path) == files.known_sha256(path) == hashlib.sha256(b"one").hexdigest()
        and len(read) == 1
    )
    path.write_bytes(b"two")
    os.utime(path, (1, 1))
    assert files.known_sha256(path) == hashlib.sha256(b"two").hexdigest()


# ---- read once


def test_a_table_that_changed_is_read_again(tmp_path):
    path = tmp_path / "table"
    readings = []

    def read(file):
        readings.append(file)
        return file.read_text()

    path.write_text("one")
    assert files.read_once(path, read) is files.read_once(path, read) and len(readings) == 1
    path.write_text("three")
    assert files.read_once(path, read) == "three" and len(readings) == 2


# ---- pickles


class Payload:
    """Makes a file if it is unpickled in the usual way."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return open, (self.path, "w")


def test_a_pickle_runs_nothing(tmp_path):
    trap = tmp_path / "trap"
    made = tmp_path / "made"
    trap.write_bytes(pickle.dumps(Payload(made)))
    with pytest.raises(TypeError):
        files.read_pickled_data(trap, files.file_sha256(trap))
    assert not made.exists()
    pickle.loads(trap.read_bytes()).close()  # the trap does work where nothing stops it
    assert made.exists()


def test_a_changed_pickle_is_refused(tmp_path):
    (tmp_path / "data").write_bytes(pickle.dumps([1]))
    digest = files.file_sha256(tmp_path / "data")
    assert files.read_pickled_data(tmp_path / "data", digest) == [1]
    (tmp_path / "data").write_bytes(pickle.dumps([2]))
    with pytest.raises(InputError, match="data: this is not the file that was pinned"):
        files.read_pickled_data(tmp_path / "data", digest)


def test_plain_data_survives(tmp_path):
    path = tmp_path / "data"
    path.write_bytes(pickle.dumps({"words": ["a", 1, 2.5, None], "weights": np.arange(3.0)}))
    data = files.read_pickled_data(path, hashlib.sha256(path.read_bytes()).hexdigest())
    assert data["words"] == ["a", 1, 2.5, None] and np.array_equal(data["weights"], np.arange(3.0))
