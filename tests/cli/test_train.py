"""`tsteval train`: what is wrong is found first, and the command that it prints loads what it made."""

from pathlib import Path

import pandas as pd
import pytest

from tests.cli.conftest import refused, run
from tests.training.files import pairs_frame

ROWS = [
    {"text": text, "label": label}
    for n in "abcdefghijkl"  # numbers alone tell no texts apart
    for text, label in ((f"Please open door {n}.", "polite"), (f"Open door {n}, now.", "rude"))
]


@pytest.fixture
def texts(folder):
    pd.DataFrame(ROWS).to_csv("manners.csv", index=False)
    return "manners.csv"


@pytest.mark.parametrize(
    "options, words",
    [
        (
            ["--output", "formality-minilm"],
            ["--output: formality-minilm is the name of a model that is shipped"],
        ),
        (
            ["--output", "models/sentiment-minilm"],
            ["--output: sentiment-minilm is the name of a model that is shipped"],
        ),
        (
            ["--output", "out", "--target", "polight"],
            ["--target must be one of polite, rude", "'polight'"],
        ),
        (["--output", "out", "--set", "patience"], ["--set patience: write NAME=VALUE"]),
        (["--output", "out", "--share", "2"], ["--share must be a number above 0 and below 1"]),
        ([], ["--output"]),
    ],
)
def test_what_is_wrong_is_found_before_training(texts, folder, capsys, options, words):
    refused(capsys, folder, "train", texts, *options, words=words)


def test_labelled_texts_print_a_command_for_each_style_and_pairs_one(texts, folder, capsys):
    status, out, err = run(
        capsys, "train", texts, "--output", "out", "--set", "method=head", "--device", "cpu"
    )
    assert status == 0, err
    use = "tsteval evaluate FILE --style-model ./out --target-style"
    assert f"{use} polite" in out and f"{use} rude" in out
    card = Path("out/README.md").read_text()
    assert f"{use} polite\n{use} rude" in card
    status, out, err = run(
        capsys, "train", texts, "--output", "wanted", "--set", "method=head", "--target", "polite"
    )
    assert (
        status == 0
        and "--style-model ./wanted --target-style polite" in out
        and "rude" not in out.split("Written")[1]
    )
    pd.DataFrame({"source": ["Open door 3, now."], "output": ["Please open door 3."]}).to_csv(
        "pairs.csv", index=False
    )
    refused(
        capsys,
        folder,
        "evaluate",
        "pairs.csv",
        "--metrics",
        "sti",
        "--style-model",
        "./wanted",
        words=["--target-style: name the style to be reached; those of ./wanted are polite, rude"],
    )
    words = [
        "evaluate",
        "pairs.csv",
        "--metrics",
        "sti",
        "--style-model",
        "./wanted",
        "--target-style",
        "polite",
    ]
    status, out, err = run(capsys, *words)
    assert status == 0 and float(pd.read_csv("tsteval-results/per_pair.csv").sti[0]) > 0, err


@pytest.mark.ci
def test_a_review_lists_turned_pairs_first_and_trains_nothing(folder, capsys):
    pairs = pairs_frame(60)
    pairs.loc[[3, 17], ["source", "target"]] = pairs.loc[[3, 17], ["target", "source"]].to_numpy()
    pairs.to_csv("pairs.csv", index=False)
    status, out, err = run(
        capsys, "train", "--review", "pairs.csv", "--output", "out", "--device", "cpu"
    )
    assert status == 0, err
    assert {"  1. row 4: " in out, "  1. row 18: " in out} == {True, False} and out.count(
        "-> "
    ) == 10
    assert (
        "read by" in out
        and "all of them" in out
        and [path.name for path in Path("out").glob("[!.]*")] == ["review.csv"]
    )
    written = pd.read_csv("out/review.csv")
    assert len(written) == 60 and set(written.row[:2]) == {4, 18}
    assert written.source[0] == pairs.source[written.row[0] - 1]


def test_a_review_of_labelled_texts_is_refused(texts, folder, capsys):
    refused(
        capsys,
        folder,
        "train",
        "--review",
        texts,
        "--output",
        "out",
        words=["--review: takes a file of pairs"],
    )
