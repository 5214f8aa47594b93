"""A language model that rates outputs on one criterion, and compares two in both orders"""

from collections.abc import Iterable, Mapping
from contextlib import closing, nullcontext
from hashlib import sha256
from pathlib import Path

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from tsteval.people.prompts import (
    WORDINGS,
    choice_prompts,
    find_criterion,
    rating_prompts,
    scale_labels,
)

from ..core.checks import InputError, check_equal_lengths, tokenizable
from ..core.metric import digest, sign
from ..models.causal_lm import CausalLM
from ..runs.store import Store
from ..tables.outputs import LONGEST
from .chat import Answer, LocalChat
from .chat_server import ServedChat, load_chat

LEAST_MASS = 0.01  # of the probability on labels; with less the labels are the noise of what else might be written


def expected_score(
    shares,  # (N, L) probability of each label, rows summing to at most 1
    points,  # (L,) the numbers that the labels stand for
) -> np.ndarray:  # (N,) within the scale; NaN where less than LEAST_MASS is on labels
    """Mean point of a scale under the probabilities of its labels. Source: Liu et al. 2023 (G-Eval), equation 1."""
    shares = np.asarray(shares, float).reshape(-1, len(points))
    points = np.asarray(points, float)
    mass = shares.sum(axis=1)
    return np.divide(
        (shares * points).sum(axis=1),
        mass,
        out=np.full(len(mass), np.nan),
        where=mass >= LEAST_MASS,
    )


class Judge:
    """A language model that is asked for one criterion."""

    def __init__(
        self,
        chat: LocalChat | ServedChat,
        criterion: str,  # style | content | fluency, or a question of one's own
        scale: tuple[int, int] = (1, 5),  # lowest and highest point, 0..9
        store: Path | str | None = None,  # a file that keeps every answer; None: none is kept
    ):
        self.chat = chat
        self.criterion = find_criterion(criterion)
        self.store = store
        self.labels = scale_labels(scale)

    @classmethod
    def load(
        cls,
        name: str
        | Path
        | CausalLM,  # an address of an API; or a model: embedded, a folder, or a Hugging Face model id
        model: str
        | None = None,  # at an address: as the server knows it; None: the only one that it has
        *,
        criterion: str,  # style | content | fluency, or a question of one's own
        scale: tuple[int, int] = (1, 5),  # lowest and highest point, 0..9
        store: Path
        | str
        | None = None,  # a file that keeps every answer, so that a second run costs nothing
        **limits,  # device, samples, at_once: see `load_chat`
    ) -> "Judge":
        """A judge by name or address; a server is asked for the first time when it is needed.

        Raises: AssetError if a model cannot be had; InputError that names the argument that is wrong.
        """
        criterion = find_criterion(criterion)
        _ = scale_labels(scale)
        return cls(load_chat(name, model, **limits), criterion, scale, store)

    @property
    def signature(self) -> str:
        """What someone else needs to repeat a score: the question, the wordings, the model, and how it was asked."""
        asked = digest(
            self.criterion.question,
            self.criterion.better,
            *self.criterion.anchors,
            *self.criterion.reads,
        )
        return sign(
            "judge",
            criterion=asked,
            scale=f"{self.labels[0]}-{self.labels[-1]}",
            wordings=WORDINGS,
            model=self.chat.tag,
        )

    def score(
        self,
        sources: Iterable[str],  # N
        outputs: Iterable[str],  # N
        styles: str
        | Iterable[str]
        | None = None,  # that were to be reached; needed for the criterion style
        progress: bool = False,  # show a bar
    ) -> (
        pd.DataFrame
    ):  # N rows: expected, label_mass, tokens, reason, and p_<label>, the mean of three wordings
        """Rate outputs, one by one. A row whose reason is not empty has no score.

        Raises: InputTypeError naming the row that is no string; InputError for unequal numbers, missing styles, or a
        server that cannot be asked.
        """
        rows = self._rows(styles, source=sources, output=outputs)
        asked = [rating_prompts(self.criterion, self.labels, row, row["style"]) for row in rows]
        shares, frame = self._mean_answers(rows, asked, self.labels, progress)
        frame.insert(0, "expected", expected_score(shares, [*map(int, self.labels)]))
        frame.loc[frame.expected.isna() & (frame.reason == ""), "reason"] = (
            "no answer begins with a point of the scale"
        )
        return frame.assign(**{f"p_{label}": share for label, share in zip(self.labels, shares.T)})

    def compare(
        self,
        sources: Iterable[str],  # N
        first: Iterable[str],  # N outputs
        second: Iterable[str],  # N others
        styles: str | Iterable[str] | None = None,  # as `score`
        progress: bool = False,  # show a bar
    ) -> pd.DataFrame:  # N rows: verdict, first_share, shown_first, label_mass, tokens, reason
        """Which of two outputs is better, asked in both orders; where the order decides, it is a tie.

        The verdict is first, second or tie; `first_share` is the probability of the first output, 0..1, and
        `shown_first` that of whichever output is shown first, each a mean over both orders. Raises: as `score`.
        """
        rows = self._rows(styles, source=sources, first=first, second=second)
        orders = [("first", "second"), ("second", "first")]
        asked = [
            [
                choice_prompts(self.criterion, row["source"], (row[a], row[b]), row["style"])
                for row in rows
            ]
            for a, b in orders
        ]
        (ahead, frame), (behind, other) = (
            self._mean_answers(rows, prompts, "12", progress) for prompts in asked
        )
        first_place, second_place = (expected_score(shares, (1, 0)) for shares in (ahead, behind))
        won = np.array([first_place, 1 - second_place])
        frame = frame.assign(
            label_mass=(frame.label_mass + other.label_mass) / 2,
            tokens=frame.tokens + other.tokens,
            reason=frame.reason.where(frame.reason != "", other.reason),
        )
        none = np.isnan(won).any(axis=0)
        frame.loc[none & (frame.reason == ""), "reason"] = "no answer begins with 1 or 2"
        verdict = np.select(
            [none, (won > 0.5).all(axis=0), (won < 0.5).all(axis=0)], ["", "first", "second"], "tie"
        )
        frame.insert(0, "verdict", verdict)
        frame.insert(1, "first_share", won.mean(axis=0))
        frame.insert(2, "shown_first", (first_place + second_place) / 2)
        return frame

    def cost(
        self,
        sources: Iterable[str],  # N
        outputs: Iterable[str],  # N
        styles: str | Iterable[str] | None = None,  # as `score`
    ) -> tuple[int, int]:  # prompts, and tokens to be read for them
        """What `score` would ask, without asking it; a server's tokens are counted by the embedded model's tokenizer.

        Raises: as `score`.
        """
        rows = self._rows(styles, source=sources, output=outputs)
        prompts = {
            prompt
            for row in rows
            if not row["reason"]
            for prompt in rating_prompts(self.criterion, self.labels, row, row["style"])
        }
        return len(prompts), int(self.chat.count(sorted(prompts)).sum())

    def _rows(self, styles: str | Iterable[str] | None, **columns: Iterable[str]) -> list[dict]:
        """Texts and style of each row, and why it cannot be asked."""
        text_columns = {
            name: tokenizable(texts, f"{name}s" if name in ("source", "output") else name)
            for name, texts in columns.items()
        }
        n = len(text_columns["source"])
        row_styles = (
            [styles] * n
            if styles is None or isinstance(styles, str)
            else tokenizable(styles, "styles")
        )
        check_equal_lengths(**text_columns, styles=row_styles)
        if "{style}" in self.criterion.question and styles is None:
            raise InputError("are needed, since the criterion names the style", argument="styles")
        rows = [
            dict(zip(text_columns, texts), style=style)
            for *texts, style in zip(*text_columns.values(), row_styles)
        ]
        return [
            row
            | {
                "reason": _unfit(
                    {name: row[name] for name in text_columns if name != "source"}, row["source"]
                )
            }
            for row in rows
        ]

    def _mean_answers(
        self, rows: list[dict], asked: list[list[str]], labels: str, progress: bool
    ) -> tuple[np.ndarray, pd.DataFrame]:
        """(N, L) shares of each row's labels, as a mean over wordings, NaN where there are none; and the frame of
        label_mass, tokens and reason."""
        fit = [place for place, row in enumerate(rows) if not row["reason"]]
        answer_by_prompt = self._answers(
            dict.fromkeys(prompt for place in fit for prompt in asked[place]), labels, progress
        )
        shares = np.full((len(rows), len(labels)), np.nan)
        tokens = np.zeros(len(rows), dtype=int)
        reasons = [row["reason"] for row in rows]
        for place in fit:
            answers = [answer_by_prompt[prompt] for prompt in asked[place]]
            tokens[place] = sum(answer.tokens for answer in answers)
            reasons[place] = next((answer.reason for answer in answers if answer.reason), "")
            if not reasons[place]:
                shares[place] = np.mean([answer.shares for answer in answers], axis=0)
        return shares, pd.DataFrame(
            {
                "label_mass": shares.sum(axis=1),
                "tokens": tokens,
                "reason": np.array(reasons, dtype=object),
            }
        )

    def _answers(self, prompts: Iterable[str], labels: str, progress: bool) -> dict[str, Answer]:
        """The answer to each prompt, kept or made; what is made is kept at once."""
        prompts = list(prompts)
        if not prompts:
            return {}
        chat = (self.chat.tag,)
        if isinstance(self.chat, ServedChat):  # two servers may give one name to two models
            chat += (self.chat.address, self.chat.model)
        keys = {
            prompt: sha256(repr((*chat, labels, prompt)).encode()).digest() for prompt in prompts
        }
        with closing(Store(self.store)) if self.store is not None else nullcontext() as store:
            records = {} if store is None else store.get(keys.values(), len(labels) + 1)
            answers = {
                prompt: Answer(records[key][:-1], int(records[key][-1]))
                for prompt, key in keys.items()
                if key in records
            }
            new = [prompt for prompt in prompts if prompt not in answers]
            for place, answer in tqdm(
                self.chat.ask(new, labels), total=len(new), desc="judge", disable=not progress
            ):
                answers[new[place]] = answer
                if store is not None and answer.shares is not None:
                    store.put({keys[new[place]]: np.append(answer.shares, answer.tokens)})
        return answers


def _unfit(outputs: Mapping[str, str], source: str) -> str:
    """Why a row cannot be asked; empty: it can."""
    for name, text in [*outputs.items(), ("source", source)]:
        if len(text) > LONGEST:
            return f"the {name} has {len(text):,} characters, more than {LONGEST:,}"
        if not text.strip() and name != "source":
            return f"the {name} is empty"
    return ""
