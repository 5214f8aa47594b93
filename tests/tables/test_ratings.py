"""Rated outputs: the four studies, a reader's own file, the simulated study, the stored scores and what was found with
them."""

import os

import numpy as np
import pandas as pd
import pytest

from tsteval.core.assets import AssetError, corpus_path
from tsteval.core.checks import InputError
from tsteval.tables.formats import FileError
from tsteval.tables.ratings import (
    _CRITERIA,
    _STYLE_GAP_FILES,
    RATING_COLUMNS,
    SIMULATED_SCORES,
    load_ratings,
    simulated_ratings,
    simulated_truth,
    stored_scores,
)

needs_data = pytest.mark.skipif(
    not os.environ.get("TSTEVAL_DATA"),
    reason="set TSTEVAL_DATA to the folder that holds the rated studies",
)


def written(folder, *lines, name="mine.csv"):
    (folder / name).write_text("\n".join(lines), encoding="utf-8")
    return folder / name


# ---- a reader's own file


def test_rows_of_one_output_are_averaged(tmp_path):
    path = written(
        tmp_path,
        "source,output,criterion,rating",
        "s,o,style,1",
        "s,o,style,4",
        "s,o,style,4",
        "s,p,style,2",
        "s,o,meaning,5",
    )
    table = load_ratings(path)
    assert list(table.columns[: len(RATING_COLUMNS)]) == list(RATING_COLUMNS)
    assert (
        table.rating.tolist() == [3, 2, 5]
        and table.raters.tolist() == [3, 1, 1]
        and table.item.tolist() == [0, 1, 0]
    )
    assert table.criterion.tolist() == ["style", "style", "content"] and table.asked.tolist() == [
        "style",
        "style",
        "meaning",
    ]
    assert (
        np.isclose(table.spread[0], 3**0.5)
        and np.isnan(table.spread[1])
        and set(table.data_set) == {"mine"}
    )
    assert table[["rating_1", "rating_2", "rating_3"]].iloc[0].tolist() == [1, 4, 4]


def test_raters_have_columns_in_order_of_appearance_and_count_once(tmp_path):
    path = written(
        tmp_path,
        "source,output,criterion,rating,rater",
        "s,o,style,1,zoe",
        "s,o,style,3,zoe",
        "s,o,style,5,adam",
        "s,p,style,4,adam",
    )
    table = load_ratings(path)
    assert (
        table.rating.tolist() == [3.5, 4]
        and table.rating_1.tolist()[0] == 2
        and np.isnan(table.rating_1[1])
    )
    assert table.rating_2.tolist() == [5, 4] and table.raters.tolist() == [2, 1]


def test_systems_sources_and_gaps_are_kept_apart(tmp_path):
    path = written(
        tmp_path,
        "system,source,source_id,output,criterion,rating,reference",
        "a,one,7,o,Style,1,r",
        "b,one more,7,o,Style,2,",
        "a,two,8,o,tone, ,r",
    )
    table = load_ratings(path)
    assert table.system.tolist() == ["a", "b"] and table.source_id.tolist() == [0, 0]
    assert table.criterion.tolist() == ["style", "style"]
    assert table.reference[0] == "r" and not table.reference[1]


@pytest.mark.parametrize(
    "lines, words",
    [
        (
            ("source,output,rating", "s,o,1"),
            (
                "column criterion",
                "a table of ratings has source, output, criterion (what was rated",
            ),
        ),
        (
            ("source,output,criterion,rating", "s,o,style,1", "s,o,style,high"),
            ("column rating", "row 1", "'high'"),
        ),
        (("source,output,criterion,rating", "s,o,style,inf"), ("column rating", "row 0")),
        (
            ("source,output,criterion,rating", "s,o,style,1", "s,,style,1"),
            ("column output", "row 1"),
        ),
        (("source,output,criterion,rating", "s,o,,1"), ("column criterion", "row 0")),
        (("source,output,criterion,rating", "s,o,style,"), ("no rating",)),
        (("source,output,criterion,rating", "s,o,style"), ("row 0", "3 fields")),
    ],
)
def test_errors_name_file_row_and_column(tmp_path, lines, words):
    with pytest.raises(FileError) as caught:
        load_ratings(written(tmp_path, *lines))
    assert all(word in str(caught.value) for word in ("mine.csv", *words)), caught.value


def test_names_that_are_none_say_which_there_are(tmp_path):
    with pytest.raises(InputError, match="mir2019"):
        load_ratings("mir2020")
    with pytest.raises(FileError, match="no such file"):
        load_ratings(tmp_path / "none.csv")


def test_a_study_that_is_not_here_says_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setenv("TSTEVAL_DATA", str(tmp_path))
    monkeypatch.setenv("TSTEVAL_CACHE", str(tmp_path))
    for name in ("mir2019", "lai2022", "style_gap", "msr_compression"):
        with pytest.raises(AssetError, match="To mend it"):
            load_ratings(name)


def test_a_changed_file_of_a_study_is_refused(monkeypatch, tmp_path):
    (tmp_path / "style_gap").mkdir()
    for number in (1, 2, 3):
        written(
            tmp_path / "style_gap",
            "sample_id,input,output",
            "0,a,b",
            name=f"syntest_anno{number}.csv",
        )
    monkeypatch.setenv("TSTEVAL_DATA", str(tmp_path))
    with pytest.raises(AssetError, match="has changed"):
        load_ratings("style_gap")


# ---- the four studies


@pytest.mark.parametrize(
    "name, outputs, sources, criteria",
    [
        ("mir2019", 1952, 243, _CRITERIA),
        ("lai2022", 495, 55, _CRITERIA),
        ("style_gap", 200, 99, ("style", "content")),
        ("msr_compression", 3442, 2675, ("content", "naturalness")),
    ],
)
@needs_data
def test_studies_come_in_one_shape(name, outputs, sources, criteria):
    table = load_ratings(name)
    assert list(table.columns[: len(RATING_COLUMNS)]) == list(RATING_COLUMNS) and len(
        table
    ) == outputs * len(criteria)
    assert (
        table.rating.notna().all()
        and set(table.data_set) == {name}
        and tuple(dict.fromkeys(table.criterion)) == criteria
    )
    assert table.item.nunique() == outputs and table.source_id.nunique() == sources
    assert (table.groupby("source").source_id.nunique() == 1).all() and (
        table.groupby("item").output.nunique() == 1
    ).all()
    answers = table.filter(regex=r"rating_\d")
    if answers.shape[1]:
        assert np.allclose(answers.mean(axis=1), table.rating) and np.allclose(
            answers.std(axis=1), table.spread
        )


@needs_data
def test_means_are_those_of_the_published_files():
    mir = load_ratings("mir2019")
    gap = load_ratings("style_gap")
    assert (
        np.allclose(mir.rating * 3, (mir.rating * 3).round()) and (mir.raters == 3).all()
    )  # thirds: three raters
    files = pd.concat([pd.read_csv(corpus_path("style_gap") / file) for file in _STYLE_GAP_FILES])
    assert np.allclose(gap[gap.criterion == "content"].rating, files.annoB_mean) and np.allclose(
        gap[gap.criterion == "style"].rating, files.annoA_mean
    )


# ---- the simulated study


def test_the_simulated_study_has_the_shape_and_the_truth():
    table = simulated_ratings(1500, 4, seed=3)
    assert (
        list(table.columns[: len(RATING_COLUMNS)]) == list(RATING_COLUMNS)
        and len(table) == 3 * 1500 * 4
    )
    truth = simulated_truth()
    assert (
        list(truth.index) == list(SIMULATED_SCORES)
        and truth.loc["misleading", "pooled"] > 0 > truth.loc["misleading", "within"]
    )
    for criterion in _CRITERIA:
        rows = table[table.criterion == criterion]
        found = rows[list(SIMULATED_SCORES)].corrwith(rows.rating)
        assert abs(found - truth.pooled).max() < 0.05
        each = [
            part[list(SIMULATED_SCORES)].corrwith(part.rating) for _, part in rows.groupby("system")
        ]
        inside = pd.DataFrame(each)
        assert abs(inside.mean() - truth.within).max() < 0.05


def test_the_simulated_study_follows_its_seed():
    assert simulated_ratings(5, 2, seed=1).equals(simulated_ratings(5, 2, seed=1))
    assert not simulated_ratings(5, 2, seed=1).equals(simulated_ratings(5, 2, seed=2))
    with pytest.raises(InputError, match="n_systems"):
        simulated_ratings(5, 1)
    assert simulated_truth(10**9).loc["near", "pooled"] == pytest.approx(0.7)


# ---- the stored scores, and what was found with them


def test_every_output_has_its_scores():
    for name, outputs in (
        ("mir2019", 1952),
        ("lai2022", 495),
        ("style_gap", 200),
        ("msr_compression", 3442),
    ):
        table = stored_scores(name)
        assert len(table) == outputs and list(table.columns[:4]) == [
            "data_set",
            "system",
            "item",
            "source_id",
        ]
        scores = table.select_dtypes("number")
        assert {"logprob", "nce", "cosine", "chrf", "bert_score", "words"} <= set(
            scores
        ) and np.isfinite(scores[["cosine", "logprob"]]).all(axis=None)
    with pytest.raises(InputError, match="mir2019"):
        stored_scores("mine")


@needs_data
def test_scores_fit_the_outputs_they_are_of():
    ratings = load_ratings("style_gap")
    assert len(stored_scores("style_gap", ratings)) == 200
    with pytest.raises(InputError, match="not the outputs"):
        stored_scores("style_gap", ratings.assign(output=ratings.output + "!"))


@needs_data
def test_stored_scores_are_those_of_the_package(encoder):
    from tsteval.bleu import sentence_bleu
    from tsteval.cps import cosine
    from tsteval.overlap import chrf

    for name in ("mir2019", "lai2022"):
        rows = load_ratings(name).drop_duplicates("item").iloc[::211].reset_index(drop=True)
        stored = stored_scores(name).iloc[rows.item]
        assert list(stored.item) == list(rows.item)
        assert np.allclose(stored.chrf, chrf(rows.output, rows.source), rtol=1e-3)
        assert np.allclose(
            stored.bleu,
            [sentence_bleu(*pair).score for pair in zip(rows.output, rows.source)],
            rtol=1e-3,
        )
        vectors = encoder.encode([*rows.source, *rows.output])
        assert np.allclose(stored.cosine, cosine(*np.split(vectors, 2)), rtol=1e-3, atol=1e-4)
