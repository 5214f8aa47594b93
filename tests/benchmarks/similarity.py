"""Claim: on an evaluation of 1,000 outputs, Word Mover's Distance and BERTScore are at least 3 times as fast as one pair at a time.

It exits with 1 where that is missed by processor time, which other programs on the machine do not disturb, where a score differs
from the straightforward one by more than 1e-5, or where four times as many pairs need more than 150 MB more.

Input: N outputs as an evaluation has them, a quarter each from four systems on the same sources: the source itself, the editor's
version, the source without its last five tokens, and the source without its first; compared with the source. The sources are
lines of the WNC sample (set TSTEVAL_DATA); N is the first argument, 1,000 by default. The straightforward side is the definition:
for each pair, WMD tokenises both texts, looks up the vectors and solves the whole transport with POT; BERTScore runs the encoder on
each of the two texts and takes the maxima. Both sides use one model and as many threads.

Where no text occurs twice, BERTScore can only gain by its batches, since the encoder has to read every token on either side. That
is measured too, on N / 2 pairs of different lines; its ratio is printed and not claimed.
"""

import resource
import sys
import time

import numpy as np
import ot
import torch

from _common import hold, wnc_lines
from tsteval.cps import SentenceEncoder
from tsteval.similarity import LAYERS, bert_score, word_movers_distance
from tsteval.text import tokenize

RATIO, MEGABYTES = 3.0, 150


def plain_wmd(encoder, pairs):
    """One pair at a time, the whole problem."""
    found, table = [], encoder.model.get_input_embeddings().weight.detach().double().numpy()
    for pair in pairs:
        sides = []
        for text in pair:
            words, counts = np.unique(tokenize(text), return_counts=True)
            pieces = encoder.tokenizer([f" {word}" for word in words], add_special_tokens=False)["input_ids"]
            vectors = np.array([table[row].mean(axis=0) if row else np.zeros(table.shape[1]) for row in pieces])
            lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
            sides.append((counts / counts.sum(), vectors / np.where(lengths > 0, lengths, 1)))
        (p, x), (q, y) = sides
        found.append(ot.emd2(p, q, np.linalg.norm(x[:, None] - y, axis=-1)))
    return np.array(found)


@torch.inference_mode()
def plain_bert_score(encoder, pairs, layer):
    """One text at a time."""
    found = []
    for pair in pairs:
        batches = [encoder.tokenizer(text.strip(), return_tensors="pt", truncation=True, max_length=256) for text in pair]
        x, y = (torch.nn.functional.normalize(encoder.model(**batch, output_hidden_states=True).hidden_states[layer][0], dim=1) for batch in batches)
        precision, recall = ((x @ y.T).max(dim=axis)[0][1:-1].mean() for axis in (1, 0))
        found.append(float(2 * precision * recall / (precision + recall)))
    return np.array(found)


def timed(run):
    start = time.process_time()
    result = run()
    return time.process_time() - start, result


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # megabytes


def table(count):
    """Sources and outputs of four systems."""
    sources, targets = (lines[:count // 4] for lines in wnc_lines())
    words = [source.split() for source in sources]
    outputs = [*sources, *targets, *(" ".join(row[:-5]) for row in words), *(" ".join(row[1:]) for row in words)]
    return sources * 4, outputs


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    encoder, layer = SentenceEncoder.load(device="cpu"), LAYERS["all-MiniLM-L6-v2"]
    functions = {"wmd": (lambda a, b: word_movers_distance(b, a, encoder=encoder), lambda a, b: plain_wmd(encoder, list(zip(b, a)))),
                 "bert_score": (lambda a, b: bert_score(b, a, encoder=encoder).f1.to_numpy(),
                                lambda a, b: plain_bert_score(encoder, list(zip(b, a)), layer))}
    for ours, theirs in functions.values():
        ours(*table(count // 4)), theirs(*table(16))  # first calls are slow, and set the memory to compare with
    before, ratios = peak(), {}
    results = {name: timed(lambda: ours(*table(count))) for name, (ours, _) in functions.items()}
    grown = peak() - before
    lines, strangers = wnc_lines()[0], {}
    for name, (ours, theirs) in functions.items():
        slow, expected = timed(lambda: theirs(*table(count)))
        fast, found = results[name]
        ratios[name], difference = slow / fast, np.abs(found - expected).max()
        distinct = lines[:count // 2], lines[count // 2:count // 2 * 2]
        strangers[name] = 1 / timed(lambda: ours(*distinct))[0] * timed(lambda: theirs(*distinct))[0]
        print(f"{name}, {count} outputs of 4 systems: {fast:.2f} s, one pair at a time {slow:.2f} s, {ratios[name]:.1f} times as fast, "
              f"largest difference {difference:.0e}; {count // 2} pairs of different lines: {strangers[name]:.1f} times", flush=True)
        if difference > 1e-5: sys.exit(f"{name}: the scores differ")
    print(f"peak memory grew by {grown:.0f} MB from {count // 4} to {count} outputs")
    if grown > MEGABYTES: sys.exit(f"memory grew by more than {MEGABYTES} MB")
    hold(ratios, dict.fromkeys(ratios, RATIO))


if __name__ == "__main__":
    main()
