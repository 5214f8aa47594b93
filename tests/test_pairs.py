"""The teaching pairs are what the course says of them: distinct, varied, with true spans, split by pair."""
import collections
import re

import pytest

from tsteval.style import load_pairs
from tsteval.text import edited_spans

ALL = load_pairs("npov_pairs")
PAIRS, CONTROLS = ALL[ALL.source != ALL.target], ALL[ALL.source == ALL.target]


def words(text):
    return re.findall(r"[\w'-]+", text.lower())


def test_size_and_fields():
    assert len(PAIRS) >= 600 and ALL.id.is_unique
    assert set(PAIRS.columns) == {"id", "source", "target", "category", "subject", "source_spans", "target_spans", "split"}
    assert set(PAIRS.category) == {"framing", "epistemological", "demographic"}
    assert PAIRS.subject.nunique() >= 12 and PAIRS.subject.value_counts().min() >= 10


def test_controls():
    counts = CONTROLS.category.value_counts()
    assert set(counts.index) == {"neutral", "quotation"} and counts["neutral"] >= 60 and counts["quotation"] >= 40
    assert not any([*CONTROLS.source_spans, *CONTROLS.target_spans])
    assert CONTROLS.source.is_unique and not set(CONTROLS.source) & {*PAIRS.source, *PAIRS.target}
    assert CONTROLS.split.value_counts().min() >= 20


def test_lengths():
    for side in ("source", "target"):
        lengths = ALL[side].str.split().str.len()
        assert lengths.min() >= 8 and lengths.max() <= 35


def test_spans_mark_exactly_the_edited_words():
    for row in PAIRS.itertuples():
        source_spans, target_spans = edited_spans(row.source, row.target)
        assert [tuple(span) for span in row.source_spans] == [tuple(span) for span in source_spans], row.id
        assert [tuple(span) for span in row.target_spans] == [tuple(span) for span in target_spans], row.id
        assert source_spans or target_spans, row.id


def test_splits():
    counts = PAIRS.split.value_counts()
    assert set(counts.index) == {"train", "validation", "test"} and counts["test"] >= 40 and counts["validation"] >= 40
    for split in ("validation", "test"):
        assert PAIRS[PAIRS.split == split].subject.nunique() == PAIRS.subject.nunique()


def test_no_duplicates():
    sentences = [re.sub(r"\W+", " ", text.lower()) for side in ("source", "target") for text in PAIRS[side]]
    assert len(set(sentences)) == len(sentences)


def test_edits_are_varied():
    phrases = collections.Counter(row.source[start:end].lower() for row in PAIRS.itertuples() for start, end in row.source_spans)
    assert len(phrases) >= 180 and phrases.most_common(1)[0][1] <= 6


@pytest.mark.parametrize("n, most", [(4, 5), (6, 2), (8, 2)])
def test_no_template_shows(n, most):
    """No run of n words occurs in more than `most` sources."""
    seen = collections.Counter()
    for text in PAIRS.source:
        tokens = words(text)
        seen.update({tuple(tokens[i:i + n]) for i in range(len(tokens) - n + 1)})
    run, count = seen.most_common(1)[0]
    assert count <= most, " ".join(run)


def test_openings_are_varied():
    openings = collections.Counter(" ".join(words(text)[:2]) for text in PAIRS.source)
    assert openings.most_common(1)[0][1] <= 6
