"""Claim: on 1,000 outputs of four systems, Word Mover's Distance and BERTScore are at least 3 times as fast as one pair
at a time.

    python tests/benchmarks/alignment.py [N] [ROUNDS]      # 1,000 outputs, 3 rounds; set TSTEVAL_DATA to the folder
    with wnc_sample

It exits with 1 where a ratio of RATIOS is missed by the median of processor time, which other programs on the machine
disturb least, where a score differs from the straightforward one by more than 1e-5, or where 4 N outputs need more than
150 MB more than N.

Two inputs, both from the WNC sample. *four systems*: N outputs for N / 4 sources, namely the source itself, the
editor's version, the source without its last third, and the source without its first. *one system*: N sources, each
with the editor's version, so that hardly a text occurs twice. In both, outputs are compared with sources.

The straightforward side, to which the ratios are held, is the definition, one pair at a time. For WMD it tokenises both
texts, looks up the vectors and solves the whole transport with POT. For BERTScore it runs the encoder on each of the
two texts and takes the maxima. Two more ratios are printed and not held, with the authors' package: called with one
pair (`BERTScorer.score([output], [source])`), on 50 pairs spread over the input and scaled up; and the stronger peer,
all pairs in one call, where it reads each text once and in batches of 64. Both need `pip install bert-score`; without
it they are left out. All sides use one model and as many threads.

What can be gained on BERTScore has a limit. Nearly all of the time is the encoder's, and where every text is new, each
token has to be read by either side. On the machine where this was written, one text of 36 tokens at a time reached
about a third of the rate of a large matrix product, and batches two thirds: a factor of two. The rest of the factor of
3 comes from reading a source once for all systems. Hence the smaller ratio that is stated for one system.
"""

import resource
import statistics
import subprocess
import sys
import time

import numpy as np
import ot
import torch
from _common import forget, hold, wnc_lines

from tsteval.alignment import LAYERS, bert_score, word_movers_distance
from tsteval.cps import SentenceEncoder
from tsteval.text import tokenize

RATIOS = {
    "wmd, four systems": 3.0,
    "bert_score, four systems": 3.0,
    "wmd, one system": 3.0,
    "bert_score, one system": 1.5,
}
MEGABYTES = 150
FEW = 50
LAYER = LAYERS["all-MiniLM-L6-v2"]


def plain_wmd(encoder, pairs):
    """One pair at a time, the whole problem."""
    found = []
    table = encoder.model.get_input_embeddings().weight.detach().double().numpy()
    for pair in pairs:
        sides = []
        for text in pair:
            words, counts = np.unique(tokenize(text), return_counts=True)
            pieces = encoder.tokenizer([f" {word}" for word in words], add_special_tokens=False)[
                "input_ids"
            ]
            vectors = np.array(
                [table[row].mean(axis=0) if row else np.zeros(table.shape[1]) for row in pieces]
            )
            lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
            sides.append((counts / counts.sum(), vectors / np.where(lengths > 0, lengths, 1)))
        (p, x), (q, y) = sides
        found.append(ot.emd2(p, q, np.linalg.norm(x[:, None] - y, axis=-1)))
    return np.array(found)


@torch.inference_mode()
def plain_bert_score(encoder, pairs):
    """One text at a time."""
    found = []
    for pair in pairs:
        batches = [
            encoder.tokenizer(text.strip(), return_tensors="pt", truncation=True, max_length=256)
            for text in pair
        ]
        x, y = (
            torch.nn.functional.normalize(
                encoder.model(**batch, output_hidden_states=True).hidden_states[LAYER][0], dim=1
            )
            for batch in batches
        )
        precision, recall = ((x @ y.T).max(dim=axis)[0][1:-1].mean() for axis in (1, 0))
        found.append(float(2 * precision * recall / (precision + recall)))
    return np.array(found)


def peer():
    """The authors' package with the same model, or None."""
    try:
        from bert_score import BERTScorer
    except ImportError:
        return None
    from tsteval.core.fetch import asset_path

    return BERTScorer(
        model_type=str(asset_path("all-MiniLM-L6-v2")), num_layers=LAYER, device="cpu"
    )


def four_systems(count):
    """Sources and outputs, as an evaluation of four systems has them."""
    sources, targets = (lines[: count // 4] for lines in wnc_lines())
    words = [source.split() for source in sources]
    outputs = [
        *sources,
        *targets,
        *(" ".join(row[: -(len(row) // 3) or None]) for row in words),
        *(" ".join(row[len(row) // 3 :]) for row in words),
    ]
    return sources * 4, outputs


def one_system(count):
    """Sources and the editors' versions."""
    return tuple(lines[:count] for lines in wnc_lines())


def medians(sides, rounds):
    """Run all sides in turn, several times: the medians of processor and wall time of each, and its last result."""
    times = {name: [] for name in sides}
    results = {}
    for _ in range(rounds):
        for name, run in sides.items():
            forget()  # what one side has tokenised
            cpu = time.process_time()
            wall = time.perf_counter()
            results[name] = run()
            times[name].append((time.process_time() - cpu, time.perf_counter() - wall))
    return {
        name: [statistics.median(column) for column in zip(*found)] for name, found in times.items()
    }, results


def our_wmd(encoder, sources, outputs):
    return word_movers_distance(outputs, sources, encoder=encoder)


def our_bert_score(encoder, sources, outputs):
    return bert_score(outputs, sources, encoder=encoder).f1.to_numpy()


def spread(pairs):
    """A few rows from all over so many."""
    return np.linspace(0, pairs - 1, min(FEW, pairs)).astype(int)


def compare(name, sides, rounds, pairs):
    """Print the medians of all sides beside ours; the ratio of the straightforward one by processor time."""
    found, results = medians(sides, rounds)
    for side, (cpu, wall) in found.items():
        few, own = (
            (len(results[side]) / pairs, results["ours"][spread(pairs)])
            if side == "package, pair by pair"
            else (1, results["ours"])
        )
        print(
            f"{name:26} {side:22} {cpu / few:7.2f} s processor {wall / few:7.2f} s wall   "
            f"{cpu / few / found['ours'][0]:5.1f} times ours "
            f"({wall / few / found['ours'][1]:.1f} by wall)   largest difference "
            f"{np.abs(results[side] - own).max():.0e}",
            flush=True,
        )
    if not np.abs(results["plain"] - results["ours"]).max() <= 1e-5:
        sys.exit(f"{name}: the scores differ")
    return found["plain"][0] / found["ours"][0]


def memory(count):
    """Peak of a process of its own that scores so many outputs, in megabytes."""
    return float(
        subprocess.run(
            [sys.executable, __file__, "memory", str(count)],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
    )


def peak(count):
    encoder = SentenceEncoder.load(device="cpu")
    for run in (our_wmd, our_bert_score):
        run(encoder, *four_systems(count))
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def main():
    count, rounds = (
        int(given) if given else default
        for given, default in zip([*sys.argv[1:], "", ""], (1000, 3))
    )
    encoder = SentenceEncoder.load(device="cpu")
    package = peer()
    ratios = {}
    for kind, table in (("four systems", four_systems(count)), ("one system", one_system(count))):
        sources, outputs = table
        pairs = list(zip(outputs, sources))
        sides = {
            "wmd": {
                "ours": lambda: our_wmd(encoder, *table),
                "plain": lambda: plain_wmd(encoder, pairs),
            },
            "bert_score": {
                "ours": lambda: our_bert_score(encoder, *table),
                "plain": lambda: plain_bert_score(encoder, pairs),
            },
        }
        if package:
            sides["bert_score"] |= {
                "package, one call": lambda: package.score(outputs, sources)[2].numpy(),  # noqa: PLW0108  timed
                "package, pair by pair": lambda: np.array(
                    [
                        package.score([a], [b])[2].item()
                        for a, b in (pairs[row] for row in spread(len(pairs)))
                    ]
                ),
            }
        for name, own in sides.items():
            # first calls are slow
            (
                our_wmd(encoder, sources[:8], outputs[:8]),
                our_bert_score(encoder, sources[:8], outputs[:8]),
            )
            ratios[f"{name}, {kind}"] = compare(f"{name}, {kind}", own, rounds, len(pairs))
    small = memory(count)
    large = memory(4 * count)
    print(f"peak memory: {small:.0f} MB for {count} outputs, {large:.0f} MB for {4 * count}")
    if large - small > MEGABYTES:
        sys.exit(f"memory grew by more than {MEGABYTES} MB")
    hold(ratios, RATIOS)


if __name__ == "__main__":
    peak(int(sys.argv[2])) if sys.argv[1:2] == ["memory"] else main()
