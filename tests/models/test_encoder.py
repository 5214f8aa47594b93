"""The sentence encoder: any encoder of transformers, pooled as its folder says, and wherever an encoder is named."""
import json

import numpy as np
import pytest
import torch

from tests.models import tiny
from tsteval.alignment import bert_score, mover_score, word_movers_distance
from tsteval.core.assets import AssetError
from tsteval.cps import SentenceEncoder as handed_on
from tsteval.models.encoder import SentenceEncoder, pool


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


@pytest.mark.parametrize("mode, pooled", [("mean_tokens", lambda rows: rows.mean(dim=0)),
                                          ("cls_token", lambda rows: rows[0]),
                                          ("max_tokens", lambda rows: rows.amax(dim=0))])
def test_any_encoder_gives_what_transformers_gives(folder, mode, pooled):
    say(folder, mode)
    encoder, peer = SentenceEncoder.load(folder), tiny.transformers.AutoModel.from_pretrained(folder).eval()
    for text, found in zip(tiny.TEXTS, encoder.encode(tiny.TEXTS)):
        with torch.inference_mode():
            ids = torch.tensor([encoder.tokenizer(text)["input_ids"]])
            expected = pooled(peer(input_ids=ids).last_hidden_state[0])
        assert np.allclose(found, expected.numpy(), atol=1e-4)


def test_any_encoder_serves_the_scores_that_name_one(folder):
    encoder, outputs = SentenceEncoder.load(folder), tiny.TEXTS[:3]
    for score in (lambda a, b: bert_score(a, b, encoder=encoder, layer=1).f1.to_numpy(),
                  lambda a, b: mover_score(a, b, encoder=encoder, layer=1),
                  lambda a, b: word_movers_distance(a, b, encoder=encoder)):
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
        with pytest.raises(AssetError, match="two sequences"): SentenceEncoder.load(tmp_path)
        return
    encoder = SentenceEncoder.load(tmp_path)
    together = encoder.encode(tiny.TEXTS)
    assert np.allclose(together, np.concatenate([encoder.encode([text]) for text in tiny.TEXTS]), atol=1e-4)


def test_pooling_by_pencil():
    vectors, mask = torch.tensor([[[1.0, 4], [3, 0], [9, 9]]]), torch.tensor([[1, 1, 0]])
    assert pool(vectors, mask, "mean").tolist() == [[2, 2]] and pool(vectors, mask, "cls").tolist() == [[1, 4]]
    assert pool(vectors, mask, "max").tolist() == [[3, 4]]
    assert np.allclose(pool(vectors, mask, "mean_sqrt_len_tokens"), np.array([[4, 4]]) / 2 ** 0.5)
