"""Cross-validation of small files: whole groups in a fold, like shares of each style, an honest figure of a choice."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tsteval.core.checks import InputError
from tsteval.tables.pairs import labelled_sentences, load_pairs
from tsteval.training import folds, run
from tsteval.training.batches import Training
from tsteval.training.folds import choose_method, deal_folds, measure_choice, probabilities_in_folds
from tsteval.training.run import train_on_file

HEAD = Training(method="head", pooling="layers")


def sentences_of(texts, labels, pairs=None):
    frame = pd.DataFrame({"text": texts, "label": labels})
    return frame.assign(pair=np.arange(len(frame)) if pairs is None else pairs, weight=1.0)


def test_rows_that_share_a_text_lie_in_one_fold_and_each_fold_has_its_share_of_each_style():
    texts = sentences_of(
        [f"text {'x' * n}" for n in range(30)] + ["TEXT  XXX", "Text xxx!", f"text {'x' * 25}"],
        [0] * 20 + [1] * 10 + [0, 0, 1],
    )
    group, fold = deal_folds(texts)
    assert (
        fold[3] == fold[30] == fold[31]
        and fold[25] == fold[32]
        and group[3] == group[30] == group[31]
    )
    assert len(set(group)) == 30 and set(fold) == set(range(5))
    by_style = pd.crosstab(fold[:30], texts.label[:30])
    assert (by_style[0] == 4).all() and (by_style[1] == 2).all()


def test_pairs_of_one_source_and_chains_of_shared_texts_stay_together():
    rows = [("a", "b"), ("a", "c"), ("c", "d"), ("e", "f"), ("g", "h"), ("i", "j")]
    pairs = sentences_of([text for row in rows for text in row], [0, 1] * 6, np.repeat(range(6), 2))
    group, fold = deal_folds(pairs, folds=4)
    assert len(set(group[:6])) == 1 and len(set(group)) == 4 and len(set(fold)) == 4
    assert (fold[::2] == fold[1::2]).all()


def test_folds_are_no_more_than_the_rarest_style_has_groups_and_one_is_too_few():
    assert set(deal_folds(sentences_of(list("abcdefg"), [0] * 5 + [1] * 2))[1]) == {0, 1}
    with pytest.raises(InputError, match="lie in one fold"):
        deal_folds(sentences_of(list("abcd"), [0, 0, 0, 1]))


def test_a_label_that_is_turned_only_in_a_fold_does_not_move_what_is_said_of_it():
    pairs = load_pairs().query("split == 'train' and source != target").head(20)
    sentences = labelled_sentences(pairs).reset_index(drop=True)
    _, fold = deal_folds(sentences)
    whole = probabilities_in_folds(sentences, ("s", "n"), fold, HEAD)
    assert whole.shape == (40, 2) and np.allclose(whole.sum(axis=1), 1)
    held = fold == 0
    turned = sentences.assign(label=np.where(held, 1 - sentences.label, sentences.label))
    again = probabilities_in_folds(turned, ("s", "n"), fold, HEAD)
    assert np.allclose(whole[held], again[held]) and not np.allclose(
        whole[~held], again[~held], atol=1e-3
    )


def test_the_better_of_ways_that_know_nothing_is_measured_as_a_coin():
    ways = np.random.default_rng(3).random((300, 60, 6)) < 0.5
    measured = [measure_choice(right, np.arange(60), 200) for right in ways]
    assert ways.mean(axis=1).max(axis=1).mean() > 0.57
    assert np.mean([share for share, _, _ in measured]) == pytest.approx(0.5, abs=0.015)
    assert np.mean([low <= 0.5 <= high for _, low, high in measured]) > 0.9
    assert measure_choice(np.ones((9, 2), dtype=bool), np.repeat(range(3), 3))[0] == 1


def test_the_better_way_is_kept_and_the_first_of_equals(monkeypatch):
    sentences = sentences_of([f"text {'x' * n}" for n in range(40)], [0, 1] * 20)
    said = {"head": 0.6, "lora": 0.9}
    random = np.random.default_rng(0)

    def pretend(sentences, labels, fold, way, device):
        right = np.arange(40) < 40 * said[way.method]
        return np.eye(2)[np.where(random.permutation(right), sentences.label, 1 - sentences.label)]

    monkeypatch.setattr(folds, "probabilities_in_folds", pretend)
    ways = {"head": HEAD, "lora": Training()}
    choice = choose_method(sentences, ("a", "b"), ways, *deal_folds(sentences))
    figures = {row["measure"]: row for row in choice.results}
    assert choice.method == "lora" and "head 0.600" in choice.note and "lora 0.900" in choice.note
    assert figures["accuracy of lora, which the choice saw"]["value"] == pytest.approx(0.9)
    assert figures["accuracy"]["low"] < figures["accuracy"]["value"] <= 0.905
    said["head"] = 0.9
    assert choose_method(sentences, ("a", "b"), ways, *deal_folds(sentences)).method == "head"


def texts_file(tmp_path, number=20):
    pairs = load_pairs().query("split == 'train' and source != target").head(number)
    pd.DataFrame(
        {"text": [*pairs.source, *pairs.target], "label": ["s"] * number + ["n"] * number}
    ).to_csv(tmp_path / "texts.csv", index=False)
    return tmp_path / "texts.csv"


@pytest.mark.ci
def test_labelled_texts_get_the_better_way_and_the_card_says_how_it_was_chosen(tmp_path):
    told = []
    made = train_on_file(texts_file(tmp_path), tmp_path / "out", {}, device="cpu", say=told.append)
    assert "head and lora first measured in 5 folds" in told[0]
    card = Path(tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    figures = {(row["split"], row["measure"]): row for row in made.results}
    both = {
        name: figures["cross-validation", f"accuracy of {name}, which the choice saw"]
        for name in ("head", "lora")
    }
    kept = "head" if both["head"]["value"] >= both["lora"]["value"] else "lora"
    assert f"method {kept}" in card and f"{kept} was kept" in card and f"{kept} was kept" in told[1]
    assert all(
        row["n"] == made.plan.rows["train"] == 36 for row in both.values()
    )  # none of the held-out rows
    assert ("validation", "accuracy") in figures and "had no part in it" in card
    assert f"{both['head']['low']:.3f}" in card


def test_a_head_of_few_rows_is_cross_validated_and_of_many_is_not(tmp_path, monkeypatch):
    file = texts_file(tmp_path)
    made = train_on_file(file, tmp_path / "few", {"method": "head"}, device="cpu")
    figures = {row["split"]: row for row in reversed(made.results)}
    assert figures["cross-validation"]["n"] == 36 and figures["validation"]["n"] == 4
    assert "head was cross-validated" in (tmp_path / "few" / "README.md").read_text(
        encoding="utf-8"
    )
    monkeypatch.setattr(run, "_FEW_ROWS", 36)
    made = train_on_file(file, tmp_path / "many", {"method": "head"}, device="cpu")
    assert {row["split"] for row in made.results} == {"validation"}
