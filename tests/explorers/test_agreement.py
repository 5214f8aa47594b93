"""The explorer of agreement: its line, its picture, its choices, and no text of a published study."""
import numpy as np
import pytest
from scipy import stats

from tsteval.core.checks import InputError
from tsteval.datasets.ratings import simulated_ratings
from tsteval.explorers.agreement import _agreement_picture, _agreement_scatter, _outliers, agreement_explorer

HOSTILE = "</bdi><script>alert(1)</script>"


@pytest.fixture(scope="module")
def simulated():
    return simulated_ratings(30, 4)


def test_outliers_lie_farthest_from_the_line():
    x, y = np.arange(10.0), 2 * np.arange(10.0) + 1
    y[3] += 9
    y[7] -= 5
    residuals = abs(y - np.polyval(np.polyfit(x, y, 1), x))
    assert _outliers(x, y, 2) == list(np.argsort(-residuals)[:2]) and _outliers(x, y, 1) == [3]
    assert _outliers(np.ones(4), np.array([0, 0, 0, 9.0]), 1) == [3]


def test_the_scatter_draws_every_output_and_its_line():
    page = _agreement_scatter([0, 1, 2, 3], [1, 2, 3, 4.0], [2], x_label=HOSTILE)
    assert "slope 1," not in page and "slope 1" in page and page.count("<circle") == 1 and "<script" not in page
    with pytest.raises(InputError): _agreement_scatter([0, 1], [1, 2])
    assert "slope 0" in _agreement_scatter([1, 1, 1], [1, 2, 3])


def test_the_picture_says_what_correlation_says(simulated):
    style = simulated[simulated.criterion == "style"]
    picture = _agreement_picture(style, "near", n_boot=100)
    r = stats.pearsonr(style.near, style.rating).statistic
    assert f"Pearson {r:.3f}" in picture and "Output 1" not in picture
    assert "Output" in _agreement_picture(style, "near", texts=True, n_boot=100)
    with pytest.raises(InputError, match="4 of 3 are the least"): _agreement_picture(style.head(3), "near")


def test_the_explorer_without_data(monkeypatch):
    monkeypatch.setattr("tsteval.explorers.agreement._on_this_machine", lambda: [])
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
    from tsteval.explorers.agreement import _on_this_machine
    if not (there := _on_this_machine()): pytest.skip("the published studies are not on this machine")
    one = agreement_explorer(n_boot=50)
    for name in there:
        one.controls["data_set"].value = name
        for criterion in one.controls["criterion"].options:
            one.controls["criterion"].value = criterion
            assert one.picture.value and not one.message.value, (name, criterion, one.message.value)
            assert ">text<" not in one.picture.value
    one.close()
