"""What follows people: every score, settings chosen on one study and reported on others, the treatment of length,
predictions.

    python nbs/making/agreement_study.py             # a few minutes; needs the corpora (TSTEVAL_DATA) and
    tsteval/data/agreement_scores.csv.gz

Written: tsteval/data/agreement_results.csv (a row a figure: analysis, criterion, family, score, chosen_on, reported_on,
measure, value, its 95% interval, outputs, sources) and agreement_defaults.csv (the same form: what the package's
defaults rest on). Intervals come from resampling sources, on Fisher's scale for correlations. No figure under the
analyses `chosen` and `combined` was fitted on the outputs it is reported on.
"""

import numpy as np
import pandas as pd
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from tsteval.core.assets import packaged_path
from tsteval.core.resample import resample_sums
from tsteval.people.coefficients import fisher_ends
from tsteval.people.ranking import agreement_table
from tsteval.people.raters import reliability
from tsteval.tables.mir2019 import MIR2019_SETTINGS, pinned_arrays
from tsteval.tables.ratings import load_ratings

STUDIES = ("mir2019", "lai2022", "style_gap", "msr_compression")
CRITERIA = ("style", "content", "naturalness")
N_BOOT = 1000
KEYS = ["data_set", "system", "item", "source_id"]


# ---- the data

PUBLISHED = ["published_wmd_masked", "published_meteor", "published_naturalness"]


def published() -> pd.DataFrame:
    """What the authors' own best scores say on mir2019, in the order of its outputs; a distance with its sign
    turned."""
    parts = []
    for system, settings in MIR2019_SETTINGS.items():
        for setting in settings:
            stored = pinned_arrays(
                "mir2019",
                f"evaluations/automated/content_preservation/sentence_level/{system}_{setting}.npz",
            )
            natural = pinned_arrays(
                "mir2019",
                f"evaluations/automated/naturalness/sentence_level/{system}_{setting}.npz",
            )
            parts.append(
                pd.DataFrame(
                    {
                        "published_naturalness": np.asarray(natural["neural"], float),
                        "published_wmd_masked": -np.asarray(
                            stored["style_masked"].item()["WMD"], float
                        ).ravel(),
                        "published_meteor": np.asarray(
                            stored["unmasked"].item()["METEOR"], float
                        ).ravel(),
                    }
                )
            )
    return pd.concat(parts, ignore_index=True)


def load() -> tuple[pd.DataFrame, dict[str, pd.DataFrame]]:
    """The ratings, and for each scope a table with one row an output: scores, and ratings under the names of
    CRITERIA."""
    scores = pd.read_csv(packaged_path("agreement_scores.csv.gz"))
    mine = scores.data_set == "mir2019"
    scores = pd.concat([scores, published()[PUBLISHED].set_axis(scores.index[mine])], axis=1)
    ratings = pd.concat([load_ratings(study) for study in STUDIES], ignore_index=True)
    wide = ratings.pivot(
        index=["data_set", "item"], columns="criterion", values="rating"
    ).reset_index()
    styles = ratings.drop_duplicates(["data_set", "item"])[["data_set", "item", "target_style"]]
    table = scores.merge(wide, on=["data_set", "item"]).merge(styles, on=["data_set", "item"])
    assert len(table) == len(scores)
    scopes = {study: table[table.data_set == study] for study in STUDIES}
    for system in MIR2019_SETTINGS:
        scopes[f"mir2019 {system}"] = scopes["mir2019"][
            scopes["mir2019"].system.str.startswith(system)
        ]
    return ratings, {name: scope.reset_index(drop=True) for name, scope in scopes.items()}


# ---- correlations of many columns at once


def moments(columns: np.ndarray, human: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """(G, 3 + 3K) sums over the rows of each source: what correlations of K columns with the ratings need."""
    columns = columns - columns.mean(axis=0)
    human = human - human.mean()
    parts = np.column_stack(
        [np.ones(len(human)), human, human**2, columns, columns**2, columns * human[:, None]]
    )
    sums = np.zeros((groups.max() + 1, parts.shape[1]))
    np.add.at(sums, groups, parts)
    return sums


def pearsons(sums: np.ndarray) -> np.ndarray:
    """(..., 3 + 3K) -> (..., K)."""
    n, y, yy = (sums[..., place, None] for place in range(3))
    x, xx, xy = np.split(sums[..., 3:], 3, axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return (n * xy - x * y) / np.sqrt((n * xx - x * x) * (n * yy - y * y))


class Drawn:
    """Correlations of columns with one criterion in one scope, and the same in each resample of sources."""

    def __init__(
        self,
        table: pd.DataFrame,
        names: list[str],
        criterion: str,
        method: str = "pearson",
        columns: np.ndarray | None = None,
    ):
        columns = table[names].to_numpy(float) if columns is None else columns
        # a score that this scope lacks has no correlation, and costs the others no rows
        known = np.isfinite(columns).any(axis=0)
        there = np.isfinite(columns[:, known]).all(axis=1) & table[criterion].notna().to_numpy()
        columns = columns[there]
        human = table[criterion].to_numpy(float)[there]
        if method == "spearman":
            columns = pd.DataFrame(columns).rank().to_numpy()
            human = pd.Series(human).rank().to_numpy()
        groups = pd.factorize(table.source_id[there])[0]
        sums = moments(columns / np.maximum(columns.std(axis=0), 1e-12), human, groups)
        self.names = list(names)
        self.n = int(there.sum())
        self.sources = int(groups.max()) + 1
        self.value = pearsons(sums.sum(axis=0))
        self.drawn = pearsons(resample_sums(sums, N_BOOT))

    def of(self, name: str) -> tuple[float, float, float]:
        place = self.names.index(name)
        return self.value[place], *fisher_ends(
            float(self.value[place]), self.drawn[:, place], self.sources
        )

    def minus(self, name: str, other: str) -> tuple[float, float, float]:
        a = self.names.index(name)
        b = self.names.index(other)
        difference = self.value[a] - self.value[b]
        drawn = self.drawn[:, a] - self.drawn[:, b]
        return difference, *np.nanquantile(drawn, (0.025, 0.975))


ROWS: list[dict] = []


def note(
    analysis: str,
    criterion: str,
    family: str,
    score: str,
    chosen_on: str,
    reported_on: str,
    measure: str,
    value,
    low=np.nan,
    high=np.nan,
    n: int = 0,
    sources: int = 0,
) -> None:
    ROWS.append(
        {
            "analysis": analysis,
            "criterion": criterion,
            "family": family,
            "score": score,
            "chosen_on": chosen_on,
            "reported_on": reported_on,
            "measure": measure,
            "value": value,
            "low": low,
            "high": high,
            "n": n,
            "sources": sources,
        }
    )


# ---- families of settings

MASKS = [
    "cosine",
    "cps_pad",
    "cps_remove",
    "cps_pad_words",
    "cps_remove_words",
    "cps_pad_lexicon",
    "cps_remove_lexicon",
]
THRESHOLDS = ["cosine", "cps_pad_10", "cps_pad", "cps_pad_50", "cps_pad_70"]
MEASURES = ["bleu", "rouge_l", "chrf", "meteor", "wmd", "bert_score", "cosine"]
UNDER = ["", "_remove_words", "_pad_lexicon", "_remove_lexicon"]
LEXICAL = [f"{measure}{mask}" for measure in MEASURES[:-1] for mask in UNDER]
LENGTHS = [
    "logprob",
    "nce",
    "root",
    "wpslor",
    "norm_lp",
    "pen_lp",
    "over_brown",
    "z_brown",
    "over_source",
    "lowest_token",
    "lowest_gain",
    "lowest_regret",
    "lowest_quarter",
    "beyond_4",
    "beyond_6",
    "beyond_8",
    "regret",
    "no_accident_10",
    "no_accident_3",
    "no_accident",
    "no_accident_03",
    "no_accident_01",
]
FORMS = ["", "_written"]
# what each token may cost before it counts against a text
FREE = {f"nats_free_{nats:g}": nats for nats in np.arange(0, 6.5, 0.5)}
# of the length, by which log-probability is divided
POWERS = {f"power_{power:.1f}": power for power in np.arange(0, 1.05, 0.1)}
STYLE = ["sti", "sti_size", "sti_normalized", "target_probability"]
FAMILIES = {  # criterion, family -> the scores, the baseline
    ("content", "mask"): (MASKS, "cosine"),
    ("content", "threshold"): (THRESHOLDS, "cosine"),
    ("content", "measure"): (MEASURES, "cosine"),
    ("content", "measure and mask"): ([*LEXICAL, *MASKS], "cosine"),
    ("naturalness", "length"): (LENGTHS, "logprob"),
    ("naturalness", "length, as written"): (
        [f"{name}_written" for name in LENGTHS],
        "logprob_written",
    ),
    ("naturalness", "nats free for each token"): ([*FREE], "nats_free_0"),
    ("naturalness", "power of length"): ([*POWERS], "power_0.0"),
    ("style", "measure"): (STYLE, "sti"),
}
SCOPES = {
    "content": (
        "mir2019 ARAE",
        "mir2019 CAAE",
        "mir2019",
        "lai2022",
        "style_gap",
        "msr_compression",
    ),
    "naturalness": ("mir2019 ARAE", "mir2019 CAAE", "mir2019", "lai2022", "msr_compression"),
    "style": ("mir2019 ARAE", "mir2019 CAAE", "mir2019", "lai2022"),
}


def apart(first: str, second: str) -> bool:
    """Whether two scopes share no output."""
    return first != second and not (
        first.startswith("mir2019")
        and second.startswith("mir2019")
        and "mir2019" in (first, second)
    )


def derived(table: pd.DataFrame) -> pd.DataFrame:
    """Scores that follow from stored columns. Where outputs were not tokenised they are as people write, and the
    columns for that are equal."""
    table = table.copy().assign(
        **{
            name: table[name].fillna(table[name.removesuffix("_written")])
            for name in table
            if name.endswith("_written")
        }
    )
    found = {
        f"root{form}": table[f"logprob{form}"] / np.sqrt(table[f"n_tokens{form}"]) for form in FORMS
    }
    found |= {name: table.logprob + nats * table.n_tokens for name, nats in FREE.items()}
    found |= {name: table.logprob / table.n_tokens**power for name, power in POWERS.items()}
    for name, measures in MEANS.items():
        found[name] = table[measures].mean(axis=1)
        found[f"{name}_half_masked"] = table[[*measures, *masked(measures)]].mean(
            axis=1, skipna=False
        )
    return pd.concat([table, pd.DataFrame(found)], axis=1)


MEANS = {
    "overlap_and_meaning": ["chrf", "meteor", "bert_score", "cosine"],
    "chrf_and_cosine": ["chrf", "cosine"],
}


def masked(measures: list[str], mask: str = "_remove_lexicon") -> list[str]:
    """The same measures of texts without the words of a style lexicon."""
    return [f"cps{mask}" if measure == "cosine" else f"{measure}{mask}" for measure in measures]


def fixed(scopes: dict[str, pd.DataFrame]) -> None:
    """Scores of content without any weight or setting to fit, beside the best that was published for each system of
    mir2019."""
    names = [
        *MEASURES,
        *(f"{mean}{end}" for mean in MEANS for end in ("", "_half_masked")),
        "cps_remove_lexicon",
        "bert_score_remove_lexicon",
    ]
    for scope in BEST_PUBLISHED:
        for name in names:
            beside_published("fixed", "", name, ("", scope), scopes[scope], scopes[scope][name])
        for name in ("logprob", "nce", "wpslor", "pen_lp", "pen_lp_written"):
            beside_published(
                "fixed", "", name, ("", scope), scopes[scope], scopes[scope][name], "naturalness"
            )


def choose(scopes: dict[str, pd.DataFrame]) -> None:
    """The best of a family on one scope, reported on the others."""
    for (criterion, family), (names, baseline) in FAMILIES.items():
        found = {scope: Drawn(scopes[scope], names, criterion) for scope in SCOPES[criterion]}
        for chosen_on, here in found.items():
            if np.isnan(here.value).mean() > 0.3:
                continue  # too few of the family are known there to choose from
            best = names[int(np.nanargmax(here.value))]
            for reported_on, there in found.items():
                if not apart(chosen_on, reported_on) or np.isnan(there.of(best)[0]):
                    continue
                facts = chosen_on, reported_on
                note(
                    "chosen",
                    criterion,
                    family,
                    best,
                    *facts,
                    "pearson",
                    *there.of(best),
                    there.n,
                    there.sources,
                )
                note(
                    "chosen",
                    criterion,
                    family,
                    best,
                    *facts,
                    f"pearson minus {baseline}",
                    *there.minus(best, baseline),
                    there.n,
                    there.sources,
                )
                top = names[int(np.nanargmax(there.value))]
                note(
                    "chosen",
                    criterion,
                    family,
                    best,
                    *facts,
                    f"pearson minus the best there ({top})",
                    *there.minus(best, top),
                    there.n,
                    there.sources,
                )
                if criterion == "content" and reported_on in BEST_PUBLISHED:
                    beside_published(
                        "chosen",
                        family,
                        best,
                        facts,
                        scopes[reported_on],
                        scopes[reported_on][best],
                    )


BEST_PUBLISHED = {"mir2019 ARAE": "published_wmd_masked", "mir2019 CAAE": "published_meteor"}


def beside_published(
    analysis: str,
    family: str,
    score: str,
    facts: tuple[str, str],
    table: pd.DataFrame,
    values,
    criterion: str = "content",
) -> None:
    """A score minus the best that the authors of mir2019 published, on one of its systems."""
    best = BEST_PUBLISHED[facts[1]] if criterion == "content" else "published_naturalness"
    both = Drawn(table, [score, best], criterion, columns=np.column_stack([values, table[best]]))
    if analysis == "fixed":
        note(
            analysis,
            criterion,
            family,
            score,
            *facts,
            "pearson",
            *both.of(score),
            both.n,
            both.sources,
        )
    note(
        analysis,
        criterion,
        family,
        score,
        *facts,
        f"pearson minus {best}",
        *both.minus(score, best),
        both.n,
        both.sources,
    )


# ---- combinations: weights fitted on some scopes, reported on another

COMBINATIONS = {
    "content": {
        "overlap and meaning": ["chrf", "cosine"],
        "overlap and meaning, masked and not": [
            "chrf",
            "cosine",
            "chrf_remove_lexicon",
            "cps_remove_lexicon",
        ],
        "unmasked": ["chrf", "meteor", "wmd", "bert_score", "cosine"],
        "masked by lexicon and unmasked": [
            "chrf",
            "meteor",
            "wmd",
            "bert_score",
            "cosine",
            "chrf_remove_lexicon",
            "meteor_remove_lexicon",
            "wmd_remove_lexicon",
            "bert_score_remove_lexicon",
            "cps_remove_lexicon",
        ],
        "with evidence": [
            "chrf",
            "bert_score",
            "cosine",
            "evidence_support",
            "evidence_source_support",
            "evidence_regret",
            "evidence_classifier",
        ],
    },
    "naturalness": {
        "log-probability and length": ["logprob", "n_tokens"],
        "three sums": ["logprob", "n_tokens", "unigram_logprob"],
        "total, mean and worst": ["logprob", "nce", "lowest_token", "no_accident"],
        "all treatments": [
            "logprob",
            "nce",
            "wpslor",
            "norm_lp",
            "pen_lp",
            "lowest_gain",
            "no_accident",
            "over_source",
            "z_brown",
            "lowest_quarter",
        ],
        "neural and n-gram": ["logprob", "nce", "no_accident", "amelioration_1", "logprob_brown"],
    },
    "style": {"all": STYLE},
}
BASELINES = {"content": "cosine", "naturalness": "logprob", "style": "sti"}
PENALTY = 0.1


def fitted(tables: list[pd.DataFrame], names: list[str], criterion: str):
    """Weights by ridge regression on standardised columns, each table counting the same; given back as a function of a
    table."""
    columns = []
    ratings = []
    counts = []
    for table in tables:
        whole = table[[*names, criterion]].dropna()
        (
            columns.append(whole[names].to_numpy(float)),
            ratings.append(whole[criterion].to_numpy(float)),
            counts.append(len(whole)),
        )
    weights = np.concatenate([np.full(count, 1 / count) for count in counts]) / len(tables)
    x = np.concatenate(columns)
    y = np.concatenate([(rating - rating.mean()) / rating.std() for rating in ratings])
    mean = weights @ x
    spread = np.sqrt(weights @ (x - mean) ** 2)
    z = (x - mean) / spread
    found = np.linalg.solve(
        z.T @ (z * weights[:, None]) + PENALTY * np.eye(len(names)), z.T @ (weights * y)
    )
    return lambda table: ((table[names] - mean) / spread).to_numpy(float) @ found


def combine(scopes: dict[str, pd.DataFrame]) -> None:
    for criterion, sets in COMBINATIONS.items():
        for label, names in sets.items():
            there = [
                scope
                for scope in SCOPES[criterion]
                if set(names) <= set(scopes[scope])
                and scopes[scope][[*names, criterion]].dropna().shape[0] > 50
            ]
            for reported_on in there:
                others = [scope for scope in there if apart(scope, reported_on)]
                studies = [
                    scope
                    for scope in others
                    if scope.split()[0] != reported_on.split()[0] and " " not in scope
                ]
                for chosen_on, parts in {
                    **{scope: [scope] for scope in others},
                    "all other studies": studies,
                }.items():
                    if not parts:
                        continue
                    table = scopes[reported_on]
                    facts = (chosen_on, reported_on)
                    values = fitted([scopes[part] for part in parts], names, criterion)(table)
                    base = BASELINES[criterion]
                    both = Drawn(
                        table,
                        [label, base],
                        criterion,
                        columns=np.column_stack([values, table[base]]),
                    )
                    note(
                        "combined",
                        criterion,
                        "combination",
                        label,
                        *facts,
                        "pearson",
                        *both.of(label),
                        both.n,
                        both.sources,
                    )
                    note(
                        "combined",
                        criterion,
                        "combination",
                        label,
                        *facts,
                        f"pearson minus {base}",
                        *both.minus(label, base),
                        both.n,
                        both.sources,
                    )
                    if criterion == "content" and reported_on in BEST_PUBLISHED:
                        beside_published("combined", "combination", label, facts, table, values)


# ---- every score on every study, and what people's ratings allow

FORMS_OF_ROOT = [f"root{form}" for form in FORMS]
LENGTH_ALONE = [
    "words",
    "characters",
    "longer",
    "equal_length",
    "copy",
]  # what every criterion is set against


def everything(ratings: pd.DataFrame, scopes: dict[str, pd.DataFrame]) -> None:
    """The table of the chapter, for studies and for the two systems of mir2019."""
    for scope, table in scopes.items():
        columns = [
            name
            for name in table.select_dtypes("number")
            if table[name].notna().any() and name not in (*FREE, *POWERS, *CRITERIA, *KEYS)
        ]
        natural = [
            *columns[columns.index("logprob_brown") : columns.index("cosine")],
            *FORMS_OF_ROOT,
            "published_naturalness",
        ]
        style = [name for name in columns if name.startswith(("sti", "target_probability"))]
        kinds = {
            "style": style,
            "naturalness": natural,
            "content": [name for name in columns if name not in {*style, *natural, *LENGTH_ALONE}],
        }
        for criterion, meant in kinds.items():
            if criterion not in table or table[criterion].isna().all():
                continue
            names = [*LENGTH_ALONE, *(name for name in meant if name in columns)]
            rated = ratings[ratings.data_set == table.data_set.iloc[0]]
            rated = rated[rated.item.isin(table.item)]
            found = agreement_table(rated, table[[*KEYS, *names]], criterion, n_boot=N_BOOT // 2)
            for row in found.itertuples():
                for measure in ("pearson", "spearman", "partial", "within"):
                    note(
                        "every score",
                        criterion,
                        "",
                        row.metric,
                        "",
                        scope,
                        measure,
                        *(getattr(row, f"{measure}{end}") for end in ("", "_low", "_high")),
                        row.n,
                        row.sources,
                    )


def ceilings(ratings: pd.DataFrame) -> None:
    """How reliable the mean rating is: from single raters, also within systems, and from the same output rated twice
    (of naturalness, whatever its source)."""
    for (study, criterion), table in ratings.groupby(["data_set", "criterion"], sort=False):
        answers = table.filter(regex=r"^rating_\d").dropna(axis=1, how="all")
        facts = ("ceiling", criterion, "", "", "", study)
        sources = pd.factorize(table.source_id)[0]
        if answers.shape[1] > 1:
            within = answers - answers.groupby(table.system).transform("mean")
            for label, columns in (("", answers), (", within systems", within)):
                found = reliability(columns), *reliability_ends(columns.to_numpy(float), sources)
                size = {"n": len(table), "sources": sources.max() + 1}
                note(*facts, f"reliability of the mean, from raters{label}", *found, **size)
                note(*facts, f"highest correlation{label}", *np.sqrt(found), **size)
        same = ["output"] if criterion == "naturalness" else ["source_id", "output"]
        found, pairs = twin_reliability(
            table.rating.to_numpy(float), table.groupby(same).ngroup().to_numpy(), sources
        )
        if pairs:
            note(
                *facts, "reliability of the mean, from the same output rated twice", *found, n=pairs
            )
            note(
                *facts, "highest correlation, from repeats", *np.sqrt(np.maximum(found, 0)), n=pairs
            )


def reliability_ends(answers: np.ndarray, sources: np.ndarray) -> np.ndarray:
    """The 95% interval of the raters' reliability, by drawing sources."""
    members = [np.flatnonzero(sources == one) for one in range(sources.max() + 1)]
    generator = np.random.default_rng(0)
    return np.quantile(
        [
            reliability(answers[np.concatenate([members[one] for one in draw])])
            for draw in generator.integers(len(members), size=(N_BOOT, len(members)))
        ],
        (0.025, 0.975),
    )


def twin_reliability(
    rating: np.ndarray, same: np.ndarray, sources: np.ndarray
) -> tuple[tuple, int]:
    """Reliability from outputs rated twice with its 95% interval, and how many pairs there are: none if there are few,
    or the rating was copied. What two ratings of the same output differ by is the raters' noise, set against the
    variance of all ratings. Drawn are sources, those that share an output together."""
    order = np.argsort(same, kind="stable")
    twins = np.flatnonzero(np.diff(same[order]) == 0)
    first = order[twins]
    second = order[twins + 1]
    squares = (rating[first] - rating[second]) ** 2
    if len(twins) <= 20 or not squares.any():
        return (), 0
    links = coo_array(
        (np.ones(len(twins)), (sources[first], sources[second])), shape=(sources.max() + 1,) * 2
    )
    drawn_with = connected_components(links, directed=False)[1]
    sums = np.zeros((drawn_with.max() + 1, 5))
    np.add.at(
        sums[:, :2], drawn_with[sources[first]], np.column_stack([squares, np.ones(len(twins))])
    )
    np.add.at(
        sums[:, 2:], drawn_with[sources], np.column_stack([np.ones(len(rating)), rating, rating**2])
    )

    def of(sums):
        squares, twins, n, total, total_squares = np.moveaxis(sums, -1, 0)
        return 1 - squares / twins / 2 / ((total_squares - total**2 / n) / (n - 1))

    return (
        of(sums.sum(axis=0)),
        *np.quantile(of(resample_sums(sums, 2 * N_BOOT)), (0.025, 0.975)),
    ), len(twins)


# ---- how many sources the next study needs


def needed(scopes: dict[str, pd.DataFrame], power: float = 0.8) -> None:
    """Sources at which the two best measures of content differ clearly in four of five studies."""
    for scope in SCOPES["content"]:
        drawn = Drawn(scopes[scope], MEASURES, "content")
        first, second = (drawn.names[place] for place in np.argsort(-drawn.value)[:2])
        difference, *_ = drawn.minus(first, second)
        a = drawn.names.index(first)
        b = drawn.names.index(second)
        error = float(np.std(drawn.drawn[:, a] - drawn.drawn[:, b]))
        for label, gap in (
            (f"{first} over {second}, as found ({difference:.3f})", difference),
            ("a difference of 0.05", 0.05),
        ):
            sources = drawn.sources * ((1.96 + 0.8416) * error / gap) ** 2
            note(
                "sample size",
                "content",
                "",
                label,
                "",
                scope,
                "sources for power 0.8",
                np.ceil(sources),
                n=int(np.ceil(sources * drawn.n / drawn.sources)),
                sources=drawn.sources,
            )
    check_power(scopes["mir2019"])


def check_power(
    table: pd.DataFrame, first: str = "bert_score", second: str = "cosine", studies: int = 300
) -> None:
    """The rule above by simulation: studies of so many sources drawn from mir2019, each tested by resampling its
    sources."""
    drawn = Drawn(table, [first, second], "content")
    error = float(np.std(drawn.drawn[:, 0] - drawn.drawn[:, 1]))
    difference = abs(drawn.minus(first, second)[0])
    sources = int(np.ceil(drawn.sources * ((1.96 + 0.8416) * error / difference) ** 2))
    groups = pd.factorize(table.source_id)[0]
    columns = table[[first, second]].to_numpy(float)
    sums = moments(columns / columns.std(axis=0), table["content"].to_numpy(float), groups)
    generator = np.random.default_rng(0)
    found = 0
    for _ in range(studies):
        sample = sums[generator.choice(len(sums), size=sources)]
        weights = generator.multinomial(sources, np.full(sources, 1 / sources), size=200).astype(
            float
        )
        spread = np.diff(pearsons(weights @ sample), axis=1).std()
        found += abs(np.diff(pearsons(sample.sum(axis=0)))[0]) > 1.96 * spread
    note(
        "sample size",
        "content",
        "",
        f"{first} over {second}, found by simulation",
        "",
        "mir2019",
        "power",
        found / studies,
        n=studies,
        sources=sources,
    )


# ---- length and naturalness


def length_and_people(scopes: dict[str, pd.DataFrame]) -> None:
    """Why one treatment of length cannot serve all: what length itself says of the ratings, and the weight of a token
    beside log-probability."""
    for scope in SCOPES["naturalness"]:
        table = scopes[scope]
        names = ["n_tokens", "logprob", "source_tokens"]
        drawn = Drawn(table, names, "naturalness")
        for name in names:
            note(
                "length",
                "naturalness",
                "",
                name,
                "",
                scope,
                "pearson",
                *drawn.of(name),
                drawn.n,
                drawn.sources,
            )
        whole = table[
            ["logprob", "n_tokens", "unigram_logprob", "naturalness", "source_id"]
        ].dropna()
        x = np.column_stack([whole.logprob, whole.n_tokens])
        groups = pd.factorize(whole.source_id)[0]
        y = whole.naturalness.to_numpy(float)
        parts = np.column_stack([np.ones(len(x)), x])
        sums = np.zeros((groups.max() + 1, 9 + 3))
        np.add.at(
            sums,
            groups,
            np.column_stack(
                [(parts[:, :, None] * parts[:, None]).reshape(len(x), 9), parts * y[:, None]]
            ),
        )

        def worth(total):  # nats that a further token may cost without costing a rating
            slopes = np.linalg.solve(
                total[..., :9].reshape(*total.shape[:-1], 3, 3), total[..., 9:, None]
            )[..., 0]
            return slopes[..., 2] / slopes[..., 1]

        low, high = np.quantile(worth(resample_sums(sums, N_BOOT)), (0.025, 0.975))
        note(
            "length",
            "naturalness",
            "",
            "nats a token",
            "",
            scope,
            "weight of a token over that of a nat",
            float(worth(sums.sum(axis=0))),
            low,
            high,
            len(x),
            len(sums),
        )
        note(
            "length",
            "naturalness",
            "",
            "nats a token",
            "",
            scope,
            "mean nats a token of the outputs",
            float(-(whole.logprob / whole.n_tokens).mean()),
            n=len(x),
        )
    found = {
        scope: Drawn(
            scopes[scope],
            [*(f"{name}{form}" for form in FORMS for name in LENGTHS), *FREE, *POWERS],
            "naturalness",
        )
        for scope in SCOPES["naturalness"]
        if scope != "mir2019"
    }
    for place, name in enumerate(next(iter(found.values())).names):
        values = np.array([drawn.value[place] for drawn in found.values()])
        best = np.array([np.nanmax(drawn.value) for drawn in found.values()])
        lowest = min(drawn.of(name)[1] for drawn in found.values())
        note("length", "naturalness", "", name, "", "all four", "mean of pearson", values.mean())
        note(
            "length",
            "naturalness",
            "",
            name,
            "",
            "all four",
            "largest distance to the best there",
            (best - values).max(),
        )
        note("length", "naturalness", "", name, "", "all four", "lowest end of an interval", lowest)


# ---- what the parts kept back will show

NEW = {
    "mir2019": ("another system", 244, 976),
    "lai2022": ("other sources", 25, 225),
    "style_gap": ("other styles", 150, 300),
    "msr_compression": ("other compressions", 800, 1000),
}


def spread_between(parts: list[Drawn], name: str) -> tuple[float, int]:
    """Variance on Fisher's scale between parts beyond what sampling sources explains, and its degrees of freedom."""
    z = np.array([np.arctanh(part.value[part.names.index(name)]) for part in parts])
    errors = np.array(
        [np.nanstd(np.arctanh(part.drawn[:, part.names.index(name)])) for part in parts]
    )
    return max(float(z.var(ddof=1) - (errors**2).mean()), 0.0), len(parts) - 1


def predict(scopes: dict[str, pd.DataFrame], recommended: dict[str, list[str]]) -> None:
    """Predicted correlation of recommended scores on what was kept back, with an interval for both kinds of
    uncertainty."""
    from scipy.stats import t as student

    between_systems = [
        spread_between(
            [
                Drawn(scopes[f"mir2019 {system}"], names[:1], criterion)
                for system in MIR2019_SETTINGS
            ],
            names[0],
        )[0]
        # how far systems differ, for each criterion's first score
        for criterion, names in recommended.items()
    ]
    for criterion, names in recommended.items():
        for name in names:
            for study, (what, new_sources, rows) in NEW.items():
                table = scopes[study]
                if name not in table or table[[name, criterion]].isna().all().any():
                    continue
                whole = Drawn(table, [name], criterion)
                between = 0.0
                freedom = 60
                value = float(np.arctanh(whole.value[0]))
                error = float(np.nanstd(np.arctanh(whole.drawn[:, 0])))
                if (
                    study == "mir2019"
                ):  # two systems here; how far systems differ is taken from all three criteria
                    between = float(np.mean(between_systems))
                    freedom = len(between_systems)
                    parts = [
                        np.arctanh(Drawn(scopes[f"mir2019 {system}"], [name], criterion).value[0])
                        for system in MIR2019_SETTINGS
                    ]
                    value = float(np.mean(parts))
                    between = between * (1 + 1 / len(parts))
                if study == "style_gap":
                    parts = [
                        Drawn(
                            table[table.target_style == style].reset_index(drop=True),
                            [name],
                            criterion,
                        )
                        for style in sorted(set(table.target_style))
                    ]
                    between, freedom = spread_between(parts, name)
                    between *= 1 / len(parts) + 1 / 3  # the mean of three new styles
                reach = student.ppf(0.975, freedom) * np.sqrt(
                    between + error**2 * (1 + whole.sources / new_sources)
                )
                note(
                    "prediction",
                    criterion,
                    what,
                    name,
                    "",
                    study,
                    "pearson",
                    np.tanh(value),
                    np.tanh(value - reach),
                    np.tanh(value + reach),
                    rows,
                    new_sources,
                )


# ---- the defaults


def defaults(
    scopes: dict[str, pd.DataFrame], columns: dict[tuple[str, str], list[str]]
) -> pd.DataFrame:
    """The candidates for a default of `evaluate` on every study, each minus the present one."""
    rows = []
    for (criterion, question), names in columns.items():
        for scope in SCOPES[criterion]:
            table = scopes[scope]
            if table[criterion].isna().all():
                continue
            for name in names:
                if (
                    name not in table
                    or table[name].notna().sum() < 50
                    or table[names[0]].notna().sum() < 50
                ):
                    continue
                both = list(dict.fromkeys([name, names[0]]))
                drawn = Drawn(table, both, criterion)
                ranks = Drawn(table, both, criterion, "spearman")
                value = drawn.of(name)
                gap = drawn.minus(name, names[0])
                rank = ranks.of(name)
                rows.append(
                    {
                        "question": question,
                        "criterion": criterion,
                        "data_set": scope,
                        "score": name,
                        "pearson": value[0],
                        "low": value[1],
                        "high": value[2],
                        "spearman": rank[0],
                        "present": names[0],
                        "minus_present": gap[0],
                        "minus_low": gap[1],
                        "minus_high": gap[2],
                        "n": drawn.n,
                        "sources": drawn.sources,
                    }
                )
    return pd.DataFrame(rows)


RECOMMENDED = {
    "style": ["sti_normalized", "sti"],
    "content": [
        "cosine",
        "bert_score",
        "overlap_and_meaning",
        "overlap_and_meaning_half_masked",
        "style_aware",
    ],
    "naturalness": ["pen_lp", "pen_lp_written", "logprob", "nce"],
}
DEFAULTS = {
    ("content", "which mask"): [
        "cps_pad",
        "cosine",
        "cps_remove",
        "cps_remove_words",
        "cps_remove_lexicon",
        "cps_pad_neutrality",
    ],
    ("content", "which measure"): [
        "bleu",
        "chrf",
        "meteor",
        "bert_score",
        "cosine",
        "overlap_and_meaning",
        "overlap_and_meaning_half_masked",
        "chrf_and_cosine_half_masked",
        "style_aware",
    ],
    ("naturalness", "which fluency column first"): [
        "wpslor",
        "nce",
        "norm_lp",
        "pen_lp",
        "logprob",
        "pen_lp_written",
        "beyond_4",
        "amelioration_1",
    ],
    ("style", "which style column first"): STYLE,
}


def main() -> None:
    ratings, scopes = load()
    scopes = {scope: derived(table) for scope, table in scopes.items()}
    steps = {
        "choose": lambda: choose(scopes),
        "fixed": lambda: fixed(scopes),
        "combine": lambda: combine(scopes),
        "ceilings": lambda: ceilings(ratings),
        "needed": lambda: needed(scopes),
        "length": lambda: length_and_people(scopes),
        "predict": lambda: predict(scopes, RECOMMENDED),
        "everything": lambda: everything(ratings, scopes),
    }
    for name, step in steps.items():
        step()
        print(name, len(ROWS), flush=True)
        pd.DataFrame(ROWS).round(4).to_csv(packaged_path("agreement_results.csv"), index=False)
    defaults(scopes, DEFAULTS).round(4).to_csv(packaged_path("agreement_defaults.csv"), index=False)


if __name__ == "__main__":
    main()
