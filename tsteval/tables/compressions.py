"""Sentence compressions with ratings, from both forms in which they circulate"""

from pathlib import Path

import numpy as np
import pandas as pd

from ..core.assets import AssetError, corpus_path

_CODES = {
    5 * 2 ** (3 - meaning) + 2 ** (3 - grammar): (meaning, grammar)
    for meaning in (1, 2, 3)
    for grammar in (1, 2, 3)
}


def _read_raw(path: Path) -> list[dict]:
    """One row a compression of a file of the release."""
    rows = []
    for line in path.read_text(encoding="utf-8-sig", errors="replace").split("\n"):
        source, *compressions = [part.strip(" \r").split("\t") for part in line.split("|||")]
        for fields in compressions:
            found = [_CODES.get(int(field)) for field in fields[3:] if field.strip().isdigit()]
            whole = (
                len(source) > 2
                and found
                and None not in found
                and fields[2].strip() == str(len(found))
            )
            meaning, grammar = np.mean(found, axis=0) if whole else (np.nan, np.nan)
            rows.append(
                {
                    "source": source[-1] or None,
                    "compression": fields[0] or None,
                    "grammar": grammar,
                    "meaning": meaning,
                    "judge": fields[1] if len(fields) > 1 else None,
                    "raters": len(found),
                }
            )
    return rows


def _read_compressions(place: Path) -> pd.DataFrame:
    """All rows of a derived table, or of the files of the release."""
    derived = place if place.suffix == ".csv" else place / "valid_data.csv"
    if derived.is_file():
        return (
            pd.read_csv(derived, index_col=0)
            .rename_axis("row")
            .reset_index()
            .rename(
                columns={
                    "Source": "source",
                    "Reference": "compression",
                    "AverageGrammar": "grammar",
                    "AverageMeaning": "meaning",
                }
            )
        )
    splits = [
        place / folder / f"{split}.tsv"
        for folder in ("", "RawData")
        for split in ("train", "valid", "test")
    ]
    files = [place] if place.is_file() else [path for path in splits if path.is_file()]
    rows = [row for path in files for row in _read_raw(path)]
    if not rows:
        raise AssetError(
            f"{place} holds no compressions: neither valid_data.csv nor a train.tsv, valid.tsv or "
            f"test.tsv of the "
            "release, in the folder itself or in RawData"
        )
    return pd.DataFrame(rows).rename_axis("row").reset_index()


def load_compressions(
    # the release, a folder with a derived valid_data.csv, or one such file; None: msr_compression
    folder: Path | str | None = None,
    longest: int = 1000,  # characters; a longer cell holds the text of many rows
    # row, source, compression, grammar, meaning; of raw files also judge, raters; attrs["dropped"]: reason -> rows
) -> pd.DataFrame:
    """Sentence compressions with people's mean ratings in 1..3, 3 the best; rows that cannot be used are dropped and
    counted.

    Raises: AssetError if the corpus is not there, or holds no compressions.
    Source: Toutanova et al. 2016.
    """
    table = _read_compressions(Path(folder or corpus_path("msr_compression")))
    ratings = table[["grammar", "meaning"]]
    texts = table[["source", "compression"]]
    reasons = {
        "missing rating or text": ratings.isna().any(axis=1) | texts.isna().any(axis=1),
        "rating outside 1..3": ((ratings < 1) | (ratings > 3)).any(axis=1),
        "text of many rows in one cell": (
            texts.fillna("").apply(lambda cells: cells.str.len()) > longest
        ).any(axis=1),
    }
    dropped = {}
    kept = np.ones(len(table), bool)
    for reason, rows in reasons.items():
        dropped[reason] = int((rows & kept).sum())
        kept &= ~rows
    names = [
        "row",
        "source",
        "compression",
        "grammar",
        "meaning",
        *[name for name in ("judge", "raters") if name in table],
    ]
    clean = table.loc[kept, names].reset_index(drop=True)
    clean.attrs["dropped"] = dropped
    return clean
