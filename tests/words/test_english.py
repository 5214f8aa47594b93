"""Syllables by rule and by dictionary."""

import string
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsteval.core.assets import AssetError
from tsteval.surface import readability, reading_counts
from tsteval.words import english
from tsteval.words.english import (
    count_syllables,
    pronunciations,
    syllable_source,
    syllables_by_rule,
)


@pytest.mark.parametrize(
    "word, count",
    [
        ("cat", 1),
        ("the", 1),
        ("wanted", 2),
        ("walked", 1),
        ("table", 2),
        ("tables", 2),
        ("metre", 2),
        ("boxes", 2),
        ("science", 2),
        ("reading", 2),
        ("being", 2),
        ("nation", 2),
        ("create", 2),
        ("1963", 4),
        ("rhythm", 1),
        ("hmm", 1),
        ("日本", 1),
        ("U.S.", 2),  # once 1
        ("U.S", 2),
        ("T.V.", 2),
        ("W.H.O.", 5),
    ],
)
def test_syllables_by_rule(word, count):
    assert syllables_by_rule(word) == count


@given(st.text(string.ascii_letters, min_size=2, max_size=6))
def test_initials_have_at_least_a_syllable_a_letter(letters):
    initials = "".join(f"{letter}." for letter in letters)
    for syllables in ("rule", "auto"):
        count = reading_counts([f"The {initials} won"], syllables)[0, 2] - 2
        assert count == len(letters) + 2 * letters.lower().count("w")


def test_the_way_of_counting_syllables_is_named_and_never_silently_another():
    assert syllable_source("rule") == "rule"
    with mock.patch.object(english, "pronunciations", return_value={}):
        assert syllable_source("auto") == "rule"
        with pytest.raises(AssetError, match="CMUdict"):
            readability(["a"], syllables="cmudict")
    with pytest.raises(ValueError, match="one of auto, cmudict, rule"):
        readability(["a"], syllables="guess")


def test_cmudict_is_used_where_it_is_present():
    if not pronunciations():
        pytest.skip("needs CMUdict: nltk.download('cmudict') and NLTK_DATA set to its folder")
    assert syllable_source() == "cmudict"
    assert reading_counts(["people fire idea", "the people's judge's"], "cmudict")[
        :, 2
    ].tolist() == [7, 5]
    agree = [
        syllables_by_rule(word) == count
        for word, count in pronunciations().items()
        if word.isalpha()
    ]
    assert np.mean(agree) > 0.9


OTHERS = {
    "German": [
        "Das Essen war gut und die Zimmer sind sauber.",
        "Ich komme nicht wieder, weil es zu teuer ist.",
    ],
    "French": [
        "très bon restaurant",
        "je ne sais pas si le serveur est là",
        "il fait beau et la ville est calme",
    ],
    "Spanish": [
        "la comida estaba muy buena y el servicio también",
        "no sé por qué los precios son altos",
    ],
    "Chinese": ["没有问题。", "今天天气很好。"],
    "Russian": ["Это было хорошо.", "Я не знаю."],
    "Turkish": ["çok güzel bir yer ve yemekler iyi", "bu şehirde görülecek çok şey var"],
}
OURS = {
    "short": [
        "great food",
        "love this place !",
        "terrible service",
        "so rude",
        "i will not come back",
    ],
    "headlines": [
        "Trump says tariffs on steel to stay as markets fall",
        "Fire guts warehouse near Oslo airport, none hurt",
        "Apple shares slide after weak forecast",
        "Police arrest three in museum theft",
        "Mayor resigns over housing scandal",
    ],
    "in capitals": ["Fire Guts Warehouse Near Oslo Airport", "SHARES SLIDE AFTER FORECAST"],
    "names": [
        "Ludwig van Beethoven met Charles de Gaulle in Los Angeles.",
        "Angela Merkel and Emmanuel Macron",
    ],
    "numbers": ["42", "1,000", "?"],
    "loan words": [
        "A naïve café owner on the fiancée's side of the façade went to the soirée with him."
    ],
}


@pytest.mark.parametrize("name", [*OTHERS, *OURS])
def test_english_is_told_from_other_languages(name):
    texts = {**OTHERS, **OURS}[name]
    assert english.reads_otherwise(english.count_language_signs(texts)) == (name in OTHERS)


def test_no_word_has_no_syllable_by_dictionary():
    entries = {"shh": 0, "hmm": 1, "cat": 1}
    with mock.patch.object(english, "pronunciations", return_value=entries):
        counts = count_syllables(["shh", "shh's", "Shh’s", "cat's"], "cmudict")
    assert counts == {"shh": 1, "shh's": 1, "Shh’s": 1, "cat's": 1}
