"""Whatever holds rows becomes one table, or is refused by row and column."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsteval.core.checks import InputError
from tsteval.core.metric import find_metric
from tsteval.tables.data_check import data_notes, take_rows
from tsteval.tables.outputs import in_one_form, prepare_pairs
from tsteval.tables.tables import choose_columns, choose_rows


def test_defaults_of_a_prepared_table():
    table = prepare_pairs([{"source": "a", "output": "b"}], target_style="formal")
    assert list(table.columns) == [
        "system",
        "source",
        "output",
        "references",
        "target_style",
        "input",
    ]
    assert table.iloc[0].tolist() == ["output", "a", "b", (), "formal", "a"]
    assert prepare_pairs([{"source": "a", "output": "b", "input": "c", "target_style": "x"}]).iloc[
        0, -2:
    ].tolist() == ["x", "c"]


@pytest.mark.parametrize(
    "pairs, words",
    [
        ("file.csv", "must be a table"),
        (3, "must be a table"),
        ([("a", "b")], "pairs, row 0: expected a dictionary"),
        ({"source": ["a", "b"], "output": ["c"]}, "equally long"),
        ([], "no column source|no rows"),
        (
            pd.DataFrame([["a", "b", "c"]], columns=["source", "output", "output"]),
            "more than one column output",
        ),
        ([{"source": "a", "output": np.nan}], "column output, row 0: expected a string, got NaN"),
        (
            [{"source": "a", "output": "b", "reference": ["c", 3]}],
            "column reference, row 0: expected a string, got int 3",
        ),
        (
            [{"source": "a", "output": "b", "reference": []}],
            "column reference, row 0: there is no reference",
        ),
    ],
)
def test_bad_tables(pairs, words):
    with pytest.raises(InputError, match=words):
        prepare_pairs(pairs)


def test_something_with_to_pandas_is_a_table():
    class Dataset:
        def to_pandas(self):
            return pd.DataFrame({"source": ["a"], "output": ["b"]})

    assert prepare_pairs(Dataset()).output.tolist() == ["b"]


ROWS = [
    {"system": "one", "source": "a b", "output": "a", "reference": ["a b", "b"]},
    {"system": "two", "source": "a b", "output": "b", "reference": ["c"]},
]


@pytest.mark.parametrize(
    "kind",
    [
        list,
        tuple,
        iter,
        lambda rows: (row for row in rows),
        lambda rows: map(dict, rows),
        pd.DataFrame,
        lambda rows: pd.DataFrame(rows, index=[7, 7]),
        lambda rows: {name: [row[name] for row in rows] for name in rows[0]},
        lambda rows: {name: np.array([row[name] for row in rows], object) for name in rows[0]},
    ],
)
def test_whatever_holds_rows_is_evaluated_alike(kind):
    from tsteval.evaluation import evaluate

    expected = evaluate(ROWS, ["bleu", "rouge"], n_boot=5)
    given = kind(ROWS)
    found = evaluate(given, ["bleu", "rouge"], n_boot=5)
    pd.testing.assert_frame_equal(found.per_pair, expected.per_pair)
    pd.testing.assert_frame_equal(found.summary(), expected.summary())
    # and nobody's rows are changed
    assert ROWS[0] == {"system": "one", "source": "a b", "output": "a", "reference": ["a b", "b"]}


def test_a_mistake_in_a_generator_is_named_by_its_row():
    with pytest.raises(InputError, match="column output, row 2"):
        prepare_pairs({"source": "a", "output": "" if n == 2 else "b"} for n in range(4))


@pytest.mark.parametrize(
    "pairs",
    [
        {"source": "a bridge", "output": "a ridge."},
        {"source": ["a"], "output": "b"},
        {"source": b"a", "output": b"b"},
    ],
)
def test_one_row_as_a_dictionary_is_not_scored_letter_by_letter(pairs):
    with pytest.raises(InputError, match="is one text, not a list"):
        prepare_pairs(pairs)


def test_rows_as_dictionaries_are_evaluated():
    from tsteval.evaluation import evaluate

    assert evaluate([{"source": "a", "output": "b"}], ["readability"], n_boot=5).summary().n[0] == 1


def test_texts_that_stand_alone_need_no_source():
    from tsteval.core.metric import find_metric
    from tsteval.tables.outputs import with_sources

    alone = pd.DataFrame({"output": ["a", "b"]})
    asked = alone.assign(input=["c", "d"])
    easy, fits, style = (find_metric(name) for name in ("readability", "relevance", "sti"))
    assert list(with_sources(alone, [easy]).source) == ["a", "b"]
    assert list(with_sources(asked, [easy, fits]).source) == ["c", "d"]
    with pytest.raises(InputError, match="no column source, and sti compares"):
        with_sources(asked, [easy, style])
    with pytest.raises(InputError, match="no column question, and relevance compares"):
        with_sources(alone, [easy, fits])
    whole = prepare_pairs(alone.assign(source=["x", "y"]))
    assert list(with_sources(whole, [easy]).source) == ["x", "y"]


def test_a_text_is_one_whichever_program_wrote_it():
    assert in_one_form(["nai\u0308ve\r\nA\u030a", "\ud800"]) == ["na\xefve\n\xc5", "?"]
    forms = [
        {"system": "a", "source": source, "output": "b", "reference": [source, "c"]}
        for source in ("Zo\xeb\nwas", "Zoe\u0308\r\nwas")
    ]
    table = prepare_pairs(forms)
    assert (
        table.source.nunique() == 1 and table.references.nunique() == 1
    )  # systems are paired by their sources


# ---- names of columns and systems


@pytest.mark.parametrize(
    "name",
    [
        "System",
        " system",
        "SYSTEM",
        "Target_Style",
        "Input ",
        "Reference",
        "REFERENCES ",
        "Reference 2",
    ],
)
def test_a_column_that_is_nearly_called_like_one_of_ours_is_read(name):
    row = {"source": "A dam.", "output": "Dam."}
    ours = "_".join(name.strip().lower().split())
    plain = prepare_pairs([{**row, ours: "x"}])
    assert prepare_pairs([{**row, name: "x"}]).equals(plain) and not plain.equals(
        prepare_pairs([row])
    )
    with pytest.raises(InputError, match="`source` and `SOURCE ` may each be the source"):
        prepare_pairs([{**row, "SOURCE ": "A dam."}])


def test_a_column_that_was_asked_for_may_be_called_as_it_likes():
    table = pd.DataFrame({"Source": ["A dam."], "S": ["Dam."], "System": ["A"], "Note": ["x"]})
    frame, told = choose_columns(table, {"output": ["S"]})
    assert frame.to_dict("list") == {"output": ["Dam."], "system": ["A"], "source": ["A dam."]}
    assert told == ("read `S` as output, `System` as system, `Source` as source; not read: `Note`")


def test_spaces_around_the_name_of_a_system_make_no_other_system():
    rows = [{"source": "A dam.", "output": "Dam.", "system": name} for name in ("A", "A ", " A")]
    assert prepare_pairs(rows).system.tolist() == ["A"] * 3
    assert len(choose_rows(pd.DataFrame(rows), ["A"])) == 3


SPACES = st.text(" \t", max_size=2)
OURS = st.sampled_from(["system", "source", "output", "target_style", "input", "reference_2"])


@given(OURS, SPACES, SPACES, st.sampled_from([str.upper, str.title, str.lower]))
def test_no_column_of_ours_is_passed_over(name, before, after, written):
    heading = before + written(name) + after
    row = {"source": "A dam.", "output": "Dam."}
    if heading != name and name in row:
        with pytest.raises(InputError, match="may each be the"):
            prepare_pairs([{**row, heading: "x"}])
    else:
        assert prepare_pairs([{**row, heading: "x"}]).equals(prepare_pairs([{**row, name: "x"}]))


# ---- an output is not compared with itself


@pytest.mark.parametrize("metric", ["chrf", "meteor", "wmd", "bert_score"])
def test_what_compares_with_the_source_needs_one(metric):
    with pytest.raises(InputError, match=f"no column source, and {metric} compares"):
        take_rows([{"output": "Dam."}], metrics=[find_metric(f"{metric}:against=source")])
    table = [{"output": "Dam.", "reference": "A dam."}]
    assert len(take_rows(table, metrics=[find_metric(metric)]).table) == 1


# ---- lists in a cell


@pytest.mark.parametrize("write", [repr, json.dumps, lambda texts: f" {json.dumps(texts)}\n"])
def test_lists_of_references_are_read_as_they_are_written(write):
    lists = [["A dam.", 'The "old" dam.'], ["It's a mill,", "it's [old]"], ["One\nline"]]
    rows = [{"source": "a", "output": "b", "references": write(texts)} for texts in lists]
    assert prepare_pairs(rows).references.tolist() == [tuple(texts) for texts in lists]


def test_brackets_alone_make_no_list():
    rows = [{"source": "a", "output": "b", "reference": text} for text in ("[sic]", "[1932]")]
    assert prepare_pairs(rows).references.tolist() == [("[sic]",), ("[1932]",)]
    rows = [{"source": "a", "output": "b", "reference": text} for text in ('["a dam"]', "A dam.")]
    assert prepare_pairs(rows).references.tolist() == [('["a dam"]',), ("A dam.",)]


@pytest.mark.parametrize("text", ["['a dam' 'a mill']", '["a dam" "a mill"]', "['a', 'b'], ['c']"])
def test_what_is_nearly_a_list_is_refused_by_row(text):
    rows = [{"source": "a", "output": "b", "reference": cell} for cell in ("['a dam']", text)]
    with pytest.raises(InputError, match="column reference, row 1: this is no list of texts"):
        prepare_pairs(rows)


TEXT = st.text(st.characters(exclude_categories=("Cs",)), min_size=1).filter(str.strip)


@given(st.lists(st.lists(TEXT, min_size=1, max_size=3), min_size=1, max_size=3), st.booleans())
def test_any_lists_are_read_again(lists, as_json):
    write = json.dumps if as_json else repr
    rows = [{"source": "a", "output": "b", "references": write(texts)} for texts in lists]
    assert prepare_pairs(rows).references.tolist() == [tuple(in_one_form(texts)) for texts in lists]


UNSEEN = "\ufeff\u200b\u2060\u00ad\u200e\u200f"


@pytest.mark.parametrize(
    "text",
    [
        " Zo\xeb was here",
        "\ufeffZoe\u0308 was here\n",
        "Zo\xeb\u00a0was\u202fhere",
        "Zo\xeb w\u200ba\u2060s here\u3000",
    ],
)
def test_what_nobody_sees_decides_nothing(text):
    """Once a leading space moved PenLP by 2.5."""
    from tsteval.evaluation import evaluate

    plain = "Zo\xeb was here"
    row = {"source": text, "output": text, "input": text, "reference": text}
    table = prepare_pairs([row])
    assert table.iloc[0][["source", "output", "references", "input"]].tolist() == [
        plain,
        plain,
        (plain,),
        plain,
    ]
    assert evaluate([row], ["bleu", "chrf"], n_boot=5).per_pair.output[0] == plain


def test_a_joiner_within_a_word_stays():
    assert in_one_form(["\u0645\u06cc\u200c\u0631\u0648\u0645"]) == [
        "\u0645\u06cc\u200c\u0631\u0648\u0645"
    ]


@given(st.text(), st.text(UNSEEN + " \t\n\xa0"), st.text(UNSEEN + " \xa0"))
def test_one_form_is_one_whatever_stands_around_a_text(text, before, after):
    [form] = in_one_form([text])
    assert in_one_form([before + text + after]) == [form] == in_one_form([form])
    assert not set(form) & set(UNSEEN + "\xa0\u202f\u2007")


def test_a_text_of_which_nothing_is_seen_is_empty():
    with pytest.raises(InputError, match="column output, row 0: the text is empty"):
        prepare_pairs([{"source": "a", "output": "\u200b\ufeff"}])
    with pytest.raises(InputError, match="column reference, row 0: the text is empty"):
        prepare_pairs([{"source": "a", "output": "b", "reference": "\u200b"}])
    rows = [{"source": "a", "output": text} for text in ("\u200b", "b")]
    assert take_rows(rows, empty="skip").table.output.tolist() == ["b"]


def test_texts_that_were_changed_beyond_their_outer_white_space_are_counted():
    rows = [
        {"source": f"{n}", "output": text} for n, text in enumerate((" a\n", "a\xa0b", "e\u0301"))
    ]
    [note] = data_notes(take_rows(rows))
    assert note.text.startswith("2 rows held what nobody sees") and not note.warning
    assert note.figures == {"rows": [1, 2], "n": 2}
    moved = take_rows(rows).moved(np.array([10, 11, 12]))
    assert moved.reformed == [11, 12]
