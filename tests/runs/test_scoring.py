"""From a table to its scores: rows stay with their scores, whatever a metric's frame looks like, and in whatever
pieces."""

import pickle
import threading
import warnings

import numpy as np
import pandas as pd
import pytest

from tests.own_metrics import metric_of
from tsteval.core.checks import InputError
from tsteval.core.metric import Scores, ScoreWarning
from tsteval.evaluation import evaluate
from tsteval.models.roles import Models
from tsteval.runs import scoring
from tsteval.runs.scoring import (
    _with_worst,
    chosen_metrics,
    joined,
    row_kinds,
    score_table_rows,
)
from tsteval.tables.outputs import prepare_pairs


def pairs(n, systems=("one", "two")):
    return [
        {
            "system": system,
            "source": f"the mill number {row}",
            "output": f"the {system} mill was built in {row}",
            "reference": ["the mill", "a mill"][: 1 + row % 2],
        }
        for system in systems
        for row in range(n)
    ]


def lengths(frame_of, by_row=True):
    """A metric whose frame is made by a function of the table and the lengths."""

    def score(table, models):
        return Scores(frame_of(table, table.output.map(len)))

    return metric_of(score, by_row=by_row)


# ---- a metric's frame


def test_a_frame_in_another_order_is_put_beside_its_rows_by_its_index():
    backwards = lengths(lambda table, n: pd.DataFrame({"length": n})[::-1])
    rows = [{"source": "a", "output": "x" * n} for n in (1, 2, 3)]
    assert evaluate(rows, [backwards], n_boot=5).per_pair.length.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    "frame_of, said",
    [
        (
            lambda table, n: pd.DataFrame({"length": n.to_numpy()}, index=list("abc")[: len(n)]),
            "index=rows.index",
        ),
        (
            lambda table, n: pd.DataFrame({"length": n.to_numpy()}, index=[0] * len(n)),
            "index=rows.index",
        ),
        (
            lambda table, n: pd.DataFrame({"length": n.to_numpy()}, index=range(5, 5 + len(n))),
            "index=rows.index",
        ),
        (lambda table, n: pd.DataFrame({"length": n})[:-1], "2 rows for a table of 3"),
        (lambda table, n: pd.DataFrame({"size": n}), "lacks the column length"),
    ],
)
@pytest.mark.parametrize("by_row", [True, False])
def test_a_frame_with_other_rows_or_columns_is_refused(frame_of, said, by_row):
    with pytest.raises(InputError, match=f"metric length: .*{said}"):
        evaluate(
            [{"source": "a", "output": "x" * n} for n in (1, 2, 3)],
            [lengths(frame_of, by_row)],
            n_boot=5,
        )


def test_another_order_beside_statistics_is_refused():
    def score(table, models):
        return Scores(pd.DataFrame({"x": table.output.map(len)})[::-1], np.ones((len(table), 2)))

    metric = metric_of(score, "x", aggregate=lambda self, sums: sums[..., 0])
    with pytest.raises(InputError, match="its sums have no index"):
        evaluate([{"source": "a", "output": "x"}] * 2, [metric], n_boot=5)


def test_joined_follows_the_index():
    table = prepare_pairs([{"source": "a", "output": text} for text in "xyz"])
    metric = lengths(lambda table, n: n)
    found = joined(
        table, [metric], {"length": Scores(pd.DataFrame({"length": [3, 2, 1]}, index=[2, 1, 0]))}
    )
    assert found.length.tolist() == [1, 2, 3]


# ---- in pieces


def test_pieces_hold_each_row_once_and_sources_together():
    sources = [f"s{row % 300}" for row in range(900)]
    pieces = list(scoring._pieces(sources))
    assert sorted(np.concatenate(pieces)) == list(range(900)) and max(map(len, pieces)) == 256
    assert {sources[row] for row in pieces[0][:255]} == {f"s{n}" for n in range(85)}


@pytest.mark.ci
@pytest.mark.parametrize("size", [1, 7, 64, 10_000])
def test_pieces_of_any_size_give_the_same_scores_signatures_and_order(monkeypatch, size):
    names = [
        "bleu",
        "rouge",
        "chrf",
        "readability",
        lengths(lambda table, n: pd.DataFrame({"length": n})),
    ]
    whole = evaluate(pairs(40), names, n_boot=20)
    monkeypatch.setattr(scoring, "_PIECE", size)
    found = evaluate(pairs(40), names, n_boot=20)
    pd.testing.assert_frame_equal(
        found.per_pair, whole.per_pair, check_dtype=False, rtol=0, atol=1e-12
    )
    pd.testing.assert_frame_equal(found.summary(), whole.summary(), rtol=0, atol=1e-12)
    assert found.signatures == whole.signatures and "nrefs:var" in found.signatures["bleu"]


def test_a_metric_whose_rows_depend_on_each_other_sees_all_of_them(monkeypatch):
    seen = []
    metric = lengths(
        lambda table, n: seen.append(len(table)) or pd.DataFrame({"length": n}), by_row=False
    )
    monkeypatch.setattr(scoring, "_PIECE", 3)
    evaluate(pairs(10), [metric], n_boot=5)
    assert seen == [20]


def test_a_bar_is_told_of_every_row_while_the_work_goes_on():
    ticks = []
    table = prepare_pairs(pairs(300))
    score_table_rows(table, chosen_metrics(["bleu", "rouge"]), Models(), tick=ticks.append)
    assert ticks == [256, 256, 88]


def test_an_error_in_a_piece_names_the_row_of_the_table():
    def refuse(table, models):
        if (bad := table.output.str.contains("449").to_numpy()).any():
            raise InputError("no", column="output", row=int(bad.argmax()))
        return Scores({"x": table.output.map(len)})

    with pytest.raises(InputError, match="column output, row 449: no"):
        evaluate(pairs(500, ("one",)), [metric_of(refuse, "x", by_row=True)], n_boot=5)


def test_a_row_of_each_kind_signs():
    table = prepare_pairs(pairs(4))
    assert row_kinds(table).references.map(len).tolist() == [1, 2]


# ---- zeros between the others


def test_worst_scores_keep_the_other_rows_their_statistics_and_signatures():
    blank = np.array([True, False, True, False])
    scores = Scores(
        pd.DataFrame({"x": [1.0, 2.0], "y": [3.0, 4.0]}),
        np.array([[1.0, 2], [3, 4]]),
        signature="x|a:1",
        row_signature="x|row",
        headings=("X",),
    )
    bare = Scores(scores.frame, np.array([[0.0, 9], [0, 8]]))
    metric = metric_of(lambda rows, models: bare, "x", range=(0.0, 9.0))
    rows = pd.DataFrame({"output": ["", ""], "references": [(), ()]})
    worst = _with_worst(metric, scores, blank, rows, None)
    assert worst.frame.x.tolist() == [0, 1, 0, 2]
    assert worst.frame.y.isna().tolist() == [True, False, True, False]
    assert worst.sums.tolist() == [[0, 9], [1, 2], [0, 8], [3, 4]]
    assert worst.signature == "x|a:1"


# ---- whatever holds the rows


def containers():
    pa = pytest.importorskip("pyarrow")
    pl = pytest.importorskip("polars")
    rows = pairs(6)
    frame = pd.DataFrame(rows)
    yield "a list", rows
    yield "a generator", (row for row in rows)
    yield "a frame with another index", frame.set_axis(range(100, 100 + len(frame)))
    yield "a frame with one name for all rows", frame.set_axis(["x"] * len(frame))
    yield (
        "series with an index of words",
        {name: frame[name].set_axis([f"r{n}" for n in range(len(frame))]) for name in frame},
    )
    yield "categories", frame.astype({"system": "category", "source": "category"})
    yield "polars", pl.DataFrame(rows)
    yield "pyarrow", pa.Table.from_pylist(rows)
    yield "strings of pyarrow", pa.Table.from_pylist(rows).to_pandas(types_mapper=pd.ArrowDtype)


def test_every_container_gives_the_same_scores():
    names = ["bleu", "rouge", lengths(lambda table, n: pd.DataFrame({"length": n}))]
    found = {}
    for name, given in containers():
        found[name] = evaluate(given, names, n_boot=5).per_pair
    for name, table in found.items():
        pd.testing.assert_frame_equal(table, found["a list"], obj=name)
    assert len(found) == 9


# ---- threads, processes


def test_threads_do_not_share_anything(tmp_path):
    whole = evaluate(pairs(30), ["bleu", "rouge"], n_boot=20)
    found = {}

    def run(number):
        found[number] = evaluate(
            pairs(30),
            ["bleu", "rouge"],
            n_boot=20,
            score_cache=tmp_path / "c" if number % 2 else None,
        )

    threads = [threading.Thread(target=run, args=[number]) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in found.values():
        pd.testing.assert_frame_equal(result.per_pair, whole.per_pair, check_dtype=False)
        pd.testing.assert_frame_equal(result.summary(), whole.summary())
    assert len(found) == 6


def _summary(n):
    return evaluate(pairs(n), ["bleu", "rouge"], n_boot=20).summary()


def test_a_spawned_process_gives_the_same_scores():
    import multiprocessing

    with multiprocessing.get_context("spawn").Pool(1) as pool:
        pd.testing.assert_frame_equal(pool.apply(_summary, [20]), _summary(20))


@pytest.mark.parametrize("metric", ["bleu", "rouge", "chrf", "meteor", "readability"])
def test_results_can_be_pickled(metric):
    result = evaluate(pairs(4), [metric], n_boot=20)
    again = pickle.loads(pickle.dumps(result))
    pd.testing.assert_frame_equal(again.summary(), result.summary())
    assert again.signatures == result.signatures and again.notes().equals(result.notes())


# ---- cut texts


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    from tests.test_tone import save_tiny_classifier
    from tsteval.style import StyleClassifier

    folder = tmp_path_factory.mktemp("tiny")
    save_tiny_classifier(folder, ["subjective", "neutral"])
    return StyleClassifier.load(folder)


@pytest.mark.parametrize("cached", [False, True])
def test_cut_texts_are_a_note_with_their_rows_and_stay_one_when_scores_are_found(
    tiny, tmp_path, cached
):
    long = "the mill was built " * tiny.max_tokens
    rows = [
        {
            "source": long if n == 2 else f"the mill {n}",
            "output": long if n in (1, 3) else f"a mill {n}",
        }
        for n in range(12)
    ]
    told = []
    for _ in range(2):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = evaluate(
                rows,
                ["sti"],
                classifier=tiny,
                n_boot=5,
                score_cache=tmp_path / "c" if cached else None,
            )
        assert not [
            str(one.message) for one in caught if one.category is UserWarning
        ]  # a ScoreWarning says it, once
        assert (
            sum("cut at" in str(one.message) for one in caught if one.category is ScoreWarning) == 1
        )
        told.append(result.notes())
    note = next(note for note in told[0].itertuples() if "cut" in note.text)
    assert (
        note.warning
        and note.figures["rows"] == [1, 2, 3]
        and f"cut at {tiny.max_tokens} tokens" in note.text
    )
    assert "rows 1, 2, 3 (3, 4, 5 in a spreadsheet)" in note.text and note.metric == "sti"
    assert told[0].equals(told[1]) and "rows 1, 2, 3" in result.render_html()


def test_a_metric_that_gives_a_series_is_told_in_one_line_what_to_give():
    own = metric_of(lambda rows, models: rows.output.map(len))
    rows = [{"source": f"s{n}", "output": f"o{n}"} for n in range(3)]
    with pytest.raises(
        InputError, match=r"metric length: score gave a Series; return Scores\(frame\)"
    ):
        evaluate(rows, [own])
