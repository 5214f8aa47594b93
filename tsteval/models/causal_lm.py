"""A causal language model that gives every token its log-probability"""

import inspect
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from ..core.assets import AssetError
from ..core.checks import InputError, check_equal_lengths, check_number, tokenizable
from ..core.pretrained import ModelSource, load_pretrained
from .base import Model, check_batch_size


@dataclass
class TokenScores:
    """A text's tokens with their log-probabilities."""

    tokens: list[str]  # T tokens, as the model's tokenizer writes them
    logprobs: np.ndarray  # (T,) natural logs, <= 0
    spans: list[tuple[int, int]]  # T pairs: where each token's characters begin and end in the text
    # (T,) log-probability of the token that the model expected most; None where not asked for
    likeliest: np.ndarray | None = None


def _windows(length: int, window: int) -> list[tuple[int, int, int]]:
    """(start, first scored, end) of overlapping windows over `length` positions; each position is scored once."""
    step = max(window // 2, 1)
    windows = [(0, 1, min(window, length))]
    scored = min(window, length)
    while scored < length:
        end = min(scored + step, length)
        windows.append((end - window, scored, end))
        scored = end
    return windows


def shared_beginning(
    rows: Sequence[Sequence[int]],  # of tokens, none of them empty
) -> int:  # how many tokens all of them begin with, so that each has one left
    most = min(map(len, rows)) - 1
    first, last = min(rows), max(rows)  # whatever these two share, all share
    return next((place for place in range(most) if first[place] != last[place]), most)


def cache_option(
    module,  # a causal language model of transformers
) -> str | None:
    """What transformers calls the argument with what was read before: another name from 5.24 on; None: it has none."""
    names = inspect.signature(module.base_model.forward).parameters
    return next((name for name in ("cache", "past_key_values") if name in names), None)


def read_once(
    module,  # a causal language model of transformers
    beginning: Sequence[int],  # tokens
    n: int,  # rows that begin with them
):
    """What the model keeps of the tokens with which n rows begin, once for each row; None where that saves nothing or
    the model keeps it in another way."""
    import torch
    from transformers import DynamicCache

    option = cache_option(module)
    if (n - 1) * len(beginning) < _PASS or option is None:
        return None
    ids = torch.tensor([[*beginning]], device=module.device)
    cache = DynamicCache(config=module.config)
    module.base_model(input_ids=ids, **{option: cache}, use_cache=True)
    if cache.get_seq_length() != len(beginning):
        return None
    cache.batch_repeat_interleave(n)
    return cache


_SEPARATOR = "<|endoftext|>"  # stands between documents in the training text of many models


def _beginning_token(
    tokenizer,  # of transformers
    name: str,  # of the model, for errors
    beginning: str | None = None,  # a token of its vocabulary; None: by the rule
) -> int:  # the token's number
    """The token that stands before every text. Raises: InputError for a token that the model does not have."""
    vocabulary = tokenizer.get_vocab()
    if beginning is not None and beginning not in vocabulary:
        raise InputError(
            f"beginning must be a token of {name}, such as {tokenizer.bos_token or _SEPARATOR!r}; got "
            f"{beginning!r}"
        )
    choices = (beginning, _SEPARATOR, tokenizer.bos_token, tokenizer.eos_token)
    token = next((token for token in choices if token is not None and token in vocabulary), None)
    if token is None:
        raise InputError(
            f"the tokenizer of {name} has neither a beginning-of-text nor an end-of-text token; name one "
            f"of its "
            "tokens as `beginning`"
        )
    return vocabulary[token]


PROMPT_FILE = "rewriter.json"
_INSTRUCTION = "Rewrite the sentence from a neutral point of view. Keep all facts. Answer with the sentence alone."
TEXT = "{text}"


@dataclass(frozen=True)
class Prompt:
    """What stands before and after the text that a model is to answer, and what it writes when it is done."""

    before: str = ""
    after: str = ""
    end: str = ""  # besides the tokens that the model's own settings name

    @classmethod
    def read(
        cls,
        written: "str | Prompt",  # a text with {text} in it
    ) -> "Prompt":
        """A prompt from how a person writes it. Raises: InputError unless {text} stands in it once."""
        if isinstance(written, Prompt):
            return written
        if not isinstance(written, str) or written.count(TEXT) != 1:
            raise InputError(
                f"a prompt is a text that holds {TEXT} once, such as 'Neutral: {TEXT}'; got "
                f"{written!r:.80}"
            )
        return cls(*written.split(TEXT))


def chat_prompt(
    tokenizer,  # of transformers
    instruction: str = _INSTRUCTION,
    examples: Sequence[
        tuple[str, str]
    ] = (),  # a text and its answer, shown as turns that went before
) -> Prompt | None:  # None if the tokenizer has no chat template
    """The prompt that a chat model's own template makes of an instruction, examples and a text. Raises: InputError for an
    example that writes one of the model's marks."""
    if not getattr(tokenizer, "chat_template", None):
        return None
    marks = [token.content for token in tokenizer.added_tokens_decoder.values() if token.special]
    for row, pair in enumerate(examples):
        if any(mark in text for mark in marks for text in pair):
            raise InputError(
                "this example holds a mark that the model reads as its own; take it out",
                argument="examples",
                row=row,
            )
    turns = [
        {"role": role, "content": content}
        for text, answer in examples
        for role, content in (("user", f"{instruction}\n\n{text}"), ("assistant", answer))
    ]
    turns.append({"role": "user", "content": f"{instruction}\n\n{TEXT}"})
    written = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
    before, _, after = written.rpartition(TEXT)  # an example may hold {text} too
    return Prompt(before, after)


_TURN = ("<|im_start|>", "<|im_end|>")  # ChatML, the marks of a turn in a conversation


def task_tokens(
    model,  # a `CausalLM`
    instructions: Sequence[str],  # N, such as "Repeat the following text:"
    texts: Sequence[str],  # N texts that they speak of
) -> list[
    tuple[int, ...]
]:  # N contexts for `token_logprobs`: the tokens up to where the answer begins
    """Instructions and texts as a model reads a task. Raises: InputError, InputTypeError as `check_texts`."""
    tasks = [
        f"{instruction}\n{text}"
        for instruction, text in zip(tokenizable(instructions, "instructions"), tokenizable(texts))
    ]
    if not tasks:
        return []
    options = {"add_special_tokens": False, "return_attention_mask": False, "verbose": False}
    bodies = model.tokenize(tasks, split_special_tokens=True, **options)["input_ids"]
    marks = (f"{_TURN[0]}user\n", f"{_TURN[1]}\n{_TURN[0]}assistant\n")
    if not set(_TURN) <= model.tokenizer.get_vocab().keys():
        marks = ("", "\n")
    before, after = model.tokenize([*marks], split_special_tokens=False, **options)["input_ids"]
    return [(*(before or [model.beginning]), *body, *after) for body in bodies]


_HEAD_ROWS = 256  # positions for which logits of all words are held at once
_PASS = 32  # tokens that cost a processor as much as one more pass, which reads all weights

_GIVE = "give a causal language model, or use the embedded default 'SmolLM2-135M-Instruct'"


class CausalLM(Model):
    """A causal language model that gives every token of a text its log-probability."""

    default_name = "SmolLM2-135M-Instruct"
    auto_class = "AutoModelForCausalLM"
    card_dtype = "bfloat16"  # signed; log-probabilities are taken in 32 bits from its logits

    def __init__(self, model, tokenizer, name: str, identity: str = ""):
        super().__init__(model, tokenizer, name, identity)
        check_causal(self)

    @cached_property
    def beginning(self) -> int:
        """The number of the token that stands before every text."""
        return _beginning_token(self.tokenizer, self.name)

    @classmethod
    def load(
        cls,
        name: str
        | Path
        | None = "SmolLM2-135M-Instruct",  # an embedded model, a folder, or a Hugging Face model id
        *,
        # the token before every text; None: <|endoftext|> if there is one, else the tokenizer's own
        beginning: str | None = None,
        device: str = "auto",  # auto | cpu | cuda | mps
        # float32 | bfloat16 | float16; None: float32, and bfloat16 on a graphics card
        dtype: str | None = None,
    ) -> "CausalLM":
        """Load a causal language model by name.

        Raises: AssetError if it cannot be had; InputError for a device that is not there or a token that it does not
        have.
        """
        model = super().load(name, device=device, dtype=dtype)
        model.beginning = _beginning_token(model.tokenizer, model.name, beginning)
        return model

    @classmethod
    def _read(cls, source: ModelSource, dtype: str):
        from transformers import AutoConfig

        if load_pretrained(AutoConfig, source.base or source, cls.default_name).is_encoder_decoder:
            raise AssetError(
                f"{source.name!r} reads one text and writes another (sequence to sequence), so it has no "
                f"probability for a text alone; {_GIVE}"
            )
        return super()._read(source, dtype)

    @property
    def tag(self) -> str:
        """Name and checksum for signatures, with the number of the token that stands before every text."""
        return f"{super().tag}+after-token-{self.beginning}"

    def __reduce__(self):
        *made, state = super().__reduce__()
        return *made, state | {"beginning": self.beginning}

    def token_logprobs(
        self,
        texts: Iterable[str],  # N texts
        batch_size: int
        | None = None,  # windows scored at once, at most; changes speed and memory, not the result
        window: int = 1024,  # tokens a window, at most the model's own context, at least 2
        progress: bool = False,  # show a bar
        *,
        # N lists of tokens to stand before the texts, see `task_tokens`; None: the beginning token
        contexts: Sequence[Sequence[int]] | None = None,
        likeliest: bool = False,  # give the log-probability of the token expected most, too
    ) -> list[TokenScores]:  # N, in input order
        """Log-probability of every token given its context and all tokens before it. Where context and text are longer
        than a window, later windows see the last part of the text only.

        Raises: InputTypeError if a text is not a string; InputError for a batch size below 1, a window below 2, or
        another number of contexts than of texts.
        """
        check_number(window, "window", 2, whole=True)
        check_batch_size(batch_size)
        encoded = self._encode(texts)
        before = (
            [(self.beginning,)] * len(encoded["input_ids"])
            if contexts is None
            else [tuple(context) for context in contexts]
        )
        check_equal_lengths(texts=encoded["input_ids"], contexts=before)
        ids = [(*context, *text_ids) for context, text_ids in zip(before, encoded["input_ids"])]
        window = min(window, self.max_tokens)
        logprobs = {row: np.zeros((1 + likeliest, len(row) - 1)) for row in ids}
        asked = {}  # row -> its first token that is text
        for row, context in zip(ids, before):
            asked[row] = min(len(context), asked.get(row, len(row)))
        jobs = [
            (row, start, max(scored, asked[row]), end)
            for row in logprobs
            for start, scored, end in _windows(len(row), window)
            if end > asked[row]
        ]
        results = self.in_batches(
            [end - start for _, start, _, end in jobs],
            lambda chosen: self._score([jobs[place] for place in chosen], likeliest),
            batch_size=batch_size,
            progress=progress,
            desc="fluency",
        )
        for (row, _, scored, end), values in zip(jobs, results):
            logprobs[row][:, scored - 1 : end - 1] = values
        return [
            TokenScores(
                self.tokenizer.convert_ids_to_tokens(list(row[len(context) :])),
                *_scored(logprobs[row], len(context), spans),
            )
            for row, context, spans in zip(ids, before, encoded["offset_mapping"])
        ]

    def next_logprobs(
        self,
        contexts: Sequence[
            Sequence[int]
        ],  # N lists of tokens, none of them longer than the model can read
        tokens: Sequence[int],  # K numbers of tokens
        batch_size: int | None = None,
        progress: bool = False,  # show a bar
    ) -> np.ndarray:  # (N, K) natural logs, <= 0
        """Log-probability of each of some tokens right behind each context. What the contexts of a batch begin with is
        read once for all of them. Raises: InputError for a batch size below 1."""
        import torch

        token_ids = torch.tensor([*tokens], dtype=torch.long, device=self.device)

        def compute(rows):
            shared = shared_beginning([contexts[row] for row in rows])
            read = read_once(self.model, contexts[rows[0]][:shared], len(rows))
            if read is None:
                shared = 0
            ends = [contexts[row][shared:] for row in rows]
            longest = max(map(len, ends))
            ids = torch.tensor(
                [[*end, *[self.beginning] * (longest - len(end))] for end in ends],
                device=self.device,
            )
            last = torch.tensor([len(end) - 1 for end in ends], device=self.device)
            logits = self._logits_at(ids, torch.arange(len(rows), device=self.device), last, read)
            return torch.cat([part.log_softmax(1)[:, token_ids] for part in logits])

        logprobs = self.in_batches(
            [len(context) for context in contexts],
            compute,
            batch_size=batch_size,
            progress=progress,
            desc="asking",
        )
        return np.array(logprobs).reshape(len(contexts), len(token_ids))

    def read_states(
        self,
        texts: Iterable[
            str
        ],  # N texts; of one that is longer than the window, its beginning is read
        layers: Sequence[int],  # K numbers of layers, 0 the embeddings
        batch_size: int
        | None = None,  # texts at once, at most; changes speed and memory, not the result
        window: int = 1024,  # tokens, with the one that stands before the text
        progress: bool = False,  # show a bar
    ) -> list[
        tuple[np.ndarray, np.ndarray]
    ]:  # N pairs (K, D) and (T,), NaN and empty without tokens
        """What the model holds of a text, the mean over its tokens of each layer's states, and the log-probability of
        each token, from one pass.

        Raises: InputTypeError if a text is not a string; InputError for a batch size below 1.
        """
        import torch

        window = min(window, self.max_tokens)
        encoded = self._encode(texts, places=False)["input_ids"]
        rows = [(self.beginning, *ids[: window - 1]) for ids in encoded]
        distinct = [*dict.fromkeys(rows)]

        def compute(chosen):
            longest = max(len(distinct[row]) for row in chosen)
            ids = torch.full((len(chosen), longest), self.beginning, device=self.device)
            for place, row in enumerate(chosen):
                ids[place, : len(distinct[row])] = torch.tensor(distinct[row])
            # no mask: padding is where no scored position looks
            output = self.model(input_ids=ids, output_hidden_states=True, use_cache=False)
            logits = output.logits[:, :-1].float()
            logprobs = logits.gather(-1, ids[:, 1:, None])[..., 0] - logits.logsumexp(-1)
            states = torch.stack([output.hidden_states[layer] for layer in layers], dim=1)
            for place, row in enumerate(chosen):
                end = len(distinct[row])
                mean = states[place, :, 1:end].mean(dim=1)
                yield torch.cat([mean.flatten(), logprobs[place, : end - 1]])

        found = self.in_batches(
            [len(row) for row in distinct],
            lambda chosen: [*compute(chosen)],
            batch_size=batch_size,
            progress=progress,
            desc="reading",
        )
        width = len(layers) * self.model.config.hidden_size
        of_row = {
            row: (values[:width].reshape(len(layers), -1), values[width:])
            for row, values in zip(distinct, found)
        }
        return [of_row[row] for row in rows]

    def text_tokens(
        self,
        texts: Iterable[str],  # N texts
    ) -> list[list[str]]:  # N lists of tokens
        """The tokens of texts, without scores. Raises: InputTypeError if a text is not a string."""
        return [
            self.tokenizer.convert_ids_to_tokens(ids)
            for ids in self._encode(texts, places=False)["input_ids"]
        ]

    def _encode(self, texts: Iterable[str], places: bool = True) -> dict[str, list]:
        """Token ids and their places in the text, without any token that is not text."""
        texts = tokenizable(texts)
        if not texts:
            return {"input_ids": [], "offset_mapping": []}
        return self.tokenize(
            texts,
            add_special_tokens=False,
            return_offsets_mapping=places,
            return_attention_mask=False,
            verbose=False,
        )

    def _score(self, jobs: list[tuple], likeliest: bool) -> list:
        """Log-probabilities of the tokens that are asked for in a batch of windows; below them the likeliest, if
        wanted. A job is a row of tokens, where its window starts, the first token asked for, and where it ends."""
        import torch

        rows = [row[start:end] for row, start, _, end in jobs]
        shared = min(
            shared_beginning(rows), *(first - start - 1 for _, start, first, _ in jobs)
        )  # what is asked for stands behind it
        read = read_once(self.model, rows[0][:shared], len(rows))
        if read is None:
            shared = 0
        longest = max(map(len, rows))
        ids = torch.tensor(
            [[*row[shared:], *[self.beginning] * (longest - len(row))] for row in rows],
            device=self.device,
        )
        places = [
            (number, place)
            for number, (_, start, first, end) in enumerate(jobs)
            for place in range(first - start - 1 - shared, end - start - 1 - shared)
        ]
        batch, position = torch.tensor(places, device=self.device).T
        targets = ids[batch, position + 1, None].split(_HEAD_ROWS)
        scores = []
        for logits, target in zip(self._logits_at(ids, batch, position, read), targets):
            sums = logits.logsumexp(dim=1)
            logprobs = logits.gather(1, target)[:, 0] - sums
            scores.append(torch.stack([logprobs, *[logits.amax(dim=1) - sums] * likeliest]))
        return torch.cat(scores, dim=1).split([end - first for _, _, first, end in jobs], dim=1)

    def _logits_at(self, ids, batch, position, read=None) -> Iterator:
        """Logits at some positions, behind what was read before, as tensors of up to _HEAD_ROWS rows in 32-bit floats. A
        head of 49,152 words is a fifth of the arithmetic, so it is not asked elsewhere; no mask: padding is where no
        scored position looks."""
        options = {"use_cache": read is not None}
        if read is not None:
            options[cache_option(self.model)] = read
        if not self._has_plain_head:
            logits = self.model(input_ids=ids, **options).logits[batch, position]
            yield from logits.float().split(_HEAD_ROWS)
            return
        states = self.model.base_model(input_ids=ids, **options).last_hidden_state
        for part in states[batch, position].split(_HEAD_ROWS):
            yield self.model.get_output_embeddings()(part).float()

    @cached_property
    def _has_plain_head(self) -> bool:
        """Whether the logits are the head's products with the last states, and nothing is done to them after that."""
        import torch

        ids = torch.full((1, 2), self.beginning, device=self.device)
        head = self.model.get_output_embeddings()
        if head is None or self.model.base_model is self.model:
            return False
        states = self.model.base_model(input_ids=ids, use_cache=False).last_hidden_state
        if states.shape[-1] != head.weight.shape[-1]:
            return False
        return torch.allclose(
            head(states), self.model(input_ids=ids, use_cache=False).logits, rtol=1e-4, atol=1e-4
        )


def check_causal(
    model: Model,  # a language model
) -> None:
    """Raise an AssetError if it sees the tokens behind a token: what it gives for one is no probability given those
    before."""
    import torch

    special = set(model.tokenizer.all_special_ids)  # asked once: the list is made anew each time
    words = [token for token in range(len(model.tokenizer)) if token not in special][:2]
    if model.device.type == "meta" or len(words) < 2:
        return
    rows = torch.tensor([[words[0], words[0], last] for last in words], device=model.device)
    with model.running():
        first, second = model.model(input_ids=rows).logits[:, :2].double()
    if not (first - second).abs().max() <= 1e-4 * first.std():
        raise AssetError(
            f"{model.name!r} sees the tokens behind a token as well as those before it, as a masked "
            f"language model such as BERT does, so its scores are no probabilities of a text; {_GIVE}"
        )


def _scored(scores: np.ndarray, context: int, spans: list) -> tuple:
    """A text's part of the scores of context and text: log-probabilities, spans, and the likeliest or None."""
    logprobs, *likeliest = scores[:, context - 1 :].copy()
    return logprobs, spans, *likeliest


def next_words(
    lm: CausalLM,  # that continues texts
    beginnings: list[str],  # N beginnings, without a space at their end
    k: int = 5,  # how many words each; fewer if the model has no more that are one token
    batch_size: int | None = None,
) -> list[list[str]]:  # N lists of at most k words, the likeliest first
    """The likeliest words behind each beginning."""
    import torch

    check_number(k, "k", 1, whole=True)
    if not beginnings:
        return []
    vocabulary = lm.tokenizer.convert_ids_to_tokens(range(len(lm.tokenizer)))
    words = torch.tensor(
        [
            token
            for token, name in enumerate(vocabulary)
            if name and name[0] in "Ġ▁" and name[1:].isalpha() and len(name) > 2
        ],
        dtype=torch.long,
    )
    ids = [[lm.beginning, *row] for row in lm._encode(beginnings, places=False)["input_ids"]]

    def compute(rows):
        longest = max(len(ids[row]) for row in rows)
        batch = torch.tensor(
            [[*ids[row], *[lm.beginning] * (longest - len(ids[row]))] for row in rows],
            device=lm.device,
        )
        last = torch.tensor([len(ids[row]) - 1 for row in rows], device=lm.device)
        logits = lm._logits_at(batch, torch.arange(len(rows), device=lm.device), last)
        return torch.cat(
            [
                part[:, words.to(lm.device)].topk(min(k, len(words)), dim=1).indices
                for part in logits
            ]
        )

    candidates = lm.in_batches([len(row) for row in ids], compute, batch_size=batch_size)
    return [[vocabulary[words[int(place)]][1:] for place in row] for row in candidates]
