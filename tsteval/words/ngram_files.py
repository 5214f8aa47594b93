"""N-gram models in files: the ARPA text format and exact arrays, and what is said of a broken file"""

import gzip
import io
import json
import math
import re
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np

from ..core.checks import InputError
from ..core.files import whole_file
from ..tables.formats import LONGEST_ROW, MOST_UNPACKED
from .ngram_counts import END, START, UNKNOWN, WORD_BITS, WORD_MASK, KeyIndex, context_rows, pack
from .ngram_model import NgramModel

_UNKNOWN_TOO = "<UNK>"  # SRILM's and KenLM's other spelling of <unk>


def _arpa_fields(line: str) -> list[str]:
    """What spaces and tabs separate; any other white space is part of a word."""
    return re.findall(r"[^ \t\r\n]+", line)


def check_arpa_words(
    words: Sequence[str],  # the vocabulary
) -> None:
    """Refuse words that an ARPA file cannot hold. Raises: InputError naming the word."""
    for word in words:
        if _arpa_fields(word) != [word]:
            raise InputError(
                f"the word {word!r} is empty or holds a space, tab or line break, which an ARPA file cannot store"
            )
        if word == _UNKNOWN_TOO:
            raise InputError(
                f"the word {word} means {UNKNOWN} to whoever reads an ARPA file; replace it by {UNKNOWN} "
                f"in the "
                "training text and fit again"
            )
        if any("\ud800" <= letter <= "\udfff" for letter in word):
            raise InputError(
                f"the word {word!r} holds half a surrogate pair, which no UTF-8 file can store"
            )


def write_arpa(
    path: str | Path,  # file to write
    words: list[str],  # (V,) the vocabulary; a word's id is its place
    keys: list[np.ndarray],  # sorted keys of each level
    log_probabilities: list[np.ndarray],  # per level: (rows,) natural logs
    log_weights: list[np.ndarray],  # per level but the last: (rows + 1,) natural logs
) -> None:
    """Write a model in the ARPA text format, base-10 logs; a probability of 0 is written as -99.

    Raises: InputError for a word that the format cannot hold.
    Source: Stolcke 2002, ngram-format(5).
    """
    check_arpa_words(words)
    with (
        whole_file(path) as temporary,
        open(temporary, "w", encoding="utf-8", newline="\n") as file,
    ):
        file.write(
            "\\data\\\n" + "".join(f"ngram {n}={len(level)}\n" for n, level in enumerate(keys, 1))
        )
        texts = [""]
        for n, level in enumerate(keys, 1):
            texts = [
                f"{texts[row]} {words[word]}".lstrip(" ")
                for row, word in zip((level >> WORD_BITS).tolist(), (level & WORD_MASK).tolist())
            ]
            columns = [np.maximum(log_probabilities[n - 1] / np.log(10), -99)]
            if n < len(keys):
                columns.append(np.maximum(log_weights[n - 1][:-1] / np.log(10), -99))
            file.write(f"\n\\{n}-grams:\n")
            for text, *numbers in zip(texts, *[column.tolist() for column in columns]):
                file.write(
                    "\t".join(
                        [f"{numbers[0]:.9g}", text, *[f"{weight:.9g}" for weight in numbers[1:]]]
                    )
                    + "\n"
                )
        file.write("\n\\end\\\n")


def parse_arpa_row(
    fields: list[str],  # one line of an n-gram section, split at spaces and tabs
    order: int,  # n
) -> tuple[
    float, tuple, float
]:  # base-10 log-probability, n tokens, base-10 log weight (0 where the line has none)
    """Read one line of an ARPA file.

    Raises: ValueError without a message for a line that is not of this shape.
    """
    log10 = float(fields[0])
    tokens = fields[1 : order + 1]
    weights = fields[order + 1 :]
    weight = float(weights[0]) if weights else 0.0
    if not log10 <= 0 or len(tokens) != order or len(weights) > 1 or not weight < math.inf:
        raise ValueError
    return log10, tuple(UNKNOWN if token == _UNKNOWN_TOO else token for token in tokens), weight


def read_arpa_rows(
    path: str | Path,  # an ARPA file, UTF-8, perhaps compressed by gzip
) -> dict[int, list]:  # by order: rows of (line number, log10 probability, tokens, log10 weight)
    """Split an ARPA file into its rows.

    Raises: InputError, with the file and the line, for anything but the ARPA format.
    """
    promised: dict[int, int] = {}
    rows: dict[int, list] = {}
    section = None
    line = 0
    text = ""
    try:
        for line, text in enumerate(_arpa_lines(path), 1):
            section = _read_arpa_line(_arpa_fields(text), line, section, promised, rows)
    except InputError:
        raise
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}, after line {line}: not UTF-8 text ({error.reason}); write the file anew"
        ) from None
    except (ValueError, IndexError):
        raise InputError(
            f"{path}, line {line}: {text.strip()!r:.80} does not fit here, in the section "
            f"{section}; repair the line or write the file anew"
        ) from None
    counts = {order: len(section_rows) for order, section_rows in rows.items()}
    if (
        section != "\\end\\"
        or not counts
        or counts != promised
        or list(counts) != list(range(1, len(counts) + 1))
    ):
        raise InputError(
            f"{path} is cut short or not an ARPA file: its header promises {promised} n-grams by order, "
            f"it holds {counts}, and its last section, up to line {line}, is {section}; write it anew"
        )
    return rows


def _arpa_lines(path: str | Path) -> Iterator[str]:
    """The lines of an ARPA file. Raises: InputError for a packed one that is damaged, or unpacks to more than a model
    does."""
    with open(path, "rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    most = _most_unpacked(path)
    size = 0
    try:
        with (gzip.open if packed else open)(path, "rt", encoding="utf-8", newline="\n") as file:
            while text := file.readline(LONGEST_ROW):
                size += len(text)
                if packed and size > most:
                    raise InputError(
                        f"{path}: it unpacks to more than {most:,} bytes; unpack it first"
                    )
                yield text
    except (EOFError, OSError, zlib.error) as error:
        if not packed:
            raise
        raise InputError(f"{path}: not a readable gzip file ({error}); write it anew") from None


def _read_arpa_line(
    fields: list[str], line: int, section: str | None, promised: dict, rows: dict
) -> str | None:
    """Take in one line; returns the section it leaves us in. Raises: ValueError or IndexError for a line that does not
    fit."""
    if not fields or (section is None and fields != ["\\data\\"]):
        return section  # text above \data\ is a comment
    if fields[0].startswith("\\"):
        if fields[0].endswith("-grams:"):
            rows[int(fields[0][1:-7])] = []
        return fields[0]
    if section == "\\data\\":
        order, number = fields[1].split("=")
        promised[int(order)] = int(number)
    else:
        rows[max(rows)].append((line, *parse_arpa_row(fields, max(rows))))
    return section


def index_rows(
    path: str | Path,  # named in the message
    section: list,  # rows of one order, as `read_arpa_rows` returns them
    n: int,  # that order
    ids: dict[str, int],  # ids of the words
    indexes: list[KeyIndex],  # of the levels below
) -> tuple[
    np.ndarray, np.ndarray, np.ndarray
]:  # sorted keys, natural logs of probabilities and weights, (rows,)
    """Bring one section of an ARPA file into sorted arrays.

    Raises: InputError, with the line, for an n-gram that is repeated or has unlisted parts.
    """
    lines, log10, tokens, weights = zip(*section) if section else ((), (), (), ())
    grams = np.array(
        [[ids.get(token, -1) for token in gram] for gram in tokens], dtype=np.int64
    ).reshape(-1, n)
    context = context_rows(grams, indexes)
    packed = pack(context, grams[:, -1])
    order = np.argsort(packed, kind="stable")
    repeated = order[1:][np.diff(packed[order]) == 0]
    wrong = np.concatenate([np.flatnonzero((context < 0) | (grams < 0).any(axis=1)), repeated])
    if len(wrong):
        raise InputError(
            f"{path}, line {lines[wrong[0]]}: the n-gram {' '.join(tokens[wrong[0]])!r} is repeated, or "
            "one of its words or its context is not listed before it; write the file anew"
        )
    return packed[order], np.array(log10)[order] * np.log(10), np.array(weights)[order] * np.log(10)


def read_arpa(
    path: str | Path,  # an ARPA file, UTF-8
) -> tuple[
    list, list, list, list
]:  # words, keys, log_probabilities, log_weights, as `write_arpa` takes them
    """Read a model in the ARPA text format.

    Raises: InputError, with the file and the line, for a broken file or an n-gram that is repeated or has unlisted
    parts.
    Source: Stolcke 2002, ngram-format(5).
    """
    rows = read_arpa_rows(path)
    words = [tokens[0] for _, _, tokens, _ in rows[1]]
    for special, log10 in [(UNKNOWN, -100.0), (START, -99.0), (END, -99.0)]:
        if special not in words:
            words.append(special)
            rows[1].append((0, log10, (special,), 0.0))
    ids = {word: row for row, word in enumerate(words)}
    keys: list = []
    indexes: list[KeyIndex] = []
    log_probabilities = []
    log_weights = []
    for n, section in rows.items():
        packed, scores, weights = index_rows(path, section, n, ids, indexes)
        keys.append(packed)
        indexes.append(KeyIndex(packed))
        log_probabilities.append(scores)
        log_weights.append(np.append(weights, 0))  # contexts that are not listed have weight 1
    return words, keys, log_probabilities, log_weights[:-1]


def _most_unpacked(path: str | Path) -> int:
    return max(MOST_UNPACKED, 20 * Path(path).stat().st_size)


def read_npz(
    path: str | Path,  # a file that `SavedNgramModel.save` wrote
) -> dict[str, np.ndarray]:  # its arrays by name
    """Read every array of a saved model without unpickling anything.

    Raises: InputError, naming the file and the array, for a file that is damaged or is not such a file, or unpacks to
    more than 512 MB and twenty times its size; models pack to a third or so.
    """
    name = "its directory"
    arrays = {}
    with open(path, "rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                size = sum(member.file_size for member in archive.infolist())
                most = _most_unpacked(path)
                if size > most:
                    raise ValueError(f"it unpacks to {size:,} bytes, more than {most:,}")
                for name in archive.namelist():
                    member = io.BytesIO(
                        archive.read(name)
                    )  # whole, so that its checksum is compared first
                    arrays[name.removesuffix(".npy")] = np.lib.format.read_array(
                        member, allow_pickle=False
                    )
        except (
            Exception
        ) as error:  # what zipfile, zlib and NumPy raise for damaged bytes is no fixed list
            raise InputError(f"{path}: cannot read {name} ({error}); save the model anew") from None
    return arrays


def _saved_words(
    path: str | Path,  # named in the message
    arrays: dict,  # as `read_npz` returns them
) -> list[str]:
    """Read the words of a saved model. Raises: InputError, naming the array, where one is missing or senseless."""
    try:
        name = "word_lengths"
        lengths = arrays[name].tolist()
        ends = np.cumsum(arrays[name])
        name = "word_bytes"
        blob = arrays[name].tobytes()
        words = [
            blob[end - length : end].decode("utf-8", "surrogatepass")
            for end, length in zip(ends.tolist(), lengths)
        ]
        if len(set(words)) != len(words) or UNKNOWN not in words or ends[-1] != len(blob):
            raise ValueError("the words do not add up")
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise InputError(
            f"{path}: the array {name} is missing or damaged ({error}); save the model anew"
        ) from None
    return words


def _saved_settings(
    path: str | Path,  # named in the message
    arrays: dict,  # as `read_npz` returns them
    setting_names: Sequence[str],  # the settings that a model has
) -> dict:
    """Read the settings of a saved model.

    Raises: InputError naming the file and the setting, where one is missing or unknown.
    """
    try:
        settings = json.loads(str(arrays["settings"]))
        if not isinstance(settings, dict):
            raise ValueError("it holds no settings")
    except (KeyError, ValueError) as error:
        raise InputError(
            f"{path}: the array settings is missing or damaged ({error}); save the model anew"
        ) from None
    for name in [*settings, *setting_names]:
        if (name in settings) != (name in setting_names):
            raise InputError(
                f"{path}: the setting {name!r} is {'unknown' if name in settings else 'missing'}; "
                f"a model's settings are {', '.join(setting_names)}; save the model anew"
            )
    return settings


def _check_saved_tables(
    path: str | Path,  # named in the message
    arrays: dict,  # as `read_npz` returns them
    order: int,  # of the model
    vocabulary: int,  # number of words
) -> None:
    """See that a saved model's arrays fit together.

    Raises: InputError, naming the file and the array.
    """
    for n in range(1, order + 1):
        for kind in ("keys", "log_probabilities", "log_weights"):
            if f"{kind}_{n}" not in arrays and (kind, n) != ("log_weights", order):
                raise InputError(f"{path}: the array {kind}_{n} is missing; save the model anew")
    below = 1
    for n in range(1, order + 1):
        keys = arrays[f"keys_{n}"]
        scores = arrays[f"log_probabilities_{n}"]
        sound = {
            f"keys_{n}": keys.dtype == np.int64
            and keys.ndim == 1
            and (np.diff(keys) > 0).all()
            and (n > 1 or len(keys) == vocabulary)
            and (
                len(keys) == 0
                or (
                    keys[0] >= 0
                    and keys[-1] >> WORD_BITS < below
                    and (keys & WORD_MASK).max() < vocabulary
                )
            ),
            f"log_probabilities_{n}": scores.dtype == np.float64
            and scores.shape == keys.shape
            and not np.isnan(scores).any(),
        }
        if n < order:
            weights = arrays[f"log_weights_{n}"]
            sound[f"log_weights_{n}"] = (
                weights.dtype == np.float64
                and weights.shape == (len(keys) + 1,)
                and not np.isnan(weights).any()
            )
        for name, fits in sound.items():
            if not fits:
                raise InputError(
                    f"{path}: the array {name} does not fit the rest of the model; save the model anew"
                )
        below = len(keys)


_Saved = TypeVar(
    "_Saved", bound="SavedNgramModel"
)  # so that a subclass's `load` returns that subclass


class SavedNgramModel(NgramModel):
    """An n-gram model that can be written to files and read from them."""

    def save(
        self,
        path: str | Path,  # file to write; .npz is the usual ending
    ) -> None:
        """Write the model to one file of plain arrays."""
        encoded = [word.encode("utf-8", "surrogatepass") for word in self.words]
        arrays: dict = {
            "settings": np.array(json.dumps(self.settings)),
            "word_bytes": np.frombuffer(b"".join(encoded), dtype=np.uint8),
            "word_lengths": np.array([len(word) for word in encoded]),
        }
        for name in ("keys", "log_probabilities", "log_weights"):
            arrays |= {f"{name}_{n}": values for n, values in enumerate(getattr(self, name), 1)}
        with whole_file(path) as temporary, open(temporary, "wb") as file:
            np.savez(file, **arrays)

    @classmethod
    def load(
        cls: type[_Saved],
        path: str
        | Path,  # a file that `save` wrote, or an ARPA file, whose name ends in .arpa or .arpa.gz
    ) -> _Saved:  # a model of this class
        """Read a saved model; nothing is unpickled.

        Raises: InputError, naming the file and the line, array or setting, for a damaged file.
        """
        if str(path).endswith((".arpa", ".arpa.gz")):
            return cls.from_arpa(path)
        arrays = read_npz(path)
        settings = _saved_settings(path, arrays, cls.SETTINGS)
        words = _saved_words(path, arrays)
        model = cls.__new__(cls)
        try:
            model._configure(**settings)
        except InputError as error:
            raise InputError(f"{path}: {error}; save the model anew") from None
        _check_saved_tables(path, arrays, model.order, len(words))
        tables = [
            [arrays[f"{name}_{n}"] for n in range(1, last + 1)]
            for name, last in [
                ("keys", model.order),
                ("log_probabilities", model.order),
                ("log_weights", model.order - 1),
            ]
        ]
        model.set_tables(words, *tables)
        return model

    def to_arpa(
        self,
        path: str | Path,  # file to write
    ) -> None:
        """Write the model in the ARPA text format that KenLM and SRILM read.

        Raises: InputError for padding "both", for mle, add_k and stupid_backoff, and for words that the format cannot
        hold.
        """
        if self.padding != "arpa" or self.smoothing in ("mle", "add_k", "stupid_backoff"):
            raise InputError(
                f"smoothing={self.smoothing!r} with padding={self.padding!r} has no ARPA form; "
                "fit one with padding='arpa' and a smoothing other than mle, add_k and stupid_backoff"
            )
        write_arpa(path, self.words, self.keys, self.log_probabilities, self.log_weights)

    @classmethod
    def from_arpa(
        cls: type[_Saved],
        path: str | Path,  # an ARPA file, perhaps compressed by gzip
    ) -> _Saved:  # a model of this class whose smoothing is called "arpa"
        """Read a model in the ARPA text format.

        Raises: InputError, naming the file and the line, for a broken file.
        """
        words, keys, log_probabilities, log_weights = read_arpa(path)
        model = cls.__new__(cls)
        model._configure(len(keys), "arpa", 0.1, "arpa", 1, 1.0, 0.4, 5)
        model.set_tables(words, keys, log_probabilities, log_weights)
        return model
