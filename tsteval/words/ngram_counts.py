"""Counts of n-grams: integer keys, counting by sorting, look-up, and the way from text to numbers"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice

import numpy as np

from ..core.checks import InputError, InputTypeError, check_rows, describe

WORD_BITS = (
    32  # a key: the row of the n-gram's first n-1 words above, the id of its last word below
)
WORD_MASK = (1 << WORD_BITS) - 1


def pack(
    context: np.ndarray,  # (rows,) row of each n-gram's first n-1 words in the level below; -1 where not listed
    word: np.ndarray,  # (rows,) id of its last word, 0 .. 2**32 - 2
) -> np.ndarray:  # (rows,) int64 keys; negative where the context is not listed
    """One integer for each n-gram; keys sort by context first, then by word."""
    return (context << WORD_BITS) | word


def count_ngrams(
    words: np.ndarray,  # (T,) ids of all sentences' words, one sentence after the other, markers included
    lengths: np.ndarray,  # (N,) words of each sentence, markers included
    order: int,  # longest n-gram, >= 1
) -> list[tuple[np.ndarray, np.ndarray]]:  # for n = 1 .. order: (sorted keys, counts), both (rows,)
    """Count the n-grams of every order that lie within a sentence, by sorting."""
    words_to_end = np.repeat(np.cumsum(lengths), lengths) - np.arange(len(words))
    row_at = np.zeros(
        len(words), dtype=np.int64
    )  # row of the (n-1)-gram that starts at each position
    starts = np.arange(len(words))
    levels = []
    for n in range(1, order + 1):
        starts = starts[words_to_end[starts] >= n]
        packed = pack(row_at[starts], words[starts + n - 1])
        keys, rows, counts = np.unique(packed, return_inverse=True, return_counts=True)
        row_at[starts] = rows
        levels.append((keys, counts))
    return levels


def merge_runs(
    runs: list,  # runs as `count_ngrams` returns them, all of one order
    new_ids: np.ndarray | None = None,  # (V,) new id of each word; None keeps the ids
) -> list[tuple[np.ndarray, np.ndarray]]:  # one run with the summed counts
    """Add up counted runs; words that receive the same new id become one word."""
    new_rows = [np.zeros(1, dtype=np.int64) for _ in runs]
    merged = []
    for level in zip(*runs):
        words = [keys & WORD_MASK for keys, _ in level]
        if new_ids is not None:
            words = [new_ids[ids] for ids in words]
        packed = [
            pack(rows[keys >> WORD_BITS], ids)
            for rows, (keys, _), ids in zip(new_rows, level, words)
        ]
        keys, places = np.unique(np.concatenate(packed), return_inverse=True)
        counts = np.bincount(
            places, np.concatenate([counts for _, counts in level]), minlength=len(keys)
        )
        new_rows = np.split(places, np.cumsum([len(part) for part in packed])[:-1])
        merged.append((keys, counts))
    return merged


def merge_stack(
    runs: list,  # counted runs, oldest first; changed in place
) -> None:
    """Merge the newest runs until each is less than half as large as the one before it.

    So a text of any length is held as few runs, and each n-gram takes part in few merges.
    """

    def rows(run):
        return sum(len(keys) for keys, _ in run)

    while len(runs) > 1 and rows(runs[-2]) <= 2 * rows(runs[-1]):
        runs[-2:] = [merge_runs(runs[-2:])]


class KeyIndex:
    """Finds the rows of many n-gram keys at once: a hash table with linear probing, as KenLM's, in NumPy.

    Scoring looks up each word's n-gram once an order. `numpy.searchsorted` and pandas' `get_indexer` take longer than
    KenLM's whole loop or a good part of it; tests/benchmarks/ngram.py holds this table to it.
    """

    def __init__(
        self,
        keys: np.ndarray,  # (rows,) different keys, none of them negative
    ):
        bits = max(4, int(8 * len(keys)).bit_length())  # at most one slot in eight is taken
        self.last_slot = (1 << bits) - 1
        self.shift = np.uint64(64 - bits)
        self.keys = np.append(keys, -1)  # so that row -1, "absent", has a key too
        self.table = np.full(1 << bits, -1, dtype=np.int32)
        rows = np.arange(len(keys))
        slots = self._home(keys)
        while len(rows):  # of the keys that want one slot, one settles, the rest move on
            free = self.table[slots] < 0
            self.table[slots[free]] = rows[free]
            homeless = self.table[slots] != rows
            rows = rows[homeless]
            slots = (slots[homeless] + 1) & self.last_slot

    def _home(self, keys: np.ndarray) -> np.ndarray:
        mixed = keys.view(np.uint64) * np.uint64(
            0x9E3779B97F4A7C15
        )  # Knuth's multiplier: 2**64 / golden ratio
        return (mixed >> self.shift).view(np.int64)

    def find(
        self,
        queries: np.ndarray,  # (queries,) int64 keys in any order
    ) -> np.ndarray:  # (queries,) their rows; -1 where absent
        """Look up many keys; the few that collide are looked for one slot further, together."""
        slots = self._home(queries)
        rows = self.table.take(slots).astype(np.int64)
        taken = np.flatnonzero(rows >= 0)  # where a slot is empty, the key is absent
        wrong = taken[self.keys.take(rows.take(taken)) != queries.take(taken)]
        while len(wrong):
            slots[wrong] = (slots[wrong] + 1) & self.last_slot
            rows[wrong] = self.table[slots[wrong]]
            wrong = wrong[(self.keys[rows[wrong]] != queries[wrong]) & (rows[wrong] >= 0)]
        return rows


def context_rows(
    grams: np.ndarray,  # (rows, n) word ids
    indexes: list[KeyIndex],  # of the levels 1 .. n - 1 at least
) -> (
    np.ndarray
):  # (rows,) row of each n-gram's first n - 1 words at level n - 1; -1 where not listed
    """Find the context of each n-gram by walking down the levels from its first word."""
    rows = np.zeros(len(grams), dtype=np.int64)
    for column in range(grams.shape[1] - 1):
        rows = np.where(rows < 0, -1, indexes[column].find(pack(rows, grams[:, column])))
    return rows


UNKNOWN = "<unk>"
START = "<s>"
END = "</s>"


class WordIds(dict):
    """Ids of words; a word that is not listed has the id of <unk>. What is no string is refused."""

    def __missing__(self, word: str) -> int:
        if not isinstance(word, str):
            raise InputTypeError(f"a word must be a string, got {describe(word)}")
        return self[UNKNOWN]


def look_up(
    ids: Mapping[str, int],
    words: list[str],  # W words
) -> np.ndarray:  # (W,) int64
    """The ids of words, one by one."""
    return np.fromiter(map(ids.__getitem__, words), dtype=np.int64, count=len(words))


def check_stream(
    sentences: Iterable,  # lists of tokens, perhaps more than fit into memory
    name: str = "sentences",  # what the caller calls this argument
) -> None:
    """Refuse what cannot be looped over as sentences, without looping. Raises: InputTypeError."""
    if (
        isinstance(sentences, (str, bytes, Mapping, set))
        or hasattr(sentences, "columns")
        or not isinstance(sentences, Iterable)
    ):
        check_rows(sentences, name, of="lists of tokens")


def check_sentence_types(
    sentences: Sequence,  # what should be lists of tokens
    first_row: int = 0,  # number of the first sentence
    name: str = "sentences",
) -> None:
    """Make sure that each sentence is a list or tuple. Raises: InputTypeError naming the row."""
    if all(issubclass(kind, (list, tuple)) for kind in set(map(type, sentences))):
        return
    row = next(
        row for row, sentence in enumerate(sentences) if not isinstance(sentence, (list, tuple))
    )
    raise InputTypeError(
        f"expected a list of tokens, got {describe(sentences[row])}; "
        "split it, for example with text.split()",
        argument=name,
        row=first_row + row,
    )


def refuse_tokens(
    sentences: Sequence[Sequence],  # lists of tokens
    first_row: int = 0,  # number of the first sentence
    name: str = "sentences",
) -> None:
    """Raise an InputTypeError for the first token that is no string, if there is one."""
    for row, sentence in enumerate(sentences, first_row):
        for token in sentence:
            if not isinstance(token, str):
                raise InputTypeError(
                    f"expected strings as tokens, got {describe(token)}; drop or fill it",
                    argument=name,
                    row=row,
                )


def special_words(
    markers: tuple[int, int],  # start and end markers for each sentence
) -> list[str]:
    """What a vocabulary begins with: <unk>, and the markers where sentences have any."""
    return [UNKNOWN, START, END] if sum(markers) else [UNKNOWN]


def add_markers(
    tokens: np.ndarray,  # (W,) ids of all sentences' words
    lengths: np.ndarray,  # (N,) words of each sentence
    markers: tuple[int, int],  # how many start and end markers each sentence receives
    marker_ids: tuple[int, int],  # ids of the start marker and of the end marker
    first_row: int = 0,  # number of the first sentence, for error messages
) -> tuple[
    np.ndarray, np.ndarray
]:  # (T,) ids of all sentences with markers, (N,) their lengths with markers
    """Put markers around each sentence. Raises: InputError for a sentence that already holds one."""
    misplaced = np.flatnonzero((tokens == marker_ids[0]) | (tokens == marker_ids[1]))
    if sum(markers) and len(misplaced):
        row = first_row + int(np.searchsorted(np.cumsum(lengths), misplaced[0], side="right"))
        raise InputError(
            f"it holds a {START} or {END}; the model adds these itself, so remove it",
            argument="sentences",
            row=row,
        )
    whole = lengths + sum(markers)
    ends = np.cumsum(whole)
    words = np.full(whole.sum(), marker_ids[1])
    is_word = np.ones(whole.sum(), dtype=bool)
    for offset in range(markers[0]):
        words[ends - whole + offset] = marker_ids[0]
        is_word[ends - whole + offset] = False
    for offset in range(1, markers[1] + 1):
        is_word[ends - offset] = False
    words[is_word] = tokens
    return words, whole


def encode_sentences(
    sentences: Sequence[Sequence[str]],  # N lists of tokens
    lookup: Callable[[list[str]], np.ndarray],  # gives the words' ids
    markers: tuple[int, int],  # how many start and end markers each sentence receives
    marker_ids: tuple[int, int],  # ids of the start marker and of the end marker
    first_row: int = 0,  # number of the first sentence, for error messages
) -> tuple[
    np.ndarray, np.ndarray
]:  # (T,) ids of all sentences with markers, (N,) their lengths with markers
    """Turn sentences into one long array of word ids with markers around each sentence.

    Raises: InputTypeError for a sentence that is not a list or tuple; InputError for one that holds a marker.
    """
    check_sentence_types(sentences, first_row)
    lengths = np.fromiter(map(len, sentences), dtype=np.int64, count=len(sentences))
    try:
        tokens = lookup(list(chain.from_iterable(sentences)))
    except TypeError:  # a token that is no string, or has no hash
        refuse_tokens(sentences, first_row)
        raise
    return add_markers(tokens, lengths, markers, marker_ids, first_row)


# bytes of a word's first piece, of each other piece, and of a word that is looked up in pieces
HEAD = 7
PIECE = 4
LONGEST = 127
FEW_WORDS = 500  # so many words in a list are found faster one by one
# masks: the first so many bytes of eight
_BYTES = np.array([(1 << 8 * size) - 1 for size in range(9)], dtype=np.uint64)
_WHITESPACE = bytes.maketrans(
    b"\t\n\v\f\r\x1c\x1d\x1e\x1f", b" " * 9
)  # what `str.split` takes for a space in ASCII


class WordFinder:
    """Finds the ids of all words in the UTF-8 bytes of a text at once: a trie whose steps are looked up in `KeyIndex`.

    Splitting into strings and asking a dictionary for each takes longer than KenLM's whole loop.
    """

    def __init__(
        self,
        ids: WordIds,  # the vocabulary
    ):
        self.ids, encoded = ids, [word.encode("utf-8", "surrogatepass") for word in ids]
        lengths = np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded))
        starts = np.cumsum(lengths) - lengths
        windows = self._windows(b"".join(encoded))
        short = np.flatnonzero(lengths <= LONGEST)
        heads, nodes = np.unique(self._heads(windows, starts, lengths)[short], return_inverse=True)
        levels = [np.arange(0)]
        node_count = len(heads)
        ends = (starts + lengths)[short]
        for offset in range(HEAD, LONGEST, PIECE):
            asked = np.flatnonzero(lengths[short] > offset)
            left = lengths[short[asked]] - offset
            keys, rows = np.unique(
                pack(nodes[asked], self._pieces(windows, ends[asked] - left, left)),
                return_inverse=True,
            )
            nodes[asked] = node_count + rows
            levels.append(keys)
            node_count += len(keys)
        self.heads = KeyIndex(heads)
        self.tails = KeyIndex(np.concatenate(levels))
        self.id_at = np.full(
            node_count + 1, ids[UNKNOWN]
        )  # the last is that of node -1, where no word is
        self.id_at[nodes] = short  # a word's id is its place

    @staticmethod
    def _windows(data: bytes) -> np.ndarray:
        """The eight bytes from each place on, as one number."""
        return np.ndarray(len(data) + 1, dtype="<u8", buffer=data + bytes(8), strides=(1,))

    @staticmethod
    def _heads(windows: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """A key of each word's length and first bytes."""
        return (np.minimum(lengths, LONGEST) << 8 * HEAD) | (
            windows[starts] & _BYTES[np.minimum(lengths, HEAD)]
        ).view(np.int64)

    @staticmethod
    def _pieces(windows: np.ndarray, places: np.ndarray, left: np.ndarray) -> np.ndarray:
        """The bytes at each place, as many as a later piece has, and no more than are left of the word."""
        return (windows[places] & _BYTES[np.minimum(left, PIECE)]).view(np.int64)

    def find(
        self,
        data: bytes,  # a text in UTF-8
        starts: np.ndarray,  # (W,) where each word begins
        lengths: np.ndarray,  # (W,) its bytes
    ) -> np.ndarray:  # (W,) ids
        """Ids of a text's words; the id of <unk> where a word is not listed."""
        windows = self._windows(data)
        nodes = self.heads.find(self._heads(windows, starts, lengths))
        asked = np.flatnonzero((nodes >= 0) & (lengths > HEAD) & (lengths <= LONGEST))
        offset = HEAD
        while len(asked):
            left = lengths.take(asked) - offset
            rows = self.tails.find(
                pack(nodes.take(asked), self._pieces(windows, starts.take(asked) + offset, left))
            )
            nodes[asked] = np.where(rows < 0, -1, rows + len(self.heads.keys) - 1)
            asked = asked[(rows >= 0) & (left > PIECE)]
            offset = offset + PIECE
        word_ids = self.id_at.take(nodes)
        for row in np.flatnonzero(lengths > LONGEST).tolist():
            word_ids[row] = self.ids[
                data[starts[row] : starts[row] + lengths[row]].decode("utf-8", "surrogatepass")
            ]
        return word_ids

    def find_tokens(
        self,
        tokens: list[str],  # W words
    ) -> np.ndarray:  # (W,) ids
        """Ids of words in a list. Raises: TypeError for one that is no string."""
        if len(tokens) < FEW_WORDS:
            return look_up(self.ids, tokens)
        data = "\n".join([*tokens, ""]).encode("utf-8", "surrogatepass")
        ends = np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == 10)
        if len(ends) != len(tokens):
            return look_up(self.ids, tokens)  # a word holds the separator
        starts = np.append(0, ends + 1)[:-1]
        return self.find(data, starts, ends - starts)

    def split(
        self,
        texts: Sequence[str],  # N texts
    ) -> tuple[np.ndarray, np.ndarray]:  # (W,) ids of all texts' words, (N,) words of each text
        """Ids of the words of texts, as `str.split` makes them."""
        parts = [
            (text if text.isascii() else " ".join(text.split())).encode("utf-8", "surrogatepass")
            for text in texts
        ]
        data = b" ".join([b"", *parts, b""]).translate(_WHITESPACE)
        space = np.frombuffer(data, dtype=np.uint8) == 32
        edges = np.flatnonzero(space[1:] != space[:-1]) + 1
        starts = edges[::2]
        ends = edges[1::2]
        bounds = np.cumsum(np.fromiter(map(len, parts), dtype=np.int64, count=len(parts)) + 1)
        return self.find(data, starts, ends - starts), np.diff(
            np.searchsorted(starts, bounds), prepend=0
        )


_BATCH_WORDS = 1_000_000  # a text is counted in pieces of about this many words


def _batches(
    sentences: Iterable[Sequence[str]],  # lists of tokens
    words: int,  # about how many to a batch
) -> Iterator[list]:  # lists of sentences
    """Cut a stream of sentences into lists of bounded size."""
    batch = []
    size = 0
    for sentence in sentences:
        batch.append(sentence)
        size += 1 + len(sentence) if isinstance(sentence, (list, tuple)) else 1
        if size >= words:
            yield batch
            batch = []
            size = 0
    yield batch


def count_sentences(
    sentences: Iterable[
        Sequence[str]
    ],  # lists of tokens, possibly a generator over more than fits in memory
    order: int,  # longest n-gram
    markers: tuple[int, int],  # start and end markers for each sentence
    batch_words: int = _BATCH_WORDS,  # words that are held as text at a time, about
) -> tuple[
    list[str], list
]:  # the vocabulary, <unk> and markers first; its counts, as from `merge_runs`
    """Count the n-grams of a text, piece by piece.

    Raises: InputError for a text without words; InputTypeError or InputError, naming the sentence, as
    `encode_sentences`.
    """
    check_stream(sentences)
    ids: defaultdict[str, int] = defaultdict()
    ids.default_factory = ids.__len__  # a new word receives the next free id
    specials = special_words(markers)
    start, end = ([ids[special] for special in specials] + [0, 0])[1:3]
    runs = []
    done = 0
    vocabulary_size = len(ids)
    for batch in _batches(sentences, batch_words):
        words, lengths = encode_sentences(
            batch, partial(look_up, ids), markers, (start, end), first_row=done
        )
        if not all(isinstance(word, str) for word in islice(ids, vocabulary_size, None)):
            refuse_tokens(batch, done)
        runs.append(count_ngrams(words, lengths, order))
        merge_stack(runs)
        done = done + len(batch)
        vocabulary_size = len(ids)
    if len(ids) == len(specials):
        raise InputError(
            "the corpus holds no words; pass at least one list of tokens that is not empty"
        )
    nothing = np.arange(0)
    vocabulary = [(np.arange(len(ids)), np.zeros(len(ids)))] + [(nothing, nothing)] * (order - 1)
    # each word now has a row at level 1: that row is its id
    return list(map(str, ids)), merge_runs([*runs, vocabulary])
