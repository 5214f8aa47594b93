"""Moving and matching words by their vectors: the formulas, the peers, hostile input, signatures."""

import json

import numpy as np
import ot
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strategies import OUTPUTS, REFERENCES
from tsteval import alignment
from tsteval.core.checks import InputError, InputTypeError
from tsteval.core.metric import METRICS
from tsteval.cps import SentenceEncoder, content_preservation
from tsteval.evaluation import evaluate
from tsteval.models import alignment as parts
from tsteval.models.roles import Models
from tsteval.tables.outputs import prepare_pairs
from tsteval.text import tokenize

FLAT = [texts[0] for texts in REFERENCES]


@pytest.fixture(scope="module")
def encoder():
    return SentenceEncoder.load()


# ---- moving


def test_wmd_is_pots_on_the_whole_problem(encoder):
    ours = alignment.word_movers_distance(OUTPUTS[:4], FLAT[:4], encoder=encoder)
    for found, pair in zip(ours, zip(OUTPUTS, FLAT)):
        (p, x), (q, y) = (naive_heap(encoder, tokenize(text)) for text in pair)
        cost = np.array([[np.linalg.norm(a - b) for b in y] for a in x])
        assert abs(found - ot.emd2(p, q, cost)) < 1e-6


def naive_heap(encoder, words):
    table = encoder.model.get_input_embeddings().weight.detach().double().numpy()
    types = sorted(set(words))
    ids = [encoder.tokenizer(word, add_special_tokens=False)["input_ids"] for word in types]
    vectors = np.array([table[row].mean(axis=0) for row in ids])
    return np.array([words.count(word) / len(words) for word in types]), vectors / np.linalg.norm(
        vectors, axis=1, keepdims=True
    )


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=12),
    st.lists(st.integers(0, 9), min_size=1, max_size=12),
    st.integers(0, 99),
)
def test_leaving_shared_words_where_they_are_changes_no_price(a, b, seed):
    heaps = parts.word_heaps([list(map(str, a)), list(map(str, b))])
    vectors = parts.unit_rows(np.random.default_rng(seed).normal(size=(len(heaps.words), 4)))
    cost = parts.distances(vectors[heaps.places[0]], vectors[heaps.places[1]])
    whole = ot.emd2(*heaps.shares, cost)
    assert abs(parts._moving_price(heaps, vectors, 0, 1) - whole) < 1e-6


def test_wmd_of_equal_empty_and_reordered_texts(encoder):
    found = alignment.word_movers_distance(
        ["a b", "", "", "b a", "\u200b"], ["a b", "", "a", "a b", "a"], encoder=encoder
    )
    assert found[[0, 1, 3]].tolist() == [0, 0, 0] and found[2] == 2 and np.isclose(found[4], 1)


def test_wmd_takes_the_nearest_reference_and_drops_stop_words(encoder):
    near, far = (
        alignment.word_movers_distance(["a gift"], [text], encoder=encoder)[0]
        for text in ("a present", "the bridge")
    )
    assert (
        near < far
        and alignment.word_movers_distance(
            ["a gift"], [["the bridge", "a present"]], encoder=encoder
        )[0]
        == near
    )
    for stop_words in (("a", "THE"), "a, the"):
        assert (
            alignment.word_movers_distance(
                ["the gift"], ["A gift"], encoder=encoder, stop_words=stop_words
            )[0]
            == 0
        )


def test_blocks_of_pairs_change_no_price(encoder, monkeypatch):
    whole = alignment.word_movers_distance(OUTPUTS, REFERENCES, encoder=encoder)
    monkeypatch.setattr(parts, "_BLOCK_PAIRS", 2)
    np.testing.assert_allclose(
        alignment.word_movers_distance(OUTPUTS, REFERENCES, encoder=encoder), whole, atol=1e-12
    )


# ---- vectors in their sentence


def hidden(encoder, text, layer):
    """Straight from the library: ids and vectors of one text, alone."""
    import torch

    batch = encoder.tokenizer([text.strip()], return_tensors="pt")
    with torch.inference_mode():
        states = encoder.model(**batch, output_hidden_states=True).hidden_states[layer][0]
    return batch["input_ids"][0].tolist(), torch.nn.functional.normalize(
        states.double(), dim=-1
    ).numpy()


def plain_bert_score(encoder, output, reference, layer, idf=None):
    """The definition, one pair at a time."""
    (ids, x), (others, y) = (hidden(encoder, text, layer) for text in (output, reference))
    marks = (encoder.tokenizer.cls_token_id, encoder.tokenizer.sep_token_id)
    if len(ids) == 2 or len(others) == 2:
        return np.nan, np.nan, np.nan  # nothing is read, so there is nothing to match
    weights = [
        np.array([0.0 if token in marks else 1.0 if idf is None else idf(token) for token in row])
        for row in (ids, others)
    ]
    cosines = x @ y.T
    precision = (cosines.max(axis=1) * weights[0]).sum() / weights[0].sum()
    recall = (cosines.max(axis=0) * weights[1]).sum() / weights[1].sum()
    return precision, recall, 2 * precision * recall / (precision + recall)


@pytest.mark.parametrize("layer", [0, 3, 6])
def test_bert_score_is_the_definition(encoder, layer):
    ours = alignment.bert_score(OUTPUTS, FLAT, encoder=encoder, layer=layer)
    for row, pair in enumerate(zip(OUTPUTS, FLAT)):
        np.testing.assert_allclose(
            ours.iloc[row], plain_bert_score(encoder, *pair, layer), atol=1e-5
        )


def test_bert_score_with_idf_is_the_definition(encoder):
    ours = alignment.bert_score(OUTPUTS, FLAT, encoder=encoder, layer=4, idf=True)
    sets = [set(encoder.tokenizer(text)["input_ids"]) for text in FLAT]

    def idf(token):
        return np.log((len(FLAT) + 1) / (sum(token in ids for ids in sets) + 1))

    for row in (0, 1, 2, 7):
        np.testing.assert_allclose(
            ours.iloc[row], plain_bert_score(encoder, OUTPUTS[row], FLAT[row], 4, idf), atol=1e-5
        )


@pytest.fixture
def roberta(tmp_path):
    """The folder of a tiny RoBERTa of random weights, whose pieces hold the space before a word."""
    from tokenizers import ByteLevelBPETokenizer
    from transformers import RobertaConfig, RobertaModel, RobertaTokenizer

    pieces = ByteLevelBPETokenizer()
    marks = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    pieces.train_from_iterator([*OUTPUTS, *FLAT] * 3, vocab_size=400, special_tokens=marks)
    pieces.save_model(str(tmp_path))
    RobertaTokenizer.from_pretrained(tmp_path, model_max_length=100).save_pretrained(tmp_path)
    torch.manual_seed(0)
    shape = {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 32}
    config = RobertaConfig(
        vocab_size=400, num_hidden_layers=4, max_position_embeddings=120, **shape
    )
    RobertaModel(config).save_pretrained(tmp_path)
    return tmp_path


def check_against_the_peer(folder, encoder, layer, references, baseline=None, **options):
    """Their numbers and ours for the outputs that have a text: theirs of an empty one are 0, ours none."""
    peer = pytest.importorskip("bert_score", reason="needs bert-score, of the extra dev")
    rows = [row for row, output in enumerate(OUTPUTS) if output]
    outputs, references = ([column[row] for row in rows] for column in (OUTPUTS, references))
    rescaled = {"lang": "en", "rescale_with_baseline": True, "baseline_path": str(baseline)}
    theirs = peer.score(
        outputs,
        references,
        model_type=str(folder),
        num_layers=layer,
        nthreads=0,
        device="cpu",
        **(rescaled if baseline else {}),
        **options,
    )
    floor = baseline and pd.read_csv(baseline).set_index("LAYER").loc[layer].tolist()
    ours = alignment.bert_score(
        outputs, references, encoder=encoder, layer=layer, baseline=floor, **options
    )
    np.testing.assert_allclose(
        ours.to_numpy(), np.stack([part.numpy() for part in theirs], axis=1), atol=1e-5
    )


@pytest.mark.ci
@pytest.mark.parametrize("idf", [False, True])
@pytest.mark.parametrize("references", [FLAT, REFERENCES], ids=["one", "several"])
def test_bert_score_is_the_peers(encoder, idf, references):
    from tsteval.core.fetch import asset_path

    check_against_the_peer(asset_path("all-MiniLM-L6-v2"), encoder, 4, references, idf=idf)


@pytest.mark.ci
def test_a_rescaled_bert_score_is_the_peers(encoder, tmp_path):
    from tsteval.core.fetch import asset_path

    table = tmp_path / "baseline.tsv"
    table.write_text("LAYER,P,R,F\n" + "".join(f"{n},0.{n + 1},0.{n + 2},0.3\n" for n in range(7)))
    check_against_the_peer(asset_path("all-MiniLM-L6-v2"), encoder, 5, FLAT, table)


@pytest.mark.ci
@pytest.mark.parametrize("idf", [False, True])
def test_bert_score_of_a_roberta_is_the_peers(roberta, idf):
    check_against_the_peer(roberta, SentenceEncoder.load(roberta), 3, FLAT, idf=idf)


def test_a_roberta_reads_a_space_before_the_text_where_its_tokenizer_says_so(roberta):
    """What bert_score had from transformers 4, with NumPy alone: every text begins with a space."""
    plain = SentenceEncoder.load(roberta)
    spaced = json.loads((roberta / "tokenizer_config.json").read_text("utf-8"))
    (roberta / "tokenizer_config.json").write_text(json.dumps(spaced | {"add_prefix_space": True}))
    encoder = SentenceEncoder.load(roberta)
    found = alignment.bert_score(["The cat"], ["A cat sat"], encoder=encoder, layer=3)
    sides = []
    for text in (" The cat", " A cat sat"):
        encoded = plain.tokenizer(text, return_tensors="pt")
        with torch.inference_mode():
            states = plain.model(**encoded, output_hidden_states=True).hidden_states[3][0].numpy()
        sides.append(states / np.linalg.norm(states, axis=1, keepdims=True))
    cosines = sides[0] @ sides[1].T
    precision, recall = (cosines.max(axis=axis)[1:-1].mean() for axis in (1, 0))
    np.testing.assert_allclose(found.iloc[0, :2], [precision, recall], atol=1e-5)
    without = alignment.bert_score(["The cat"], ["A cat sat"], encoder=plain, layer=3)
    assert not np.allclose(found, without, atol=1e-4)


def test_of_several_references_the_best_of_each_counts(encoder):
    both = alignment.bert_score([OUTPUTS[1]], [REFERENCES[1]], encoder=encoder)
    alone = [alignment.bert_score([OUTPUTS[1]], [text], encoder=encoder) for text in REFERENCES[1]]
    np.testing.assert_allclose(both.iloc[0], np.maximum(*(one.iloc[0] for one in alone)), atol=1e-6)


def test_a_score_does_not_depend_on_its_neighbours(encoder, monkeypatch):
    together = alignment.bert_score(OUTPUTS, REFERENCES, encoder=encoder)
    alone = pd.concat(
        [
            alignment.bert_score([a], [b], encoder=encoder, batch_size=1)
            for a, b in zip(OUTPUTS, REFERENCES)
        ]
    )
    np.testing.assert_allclose(together, alone, atol=1e-5)
    monkeypatch.setattr(parts, "_BLOCK_TOKENS", 30)
    in_pairs = alignment.bert_score(OUTPUTS, REFERENCES, encoder=encoder, batch_size=2)
    np.testing.assert_allclose(together, in_pairs, atol=1e-5)


def test_a_baseline_rescales_and_is_known_for_the_embedded_encoder(encoder):
    plain = alignment.bert_score(OUTPUTS, FLAT, encoder=encoder)
    floor = np.array([0.5, 0.4, 0.45])
    np.testing.assert_allclose(
        alignment.bert_score(OUTPUTS, FLAT, encoder=encoder, baseline=floor),
        (plain - floor) / (1 - floor),
    )
    packaged = alignment.bert_score(OUTPUTS, FLAT, encoder=encoder, baseline="packaged")
    assert (packaged.f1 < plain.f1)[[0, 1, 2, 5, 6, 7]].all() and np.isclose(
        alignment.bert_score(["a b"], ["a b"], encoder=encoder, baseline="packaged").f1[0], 1
    )
    for bad in ([0.5, 0.5], [1, 0, 0], "hub"):
        with pytest.raises(InputError, match="baseline"):
            alignment.bert_score(["a"], ["b"], encoder=encoder, baseline=bad)
    other = encoder.own()
    other.name = "another"
    with pytest.raises(InputError, match="score_baseline"):
        alignment.bert_score(["a"], ["b"], encoder=other, baseline="packaged")


def test_the_packaged_baseline_is_what_its_function_gives(encoder):
    from tsteval.style import load_pairs

    table = parts.layer_table()
    layer = alignment.LAYERS["all-MiniLM-L6-v2"]
    kept = table[(table.score == "unrelated") & (table.layer == layer)].iloc[0]
    texts = list(dict.fromkeys(load_pairs("npov_pairs").source))[:200]
    found = alignment.score_baseline(texts, encoder=encoder, layer=layer)
    np.testing.assert_allclose(
        found,
        kept[["baseline_precision", "baseline_recall", "baseline_f1"]].astype(float),
        atol=0.03,
    )


def test_the_layer_is_the_best_on_the_data_it_was_chosen_on():
    table = parts.layer_table()
    chosen = table[(table.data_set == "mir2019") & (table.score == "bert_score")]
    assert chosen.loc[chosen.pearson.idxmax(), "layer"] == alignment.LAYERS["all-MiniLM-L6-v2"]
    assert (
        chosen.minus_chosen_high.dropna() < 0
    ).all() and chosen.minus_chosen.notna().sum() == len(chosen) - 1


def test_every_correlation_and_difference_in_the_table_has_its_interval():
    table = parts.layer_table().query("score != 'unrelated'")
    assert ((table.low < table.pearson) & (table.pearson < table.high)).all()
    last = (
        table[table.layer == alignment.LAYERS["all-MiniLM-L6-v2"]]
        .set_index(["data_set", "score"])
        .pearson
    )
    cosine = table[table.score == "cosine"].set_index("data_set").pearson
    for name, others, compared in (
        ("cosine", cosine[table.data_set], table.score != "cosine"),
        (
            "chosen",
            last.reindex(pd.MultiIndex.from_frame(table[["data_set", "score"]])),
            table.layer.notna() & (table.layer != 6),
        ),
    ):
        value, low, high = (table[f"minus_{name}{end}"] for end in ("", "_low", "_high"))
        assert (value.notna() == compared).all() and ((low < value) & (value < high))[
            compared
        ].all()
        np.testing.assert_allclose(
            value[compared], (table.pearson - others.to_numpy())[compared], atol=2e-6
        )


@pytest.mark.parametrize("layer", [-1, 7, 2.5, True])
def test_a_layer_that_is_not_there_is_refused(encoder, layer):
    with pytest.raises(InputError, match="layer"):
        alignment.bert_score(["a"], ["b"], encoder=encoder, layer=layer)


def test_what_is_no_weighting_is_refused(encoder):
    with pytest.raises(InputTypeError, match="idf"):
        alignment.bert_score(["a"], ["b"], encoder=encoder, idf="yes")


@pytest.mark.parametrize("n", [1, 2, 9])
def test_mover_score_is_pots_on_plain_loops(encoder, n):
    weights = parts.idf_weights(FLAT, encoder)
    ours = alignment.mover_score(OUTPUTS, FLAT, encoder=encoder, n=n, layer=4, idf=weights)
    for row in (0, 1, 3, 7):
        sides = []
        for text in (OUTPUTS[row], FLAT[row]):
            ids, vectors = hidden(encoder, text, 4)
            ids, vectors, size = ids[1:-1], vectors[1:-1], min(n, len(ids) - 2)
            idf = np.array([weights.weights.get(token, weights.others) for token in ids])
            grams = [range(start, start + size) for start in range(len(ids) - size + 1)]
            mass = np.array([idf[list(gram)].sum() for gram in grams])
            sides.append(
                (
                    mass / mass.sum(),
                    np.array(
                        [
                            (idf[list(gram), None] * vectors[list(gram)]).sum(axis=0) / m
                            for gram, m in zip(grams, mass)
                        ]
                    ),
                )
            )
        (p, x), (q, y) = sides
        cost = np.array([[np.linalg.norm(a - b) for b in y] for a in x])
        assert abs(ours[row] - (1 - ot.emd2(p, q, cost))) < 1e-5


def test_mover_score_of_empty_texts(encoder):
    assert np.isnan(alignment.mover_score(["", "a"], ["a", ""], encoder=encoder)).all()


# ---- texts that the encoder does not know

AMHARIC = ("ዛሬ ዝናብ ነው።", "ቤቱ ትልቅ ነው።")


@pytest.mark.parametrize(
    "score",
    [
        lambda *texts, **options: alignment.bert_score(*texts, **options).f1.to_numpy(),
        alignment.mover_score,
        alignment.word_movers_distance,
        lambda *texts, **options: content_preservation(*texts, **options).cps.to_numpy(),
    ],
)
def test_of_texts_that_are_not_read_there_is_no_score(encoder, score):
    """Once two texts of unknown words were one and the same."""
    first, second = AMHARIC
    with pytest.warns(UserWarning, match="3 of 6 texts hold words or characters"):
        scores = score([first, "😀", "a gift"], [second, "a gift", "a gift"], encoder=encoder)
    assert np.isnan(scores).tolist() == [True, True, False]


def test_of_several_references_those_that_are_read_count(encoder):
    for score in (
        lambda *texts: alignment.bert_score(*texts, encoder=encoder).f1,
        lambda *texts: alignment.mover_score(*texts, encoder=encoder),
        lambda *texts: alignment.word_movers_distance(*texts, encoder=encoder),
    ):
        one, both = score(["a gift"] * 2, [["a gift"], [AMHARIC[0], "a gift"]])
        assert one == pytest.approx(both)


def test_rows_with_unknown_words_are_told(encoder, tmp_path):
    rows = [
        {"source": source, "output": output, "reference": "so happy"}
        for source, output in (("happy 😀", "happy 🙈"), AMHARIC, ("a gift", "the gift"))
    ]
    for _ in range(2):  # made, and read from the store
        result = evaluate(
            rows, ["cps", "bert_score"], encoder=encoder, n_boot=5, score_cache=tmp_path / "c"
        )
        assert result.per_pair.cps.isna().tolist() == [False, True, False]
        notes = [note for note in result.notes().itertuples() if "does not know" in note.text]
        assert [note.metric for note in notes] == ["cps", "bert_score"]
        assert all(
            note.warning and note.figures == {"rows": [0, 1], "n": 2} and "2 of 3 rows" in note.text
            for note in notes
        )


# ---- as metrics

TABLE = [
    {
        "source": "The stunning bridge opened in 1932.",
        "output": "The bridge opened in 1932.",
        "reference": "The bridge was opened in 1932.",
    },
    {"source": "A great dam.", "output": "A dam.", "reference": "A big dam."},
]
NAMES = ("wmd", "bert_score")


def test_an_evaluation_knows_both(encoder):
    result = evaluate(TABLE, NAMES, encoder=encoder, n_boot=20)
    outputs = [row["output"] for row in TABLE]
    references = [row["reference"] for row in TABLE]
    np.testing.assert_allclose(
        result.per_pair.wmd, alignment.word_movers_distance(outputs, references, encoder=encoder)
    )
    np.testing.assert_allclose(
        result.per_pair.bert_score,
        alignment.bert_score(outputs, references, encoder=encoder).f1,
        atol=1e-6,
    )
    assert METRICS["wmd"].better == "lower"


def test_without_references_the_source_will_do(encoder):
    rows = [{key: row[key] for key in ("source", "output")} for row in TABLE]
    for name in NAMES:
        with pytest.raises(
            InputError, match=f"{name} compares with references.*take {name}:against=source"
        ):
            evaluate(rows, [name], encoder=encoder, n_boot=2)
    result = evaluate(rows, [f"{name}:against=source" for name in NAMES], encoder=encoder, n_boot=2)
    np.testing.assert_allclose(
        result.per_pair.wmd,
        alignment.word_movers_distance(
            [row["output"] for row in rows], [row["source"] for row in rows], encoder=encoder
        ),
    )
    assert all("against:source" in result.signatures[name] for name in NAMES)


OPTIONS = {  # but the encoder
    "wmd": {"tokenize": "char", "stop_words": ("the",), "against": "source"},
    "bert_score": {"layer": 2, "idf": True, "baseline": "packaged", "against": "source"},
}


@pytest.mark.parametrize("name", NAMES)
def test_every_option_and_weight_changes_the_signature(encoder, name):
    kind = METRICS[name]
    assert {*OPTIONS[name], "encoder"} == set(kind.options())
    table = prepare_pairs(TABLE)

    def sign_of(**options):
        return kind(**options).sign(table, Models({"encoder": encoder}))

    signatures = [
        sign_of(),
        *(sign_of(**{option: value}) for option, value in OPTIONS[name].items()),
    ]
    assert len(set(signatures)) == len(signatures) and sign_of() == signatures[0]
    changed = encoder.own()
    with torch.no_grad():
        changed.model.get_input_embeddings().weight[0, 0] += 1
    assert kind().sign(table, Models({"encoder": changed})) != signatures[0]
    assert sign_of(encoder=changed) == kind().sign(table, Models({"encoder": changed}))


@pytest.mark.parametrize(
    "name, options",
    [
        ("wmd", {"tokenize": "no"}),
        ("wmd", {"against": 3}),
        ("bert_score", {"layer": -1}),
        ("bert_score", {"idf": 2}),
        ("bert_score", {"baseline": "hub"}),
    ],
)
def test_bad_options_are_refused_before_a_model_is_loaded(name, options, monkeypatch):
    monkeypatch.setattr(SentenceEncoder, "load", lambda *a, **k: pytest.fail("a model was loaded"))
    with pytest.raises(InputError):
        METRICS[name](**options)


@pytest.mark.parametrize(
    "function", [alignment.word_movers_distance, alignment.bert_score, alignment.mover_score]
)
def test_bad_rows_are_named_and_no_rows_give_none(function, encoder):
    with pytest.raises(InputTypeError, match="outputs, row 1"):
        function(["a", None], ["a", "b"], encoder=encoder)
    with pytest.raises(InputError, match="row 1: no reference"):
        function(["a", "b"], ["a", []], encoder=encoder)
    assert len(function([], [], encoder=encoder)) == 0


# ---- one text, written in several ways

FORMS = [
    ("caf\u00e9 \u00fcber", "cafe\u0301 u\u0308ber"),
    ("a test -", "a test -\n"),
    ("a test -", "a test -\r\n"),
    ("well-\nknown", "well-\r\nknown"),
    ("a b", "a\r\nb"),
    ("this - that", "this -\nthat"),
    ("\u212b", "\u00c5"),
]


@pytest.mark.parametrize("one, other", FORMS)
@pytest.mark.parametrize("tokenize", ["13a", "intl", "char", "none", "treebank"])
def test_the_form_of_a_text_does_not_change_wmd(one, other, tokenize, encoder):
    reference = f"{one} that"
    further = "another dash -"

    def score(*texts):
        return alignment.word_movers_distance(*texts, encoder=encoder, tokenize=tokenize)

    usual = score([one, one], [reference, further])
    assert np.array_equal(usual, score([other, other], [reference, further]))
    assert score([one], [other])[0] == score([one], [one])[0]


def test_the_signature_says_which_form_a_text_is_brought_to(encoder):
    signature = METRICS["wmd"]().sign(prepare_pairs(TABLE), Models({"encoder": encoder}))
    assert "|form:nfc|" in signature


@pytest.mark.parametrize(
    "stop_words", [{"the", "a"}, frozenset({"the", "a"}), ("the", "a"), "the, a"]
)
def test_stop_words_may_be_a_set(stop_words, encoder):
    assert (
        alignment.word_movers_distance(
            ["the gift"], ["a gift"], encoder=encoder, stop_words=stop_words
        )[0]
        == 0
    )
    with pytest.raises(InputTypeError, match="stop_words"):
        alignment.word_movers_distance(
            ["the gift"], ["a gift"], encoder=encoder, stop_words={"the", 3}
        )


# ---- MoverScore of the authors' programs

FOUR = [
    "The present pleased the kids.",
    "The gift made the children sick.",
    "The children made the gift happy.",
    "The bridge opened in 1932.",
]
GIFT = "The gift made the children happy."


def program(encoder, name):
    """The functions of a file of the package moverscore, with our encoder in place of the model that it would fetch."""
    import importlib.util
    import string
    from collections import defaultdict
    from pathlib import Path

    emd = pytest.importorskip("pyemd", reason="needs pyemd, of the extra dev")
    file = importlib.util.find_spec(name)
    if file is None:
        pytest.skip("needs the files of moverscore")
    text = Path(file.origin).read_text("utf-8").split("import matplotlib")[0]
    body = "def truncate" + text.split("def truncate", 1)[1].replace("np.float)", "float)")

    class Model:
        def eval(self):
            pass

        def __call__(self, input_ids, *types, attention_mask, **_):
            states = encoder.model(
                input_ids=input_ids, attention_mask=attention_mask, output_hidden_states=True
            ).hidden_states
            return (list(states[1:]), None) if types else (states[-1], states, None)

    tokens = type("Tokens", (), {"max_len": 256, "tokenize": encoder.tokenizer.tokenize})()
    tokens.convert_tokens_to_ids = encoder.tokenizer.convert_tokens_to_ids
    known = {"np": np, "torch": torch, "string": string, "defaultdict": defaultdict}
    known |= {"emd": emd.emd, "emd_with_flow": emd.emd_with_flow, "log": np.log}
    known |= {"tokenizer": tokens, "model": Model(), "device": "cpu"}
    exec(body, known)
    return known["word_mover_score"], lambda weights: defaultdict(lambda: 1.0, weights)


def their_rule(encoder, output, reference, layers, power, marks=True):
    """The programs' rule for single tokens, transcribed: marks weigh as words do, punctuation and inner pieces nothing."""
    import pyemd

    sides = []
    for text in (output, reference):
        ids, _ = hidden(encoder, text, 6)
        names = encoder.tokenizer.convert_ids_to_tokens(ids)
        kept = [n for n, name in enumerate(names) if name not in ".,!?;:" and "##" not in name]
        kept = kept if marks else kept[1:-1]
        stack = np.stack([hidden(encoder, text, layer)[1][kept] for layer in layers])
        parts_of = [stack.min(axis=0), stack.mean(axis=0), stack.max(axis=0)]
        sides.append(parts.unit_rows(np.hstack(parts_of) if len(layers) > 1 else stack[0]))
    one, other = sides
    both = parts.distances(np.vstack(sides), np.vstack(sides)) ** power
    p = np.r_[np.full(len(one), 1 / len(one)), np.zeros(len(other))]
    q = np.r_[np.zeros(len(one)), np.full(len(other), 1 / len(other))]
    return 1 - pyemd.emd(p, q, np.ascontiguousarray(both))


def test_mover_score_is_the_rule_of_the_authors_second_program(encoder):
    """Without the weight of the marks, which is a choice of the program and not in the paper."""
    pytest.importorskip("pyemd", reason="needs pyemd, of the extra dev")
    dot = encoder.tokenizer.convert_tokens_to_ids(".")
    ours = alignment.mover_score(
        FOUR, [GIFT] * 4, encoder=encoder, idf=parts.TokenWeights({dot: 0.0})
    )
    theirs = [their_rule(encoder, text, GIFT, [6], 1, marks=False) for text in FOUR]
    np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_mover_score_and_the_transcriptions_are_the_authors_programs(encoder):
    marks = {encoder.tokenizer.cls_token_id: 0.0, encoder.tokenizer.sep_token_id: 0.0}
    second, weights = program(encoder, "moverscore_v2")
    dot = encoder.tokenizer.convert_tokens_to_ids(".")
    ours = alignment.mover_score(
        FOUR, [GIFT] * 4, encoder=encoder, idf=parts.TokenWeights({dot: 0.0})
    )
    plain = weights(marks)
    theirs = second([GIFT] * 4, FOUR, plain, plain, device="cpu")
    np.testing.assert_allclose(ours, theirs, atol=1e-5)
    for name, layers, power in (("moverscore_v2", [6], 1), ("moverscore", [2, 3, 4, 5, 6], 2)):
        function, weights = program(encoder, name)
        theirs = function([GIFT] * 4, FOUR, weights({}), weights({}), device="cpu")
        ours = [their_rule(encoder, text, GIFT, layers, power) for text in FOUR]
        np.testing.assert_allclose(ours, theirs, atol=1e-3)  # theirs adds small numbers to divisors
