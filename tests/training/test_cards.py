"""The figures, doubts and text of a card."""

import numpy as np
import pandas as pd
import pytest

from tsteval.core.assets import AssetError
from tsteval.training import cards
from tsteval.training.batches import Training
from tsteval.training.calibration import LOWEST
from tsteval.training.cards import markdown_table, measure_style, training_doubts, write_card
from tsteval.training.holdout import Plan


def test_figures_by_pencil():
    class Fixed:
        scores_words = False

        def predict_proba(self, texts, *_, **__):
            return np.array(
                [
                    {
                        "a": [0.9, 0.1],
                        "b": [0.6, 0.4],
                        "c": [0.2, 0.8],
                        "d": [0.3, 0.7],
                        "e": [0.7, 0.3],
                    }[text]
                    for text in texts
                ]
            )

    sentences = pd.DataFrame(
        {"text": list("abcde"), "label": [0, 1, 0, 1, 1], "pair": [0, 0, 1, 1, 2]}
    )
    rows = {row["measure"]: row for row in measure_style(Fixed(), sentences, "test")}
    assert (
        rows["accuracy"]["value"] == 2 / 5 and rows["the most frequent class"]["value"] == 3 / 5
    )  # a and d are right
    assert (
        rows["pairwise accuracy"]["value"] == 1 / 2 and rows["accuracy on controls"]["value"] == 0
    )
    assert rows["accuracy"]["n"] == 5 and rows["pairwise accuracy"]["n"] == 2


def test_the_doubts():
    def told(classes=(300, 300), held=200, low=0.7, order=0.8, temperature=1.0):
        plan = Plan(
            None, {"validation": pd.DataFrame({"text": ["x"] * held})}, {}, list(classes), 0
        )
        results = [
            {
                "split": "validation",
                "measure": name,
                "n": held,
                "value": value,
                "low": value,
                "high": 1.0,
            }
            for name, value in (
                ("accuracy", low),
                ("the most frequent class", 0.6),
                ("pairwise accuracy", order),
            )
        ]
        return " | ".join(training_doubts(plan, ("a", "b"), results, temperature))

    assert told() == ""
    assert told(classes=(40, 60)).startswith("Few texts: 40 of style a")
    assert "Few texts to measure on: 30" in told(held=30)
    assert "Unbalanced: 2000 texts of style b and 300 of style a" in told(classes=(300, 2000))
    assert "Not shown to know anything" in told(low=0.55) and "Not shown to order pairs" in told(
        order=0.45
    )
    assert "the end of its range" in told(temperature=LOWEST) and "|" not in told(temperature=20)


def test_rows_of_a_table():
    table = markdown_table(
        [{"split": "test", "n": 3, "value": 2 / 3}, {"split": "train", "n": 12, "value": 1.0}]
    )
    assert table.splitlines() == [
        "| split | n | value |",
        "| --- | --- | --- |",
        "| test | 3 | 0.667 |",
        "| train | 12 | 1.000 |",
    ]


def test_a_card_names_weights_by_checksum_and_needs_a_classifier(tmp_path):
    with pytest.raises(AssetError):
        write_card(tmp_path, "# mine", Training(), [{"n": 1}], {})
    (tmp_path / "style.json").write_text(
        '{"labels": ["a", "b"], "pooling": "mean", "temperature": 1.5}'
    )
    (tmp_path / "head.safetensors").write_bytes(b"abc")
    write_card(tmp_path, "# mine", Training(), [{"n": 1}], {"corpus": "f" * 64}, ["Few texts."])
    card = (tmp_path / "README.md").read_text()
    assert card.startswith("# mine\n## Warnings\n\n- Few texts.\n") and "temperature 1.500" in card
    assert (
        "- head.safetensors: ba7816bf8f01cfea414140de5dae2223" in card
        and f"- corpus: {'f' * 64}" in card
    )


@pytest.mark.parametrize(
    "right, n, low, high", [(2, 2, 0.158, 1), (0, 3, 0, 0.708), (9, 10, 0.555, 0.997)]
)
def test_an_accuracy_of_few_has_the_interval_of_a_share(right, n, low, high):
    sentences = pd.DataFrame({"text": ["a gate"] * n, "label": [0] * n, "pair": range(n)})
    probabilities = np.array([[0.9, 0.1]] * right + [[0.1, 0.9]] * (n - right))
    row = cards.figures_of(probabilities, sentences, "validation")[0]
    assert row["measure"] == "accuracy"
    assert (row["low"], row["high"]) == (
        pytest.approx(low, abs=5e-4),
        pytest.approx(high, abs=5e-4),
    )
