"""One evaluation of whole systems: checks, intervals, comparisons, and a report that treats text as text."""

import re
import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
import sacrebleu
import scipy.stats

from tests.own_metrics import Length
from tsteval.attribution import integrated_gradients
from tsteval.bleu import Bleu
from tsteval.core.assets import packaged_path
from tsteval.core.checks import InputError, InputTypeError
from tsteval.core.files import write_whole
from tsteval.core.metric import METRICS, Metric, Scores, find_metric
from tsteval.core.resample import mean_of_sums, mean_statistics, resample_sums
from tsteval.cps import Cps
from tsteval.evaluation import (
    demonstration_pairs,
    evaluate,
    galleries_picture,
    gallery_picture,
    telling_pairs,
)
from tsteval.overlap import chrf
from tsteval.report.galleries import GALLERIES, facts_added
from tsteval.rewriting import load_rewrites
from tsteval.tables.outputs import prepare_pairs

HOSTILE = [
    '<script>alert("1")</script>',
    '"><img src=x onerror=alert(1)>',
    "</p></div>{{ 7 * 7 }}",
    "שלום $x^2$ \u202e",
    "half \ud83d \x00",
]


def table(**changes):
    return pd.DataFrame(
        {
            "source": [
                "The great bridge opened.",
                "A fine day in May.",
                "He claimed that it rained.",
            ],
            "output": ["The bridge opened.", "A day in May.", "He said that it rained."],
            "reference": ["The bridge opened.", "A day in May.", "He said it rained."],
        }
        | changes
    )


@pytest.fixture(scope="module")
def demonstration(classifier, encoder, language_model):
    pairs, attributions = demonstration_pairs(classifier, limit=8)
    own = Cps(attributions=attributions)
    return evaluate(
        pairs,
        [own if name == "cps" else name for name in ("bleu", "sti", "cps", "fluency")],
        classifier=classifier,
        encoder=encoder,
        language_model=language_model,
    )


@pytest.mark.parametrize(
    "frame, words",
    [
        (table().drop(columns="output"), ["no column output", "source, reference"]),
        (table().head(0), ["no rows"]),
        (
            table(output=pd.Series(["a", None, "c"], dtype=object)),
            ["column output, row 1:", "None"],
        ),
        (table(output=["a", np.nan, "c"]), ["column output, row 1:", "NaN"]),
        (table(source=["a", "b", "  "]), ["column source, row 2:", "empty"]),
        (table(output=["a", 3, "c"]), ["column output, row 1:", "expected a string, got int"]),
        (table(output=["a", "b", "x" * 100_000]), ["column output, row 2:", "100,000 characters"]),
        (table(reference=["a", "", "c"]), ["column reference, row 1:", "empty"]),
        (table(system=["a", None, "c"]), ["column system, row 1:"]),
        (table(source=["a", ["b", "c"], "d"]), ["column source, row 1:", "list"]),
        (
            table(source=pd.Series(["a", pd.NA, "d"], dtype=object)),
            ["column source, row 1:", "NA (a missing value)"],
        ),
    ],
)
def test_bad_tables_name_row_and_column(frame, words):
    with pytest.raises(InputError) as caught:
        evaluate(frame, metrics=["bleu"])
    assert all(word in str(caught.value) for word in words), str(caught.value)
    assert "\n" not in str(caught.value)


def test_metrics_that_are_no_list_are_told_in_a_line():
    with pytest.raises(InputTypeError, match=r"must be a list such as .*got .*; leave it out"):
        evaluate(table(), 5)


def test_references_may_be_several():
    frame = table(reference_2=["The bridge was opened.", "", None])
    assert prepare_pairs(frame).references.map(len).tolist() == [2, 1, 1]
    assert prepare_pairs(table(reference_2=["The bridge was opened.", "", pd.NA])).references.map(
        len
    ).tolist() == [2, 1, 1]
    assert prepare_pairs(table(reference=[["a", "b"], ["c"], "d"])).references.map(
        len
    ).tolist() == [2, 1, 1]
    assert prepare_pairs(table().drop(columns="reference")).references.tolist() == [(), (), ()]


@pytest.mark.parametrize(
    "metrics, words",
    [
        (["blue"], "no metric called 'blue'"),
        ([], "at least one metric"),
        ("bleu", "must be a list"),
    ],
)
def test_unknown_metric(metrics, words):
    with pytest.raises(InputError, match=words):
        evaluate(table(), metrics=metrics)


@pytest.mark.parametrize("option", ["threshold=3", "strategy=pda", "unit=letter", "colour=red"])
def test_wrong_options_are_refused_before_a_model_is_loaded(option):
    with pytest.raises(InputError, match=option.partition("=")[0]):
        evaluate(table(), metrics=[f"cps:{option}"], classifier="/nowhere", encoder="/nowhere")


def test_options_beside_their_metric_and_senseless_numbers():
    with pytest.raises(InputTypeError, match="options of a metric stand with it: Bleu"):
        evaluate(table(), metrics=["bleu"], options={"bleu": {"max_order": 2}})
    with pytest.raises(InputError, match="n_boot"):
        evaluate(table(), metrics=["bleu"], n_boot=0)


def test_the_signature_names_how_words_were_attributed(classifier, encoder):
    pairs = table()
    texts = [*pairs.source, *pairs.output]
    given = dict(zip(texts, integrated_gradients(classifier, texts, steps=5, baseline="mask")))
    for metric, method in (
        (Cps(attributions=given), "ig-mask-midpoint-5"),
        (Cps(strategy="pad"), "ig-pad-adaptive-0.05"),
    ):
        result = evaluate(pairs, [metric], classifier=classifier, encoder=encoder)
        assert method in result.signatures["cps"]


def test_bleu_without_references():
    with pytest.raises(InputError, match="no column reference"):
        evaluate(table().drop(columns="reference"), metrics=["bleu"])


def test_unknown_style_names_the_row(classifier):
    with pytest.raises(
        InputError, match="column target_style, row 1: there is no style called 'angry'"
    ):
        evaluate(
            table(target_style=["neutral", "angry", "neutral"]),
            metrics=["sti"],
            classifier=classifier,
        )


def test_intervals_agree_with_scipy():
    values = np.random.default_rng(5).gamma(2, size=50)
    ours = np.quantile(
        mean_of_sums(resample_sums(mean_statistics(values), 4000, seed=1)), [0.025, 0.975]
    )
    theirs = scipy.stats.bootstrap(
        (values,), np.mean, n_resamples=4000, method="percentile"
    ).confidence_interval
    assert np.allclose(ours, theirs, atol=0.06)


def test_bleu_of_a_system_is_sacrebleus():
    frame = table()
    result = evaluate(frame, metrics=["bleu"])
    theirs = sacrebleu.corpus_bleu(list(frame.output), [list(frame.reference)]).score / 100
    assert abs(result.summary().bleu[0] - theirs) < 1e-9


@pytest.mark.ci
def test_summary_lies_inside_its_interval(demonstration):
    summary = demonstration.summary()
    assert list(summary.system) == ["copy", "delete", "human"] and (summary.n == 8).all()
    for column in demonstration.columns:
        assert (summary[f"{column}_low"] <= summary[column] + 1e-12).all()
        assert (summary[column] <= summary[f"{column}_high"] + 1e-12).all()
        assert (
            np.isclose(
                summary.set_index("system")[column]["delete"],
                demonstration.per_pair.query("system == 'delete'")[column].mean(),
            )
            or column == "bleu"
        )


def test_the_copy_is_seen_through(demonstration):
    summary = demonstration.summary().set_index("system")
    assert summary.sti["copy"] == 0 and np.isclose(summary.cps["copy"], 1)
    assert (
        summary.sti["delete"] > 0.1
        and summary.cps["delete"] < 1
        and summary.slor["delete"] < summary.slor["copy"]
    )


@pytest.mark.ci
def test_comparison(demonstration):
    difference = demonstration.compare("delete", "copy").set_index("metric")
    back = demonstration.compare("copy", "delete").set_index("metric")
    assert np.allclose(difference.difference, -back.difference) and np.allclose(
        difference.low, -back.high
    )
    assert difference.p_value.between(0, 1).all() and difference.p_value["sti"] < 0.05
    assert (demonstration.compare("copy", "copy").p_value == 1).all()
    with pytest.raises(InputError, match="no system called 'gpt'; the systems are copy, delete"):
        demonstration.compare("gpt", "copy")


def test_systems_with_other_sources_are_not_compared():
    frame = table(system=["a", "a", "b"])
    result = evaluate(frame, metrics=["bleu"])
    with pytest.raises(InputError, match="no source that is the same"):
        result.compare("a", "b")
    assert "b and a are not compared: they have no source in common" in set(result.notes().text)


def test_same_seed_same_numbers(demonstration):
    pd.testing.assert_frame_equal(demonstration.summary(), demonstration.summary())


def test_signatures_and_models(demonstration):
    assert set(demonstration.signatures) == {"bleu", "sti", "cps", "fluency"}
    assert all(re.fullmatch("[0-9a-f]{64}", checksum) for checksum in demonstration.models.values())
    assert len(demonstration.models) == 3
    for metric in ("sti", "cps", "fluency"):
        assert any(
            checksum[:12] in demonstration.signatures[metric]
            for checksum in demonstration.models.values()
        )


def test_telling_pairs(demonstration):
    chosen = telling_pairs(demonstration, 10)
    assert len(chosen) == 10 and chosen.index.is_unique and chosen.reason.nunique() == 6
    assert len(demonstration.telling_pairs(3)) == 3
    assert (evaluate(table(), metrics=["bleu"]).telling_pairs().reason == "lowest BLEU").all()
    unchanged = demonstration.telling_pairs(24).query("reason == 'unchanged'")
    assert len(unchanged) and (unchanged.output == unchanged.source).all()


class Tags(HTMLParser):
    """Collects the tags and attributes that a browser would see, and the text."""

    def __init__(self):
        super().__init__()
        self.seen = []
        self.words = []

    def handle_starttag(self, tag, attributes):
        self.seen.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.words.append(data)


def test_report_shows_hostile_text_as_text(tmp_path, classifier, encoder):
    frame = pd.DataFrame(
        {
            "source": HOSTILE,
            "output": HOSTILE[1:] + HOSTILE[:1],
            "reference": HOSTILE,
            "system": HOSTILE,
        },
        dtype=object,
    )
    result = evaluate(frame, metrics=["bleu", "sti", "cps"], classifier=classifier, encoder=encoder)
    result.to_html(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    tags = Tags()
    tags.feed(page)
    assert (
        not {"iframe", "object", "link"} & {tag for tag, _ in tags.seen}
        and sum(tag == "script" for tag, _ in tags.seen) == 1
    )
    assert not [key for _, attributes in tags.seen for key in attributes if key.startswith("on")]
    # of three scores a row a system and an axis in both pictures, and one of style against content
    assert sum(tag == "svg" for tag, _ in tags.seen) == 2 * 3 * (len(HOSTILE) + 1) + 1 and not [
        tag for tag, _ in tags.seen if tag == "img"
    ]
    text = "".join(tags.words)
    assert (
        "{{ 7 * 7 }}" in text
        and "49" not in re.sub(r"\d\.\d+", "", text).split()
        and "onerror=alert(1)>" in text
    )
    assert "://" not in page


def test_a_notebook_shows_the_sentence_and_the_picture_first_and_takes_no_text_for_markup(tmp_path):
    hostile = "<b onload=x>\u202e"
    rows = pd.DataFrame(
        {
            "system": ["old"] * 40 + [hostile] * 40,
            "source": [f"source {n}" for n in range(40)] * 2,
            "output": [f"the {n} word" for n in range(40)] + [f"the {n}" for n in range(40)],
            "reference": [f"the {n} word" for n in range(40)] * 2,
        }
    )
    result = evaluate(rows, ["chrf"], n_boot=100)
    page = result._repr_html_()
    sentence, picture = page.index("old is closer to the references."), page.index("<img alt=")
    assert page.index("<p><b>") < sentence < picture < page.index("doubt: old: 40 of 40 outputs")
    tags = Tags()
    tags.feed(page)
    assert not [name for _, given in tags.seen for name in given if name.startswith("on")]
    alt = dict(tags.seen)["img"]["alt"]
    assert "blue circles are better" in alt and "baseline" in alt and alt == result.plot().alt
    assert repr(result) == "Evaluation of 80 outputs of old and <b onload=x>? by chrf"
    alone = evaluate(rows[:40], ["chrf"])._repr_html_()
    assert "<b>40 outputs of the system old.</b>" in alone
    result.report(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == result.render_html()
    with pytest.raises(InputError, match=r"path must end in \.html, got .*report\.pdf"):
        result.report(tmp_path / "report.pdf")


def rewrites():
    """Of the same sources, one system that leaves words out and one that says it in other words."""
    sources = [f"hey can you send me file {n} today please" for n in range(40)]
    cut = [f"can you send file {n} today" for n in range(40)]
    polite = [f"Would you kindly forward document number {n} by this evening?" for n in range(40)]
    return pd.DataFrame(
        {"system": ["cut"] * 40 + ["polite"] * 40, "source": sources * 2, "output": cut + polite}
    )


def test_what_is_compared_with_sources_says_nothing_of_references():
    result = evaluate(rewrites(), ["chrf:against=source"], n_boot=100)
    page = result._repr_html_()
    assert "cut keeps more of the source." in page and "reference" not in page
    assert "doubt: cut: 40 of 40 outputs only leave words of their source out." in page
    report = result.render_html()
    assert "runs of characters shared with the source" in report and "with references" not in report


def test_a_notebook_shows_warnings_and_notes_with_the_result():
    rows = rewrites().rename(columns={"system": "systm"})
    page = evaluate(rows, ["chrf:against=source"], n_boot=10)._repr_html_()
    assert "note: not read: `systm` (did you mean system?)." in page
    rows.loc[3, "output"] = ""
    with pytest.warns(UserWarning, match="without a text"):
        result = evaluate(rows, ["chrf:against=source"], empty="zero", n_boot=10)
    assert "warning: Outputs without a text: 1 of" in result._repr_html_()


def test_a_guessed_name_is_answered_with_those_that_there_are(tmp_path):
    result = evaluate(rewrites(), ["chrf:against=source"], n_boot=10)
    for name in ("better", "table", "to_csv", "best"):
        with pytest.raises(AttributeError, match=r"per_pair, summary\(\), comparisons\(\)"):
            getattr(result, name)
    assert not hasattr(result, "_repr_markdown_")
    assert result.report(tmp_path / "report.html") == tmp_path / "report.html"


@pytest.mark.parametrize(
    "given, told",
    [
        ({"style_model": "formality-minilm"}, r"'style_model' \(it is classifier here\)"),
        ({"metric": ["bleu"]}, r"'metric' \(did you mean metrics\?\)"),
    ],
)
def test_a_setting_that_is_called_otherwise_is_named(given, told):
    with pytest.raises(InputTypeError, match=told):
        evaluate(rewrites(), ["chrf:against=source"], **given)


def test_what_is_no_table_is_told_what_would_be_one():
    with pytest.raises(InputTypeError, match=r"read a file first, as with pandas\.read_csv"):
        evaluate("outputs.csv", ["chrf"])
    with pytest.raises(InputTypeError, match="got one column; take the frame"):
        evaluate(rewrites().output, ["readability"])
    with pytest.raises(InputError, match=r"no metric called 'rogue' \(did you mean rouge\?\)"):
        evaluate(rewrites(), ["rogue"])


def test_write_whole_leaves_nothing_half_written(tmp_path, monkeypatch):
    target = tmp_path / "file.txt"
    target.write_text("before")
    monkeypatch.setattr(
        "tsteval.tables.tables.os.replace", lambda *a: (_ for _ in ()).throw(OSError("disk full"))
    )
    with pytest.raises(OSError):
        write_whole(target, "after")
    assert target.read_text() == "before" and [p.name for p in tmp_path.iterdir()] == ["file.txt"]


@pytest.mark.ci
def test_one_sentence_is_enough(classifier, encoder, language_model):
    result = evaluate(
        table().head(1), classifier=classifier, encoder=encoder, language_model=language_model
    )
    summary = result.summary()
    bounds = [name for name in summary if name.endswith(("_low", "_high"))]
    assert summary.drop(columns=bounds).notna().all(axis=None)
    assert bounds and summary[bounds].isna().all(axis=None)  # one row has a score, and no interval


# ---- metrics of one's own


class Other(Length):
    name = "other"


def test_a_metric_of_ones_own_joins_by_being_passed():
    result = evaluate(table(), ["bleu", Length(unit="characters")])
    assert result.columns == ["bleu", "length"] and result.summary().length[0] == np.mean(
        [len(text) for text in table().output]
    )
    assert "unit:characters" in result.signatures["length"]
    words = evaluate(table(), [Length]).signatures["length"]
    assert words == evaluate(table(), [Length()]).signatures["length"]
    assert words != result.signatures["length"]
    with pytest.raises(InputError, match="two of the metrics write a column called length"):
        evaluate(table(), [Length(), Other()])


def test_a_metric_of_ones_own_has_an_address_that_takes_options():
    named = evaluate(table(), ["tests.own_metrics:Length:unit=characters"])
    assert named.signatures == evaluate(table(), [Length(unit="characters")]).signatures
    assert named.summary().equals(evaluate(table(), [Length(unit="characters")]).summary())


def test_rows_of_many_kinds():
    rows = table().to_dict("records")
    expected = evaluate(table(), ["bleu"]).summary()
    for pairs in (
        rows,
        iter(rows),
        table().to_dict("list"),
        table().set_index(pd.Index([7, 7, 7])),
    ):
        pd.testing.assert_frame_equal(evaluate(pairs, ["bleu"]).summary(), expected)


def test_one_pair_signs_its_row_and_its_corpus_differently():
    result = evaluate(
        pd.DataFrame({"source": ["a c"], "output": ["a b"], "reference": ["a b"]}), ["bleu"]
    )
    assert result.per_pair.bleu[0] == 1 and result.summary().bleu[0] == 0
    assert "eff:no" in result.signatures["bleu"] and "eff:yes" in result.row_signatures["bleu"]


@pytest.mark.ci
def test_every_metric_of_the_registry_can_be_evaluated(classifier, encoder, language_model):
    # link validity would ask the network; a judge wants a criterion, see test_judge.py
    names = [name for name in METRICS if name not in ("link_validity", "judge")]
    frame = table().assign(input=["What opened?", "What day was it?", "What did he say?"])
    result = evaluate(
        frame,
        names,
        classifier=classifier,
        encoder=encoder,
        language_model=language_model,
        n_boot=20,
    )
    summary = result.summary()
    assert (
        set(result.signatures) == set(names)
        and all(result.signatures.values())
        and all(column in summary for column in result.columns)
    )
    page = result.render_html()
    assert all(
        f'<th scope="col" class="number">{result.headings[column]}</th>' in page
        for column in result.columns
    )


@pytest.mark.parametrize(
    "change",
    [
        Cps(threshold=0.2),
        Cps(strategy="pad"),
        Cps(unit="word"),
        Bleu(tokenize="char"),
        Bleu(tokenize=lambda text: text.split()),
        "bleu:lowercase=True",
        {"target_style": "subjective"},
    ],
)
def test_a_changed_option_changes_the_signature(classifier, encoder, change):
    common = {"classifier": classifier, "encoder": encoder, "n_boot": 10}
    settings = change if isinstance(change, dict) else {}
    metrics = {name: find_metric(name) for name in ("bleu", "sti", "cps")}
    plain = evaluate(table(), metrics.values(), **common)
    again = evaluate(table(), metrics.values(), **common)
    if not settings:
        metrics[find_metric(change).name] = change
    changed = evaluate(table(), metrics.values(), **common, **settings)
    assert plain.signatures == again.signatures != changed.signatures


def test_the_summary_of_many_rows_needs_little_memory():
    import tracemalloc

    many = pd.concat([table()] * 4000, ignore_index=True)
    result = evaluate(many, ["bleu", Length], n_boot=500)
    tracemalloc.start()
    result.summary()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20e6


# ---- the systems of chapter 14, and galleries


def test_the_stored_scores_belong_to_the_stored_outputs():
    outputs = load_rewrites().assign(row=lambda table: table.groupby("system").cumcount())
    scores = pd.read_csv(packaged_path("rewrite_scores.csv"))
    assert list(scores.system.unique()) == [*outputs.system.unique(), "parrot"] and scores.drop(
        columns="system"
    ).notna().all(axis=None)
    both = outputs.merge(scores, on=["system", "row"], validate="one_to_one")
    assert len(both) == len(outputs) and np.allclose(
        both.chrf, chrf(both.output, both.source), atol=1e-4
    )


def test_delete_of_the_demonstration_is_the_rewriter(demonstration):
    from tsteval.rewriting import Delete

    rows = demonstration.per_pair[demonstration.per_pair.system == "delete"]
    assert list(rows.output) == Delete().rewrite(rows.source)


def beside():
    given = {
        "source": [
            "The grand hall opened in 1932.",
            "A fine day.",
            "He <b>claimed</b> it.",
            "They stormed out.",
        ]
        * 2,
        "output": [
            "The hall opened.",
            "A fine day.",
            "He said on 3 May it.",
            "They left.",
            "The hall opened in 1932.",
            "A lovely day.",
            "He said it.",
            "They left with Ann.",
        ],
    }
    marks = pd.DataFrame(
        {
            "sti": [0.4, 0.0, 0.5, 0.4, 0.4, -0.2, 0.3, 0.1],
            "cps": [0.6, 1.0, 0.8, 0.9, 0.95, 0.8, 0.95, 0.5],
        }
    )

    class Marked(Metric):
        name = "sti"
        needs = ("source", "output")
        columns = ("sti",)
        question = "style"

        def score(self, rows, models=None):
            return Scores(marks[[self.name]])

    class MarkedContent(Marked):
        name = "cps"
        columns = ("cps",)
        question = "content"

    metrics = [Marked(), MarkedContent()]
    return evaluate(pd.DataFrame(given | {"system": ["mine"] * 4 + ["human"] * 4}), metrics)


def test_galleries_are_drawn_with_their_texts_escaped_and_no_source_twice():
    picture = str(galleries_picture(beside(), ["mine"], n=4))
    assert (
        all(name in picture for name in GALLERIES)
        and "style missed: none" in picture
        and "<b>claimed" not in picture
    )
    assert picture.count("<table") == 4  # as many as there are sources
    assert "(the target)" not in picture and "(the target)" in gallery_picture(
        pd.DataFrame({"source": ["a b"], "output": ["a b"], "target": ["b"], "gap": [0.2]}),
        side="target",
    )
    with pytest.raises(InputError, match="no system called 'yours'"):
        galleries_picture(beside(), ["yours"])
    rows = facts_added(
        pd.DataFrame(
            {"source": ["It rained."], "output": ["It rained on 3 May."], "target": ["It rained."]}
        )
    )
    assert "3, May" in gallery_picture(rows)
    with pytest.raises(InputError, match="side"):
        gallery_picture(rows, side="source")


GROWTH = """
import resource
from tsteval.evaluation import evaluate
from tsteval.style import load_pairs

pairs = load_pairs("npov_pairs").query("source != target").rename(columns={"target": "output"})
pairs = pairs.loc[pairs.source.str.len().sort_values(ascending=False, kind="stable").index]
rows = pairs.assign(reference=pairs.output)[["source", "output", "reference"]]
for chosen in (rows[::10], rows):
    evaluate(chosen.reset_index(drop=True), ["bleu", "sti", "cps", "bert_score"])
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


@pytest.mark.ci
def test_ten_times_the_rows_take_hardly_more_memory():
    """The longest text is among the fewer, so that what grows is what is kept."""
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", GROWTH], capture_output=True, text=True, check=True
    )
    few, many = map(float, run.stdout.split())
    assert many - few < 60, (few, many)  # MB


# ---- the joint number of chapter 15


def test_the_stored_taus_are_those_of_the_stored_means():
    from tsteval.people.systems import kendall_tau

    means = pd.read_csv(packaged_path("joint_means.csv"))
    taus = pd.read_csv(packaged_path("joint_taus.csv"))
    single = taus[~taus.number.str.contains("less")]
    for row in single.itertuples():
        name, _, model = row.set.partition(" ")
        own = means[(means.set == name) & means.system.str.startswith(model)]
        assert np.isclose(kendall_tau(own[row.number], own[row.rating]), row.tau, atol=1e-4)
    assert (taus.low <= taus.tau + 1e-4).all() and (taus.tau <= taus.high + 1e-4).all()
