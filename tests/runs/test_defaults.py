"""The metrics of those who name none follow from the columns."""

import pandas as pd
import pytest

from tsteval.core.metric import find_metric
from tsteval.evaluation import evaluate
from tsteval.runs import defaults
from tsteval.runs.defaults import asks_for_style, default_metrics, style_notes
from tsteval.runs.settings import Settings
from tsteval.scale import evaluate_table

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


def test_a_style_that_nobody_named_is_told():
    metrics = [find_metric(name) for name in ("bleu", "sti")]
    [note] = style_notes(metrics, ["source", "output"], Settings(), ())
    assert note.text.startswith("STI: no style was named, so every output is to reach neutral")
    assert not note.warning
    for asked, columns, settings, given in (
        (["bleu", "cps"], ["source"], Settings(), ()),
        (["sti:target=neutral"], ["source"], Settings(), ()),
        (["sti"], ["source", "target_style"], Settings(), ()),
        (["sti"], ["source"], Settings(target_style="formal"), ()),
        (["sti"], ["source"], Settings(), {"target_style": "neutral"}),
    ):
        assert style_notes(map(find_metric, asked), columns, settings, given) == ()


def test_evaluate_and_a_table_on_disk_tell_the_style_that_nobody_named(tmp_path):
    rows = pd.DataFrame({"source": ["The awful mill stands."], "output": ["The mill stands."]})
    rows.to_csv(tmp_path / "rows.csv", index=False)
    told = "STI: no style was named"
    for given, times in (({}, 1), ({"target_style": "neutral"}, 0)):
        options = {"n_boot": 5, "metrics": ["sti"], **given}
        whole = evaluate(rows, **options)
        folder = tmp_path / f"run{times}"
        batches = evaluate_table(tmp_path / "rows.csv", folder, **options)
        for result in (whole, batches):
            assert result.notes().text.str.startswith(told).sum() == times


def test_outputs_alone_are_not_called_copies_of_a_source():
    rows = [{"system": name, "output": f"{name} saw mill {n}."} for name in "ab" for n in range(8)]
    result = evaluate(rows, ["readability", "perplexity"], n_boot=5)
    assert [row["unchanged"] for row in result.tallies()] == [0, 0]


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
