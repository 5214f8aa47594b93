"""Whatever stands after `--set METRIC.OPTION=`, or in `options`, is taken or refused in words."""
import inspect

import pytest

from tsteval.core.assets import AssetError
from tsteval.core.checks import InputError
from tsteval.core.metric import METRICS, find_metric
from tsteval.evaluation import evaluate

ROWS = [{"source": "the old mill is the best in town", "output": "the old mill is in town",
         "reference": "the mill is in town"},
        {"source": "She claims that it works.", "output": "She says that it works.", "reference": "She says it works."}]
VALUES = ["x", "", "\ud800", [], {}, (), -1, 0, 1, 2.5, float("nan"), float("inf"), 10**30, None, True, (1, 2),
          [1, 2, 3, 4], b"x", object(),
          "none", "source", {"a": 1}, ["a"], 1e-300]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", METRICS)
def test_any_value_of_an_option_is_taken_or_refused_in_words(name, classifier, encoder, language_model):
    options = [one.name for one in inspect.signature(find_metric(name).score).parameters.values() if one.kind
               == one.KEYWORD_ONLY]
    for option in options:
        taken = 0
        for value in VALUES:
            try:
                summary = evaluate(ROWS, [name], options={name: {option: value}}, classifier=classifier,
                                   encoder=encoder,
                                   language_model=language_model, n_boot=5).summary()
            except (InputError, AssetError) as error: assert str(error)
            else: taken += len(summary) == 1
        assert taken < len(VALUES), f"{option} takes anything"
