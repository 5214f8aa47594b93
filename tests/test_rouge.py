"""ROUGE against rouge-score 0.1.2, and the properties that any ROUGE must have."""

import os
from collections import Counter
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer

import tsteval.rouge
from tsteval.core.checks import InputError
from tsteval.core.metric import find_metric
from tsteval.rouge import (
    Rouge,
    _stem,
    _unread,
    check_kinds,
    precision_recall_f1,
    rouge,
    rouge_overlap,
    rouge_scores,
    rouge_signature,
    rouge_tokenizer,
    summary_matches,
)

KINDS = ["rouge1", "rouge2", "rouge3", "rougeL"]
PARTS = {"precision": "precision", "recall": "recall", "f1": "fmeasure"}
texts = (
    st.lists(
        st.sampled_from(
            [
                "the",
                "cats",
                "cat",
                "running",
                "runs",
                "relational",
                "on",
                "Mat",
                ".",
                "don't",
                "3.5",
                "İx",
                "É",
            ]
        ),
        max_size=12,
    ).map(" ".join)
    | st.text()
)
# of a text in another script rouge-score says 0, where there is no score
texts = texts.filter(lambda text: not _unread(text))
corpora = st.lists(
    st.tuples(texts, st.lists(texts, min_size=1, max_size=4).map(tuple)), min_size=1, max_size=5
)


@pytest.mark.parametrize("stemmer", [False, True])
@settings(max_examples=150, deadline=None)
@given(corpus=corpora)
def test_scores_equal_rouge_score(stemmer, corpus):
    peer = RougeScorer(KINDS, use_stemmer=stemmer)
    found = rouge_scores(
        [output for output, _ in corpus], [references for _, references in corpus], KINDS, stemmer
    )
    for row, (output, references) in enumerate(corpus):
        expected = peer.score_multi(references, output)
        for kind in KINDS:
            for ours, theirs in PARTS.items():
                assert found[kind, ours][row] == pytest.approx(
                    getattr(expected[kind], theirs), abs=1e-9
                )


@settings(max_examples=100, deadline=None)
@given(corpus=corpora)
def test_frame_bounds_and_order_of_references(corpus):
    outputs = [output for output, _ in corpus]
    references = [texts for _, texts in corpus]
    frame = rouge(outputs, references)
    assert list(frame.columns) == KINDS and len(frame) == len(corpus)
    assert ((frame >= 0) & (frame <= 1)).all(axis=None)
    np.testing.assert_array_equal(frame, rouge(outputs, [row[::-1] for row in references]))
    assert (
        frame["rougeL"] <= frame["rouge1"] + 1e-12
    ).all()  # a common subsequence is a set of shared words


@given(words=st.lists(st.sampled_from("abc"), min_size=3, max_size=9))
def test_identity_gives_one_and_swapping_swaps_precision_and_recall(words):
    text = " ".join(words)
    assert (rouge([text], [text]) == 1).all(axis=None)
    there, back = (rouge_scores(*pair) for pair in ((["a b c x"], [text]), ([text], ["a b c x"])))
    for kind in KINDS:
        assert there[kind, "precision"][0] == back[kind, "recall"][0] and there[kind, "f1"][
            0
        ] == pytest.approx(back[kind, "f1"][0])


@given(matches=st.integers(0, 8), extra=st.integers(1, 5))
def test_more_matches_raise_f1(matches, extra):
    low, high = precision_recall_f1(
        np.array([matches, matches + 1]), np.array([9, 9]), np.array([9 + extra] * 2)
    )[:, 2]
    assert high > low


@pytest.mark.skipif(
    "TSTEVAL_DATA" not in os.environ, reason="set TSTEVAL_DATA to the folder that holds wnc_sample"
)
@pytest.mark.parametrize("stemmer", [False, True])
def test_real_edits_equal_rouge_score(stemmer):
    folder = Path(os.environ["TSTEVAL_DATA"]) / "wnc_sample"
    outputs, references = (
        (folder / name).read_text().splitlines()[:300] for name in ("pre.train", "post.train")
    )
    peer = RougeScorer(KINDS, use_stemmer=stemmer)
    scores = [peer.score(reference, output) for output, reference in zip(outputs, references)]
    expected = [[score[kind].fmeasure for kind in KINDS] for score in scores]
    np.testing.assert_allclose(rouge(outputs, references, KINDS, stemmer), expected, atol=1e-9)


def test_by_pencil():
    found = rouge_scores(["the cat is on the mat"], ["there is a cat on the mat"])
    assert found["rouge1", "precision"][0] == pytest.approx(5 / 6) and found["rouge1", "recall"][
        0
    ] == pytest.approx(5 / 7)
    assert found["rouge2", "f1"][0] == pytest.approx(2 * 2 / (5 + 6)) and found["rougeL", "f1"][
        0
    ] == pytest.approx(2 * 4 / (6 + 7))


ALL_KINDS = [*KINDS, "rougeLsum"]
line_breaks = st.lists(texts, max_size=4).map("\n".join) | st.text(
    alphabet="ab \n\r\x0b\u2028", max_size=20
)


@pytest.mark.parametrize("stemmer", [False, True])
@settings(max_examples=150, deadline=None)
@given(
    corpus=st.lists(
        st.tuples(line_breaks, st.lists(line_breaks, min_size=1, max_size=3).map(tuple)),
        min_size=1,
        max_size=4,
    )
)
def test_summaries_equal_rouge_score(stemmer, corpus):
    peer = RougeScorer(ALL_KINDS, use_stemmer=stemmer)
    found = rouge_scores(
        [output for output, _ in corpus],
        [references for _, references in corpus],
        ALL_KINDS,
        stemmer,
    )
    for row, (output, references) in enumerate(corpus):
        expected = peer.score_multi(references, output)
        for kind in ALL_KINDS:
            for ours, theirs in PARTS.items():
                assert found[kind, ours][row] == pytest.approx(
                    getattr(expected[kind], theirs), abs=1e-9
                )


def test_lins_summary_by_pencil():
    """Lin 2004, section 3.2: four of five words of the reference are marked by one or the other sentence."""
    outputs = ["w1 w2 w6 w7 w8\nw1 w3 w8 w9 w5", "w1 w3 w8 w9 w5\nw1 w2 w6 w7 w8"]
    reference = "w1 w2 w3 w4 w5"
    found = rouge_scores(outputs, [reference] * 2, ["rougeL", "rougeLsum"])
    assert (
        found["rougeLsum", "recall"].tolist() == [4 / 5] * 2
        and found["rougeLsum", "precision"].tolist() == [4 / 10] * 2
    )
    assert found["rougeL", "recall"].tolist() == [4 / 5, 3 / 5]


@settings(max_examples=60, deadline=None)
@given(output=texts, reference=texts)
def test_one_line_each_makes_lsum_equal_l(output, reference):
    pair = [" ".join(text.splitlines()) for text in (output, reference)]
    frame = rouge(pair[:1], pair[1:], ["rougeL", "rougeLsum"])
    assert frame["rougeL"][0] == frame["rougeLsum"][0]


def test_lsum_of_long_lines_needs_no_table(monkeypatch):
    """Beyond a size any longest subsequence will do; its length is the same, and so is the score of two lines each."""
    generator = np.random.default_rng(0)
    outputs, references = (
        [" ".join(generator.choice(list("abcdefgh"), 40)) + "\nx y" for _ in range(20)]
        for _ in range(2)
    )
    expected = rouge(outputs, references, ["rougeLsum"])
    monkeypatch.setattr(tsteval.rouge, "LARGE", 10)
    np.testing.assert_allclose(rouge(outputs, references, ["rougeLsum"]), expected, atol=1e-12)


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
    outputs = ["the cat sat", "a dog\nran", "the cat sat"]
    references = ["the cat ran", "a dog ran", "a cat sat"]
    pd.testing.assert_frame_equal(
        rouge(given_as(outputs), given_as(references), ALL_KINDS),
        rouge(outputs, references, ALL_KINDS),
    )
    pd.testing.assert_frame_equal(
        rouge(given_as(outputs), references, iter(ALL_KINDS)), rouge(outputs, references, ALL_KINDS)
    )


def table(outputs, references, index=None):
    return pd.DataFrame({"output": outputs, "references": references}, index=index)


@pytest.mark.parametrize("stemmer", [False, True])
def test_the_metric_is_rouge_and_its_system_score_a_mean(stemmer):
    outputs = ["the cats sat", "a dog\nran"]
    references = [("the cat sat", "no"), ("the dog\nruns",)]
    metric = Rouge(stemmer)
    rows = table(outputs, references, index=[5, 3])
    scores = metric.score(rows)
    expected = rouge(outputs, references, ALL_KINDS, stemmer)
    assert list(scores.frame) == list(metric.columns) == ALL_KINDS
    assert scores.frame.index.tolist() == [5, 3]
    np.testing.assert_array_equal(scores.frame, expected)
    assert (
        metric.sign(rows)
        == expected.attrs["signature"]
        == rouge_signature(None, ALL_KINDS, stemmer)
    )
    for column in ALL_KINDS:
        sums, mean = metric.summed(scores, column)
        assert mean(sums.sum(axis=0)) == pytest.approx(expected[column].mean())


def test_every_setting_changes_the_signature():
    one = rouge(["a"], ["a"]).attrs["signature"]
    others = [
        rouge(["a"], ["a"], stemmer=True),
        rouge(["a"], ["a"], ["rouge1"]),
        rouge(["a"], [["a", "b"]]),
        rouge(["a", "a"], ["a", ["a", "b"]]),
    ]
    signatures = [one, *(frame.attrs["signature"] for frame in others)]
    assert (
        len(set(signatures)) == 5
        and rouge(["b"], ["c"]).attrs["signature"]
        == one
        == rouge_scores(["a"], ["a"]).attrs["signature"]
    )


def test_the_metrics_options_are_checked_before_scoring():
    assert find_metric("rouge:stemmer=True") == Rouge(stemmer=True)
    assert find_metric("rouge:stemmer=false") == Rouge()
    for options, words in (
        ("stemmer=maybe", "stemmer must be True or False, got str 'maybe'"),
        ("kinds=['rouge1']", "no option 'kinds'"),
    ):
        with pytest.raises(InputError, match=words):
            find_metric(f"rouge:{options}")


def test_empty_input_and_empty_texts():
    assert rouge([], []).shape == (0, 4) and rouge([], [], ALL_KINDS).shape == (0, 5)
    assert (rouge(["", "a"], ["a", ""]) == 0).all(axis=None)


def test_errors_name_the_row():
    rows = ["a b c"] * 20
    with pytest.raises(TypeError, match="hypotheses, row 17"):
        rouge([*rows[:17], None, *rows[18:]], rows)
    with pytest.raises(TypeError, match=r"references, row 17: .*NaN"):
        rouge(rows, [*rows[:17], float("nan"), *rows[18:]])
    with pytest.raises(ValueError, match="row 19 has no counterpart"):
        rouge(rows, rows[:19])
    with pytest.raises(ValueError, match="row 0: no reference"):
        rouge(["a"], [[]])
    with pytest.raises(ValueError, match=r"rouge1 to rouge9, rougeL and rougeLsum, got .*rougeW"):
        rouge(["a"], ["a"], ["rouge1", "rougeW"])
    with pytest.raises(ValueError, match="at least one"):
        rouge(["a"], ["a"], [])
    for kinds, words in (
        (None, "kinds must be a list"),
        ([1], "kinds, row 0"),
        ("rouge0", "got .*rouge0"),
        ("rouge10", "got .*rouge10"),
    ):
        with pytest.raises(ValueError, match=words):
            rouge(["a"], ["a"], kinds)


def test_words_of_three_letters_are_not_stemmed():
    output = "its gas was his runs"
    reference = "it ga wa hi run"
    peer = RougeScorer(["rouge1"], use_stemmer=True).score(reference, output)["rouge1"]
    assert rouge_scores([output], [[reference]], ["rouge1"], stemmer=True).iloc[
        0
    ].tolist() == pytest.approx([peer.precision, peer.recall, peer.fmeasure])
    assert peer.fmeasure == pytest.approx(0.2)  # runs alone


token_lists = st.lists(st.sampled_from(["the", "The", "cats", "running", "é", "."]), max_size=8)


@settings(max_examples=60, deadline=None)
@given(
    corpus=st.lists(st.tuples(token_lists, token_lists), min_size=1, max_size=4),
    stemmer=st.booleans(),
)
def test_lists_of_tokens_are_taken_as_they_are(corpus, stemmer):
    """As rouge-score takes them from a tokeniser of one's own; a list of tokens is one sentence."""

    class Split:
        def tokenize(self, text):
            return [_stem(token) for token in text.split()] if stemmer else text.split()

    peer = RougeScorer(ALL_KINDS, tokenizer=Split())
    found = rouge_scores(
        *map(list, zip(*((output, [reference]) for output, reference in corpus))),
        ALL_KINDS,
        stemmer,
    )
    for row, (output, reference) in enumerate(corpus):
        expected = peer.score(" ".join(reference), " ".join(output))
        for kind in ALL_KINDS:
            for ours, theirs in PARTS.items():
                assert found[kind, ours][row] == pytest.approx(
                    getattr(expected[kind], theirs), abs=1e-9
                )
    assert "tok:none|case:mixed" in found.attrs["signature"]
    assert found.attrs["signature"] == rouge_signature(1, ALL_KINDS, stemmer, tokens=True)


abc_words = st.lists(st.sampled_from("abc"), max_size=6)
sentences = st.lists(st.lists(st.integers(0, 3), max_size=5), max_size=3)


def longest_common(one, other):
    return max(
        size
        for size in range(len(one) + 1)
        if set(combinations(one, size)) & set(combinations(other, size))
    )


@settings(max_examples=60, deadline=None)
@given(output=abc_words, reference=abc_words)
def test_counts_are_those_of_the_definitions(output, reference):
    overlap = rouge_overlap(
        [(" ".join(output), " ".join(reference))],
        check_kinds(["rouge1", "rouge2", "rougeL"]),
        rouge_tokenizer(),
    )
    bigrams = [Counter(pairwise(text)) for text in (output, reference)]
    sizes = len(output), len(reference)
    assert [int(part[0]) for part in overlap["rouge1"]] == [
        (Counter(output) & Counter(reference)).total(),
        *sizes,
    ]
    assert [int(part[0]) for part in overlap["rouge2"]] == [
        (bigrams[0] & bigrams[1]).total(),
        *(max(size - 1, 0) for size in sizes),
    ]
    assert [int(part[0]) for part in overlap["rougeL"]] == [
        longest_common(output, reference),
        *sizes,
    ]


@settings(max_examples=60, deadline=None)
@given(output=sentences, reference=sentences)
def test_marked_words_lie_between_the_best_sentence_and_all_shared_words(output, reference):
    marked = summary_matches(
        *([np.array(one, dtype=np.int64) for one in text] for text in (output, reference))
    )
    flat = [Counter(word for one in text for word in one) for text in (output, reference)]
    best = max((longest_common(one, other) for one in output for other in reference), default=0)
    assert best <= marked <= (flat[0] & flat[1]).total()


def test_tokens_are_lower_case_runs_of_letters_and_digits_or_those_given():
    assert rouge_tokenizer()("Don't pay $3.50") == ["don", "t", "pay", "3", "50"]
    assert rouge_tokenizer(tokens=True)("Don't pay $3.50") == ["Don't", "pay", "$3.50"]
    assert rouge_tokenizer(stemmer=True)("its running") == ["its", "run"]
    with pytest.raises(InputError, match="stemmer must be True or False"):
        rouge_tokenizer("yes")


def test_kinds_are_checked_and_everything_is_signed():
    assert check_kinds("rougeL") == ["rougeL"] and check_kinds(["rouge1", "rouge1"]) == ["rouge1"]
    for wrong in (["rouge0"], ["rougeW"], []):
        with pytest.raises(InputError, match="rouge1 to rouge9"):
            check_kinds(wrong)
    signatures = {
        rouge_signature(1, ["rouge1"]),
        rouge_signature(None, ["rouge1"]),
        rouge_signature(1, ["rouge2"]),
        rouge_signature(1, ["rouge1"], True),
        rouge_signature(1, ["rouge1"], False, True),
    }
    assert len(signatures) == 5


@pytest.mark.parametrize(
    "output, references",
    [
        ("Сегодня шёл дождь", ["Сегодня шёл дождь"]),  # once 0
        ("今天下雨", ["rain today"]),
        ("rain today", ["今天下雨"]),
        ("É", ["É"]),
    ],
)
def test_a_text_of_which_the_tokeniser_keeps_nothing_has_no_score(output, references):
    assert rouge_scores([output], [references], [*KINDS, "rougeLsum"]).isna().all(axis=None)
    split = rouge([output.split()], [[text.split() for text in references]], KINDS[:1])
    assert split.rouge1[0] == (output in references)


def test_of_several_references_those_that_can_be_read_count():
    assert rouge(["rain today"], [["今天下雨", "rain today", "rain"]]).rouge1.tolist() == [1]
    assert rouge(["дождь rain", "!!", ""], ["rain", "rain", "rain"]).rouge1.tolist() == [
        pytest.approx(1),
        0,
        0,
    ]  # as rouge-score says


@given(st.text(st.characters(exclude_categories=["Cs"])), st.text("abc "))
def test_rouge_is_undefined_or_what_rouge_score_says(text, other):
    value = rouge([text], [other], ["rouge1"]).rouge1[0]
    read = any(one in "abcdefghijklmnopqrstuvwxyz0123456789" for one in text.lower())
    if any(map(str.isalnum, text)) and not read:
        assert np.isnan(value)
    else:
        assert value == pytest.approx(
            RougeScorer(["rouge1"]).score(other, text)["rouge1"].fmeasure, abs=1e-9
        )


def test_rows_without_a_score_are_told():
    from tsteval.evaluation import evaluate

    rows = [
        {"source": text, "output": text, "reference": text}
        for text in ("дождь", "rain", "雨", "sun")
    ]
    result = evaluate(rows, ["rouge", "readability"], n_boot=5)
    assert result.per_pair.rouge1.isna().tolist() == [True, False, True, False]
    assert result.per_pair.readability.isna().tolist() == [True, False, True, False]
    told = [text for text in result.notes().text if "2 of 4 rows have no score" in text]
    assert len(told) == 2 and "chrf" in " ".join(told)
