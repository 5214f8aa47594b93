"""Vectors of words and tokens for many pairs of texts, and the exact price of moving one heap of words onto another"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from tsteval.core.checks import (
    InputError,
    InputTypeError,
    check_choice,
    check_number,
    check_rows,
    check_texts,
    describe,
    tokenizable,
)

from ..core.assets import packaged_path
from ..core.metric import digest
from .base import Model, check_batch_size


def unit_rows(
    vectors: np.ndarray,  # (T, D)
) -> np.ndarray:  # (T, D), each row of length 1; a row of zeros stays
    """Divide each row by its length."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)


def distances(
    a: np.ndarray,  # (M, D)
    b: np.ndarray,  # (N, D)
) -> np.ndarray:  # (M, N), >= 0
    """Euclidean distance between each row of one array and each row of the other."""
    squares = (a * a).sum(axis=1)[:, None] + (b * b).sum(axis=1) - 2 * (a @ b.T)
    return np.sqrt(np.maximum(squares, 0))


def word_vectors(
    model: Model,  # its first layer is read
    words: Sequence[str],  # W words
) -> np.ndarray:  # (W, D) of length 1; zeros for a word of which the tokenizer makes nothing
    """The vector of each word outside any context: the mean of the input embeddings of its pieces."""
    import torch

    if not words:
        return np.zeros((0, model.model.get_input_embeddings().weight.shape[1]))
    lowered = [
        word.lower() if getattr(model, "lower_case", False) else word
        for word in tokenizable(words, "words")
    ]
    pieces = model.tokenize(
        [f" {word}" for word in lowered], add_special_tokens=False, verbose=False
    )["input_ids"]
    counts = np.array([len(row) for row in pieces])
    flat = torch.tensor(
        [piece for row in pieces for piece in row], dtype=torch.long, device=model.device
    )
    with model.running():
        rows = model.model.get_input_embeddings()(flat).double().cpu().numpy()
    sums = np.zeros((len(words), rows.shape[1]))
    if rows.size:
        np.add.at(sums, np.repeat(np.arange(len(words)), counts), rows)
    return unit_rows(sums / np.maximum(counts, 1)[:, None])


@dataclass(frozen=True)
class Heaps:
    """Texts as heaps of words."""

    words: list[str]  # W distinct words
    places: list[np.ndarray]  # for each text, its distinct words as places in `words`, ascending
    shares: list[np.ndarray]  # for each text, the share of each of them; they sum to 1


def word_heaps(
    texts: Sequence[Sequence[str]],  # N texts as lists of words
) -> Heaps:
    """Count each text's words, and number the words of all."""
    numbers: dict[str, int] = {}
    places = []
    shares = []
    for words in texts:
        word_ids, counts = np.unique(
            [numbers.setdefault(word, len(numbers)) for word in words], return_counts=True
        )
        places.append(word_ids.astype(int))
        shares.append(counts / max(len(words), 1))
    return Heaps(list(numbers), places, shares)


def cheapest(
    p: np.ndarray,  # (M,) masses > 0
    q: np.ndarray,  # (N,) masses > 0 of the same sum
    cost: np.ndarray,  # (M, N)
) -> float:
    """Price of the cheapest transport from p to q. Source: POT's network simplex (Flamary et al. 2021)."""
    if len(p) == 1 or len(q) == 1:  # only one plan
        return float((cost * np.outer(p, q)).sum() / p.sum())
    import ot

    return float(
        ot.emd2(p / p.sum(), q / q.sum(), np.ascontiguousarray(cost), check_marginals=False)
        * p.sum()
    )


def _moving_price(
    heaps: Heaps,
    vectors: np.ndarray,  # (W, D) a vector for each of the words
    first: int,  # a text
    second: int,  # another
) -> float:
    """Price of the cheapest transport from one text's words to another's, by the distance of their vectors."""
    words = np.union1d(heaps.places[first], heaps.places[second])
    surplus = np.zeros(len(words))
    surplus[np.searchsorted(words, heaps.places[first])] += heaps.shares[first]
    surplus[np.searchsorted(words, heaps.places[second])] -= heaps.shares[second]
    leave = surplus > 1e-12
    lack = surplus < -1e-12
    if not leave.any() or not lack.any():
        return 0.0
    return cheapest(
        surplus[leave], -surplus[lack], distances(vectors[words[leave]], vectors[words[lack]])
    )


_BLOCK_PAIRS = 1024  # whose words are held at once
# between two vectors of length 1; what it costs where there is nothing to move, or nowhere to move it
FARTHEST = 2.0


def moving_prices(
    model: Model,
    first: Sequence[str],  # P texts
    second: Sequence[str],  # P texts
    split: Callable[[str], list[str]],  # from a text to its words
    progress: bool = False,  # show a bar
) -> np.ndarray:  # (P,) in 0..2; 2 where just one of the texts has no words
    """`_moving_price` of pairs of texts."""
    prices = np.zeros(len(first))
    for start in tqdm(range(0, len(first), _BLOCK_PAIRS), desc="moving", disable=not progress):
        pairs = list(zip(first[start : start + _BLOCK_PAIRS], second[start : start + _BLOCK_PAIRS]))
        numbers = {
            text: number
            for number, text in enumerate(dict.fromkeys(text for pair in pairs for text in pair))
        }
        heaps = word_heaps([split(text) for text in numbers])
        vectors = word_vectors(model, heaps.words)
        for row, (a, b) in enumerate(pairs, start):
            filled = [len(heaps.places[numbers[text]]) > 0 for text in (a, b)]
            prices[row] = (
                _moving_price(heaps, vectors, numbers[a], numbers[b])
                if all(filled)
                else FARTHEST
                if any(filled)
                else 0.0
            )
    return prices


_BLOCK_TOKENS = 4096  # whose vectors are held at once: 12 MB of 384 numbers each


@dataclass(frozen=True)
class Tokens:
    """One text, as a model reads it."""

    ids: np.ndarray  # (T,) numbers of the word pieces
    vectors: np.ndarray  # (T, D) of length 1
    marks: np.ndarray  # (T,) True for the marks at the beginning and end of the text


def check_layer(
    layer: int | None,
    model: Model,
    default: int,  # where layer is None
) -> int:
    """The layer that is meant, 0 being the input embeddings. Raises: InputError for one that the model does not
    have."""
    check_number(
        default if layer is None else layer,
        "layer",
        0,
        model.model.config.num_hidden_layers,
        whole=True,
    )
    return default if layer is None else int(layer)


def _marks_of(model: Model) -> list[int]:
    tokenizer = model.tokenizer
    names = (
        tokenizer.cls_token_id,
        tokenizer.sep_token_id,
        tokenizer.bos_token_id,
        tokenizer.eos_token_id,
    )
    return [name for name in names if name is not None]


def _layer_of(model: Model, layer: int):
    def compute(batch):
        hidden = model.model(**batch, output_hidden_states=True).hidden_states[layer]
        return [row[mask.bool()] for row, mask in zip(hidden, batch["attention_mask"])]

    return compute


def _blocks(lengths: Sequence[int], pairs: np.ndarray, most: int) -> Iterator[np.ndarray]:
    """Numbers of pairs, equal second texts together and short ones first; each block holds texts of at most so many
    tokens."""
    sizes = np.asarray(lengths)
    order = np.lexsort((sizes[pairs[:, 0]], pairs[:, 1], sizes[pairs[:, 1]]))
    start = 0
    held = set()
    total = 0
    for place, pair in enumerate(order):
        new = set(pairs[pair].tolist()) - held
        size = int(sizes[list(new)].sum())
        if place > start and total + size > most:
            yield order[start:place]
            start = place
            held = set()
            total = 0
            new = set(pairs[pair].tolist())
            size = int(sizes[list(new)].sum())
        held = held | new
        total = total + size
    if len(order):
        yield order[start:]


def paired_tokens(
    model: Model,
    first: Sequence[str],  # P texts
    second: Sequence[str],  # P texts
    layer: int,  # of the hidden states; 0: the input embeddings
    *,
    batch_size: int | None = None,  # texts at once; changes speed and memory, not the result
    progress: bool = False,  # show a bar
) -> Iterator[tuple[int, Tokens, Tokens]]:  # P times: number of the pair, its two texts
    """The token vectors of pairs of texts, a block at a time. Raises: as `Model.encode_rows`."""
    check_batch_size(batch_size)
    texts = [
        text.strip().lower() if getattr(model, "lower_case", False) else text.strip()
        for text in [*first, *second]
    ]
    rows = model.encode_rows({"texts": texts})
    pairs = rows.places.reshape(2, -1).T
    marks = _marks_of(model)
    compute = _layer_of(model, layer)
    with tqdm(total=len(pairs), desc="aligning", disable=not progress) as bar:
        for block in _blocks(rows.lengths, pairs, _BLOCK_TOKENS):
            used = np.unique(pairs[block]).tolist()
            token_vectors = model.in_batches(
                [rows.lengths[row] for row in used],
                lambda chosen: compute(model.pad(rows.encoded, [used[row] for row in chosen])),
                batch_size=batch_size,
            )
            ids = [np.array(rows.encoded["input_ids"][row]) for row in used]
            held = {
                row: Tokens(own, unit_rows(vectors), np.isin(own, marks))
                for row, own, vectors in zip(used, ids, token_vectors)
            }
            for pair in block:
                yield int(pair), held[pairs[pair, 0]], held[pairs[pair, 1]]
            bar.update(len(block))


@dataclass(frozen=True)
class TokenWeights:
    """How much each token of a text counts."""

    weights: Mapping[int, float] = field(default_factory=dict)  # number of a token -> its weight
    others: float = 1.0  # weight of any other token

    @property
    def tag(self) -> str:
        """For signatures."""
        items = sorted(self.weights.items())
        return f"idf@{digest(repr(items), repr(self.others))}" if items else f"{self.others:g}"

    def of(
        self,
        tokens: Tokens,
    ) -> np.ndarray:  # (T,) >= 0; 0 for marks; all tokens alike where the weights would all be 0
        """The weight of each token of a text."""
        weights = np.array([self.weights.get(token, self.others) for token in tokens.ids.tolist()])
        weights[tokens.marks] = 0
        return weights if weights.any() else (~tokens.marks).astype(float)


def idf_weights(
    texts: Iterable[str],  # N texts; without any, all tokens weigh the same
    model: Model,  # its tokenizer is used
) -> TokenWeights:
    """Inverse document frequencies: ln((N + 1) / (n + 1)) for a token that n texts hold.

    Raises: InputTypeError for a row that is no string. Source: Zhang et al. 2020, section 3.
    """
    texts = [text.strip() for text in check_texts(texts)]
    if not texts:
        return TokenWeights()
    rows = model.encode_rows(
        {"texts": [text.lower() if getattr(model, "lower_case", False) else text for text in texts]}
    )
    times = np.bincount(rows.places, minlength=len(rows.distinct))
    counts: Counter[int] = Counter()
    for ids, n in zip(rows.encoded["input_ids"], times.tolist()):
        counts.update(dict.fromkeys(ids, n))
    return TokenWeights(
        {token: float(np.log((len(texts) + 1) / (n + 1))) for token, n in counts.items()},
        float(np.log(len(texts) + 1)),
    )


def check_idf(
    idf: bool | TokenWeights,
) -> None:
    """Raise an InputTypeError for anything but True, False and a weighting."""
    if not isinstance(idf, (bool, np.bool_, TokenWeights)):
        raise InputTypeError(
            f"idf must be True, False, or what idf_weights gives; got {describe(idf)}"
        )


def find_weights(
    idf: bool | TokenWeights,
    texts: Iterable[str],  # counted where idf is True
    model: Model,
) -> TokenWeights:
    """The weighting that is meant. Raises: InputTypeError for anything but True, False and a weighting."""
    check_idf(idf)
    if isinstance(idf, TokenWeights):
        return idf
    return idf_weights(texts, model) if idf else TokenWeights()


def token_grams(
    tokens: Tokens,
    weights: TokenWeights,
    n: int,  # tokens in an n-gram, >= 1
) -> tuple[np.ndarray, np.ndarray]:  # (G,), summing to 1; (G, D)
    """Masses and vectors of the n-grams of a text: weighted means of the vectors of their tokens."""
    text_mask = ~tokens.marks
    mass = weights.of(tokens)[text_mask]
    vectors = tokens.vectors[text_mask]
    n = min(n, len(mass))  # a text of one token has no bigram; the token stands for it
    windows = np.arange(n) + np.arange(len(mass) - n + 1)[:, None]
    masses = mass[windows].sum(axis=1)
    shares = np.divide(
        mass[windows],
        masses[:, None],
        out=np.full(windows.shape, 1 / max(n, 1)),
        where=masses[:, None] > 0,
    )
    return masses / masses.sum(), (vectors[windows] * shares[:, :, None]).sum(axis=1)


# a row for each data set, score and layer: pearson, low, high, n; and a baseline for each layer
def layer_table() -> pd.DataFrame:
    """How the layers of the embedded encoder follow human ratings of content, and what they give to unrelated texts."""
    return pd.read_csv(packaged_path("similarity_layers.csv"))


def find_baseline(
    baseline: Sequence[float] | str | None,  # three numbers, "packaged", or None
    model: Model,
    layer: int,
) -> np.ndarray:  # (3,) of precision, recall, F1
    """The scores of unrelated texts that are meant. Raises: InputError for what is no baseline, or where none is
    known."""
    if baseline is None:
        return np.zeros(3)
    if not isinstance(baseline, str):
        try:
            floor = np.asarray(check_rows(baseline, "baseline", "three numbers"), dtype=float)
        except (TypeError, ValueError, OverflowError):
            raise InputTypeError(f"baseline must be three numbers, got {baseline!r:.60}") from None
        if floor.shape != (3,) or not (floor < 1).all():
            raise InputError(f"baseline must be three numbers below 1, got {baseline!r:.60}")
        return floor
    check_choice(baseline, "baseline", ("packaged",))
    table = layer_table()
    baseline_rows = table[
        (table.encoder == model.name) & (table.layer == layer) & table.baseline_f1.notna()
    ]
    if baseline_rows.empty or model.made_here:
        raise InputError(
            f"there is no packaged baseline for layer {layer} of {model.name}; make one with "
            f"score_baseline and pass it"
        )
    return baseline_rows[["baseline_precision", "baseline_recall", "baseline_f1"]].to_numpy(float)[
        0
    ]
