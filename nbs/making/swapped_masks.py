"""Which words a mask hides in the test pairs and their swapped facts: python nbs/making/swapped_masks.py

Writes tsteval/data/swapped_masks.csv, which chapter 10 reads: a row a pair, threshold and version of the text (source;
target; wrong, which is the target with its fact exchanged as in swapped_facts.csv) with the places of the words that
integrated gradients of the shipped classifier hide, counted from 0. Places only, no text.
"""

from pathlib import Path
from re import escape, sub

import pandas as pd

from tsteval.attribution import integrated_gradients
from tsteval.cps import masked_places
from tsteval.style import StyleClassifier, load_pairs

DATA = Path(__file__).parents[2] / "tsteval" / "data"
VERSIONS = ("source", "target", "wrong")


def versions() -> pd.DataFrame:
    pairs = load_pairs().query("split == 'test' and source != target").reset_index(drop=True)
    facts = pd.read_csv(DATA / "swapped_facts.csv", dtype=str)
    pairs["wrong"] = [
        sub(rf"\b{escape(one.fact)}\b", one.other, text)
        for text, one in zip(pairs.target, facts.itertuples())
    ]
    return pairs


def main() -> None:
    pairs = versions()
    texts = [text for version in VERSIONS for text in pairs[version]]
    found = dict(zip(texts, integrated_gradients(StyleClassifier.load(), texts)))
    rows = [
        {
            "row": row,
            "threshold": threshold,
            "version": version,
            "places": " ".join(map(str, masked_places(found[text], threshold, "word"))),
        }
        for threshold in (0.3, 0.4)
        for version in VERSIONS
        for row, text in enumerate(pairs[version])
    ]
    pd.DataFrame(rows).to_csv(DATA / "swapped_masks.csv", index=False)


if __name__ == "__main__":
    main()
