"""Which words of two texts are the same: forms of a text, stages of a match, runs of neighbours"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from ..core.assets import AssetError
from ..core.checks import InputTypeError, check_flag, check_number, describe
from .matching import remember


def one_form(
    text: str,
) -> str:  # composed characters (NFC), lines that end with one line feed, no white space at the end
    """A text in the form in which words are compared. Source: Unicode Standard Annex 15."""
    lines = unicodedata.normalize("NFC", text.replace("\r\n", "\n")).rstrip()
    return re.sub(r"(?<!\S)-\n", "- ", lines)  # a dash that stands alone divides no word


def _stage(
    left: dict[int, str], right: dict[int, str], forms: Callable[[str], Iterable[str]]
) -> list[tuple[int, int]]:
    """Pair words from the last to the first, each with the last free partner; take the pairs out of both sides."""
    places = defaultdict(list)
    pairs = []
    for place, word in right.items():
        places[word].append(place)
    for place, word in reversed(left.items()):
        free = [places[form] for form in {*forms(word), word} if places.get(form)]
        if free:
            pairs.append((place, max(free, key=lambda one: one[-1]).pop()))
    for i, j in pairs:
        del left[i], right[j]
    return pairs


def align_words(
    output: Sequence[str],  # words
    reference: Sequence[str],  # words
    stem: Callable[[str], str] | None = None,  # from a word to its stem; None: no such stage
    synonyms: Callable[[str], Iterable[str]]
    | None = None,  # from a word to its synonyms; None: no such stage
) -> list[tuple[int, int]]:  # places in the output and in the reference, in the order of the output
    """Pair equal words, then equal stems, then synonyms; a word has one partner at most. Source: Lavie and Agarwal
    2007; NLTK."""
    left, right = (dict(enumerate(words)) for words in (output, reference))
    pairs = _stage(left, right, lambda word: ())
    if stem:
        left, right = (
            {place: stem(word) for place, word in words.items()} for words in (left, right)
        )
        pairs += _stage(left, right, lambda word: ())
    if synonyms:
        pairs += _stage(left, right, synonyms)
    return sorted(pairs)


def count_chunks(
    pairs: Sequence[tuple[int, int]],  # as from `align_words`
) -> int:
    """Runs of pairs that are neighbours in both texts."""
    return sum(b != (a[0] + 1, a[1] + 1) for a, b in zip([(-9, -9), *pairs], pairs))


def meteor_from_counts(
    matches,  # (N,) pairs of aligned words, >= 0
    chunks,  # (N,) runs of pairs that are neighbours in both texts
    output_length,  # (N,) words
    reference_length,  # (N,) words
    *,
    alpha: float = 0.9,  # weight of recall against precision, 0..1
    beta: float = 3.0,  # how steeply the penalty grows with the share of breaks, >= 0
    gamma: float = 0.5,  # the largest penalty, 0..1
) -> np.ndarray:  # (N,) in 0..1
    """METEOR from counts: a mean of precision and recall, less a penalty for words in another order.

    Raises: InputError for a parameter out of range. Source: Lavie and Agarwal 2007, section 2.
    """
    check_number(alpha, "alpha", 0, 1)
    check_number(beta, "beta", 0)
    check_number(gamma, "gamma", 0, 1)
    matches, chunks, output_length, reference_length = (
        np.asarray(count, dtype=float)
        for count in (matches, chunks, output_length, reference_length)
    )
    precision, recall = (
        matches / np.maximum(length, 1) for length in (output_length, reference_length)
    )
    mean = precision * recall / np.where(matches > 0, alpha * precision + (1 - alpha) * recall, 1)
    return mean * (1 - gamma * (chunks / np.maximum(matches, 1)) ** beta)


def wordnet_synonyms(
    reader=None,  # a reader of WordNet as NLTK has it; None: NLTK's own
) -> Callable[[str], set[str]]:
    """The function from a word to its synonyms in WordNet. Raises: AssetError if WordNet is not on this machine."""
    if reader is None:
        from nltk.corpus import wordnet as reader
    try:
        reader.synsets("word")
    except LookupError:
        raise AssetError(
            "METEOR's synonyms come from WordNet, which is not on this machine. To mend it: run "
            "nltk.download('wordnet') in Python, or leave the option synonyms out"
        ) from None
    return remember(
        lambda word: {
            lemma.name()
            for sense in reader.synsets(word)
            for lemma in sense.lemmas()
            if "_" not in lemma.name()
        }
    )


def alignment_stages(
    stemmer: bool,  # whether words of one Porter stem are paired
    synonyms: str
    | Callable[[str], Iterable[str]]
    | None,  # "wordnet", a function from a word to its synonyms, or none
) -> dict[str, Callable | None]:
    """The stages that are wanted, as `align_words` takes them. Raises: InputTypeError for what is no flag or no
    function; AssetError where WordNet is wanted and missing."""
    check_flag(stemmer, "stemmer")
    if synonyms == "wordnet":
        synonyms = wordnet_synonyms()
    if not (synonyms is None or callable(synonyms)):
        raise InputTypeError(
            f"synonyms must be None, 'wordnet', or a function from a word to its synonyms; got "
            f"{describe(synonyms)}"
        )
    from nltk.stem.porter import PorterStemmer

    return {"stem": remember(PorterStemmer().stem) if stemmer else None, "synonyms": synonyms}
