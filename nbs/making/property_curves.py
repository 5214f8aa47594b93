"""Fit the curves and the scale that the properties use, and write them into the package.

python nbs/making/property_curves.py acceptability  # tsteval/data/property_curves.json
python nbs/making/property_curves.py formality    # the same file; needs pt16_formality in TSTEVAL_DATA
python nbs/making/property_curves.py relevance    # tsteval/data/relevance_curve.json
"""

import json
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np

from tsteval.answers import fit_anchors, load_question_answers, relevance_examples
from tsteval.fluency import load_minimal_pairs
from tsteval.models.causal_lm import CausalLM
from tsteval.models.encoder import WordReader
from tsteval.style import StyleClassifier
from tsteval.tone import FORMALITY_MODEL, LIKELIHOOD, formality_evidence, mean_logprobs
from tsteval.training.logistic import cross_validated, fit_logistic
from tsteval.words.english import content_words, parse

DATA = Path(__file__).parents[2] / "tsteval" / "data"
sys.path.insert(0, str(Path(__file__).parent))


def text_sha256(texts) -> str:
    import hashlib

    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def fitted(
    features: np.ndarray,
    labels: np.ndarray,
    groups: np.ndarray,
    names: list[str],
    texts: list[str],
    model,
) -> dict:
    """A curve with what it was fitted to."""
    intercept, coefficients = fit_logistic(features, labels)
    p = cross_validated(features, labels, groups)
    loss = -np.mean(labels * np.log(p) + (1 - labels) * np.log(1 - p))
    return {
        "features": names,
        "intercept": round(intercept, 6),
        "coefficients": coefficients.round(6).tolist(),
        "examples": len(texts),
        "log_loss": round(float(loss), 4),
        "model": model.tag,
        "text_sha256": text_sha256(texts),
    }


def acceptability_curve() -> dict:
    """NCE against the minimal pairs: a sound sentence is 1, its broken twin 0."""
    minimal = load_minimal_pairs()
    lm = CausalLM.load(LIKELIHOOD)
    texts = [*minimal.good, *minimal.bad]
    n = len(minimal)
    return fitted(
        mean_logprobs(lm, texts)[:, None],
        np.repeat([1.0, 0.0], n),
        np.tile(np.arange(n), 2),
        ["nce"],
        texts,
        lm,
    )


def formality_curve() -> dict:
    """Two steps: log-odds and a small first letter against the ratings as shares, and that line against who is above
    the middle.

    The first step weighs the two features, the second one only stretches and shifts, so the order stays that of the
    ratings.
    """
    from formality_model import load_ratings

    rated = load_ratings()
    chosen = rated.query("split == 'curve'")
    middle = rated.rating.median()
    classifier = StyleClassifier.load(FORMALITY_MODEL)
    features = formality_evidence(classifier, list(chosen.text))
    ratings = chosen.rating.to_numpy()
    intercept, coefficients = fit_logistic(features, (ratings + 3) / 6)
    line = intercept + features @ coefficients
    above = (np.sign(ratings - middle) + 1) / 2  # a tie counts as half
    curve = fitted(
        line[:, None],
        above,
        np.arange(len(chosen)),
        ["log_odds", "begins_small"],
        list(chosen.text),
        classifier,
    )
    shift, [stretch] = curve["intercept"], curve["coefficients"]
    return {
        **curve,
        "intercept": round(shift + stretch * intercept, 6),
        "coefficients": (stretch * coefficients).round(6).tolist(),
    }


def same_word_cosine(reader: WordReader) -> float:
    """Median cosine of a word in a question with the same word in its answer."""
    pairs = load_question_answers()
    documents = parse([*pairs.question, *pairs.answer])
    found = []
    for question, answer in zip(pairs.question, pairs.answer):
        words = [content_words(documents[text]) for text in (question, answer)]
        asked, said = reader.phrase_vectors([question, answer], words)
        found += [
            asked[i] @ said[j]
            for i, word in enumerate(words[0])
            for j, other in enumerate(words[1])
            if word.form == other.form
        ]
    return float(np.median(found))


def relevance_scale() -> dict:
    """The three cosines of `word_similarity`."""
    reader = WordReader.load()
    cosines, own, _ = relevance_examples(reader)
    return {
        name: round(value, 6)
        for name, value in asdict(fit_anchors(cosines, own, same_word_cosine(reader))).items()
    }


def write(path: Path, found: dict) -> None:
    path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    curves = DATA / "property_curves.json"
    for name in sys.argv[1:]:
        if name == "relevance":
            write(DATA / "relevance_curve.json", relevance_scale())
        else:
            known = json.loads(curves.read_text(encoding="utf-8"))
            write(
                curves,
                {
                    **known,
                    name: {"acceptability": acceptability_curve, "formality": formality_curve}[
                        name
                    ](),
                },
            )
