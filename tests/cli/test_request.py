"""What is found wrong before any model is loaded."""
import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import OWN, ROWS, refused, run, write
from tsteval.cli.request import metric_names
from tsteval.core.checks import InputError


@pytest.mark.parametrize("arguments, words", [
    (["--metrics", "blue"], ["error: --metrics: there is no metric called 'blue' (did you mean bleu?)",
                             "bleu, rouge, sti, cps, ngram"]),
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
          "--n-boot": "7", "--seed": "9", "--cache": "d", "--models": "base",
          "--references-as": "people"}  # each setting of a table in memory, not its default


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


BLOCKED = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "transformers", "captum", "peft"): raise ImportError(f"{name} is blocked")
sys.meta_path.insert(0, Block())
from tsteval.cli import main
sys.exit(main(sys.argv[1:]))
"""


def without_torch(*words):
    environment = {**os.environ, "TSTEVAL_CACHE": os.path.abspath("cache")}
    return subprocess.run([sys.executable, "-c", BLOCKED, *words], capture_output=True, text=True, env=environment,
                          check=False)


def test_counting_metrics_fetch_nothing_and_need_no_torch(folder):
    done = without_torch("evaluate", write("pairs.csv"), "--metrics", "bleu,rouge,chrf")
    assert done.returncode == 0 and "BLEU" in done.stdout and not Path("cache").exists(), done.stderr
    assert "\r" not in done.stderr  # no bar where nobody looks at a terminal


@pytest.mark.parametrize("options, words", [
    (["--target-style", "formal"], ["--target-style: there is no style called 'formal'; formality-minilm has it: "
                                    "--style-model formality-minilm"]),
    (["--target-style", "natural"], ["'natural' (did you mean neutral?)"]),
    (["--style-model", "formality-minilm"], ["--target-style: name the style to be reached", "informal, formal"]),
    (["--style-model", "formality-minilm", "--target-style", "neutral"], ["subjectivity-minilm has it"])])
def test_a_wrong_style_is_told_before_any_model_is_loaded(folder, options, words):
    done = without_torch("evaluate", write("pairs.csv"), "--metrics", "sti", *options)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and all(word in done.stderr for word in words), done


def test_the_styles_of_a_column_are_told_by_their_row(folder):
    rows = [row | {"target_style": style} for row, style in zip(ROWS, ("neutral", "formal"))]
    done = without_torch("evaluate", write("pairs.csv", rows), "--metrics", "sti")
    assert done.returncode == 2 and "pairs.csv: column target_style, row 1: there is no style" in done.stderr


def test_labels_of_a_model_of_transformers_come_from_its_config(folder):
    Path("own").mkdir()
    Path("own/config.json").write_text(json.dumps({"id2label": {"1": "rude", "0": "polite", "10": "x", "2": "y"}}))
    Path("own/model.safetensors").write_bytes(b"")
    rows = [row | {"target_style": style} for row, style in zip(ROWS, ("rude", "loud"))]
    done = without_torch("evaluate", write("pairs.csv", rows), "--metrics", "sti", "--style-model", "./own")
    assert done.returncode == 2 and "column target_style, row 1: there is no style called 'loud'" in done.stderr
    assert "the styles of ./own are polite, rude, y, x" in done.stderr


def test_groups_of_metrics():
    assert set(metric_names("content")) == {"cps", "content"} and "fluency" in metric_names("naturalness")
    assert metric_names("reference,bleu").count("bleu") == 1 and metric_names("style")[0] == "sti"
    with pytest.raises(InputError, match=r"did you mean naturalness"): metric_names("naturalnes")


@pytest.mark.parametrize("options, words", [
    (["--set", "bleu.smoothings=exp"], ["did you mean smoothing?"]),
    (["--metrix", "bleu"], ["did you mean --metrics?"])])
def test_a_near_miss_is_suggested(folder, capsys, options, words):
    refused(capsys, folder, "evaluate", write("pairs.csv"), "--metrics", "bleu", *options, words=words)


def test_empty_outputs_are_skipped_or_counted_as_zero(folder, capsys):
    write("pairs.csv", [*ROWS, ROWS[0] | {"source": "One more.", "output": ""}])
    refused(capsys, folder, "evaluate", "pairs.csv", "--metrics", "rouge", words=["row 2", "line 4 of a spreadsheet"])
    for choice, rows in (("skip", 2), ("zero", 3)):
        status, *_ = run(capsys, "evaluate", "pairs.csv", "--metrics", "rouge", "--empty", choice)
        assert status == 0 and json.loads(Path("tsteval-results/summary.json").read_text())["systems"][0]["n"] == rows
