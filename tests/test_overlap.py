"""Counting and matching in order: the formulas, the peers, hostile input, signatures."""

import sys

import nltk.translate.meteor_score as nltk_meteor
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.translate import chrf_score as nltk_chrf
from sacrebleu.metrics import CHRF, TER

from tests.strategies import OUTPUTS, REFERENCES
from tsteval import overlap
from tsteval.core.assets import AssetError
from tsteval.core.checks import InputError, InputTypeError
from tsteval.core.metric import METRICS
from tsteval.evaluation import evaluate
from tsteval.tables.outputs import prepare_pairs
from tsteval.text import tokenize
from tsteval.words import word_alignment

FLAT = [texts[0] for texts in REFERENCES]


# ---- counting

WORDS = st.lists(st.sampled_from(["the", "cat", "cats,", "(a)", "ab", "b.", "é"]), max_size=7).map(
    " ".join
)


@settings(deadline=None)
@given(
    WORDS,
    st.lists(WORDS, min_size=1, max_size=3),
    st.sampled_from([0, 2]),
    st.booleans(),
    st.booleans(),
    st.sampled_from([1, 2]),
    st.booleans(),
)
def test_chrf_is_sacrebleus(
    output, references, word_order, lowercase, whitespace, beta, eps_smoothing
):
    options = {
        "word_order": word_order,
        "lowercase": lowercase,
        "whitespace": whitespace,
        "beta": beta,
        "eps_smoothing": eps_smoothing,
    }
    peer = CHRF(**options)
    ours = overlap.chrf([output], [references], **options)
    assert abs(ours[0] - peer.sentence_score(output, references).score / 100) < 1e-9


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"word_order": 2},
        {"char_order": 3, "beta": 1},
        {"whitespace": True},
        {"lowercase": True},
        {"eps_smoothing": True},
        {"eps_smoothing": True, "word_order": 2, "beta": 3},
    ],
)
def test_corpus_chrf_is_sacrebleus_with_several_references(options):
    rows = [row * 2 if len(row) == 1 else row for row in REFERENCES]
    peer = CHRF(**options).corpus_score(OUTPUTS, [list(column) for column in zip(*rows)])
    assert abs(overlap.corpus_chrf(OUTPUTS, rows, **options) - peer.score / 100) < 1e-9


def test_trailing_white_space_counts_where_white_space_does():
    peer = CHRF(whitespace=True).sentence_score("ab c ", ["ab c"]).score / 100
    assert abs(overlap.chrf(["ab c "], ["ab c"], whitespace=True)[0] - peer) < 1e-9 and peer < 1
    assert overlap.chrf(["ab c "], ["ab c"])[0] == 1


def test_chrf_by_pencil():
    """abc against abd: 2 of 3 letters, 1 of 2 pairs, 0 of 1 triples; a mean of 7/18 on both sides."""
    assert np.isclose(overlap.chrf(["abc"], ["abd"], char_order=3)[0], 7 / 18)
    assert overlap.chrf(["a b"], ["ab"])[0] == 1 and overlap.chrf(
        ["", "a"], ["a", ""]
    ).tolist() == [0, 0]


def test_the_formula_of_popovics_script_by_pencil():
    """ab against abc, beta 2: F of the letters 5/7, of the pairs 5/9, of the triples none."""
    script, formula = (
        overlap.chrf(["ab"], ["abc"], char_order=3, eps_smoothing=flag)[0] for flag in (True, False)
    )
    assert np.isclose(script, (5 / 7 + 5 / 9 + 0) / 3) and np.isclose(formula, 7 / 11)


def averaged_f(output, reference, orders=6, beta=2):
    """Popović's script in plain loops: an F for each order, averaged over all of them."""
    texts = ["".join(text.split()) for text in (output, reference)]
    total = 0.0
    for n in range(1, orders + 1):
        ours, theirs = (
            [text[start : start + n] for start in range(len(text) - n + 1)] for text in texts
        )
        shared = sum(min(ours.count(run), theirs.count(run)) for run in set(ours))
        if shared:
            P, R = shared / len(ours), shared / len(theirs)
            total += (1 + beta**2) * P * R / (beta**2 * P + R)
    return total / orders


@settings(deadline=None)
@given(WORDS, WORDS, st.sampled_from([1, 2, 3]))
def test_the_script_and_nltk_are_one_formula(output, reference, beta):
    ours = overlap.chrf([output], [reference], beta=beta, eps_smoothing=True)[0]
    assert abs(ours - averaged_f(output, reference, beta=beta)) < 1e-9
    assert abs(ours - nltk_chrf.sentence_chrf(reference, output, beta=beta)) < 1e-9


def test_nltks_corpus_is_the_mean_of_its_sentences():
    peer = nltk_chrf.corpus_chrf(FLAT, OUTPUTS)
    ours = overlap.chrf(OUTPUTS, FLAT, beta=3, eps_smoothing=True).mean()
    assert abs(ours - peer) < 1e-9
    assert abs(overlap.corpus_chrf(OUTPUTS, FLAT, beta=3, eps_smoothing=True) - peer) > 0.01


def test_chrf_of_a_lone_surrogate_is_finite():
    assert overlap.chrf(["a\ud800"], ["a\ud800"])[0] == 1


@pytest.mark.parametrize(
    "options",
    [
        {"char_order": 0},
        {"word_order": -1},
        {"beta": 0},
        {"char_order": 1.5},
        {"eps_smoothing": "yes"},
    ],
)
def test_bad_orders_are_refused(options):
    with pytest.raises(InputError, match=next(iter(options))):
        overlap.chrf(["a"], ["b"], **options)


# ---- matching in order


class Lemma:
    def __init__(self, name):
        self._name = name

    def name(self):
        return self._name


class Sense:
    def __init__(self, names):
        self._names = names

    def lemmas(self):
        return [Lemma(name) for name in self._names]


class SmallWordNet:
    """What METEOR asks of WordNet, with two groups of synonyms; NLTK's own is not on every machine."""

    groups = (("gift", "present", "birthday_present"), ("kid", "child"))

    def synsets(self, word):
        return [Sense(group) for group in self.groups if word in group]


def peer_meteor(output, references, **options):
    split = tokenize
    return nltk_meteor.meteor_score(
        [split(text) for text in references],
        split(output),
        **{"wordnet": SmallWordNet(), **options},
    )


class NoWordNet:
    def synsets(self, word):
        return []


@settings(deadline=None)
@given(
    st.lists(
        st.sampled_from(["a", "cat", "cats", "gift", "present", "Kid", "child", "on"]), max_size=8
    ).map(" ".join),
    st.lists(
        st.sampled_from(["a", "cat", "cats", "gift", "present", "kid", "Child", "on"]),
        min_size=1,
        max_size=8,
    ).map(" ".join),
)
def test_meteor_is_nltks_in_every_stage(output, reference):
    synonyms = word_alignment.wordnet_synonyms(SmallWordNet())
    assert (
        abs(
            overlap.meteor([output], [reference], synonyms=synonyms)[0]
            - peer_meteor(output, [reference])
        )
        < 1e-9
    )
    assert (
        abs(
            overlap.meteor([output], [reference])[0]
            - peer_meteor(output, [reference], wordnet=NoWordNet())
        )
        < 1e-9
    )


def test_meteor_is_nltks_on_several_references_and_other_parameters():
    for options in ({}, {"alpha": 0.5, "beta": 1.0, "gamma": 0.2}):
        ours = overlap.meteor(OUTPUTS, REFERENCES, **options)
        theirs = [
            peer_meteor(output, texts, wordnet=NoWordNet(), **options)
            for output, texts in zip(OUTPUTS, REFERENCES)
        ]
        np.testing.assert_allclose(ours, theirs, atol=1e-9)


@pytest.mark.parametrize(
    "name, values", [("banerjee2005", (0.9, 3, 0.5)), ("lavie2007", (0.81, 0.83, 0.28))]
)
def test_meteors_parameters_have_the_names_of_their_papers(name, values):
    numbers = dict(zip(("alpha", "beta", "gamma"), values))
    ours = overlap.meteor(OUTPUTS, REFERENCES, parameters=name)
    theirs = [
        peer_meteor(output, texts, wordnet=NoWordNet(), **numbers)
        for output, texts in zip(OUTPUTS, REFERENCES)
    ]
    np.testing.assert_allclose(ours, theirs, atol=1e-9)
    made = METRICS["meteor"](parameters=name)
    assert made.sign(prepare_pairs(TABLE)) == METRICS["meteor"](**numbers).sign(
        prepare_pairs(TABLE)
    )


def test_meteor_by_pencil_with_the_parameters_of_2007():
    """Both words paired, in two chunks: no loss in F, a penalty of 0.28 (2/2)^0.83."""
    assert np.isclose(overlap.meteor(["a b"], ["b a"], parameters="lavie2007")[0], 1 - 0.28)
    # one pair of one word in two: P 1, R 1/2, and the penalty of a single chunk
    F = 0.5 / (0.81 + 0.19 / 2)
    assert np.isclose(overlap.meteor(["a"], ["a b"], parameters="lavie2007")[0], F * (1 - 0.28))


def test_a_name_of_parameters_stands_alone():
    with pytest.raises(InputError, match="parameters must be one of banerjee2005, lavie2007"):
        overlap.meteor(["a"], ["b"], parameters="denkowski2014")
    with pytest.raises(
        InputError, match="parameters: 'lavie2007' stands for alpha, beta and gamma"
    ):
        overlap.meteor(["a"], ["b"], parameters="lavie2007", alpha=0.5)


def test_stemming_and_synonyms_add_pairs():
    assert (
        overlap.meteor(["two plans"], ["two plan"], stemmer=False)[0]
        < overlap.meteor(["two plans"], ["two plan"])[0]
    )
    both = (
        overlap.meteor(["a gift"], ["a present"]),
        overlap.meteor(
            ["a gift"], ["a present"], synonyms=lambda word: ["present"] if word == "gift" else []
        ),
    )
    assert both[0] < both[1] == 1 - 0.5 * 0.5**3


@pytest.mark.parametrize(
    "options, error",
    [
        ({"stemmer": "porter"}, InputTypeError),
        ({"synonyms": "thesaurus"}, InputTypeError),
        ({"alpha": 2}, InputError),
        ({"gamma": -1}, InputError),
        ({"tokenize": "no"}, InputError),
    ],
)
def test_bad_options_of_meteor_are_refused(options, error):
    with pytest.raises(error, match=next(iter(options)) if "tokenize" not in options else "token"):
        overlap.meteor(["a"], ["b"], **options)


# ---- edits

FLAGS = ("normalized", "no_punct", "asian_support", "case_sensitive")
EDITED = st.lists(
    st.sampled_from(["the", "cat", "Cat,", "(a)", "ab", "b.", "今天"]), max_size=7
).map(" ".join)


@settings(deadline=None)
@given(
    EDITED,
    st.lists(EDITED, min_size=1, max_size=3),
    st.fixed_dictionaries({name: st.booleans() for name in FLAGS}),
)
def test_ter_is_sacrebleus(output, references, flags):
    peer = TER(**flags).sentence_score(output, references)
    assert abs(overlap.ter([output], [references], **flags)[0] - peer.score / 100) < 1e-9


@pytest.mark.parametrize("flags", [{}, *({name: True} for name in FLAGS)])
def test_corpus_ter_is_sacrebleus_with_several_references(flags):
    rows = [row * 2 if len(row) == 1 else row for row in REFERENCES]
    peer = TER(**flags).corpus_score(OUTPUTS, [list(column) for column in zip(*rows)])
    assert abs(overlap.corpus_ter(OUTPUTS, rows, **flags) - peer.score / 100) < 1e-9


def test_ter_by_pencil():
    """One move of six words; the fewest edits to any reference, over the mean of their lengths; empty texts."""
    assert overlap.ter(["on the mat the cat sat"], ["the cat sat on the mat"])[0] == 1 / 6
    assert overlap.ter(["a b"], [["a b c", "a b c d e"]])[0] == 1 / 4
    assert overlap.ter(["a b", "a", "", "", "a b c"], ["a b", "", "", "a b", "d"]).tolist() == [
        0,
        1,
        0,
        1,
        3,
    ]
    assert overlap.corpus_ter(["a b", "c"], ["a b", "d"]) == 1 / 3


def test_a_text_that_would_take_ter_hours_is_refused_by_row():
    for pair in (("a " * 1001, "a"), ("a", ["b", "a " * 1001])):
        with pytest.raises(
            InputError, match=r"row 1: TER takes texts of up to 1000 words.*has 1001"
        ):
            overlap.ter(["a", pair[0]], ["a", pair[1]])


def test_ter_signs_as_sacrebleu_does():
    peer = TER(no_punct=True)
    peer.corpus_score(["a"], [["b"]])
    theirs = str(peer.get_signature()).split("|")
    ours = METRICS["ter"](no_punct=True).sign(prepare_pairs(TABLE)).split("|")
    assert set(theirs) - set(ours) == {theirs[-1]}  # their version, which ours names by their name
    assert theirs[-1].replace("version", "sacrebleu") in ours
    assert METRICS["ter"].better == "lower" and METRICS["ter"].range == (0, np.inf)


def test_without_sacrebleu_ter_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sacrebleu.metrics", None)
    for ask in (lambda: overlap.ter(["a"], ["b"]), METRICS["ter"]):
        with pytest.raises(AssetError, match=r"TER .* not installed.*pip install sacrebleu$"):
            ask()


# ---- as metrics

TABLE = [
    {
        "source": "The stunning bridge opened in 1932.",
        "output": "The bridge opened in 1932.",
        "reference": "The bridge was opened in 1932.",
    },
    {"source": "A great dam.", "output": "A dam.", "reference": "A big dam."},
]
NAMES = ("chrf", "meteor", "ter")


def test_an_evaluation_knows_them():
    result = evaluate(TABLE, NAMES, n_boot=20)
    outputs = [row["output"] for row in TABLE]
    references = [row["reference"] for row in TABLE]
    np.testing.assert_allclose(result.per_pair.chrf, overlap.chrf(outputs, references))
    np.testing.assert_allclose(result.per_pair.meteor, overlap.meteor(outputs, references))
    np.testing.assert_allclose(result.per_pair.ter, overlap.ter(outputs, references))
    assert np.isclose(result.summary().chrf[0], overlap.corpus_chrf(outputs, references))
    assert np.isclose(result.summary().ter[0], overlap.corpus_ter(outputs, references))


def test_without_references_the_source_will_do():
    rows = [{key: row[key] for key in ("source", "output")} for row in TABLE]
    for name in NAMES:
        with pytest.raises(
            InputError, match=f"{name} compares with references.*take {name}:against=source"
        ):
            evaluate(rows, [name], n_boot=2)
    result = evaluate(rows, [f"{name}:against=source" for name in NAMES], n_boot=2)
    np.testing.assert_allclose(
        result.per_pair.chrf,
        overlap.chrf([row["output"] for row in rows], [row["source"] for row in rows]),
    )
    assert all("against:source" in result.signatures[name] for name in NAMES)


OPTIONS = {
    "chrf": {
        "char_order": 5,
        "word_order": 2,
        "beta": 1,
        "eps_smoothing": True,
        "lowercase": True,
        "whitespace": True,
        "against": "source",
    },
    "meteor": {
        "alpha": 0.8,
        "beta": 2.0,
        "gamma": 0.4,
        "parameters": "lavie2007",
        "stemmer": False,
        "synonyms": lambda word: [word],
        "tokenize": "char",
        "against": "source",
    },
    "ter": {**dict.fromkeys(FLAGS, True), "against": "source"},
}


@pytest.mark.parametrize("name", NAMES)
def test_every_option_changes_the_signature(name):
    kind = METRICS[name]
    assert set(OPTIONS[name]) == set(kind.options())

    def sign_of(**options):
        return kind(**options).sign(prepare_pairs(TABLE))

    signatures = [
        sign_of(),
        *(sign_of(**{option: value}) for option, value in OPTIONS[name].items()),
    ]
    assert len(set(signatures)) == len(signatures) and sign_of() == signatures[0]


@pytest.mark.parametrize(
    "name, options",
    [
        ("chrf", {"char_order": 0}),
        ("chrf", {"against": "input"}),
        ("meteor", {"synonyms": 3}),
        ("ter", {"no_punct": "yes"}),
    ],
)
def test_bad_options_are_refused_before_anything_is_scored(name, options):
    with pytest.raises(InputError):
        METRICS[name](**options)


@pytest.mark.parametrize("function", [overlap.chrf, overlap.meteor, overlap.ter])
def test_bad_rows_are_named_and_no_rows_give_none(function):
    with pytest.raises(InputTypeError, match="outputs, row 1"):
        function(["a", None], ["a", "b"])
    with pytest.raises(InputError, match="row 1: no reference"):
        function(["a", "b"], ["a", []])
    assert len(function([], [])) == 0


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
def test_the_form_of_a_text_does_not_change_meteor(one, other, tokenize):
    reference = f"{one} that"
    further = "another dash -"
    usual = overlap.meteor([one, one], [reference, further], tokenize=tokenize)
    assert np.array_equal(
        usual, overlap.meteor([other, other], [reference, further], tokenize=tokenize)
    )
    assert (
        overlap.meteor([one], [other], tokenize=tokenize)[0]
        == overlap.meteor([one], [one], tokenize=tokenize)[0]
    )


def test_the_signature_says_which_form_a_text_is_brought_to():
    for name, form in (("chrf", "given"), ("meteor", "nfc")):
        assert f"|form:{form}|" in METRICS[name]().sign(prepare_pairs(TABLE))


def test_a_dash_at_the_end_of_a_text_is_a_word_whatever_follows_it():
    assert (
        overlap.meteor(["a test -\n"], ["a test -"])[0]
        == overlap.meteor(["a test -"], ["a test -"])[0]
    )
    assert overlap.meteor(["a test -\n"], ["a test"])[0] < overlap.meteor(["a test"], ["a test"])[0]
