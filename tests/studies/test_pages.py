"""What a study writes: files that are read back, one page that escapes every name, nothing of a published text."""
import re

import pandas as pd
import pytest

from tsteval.datasets.ratings import SIMULATED_SCORES, simulated_ratings
from tsteval.studies.pages import study_files, study_page
from tsteval.studies.study import Study, read_scores, read_study, study_tables

HOSTILE = "</bdi><script>alert(1)</script>"


@pytest.fixture(scope="module")
def simulated():
    return simulated_ratings(30, 4)


@pytest.fixture(scope="module")
def scores(simulated):
    return simulated[simulated.criterion == "style"][["data_set", "item", *SIMULATED_SCORES]].reset_index(drop=True)


@pytest.fixture(scope="module")
def tables(simulated, scores):
    return study_tables(Study(simulated), scores, n_boot=200)


def test_what_a_study_writes_is_read_back(simulated, scores, tables, tmp_path):
    files = study_files(Study(simulated), scores, tables, {})
    for name, text in files.items(): (tmp_path / name).write_text(text, encoding="utf-8")
    again = read_study([tmp_path / "ratings.csv"])
    found = read_scores(tmp_path / "scores.csv", again.ratings)
    keep = ["metric", "n", "pearson", "spearman", "partial", "within"]
    pd.testing.assert_frame_equal(study_tables(again, found, n_boot=200)["agreement"][keep], tables["agreement"][keep],
                                  check_exact=False, atol=1e-9)
    assert sorted(files) == ["agreement.csv", "forest-content.svg", "forest-naturalness.svg", "forest-style.svg",
                             "raters.csv", "ratings.csv",
                             "scores.csv", "study.html", "systems.csv"]


def test_a_published_study_leaves_no_text_behind(simulated, scores):
    named = simulated.assign(data_set="lai2022", source="SECRET source", output="SECRET output")
    files = study_files(Study(named), scores.assign(data_set="lai2022"),
                        study_tables(Study(named), scores.assign(data_set="lai2022"), n_boot=20), {})
    assert "ratings.csv" not in files and not any("SECRET" in text for text in files.values())


def test_names_in_the_page_are_text(simulated, scores):
    named = simulated.assign(data_set=HOSTILE, criterion=simulated.criterion + HOSTILE)
    bad = scores.assign(data_set=HOSTILE).rename(columns={"near": HOSTILE})
    tables = study_tables(Study(named), bad, n_boot=20)
    page = study_page(tables, {HOSTILE: HOSTILE})
    assert page.count("<script") == 1 and "alert(1)</script>" not in page and "default-src 'none'" in page
    assert not re.search(r"(src|href)=", page)
    assert all(re.fullmatch(r"[a-z0-9.-]+", name) for name in study_files(Study(named), bad, tables, {}))


def test_a_page_has_the_report_s_style_and_script(tables):
    page = study_page(tables, {})
    assert ("sortable" in page and "aria-sort" in page and "prefers-color-scheme: dark" in page
            and "nan" not in re.sub("<script.*", "", page, flags=re.S).lower().split("<style>")[0])
