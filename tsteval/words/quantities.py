"""Numbers, quantities and dates in English texts"""

import re
from dataclasses import dataclass
from decimal import Decimal

from ..core.checks import InputError, check_texts

_DIGITS = (  # 1,500,000 or 1,50,000 or 1500000, perhaps with a fraction and a power of ten; or .5
    r"(?:(?:\d{1,3}(?:,\d{3})+|\d{1,2}(?:,\d\d)+,\d{3}|\d+)(?:\.\d+)?|(?<!\.)\.\d+)(?:e[+-]?\d{1,2})?"
)
# what touches a number that is read by its beginning: more digits, as in 3.11.9, 1,8, 1'000, 4x4 and 5½
_UNREAD = r"(?!\w*\d|[.,'’]\d|[¹²³¼-¾⁰-⁹⅐-⅞])"
SMALL = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_SCALES = {
    "hundred": 100,
    "thousand": 10**3,
    "million": 10**6,
    "billion": 10**9,
    "trillion": 10**12,
}
_NUMBER_WORDS = {
    **{word: value for value, word in enumerate(SMALL)},
    **{word: 10 * value for value, word in enumerate(_TENS, 2)},
    **_SCALES,
}


def number_value(
    text: str,  # digits, with commas, a decimal point and a power of ten; or English number words
) -> float:
    """The value of a written number; two pairs of digits in words are read as a year.

    Raises: InputError (a ValueError) for anything else.
    """
    [text] = check_texts([text], "text")
    if re.fullmatch(_DIGITS, text, re.IGNORECASE):
        return float(text.replace(",", ""))
    words = [
        word
        for word in re.split(r"[\s-]+", re.sub(r"^an?\s", "", text.strip().lower()))
        if word != "and"
    ]
    if not words or any(word not in _NUMBER_WORDS for word in words):
        raise InputError(
            f"{text!r} is not a number; write digits, or English number words such as 'sixty-three'"
        )
    total = group = 0
    for value in map(_NUMBER_WORDS.get, words):
        if value == 100:
            group = max(group, 1) * 100
        elif value > 100:
            total = total + max(group, 1) * value
            group = 0
        elif group % 100 == 0 or (group % 100 >= 20 and group % 10 == 0 and value < 10):
            group += value
        else:
            group = 100 * group + value
    return float(total + group)


_WORDS = "|".join(sorted(_NUMBER_WORDS, key=len, reverse=True))
_SCALE = "|".join(_SCALES)
# "five and six" are two numbers
_AND = "(?:" + "|".join(f"(?<={word})" for word in ("hundred", *_SCALES)) + r")\sand\s"
_QUANTITY = re.compile(
    rf"(?<!\w)(?<!\d[.,'’])(?:(?<!\d\s)(?P<minus>[-−–](?=\.?\d|[$€£¥])|minus\s))?"
    rf"(?P<sign>US\$|[$€£¥])?(?P<inner_minus>(?<=[$€£¥])[-−](?=\.?\d))?\s?"
    rf"(?P<number>(?<!\w\.){_DIGITS}{_UNREAD}"
    # a "million" behind digits belongs to them
    rf"|(?:an?\s(?=(?:{_SCALE})\b))?\b(?!(?<=\d[\s-])(?:{_SCALE}))(?:{_WORDS})\b(?:(?:{_AND}|[-\s])(?:{_WORDS})\b){{0,12}})"
    rf"(?:(?P<letter>k|m|bn)\b|[\s-]?(?P<scale>{_SCALE})\b)?"
    rf"(?:[\s-]?(?P<unit>%|percent\b|per\scent\b|dollars?\b|euros?\b|pounds?\b|yen\b))?",
    re.IGNORECASE,
)
_ORDINARY = (
    "may",
    "mar",
    "march",
    "august",
)  # months whose names in small letters are words of their own
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_DATE = re.compile(
    r"\b(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)\b"
    r"|(?:\b(?P<day_before>\d{1,2})(?:st|nd|rd|th)?\s(?:of\s)?)?"
    r"\b(?P<name>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
    r"(?:\s(?P<day_after>\d{1,2})(?:st|nd|rd|th)?\b)?(?:,?\s(?P<year_after>\d{4})\b)?",
    re.IGNORECASE,
)
_UNITS = {
    "$": "dollar",
    "us$": "dollar",
    "€": "euro",
    "£": "pound",
    "¥": "yen",
    "%": "percent",
    "per cent": "percent",
}
_LETTERS = {"k": 10**3, "m": 10**6, "bn": 10**9}


@dataclass(frozen=True)
class Fact:
    """A name, date or quantity, in a form that its different spellings share."""

    kind: str  # name | date | quantity
    value: (
        str | float | tuple
    )  # words in small letters; a number; or year, month, day with None for what is not said
    unit: str = ""  # dollar, euro, pound, yen, percent, or none


def _is_date(match: re.Match) -> bool:
    """A month's name alone is no date; one in small letters that is a word of its own needs day and year, or a -th."""
    day = match["day_before"] or match["day_after"]
    year = match["year_after"]
    if match["name"] in _ORDINARY:
        return bool(day and year) or re.search(r"\d(?:st|nd|rd|th)\b", match.group()) is not None
    return bool(match["year"] or day or year)


def _dates(text: str) -> list[tuple[tuple[int, int], Fact]]:
    """Dates with a month, and where they stand."""
    dates = []
    for match in filter(_is_date, _DATE.finditer(text)):
        year = match["year"] or match["year_after"]
        day = match["day"] or match["day_before"] or match["day_after"]
        month = match["month"] or _MONTHS.index(match["name"][:3].lower()) + 1
        date = (int(year) if year else None, int(month), int(day) if day else None)
        dates.append((match.span(), Fact("date", date)))
    return dates


def find_quantities(
    text: str,
) -> list[
    tuple[tuple[int, int], Fact]
]:  # where it stands, and what it is; in the order of the text
    """Dates with a month, and numbers with their unit. A number is read whole or not at all: 3.11.9 is none, nor 1,8."""
    facts = _dates(text)
    for (start, end), _ in facts:  # the numbers within a date are not quantities of their own
        text = text[:start] + " " * (end - start) + text[end:]
    for match in _QUANTITY.finditer(text):
        if match["number"].lower() == "one" and not (
            match["scale"] or match["unit"] or match["sign"]
        ):
            continue
        scale = _SCALES.get((match["scale"] or "").lower(), 1)
        letter = (match["letter"] or "").lower()
        if letter == "bn" or (
            letter and (match["sign"] or match["unit"])
        ):  # 5m alone may be five metres
            scale = _LETTERS[letter]
        value = float(
            Decimal(str(number_value(match["number"]))) * scale
        )  # so that 2.05 million is 2,050,000
        if match["minus"] or match["inner_minus"]:
            value = -value
        unit = (match["unit"] or match["sign"] or "").lower()
        start = match.start() + len(match.group()) - len(match.group().lstrip())
        facts.append(
            (
                (start, match.end()),
                Fact("quantity", value, _UNITS.get(unit, unit.removesuffix("s"))),
            )
        )
    return sorted(facts, key=lambda item: item[0])
