"""Chapter 23: names, quantities and dates, and grounding."""

import subprocess
import sys
from functools import partial

import numpy as np
import pandas as pd
import pytest

from tsteval.answers import relevance
from tsteval.core.assets import AssetError
from tsteval.core.checks import InputError
from tsteval.core.metric import find_metric
from tsteval.evaluation import evaluate
from tsteval.grounded import (
    GroundedInContext,
    fact_share,
    fact_spans,
    grounded_in_context,
    mark_facts,
    pair_share,
    word_share,
)
from tsteval.models.roles import Models
from tsteval.people.labels import auc
from tsteval.report.evidence import evidence
from tsteval.tables.rated_sets import same_tables
from tsteval.tables.ratings import load_ratings
from tsteval.words.english import parse

JORDAN = (
    "Michael Jordan (1963) is an American former professional basketball player and businessman. "
)


@pytest.mark.parametrize(
    "question, output, value",
    [
        ("In what year was he born?", "He was born in 1963.", 1.0),
        ("When was Michael born?", "Michael Jeffrey Jordan was born in 1963", 0.5),
        ("What did he achieve?", "He won many NBA championships with the Chicago Bulls", 0.0),
    ],
)
def test_grounding_examples_of_the_page(question, output, value):
    score = grounded_in_context([JORDAN + question], [output], shares="facts")
    assert score.tolist() == [value]


@pytest.mark.parametrize(
    "given_text, output, value",
    [
        ("It opened on 5 May 1963.", "It opened in May 1963.", 1),
        ("It opened on 5 May 1963.", "It opened in 1963.", 1),
        ("It opened in 1963.", "It opened on 5 May 1963.", 0),
        ("It opened in May 1963.", "It opened in June 1963.", 0),
        ("It cost $5m.", "It cost five million dollars.", 1),
        ("It cost $5m.", "It cost 5 million euros.", 0),
        ("It cost $5m.", "It cost 5 million.", 1),
        ("They sold five ships.", "They sold 5 ships.", 1),
        ("anything", "There is nothing to check here.", 1),
        ("", "Paris", 0),
        ("", "no fact", 1),
        ("We met Anna Berg's sister.", "Anna Berg was there.", 1),
        ("Annapolis", "Anna Berg was there.", 0),
    ],
)
def test_grounding(given_text, output, value):
    assert fact_share([given_text], [output]).tolist() == [value]


def test_grounding_does_not_depend_on_the_batch():
    outputs = [
        "Anna Berg built it in 1871.",
        "No facts.",
        "The Danube flows through Vienna and Budapest.",
    ]
    together = grounded_in_context(["Anna Berg lives in Vienna."] * 3, outputs)
    assert together.tolist() == [
        grounded_in_context(["Anna Berg lives in Vienna."], [output])[0] for output in outputs
    ]


def test_pairs_must_be_of_equal_number():
    for function in (grounded_in_context, relevance):
        with pytest.raises(ValueError, match="inputs has 1, outputs has 2"):
            function(["a"], ["b", "c"])
        with pytest.raises(TypeError, match="outputs, row 0"):
            function(["a"], [None])
        assert function([], []).shape == (0,)


def test_the_pipeline_is_loaded_without_a_pickle():
    code = (
        "import pickle, spacy, srsly, srsly.cloudpickle, sys\n"
        "from tsteval.words.english import load_english\n"
        "def refuse(*a, **k): raise AssertionError('a pickle was read')\n"
        "pickle.load = pickle.loads = pickle.Unpickler = srsly.pickle_loads = srsly.cloudpickle.loads = refuse\n"
        "print([name.label_ for name in load_english()('Anna Berg lives in Vienna.').ents])\n"
        "assert not any('en_core_web' in name for name in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 and done.stdout.strip() == "['PERSON', 'GPE']", done.stderr


def test_without_spacy_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(AssetError, match=r"pip install 'tsteval\[properties\]'"):
        grounded_in_context(["a"], ["b"])


def test_the_metric_equals_the_function():
    table = pd.DataFrame(
        {"context": ["Anna Berg built it.", "Who?"], "output": ["Anna Berg", "Anna Berg, in 1871."]}
    )
    models = Models()
    metric = find_metric("grounded_in_context")
    scores = metric.score(table, models)
    assert np.allclose(
        scores.frame.grounded_in_context,
        grounded_in_context(table.context, table.output),
        atol=1e-6,
    )
    assert "en_core_web_sm" in models.used
    assert "en_core_web_sm@e94cbf6c2424" in metric.sign(table, Models())


def test_a_system_that_copies_its_contexts_is_told_beside_the_trivial_rival():
    contexts = [f"Anna Berg built {n} dams. She died in 1871. Nobody knows why." for n in range(8)]
    copies = [f"Anna Berg built {n} dams. Nobody knows why." for n in range(8)]
    said = [f"The {n} dams are works of Anna Berg." for n in range(8)]
    rows = pd.DataFrame(
        {
            "system": ["copier"] * 8 + ["writer"] * 8,
            "context": contexts * 2,
            "output": copies + said,
        }
    )
    metric = GroundedInContext(shares=("words", "pairs"))
    [note] = metric.review(rows, Models())
    assert note.warning and note.text == (
        "copier: 8 of 8 outputs are copied from their context word for word, which is grounded whatever it says or "
        "leaves out. The share of an output's words that are in its context is 100% for copier and 50% for writer."
    )
    assert metric.review(rows[8:].reset_index(drop=True), Models()) == ()
    with pytest.warns(UserWarning, match="copied from their context"):
        page = evaluate(rows, [metric], n_boot=10)._repr_html_()
    assert "warning: copier: 8 of 8 outputs are copied" in page


@pytest.mark.parametrize("scored", [grounded_in_context, partial(relevance, method="words")])
def test_a_text_that_spacy_refuses_is_named_by_its_row(scored):
    long = "a " * 500_001
    with pytest.raises(InputError, match=r"outputs, row 1: .*1,000,002 characters"):
        scored(["a", "b"], ["c", long])
    with pytest.raises(InputError, match=r"inputs, row 0: .*1,000,002 characters"):
        scored([long, "b"], ["c", "d"])


@pytest.mark.parametrize(
    "given, said, share",
    [
        ("It was -5 degrees.", "It was 5 degrees.", 0),
        ("It was 5 degrees.", "It was -5 degrees.", 0),
        ("It was -5 degrees.", "It was minus five degrees.", 1),
        ("It fell by -3%.", "It fell by \u22123 percent.", 1),
        ("From 10-20 people.", "From 10 to 20 people.", 1),
    ],
)
def test_a_minus_sign_is_part_of_a_number(given, said, share):
    assert fact_share([given], [said])[0] == share


def test_facts_are_marked_where_they_stand_and_by_whether_they_are_found():
    given = JORDAN
    output = "Michael Jordan was born in 1963 and played 7 games."
    places, marks = mark_facts(given, output)
    said = [output[start:end] for start, end in places]
    assert said == ["Michael Jordan", "1963", "7"] and marks == [-1, -1, 1]
    [document] = parse([output]).values()
    assert sorted(place for place, _ in fact_spans(document)) == places


def test_the_shares_of_words_and_pairs_by_hand():
    given = "The mill was built in 1871. Anna Berg sold it."
    assert pair_share(given, "Anna Berg was built in 1871.") == 3 / 5
    assert word_share(given, "Anna's mill burnt") == 2 / 3
    assert word_share(given, "") == pair_share(given, "mill") == 1
    assert pair_share("", "the mill") == word_share("", "the mill") == 0
    assert pair_share("It was\nbuilt", "was built") == 0  # a line ends a sentence


def test_the_score_is_the_mean_of_the_shares_that_are_asked_for():
    given = ["It was built in 1871 by Anna Berg."]
    output = ["Anna Berg built it in 1872."]
    parts = [fact_share(given, output)[0]]
    parts += [share(given[0], output[0]) for share in (word_share, pair_share)]
    assert grounded_in_context(given, output)[0] == pytest.approx(np.mean(parts))
    assert grounded_in_context(given, output, shares=("words",))[0] == parts[1]
    assert grounded_in_context(given, ["..."]).tolist() == pytest.approx([np.nan], nan_ok=True)
    with pytest.raises(InputError, match="shares must name at least one of facts, words, pairs"):
        grounded_in_context(given, output, shares=())
    with pytest.raises(InputError, match="shares must name"):
        GroundedInContext(shares=("facts", "sentences"))


def test_a_name_with_an_option_signs_the_shares():
    table = pd.DataFrame({"context": ["It is red."], "output": ["It is blue."]})
    metric = find_metric("grounded_in_context:shares=words")
    assert metric.score(table, Models()).frame.grounded_in_context[0] == pytest.approx(2 / 3)
    assert "shares:words" in metric.sign(table, Models())
    assert "en_core_web_sm" not in metric.sign(table, Models())


def study_of(name):
    """The rated sentences of a set; skips where they, or the rows of the stored figures, are not there."""
    try:
        study, same = load_ratings(name), same_tables(name)
    except AssetError as error:
        pytest.skip(str(error))
    return study if same else pytest.skip("these are other rows than those of the figures")


@pytest.mark.ci
@pytest.mark.parametrize(
    "name, all_three, words", [("qags_cnndm", 0.82, 0.62), ("qags_xsum", 0.76, 0.74)]
)
def test_how_far_it_follows_people(name, all_three, words):
    study = study_of(name)
    labels = study.rating > 0.5
    values = grounded_in_context(list(study.source), list(study.output))
    found = auc(values, labels, study.source_id, n_boot=1000)
    assert round(found.value, 2) == all_three
    stored = evidence().query("data_set == @name and measure == 'auc'").set_index("score")
    ends = stored.loc["grounded_in_context", ["value", "low", "high"]].astype(float)
    assert np.allclose(found[:3], ends, atol=0.002)
    values = grounded_in_context(list(study.source), list(study.output), shares="words")
    assert round(auc(values, labels, n_boot=2).value, 2) == words
