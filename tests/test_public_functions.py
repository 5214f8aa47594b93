"""Every exported function that takes texts, given texts as the world has them.

No exception but the documented ones, numbers in their range, and a row's result is its own: neither neighbours nor
order, batch size or threads change it. `pytest --all --fuzz-minutes N` looks for N minutes; what is found goes into
FOUND.
"""

import functools
import gc
import importlib
import inspect
import pkgutil
import re
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import tsteval
from tests.strategies import HOSTILE, LONG, PLAIN
from tests.strategies import rows as any_rows
from tsteval.core.assets import AssetError
from tsteval.core.checks import InputError, InputTypeError
from tsteval.tables.formats import FileError
from tsteval.tables.outputs import prepare_pairs

pytestmark = pytest.mark.filterwarnings("ignore")
ERRORS = {
    error.__name__: error
    for error in (InputError, InputTypeError, FileError, AssetError, ValueError, TypeError)
}


# ---- which names there are

TAKES_TEXTS = re.compile(
    r"(texts?|sources?|outputs?|hypothes[ei]s|references?|sentences?|words?|tokens|documents?|"
    r"inputs?|answers|queries|candidate|pairs|"
    r"beginnings|title|caption|told|left|right|heading|content|instructions?|table)$"
)


def exported():
    """module.name -> function or class, of every module's `__all__`, where it was written."""
    found = {}
    for entry in pkgutil.walk_packages(tsteval.__path__, "tsteval."):
        if entry.name.startswith("tsteval.data") or entry.name.rsplit(".", 1)[1].startswith("_"):
            continue
        module = importlib.import_module(entry.name)
        for name in getattr(module, "__all__", ()):
            thing = getattr(module, name)
            if inspect.isfunction(thing) or inspect.isclass(thing):
                found[f"{thing.__module__.removeprefix('tsteval.')}.{thing.__qualname__}"] = thing
    return found


def with_texts():
    """Functions and methods with an argument that is called what texts are called, and is not declared as something
    else."""
    found = {}
    for name, thing in exported().items():
        methods = (
            {name: thing}
            if inspect.isfunction(thing)
            else {
                f"{name}.{part}": getattr(thing, part)
                for part, value in vars(thing).items()
                if not part.startswith("_")
                and (inspect.isfunction(value) or isinstance(value, classmethod))
            }
        )
        for full, function in methods.items():
            for argument in inspect.signature(function).parameters.values():
                kind = (
                    argument.annotation
                    if isinstance(argument.annotation, str)
                    else getattr(argument.annotation, "__name__", "") + str(argument.annotation)
                )
                declared = argument.annotation is not inspect.Parameter.empty
                if TAKES_TEXTS.match(argument.name) and (
                    not declared or re.search(r"\bstr\b|DataFrame|list|Iterable|Sequence", kind)
                ):
                    found[full] = function
    return found


# ---- tiny models, made here


@functools.cache
def room(name):
    folder = Path(_room().name) / name
    folder.mkdir()
    return folder


@functools.cache
def _room():
    return tempfile.TemporaryDirectory(prefix="tsteval-functions-")


@functools.cache
def classifier():
    from tests.test_tone import save_tiny_classifier
    from tsteval.style import StyleClassifier

    save_tiny_classifier(room("style"), ["subjective", "neutral"])
    return StyleClassifier.load(room("style"))


@functools.cache
def classifier_of_pairs():
    from tests.test_tone import save_tiny_classifier
    from tsteval.style import StyleClassifier

    save_tiny_classifier(room("pairs"), ["lost", "kept"])
    return StyleClassifier.load(room("pairs"))


@functools.cache
def encoder():
    from tsteval.cps import SentenceEncoder

    classifier()
    return SentenceEncoder.load(room("style"))


@functools.cache
def causal():
    from tests.test_rewriting import tiny_module, tiny_tokenizer
    from tsteval.fluency import CausalLM

    tiny_module("causal").save_pretrained(room("causal"))
    tiny_tokenizer().save_pretrained(room("causal"))
    return CausalLM.load(room("causal"))


class Chat:
    """A chat model whose answer follows from the prompt."""

    tag = name = "told"

    def ask(self, prompts, labels):
        from tsteval.people.chat import Answer

        for place, prompt in enumerate(prompts):
            yield (
                place,
                Answer(np.arange(1, len(labels) + 1) * (len(prompt) % 7 + 1) / 200, len(prompt)),
            )

    def count(self, prompts):
        return np.array([len(prompt) for prompt in prompts], dtype=int)


@functools.cache
def judge():
    from tsteval.people.judging import Judge

    return Judge(Chat(), "style")


@functools.cache
def unigram():
    from tsteval.fluency import UnigramModel

    return UnigramModel.from_sentences([["the", "mill", "was", "<unk>"]])


@functools.cache
def rewriter():
    from tsteval.rewriting import Rewriter

    causal()
    return Rewriter.load(room("causal"), prompt="<s>{text} was")


@functools.cache
def lm():
    from tsteval.ngram import NgramLM

    return NgramLM(2, smoothing="witten_bell").fit(
        [["the", "mill", "was", "built", "."], ["the", "old", "mill"], ["a", "cat", "."]]
    )


@functools.cache
def counted_pieces():
    from tsteval.fluency import count_text

    return count_text(["the mill was built", "the old mill", "a cat"], "piece", 2, 40)


@functools.cache
def web():
    from tsteval.ngram import WebNgrams

    return WebNgrams(2, "witten_bell", padding="arpa").fit([["the", "mill", "was"], ["a", "cat"]])


@functools.cache
def lexicon():
    from tsteval.attribution import StyleLexicon

    return StyleLexicon({"the": 0.3, "mill": -1.0, "stunning": 2.0}, 0.1)


# ---- the cases


def resolve(name):
    parts = name.split(":")[0].split(".")
    for place in range(len(parts) - 1, 0, -1):
        try:
            module = importlib.import_module("tsteval." + ".".join(parts[:place]))
        except ModuleNotFoundError:
            continue
        return functools.reduce(getattr, parts[place:], module)
    return None


def is_there(name):
    try:
        return resolve(name) is not None
    except AttributeError:
        return False


@dataclass(frozen=True)
class Case:
    """How a function is called with N pairs of texts, and what holds for its result."""

    call: Callable  # (pairs, **options) -> an array, frame or list of N, or anything if not `alone`
    low: float = -np.inf  # of its numbers
    high: float = np.inf
    alone: bool = True  # whether the result of a row depends on that row alone
    near: float = 0.0  # how far results may be apart, where a model is asked
    batched: bool = False  # whether it takes `batch_size`
    slow: bool = False  # needs fetched models
    longest: int = 200  # characters that hypothesis gives it
    drawn: object = None  # a strategy for its rows, where they are not texts
    also: tuple = field(default=())  # documented errors that the docstring names otherwise


CASES: dict[str, Case] = {}


ALSO: set[str] = set()  # further names that an entry covers, since its call uses them


def case(names, call, low=-np.inf, high=np.inf, **options):
    name, *others = names.split()
    CASES[name] = Case(call, low, high, **options)
    ALSO.update(others)


def of(path):
    module, _, name = path.rpartition(".")
    return functools.reduce(getattr, [name], importlib.import_module(f"tsteval.{module}"))


def firsts(rows):
    return [a for a, _ in rows]


def seconds(rows):
    return [b for _, b in rows]


def each(path, *more, **options):
    return lambda rows: [of(path)(a, *more, **options) for a, _ in rows]


def both(path, **options):
    return lambda rows: [of(path)(a, b, **options) for a, b in rows]


def columns(path, **options):
    return lambda rows, **more: of(path)(firsts(rows), seconds(rows), **options, **more)


def column(path, **options):
    return lambda rows, **more: of(path)(firsts(rows), **options, **more)


def split(text):
    return text.split()


def table(rows):
    return prepare_pairs(
        [{"source": a, "output": b, "reference": a, "target_style": "neutral"} for a, b in rows]
    )


def scores(path, **models):
    """A score function of a metric: its frame."""

    def call(rows):
        from tsteval.models.roles import Models

        return of(path)(table(rows), Models({role: made() for role, made in models.items()})).frame

    return call


def written(text):
    from tsteval.core.files import write_whole

    path = room("written") / "a.txt"
    write_whole(path, text)
    assert path.read_bytes() == text.encode("utf-8", "replace") and [
        entry.name for entry in path.parent.iterdir()
    ] == ["a.txt"]


def reported(rows):
    """Every report of an evaluation whose system is called by the first text."""
    from tsteval.evaluation import evaluate, report_files

    systems = [
        {"system": system, "source": a, "output": b}
        for a, b in rows
        for system in (rows[0][0] or "x", "other")
    ]
    result = evaluate(systems, ["readability"], n_boot=5)
    return [
        text
        for format in ("html", "markdown", "latex", "json")
        for file, text in report_files(result, format).items()
    ]


# a column of strings takes no half pair
def frame(rows):
    return pd.DataFrame({"source": firsts(rows), "target": seconds(rows)}, dtype=object)


case("words.tokenization.tokenize", each("text.tokenize"))
for method in ("intl", "char", "none", "treebank"):
    CASES[f"words.tokenization.tokenize:{method}"] = Case(each("text.tokenize", method))
case("words.tokenization.checked_pairs", columns("words.tokenization.checked_pairs"), alone=False)
case("text.ngrams", lambda rows: [of("text.ngrams")(list(a), 2) for a, _ in rows])
case("text.edited_spans", both("text.edited_spans"))
case(
    "bleu.bleu_statistics",
    columns("bleu.bleu_statistics"),
    0,
)
case(
    "words.matching.reference_count",
    lambda rows: [
        of("words.matching.reference_count")([(a, b), (b,)][: 1 + (a == b)]) or 0 for a, b in rows
    ],
    0,
    2,
)
case("bleu.corpus_bleu", columns("bleu.corpus_bleu"), 0, alone=False)
case("bleu.sentence_bleu", both("bleu.sentence_bleu"), 0, 1)
case("bleu.sentence_bleus", columns("bleu.sentence_bleus"), 0, 1)
for method in ("intl", "char", "none", "treebank"):
    CASES[f"bleu.sentence_bleus:{method}"] = Case(
        columns("bleu.sentence_bleus", tokenize=method), 0, 1
    )
case("bleu.score_bleu", scores("bleu.score_bleu"), 0)
case(
    "rouge.rouge",
    columns("rouge.rouge", kinds=("rouge1", "rouge2", "rougeL", "rougeLsum"), stemmer=True),
    0,
    1,
)
case(
    "rouge.rouge_scores",
    columns("rouge.rouge_scores", kinds=("rouge2", "rougeL", "rougeLsum")),
    0,
    1,
)
case("rouge.score_rouge", scores("rouge.score_rouge"), 0, 1)
case(
    "ameliorations.amelioration_1",
    lambda rows: of("ameliorations.amelioration_1")(lm(), [split(a) for a, _ in rows]),
)
case(
    "ameliorations.amelioration_2 ameliorations.log_amelioration_2",
    lambda rows: of("ameliorations.amelioration_2")(
        lm(), [split(a) for a, _ in rows], good=0.3, bad=0.1
    ),
    0,
)
case(
    "words.ngram_model.NgramModel.text_logprobs",
    lambda rows: lm().text_logprobs(firsts(rows)),
    -np.inf,
    1e-9,
)
case(
    "words.ngram_model.NgramModel.logprobs",
    lambda rows: lm().logprobs([split(a) for a, _ in rows]),
    -np.inf,
    1e-9,
)
case(
    "words.ngram_model.NgramModel.perplexity",
    lambda rows: lm().perplexity([split(a) for a, _ in rows]),
    0,
    alone=False,
)
case(
    "words.ngram_model.NgramModel.prob",
    lambda rows: [
        lm().prob(word, split(b)[:1]) for a, b in rows for word in split(a)[:1] or ["the"]
    ],
    0,
    1 + 1e-9,
)
case(
    "words.ngram_model.NgramModel.fit",
    lambda rows: (
        of("ngram.NgramLM")(3)
        .fit([[*split(a), b] for a, b in rows])
        .logprobs([split(a) for a, _ in rows])
    ),
    -np.inf,
    1e-9,
    alone=False,
)
case(
    "fluency.fluency_scores",
    lambda rows: of("fluency.fluency_scores")(lm(), firsts(rows), unigram()),
)
CASES["fluency.fluency_scores:causal"] = Case(
    lambda rows: of("fluency.fluency_scores")(
        causal(),
        firsts(rows),
        of("fluency.UnigramModel").from_sentences([causal().text_tokens(["the mill"])[0]]),
    ),
    near=1e-4,
)
case("fluency.model_tokens", lambda rows: of("fluency.model_tokens")(lm(), firsts(rows)))
case(
    "fluency.UnigramModel.from_sentences",
    lambda rows: of("fluency.UnigramModel").from_sentences([[*split(a), "<unk>"] for a, _ in rows]),
    alone=False,
)
case(
    "words.unigrams.own_tokens",
    lambda rows: of("words.unigrams.own_tokens")(lm(), firsts(rows), str.split),
)
case(
    "words.unigrams.Unigrams.from_sentences",
    lambda rows: of("words.unigrams.Unigrams").from_sentences(
        [[*split(a), "<unk>"] for a, _ in rows]
    ),
    alone=False,
)
case(
    "words.unigrams.Unigrams.score",
    lambda rows: [unigram().score(split(a)) for a, _ in rows],
    -np.inf,
    0,
)
case(
    "words.word_pieces.WordPieces.train",
    lambda rows: of("words.word_pieces.WordPieces").train([*firsts(rows), "the mill"], 50)(
        "the mill"
    ),
    alone=False,
)
case(
    "fluency.count_text",
    lambda rows: of("fluency.count_text")([*firsts(rows), "the mill"], "piece", 2, 50).scores(
        firsts(rows)
    ),
    alone=False,
)
case("fluency.CountedModel.scores", lambda rows: counted_pieces().scores(firsts(rows)))
case("fluency.wpslor", lambda rows: of("fluency.wpslor")(firsts(rows), counted_pieces()))
case(
    "ngram.WebNgrams.logprobs",
    lambda rows: web().logprobs([split(a) for a, _ in rows]),
    -np.inf,
    1e-9,
)
case("ngram.WebNgrams.text_logprobs", lambda rows: web().text_logprobs(firsts(rows)), -np.inf, 1e-9)
for name in ("ngram", "amelioration_1", "amelioration_2"):
    case(f"ngram_metrics.score_{name}", scores(f"ngram_metrics.score_{name}", language_model=lm))
case(
    "models.causal_lm.CausalLM.token_logprobs",
    lambda rows, **more: [
        found.logprobs for found in causal().token_logprobs(firsts(rows), **more)
    ],
    -np.inf,
    1e-5,
    near=1e-4,
    batched=True,
)
case("models.causal_lm.CausalLM.text_tokens", lambda rows: causal().text_tokens(firsts(rows)))
case(
    "models.causal_lm.task_tokens",
    lambda rows: of("models.causal_lm.task_tokens")(causal(), firsts(rows), seconds(rows)),
)
case(
    "models.classifier.StyleClassifier.predict_proba",
    lambda rows, **more: classifier().predict_proba(firsts(rows), **more),
    0,
    1,
    near=1e-5,
    batched=True,
)
CASES["models.classifier.StyleClassifier.predict_proba:pairs"] = Case(
    lambda rows, **more: classifier().predict_proba(firsts(rows), seconds(rows), **more),
    0,
    1,
    near=1e-5,
    batched=True,
)
case(
    "models.classifier.StyleClassifier.predict_logits",
    lambda rows, **more: classifier().predict_logits(firsts(rows), **more),
    near=1e-4,
    batched=True,
)
case(
    "models.classifier.StyleClassifier.label_probabilities",
    lambda rows, **more: classifier().label_probabilities(firsts(rows), **more),
    0,
    1,
    near=1e-5,
    batched=True,
)
case(
    "models.encoder.SentenceEncoder.encode",
    lambda rows, **more: encoder().encode(firsts(rows), **more),
    near=1e-5,
    batched=True,
)
case(
    "cps.content_preservation",
    lambda rows: of("cps.content_preservation")(
        firsts(rows),
        seconds(rows),
        classifier=classifier(),
        encoder=encoder(),
        attributions=lexicon(),
    )[["cps"]],
    -1 - 1e-5,
    1 + 1e-5,
    near=1e-5,
)
case(
    "cps.complete_attributions",
    lambda rows: of("cps.complete_attributions")(firsts(rows), classifier(), lexicon()),
    alone=False,
)
case("cps.join_word_pieces", lambda rows: [of("cps.join_word_pieces")(split(a)) for a, _ in rows])
case(
    "attribution.integrated_gradients",
    lambda rows, **more: [
        found.word_scores
        for found in of("attribution.integrated_gradients")(
            classifier(), firsts(rows), steps=4, **more
        )
    ],
    -100,
    100,
    near=1e-4,
    longest=60,
)
case(
    "attribution.attribute",
    lambda rows: [
        found.word_scores
        for found in of("attribution.attribute")(classifier(), firsts(rows), method="occlusion")
    ],
    -1.001,
    1.001,
    near=1e-4,
    longest=60,
)
case(
    "attribution.StyleLexicon.attribute",
    lambda rows: [found.word_scores for found in lexicon().attribute(firsts(rows))],
)
case("attribution.edited_words", both("attribution.edited_words"))
case(
    "attribution.merge_words",
    lambda rows: [
        of("attribution.merge_words")(
            a, [(place, place + 1) for place in range(len(a))], np.ones(len(a))
        )
        for a, _ in rows
    ],
)
case(
    "attribution.style_lexicon",
    lambda rows: of("attribution.style_lexicon")(frame([*rows, ("the stunning mill", "the mill")])),
    alone=False,
)
case("overlap.chrf", columns("overlap.chrf"), 0, 1)
CASES["overlap.chrf:words"] = Case(columns("overlap.chrf", word_order=2, whitespace=True), 0, 1)
case("overlap.chrf_statistics", columns("overlap.chrf_statistics"), 0)
case("overlap.corpus_chrf", columns("overlap.corpus_chrf"), 0, 1, alone=False)
case("overlap.meteor", columns("overlap.meteor"), 0, 1)
case("words.word_alignment.one_form", each("words.word_alignment.one_form"))
case(
    "words.word_alignment.align_words",
    lambda rows: [of("words.word_alignment.align_words")(split(a), split(b)) for a, b in rows],
)
case(
    "alignment.word_movers_distance",
    lambda rows: of("alignment.word_movers_distance")(
        firsts(rows), seconds(rows), encoder=encoder()
    ),
    -1e-6,
    2.01,
    near=1e-4,
    longest=60,
)
case(
    "models.alignment.nearest_texts",
    lambda rows: of("models.alignment.nearest_texts")(
        firsts(rows), [*seconds(rows), "the mill"], encoder=encoder()
    ),
    0,
    alone=False,
    longest=60,
)
case(
    "alignment.bert_score",
    lambda rows, **more: of("alignment.bert_score")(
        firsts(rows), seconds(rows), encoder=encoder(), layer=1, **more
    ),
    -1.001,
    1.001,
    near=1e-4,
    batched=True,
    longest=60,
)
case(
    "alignment.mover_score",
    lambda rows: of("alignment.mover_score")(
        firsts(rows), seconds(rows), encoder=encoder(), layer=1
    ),
    -2.01,
    2.01,
    near=1e-4,
    longest=60,
)
case(
    "alignment.score_baseline",
    lambda rows: of("alignment.score_baseline")(
        ["the mill", "a cat", *firsts(rows)], encoder=encoder(), layer=1
    ),
    alone=False,
    longest=60,
)
case("overlap.score_chrf", scores("overlap.score_chrf"))
case("overlap.score_meteor", scores("overlap.score_meteor"), 0, 1)
case(
    "explorers.content.overlap_picture",
    lambda rows: [of("explorers.content.overlap_picture")(a, b) for a, b in rows],
    longest=40,
)
case(
    "explorers.content.alignment_picture",
    lambda rows: [
        of("explorers.content.alignment_picture")(a, b, encoder=encoder(), layer=1) for a, b in rows
    ],
    longest=40,
)
case("sti.score_intensity", scores("sti.score_intensity", style=classifier), -1, 1, near=1e-5)
case(
    "tables.pairs.labelled_sentences",
    lambda rows: of("tables.pairs.labelled_sentences")(frame(rows)),
    alone=False,
)
case(
    "tables.pairs.text_sha256",
    lambda rows: of("tables.pairs.text_sha256")(firsts(rows)),
    alone=False,
)
case("surface.find_links", each("surface.find_links"))
case("surface.reading_counts", column("surface.reading_counts", syllables="rule"), 0)
case("surface.readability", column("surface.readability", syllables="rule"), -np.inf, 206.835)
case("tone.character_ngrams", each("tone.character_ngrams"))
case("tone.begins_small", column("tone.begins_small"), 0, 1)
case("answers.keyword_avoidance", column("answers.keyword_avoidance"), 0, 1)
case(
    "models.classifier.label_probability",
    lambda rows, **more: of("models.classifier.label_probability")(
        classifier(), "neutral", firsts(rows), **more
    ),
    0,
    1,
    near=1e-5,
    batched=True,
)
case("tone.mean_logprobs", lambda rows: of("tone.mean_logprobs")(causal(), firsts(rows)), near=1e-4)
case("tone.toxicity", column("tone.toxicity"), 0, 1, slow=True)
case("tone.formality", column("tone.formality"), 0, 1, slow=True, near=1e-4)
case("tone.acceptability", column("tone.acceptability"), 0, 1, slow=True, near=1e-3)
case("answers.avoided_answer", columns("answers.avoided_answer"), 0, 1, slow=True, near=1e-4)
case(
    "tone.formality_features",
    lambda rows: [
        of("tone.formality_features")(next(iter(of("words.english.parse")([a]).values())))
        for a, _ in rows
    ],
    0,
    slow=True,
)
case("grounded.grounded_in_context", columns("grounded.grounded_in_context"), 0, 1, slow=True)
case("answers.relevance", columns("answers.relevance"), 0, 1, slow=True, near=1e-3)
for name in (
    "grounded.find_facts",
    "grounded.fact_spans",
    "words.english.content_words",
    "words.english.names_in",
):
    case(
        name,
        lambda rows, name=name: [of(name)(of("words.english.parse")([a])[a]) for a, _ in rows],
        slow=True,
        alone=False,
    )
case(
    "grounded.mark_facts",
    lambda rows: [of("grounded.mark_facts")(a, b) for a, b in rows],
    slow=True,
    alone=False,
)
case("words.english.plain_words", each("words.english.plain_words"))
case("words.english.plain_name", each("words.english.plain_name"))
case("words.english.has_words", column("words.english.has_words"), 0, 1)
case(
    "words.english.parsable_pairs",
    lambda rows: list(zip(*of("words.english.parsable_pairs")(firsts(rows), seconds(rows)))),
)
case("words.english.parsable", column("words.english.parsable"))
case(
    "words.english.parsable_pairs",
    lambda rows: [*zip(*of("words.english.parsable_pairs")(firsts(rows), seconds(rows)))],
)
case("words.english.plain_words", each("words.english.plain_words"))
case("words.english.plain_name", each("words.english.plain_name"))
case("words.english.parse", column("words.english.parse"), slow=True, alone=False)
case(
    "words.english.count_syllables",
    lambda rows: of("words.english.count_syllables")(firsts(rows), "rule"),
    alone=False,
)
case("words.english.syllables_by_rule", each("words.english.syllables_by_rule"), 1)
case("words.quantities.find_quantities", each("words.quantities.find_quantities"))
case("words.quantities.number_value", each("words.quantities.number_value"), also=(InputError,))
case(
    "properties.calculate_properties",
    lambda rows: of("properties.calculate_properties")(firsts(rows), properties=["readability"]),
)
case(
    "evaluation.evaluate",
    lambda rows: of("evaluation.evaluate")(
        table(rows), ["bleu", "rouge", "chrf", "meteor", "readability"], n_boot=5
    ).per_pair[["bleu", "rougeL", "chrf", "meteor"]],
    0,
    1,
)
case("rewriting.Copy.rewrite", lambda rows: of("rewriting.Copy")().rewrite(firsts(rows)))
case(
    "rewriting.Delete.rewrite",
    lambda rows: of("rewriting.Delete")(classifier(), attributions=lexicon()).rewrite(firsts(rows)),
)
case(
    "rewriting.Rewriter.rewrite",
    lambda rows, **more: rewriter().rewrite(firsts(rows), longest=6, **more),
    batched=True,
    longest=60,
)
case(
    "models.generation.Generator.samples",
    lambda rows: rewriter().samples(firsts(rows), 2, method="sample", longest=4),
    longest=60,
)
case(
    "models.generation.Generator.output_scores",
    lambda rows: [
        found.logprobs for found in rewriter().output_scores(firsts(rows), seconds(rows))
    ],
    -np.inf,
    1e-5,
    near=1e-4,
    longest=60,
)
case(
    "models.generation.Generator.next_tokens",
    lambda rows: [of("models.generation.Generator").next_tokens(rewriter(), a, b) for a, b in rows],
    near=1e-4,
    longest=60,
)
case(
    "models.causal_lm.next_words",
    lambda rows: of("models.causal_lm.next_words")(causal(), firsts(rows)),
    near=1e-4,
    alone=False,
    longest=60,
)
case(
    "people.prompts.fenced people.prompts.rating_prompts people.prompts.choice_prompts",
    lambda rows: [of("people.prompts.fenced")({"source": a, "output": b}) for a, b in rows],
)
case(
    "people.judging.Judge.score",
    lambda rows: judge().score(firsts(rows), seconds(rows), "formal")[["expected", "label_mass"]],
    0,
    5,
)
case(
    "people.judging.Judge.compare",
    lambda rows: judge().compare(firsts(rows), firsts(rows), seconds(rows), "formal")[
        ["first_share", "shown_first"]
    ],
    0,
    1,
    near=1e-9,
)
case(
    "people.judging.Judge.cost",
    lambda rows: judge().cost(firsts(rows), seconds(rows), "formal"),
    alone=False,
)
case("rewriting.tidied", each("rewriting.tidied"))
case(
    "rewriting.learn_edits rewriting.LexiconRewriter.learn",
    lambda rows: of("rewriting.learn_edits")(frame(rows)),
    alone=False,
)
case(
    "rewriting.LexiconRewriter.rewrite",
    lambda rows: (
        of("rewriting.LexiconRewriter")
        .learn(frame([("the stunning mill", "the mill")]))
        .rewrite(firsts(rows))
    ),
)
case("words.matching.distinct_pairs", columns("words.matching.distinct_pairs"), alone=False)
case(
    "words.matching.letters_as_numbers",
    column("words.matching.letters_as_numbers", whitespace=True),
    alone=False,
)
case("overlap.words_and_marks", each("overlap.words_and_marks"))
case(
    "models.alignment.word_heaps",
    lambda rows: of("models.alignment.word_heaps")([split(a) for a, _ in rows]),
    alone=False,
)
case(
    "models.alignment.word_vectors",
    lambda rows: of("models.alignment.word_vectors")(encoder(), firsts(rows)),
    near=1e-5,
    longest=60,
)
case(
    "models.alignment.idf_weights models.alignment.find_weights",
    lambda rows: of("models.alignment.idf_weights")(firsts(rows), encoder()),
    alone=False,
)
case("report.flows.counted_picture", both("report.flows.counted_picture", order=3))
case(
    "report.flows.matched_picture",
    lambda rows: [of("report.flows.matched_picture")(encoder(), a, b, 1) for a, b in rows],
    longest=40,
)
case(
    "report.flows.moved_picture",
    lambda rows: [
        of("report.flows.moved_picture")(encoder(), split(a) or ["the"], split(b) or ["the"])
        for a, b in rows
    ],
    longest=40,
)
case(
    "words.matching.encode",
    lambda rows: of("words.matching.encode")(firsts(rows), split),
    alone=False,
)
case("core.checks.check_texts", column("core.checks.check_texts"))
case("core.checks.tokenizable", column("core.checks.tokenizable"))
case("tables.outputs.in_one_form", column("tables.outputs.in_one_form"))
case("core.checks.check_references", columns("core.checks.check_references"), alone=False)
case("core.display.displayable", each("core.display.displayable"))
case("report.markup.shortened", each("report.markup.shortened"))
case("report.markup.isolated", each("report.markup.isolated"))
case("report.markup.heading", each("report.markup.heading"))
case("report.markup.tag", lambda rows: [of("report.markup.tag")("b", a, title=b) for a, b in rows])
case("report.markup.framed report.markup.side_by_side", both("report.markup.framed"))
case(
    "report.markup.svg report.markup.label",
    lambda rows: [
        of("report.markup.svg")(9, 9, a, of("report.markup.label")(1, 1, b)) for a, b in rows
    ],
)
case(
    "report.markup.table",
    lambda rows: of("report.markup.table")(["a", "b"], rows, rows[0][0]),
    alone=False,
)
case(
    "report.words.coloured_words",
    lambda rows: [
        of("report.words.coloured_words")([a, b], None, [0.5, np.nan], title=a) for a, b in rows
    ],
)
case(
    "report.words.edited_pair report.words.edited_text",
    lambda rows: [
        of("report.words.edited_pair")(
            a, b, *of("text.edited_spans")(a, b), references=[a], title=b
        )
        for a, b in rows
    ],
)
case(
    "report.charts.word_bars",
    lambda rows: [
        of("report.charts.word_bars")([a, b], [0.1, 0.9], [b, a], told=a) for a, b in rows
    ],
)
case(
    "report.words.linked_words",
    lambda rows: [
        of("report.words.linked_words")([a], [b], {(0, 0): 0.5}, told=a) for a, b in rows
    ],
)
case("explorers.controls.first_part", each("explorers.controls.first_part"))
case("explorers.controls.cut_note", both("explorers.controls.cut_note"))
case("report.galleries.new_facts", both("report.galleries.new_facts"))
case("core.display.spreadsheet_safe", each("core.display.spreadsheet_safe"))
case(
    "people.sheets.plan_ratings",
    lambda rows: of("people.sheets.sheet_csv")(
        *(lambda plan: (plan, plan.sheets[0]))(of("people.sheets.plan_ratings")(table(rows)))
    ),
    alone=False,
)
case("people.sheets.parse_scale", each("people.sheets.parse_scale"), also=(InputError,))
case("report.findings.plain_records", lambda rows: of("report.findings.plain_records")(frame(rows)))
case("people.estimates.shown_texts", lambda rows: of("people.estimates.shown_texts")(frame(rows)))
case("tables.outputs.prepare_pairs", lambda rows: table(rows)[["source", "output"]])
case(
    "tables.outputs.as_frame",
    lambda rows: of("tables.outputs.as_frame")([{"source": a, "output": b} for a, b in rows]),
)
case("report.flows.is_content", each("report.flows.is_content"), 0, 1)
case(
    "words.ngram_files.check_arpa_words",
    lambda rows: [of("words.ngram_files.check_arpa_words")([a, b]) for a, b in rows],
    also=(InputError,),
)
case("cli.app.literal", each("cli.app.literal"))
case("cli.app.meant", lambda rows: [of("cli.app.meant")(a, [b]) for a, b in rows])
case("cli.request.metric_names", each("cli.request.metric_names"), also=(InputError,))
case(
    "explorers.words.score_factors",
    lambda rows: [of("explorers.words.score_factors")(a, [b], [0.5, 0.5]) for a, b in rows],
)
case(
    "explorers.words.bleu_picture",
    lambda rows: [of("explorers.words.bleu_picture")(a, [b], [0.5, 0.5]) for a, b in rows],
)
case("explorers.words.match_picture", both("explorers.words.match_picture", order=2))
case(
    "explorers.words.sums_picture",
    lambda rows: [of("explorers.words.sums_picture")([a], [b]) for a, b in rows],
)
case(
    "explorers.likelihood.ameliorations_picture",
    lambda rows: [
        of("explorers.likelihood.ameliorations_picture")(lm(), split(a)) for a, _ in rows
    ],
)
case(
    "explorers.likelihood.ngram_picture",
    lambda rows: [of("explorers.likelihood.ngram_picture")(lm(), split(a)) for a, _ in rows],
    also=(InputError,),
)
case(
    "explorers.style.read_costs",
    lambda rows: [of("explorers.style.read_costs")(a, 2) for a, _ in rows],
    0,
    also=(InputError,),
)
case(
    "core.metric.describe_setting core.metric.sign core.metric.digest",
    lambda rows: [
        (of("core.metric.sign")(a, x=b), of("core.metric.digest")(a, b)) for a, b in rows
    ],
)

case("core.files.write_whole", lambda rows: [written(a) for a, _ in rows])
case(
    "explorers.controls.download_link",
    lambda rows: [of("explorers.controls.download_link")("a.csv", a, b) for a, b in rows],
)
case(
    "report.page.render evaluation.report_files report.page.render_page report.page.render_markdown "
    "report.page.render_latex",
    reported,
    alone=False,
    longest=60,
    also=(InputError,),
)
case(
    "content.word_links",
    lambda rows, **more: [
        found.support
        for found in of("content.word_links")(
            firsts(rows), seconds(rows), [["Repeat this:"] * len(rows)], lm=causal(), **more
        )
    ],
    near=1e-4,
    batched=True,
    longest=60,
)
case(
    "content.shared_words",
    lambda rows: np.column_stack(of("content.shared_words")(firsts(rows), seconds(rows))),
    0,
    1,
)
case(
    "content.style_aware_content",
    lambda rows: of("content.style_aware_content")(
        firsts(rows),
        seconds(rows),
        "formal",
        lm=causal(),
        encoder=encoder(),
        classifier=classifier_of_pairs(),
    ),
    near=1e-3,
    longest=60,
)
case(
    "alignment.score_bert",
    scores("alignment.score_bert", encoder=encoder),
    near=1e-4,
    longest=60,
    alone=False,
)
case(
    "alignment.score_wmd",
    scores("alignment.score_wmd", encoder=encoder),
    -1e-6,
    2.01,
    near=1e-4,
    longest=60,
)
case(
    "rewriting.Rerank.rewrite rewriting.Rerank.candidates",
    lambda rows: of("rewriting.Rerank")(
        rewriter(), 2, 0, classifier(), encoder(), causal()
    ).rewrite(firsts(rows)),
    near=1e-4,
    longest=40,
)
case(
    "tone.formality_evidence",
    lambda rows: of("tone.formality_evidence")(classifier(), firsts(rows)),
    slow=True,
    near=1e-4,
)
case(
    "style.removed_words",
    lambda rows: of("style.removed_words")(frame(rows)),
    0,
    slow=True,
    alone=False,
)
case(
    "style.source_words",
    lambda rows: of("style.source_words")(frame(rows))[["removed"]].astype(int),
    0,
    1,
    slow=True,
    alone=False,
)
case(
    "style.parts_of_speech",
    lambda rows: of("style.parts_of_speech")(frame(rows)),
    slow=True,
    alone=False,
)
case(
    "answers.closest_phrases models.encoder.WordReader.phrase_vectors",
    lambda rows: of("answers.closest_phrases")(
        firsts(rows), seconds(rows), of("models.encoder.WordReader").load()
    ),
    slow=True,
    alone=False,
)
case(
    "report.flows.weakest_words",
    lambda rows: [
        of("report.flows.weakest_words")(
            a, of("content.word_links")([a], [b], [["Repeat this:"]], lm=causal())[0]
        )
        for a, b in rows
    ],
    longest=60,
    near=1e-4,
)

case(
    "report.words.mark_ngrams",
    lambda rows: [of("report.words.mark_ngrams")(split(a), [split(b)], 1) for a, b in rows],
)
case(
    "report.page.latex_lines",
    lambda rows: [of("report.page.latex_lines")(a, [a, b], [[b, a], ["x", b]]) for a, b in rows],
)
case(
    "report.words.mark_common",
    lambda rows: [of("report.words.mark_common")(split(a), split(b)) for a, b in rows],
)
case(
    "report.words.chips",
    lambda rows: [of("report.words.chips")(split(a), ["missed"] * len(split(a))) for a, _ in rows],
)
case(
    "explorers.words.rouge_picture",
    lambda rows: [of("explorers.words.rouge_picture")(a, b, "rougeL", True) for a, b in rows],
)
case(
    "report.terminal.csv_text",
    lambda rows: of("report.terminal.csv_text")(frame(rows), True),
    alone=False,
)
case("core.display.printable", each("report.terminal.printable", 40))
case(
    "tables.tables.choose_rows tables.tables.choose_columns",
    lambda rows: of("tables.tables.choose_rows")(frame(rows), None, 2),
    alone=False,
)


# ---- and functions of numbers that the design promises, with rows of their own


def distributions(classes=3):
    return st.lists(st.floats(0, 1), min_size=classes, max_size=classes).map(
        lambda row: (
            [x / sum(row) for x in row] if sum(row) > 1e-3 else [1.0] + [0.0] * (classes - 1)
        )
    )


def vectors(size=3):
    return st.lists(st.floats(-1e6, 1e6), min_size=size, max_size=size)


def of_pairs(one):
    return st.lists(st.tuples(one, one), min_size=1, max_size=5)


counts = st.lists(st.integers(0, 40), min_size=4, max_size=4).map(lambda n: sorted(n, reverse=True))
statistics = st.tuples(counts, counts, st.integers(0, 60)).map(
    lambda row: [*map(min, row[0], row[1]), *row[1], row[1][0], row[2]]
)
case(
    "sti.earth_movers_distance",
    columns("sti.earth_movers_distance"),
    0,
    1 + 1e-6,
    drawn=of_pairs(distributions()),
    near=1e-9,
)
CASES["sti.earth_movers_distance:cost"] = Case(
    columns("sti.earth_movers_distance", cost=[[0, 1, 2], [1, 0, 1], [2, 1, 0]]),
    0,
    2 + 1e-6,
    drawn=of_pairs(distributions()),
    near=1e-9,
)
case(
    "sti.transport_plan",
    columns("sti.transport_plan"),
    0,
    1 + 1e-6,
    drawn=of_pairs(distributions()),
    near=1e-9,
)
case(
    "sti.style_transfer_intensity",
    columns("sti.style_transfer_intensity", target=1),
    -1 - 1e-6,
    1 + 1e-6,
    drawn=of_pairs(distributions()),
    near=1e-9,
)
case(
    "sti.normalized_intensity",
    columns("sti.normalized_intensity", target=1),
    -1 - 1e-6,
    1 + 1e-6,
    drawn=of_pairs(distributions()),
    near=1e-9,
)
case(
    "sti.intensity_table",
    columns("sti.intensity_table", target=1),
    -10,
    10,
    drawn=of_pairs(distributions()),
    near=1e-9,
)
case("cps.cosine", columns("cps.cosine"), -1 - 1e-6, 1 + 1e-6, drawn=of_pairs(vectors()), near=1e-6)
case(
    "bleu.bleu_from_statistics",
    lambda rows: of("bleu.bleu_from_statistics")(np.array(firsts(rows))),
    0,
    1 + 1e-9,
    drawn=of_pairs(statistics),
    near=1e-12,
)
case(
    "bleu.smoothed_precisions",
    lambda rows: of("bleu.smoothed_precisions")(np.array(firsts(rows))),
    0,
    1 + 1e-9,
    drawn=of_pairs(statistics),
    near=1e-12,
)
case(
    "bleu.brevity_penalty",
    lambda rows: of("bleu.brevity_penalty")(np.array(firsts(rows)), np.array(seconds(rows))),
    0,
    1,
    drawn=of_pairs(st.integers(0, 10**6)),
)
case(
    "fluency.scores_from_logprobs",
    lambda rows: of("fluency.scores_from_logprobs")(firsts(rows), seconds(rows), [3] * len(rows)),
    drawn=of_pairs(st.floats(-1e6, 0)),
    near=1e-12,
)
case(
    "people.coefficients.correlation",
    lambda rows: [
        getattr(
            of("people.coefficients.correlation")(
                [*firsts(rows), 1, 2, 3, 4], [*seconds(rows), 2, 1, 4, 3], n_boot=20
            ),
            name,
        )
        for name in ("value", "low", "high")
    ],
    -1 - 1e-6,
    1 + 1e-6,
    alone=False,
    drawn=of_pairs(st.floats(-1e6, 1e6)),
)
case(
    "agreement.williams_test",
    lambda rows: [of("agreement.williams_test")(a, b, 0.5, 30)[1] for a, b in rows],
    0,
    1,
    drawn=of_pairs(st.floats(-1, 1)),
    near=1e-12,
)
case(
    "agreement.pairwise_accuracy",
    lambda rows: of("agreement.pairwise_accuracy")([*firsts(rows), 0, 1], [*seconds(rows), 0, 1]),
    0,
    1,
    alone=False,
    drawn=of_pairs(st.floats(-1e6, 1e6)),
)
case(
    "ameliorations.good_bad_thresholds",
    lambda rows: of("ameliorations.good_bad_thresholds")(lm(), *sorted(rows[0], reverse=True)),
    alone=False,
    drawn=of_pairs(st.floats(0, 1)),
)
case(
    "cps.mask_style",
    lambda rows: [
        of("cps.mask_style")(lexicon().attribute([a])[0], 0.3, "remove", "word") for a, _ in rows
    ],
)

# an entry whose function is not there is left out: the function's new name then has no entry, and the test below says
# so
CASES = {name: it for name, it in CASES.items() if is_there(name)}

FORM = "a form of ipywidgets around a picture that is here; tests/browser types into it"
TABLE = "takes a table that another function made of checked texts, or numbers"
INSIDE = "the inside of a function that is here, called with what that one has checked"
TRAINS = "trains a model; its texts pass `check_texts` in test_style.py and test_training_run.py"
EXEMPT = {
    "explorers.content.content_explorer": FORM,
    "explorers.content.overlap_explorer": FORM,
    "explorers.content.alignment_explorer": FORM,
    "explorers.words.bleu_explorer": FORM,
    "explorers.words.match_explorer": FORM,
    "explorers.words.sums_explorer": FORM,
    "explorers.content.mask_explorer": FORM,
    "explorers.likelihood.ngram_explorer": FORM,
    "explorers.likelihood.ameliorations_explorer": FORM,
    "explorers.style.style_explorer": FORM,
    "ngram_metrics.check_ngram_options": "options of a file; test_ngram_metrics.py",
    "ngram_metrics.ngram_model": "a model of a file; test_ngram_metrics.py",
    "content.content_evidence": INSIDE,
    "content.score_content": INSIDE,
    "core.metric.compared_texts": TABLE,
    "models.causal_lm.CausalLM.next_logprobs": "tokens: test_causal_lm.py",
    "judge.score_judge": TABLE,
    "judge.check_judge": TABLE,
    "judge.judge_cost": TABLE,
    "models.causal_lm.chat_prompt": "an instruction, which is the caller's own",
    "words.matching.ngram_triples": INSIDE,
    "words.ngram_model.NgramModel.set_tables": INSIDE,
    "words.ngram_counts.count_sentences": INSIDE,
    "words.ngram_counts.check_sentence_types": INSIDE,
    "words.ngram_counts.check_stream": INSIDE,
    "words.ngram_counts.encode_sentences": INSIDE,
    "words.ngram_counts.WordFinder.find_tokens": INSIDE,
    "words.ngram_counts.WordFinder.split": INSIDE,
    "words.ngram_counts.look_up": INSIDE,
    "words.ngram_counts.refuse_tokens": INSIDE,
    "words.ngram_model.replace_rare": INSIDE,
    "words.ngram_files.write_arpa": INSIDE,
    "report.flows.lowest_of_words": INSIDE,
    "core.metric.Metric.check": INSIDE,
    "core.metric.Metric.check_options": INSIDE,
    "cli.evaluate.print_table": TABLE,
    "cli.app.option": "declares a field; test_options.py",
    "runs.run.run_folder": "a folder; test_run.py",
    "report.charts.probability_bars": INSIDE,
    "runs.scoring.score_metrics": TABLE,
    "runs.scoring.witnesses": TABLE,
    "runs.row_store.KeptRows.keys": TABLE,
    "tables.data_check.take_rows": "tables of any kind; test_data_check.py",
    "people.study.with_keys": TABLE,
    "people.pages.conclusions": TABLE,
    "people.pages.told_study": TABLE,
    "training.calibration.calibrate": TRAINS,
    "training.calibration.expected_calibration_error": TABLE,
    "people.ranking.forest": TABLE,
    "people.raters.raters_alpha": TABLE,
    "people.raters.reliability": TABLE,
    "training.words.mark_edits": "numbers of tokens; test_words.py",
    "training.words.word_precision": TABLE,
    "people.sheets.sample_outputs": TABLE,
    "training.errors.doubtful_pairs": TABLE,
    "models.classifier.StyleClassifier.token_scores": "a judge that points at words; test_word_scores.py makes one",
    "training.logistic.fit_head": TRAINS,
    "people.pareto.joint_scores": TABLE,
    "tables.pairs.twins": TABLE,
    "report.charts.plot_accuracy_by_length": TABLE,
    "training.loop.train_on_sentences": TRAINS,
    "style.train_classifier": TRAINS,
    "training.cards.figures_of": TABLE,
    "training.folds.deal_folds": TABLE,
    "training.folds.choose_method": TRAINS,
    "training.folds.probabilities_in_folds": TRAINS,
    "training.logistic.head_in_folds": TRAINS,
    "training.cards.measure_style": TRAINS,
    "answers.evaluate_avoidance": TABLE,
    "words.word_alignment.count_chunks": TABLE,
    "training.errors.evaluate_classifier": TABLE,
    "training.errors.score_sentences": TABLE,
    "surface.flesch_reading_ease": TABLE,
    "rewriting.FillIn.rewrite": "needs a model that fills in, which is not fetched; test_rewriting.py makes one",
    "explorers.controls.explorer": FORM,
    "explorers.properties.properties_explorer": FORM,
    "explorers.words.rouge_explorer": FORM,
    "explorers.properties.property_records": "asks each property, all of which are here",
    "training.style_check.pair_order": TABLE,
    "training.style_check.style_notes": TABLE,
    "training.style_check.review_style": TABLE,
    "core.metric.Metric.reviewed": TABLE,
    "runs.parts.SourceHash.of": INSIDE,
    "runs.run.score_table": INSIDE,
    "runs.run._stored_table": INSIDE,
    "runs.scoring.joined": INSIDE,
    "runs.scoring.checked_options": INSIDE,
    "tables.tables.open_bytes": "bytes: tests/fuzz",
    "tables.tables.open_lines": "files: test_tables.py",
    "scale.evaluate_table": "a file: test_scale.py",
    "surface.link_validity": "connects to what the texts name; test_surface.py serves it",
}


def test_every_function_that_takes_texts_has_an_entry():
    wanted = set(with_texts())
    given = {name.split(":")[0] for name in CASES} | ALSO | set(EXEMPT)
    assert not wanted - given, "no entry for " + ", ".join(sorted(wanted - given))


# ---- what holds for all of them


def documented(name):
    """The errors that a function's docstring names."""
    told = re.search(r"Raises:(.*?)(Source:|\Z)", inspect.getdoc(resolve(name)) or "", re.S)
    found = [ERRORS[word] for word in re.findall(r"\w+", told[1]) if word in ERRORS] if told else []
    return (
        *found,
        *([InputError] if told and re.search(r"\bas\b", told[1]) else []),
        *CASES[name].also,
    )


def parts(result):
    """The rows of a result, each as a list of what it holds."""
    if isinstance(result, pd.DataFrame):
        return result.to_numpy(dtype=object).tolist()
    if isinstance(result, (np.ndarray, pd.Series)):
        return result.tolist()
    return list(result) if isinstance(result, (list, tuple)) else [result]


def numbers(result):
    """All numbers in a result, however deep."""
    if isinstance(result, pd.DataFrame):
        result = result.select_dtypes("number").to_numpy()
    if isinstance(result, pd.Series):
        result = result.to_numpy()
    if isinstance(result, np.ndarray):
        return [float(x) for x in np.ravel(result)] if result.dtype.kind in "fiub" else []
    if isinstance(result, (bool, int, float, np.number)):
        return [float(result)]
    if isinstance(result, (list, tuple)):
        return [x for part in result for x in numbers(part)]
    if isinstance(getattr(result, "score", None), float):
        return [result.score]
    return []


def same(one, other, near):
    if isinstance(one, (list, tuple, np.ndarray)):
        return (
            isinstance(other, (list, tuple, np.ndarray))
            and len(one) == len(other)
            and all(same(a, b, near) for a, b in zip(one, other))
        )
    if isinstance(one, dict):
        return isinstance(other, dict) and same([*one.items()], [*other.items()], near)
    if isinstance(one, (float, np.floating)) or isinstance(other, (float, np.floating)):
        return (
            one == other
            or (one != one and other != other)
            or abs(one - other) <= near * max(1, abs(one))
        )
    if isinstance(getattr(one, "score", None), float):
        return same(one.score, other.score, near)
    return one == other


def answer(name, rows, **options):
    """The result, or the documented error's kind."""
    try:
        return CASES[name].call(rows, **options)
    except documented(name) as error:
        assert str(error).strip(), "an error without a word"
        return type(error)


def check(name, rows):
    it = CASES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole = answer(name, rows)
        if isinstance(whole, type):
            return  # refused, as documented
        outside = [
            x for x in numbers(whole) if not (x != x or it.low - 1e-9 <= x <= it.high + 1e-9)
        ]
        assert not outside, f"out of range: {outside[:3]}"
        if not it.alone:
            return
        whole = parts(whole)
        assert len(whole) == len(rows)
        for place, row in enumerate(rows):
            found = answer(name, [row])
            assert not isinstance(found, type) and same(parts(found)[0], whole[place], it.near), (
                f"row {place} alone gives another result"
            )
        assert same(parts(answer(name, rows[::-1]))[::-1], whole, it.near), (
            "the order of the rows matters"
        )
        if it.batched:
            for size in (1, 3):
                assert same(parts(answer(name, rows, batch_size=size)), whole, it.near), (
                    f"batch_size={size} gives another result"
                )


TEXTS = [name for name in CASES if CASES[name].drawn is None]


def named(cases=TEXTS, slow=()):
    return pytest.mark.parametrize(
        "name",
        [
            pytest.param(name, marks=[pytest.mark.slow] if CASES[name].slow or name in slow else [])
            for name in cases
        ],
    )


@named()
def test_plain_texts_are_never_refused(name):
    refusing = {
        "words.quantities.number_value",
        "people.sheets.parse_scale",
        "cli.request.metric_names",
        "explorers.style.read_costs",
        "words.ngram_files.check_arpa_words",
    }
    if name in refusing:
        return
    assert not isinstance(answer(name, list(PLAIN)), type)
    check(name, list(PLAIN))


WHOLE = (
    "report.page.render",
    "properties.calculate_properties",
    "evaluation.evaluate",
)  # a tenth of a second a row


@named(slow=WHOLE)
def test_hostile_texts(name):
    """Each hostile text alone with a plain one, and all those that are not refused together; what asks models has fewer
    and shorter ones, and what makes a table of each row has each once."""
    slow = CASES[name].slow or CASES[name].near
    kept = []
    for text in HOSTILE if not slow else [text for text in HOSTILE if len(text) < 200][::4]:
        once = slow or name in WHOLE
        rows = [(text, "the mill was built"), ("the mill was built", text), (text, text)][
            : 1 if once else None
        ]
        kept += [row for row in rows if not isinstance(answer(name, [row]), type)]
    check(name, kept[:: max(1, len(kept) // (6 if slow else 24))])


LINEAR = {
    name
    for name in TEXTS
    if not CASES[name].near and not CASES[name].slow and "picture" not in name
}


@named(sorted(LINEAR))
def test_words_without_end(name):
    """20,000 characters without a space take seconds at most."""
    began = time.process_time()
    for rows in (
        [("a" * LONG, "b" * LONG)],
        [("." * LONG, ".," * (LONG // 2))],
        [("a b " * (LONG // 4), "b a a " * (LONG // 6))],
    ):
        answer(name, rows)
    assert time.process_time() - began < 20


@pytest.mark.slow
@named(CASES)
def test_any_rows(name, request):
    minutes = request.config.getoption("--fuzz-minutes")
    if not minutes and (CASES[name].slow or CASES[name].near):
        pytest.skip("asks a model for each text: give --fuzz-minutes")
    examples = 4 if CASES[name].slow else 12 if CASES[name].near else 30
    until = time.monotonic() + (minutes * 60 / len(CASES) if minutes else 0)
    for number in range(1_000_000):

        @settings(
            max_examples=examples,
            deadline=None,
            database=None,
            derandomize=not minutes,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
        )
        @given(CASES[name].drawn or any_rows(CASES[name].longest))
        def look(rows):
            check(name, rows)

        (seed(number)(look) if minutes else look)()
        if time.monotonic() >= until:
            return


# the library that trains word pieces keeps one object a training, in its own code
KEPT_BY_OTHERS = {"words.word_pieces.WordPieces.train"}


@named(sorted(set(LINEAR) - KEPT_BY_OTHERS))
@pytest.mark.slow
def test_a_thousand_calls_keep_no_memory(name, request):
    """Once caches are full, as many calls again leave no object behind: a thousand, or what fits into a fifth of a
    second where no minutes are given. The interpreter counts its blocks all the time, so that no call is slowed down.
    """
    rows = [("the mill was built in 1932", "the old mill")]
    answer(name, rows)
    began = time.process_time()
    answer(name, rows)
    affordable = int(0.2 / max(time.process_time() - began, 1e-4))
    calls = 1000 if request.config.getoption("--fuzz-minutes") else min(1000, max(10, affordable))

    def blocks():
        for _ in range(calls):
            answer(name, rows)
        gc.collect()
        return sys.getallocatedblocks()

    before = blocks()
    for _ in range(3):  # a cache may fill late; what is kept for each call grows every time
        last = before
        before = blocks()
        if (grown := before - last) < 100 + calls / 2:
            break
    else:
        pytest.fail(f"{grown} blocks of memory after {calls} calls")


def test_memory_that_is_kept_is_seen():
    """The count above sees one small object kept a call."""
    kept = []
    before = sys.getallocatedblocks()
    for _ in range(1000):
        kept.append(object())
    assert sys.getallocatedblocks() - before > 600 and len(kept) == 1000


@named([name for name in TEXTS if CASES[name].near and not CASES[name].slow])
def test_threads_change_nothing(name):
    import torch

    threads = torch.get_num_threads()
    try:
        found = []
        for number in (1, 2, 4):
            torch.set_num_threads(number)
            found.append(parts(answer(name, list(PLAIN))))
    finally:
        torch.set_num_threads(threads)
    assert same(found[0], found[1], 1e-4) and same(found[0], found[2], 1e-4)


# ---- what was found

FOUND = [  # (entry, rows)
]


@pytest.mark.parametrize("name, rows", FOUND)
def test_found(name, rows):
    check(name, rows)
