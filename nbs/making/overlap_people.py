"""Do the scores of chapter 11 follow people more closely than BLEU, and what does WordNet add to METEOR?

    python nbs/making/overlap_people.py WORDNET       # some minutes on one core

WORDNET is a folder with the files of WordNet 3.0 (Princeton's licence), as Debian's package wordnet-base lays them in
/usr/share/wordnet or nltk.download('wordnet') in corpora/wordnet. Rated sets are looked for in TSTEVAL_DATA.

tsteval/data/overlap_people.csv, a row a set and score: its Pearson correlation with the mean rating of each output, and
that minus the correlation of another score (`minus`: BLEU's, and of METEOR with WordNet that of METEOR without), with a
95% interval from resampling sources. Translations and simplifications are compared with their references, rewrites with
their source, as the raters did; of several references the nearest counts, for the cosine of chapter 10 as for the others.
The correlations of bleu, chrf and meteor are those of evidence.csv, which is checked.

tsteval/data/overlap_systems.csv: of simpeval_past, the mean rating and the mean scores of each of its 20 systems; one of
them, a control, is the source with its words in random order. The first table has a set more, without this control.

tsteval/data/wordnet_stages.csv: what WordNet pairs. A row an output of the five of chapter 11, and a row a set: METEOR
without synonyms; with WordNet asked for stems, as NLTK asks it; and with WordNet asked for words. `pairs_stems` and
`pairs_words` count the pairs that the last stage adds, in an output on average.

The files hold figures only. Nothing at run time depends on this file.
"""

import shutil
import sys
import tempfile
from functools import lru_cache
from pathlib import Path

import nltk
import numpy as np
import pandas as pd
from nltk.corpus.reader.wordnet import WordNetCorpusReader
from nltk.stem.porter import PorterStemmer

from tsteval.bleu import bleu_from_statistics, bleu_statistics
from tsteval.cps import SentenceEncoder, cosine
from tsteval.overlap import chrf, meteor
from tsteval.people.coefficients import compare_correlations
from tsteval.report.evidence import evidence
from tsteval.tables.ratings import load_ratings
from tsteval.text import tokenize
from tsteval.words.word_alignment import (
    align_words,
    count_chunks,
    meteor_from_counts,
    one_form,
    wordnet_synonyms,
)

FOLDER = Path(__file__).parents[2] / "tsteval" / "data"
SETS = {  # what was asked, and what an output is compared with
    "wmt23_mqm_zhen": ("overall", "references"),
    "ted21_mqm_zhen": ("overall", "references"),
    "simplicity_da": ("content", "references"),
    "simpeval_past": ("overall", "references"),
    "mir2019": ("content", "source"),
    "lai2022": ("content", "source"),
}
IN_EVIDENCE = {  # by what an output is compared with
    "references": {"bleu": "bleu", "chrf": "chrf", "meteor": "meteor"},
    "source": {
        "bleu": "bleu, of the source",
        "chrf": "chrf:against=source",
        "meteor": "meteor:against=source",
    },
}
FIVE = {
    "other endings": "The committees agreed to the plans.",
    "other order": "To a plan the committee agrees.",
    "other words": "The board accepts a proposal.",
    "the opposite": "The committee objects to a plan.",
    "another text": "The bridge opened in 1932.",
}
SCRAMBLE = "scramble_words"  # a control of simpeval_past: the words of the source in random order
REFERENCE = "The committee agrees to a plan."


class OneVersion(WordNetCorpusReader):
    def map_wn(
        self, version="wordnet"
    ):  # to the numbers of another version, which nothing here asks for
        return None


def wordnet(folder: Path) -> WordNetCorpusReader:
    """NLTK's reader of the files of a folder; a list of WordNet's 45 lexicographer files is added where it is missing
    (their names are not used here)."""
    own = Path(tempfile.mkdtemp())
    for file in folder.iterdir():
        shutil.copy(file, own)
    if not (own / "lexnames").exists():
        (own / "lexnames").write_text("".join(f"{i:02}\tfile{i}\t1\n" for i in range(45)))
    nltk.data.path.append(str(own))  # where NLTK may read
    return OneVersion(str(own), omw_reader=None)


def by_words(reader: WordNetCorpusReader, output: list[str], reference: list[str]):
    """Pairs of equal words, then of equal stems, then of words that share a sense of WordNet."""
    stem = lru_cache(PorterStemmer().stem)
    pairs = align_words(output, reference, stem=stem)
    taken = [{pair[side] for pair in pairs} for side in (0, 1)]
    free = [j for j in range(len(reference)) if j not in taken[1]]
    for i in reversed(range(len(output))):
        if i in taken[0]:
            continue
        senses = set(reader.synsets(output[i]))
        same = [j for j in free if senses & set(reader.synsets(reference[j]))]
        if same:
            pairs.append((i, same[-1]))
            free.remove(same[-1])
    return sorted(pairs)


def with_wordnet(reader, outputs, references):
    """METEOR of each output without WordNet, with it asked for stems and for words, and the pairs that it adds."""
    synonyms = wordnet_synonyms(reader)
    stem = lru_cache(PorterStemmer().stem)
    rows = []
    for output, texts in zip(outputs, references):
        best = [(-1.0, 0), (-1.0, 0), (-1.0, 0)]
        ours = [word.lower() for word in tokenize(one_form(output))]
        for text in [texts] if isinstance(texts, str) else texts:
            theirs = [word.lower() for word in tokenize(one_form(text))]
            found = [
                align_words(ours, theirs, stem=stem),
                align_words(ours, theirs, stem=stem, synonyms=synonyms),
                by_words(reader, ours, theirs),
            ]
            for place, pairs in enumerate(found):
                score = meteor_from_counts(
                    len(pairs), count_chunks(pairs), len(ours), len(theirs)
                ).item()
                best[place] = max(best[place], (score, len(pairs) - len(found[0])))
        rows.append([one for score, added in best for one in (score, added)])
    names = ["meteor", "none", "stems", "pairs_stems", "words", "pairs_words"]
    return pd.DataFrame(rows, columns=names).drop(columns="none")


def nearest(encoder: SentenceEncoder, outputs: list[str], references: list) -> list[float]:
    """The cosine of each output to its nearest reference."""
    texts = [[one] if isinstance(one, str) else list(one) for one in references]
    distinct = sorted({*outputs, *(text for row in texts for text in row)})
    at = {text: place for place, text in enumerate(distinct)}
    vectors = encoder.encode(distinct)
    return [
        max(cosine(vectors[[at[output]] * len(row)], vectors[[at[text] for text in row]]))
        for output, row in zip(outputs, texts)
    ]


def rows_of(name: str, criterion: str, compared: pd.DataFrame) -> list[dict]:
    """A row a score: how far it follows the ratings, and how much further than the score that it is held against."""
    rows = []
    for score in compared.columns.drop(["rating", "source_id", "system"]):
        minus = "meteor" if score.startswith("meteor,") else "bleu"
        one = compare_correlations(
            compared[score], compared[minus], compared.rating, groups=compared.source_id
        )
        rows.append(
            {
                "data_set": name,
                "criterion": criterion,
                "score": score,
                "pearson": one.score_a,
                "minus": minus,
                "difference": one.difference,
                "low": one.low,
                "high": one.high,
                "n": len(compared),
                "sources": compared.source_id.nunique(),
            }
        )
    return rows


def main(folder: str) -> None:
    reader = wordnet(Path(folder))
    encoder = SentenceEncoder.load()
    opening = with_wordnet(reader, FIVE.values(), [REFERENCE] * len(FIVE))
    stages = [opening.assign(what=list(FIVE), n=1)]
    table = []
    known = evidence().query("measure == 'pearson'").set_index(["data_set", "criterion", "score"])
    for name, (criterion, against) in SETS.items():
        rated = load_ratings(name).query("criterion == @criterion").reset_index(drop=True)
        outputs = rated.output.tolist()
        references = rated[against].tolist()
        found = with_wordnet(reader, outputs, references)
        np.testing.assert_allclose(found.meteor, meteor(outputs, references), atol=1e-9)
        statistics = bleu_statistics(outputs, references)
        scores = {
            "bleu": bleu_from_statistics(statistics, effective_order=True),
            "chrf": chrf(outputs, references),
            "chrf, script": chrf(outputs, references, eps_smoothing=True),
            "meteor": found.meteor,
            "meteor, 2007": meteor(outputs, references, parameters="lavie2007"),
            "meteor, stems": found.stems,
            "meteor, words": found["words"],
            "cosine": nearest(encoder, outputs, references),
        }
        compared = pd.DataFrame(scores).assign(
            rating=rated.rating, source_id=rated.source_id, system=rated.system
        )
        table += rows_of(name, criterion, compared)
        for score, in_table in IN_EVIDENCE[against].items():
            value = known.loc[(name, criterion, in_table)].value
            assert np.isclose(compared[score].corr(compared.rating), value, atol=1e-4), (
                name,
                score,
            )
        if name == "simpeval_past":
            sorted_words = compared[compared.system != SCRAMBLE]
            table += rows_of(f"{name}, no scramble", criterion, sorted_words)
            means = compared.groupby("system")[
                ["rating", "bleu", "chrf", "meteor", "cosine"]
            ].mean()
            means.round(4).to_csv(FOLDER / "overlap_systems.csv")
        stages.append(found.mean().to_frame().T.assign(what=name, n=len(rated)))
        print(stages[-1].to_string(), flush=True)
    columns = ["what", "n", "meteor", "stems", "words", "pairs_stems", "pairs_words"]
    pd.concat(stages)[columns].round(4).to_csv(FOLDER / "wordnet_stages.csv", index=False)
    pd.DataFrame(table).round(4).to_csv(FOLDER / "overlap_people.csv", index=False)
    print(pd.DataFrame(table).round(3).to_string())


if __name__ == "__main__":
    main(*sys.argv[1:])
