"""Blinded rating sheets for people: dealt, shuffled, written as CSV and as a form, with the key that reads them"""

import base64
import contextlib
import hashlib
import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from markupsafe import Markup

from ..core.assets import packaged_path
from ..core.checks import InputError, check_number
from ..core.display import displayable, spreadsheet_safe
from ..core.files import write_whole
from ..core.metric import INPUTS, digest
from ..tables.formats import FileError
from ..tables.outputs import as_frame, prepare_pairs


@dataclass(frozen=True)
class Criterion:
    """One question to the raters."""

    name: str  # heads a column
    question: str
    low: str  # what the lowest rating means
    high: str  # what the highest means


_CRITERIA = {
    criterion.name: criterion
    for criterion in (
        Criterion(
            "style",
            "How far is the rewrite in the style that was asked for?",
            "not at all",
            "entirely",
        ),
        Criterion(
            "content",
            "How much of what the original says does the rewrite still say, style aside?",
            "nothing",
            "all of it",
        ),
        Criterion(
            "naturalness",
            "How well does the rewrite, taken alone, read as something that a person wrote?",
            "nobody would write it",
            "anybody could",
        ),
    )
}
_OTHER_COLUMNS = ("sheet", "code", "target_style", "source", "output")


def choose_criteria(
    names: Iterable[str] = tuple(_CRITERIA),
    questions: Mapping[str, str]
    | None = None,  # name -> what to ask, where the usual question will not do
) -> tuple[Criterion, ...]:
    """The criteria of a study. Raises: InputError for a name that cannot head a column, or a question without its
    criterion."""
    names = list(names)
    questions = dict(questions or {})
    for name in names:
        if not re.fullmatch(r"[^\W\d]\w*( \w+)*", name):
            raise InputError(
                f"{name!r} cannot head a column; use letters, such as politeness",
                argument="criteria",
            )
        if name in _OTHER_COLUMNS:
            raise InputError(
                f"{name} is a column of the sheet already; choose another word", argument="criteria"
            )
        if names.count(name) > 1:
            raise InputError(f"{name} is given twice", argument="criteria")
    if not names:
        raise InputError("choose at least one, such as naturalness", argument="criteria")
    if idle := [name for name in questions if name not in names]:
        raise InputError(
            f"{idle[0]} is not among the criteria {', '.join(names)}", argument="question"
        )
    usual = {
        name: _CRITERIA.get(
            name, Criterion(name, f"How do you rate the rewrite for {name}?", "worst", "best")
        )
        for name in names
    }
    return tuple(
        Criterion(
            name, questions.get(name, usual[name].question), usual[name].low, usual[name].high
        )
        for name in names
    )


def parse_scale(
    text: str,  # such as "1-5"
) -> tuple[int, int]:
    """The lowest and the highest rating. Raises: InputError for anything but two digits, the lower one first."""
    match = re.fullmatch(r"\s*([0-9])\s*-\s*([0-9])\s*", text)
    if not match or match[1] >= match[2]:
        raise InputError(
            f"write two digits with a hyphen, the lower one first, such as 1-5; got {text!r}",
            argument="scale",
        )
    return int(match[1]), int(match[2])


# what else a table may say of an output: the probability with which it was drawn (`sample_outputs`), and what raters
# see in place of the two texts
_CARRIED = ("inclusion", "masked_source", "masked_output")


@dataclass(frozen=True)
class Item:
    """One line of a sheet."""

    code: str  # what a rater sees of it
    shown: int  # which of the different outputs it shows
    again: bool  # whether it stands here for the second time


@dataclass(frozen=True)
class Sheet:
    """What one rater gets."""

    rater: str
    digest: str  # of all that is on it
    items: tuple[Item, ...]


@dataclass(frozen=True)
class RatingPlan:
    """A study: the outputs with their systems, the questions, and the sheets. Only the sheets are for raters."""

    # system, source, output, references, target_style, source_id, shown (the number of the output, equal for equal
    # ones), and those of `_CARRIED` that were given
    table: pd.DataFrame
    criteria: tuple[Criterion, ...]
    scale: tuple[int, int]
    sheets: tuple[Sheet, ...]
    seed: int


def _dealt(table: pd.DataFrame, raters: int, overlap: float, generator) -> list[np.ndarray]:
    """The numbers of the outputs that each rater gets."""
    sources = generator.permutation(table.source_id.nunique())
    common = len(sources) if raters == 1 else round(overlap * len(sources))
    if common == 0 and len(sources) < raters:
        raise InputError(
            f"{raters} raters cannot share {len(sources)} sources; raise the overlap or ask fewer"
        )
    hands = [[*sources[:common], *sources[common + rater :: raters]] for rater in range(raters)]
    return [np.unique(table.shown[table.source_id.isin(hand)]) for hand in hands]


def _ordered(shown: np.ndarray, repeat: float, generator) -> list[tuple[int, bool]]:
    """A random order of outputs, and whether each stands there for the second time."""
    order = generator.permutation(shown)
    third = len(shown) // 3
    twice = generator.permutation(third)[: min(round(repeat * len(shown)), third)]
    last = [
        *((int(number), False) for number in order[len(order) - third :]),
        *((int(order[place]), True) for place in twice),
    ]
    return [
        *((int(number), False) for number in order[: len(order) - third]),
        *(last[place] for place in generator.permutation(len(last))),
    ]


def _seen(table: pd.DataFrame) -> list[str]:
    """The columns whose texts raters see: source and output, or what was made of them."""
    return [
        f"masked_{name}" if f"masked_{name}" in table else name for name in ("source", "output")
    ]


def _sheet(rater: int, order: list[tuple[int, bool]], table: pd.DataFrame, asked: str) -> Sheet:
    width = len(str(len(order)))
    items = tuple(
        Item(f"r{rater}-{place:0{width}d}", shown, again)
        for place, (shown, again) in enumerate(order, 1)
    )
    first = table.drop_duplicates("shown").set_index("shown")
    seen = first[[*_seen(table), "target_style"]]
    texts = (text for item in items for text in (item.code, *seen.loc[item.shown]))
    return Sheet(f"rater-{rater}", f"sheet-{digest(asked, *texts)}", items)


def plan_ratings(
    # a table, see `prepare_pairs`: source, output; optionally system, reference, target_style, and those of `_CARRIED`
    pairs,
    criteria: Sequence[Criterion] = tuple(_CRITERIA.values()),
    *,
    scale: tuple[int, int] = (1, 5),  # lowest and highest rating, within 0..9
    raters: int = 1,  # sheets, >= 1
    overlap: float = 1.0,  # share of the sources that every rater gets, 0..1; the others are dealt
    repeat: float = 0.1,  # share of a sheet that is asked twice, 0..0.3
    target_style: str = "neutral",  # where the table does not say
    seed: int = 0,  # of the order
) -> RatingPlan:
    """Deal the outputs of one or more systems to raters, each sheet in an order of its own.

    Raises: InputError that names the row and column, or the option that is wrong.
    """
    check_number(raters, "raters", 1, 99, whole=True)
    check_number(overlap, "overlap", 0, 1)
    check_number(repeat, "repeat", 0, 0.3)
    check_number(seed, "seed", 0, whole=True)
    low, high = parse_scale(f"{scale[0]}-{scale[1]}")
    frame = as_frame(pairs)
    table = prepare_pairs(frame, target_style).drop(columns=[*INPUTS], errors="ignore")
    table = table.assign(**{name: frame[name].to_numpy() for name in _CARRIED if name in frame})
    table["source_id"] = table.groupby("source", sort=False).ngroup()
    table["shown"] = table.groupby(["source", "target_style", "output"], sort=False).ngroup()
    criteria = [_about_style(criterion, table.target_style) for criterion in criteria]
    asked = json.dumps([low, high, *(asdict(criterion) for criterion in criteria)])
    generator = np.random.default_rng(seed)
    sheets = [
        _sheet(rater, _ordered(shown, repeat, generator), table, f"{asked}{rater}")
        for rater, shown in enumerate(_dealt(table, raters, overlap, generator), 1)
    ]
    return RatingPlan(table, tuple(criteria), (low, high), tuple(sheets), seed)


def _about_style(criterion: Criterion, styles: pd.Series) -> Criterion:
    """The usual question about style with the style's name, where one style is asked for and is called by a word."""
    style = str(styles.iloc[0])
    if (
        criterion != _CRITERIA["style"]
        or styles.nunique() > 1
        or not re.fullmatch("[a-z-]+", style)
    ):
        return criterion
    return replace(criterion, question=f"How {style} is the rewrite?")


def sheet_table(
    plan: RatingPlan,
    sheet: Sheet,
) -> (
    pd.DataFrame
):  # sheet, code, target_style, source, output, and an empty column for each criterion
    """What a rater fills in."""
    first = plan.table.drop_duplicates("shown").set_index("shown")
    columns = dict(zip(("target_style", "source", "output"), ("target_style", *_seen(plan.table))))
    texts = [
        {
            name: spreadsheet_safe(displayable(first.at[item.shown, column]))
            for name, column in columns.items()
        }
        for item in sheet.items
    ]
    empty = {criterion.name: "" for criterion in plan.criteria}
    return pd.DataFrame(
        [
            {"sheet": sheet.digest, "code": item.code, **text, **empty}
            for item, text in zip(sheet.items, texts)
        ]
    )


def sheet_csv(
    plan: RatingPlan,
    sheet: Sheet,
) -> str:
    """The sheet as CSV for a spreadsheet."""
    return "\ufeff" + sheet_table(plan, sheet).to_csv(index=False, lineterminator="\r\n")


def _hash(text: str) -> str:
    """How a content security policy names a script or style."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _data(value) -> Markup:
    """JSON that can stand inside a script element."""
    text = json.dumps(value)  # ASCII: whatever is not becomes an escape
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def sheet_form(
    plan: RatingPlan,
    sheet: Sheet,
) -> str:  # HTML
    """The sheet as one page that needs no other file; the texts in it are escaped."""
    import jinja2

    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["displayable"] = lambda value: displayable(str(value))

    def part(ending):
        return packaged_path(f"rating_form.{ending}").read_text(encoding="utf-8")

    first = plan.table.drop_duplicates("shown").set_index("shown")
    columns = dict(zip(("source", "output", "wanted"), (*_seen(plan.table), "target_style")))
    items = [
        {
            "code": item.code,
            **{name: displayable(first.at[item.shown, column]) for name, column in columns.items()},
        }
        for item in sheet.items
    ]
    data = {
        "digest": sheet.digest,
        "rater": sheet.rater,
        "items": items,
        "criteria": [criterion.name for criterion in plan.criteria],
        "low": plan.scale[0],
        "high": plan.scale[1],
    }
    style = part("css")
    script = part("js")
    return environment.from_string(part("html.jinja")).render(
        sheet=sheet,
        criteria=plan.criteria,
        scale=plan.scale,
        data=_data(data),
        style=Markup(style),
        script=Markup(script),
        style_hash=_hash(style),
        script_hash=_hash(script),
    )


KEY_FILE = "key.json"
_KEY_KIND = "key of a rating sheet: keep it from the raters"


def _key_json(
    plan: RatingPlan,
) -> str:
    """All that is needed to read the sheets of a plan."""
    rows = plan.table.assign(references=plan.table.references.map(list)).to_dict("records")
    sheets = [
        {
            "rater": sheet.rater,
            "sheet": sheet.digest,
            "items": [[item.code, item.shown, item.again] for item in sheet.items],
        }
        for sheet in plan.sheets
    ]
    return json.dumps(
        {
            "tsteval": _KEY_KIND,
            "seed": plan.seed,
            "scale": plan.scale,
            "criteria": [asdict(criterion) for criterion in plan.criteria],
            "sheets": sheets,
            "rows": rows,
        },
        indent=1,
    )


def read_key(
    path: Path | str,
) -> RatingPlan:
    """The plan behind a key. Raises: FileError for a file that is no key."""
    try:
        key = json.loads(Path(path).read_bytes())
        table = pd.DataFrame(key["rows"])
        sheets = tuple(
            Sheet(sheet["rater"], sheet["sheet"], tuple(Item(*item) for item in sheet["items"]))
            for sheet in key["sheets"]
        )
        return RatingPlan(
            table.assign(references=table.references.map(tuple)),
            tuple(Criterion(**one) for one in key["criteria"]),
            tuple(key["scale"]),
            sheets,
            key["seed"],
        )
    except FileNotFoundError:
        raise FileError(
            f"{path}: there is no such file; it lies in the folder that `tsteval rate` wrote"
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise FileError(
            f"{path}: this is not the key of a rating sheet; it is called {KEY_FILE} and lies in the "
            f"folder that `tsteval rate` wrote"
        ) from error


# folders beside the key: what raters get, and where filled sheets are looked for
_FOR_RATERS = "for-raters"
FILLED = "ratings"


def write_sheets(
    plan: RatingPlan,
    folder: Path | str,
) -> list[Path]:  # the sheets and forms, the key last
    """Write sheets, forms and key into a folder: all of them, or none.

    Raises: InputError if the folder holds the key of another plan, or a sheet that somebody filled; OSError that names the
    file, with nothing new left.
    """
    folder = Path(folder)
    key = _key_json(plan)
    if (folder / KEY_FILE).exists() and (folder / KEY_FILE).read_text(encoding="utf-8") != key:
        raise InputError(
            f"{folder} holds the key of another study, without which its ratings cannot be read; name "
            f"another folder"
        )
    files = {
        folder / _FOR_RATERS / f"{sheet.rater}.{ending}": make(plan, sheet)
        for sheet in plan.sheets
        for ending, make in (("csv", sheet_csv), ("html", sheet_form))
    } | {folder / KEY_FILE: key}
    for path, text in files.items():
        if path.exists() and path.read_bytes() != text.encode("utf-8", "replace"):
            raise InputError(
                f"{path} was filled or changed since it was written; move it to {folder / FILLED}, or "
                f"name another folder"
            )
    places = [*reversed(folder.parents), folder, folder / _FOR_RATERS, folder / FILLED]
    fresh = [path for path in (*places, *files) if not path.exists()]
    try:
        for place in places:
            place.mkdir(exist_ok=True)
        for path, text in files.items():
            write_whole(path, text)
    except BaseException:
        for path in reversed(fresh):
            with contextlib.suppress(OSError):
                path.rmdir() if path.is_dir() else path.unlink()
        raise
    return list(files)


def told_plan(
    plan: RatingPlan,
    folder: Path | str,  # where its sheets are
) -> str:
    """What was made, and what to do with it."""
    summary = ", ".join(
        f"{sheet.rater} has {len(sheet.items)} items, {sum(item.again for item in sheet.items)} of them "
        f"for the second time"
        for sheet in plan.sheets
    )
    folder = Path(folder)
    if any(criterion.name == "style" for criterion in plan.criteria):
        summary += (
            f". The style that is asked about: {', '.join(dict.fromkeys(plan.table.target_style))}"
        )
    return (
        f"{len(plan.table)} outputs, {plan.table.shown.nunique()} of them different. {summary}.\nGive each rater one "
        f"of the two files in {folder / _FOR_RATERS}: "
        f"the form or the table. Keep {folder / KEY_FILE} to yourself.\nPut what comes back into "
        f"{folder / FILLED}, then run:\n  {shlex.join(['tsteval', 'study', str(folder)])}"
    )


def _shares(
    sizes: np.ndarray,  # (S,) rows that each system has
    n: int,  # rows to hand out
) -> np.ndarray:  # (S,) rows for each system, at most its size
    """Equal shares; what a small system leaves goes to the others."""
    shares = np.zeros(len(sizes))
    open_ = np.ones(len(sizes), dtype=bool)
    left = float(n)
    while open_.any() and left > 1e-9:
        portions = np.minimum(sizes - shares, left / open_.sum()) * open_
        shares = shares + portions
        left = left - portions.sum()
        open_ &= shares < sizes - 1e-9
    return shares


_FEWEST_SOURCES = 2  # of a system: a single source says nothing about the others


def sample_outputs(
    table: pd.DataFrame,  # one row an output: system, source, and whatever else
    n: int,  # rows to draw, about: sources are taken whole
    seed: int = 0,  # of the shuffle
) -> (
    pd.DataFrame
):  # the drawn rows in their order, and inclusion: the probability that each had, 0..1
    """Draw outputs for people to rate: sources at random, the same for every system as far as it has them.

    Raises: InputError for n below two sources a system, or a seed below 0.
    Source: Ohlsson 1995 (permanent random numbers); Särndal, Swensson and Wretman 1992, chapter 3 (strata).
    """
    check_number(n, "n", 1, whole=True)
    check_number(seed, "seed", 0, whole=True)
    source = pd.factorize(table.source)[0]
    turn = np.random.default_rng(seed).permutation(source.max() + 1)[source]
    inclusion = pd.Series(0.0, index=table.index)
    systems = list(table.groupby("system", sort=False).indices.items())
    for (system, rows), share in zip(
        systems, _shares(np.array([len(rows) for _, rows in systems]), n)
    ):
        turns = np.unique(turn[rows])
        taken = min(len(turns), round(share * len(turns) / len(rows)))
        if taken < min(_FEWEST_SOURCES, len(turns)):
            raise InputError(
                f"{n} rows leave system {str(system)[:40]!r} with {taken} of its {len(turns)} sources; "
                f"ask for {_FEWEST_SOURCES * len(systems)} rows or more",
                argument="n",
            )
        inclusion.iloc[rows[turn[rows] <= turns[taken - 1]]] = taken / len(turns)
    return table.assign(inclusion=inclusion)[inclusion > 0]
