"""A state on disk: whole or not there, and of one run."""
import os

import pytest
import torch

from tsteval.core.checks import InputError
from tsteval.training.checkpoints import Checkpoint


class Killed(Exception):
    pass


def test_a_state_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    checkpoint = Checkpoint(tmp_path / "a" / "checkpoint.safetensors", {"x": (1, 2)})
    checkpoint.save({"w": torch.ones(2)}, {"step": 1})
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(Killed))
        with pytest.raises(Killed): checkpoint.save({"w": torch.zeros(2)}, {"step": 2})
    tensors, facts = Checkpoint(checkpoint.file, {"x": [1, 2]}).restore()
    assert facts == {"step": 1} and tensors["w"].tolist() == [1, 1]
    checkpoint.file.write_bytes(checkpoint.file.read_bytes()[:40])
    with pytest.raises(InputError, match=r"cannot be read.*--restart"): checkpoint.restore()


def test_what_changed_is_named_and_steps_are_counted(tmp_path):
    checkpoint = Checkpoint(tmp_path / "checkpoint.safetensors", {"seed": 0, "sum": "a" * 64, "gone": 1}, every=3)
    assert checkpoint.restore() is None and [step for step in range(1, 8) if checkpoint.due(step)] == [3, 6]
    checkpoint.save({"w": torch.ones(1)}, {"step": 3})
    with pytest.raises(InputError) as error: Checkpoint(checkpoint.file, {"seed": 1, "sum": "b" * 64}).restore()
    told = str(error.value)
    assert all(words in told for words in ("seed was 0 and is 1", f"sum was {'a' * 12} and is {'b' * 12}",
                                           "gone was 1 and is not there", "--restart"))
    with pytest.raises(InputError, match="checkpoint_every must be a whole number"): Checkpoint(tmp_path / "x", {}, 0)
