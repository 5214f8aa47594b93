"""The head over all layers: one minimum, a gradient of zero, scikit-learn's numbers, files, copies, and what it
refuses."""

import copy
import json
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import load_file, save_file
from sklearn.linear_model import LogisticRegression

from tests.models import tiny
from tsteval.attribution import integrated_gradients
from tsteval.core.assets import AssetError
from tsteval.core.checks import InputError
from tsteval.core.fetch import asset_path
from tsteval.models.classifier import base_model
from tsteval.style import LABELS, StyleClassifier, calibrate, labelled_sentences, load_pairs, temper
from tsteval.training import logistic
from tsteval.training import loop as training
from tsteval.training.batches import Stream, Training
from tsteval.training.loop import train_on_sentences, train_on_stream

PAIRS = load_pairs()
EDITED = PAIRS[(PAIRS.source != PAIRS.target) & (PAIRS.split == "train")].head(12)
CONTROLS = PAIRS[(PAIRS.source == PAIRS.target) & (PAIRS.split == "train")].head(3)
SENTENCES = labelled_sentences(pd.concat([EDITED, CONTROLS]), 2.0)
TEXTS = [*EDITED.source.head(3), "", "A fine bridge."]
HEAD = {"method": "head", "pooling": "layers"}


@pytest.fixture(scope="module")
def encoders(tmp_path_factory):
    """Very small encoders with random weights, as folders; that of DistilBERT has no pooling layer."""
    from transformers import AutoTokenizer, BertConfig, BertModel, DistilBertConfig, DistilBertModel

    tokenizer = AutoTokenizer.from_pretrained(asset_path("all-MiniLM-L6-v2"))
    torch.manual_seed(0)
    models = {
        "bert": BertModel(
            BertConfig(
                vocab_size=len(tokenizer),
                hidden_size=8,
                num_hidden_layers=2,
                num_attention_heads=2,
                intermediate_size=16,
                max_position_embeddings=520,
            )
        ),
        "distilbert": DistilBertModel(
            DistilBertConfig(
                vocab_size=len(tokenizer),
                dim=8,
                n_layers=1,
                n_heads=2,
                hidden_dim=16,
                max_position_embeddings=520,
            )
        ),
    }
    folders = {}
    for name, model in models.items():
        folders[name] = str(tmp_path_factory.mktemp(name))
        model.save_pretrained(folders[name])
        tokenizer.save_pretrained(folders[name])
    return folders


def fitted(base, sentences=SENTENCES, **settings):
    return train_on_sentences(sentences, LABELS, base=base, **HEAD, **settings)


@pytest.fixture(scope="module")
def head(encoders):
    return fitted(encoders["bert"])


def vectors(classifier, texts):
    """The encoder's vectors, worked out apart from the hooks: each layer's mean over the tokens that are no padding."""
    rows = []
    for text in texts:
        with torch.inference_mode():
            hidden = classifier.model.base_model(
                **classifier.tokenizer([text], return_tensors="pt"), output_hidden_states=True
            ).hidden_states
        rows.append(torch.cat([layer[0].mean(dim=0) for layer in hidden]).double().numpy())
    return np.array(rows)


def test_the_head_reads_the_mean_of_every_layer(head):
    weights = {
        name: value.double().numpy() for name, value in head.model.classifier.state_dict().items()
    }
    logits = vectors(head, TEXTS) @ weights["weight"].T + weights["bias"]
    assert weights["weight"].shape == (2, 3 * 8) and np.allclose(
        head.predict_logits(TEXTS), logits, atol=1e-4
    )
    assert np.allclose(
        head.predict_logits(TEXTS, batch_size=1),
        head.predict_logits(TEXTS, batch_size=5),
        atol=1e-5,
    )


def test_there_is_one_minimum_whatever_the_order(encoders, head):
    for seed in (1, 2):
        again = fitted(encoders["bert"], SENTENCES.sample(frac=1, random_state=seed), seed=seed)
        assert abs(again.history.loss[1] - head.history.loss[1]) < 1e-7
        assert np.allclose(again.predict_proba(TEXTS), head.predict_proba(TEXTS), atol=1e-4)


def loss_at(weight, bias, scaled, sentences, ranking_weight, penalty):
    """The formula of the workshop, written once more."""
    logits = scaled @ weight.T + bias
    shares = sentences.weight.to_numpy() / sentences.weight.sum()
    log_shares = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    entropy = -(shares * log_shares[np.arange(len(sentences)), sentences.label]).sum()
    difference = pd.Series(logits[:, 0] - logits[:, 1])
    both = [
        (difference[group.index[group.label == 0][0]], difference[group.index[group.label == 1][0]])
        for _, group in sentences.groupby("pair")
        if len(group) == 2
    ]
    ranking = np.mean([np.log1p(np.exp(target - source)) for source, target in both]) if both else 0
    return entropy + ranking_weight * ranking + penalty / 2 * (weight**2).sum()


@pytest.mark.parametrize("ranking_weight, penalty", [(1.0, 2.0), (0.0, 0.1), (3.0, 0.01)])
def test_the_gradient_is_zero_at_the_minimum(ranking_weight, penalty):
    random = np.random.default_rng(0)
    scaled = random.normal(size=(len(SENTENCES), 6))
    weight, bias, loss = logistic._minimum(
        torch.from_numpy(scaled), SENTENCES, 2, ranking_weight, penalty
    )
    point = np.concatenate([weight.numpy().ravel(), bias.numpy()])

    def at(numbers):
        return loss_at(
            numbers[:12].reshape(2, 6), numbers[12:], scaled, SENTENCES, ranking_weight, penalty
        )

    assert abs(at(point) - loss) < 1e-12
    steps = 1e-5 * np.eye(len(point))
    assert max(abs(at(point + step) - at(point - step)) / 2e-5 for step in steps) < 1e-6
    assert all(at(point + 0.1 * random.normal(size=len(point))) > loss for _ in range(20))


@pytest.mark.parametrize("penalty", [0.01, 0.5])
@pytest.mark.parametrize("classes", [2, 3])
def test_without_pairs_it_is_scikit_learns_logistic_regression(encoders, penalty, classes):
    """Its C weighs the sum of the losses, our penalty stands beside their mean: C = 1 / penalty, with shares as
    weights."""
    texts = [
        f"{word} {number} bridges" for number in range(12) for word in ("old", "grand", "plain")
    ]
    sentences = pd.DataFrame(
        {
            "text": texts,
            "label": np.arange(len(texts)) % classes,
            "weight": np.linspace(0.5, 1.5, len(texts)),
        }
    )
    ours = train_on_sentences(
        sentences,
        tuple("abc"[:classes]),
        base=encoders["bert"],
        **HEAD,
        penalty=penalty,
        ranking_weight=0,
    )
    rows = vectors(ours, texts)
    mean = rows.mean(axis=0)
    scale = rows.std(axis=0, ddof=1)
    peer = LogisticRegression(C=1 / penalty, tol=1e-10, max_iter=10_000)
    peer.fit(
        (rows - mean) / scale,
        sentences.label,
        sample_weight=sentences.weight / sentences.weight.sum(),
    )
    theirs = peer.predict_proba((rows - mean) / scale)
    if (
        classes == 2
    ):  # one vector instead of two opposite ones, which half the penalty makes the same
        peer = LogisticRegression(C=2 / penalty, tol=1e-10, max_iter=10_000)
        theirs = peer.fit(
            (rows - mean) / scale,
            sentences.label,
            sample_weight=sentences.weight / sentences.weight.sum(),
        ).predict_proba((rows - mean) / scale)
    assert np.allclose(ours.predict_proba(texts), theirs, atol=1e-5)


def test_a_control_counts_as_often_as_its_weight_says(encoders):
    """Twice the weight gives the head that the same control written down twice gives, when classes are not balanced
    anew."""
    edited = labelled_sentences(EDITED).assign(weight=1.0)
    control = pd.DataFrame({"text": CONTROLS.source.head(1), "label": 1, "pair": [900]})
    heavy = pd.concat([edited, control.assign(weight=2.0)], ignore_index=True)
    twice = pd.concat(
        [edited, control.assign(weight=1.0), control.assign(weight=1.0, pair=901)],
        ignore_index=True,
    )
    one, other = (fitted(encoders["bert"], sentences, penalty=0.05) for sentences in (heavy, twice))
    assert (
        abs(one.history.loss[1] - fitted(encoders["bert"], edited, penalty=0.05).history.loss[1])
        > 1e-4
    )
    # the vectors are scaled over the rows, of which the second table has one more
    assert np.allclose(one.predict_proba(TEXTS), other.predict_proba(TEXTS), atol=0.02)


def test_the_encoder_is_left_as_it_is(encoders, head):
    fresh, _ = base_model(encoders["bert"], LABELS, "layers")
    trained = head.model.base_model.state_dict()
    assert all(
        torch.equal(value, trained[name]) for name, value in fresh.base_model.state_dict().items()
    )


def test_vectors_that_do_not_vary_and_a_lone_sentence(encoders):
    same = pd.DataFrame({"text": ["one bridge"] * 4, "label": [0, 0, 0, 1], "weight": 1.0})
    found = fitted(encoders["bert"], same).predict_proba(["one bridge"])
    assert np.allclose(found, [[0.75, 0.25]], atol=1e-3)
    alone = fitted(encoders["bert"], pd.DataFrame({"text": ["one bridge"], "label": [1]}))
    assert np.isfinite(alone.predict_proba(["one bridge", "two bridges"])).all()


# Files and copies ----------------------------------------------------------------------------------------------------


def test_a_head_travels(head, tmp_path):
    expected = head.predict_proba(TEXTS)
    first = tmp_path / "first"
    second = tmp_path / "second"
    head.save(first)
    loaded = StyleClassifier.load(str(first))
    assert sorted(path.name for path in first.iterdir()) == [
        "README.md",
        "adapter_config.json",
        "head.safetensors",
        "style.json",
    ]
    assert "A linear head over all layers of" in (first / "README.md").read_text(encoding="utf-8")
    assert loaded.labels == LABELS and np.allclose(loaded.predict_proba(TEXTS), expected, atol=1e-6)
    loaded.save(second)  # what was loaded can be saved again
    for other in (
        StyleClassifier.load(str(second)),
        copy.deepcopy(loaded),
        loaded.own(),
        pickle.loads(pickle.dumps(loaded)),
        copy.deepcopy(head),
    ):
        assert np.allclose(other.predict_proba(TEXTS), expected, atol=1e-6)
    assert pickle.loads(pickle.dumps(loaded)).tag == loaded.tag


def test_a_changed_copy_changes_neither_the_original_nor_its_tag(head, tmp_path):
    head.save(tmp_path / "head")
    loaded = StyleClassifier.load(str(tmp_path / "head"))
    before = loaded.predict_proba(TEXTS)
    tag = loaded.tag
    mine = loaded.own()
    with torch.no_grad():
        mine.model.classifier.weight.mul_(2)
    assert np.array_equal(loaded.predict_proba(TEXTS), before) and loaded.tag == tag != mine.tag
    assert not np.allclose(mine.predict_proba(TEXTS), before)


def narrower(folder):
    save_file(
        {
            name: value[:, :8].contiguous() if name == "weight" else value
            for name, value in load_file(folder / "head.safetensors").items()
        },
        folder / "head.safetensors",
    )


def without_bias(folder):
    save_file(
        {"weight": load_file(folder / "head.safetensors")["weight"]}, folder / "head.safetensors"
    )


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: (folder / "head.safetensors").write_bytes(b"noise" * 99),
        lambda folder: (folder / "head.safetensors").write_bytes(b""),
        lambda folder: (folder / "head.safetensors").write_bytes(
            (folder / "head.safetensors").read_bytes()[:-20]
        ),
        lambda folder: (folder / "head.safetensors").unlink(),
        narrower,
        without_bias,
        lambda folder: (folder / "style.json").unlink(),
        lambda folder: (folder / "style.json").write_text(
            '{"labels": ["a", "b", "c"], "pooling": "layers", "temperature": 1.0}'
        ),
        lambda folder: (folder / "style.json").write_text(
            '{"labels": ["a", "b"], "pooling": "mean", "temperature": 1.0}'
        ),
        lambda folder: (folder / "adapter_config.json").write_text(
            '{"base_model_name_or_path": "/no/such/encoder"}'
        ),
        lambda folder: (folder / "adapter_config.json").write_text("{"),
    ],
    ids=[
        "noise",
        "empty",
        "cut short",
        "missing",
        "narrower",
        "no bias",
        "no labels",
        "three labels",
        "other pooling",
        "no encoder",
        "config noise",
    ],
)
def test_a_damaged_head_is_an_asset_error(head, tmp_path, damage, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    folder = tmp_path / "head"
    head.save(folder)
    StyleClassifier.load(str(folder))
    damage(folder)
    with pytest.raises(AssetError) as caught:
        StyleClassifier.load(str(folder))
    assert len(str(caught.value)) < 900


# Any encoder ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", tiny.ENCODERS)
def test_any_encoder_takes_a_head_and_its_files_and_copies_give_the_same(family, tmp_path):
    tiny.save(tmp_path / "base", family, "AutoModel")
    sentences = labelled_sentences(
        pd.DataFrame(
            {
                "source": ["the stunning cat sat", "a stunning bridge", "old dog ."],
                "target": ["the cat sat", "a bridge", "dog ."],
            }
        )
    )
    head = fitted(str(tmp_path / "base"), sentences)
    expected = head.predict_proba(tiny.TEXTS)
    head.save(tmp_path / "head")
    assert np.allclose(
        StyleClassifier.load(tmp_path / "head").predict_proba(tiny.TEXTS), expected, atol=1e-5
    )
    sources, targets = (
        head.predict_proba(texts)[:, 0] for texts in (["a stunning bridge"], ["a bridge"])
    )
    assert sources > targets
    own = head.own()
    with torch.no_grad():
        own.model.classifier.weight.zero_()
    assert np.allclose(head.predict_proba(tiny.TEXTS), expected, atol=1e-6)
    assert not np.allclose(own.predict_proba(tiny.TEXTS), expected, atol=1e-3)


# What it refuses -----------------------------------------------------------------------------------------------------


def test_too_many_sentences_are_refused_before_a_model_is_loaded(monkeypatch):
    monkeypatch.setattr(training, "base_model", lambda *_: pytest.fail("a model was loaded"))
    monkeypatch.setattr(training, "MOST_VECTORS", len(SENTENCES) - 1)
    with pytest.raises(
        InputError,
        match=f"at most {len(SENTENCES) - 1} of them; got {len(SENTENCES)}: use the method lora",
    ):
        train_on_sentences(SENTENCES, LABELS, **HEAD)


@pytest.mark.parametrize(
    "settings",
    [
        {"method": "head"},
        {"method": "head", "pooling": "mean"},
        {"pooling": "layers"},
        {"method": "full", "pooling": "layers"},
    ],
)
def test_a_head_and_all_layers_go_together(settings):
    with pytest.raises(InputError, match="go together"):
        Training(**settings)
    with pytest.raises(InputError, match="penalty"):
        Training(**HEAD, penalty=0)


# What is built on it -------------------------------------------------------------------------------------------------


def test_pieces_that_number_their_pairs_from_zero_are_one_table(encoders, head):
    """A file that is passed over numbers the pairs of each piece from 0; two pieces were once one pair too many."""
    pieces = [
        SENTENCES[SENTENCES.pair < 6],
        SENTENCES[SENTENCES.pair >= 6].assign(pair=lambda piece: piece.pair - 6),
    ]
    stream = Stream(lambda: iter(pieces), (6, SENTENCES.pair.nunique() - 6), len(SENTENCES))
    streamed = train_on_stream(stream, LABELS, None, Training(base=encoders["bert"], **HEAD))
    assert abs(streamed.history.loss[1] - head.history.loss[1]) < 1e-9
    assert np.allclose(streamed.predict_proba(TEXTS), head.predict_proba(TEXTS), atol=1e-6)


def test_a_head_is_calibrated(head):
    before = head.predict_proba(TEXTS)
    tuned = calibrate(head, SENTENCES)
    assert (
        tuned.temperature != 1
        and head.temperature == 1
        and np.array_equal(head.predict_proba(TEXTS), before)
    )
    assert np.allclose(tuned.predict_proba(TEXTS), temper(before, tuned.temperature), atol=1e-5)


@pytest.mark.ci
def test_integrated_gradients_of_a_head_are_complete():
    """The attributions add up to the difference of the outputs, of the head that is shipped."""
    shipped = StyleClassifier.load()
    assert shipped.model.config.pooling == "layers"
    for result in integrated_gradients(shipped, EDITED.source.head(2).tolist(), tolerance=0.01):
        assert abs(result.completeness_error) <= 0.01


def test_a_second_text_reaches_the_head(encoders):
    sentences = pd.DataFrame(
        {
            "text": ["Who built it?"] * 4,
            "second": ["A mason.", "Nobody knows.", "Two masons.", "Who can say?"],
            "label": [1, 0, 1, 0],
        }
    )
    found = fitted(encoders["bert"], sentences, penalty=0.001)
    assert found.predict_proba(sentences.text, sentences.second).argmax(axis=1).tolist() == [
        1,
        0,
        1,
        0,
    ]


def test_what_is_shipped_is_a_head_of_this_kind():
    from tsteval.core.assets import packaged_path

    folder = Path(packaged_path("subjectivity-minilm"))
    assert load_file(folder / "head.safetensors")["weight"].shape == (2, 7 * 384)
    assert json.loads((folder / "style.json").read_text())["pooling"] == "layers"
    assert sum(path.stat().st_size for path in folder.iterdir()) < 40_000
