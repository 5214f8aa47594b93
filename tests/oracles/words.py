"""Numbers beneath the metrics of words: counts and matches against sacreBLEU, rouge-score, NLTK, pandas and Counter."""

import functools
from collections import Counter

import numpy as np
import pandas as pd

from tests.oracles.catalogue import oracle, own
from tests.oracles.registry import text_pairs

WIDTH = 20  # words of the longest text and more: places that stand for a row of unequal length


def _texts(generator, n):
    return (text_pairs(generator, n)[0],)


def _grams(words, n):
    return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))


def _squeezed(text):
    return "".join(text.split())


def _numbered(outputs, references):
    """Each pair as two arrays of numbers, one number a word."""
    words = {word for text in [*outputs, *references] for word in text.split()}
    numbers = {word: place for place, word in enumerate(sorted(words))}
    return [
        [np.array([numbers[word] for word in text.split()], dtype=int) for text in pair]
        for pair in zip(outputs, references)
    ]


def _clipped(pairs, orders):
    """Matches of n-grams, each at most as often as both sides have it."""
    return [[(_grams(a, n) & _grams(b, n)).total() for n in range(1, orders + 1)] for a, b in pairs]


def _split(outputs, references):
    return [(a.split(), b.split()) for a, b in zip(outputs, references)]


def _triples(pairs, orders):
    found = []
    for a, b in pairs:
        row = []
        for n in range(1, orders + 1):
            first = _grams(a, n)
            second = _grams(b, n)
            row += (
                [first.total(), second.total(), (first & second).total()] if second else [0, 0, 0]
            )
        found.append(row)
    return found


def _sacrebleu_chrf(outputs, references):
    from sacrebleu.metrics import CHRF

    return [
        CHRF(word_order=2)._extract_corpus_statistics([a], [[b]])[0]
        for a, b in zip(outputs, references)
    ]


# ---- numbers for words and letters


def _same_letters(texts):
    """Which of the first letters of all texts are one."""
    letters = np.array([ord(letter) for text in texts for letter in _squeezed(text)])[:300]
    return letters[:, None] == letters


def _letters(texts):
    letters = np.concatenate(own("words.matching.letters_as_numbers")(list(texts), False))[:300]
    return letters[:, None] == letters


def _encoded(texts):
    found = own("words.matching.encode")(texts, str.split)
    return [
        np.pad(found[text], (0, WIDTH - len(found[text])), constant_values=-1) for text in texts
    ]


def _factorized(texts):
    distinct = list(dict.fromkeys(texts))
    codes = iter(pd.factorize(pd.Series([word for text in distinct for word in text.split()]))[0])
    found = {text: [next(codes) for _ in text.split()] for text in distinct}
    return [[*found[text], *[-1] * (WIDTH - len(found[text]))] for text in texts]


def _spread(texts):
    distinct, where = own("words.matching.distinct_rows")(list(texts))
    return [*map(len, distinct), *where]


def _pandas_spread(texts):
    codes, distinct = pd.factorize(pd.Series(texts))
    return [*map(len, distinct), *codes]


oracle(
    "words.matching.distinct_rows",
    "pandas.factorize",
    _spread,
    _pandas_spread,
    lambda generator, n: (
        [str(word) for word in generator.choice(["a", "bb", "ccc", "dddd"], size=n)],
    ),
    rows=False,
    whole_is_symmetric=False,
)
oracle(
    "words.matching.encode",
    "pandas.factorize",
    _encoded,
    _factorized,
    _texts,
    rows=False,
    whole_is_symmetric=False,
)
oracle(
    "words.matching.letters_as_numbers",
    "Python's ord",
    _letters,
    _same_letters,
    _texts,
    rows=False,
    whole_is_symmetric=False,
)
oracle(
    "words.matching.match_ngrams",
    "Counter",
    lambda o, r: own("words.matching.match_ngrams")(_numbered(o, r), 4),
    lambda o, r: _clipped(_split(o, r), 4),
    text_pairs,
)
oracle(
    "words.matching.ngram_triples",
    "Counter",
    lambda o, r: own("words.matching.ngram_triples")(_numbered(o, r), 3),
    lambda o, r: _triples(_split(o, r), 3),
    text_pairs,
)
oracle(
    "overlap.chrf_statistics",
    "sacreBLEU",
    lambda o, r: own("overlap.chrf_statistics")(o, r, word_order=2),
    _sacrebleu_chrf,
    text_pairs,
    texts=True,
    decomposed=False,
)  # which counts characters


# ---- BLEU


def _statistics(outputs, references):
    from sacrebleu.metrics import BLEU

    return BLEU()._extract_corpus_statistics(outputs, [references])


def _split_statistics(outputs, references):
    found = own("bleu.split_statistics")(own("bleu.bleu_statistics")(outputs, references), 2)
    return np.column_stack(found)


def _phantoms(outputs, references):
    """NLTK's corpus_bleu counts an n-gram of each order in each sentence, though it were too short for one."""
    from nltk.translate.bleu_score import modified_precision

    found = []
    for given, wanted in _split(outputs, references):
        precisions = [modified_precision([wanted], given, n) for n in range(1, 5)]
        found.append(
            [
                len(given),
                len(wanted),
                *(share.numerator for share in precisions),
                *(share.denominator for share in precisions),
            ]
        )
    return found


oracle(
    "bleu.split_statistics",
    "sacreBLEU",
    _split_statistics,
    lambda o, r: np.array(_statistics(o, r))[:, [0, 1, 2, 3, 6, 7]],
    text_pairs,
)
oracle(
    "bleu.count_phantoms",
    "NLTK",
    lambda o, r: own("bleu.count_phantoms")(
        own("bleu.bleu_statistics")(o, r, tokenize="none"), "method1"
    ),
    _phantoms,
    text_pairs,
)
oracle(
    "words.matching.reference_count",
    "NumPy",
    lambda counts: [
        own("words.matching.reference_count")([("a",) * times for times in row]) or -1
        for row in counts
    ],
    lambda counts: [row[0] if np.ptp(row) == 0 else -1 for row in counts],
    lambda generator, n: (generator.integers(1, 3, size=(n, 2)),),
)


# ---- ROUGE

KINDS = ("rouge1", "rouge2", "rougeL", "rougeLsum")


def _in_lines(generator, n):
    """Pairs, each text in up to three lines."""
    pairs = text_pairs(generator, n)
    return tuple(
        [text.replace(" ", "\n", int(generator.integers(3))) for text in side] for side in pairs
    )


def _overlap(outputs, references):
    found = own("rouge.rouge_overlap")(
        list(zip(outputs, references)), KINDS, own("rouge.rouge_tokenizer")()
    )
    return np.column_stack([column for kind in KINDS for column in found[kind]])


def _units(text, n=1):
    from rouge_score.tokenize import tokenize

    return max(len(tokenize(text, None)) - n + 1, 0)


def _rouge_score(outputs, references):
    """Matches out of rouge-score's precision, and units from its tokens."""
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer(list(KINDS))
    rows = []
    for output, reference in zip(outputs, references):
        found = scorer.score(reference, output)
        row = []
        for kind in KINDS:
            n = 2 if kind == "rouge2" else 1
            given = _units(output, n)
            wanted = _units(reference, n)
            row += [round(found[kind].precision * given), given, wanted]
        rows.append(row)
    return rows


def _summary(outputs, references):
    rows = [
        [[np.array(line) for line in side] for side in pair]
        for pair in _lines_of_numbers(outputs, references)
    ]
    return [own("rouge.summary_matches")(*row) for row in rows]


def _lines_of_numbers(outputs, references):
    return [
        [[[ord(letter) for letter in line] for line in text.split()] for text in pair]
        for pair in zip(outputs, references)
    ]


def _summary_by_rouge_score(outputs, references):
    from rouge_score.rouge_scorer import _summary_level_lcs

    found = []
    for output, reference in _lines_of_numbers(outputs, references):
        score = _summary_level_lcs(reference, output)
        found.append(round(score.recall * sum(map(len, reference))))
    return found


oracle("rouge.rouge_overlap", "rouge-score", _overlap, _rouge_score, _in_lines)
oracle(
    "rouge.summary_matches",
    "rouge-score, letters for words",
    _summary,
    _summary_by_rouge_score,
    text_pairs,
)


# ---- METEOR


class _NoSynonyms:
    """WordNet without an entry."""

    @staticmethod
    def synsets(word):
        return ()


@functools.cache
def _stemmer():
    from nltk.stem import PorterStemmer

    return PorterStemmer()


def _as_places(links):
    """For each word of the output its partner's place, or -1."""
    partner = dict(links)
    return [partner.get(place, -1) for place in range(WIDTH)]


def _aligned(outputs, references):
    return [
        _as_places(own("words.word_alignment.align_words")(a, b, stem=_stemmer().stem))
        for a, b in _split(outputs, references)
    ]


def _nltk_aligned(outputs, references):
    from nltk.translate.meteor_score import align_words

    return [
        _as_places(align_words(a, b, stemmer=_stemmer(), wordnet=_NoSynonyms())[0])
        for a, b in _split(outputs, references)
    ]


def _inflected(generator, n):
    """Pairs in which words recur, and recur in other forms."""
    forms = ["claim", "claims", "claimed", "mill", "mills", "build", "building", "old", "older"]
    return tuple(
        [" ".join(generator.choice(forms, size=generator.integers(1, 12))) for _ in range(n)]
        for _ in range(2)
    )


oracle("words.word_alignment.align_words", "NLTK", _aligned, _nltk_aligned, _inflected)


# ---- English


@functools.cache
def _cmudict():
    from nltk.corpus import cmudict

    return cmudict.dict()


def _vowels(words):
    return [sum(phone[-1].isdigit() for phone in _cmudict()[word][0]) for word in words]


def _spoken(generator, n):
    words = [
        "people",
        "fire",
        "idea",
        "mill",
        "stunning",
        "river",
        "naive",
        "area",
        "business",
        "every",
        "reality",
    ]
    return ([str(word) for word in generator.choice(words, size=n)],)


def _characters(generator, n):
    """Texts of a few characters from anywhere, without halves of pairs."""
    return (
        [
            "".join(
                chr(point)
                for point in generator.integers(0x20, 0xD7FF, size=generator.integers(0, 3))
            )
            if generator.random() < 0.7
            else str(generator.choice(["", ".", " \n", "—…", "½", "٣", "a", "é.", "①"]))
            for _ in range(n)
        ],
    )


def _has_letter_or_number(texts):
    from unicodedata import category

    return [
        any(
            category(character)[0] == "L" or category(character) in ("Nd", "Nl", "No")
            for character in text
        )
        for text in texts
    ]


oracle(
    "words.english.pronunciations",
    "NLTK's reader of CMUdict",
    lambda words: [own("words.english.pronunciations")()[word] for word in words],
    _vowels,
    _spoken,
    needs="corpora/cmudict",
)
oracle(
    "words.english.count_syllables",
    "NLTK's reader of CMUdict",
    lambda words: [own("words.english.count_syllables")(words, "cmudict")[word] for word in words],
    _vowels,
    _spoken,
    needs="corpora/cmudict",
)
oracle(
    "words.english.has_words",
    "Unicode's categories",
    own("words.english.has_words"),
    _has_letter_or_number,
    _characters,
)


# ---- quantities

UNITS = (("", 1), (" thousand", 10**3), (" million", 10**6), ("k euros", 10**3), ("bn", 10**9))


def _written(generator, n):
    """A sentence with two numbers, and what they are."""
    values = generator.integers(2, 10**5, size=n)
    places = generator.integers(5, size=n)
    signs = generator.random(n)
    texts = [
        f"It grew by {'minus ' if sign < 0.3 else ''}{value:,}{UNITS[place][0]}, not {value / 4:.2f} percent."
        for value, place, sign in zip(values, places, signs)
    ]
    truth = np.array(
        [
            [(-1 if sign < 0.3 else 1) * value * UNITS[place][1], round(value / 4, 2)]
            for value, place, sign in zip(values, places, signs)
        ],
        dtype=float,
    )
    return texts, truth


def _facts(texts):
    return [
        [fact.value for _, fact in own("words.quantities.find_quantities")(text)] for text in texts
    ]


oracle(
    "words.quantities.find_quantities",
    "the numbers that were written into the text",
    lambda texts, _: _facts(texts),
    lambda _, truth: truth,
    _written,
)
