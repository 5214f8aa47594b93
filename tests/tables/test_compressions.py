"""Compressions with ratings are read from both forms, and what cannot be used is dropped and counted."""

import pandas as pd
import pytest

from tsteval.core.assets import AssetError
from tsteval.tables.compressions import load_compressions


def test_compressions_are_cleaned_and_counted(tmp_path):
    rows = [
        ("A long source text.", "A text.", 3.0, 2.5, 3),
        ("Another source.", None, 3.0, 2.5, 3),
        ("Another source.", "A source.", None, 2.5, 3),
        ("Another source.", "A source.", 2.0, 66209.0, 1),
        ("x" * 1001, "A source.", 2.0, 2.0, 1),
    ]
    columns = ["Source", "Reference", "AverageMeaning", "AverageGrammar", "Label"]
    pd.DataFrame(rows, columns=columns).to_csv(tmp_path / "valid_data.csv")
    clean = load_compressions(tmp_path)
    assert clean.to_dict("records") == [
        {"row": 0, "source": rows[0][0], "compression": "A text.", "grammar": 2.5, "meaning": 3.0}
    ]
    assert list(clean.attrs["dropped"].values()) == [2, 1, 1]


RAW = (
    "7\tletters\tThe shop will be closed on Monday. ||| Shop closed Monday.\t4\t3\t6\tbest\t6\tbest\t12\tmiddling"
    # announces three ratings, has two
    " ||| Closed.\t5\t3\t6\tbest\t6\tbest\n"
    "8_9\tnews\tRain fell. It fell all night. ||| It rained.\t4\t2\t7\tmost important meaning\tminor "
    "errors\t24\tnone\tdisfluent"
    " ||| Rained it.\t6\t1\t13\tno such code ||| \t6\t1\t6\tbest\r\n"  # an unknown code; no text
    "10\tnews\tNo compression follows.\n"
)


def test_raw_compressions_are_read_from_their_codes(tmp_path):
    (tmp_path / "RawData").mkdir()
    (tmp_path / "RawData" / "valid.tsv").write_text(RAW, encoding="utf-8")
    clean = load_compressions(tmp_path)
    assert clean.compression.tolist() == [
        "Shop closed Monday.",
        "It rained.",
    ] and clean.row.tolist() == [0, 2]
    assert clean.source.tolist() == [
        "The shop will be closed on Monday.",
        "Rain fell. It fell all night.",
    ]
    assert clean.grammar.tolist() == pytest.approx(
        [8 / 3, 1.5]
    ) and clean.meaning.tolist() == pytest.approx([8 / 3, 2])
    assert clean.raters.tolist() == [3, 2] and clean.judge.tolist() == ["4", "4"]
    assert clean.attrs["dropped"] == {
        "missing rating or text": 3,
        "rating outside 1..3": 0,
        "text of many rows in one cell": 0,
    }
    pd.testing.assert_frame_equal(load_compressions(tmp_path / "RawData" / "valid.tsv"), clean)


@pytest.mark.parametrize(
    "code, meaning, grammar",
    [
        (6, 3, 3),
        (7, 3, 2),
        (9, 3, 1),
        (11, 2, 3),
        (12, 2, 2),
        (14, 2, 1),
        (21, 1, 3),
        (22, 1, 2),
        (24, 1, 1),
    ],
)
def test_each_code_of_the_release(tmp_path, code, meaning, grammar):
    (tmp_path / "test.tsv").write_text(
        f"1\td\tA long text. ||| A text.\t3\t1\t{code}\twords", encoding="utf-8"
    )
    (row,) = load_compressions(tmp_path).to_dict("records")
    assert (row["meaning"], row["grammar"]) == (meaning, grammar)


def test_a_folder_without_compressions_is_refused(tmp_path):
    with pytest.raises(AssetError, match="holds no compressions"):
        load_compressions(tmp_path)
