"""The ranks that systems may have, for all of them at once."""

import numpy as np
import pandas as pd
import pytest

from tsteval.core.checks import InputError
from tsteval.core.resample import mean_statistics
from tsteval.differences import rank_sets
from tsteval.people.systems import compare_all


def pairs_with(p):
    """A row a pair, from a dictionary of pairs in order and their p-values."""
    return pd.DataFrame(
        [(a, b, value) for (a, b), value in p.items()],
        columns=["better", "worse", "holm_randomization"],
    )


def test_a_system_that_loses_to_all_is_last_and_the_others_may_have_any_rank_above():
    table = pairs_with({("a", "b"): 0.4, ("a", "c"): 0.01, ("b", "c"): 0.04})
    found = rank_sets(table).set_index("system")
    assert found.loc["a"].tolist() == found.loc["b"].tolist() == [1, 2] and found.loc[
        "c"
    ].tolist() == [3, 3]
    stricter = rank_sets(table, level=0.02).set_index("system")
    assert stricter.loc["b"].tolist() == [1, 3] and stricter.loc["c"].tolist() == [2, 3]


def test_ranks_hold_together_as_often_as_they_promise():
    """Six systems, three of them equal: in at least 95 of 100 studies every true rank lies in its range."""
    truth = np.array([0, 0, 0, 0.4, 0.4, 0.9])
    right = 0
    best = np.array([4, 4, 4, 2, 2, 1])
    last = np.array([6, 6, 6, 3, 3, 1])  # of equal systems any of these
    for seed in range(60):
        drawn = np.random.default_rng(seed).normal(truth, 1, size=(60, 6))
        compared = compare_all(
            {str(k): mean_statistics(drawn[:, k]) for k in range(6)}, n_samples=400
        )
        found = rank_sets(compared).set_index("system").loc[[str(k) for k in range(6)]]
        right += ((found.rank_low <= best) & (found.rank_high >= last)).all()
    assert right >= 54  # of 60; 57 are to be expected, and 54 or more come in 98 of 100 runs


def test_the_order_of_rows_does_not_matter_and_a_missing_pair_is_told():
    table = pairs_with({("a", "b"): 0.4, ("a", "c"): 0.01, ("b", "c"): 0.04})
    again = rank_sets(table.iloc[::-1]).set_index("system").loc[["a", "b", "c"]]
    assert again.equals(rank_sets(table).set_index("system").loc[["a", "b", "c"]])
    with pytest.raises(InputError, match="each pair"):
        rank_sets(table.iloc[:2])
    with pytest.raises(InputError, match="level"):
        rank_sets(table, level=1)
