"""Explorers of content preservation: what a mask leaves, which words are matched, and which cost content."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from ..alignment import LAYERS, bert_score, usual_layer, word_movers_distance
from ..attribution import Attribution, integrated_gradients
from ..content import style_aware_content
from ..core.display import number
from ..cps import SentenceEncoder, cosine, mask_style, masked_places
from ..models.alignment import check_layer
from ..overlap import chrf, meteor
from ..report.charts import curve_and_point
from ..report.flows import counted_picture, matched_picture, moved_picture
from ..report.markup import Picture, framed, heading, isolated, side_by_side, table, tag
from ..report.words import coloured_words, linked_words
from ..style import StyleClassifier
from ..text import tokenizer
from ..words.word_alignment import align_words, count_chunks
from .controls import choice, cut_note, explorer, first_part, slider, text_field
from .style import shown_units

THRESHOLDS = np.round(np.arange(0, 1.001, 0.02), 2)  # the places of the threshold slider


def cps_curve(
    source: Attribution,
    output: Attribution,
    encoder: SentenceEncoder,
    strategy: str = "pad",  # pad | remove | none
    unit: str = "token",  # token | word
    thresholds: np.ndarray = THRESHOLDS,  # (K,) in 0..1
) -> np.ndarray:  # (K,) content preservation scores, in -1..1
    """The content preservation score at every threshold; each different masked text is encoded once."""
    masked = [
        [mask_style(text, float(threshold), strategy, unit) for text in (source, output)]
        for threshold in thresholds
    ]
    distinct = list(dict.fromkeys(text for pair in masked for text in pair))
    vectors = dict(zip(distinct, encoder.encode(distinct)))
    return cosine(
        [vectors[before] for before, _ in masked], [vectors[after] for _, after in masked]
    )


def mask_picture(
    source: Attribution,
    output: Attribution,
    threshold: float,
    strategy: str,  # pad | remove | none
    unit: str,  # token | word
    curve: np.ndarray,  # from `cps_curve`, at `THRESHOLDS`
    unmasked: float,  # the score of the strategy "none"
) -> Picture:
    """Attributions as colour, masked words struck through, both masked texts, and the score on its curve."""
    parts = []
    for name, text in (("source", source), ("output", output)):
        places = [] if strategy == "none" else masked_places(text, threshold, unit)
        units = shown_units(text, unit)
        parts += [
            coloured_words(
                *units,
                marked=places,
                title=f"{name}: {len(places)} of {len(units[1])} {unit}s masked",
            ),
            tag(
                "p",
                "masked: ",
                isolated(mask_style(text, threshold, strategy, unit)),
                style="color:#444",
            ),
        ]
    value = float(curve[np.abs(THRESHOLDS - threshold).argmin()])
    headline = f"masked CPS {value:.3f}; without a mask, as evaluate takes it, {unmasked:.3f}"
    drawing = curve_and_point(
        THRESHOLDS,
        curve,
        (threshold, value),
        y_label="content preservation score",
        x_label="threshold: share of the style that is masked",
    )
    return framed(
        side_by_side(tag("div", *parts, style="max-width:560px"), heading(headline) + drawing)
    )


def mask_explorer(
    source: str = "The stunning bridge was finally opened in 1932.",
    output: str = "The long bridge was opened in 1932.",
    classifier: str = "subjectivity-minilm",  # finds the style words; an embedded model, a folder, or a Hugging Face id
    encoder: str = "all-MiniLM-L6-v2",  # compares what is left; likewise
):
    """An explorer of style masking: two texts, threshold, strategy, unit. Returns a widget."""
    attribute = lru_cache(
        lambda text: integrated_gradients(StyleClassifier.load(classifier), [text])[0]
    )
    curve = lru_cache(
        lambda source, output, strategy, unit: cps_curve(
            attribute(source), attribute(output), SentenceEncoder.load(encoder), strategy, unit
        )
    )
    rows = [
        {"source": text_field("source", source), "output": text_field("output", output)},
        {
            "threshold": slider("threshold", mask_style.__defaults__[0], 0.0, 1.0, 0.02),
            "strategy": choice("strategy", ["pad", "remove", "none"], mask_style.__defaults__[1]),
            "unit": choice("unit", ["token", "word"], mask_style.__defaults__[2]),
        },
    ]

    def draw(source, output, threshold, strategy, unit):
        first = first_part(source)
        second = first_part(output)
        return cut_note(source, output) + mask_picture(
            attribute(first),
            attribute(second),
            threshold,
            strategy,
            unit,
            curve(first, second, strategy, unit),
            curve(first, second, "none", unit)[0],
        )

    return explorer(
        "Which words are covered, and how alike is what is left?",
        rows,
        draw,
        slow=("source", "output", "strategy", "unit"),
    )


def _paired_picture(output: Sequence[str], reference: Sequence[str]) -> Picture:
    """The words that METEOR pairs, with the number of runs that stand together in both texts."""
    from nltk.stem.porter import PorterStemmer

    words = [[word.lower() for word in side] for side in (output, reference)]
    alignment = align_words(*words, stem=PorterStemmer().stem)
    title = f"What is paired: {len(alignment)} words in {count_chunks(alignment)} runs"
    return Picture(
        heading(title)
        + linked_words(*words, dict.fromkeys(alignment, 0.2), alt="the words that METEOR pairs")
    )


def _score_table(scores: dict[str, float]) -> Picture:
    return table(["", ""], [[name, number(value)] for name, value in scores.items()], "Scores")


def overlap_picture(
    output: str,
    reference: str,
    *,
    order: int = 6,  # longest n-gram of characters, >= 1
    tokenize: str = "13a",  # of METEOR's words
) -> Picture:
    """The n-grams of one pair counted and its words paired, with chrF and METEOR."""
    words = [tokenizer(tokenize)(text) for text in (output, reference)]
    parts = [counted_picture(output, reference, order)] + (
        [_paired_picture(*words)] if all(words) else []
    )
    scores = {
        "chrF": chrf([output], [reference], char_order=order)[0],
        "METEOR": meteor([output], [reference], tokenize=tokenize)[0],
    }
    return framed(side_by_side(*parts), _score_table(scores))


def alignment_picture(
    output: str,
    reference: str,
    *,
    encoder: SentenceEncoder | None = None,  # None: the embedded encoder
    layer: int | None = None,  # as for `bert_score`
    tokenize: str = "13a",  # of the words that are moved
) -> Picture:
    """The tokens of one pair matched and its words moved, with BERTScore and Word Mover's Distance."""
    encoder = encoder or SentenceEncoder.load()
    layer = check_layer(layer, encoder, usual_layer(encoder))
    words = [tokenizer(tokenize)(text) for text in (output, reference)]
    parts = (
        [matched_picture(encoder, output, reference, layer), moved_picture(encoder, *words)]
        if all(words)
        else []
    )
    bert_scores = bert_score([output], [reference], encoder=encoder, layer=layer).iloc[0]
    scores = {
        "Word Mover's Distance": word_movers_distance(
            [output], [reference], encoder=encoder, tokenize=tokenize
        )[0],
        **{f"BERTScore {name}": bert_scores[name] for name in ("precision", "recall", "f1")},
    }
    return framed(side_by_side(*parts), _score_table(scores))


def overlap_explorer(
    output: str = "The present pleased the kids.",
    reference: str = "The gift made the children happy.",
):
    """An explorer of what is counted and paired between two texts. Returns a widget."""
    rows = [
        {"output": text_field("output", output)},
        {"reference": text_field("reference", reference)},
        {"order": slider("longest n-gram", 6, 1, 6, 1)},
    ]

    def draw(output, reference, order):
        return Picture(
            cut_note(output, reference)
            + overlap_picture(first_part(output), first_part(reference), order=order)
        )

    return explorer("What do the two have in common?", rows, draw, slow=("output", "reference"))


def alignment_explorer(
    output: str = "The present pleased the kids.",
    reference: str = "The gift made the children happy.",
):
    """An explorer of what is matched and moved between two texts. Returns a widget."""
    deepest = SentenceEncoder.load().model.config.num_hidden_layers
    rows = [
        {"output": text_field("output", output)},
        {"reference": text_field("reference", reference)},
        {"layer": slider("layer", LAYERS["all-MiniLM-L6-v2"], 0, deepest, 1)},
    ]
    drawn = lru_cache(
        lambda output, reference, layer: alignment_picture(output, reference, layer=layer)
    )

    def draw(output, reference, layer):
        return Picture(
            cut_note(output, reference) + drawn(first_part(output), first_part(reference), layer)
        )

    return explorer("Which word is which word?", rows, draw, slow=("output", "reference", "layer"))


def content_explorer(
    source: str = "The clinic moved its vaccination desk to the ground floor.",
    output: str = "Great news: the clinic's vaccination desk is now on the top floor!",
    style: str = "positive",
):
    """An explorer of what a rewrite kept of its source, and which words say so. Returns a widget."""
    rows = [
        {"source": text_field("source", source)},
        {"output": text_field("output", output)},
        {"style": text_field("style", style)},
    ]
    explained = lru_cache(
        lambda source, output, style: style_aware_content(
            [source], [output], style or "the same"
        ).explain(0)
    )

    def draw(source, output, style):
        return Picture(
            cut_note(source, output) + explained(first_part(source), first_part(output), style)
        )

    return explorer("Which words cost content?", rows, draw, slow=("source", "output", "style"))
