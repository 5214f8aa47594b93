"""Pictures of what two texts share: runs of characters, partners of tokens, the plan that moves words onto words"""

import re
from collections.abc import Mapping, Sequence

import numpy as np

from ..core.display import enumerated, number
from ..models.alignment import distances, paired_tokens, word_heaps, word_vectors
from ..models.base import Model
from .markup import Picture, answered, heading, table, tag
from .words import coloured_words, linked_words


def _shared_runs(
    text: str,
    other: str,
    order: int = 6,  # longest n-gram, >= 1
    # places of the characters of `text` that are no white space; the longest shared n-gram over each
) -> tuple[list[int], list[int]]:
    """For each character the longest n-gram of `text` that covers it and stands in `other` too; 0 where there is
    none."""
    places = [place for place, character in enumerate(text) if not character.isspace()]
    letters, others = ("".join(one.split()) for one in (text, other))
    longest = [0] * len(places)
    for n in range(1, order + 1):
        there = {others[start : start + n] for start in range(len(others) - n + 1)}
        for start in range(len(letters) - n + 1):
            if letters[start : start + n] in there:
                longest[start : start + n] = [n] * n
    return places, longest


def counted_picture(
    output: str,
    reference: str,
    order: int,  # longest n-gram of characters
) -> Picture:
    """Each character on a ground that is the darker, the longer the n-gram around it that both texts have."""
    pictures = []
    for name, text, other in (("output", output, reference), ("reference", reference, output)):
        runs: list[tuple[int, int, int]] = []  # start, end, length of the n-gram
        for place, longest in zip(*_shared_runs(text, other, order)):
            joins = bool(runs) and runs[-1][1:] == (place, longest)
            runs[-1 if joins else len(runs) :] = [
                (runs[-1][0] if joins else place, place + 1, longest)
            ]
        pictures.append(
            coloured_words(
                text,
                [run[:2] for run in runs],
                [run[2] for run in runs],
                title=name,
                strongest=order,
            )
        )
    return Picture(heading("What is counted") + pictures[0] + pictures[1])


def matched_picture(
    model: Model,
    output: str,
    reference: str,
    layer: int,  # of the hidden states
) -> Picture:
    """Each token of the output with its best partner and their cosine; marks are left out."""
    ((_, one, other),) = paired_tokens(model, [output], [reference], layer)
    names = [
        [
            token.removeprefix("##")
            for token in model.tokenizer.convert_ids_to_tokens(side.ids.tolist())
        ]
        for side in (one, other)
    ]
    best = one.vectors @ other.vectors.T
    left, right = (np.flatnonzero(~side.marks) for side in (one, other))
    links = {
        (row, int(np.searchsorted(right, best[token].argmax()))): float(best[token].max())
        for row, token in enumerate(left)
        if not other.marks[best[token].argmax()]
    }
    notes = [number(float(best[token].max()), 2) for token in left]
    drawing = linked_words(
        [names[0][token] for token in left],
        [names[1][token] for token in right],
        links,
        notes=(notes, ()),
        alt="each token of the output with its best partner",
    )
    return Picture(heading("What is matched") + drawing)


def moved_picture(
    model: Model,
    output: Sequence[str],  # words, at least one
    reference: Sequence[str],  # words, at least one
) -> Picture:
    """The cheapest plan from the words of one text to those of the other, and what each word pays."""
    import ot

    plain = [*output, *reference]
    lowered = [word.lower() for word in (*output, *reference)]
    if np.allclose(
        word_vectors(model, plain), word_vectors(model, lowered)
    ):  # the model does not see capitals
        output, reference = lowered[: len(output)], lowered[len(output) :]
    heaps = word_heaps([output, reference])
    vectors = word_vectors(model, heaps.words)
    orders = [
        np.argsort([text.index(heaps.words[place]) for place in places])
        for text, places in zip((output, reference), heaps.places)
    ]
    left, right = (
        places[order] for places, order in zip(heaps.places, orders)
    )  # in the order of the texts
    cost = distances(vectors[left], vectors[right]) * (left[:, None] != right)
    plan = ot.emd(*(shares[order] for shares, order in zip(heaps.shares, orders)), cost)
    links = {(int(i), int(j)): float(plan[i, j] / plan.max()) for i, j in np.argwhere(plan > 1e-9)}
    words = [[heaps.words[place] for place in places] for places in (left, right)]
    notes = [number(price, 2) for price in (plan * cost).sum(axis=1)]
    return Picture(
        heading("What is moved")
        + linked_words(*words, links, notes=(notes, ()), alt="what moves from word to word")
    )


WORD_OR_MARK = re.compile(r"\w+(?:[-'’]\w+)*|[^\w\s]")


def lowest_of_words(
    values: np.ndarray,  # (T,) a value for each token
    tokens: Sequence[
        tuple[int, int]
    ],  # T pairs: where a token begins and ends in the text, in its order
    words: Sequence[tuple[int, int]],  # W pairs: the same for words
) -> np.ndarray:  # (W,) 0 for a word without tokens
    """For each word the lowest value of the tokens that share a character with it."""
    starts, ends = np.array(tokens, dtype=int).reshape(-1, 2).T
    first = np.searchsorted(ends, [start for start, _ in words], side="right")
    last = np.searchsorted(starts, [end for _, end in words], side="left")
    return np.array([values[i:j].min() if j > i else 0.0 for i, j in zip(first, last)])


_FUNCTION_WORDS = """
a about above after again all also although am an and another any are as at be because
been before being below between both but by can could did do does doing down during each
either else even ever every few for from further get gets got had has have having he her
here hers herself him himself his how however i if in into is it its itself just let may
me might mine more most much must my myself now of off on once one only onto or other our
ours ourselves out over own per quite rather really same shall she should since so some
such than that the their theirs them themselves then there these they this those though
through to too under until up upon us very was we were what when where whether which while
who whom whose why will with would yet you your yours yourself
"""
FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())


def is_content(
    word: str,
) -> bool:
    """Whether a word carries more than grammar."""
    return word[:1].isalnum() and word.lower() not in FUNCTION_WORDS


_SHOWN_WEAK = 3  # words named


def weakest_words(
    text: str,
    links,  # of the text, a `WordLinks`
) -> list[tuple[str, float]]:  # word, and its support in nats
    """The content words with the lowest support, the lowest first."""
    order = [place for place in np.argsort(links.support, kind="stable") if links.is_content[place]]
    return [(text[slice(*links.spans[place])], float(links.support[place])) for place in order]


def _likelier(
    support: float,  # nats
) -> str:
    """How much likelier the other text makes a word."""
    times = np.exp(abs(support))
    size = f"{times:,.0f}" if times >= 10 else f"{times:.1f}"
    return f"{size} times {'likelier' if support > 0 else 'less likely'}"


def weak_links_picture(
    sides: Sequence[
        tuple[str, str, object]
    ],  # title, text and its `WordLinks`, of the output and of the source
    evidence: Mapping[str, tuple[float, float]],  # name -> its value, and what it counts for
    results: Mapping[str, float],  # name -> number, the lines below the evidence
) -> Picture:
    """Two texts with their weak words marked, and what made the score; its last line is what the sentence tells."""
    worst = max(0.1, *(-links.weakest(content_only=True) for *_, links in sides))
    texts = [
        coloured_words(
            text,
            links.spans,
            np.where(links.is_content, links.support, np.nan),
            title=title,
            strongest=worst,
            palette="blue",
        )
        for title, text, links in sides
    ]
    weakest = {title.split(":")[0]: weakest_words(text, links) for title, text, links in sides}
    named = [
        f"\u201c{words[0][0]}\u201d in the {side} ({_likelier(words[0][1])})"
        for side, words in weakest.items()
        if words
    ]
    score, value = list(results.items())[-1]
    least = f"; supported least: {enumerated(named)}" if named else ""
    sentence = f"{score.capitalize()} {number(value, 2)}, where 1 is surely kept{least}."
    lines = [
        [side, ", ".join(f"{word} ({_likelier(support)})" for word, support in words[:_SHOWN_WEAK])]
        for side, words in weakest.items()
    ]
    rows = [
        [name.replace("_", " "), number(value, 2), f"{counts:+.2f}"]
        for name, (value, counts) in evidence.items()
    ]
    rows += [[name, number(value), ""] for name, value in results.items()]
    return answered(
        sentence,
        *texts,
        tag("p", "The bluer a word, the less likely the other text makes it."),
        table(["", ""], lines, "Least supported words, and how likely the other text makes them"),
        table(
            ["evidence", "value", "counts"],
            rows,
            "What made the score: what counts above 0 speaks for kept facts, and content is the root of facts "
            "kept times cosine",
        ),
    )
