"""Sets that people labelled: what their declarations read, and what they refuse"""

import json
import os

import pandas as pd
import pytest

from tsteval.core.assets import AssetError, corpora
from tsteval.evaluation import evaluate
from tsteval.people.study import rated_outputs
from tsteval.tables.rated_sets import rated_sets, same_tables
from tsteval.tables.ratings import RATING_COLUMNS, load_ratings

needs_data = pytest.mark.skipif(
    not os.path.isdir(os.path.join(os.environ.get("TSTEVAL_DATA") or "", "people")),
    reason="set TSTEVAL_DATA to the folder around people/, with the sets that people labelled",
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A place for sets, and nothing in it."""
    monkeypatch.setenv("TSTEVAL_DATA", str(tmp_path))
    monkeypatch.setenv("TSTEVAL_CACHE", str(tmp_path / "cache"))
    return tmp_path


def lay(folder, name, **tables):
    """Tables of a set as its publisher lays them: name of a file without ending -> rows."""
    place = folder / "people" / name
    place.mkdir(parents=True)
    for file in corpora()[name].tables:
        rows = pd.DataFrame(tables.get(file.split(".")[0], []))
        if file.endswith(".jsonl"):
            lines = [json.dumps(row) for row in rows.to_dict("records")]
            (place / file).write_text("\n".join(lines), encoding="utf-8")
        else:
            rows.to_csv(place / file, index=False)
    return place


def test_every_declaration_says_where_the_set_comes_from_and_under_which_terms():
    for name in rated_sets():
        corpus = corpora()[name]
        assert "github.com/" in corpus.get_it and corpus.terms and corpus.tables
        assert corpus.ratings["rows"] in corpus.tables
        assert corpus.ratings.get("texts", corpus.ratings["rows"]) in corpus.tables


def test_a_set_that_is_not_there_says_where_to_get_it(folder):
    with pytest.raises(AssetError, match=r"gug is not on this machine.*gug_annotations.tsv"):
        load_ratings("gug")


def test_a_label_and_raters_are_read(folder):
    rows = [
        {"id": 1, "part": "train", "sentence": "He go.", "expert": 1, "average": 1.5}
        | {f"crowd_{rater}": 1 + (rater == 1) * 3 for rater in range(1, 6)},
        {"id": 2, "part": "test", "sentence": "nan", "expert": 4, "average": 4}
        | {f"crowd_{rater}": 4 for rater in range(1, 6)},
    ]
    lay(folder, "gug", sentences=rows)
    table = load_ratings("gug")
    assert list(table)[: len(RATING_COLUMNS)] == list(RATING_COLUMNS)
    assert table.rating.tolist() == [1.5, 4] and table.raters.tolist() == [6, 6]
    assert table.output.tolist() == ["He go.", "nan"]  # a text, not a missing one
    assert table.rating_2.tolist() == [4, 4] and table.part.tolist() == ["train", "test"]
    assert table.references.tolist() == [[], []] and table.reference.isna().all()
    assert not same_tables("gug")


def test_texts_join_their_rows_and_references_are_lists(folder):
    lay(
        folder,
        "simpeval_past",
        sources=[{"sent_id": "7", "source": "A long one.", "references": ["One.", "It."]}],
        outputs=[
            {"sent_id": 7, "system": system, "kind": kind, "output": output, "mean_z": 0}
            | {f"rating_{rater}": 10.0 * rater for rater in range(1, 6)}
            for system, kind, output in (
                ("m", "machine", "One."),
                ("p", "human", "It."),
                ("n", "machine", None),
            )
        ],
    )
    table = load_ratings("simpeval_past")
    assert table.output.tolist() == ["One."] and table.rating.tolist() == [30]
    assert table.source.tolist() == ["A long one."]
    assert table.references.tolist() == [["One.", "It."]] and table.reference.tolist() == ["One."]
    scores = evaluate(rated_outputs(table), ["bleu", "chrf"], n_boot=2).per_pair
    assert scores.chrf.tolist() == [1]


def test_both_columns_of_references_count_each_once():
    rows = pd.DataFrame(
        {"source": ["s"], "output": ["one"], "reference": ["one"], "references": [["one", "two"]]}
    )
    assert evaluate(rows, ["chrf"], n_boot=2).per_pair.references[0] == ("one", "two")


def test_small_letters_and_copies_of_paradetox(folder):
    row = {
        "id": 1,
        "toxic": "You FOOL",
        "neutral_1": "You fool",
        "neutral_2": "You err",
        "neutral_3": None,
    }
    lay(folder, "paradetox", pairs=[row])
    table = load_ratings("paradetox")
    assert table.output.tolist() == ["you fool", "you err"] and table.rating.tolist() == [1, 0]


def test_raters_in_a_cell_need_not_be_equally_many(folder):
    lay(
        folder,
        "grade_dialogue",
        contexts=[
            {"context_id": 1, "data_set": "d", "context": ["Hi.", "Ho."], "reference": "Yes."}
        ],
        responses=[
            {
                "context_id": 1,
                "data_set": "d",
                "system": s,
                "output": "No.",
                "n_raters": n,
                "rating": 9,
                "ratings": r,
            }
            for s, n, r in (("a", 2, "1 2"), ("b", 3, "3 4 5"))
        ],
    )
    table = load_ratings("grade_dialogue")
    assert table.rating.tolist() == [1.5, 4] and table.raters.tolist() == [2, 3]
    assert table.source.tolist() == ["Hi.\nHo."] * 2 and table.system.tolist() == ["d a", "d b"]


def test_an_edit_is_reached_whatever_the_spaces(folder):
    lay(
        folder,
        "wnc_test",
        edits=[
            {
                "id": 1,
                "part": "single",
                "row": 0,
                "in_wnc_sample": 0,
                "source": "a b .",
                "human": "b .",
            }
            | {
                "modular": "b .",
                "concurrent": "a .",
                "strap_full": "b.",
                "strap_word": "c",
                "strap_large": "d",
            }
        ],
    )
    table = load_ratings("wnc_test").set_index("system").rating
    assert table[table == 1].index.tolist() == ["modular", "strap_full"]


def test_a_table_without_a_column_or_a_file_is_named(folder):
    place = lay(
        folder, "hatecheck", cases=[{"case_id": 1, "group": 1, "text": "x", "gold": "hateful"}]
    )
    with pytest.raises(
        AssetError, match=r"hatecheck hold no column contrast_case; they hold case_id"
    ):
        load_ratings("hatecheck")
    lay(folder, "gug", sentences=[{"id": 1, "part": "x", "sentence": "y", "expert": 1}])
    with pytest.raises(AssetError, match=r"gug hold no column crowd_\*"):
        load_ratings("gug")
    (place / "cases.csv").unlink()
    with pytest.raises(AssetError, match=r"cases.csv is missing"):
        load_ratings("hatecheck")
    (place / "cases.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(AssetError, match=r"cases.csv cannot be read"):
        load_ratings("hatecheck")


@needs_data
@pytest.mark.parametrize("name", rated_sets())
def test_each_set_is_a_table_that_can_be_studied(name):
    table = load_ratings(name)
    assert list(table)[: len(RATING_COLUMNS)] == list(RATING_COLUMNS)
    assert table.rating.notna().all() and set(table.data_set) == {name}
    assert not table.duplicated(["item", "criterion"]).any()
    assert table.output.map(lambda text: isinstance(text, str) and bool(text.strip())).all()
    assert (table.groupby("item").output.nunique() == 1).all()
    labels = corpora()[name].ratings["criteria"]
    assert set(table.asked) == set(labels)
    few = rated_outputs(table).head(3)
    assert len(few) == 3 and "output" in few
