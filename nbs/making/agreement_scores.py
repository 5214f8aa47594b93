"""Every score of every rated output of the four studies: tsteval/data/agreement_scores.csv.gz, and which of them were
made with which criterion in mind: tsteval/data/agreement_criteria.json.

    python nbs/making/agreement_scores.py FOLDER [step ...]    # under twenty minutes on two cores

FOLDER keeps what was computed, step by step, and a run that was stopped goes on from there; empty it when a model
changes. With names of steps (lengths, style, naturalness, content, aware) only these are made, and the table is not
written. Needs the corpora mir2019, lai2022, style_gap and msr_compression (TSTEVAL_DATA) and NLTK's brown (NLTK_DATA).
The table holds numbers only, four significant digits, a row an output: `data_set` and `item` as
`tsteval.tables.ratings.load_ratings` counts them, then the scores. Content is compared with the source, as the raters
did. A score is NaN where it was not computed: no classifier knows the styles of style_gap and the compressions, and the
style-aware score is left to the two smaller studies.
"""

import functools
import gzip
import io
import json
import re
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
from nltk.corpus import brown

from tsteval.alignment import bert_score, word_movers_distance
from tsteval.ameliorations import amelioration_1, good_bad_thresholds, log_amelioration_2
from tsteval.attribution import StyleLexicon, style_lexicon
from tsteval.bleu import sentence_bleu
from tsteval.content import content_evidence, facts_kept
from tsteval.core.assets import packaged_path
from tsteval.core.files import write_whole
from tsteval.cps import SentenceEncoder, complete_attributions, cosine, mask_style
from tsteval.fluency import UnigramModel, scores_from_logprobs
from tsteval.models.causal_lm import CausalLM
from tsteval.ngram import NgramLM
from tsteval.overlap import chrf, meteor
from tsteval.rouge import rouge
from tsteval.sti import intensity_table
from tsteval.style import StyleClassifier, load_pairs
from tsteval.tables.mir2019 import load_mir2019, pinned_bytes, with_unassigned
from tsteval.tables.ratings import load_ratings
from tsteval.text import tokenize

STUDIES = ("mir2019", "lai2022", "style_gap", "msr_compression")
CLASSIFIERS = {
    "mir2019": "sentiment-minilm",
    "lai2022": "formality-minilm",
}  # who knows the style that was asked for
# the style-aware score takes long: of mir2019 content_agreement.csv has what it says, of the compressions nothing
AWARE = ("lai2022", "style_gap")
BLOCK = 256  # texts after which the language model's work is kept


def outputs_of(study: str) -> pd.DataFrame:
    """One row an output."""
    return load_ratings(study).drop_duplicates("item").reset_index(drop=True)


# ---- style


def style_columns(
    probabilities: np.ndarray, target: np.ndarray, name: str
) -> dict[str, np.ndarray]:
    """The scores of style, from (2N, C) probabilities of sources and outputs."""
    table = intensity_table(probabilities[: len(target)], probabilities[len(target) :], target)
    return {
        f"sti{name}": table.sti,
        f"sti_size{name}": table.sti.abs(),
        f"sti_normalized{name}": table.normalized,
        f"target_probability{name}": table.after,
    }


def style(study: str, table: pd.DataFrame, folder: Path) -> pd.DataFrame:
    if study not in CLASSIFIERS:
        return pd.DataFrame(index=table.index)
    classifier = StyleClassifier.load(CLASSIFIERS[study])
    target = table.target_style.map(classifier.labels.index).to_numpy(int)
    columns = style_columns(classifier.predict_proba([*table.source, *table.output]), target, "")
    if study == "mir2019":
        given = load_mir2019().iloc[table.item]
        for name in ("fasttext", "textcnn"):
            sides = [
                given[[f"{name}_{side}_0", f"{name}_{side}_1"]].to_numpy()
                for side in ("source", "output")
            ]
            columns |= style_columns(
                with_unassigned(np.vstack(sides)), given.target.to_numpy(int), f"_{name}"
            )
    return pd.DataFrame(columns)


# ---- content


def find_style(study: str, texts: list[str]) -> dict[str, dict]:
    """Ways to find the words that carry the style: finder -> text -> attribution."""
    if study == "msr_compression":
        return {}  # which was not rewritten into a style
    found = {
        "lexicon": complete_attributions(texts, None, lexicon_for(study)),
        "gradients": complete_attributions(
            texts, StyleClassifier.load(CLASSIFIERS.get(study, "subjectivity-minilm"))
        ),
    }
    if study == "lai2022":
        found["neutrality"] = complete_attributions(
            texts, StyleClassifier.load("subjectivity-minilm")
        )
    return found


def lexicon_for(study: str) -> StyleLexicon:
    """Words of a style, learned on other data: of sentiment the authors', of formality from the embedded pairs, else of
    neutrality."""
    if study == "mir2019":
        words = json.loads(pinned_bytes("mir2019", "style_lexicon/style_words_and_weights.json"))[
            "binary sentiment"
        ]
        return StyleLexicon(dict(words), 0.0)
    if study == "lai2022":
        pairs = pd.read_json(packaged_path("formality_pairs.jsonl"), lines=True).rename(
            columns={"formal": "source", "informal": "target"}
        )
        return style_lexicon(pairs, size=100)
    return style_lexicon(load_pairs().query("split == 'train'"), size=100)


MASKS = {  # name -> finder, threshold, strategy, unit, changes
    "pad": ("gradients", 0.3, "pad", "token", {}),
    "remove": ("gradients", 0.3, "remove", "token", {}),
    "pad_words": ("gradients", 0.3, "pad", "word", {}),
    "remove_words": ("gradients", 0.3, "remove", "word", {}),
    **{f"pad_{round(100 * t)}": ("gradients", t, "pad", "token", {}) for t in (0.1, 0.5, 0.7)},
    **{
        f"remove_words_{round(100 * t)}": ("gradients", t, "remove", "word", {})
        for t in (0.1, 0.5, 0.7)
    },
    **{
        f"remove_words_{change}": ("gradients", 0.3, "remove", "word", {change: True})
        for change in ("positive_only", "skip_neutral", "by_length")
    },
    "pad_neutrality": ("neutrality", 0.3, "pad", "token", {}),
    "remove_words_neutrality": ("neutrality", 0.3, "remove", "word", {}),
    "pad_lexicon": ("lexicon", 1.0, "pad", "word", {}),
    "remove_lexicon": ("lexicon", 1.0, "remove", "word", {}),
}
# masks under which every measure is taken, not the cosine alone
FULLY = ("", "remove_words", "pad_lexicon", "remove_lexicon")


def measured(source: list[str], output: list[str], name: str) -> dict[str, np.ndarray]:
    """Every measure of content but the cosine, output against source."""
    found = {
        "bleu": [sentence_bleu(*pair).score for pair in zip(output, source)],
        "rouge_l": rouge(output, source, ["rougeL"]).rougeL,
        "chrf": chrf(output, source),
        "meteor": meteor(output, source),
        "wmd": -word_movers_distance(output, source),
        "bert_score": bert_score(output, source).f1,
    }
    return {f"{score}{name}": np.asarray(values, dtype=float) for score, values in found.items()}


def content(study: str, table: pd.DataFrame, folder: Path) -> pd.DataFrame:
    source = list(table.source)
    output = list(table.output)
    encoder = SentenceEncoder.load()
    found = find_style(study, list(dict.fromkeys([*source, *output])))
    columns = {"cosine": cosine(*np.split(encoder.encode([*source, *output]), 2))} | measured(
        source, output, ""
    )
    for name, (finder, threshold, strategy, unit, changes) in MASKS.items():
        if finder not in found:
            continue
        masked = {
            text: mask_style(one, threshold, strategy, unit, **changes)
            for text, one in found[finder].items()
        }
        sides = [[masked[text] for text in side] for side in (source, output)]
        columns[f"cps_{name}"] = cosine(*np.split(encoder.encode([*sides[0], *sides[1]]), 2))
        if name in FULLY:
            columns |= measured(*[[text or "." for text in side] for side in sides], f"_{name}")
    return pd.DataFrame(columns)


def aware(study: str, table: pd.DataFrame, folder: Path) -> pd.DataFrame:
    """The style-aware score and its evidence, in blocks that are kept."""
    if study not in AWARE:
        return pd.DataFrame(index=table.index)
    parts = []
    for start in range(0, len(table), BLOCK):
        path = folder / f"{study}-aware-{start}.csv"
        block = table.iloc[start : start + BLOCK]
        if not path.exists():
            evidence = content_evidence(block.source, block.output, block.target_style)[0]
            write_whole(path, evidence.to_csv(index=False))
        parts.append(pd.read_csv(path))
    evidence = pd.concat(parts, ignore_index=True)
    kept = facts_kept(evidence)
    return pd.DataFrame(
        {"style_aware": np.sqrt(evidence.cosine.clip(0, 1) * kept), "facts_kept": kept}
        | {
            f"evidence_{name}": evidence[name]
            for name in ("support", "source_support", "regret", "classifier")
        }
    )


# ---- naturalness


def as_written(text: str) -> str:
    """Tokenised lower-case text as a person would write it: no spaces before marks, contractions joined, a capital
    first, I."""
    text = re.sub(r" (n't|'[a-z]+)\b", r"\1", text)
    text = re.sub(r" ([.,!?;:%)])", r"\1", text).replace("( ", "(").replace("$ ", "$")
    text = re.sub(r"\bi\b", "I", text)
    return text[:1].upper() + text[1:]


class TokenTable:
    """Log-probabilities of the tokens of many texts under the language model, under the unigram model, and of the
    likeliest token."""

    def __init__(self, folder: Path):
        self.folder = folder / "tokens"
        self.rows = {}
        self.folder.mkdir(exist_ok=True)
        for path in sorted(self.folder.glob("*.json")):
            self.rows |= json.loads(path.read_text(encoding="utf-8"))

    def fill(self, texts: list[str]) -> None:
        missing = sorted({text for text in texts if text not in self.rows}, key=len)
        if not missing:
            return
        lm = CausalLM.load()
        unigram = UnigramModel.from_web_counts(lm)
        for start in range(0, len(missing), BLOCK):
            block = missing[start : start + BLOCK]
            scored = lm.token_logprobs(block, likeliest=True)
            found = {
                text: {
                    "model": scores.logprobs.round(4).tolist(),
                    "unigram": unigram.score(scores.tokens).round(4).tolist(),
                    "likeliest": scores.likeliest.round(4).tolist(),
                    "begins": [text[a : a + 1] == " " or a == 0 for a, _ in scores.spans],
                }
                for text, scores in zip(block, scored)
            }
            write_whole(self.folder / f"{len(self.rows):06}.json", json.dumps(found))
            self.rows |= found
            print("tokens of", len(self.rows), "texts", flush=True)

    def columns(self, texts: list[str], name: str = "") -> dict[str, np.ndarray]:
        """The scores of naturalness that follow from the tokens of each text."""
        rows = [
            {key: np.array(values) for key, values in self.rows[text].items()} for text in texts
        ]
        sums = [np.array([row[key].sum() for row in rows]) for key in ("model", "unigram")]
        frame = scores_from_logprobs(*sums, [len(row["model"]) for row in rows]).rename(
            columns={"slor": "wpslor"}
        )
        return {f"{column}{name}": frame[column].to_numpy() for column in frame} | {
            f"unigram_logprob{name}": sums[1],
            **{f"{column}{name}": values for column, values in worst_spots(rows).items()},
        }


DOUBTS = {
    "": 0.01,
    "_10": 0.1,
    "_3": 0.03,
    "_03": 0.003,
    "_01": 0.001,
}  # name -> share of tokens that are an accident
SURPRISES = (4, 6, 8)  # nats


def worst_spots(rows: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Treatments of length that look at where a text is worst, or count its bad spots."""

    def each(value):
        return np.array([value(row["model"], row["unigram"], row["likeliest"]) for row in rows])

    return {
        "lowest_token": each(lambda model, *_: model.min()),
        "lowest_gain": each(lambda model, unigram, _: (model - unigram).min()),
        "lowest_regret": each(lambda model, _, best: (model - best).min()),
        "regret": each(lambda model, _, best: (model - best).sum()),
        "lowest_quarter": each(lambda model, *_: np.sort(model)[: -(-len(model) // 4)].mean()),
        **{
            f"beyond_{nats}": each(lambda model, *_, nats=nats: np.minimum(model + nats, 0).sum())
            for nats in SURPRISES
        },
        **{
            f"no_accident{name}": each(
                lambda model, unigram, _, doubt=doubt: no_accident(model, unigram, doubt).sum()
            )
            for name, doubt in DOUBTS.items()
        },
    }


def no_accident(model: np.ndarray, unigram: np.ndarray, doubt: float) -> np.ndarray:
    """(T,) log-probability that a token was written by the language, and not drawn by accident from all tokens."""
    return -np.logaddexp(0, np.log(doubt / (1 - doubt)) + unigram - model)


def expected(tokens: TokenTable) -> tuple[np.ndarray, float]:
    """Of sentences of Brown: the line of log-probability against tokens, and the spread around it for one token."""
    texts = [
        as_written(" ".join(sentence).replace("``", '"').replace("''", '"'))
        for sentence in list(brown.sents())[: 50 * SAMPLE : 50]
    ]
    tokens.fill(texts)
    n, logprob = (
        np.array([value(tokens.rows[text]["model"]) for text in texts]) for value in (len, sum)
    )
    line = np.polyfit(n, logprob, 1, w=1 / np.sqrt(n))
    return line, float(np.sqrt((((logprob - np.polyval(line, n)) ** 2) / n).mean()))


SAMPLE = 400  # sentences of Brown


def expectations(
    texts: list[str],
    sources: list[str],
    tokens: TokenTable,
    line: np.ndarray,
    spread: float,
    name: str = "",
) -> dict[str, np.ndarray]:
    """Log-probability against what human text of that length gets: Brown, or the output's own source."""
    (n, logprob), (given, alone) = (
        np.array(
            [[len(tokens.rows[text]["model"]), sum(tokens.rows[text]["model"])] for text in side]
        ).T
        for side in (texts, sources)
    )
    return {
        f"over_brown{name}": logprob - np.polyval(line, n),
        f"z_brown{name}": (logprob - np.polyval(line, n)) / (spread * np.sqrt(n)),
        f"over_source{name}": logprob - alone / given * n,
        f"source_logprob{name}": alone,
        f"source_tokens{name}": given,
    }


@functools.cache
def brown_model() -> tuple[NgramLM, tuple[float, float], UnigramModel]:
    """Trigrams of Brown, in lower case."""
    sentences = [[word.lower() for word in sentence] for sentence in brown.sents()]
    lm = NgramLM(order=3, discount=0.1, unk_cutoff=2).fit(
        sentences
    )  # a word met once stands for those never met
    return lm, good_bad_thresholds(lm), UnigramModel.from_sentences(sentences, name="brown")


def brown_columns(
    texts: list[str], lm: NgramLM, limits: tuple[float, float], unigram: UnigramModel
) -> dict[str, np.ndarray]:
    rows = [tokenize(text.lower()) for text in texts]
    logprobs = [found[: len(row)] for found, row in zip(lm.logprobs(rows), rows)]
    known = set(lm.words)
    alone = [unigram.score([word if word in known else "" for word in row]).sum() for row in rows]
    frame = scores_from_logprobs([row.sum() for row in logprobs], alone, [len(row) for row in rows])
    return {f"{column}_brown": frame[column].to_numpy() for column in frame} | {
        "amelioration_1": amelioration_1(lm, rows),
        "amelioration_2": log_amelioration_2(lm, rows, good=limits[0], bad=limits[1]),
        "lowest_token_brown": np.array([row.min() for row in logprobs]),
    }


def naturalness(study: str, table: pd.DataFrame, folder: Path) -> pd.DataFrame:
    tokens = TokenTable(folder)
    columns = brown_columns(list(table.output), *brown_model())
    human = expected(tokens)
    if study == "msr_compression":
        return pd.DataFrame(columns | stored_sums(table, *human))
    for name, form in (
        {"": lambda text: text, "_written": as_written}.items()
        if study == "mir2019"
        else [("", lambda text: text)]
    ):
        outputs, sources = ([form(text) for text in side] for side in (table.output, table.source))
        tokens.fill([*outputs, *sources])
        columns |= tokens.columns(outputs, name) | expectations(
            outputs, sources, tokens, *human, name
        )
    return pd.DataFrame(columns)


def stored_sums(table: pd.DataFrame, line: np.ndarray, spread: float) -> dict[str, np.ndarray]:
    """What the sums that chapter 6 keeps say of the compressions; their single tokens would take minutes more."""
    stored = pd.read_csv(packaged_path("compression_scores.csv")).iloc[table.item]
    n = stored.n_tokens.to_numpy()
    logprob = stored.logprob.to_numpy()
    frame = scores_from_logprobs(logprob, stored.unigram_logprob, n).rename(
        columns={"slor": "wpslor"}
    )
    return {column: frame[column].to_numpy() for column in frame} | {
        "unigram_logprob": stored.unigram_logprob.to_numpy(),
        "over_brown": logprob - np.polyval(line, n),
        "z_brown": (logprob - np.polyval(line, n)) / (spread * np.sqrt(n)),
    }


def lengths(study: str, table: pd.DataFrame, folder: Path) -> pd.DataFrame:
    words, characters = (
        {side: table[side].map(count) for side in ("source", "output")}
        for count in (lambda text: len(text.split()), len)
    )
    return pd.DataFrame(
        {
            "words": words["output"],
            "characters": characters["output"],
            "longer": np.log((words["output"] + 1) / (words["source"] + 1)),
            "equal_length": -abs(np.log((words["output"] + 1) / (words["source"] + 1))),
            "copy": (table.source == table.output).astype(float),
        }
    )


STEPS = {
    "lengths": lengths,
    "style": style,
    "naturalness": naturalness,
    "content": content,
    "aware": aware,
}
# what a step's scores were made for, where it is not the step's name
CRITERIA = {"lengths": "baseline", "aware": "content"}


def significant(table: pd.DataFrame) -> str:
    """CSV with four significant digits."""
    return table.map(
        lambda cell: (
            "" if pd.isna(cell) else f"{cell:.4g}" if isinstance(cell, float) else str(cell)
        )
    ).to_csv(index=False)


def main(folder: Path, *steps: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    tables = {study: outputs_of(study) for study in STUDIES}
    begun = time.time()
    meant: dict[str, list[str]] = {}
    found = {
        study: [table[["data_set", "system", "item", "source_id"]]]
        for study, table in tables.items()
    }
    for step in steps or STEPS:
        for study, table in tables.items():
            path = folder / f"{study}-{step}.csv"
            if not path.exists():
                write_whole(path, STEPS[step](study, table, folder).to_csv(index=False))
            text = path.read_text()
            found[study].append(
                pd.read_csv(io.StringIO(text)) if text.strip() else pd.DataFrame(index=table.index)
            )
            names = meant.setdefault(CRITERIA.get(step, step), [])
            names += [name for name in found[study][-1] if name not in names]
            print(f"{time.time() - begun:6.0f} s", step, study, flush=True)
    if steps:
        return
    whole = pd.concat([pd.concat(parts, axis=1) for parts in found.values()], ignore_index=True)
    target = packaged_path("agreement_scores.csv.gz")
    target.write_bytes(gzip.compress(significant(whole).encode(), mtime=0))
    write_whole(packaged_path("agreement_criteria.json"), json.dumps(meant, indent=1) + "\n")
    print(f"{time.time() - begun:6.0f} s", whole.shape, f"{target.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
