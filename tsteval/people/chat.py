"""A chat model in this process, asked for the probability of labels"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..core.checks import InputError
from ..models.causal_lm import TEXT, CausalLM, Prompt
from ..models.loading import POSITIONS


@dataclass(frozen=True)
class Answer:
    """What a model answered to one prompt."""

    shares: np.ndarray | None = (
        None  # (L,) probability of each label, their sum at most 1; None: see `reason`
    )
    tokens: int = 0  # read and written
    reason: str = ""  # why there is no answer; empty: there is one


_OPENING = 8  # characters that tell one wording from another
_SPACES = "Ġ▁ "  # how tokenizers write the space before a word


def _turn(tokenizer) -> Prompt:
    """What a chat template puts around a prompt."""
    if not getattr(tokenizer, "chat_template", None):
        return Prompt("", "\n")
    return Prompt.read(
        tokenizer.apply_chat_template(
            [{"role": "user", "content": TEXT}], tokenize=False, add_generation_prompt=True
        )
    )


class LocalChat:
    """A causal language model in this process, asked for the probability of labels."""

    batch = 8  # prompts answered at once, for each POSITIONS that the model's device holds

    def __init__(
        self,
        lm: CausalLM,
    ):
        self.lm, self.name, self._marks = lm, lm.name, _turn(lm.tokenizer)

    @property
    def tag(self) -> str:
        """Back end and model, for signatures."""
        return f"in-process+{self.lm.tag}"

    def count(
        self,
        prompts: Sequence[str],  # N
    ) -> np.ndarray:  # (N,) tokens that are read for each
        """Tokens that an answer costs."""
        return np.array([len(ids) for ids in self._ids(prompts)], dtype=int)

    def ask(
        self,
        prompts: Sequence[str],  # N
        labels: Sequence[str],  # L, each one character
    ) -> Iterator[tuple[int, Answer]]:  # the number of a prompt and its answer, as they come
        """The probability of each label as the first token of an answer."""
        ids = self._ids(prompts)
        tokens = self._label_tokens(labels)
        fits = [place for place, row in enumerate(ids) if len(row) < self.lm.max_tokens]
        for place in sorted(set(range(len(ids))) - set(fits)):
            yield (
                place,
                Answer(
                    reason=f"the prompt has {len(ids[place]):,} tokens, and {self.name} reads "
                    f"{self.lm.max_tokens:,}"
                ),
            )
        # prompts of one wording stand together, since what they begin with is read once
        fits.sort(key=lambda place: (prompts[place][:_OPENING], len(ids[place])))
        size = self.batch * max(1, self.lm.positions // POSITIONS)
        for start in range(0, len(fits), size):
            chosen = fits[start : start + size]
            probabilities = np.exp(
                self.lm.next_logprobs([ids[place] for place in chosen], [*tokens])
            )
            for place, row in zip(chosen, probabilities):
                yield (
                    place,
                    Answer(np.bincount([*tokens.values()], row, len(labels)), len(ids[place])),
                )

    def _ids(self, prompts: Sequence[str]) -> list[tuple[int, ...]]:
        options = {"add_special_tokens": False, "return_attention_mask": False, "verbose": False}
        before, after = (
            self.lm.tokenize([part], **options)["input_ids"][0] if part else []
            for part in (self._marks.before, self._marks.after)
        )
        bodies = (
            self.lm.tokenize([*prompts], split_special_tokens=True, **options)["input_ids"]
            if prompts
            else []
        )
        return [(*(before or [self.lm.beginning]), *body, *after) for body in bodies]

    def _label_tokens(self, labels: Sequence[str]) -> dict[int, int]:
        """Tokens that are a label -> the number of the label."""
        tokenizer = self.lm.tokenizer
        numbers = {label: number for number, label in enumerate(labels)}
        names = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
        tokens = {
            token: numbers[name.strip(_SPACES)]
            for token, name in enumerate(names)
            if name and name.strip(_SPACES) in numbers
        }
        if missing := [label for label, number in numbers.items() if number not in tokens.values()]:
            raise InputError(f"{self.name} has no token for {missing[0]!r}; ask another model")
        return tokens
