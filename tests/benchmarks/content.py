"""How long the style-aware score takes a pair, and whether its memory grows.

    python tests/benchmarks/content.py [PAIRS]    # 60 pairs by default; some seconds each way
"""
import resource
import sys
import time

import numpy as np

from tsteval.content import style_aware_content
from tsteval.datasets.pairs import load_contrasts

# seconds of wall time a pair on two cores that have nothing else to do: nearly all is arithmetic of the language model
MOST = 0.6


def main(count: int) -> int:
    table = load_contrasts().iloc[:: max(1, 220 // count)].head(count)
    arguments = list(table.source), list(table.style_only), list(table["style"])
    style_aware_content(*(part[:4] for part in arguments))  # models loaded
    seconds, peaks = [], []
    for _ in range(3):
        start = time.perf_counter()
        style_aware_content(*arguments)
        seconds.append((time.perf_counter() - start) / len(table))
        peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    print(f"{len(table)} pairs, {np.mean([len(text.split()) for text in arguments[0]]):.0f} words a source: "
          f"{np.median(seconds):.3f} s a pair (best {min(seconds):.3f}); peak memory after each round "
          f"{', '.join(f'{peak:.0f} MB' for peak in peaks)}")
    return int(np.median(seconds) > MOST)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 60))
