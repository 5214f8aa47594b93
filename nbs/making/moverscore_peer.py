"""What the program of MoverScore's authors gives for the four outputs of chapter 12, with the embedded encoder.

    pip install pyemd && pip download --no-deps moverscore==1.0.3 && tar xzf moverscore-1.0.3.tar.gz
    python nbs/making/moverscore_peer.py moverscore-1.0.3/moverscore_v2.py      # seconds

Their program of 2020 loads DistilBERT onto a graphics card as soon as it is imported, and asks for names that later
versions of NumPy and transformers no longer have. So it is not imported: the functions from `truncate` to
`word_mover_score` are run as they are written, but for the two names, with our encoder in the place of theirs, and only if
the file is the one that was read before it was run. All tokens weigh alike.

tsteval/data/moverscore_peer.csv has a row an output. The file holds figures only. Nothing at run time depends on this
file.
"""

import string
import sys
from collections import defaultdict
from hashlib import sha256
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from pyemd import emd_with_flow

from tsteval.models.encoder import SentenceEncoder

FOLDER = Path(__file__).parents[2] / "tsteval" / "data"
REFERENCE = "The gift made the children happy."
OUTPUTS = (
    "The present pleased the kids.",
    "The gift made the children sick.",
    "The children made the gift happy.",
    "The bridge opened in 1932.",
)
PROGRAM = "3d1801ae3b68b65395560c1a06544f8bcf881817654a12c866c706412ba21e29"  # sha256
RENAMED = (("np.float)", "float)"), ("tokenizer.max_len", "tokenizer.model_max_length"))


class Model:
    """An encoder that answers as models of transformers did in 2020, by a tuple."""

    def __init__(self, model):
        self.model = model

    def eval(self):
        self.model.eval()

    def __call__(self, **inputs):
        return None, self.model(**inputs, output_hidden_states=True).hidden_states, None


def program(path: str) -> dict:
    """The names of `moverscore_v2`, with the embedded encoder."""
    text = Path(path).read_bytes()
    if sha256(text).hexdigest() != PROGRAM:
        sys.exit(f"{path} isn't moverscore_v2.py of moverscore 1.0.3; it is not run")
    text = text.decode()
    text = text[text.index("def truncate") : text.index("import matplotlib")]
    for old, new in RENAMED:
        assert old in text, old
        text = text.replace(old, new)
    encoder = SentenceEncoder.load()
    names = {"np": np, "torch": torch, "string": string, "emd_with_flow": emd_with_flow}
    names |= {"model": Model(encoder.model), "tokenizer": encoder.tokenizer}
    names |= {"partial": None, "Pool": None}  # of functions that are not called
    exec(compile(text, path, "exec"), names)
    return names


def main() -> None:
    score = program(sys.argv[1])["word_mover_score"]
    alike = defaultdict(lambda: 1.0)
    found = score([REFERENCE] * len(OUTPUTS), OUTPUTS, alike, alike, device="cpu")
    table = pd.DataFrame({"output": OUTPUTS, "moverscore_v2": np.round(found, 4)})
    print(table.to_string())
    table.to_csv(FOLDER / "moverscore_peer.csv", index=False)


if __name__ == "__main__":
    main()
