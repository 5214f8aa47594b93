"""Formality transfer by eight systems and a person, with two raters' scores, read from verified lines"""

import json
from hashlib import sha256

import pandas as pd

from ..core.assets import AssetError, corpus_path

_LAI2022_FILES = {
    "style": "6853bd97616a803cab52bc765d3a087747f36e46be10c79895992bf3d2918ac7",
    "content.src": "1eb0f657db98310db0c8a4c725770961c8cba8246bec4dac1ec23b72c6d6c3a8",
    "content.ref": "2d366dbc7612e647315034b3d31e28f724842d81593a2a91025eb8cf8fdc94b0",
    "fluency": "5f30050aebd0d90b516f685e9dd3c1cc0b359fdddd6946f1b72b9febd916972d",
}
# beginnings of the SHA-256 of each source, in the order of the study
_SOURCES = """
    f12147026d 5e89410b3f 52c1d96eb1 8f92accd29 165a44e5bb f2a144bf1b 2c2dcfeab2 db1df9a9ee
    0fa8e2a74d e17de0bece a12bf42d33 f063ece399 af3626e645 a9f3df6527 24b0782bb3 f8fe4907ec
    abcfc34bf3 0facfb7892 e3ab8ae8f8 56afd1299f f3c065579b 297705117b 9dad379c3c a9a1a35083
    7b7c1ce425 0b0705b7fa 1f83110621 64a7d4b0a2 6a01f1ab4e 47cb12268a adadcd8090 16a58eebc1
    36fac8badb a9a1a51275 497b826314 f618e5b292 fe85daaf69 29f504e5a1 37dfca8d9c 12da3c013e
    8f1c4eed25 40ca618d14 b1258be490 45cedd5998 145733e38f d791687611 141deeab9a 99dfa88ba8
    0784ca01dc f3b49fcd16 4abb333c71 b2af9e3ef6 672c389d8d 98d0246b40 c98dcc07d0
"""
_LAI2022_SOURCES = _SOURCES.split()
_PARTS = {
    "style": "style",
    "content": "content.src",
    "content_ref": "content.ref",
    "fluency": "fluency",
}
_MADE_FORMAL = 28  # of the sources; the first ones. The others are formal and were made informal


def _lai2022_lines(name: str) -> list[dict]:
    """The lines of one file that belong to the known sources. Raises: AssetError for a file with others or changed
    ones."""
    path = corpus_path("lai2022") / f"{name}.json"
    if not path.is_file():
        raise AssetError(f"{path} is missing. To mend it: get the published file again")
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    by_source = {sha256(json.loads(line)["src"].encode()).hexdigest()[:10]: line for line in lines}
    published = [by_source[source] for source in _LAI2022_SOURCES if source in by_source]
    if sha256("\n".join(published).encode()).hexdigest() != _LAI2022_FILES[name]:
        raise AssetError(
            f"{path} is not the published file: the lines of the {len(_LAI2022_SOURCES)} sources differ. "
            "To mend it: get the published file again"
        )
    return [json.loads(line) for line in published]


def load_lai2022() -> pd.DataFrame:  # 495 rows: 8 systems and a person ("ref"), 55 outputs each
    """Outputs of formality transfer in both directions, with people's ratings and the stored scores of other metrics.

    Columns: system, row (0..54, of the source), to_formal, source, reference, output (texts); human_style,
    human_content, human_fluency (means of two raters, 0..100), each also by rater (`human_style_1`); and the stored
    scores as `style_<name>`, `content_<name>` (against the source), `content_ref_<name>` (against the reference),
    `fluency_<name>`.

    Raises: AssetError if the corpus is not on this machine or a line of it has changed.
    Source: Lai et al. 2022, 2023; github.com/laihuiyuan/eval-formality-transfer.
    """
    parts = {part: _lai2022_lines(name) for part, name in _PARTS.items()}
    rows = []
    for system in parts["style"][0]["sys"]:
        for number, line in enumerate(parts["style"]):
            row = {
                "system": system,
                "row": number,
                "to_formal": number < _MADE_FORMAL,
                "source": line["src"],
                "reference": line["ref"],
                "output": line["sys"][system]["out"],
            }
            for part, lines in parts.items():
                row |= _scores(part, lines[number]["sys"][system])
            rows.append(row)
    return pd.DataFrame(rows)


def _scores(part: str, stored: dict) -> dict[str, float]:
    """What people and other metrics say of one output; the raters of content saw the source alone."""
    scores = {name: score for name, score in stored.items() if name != "out"}
    first, second = scores.pop("human_1"), scores.pop("human_2")
    human = {}
    if part != "content_ref":
        human = {
            f"human_{part}": (first + second) / 2,
            f"human_{part}_1": first,
            f"human_{part}_2": second,
        }
    return human | {f"{part}_{name}": score for name, score in scores.items()}
