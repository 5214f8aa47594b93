"""A study from ratings and scores: read, joined, tables, page, command, explorer; against the correlations themselves
and known truth."""
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from tests.cli.test_app import run
from tsteval.core.assets import packaged_path
from tsteval.core.checks import InputError
from tsteval.datasets.ratings import SIMULATED_SCORES, simulated_ratings
from tsteval.datasets.formats import FileError
from tsteval.studies.sheets import plan_ratings, sheet_table, write_sheets
from tsteval.studies.study import (
    STUDIES,
    Study,
    agreement_explorer,
    agreement_picture,
    agreement_scatter,
    leading_metrics,
    metrics_for,
    outliers,
    rater_table,
    read_scores,
    read_study,
    study_files,
    study_page,
    study_scores,
    study_tables,
    system_table,
)

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


# ---- tables

def test_the_table_holds_the_correlations(simulated, scores, tables):
    style = simulated[simulated.criterion == "style"]
    found = tables["agreement"].query("criterion == 'style'").set_index("metric")
    for name in SIMULATED_SCORES:
        assert found.pearson[name] == pytest.approx(stats.pearsonr(style[name], style.rating).statistic, abs=1e-9)
        assert found.pearson_low[name] < found.pearson[name] < found.pearson_high[name]
    assert (found.n == 120).all() and (found.sources == 30).all()
    assert list(tables) == ["agreement", "systems", "raters"]


def test_systems_are_ordered_as_their_means(simulated, scores, tables):
    style = simulated[simulated.criterion == "style"]
    found = tables["systems"].query("criterion == 'style'").set_index("metric")
    means = style.groupby("system")[["rating", *SIMULATED_SCORES]].mean()
    for name in SIMULATED_SCORES:
        assert found.tau[name] == pytest.approx(stats.kendalltau(means[name], means.rating).statistic)
    assert (found.systems == 4).all() and found.p_value.min() >= 2 / 24 - 1e-12


def test_only_sources_of_every_system_count(simulated, scores):
    short = simulated[~((simulated.system == "A") & (simulated.source_id < 10))]
    assert (system_table(short, scores, "style", ["near"], n_boot=50).sources == 20).all()
    assert system_table(simulated[simulated.system.isin(["A", "B"])], scores, "style", ["near"]).empty


def test_a_score_with_gaps(simulated, scores):
    gaps = scores.assign(near=scores.near.where(scores.index % 3 > 0), none=np.nan)
    found = study_tables(Study(simulated), gaps,
                         n_boot=50)["agreement"].query("criterion == 'style'").set_index("metric")
    assert found.n["near"] == 80 and "none" not in found.index


def test_ceilings_follow_from_the_raters(simulated):
    found = rater_table(simulated_ratings(400, 4, seed=3))
    assert np.allclose(found.reliability, 0.75, atol=0.03) and np.allclose(found.ceiling**2, found.reliability)
    alone = rater_table(simulated.drop(columns=["rating_2", "rating_3"]))
    assert alone.alpha.isna().all() and alone.ceiling.isna().all()


def test_outputs_that_were_shown_as_one_count_once(simulated):
    twice = pd.concat([simulated, simulated.assign(system="copy")]).assign(shown=lambda frame: frame.item)
    assert rater_table(twice).alpha.tolist() == pytest.approx(rater_table(simulated).alpha.tolist())


# ---- reading

def write_answers(frame, path):
    frame.drop(columns="rating").melt(["system", "source", "output", "criterion"], ["rating_1", "rating_2", "rating_3"],
                                      "rater", "rating").to_csv(path, index=False)


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


@pytest.mark.parametrize("columns, words", [(["system", "near"], "to be joined it needs"),
                                            (["system", "source", "output"], "no column holds numbers"),
                                            (["system", "source", "output", "near"], None)])
def test_scores_from_a_file(simulated, tmp_path, columns, words):
    path = tmp_path / "scores.csv"
    simulated[simulated.criterion == "style"][columns].to_csv(path, index=False)
    if words is None: assert list(read_scores(path, simulated)) == ["data_set", "item", "near"]
    else:
        with pytest.raises(FileError, match=f"scores.csv: .*{words}"): read_scores(path, simulated)


def test_scores_of_other_outputs_are_refused(simulated, tmp_path):
    simulated.assign(output="x")[["system", "source", "output", "near"]].to_csv(tmp_path / "scores.csv", index=False)
    with pytest.raises(FileError, match="none of its rows is a rated output"):
        read_scores(tmp_path / "scores.csv", simulated)


def test_sheets_need_their_key(tmp_path):
    pairs = [{"source": f"s{n}", "output": f"o{n}"} for n in range(4)]
    write_sheets(plan_ratings(pairs), tmp_path)
    with pytest.raises(FileError, match=r"give the key.json that was written with it, with --key"):
        read_study([tmp_path / "for-raters" / "rater-1.csv"])
    with pytest.raises(FileError, match="no filled sheet; put those that come back into the folder ratings"):
        read_study([tmp_path])
    with pytest.raises(FileError, match="give one study"): read_study([tmp_path, "mir2019"])
    with pytest.raises(FileError): read_study(["nowhere.csv"])


def test_stored_scores_are_for_published_studies_alone(simulated):
    assert study_scores(Study(simulated)) is None
    assert study_scores(Study(simulated.assign(data_set="mir2019")), anew=True) is None


def test_each_stored_score_belongs_to_one_criterion():
    frame = pd.DataFrame(columns=["data_set", "item", "sti_size", "target_probability_textcnn", "bleu", "cps_pad",
                                  "content", "norm_lp_brown", "slor",
                                  "amelioration_1", "words", "equal_length"], dtype=float)
    assert metrics_for("style", frame) == ["sti_size", "target_probability_textcnn", "words", "equal_length"]
    assert metrics_for("content", frame) == ["bleu", "cps_pad", "content", "words", "equal_length"]
    assert metrics_for("naturalness", frame) == ["norm_lp_brown", "slor", "amelioration_1", "words", "equal_length"]
    assert len(metrics_for("politeness", frame)) == 10


# ---- page and pictures

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


def test_the_leading_metrics_are_those_furthest_from_zero(tables):
    rows = leading_metrics(tables["agreement"], most=2)
    assert rows[0][2] == "metric" and len(rows) == 7 and rows[1][2] in SIMULATED_SCORES


def test_outliers_lie_farthest_from_the_line():
    x, y = np.arange(10.0), 2 * np.arange(10.0) + 1
    y[3] += 9
    y[7] -= 5
    residuals = abs(y - np.polyval(np.polyfit(x, y, 1), x))
    assert outliers(x, y, 2) == list(np.argsort(-residuals)[:2]) and outliers(x, y, 1) == [3]
    assert outliers(np.ones(4), np.array([0, 0, 0, 9.0]), 1) == [3]


def test_the_scatter_draws_every_output_and_its_line():
    page = agreement_scatter([0, 1, 2, 3], [1, 2, 3, 4.0], [2], x_label=HOSTILE)
    assert "slope 1," not in page and "slope 1" in page and page.count("<circle") == 1 and "<script" not in page
    with pytest.raises(InputError): agreement_scatter([0, 1], [1, 2])
    assert "slope 0" in agreement_scatter([1, 1, 1], [1, 2, 3])


def test_the_picture_says_what_correlation_says(simulated):
    style = simulated[simulated.criterion == "style"]
    picture = agreement_picture(style, "near", n_boot=100)
    r = stats.pearsonr(style.near, style.rating).statistic
    assert f"Pearson {r:.3f}" in picture and "Output 1" not in picture
    assert "Output" in agreement_picture(style, "near", texts=True, n_boot=100)
    with pytest.raises(InputError, match="4 of 3 are the least"): agreement_picture(style.head(3), "near")


# ---- explorer

def test_the_explorer_without_data(monkeypatch):
    monkeypatch.setattr("tsteval.studies.study._on_this_machine", lambda: [])
    one = agreement_explorer(n_boot=50)
    assert list(one.controls) == ["data_set", "criterion", "metric"] and not one.message.value
    assert list(one.controls["data_set"].options) == ["simulated, 50 sources", "simulated, 12 sources"]
    for name, value in (("metric", "misleading"), ("criterion", "content"), ("data_set", "simulated, 12 sources")):
        before = one.picture.value
        one.controls[name].value = value
        assert one.picture.value not in ("", before) and one.controls["metric"].value == "misleading"
    one.close()


def test_the_explorer_shows_no_text_of_a_published_study(simulated):
    rows = simulated.assign(data_set="lai2022", output="SECRET")
    one = agreement_explorer(rows, ["sti", "near"] if "sti" in rows else ["near"], n_boot=50)
    assert "SECRET" not in one.picture.value and one.picture.value
    one.close()
    own = agreement_explorer(rows.assign(data_set="own"), ["near"], n_boot=50)
    assert "SECRET" in own.picture.value
    own.close()
    with pytest.raises(InputError, match="metrics"): agreement_explorer(rows)


def test_the_explorer_with_published_studies():
    from tsteval.studies.study import _on_this_machine
    if not (there := _on_this_machine()): pytest.skip("the published studies are not on this machine")
    one = agreement_explorer(n_boot=50)
    for name in there:
        one.controls["data_set"].value = name
        for criterion in one.controls["criterion"].options:
            one.controls["criterion"].value = criterion
            assert one.picture.value and not one.message.value, (name, criterion, one.message.value)
            assert ">text<" not in one.picture.value
    one.close()


# ---- the command

PAIRS = [{"system": system, "source": f"The superb bridge number {n} opened.", "output": output.format(n)}
         for n in range(8) for system, output in
         (("a", "The superb bridge number {} opened."), ("b", "Bridge number {} opened."),
          ("c", "The bridge number {} opened at last."))]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A study of two raters, filled in."""
    monkeypatch.chdir(tmp_path)
    plan = plan_ratings(PAIRS, raters=2, repeat=0.2)
    write_sheets(plan, tmp_path / "mine")
    for sheet, kinder in zip(plan.sheets, (0, 1)):
        table = sheet_table(plan, sheet)
        for criterion in plan.criteria:
            table[criterion.name] = [min(5, len(row.output) % 4 + 1 + kinder) for row in table.itertuples()]
        table.to_csv(tmp_path / "mine" / "ratings" / f"{sheet.rater}.csv", index=False)
    return tmp_path


def test_from_sheets_to_tables(folder, capsys):
    status, out, err = run(capsys, "study", "mine", "--metrics", "chrf,readability", "--set", "chrf.against=source",
                           "--n-boot", 50, "--output", "out")
    assert status == 0 and "chrf" in out and "number of words" in out
    agreement = pd.read_csv("out/agreement.csv")
    assert set(agreement.metric) == {"chrf", "readability",
                                     "number of words"} and set(agreement.criterion) == {"style", "content",
                                                                                         "naturalness"}
    assert pd.read_csv("out/consistency.csv").n.eq(5).all() and pd.read_csv("out/raters.csv").raters.eq(2).all()
    assert "chrF" in Path("out/study.html").read_text() or "chrf" in Path("out/study.html").read_text()
    status, _, err = run(capsys, "study", "out/ratings.csv", "--scores", "out/scores.csv", "--n-boot", 50, "--output",
                         "again")
    assert status == 0, err
    pd.testing.assert_series_equal(pd.read_csv("again/agreement.csv").pearson, agreement.pearson, atol=1e-9)
    files = ["mine/ratings/rater-1.csv", "mine/ratings/rater-2.csv"]
    status, _, err = run(capsys, "study", *files, "--key", "mine/key.json", "--scores", "out/scores.csv", "--n-boot",
                         50, "--output", "third")
    assert status == 0, err
    pd.testing.assert_series_equal(pd.read_csv("third/agreement.csv").pearson, agreement.pearson, atol=1e-9)


@pytest.mark.parametrize("arguments, words", [(["nowhere"], "mir2019"), (["mine/ratings/rater-1.csv"], "--key"),
                                              (["mine", "--metrics", "nothing"], "nothing"),
                                              (["mine", "--scores", "none.csv"], "none.csv: there is no such file"),
                                              (["mine", "--n-boot", "0"], "--n-boot"),
                                              (["mine", "mir2019"], "give one study"),
                                              (["mine", "--key", "none.json"], "none.json: there is no such file")])
def test_mistakes_are_one_line(folder, capsys, arguments, words):
    status, out, err = run(capsys, "study", *arguments, "--output", "out")
    assert status == 2 and not out and err.count("\n") == 1 and words in err and not Path("out").exists()


def test_a_spoiled_rating_is_named_and_unfinished_sheets_are_taken(folder, capsys):
    path = Path("mine/ratings/rater-1.csv")
    table = pd.read_csv(path, dtype=str)
    table.loc[2, "style"] = ""
    table.to_csv(path, index=False)
    status, _, err = run(capsys, "study", "mine", "--metrics", "chrf")
    assert (status == 2 and "mine/ratings/rater-1.csv, column style, row 2: item r1-03 has no rating" in err
            and "counted from 0" in err)
    status, _, _ = run(capsys, "study", "mine", "--metrics", "readability", "--unfinished", "--n-boot", 50)
    assert status == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", STUDIES)
def test_a_published_study_is_remade_from_its_stored_scores(tmp_path, capsys, monkeypatch, name):
    from tsteval.core.assets import AssetError, corpus_path
    monkeypatch.chdir(tmp_path)
    try: corpus_path(name)
    except AssetError as error: pytest.skip(str(error))
    if not packaged_path("agreement_scores.csv.gz").is_file(): pytest.skip("no stored scores")
    status, _out, err = run(capsys, "study", name, "--n-boot", 200)
    assert status == 0, err
    found = pd.read_csv("tsteval-study/agreement.csv")
    assert set(found.data_set) == {name} and found.pearson.notna().mean() > 0.9 and len(found) > 20
