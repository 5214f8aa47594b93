"""Fluency: the language model's scores against transformers' own loss, and the formulas."""
import numpy as np
import pytest
import torch

from tsteval.fluency import CausalLM, UnigramModel, fluency_scores, scores_from_logprobs

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
    from tsteval.assets import ASSETS, asset_path
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
