"""Is this generated text any good, and how do you know? The names that most programs need, imported when asked for."""

__version__ = "0.4.0"

# Written by hand: nbdev exports everything below this folder from nbs/, and of this file changes the version alone.
from pathlib import Path as _Path
from typing import TYPE_CHECKING as _TYPE_CHECKING

_NAMES = {  # module -> names. `rouge` is a module and a function; the function is tsteval.rouge.rouge
    "text": ("ngrams", "tokenize"),
    "bleu": ("BleuScore", "corpus_bleu", "sentence_bleu"),
    "ngram": ("NgramLM",),
    "ameliorations": ("amelioration_1", "amelioration_2"),
    "fluency": ("CausalLM", "UnigramModel", "fluency_scores"),
    "style": (
        "StyleClassifier",
        "Training",
        "calibrate",
        "load_pairs",
        "train_classifier",
        "train_on_sentences",
    ),
    "sti": ("earth_movers_distance", "normalized_intensity", "style_transfer_intensity"),
    "attribution": ("Attribution", "integrated_gradients"),
    "cps": ("SentenceEncoder", "content_preservation", "cosine", "mask_style"),
    "overlap": ("chrf", "meteor"),
    "alignment": ("bert_score", "word_movers_distance"),
    "content": ("style_aware_content",),
    "rewriting": ("Rewriter",),
    "evaluation": ("Evaluation", "evaluate"),
    "agreement": ("correlation", "load_ratings", "williams_test"),
    "estimation": ("estimate",),
    "judge": ("Judge",),
    "scale": ("EvaluationSummary", "evaluate_table"),
    "properties": ("calculate_properties",),
    "core.assets": ("AssetError",),
    "core.checks": ("InputError",),
    "core.metric": ("METRICS", "Metric", "Note", "Scores", "sign"),
    "models.roles": ("Models",),
}
_MODULES = sorted(
    {path.stem for path in _Path(__file__).parent.glob("[a-z]*.py")}
    | {path.parent.name for path in _Path(__file__).parent.glob("[a-z]*/__init__.py")} - {"data"}
)
_HOME = {name: module for module, names in _NAMES.items() for name in names}
__all__ = list(_HOME)

if _TYPE_CHECKING:
    from .agreement import correlation, load_ratings, williams_test
    from .alignment import bert_score, word_movers_distance
    from .ameliorations import amelioration_1, amelioration_2
    from .attribution import Attribution, integrated_gradients
    from .bleu import BleuScore, corpus_bleu, sentence_bleu
    from .content import style_aware_content
    from .core.assets import AssetError
    from .core.checks import InputError
    from .core.metric import METRICS, Metric, Note, Scores, sign
    from .cps import SentenceEncoder, content_preservation, cosine, mask_style
    from .estimation import estimate
    from .evaluation import Evaluation, evaluate
    from .fluency import CausalLM, UnigramModel, fluency_scores
    from .judge import Judge
    from .models.roles import Models
    from .ngram import NgramLM
    from .overlap import chrf, meteor
    from .properties import calculate_properties
    from .rewriting import Rewriter
    from .scale import EvaluationSummary, evaluate_table
    from .sti import earth_movers_distance, normalized_intensity, style_transfer_intensity
    from .style import (
        StyleClassifier,
        Training,
        calibrate,
        load_pairs,
        train_classifier,
        train_on_sentences,
    )
    from .text import ngrams, tokenize
else:

    def __getattr__(name):
        import importlib

        if name in _MODULES:
            return importlib.import_module(f"{__name__}.{name}")
        if name not in _HOME:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(
            importlib.import_module(f"{__name__}.{_HOME[name]}"), name
        )
        return value

    def __dir__():
        return sorted({*__all__, *_MODULES, "__version__"})
