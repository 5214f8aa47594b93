"""Ameliorations 1 and 2: pencil numbers, the slides' table, edges."""

import math
import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsteval.ameliorations import (
    amelioration_1,
    amelioration_2,
    good_bad_thresholds,
    log_amelioration_2,
    share_preferred,
)
from tsteval.core.checks import InputError, InputTypeError
from tsteval.ngram import NgramLM

CORPORA = st.lists(st.lists(st.sampled_from("abcdef"), max_size=7), min_size=1, max_size=12).filter(
    any
)


def fixed_model(*probabilities):
    with np.errstate(divide="ignore"):
        logs = np.log(probabilities)
    return SimpleNamespace(logprobs=lambda sentences: [logs for _ in sentences])


FOUR = [["four", "words", "stand", "here"]]


def test_pencil():
    model = fixed_model(1 / 2, 1 / 4, 1 / 100, 1 / 20)
    assert amelioration_1(model, FOUR) == pytest.approx([math.log(1 / 16000) / 4])
    assert amelioration_2(model, FOUR, good=1 / 4, bad=1 / 100) == pytest.approx([0.02])
    assert log_amelioration_2(model, FOUR, good=1 / 4, bad=1 / 100) == pytest.approx(
        [math.log(0.02)]
    )


def test_zero_probability():
    model = fixed_model(1 / 2, 0, 1 / 2, 1 / 2)
    assert amelioration_1(model, FOUR) == pytest.approx(
        [(3 * math.log(1 / 2) + math.log(1e-10)) / 4]
    )
    assert amelioration_1(model, FOUR, floor=0)[0] == -math.inf
    assert log_amelioration_2(model, FOUR, good=0.5, bad=0.1)[0] == -math.inf
    assert amelioration_2(model, FOUR, good=0.5, bad=0.1)[0] == 0


def test_a_probability_on_both_thresholds_is_good():
    assert amelioration_2(
        fixed_model(1 / 4, 1 / 4, 1 / 4, 1 / 4), FOUR, good=1 / 4, bad=1 / 4
    ) == pytest.approx([4**4 / 4])


def naive_amelioration_2(logprobs, good, bad):
    score = 1 / len(logprobs)
    for probability in np.exp(logprobs):
        if probability >= good * (1 - 1e-12):
            score /= probability
        elif probability <= bad * (1 + 1e-12):
            score *= probability
    return score


@given(
    corpus=CORPORA,
    sentences=CORPORA,
    order=st.integers(2, 3),
    padding=st.sampled_from(["both", "arpa"]),
    bounds=st.tuples(st.floats(0, 1), st.floats(0.001, 1)).map(sorted),
)
@settings(max_examples=80, deadline=None)
def test_equal_to_the_definition(corpus, sentences, order, padding, bounds):
    model = NgramLM(order, "witten_bell", padding=padding).fit(corpus)
    bad, good = bounds
    a1 = amelioration_1(model, sentences)
    a2 = amelioration_2(model, sentences, good=good, bad=bad)
    log_a2 = log_amelioration_2(model, sentences, good=good, bad=bad)
    assert a1.shape == a2.shape == log_a2.shape == (len(sentences),)
    for sentence, logprobs, *scores in zip(sentences, model.logprobs(sentences), a1, a2, log_a2):
        if not sentence:
            assert all(math.isnan(score) for score in scores)
            continue
        assert (
            scores[0] == pytest.approx(np.mean([max(p, math.log(1e-10)) for p in logprobs]))
            and scores[0] <= 0
        )
        assert scores[1] == pytest.approx(naive_amelioration_2(logprobs, good, bad))
        assert (
            scores[2] == pytest.approx(math.log(scores[1]))
            if scores[1] > 0
            else scores[2] == -math.inf
        )


def test_overflow_is_infinite_and_its_logarithm_is_not():
    model = fixed_model(*[1e-3] * 200)
    with np.errstate(all="raise"):
        assert amelioration_2(model, FOUR, good=1e-4, bad=1e-5)[0] == math.inf
        assert log_amelioration_2(model, FOUR, good=1e-4, bad=1e-5) == pytest.approx(
            [200 * math.log(1000) - math.log(200)]
        )


def test_no_sentences():
    model = NgramLM(2).fit([["a", "b"]])
    assert len(amelioration_1(model, [])) == len(amelioration_2(model, [], good=0.5, bad=0.1)) == 0


def test_thresholds_are_the_last_of_the_first_40_percent_and_the_first_of_the_last_20():
    model = SimpleNamespace(log_probabilities=[np.log(np.arange(1, 11) / 10)], order=3)
    assert good_bad_thresholds(model) == pytest.approx((0.7, 0.2))
    assert good_bad_thresholds(model, 0.1, 0.1) == pytest.approx((1.0, 0.1))


@given(
    corpus=CORPORA,
    shares=st.tuples(st.floats(0.05, 0.9), st.floats(0.05, 0.9)).filter(
        lambda shares: sum(shares) <= 1
    ),
)
@settings(max_examples=60, deadline=None)
def test_thresholds_leave_at_least_their_shares(corpus, shares):
    model = NgramLM(2, "absolute", 0.5).fit(corpus)
    good, bad = good_bad_thresholds(model, *shares)
    probabilities = np.exp(model.log_probabilities[-1])
    assert bad <= good
    assert (probabilities >= good).sum() >= round(shares[0] * len(probabilities))
    assert (probabilities <= bad).sum() >= round(shares[1] * len(probabilities))


@pytest.mark.parametrize(
    "good, bad", [(0.1, 0.2), (0, 0), (1.5, 0.1), (0.5, -0.1), (math.nan, 0.1)]
)
def test_bad_thresholds_are_refused(good, bad):
    for score in (amelioration_2, log_amelioration_2):
        with pytest.raises(InputError, match=r"^(good|bad) must be a number"):
            score(fixed_model(1), FOUR, good=good, bad=bad)


def test_bad_shares_floor_and_models_are_refused():
    model = NgramLM(2).fit([["a", "b"]])
    for name, shares in (
        ("good_share", (0, 0.2)),
        ("bad_share", (0.4, 0)),
        ("good_share and bad_share", (0.7, 0.4)),
    ):
        with pytest.raises(InputError, match=f"^{name} must"):
            good_bad_thresholds(model, *shares)
    with pytest.raises(InputError, match="floor must be a number"):
        amelioration_1(model, FOUR, floor=2)
    with pytest.raises(InputError, match="no n-grams of order 5"):
        good_bad_thresholds(NgramLM(5, padding="arpa").fit([["a"]]))
    for score in (
        amelioration_1,
        lambda model, texts: log_amelioration_2(model, texts, good=0.5, bad=0.1),
    ):
        with pytest.raises(InputTypeError, match=r"row 1: expected"):
            score(model, [["a"], "b"])
        with pytest.raises(InputTypeError, match="put it into a list"):
            score(model, "one string")


def test_shares_may_sum_to_one_in_floating_point():
    model = NgramLM(2).fit([["a", "b", "c"], ["a", "c"]])
    good, bad = good_bad_thresholds(model, 0.8, 0.2)
    assert bad <= good


def test_generators_are_scored_like_lists():
    model = NgramLM(2).fit([["a", "b"], ["b", "a"]])
    texts = [["a", "b"], ["b"]]
    assert amelioration_1(model, iter(texts)) == pytest.approx(amelioration_1(model, texts))
    assert log_amelioration_2(model, iter(texts), good=0.5, bad=0.1) == pytest.approx(
        log_amelioration_2(model, texts, good=0.5, bad=0.1)
    )


def test_amelioration_1_without_floor_and_end_markers_is_negative_cross_entropy():
    from tsteval.fluency import UnigramModel, fluency_scores

    corpus = [["the", "cat", "sat"], ["a", "dog", "sat"], ["the", "dog", "ran"]]
    model = NgramLM(3, "witten_bell", padding="arpa").fit(corpus)
    sentence = ["the", "dog", "sat"]
    nce = fluency_scores(model, [sentence], UnigramModel.from_sentences(corpus)).nce[0]
    (logprobs,) = model.logprobs([sentence])
    assert amelioration_1(model, [sentence], floor=0)[0] == pytest.approx(
        (3 * nce + logprobs[3:].sum()) / len(logprobs)
    )


def test_a_tie_counts_one_half():
    assert share_preferred([1, 2, 3, 4], [0, 2, 4, 1]) == 0.625
    assert share_preferred([0.1 + 0.2], [0.3]) == 0.5 and share_preferred([0.3 + 1e-6], [0.3]) == 1
    assert share_preferred([-math.inf, -math.inf, -1], [-math.inf, -1, -math.inf]) == 0.5
    ties = [0.0] * 48
    decided = share_preferred([1.0] * 41 + [0.0] * 11 + ties, [0.0] * 41 + [1.0] * 11 + ties)
    assert decided == pytest.approx(0.65)  # not 0.41, which is below the coin


@pytest.mark.parametrize(
    "good, bad", [([], []), ([1, 2], [1]), ([math.nan], [1.0]), ([1.0], [math.nan])]
)
def test_shares_of_nothing_or_of_no_number_are_refused(good, bad):
    with pytest.raises(InputError):
        share_preferred(good, bad)


def test_slides_table():
    folder = Path(os.environ.get("TSTEVAL_DATA", "")) / "gigaword_headlines"
    if not os.environ.get("TSTEVAL_DATA") or not folder.is_dir():
        pytest.skip(
            "needs the headlines of the fluency slides: see "
            "tsteval.core.assets.corpus_path('gigaword_headlines')"
        )
    headlines = [
        line.lower().split()
        for line in (folder / "headlines.txt").read_text(encoding="utf-8").splitlines()
    ]
    model = NgramLM(order=3, smoothing="kneser_ney", discount=0.1, padding="both").fit(headlines)
    a1 = amelioration_1(model, headlines)
    a2 = amelioration_2(model, headlines, good=1e-7, bad=1e-9)
    published = {
        "prescriptions elusive for curbing microsoft": (-1.015306760687785, 174.3800609910745),
        "chinese foreign minister meets with secretary-general": (
            -0.6539564915788506,
            676.094968747561,
        ),
        "expansion plan for ##nd street y": (-0.7915526763150786, 273.94892123422994),
    }
    for start, expected in published.items():
        (row,) = [row for row, words in enumerate(headlines) if " ".join(words).startswith(start)]
        assert (a1[row], a2[row]) == pytest.approx(expected, rel=1e-9)
