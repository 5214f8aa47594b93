"""What people said of texts: published sets, a reader's own file, or a simulated study, in one long table"""

import io
from pathlib import Path

import numpy as np
import pandas as pd

from ..core.assets import corpora, packaged_path
from ..core.checks import InputError, check_choice, check_number, check_texts
from .columns import with_our_names
from .compressions import load_compressions
from .formats import FileError
from .lai2022 import load_lai2022
from .mir2019 import load_mir2019, pinned_bytes
from .outputs import LONGEST, checked_pairs
from .rated_sets import rated_sets, read_rated_set
from .tables import read_table

_CRITERIA = ("style", "content", "naturalness")
# a study's own word -> the criterion
_OTHER_WORDS = {
    "fluency": "naturalness",
    "grammar": "naturalness",
    "natural": "naturalness",
    "meaning": "content",
}
_TEXT_COLUMNS = (
    "data_set",
    "system",
    "item",
    "source_id",
    "source",
    "output",
    "reference",
    "references",
    "target_style",
)
# then rating_1, ... as far as there are
RATING_COLUMNS = (*_TEXT_COLUMNS, "criterion", "asked", "rating", "raters", "spread")


def _long(
    outputs: pd.DataFrame,  # N rows with the columns of _TEXT_COLUMNS after item and source_id
    data_set: str,
    ratings: dict,  # a study's word -> (N,) mean ratings, or (N, R) answers of R raters
    raters=None,  # how many raters each output had, where only means are known
    means: dict[str, str]
    | None = None,  # a study's own word -> the criterion, beside `_OTHER_WORDS`
) -> pd.DataFrame:
    """One row an output and criterion, from one row an output; columns beyond those of _TEXT_COLUMNS come last."""
    if "references" not in outputs:
        outputs = outputs.assign(references=_in_lists(outputs.reference))
    clusters = outputs.cluster if "cluster" in outputs else outputs.source
    outputs = outputs.assign(
        data_set=data_set, item=np.arange(len(outputs)), source_id=pd.factorize(clusters)[0]
    )
    words = _OTHER_WORDS | (means or {})
    stored = [name for name in outputs if name not in (*_TEXT_COLUMNS, "cluster")]
    parts = []
    for asked, cells in ratings.items():
        values = np.asarray(cells, dtype=float)
        part = outputs[list(_TEXT_COLUMNS)].assign(criterion=words.get(asked, asked), asked=asked)
        if values.ndim == 2:
            part = part.assign(
                rating=np.nanmean(values, axis=1),
                raters=(~np.isnan(values)).sum(axis=1).astype(float),
                spread=np.nanstd(values, axis=1, ddof=1),
                **{f"rating_{rater}": column for rater, column in enumerate(values.T, 1)},
            )
        else:
            counts = np.nan if raters is None else np.asarray(raters, dtype=float)
            part = part.assign(rating=values, raters=counts, spread=np.nan)
        parts.append(pd.concat([part, outputs[stored]], axis=1))
    return pd.concat(parts, ignore_index=True)


def _in_lists(references: pd.Series) -> list[list[str]]:
    return [[text] if isinstance(text, str) else [] for text in references]


def _mir2019() -> pd.DataFrame:
    table = load_mir2019()
    outputs = table.assign(
        system=table.system + " " + table.setting,
        reference=np.nan,
        target_style=np.where(table.target == 1, "positive", "negative"),
    )
    ratings = {asked: table[f"human_{asked}"] for asked in _CRITERIA}
    return _long(outputs, "mir2019", ratings, np.full(len(table), 3))


def _lai2022() -> pd.DataFrame:
    table = load_lai2022()
    outputs = table.assign(target_style=table.to_formal.map({True: "formal", False: "informal"}))
    ratings = {
        asked: table[[f"human_{asked}_1", f"human_{asked}_2"]]
        for asked in ("style", "content", "fluency")
    }
    return _long(outputs, "lai2022", ratings)


_STYLE_GAP_FILES = ("syntest_anno1.csv", "syntest_anno2.csv", "syntest_anno3.csv")


def _style_gap() -> pd.DataFrame:
    files = [io.BytesIO(pinned_bytes("style_gap", name)) for name in _STYLE_GAP_FILES]
    table = pd.concat(map(pd.read_csv, files), ignore_index=True)
    columns = {
        "system": "intention",
        "source": "input",
        "output": "output",
        "reference": "reference",
        "target_style": "style_to",
    }
    outputs = table[list(columns.values())].set_axis(list(columns), axis=1)
    ratings = {
        asked: table[[f"Answer{letter}_{rater}" for rater in (1, 2, 3)]]
        for asked, letter in (("style", "A"), ("content", "B"))
    }
    return _long(outputs, "style_gap", ratings)


def _msr_compression() -> pd.DataFrame:
    table = load_compressions()
    outputs = table.assign(
        system="person", output=table.compression, reference=np.nan, target_style="shorter"
    )
    ratings = {asked: table[asked] for asked in ("meaning", "grammar")}
    return _long(outputs, "msr_compression", ratings, table.get("raters"))


_STUDIES = {
    "mir2019": _mir2019,
    "lai2022": _lai2022,
    "style_gap": _style_gap,
    "msr_compression": _msr_compression,
}


def _rated_set(name: str) -> pd.DataFrame:
    """A set that is read by its declaration."""
    outputs, answers = read_rated_set(name)
    first = [references[0] if references else np.nan for references in outputs.references]
    declared = corpora()[name].ratings
    raters = declared.get("raters")
    counts = None if raters is None else np.full(len(outputs), raters)
    return _long(outputs.assign(reference=first), name, answers, counts, declared.get("means"))


_KEY = ["system", "source_id", "output", "criterion"]


def _numbers(cells: pd.Series) -> pd.Series:
    """Ratings as numbers, NaN where the cell is empty."""
    texts = cells.map(lambda cell: cell.strip() or None if isinstance(cell, str) else cell)
    numbers = pd.to_numeric(texts, errors="coerce").astype(float)
    wrong = np.flatnonzero((numbers.isna() & texts.notna()) | np.isinf(numbers))
    if len(wrong):
        raise InputError(
            f"expected a number, got {cells.iloc[wrong[0]]!r:.60}", column="rating", row=wrong[0]
        )
    if numbers.isna().all():
        raise InputError("there is no rating in any row", column="rating")
    return numbers


def _own_rows(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    """The rows of a reader's file, checked, one a rating."""
    frame, _ = with_our_names(frame)
    for column in ("source", "output", "criterion", "rating"):
        if column not in frame.columns:
            raise InputError(
                f"there is no column {column}; a table of ratings has source, output, criterion (what was rated, such as "
                f"content) and rating; the columns are {', '.join(map(str, frame.columns))}"
            )
    pair_columns = ("system", "source", "output", "target_style")
    rows = checked_pairs(frame[[column for column in pair_columns if column in frame]])
    words = check_texts(list(frame.criterion), column="criterion", empty=False, longest=LONGEST)
    rows["asked"] = [word.strip() for word in words]
    rows["criterion"] = rows.asked.map(_criterion)
    rows["rating"] = _numbers(frame.rating).to_numpy()
    sources = frame.source_id.astype(str) if "source_id" in frame else rows.source
    rows["source_id"] = pd.factorize(sources)[0]
    rows["reference"] = frame.reference.to_numpy() if "reference" in frame else np.nan
    rows["references"] = _in_lists(rows.reference)
    if "inclusion" in frame:
        rows["inclusion"] = pd.to_numeric(frame.inclusion, errors="coerce").to_numpy(float)
    raters = frame.rater if "rater" in frame else rows.groupby(_KEY).cumcount()
    rows["rater"] = raters.astype(str).to_numpy()
    rows["data_set"] = name
    outputs = pd.MultiIndex.from_frame(rows[["system", "source_id", "output"]])
    return rows.assign(item=pd.factorize(outputs)[0])


def _criterion(asked: str) -> str:
    """The criterion that a study's own word means; another word is a criterion of its own."""
    word = asked.lower()
    return _OTHER_WORDS.get(word, word if word in _CRITERIA else asked)


def _averaged(rows: pd.DataFrame) -> pd.DataFrame:
    rated = rows[rows.rating.notna()]
    answers = rated.groupby([*_KEY, "rater"], sort=False).rating.mean().unstack("rater")
    answers = answers[rated.rater.unique()]
    table = rated.drop_duplicates(_KEY).reset_index(drop=True)
    answers = answers.reindex(pd.MultiIndex.from_frame(table[_KEY])).reset_index(drop=True)
    answers.columns = [f"rating_{rater}" for rater in range(1, answers.shape[1] + 1)]
    table = table.assign(
        rating=answers.mean(axis=1),
        raters=answers.notna().sum(axis=1).astype(float),
        spread=answers.std(axis=1),
    )
    columns = [name for name in (*RATING_COLUMNS, "inclusion") if name in table]
    return pd.concat([table[columns], answers], axis=1)


def load_ratings(
    # mir2019 | lai2022 | style_gap | msr_compression, one of `rated_sets()`, or a file of one's own: .csv, .tsv,
    # .jsonl, .parquet
    name: Path | str,
    # one row an output and criterion: RATING_COLUMNS; rating_1, ... where raters are known one by one; what a published
    # set stores beside; and inclusion (the probability with which an output was drawn) where a file tells it
) -> pd.DataFrame:
    """What people said of texts, in one long table: a rating is a mean over raters, or a label, 1 where the text has
    what the criterion names (toxic, acceptable, avoided, relevant, supported) and 0 where not. Rows of one `source_id`
    depend on each other and are resampled together: they share a source, an author or a template.

    Raises: AssetError if a study is not on this machine, saying how to get it, or a file of it has changed; FileError
    naming the file, row and column of what cannot be read.
    Source: Mir et al. 2019; Lai et al. 2022; Pauli et al. 2025; Toutanova et al. 2016; of the other sets, `terms` and
    `get_it` of `core.assets.find_corpus(name)`.
    """
    if name in _STUDIES:
        return _STUDIES[name]()
    if name in rated_sets():
        return _rated_set(str(name))
    path = Path(name)
    if not path.suffix and not path.exists():
        check_choice(str(name), "name", (*_STUDIES, *rated_sets()))
    try:
        return _averaged(_own_rows(read_table(path), path.stem))
    except InputError as error:
        raise FileError(f"{path}: {error}") from error


_SHARES = {"source": 0.3, "system": 0.3, "own": 0.4}  # of the variance of quality
_NEAR = {"near": 0.7, "far": 0.4, "chance": 0.0}  # correlation with quality
SIMULATED_SCORES = (*_NEAR, "misleading")


def simulated_truth(
    raters: int = 3,  # whose mean is the rating, >= 1
    # one row a score: its true correlation with the mean rating, over all outputs and within one system
) -> pd.DataFrame:
    """What correlations in `simulated_ratings` would be with endlessly many sources. Raises: InputError for raters <
    1."""
    check_number(raters, "raters", 1, whole=True)
    _, system, own = _SHARES.values()
    # covariances and variances with quality
    rows = {name: (r, 1.0, r * (1 - system), 1 - r**2 * system) for name, r in _NEAR.items()}
    rows["misleading"] = (
        0.8**0.5 * system**0.5 - (0.2 * own) ** 0.5,
        1.0,
        -((0.2 * own) ** 0.5),
        0.2,
    )
    pooled = 1 + 1 / raters
    inside = 1 - system + 1 / raters  # variance of the mean rating
    return pd.DataFrame(
        {
            name: {"pooled": a / (b * pooled) ** 0.5, "within": c / (d * inside) ** 0.5}
            for name, (a, b, c, d) in rows.items()
        }
    ).T


def simulated_ratings(
    n_sources: int = 50,  # at least 2
    n_systems: int = 6,  # at least 2
    seed: int = 0,  # of NumPy's default_rng
) -> pd.DataFrame:  # columns as of `load_ratings`, and SIMULATED_SCORES; see `simulated_truth`
    """A study that nobody made: three raters, three criteria, and four scores whose true correlations are known.

    Raises: InputError for fewer than two sources or systems.
    """
    for value, name in ((n_sources, "n_sources"), (n_systems, "n_systems")):
        check_number(value, name, 2, whole=True)
    generator = np.random.default_rng(seed)
    shape = (n_systems, n_sources)
    ladder = np.arange(n_systems) - (n_systems - 1) / 2
    source = np.tile(np.arange(n_sources), n_systems)
    system = np.repeat(np.arange(n_systems), n_sources)
    names = [chr(ord("A") + place) if n_systems <= 26 else str(place + 1) for place in system]
    outputs = pd.DataFrame(
        {
            "system": names,
            "source": [f"Source {number}." for number in source],
            "reference": np.nan,
            "target_style": "neutral",
            "output": [f"Output {number} of system {name}." for number, name in zip(source, names)],
        }
    )
    parts = []
    for criterion in _CRITERIA:
        # fixed, so that the truth holds for any number
        t = np.broadcast_to((generator.permutation(ladder) / ladder.std())[:, None], shape)
        s = np.broadcast_to(generator.normal(size=n_sources), shape)
        e = generator.normal(size=shape)
        quality = sum(share**0.5 * part for share, part in zip(_SHARES.values(), (s, t, e)))
        answers = 3 + quality.reshape(-1, 1) + generator.normal(size=(quality.size, 3))
        errors = {
            name: (generator.normal(size=n_sources) + generator.normal(size=shape)) / 2**0.5
            for name in _NEAR
        }
        scores = {
            name: r * quality + (1 - r**2) ** 0.5 * errors[name] for name, r in _NEAR.items()
        } | {"misleading": 0.8**0.5 * t - 0.2**0.5 * e}
        parts.append(
            _long(outputs, "simulated", {criterion: answers}).assign(
                **{name: values.ravel() for name, values in scores.items()}
            )
        )
    return pd.concat(parts, ignore_index=True)


def stored_scores(
    name: str,  # mir2019 | lai2022 | style_gap | msr_compression
    # of that study, from `load_ratings`: then the outputs are compared, too
    ratings: pd.DataFrame | None = None,
    # one row an output: data_set, system, item, source_id, and a column a score, NaN where it was not computed
) -> pd.DataFrame:
    """What this package's metrics say of every output of a rated study.

    Raises: InputError for an unknown study, or ratings of other outputs than those that were scored.
    """
    check_choice(name, "name", _STUDIES)
    table = pd.read_csv(packaged_path("agreement_scores.csv.gz"))
    table = table[table.data_set == name].dropna(axis=1, how="all").reset_index(drop=True)
    if ratings is None:
        return table
    lengths = ratings.drop_duplicates("item").set_index("item").output.str.len()
    scored_lengths = table.set_index("item").characters
    if list(lengths) != list(scored_lengths.reindex(lengths.index)):
        raise InputError(
            f"ratings: these are not the outputs of {name} that were scored; score them with "
            f"tsteval.evaluation.evaluate"
        )
    return table
