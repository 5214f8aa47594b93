"""What is found wrong before any model is loaded."""
import dataclasses
import os
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import OWN, ROWS, refused, run, write


@pytest.mark.parametrize("arguments, words", [
    (["--metrics", "blue"], ["error: --metrics: there is no metric called 'blue' (did you mean bleu?)",
                             "bleu, rouge, sti, cps, fluency"]),
    (["--metrics", "no_module:metric"], ["no_module", "cannot import"]),
    (["--metrics", "json:loads"], ["Metric", "function"]),
    (["--metrics", "bleu", "--set", "bleu.smoothings=exp"],
     ["error: --set bleu.smoothings: bleu has no option 'smoothings'", "smoothing"]),
    (["--metrics", "bleu", "--set", "bleu.smoothing=expo"], ["smoothing", "'expo'"]),
    (["--metrics", "bleu", "--set", "cps.strategy=none"],
     ["error: --set cps.strategy: cps is not among the metrics bleu"]),
    (["--metrics", "bleu", "--set", "strategy"], ["--set strategy", "METRIC.OPTION=VALUE"]),
    (["--metrics", "cps", "--set", "cps.threshold=3"], ["error: --set cps.threshold must be"]),
    (["--n-boot", "0"], ["--n-boot"]),
    (["--metrics", "bleu", "--output", "/proc/none"], ["error: --output /proc/none: cannot be made"]),
    (["--metrics", "bleu", "--cache", "none/scores"],
     ["cache none/scores: name a file in a folder that exists"]),
    (["--device", "abacus"], ["--device"]),
    (["--system", "gpt"], ["no system called 'gpt'"]),
    (["--source-column", "input"], ["no column input", "source, output, reference"]),
    (["--reference-column", "gold"], ["no column gold"]),
    (["--limit", "0"], ["--limit"]),
    (["--limit", "many"], ["--limit"]),
    (["--seed", "-1"], ["--seed"]),
    (["--colour"], ["--colour"]),
    (["--target-style", "angry", "--metrics", "sti"], ["no style called 'angry'", "subjective, neutral"]),
])
def test_bad_options(folder, capsys, arguments, words):
    refused(capsys, folder, "evaluate", write("pairs.csv"), *arguments, words=words)


def test_missing_file_folder_and_occupied_output(folder, capsys):
    write("pairs.csv")
    refused(capsys, folder, "evaluate", "nothing.csv", words=["nothing.csv", "no such file"])
    Path("empty").mkdir()
    refused(capsys, folder, "evaluate", "empty", words=["folder", ".csv"])
    refused(capsys, folder, "evaluate", "pairs.csv", "--metrics", "bleu", "--output", "pairs.csv", words=["--output"])


def test_bleu_asked_for_without_references(folder, capsys):
    rows = [{"source": "a", "output": "b"}]
    refused(capsys, folder, "evaluate", write("x.csv", rows), "--metrics", "bleu",
            words=["x.csv", "no column reference"])


CHOSEN = {"--set": "bleu.smoothing=exp", "--target-style": "subjective", "--empty": "skip", "--style-model": "a",
          "--encoder": "b", "--language-model": "c", "--device": "cpu", "--batch-size": "3", "--baseline": "output",
          "--n-boot": "7", "--seed": "9", "--cache": "d"}  # each setting of a table in memory, not its default


def test_every_setting_is_an_option_and_reaches_the_evaluation(folder, capsys, monkeypatch):
    from tsteval import evaluation
    from tsteval.runs.settings import Settings, list_settings
    flags = [setting.flag for setting in list_settings(False)]
    assert set(flags) <= set(CHOSEN), "give the new setting a value in CHOSEN"
    given, real = {}, evaluation.evaluate
    monkeypatch.setattr(evaluation, "evaluate", lambda pairs, metrics, **options: given.update(options)
                        or real(pairs, metrics, n_boot=5))
    monkeypatch.setattr("tsteval.cli.request.locate_model", lambda *options: None)
    words = [word for flag in flags for word in (flag, CHOSEN[flag])]
    status, _out, err = run(capsys, "evaluate", write("pairs.csv"), "--metrics", "bleu", *words)
    assert status == 0, err
    chosen = Settings(**{name: value for name, value in given.items() if name != "progress"})
    assert all(getattr(chosen, setting.name) != setting.default for setting in list_settings(False))


def never(*options, **more):
    raise AssertionError("nothing may be scored before this is checked")


def test_a_model_that_cannot_be_had_is_found_before_the_first_score(folder, capsys, monkeypatch):
    from tsteval import evaluation
    monkeypatch.setattr(evaluation, "evaluate", never)
    for option in ("--style-model", "--encoder", "--language-model"):
        refused(capsys, folder, "evaluate", write("pairs.csv"), option, "nobody/nothing", words=["nobody/nothing"])


def test_a_default_model_that_cannot_be_had_is_found_on_one_row(folder, capsys, monkeypatch):
    from tsteval.core.assets import AssetError
    from tsteval.fluency import CausalLM
    scored = []
    Path("counting.py").write_text(OWN)
    sys.path.insert(0, str(folder))
    import counting

    def score(table, models):
        scored.append(len(table))
        return counting.score(table, models)

    def load(*options, **more):
        raise AssetError("there is no such model")

    monkeypatch.setattr(counting, "length", dataclasses.replace(counting.length, score=score))
    monkeypatch.setattr(CausalLM, "load", classmethod(load))
    refused(capsys, folder, "evaluate", write("pairs.csv", ROWS * 20), "--metrics", "counting:length,fluency",
            words=["no such model"])
    assert scored == [1]
    sys.path.remove(str(folder))


@pytest.mark.skipif(not hasattr(os, "geteuid") or (os.geteuid() == 0 and not Path("/proc/self").exists()),
                    reason="needs a folder in which nobody can write")
def test_a_folder_that_cannot_be_written_is_found_before_the_first_score(folder, capsys, monkeypatch):
    from tsteval import evaluation
    monkeypatch.setattr(evaluation, "evaluate", never)
    refused(capsys, folder, "evaluate", write("pairs.csv"), "--output", "/proc/none",
            words=["--output /proc/none", "cannot be made"])
    monkeypatch.setattr("tsteval.cli.request.shutil.disk_usage", lambda place: type("Usage", (), {"free": 1_000_000}))
    refused(capsys, folder, "evaluate", "pairs.csv", "--output", "out", words=["--output out", "1.0 MB are free"])
