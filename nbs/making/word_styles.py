"""Whether a judge can be taught words of other styles, and formality-words, which was.

    python nbs/making/word_styles.py measure    # word_styles.csv, fifteen minutes of one core
    python nbs/making/word_styles.py make       # tsteval/data/formality-words from all pairs, a minute
    python nbs/making/word_styles.py card       # writes its card from the table

Formality and sentiment, as subjectivity-words was taught neutrality: scores of tokens, learnt from pairs. Pairs with
words are few. Of formality there are the embedded ones, and the rewrites that two raters gave 70 of 100 or more for
style and for content, and a person's (Lai et al. 2022); of sentiment the outputs of two systems that raters gave 4 of 5
for style and 3.5 for content (Mir et al. 2019). So five folds: no source is in training and test. As many steps as the
shipped judge had, so nothing is chosen on these data. Of each source one pair is measured: for formality a person's
rewrite, for sentiment the output that raters liked most.

The table beside it: style, way, measure, n, value, low, high (95%, 2,000 resamples of sources), the ways being the
longest word, the shipped judge of the style by integrated gradients, the taught judge by its token scores, and the
difference of the last two. It needs TSTEVAL_DATA. Formality gains, so its judge of words is shipped; sentiment shows
that nothing here is special to neutrality, and its pairs are a system's, so its judge stays a measurement.
"""

import sys
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from word_judge import WORDS, log_odds

from tsteval.attribution import WORD, attribute, edited_words, ranking_quality
from tsteval.core.assets import packaged_path
from tsteval.core.resample import bootstrap_interval, mean_statistics, paired_bootstrap
from tsteval.style import StyleClassifier, labelled_sentences, train_on_sentences
from tsteval.tables.lai2022 import load_lai2022
from tsteval.tables.mir2019 import load_mir2019
from tsteval.tables.pairs import text_sha256
from tsteval.training.cards import write_card

FOLDS = 5
STEPS = (
    210  # steps: two passes over the 1,680 pairs or so that the shipped judge of words learnt from
)
TABLE = Path(__file__).with_name("word_styles.csv")
FOLDER = Path(__file__).parents[2] / "tsteval" / "data" / "formality-words"
SHIPPED = {"formality": "formality-minilm", "sentiment": "sentiment-minilm"}
LABELS = {"formality": ("informal", "formal"), "sentiment": ("negative", "positive")}
GAIN = "token scores minus integrated gradients"


def formality() -> pd.DataFrame:
    """source (informal), target (formal), row (of the source; below 0: never measured), measured."""
    own = pd.read_json(packaged_path("formality_pairs.jsonl"), lines=True)
    own = own.rename(columns={"informal": "source", "formal": "target"})
    rated = load_lai2022().query("source != output")
    rated = rated[(rated.human_style >= 70) & (rated.human_content >= 70) | (rated.system == "ref")]
    swapped = ~rated.to_formal
    rated = rated.assign(
        source=rated.source.mask(swapped, rated.output),
        target=rated.output.mask(swapped, rated.source),
        measured=rated.system == "ref",
    )
    return pd.concat([own.assign(row=-1 - np.arange(len(own)), measured=False), rated])


def sentiment() -> pd.DataFrame:
    rated = load_mir2019().query(
        "target == 1 and source != output and human_style >= 4 and human_content >= 3.5"
    )
    best = rated.assign(total=rated.human_style + rated.human_content).groupby("row").total.idxmax()
    return rated.assign(target=rated.output, measured=rated.index.isin(best))


def pairs_of(style: str) -> pd.DataFrame:
    pairs = {"formality": formality, "sentiment": sentiment}[style]()[
        ["source", "target", "row", "measured"]
    ]
    return pairs.drop_duplicates(["source", "target"]).reset_index(drop=True)


def epochs_for(pairs: pd.DataFrame) -> int:
    return round(STEPS / (len(pairs) / WORDS.batch_size))


def taught(pairs: pd.DataFrame, labels: tuple[str, str]) -> StyleClassifier:
    settings = asdict(WORDS) | {"epochs": epochs_for(pairs)}
    with torch.autocast("cpu", torch.bfloat16, cache_enabled=False):
        return train_on_sentences(labelled_sentences(pairs), labels, progress=True, **settings)


def quality(way: str, pairs: pd.DataFrame, scores: list, order: np.ndarray | None) -> pd.DataFrame:
    truth = [edited_words(*pair) for pair in zip(pairs.source, pairs.target)]
    found = pd.DataFrame([ranking_quality(one, marks) for one, marks in zip(scores, truth)])
    if order is not None:
        found["order"] = order
    return found.assign(way=way, row=pairs.row.to_numpy())


def ordered(judge: StyleClassifier, pairs: pd.DataFrame) -> np.ndarray:
    return 0.5 + 0.5 * np.sign(log_odds(judge, pairs.source) - log_odds(judge, pairs.target))


def measured(style: str) -> pd.DataFrame:
    """Each measured source's quality by each way, from folds that did not see it."""
    pairs = pairs_of(style)
    fold = np.random.default_rng(0).permutation(pairs.row.abs().max() + 1)[pairs.row.abs()] % FOLDS
    keeps = np.array([edited_words(*pair).any() for pair in zip(pairs.source, pairs.target)])
    shipped = StyleClassifier.load(SHIPPED[style])
    found = []
    assert shipped.labels == LABELS[style]
    for held in range(FOLDS):
        judge = taught(pairs[(fold != held) | (pairs.row < 0)], LABELS[style])
        test = pairs[(fold == held) & pairs.measured & keeps]
        sources = [*test.source]
        found += [
            quality(
                "longest word",
                test,
                [[len(word) for word in WORD.findall(text)] for text in sources],
                None,
            ),
            quality(
                "integrated gradients",
                test,
                [one.word_scores for one in attribute(shipped, sources)],
                ordered(shipped, test),
            ),
            quality(
                "token scores",
                test,
                [one.word_scores for one in attribute(judge, sources, method="token_scores")],
                ordered(judge, test),
            ),
        ]
        print(
            pd.concat(found).groupby("way").mean(numeric_only=True).drop(columns="row").to_string(),
            flush=True,
        )
    return pd.concat(found).sort_values(["way", "row"])


def rows(style: str) -> list[list]:
    made = []
    found = measured(style)
    for measure in ("precision_at_1", "average_precision", "order"):
        values = {
            way: part[measure].to_numpy(dtype=float)
            for way, part in found.groupby("way")
            if part[measure].notna().all()
        }
        for way, each in values.items():
            interval = bootstrap_interval(mean_statistics(each), n_resamples=2000)
            made.append(
                [style, way, measure, len(each), interval.score, interval.low, interval.high]
            )
        gain = paired_bootstrap(
            *(mean_statistics(values[way]) for way in ("token scores", "integrated gradients")),
            n_resamples=2000,
        )
        made.append([style, GAIN, measure, len(each), gain.difference, gain.low, gain.high])
    return made


CARD = """# formality-words

Gives each token of a sentence a score for being informal: a LoRA adapter over {base}, taught which words change where
people make a sentence formal; made by `nbs/making/word_styles.py`. Use it to see or to mask words:

```python
from tsteval.attribution import attribute
from tsteval.style import StyleClassifier

judge = StyleClassifier.load("formality-words")
attribute(judge, ["gonna be a bit late, sorry guys"], method="token_scores")
```

For how formal a text is, `formality-minilm` stays the judge: it was fitted to thousands of ratings.

## Training data

{pairs} pairs, {own} of them the package's own. The others are the rewrites of 55 sources by eight systems and a person
that both raters together gave 70 of 100 or more for style and for content, and the person's (Lai et al. 2022 and 2023,
MIT; not included here). So it has seen those 55 sources; the figures below are from five folds over sources, of judges
made in the same way, none of which had seen the sentence that it was measured on.

## Limits

English only, short sentences of questions and answers. Few pairs: it knows the commonest ways of being informal. It was
shown no text without a pair, so its probability of a text is no measure; nothing was chosen on these data. The figures
are taken at home: it learnt from other sources of the study that it was measured on, formality-minilm from other texts.
"""


def make() -> None:
    pairs = pairs_of("formality")
    taught(pairs, LABELS["formality"]).save(FOLDER)


def card() -> None:
    pairs = pairs_of("formality")
    table = pd.read_csv(TABLE).query("style == 'formality'")
    text = CARD.format(base=WORDS.base, pairs=len(pairs), own=int((pairs.row < 0).sum()))
    rows = table.drop(columns="style").replace(
        {"way": {"integrated gradients": f"{SHIPPED['formality']}, integrated gradients"}}
    )
    own = pairs[pairs.row < 0]
    write_card(
        FOLDER,
        text,
        replace(WORDS, epochs=epochs_for(pairs)),
        rows.to_dict("records"),
        {"training text of the package's own pairs": text_sha256([*own.source, *own.target])},
    )


def measure() -> None:
    made = [row for style in SHIPPED for row in rows(style)]
    table = pd.DataFrame(made, columns=["style", "way", "measure", "n", "value", "low", "high"])
    table.to_csv(TABLE, index=False, float_format="%.4g")
    print(table.to_string())


if __name__ == "__main__":
    {"measure": measure, "make": make, "card": card}[sys.argv[1]]()
