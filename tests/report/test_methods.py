"""The methods paragraph: every metric's sentence, whom it cites, and the settings."""

import re

from tsteval.core.metric import METRICS
from tsteval.evaluation import evaluate
from tsteval.report import methods


def test_every_metric_says_what_it_is_and_whom_it_follows():
    assert all(metric.methods for metric in METRICS.values()), (
        "a metric lacks its sentence, the field `methods`"
    )
    cited = {
        key
        for sentence in (*(metric.methods for metric in METRICS.values()), *methods._INTERVALS)
        for key in re.findall(r"\w+\d{4}", sentence)
    }
    assert cited == set(methods._WORKS)
    assert all(
        key[-4:] in short and f"({key[-4:]})" in whole
        for key, (short, whole) in methods._WORKS.items()
    )


def test_methods_follow_from_the_metrics(result):
    text, works = methods.methods_paragraph(result)
    assert (
        "(Papineni et al. 2002)" in text
        and "tok 13a" in text
        and "6 outputs of 2 systems" in text
        and "50 bootstrap resamples" in text
        and "on fewer than 30 by swapping their outputs (Noreen 1989)" in text
    )
    assert "own: " not in text and "OWN: a measure of our own (settings: unit x)" in text
    assert (
        "chrF" not in text
        and not re.search(r"\[[a-z]+\d{4}", text)
        and sum("BLEU: a method" in work for work in works) == 1
    )
    assert works == sorted(
        works,
        key=lambda work: next(key for key, (_, whole) in methods._WORKS.items() if whole == work),
    )
    again = evaluate(
        result.per_pair[["system", "source", "output"]].assign(reference="a"),
        ["bleu:tokenize=char"],
        n_boot=5,
    )
    assert "tok char" in methods.methods_paragraph(again)[0]
