"""The neural rewriter that the package ships, and what the rewriters of chapter 14 write.

python nbs/making/neutral_rewriter.py train FOLDER       LoRA adapter for SmolLM2-135M-Instruct, or for another --base; a
sentence a second on one core; --changed 1 trains without the weight of changed tokens, --until ends it at a step
python nbs/making/neutral_rewriter.py card FOLDER LOG     the adapter's README.md, from what the training printed
python nbs/making/neutral_rewriter.py write SYSTEM ...   outputs for the embedded test pairs ->
tsteval/data/rewriter_outputs.jsonl
python nbs/making/neutral_rewriter.py beams                  the same by a beam of three, and how likely it is ->
tsteval/data/rewriter_beams.jsonl
python nbs/making/neutral_rewriter.py measure SYSTEM ... each output's scores by several judges ->
tsteval/data/rewriters.csv; tagger, shuffled and shortened are made for that and not stored
python nbs/making/neutral_rewriter.py held SYSTEM ...    the same for the held-out rows of the WNC sample, and how many
words a system changed -> tsteval/data/rewriters_wnc.csv; neural was scored before words were counted

To replace a shipped adapter, FOLDER is tsteval/data/neutral-smollm2, or, with --base Qwen2.5-Coder-1.5B-Instruct
--epochs 2 --every 50, tsteval/data/neutral-qwen: nine seconds a step of eight sentences on two cores. Training and
judging need the sample of the Wiki Neutrality Corpus, the statements of Hube and Fetahu (TSTEVAL_DATA) and the Brown
corpus (NLTK_DATA). Of the WNC sample the first WNC_PAIRS short rows with split "train" are trained on; its 200 rows with
split "test" are held out, and none of its sentences is shipped.
"""

import argparse
import difflib
import json
import math
import time
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from tsteval.models.roles import LARGER_LANGUAGE_MODEL
from tsteval.tables.pairs import load_pairs

BASE = "SmolLM2-135M-Instruct"
PROMPT = {
    "before": "<|im_start|>user\n",
    "after": "<|im_end|>\n<|im_start|>assistant\n",
    "end": "<|im_end|>",
}
LONGEST = {"own": 48, "wnc": 40}  # tokens of a source or a target; a longer pair is left out
CONTROLS = 0.15  # share of the pairs with equal sides that are kept: most tokens are copied anyway
WNC_PAIRS = 600  # of the WNC sample's training rows, at most, the first that are short enough
CHANGED = 3.0  # what the loss of a token weighs that is new, or stands where something was left out
RANK = 8
ALPHA = 16
DROPOUT = 0.0
FIRST = 12  # layer from which on the adapter changes the model; gradients need go no further down
MODULES = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
# WARM in steps; the shipped run was ended at step 420, when the validation loss rose
EPOCHS = 3
BATCHES = {BASE: 4, LARGER_LANGUAGE_MODEL: 8}  # pairs a step; the larger model computes in bfloat16
RATES = {BASE: 1e-3, LARGER_LANGUAGE_MODEL: 4e-4}  # of learning
WARM = 20
VALIDATION = 48
EVERY = (
    100  # edited pairs of the teaching validation rows that are measured, and after how many steps
)


def pairs_of(split: str, wnc: bool = True) -> pd.DataFrame:
    """The pairs of one split of the teaching sets, and of the WNC sample where it is wanted."""
    own = [load_pairs(name).assign(kind="own") for name in ("npov_pairs", "npov_hard")]
    sets = own + ([load_pairs("wnc_sample").assign(kind="wnc")] if wnc else [])
    pairs = pd.concat(sets, ignore_index=True)
    return pairs[pairs.split == split][["source", "target", "kind"]].reset_index(drop=True)


def changed_places(source: list[int], target: list[int]) -> np.ndarray:
    """For each token of the target: whether it is new, or follows a place where the source went on."""
    new = np.zeros(len(target), dtype=bool)
    for tag, _, _, first, last in difflib.SequenceMatcher(
        None, source, target, autojunk=False
    ).get_opcodes():
        if tag != "equal":
            new[first : max(last, first + 1)] = True
    return new


def encode(pairs: pd.DataFrame, tokenizer) -> list[dict]:
    """Prompt with source, target with its end, and what each token of the target weighs; pairs that are too long left
    out."""
    tokens = dict(
        zip(
            PROMPT.values(), tokenizer(list(PROMPT.values()), add_special_tokens=False)["input_ids"]
        )
    )
    before, after, end = (tokens[PROMPT[part]] for part in ("before", "after", "end"))
    rows = []
    for pair in pairs.itertuples():
        source, target = tokenizer(
            [pair.source, pair.target], add_special_tokens=False, split_special_tokens=True
        )["input_ids"]
        if max(len(source), len(target)) > LONGEST[pair.kind]:
            continue
        new = changed_places(source + end, target + end)
        rows.append({"prompt": before + source + after, "output": target + end, "new": new})
    return rows


def losses(model, rows: list[dict], changed: float = CHANGED):
    """Loss of each output token of a batch, its weight, and whether it is new."""
    import torch

    longest = max(len(row["prompt"]) + len(row["output"]) for row in rows) - 1
    ids = torch.zeros(len(rows), longest, dtype=torch.long)
    places = []
    wanted = []
    new = []
    for number, row in enumerate(rows):
        whole = row["prompt"] + row["output"]
        ids[number, : len(whole) - 1] = torch.tensor(whole[:-1])
        first = len(row["prompt"]) - 1
        places += [(number, first + step) for step in range(len(row["output"]))]
        wanted += row["output"]
        new += row["new"].tolist()
    inner = model.get_base_model()
    hidden = inner.model(
        input_ids=ids, use_cache=False
    ).last_hidden_state  # padding is where no output token looks
    at, beside = torch.tensor(places).T
    costs = torch.nn.functional.cross_entropy(
        inner.lm_head(hidden[at, beside]).float(), torch.tensor(wanted), reduction="none"
    )
    new = torch.tensor(new)
    return costs, torch.where(new, changed, 1.0), new


def batches(rows: list[dict], random, size: int) -> list[list[dict]]:
    lengths = np.array([len(row["prompt"]) + len(row["output"]) for row in rows]) + random.normal(
        0, 6, len(rows)
    )
    order = np.argsort(lengths, kind="stable")
    cut = [
        [rows[row] for row in order[first : first + size]] for first in range(0, len(order), size)
    ]
    return [cut[place] for place in random.permutation(len(cut))]


def measure(model, rows: list[dict], changed: float = CHANGED) -> dict[str, float]:
    import torch

    model.eval()
    with torch.no_grad():
        parts = [
            losses(model, rows[first : first + 4], changed) for first in range(0, len(rows), 4)
        ]
    model.train()
    costs, weights, new = (torch.cat(part) for part in zip(*parts))
    return {
        "loss": float((costs * weights).sum() / weights.sum()),
        "plain": float(costs.mean()),
        "new": float(costs[new].mean()),
        "copied": float(costs[~new].mean()),
    }


def save(model, folder: Path) -> None:
    """The adapter with 16-bit numbers, its prompt, and nothing of this machine."""
    import torch
    from peft import get_peft_model_state_dict
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    weights = {
        name: weight.detach().to(torch.float16).contiguous()
        for name, weight in get_peft_model_state_dict(model).items()
    }
    save_file(weights, folder / "adapter_model.safetensors", metadata={"format": "pt"})
    model.peft_config["default"].inference_mode = True
    model.peft_config["default"].save_pretrained(folder)
    model.peft_config["default"].inference_mode = False
    (folder / "rewriter.json").write_text(json.dumps(PROMPT, indent=1) + "\n", encoding="utf-8")


def train(
    folder: Path,
    minutes: float,
    epochs: int,
    changed: float = CHANGED,
    until: float = math.inf,
    name: str = BASE,
    every: int = EVERY,
) -> None:
    """Train; the checkpoint with the lowest validation loss stays in the folder."""
    import torch
    from peft import LoraConfig, TaskType, get_peft_model

    from tsteval.models.causal_lm import CausalLM

    torch.manual_seed(0)
    random = np.random.default_rng(0)
    start = time.monotonic()
    dtype = "float32" if name == BASE else "bfloat16"
    base = CausalLM.load(name, device="cpu", dtype=dtype)
    base.model.set_attn_implementation("eager")  # the other's way back is slow in bfloat16 on a CPU
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = get_peft_model(
            base.model,
            LoraConfig(
                task_type=TaskType.CAUSAL_LM,
                r=RANK,
                lora_alpha=ALPHA,
                lora_dropout=DROPOUT,
                target_modules=MODULES,
                layers_to_transform=[*range(FIRST, base.model.config.num_hidden_layers)],
            ),
        )
    model.peft_config["default"].base_model_name_or_path = name
    pairs = pairs_of("train")
    equal = pairs.source == pairs.target
    pairs = pairs[~equal | (random.random(len(pairs)) < CONTROLS)]
    own, wnc = (encode(pairs[pairs.kind == kind], base.tokenizer) for kind in ("own", "wnc"))
    rows = own + wnc[:WNC_PAIRS]
    checked = encode(
        pairs_of("validation", wnc=False)
        .query("source != target")
        .sample(frac=1, random_state=0)
        .head(VALIDATION),
        base.tokenizer,
    )
    checked.sort(key=lambda row: len(row["prompt"]))
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    steps = epochs * -(-len(rows) // BATCHES[name])
    step = 0
    best = math.inf

    def say(**facts):
        return print(
            json.dumps(
                {"minutes": round((time.monotonic() - start) / 60, 1), "step": step, **facts}
            ),
            flush=True,
        )

    say(
        pairs=len(rows),
        left_out=len(pairs) - len(rows),
        validation=len(checked),
        steps=steps,
        weights=sum(w.numel() for w in trained),
    )
    optimizer = torch.optim.AdamW(trained, lr=RATES[name], weight_decay=0.0)
    seen = []
    for batch in (batch for _ in range(epochs) for batch in batches(rows, random, BATCHES[name])):
        # a run that is short of time cools down in time
        done = max((step + 1) / steps, (time.monotonic() - start) / 60 / minutes)
        rate = (
            RATES[name] * min(1, (step + 1) / WARM) * 0.5 * (1 + math.cos(math.pi * min(done, 1)))
        )
        for group in optimizer.param_groups:
            group["lr"] = rate
        costs, weights, _ = losses(model, batch, changed)
        loss = (costs * weights).sum() / weights.sum()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        step += 1
        seen.append(loss.item())
        if step % 5 == 0:
            say(train=round(float(np.mean(seen[-5:])), 4), rate=rate)
        if step % every == 0 or step == steps or done >= 1:
            found = measure(model, checked, changed)
            say(**found)
            if found["loss"] < best:
                best = found["loss"]
                save(model, folder)
        if done >= 1 or step >= until:
            break
    say(best=best)


CARD = """# {title}

Rewrites a subjective sentence in the sense of Wikipedia's neutral point of view. A LoRA adapter for {base} (rank
{rank}, all weight matrices of attention and MLP in layers {first} to {last}, 16-bit numbers); made by
`nbs/making/neutral_rewriter.py`, loaded by `tsteval.rewriting.Rewriter.load("{title}")`.

## Training data

{seen} sentences were seen, {passes:.1f} passes over {pairs} pairs, {wnc} of them of the Wiki Neutrality Corpus: the
training rows of the package's own two sets of pairs, of
their controls (equal sides) one in seven, and the training rows of up to {longest} tokens of the 1,000-pair sample of
the Wiki Neutrality
Corpus (Pryzant et al. 2020; MIT, its text CC BY-SA; not included here). Held out: the test rows of all three.

The loss is that of the output's tokens. A token that is new, or stands where something was left out, counts {changed:g}
times.

## Limits

{steps} of {planned} planned steps of {batch} sentences: the next checkpoint was worse on the validation pairs, and the
run was ended there.
English only, one sentence at a time, encyclopedic prose. It may invent, and it may leave out what matters. What it does
on the test
pairs, beside simpler rewriters and the human version, stands in chapter 14 of the course. The base is under the Apache
licence 2.0, and so
is the adapter, as the package is.

## Results

On {validation} edited validation pairs, mean negative log-likelihood of an output token, for each checkpoint that was
measured; the
one with the lowest weighted value (a new token, or one after a gap, counts {changed:g} times) is shipped.

{table}

## Checksums

{checksums}
"""


def write_card(folder: Path, log: Path, name: str = BASE) -> None:
    """Write the adapter's README.md."""
    from tsteval.core.files import file_sha256
    from tsteval.models.causal_lm import CausalLM
    from tsteval.training.cards import markdown_table

    rows = [
        json.loads(line)
        for line in log.read_text(encoding="utf-8").splitlines()
        if line.startswith("{")
    ]
    measured = [row for row in rows if "new" in row]
    best = min(measured, key=lambda row: row["loss"])
    base = CausalLM.load(name, device="cpu", dtype="bfloat16")
    table = markdown_table(
        [
            {
                "steps": row["step"],
                "all tokens": row["plain"],
                "new or after a gap": row["new"],
                "copied": row["copied"],
                "weighted": row["loss"],
            }
            for row in measured
        ]
    )
    learned = pairs_of("train").query("kind == 'wnc' and source != target")
    wnc = len(encode(learned, base.tokenizer)[:WNC_PAIRS])
    files = ("adapter_model.safetensors", "adapter_config.json", "rewriter.json")
    (folder / "README.md").write_text(
        CARD.format(
            title=folder.name,
            base=name,
            rank=RANK,
            first=FIRST,
            last=base.model.config.num_hidden_layers - 1,
            seen=best["step"] * BATCHES[name],
            pairs=rows[0]["pairs"],
            passes=best["step"] * BATCHES[name] / rows[0]["pairs"],
            longest=LONGEST["wnc"],
            wnc=wnc,
            changed=CHANGED,
            steps=best["step"],
            batch=BATCHES[name],
            planned=rows[0]["steps"],
            validation=rows[0]["validation"],
            table=table,
            checksums="\n".join(f"- {file}: {file_sha256(folder / file)}" for file in files),
        ),
        encoding="utf-8",
    )


OUTPUTS = Path("tsteval/data/rewriter_outputs.jsonl")
ORDER = ["copy", "delete", "lexicon", "fill-in", "neural", "reranked", "human"]
CHAPTER = Path("nbs/14_rewriting.ipynb")
CUTS = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3)


def edited(split: str, names=("npov_pairs",)) -> pd.DataFrame:
    """Pairs of the teaching sets with two different sides."""
    pairs = pd.concat([load_pairs(name) for name in names], ignore_index=True)
    return pairs[(pairs.split == split) & (pairs.source != pairs.target)].reset_index(drop=True)


def found_words(rewriter, pairs: pd.DataFrame) -> float:
    """F1 of the words that a lexicon changes, against those that people changed."""
    from tsteval.attribution import edited_words

    own = np.concatenate(
        [rewriter.changed(found) for found in rewriter.lexicon.attribute(pairs.source)]
    )
    theirs = np.concatenate([edited_words(*pair) for pair in zip(pairs.source, pairs.target)])
    return 2 * (own & theirs).sum() / max(own.sum() + theirs.sum(), 1)


def lexicon_rewriter():
    """Learned from the training rows of both teaching sets, its cut chosen on their validation rows."""
    from tsteval.rewriting import LexiconRewriter

    learned = [
        LexiconRewriter.learn(edited("train", ("npov_pairs", "npov_hard")), cut) for cut in CUTS
    ]
    scores = [
        found_words(one, edited("validation", ("npov_pairs", "npov_hard"))) for one in learned
    ]
    print(
        "lexicon: F1 of changed words on validation",
        dict(zip(CUTS, np.round(scores, 3))),
        flush=True,
    )
    return learned[int(np.argmax(scores))]


def systems() -> dict:
    """How to make each system of chapter 14; *human* is no system."""
    from tsteval.rewriting import Copy, Delete, FillIn, Rerank, Rewriter

    return {
        "copy": Copy,
        "delete": Delete,
        "lexicon": lexicon_rewriter,
        "fill-in": FillIn,
        "neural": Rewriter.load,
        "reranked": lambda: Rerank(Rewriter.load()),
    }


def write(names: list[str]) -> None:
    """Let systems rewrite the embedded test pairs, and put what they write into the file beside what is there."""
    pairs = edited("test")
    for name in names:
        outputs = (
            list(pairs.target)
            if name == "human"
            else systems()[name]().rewrite(pairs.source, progress=False)
        )
        known = (
            pd.read_json(OUTPUTS, lines=True, dtype=False)
            if OUTPUTS.is_file()
            else pd.DataFrame(columns=["system"])
        )
        new = pd.DataFrame(
            {"source": pairs.source, "system": name, "output": outputs, "target": pairs.target}
        )
        known = pd.concat([known[known.system != name], new], ignore_index=True)
        known = known.sort_values(
            "system", key=lambda column: column.map(ORDER.index), kind="stable", ignore_index=True
        )
        OUTPUTS.write_text(
            "".join(
                json.dumps(row, ensure_ascii=False) + "\n"
                for row in known[["source", "system", "output", "target"]].to_dict("records")
            ),
            encoding="utf-8",
        )
        print(name, "written", flush=True)


BEAMS = Path("tsteval/data/rewriter_beams.jsonl")


def write_beams() -> None:
    """A row a test pair: the most likely of three beams, its log-probability and that of the greedy output."""
    from tsteval.rewriting import Rewriter, load_rewrites

    greedy = load_rewrites().query("system == 'neural'")
    rewriter = Rewriter.load()
    found = pd.DataFrame({"beam": rewriter.rewrite(greedy.source, method="beam", beams=3)})
    for name, outputs in (("greedy", greedy.output), ("beam", found.beam)):
        found[f"{name}_logprob"] = [
            round(float(row.logprobs.sum()), 4)
            for row in rewriter.output_scores(list(greedy.source), list(outputs))
        ]
    BEAMS.write_text(
        "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in found.to_dict("records")),
        encoding="utf-8",
    )


SCORES = Path("tsteval/data/rewriters.csv")
HELD_OUT = Path("tsteval/data/rewriters_wnc.csv")
BROWN_SENTENCES = 12_000


def judges():
    """Functions from sources and outputs to scores; the first two and the last two use no weights and no text that made
    *neural*.

    sti_statements: change of the probability of neutral, by a head on the frozen encoder, fitted to the statements of
    Hube and Fetahu sti_words: change of the log-odds' probability of neutral, by the words of the same statements
    sti_embedded: the same by the embedded classifier, which finds the words for delete and fill-in, and chooses for
    reranked cps: content preservation, style words by the lexicon of the training pairs, meaning by the embedded
    encoder chrf: chrF of the output against its source
    fluency: mean log-probability of a token, by a trigram model of the Brown corpus
    """
    from nltk.corpus import brown
    from scipy.special import expit

    from tsteval.attribution import style_lexicon
    from tsteval.cps import content_preservation
    from tsteval.ngram import NgramLM
    from tsteval.overlap import chrf
    from tsteval.style import StyleClassifier
    from tsteval.tables.pairs import load_wiki_npov
    from tsteval.text import tokenize
    from tsteval.training.loop import train_on_sentences

    wiki = load_wiki_npov()
    biased, neutral = (wiki.text[wiki.label == label].tolist() for label in (0, 1))
    count = min(len(biased), len(neutral))
    words = style_lexicon(pd.DataFrame({"source": biased[:count], "target": neutral[:count]}))
    statements = wiki.assign(
        weight=np.where(wiki.label == 0, len(wiki) / len(biased), len(wiki) / len(neutral)) / 2
    )
    head = train_on_sentences(
        statements, ("subjective", "neutral"), method="head", pooling="layers"
    )
    print(
        f"judge of statements: {len(biased)} subjective, {len(neutral)} neutral; judge of words: {count} of each",
        flush=True,
    )
    classifier = StyleClassifier.load()
    trigrams = NgramLM(order=3, smoothing="kneser_ney", discount=0.75, unk_cutoff=2).fit(
        [list(sentence) for sentence in brown.sents()[:BROWN_SENTENCES]]
    )

    def by_words(texts):
        return np.array([expit(-found.value) for found in words.attribute(texts)])

    def change(judge, sources, outputs):
        return (judge.predict_proba(outputs) - judge.predict_proba(sources))[:, 1]

    def mean(texts):
        return np.array(
            [row.mean() for row in trigrams.logprobs([tokenize(text) or ["."] for text in texts])]
        )

    return {
        "sti_statements": lambda sources, outputs: change(head, sources, outputs),
        "sti_words": lambda sources, outputs: by_words(outputs) - by_words(sources),
        "sti_embedded": lambda sources, outputs: change(classifier, sources, outputs),
        "cps": lambda sources, outputs: content_preservation(
            sources, outputs, attributions="lexicon"
        ).cps.to_numpy(),
        "chrf": lambda sources, outputs: chrf(outputs, sources),
        "fluency": lambda sources, outputs: mean(outputs),
    }


def scored(rows: pd.DataFrame) -> pd.DataFrame:
    """Every judge's score of every output; the table holds no text."""
    scores = {
        name: judge(rows.source.tolist(), rows.output.tolist()) for name, judge in judges().items()
    }
    return pd.DataFrame({"system": rows.system, "row": rows.groupby("system").cumcount(), **scores})


@cache
def tagger():
    """The tagger of chapter 14, trained by the chapter's own cells, so that it is no other than theirs."""
    import nbformat

    wanted, names = (
        (
            "#| hide\n",
            "WordReader.load()",
            "taggers, curves",
            "def touched",
            "def show",
            "class Tagger",
        ),
        {},
    )
    for cell in nbformat.read(CHAPTER, as_version=4).cells:
        if cell.cell_type == "code" and any(part in cell.source for part in wanted):
            exec(compile(cell.source, str(CHAPTER), "exec"), names)  # our own file
    return names["Tagger"]()


def shuffled(sources: list[str]) -> list[str]:
    """The words of each source in another order: what no judge of fluency should let pass."""
    draws = np.random.default_rng(0)
    return [" ".join(draws.permutation(text.split())) for text in sources]


def shortened(sources: list[str]) -> list[str]:
    """Each source without as many words as the tagger takes out, drawn by lot: is shorter more neutral?"""
    from tsteval.attribution import WORD, edited_words
    from tsteval.rewriting import tidied

    draws = np.random.default_rng(0)
    made = []
    for text, short in zip(sources, tagger().rewrite(sources)):
        words = list(WORD.finditer(text))
        out = draws.permutation(len(words))[: edited_words(text, short).sum()]
        left = text
        for match in (words[place] for place in sorted(out)[::-1]):
            left = left[: match.start()] + left[match.end() :]
        made.append(tidied(left) if len(out) else text)
    return made


FOR_SCORES = {
    "tagger": lambda sources: tagger().rewrite(sources),
    "shuffled": shuffled,
    "shortened": shortened,
}


def keep(scores: pd.DataFrame, path: Path) -> None:
    place = ["copy", *FOR_SCORES, *ORDER[1:]].index

    def order(column):
        return column.map(place) if column.name == "system" else column

    scores = scores.sort_values(["system", "row"], key=order)
    scores.to_csv(path, index=False, float_format="%.4f")
    print(
        scores.groupby("system", sort=False).mean().drop(columns="row").round(3).to_string(),
        flush=True,
    )


def measure_systems(names: list[str]) -> None:
    """Score the outputs of some systems, and put the scores into the file beside what is there."""
    rows = pd.read_json(OUTPUTS, lines=True, dtype=False)
    copies = rows[rows.system == "copy"]
    extra = [
        copies.assign(system=name, output=make(copies.source.tolist()))
        for name, make in FOR_SCORES.items()
        if name in names
    ]
    new = scored(pd.concat([rows[rows.system.isin(names)], *extra], ignore_index=True))
    known = pd.read_csv(SCORES) if set(names) < {*ORDER, *FOR_SCORES} else new[:0]
    keep(pd.concat([known[~known.system.isin(names)], new], ignore_index=True), SCORES)


def word_counts(rows: pd.DataFrame) -> pd.DataFrame:
    """Of each source its words, those that the system changed, that the editor changed, and that both did."""
    from tsteval.attribution import edited_words

    marks = [
        (edited_words(row.source, row.output), edited_words(row.source, row.target))
        for row in rows.itertuples()
    ]
    return pd.DataFrame(
        [(len(own), own.sum(), theirs.sum(), (own & theirs).sum()) for own, theirs in marks],
        columns=["words", "changed", "edited", "both"],
    )


def measure_held_out(names: list[str]) -> None:
    """Score what systems write for the test rows of the WNC sample, and put that beside what is there; the outputs are
    not kept, since the sample may not be."""
    pairs = load_pairs("wnc_sample").query("split == 'test' and source != target")
    sources = pairs.source.tolist()
    rows = []
    for name in names:
        outputs = (
            pairs.target
            if name == "human"
            else FOR_SCORES[name](sources)
            if name in FOR_SCORES
            else systems()[name]().rewrite(sources, progress=False)
        )
        rows.append(
            pd.DataFrame(
                {
                    "system": name,
                    "source": sources,
                    "target": pairs.target.tolist(),
                    "output": list(outputs),
                }
            )
        )
    rows = pd.concat(rows, ignore_index=True)
    copied = (rows.source == rows.output).astype(int)
    new = pd.concat([scored(rows).assign(copied=copied), word_counts(rows)], axis=1)
    known = pd.read_csv(HELD_OUT) if HELD_OUT.is_file() else new[:0]
    table = pd.concat([known[~known.system.isin(names)], new], ignore_index=True)
    keep(table.astype(dict.fromkeys(["words", "changed", "edited", "both"], "Int64")), HELD_OUT)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=["train", "card", "write", "beams", "measure", "held"])
    parser.add_argument("what", nargs="*")
    parser.add_argument("--minutes", type=float, default=math.inf)
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument(
        "--changed", type=float, default=CHANGED, help="what a changed token weighs"
    )
    parser.add_argument("--until", type=float, default=math.inf, help="step at which to end early")
    parser.add_argument("--every", type=int, default=EVERY, help="steps between two measurements")
    parser.add_argument("--base", choices=RATES, default=BASE, help="the model that is trained")
    given = parser.parse_args()
    if given.command == "train":
        how = given.minutes, given.epochs, given.changed, given.until, given.base, given.every
        train(Path(given.what[0]), *how)
    elif given.command == "card":
        write_card(*map(Path, given.what), given.base)
    elif given.command == "write":
        write(given.what or ORDER)
    elif given.command == "beams":
        write_beams()
    elif given.command == "measure":
        measure_systems(given.what or [*ORDER, *FOR_SCORES])
    else:
        measure_held_out(
            given.what or ["copy", "delete", "lexicon", "neural", "tagger", "shortened", "human"]
        )
