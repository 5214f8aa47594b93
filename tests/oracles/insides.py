"""Numbers within models and along paths, against transformers' own classes, one text a call, POT and SciPy; the models
are tiny and made at random."""

import functools
import math

import numpy as np

from tests.models import tiny
from tests.oracles.catalogue import oracle, own
from tests.oracles.models import loaded
from tests.oracles.registry import text_pairs

LONGEST = 12  # tokens of the longest text, its frame among them
ALIGNMENT = "models.alignment"
PATHS = "models.path_integral"


def texts(generator, n):
    """Texts of up to ten words that the tiny models know."""
    known = tiny.WORDS[len(tiny.MARKS) :]
    return (
        [
            " ".join(generator.choice(known, size=generator.integers(2, LONGEST - 1)))
            for _ in range(n)
        ],
    )


def two_texts(generator, n):
    return texts(generator, 2)


def _padded(rows):
    return [np.pad(row, (0, LONGEST - len(row))) for row in rows]


# ---- tokens


def _embedded(word):
    """The mean of the input embeddings of a word's pieces, of length 1."""
    encoder = loaded("encoder")
    pieces = encoder.tokenizer(f" {word}", add_special_tokens=False)["input_ids"]
    mean = np.mean(
        encoder.model.get_input_embeddings().weight.detach().double().numpy()[pieces], axis=0
    )
    return mean / np.linalg.norm(mean)


def _moved(outputs, sources):
    """Every word of a text takes part, those that both have as well."""
    import ot
    from scipy.spatial.distance import cdist

    found = []
    for a, b in zip(outputs, sources):
        first, second = (np.array([_embedded(word) for word in text.split()]) for text in (a, b))
        found.append(
            ot.emd2(
                np.full(len(first), 1 / len(first)),
                np.full(len(second), 1 / len(second)),
                cdist(first, second),
            )
        )
    return found


def _prices(outputs, sources):
    return own(f"{ALIGNMENT}.moving_prices")(
        loaded("encoder"), list(outputs), list(sources), str.split
    )


def _means_of_tokens(outputs, sources):
    """Of both texts of each pair, the mean of its unit vectors in the last layer."""
    pairs = sorted(
        own(f"{ALIGNMENT}.paired_tokens")(loaded("encoder"), outputs, sources, 1, batch_size=5),
        key=lambda pair: pair[0],
    )
    return [np.concatenate([side.vectors.mean(axis=0) for side in sides]) for _, *sides in pairs]


def _hidden(outputs, sources):
    import torch

    encoder = loaded("encoder")
    found = []
    for pair in zip(outputs, sources):
        row = []
        for text in pair:
            with torch.no_grad():
                states = encoder.model(**encoder.tokenizer(text, return_tensors="pt"))[0][0]
            row.append(torch.nn.functional.normalize(states.double(), dim=1).mean(dim=0).numpy())
        found.append(np.concatenate(row))
    return found


WEIGHTS = {0: 0.5, 1: 2.0, 3: 0.0}  # of tokens; any other weighs 1


def _grams(ids, vectors):
    ids = np.asarray(ids)
    marks = np.isin(np.arange(len(ids)), [0, len(ids) - 1])
    masses, means = own(f"{ALIGNMENT}.token_grams")(
        own(f"{ALIGNMENT}.Tokens")(ids, np.asarray(vectors), marks),
        own(f"{ALIGNMENT}.TokenWeights")(WEIGHTS),
        2,
    )
    return np.column_stack([masses, means])


def _pairs_of_tokens(ids, vectors):
    weights = [WEIGHTS.get(one, 1.0) for one in np.asarray(ids).tolist()]
    rows = [
        (
            weights[place] + weights[place + 1],
            [
                np.average(
                    side,
                    weights=weights[place : place + 2] if any(weights[place : place + 2]) else None,
                )
                for side in np.transpose(vectors[place : place + 2])
            ],
        )
        for place in range(1, len(ids) - 2)
    ]
    total = sum(mass for mass, _ in rows)
    return [[mass / total, *mean] for mass, mean in rows]


QUERY = "the cat sat on the mat"
NEAREST = 3


def _nearest(candidates):
    heaps = own(f"{ALIGNMENT}.word_heaps")([text.split() for text in [QUERY, *candidates]])
    vectors = np.array([_embedded(word) for word in heaps.words])
    centres = [share @ vectors[place] for share, place in zip(heaps.shares, heaps.places)]
    bounds = np.array([np.linalg.norm(centres[0] - centre) for centre in centres[1:]])
    return own(f"{ALIGNMENT}.search_heaps")(heaps, vectors, 0, bounds, 1, NEAREST)[1]


def outputs_alone(generator, n):
    return (text_pairs(generator, n)[0],)


oracle(
    f"{ALIGNMENT}.word_vectors",
    "transformers, one word a call",
    lambda words: own(f"{ALIGNMENT}.word_vectors")(loaded("encoder"), words),
    lambda words: [*map(_embedded, words)],
    lambda generator, n: (
        [str(word) for word in generator.choice(["mill", "well-known", "river", ","], size=n)],
    ),
    near=1e-7,
)
oracle(
    f"{ALIGNMENT}.moving_prices",
    "POT, with the words that both texts have",
    _prices,
    _moved,
    text_pairs,
    near=1e-6,
)
oracle(
    f"{ALIGNMENT}.paired_tokens",
    "transformers, one text a call",
    _means_of_tokens,
    _hidden,
    text_pairs,
    near=1e-5,
    threads=True,
)
oracle(
    f"{ALIGNMENT}.token_grams",
    "NumPy's weighted average, one pair after the other",
    _grams,
    _pairs_of_tokens,
    lambda generator, n: (generator.integers(0, 5, size=n), generator.normal(size=(n, 4))),
    rows=False,
    whole_is_symmetric=False,
)
oracle(
    f"{ALIGNMENT}.search_heaps",
    "POT, of all texts",
    _nearest,
    lambda candidates: sorted(_moved([QUERY] * len(candidates), candidates))[:NEAREST],
    texts,
    near=1e-6,
    rows=False,
)


# ---- classifiers


def _label_probability(column):
    return own("models.classifier.label_probability")(
        loaded("classifier"), "Neutral", list(column), batch_size=5
    )


def _softmax(column):
    import torch

    classifier = loaded("classifier")
    found = []
    for text in column:
        with torch.no_grad():
            logits = classifier.model(**classifier.tokenizer(text, return_tensors="pt")).logits[0]
        found.append(logits.double().softmax(0)[1].item())
    return found


def _sentences(column, label, pair, weight):
    import pandas as pd

    return pd.DataFrame({"text": column, "label": label, "pair": pair, "weight": weight})


def _head_classifier():
    return own("models.classifier.StyleClassifier")(tiny.module("bert"), tiny.tokenizer(), "tiny")


def _vectors(column):
    import torch

    module = tiny.module("bert")
    tokenizer = tiny.tokenizer()
    with torch.no_grad():
        return np.array(
            [
                module.bert(**tokenizer(text, return_tensors="pt"))
                .pooler_output[0]
                .double()
                .numpy()
                for text in column
            ]
        )


def _minimum(read, label, pair, weight):
    """A head's loss at SciPy's minimum, and the log-odds that it gives to vectors."""
    from scipy.optimize import minimize
    from scipy.special import expit

    mean = np.mean(read, axis=0)
    scale = np.std(read, axis=0, ddof=1)
    vectors = (read - mean) / scale
    places = {(int(one), int(two)): place for place, (one, two) in enumerate(zip(pair, label))}
    first, second = np.transpose([(places[one, 0], places[one, 1]) for one in set(map(int, pair))])
    share = np.asarray(weight) / np.sum(weight)
    signs = np.where(np.asarray(label) == 0, 1, -1)

    def loss(given):
        """Of the slopes and bias of the log-odds alone: at the minimum both classes' are their halves."""
        odds = vectors @ given[1:] + given[0]
        wrong = expit(-signs * odds)
        turned = expit(odds[second] - odds[first])
        by_text = -share * signs * wrong
        np.add.at(by_text, second, turned / len(turned))
        np.add.at(by_text, first, -turned / len(turned))
        value = -share @ np.log1p(-wrong) - np.mean(np.log1p(-turned)) + given[1:] @ given[1:] / 2
        return value, np.append(by_text.sum(), by_text @ vectors + given[1:])

    found = minimize(
        loss, np.zeros(1 + vectors.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-8}
    )
    return found.fun, lambda others: (others - mean) / scale @ found.x[1:] + found.x[0]


def _in_folds(*columns):
    """A head for each of three folds of whole pairs."""
    found = own("training.logistic.head_in_folds")(
        _head_classifier(), _sentences(*columns), np.asarray(columns[2]) % 3
    )
    return found[:, 0]


def _fold_by_fold(column, *others):
    from scipy.special import expit

    vectors = _vectors(column)
    fold = others[1] % 3
    found = np.zeros(len(column))
    for which in range(3):
        rest = fold != which
        found[~rest] = expit(
            _minimum(vectors[rest], *(other[rest] for other in others))[1](vectors[~rest])
        )
    return found


def twin_texts(generator, n):
    order = generator.permutation(n)
    return texts(generator, n)[0], order % 2, order // 2, generator.uniform(0.5, 2, size=n)


oracle(
    "models.classifier.label_probability",
    "transformers, one text a call",
    _label_probability,
    _softmax,
    outputs_alone,
    near=1e-5,
    texts=True,
    threads=True,
)
oracle(
    "training.logistic.fit_head",
    "SciPy's minimum of the same loss",
    lambda *columns: own("training.logistic.fit_head")(_head_classifier(), _sentences(*columns)),
    lambda column, *others: _minimum(_vectors(column), *others)[0],
    twin_texts,
    near=1e-4,
    rows=False,
)
oracle(
    "training.logistic.head_in_folds",
    "SciPy's minimum of the same loss, one fold after the other",
    _in_folds,
    _fold_by_fold,
    twin_texts,
    near=1e-3,
    rows=False,
    whole_is_symmetric=False,
)


# ---- batches and rules


def _batches(lengths):
    return own("models.loading.batches_by_length")(np.sort(lengths).tolist(), 4, 30)


def _greedy(lengths):
    """As many of the shortest texts as fit: four, and 30 tokens with what fills the batch up."""
    left = sorted(map(int, lengths))
    found = []
    while left:
        size = max(
            size
            for size in range(1, min(4, len(left)) + 1)
            if size == 1 or size * left[size - 1] <= 30
        )
        found.append((len(lengths) - len(left), len(lengths) - len(left) + size))
        left = left[size:]
    return found


def _integrals(steps):
    found = []
    for n in steps:
        positions, weights = own(f"{PATHS}.trapezoid")(int(n))
        found.append([weights.sum(), weights @ np.exp(positions)])
    return found


def _substituted(steps):
    """NumPy's trapezoids of a density that SciPy integrates to a position."""
    from scipy.integrate import quad

    found = []
    for n in steps:
        even = np.linspace(0, 1, int(n) + 1)

        def density(at):
            return 1 + 0.5 * np.cos(2 * np.pi * at)

        positions = np.array([quad(density, 0, end, epsabs=1e-13)[0] for end in even])
        found.append(
            [
                np.trapezoid(density(even), even),
                np.trapezoid(np.exp(positions) * density(even), even),
            ]
        )
    return found


oracle(
    "models.loading.batches_by_length",
    "a loop that takes what fits",
    _batches,
    _greedy,
    lambda generator, n: (generator.integers(1, 12, size=n),),
    rows=False,
)
oracle(
    f"{PATHS}.in_groups",
    "NumPy's stable order",
    lambda lengths: np.concatenate([*own(f"{PATHS}.in_groups")(lengths, size=5)]),
    lambda lengths: np.argsort(lengths, kind="stable"),
    lambda generator, n: (generator.integers(1, 5, size=n),),
    rows=False,
    whole_is_symmetric=False,
)
oracle(
    f"{PATHS}.trapezoid",
    "NumPy's trapezoids, SciPy's integrals",
    _integrals,
    _substituted,
    lambda generator, n: (generator.integers(2, 30, size=n),),
    near=1e-10,
)


# ---- paths


@functools.cache
def _explained(words=False):
    """A classifier's first class; with `words`, of one that scores words."""
    import torch

    module = tiny.module("bert")
    tokenizer = tiny.tokenizer()
    if words:
        torch.manual_seed(4)
        own("models.encoder.add_word_head")(module, tokenizer)
        with torch.no_grad():
            module.classifier.weight.mul_(3)
    classifier = own("models.classifier.StyleClassifier")(module, tokenizer, "tiny")
    return own(f"{PATHS}.Explained")(classifier, 0, batch_size=7)


def _tokens(text):
    found = tiny.tokenizer()(text, return_special_tokens_mask=True)
    return found["input_ids"], found["special_tokens_mask"]


def _journeys(column, words=False):
    return [own(f"{PATHS}.make_path")(_explained(words), *_tokens(text), "pad") for text in column]


def _line(text):
    """Vectors of the baseline and of the text, and the probability of a point between them with its gradient."""
    import torch

    module, (ids, special) = _explained().classifier.model, _tokens(text)
    table = module.get_input_embeddings().weight.detach()
    end = table[ids]
    start = torch.where(torch.tensor(special, dtype=torch.bool)[:, None], end, table[0])

    def at(vectors):
        vectors = vectors.clone().requires_grad_()
        value = module(inputs_embeds=vectors[None]).logits.softmax(dim=1)[0, 0]
        return value.item(), torch.autograd.grad(value, vectors)[0]

    return start, end, at


def _integrated(positions, weights):
    def integrate(column):
        found = []
        for text in column:
            start, end, at = _line(text)
            slopes = sum(
                weight * at(start + place * (end - start))[1]
                for place, weight in zip(positions, weights)
            )
            found.append((slopes * (end - start)).sum(dim=1).double().numpy())
        return _padded(found)

    return integrate


def _left_out(column):
    """What the probability loses without each token, and the gradient at the text times the way from the baseline."""
    found = []
    for text in column:
        start, end, at = _line(text)
        whole, slopes = at(end)
        losses = []
        for place in range(len(end)):
            without = end.clone()
            without[place] = start[place]
            losses.append(whole - at(without)[0])
        found.append(
            np.concatenate([*_padded([losses, (slopes * (end - start)).sum(dim=1).numpy()])])
        )
    return found


def _perturbed(column):
    return [
        np.concatenate(
            _padded(
                [
                    own(f"{PATHS}.perturb")(_explained(), path, method)[0]
                    for method in ("occlusion", "input_x_gradient")
                ]
            )
        )
        for path in _journeys(column)
    ]


def _shares(column):
    """The scores of words by the head's weights; a share of their smooth maximum's probability for each."""
    import torch
    from scipy.special import expit, softmax

    module = _explained(words=True).classifier.model
    found = []
    for text in column:
        ids, special = _tokens(text)
        with torch.no_grad():
            states = module.bert(torch.tensor([ids])).last_hidden_state[0].double().numpy()
        head = module.classifier
        odds = states @ head.weight.detach().double().numpy()[0] + head.bias.item()
        words = ~np.array(special, dtype=bool)
        shares = np.zeros(len(ids))
        shares[words] = expit(math.log(np.exp(odds[words]).sum())) * softmax(odds[words])
        found.append(shares)
    return _padded(found)


MIDPOINTS = (np.arange(6) + 0.5) / 6
GAUSS = np.polynomial.legendre.leggauss(40)

oracle(
    f"{PATHS}.integrate_at",
    "transformers' inputs_embeds, one point a call",
    lambda column: _padded(
        own(f"{PATHS}.integrate_at")(_explained(), _journeys(column), "midpoint", 6)
    ),
    _integrated(MIDPOINTS, np.full(6, 1 / 6)),
    two_texts,
    near=1e-5,
)
oracle(
    f"{PATHS}.integrate_adaptively",
    "transformers' inputs_embeds, 40 points of Gauss and Legendre",
    lambda column: _padded(
        own(f"{PATHS}.integrate_adaptively")(_explained(), _journeys(column), 3e-4)
    ),
    _integrated((GAUSS[0] + 1) / 2, GAUSS[1] / 2),
    two_texts,
    near=2e-3,
)
oracle(
    f"{PATHS}.perturb",
    "transformers' inputs_embeds, one token left out a call",
    _perturbed,
    _left_out,
    two_texts,
    near=1e-5,
)
oracle(
    "models.encoder.token_shares",
    "transformers, one text a call",
    lambda column: _padded(
        own("models.encoder.token_shares")(_explained(True), _journeys(column, True))
    ),
    _shares,
    texts,
    near=1e-5,
)
