"""What the comparisons of systems say, question by question, in sentences made from the numbers"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..core.display import enumerated, number, printable
from ..core.metric import QUESTIONS
from ..core.resample import FEWEST

BETTER = "better"
WORSE = "worse"
EQUAL = "equal"
OPEN = "not told apart"
FEW = "too few rows"
HIGHER = "higher"  # where no end is better, or none may be called so
LOWER = "lower"
VERDICTS = (BETTER, WORSE, HIGHER, LOWER, EQUAL, OPEN, FEW)
LEVEL = 0.05  # of Holm's p-value, at which two systems are told apart

CLAIMS = {  # question -> what the better of two systems does, before "than"
    "style": "moved further towards the target style",
    "content": "keeps more of the source",
    "naturalness": "reads more naturally",
    "reference": "is closer to the references",
}
_BETTER = "is better by "
_ASPECTS = {  # question -> in what that is
    "style": "the move towards the target style",
    "content": "what is kept of the source",
    "naturalness": "how naturally they read",
    "reference": "closeness to the references",
}


def verdict(
    row: Mapping[str, Any],  # of a comparison: a, b, difference, low, high, n, p_holm
    better: str,  # higher | lower | neither: which end of the score may be called good
) -> str:  # BETTER, WORSE, EQUAL, OPEN, FEW; HIGHER or LOWER where no end may
    """What a comparison says of its first system."""
    figures = [row[name] for name in ("difference", "low", "high")]
    if figures == [0, 0, 0]:
        return EQUAL
    if row["n"] < FEWEST or row["difference"] is None:
        return FEW
    if row["difference"] == 0 or row["p_holm"] is None or not row["p_holm"] <= LEVEL:
        return OPEN
    above = row["difference"] > 0
    if better == "neither":
        return HIGHER if above else LOWER
    return BETTER if above == (better == "higher") else WORSE


@dataclass(frozen=True)
class Conclusion:
    """What is known about one score."""

    question: str  # of QUESTIONS, or empty for a question of its own
    column: str  # the score that answers it
    text: str  # a sentence or two
    leader: str = ""  # the system that is better than all others; empty: none is shown to be
    settled: bool = False  # whether anything was told apart
    judged: bool = True  # whether systems were compared by it, and it may say which is better
    heading: str = ""  # how the score is called


@dataclass(frozen=True)
class Score:
    """A column that stands for its metric, as conclusions read it."""

    question: str
    column: str
    heading: str
    better: str  # higher | lower | neither: which end is good
    digits: int = 3  # places after the point
    # why it may not say which system is better, as it stands behind "since it"; empty: it may
    unfit: str = ""

    @property
    def good_end(self) -> str:
        """Which end may be called better: higher, lower or neither."""
        return "neither" if self.unfit else self.better

    @property
    def claim(self) -> str:
        """What the better of two systems does, before "than"."""
        return CLAIMS.get(self.question, f"is better by {self.heading}")


def p_text(
    value: float | None,
) -> str:  # such as "p = .034"
    """A p-value as papers write it."""
    if value is None:
        return "p unknown"
    rounded = f"{value:.3f}"  # as tables round it, so that a sentence says no other
    if rounded == "0.000":
        return "p < .001"
    return f"p = {rounded}".replace("0.", ".") if value < 1 else "p = 1"


def _name(system: str) -> str:
    return printable(" ".join(system.split()), 40)


def _lead(row: Mapping, digits: int) -> str:
    """The size of a difference with its interval, as a positive number."""
    ends = [row["difference"], row["low"], row["high"]]
    if row["difference"] < 0:
        ends = [None if end is None else -end for end in (ends[0], ends[2], ends[1])]
    size, low, high = (number(end, digits, missing="none") for end in ends)
    return f"{size} [{low}, {high}]" if None not in ends else size


def _chance(row: Mapping) -> str:
    return f"(Holm's {p_text(row['p_holm'])})"


def _with_ends(row: Mapping, digits: int) -> str:
    """A difference with its interval and sign."""
    value, low, high = (
        number(row[end], digits, missing="none") for end in ("difference", "low", "high")
    )
    return value if "none" in (low, high) else f"{value} [{low}, {high}]"


def _pair_sentence(row: Mapping, score: Score) -> str:
    """One comparison in words."""
    a = _name(row["a"])
    b = _name(row["b"])
    outcome = verdict(row, score.good_end)
    if outcome == EQUAL:
        return f"By {score.heading}, {a} and {b} score the same."
    if outcome in (FEW, OPEN):
        signed = f"{a} minus {b} is {_with_ends(row, score.digits)}"
        why = (
            f"from too few rows ({row['n']}) to tell"
            if outcome == FEW
            else f"which chance could do {_chance(row)}"
        )
        return f"By {score.heading}, {a} and {b} are not told apart: {signed}, {why}."
    size = f"by {_lead(row, score.digits)} {_chance(row)}"
    end = HIGHER if row["difference"] > 0 else LOWER
    if outcome in (HIGHER, LOWER):
        return f"The {score.heading} of {a} is {end} than that of {b} {size}."
    if outcome == WORSE:
        a, b, end = b, a, LOWER if end == HIGHER else HIGHER
    return f"{a} {score.claim} than {b}: its {score.heading} is {end} {size}."


def _best_sentence(values: Mapping[str, float], score: Score, compare: Callable) -> tuple[str, str]:
    """Who is better than all others, in words, and its name."""
    order = sorted(
        (name for name in values if values[name] is not None),
        key=lambda name: values[name],
        reverse=score.good_end == "higher",
    )
    if len(order) < 2:
        return "", ""
    best = order[0]
    end = "highest" if score.good_end == "higher" else "lowest"
    top = (
        f"By {score.heading}, no system is shown to be better than all others: {_name(best)} has the {end} "
        f"({number(values[best], score.digits)}), "
    )
    for other in order[1:]:
        row = compare(best, other)
        if row is None:
            return f"{top}and it was not compared with {_name(other)}.", ""
        outcome = verdict(row, score.good_end)
        if outcome == EQUAL:
            return f"{top}and {_name(other)} scores the same.", ""
        if outcome == WORSE:
            return (
                f"{top}but on the {row['n']} sources that both have {_name(other)} is better by "
                f"{_lead(row, score.digits)} {_chance(row)}."
            ), ""
        if outcome != BETTER:
            why = "(too few rows)" if outcome == FEW else _chance(row)
            return f"{top}and {_name(other)} is not told apart from it {why}.", ""
        if other == order[1]:
            nearest = row
    others = {2: "the other", 3: "both others"}.get(len(order), f"all {len(order) - 1} others")
    return (
        f"{_name(best)} {score.claim} than {others}: its {score.heading} is {score.good_end} than that of the "
        f"next, {_name(order[1])}, by {_lead(nearest, score.digits)} {_chance(nearest)}."
    ), best


def _with_table(rows: Sequence[Mapping], compare: Callable) -> Callable:
    """`compare`, but of two systems that the table compares what the table says, so that a pair has one p-value."""
    table = {}
    for row in rows:
        turned = {
            end: None if row[other] is None else -row[other]
            for end, other in (("difference", "difference"), ("low", "high"), ("high", "low"))
        }
        table[row["a"], row["b"]] = row
        table[row["b"], row["a"]] = {**row, **turned, "a": row["b"], "b": row["a"]}
    return lambda a, b: table[a, b] if (a, b) in table else compare(a, b)


_MOST = 3  # systems that are named of each kind


def _against(rows: Sequence[Mapping], score: Score) -> str:
    """The baseline, and how the other systems stand to it, in words."""
    parts = []
    for kind in VERDICTS:
        own = [row for row in rows if verdict(row, score.good_end) == kind]
        sized = kind in (BETTER, WORSE, HIGHER, LOWER)
        named = [
            _name(row["a"]) + (f" by {_lead(row, score.digits)}" if sized else "")
            for row in own[:_MOST]
        ]
        if len(own) > _MOST:
            named.append(f"{len(own) - _MOST} more")
        if own:
            parts.append(f"{kind}: {', '.join(named)}")
    return f"{_name(rows[0]['b'])}, {'; '.join(parts)}."


def conclude(
    score: Score,
    values: Mapping[str, float | None],  # system -> its score
    rows: Sequence[
        Mapping[str, Any]
    ],  # the comparisons of the other systems with the baseline, by this score
    # of two systems by this score, the first the better one by its number; None where they share no source
    compare: Callable[[str, str], Mapping[str, Any] | None],
) -> Conclusion:
    """What is known about one score, in words: what people would say only where the score is shown to follow them, and
    else what can be said of the score alone."""

    def said(
        text: str, leader: str = "", settled: bool = False, judged: bool = False
    ) -> Conclusion:
        return Conclusion(
            score.question, score.column, text, leader, settled, judged, score.heading
        )

    if len(values) == 1:
        ((system, value),) = values.items()
        return said(
            f"{score.heading}: {_name(system)} has {number(value, score.digits, missing='no score')}; one system "
            f"alone, so nothing is compared."
        )
    if not rows:
        return said(f"{score.heading}: not compared; the systems share no source.")
    compare = _with_table(rows, compare)
    settled = any(verdict(row, score.good_end) in (BETTER, WORSE, HIGHER, LOWER) for row in rows)
    best, leader = "", ""
    if len(values) == 2:
        text = _pair_sentence(rows[0], score)
        leader = {BETTER: rows[0]["a"], WORSE: rows[0]["b"]}.get(
            verdict(rows[0], score.good_end), ""
        )
    else:
        if score.good_end != "neither":
            best, leader = _best_sentence(values, score, compare)
        start = f"{best} Against" if best else f"By {score.heading}, against"
        text = f"{start} {_against(rows, score)}"
    if score.unfit:
        text = f"No verdict by {score.heading}, since it {score.unfit}. {text}"
    elif score.better == "neither" and settled:
        text += " Neither end of it is better."
    return said(text, leader, settled or bool(leader), not score.unfit)


_COPIED = ("content", "naturalness")  # questions that a copy answers well whatever the system does


def doubts(
    tallies: Iterable[Mapping[str, Any]],  # a system each, see `SystemScores.tallies`
    scores: Iterable[Score],
    conclusions: Iterable[Conclusion] = (),  # a score each
) -> list[str]:
    """What not to believe, for reasons that can be counted."""
    sentences = []
    keepers = {one.leader for one in conclusions if one.question == "content"}
    scores = list(scores)
    asked = [name for name in _COPIED if any(score.question == name for score in scores)]
    for row in tallies:
        name = _name(row["system"])
        if row["alike"]:
            sentences.append(f"{name}: all {row['outputs']:,} outputs are one and the same text.")
        copies = row["unchanged"]
        if copies and asked:
            sentences.append(
                f"{name}: {copies:,} of {row['outputs']:,} outputs equal their source. A copy keeps all that "
                f"the source says and reads as it reads, so its scores of {' and '.join(asked)} say "
                f"nothing good of it."
            )
        if row["system"] in keepers and row["shortened"] > row["outputs"] / 2:
            sentences.append(
                f"{name}: {row['shortened']:,} of {row['outputs']:,} outputs only leave words of their source "
                f"out. What stays counts as kept, whatever the words that went have said; read some outputs "
                f"before you believe that it keeps more."
            )
        if row["given"] and any(score.question == "reference" for score in scores):
            sentences.append(
                f"{name}: {row['given']:,} of {row['outputs']:,} outputs equal a reference, which nothing can "
                f"outdo when it is measured by that reference."
            )
        sentences += [
            f"{name}: {row['unscored'][score.column]:,} of {row['outputs']:,} outputs have no {score.heading}."
            for score in scores
            if row["unscored"].get(score.column)
        ]
    return sentences


def in_question_order(
    scores: Iterable[Score],
) -> list[Score]:
    """Scores by the question that they answer, questions of their own last."""
    places = {name: place for place, name in enumerate(QUESTIONS)}
    return sorted(scores, key=lambda score: places.get(score.question, len(places)))


def _headings(conclusions: Iterable[Conclusion]) -> str:
    return enumerated([conclusion.heading for conclusion in conclusions])


def _by_leader(conclusions: Sequence[Conclusion]) -> dict[str, list[Conclusion]]:
    leaders: dict[str, list[Conclusion]] = {}
    for conclusion in conclusions:
        leaders.setdefault(conclusion.leader, []).append(conclusion)
    return leaders


def _claim(aspect: str, own: list, silent: list) -> str:
    """What a leader is, and by which of the aspect's scores where others are silent."""
    claim = CLAIMS.get(aspect, "is better")
    if silent or aspect not in CLAIMS:
        claim += f" by {_headings(own)}"
    return claim + (f", not by {_headings(silent)}" if silent else "")


def _all_claims(claims: Sequence[str]) -> str:
    """One system's claims; "is better by" stands once before all scores of which nothing more is said."""
    scores = [claim for claim in claims if claim.startswith(_BETTER) and ", not by" not in claim]
    others = [claim for claim in claims if claim not in scores]
    by = [_BETTER + enumerated([claim.removeprefix(_BETTER) for claim in scores])] * bool(scores)
    return enumerated(others + by)


def overall(
    conclusions: Iterable[Conclusion],  # of two systems or more
) -> str:  # a sentence; empty if nothing was compared
    """Which system is better in what. A question whose scores do not agree is said to be open, score by score."""
    conclusions = list(conclusions)
    judged = [conclusion for conclusion in conclusions if conclusion.judged]
    groups: dict[str, list[Conclusion]] = {}
    for conclusion in judged:
        groups.setdefault(conclusion.question or conclusion.column, []).append(conclusion)
    won: dict[str, list[str]] = {}
    nobody = []
    split = []
    for name, group in groups.items():
        leaders = _by_leader(group)
        silent = leaders.pop("", [])  # by these nobody is best, which contradicts no one
        aspect = _ASPECTS.get(name, group[0].heading)
        if len(leaders) > 1:
            sides = [f"{_name(leader)} by {_headings(own)}" for leader, own in leaders.items()]
            split.append(
                f"in {aspect} the scores do not agree on which is best: {', '.join(sides)}"
            )
        elif leaders:
            ((leader, own),) = leaders.items()
            won.setdefault(leader, []).append(_claim(name, own, silent))
        elif any(conclusion.settled for conclusion in group):
            nobody.append(aspect)
    parts = [f"{_name(leader)} {_all_claims(claims)}" for leader, claims in won.items()]
    parts += split
    if nobody:
        parts.append(f"in {enumerated(nobody)} no system is shown to be better than all others")
    if judged and not parts:
        parts.append("no system is shown to be better")
    if unjudged := [conclusion for conclusion in conclusions if not conclusion.judged]:
        parts.append(f"no verdict by {_headings(unjudged)}")
    text = "; ".join(parts)
    return f"{text[:1] if won else text[:1].upper()}{text[1:]}." if text else ""


def unsettled(
    conclusions: Iterable[Conclusion],
) -> str:  # a sentence; empty if all is settled or nothing was compared
    """By which scores no system was told apart from the baseline."""
    names = [
        conclusion.heading
        for conclusion in conclusions
        if conclusion.judged and not conclusion.settled
    ]
    return f"Not told apart by {enumerated(names)}." if names else ""
