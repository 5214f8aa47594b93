"""Chapter 21: toxicity, acceptability, formality, and any classifier by name."""

import math
import os
import re
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsteval.core.assets import ASSETS, AssetError, packaged_path
from tsteval.core.files import file_sha256
from tsteval.core.metric import find_metric
from tsteval.models.roles import Models
from tsteval.tone import (
    LIKELIHOOD,
    READ_LAYERS,
    Acceptability,
    AcceptabilityModel,
    Toxicity,
    acceptability,
    begins_small,
    character_ngrams,
    formality,
    formality_features,
    informal_words,
    likelihood_signs,
    mean_logprobs,
    ngram_probability,
    toxicity,
)
from tsteval.training.logistic import LETTER_GROUPS, letter_groups, letter_groups_tag, load_curve
from tsteval.words.english import parse

HUB_MODELS = {
    "toxicity": (toxicity, ["toxic", "severe_toxic", "obscene"], "multi_label_classification"),
    "acceptability": (acceptability, ["LABEL_0", "LABEL_1"], None),
    "formality": (formality, ["formal", "informal"], None),
}
TEXTS = [
    "The mill was built in 1871.",
    "",
    "😀 <b>x</b> \ud83d",
    "[PAD] [CLS] text",
    "What's up doc?",
]


def save_tiny_classifier(folder, labels, problem_type=None, seed=0):
    """A classifier with random weights and a word tokenizer, saved as the hub's models are."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

    torch.manual_seed(seed)
    words = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        *["the", "mill", "was", "built", "in", "what", "up", "doc", "answer", "is"],
    ]
    tokenizer = Tokenizer(
        models.WordLevel({word: place for place, word in enumerate(words)}, unk_token="[UNK]")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_max_length=32,
    ).save_pretrained(folder)
    model = BertForSequenceClassification(
        BertConfig(
            vocab_size=len(words),
            hidden_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=16,
            max_position_embeddings=32,
            id2label=dict(enumerate(labels)),
            problem_type=problem_type,
            initializer_range=1.0,
        )
    )
    model.save_pretrained(folder)
    return model.eval(), PreTrainedTokenizerFast.from_pretrained(folder)


@pytest.mark.parametrize("name", HUB_MODELS)
def test_hub_path_gives_the_probability_of_the_right_label(name, tmp_path):
    import torch

    score, labels, problem_type = HUB_MODELS[name]
    model, tokenizer = save_tiny_classifier(tmp_path, labels, problem_type)
    texts = ["the mill was built", "what is the answer", "doc"]
    expected = []
    for text in texts:
        logits = model(**tokenizer(text, return_tensors="pt")).logits[0].double()
        values = (logits.sigmoid() if problem_type else logits.softmax(0)).tolist()
        label = {"toxicity": "toxic", "acceptability": "LABEL_1", "formality": "formal"}[name]
        expected.append(values[labels.index(label)])
    found = score(texts, model=str(tmp_path))
    assert found.dtype == float and np.allclose(found, expected, atol=1e-6) and np.ptp(found) > 1e-3
    with torch.inference_mode():
        assert np.allclose(
            score(texts[::-1] * 3, model=str(tmp_path)), (expected[::-1] * 3), atol=1e-6
        )


PAGE = {
    "toxicity": (
        "bert",
        toxicity,
        ["toxic", "severe_toxic", "obscene", "threat", "insult"],
        "toxic",
    ),
    "acceptability": ("roberta", acceptability, ["LABEL_0", "LABEL_1"], "LABEL_1"),
    "formality": ("roberta", formality, ["formal", "informal"], "formal"),
    "avoided": ("bert", None, ["answered", "avoided"], "avoided"),
}


@pytest.mark.parametrize("name", PAGE)
def test_a_stand_in_of_each_of_the_pages_models_loads_by_its_folder(name, tmp_path):
    """Tiny models of the four architectures that the page names, with the labels of their cards."""
    import torch

    from tests.models import tiny
    from tsteval.answers import avoided_answer

    family, score, labels, label = PAGE[name]
    many = "multi_label_classification" if name == "toxicity" else "single_label_classification"
    module = tiny.module(
        family,
        id2label=dict(enumerate(labels)),
        label2id={one: i for i, one in enumerate(labels)},
        problem_type=many,
    )
    module.save_pretrained(tmp_path)
    tokenizer = tiny.tokenizer(True)
    tokenizer.save_pretrained(tmp_path)
    texts = tiny.TEXTS[:3]
    if name == "avoided":
        found = avoided_answer(texts, texts, model=str(tmp_path))
        encoded = [tokenizer(one, one) for one in texts]
    else:
        found = score(texts, model=str(tmp_path))
        encoded = [tokenizer(one) for one in texts]
    for value, one in zip(found, encoded):
        with torch.inference_mode():
            logits = module.eval()(input_ids=torch.tensor([one["input_ids"]])).logits[0].double()
        expected = logits.sigmoid() if name == "toxicity" else logits.softmax(0)
        assert np.isclose(value, expected[labels.index(label)].item(), atol=1e-5)


def test_a_label_that_is_not_there_is_refused(tmp_path):
    save_tiny_classifier(tmp_path, ["good", "bad"])
    with pytest.raises(ValueError, match="no label 'toxic'; its labels are good, bad"):
        toxicity(["text"], model=str(tmp_path))


def test_a_model_that_cannot_be_had_is_an_error_and_no_fallback(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    for score in (toxicity, acceptability, formality):
        with pytest.raises(AssetError, match="nobody/no-such-model"):
            score(["text"], model="nobody/no-such-model")


@pytest.mark.parametrize("score", [toxicity, acceptability, formality])
def test_texts_of_every_kind(score):
    values = score(TEXTS)
    assert values.shape == (5,) and values.dtype == float
    some = ~np.isnan(values)
    assert (
        some.tolist() == [True, False, True, True, True]
        and ((values[some] >= 0) & (values[some] <= 1)).all()
    )
    assert score([]).shape == (0,)
    assert np.allclose(score(TEXTS[::-1])[::-1], values, atol=1e-5, equal_nan=True)
    with pytest.raises(TypeError, match="row 1"):
        score(["fine", None])
    with pytest.raises(TypeError, match="list"):
        score("one string")


@pytest.mark.parametrize(
    "plain, drawn_out",
    [
        ("It was built in 2000.", "It was built in Sooome."),
        ("See www now.", "See wwww now."),
        ("Henry VIII reigned.", "Henry Viiie reigned."),
    ],
)
def test_numerals_are_not_drawn_out_letters(plain, drawn_out):
    shares = [formality_features(document)[1] for document in parse([plain, drawn_out]).values()]
    assert shares[0] == 0 < shares[1]


def test_no_words_no_tone():
    for score in (toxicity, acceptability, formality):
        assert np.isnan(score(["", "...", " "])).all()


def test_the_pages_examples_come_out_in_its_order():
    assert np.all(
        np.diff(
            toxicity(
                ["Hello! How can I help you today?", "You have been a bad user!", "I hate you!"]
            )
        )
        > 0.1
    )
    fluent = [
        "Natural language processing is an interdisciplinary subfield of linguistics, computer science, "
        "and artificial intelligence.",
        "Pass on what you have learned. Strength, mastery, hmm… but weakness, folly, failure, also. Yes, "
        "failure, most of all. The greatest teacher, failure is.",
        "Whispering dreams, forgotten desires, chaotic thoughts, dance with words, meaning elusive, swirling "
        "amidst.",
    ]
    assert np.all(np.diff(acceptability(fluent, model=LIKELIHOOD)) < -0.05)
    first, *others = acceptability(fluent)  # of the other two the head prefers the heap of phrases
    assert first > 0.9 and max(others) < 0.7
    assert np.all(
        np.diff(
            formality(
                [
                    "I hope this email finds you well",
                    "I hope this email find you swell",
                    "What's up doc?",
                ]
            )
        )
        < 0
    )


# toxicity


def test_weights_give_the_pencils_value():
    assert np.allclose(
        ngram_probability([{"ab": 2, "cd": 1}, {}], {"ab": 1, "cd": 2}, {"ab": 3, "cd": -1}, -1),
        [1 / (1 + np.exp(1 - 2 / 2**0.5)), 1 / (1 + np.e)],
    )


@settings(deadline=None)
@given(st.text(alphabet="ab é", max_size=30))
def test_character_groups_by_brute_force(text):
    expected = Counter()
    for word in text.split():
        framed = f" {word} "
        for size in (2, 3, 4):
            groups = {
                (start, framed[start : start + size])
                for start in range(len(framed))
                if start == 0 or start + size <= len(framed)
            }
            if size <= len(framed) or (len(framed) < size and framed not in expected):
                expected.update(group for _, group in groups)
            if len(framed) <= size:
                break
    assert character_ngrams(text) == expected


def test_character_groups_and_scores_agree_with_scikit_learn():
    text = pytest.importorskip(
        "sklearn.feature_extraction.text", reason="a check against a library that is not required"
    )
    analyse = text.CountVectorizer(analyzer="char_wb", ngram_range=(2, 4)).build_analyzer()
    for line in pd.read_json(packaged_path("toxicity_lines.jsonl"), lines=True).text:
        assert character_ngrams(line.lower()) == Counter(analyse(line))


def test_stored_scores_are_those_of_the_default():
    """The table of candidates was made with scikit-learn from the same wheel."""
    lines = pd.read_json(packaged_path("toxicity_lines.jsonl"), lines=True)
    stored = pd.read_csv(packaged_path("toxicity_candidates.csv"))
    assert np.allclose(
        toxicity(lines.text), stored["toxicityclassifier, stop words kept"], atol=1e-6
    )
    assert len(stored) == len(lines) == 60 and lines.toxic.sum() == 30 and stored.shape[1] == 7


def test_default_separates_the_lines_better_than_chance():
    lines = pd.read_json(packaged_path("toxicity_lines.jsonl"), lines=True)
    scores = toxicity(lines.text)
    high = scores[lines.toxic == 1][:, None]
    low = scores[lines.toxic == 0]
    assert np.mean(high > low) > 0.8
    assert (scores[lines.kind == "harmless"] < 0.5).all()


def same_curve(name, made):
    stored = load_curve(name)
    exact = ("features", "examples", "model", "text_sha256")
    assert {key: getattr(stored, key) for key in exact} == {key: made[key] for key in exact}, (
        "write the curve again"
    )
    assert np.allclose(
        [stored.intercept, *stored.coefficients],
        [made["intercept"], *made["coefficients"]],
        rtol=1e-3,
        atol=1e-3,
    )
    assert stored.log_loss == pytest.approx(
        made["log_loss"], abs=1e-3
    ) and stored.log_loss < np.log(2)


@pytest.mark.ci
def test_stored_curve_of_fluency_is_that_of_the_minimal_pairs(making):
    same_curve("acceptability", making("property_curves").acceptability_curve())


@pytest.mark.skipif(
    not os.path.isdir(os.environ.get("TSTEVAL_DATA", "") + "/pt16_formality"),
    reason="needs the ratings of Pavlick and Tetreault (2016) in TSTEVAL_DATA",
)
def test_stored_curve_of_formality_is_that_of_the_ratings(making):
    same_curve("formality", making("property_curves").formality_curve())


def test_no_curve_overflows():
    """Once exp(1000) was taken, with a warning."""
    assert ngram_probability([{"a": 1}] * 2, {"a": 1.0}, {"a": -1e4}, 0.0).tolist() == [0, 0]


# acceptability


def test_signs_of_likelihood_by_pencil():
    mean, lowest, spread, penalized, size = likelihood_signs(np.array([-1.0, -3.0]))
    assert (mean, lowest, spread, size) == (-2, -3, 1, np.log(2))
    assert penalized == pytest.approx(-4 / (7 / 6) ** 0.8)
    assert np.isnan(likelihood_signs(np.array([]))).all()


def test_acceptability_is_the_heads_logistic_of_signs_and_states(language_model):
    model = AcceptabilityModel.load()
    texts = ["The mill was built in 1871.", "Mill the in built was 1871."]
    rows = language_model.read_states(texts, READ_LAYERS)
    for value, (states, logprobs) in zip(acceptability(texts), rows):
        evidence = np.r_[likelihood_signs(logprobs), states.ravel()]
        assert value == pytest.approx(1 / (1 + np.exp(-(evidence @ model.weight + model.bias))))
    assert np.diff(acceptability(texts))[0] < -0.2


def test_what_is_not_in_latin_letters_has_no_acceptability():
    texts = ["Мельница стоит у реки.", "水车建于1871年。", "😀😀", "1871", "", "\u200b", "Ça va"]
    for model in ({}, {"model": LIKELIHOOD}):
        assert np.isnan(acceptability(texts, **model)).tolist() == [True] * 6 + [False]


def test_what_is_not_in_latin_letters_has_no_toxicity():
    assert (
        np.isnan(toxicity(["水车", "😀", "Мельница", "1871"])).all() and toxicity(["1d10t"])[0] > 0
    )


def test_acceptability_of_a_row_is_its_own():
    texts = ["It rained.", "It rain.", "A " + "very " * 40 + "long road.", "It rained.", "x"]
    values = acceptability(texts)
    order = [3, 1, 4, 0, 2]
    moved = acceptability([texts[place] for place in order], batch_size=2)
    assert np.allclose(moved, values[order], atol=1e-5) and values[0] == values[3]


def test_a_text_beyond_the_window_has_an_acceptability():
    assert 0 <= acceptability(["It rained all day in the town. " * 400])[0] <= 1


def test_the_old_way_of_acceptability_can_be_chosen(language_model):
    texts = ["It rained.", "It the rain."]
    curve = load_curve("acceptability").probability(mean_logprobs(language_model, texts))
    for model in (LIKELIHOOD, language_model):
        assert np.allclose(acceptability(texts, model=model), curve)
        table = pd.DataFrame({"output": texts})
        scores = Acceptability(model).score(table, Models())
        assert np.allclose(scores.frame.acceptability, curve)
    assert "curve:" in Acceptability(LIKELIHOOD).sign(table, Models())
    assert "curve:None" not in Acceptability().sign(table, Models())


def test_card_of_acceptability_holds_what_it_claims():
    folder = packaged_path("acceptability-smollm2")
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert file_sha256(folder / "head.safetensors") in card and "CC BY-NC-SA 4.0" in card
    assert sum(path.stat().st_size for path in folder.iterdir()) < 3_000_000
    assert {path.suffix for path in folder.iterdir()} == {".json", ".safetensors", ".md"}
    people = pd.read_csv(packaged_path("property_people.csv")).query("property == 'acceptability'")
    assert all(
        f"| {row.way} | {row.value:.3f} | {row.low:.3f} |" in card for row in people.itertuples()
    )


# whether they follow people


def needs_tables(name):
    """The set, where this machine has the very tables on which the figures that ship were computed."""
    from tsteval.tables.rated_sets import same_tables

    try:
        same = same_tables(name)
    except AssetError as error:
        pytest.skip(f"{name} is not on this machine: {error}")
    if not same:
        pytest.skip(f"the tables of {name} on this machine are not those of the figures")


def shipped(way, data, measure):
    people = pd.read_csv(packaged_path("property_people.csv"))
    (row,) = people.query("way == @way and data == @data and measure == @measure").itertuples()
    return row


@pytest.mark.ci
def test_the_shipped_figures_of_toxicity_are_those_of_the_data(making):
    for name in ("hatecheck", "paradetox"):
        needs_tables(name)
    found = pd.DataFrame(making("property_people").toxicity_rows())
    stored = pd.read_csv(packaged_path("property_people.csv")).query("property == 'toxicity'")
    stored = stored[stored.way.isin(found.way)]
    assert np.allclose(found[["value", "low", "high"]], stored[["value", "low", "high"]], atol=2e-3)


@pytest.mark.ci
@pytest.mark.parametrize("name, part", [("gug", "test"), ("cola", "out_of_domain_dev")])
def test_the_shipped_figures_of_acceptability_are_those_of_the_data(name, part, making):
    needs_tables(name)
    module = making("property_people")
    rows = module.once(name).query("part == @part")
    measure = {"gug": module.pearson, "cola": module.auc}[name]
    found = measure(rows.rating, acceptability(list(rows.output)), rows.item)
    data = {"gug": "gug, test", "cola": "cola, out of domain"}[name]
    row = shipped("acceptability", data, {"gug": "r", "cola": "AUC"}[name])
    assert found["value"] == pytest.approx(row.value, abs=2e-3) and found["n"] == row.n


@pytest.mark.ci
def test_the_shipped_functions_of_hatecheck_are_those_of_the_data():
    needs_tables("hatecheck")
    from tsteval.tables.ratings import load_ratings

    cases = load_ratings("hatecheck")
    right = (toxicity(list(cases.output)) > 0.5) == (cases.rating == 1)
    stored = pd.read_csv(packaged_path("tone_hatecheck.csv")).set_index("function")
    found = right.groupby(cases.functionality).mean()
    assert np.allclose(found[stored.index], stored.toxicity, atol=1e-3)
    hateful = stored[stored.hateful == 1]
    published = np.average(hateful.perspective, weights=hateful.n_published)
    assert published == pytest.approx(0.895, abs=5e-4)  # Röttger et al. 2021, table 1


def test_the_scores_of_learners_sentences_give_the_stored_correlation():
    needs_tables("gug")
    from tsteval.tables.ratings import load_ratings

    rated = load_ratings("gug").query("part == 'test'")
    scores = pd.read_csv(packaged_path("tone_gug.csv"))
    found = np.corrcoef(scores.acceptability, rated.rating)[0, 1]
    assert found == pytest.approx(shipped("acceptability", "gug, test", "r").value, abs=1e-3)


def test_what_toxicity_says_of_itself_is_what_was_measured():
    table = pd.read_csv(packaged_path("evidence.csv"))  # as the README and the chapter have it
    asked = "data_set == 'hatecheck' and score == 'toxicity' and measure == 'auc'"
    (row,) = table.query(asked).itertuples()
    assert (
        row.low < 0.5 < row.high
    )  # once it is not, the words that call it chance are to be changed
    words = " ".join(toxicity.__doc__.split())
    assert f"AUC {row.value:.2f}, {row.low:.2f} to {row.high:.2f}" in words
    for text in (Toxicity.description, Toxicity.methods):
        assert "hatred" in text


# formality


def features_of(text):
    return formality_features(parse([text])[text])


def test_formality_counts_by_pencil():
    assert np.allclose(features_of("I hope this email finds you well"), (50 * (1 - 4 / 7), 0))
    assert features_of("The cat")[0] == 100  # an article and a noun
    assert features_of("Anna's dog")[1] == 0 and features_of("it's gone")[1] > 0
    assert features_of("So cool!!")[1] > features_of("So cool!")[1] > features_of("So cool")[1]
    assert features_of("soooo late")[1] == 0.5
    assert np.isnan(features_of("?!")).all()


def test_pairs_are_in_order():
    pairs = pd.read_json(packaged_path("formality_pairs.jsonl"), lines=True)
    formal = formality(pairs.formal)
    casual = formality(pairs.informal)
    assert len(pairs) == 40 and np.mean(formal > casual) >= 0.95
    assert not set(pairs.formal) & set(pairs.informal)


def test_formality_puts_the_pages_examples_on_the_right_side_of_one_half():
    """The shares of parts of speech gave the first one 0.20; the page gives 0.79, 0.28 and 0.14."""
    found = formality(
        ["I hope this email finds you well", "I hope this email find you swell", "What's up doc?"]
    )
    assert found[0] > 0.5 > found[1] > found[2] and np.abs(found - [0.79, 0.28, 0.14]).max() < 0.15


def test_formality_sees_a_small_first_letter():
    assert begins_small(["i know", "I know", '"well, no', "1871 was", "", "42"]).tolist() == [
        1,
        0,
        1,
        1,
        0,
        0,
    ]
    small, capital = formality(["i know the way.", "I know the way."])
    assert small < capital


def test_card_of_formality_holds_what_it_claims():
    folder = packaged_path("formality-minilm")
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert file_sha256(folder / "adapter_model.safetensors") in card and "CC BY 3.0" in card
    row = next(line for line in card.splitlines() if line.startswith("| formality |"))
    assert float(row.split("|")[2]) > 0.75
    assert sum(path.stat().st_size for path in folder.iterdir()) < 1_000_000
    assert {path.suffix for path in folder.iterdir()} == {".json", ".safetensors", ".md"}


@pytest.mark.skipif(
    not os.path.isdir(os.environ.get("TSTEVAL_DATA", "") + "/pt16_formality"),
    reason="needs the ratings of Pavlick and Tetreault (2016) in TSTEVAL_DATA",
)
def test_formality_follows_the_ratings_that_were_held_out(making):
    module = making("formality_model")
    held_out = module.load_ratings().query("split == 'test'").head(300)
    value, low, _ = module.spearman(formality(held_out.text), held_out.rating)
    assert value > 0.72 and low > 0.65


def test_the_adapter_loads_as_a_classifier():
    from tsteval.style import StyleClassifier

    classifier = StyleClassifier.load("formality-minilm")
    assert classifier.labels == ("informal", "formal")
    texts = [
        "Pursuant to the agreement, the lessee shall return the keys upon termination of the lease.",
        "The lessee shall return the keys.",
        "gimme the keys lol",
    ]
    most, middle, least = classifier.predict_proba(texts)[
        :, 1
    ]  # one half is the median of the rated sentences
    assert most > 0.9 > middle > 0.5 > least


def test_informal_words_are_single_small_words():
    words = informal_words()
    assert len(words) > 100 and all(word == word.lower() and " " not in word for word in words)
    assert not words & {"the", "is", "not", "report", "please"}


# as metrics


def test_metrics_equal_the_functions_and_name_their_models():
    table = pd.DataFrame({"output": ["Anna Berg built it.", "that's a gr8 question!"]})
    patterns = {
        "toxicity": "toxicity-ngrams@8bf5a2ba26",
        "acceptability": "acceptability-smollm2@.*SmolLM2-135M-Instruct@b179c9523d0e",
        "formality": "curve:.*formality-minilm@",
    }
    functions = {"toxicity": toxicity, "acceptability": acceptability, "formality": formality}
    for name, pattern in patterns.items():
        metric = find_metric(name)
        models = Models(batch_size=1)
        scores = metric.score(table, models)
        expected = functions[name](table.output)
        assert np.allclose(scores.frame[name], expected, atol=1e-5)
        assert re.search(pattern, metric.sign(table, models)), metric.sign(table, models)
        assert models.used and all(identity for identity in models.used.values())


def test_signature_changes_with_the_model_that_is_named(tmp_path):
    table = pd.DataFrame({"output": ["the mill"]})
    signatures = set()
    for seed in (0, 1):
        save_tiny_classifier(tmp_path / str(seed), ["toxic", "fine"], seed=seed)
        signatures.add(Toxicity(str(tmp_path / str(seed))).sign(table, Models()))
    assert len(signatures | {Toxicity().sign(table, Models())}) == 3


def test_weights_that_were_saved_into_a_used_folder_are_seen(tmp_path):
    """Once the first model of a folder was kept for good."""
    found = []
    for seed in (0, 1):
        save_tiny_classifier(tmp_path, ["toxic", "fine"], seed=seed)
        found.append(toxicity(["the mill was built"], model=str(tmp_path))[0])
    assert abs(found[0] - found[1]) > 1e-6


def test_toxicity_takes_no_word_that_it_does_not_know():
    with pytest.raises(TypeError, match="modle"):
        toxicity(["text"], modle="unitary/toxic-bert")
    assert toxicity(["text"], batch_size=1)[0] == toxicity(["text"])[0]


# ---- the weights of the default model of toxicity


def test_every_group_has_a_weight_and_a_frequency():
    groups = letter_groups()
    assert set(groups.idf) == set(groups.weights) and len(groups.idf) == 68_324
    assert all(
        type(value) is not object and math.isfinite(value)
        for value in [*groups.idf.values(), *groups.weights.values()]
    )
    assert min(groups.idf.values()) >= 1 and groups.intercept < 0 and letter_groups() is groups


def test_insults_weigh_more_than_thanks():
    weights = letter_groups().weights

    def mean(word):
        return sum(weights.get(f" {word} "[at : at + 3], 0) for at in range(len(word)))

    assert mean("idiot") > 0 > mean("thank")


def test_the_tag_names_the_wheel():
    assert letter_groups_tag() == f"{LETTER_GROUPS}@{ASSETS[LETTER_GROUPS].sha256[:12]}"
