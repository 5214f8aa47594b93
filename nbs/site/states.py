"""Pages with a slider that needs no server: the package computes every state when the site is built, and the page shows
the chosen one."""

import json
from pathlib import Path

import numpy as np

REFERENCE = "there is a cat on the mat"
OUTPUTS = (
    "the the the the the the the the",
    "the cat is on the mat near the cat",
    "a cat on the mat there is a cat on the mat",
)
CLASSES = ("negative", "neutral", "positive")
SOURCES = {
    "mostly negative": (0.7, 0.2, 0.1),
    "in the middle": (0.2, 0.6, 0.2),
    "torn": (0.5, 0.0, 0.5),
}
TENTHS = 10
PAIR = {
    "source": "The stunning bridge was finally opened in 1932.",
    "output": "The long bridge was opened in 1932.",
}


def bleu_states():
    """Each output cut after 1, 2, ... words: marks of its words, counts, precisions, penalty and BLEU of order 1."""
    from tsteval.bleu import brevity_penalty, sentence_bleu
    from tsteval.report.words import mark_ngrams

    reference = REFERENCE.split()
    outputs = []
    for output in OUTPUTS:
        words = output.split()
        states = []
        for length in range(1, len(words) + 1):
            score = sentence_bleu(
                " ".join(words[:length]),
                [REFERENCE],
                max_order=1,
                smoothing="none",
                tokenize="none",
            )
            marks, _ = mark_ngrams(words[:length], [reference], 1)
            states.append(
                {
                    "marks": marks,
                    "plain": sum(word in reference for word in words[:length]) / length,
                    "matched": int(score.matches[0]),
                    "precision": float(score.precisions[0]),
                    "penalty": score.brevity_penalty,
                    "bleu": score.score,
                }
            )
        outputs.append({"words": words, "states": states})
    lengths = np.arange(1, 15)
    penalties = {
        int(reference): brevity_penalty(lengths, reference).tolist() for reference in range(1, 13)
    }
    return {
        "reference": reference,
        "outputs": outputs,
        "lengths": lengths.tolist(),
        "penalties": penalties,
    }


def emd_states():
    """Every distribution of the output in steps of a tenth, for each source, cost and target: plan, distance and
    intensities."""
    from tsteval.sti import (
        earth_movers_distance,
        normalized_intensity,
        ordered_cost,
        style_transfer_intensity,
        transport_plan,
    )

    costs = {"1 for every move": None, "1 for each step on the scale": ordered_cost(len(CLASSES))}
    targets = [
        (first, second, TENTHS - first - second)
        for first in range(TENTHS + 1)
        for second in range(TENTHS + 1 - first)
    ]
    states = {}
    for name, source in SOURCES.items():
        for cost_name, cost in costs.items():
            for tenths in targets:
                output = np.array(tenths) / TENTHS
                states[f"{name}|{cost_name}|{tenths[0]}|{tenths[1]}"] = {
                    "plan": transport_plan(source, output, cost).round(6).tolist(),
                    "distance": float(earth_movers_distance(source, output, cost)[0]),
                    "sti": [
                        float(style_transfer_intensity([source], [output], goal)[0])
                        for goal in range(len(CLASSES))
                    ],
                    "normalized": [
                        float(normalized_intensity([source], [output], goal)[0])
                        for goal in range(len(CLASSES))
                    ],
                }
    return {"classes": CLASSES, "sources": SOURCES, "costs": list(costs), "states": states}


def mask_states():
    """The masked texts and the content preservation score at each threshold, with each word's share of the style."""
    from tsteval.attribution import integrated_gradients
    from tsteval.cps import SentenceEncoder, mask_style
    from tsteval.explorers.content import THRESHOLDS, cps_curve
    from tsteval.style import StyleClassifier

    attributions = dict(
        zip(PAIR, integrated_gradients(StyleClassifier.load(), list(PAIR.values())))
    )
    encoder = SentenceEncoder.load()
    strategies = {}
    for strategy in ("pad", "remove"):
        masked = {
            side: [
                mask_style(found, float(threshold), strategy, "word") for threshold in THRESHOLDS
            ]
            for side, found in attributions.items()
        }
        strategies[strategy] = {
            **masked,
            "cps": cps_curve(
                attributions["source"], attributions["output"], encoder, strategy, "word"
            ).tolist(),
        }
    words = {
        side: [
            [word, float(abs(score) / np.abs(found.word_scores).sum())]
            for word, score in zip(found.words, found.word_scores)
        ]
        for side, found in attributions.items()
    }
    return {
        "pair": PAIR,
        "words": words,
        "thresholds": THRESHOLDS.tolist(),
        "strategies": strategies,
    }


STATES = {"bleu": bleu_states, "emd": emd_states, "mask": mask_states}


def compact(value):
    """Numbers with six digits behind the point are more than a page shows."""
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, dict):
        return {str(key): compact(part) for key, part in value.items()}
    return [compact(part) for part in value] if isinstance(value, (list, tuple)) else value


def write_sliders(here: Path, book: Path, names=tuple(STATES)):
    """The pages, each with its states as data inside."""
    (book / "sliders").mkdir()
    for name in names:
        data = json.dumps(
            compact(STATES[name]()), separators=(",", ":"), ensure_ascii=False
        ).replace("<", "\\u003c")
        page = (here / "sliders" / f"{name}.md").read_text(encoding="utf-8")
        (book / "sliders" / f"{name}.md").write_text(
            page.replace(
                "STATES",
                f'<script type="application/json" id="states">{data}</script>\n<script '
                f'src="../_static/late/sliders.js" defer></script>\n'
                "<noscript><p>The sliders need JavaScript.</p></noscript>",
            ),
            encoding="utf-8",
        )
