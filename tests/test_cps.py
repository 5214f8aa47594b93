"""Masking, encoding and cosine, with the values published beside the report."""
import dataclasses

import numpy as np
import pytest

from tsteval.attribution import Attribution, integrated_gradients
from tsteval.cps import content_preservation, cosine, join_word_pieces, mask_style, masked_places, separation, style_places


def attribution(tokens, scores):
    return Attribution(" ".join(tokens), tokens, np.array(scores, float), [], np.zeros(0), 0.0, 1)


def test_same_text_twice_is_one(encoder):
    vectors = encoder.encode(["krupki was [PAD] by the red army during the june of 1944"] * 2)
    assert np.isclose(cosine(vectors[:1], vectors[1:])[0], 1, atol=1e-9)


def test_published_score(encoder):
    vectors = encoder.encode(["being a minor release, there is no personal [PAD]",
                              "there is no personal dedication on this [PAD]."])
    assert abs(cosine(vectors[:1], vectors[1:])[0] - 0.26139) < 1e-5


def test_written_pad_is_attended_to(encoder):
    vectors = encoder.encode(["a small house", "a small house [PAD]"])
    assert cosine(vectors[:1], vectors[1:])[0] < 0.999


def test_encoding_does_not_depend_on_the_batch(encoder):
    texts = ["short", "a much longer text " * 30, "", "short", "😀 \ud83d"]
    together = encoder.encode(texts, batch_size=2)
    assert together.shape == (5, 384) and np.isfinite(together).all()
    assert np.allclose(together, np.vstack([encoder.encode([text]) for text in texts]), atol=1e-5)
    assert encoder.encode([]).shape == (0, 384)


def test_cosine_edges():
    assert cosine([[0, 0]], [[1, 1]])[0] == 0 and np.isclose(cosine([[1, 2, 2]], [[2, 1, 2]])[0], 8 / 9)
    with pytest.raises(ValueError):
        cosine([[1, 2]], [[1, 2, 3]])


def test_the_reports_demonstration():
    """`claimed` holds 0.462688 of the absolute total, so threshold 0.1 masks that token and no other."""
    rest = 0.932072 / 0.462688 - 0.932072
    a = attribution(["he", "claimed", "that", "it"], [rest * 0.3, -0.932072, rest * 0.35, rest * 0.35])
    assert np.isclose(0.932072 / np.abs(a.scores).sum(), 0.462688)
    assert mask_style(a, threshold=0.1) == "he [PAD] that it"
    assert mask_style(a, threshold=0.1, strategy="remove") == "he that it"


@pytest.mark.parametrize("threshold, places", [(0.3, [0]), (0.5, [0]), (0.79, [0]), (0.8, [0, 1]), (1.0, [0, 1, 2, 3])])
def test_rule(threshold, places):
    assert style_places([0.5, -0.3, 0.1, 0.1], threshold) == places


def test_nothing_to_mask():
    assert style_places([], 0.3) == [] and style_places([0.0, 0.0], 0.3) == []
    assert mask_style(attribution(["a", "b"], [0, 0])) == "a b"


def test_word_pieces_are_joined_as_the_tokenizer_does(classifier):
    for text in ("It isn't strikingly odd, is it? No!", "They've said: we're 3.5 metres tall (or so).", "naïve café-goers' view"):
        ids = classifier.tokenizer(text, add_special_tokens=False)["input_ids"]
        ours = join_word_pieces(classifier.tokenizer.convert_ids_to_tokens(ids))
        assert ours == classifier.tokenizer.decode(ids, clean_up_tokenization_spaces=True)


def test_words_keep_case_and_spacing(classifier):
    text = "Unsurprisingly, the  Stunning bridge (Ohio) isn't <b>new</b>."
    a = integrated_gradients(classifier, [text], steps=4)[0]
    a.word_scores = np.array([1.0 if word in ("Stunning", "isn't") else 0.02 for word in a.words])
    both = 2 / a.word_scores.sum()
    assert mask_style(a, both, "pad", "word") == "Unsurprisingly, the  [PAD] bridge (Ohio) [PAD] <b>new</b>."
    assert mask_style(a, both, "remove", "word") == "Unsurprisingly, the bridge (Ohio) <b>new</b>."
    assert mask_style(a, 1.0, "pad", "word").count("[PAD]") == len(a.words)
    assert mask_style(a, strategy="none", unit="word") == text


@pytest.mark.parametrize("options", [{"strategy": "delete"}, {"unit": "letter"}, {"threshold": 1.5}, {"threshold": -0.1}])
def test_options_are_checked(options):
    with pytest.raises(ValueError):
        mask_style(attribution(["a"], [1.0]), **options)


def test_copy_scores_one_and_unrelated_texts_low(classifier, encoder):
    sources = ["The stunning bridge opened in 1932."] * 3
    outputs = [sources[0], "The bridge opened in 1932.", "Two eggs are needed for the dough."]
    for unit in ("token", "word"):
        scored = content_preservation(sources, outputs, classifier=classifier, encoder=encoder, unit=unit)
        assert list(scored.columns) == ["cps", "masked_source", "masked_output"]
        assert np.isclose(scored.cps[0], 1) and scored.cps[0] > scored.cps[1] > scored.cps[2] and scored.cps[2] < 0.3


def test_hostile_texts_are_scored(classifier, encoder):
    texts = ["", "[PAD]", "[CLS] [SEP]", "<script>x</script>", "שלום", "word " * 3000]
    scored = content_preservation(texts, texts, classifier=classifier, encoder=encoder)
    assert np.allclose(scored.cps, 1)


def test_unequal_lengths(classifier, encoder):
    with pytest.raises(ValueError, match="2 rows and outputs has 1"):
        content_preservation(["a", "b"], ["a"], classifier=classifier, encoder=encoder)


def styled(scores, value):
    words = [f"w{place}" for place in range(len(scores))]
    a = attribution(words, scores)
    a.value = value
    return a


def test_neutral_texts_are_left_alone_on_request():
    assert masked_places(styled([0.9, 0.1, 0.1], 0.2), skip_neutral=True) == []
    assert masked_places(styled([0.9, 0.1, 0.1], 0.8), skip_neutral=True) == [0]
    assert masked_places(styled([0.3, 0.3, 0.3], 0.8), skip_neutral=True) == [], "no word stands out"
    log_odds = dataclasses.replace(styled([0.9, 0.1, 0.1], 0.3), quantity="logit")
    assert masked_places(log_odds, skip_neutral=True) == [0], "log-odds above 0 are a style"
    assert masked_places(styled([0.9, 0.1, 0.1], 0.2)) == [0], "the report's rule is the default"
    with pytest.raises(ValueError, match="no value"):
        masked_places(attribution(["a"], [1.0]), skip_neutral=True)


def test_only_words_that_push_towards_the_style():
    assert masked_places(styled([-0.9, 0.5, 0.1], 0.8), 0.3) == [0]
    assert masked_places(styled([-0.9, 0.5, 0.1], 0.8), 0.3, positive_only=True) == [1]
    assert masked_places(styled([-0.9, -0.5], 0.8), 0.3, positive_only=True) == []


def test_a_longer_text_has_a_lower_threshold():
    scores = [1.0] * 48
    assert len(masked_places(styled(scores, 0.8), 0.5)) == 24
    assert len(masked_places(styled(scores, 0.8), 0.5, by_length=True)) == 6
    assert masked_places(styled([1.0] * 12, 0.8), 0.5, by_length=True) == masked_places(styled([1.0] * 12, 0.8), 0.5)


def test_changes_reach_the_score(classifier, encoder):
    text = "Water boils at 100 degrees Celsius at sea level."
    plain, kept = (content_preservation([text], [text], classifier=classifier, encoder=encoder, unit="word", changes=changes)
                   for changes in (None, {"skip_neutral": True}))
    assert plain.masked_source[0] != text and kept.masked_source[0] == text
    with pytest.raises(TypeError):
        content_preservation([text], [text], classifier=classifier, encoder=encoder, changes={"skip_all": True})


def test_separation():
    assert separation([0.9, 0.6], [0.7, 0.2]) == 0.75 and separation([1, 1], [1]) == 0.5 and separation([1], [2]) == 0
    with pytest.raises(ValueError):
        separation([], [1])
