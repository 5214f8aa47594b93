"""A study from ratings and scores: read, joined, tables, page, command, explorer; against the correlations themselves
and known truth."""

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tests.cli.conftest import run
from tsteval.core.assets import packaged_path
from tsteval.core.display import number
from tsteval.people.pages import study_page, told_study
from tsteval.people.sheets import plan_ratings, sheet_table, write_sheets
from tsteval.people.study import (
    OUTPUT_KEYS,
    STUDIES,
    Study,
    _system_table,
    metrics_for,
    read_scores,
    read_study,
    study_scores,
    study_tables,
)
from tsteval.tables.formats import FileError
from tsteval.tables.ratings import SIMULATED_SCORES, simulated_ratings, stored_scores

HOSTILE = "</bdi><script>alert(1)</script>"


@pytest.fixture(scope="module")
def simulated():
    return simulated_ratings(30, 4)


@pytest.fixture(scope="module")
def scores(simulated):
    return simulated[simulated.criterion == "style"][
        ["data_set", "item", *SIMULATED_SCORES]
    ].reset_index(drop=True)


@pytest.fixture(scope="module")
def tables(simulated, scores):
    return study_tables(Study(simulated), scores, n_boot=200)  # ---- tables


def test_the_table_holds_the_correlations(simulated, scores, tables):
    style = simulated[simulated.criterion == "style"]
    found = tables["agreement"].query("criterion == 'style'").set_index("metric")
    for name in SIMULATED_SCORES:
        assert found.pearson[name] == pytest.approx(
            stats.pearsonr(style[name], style.rating).statistic, abs=1e-9
        )
        assert found.pearson_low[name] < found.pearson[name] < found.pearson_high[name]
    assert (found.n == 120).all() and (found.sources == 30).all()
    assert list(tables) == ["agreement", "systems", "raters", "means"]


def test_systems_are_ordered_as_their_means(simulated, scores, tables):
    style = simulated[simulated.criterion == "style"]
    found = tables["systems"].query("criterion == 'style'").set_index("metric")
    means = style.groupby("system")[["rating", *SIMULATED_SCORES]].mean()
    for name in SIMULATED_SCORES:
        assert found.tau[name] == pytest.approx(
            stats.kendalltau(means[name], means.rating).statistic
        )
    assert (found.systems == 4).all() and found.p_value.min() >= 2 / 24 - 1e-12


def test_only_sources_of_every_system_count(simulated, scores):
    short = simulated[~((simulated.system == "A") & (simulated.source_id < 10))]
    assert (_system_table(short, scores, "style", ["near"], n_boot=50).sources == 20).all()
    assert _system_table(
        simulated[simulated.system.isin(["A", "B"])], scores, "style", ["near"]
    ).empty


def test_a_score_with_gaps(simulated, scores):
    gaps = scores.assign(near=scores.near.where(scores.index % 3 > 0), none=np.nan)
    found = (
        study_tables(Study(simulated), gaps, n_boot=50)["agreement"]
        .query("criterion == 'style'")
        .set_index("metric")
    )
    assert found.n["near"] == 80 and "none" not in found.index  # ---- reading


def write_answers(frame, path):
    frame.drop(columns="rating").melt(
        ["system", "source", "output", "criterion"],
        ["rating_1", "rating_2", "rating_3"],
        "rater",
        "rating",
    ).to_csv(path, index=False)


@pytest.mark.parametrize(
    "columns, words",
    [
        (["system", "near"], "to be joined it needs"),
        (["system", "source", "output"], "no column holds numbers"),
        (["system", "source", "output", "near"], None),
    ],
)
def test_scores_from_a_file(simulated, tmp_path, columns, words):
    path = tmp_path / "scores.csv"
    simulated[simulated.criterion == "style"][columns].to_csv(path, index=False)
    if words is None:
        assert list(read_scores(path, simulated)) == ["data_set", "item", "near"]
    else:
        with pytest.raises(FileError, match=f"scores.csv: .*{words}"):
            read_scores(path, simulated)


def test_what_raters_said_of_each_system_stands_first(simulated, tables):
    one = tables["means"].query("criterion == 'style'").iloc[0]
    ratings = simulated.query("criterion == 'style' and system == @one.system")
    assert len(ratings) == one.outputs == one.sources  # one output a source: Student's interval
    low, high = stats.t.interval(
        0.95, len(ratings) - 1, ratings.rating.mean(), stats.sem(ratings.rating)
    )
    assert (one["mean"], one.low, one.high) == pytest.approx((ratings.rating.mean(), low, high))
    page = study_page(tables, {})
    assert f"{number(one.low)} to {number(one.high)}" in page[page.index("What raters said") :]
    told = told_study(tables)
    assert told.index("rated for style") < told.index("follows the raters")


def test_scores_of_other_outputs_are_refused(simulated, tmp_path):
    simulated.assign(output="x")[["system", "source", "output", "near"]].to_csv(
        tmp_path / "scores.csv", index=False
    )
    with pytest.raises(FileError, match="none of its rows is a rated output"):
        read_scores(tmp_path / "scores.csv", simulated)


def test_sheets_need_their_key(tmp_path):
    pairs = [{"source": f"s{n}", "output": f"o{n}"} for n in range(4)]
    write_sheets(plan_ratings(pairs), tmp_path)
    with pytest.raises(FileError, match=r"give the key.json that was written with it, with --key"):
        read_study([tmp_path / "for-raters" / "rater-1.csv"])
    with pytest.raises(
        FileError, match="no filled sheet; put those that come back into the folder ratings"
    ):
        read_study([tmp_path])
    with pytest.raises(FileError, match="give one study"):
        read_study([tmp_path, "mir2019"])
    with pytest.raises(FileError):
        read_study(["nowhere.csv"])


def test_stored_scores_are_for_published_studies_alone(simulated):
    assert study_scores(Study(simulated)) is None
    assert study_scores(Study(simulated.assign(data_set="mir2019")), anew=True) is None


def test_each_stored_score_belongs_to_one_criterion():
    scores = pd.concat([stored_scores(name) for name in STUDIES]).drop(columns=list(OUTPUT_KEYS))
    meant = {
        criterion: metrics_for(criterion, scores)
        for criterion in ("style", "content", "naturalness")
    }
    baselines = ["words", "characters", "longer", "equal_length", "copy"]
    assert all(names[:5] == baselines for names in meant.values())
    rest = [name for names in meant.values() for name in names[5:]]
    assert sorted(rest + baselines) == sorted(scores)  # each is somewhere, and none twice
    assert "sti" in meant["style"] and "slor_brown" in meant["naturalness"]
    assert {"cps_pad", "style_aware", "facts_kept"} <= set(meant["content"])
    assert metrics_for("politeness", scores) == list(scores)


PAIRS = [
    {
        "system": system,
        "source": f"The superb bridge number {n} opened.",
        "output": output.format(n),
    }
    for n in range(8)
    for system, output in (
        ("a", "The superb bridge number {} opened."),
        ("b", "Bridge number {} opened."),
        ("c", "The bridge number {} opened at last."),
    )
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A study of two raters, filled in."""
    monkeypatch.chdir(tmp_path)
    plan = plan_ratings(PAIRS, raters=2, repeat=0.2)
    write_sheets(plan, tmp_path / "mine")
    for sheet, kinder in zip(plan.sheets, (0, 1)):
        table = sheet_table(plan, sheet)
        for criterion in plan.criteria:
            table[criterion.name] = [
                min(5, len(row.output) % 4 + 1 + kinder) for row in table.itertuples()
            ]
        table.to_csv(tmp_path / "mine" / "ratings" / f"{sheet.rater}.csv", index=False)
    return tmp_path


def test_from_sheets_to_tables(folder, capsys):
    status, out, err = run(
        capsys,
        "study",
        "mine",
        "--metrics",
        "chrf:against=source,readability",
        "--n-boot",
        50,
        "--output",
        "out",
    )
    assert status == 0 and "chrf" in out and "number of words" in out
    agreement = pd.read_csv("out/agreement.csv")
    assert set(agreement.metric) == {"chrf", "readability", "number of words"} and set(
        agreement.criterion
    ) == {"style", "content", "naturalness"}
    assert (
        pd.read_csv("out/consistency.csv").n.eq(5).all()
        and pd.read_csv("out/raters.csv").raters.eq(2).all()
    )
    assert (
        "chrF" in Path("out/study.html").read_text() or "chrf" in Path("out/study.html").read_text()
    )
    status, _, err = run(
        capsys,
        "study",
        "out/ratings.csv",
        "--scores",
        "out/scores.csv",
        "--n-boot",
        50,
        "--output",
        "again",
    )
    assert status == 0, err
    pd.testing.assert_series_equal(
        pd.read_csv("again/agreement.csv").pearson, agreement.pearson, atol=1e-9
    )
    files = ["mine/ratings/rater-1.csv", "mine/ratings/rater-2.csv"]
    status, _, err = run(
        capsys,
        "study",
        *files,
        "--key",
        "mine/key.json",
        "--scores",
        "out/scores.csv",
        "--n-boot",
        50,
        "--output",
        "third",
    )
    assert status == 0, err
    pd.testing.assert_series_equal(
        pd.read_csv("third/agreement.csv").pearson, agreement.pearson, atol=1e-9
    )


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["nowhere"], "mir2019"),
        (["mine/ratings/rater-1.csv"], "--key"),
        (["mine", "--metrics", "nothing"], "nothing"),
        (["mine", "--scores", "none.csv"], "none.csv: there is no such file"),
        (["mine", "--n-boot", "0"], "--n-boot"),
        (["mine", "mir2019"], "give one study"),
        (["mine", "--key", "none.json"], "none.json: there is no such file"),
    ],
)
def test_mistakes_are_one_line(folder, capsys, arguments, words):
    status, out, err = run(capsys, "study", *arguments, "--output", "out")
    assert (
        status == 2
        and not out
        and err.count("\n") == 1
        and words in err
        and not Path("out").exists()
    )


def test_a_spoiled_rating_is_named_and_unfinished_sheets_are_taken(folder, capsys):
    path = Path("mine/ratings/rater-1.csv")
    table = pd.read_csv(path, dtype=str)
    table.loc[2, "style"] = ""
    table.to_csv(path, index=False)
    status, _, err = run(capsys, "study", "mine", "--metrics", "chrf")
    assert (
        status == 2
        and "mine/ratings/rater-1.csv: column style, row 2: item r1-03 has no rating" in err
        and "line 4 of a spreadsheet" in err
    )
    status, _, _ = run(
        capsys, "study", "mine", "--metrics", "readability", "--unfinished", "--n-boot", 50
    )
    assert status == 0


@pytest.mark.all
@pytest.mark.parametrize("name", STUDIES)
def test_a_published_study_is_remade_from_its_stored_scores(tmp_path, capsys, monkeypatch, name):
    from tsteval.core.assets import AssetError, corpus_path

    monkeypatch.chdir(tmp_path)
    try:
        corpus_path(name)
    except AssetError as error:
        pytest.skip(str(error))
    if not packaged_path("agreement_scores.csv.gz").is_file():
        pytest.skip("no stored scores")
    status, _out, err = run(capsys, "study", name, "--n-boot", 200)
    assert status == 0, err
    found = pd.read_csv("tsteval-study/agreement.csv")
    assert set(found.data_set) == {name} and found.pearson.notna().mean() > 0.9 and len(found) > 20


# ---- what did not come back, and what does not join


def test_a_sheet_that_did_not_come_back_is_named(folder, capsys):
    (folder / "mine/ratings/rater-2.csv").unlink()
    status, _, err = run(capsys, "study", "mine")
    assert status == 2 and "the sheet of rater-2 is not among" in err and "1 of 2" in err
    assert len(read_study(["mine"], unfinished=True).answers.rater.unique()) == 1


def test_a_sheet_that_was_saved_otherwise_is_read_or_named(folder, capsys):
    sheet = folder / "mine/ratings/rater-2.csv"
    before = read_study(["mine"]).ratings
    pd.read_csv(sheet).to_excel(sheet.with_suffix(".xlsx"), index=False)
    status, _, err = run(capsys, "study", "mine")
    assert status == 2 and "rater-2.xlsx: holds the same ratings as rater-2" in err
    sheet.rename(folder / "mine/ratings/rater-2.ods")
    status, _, err = run(capsys, "study", "mine")
    assert status == 2 and "rater-2.ods: filled sheets end in .csv or .xlsx" in err
    (folder / "mine/ratings/rater-2.ods").unlink()
    pd.testing.assert_frame_equal(read_study(["mine"]).ratings, before)


def test_rated_outputs_without_a_score_are_counted_and_one_is_named(simulated, tmp_path):
    path = tmp_path / "scores.csv"
    table = simulated[simulated.criterion == "style"][["system", "source", "output", "near"]]
    table.iloc[10:].to_csv(path, index=False)
    with pytest.raises(
        FileError, match=r"10 of 120 rated outputs have no row in it, such as 'Output 0"
    ):
        read_scores(path, simulated)
    table.to_csv(path, index=False)
    assert len(read_scores(path, simulated)) == 120


@settings(deadline=None, max_examples=15)
@given(st.sets(st.integers(0, 119)))
def test_no_rated_output_is_left_out_without_a_word(rows):
    ratings = simulated_ratings(30, 4)
    table = ratings[ratings.criterion == "style"][["system", "source", "output", "near"]]
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "scores.csv"
        table.drop(index=table.index[list(rows)]).to_csv(path, index=False)
        if rows:
            with pytest.raises(FileError):
                read_scores(path, ratings)
        else:
            assert len(read_scores(path, ratings)) == 120


def test_scores_join_whatever_way_their_letters_are_written(tmp_path):
    rows = [
        {
            "system": "A",
            "source": f"un caf\u00e9 {n}",
            "output": "x\ny",
            "criterion": "style",
            "rating": n,
        }
        for n in range(4)
    ]
    pd.DataFrame(rows).to_csv(tmp_path / "mine.csv", index=False)
    other = [
        {"system": "A ", "source": f"un cafe\u0301 {n}", "output": "x\r\ny", "length": n}
        for n in range(4)
    ]
    pd.DataFrame(other).to_csv(tmp_path / "scores.csv", index=False)
    scores = read_scores(tmp_path / "scores.csv", read_study([tmp_path / "mine.csv"]).ratings)
    assert scores.length.tolist() == [0, 1, 2, 3]
