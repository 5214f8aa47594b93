"""The sentence encoder: any encoder of transformers, pooled as its folder says, and wherever an encoder is named."""

import copy
import json
import pickle

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.special import expit, logsumexp

from tests.models import tiny
from tsteval.alignment import bert_score, mover_score, word_movers_distance
from tsteval.attribution import attribute, integrated_gradients
from tsteval.core.assets import AssetError, packaged_path
from tsteval.core.checks import InputError
from tsteval.cps import SentenceEncoder as handed_on
from tsteval.cps import content_preservation, mask_style
from tsteval.models.classifier import base_model
from tsteval.models.encoder import ABSENT, SentenceEncoder, pool
from tsteval.style import StyleClassifier


@pytest.fixture(params=tiny.ENCODERS)
def folder(request, tmp_path):
    tiny.save(tmp_path, request.param, "AutoModel")
    say(tmp_path, "mean_tokens")
    return tmp_path


def say(folder, mode):
    (folder / "1_Pooling").mkdir(exist_ok=True)
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({f"pooling_mode_{mode}": True}))


def test_the_chapter_hands_it_on():
    assert handed_on is SentenceEncoder


@pytest.mark.parametrize(
    "mode, pooled",
    [
        ("mean_tokens", lambda rows: rows.mean(dim=0)),
        ("cls_token", lambda rows: rows[0]),
        ("max_tokens", lambda rows: rows.amax(dim=0)),
    ],
)
def test_any_encoder_gives_what_transformers_gives(folder, mode, pooled):
    say(folder, mode)
    encoder = SentenceEncoder.load(folder)
    peer = tiny.transformers.AutoModel.from_pretrained(folder).eval()
    for text, found in zip(tiny.TEXTS, encoder.encode(tiny.TEXTS)):
        with torch.inference_mode():
            ids = torch.tensor([encoder.tokenizer(text)["input_ids"]])
            expected = pooled(peer(input_ids=ids).last_hidden_state[0])
        assert np.allclose(found, expected.numpy(), atol=1e-4)


def test_any_encoder_serves_the_scores_that_name_one(folder):
    encoder = SentenceEncoder.load(folder)
    outputs = tiny.TEXTS[:3]
    for score in (
        lambda a, b: bert_score(a, b, encoder=encoder, layer=1).f1.to_numpy(),
        lambda a, b: mover_score(a, b, encoder=encoder, layer=1),
        lambda a, b: word_movers_distance(a, b, encoder=encoder),
    ):
        together = score(outputs, tiny.TEXTS[1:4])
        alone = np.concatenate([score([a], [b]) for a, b in zip(outputs, tiny.TEXTS[1:4])])
        assert np.allclose(together, alone, atol=1e-4) and np.isfinite(together).all()
        assert np.ptp(together) > 1e-3
    assert np.allclose(bert_score(outputs, outputs, encoder=encoder, layer=1).f1, 1, atol=1e-5)


@pytest.mark.parametrize("family", ["bart", "xlnet"])
def test_what_is_no_plain_encoder_is_refused_or_scored_row_by_row(family, tmp_path):
    """BART's vectors are those of its second half; XLNet is an encoder, whose texts stand at the end of a batch."""
    tiny.save(tmp_path, family, "AutoModel")
    say(tmp_path, "mean_tokens")
    if family == "bart":
        with pytest.raises(AssetError, match="two sequences"):
            SentenceEncoder.load(tmp_path)
        return
    encoder = SentenceEncoder.load(tmp_path)
    together = encoder.encode(tiny.TEXTS)
    assert np.allclose(
        together, np.concatenate([encoder.encode([text]) for text in tiny.TEXTS]), atol=1e-4
    )


def test_pooling_by_pencil():
    vectors = torch.tensor([[[1.0, 4], [3, 0], [9, 9]]])
    mask = torch.tensor([[1, 1, 0]])
    assert pool(vectors, mask, "mean").tolist() == [[2, 2]] and pool(
        vectors, mask, "cls"
    ).tolist() == [[1, 4]]
    assert pool(vectors, mask, "max").tolist() == [[3, 4]]
    assert np.allclose(pool(vectors, mask, "mean_sqrt_len_tokens"), np.array([[4, 4]]) / 2**0.5)


@pytest.fixture(params=tiny.ENCODERS)
def judge(request, tmp_path):
    tiny.save(tmp_path, request.param, "AutoModel")
    return StyleClassifier(*base_model(tmp_path, ("loud", "plain"), "words"), request.param)


def test_plain_transformers_gives_the_same_scores(judge, tmp_path):
    plain = tiny.transformers.AutoModel.from_pretrained(tmp_path).eval()
    head = judge.model.classifier
    for text, found in zip(tiny.TEXTS, judge.token_scores(tiny.TEXTS)):
        ids = torch.tensor([judge.tokenizer(text)["input_ids"]])
        with torch.inference_mode():
            expected = head(plain(input_ids=ids).last_hidden_state)[0, :, 0]
        assert np.allclose(found[1:-1], expected[1:-1], atol=1e-4)
        assert found[0] == found[-1] == ABSENT  # [CLS] and [SEP]


def test_the_text_is_the_smooth_maximum_of_its_tokens(judge):
    probabilities = judge.predict_proba(tiny.TEXTS)[:, 0]
    expected = [expit(logsumexp(scores[1:-1])) for scores in judge.token_scores(tiny.TEXTS)]
    assert np.allclose(probabilities, expected, atol=1e-5)
    assert judge.predict_proba([""])[0, 0] == 0  # no word, no style


def test_scores_do_not_depend_on_the_batch(judge):
    together = judge.token_scores(tiny.TEXTS)
    for text, scores in zip(tiny.TEXTS, together):
        assert np.allclose(judge.token_scores([text])[0], scores, atol=1e-4)


@pytest.mark.parametrize("target", [0, 1])
def test_shares_add_up_to_the_probability(judge, target):
    whole = judge.predict_proba(tiny.TEXTS)[:, target]
    for found, value in zip(
        attribute(judge, tiny.TEXTS, method="token_scores", target=target), whole
    ):
        assert found.completeness_error < 1e-6 and found.steps == 1
        assert found.value == pytest.approx(value, abs=1e-5)
        assert found.scores.sum() + target == pytest.approx(value, abs=1e-5)
        assert (found.scores >= 0).all() if target == 0 else (found.scores <= 0).all()
        assert found.method == "token_scores" + "-class1" * target


def test_the_order_of_shares_is_that_of_scores(judge):
    for found, scores in zip(
        attribute(judge, tiny.TEXTS, method="token_scores"), judge.token_scores(tiny.TEXTS)
    ):
        assert np.argmax(found.scores) == np.argmax(scores[1:-1])


def test_integrated_gradients_explain_the_same_judge(judge):
    for found, value in zip(
        integrated_gradients(judge, tiny.TEXTS), judge.predict_proba(tiny.TEXTS)[:, 0]
    ):
        assert found.value == pytest.approx(value, abs=1e-5) and found.completeness_error <= 0.05


def test_masks_take_token_scores(judge):
    frame = content_preservation(
        tiny.TEXTS[:2],
        tiny.TEXTS[1:3],
        classifier=judge,
        attributions="token_scores",
        threshold=0.0,
    )
    strongest = attribute(judge, tiny.TEXTS[:1], method="token_scores")[0]
    assert frame.masked_source[0] == mask_style(strongest, 0.0) != tiny.TEXTS[0]
    assert frame.masked_source[0].count("[PAD]") == 1


@pytest.mark.parametrize(
    "options, words",
    [
        ({"quantity": "logit"}, "divide the probability"),
        ({"baseline": "mask"}, "leave baseline"),
        ({"samples": 3}, "no option 'samples'"),
        ({"steps": 3}, "no option 'steps'"),
    ],
)
def test_options_of_other_methods_are_refused(judge, options, words):
    with pytest.raises(InputError, match=words):
        attribute(judge, tiny.TEXTS, method="token_scores", **options)


def test_a_judge_of_whole_texts_has_no_token_scores():
    model = StyleClassifier(tiny.module("bert"), tiny.tokenizer(), "plain")
    for ask in (model.token_scores, lambda texts: attribute(model, texts, method="token_scores")):
        with pytest.raises(
            InputError, match=r"plain scores whole texts .* such as subjectivity-words"
        ):
            ask(tiny.TEXTS)


@pytest.mark.parametrize("family, labels", [("bert", ("a", "b", "c")), ("bart", ("a", "b"))])
def test_what_cannot_score_words_is_refused(family, labels, tmp_path):
    tiny.save(tmp_path, family, "AutoModel")
    with pytest.raises(InputError, match="cannot score words"):
        base_model(tmp_path, labels, "words")


def test_a_copy_has_weights_of_its_own(judge):
    before = judge.predict_proba(tiny.TEXTS)
    other = copy.deepcopy(judge)
    with torch.no_grad():
        other.model.classifier.bias.add_(1.0)
    assert np.allclose(judge.predict_proba(tiny.TEXTS), before)
    assert (other.predict_proba(tiny.TEXTS)[:, 0] > before[:, 0]).all()


def test_unknown_words_are_scored_and_frames_in_a_text_are_not(judge):
    scores = judge.token_scores(["the zebra [SEP] ran"])[0]
    assert (scores[[1, 2, 4]] > ABSENT / 2).all() and scores[3] == ABSENT


def test_the_shipped_tables_hold_figures_with_their_intervals_and_the_card_holds_them():
    table = pd.read_csv(packaged_path("word_judges.csv"))
    assert list(table.columns) == ["judge", "data", "measure", "n", "value", "low", "high"]
    measured = table.dropna()
    assert (
        (measured.low <= measured.value).all()
        and (measured.value <= measured.high).all()
        and (table.n > 0).all()
    )
    card = packaged_path("subjectivity-words/README.md").read_text(encoding="utf-8")
    for row in measured.itertuples():
        assert f"| {row.judge} | {row.data} | {row.measure} | {row.n} | {row.value:.3f} |" in card
    masks = pd.read_csv(packaged_path("mask_methods.csv"))
    assert set(masks.study) == {"lai2022", "style_gap", "mir2019"}
    assert {"none", "the editor's words"} <= set(masks["mask"])
    assert set(masks.study[masks["mask"] == "integrated gradients, alike"]) == set(masks.study)
    assert (masks[masks["mask"] == "none"].gain == 0).all() and (
        masks.low <= masks.correlation
    ).all()


def test_the_card_of_the_judge_of_formal_words_holds_its_table():
    table = pd.read_csv(packaged_path("").parents[1] / "nbs" / "making" / "word_styles.csv")
    card = packaged_path("formality-words/README.md").read_text(encoding="utf-8")
    for row in table[table["style"] == "formality"].itertuples():
        way = {"integrated gradients": "formality-minilm, integrated gradients"}.get(
            row.way, row.way
        )
        assert f"| {way} | {row.measure} | {row.n} | {row.value:.3f} |" in card
    gain = table[
        (table["style"] == "formality") & (table.way == "token scores minus integrated gradients")
    ]
    assert (
        gain.set_index("measure").low[["precision_at_1", "average_precision"]] > 0
    ).all()  # why it is shipped


@pytest.mark.parametrize("name", ["subjectivity-words", "formality-words"])
def test_the_shipped_judges_of_words_are_small(name):
    sizes = {file.name: file.stat().st_size for file in packaged_path(name).iterdir()}
    assert set(sizes) == {
        "README.md",
        "adapter_config.json",
        "adapter_model.safetensors",
        "style.json",
    }
    assert sum(sizes.values()) < 2_000_000


@pytest.mark.ci
def test_the_shipped_judge_travels_by_name_and_points_at_the_word():
    judge = pickle.loads(pickle.dumps(StyleClassifier.load("subjectivity-words")))
    text = "The bridge in Oslo is a stunning masterpiece and was opened in 1932."
    found = attribute(judge, [text], method="token_scores")[0]
    assert found.words[int(np.argmax(found.word_scores))] in ("stunning", "masterpiece")
    masked = mask_style(found, 0.7, unit="word")
    assert all(word in masked for word in ("bridge", "Oslo", "opened", "1932"))


@pytest.mark.ci
def test_the_judge_of_formal_words_points_at_the_informal_one():
    judge = StyleClassifier.load("formality-words")
    texts = [
        "The minutes of the meeting are gonna be published on Monday.",
        "The minutes will be published on Monday.",
    ]
    found = attribute(judge, texts, method="token_scores")
    assert found[0].words[int(np.argmax(found[0].word_scores))] == "gonna"
    assert found[0].value > found[1].value
    assert all(
        np.isclose(one.scores.sum(), one.value, atol=one.completeness_error + 1e-6) for one in found
    )
