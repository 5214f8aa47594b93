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
        for text, *judgements in compressions:
            judge, number, *codes = [*judgements, "", ""] if len(judgements) < 2 else judgements
            ratings = [_CODES.get(int(code)) for code in codes if code.strip().isdigit()]
            is_whole = len(source) > 2 and ratings and None not in ratings
            if is_whole and number.strip() == str(len(ratings)):
                meaning, grammar = np.mean(ratings, axis=0)
            else:
                meaning = grammar = np.nan
            rows.append(
                {
                    "source": source[-1] or None,
                    "compression": text or None,
                    "grammar": grammar,
                    "meaning": meaning,
                    "judge": judge or None,
                    "raters": len(ratings),
                }
            )
    return rows


_DERIVED = {
    "Source": "source",
    "Reference": "compression",
    "AverageGrammar": "grammar",
    "AverageMeaning": "meaning",
}
_SPLITS = ("train", "valid", "test")


def _read_compressions(place: Path) -> pd.DataFrame:
    """All rows of a derived table, or of the files of the release."""
    derived = place if place.suffix == ".csv" else place / "valid_data.csv"
    if derived.is_file():
        table = pd.read_csv(derived, index_col=0).rename(columns=_DERIVED)
    else:
        folders = (place, place / "RawData")
        paths = [folder / f"{split}.tsv" for folder in folders for split in _SPLITS]
        paths = [place] if place.is_file() else [path for path in paths if path.is_file()]
        table = pd.DataFrame([row for path in paths for row in _read_raw(path)])
    if not len(table):
        raise AssetError(
            f"{place} holds no compressions: neither valid_data.csv nor a train.tsv, valid.tsv or "
            f"test.tsv of the release, in the folder itself or in RawData"
        )
    return table.rename_axis("row").reset_index()


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
    usable = np.ones(len(table), bool)
    for reason, rows in reasons.items():
        dropped[reason] = int((rows & usable).sum())
        usable &= ~rows
    names = ["row", "source", "compression", "grammar", "meaning"]
    names += [name for name in ("judge", "raters") if name in table]
    clean = table.loc[usable, names].reset_index(drop=True)
    clean.attrs["dropped"] = dropped
    return clean
