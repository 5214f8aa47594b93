"""A generator: prompts that no text can leave, and greedy, beam and sampled decoding in batches"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..core.assets import read_json
from ..core.checks import InputError, check_choice, check_number, check_parallel, tokenizable
from ..core.metric import digest
from ..core.pretrained import ModelSource, load_pretrained
from .base import Model, warn_caller
from .causal_lm import (
    PROMPT_FILE,
    TEXT,
    Prompt,
    TokenScores,
    cache_option,
    chat_prompt,
    check_causal,
    read_once,
    shared_beginning,
)
from .loading import read_adapter, read_module, read_tokenizer

_DECODINGS = ("greedy", "beam", "sample")


@dataclass(frozen=True)
class Decoding:
    """How outputs are made. Raises: InputError (a ValueError) for a setting out of range."""

    method: str = "greedy"  # one of _DECODINGS
    beams: int = 4  # beginnings kept, for beam
    temperature: float = 1.0  # for sample; below 1 likely tokens become likelier still
    top_p: float = 0.95  # for sample: the likeliest tokens that make up this share are kept
    seed: int = 0  # for sample
    longest: int | None = (
        None  # tokens of an output; None: one and a half times those of the text, and 16
    )

    def __post_init__(self):
        check_choice(self.method, "method", _DECODINGS)
        check_number(self.beams, "beams", 1, whole=True)
        check_number(self.temperature, "temperature", 0, above=True)
        check_number(self.top_p, "top_p", 0, 1, above=True)
        check_number(self.seed, "seed", 0, whole=True)
        if self.longest is not None:
            check_number(self.longest, "longest", 1, whole=True)

    @property
    def width(self) -> int:
        """How many hypotheses of one text live side by side when one output is wanted."""
        return self.beams if self.method == "beam" else 1


def _drawn(logprobs: np.ndarray, decoding: Decoding, random) -> int:
    """One token, drawn by its probability among the likeliest."""
    scaled = logprobs.astype(np.float64) / decoding.temperature
    shares = np.exp(scaled - scaled.max())
    order = np.argsort(-shares, kind="stable")
    running = np.cumsum(shares[order] / shares.sum())
    nucleus_size = int(np.searchsorted(running, decoding.top_p, side="left")) + 1
    return int(
        order[
            np.searchsorted(
                running[:nucleus_size] / running[min(nucleus_size, len(running)) - 1],
                random.random(),
                side="right",
            )
        ]
    )


def _processor_that_draws(decoding: Decoding, randoms: list):
    """For `generate`: each row's next token is drawn here from a generator of its own, and all others are ruled out, so
    that no draw depends on the rows beside it."""
    from transformers import LogitsProcessor

    class Draws(LogitsProcessor):
        def __call__(self, input_ids, scores):
            logprobs = scores.float().log_softmax(-1).cpu().numpy()
            ruled_out = scores.new_full(scores.shape, float("-inf"))
            for row, random in enumerate(randoms):
                ruled_out[row, _drawn(logprobs[row], decoding, random)] = 0
            return ruled_out

    return Draws()


def _limit_of_rows(limits: list[int], start: int):
    """For `generate`: ends each row at its own number of tokens behind the first `start`."""
    import torch
    from transformers import StoppingCriteria

    class Limits(StoppingCriteria):
        def __call__(self, input_ids, scores, **_: Any):
            made = input_ids.shape[1] - start
            full = torch.tensor([made >= limit for limit in limits], device=input_ids.device)
            return full.repeat_interleave(len(input_ids) // len(limits))  # of several beams alike

    return Limits()


def _until_the_end(tokens: list[int], ends: set[int], limit: int) -> list[int]:
    """An output up to and with its end, without what filled the batch up behind it."""
    tokens = tokens[:limit]
    end = next((place for place, token in enumerate(tokens) if token in ends), limit)
    return tokens[: end + 1]


# of a model's own generation settings; the others say how to search, which `Decoding` does here
_TOKENS = (
    "bos_token_id",
    "eos_token_id",
    "pad_token_id",
    "decoder_start_token_id",
    "forced_bos_token_id",
)


class Generator(Model):
    """A language model that answers a text: causal or sequence to sequence, with a prompt of its own."""

    default_name = "SmolLM2-135M-Instruct"
    auto_class = "AutoModelForCausalLM"
    prompt: Prompt | None = None  # None: nothing says how it is asked

    @classmethod
    def load(
        cls,
        # an embedded model or adapter, a folder, or a Hugging Face model id; None: the class's default
        name: str | Path | None = None,
        *,
        prompt: str | Prompt | None = None,  # a text with {text} in it; None: the model's own
        device: str = "auto",  # auto | cpu | cuda | mps
        dtype: str = "float32",  # float32 | bfloat16 | float16
    ):
        """Load a model by name. Raises: AssetError if it cannot be had; InputError for a wrong device or prompt.

        Of a model's own settings it uses the tokens that begin and end outputs; `Decoding` says how it searches.
        """
        model = super().load(name, device=device, dtype=dtype)
        if prompt is not None:
            model.prompt = Prompt.read(prompt)
        return model

    @classmethod
    def _read(cls, source: ModelSource, dtype: str):
        from transformers import AutoConfig

        config = load_pretrained(AutoConfig, source.base or source, cls.default_name)
        kind = "AutoModelForSeq2SeqLM" if config.is_encoder_decoder else cls.auto_class
        module = read_module(kind, source, cls.default_name, dtype=dtype)
        module = read_adapter(module, source, cls.default_name) if source.base else module
        return module, read_tokenizer(source, cls.default_name)

    def _settle(self, source: ModelSource) -> None:
        from transformers import GenerationConfig

        own = self.model.generation_config
        self.model.generation_config = GenerationConfig(
            **{name: getattr(own, name, None) for name in _TOKENS}
        )
        if not self.answers_pairs:
            check_causal(self)
        file = Path(source.location) / PROMPT_FILE
        if file.is_file():
            prompt_parts = read_json(file, {"before": str, "after": str, "end": str})
            self.prompt = Prompt(*(prompt_parts[part] for part in ("before", "after", "end")))
        elif not self.answers_pairs:
            self.prompt = chat_prompt(self.tokenizer)

    def _asked(self) -> Prompt:
        """How it is asked. Raises: InputError if nothing says so."""
        if self.prompt is None and not self.answers_pairs:
            raise InputError(
                f"{self.name} continues texts and has neither a {PROMPT_FILE} nor a chat template; say "
                f"how it is asked, such as prompt='Subjective: {TEXT}\\nNeutral:'"
            )
        return self.prompt or Prompt()

    @property
    def answers_pairs(self) -> bool:
        """Whether it is of the kind sequence to sequence."""
        return bool(self.model.config.is_encoder_decoder)

    @property
    def tag(self) -> str:
        """Name and checksum for signatures, with the prompt's."""
        return f"{super().tag}+prompt@{digest(*asdict(self.prompt or Prompt()).values())}"

    def __reduce__(self):
        *made, state = super().__reduce__()
        return *made, state | {"prompt": self.prompt}

    def samples(
        self,
        texts: Iterable[str],  # N texts; an empty one is answered by an empty one
        n: int = 1,  # outputs a text; above 1 for sampling alone
        *,
        batch_size: int = 16,  # outputs made at once; changes speed and memory, not the outputs
        progress: bool = False,  # show a bar
        **decoding,  # see `Decoding`
    ) -> list[list[str]]:  # N lists of n outputs
        """Outputs for each text; a warning counts those that were stopped by the limit.

        Raises: InputTypeError naming the row that is no string; InputError for a text too long or a wrong setting.
        """
        settings = Decoding(**decoding)
        texts = tokenizable(texts)
        check_number(n, "n", 1, whole=True)
        check_number(batch_size, "batch_size", 1, whole=True)
        if n > 1 and settings.method != "sample":
            raise InputError(
                f"{settings.method} decoding makes one output a text; for {n} of them use method='sample'"
            )
        distinct = [text for text in dict.fromkeys(texts) if text.strip()]
        prompts, bodies = self._prompts(distinct, texts)
        limits = [settings.longest or bodies[row] * 3 // 2 + 16 for row in range(len(distinct))]
        made = self.in_batches(
            [len(ids) for ids in prompts],
            lambda rows: self._search(
                [prompts[row] for row in rows],
                [limits[row] for row in rows],
                [distinct[row] for row in rows],
                n,
                settings,
            ),
            batch_size=max(1, batch_size // max(n, settings.width)),
            progress=progress,
            desc="rewriting",
        )
        ends = self._ends()
        decoded_outputs = {}
        stopped = 0
        for text, outputs in zip(distinct, made):
            ids = [[int(token) for token in row if token >= 0] for row in outputs]
            stopped += sum(not row or row[-1] not in ends for row in ids) * texts.count(text)
            decoded_outputs[text] = [
                self.tokenizer.decode(
                    row, skip_special_tokens=True, clean_up_tokenization_spaces=False
                ).strip()
                for row in ids
            ]
        if stopped:
            warn_caller(
                f"{stopped} of {len(texts) * n} outputs of {self.name} did not end before their limit of "
                f"tokens and were cut there"
            )
        return [list(decoded_outputs.get(text, [""] * n)) for text in texts]

    def output_scores(
        self,
        texts: Iterable[str],  # N texts
        outputs: Iterable[str],  # N outputs, one for each
        batch_size: int = 16,
        progress: bool = False,  # show a bar
    ) -> list[TokenScores]:  # N; the last token of each is the end
        """Log-probability of each token of an output, given the text and the tokens before it.

        Raises: InputTypeError naming the row that is no string; InputError for unequal numbers, or naming a text that
        is too long.
        """
        texts, outputs = check_parallel(
            texts=tokenizable(texts), outputs=tokenizable(outputs, "outputs")
        )
        prompts = self._prompts(texts, texts)[0]
        output_ids = self._bodies(outputs, "outputs")
        end = min(self._ends()) if self._own_end() is None else self._own_end()
        output_ids = [[*ids, end] for ids in output_ids]
        rows = self.in_batches(
            [len(prompt) + len(ids) for prompt, ids in zip(prompts, output_ids)],
            lambda rows: self._score(
                [prompts[row] for row in rows], [output_ids[row] for row in rows]
            ),
            batch_size=batch_size,
            progress=progress,
            desc="scoring",
        )
        places = (
            self.tokenize(
                outputs,
                add_special_tokens=False,
                split_special_tokens=True,
                return_offsets_mapping=True,
            )["offset_mapping"]
            if outputs
            else []
        )
        return [
            TokenScores(
                self.tokenizer.convert_ids_to_tokens(ids),
                np.asarray(values),
                [*spans, (len(output), len(output))],
            )
            for ids, values, spans, output in zip(output_ids, rows, places, outputs)
        ]

    def next_tokens(
        self,
        text: str,  # what is to be answered
        beginning: str = "",  # of the answer
        k: int = 5,  # how many
    ) -> list[tuple[str, float]]:  # token as text, probability; the likeliest first
        """The likeliest tokens behind the beginning of an answer; the end is written as it is in the model's
        vocabulary.

        Raises: InputError for a text that is too long, or in which the tokenizer reads a mark of its own.
        """
        import torch

        check_number(k, "k", 1, whole=True)
        [text], [beginning] = tokenizable([text]), tokenizable([beginning], "beginning")
        prompts = self._prompts([text], [text])[0]
        written = self._bodies([beginning], "beginning")[0] if beginning else []
        with self.running():
            logits = self._logits(prompts, [written])[0, -1]
        best = torch.topk(logits.log_softmax(-1), min(k, logits.shape[-1]))
        return [
            (self.tokenizer.decode([int(token)]), float(value.exp())) for value, token in zip(*best)
        ]

    def _bodies(self, texts: list[str], name: str, **options) -> list[list[int]]:
        """Token ids of texts. Raises: InputError naming the row in which the tokenizer read a mark."""
        ids = (
            self.tokenize(
                texts,
                **{"add_special_tokens": False, "return_attention_mask": False, **options},
                split_special_tokens=True,
            )["input_ids"]
            if texts
            else []
        )
        if options:
            return ids
        marks = {
            token for token, added in self.tokenizer.added_tokens_decoder.items() if added.special
        } - {self.tokenizer.unk_token_id}
        for row, tokens in enumerate(ids):
            if marks & set(tokens):
                raise InputError(
                    f"the tokenizer of {self.name} reads a mark of its own in this text; take it out",
                    argument=name,
                    row=row,
                )
        return ids

    def _prompts(
        self, texts: list[str], input_texts: list[str]
    ) -> tuple[list[list[int]], list[int]]:
        """Token ids that the model reads, and how many of them are the text's."""
        prompt = self._asked()
        bodies = self._bodies(texts, "texts")
        if self.answers_pairs:
            prompts = self._bodies(
                [prompt.before + text + prompt.after for text in texts],
                "texts",
                add_special_tokens=True,
            )
        else:
            before, after = (
                self.tokenize([part], add_special_tokens=False)["input_ids"][0] if part else []
                for part in (prompt.before, prompt.after)
            )
            prompts = [[*before, *ids, *after] for ids in bodies]
        for text, ids in zip(texts, prompts):
            if len(ids) > self.max_tokens:
                raise InputError(
                    f"{len(ids):,} tokens are more than the {self.max_tokens:,} that {self.name} reads; "
                    f"rewrite it in parts",
                    argument="texts",
                    row=input_texts.index(text),
                )
        return prompts, [len(ids) for ids in bodies]

    def _own_end(self) -> int | None:
        named = self.prompt.end if self.prompt else ""
        return (
            self.tokenizer.convert_tokens_to_ids([named])[0]
            if named
            else self.tokenizer.eos_token_id
        )

    def _ends(self) -> set[int]:
        """Tokens that end an output."""
        named = getattr(self.model.generation_config, "eos_token_id", None)
        ends = {
            self._own_end(),
            self.tokenizer.eos_token_id,
            *(named if isinstance(named, list) else [named]),
        } - {None}
        if not ends:
            raise InputError(
                f"{self.name} has no token that ends an output; give a prompt with an end"
            )
        return ends

    def _start(self) -> list[int]:
        """The tokens with which the decoder of a sequence-to-sequence model begins."""

        def named(name):
            return next(
                (
                    value
                    for config in (self.model.generation_config, self.model.config)
                    if (value := getattr(config, name, None)) is not None
                ),
                None,
            )

        first = (
            named("decoder_start_token_id"),
            self.tokenizer.bos_token_id,
            self.tokenizer.pad_token_id,
            0,
        )
        return [
            next(token for token in first if token is not None),
            *[token for token in [named("forced_bos_token_id")] if token is not None],
        ]

    def _logits(self, prompts: list[list[int]], outputs: list[list[int]]):
        """(B, T, V): what follows the prompt and each token of an output; right of a shorter one is noise."""
        import torch

        if self.answers_pairs:
            start = self._start()
            begun = _padded([[*start, *ids] for ids in outputs], self._fill(), self.device)[
                "input_ids"
            ]
            read = _padded(prompts, self._fill(), self.device)
            return self.model(**read, decoder_input_ids=begun, use_cache=False).logits[
                :, len(start) - 1 :
            ]
        whole = _padded(
            [[*prompt, *ids] for prompt, ids in zip(prompts, outputs)], self._fill(), self.device
        )
        logits = self.model(**whole, use_cache=False).logits
        longest = max(map(len, outputs)) + 1
        rows = [
            torch.nn.functional.pad(
                row[len(prompt) - 1 : len(prompt) + len(ids)], (0, 0, 0, longest - len(ids) - 1)
            )
            for row, prompt, ids in zip(logits, prompts, outputs)
        ]
        return torch.stack(rows)

    def _score(self, prompts: list[list[int]], outputs: list[list[int]]) -> list:
        logits = self._logits(prompts, [ids[:-1] for ids in outputs]).log_softmax(-1)
        return [logits[row, range(len(ids)), ids] for row, ids in enumerate(outputs)]

    def _fill(self) -> int:
        return next(
            one
            for one in (self.tokenizer.pad_token_id, self.tokenizer.eos_token_id, 0)
            if one is not None
        )

    def _search(
        self,
        prompts: list[list[int]],
        limits: list[int],
        texts: list[str],
        n: int,
        decoding: Decoding,
    ) -> list[np.ndarray]:
        """The n outputs of each text of a batch as an array (n, longest) of tokens, filled up with -1."""
        import torch
        from transformers import GenerationConfig

        prompts = [prompt for prompt in prompts for _ in range(n)]
        limits = [limit for limit in limits for _ in range(n)]
        ends = self._ends()
        if self.answers_pairs:
            inputs = _padded(prompts, self._fill(), self.device)
            begun = [self._start()] * len(prompts)
            inputs["decoder_input_ids"] = torch.tensor(begun, device=self.device)
            start = len(begun[0])
        else:
            inputs = self._read_beginning(prompts) if decoding.width == 1 else None
            inputs = inputs or _padded(prompts, self._fill(), self.device, left=True)
            start = inputs["input_ids"].shape[1]
        processors = []
        if decoding.method == "sample":
            # a text's draws depend on the seed, the text and the sample's number alone
            randoms = [
                np.random.default_rng([decoding.seed, sample, int(digest(text), 16)])
                for text in texts
                for sample in range(n)
            ]
            processors.append(_processor_that_draws(decoding, randoms))
        made = self.model.generate(
            **inputs,
            generation_config=GenerationConfig(
                max_new_tokens=max(limits),
                num_beams=decoding.width,
                early_stopping=decoding.width > 1,
                do_sample=False,
                eos_token_id=sorted(ends),
                pad_token_id=self._fill(),
                decoder_start_token_id=self._start()[0] if self.answers_pairs else None,
            ),
            logits_processor=processors,
            stopping_criteria=[_limit_of_rows(limits, start)],
        )
        outputs = [
            _until_the_end(row, ends, limit) for row, limit in zip(made[:, start:].tolist(), limits)
        ]
        return [_array(outputs[first : first + n]) for first in range(0, len(outputs), n)]

    def _read_beginning(self, prompts: list[list[int]]) -> dict | None:
        """Inputs for `generate` of which the tokens that all prompts begin with, an instruction and its examples, were
        read once; None where that can't be. What fills a row up stands behind them."""
        import torch

        shared = shared_beginning(prompts)
        beginning = prompts[0][:shared]
        cache = read_once(self.model, beginning, len(prompts))
        if cache is None:
            return None
        ends = _padded([row[shared:] for row in prompts], self._fill(), self.device, left=True)
        begun = torch.tensor([beginning], device=self.device).expand(len(prompts), -1)
        begun = {"input_ids": begun, "attention_mask": torch.ones_like(begun)}
        inputs = {name: torch.cat([begun[name], ends[name]], dim=1) for name in ends}
        return inputs | {cache_option(self.model): cache}


def _array(rows: list[list[int]]) -> np.ndarray:
    longest = max(map(len, rows))
    return np.array([[*row, *[-1] * (longest - len(row))] for row in rows])


def _padded(rows: Sequence[list[int]], fill: int, device, left: bool = False) -> dict:
    import torch

    longest = max(map(len, rows))
    gaps = [longest - len(row) for row in rows]
    ids = [
        [fill] * gap + list(row) if left else list(row) + [fill] * gap
        for row, gap in zip(rows, gaps)
    ]
    mask = [
        [0] * gap + [1] * len(row) if left else [1] * len(row) + [0] * gap
        for row, gap in zip(rows, gaps)
    ]
    return {
        "input_ids": torch.tensor(ids, device=device),
        "attention_mask": torch.tensor(mask, device=device),
    }
