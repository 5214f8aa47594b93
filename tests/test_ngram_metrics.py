"""The metrics of n-gram models, and n-gram models as language models of an evaluation."""

import numpy as np
import pandas as pd
import pytest

from tsteval.ameliorations import amelioration_1, good_bad_thresholds, log_amelioration_2
from tsteval.core.checks import InputError, InputTypeError
from tsteval.core.metric import METRICS
from tsteval.evaluation import evaluate
from tsteval.models.roles import Models
from tsteval.ngram import NgramLM, WebNgrams
from tsteval.ngram_metrics import (
    SPLITS,
    Amelioration1,
    Amelioration2,
    Ngram,
    ngram_model,
    split_of,
)

NAMES = ("ngram", "amelioration_1", "amelioration_2")
TRAINING = [
    "The cat sat on the mat.",
    "The dog sat on the mat.",
    "A dog ran.",
    "The cat ran after a dog.",
]
ROWS = [
    {"source": "x", "output": "The dog ran after the cat."},
    {"source": "y", "output": "Cat the after ran dog the."},
]
WORDS = [SPLITS["13a-lower"](row["output"]) for row in ROWS]


def own_model(**options):
    return NgramLM(2, padding="arpa", **options).fit(
        [SPLITS["13a-lower"](text) for text in TRAINING]
    )


@pytest.fixture
def files(tmp_path):
    (tmp_path / "corpus.txt").write_text("\n".join(TRAINING), encoding="utf-8")
    own_model().to_arpa(tmp_path / "model.arpa")
    own_model().save(tmp_path / "model.npz")
    return tmp_path


@pytest.mark.parametrize(
    "options", [{"text": "corpus.txt", "order": 2}, {"model": "model.arpa"}, {"model": "model.npz"}]
)
def test_each_way_to_name_a_model_gives_the_scores_of_that_model(files, options):
    options = {
        key: str(files / value) if isinstance(value, str) else value
        for key, value in options.items()
    }
    metrics = [METRICS[name](**options) for name in NAMES]
    rows = evaluate(ROWS, metrics, n_boot=5).per_pair
    lm = own_model()
    good, bad = good_bad_thresholds(lm)
    assert np.allclose(
        rows.ngram, [lm.logprobs([words])[0][:-1].mean() for words in WORDS], atol=1e-6
    )
    assert np.allclose(rows.amelioration_1, amelioration_1(lm, WORDS), atol=1e-6)
    assert np.allclose(
        rows.amelioration_2, log_amelioration_2(lm, WORDS, good=good, bad=bad), atol=1e-5
    )
    assert all(rows[name][0] > rows[name][1] for name in ("ngram", "amelioration_1"))


def test_shares_and_floor_are_options_and_are_signed(files):
    table = pd.DataFrame(ROWS)
    arpa = str(files / "model.arpa")
    second = Amelioration2(model=arpa, good_share=0.1, bad_share=0.6)
    lm = own_model()
    good, bad = good_bad_thresholds(lm, 0.1, 0.6)
    scores = second.score(table, Models({}))
    assert np.allclose(
        scores.frame.amelioration_2, log_amelioration_2(lm, WORDS, good=good, bad=bad), atol=1e-5
    )
    usual = Amelioration2(model=arpa)
    assert second.sign(table, Models({})) != usual.sign(table, Models({}))
    high = Amelioration1(model=arpa, floor=0.5)
    assert (high.score(table, Models({})).frame.amelioration_1 >= np.log(0.5)).all()
    assert "floor:0.5" in high.sign(table, Models({}))


def test_the_language_model_of_the_evaluation_is_taken_if_it_counts(files):
    lm = own_model()
    for given in (lm, str(files / "model.npz")):
        assert ngram_model(Models({"language_model": given})).identity == lm.identity
    assert isinstance(ngram_model(Models({"language_model": "SmolLM2-135M-Instruct"})), WebNgrams)


def test_without_a_word_the_web_is_asked_and_knows_no_end_of_a_sentence():
    models = Models({})
    scores = Ngram().score(pd.DataFrame(ROWS), models)
    web = ngram_model(models)
    words = [SPLITS["web"](row["output"]) for row in ROWS]
    assert (
        split_of(web) == "web"
        and words[0][-1] == "cat"
        and [len(row) for row in web.logprobs(words)] == [6, 6]
    )
    assert [len(row) for row in web.text_logprobs(["the cat"])] == [2]
    assert np.allclose(scores.frame.ngram, [row.mean() for row in web.logprobs(words)])
    assert web.tag in Ngram().sign(pd.DataFrame(ROWS), models)
    assert models.used == {web.name: web.identity}


def test_one_model_serves_all_metrics_of_an_evaluation(files, monkeypatch):
    made = []
    real = NgramLM.load.__func__
    monkeypatch.setattr(
        NgramLM, "load", classmethod(lambda cls, path: made.append(path) or real(cls, path))
    )
    arpa = str(files / "model.arpa")
    evaluate(ROWS, [METRICS[name](model=arpa) for name in NAMES], n_boot=5)
    assert made == [arpa]


def test_a_model_with_capitals_reads_capitals():
    lower, upper = (NgramLM(2).fit([text.split()]) for text in ("the cat", "The cat"))
    assert (split_of(lower), split_of(upper)) == ("13a-lower", "13a")
    assert SPLITS["web"]("Don\u2019t stop, Anne's 2 cats!") == [
        "dont",
        "stop",
        "annes",
        "2",
        "cats",
    ]


def test_an_empty_output_has_no_score(files):
    metric = Ngram(model=str(files / "model.arpa"))
    scores = metric.score(pd.DataFrame({"output": ["", "a dog"]}), Models({}))
    assert np.isnan(scores.frame.ngram[0]) and scores.frame.ngram[1] < 0


@pytest.mark.parametrize(
    "options, words",
    [
        ({"model": "none.arpa"}, "no file 'none.arpa'"),
        ({"text": "none.txt"}, "no file 'none.txt'"),
        ({"model": "corpus.txt"}, "ARPA file"),
        ({"model": "model.arpa", "text": "corpus.txt"}, "beside text"),
        ({"order": 0}, "order"),
        ({"smoothing": "magic"}, "smoothing"),
        ({"text": "latin.txt"}, "UTF-8"),
        ({"model": "broken.arpa"}, r"broken\.arpa"),
        ({"text": "empty.txt"}, r"empty\.txt"),
    ],
)
def test_what_cannot_be_meant_is_named(files, monkeypatch, options, words):
    monkeypatch.chdir(files)
    (files / "latin.txt").write_bytes(b"caf\xe9")
    (files / "broken.arpa").write_text("nothing")
    (files / "empty.txt").write_text("")
    with pytest.raises(InputError, match=words):
        evaluate(ROWS, [Ngram(**options)], n_boot=5)


def test_options_of_the_wrong_kind_are_named():
    with pytest.raises(InputTypeError, match="path"):
        Ngram(model=3)
    for option in ({"good_share": 0}, {"good_share": 0.6, "bad_share": 0.6}):
        with pytest.raises(InputError, match="share"):
            Amelioration2(**option)
    with pytest.raises(InputError, match="floor"):
        Amelioration1(floor=2)
