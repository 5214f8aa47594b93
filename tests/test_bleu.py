"""BLEU against sacreBLEU 2.6 and NLTK 3.10, and the properties that any BLEU must have."""

import math
import os
import random
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sacrebleu
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from nltk.tokenize.treebank import TreebankWordTokenizer
from nltk.translate import bleu_score as nltk_bleu
from sacrebleu.significance import PairedTest

from tsteval.bleu import (
    SMOOTHINGS,
    Bleu,
    approximate_randomization,
    bleu_from_statistics,
    bleu_interval,
    bleu_signature,
    bleu_statistics,
    brevity_penalty,
    checked_weights,
    closest_length,
    corpus_bleu,
    count_phantoms,
    counted_orders,
    find_smoothing,
    geometric_mean,
    paired_bootstrap,
    sentence_bleu,
    sentence_bleus,
    smoothed_precisions,
    split_statistics,
)
from tsteval.core import resample
from tsteval.core.checks import InputError, InputTypeError
from tsteval.core.metric import find_metric
from tsteval.words.matching import reference_count

TOKENIZERS = ["13a", "intl", "char", "none"]
SHARED_SMOOTHINGS = ["none", "floor", "add-k", "exp"]
NLTK_METHODS = [f"method{number}" for number in range(1, 8)]
words = st.lists(
    st.sampled_from(["the", "cat", "sat", "on", "a", "mat", ".", ",", "3.5", "The", "it's"]),
    max_size=12,
).map(" ".join)
texts = words | st.text(max_size=30)
reference_lists = st.lists(texts, min_size=1, max_size=4).map(tuple)  # lists may be sets
corpora = st.integers(1, 4).flatmap(
    lambda n: st.lists(
        st.tuples(texts, st.lists(texts, min_size=n, max_size=n).map(tuple)), min_size=1, max_size=6
    )
)


def peer(**options):
    return sacrebleu.BLEU(force=True, **options)


@pytest.mark.parametrize("smoothing", SHARED_SMOOTHINGS)
@pytest.mark.parametrize("tokenize", TOKENIZERS)
@settings(max_examples=40, deadline=None)
@given(
    output=texts,
    references=reference_lists,
    lowercase=st.booleans(),
    effective=st.booleans(),
    order=st.integers(1, 8),
)
def test_sentences_equal_sacrebleu(
    tokenize, smoothing, output, references, lowercase, effective, order
):
    expected = peer(
        tokenize=tokenize,
        smooth_method=smoothing,
        lowercase=lowercase,
        effective_order=effective,
        max_ngram_order=order,
    ).sentence_score(output, references)
    score = sentence_bleu(
        output,
        references,
        tokenize=tokenize,
        smoothing=smoothing,
        lowercase=lowercase,
        effective_order=effective,
        max_order=order,
    )
    assert score.score == pytest.approx(expected.score / 100, abs=1e-9)
    assert score.brevity_penalty == pytest.approx(expected.bp, abs=1e-9)
    assert (score.hypothesis_length, score.reference_length) == (expected.sys_len, expected.ref_len)


@pytest.mark.parametrize("smoothing", SHARED_SMOOTHINGS)
@pytest.mark.parametrize("tokenize", TOKENIZERS)
@settings(max_examples=40, deadline=None)
@given(corpus=corpora, lowercase=st.booleans())
def test_corpora_equal_sacrebleu(tokenize, smoothing, corpus, lowercase):
    outputs = [output for output, _ in corpus]
    references = [texts for _, texts in corpus]
    metric = peer(tokenize=tokenize, smooth_method=smoothing, lowercase=lowercase)
    expected = metric.corpus_score(outputs, list(zip(*references)))
    score = corpus_bleu(
        outputs, references, tokenize=tokenize, smoothing=smoothing, lowercase=lowercase
    )
    assert score.score == pytest.approx(expected.score / 100, abs=1e-9)
    ours = score.signature.split("|")
    theirs = str(metric.get_signature()).split("|")
    assert ours[:-1] == theirs[:-1]  # the last field is the version
    if smoothing != "add-k":  # sacreBLEU reports add-k's counts with the addition
        assert (
            score.matches.tolist() == expected.counts and score.totals.tolist() == expected.totals
        )
        if score.matches.any():
            np.testing.assert_allclose(
                score.precisions, np.array(expected.precisions) / 100, atol=1e-9
            )


@settings(max_examples=60, deadline=None)
@given(corpus=st.lists(st.tuples(texts, reference_lists), min_size=1, max_size=6))
def test_numbers_of_references_may_differ(corpus):
    outputs = [output for output, _ in corpus]
    references = [texts for _, texts in corpus]
    longest = max(map(len, references))
    streams = list(zip(*[(*texts, *[None] * (longest - len(texts))) for texts in references]))
    assume(
        all(stream[0] is not None for stream in streams)
    )  # sacreBLEU looks at the first entry of each stream
    expected = peer().corpus_score(outputs, streams)
    assert corpus_bleu(outputs, references).score == pytest.approx(expected.score / 100, abs=1e-9)


def nltk_score(function, references, output, method, weights):
    """NLTK's score, or None where NLTK gives none."""
    try:
        return function(
            references,
            output,
            weights=weights,
            smoothing_function=getattr(nltk_bleu.SmoothingFunction(), method),
        )
    except (AssertionError, ZeroDivisionError):
        return None


@pytest.mark.parametrize("method", NLTK_METHODS)
@settings(max_examples=150, deadline=None)
@given(output=words, references=st.lists(words, min_size=1, max_size=4))
def test_sentences_equal_nltk(method, output, references):
    expected = nltk_score(
        nltk_bleu.sentence_bleu,
        [text.split() for text in references],
        output.split(),
        method,
        (0.25,) * 4,
    )
    assume(expected is not None)
    score = sentence_bleu(output, references, smoothing=method, tokenize="none").score
    assert score == pytest.approx(float(expected), abs=1e-9)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_method5_averages_with_the_next_order(order):
    """Chen and Cherry 2014, section 3.5, by hand. (NLTK takes the fifth order for the next one, however many there
    are.)"""
    output = "the cat sat on the old mat"
    references = ["the cat lay on the old mat", "a cat sat on a mat"]
    length, reference_length, *counts = bleu_statistics(
        [output], [references], max_order=order + 1, tokenize="none"
    )[0]
    precisions = np.array(counts[: order + 1]) / np.maximum(counts[order + 1 :], 1)
    before = precisions[0] + 1
    product = 1.0
    for n in range(order):
        before = (before + precisions[n] + precisions[n + 1]) / 3
        product *= before
    assert length == reference_length
    assert sentence_bleu(
        output, references, max_order=order, smoothing="method5", tokenize="none"
    ).score == pytest.approx(product ** (1 / order), abs=1e-9)


@pytest.mark.parametrize(
    "method", ["method1", "method2", "method3", "method4"]
)  # NLTK's others see only a corpus's last sentence
@settings(max_examples=60, deadline=None)
@given(
    corpus=st.lists(
        st.tuples(words, st.lists(words, min_size=1, max_size=3).map(tuple)), min_size=1, max_size=5
    ),
    weights=st.sampled_from([(1.0,), (0.5, 0.5), (0.5, 0.5, 0.0, 0.0), (0.1, 0.2, 0.3, 0.2, 0.2)]),
)
def test_corpora_equal_nltk(method, corpus, weights):
    assume(sum(len(output.split()) for output, _ in corpus) > 1)
    expected = nltk_score(
        nltk_bleu.corpus_bleu,
        [[text.split() for text in references] for _, references in corpus],
        [output.split() for output, _ in corpus],
        method,
        weights,
    )
    score = corpus_bleu(
        [output for output, _ in corpus],
        [references for _, references in corpus],
        smoothing=method,
        weights=weights,
        max_order=len(weights),
        tokenize="none",
    ).score
    assert score == pytest.approx(float(expected), abs=1e-9)


BOUNDED = [name for name in SMOOTHINGS if name not in ("method5", "method7")]
MONOTONE = [name for name in SMOOTHINGS if name not in ("method4", "method6", "method7")]


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
@settings(max_examples=80, deadline=None)
@given(output=texts, references=reference_lists, seed=st.integers())
def test_bounds_and_order_of_references(smoothing, output, references, seed):
    score = sentence_bleu(output, references, smoothing=smoothing).score
    assert score >= 0 and (score <= 1 + 1e-12 or smoothing not in BOUNDED) and math.isfinite(score)
    shuffled = random.Random(seed).sample(references, len(references))
    assert sentence_bleu(output, shuffled, smoothing=smoothing).score == score


@pytest.mark.parametrize("smoothing", ["none", "floor", "add-k", "exp"])
@settings(max_examples=100, deadline=None)
@given(text=texts, others=st.lists(texts, max_size=3))
def test_identity_gives_one(smoothing, text, others):
    score = sentence_bleu(text, [*others, text], smoothing=smoothing)
    assert score.score == pytest.approx(1 if score.hypothesis_length else 0, abs=1e-12)


@pytest.mark.parametrize("smoothing", [name for name in BOUNDED if name.startswith("method")])
@settings(max_examples=60, deadline=None)
@given(text=st.lists(st.sampled_from("abc"), min_size=4, max_size=12).map(" ".join))
def test_identity_gives_one_with_nltk_methods_from_four_tokens_on(smoothing, text):
    assert sentence_bleu(text, text, smoothing=smoothing).score == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("smoothing", MONOTONE)
@settings(max_examples=80, deadline=None)
@given(length=st.integers(5, 20), reference=st.integers(1, 25), data=st.data())
def test_more_matches_never_lower_the_score(smoothing, length, reference, data):
    totals = [length - order for order in range(5)]
    matches = [data.draw(st.integers(0, total)) for total in totals]
    order = data.draw(st.integers(0, 4))
    assume(matches[order] < totals[order])
    more = [count + (position == order) for position, count in enumerate(matches)]
    low, high = (
        bleu_from_statistics(np.array([length, reference, *counts, *totals]), smoothing=smoothing)
        for counts in (matches, more)
    )
    assert high >= low - 1e-12


@settings(max_examples=60, deadline=None)
@given(corpus=st.lists(st.tuples(texts, reference_lists), min_size=1, max_size=8))
def test_statistics_add_up(corpus):
    outputs = [output for output, _ in corpus]
    references = [texts for _, texts in corpus]
    statistics = bleu_statistics(outputs, references)
    assert statistics.shape == (len(corpus), 10) and statistics.dtype.kind == "i"
    assert bleu_from_statistics(statistics.sum(axis=0)) == corpus_bleu(outputs, references).score
    singles = [sentence_bleu(*pair).score for pair in corpus]
    np.testing.assert_allclose(
        bleu_from_statistics(statistics, effective_order=True), singles, atol=1e-12
    )
    np.testing.assert_array_equal(
        bleu_statistics(outputs[::-1] + outputs, references[::-1] + references)[len(corpus) :],
        statistics,
    )


@pytest.mark.parametrize(
    "smoothing, value", [("floor", 0.02), ("floor", 0.9), ("add-k", 0.5), ("add-k", 3)]
)
@settings(max_examples=40, deadline=None)
@given(output=texts, references=reference_lists)
def test_smoothing_values_equal_sacrebleu(smoothing, value, output, references):
    expected = peer(
        smooth_method=smoothing, smooth_value=value, effective_order=True
    ).sentence_score(output, references)
    score = sentence_bleu(output, references, smoothing=smoothing, smoothing_value=value)
    assert score.score == pytest.approx(expected.score / 100, abs=1e-9)
    assert f"{smoothing}[{value:.2f}]" in score.signature


@settings(max_examples=60, deadline=None)
@given(output=texts, reference=texts)
def test_treebank_tokens_count_like_any_others(output, reference):
    tokenizer = TreebankWordTokenizer()
    joined = [" ".join(tokenizer.tokenize(text.rstrip())) for text in (output, reference)]
    expected = peer(tokenize="none", effective_order=True).sentence_score(joined[0], [joined[1]])
    score = sentence_bleu(output, reference, tokenize="treebank").score
    assert score == pytest.approx(expected.score / 100, abs=1e-9)


@pytest.mark.skipif(
    "TSTEVAL_DATA" not in os.environ, reason="set TSTEVAL_DATA to the folder that holds wnc_sample"
)
@pytest.mark.ci
def test_real_edits_equal_both_peers():
    folder = Path(os.environ["TSTEVAL_DATA"]) / "wnc_sample"
    outputs, references = (
        (folder / name).read_text().splitlines() for name in ("pre.train", "post.train")
    )
    for tokenize in TOKENIZERS:
        for smoothing in SHARED_SMOOTHINGS:
            expected = peer(tokenize=tokenize, smooth_method=smoothing).corpus_score(
                outputs, [references]
            )
            score = corpus_bleu(outputs, references, tokenize=tokenize, smoothing=smoothing).score
            assert score == pytest.approx(expected.score / 100, abs=1e-9)
    for method in NLTK_METHODS:
        scores = sentence_bleus(outputs, references, smoothing=method, tokenize="none")
        for score, output, reference in zip(scores, outputs, references):
            expected = nltk_score(
                nltk_bleu.sentence_bleu, [reference.split()], output.split(), method, (0.25,) * 4
            )
            assert expected is None or score == pytest.approx(float(expected), abs=1e-9)


def test_the_blogs_snippet_prints_what_nltk_prints():
    output = ["the", "cat", "is", "on", "the", "mat"]
    reference = ["there", "is", "a", "cat", "on", "the", "mat"]
    scores = [
        sentence_bleu(output, [reference], weights=weights, smoothing="method1").score
        for weights in ((1, 0, 0, 0), (0.5, 0.5, 0, 0), (0.25,) * 4)
    ]
    assert np.round(scores, 4).tolist() == [0.7054, 0.4887, 0.1943]


def test_the_blog_example_by_pencil():
    score = sentence_bleu("the cat is on the mat", "there is a cat on the mat", max_order=2)
    assert score.matches.tolist() == [5, 2] and score.totals.tolist() == [6, 5]
    assert score.score == pytest.approx(math.exp(-1 / 6) * math.sqrt(1 / 3), abs=1e-12)


def test_brevity_penalty_and_closest_length():
    assert brevity_penalty(6, 7) == pytest.approx(math.exp(-1 / 6)) and brevity_penalty(0, 7) == 0
    assert brevity_penalty(7, 7) == brevity_penalty(9, 7) == brevity_penalty(0, 0) == 1
    np.testing.assert_allclose(
        brevity_penalty(np.array([6, 9, 0]), np.array([7, 7, 7])), [math.exp(-1 / 6), 1, 0]
    )
    assert (
        closest_length(7, [9, 5]) == closest_length(7, [5, 9]) == 5
        and closest_length(7, [9, 4]) == 9
    )


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_batch_equals_single_calls(smoothing):
    outputs = ["the cat sat on the mat", "a cat", "", "the cat sat", "mat the on sat"]
    references = [
        "the cat sat on a mat",
        ["the cat", "a dog"],
        "a",
        "the cat sat",
        ["on the mat", "x"],
    ]
    singles = [sentence_bleu(*pair, smoothing=smoothing).score for pair in zip(outputs, references)]
    np.testing.assert_allclose(
        sentence_bleus(outputs, references, smoothing=smoothing), singles, atol=1e-12
    )


def noisy_systems(share_a, share_b, n=200, seed=0):
    """References of 12 random words, and two systems that replace a share of them by others."""
    generator = np.random.default_rng(seed)
    vocabulary = [
        "the",
        "cat",
        "sat",
        "on",
        "a",
        "mat",
        "and",
        "then",
        "it",
        "ran",
        "off",
        "to",
        "some",
        "other",
        "place",
    ]
    references = [generator.choice(vocabulary, 12) for _ in range(n)]
    systems = [
        [
            " ".join(
                np.where(generator.random(12) < share, generator.choice(vocabulary, 12), words)
            )
            for words in references
        ]
        for share in (share_a, share_b)
    ]
    return *systems, [" ".join(words) for words in references]


def test_bootstrap_mean_equals_sacrebleu():
    outputs, _, references = noisy_systems(0.3, 0.3)
    expected = peer().corpus_score(outputs, [references], n_bootstrap=300)
    interval = bleu_interval(bleu_statistics(outputs, references), n_resamples=300, seed=12345)
    assert interval.mean == pytest.approx(
        expected._mean / 100, abs=1e-7
    )  # sacreBLEU sums in 32 bits
    assert (interval.high - interval.low) / 2 == pytest.approx(
        expected._ci / 100, rel=0.05
    )  # it takes order statistics
    assert interval.low < interval.score == corpus_bleu(outputs, references).score < interval.high


def test_the_interval_is_that_of_corpora_drawn_and_scored_as_texts():
    outputs, _, references = noisy_systems(0.3, 0.3, n=30)
    generator = np.random.default_rng(1)
    drawn = [generator.integers(30, size=30) for _ in range(40)]
    scores = [
        corpus_bleu([outputs[i] for i in rows], [references[i] for i in rows]).score
        for rows in drawn
    ]
    interval = bleu_interval(bleu_statistics(outputs, references), n_resamples=40, seed=1)
    expected = np.quantile(scores, [0.025, 0.975])
    np.testing.assert_allclose(
        [interval.low, interval.high, interval.mean], [*expected, np.mean(scores)], atol=1e-12
    )


@pytest.mark.parametrize(
    "test, options",
    [("paired_bootstrap", {"n_resamples": 50}), ("approximate_randomization", {"n_trials": 50})],
)
@pytest.mark.parametrize("smoothing", ["exp", "method1", "method5"])
def test_comparisons_are_the_ground_floors_with_the_score_bound(test, options, smoothing):
    first, second, references = noisy_systems(0.3, 0.5, n=20)
    first, second = (
        bleu_statistics([*system, "the"], [*references, "the"], max_order=5)
        for system in (first, second)
    )
    rows = [
        np.column_stack([r[:, :7], np.maximum(r[:, 7:], 1)]) if smoothing == "method1" else r
        for r in (first, second)
    ]

    def score(sums):
        return bleu_from_statistics(sums, smoothing=smoothing)

    ours = {
        "paired_bootstrap": paired_bootstrap,
        "approximate_randomization": approximate_randomization,
    }[test]
    assert ours(first, second, smoothing=smoothing, seed=3, **options) == getattr(resample, test)(
        *rows, score, seed=3, **options
    )


def test_approximate_randomization_equals_sacrebleu():
    first, second, references = noisy_systems(0.3, 0.34)
    _, expected = PairedTest(
        [("A", first), ("B", second)],
        {"BLEU": peer()},
        [references],
        test_type="ar",
        n_samples=2000,
    )()
    found = approximate_randomization(
        *(bleu_statistics(system, references) for system in (first, second)),
        n_trials=2000,
        seed=12345,
    )
    assert found.p_value == pytest.approx(expected["BLEU"][1].p_value, abs=1e-12)
    assert found.difference == pytest.approx(
        (expected["BLEU"][0].score - expected["BLEU"][1].score) / 100, abs=1e-9
    )


@pytest.mark.parametrize("test", [paired_bootstrap, approximate_randomization])
def test_comparisons_know_equal_from_different(test):
    first, second, _references = (
        bleu_statistics(texts, noisy_systems(0.1, 0.5)[2]) for texts in noisy_systems(0.1, 0.5)
    )
    assert test(first, first).p_value == 1 and test(first, first).difference == 0
    assert (
        test(first, second).p_value < 0.01
        and test(second, first).difference == -test(first, second).difference
    )
    with pytest.raises(ValueError, match="same sentences"):
        test(first, second[:50])
    with pytest.raises(ValueError, match="at least one row"):
        test(first[:0], second[:0])


@pytest.mark.parametrize(
    "test, options",
    [(paired_bootstrap, {"n_resamples": 200}), (approximate_randomization, {"n_trials": 200})],
)
def test_equal_systems_are_rarely_called_different(test, options):
    p_values = []
    for seed in range(100):
        first, second, references = noisy_systems(0.3, 0.3, n=60, seed=seed)
        p_values.append(
            test(
                bleu_statistics(first, references),
                bleu_statistics(second, references),
                seed=seed,
                **options,
            ).p_value
        )
    assert np.mean(np.array(p_values) < 0.05) <= 0.12 and 0.35 < np.mean(p_values) < 0.65


def test_errors_name_the_row_and_the_remedy():
    rows = ["a b c"] * 20
    bad = [*rows[:17], None, *rows[18:]]
    with pytest.raises(TypeError, match="hypotheses, row 17"):
        corpus_bleu(bad, rows)
    with pytest.raises(TypeError, match="references, row 17"):
        corpus_bleu(rows, bad)
    with pytest.raises(TypeError, match="references, row 17"):
        corpus_bleu(rows, [*rows[:17], float("nan"), *rows[18:]])
    with pytest.raises(ValueError, match="row 19 has no counterpart"):
        corpus_bleu(rows, rows[:19])
    with pytest.raises(ValueError, match="row 3: no reference"):
        corpus_bleu(rows, [rows] * 3 + [[]] + [rows] * 16)
    with pytest.raises(TypeError, match="hypotheses must be a list"):
        corpus_bleu("a b c", ["a b c"])
    with pytest.raises(TypeError, match="corpus_bleu takes many"):
        sentence_bleu(None, ["a"])
    with pytest.raises(TypeError, match="hypotheses, row 0: a token is a string without white"):
        sentence_bleu(["the cat", "a dog"], ["the cat", "a dog"])
    with pytest.raises(ValueError, match="no hypotheses"):
        corpus_bleu([], [])
    with pytest.raises(ValueError, match=r"smoothing must be one of none, .*got 'chen'"):
        sentence_bleu("a", "a", smoothing="chen")
    with pytest.raises(ValueError, match="has no parameter"):
        sentence_bleu("a", "a", smoothing_value=1)
    for value in (0, -1, "0.1", math.inf, math.nan, True):
        with pytest.raises(ValueError, match="smoothing_value must be a number above 0"):
            sentence_bleu("a", "a", smoothing="floor", smoothing_value=value)
    for order in (0, 9, 2.5, True):
        with pytest.raises(
            ValueError, match="max_order must be a whole number of at least 1 and at most 8"
        ):
            sentence_bleu("a", "a", max_order=order)
    with pytest.raises(ValueError, match="4 numbers"):
        sentence_bleu("a", "a", weights=(1, 0))
    for wrong in ("1,2", ["a"] * 4, [[1], [1, 2]], [10**400] * 4, {}):
        with pytest.raises(TypeError, match="4 numbers"):
            sentence_bleu("a", "a", weights=wrong)
    with pytest.raises(ValueError, match="none negative"):
        sentence_bleu("a", "a", weights=(2, -1, 0, 0))
    with pytest.raises(ValueError, match="not all zero"):
        sentence_bleu("a", "a", weights=(0, 0, 0, 0))
    with pytest.raises(ValueError, match="level must be a number above 0 and below 1"):
        bleu_interval(bleu_statistics(["a"], ["a"]), level=95)
    with pytest.raises(ValueError, match="at least one row"):
        bleu_interval(np.zeros((0, 10)))
    with pytest.raises(ValueError, match="max_order=5"):
        bleu_from_statistics(bleu_statistics(["a"], ["a"]), smoothing="method5")


OUTPUTS = ["the cat sat", "a dog ran", "the cat sat"]
REFERENCES = ["the cat ran", "a dog ran", "a cat sat"]


@pytest.mark.parametrize(
    "given_as",
    [
        iter,
        tuple,
        np.array,
        lambda rows: pd.Series(rows, index=[7, 3, 7]),
        lambda rows: map(str, rows),
    ],
)
def test_columns_of_any_kind_score_like_lists(given_as):
    expected = bleu_statistics(OUTPUTS, REFERENCES)
    np.testing.assert_array_equal(
        bleu_statistics(given_as(OUTPUTS), given_as(REFERENCES)), expected
    )
    np.testing.assert_array_equal(
        sentence_bleus(given_as(OUTPUTS), given_as(REFERENCES)), sentence_bleus(OUTPUTS, REFERENCES)
    )
    assert (
        corpus_bleu(given_as(OUTPUTS), given_as(REFERENCES)).score
        == corpus_bleu(OUTPUTS, REFERENCES).score
    )
    assert (
        sentence_bleu(np.array(OUTPUTS)[0], np.array(REFERENCES)[0]).score
        == sentence_bleu(OUTPUTS[0], REFERENCES[0]).score
    )


tokens = st.lists(st.sampled_from(["the", "cat", ".", "The", "it's", "déjà"]), max_size=10)


@settings(max_examples=60, deadline=None)
@given(
    output=tokens,
    references=st.lists(tokens, min_size=1, max_size=3),
    method=st.sampled_from(["method1", "method3"]),
)
def test_lists_of_tokens_score_as_in_nltk(output, references, method):
    expected = nltk_score(nltk_bleu.sentence_bleu, references, output, method, (0.25,) * 4)
    score = sentence_bleu(output, references, smoothing=method)
    if expected is not None and any(references):
        assert score.score == pytest.approx(float(expected), abs=1e-9)
    assert "tok:none" in score.signature and score.hypothesis_length == len(output)
    as_texts = sentence_bleu(
        " ".join(output), [" ".join(one) for one in references], smoothing=method, tokenize="none"
    )
    assert score.score == as_texts.score and score.signature == as_texts.signature


def test_a_corpus_of_token_lists_is_that_of_its_texts():
    split, rows = [text.split() for text in OUTPUTS], [text.split() for text in REFERENCES]
    assert (
        corpus_bleu(split, rows).score
        == corpus_bleu(split, [[row] for row in rows]).score
        == corpus_bleu(OUTPUTS, REFERENCES, tokenize="none").score
    )
    np.testing.assert_array_equal(
        bleu_statistics(split, rows), bleu_statistics(OUTPUTS, REFERENCES)
    )
    np.testing.assert_array_equal(sentence_bleus(split, rows), sentence_bleus(OUTPUTS, REFERENCES))


def test_tables_are_not_scored_by_their_column_names():
    with pytest.raises(TypeError, match="choose one of its columns"):
        corpus_bleu(pd.DataFrame({"a": OUTPUTS, "b": OUTPUTS, "c": OUTPUTS}), REFERENCES)
    with pytest.raises(TypeError, match="choose one of its columns"):
        corpus_bleu(OUTPUTS, dict(zip("abc", REFERENCES)))


def table(outputs, references, index=None):
    return pd.DataFrame({"output": outputs, "references": references}, index=index)


def test_a_row_and_a_corpus_of_that_row_sign_differently():
    """A two-word pair: its row scores 1, its corpus 0, and one signature once stood for both."""
    rows = table(["a b"], [("a b",)])
    scores = Bleu().score(rows)
    assert scores.frame["bleu"].tolist() == [1.0]
    assert Bleu().aggregate(scores.sums.sum(axis=0)) == 0.0
    of_row = Bleu().sign_row(rows)
    of_corpus = Bleu().sign(rows)
    assert of_row == sentence_bleu("a b", "a b").signature and "eff:yes" in of_row
    assert of_corpus == corpus_bleu(["a b"], ["a b"]).signature and "eff:no" in of_corpus


def cut_at(letter, version=None):
    def cut(text):
        return text.split(letter)

    if version:
        cut.version = version
    return cut


OPTIONS = [
    {},
    {"max_order": 2},
    {"weights": (0.5, 0.5, 0, 0)},
    {"smoothing": "method1"},
    {"smoothing": "method5"},
    {"smoothing": "floor"},
    {"smoothing": "floor", "smoothing_value": 0.104},
    {"smoothing": "floor", "smoothing_value": 0.101},
    {"tokenize": "char"},
    {"lowercase": True},
    {"tokenize": str.split},
    {"tokenize": cut_at("a", version="a")},
    {"tokenize": cut_at("e", version="e")},
    {"tokenize": cut_at("e")},
]


def test_every_option_changes_the_signature():
    rows = table(OUTPUTS, [(text,) for text in REFERENCES])
    metrics = [Bleu(**options) for options in OPTIONS]
    assert (
        len({metric.signature for metric in metrics})
        == len({metric.sign(rows) for metric in metrics})
        == len({metric.sign_row(rows) for metric in metrics})
        == len(OPTIONS)
    )
    assert (
        bleu_signature(1)
        == bleu_signature(1, weights=(0.25,) * 4)
        == bleu_signature(1, smoothing="exp")
    )


def test_a_function_without_a_version_signs_as_custom_and_its_scores_are_not_stored():
    assert "|tok:custom|" in Bleu(tokenize=cut_at("e")).signature
    assert not Bleu(tokenize=cut_at("e")).storable
    assert Bleu(tokenize=cut_at("e", version="e")).storable and Bleu().storable


@pytest.mark.parametrize("options", OPTIONS)
def test_the_metric_is_sentence_bleu_by_row_and_corpus_bleu_for_the_system(options):
    references = [("the cat ran", "A Dog"), ("a dog ran",), ("a cat sat",)]
    metric = Bleu(**options)
    rows = table(OUTPUTS, references, index=[5, 3, 9])
    scores = metric.score(rows)
    assert scores.frame.index.tolist() == [5, 3, 9]
    assert list(scores.frame) == list(metric.columns)
    np.testing.assert_array_equal(
        scores.frame["bleu"],
        [sentence_bleu(*pair, **options).score for pair in zip(OUTPUTS, references)],
    )
    sums, of_corpus = metric.summed(scores, "bleu")
    expected = corpus_bleu(OUTPUTS, references, **options)
    assert of_corpus(sums.sum(axis=0)) == expected.score
    assert metric.sign(rows) == expected.signature
    assert of_corpus(np.stack([sums.sum(axis=0)] * 2)).shape == (2,)


@pytest.mark.parametrize(
    "options, words",
    [
        ({"smoothing": "chen"}, "smoothing must be"),
        ({"max_order": 9}, "max_order"),
        ({"weights": (1, 0)}, "4 numbers"),
        ({"tokenize": "13b"}, "tokenize must be"),
        ({"smoothing_value": 1}, "no parameter"),
    ],
)
def test_the_metrics_options_are_checked_before_scoring(options, words):
    with pytest.raises(InputError, match=words):
        Bleu(**options)


def test_an_option_that_there_is_not_is_named_with_those_that_there_are():
    words = r"no option 'order' \(did you mean max_order\?\); its options are max_order, weights"
    with pytest.raises(InputError, match=words):
        find_metric("bleu:order=2")


def test_one_reference_length_goes_with_many_outputs():
    assert brevity_penalty(np.array([0, 2, 4, 8]), 4).tolist() == [
        brevity_penalty(length, 4) for length in (0, 2, 4, 8)
    ]


def scored_elsewhere(number):
    return sentence_bleu("the old mill was built in 1932", f"the mill was built in {number}").score


def test_a_process_that_was_spawned_gives_the_same_scores():
    """Spawned processes share nothing with this one but the code, as on macOS and Windows."""
    import multiprocessing

    with multiprocessing.get_context("spawn").Pool(2) as pool:
        found = pool.map(scored_elsewhere, [1932, 1933])
    assert found == [scored_elsewhere(1932), scored_elsewhere(1933)] and found[0] > found[1] > 0


@pytest.mark.parametrize(
    "name, expected",
    [
        ("none", [4 / 6, 1 / 5, 0, 0]),
        ("floor", [4 / 6, 1 / 5, 0.1 / 4, 0.1 / 3]),
        ("add-k", [4 / 6, 2 / 6, 1 / 5, 1 / 4]),
        ("exp", [4 / 6, 1 / 5, 0.5 / 4, 0.25 / 3]),
        ("method4", [4 / 6, 1 / 5, np.log(6) / (5 * 2) / 4, np.log(6) / (5 * 4) / 3]),
    ],
)
def test_precisions_by_pencil(name, expected):
    method, value = find_smoothing(name, None)
    precisions = method.function(
        np.array([4.0, 1, 0, 0]), np.array([6.0, 5, 4, 3]), np.array(6), value
    )
    np.testing.assert_allclose(precisions, expected)


def test_a_parameter_is_for_those_that_have_one():
    assert find_smoothing("floor", None)[1] == 0.1 and find_smoothing("floor", 0.5)[1] == 0.5
    for name, value, words in (
        ("exp", 1, "has no parameter"),
        ("floor", 0, "smoothing_value"),
        ("chen", None, "one of"),
    ):
        with pytest.raises(InputError, match=words):
            find_smoothing(name, value)


def test_rows_too_short_for_an_ngram_count_as_one_where_nltk_says_so():
    row = np.array([2, 2, 2, 1, 0, 0, 2, 1, 0, 0])
    assert count_phantoms(row, "method1").tolist() == [2, 2, 2, 1, 0, 0, 2, 1, 1, 1]
    assert all(
        count_phantoms(row, name).tolist() == row.tolist()
        for name, method in SMOOTHINGS.items()
        if not method.by_row
    )


def test_the_longest_order_can_be_smoothed_by_its_neighbour():
    """method5 looks at one order more than the score has; with eight orders that is a ninth, which was refused."""
    score = sentence_bleu(
        "a b c d e f g h i", "a b c d e f g h x", max_order=8, smoothing="method5"
    )
    assert 0 < score.score < 1 and len(score.precisions) == 8


PAIR = "the cat is on the mat", "there is a cat on the mat"


def test_the_row_of_a_pair():
    """Six and seven tokens; five words and two pairs of words match, of six, five, four and three n-grams."""
    assert bleu_statistics([PAIR[0]], [PAIR[1]]).tolist() == [[6, 7, 5, 2, 1, 0, 6, 5, 4, 3]]
    length, reference_length, matches, totals = split_statistics(
        bleu_statistics([PAIR[0]], [PAIR[1]]), 2
    )
    assert (
        (length, reference_length) == (6, 7)
        and matches.tolist() == [[5, 2]]
        and totals.tolist() == [[6, 5]]
    )
    with pytest.raises(InputError, match=r"5 orders are needed"):
        split_statistics(np.zeros(10), 5)


def test_the_nearest_length_and_of_two_the_shorter():
    assert (
        closest_length(7, [9, 5]) == closest_length(7, [5, 9]) == 5
        and closest_length(7, [9, 4]) == 9
    )
    assert bleu_statistics([PAIR[0]], [["a b c d e f g", "a b c d e"]])[0, 1] == 5


def test_precisions_and_their_mean():
    precisions = smoothed_precisions(np.array([6, 7, 5, 2, 6, 5]), max_order=2, smoothing="none")
    assert precisions.tolist() == [5 / 6, 2 / 5]
    assert geometric_mean(precisions, np.full(2, 0.5), False) == pytest.approx(math.sqrt(1 / 3))
    undefined = np.array([0.5, np.nan])
    assert geometric_mean(undefined, np.full(2, 0.5), True) == pytest.approx(0.5)
    assert geometric_mean(undefined, np.full(2, 0.5), False) == 0
    assert counted_orders(4, "exp") == 4 and counted_orders(4, "method5") == 5


def test_weights_and_references():
    assert checked_weights(None, 4).tolist() == [0.25] * 4
    for weights, error in (
        ([1], InputError),
        ([1, -1], InputError),
        ([0, 0], InputError),
        ("ab", InputTypeError),
    ):
        with pytest.raises(error, match="weights"):
            checked_weights(weights, 2)
    assert reference_count([["a"], ["b"]]) == 1 and reference_count([["a"], ["b", "c"]]) is None


def test_a_signature_tells_settings_that_differ_and_only_these():
    plain = bleu_signature(1)
    assert plain == bleu_signature(1, weights=[0.25] * 4)
    others = [
        bleu_signature(None),
        bleu_signature(1, lowercase=True),
        bleu_signature(1, smoothing="floor"),
        bleu_signature(1, smoothing="floor", smoothing_value=0.123456),
        bleu_signature(1, max_order=2),
    ]
    assert len({plain, *others}) == 6 and "[0.10]" in others[2] and "[0.123456]" in others[3]
