"""Tables in blocks: the same numbers as `evaluate`, whatever the blocks, and after whatever happened on the way.

`--kills N` kills a run N times at random points (3 by default).
"""

import copy
import hashlib
import json
import os
import random
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tsteval.core.checks import InputError, InputTypeError
from tsteval.core.metric import Metric, Scores
from tsteval.evaluation import evaluate
from tsteval.models.base import Model
from tsteval.report.findings import work_out
from tsteval.runs import batches, parts, results, run
from tsteval.scale import evaluate_table
from tsteval.style import load_pairs
from tsteval.tables.blocks import numbered_batches, read_batches, survey_table
from tsteval.tables.formats import FileError
from tsteval.tables.tables import read_table

WORDS = ["bleu", "rouge"]


def rows_of(n, systems=("copy", "mixed"), references=1):
    """Rows of several systems, made of two embedded pairs each, so that no two are alike."""
    pairs = load_pairs("npov_pairs")
    table = []
    for row in range(n):
        one = pairs.iloc[row // len(systems) % len(pairs)]
        two = pairs.iloc[(7 * row + 3) % len(pairs)]
        name = systems[row % len(systems)]
        entry = {
            "system": name,
            "source": f"{one.source} {row // len(systems)}",
            "output": f"{one.source}" if name == "copy" else f"{one.target} {two.target}",
        }
        table.append(
            entry
            | {"reference": one.target}
            | {f"reference_{k}": two.target for k in range(2, references + 1)}
        )
    return pd.DataFrame(table)


def written(table, folder, kind="csv"):
    path = Path(folder) / f"table.{kind}"
    if kind in ("csv", "tsv"):
        table.to_csv(path, index=False, sep="," if kind == "csv" else "\t")
    elif kind == "jsonl":
        table.to_json(path, orient="records", lines=True, force_ascii=False)
    else:
        table.to_parquet(path, row_group_size=20)
    return path


def assert_same(found, whole, tolerance=1e-9, relative=0):
    pd.testing.assert_frame_equal(found.summary(), whole.summary(), rtol=relative, atol=tolerance)
    pd.testing.assert_frame_equal(
        found.per_pair, whole.per_pair, rtol=relative, atol=tolerance, check_dtype=False
    )
    assert found.signatures == whole.signatures and found.row_signatures == whole.row_signatures
    assert (
        found.models == whole.models
        and found.columns == whole.columns
        and found.headings == whole.headings
    )
    for other in whole.systems[1:]:
        pd.testing.assert_frame_equal(
            found.compare(whole.systems[0], other),
            whole.compare(whole.systems[0], other),
            rtol=relative,
            atol=tolerance,
        )


@dataclass(frozen=True)
class Length(Metric):
    name = "length"
    needs = ("output",)
    columns = ("length",)
    by_row = True
    version = "1"

    def score(self, rows, models=None):
        if bad := [row for row, text in enumerate(rows.output) if "poison" in text]:
            raise InputError("it holds poison", argument="output", row=bad[0])
        return Scores({"length": [float(len(text)) for text in rows.output]})


LENGTH = Length()


# ---- the same results


@pytest.mark.parametrize("block_rows", [1, 7, 1000])
def test_blocks_of_any_size_give_what_evaluate_gives(tmp_path, block_rows):
    table = rows_of(24, ("copy", "mixed", "third"))
    found = evaluate_table(
        written(table, tmp_path), tmp_path / "run", WORDS, block_rows=block_rows, n_boot=200, seed=3
    )
    assert_same(found, evaluate(table, WORDS, n_boot=200, seed=3))


@pytest.mark.ci
def test_all_default_metrics_give_what_evaluate_gives(
    tmp_path, classifier, encoder, language_model
):
    models = {"classifier": classifier, "encoder": encoder, "language_model": language_model}
    table = rows_of(10)
    found = evaluate_table(
        written(table, tmp_path), tmp_path / "run", block_rows=3, n_boot=50, **models
    )
    whole = evaluate(table, n_boot=50, **models)
    # logprob sums a text's tokens: some -200, of which 32 bits keep seven digits
    assert_same(found, whole, 1e-5, relative=1e-6)
    with pytest.raises(InputError, match="cps changed since, in its options, version or weights"):
        evaluate_table(
            tmp_path / "table.csv",
            tmp_path / "run",
            block_rows=3,
            n_boot=50,
            **models | {"encoder": with_other_weights(encoder)},
        )


def with_other_weights(encoder):
    """An encoder under the same name whose weights have another checksum."""
    other = copy.copy(encoder)
    other._identity, other._source = "0" * 64, None
    return other


def test_a_source_that_comes_back_in_a_later_block_is_scored_once(
    tmp_path, classifier, monkeypatch
):
    sources = list(load_pairs("npov_pairs").source[:6])
    asked = []
    run = Model.in_batches
    monkeypatch.setattr(
        Model,
        "in_batches",
        lambda self, lengths, *more, **options: (
            asked.append(len(lengths)),
            run(self, lengths, *more, **options),
        )[1],
    )
    table = pd.DataFrame(
        [
            {"system": system, "source": source, "output": f"{source} {system}"}
            for system in ("one", "two")
            for source in sources
        ]
    )
    found = evaluate_table(
        written(table, tmp_path),
        tmp_path / "run",
        ["sti"],
        block_rows=6,
        n_boot=5,
        classifier=classifier,
    )
    assert [n for n in asked if n][:2] == [12, 6] and classifier.memory is None
    assert_same(found, evaluate(table, ["sti"], classifier=classifier, n_boot=5), 1e-6)


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "parquet"])
def test_every_kind_of_file(tmp_path, kind):
    table = rows_of(50)
    found = evaluate_table(
        written(table, tmp_path, kind), tmp_path / "run", ["bleu"], block_rows=11, n_boot=20
    )
    assert_same(found, evaluate(table, ["bleu"], n_boot=20))


def test_a_folder_is_read_in_the_order_of_its_names(tmp_path):
    table = rows_of(30)
    (tmp_path / "in").mkdir()
    table[:10].to_csv(tmp_path / "in" / "part-2.csv", index=False)
    table[10:25].to_json(tmp_path / "in" / "part-3.jsonl", orient="records", lines=True)
    table[25:].to_parquet(tmp_path / "in" / "part-4.parquet")
    assert_same(
        evaluate_table(tmp_path / "in", tmp_path / "run", ["bleu"], block_rows=4, n_boot=20),
        evaluate(table, ["bleu"], n_boot=20),
    )
    (tmp_path / "in" / "notes.txt").write_text("?")
    with pytest.raises(FileError, match=r"notes.txt"):
        survey_table(tmp_path / "in")


def test_data_sets_in_memory_and_saved(tmp_path):
    datasets = pytest.importorskip("datasets")
    table = rows_of(26)
    data = datasets.Dataset.from_pandas(table)
    whole = evaluate(table, ["bleu"], n_boot=20)
    for _ in range(2):  # the second call goes on with the first one's run
        assert_same(
            evaluate_table(data, tmp_path / "run", ["bleu"], block_rows=6, n_boot=20), whole
        )
    with pytest.raises(InputError, match="input changed"):
        evaluate_table(data.select(range(20)), tmp_path / "run", ["bleu"])
    data.save_to_disk(tmp_path / "saved", num_shards=3)
    assert_same(
        evaluate_table(tmp_path / "saved", tmp_path / "run2", ["bleu"], block_rows=6, n_boot=20),
        whole,
    )
    splits = datasets.DatasetDict({"test": data})
    splits.save_to_disk(tmp_path / "splits")
    with pytest.raises(FileError, match="test"):
        evaluate_table(tmp_path / "splits", tmp_path / "run3", ["bleu"])
    for wrong in (splits, table):
        with pytest.raises(InputTypeError):
            evaluate_table(wrong, tmp_path / "run4", ["bleu"])


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_records_are_cut_where_the_reader_of_tables_cuts_them(tmp_path, end, mark):
    """Random cells with line breaks, quotation marks and letters of several bytes, with blank lines between."""
    generator = random.Random(end)
    path = tmp_path / "table.csv"

    def cell():
        return (
            '"'
            + "".join(
                generator.choice(["a", "ä", "語", '""', ",", "\n", "\r\n", "\r", " ", "x"])
                for _ in range(9)
            )
            + 'z"'
        )

    lines = [
        '"source",output',
        *(f"{cell()},{cell()}" + generator.choice(["", end]) for _ in range(60)),
    ]
    path.write_bytes(mark + end.join(lines).encode())
    whole = read_table(path)
    survey = survey_table(path)
    assert survey.n_rows == len(whole)
    assert survey.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    for size in (1, 7, 100):
        assert pd.concat(read_batches(path, size), ignore_index=True).equals(whole)
        lengths = [len(batch) for batch in numbered_batches(path, size)]
        assert lengths == survey.batch_lengths(size)


def test_a_column_that_only_some_rows_of_json_lines_have(tmp_path):
    table = rows_of(12, references=2)
    records = [
        {key: value for key, value in row.items() if key != "reference_2" or number > 8}
        for number, row in enumerate(table.to_dict("records"))
    ]
    (tmp_path / "t.jsonl").write_text("\n\n".join(map(json.dumps, records)))
    found = evaluate_table(tmp_path / "t.jsonl", tmp_path / "run", WORDS, block_rows=4, n_boot=20)
    assert_same(found, evaluate(records, WORDS, n_boot=20))
    assert "nrefs:var" in found.signatures["bleu"]  # no block has both kinds of rows but the last


def test_beyond_the_exact_size_the_bootstrap_is_poisson_and_says_so(tmp_path, monkeypatch):
    table = rows_of(400, ("copy", "mixed"))
    monkeypatch.setattr(run, "EXACT_ROWS", 100)
    monkeypatch.setattr(results, "MOST_DRAWN", 100)
    found = [
        evaluate_table(
            written(table, tmp_path), tmp_path / f"run{size}", WORDS, block_rows=size, n_boot=400
        )
        for size in (30, 400)
    ]
    whole = evaluate(table, WORDS, n_boot=400)
    summary, exact = found[0].summary(), whole.summary()
    pd.testing.assert_frame_equal(
        summary, found[1].summary(), rtol=1e-9
    )  # the size of the blocks does not matter
    assert np.allclose(summary.bleu, exact.bleu, atol=1e-12) and np.allclose(
        summary.bleu_low, exact.bleu_low, atol=0.01
    )
    assert (summary.bleu_low != exact.bleu_low).all()
    said = json.loads((tmp_path / "run30" / "summary.json").read_text())
    findings = work_out(found[0])
    assert said["overall"] == findings.overall != ""
    assert said["conclusions"] == [one.text for one in findings.conclusions]
    assert said["doubts"] == list(findings.doubts)
    assert said["bootstrap"]["kind"] == "Poisson" and "Poisson" in found[0].render_html()
    assert len(found[0].telling_pairs(5)) == 5 and len(found[0].sample(["bleu"], 50)) == 50
    worst = whole.per_pair.sort_values("bleu").bleu.iloc[0]
    assert found[0].telling_pairs(5).bleu.iloc[0] == worst
    low = found[0].compare("copy", "mixed").set_index("metric").loc["bleu"]
    assert np.isclose(low.difference, whole.compare("copy", "mixed").difference[0])


def test_a_large_table_forgets_neither_its_sources_nor_how_few_they_are(tmp_path, monkeypatch):
    """Repeated sources are no new evidence, however many rows there are."""
    monkeypatch.setattr(run, "EXACT_ROWS", 100)
    for n, name in ((40, "many"), (12, "few")):
        once = rows_of(2 * n)
        table = pd.concat([once] * 10, ignore_index=True)
        (tmp_path / name).mkdir()
        found = evaluate_table(
            written(table, tmp_path / name),
            tmp_path / name / "run",
            ["rouge"],
            block_rows=30,
            n_boot=2000,
        )
        whole = evaluate(once, ["rouge"], n_boot=2000)
        row, expected = (scores.compare("mixed", "copy").iloc[0] for scores in (found, whole))
        assert not found.run.exact and row.n == n
        assert np.isclose(row.difference, expected.difference)
        # the resamples of many sources are other ones, since these are sorted by their hashes
        near = 1e-9 if name == "few" else 0.01
        assert np.allclose([row.low, row.high], [expected.low, expected.high], atol=near)
        assert "repeat a source" in " ".join(found.notes().text)


def test_the_report_is_that_of_evaluate(tmp_path):
    table = rows_of(30)
    found = evaluate_table(
        written(table, tmp_path), tmp_path / "run", WORDS, block_rows=8, n_boot=20
    )
    assert found.render_html() == evaluate(table, WORDS, n_boot=20).render_html()


def test_systems_with_other_sources_are_not_compared(tmp_path):
    table = rows_of(20)
    table.loc[table.system == "mixed", "source"] += " of another book"
    found = evaluate_table(
        written(table, tmp_path), tmp_path / "run", ["bleu"], block_rows=3, n_boot=20
    )
    with pytest.raises(InputError, match="cannot be compared"):
        found.compare("copy", "mixed")
    for call in (lambda: found.compare("copy", "nobody"), lambda: found._statistics("nobody")):
        with pytest.raises(InputError, match="no system called 'nobody'"):
            call()


# ---- what is refused


class Weighed(Length):
    name = "weighed"
    columns = ("weighed",)
    version = "1"

    def score(self, rows, models=None):
        return Scores({"weighed": [1.0] * len(rows)})

    def settings(self, models=None):
        return {"model": os.environ["WEIGHTS"]}


def test_other_weights_under_the_same_name_are_refused(tmp_path, monkeypatch):
    """A part knows what each metric signs; a finished run looks at it again."""
    path = written(rows_of(6), tmp_path)
    metric = Weighed()
    monkeypatch.setenv("WEIGHTS", "one")
    evaluate_table(path, tmp_path / "run", [metric], block_rows=2, n_boot=20)
    monkeypatch.setenv("WEIGHTS", "another")
    for damaged in (False, True):
        if damaged:
            (tmp_path / "run" / "parts" / "part-000001.parquet").write_bytes(b"")
        with pytest.raises(
            InputError, match="weighed changed since, in its options, version or weights"
        ):
            evaluate_table(path, tmp_path / "run", [metric], block_rows=2, n_boot=20)
    monkeypatch.setenv("WEIGHTS", "one")
    assert evaluate_table(path, tmp_path / "run", [metric], block_rows=2, n_boot=20).n_outputs == 6


class Read(Length):
    name = "read"
    columns = ("read",)
    version = None

    def score(self, rows, models=None):
        with open(os.environ["FACTOR"]) as file:
            return Scores({"read": [float(file.read())] * len(rows)})


def test_a_run_does_not_go_on_with_a_metric_that_may_be_another(tmp_path, monkeypatch):
    """A metric says by its version that it changed; without one it may have changed at any time."""
    path = written(rows_of(6), tmp_path)
    for _ in range(2):
        evaluate_table(path, tmp_path / "run", [LENGTH], n_boot=20)
    monkeypatch.setattr(Length, "version", "2")
    with pytest.raises(InputError, match="length changed since"):
        evaluate_table(path, tmp_path / "run", [LENGTH], n_boot=20)
    read = Read()
    (tmp_path / "factor").write_text("2")
    monkeypatch.setenv("FACTOR", str(tmp_path / "factor"))
    evaluate_table(path, tmp_path / "other", [read], n_boot=20)
    with pytest.raises(
        InputError,
        match=r"read may have changed since: .* declares no version; name another folder",
    ):
        evaluate_table(path, tmp_path / "other", [read], n_boot=20)
    (tmp_path / "factor").write_text("3")
    assert (
        evaluate_table(path, tmp_path / "other", [read], n_boot=20, restart=True)
        .summary()
        .read.eq(3)
        .all()
    )


@pytest.mark.parametrize(
    "change, said",
    [
        ({"metrics": ["bleu"]}, "the metrics changed since: bleu, rouge, now bleu"),
        (
            {"metrics": ["bleu:lowercase=True", "rouge"]},
            "bleu changed since, in its options, version or weights: bleu|",
        ),
        ({"target_style": "formal"}, "target_style changed since: neutral, now formal"),
        ({"empty": "skip"}, "empty changed since: fail, now skip"),
        ({"input": True}, "the input changed since: sha256"),
    ],
)
def test_another_input_or_option_is_refused_with_what_changed(tmp_path, change, said):
    path = written(rows_of(12), tmp_path)
    arguments = {"metrics": WORDS, "block_rows": 5, "n_boot": 20}
    evaluate_table(path, tmp_path / "run", **arguments)
    before = sorted((tmp_path / "run" / "parts").iterdir())
    if change.pop("input", False):
        written(rows_of(14), tmp_path)
    with pytest.raises(InputError, match=said) as caught:
        evaluate_table(path, tmp_path / "run", **arguments | change)
    assert (
        "name another folder, or begin anew with restart (--restart)" in str(caught.value)
        and sorted((tmp_path / "run" / "parts").iterdir()) == before
    )
    anew = evaluate_table(path, tmp_path / "run", **arguments | change, restart=True)
    whole = evaluate(
        read_table(path),
        n_boot=20,
        metrics=(arguments | change)["metrics"],
        target_style=change.get("target_style", "neutral"),
    )
    assert_same(anew, whole)


def test_another_size_of_blocks_bootstrap_or_device_is_harmless(tmp_path, monkeypatch):
    path = written(table := rows_of(12), tmp_path)
    evaluate_table(path, tmp_path / "run", ["bleu"], block_rows=5, n_boot=20)
    monkeypatch.setattr(batches.BatchScorer, "__call__", lambda *_: pytest.fail("scored again"))
    found = evaluate_table(
        path,
        tmp_path / "run",
        ["bleu"],
        block_rows=3,
        n_boot=30,
        seed=5,
        device="cpu",
        batch_size=2,
    )
    pd.testing.assert_frame_equal(
        found.summary(), evaluate(table, ["bleu"], n_boot=30, seed=5).summary()
    )


@pytest.mark.parametrize(
    "arguments, said",
    [
        ({"metrics": ["bert_score:idf=True"]}, "bert_score does not promise"),
        ({"metrics": ["link_validity"]}, "link_validity does not promise"),
        ({"metrics": ["bleu:order=3"]}, "no option 'order'"),
        ({"engine": "spark"}, "engine must be one of"),
        ({"workers": 2}, "choose the engine ray"),
        ({"on_error": "ignore"}, "on_error must be"),
        ({"block_rows": 0}, "block_rows must be"),
        ({"n_boot": 0}, "n_boot must be"),
        ({"metrics": "bleu"}, "put it into a list"),
        ({"metrics": 5}, "must be a list such as .*got int"),
    ],
)
def test_mistakes_are_found_before_anything_is_scored(tmp_path, arguments, said):
    with pytest.raises(InputError, match=said):
        evaluate_table(
            written(rows_of(4), tmp_path), tmp_path / "run", **{"metrics": ["bleu"]} | arguments
        )
    assert not list(tmp_path.glob("run/parts/*"))


@pytest.mark.parametrize(
    "name, content, said",
    [
        ("t.csv", "source,text\na,b\n", "no column output; .*the columns are source, text"),
        ("t.csv", "", "the file is empty"),
        ("t.csv", "source,output\n", "a header and no rows"),
        ("t.csv", 'source,output\na,"b\n', "line 2: unexpected end of data"),
        ("t.csv", b"source,output\na,b\na,\xff\n", "line 3: byte 0xFF is not UTF-8"),
        ("t.xlsx", "?", "unpacked"),
        ("t.jsonl", '{"source": "a", "output": "b"}\n' * 4 + "\n{\n", "line 6: not valid JSON"),
        ("t.parquet", "?", "not a readable Parquet file"),
    ],
)
def test_files_that_cannot_be_read_say_what_is_wrong(tmp_path, name, content, said):
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=said):
        evaluate_table(tmp_path / name, tmp_path / "run", [LENGTH], block_rows=2)


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_texts_that_stand_alone_are_scored_in_blocks_as_in_one(tmp_path, kind):
    alone = rows_of(12)[["system", "output"]]
    path = written(alone, tmp_path, kind)
    found = evaluate_table(path, tmp_path / "run", ["readability"], block_rows=5, n_boot=20)
    pd.testing.assert_frame_equal(
        found.summary(), evaluate(alone, ["readability"], n_boot=20).summary()
    )
    with pytest.raises(InputError, match="no column source, and sti compares"):
        evaluate_table(path, tmp_path / "other", ["sti"])
    by_default = evaluate_table(
        written(alone.head(4), tmp_path, kind), tmp_path / "default", None, n_boot=5
    )
    assert [metric.name for metric in by_default.metrics] == [
        "fluency",
        "acceptability",
        "readability",
    ]


def test_bleu_is_left_out_of_the_defaults_where_there_is_no_reference(tmp_path):
    path = written(rows_of(4).drop(columns="reference"), tmp_path)
    with pytest.raises(InputError, match="no column reference"):
        evaluate_table(path, tmp_path / "run", ["bleu"])


# ---- poisoned rows


def poisoned(tmp_path, kind="csv"):
    """30 rows in blocks of one; the one in block 17 is refused by the checks, that in block 20 by the metric."""
    table = rows_of(30)
    table.loc[17, "output"], table.loc[20, "output"] = " ", "some poison"
    return table, written(table, tmp_path, kind)


@pytest.mark.parametrize("block_rows", [1, 8, 100])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_poisoned_row_is_named_or_left_out(tmp_path, block_rows, kind):
    table, path = poisoned(tmp_path, kind)
    arguments = {"metrics": ["bleu", LENGTH], "block_rows": block_rows, "n_boot": 20}
    with pytest.raises(
        InputError, match=rf"table.{kind}: column output, row 17: the text is empty"
    ):
        evaluate_table(path, tmp_path / "run", **arguments)
    found = evaluate_table(path, tmp_path / "run", **arguments, on_error="skip")
    assert_same(
        found, evaluate(table.drop([17, 20]).reset_index(drop=True), ["bleu", LENGTH], n_boot=20)
    ) if len(set(found.per_pair.system)) == 1 else pd.testing.assert_frame_equal(
        found.summary(), evaluate(table.drop([17, 20]), ["bleu", LENGTH], n_boot=20).summary()
    )
    assert (
        found.skipped.row.tolist() == [17, 20]
        and "poison" in found.skipped.reason[1]
        and set(found.skipped.file) == {path.name}
    )
    assert "row 20" in found.skipped.reason[1]
    said = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert said["skipped"]["rows"] == 2 and said["skipped"]["first"][0]["row"] == 17
    assert "2 rows of the input were refused" in found.render_html()
    with pytest.raises(FileError, match="row 17 was left out when this run began"):
        evaluate_table(path, tmp_path / "run", **arguments)


def test_rows_that_cannot_be_parsed_can_be_left_out(tmp_path):
    (tmp_path / "t.csv").write_text(
        "source,output\n" + "a,b\n" * 4 + 'a,b,"c\nd"\n' + "a,bbb\n" * 3
    )
    found = evaluate_table(
        tmp_path / "t.csv", tmp_path / "run", [LENGTH], block_rows=3, n_boot=20, on_error="skip"
    )
    assert (
        found.skipped.row.tolist() == [4]
        and found.summary().n.tolist() == [7]
        and np.isclose(found.summary().length[0], 13 / 7)
    )
    (tmp_path / "t.jsonl").write_text(
        '{"source": "a", "output": "b"}\n' * 4 + "\n{\n" + '{"source": "a", "output": "b"}\n'
    )
    found = evaluate_table(
        tmp_path / "t.jsonl", tmp_path / "run2", [LENGTH], block_rows=3, n_boot=20, on_error="skip"
    )
    assert (
        found.skipped.row.tolist() == [4]
        and "line 6" in found.skipped.reason[0]
        and found.n_outputs == 5
    )


def test_a_table_of_nothing_but_poison_is_an_error(tmp_path):
    path = written(rows_of(6).assign(output="poison"), tmp_path)
    with pytest.raises(
        FileError, match=r"every row was refused; the first: table.csv: output, row 0"
    ):
        evaluate_table(path, tmp_path / "run", [LENGTH], block_rows=2, on_error="skip")


# ---- faults


def test_a_damaged_part_is_made_anew(tmp_path):
    path = written(rows_of(20), tmp_path)
    whole = evaluate(rows_of(20), WORDS, n_boot=20)
    evaluate_table(path, tmp_path / "run", WORDS, block_rows=4, n_boot=20)
    folder = tmp_path / "run" / "parts"
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    damaged = folder / "part-000002.parquet"
    for damage in (
        lambda data: data[:-1],
        lambda data: data[:90] + bytes([data[90] ^ 1]) + data[91:],
        lambda data: b"",
    ):
        damaged.write_bytes(damage(damaged.read_bytes()))
        found = evaluate_table(path, tmp_path / "run", WORDS, block_rows=4, n_boot=20)
        assert_same(found, whole)
        assert {file.name: file.read_bytes() for file in folder.iterdir()} == before
    damaged.unlink()
    found = evaluate_table(path, tmp_path / "run", WORDS, block_rows=4, n_boot=20)
    assert_same(found, whole)


def test_a_file_of_somebody_else_is_not_touched(tmp_path):
    path = written(rows_of(6), tmp_path)
    (tmp_path / "run" / "parts").mkdir(parents=True)
    theirs = tmp_path / "run" / "parts" / "part-000000.parquet"
    rows_of(3).to_parquet(theirs)
    before = theirs.read_bytes()
    with pytest.raises(InputError, match="is no part of a run of this version"):
        evaluate_table(path, tmp_path / "run", WORDS, n_boot=20)
    assert theirs.read_bytes() == before
    assert evaluate_table(path, tmp_path / "run", WORDS, n_boot=20, restart=True).n_outputs == 6


DRIVER = """
import sys, time
from tsteval.scale import evaluate_table
from tsteval.runs import batches
own = batches.BatchScorer.__call__
batches.BatchScorer.__call__ = lambda self, number: (time.sleep({pause}), own(self, number))[1]
print("begin", flush=True)
evaluate_table({path!r}, {output!r}, {metrics!r}, block_rows={block_rows}, n_boot=20)
print("end", flush=True)
"""


def drive(path, output, pause=0.0, block_rows=2, metrics=("bleu", "rouge"), **options):
    code = DRIVER.format(
        path=str(path), output=str(output), pause=pause, block_rows=block_rows, metrics=metrics
    )
    return subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


@pytest.mark.ci
def test_a_killed_run_goes_on_where_it_was(tmp_path, request):
    """SIGKILL at random points, again and again in one folder; what a kill left is never half a part."""
    kills = request.config.getoption("--kills") or 3
    counts = []
    generator = random.Random(7)
    blocks = max(60, 20 * kills)  # a run that lives for 1.2 seconds makes twelve at the most
    table = rows_of(2 * blocks)
    path = written(table, tmp_path)
    output = tmp_path / "run"
    for _ in range(kills):
        process = drive(path, output, pause=0.1)
        try:
            assert process.stdout.readline() == "begin\n"
            time.sleep(generator.uniform(0.2, 1.2))
        finally:
            process.kill()
        process.communicate()
        finished = list(output.glob("parts/part-*"))
        counts.append(len(finished))
        assert all(
            parts.Parts(output / "parts").record(number, True) for number in range(counts[-1])
        )
    assert counts == sorted(counts) and 0 < counts[-1] < blocks
    made = {file: file.stat().st_mtime_ns for file in finished}
    found = evaluate_table(path, output, WORDS, block_rows=2, n_boot=20)
    assert_same(found, evaluate(table, WORDS, n_boot=20))
    assert all(file.stat().st_mtime_ns == made[file] for file in made)  # none was made again
    assert not list(output.glob("parts/.*")) and len(list(output.glob("parts/*"))) == blocks


def test_a_full_disk_is_one_error_that_names_the_file_and_the_run_goes_on(tmp_path):
    table = rows_of(40)
    path = written(table, tmp_path)

    def limit():
        return resource.setrlimit(
            resource.RLIMIT_FSIZE, (9000, 9000)
        )  # a part's Parquet file is larger

    process = drive(path, tmp_path / "run", block_rows=20, preexec_fn=limit)
    try:
        _, told = process.communicate(timeout=900)
    finally:
        process.kill()
    assert (
        process.returncode == 1
        and "part-000000.parquet" in told.splitlines()[-1]
        and "cannot be written" in told.splitlines()[-1]
    )
    assert not list((tmp_path / "run" / "parts").iterdir())
    assert_same(
        evaluate_table(path, tmp_path / "run", WORDS, block_rows=20, n_boot=20),
        evaluate(table, WORDS, n_boot=20),
    )


def test_two_processes_do_not_share_a_folder(tmp_path):
    path = written(rows_of(20), tmp_path)
    process = drive(path, tmp_path / "run", pause=30)
    try:
        process.stdout.readline()
        for _ in range(200):
            if (tmp_path / "run" / ".lock").exists():
                break
            time.sleep(0.05)
        with pytest.raises(InputError, match=f"written by another process .process {process.pid}"):
            evaluate_table(path, tmp_path / "run", WORDS)
    finally:
        process.kill()
        process.communicate()
    evaluate_table(path, tmp_path / "run", WORDS, n_boot=20)  # a dead one's lock is nobody's


def test_an_interrupted_write_leaves_nothing(tmp_path, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", stop)
    with pytest.raises(KeyboardInterrupt):
        parts.write_file(tmp_path / "a", b"x")
    assert not list(tmp_path.iterdir())


MEASURE = """
import resource, sys
from tsteval.scale import evaluate_table
evaluate_table(sys.argv[1], sys.argv[2], ["bleu"], n_boot=200)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.all
def test_memory_does_not_grow_with_the_table(tmp_path):
    peaks = []
    for n in (20_000, 100_000):
        rows_of(500).sample(n, replace=True, random_state=0).to_csv(
            tmp_path / f"{n}.csv", index=False
        )
        run = subprocess.run(
            [
                sys.executable,
                "-c",
                MEASURE.replace(
                    "from tsteval.scale",
                    "from tsteval.runs import run\nrun.EXACT_ROWS = 10_000\nfrom tsteval.scale",
                ),
                str(tmp_path / f"{n}.csv"),
                str(tmp_path / f"run{n}"),
            ],
            capture_output=True,
            text=True,
            check=True,
        )
        peaks.append(int(run.stdout))
    assert peaks[1] < 1.15 * peaks[0], peaks
