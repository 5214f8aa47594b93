"""Fluency: the language model's scores against transformers' own loss, and the formulas."""

import itertools
import os
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tsteval.ameliorations import amelioration_1
from tsteval.core.assets import packaged_path
from tsteval.core.checks import InputError, InputTypeError
from tsteval.core.metric import METRICS
from tsteval.evaluation import evaluate
from tsteval.fluency import (
    CausalLM,
    Fluency,
    Perplexity,
    UnigramModel,
    count_text,
    fluency_scores,
    load_compressions,
    load_minimal_pairs,
    model_tokens,
    scores_from_logprobs,
    share_preferred,
    wpslor,
)
from tsteval.models.causal_lm import _beginning_token, _windows
from tsteval.models.roles import Models
from tsteval.ngram import NgramLM
from tsteval.words.ngram_counts import UNKNOWN

TEXTS = [
    "The council met on Monday.",
    "He is a citizen of Tuvalu.",
    "A",
    "Naïve 😀 <b>text</b>",
    "half \ud83d",
]


@pytest.fixture(scope="module")
def unigram(language_model):
    return UnigramModel.from_web_counts(language_model)


@pytest.fixture(scope="module")
def after_turn():
    return CausalLM.load(beginning="<|im_start|>")


def test_a_text_begins_after_the_token_between_documents(after_turn):
    plain = CausalLM.load()
    assert plain.beginning == 0 and after_turn.beginning == 1
    assert after_turn.model is plain.model  # the weights are shared, the beginning is not
    with pytest.raises(InputError, match="beginning must be a token of SmolLM2"):
        CausalLM.load(beginning="no such token")


class Words:
    """A tokenizer, as far as the choice of a beginning looks at it."""

    def __init__(self, vocabulary, bos_token=None, eos_token=None):
        self.bos_token = bos_token
        self.eos_token = eos_token
        self.vocabulary = vocabulary

    def get_vocab(self):
        return {token: number for number, token in enumerate(self.vocabulary)}


def test_which_token_is_the_beginning():
    assert _beginning_token(Words(["<s>", "</s>", "<|endoftext|>"], "<s>", "</s>"), "x") == 2
    assert _beginning_token(Words(["a", "<s>", "</s>"], "<s>", "</s>"), "x") == 1
    assert _beginning_token(Words(["a", "b", "</s>"], None, "</s>"), "x") == 2
    assert _beginning_token(Words(["<s>", "a"], "<s>"), "x", "a") == 1
    with pytest.raises(InputError, match="neither a beginning-of-text nor an end-of-text token"):
        _beginning_token(Words(["a"]), "x")


@pytest.mark.ci
def test_the_default_beginning_makes_plain_english_plausible(language_model, after_turn):
    pairs = load_minimal_pairs().iloc[::4]
    perplexity = {}
    share = {}
    for model in (language_model, after_turn):
        nce = np.array(
            [text.logprobs.mean() for text in model.token_logprobs([*pairs.good, *pairs.bad])]
        )
        good, bad = np.split(nce, 2)
        perplexity[model.beginning], share[model.beginning] = (
            np.median(np.exp(-good)),
            share_preferred(good, bad),
        )
    assert perplexity[0] < 0.6 * perplexity[1] and share[0] >= share[1]


@pytest.mark.ci
def test_another_beginning_is_another_signature_and_other_scores(
    language_model, after_turn, unigram
):
    first, second = (
        fluency_scores(model, [TEXTS[0]], unigram) for model in (language_model, after_turn)
    )
    assert first.attrs["signature"] != second.attrs["signature"] and first.nce[0] != second.nce[0]
    assert language_model.tag != after_turn.tag and language_model.identity == after_turn.identity


def test_a_pickled_model_keeps_its_beginning(after_turn):
    import pickle

    again = pickle.loads(pickle.dumps(after_turn))
    assert again.beginning == 1 and again.tag == after_turn.tag


def test_equals_transformers_loss(language_model):
    for text in TEXTS[:4]:
        ids = torch.tensor(
            [
                [
                    language_model.beginning,
                    *language_model.tokenizer(text, add_special_tokens=False)["input_ids"],
                ]
            ]
        )
        with torch.inference_mode():
            loss = language_model.model(input_ids=ids, labels=ids).loss.item()
        assert abs(-language_model.token_logprobs([text])[0].logprobs.mean() - loss) < 1e-4


@pytest.mark.ci
def test_padding_changes_no_score(language_model):
    texts = [*TEXTS, " ".join(TEXTS[:2] * 8), TEXTS[0]]
    together = language_model.token_logprobs(texts, batch_size=3)
    for text, scores in zip(texts, together):
        alone = language_model.token_logprobs([text])[0]
        assert scores.tokens == alone.tokens and np.allclose(
            scores.logprobs, alone.logprobs, atol=1e-4
        )


def test_every_token_is_scored_in_windows(language_model):
    text = " ".join(["The council met on Monday and approved the plan."] * 6)
    whole, windowed = (
        language_model.token_logprobs([text], window=window)[0] for window in (1024, 16)
    )
    assert len(whole.logprobs) == len(windowed.logprobs) == len(whole.tokens) > 50
    assert (windowed.logprobs < 0).all() and np.allclose(
        whole.logprobs[:15], windowed.logprobs[:15], atol=1e-4
    )


@pytest.mark.all
def test_unpacked_weights_equal_the_packed_ones(language_model):
    from transformers import AutoModelForCausalLM

    from tsteval.core.assets import ASSETS
    from tsteval.core.fetch import asset_path

    asset = ASSETS["SmolLM2-135M-Instruct"]
    packed = AutoModelForCausalLM.from_pretrained(
        asset_path(asset.name), gguf_file=asset.gguf_file, dtype=torch.float32
    )
    ids = torch.tensor([[1, 504, 2867, 2341]])
    with torch.inference_mode():
        assert torch.equal(packed.eval()(ids).logits, language_model.model(ids).logits)


def test_empty_text(language_model, unigram):
    scores = fluency_scores(language_model, ["", "Some text."], unigram)
    assert scores.n_tokens[0] == 0 and scores.logprob[0] == 0
    assert scores.loc[0, ["nce", "perplexity", "slor", "norm_lp", "pen_lp"]].isna().all()
    assert np.isfinite(scores.loc[1]).all()
    assert len(fluency_scores(language_model, [], unigram)) == 0


def test_columns_and_formulas(language_model, unigram):
    row = fluency_scores(language_model, [TEXTS[0]], unigram).iloc[0]
    scores = language_model.token_logprobs([TEXTS[0]])[0]
    n = len(scores.tokens)
    logprob = scores.logprobs.sum()
    alone = unigram.score(scores.tokens).sum()
    assert list(row.index) == [
        "logprob",
        "n_tokens",
        "nce",
        "perplexity",
        "slor",
        "norm_lp",
        "pen_lp",
    ]
    assert np.allclose(
        row.to_numpy(float),
        [
            logprob,
            n,
            logprob / n,
            np.exp(-logprob / n),
            (logprob - alone) / n,
            -logprob / alone,
            logprob / ((5 + n) / 6) ** 0.8,
        ],
    )


def test_slor_forgives_rare_words(language_model, unigram):
    scores = fluency_scores(
        language_model, ["He is a citizen of France.", "He is a citizen of Tuvalu."], unigram
    )
    assert (
        scores.nce[0] > scores.nce[1]
        and scores.slor[0] - scores.slor[1] < scores.nce[0] - scores.nce[1]
    )


def test_word_order_matters(language_model, unigram):
    scores = fluency_scores(
        language_model,
        ["The mayor opened the new bridge in May.", "Mayor the new in bridge opened the May."],
        unigram,
    )
    assert scores.nce[0] > scores.nce[1] and scores.slor[0] > scores.slor[1]


def test_unigram_probabilities_sum_to_one(language_model, unigram):
    vocabulary = language_model.tokenizer.convert_ids_to_tokens(
        range(len(language_model.tokenizer))
    )
    assert np.isclose(np.exp(unigram.score(vocabulary)).sum(), 1, atol=1e-9)
    assert np.isfinite(unigram.score([".", "Ġthe", "no such token"])).all()


def test_unigram_from_counts_and_sentences():
    assert np.allclose(
        np.exp(UnigramModel.from_counts({"a": 6, "b": 3}).score(["a", "b", "c"])), [0.6, 0.3, 0.1]
    )
    assert np.allclose(
        np.exp(UnigramModel.from_sentences([["a", "a"], ["b"]]).score(["a", "b", "z"])),
        [0.5, 0.25, 0.25],
    )
    for counts in ({}, {"a": 0}):
        with pytest.raises(InputError, match="at least one token and counts above 0"):
            UnigramModel.from_counts(counts)


def test_every_opener_of_the_minimal_pairs_has_a_count(language_model, unigram):
    pairs = load_minimal_pairs()
    openers = [tokens[0] for tokens in language_model.text_tokens([*pairs.good, *pairs.bad])]
    assert len(openers) == 256 and not [
        token for token in openers if unigram.score([token])[0] <= unigram.unseen
    ]
    assert (unigram.score(["He", "My", "They", "\u0120He"]) > unigram.unseen + 1).all()


def test_a_word_is_rarer_at_the_beginning_than_inside(unigram):
    for small, large in (("\u0120he", "He"), ("\u0120the", "The"), ("\u0120of", "Of")):
        assert unigram.score([small])[0] > unigram.score([large])[0]
    # many sentences open with the one, few with the other
    assert unigram.score(["The"])[0] > unigram.score(["Of"])[0] + 2


def test_pencil_values():
    row = scores_from_logprobs([-6 * np.log(2)], [-12 * np.log(2)], [3]).iloc[0]
    assert np.allclose([row.perplexity, row.slor, row.norm_lp], [4, 2 * np.log(2), -0.5])


def test_not_a_string(language_model):
    with pytest.raises(InputTypeError, match=r"row 1: expected"):
        language_model.token_logprobs(["fine", None])


def test_generators_and_arrays_are_texts(language_model):
    whole = language_model.token_logprobs(TEXTS[:2])
    for texts in (iter(TEXTS[:2]), np.array(TEXTS[:2]), pd.Series(TEXTS[:2], index=[7, 3])):
        for scores, expected in zip(language_model.token_logprobs(texts), whole, strict=True):
            assert np.allclose(scores.logprobs, expected.logprobs, atol=1e-4)


def test_one_string_and_bad_sizes_are_refused(language_model):
    with pytest.raises(TypeError, match="put it into a list"):
        language_model.token_logprobs("one string")
    for name, value in (("batch_size", 0), ("batch_size", -1), ("window", 1)):
        with pytest.raises(InputError, match=f"{name} must be a whole number of at least"):
            language_model.token_logprobs(["a"], **{name: value})


def test_every_token_equals_a_plain_forward_pass(language_model):
    text = "He is a citizen of France."
    ids = torch.tensor(
        [
            [
                language_model.beginning,
                *language_model.tokenizer(text, add_special_tokens=False)["input_ids"],
            ]
        ]
    )
    with torch.inference_mode():
        output = language_model.model(input_ids=ids, labels=ids)
    plain = (
        output.logits[0, :-1]
        .double()
        .log_softmax(-1)[torch.arange(ids.shape[1] - 1), ids[0, 1:]]
        .numpy()
    )
    scores = language_model.token_logprobs([text])[0]
    assert np.abs(plain - scores.logprobs).max() < 1e-5
    assert np.exp(-scores.logprobs.mean()) == pytest.approx(np.exp(output.loss.item()), rel=1e-4)


def test_spans_lead_back_to_the_text(language_model):
    text = "He is a citizen of Tuvalu."
    scores = language_model.token_logprobs([text])[0]
    assert len(scores.spans) == len(scores.tokens)
    for token, (begin, end) in zip(scores.tokens, scores.spans):
        assert text[begin:end].strip() == token.replace("\u0120", "")
    assert scores.spans[0][0] == 0 and scores.spans[-1][1] == len(text)


@given(length=st.integers(1, 60), window=st.integers(2, 20))
def test_windows_score_each_position_once(length, window):
    windows = _windows(length, window)
    assert [place for _, first, end in windows for place in range(first, end)] == list(
        range(1, length)
    )
    assert all(0 <= start < first and end - start <= window for start, first, end in windows)
    assert all(first - start >= window // 2 for start, first, _ in windows[1:])


TRAINING = [
    sentence.split() for sentence in ("the cat sat", "the dog sat", "a cat ran", "the old dog ran")
]


@pytest.mark.parametrize("padding", ["arpa", "both"])
def test_ngram_scores_its_own_tokens_without_end_markers(padding):
    lm = NgramLM(3, "witten_bell", padding=padding).fit(TRAINING)
    unigram = UnigramModel.from_sentences(TRAINING)
    row = fluency_scores(lm, ["the cat ran"], unigram).iloc[0]
    words = lm.logprobs([["the", "cat", "ran"]])[0][:3]
    alone = unigram.score(["the", "cat", "ran"]).sum()
    assert row.n_tokens == 3 and row.logprob == pytest.approx(words.sum())
    assert row.slor == pytest.approx((words.sum() - alone) / 3) and row.perplexity == pytest.approx(
        np.exp(-words.mean())
    )
    with_end = amelioration_1(lm, [["the", "cat", "ran"]], floor=0)[0]
    assert row.nce != pytest.approx(with_end)


def test_ngram_takes_strings_and_token_lists_alike():
    lm = NgramLM(2, padding="arpa").fit(TRAINING)
    unigram = UnigramModel.from_sentences(TRAINING)
    strings = fluency_scores(lm, ["the cat ran", "", "the dog"], unigram, tokenize=str.split)
    lists = fluency_scores(lm, [["the", "cat", "ran"], [], ("the", "dog")], unigram)
    pd.testing.assert_frame_equal(strings, lists)
    assert (
        strings.loc[1, ["nce", "slor"]].isna().all() and len(fluency_scores(lm, [], unigram)) == 0
    )
    upper = fluency_scores(lm, ["THE CAT RAN"], unigram, tokenize=lambda text: text.lower().split())
    assert upper.nce[0] == strings.nce[0]


def test_ngram_unknown_words():
    unigram = UnigramModel.from_sentences(TRAINING)
    arpa, both = (NgramLM(2, padding=padding).fit(TRAINING) for padding in ("arpa", "both"))
    scores = fluency_scores(
        arpa, ["the zebra ran", f"the {UNKNOWN} ran"], unigram, tokenize=str.split
    )
    assert (
        np.isfinite(scores.nce).all()
        and scores.nce[0] == scores.nce[1]
        and scores.slor[0] == scores.slor[1]
    )
    assert fluency_scores(both, ["the zebra ran"], unigram).nce[0] == -np.inf


@pytest.mark.ci
def test_ngram_with_web_counts():
    lm = NgramLM(2, padding="arpa").fit(TRAINING)
    unigram = UnigramModel.from_web_counts(lm, tokenize=str.split)
    assert np.exp(unigram.score([word for word in lm.words if word != "<s>"])).sum() <= 1 + 1e-9
    assert (
        unigram.score(["the"]) > unigram.score(["cat"])
        and np.isfinite(unigram.score(["no such token"])).all()
    )
    pd.testing.assert_frame_equal(
        fluency_scores(lm, ["the cat"], tokenize=str.split),
        fluency_scores(lm, ["the cat"], unigram, tokenize=str.split),
    )


def test_ngram_refuses_what_is_not_text(language_model, unigram):
    lm = NgramLM(2, padding="arpa").fit(TRAINING)
    with pytest.raises(InputTypeError, match=r"texts, row 1: expected"):
        fluency_scores(lm, ["fine", 3], UnigramModel.from_sentences(TRAINING))
    with pytest.raises(TypeError, match="put it into a list"):
        fluency_scores(lm, "one string", UnigramModel.from_sentences(TRAINING))
    with pytest.raises(TypeError, match="tokenize is for n-gram models"):
        UnigramModel.from_web_counts(language_model, tokenize=str.split)
    with pytest.raises(TypeError, match="tokenize is for n-gram models"):
        fluency_scores(language_model, ["fine"], unigram, tokenize=str.split)
    for words in (0, 400_000):
        with pytest.raises(ValueError, match="words must be a whole number"):
            UnigramModel.from_web_counts(language_model, words=words)


def test_signature_names_both_models(language_model, unigram):
    signature = fluency_scores(language_model, ["A text."], unigram).attrs["signature"]
    assert (
        language_model.tag in signature
        and unigram.tag in signature
        and signature.startswith("fluency|")
    )


def signature_of(lm, unigram, **options):
    return fluency_scores(lm, ["the cat"], unigram, **options).attrs["signature"]


def test_texts_of_one_structure_give_models_that_sign_differently():
    """Two texts with the same numbers of n-grams everywhere: only the words differ, so only a checksum of them
    tells."""
    other_words = [[word.upper() for word in sentence] for sentence in TRAINING]
    first, second = (NgramLM(2, padding="arpa").fit(text) for text in (TRAINING, other_words))
    assert np.array_equal(first.log_probabilities[-1], second.log_probabilities[-1])
    unigram = UnigramModel.from_sentences(TRAINING)
    assert signature_of(first, unigram) != signature_of(second, unigram)
    assert signature_of(first, unigram) == signature_of(
        NgramLM(2, padding="arpa").fit(TRAINING), unigram
    )


def split_with_version(text):
    return text.split()


split_with_version.version = "1"


def test_tokenisers_and_unigrams_change_the_signature():
    lm = NgramLM(2, padding="arpa").fit(TRAINING)
    own = [UnigramModel.from_sentences(text, name="same name") for text in (TRAINING, TRAINING[1:])]
    signatures = {
        signature_of(lm, own[0]),
        signature_of(lm, own[1]),
        signature_of(lm, own[0], tokenize=str.split),
        signature_of(lm, own[0], tokenize=lambda text: text.split()),
        signature_of(lm, own[0], tokenize=split_with_version),
    }
    assert len(signatures) == 5


def test_more_words_of_the_web_sign_differently():
    lm = NgramLM(2, padding="arpa").fit(TRAINING)
    few, more = (UnigramModel.from_web_counts(lm, words) for words in (1000, 1100))
    assert few.tag != more.tag and few.tag == UnigramModel.from_web_counts(lm, 1000).tag


def test_minimal_pairs_are_many_and_not_from_a_template():
    pairs = load_minimal_pairs()
    assert len(pairs) >= 120 and list(pairs.columns) == ["kind", "good", "bad"]
    assert pairs.kind.nunique() == 8 and pairs.kind.value_counts().min() >= 15
    texts = [*pairs.good, *pairs.bad]
    assert len({text.lower() for text in texts}) == len(texts)
    assert all(re.fullmatch(r"[A-Z][^\n]*[.?]", text) for text in texts)
    words = [frozenset(re.findall(r"\w+", text.lower())) for text in pairs.good]
    assert max(len(a & b) / len(a | b) for a, b in itertools.combinations(words, 2)) < 0.4
    assert Counter(" ".join(text.split()[:3]) for text in pairs.good).most_common(1)[0][1] == 1


def test_both_sides_of_a_pair_share_most_words():
    for row in load_minimal_pairs().itertuples():
        good, bad = (set(re.findall(r"\w+", text.lower())) for text in (row.good, row.bad))
        assert len(good & bad) / len(good | bad) >= 0.4, row


def test_the_model_prefers_sound_sentences(language_model, unigram):
    pairs = load_minimal_pairs().iloc[::8]
    scores = fluency_scores(language_model, [*pairs.good, *pairs.bad], unigram)
    assert share_preferred(*np.split(scores.nce.to_numpy(), 2)) > 0.8


@pytest.mark.ci
def test_stored_compression_scores(language_model, after_turn, unigram):
    if not (
        Path(os.environ.get("TSTEVAL_DATA", "")) / "msr_compression"
    ).is_dir() or not os.environ.get("TSTEVAL_DATA"):
        pytest.skip(
            "needs the compression ratings: see tsteval.core.assets.corpus_path('msr_compression')"
        )
    stored = pd.read_csv(packaged_path("compression_scores.csv"))
    clean = load_compressions()
    assert stored.row.tolist() == clean.row.tolist()
    some = stored.iloc[:: len(stored) // 5]
    texts = clean.set_index("row").loc[some.row].compression.tolist()
    turns = after_turn.token_logprobs(texts)
    for text, turn, row in zip(language_model.token_logprobs(texts), turns, some.itertuples()):
        assert len(text.tokens) == row.n_tokens
        assert text.logprobs.sum() == pytest.approx(row.logprob, abs=5e-3)
        assert turn.logprobs.sum() == pytest.approx(row.logprob_im_start, abs=5e-3)
        assert unigram.score(text.tokens).sum() == pytest.approx(row.unigram_logprob, abs=2e-3)


def _learners():
    from tsteval.core.assets import AssetError
    from tsteval.tables.ratings import load_ratings

    try:
        return load_ratings("gug")
    except AssetError as error:
        pytest.skip(f"needs the learners' sentences: {error}")


@pytest.mark.ci
def test_stored_scores_of_learners_sentences(language_model, unigram):
    rated = _learners()
    stored = pd.read_csv(packaged_path("gug_scores.csv"))
    assert len(stored) == len(rated)
    for row in range(0, len(stored), 300):
        text = language_model.token_logprobs([rated.output[row]])[0]
        assert len(text.tokens) == stored.n_tokens[row]
        assert text.logprobs.sum() == pytest.approx(stored.logprob[row], abs=5e-3)
        without = unigram.score(text.tokens).sum()
        assert without == pytest.approx(stored.unigram_logprob[row], abs=2e-3)


@pytest.fixture
def counted(language_model, monkeypatch):
    scored = []
    inner = CausalLM.token_logprobs
    monkeypatch.setattr(
        CausalLM,
        "token_logprobs",
        lambda self, texts, **options: scored.extend(texts) or inner(self, texts, **options),
    )
    return scored


@pytest.mark.parametrize("order", [(Fluency(), Perplexity()), (Perplexity(), Fluency())])
@pytest.mark.all
def test_two_metrics_score_the_texts_once(language_model, counted, order):
    table = pd.DataFrame({"output": ["A cat sat.", "It rained."]})
    models = Models({"language_model": language_model})
    for metric in order:
        metric.score(table, models)
    assert counted == ["A cat sat.", "It rained."]
    Fluency().score(pd.DataFrame({"output": ["Another."]}), models)
    assert counted[2:] == ["Another."]


@pytest.mark.ci
def test_metrics_equal_the_functions(language_model, unigram):
    table = pd.DataFrame({"output": [TEXTS[0], "", TEXTS[1]]})
    models = Models({"language_model": language_model})
    expected = fluency_scores(language_model, table.output, unigram)
    fluency = Fluency().score(table, models)
    perplexity = Perplexity().score(table, models)
    pd.testing.assert_frame_equal(fluency.frame, expected, check_exact=False, rtol=1e-6)
    assert Fluency().sign(table, models) == expected.attrs["signature"]
    assert set(Fluency.columns) <= set(fluency.frame) and METRICS["fluency"] is Fluency
    assert np.allclose(perplexity.frame.perplexity, expected.perplexity, equal_nan=True)
    assert METRICS["perplexity"] is Perplexity and Perplexity.better == "lower"
    signature = Perplexity().sign(table, models)
    assert signature.startswith("perplexity|") and language_model.tag in signature
    assert models.used == {language_model.name: language_model.identity}


def test_perplexity_of_a_system_gives_every_token_one_vote(language_model):
    table = pd.DataFrame({"output": [TEXTS[0], "", TEXTS[1]]})
    models = Models({"language_model": language_model})
    scores = Perplexity().score(table, models)
    statistics, score = Perplexity().summed(scores, "perplexity")
    logprobs = np.concatenate(
        [text.logprobs for text in language_model.token_logprobs(list(table.output))]
    )
    assert score(statistics.sum(axis=0)) == pytest.approx(np.exp(-logprobs.mean()), rel=1e-5)
    assert score(statistics[0]) == pytest.approx(
        scores.frame.perplexity[0]
    )  # a table of one row gets the row's own
    assert np.isnan(score(statistics[1])) and score(
        np.stack([statistics[0], statistics[2]])
    ).shape == (2,)


def test_tokens_of_lists_and_strings():
    lm = NgramLM(2, padding="arpa").fit(TRAINING)
    assert model_tokens(lm, ["the cat", ["the", "zebra"]]) == [["the", "cat"], ["the", UNKNOWN]]
    assert model_tokens(lm, iter(["the cat"]), str.split) == [["the", "cat"]]


# ---- n-gram models as language models

OUTPUTS = [{"source": "x", "output": "The cat ran."}, {"source": "y", "output": "the old dog sat"}]


def test_an_ngram_model_is_a_language_model_of_an_evaluation(tmp_path):
    lm = NgramLM(2, padding="arpa").fit(TRAINING)
    lm.to_arpa(tmp_path / "model.arpa")
    expected = fluency_scores(lm, [row["output"] for row in OUTPUTS])
    assert "tokenize:13a-lower" in expected.attrs["signature"]
    for model in (lm, str(tmp_path / "model.arpa")):
        result = evaluate(OUTPUTS, ["fluency", "perplexity"], language_model=model, n_boot=5)
        for column in ("pen_lp", "slor", "nce", "norm_lp", "perplexity"):
            assert np.allclose(result.per_pair[column], expected[column], rtol=1e-5)
        total = np.exp(-expected.logprob.sum() / expected.n_tokens.sum())
        assert result.summary().perplexity[0] == pytest.approx(total, rel=1e-5)
    assert (
        evaluate(OUTPUTS, ["fluency"], language_model=lm, n_boot=5).signatures["fluency"]
        == expected.attrs["signature"]
    )


def test_a_model_without_capitals_reads_lower_case_and_one_with_them_does_not():
    unigram = UnigramModel.from_sentences(TRAINING)
    lower, upper = (
        NgramLM(2, padding="arpa").fit(text) for text in (TRAINING, [*TRAINING, ["The", "cat"]])
    )
    for lm, alike in ((lower, True), (upper, False)):
        one, two = fluency_scores(lm, ["THE CAT RAN", "the cat ran"], unigram).nce
        assert (one == two) == alike


def test_a_language_model_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InputError, match=r"none\.arpa"):
        evaluate(OUTPUTS, ["fluency"], language_model=str(tmp_path / "none.arpa"))


@pytest.mark.parametrize("unit", ["piece", "word", "character"])
def test_units_spell_the_same_text_and_score_it(unit):
    texts = ["the cat sat on the mat", "the dog sat", "a cat ran", "a dog ran on the mat"] * 2
    model = count_text(texts, unit, order=2, size=30)
    scores = model.scores(["The cat ran", ""])
    tokens = model.split("the cat ran")
    assert "".join(token.removeprefix("##") for token in tokens).replace(" ", "") == "thecatran"
    assert scores.n_tokens.tolist() == [len(tokens), 0] and np.isnan(scores.slor[1])
    expected = model.lm.logprobs([tokens])[0][:-1] - model.unigram.score(tokens)
    assert wpslor(["The cat ran"], model) == pytest.approx([expected.mean()])
    assert model.scores(["the cat ran"]).nce[0] > model.scores(["ran cat the"]).nce[0]


def test_another_unit_is_refused():
    with pytest.raises(InputError, match="unit"):
        count_text(["a b"], "syllable")
