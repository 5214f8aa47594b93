"""Public numbers against other code's, and under every change of form that must not matter."""

import unicodedata

import numpy as np
import pandas as pd
import pytest

import tests.peers.models  # noqa: F401  adds its oracles
from tests.peers.chapters import ORACLES
from tests.peers.oracle import check_changes, numbers

CASES = 5  # draws of an oracle, each of so many rows:
ROWS = 12


def need(corpus):
    """Skip a test whose corpus NLTK does not have here."""
    import nltk

    for place in (corpus, f"{corpus}.zip"):
        try:
            return nltk.data.find(place)
        except LookupError:
            continue
    pytest.skip(f"needs NLTK's {corpus}")


@pytest.mark.parametrize("name", ORACLES)
def test_equals_other_code_and_does_not_depend_on_form(name):
    oracle = ORACLES[name]
    if oracle.needs:
        need(oracle.needs)
    for seed in range(CASES):
        generator = np.random.default_rng(seed)
        data = oracle.draw(generator, ROWS)
        np.testing.assert_allclose(
            numbers(oracle.ours(*data)), numbers(oracle.theirs(*data)), atol=oracle.near, rtol=1e-9
        )
        check_changes(oracle, data, generator)


WRITTEN = [
    {
        "source": "The naïve king asked the well-\nknown queen",
        "output": "The king asked\nthe naïve queen.",
        "reference": "The Ärger of the\nnaïve king was known.",
        "input": "What did the naïve\nking ask?",
    },
    {
        "source": "Zoë was 1,932 days\nold",
        "output": "Zoë was old.",
        "reference": "Zoë is très old",
        "input": "Who is Zoë?",
    },
]


@pytest.mark.parametrize(
    "names",
    [
        [
            "bleu",
            "rouge",
            "chrf",
            "meteor",
            "ter",
            "ngram",
            "amelioration_1",
            "amelioration_2",
            "readability",
            "formality",
        ],
        pytest.param(
            [
                "sti",
                "cps",
                "fluency",
                "perplexity",
                "wmd",
                "bert_score",
                "content",
                "toxicity",
                "acceptability",
                "avoided_answer",
                "grounded_in_context",
                "relevance",
            ],
            marks=pytest.mark.ci,
        ),
    ],
)
def test_no_metric_depends_on_the_program_that_wrote_the_texts(names):
    from tsteval.evaluation import evaluate

    found = []
    for form, end in (("NFC", "\n"), ("NFD", "\r\n")):
        table = [
            {
                column: unicodedata.normalize(form, text).replace("\n", end)
                for column, text in row.items()
            }
            for row in WRITTEN
        ]
        found.append(evaluate(table, names, n_boot=20).per_pair)
    pd.testing.assert_frame_equal(*found, check_exact=True)
    # where a word stands that the other text speaks against, if any does
    places = ["against_output_at", "against_source_at"]
    scores = found[0].select_dtypes("number").drop(columns=places, errors="ignore")
    assert scores.notna().any().all()  # else equal for want of a score
