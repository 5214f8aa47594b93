"""The how-to's table of other libraries: each row's two calls give one number."""

import json
import re
from collections import Counter
from contextlib import contextmanager
from functools import partial
from math import exp, log
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import nltk.corpus
import numpy as np
import pytest
import sacrebleu
from nltk.translate import bleu_score, chrf_score, meteor_score
from nltk.translate.bleu_score import SmoothingFunction
from rouge_score.rouge_scorer import RougeScorer

import tsteval
import tsteval.alignment
from tests.test_overlap import SmallWordNet
from tsteval.bleu import corpus_bleu, sentence_bleu
from tsteval.cps import SentenceEncoder
from tsteval.overlap import chrf, corpus_chrf, corpus_ter, meteor
from tsteval.rouge import rouge, rouge_scores
from tsteval.surface import flesch_reading_ease
from tsteval.text import tokenize

PAGE = Path(__file__).parents[1] / "nbs" / "how_to_in_your_tools.ipynb"
PROSE = "".join(
    "".join(cell["source"])
    for cell in json.loads(PAGE.read_text("utf-8"))["cells"]
    if cell["cell_type"] == "markdown"
)
ROWS = re.findall(r"^\| ([^|`]*) \| `([^`]+)` \| `([^`]+)` \|$", PROSE, re.M)

OUTPUTS = [
    "The kids loved the gift that they got on Monday.",
    "The old mill by the river was built in 1932, they say.",
    "A well-known author wrote 12 books; none of them was sold in town.",
    "They agreed to the plans of the committee.",
]
REFERENCES = [
    "The children loved the present that they got on Monday.",
    "They say that the old mill by the river was built in 1932.",
    "A famous author wrote 12 books, and none of them was sold in town.",
    "The committee agreed to the plan.",
]
word_tokenize = partial(nltk.word_tokenize, preserve_line=True)  # without the model of sentences


def shortest_bleu(predictions, references):
    """What evaluate's script "bleu" computes, without smoothing; evaluate fetches the script from the network."""
    pairs = [(tokenize(output), tokenize(text)) for output, text in zip(predictions, references)]
    lengths = [sum(map(len, texts)) for texts in zip(*pairs)]
    logs = 0.0
    for n in range(1, 5):
        counts = [
            [Counter(zip(*(text[start:] for start in range(n)))) for text in pair] for pair in pairs
        ]
        shared = sum((output & reference).total() for output, reference in counts)
        logs += log(shared / sum(output.total() for output, _ in counts)) / 4
    return {"bleu": exp(logs + min(0, 1 - lengths[1] / lengths[0]))}


def mean_meteor(predictions, references):
    """What evaluate's script "meteor" computes, with NLTK's words."""
    scores = [
        meteor_score.single_meteor_score(
            word_tokenize(text), word_tokenize(output), wordnet=SmallWordNet()
        )
        for output, text in zip(predictions, references)
    ]
    return {"meteor": np.mean(scores)}


SCRIPTS = {"bleu": shortest_bleu, "meteor": mean_meteor}


@pytest.fixture
def names(monkeypatch):
    """What the calls of the table name."""
    monkeypatch.setattr(nltk.corpus, "wordnet", SmallWordNet())
    known = {
        "sacrebleu": sacrebleu,
        "bleu_score": bleu_score,
        "chrf_score": chrf_score,
        "meteor_score": SimpleNamespace(
            meteor_score=partial(meteor_score.meteor_score, wordnet=SmallWordNet())
        ),
        "SmoothingFunction": SmoothingFunction,
        "RougeScorer": RougeScorer,
        "evaluate": SimpleNamespace(load=lambda name: SimpleNamespace(compute=SCRIPTS[name])),
        "word_tokenize": word_tokenize,
        "tsteval": tsteval,
        "SentenceEncoder": SentenceEncoder,
        "outputs": OUTPUTS,
        "references": REFERENCES,
    }
    ours = (corpus_bleu, sentence_bleu, chrf, corpus_chrf, corpus_ter, meteor, rouge, rouge_scores)
    return known | {function.__name__: function for function in (*ours, flesch_reading_ease)}


def needed(call):
    """The modules that a row names and that not every machine with the tests has."""
    modules = {}
    for name, module in (
        ("torchmetrics", "torchmetrics.functional.text"),
        ("bert_score", "bert_score"),
        ("textstat", "textstat"),
    ):
        if call.startswith(f"{name}."):
            pytest.importorskip(module, reason=f"needs {name}, of the extra dev")
            modules[name] = __import__(module)
    return modules


@contextmanager
def counted_by_rule(call):
    """Without the dictionary of syllables that textstat would fetch from the network."""
    if not call.startswith("textstat."):
        yield
        return
    counts = "textstat.backend.counts._count_syllables.get_cmudict"
    with mock.patch("nltk.download"), mock.patch(counts, return_value=None):
        yield


def test_the_table_is_read_whole():
    table = PROSE.partition("| library | its call |")[2].partition("\n\n")[0]
    assert len(ROWS) == len(table.splitlines()) - 2 >= 20
    libraries = [name for name, _, _ in ROWS if name]
    assert libraries == [
        "sacreBLEU",
        "Popović's chrF++.py",
        "NLTK",
        "evaluate",
        "torchmetrics",
        "rouge-score",
        "bert_score",
        "textstat",
    ]


@pytest.mark.parametrize("theirs, ours", [row[1:] for row in ROWS], ids=[row[1] for row in ROWS])
def test_both_calls_of_a_row_give_one_number(theirs, ours, names):
    names |= needed(theirs)
    if "folder" in theirs:
        from tsteval.core.fetch import asset_path

        names["folder"] = str(asset_path("all-MiniLM-L6-v2"))
    single = re.search(r"\boutput\b", theirs)  # of a whole corpus, once is enough
    for output, reference in list(zip(OUTPUTS, REFERENCES))[: None if single else 1]:
        here = names | {"output": output, "reference": reference}
        with counted_by_rule(theirs):
            expected, found = (float(eval(call, dict(here))) for call in (theirs, ours))
        assert found == pytest.approx(expected, rel=1e-5, abs=1e-6) and expected > 0


def test_torchmetrics_leaves_an_output_that_shares_nothing_out_of_a_corpus():
    torchmetrics = pytest.importorskip(
        "torchmetrics.functional.text", reason="needs torchmetrics, of the extra dev"
    )
    theirs = float(
        torchmetrics.chrf_score([*OUTPUTS, "x"], [[text] for text in [*REFERENCES, "y"]])
    )
    ours = corpus_chrf([*OUTPUTS, "x"], [*REFERENCES, "y"], word_order=2, eps_smoothing=True)
    assert theirs > ours + 1e-4
