"""Rating sheets: who rates what in which order, nothing that gives a system away, and filled sheets read back or
refused by place."""

import base64
import csv
import errno
import hashlib
import io
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.cli.conftest import run
from tsteval.core.checks import InputError
from tsteval.people import sheets
from tsteval.people.sheets import (
    _FOR_RATERS,
    FILLED,
    KEY_FILE,
    choose_criteria,
    parse_scale,
    plan_ratings,
    read_key,
    sample_outputs,
    sheet_csv,
    sheet_form,
    sheet_table,
    write_sheets,
)
from tsteval.tables.formats import FileError

PAIRS = [
    {
        "system": system,
        "source": f"The superb {thing} opened.",
        "output": output.format(thing),
        "reference": f"The {thing} opened.",
    }
    for thing in ("bridge", "mill", "dam", "church")
    for system, output in (
        ("SYSTEM-A", "The superb {} opened."),
        ("SYSTEM-B", "The {} opened."),
        ("SYSTEM-C", "The {} opened."),
    )
]
HOSTILE = [
    "</script><script>alert(1)</script>",
    '=HYPERLINK("x")',
    "+1",
    "-1",
    "@SUM(A1)",
    "\t=1",
    "\u202e right to left",
    "\ud83d alone",
    "\x00",
    'a,b;c\n"d"',
]


@pytest.fixture
def plan():
    return plan_ratings(PAIRS, raters=2, repeat=0.2)


def rated(plan, sheet, rating=lambda row, criterion: 3):
    table = sheet_table(plan, sheet)
    for criterion in plan.criteria:
        table[criterion.name] = [str(rating(row, criterion.name)) for row in table.itertuples()]
    return table


def save(table, path, **options):
    path.write_text(table.to_csv(index=False, **options), encoding="utf-8")
    return path


# ---- dealing


def test_equal_outputs_are_shown_once_and_everybody_gets_them(plan):
    assert plan.table.shown.nunique() == 8 and len(plan.table) == 12
    for sheet in plan.sheets:
        assert sorted(item.shown for item in sheet.items if not item.again) == list(range(8))
        assert sum(item.again for item in sheet.items) == 2 and len(
            {item.code for item in sheet.items}
        ) == len(sheet.items)
    orders = [[item.shown for item in sheet.items if not item.again] for sheet in plan.sheets]
    assert orders[0] != orders[1] and orders[0] != sorted(orders[0])


def test_the_same_target_only(plan):
    two = [PAIRS[0] | {"target_style": style} for style in ("neutral", "formal")]
    assert plan_ratings(two).table.shown.nunique() == 2


@pytest.mark.parametrize("overlap", [0, 0.25, 0.5, 1])
def test_sources_are_dealt_whole(overlap):
    pairs = [
        {"system": system, "source": f"s{n}", "output": f"{system}{n}"}
        for n in range(40)
        for system in "abc"
    ]
    plan = plan_ratings(pairs, raters=3, overlap=overlap, repeat=0)
    sources = plan.table.groupby("shown").source_id.first()
    hands = [set(sources[[item.shown for item in sheet.items]]) for sheet in plan.sheets]
    assert len(set.intersection(*hands)) == round(40 * overlap) and set.union(*hands) == set(
        range(40)
    )
    for sheet, hand in zip(plan.sheets, hands):
        assert len(sheet.items) == 3 * len(hand)
    assert max(map(len, hands)) - min(map(len, hands)) <= 1


def test_a_repeated_item_waits_for_a_third_of_the_sheet():
    plan = plan_ratings(
        [{"source": f"s{n}", "output": f"o{n}"} for n in range(50)], repeat=0.3, raters=9
    )
    for sheet in plan.sheets:
        first = {item.shown: place for place, item in enumerate(sheet.items) if not item.again}
        gaps = [place - first[item.shown] for place, item in enumerate(sheet.items) if item.again]
        assert len(gaps) == 15 and min(gaps) > 50 // 3


def test_the_seed_and_nothing_else_sets_the_order(plan):
    assert plan_ratings(PAIRS, raters=2, repeat=0.2).sheets == plan.sheets
    assert plan_ratings(PAIRS, raters=2, repeat=0.2, seed=1).sheets != plan.sheets
    assert (
        plan_ratings(PAIRS, raters=2, repeat=0.2, scale=(1, 7)).sheets[0].digest
        != plan.sheets[0].digest
    )


@pytest.mark.parametrize(
    "options, words",
    [
        ({"raters": 0}, "raters"),
        ({"overlap": 1.5}, "overlap"),
        ({"repeat": 0.5}, "repeat"),
        ({"seed": -1}, "seed"),
        ({"raters": 9, "overlap": 0}, "9 raters cannot share 4 sources"),
        ({"scale": (5, 1)}, "scale"),
        ({"scale": (1, 10)}, "scale"),
    ],
)
def test_options_are_refused_by_name(options, words):
    with pytest.raises(InputError, match=words):
        plan_ratings(PAIRS, **options)


def test_a_bad_row_is_named():
    with pytest.raises(InputError, match="column output, row 1"):
        plan_ratings([PAIRS[0], PAIRS[1] | {"output": None}])


def test_criteria_and_scales():
    assert choose_criteria(["tone of voice"])[0].question.endswith("tone of voice?")
    for names in (["=1"], ["a,b"], [""], ["sheet"], ["style", "style"], []):
        with pytest.raises(InputError):
            choose_criteria(names)
    for text in ("5-1", "1-1", "0-10", "a-b", "", "1-5-9", "-1-5"):
        with pytest.raises(InputError, match="scale"):
            parse_scale(text)


# ---- what a rater sees


def test_no_sheet_names_a_system(plan):
    for sheet in plan.sheets:
        for text in (sheet_csv(plan, sheet), sheet_form(plan, sheet)):
            assert "SYSTEM" not in text and "reference" not in text
    assert not any(
        name in json.dumps([item.code for sheet in plan.sheets for item in sheet.items])
        for name in "ABC"
    )


def test_no_cell_of_the_table_is_a_formula():
    plan = plan_ratings(
        [
            {"source": text, "output": other, "target_style": text}
            for text, other in zip(HOSTILE, HOSTILE[::-1])
        ],
        repeat=0,
    )
    text = sheet_csv(plan, plan.sheets[0])
    assert text.startswith("\ufeff") and text.encode("utf-8")
    rows = list(csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline="")))
    assert len(rows) == len(HOSTILE) + 1
    assert not [cell for row in rows for cell in row if cell.lstrip()[:1] in tuple("=+-@\t\r")]


def test_the_form_is_one_page_whose_policy_names_its_script_and_style():
    plan = plan_ratings(
        [{"source": text, "output": other} for text, other in zip(HOSTILE, HOSTILE[::-1])],
        choose_criteria(["style"], {"style": "</legend><script>alert(3)</script>"}),
    )
    page = sheet_form(plan, plan.sheets[0])
    scripts = re.findall(r"<script>(.*?)</script>", page, re.S)
    styles = re.findall(r"<style>(.*?)</style>", page, re.S)
    assert page.count("<script") == 2 and len(scripts) == len(styles) == 1
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    for text in (*scripts, *styles):
        assert base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() in policy
    assert (
        "unsafe" not in policy
        and policy.startswith("default-src 'none'")
        and not re.search(r"\b(src|href)=|://|@import|url\(", page)
    )
    data = json.loads(
        re.search(r'<script type="application/json" id="sheet">(.*?)</script>', page, re.S)[1]
    )
    assert [item["code"] for item in data["items"]] == [item.code for item in plan.sheets[0].items]
    assert not {"system", "shown", "again"} & set(data["items"][0])
    page.encode("utf-8")


# ---- the key


@pytest.mark.parametrize("files", [0, 1, 3, 4])
def test_a_full_disk_leaves_nothing_behind(plan, tmp_path, monkeypatch, files):
    """The file that finds no room is the first, one of the sheets, the last of them, or the key."""
    left = iter(range(files))
    write = sheets.write_whole

    def full(path, text):
        if next(left, None) is None:
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        write(path, text)

    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("keep")
    monkeypatch.setattr(sheets, "write_whole", full)
    for folder in (tmp_path / "above" / "new", tmp_path / "mine"):
        left = iter(range(files))
        with pytest.raises(OSError, match="No space left"):
            write_sheets(plan, folder)
    assert [path.name for path in sorted(tmp_path.rglob("*"))] == ["mine", "notes.txt"]
    monkeypatch.setattr(sheets, "write_whole", write)
    write_sheets(plan, tmp_path / "mine")
    left = iter(range(files))
    monkeypatch.setattr(sheets, "write_whole", full)
    with pytest.raises(OSError, match="No space left"):
        write_sheets(plan, tmp_path / "mine")
    assert read_key(tmp_path / "mine" / KEY_FILE).seed == plan.seed  # what was there stays


def test_the_key_gives_the_plan_back_and_lies_apart(plan, tmp_path):
    write_sheets(plan, tmp_path)
    write_sheets(plan, tmp_path)  # the same plan again is no harm
    again = read_key(tmp_path / KEY_FILE)
    assert (again.sheets, again.criteria, again.scale, again.seed) == (
        plan.sheets,
        plan.criteria,
        plan.scale,
        plan.seed,
    )
    pd.testing.assert_frame_equal(again.table, plan.table, check_dtype=False)
    assert sorted(path.name for path in (tmp_path / _FOR_RATERS).iterdir()) == [
        "rater-1.csv",
        "rater-1.html",
        "rater-2.csv",
        "rater-2.html",
    ]
    with pytest.raises(InputError, match="key of another study"):
        write_sheets(plan_ratings(PAIRS), tmp_path)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"rows": 1}', "\ud800".encode("utf-8", "surrogatepass")]
)
def test_what_is_no_key_is_refused(tmp_path, text):
    (tmp_path / "key.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(FileError, match=r"key.json: this is not the key"):
        read_key(tmp_path / "key.json")
    with pytest.raises(FileError, match="no such file"):
        read_key(tmp_path / "none.json")


# ---- the command


def test_a_sheet_that_somebody_filled_is_not_emptied(plan, tmp_path):
    written = write_sheets(plan, tmp_path)
    sheet = next(path for path in written if path.suffix == ".csv")
    filled = sheet.read_bytes().replace(b",\r\n", b",4\r\n", 1)
    sheet.write_bytes(filled)
    with pytest.raises(InputError, match="was filled or changed since it was written"):
        write_sheets(plan, tmp_path)
    assert sheet.read_bytes() == filled


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pd.DataFrame(PAIRS).to_csv("pairs.csv", index=False)
    return tmp_path


def test_the_command_writes_sheets_and_a_key(folder, capsys):
    status, out, err = run(
        capsys,
        "rate",
        "pairs.csv",
        "--output",
        "out",
        "--raters",
        2,
        "--criteria",
        "style, tone",
        "--question",
        "tone=Is the tone right, or = wrong?",
        "--scale",
        "0-9",
        "--system",
        "SYSTEM-A",
        "--system",
        "SYSTEM-B",
        "--target-style",
        "plain",
    )
    assert status == 0 and "8 outputs" in out and "tsteval study out" in out and not err
    plan = read_key("out/key.json")
    assert plan.scale == (0, 9) and plan.criteria[1].question == "Is the tone right, or = wrong?"
    assert set(plan.table.target_style) == {"plain"}
    assert (Path("out") / FILLED).is_dir() and set(plan.table.system) == {"SYSTEM-A", "SYSTEM-B"}


@pytest.mark.parametrize(
    "options, words",
    [
        (["--raters", "0"], "--raters must be"),
        (["--overlap", "2"], "--overlap must be"),
        (["--repeat", "1"], "--repeat must be"),
        (["--scale", "1-10"], "--scale: write two digits"),
        (["--criteria", "code"], "--criteria: code"),
        (["--question", "style"], "--question style: write"),
        (["--question", "mood=?"], "--question: mood is not among"),
        (["--output", "pairs.csv"], "--output pairs.csv is a file"),
        (["--source-column", "text"], "pairs.csv: there is no column text"),
    ],
)
def test_the_command_refuses_in_one_line(folder, capsys, options, words):
    status, out, err = run(capsys, "rate", "pairs.csv", *options)
    assert status == 2 and not out and err.count("\n") == 1 and words in err
    assert [path.name for path in folder.iterdir()] == ["pairs.csv"]


def test_covered_texts_stand_on_the_sheet_and_the_probability_in_the_key_alone(tmp_path):
    rows = [
        row
        | {"masked_source": "COVERED SOURCE", "masked_output": "COVERED OUTPUT", "inclusion": 0.25}
        for row in PAIRS
    ]
    plan = plan_ratings(rows)
    for text in (sheet_csv(plan, plan.sheets[0]), sheet_form(plan, plan.sheets[0])):
        assert (
            "COVERED SOURCE" in text
            and "COVERED OUTPUT" in text
            and "superb" not in text
            and "0.25" not in text
        )
    write_sheets(plan, tmp_path)
    again = read_key(tmp_path / KEY_FILE)
    assert set(again.table.inclusion) == {0.25} and list(again.table.output) == [
        row["output"] for row in PAIRS
    ]
    assert plan.sheets[0].digest != plan_ratings(PAIRS).sheets[0].digest


def outputs(**sizes):
    return pd.DataFrame(
        [
            {"system": system, "source": f"Source {n}.", "output": f"{system} {n}."}
            for system, size in sizes.items()
            for n in range(size)
        ]
    )


def test_systems_share_their_sources_and_a_small_one_gives_all_it_has():
    drawn = sample_outputs(outputs(A=40, B=40, C=10), 60)
    assert drawn.groupby("system").size().to_dict() == {"A": 25, "B": 25, "C": 10}
    assert set(drawn.source[drawn.system == "A"]) == set(drawn.source[drawn.system == "B"])
    assert drawn.inclusion.tolist() == [25 / 40] * 50 + [1.0] * 10


def test_rows_are_drawn_as_often_as_told_and_weighted_means_are_unbiased():
    table = outputs(A=12, B=30).assign(rating=lambda frame: np.arange(len(frame)) ** 2.0)
    often = np.zeros(len(table))
    means = []
    for seed in range(3000):
        drawn = sample_outputs(table, 12, seed)
        often[drawn.index] += 1 / 3000
        means.append((drawn.rating / drawn.inclusion).sum() / len(table))
    expected = np.repeat([6 / 12, 6 / 30], [12, 30])
    assert np.abs(often - expected).max() < 0.04  # more than four standard errors
    assert abs(np.mean(means) - table.rating.mean()) < 4 * np.std(means) / 3000**0.5


def test_all_rows_of_a_source_are_drawn_together():
    table = pd.concat([outputs(A=20)] * 3, ignore_index=True)
    drawn = sample_outputs(table, 15)
    assert drawn.groupby("source").size().tolist() == [3] * 5 and set(drawn.inclusion) == {0.25}


def test_the_seed_decides_and_more_rows_than_there_are_means_all():
    table = outputs(A=30, B=30)
    assert sample_outputs(table, 10, 1).equals(sample_outputs(table, 10, 1))
    assert not sample_outputs(table, 10, 1).equals(sample_outputs(table, 10, 2))
    everything = sample_outputs(table, 1000)
    assert len(everything) == 60 and (everything.inclusion == 1).all()


@pytest.mark.parametrize("n, words", [(0, "n must be"), (2, "ask for 4 rows or more")])
def test_too_few_rows_are_refused(n, words):
    with pytest.raises(InputError, match=words):
        sample_outputs(outputs(A=30, B=30), n)
