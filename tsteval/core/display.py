"""Any text in a form that a page, a terminal, a spreadsheet or a message can carry, and one way to write numbers"""

import math
import re
import unicodedata
from collections.abc import Sequence


def displayable(
    text: str,  # any string, also one that is not valid Unicode
) -> (
    str
):  # as many characters; control characters became their pictures, what else cannot be shown U+FFFD
    """A text that any page can hold and any message can carry."""
    return text if text.isprintable() else "".join(map(_shown, text))


def _shown(character: str) -> str:
    if character in "\n\t" or unicodedata.category(character) not in ("Cs", "Cc", "Cn"):
        return character
    code = ord(character)  # surrogates, control characters, numbers without a character
    return chr(0x2400 + code) if code < 32 else "\u2421" if code == 127 else "\ufffd"


_FORMULA = re.compile(
    r"\s*[=+\-@＝＋－＠]|[\t\r]"
)  # the wide ones count as well, in some countries


def spreadsheet_safe(
    text: str,
) -> str:  # with an apostrophe before it, if it needs one
    """A text that no spreadsheet takes for a formula."""
    return f"'{text}" if _FORMULA.match(text) else text


def number(
    value: float | None,
    digits: int = 3,  # after the point; one where the number is 100 or more
    missing: str = "",  # what is written for None and NaN
) -> str:
    """A number as tables and labels write it."""
    if value is None or math.isnan(value):
        return missing
    text = f"{value:.{digits if abs(value) < 100 else min(digits, 1)}f}"
    return text if text.strip("-0.") else text.lstrip("-")


def enumerated(
    names: Sequence[str],
    word: str = "and",  # between the last two
) -> str:
    """Names in a sentence: one, "one and two", "one, two and three"."""
    return f" {word} ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def printable(
    text,  # anything; `str` of it is shown
    longest: int | None = None,  # characters; None: all of them
) -> str:
    """Somebody's text for a terminal, which obeys control characters."""
    clean = "".join(
        character if character.isprintable() or character in "\u200c\u200d" else "?"
        for character in str(text)
    )
    if longest is None or len(clean) <= longest:
        return clean
    return f"{clean[: longest - longest // 2 - 1]}…{clean[-(longest // 2) :]}"
