"""English texts parsed by spaCy, each once"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tqdm.auto import tqdm

from ..core.assets import ASSETS, AssetError
from ..core.checks import check_choice, check_equal_lengths, check_texts, tokenizable
from ..core.fetch import asset_path
from ..core.files import read_once
from ..core.metric import digest

ENGLISH = "en_core_web_sm"

_SMALL_WORDS = """
the of and to that is it for with are be this from by not or have you they we which but were has had was their his its there
what who when would can could will been if about these those than then she he them your my our how into because should does
did after in on as at all more no
"""
_OTHERS_SMALL_WORDS = """
der das und ist nicht ein eine ich zu den mit von auf dem sich es im wir sie auch aber war wird
le la les des et est un une du que pour dans qui pas je il ce nous vous sur avec
el los las y por con para se del su lo muy pero como
di che non per della sono gli anche
uma com os da em não mas
het een en van niet dat voor zijn maar
og att det som ikke er av til
nie na jest je ale bir ve bu ja ei oli az hogy nem si din yang dan untuk
"""  # German, French, Spanish, Italian, Portuguese, Dutch, Scandinavian, and what marks some more
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_OURS, _OTHERS = (frozenset(words.split()) for words in (_SMALL_WORDS, _OTHERS_SMALL_WORDS))
_LATIN = "\u024f"  # the last letter of Latin Extended-B
_FEWEST_WORDS = 10  # in lower case; of fewer nothing is said


def count_language_signs(
    texts: Iterable[str],
) -> Counter:  # letters, not_latin; and of the words in lower case: words, english, others
    """What tells English from other languages. Words that begin with a capital letter are left out, since names belong
    to none."""
    signs: Counter[str] = Counter()
    for word in (word for text in texts for word in _WORD.findall(text)):
        signs["letters"] += len(word)
        signs["not_latin"] += 0 if word.isascii() else sum(letter > _LATIN for letter in word)
        if word[0].islower():
            plain = word.replace("’", "'")
            signs["words"] += 1
            signs["english"] += plain in _OURS
            signs["others"] += plain in _OTHERS or not plain.isascii()
    return signs


def reads_otherwise(
    signs: Mapping[str, int],  # of `count_language_signs`
) -> bool:
    """Whether texts read as another language than English: most letters are not Latin, or the small words of other
    languages, and words with a letter that English lacks, are more than its own. Of few words it is not said."""
    if signs["not_latin"] * 2 > signs["letters"]:
        return True
    return signs["words"] >= _FEWEST_WORDS and signs["others"] > signs["english"]


def english_tag() -> str:
    """The tagger's name with the first digits of its wheel's checksum, for signatures."""
    return f"{ENGLISH}@{ASSETS[ENGLISH].sha256[:12]}"


def _read_pipeline(folder: Path):
    import spacy

    return spacy.load(folder, exclude=["parser"])


def load_english():
    """spaCy's small English pipeline without its parser. Raises: AssetError if spaCy or the pipeline cannot be had."""
    try:
        import spacy  # for the message alone
    except ImportError as error:
        raise AssetError(
            "this property needs spaCy. To mend it: pip install 'tsteval[properties]'"
        ) from error
    return read_once(asset_path(ENGLISH), _read_pipeline)


_LONGEST_PARSED = (
    1_000_000  # characters; spaCy takes no more, as its layers need some 1 GB of memory for 100,000
)


def parsable(
    texts: list[str],  # N texts
    name: str = "texts",  # what the caller calls them
) -> list[str]:  # as `tokenizable` returns them
    """Texts that `parse` takes. Raises: InputTypeError naming the row that is no string, InputError one of over a
    million characters."""
    return check_texts(tokenizable(texts, name), name, longest=_LONGEST_PARSED)


def parse(
    texts: list[str],  # N texts
    progress: bool = False,  # show a bar
) -> dict:  # text -> spaCy document, for each distinct text
    """Tag each distinct text once. Raises: as `parsable`; AssetError as `load_english`."""
    distinct = list(dict.fromkeys(parsable(texts)))
    documents = load_english().pipe(distinct, batch_size=64)
    return dict(
        zip(distinct, tqdm(documents, total=len(distinct), desc="parsing", disable=not progress))
    )


SILENT = re.compile(
    r"(?<=[^aeiouy])e$|(?<=[^aeiouytd])ed$|(?<=[^aeiouysxzcgh])es$"
    r"|(?<=[^aeiouy])e(?=ly$|ment|ful|less|ness|thing$|one$|times$)"
)
SPOKEN_APART = re.compile(
    r"(?<![tscgx])i(?=a)|(?<![tscgxnlh])i(?=o)|[ct]i(?=at)|i(?=et|um|us$|en[ct])|eo(?=[^ur])|[^qg]ua(?=[ltr])"
    r"|(?<=[aeo])ing|rea(?=[ct][^h])|e(?=at(?:e|i|or))|oe(?=[mt])|(?<=[aeiou])y(?=[aeiou][^sd])|sm$"
    r"|(?<=[^aeiouylr])[lr](?=e$|es$|ed$)"
)


_INITIALS = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]\.?")


def syllables_by_rule(
    word: str,  # one word
) -> int:  # >= 1
    """Syllables of an English word, guessed from its spelling; initials such as U.S. are read letter by letter."""
    if _INITIALS.fullmatch(word):
        return sum(3 if letter in "wW" else 1 for letter in word if letter != ".")
    letters = re.sub(r"[^a-z]", "", word.lower())
    spoken = (
        len(re.findall(r"[aeiouy]+", letters))
        - len(SILENT.findall(letters))
        + len(SPOKEN_APART.findall(letters))
    )
    return max(1, spoken + sum(character.isdigit() for character in word))


def _read_cmudict(_path: Path) -> dict[str, int]:
    from nltk.corpus import cmudict

    counts = {}
    for word, sounds in cmudict.entries():
        counts.setdefault(
            word, sum(sound[-1].isdigit() for sound in sounds)
        )  # a vowel carries a stress digit
    return counts


def pronunciations() -> dict[str, int]:
    """Syllables of the words of CMUdict; empty where NLTK's copy is not on this machine."""
    from nltk.data import find

    for place in ("corpora/cmudict", "corpora/cmudict.zip"):
        try:
            return read_once(str(find(place)), _read_cmudict)
        except LookupError:
            continue
    return {}


def syllable_source(
    syllables: str = "auto",  # auto | cmudict | rule
) -> str:  # cmudict | rule
    """Which way of counting syllables is used: "auto" is the dictionary where it is present.

    Raises: InputError (a ValueError) for another name; AssetError if the dictionary is asked for and not there.
    """
    check_choice(syllables, "syllables", ("auto", "cmudict", "rule"))
    if syllables == "rule" or (syllables == "auto" and not pronunciations()):
        return "rule"
    if not pronunciations():
        raise AssetError(
            "CMUdict is not on this machine. To mend it: nltk.download('cmudict'), or syllables=\"rule\""
        )
    return "cmudict"


def _syllables(word: str, syllable_counts: dict[str, int]) -> int:
    word = word.lower().replace("’", "'")
    if _INITIALS.fullmatch(word):
        return syllables_by_rule(word)  # the dictionary's "a.s" are several letters a
    if word in syllable_counts:
        return max(1, syllable_counts[word])  # four entries, such as "shh", have no vowel
    if word.endswith("'s") and word[:-2] in syllable_counts:
        return max(1, syllable_counts[word[:-2]]) + bool(
            re.search(r"(?:[sxz]|[cs]h|[cgs]e)$", word[:-2])
        )  # the boss's, the judge's
    return sum(syllable_counts.get(part) or syllables_by_rule(part) for part in word.split("-"))


def count_syllables(
    words: Iterable[str],  # repetitions cost nothing
    syllables: str = "auto",  # auto | cmudict | rule
) -> dict[str, int]:  # word -> syllables, for each distinct word
    """Syllables of English words. Raises: as `syllable_source`."""
    syllable_counts = pronunciations() if syllable_source(syllables) == "cmudict" else {}
    return {word: _syllables(word, syllable_counts) for word in dict.fromkeys(words)}


def syllables_tag(
    syllables: str = "auto",  # auto | cmudict | rule
) -> str:
    """The way of counting for signatures; the dictionary with a checksum of its counts. Raises: as
    `syllable_source`."""
    source = syllable_source(syllables)
    return (
        source if source == "rule" else f"cmudict@{digest(repr(sorted(pronunciations().items())))}"
    )


NAME_LABELS = frozenset(
    [
        "PERSON",
        "NORP",
        "FAC",
        "ORG",
        "GPE",
        "LOC",
        "PRODUCT",
        "EVENT",
        "WORK_OF_ART",
        "LAW",
        "LANGUAGE",
    ]
)


def plain_words(
    text: str,
) -> str:
    """A text's words in small letters, without punctuation and possessive endings."""
    text = re.sub(r"['’]s\b", "", unicodedata.normalize("NFKC", text).casefold())
    return " ".join(re.findall(r"\w+", text))


def only_omits(
    source: str,
    output: str,
) -> bool:
    """Whether an output is its source with words left out: fewer, and those in their order."""
    words, kept = plain_words(source).split(), plain_words(output).split()
    rest = iter(words)
    return len(kept) < len(words) and all(word in rest for word in kept)


def plain_name(
    text: str,  # a name as it stands in a text
) -> str:
    """A name in the form in which it is compared: as `plain_words`, without an article before it."""
    return re.sub(r"^(?:the|an?) ", "", plain_words(text))


@dataclass(frozen=True)
class Phrase:
    """A word or name in a text."""

    start: int  # first character
    end: int  # one after the last
    form: str  # what makes two phrases the same: dictionary form of a word, plain form of a name


def content_words(
    document,  # a spaCy document
) -> list[Phrase]:
    """Words that are not function words."""
    return [
        Phrase(word.idx, word.idx + len(word), word.lemma_.lower())
        for word in document
        if not word.is_stop and any(map(str.isalnum, word.text))
    ]


def names_in(
    document,  # a spaCy document
) -> list[Phrase]:
    """Names of people, places, organisations, events and works."""
    return [
        Phrase(name.start_char, name.end_char, plain_name(name.text))
        for name in document.ents
        if name.label_ in NAME_LABELS
    ]


def parsable_pairs(
    inputs: list[str],  # N inputs
    outputs: list[str],  # N outputs, one for each input
) -> tuple[list[str], list[str]]:  # both, as `parsable` returns them
    """Inputs and outputs that `parse` takes. Raises: as `parsable`; InputError for unequal lengths."""
    inputs = parsable(inputs, "inputs")
    outputs = parsable(outputs, "outputs")
    check_equal_lengths(inputs=inputs, outputs=outputs)
    return inputs, outputs


def has_words(
    texts: Iterable[str],  # N texts
) -> np.ndarray:  # (N,) False where a text holds neither letter nor digit
    """Whether there is anything to judge: where there is not, every property is undefined."""
    return np.array([any(map(str.isalnum, text)) for text in texts], dtype=bool)
