"""What a metric is: its needs, columns and score; signatures; the registry of metrics"""

import hashlib
import importlib
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from types import BuiltinFunctionType, MethodDescriptorType, ModuleType
from typing import Any

import numpy as np
import pandas as pd

from .checks import InputError, InputTypeError, check_choice
from .fingerprint import fingerprint
from .resample import mean_of_sums, mean_statistics
from .version import __version__


def _described(value: Any) -> tuple[str, bool]:
    """A setting as a signature writes it, and whether that is all there is to say of it."""
    if isinstance(value, str):
        text = value if not _looks_other(value) else f"{value}@{digest(value)}"
        whole = True
    elif isinstance(getattr(value, "tag", None), str) and not isinstance(value, type):
        text = value.tag
        whole = True
    elif value is None or isinstance(value, (bool, np.bool_, Integral)):
        text = str(value)
        whole = True
    elif isinstance(value, Real):
        text = _short(float(value))
        whole = True
    elif isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim == 1):
        told = [_described(one) for one in value]
        text = ",".join(one for one, _ in told)
        whole = all(whole for _, whole in told)
        if (
            len(text) > 200
            or any("," in one for one, _ in told)
            or any(isinstance(one, (list, tuple)) for one in value)
        ):
            text = f"{type(value).__name__}@{fingerprint(value)[0][:12]}"
    else:
        name, (found, whole) = (
            getattr(value, "__qualname__", type(value).__qualname__),
            fingerprint(value),
        )
        plain = isinstance(value, (BuiltinFunctionType, MethodDescriptorType)) and not _bound(value)
        text = name if plain else f"{name}@{found[:12]}"
    clean = re.sub(r"[|\s]", "_", text)
    return clean if clean == text else f"{clean}@{digest(text)}", whole


def _looks_other(text: str) -> bool:
    """Whether a text would pass for a number or a truth value."""
    try:
        float(text)
    except ValueError:
        return text in ("None", "True", "False")
    return True


def _short(value: float) -> str:
    short = f"{value:.10g}"
    return short if float(short) == value or value != value else repr(value)


def _bound(function) -> bool:
    return not isinstance(getattr(function, "__self__", None), (ModuleType, type(None)))


def describe_setting(
    value: Any,  # a name, number, function, list of these, or anything with a `tag` of its own
) -> str:  # without the characters that separate the fields of a signature
    """Write one setting of a score in a form that changes when the setting changes."""
    return _described(value)[0]


def describable(
    value: Any,
) -> bool:
    """Whether `describe_setting` says all that there is to say of a setting. If not, nothing may be kept under it."""
    return _described(value)[1]


def sign(
    *names: str,  # fields without a value, such as the metric's name
    **settings: Any,  # see `describe_setting`; None is left out
) -> str:  # fields separated by "|", the package's version last
    """A signature: what someone else needs to repeat a score. Settings that cannot be described whole are named in its
    field `uncached`. Source: Post 2018, for the idea and the form."""
    told = {name: _described(value) for name, value in settings.items() if value is not None}
    unsaid = [name for name, (_, whole) in told.items() if not whole]
    return "|".join(
        [
            *names,
            *(f"{name}:{text}" for name, (text, _) in told.items()),
            *([f"uncached:{','.join(unsaid)}"] if unsaid else []),
            f"version:tsteval-{__version__}",
        ]
    )


def digest(
    *parts: bytes | str,  # in order
) -> str:  # 12 hexadecimal digits
    """A short checksum for signatures: the first digits of a SHA-256."""
    whole = hashlib.sha256()
    for part in parts:
        content = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        # with its length, so that parts cannot flow into each other
        whole.update(len(content).to_bytes(8, "big") + content)
    return whole.hexdigest()[:12]


class ScoreWarning(UserWarning):
    """Scores were made, and there is a reason not to believe them."""


@dataclass(frozen=True)
class Note:
    """What has to be known about the scores of a whole table."""

    text: str  # a sentence or two
    warning: bool = False  # whether the scores may mean nothing
    # what it rests on: numbers and names, for programs
    figures: Mapping[str, Any] = field(default_factory=dict, hash=False)
    unfit: str = ""  # why a judge's scores are no answer to its question here, in a few words; empty: they may be


@dataclass(frozen=True)
class Scores:
    """What a metric says of a table of N rows."""

    frame: pd.DataFrame  # N rows: the metric's columns, and any others that help to read them
    # (N, S) sufficient statistics; None: the system's score is the mean of its rows
    statistics: np.ndarray | None = None
    signature: str = ""  # what someone else needs to repeat the score of a system
    row_signature: str = ""  # the same for a single row; empty: as `signature`
    aggregate: Callable[[np.ndarray], np.ndarray] | None = (
        None  # with the options bound; None: the metric's own
    )
    headings: tuple[
        str, ...
    ] = ()  # how the columns of this table are called; empty: as the metric says
    notes: tuple[Note, ...] = ()  # what has to be known about them


def compared_texts(
    table: pd.DataFrame,  # N rows with references or source
    against: str,  # references | source
) -> tuple[list, dict]:  # N rows of texts, and the fields of a signature that say what they are
    """What a table's outputs are compared with. Raises: InputError for another word."""
    check_choice(against, "against", ("references", "source"))
    texts = (
        [(source,) for source in table.source] if against == "source" else list(table.references)
    )
    counts = set(map(len, texts))
    return texts, {"against": against, "nrefs": counts.pop() if len(counts) == 1 else "var"}


_NEEDS = (
    "source",
    "output",
    "references",
    "target_style",
    "input",
)  # the columns that a metric may ask for
QUESTIONS = (
    "style",
    "content",
    "naturalness",
    "reference",
)  # that a metric may answer; groups of metrics


def _nothing_to_check(table, **options) -> None:
    pass


@dataclass(frozen=True)
class Metric:
    """How to score a table of outputs, and how to read the scores."""

    name: str  # unique among the metrics of one evaluation, such as "bleu"
    needs: tuple[str, ...]  # of _NEEDS
    columns: tuple[
        str, ...
    ]  # the numbers it writes for each row; the first one stands for the metric
    score: Callable[..., Scores]  # (table, models, **options) -> Scores
    # summed statistics (B, S) -> (B,); None: mean of the first column
    aggregate: Callable[[np.ndarray], np.ndarray] | None = None
    better: str = "higher"  # "higher" | "lower" | "neither": which end is good
    description: str = ""  # one line: what it says, and its range
    headings: tuple[
        str, ...
    ] = ()  # how the columns are called in tables and figures; empty: by their names
    question: str = ""  # of QUESTIONS; empty: one of its own
    # what it is, in a sentence without its full stop, for a methods section; works by their keys in brackets
    methods: str = ""
    # who writes its scores from 0 to 100: nobody | "papers" | "libraries" as well, so that its heading names the scale;
    # "share": a share or a signed change, which its heading gives in %
    percent: str = ""
    # (table, **options): raises before any model is loaded
    check: Callable[..., None] = field(default=_nothing_to_check, repr=False)
    # a row's numbers follow from it alone, so that a cache may keep them
    by_row: bool | Callable[..., bool] = field(default=False, repr=False)
    # it keeps its rows itself, in the file that `models.store` names, so that nobody else has to
    own_store: bool = field(default=False, repr=False)
    # (table, **options): what scoring the table would cost, in a line; None: nothing but time
    cost: Callable[..., str] | None = field(default=None, repr=False)
    # (table, models, **options): notes on the whole table
    review: Callable[..., tuple[Note, ...]] | None = field(default=None, repr=False)

    def __post_init__(self):
        if unknown := [need for need in self.needs if need not in _NEEDS]:
            raise InputError(
                f"metric {self.name}: needs names {unknown[0]!r}; it may name {', '.join(_NEEDS)}"
            )
        if self.question not in ("", *QUESTIONS):
            raise InputError(
                f"metric {self.name}: question must be one of {', '.join(QUESTIONS)} or empty, got "
                f"{self.question!r}"
            )
        if self.percent not in ("", "papers", "libraries", "share"):
            raise InputError(
                f"metric {self.name}: percent must be papers, libraries, share or empty, "
                f"got {self.percent!r}"
            )
        if self.better not in ("higher", "lower", "neither"):
            raise InputError(
                f"metric {self.name}: better must be higher, lower or neither, got {self.better!r}"
            )
        if not self.columns or len(self.headings) not in (0, len(self.columns)):
            raise InputError(
                f"metric {self.name}: it needs at least one column, and as many headings as columns or "
                f"none"
            )

    def __reduce_ex__(self, protocol):
        """A metric of this package is pickled by its name, since its functions may be made where it is."""
        known = self.name in METRICS and METRICS[self.name] is self
        return (find_metric, (self.name,)) if known else super().__reduce_ex__(protocol)

    @property
    def options(self) -> dict[str, Any]:
        """Its options with their defaults."""
        parameters = list(inspect.signature(self.score).parameters.values())[2:]
        return {
            option.name: option.default
            for option in parameters
            if option.kind is not option.VAR_KEYWORD
        }

    def heading(
        self,
        column: str,  # one of `columns`
        scores: Scores | None = None,  # of the table; None: of no table in particular
    ) -> str:
        """How a column is called in tables and figures."""
        headings = (scores.headings if scores else ()) or self.headings
        return headings[self.columns.index(column)] if headings else column.replace("_", " ")

    def reviewed(
        self,
        scores: Scores,
        table: pd.DataFrame,  # the checked table that was scored, all of it
        models,  # a `Models`, see `models.roles`
        options: Mapping[str, Any],
    ) -> Scores:
        """The scores with what has to be known about them."""
        return (
            replace(scores, notes=(*scores.notes, *self.review(table, models, **options)))
            if self.review
            else scores
        )

    def needed(
        self,
        options: Mapping[str, Any],
    ) -> tuple[str, ...]:
        """The columns it needs with these options: an option `against` names what it compares with instead of
        references."""
        against = {**self.options, **options}.get("against", "references")
        return tuple(against if need == "references" else need for need in self.needs)

    def check_options(
        self,
        table: pd.DataFrame,  # the checked table
        options: Mapping[str, Any],
    ) -> None:
        """Raise an InputError for an option that the metric does not have, or one that its own check refuses."""
        if unknown := [name for name in options if name not in self.options]:
            known = (
                f"its options are {', '.join(self.options)}"
                if self.options
                else "it has no options"
            )
            raise InputError(f"{self.name} has no option {unknown[0]!r}; {known}")
        self.check(table, **options)

    def statistics(
        self,
        scores: Scores,
        column: str,  # one of `columns`
    ) -> tuple[
        np.ndarray, Callable[[np.ndarray], np.ndarray]
    ]:  # (N, S), and the function from sums to scores
        """What is to be summed over rows for a column, and how a score is made of the sums."""
        if column == self.columns[0] and scores.statistics is not None:
            return scores.statistics, scores.aggregate or self.aggregate or mean_of_sums
        return mean_statistics(scores.frame[column].to_numpy(dtype=float)), mean_of_sums


def _find_object(
    address: str,  # module:name
) -> Any:
    """Import what an address names. Raises: InputError if there is no such module or name."""
    module, _, name = address.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except ImportError as error:
        raise InputError(f"{address}: cannot import {module} ({error})") from error
    except AttributeError:
        raise InputError(f"{address}: {module} holds nothing called {name!r}") from None


class _Registry(Mapping):
    """Metrics by name; each is imported when it is first asked for."""

    def __init__(self, addresses: Mapping[str, str]):
        self.addresses = dict(addresses)

    def __getitem__(self, name: str) -> Metric:
        return _find_object(self.addresses[name])

    def __contains__(
        self, name: object
    ) -> bool:  # Mapping's own would import the metric to find out
        return name in self.addresses

    def __iter__(self) -> Iterator[str]:
        return iter(self.addresses)

    def __len__(self) -> int:
        return len(self.addresses)


METRICS = _Registry(
    {
        "bleu": "tsteval.bleu:bleu_metric",
        "rouge": "tsteval.rouge:rouge_metric",
        "sti": "tsteval.sti:sti_metric",
        "cps": "tsteval.cps:cps_metric",
        "ngram": "tsteval.ngram_metrics:ngram_metric",
        "amelioration_1": "tsteval.ngram_metrics:amelioration_1_metric",
        "amelioration_2": "tsteval.ngram_metrics:amelioration_2_metric",
        "fluency": "tsteval.fluency:fluency_metric",
        "perplexity": "tsteval.fluency:perplexity_metric",
        "chrf": "tsteval.overlap:chrf_metric",
        "meteor": "tsteval.overlap:meteor_metric",
        "wmd": "tsteval.alignment:wmd_metric",
        "bert_score": "tsteval.alignment:bert_score_metric",
        "content": "tsteval.content:content_metric",
        "link_validity": "tsteval.surface:link_validity_metric",
        "readability": "tsteval.surface:readability_metric",
        "toxicity": "tsteval.tone:toxicity_metric",
        "acceptability": "tsteval.tone:acceptability_metric",
        "formality": "tsteval.tone:formality_metric",
        "avoided_answer": "tsteval.answers:avoided_answer_metric",
        "grounded_in_context": "tsteval.grounded:grounded_in_context_metric",
        "relevance": "tsteval.answers:relevance_metric",
        "judge": "tsteval.judge:judge_metric",
    }
)


def find_metric(
    metric: str | Metric,  # a name, an address module:name, or a metric
) -> Metric:
    """The metric that is meant. Raises: InputError for an unknown name; InputTypeError for what is no metric."""
    if isinstance(metric, str):
        if ":" not in metric and metric not in METRICS:
            raise InputError(
                f"there is no metric called {metric!r}; the metrics are {', '.join(METRICS)}; "
                "one of your own is named module:name"
            )
        metric = _find_object(metric) if ":" in metric else METRICS[metric]
    if not isinstance(metric, Metric):
        raise InputTypeError(
            f"a metric is a name, an address or a Metric, got {type(metric).__name__}"
        )
    return metric
