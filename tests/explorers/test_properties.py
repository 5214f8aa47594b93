"""The explorer of the properties of one text."""

import pytest

from tests.explorers.pages import HOSTILE, assert_harmless
from tsteval import properties
from tsteval.explorers import properties as properties_page


@pytest.mark.ci
def test_every_property_says_where_it_comes_from():
    told = []
    records = properties_page.property_records(
        "The bridge opened in 1932.", "When did the bridge open?", tell=told.append
    )
    assert [row["name"] for row in records] == list(properties.PROPERTIES) and len(told) == 8
    table = properties.calculate_properties(
        ["The bridge opened in 1932."], ["When did the bridge open?"]
    )
    for row in records:
        assert row["from"] and row["is"]
        if row["name"] != "link_validity":
            assert row["value"] == pytest.approx(table[row["name"]][0], nan_ok=True)
    assert {row["name"]: row["from"] for row in properties_page.property_records("No.")}[
        "relevance"
    ] == "needs an input"
    by_name = {row["name"]: row["from"] for row in records}
    assert by_name["grounded_in_context"] == "looked for in the input: 1932"
    page = properties_page.properties_picture([{**records[1], "from": HOSTILE[0]}])
    assert_harmless(page)


@pytest.mark.parametrize(
    "values, said",
    [
        ((90.06, 0.01), "One sees readability 90.1 and toxicity 0.010."),
        ((90.06, float("nan")), "One sees readability 90.1; not measured: toxicity."),
        ((float("nan"),) * 2, "Not measured: readability and toxicity."),
    ],
)
def test_the_sentence_of_the_properties(values, said):
    records = [
        {"name": name, "value": value, "is": "what", "from": "where"}
        for name, value in zip(("readability", "toxicity"), values)
    ]
    assert said in properties_page.properties_picture(records)
