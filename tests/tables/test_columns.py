"""Which column plays which part: by our name, by other programs' names, as somebody says; never by a guess between two."""

import pandas as pd
import pytest

from tsteval.core.checks import InputError
from tsteval.evaluation import evaluate
from tsteval.tables.columns import (
    _OTHER_NAMES,
    PARTS,
    MissingColumn,
    classes,
    find_columns,
    our_names,
    told_columns,
    with_our_names,
)
from tsteval.tables.outputs import prepare_pairs
from tsteval.tables.tables import choose_columns


@pytest.mark.parametrize(
    ("names", "parts"),
    [
        ("question context answer", "question context output"),
        ("prompt response", "question output"),
        ("Document Summary", "context output"),
        ("hypothesis ref", "output reference"),
        ("src hyp ref_1 ref_2", "- output reference reference"),
        ("prediction label", "output reference"),
        ("source completion target", "source output reference"),
        ("model source.text generated-text", "system source output"),
        ("output answer", "output -"),
    ],
)
def test_the_names_of_other_programs_are_read(names, parts):
    found = find_columns(names.split())
    played = {name: part for part, columns in found.items() for name in columns}
    assert [played.get(name, "-") for name in names.split()] == parts.split()


def test_no_name_means_two_parts():
    written = [*_OTHER_NAMES, *(name for names in _OTHER_NAMES.values() for name in names)]
    assert len(written) == len(PARTS) and not {"text", "src", "id"} & set(PARTS)


def test_what_may_be_two_is_refused_and_what_is_missing_names_what_is_there():
    with pytest.raises(InputError) as error:
        find_columns(["question", "answer", "prediction"])
    assert str(error.value) == (
        "`answer` and `prediction` may each be the output; call one of them output; the columns are question, "
        "answer, prediction"
    )
    with pytest.raises(MissingColumn, match=r"no column foo; .* the columns are a, b"):
        find_columns(["a", "b"], {"output": ["foo"]})
    with pytest.raises(InputError, match="the column a is named twice"):
        find_columns(["a", "b"], {"output": ["a", "a"]})
    with pytest.raises(MissingColumn, match=r"no column output; .*; the columns are source, text"):
        prepare_pairs([{"source": "a", "text": "b"}])


def test_a_class_is_no_reference():
    table = pd.DataFrame({"output": ["a b", "c d"], "label": ["0", "1"], "target": ["a", "b c"]})
    assert classes(table) == ["label"]
    frame, told = with_our_names(table)
    assert list(frame) == ["output", "label", "reference"]
    assert told == "read `target` as reference; not read: `label`"


def test_several_outputs_are_systems():
    table = pd.DataFrame({"source": ["a", "b"], "x": ["c", "d"], "y": ["e", "f"]}, index=[0, 1])
    frame, told = choose_columns(table, {"output": ["x", "y"]})
    assert frame[["system", "source", "output"]].to_numpy().tolist() == [
        ["x", "a", "c"],
        ["x", "b", "d"],
        ["y", "a", "e"],
        ["y", "b", "f"],
    ]
    assert list(frame.index) == [0, 1, 0, 1] and told == "read `x` and `y` as output, a system each"
    with pytest.raises(InputError, match="the column system names systems, too"):
        choose_columns(table.assign(system="s"), {"output": ["x", "y"]})


def test_references_keep_their_numbers():
    assert our_names(find_columns(["output", "ref1", "ref2"])) == {
        "output": "output",
        "reference_1": "ref1",
        "reference_2": "ref2",
    }
    assert told_columns(find_columns(["output", "references"]), ["output", "references"]) == ""


def test_a_name_that_may_be_a_misspelt_one_of_ours_is_told():
    columns = ["systm", "source", "output", "rater_anna", "refrence"]
    told = told_columns(find_columns(columns), columns)
    assert told == (
        "not read: `systm` (did you mean system?) and `refrence` (did you mean reference?)"
    )
    columns = ["source", "output", "sources_b"]
    assert told_columns(find_columns(columns), columns) == "not read: `sources_b`"


def test_a_column_that_is_not_read_is_told_though_all_others_have_our_names():
    table = pd.DataFrame({"source": ["a"], "output": ["b"], "human_score": [4], "rating": [5]})
    assert with_our_names(table)[1] == "not read: `human_score` and `rating`"
    assert with_our_names(table[["source", "output"]])[1] == ""


def test_evaluate_takes_the_same_names_and_tells_them():
    rows = [{"Prompt": "Why?", "passage": "It rained all day.", "response": "It rained."}] * 2
    result = evaluate(rows, ["readability", "relevance"], n_boot=5)
    notes = list(result.notes().text)
    assert any(
        "read `response` as output, `Prompt` as question, `passage` as context" in note
        for note in notes
    )
    assert result.per_pair.question[0] == "Why?" and result.per_pair.source[0] == "Why?"
