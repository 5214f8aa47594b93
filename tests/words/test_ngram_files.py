"""Models in files: ARPA, NPZ, damaged ones, and files of others."""

import gzip
import json
import math
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import zipf_text
from tsteval.core.checks import InputError
from tsteval.ngram import RULES, NgramLM
from tsteval.ngram_metrics import is_ngram_file
from tsteval.words import ngram_files

NO_ARPA = ("mle", "add_k", "stupid_backoff")


def test_reads_an_arpa_file_of_others(tmp_path):
    path = tmp_path / "srilm.arpa"
    path.write_text(
        "a comment\n\n\\data\\\nngram 1=4\nngram 2=2\n\n\\1-grams:\n-0.5 </s>\n-99 <s> -0.3\n-0.7 b\n-0.2 a -0.1\n\n"
        "\\2-grams:\n-0.4 a b\n-0.6 <s> a\n\n\\end\\\n"
    )
    model = NgramLM.from_arpa(path)
    assert model.logprobs([["a", "b"]])[0] / math.log(10) == pytest.approx([-0.6, -0.4, -0.5])
    assert model.logprobs([["b", "zzz"]])[0] / math.log(10) == pytest.approx(
        [-1.0, -100, -0.5]
    )  # KenLM's -100 for no <unk>
    with pytest.raises(ValueError, match="came from an ARPA file"):
        model.fit([["a"]])


@pytest.mark.parametrize(
    "old, new, message",
    [
        ("-0.4 a b", "-0.4 a", "line 13"),
        ("-0.4 a b", "x a b", "line 13"),
        ("-0.4 a b", "-0.4 a zebra", "line 13"),
        ("-0.4 a b", "-0.6 <s> a", "line 14"),
        ("-0.4 a b", "0.4 a b", "line 13"),
        ("-0.4 a b", "nan a b", "line 13"),
        ("-0.4 a b\n", "", "cut short"),
        ("\\end\\", "", "cut short"),
        ("\\data\\", "data", "not an ARPA file"),
        ("ngram 2=2", "ngram two", "line 5"),
        ("\\2-grams:", "\\x-grams:", "line 12"),
        ("-0.2 a -0.1", "-0.2 a -0.1 b c", "line 10"),
        ("-0.2 a -0.1", "-0.2 a nan", "line 10"),
        ("-0.2 a -0.1", "-0.2 a inf", "line 10"),
    ],
)
def test_broken_arpa_file_names_the_line(old, new, message, tmp_path):
    path = tmp_path / "broken.arpa"
    sound = (
        "\\data\\\n\n\nngram 1=4\nngram 2=2\n\\1-grams:\n-0.5 </s>\n-99 <s> -0.3\n-0.7 b\n-0.2 a -0.1\n\n"
        "\\2-grams:\n-0.4 a b\n-0.6 <s> a\n\n\\end\\\n"
    )
    path.write_text(sound)
    NgramLM.from_arpa(path)
    path.write_text(sound.replace(old, new))
    with pytest.raises(ValueError, match=message):
        NgramLM.from_arpa(path)


@pytest.mark.parametrize(
    "content", ["", "\n\n", "only a comment\n", "\\data\\\n", "\\data\\\n\\end\\\n"]
)
def test_an_arpa_file_without_ngrams_is_named(content, tmp_path):
    path = tmp_path / "empty.arpa"
    path.write_text(content)
    with pytest.raises(InputError, match=r"empty.arpa is cut short or not an ARPA file"):
        NgramLM.from_arpa(path)


def test_an_arpa_file_that_is_not_utf8_is_named(tmp_path):
    path = tmp_path / "latin.arpa"
    path.write_bytes(b"\\data\\\nngram 1=1\n\n\\1-grams:\n-1\tna\xefve\n\n\\end\\\n")
    with pytest.raises(InputError, match=r"latin.arpa, after line .*not UTF-8"):
        NgramLM.from_arpa(path)


def test_the_word_UNK_is_refused_when_an_arpa_file_is_written(tmp_path):
    path = tmp_path / "model.arpa"
    with pytest.raises(InputError, match="the word <UNK> means <unk>"):
        NgramLM(2, padding="arpa").fit([["<UNK>", "a"], ["a", "b"]]).to_arpa(path)
    assert not path.exists()
    NgramLM(2, padding="arpa").fit([["<unk>", "a"], ["a", "b"]]).to_arpa(path)
    path.write_text(path.read_text().replace("<unk>", "<UNK>"))  # as SRILM writes it
    assert NgramLM.from_arpa(path).prob("new") > 0


def test_words_with_half_a_surrogate_pair(tmp_path):
    model = NgramLM(2, padding="arpa").fit([["a", "\ud800"], ["a", "b"]])
    with pytest.raises(InputError, match="surrogate"):
        model.to_arpa(tmp_path / "model.arpa")
    model.save(tmp_path / "model.npz")
    again = NgramLM.load(tmp_path / "model.npz")
    assert again.words == model.words and again.identity == model.identity


@pytest.mark.parametrize("smoothing", [*NO_ARPA, "both"])
def test_what_arpa_cannot_express_is_refused(smoothing, tmp_path):
    model = (
        NgramLM(padding="both")
        if smoothing == "both"
        else NgramLM(smoothing=smoothing, padding="arpa")
    )
    with pytest.raises(ValueError, match="has no ARPA form"):
        model.fit(zipf_text(20)).to_arpa(tmp_path / "x.arpa")
    with pytest.raises(ValueError, match="a space, tab or line break"):
        NgramLM(padding="arpa").fit([["New York", "is"]]).to_arpa(tmp_path / "x.arpa")


@pytest.mark.parametrize(
    "smoothing, options",
    [(name, {}) for name in RULES] + [("modified_kneser_ney", {"discount": (0.5, 1, 1.5)})],
)
def test_npz_round_trip(smoothing, options, tmp_path):
    corpus = [*zipf_text(), ["naïve", "日本", "a\nb", ""]]
    model = NgramLM(3, smoothing, padding="arpa", katz_cutoff=2, **options).fit(corpus)
    model.save(tmp_path / "model.npz")
    again = NgramLM.load(tmp_path / "model.npz")
    assert again.words == model.words and again.smoothing == smoothing
    for ours, theirs in zip(model.logprobs([*corpus, ["new"]]), again.logprobs([*corpus, ["new"]])):
        assert (ours == theirs).all()


def saved(tmp_path):
    path = tmp_path / "model.npz"
    NgramLM(3).fit(zipf_text(20)).save(path)
    return path, dict(np.load(path))


def test_damaged_npz_names_the_array(tmp_path):
    path, arrays = saved(tmp_path)
    damages = {name: values[:-1] for name, values in arrays.items() if values.ndim}
    damages["settings"] = np.array("{}[")
    for name, damaged in damages.items():
        np.savez(path, **{**arrays, name: damaged})
        with pytest.raises(
            ValueError, match="array word_" if name.startswith("word") else f"array .*{name[-2:]}"
        ):
            NgramLM.load(path)
        np.savez(path, **{other: values for other, values in arrays.items() if other != name})
        with pytest.raises(ValueError, match=f"array {name} is missing"):
            NgramLM.load(path)


@pytest.mark.parametrize(
    "name, change",
    [
        ("keys_2", lambda keys: keys[::-1]),
        ("keys_2", lambda keys: keys + (1 << 60)),
        ("keys_3", lambda keys: keys | 0xFFFFFF),
        ("keys_1", lambda keys: keys + 1),
        ("log_probabilities_2", lambda logs: logs * np.nan),
        ("log_weights_1", lambda logs: logs * np.nan),
        ("log_probabilities_1", lambda logs: logs.astype(np.float32)),
        ("keys_2", lambda keys: keys.astype(float)),
    ],
)
def test_senseless_npz_names_the_array(name, change, tmp_path):
    path, arrays = saved(tmp_path)
    np.savez(path, **{**arrays, name: change(arrays[name])})
    with pytest.raises(ValueError, match=f"array {name} does not fit"):
        NgramLM.load(path)


def test_truncated_or_flipped_npz_never_loads_silently(tmp_path):
    path, _ = saved(tmp_path)
    sound = path.read_bytes()
    expected = NgramLM.load(path).logprobs(zipf_text(5))
    random = np.random.default_rng(0)
    for place in random.integers(0, len(sound), 60).tolist():
        for damaged in (
            sound[:place],
            sound[:place] + bytes([sound[place] ^ 0xFF]) + sound[place + 1 :],
        ):
            path.write_bytes(damaged)
            try:
                scores = NgramLM.load(path).logprobs(zipf_text(5))
            except ValueError as error:
                assert "model.npz" in str(error)
            else:  # a byte that zip does not use, such as a time stamp
                assert all((ours == theirs).all() for ours, theirs in zip(scores, expected))


@pytest.mark.parametrize(
    "change, message",
    [
        ({"temperature": 2}, "the setting 'temperature' is unknown"),
        ({"order": None}, "the setting 'order' is missing"),
        ({"order": "3"}, "order must be a whole number"),
        ({"order": 10**12}, "the array log_weights_3 is missing"),
        ({"smoothing": "magic"}, "smoothing must be one of"),
        ({"discount": [0.1, 0.2]}, "discount must be one number"),
    ],
)
def test_wrong_settings_of_an_npz_name_the_file_and_the_setting(change, message, tmp_path):
    path, arrays = saved(tmp_path)
    settings = {**json.loads(str(arrays["settings"])), **change}
    if settings["order"] is None:
        del settings["order"]
    np.savez(path, **{**arrays, "settings": np.array(json.dumps(settings))})
    with pytest.raises(InputError, match=f"model.npz: {message}"):
        NgramLM.load(path)
    np.savez(path, **{**arrays, "settings": np.array("[3]")})
    with pytest.raises(InputError, match=r"model.npz: the array settings"):
        NgramLM.load(path)


@pytest.mark.parametrize("kind", ["arpa", "npz"])
def test_mangled_files_load_or_are_named(kind, tmp_path):
    """Bytes overwritten, cut out, put in and repeated, in 300 ways."""
    model = NgramLM(3, padding="arpa").fit([["a", "b", "c"], ["b", "d"]])
    path = tmp_path / f"model.{kind}"
    write, read = (
        (model.to_arpa, NgramLM.from_arpa) if kind == "arpa" else (model.save, NgramLM.load)
    )
    write(path)
    sound = path.read_bytes()
    random = np.random.default_rng(0)
    refused = 0
    for _ in range(300):
        first, second = sorted(random.integers(0, len(sound), 2).tolist())
        second = min(second, first + 40)
        middle = [
            b"",
            random.bytes(3),
            sound[first:second] * 2,
            bytes([sound[first] ^ 0x10]) + sound[first + 1 : second],
        ]
        path.write_bytes(sound[:first] + middle[random.integers(4)] + sound[second:])
        try:
            read(path).logprobs([["a", "new"]])
        except InputError as error:
            refused += path.name in str(error)
    assert refused > 200


def test_npz_with_a_pickle_is_refused(tmp_path):
    path, arrays = saved(tmp_path)
    np.savez(path, **{**arrays, "settings": np.array([{"order": 3}], dtype=object)})
    with pytest.raises(ValueError, match="settings"):
        NgramLM.load(path)
    (tmp_path / "other.npz").write_text("no archive")
    with pytest.raises(ValueError, match=r"other.npz"):
        NgramLM.load(tmp_path / "other.npz")


@pytest.mark.parametrize("write", ["save", "to_arpa"])
def test_a_model_that_cannot_be_written_whole_leaves_the_earlier_one(tmp_path, monkeypatch, write):
    lm = NgramLM(order=2, padding="arpa").fit([["a", "b"], ["b", "a"]])
    path = tmp_path / "model"
    getattr(lm, write)(path)
    before = path.read_bytes()

    def full(*arguments, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez" if write == "save" else "maximum", full)
    with pytest.raises(OSError) as caught:
        getattr(lm, write)(path)
    assert caught.value.filename == str(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["model"]


def test_load_reads_arpa_files_too(tmp_path):
    model = NgramLM(2, padding="arpa").fit([["a", "b"], ["b"]])
    model.to_arpa(tmp_path / "model.arpa")
    again = NgramLM.load(tmp_path / "model.arpa")
    assert (
        again.prob("b", ["a"]) == pytest.approx(model.prob("b", ["a"]))
        and again.smoothing == "arpa"
    )
    assert model.tag.startswith(f"{model.name}@") and model.name == "ngram-2-kneser_ney-arpa"


def test_a_small_file_may_not_unpack_to_a_huge_model(tmp_path, monkeypatch):
    from tsteval.words import ngram_files

    np.savez_compressed(tmp_path / "model.npz", settings=np.zeros(2**23))
    with pytest.raises(InputError, match=r"the magic|settings"):
        NgramLM.load(tmp_path / "model.npz")
    monkeypatch.setattr(ngram_files, "MOST_UNPACKED", 2**20)
    with pytest.raises(
        InputError, match=r"model\.npz: cannot read its directory \(it unpacks to 67,"
    ):
        NgramLM.load(tmp_path / "model.npz")


def test_a_packed_arpa_file_is_read(tmp_path):
    model = NgramLM(2, "witten_bell", padding="arpa").fit([["a", "dam"], ["a", "mill"]])
    model.to_arpa(tmp_path / "x.arpa")
    packed = tmp_path / "x.arpa.gz"
    packed.write_bytes(gzip.compress((tmp_path / "x.arpa").read_bytes()))
    assert is_ngram_file(packed) and NgramLM.load(packed).words == NgramLM.from_arpa(packed).words
    score = NgramLM.load(packed).logprobs([["a", "dam"]])[0]
    assert score == pytest.approx(NgramLM.load(tmp_path / "x.arpa").logprobs([["a", "dam"]])[0])
    packed.write_bytes(packed.read_bytes()[:-9])
    with pytest.raises(InputError, match=r"x.arpa.gz: not a readable gzip file"):
        NgramLM.load(packed)


def test_a_packed_arpa_file_may_not_unpack_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr(ngram_files, "MOST_UNPACKED", 1000)
    (tmp_path / "x.arpa.gz").write_bytes(gzip.compress(b"a comment\n" * 100_000))
    with pytest.raises(InputError, match="unpacks to more than"):
        NgramLM.load(tmp_path / "x.arpa.gz")


def test_a_no_break_space_is_part_of_a_word(tmp_path):
    path = tmp_path / "x.arpa"
    text = "\\data\\\nngram 1=3\n\n\\1-grams:\n-0.5\t</s>\n-99\t<s>\n-0.7\t10\u00a0km\u2009h\n\n\\end\\\n"
    path.write_text(text, encoding="utf-8")
    assert "10\u00a0km\u2009h" in NgramLM.from_arpa(path).words


WORD = st.text(st.characters(exclude_categories=("Cs",), exclude_characters=" \t\r\n"), min_size=1)


@given(st.lists(st.lists(WORD, min_size=1, max_size=4), min_size=1, max_size=4))
def test_any_words_come_back_from_an_arpa_file(sentences):
    model = NgramLM(2, "witten_bell", padding="arpa").fit(sentences)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.arpa"
        try:
            model.to_arpa(path)
        except InputError:
            assert any("<UNK>" in words for words in sentences)
            return
        again = NgramLM.from_arpa(path)
    assert sorted(again.words) == sorted(model.words)
    assert again.logprobs(sentences)[0] == pytest.approx(model.logprobs(sentences)[0], rel=1e-6)
