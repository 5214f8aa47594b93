"""Explorers of content preservation: what a mask leaves, which words are matched, and which cost content."""

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
from ..report.markup import Picture, answered, heading, isolated, side_by_side, tag
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
    covered = []
    for name, text in (("source", source), ("output", output)):
        places = [] if strategy == "none" else masked_places(text, threshold, unit)
        units = shown_units(text, unit)
        covered.append(f"{len(places)} of {len(units[1])} {unit}s of the {name}")
        parts += [
            coloured_words(
                *units,
                marked=places,
                title=name,
            ),
            tag(
                "p",
                "masked: ",
                isolated(mask_style(text, threshold, strategy, unit)),
                style="color:#444",
            ),
        ]
    value = float(curve[np.abs(THRESHOLDS - threshold).argmin()])
    headline = (
        f"{' and '.join(covered)} are covered. What is left has a masked CPS {value:.3f}; without a mask, as "
        f"evaluate takes it, {unmasked:.3f}."
    )
    drawing = curve_and_point(
        THRESHOLDS,
        curve,
        (threshold, value),
        y_label="content preservation score",
        x_label="threshold: share of the style that is masked",
    )
    return answered(headline, side_by_side(tag("div", *parts, style="max-width:560px"), drawing))


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
        "What is left without the style?",
        rows,
        draw,
        slow=("source", "output", "strategy", "unit"),
    )


def overlap_picture(
    output: str,
    reference: str,
    *,
    order: int = 6,  # longest n-gram of characters, >= 1
    tokenize: str = "13a",  # of METEOR's words
) -> Picture:
    """The n-grams of one pair counted and its words paired, with chrF and METEOR."""
    from nltk.stem.porter import PorterStemmer

    words = [[word.lower() for word in tokenizer(tokenize)(text)] for text in (output, reference)]
    pairs = align_words(*words, stem=PorterStemmer().stem)
    drawing = linked_words(*words, dict.fromkeys(pairs, 0.2), alt="the words that METEOR pairs")
    note = f"The darker a letter, the longer the run around it, up to {order}, that the other text has."
    parts = [counted_picture(output, reference, order) + tag("p", note)]
    if all(words):
        parts.append(heading(f"What is paired: in {count_chunks(pairs)} runs") + drawing)
    return answered(
        f"METEOR pairs {len(pairs)} of the output's {len(words[0])} words and marks with the reference's "
        f"{len(words[1])}, and gives {number(meteor([output], [reference], tokenize=tokenize)[0])}; chrF, of "
        f"runs of letters, is {number(chrf([output], [reference], char_order=order)[0])}.",
        side_by_side(*parts),
    )


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
    distance = word_movers_distance([output], [reference], encoder=encoder, tokenize=tokenize)[0]
    precision, recall, f1 = (number(bert_scores[name]) for name in ("precision", "recall", "f1"))
    return answered(
        f"BERTScore: the output's tokens are like their best partners by {precision} (precision), the "
        f"reference's by {recall} (recall), F1 {f1}. The words lie {number(distance)} apart (Word Mover's "
        f"Distance); 0 is the same words.",
        side_by_side(*parts),
    )


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

    return explorer("Which words mean the same?", rows, draw, slow=("output", "reference", "layer"))


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

    return explorer(
        "Did the rewrite change what it says?", rows, draw, slow=("source", "output", "style")
    )
