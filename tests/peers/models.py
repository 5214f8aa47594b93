"""The numbers of models against a plain loop over transformers' own classes, one text a call: tiny models, made at
random."""

import functools
import math
import tempfile
from pathlib import Path

import numpy as np

from tests.peers.chapters import oracle
from tests.peers.oracle import text_pairs


@functools.cache
def loaded(kind):
    """A tiny model of random weights, read from its folder as a user's own would be."""
    from tests.test_rewriting import tiny_module, tiny_tokenizer
    from tests.test_tone import save_tiny_classifier
    from tsteval.cps import SentenceEncoder
    from tsteval.fluency import CausalLM
    from tsteval.style import StyleClassifier

    with tempfile.TemporaryDirectory() as folder:
        if kind == "causal":
            tiny_module("causal").save_pretrained(folder)
            tiny_tokenizer().save_pretrained(folder)
            return CausalLM.load(folder)
        save_tiny_classifier(Path(folder), ["subjective", "neutral"])
        return (StyleClassifier if kind == "classifier" else SentenceEncoder).load(folder)


def _outputs(draw):
    """Outputs alone, of a draw of pairs."""
    return lambda generator, n: (draw(generator, n)[0],)


def _forward(model, text, **more):
    import torch

    with torch.no_grad():
        return model.model(**model.tokenizer(text, return_tensors="pt"), **more)


def _softmax(texts):
    classifier = loaded("classifier")
    logits = [_forward(classifier, text).logits[0].double().numpy() for text in texts]
    return [np.exp(row) / np.exp(row).sum() for row in logits]


def _mean_vectors(texts):
    encoder = loaded("encoder")
    vectors = [
        _forward(encoder, text).last_hidden_state[0].double().numpy().mean(axis=0) for text in texts
    ]
    return [vector / np.linalg.norm(vector) for vector in vectors]


def _unit(vectors):
    vectors = np.asarray(vectors, float)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def _sums(texts):
    """Log-probability of each text: one forward pass over the beginning and the text, one token after the other."""
    import torch

    causal = loaded("causal")
    found = []
    for text in texts:
        ids = causal.tokenizer(text, add_special_tokens=False)["input_ids"]
        begin = (
            causal.tokenizer.convert_tokens_to_ids(causal.beginning)
            if isinstance(causal.beginning, str)
            else causal.beginning
        )
        with torch.no_grad():
            logits = causal.model(torch.tensor([[begin, *ids]])).logits[0].double().numpy()
        logs = [
            row[token] - math.log(np.exp(row - row.max()).sum()) - row.max()
            for row, token in zip(logits, ids)
        ]
        found.append(sum(logs))
    return found


def _cosines(outputs, sources):
    a = np.array(_mean_vectors(outputs))
    b = np.array(_mean_vectors(sources))
    read = [_is_read(output) and _is_read(source) for output, source in zip(outputs, sources)]
    return np.where(read, np.sum(a * b, axis=1), np.nan)


def _is_read(text):
    """Whether the encoder has a token for something in a text; among unknown ones for a word."""
    pieces = loaded("encoder").tokenizer.tokenize(text)
    known = "".join(piece for piece in pieces if piece != "[UNK]")
    return bool(pieces) and ("[UNK]" not in pieces or any(map(str.isalnum, known)))


def _proba(texts):
    return loaded("classifier").predict_proba(texts)


def _kept(outputs, sources):
    from tsteval.cps import content_preservation

    return content_preservation(
        list(outputs),
        list(sources),
        classifier=loaded("classifier"),
        encoder=loaded("encoder"),
        strategy="none",
    ).cps


oracle(
    "style.StyleClassifier.predict_proba",
    "transformers, one text a call",
    _proba,
    _softmax,
    _outputs(text_pairs),
    near=1e-5,
    texts=True,
    threads=True,
)
oracle(
    "cps.SentenceEncoder.encode",
    "transformers, one text a call",
    lambda texts: _unit(loaded("encoder").encode(texts)),
    _mean_vectors,
    _outputs(text_pairs),
    near=1e-5,
    texts=True,
    threads=True,
)
oracle(
    "cps.content_preservation",
    "transformers, one text a call",
    _kept,
    _cosines,
    text_pairs,
    near=1e-5,
    texts=True,
    threads=True,
)
oracle(
    "fluency.CausalLM.token_logprobs",
    "transformers, one text a call",
    lambda texts: [found.logprobs.sum() for found in loaded("causal").token_logprobs(texts)],
    _sums,
    _outputs(text_pairs),
    near=1e-3,
    texts=True,
    threads=True,
)
