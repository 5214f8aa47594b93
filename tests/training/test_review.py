"""Pairs that are likely to be wrong: turned ones come first, and a pair's own label is not seen."""
import numpy as np
import pandas as pd
import pytest

from tsteval.core.checks import InputError
from tsteval.training.review import doubtful_pairs

from .files import pairs_frame


def encode(texts):
    """Counts of letters."""
    return np.array([[text.count(letter) for letter in "aeinost"] for text in texts], dtype=float)


@pytest.fixture
def pairs():
    return pairs_frame(60)


def test_turned_pairs_come_first(pairs):
    turned = [3, 17, 40]
    pairs.loc[turned, ["source", "target"]] = pairs.loc[turned, ["target", "source"]].to_numpy()
    found = doubtful_pairs(pairs, encode)
    assert set(found.index[:3]) == set(turned) and set(found.index[found.doubtful]) == set(turned)
    assert sorted(found.index) == list(range(60)) and (found.source == pairs.source[found.index]).all()


def test_a_pair_is_judged_without_itself_and_its_twins(pairs):
    """Where every pair differs by a word of its own, a judge that saw the pair would know its side; this one cannot."""
    rng = np.random.default_rng(0)
    own = pd.DataFrame({"source": [f"The {n}x mill." for n in range(200)], "target": [f"The {n}y mill."
                                                                                    for n in range(200)]})
    found = doubtful_pairs(pd.concat([own] * 3, ignore_index=True), lambda texts: rng.normal(size=(len(texts), 4)))
    assert 0.4 < (found.by_words < 0).mean() < 0.6


def test_equal_sides_are_left_out_and_too_few_are_refused(pairs):
    pairs.loc[:4, "target"] = pairs.source[:5]
    assert sorted(doubtful_pairs(pairs, encode).index) == list(range(5, 60))
    with pytest.raises(InputError, match=r"15 pairs of 15 sources.*a review takes 20"):
        doubtful_pairs(pairs.head(20), encode)
    with pytest.raises(InputError, match="no column target"): doubtful_pairs(pairs[["source"]], encode)
    with pytest.raises(TypeError, match="row 2"):
        doubtful_pairs(pairs.assign(source=[*pairs.source[:2], None, *pairs.source[3:]]), encode)
