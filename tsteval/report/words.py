"""Coloured words, edited spans, flows of mass, words and their partners, the road of the course"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from markupsafe import Markup
from numpy.typing import ArrayLike

from tsteval.report.markup import (
    BLUE,
    FAINT,
    GREY,
    HALO,
    INK,
    SHOWN_BARS,
    VERMILION,
    Picture,
    heading,
    isolated,
    label,
    line,
    shortened,
    svg,
    table,
    tag,
)

from ..core.checks import InputError, check_choice, check_equal_lengths

SHOWN_WORDS = 320  # longer texts are drawn up to here


def coloured_words(
    text: str | Sequence[str],  # a text, or its W words, which are then set one space apart
    # (start, end) of each of the W words in the text; None where words are given
    spans: Sequence[tuple[int, int]] | None,
    scores: ArrayLike,  # a number for each word; NaN leaves a word uncoloured
    *,
    marked: Iterable[int] = (),  # places of the words to strike through
    title: str = "",  # stands above the text
    strongest: float
    | None = None,  # the size of a score that gets the full colour; None: the largest of the text
    underlined: Iterable[int] = (),  # places of the words to underline with a solid line
    # of what pushes towards and away: orange and blue | green and red | blue, which leaves what pushes towards white
    palette: str = "orange and blue",
) -> Picture:
    """A text with every word on a ground that shows its number.

    Raises: InputError if there are not as many scores as words.
    """
    if not isinstance(text, str):
        ends = np.cumsum([len(word) + 1 for word in text], dtype=int)
        spans = [(int(end) - len(word) - 1, int(end) - 1) for word, end in zip(text, ends)]
        text = " ".join(text)
    spans = spans or []
    numbers = np.asarray(scores, dtype=float).tolist()
    check_equal_lengths(words=spans, scores=numbers)
    check_choice(palette, "palette", _PALETTES)
    marks = dict.fromkeys(underlined, "underline 2px") | dict.fromkeys(marked, "line-through 2px")
    parts = []
    at = 0
    largest = (
        strongest or max((abs(score) for score in numbers if np.isfinite(score)), default=0) or 1
    )
    for place, ((start, end), score) in enumerate(zip(spans[:SHOWN_WORDS], numbers)):
        parts += [
            text[at:start],
            _ground(text[start:end], score, largest, marks.get(place), palette),
        ]
        at = end
    rest = text[at:] if len(spans) <= SHOWN_WORDS else " …"
    return Picture(
        (heading(title) if title else Markup(""))
        + tag("p", tag("bdi", *parts, rest), style="margin:2px 0 8px")
    )


_PALETTES = {
    "orange and blue": ("230,159,0", "86,180,233"),
    "green and red": ("0,158,115", "213,94,0"),
    "blue": ("255,255,255", "86,180,233"),
}


def _ground(word: str, score: float, largest: float, mark: str | None, palette: str) -> Markup:
    towards, away = _PALETTES[palette]
    colour, decoration = (away, "underline dotted") if score < 0 else (towards, "none")
    strength = min(abs(score) / largest, 1) if np.isfinite(score) else 0
    return tag(
        "span",
        word,
        title=f"{score:+.3f}" if np.isfinite(score) else "no score",
        style=f"background-color:rgba({colour},{strength:.2f});padding:0 2px;"
        f"text-decoration:{mark or decoration}",
    )


_EDITS = {
    "del": f"background-color:#fbe3d6;text-decoration:line-through 2px {VERMILION}",
    "ins": f"background-color:#d9ecf7;text-decoration:underline 2px {BLUE}",
}


def edited_text(
    text: str,
    spans: Sequence[tuple[int, int]],  # (start, end) of what was edited, ascending
    kind: str,  # del: it was dropped; ins: it is new
) -> Picture:
    """A text with its edited words marked."""
    check_choice(kind, "kind", _EDITS)
    parts = []
    at = 0
    for start, end in spans:
        parts += [text[at:start], tag(kind, text[start:end], style=_EDITS[kind])]
        at = end
    return Picture(tag("bdi", *parts, text[at:]))


def edited_pair(
    source: str,
    output: str,
    source_spans: Sequence[tuple[int, int]],  # of `edited_spans`: what was dropped from the source
    output_spans: Sequence[tuple[int, int]],  # what is new in the output
    *,
    references: Sequence[str] = (),  # shown below, unmarked
    title: str = "",
) -> Picture:
    """A source and an output below each other, with what was dropped and what is new."""
    rows = [
        ["source", edited_text(source, source_spans, "del")],
        ["output", edited_text(output, output_spans, "ins")],
    ]
    return Picture(
        table(["", ""], rows + [["reference", isolated(text)] for text in references], title)
    )


_HEIGHT = 200
_GAP = 16  # pixels for all of the mass, and between neighbours


def transport_flow(
    plan: ArrayLike,  # (C, D) mass carried from class i to class j, >= 0
    # names of the classes, or two lists of names where the sides differ; None: their numbers
    labels: Sequence | None = None,
    # (C, D) cost of moving one unit; written beside the mass, and their sum of products below
    cost: ArrayLike | None = None,
) -> Picture:
    """A plan of transport as bands from its heaps at the left to its holes at the right.

    Raises: InputError if the plan is no table of masses, or labels or cost do not fit it.
    """
    flow, names = _checked_plan(plan, labels, cost)
    total = float(flow.sum()) or 1.0
    masses = [flow.sum(axis=1), flow.sum(axis=0)]
    heaps = [_stack(side, total) for side in masses]
    bands, numbers, narrow = _bands(flow / total, flow, heaps, cost)
    moves = [
        f"{names[0][i]} to {names[1][j]} {flow[i, j]:.2f}" for i, j in np.argwhere(flow > 1e-9)
    ]
    drawing = svg(
        334,
        20 + _HEIGHT + _GAP * max(flow.shape),
        "flow of mass from p to q: " + ", ".join(moves),
        *(
            part
            for side in (0, 1)
            for part in _ends(heaps[side], masses[side], total, names[side], side)
        ),
        *bands,
        *numbers,
    )
    below = [
        f"not written on its band: {shortened(names[0][i], 14)} to {shortened(names[1][j], 14)} {flow[i, j]:.2g}"
        for i, j in narrow
    ]
    below += (
        [] if cost is None else [f"cost {float((flow * np.asarray(cost, dtype=float)).sum()):.3f}"]
    )
    return Picture(tag("div", drawing, *(tag("div", isolated(text)) for text in below)))


def _checked_plan(plan, labels, cost) -> tuple[np.ndarray, tuple[list[str], list[str]]]:
    plan = np.asarray(plan, dtype=float)
    if plan.ndim != 2 or not plan.size or not np.isfinite(plan).all() or plan.min() < 0:
        raise InputError(f"plan must be a table of masses of 0 or more, got shape {plan.shape}")
    if cost is not None and np.shape(cost) != plan.shape:
        raise InputError(f"cost has shape {np.shape(cost)}, but the plan has {plan.shape}")
    if labels is None:
        names = tuple([f"class {place}" for place in range(1, size + 1)] for size in plan.shape)
    else:
        names = (labels, labels) if all(isinstance(name, str) for name in labels) else tuple(labels)
    if len(names) != 2 or tuple(map(len, names)) != plan.shape:
        raise InputError(
            f"labels must name the {plan.shape[0]} classes at the left and the {plan.shape[1]} at the "
            f"right"
        )
    return plan, (list(names[0]), list(names[1]))


def _stack(masses: np.ndarray, total: float) -> np.ndarray:
    """The upper edges of heaps that stand below each other."""
    heights = _HEIGHT * masses / total
    return 22 + np.cumsum(heights + _GAP) - heights - _GAP


def _ends(
    tops: np.ndarray, masses: np.ndarray, total: float, names: list[str], side: int
) -> list[Markup]:
    """The heaps at the left (side 0) or the holes at the right (side 1), with names and masses."""
    anchor, at, x = (("end", 98, 102), ("start", 236, 216))[side]
    parts = [label(x + 8, 12, ("from", "to")[side], "middle", fill=FAINT)]
    for top, share, mass, name in zip(tops, masses / total, masses, names):
        parts += [
            tag(
                "rect",
                x=x,
                y=round(float(top), 1),
                width=16,
                height=round(max(_HEIGHT * float(share), 0.5), 1),
            ),
            label(at, top + _HEIGHT * share / 2 + 4, f"{shortened(name, 11)}: {mass:.2f}", anchor),
        ]
    return parts


def _bands(shares: np.ndarray, plan: np.ndarray, heaps: list[np.ndarray], cost):
    """Bands, the numbers on them, and the moves whose band is too narrow for one."""
    bands = []
    numbers = []
    narrow = []
    starts, ends = (tops.copy() for tops in heaps)
    for i, j in np.argwhere(plan > 1e-9):
        thickness = _HEIGHT * shares[i, j]
        bands.append(_band(starts[i], ends[j], thickness, moves=i != j))
        text = f"{plan[i, j]:.2f}" + (
            "" if cost is None or i == j else f" × {np.asarray(cost)[i, j]:g}"
        )
        if thickness >= 12:
            numbers.append(label(122, starts[i] + thickness / 2 + 4, text, **HALO))
        else:
            narrow.append((i, j))
        starts[i] += thickness
        ends[j] += thickness
    return bands, numbers, narrow


def _band(left: float, right: float, thickness: float, moves: bool) -> Markup:
    path = (
        f"M118 {left:.1f}C167 {left:.1f} 167 {right:.1f} 216 {right:.1f}V{right + thickness:.1f}"
        f"C167 {right + thickness:.1f} 167 {left + thickness:.1f} 118 {left + thickness:.1f}Z"
    )
    colour = VERMILION if moves else GREY
    return tag(
        "path",
        d=path,
        fill=colour,
        fill_opacity=0.45 if moves else 0.2,
        stroke=colour,
        stroke_dasharray="5 3" if moves else "none",
    )


def linked_words(
    left: Sequence[str],  # M words of one text
    right: Sequence[str],  # N words of the other
    links: Mapping[
        tuple[int, int], float
    ],  # place at the left, place at the right -> weight in 0..1
    *,
    alt: str,  # what the drawing shows, for those who cannot see it
    names: tuple[str, str] = ("output", "reference"),
    # a note for each word of the left and of the right text, or none
    notes: tuple[Sequence[str], Sequence[str]] = ((), ()),
) -> Picture:
    """Words of two texts with lines between partners. Raises: InputError for a link to a word that is not there."""
    if odd := [
        link for link in links if not (0 <= link[0] < len(left) and 0 <= link[1] < len(right))
    ]:
        raise InputError(
            f"there is no pair of words {odd[0]} among {len(left)} and {len(right)} words"
        )
    sides = (left[:SHOWN_BARS], right[:SHOWN_BARS])
    height = 26 + 20 * min(max(len(left), len(right), 1), SHOWN_BARS)
    joined = {link: weight for link, weight in links.items() if max(link) < SHOWN_BARS}
    lines = [
        line(
            130,
            27 + 20 * i,
            200,
            27 + 20 * j,
            *((GREY, "none") if left[i] == right[j] else (VERMILION, "5 3")),
            width=round(1 + 5 * float(np.clip(weight, 0, 1)), 1),
        )
        for (i, j), weight in joined.items()
    ]
    parts = [
        label(x, 11, name, anchor, fill=FAINT)
        for x, name, anchor in zip((124, 206), names, ("end", "start"))
    ]
    for x, words, own, anchor in zip((124, 206), sides, notes, ("end", "start")):
        for place, word in enumerate(words):
            note = f" {own[place]}" if place < len(own) else ""
            text = (
                (f"{shortened(word, 14)}{note}")
                if anchor == "start"
                else f"{note} {shortened(word, 14)}".strip()
            )
            parts.append(label(x, 31 + 20 * place, text, anchor))
    pairs = ", ".join(f"{left[i]} with {right[j]}" for i, j in joined)
    return Picture(svg(300, height, f"{alt}: {pairs or 'no pair'}", *lines, *parts))


ROAD = {
    "text": "What are\nthe words?",
    "bleu": "Does it match\na reference?",
    "rouge": "Does it cover\nthe reference?",
    "ngram": "How likely\nis a word?",
    "ameliorations": "Can counts of words\njudge a sentence?",
    "fluency": "Does it\nread well?",
    "style": "Which style\nis it in?",
    "sti": "How far did\nthe style move?",
    "attribution": "Which words\ncarry the style?",
    "cps": "Is the content\nstill there?",
    "overlap": "What do two texts\nhave in common?",
    "alignment": "Which word is\nwhich word?",
    "content": "Did only the\nstyle change?",
    "rewriting": "Who writes\nthe outputs?",
    "evaluation": "How good is\nthe system?",
    "differences": "Is one really\nbetter?",
    "agreement": "Do the metrics\nfollow people?",
    "estimation": "What do a few\nratings tell?",
    "judge": "Can a model\nbe the judge?",
    "surface": "Do links answer, is\nit easy to read?",
    "tone": "Is it rude,\nis it formal?",
    "answers": "Did it answer\nthe question?",
    "grounded": "Does it keep\nto its input?",
    "scale": "What of a\nmillion outputs?",
}


def draw_road(
    here: str
    | None = None,  # a key of `ROAD`, drawn as the stop that the reader has reached; None marks no stop
) -> Picture:  # six stops a row
    """Draw the course as a road of chapters and mark one of them.

    Raises: InputError (a ValueError) for a stop that is not on the road.
    """
    if here is not None:
        check_choice(here, "the stop", ROAD)
    row = 6
    wide = 140
    tall = 86
    rows = -(-len(ROAD) // row)
    bends = f"H{row * wide - 20}q14 0 14 14v28q0 14-14 14H20q-14 0-14 14v2q0 14 14 14" * (rows - 1)
    last = wide * ((len(ROAD) - 1) % row + 0.5)
    parts = [
        tag(
            "path",
            d=f"M{wide / 2:g} 20{bends}H{last:g}",
            fill="none",
            stroke="#bbb",
            stroke_width=2,
        )
    ]
    for place, (stop, question) in enumerate(ROAD.items()):
        x = wide * (place % row + 0.5)
        y = 20 + tall * (place // row)
        reached = stop == here
        weight = {"font_weight": "bold"} if reached else {}
        parts += [
            tag("circle", cx=x, cy=y, r=12, fill=VERMILION if reached else "#fff", stroke=FAINT),
            label(x, y + 5, place + 1, "middle", font_size=14, fill=INK, **weight),
        ]
        parts += [
            label(x, y + 28 + 16 * line_number, part, "middle", font_size=14, **weight, **HALO)
            for line_number, part in enumerate(question.split("\n"))
        ]
    questions = [" ".join(question.split()) for question in ROAD.values()]
    alt = "the road of the course: " + " ".join(
        f"{place} {text}" for place, text in enumerate(questions, 1)
    )
    marked = f" You are at {list(ROAD).index(here) + 1}, {here}." if here else ""
    return Picture(svg(row * wide, tall * rows - 14, alt + marked, *parts))


def mark_ngrams(
    candidate: list[str],  # tokens
    references: list[list[str]],  # tokens of each reference
    order: int,  # length of the n-grams, >= 1
) -> tuple[
    list[str], list[list[str]]
]:  # a mark for each n-gram of the candidate, and of each reference
    """Mark n-grams: matched, clipped (the references have it less often) or missed (the other side lacks it)."""
    windows = [
        [tuple(tokens[at : at + order]) for at in range(len(tokens) - order + 1)]
        for tokens in (candidate, *references)
    ]
    counts = [Counter(window) for window in windows]
    allowed: Counter[tuple] = Counter()
    for count in counts[1:]:
        allowed |= count  # the most that any reference has
    return _mark(windows[0], allowed, "clipped"), [
        _mark(window, counts[0], "missed") for window in windows[1:]
    ]


def _mark(ngrams: list[tuple], allowed: Counter, beyond: str) -> list[str]:
    seen = Counter[tuple]()
    marks = []
    for ngram in ngrams:
        seen[ngram] += 1
        marks.append(
            "missed"
            if not allowed[ngram]
            else "matched"
            if seen[ngram] <= allowed[ngram]
            else beyond
        )
    return marks


def mark_common(
    candidate: list[str],  # tokens
    reference: list[str],  # tokens
) -> tuple[list[str], list[str]]:  # matched or missed, for each token of either text
    """Mark the words of one longest common subsequence. Source: rapidfuzz, for its speed."""
    from rapidfuzz.distance import LCSseq

    numbers = {token: place for place, token in enumerate(dict.fromkeys([*candidate, *reference]))}
    sides = [["missed"] * len(tokens) for tokens in (candidate, reference)]
    for block in LCSseq.opcodes(
        *([numbers[token] for token in tokens] for tokens in (candidate, reference))
    ).as_matching_blocks():
        for marks, start in zip(sides, (block.a, block.b)):
            marks[start : start + block.size] = ["matched"] * block.size
    return sides[0], sides[1]


_SHOWN_TOKENS = 80  # longer texts are marked up to here; their scores are those of the whole text
MARKS = {
    "matched": f"border:2px solid {BLUE};background:#e3f0f8",
    "clipped": f"border:2px dashed {VERMILION}",
    "missed": f"border:2px dotted {GREY};color:#555;text-decoration:line-through",
}


def chips(
    tokens: Sequence[str],
    marks: Sequence[str],  # of `MARKS`, one for each n-gram of the tokens
    order: int = 1,  # length of the n-grams
) -> Markup:
    """The n-grams of a text with their marks."""
    chip = (
        "display:inline-block;border-radius:4px;padding:0 4px;margin:1px 3px;overflow-wrap:anywhere"
    )
    drawn = [
        tag(
            "span",
            isolated(" ".join(tokens[at : at + order])),
            style=f"{chip};{MARKS[mark]}",
            title=mark,
        )
        for at, mark in enumerate(marks[:_SHOWN_TOKENS])
    ]
    return tag(
        "span",
        *(part for one in drawn for part in (one, " ")),
        f" and {len(marks) - _SHOWN_TOKENS} more" if len(marks) > _SHOWN_TOKENS else "",
    )


def legend(
    *names: str,  # of `MARKS`; none: all
) -> Markup:
    """What the borders mean."""
    return tag(
        "p",
        *(
            tag(
                "span",
                name,
                style=f"border-radius:4px;padding:0 4px;margin-right:10px;{MARKS[name]}",
            )
            for name in names or MARKS
        ),
    )
