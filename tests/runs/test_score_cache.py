"""The cache: what is found is what would be made, by one process or several, whenever the last run was killed."""
import json
import multiprocessing
import os
import sqlite3
import subprocess
import sys
import textwrap
import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tsteval import cli
from tsteval.core.checks import InputError
from tsteval.core.metric import METRICS, Metric, Scores, sign
from tsteval.evaluation import evaluate
from tsteval.runs.score_cache import BLOCK, ScoreCache, blocks_of_rows, seal

calls = []


def score_length(table, models, unit="words", weights=None):
    calls.append(list(table.output))
    values = table.output.map(len if unit == "characters" else lambda text: len(text.split()))
    return Scores(pd.DataFrame({"length": values, "shouted": table.output.str.upper()}),
                  signature=sign("length", unit=unit))


LENGTH = Metric("length", ("output",), ("length",), score_length, by_row=True)


def pairs(n, systems=("one", "two")):
    return [{"system": system, "source": f"the mill number {row}", "output": f"the {system} mill was built in {row}",
             "reference": ["the mill", "a mill"][:1 + row % 2]} for system in systems for row in range(n)]


@pytest.fixture
def scored():
    calls.clear()
    return lambda: [text for call in calls for text in call]


def test_found_is_made(tmp_path, scored):
    names = ["bleu", "rouge", "chrf", "readability", LENGTH]
    plain = evaluate(pairs(50), names, n_boot=20)
    calls.clear()
    first = evaluate(pairs(50), names, n_boot=20, score_cache=tmp_path / "c")
    assert len(scored()) == 102  # each row once, and two witnesses: one for each number of references
    calls.clear()
    again = evaluate(pairs(50), names, n_boot=20, score_cache=tmp_path / "c")
    assert not scored()
    assert plain.signatures == first.signatures == again.signatures and plain.row_signatures == again.row_signatures
    pd.testing.assert_frame_equal(first.per_pair, again.per_pair)
    pd.testing.assert_frame_equal(plain.per_pair, first.per_pair, check_dtype=False)
    pd.testing.assert_frame_equal(plain.summary(), again.summary())


def test_only_new_rows_options_and_code_are_scored(tmp_path, scored):
    evaluate(pairs(20), [LENGTH], n_boot=5, score_cache=tmp_path / "c")
    calls.clear()
    evaluate(pairs(20, ("one", "two", "new")), [LENGTH], n_boot=5, score_cache=tmp_path / "c")
    assert len(scored()) == 20 and all("new" in text for text in scored())
    calls.clear()
    found = evaluate(pairs(20), [LENGTH], n_boot=5, options={"length": {"unit": "characters"}},
                     score_cache=tmp_path / "c")
    assert len(scored()) == 42 and found.per_pair.length[0] == len("the one mill was built in 0")
    other = Metric("length", ("output",), ("length",), lambda table,
                   models: Scores(pd.DataFrame({"length": table.output.map(str.split).map(len) * 2}),
                                                                                   signature=sign("length",
                                                                                                  unit="words")),
                   by_row=True)
    assert evaluate(pairs(20), [other], n_boot=5, score_cache=tmp_path / "c").per_pair.length[0] == 14


def test_metrics_whose_rows_depend_on_each_other_are_made_anew(tmp_path, scored):
    for metric, options in ((Metric("length", ("output",), ("length",), score_length), {}),
                            (LENGTH, {"weights": {"a": 1}})):
        for _ in range(2):
            calls.clear()
            evaluate(pairs(3), [metric], n_boot=5, options={"length": options}, score_cache=tmp_path / "c")
            assert len(scored()) == 6
    assert (not METRICS["bert_score"].by_row(idf=True) and METRICS["bert_score"].by_row()
            and not METRICS["link_validity"].by_row)


def test_an_error_names_the_row_of_the_table(tmp_path):
    def refuse(table, models):
        if (bad := table.output.str.contains("149").to_numpy()).any():
            raise InputError(f"column output, row {bad.argmax()}: no")
        return Scores(pd.DataFrame({"x": table.output.map(len)}), signature="x")
    with pytest.raises(InputError, match="row 149"):
        evaluate(pairs(150, ("one",)), [Metric("x", ("output",), ("x",), refuse, by_row=True)], n_boot=5,
                 score_cache=tmp_path / "c")


def test_no_text_is_in_the_file_and_others_cannot_read_it(tmp_path):
    evaluate(pairs(3), [LENGTH], n_boot=5, score_cache=tmp_path / "c")
    content = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"mill" not in content and b"MILL" not in content and b"length" not in content
    assert (tmp_path / "c").stat().st_mode & 0o077 == 0
    assert seal(b"a", seal(b"a", b"text")) == b"text" != seal(b"b", seal(b"a", b"text"))


def test_what_is_no_cache_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("my notes, which are longer than a header of SQLite would be " * 20)
    for path, words in ((tmp_path / "notes.txt", "delete this one"), (tmp_path, "name a file"),
                        (tmp_path / "no" / "c", "folder that exists")):
        with pytest.raises(InputError, match=words): ScoreCache(path)
    assert (tmp_path / "notes.txt").read_text().startswith("my notes")
    cache = ScoreCache(tmp_path / "c")
    cache.put({b"a": 1})
    cache.close()
    with sqlite3.connect(tmp_path / "c") as base: base.execute("UPDATE scores SET value = x'00'")
    with pytest.raises(InputError, match="damaged"): ScoreCache(tmp_path / "c").get([b"a"])


def put_many(path, start):
    cache = ScoreCache(path)
    for row in range(start, start + 200): cache.put({str(row % 250).encode(): [row % 250] * 20})


@pytest.mark.slow
def test_two_processes_share_a_file(tmp_path):
    workers = [multiprocessing.get_context("spawn").Process(target=put_many, args=(tmp_path / "c", start))
               for start in (0, 100)]
    for worker in workers: worker.start()
    for worker in workers: worker.join(120)
    assert all(worker.exitcode == 0 for worker in workers)
    cache = ScoreCache(tmp_path / "c")
    assert len(cache) == 250 and cache.get([b"249"]) == {b"249": [249] * 20}


def test_blocks_hold_each_row_once_and_sources_together():
    sources = [f"s{row % 100}" for row in range(300)]
    blocks = list(blocks_of_rows(sources))
    assert sorted(np.concatenate(blocks)) == list(range(300)) and max(map(len, blocks)) == BLOCK
    assert {sources[row] for row in blocks[0][:63]} == {f"s{n}" for n in range(21)}


@pytest.mark.slow
def test_memory_does_not_grow_with_the_rows_beyond_the_table(tmp_path):
    def peak(n):
        rows = pd.DataFrame(pairs(n, ("one",)))
        tracemalloc.start()
        result = evaluate(rows, ["bleu", LENGTH], n_boot=20, score_cache=tmp_path / f"{n}")
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most, result.per_pair.memory_usage(deep=True).sum()
    evaluate(pairs(2), ["bleu", LENGTH], n_boot=20)  # what is imported and kept for good
    (small, table), (large, longer) = peak(300), peak(3000)
    assert large - small < 6 * (longer - table), (small, large, table, longer)


# ---- SIGKILL

RUNS = textwrap.dedent("""
    import os, random, signal, sys, time
    from pathlib import Path
    import tsteval.evaluation, torch, transformers
    from tsteval import cli

    def start(name, folder):
        child = os.fork()
        if child == 0:
            sys.stdout, sys.stderr = open(os.devnull, "w"), open("said", "w")
            torch.set_num_threads(1)
            os._exit(cli.main(["evaluate", "pairs.csv", "--metrics", "bleu,rouge,sti,counted:length", "--style-model", "tiny", "--target-style",
                               "neutral", "--n-boot", "10", "--cache", f"{name}.sqlite", "--output", folder]))
        return child

    def scored(): return Path("log").read_text().splitlines() if Path("log").exists() else []

    def wait(child, point):  # half of the points lie anywhere in the time of a run, half anywhere among the rows
        if point % 2: return time.sleep(generator.uniform(0, length))
        rows = generator.randrange(1, 280)
        while len(scored()) < rows and not os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT): time.sleep(0.002)

    def finish(child): return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    os.chdir(sys.argv[1])
    began = time.monotonic()
    assert finish(start("whole", "whole")) == 0
    length, expected = time.monotonic() - began, Path("whole/per_pair.csv").read_bytes()
    generator, met = random.Random(17), 0
    from tsteval.runs.score_cache import ScoreCache
    for point in range(int(sys.argv[2])):
        Path("log").unlink(missing_ok=True)
        child = start(point, f"out{point}")
        wait(child, point)
        os.kill(child, signal.SIGKILL)
        killed = finish(child) == -signal.SIGKILL
        written = Path(f"out{point}/per_pair.csv")
        assert not written.exists() or written.read_bytes() == expected, "a half-written file"
        first = scored()
        Path("log").unlink(missing_ok=True)
        assert finish(start(point, f"out{point}")) == 0, f"point {point}: {Path('said').read_text()[-800:]}"
        second = scored()
        assert written.read_bytes() == expected, f"point {point}: other bytes"
        again = set(first) & set(second)
        assert len(again) <= 65, f"point {point}: {len(again)} rows were scored again"  # the block in which it was killed, and a witness
        met += killed and 0 < len(first) < 300
    print(met)
""")
COUNTED = """
import time
import pandas as pd
from tsteval.core.metric import Metric, Scores

def score(table, models):
    time.sleep(0.002 * len(table))
    with open("log", "a") as log: log.writelines(f"{text}\\n" for text in table.output)
    return Scores(pd.DataFrame({"length": table.output.map(len)}), signature="length")

length = Metric("length", ("output",), ("length",), score, by_row=True)
"""


@pytest.mark.slow
def test_killed_at_random_points_the_run_goes_on(tmp_path, request):
    kills = request.config.getoption("--kills") or 10
    from tests.test_judged import save_tiny_classifier
    save_tiny_classifier(tmp_path / "tiny", ["subjective", "neutral"])
    (tmp_path / "counted.py").write_text(COUNTED)
    pd.DataFrame(pairs(150)).assign(reference=lambda rows: rows.reference.str[0]).to_csv(tmp_path / "pairs.csv",
                                                                                         index=False)
    (tmp_path / "runs.py").write_text(RUNS)
    environment = {**os.environ, "PYTHONPATH": f"{Path(cli.__file__).parents[2]}:{tmp_path}", "OMP_NUM_THREADS": "1"}
    run = subprocess.run([sys.executable, "-W", "ignore", "runs.py", str(tmp_path), str(kills)], cwd=tmp_path,
                         env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-1500:]
    assert int(run.stdout) >= kills // 4  # many of the points lay in the middle of the scoring


def counted(folder, n=100):
    """A folder with a table, a metric that writes down what it scores, and the command that evaluates both with a
    cache."""
    (folder / "counted.py").write_text(COUNTED)
    pd.DataFrame(pairs(n)).assign(reference=lambda rows: rows.reference.str[0]).to_csv(folder / "pairs.csv",
                                                                                       index=False)
    environment = {**os.environ, "PYTHONPATH": f"{Path(cli.__file__).parents[2]}:{folder}", "OMP_NUM_THREADS": "1"}
    return lambda output: subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", "import sys; from tsteval.cli import main; sys.exit(main())", "evaluate",
         "pairs.csv", "--metrics",
         "bleu,rouge,counted:length", "--n-boot", "10", "--cache", "scores.sqlite", "--output", output],
        cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@pytest.mark.slow
def test_two_runs_at_once_share_a_cache(tmp_path):
    start = counted(tmp_path)
    runs = [start(name) for name in ("one", "two")]
    assert [run.wait(300) for run in runs] == [0, 0]
    assert (tmp_path / "one" / "per_pair.csv").read_bytes() == (tmp_path / "two" / "per_pair.csv").read_bytes()
    scored = (tmp_path / "log").read_text().splitlines()
    # at worst both score each row, a witness, and one row as a rehearsal
    assert len(set(scored)) == 200 and len(scored) <= 2 * 202
    # all is known; one row is a rehearsal
    assert start("three").wait(300) == 0 and len((tmp_path / "log").read_text().splitlines()) == len(scored) + 1
    assert (tmp_path / "three" / "per_pair.csv").read_bytes() == (tmp_path / "one" / "per_pair.csv").read_bytes()


@pytest.mark.slow
def test_one_two_and_four_threads_agree(classifier, encoder, language_model):
    import torch
    found, threads = {}, torch.get_num_threads()
    try:
        for number in (1, 2, 4):
            torch.set_num_threads(number)
            result = evaluate(pairs(6), n_boot=5, classifier=classifier, encoder=encoder, language_model=language_model)
            columns = [column for metric in result.metrics for column in metric.columns]
            found[number] = result.per_pair[columns].astype(float), result.summary()[columns].astype(float)
    finally: torch.set_num_threads(threads)
    assert {"sti", "cps", "slor", "logprob"} <= set(columns) and len(found[1][0]) == 12
    for number in (2, 4):
        for mine, other in zip(found[number], found[1]): np.testing.assert_allclose(mine, other, rtol=0, atol=1e-4)
