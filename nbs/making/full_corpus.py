"""What training on the full Wiki Neutrality Corpus costs: python nbs/making/full_corpus.py [SECONDS]

The training itself is the command's:

    tsteval train biased.full --output FOLDER --device auto --terms "text: CC BY-SA" --origin "Pryzant et al. 2020"

or, with the split that the corpus' makers chose, `tsteval train biased.word.train --validation biased.word.dev --output
FOLDER`. The file is passed over in pieces; a run that was stopped goes on when the command is given again.

This script measures the rate of the command's loop, with the encoder and the settings that a file of this size gets, on
one core of this machine for SECONDS (60), and works out from it how long the corpus would take. It trains on the pairs
of the WNC sample (TSTEVAL_DATA), whose sentences are as long as the corpus' own; without it on the package's teaching
pairs. It writes tsteval/data/training_cost.json, which the workshop on runs shows.
"""

import json
import os
import platform
import sys
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
CORPUS_PAIRS = 180_000  # Pryzant et al. 2020, in round numbers


def measured_pairs():
    from tsteval.core.assets import AssetError
    from tsteval.style import load_pairs

    try:
        return "wnc_sample", load_pairs("wnc_sample").query("split == 'train'")
    except AssetError:
        return "npov_pairs", load_pairs().query("split == 'train'")


class Over(Exception):
    """The time is over: steps, seconds."""


def clock(seconds: float):
    """A callback that ends the run when the time is over.

    It counts the seconds of this process on its one core, so that other processes of the machine don't slow the figure
    down.
    """
    from transformers import TrainerCallback

    class Clock(TrainerCallback):
        began = None

        def on_step_end(self, args, state, control, **_):
            if self.began is None:
                self.began = time.process_time()
                self.first = state.global_step  # the first step warms up
            passed = time.process_time() - self.began
            if passed > seconds:
                raise Over(state.global_step - self.first, passed)

    return Clock()


def processor() -> str:
    told = Path("/proc/cpuinfo")
    lines = told.read_text(encoding="utf-8").splitlines() if told.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def measure(seconds: float) -> dict:
    import torch

    from tsteval.style import LABELS, labelled_sentences
    from tsteval.training.batches import Stream
    from tsteval.training.loop import train_on_stream
    from tsteval.training.run import run_settings

    torch.set_num_threads(1)
    name, pairs = measured_pairs()
    sentences = labelled_sentences(pairs)
    settings = run_settings({"epochs": 10_000})
    stream = Stream(lambda: [sentences], (len(pairs),), len(sentences))
    try:
        train_on_stream(stream, LABELS, None, settings, callbacks=[clock(seconds)])
    except Over as over:
        steps, took = over.args
    rate = steps * settings.batch_size / took
    epochs = run_settings({}).epochs
    return {
        "pairs": name,
        "encoder": settings.base,
        "seconds": round(took, 1),
        "steps": steps,
        "sentences_per_second": round(2 * rate, 2),
        "corpus_pairs": CORPUS_PAIRS,
        "hours_an_epoch": round(CORPUS_PAIRS / rate / 3600, 1),
        "epochs": epochs,
        "hours": round(epochs * CORPUS_PAIRS / rate / 3600, 1),
        "cores": 1,
        "processor": processor(),
    }


if __name__ == "__main__":
    from tsteval.core.assets import packaged_path

    found = measure(float(sys.argv[1]) if len(sys.argv) > 1 else 60)
    packaged_path("training_cost.json").write_text(
        json.dumps(found, indent=1) + "\n", encoding="utf-8"
    )
    print(json.dumps(found, indent=1))
