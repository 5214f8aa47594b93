"""The frame of all properties."""

import re
import socket
import subprocess
import sys
from unittest import mock

import numpy as np
import pandas as pd
import pytest

from tsteval.core.checks import InputError, InputTypeError
from tsteval.core.metric import INPUTS, METRICS
from tsteval.properties import (
    PROPERTIES,
    acceptability,
    avoided_answer,
    calculate_properties,
    compare_properties,
    formality,
    grounded_in_context,
    link_validity,
    read_properties,
    readability,
    relevance,
    save_properties,
    toxicity,
)

QUICK = ["readability", "grounded_in_context"]


def test_the_table_holds_the_eight_and_each_works_alone():
    assert list(PROPERTIES) == [
        "link_validity",
        "readability",
        "toxicity",
        "acceptability",
        "formality",
        "avoided_answer",
        "grounded_in_context",
        "relevance",
    ]
    outputs = ["Anna Berg built it in 1871.", "It depends."]
    inputs = ["Who built the mill, and when?"] * 2
    for name in PROPERTIES:
        frame = calculate_properties(outputs, inputs, [name])
        assert (
            list(frame) == [name]
            and frame[name].dtype == float
            and len(frame) == 2
            and list(frame.attrs) == [name]
        )


def test_all_at_once_equals_one_by_one_and_keeps_the_order_of_rows():
    outputs = ["Anna Berg built it in 1871.", "It depends.", "Anna Berg built it in 1871."]
    inputs = ["Who built the mill, and when?"] * 3
    frame = calculate_properties(outputs, inputs, links="check")
    assert list(frame) == list(frame.attrs) == list(PROPERTIES)
    assert np.allclose(frame.loc[0], frame.loc[2], atol=1e-6)  # read in batches of other lengths
    functions = (
        link_validity,
        readability,
        toxicity,
        acceptability,
        formality,
        avoided_answer,
        grounded_in_context,
        relevance,
    )
    for (name, metric), function in zip(PROPERTIES.items(), functions):
        alone = function(*((inputs, outputs) if {*INPUTS} & {*metric.needs} else (outputs,)))
        assert np.allclose(frame[name], alone, atol=1e-6), name


def test_links_are_asked_for_only_when_somebody_says_so():
    """Once the default sent requests to whatever addresses stood in the texts."""
    texts = ["see http://a.example/ and http://b.example/"]
    with mock.patch("socket.getaddrinfo", side_effect=socket.gaierror) as looked_up:
        assert "link_validity" not in calculate_properties(texts, properties=["readability"])
        quick = {name: PROPERTIES[name] for name in ("link_validity", "readability")}
        with mock.patch.dict(PROPERTIES, quick, clear=True):
            assert (
                list(calculate_properties(texts)) == ["readability"] and looked_up.call_count == 0
            )
            assert list(calculate_properties(texts, links="check")) == [
                "link_validity",
                "readability",
            ]
        assert looked_up.call_count == 2
        assert calculate_properties(texts, properties=["link_validity"]).link_validity.tolist() == [
            0
        ]
    with pytest.raises(InputError, match="skip, check"):
        calculate_properties(texts, links="yes")


def test_every_property_is_a_metric_of_the_registry():
    assert all(kind.name == name and METRICS[name] is kind for name, kind in PROPERTIES.items())


def test_the_callers_choice_and_order_are_kept():
    assert list(calculate_properties(["a"], ["b"], QUICK[::-1])) == QUICK[::-1]
    assert list(calculate_properties(["a"], properties=["readability"])) == ["readability"]
    assert calculate_properties([], [], QUICK).shape == (0, 2)


def test_without_inputs_the_properties_that_need_them_are_left_out():
    with mock.patch.dict(PROPERTIES, {name: PROPERTIES[name] for name in QUICK}, clear=True):
        assert list(calculate_properties(["a word"])) == ["readability"]
    with pytest.raises(ValueError, match="grounded_in_context compares a text with its input"):
        calculate_properties(["a"], properties=QUICK)


@pytest.mark.parametrize(
    "arguments, error, message",
    [
        (
            {"properties": ["beauty"]},
            ValueError,
            "no property 'beauty'; the properties are link_validity",
        ),
        ({"properties": "readability"}, TypeError, "put it into a list"),
        ({"properties": ["beauty:way=1"]}, ValueError, "no property 'beauty'"),
        ({"properties": ["readability:way=1"]}, ValueError, "no option 'way'"),
        ({"properties": ["readability:syllables=x"]}, ValueError, "auto, cmudict, rule"),
        ({"inputs": ["a", "b"]}, ValueError, "inputs has 2, texts has 1"),
    ],
)
def test_what_cannot_be_computed_is_said(arguments, error, message):
    with pytest.raises(error, match=message):
        calculate_properties(["a"], **arguments)


def test_attributes_name_method_and_models():
    frame = calculate_properties(["a word"], ["a word"], links="check")
    expected = {
        "link_validity": "HEAD.*limits:10,60",
        "readability": "syllables:(cmudict@[0-9a-f]{12}|rule)",
        "toxicity": "toxicity-ngrams@8bf5a2ba26",
        "acceptability": "^acceptability.*acceptability-smollm2@.*SmolLM2-135M-Instruct@b179c9523d0e",
        "formality": "curve:.*formality-minilm@[0-9a-f]{12}.*all-MiniLM-L6-v2@53aa51172d14",
        "avoided_answer": "avoided-answer-minilm@[0-9a-f]{12}",
        "grounded_in_context": "en_core_web_sm@e94cbf6c2424",
        "relevance": "method:cosine.*encoder:all-MiniLM-L6-v2@53aa51172d14",
    }
    for name, pattern in expected.items():
        assert re.search(pattern, frame.attrs[name]), frame.attrs[name]


def test_attributes_follow_the_options():
    rule, auto = (
        calculate_properties(["fire"], properties=[f"readability:syllables={way}"]).attrs
        for way in ("rule", "auto")
    )
    assert "syllables:rule" in rule["readability"] and ("cmudict" in auto["readability"]) == (
        rule != auto
    )


def test_attributes_name_a_folders_model(tmp_path):
    """The folder's own weights are in the signature: two folders with different weights sign differently."""
    from tests.test_tone import save_tiny_classifier

    signatures = []
    for seed in (0, 1):
        save_tiny_classifier(tmp_path / str(seed), ["toxic", "fine"], seed=seed)
        frame = calculate_properties(
            ["the mill"], properties=[f"toxicity:model={tmp_path / str(seed)}"]
        )
        signatures.append(frame.attrs["toxicity"])
    hashes = [re.search("@([0-9a-f]{12})", signature)[1] for signature in signatures]
    assert hashes[0] != hashes[1]


def test_each_of_the_pages_four_models_is_switched_to_by_its_folder(tmp_path):
    """Tiny models of the four architectures in the place of the defaults, all in one call."""
    from tests.models import tiny
    from tests.test_tone import PAGE

    metrics = {}
    names = {"avoided": "avoided_answer"}
    for name, (family, _, labels, _) in PAGE.items():
        tiny.save(
            tmp_path / name,
            family,
            id2label=dict(enumerate(labels)),
            label2id={one: place for place, one in enumerate(labels)},
        )
        kind = PROPERTIES[names.get(name, name)]
        metrics[kind.name] = kind(model=str(tmp_path / name))
    texts = tiny.TEXTS[:3]
    switched, usual = (
        calculate_properties(texts, texts, chosen) for chosen in (metrics.values(), list(metrics))
    )
    for name in metrics:
        assert switched[name].between(0, 1).all() and not np.allclose(
            switched[name], usual[name], atol=1e-3
        )
        assert (
            switched.attrs[name] != usual.attrs[name]
            and "minilm" not in switched.attrs[name].lower()
        )
        with pytest.raises(InputError, match=f"{name} was made in two ways"):
            compare_properties(switched[[name]], usual[[name]])


def test_a_model_without_the_label_is_refused():
    with pytest.raises(InputError, match="no label 'toxic'"):
        calculate_properties(["a"], properties=["toxicity:model=subjectivity-minilm"])


def test_a_bad_row_is_named_as_everywhere():
    with pytest.raises(InputTypeError, match=r"texts, row 1"):
        calculate_properties(["a", None])


def test_generators_are_taken():
    frame = calculate_properties(
        (text for text in ["A cat.", "A dog."]), properties=(name for name in ["readability"])
    )
    assert frame.shape == (2, 1) and frame.readability.notna().all()


def test_progress_shows_bars_and_silence_is_silent(capsys):
    calculate_properties(["a word"], ["a word"], QUICK)
    assert capsys.readouterr().err == ""
    calculate_properties(["a word"], ["a word"], QUICK, progress=True)
    assert "properties" in capsys.readouterr().err


def test_importing_the_module_imports_nothing_heavy():
    code = (
        "import tsteval.properties, sys; assert not {'torch', 'spacy', 'httpx2', 'nltk', 'scipy.optimize'} & "
        "set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# which ones, and of which texts


def test_an_empty_text_gets_the_same_from_every_property():
    frame = calculate_properties(["", " ", "..."], ["Who built it?"] * 3, include=["link_validity"])
    assert list(frame) == list(PROPERTIES)
    assert frame.isna().all(axis=None)


def test_include_and_ignore_change_the_usual_ones():
    texts = ["A cat.", "A dog."]
    quick = {name: PROPERTIES[name] for name in (*QUICK, "link_validity")}
    with mock.patch.dict(PROPERTIES, quick, clear=True):
        assert list(calculate_properties(texts, texts)) == QUICK
        assert list(calculate_properties(texts, texts, ignore=["readability"])) == [
            "grounded_in_context"
        ]
        assert list(calculate_properties(texts, include=["link_validity"])) == [
            "readability",
            "link_validity",
        ]
    assert list(
        calculate_properties(texts, properties=["readability"], include=["readability"])
    ) == ["readability"]
    for argument in ("include", "ignore"):
        with pytest.raises(InputError, match="no property 'beauty'"):
            calculate_properties(texts, **{argument: ["beauty"]})
    with pytest.raises(InputError, match="called acceptability"):
        calculate_properties(texts, properties=["fluency"])


def test_an_avoided_answer_needs_no_question_and_says_so():
    alone, asked = (
        calculate_properties(["At nine."], given, ["avoided_answer"])
        for given in (None, ["When is it?"])
    )
    assert alone.avoided_answer.notna().all() and "question:no" in alone.attrs["avoided_answer"]
    assert "question:no" not in asked.attrs["avoided_answer"]


def test_a_sample_keeps_its_places_and_repeats_itself():
    texts = [f"Word {'long ' * n}." for n in range(40)]
    whole = calculate_properties(texts, properties=["readability"])
    first, again, other = (
        calculate_properties(texts, properties=["readability"], sample=7, seed=seed)
        for seed in (1, 1, 2)
    )
    assert first.equals(again) and len(first) == 7 and list(first.index) != list(other.index)
    assert first.index.is_monotonic_increasing and np.allclose(
        first.readability, whole.readability[first.index]
    )
    assert len(calculate_properties(texts, properties=["readability"], sample=99)) == 40
    with pytest.raises(InputError, match="sample"):
        calculate_properties(texts, properties=["readability"], sample=0)


def test_a_cache_gives_the_same_numbers_and_is_read(tmp_path):
    texts = ["The mill was built by Anna Berg.", "It rained.", ""]
    store = tmp_path / "scores.sqlite"
    plain = calculate_properties(texts, texts, QUICK)
    kept = calculate_properties(texts, texts, QUICK, score_cache=store)
    assert (
        store.is_file() and kept.attrs == plain.attrs and np.allclose(kept, plain, equal_nan=True)
    )
    import tsteval.grounded as grounded

    with mock.patch.object(grounded, "parse", wraps=grounded.parse) as parsed:
        again = calculate_properties(texts, texts, ["grounded_in_context"], score_cache=store)
    assert sum(len(call.args[0]) for call in parsed.call_args_list) < len(texts)
    assert np.allclose(again, plain[["grounded_in_context"]], equal_nan=True)


# kept and compared


def test_signatures_are_kept_when_a_frame_is_saved_and_read(tmp_path):
    frame = calculate_properties(["A cat.", "", "A dog."], properties=["readability"], sample=2)
    save_properties(frame, tmp_path / "week.csv")
    again = read_properties(tmp_path / "week.csv")
    assert again.attrs == frame.attrs and np.allclose(again, frame, equal_nan=True)
    assert list(again.index) == list(frame.index)
    frame.to_parquet(tmp_path / "week.parquet")
    assert pd.read_parquet(tmp_path / "week.parquet").attrs == frame.attrs
    (tmp_path / "week.json").unlink()
    with pytest.raises(InputError, match="no signature of readability"):
        read_properties(tmp_path / "week.csv")
    with pytest.raises(InputError, match="must end in"):
        save_properties(frame, tmp_path / "week.txt")


def made(values, signature="one"):
    frame = pd.DataFrame({"readability": values})
    frame.attrs["readability"] = signature
    return frame


def test_a_change_is_welchs_and_corrected():
    from scipy.stats import ttest_ind

    rng = np.random.default_rng(0)
    first = rng.normal(0, 1, 40)
    second = rng.normal(1, 2, 60)
    second[0] = np.nan
    kinds = ["a"] * 20 + ["b"] * 20, ["a"] * 30 + ["b"] * 30
    table = compare_properties(made(first), made(second), kinds)
    assert list(table.segment) == ["all", "a", "b"] and list(table.n_after) == [59, 29, 30]
    test = ttest_ind(second[1:], first, equal_var=False)
    assert np.isclose(table.p[0], test.pvalue)
    assert np.allclose([table.low[0], table.high[0]], test.confidence_interval())
    assert (table.p_holm >= table.p).all() and np.isclose(
        table.change[0], np.nanmean(second) - first.mean()
    )


def test_the_interval_of_a_change_covers_what_it_says():
    rng = np.random.default_rng(1)
    covered = [
        found.low[0] <= 0.5 <= found.high[0]
        for found in (
            compare_properties(made(rng.normal(0, 1, 30)), made(rng.normal(0.5, 1, 50)))
            for _ in range(400)
        )
    ]
    assert 0.92 < np.mean(covered) < 0.98


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(InputError, match="made in two ways, one and two"):
        compare_properties(made([1, 2]), made([1], "two"))
    with pytest.raises(InputError, match="no property in common"):
        compare_properties(made([1.0]), pd.DataFrame({"toxicity": [1.0]}))
    with pytest.raises(InputError, match="segments"):
        compare_properties(made([1, 2]), made([1]), (["a"], ["a"]))
    lonely = compare_properties(made([1.0]), made([2.0]))
    assert lonely.change[0] == 1 and np.isnan(lonely.low[0])


def test_the_noise_of_floats_is_no_move():
    before, after = (pd.DataFrame({"toxicity": [0.04] * n}) for n in (10, 30))
    row = compare_properties(before, after).iloc[0]
    assert np.isnan(row.p)
    assert np.isnan(row.low)
    assert row.change == pytest.approx(0, abs=1e-12)
