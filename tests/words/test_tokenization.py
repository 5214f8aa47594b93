"""The tokenisers against sacreBLEU's and NLTK's."""

import sys

import numpy as np
import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.tokenize.treebank import TreebankWordTokenizer
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a
from sacrebleu.tokenizers.tokenizer_char import TokenizerChar
from sacrebleu.tokenizers.tokenizer_intl import TokenizerV14International
from sacrebleu.tokenizers.tokenizer_none import NoneTokenizer
from sacrebleu.tokenizers.tokenizer_zh import TokenizerZh

from tests.strategies import any_text
from tsteval.bleu import bleu_signature, corpus_bleu
from tsteval.core.assets import AssetError
from tsteval.core.checks import InputError, InputTypeError
from tsteval.words.handed_over import HANDED_OVER, handed_over_tokenizer
from tsteval.words.tokenization import checked_pairs, tokenize, tokenizer

PEERS = {
    "13a": Tokenizer13a(),
    "intl": TokenizerV14International(),
    "char": TokenizerChar(),
    "none": NoneTokenizer(),
}


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
        assert all(
            token and not any(character.isspace() for character in token)
            for token in tokenize(text, method)
        )


# ---- by sacreBLEU itself


@settings(max_examples=200, deadline=None)
@given(text=any_text | st.text(alphabet="今天气很好。，ab1. "))
def test_zh_is_sacrebleus(text):
    assert tokenize(text, "zh") == TokenizerZh()(text.rstrip()).split()


MECAB = {
    "ja-mecab": (
        "MeCab",
        "今日はとても良い天気です。",
        ["今日", "は", "とても", "良い", "天気", "です", "。"],
    ),
    "ko-mecab": ("mecab_ko", "오늘은 날씨가 좋다.", ["오늘", "은", "날씨", "가", "좋", "다", "."]),
}


@pytest.mark.parametrize("method", MECAB)
def test_mecab_cuts_where_it_is_installed(method):
    library, text, tokens = MECAB[method]
    pytest.importorskip(library, reason=f"{HANDED_OVER[method]} is what {method} needs")
    assert tokenize(text, method) == tokens
    peer = sacrebleu.corpus_bleu([text], [[f"{text} x"]], tokenize=method).score
    assert abs(corpus_bleu([text], [f"{text} x"], tokenize=method).score - peer / 100) < 1e-9


@pytest.mark.parametrize("lowercase", [False, True])
def test_bleu_of_chinese_is_sacrebleus(lowercase):
    outputs = ["今天天气很好。", "他说 Hello, 3.5 元"]
    references = ["今天的天气非常好。", "他说 hello，3.5元。"]
    peer = sacrebleu.corpus_bleu(outputs, [references], tokenize="zh", lowercase=lowercase).score
    ours = corpus_bleu(outputs, references, tokenize="zh", lowercase=lowercase)
    assert abs(ours.score - peer / 100) < 1e-9 and "|tok:zh|" in ours.signature


def test_a_tokeniser_that_is_handed_over_is_signed_by_its_name():
    for name in HANDED_OVER:
        assert f"|tok:{name}|" in bleu_signature(1, tokenize=name)


def test_without_sacrebleu_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "sacrebleu.metrics", None)
    handed_over_tokenizer.cache_clear()
    with pytest.raises(AssetError, match=r"tokenize 'zh' .* not installed.*pip install sacrebleu$"):
        tokenize("a", "zh")


@pytest.mark.parametrize(
    "method, missing, remedy",
    [
        ("ja-mecab", "sacrebleu.tokenizers.tokenizer_ja_mecab", r"'sacrebleu\[ja\]'"),
        ("ko-mecab", "sacrebleu.tokenizers.tokenizer_ko_mecab", r"'sacrebleu\[ko\]'"),
        ("flores200", "sentencepiece", "sentencepiece, and be connected the first time"),
    ],
)
def test_what_a_tokeniser_lacks_is_named_in_one_line(method, missing, remedy, monkeypatch):
    monkeypatch.setitem(sys.modules, missing, None)
    handed_over_tokenizer.cache_clear()
    with pytest.raises(
        AssetError, match=f"tokenize {method!r}: .*To mend it: pip.*{remedy}"
    ) as told:
        tokenize("a", method)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("error", [OSError("no network\nhere"), SystemExit(1)])
def test_a_model_that_cannot_be_fetched_is_told_in_one_line(error, monkeypatch):
    def refuse(**options):
        raise error

    monkeypatch.setattr(sacrebleu.metrics, "BLEU", refuse)
    handed_over_tokenizer.cache_clear()
    with pytest.raises(AssetError, match=r"'flores200': .*\((no network here|1)\)"):
        tokenize("a", "flores200")


def test_a_function_can_be_the_tokeniser():
    assert tokenize("a|b c", lambda text: text.split("|")) == ["a", "b c"]
    with pytest.raises(TypeError, match="list of strings"):
        tokenize("a b", lambda text: "a b")
    with pytest.raises(TypeError, match="list of strings"):
        tokenize("a b", lambda text: [1, 2])


def test_a_numpy_string_is_a_string():
    [text] = np.array(["Don't panic, it costs 3.50."])
    assert tokenize(text) == tokenize(str(text)) and all(
        type(token) is str for token in tokenize(text)
    )


def test_intl_needs_a_digit_on_both_sides():
    assert tokenize("in 5, not", "intl") == ["in", "5", ",", "not"] and tokenize("1,5", "intl") == [
        "1,5"
    ]
    assert tokenize("a.5", "intl") == ["a", ".", "5"] and tokenize("5.", "intl") == ["5."]


def test_wrong_input_is_explained():
    with pytest.raises(InputError, match=r"tokenize must be one of 13a, .*; got '13b'"):
        tokenize("a", "13b")
    with pytest.raises(InputTypeError, match="name or a function, got None"):
        tokenizer(None)
    with pytest.raises(InputTypeError, match="takes a string, got NaN"):
        tokenize(float("nan"))


@given(texts=st.lists(st.lists(st.text(alphabet="ab.é", min_size=1)), min_size=1))
def test_joined_tokens_are_split_again_by_none(texts):
    outputs, rows, method = checked_pairs(texts, [[text] for text in texts])
    assert method == "none" and [tokenize(text, method) for text in outputs] == texts
    assert [tokenize(text, method) for (text,) in rows] == texts


@pytest.mark.parametrize(
    "outputs, references, words",
    [
        ([["a"], "b"], [["a"], ["b"]], "hypotheses, row 1: expected a list of tokens"),
        (
            [["a b"]],
            [["a"]],
            "hypotheses, row 0: a token is a string without white space, got str 'a b'",
        ),
        ([["a", ""]], [["a"]], "hypotheses, row 0: a token is"),
        ([["a", 1]], [["a"]], "hypotheses, row 0: a token is .* got int 1"),
        (
            [["a"], ["b"]],
            [["a"], "b"],
            "references, row 1: expected a list of tokens, since the first output is one",
        ),
        ([["a"]], [[["a", "b c"]]], "references, row 0: a token is"),
        ([["a"]], [[]], "references, row 0: no reference"),
        (["a", ["b"]], ["a", "b"], "hypotheses, row 1: expected a string"),
    ],
)
def test_mixed_kinds_are_refused_by_row(outputs, references, words):
    with pytest.raises(InputError, match=words):
        checked_pairs(outputs, references)


def test_tokens_are_not_split_once_more():
    with pytest.raises(InputError, match="tokenize: the texts are split into tokens already"):
        checked_pairs([["a"]], [["a"]], "intl")
