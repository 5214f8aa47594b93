"""Raters: filled sheets read back or refused by place, and how far raters agree."""

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.people.test_sheets import PAIRS, rated, save
from tsteval.core.checks import InputError
from tsteval.people.raters import (
    rater_consistency,
    rater_table,
    raters_alpha,
    read_sheets,
    reliability,
    unblind,
)
from tsteval.people.sheets import plan_ratings
from tsteval.tables.formats import FileError
from tsteval.tables.ratings import RATING_COLUMNS, simulated_ratings

CRITERIA = ["style", "content", "naturalness"]


@pytest.fixture
def plan():
    return plan_ratings(PAIRS, raters=2, repeat=0.2)


@pytest.fixture(scope="module")
def simulated():
    return simulated_ratings(30, 4)


def test_ratings_come_back_to_their_systems(plan, tmp_path):
    answer = {
        "ann": lambda row, criterion: 1 + (row.output != row.source) * 3 + (criterion == "content"),
        "ben": lambda row, criterion: 2,
    }
    files = [
        save(rated(plan, sheet, answer[name]), tmp_path / f"{name}.csv")
        for sheet, name in zip(plan.sheets, answer)
    ]
    rows = unblind(read_sheets(files, plan), plan)
    assert list(rows)[: len(RATING_COLUMNS)] == list(RATING_COLUMNS)
    assert list(rows)[-2:] == ["rating_1", "rating_2"] and len(rows) == 36
    style = rows[rows.criterion == "style"].set_index(["system", "source_id"])
    for name, mean in (("SYSTEM-A", 1.5), ("SYSTEM-B", 3), ("SYSTEM-C", 3)):
        assert (style.loc[name].rating == mean).all()
    assert (
        np.allclose(style.loc["SYSTEM-A"].spread, np.std([1, 2], ddof=1))
        and (rows.raters == 2).all()
    )
    assert rows.reference.tolist() == [row["reference"] for row in PAIRS] * 3


def test_a_second_answer_counts_for_consistency_only(plan, tmp_path):
    again = {item.code for item in plan.sheets[0].items if item.again}
    ratings = read_sheets(
        [
            save(
                rated(plan, plan.sheets[0], lambda row, criterion: 5 if row.code in again else 4),
                tmp_path / "ann.csv",
            )
        ],
        plan,
    )
    assert (unblind(ratings, plan).rating == 4).all()
    found = rater_consistency(ratings)
    assert (found.n == 2).all() and (found.equal == 0).all() and (found.distance == 1).all()
    assert list(found.criterion) == ["style", "content", "naturalness"]


@pytest.mark.parametrize(
    "change",
    [
        "semicolons",
        "tabs-in-words",
        "sorted",
        "decimals",
        "commas",
        "spaces",
        "bom",
        "form",
        "crlf",
        "extra",
    ],
)
def test_what_spreadsheets_do_to_a_sheet_is_taken(plan, tmp_path, change):
    table = rated(plan, plan.sheets[0])
    path = tmp_path / "ann.csv"
    if change == "sorted":
        table = table.sort_values("source")
    if change == "decimals":
        table["style"] = "3.0"
    if change == "commas":
        table["style"] = "3,0"
    if change == "spaces":
        table["style"] = " 3 "
    if change == "extra":
        table["remarks"] = "fine, =1+1"
    if change == "form":
        table = table[["sheet", "code", "style", "content", "naturalness"]]
    if change == "tabs-in-words":
        table["source"] = table.source.str.replace(" ", "\t;")
    path.write_text(
        ("\ufeff" if change == "bom" else "")
        + table.to_csv(
            index=False,
            sep=";" if change == "semicolons" else ",",
            lineterminator="\r\n" if change == "crlf" else "\n",
        ),
        encoding="utf-8",
        newline="",
    )
    found = read_sheets([path], plan)
    assert (found.rating == 3).all() and len(found) == 30


CELLS = {
    "high": "6",
    "zero": "0",
    "half": "2.5",
    "words": "good",
    "formula": "=CMD|'/c calc'!A1",
    "arabic": "\u0663",
    "empty": "",
}
CHANGES = {
    "gone": lambda table: table.drop(index=[4, 5]),
    "twice": lambda table: pd.concat([table, table.iloc[[4]]]),
    "column": lambda table: table.drop(columns="content"),
    "other": lambda table: table.assign(sheet="sheet-000000000000"),
}


def spoiled(plan, change):
    table = rated(plan, plan.sheets[0])
    if change in CELLS:
        table.loc[4, "content"] = CELLS[change]
    if change == "code":
        table.loc[4, "code"] = "r9-9"
    if change == "two":
        table.loc[4, "sheet"] = plan.sheets[1].digest
    return CHANGES.get(change, lambda table: table)(table)


@pytest.mark.parametrize(
    "change, words",
    [
        ("high", r"column content, row 4: '6' is no rating; ratings are whole numbers from 1 to 5"),
        ("zero", "column content, row 4: '0'"),
        ("half", "column content, row 4: '2.5'"),
        ("words", "column content, row 4: 'good'"),
        ("formula", 'column content, row 4: "=CMD'),
        ("arabic", "column content, row 4"),
        ("empty", r"column content, row 4: item r1-05 has no rating.*1 of 30 ratings are missing"),
        ("gone", r"the item r1-05 is missing.*6 of 30"),
        ("twice", "column code, row 10: r1-05 stands twice"),
        ("code", "column code, row 4: 'r9-9' is no item"),
        ("column", "there is no column content"),
        ("other", "column sheet, row 0: .* is no sheet of this key"),
        ("two", "column sheet, row 4: the file holds two sheets"),
    ],
)
def test_a_mistake_is_named_by_file_row_and_column(plan, tmp_path, change, words):
    path = save(spoiled(plan, change), tmp_path / "ann.csv")
    with pytest.raises(FileError, match=words) as error:
        read_sheets([path], plan)
    assert str(path) in str(error.value)
    if change in ("empty", "gone"):
        assert len(read_sheets([path], plan, unfinished=True)) == (29 if change == "empty" else 24)
    else:
        with pytest.raises(FileError, match=words):
            read_sheets([path], plan, unfinished=True)


def test_files_are_raters(plan, tmp_path):
    first, second = (
        save(rated(plan, plan.sheets[0], lambda row, criterion: rating), tmp_path / f"{name}.csv")
        for name, rating in (("ann", 3), ("ben", 4))
    )
    assert list(read_sheets([first, second], plan).rater.unique()) == ["ann", "ben"]
    copy = save(rated(plan, plan.sheets[0]), tmp_path / "copy.csv")
    with pytest.raises(FileError, match=r"copy.csv: holds the same ratings as ann"):
        read_sheets([first, copy], plan)
    with pytest.raises(FileError, match="no such file"):
        read_sheets([tmp_path / "none.csv"], plan)
    with pytest.raises(FileError, match="no filled sheet"):
        read_sheets([], plan)
    (tmp_path / "empty.csv").write_text("")
    with pytest.raises(FileError, match=r"empty.csv: the file is empty"):
        read_sheets([tmp_path / "empty.csv"], plan)


def test_alpha_is_krippendorffs_example_and_nan_where_nothing_varies():
    none = np.nan  # Krippendorff 2011, the four observers of section C to E
    observers = np.array(
        [
            [1, 2, 3, 3, 2, 1, 4, 1, 2, none, none, none],
            [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, none, 3],
            [none, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, none],
            [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, none],
        ]
    ).T
    found = [
        round(raters_alpha(observers, level), 3)
        for level in ("nominal", "ordinal", "interval", "ratio")
    ]
    assert found == [0.743, 0.815, 0.849, 0.797]
    assert np.isnan(raters_alpha(np.ones((4, 2)))) and raters_alpha([[1, 1], [2, 2], [3, 3]]) == 1
    with pytest.raises(InputError, match="at least two raters"):
        raters_alpha([[1], [2]])
    with pytest.raises(InputError, match="level must be one of"):
        raters_alpha(observers, "metric")


def test_reliability_of_raters():
    answers = simulated_ratings(2000, 6, seed=1).query("criterion == 'content'")[
        ["rating_1", "rating_2", "rating_3"]
    ]
    assert reliability(answers) == pytest.approx(0.75, abs=0.02)
    assert reliability(answers[["rating_1", "rating_2"]]) == pytest.approx(2 / 3, abs=0.03)
    assert reliability(answers.add([0, 1, 2])) == pytest.approx(reliability(answers), abs=1e-12)
    assert np.isnan(reliability([[1, 2], [1, 3], [1, 4]]))


def test_an_alpha_that_would_need_gigabytes_is_refused():
    answers = np.random.default_rng(0).normal(size=(400, 3))
    with pytest.raises(InputError, match="round them"):
        raters_alpha(answers)
    assert np.isfinite(raters_alpha(answers.round(1)))


def test_ceilings_follow_from_the_raters(simulated):
    found = rater_table(simulated_ratings(400, 4, seed=3))
    assert np.allclose(found.reliability, 0.75, atol=0.03) and np.allclose(
        found.ceiling**2, found.reliability
    )
    alone = rater_table(simulated.drop(columns=["rating_2", "rating_3"]))
    assert alone.alpha.isna().all() and alone.ceiling.isna().all()


def test_outputs_that_were_shown_as_one_count_once(simulated):
    twice = pd.concat([simulated, simulated.assign(system="copy")]).assign(
        shown=lambda frame: frame.item
    )
    assert rater_table(twice).alpha.tolist() == pytest.approx(rater_table(simulated).alpha.tolist())


# ---- a code and its text


def moved(table, columns, order):
    """The same table with some columns in another order, as a sort of a selection leaves them."""
    return table.assign(**{name: table[name].to_numpy()[order] for name in columns})


@pytest.mark.parametrize("columns", [["source", "output"], ["output"], ["code", "sheet"]])
def test_texts_that_left_their_codes_are_refused_by_row(plan, tmp_path, columns):
    table = rated(plan, plan.sheets[0])
    path = save(moved(table, columns, np.arange(len(table))[::-1]), tmp_path / "ann.csv")
    with pytest.raises(FileError, match=r"ann.csv: column (source|output), row 0: this is not the"):
        read_sheets([path], plan)
    save(pd.read_csv(path, dtype=str)[["sheet", "code", *CRITERIA]], path)
    assert len(read_sheets([path], plan)) == 30


@settings(deadline=None, max_examples=20)
@given(st.permutations(range(10)), st.booleans())
def test_ratings_go_to_the_text_that_they_stand_beside_or_nowhere(order, whole):
    plan = plan_ratings(PAIRS, raters=2, repeat=0.2)
    numbers = {
        text: number % 5 + 1
        for number, text in enumerate(dict.fromkeys(row["output"] for row in PAIRS))
    }
    table = rated(plan, plan.sheets[0])
    for criterion in CRITERIA:
        table[criterion] = [numbers[text] for text in table.output]
    changed = moved(table, list(table) if whole else ["source", "output", *CRITERIA], list(order))
    with tempfile.TemporaryDirectory() as folder:
        path = save(changed, Path(folder) / "ann.csv")
        if not whole and (changed[["source", "output"]] != table[["source", "output"]]).any(
            axis=None
        ):
            with pytest.raises(FileError, match="this is not the"):
                read_sheets([path], plan)
            return
        answers = read_sheets([path], plan)
    texts = plan.table.drop_duplicates("shown").set_index("shown").output
    assert answers.rating.tolist() == [numbers[texts[shown]] for shown in answers.shown]


def test_a_sheet_of_a_spreadsheet_is_read(plan, tmp_path):
    pytest.importorskip("openpyxl")
    table = rated(plan, plan.sheets[0]).astype(dict.fromkeys(CRITERIA, int))
    table.to_excel(tmp_path / "ann.xlsx", index=False)
    assert (read_sheets([tmp_path / "ann.xlsx"], plan).rating == 3).all()


def test_names_are_nominal_answers_and_no_numbers():
    names = [["yes", "yes"], ["no", "yes"], ["no", "no"], [None, "no"]]
    numbers = [[1, 1], [0, 1], [0, 0], [np.nan, 0]]
    assert raters_alpha(names, "nominal") == pytest.approx(4 / 9)
    assert raters_alpha(numbers, "nominal") == pytest.approx(4 / 9)
    for measure in (raters_alpha, reliability):
        with pytest.raises(InputError, match="answers, row 0: not a row of numbers"):
            measure(names)
        with pytest.raises(InputError, match="answers, row 1: its shape is"):
            measure([[1, 2], [1]])
        with pytest.raises(InputError, match="infinite"):
            measure([[1, 2], [1, np.inf]])
    with pytest.raises(InputError, match="answers, row 0"):
        raters_alpha([["yes", "no"], ["yes"]], "nominal")
    with pytest.raises(InputError, match="at least two raters"):
        raters_alpha([["yes"], ["no"]], "nominal")


def test_the_noise_of_floats_is_no_disagreement():
    assert np.isnan(raters_alpha([[0.3, 0.1 + 0.2], [0.3, 0.3], [0.1 + 0.2, 0.3]]))


def test_a_rater_who_runs_against_the_others_leaves_no_ceiling():
    """One who read the scale backwards once lifted nothing and hid in a ceiling of the other two."""
    rows = simulated_ratings(60, 4, seed=5)
    known = rater_table(rows)
    assert (known.against == "").all() and known.ceiling.notna().all()
    columns = [name for name in rows if name.startswith("rating_")]
    turned = rows.assign(**{columns[0]: 6 - rows[columns[0]]})
    found = rater_table(turned)
    assert found.against.str.startswith(f"{columns[0]} (r -").all() and found.ceiling.isna().all()
    two = rater_table(turned.drop(columns=columns[2:]))
    assert (two.against == "").all()
