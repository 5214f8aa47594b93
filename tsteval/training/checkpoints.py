"""Where a training run keeps its states, and what it began with"""

import hashlib
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..core.checks import InputError, check_number
from ..core.files import write_whole

STATE_FILE = "trainer_state.json"  # written last into the folder of a state
_IDENTITY_FILE = "run.json"


class Checkpoint:
    """The states of a training run in a folder, each in a folder of its own as `transformers.Trainer` writes it."""

    def __init__(
        self,
        folder: Path,  # made when the run begins
        identity: Mapping[
            str, Any
        ],  # what must not change, by the name to use in an error; values that JSON can hold
        every: int = 200,  # steps between two states, >= 1; each pass over the texts ends with one
    ):
        check_number(every, "checkpoint_every", 1, whole=True)
        self.folder = Path(folder)
        self.every = every
        # a tuple becomes the list that will be read again
        self.identity = json.loads(json.dumps(identity, default=_digest))

    def begin(self) -> None:
        """Write down what the run is, and clear away states that were not written to their end."""
        self.folder.mkdir(parents=True, exist_ok=True)
        write_whole(self.folder / _IDENTITY_FILE, json.dumps(self.identity))
        for folder in self.folder.glob("checkpoint-*"):
            if _step_of(folder) is None:
                shutil.rmtree(folder)

    def last(self) -> Path | None:
        """The folder of the last state, or None. Raises: InputError if it belongs to another run, or cannot be read."""
        states = {
            step: folder
            for folder in self.folder.glob("checkpoint-*")
            if (step := _step_of(folder)) is not None
        }
        if not states:
            return None
        identity = self._begun()
        changed = [
            f"{name} was {_shown(identity.get(name))} and is {_shown(self.identity.get(name))}"
            for name in {**identity, **self.identity}
            if identity.get(name) != self.identity.get(name)
        ]
        if changed:
            raise InputError(
                f"{self.folder} holds an unfinished run of another kind: {'; '.join(changed)}. Go on "
                f"with what it had, choose another folder, or begin anew with --restart"
            )
        return states[max(states)]

    def step(self) -> int:
        """How many steps are done. Raises: as `last`."""
        last = self.last()
        return 0 if last is None else _step_of(last)

    def _begun(self) -> dict[str, Any]:
        file = self.folder / _IDENTITY_FILE
        try:
            return dict(json.loads(file.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError, RecursionError) as error:
            raise InputError(
                f"{file} cannot be read ({type(error).__name__}); begin anew with --restart"
            ) from error


def _step_of(folder: Path) -> int | None:
    """The number of steps behind a state; None for one that was not written to its end."""
    try:
        return int(json.loads((folder / STATE_FILE).read_text(encoding="utf-8"))["global_step"])
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None


def _digest(value: Any) -> str:
    """Of what JSON cannot hold, such as a table."""
    return hashlib.sha256(
        str(value.to_json() if hasattr(value, "to_json") else value).encode()
    ).hexdigest()


def _shown(value: Any) -> str:
    if value is None:
        return "not there"
    is_checksum = isinstance(value, str) and len(value) == 64
    return value[:12] if is_checksum else str(value)
