"""What is chosen for those who choose nothing: a default that changes, changes every score that was made without naming
it."""

import importlib
import inspect

import pytest

FLAT = {"max_order": 4, "weights": None, "smoothing": "exp", "smoothing_value": None}
TEXT = {"tokenize": "13a", "lowercase": False}
CLASSES = ("Bleu", "Rouge", "Sti")
KINDS = ("rouge1", "rouge2", "rouge3", "rougeL")
DEFAULTS = {
    "text": {"tokenizer": {"method": "13a"}, "tokenize": {"method": "13a"}},
    "bleu": {
        "bleu_statistics": {"max_order": 4, **TEXT},
        "smoothed_precisions": {"max_order": 4, "smoothing": "exp", "smoothing_value": None},
        "bleu_from_statistics": {**FLAT, "effective_order": False},
        "bleu_signature": {**FLAT, **TEXT, "effective_order": False},
        "corpus_bleu": {**FLAT, **TEXT, "effective_order": False},
        "sentence_bleu": {"effective_order": True},
        "sentence_bleus": {"max_order": 4, "smoothing": "exp", **TEXT, "effective_order": True},
        "Bleu": {**FLAT, **TEXT},
        "bleu_interval": {"n_resamples": 1000, "level": 0.95, "seed": 0},
        "paired_bootstrap": {"n_resamples": 1000, "level": 0.95, "seed": 0},
        "approximate_randomization": {"n_trials": 10000, "seed": 0},
    },
    "rouge": {
        "rouge_tokenizer": {"stemmer": False, "tokens": False},
        "rouge_signature": {"stemmer": False, "tokens": False},
        "rouge_scores": {"kinds": KINDS, "stemmer": False},
        "rouge": {"kinds": KINDS, "stemmer": False},
        "Rouge": {"stemmer": False},
    },
    "sti": {
        "transport_plan": {"cost": None},
        "earth_movers_distance": {"cost": None},
        "distance_drop": {"cost": None},
        "Sti": {"target": None, "classifier": None},
    },
    "ngram": {
        "NgramLM": {
            "order": 3,
            "smoothing": "kneser_ney",
            "discount": 0.75,
            "padding": "both",
            "unk_cutoff": 1,
            "add_k": 1.0,
            "backoff": 0.4,
            "katz_cutoff": 5,
        }
    },
}


@pytest.mark.parametrize("name", DEFAULTS)
def test_defaults_are_these(name):
    module = importlib.import_module(f"tsteval.{name}")
    public = {
        one: getattr(module, one)
        for one in module.__all__
        if inspect.isfunction(getattr(module, one)) or one in (*CLASSES, "NgramLM")
    }
    found = {
        one: {
            key: parameter.default
            for key, parameter in inspect.signature(function).parameters.items()
            if parameter.default is not parameter.empty
        }
        for one, function in public.items()
    }
    assert {one: defaults for one, defaults in found.items() if defaults} == DEFAULTS[name]
