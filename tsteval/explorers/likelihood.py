"""Explorers of n-gram models and of fluency scores: the probability of each word, and which sentence reads better."""

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from ..ameliorations import amelioration_1, good_bad_thresholds, log_amelioration_2
from ..core.display import enumerated, number
from ..fluency import CausalLM, UnigramModel, model_tokens, scores_from_logprobs
from ..ngram import RULES, NgramLM
from ..report.charts import odds, probability_bars, word_bars, word_kinds
from ..report.markup import Picture, answered, heading, side_by_side, table, tag
from ..style import load_pairs
from ..text import tokenize
from .controls import choice, cut_note, explorer, first_part, slider, text_field

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def _labelled(lm: NgramLM, words: list[str], length: int) -> list[str]:
    """Words for reading: unknown ones are said to be, and the end of the sentence has a name."""
    vocabulary = set(lm.words)
    return [word if word in vocabulary else f"{word} (unk)" for word in words] + ["(end)"] * (
        length - len(words)
    )


def _shuffled_beside(tokens: list[str], seed: int) -> dict[str, list[str]]:
    """The sentence and a shuffled copy of it, by name."""
    shuffled = [tokens[place] for place in np.random.default_rng(seed).permutation(len(tokens))]
    return {"as written": tokens, f"shuffled ({seed})": shuffled}


def _bars_beside(
    lm: NgramLM, versions: dict[str, list[str]], good: float | None = None, bad: float | None = None
) -> Picture:
    """The probability of each word of each version."""
    bars = []
    for name, words in versions.items():
        probabilities = np.exp(lm.logprobs([words])[0])
        labels = _labelled(lm, words, len(probabilities))
        bars.append(
            heading(name) + probability_bars(labels, probabilities, name, good=good, bad=bad)
        )
    return side_by_side(*bars)


def ngram_picture(
    lm: NgramLM,  # a fitted model
    tokens: list[str],  # a sentence
    seed: int = 0,  # of the shuffled copy
) -> Picture:
    """The probability of each word given the words before it, in a sentence and in a shuffled copy of it."""
    versions = _shuffled_beside(tokens, seed)
    if not tokens:
        return answered("There is no word.", _bars_beside(lm, versions))
    probabilities = np.exp(lm.logprobs([tokens])[0])
    least = int(probabilities.argmin())
    name = _labelled(lm, tokens, len(probabilities))[least]
    written, shuffled = (lm.perplexity([words]) for words in versions.values())
    return answered(
        f"{name} is least likely: {odds(probabilities[least])}. On average a word is as likely as 1 in "
        f"{number(written, 0)} (the perplexity); shuffled, as 1 in {number(shuffled, 0)}.",
        _bars_beside(lm, versions),
    )


def ameliorations_picture(
    lm: NgramLM,  # a fitted model
    tokens: list[str],  # a sentence
    good_share: float = 0.4,  # as for `good_bad_thresholds`
    bad_share: float = 0.2,
    seed: int = 0,  # of the shuffled copy
) -> Picture:
    """Both ameliorations of a sentence and of a shuffled copy; bars of good words are full, of bad ones dashed. Raises:
    as `good_bad_thresholds` and `NgramLM.logprobs`."""
    good, bad = good_bad_thresholds(lm, good_share, bad_share)
    versions = _shuffled_beside(tokens, seed)
    sentences = list(versions.values())
    first = amelioration_1(lm, sentences)
    second = log_amelioration_2(lm, sentences, good=good, bad=bad)
    rows = [
        [name, number(a1), f"{np.exp(a1):.2g}", number(a2)]
        for name, a1, a2 in zip(versions, first, second)
    ]
    header = ["", "A1", "exp(A1)", "log A2"]
    counts = []
    for name, words in versions.items():
        kinds = word_kinds(np.exp(lm.logprobs([words])[0]), good, bad)
        counts.append(
            f"{name}, {(kinds == 'good').sum()} of {len(kinds)} words are familiar (good) and "
            f"{(kinds == 'bad').sum()} strange (bad)"
        )
    return answered(
        f"{'; '.join(counts)}.".capitalize(),
        _bars_beside(lm, versions, good, bad),
        table(header, rows, "A1, the mean log-probability, and A2, from good and bad words"),
    )


_SENTENCE = "The station was opened in 1932 and closed after the war."


def _counted(sentences: list[list[str]] | None):
    """How a sentence is split for a training text, and what fits a model to it, once for each order and smoothing."""
    corpus = sentences if sentences is not None else _teaching_sentences()
    split = tokenize if sentences is not None else lambda text: tokenize(text.lower())
    return split, lru_cache(
        lambda order, smoothing: NgramLM(order, smoothing, unk_cutoff=2).fit(corpus)
    )


def _choices(sentence: str) -> list[dict]:
    return [
        {"sentence": text_field("sentence", sentence)},
        {
            "order": slider("order", 2, 1, 4, 1),
            "smoothing": choice("smoothing", list(RULES), "kneser_ney"),
            "seed": slider("shuffle number", 0, 0, 20, 1),
        },
    ]


def ngram_explorer(
    sentence: str = _SENTENCE,
    sentences: list[list[str]]
    | None = None,  # training text, lists of tokens; None: the teaching pairs in lower case
):
    """An explorer of n-gram probabilities: sentence, order, smoothing, shuffle. Returns a widget."""
    split, fitted = _counted(sentences)

    def draw(sentence, order, smoothing, seed):
        return ngram_picture(fitted(order, smoothing), split(sentence), seed)

    return explorer("How likely is each word?", _choices(sentence), draw)


def ameliorations_explorer(
    sentence: str = _SENTENCE,
    sentences: list[list[str]]
    | None = None,  # training text, lists of tokens; None: the teaching pairs in lower case
):
    """An explorer of both ameliorations: sentence, order, smoothing, shuffle, shares of good and bad. Returns a
    widget."""
    split, fitted = _counted(sentences)
    shares = {
        "good_share": slider("share of good", 0.4, 0.05, 0.6, 0.05),
        "bad_share": slider("share of bad", 0.2, 0.05, 0.4, 0.05),
    }

    def draw(sentence, order, smoothing, seed, good_share, bad_share):
        return ameliorations_picture(
            fitted(order, smoothing), split(sentence), good_share, bad_share, seed
        )

    return explorer("Which words are familiar or strange?", [*_choices(sentence), shares], draw)


def _teaching_sentences() -> list[list[str]]:
    pairs = load_pairs().query("split == 'train'")
    return [tokenize(text.lower()) for text in [*pairs.source, *pairs.target]]


@dataclass
class ScoredText:
    """A text cut into a language model's tokens, with two log-probabilities for each."""

    tokens: list[str]  # T tokens
    logprobs: np.ndarray  # (T,) natural logs, given the tokens before
    unigram_logprobs: np.ndarray  # (T,) natural logs, without context


def _score_text(models: tuple[CausalLM | NgramLM, UnigramModel], text: str) -> ScoredText:
    lm, unigram = models
    if isinstance(lm, NgramLM):
        tokens = tokenize(text.lower())
        return ScoredText(
            tokens,
            lm.logprobs([tokens])[0][: len(tokens)],
            unigram.score(model_tokens(lm, [tokens])[0]),
        )
    scores = lm.token_logprobs([text])[0]
    return ScoredText(
        [text[start:end] for start, end in scores.spans],
        scores.logprobs,
        unigram.score(scores.tokens),
    )


def _surprise_bars(text: ScoredText, name: str) -> "Figure":
    values = np.stack([text.logprobs, text.unigram_logprobs], axis=1)
    return word_bars(
        text.tokens,
        values / -20,
        [f"{inside:.1f}  ({alone:.1f})" for inside, alone in values],
        alt=f"log-probabilities of the tokens of the {name}",
        ends=("0", "-20"),
        axis="log-probability",
    )


_BETTER = {
    "nce": ("NCE", 1),
    "perplexity": ("perplexity", -1),
    "slor": ("SLOR", 1),
    "pen_lp": ("PenLP", 1),
}


def fluency_picture(
    first: ScoredText,
    second: ScoredText,
) -> Picture:
    """Log-probability of each token with and without context; the scores; and which sentence each score prefers."""
    scores = scores_from_logprobs(
        [text.logprobs.sum() for text in (first, second)],
        [text.unigram_logprobs.sum() for text in (first, second)],
        [len(text.tokens) for text in (first, second)],
    )
    rows = []
    choices: dict[str, list[str]] = {}
    for column, (name, direction) in _BETTER.items():
        one, two = scores[column]
        lead = direction * (one - two)
        preferred = "first" if lead > 0 else "second" if lead < 0 else "neither"
        choices.setdefault(preferred, []).append(name)
        rows.append(
            [name, "higher" if direction > 0 else "lower", number(one), number(two), preferred]
        )
    legend = tag(
        "p",
        "The longer a bar, the greater the surprise: full, after the words before it; outlined, and in "
        "brackets, without them.",
    )
    columns = [
        heading(name) + _surprise_bars(text, name)
        for name, text in (("first sentence", first), ("second sentence", second))
    ]
    sides = {"first": "the first sentence", "second": "the second sentence", "neither": "neither"}
    said = [
        f"{'all four scores' if len(choices) == 1 else enumerated(names)} "
        f"prefer{'s' * (len(names) == 1)} {sides[side]}"
        for side, names in choices.items()
    ]
    sentence = "; ".join(said)
    return answered(
        f"{sentence[0].upper()}{sentence[1:]}.",
        table(["score", "better", "first", "second", "prefers"], rows),
        legend,
        side_by_side(*columns),
    )


NGRAM_MODEL = "3-grams of the teaching pairs"


def fluency_explorer(
    first: str = "The bridge was opened to traffic in 1932.",
    second: str = "The bridge were opened traffic to in 1932.",
    models: tuple[str, ...] = (
        "SmolLM2-135M-Instruct",
        NGRAM_MODEL,
    ),  # names for `CausalLM.load`, or `NGRAM_MODEL`
):
    """An explorer of fluency scores: two sentences and the language model. Returns a widget."""
    loaded = lru_cache(maxsize=len(models))(_fluency_models)
    scored = lru_cache(lambda model, text: _score_text(loaded(model), text))
    rows = [
        {"first": text_field("first", first), "second": text_field("second", second)},
        {"model": choice("language model", list(models), models[0])},
    ]

    def draw(first, second, model):
        return cut_note(first, second) + fluency_picture(
            *(scored(model, first_part(text)) for text in (first, second))
        )

    return explorer("Which sentence reads better?", rows, draw, slow=("first", "second", "model"))


def _fluency_models(name: str) -> tuple[CausalLM | NgramLM, UnigramModel]:
    """A language model by name, with the unigram model over its tokens."""
    if name == NGRAM_MODEL:
        sentences = _teaching_sentences()
        counted = NgramLM(order=3, unk_cutoff=2).fit(sentences)
        return counted, UnigramModel.from_sentences(model_tokens(counted, sentences))
    lm = CausalLM.load(name)
    return lm, UnigramModel.from_web_counts(lm)
