"""From ratings and scores to tables and plots: do the metrics follow these raters?"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..core.assets import packaged_path
from ..core.checks import InputError
from ..core.display import printable
from ..core.resample import mean_of_sums, mean_statistics, percentiles, resample_sums
from ..runs.results import SystemScores
from ..tables.formats import FileError
from ..tables.outputs import in_one_form
from ..tables.ratings import RATING_COLUMNS, load_ratings, stored_scores
from ..tables.tables import read_table
from .estimators import estimate_mean
from .ranking import LENGTH, agreement_table
from .raters import rater_consistency, rater_table, read_sheets, unblind
from .sheets import FILLED, KEY_FILE, read_key
from .systems import kendall_tau, permutation_p

STUDIES = ("mir2019", "lai2022", "style_gap", "msr_compression")


@dataclass(frozen=True)
class Study:
    """What raters said."""

    ratings: pd.DataFrame  # one row an output and criterion, as from `load_ratings`
    answers: pd.DataFrame | None = None  # of rating sheets: as from `read_sheets`


def _is_sheet(path: Path) -> bool:
    """Whether a file is a rating sheet, which means nothing without its key."""
    return path.is_file() and bool(
        re.match(rb'(?:\xef\xbb\xbf)?"?sheet"?[,;]"?code"?[,;]', path.read_bytes()[:40])
    )


def _filled_sheets(folder: Path) -> list[Path]:
    """The sheets that came back. Raises: FileError for another file among them."""
    if not (folder / FILLED).is_dir():
        return sorted([*folder.glob("*.csv"), *folder.glob("*.xlsx")])
    files = sorted(
        path for path in (folder / FILLED).iterdir() if not path.name.startswith((".", "~$"))
    )
    if other := [path for path in files if path.suffix.lower() not in (".csv", ".xlsx")]:
        raise FileError(
            f"{other[0]}: filled sheets end in .csv or .xlsx; save it as one, or take it out"
        )
    return files


def read_study(
    names: Sequence[
        Path | str
    ],  # a published study, a folder with a key, filled sheets, or tables of ratings
    key: Path | str | None = None,  # the key of filled sheets; None: the one in the folder
    *,
    unfinished: bool = False,  # take sheets in which ratings are missing
) -> Study:
    """Read the ratings of a study. Raises: FileError that names file, row and column; AssetError for a study that is
    not on this machine."""
    paths = [Path(name) for name in names if str(name) not in STUDIES]
    folders = [path for path in paths if path.is_dir()]
    if len(names) > 1 and (folders or len(paths) < len(names)):
        raise FileError(f"{names[0]}, {names[1]}: give one study, or several files of one")
    if folders:
        key = folders[0] / KEY_FILE if key is None else key
        paths = _filled_sheets(folders[0])
    if key is not None:
        plan = read_key(key)
        answers = read_sheets(paths, plan, unfinished=unfinished)
        there = set(answers.sheet)
        lacking = [sheet.rater for sheet in plan.sheets if sheet.digest not in there]
        if folders and lacking and not unfinished:
            raise FileError(
                f"{folders[0]}: the sheet of {lacking[0]} is not among those that came back "
                f"({len(lacking)} of {len(plan.sheets)} are missing); put it there, or ask for "
                f"unfinished sheets to be read"
            )
        return Study(unblind(answers, plan), answers)
    if sheets := [path for path in paths if _is_sheet(path)]:
        raise FileError(
            f"{sheets[0]}: this is a rating sheet; give the {KEY_FILE} that was written with it, "
            f"with --key"
        )
    parts = [load_ratings(name) for name in names]
    if len({part.data_set[0] for part in parts}) < len(parts):
        raise FileError(f"{names[0]}: two files of one name; rename one")
    return Study(pd.concat(parts, ignore_index=True))


OUTPUT_KEYS = ("data_set", "item", "system", "source_id")


def rated_outputs(
    ratings: pd.DataFrame,
    # one row an output: OUTPUT_KEYS and output; source and target_style unless no output has one; references where every
    # output has some
) -> pd.DataFrame:
    """The outputs of a study as a table to be scored."""
    outputs = ratings.drop_duplicates(["data_set", "item"]).reset_index(drop=True)
    columns = [*OUTPUT_KEYS, "source", "output", "target_style"]
    columns = [name for name in columns if name in OUTPUT_KEYS or outputs[name].astype(bool).any()]
    return outputs[[*columns, "references"] if outputs.references.map(bool).all() else columns]


def read_scores(
    path: Path | str,
    ratings: pd.DataFrame,
) -> pd.DataFrame:  # data_set, item, and the columns of numbers
    """Scores of the rated outputs from a file. Raises: FileError that says what is wrong with it."""
    try:
        frame = read_table(path)
    except InputError as error:
        raise FileError(f"{path}: {error}") from error
    outputs = rated_outputs(ratings).astype({"item": str})
    keys = next(
        (
            keys
            for keys in (["data_set", "item"], ["system", "source", "output"])
            if set(keys) <= set(frame)
        ),
        None,
    )
    if keys is None:
        raise FileError(
            f"{path}: to be joined it needs the columns system, source, output, or data_set, item; it has "
            f"{', '.join(map(str, frame))}"
        )
    frame = frame.astype(dict.fromkeys(keys, str))
    if "output" in keys:
        frame = frame.assign(
            system=frame.system.str.strip(),
            **{name: in_one_form(frame[name], name) for name in ("source", "output")},
        )
    frame = frame.drop_duplicates(keys)
    texts = [
        name
        for name in frame
        if name in (*OUTPUT_KEYS, *RATING_COLUMNS, "input", "shown")
        or re.match(r"reference|rating_\d", str(name))
    ]
    numbers = {
        name: pd.to_numeric(frame[name].replace("", np.nan), errors="coerce")
        for name in frame
        if name not in texts
    }
    scores = {
        name: values
        for name, values in numbers.items()
        if values.notna().any() and values.notna().eq(frame[name].replace("", np.nan).notna()).all()
    }
    if not scores:
        raise FileError(f"{path}: no column holds numbers only, so there is no score in it")
    joined = outputs[list(dict.fromkeys(["data_set", "item", *keys]))].merge(
        pd.concat([frame[keys], pd.DataFrame(scores)], axis=1), on=keys
    )
    if joined.empty:
        raise FileError(
            f"{path}: none of its rows is a rated output; rows are joined by {', '.join(keys)}"
        )
    if len(joined) < len(outputs):
        rated, scored = (
            pd.MultiIndex.from_frame(one[["data_set", "item"]]) for one in (outputs, joined)
        )
        row = int((~rated.isin(scored)).argmax())
        raise FileError(
            f"{path}: {len(outputs) - len(joined):,} of {len(outputs):,} rated outputs have no row in "
            f"it, such as {printable(outputs.output[row], 60)!r} of {printable(outputs.system[row], 40)}; "
            f"score all of them; rows are joined by {', '.join(keys)}"
        )
    return joined[["data_set", "item", *scores]].astype({"item": ratings["item"].dtype})


def _by_system(rated: pd.DataFrame, columns: list[str]) -> np.ndarray | None:
    """(sources, systems, columns) of values, from the sources that every system has; None with too few of either."""
    rated = rated.assign(turn=rated.groupby(["system", "source_id"]).cumcount())
    wide = rated.set_index(["source_id", "turn", "system"])[columns].unstack("system")
    wide = wide.dropna(subset=[("rating", name) for name in dict.fromkeys(rated.system)])
    systems = rated.system.nunique()
    if systems < 3 or len(wide) < 2:
        return None
    return wide.to_numpy(float).reshape(len(wide), len(columns), systems).transpose(0, 2, 1)


def _system_table(
    ratings: pd.DataFrame,
    scores: pd.DataFrame,  # data_set, item, and a column a metric
    criterion: str,
    metrics: Sequence[str],
    *,
    n_boot: int = 1000,  # resamples of sources
    seed: int = 0,  # of the random draws
    # data_set, criterion, metric, systems, sources, tau, low, high, p_value; no row where there are fewer than three
    # systems
) -> pd.DataFrame:
    """Whether metrics put systems into the raters' order. Source: as `system_agreement`."""
    rows: list[dict[str, Any]] = []
    rated = ratings.loc[
        (ratings.criterion == criterion) & ratings.rating.notna(), [*OUTPUT_KEYS, "rating"]
    ].merge(scores[["data_set", "item", *metrics]], on=["data_set", "item"])
    for data_set, part in rated.groupby("data_set", sort=False):
        values = _by_system(part, ["rating", *metrics])
        if values is None:
            continue
        statistics = np.concatenate(
            [
                mean_statistics(values[:, system, column])
                for column in range(values.shape[2])
                for system in range(values.shape[1])
            ],
            axis=1,
        )
        shape = (values.shape[2], values.shape[1], 2)
        observed = mean_of_sums(statistics.sum(axis=0).reshape(shape))
        drawn = mean_of_sums(resample_sums(statistics, n_boot, seed).reshape(n_boot, *shape))
        for place, metric in enumerate(metrics, 1):
            tau = math.nan
            ends = (math.nan, math.nan)
            if np.isfinite(observed[place]).all():
                tau = float(kendall_tau(observed[place], observed[0]))
                ends = percentiles(kendall_tau(drawn[:, place], drawn[:, 0]))
            rows.append(
                {
                    "data_set": data_set,
                    "criterion": criterion,
                    "metric": metric,
                    "systems": values.shape[1],
                    "sources": len(values),
                    "tau": tau,
                    "low": ends[0],
                    "high": ends[1],
                    "p_value": permutation_p(observed[place], observed[0]) if tau == tau else tau,
                }
            )
    return pd.DataFrame(
        rows,
        columns=[
            "data_set",
            "criterion",
            "metric",
            "systems",
            "sources",
            "tau",
            "low",
            "high",
            "p_value",
        ],
    )


def _meant() -> dict[str, list[str]]:
    """What each stored score was made for: criterion, or "baseline" -> names."""
    return json.loads(packaged_path("agreement_criteria.json").read_text(encoding="utf-8"))


def trivial_scores(
    data_set: str,
) -> set[str]:  # names of scores
    """The scores that read nothing but a length, or whether anything was changed."""
    return {LENGTH, *(_meant()["baseline"] if data_set in STUDIES else ())}


def metrics_for(
    criterion: str,
    scores: pd.DataFrame,  # as `stored_scores`
) -> list[str]:
    """The stored scores that were made with a criterion in mind, and baselines such as length; all of them for any
    other criterion."""
    meant = _meant()
    names = [
        name
        for name in scores
        if name not in OUTPUT_KEYS and pd.api.types.is_numeric_dtype(scores[name])
    ]
    if criterion not in meant:
        return names
    chosen = {*meant[criterion], *meant["baseline"]}
    return [name for name in names if name in chosen]


@dataclass(frozen=True)
class StudyScores:
    """Scores of rated outputs."""

    scores: pd.DataFrame  # data_set, item, and a column a metric
    metrics: (
        dict[str, list[str]] | None
    )  # criterion -> the columns that belong to it; None: all to each
    facts: dict[str, str]  # what is needed to repeat them


def study_scores(
    study: Study,
    file: Path | str | None = None,  # a table of scores
    *,
    anew: bool = False,  # do not take the stored ones
) -> StudyScores | None:  # None: the outputs have to be scored
    """Scores that are there already. Raises: FileError as `read_scores`."""
    if file is not None:
        return StudyScores(read_scores(file, study.ratings), None, {"scores": Path(file).name})
    if anew or not set(study.ratings.data_set) <= set(STUDIES):
        return None
    parts = [stored_scores(name) for name in dict.fromkeys(study.ratings.data_set)]
    scores = pd.concat(parts, ignore_index=True).drop(
        columns=["system", "source_id"]
    )  # the ratings say these
    return StudyScores(
        scores,
        {
            criterion: metrics_for(criterion, scores)
            for criterion in study.ratings.criterion.unique()
        },
        {"scores": "as stored in the package"},
    )


def with_keys(
    outputs: pd.DataFrame,  # from `rated_outputs`
    result: SystemScores,  # an evaluation of these outputs
) -> StudyScores:
    """An evaluation as the scores of a study."""
    scores = pd.concat([outputs[["data_set", "item"]], result.per_pair[result.columns]], axis=1)
    return StudyScores(scores, None, {**result.signatures, **result.models})


def mean_ratings(
    ratings: pd.DataFrame,  # as from `load_ratings`
) -> (
    pd.DataFrame
):  # data_set, criterion, system, outputs, sources, mean, low, high (95%, over sources)
    """What the raters said of each system; the interval is for texts like these, and NaN below two sources."""
    rows = []
    for key, part in ratings.groupby(["data_set", "criterion", "system"], sort=False):
        found = estimate_mean(part.rating, np.empty((len(part), 0)), part.source.to_numpy())
        rows.append(
            (*map(str, key), len(part), found.rated_sources, found.mean, found.low, found.high)
        )
    return pd.DataFrame(
        rows,
        columns=["data_set", "criterion", "system", "outputs", "sources", "mean", "low", "high"],
    )


def study_tables(
    study: Study,
    scores: pd.DataFrame,  # data_set, item, and a column a metric
    metrics: Mapping[str, Sequence[str]] | None = None,  # criterion -> columns of scores; None: all
    *,
    n_boot: int = 1000,  # bootstrap resamples
    seed: int = 0,  # of the random draws
) -> dict[str, pd.DataFrame]:  # agreement, systems, raters, means, and of rating sheets consistency
    """All tables of a study. Raises: as `agreement_table`."""
    named = [name for name in scores if name not in OUTPUT_KEYS]
    agreement = []
    systems = []
    for criterion in dict.fromkeys(study.ratings.criterion):
        chosen = list((metrics or {}).get(criterion, named))
        sets = study.ratings[study.ratings.criterion == criterion].data_set.unique()
        there = [
            name for name in chosen if scores.loc[scores.data_set.isin(sets), name].notna().any()
        ]
        few = scores[["data_set", "item", *there]].copy()
        agreement.append(
            agreement_table(
                study.ratings, few, criterion, metrics=there, n_boot=n_boot, seed=seed
            ).assign(criterion=criterion)
        )
        systems.append(
            _system_table(study.ratings, scores, criterion, there, n_boot=n_boot, seed=seed)
        )
    whole = pd.concat(agreement, ignore_index=True)
    tables = {
        "agreement": whole[
            [
                "data_set",
                "criterion",
                *(name for name in whole if name not in ("data_set", "criterion")),
            ]
        ],
        "systems": pd.concat(systems, ignore_index=True),
        "raters": rater_table(study.ratings),
        "means": mean_ratings(study.ratings),
    }
    if study.answers is not None and study.answers.again.any():
        tables["consistency"] = rater_consistency(study.answers)
    return tables
