"""The shipped classifier, its card, and the training code that made it."""
import json
import os
import warnings

import numpy as np
import pytest

from tsteval import style
from tsteval.assets import file_sha256, packaged_path
from tsteval.style import StyleClassifier, evaluate_classifier, load_pairs, train_classifier

TEXTS = ["The stunning bridge opened in 1932.", "The bridge opened in 1932.", "", "😀 <b>x</b> \ud83d", "[PAD] [CLS] text"]


def test_labels_and_probabilities(classifier):
    assert classifier.labels == ("subjective", "neutral")
    probabilities = classifier.predict_proba(TEXTS)
    assert probabilities.shape == (len(TEXTS), 2) and np.allclose(probabilities.sum(axis=1), 1)
    assert probabilities[0, 0] > probabilities[1, 0]
    assert classifier.predict_proba([]).shape == (0, 2)


def test_scores_do_not_depend_on_the_batch(classifier):
    texts = [*TEXTS, *load_pairs().source[:20], TEXTS[0]]
    together = classifier.predict_proba(texts, batch_size=7)
    alone = np.vstack([classifier.predict_proba([text]) for text in texts])
    assert np.allclose(together, alone, atol=1e-5) and np.array_equal(together[0], together[-1])


def test_long_text_is_cut_and_said_once(classifier):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        probabilities = classifier.predict_proba(["word " * 20_000, "another " * 9_000, "short"])
    assert np.isfinite(probabilities).all()
    assert sum("cut at 512" in str(warning.message) for warning in caught) == 1


@pytest.mark.parametrize("bad", [["fine", None], [1.0], "one string"])
def test_not_a_list_of_strings(classifier, bad):
    with pytest.raises(TypeError):
        classifier.predict_proba(bad)


def test_ranks_the_embedded_test_pairs(classifier):
    pairs = load_pairs().query("split == 'test'")
    assert evaluate_classifier(classifier, pairs)["pairwise_accuracy"] >= 0.8


def test_weights_and_card_belong_together(classifier):
    folder = packaged_path("subjectivity-minilm")
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert file_sha256(folder / "adapter_model.safetensors") in card
    train = load_pairs().query("split == 'train'")
    assert style.training_text_sha256(train) in card, "the teaching pairs changed: train the classifier again"
    for split in ("validation", "test"):
        result = evaluate_classifier(classifier, load_pairs().query(f"split == '{split}'"))
        row = f"| npov_pairs | {split} | {result['n_pairs']} | {result['accuracy']:.3f} | {result['pairwise_accuracy']:.3f} |"
        assert row in card


def test_adapter_matches_the_training_code():
    """Rank, targets and base of the shipped adapter are the defaults of `train_classifier`."""
    import inspect
    settings = json.loads(packaged_path("subjectivity-minilm/adapter_config.json").read_text(encoding="utf-8"))
    defaults = {name: p.default for name, p in inspect.signature(train_classifier).parameters.items()}
    assert settings["r"] == defaults["rank"] and settings["base_model_name_or_path"] == defaults["base"]
    assert set(settings["target_modules"]) == {"query", "value"}
    assert packaged_path("subjectivity-minilm/adapter_model.safetensors").stat().st_size < 2_000_000
    assert not [p for p in packaged_path("subjectivity-minilm").iterdir() if p.suffix in (".bin", ".pt", ".pkl")]


def test_wnc_figures_of_the_card(classifier):
    if not os.environ.get("TSTEVAL_DATA"):
        pytest.skip("needs the WNC sample: run `tsteval fetch wnc_sample`, then set TSTEVAL_DATA")
    pairs = load_pairs("wnc_sample")
    assert pairs.split.value_counts().to_dict() == {"train": 720, "test": 200, "validation": 80}
    result = evaluate_classifier(classifier, pairs[pairs.split == "test"])
    row = f"| wnc_sample | test | 200 | {result['accuracy']:.3f} | {result['pairwise_accuracy']:.3f} |"
    assert row in packaged_path("subjectivity-minilm/README.md").read_text(encoding="utf-8")


def test_training_repeats_itself_and_round_trips(tmp_path):
    few = load_pairs().query("split == 'train'").head(8)
    first, second = (train_classifier(few, epochs=2, batch_size=4, seed=3) for _ in range(2))
    texts = list(few.source)
    assert np.array_equal(first.predict_proba(texts), second.predict_proba(texts))
    first.save(tmp_path)
    loaded = StyleClassifier.load(str(tmp_path))
    assert np.allclose(loaded.predict_proba(texts), first.predict_proba(texts), atol=1e-5)
    assert not np.allclose(train_classifier(few, epochs=2, batch_size=4, seed=4).predict_proba(texts), first.predict_proba(texts))


def test_training_needs_pairs():
    with pytest.raises(ValueError, match="no pairs"):
        train_classifier(load_pairs().head(0))


def test_csv_pairs(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text("source,target\nA great null.,NA\n", encoding="utf-8")
    assert load_pairs(str(path)).target[0] == "NA"
    path.write_text("source,goal\na,b\n", encoding="utf-8")
    with pytest.raises(ValueError, match="no column target"):
        load_pairs(str(path))
