"""What raters answered: filled sheets read back, and how far raters agree with each other and with themselves"""

import csv
import io
import math
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd

from ..core.checks import InputError, check_choice, check_table
from ..core.display import enumerated
from ..core.resample import steady
from ..tables.formats import EXCEL, FileError, parse_table
from ..tables.ratings import RATING_COLUMNS
from .sheets import FILLED, KEY_FILE, RatingPlan, Sheet, sheet_table


def _delimited(data: bytes) -> bytes:
    """A table with semicolons, as spreadsheets write it where the comma is for decimals, as one with commas."""
    header = data.split(b"\n", 1)[0]
    if b";" not in header or b"," in header:
        return data
    rows = csv.reader(
        io.StringIO(data.decode("utf-8", "surrogateescape"), newline=""), delimiter=";"
    )
    written = io.StringIO(newline="")
    csv.writer(written, lineterminator="\n").writerows(row for row in rows if row)
    return written.getvalue().encode("utf-8", "surrogateescape")


def _rating(cell, scale: tuple[int, int], place: dict) -> float:
    """One rating as a number; NaN for an empty cell."""
    text = "" if cell is None else str(cell).strip()
    if not text:
        return float("nan")
    match = re.fullmatch(r"(\d+)(?:[.,]0*)?", text, re.A)
    if not match or not scale[0] <= int(match[1]) <= scale[1]:
        raise FileError(
            f"{text[:40]!r} is no rating; ratings are whole numbers from {scale[0]} to {scale[1]}",
            **place,
        )
    return float(match[1])


def _sheet_of(table: pd.DataFrame, plan: RatingPlan, file: str) -> Sheet:
    """The sheet that a filled table belongs to."""
    if lacking := [
        name
        for name in ("sheet", "code", *(criterion.name for criterion in plan.criteria))
        if name not in table
    ]:
        raise FileError(
            f"{file}: there is no column {lacking[0]}; "
            f"the columns are {', '.join(map(str, table.columns))}"
        )
    sheets = {sheet.digest: sheet for sheet in plan.sheets}
    for row, name in enumerate(table.sheet):
        if name not in sheets:
            raise FileError(
                f"{str(name)[:40]!r} is no sheet of this key; give the key that was written with it",
                file=file,
                column="sheet",
                row=row,
            )
        if name != table.sheet[0]:
            raise FileError(
                "the file holds two sheets; put each into a file of its own",
                file=file,
                column="sheet",
                row=row,
            )
    return sheets[table.sheet[0]]


def _words(text) -> str:
    """What spreadsheets leave of a text, whatever they do to spaces and marks."""
    return "".join(re.findall(r"\w", str(text or ""))) or str(text or "").strip()


def _check_texts(table: pd.DataFrame, plan: RatingPlan, sheet: Sheet, file: str) -> None:
    """Raises: FileError for a row whose texts are not those of its code, as after a sort of some columns alone."""
    texts = sheet_table(plan, sheet).set_index("code")
    for column in ("source", "output"):
        if column not in table:
            continue
        for row, (code, text) in enumerate(zip(table.code, table[column])):
            if code in texts.index and _words(text) != _words(texts.at[code, column]):
                raise FileError(
                    f"this is not the {column} of {code}, so its ratings may belong to another text; "
                    f"undo what moved or changed it, or drop the columns source and output if the "
                    f"ratings stand beside their codes",
                    file=file,
                    column=column,
                    row=row,
                )


def _read_sheet(path: Path, plan: RatingPlan, unfinished: bool) -> pd.DataFrame:
    """The ratings of one filled sheet: rater, sheet, code, shown, again, criterion, rating."""
    try:
        data = path.read_bytes()
        table = (
            parse_table(data, "xlsx")
            if data.startswith(EXCEL)
            else parse_table(_delimited(data), "csv")
        )
    except FileError as error:
        raise FileError(f"{path}: {error}") from error
    sheet = _sheet_of(table, plan, str(path))
    rows = {}
    lacking = []
    items = {item.code: item for item in sheet.items}
    for row, code in enumerate(table.code):
        place = {"file": str(path), "column": "code", "row": row}
        if code not in items:
            raise FileError(
                f"{str(code)[:40]!r} is no item of this sheet; the codes must stay as they were",
                **place,
            )
        if code in rows:
            raise FileError(f"{code} stands twice; keep one of its rows", **place)
        rows[code] = row
    _check_texts(table, plan, sheet, str(path))
    ratings = []
    for code, item in items.items():
        for criterion in plan.criteria:
            if code not in rows:
                lacking.append(
                    (f"the item {code} is missing; put its row back", {"file": str(path)})
                )
            else:
                place = {"file": str(path), "column": criterion.name, "row": rows[code]}
                rating = _rating(table.at[rows[code], criterion.name], plan.scale, place)
                if np.isnan(rating):
                    lacking.append((f"item {code} has no rating; fill it in", place))
                else:
                    ratings.append(
                        {
                            "sheet": sheet.digest,
                            **asdict(item),
                            "criterion": criterion.name,
                            "rating": rating,
                        }
                    )
    if lacking and not unfinished:
        message, place = lacking[0]
        raise FileError(
            f"{message}, or ask for unfinished sheets to be read ({len(lacking)} of "
            f"{len(items) * len(plan.criteria)} ratings are missing)",
            **place,
        )
    return pd.DataFrame(ratings, columns=["sheet", "code", "shown", "again", "criterion", "rating"])


def read_sheets(
    files: Iterable[Path | str],  # filled sheets
    plan: RatingPlan,  # see `read_key`
    *,
    unfinished: bool = False,  # take a sheet in which ratings are missing
) -> pd.DataFrame:  # a row a rating: rater, sheet, code, shown, again, criterion, rating
    """The ratings of filled sheets, still by code.

    Raises: FileError that names file, row and column.
    """
    tables: dict[str, pd.DataFrame] = {}
    for path in map(Path, files):
        if not path.is_file():
            raise FileError(f"{path}: there is no such file")
        name = path.stem if path.stem not in tables else str(path)
        if name in tables:
            raise FileError(f"{path}: is given twice")
        tables[name] = _read_sheet(path, plan, unfinished)
        for other in [
            other
            for other in tables
            if other != name and len(tables[name]) and tables[other].equals(tables[name])
        ]:
            raise FileError(f"{path}: holds the same ratings as {other}; leave one of them out")
    if not tables:
        raise FileError(
            f"there is no filled sheet; put those that come back into the folder {FILLED} "
            f"beside {KEY_FILE}"
        )
    ratings = pd.concat(
        [table.assign(rater=name) for name, table in tables.items()], ignore_index=True
    )
    if not len(ratings):
        raise FileError("the sheets hold no rating at all")
    return ratings[["rater", "sheet", "code", "shown", "again", "criterion", "rating"]]


def unblind(
    ratings: pd.DataFrame,  # from `read_sheets`
    plan: RatingPlan,
    data_set: str = "study",
    # as from `load_ratings`: RATING_COLUMNS, rating_1, ...; and shown, which is equal for outputs that were shown as
    # one; and of a sample inclusion, the probability with which each output was drawn
) -> pd.DataFrame:
    """The ratings joined to the systems that wrote the outputs."""
    first = ratings[~ratings.again.astype(bool)]
    people = list(dict.fromkeys(ratings.rater))
    wide = first.pivot(index=["shown", "criterion"], columns="rater", values="rating").reindex(
        columns=people
    )
    summary = pd.DataFrame(
        {
            "rating": wide.mean(axis=1),
            "raters": wide.notna().sum(axis=1).astype(float),
            "spread": wide.std(axis=1),
        }
    )
    summary = summary.join(
        wide.set_axis([f"rating_{number}" for number in range(1, len(people) + 1)], axis=1)
    ).reset_index()
    reference = [texts[0] if texts else np.nan for texts in plan.table.references]
    rows = plan.table.assign(
        reference=reference, data_set=data_set, item=np.arange(len(plan.table))
    )
    order = {criterion.name: place for place, criterion in enumerate(plan.criteria)}
    joined = rows.merge(summary, on="shown").assign(asked=lambda frame: frame.criterion)
    joined = joined.sort_values(
        ["criterion", "item"],
        key=lambda column: column.map(order) if column.name == "criterion" else column,
    )
    drawn = [name for name in ("inclusion",) if name in joined]
    return joined[
        [
            *RATING_COLUMNS,
            "shown",
            *drawn,
            *(name for name in summary if name.startswith("rating_")),
        ]
    ].reset_index(drop=True)


def rater_consistency(
    ratings: pd.DataFrame,  # from `read_sheets`
    # rater, criterion, n (items rated twice), equal (share of equal pairs), distance (mean difference without its sign)
) -> pd.DataFrame:
    """How far each rater agrees with their own first answer, on the items that came twice."""
    sides = [ratings[ratings.again.astype(bool) == again] for again in (False, True)]
    both = sides[0].merge(sides[1], on=["rater", "shown", "criterion"], suffixes=("", "_again"))
    apart = (both.rating - both.rating_again).abs()
    grouped = both.assign(equal=apart.eq(0).astype(float), distance=apart).groupby(
        ["rater", "criterion"], sort=False
    )
    return grouped.agg(
        n=("equal", "size"), equal=("equal", "mean"), distance=("distance", "mean")
    ).reset_index()


def reliability(
    answers,  # (N, R) answers of R raters, NaN where one did not rate; or the columns rating_1, ... of `load_ratings`
) -> float:  # at most 1; NaN where no two raters share three outputs with different answers
    """Reliability of the mean of R raters, by Spearman and Brown from the mean correlation between two of them.

    Raises: InputError for fewer than two raters. Source: Spearman 1910; Brown 1910.
    """
    table = _answers(answers)
    between = pd.DataFrame(table).corr(min_periods=3).to_numpy()[np.triu_indices(table.shape[1], 1)]
    if np.isnan(between).all():
        return float("nan")
    each = float(np.nanmean(between))
    raters = float((~np.isnan(table)).sum(axis=1)[~np.isnan(table).all(axis=1)].mean())
    return raters * each / (1 + (raters - 1) * each)


_MOST_COUNTS = 1e8  # rows times the square of the number of different answers


def raters_alpha(
    answers,  # (N, R) as for `reliability`; names too, where the level is nominal
    level: str = "interval",  # of measurement: nominal | ordinal | interval | ratio
) -> float:  # 1 where all agree, 0 for chance, below 0 for less; NaN where nothing varies
    """Krippendorff's alpha, by the library `krippendorff`.

    Raises: InputError for fewer than two raters, an unknown level, an answer that is no number, or more different
    answers than can be counted.
    Source: Krippendorff 2011; Castro 2017.
    """
    import krippendorff

    check_choice(level, "level", ("nominal", "ordinal", "interval", "ratio"))
    table = _answers(_numbered(answers) if level == "nominal" else answers)
    shared = table[(~np.isnan(table)).sum(axis=1) > 1]
    distinct = len(np.unique(shared[~np.isnan(shared)]))
    if distinct < 2:
        return float("nan")
    if (
        len(shared) * distinct**2 > _MOST_COUNTS
    ):  # the library holds a table of this size, and more than once
        raise InputError(
            f"answers: {distinct:,} different ones in {len(shared):,} rows are too many to count; round "
            f"them"
        )
    return float(krippendorff.alpha(reliability_data=table.T, level_of_measurement=level))


def _numbered(answers) -> np.ndarray:
    """A number for each different answer, NaN where there is none."""
    names = np.asarray(answers, dtype=object)
    if names.ndim != 2:
        return answers
    codes = pd.factorize(names.ravel())[0].reshape(names.shape)
    return np.where(codes < 0, np.nan, codes)


def _answers(answers) -> np.ndarray:
    try:
        table = np.asarray(answers, dtype=float)
    except (TypeError, ValueError):
        table = check_table(answers, "answers")  # raises, and names the row
    if np.isinf(table).any():
        raise InputError("holds an infinite number", argument="answers")
    table = steady(table)
    if table.ndim != 2 or table.shape[1] < 2:
        raise InputError(
            f"agreement of raters needs a column for each of at least two raters, got shape {table.shape}"
        )
    return table


def against_the_others(
    answers: pd.DataFrame,  # (N, R) answers of R raters, NaN where one did not rate
) -> dict[str, float]:  # column -> its correlation with the mean of the others, below 0
    """The raters who run against the rest, where there are three or more: they do not answer one question in one way,
    which is what a reliability takes for granted."""
    if answers.shape[1] < 3:
        return {}
    apart = {name: answers[name].corr(answers.drop(columns=name).mean(axis=1)) for name in answers}
    return {name: float(value) for name, value in apart.items() if value < 0}


def rater_table(
    ratings: pd.DataFrame,
    # data_set, criterion, outputs, raters (how many at the most), alpha, reliability, ceiling, against (who runs against
    # the mean of the others, in words; there is no ceiling then); NaN where raters are not known one by one
) -> pd.DataFrame:
    """How far raters agree, for each data set and criterion."""
    rows = []
    for (data_set, criterion), part in ratings.groupby(["data_set", "criterion"], sort=False):
        once = part.drop_duplicates("shown") if "shown" in part else part
        answers = once.filter(regex=r"^rating_\d+$").dropna(axis=1, how="all")
        alpha = trust = math.nan
        against = ""
        if answers.shape[1] > 1:
            trust = reliability(answers)
            against = enumerated(
                [f"{name} (r {value:.2f})" for name, value in against_the_others(answers).items()]
            )
            with suppress(InputError):
                alpha = raters_alpha(answers)  # too many different answers to count
        rows.append(
            {
                "data_set": data_set,
                "criterion": criterion,
                "outputs": len(once),
                "raters": once.raters.max(),
                "alpha": alpha,
                "reliability": trust,
                "ceiling": math.sqrt(trust) if trust > 0 and not against else math.nan,
                "against": against,
            }
        )
    return pd.DataFrame(rows)
