"""What the package says of scores beside people: the table that ships, its sentences, and figures made again."""

import os

import numpy as np
import pandas as pd
import pytest

from tsteval.core.metric import METRICS, Metric, find_metric
from tsteval.overlap import Chrf
from tsteval.report.evidence import (
    MEASURES,
    _leads,
    beside_people,
    evidence,
    in_words,
    not_shown,
    people_lines,
    score_name,
)
from tsteval.tables.rated_sets import rated_sets, same_tables
from tsteval.tables.ratings import load_ratings

TABLE = evidence()
needs_data = pytest.mark.skipif(
    not os.path.isdir(os.path.join(os.environ.get("TSTEVAL_DATA") or "", "people")),
    reason="set TSTEVAL_DATA to the folder around people/, with the sets that people labelled",
)


def test_each_figure_stands_once_with_its_interval_and_no_text_of_a_set():
    assert not TABLE.duplicated(["data_set", "criterion", "score", "measure"]).any()
    assert set(TABLE.measure) <= set(MEASURES)
    told = TABLE[TABLE.low.notna()]
    assert len(told) > 0.95 * len(TABLE)
    assert (told.low <= told.value + 1e-9).all() and (told.value <= told.high + 1e-9).all()
    assert TABLE.select_dtypes("str").map(lambda cell: len(str(cell)) < 400).all().all()
    lead = TABLE[TABLE.lead.notna()]
    assert np.allclose(lead.lead, lead.value - lead.rival_value, atol=2e-4)


def test_every_set_is_there():
    without_ratings = {"wnc_test"}  # an edit and outputs, rated by nobody
    assert set(rated_sets()) - without_ratings <= set(TABLE.data_set)
    assert {"mir2019", "lai2022", "style_gap", "msr_compression"} <= set(TABLE.data_set)


def test_a_sentence_says_whether_a_trivial_rival_is_beaten():
    row = pd.Series(
        {
            "criterion": "avoided_answer",
            "n": 1200,
            "texts": "answers",
            "measure": "auc",
            "value": 0.8,
            "low": 0.75,
            "high": 0.85,
            "rival": "length",
            "rival_value": 0.6,
            "beats": True,
            "lead_high": 0.3,
        }
    )
    start = "avoided answer of 1,200 answers: AUC 0.80 [0.75, 0.85]"
    assert in_words(row) == f"{start}, better than length 0.60"
    assert in_words(row.replace(True, False)) == f"{start}, not told apart from length 0.60"
    behind = pd.Series({**row, "beats": False, "lead_high": -0.1})
    assert in_words(behind) == f"{start}, worse than length 0.60"
    assert in_words(pd.Series({**row, "rival": np.nan})) == start


def test_a_measure_may_be_asked_for():
    [row] = (
        beside_people(find_metric("bleu"), "systems")
        .query("data_set == 'wmt23_mqm_zhen' and criterion == 'overall'")
        .itertuples()
    )
    assert row.systems == 10 and in_words(row).startswith(
        "quality of 10 systems, by 1,870 translations of news: r of systems 0.8"
    )


def test_options_have_figures_of_their_own_or_none():
    assert (
        score_name(Chrf()) == "chrf" and score_name(Chrf(against="source")) == "chrf:against=source"
    )
    plain, turned = (
        set(beside_people(find_metric(name)).criterion) for name in ("chrf", "chrf:against=source")
    )
    assert "overall" in plain and "content" in turned
    assert people_lines(Chrf(char_order=3)) == ["not shown to follow people with these options"]


def test_a_metric_of_ones_own_was_never_held_beside_people():
    own = type("Own", (Metric,), {"name": "own", "needs": ("output",), "columns": ("own",)})
    assert beside_people(own()).empty and own().asked == ("own",)


def test_every_metric_says_what_is_known_of_it():
    names = [name for name in METRICS if name != "judge"]  # which must be told what it is asked
    measured = [name for name in names if not beside_people(find_metric(name)).empty]
    for name in (
        "bleu",
        "rouge",
        "chrf",
        "meteor",
        "bert_score",
        "fluency",
        "sti",
        "cps",
        "content",
    ):
        assert name in measured
    for name in ("readability", "toxicity", "acceptability", "avoided_answer", "relevance"):
        assert name in measured
    for name in measured:
        assert all(line.count("[") == 1 for line in people_lines(find_metric(name), most=99))


@pytest.mark.parametrize(
    "name", ["bleu", "rouge", "chrf", "sti", "cps", "fluency", "content", "relevance"]
)
def test_a_score_that_leads_a_trivial_one_somewhere_may_give_a_verdict(name):
    metric = find_metric(name)
    assert not_shown(metric, metric.columns[0]) == ""
    leads = TABLE[(TABLE.score == metric.columns[0]) & TABLE.criterion.isin(metric.asked)].lead_low
    assert (leads > 0).any()


def test_why_a_score_may_give_none():
    assert not_shown(find_metric("ter"), "ter") == (
        "was never shown to follow people better than length does"
    )
    assert "words in common with the source" in not_shown(
        find_metric("amelioration_2"), "amelioration_2"
    )
    assert not_shown(find_metric("ngram"), "ngram") == "is not shown to follow people"
    assert not_shown(find_metric("sti"), "target_reached") == "is not shown to follow people"
    judge = find_metric("judge:criterion=fluency,model=SmolLM2-135M-Instruct")
    assert not_shown(judge, "judge") == "is not shown to follow people"
    never = "was not held beside people with char_order=3"
    assert not_shown(Chrf(char_order=3), "chrf") == never
    bleu = "nrefs:{}|case:mixed|eff:no|tok:{}|smooth:exp|version:tsteval-9"
    assert not_shown(find_metric("bleu"), "bleu", bleu.format(4, "13a")) == ""
    other = "was held beside people with tok 13a, not with tok intl"
    assert not_shown(find_metric("bleu"), "bleu", bleu.format(4, "intl")) == other
    assert not_shown(find_metric("sti:target=formal"), "sti") == ""


def test_scores_of_another_model_than_people_saw_say_so():
    """With --models base the larger encoder plays, of which the table knows nothing."""
    signature = "cps|encoder:{}|strategy:none|version:tsteval-9"
    small, base = map(signature.format, ("all-MiniLM-L6-v2@53aa51172d14", "all-mpnet-base-v2@1"))
    other = "held beside people with encoder all-MiniLM-L6-v2, not with encoder all-mpnet-base-v2"
    plain, named = find_metric("cps"), find_metric("cps:encoder=all-MiniLM-L6-v2")
    assert not_shown(plain, "cps", small) == not_shown(named, "cps", small) == ""
    assert not_shown(plain, "cps", base) == f"was {other}"
    assert people_lines(plain, 2, base) == [other]
    assert people_lines(plain, 2, small) == people_lines(plain, 2) and len(people_lines(plain)) > 1
    content = find_metric("content")
    made = TABLE[TABLE.score == "content"].signature.iloc[0]
    assert not_shown(content, "content", made) == ""
    larger = made.replace("all-MiniLM-L6-v2@53aa51172d14", "all-mpnet-base-v2@1")
    assert not_shown(content, "content", larger) == f"was {other}"
    changed = signature.format("all-MiniLM-L6-v2@other")
    assert (
        "encoder all-MiniLM-L6-v2@53aa51172d14, not with encoder all-MiniLM-L6-v2@other"
        in not_shown(plain, "cps", changed)
    )


def leads(*rows):
    frame = pd.DataFrame(rows, columns=["lead", "lead_low", "lead_high"])
    return _leads(frame)


def test_a_lead_counts_all_that_was_tried():
    """Holm's first step: of k leads the largest needs p <= .05 / k, here of a normal distribution."""
    from scipy.stats import norm

    nought = (0.0, -0.1, 0.1)
    for k in (1, 5, 36):
        error = 0.1 / norm.isf(0.025)
        needed = norm.isf(0.025 / k) * error
        others = [nought] * (k - 1)
        for lead, shown in ((needed + 1e-6, True), (needed - 1e-6, False)):
            assert leads((lead, lead - 0.1, lead + 0.1), *others) == shown
    assert not leads((np.nan, np.nan, np.nan)) and not leads((0.0, 0.0, 0.0))
    # what was never compared with a rival does not count as tried
    assert leads((0.11, 0.01, 0.21), (np.nan, np.nan, np.nan))


def test_what_leads_by_chance_alone_gives_no_verdict():
    """Each of these has an interval above 0 somewhere, of so many that some would be there by chance."""
    for name, column, answers in (
        ("amelioration_1", "amelioration_1", False),
        ("wmd", "wmd", True),
        ("rouge", "rouge3", True),
    ):
        metric = find_metric(name)
        rows = TABLE[(TABLE.score == column) & TABLE.criterion.isin(metric.asked)]
        rows = rows[rows.texts.str.contains("answers|replies|summaries")] if answers else rows
        assert (rows.lead_low > 0).any()
        assert "was never shown to follow people" in not_shown(metric, column, answers=answers)


def test_a_score_of_ones_own_has_no_evidence_however_it_is_called():
    own = type("Bleu", (type(find_metric("bleu")),), {"__module__": "mine"})
    assert "a score of your own" in not_shown(own(), "bleu")


def test_fluency_is_not_shown_on_answers():
    """People's ratings of naturalness of summaries and replies are followed no better than by length."""
    why = not_shown(find_metric("fluency"), "pen_lp", answers=True)
    assert why.startswith("was never shown to follow people better than") and "replies" in why
    assert not_shown(find_metric("toxicity"), "toxicity", answers=True) == ""  # tried on none


@needs_data
@pytest.mark.parametrize(
    "data_set, metric, measure",
    [
        ("simplicity_da", "bleu", "pearson"),
        ("simpeval_past", "chrf", "pearson"),
        ("clear", "readability", "pearson"),
        ("grade_dialogue", "meteor", "pearson"),
    ],
)
def test_figures_made_again(data_set, metric, measure):
    """Within reach of the whole script, which takes hours: cheap scores of small sets, by SciPy."""
    from scipy.stats import pearsonr

    from tsteval.evaluation import evaluate
    from tsteval.people.study import rated_outputs

    if not same_tables(data_set):
        pytest.skip("these are other rows than those of the figures")
    rows = TABLE[
        (TABLE.data_set == data_set) & (TABLE.score == metric) & (TABLE.measure == measure)
    ]
    ratings = load_ratings(data_set)
    table = rated_outputs(ratings).drop(columns=["data_set", "item"])
    values = evaluate(table, [metric], n_boot=2).per_pair[metric]
    assert len(rows)
    for row in rows.itertuples():
        human = ratings[ratings.criterion == row.criterion].set_index("item").rating
        assert row.value == pytest.approx(
            pearsonr(values, human.loc[range(len(values))])[0], abs=1e-4
        )
