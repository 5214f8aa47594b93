"""Training from a file: a run that is killed and taken up, what is written, and the command."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import load_file

from tsteval import cli
from tsteval.core.checks import InputError
from tsteval.core.fetch import asset_path
from tsteval.core.files import file_sha256
from tsteval.style import StyleClassifier
from tsteval.training import cards
from tsteval.training import run as training_run
from tsteval.training.batches import Training
from tsteval.training.cards import measure_style
from tsteval.training.holdout import open_training_file, plan_run
from tsteval.training.loop import train_on_sentences
from tsteval.training.run import Checkpoint, TrainingRun, run_settings, train_on_file
from tsteval.training.trainer import StyleTrainer

from .files import pairs_frame, texts_frame, wnc_line


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A very small encoder with random weights, as a folder."""
    from transformers import AutoTokenizer, BertConfig, BertModel

    tokenizer = AutoTokenizer.from_pretrained(asset_path("all-MiniLM-L6-v2"))
    torch.manual_seed(0)
    model = BertModel(
        BertConfig(
            vocab_size=len(tokenizer),
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=32,
            max_position_embeddings=520,
        )
    )
    folder = tmp_path_factory.mktemp("encoder") / "tiny"
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def few(tiny, **settings):
    return run_settings(
        {"base": tiny, "epochs": 3, "batch_size": 4, "rank": 2, "learning_rate": 1e-2, **settings}
    )


def weights(folder):
    return load_file(next(Path(folder).glob("*.safetensors")))


def same_weights(one, other):
    one = weights(one)
    other = weights(other)
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


# A run that is killed -------------------------------------------------------------------------------------------------


class Killed(Exception):
    pass


def run_with_kills(path, out, settings, kills, monkeypatch, **options):
    """Train; the process dies (an error that nobody catches) in the step behind these, and is started again."""
    loss = StyleTrainer.compute_loss
    left = list(kills)

    def mortal(self, *arguments, **keywords):
        if left and self.state.global_step == left[0]:
            left.pop(0)
            raise Killed
        return loss(self, *arguments, **keywords)

    monkeypatch.setattr(StyleTrainer, "compute_loss", mortal)
    for _ in range(len(kills)):
        with pytest.raises(Killed):
            train_on_file(path, out, settings, **options)
        assert not (Path(out) / "style.json").exists()
        # another process has other generators
        torch.manual_seed(random.randrange(99))
        np.random.seed(3)
    made = train_on_file(path, out, settings, **options)
    assert not left and not (Path(out) / "unfinished").exists()
    return made


def test_a_run_killed_once_ends_with_the_weights_of_one_that_was_not(folder, tiny, monkeypatch):
    rows = {"limit": 30, "share": 0.1}
    train_on_file("pairs.csv", "unbroken", few(tiny, epochs=1), **rows)
    run_with_kills("pairs.csv", "killed", few(tiny, epochs=1), [5], monkeypatch, every=2, **rows)
    assert same_weights("unbroken", "killed")


def test_words_are_taught_by_a_run_that_was_killed_and_the_card_says_how_well(
    folder, tiny, monkeypatch
):
    given = {"method": "words", "epochs": 2}
    rows = {"limit": 40, "share": 0.1}
    whole = train_on_file("pairs.csv", "unbroken", few(tiny, **given), **rows)
    taken_up = run_with_kills(
        "pairs.csv", "killed", few(tiny, **given), [5, 12], monkeypatch, every=2, **rows
    )
    assert same_weights("unbroken", "killed") and taken_up.results == whole.results
    measures = [row["measure"] for row in whole.results]
    assert {"strongest word is an edited one", "a word chosen blindly"} <= set(measures)
    card = Path("killed/README.md").read_text()
    assert "strongest word is an edited one" in card and "Validation also chose the bias" in card
    assert StyleClassifier.load("killed").scores_words


def test_words_need_pairs(folder):
    with pytest.raises(InputError, match="method=words needs pairs"):
        run_settings({"method": "words"}, open_training_file("texts.jsonl"))


@pytest.mark.all
@pytest.mark.parametrize(
    "name, settings",
    [
        ("pairs.csv", {}),
        ("texts.jsonl", {"mask_share": 0.2}),
        ("pairs.csv", {"method": "full", "patience": 1, "epochs": 6}),
        (
            "texts.jsonl",
            {"shuffle": False, "hidden_dropout": 0.3, "method": "full", "pooling": "mean"},
        ),
    ],
)
def test_a_killed_run_ends_with_the_weights_of_one_that_was_not(
    folder, tiny, monkeypatch, name, settings
):
    whole = train_on_file(name, "unbroken", few(tiny, **settings), every=4)
    steps = sum(-(-pairs // 4) for pairs in whole.plan.stream.pairs)
    kills = (
        [3, steps - 1, steps + 2, 2 * steps + 1] if "patience" not in settings else [5, steps + 1]
    )
    taken_up = run_with_kills(name, "killed", few(tiny, **settings), kills, monkeypatch, every=4)
    assert same_weights("unbroken", "killed")
    assert taken_up.results == whole.results and taken_up.doubts == whole.doubts
    cards_written = [Path(out, "README.md").read_text() for out in ("unbroken", "killed")]
    assert cards_written[0].replace("unbroken", "killed") == cards_written[1]


@pytest.mark.all
def test_killed_while_the_classifier_is_written(folder, tiny, monkeypatch):
    """Whatever moment the process dies at, the next one goes on; nothing loads before everything is there."""
    train_on_file("pairs.csv", "unbroken", few(tiny))
    for place in ("calibrate", "measure_style", "write_card"):
        with monkeypatch.context() as patch:
            patch.setattr(training_run, place, lambda *_, **__: (_ for _ in ()).throw(Killed))
            with pytest.raises(Killed):
                train_on_file("pairs.csv", "killed", few(tiny))
        assert not (folder / "killed" / "style.json").exists()
    train_on_file("pairs.csv", "killed", few(tiny))
    assert same_weights("unbroken", "killed")


def test_a_run_of_another_kind_is_not_taken_up(folder, tiny, monkeypatch):
    base = shutil.copytree(tiny, folder / "encoder")
    with monkeypatch.context() as patch:
        patch.setattr(training_run, "calibrate", lambda *_, **__: (_ for _ in ()).throw(Killed))
        with pytest.raises(Killed):
            train_on_file("pairs.csv", "out", few(base, epochs=1), limit=20)
    monkeypatch.setattr(
        training_run, "train_on_stream", lambda *_, **__: pytest.fail("a model was loaded")
    )
    for settings, options, words in [
        ({"learning_rate": 2e-2}, {}, "learning_rate was 0.01 and is 0.02"),
        ({"seed": 1}, {}, "seed was 0 and is 1"),
        ({}, {"share": 0.2}, "validation share was not there and is 0.2"),
        ({}, {"labels": ("loud", "plain")}, "labels was"),
        ({}, {"limit": None}, "limit was 20 and is not there"),
    ]:
        with pytest.raises(InputError, match=words):
            train_on_file(
                "pairs.csv",
                "out",
                few(base, **{"epochs": 1, **settings}),
                **{"limit": 20, **options},
            )
    settings = few(base, epochs=1)
    (base / "config.json").write_text((base / "config.json").read_text() + "\n")
    pairs_frame(59).to_csv("pairs.csv", index=False)
    with pytest.raises(
        InputError,
        match=r"checksum of pairs.csv was [0-9a-f]{12} and is .*checksum of the encoder was",
    ):
        train_on_file("pairs.csv", "out", settings, limit=20)
    with pytest.raises(pytest.fail.Exception, match="was loaded"):  # begun anew
        train_on_file("pairs.csv", "out", settings, limit=20, restart=True)


def command(tiny, out, *more):
    return [
        sys.executable,
        "-c",
        "import sys; from tsteval.cli import main; sys.exit(main())",
        "train",
        "pairs.csv",
        "--output",
        out,
        "--base",
        tiny,
        "--set",
        "rank=2",
        "--epochs",
        "25",
        "--batch-size",
        "4",
        "--learning-rate",
        "0.01",
        "--device",
        "cpu",
        "--checkpoint-every",
        "3",
        *more,
    ]


@pytest.mark.all
def test_killed_by_the_system_at_random_moments(folder, tiny, request):
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(cli.__file__).parents[2]),
        "OMP_NUM_THREADS": "1",
    }
    subprocess.run(command(tiny, "unbroken"), check=True, capture_output=True, env=environment)
    killed = 0
    chance = random.Random(0)
    wanted = request.config.getoption("--kills") or 6
    while killed < wanted:
        process = subprocess.Popen(
            command(tiny, "killed"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
        )
        states = folder / "killed" / "unfinished"
        before = set(states.glob("checkpoint-*/trainer_state.json"))
        while process.poll() is None and not (
            set(states.glob("checkpoint-*/trainer_state.json")) - before
        ):
            time.sleep(0.002)
        time.sleep(chance.random() * 0.4)
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            killed += 1
        process.communicate()
        if (folder / "killed" / "style.json").exists():
            assert same_weights("unbroken", "killed")
            if killed < wanted:
                shutil.rmtree(folder / "killed")
    if not (folder / "killed" / "style.json").exists():
        done = subprocess.run(
            command(tiny, "killed"), check=True, capture_output=True, text=True, env=environment
        )
        assert "going on after step" in done.stderr
    assert same_weights("unbroken", "killed")


# What a run is told ---------------------------------------------------------------------------------------------------


def test_a_file_of_its_own_for_validation(folder, tiny):
    pairs_frame(70).tail(10).to_csv("other.csv", index=False)
    made = train_on_file("pairs.csv", "out", few(tiny, epochs=1), validation="other.csv")
    assert (
        made.plan.rows == {"train": 60, "validation": 10}
        and f"checksum of other.csv: {file_sha256('other.csv')}"
        in Path("out/README.md").read_text()
    )
    with pytest.raises(
        InputError, match=r"--validation texts.jsonl holds texts, but pairs.csv holds pairs"
    ):
        texts = texts_frame().replace({"loud": "subjective", "plain": "neutral"})
        texts.to_json("texts.jsonl", orient="records", lines=True)
        train_on_file("pairs.csv", "never", few(tiny), validation="texts.jsonl")


def test_fields_of_a_run_are_keywords_or_one_value(folder, tiny):
    made = train_on_file(
        "pairs.csv", "out", few(tiny, epochs=1), run=TrainingRun(limit=20, origin="Here."), limit=30
    )
    assert (
        made.plan.rows == {"train": 15, "validation": 15}
        and "- Origin: Here." in Path("out/README.md").read_text()
    )
    with pytest.raises(
        InputError, match=r"no setting called 'limt'; those of a run are columns, limit"
    ):
        train_on_file("pairs.csv", "never", few(tiny), limt=3)


# The full corpus ------------------------------------------------------------------------------------------------------


@pytest.mark.ci
def test_the_full_corpus_is_trained_on_in_pieces_and_taken_up(tmp_path, tiny, monkeypatch):
    path = tmp_path / "biased.word.train"
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(wnc_line(line, 100) for line in range(5_000))
    monkeypatch.setattr(
        open_training_file, "__kwdefaults__", {**open_training_file.__kwdefaults__, "piece": 1_000}
    )
    settings = few(tiny, epochs=1, batch_size=64)
    whole = train_on_file(path, tmp_path / "unbroken", settings)
    assert len(whole.plan.stream.pairs) == 5
    run_with_kills(path, tmp_path / "killed", settings, [20, 45, 70], monkeypatch, every=7)
    assert same_weights(tmp_path / "unbroken", tmp_path / "killed")


@pytest.mark.parametrize(
    "content, words",
    [
        (wnc_line(1) + "2\tbroken\n", "line 2: expected 5 or 7 tab-separated columns, got 2"),
        (
            wnc_line(1) + wnc_line(2).replace("This grand sentence has the letters c.", " "),
            "line 2: src_raw or tgt_raw is empty",
        ),
        (
            wnc_line(1).encode() + wnc_line(2).encode().replace(b"This grand", b"Caf\xe9 grand"),
            "line 2: byte 0xE9 is not UTF-8",
        ),
    ],
)
def test_a_bad_line_of_the_corpus_is_named(tmp_path, tiny, capsys, content, words):
    path = tmp_path / "biased.word.train"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert cli.main(["train", str(path), "--output", str(tmp_path / "out"), "--base", tiny]) == 2
    told = capsys.readouterr().err
    assert (
        told.count("\n") == 1
        and told.count("biased.word.train") == 1
        and words in told
        and not (tmp_path / "out").exists()
    )


# Head or loop ---------------------------------------------------------------------------------------------------------


def test_what_a_file_holds_decides_the_method(folder, monkeypatch):
    pairs, texts = (open_training_file(name) for name in ("pairs.csv", "texts.jsonl"))
    assert [run_settings({}, file).method for file in (pairs, texts, None)] == [
        "head",
        "lora",
        "lora",
    ]
    assert (
        run_settings({}, pairs).pooling == "layers"
        and run_settings({"seed": 4, "ranking_weight": 0.5}, pairs).method == "head"
    )
    assert (
        run_settings({}, texts).learning_rate == training_run._RECIPE["learning_rate"]
        and run_settings({}, texts).pooling == "mean"
    )
    for given in (
        {"epochs": 2},
        {"learning_rate": 0.1},
        {"rank": 4},
        {"pooling": "mean"},
        {"method": "lora"},
        {"patience": 1},
    ):
        assert run_settings(given, pairs).method == "lora", given
    for given in ({"penalty": 1.0}, {"method": "head"}, {"pooling": "layers"}):
        assert (
            run_settings(given, texts).method == "head"
            and run_settings(given, texts).pooling == "layers"
        ), given
    assert run_settings({"method": "full"}, pairs).method == "full"
    monkeypatch.setattr(training_run, "MOST_VECTORS", 119)  # sixty pairs are 120 sentences
    assert run_settings({}, pairs).method == "lora"
    monkeypatch.setattr(training_run, "MOST_VECTORS", 120)
    assert run_settings({}, pairs).method == "head"


@pytest.mark.parametrize(
    "given, words",
    [
        (
            {"method": "head", "epochs": 3},
            "epochs has no effect with method=head; leave it out, or set method=lora or full",
        ),
        ({"penalty": 3.0, "rank": 3}, "penalty has no effect with method=lora"),
        ({"method": "full", "penalty": 3.0}, "penalty has no effect with method=full"),
        (
            {"pooling": "layers", "learning_rate": 0.1},
            "learning_rate has no effect with method=head",
        ),
        ({"method": "lora", "word_weight": 3.0}, "word_weight has no effect with method=lora"),
        ({"method": "half", "penalty": 1}, "method must be one of"),
        ({"method": "head", "pooling": "mean"}, "go together"),
    ],
)
def test_a_setting_without_effect_is_refused(folder, given, words):
    for file in (None, open_training_file("pairs.csv"), open_training_file("texts.jsonl")):
        with pytest.raises(InputError, match=words):
            run_settings(given, file)


def test_pairs_get_a_head(folder, tiny, capsys):
    assert (
        cli.main(["train", "pairs.csv", "--output", "out", "--base", tiny, "--device", "cpu"]) == 0
    )
    told = capsys.readouterr()
    assert (
        "20 pairs for validation; method head" in told.err
        and "--style-model ./out --target-style neutral" in told.out
    )
    assert sorted(path.name for path in Path("out").iterdir()) == [
        "README.md",
        "adapter_config.json",
        "head.safetensors",
        "style.json",
    ]
    card = Path("out/README.md").read_text()
    classifier = StyleClassifier.load("out")
    assert (
        "A linear head over all layers of tiny, which was left as it is" in card
        and file_sha256("out/head.safetensors") in card
    )
    assert "method head, pooling layers" in card and "LoRA" not in card
    pairs = pairs_frame()
    assert (
        np.mean(
            classifier.predict_proba(pairs.source)[:, 0]
            > classifier.predict_proba(pairs.target)[:, 0]
        )
        == 1
    )
    assert (
        cli.main(["train", "pairs.csv", "--output", "again", "--base", tiny, "--device", "cpu"])
        == 0
    )
    assert same_weights("out", "again")


def test_a_head_that_was_stopped_is_begun_anew(folder, tiny, monkeypatch):
    train_on_file("pairs.csv", "unbroken", {"base": tiny})
    for place in ("train_on_stream", "calibrate", "write_card"):
        with monkeypatch.context() as patch:
            patch.setattr(training_run, place, lambda *_, **__: (_ for _ in ()).throw(Killed))
            with pytest.raises(Killed):
                train_on_file("pairs.csv", "stopped", {"base": tiny})
        assert not Path("stopped/style.json").exists() and not list(
            Path("stopped").glob("unfinished/checkpoint-*")
        )
    train_on_file("pairs.csv", "stopped", {"base": tiny})
    assert same_weights("unbroken", "stopped") and not Path("stopped/unfinished").exists()


def test_a_head_of_a_file_that_is_passed_over(tmp_path, tiny, monkeypatch):
    """Each piece numbers its pairs from 0; the head needs to know which belong together."""
    path = tmp_path / "biased.word.train"
    path.write_text("".join(wnc_line(line) for line in range(90)), encoding="utf-8")
    whole = train_on_file(path, tmp_path / "whole", {"base": tiny})
    monkeypatch.setattr(
        open_training_file, "__kwdefaults__", {**open_training_file.__kwdefaults__, "piece": 20}
    )
    pieces = train_on_file(path, tmp_path / "pieces", {"base": tiny})
    assert len(pieces.plan.stream.pairs) == 5 and len(whole.plan.stream.pairs) == 1
    texts = pairs_frame(10).source
    one, other = (
        StyleClassifier.load(str(tmp_path / name)).predict_proba(texts)
        for name in ("whole", "pieces")
    )
    assert np.allclose(one, other, atol=1e-6)


def test_too_large_a_file_is_not_read_to_its_end_to_find_that_out(tmp_path, monkeypatch):
    path = tmp_path / "biased.word.train"
    path.write_text("".join(wnc_line(line) for line in range(100)) + "broken\n", encoding="utf-8")
    monkeypatch.setattr(training_run, "MOST_VECTORS", 50)
    assert run_settings({}, open_training_file(path, piece=20)).method == "lora"
    with pytest.raises(InputError, match="line 101"):
        run_settings({}, open_training_file(path, piece=200))


def test_an_encoder_without_a_pooling_layer_serves_a_head_and_a_training_of_all_weights(
    folder, tmp_path, capsys
):
    from transformers import AutoTokenizer, DistilBertConfig, DistilBertModel

    tokenizer = AutoTokenizer.from_pretrained(asset_path("all-MiniLM-L6-v2"))
    DistilBertModel(
        DistilBertConfig(
            vocab_size=len(tokenizer),
            dim=8,
            n_layers=1,
            n_heads=2,
            hidden_dim=16,
            max_position_embeddings=520,
        )
    ).save_pretrained("small")
    tokenizer.save_pretrained("small")
    status, _out, err = told_by(
        capsys, "train", "pairs.csv", "--output", "out", "--base", "small", "--device", "cpu"
    )
    assert status == 0, err
    status, _out, err = told_by(
        capsys,
        "train",
        "pairs.csv",
        "--output",
        "whole",
        "--base",
        "small",
        "--device",
        "cpu",
        "--set",
        "method=full",
        "--epochs",
        1,
    )
    assert status == 0, err
    assert "All weights of an encoder" in Path("whole/README.md").read_text()


# What is written ------------------------------------------------------------------------------------------------------


def test_the_card_holds_figures_of_what_was_written(folder, tiny):
    made = train_on_file(
        "pairs.csv", "mine", few(tiny), ("loud", "plain"), origin="Written for a test.", terms="CC0"
    )
    assert sorted(path.name for path in Path("mine").iterdir()) == [
        "README.md",
        "adapter_config.json",
        "adapter_model.safetensors",
        "style.json",
    ]
    written = StyleClassifier.load("mine")
    assert written.labels == ("loud", "plain")
    results = measure_style(written, made.plan.held["validation"], "validation")
    card = Path("mine/README.md").read_text()
    assert cards.markdown_table(results) in card and results == made.results
    assert [row["measure"] for row in results] == [
        "accuracy",
        "the most frequent class",
        "pairwise accuracy",
    ]
    for words in (
        "# mine",
        "Labels a text as one of: loud, plain.",
        "40 pairs to train on (40 of style loud, 40 of style plain), 20 for validation",
        "- Origin: Written for a test.",
        "- Terms: CC0",
        file_sha256("mine/adapter_model.safetensors"),
        file_sha256("pairs.csv"),
        "rank 2",
    ):
        assert words in card, words
    assert str(folder) not in card and all(doubt in card for doubt in made.doubts)
    assert (
        f"temperature {json.loads(Path('mine/style.json').read_text())['temperature']:.3f}" in card
    )


def test_random_labels_give_a_classifier_that_says_so(folder, tiny, capsys, recwarn):
    texts = texts_frame().assign(label=np.random.default_rng(0).permutation(["x", "y"] * 30))
    texts.to_json("texts.jsonl", orient="records", lines=True)
    assert (
        cli.main(
            [
                "train",
                "texts.jsonl",
                "--output",
                "out",
                "--base",
                tiny,
                "--epochs",
                "1",
                "--set",
                "method=full",
                "--share",
                "0.3",
            ]
        )
        == 0
    )
    told = capsys.readouterr()
    assert (
        "warning: Not shown to know anything" in told.out
        and "Not shown to know anything" in Path("out/README.md").read_text()
    )
    assert not [warning for warning in recwarn if "temperature" in str(warning.message)]


def test_train_on_sentences_is_the_same_loop(folder, tiny):
    plan = plan_run(open_training_file("pairs.csv"))
    settings = few(tiny, epochs=2)
    again = train_on_sentences(
        next(iter(plan.stream.pieces())),
        ("subjective", "neutral"),
        plan.held["validation"],
        **{name: getattr(settings, name) for name in Training.__dataclass_fields__},
    )
    made = train_on_file("pairs.csv", "out", settings)
    written = StyleClassifier.load("out")
    assert (
        np.allclose(
            np.log(again.predict_proba(["A fine bridge."])) @ [1, -1] / written.temperature,
            np.log(written.predict_proba(["A fine bridge."])) @ [1, -1],
            atol=1e-4,
        )
        and made.plan.rows["train"] == 40
    )


# The command ----------------------------------------------------------------------------------------------------------


def told_by(capsys, *arguments):
    try:
        status = cli.main([str(argument) for argument in arguments])
    except SystemExit as stop:
        status = stop.code
    told = capsys.readouterr()
    return status, told.out, told.err


def test_from_a_table_to_an_evaluation_in_two_commands(folder, tiny, capsys):
    status, out, err = told_by(
        capsys,
        "train",
        "texts.jsonl",
        "--output",
        "mine",
        "--base",
        tiny,
        "--set",
        "method=full",
        "--epochs",
        8,
        "--batch-size",
        4,
        "--learning-rate",
        0.01,
        "--device",
        "cpu",
    )
    assert status == 0, err
    assert (
        "validation: accuracy" in out
        and "warning: Few texts" in out
        and "--style-model ./mine --target-style loud" in out
        and "--style-model ./mine --target-style plain" in out
    )
    assert (
        "54 texts to train on (27 of style loud, 27 of style plain), 6 texts for validation" in err
    )
    pd.DataFrame(
        {"source": ["The stunning bridge opened."], "output": ["The bridge opened."]}
    ).to_csv("outputs.csv", index=False)
    status, out, err = told_by(
        capsys,
        "evaluate",
        "outputs.csv",
        "--metrics",
        "sti",
        "--style-model",
        "mine",
        "--target-style",
        "plain",
        "--output",
        "results",
    )
    assert (
        status == 0
        and "mine@" in json.loads(Path("results/summary.json").read_text())["signatures"]["sti"]
    ), err
    assert abs(float(pd.read_csv("results/per_pair.csv").sti[0])) <= 1


def test_help_names_every_option(capsys):
    status, out, _ = told_by(capsys, "train", "--help")
    assert status == 0
    for option in (
        "FILE",
        "--output",
        "--labels",
        "--base",
        "--epochs",
        "--batch-size",
        "--learning-rate",
        "--seed",
        "--set",
        "--validation",
        "--share",
        "--limit",
        "--device",
        "--checkpoint-every",
        "--restart",
        "--origin",
        "--terms",
        "--text-column",
        "--split-column",
    ):
        assert option in out


BAD = {
    "columns.csv": (
        "text,style\na,b\n",
        ["neither columns source and target nor text and label", "text, style", "--label-column"],
    ),
    "gap.csv": ("source,target\na,b\nc,\n", ["column target, row 1:", "empty", "counted from 0"]),
    "label.csv": ("text,label\na,x\nb,\n", ["column label, row 1:", "fill it in"]),
    "null.jsonl": ('{"text": "a", "label": null}\n', ["column label, row 0:", "None"]),
    "number.jsonl": (
        '{"text": 3, "label": "x"}\n{"text": "b", "label": "y"}\n',
        ["column text, row 0:", "expected a string"],
    ),
    "one.csv": ("text,label\na,x\nb,x\n", ["2 to 100 different names of styles, got 1: x"]),
    "lonely.csv": ("text,label\na,x\nb,x\nc,y\n", ["one row only of texts labelled y"]),
    "split.csv": (
        "text,label,split\na,x,train\nb,y,dev\n",
        ["column split, row 1", "train, validation, test", "'dev'"],
    ),
    "unheld.csv": (
        "text,label,split\na,x,validation\nb,y,train\nc,x,train\n",
        ["no text of style y is held out"],
    ),
    "untaught.csv": (
        "text,label,split\na,x,validation\nb,y,train\nc,y,validation\n",
        ["no text to train on in style x"],
    ),
    "latin1.csv": (b"text,label\n\xea\xee\xf2,x\n", ["line 2", "0xEA", "UTF-8"]),
    "empty.csv": ("", ["empty"]),
    "what.doc": (b"PK", [".doc", ".csv"]),
    "nothing.csv": (None, ["no such file"]),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files(folder, capsys, tiny, name):
    content, words = BAD[name]
    if content is not None:
        Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    before = sorted(path.name for path in folder.iterdir())
    status, out, err = told_by(capsys, "train", name, "--output", "out", "--base", tiny)
    assert (
        status == 2
        and out == ""
        and err.count("\n") == 1
        and err.startswith(f"tsteval: error: {name}")
    ), err
    assert all(word in err for word in words), err
    assert sorted(path.name for path in folder.iterdir()) == before


@pytest.mark.parametrize(
    "options, words",
    [
        (["--set", "rnk=3"], ["--set NAME must be one of base, method", "'rnk'"]),
        (["--set", "rank"], ["--set rank: write NAME=VALUE"]),
        (["--epochs", "0"], ["epochs must be a whole number of at least 1"]),
        (["--epochs", "two"], ["--epochs"]),
        (["--epochs", "2", "--set", "epochs=3"], ["--set epochs=3: epochs is given twice"]),
        (["--set", "weight_decay=much"], ["weight_decay must be a number"]),
        (
            ["--set", "method=head", "--epochs", "3"],
            ["--set: epochs has no effect with method=head"],
        ),
        (["--set", "shuffle=maybe"], ["shuffle must be one of True, False"]),
        (["--share", "1"], ["--share must be a number above 0 and below 1"]),
        (["--limit", "0"], ["--limit must be a whole number of at least 1"]),
        (["--checkpoint-every", "0"], ["--checkpoint-every must be a whole number of at least 1"]),
        (["--labels", "a,b,c"], ["pairs have two styles"]),
        (["--device", "cuda:9"], ["--device", "invalid choice"]),
        (["--base", "no/such-model"], ["no/such-model"]),
        (["--output", "pairs.csv"], ["--output pairs.csv is a file"]),
        (["--validation", "nothing.csv"], ["--validation nothing.csv: there is no such file"]),
        (
            ["--source-column", "before"],
            ["there is no column before; the columns are source, target"],
        ),
        (["--set", "modules=q_lin"], ["has no layers named q_lin; its layers are", "query"]),
    ],
)
def test_bad_options(folder, capsys, tiny, options, words):
    before = sorted(path.name for path in folder.iterdir())
    arguments = [
        "train",
        "pairs.csv",
        *([] if "--output" in options else ["--output", "out"]),
        *([] if "--base" in options else ["--base", tiny]),
        "--device",
        "cpu",
        *options,
    ]
    status, out, err = told_by(capsys, *arguments)
    told = [line for line in err.splitlines() if line.startswith("tsteval: error:")]
    assert status == 2 and out == "" and len(told) == 1 and "Traceback" not in err, err
    assert all(word in told[0] for word in words), err
    assert sorted(path.name for path in folder.iterdir()) == before


def test_a_finished_classifier_is_not_overwritten_unasked(folder, capsys, tiny):
    arguments = [
        "train",
        "pairs.csv",
        "--output",
        "out",
        "--base",
        tiny,
        "--epochs",
        "1",
        "--set",
        "rank=2",
    ]
    assert told_by(capsys, *arguments)[0] == 0
    status, _out, err = told_by(capsys, *arguments)
    assert status == 2 and "--output out holds a finished classifier" in err
    status, _out, err = told_by(capsys, *arguments, "--restart", "--seed", "5")
    assert status == 0 and "seed 5" in Path("out/README.md").read_text()


def test_interrupted_by_hand(folder, capsys, tiny, monkeypatch):
    monkeypatch.setattr(
        training_run, "train_on_stream", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt)
    )
    status, _out, err = told_by(capsys, "train", "pairs.csv", "--output", "out", "--base", tiny)
    assert status == 130 and "the same command goes on" in err and "Traceback" not in err


# Formality as a style -------------------------------------------------------------------------------------------------


def test_formality_is_a_style_like_any_other(folder, capsys):
    classifier = StyleClassifier.load("formality-minilm")
    assert classifier.labels == ("informal", "formal") and classifier.temperature != 1
    pairs = pd.read_json(
        Path(cli.__file__).parents[1] / "data" / "formality_pairs.jsonl", lines=True
    )
    formal, informal = (
        classifier.predict_proba(pairs[side])[:, 1] for side in ("formal", "informal")
    )
    assert np.mean(formal > informal) >= 0.95 and formal.mean() > 0.9 and informal.mean() < 0.45
    pd.DataFrame({"source": pairs.informal.head(5), "output": pairs.formal.head(5)}).to_csv(
        "outputs.csv", index=False
    )
    status, _, err = told_by(
        capsys,
        "evaluate",
        "outputs.csv",
        "--metrics",
        "sti",
        "--style-model",
        "formality-minilm",
        "--target-style",
        "formal",
        "--output",
        "results",
    )
    assert status == 0, err
    assert (pd.read_csv("results/per_pair.csv").sti > 0).all()


def state(folder, step, whole=True):
    made = folder / f"checkpoint-{step}"
    made.mkdir(parents=True)
    if whole:
        (made / "trainer_state.json").write_text(json.dumps({"global_step": step}))
    return made


def test_a_state_that_was_not_written_to_its_end_is_passed_over(tmp_path):
    checkpoint = Checkpoint(tmp_path / "a", {"x": (1, 2)})
    assert checkpoint.last() is None and checkpoint.step() == 0
    checkpoint.begin()
    whole = state(tmp_path / "a", 9)
    broken = state(tmp_path / "a", 12, whole=False)
    (broken / "trainer_state.json").write_text('{"global_step": 1')
    again = Checkpoint(tmp_path / "a", {"x": [1, 2]})
    assert again.last() == whole and again.step() == 9
    again.begin()
    assert whole.exists() and not broken.exists()


def test_what_changed_is_named(tmp_path):
    Checkpoint(tmp_path, {"seed": 0, "sum": "a" * 64, "gone": 1}).begin()
    state(tmp_path, 3)
    other = Checkpoint(tmp_path, {"seed": 1, "sum": "b" * 64})
    with pytest.raises(InputError) as error:
        other.last()
    message = str(error.value)
    assert all(
        words in message
        for words in (
            "seed was 0 and is 1",
            f"sum was {'a' * 12} and is {'b' * 12}",
            "gone was 1 and is not there",
            "--restart",
        )
    )
    (tmp_path / "run.json").write_text("[")
    with pytest.raises(InputError, match=r"run.json cannot be read.*--restart"):
        other.last()
    with pytest.raises(InputError, match="checkpoint_every must be a whole number"):
        Checkpoint(tmp_path / "x", {}, 0)
