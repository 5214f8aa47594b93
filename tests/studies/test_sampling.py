"""Samples for raters: whole sources at random, the same for every system, with the probability that is told."""
import numpy as np
import pandas as pd
import pytest

from tsteval.core.checks import InputError
from tsteval.studies.sampling import sample_outputs


def outputs(**sizes):
    return pd.DataFrame([{"system": system, "source": f"Source {n}.", "output": f"{system} {n}."}
                         for system, size in sizes.items() for n in range(size)])


def test_systems_share_their_sources_and_a_small_one_gives_all_it_has():
    drawn = sample_outputs(outputs(A=40, B=40, C=10), 60)
    assert drawn.groupby("system").size().to_dict() == {"A": 25, "B": 25, "C": 10}
    assert set(drawn.source[drawn.system == "A"]) == set(drawn.source[drawn.system == "B"])
    assert drawn.inclusion.tolist() == [25 / 40] * 50 + [1.0] * 10


def test_rows_are_drawn_as_often_as_told_and_weighted_means_are_unbiased():
    table = outputs(A=12, B=30).assign(rating=lambda frame: np.arange(len(frame)) ** 2.0)
    often, means = np.zeros(len(table)), []
    for seed in range(3000):
        drawn = sample_outputs(table, 12, seed)
        often[drawn.index] += 1 / 3000
        means.append((drawn.rating / drawn.inclusion).sum() / len(table))
    expected = np.repeat([6 / 12, 6 / 30], [12, 30])
    assert np.abs(often - expected).max() < 0.04  # more than four standard errors
    assert abs(np.mean(means) - table.rating.mean()) < 4 * np.std(means) / 3000 ** 0.5


def test_all_rows_of_a_source_are_drawn_together():
    table = pd.concat([outputs(A=20)] * 3, ignore_index=True)
    drawn = sample_outputs(table, 15)
    assert drawn.groupby("source").size().tolist() == [3] * 5 and set(drawn.inclusion) == {0.25}


def test_the_seed_decides_and_more_rows_than_there_are_means_all():
    table = outputs(A=30, B=30)
    assert sample_outputs(table, 10, 1).equals(sample_outputs(table, 10, 1))
    assert not sample_outputs(table, 10, 1).equals(sample_outputs(table, 10, 2))
    everything = sample_outputs(table, 1000)
    assert len(everything) == 60 and (everything.inclusion == 1).all()


@pytest.mark.parametrize("n, words", [(0, "n must be"), (2, "ask for 4 rows or more")])
def test_too_few_rows_are_refused(n, words):
    with pytest.raises(InputError, match=words): sample_outputs(outputs(A=30, B=30), n)
