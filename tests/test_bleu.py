"""BLEU against sacreBLEU 2.6 and NLTK 3.10, and the properties that any BLEU must have."""
import math
import random

import numpy as np
import pytest
import sacrebleu
from hypothesis import assume, given, settings, strategies as st
from nltk.translate import bleu_score as nltk_bleu
from sacrebleu.significance import PairedTest

from tsteval.bleu import (SMOOTHINGS, approximate_randomization, bleu_from_statistics, bleu_interval, bleu_statistics,
                          brevity_penalty, closest_length, corpus_bleu, paired_bootstrap, resample_statistics, sentence_bleu,
                          sentence_bleus)

TOKENIZERS, SHARED_SMOOTHINGS = ["13a", "intl", "char", "none"], ["none", "floor", "add-k", "exp"]
NLTK_METHODS = [f"method{number}" for number in range(1, 8)]
words = st.lists(st.sampled_from("the cat sat on a mat . , 3.5 The it's".split()), max_size=12).map(" ".join)
texts = words | st.text(max_size=30)
reference_lists = st.lists(texts, min_size=1, max_size=4)
corpora = st.integers(1, 4).flatmap(
    lambda n: st.lists(st.tuples(texts, st.lists(texts, min_size=n, max_size=n)), min_size=1, max_size=6))


def peer(**options):
    return sacrebleu.BLEU(force=True, **options)


@pytest.mark.parametrize("smoothing", SHARED_SMOOTHINGS)
@pytest.mark.parametrize("tokenize", TOKENIZERS)
@settings(max_examples=40, deadline=None)
@given(output=texts, references=reference_lists, lowercase=st.booleans(), effective=st.booleans(), order=st.integers(1, 8))
def test_sentences_equal_sacrebleu(tokenize, smoothing, output, references, lowercase, effective, order):
    expected = peer(tokenize=tokenize, smooth_method=smoothing, lowercase=lowercase, effective_order=effective,
                    max_ngram_order=order).sentence_score(output, references)
    score = sentence_bleu(output, references, tokenize=tokenize, smoothing=smoothing, lowercase=lowercase,
                          effective_order=effective, max_order=order)
    assert score.score == pytest.approx(expected.score / 100, abs=1e-9)
    assert score.brevity_penalty == pytest.approx(expected.bp, abs=1e-9)
    assert (score.hypothesis_length, score.reference_length) == (expected.sys_len, expected.ref_len)


@pytest.mark.parametrize("smoothing", SHARED_SMOOTHINGS)
@pytest.mark.parametrize("tokenize", TOKENIZERS)
@settings(max_examples=40, deadline=None)
@given(corpus=corpora, lowercase=st.booleans())
def test_corpora_equal_sacrebleu(tokenize, smoothing, corpus, lowercase):
    outputs, references = [output for output, _ in corpus], [texts for _, texts in corpus]
    metric = peer(tokenize=tokenize, smooth_method=smoothing, lowercase=lowercase)
    expected = metric.corpus_score(outputs, list(zip(*references)))
    score = corpus_bleu(outputs, references, tokenize=tokenize, smoothing=smoothing, lowercase=lowercase)
    assert score.score == pytest.approx(expected.score / 100, abs=1e-9)
    ours, theirs = score.signature.split("|"), str(metric.get_signature()).split("|")
    assert ours[:-1] == theirs[:-1]  # the last field is the version
    if smoothing != "add-k":  # sacreBLEU reports add-k's counts with the addition
        assert score.matches.tolist() == expected.counts and score.totals.tolist() == expected.totals
        if score.matches.any():
            np.testing.assert_allclose(score.precisions, np.array(expected.precisions) / 100, atol=1e-9)


@settings(max_examples=60, deadline=None)
@given(corpus=st.lists(st.tuples(texts, reference_lists), min_size=1, max_size=6))
def test_numbers_of_references_may_differ(corpus):
    outputs, references = [output for output, _ in corpus], [texts for _, texts in corpus]
    longest = max(map(len, references))
    streams = list(zip(*[texts + [None] * (longest - len(texts)) for texts in references]))
    assume(all(stream[0] is not None for stream in streams))  # sacreBLEU looks at the first entry of each stream
    expected = peer().corpus_score(outputs, streams)
    assert corpus_bleu(outputs, references).score == pytest.approx(expected.score / 100, abs=1e-9)


def nltk_score(function, references, output, method, weights):
    """NLTK's score, or None where NLTK gives none."""
    try:
        return function(references, output, weights=weights, smoothing_function=getattr(nltk_bleu.SmoothingFunction(), method))
    except (AssertionError, ZeroDivisionError):
        return None


@pytest.mark.parametrize("method", NLTK_METHODS)
@settings(max_examples=150, deadline=None)
@given(output=words, references=st.lists(words, min_size=1, max_size=4))
def test_sentences_equal_nltk(method, output, references):
    expected = nltk_score(nltk_bleu.sentence_bleu, [text.split() for text in references], output.split(), method, (0.25,) * 4)
    assume(expected is not None)
    score = sentence_bleu(output, references, smoothing=method, tokenize="none").score
    assert score == pytest.approx(float(expected), abs=1e-9)


@pytest.mark.parametrize("method", ["method1", "method2", "method3", "method4"])  # NLTK's others see only a corpus's last sentence
@settings(max_examples=60, deadline=None)
@given(corpus=st.lists(st.tuples(words, st.lists(words, min_size=1, max_size=3)), min_size=1, max_size=5),
       weights=st.sampled_from([(1.0,), (0.5, 0.5), (0.5, 0.5, 0.0, 0.0), (0.1, 0.2, 0.3, 0.2, 0.2)]))
def test_corpora_equal_nltk(method, corpus, weights):
    assume(sum(len(output.split()) for output, _ in corpus) > 1)
    expected = nltk_score(nltk_bleu.corpus_bleu, [[text.split() for text in references] for _, references in corpus],
                          [output.split() for output, _ in corpus], method, weights)
    score = corpus_bleu([output for output, _ in corpus], [references for _, references in corpus], smoothing=method,
                        weights=weights, max_order=len(weights), tokenize="none").score
    assert score == pytest.approx(float(expected), abs=1e-9)


BOUNDED = [name for name in SMOOTHINGS if name not in ("method5", "method7")]
MONOTONE = [name for name in SMOOTHINGS if name not in ("method4", "method6", "method7")]


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
@settings(max_examples=80, deadline=None)
@given(output=texts, references=reference_lists, seed=st.integers())
def test_bounds_and_order_of_references(smoothing, output, references, seed):
    score = sentence_bleu(output, references, smoothing=smoothing).score
    assert 0 <= score and (score <= 1 + 1e-12 or smoothing not in BOUNDED) and math.isfinite(score)
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
    low, high = (bleu_from_statistics(np.array([length, reference, *counts, *totals]), smoothing=smoothing)
                 for counts in (matches, more))
    assert high >= low - 1e-12


@settings(max_examples=60, deadline=None)
@given(corpus=st.lists(st.tuples(texts, reference_lists), min_size=1, max_size=8))
def test_statistics_add_up(corpus):
    outputs, references = [output for output, _ in corpus], [texts for _, texts in corpus]
    statistics = bleu_statistics(outputs, references)
    assert statistics.shape == (len(corpus), 10) and statistics.dtype.kind == "i"
    assert bleu_from_statistics(statistics.sum(axis=0)) == corpus_bleu(outputs, references).score
    singles = [sentence_bleu(*pair).score for pair in corpus]
    np.testing.assert_allclose(bleu_from_statistics(statistics, effective_order=True), singles, atol=1e-12)
    np.testing.assert_array_equal(bleu_statistics(outputs[::-1] + outputs, references[::-1] + references)[len(corpus):], statistics)


def test_the_blog_example_by_pencil():
    score = sentence_bleu("the cat is on the mat", "there is a cat on the mat", max_order=2)
    assert score.matches.tolist() == [5, 2] and score.totals.tolist() == [6, 5]
    assert score.score == pytest.approx(math.exp(-1 / 6) * math.sqrt(1 / 3), abs=1e-12)


def test_brevity_penalty_and_closest_length():
    assert brevity_penalty(6, 7) == pytest.approx(math.exp(-1 / 6)) and brevity_penalty(0, 7) == 0
    assert brevity_penalty(7, 7) == brevity_penalty(9, 7) == brevity_penalty(0, 0) == 1
    np.testing.assert_allclose(brevity_penalty(np.array([6, 9, 0]), np.array([7, 7, 7])), [math.exp(-1 / 6), 1, 0])
    assert closest_length(7, [9, 5]) == closest_length(7, [5, 9]) == 5 and closest_length(7, [9, 4]) == 9


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_batch_equals_single_calls(smoothing):
    outputs = ["the cat sat on the mat", "a cat", "", "the cat sat", "mat the on sat"]
    references = ["the cat sat on a mat", ["the cat", "a dog"], "a", "the cat sat", ["on the mat", "x"]]
    singles = [sentence_bleu(*pair, smoothing=smoothing).score for pair in zip(outputs, references)]
    np.testing.assert_allclose(sentence_bleus(outputs, references, smoothing=smoothing), singles, atol=1e-12)


def noisy_systems(share_a, share_b, n=200, seed=0):
    """References of 12 random words, and two systems that replace a share of them by others."""
    generator, vocabulary = np.random.default_rng(seed), "the cat sat on a mat and then it ran off to some other place".split()
    references = [generator.choice(vocabulary, 12) for _ in range(n)]
    systems = [[" ".join(np.where(generator.random(12) < share, generator.choice(vocabulary, 12), words)) for words in references]
               for share in (share_a, share_b)]
    return *systems, [" ".join(words) for words in references]


def test_bootstrap_mean_equals_sacrebleu():
    outputs, _, references = noisy_systems(0.3, 0.3)
    expected = peer().corpus_score(outputs, [references], n_bootstrap=300)
    interval = bleu_interval(bleu_statistics(outputs, references), n_resamples=300, seed=12345)
    assert interval.mean == pytest.approx(expected._mean / 100, abs=1e-7)  # sacreBLEU sums in 32 bits
    assert (interval.high - interval.low) / 2 == pytest.approx(expected._ci / 100, rel=0.05)  # it takes order statistics
    assert interval.low < interval.score == corpus_bleu(outputs, references).score < interval.high


def test_resamples_are_sums_of_rows():
    statistics = bleu_statistics(["a b c", "d", "e f"], ["a b", "d", "e g"])
    sums = resample_statistics(statistics, 50, seed=1)
    generator = np.random.default_rng(1)
    np.testing.assert_array_equal(sums, [statistics[generator.integers(3, size=3)].sum(axis=0) for _ in range(50)])


def test_approximate_randomization_equals_sacrebleu():
    first, second, references = noisy_systems(0.3, 0.34)
    _, expected = PairedTest([("A", first), ("B", second)], {"BLEU": peer()}, [references], test_type="ar", n_samples=2000)()
    found = approximate_randomization(*(bleu_statistics(system, references) for system in (first, second)), n_trials=2000, seed=12345)
    assert found.p_value == pytest.approx(expected["BLEU"][1].p_value, abs=1e-12)
    assert found.difference == pytest.approx((expected["BLEU"][0].score - expected["BLEU"][1].score) / 100, abs=1e-9)


@pytest.mark.parametrize("test", [paired_bootstrap, approximate_randomization])
def test_comparisons_know_equal_from_different(test):
    first, second, references = (bleu_statistics(texts, noisy_systems(0.1, 0.5)[2]) for texts in noisy_systems(0.1, 0.5))
    assert test(first, first).p_value == 1 and test(first, first).difference == 0
    assert test(first, second).p_value < 0.01 and test(second, first).difference == -test(first, second).difference
    with pytest.raises(ValueError, match="same sentences"): test(first, second[:50])
    with pytest.raises(ValueError, match="same sentences"): test(first[:0], second[:0])


@pytest.mark.parametrize("test, options", [(paired_bootstrap, {"n_resamples": 200}), (approximate_randomization, {"n_trials": 200})])
def test_equal_systems_are_rarely_called_different(test, options):
    p_values = []
    for seed in range(100):
        first, second, references = noisy_systems(0.3, 0.3, n=60, seed=seed)
        p_values.append(test(bleu_statistics(first, references), bleu_statistics(second, references), seed=seed, **options).p_value)
    assert np.mean(np.array(p_values) < 0.05) <= 0.12 and 0.35 < np.mean(p_values) < 0.65


def test_errors_name_the_row_and_the_remedy():
    rows = ["a b c"] * 20
    bad = rows[:17] + [None] + rows[18:]
    with pytest.raises(TypeError, match="hypotheses, row 17"): corpus_bleu(bad, rows)
    with pytest.raises(TypeError, match="references, row 17"): corpus_bleu(rows, bad)
    with pytest.raises(TypeError, match="references, row 17"): corpus_bleu(rows, rows[:17] + [float("nan")] + rows[18:])
    with pytest.raises(ValueError, match="row 19 has no counterpart"): corpus_bleu(rows, rows[:19])
    with pytest.raises(ValueError, match="row 3: no reference"): corpus_bleu(rows, [rows] * 3 + [[]] + [rows] * 16)
    with pytest.raises(TypeError, match="hypotheses must be a list"): corpus_bleu("a b c", ["a b c"])
    with pytest.raises(TypeError, match="corpus_bleu"): sentence_bleu(["a"], ["a"])
    with pytest.raises(ValueError, match="no hypotheses"): corpus_bleu([], [])
    with pytest.raises(ValueError, match="no smoothing called"): sentence_bleu("a", "a", smoothing="chen")
    with pytest.raises(ValueError, match="has no parameter"): sentence_bleu("a", "a", smoothing_value=1)
    with pytest.raises(ValueError, match="positive"): sentence_bleu("a", "a", smoothing="floor", smoothing_value=0)
    with pytest.raises(ValueError, match="from 1 to 8"): sentence_bleu("a", "a", max_order=9)
    with pytest.raises(ValueError, match="4 numbers"): sentence_bleu("a", "a", weights=(1, 0))
    with pytest.raises(ValueError, match="none negative"): sentence_bleu("a", "a", weights=(2, -1, 0, 0))
    with pytest.raises(ValueError, match="between 0 and 1"): bleu_interval(bleu_statistics(["a"], ["a"]), level=95)
    with pytest.raises(ValueError, match="at least one row"): resample_statistics(np.zeros((0, 10)))
    with pytest.raises(ValueError, match="max_order=5"): bleu_from_statistics(bleu_statistics(["a"], ["a"]), smoothing="method5")
