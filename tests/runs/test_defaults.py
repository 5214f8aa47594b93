"""The metrics of those who name none follow from the columns."""

import pytest

from tsteval.evaluation import evaluate
from tsteval.runs import defaults
from tsteval.runs.defaults import asks_for_style, default_metrics
from tsteval.runs.settings import Settings

NEAR = "bleu chrf bert_score"


@pytest.mark.parametrize(
    ("columns", "names"),
    [
        ("source output target_style", "sti cps fluency"),
        ("source output target_style reference", "bleu sti cps fluency"),
        ("source output", "cps fluency"),
        ("source output reference_2", "bleu cps fluency"),
        ("output reference", NEAR),
        ("question context output", "grounded_in_context relevance avoided_answer readability"),
        ("context output", "grounded_in_context readability"),
        ("question output", "relevance avoided_answer readability"),
        ("question output reference", f"relevance avoided_answer readability {NEAR}"),
        ("output", "fluency acceptability readability"),
        ("output input", "fluency acceptability readability"),
        ("output label", "fluency acceptability readability"),
    ],
)
def test_the_columns_choose(columns, names):
    chosen = default_metrics(columns.split())
    assert [metric.name for metric in chosen.metrics] == names.split()
    for metric in chosen.metrics:
        assert metric.heading(metric.columns[0]) in chosen.why


def test_a_style_that_is_asked_for_adds_its_score():
    assert not asks_for_style(Settings(), ())
    assert asks_for_style(Settings(), ("target_style",))
    assert asks_for_style(Settings(target_style="formal"), ())
    assert asks_for_style(Settings(classifier="formality-minilm"), ())
    with_style = default_metrics(["source", "output"], True)
    assert [metric.name for metric in with_style.metrics] == ["sti", "cps", "fluency"]
    assert "no STI" in default_metrics(["source", "output"]).why


def test_without_spacy_there_is_no_grounding_and_that_is_said(monkeypatch):
    monkeypatch.setattr(defaults.importlib.util, "find_spec", lambda name: None)
    chosen = default_metrics(["context", "output"])
    assert [metric.name for metric in chosen.metrics] == ["readability"]
    assert "grounding needs spaCy" in chosen.why


def test_evaluate_tells_what_was_chosen():
    rows = [{"output": "A mill stands there.", "reference": "A mill stands here."}] * 2
    result = evaluate(rows, n_boot=5)
    assert [metric.name for metric in result.metrics] == NEAR.split()
    assert any("no metrics named" in note for note in result.notes().text)
