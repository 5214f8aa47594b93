"""What the comparisons of systems say, question by question, in sentences made from the numbers"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from ..core.display import number, printable
from ..core.metric import QUESTIONS
from ..core.resample import FEWEST

BETTER = "better"
WORSE = "worse"
EQUAL = "equal"
OPEN = "not told apart"
FEW = "too few rows"
OTHER = "differs"
UNFIT = "not judged"
LEVEL = 0.05  # of Holm's p-value, at which one system is called ahead


def verdict(
    row: Mapping[str, Any],  # of a comparison: a, b, difference, low, high, n, p_holm
    better: str,  # higher | lower | neither: which end of the score is good
    unfit: bool = False,  # whether the judge is not shown to know what it is asked
) -> str:  # BETTER, WORSE, EQUAL, OPEN, FEW, UNFIT, or OTHER where no end is good
    """What a comparison says of its first system."""
    if unfit:
        return UNFIT
    figures = [row[name] for name in ("difference", "low", "high")]
    if figures == [0, 0, 0]:
        return EQUAL
    if row["n"] < FEWEST or row["difference"] is None:
        return FEW
    if row["difference"] == 0 or row["p_holm"] is None or not row["p_holm"] <= LEVEL:
        return OPEN
    if better == "neither":
        return OTHER
    return BETTER if (row["difference"] > 0) == (better == "higher") else WORSE


@dataclass(frozen=True)
class Conclusion:
    """What is known about one score."""

    question: str  # of QUESTIONS, or empty for a question of its own
    column: str  # the score that answers it
    text: str  # a sentence or two
    leader: str = ""  # the system that is ahead of all others; empty: nobody is
    settled: bool = False  # whether anything was told apart
    judged: bool = True  # whether the score's judge may be believed here


@dataclass(frozen=True)
class Score:
    """A column that stands for its metric, as conclusions read it."""

    question: str
    column: str
    heading: str
    better: str  # higher | lower | neither
    digits: int = 3  # places after the point


def p_text(
    value: float | None,
) -> str:  # such as "p = .034"
    """A p-value as papers write it."""
    if value is None:
        return "p unknown"
    if value < 0.001:
        return "p < .001"
    return f"p = {value:.3f}".replace("0.", ".") if value < 1 else "p = 1"


def _name(system: str) -> str:
    return printable(" ".join(system.split()), 40)


def _lead(row: Mapping, digits: int) -> str:
    """The size of a difference with its interval, as a positive number."""
    ends = [row["difference"], row["low"], row["high"]]
    if row["difference"] < 0:
        ends = [None if end is None else -end for end in (ends[0], ends[2], ends[1])]
    size, low, high = (number(end, digits, missing="none") for end in ends)
    return f"{size} [{low}, {high}]" if None not in ends else size


def _pair_sentence(row: Mapping, score: Score) -> str:
    """One comparison in words."""
    a = _name(row["a"])
    b = _name(row["b"])
    outcome = verdict(row, score.better)
    size = _lead
    signed = f"{a} minus {b} is {number(row['difference'], score.digits, missing='none')}"
    if outcome == EQUAL:
        return f"{a} and {b} score the same."
    if outcome == FEW:
        return f"{a} and {b} are not told apart: {signed}, from too few rows ({row['n']}) to tell."
    if outcome == OTHER:
        return (
            f"{signed}, more than chance does (Holm's {p_text(row['p_holm'])}); no end is better."
        )
    if outcome == OPEN:
        return f"{a} and {b} are not told apart: {signed}, which chance could do (Holm's {p_text(row['p_holm'])})."
    first, other = (a, b) if outcome == BETTER else (b, a)
    return (
        f"{first} is ahead of {other} by {size(row, score.digits)}; chance alone would seldom do that (Holm's "
        f"{p_text(row['p_holm'])})."
    )


def _best_sentence(values: Mapping[str, float], score: Score, compare: Callable) -> tuple[str, str]:
    """Who is ahead of all others, in words, and its name."""
    order = sorted(
        (name for name in values if values[name] is not None),
        key=lambda name: values[name],
        reverse=score.better == "higher",
    )
    if len(order) < 2:
        return "", ""
    best = order[0]
    end = "highest" if score.better == "higher" else "lowest"
    top = f"the {end} score is that of {_name(best)} ({number(values[best], score.digits)})"
    for other in order[1:]:
        row = compare(best, other)
        if row is None:
            return f"{top}, and it was not compared with {_name(other)}.", ""
        outcome = verdict(row, score.better)
        if outcome == EQUAL:
            return f"{top}, and {_name(other)} scores the same.", ""
        if outcome == WORSE:
            return (
                f"{top}, but on the {row['n']} sources that both have {_name(other)} is ahead of it by "
                f"{_lead(row, score.digits)} (Holm's {p_text(row['p_holm'])})."
            ), ""
        if outcome != BETTER:
            why = "too few rows" if outcome == FEW else f"Holm's {p_text(row['p_holm'])}"
            return f"{top}, and {_name(other)} is not told apart from it ({why}).", ""
        if other == order[1]:
            nearest = row
    others = {2: "the other", 3: "both others"}.get(len(order), f"all {len(order) - 1} others")
    return (
        f"{_name(best)} is ahead of {others}, of the next, {_name(order[1])}, by {_lead(nearest, score.digits)} "
        f"(Holm's {p_text(nearest['p_holm'])})."
    ), best


_STANDS = {
    BETTER: "ahead",
    WORSE: "behind",
    EQUAL: "equal",
    OPEN: "not told apart",
    FEW: "too few rows to tell",
    OTHER: "different",
}
_MOST = 3  # systems that are named of each kind


def _against(rows: Sequence[Mapping], score: Score) -> str:
    """How the other systems stand to the baseline, in words."""
    parts = []
    for kind, words in _STANDS.items():
        own = [row for row in rows if verdict(row, score.better) == kind]
        named = [
            _name(row["a"]) + (f" by {_lead(row, score.digits)}" if kind in (BETTER, WORSE) else "")
            for row in own[:_MOST]
        ]
        if len(own) > _MOST:
            named.append(f"{len(own) - _MOST} more")
        if own:
            parts.append(f"{words}: {', '.join(named)}")
    return f"Against {_name(rows[0]['b'])}, {'; '.join(parts)}."


def conclude(
    score: Score,
    values: Mapping[str, float | None],  # system -> its score
    rows: Sequence[
        Mapping[str, Any]
    ],  # the comparisons of the other systems with the baseline, by this score
    # of two systems by this score, the first the better one by its number; None where they share no source
    compare: Callable[[str, str], Mapping[str, Any] | None],
    unfit: str = "",  # why the score's judge may not be believed; empty: it may
) -> Conclusion:
    """What is known about one score, in words."""
    named = (
        f"{score.question.capitalize()}, by {score.heading}" if score.question else score.heading
    )
    if len(values) == 1:
        ((system, value),) = values.items()
        return Conclusion(
            score.question,
            score.column,
            f"{named}: {_name(system)} has {number(value, score.digits, missing='no score')}; one system "
            f"alone, so nothing is compared.",
        )
    if not rows:
        return Conclusion(
            score.question, score.column, f"{named}: not compared; the systems share no source."
        )
    if unfit:
        text = f"{named}: not judged. {unfit[:1].upper()}{unfit[1:]}, so who is ahead by its scores may mean nothing."
        return Conclusion(score.question, score.column, text, judged=False)
    settled = any(verdict(row, score.better) in (BETTER, WORSE, OTHER) for row in rows)
    if len(values) == 2:
        leader = {BETTER: rows[0]["a"], WORSE: rows[0]["b"]}.get(verdict(rows[0], score.better), "")
        return Conclusion(
            score.question,
            score.column,
            f"{named}: {_pair_sentence(rows[0], score)}",
            leader,
            settled,
        )
    best, leader = _best_sentence(values, score, compare) if score.better != "neither" else ("", "")
    text = f"{best} {_against(rows, score)}".strip()
    return Conclusion(
        score.question, score.column, f"{named}: {text}", leader, settled or bool(leader)
    )


_COPIED = ("content", "naturalness")  # questions that a copy answers well whatever the system does


def doubts(
    tallies: Iterable[Mapping[str, Any]],  # a system each, see `SystemScores.tallies`
    scores: Iterable[Score],
) -> list[str]:
    """What not to believe, for reasons that can be counted."""
    sentences = []
    scores = list(scores)
    asked = [name for name in _COPIED if any(score.question == name for score in scores)]
    for row in tallies:
        name = _name(row["system"])
        copies = row["unchanged"]
        if copies and asked:
            sentences.append(
                f"{name}: {copies:,} of {row['outputs']:,} outputs equal their source. A copy keeps all that "
                f"the source says and reads as it reads, so its scores of {' and '.join(asked)} say "
                f"nothing good of it."
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


def overall(
    conclusions: Iterable[Conclusion],
) -> str:  # a sentence; empty if nothing was compared
    """Who is ahead in what."""
    conclusions = list(conclusions)
    won: dict[str, dict[str, None]] = {}
    for conclusion in filter(attrgetter("judged"), conclusions):
        won.setdefault(conclusion.leader, {})[conclusion.question or conclusion.column] = None
    nobody = list(won.pop("", {}))
    parts = [f"{_name(leader)} is ahead in {_listed(list(names))}" for leader, names in won.items()]
    if nobody:
        parts.append(
            f"in {_listed(nobody)} nobody is shown to be ahead{' of all others' * bool(won)}"
        )
    unjudged = [
        conclusion.question or conclusion.column
        for conclusion in conclusions
        if not conclusion.judged
    ]
    if unjudged:
        parts.append(f"in {_listed(list(dict.fromkeys(unjudged)))} the systems are not judged")
    text = "; ".join(parts)
    return f"{text[:1].upper() if text.startswith('in ') else text[:1]}{text[1:]}." if text else ""


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def unsettled(
    conclusions: Iterable[Conclusion],
) -> str:  # a sentence; empty if all is settled or nothing was compared
    """What the comparisons left open."""
    names = [
        conclusion.question or conclusion.column
        for conclusion in conclusions
        if conclusion.judged and not conclusion.settled
    ]
    return f"Not settled: {', '.join(dict.fromkeys(names))}." if names else ""
