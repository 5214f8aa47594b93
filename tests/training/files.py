"""Files to train on, small and made up."""

import pandas as pd

NOUNS = [
    "bridge",
    "harbour",
    "pier",
    "station",
    "library",
    "mill",
    "canal",
    "tower",
    "market",
    "school",
]
KINDS = ["old", "new", "stone", "brick", "wooden", "grand", "small", "public", "town", "river"]


def pairs_frame(number=60):
    rows = [
        (
            f"The stunning {kind} {noun} opened in {1800 + 7 * n}.",
            f"The {kind} {noun} opened in {1800 + 7 * n}.",
        )
        for n, (kind, noun) in enumerate((kind, noun) for kind in KINDS for noun in NOUNS)
    ]
    return pd.DataFrame(rows, columns=["source", "target"]).head(number)


def texts_frame(number=60):
    pairs = pairs_frame(number // 2)
    return pd.DataFrame(
        {
            "text": [*pairs.source, *pairs.target],
            "label": ["loud"] * len(pairs) + ["plain"] * len(pairs),
        }
    )


def wnc_line(number, padding=0):
    letters = "".join(
        chr(97 + int(digit)) for digit in str(number)
    )  # numbers alone tell no texts apart
    source = f"This grand sentence has the letters {letters}."
    target = f"This sentence has the letters {letters}."
    return (
        "\t".join(
            [
                str(number),
                source.lower(),
                target.lower(),
                source,
                target,
                "DET " * (8 + padding),
                "x " * 8,
            ]
        )
        + "\n"
    )
