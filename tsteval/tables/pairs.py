"""Loaders of sentence pairs and of labelled sentences, and the weights that balance their classes"""

import hashlib
import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from ..core.assets import AssetError, corpus_path, packaged_path
from ..core.checks import InputError, check_choice, check_number, check_texts, tokenizable
from .formats import lines_on_disk
from .tables import read_table

LABELS = ("subjective", "neutral")  # the classes of source and target
_WNC_TEST = 200
_WNC_VALIDATION = 80  # pairs of the sample
WNC_COLUMNS = (
    "rev_id",
    "src_tok",
    "tgt_tok",
    "src_raw",
    "tgt_raw",
    "src_POS_tags",
    "src_parse_tags",
)


def load_pairs(
    # "npov_pairs", "npov_hard" (embedded), "wnc_sample" (external), a CSV file, or a file of the full WNC
    name: str = "npov_pairs",
    limit: int | None = None,  # at most so many pairs, from the beginning, >= 0; None: all
) -> pd.DataFrame:  # one row a pair; at least source, target, split
    """Sentence pairs: a subjective source and its neutral target. A pair whose two sides are equal is a control.

    Raises: AssetError if an external corpus is not on this machine; InputError (a ValueError) naming the file and the
    row or column that is wrong.
    Source: Pryzant et al. 2020 (WNC and its columns).
    """
    if limit is not None:
        check_number(limit, "limit", 0, whole=True)
    if name in ("npov_pairs", "npov_hard"):
        pairs = pd.read_json(packaged_path(f"{name}.jsonl"), lines=True)
    elif name == "wnc_sample":
        pairs = _load_wnc_sample(corpus_path("wnc_sample"))
    elif str(name).endswith(".csv"):
        pairs = _load_csv(name)
    else:
        pairs = pd.concat(iterate_wnc(name, limit=limit), ignore_index=True)
    return pairs if limit is None else pairs.head(limit)


def _load_csv(path: Path | str) -> pd.DataFrame:
    try:
        pairs = read_table(path)
        for column in ("source", "target"):
            if column not in pairs:
                raise InputError(
                    f"there is no column {column}; the columns are {', '.join(pairs.columns)}"
                )
            check_texts(pairs[column], column=column, empty=False)
    except InputError as error:
        raise error.at(file=str(path)) from error
    return pairs if "split" in pairs else pairs.assign(split="train")


def _load_wnc_sample(folder: Path) -> pd.DataFrame:
    source, target = (
        (folder / f"{side}.train").read_text(encoding="utf-8").splitlines()
        for side in ("pre", "post")
    )
    pairs = pd.DataFrame({"source": source, "target": target, "split": "train"})
    order = np.random.default_rng(0).permutation(len(pairs))
    pairs.loc[order[:_WNC_TEST], "split"] = "test"
    pairs.loc[order[_WNC_TEST : _WNC_TEST + _WNC_VALIDATION], "split"] = "validation"
    return pairs


def iterate_wnc(
    # a file of the full WNC, such as biased.word.train, with or without a header line
    path: Path | str,
    chunk_size: int = 10_000,  # pairs a piece, >= 1
    limit: int | None = None,  # stop after so many pairs, >= 0; None: read to the end
) -> Iterator[pd.DataFrame]:  # frames, at least one: rev_id, source, target, split
    """Read the full Wiki Neutrality Corpus in pieces, so that memory holds one piece at a time.

    The split is read from the end of the file's name: .dev is validation, .test is test, anything else is train.
    Raises: InputError for a chunk size below 1, and naming the line that has neither 5 nor 7 columns, or no text.
    Source: Pryzant et al. 2020; its files hold `WNC_COLUMNS`, in some rows without the last two.
    """
    check_number(chunk_size, "chunk_size", 1, whole=True)
    if limit is not None:
        check_number(limit, "limit", 0, whole=True)
    return _pieces(path, chunk_size, limit)


def _pieces(path: Path | str, chunk_size: int, limit: int | None) -> Iterator[pd.DataFrame]:
    split = {".dev": "validation", ".test": "test"}.get(Path(path).suffix, "train")
    rows = itertools.islice(_wnc_rows(path), limit)
    for number in itertools.count():
        piece = list(itertools.islice(rows, chunk_size))
        if piece or not number:
            frame = pd.DataFrame(piece, columns=["rev_id", "source", "target"])
            yield frame.assign(split=split)
        if len(piece) < chunk_size:
            return


def _wnc_rows(path: Path | str) -> Iterator[tuple[str, str, str]]:
    source_place, target_place = WNC_COLUMNS.index("src_raw"), WNC_COLUMNS.index("tgt_raw")
    try:
        for number, line in enumerate(lines_on_disk(path, "jsonl"), 1):
            if number == 1 and line.startswith(WNC_COLUMNS[0]):
                continue
            fields = line.rstrip("\r\n").split("\t")
            if len(fields) not in (5, 7):
                raise InputError(
                    f"expected 5 or 7 tab-separated columns, got {len(fields)}", line=number
                )
            source, target = fields[source_place], fields[target_place]
            if not source.strip() or not target.strip():
                raise InputError("src_raw or tgt_raw is empty; remove the line", line=number)
            yield fields[0], source, target
    except InputError as error:
        raise error.at(file=str(path)) from error


SENTIMENTS = ("negative", "positive")


def load_sentence_polarity() -> pd.DataFrame:  # text, label (0 negative, 1 positive), split
    """NLTK's sentences from movie reviews, each once; a fifth for testing and a tenth for choosing, by a fixed seed.

    Raises: AssetError if NLTK does not find the corpus, saying how to get it.
    Source: Pang and Lee 2005.
    """
    from nltk.corpus import sentence_polarity

    try:
        rows = [
            (" ".join(words), label)
            for label, category in enumerate(("neg", "pos"))
            for words in sentence_polarity.sents(categories=category)
        ]
    except LookupError as error:
        raise AssetError(
            "the corpus sentence_polarity is not on this machine. To mend it: run "
            'nltk.download("sentence_polarity"), or set NLTK_DATA to the folder that holds it'
        ) from error
    sentences = pd.DataFrame(rows, columns=["text", "label"]).drop_duplicates(
        "text", ignore_index=True
    )
    order = np.random.default_rng(0).permutation(len(sentences))
    n = len(sentences)
    sentences["split"] = "train"
    sentences.loc[order[: n // 5], "split"] = "test"
    sentences.loc[order[n // 5 : n * 3 // 10], "split"] = "validation"
    return sentences


def load_wiki_npov(
    neutral: str = "cw-hard",  # which neutral sentences: cw-hard | type_balanced | featured
) -> pd.DataFrame:  # text, label (0 subjective, 1 neutral), each text once
    """Sentences of Wikipedia that crowd workers found biased, and neutral ones.

    Raises: AssetError if the corpus is not on this machine; InputError for another kind.
    Source: Hube and Fetahu 2019.
    """
    check_choice(neutral, "neutral", ("cw-hard", "type_balanced", "featured"))
    folder = corpus_path("wiki_npov")
    names = ("statements_biased", f"statements_neutral_{neutral}")
    texts = [
        (folder / name).read_text(encoding="utf-8", errors="replace").splitlines() for name in names
    ]
    rows = [
        (line.strip(), label) for label, lines in enumerate(texts) for line in lines if line.strip()
    ]
    return pd.DataFrame(rows, columns=["text", "label"]).drop_duplicates(
        "text", keep=False, ignore_index=True
    )


def load_contrasts() -> pd.DataFrame:  # id, style, source, style_only, changed, change, where
    """Sources with a rewrite that keeps the facts (style_only) and one in which a fact is wrong (changed), by style.

    `change` is one of substitution, insertion, deletion, negation, number;
    `where` is the wrong fact's words in `changed`; of a deletion, the words of the source whose content is lost.
    """
    return pd.read_json(packaged_path("content_contrasts.jsonl"), lines=True, dtype=False)


def balanced_weights(
    labels: Sequence[int] | np.ndarray | pd.Series,  # (N,) class of each sentence
) -> np.ndarray:  # (N,) n / (C n_c): every class that occurs weighs the same, and the mean is 1
    """Weights that balance classes of unequal size."""
    _, classes, counts = np.unique(np.asarray(labels), return_inverse=True, return_counts=True)
    return len(classes) / (len(counts) * counts[classes]) if len(counts) else np.zeros(0)


def twins(
    sentences: pd.DataFrame,  # pair (shared by the two sentences of a pair) and label (0, 1, ...)
) -> tuple[
    list[int], list[int]
]:  # places (counted from 0) of class 0's and of class 1's sentence, one of each a pair
    """Where the two sentences of every pair stand that has one of each of the first two classes.

    Raises: InputError for a pair with two sentences of one class.
    """
    again = sentences.duplicated(["pair", "label"]).to_numpy()
    if again.any():
        row = int(again.argmax())
        raise InputError(
            f"pair {sentences.pair.iloc[row]} has two sentences of class {sentences.label.iloc[row]}; "
            "give each pair a number of its own",
            argument="sentences",
            row=row,
        )
    places = pd.Series(
        np.arange(len(sentences)), index=[sentences.pair.to_numpy(), sentences.label.to_numpy()]
    )
    both = places.unstack().reindex(columns=[0, 1]).dropna().astype(int)
    return both[0].tolist(), both[1].tolist()


def text_sha256(
    texts: Iterable[str],  # texts in order
) -> str:  # 64 hexadecimal digits
    """One checksum for texts in order; kept beside a result so that a changed text is noticed."""
    return hashlib.sha256("\n".join(texts).encode("utf-8", "surrogatepass")).hexdigest()


def labelled_sentences(
    pairs: pd.DataFrame,  # source and target
    control_weight: float = 1.0,  # how many times a control counts among the neutral sentences, > 0
) -> (
    pd.DataFrame
):  # text, label (0 subjective, 1 neutral), pair (row in `pairs`, counted from 0), weight
    """Pairs as labelled sentences: two for an edited pair, one neutral one for a control.

    Raises: InputError for a weight of 0 or less.
    Source: Fast Forward Labs 2022, evaluation chapter, on fine-tuning the classifier; the controls are ours.
    """
    check_number(control_weight, "control_weight", 0, above=True)
    numbers = np.arange(len(pairs))
    edited = (pairs.source != pairs.target).to_numpy()
    texts = [
        pd.Series(tokenizable(pairs[side], side), dtype=object) for side in ("source", "target")
    ]
    sources = pd.DataFrame(
        {"text": texts[0].to_numpy()[edited], "label": 0, "pair": numbers[edited]}
    )
    targets = pd.DataFrame({"text": texts[1].to_numpy(), "label": 1, "pair": numbers})
    sentences = pd.concat([sources, targets]).sort_values("pair", kind="stable", ignore_index=True)
    shares = np.where(edited, 1.0, control_weight)[sentences.pair]
    by_class = pd.Series(shares).groupby(sentences.label).transform("mean")
    return sentences.assign(weight=balanced_weights(sentences.label) * shares / by_class)
