"""One frozen dataclass of all settings, each with its default, its check, its words and its option of the command"""

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypedDict, TypeVar

from ..core.checks import (
    InputError,
    InputTypeError,
    check_choice,
    check_flag,
    check_number,
    describe,
    meant,
)
from ..core.resample import MOST_RESAMPLES
from ..models.roles import TIERS, Models, usual_models

_Check = Callable[[Any, str], None]


def _whole(low: int, high: float = math.inf) -> _Check:
    return lambda value, name: check_number(value, name, low, high, whole=True)


def _not_negative(value: Any, name: str) -> None:
    check_number(value, name, 0)


def _text(value: Any, name: str) -> None:
    if not isinstance(value, str):
        raise InputTypeError(f"must be a text, got {describe(value)}", argument=name)


def _path(value: Any, name: str) -> None:
    if not isinstance(value, (str, Path)):
        raise InputTypeError(f"must be the path of a file, got {describe(value)}", argument=name)


def _about(
    words: str,
    *,
    check: _Check | None = None,
    choices: tuple[str, ...] = (),
    metavar: str = "",
    flag: str = "",
    blocks: bool = False,
) -> dict[str, Any]:
    """What is known of a setting beside its type and default, see `Setting`."""
    return {
        "words": words,
        "check": check,
        "choices": choices,
        "metavar": metavar,
        "flag": flag,
        "blocks": blocks,
    }


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How an evaluation is made; nothing in it depends on the table. Raises: InputError that names the setting."""

    target_style: str = field(
        default="neutral",
        metadata=_about(
            "the style to be reached, where the table does not say", check=_text, metavar="STYLE"
        ),
    )
    empty: str = field(
        default="fail",
        metadata=_about(
            "what to do about outputs without a text: fail, skip these rows, or zero, the worst score that there is",
            choices=("fail", "skip", "zero"),
        ),
    )
    models: str = field(
        default="small",
        metadata=_about(
            "which model plays a part that is not named: small; base, a larger encoder and judge, some five times slower "
            "(404 MB are fetched on first use); or large, a larger language model, too (1,093 MB more, 3,560 MB unpacked; "
            "7.4 GB of memory, 10.9 GB while it loads)",
            choices=TIERS,
        ),
    )
    classifier: Any = field(
        default=None,
        metadata=_about(
            "style classifier: subjectivity-minilm (the default; knows neutral), formality-minilm (formal), "
            "sentiment-minilm (positive), a folder, or a Hugging Face model id",
            flag="--style-model",
            metavar="NAME",
        ),
    )
    encoder: Any = field(
        default=None, metadata=_about("sentence encoder, likewise", metavar="NAME")
    )
    language_model: Any = field(
        default=None,
        metadata=_about(
            "causal language model, likewise, or the file of an n-gram model (.arpa, .npz)",
            metavar="NAME",
        ),
    )
    device: str = field(
        default="auto",
        metadata=_about("where models run: auto, cpu, cuda or mps", check=_text, metavar="NAME"),
    )
    batch_size: int | None = field(
        default=None,
        metadata=_about(
            "texts that a model reads at once; None: each model's own choice",
            check=_whole(1),
            metavar="N",
        ),
    )
    baseline: str | None = field(
        default=None,
        metadata=_about(
            "the system that the others are compared with; None: the first",
            check=_text,
            metavar="NAME",
        ),
    )
    references_as: str | None = field(
        default=None,
        metadata=_about(
            "score the references too, as the outputs of a system of this name",
            check=_text,
            metavar="SYSTEM",
        ),
    )
    n_boot: int = field(
        default=2000,
        metadata=_about("bootstrap resamples", check=_whole(1, MOST_RESAMPLES), metavar="N"),
    )
    seed: int = field(default=0, metadata=_about("of the bootstrap", check=_whole(0), metavar="N"))
    score_cache: Path | str | None = field(
        default=None,
        metadata=_about(
            "keep each row's scores in this file, so that a run that was stopped goes on",
            check=_path,
            flag="--cache",
            metavar="FILE",
        ),
    )
    engine: str = field(
        default="local",
        metadata=_about(
            "score block by block and keep what is finished: here, or on Ray "
            "(default: read the whole table at once)",
            choices=("local", "ray"),
            blocks=True,
        ),
    )
    block_rows: int | None = field(
        default=None,
        metadata=_about(
            "rows scored at once; None: 1,000. The results do not depend on it",
            check=_whole(1),
            metavar="N",
            blocks=True,
        ),
    )
    workers: int = field(
        default=1, metadata=_about("processes of Ray", check=_whole(1), metavar="N", blocks=True)
    )
    address: str | None = field(
        default=None,
        metadata=_about(
            "of a Ray cluster; None: one is started here",
            check=_text,
            metavar="ADDRESS",
            blocks=True,
        ),
    )
    gpus_per_worker: float = field(
        default=0,
        metadata=_about(
            "GPUs for each process of Ray, such as 0.5 where two share one",
            check=_not_negative,
            metavar="X",
            blocks=True,
        ),
    )
    on_error: str = field(
        default="stop",
        metadata=_about(
            "what to do about a row that is refused: stop, or skip it",
            choices=("stop", "skip"),
            blocks=True,
        ),
    )
    restart: bool = field(
        default=False,
        metadata=_about("begin anew, whatever the folder holds", check=check_flag, blocks=True),
    )

    def __post_init__(self):
        for setting in list_settings():
            value = getattr(self, setting.name)
            if setting.choices:
                check_choice(value, setting.name, setting.choices)
            elif setting.check and value is not setting.default:
                setting.check(value, setting.name)

    def cast(
        self,
        progress: bool = False,  # show bars
        remember: int = 0,  # rows a model whose results are kept for later calls
    ) -> Models:
        """The models of one evaluation by the parts they play, none of them loaded."""
        named = {
            "style": self.classifier,
            "encoder": self.encoder,
            "language_model": self.language_model,
        }
        usual = usual_models(self.models, self.target_style)
        return Models(
            {role: usual.get(role) if model is None else model for role, model in named.items()},
            device=self.device,
            batch_size=self.batch_size,
            progress=progress,
            remember=remember,
            store=self.score_cache,
        )


@dataclass(frozen=True)
class Setting:
    """What is known of one setting."""

    name: str  # as in Python
    default: Any
    kind: Any  # its type, as written
    words: str  # what it is, in one line
    choices: tuple[str, ...]  # the values it may have; empty: see `check`
    metavar: str  # what stands for its value in the help of the command; empty: a switch, or see `choices`
    flag: str  # the option of the command, such as --n-boot
    blocks: bool  # whether it makes sense only where a table is scored block by block
    check: (
        _Check | None
    )  # raises an InputError for a value that it may not have, given the value and a name for it


def _setting(entry: Field) -> Setting:
    flag = entry.metadata["flag"] or f"--{entry.name.replace('_', '-')}"
    return Setting(entry.name, entry.default, entry.type, **{**entry.metadata, "flag": flag})


def list_settings(
    blocks: bool = True,  # with those that make sense only where a table is scored block by block
) -> list[Setting]:
    """The settings in the order in which they are declared."""
    settings = [_setting(entry) for entry in fields(Settings)]
    return [setting for setting in settings if blocks or not setting.blocks]


class WholeKeywords(TypedDict, total=False):
    """The settings of a table in memory, as keywords."""

    target_style: str
    empty: str
    models: str
    classifier: Any
    encoder: Any
    language_model: Any
    device: str
    batch_size: int | None
    baseline: str | None
    references_as: str | None
    n_boot: int
    seed: int
    score_cache: Path | str | None


class BlockKeywords(WholeKeywords, total=False):
    """The settings of a table that is scored block by block."""

    engine: str
    block_rows: int | None
    workers: int
    address: str | None
    gpus_per_worker: float
    on_error: str
    restart: bool


_Function = TypeVar("_Function", bound=Callable)


def takes_settings(
    blocks: bool,  # whether the function scores a table block by block
) -> Callable[[_Function], _Function]:
    """Declare the settings of a function that takes them as `**given`: in its signature and its docstring."""

    def declared(function: _Function) -> _Function:
        settings = list_settings(blocks)
        signature = inspect.signature(function)
        own = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD]
        added = [
            inspect.Parameter(
                setting.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=setting.default,
                annotation=setting.kind,
            )
            for setting in settings
        ]
        descriptions = "\n".join(f"    {setting.name}: {setting.words}" for setting in settings)
        # typing has no word for a signature that is written at run time
        function.__signature__ = signature.replace(parameters=[*own, *added])  # type: ignore[attr-defined]
        function.__doc__ = (
            f"{inspect.cleandoc(function.__doc__ or '')}\n\nSettings:\n{descriptions}"
        )
        return function

    return declared


def chosen_settings(
    keywords: Mapping[str, Any],  # the keywords of a call
    settings: Settings | None = None,  # what they build on; None: the defaults
    *,
    blocks: bool,  # whether a table is scored block by block
) -> Settings:
    """The settings of a call. Raises: InputTypeError for a keyword that is no setting; InputError for a wrong value."""
    names = [setting.name for setting in list_settings(blocks)]
    if "options" in keywords:
        raise InputTypeError(
            'options of a metric stand with it: Bleu(max_order=2), or by name "bleu:max_order=2"',
            argument="options",
        )
    if unknown := [name for name in keywords if name not in names]:
        flags = {one.flag.strip("-").replace("-", "_"): one.name for one in list_settings(blocks)}
        ours = flags.get(unknown[0], "")
        near = f" (it is {ours} here)" if ours else meant(unknown[0], [*names, "metrics"])
        raise InputTypeError(
            f"there is no setting called {unknown[0]!r}{near}; the settings are {', '.join(names)}"
        )
    if settings is not None and not isinstance(settings, Settings):
        raise InputTypeError(f"must be Settings, got {describe(settings)}", argument="settings")
    call_settings = replace(settings or Settings(), **keywords)
    if blocks and call_settings.references_as is not None:
        raise InputError(
            "needs the whole table at once; leave it out, or score without an engine",
            argument="references_as",
        )
    return call_settings
