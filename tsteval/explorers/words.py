"""Explorers of n-grams, BLEU and ROUGE: which words match, and what the score is made of."""

from typing import TYPE_CHECKING

import numpy as np

from tsteval.bleu import (
    SMOOTHINGS,
    bleu_from_statistics,
    bleu_statistics,
    brevity_penalty,
    closest_length,
    sentence_bleu,
    smoothed_precisions,
)

from ..core.checks import InputError
from ..core.display import displayable, number
from ..report.charts import curve_and_point
from ..report.markup import SKY, Picture, answered, bar, side_by_side, table
from ..report.words import chips, edited_pair, legend, mark_common, mark_ngrams
from ..rouge import Rouge, rouge_scores, rouge_tokenizer
from ..text import TOKENIZERS, edited_spans, tokenize
from .controls import checkbox, choice, explorer, show, slider, text_field

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def match_picture(
    source: str,
    output: str,
    tokenizer: str = "13a",  # a key of `TOKENIZERS`
    order: int = 1,  # length of the n-grams that are marked, >= 1
) -> Picture:
    """Matched, clipped and missed n-grams of a source and an output, their shares by order, and the edited words."""
    source = displayable(source)
    output = displayable(output)
    others, tokens = (tokenize(text, tokenizer) for text in (source, output))
    by_order = {n: mark_ngrams(tokens, [others], n) for n in (*range(1, 5), order)}
    marks, (other_marks,) = by_order[order]
    rows = []
    for n in range(1, 5):
        matches = by_order[n][0].count("matched")
        total = len(by_order[n][0])
        share = matches / total if total else np.nan
        rows.append([f"{n}-grams", f"{matches} of {total}", bar(share, SKY), number(share)])
    return answered(
        f"{marks.count('matched')} of the output's {len(marks)} {order}-grams stand in the source.",
        table(
            ["", f"{order}-grams"],
            [
                ["source", chips(others, other_marks, order)],
                ["output", chips(tokens, marks, order)],
            ],
            "The texts",
        ),
        legend(),
        side_by_side(
            table(
                ["", "matched", "share", ""], rows, "By order: what the source has of the output"
            ),
            edited_pair(source, output, *edited_spans(source, output), title="The edit"),
        ),
    )


def match_explorer(
    source: str = "For its opening minutes, the sequel shamelessly recycles footage.",
    output: str = "For its opening minutes, the sequel reuses footage.",
):
    """An explorer of tokens, n-grams and edits: two texts, a tokeniser, an order. Returns a widget."""
    rows = [
        {"source": text_field("source", source)},
        {"output": text_field("output", output)},
        {
            "tokenizer": choice("tokeniser", list(TOKENIZERS), "13a"),
            "order": slider("n-grams", 1, 1, 4, 1),
        },
    ]
    return explorer("Which n-grams match?", rows, match_picture)


def score_factors(
    candidate: str,
    references: list[str],  # at least one
    weights: list[float],  # one for each order, >= 0, not all 0; scaled to sum to 1
    smoothing: str = "exp",
    tokenizer: str = "13a",
) -> list[
    dict
]:  # a row for the brevity penalty and for each order: name, counts, precision, weight, factor, product
    """The factors of a sentence's BLEU in the order in which they are multiplied; the last product is the score."""
    shares = np.divide(weights, np.sum(weights) or 1)
    score = sentence_bleu(
        candidate,
        references,
        max_order=len(shares),
        weights=shares.tolist(),
        smoothing=smoothing,
        tokenize=tokenizer,
    )
    precisions, effective_weights = _precisions(candidate, references, shares, smoothing, tokenizer)
    rows = [
        {
            "name": "brevity",
            "counts": f"{score.hypothesis_length} to {score.reference_length}",
            "precision": np.nan,
            "weight": np.nan,
            "factor": score.brevity_penalty,
        }
    ]
    rows += [
        {
            "name": f"{order}-grams",
            "counts": f"{matched} of {total}",
            "precision": precision,
            "weight": weight,
            "factor": float(precision**weight) if weight else 1.0,
        }
        for order, (matched, total, precision, weight) in enumerate(
            zip(score.matches, score.totals, precisions, effective_weights), 1
        )
    ]
    if not score.matches[0] or not effective_weights.any():
        rows.append(
            {
                "name": "nothing to average" if score.matches[0] else "no word matches",
                "counts": "",
                "precision": np.nan,
                "weight": np.nan,
                "factor": 0.0,
            }
        )
    products = np.cumprod([row["factor"] for row in rows]).tolist()
    return [{**row, "product": product} for row, product in zip(rows, products)]


def _precisions(
    candidate, references, weights, smoothing, tokenizer
) -> tuple[np.ndarray, np.ndarray]:
    """Smoothed precisions of all orders, and the weights that count: an order that the candidate is too short for does
    not."""
    extra = SMOOTHINGS[smoothing].extra_orders
    statistics = bleu_statistics(
        [candidate], [references], max_order=len(weights) + extra, tokenize=tokenizer
    )[0]
    precisions = smoothed_precisions(statistics, max_order=len(weights), smoothing=smoothing)
    effective_weights = np.where(np.isnan(precisions), 0, weights)
    return precisions, effective_weights / (effective_weights.sum() or 1)


def bleu_picture(
    candidate: str,
    references: list[str],  # at least one
    weights: list[float],  # as for `score_factors`
    smoothing: str = "exp",  # a key of `SMOOTHINGS`
    tokenizer: str = "13a",  # a key of `TOKENIZERS`
    marked: int = 1,  # order of the n-grams that are marked in the texts
) -> Picture:
    """Matched, clipped and missed n-grams in the texts; precisions, brevity penalty, and the score as their product."""
    candidate = displayable(candidate)
    references = [displayable(text) for text in references]
    tokens, *others = (tokenize(text, tokenizer) for text in (candidate, *references))
    marks, reference_marks = mark_ngrams(tokens, others, marked)
    factors = score_factors(candidate, references, weights, smoothing, tokenizer)
    texts = [["candidate", chips(tokens, marks, marked)]]
    texts += [
        [f"reference {place}", chips(*one, marked)]
        for place, one in enumerate(zip(others, reference_marks), 1)
    ]
    rows = [
        [
            row["name"],
            row["counts"],
            number(row["precision"]),
            number(row["factor"]),
            bar(row["product"]),
            number(row["product"]),
        ]
        for row in factors
    ]
    scores = table(
        ["", "counts", "precision", "factor", "product so far", ""],
        rows,
        f"BLEU = {factors[-1]['product']:.4f}: brevity penalty times precisions to their weights",
    )
    worst = min(factors, key=lambda row: row["factor"])
    loss = f"; what costs most: {worst['name']} (factor {number(worst['factor'])})"
    curve = _penalty_curve(
        len(tokens), closest_length(len(tokens), [len(other) for other in others])
    )
    return answered(
        f"{marks.count('matched')} of {len(marks)} {marked}-grams match a reference. BLEU is "
        f"{number(factors[-1]['product'])}{loss * (worst['factor'] < 1)}.",
        table(["", f"{marked}-grams"], texts, "The texts"),
        legend(),
        side_by_side(scores, curve),
    )


def _penalty_curve(length: int, reference_length: int) -> "Figure":
    lengths = np.linspace(0, max(2 * reference_length, length, 4), 121)
    here = float(brevity_penalty(length, reference_length))
    return curve_and_point(
        lengths,
        brevity_penalty(lengths, np.full(121, reference_length)),
        (length, here),
        x_label="length of the candidate in tokens",
        y_label="brevity penalty",
        mark=(reference_length, "reference"),
    )


def bleu_explorer(
    candidate: str = "The cat is on the the mat.",  # an output
    references: str = "There is a cat on the mat.",  # its references, one a line
):
    """An explorer of sentence BLEU: texts, orders, weights, smoothing and tokeniser. Returns a widget."""
    rows = [
        {"candidate": text_field("candidate", candidate)},
        {"references": text_field("references", references)},
        {
            "order": slider("longest n-gram", 4, 1, 4, 1),
            "marked": slider("marked n-grams", 1, 1, 4, 1),
            "smoothing": choice("smoothing", list(SMOOTHINGS), "exp"),
            "tokenizer": choice("tokeniser", list(TOKENIZERS), "13a"),
        },
        {
            f"weight_{order}": slider(f"{order}-gram weight", 1.0, 0.0, 1.0, 0.05)
            for order in range(1, 5)
        },
    ]

    def draw(candidate, references, order, marked, smoothing, tokenizer, **weights):
        for place in range(1, 5):
            show(rows[3][f"weight_{place}"], place <= order)
        lines = [line for line in references.split("\n") if line.strip()] or [""]
        return bleu_picture(
            candidate, lines, list(weights.values())[:order], smoothing, tokenizer, marked
        )

    return explorer("Which words match a reference?", rows, draw)


def sums_picture(
    outputs: list[str],  # N outputs
    references: list[str],  # N references
    order: int = 2,  # longest n-gram, 1..4
) -> Picture:
    """The statistics of BLEU of each output, their sum, the score of each and of the sum, and two means."""
    outputs, references = ([displayable(text) for text in texts] for texts in (outputs, references))
    rows = bleu_statistics(outputs, references, max_order=order)
    sums = rows.sum(axis=0)
    each, whole = (
        np.atleast_1d(bleu_from_statistics(one, max_order=order)) for one in (rows, sums)
    )
    lengths = rows[:, 0]
    scores = {f"output {place}": score for place, score in enumerate(each, 1)}
    scores["all together, from the sum"] = whole[0]
    scores["mean"] = each.mean()
    scores["mean by length"] = np.average(each, weights=lengths) if lengths.any() else np.nan
    cells = [
        [
            name,
            f"{row[0]:.0f} to {row[1]:.0f}",
            *(f"{row[2 + n]:.0f} of {row[2 + order + n]:.0f}" for n in range(order)),
        ]
        for name, row in zip([*map(str, range(1, len(rows) + 1)), "sum"], [*rows, sums])
    ]
    equal = "No" if abs(whole[0] - each.mean()) > 5e-4 else "Here, yes"
    return answered(
        f"{equal}: BLEU of all together is {number(whole[0])}, the mean of the single scores is "
        f"{number(each.mean())}.",
        side_by_side(
            table(["", "", ""], [[n, bar(s), number(s)] for n, s in scores.items()], "BLEU"),
            table(
                ["", "lengths", *(f"{n}-grams" for n in range(1, order + 1))],
                cells,
                "What is added up",
            ),
        ),
    )


def sums_explorer(
    outputs: str = "the bridge opened\nthey say that it took a very long time",  # one a line
    references: str = "the bridge opened\nit took the builders three years to finish it",  # one a line
):
    """An explorer of what adds up: outputs and references, a line each. Returns a widget."""
    rows = [
        {"outputs": text_field("outputs", outputs)},
        {"references": text_field("references", references)},
        {"order": slider("longest n-gram", 2, 1, 4, 1)},
    ]

    def draw(outputs, references, order):
        lines = [text.split("\n") for text in (outputs, references)]
        if len(lines[0]) != len(lines[1]):
            raise InputError(
                f"{len(lines[0])} outputs and {len(lines[1])} references; write one of each a line"
            )
        return sums_picture(*lines, order)

    return explorer("Can BLEU be averaged?", rows, draw)


def rouge_picture(
    candidate: str,
    reference: str,  # a line is a sentence of a summary
    kind: str = "rouge1",  # rouge1 | rouge2 | rouge3 | rougeL: what is marked
    stemmer: bool = False,  # compare Porter stems, which are then shown
) -> Picture:
    """Matched and missed n-grams or common words of both texts; precision, recall and F1 of every kind of ROUGE."""
    texts = [displayable(text) for text in (candidate, reference)]
    order = int(kind[5:]) if kind[5:].isdigit() else 1
    scores = rouge_scores(texts[:1], texts[1:], Rouge.columns, stemmer).iloc[0]
    tokens, others = map(rouge_tokenizer(stemmer), texts)
    if kind == "rougeL":
        marks, other_marks = mark_common(tokens, others)
    else:
        marks, (other_marks,) = mark_ngrams(tokens, [others], order)
    rows = [
        [
            Rouge.heading(name),
            number(precision),
            bar(recall, SKY),
            number(recall),
            number(f1),
        ]
        for name in Rouge.columns
        for precision, recall, f1 in [scores[name]]
    ]
    precision, recall, _ = scores[kind]
    unit = "words, in this order," if kind == "rougeL" else f"{order}-grams"
    drawn = table(
        ["", "marked"],
        [
            ["candidate", chips(tokens, marks, order)],
            ["reference", chips(others, other_marks, order)],
        ],
        "The texts",
    )
    names = ("matched", "missed") if kind == "rougeL" else ()
    return answered(
        "ROUGE cannot read these texts."
        if np.isnan(recall)
        else f"{recall:.0%} of the reference's {unit} stand in the candidate (recall), and {precision:.0%} "
        f"of the candidate's in the reference (precision).",
        drawn,
        legend(*names),
        table(["", "precision", "recall", "", "F1"], rows, "Every kind of ROUGE"),
    )


def rouge_explorer(
    candidate: str = "The dam opened in 1932. Thousands came.",
    reference: str = "Thousands came when the dam was opened in 1932.",
):
    """An explorer of ROUGE: two texts, what is marked, stems. Returns a widget."""
    kinds = [(Rouge.heading(kind), kind) for kind in ("rouge1", "rouge2", "rouge3", "rougeL")]
    rows = [
        {"candidate": text_field("candidate", candidate)},
        {"reference": text_field("reference", reference)},
        {
            "kind": choice("marked", kinds, "rouge1"),
            "stemmer": checkbox("compare stems", False),
        },
    ]
    return explorer("How much of the reference is covered?", rows, rouge_picture)
