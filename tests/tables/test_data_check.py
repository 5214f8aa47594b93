"""What is said of the rows of a table: repeated ones, outputs without a text, texts that were cut."""

import json

import numpy as np
import pandas as pd
import pytest

from tsteval.core.checks import InputError
from tsteval.core.metric import Metric, Scores
from tsteval.evaluation import evaluate
from tsteval.report.findings import plain_records
from tsteval.tables.data_check import cut_notes, data_notes, take_rows, told_rows

ROWS = [
    {
        "system": system,
        "source": f"the mill number {n} was old",
        "output": f"mill {n} was {system}",
        "reference": f"the mill {n}",
    }
    for system in ("one", "two")
    for n in range(12)
]


def with_empty(*empty, cell=""):
    return [row | {"output": cell} if place in empty else row for place, row in enumerate(ROWS)]


@pytest.mark.parametrize("cell", ["", "  \n", None, np.nan, pd.NA])
@pytest.mark.parametrize("holder", [list, pd.DataFrame])
def test_rows_without_a_text_stop_are_skipped_or_count_as_zero(cell, holder):
    given = holder(with_empty(3, 20, cell=cell))
    with pytest.raises(InputError, match="column output, row 3"):
        evaluate(given, ["rouge"], n_boot=5)
    skipped = evaluate(given, ["rouge"], n_boot=5, empty="skip")
    without = [row for place, row in enumerate(ROWS) if place not in (3, 20)]
    pd.testing.assert_frame_equal(
        skipped.summary(), evaluate(without, ["rouge"], n_boot=5).summary()
    )
    zero = evaluate(given, ["rouge"], n_boot=5, empty="zero")
    assert (
        zero.per_pair.rouge1[[3, 20]].tolist() == [0, 0]
        and (zero.per_pair.output[[3, 20]] == "").all()
    )
    assert zero.per_pair.rouge1.drop([3, 20]).tolist() == skipped.per_pair.rouge1.tolist()
    assert zero.summary().n.tolist() == [12, 12] and skipped.summary().n.tolist() == [11, 11]
    assert (zero.summary().rouge1 < skipped.summary().rouge1).all()


@pytest.mark.parametrize("empty", ["skip", "zero"])
def test_outputs_without_a_text_are_counted_for_each_system_and_named_as_in_a_spreadsheet(empty):
    result = evaluate(with_empty(3, 4, 20), ["chrf", "rouge"], n_boot=5, empty=empty)
    note = next(note for note in result.notes().itertuples() if "without a text" in note.text)
    assert note.warning and "2 of one, 1 of two" in note.text
    assert "rows 3, 4, 20 (5, 6, 22 in a spreadsheet)" in note.text
    assert note.figures == {"empty": empty, "rows": [3, 4, 20], "n": {"one": 2, "two": 1}}
    assert "2 of one, 1 of two" in result.render_html()
    json.dumps(plain_records(result.notes()))


def test_zero_is_the_corpus_score_of_an_empty_output_where_there_is_one():
    """BLEU has statistics for an output without words: no match, no word, and the reference's length."""
    import sacrebleu

    result = evaluate(with_empty(3, 20), ["bleu"], n_boot=5, empty="zero")
    for system, value in zip(result.systems, result.summary().bleu):
        rows = [row for row in with_empty(3, 20) if row["system"] == system]
        other = sacrebleu.corpus_bleu(
            [row["output"] for row in rows], [[row["reference"] for row in rows]]
        )
        assert value == pytest.approx(other.score / 100, abs=1e-12)


class Scaled(Metric):
    """The number of characters, on a scale that a test gives."""

    name = "scaled"
    needs = ("output",)
    columns = ("scaled",)
    by_row = True

    def score(self, rows, models=None):
        return Scores({"scaled": rows.output.map(len)})


@pytest.mark.parametrize(
    "better, ends, worst",
    [
        ("higher", (0.0, 100.0), 0),
        ("higher", (-1.0, np.inf), -1),
        ("lower", (0.0, 100.0), 100),
        ("neither", None, np.nan),
    ],
)
def test_zero_is_the_worst_score_of_the_scale(better, ends, worst):
    scaled = type("One", (Scaled,), {"better": better, "range": ends})
    result = evaluate(with_empty(3), [scaled], n_boot=5, empty="zero")
    assert result.per_pair.scaled[3] == pytest.approx(worst, nan_ok=True)
    assert result.per_pair.scaled.drop(3).notna().all()


@pytest.mark.parametrize(
    "better, ends", [("higher", (-np.inf, 0.0)), ("lower", (1.0, np.inf)), ("higher", None)]
)
def test_zero_is_refused_where_the_scale_has_no_worst(better, ends):
    """Else silence would be ahead."""
    scaled = type("One", (Scaled,), {"better": better, "range": ends})
    with pytest.raises(
        InputError, match=r"empty: 'zero' gives .* and scaled has none; take 'skip'"
    ):
        evaluate(with_empty(3), [scaled], n_boot=5, empty="zero")
    assert evaluate(with_empty(3), [scaled], n_boot=5, empty="skip").n_outputs == 23


def test_zero_is_refused_by_a_corpus_score_that_cannot_count_an_empty_output():
    class Ratio(Scaled):
        range = (0.0, 1.0)

        def score(self, rows, models=None):
            if (rows.output == "").any():
                raise InputError("there is no text")
            return Scores({"scaled": rows.output.map(len)}, np.ones((len(rows), 2)))

        def aggregate(self, sums):
            return sums[..., 0] / sums[..., 1]

    with pytest.raises(InputError, match="cannot be counted by scaled"):
        evaluate(with_empty(3), [Ratio], n_boot=5, empty="zero")


def test_a_table_without_empty_outputs_is_the_same_whatever_is_said_of_them():
    plain = evaluate(ROWS, ["rouge"], n_boot=5)
    for empty in ("skip", "zero"):
        found = evaluate(ROWS, ["rouge"], n_boot=5, empty=empty)
        assert found.per_pair.equals(plain.per_pair) and found.notes().equals(plain.notes())


@pytest.mark.parametrize("empty", ["skip", "zero"])
def test_errors_name_the_row_that_was_given(empty):
    given = with_empty(1)
    given[4] = given[4] | {"source": " "}
    with pytest.raises(InputError, match="column source, row 4: the text is empty"):
        take_rows(given, empty=empty)

    class Refusing(Metric):
        name = "x"
        needs = ("output",)
        columns = ("x",)
        range = (0.0, 1.0)

        def score(self, rows, models=None):
            raise InputError("no", column="output", row=5)

    with pytest.raises(InputError, match="column output, row 6: no"):
        evaluate(with_empty(1), [Refusing()], n_boot=5, empty=empty)
    nothing = [row | {"output": ""} for row in ROWS]
    if empty == "skip":
        with pytest.raises(InputError, match="every output is empty"):
            evaluate(nothing, ["rouge"], empty=empty)
    else:
        assert evaluate(
            nothing, ["bleu", "rouge"], n_boot=5, empty=empty
        ).summary().bleu.tolist() == [0, 0]


def test_repeated_rows_are_told_once_with_their_number():
    result = evaluate([*ROWS, *ROWS[:3]], ["rouge"], n_boot=5)
    notes = [note for note in result.notes().itertuples() if "word for word" in note.text]
    assert (
        len(notes) == 1
        and notes[0].figures == {"rows": [24, 25, 26], "n": 3}
        and not notes[0].warning
    )
    assert data_notes(take_rows(ROWS)) == ()
    shared = [
        row | {"output": "the same"} for row in ROWS
    ]  # one output for many sources is no mistake of the table
    assert data_notes(take_rows(shared)) == ()


def test_rows_in_words():
    assert told_rows([7]) == "row 7 (9 in a spreadsheet)"
    assert (
        told_rows(range(7))
        == "rows 0, 1, 2, 3, 4 and 2 more (2, 3, 4, 5, 6 and 2 more in a spreadsheet)"
    )
    assert cut_notes("STI", {}, 5) == cut_notes("STI", {"a.csv": {}}, 5) == ()
    told = cut_notes("STI", {"a.csv": {1: 512}, "b.csv": {2: 256, 9: 256}}, 50)[0]
    assert (
        "3 of 50 rows hold" in told.text
        and "a.csv, row 1 (3 in a spreadsheet); b.csv, rows 2, 9" in told.text
    )
    assert told.figures == {"rows": {"a.csv": [1], "b.csv": [2, 9]}, "n": 3, "tokens": [256, 512]}


def test_references_are_scored_as_a_system_of_their_own():
    """The target of each source once, by every metric as any other output, and the figures of the others unmoved."""
    plain, with_target = (
        evaluate(ROWS, ["rouge", "chrf"], n_boot=50, references_as=name)
        for name in (None, "target")
    )
    assert with_target.systems == ["one", "two", "target"] and with_target.summary().n.tolist() == [
        12,
        12,
        12,
    ]
    pd.testing.assert_frame_equal(with_target.summary()[:2], plain.summary())
    target = with_target.per_pair[with_target.per_pair.system == "target"]
    assert (
        target.output.tolist() == [row["reference"] for row in ROWS[:12]]
        and (target.rouge1 == 1).all()
    )
    by_hand = [row | {"system": "target", "output": row["reference"]} for row in ROWS[:12]]
    same = evaluate([*ROWS, *by_hand], ["rouge", "chrf"], n_boot=50)
    pd.testing.assert_frame_equal(with_target.summary(), same.summary())
    assert with_target.compare("one", "target").set_index("metric").loc["rouge1"].n == 12
    note = next(
        note for note in with_target.notes().itertuples() if "scored as a system" in note.text
    )
    assert not note.warning and note.figures == {"n": 12, "with itself": 12}


def test_of_several_references_the_first_is_held_against_the_others():
    rows = [row | {"reference_2": f"mill {n}"} for n, row in enumerate(ROWS[:12])]
    result = evaluate(rows, ["rouge"], n_boot=5, references_as="target")
    target = result.per_pair[result.per_pair.system == "target"]
    assert (
        target.references.tolist() == [(f"mill {n}",) for n in range(12)]
        and (target.rouge1 < 1).all()
    )
    assert "with itself" not in str(result.notes().text.tolist()) and not any(
        "itself" in text for text in result.notes().text
    )


@pytest.mark.parametrize(
    "rows, name, words",
    [(ROWS, "two", "already"), ([{"source": "a", "output": "b"}], "target", "no column reference")],
)
def test_references_that_cannot_be_a_system_are_told(rows, name, words):
    with pytest.raises(InputError, match=f"references_as.*{words}"):
        evaluate(rows, ["readability"], n_boot=5, references_as=name)


def test_a_row_that_a_metric_refuses_is_named_as_in_the_table_also_where_it_came_from_a_reference():
    taken = take_rows(ROWS, references_as="target")
    assert taken.places.tolist() == [*range(24), *range(12)] and not taken.blank.any()


@pytest.mark.filterwarnings("ignore::tsteval.core.metric.ScoreWarning")
def test_an_output_without_a_text_is_let_through_where_texts_stand_alone():
    found = evaluate(
        [{"output": "It rained all day."}, {"output": ""}], ["readability"], n_boot=5, empty="skip"
    )
    assert found.per_pair.readability.tolist() == pytest.approx([118.175])
