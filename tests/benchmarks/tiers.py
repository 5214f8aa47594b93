"""Claim: the small tier is at least four times as fast as the larger one, in half its memory: python
tests/benchmarks/tiers.py [SENTENCES]

Each model reads the same sentences of the WNC sample (TSTEVAL_DATA), or else of the teaching pairs, on one thread, in a
process of its own, so that its peak memory is its own. Prints megabytes on disk (of a judge with its encoder's),
processor seconds for 1,000 sentences, and peak memory; exits with 1 where the claim is missed. The larger tier is
fetched on first use (404 MB).
"""

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

from _common import hold

MODELS = {
    "encoder, small": "all-MiniLM-L6-v2",
    "encoder, base": "all-mpnet-base-v2",
    "judge, small": "subjectivity-minilm",
    "judge with words, small": "subjectivity-words",
    "judge, base": "subjectivity-mpnet",
}


def measure(name, number):
    """Of one model, in this process."""
    from tsteval.core.assets import AssetError
    from tsteval.core.pretrained import locate_model
    from tsteval.models.encoder import SentenceEncoder
    from tsteval.style import StyleClassifier, load_pairs

    try:
        pairs = load_pairs("wnc_sample")
    except AssetError:
        pairs = load_pairs()
    texts = list(dict.fromkeys([*pairs.source, *pairs.target]))[:number]
    source = locate_model(name)
    folders = {source.location, source.base.location if source.base else source.location}
    size = sum(
        path.stat().st_size
        for folder in folders
        for path in Path(folder).rglob("*")
        if path.is_file()
    )
    judge = source.base is not None
    model = (StyleClassifier if judge else SentenceEncoder).load(name)
    score = model.predict_proba if judge else model.encode
    score(texts[:32])
    start = time.process_time()
    score(texts)
    return {
        "megabytes": size / 1e6,
        "seconds": (time.process_time() - start) * 1000 / len(texts),
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
    }


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(measure(sys.argv[2], int(sys.argv[3]))))
        sys.exit()
    number = sys.argv[1] if len(sys.argv) > 1 else "1000"
    found = {}
    print("| model | MB on disk | processor seconds for 1,000 sentences | peak memory, MB |")
    print("| --- | --- | --- | --- |")
    for part, name in MODELS.items():
        out = subprocess.run(
            [sys.executable, __file__, "--one", name, number],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        ).stdout
        found[part] = one = json.loads(out.splitlines()[-1])
        print(
            f"| {name} | {one['megabytes']:.0f} | {one['seconds']:.1f} | {one['peak']:.0f} |",
            flush=True,
        )
    hold(
        {
            f"{kind}, {what}": found[f"{kind}, base"][what] / found[f"{kind}, small"][what]
            for kind in ("encoder", "judge")
            for what in ("seconds", "peak")
        },
        {"encoder, seconds": 4, "judge, seconds": 4, "encoder, peak": 2, "judge, peak": 2},
    )
