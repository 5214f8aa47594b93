"""How far long work is: a bar for who looks on, plain lines for a log"""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

_EVERY = 15.0  # seconds between two lines

# False: nothing is shown; True: a bar; a function: is told a line now and then
Progress = bool | Callable[[str], object]


def tell(
    progress: Progress,
    line: str,
) -> None:
    """Say what is done, where anybody wants to know."""
    if callable(progress):
        progress(line)
    elif progress:
        sys.stderr.write(f"{line}\n")


@contextlib.contextmanager
def counted(
    total: int,  # to be done
    of: str,  # what is counted, such as rows
    progress: Progress,
    done: int = 0,  # already
) -> Iterator[Callable[[int], None]]:  # is told how many more are done
    """Show how many of them are done."""
    if not callable(progress):
        from tqdm.auto import tqdm

        with tqdm(total=total, initial=done, desc=of, disable=not progress) as bar:
            yield bar.update
        return
    began = last = time.monotonic()
    now_done = first = done

    def count(more: int) -> None:
        nonlocal now_done, last
        now_done += more
        now = time.monotonic()
        if now - last < _EVERY or not first < now_done < total:
            return
        last = now
        left = (now - began) / (now_done - first) * (total - now_done)
        progress(f"{now_done:,} of {total:,} {of}, about {left / 60:.1f} minutes left")

    yield count
