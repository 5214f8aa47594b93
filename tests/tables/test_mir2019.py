"""Mir et al.'s files are read once their checksum is right, and probability that is left out is a class of its own."""

import os
import pickle

import numpy as np
import pytest

from tsteval.core.assets import AssetError, corpora
from tsteval.tables.mir2019 import pinned_arrays, pinned_bytes, with_unassigned

needs_mir2019 = pytest.mark.skipif(
    "TSTEVAL_DATA" not in os.environ,
    reason="needs the corpus: run `tsteval fetch "
    "mir2019`, and set TSTEVAL_DATA to the folder around it",
)


def test_unassigned_probability():
    completed = with_unassigned([[0.6, 0.398], [0.3, 0.70001]])
    assert np.allclose(completed, [[0.6, 0.398, 0.002], [0.3, 0.70001, 0]])
    for bad, words in (
        ([[0.5, 0.5], [0.7, 0.4]], "row 1: .* 1.1, to more"),
        ([[0.5, -0.1]], "row 0: a negative"),
        ([[0.5, 0.5], [0.5, np.nan]], "row 1: .* finite"),
    ):
        with pytest.raises(ValueError, match=words):
            with_unassigned(bad)


PICKLED = "evaluations/automated/naturalness/sentence_level/input_texts.npz"


class Exploit:
    def __reduce__(self):
        return (pytest.fail, ("a pickle was loaded before its SHA-256 was checked",))


def test_a_changed_pickle_is_never_loaded(tmp_path, monkeypatch):
    monkeypatch.setenv("TSTEVAL_DATA", str(tmp_path))
    file = tmp_path / "mir2019" / PICKLED
    file.parent.mkdir(parents=True)
    np.savez(file, neural=np.array([Exploit()], dtype=object))
    assert PICKLED in corpora()["mir2019"].files
    with pytest.raises(AssetError, match="damaged"):  # the folder as a whole is checked first
        pinned_arrays("mir2019", PICKLED)
    # then the file on its own
    monkeypatch.setattr("tsteval.tables.mir2019.corpus_path", lambda name: tmp_path / name)
    with pytest.raises(AssetError, match="not the published file"):
        pinned_arrays("mir2019", PICKLED)
    with pytest.raises(AssetError, match="not among the"):
        pinned_arrays("mir2019", "evaluations/other.npz")
    file.unlink()
    with pytest.raises(AssetError, match="missing"):
        pinned_arrays("mir2019", PICKLED)


def test_the_exploit_would_work():
    """The test above is worth something only if loading the file does run it."""
    with pytest.raises(pytest.fail.Exception):
        pickle.loads(pickle.dumps(Exploit()))


@needs_mir2019
def test_pinned_files_of_mir2019_load():
    assert sorted(pinned_arrays("mir2019", PICKLED)["neural"].item()) == ["ARAE", "CAAE", "DAR"]
    assert len(pinned_bytes("mir2019", "data/sentiment.test.0").splitlines()) == 122
