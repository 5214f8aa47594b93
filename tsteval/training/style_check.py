"""A style model is asked to order what is known to be in order, before its scores are believed"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from ..core.metric import Note
from ..models.classifier import CHECK, StyleClassifier, find_label
from ..models.roles import Models
from ..tables.pairs import twins
from .calibration import confidence_of

_STYLES = {
    "neutral": "neutrality",
    "subjective": "subjectivity",
    "formal": "formality",
    "informal": "informality",
    "positive": "positivity",
    "negative": "negativity",
    "polite": "politeness",
    "impolite": "impoliteness",
    "simple": "simplicity",
    "plain": "plainness",
    "toxic": "toxicity",
    "casual": "casualness",
}


def style_name(
    labels: Iterable[str],  # one label of a style classifier, or several
) -> str:
    """The styles as nouns where there is one, such as neutrality; in the order given, each once."""
    return "/".join(
        dict.fromkeys(
            _STYLES.get(label.lower(), label)
            for label in ([labels] if isinstance(labels, str) else labels)
        )
    )


Z = 1.959963984540054  # 97.5% of a normal distribution lies below


def wilson_interval(
    share: float,  # of the successes, 0..1
    n: int,  # how many there were of both kinds, >= 1
) -> tuple[float, float]:
    """The 95% interval of a share that is honest for few and for extreme ones: it holds the true share in 95% of cases
    on average over shares, and in 91% for a share of .95 and ten cases (tests/RATES.md). Source: Wilson 1927."""
    middle = share + Z * Z / (2 * n)
    room = Z * math.sqrt(share * (1 - share) / n + Z * Z / (4 * n * n))
    low, high = ((middle + side * room) / (1 + Z * Z / n) for side in (-1, 1))
    return min(max(low, 0.0), share), max(min(high, 1.0), share)


MOST = 500  # sources that are looked at
_FEWEST = 4  # pairs; of fewer the interval holds one half whatever the order


@dataclass(frozen=True)
class PairOrder:
    """How often a style model prefers the reference to its source."""

    share: float  # of sources, 0..1
    low: float  # ends of its 95% interval
    high: float
    n: int  # sources that have a reference which differs from them
    by_length: (
        float  # share that the length of the texts alone would order, in its better direction
    )


LEAST = 20  # pairs put aside, from which on a model of one's own may be believed


def passes(
    order: PairOrder,
) -> bool:
    """Whether pairs show that a model knows the style: enough of them, and the lower end of its share above a coin's and
    above that of length."""
    return order.n >= LEAST and order.low > max(0.5, order.by_length)


def order_aside(
    classifier: StyleClassifier,
    sentences: pd.DataFrame,  # text, label, pair: of pairs that it was not trained on, source and target
) -> PairOrder:
    """How often it prefers the target of a pair to its source. Of labelled texts there are no pairs, and n is 0."""
    first, second = twins(sentences)
    if not first:
        return PairOrder(0.0, 0.0, 1.0, 0, 0.0)
    texts = sentences.text.to_numpy()
    target = classifier.predict_proba(texts)[:, 1]
    sources, targets = texts[first], texts[second]
    longer = [len(after) - len(before) for before, after in zip(sources, targets)]
    return pair_order(target[first], target[second], longer, pd.factorize(sources)[0])


def check_record(
    order: PairOrder,
) -> dict[str, float]:  # the numbers of CHECK
    """What a model of one's own keeps of its check."""
    return dict(
        zip(CHECK, (order.n, order.share, order.low, order.high, order.by_length), strict=True)
    )


def check_sentence(
    order: PairOrder,  # on pairs put aside
    name: str,  # of the model
) -> str:
    """Whether a model of one's own is a judge yet, and what to do."""
    if not order.n:
        return (
            f"{name} is no judge yet: nothing was put aside that shows whether it knows the style. Score it on outputs "
            f"with references of {LEAST} sources or more; until it passes there, nothing is called better by it."
        )
    share = (
        f"it orders {_percent(order.share)} of {order.n} pairs put aside rightly (95% interval {_percent(order.low)} to "
        f"{_percent(order.high)}; a coin 50%, length alone {_percent(order.by_length)})"
    )
    if passes(order):
        return f"{name} knows the style: {share}."
    if order.n < LEAST:
        return (
            f"{name} is no judge yet: {share}, and {LEAST} pairs are the fewest that show it. Until it passes on so many, "
            f"nothing is called better by it: put more pairs aside."
        )
    remedy = (
        "add pairs to learn from, or put more aside"
        if order.by_length < 0.9
        else "length alone orders so many of these pairs that none can show more; put pairs aside in which the text of "
        "the style is sometimes the longer and sometimes the shorter one"
    )
    return (
        f"{name} is no judge yet: {share}, and the interval does not lie above both. Until it does, nothing is called "
        f"better by it: {remedy}."
    )


def pair_order(
    before,  # (P,) probability of the target style in the source of each pair
    after,  # (P,) in the reference
    longer,  # (P,) above 0 where the reference is longer, below 0 where it is shorter, 0 where neither
    source,  # (P,) number of the source; those of one source count together
) -> PairOrder:
    """Shares of ordered pairs, with the interval."""
    votes = pd.DataFrame(
        {
            "model": 0.5 + 0.5 * np.sign(np.subtract(after, before)),
            "length": 0.5 + 0.5 * np.sign(longer),
        }
    )
    shares = votes.groupby(np.asarray(source)).mean()
    by_length = float(shares.length.mean())
    share = float(shares.model.mean())
    n = len(shares)
    return PairOrder(share, *wilson_interval(share, n), n, max(by_length, 1 - by_length))


def _known_pairs(table: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """source, style, references (those that differ from the source) of at most MOST sources, and how many there are in
    all."""
    grouped_references: dict[tuple[str, str], dict[str, None]] = {}
    for source, style, references in zip(table.source, table.target_style, table.references):
        grouped_references.setdefault((source, style), {}).update(
            dict.fromkeys(text for text in references if text != source)
        )
    rows = [(*key, tuple(references)) for key, references in grouped_references.items()]
    rows = [row for row in rows if row[2]] or rows  # where some have references, those
    places = (
        np.unique(np.linspace(0, len(rows) - 1, min(len(rows), MOST)).round().astype(int))
        if rows
        else []
    )
    return pd.DataFrame(
        [rows[place] for place in places], columns=["source", "style", "references"]
    ), len(rows)


_FAR = 0.5  # standard deviations of the validation texts


def is_far(
    here: dict[str, float],  # texts, mean and spread of the confidence, from `confidence_of`
    validation: dict[str, float],  # the same of the validation texts
) -> bool:
    """Whether the confidence here is far from that on validation: by _FAR of its spread, and not by chance."""
    away = abs(here["mean"] - validation["mean"])
    error = math.sqrt(
        here["spread"] ** 2 / max(here["texts"], 1)
        + validation["spread"] ** 2 / max(validation["texts"], 1)
    )
    return away > _FAR * validation["spread"] and away > Z * error


def _percent(share: float) -> str:
    return f"{100 * share:.1f}%"


def _order_note(
    name: str,  # of the style model
    style: str,  # what it was asked for, see `style_name`
    order: PairOrder,
    of: int,  # sources that could have been looked at
) -> Note:
    """What the order of the pairs says of the style model."""
    looked = f"{order.n} of {of:,}" if of > order.n else f"{order.n}"
    summary = (
        f"it orders {_percent(order.share)} of {looked} source/reference pairs rightly (95% interval "
        f"{_percent(order.low)} to "
        f"{_percent(order.high)}; a coin 50%, length alone {_percent(order.by_length)})"
    )
    figures = {
        "style_model": name,
        "style": style,
        "pairs": order.n,
        "ordered": order.share,
        "low": order.low,
        "high": order.high,
        "ordered_by_length": order.by_length,
    }
    if order.n < _FEWEST:
        return Note(
            f"{style}: there are too few pairs ({order.n}) to tell whether {name} knows this style.",
            False,
            figures,
        )
    if order.high < 0.5:
        return Note(
            f"{style}: {name} orders these texts the wrong way round: {summary}. Check the target style, and "
            f"which side is the reference.",
            True,
            figures,
            f"reads the style by {name}, which orders these texts the wrong way round",
        )
    if order.low <= 0.5:
        return Note(
            f"{style}: {name} is not shown to know this style: {summary}. The interval holds one half, so its "
            f"scores of these outputs may "
            "mean nothing; give a style model that was made for them.",
            True,
            figures,
            f"reads the style by {name}, which is not shown to know this style",
        )
    if order.share < order.by_length:
        return Note(
            f"{style}: on these texts {name} does no better than length: {summary}. They do not show that it "
            f"knows this style.",
            True,
            figures,
            f"reads the style by {name}, which does no better than length on these texts",
        )
    if order.low <= order.by_length:
        return Note(
            f"{style}: {name} is not shown to order these texts better than their length does: {summary}. They "
            f"cannot tell whether it knows this style.",
            False,
            figures,
        )
    return Note(f"{style}: {name} knows this style: {summary}.", False, figures)


def _confidence_note(
    name: str,  # of the style model
    style: str,  # what it was asked for
    here: dict[str, float],  # from `confidence_of`, on these texts
    validation: dict[str, float] | None,  # the same on its validation texts; None: it does not say
    classes: int,  # of the model
) -> Note:
    """What the confidence says of the texts."""
    summary = f"{here['mean']:.2f} on {here['texts']} texts of this table"
    figures = {
        "style_model": name,
        "style": style,
        "texts": here["texts"],
        "confidence": here["mean"],
    }
    if validation is None:
        return Note(
            f"{style}: the mean confidence of {name} is {summary} (without a clue {1 / classes:.2f}); it does "
            f"not say how confident it was "
            "on its validation texts, so this could not be compared.",
            False,
            figures,
        )
    figures |= {
        "validation_texts": validation["texts"],
        "validation_confidence": validation["mean"],
        "validation_spread": validation["spread"],
    }
    summary += (
        f", and was {validation['mean']:.2f} on its {validation['texts']:,} validation texts (standard deviation "
        f"{validation['spread']:.2f})"
    )
    if is_far(here, validation):
        return Note(
            f"{style}: these texts are unlike those {name} was calibrated on: its mean confidence is {summary}. "
            f"Compare systems by it with "
            "care; a probability of its does not mean here what it meant there.",
            True,
            figures,
        )
    return Note(
        f"{style}: the mean confidence of {name} is {summary}. That is alike, though a wrong style need not show "
        f"in it.",
        False,
        figures,
    )


def _unproven(
    classifier: StyleClassifier,
    order: PairOrder | None,  # on the references of a table; None: there are none
) -> str:  # empty: it was not made by `tsteval train`, or its check passed
    """Why nothing is called better by a model of one's own. The table decides where it has pairs enough."""
    if classifier.check is None:
        return ""
    n, *figures, by_length = (classifier.check[name] for name in CHECK)
    aside = PairOrder(*figures, int(n), by_length)
    decides = order if order is not None and order.n >= LEAST else aside
    if passes(decides):
        return ""
    return f"is judged by {classifier.name}, which has not passed its check on {LEAST} pairs or more that were put aside"


def _with_doubt(
    note: Note,
    why: str,  # from `_unproven`
) -> Note:
    if not why or note.unfit:
        return note
    return replace(note, text=f"{note.text} The style {why}.", warning=True, unfit=why)


def style_notes(
    table: pd.DataFrame,  # checked: source, references, target_style
    classifier: StyleClassifier,
    **batch: Any,  # batch_size, perhaps
) -> tuple[Note, ...]:
    """Whether a style model knows the style of a table, as far as sources and references show it."""
    pairs, of = _known_pairs(table)
    if pairs.empty:
        return ()
    style = style_name(pairs["style"])
    links = [(row, text) for row, references in enumerate(pairs.references) for text in references]
    number = {
        text: place
        for place, text in enumerate(dict.fromkeys([*pairs.source, *(text for _, text in links)]))
    }
    probabilities = classifier.predict_proba(list(number), **batch)
    confidence = _confidence_note(
        classifier.name,
        style,
        confidence_of(probabilities),
        classifier.validation,
        len(classifier.labels),
    )
    if not links:
        note = Note(
            f"{style}: there are no references that differ from their sources, so it could not be checked "
            f"whether {classifier.name} knows "
            "this style. Human rewrites of some twenty sources, as references, would show it.",
            False,
            {"style_model": classifier.name, "style": style, "pairs": 0},
        )
        return _with_doubt(note, _unproven(classifier, None)), confidence
    rows, texts = (list(side) for side in zip(*links))
    target = np.array([find_label(label, classifier.labels) for label in pairs["style"]])[rows]
    before = probabilities[[number[pairs.source[row]] for row in rows], target]
    after = probabilities[[number[text] for text in texts], target]
    longer = [len(text) - len(pairs.source[row]) for row, text in links]
    order = pair_order(before, after, longer, rows)
    note = _order_note(classifier.name, style, order, of)
    return _with_doubt(note, _unproven(classifier, order)), confidence


def review_style(
    table: pd.DataFrame,  # checked: source, references, target_style
    models: Models,  # its role "style" is a `StyleClassifier`
    classifier: Any = None,  # a `StyleClassifier`, or the name of one; None: that of the role
) -> tuple[Note, ...]:
    """The `review` of a metric that asks the style model."""
    classifier = models.get("style", StyleClassifier, classifier)
    key = classifier.tag, tuple(zip(table.source, table.target_style, table.references))
    return models.once("style_review", key, lambda: style_notes(table, classifier, **models.batch))
