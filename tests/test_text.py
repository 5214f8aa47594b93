"""The text module against sacreBLEU's and NLTK's tokenisers, and against a count made the slow way."""
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from nltk.tokenize.treebank import TreebankWordTokenizer
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a
from sacrebleu.tokenizers.tokenizer_char import TokenizerChar
from sacrebleu.tokenizers.tokenizer_intl import TokenizerV14International
from sacrebleu.tokenizers.tokenizer_none import NoneTokenizer

from tsteval.text import (check_parallel, check_references, check_texts, edited_spans, encode, match_ngrams, ngrams,
                          tokenize)

PEERS = {"13a": Tokenizer13a(), "intl": TokenizerV14International(), "char": TokenizerChar(), "none": NoneTokenizer()}
any_text = st.text() | st.text(alphabet="ab1٣ .,-&;'\"\n\t!$<>éß中—’\u00a0") | st.lists(
    st.sampled_from(["<skipped>", "-\n", "&amp;lt;", "&quot;", "3.5", "1,000", "..5", ",,,7", "9-", "can't", "x", " "])).map("".join)


@pytest.mark.parametrize("method", PEERS)
@settings(max_examples=400, deadline=None)
@given(text=any_text)
def test_tokenisers_equal_sacrebleu(method, text):
    assert tokenize(text, method) == PEERS[method](text.rstrip()).split()


@settings(max_examples=200, deadline=None)
@given(text=any_text)
def test_treebank_equals_nltk(text):
    assert tokenize(text, "treebank") == TreebankWordTokenizer().tokenize(text.rstrip())


@settings(deadline=None)
@given(text=any_text)
def test_no_token_is_empty_or_holds_white_space(text):
    for method in [*PEERS, "treebank"]:
        assert all(token and not any(character.isspace() for character in token) for token in tokenize(text, method))


@given(tokens=st.lists(st.sampled_from("abc")), n=st.integers(1, 6))
def test_ngrams_count_and_order(tokens, n):
    found = ngrams(tokens, n)
    assert len(found) == max(len(tokens) - n + 1, 0)
    assert all(list(ngram) == tokens[start:start + n] for start, ngram in enumerate(found))


def slow_matches(output, references, n):
    counts = Counter(ngrams(output, n))
    best = Counter()
    for reference in references: best |= Counter(ngrams(reference, n))
    return sum((counts & best).values())


token_lists = st.lists(st.integers(0, 3), max_size=12)


@settings(deadline=None)
@given(rows=st.lists(st.tuples(token_lists, st.lists(token_lists, min_size=1, max_size=4)), max_size=6))
def test_match_ngrams_equals_counters(rows):
    encoded = [[np.array(text, dtype=np.int64) for text in (output, *references)] for output, references in rows]
    expected = [[slow_matches(output, references, n) for n in range(1, 9)] for output, references in rows]
    assert match_ngrams(encoded, 8, 4).tolist() == expected


def test_match_ngrams_survives_numbers_that_do_not_fit_64_bits():
    """A million token types and 8-grams: 160 bits a key, so the prefixes have to be renumbered on the way."""
    rng = np.random.default_rng(0)
    rows = [[rng.choice([0, 5, 999_999], size=30), rng.choice([0, 5, 999_999], size=30)] for _ in range(50)]
    expected = [[slow_matches(output.tolist(), [reference.tolist()], n) for n in range(1, 9)] for output, reference in rows]
    assert match_ngrams(rows, 8, 1_000_000).tolist() == expected


def test_encode_numbers_equal_tokens_equally():
    encoded, n_tokens = encode(["a b a", "b c", "a b a"], "none")
    assert {text: numbers.tolist() for text, numbers in encoded.items()} == {"a b a": [0, 1, 0], "b c": [1, 2]}
    assert n_tokens == 3


def test_a_function_can_be_the_tokeniser():
    assert tokenize("a|b c", lambda text: text.split("|")) == ["a", "b c"]
    with pytest.raises(TypeError, match="list of strings"): tokenize("a b", lambda text: "a b")
    with pytest.raises(TypeError, match="list of strings"): tokenize("a b", lambda text: [1, 2])


@pytest.mark.parametrize("value, words", [(None, "None"), (float("nan"), "NaN"), (3, "int 3"), (["a"], "list")])
def test_a_bad_row_is_named(value, words):
    rows = ["fine"] * 20
    bad = rows[:17] + [value] + rows[18:]
    with pytest.raises(TypeError, match=f"outputs, row 17: .*{words}"): check_texts(bad, "outputs")
    with pytest.raises(TypeError, match="sources, row 17"): check_parallel(sources=bad, outputs=rows)
    with pytest.raises(TypeError, match="hypotheses, row 17"): check_references(bad, rows)
    with pytest.raises(TypeError, match="references, row 17: .*int 3"): check_references(rows, [["x", "y"]] * 17 + [["x", 3]] + rows[18:])


def test_bad_shapes_are_explained():
    with pytest.raises(TypeError, match="outputs must be a list"): check_texts("one string", "outputs")
    with pytest.raises(ValueError, match="sources has 2, outputs has 1; row 1 has no counterpart"):
        check_parallel(sources=["a", "b"], outputs=["a"])
    with pytest.raises(ValueError, match="3 hypotheses but 1 rows .* nests the other way"): check_references(["a", "b", "c"], [["a", "b", "c"]])
    with pytest.raises(ValueError, match="references, row 1: no reference"): check_references(["a", "b"], ["a", []])
    with pytest.raises(TypeError, match="references must be a list"): check_references(["a"], "a")
    with pytest.raises(TypeError, match="references, row 0: .*None"): check_references(["a"], [None])
    with pytest.raises(ValueError, match="no tokeniser called '13b'"): tokenize("a", "13b")
    with pytest.raises(ValueError, match="at least 1"): ngrams(["a"], 0)
    with pytest.raises(TypeError, match="not a string"): ngrams("abc", 2)


def test_edited_spans_cover_the_words_that_differ():
    source, target = "The brilliant singer sang very well.", "The singer sang."
    removed, added = edited_spans(source, target)
    assert [source[start:end] for start, end in removed] == ["brilliant", "very well"] and added == []
    added_again, removed_again = edited_spans(target, source)
    assert (added_again, removed_again) == ([], removed)


@settings(deadline=None)
@given(text=any_text)
def test_no_edit_no_span(text):
    assert edited_spans(text, text) == ([], [])


@settings(deadline=None)
@given(source=any_text, target=any_text)
def test_spans_are_ordered_and_inside_the_text(source, target):
    for text, spans in zip((source, target), edited_spans(source, target)):
        flat = [offset for span in spans for offset in span]
        assert flat == sorted(flat) and all(0 <= start < end <= len(text) for start, end in spans)
