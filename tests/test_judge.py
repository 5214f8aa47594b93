"""The metric judge: chosen or refused, in evaluate, the command, blocks and a study; what it keeps and tells."""

import json
import math
import warnings

import numpy as np
import pandas as pd
import pytest

from tests.chat_server import chat_server, reply
from tests.test_rewriting import tiny_module, tiny_tokenizer
from tsteval.cli import main
from tsteval.core.checks import InputError
from tsteval.core.metric import METRICS
from tsteval.evaluation import evaluate
from tsteval.judge import JudgeMetric
from tsteval.people.chat_server import KEY_VARIABLE
from tsteval.runs.defaults import default_metrics
from tsteval.scale import evaluate_table

SECRET = "sk-very-secret-0123456789"
TABLE = pd.DataFrame(
    {
        "system": ["a"] * 3 + ["b"] * 3,
        "source": ["One.", "Two.", "Three."] * 2,
        "output": ["1.", "2.", "3.", "I.", "II.", "III."],
    }
)


def four(body, number):
    return reply("4", {"4": math.log(0.6), "5": math.log(0.2)})


def served(address, **options):
    return [JudgeMetric(**{"criterion": "content", "address": address} | options)]


def judged(*arguments, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return evaluate(*arguments, **settings)


def test_it_is_a_metric_and_never_a_default():
    assert (
        METRICS["judge"] is JudgeMetric
        and "judge"
        not in [
            metric.name for metric in default_metrics(["source", "output", "target_style"]).metrics
        ]
        and JudgeMetric.question == ""
    )
    for given, named in (
        ({}, "criterion"),
        ({"criterion": "content"}, "address"),
        ({"criterion": "contents", "model": "x"}, "criterion"),
        ({"criterion": "content", "address": "ftp://a"}, "address"),
        ({"criterion": "content", "model": "x", "scale": (5, 1)}, "scale"),
    ):
        with pytest.raises(InputError) as caught:
            JudgeMetric(**given)
        assert caught.value.argument == named


def test_evaluate_asks_each_question_once_and_signs_what_it_did(tmp_path):
    store = tmp_path / "kept.sqlite"
    with chat_server(four) as (address, seen):
        result = judged(TABLE, served(address), score_cache=store)
        assert (
            np.allclose(result.per_pair.judge, 4.25) and (result.per_pair.judge_reason == "").all()
        )
        assert (
            np.allclose(result.per_pair.judge_label_mass, 0.8)
            and (result.per_pair.judge_tokens == 30).all()
        )
        assert len(seen.bodies) == 1 + 18 and "served-1" in result.signatures["judge"]
        assert result.heading("judge") == "judged content"
        again = judged(TABLE, served(address), score_cache=store)
        assert len(seen.bodies) == 20 and again.per_pair.judge.equals(result.per_pair.judge)


def test_rows_without_an_answer_are_told_and_asked_again(tmp_path):
    store = tmp_path / "kept.sqlite"
    broken = [True]

    def sometimes(body, number):
        return (
            (400, {}, b"no")
            if broken[0] and "III." in body["messages"][0]["content"]
            else four(body, number)
        )

    with chat_server(sometimes) as (address, seen):
        result = judged(TABLE, served(address), score_cache=store)
        assert result.per_pair.judge.isna().tolist() == [False] * 5 + [True]
        assert "400" in result.per_pair.judge_reason[5]
        assert any(
            "1 of 6 outputs have no score" in note.text for note in result.scores["judge"].notes
        )
        broken[0], before = False, len(seen.bodies)
        assert judged(TABLE, served(address), score_cache=store).per_pair.judge.notna().all()
        assert len(seen.bodies) == before + 1 + 3


def test_drawn_answers_are_told():
    with chat_server(lambda body, number: reply("3")) as (address, seen):
        result = judged(TABLE[:1], served(address, samples=2, criterion="Is it polite?"))
        assert result.heading("judge") == "judge's rating"
        assert result.per_pair.judge[0] == 3 and len(seen.bodies) == 1 + 3 * 2
        assert "gave no log-probabilities" in result.scores["judge"].notes[0].text
        assert "2-samples" in result.signatures["judge"]


def test_the_style_of_the_row_is_named():
    with chat_server(four) as (address, seen):
        judged(
            TABLE[:2].assign(target_style=["formal", "informal"]),
            served(address, criterion="style", at_once=1),
        )
        texts = seen.texts()[1:]
        assert all(
            ("asked for: formal" in text) == ("1." in text) for text in texts if "[output" in text
        )


def test_the_command_counts_then_scores_and_never_shows_the_key(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv(KEY_VARIABLE, SECRET)
    monkeypatch.chdir(tmp_path)
    TABLE.to_csv("outputs.csv", index=False)
    with chat_server(four) as (address, seen):
        asked = [
            "evaluate",
            "outputs.csv",
            "--metrics",
            f"judge:criterion=content,address={address}",
            "--cache",
            "kept.sqlite",
            "--output",
            "results",
        ]
        assert (
            main([*asked, "--dry-run"]) == 0
            and not seen.bodies
            and not list(tmp_path.glob("results/*"))
        )
        told = capsys.readouterr().out
        assert "judge: 18 requests with about" in told and "tokens" in told
        assert main(asked) == 0 and len(seen.bodies) >= 19
        assert seen.headers[0]["Authorization"] == f"Bearer {SECRET}"
    written = capsys.readouterr()
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert SECRET.encode() not in path.read_bytes(), path
    assert SECRET not in written.out + written.err and "4.25" in written.out
    assert (
        "served-1"
        in json.loads((tmp_path / "results" / "summary.json").read_text())["signatures"]["judge"]
    )


@pytest.mark.parametrize(
    "options, missing",
    [
        ("", "criterion"),
        (":criterion=content", "address"),
        (":model=SmolLM2-135M-Instruct", "criterion"),
    ],
)
def test_the_command_says_in_a_line_what_was_not_chosen(
    options, missing, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    TABLE.to_csv("outputs.csv", index=False)
    assert main(["evaluate", "outputs.csv", "--metrics", f"judge{options}"]) == 2
    [line] = capsys.readouterr().err.strip().splitlines()
    assert f"--metrics judge:{missing} must be chosen" in line


def test_without_a_judge_a_dry_run_says_that_all_is_computed_here(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    TABLE.to_csv("outputs.csv", index=False)
    assert main(["evaluate", "outputs.csv", "--metrics", "readability", "--dry-run"]) == 0
    first, last = capsys.readouterr().out.strip().splitlines()
    assert first == "readability: computed here, a few seconds"
    assert f"{len(TABLE)} rows would take a few seconds of one processor core" in last
    assert "An estimate" in last and [path.name for path in tmp_path.iterdir()] == ["outputs.csv"]


def test_blocks_give_what_a_whole_table_gives(tmp_path):
    with chat_server(
        lambda body, number: reply(
            "4",
            {"4": math.log(0.5), "2": math.log(0.1 + len(body["messages"][0]["content"]) % 3 / 10)},
        )
    ) as (address, _):
        TABLE.to_csv(tmp_path / "outputs.csv", index=False)
        whole = judged(TABLE, served(address))
        blocks = evaluate_table(
            tmp_path / "outputs.csv",
            tmp_path / "out",
            metrics=served(address),
            block_rows=2,
        )
        assert np.allclose(whole.summary().judge, blocks.summary().judge)


def test_a_model_in_the_process_is_named_with_its_weights(tmp_path):
    tiny_module("causal").save_pretrained(tmp_path)
    tiny_tokenizer().save_pretrained(tmp_path)
    with pytest.raises(InputError, match="no token for"):  # its vocabulary has no digits
        judged(TABLE, [JudgeMetric("content", model=str(tmp_path))])


def test_a_study_takes_a_judge(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(0)
    rows = [
        {
            "system": system,
            "source": f"Source {number}.",
            "output": f"Output {number} of {system}.",
            "criterion": "content",
            "rating": int(generator.integers(1, 6)),
        }
        for system in "ab"
        for number in range(12)
    ]
    pd.DataFrame(rows).to_csv("ratings.csv", index=False)
    with chat_server(
        lambda body, number: reply(
            "4",
            {
                "4": math.log(0.5),
                "1": math.log(0.05 + len(body["messages"][0]["content"]) % 5 / 10),
            },
        )
    ) as (address, seen):
        code = main(
            [
                "study",
                "ratings.csv",
                "--metrics",
                f"judge:criterion=content,address={address},readability",
                "--output",
                "study",
            ]
        )
        assert code == 0, capsys.readouterr().err
        assert seen.bodies and "judge" in capsys.readouterr().out
