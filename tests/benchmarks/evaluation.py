"""Claims for `evaluate` with its default metrics, CPS masked as the report does it, and embedded models: RATIO times as
fast as the report's own way; ten times the rows take no more than ten times the seconds and 10% (some seconds are the
same for any number of rows); and the peak of memory grows with the rows by no more than 20 MB and what the scored table
itself takes. Printed without a claim: the same without a mask, which is the default, and both with the models in
bfloat16, each with its ratio to the report's way and how far its scores are from those above.

`python tests/benchmarks/evaluation.py [ROWS] [PEER_ROWS]`, from the repository's root; 1,000 rows and 50 unless told.
Take figures on an idle machine; two cores need some twelve minutes. It prints everything in one run, and exits with 1
where a claim is missed.

Input: pairs of the WNC sample (TSTEVAL_DATA), or else the teaching pairs. A row is a source; as output the source
without the words that a style lexicon marks, or without its longest word where it marks none; as reference the human
target. Rows are dealt by length, so that a tenth of them is as long on average as all. Each side runs in a process of
its own, with the same models, which are loaded and warm before the clock starts; the peak is the process's.

The peer scores the same things as people write it from the report: transformers' pipeline, one text a call, and pyemd
for the intensity; transformers-interpret (captum, 50 steps), one text a call, then the same masks, and an encoder, one
text a call; a language model, one text a call; sacreBLEU. It runs on PEER_ROWS of the rows, and its time is multiplied.
Needs `pip install --no-deps transformers-interpret==0.10.0` (it pins an IPython older than ours, which attribution does
not need) and `pip install pyemd`.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np

RATIO = 4.0  # times as fast as the peer, by the clock
SPARE = 20  # MB by which the peak may grow beyond the table: what allocators keep


def rows_of(n):
    """n rows of source, output, reference, short sources first."""
    import re

    import pandas as pd

    from tsteval.attribution import style_lexicon
    from tsteval.core.assets import AssetError
    from tsteval.cps import mask_style
    from tsteval.tables.pairs import load_pairs

    taught = load_pairs().query("split == 'train'")
    try:
        pairs = load_pairs("wnc_sample")
    except AssetError:
        pairs = load_pairs()
    pairs = pairs.head(n)
    sources = list(pairs.source)
    outputs = [
        mask_style(found, strategy="remove", unit="word")
        for found in style_lexicon(taught).attribute(sources)
    ]
    longest = [
        re.sub(r"\s*" + re.escape(max(source.split(), key=len)), "", source, count=1)
        for source in sources
    ]
    outputs = [
        other if output.split() == source.split() else output
        for source, output, other in zip(sources, outputs, longest)
    ]
    rows = pd.DataFrame({"source": sources, "output": outputs, "reference": list(pairs.target)})
    rows = rows[rows.output.str.strip() != ""]  # a source of one word leaves nothing
    return rows.loc[rows.source.map(len).sort_values(kind="stable").index].reset_index(drop=True)


def places(whole, n):
    """n row numbers, evenly over the lengths of the rows."""
    return ((np.arange(n) + 0.5) * whole / n).astype(int)


def half():
    """The default models with 16-bit numbers."""
    from tsteval.cps import SentenceEncoder
    from tsteval.fluency import CausalLM
    from tsteval.style import StyleClassifier

    kinds = {"classifier": StyleClassifier, "encoder": SentenceEncoder, "language_model": CausalLM}
    return {role: kind.load(dtype="bfloat16") for role, kind in kinds.items()}


MASKED = {
    "options": {"cps": {"strategy": "pad"}}
}  # with the report's mask, which is not the default
WAYS = {
    "ours": lambda: MASKED,
    "no mask": dict,
    "masked, bfloat16": lambda: MASKED | half(),
    "no mask, bfloat16": half,
}


def ours(rows, way="ours"):
    """Scores as arrays, and the size of the table in MB."""
    from tsteval.evaluation import evaluate

    result = evaluate(rows, **WAYS[way]())
    table = result.per_pair.memory_usage(deep=True).sum() / 2**20
    return (
        {
            "bleu": [result.summary().bleu[0]],
            **{name: result.per_pair[name].tolist() for name in ("sti", "cps", "logprob")},
        },
        {},
        table,
    )


class Peer:
    """The report's way, with the models that `evaluate` loads."""

    def __init__(self):
        from transformers import pipeline
        from transformers_interpret import SequenceClassificationExplainer

        from tsteval.cps import SentenceEncoder
        from tsteval.fluency import CausalLM
        from tsteval.style import StyleClassifier

        self.classifier = StyleClassifier.load()
        self.encoder = SentenceEncoder.load()
        self.lm = CausalLM.load()
        self.pipeline = pipeline(
            "text-classification",
            model=self.classifier.model,
            tokenizer=self.classifier.tokenizer,
            top_k=None,
        )
        self.explainer = SequenceClassificationExplainer(
            self.classifier.model, self.classifier.tokenizer
        )

    def intensity(self, source, output):
        from pyemd import emd

        found = [
            {row["label"]: row["score"] for row in self.pipeline([text])[0]}
            for text in (source, output)
        ]
        before, after = (
            np.array([scores[label] for label in self.classifier.labels]) for scores in found
        )
        rises = found[1]["neutral"] > found[0]["neutral"]
        return emd(before, after, 1 - np.eye(2)) * (1 if rises else -1)

    def masked(self, text):
        from tsteval.attribution import Attribution
        from tsteval.cps import mask_style

        pairs = self.explainer(text, index=0)[1:-1]
        return mask_style(
            Attribution(
                text,
                [token for token, _ in pairs],
                np.array([score for _, score in pairs]),
                [],
                np.zeros(0),
                0.0,
                50,
            )
        )

    def vector(self, text):
        import torch

        with torch.no_grad():
            inputs = self.encoder.tokenizer(
                text, return_tensors="pt", truncation=True, max_length=256
            )
            mean = self.encoder.model(**inputs).last_hidden_state.mean(1)
        return torch.nn.functional.normalize(mean)[0].numpy()

    def log_probability(self, text):
        import torch

        with torch.no_grad():
            ids = torch.tensor(
                [
                    [
                        self.lm.beginning,
                        *self.lm.tokenizer(text, add_special_tokens=False)["input_ids"],
                    ]
                ]
            )
            scores = self.lm.model(input_ids=ids).logits[0, :-1].log_softmax(-1)
        return float(scores.gather(1, ids[0, 1:, None]).sum())

    def __call__(self, rows):
        seconds = {}
        found = {}
        parts = {
            "sti": lambda row: self.intensity(row.source, row.output),
            "cps": lambda row: float(
                self.vector(self.masked(row.source)) @ self.vector(self.masked(row.output))
            ),
            "logprob": lambda row: self.log_probability(row.output),
        }
        for name, score in parts.items():
            start = time.perf_counter()
            found[name] = [score(row) for row in rows.itertuples()]
            seconds[name] = time.perf_counter() - start
        start = time.perf_counter()
        found["bleu"] = [peer_bleu(rows)]
        return found, seconds | {"bleu": time.perf_counter() - start}, 0.0


def peer_bleu(rows):
    import sacrebleu

    return sacrebleu.corpus_bleu(list(rows.output), [list(rows.reference)]).score / 100


def measure(side, path, n):
    """In a process of its own: seconds, processor seconds, peak in MB, size of the table in MB, and the scores."""
    import pandas as pd

    rows = pd.read_json(path)
    run = Peer() if side == "peer" else partial(ours, way=side)
    # loads what is loaded once; with the longest text, which needs the most memory alone
    run(rows.iloc[[0, -1]].reset_index(drop=True))
    start = time.perf_counter()
    processor = time.process_time()
    found, parts, table = run(rows.iloc[places(len(rows), n)].reset_index(drop=True))
    return {
        "seconds": time.perf_counter() - start,
        "processor": time.process_time() - processor,
        "parts": parts,
        "table": table,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10,
        "found": found,
    }


def in_a_process(side, path, n):
    run = subprocess.run(
        [sys.executable, "-W", "ignore", __file__, "--measure", side, str(path), str(n)],
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode:
        sys.exit(run.stderr[-2000:])
    result = json.loads(run.stdout.splitlines()[-1])
    print(
        f"{side}, {n:,} rows: {result['seconds']:.1f} s, {result['processor']:.1f} s of processor, peak "
        f"{result['peak']:.0f} MB",
        flush=True,
    )
    return result


def compare_way(way, found, full, peer_seconds):
    """Print what a shorter way gains, and what it moves."""
    apart = {
        name: np.abs(np.array(found["found"][name]) - full["found"][name])
        for name in ("sti", "cps", "logprob")
    }
    print(
        f"{way}: {peer_seconds / found['seconds']:.1f} times as fast as the report's way by the clock; STI moves by "
        f"{apart['sti'].mean():.4f} on average, {apart['sti'].max():.3f} at most, the log-probability by "
        f"{apart['logprob'].mean():.2f} and {apart['logprob'].max():.2f}"
        + f", CPS by {apart['cps'].mean():.4f} and {apart['cps'].max():.3f}"
        * way.startswith("masked"),
        flush=True,
    )


def missed_agreement(rows, mine, theirs):
    """Whether the sides score the peer's rows otherwise; BLEU is that of all rows."""
    chosen = places(len(rows), len(theirs["sti"]))
    apart = {
        name: np.abs(np.array(mine[name])[chosen] - theirs[name])
        for name in ("sti", "cps", "logprob")
    }
    bleu = abs(mine["bleu"][0] - peer_bleu(rows))
    same = np.mean(apart["cps"] < 1e-4)
    print(
        f"largest differences: BLEU {bleu:.1e}, STI {apart['sti'].max():.1e}, log-probability "
        f"{apart['logprob'].max():.1e}; "
        f"the same CPS in {same:.0%} of the rows, mean difference {apart['cps'].mean():.4f}"
    )
    # the steps of the paths differ
    return (
        bleu > 1e-9
        or apart["sti"].max() > 1e-4
        or apart["logprob"].max() > 1e-2
        or apart["cps"].mean() > 0.01
    )


def main():
    import torch

    n, few = (
        int(sys.argv[at]) if len(sys.argv) > at else given for at, given in ((1, 1000), (2, 50))
    )
    rows = rows_of(n)
    n = len(rows)
    few = min(few, len(rows))
    tenth = max(len(rows) // 10, 1)
    print(
        f"{n:,} rows with {len(set(rows.source) | set(rows.output)):,} different texts of "
        f"{rows.source.map(str.split).map(len).mean():.0f} words; "
        f"{torch.get_num_threads()} threads",
        flush=True,
    )
    with tempfile.TemporaryDirectory() as folder:
        rows.to_json(path := Path(folder) / "rows.json")
        small, large, peer = (
            in_a_process(side, path, size)
            for side, size in (("ours", tenth), ("ours", n), ("peer", few))
        )
        for way in [*WAYS][1:]:
            compare_way(way, in_a_process(way, path, tenth), small, peer["seconds"] / few * tenth)
    shares = ", ".join(
        f"{name} {seconds * n / few:.0f} s" for name, seconds in peer["parts"].items()
    )
    longer = large["seconds"] / small["seconds"] * 10 * tenth / n
    ratio = peer["seconds"] * n / few / large["seconds"]
    spent = peer["processor"] * n / few / large["processor"]
    growth = large["peak"] - small["peak"]
    table = large["table"] - small["table"]
    print(
        f"the peer's {few:,} rows extrapolated to {n:,}: {peer['seconds'] * n / few:.0f} s ({shares})"
    )
    print(f"{ratio:.1f} times as fast by the clock, {spent:.1f} times by processor time")
    print(
        f"ten times the rows take {longer:.2f} times the seconds; the peak grows by {growth:.0f} MB, the table by "
        f"{table:.1f} MB"
    )
    missed = [
        words
        for words, wrong in {
            "the scores differ": missed_agreement(rows, large["found"], peer["found"]),
            f"less than {RATIO:g} times as fast by the clock": ratio < RATIO,
            "more than ten times the seconds": longer > 11,
            "the peak grows with the rows": growth > table + SPARE,
        }.items()
        if wrong
    ]
    return "missed: " + "; ".join(missed) if missed else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measure(sys.argv[2], sys.argv[3], int(sys.argv[4]))))
    else:
        sys.exit(main())
