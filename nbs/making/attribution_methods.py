"""Make the two tables that chapter 9 reads: attribution_methods.csv and attribution_rules.csv in tsteval/data.

    python nbs/making/attribution_methods.py methods npov_pairs     # minutes on one core
    python nbs/making/attribution_methods.py methods wnc_sample     # half an hour on one core; needs TSTEVAL_DATA and
    NLTK's Brown corpus
    python nbs/making/attribution_methods.py rules                  # ten minutes; needs TSTEVAL_DATA
    python nbs/making/attribution_methods.py write                  # collects what the runs left into tsteval/data

A third argument of `methods` names methods, with commas between them. Every run leaves its rows in
/tmp/attribution_methods, one file a method, and does not repeat what is there. Both tables hold numbers only, no text.

*methods*: for each test pair whose edit dropped or replaced a word of the source, how well a ranking of the source's
words finds those words (`ranking_quality`). The first label of the embedded classifier is explained; `token_scores`
are those of subjectivity-words.

*rules*: how well rules of integration do along the straight path from [PAD] to a sentence. The derivative along the
path is computed at Chebyshev points, dense enough that the polynomial through them stands for the curve; every rule is
then applied to that polynomial. So all rules see the same curves, and the exact scores are known to about 1e-5.
"""

import functools
import sys
from pathlib import Path as File

import numpy as np
import pandas as pd
from numpy.polynomial import chebyshev

from tsteval.attribution import (
    METHODS,
    WORD,
    attribute,
    edited_words,
    ranking_quality,
    style_lexicon,
)
from tsteval.models.path_integral import (
    AIM,
    SAMPLES,
    Explained,
    evaluate_points,
    make_path,
    trapezoid,
)
from tsteval.style import StyleClassifier, load_pairs

DATA = {"npov_pairs": "teaching", "wnc_sample": "wnc"}
MOST_SAMPLED = {
    "npov_pairs": 72,
    "wnc_sample": 36,
}  # sentences for the methods that draw: hundreds of evaluations each
SHIPPED = File(__file__).parents[2] / "tsteval" / "data"


# ---- methods


def words_of(text):
    return [match.group() for match in WORD.finditer(text)]


def leave_one_out(classifier, texts):
    """Drop of the probability when a word is taken out of the text, and the evaluations that it cost."""
    for text in texts:
        spans = [match.span() for match in WORD.finditer(text)]
        probability = classifier.predict_proba(
            [text, *(text[:start] + text[end:] for start, end in spans)]
        )[:, 0]
        yield probability[0] - probability[1:], len(spans) + 1


@functools.cache
def modifier_shares():
    """Share of a word's uses in the Brown corpus that are tagged as adjective or adverb."""
    from nltk.corpus import brown

    words = pd.DataFrame(
        [(word.lower(), tag.startswith(("JJ", "RB"))) for word, tag in brown.tagged_words()]
    )
    return words.groupby(0)[1].mean().to_dict()


def rankings(classifier, texts):
    """Name -> a function that gives (word scores, evaluations, completeness error) of each text."""

    def found(attributions):
        return [(a.word_scores, a.steps, a.completeness_error) for a in attributions]

    def plain(scores):
        return [(np.asarray(row, dtype=float), 0, np.nan) for row in scores]

    train = {name: load_pairs(name).query("split == 'train' and source != target") for name in DATA}
    draws = np.random.default_rng(0)
    options = {
        "ig": {},
        "ig-mask": {"baseline": "mask"},
        "ig-zero": {"baseline": "zero"},
        "ig-mean": {"baseline": "mean"},
        "ig-logit": {"quantity": "logit"},
        **{method: {"method": method} for method in METHODS[1:]},
    }
    options["shapley_sampling"]["samples"] = (
        4  # orders: about as many evaluations as the 100 of LIME and kernel SHAP
    )
    table = {
        name: lambda name=name: found(attribute(classifier, texts, progress=True, **options[name]))
        for name in options
    }
    table["leave_one_out"] = lambda: [
        (scores, calls, np.nan) for scores, calls in leave_one_out(classifier, texts)
    ]
    table["token_scores"] = lambda: found(
        attribute(StyleClassifier.load("subjectivity-words"), texts, method="token_scores")
    )
    table["lexicon"] = lambda: plain(
        a.word_scores for a in style_lexicon(train["npov_pairs"]).attribute(texts)
    )
    table["lexicon-both"] = lambda: plain(
        a.word_scores for a in style_lexicon(pd.concat(train.values())).attribute(texts)
    )
    table["modifiers"] = lambda: plain(
        [modifier_shares_of(word) for word in words_of(text)] for text in texts
    )
    table["longest"] = lambda: plain([len(word) for word in words_of(text)] for text in texts)
    table |= {
        f"random-{n:02}": lambda: plain(draws.random(len(words_of(text))) for text in texts)
        for n in range(20)
    }
    return table


def modifier_shares_of(word):
    return modifier_shares().get(word.lower(), 0.0)


def run_methods(name, folder, only=None):
    """Run all methods on one data set, or those that are named."""
    classifier = StyleClassifier.load()
    pairs = load_pairs(name).query("split == 'test' and source != target")
    edited = [edited_words(source, target) for source, target in zip(pairs.source, pairs.target)]
    rows = [row for row, truth in enumerate(edited) if truth.any()]
    texts = [pairs.source.iloc[row] for row in rows]
    table = rankings(classifier, texts)
    for method in sorted(table, key=lambda method: method in SAMPLES):  # the slow ones last
        file = folder / f"{DATA[name]}_{method}.csv"
        if file.exists() or (only and method not in only.split(",")):
            continue
        scored = (
            table[method]
            if method not in SAMPLES
            else rankings(classifier, texts[: MOST_SAMPLED[name]])[method]
        )
        lines = []
        for row, (scores, evaluations, error) in zip(rows, scored()):
            quality = ranking_quality(scores, edited[row])
            lines.append(
                {
                    "data": DATA[name],
                    "row": row,
                    "method": method,
                    **quality,
                    "evaluations": evaluations,
                    "completeness_error": error,
                }
            )
        pd.DataFrame(lines).to_csv(file, index=False)
        print(method, pd.DataFrame(lines).mean(numeric_only=True).round(3).to_dict(), flush=True)


# ---- rules


def interpolation_weights(nodes):
    """Weights with which a sum over nodes integrates the polynomial through them exactly over 0..1."""
    return np.linalg.solve(
        chebyshev.chebvander(2 * nodes - 1, len(nodes) - 1).T, moments(len(nodes))
    )


def moments(n):
    """Integrals over 0..1 of the first n Chebyshev polynomials of 2a - 1."""
    order = np.arange(n)
    return np.where(order % 2 == 0, 1 / (1 - order**2.0 + (order == 1)), 0.0)


def mirrored(positive):
    nodes = np.array([*(-np.array(positive)), *(x for x in reversed(positive) if x != 0)])
    return (nodes + 1) / 2


def clenshaw_curtis(n):
    return (1 - np.cos(np.pi * np.arange(n + 1) / n)) / 2


# Gander and Gautschi 2000: each holds the one before
LOBATTO = {
    4: [1, 5**-0.5],
    7: [1, (2 / 3) ** 0.5, 5**-0.5, 0],
    13: [1, 0.942882415695480, (2 / 3) ** 0.5, 0.641853342345781, 5**-0.5, 0.236383199662150, 0],
}
# QUADPACK: Gauss with 7 points inside Kronrod's 15
KRONROD = {
    7: [0.949107912342759, 0.741531185599394, 0.405845151377397, 0],
    15: [
        0.991455371120813,
        0.949107912342759,
        0.864864423359769,
        0.741531185599394,
        0.586087235467691,
        0.405845151377397,
        0.207784955007898,
        0,
    ],
}


def fixed_rules():
    """Name -> (nodes, weights)."""
    rules = {}
    for n in (7, 8, 12, 16, 24, 50):
        rules[f"midpoint {n}"] = (np.arange(n) + 0.5) / n, np.full(n, 1 / n)
        nodes, weights = np.polynomial.legendre.leggauss(n)
        rules[f"gauss-legendre {n}"] = (nodes + 1) / 2, weights / 2
    for n in (6, 7, 12, 24):
        rules[f"trapezoid {n + 1}"] = trapezoid(n)
        rules[f"even trapezoid {n + 1}"] = trapezoid(n, 0.0)
    nested = {
        **{f"gauss-lobatto-kronrod {n}": mirrored(x) for n, x in LOBATTO.items()},
        **{f"clenshaw-curtis {n + 1}": clenshaw_curtis(n) for n in (4, 6, 8, 12, 16, 24)},
    }
    return rules | {name: (nodes, interpolation_weights(nodes)) for name, nodes in nested.items()}


def adaptive_rules():
    """Name -> a list of (nodes, weights), each of which is tried if the one before leaves too large an error."""

    def polynomial(nodes):
        return (nodes, interpolation_weights(nodes))

    kronrod = [polynomial(mirrored(KRONROD[n])) for n in (7, 15)]

    def halves(rule, parts):
        return (
            np.concatenate([(rule[0] + part) / parts for part in range(parts)]),
            np.tile(rule[1] / parts, parts),
        )

    return {
        "trapezoid, doubled": [trapezoid(n) for n in (6, 12, 24, 48, 96, 192)],
        "even trapezoid, doubled": [trapezoid(n, 0.0) for n in (6, 12, 24, 48, 96, 192)],
        "clenshaw-curtis, doubled": [polynomial(clenshaw_curtis(n)) for n in (6, 12, 24, 48, 96)],
        "gauss-lobatto-kronrod, then halves": [polynomial(mirrored(LOBATTO[n])) for n in (4, 7, 13)]
        + [halves(polynomial(mirrored(LOBATTO[13])), parts) for parts in (2, 4, 8)],
        "gauss-kronrod, then halves": kronrod + [halves(kronrod[1], parts) for parts in (2, 4, 8)],
    }


def dense_paths(data, split, factor, n_texts, n_nodes):
    """Chebyshev coefficients (n_nodes, T) of the derivative along the path, and f(x) - f(baseline), for each text."""
    import torch

    classifier = StyleClassifier.load().own()
    with torch.no_grad():
        classifier.model.classifier.weight.mul_(factor)
        classifier.model.classifier.bias.mul_(factor)
    texts = (
        load_pairs(data).query(f"split == '{split}' and source != target").source[:n_texts].tolist()
    )
    rows = classifier.encode_rows({"texts": texts}, return_special_tokens_mask=True)
    explained = Explained(classifier, 0)
    paths = [
        make_path(explained, ids, special, "pad")
        for ids, special in zip(rows.encoded["input_ids"], rows.encoded["special_tokens_mask"])
    ]
    nodes = clenshaw_curtis(n_nodes - 1)
    evaluate_points(explained, [(path, float(at)) for path in paths for at in nodes])
    basis = chebyshev.chebvander(2 * nodes - 1, n_nodes - 1)
    return [
        (
            np.linalg.solve(basis, np.stack([path.parts[float(at)] for at in nodes])),
            path.values[1.0] - path.values[0.0],
        )
        for path in paths
    ]


def applied(rule, curve):
    """Scores (T,) of one path by a rule."""
    nodes, weights = rule
    return chebyshev.chebval(2 * nodes - 1, curve) @ weights


def run_rules(folder):
    plan = [
        ("npov_pairs", "validation", 4, 20, 97),
        ("npov_pairs", "validation", 16, 12, 193),
        ("wnc_sample", "validation", 1, 40, 49),
        ("npov_pairs", "test", 1, 72, 49),
    ]
    for data, split, factor, n_texts, n_nodes in plan:
        file = folder / f"rules_{DATA[data]}_{factor}.csv"
        if file.exists():
            continue
        curves = dense_paths(data, split, factor, n_texts, n_nodes)
        lines = []
        for name, steps in {
            **{name: [rule] for name, rule in fixed_rules().items()},
            **adaptive_rules(),
        }.items():
            errors = []
            token_errors = []
            gradients = []
            for curve, total in curves:
                used = set()
                for rule in steps:
                    used |= set(rule[0].round(12).tolist())
                    scores = applied(rule, curve)
                    if abs(scores.sum() - total) <= AIM * 0.05:
                        break
                errors.append(abs(scores.sum() - total))
                token_errors.append(np.abs(scores - moments(len(curve)) @ curve).max())
                gradients.append(len(used))
            lines.append(
                {
                    "data": DATA[data],
                    "split": split,
                    "log_odds_times": factor,
                    "rule": name,
                    "sentences": len(curves),
                    "gradients": np.mean(gradients),
                    "most_gradients": np.max(gradients),
                    "median_error": np.median(errors),
                    "ninth_decile": np.quantile(errors, 0.9),
                    "worst_error": np.max(errors),
                    "above_tolerance": int((np.array(errors) > 0.05).sum()),
                    "median_token_error": np.median(token_errors),
                    "worst_token_error": np.max(token_errors),
                }
            )
        pd.DataFrame(lines).to_csv(file, index=False)
        print(data, factor, flush=True)


# ---- both


def write(folder):
    methods = pd.concat(
        [
            pd.read_csv(file)
            for data in DATA.values()
            for file in sorted(folder.glob(f"{data}_*.csv"))
        ]
    )
    drawn = methods.method.str.startswith("random-")
    mean = (
        methods[drawn]
        .assign(method="random")
        .groupby(["data", "row", "method"], as_index=False)
        .mean()
    )
    methods = pd.concat([methods[~drawn], mean]).sort_values(["data", "method", "row"])
    methods.round(5).to_csv(SHIPPED / "attribution_methods.csv", index=False)
    rules = pd.concat([pd.read_csv(file) for file in sorted(folder.glob("rules_*.csv"))])
    rules.to_csv(SHIPPED / "attribution_rules.csv", index=False, float_format="%.3g")
    print(len(methods), "rows of methods,", len(rules), "rows of rules")


def main():
    what, *rest = sys.argv[1:]
    folder = File("/tmp/attribution_methods")
    folder.mkdir(parents=True, exist_ok=True)
    {
        "methods": lambda: run_methods(rest[0], folder, *rest[1:2]),
        "rules": lambda: run_rules(folder),
        "write": lambda: write(folder),
    }[what]()


if __name__ == "__main__":
    main()
