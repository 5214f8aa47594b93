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
from hypothesis import given, strategies as st

from tsteval.core.assets import packaged_path
from tsteval.fluency import (
    CausalLM,
    UnigramModel,
    _batches,
    _windows,
    amelioration_1,
    fluency_scores,
    load_compressions,
    load_minimal_pairs,
    scores_from_logprobs,
    share_preferred,
)
from tsteval.ngram import UNKNOWN, NgramLM

TEXTS = ["The council met on Monday.", "He is a citizen of Tuvalu.", "A", "Naïve 😀 <b>text</b>", "half \ud83d"]


@pytest.fixture(scope="module")
def unigram(language_model):
    return UnigramModel.from_web_counts(language_model)


def test_beginning_of_text_is_token_one(language_model):
    assert language_model.beginning == 1


def test_equals_transformers_loss(language_model):
    for text in TEXTS[:4]:
        ids = torch.tensor([[1, *language_model.tokenizer(text, add_special_tokens=False)["input_ids"]]])
        with torch.inference_mode():
            loss = language_model.model(input_ids=ids, labels=ids).loss.item()
        assert abs(-language_model.token_logprobs([text])[0].logprobs.mean() - loss) < 1e-4


def test_padding_changes_no_score(language_model):
    texts = [*TEXTS, " ".join(TEXTS[:2] * 8), TEXTS[0]]
    together = language_model.token_logprobs(texts, batch_size=3)
    for text, scores in zip(texts, together):
        alone = language_model.token_logprobs([text])[0]
        assert scores.tokens == alone.tokens and np.allclose(scores.logprobs, alone.logprobs, atol=1e-4)


def test_every_token_is_scored_in_windows(language_model):
    text = " ".join(["The council met on Monday and approved the plan."] * 6)
    whole, windowed = (language_model.token_logprobs([text], window=window)[0] for window in (1024, 16))
    assert len(whole.logprobs) == len(windowed.logprobs) == len(whole.tokens) > 50
    assert (windowed.logprobs < 0).all() and np.allclose(whole.logprobs[:15], windowed.logprobs[:15], atol=1e-4)


def test_unpacked_weights_equal_the_packed_ones(language_model):
    from transformers import AutoModelForCausalLM
    from tsteval.core.assets import ASSETS, asset_path
    asset = ASSETS["SmolLM2-135M-Instruct"]
    packed = AutoModelForCausalLM.from_pretrained(asset_path(asset.name), gguf_file=asset.gguf_file, dtype=torch.float32)
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
    n, logprob, alone = len(scores.tokens), scores.logprobs.sum(), unigram.score(scores.tokens).sum()
    assert list(row.index) == ["logprob", "n_tokens", "nce", "perplexity", "slor", "norm_lp", "pen_lp"]
    assert np.allclose(row.to_numpy(float), [logprob, n, logprob / n, np.exp(-logprob / n), (logprob - alone) / n,
                                             -logprob / alone, logprob / ((5 + n) / 6) ** 0.8])


def test_slor_forgives_rare_words(language_model, unigram):
    scores = fluency_scores(language_model, ["He is a citizen of France.", "He is a citizen of Tuvalu."], unigram)
    assert scores.nce[0] > scores.nce[1] and scores.slor[0] - scores.slor[1] < scores.nce[0] - scores.nce[1]


def test_word_order_matters(language_model, unigram):
    scores = fluency_scores(language_model, ["The mayor opened the new bridge in May.", "Mayor the new in bridge opened the May."], unigram)
    assert scores.nce[0] > scores.nce[1] and scores.slor[0] > scores.slor[1]


def test_unigram_probabilities_sum_to_one(language_model, unigram):
    vocabulary = language_model.tokenizer.convert_ids_to_tokens(range(len(language_model.tokenizer)))
    assert np.isclose(np.exp(unigram.score(vocabulary)).sum(), 1, atol=1e-9)
    assert np.isfinite(unigram.score([".", "Ġthe", "no such token"])).all()


def test_unigram_from_counts_and_sentences():
    assert np.allclose(np.exp(UnigramModel.from_counts({"a": 6, "b": 3}).score(["a", "b", "c"])), [0.6, 0.3, 0.1])
    assert np.allclose(np.exp(UnigramModel.from_sentences([["a", "a"], ["b"]]).score(["a", "b", "z"])), [0.5, 0.25, 0.25])
    with pytest.raises(ValueError):
        UnigramModel.from_counts({})
    with pytest.raises(ValueError):
        UnigramModel.from_counts({"a": 0})


def test_pencil_values():
    row = scores_from_logprobs([-6 * np.log(2)], [-12 * np.log(2)], [3]).iloc[0]
    assert np.allclose([row.perplexity, row.slor, row.norm_lp], [4, 2 * np.log(2), -0.5])


def test_not_a_string(language_model):
    with pytest.raises(TypeError, match="row 1"):
        language_model.token_logprobs(["fine", None])


def test_one_string_and_bad_sizes_are_refused(language_model):
    with pytest.raises(TypeError, match="put it into a list"):
        language_model.token_logprobs("one string")
    for options in ({"batch_size": 0}, {"window": 1}):
        with pytest.raises(ValueError, match="at least 1 and 2"):
            language_model.token_logprobs(["a"], **options)


def test_every_token_equals_a_plain_forward_pass(language_model):
    text = "He is a citizen of France."
    ids = torch.tensor([[1, *language_model.tokenizer(text, add_special_tokens=False)["input_ids"]]])
    with torch.inference_mode():
        output = language_model.model(input_ids=ids, labels=ids)
    plain = output.logits[0, :-1].log_softmax(-1)[torch.arange(ids.shape[1] - 1), ids[0, 1:]].numpy()
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
    assert [place for _, first, end in windows for place in range(first, end)] == list(range(1, length))
    assert all(0 <= start < first and end - start <= window for start, first, end in windows)
    assert all(first - start >= window // 2 for start, first, _ in windows[1:])


@given(lengths=st.lists(st.integers(1, 50), max_size=30).map(sorted), size=st.integers(1, 8), room=st.integers(1, 120))
def test_batches_cover_all_windows_within_their_room(lengths, size, room):
    batches = _batches(lengths, size, room)
    assert [row for first, end in batches for row in range(first, end)] == list(range(len(lengths)))
    assert all(end - first <= size for first, end in batches)
    assert all(end - first == 1 or (end - first) * lengths[end - 1] <= room for first, end in batches)


TRAINING = [sentence.split() for sentence in ("the cat sat", "the dog sat", "a cat ran", "the old dog ran")]


@pytest.mark.parametrize("padding", ["arpa", "both"])
def test_ngram_scores_its_own_tokens_without_end_markers(padding):
    lm = NgramLM(3, "witten_bell", padding=padding).fit(TRAINING)
    unigram = UnigramModel.from_sentences(TRAINING)
    row = fluency_scores(lm, ["the cat ran"], unigram).iloc[0]
    words = lm.logprobs([["the", "cat", "ran"]])[0][:3]
    alone = unigram.score(["the", "cat", "ran"]).sum()
    assert row.n_tokens == 3 and row.logprob == pytest.approx(words.sum())
    assert row.slor == pytest.approx((words.sum() - alone) / 3) and row.perplexity == pytest.approx(np.exp(-words.mean()))
    with_end = amelioration_1(lm, [["the", "cat", "ran"]], floor=0)[0]
    assert row.nce != pytest.approx(with_end)


def test_ngram_takes_strings_and_token_lists_alike():
    lm, unigram = NgramLM(2, padding="arpa").fit(TRAINING), UnigramModel.from_sentences(TRAINING)
    strings = fluency_scores(lm, ["the cat ran", "", "the dog"], unigram, tokenize=str.split)
    lists = fluency_scores(lm, [["the", "cat", "ran"], [], ("the", "dog")], unigram)
    pd.testing.assert_frame_equal(strings, lists)
    assert strings.loc[1, ["nce", "slor"]].isna().all() and len(fluency_scores(lm, [], unigram)) == 0
    upper = fluency_scores(lm, ["THE CAT RAN"], unigram, tokenize=lambda text: text.lower().split())
    assert upper.nce[0] == strings.nce[0]


def test_ngram_unknown_words():
    unigram = UnigramModel.from_sentences(TRAINING)
    arpa, both = (NgramLM(2, padding=padding).fit(TRAINING) for padding in ("arpa", "both"))
    scores = fluency_scores(arpa, ["the zebra ran", f"the {UNKNOWN} ran"], unigram, tokenize=str.split)
    assert np.isfinite(scores.nce).all() and scores.nce[0] == scores.nce[1] and scores.slor[0] == scores.slor[1]
    assert fluency_scores(both, ["the zebra ran"], unigram).nce[0] == -np.inf


def test_ngram_with_web_counts():
    lm = NgramLM(2, padding="arpa").fit(TRAINING)
    unigram = UnigramModel.from_web_counts(lm, tokenize=str.split)
    assert np.exp(unigram.score([word for word in lm.words if word != "<s>"])).sum() <= 1 + 1e-9
    assert unigram.score(["the"]) > unigram.score(["cat"]) and np.isfinite(unigram.score(["no such token"])).all()
    pd.testing.assert_frame_equal(fluency_scores(lm, ["the cat"], tokenize=str.split),
                                  fluency_scores(lm, ["the cat"], unigram, tokenize=str.split))


def test_ngram_refuses_what_is_not_text(language_model, unigram):
    lm = NgramLM(2, padding="arpa").fit(TRAINING)
    with pytest.raises(TypeError, match="row 1"):
        fluency_scores(lm, ["fine", 3], UnigramModel.from_sentences(TRAINING))
    with pytest.raises(TypeError, match="put it into a list"):
        fluency_scores(lm, "one string", UnigramModel.from_sentences(TRAINING))
    with pytest.raises(TypeError, match="tokenize is for n-gram models"):
        UnigramModel.from_web_counts(language_model, tokenize=str.split)
    with pytest.raises(TypeError, match="tokenize is for n-gram models"):
        fluency_scores(language_model, ["fine"], unigram, tokenize=str.split)
    for words in (0, 400_000):
        with pytest.raises(ValueError, match="words must be in 1"):
            UnigramModel.from_web_counts(language_model, words=words)


def test_signature_names_both_models(language_model, unigram):
    signature = fluency_scores(language_model, ["A text."], unigram).attrs["signature"]
    assert language_model.identity[:12] in signature and unigram.name in signature
    first, second = (UnigramModel.from_sentences(text) for text in (TRAINING, TRAINING[1:]))
    lm = NgramLM(2, padding="arpa").fit(TRAINING)
    names = {fluency_scores(lm, ["the cat"], own).attrs["signature"] for own in (first, second)}
    assert len(names) == 2 and all("ngram-2-kneser_ney-arpa@" in name for name in names)
    other = NgramLM(2, padding="arpa").fit(TRAINING[1:])
    assert fluency_scores(other, ["the cat"], first).attrs["signature"] not in names


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


def test_share_preferred():
    assert share_preferred([1, 2, 3, 4], [0, 2, 4, 1]) == 0.625
    for good, bad in (([], []), ([1, 2], [1])):
        with pytest.raises(ValueError, match="pass as many"):
            share_preferred(good, bad)


def test_the_model_prefers_sound_sentences(language_model, unigram):
    pairs = load_minimal_pairs().iloc[::8]
    scores = fluency_scores(language_model, [*pairs.good, *pairs.bad], unigram)
    assert share_preferred(*np.split(scores.nce.to_numpy(), 2)) > 0.8


def test_compressions_are_cleaned_and_counted(tmp_path):
    rows = [
        ("A long source text.", "A text.", 3.0, 2.5, 3),
        ("Another source.", None, 3.0, 2.5, 3),
        ("Another source.", "A source.", None, 2.5, 3),
        ("Another source.", "A source.", 2.0, 66209.0, 1),
        ("x" * 1001, "A source.", 2.0, 2.0, 1),
    ]
    columns = ["Source", "Reference", "AverageMeaning", "AverageGrammar", "Label"]
    pd.DataFrame(rows, columns=columns).to_csv(tmp_path / "valid_data.csv")
    clean = load_compressions(tmp_path)
    assert clean.to_dict("records") == [
        {"row": 0, "source": rows[0][0], "compression": "A text.", "grammar": 2.5, "meaning": 3.0}
    ]
    assert list(clean.attrs["dropped"].values()) == [2, 1, 1]


def test_stored_compression_scores(language_model, unigram):
    if not (Path(os.environ.get("TSTEVAL_DATA", "")) / "msr_compression").is_dir() or not os.environ.get("TSTEVAL_DATA"):
        pytest.skip("needs the compression ratings: see tsteval.core.assets.corpus_path('msr_compression')")
    stored = pd.read_csv(packaged_path("compression_scores.csv"))
    clean = load_compressions()
    chosen = np.sort(np.random.default_rng(0).permutation(len(clean))[: len(stored)])
    assert stored.row.tolist() == clean.row.iloc[chosen].tolist()
    some = stored.iloc[:: len(stored) // 5]
    texts = clean.set_index("row").loc[some.row].compression.tolist()
    for text, row in zip(language_model.token_logprobs(texts), some.itertuples()):
        assert len(text.tokens) == row.n_tokens
        assert text.logprobs.sum() == pytest.approx(row.logprob, abs=2e-3)
        assert unigram.score(text.tokens).sum() == pytest.approx(row.unigram_logprob, abs=2e-3)
