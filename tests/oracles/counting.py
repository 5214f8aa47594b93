"""Numbers beneath the n-gram models, against Counter, sorted lists and loops over dictionaries."""

import math
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd

from tests.oracles.catalogue import oracle, own

WORDS = 5  # ids 0..4, each of which is in every corpus that is drawn
COUNTS = "words.ngram_counts"
FILES = "words.ngram_files"
SMOOTHING = "words.ngram_smoothing"


def sentences(generator, n):
    """Sentences of six words, the first of which holds each word."""
    drawn = generator.integers(0, WORDS, size=(n, 6))
    drawn[0] = [*range(WORDS), 0]
    return (drawn,)


def _rows(*shape):
    return lambda generator, n: (generator.integers(0, WORDS, size=(n, *shape)),)


def _grams(rows, n):
    return Counter(tuple(map(int, row[i : i + n])) for row in rows for i in range(len(row) - n + 1))


def _levels(rows, order=3):
    rows = np.asarray(rows)
    return own(f"{COUNTS}.count_ngrams")(rows.ravel(), np.full(len(rows), rows.shape[1]), order)


def _keys(rows, order=3):
    return [keys for keys, _ in _levels(rows, order)]


def _spelled(levels):
    """Each n-gram of the longest order, word by word, and its count."""
    grams = [()]
    for keys, _ in levels:
        grams = [(*grams[key // 2**32], key % 2**32) for key in keys.tolist()]
    return [[*gram, count] for gram, count in zip(grams, levels[-1][1])]


FIXED = sentences(np.random.default_rng(7), 9)[0]  # a corpus in which n-grams are looked up


def _indexes():
    return [own(f"{COUNTS}.KeyIndex")(keys) for keys in _keys(FIXED)]


def _place(gram):
    return {one: place for place, one in enumerate(sorted(_grams(FIXED, len(gram))))}.get(gram, -1)


# ---- counts


def _marked(rows):
    rows = np.asarray(rows)
    ids, _ = own(f"{COUNTS}.add_markers")(rows.ravel(), np.full(len(rows), 6), (2, 1), (8, 9))
    return ids.reshape(len(rows), -1)


def _encoded(rows):
    ids = {f"w{number}": 3 * number for number in range(WORDS)}
    found, _ = own(f"{COUNTS}.encode_sentences")(
        [[f"w{number}" for number in row] for row in rows],
        lambda words: own(f"{COUNTS}.look_up")(ids, words),
        (1, 1),
        (20, 21),
    )
    return found.reshape(len(rows), -1)


def _merged(rows, new_ids):
    rows = np.asarray(rows)
    return _spelled(own(f"{COUNTS}.merge_runs")([_levels(rows[:5]), _levels(rows[5:])], new_ids))


OTHER = np.array([2, 0, 1, 2, 1])  # a new number for each word, two of which become one

oracle(
    f"{COUNTS}.pack",
    "Python's whole numbers",
    lambda pairs: own(f"{COUNTS}.pack")(*np.transpose(pairs)),
    lambda pairs: [int(context) * 2**32 + int(word) for context, word in pairs],
    lambda generator, n: (generator.integers(0, 2**20, size=(n, 2)),),
)
oracle(
    f"{COUNTS}.add_markers",
    "lists",
    _marked,
    lambda rows: [[8, 8, *row, 9] for row in rows],
    _rows(6),
)
oracle(
    f"{COUNTS}.encode_sentences",
    "lists",
    _encoded,
    lambda rows: [[20, *(3 * row), 21] for row in rows],
    _rows(6),
)
oracle(
    f"{COUNTS}.look_up",
    "pandas",
    lambda numbers: own(f"{COUNTS}.look_up")(
        {f"w{one}": one * one for one in range(9)}, [f"w{x}" for x in numbers]
    ),
    lambda numbers: pd.Series(numbers).map(pd.Series(np.arange(9) ** 2)),
    _rows(),
)
for name, new_ids in (("", None), (":renumbered", OTHER)):
    oracle(
        f"{COUNTS}.merge_runs{name}",
        "Counter",
        lambda rows, new_ids=new_ids: _merged(rows, new_ids),
        lambda rows, new_ids=new_ids: [
            [*gram, count]
            for gram, count in sorted(_grams(rows if new_ids is None else new_ids[rows], 3).items())
        ],
        sentences,
        rows=False,
    )
oracle(
    f"{COUNTS}.context_rows",
    "places in a sorted list",
    lambda grams: own(f"{COUNTS}.context_rows")(np.asarray(grams), _indexes()),
    lambda grams: [_place(tuple(gram[:2].tolist())) for gram in grams],
    _rows(3),
)


# ---- files


def _written(log10s, weights):
    """An ARPA file of single words, read again."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.arpa"
        lines = [
            f"{log10!r}\tw{place}\t{weight!r}"
            for place, (log10, weight) in enumerate(zip(map(float, log10s), map(float, weights)))
        ]
        path.write_text(
            "\n".join(
                ["\\data\\", f"ngram 1={len(lines)}", "", "\\1-grams:", *lines, "", "\\end\\"]
            )
        )
        return own(f"{FILES}.read_arpa_rows")(path)[1]


def _indexed(numbers, log10s):
    """Bigrams, each of the words whose numbers are a row's place and what was drawn for it."""
    section = [
        (place, float(log10), (f"w{first}", f"w{second}"), float(-log10))
        for place, ((first, second), log10) in enumerate(zip(numbers, log10s))
    ]
    index = own(f"{COUNTS}.KeyIndex")(np.arange(100))
    keys, logs, weights = own(f"{FILES}.index_rows")(
        "a.arpa", section, 2, {f"w{n}": n for n in range(100)}, [index]
    )
    return np.column_stack([keys, logs, weights])


def _sorted_bigrams(numbers, log10s):
    rows = sorted((*map(int, pair), float(log10)) for pair, log10 in zip(numbers, log10s))
    return [
        [first * 2**32 + second, math.log(10) * log10, -math.log(10) * log10]
        for first, second, log10 in rows
    ]


def bigrams(generator, n):
    places = generator.choice(10_000, size=n, replace=False)
    return np.stack([places // 100, places % 100], axis=1), -generator.gamma(2, size=n)


def _kept(table):
    with tempfile.TemporaryDirectory() as folder:
        np.savez_compressed(
            Path(folder) / "a.npz", table=np.asarray(table), whole=np.asarray(table).astype(int)
        )
        found = own(f"{FILES}.read_npz")(Path(folder) / "a.npz")
    return found["table"] + found["whole"]


def logs(generator, n):
    return -generator.gamma(2, size=n), generator.normal(size=n)


oracle(
    f"{FILES}.parse_arpa_row",
    "the numbers that were written",
    lambda p, w: [
        own(f"{FILES}.parse_arpa_row")([repr(float(a)), "x", "y", repr(float(b))], 2)[::2]
        for a, b in zip(p, w)
    ],
    lambda p, w: np.stack([p, w], axis=1),
    logs,
)
oracle(
    f"{FILES}.read_arpa_rows",
    "the numbers that were written",
    lambda p, w: [[row[1], row[3]] for row in _written(p, w)],
    lambda p, w: np.stack([p, w], axis=1),
    logs,
)
oracle(f"{FILES}.index_rows", "a sorted list", _indexed, _sorted_bigrams, bigrams, rows=False)
oracle(
    f"{FILES}.read_npz",
    "the numbers that were written",
    _kept,
    lambda table: table + table.astype(int),
    lambda generator, n: (10 * generator.normal(size=(n, 3)),),
)


# ---- scores


def _tables():
    """Log-probabilities of the n-grams of a corpus and weights of its contexts, at random."""
    generator = np.random.default_rng(3)
    keys = _keys(FIXED)
    return (
        [-generator.gamma(2, size=len(level)) for level in keys],
        [-generator.gamma(1, size=len(level) + 1) for level in keys[:-1]],
    )


def _scored(rows):
    rows, (probabilities, weights) = np.asarray(rows), _tables()
    found = own("words.ngram_model.score_words")(
        rows.ravel(), np.arange(len(rows)) * rows.shape[1], _indexes()[1:], probabilities, weights
    )
    return found.reshape(rows.shape)


def _backed_off(rows):
    """Each word after the two before it: the n-gram's own number, or the context's weight and the shorter n-gram."""
    probabilities, weights = _tables()

    def score(gram):
        place = _place(gram)
        if place >= 0:
            return probabilities[len(gram) - 1][place]
        return weights[len(gram) - 2][_place(gram[:-1])] + score(
            gram[1:]
        )  # -1, the last, is of contexts not listed

    return [
        [score(tuple(map(int, row[max(0, end - 2) : end + 1]))) for end in range(len(row))]
        for row in rows
    ]


oracle("words.ngram_model.score_words", "a loop over a dictionary", _scored, _backed_off, _rows(6))


# ---- smoothing


def counts(generator, n):
    """Counts of n-grams, of which fewer and fewer were seen more often, so evenly that Good-Turing can use them."""
    times = np.array([120, 37, 17, 10, 6, 5, 15]) * n - generator.integers(0, 3, size=7)
    return (generator.permutation(np.repeat([1, 2, 3, 4, 5, 6, 9], times)),)


def _good_turing(found, most):
    """Katz's discounts from the text of his article: r* over r, and all that Good-Turing frees."""
    n = Counter(np.asarray(found).tolist())
    beyond = (most + 1) * n[most + 1] / n[1]
    return [
        0,
        *(((r + 1) * n[r + 1] / n[r] / r - beyond) / (1 - beyond) for r in range(1, most + 1)),
    ]


def _chen_goodman(found):
    n = Counter(np.asarray(found).tolist())
    y = n[1] / (n[1] + 2 * n[2])
    return [0, *(r - (r + 1) * y * n[r + 1] / n[r] for r in (1, 2, 3))]


def levels(generator, n):
    """For each n-gram its count, its context and the probability of its word after the shorter one."""
    [found] = counts(generator, n)
    seen = generator.random(len(found)) < 0.9
    lower = generator.dirichlet(np.ones(len(found) + n))
    return found * seen, np.arange(len(found)) % 8, lower[: len(found)]


def _level(found, context, lower):
    found, context, lower = map(np.asarray, (found, context, lower))
    totals = np.bincount(context, found).astype(float)
    return own(f"{SMOOTHING}.Level")(
        found.astype(float), found > 0, context, totals, lower, len(found) + 1
    )


def _katz(found, context, lower):
    """One context after the other: discounted shares, and what they free spread over the words that it has not seen."""
    kept = _good_turing(found, 4)
    result = np.zeros(len(found))
    weights = []
    for place in range(8):
        rows = [row for row in range(len(found)) if context[row] == place]
        total = sum(found[row] for row in rows)
        for row in rows:
            if found[row]:
                result[row] = found[row] * (kept[found[row]] if found[row] <= 4 else 1) / total
        freed = 1 - sum(result[row] for row in rows)
        weights.append(freed / (1 - sum(lower[row] for row in rows if found[row])))
        for row in rows:
            if not found[row]:
                result[row] = weights[-1] * lower[row]
    return [*result, *weights]


def _stupid(found, context, lower):
    totals = Counter()
    for count, place in zip(found, context):
        totals[place] += count
    return [
        *(
            count / totals[place] if count else 0.4 * less
            for count, place, less in zip(found, context, lower)
        ),
        *[0.4] * 8,
    ]


def _left_neighbours(rows):
    """How many different words stood before each bigram."""
    return [
        len({longer[0] for longer in _grams(rows, 3) if longer[1:] == gram})
        for gram in sorted(_grams(rows, 2))
    ]


def _suffix_places(rows):
    places = {
        n: {gram: place for place, gram in enumerate(sorted(_grams(rows, n)))} for n in (1, 2)
    }
    return [places[n - 1][gram[1:]] for n in (2, 3) for gram in sorted(_grams(rows, n))]


oracle(
    f"{SMOOTHING}.suffix_rows",
    "places in a sorted list",
    lambda rows: np.concatenate(own(f"{SMOOTHING}.suffix_rows")(_keys(rows))[1:]),
    _suffix_places,
    sentences,
    rows=False,
)
oracle(
    f"{SMOOTHING}.continuation_counts",
    "sets of words",
    lambda rows: own(f"{SMOOTHING}.continuation_counts")(
        own(f"{SMOOTHING}.suffix_rows")(_keys(rows))[2], len(_keys(rows)[1])
    ),
    _left_neighbours,
    sentences,
    rows=False,
)
oracle(
    f"{SMOOTHING}.katz_ratios",
    "Counter, then Katz's formula",
    lambda found: own(f"{SMOOTHING}.katz_ratios")(np.asarray(found), 4),
    lambda found: _good_turing(found, 4),
    counts,
    rows=False,
)
oracle(
    f"{SMOOTHING}.modified_discounts",
    "Counter, then the formula of Chen and Goodman",
    lambda found: own(f"{SMOOTHING}.modified_discounts")(np.asarray(found)),
    _chen_goodman,
    counts,
    rows=False,
)
oracle(
    f"{SMOOTHING}.discounts_by_count",
    "Counter, then the formula of Chen and Goodman",
    lambda found: own(f"{SMOOTHING}.discounts_by_count")(np.asarray(found), 0.5),
    lambda found: np.take(_chen_goodman(found), np.minimum(found, 3)),
    counts,
    rows=False,
    whole_is_symmetric=False,
)
oracle(
    f"{SMOOTHING}.smooth_katz",
    "a loop over contexts",
    lambda *level: np.concatenate(own(f"{SMOOTHING}.smooth_katz")(_level(*level), 4)),
    _katz,
    levels,
    rows=False,
    whole_is_symmetric=False,
)
oracle(
    f"{SMOOTHING}.smooth_stupid",
    "a loop over contexts",
    lambda *level: np.concatenate(own(f"{SMOOTHING}.smooth_stupid")(_level(*level), 0.4)),
    _stupid,
    levels,
    rows=False,
    whole_is_symmetric=False,
)
