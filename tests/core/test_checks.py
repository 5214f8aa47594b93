"""The one gate: what is taken, what is refused, and that every public function says it in the same words."""

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsteval.core import checks
from tsteval.core.checks import InputError, InputTypeError, check_choice, check_texts

ROWS = ["a cat sat", "a dog ran"]
KINDS = {
    "list": list,
    "tuple": tuple,
    "generator": lambda rows: (row for row in rows),
    "map": lambda rows: map(str, rows),
    "array": np.array,
    "objects": lambda rows: np.array(rows, dtype=object),
    "numpy strings": lambda rows: [np.str_(row) for row in rows],
    "series": lambda rows: pd.Series(rows, index=[7] * len(rows)),
    "dictionary values": lambda rows: dict(enumerate(rows)).values(),
}
WRONG = {
    "none": None,
    "string": "a cat",
    "bytes": b"a cat",
    "dictionary": {"a": "b"},
    "set": {"a", "b"},
    "number": 3,
    "frame": pd.DataFrame({"a": ["b", "c"]}),
    "scalar array": np.array("a"),
    "array of arrays": np.array([["a"], ["b"]]),
}
WRONG_ROWS = {
    "none": None,
    "nan": float("nan"),
    "numpy nan": np.nan,
    "missing": pd.NA,
    "number": 3,
    "bytes": b"b",
    "list": ["b"],
}


def scorers():
    """Public functions that take texts, reduced to one column of outputs; none of these needs a model."""
    from tsteval.bleu import corpus_bleu
    from tsteval.rouge import rouge
    from tsteval.surface import readability

    return {
        "check_texts": lambda rows: checks.check_texts(rows, "outputs"),
        "tokenizable": lambda rows: checks.tokenizable(rows, "outputs"),
        "corpus_bleu": lambda rows: corpus_bleu(rows, ROWS).score,
        "rouge": lambda rows: rouge(rows, ROWS).to_numpy().tolist(),
        "readability": lambda rows: readability(rows).tolist(),
    }


@pytest.mark.parametrize(
    "name", ["check_texts", "tokenizable", "corpus_bleu", "rouge", "readability"]
)
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_list_is_taken(name, kind):
    score = scorers()[name]
    assert score(KINDS[kind](ROWS)) == score(ROWS)


@pytest.mark.parametrize(
    "name", ["check_texts", "tokenizable", "corpus_bleu", "rouge", "readability"]
)
@pytest.mark.parametrize("kind", WRONG)
def test_what_is_no_list_of_texts_is_refused(name, kind):
    with pytest.raises(InputTypeError, match=r"(outputs|hypotheses|texts)"):
        scorers()[name](WRONG[kind])


@pytest.mark.parametrize(
    "name", ["check_texts", "tokenizable", "corpus_bleu", "rouge", "readability"]
)
@pytest.mark.parametrize("kind", WRONG_ROWS)
def test_a_wrong_row_is_named_with_one_numbering(name, kind):
    with pytest.raises(InputTypeError, match="row 1: expected a string"):
        scorers()[name](["a", WRONG_ROWS[kind]])


@pytest.mark.parametrize("kind", ["none", "string", "frame", "dictionary", "number"])
def test_models_refuse_what_is_no_list(classifier, encoder, language_model, kind):
    for score in (classifier.predict_proba, encoder.encode, language_model.token_logprobs):
        with pytest.raises(InputTypeError, match="texts"):
            score(WRONG[kind])


def test_models_take_generators(classifier, encoder):
    assert classifier.predict_proba(map(str, ROWS)).shape == (2, 2)
    assert np.array_equal(encoder.encode(row for row in ROWS), encoder.encode(ROWS))


def test_a_bad_cell_has_one_number_everywhere(classifier, encoder):
    from tsteval.cps import content_preservation
    from tsteval.evaluation import evaluate

    told = []
    for call in (
        lambda: content_preservation(
            ["a", "b"], ["c", None], classifier=classifier, encoder=encoder
        ),
        lambda: evaluate({"source": ["a", "b"], "output": ["c", None]}, ["cps"]),
    ):
        with pytest.raises(InputError) as caught:
            call()
        told.append(str(caught.value).split("row ")[1].split(":")[0])
    assert told == ["1", "1"]


def test_numpy_strings_become_plain_ones():
    assert {type(text) for text in checks.check_texts(np.array(ROWS))} == {str}


@given(st.lists(st.text()))
def test_texts_pass_unchanged_and_tokenizable_ones_encode(rows):
    assert checks.check_texts(rows) == rows
    assert all(
        text.encode("utf-8").decode("utf-8") == text for text in checks.tokenizable(rows)
    ) and len(checks.tokenizable(rows)) == len(rows)


def test_lone_surrogates_become_question_marks():
    assert checks.tokenizable(["half \ud83d"]) == ["half ?"]


def test_parallel_columns():
    assert checks.check_parallel(a=iter(["x", "y"]), b=("z", "w")) == [["x", "y"], ["z", "w"]]
    with pytest.raises(InputError, match="a has 2, b has 1; row 1 has no counterpart"):
        checks.check_parallel(a=["x", "y"], b=["z"])


@pytest.mark.parametrize(
    "value, low, high, options, error",
    [
        (3, 0, 1, {}, InputError),
        (-1, 0, 9, {}, InputError),
        (0, 0, 1, {"above": True}, InputError),
        (1, 0, 1, {"below": True}, InputError),
        (float("nan"), 0, 1, {}, InputError),
        (2.5, 1, 9, {"whole": True}, InputTypeError),
        ("3", 0, 9, {}, InputTypeError),
        (True, 0, 9, {}, InputTypeError),
        (None, 0, 9, {}, InputTypeError),
        (float("inf"), 0, 9, {}, InputError),
    ],
)
def test_numbers_outside_their_range(value, low, high, options, error):
    with pytest.raises(error, match="threshold must be a"):
        checks.check_number(value, "threshold", low, high, **options)


@pytest.mark.parametrize(
    "value, options", [(0, {}), (1, {}), (np.float32(0.5), {}), (np.int64(1), {"whole": True})]
)
def test_numbers_inside_their_range(value, options):
    checks.check_number(value, "threshold", 0, 1, **options)


def test_choices():
    checks.check_choice("pad", "strategy", ("pad", "none"))
    for wrong in ("pda", None, ["pad"]):
        with pytest.raises(InputError, match="strategy must be one of pad, none; got"):
            checks.check_choice(wrong, "strategy", ("pad", "none"))


@pytest.mark.parametrize(
    "place, words",
    [
        ({}, "what is wrong"),
        ({"argument": "texts"}, "texts: what is wrong"),
        ({"row": 3}, "row 3: what is wrong"),
        ({"argument": "texts", "row": 3}, "texts, row 3: what is wrong"),
        ({"file": "a.csv"}, "a.csv: what is wrong"),
        ({"column": "output", "row": np.int64(0)}, "column output, row 0: what is wrong"),
        (
            {"file": "a.csv", "column": "output", "row": 17},
            "a.csv: column output, row 17: what is wrong",
        ),
        ({"file": "a.jsonl", "line": 2}, "a.jsonl: line 2: what is wrong"),
    ],
)
def test_an_error_is_worded_once_from_what_is_known_of_its_place(place, words):
    error = InputError("what is wrong", **place)
    assert str(error) == words and str(InputError("what is wrong").at(**place)) == words
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is InputError and str(again) == words and vars(again) == vars(error)


def test_a_message_that_begins_with_must_goes_on_from_the_place():
    error = InputTypeError("must be a number, got 'x'", argument="k")
    assert str(error) == "k must be a number, got 'x'" and error.argument == "k"
    assert (
        str(error.at(argument=None, column="k", row=2))
        == "column k, row 2 must be a number, got 'x'"
    )
    assert str(InputError("must go", file="a.csv")) == "a.csv: must go"


def test_more_of_a_place_is_known_further_out():
    class Own(InputTypeError):
        pass

    inner = Own("no text", argument="texts", row=1)
    outer = inner.at(argument=None, column="output", row=501, file="part.csv").at(file="folder")
    assert type(outer) is Own and str(outer) == "folder: part.csv: column output, row 501: no text"
    assert str(inner) == "texts, row 1: no text", "the error that was caught is unharmed"
    assert outer.at(file="folder: part.csv").file == "folder: part.csv"
    with pytest.raises(TypeError, match="page"):
        inner.at(page=3)
    with pytest.raises(Own) as caught:
        raise outer from inner
    assert caught.value.__cause__ is inner


def test_errors_of_the_gate_hold_their_place_in_fields():
    with pytest.raises(InputTypeError) as caught:
        check_texts(["a", None], "outputs")
    assert (caught.value.argument, caught.value.row, caught.value.column) == ("outputs", 1, None)
    with pytest.raises(InputError) as caught:
        check_texts(["a", " "], column="output", empty=False)
    assert (caught.value.argument, caught.value.row, caught.value.column) == (None, 1, "output")
    with pytest.raises(InputError) as caught:
        check_choice("x", "strategy", ["pad"])
    assert caught.value.argument == "strategy"


def _scorers():
    from tsteval.bleu import corpus_bleu
    from tsteval.overlap import chrf, meteor
    from tsteval.rouge import rouge

    return [corpus_bleu, rouge, chrf, meteor]


SETS = [
    ["the old gate", "a mill"],
    ["an old gate", "one mill"],
]  # as sacreBLEU nests two references


@pytest.mark.parametrize("scorer", _scorers())
def test_references_that_may_be_rows_or_sets_are_warned_of(scorer):
    outputs = ["the old gate", "one mill"]
    for references in (SETS, tuple(SETS)):
        with pytest.warns(UserWarning, match=r"read as 2 rows; .* list\(zip\(\*references\)\)"):
            scorer(outputs, references)
    scorer(outputs, list(zip(*SETS)))
    scorer(outputs, [tuple(row) for row in SETS])
    scorer(outputs, [["the gate"], ["a mill", "one mill"]])
    scorer(outputs, [["the gate"], ["a mill"]])
    scorer(outputs[:1], [["the gate"]])
    with pytest.raises(InputError, match=r"2 hypotheses but 3 rows|2 outputs but 3 rows"):
        scorer(outputs, [*SETS, SETS[0]])


def test_sets_of_tokens_are_warned_of_as_well():
    from tsteval.bleu import corpus_bleu

    outputs = [["the", "old", "gate"], ["one", "mill"]]
    sets = [[text.split() for text in texts] for texts in SETS]
    with pytest.warns(UserWarning, match="read as 2 rows"):
        corpus_bleu(outputs, sets)
    rows = list(zip(*sets))
    same = corpus_bleu([" ".join(output) for output in outputs], list(zip(*SETS)), tokenize="none")
    assert corpus_bleu(outputs, rows).score == same.score


def test_lists_of_tokens_are_to_be_joined_where_texts_are_read():
    from tsteval.overlap import chrf, meteor

    for scorer in (chrf, meteor):
        with pytest.raises(
            InputTypeError, match=r"outputs, row 0: .*join its tokens with ' '\.join"
        ):
            scorer([["the", "gate"]], [["the", "gate"]])
        with pytest.raises(InputTypeError, match=r"references, row 0: .*join its tokens with"):
            scorer(["the gate"], [[["the", "gate"]]])
    with pytest.raises(InputTypeError, match="join its tokens"):
        check_texts([("the", "gate")])
