"""The engine of attributions: paths between a baseline and a sentence, rules of integration, and captum's methods"""

import threading
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from tqdm.auto import tqdm

from ..core.checks import InputError, check_number


def _given_vectors(table, ids, vectors):
    """A context in which the table gives these vectors for these ids, and that counts how often it was asked."""
    from torch import equal
    from torch.nn.functional import embedding
    from torch.overrides import TorchFunctionMode

    class GivenVectors(TorchFunctionMode):
        exchanged = 0
        others = 0

        def __torch_function__(self, function, types, arguments=(), keywords=None):
            if function is not embedding or arguments[1] is not table:
                return function(*arguments, **(keywords or {}))
            if arguments[0].shape == ids.shape and equal(arguments[0], ids):
                self.exchanged += 1
                return vectors
            self.others += 1
            return function(*arguments, **(keywords or {}))

    return GivenVectors()


class Explained:
    """One output of a classifier, as a function of the vectors of its tokens."""

    def __init__(
        self,
        classifier,  # a `Model` with a classification head
        target: int,  # the class
        quantity: str = "probability",  # probability | logit (log-odds of the class against all others)
        batch_size: int = 64,  # points evaluated at once
    ):
        self.classifier = classifier
        self.target = target
        self.quantity = quantity
        self.batch_size = batch_size
        pad = classifier.tokenizer.pad_token_id
        self.fill = 0 if pad is None else pad  # the token that fills batches up
        self.weight = classifier.model.get_input_embeddings().weight
        self.table = self.weight.detach()  # (V, D), one row a token of the vocabulary

    def __call__(
        self,
        vectors,  # (B, T, D) vectors of tokens
        ids,  # (B, T) the tokens in whose place they stand
        mask,  # (B, T) 1 for tokens, 0 for what fills the batch up
    ):  # (B,) tensor
        """The number that is explained, for a batch. Raises: InputError for a model that cannot be given vectors."""
        with _given_vectors(self.weight, ids, vectors) as lookups:
            logits = self.classifier.model(input_ids=ids, attention_mask=mask).logits
        if lookups.exchanged != 1 or lookups.others:
            raise InputError(
                f"{self.classifier.name} does not look each token up once and in order, so that no vector "
                f"can be exchanged for another and its words cannot be attributed; use an encoder such as "
                f"BERT, or a decoder such as GPT-2, with a classification head"
            )
        if self.quantity == "probability":
            return logits.softmax(dim=1)[:, self.target]
        others = [label for label in range(logits.shape[1]) if label != self.target]
        return logits[:, self.target] - logits[:, others].logsumexp(dim=1)

    def nothing(
        self,
        baseline: str,  # pad | mask | zero | mean
    ):  # (D,) tensor
        """The vector that stands for an absent token."""
        if baseline == "zero":
            return self.table.new_zeros(self.table.shape[1])
        if baseline == "mean":
            return self.table.mean(dim=0)
        return self.table[getattr(self.classifier.tokenizer, f"{baseline}_token_id")]


class Path:
    """The straight line from a baseline to a sentence, and the points on it that have been evaluated."""

    def __init__(
        self,
        start,  # (T, D) tensor, the baseline
        end,  # (T, D) tensor, the sentence
        frame: tuple[int, ...],  # (T,) 1 for frame tokens
        ids: tuple[int, ...],  # (T,) the sentence's tokens
    ):
        self.start, self.difference, self.frame, self.ids = start, end - start, frame, ids
        self.start_slope = None  # (T, D) gradient of f at the baseline
        self.values: dict[float, float] = {}  # position -> f
        self.parts: dict[
            float, np.ndarray
        ] = {}  # position -> (T,) derivative of f along the path, by token

    def integral(
        self,
        positions: np.ndarray,  # (P,) in 0..1, all evaluated
        weights: np.ndarray,  # (P,)
    ) -> np.ndarray:  # (T,)
        """Weighted sum of the tokens' derivatives."""
        return sum(weight * self.parts[at] for at, weight in zip(positions.tolist(), weights))

    def error(
        self,
        scores: np.ndarray,  # (T,) one a token
    ) -> float:
        """Completeness error: how far the scores are from adding up to f(x) - f(baseline)."""
        return abs(float(scores.sum()) - (self.values[1.0] - self.values[0.0]))


def make_path(
    explained: Explained,
    ids: list[int],  # (T,) token ids of the sentence, with its frame
    special: list[int],  # (T,) 1 for frame tokens, which stay as they are
    baseline: str,  # pad | mask | zero | mean
) -> Path:
    """The line along which every token but the frame's is led from the baseline's vector to its own."""
    import torch

    end = explained.table[torch.tensor(ids, device=explained.table.device)]
    keep = torch.tensor(special, dtype=torch.bool, device=end.device)[:, None]
    return Path(
        torch.where(keep, end, explained.nothing(baseline)), end, tuple(special), tuple(ids)
    )


_TOKENS_AT_ONCE = 2048  # bounds memory


def _cut_batches(
    points: list[tuple[Path, float]],
    batch_size: int,  # points in a batch, at most
) -> Iterator[list[tuple[Path, float]]]:
    """Points in order of length, cut into batches of at most batch_size points and _TOKENS_AT_ONCE tokens."""
    batch = []
    for point in sorted(points, key=lambda point: len(point[0].start)):
        if batch and (
            len(batch) == batch_size or (len(batch) + 1) * len(point[0].start) > _TOKENS_AT_ONCE
        ):
            yield batch
            batch = []
        batch.append(point)
    if batch:
        yield batch


def in_groups(
    lengths: Sequence[int],  # of N texts, in tokens
    progress: bool = False,  # show a bar
    size: int = 64,  # texts whose paths are in memory together
) -> Iterator[list[int]]:
    """Row numbers in groups of similar length."""
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    for first in tqdm(range(0, len(order), size), desc="attribution", disable=not progress):
        yield order[first : first + size]


def evaluate_points(
    explained: Explained,
    points: list[tuple[Path, float]],  # positions in 0..1 on their paths
    gradients: bool = True,  # False: the values alone
) -> None:
    """Fill in the value of f, and the derivatives if asked for, at positions of many paths."""
    for batch in _cut_batches(points, explained.batch_size):
        _evaluate_batch(explained, batch, gradients)


def _evaluate_batch(explained: Explained, batch: list[tuple[Path, float]], gradients: bool) -> None:
    import torch

    lengths = [len(path.start) for path, _ in batch]
    inputs = explained.table.new_zeros(len(batch), max(lengths), explained.table.shape[1])
    ids = torch.full(inputs.shape[:2], explained.fill, device=inputs.device)
    mask = torch.zeros_like(ids)
    for row, (path, position) in enumerate(batch):
        inputs[row, : lengths[row]] = path.start + position * path.difference
        ids[row, : lengths[row]], mask[row, : lengths[row]] = (
            torch.tensor(path.ids, device=inputs.device),
            1,
        )
    inputs.requires_grad_(gradients)
    with explained.classifier.running(gradients=gradients):
        value = explained(inputs, ids, mask)
        slopes = (
            torch.autograd.grad(value.sum(), inputs)[0] if gradients else None
        )  # of inputs only, not of weights
    for row, (path, position) in enumerate(batch):
        path.values[position] = float(value[row].detach())
        if gradients:
            slope = slopes[row, : lengths[row]]
            path.parts[position] = _along(slope, path)
            if position == 0:
                path.start_slope = slope


def _along(slope, path: Path) -> np.ndarray:
    return (slope * path.difference).sum(dim=1).double().cpu().numpy()


def _evaluate_starts(
    explained: Explained,
    paths: list[Path],
) -> None:
    """Value and derivatives at position 0, computed once for all sentences that begin at the same point."""

    def beginning(path):
        return (path.frame, tuple(token == explained.fill for token in path.ids))

    first: dict[tuple, Path] = {}
    for path in paths:
        first.setdefault(beginning(path), path)
    evaluate_points(explained, [(path, 0.0) for path in first.values()])
    for path in paths:
        shared = first[beginning(path)]
        path.values[0.0], path.parts[0.0] = shared.values[0.0], _along(shared.start_slope, path)


_BEND = 0.5  # c of the substitution: 0 spaces the steps evenly, towards 1 crowds them in the middle


def trapezoid(
    steps: int,  # n, at least 1
    bend: float = _BEND,  # c, in 0..1 without 1
) -> tuple[
    np.ndarray, np.ndarray
]:  # (n + 1,) positions from 0 to 1, and their weights, which sum to 1 for n >= 2
    """The trapezoid rule with steps denser in the middle of the path.

    Raises: InputError for fewer than 1 step or a bend outside 0..1.
    Source: Trefethen and Weideman 2014 for the rule; the substitution is the course's.
    """
    check_number(steps, "steps", 1, whole=True)
    check_number(bend, "bend", 0, 1, below=True)
    even = np.arange(steps + 1) / steps
    positions = even + bend / (2 * np.pi) * np.sin(2 * np.pi * even)
    weights = (1 + bend * np.cos(2 * np.pi * even)) / steps
    weights[[0, -1]] /= 2
    positions[[0, -1]] = 0.0, 1.0  # exactly, whatever the sine of a rounded 2 pi is
    return positions, weights


def _fixed_rule(
    rule: str,  # midpoint | gauss-legendre
    steps: int,  # points
) -> tuple[np.ndarray, np.ndarray]:  # (steps,) positions and weights
    """Points and weights of a rule on 0..1."""
    if rule == "midpoint":
        return (np.arange(steps) + 0.5) / steps, np.full(steps, 1 / steps)
    nodes, weights = np.polynomial.legendre.leggauss(steps)
    return (nodes + 1) / 2, weights / 2


def integrate_at(
    explained: Explained,
    paths: list[Path],
    rule: str,  # midpoint | gauss-legendre
    steps: int,  # points a path
) -> list[np.ndarray]:  # (T,) scores of each path
    """Integrate with the same points for every path."""
    positions, weights = _fixed_rule(rule, steps)
    evaluate_points(
        explained, [(path, edge) for path in paths for edge in (0.0, 1.0)], gradients=False
    )
    evaluate_points(explained, [(path, at) for path in paths for at in positions.tolist()])
    return [path.integral(positions, weights) for path in paths]


_FIRST_STEPS = 6
_STEP_CAP = 256
AIM = (
    0.4  # share of the tolerance at which a sentence stops, since parts can be worse than their sum
)


def integrate_adaptively(
    explained: Explained,
    paths: list[Path],
    tolerance: float,  # completeness error to stay below, in units of the quantity
) -> list[np.ndarray]:  # (T,) scores of each path
    """Double the steps of each path until its parts add up well enough, or _STEP_CAP is near."""
    _evaluate_starts(explained, paths)
    steps = _FIRST_STEPS
    open_paths = paths
    scores = {}
    while open_paths:
        positions, weights = trapezoid(steps)
        evaluate_points(
            explained,
            [
                (path, at)
                for path in open_paths
                for at in positions.tolist()
                if at not in path.parts
            ],
        )
        for path in open_paths:
            scores[path] = path.integral(positions, weights)
        steps *= 2
        open_paths = [
            path
            for path in open_paths
            if path.error(scores[path]) > AIM * tolerance and steps < _STEP_CAP
        ]
    return [scores[path] for path in paths]


class _LinearFit:
    """Weighted ridge regression with an unpenalised constant, in the form in which captum asks for one."""

    def __init__(self, ridge: float = 0.0):
        self.ridge = ridge
        self.coefficients = None

    def fit(self, batches, **_) -> None:
        """Fit to what a DataLoader yields: rows of 0 and 1, answers, weights."""
        features, answers, weights = (
            np.concatenate([np.asarray(part, dtype=float) for part in column])
            for column in zip(*batches)
        )
        design = np.column_stack([features, np.ones(len(features))]) * np.sqrt(weights)[:, None]
        penalty = np.sqrt(self.ridge) * np.eye(design.shape[1])[:-1]
        goal = np.concatenate([answers * np.sqrt(weights), np.zeros(len(penalty))])
        self.coefficients = np.linalg.lstsq(np.vstack([design, penalty]), goal, rcond=None)[0][:-1]

    def representation(self):
        """The coefficients without the constant, as a tensor of one row."""
        import torch

        return torch.tensor(self.coefficients, dtype=torch.float64)[None]


def _lime_similarity(_original, _perturbed, mask, **_options):
    """Weight of a perturbed text by the cosine of its bag of tokens with the whole. Source: the package lime, width
    25."""
    distance = 100 * (1 - (mask.double().mean(dim=1)).sqrt())
    return (-((distance / 25) ** 2) / 2).exp()


_DRAWING = threading.Lock()  # one thread at a time may set the generator
EXPLAINERS = {
    "input_x_gradient": "InputXGradient",
    "occlusion": "Occlusion",
    "shapley_sampling": "ShapleyValueSampling",
    "lime": "Lime",
    "kernel_shap": "KernelShap",
}
# random methods, and their draws unless told otherwise
SAMPLES = {"shapley_sampling": 10, "lime": 100, "kernel_shap": 100}


def perturb(
    explained: Explained,
    path: Path,  # its frame says which tokens are no features
    method: str,  # input_x_gradient | occlusion | shapley_sampling | lime | kernel_shap
    samples: int = 0,  # orders of the tokens (shapley_sampling) or perturbed texts (lime, kernel_shap)
    seed: int = 0,  # of the random methods
) -> tuple[np.ndarray, int]:  # (T,) scores, and the evaluations of the model that they cost
    """Scores of a sentence's tokens by one of captum's methods; fills in the values at both ends of the path.

    Source: Kokhlikyan et al. 2020 for the implementation; the methods' papers are named in the notebook notebook.
    """
    evaluate_points(explained, [(path, 0.0), (path, 1.0)], gradients=False)
    free = [place for place, special in enumerate(path.frame) if not special]
    scores = np.zeros(len(path.frame))
    calls = [2]
    if (
        len(free) == 1 and method != "input_x_gradient"
    ):  # nothing to share, and captum's draws need two features
        scores[free] = path.values[1.0] - path.values[0.0]
    elif free:
        with explained.classifier.running(gradients=method == "input_x_gradient"):
            attributions = _by_captum(explained, path, method, samples, seed, free, calls)
        scores[free] = attributions.detach().double().cpu().numpy()[free]
    return scores, calls[0]


def _by_captum(
    explained: Explained,
    path: Path,
    method: str,
    samples: int,
    seed: int,
    free: list[int],
    calls: list[int],
):
    import torch
    from captum import attr

    def at(change):
        calls[0] += len(change)
        tokens = ids.expand(len(change), -1)
        return explained(path.start + change, tokens, torch.ones_like(tokens))

    ids = torch.tensor([path.ids], device=path.start.device)
    explainer = _explainer(getattr(attr, EXPLAINERS[method]), at, method)
    change = path.difference[None]
    if method == "input_x_gradient":
        return explainer.attribute(change.clone().requires_grad_()).sum(dim=2)[0]
    at_once = {
        "perturbations_per_eval": max(
            1, min(explained.batch_size, _TOKENS_AT_ONCE // change.shape[1])
        )
    }
    if method == "occlusion":
        return explainer.attribute(change, sliding_window_shapes=(1, change.shape[2]), **at_once)[
            0, :, 0
        ]
    # the frame goes with the first token
    features = torch.zeros(change.shape[:2], dtype=torch.long, device=change.device)
    features[0, free] = torch.arange(len(free), device=change.device)
    with _DRAWING, torch.random.fork_rng():
        torch.manual_seed(seed)
        return explainer.attribute(
            change, feature_mask=features[:, :, None], n_samples=samples, **at_once
        )[0, :, 0]


def _explainer(kind: Callable, at: Callable, method: str):
    if method == "lime":
        return kind(at, interpretable_model=_LinearFit(1.0), similarity_func=_lime_similarity)
    explainer = kind(at)
    if method == "kernel_shap":
        explainer.interpretable_model = _LinearFit()
    return explainer
