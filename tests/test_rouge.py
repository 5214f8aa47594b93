"""ROUGE against rouge-score 0.1.2, and the properties that any ROUGE must have."""
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from rouge_score.rouge_scorer import RougeScorer

from tsteval.rouge import precision_recall_f1, rouge, rouge_scores

KINDS = ["rouge1", "rouge2", "rouge3", "rougeL"]
PARTS = {"precision": "precision", "recall": "recall", "f1": "fmeasure"}
texts = st.lists(st.sampled_from("the cats cat running runs relational on Mat . don't 3.5 İx É".split()), max_size=12).map(" ".join) | st.text()
corpora = st.lists(st.tuples(texts, st.lists(texts, min_size=1, max_size=4)), min_size=1, max_size=5)


@pytest.mark.parametrize("stemmer", [False, True])
@settings(max_examples=150, deadline=None)
@given(corpus=corpora)
def test_scores_equal_rouge_score(stemmer, corpus):
    peer = RougeScorer(KINDS, use_stemmer=stemmer)
    found = rouge_scores([output for output, _ in corpus], [references for _, references in corpus], KINDS, stemmer)
    for row, (output, references) in enumerate(corpus):
        expected = peer.score_multi(references, output)
        for kind in KINDS:
            for ours, theirs in PARTS.items():
                assert found[kind, ours][row] == pytest.approx(getattr(expected[kind], theirs), abs=1e-9)


@settings(max_examples=100, deadline=None)
@given(corpus=corpora)
def test_frame_bounds_and_order_of_references(corpus):
    outputs, references = [output for output, _ in corpus], [texts for _, texts in corpus]
    frame = rouge(outputs, references)
    assert list(frame.columns) == KINDS and len(frame) == len(corpus)
    assert ((frame >= 0) & (frame <= 1)).all(axis=None)
    np.testing.assert_array_equal(frame, rouge(outputs, [row[::-1] for row in references]))
    assert (frame["rougeL"] <= frame["rouge1"] + 1e-12).all()  # a common subsequence is a set of shared words


@given(words=st.lists(st.sampled_from("abc"), min_size=3, max_size=9))
def test_identity_gives_one_and_swapping_swaps_precision_and_recall(words):
    text = " ".join(words)
    assert (rouge([text], [text]) == 1).all(axis=None)
    there, back = (rouge_scores(*pair) for pair in ((["a b c x"], [text]), ([text], ["a b c x"])))
    for kind in KINDS:
        assert there[kind, "precision"][0] == back[kind, "recall"][0] and there[kind, "f1"][0] == pytest.approx(back[kind, "f1"][0])


@given(matches=st.integers(0, 8), extra=st.integers(1, 5))
def test_more_matches_raise_f1(matches, extra):
    low, high = precision_recall_f1(np.array([matches, matches + 1]), np.array([9, 9]), np.array([9 + extra] * 2))[:, 2]
    assert high > low


def test_by_pencil():
    found = rouge_scores(["the cat is on the mat"], ["there is a cat on the mat"])
    assert found["rouge1", "precision"][0] == pytest.approx(5 / 6) and found["rouge1", "recall"][0] == pytest.approx(5 / 7)
    assert found["rouge2", "f1"][0] == pytest.approx(2 * 2 / (5 + 6)) and found["rougeL", "f1"][0] == pytest.approx(2 * 4 / (6 + 7))


def test_empty_input_and_empty_texts():
    assert rouge([], []).shape == (0, 4)
    assert (rouge(["", "a"], ["a", ""]) == 0).all(axis=None)


def test_errors_name_the_row():
    rows = ["a b c"] * 20
    with pytest.raises(TypeError, match="hypotheses, row 17"): rouge(rows[:17] + [None] + rows[18:], rows)
    with pytest.raises(TypeError, match="references, row 17: .*NaN"): rouge(rows, rows[:17] + [float("nan")] + rows[18:])
    with pytest.raises(ValueError, match="row 19 has no counterpart"): rouge(rows, rows[:19])
    with pytest.raises(ValueError, match="row 0: no reference"): rouge(["a"], [[]])
    with pytest.raises(ValueError, match="rouge1 to rouge9 and rougeL, got .*rougeW"): rouge(["a"], ["a"], ["rouge1", "rougeW"])
    with pytest.raises(ValueError, match="at least one"): rouge(["a"], ["a"], [])
