"""The teaching pairs and the hard ones are what the course says of them: distinct, varied, with true spans, split by
pair."""

import collections
import re

import pandas as pd
import pytest

from tsteval.core.checks import InputError
from tsteval.style import load_pairs
from tsteval.tables.pairs import twins
from tsteval.text import edited_spans

ALL = load_pairs("npov_pairs")
HARD = load_pairs("npov_hard")
PAIRS = ALL[ALL.source != ALL.target]
CONTROLS = ALL[ALL.source == ALL.target]
HARD_PAIRS = HARD[HARD.source != HARD.target]
HARD_CONTROLS = HARD[HARD.source == HARD.target]
BOTH = pd.concat([ALL, HARD], ignore_index=True)


def words(text):
    return re.findall(r"[\w'-]+", text.lower())


def test_size_and_fields():
    assert len(PAIRS) >= 600 and ALL.id.is_unique
    assert set(PAIRS.columns) == {
        "id",
        "source",
        "target",
        "category",
        "subject",
        "source_spans",
        "target_spans",
        "split",
    }
    assert set(PAIRS.category) == {"framing", "epistemological", "demographic"}
    assert PAIRS.subject.nunique() >= 12 and PAIRS.subject.value_counts().min() >= 10


def test_controls():
    counts = CONTROLS.category.value_counts()
    assert (
        set(counts.index) == {"neutral", "quotation"}
        and counts["neutral"] >= 60
        and counts["quotation"] >= 40
    )
    assert not any([*CONTROLS.source_spans, *CONTROLS.target_spans])
    assert CONTROLS.source.is_unique and not set(CONTROLS.source) & {*PAIRS.source, *PAIRS.target}
    assert CONTROLS.split.value_counts().min() >= 20


def test_the_hard_set():
    """Pairs are for training alone; of the controls more than a third is held out, most of it for the test."""
    assert (
        list(HARD.columns) == list(ALL.columns)
        and BOTH.id.is_unique
        and (HARD_PAIRS.split == "train").all()
    )
    assert HARD_PAIRS.category.value_counts().to_dict() == {
        "framing": 110,
        "epistemological": 100,
        "demographic": 50,
    }
    assert HARD_CONTROLS.groupby(["split", "category"]).size().unstack().to_dict("index") == {
        "train": {"neutral": 60, "quotation": 90},
        "validation": {"neutral": 10, "quotation": 15},
        "test": {"neutral": 25, "quotation": 50},
    }
    assert not any([*HARD_CONTROLS.source_spans, *HARD_CONTROLS.target_spans])
    held_out = (
        BOTH[(BOTH.source == BOTH.target) & (BOTH.split != "train")]
        .groupby(["split", "category"])
        .size()
    )
    assert held_out["test"].to_dict() == {"neutral": 40, "quotation": 60} and held_out[
        "validation"
    ].to_dict() == {"neutral": 25, "quotation": 25}


def test_held_out_controls_resemble_no_other_sentence():
    """At most 0.6 of the different words of two sentences are common to both; of the hard set's, at most 0.3."""
    sides = [
        (row.id, set(words(text))) for row in BOTH.itertuples() for text in {row.source, row.target}
    ]
    for most, controls in ((0.6, CONTROLS), (0.3, HARD_CONTROLS)):
        for row in controls[controls.split != "train"].itertuples():
            own = set(words(row.source))
            likeness = {
                other: len(own & theirs) / len(own | theirs)
                for other, theirs in sides
                if other != row.id
            }
            closest = max(likeness, key=likeness.get)
            assert likeness[closest] <= most, (row.id, closest)


@pytest.mark.parametrize("rows, most", [(ALL, 35), (HARD, 45)], ids=["npov_pairs", "npov_hard"])
def test_lengths(rows, most):
    for side in ("source", "target"):
        lengths = rows[side].str.split().str.len()
        assert lengths.min() >= 8 and lengths.max() <= most


@pytest.mark.parametrize("pairs", [PAIRS, HARD_PAIRS], ids=["npov_pairs", "npov_hard"])
def test_spans_mark_exactly_the_edited_words(pairs):
    for row in pairs.itertuples():
        source_spans, target_spans = edited_spans(row.source, row.target)
        assert [tuple(span) for span in row.source_spans] == [
            tuple(span) for span in source_spans
        ], row.id
        assert [tuple(span) for span in row.target_spans] == [
            tuple(span) for span in target_spans
        ], row.id
        assert source_spans or target_spans, row.id


def test_splits():
    counts = PAIRS.split.value_counts()
    assert (
        set(counts.index) == {"train", "validation", "test"}
        and counts["test"] >= 40
        and counts["validation"] >= 40
    )
    for split in ("validation", "test"):
        assert PAIRS[PAIRS.split == split].subject.nunique() == PAIRS.subject.nunique()


def test_no_duplicates():
    edited = pd.concat([PAIRS, HARD_PAIRS])
    controls = pd.concat([CONTROLS, HARD_CONTROLS])
    sentences = [
        re.sub(r"\W+", " ", text.lower())
        for text in (*edited.source, *edited.target, *controls.source)
    ]
    assert len(set(sentences)) == len(sentences)


@pytest.mark.parametrize("pairs", [PAIRS, HARD_PAIRS], ids=["npov_pairs", "npov_hard"])
def test_edits_are_varied(pairs):
    phrases = collections.Counter(
        row.source[start:end].lower()
        for row in pairs.itertuples()
        for start, end in row.source_spans
    )
    assert len(phrases) >= 180 and phrases.most_common(1)[0][1] <= 6


@pytest.mark.parametrize("n, most", [(4, 5), (6, 2), (8, 2)])
def test_no_template_shows(n, most):
    """No run of n words occurs in more than `most` sources."""
    seen = collections.Counter()
    for text in (*PAIRS.source, *HARD_PAIRS.source):
        tokens = words(text)
        seen.update({tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)})
    run, count = seen.most_common(1)[0]
    assert count <= most, " ".join(run)


def test_openings_are_varied():
    openings = collections.Counter(
        " ".join(words(text)[:2]) for text in (*PAIRS.source, *HARD_PAIRS.source)
    )
    assert openings.most_common(1)[0][1] <= 6


def test_a_pair_with_two_sentences_of_a_class_is_refused_by_its_number():
    with pytest.raises(InputError, match="row 3: pair 7 has two sentences of class 1"):
        twins(pd.DataFrame({"pair": [7, 7, 8, 7], "label": [0, 1, 0, 1]}))
