"""The pictures of the ideas of chapters 11 and 12: what they draw is what the scores count."""

import re

import numpy as np
import pytest

from tsteval.alignment import word_movers_distance
from tsteval.content import WordLinks
from tsteval.cps import SentenceEncoder
from tsteval.report import flows


@pytest.fixture(scope="module")
def encoder():
    return SentenceEncoder.load()


def test_runs_of_characters_are_those_that_both_texts_have():
    assert flows._shared_runs("abc de", "xabc", 6) == ([0, 1, 2, 4, 5], [3, 3, 3, 0, 0])
    assert flows._shared_runs("abc", "abc", 2)[1] == [2, 2, 2] and flows._shared_runs(" ", "a") == (
        [],
        [],
    )


def test_equal_texts_are_counted_whole_and_different_ones_not_at_all():
    def grounds(*texts):
        return set(re.findall(r"rgba\(230,159,0,(\d\.\d\d)\)", flows.counted_picture(*texts, 3)))

    assert grounds("abc", "abc") == {"1.00"} and grounds("abc", "xyz") == {"0.00"}


@pytest.mark.parametrize("hostile", ["<script>alert(1)</script>", '"><img src=x>'])
def test_text_stays_text(encoder, hostile):
    for page in (
        flows.counted_picture(hostile, "a gift", 6),
        flows.matched_picture(encoder, hostile, "a gift", 4),
        flows.moved_picture(encoder, hostile.split(), ["a", "gift"]),
    ):
        assert "<script" not in page and "<img src=x" not in page


def test_partners_are_those_of_the_highest_cosine(encoder):
    page = flows.matched_picture(encoder, "the gift", "the present", 4)
    assert "gift with present" in page and "What is matched" in page


def test_the_plan_of_the_picture_costs_what_the_score_says(encoder):
    output = ["The", "present", "pleased", "the", "kids", "."]
    reference = ["The", "gift", "made", "the", "children", "happy", "."]
    page = flows.moved_picture(encoder, output, reference)
    paid = [float(note) for note in re.findall(r">(\d\.\d\d) [^<]", page)]
    assert abs(
        sum(paid)
        - word_movers_distance([" ".join(output)], [" ".join(reference)], encoder=encoder)[0]
    ) < 0.005 * len(paid)


def test_a_weak_word_is_blue_and_every_word_shows_its_own_support():
    links = WordLinks(
        [(0, 4), (5, 13), (13, 14)],
        np.array([3.3, -2.9, 1.0]),
        np.zeros(3),
        np.array([True, True, False]),
    )
    page = flows.weak_links_picture(
        [("output", "near Barnwell.", links)], {"support": (-2.9, -0.7)}, {"content": 0.3}
    )
    spans = re.findall(
        r'<span title="([^"]*)" style="background-color:rgba\(([\d,]+),[\d.]+\)[^"]*">([^<]+)<',
        page,
    )
    least = "supported least: \u201cBarnwell\u201d in the output (18 times less likely)."
    assert f"Content 0.30, where 1 is surely kept; {least}" in page
    assert "Barnwell (18 times less likely), near (27 times likelier)" in page
    assert [(told, word) for told, _, word in spans] == [
        ("+3.300", "near"),
        ("-2.900", "Barnwell"),
        ("no score", "."),
    ]
    assert [colour for _, colour, _ in spans][:2] == ["255,255,255", "86,180,233"]
