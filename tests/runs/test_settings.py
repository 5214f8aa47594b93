"""The settings: declared once, refused where they are wrong, and the same in Python's keywords and in the command."""

import dataclasses
import inspect
import pickle
import re
import typing

import pytest

from tsteval.core.assets import ASSETS, packaged_path, read_json
from tsteval.core.checks import InputError
from tsteval.evaluation import evaluate
from tsteval.runs.settings import (
    BlockKeywords,
    Settings,
    WholeKeywords,
    chosen_settings,
    list_settings,
    takes_settings,
)
from tsteval.scale import evaluate_table

WRONG = {
    "options": 3,
    "target_style": 3,
    "empty": "drop",
    "device": 1,
    "batch_size": 0,
    "baseline": 1,
    "references_as": 1,
    "n_boot": 0,
    "seed": -1,
    "score_cache": 3,
    "models": "huge",
    "engine": "spark",
    "block_rows": 1.5,
    "workers": 0,
    "address": 7,
    "gpus_per_worker": -1,
    "on_error": "ask",
    "restart": "no",
}


@pytest.mark.parametrize("name", [setting.name for setting in list_settings()])
def test_each_setting_refuses_a_wrong_value_by_its_name(name):
    if name in ("classifier", "encoder", "language_model"):
        return  # a model of any kind; asked for when it is needed
    with pytest.raises(InputError) as error:
        Settings(**{name: WRONG[name]})
    assert error.value.argument == name and str(error.value).startswith(f"{name} must")


def test_the_defaults_pass_and_nothing_changes_them():
    settings = Settings()
    assert settings == pickle.loads(pickle.dumps(settings)) == dataclasses.replace(settings)
    with pytest.raises(dataclasses.FrozenInstanceError):
        settings.seed = 3


@pytest.mark.parametrize("keywords, blocks", [(WholeKeywords, False), (BlockKeywords, True)])
def test_the_keywords_of_the_type_checker_are_the_settings(keywords, blocks):
    assert typing.get_type_hints(keywords) == {
        setting.name: setting.kind for setting in list_settings(blocks)
    }


@pytest.mark.parametrize("function, blocks", [(evaluate, False), (evaluate_table, True)])
def test_help_shows_every_setting_with_its_default(function, blocks):
    parameters = inspect.signature(function).parameters
    for setting in list_settings(blocks):
        assert (
            parameters[setting.name].default == setting.default
            and f"    {setting.name}: " in function.__doc__
        )
    assert not any(one.kind is one.VAR_KEYWORD for one in parameters.values())


def test_every_setting_has_an_option_and_a_line_of_help():
    known = list_settings()
    assert len({setting.flag for setting in known}) == len(known)
    for setting in known:
        assert setting.flag.startswith("--") and setting.words and "\n" not in setting.words
        assert bool(setting.choices) + bool(setting.metavar) == (
            setting.default is not False
        )  # a switch has neither


def test_keywords_build_on_settings_that_were_made_before():
    ground = Settings(seed=3, n_boot=7)
    assert chosen_settings({"n_boot": 5}, ground, blocks=False) == Settings(seed=3, n_boot=5)
    assert ground.n_boot == 7
    rows = [{"source": "a b", "output": text} for text in ("a", "b", "a c")]
    result = evaluate(rows, ["readability"], settings=ground, seed=4)
    assert (result.n_boot, result.seed) == (7, 4)


def test_what_is_no_setting_is_refused_with_those_that_are():
    with pytest.raises(
        TypeError, match=r"called 'n_bot' \(did you mean n_boot\?\); the settings are target"
    ):
        evaluate([], n_bot=3)
    with pytest.raises(TypeError, match="called 'workers'"):
        chosen_settings({"workers": 2}, blocks=False)
    with pytest.raises(TypeError, match="settings must be Settings"):
        chosen_settings({}, {"seed": 1}, blocks=False)


def test_a_wrong_setting_is_found_before_the_table_is_read():
    with pytest.raises(InputError, match=r"^n_boot must be"):
        evaluate("no table at all", n_boot=0)


def test_a_baseline_that_is_no_system_is_found_before_anything_is_scored():
    rows = [{"source": "a b", "output": "a", "system": "rules"}]
    with pytest.raises(InputError, match="no system called 'human'; the systems are rules"):
        evaluate(rows, baseline="human")


def test_takes_settings_keeps_the_function_and_its_own_parameters():
    @takes_settings(blocks=True)
    def score(table, *, progress=False, **given):
        return given

    assert list(inspect.signature(score).parameters)[:3] == ["table", "progress", "target_style"]
    assert score(1, workers=2) == {"workers": 2}


def test_the_larger_tier_plays_every_part_that_nobody_was_named_for():
    cast = Settings(models="base", target_style="subjective").cast().chosen
    assert (cast["encoder"], cast["style"]) == ("all-mpnet-base-v2", "subjectivity-mpnet")
    named = (
        Settings(models="base", classifier="sentiment-minilm", encoder="all-MiniLM-L6-v2")
        .cast()
        .chosen
    )
    assert (named["encoder"], named["style"]) == ("all-MiniLM-L6-v2", "sentiment-minilm")
    assert Settings().cast().chosen == {"style": None, "encoder": None, "language_model": None}
    cast = Settings(models="large", target_style="polite").cast().chosen
    assert (cast["style"], cast["language_model"]) == (None, "Qwen2.5-Coder-1.5B-Instruct")
    own = Settings(models="large", language_model="mine").cast().chosen
    assert own["language_model"] == "mine"
    with pytest.raises(InputError, match="models must be one of"):
        Settings(models="huge")


def test_the_words_of_the_tiers_say_what_they_cost():
    [words] = [one.words for one in list_settings() if one.name == "models"]
    base, large = (ASSETS[name] for name in ("all-mpnet-base-v2", "Qwen2.5-Coder-1.5B-Instruct"))
    assert f"{base.size // 10**6} MB are" in words
    for size in (large.size, large.unpacked_size):
        assert f"{size / 1e6:,.0f} MB" in words


def test_the_style_models_that_help_names_are_shipped_and_know_these_styles():
    from tsteval.style import StyleClassifier

    help_text = next(one.words for one in list_settings() if one.flag == "--style-model")
    named = re.findall(r"([a-z]+-minilm) \((?:the default; knows )?([a-z]+)\)", help_text)
    assert len(named) == 3 and named[0][0] == StyleClassifier.default_name
    for name, style in named:
        assert style in read_json(packaged_path(f"{name}/style.json"))["labels"]
