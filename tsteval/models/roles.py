"""The models of one evaluation: each is loaded when a metric first asks for its role"""

import copy
from collections.abc import Callable, Mapping
from typing import Any

from ..core.checks import InputTypeError, check_choice, describe
from ..words.ngram_model import NgramModel
from .base import Memory, Model


class Models:
    """The models of one evaluation, each loaded when a metric first asks for it."""

    def __init__(
        self,
        # role -> a model, or the name of one; a role without entry has a default
        chosen: Mapping[str, Any] | None = None,
        *,
        device: str = "auto",  # auto | cpu | cuda | mps, for models that are loaded here
        batch_size: int | None = None,  # texts at once; None: each model's own choice
        progress: bool = False,  # show bars
        remember: int = 0,  # rows a model whose results are kept for later calls, see `Memory` in `models.base`
        store=None,  # the file of a metric that keeps its rows itself; None: nothing is kept
    ):
        self.chosen = dict(chosen or {})
        self.device = device
        self.progress = progress
        self.remember = remember
        self.store = store
        self.batch = (
            {} if batch_size is None else {"batch_size": batch_size}
        )  # to be passed on as keywords
        self.used: dict[str, str] = {}  # name -> checksum, in the order of first use
        self.results: dict[
            str, tuple[Any, Any]
        ] = {}  # kind of result -> what it was made from, and the result

    def get(
        self,
        role: str,  # such as "style"
        kind: type,  # the class that loads it, with `load(name, device=...)` and a default name
        chosen: Any = None,  # the model, or the name of one, that a metric's option gives; None: the role's
    ):
        """The model for a role. Raises: AssetError if it cannot be had; InputTypeError for an n-gram model where a
        neural one is asked for."""
        if chosen is not None:
            role = f"{role} {chosen if isinstance(chosen, str) else id(chosen)}"
            self.chosen.setdefault(role, chosen)
        model = self.chosen.get(role)
        if model is None or isinstance(model, str):
            model = self.chosen[role] = kind.load(*([model] if model else []), device=self.device)
        if isinstance(model, NgramModel) and issubclass(kind, Model):
            raise InputTypeError(
                f"{role} is an n-gram model, and a metric asks for a {kind.__name__}; leave that "
                "metric out, or the n-gram model",
                argument=role,
            )
        if self.remember and getattr(model, "memory", False) is None:
            model = self.chosen[role] = copy.copy(
                model
            )  # the caller's own object remembers nothing
            model.memory = Memory(self.remember)
        if model.name not in self.used:  # of a model made in memory it is a sum over all weights
            self.used[model.name] = model.identity
        return model

    def counted_anew(self) -> "Models":
        """The same models and results, whose `used` begins empty: what one metric asks for."""
        models = copy.copy(self)
        models.used = {}
        return models

    def named(
        self,
        model,  # a model, or the name or folder of one
        kind: type,  # the class that loads it
    ):
        """The model that a metric's option names, loaded on this evaluation's device. Raises: InputTypeError for what
        is neither; AssetError if it cannot be had."""
        if isinstance(model, kind):
            return model
        if not isinstance(model, str):
            raise InputTypeError(
                f"model must be a name, a folder or a {kind.__name__}; got {describe(model)}"
            )
        self.chosen.setdefault(model, model)
        return self.get(model, kind)

    def once(
        self,
        kind: str,  # names the kind of result, such as "token_sums"
        key: Any,  # all that the result depends on; compared by ==
        compute: Callable[[], Any],  # makes it
    ) -> Any:
        """A result that several metrics of one evaluation share. Of each kind the latest is kept."""
        if kind not in self.results or self.results[kind][0] != key:
            self.results[kind] = key, compute()
        return self.results[kind][1]


TIERS = ("small", "base", "large")
_LARGER_ENCODER = "all-mpnet-base-v2"
# stored in bfloat16 and computed in 32-bit floats: faster where a processor has no instructions for bfloat16, and the
# same numbers on all
LARGER_LANGUAGE_MODEL = "Qwen2.5-Coder-1.5B-Instruct"
_LARGER_JUDGES = {
    "subjective": "subjectivity-mpnet",
    "neutral": "subjectivity-mpnet",
    "informal": "formality-mpnet",
    "formal": "formality-mpnet",
}


def usual_models(
    tier: str,  # of TIERS
    target_style: str,  # the style to be reached
) -> dict[
    str, str
]:  # role -> name of the model that plays it; a role without entry has its class's default
    """Which models play the parts that nobody was named for. Raises: InputError for another tier."""
    check_choice(tier, "models", TIERS)
    if tier == "small":
        return {}
    cast = {"encoder": _LARGER_ENCODER}
    if judge := _LARGER_JUDGES.get(target_style.lower()):
        cast["style"] = judge
    if tier == "large":
        cast["language_model"] = LARGER_LANGUAGE_MODEL
    return cast
