"""What a study writes: files that are read back, one page that escapes every name, nothing of a published text."""

import re

import numpy as np
import pandas as pd
import pytest

from tsteval.people.pages import conclusions, study_files, study_page, told_study
from tsteval.people.study import Study, read_scores, read_study, study_tables
from tsteval.tables.ratings import SIMULATED_SCORES, simulated_ratings

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
    return study_tables(Study(simulated), scores, n_boot=200)


def test_what_a_study_writes_is_read_back(simulated, scores, tables, tmp_path):
    files = study_files(Study(simulated), scores, tables, {})
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    again = read_study([tmp_path / "ratings.csv"])
    found = read_scores(tmp_path / "scores.csv", again.ratings)
    keep = ["metric", "n", "pearson", "spearman", "partial", "within"]
    pd.testing.assert_frame_equal(
        study_tables(again, found, n_boot=200)["agreement"][keep],
        tables["agreement"][keep],
        check_exact=False,
        atol=1e-9,
    )
    assert sorted(files) == [
        "agreement.csv",
        "forest-content.svg",
        "forest-naturalness.svg",
        "forest-style.svg",
        "means.csv",
        "raters.csv",
        "ratings.csv",
        "scores.csv",
        "study.html",
        "systems.csv",
    ]


def test_a_published_study_leaves_no_text_behind(simulated, scores):
    named = simulated.assign(data_set="lai2022", source="SECRET source", output="SECRET output")
    files = study_files(
        Study(named),
        scores.assign(data_set="lai2022"),
        study_tables(Study(named), scores.assign(data_set="lai2022"), n_boot=20),
        {},
    )
    assert "ratings.csv" not in files and not any("SECRET" in text for text in files.values())


def test_names_in_the_page_are_text(simulated, scores):
    named = simulated.assign(data_set=HOSTILE, criterion=simulated.criterion + HOSTILE)
    bad = scores.assign(data_set=HOSTILE).rename(columns={"near": HOSTILE})
    tables = study_tables(Study(named), bad, n_boot=20)
    page = study_page(tables, {HOSTILE: HOSTILE})
    assert (
        page.count("<script") == 1
        and "alert(1)</script>" not in page
        and "default-src 'none'" in page
    )
    assert not re.search(r'(src|href)=(?!"#)', page)  # what is named lies in the page itself
    assert all(
        re.fullmatch(r"[a-z0-9.-]+", name) for name in study_files(Study(named), bad, tables, {})
    )


def test_a_page_has_the_report_s_style_and_script(tables):
    page = study_page(tables, {})
    assert (
        "sortable" in page
        and "aria-sort" in page
        and "prefers-color-scheme: dark" in page
        and "nan" not in re.sub("<script.*", "", page, flags=re.S).lower().split("<style>")[0]
    )


# ---- in words


def test_the_conclusion_names_the_leader_a_trivial_score_what_is_left_within_and_the_raters(
    simulated, scores
):
    words = simulated.assign(
        output=[" ".join(["word"] * (2 + item % 5)) for item in simulated["item"]]
    )
    tables = study_tables(Study(words), scores, n_boot=200)
    style = conclusions(tables)[0]
    row = tables["agreement"].query("criterion == 'style' and metric == 'near'").iloc[0]
    plain = (
        tables["agreement"].query("criterion == 'style' and metric == 'number of words'").iloc[0]
    )
    assert (
        f"near follows the raters most closely, at {row.pearson:.3f} [{row.pearson_low:.3f}, "
        in style
    )
    assert (
        "120 outputs of 30 sources" in style
        and f"within systems near has {row.within:.3f}" in style.lower()
    )
    assert f"number of words, which reads nothing, has {plain.pearson:.3f}" in style
    picked = sorted({*tables["agreement"].metric} - {"number of words"})
    assert f"Its interval leaves out that it was picked from {len(picked)} scores." in style
    assert f"no score can be expected above {tables['raters'].ceiling[0]:.3f}" in style
    assert (
        "It puts the 4 systems into the raters' order with tau" in style
        and "chance alone" in conclusions(tables)[1]
    )


def test_a_conclusion_where_counting_words_does_better_scores_run_against_or_nothing_is_known(
    simulated, scores
):
    style = simulated[simulated.criterion == "style"].reset_index(drop=True)
    longer = style.assign(
        output=[" ".join(["word"] * round(10 + 3 * rating)) for rating in style.rating]
    )
    told = conclusions(study_tables(Study(longer), scores, n_boot=50))[0]
    assert "number of words, which reads nothing, does better, at 0.9" in told
    against = conclusions(study_tables(Study(style), scores.assign(near=-scores.near), n_boot=50))[
        0
    ]
    assert (
        "near is low where the ratings are high, farther from zero than any other that reads the texts, at -0."
        in against
    )
    page = study_page(study_tables(Study(longer), scores.assign(near=-scores.near), n_boot=50), {})
    assert (
        "near is low where the ratings are high, farthest from zero of those that read the texts, with"
        in page
    )
    assert "number of words, which reads nothing, has " in page
    alone = study_tables(
        Study(style.drop(columns=["rating_1", "rating_2", "rating_3"])),
        scores.assign(near=1.0)[["data_set", "item", "near"]],
        n_boot=50,
    )
    assert conclusions(alone)[0] == (
        "style: no score has a correlation with the ratings. How far the raters agree is "
        "not known, since they are not known one by one."
    )


def test_of_scores_that_chance_can_make_none_follows_the_raters_and_none_does_better(simulated):
    noise = np.random.default_rng(5)
    style = simulated[simulated.criterion == "style"].reset_index(drop=True)
    words = style.assign(
        output=[" ".join(["word"] * count) for count in noise.integers(3, 9, len(style))]
    )
    scores = style[["data_set", "item"]].assign(random=noise.normal(size=len(style)))
    told = conclusions(study_tables(Study(words), scores, n_boot=200))[0]
    assert "random is farthest from zero, and still not shown to follow the raters, at" in told
    assert "number of words, which reads nothing, has" in told and "does better" not in told


def test_every_score_that_was_asked_for_is_told_within_eighty_columns(simulated, scores):
    many = scores.assign(
        **{f"a score with quite a long name {place}": scores.near for place in range(12)}, bleu=0.5
    )
    tables = study_tables(Study(simulated), many, n_boot=20)
    told = told_study(tables)
    assert (
        told.count("bleu") == 3
        and "more in agreement" not in told
        and max(map(len, told.split("\n"))) <= 80
    )
    assert "bleu" not in told_study(
        tables, 8
    ) and f"and {len(many.columns) - 2 + 1 - 8} more" in told_study(tables, 8)
    hostile = study_tables(Study(simulated), scores.rename(columns={"near": "\x1b[31m"}), n_boot=20)
    assert "\x1b" not in told_study(hostile)


def test_the_page_begins_with_the_conclusion(tables):
    page = study_page(tables, {})
    assert page.index("follows the raters most closely") < page.index("<figure>")


def test_a_picture_shows_ten_scores_by_name_from_the_highest_down_with_the_ceiling(
    simulated, scores
):
    noise = np.random.default_rng(2)
    many = scores.assign(
        bleu=scores.near, **{f"score_{n}": noise.normal(size=len(scores)) for n in range(12)}
    )
    words = simulated.assign(output=["word " * (2 + item % 5) for item in simulated["item"]])
    tables = study_tables(Study(words), many, n_boot=50)
    page = study_page(tables, {})
    pictures = re.findall("<figure>.*?</figure>", page, re.S)
    assert len(pictures) == 3 and page.index("<figure>") < page.index("all 1")
    names = re.findall(r'<th scope="row"><bdi>(.*?)</bdi>', pictures[0])
    assert len(names) == 10 and {"BLEU", "near", "number of words"} <= set(names)
    assert any(re.fullmatch(r"score \d+", name) for name in names)
    values = [float(value) for value in re.findall(r'class="number">(-?\d\.\d\d)', pictures[0])]
    assert values == sorted(values, reverse=True) and len(values) == 10
    assert pictures[0].count('class="ceiling"') == 10
    ceiling = tables["raters"].ceiling[0]
    assert f"where {ceiling:.2f} is the most to be expected of any score" in page
    assert "number of words, which reads nothing, has " in page


def test_scores_that_would_share_a_name_keep_their_own(simulated, scores):
    both = scores.assign(near_it=scores.near, **{"near it": scores.near})
    page = study_page(study_tables(Study(simulated), both, n_boot=20), {})
    assert ">near_it<" in page and ">near it<" in page
