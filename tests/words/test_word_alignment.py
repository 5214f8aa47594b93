"""Which words of two texts are the same: partners, runs, synonyms, forms."""

import numpy as np
import pytest

from tsteval.core.assets import AssetError
from tsteval.words import word_alignment


def test_meteor_by_pencil():
    """All six words have a partner, in three runs or, paired from the end as NLTK does, in six; the mean is 1."""
    assert np.allclose(
        word_alignment.meteor_from_counts([6, 6], [3, 6], 6, 6), [1 - 0.5 * (3 / 6) ** 3, 0.5]
    )
    pairs = word_alignment.align_words(
        ["on", "the", "mat", "sat", "the", "cat"], ["the", "cat", "sat", "on", "the", "mat"]
    )
    assert (
        pairs == [(0, 3), (1, 0), (2, 5), (3, 2), (4, 4), (5, 1)]
        and word_alignment.count_chunks(pairs) == 6
    )
    assert (
        word_alignment.count_chunks([]) == 0
        and word_alignment.count_chunks([(0, 3), (1, 4), (3, 5)]) == 2
    )


def test_wordnet_that_is_missing_says_what_to_do():
    class Missing:
        def synsets(self, word):
            raise LookupError("not found")

    with pytest.raises(AssetError, match=r"nltk.download"):
        word_alignment.wordnet_synonyms(Missing())
