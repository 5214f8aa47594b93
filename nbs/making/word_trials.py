"""What else was tried for the judge that was taught words: python nbs/making/word_trials.py

Other seeds, their average, one pass, the larger encoder with two passes and with four, and each joined with the
sentence judge of its size. First

    for seed in 0 1 2; do python nbs/making/word_judge.py train $seed; done
    python nbs/making/word_judge.py train 0 all-MiniLM-L6-v2 1
    for passes in 2 4; do python nbs/making/word_judge.py train 0 all-mpnet-base-v2 $passes; done

and then this, minutes of one core. It writes word_trials.csv beside it: trial, split, data, measure, n, value, low,
high (95%, 2,000 resamples), and for each trial on the test split what it gains over seed 0 by the paired bootstrap.
What follows from it is chosen on the validation split. It needs the sample of the Wiki Neutrality Corpus
(TSTEVAL_DATA).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from word_judge import (
    LARGE,
    MARGIN,
    OWN,
    SMALL,
    TRIALS,
    WNC,
    WORDS,
    controls,
    edited,
    log_odds,
    pairs_of,
    run_folder,
)

from tsteval.attribution import attribute, edited_words, ranking_quality
from tsteval.core.resample import bootstrap_interval, mean_statistics, paired_bootstrap
from tsteval.style import StyleClassifier

FIRST = "seed 0"
LARGER = "all-mpnet-base-v2"


@dataclass(frozen=True)
class Trial:
    """A judge, or several that speak together."""

    odds: Callable  # texts -> (N,) log-odds of being subjective, up to a constant
    words: Callable | None  # texts -> each text's scores of words


def alone(judge: StyleClassifier) -> Trial:
    return Trial(
        lambda texts: log_odds(judge, texts),
        lambda texts: [one.word_scores for one in attribute(judge, texts, method="token_scores")],
    )


def together(trials: list[Trial]) -> Trial:
    """The mean of the odds, and of the words' scores."""
    return Trial(
        lambda texts: np.mean([one.odds(texts) for one in trials], axis=0),
        lambda texts: [
            np.mean(scores, axis=0) for scores in zip(*(one.words(texts) for one in trials))
        ],
    )


def joined(taught: Trial, name: str) -> Trial:
    """With a judge of sentences: each in units of its spread over the validation controls."""
    sentence = StyleClassifier.load(name)
    quiet = controls("validation")
    spreads = [
        np.std(odds(quiet)) for odds in (taught.odds, lambda texts: log_odds(sentence, texts))
    ]
    return Trial(
        lambda texts: taught.odds(texts) / spreads[0] + log_odds(sentence, texts) / spreads[1], None
    )


def trials() -> dict[str, Trial]:
    seeds = {
        f"seed {seed}": alone(StyleClassifier.load(str(run_folder(str(seed)))))
        for seed in (0, 1, 2)
    }
    larger, longer = (
        alone(StyleClassifier.load(str(run_folder("0", LARGER, passes)))) for passes in ("2", "4")
    )
    return seeds | {
        "mean of three seeds": together(list(seeds.values())),
        "one pass": alone(StyleClassifier.load(str(run_folder("0", WORDS.base, "1")))),
        f"seed 0 joined with {SMALL}": joined(seeds[FIRST], SMALL),
        "larger encoder": larger,
        f"larger encoder joined with {LARGE}": joined(larger, LARGE),
        "larger encoder, four passes": longer,
        f"larger encoder, four passes, joined with {LARGE}": joined(longer, LARGE),
    }


def measured(trial: Trial, split: str) -> dict[tuple[str, str], np.ndarray]:
    """(data, measure) -> a value a pair or control; the bias keeps validation controls below even odds, as shipped."""
    quiet = trial.odds(controls("validation"))
    bias = -(quiet.mean() + MARGIN * quiet.std())
    found = {("controls", "left alone"): trial.odds(controls(split)) + bias < 0}
    for data in (OWN[0], WNC):
        pairs = edited(pairs_of(split)[data])
        before = trial.odds(pairs.source)
        after = trial.odds(pairs.target)
        found[data, "order"] = 0.5 + 0.5 * np.sign(before - after)
        found[data, "source called subjective"] = before + bias > 0
        if not trial.words:
            continue
        truth = [edited_words(*pair) for pair in zip(pairs.source, pairs.target)]
        ranked = pd.DataFrame(
            [
                ranking_quality(scores, marks)
                for scores, marks in zip(trial.words(pairs.source), truth)
                if marks.any()
            ]
        )
        found[data, "strongest word edited"] = ranked.precision_at_1.to_numpy()
        found[data, "average precision of words"] = ranked.average_precision.to_numpy()
    return {place: np.asarray(values, dtype=float) for place, values in found.items()}


def rows(name: str, split: str, found: dict, first: dict) -> list[dict]:
    made = []
    for (data, measure), values in found.items():
        interval = bootstrap_interval(mean_statistics(values), n_resamples=2000)
        made.append(
            {
                "trial": name,
                "split": split,
                "data": data,
                "measure": measure,
                "n": len(values),
                "value": interval.score,
                "low": interval.low,
                "high": interval.high,
            }
        )
        if split == "test" and name != FIRST:
            gain = paired_bootstrap(
                mean_statistics(values), mean_statistics(first[data, measure]), n_resamples=2000
            )
            made.append(
                {
                    **made[-1],
                    "trial": f"{name} minus {FIRST}",
                    "value": gain.difference,
                    "low": gain.low,
                    "high": gain.high,
                }
            )
    return made


def main() -> None:
    made = []
    first = {}
    for name, trial in trials().items():
        for split in ("validation", "test"):
            found = measured(trial, split)
            first.setdefault(split, found)
            made += rows(name, split, found, first[split])
        print(pd.DataFrame(made).query("trial == @name").to_string(), flush=True)
    pd.DataFrame(made).to_csv(TRIALS, index=False, float_format="%.4g")


if __name__ == "__main__":
    main()
