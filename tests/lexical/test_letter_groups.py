"""The weights of the default model of toxicity are those of the file, as numbers alone."""
import math

from tsteval.core.assets import ASSETS
from tsteval.lexical.letter_groups import LETTER_GROUPS, letter_groups, letter_groups_tag


def test_every_group_has_a_weight_and_a_frequency():
    groups = letter_groups()
    assert set(groups.idf) == set(groups.weights) and len(groups.idf) == 68_324
    assert all(type(value) is not object and math.isfinite(value)
               for value in [*groups.idf.values(), *groups.weights.values()])
    assert min(groups.idf.values()) >= 1 and groups.intercept < 0 and letter_groups() is groups


def test_insults_weigh_more_than_thanks():
    weights = letter_groups().weights
    mean = lambda word: sum(weights.get(f" {word} "[at:at + 3], 0) for at in range(len(word)))
    assert mean("idiot") > 0 > mean("thank")


def test_the_tag_names_the_wheel():
    assert letter_groups_tag() == f"{LETTER_GROUPS}@{ASSETS[LETTER_GROUPS].sha256[:12]}"
