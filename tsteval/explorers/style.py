"""Explorers of style: the Earth Mover's Distance as a flow of mass, and the words behind a distribution."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from markupsafe import Markup

from tsteval.sti import (
    distance_drop,
    earth_movers_distance,
    normalized_intensity,
    ordered_cost,
    style_transfer_intensity,
    transport_plan,
)

from ..attribution import Attribution, integrated_gradients
from ..core.checks import InputError, check_choice, check_equal_lengths, check_number
from ..core.display import enumerated, number
from ..report.markup import GREY, Picture, answered, bar, side_by_side, table, tag
from ..report.words import coloured_words, transport_flow
from ..style import StyleClassifier
from .controls import choice, cut_note, explorer, first_part, show, slider, text_field


def emd_picture(
    p: np.ndarray,  # (C,) a distribution
    q: np.ndarray,  # (C,) another
    cost: np.ndarray,  # (C, C) cost of moving one unit of mass
    target: int = 0,  # class whose style is to be reached
) -> Picture:
    """The cheapest flow of mass from p to q, the distance, the two intensities of style transfer, and the drop."""
    flow = transport_plan(p, q, cost)
    moves = [
        [
            f"{source + 1} to {goal + 1}",
            number(flow[source, goal]),
            f"{cost[source, goal]:g}",
            number(flow[source, goal] * cost[source, goal]),
        ]
        for source, goal in np.argwhere(flow > 1e-9)
        if cost[source, goal] or source != goal
    ]
    distance = float(earth_movers_distance(p, q, cost)[0])
    intensity = style_transfer_intensity(p, q, target)[0]
    scores = [
        ["distance at these costs", number(distance)],
        ["STI (cost 1 a move)", f"{intensity:+.3f}"],
        ["normalised intensity", f"{normalized_intensity(p, q, target)[0]:+.3f}"],
    ]
    if cost.any():
        nearer = distance_drop(p, q, target, cost)[0]
        scores.append(["drop at these costs", f"{nearer:+.3f}"])
    moved = table(
        ["class", "mass", "cost", "mass × cost"],
        moves or [["nothing moves", "", "", ""]],
        f"Moves: their costs sum to {distance:.3f}",
    )
    share = flow.sum() - np.trace(flow)
    return answered(
        f"{share:.0%} of the mass moves, and moving it costs {number(distance)}, the distance; towards class "
        f"{target + 1} the style moved by {intensity:+.3f} (STI).",
        side_by_side(
            transport_flow(flow),
            table(["", ""], scores, f"Towards class {target + 1}") + moved,
        ),
    )


def read_costs(
    text: str,  # one row a line, numbers parted by spaces or commas
    classes: int,  # rows and columns wanted
) -> np.ndarray:  # (classes, classes), >= 0
    """A cost matrix as a person types it. Raises: InputError that names the row."""
    rows = [line.replace(",", " ").split() for line in text.split("\n") if line.strip()]
    for place, row in enumerate(rows):
        if odd := [cell for cell in row if not _is_cost(cell)]:
            raise InputError(
                f"cost matrix, row {place} (counted from 0): {odd[0][:40]!r} is not a number of 0 or more"
            )
        if len(row) != classes:
            raise InputError(
                f"cost matrix, row {place} (counted from 0): {len(row)} numbers; write {classes}, parted "
                f"by spaces"
            )
    if len(rows) != classes:
        raise InputError(f"the cost matrix has {len(rows)} rows; write {classes}, one a line")
    return np.array(rows, dtype=float)


def _is_cost(cell: str) -> bool:
    try:
        return 0 <= float(cell) < np.inf
    except ValueError:
        return False


_COSTS = {
    "1 for every move": lambda classes: 1.0 - np.eye(classes),
    "steps between classes": ordered_cost,
}


def emd_explorer(
    p=(0.7, 0.2, 0.1, 0.0, 0.0),  # 2 to 5 numbers >= 0; scaled to sum to 1
    q=(0.2, 0.3, 0.5, 0.0, 0.0),  # as many
):
    """An explorer of the Earth Mover's Distance: two distributions, the costs, the target class. Returns a widget.

    Raises: InputError for fewer than 2 or more than 5 numbers, for different lengths, or if all are 0.
    """
    check_number(len(p), "the number of classes", 2, 5)
    check_equal_lengths(p=p, q=q)
    rows = _emd_controls(_shares(p, "p"), _shares(q, "q"))

    def draw(classes, cost, target, matrix, **values):
        for name in values:
            show(rows[1 if name[0] == "p" else 2][name], int(name[1]) <= classes)
        show(rows[3]["matrix"], cost not in _COSTS)
        costs = _COSTS[cost](classes) if cost in _COSTS else read_costs(matrix, classes)
        p, q = (
            _shares([values[f"{name}{place}"] for place in range(1, classes + 1)], name)
            for name in "pq"
        )
        return emd_picture(p, q, costs, min(target, classes) - 1)

    return explorer("How far did the style move?", rows, draw)


def _shares(values, name: str) -> np.ndarray:
    """Sliders as a distribution. Raises: InputError if all are 0, or for a number below 0."""
    for place, value in enumerate(values):
        check_number(value, f"{name}[{place}]", 0)
    if not sum(values):
        raise InputError(f"all sliders of {name} are at 0; raise one of them")
    return np.array(values) / sum(values)


def _emd_controls(p: np.ndarray, q: np.ndarray) -> list[dict]:
    classes = max(2, int(np.flatnonzero(p + q)[-1]) + 1)
    sides = [
        {
            f"{name}{place}": slider(f"{name} of class {place}", value, 0.0, 1.0, 0.05)
            for place, value in enumerate(side, 1)
        }
        for name, side in (("p", p), ("q", q))
    ]
    return [
        {
            "classes": slider("classes", classes, 2, len(p), 1),
            "cost": choice("cost", [*_COSTS, "as typed below"], next(iter(_COSTS))),
            "target": slider("target class", classes, 1, len(p), 1),
        },
        *sides,
        {"matrix": text_field("own costs", "0 1 4\n1 0 1\n4 1 0", 3)},
    ]


PARTS = (
    "style",
    "movement",
    "words",
)  # of the picture: both distributions, how far they moved, coloured words


def shown_units(
    attribution: Attribution,
    unit: str = "word",  # token | word
) -> tuple[
    str, list[tuple[int, int]], np.ndarray
]:  # a text, (start, end) of each of its units, their scores
    """An attribution as `coloured_words` takes it; tokens are set apart unless they continue a word."""
    if unit == "word":
        return attribution.text, attribution.word_spans, attribution.word_scores
    text = ""
    spans = []
    for token in attribution.tokens:
        written = token.replace("Ġ", " ").removeprefix("##")
        text += "" if token.startswith("##") or not text else " "
        spans.append((len(text), len(text) + len(written)))
        text += written
    return text, spans, attribution.scores


def style_picture(
    probabilities: np.ndarray,  # (2, C) style of the source and of the output
    labels: tuple[str, ...],  # C names
    attributions: list[Attribution],  # of source and output
    parts: Sequence[str] = PARTS,  # of the picture, any of PARTS
) -> Picture:
    """Both style distributions, how far the style moved towards each class, and the words that carry the style.

    Raises: InputError for an unknown part.
    """
    for part in parts:
        check_choice(part, "parts", PARTS)
    shown = []
    told = []
    if {"style", "movement"} & set(parts):
        sides = [f"{labels[row.argmax()]} ({row.max():.0%})" for row in probabilities]
        told.append(f"The classifier calls the source {sides[0]} and the output {sides[1]}")
        shown.append(_style_table(probabilities[0], probabilities[1], labels, "movement" in parts))
    if "words" in parts:
        shown += _carrying_words(labels, attributions)
        heaviest = [
            f"{text.words[text.word_scores.argmax()]} in the {name}"
            for name, text in zip(("source", "output"), attributions)
            if len(text.words) and text.word_scores.max() > 0
        ]
        pushing = enumerated(heaviest) or "no word"
        told.append(f"what pushes most towards {labels[0]}: {pushing}")
    sentence = "; ".join(told)
    return answered(f"{sentence[:1].upper()}{sentence[1:]}.", *shown)


def _carrying_words(labels: tuple[str, ...], attributions: list[Attribution]) -> list[Markup]:
    strongest = max(
        (float(np.abs(text.word_scores).max(initial=0)) for text in attributions), default=0
    )
    legend = tag(
        "p",
        "Orange: pushes towards ",
        tag("em", labels[0]),
        ". Blue with a dotted underline: pushes away. "
        "The stronger the colour, the larger the share of the probability; both texts have one scale.",
    )
    texts = [
        coloured_words(*shown_units(text), title=name, strongest=strongest)
        for name, text in zip(("source", "output"), attributions)
    ]
    return [legend, *texts]


def _style_table(
    source: np.ndarray, output: np.ndarray, labels: tuple[str, ...], moved: bool
) -> Markup:
    rows = []
    for place, (label, before, after) in enumerate(zip(labels, source, output)):
        rows.append([label, "source", bar(before, GREY, outline=True), number(before)])
        rows.append(["", "output", bar(after), number(after)])
        if moved:
            rows += [
                ["", name, "", f"{measure(source, output, place)[0]:+.3f}"]
                for name, measure in (
                    ("STI", style_transfer_intensity),
                    ("normalised", normalized_intensity),
                )
            ]
    return table(["style", "", "", ""], rows, "Which style, before and after?")


def style_explorer(
    source: str = "The stunning bridge was finally opened in 1932.",
    output: str = "The bridge was opened in 1932.",
    classifier: str = "subjectivity-minilm",  # an embedded model, a folder, or a Hugging Face model id
    parts: Sequence[str] = PARTS,  # of the picture, any of PARTS
):
    """An explorer of style: two texts and the classifier's name. Returns a widget."""
    loaded = lru_cache(maxsize=2)(StyleClassifier.load)
    judged = lru_cache(
        lambda name, text: (
            loaded(name).predict_proba([text])[0],
            integrated_gradients(loaded(name), [text])[0] if "words" in parts else None,
        )
    )
    asked = (
        "Which words carry the style?"
        if "words" in parts
        else "How far did the style move?"
        if "movement" in parts
        else "Which style has each text?"
    )
    rows = [
        {"source": text_field("source", source), "output": text_field("output", output)},
        {"classifier": text_field("classifier", classifier, 1)},
    ]

    def draw(source, output, classifier):
        name = classifier.strip()
        (before, first), (after, second) = (
            judged(name, first_part(text)) for text in (source, output)
        )
        return cut_note(source, output) + style_picture(
            np.array([before, after]), loaded(name).labels, [first, second], parts
        )

    return explorer(asked, rows, draw, slow=("source", "output", "classifier"))
