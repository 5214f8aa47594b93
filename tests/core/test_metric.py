"""Metrics as values, signatures that change when anything changes, and the registry."""

import inspect
from functools import partial

import numpy as np
import pandas as pd
import pytest

from tsteval import __version__
from tsteval.core.assets import AssetError
from tsteval.core.checks import InputError, InputTypeError
from tsteval.core.metric import METRICS, Metric, Scores, describe_setting, digest, find_metric, sign
from tsteval.evaluation import evaluate


def words_of(text):
    return text.split()


def letters_of(text):
    return list(text)


def test_signatures_change_with_every_setting():
    plain = sign("cps", threshold=0.3, strategy="pad")
    assert plain == sign("cps", threshold=0.3, strategy="pad") and plain.endswith(
        f"version:tsteval-{__version__}"
    )
    for other in (
        sign("cps", threshold=0.31, strategy="pad"),
        sign("cps", threshold=0.3, strategy="none"),
        sign("sti", threshold=0.3, strategy="pad"),
    ):
        assert other != plain


def test_functions_are_described_by_what_they_do():
    assert describe_setting(words_of) != describe_setting(letters_of)
    assert describe_setting(lambda text: text.split(";")) != describe_setting(
        lambda text: text.split(",")
    )
    assert describe_setting(partial(str.split, sep=";")) != describe_setting(
        partial(str.split, sep=",")
    )

    def splitter(mark):
        return lambda text: text.split(mark)

    assert describe_setting(splitter(";")) != describe_setting(splitter(",")) and describe_setting(
        splitter(";")
    ) == describe_setting(splitter(";"))

    class Splitter:
        def __init__(self, mark):
            self.mark = mark

        def __call__(self, text):
            return text.split(self.mark)

    assert describe_setting(Splitter(";")) != describe_setting(
        Splitter(",")
    ) and "0x" not in describe_setting(Splitter(";"))


def test_a_value_cannot_pretend_to_be_a_field():
    assert sign("x", name="a|strategy:pad").count("|") == 2


def test_digests_know_where_parts_end():
    assert (
        digest("ab", "c") != digest("a", "bc")
        and len(digest("a")) == 12
        and digest(b"a") == digest("a")
    )


def nothing(table, models, unit="words"):
    return Scores(pd.DataFrame({"length": [1.0] * len(table)}), signature=sign("length", unit=unit))


@pytest.mark.parametrize(
    "change, words",
    [
        ({"needs": ("sources",)}, "'sources'"),
        ({"better": "more"}, "'more'"),
        ({"columns": ()}, "column"),
        ({"headings": ("a", "b")}, "headings"),
    ],
)
def test_metrics_that_make_no_sense(change, words):
    with pytest.raises(InputError, match=words):
        Metric(
            **(
                {"name": "length", "needs": ("output",), "columns": ("length",), "score": nothing}
                | change
            )
        )


def test_options_are_those_of_the_function():
    length = Metric("length", ("output",), ("length",), nothing)
    assert length.options == {"unit": "words"} and length.heading("length") == "length"
    with pytest.raises(InputError, match="no option 'units'; its options are unit"):
        length.check_options(pd.DataFrame(), {"units": 1})


def test_a_system_scores_by_its_statistics_or_by_the_mean():
    counts = np.array([[1.0, 2], [3, 3]])
    scores = Scores(pd.DataFrame({"share": [0.5, 1.0], "other": [1.0, np.nan]}), counts)
    share = Metric(
        "share",
        ("output",),
        ("share", "other"),
        nothing,
        aggregate=lambda sums: sums[..., 0] / sums[..., 1],
    )
    statistics, score = share.statistics(scores, "share")
    assert score(statistics.sum(axis=0)) == 0.8
    statistics, score = share.statistics(scores, "other")
    assert score(statistics.sum(axis=0)) == 1


def test_the_registry_finds_every_metric():
    names = {
        "bleu",
        "rouge",
        "sti",
        "cps",
        "ngram",
        "amelioration_1",
        "amelioration_2",
        "fluency",
        "perplexity",
        "link_validity",
        "readability",
        "toxicity",
        "acceptability",
        "formality",
        "avoided_answer",
        "grounded_in_context",
        "relevance",
        "chrf",
        "meteor",
        "wmd",
        "bert_score",
        "content",
        "judge",
    }
    assert set(METRICS) == names and len(METRICS) == len(names)
    for name in names:
        metric = METRICS[name]
        assert (
            metric.name == name
            and metric.description
            and find_metric(name) is metric
            and find_metric(metric) is metric
        )


@pytest.mark.parametrize(
    "metric, error",
    [
        ("blue", InputError),
        ("nowhere:metric", InputError),
        ("json:nothing", InputError),
        ("json:dumps", InputTypeError),
        (3, InputTypeError),
    ],
)
def test_what_is_no_metric(metric, error):
    with pytest.raises(error):
        find_metric(metric)


# ---- the options of every metric

ROWS = [
    {
        "source": "the old mill is the best in town",
        "output": "the old mill is in town",
        "reference": "the mill is in town",
    },
    {
        "source": "She claims that it works.",
        "output": "She says that it works.",
        "reference": "She says it works.",
    },
]
VALUES = [
    "x",
    "",
    "\ud800",
    [],
    {},
    (),
    -1,
    0,
    1,
    2.5,
    float("nan"),
    float("inf"),
    10**30,
    None,
    True,
    (1, 2),
    [1, 2, 3, 4],
    b"x",
    object(),
    "none",
    "source",
    {"a": 1},
    ["a"],
    1e-300,
]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", METRICS)
def test_any_value_of_an_option_is_taken_or_refused_in_words(
    name, classifier, encoder, language_model
):
    options = [
        one.name
        for one in inspect.signature(find_metric(name).score).parameters.values()
        if one.kind == one.KEYWORD_ONLY
    ]
    for option in options:
        taken = 0
        for value in VALUES:
            try:
                summary = evaluate(
                    ROWS,
                    [name],
                    options={name: {option: value}},
                    classifier=classifier,
                    encoder=encoder,
                    language_model=language_model,
                    n_boot=5,
                ).summary()
            except (InputError, AssetError) as error:
                assert str(error)
            else:
                taken += len(summary) == 1
        assert taken < len(VALUES), f"{option} takes anything"
