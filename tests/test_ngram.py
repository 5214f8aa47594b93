"""NgramLM against NLTK and KenLM, its distributions, its files, and what it says to bad input."""

import math
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.lm import (
    MLE,
    AbsoluteDiscountingInterpolated,
    KneserNeyInterpolated,
    Lidstone,
    StupidBackoff,
    Vocabulary,
    WittenBellInterpolated,
)
from nltk.lm.preprocessing import padded_everygram_pipeline

from tests.strategies import zipf_text
from tsteval.core.checks import InputError, InputTypeError
from tsteval.core.metric import sign
from tsteval.ngram import RULES, NgramLM

CORPORA = st.lists(st.lists(st.sampled_from("abcdef"), max_size=7), min_size=1, max_size=12).filter(
    any
)
NORMALISED = [name for name in RULES if name not in ("mle", "stupid_backoff")]
NO_ARPA = ("mle", "add_k", "stupid_backoff")


def nltk_model(smoothing, order, discount, k, corpus, cutoff):
    models = {
        "mle": MLE,
        "witten_bell": WittenBellInterpolated,
        "add_k": lambda order, **options: Lidstone(k, order, **options),
        "absolute": lambda order, **options: AbsoluteDiscountingInterpolated(
            order, discount=discount, **options
        ),
        "kneser_ney": lambda order, **options: KneserNeyInterpolated(
            order, discount=discount, **options
        ),
        "stupid_backoff": lambda order, **options: StupidBackoff(0.4, order, **options),
    }
    everygrams, words = padded_everygram_pipeline(order, corpus)
    model = models[smoothing](order, vocabulary=Vocabulary(words, unk_cutoff=cutoff))
    model.fit(everygrams)
    return model


@pytest.mark.parametrize(
    "smoothing", ["mle", "add_k", "absolute", "kneser_ney", "witten_bell", "stupid_backoff"]
)
@given(
    corpus=CORPORA,
    order=st.integers(1, 4),
    discount=st.floats(0, 1),
    k=st.floats(0.01, 3),
    cutoff=st.integers(1, 2),
    questions=st.lists(
        st.lists(st.sampled_from([*"abcdefz", "<s>", "</s>"]), min_size=4, max_size=4),
        min_size=5,
        max_size=20,
    ),
)
@settings(max_examples=40, deadline=None)
def test_equals_nltk(smoothing, corpus, order, discount, k, cutoff, questions):
    if smoothing == "kneser_ney" and order == 1:
        return  # NLTK divides by zero: it has no level to count continuations in
    peer = nltk_model(smoothing, order, discount, k, corpus, cutoff)
    if order > 1 and not {"<s>", "</s>"} <= set(peer.vocab):
        return  # NLTK's cutoff can turn its own markers into unknown words
    ours = NgramLM(order, smoothing, discount, unk_cutoff=cutoff, add_k=k).fit(corpus)
    assert ours.vocabulary_size == len(peer.vocab)
    for *context, word in questions:
        for length in range(order):
            used = context[len(context) - length :]
            assert ours.prob(word, used) == pytest.approx(
                peer.score(word, used or None), rel=0, abs=1e-9
            )


def test_logprobs_are_nltks_padded_ngrams():
    corpus = zipf_text(20)
    ours = NgramLM(discount=0.1).fit(corpus)
    peer = nltk_model("kneser_ney", 3, 0.1, 1, corpus, 1)
    for sentence, logprobs in zip(corpus, ours.logprobs(corpus)):
        padded = ["<s>"] * 2 + sentence + ["</s>"] * 2
        expected = [
            peer.logscore(padded[i], padded[i - 2 : i]) * math.log(2) for i in range(2, len(padded))
        ]
        assert logprobs == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("smoothing", NORMALISED)
@given(
    corpus=CORPORA,
    order=st.integers(1, 4),
    padding=st.sampled_from(["both", "arpa"]),
    discount=st.floats(0, 1),
    context=st.lists(st.sampled_from([*"abcdefz", "<s>", "</s>"]), max_size=3),
)
@settings(max_examples=60, deadline=None)
def test_distributions_sum_to_one(smoothing, corpus, order, padding, discount, context):
    if smoothing == "modified_kneser_ney":
        discount = (discount, 2 * discount, 3 * discount)
    context = context[: order - 1]
    if smoothing == "kneser_ney" and padding == "both" and context[-1:] == ["<s>"]:
        return  # NLTK's excess, see the next test
    try:
        model = NgramLM(order, smoothing, discount, padding, katz_cutoff=2).fit(corpus)
    except ValueError as error:
        assert smoothing == "katz" and "cannot estimate" in str(error)
        return
    distribution = model.distribution(context)
    assert distribution.min() >= 0 and distribution.sum() == pytest.approx(1, rel=0, abs=1e-9)


@pytest.mark.parametrize("padding", ["both", "arpa"])
@pytest.mark.parametrize("smoothing", NORMALISED)
def test_distributions_of_a_larger_text_sum_to_one(smoothing, padding):
    model = NgramLM(3, smoothing, padding=padding, unk_cutoff=2, katz_cutoff=2).fit(zipf_text())
    for context in [
        [],
        ["w0"],
        ["w1", "w0"],
        ["w40", "w41"],
        ["new", "w0"],
        ["w0", "new"],
        ["</s>"],
    ]:
        assert model.distribution(context).sum() == pytest.approx(1, rel=0, abs=1e-9), context


def test_nltks_kneser_ney_exceeds_one_after_a_start_marker():
    corpus = zipf_text(30)
    excess = NgramLM(3, discount=0.5).fit(corpus).distribution(["<s>"]).sum() - 1
    peer = nltk_model("kneser_ney", 3, 0.5, 1, corpus, 1)
    assert excess > 1e-4 and excess == pytest.approx(
        sum(peer.score(word, ["<s>"]) for word in peer.vocab) - 1, abs=1e-9
    )
    assert NgramLM(3, discount=0.5, padding="arpa").fit(corpus).distribution(
        ["<s>"]
    ).sum() == pytest.approx(1, abs=1e-12)


def test_start_marker_is_never_predicted_under_arpa():
    for smoothing in RULES:
        model = NgramLM(3, smoothing, padding="arpa", katz_cutoff=2).fit(zipf_text())
        assert (
            model.prob("<s>", ["w0"]) == model.prob("<s>") == model.prob("<s>", ["new", "new"]) == 0
        )


@pytest.mark.parametrize("order", [2, 3, 4])
@pytest.mark.parametrize("smoothing", [name for name in RULES if name not in NO_ARPA])
def test_kenlm_scores_our_arpa_file_alike(smoothing, order, tmp_path):
    pytest.importorskip("kenlm", reason="pip install kenlm")
    corpus = zipf_text()
    others = zipf_text(60, seed=1, vocabulary=6000)
    ours = NgramLM(order, smoothing, padding="arpa", katz_cutoff=2).fit(corpus)
    ours.to_arpa(tmp_path / "model.arpa")
    code = (
        "import sys, kenlm; model = kenlm.LanguageModel(sys.argv[1])\n"
        "for line in sys.stdin: print(repr(model.score(line.strip())))"
    )
    sentences = [*corpus[:60], *others, []]
    run = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "model.arpa")],
        capture_output=True,
        text=True,
        check=True,
        input="\n".join(" ".join(sentence) for sentence in sentences) + "\n",
    )
    expected = np.array(run.stdout.split(), dtype=float)
    scores = np.array([row.sum() for row in ours.logprobs(sentences)]) / math.log(10)
    assert scores == pytest.approx(expected, rel=0, abs=1e-4)
    reread = NgramLM.from_arpa(tmp_path / "model.arpa")
    again = np.array([row.sum() for row in reread.logprobs(sentences)]) / math.log(10)
    assert again == pytest.approx(scores, rel=0, abs=1e-5) and reread.padding == "arpa"


def test_a_generator_larger_than_the_batch_fits_like_a_list(monkeypatch):
    corpus = zipf_text(300)
    expected = NgramLM().fit(corpus)
    monkeypatch.setattr("tsteval.words.ngram_counts.count_sentences.__defaults__", (50,))
    streamed = NgramLM().fit(sentence for sentence in corpus)
    assert all(
        (ours == theirs).all()
        for ours, theirs in zip(expected.log_probabilities, streamed.log_probabilities)
    )


@given(
    corpus=CORPORA,
    sentences=st.lists(st.lists(st.sampled_from("abcxyz"), max_size=6), min_size=1, max_size=6),
    padding=st.sampled_from(["both", "arpa"]),
    smoothing=st.sampled_from(["kneser_ney", "stupid_backoff", "add_k", "mle"]),
)
@settings(max_examples=60, deadline=None)
def test_a_sentences_score_does_not_depend_on_its_neighbours(corpus, sentences, padding, smoothing):
    model = NgramLM(3, smoothing, padding=padding).fit(corpus)
    for sentence, together in zip(sentences, model.logprobs(sentences)):
        assert (model.logprobs([sentence])[0] == together).all()
        assert len(together) == len(sentence) + (1 if padding == "arpa" else 2)
    assert model.logprobs([]) == []


@given(
    corpus=CORPORA,
    order=st.integers(2, 4),
    smoothing=st.sampled_from(["witten_bell", "absolute", "stupid_backoff", "mle"]),
)
@settings(max_examples=40, deadline=None)
def test_logprobs_agree_with_prob(corpus, order, smoothing):
    model = NgramLM(order, smoothing, padding="arpa").fit(corpus)
    sentence = ["a", "b", "z", "c"]
    padded = ["<s>", *sentence, "</s>"]
    one_by_one = [
        model.prob(padded[i], padded[max(0, i - order + 1) : i]) for i in range(1, len(padded))
    ]
    assert np.exp(model.logprobs([sentence])[0]) == pytest.approx(one_by_one)


def test_perplexity():
    model = NgramLM(1, "mle").fit([["a", "a", "b", "b"]])
    assert model.perplexity([["a", "b"]]) == pytest.approx(2)
    assert model.perplexity([["a", "new"]]) == math.inf
    for nothing in ([], [[]]):
        with pytest.raises(ValueError, match="at least one sentence"):
            model.perplexity(nothing)


@pytest.mark.parametrize(
    "options, name",
    [
        ({"order": 0}, "order"),
        ({"order": 2.5}, "order"),
        ({"smoothing": "magic"}, "smoothing"),
        ({"discount": 1.01}, "discount"),
        ({"discount": -0.1}, "discount"),
        ({"discount": (0.5, 1, 1)}, "discount"),
        ({"padding": "left"}, "padding"),
        ({"unk_cutoff": 0}, "unk_cutoff"),
        ({"smoothing": "modified_kneser_ney", "discount": (0.5, 2.5, 1)}, "discount"),
        ({"add_k": 0}, "add_k"),
        ({"backoff": 2}, "backoff"),
        ({"katz_cutoff": 1}, "katz_cutoff"),
        ({"discount": math.nan}, "discount"),
        ({"discount": "much"}, "discount"),
        ({"smoothing": None}, "smoothing"),
        ({"order": True}, "order"),
        ({"add_k": math.inf}, "add_k"),
    ],
)
def test_settings_out_of_range_are_named(options, name):
    with pytest.raises(ValueError, match=f"^{name} "):
        NgramLM(**options)


@pytest.mark.parametrize(
    "sentences, error, message",
    [
        ([], ValueError, "no words"),
        ([[]], ValueError, "no words"),
        ([["a"], "b c"], TypeError, r"sentences, row 1: .*str 'b c'"),
        ([["a"], None], TypeError, r"sentences, row 1: .*None"),
        ([["a"], ["b", 3]], TypeError, r"sentences, row 1: .*int 3"),
        ([["a"], ["b", ["c"]]], TypeError, r"sentences, row 1: .*list"),
        ([["a"], ["b", math.nan]], TypeError, r"sentences, row 1: .*NaN"),
        ([["a"], ["</s>"]], ValueError, r"sentences, row 1"),
        ("ab", TypeError, "sentences must be a list of lists of tokens"),
        ({"a": 1}, TypeError, "sentences must be a list of lists of tokens"),
        (3, TypeError, "sentences must be a list of lists of tokens"),
    ],
)
def test_bad_corpora_are_refused(sentences, error, message):
    with pytest.raises(error, match=message):
        NgramLM().fit(sentences)


def test_bad_sentence_is_named_by_its_place_in_the_stream(monkeypatch):
    monkeypatch.setattr("tsteval.words.ngram_counts.count_sentences.__defaults__", (5,))
    with pytest.raises(TypeError, match=r"sentences, row 17"):
        NgramLM().fit([["a", "b", "c"]] * 17 + ["oops"])


def test_bad_questions_are_refused():
    model = NgramLM(2).fit([["a", "b"]])
    for context, error, message in [
        (["a", "b"], ValueError, "context has 2 words"),
        ("a", TypeError, "context must be a list"),
        ([3], TypeError, r"context, row 0"),
    ]:
        with pytest.raises(error, match=message):
            model.prob("a", context)
    with pytest.raises(TypeError, match="a word must be a string, got int 3"):
        model.prob(3)
    with pytest.raises(ValueError, match="not been fitted"):
        NgramLM().prob("a")
    with pytest.raises(ValueError, match="2 tables"):
        NgramLM(2).fit_counts([{("a",): 1}])
    for table, message in [
        ({"a": 1}, "table 1 holds 'a'"),
        ({("a", "b"): 1}, "table 1 holds"),
        ({("a",): 0}, "table 1, the count of"),
        ({("a",): -1}, "table 1, the count of"),
        ({("a",): "1"}, "table 1, the count of"),
        ({("a",): math.nan}, "table 1, the count of"),
        ({("a",): math.inf}, "table 1, the count of"),
        ({(3,): 1}, "the words of the tables, row 0"),
        ("ab", "table 1 must map"),
    ]:
        with pytest.raises(InputError, match=message):
            NgramLM(1).fit_counts([table])
    with pytest.raises(InputError, match="a list of 1 tables"):
        NgramLM(1).fit_counts({("a",): 1})


@pytest.mark.parametrize("token", [3, None, math.nan, b"a", ["a"]])
def test_a_token_that_is_no_string_is_not_scored_as_unknown(token):
    model = NgramLM(2, padding="arpa").fit([["a", "b"]])
    for ask in (model.logprobs, model.perplexity):
        with pytest.raises(InputTypeError, match=r"sentences, row 1: expected strings"):
            ask([["a"], ["b", token]])


def test_sentences_may_come_from_anything_that_yields_rows():
    model = NgramLM(2).fit([["a", "b"], ["b"]])
    expected = [["a", "b"], ["b"]]
    rows = np.empty(2, dtype=object)
    rows[:] = expected
    for sentences in (
        tuple(expected),
        iter(expected),
        (row for row in expected),
        map(list, expected),
        rows,
    ):
        scores = model.logprobs(sentences)
        assert [row.tolist() for row in scores] == [
            row.tolist() for row in model.logprobs(expected)
        ]
    assert NgramLM(2).fit(map(tuple, expected)).identity == model.identity
    assert (
        NgramLM(2).fit([[np.str_(token) for token in row] for row in expected]).identity
        == model.identity
    )


def test_identity_changes_with_text_and_settings_and_with_nothing_else(tmp_path):
    corpus = zipf_text(30)
    models = [
        NgramLM(2).fit(corpus),
        NgramLM(2).fit(corpus[:-1]),
        NgramLM(3).fit(corpus),
        NgramLM(2, discount=0.2).fit(corpus),
        NgramLM(2, "witten_bell").fit(corpus),
        NgramLM(2, padding="arpa").fit(corpus),
        NgramLM(2, unk_cutoff=2).fit(corpus),
        NgramLM(2).fit([[word.upper() for word in sentence] for sentence in corpus]),
    ]
    assert (
        len({model.identity for model in models})
        == len({model.tag for model in models})
        == len(models)
    )
    assert len({sign("fluency", model=model) for model in models}) == len(models)
    first = models[0]
    assert first.identity == NgramLM(2).fit(iter(corpus)).identity and len(first.identity) == 64
    assert first.tag == f"ngram-2-kneser_ney-both@{first.identity[:12]}" and first.tag in sign(
        "fluency", model=first
    )
    first.save(tmp_path / "model.npz")
    assert NgramLM.load(tmp_path / "model.npz").identity == first.identity
    three = NgramLM(2, "modified_kneser_ney", (0.5, 1, 1.5)).fit(corpus)
    three.save(tmp_path / "model.npz")
    assert NgramLM.load(tmp_path / "model.npz").identity == three.identity


def test_progress_bar_writes_to_standard_error_only(capsys):
    NgramLM().fit([["a"]], progress=True)
    captured = capsys.readouterr()
    assert captured.out == "" and "sentences" in captured.err


def test_brown_through_nltk():
    if not any(
        os.path.exists(os.path.join(folder, "corpora", name))
        for folder in os.environ.get("NLTK_DATA", "").split(os.pathsep)
        if folder
        for name in ("brown", "brown.zip")
    ):
        pytest.skip(
            "needs the Brown corpus: nltk.download('brown') and NLTK_DATA set to its folder"
        )
    from nltk.corpus import brown

    sentences = [list(sentence) for sentence in brown.sents(categories="news")]
    model = NgramLM(3, "modified_kneser_ney", padding="arpa").fit(sentences[::2])
    plain = NgramLM(3, "add_k", padding="arpa").fit(sentences[::2])
    assert model.perplexity(sentences[1::2]) < plain.perplexity(sentences[1::2])
