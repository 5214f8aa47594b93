"""Options made from dataclasses: every setting is one, and what was chosen comes back with its type."""
import argparse
from dataclasses import dataclass

import pytest

from tsteval.cli.options import Printing, add_options, chosen, literal, meant, metric_options, option, options_of
from tsteval.core.checks import InputError
from tsteval.runs.settings import Settings, list_settings


@dataclass(frozen=True)
class Group:
    file: str | None = option("a file", metavar="FILE", flags=())
    count: int = option("how many", 3, "N", lowest=1)
    share: float = option("how much", 0.5, "X", lowest=0)
    names: tuple[str, ...] = option("which", ())
    loud: bool = option("say it loudly", False)


def parsed(*words, group=Group):
    parser = argparse.ArgumentParser()
    add_options(parser, options_of(group))
    return parser.parse_args(words)


def test_what_is_chosen_has_its_type_and_the_rest_its_default():
    assert chosen(Group, parsed()) == Group()
    found = chosen(Group, parsed("x.csv", "--count", "7", "--share", ".25", "--names", "a", "--names", "b", "--loud"))
    assert found == Group("x.csv", 7, 0.25, ("a", "b"), True)


@pytest.mark.parametrize("words, told", [(["--count", "0"], "--count must be a whole number of at least 1, got 0"),
                                         (["--share", "-1"], "--share must be a number of at least 0, got -1.0")])
def test_what_is_out_of_range_is_named_as_it_was_written(words, told):
    with pytest.raises(InputError) as caught: chosen(Group, parsed(*words))
    assert str(caught.value) == told


def test_every_setting_is_an_option_with_its_flag():
    assert {known.name: known.flags for known in options_of(Settings)} == {
        setting.name: (setting.flag,) for setting in list_settings()}
    assert "seed" not in {known.name for known in options_of(Settings, without=("seed",))}


def test_an_option_that_may_be_given_once_says_so(capsys):
    with pytest.raises(SystemExit): parsed("--format", "csv", "--format", "html", group=Printing)
    with pytest.raises(SystemExit): parsed("--format", "csv", "--format", "json", group=Printing)
    assert "is given twice; formats of the report are named by --report" in capsys.readouterr().err


@pytest.mark.parametrize("text, value", [("3", 3), ("none", "none"), ("None", None), ("[1, 2]", [1, 2]), ("a b", "a b"),
                                         ("True", True), ("__import__('os')", "__import__('os')"), ("(" * 9_000,) * 2])
def test_a_value_is_a_literal_or_a_text(text, value):
    assert literal(text) == value


def test_options_of_metrics():
    assert metric_options(["cps.strategy=none", "bleu.max_order=2", "bleu.lowercase=True"]) == {
        "cps": {"strategy": "none"}, "bleu": {"max_order": 2, "lowercase": True}}
    assert metric_options(None) == {}
    for wrong in ("strategy", "cps.strategy", ".x=1", "cps.=1"):
        with pytest.raises(InputError, match=r"METRIC\.OPTION=VALUE"): metric_options([wrong])


def test_near_misses():
    assert meant("blue", ["bleu", "rouge"]) == " (did you mean bleu?)" and meant("xyz", ["bleu"]) == ""
