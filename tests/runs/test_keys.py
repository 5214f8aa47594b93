"""What a stored score is found by: nothing that makes it is left out of its key, and nothing else gets into it."""

import functools
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
import pytest

from tests.own_metrics import Length, metric_of
from tsteval.core.checks import InputError
from tsteval.core.metric import METRICS, Metric, Note, Scores, describe_setting
from tsteval.evaluation import evaluate
from tsteval.models import base
from tsteval.models.roles import Models
from tsteval.overlap import Chrf
from tsteval.runs.scoring import score_table_rows


def pairs(n=3, **columns):
    row = {"source": "a gate", "output": "the old gate", "reference": "a gate", **columns}
    return [{**row, "output": f"{row['output']} {number}"} for number in range(n)]


def means(metric, cache, rows=None, **options):
    result = evaluate(rows or pairs(), [metric], n_boot=5, score_cache=cache, **options)
    return result.per_pair[metric.columns[0]].tolist()


class Doubled(Length):
    """Other numbers, and no version of its own."""

    def score(self, rows, models=None):
        return Scores({"length": 2.0 * rows.output.str.len()})


class OtherChrf(Chrf):
    def score(self, rows, models=None):
        return Scores({"chrf": rows.output.str.len() * 0.0 + 0.42})


class Versioned(Length):
    """The name and the version of another class."""

    version = "1"

    def score(self, rows, models=None):
        return Scores({"length": rows.output.str.len() * 0.0 + 7})


def test_a_version_says_nothing_of_a_subclass(tmp_path):
    assert Doubled.version is None
    assert OtherChrf.version is None
    assert METRICS["chrf"].version is not None
    assert means(Length(), tmp_path / "c") == [4, 4, 4]
    assert means(Doubled(), tmp_path / "c") == [28, 28, 28]
    assert means(Length(), tmp_path / "c") == [4, 4, 4]
    means(Chrf(), tmp_path / "c")
    assert means(OtherChrf(), tmp_path / "c") == [0.42] * 3


def test_classes_of_one_name_and_version_share_nothing(tmp_path):
    assert means(Length(), tmp_path / "c") == [4, 4, 4]
    assert means(Versioned(), tmp_path / "c") == [7, 7, 7]


class Silent(Metric):
    """A metric whose options are attributes only: no signature names them."""

    name, needs, columns, by_row, version = "silent", ("output",), ("silent",), True, "1"

    def __init__(self, factor):
        self.factor = factor

    def score(self, rows, models=None):
        return Scores({"silent": self.factor * rows.output.str.len()})


def test_what_no_field_names_is_not_stored(tmp_path):
    assert Silent(2).unsigned == ("factor",)
    assert means(Silent(2), tmp_path / "c") == [28, 28, 28]
    assert means(Silent(3), tmp_path / "c") == [42, 42, 42]
    result = evaluate(pairs(), [Silent(3)], n_boot=5, score_cache=tmp_path / "c")
    assert "factor is no field" in " ".join(result.notes().text)
    with pytest.raises(InputError, match="two of the metrics are called silent"):
        evaluate(pairs(), [Silent(2), Silent(3)], n_boot=5)


@dataclass(frozen=True)
class Forgetful(Metric):
    """Its settings leave an option out."""

    factor: int = 1

    name, needs, columns, by_row, version = "forgetful", ("output",), ("forgetful",), True, "1"

    def score(self, rows, models=None):
        return Scores({"forgetful": self.factor * rows.output.str.len()})

    def settings(self, models=None):
        return {}

    @functools.cached_property
    def half(self):
        return self.factor / 2


def test_settings_that_leave_an_option_out_are_in_the_key(tmp_path):
    assert means(Forgetful(1), tmp_path / "c") == [14, 14, 14]
    metric = Forgetful(2)
    assert means(metric, tmp_path / "c") == [28, 28, 28]
    assert metric.half == 1
    assert metric.storable  # what follows from the fields is none of its own


def versioned(text):
    return len(text)


versioned.version = "1"


def shouting(function):
    @functools.wraps(function)
    def inner(text):
        return function(text) * 10

    return inner


class Kit:
    def __init__(self, factor):
        self.factor = factor

    def measure(self, text):
        return self.factor * len(text)

    measure.version = "1"


@dataclass(frozen=True)
class Measured(Metric):
    measure: Any = versioned

    name, needs, columns, by_row, version = "measured", ("output",), ("measured",), True, "1"

    def score(self, rows, models=None):
        return Scores({"measured": rows.output.map(self.measure)})


def test_a_decorator_and_an_object_behind_a_method_are_no_part_of_a_functions_version(tmp_path):
    assert describe_setting(versioned) == "versioned@1"
    assert describe_setting(shouting(versioned)) == "custom"
    assert describe_setting(Kit(2).measure) == "custom"
    assert means(Measured(), tmp_path / "c") == [14, 14, 14]
    assert means(Measured(shouting(versioned)), tmp_path / "c") == [140, 140, 140]
    for factor in (2, 3):
        assert means(Measured(Kit(factor).measure), tmp_path / "c") == [14 * factor] * 3
    again = shouting(versioned)
    again.version = "loud 2"
    assert Measured(again).storable


class Scale:
    """A stand-in for a model."""

    def __init__(self, factor):
        self.factor = factor
        self.name = f"scale-{factor}"
        self.identity = self.tag = f"{factor}@scale"


@dataclass(frozen=True)
class Modelled(Metric):
    model: Any = None
    signed: bool = True

    name, needs, columns, by_row, version = "modelled", ("output",), ("modelled",), True, "1"

    def score(self, rows, models=None):
        factor = models.get("fluency", Scale).factor
        return Scores({"modelled": factor * rows.output.str.len()})

    def settings(self, models=None):
        return {"model": models.get("fluency", Scale).tag} if self.signed else {}


def test_a_model_that_the_signature_does_not_name_is_refused(tmp_path):
    table = pd.DataFrame(pairs()).assign(references=[("a gate",)] * 3, target_style="", system="")
    for factor in (2, 3):
        models = Models({"fluency": Scale(factor)})
        scored = score_table_rows(table, [Modelled()], models, tmp_path / "c")
        assert scored.scores["modelled"].frame.modelled.tolist() == [14 * factor] * 3
        assert models.used == {f"scale-{factor}": f"{factor}@scale"}
        with pytest.raises(InputError, match=r"with the model scale-\d, which its settings do not"):
            score_table_rows(table, [Modelled(signed=False)], models, tmp_path / "d")
    score_table_rows(table, [Modelled(signed=False)], models)


SEEN = {}


@dataclass(frozen=True)
class Curious(Metric):
    """Looks for more columns than it declares, and keeps what `review` shows it."""

    memory: list = field(default_factory=list, compare=False)

    name, needs, columns, by_row, version = "curious", ("output",), ("curious",), True, "1"

    def look(self, step, rows):
        SEEN.setdefault(step, set()).update(rows.columns)

    def score(self, rows, models=None):
        self.look("score", rows)
        length = rows.output.str.len() + rows.get("system", rows.output).str.len() * 0
        rows["output"] = "written over"
        return Scores({"curious": length + len(self.memory)})

    def settings(self, models=None):
        return {}

    def sign(self, rows, models=None):
        self.look("sign", rows)
        return super().sign(rows, models)

    def sign_row(self, rows, models=None):
        self.look("sign_row", rows)
        return ""

    def titles(self, rows):
        self.look("titles", rows)
        return ()

    def review(self, rows, models=None):
        self.look("review", rows)
        self.memory.append(1)
        rows["output"] = "written over"
        return (Note("seen"),)


def test_a_metric_is_handed_what_it_declares(tmp_path):
    SEEN.clear()
    metric = Curious()
    result = evaluate(pairs(), [metric], n_boot=5, score_cache=tmp_path / "c")
    assert result.per_pair.curious.tolist() == [14] * 3
    assert result.per_pair.output[0] == "the old gate 0"
    assert {step: SEEN[step] for step in ("score", "sign", "sign_row", "titles")} == {
        step: {"output"} for step in ("score", "sign", "sign_row", "titles")
    }
    assert "system" in SEEN["review"]
    # what `review` left in the option is in the key of the next run, and no part of the first
    assert means(metric, tmp_path / "c") == [15] * 3
    assert means(Curious(), tmp_path / "c") == [14] * 3


def test_a_cut_of_another_rows_text_is_not_stored(tmp_path):
    def score(rows, models):
        base._tell("cut", "cut", {(text,): 5 for text in rows.output if "long" in text})
        return Scores({"length": rows.output.str.len()})

    metric = metric_of(score, by_row=True, version="1")
    rows = [
        {"source": "a gate", "output": "a long road"},
        {"source": "a long road", "output": "a road"},
    ]
    result = evaluate(rows, [metric], n_boot=5, score_cache=tmp_path / "c")
    (note,) = [text for text in result.notes().text if "cut" in text]
    assert "1 of 2 rows holds" in note
