"""The explorers of a whole evaluation: filters, points, list, export, hostile results."""

import json
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from tests.explorers.pages import HOSTILE, Page, assert_harmless
from tsteval.evaluation import evaluate
from tsteval.explorers import evaluation as evaluation_page
from tsteval.report.charts import trade_off
from tsteval.runs.opened import read_results
from tsteval.runs.results import SystemScores


def test_filters_of_an_evaluation(evaluation):
    def rows(*arguments, **filters):
        return evaluation_page.filter_rows(evaluation.per_pair, *arguments, **filters).tolist()

    assert rows() == [0, 1, 2, 3] and rows("edit") == [2, 3] and rows(unchanged=True) == [0, 1]
    assert (
        rows(negative=True) == [3] and rows(against=True) == [0, 1] and rows(highest=0.9) == [2, 3]
    )
    assert rows("edit", unchanged=True) == [] and rows("edit", negative=True, highest=0.5) == [3]


def test_the_browser_shows_the_selected_pair(evaluation):
    explorer = evaluation_page.evaluation_explorer(evaluation)
    explorer.controls["system"].value = "edit"
    explorer.controls["pair"].value = 3
    page = explorer.picture.value
    chart = explorer.controls["point"].drawing.value
    text = Page(page).text
    assert (
        "2 of 4 outputs" in text
        and re.search(r"copy\u200e \(0\)\s+edit\u200e \(2\)", Page(chart).text)
        and "STI -0.300, CPS 0.400" in text
    )
    assert "lake" in text and "<ins" in page and "<del" in page and not Page(page).active
    explorer.controls["negative"].value = True
    explorer.controls["unchanged"].value = True
    assert "no pair passes" in explorer.picture.value and not explorer.controls["point"].options
    assert "0 of 4 outputs, rising CPS. </bdi>" in explorer.picture.value
    explorer.controls["negative"].value = explorer.controls["unchanged"].value = False
    assert (
        "2 of 4 outputs, rising CPS. The lowest CPS (0.400) has row 3, of edit."
        in explorer.picture.value
    )
    explorer.controls["system"].value = "copy"
    assert (
        "2 of 4 outputs, rising CPS. The lowest CPS (1.000) has row 0, of copy."
        in explorer.picture.value
    )
    explorer.close()


def test_export_holds_the_selection(evaluation):
    import io

    table = pd.read_csv(
        io.StringIO(evaluation_page.selection_csv(evaluation.per_pair, np.array([1, 3])))
    )
    assert table.output.tolist() == ["A great dam.", "<i>A great</i> lake."]
    assert json.loads(table.references[0]) == ["A dam."]


def test_an_evaluation_without_a_column_is_refused_and_others_can_be_drawn(evaluation):
    few = SystemScores(
        evaluation.per_pair.drop(columns=["cps", "output_target_probability"]),
        evaluation.metrics[:1],
        evaluation.scores,
        {},
    )
    with pytest.raises(ValueError, match="cps"):
        evaluation_page.evaluation_explorer(few, y="cps")
    explorer = evaluation_page.evaluation_explorer(few)
    assert (
        "against" not in explorer.controls
        and explorer.controls["highest"].description == "STI at most"
    )
    assert "4 of 4 outputs" in explorer.picture.value
    explorer.controls["highest"].value = -0.1
    assert "1 of 4 outputs" in explorer.picture.value
    explorer.close()


def test_an_output_without_a_score_is_listed_until_a_limit_is_set(evaluation):
    table = evaluation.per_pair.assign(cps=[np.nan, 1.0, 0.9, 0.4])
    explorer = evaluation_page.evaluation_explorer(
        SystemScores(table, evaluation.metrics, evaluation.scores, {})
    )
    assert "4 of 4 outputs" in explorer.picture.value
    explorer.controls["highest"].value = 0.95
    assert "2 of 4 outputs" in explorer.picture.value
    explorer.close()


def test_a_point_chooses_its_pair_and_a_pair_its_point(evaluation):
    explorer = evaluation_page.evaluation_explorer(evaluation)
    chart = explorer.controls["point"]
    pairs = explorer.controls["pair"]
    assert (
        sorted(value for _, value in chart.options) == [0, 1, 2, 3]
        and chart.buttons.value == pairs.value == 3  # the lowest, which the sentence names
    )
    assert "The lowest CPS (0.400) has row 3" in explorer.picture.value
    chart.buttons.value = 0  # what a press does
    assert pairs.value == 0 and "lake" not in explorer.picture.value
    pairs.value = 2
    assert chart.value == chart.buttons.value == 2 and "edit" in Page(explorer.picture.value).text
    explorer.controls["system"].value = "copy"
    assert {value for _, value in chart.options} == {0, 1} and pairs.value == chart.value == 0
    explorer.close()


def drawn_markers(chart):
    """Pixels of the markers on a map's axes, above its list of systems."""
    uses = re.findall(r'<use [^>]*x="([\d.]+)" y="([\d.]+)"', chart.drawing.value)
    return {(float(x), float(y)) for x, y in uses if float(y) < 240 and float(x) > 56}


def test_buttons_lie_on_the_points_that_are_drawn(evaluation):
    explorer = evaluation_page.evaluation_explorer(evaluation)
    chart = explorer.controls["point"]
    wide, tall = map(int, re.search(r'viewBox="0 0 (\d+) (\d+)"', chart.drawing.value).groups())
    places = re.findall(r"nth-child\((\d+)\) {left:([\d.]+)%; top:([\d.]+)%}", chart.places.value)
    for (_, left, top), (_, row) in zip(places, chart.options):
        drawn = drawn_markers(chart)
        assert (
            min(
                abs(float(left) / 100 * wide - x) + abs(float(top) / 100 * tall - y)
                for x, y in drawn
            )
            <= 2
        ), row
    assert len(places) == 4 and all(re.match(r"\d+\. ", name) for name, _ in chart.options)
    explorer.close()


def test_the_list_can_be_put_in_the_order_of_a_score(evaluation):
    explorer = evaluation_page.evaluation_explorer(evaluation)
    explorer.controls["by"].value = "cps"
    assert [row for _, row in explorer.controls["pair"].options] == [3, 2, 0, 1]
    explorer.controls["falling"].value = True
    assert [row for _, row in explorer.controls["pair"].options] == [0, 1, 2, 3]
    explorer.close()


PEOPLE = pd.DataFrame({"content": [4.0, np.nan, 2.5, 1.0], "style": [np.nan, np.nan, 5.0, 3.0]})


def test_ratings_stand_beside_scores(evaluation):
    explorer = evaluation_page.evaluation_explorer(evaluation, ratings=PEOPLE)
    chart = explorer.controls["point"]
    pairs = explorer.controls["pair"]
    assert [row for _, row in pairs.options] == [
        3,
        2,
        0,
        1,
    ]  # the lowest rating first, no rating last
    names = {row: name for name, row in pairs.options}
    assert names[2].startswith("2. edit, rating of content 2.50, rating of style 5.00: ")
    assert "rating of style none" in names[0] and names[1].startswith("1. copy, not rated: ")
    assert (
        "1 without a rating of content; 2 without a rating of style"
        in Page(explorer.picture.value).text
    )
    assert sorted(row for _, row in chart.options) == [0, 2, 3]
    assert "rating of content" in Page(chart.drawing.value).text
    pairs.value = 1
    assert "CPS 1.000, not rated" in Page(explorer.picture.value).text and chart.value is None
    explorer.close()


def test_the_map_has_a_point_a_row_where_rating_and_chosen_score_say(evaluation):
    explorer = evaluation_page.evaluation_explorer(evaluation, ratings=PEOPLE)
    chart = explorer.controls["point"]
    assert (
        explorer.controls["across"].value == "cps"
        and explorer.controls["up"].value == "rating_content"
    )
    for across, up in (("cps", "content"), ("sti", "style")):
        explorer.controls["across"].value = across
        explorer.controls["up"].value = f"rating_{up}"
        x = evaluation.per_pair[across]
        y = PEOPLE[up]
        places = trade_off(x, y, evaluation.per_pair.system).places(x, y)
        expected = {tuple(place) for place in places[np.isfinite(places).all(axis=1)].round(0)}
        drawn = {tuple(np.round(place)) for place in drawn_markers(chart)}
        assert drawn == expected and len(chart.options) == y.notna().sum()
    assert "rating of style over STI" in chart.drawing.value
    explorer.close()


def test_a_limit_on_the_rating_leaves_unrated_rows_out_and_the_csv_has_the_ratings(evaluation):
    explorer = evaluation_page.evaluation_explorer(evaluation, ratings=PEOPLE)
    limit = explorer.controls["highest"]
    assert limit.description == "rating of content at most"
    limit.value = 2.6
    assert [row for _, row in explorer.controls["pair"].options] == [3, 2]
    explorer.controls["by"].value = "rating_style"
    explorer.controls["falling"].value = True
    assert [row for _, row in explorer.controls["pair"].options] == [2, 3]
    explorer.controls["export"].children[0].click()
    import base64

    held = base64.b64decode(
        re.search('base64,([^"]+)', explorer.controls["export"].children[1].value)[1]
    ).decode()
    assert "rating_content,rating_style" in held.splitlines()[0] and held.splitlines()[1].endswith(
        "2.5,5.0"
    )
    explorer.close()


def test_ratings_of_other_rows_are_refused_and_hostile_criteria_shown_as_text(evaluation):
    with pytest.raises(ValueError, match="ratings"):
        evaluation_page.evaluation_explorer(evaluation, ratings=PEOPLE[:3])
    explorer = evaluation_page.evaluation_explorer(
        evaluation, ratings=PEOPLE.rename(columns={"content": HOSTILE[0]})
    )
    assert_harmless(explorer.picture.value + explorer.controls["point"].drawing.value)
    assert not explorer.message.value
    explorer.close()


def test_without_ratings_nothing_speaks_of_them(evaluation):
    explorer = evaluation_page.evaluation_explorer(evaluation)
    assert (
        not {"across", "up"} & set(explorer.controls)
        and "rat" not in Page(explorer.picture.value).text.lower()
    )
    explorer.close()


@pytest.mark.parametrize("text", HOSTILE[:7], ids=range(7))
def test_hostile_results_are_shown_as_text(folder, text):
    sound = text.encode("utf-8", "replace").decode()
    table = pd.read_csv(folder / "per_pair.csv")
    told = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    table["output"], table["system"] = (
        sound or "-",
        table.system.map({"copy": f"1{sound[:80]}", "edit": f"2{sound[:80]}"}),
    )
    for row, name in zip(told["systems"], dict.fromkeys(table.system)):
        row["system"] = name
    table.to_csv(folder / "per_pair.csv", index=False)
    (folder / "summary.json").write_text(json.dumps(told), encoding="utf-8")
    opened = read_results(folder)
    for explorer in (
        evaluation_page.evaluation_explorer(opened),
        evaluation_page.systems_browser(opened),
    ):
        assert_harmless(explorer.picture.value + explorer.controls["point"].drawing.value)
        assert not explorer.message.value
        explorer.close()


def test_results_come_back_as_they_were_written(folder, evaluation):
    opened = read_results(folder)
    assert (
        opened.systems == evaluation.systems
        and opened.columns == evaluation.columns
        and opened.headings == evaluation.headings
    )
    pd.testing.assert_frame_equal(opened.summary(), evaluation.summary(), check_dtype=False)
    for column in ("source", "output", "references", "sti", "cps"):
        assert opened.per_pair[column].tolist() == evaluation.per_pair[column].tolist()


def test_the_demonstration_opens_without_pytorch():
    code = (
        "import sys; from tsteval.explorers.catalogue import EXPLORERS; EXPLORERS['evaluation'](); "
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_the_demonstration_shows_the_embedded_pairs():
    from tsteval.style import load_pairs

    results = evaluation_page.demonstration_results()
    pairs = load_pairs("npov_pairs").query("split == 'test' and source != target")
    rows = results.per_pair
    assert (
        results.systems == ["copy", "delete", "human"]
        and rows.source.tolist() == list(pairs.source) * 3
    )
    assert rows.references.map(list).tolist() == [[text] for text in pairs.target] * 3
    assert rows.output.tolist()[::72] == [
        pairs.source.iloc[0],
        rows.output[72],
        pairs.target.iloc[0],
    ]
    bleu = evaluate(
        rows.assign(reference=rows.references.map(lambda texts: texts[0])).drop(
            columns="references"
        )[["system", "source", "output", "reference"]],
        ["bleu"],
    )
    np.testing.assert_allclose(rows.bleu, bleu.per_pair.bleu, rtol=1e-5)
    np.testing.assert_allclose(results.summary().bleu, bleu.summary().bleu, rtol=1e-9)


@pytest.mark.all
def test_the_demonstration_is_what_evaluate_gives_by_default(tmp_path):
    """Made anew by nbs/making/demonstration.py where this fails."""
    from tsteval.cli import main

    assert main(["evaluate", "--output", str(tmp_path)]) == 0
    fresh = read_results(tmp_path)
    kept = evaluation_page.demonstration_results()
    assert (
        kept.columns == fresh.columns
        and kept.per_pair.columns.tolist() == fresh.per_pair.columns.tolist()
    )
    for name in fresh.per_pair:
        if fresh.per_pair[name].dtype.kind == "f":
            np.testing.assert_allclose(
                kept.per_pair[name], fresh.per_pair[name], rtol=1e-4, atol=1e-4, err_msg=name
            )
        else:
            assert kept.per_pair[name].tolist() == fresh.per_pair[name].tolist(), name
    pd.testing.assert_frame_equal(kept.summary(), fresh.summary(), rtol=1e-3, atol=1e-4)
    for name in ("settings", "models", "overall", "conclusions", "doubts"):
        assert kept.metadata[name] == fresh.metadata[name], name


# ---- which system is better


def compared(a="copy", b="edit", **row):
    """What summary.json says of two systems and one score."""
    return {
        "a": a,
        "b": b,
        "metrics": [
            {
                "a": a,
                "b": b,
                "metric": "cps",
                "difference": 0.35,
                "low": 0.2,
                "high": 0.5,
                "n": 40,
                "p_value": 0.001,
                "p_holm": 0.002,
                "better": a,
                "verdict": "better",
                **row,
            }
        ],
    }


@pytest.mark.parametrize(
    "row, selected, words",
    [
        ({}, 0, "better by 0.350, which chance hardly does (p = .002)"),
        ({}, 1, "worse by 0.350, which chance hardly does (p = .002)"),
        (
            {"p_holm": 0.41, "better": "", "verdict": "not told apart"},
            0,
            "not told apart: chance could do it (p = .410)",
        ),
        ({"p_holm": 1e-6}, 0, "(p < .001)"),
        (
            {"n": 2, "p_holm": 0.01, "better": "", "verdict": "too few rows"},
            0,
            "no verdict from 2 sources",
        ),
        (
            {"better": "", "verdict": "higher"},
            0,
            "higher, more than chance does (p = .002), which does not say that it is better",
        ),
        (
            {
                "p_holm": None,
                "difference": None,
                "low": None,
                "high": None,
                "verdict": "too few rows",
            },
            0,
            "cannot be compared",
        ),
    ],
)
def test_the_question_which_system_is_better_is_answered_from_the_summary(
    folder, row, selected, words
):
    told = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    told["comparisons"] = [compared(**row)]
    (folder / "summary.json").write_text(json.dumps(told), encoding="utf-8")
    page = Page(str(evaluation_page.systems_picture(read_results(folder), selected))).text
    assert (
        words in page
        and f"{['copy', 'edit'][selected]} against {['edit', 'copy'][selected]}" in page
    )
    side = [("better", "worse"), ("higher", "lower")][row == {"better": ""}][selected]
    if row == {} or row == {"better": ""}:
        assert f"against {['edit', 'copy'][selected]}: {side} by CPS." in page
    if row == {}:
        assert ("0.200 to 0.500" if not selected else "-0.500 to -0.200") in page


def test_an_evaluation_answers_as_its_folder_does(folder, evaluation):
    opened, own = (
        evaluation_page.systems_picture(one) for one in (read_results(folder), evaluation)
    )
    assert "copy against edit" in Page(own).text or "edit against copy" in Page(own).text
    assert opened == own


def test_what_the_report_doubts_is_told_beside_systems_and_pairs(folder):
    told = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    told["overall"] = "<b>copy</b> keeps more of the source."
    told["doubts"] = ["copy: 2 of 2 outputs equal their <i>source</i>."]
    told["notes"] = [
        {"metric": "", "warning": True, "text": "the outputs of copy are not in English"},
        {"metric": "sti", "warning": False, "text": "the mean confidence is <i>low</i>"},
    ]
    (folder / "summary.json").write_text(json.dumps(told), encoding="utf-8")
    results = read_results(folder)
    explorers = (
        evaluation_page.systems_browser(results),
        evaluation_page.evaluation_explorer(results),
    )
    # no line on the map that nothing explains
    assert "not dominated" not in explorers[0].controls["point"].drawing.value
    for explorer in explorers:
        assert_harmless(explorer.picture.value)
        page, folded = explorer.picture.value.split("<summary", 1)
        assert "warning: the outputs of copy are not in English" in page
        assert "doubt: copy: 2 of 2 outputs equal their &lt;i&gt;source" in page
        assert "the mean confidence is &lt;i&gt;low" in folded
        explorer.close()
    first = re.search("<strong><bdi>(.*?)</bdi>", str(evaluation_page.systems_picture(results)))[1]
    assert first == "&lt;b&gt;copy&lt;/b&gt; keeps more of the source."


@pytest.mark.parametrize(
    "name, found", [("doubts", 7), ("notes", ["no", {"warning": True}]), ("overall", {"<b>": 1})]
)
def test_doubts_that_are_not_as_written_are_left_out(folder, name, found):
    told = json.loads((folder / "summary.json").read_text(encoding="utf-8")) | {name: found}
    (folder / "summary.json").write_text(json.dumps(told), encoding="utf-8")
    assert_harmless(evaluation_page.systems_picture(read_results(folder)))


@pytest.mark.parametrize(
    "found",
    [
        None,
        [],
        [{"a": 1}],
        "no",
        [compared(metric="other")],
        [compared(a="<b>", b="<i>")],
        [compared(difference="x", n="y", p_holm=[])],
        [compared(verdict="<b>best</b>")],
    ],
)
def test_comparisons_that_are_not_there_or_not_as_written_are_left_out(folder, found):
    told = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    told["comparisons"] = found
    (folder / "summary.json").write_text(json.dumps(told), encoding="utf-8")
    page = evaluation_page.systems_picture(read_results(folder))
    assert "copy, 2 outputs" in page and "against" not in Page(page).text
    assert_harmless(page)
