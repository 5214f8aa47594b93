"""The outputs, ratings and stored scores that Mir et al. 2019 published, read from verified bytes"""

import io
from hashlib import sha256

import numpy as np
import pandas as pd

from ..core.assets import AssetError, corpora, corpus_path
from ..core.checks import TOLERANCE, InputError, check_distributions, check_table


def pinned_bytes(
    corpus: str,  # a key of `corpora()` whose files are pinned
    path: str,  # a file's path inside the corpus
) -> bytes:
    """A file of an external corpus, after its SHA-256 was compared with the pinned one.

    Raises: AssetError if the corpus is not on this machine, or the file is missing, not pinned or has changed.
    """
    folder = corpus_path(corpus)
    pinned = corpora()[corpus].files
    if path not in pinned:
        raise AssetError(
            f"{path} is not among the {len(pinned)} files of {corpus} whose SHA-256 is known"
        )
    if not (folder / path).is_file():
        raise AssetError(f"{folder / path} is missing. To mend it: run `tsteval fetch {corpus}`")
    content = (folder / path).read_bytes()
    if sha256(content).hexdigest() != pinned[path]:
        raise AssetError(
            f"{folder / path} is not the published file: its SHA-256 differs. "
            f"To mend it: delete it and run `tsteval fetch {corpus}`"
        )
    return content


def pinned_arrays(
    corpus: str,  # a key of `corpora()` whose files are pinned
    path: str,  # a .npy or .npz file's path inside the corpus
):  # array, or a mapping of names to arrays
    """What NumPy stored in a pinned file: an array (.npy) or arrays by name (.npz).

    Raises: AssetError as `pinned_bytes`. Pickled objects are loaded, which is why the bytes are checked first.
    """
    return np.load(io.BytesIO(pinned_bytes(corpus, path)), allow_pickle=True)


MIR2019_SETTINGS = {
    "ARAE": ("lambda_1", "lambda_5", "lambda_10"),
    "CAAE": ("rho_0_01", "rho_0_1", "rho_0_5", "rho_1", "rho_5"),
}
_RATED = {
    "style": "style_transfer_intensity/{}.npy",
    "content": "content_preservation/{}.npy",
    "naturalness": "naturalness/{}.npz",
}
_INTENSITY = "evaluations/automated/style_transfer_intensity/sentence_level"


def load_mir2019() -> pd.DataFrame:  # 1,952 rows: 8 settings of 2 systems, 244 outputs each
    """Outputs of two style transfer systems with human ratings and the style distributions of two classifiers.

    Columns: system, setting, row (0..243, of the source), target (1 positive, 0 negative), source, output (texts),
    human_style, human_content, human_naturalness (means of ratings from 1 to 5); and for fasttext and textcnn
    `fasttext_source_0`, `_source_1`, `_output_0`, `_output_1` (probabilities) and `fasttext_emd` (the stored STI).

    Raises: AssetError if the corpus is not on this machine or a file of it has changed.
    Source: Mir et al. 2019; github.com/passeul/style-transfer-model-evaluation.
    """
    sources = _lines("data/sentiment.test.{}")
    of_sources = pinned_arrays(
        "mir2019", f"{_INTENSITY}/style_distributions/input_distributions.npz"
    )
    tables = []
    for system, settings in MIR2019_SETTINGS.items():
        for setting in settings:
            name = f"{system}_{setting}"
            table = {
                "system": system,
                "setting": setting,
                "row": np.arange(len(sources)),
                "target": np.repeat([1, 0], len(sources) // 2),
                "source": sources,
                "output": _lines(
                    f"transfer_model_outputs/{system}/{setting}/sentiment.test.{{}}.tsf"
                ),
            }
            tables.append(pd.DataFrame(table | _ratings(name) | _distributions(name, of_sources)))
    return pd.concat(tables, ignore_index=True)


def _lines(path: str) -> list[str]:
    """The lines of the file for negative sources, then of the file for positive ones."""
    texts = [pinned_bytes("mir2019", path.format(style)).decode() for style in (0, 1)]
    return [line for text in texts for line in text.splitlines()]


def _ratings(name: str) -> dict[str, np.ndarray]:
    ratings = {}
    for aspect, path in _RATED.items():
        stored = pinned_arrays("mir2019", f"evaluations/human/{path.format(name)}")
        ratings[f"human_{aspect}"] = stored["absolute"] if path.endswith(".npz") else stored
    return ratings


def _distributions(name: str, of_sources) -> dict[str, np.ndarray]:
    columns = {}
    of_outputs = pinned_arrays("mir2019", f"{_INTENSITY}/style_distributions/{name}.npz")
    intensities = pinned_arrays("mir2019", f"{_INTENSITY}/scores_based_on_emd/{name}.npz")
    for classifier in ("fasttext", "textcnn"):
        for side, stored in (("source", of_sources), ("output", of_outputs)):
            for style, column in enumerate(stored[classifier].astype(float).T):
                columns[f"{classifier}_{side}_{style}"] = column
        columns[f"{classifier}_emd"] = intensities[classifier]
    return columns


def with_unassigned(
    values,  # (N, C) probabilities; each row sums to at most 1, up to a tolerance of 0.0001
) -> np.ndarray:  # (N, C + 1); the last column is what is missing to 1
    """Give probability that a classifier left out a class of its own.

    Raises: ValueError naming the row whose sum exceeds 1, or that holds a negative or missing number.
    """
    array = check_table(values, "values")
    missing = 1 - array.sum(axis=1)
    if (missing < -TOLERANCE).any():
        row = int((missing < -TOLERANCE).argmax())
        raise InputError(
            f"the probabilities sum to {1 - missing[row]:.6g}, to more than 1",
            argument="values",
            row=row,
        )
    completed = np.column_stack([array, np.maximum(missing, 0)])
    check_distributions(completed, "values")
    return completed
