"""Metrics as configured objects, signatures that change when anything changes, and the registry."""

import dataclasses
from dataclasses import dataclass

import numpy as np
import pytest

from tsteval import __version__
from tsteval.bleu import Bleu
from tsteval.core.assets import AssetError
from tsteval.core.checks import InputError, InputTypeError
from tsteval.core.metric import (
    METRICS,
    Metric,
    Scores,
    describable,
    describe_setting,
    digest,
    find_metric,
    make_metric,
    sign,
    split_list,
)
from tsteval.evaluation import evaluate
from tsteval.overlap import Chrf


def words_of(text):
    return text.split()


@dataclass(frozen=True)
class Length(Metric):
    """How long outputs are."""

    unit: str = "words"

    name = "length"
    needs = ("output",)
    columns = ("length",)
    by_row = True

    def score(self, rows, models=None):
        assert list(rows.columns) == ["output"], "it was handed a column that it did not ask for"
        parts = rows.output.str.split() if self.unit == "words" else rows.output
        return Scores({"length": parts.map(len).astype(float)})


def test_signatures_change_with_every_setting():
    plain = sign("cps", threshold=0.3, strategy="pad")
    assert plain == sign("cps", threshold=0.3, strategy="pad")
    assert plain.endswith(f"version:tsteval-{__version__}")
    for other in (
        sign("cps", threshold=0.31, strategy="pad"),
        sign("cps", threshold=0.3, strategy="none"),
        sign("sti", threshold=0.3, strategy="pad"),
    ):
        assert other != plain


def test_a_function_signs_as_custom_unless_it_has_a_version():
    assert describe_setting(words_of) == "custom"
    assert not describable(words_of)

    def sized(text):
        return text.split()

    sized.version = "2"
    assert "sized@2" in describe_setting(sized)
    assert describable(sized)


def test_a_value_cannot_pretend_to_be_a_field():
    assert sign("x", name="a|strategy:pad").count("|") == 2


def test_digests_know_where_parts_end():
    assert digest("ab", "c") != digest("a", "bc")
    assert len(digest("a")) == 12
    assert digest(b"a") == digest("a")


@pytest.mark.parametrize(
    "change, words",
    [
        ({"needs": ("sources",)}, "'sources'"),
        ({"needs": "output"}, "'o'"),
        ({"better": "more"}, "'more'"),
        ({"question": "fluency"}, "'fluency'"),
        ({"columns": ()}, "column"),
        ({"columns": "length"}, "tuples"),
        ({"headings": ("a", "b")}, "headings"),
    ],
)
def test_metrics_that_make_no_sense(change, words):
    described = {"name": "length", "needs": ("output",), "columns": ("length",)}
    with pytest.raises(InputError, match=words):
        type("Senseless", (Metric,), described | change)


def test_a_metric_says_what_it_lacks():
    with pytest.raises(InputError, match="Bare: the class has no name"):
        type("Bare", (Metric,), {})


def test_options_are_the_fields():
    assert Length.options() == {"unit": "words"}
    assert Length.heading("length") == "length"
    with pytest.raises(
        InputError, match=r"no option 'units' \(did you mean unit\?\); its options are unit"
    ):
        make_metric(Length, units=1)
    assert Length(unit="letters").signature == f"length|unit:letters|version:tsteval-{__version__}"


def test_a_metric_is_handed_what_it_asks_for():
    rows = [{"source": "a", "output": "b c", "reference": "d"}]
    evaluation = evaluate(rows, [Length(), "bleu"])
    assert evaluation.per_pair.length.tolist() == [2.0]


def test_a_metric_without_a_version_is_not_stored():
    assert Length.version is None
    assert not Length().storable
    versioned = type("Versioned", (Length,), {"version": "1"})
    assert versioned().storable
    assert not versioned(unit=words_of).storable


def test_a_system_scores_by_its_statistics_or_by_the_mean():
    class Share(Metric):
        name = "share"
        needs = ("output",)
        columns = ("share", "other")

        def aggregate(self, sums):
            return sums[..., 0] / sums[..., 1]

    counts = np.array([[1.0, 2], [3, 3]])
    scores = Scores({"share": [0.5, 1.0], "other": [1.0, np.nan]}, counts)
    statistics, score = Share().summed(scores, "share")
    assert score(statistics.sum(axis=0)) == 0.8
    statistics, score = Share().summed(scores, "other")
    assert score(statistics.sum(axis=0)) == 1


# ---- names


CHOSEN = {"judge": {"criterion": "fluency", "address": "http://127.0.0.1:1"}}  # without a default


def options_in_name(options):
    return ",".join(f"{option}={value}" for option, value in options.items())


def test_the_registry_finds_every_metric():
    for name, kind in METRICS.items():
        assert kind.name == name
        assert kind.description
        chosen = kind(**CHOSEN.get(name, {}))
        assert find_metric(chosen) is chosen
        if name not in CHOSEN:
            assert find_metric(name) == find_metric(kind) == chosen


def test_a_metric_that_needs_a_choice_says_which():
    with pytest.raises(InputError, match="criterion must be chosen"):
        find_metric("judge")


@pytest.mark.parametrize(
    "metric, error",
    [
        ("blue", InputError),
        ("nowhere:Metric", InputError),
        ("json:nothing", InputError),
        ("json:dumps", InputTypeError),
        (3, InputTypeError),
        ("bleu:smoothing", InputError),
        ("bleu:=floor", InputError),
    ],
)
def test_what_is_no_metric(metric, error):
    with pytest.raises(error):
        find_metric(metric)


OTHER = {  # for each option of a metric, a value that is not its default
    int: lambda default: default + 1,
    float: lambda default: default / 2,
    bool: lambda default: not default,
}


@pytest.mark.parametrize("name", METRICS)
def test_an_option_in_the_name_is_the_option_in_the_constructor(name):
    tried = 0
    for option, default in METRICS[name].options().items():
        if type(default) not in OTHER:
            continue
        options = CHOSEN.get(name, {}) | {option: OTHER[type(default)](default)}
        try:
            made = METRICS[name](**options)
        except InputError as error:
            with pytest.raises(InputError) as again:
                find_metric(f"{name}:{options_in_name(options)}")
            assert str(again.value) == str(error)
        else:
            assert find_metric(f"{name}:{options_in_name(options)}") == made
            assert made != METRICS[name](**CHOSEN.get(name, {}))
        tried += 1
    numeric = [one for one in METRICS[name].options().values() if type(one) in OTHER]
    assert tried == len(numeric)


def test_several_options_in_a_name():
    assert find_metric("chrf:char_order=4,word_order=2") == Chrf(char_order=4, word_order=2)
    with_lists = find_metric("bleu:weights=(0.5,0.5),max_order=2")
    assert with_lists == Bleu(weights=(0.5, 0.5), max_order=2)
    assert find_metric("bleu:lowercase=true") == find_metric("bleu:lowercase=True")
    assert find_metric("bleu:lowercase=false") == Bleu()
    own = find_metric(f"{__name__}:Length:unit=letters")
    assert type(own).__name__ == "Length"
    assert own.unit == "letters"


@pytest.mark.parametrize(
    "text, names",
    [
        ("bleu,sti", ["bleu", "sti"]),
        (
            "bleu:smoothing=floor,max_order=2,sti",
            ["bleu:smoothing=floor,max_order=2", "sti"],
        ),
        ("rouge:kinds=('rouge1','rouge2'),bleu", ["rouge:kinds=('rouge1','rouge2')", "bleu"]),
        (" bleu , , sti ", ["bleu", "sti"]),
        ("", []),
    ],
)
def test_lists_of_metrics(text, names):
    assert split_list(text) == names


# ---- the options of every metric

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


@pytest.mark.parametrize("name", METRICS)
def test_a_wrong_option_is_refused_when_the_metric_is_made_and_named(name):
    for option in METRICS[name].options():
        refused = 0
        for value in VALUES:
            try:
                METRICS[name](**CHOSEN.get(name, {}) | {option: value})
            except InputError as error:
                refused += 1
                assert option in str(error), f"{option}={value!r}: {error}"
        assert refused, f"{option} takes anything"


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


@pytest.mark.all
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", METRICS)
def test_any_value_of_an_option_is_taken_or_refused_in_words(
    name, classifier, encoder, language_model
):
    for option in dataclasses.fields(METRICS[name]):
        for value in VALUES:
            try:
                summary = evaluate(
                    ROWS,
                    [METRICS[name](**CHOSEN.get(name, {}) | {option.name: value})],
                    classifier=classifier,
                    encoder=encoder,
                    language_model=language_model,
                    n_boot=5,
                ).summary()
            except (InputError, AssetError) as error:
                assert str(error)
            else:
                assert len(summary) == 1
