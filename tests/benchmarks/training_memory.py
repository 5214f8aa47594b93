"""Training with packed products: memory stays flat over the steps, and it is not slower than with plain products.

python tests/benchmarks/training_memory.py [STEPS] [PAIRS]

Trains with the shipped settings on the teaching pairs, repeated, for STEPS (200) steps of PAIRS (16) pairs, once with
packed and once with plain products, each in a process of its own. The caches of the matrix library fill in the first
quarter of the steps; from there on resident memory may grow by a tenth at most. Exits 1 if it grows by more, if the
number of packed weights grows, or if packed products train fewer than 0.95 times as many sentences a second.
"""

import contextlib
import json
import os
import subprocess
import sys
import time

GROWTH = 1.10
RATE = 0.95


def resident() -> float:
    """Resident memory of this process in MB (Linux)."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def measure(products: str, steps: int, batch: int) -> dict:
    import pandas as pd

    from tsteval.style import labelled_sentences, load_pairs, train_classifier
    from tsteval.training import loop as training

    pairs = load_pairs()
    pairs = pd.concat([pairs] * -(-steps * batch // len(pairs)), ignore_index=True).head(
        steps * batch
    )
    if products == "plain":
        training._training_products = lambda *_: contextlib.nullcontext()
    memory = []
    packed = []
    begun = []
    loss = training._loss

    def watched(classifier, batch, settings):
        if not begun:
            begun.append(time.perf_counter())
        memory.append(resident())
        packed.append(len(classifier.products.packed))
        return loss(classifier, batch, settings)

    training._loss = watched
    train_classifier(
        pairs,
        epochs=1,
        batch_size=batch,
        pooling="mean",
        learning_rate=1e-3,
        hidden_dropout=0.2,
        mask_share=0.15,
    )
    seconds = time.perf_counter() - begun[0]
    return {"memory": memory, "packed": packed, "rate": len(labelled_sentences(pairs)) / seconds}


if __name__ == "__main__":
    if sys.argv[1:2] in (["packed"], ["plain"]):
        print(json.dumps(measure(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
        sys.exit()
    steps, batch = (int(text) for text in [*sys.argv[1:], *("200", "16")[len(sys.argv) - 1 :]])
    results = {}
    for products in ("packed", "plain"):
        run = subprocess.run(
            [sys.executable, __file__, products, str(steps), str(batch)],
            capture_output=True,
            text=True,
            check=True,
        )
        result = results[products] = json.loads(run.stdout.splitlines()[-1])
        quarters = [result["memory"][min(steps * part // 4, steps - 1)] for part in range(5)]
        print(
            f"{products}: {result['rate']:.1f} sentences a second; resident MB at each quarter of the steps: "
            f"{', '.join(f'{value:.0f}' for value in quarters)}; packed weights {max(result['packed'])}",
            flush=True,
        )
    memory = results["packed"]["memory"]
    packed = results["packed"]["packed"]
    growth = memory[-1] / memory[steps // 4]
    ratio = results["packed"]["rate"] / results["plain"]["rate"]
    print(
        f"growth after the first quarter {growth:.2f} (at most {GROWTH}); packed against plain {ratio:.2f} (at "
        f"least {RATE})"
    )
    sys.exit(growth > GROWTH or packed[-1] > packed[steps // 4] or ratio < RATE)
