"""The explorer of agreement: its line, its picture, its choices, and no text of a published study."""

import html
import re

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from tsteval.core.checks import InputError
from tsteval.explorers.agreement import (
    _agreement_picture,
    _agreement_scatter,
    _outliers,
    _ratings_worth,
    agreement_explorer,
    difference_explorer,
    digits_explorer,
    ratings_explorer,
)
from tsteval.report.evidence import in_words, score_beside_people
from tsteval.tables.ratings import simulated_ratings

HOSTILE = "</bdi><script>alert(1)</script>"


@pytest.fixture(scope="module")
def simulated():
    return simulated_ratings(30, 4)


def test_outliers_lie_farthest_from_the_line():
    x = np.arange(10.0)
    y = 2 * np.arange(10.0) + 1
    y[3] += 9
    y[7] -= 5
    residuals = abs(y - np.polyval(np.polyfit(x, y, 1), x))
    assert _outliers(x, y, 2) == list(np.argsort(-residuals)[:2]) and _outliers(x, y, 1) == [3]
    assert _outliers(np.ones(4), np.array([0, 0, 0, 9.0]), 1) == [3]


def test_the_scatter_draws_every_output_and_its_line():
    chart = _agreement_scatter([0, 1, 2, 3], [1, 2, 3, 4.0], [2], x_label=HOSTILE)
    assert chart.alt.endswith("slope 1") and "<script" not in chart.svg
    points, line, ring = (one for one in chart.axes[0].lines if one.get_gid() != "zero")
    assert len(points.get_xdata()) == 4 and ring.get_xydata().tolist() == [[2, 3]]
    assert np.allclose(line.get_xydata(), [[0, 1], [3, 4]])
    with pytest.raises(InputError):
        _agreement_scatter([0, 1], [1, 2])
    assert "slope 0" in _agreement_scatter([1, 1, 1], [1, 2, 3]).alt


def test_the_picture_says_what_correlation_says(simulated):
    style = simulated[simulated.criterion == "style"]
    picture = _agreement_picture(style, "near", n_boot=100)
    r = stats.pearsonr(style.near, style.rating).statistic
    assert f"Pearson {r:.3f}" in picture and "Output 1" not in picture
    assert "Output" in _agreement_picture(style, "near", texts=True, n_boot=100)
    assert f"near rises with the ratings: Pearson {r:.3f}" in picture
    upside_down = style.assign(near=-style.near)
    assert f"near falls where the ratings rise: Pearson {-r:.3f}" in _agreement_picture(
        upside_down, "near", n_boot=100
    )
    noise = style.assign(near=np.random.default_rng(0).normal(size=len(style)))
    assert "near is not shown to go with the ratings" in _agreement_picture(noise, "near")
    with pytest.raises(InputError, match="4 of 3 are the least"):
        _agreement_picture(style.head(3), "near")


def test_the_explorer_without_data(monkeypatch):
    monkeypatch.setattr("tsteval.explorers.agreement._on_this_machine", lambda: [])
    one = agreement_explorer(n_boot=50)
    assert list(one.controls) == ["data_set", "criterion", "metric"] and not one.message.value
    assert list(one.controls["data_set"].options) == [
        "all sets with people's ratings",
        "simulated, 50 sources",
        "simulated, 12 sources",
    ]
    for name, value in (
        ("data_set", "simulated, 50 sources"),
        ("metric", "misleading"),
        ("criterion", "style"),
        ("data_set", "simulated, 12 sources"),
    ):
        before = one.picture.value
        one.controls[name].value = value
        assert one.picture.value not in ("", before)
        assert one.controls["metric"].value == (
            "near" if value == "simulated, 50 sources" else "misleading"
        )
    one.close()


@pytest.mark.parametrize("metric, criterion", [("cps", "content"), ("bleu", "overall")])
def test_the_explorer_begins_with_what_was_measured_on_people(monkeypatch, metric, criterion):
    """Its sentence counts the sets on which the table has a lead above 0; each set has the report's sentence."""
    monkeypatch.setattr("tsteval.explorers.agreement._on_this_machine", lambda: [])
    one = agreement_explorer()
    one.controls["criterion"].value = criterion
    one.controls["metric"].value = metric
    rows = score_beside_people(metric, [criterion])
    assert (
        f"{metric} followed people better than every trivial score on {(rows.lead_low > 0).sum()} of "
        f"{rows.data_set.nunique()} set" in one.picture.value
    )
    page = html.unescape(one.picture.value)
    assert all(in_words(row) in page for row in rows.itertuples())
    one.close()


def test_the_explorer_shows_no_text_of_a_published_study(simulated):
    rows = simulated.assign(data_set="lai2022", output="SECRET")
    one = agreement_explorer(rows, ["sti", "near"] if "sti" in rows else ["near"], n_boot=50)
    assert "SECRET" not in one.picture.value and one.picture.value
    one.close()
    own = agreement_explorer(rows.assign(data_set="own"), ["near"], n_boot=50)
    assert "SECRET" in own.picture.value
    own.close()
    with pytest.raises(InputError, match="metrics"):
        agreement_explorer(rows)


def test_the_explorer_with_published_studies():
    from tsteval.explorers.agreement import _on_this_machine

    if not (there := _on_this_machine()):
        pytest.skip("the published studies are not on this machine")
    one = agreement_explorer(n_boot=50)
    for name in there:
        one.controls["data_set"].value = name
        for criterion in one.controls["criterion"].options:
            one.controls["criterion"].value = criterion
            assert one.picture.value and not one.message.value, (name, criterion, one.message.value)
            assert ">text<" not in one.picture.value
    one.close()


def two_systems(gap, spread, n=60):
    generator = np.random.default_rng(1)
    easy = generator.normal(size=n)
    return pd.DataFrame(
        {
            "system": np.repeat(["a", "b"], n),
            "row": np.tile(np.arange(n), 2),
            "one": np.r_[easy + gap + spread * generator.normal(size=n), easy],
        }
    )


def shown(explorer):
    """The ends of the difference, and of 100 tests those that find it."""
    assert "minus" in explorer.picture.value
    told = re.search(
        r"lies from ([-.\d]+) to ([-.\d]+)\. .* on about (\d+)\.", explorer.picture.value
    )
    return tuple(map(float, told.groups()))


def test_more_sentences_narrow_the_difference_and_raise_the_power():
    table = two_systems(0.3, 1)
    one = difference_explorer(table, ["one"], ("a", "b"))
    gap = table.one[:60].to_numpy() - table.one[60:].to_numpy()
    wide = None
    for n in (20, 100, 400):
        one.controls["n"].value = n
        low, high, found = shown(one)
        assert high - low == pytest.approx(2 * 1.96 * gap.std() / np.sqrt(n), rel=0.1)
        assert abs((low + high) / 2 - gap.mean()) < 0.1
        power = stats.norm.cdf(abs(gap.mean()) / gap.std() * np.sqrt(n) - 1.96)
        assert abs(found - 100 * power) < 15
        if wide is not None:
            assert high - low < wide[0] and found >= wide[1]
        wide = high - low, found
    one.close()


def test_a_system_against_itself_is_refused_and_the_stored_systems_are_there():
    one = difference_explorer()
    first = one.picture.value
    assert "reranked minus human" in first and not one.message.value
    one.controls["second"].value = "reranked"
    assert "against itself" in one.message.value and one.picture.value == first  # it stays
    one.controls["second"].value = "human"
    assert one.picture.value == first  # nothing is left to chance
    one.close()


def test_ratings_worth_is_what_a_simulation_finds():
    generator = np.random.default_rng(0)
    n = 50
    scored = 200
    r = 0.8
    x = generator.normal(size=(4000, scored))
    y = r * x[:, :n] + np.sqrt(1 - r**2) * generator.normal(size=(4000, n))
    estimates = y.mean(axis=1) - r * (x[:, :n].mean(axis=1) - x.mean(axis=1))
    assert 1 / estimates.var() == pytest.approx(float(_ratings_worth(r, n, scored)), rel=0.07)
    assert np.allclose(_ratings_worth(np.array([0, 0.5]), 100, 10**9), [100, 100 / 0.75])


def test_more_ratings_than_scores_are_refused():
    one = ratings_explorer()
    assert "100 ratings are worth 133" in one.picture.value
    one.controls["r"].value = 0.0
    assert "100 ratings are worth 100." in one.picture.value
    one.controls["scored"].value = 100
    one.controls["rated"].value = 200
    assert "200 outputs are rated, 100 scored" in one.message.value
    one.close()


def test_the_expected_score_is_the_mean_of_the_digits_alone():
    one = digits_explorer()
    assert "Expected score 4.33, mass on the scale 0.75; likeliest digit 5" in one.picture.value
    one.controls["other"].value = 0
    assert "Expected score 4.33, mass on the scale 1.00" in one.picture.value
    for digit in (3, 5):
        one.controls[f"digit_{digit}"].value = 0
    assert "all weights are 0" in one.message.value
    assert (
        one.picture.value.count("background:#0072B2") == 1
    )  # a digit that it never says has no bar
    one.controls["other"].value = 1
    assert "Expected score none, mass on the scale 0.00; likeliest digit none" in one.picture.value
    one.close()
