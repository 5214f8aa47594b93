"""What a metric is: a configured object that says what it needs, scores rows and signs its scores; the registry of metrics"""

import ast
import dataclasses
import hashlib
import importlib
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Integral, Real
from types import BuiltinFunctionType, MethodDescriptorType
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from .checks import InputError, InputTypeError, describe, meant
from .resample import mean_of_sums, mean_statistics
from .version import __version__

CUSTOM = "custom"  # how a signature names what only its author can describe, such as a function


def _plain_text(value: Any) -> str | None:
    """A setting as a signature writes it; None for one that has no text of its own, such as a function."""
    if isinstance(value, str):
        return f"{value}@{digest(value)}" if _looks_other(value) else value
    if value is None or isinstance(value, (bool, np.bool_, Integral)):
        return str(value)
    if isinstance(value, Real):
        return _short(float(value))
    if isinstance(value, (list, tuple, set, frozenset, np.ndarray)):
        return _list_text(value)
    if isinstance(value, Mapping):
        return _list_text([item for pair in value.items() for item in pair], "dict")
    return _object_text(value)


def _object_text(value: Any) -> str | None:
    """An object or function by its tag, its version or its fields; None for one that has none of them."""
    if isinstance(value, type) or _borrows_version(value):
        return None
    if inspect.ismethod(value):
        return _list_text([value.__self__, value.__func__], "method")
    if isinstance(getattr(value, "tag", None), str):
        return value.tag
    if isinstance(value, (BuiltinFunctionType, MethodDescriptorType)):
        return value.__qualname__
    if isinstance(getattr(value, "version", None), str):
        return f"{getattr(value, '__qualname__', type(value).__qualname__)}@{value.version}"
    if dataclasses.is_dataclass(value):
        return _list_text(dataclasses.asdict(value).values(), type(value).__name__)
    return None


def _borrows_version(value: Any) -> bool:
    """Whether a decorated function has its tag or version from the function inside: it says nothing of the decorator."""
    inner = getattr(value, "__wrapped__", None)
    names = ("tag", "version")
    return inner is not None and any(
        getattr(value, name, None) is not None
        and getattr(value, name) == getattr(inner, name, None)
        for name in names
    )


def _list_text(values: Iterable, kind: str = "") -> str | None:
    """The items side by side; a checksum of them where they are long, nested or of another kind than a list."""
    items = sorted(values, key=repr) if isinstance(values, (set, frozenset)) else list(values)
    texts = [_plain_text(item) for item in items]
    if None in texts:
        return None
    text = ",".join(texts)
    nested = any(isinstance(item, (list, tuple)) for item in items)
    if kind or nested or len(text) > 200 or any("," in item for item in texts):
        return f"{kind or type(values).__name__}@{digest(*texts)}"
    return text


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


def describe_setting(
    value: Any,  # a name, number, function, list of these, or anything with a `tag` of its own
) -> str:  # without the characters that separate the fields of a signature
    """Write one setting of a score in a form that changes when the setting changes; `custom` for a function or object
    of one's own that has neither a `tag` nor a `version`."""
    text = _plain_text(value)
    if text is None:
        return CUSTOM
    clean = re.sub(r"[|\s]", "_", text)
    return clean if clean == text else f"{clean}@{digest(text)}"


def describable(
    value: Any,
) -> bool:
    """Whether `describe_setting` says all that there is to say of a setting. If not, nothing may be stored under it."""
    return _plain_text(value) is not None


def sign(
    *names: str,  # fields without a value, such as the metric's name
    **settings: Any,  # see `describe_setting`; None is left out
) -> str:  # fields separated by "|", the package's version last
    """A signature: what someone else needs to repeat a score. Source: Post 2018, for the idea and the form."""
    fields = [
        f"{name}:{describe_setting(value)}" for name, value in settings.items() if value is not None
    ]
    return "|".join([*names, *fields, f"version:tsteval-{__version__}"])


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
    # why nothing may be called better by these scores, as it stands behind "since"; empty: it may be
    unfit: str = ""


@dataclass(frozen=True)
class Scores:
    """What a metric says of N rows."""

    # N rows: the metric's columns, and any others that help to read them; a dict of columns becomes a frame
    frame: pd.DataFrame
    # (N, S) sufficient statistics, summed over rows before `Metric.aggregate`; None: a system's score is its rows' mean
    sums: np.ndarray | None = None
    notes: tuple[Note, ...] = ()  # what has to be known about the scores
    signature: str = ""  # what someone else needs to repeat the score of a system
    row_signature: str = ""  # the same for a single row; empty: as `signature`
    headings: tuple[
        str, ...
    ] = ()  # how the columns of this table are called; empty: as the metric says

    def __post_init__(self):
        if isinstance(self.frame, Mapping):
            object.__setattr__(self, "frame", pd.DataFrame(dict(self.frame)))


def described(
    metric: "Metric | type[Metric]",
) -> str:
    """What a metric says, in a line."""
    return metric.description.replace(
        "{against}", f"the {getattr(metric, 'against', 'references')}"
    )


def compared_texts(
    rows: pd.DataFrame,  # N rows with references or source
    against: str,  # references | source
) -> list:  # N rows of texts
    """What a table's outputs are compared with."""
    return [(source,) for source in rows.source] if against == "source" else list(rows.references)


def reference_field(
    rows: pd.DataFrame,  # N rows with references or source
    against: str = "references",  # references | source
) -> int | str:  # the number of texts that each output is compared with; "var" where rows differ
    """What a signature says of the number of references."""
    counts = {1} if against == "source" else set(map(len, rows.references))
    return counts.pop() if len(counts) == 1 else "var"


# what an output answers or rests on; a table with `input` alone does not tell question and context apart
INPUTS = ("input", "question", "context")
COLUMNS = (
    "source",
    "output",
    "references",
    "target_style",
    *INPUTS,
    "system",
)  # a metric may ask for
QUESTIONS = (
    "style",
    "content",
    "naturalness",
    "reference",
)  # that a metric may answer; groups of metrics
_ASKED = {  # question -> the criteria of `load_ratings` that ask for it
    "style": ("style",),
    "content": ("content",),
    "naturalness": ("naturalness", "acceptability"),
    "reference": ("overall", "coverage", "content", "relevance", "coherence"),
}


@dataclass(frozen=True)
class Metric:
    """How to score outputs, and how to read the scores. A metric is a frozen dataclass whose fields are its options,
    each with a default; they are checked when it is made, in `__post_init__`, which raises an InputError that names
    the option as its argument."""

    name: ClassVar[str]  # unique among the metrics of one evaluation, such as "bleu"
    needs: ClassVar[tuple[str, ...]]  # of COLUMNS; `score` is handed these and no others
    columns: ClassVar[
        tuple[str, ...]
    ]  # the numbers it writes a row; the first stands for the metric
    better: ClassVar[str] = "higher"  # higher | lower | neither: which end is good
    question: ClassVar[str] = ""  # of QUESTIONS; empty: one of its own
    # what people may be asked that it stands for, in the words of `load_ratings`; empty: its question's, else its name
    criteria: ClassVar[tuple[str, ...]] = ()
    # whether words, or models unless others are chosen, that it rests on are English
    english: ClassVar[bool] = False
    range: ClassVar[tuple[float, float] | None] = None  # lowest and highest score; None: any number
    cites: ClassVar[tuple[str, ...]] = ()  # keys of the works that it rests on
    # one line: what it says, and its range; {against} stands for what an option `against` names
    description: ClassVar[str] = ""
    headings: ClassVar[tuple[str, ...]] = ()  # how the columns are called; empty: by their names
    # what it is, in a sentence without its full stop, for a methods section; works by their keys in brackets
    methods: ClassVar[str] = ""
    # who writes its scores from 0 to 100: nobody | "papers" | "libraries" as well, so that its heading names the
    # scale; "share": a share or a signed change, which its heading gives in %
    percent: ClassVar[str] = ""
    by_row: ClassVar[bool] = (
        False  # whether it promises that a row's numbers follow from that row alone
    )
    # changes whenever the same rows would get other numbers, be it by the code, a file that it reads or what a decorator
    # adds, and is signed; each class declares its own; None: the scores are never stored
    version: ClassVar[str | None] = None
    own_store: ClassVar[bool] = (
        False  # whether it keeps its rows itself, in the file that `models.store` names
    )

    def __init_subclass__(cls, **keywords):
        super().__init_subclass__(**keywords)
        _check_class(cls)

    def score(
        self,
        rows: pd.DataFrame,  # N checked rows with the columns that it needs
        models=None,  # a `Models`, see `models.roles`
    ) -> Scores:
        """The scores of some rows."""
        raise NotImplementedError(f"{type(self).__name__}.score")

    def aggregate(
        self,
        sums: np.ndarray,  # (..., S) summed over the rows of a system
    ) -> np.ndarray:  # (...)
        """The score of a system. Unless a metric says otherwise, the first sum over the second: of rows' scores, whose sums
        are each score and a one, that is their mean."""
        return mean_of_sums(sums)

    def settings(
        self,
        models=None,  # a `Models`; what it needs of them is loaded
    ) -> dict[str, Any]:
        """What a signature says of the options and, once they are loaded, of the models."""
        return {option.name: getattr(self, option.name) for option in dataclasses.fields(self)}

    def row_settings(
        self,
        rows: pd.DataFrame,  # with the columns that it needs
        models=None,
    ) -> dict[str, Any]:
        """What a signature says of the rows, such as their number of references."""
        return {}

    def sign(
        self,
        rows: pd.DataFrame,  # with the columns that it needs; none: what does not depend on them
        models=None,
    ) -> str:
        """What someone else needs to repeat the score of these rows."""
        return sign(self._signed_name, **self.row_settings(rows, models), **self.settings(models))

    def sign_row(
        self,
        rows: pd.DataFrame,
        models=None,
    ) -> str:
        """The same for a single row, where a row's score is made in another way than a system's; else empty."""
        return ""

    def review(
        self,
        rows: pd.DataFrame,  # all rows that were scored, with all their columns
        models=None,
    ) -> tuple[Note, ...]:
        """What has to be known of a whole table, whatever the scores are."""
        return ()

    def titles(
        self,
        rows: pd.DataFrame,
    ) -> tuple[str, ...]:
        """How the columns are called for these rows; empty: as `headings` says."""
        return ()

    def objection(
        self,
        row: Mapping,  # one output: source, output, and the metric's columns of the frame
    ) -> str:
        """What speaks against one output, in a line for the report; empty: the score can't say."""
        return ""

    def cost(
        self,
        rows: pd.DataFrame,
    ) -> str:
        """What scoring these rows would cost beside time, in a line."""
        return "computed here"

    @property
    def signature(self) -> str:
        """What its scores depend on, before anything is scored: the name and the options. A model's tag joins when it
        is loaded, see `sign`."""
        options = dataclasses.fields(self)
        values = {option.name: getattr(self, option.name) for option in options}
        return sign(self._signed_name, **values)

    @property
    def _signed_name(self) -> str:
        """The name; of a metric of one's own with its version, of which the package's says nothing."""
        own = self.version not in (None, __version__)
        return f"{self.name}@{self.version}" if own else self.name

    @property
    def asked(self) -> tuple[str, ...]:
        """What people may be asked that it stands for."""
        return self.criteria or _ASKED.get(self.question, (self.name,))

    @property
    def aspect(self) -> str:
        """The question that it answers with these options: what compares an output with its source says how much of
        that is kept, not how near it comes to references."""
        of_source = self.question == "reference" and getattr(self, "against", "") == "source"
        return "content" if of_source else self.question

    @property
    def needed(self) -> tuple[str, ...]:
        """The columns it needs with these options: an option `against` names what it compares with instead of
        references."""
        against = getattr(self, "against", "references")
        return tuple(against if need == "references" else need for need in self.needs)

    @property
    def storable(self) -> bool:
        """Whether a row's scores may be found again later: it follows from that row alone, all that makes it can be
        described, and the metric has a version."""
        values = [getattr(self, option.name) for option in dataclasses.fields(self)]
        described = not self.unsigned and all(map(describable, values))
        return self.by_row and self.version is not None and described

    @property
    def unsigned(self) -> tuple[str, ...]:
        """The attributes of this object that are no fields, so that no signature names them."""
        fields = {option.name for option in dataclasses.fields(self)}
        return tuple(
            name
            for name in vars(self)
            if name not in fields
            and not isinstance(inspect.getattr_static(type(self), name, None), cached_property)
        )

    @property
    def store_signature(self) -> str:
        """What the scores depend on as `signature` says it, and the class that makes them: two may have one name."""
        return f"{type(self).__module__}:{type(self).__qualname__}|{self.signature}"

    @property
    def chosen_options(self) -> dict[str, str]:
        """The options that are not the default, as a signature writes them."""
        return {
            name: describe_setting(getattr(self, name))
            for name, default in self.options().items()
            if getattr(self, name) is not default and getattr(self, name) != default
        }

    @classmethod
    def options(cls) -> dict[str, Any]:
        """Its options with their defaults."""
        return {option.name: option.default for option in dataclasses.fields(cls)}

    @classmethod
    def heading(
        cls,
        column: str,  # one of `columns`
        scores: Scores | None = None,  # of the table; None: of no table in particular
    ) -> str:
        """How a column is called in tables and figures."""
        headings = (scores.headings if scores else ()) or cls.headings
        return headings[cls.columns.index(column)] if headings else column.replace("_", " ")

    def summed(
        self,
        scores: Scores,
        column: str,  # one of `columns`
    ) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
        """What is to be summed over rows for a column, (N, S), and how a score is made of the sums."""
        if column == self.columns[0] and scores.sums is not None:
            return scores.sums, self.aggregate
        return mean_statistics(scores.frame[column].to_numpy(dtype=float)), mean_of_sums


def _check_class(cls: type[Metric]) -> None:
    """Raise an InputError for a metric whose description cannot be meant."""
    label = f"metric {getattr(cls, 'name', cls.__name__)}"
    for attribute in ("name", "needs", "columns"):
        if not hasattr(cls, attribute):
            raise InputError(f"{label}: the class has no {attribute}")
    if unknown := [need for need in cls.needs if need not in COLUMNS]:
        raise InputError(f"{label}: needs names {unknown[0]!r}; it may name {', '.join(COLUMNS)}")
    choices = {
        "question": ("", *QUESTIONS),
        "percent": ("", "papers", "libraries", "share"),
        "better": ("higher", "lower", "neither"),
    }
    for attribute, values in choices.items():
        if getattr(cls, attribute) not in values:
            named = ", ".join(value or "empty" for value in values)
            raise InputError(
                f"{label}: {attribute} must be one of {named}, got {getattr(cls, attribute)!r}"
            )
    if not cls.columns or len(cls.headings) not in (0, len(cls.columns)):
        raise InputError(
            f"{label}: it needs at least one column, and as many headings as columns or none"
        )
    if isinstance(cls.columns, str) or isinstance(cls.needs, str):
        raise InputError(f"{label}: needs and columns are tuples of names")
    if vars(cls).get("version") is None:  # a version says nothing of what a subclass changes
        cls.version = __version__ if cls.__module__.partition(".")[0] == "tsteval" else None


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
    """Classes of metrics by name; each is imported when it is first asked for."""

    def __init__(self, addresses: Mapping[str, str]):
        self.addresses = dict(addresses)

    def __getitem__(self, name: str) -> type[Metric]:
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
        "bleu": "tsteval.bleu:Bleu",
        "rouge": "tsteval.rouge:Rouge",
        "sti": "tsteval.sti:Sti",
        "cps": "tsteval.cps:Cps",
        "ngram": "tsteval.ngram_metrics:Ngram",
        "amelioration_1": "tsteval.ngram_metrics:Amelioration1",
        "amelioration_2": "tsteval.ngram_metrics:Amelioration2",
        "fluency": "tsteval.fluency:Fluency",
        "perplexity": "tsteval.fluency:Perplexity",
        "chrf": "tsteval.overlap:Chrf",
        "meteor": "tsteval.overlap:Meteor",
        "ter": "tsteval.overlap:Ter",
        "wmd": "tsteval.alignment:Wmd",
        "bert_score": "tsteval.alignment:BertScore",
        "content": "tsteval.content:Content",
        "link_validity": "tsteval.surface:LinkValidity",
        "readability": "tsteval.surface:Readability",
        "toxicity": "tsteval.tone:Toxicity",
        "acceptability": "tsteval.tone:Acceptability",
        "formality": "tsteval.tone:Formality",
        "avoided_answer": "tsteval.answers:AvoidedAnswer",
        "grounded_in_context": "tsteval.grounded:GroundedInContext",
        "relevance": "tsteval.answers:Relevance",
        "judge": "tsteval.judge:JudgeMetric",
    }
)


def split_list(
    text: str,  # such as "bleu:smoothing=floor,max_order=2,sti"
) -> list[str]:  # such as ["bleu:smoothing=floor,max_order=2", "sti"]
    """The names in a list of metrics. A comma within brackets or quotes parts nothing, and what follows a comma as
    NAME=VALUE is an option of the metric before it."""
    pieces = []
    for piece in _parted(text):
        option = re.fullmatch(r"\s*\w+\s*=.*", piece, re.S)
        if option and pieces:
            pieces[-1] += f",{piece}"
        else:
            pieces.append(piece.strip())
    return [piece for piece in pieces if piece]


def _parted(text: str) -> list[str]:
    """A text parted at the commas that stand outside of brackets and quotes."""
    return re.findall(
        r"(?:[^,\"'(\[{]|\"[^\"]*\"|'[^']*'|\([^)]*\)|\[[^\]]*\]|\{[^}]*\}|[\"'(\[{])+", text
    )


def _literal(text: str) -> Any:
    """What an option's text stands for: a number, list, truth value ..., or the text itself."""
    if text in ("true", "false"):
        return text == "true"
    try:
        return ast.literal_eval(text)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return text


def _named_options(name: str, text: str) -> dict[str, Any]:
    """The options that stand behind a metric's name. Raises: InputError for what is not OPTION=VALUE."""
    options = {}
    for piece in _parted(text):
        option, equals, value = piece.partition("=")
        if not equals or not option.strip():
            raise InputError(
                f"write {name}:OPTION=VALUE, such as bleu:smoothing=floor,max_order=2; got {piece!r}"
            )
        options[option.strip()] = _literal(value.strip())
    return options


def _class_of(name: str) -> tuple[type[Metric] | Metric, str]:
    """The metric that a name begins with, and the text of its options."""
    head, _, rest = name.partition(":")
    if head in METRICS:
        return METRICS[head], rest
    if not rest or "=" in rest.partition(":")[0]:
        raise InputError(
            f"there is no metric called {head!r}{meant(head, METRICS)}; "
            f"the metrics are {', '.join(METRICS)}; "
            "one of your own is named module:Class"
        )
    own, _, rest = rest.partition(":")
    return _find_object(f"{head}:{own}"), rest


def make_metric(
    kind: type[Metric],
    **options: Any,
) -> Metric:
    """A metric with these options. Raises: InputError that names an option which it does not have, or refuses."""
    defaults = kind.options()
    for option in options:
        if option not in defaults:
            others = f"its options are {', '.join(defaults)}" if defaults else "it has no options"
            raise InputError(
                f"{kind.name} has no option {option!r}{meant(option, defaults)}; {others}"
            )
    return kind(**options)


def find_metric(
    # a name, perhaps with options as in "bleu:smoothing=floor"; an address module:Class; a class; or a metric
    metric: "str | type[Metric] | Metric",
) -> Metric:
    """The metric that is meant. Raises: InputError for an unknown name or option; InputTypeError for what is no
    metric."""
    options = ""
    name = metric if isinstance(metric, str) else ""
    if name:
        metric, options = _class_of(name)
    if inspect.isclass(metric) and issubclass(metric, Metric) and metric is not Metric:
        return make_metric(metric, **_named_options(metric.name, options))
    if options:
        raise InputError(f"{name} is a metric with its options; name its class to give others")
    if not isinstance(metric, Metric):
        raise InputTypeError(
            f"a metric is a name, an address module:Class or a Metric, got {describe(metric)}"
        )
    return metric
