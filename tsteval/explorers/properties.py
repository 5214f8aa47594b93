"""An explorer of the eight properties of one text, each with what it rests on in this text."""

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from ..answers import avoided_answer, relevance
from ..core.checks import check_choice
from ..core.display import enumerated, number
from ..core.metric import INPUTS, Metric
from ..grounded import find_facts
from ..models.causal_lm import CausalLM
from ..properties import PROPERTIES, calculate_properties
from ..report.markup import Picture, answered, isolated, table, tag
from ..surface import find_links, reading_counts
from ..tone import formality, toxicity
from ..words.english import parse
from .controls import checkbox, cut_note, explorer, first_part, text_field


def _pushing(score: Callable, text: str) -> str:
    """The words without which a number would be lower, the strongest first."""
    words = text.split()[:40]
    rest = [" ".join(words[:place] + words[place + 1 :]) for place in range(len(words))]
    values = (
        np.asarray(score([" ".join(words), *rest]), dtype=float) if len(words) > 1 else np.zeros(1)
    )
    drops = [(float(values[0] - value), word) for value, word in zip(values[1:], words)]
    effects = [
        f"{word} {drop:+.2f}"
        for drop, word in sorted(drops, key=lambda one: -one[0])[:3]
        if drop >= 0.005
    ]
    return "pushed up by " + ", ".join(effects) if effects else "no single word pushes it up"


def _surprise(text: str) -> str:
    scores = CausalLM.load().token_logprobs([text])[0]
    if not len(scores.logprobs):
        return "no token"
    least, (start, end) = (
        int(np.argmin(scores.logprobs)),
        scores.spans[int(np.argmin(scores.logprobs))],
    )
    return (
        f"mean log-probability {scores.logprobs.mean():.2f} a token; least likely: {text[start:end].strip()} "
        f"{scores.logprobs[least]:.1f}"
    )


def _counted(text: str) -> str:
    words, sentences, syllables = reading_counts([text])[0].tolist()
    if not words:
        return "no word"
    return (
        f"{words} word{'s' * (words != 1)}, {sentences} sentence{'s' * (sentences != 1)}, "
        f"{syllables} syllable{'s' * (syllables != 1)}: 206.835 − 1.015 × {words / sentences:.2f} "
        f"− 84.6 × {syllables / words:.2f}"
    )


def _facts(text: str) -> str:
    facts = []
    for fact in find_facts(parse([text])[text]):
        parts = fact.value if isinstance(fact.value, tuple) else [fact.value]
        said = [
            f"{part:.15g}" if isinstance(part, float) else str(part)
            for part in parts
            if part is not None
        ]
        facts.append(" ".join([*said, fact.unit]).strip())
    return (
        f"looked for in the input: {', '.join(facts[:8])}"
        if facts
        else "no name, date or quantity to look for"
    )


def _links(text: str) -> str:
    links = find_links(text)
    return f"{len(links)} to ask: {', '.join(links[:3])}" if links else "no link"


_EVIDENCE: dict[str, Callable[[str, str], str]] = {
    "link_validity": lambda text, input_text: _links(text),
    "readability": lambda text, input_text: _counted(text),
    "toxicity": lambda text, input_text: _pushing(toxicity, text),
    "acceptability": lambda text, input_text: _surprise(text),
    "formality": lambda text, input_text: _pushing(formality, text),
    "avoided_answer": lambda text, input_text: _pushing(
        lambda texts: avoided_answer([input_text] * len(texts), texts), text
    ),
    "grounded_in_context": lambda text, input_text: _facts(text),
    "relevance": lambda text, input_text: _pushing(
        lambda texts: relevance([input_text] * len(texts), texts), text
    ),
}

_ALL = tuple(PROPERTIES)


def _chosen(names: Sequence[str]) -> dict[str, Metric]:
    for name in names:
        check_choice(name, "a property", PROPERTIES)
    return {name: PROPERTIES[name] for name in names}


def property_records(
    text: str,
    input_text: str = "",  # the input that the text answers; empty: none
    links: str = "skip",  # skip | check: "check" sends requests to the addresses in the text
    tell: Callable[[str], object] = lambda done: None,  # is told what is being done
    names: Sequence[str] = _ALL,  # which of the eight
) -> list[dict]:  # name, value (NaN: not computed), what it is, where it comes from
    """The properties of one text. Raises: InputError for an unknown name."""
    records: list[dict] = []
    for name, metric in _chosen(names).items():
        tell(f"{len(records) + 1} of {len(names)}: {name.replace('_', ' ')}")
        if {*INPUTS} & {*metric.needs} and not input_text.strip():
            value = np.nan
            evidence = "needs an input"
        elif name == "link_validity" and (links == "skip" or not find_links(text)):
            value = np.nan
            evidence = _links(text)
        else:
            value = float(
                calculate_properties([text], [input_text], [name], links="skip").iloc[0, 0]
            )
            evidence = _EVIDENCE[name](text, input_text)
        records.append({"name": name, "value": value, "is": metric.description, "from": evidence})
    return records


def properties_picture(
    records: list[dict],  # from `property_records`
) -> Picture:
    """The properties of a text, each with what it is and where it comes from."""
    rows = []
    for row in records:
        value = number(row["value"], 1 if row["name"] == "readability" else 3)
        cell = tag(
            "div", isolated(row["from"]), tag("div", isolated(row["is"]), style="color:#555")
        )
        rows.append([row["name"].replace("_", " "), value or "none", cell])
    there = [f"{name} {value}" for name, value, _ in rows if value != "none"]
    lacking = [name for name, value, _ in rows if value == "none"]
    said = [f"One sees {enumerated(there)}"] * bool(there)
    said += [f"{'not measured: ' if there else 'Not measured: '}{enumerated(lacking)}"] * bool(
        lacking
    )
    return answered(
        f"{'; '.join(said)}.",
        table(["property", "value", "where it comes from, and what it is"], rows),
    )


_ANSWER = "The bridge opened in 1932, and it's 503 metres long."
_QUESTION = "When was the harbour bridge opened?"


def properties_explorer(
    text: str = _ANSWER,
    given: str = _QUESTION,  # the input that the text answers; empty: none
    records: list[dict]
    | None = None,  # from `property_records` for these two; None: they are computed here
    names: Sequence[str] = _ALL,  # which of the eight properties
):
    """An explorer of the properties of one text. Returns a widget. Raises: InputError for an unknown name."""
    needs = {need for metric in _chosen(names).values() for need in metric.needs}
    cache = {(first_part(text), first_part(given), "skip"): records} if records else {}
    records_of = lru_cache(lambda *state: cache.get(state) or property_records(*state, names=names))
    rows = [{"text": text_field("text", text)}]
    if needs & {*INPUTS}:
        rows.append({"given": text_field("input", given)})
    if "link_validity" in names:
        rows.append({"links": checkbox("ask the links in the text")})

    def draw(text, given="", links=False):
        records = records_of(first_part(text), first_part(given), "check" if links else "skip")
        return cut_note(text, given) + properties_picture(records)

    return explorer("What can one see in one text?", rows, draw, slow=("text", "given", "links"))


def first_records(
    tell: Callable[[str], object],  # is told what is being done
) -> list[dict]:  # from `property_records`
    """What the explorer shows at first, for who opens it where seconds count."""
    return property_records(_ANSWER, _QUESTION, tell=tell)
