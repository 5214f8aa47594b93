"""Masking, encoding and cosine, with the values published beside the report."""

import dataclasses
import json
import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
import torch

from tests.models import tiny
from tsteval.attribution import Attribution, integrated_gradients, style_lexicon
from tsteval.core.assets import AssetError
from tsteval.core.checks import InputError
from tsteval.core.metric import find_metric
from tsteval.cps import (
    Cps,
    SentenceEncoder,
    complete_attributions,
    content_preservation,
    cosine,
    join_word_pieces,
    mask_style,
    masked_places,
    separation,
    style_places,
)
from tsteval.models.roles import Models
from tsteval.style import StyleClassifier, load_pairs


def attribution(tokens, scores):
    return Attribution(" ".join(tokens), tokens, np.array(scores, float), [], np.zeros(0), 0.0, 1)


def test_same_text_twice_is_one(encoder):
    vectors = encoder.encode(["krupki was [PAD] by the red army during the june of 1944"] * 2)
    assert np.isclose(cosine(vectors[:1], vectors[1:])[0], 1, atol=1e-9)


def test_published_score(encoder):
    vectors = encoder.encode(
        [
            "being a minor release, there is no personal [PAD]",
            "there is no personal dedication on this [PAD].",
        ]
    )
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
    assert cosine([[0, 0]], [[1, 1]])[0] == 0 and np.isclose(
        cosine([[1, 2, 2]], [[2, 1, 2]])[0], 8 / 9
    )
    with pytest.raises(ValueError):
        cosine([[1, 2]], [[1, 2, 3]])


def test_the_reports_demonstration():
    """`claimed` holds 0.462688 of the absolute total, so threshold 0.1 masks that token and no other."""
    rest = 0.932072 / 0.462688 - 0.932072
    a = attribution(
        ["he", "claimed", "that", "it"], [rest * 0.3, -0.932072, rest * 0.35, rest * 0.35]
    )
    assert np.isclose(0.932072 / np.abs(a.scores).sum(), 0.462688)
    assert mask_style(a, threshold=0.1) == "he [PAD] that it"
    assert mask_style(a, threshold=0.1, strategy="remove") == "he that it"


@pytest.mark.parametrize(
    "threshold, places", [(0.3, [0]), (0.5, [0]), (0.79, [0]), (0.8, [0, 1]), (1.0, [0, 1, 2, 3])]
)
def test_rule(threshold, places):
    assert style_places([0.5, -0.3, 0.1, 0.1], threshold) == places


def test_nothing_to_mask():
    assert style_places([], 0.3) == [] and style_places([0.0, 0.0], 0.3) == []
    assert mask_style(attribution(["a", "b"], [0, 0])) == "a b"


def test_word_pieces_are_joined_as_the_tokenizer_does(classifier):
    for text in (
        "It isn't strikingly odd, is it? No!",
        "They've said: we're 3.5 metres tall (or so).",
        "naïve café-goers' view",
    ):
        ids = classifier.tokenizer(text, add_special_tokens=False)["input_ids"]
        ours = join_word_pieces(classifier.tokenizer.convert_ids_to_tokens(ids))
        assert ours == classifier.tokenizer.decode(ids, clean_up_tokenization_spaces=True)


def test_words_keep_case_and_spacing(classifier):
    text = "Unsurprisingly, the  Stunning bridge (Ohio) isn't <b>new</b>."
    a = integrated_gradients(classifier, [text], steps=4)[0]
    a.word_scores = np.array([1.0 if word in ("Stunning", "isn't") else 0.02 for word in a.words])
    both = 2 / a.word_scores.sum()
    assert (
        mask_style(a, both, "pad", "word")
        == "Unsurprisingly, the  [PAD] bridge (Ohio) [PAD] <b>new</b>."
    )
    assert mask_style(a, both, "remove", "word") == "Unsurprisingly, the bridge (Ohio) <b>new</b>."
    assert mask_style(a, 1.0, "pad", "word").count("[PAD]") == len(a.words)
    assert mask_style(a, strategy="none", unit="word") == text


@pytest.mark.parametrize(
    "options", [{"strategy": "delete"}, {"unit": "letter"}, {"threshold": 1.5}, {"threshold": -0.1}]
)
def test_options_are_checked(options):
    with pytest.raises(ValueError):
        mask_style(attribution(["a"], [1.0]), **options)


def test_copy_scores_one_and_unrelated_texts_low(classifier, encoder):
    sources = ["The stunning bridge opened in 1932."] * 3
    outputs = [sources[0], "The bridge opened in 1932.", "Two eggs are needed for the dough."]
    for unit in ("token", "word"):
        scored = content_preservation(
            sources, outputs, classifier=classifier, encoder=encoder, unit=unit
        )
        assert list(scored.columns) == ["cps", "masked_source", "masked_output"]
        assert (
            np.isclose(scored.cps[0], 1)
            and scored.cps[0] > scored.cps[1] > scored.cps[2]
            and scored.cps[2] < 0.3
        )


@pytest.mark.ci
def test_hostile_texts_are_scored(classifier, encoder):
    texts = ["", "[PAD]", "[CLS] [SEP]", "<script>x</script>", "שלום", "word " * 3000]
    with pytest.warns(UserWarning, match="cut at"):
        scored = content_preservation(texts, texts, classifier=classifier, encoder=encoder)
    assert np.isnan(scored.cps[0]) and np.allclose(scored.cps[1:], 1)  # of no text nothing is read


def test_unequal_lengths(classifier, encoder):
    with pytest.raises(ValueError, match="sources has 2, outputs has 1"):
        content_preservation(["a", "b"], ["a"], classifier=classifier, encoder=encoder)


def styled(scores, value):
    words = [f"w{place}" for place in range(len(scores))]
    a = attribution(words, scores)
    a.value = value
    return a


def test_neutral_texts_are_left_alone_on_request():
    assert masked_places(styled([0.9, 0.1, 0.1], 0.2), skip_neutral=True) == []
    assert masked_places(styled([0.9, 0.1, 0.1], 0.8), skip_neutral=True) == [0]
    assert masked_places(styled([0.3, 0.3, 0.3], 0.8), skip_neutral=True) == [], (
        "no word stands out"
    )
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
    assert masked_places(styled([1.0] * 12, 0.8), 0.5, by_length=True) == masked_places(
        styled([1.0] * 12, 0.8), 0.5
    )


def test_changes_reach_the_score(classifier, encoder):
    text = "Water boils at 100 degrees Celsius at sea level."
    plain, kept = (
        content_preservation(
            [text], [text], classifier=classifier, encoder=encoder, unit="word", changes=changes
        )
        for changes in (None, {"skip_neutral": True})
    )
    assert plain.masked_source[0] != text and kept.masked_source[0] == text
    for names in (["skip_neutral"], "skip_neutral", "skip_neutral, by_length"):
        again = content_preservation(
            [text], [text], classifier=classifier, encoder=encoder, unit="word", changes=names
        )
        assert again.masked_source[0] == text
    with pytest.raises(InputError, match="skip_all"):
        content_preservation(
            [text], [text], classifier=classifier, encoder=encoder, changes={"skip_all": True}
        )


def test_separation():
    assert (
        separation([0.9, 0.6], [0.7, 0.2]) == 0.75
        and separation([1, 1], [1]) == 0.5
        and separation([1], [2]) == 0
    )
    with pytest.raises(ValueError):
        separation([], [1])


def test_separation_of_many_scores_needs_little_memory():
    good, bad = np.random.default_rng(0).normal(size=(2, 20_000))
    tracemalloc.start()
    value = separation(good, bad)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert abs(value - 0.5) < 0.02 and peak < 20e6, "20,000 by 20,000 comparisons are 400 MB"


def test_separation_is_what_counting_gives():
    good, bad = np.random.default_rng(1).integers(0, 6, size=(2, 40))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert separation(good, bad) == pytest.approx(
            ((good[:, None] > bad) + 0.5 * (good[:, None] == bad)).mean()
        )
        assert separation([1, 1], [1, 1, 1]) == 0.5


def test_texts_that_are_cut_are_named(encoder):
    """Two texts of 60 equal sentences with opposite endings once got 1.0 without a word."""
    long = "The committee met in the old town hall on Monday morning. " * 60
    with pytest.warns(
        UserWarning, match="2 of 2 texts cut at 256 tokens, the limit of all-MiniLM-L6-v2"
    ):
        scored = content_preservation(
            [long + "It said yes."], [long + "It said no."], strategy="none", encoder=encoder
        )
    assert np.isclose(scored.cps[0], 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoder.encode(["A short text."])


@pytest.fixture(scope="module")
def folder(encoder, tmp_path_factory):
    """The embedded encoder in a folder as sentence-transformers lays it out."""
    path = tmp_path_factory.mktemp("encoder")
    encoder.model.save_pretrained(path)
    encoder.tokenizer.save_pretrained(path)
    (path / "1_Pooling").mkdir()
    return path


def lay_out(folder, pooling=None, limits=None, modules=("Transformer", "Pooling")):
    for name, content in {
        "1_Pooling/config.json": pooling,
        "sentence_bert_config.json": limits,
        "modules.json": [
            {"idx": n, "type": f"sentence_transformers.models.{m}"} for n, m in enumerate(modules)
        ],
    }.items():
        (folder / name).unlink(missing_ok=True)
        if content is not None:
            (folder / name).write_text(json.dumps(content))
    return str(folder)


def mode(**chosen):
    return {
        "word_embedding_dimension": 384,
        **{
            f"pooling_mode_{name}": name in chosen
            for name in (
                "cls_token",
                "mean_tokens",
                "max_tokens",
                "mean_sqrt_len_tokens",
                "lasttoken",
            )
        },
    }


def test_pooling_is_read_from_the_folder(encoder, folder):
    texts = ["A short text.", "A rather longer text, so that there is padding."]
    ids = encoder.tokenizer(texts, padding=True, return_tensors="pt")
    with torch.inference_mode():
        states = encoder.model(**ids).last_hidden_state
    mask = ids["attention_mask"][:, :, None]
    expected = {
        "mean_tokens": (states * mask).sum(1) / mask.sum(1),
        "cls_token": states[:, 0],
        "max_tokens": states.masked_fill(mask == 0, -1e9).amax(1),
        "mean_sqrt_len_tokens": (states * mask).sum(1) / mask.sum(1).sqrt(),
    }
    tags = set()
    for name, vectors in expected.items():
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            loaded = SentenceEncoder.load(lay_out(folder, mode(**{name: True})))
        assert np.allclose(loaded.encode(texts), vectors.numpy(), atol=1e-5), name
        tags.add(loaded.tag)
    assert len(tags) == len(expected), "two poolings sign alike"
    assert SentenceEncoder.load(lay_out(folder, {"pooling_mode": "cls"})).pooling == "cls"


def test_how_long_it_reads_is_read_from_the_folder(folder):
    for limit, read in ((32, 32), (400, 400), (None, 256)):
        loaded = SentenceEncoder.load(
            lay_out(
                folder,
                mode(mean_tokens=True),
                limit and {"max_seq_length": limit, "do_lower_case": False},
            )
        )
        assert loaded.max_tokens == read
    short = SentenceEncoder.load(lay_out(folder, mode(mean_tokens=True), {"max_seq_length": 32}))
    assert "32tokens" in short.tag
    with pytest.warns(UserWarning, match="cut at 32 tokens"):
        short.encode(["word " * 60])


def test_a_folder_that_does_not_say_how_it_pools_is_not_guessed_in_silence(folder):
    with pytest.warns(UserWarning, match="assuming the mean"):
        assert SentenceEncoder.load(lay_out(folder)).pooling == "mean"


@pytest.mark.parametrize(
    "layout",
    [
        {"pooling": mode(lasttoken=True)},
        {"pooling": mode(cls_token=True, mean_tokens=True)},
        {"pooling": mode()},
        {"pooling": mode(mean_tokens=True), "modules": ("Transformer", "Pooling", "Dense")},
    ],
)
def test_what_it_cannot_do_is_refused(folder, layout):
    with pytest.raises(AssetError):
        SentenceEncoder.load(lay_out(folder, **layout))


def test_a_further_layer_is_refused_by_its_name_and_a_normalised_encoder_is_read(folder):
    with pytest.raises(AssetError, match="has a layer Dense behind its pooling"):
        SentenceEncoder.load(
            lay_out(
                folder,
                mode(mean_tokens=True),
                modules=("Transformer", "Pooling", "Dense", "Normalize"),
            )
        )
    plain = SentenceEncoder.load(lay_out(folder, mode(cls_token=True)))
    scaled = SentenceEncoder.load(
        lay_out(folder, mode(cls_token=True), modules=("Transformer", "Pooling", "Normalize"))
    )
    sides = [
        ["A short text.", "Rain fell."],
        ["Another text, and a longer one.", "It rained all day."],
    ]
    assert np.allclose(
        cosine(*map(plain.encode, sides)), cosine(*map(scaled.encode, sides)), atol=1e-6
    ), "a cosine does not see the length"


@pytest.mark.parametrize("pooling", ["cls_token", "mean_tokens", "max_tokens"])
def test_a_tiny_encoder_pools_as_is_computed_by_hand(tmp_path, pooling):
    """An encoder of two layers with random weights, made here; the vectors come from its hidden states by NumPy
    alone."""
    import transformers

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "bridge", "opened", "again", "."]
    (tmp_path / "vocab.txt").write_text("\n".join(words))
    transformers.BertTokenizerFast(str(tmp_path / "vocab.txt")).save_pretrained(tmp_path)
    torch.manual_seed(0)
    module = transformers.BertModel(
        transformers.BertConfig(
            vocab_size=len(words),
            hidden_size=8,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=16,
            max_position_embeddings=32,
        )
    ).eval()
    module.save_pretrained(tmp_path)
    (tmp_path / "1_Pooling").mkdir()
    loaded = SentenceEncoder.load(lay_out(tmp_path, mode(**{pooling: True}), {"max_seq_length": 6}))
    for text, ids in (("the bridge opened .", [2, 5, 6, 7, 9, 3]), ("again", [2, 8, 3])):
        with torch.inference_mode():
            states = module(torch.tensor([ids])).last_hidden_state[0].numpy()
        by_hand = {
            "cls_token": states[0],
            "mean_tokens": states.mean(0),
            "max_tokens": states.max(0),
        }[pooling]
        assert np.allclose(loaded.encode([text, "the bridge opened ."])[0], by_hand, atol=1e-5)
    assert loaded.max_tokens == 6


def test_words_that_push_away_stay_at_full_threshold():
    """At a threshold of 1 units without any share were masked too, and with `positive_only` those that push away."""
    assert masked_places(styled([-0.9, 0.5, 0.1], 0.8), 1.0, positive_only=True) == [1, 2]
    assert style_places([0.4, 0.0, 0.2], 1.0) == [0, 2]


def test_a_lexicon_masks_its_words_and_no_others():
    lexicon = style_lexicon(
        pd.DataFrame({"source": ["a great film", "great news"], "target": ["a film", "news"]}),
        size=1,
    )
    found = lexicon.attribute(["A Great day, truly great.", "A day."])
    assert [mask_style(a, 1.0, unit="word") for a in found] == [
        "A [PAD] day, truly [PAD].",
        "A day.",
    ]
    assert mask_style(found[0], 1.0, "remove", "word") == "A day, truly."


SENTENCE = "The stunning bridge opened in 1932."
REWRITE = "The bridge opened in 1932."
TABLE = pd.DataFrame({"source": [SENTENCE] * 2, "output": [REWRITE, "Two eggs."]}, index=[5, 3])


def test_metric_scores_as_the_function_does(classifier, encoder):
    scores = Cps(unit="word").score(TABLE, Models({"style": classifier, "encoder": encoder}))
    expected = content_preservation(
        TABLE.source, TABLE.output, classifier=classifier, encoder=encoder, unit="word"
    )
    pd.testing.assert_frame_equal(scores.frame, expected)
    assert list(scores.frame) == [
        "cps",
        "masked_source",
        "masked_output",
    ] and Cps.columns == ("cps",)


@pytest.mark.ci
def test_signature_changes_with_every_option(classifier, encoder):
    known = complete_attributions([SENTENCE, REWRITE, "Two eggs."], classifier)
    fine = dict(zip(known, integrated_gradients(classifier, list(known), steps=3)))
    lexicons = [style_lexicon(load_pairs().query("split == 'train'"), size=size) for size in (5, 9)]
    settings = [
        {"strategy": "pad"},
        {"threshold": 0.31},
        {"strategy": "remove"},
        {"strategy": "none"},
        {"unit": "word"},
        {"changes": ["by_length"]},
        {"changes": ["skip_neutral"]},
        {"attributions": fine},
        {"attributions": "occlusion"},
        {"attributions": "lexicon"},
        *({"attributions": lexicon} for lexicon in lexicons),
    ]

    def sign(options):
        return Cps(**options).sign(TABLE, Models({"style": classifier, "encoder": encoder}))

    signatures = [sign(options) for options in settings]
    assert len(set(signatures)) == len(signatures)
    assert (
        signatures[0]
        == sign({"changes": {"by_length": False}})
        == sign({"attributions": known})
        == sign({"threshold": 0.3})
        == sign({"unit": "token"})
    )
    assert (
        encoder.tag in signatures[0]
        and classifier.tag in signatures[0]
        and "ig-pad-adaptive-0.05" in signatures[0]
    )
    assert (
        signatures[3] == sign({})
        and classifier.tag not in signatures[3]
        and "lexicon-5@" in signatures[-2]
    )


@pytest.mark.parametrize(
    "options",
    [
        {"strategy": "delete"},
        {"unit": "letter"},
        {"threshold": 2},
        {"changes": ["x"]},
        {"attributions": "guess"},
        {"attributions": 3},
    ],
)
def test_bad_options_are_refused_before_a_model_is_loaded(options):
    with pytest.raises(InputError):
        Cps(**options)


def test_an_option_that_there_is_not_is_named():
    with pytest.raises(InputError, match="no option 'shape'; its options are strategy, threshold"):
        find_metric("cps:shape=1")


def test_rows_are_counted_from_0():
    with pytest.raises(TypeError, match=r"outputs, row 1"):
        content_preservation(["a", "b"], ["a", None])


def test_no_rows(classifier, encoder):
    assert len(content_preservation([], [], classifier=classifier, encoder=encoder)) == 0


@pytest.mark.filterwarnings("ignore:.*do not add up")
@pytest.mark.parametrize("family", tiny.DECODERS)
def test_a_decoder_that_finds_the_style_scores_each_row_by_itself(family, encoder):
    decoder = StyleClassifier(tiny.module(family), tiny.tokenizer(framed=False), family)
    sources = tiny.TEXTS
    outputs = [*tiny.TEXTS[1:], tiny.TEXTS[0]]
    together = content_preservation(sources, outputs, classifier=decoder, encoder=encoder)
    for row, pair in enumerate(zip(sources, outputs)):
        alone = content_preservation(
            *([text] for text in pair), classifier=decoder, encoder=encoder
        )
        assert alone.masked_source[0] == together.masked_source[row] and np.isclose(
            alone.cps[0], together.cps[row], atol=1e-6
        )
