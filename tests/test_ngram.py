"""NgramLM against NLTK and KenLM, its distributions, its files, and what it says to bad input."""

import json
import math
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.lm import (
    MLE,
    AbsoluteDiscountingInterpolated,
    KneserNeyInterpolated,
    Lidstone,
    StupidBackoff,
    Vocabulary,
    WittenBellInterpolated,
)
from nltk.lm.preprocessing import padded_everygram_pipeline

from tsteval.core.checks import InputError, InputTypeError
from tsteval.core.metric import sign
from tsteval.lexical.ngram_counts import (
    FEW,
    HEAD,
    LONGEST,
    PIECE,
    KeyIndex,
    WordFinder,
    WordIds,
    add_markers,
    count_text,
    look_up,
    merge_runs,
    merge_stack,
)
from tsteval.lexical.ngram_model import NotFittedError
from tsteval.lexical.ngram_smoothing import (
    Level,
    counts_of_counts,
    discounts_by_count,
    katz_ratios,
    modified_discounts,
    smooth_katz,
)
from tsteval.ngram import RULES, NgramLM

CORPORA = st.lists(st.lists(st.sampled_from("abcdef"), max_size=7), min_size=1, max_size=12).filter(any)
NORMALISED = [name for name in RULES if name not in ("mle", "stupid_backoff")]
NO_ARPA = ("mle", "add_k", "stupid_backoff")


def text(sentences=2000, seed=0, vocabulary=5000):
    """Sentences of Zipf-distributed words, half of them with a fixed successor, for n-grams of every count."""
    random = np.random.default_rng(seed)
    shares = 1 / np.arange(1, vocabulary + 1) ** 1.1
    corpus = []
    for draws in (
        random.choice(vocabulary, size=random.integers(1, 15), p=shares / shares.sum()) for _ in range(sentences)
    ):
        words = [draws[0]]
        for draw in draws[1:]:
            words.append((words[-1] + 1) % vocabulary if random.random() < 0.5 else draw)
        corpus.append([f"w{word}" for word in words])
    return corpus


def nltk_model(smoothing, order, discount, k, corpus, cutoff):
    models = {
        "mle": MLE,
        "witten_bell": WittenBellInterpolated,
        "add_k": lambda order, **options: Lidstone(k, order, **options),
        "absolute": lambda order, **options: AbsoluteDiscountingInterpolated(order, discount=discount, **options),
        "kneser_ney": lambda order, **options: KneserNeyInterpolated(order, discount=discount, **options),
        "stupid_backoff": lambda order, **options: StupidBackoff(0.4, order, **options),
    }
    everygrams, words = padded_everygram_pipeline(order, corpus)
    model = models[smoothing](order, vocabulary=Vocabulary(words, unk_cutoff=cutoff))
    model.fit(everygrams)
    return model


@pytest.mark.parametrize("smoothing", ["mle", "add_k", "absolute", "kneser_ney", "witten_bell", "stupid_backoff"])
@given(
    corpus=CORPORA,
    order=st.integers(1, 4),
    discount=st.floats(0, 1),
    k=st.floats(0.01, 3),
    cutoff=st.integers(1, 2),
    questions=st.lists(
        st.lists(st.sampled_from([*"abcdefz", "<s>", "</s>"]), min_size=4, max_size=4), min_size=5, max_size=20
    ),
)
@settings(max_examples=40, deadline=None)
def test_equals_nltk(smoothing, corpus, order, discount, k, cutoff, questions):
    if smoothing == "kneser_ney" and order == 1:
        return  # NLTK divides by zero: it has no level to count continuations in
    peer = nltk_model(smoothing, order, discount, k, corpus, cutoff)
    if order > 1 and not {"<s>", "</s>"} <= set(peer.vocab):
        return  # NLTK's cutoff can turn its own markers into unknown words
    ours = NgramLM(order, smoothing, discount, unk_cutoff=cutoff, add_k=k).fit(corpus)
    assert ours.vocabulary_size == len(peer.vocab)
    for *context, word in questions:
        for length in range(order):
            used = context[len(context) - length :]
            assert ours.prob(word, used) == pytest.approx(peer.score(word, used or None), rel=0, abs=1e-9)


def test_logprobs_are_nltks_padded_ngrams():
    corpus = text(20)
    ours, peer = NgramLM().fit(corpus), nltk_model("kneser_ney", 3, 0.1, 1, corpus, 1)
    for sentence, logprobs in zip(corpus, ours.logprobs(corpus)):
        padded = ["<s>"] * 2 + sentence + ["</s>"] * 2
        expected = [peer.logscore(padded[i], padded[i - 2 : i]) * math.log(2) for i in range(2, len(padded))]
        assert logprobs == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("smoothing", NORMALISED)
@given(
    corpus=CORPORA,
    order=st.integers(1, 4),
    padding=st.sampled_from(["both", "arpa"]),
    discount=st.floats(0, 1),
    context=st.lists(st.sampled_from([*"abcdefz", "<s>", "</s>"]), max_size=3),
)
@settings(max_examples=60, deadline=None)
def test_distributions_sum_to_one(smoothing, corpus, order, padding, discount, context):
    if smoothing == "modified_kneser_ney":
        discount = (discount, 2 * discount, 3 * discount)
    context = context[: order - 1]
    if smoothing == "kneser_ney" and padding == "both" and context[-1:] == ["<s>"]:
        return  # NLTK's excess, see the next test
    try:
        model = NgramLM(order, smoothing, discount, padding, katz_cutoff=2).fit(corpus)
    except ValueError as error:
        assert smoothing == "katz" and "cannot estimate" in str(error)
        return
    distribution = model.distribution(context)
    assert distribution.min() >= 0 and distribution.sum() == pytest.approx(1, rel=0, abs=1e-9)


@pytest.mark.parametrize("padding", ["both", "arpa"])
@pytest.mark.parametrize("smoothing", NORMALISED)
def test_distributions_of_a_larger_text_sum_to_one(smoothing, padding):
    model = NgramLM(3, smoothing, padding=padding, unk_cutoff=2, katz_cutoff=2).fit(text())
    for context in [[], ["w0"], ["w1", "w0"], ["w40", "w41"], ["new", "w0"], ["w0", "new"], ["</s>"]]:
        assert model.distribution(context).sum() == pytest.approx(1, rel=0, abs=1e-9), context


def test_nltks_kneser_ney_exceeds_one_after_a_start_marker():
    corpus = text(30)
    excess = NgramLM(3, discount=0.5).fit(corpus).distribution(["<s>"]).sum() - 1
    peer = nltk_model("kneser_ney", 3, 0.5, 1, corpus, 1)
    assert excess > 1e-4 and excess == pytest.approx(
        sum(peer.score(word, ["<s>"]) for word in peer.vocab) - 1, abs=1e-9
    )
    assert NgramLM(3, discount=0.5, padding="arpa").fit(corpus).distribution(["<s>"]).sum() == pytest.approx(
        1, abs=1e-12
    )


def test_start_marker_is_never_predicted_under_arpa():
    for smoothing in RULES:
        model = NgramLM(3, smoothing, padding="arpa", katz_cutoff=2).fit(text())
        assert model.prob("<s>", ["w0"]) == model.prob("<s>") == model.prob("<s>", ["new", "new"]) == 0


@pytest.mark.parametrize("order", [2, 3, 4])
@pytest.mark.parametrize("smoothing", [name for name in RULES if name not in NO_ARPA])
def test_kenlm_scores_our_arpa_file_alike(smoothing, order, tmp_path):
    pytest.importorskip("kenlm", reason="pip install kenlm")
    corpus, others = text(), text(60, seed=1, vocabulary=6000)
    ours = NgramLM(order, smoothing, padding="arpa", katz_cutoff=2).fit(corpus)
    ours.to_arpa(tmp_path / "model.arpa")
    code = (
        "import sys, kenlm; model = kenlm.LanguageModel(sys.argv[1])\n"
        "for line in sys.stdin: print(repr(model.score(line.strip())))"
    )
    sentences = [*corpus[:60], *others, []]
    run = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "model.arpa")],
        capture_output=True,
        text=True,
        check=True,
        input="\n".join(" ".join(sentence) for sentence in sentences) + "\n",
    )
    expected = np.array(run.stdout.split(), dtype=float)
    scores = np.array([row.sum() for row in ours.logprobs(sentences)]) / math.log(10)
    assert scores == pytest.approx(expected, rel=0, abs=1e-4)
    reread = NgramLM.from_arpa(tmp_path / "model.arpa")
    again = np.array([row.sum() for row in reread.logprobs(sentences)]) / math.log(10)
    assert again == pytest.approx(scores, rel=0, abs=1e-5) and reread.padding == "arpa"


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


@pytest.mark.parametrize("content", ["", "\n\n", "only a comment\n", "\\data\\\n", "\\data\\\n\\end\\\n"])
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
    model = NgramLM(padding="both") if smoothing == "both" else NgramLM(smoothing=smoothing, padding="arpa")
    with pytest.raises(ValueError, match="has no ARPA form"):
        model.fit(text(20)).to_arpa(tmp_path / "x.arpa")
    with pytest.raises(ValueError, match="white space"):
        NgramLM(padding="arpa").fit([["New York", "is"]]).to_arpa(tmp_path / "x.arpa")


@pytest.mark.parametrize(
    "smoothing, options", [(name, {}) for name in RULES] + [("modified_kneser_ney", {"discount": (0.5, 1, 1.5)})]
)
def test_npz_round_trip(smoothing, options, tmp_path):
    corpus = [*text(), ["naïve", "日本", "a\nb", ""]]
    model = NgramLM(3, smoothing, padding="arpa", katz_cutoff=2, **options).fit(corpus)
    model.save(tmp_path / "model.npz")
    again = NgramLM.load(tmp_path / "model.npz")
    assert again.words == model.words and again.smoothing == smoothing
    for ours, theirs in zip(model.logprobs([*corpus, ["new"]]), again.logprobs([*corpus, ["new"]])):
        assert (ours == theirs).all()


def saved(tmp_path):
    path = tmp_path / "model.npz"
    NgramLM(3).fit(text(20)).save(path)
    return path, dict(np.load(path))


def test_damaged_npz_names_the_array(tmp_path):
    path, arrays = saved(tmp_path)
    damages = {name: values[:-1] for name, values in arrays.items() if values.ndim}
    damages["settings"] = np.array("{}[")
    for name, damaged in damages.items():
        np.savez(path, **{**arrays, name: damaged})
        with pytest.raises(ValueError, match="array word_" if name.startswith("word") else f"array .*{name[-2:]}"):
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
    expected = NgramLM.load(path).logprobs(text(5))
    random = np.random.default_rng(0)
    for place in random.integers(0, len(sound), 60).tolist():
        for damaged in (sound[:place], sound[:place] + bytes([sound[place] ^ 0xFF]) + sound[place + 1 :]):
            path.write_bytes(damaged)
            try:
                scores = NgramLM.load(path).logprobs(text(5))
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
    model, path = NgramLM(3, padding="arpa").fit([["a", "b", "c"], ["b", "d"]]), tmp_path / f"model.{kind}"
    write, read = (model.to_arpa, NgramLM.from_arpa) if kind == "arpa" else (model.save, NgramLM.load)
    write(path)
    sound, random, refused = path.read_bytes(), np.random.default_rng(0), 0
    for _ in range(300):
        first, second = sorted(random.integers(0, len(sound), 2).tolist())
        second = min(second, first + 40)
        middle = [b"", random.bytes(3), sound[first:second] * 2, bytes([sound[first] ^ 0x10])
                  + sound[first + 1 : second]]
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


@given(corpus=CORPORA, order=st.integers(1, 4), batch=st.integers(1, 10))
@settings(max_examples=50, deadline=None)
def test_counts_do_not_depend_on_the_batches(corpus, order, batch):
    words, whole = count_text(corpus, order, (1, 1))
    same_words, pieces = count_text(iter(corpus), order, (1, 1), batch_words=batch)
    assert words == same_words
    for (keys, counts), (other_keys, other_counts) in zip(whole, pieces):
        assert (keys == other_keys).all() and (counts == other_counts).all()


def test_a_long_stream_is_held_as_few_runs():
    random, runs, largest = np.random.default_rng(0), [], 0
    for _ in range(300):
        keys, counts = np.unique(random.integers(0, 500, 50), return_counts=True)
        runs.append([(keys, counts)])
        merge_stack(runs)
        largest = max(largest, len(runs))
    ((keys, counts),) = merge_runs(runs)
    assert largest <= 6 and counts.sum() == 300 * 50 and (np.diff(keys) > 0).all()


def test_a_generator_larger_than_the_batch_fits_like_a_list(monkeypatch):
    corpus = text(300)
    expected = NgramLM().fit(corpus)
    monkeypatch.setattr("tsteval.lexical.ngram_counts.count_text.__defaults__", (50,))
    streamed = NgramLM().fit(sentence for sentence in corpus)
    assert all((ours == theirs).all() for ours, theirs in zip(expected.log_probabilities, streamed.log_probabilities))


@given(
    corpus=CORPORA,
    sentences=st.lists(st.lists(st.sampled_from("abcxyz"), max_size=6), min_size=1, max_size=6),
    padding=st.sampled_from(["both", "arpa"]),
    smoothing=st.sampled_from(["kneser_ney", "stupid_backoff", "add_k", "mle"]),
)
@settings(max_examples=60, deadline=None)
def test_a_sentences_score_does_not_depend_on_its_neighbours(corpus, sentences, padding, smoothing):
    model = NgramLM(3, smoothing, padding=padding).fit(corpus)
    for sentence, together in zip(sentences, model.logprobs(sentences)):
        assert (model.logprobs([sentence])[0] == together).all()
        assert len(together) == len(sentence) + (1 if padding == "arpa" else 2)
    assert model.logprobs([]) == []


@given(
    corpus=CORPORA,
    order=st.integers(2, 4),
    smoothing=st.sampled_from(["witten_bell", "absolute", "stupid_backoff", "mle"]),
)
@settings(max_examples=40, deadline=None)
def test_logprobs_agree_with_prob(corpus, order, smoothing):
    model = NgramLM(order, smoothing, padding="arpa").fit(corpus)
    sentence = ["a", "b", "z", "c"]
    padded = ["<s>", *sentence, "</s>"]
    one_by_one = [model.prob(padded[i], padded[max(0, i - order + 1) : i]) for i in range(1, len(padded))]
    assert np.exp(model.logprobs([sentence])[0]) == pytest.approx(one_by_one)


def test_ready_made_counts_equal_counting():
    corpus = [sentence for sentence in text(50) if len(sentence) > 1]
    padded = [["<s>", *sentence, "</s>"] for sentence in corpus]
    tables = [{}, {}]
    for n, table in enumerate(tables, 1):
        for sentence in padded:
            for i in range(len(sentence) - n + 1):
                gram = tuple(sentence[i : i + n])
                table[gram] = table.get(gram, 0) + 1
    for smoothing in ("witten_bell", "kneser_ney", "absolute"):
        counted = NgramLM(2, smoothing, padding="arpa").fit(corpus)
        given_counts = NgramLM(2, smoothing, padding="arpa").fit_counts(tables)
        assert [row.tolist() for row in counted.logprobs(corpus)] == [
            pytest.approx(row.tolist(), rel=1e-12) for row in given_counts.logprobs(corpus)
        ]


def test_occurrences_that_no_bigram_accounts_for_count_as_unseen():
    model = NgramLM(2, "stupid_backoff", padding="arpa").fit_counts([{("a",): 90, ("b",): 10}, {("a", "b"): 9}])
    assert model.prob("b", ["a"]) == pytest.approx(0.1)
    for smoothing in ("witten_bell", "absolute", "kneser_ney", "add_k"):
        model = NgramLM(2, smoothing, padding="arpa").fit_counts(
            [{("a",): 90, ("b",): 10}, {("a", "b"): 9, ("c", "a"): 2}]
        )
        for context in (["a"], ["b"], ["c"], []):
            assert model.distribution(context).sum() == pytest.approx(1, rel=0, abs=1e-12)
        assert smoothing in ("add_k", "kneser_ney") or 1 - model.prob("b", ["a"]) > 0.8


@given(st.lists(st.integers(0, 2**62), unique=True, max_size=200), st.lists(st.integers(-(2**62), 2**62), max_size=100))
def test_key_index_finds_all_and_only_its_keys(keys, others):
    keys = np.array(sorted(keys), dtype=np.int64)
    index = KeyIndex(keys)
    assert (index.find(keys) == np.arange(len(keys))).all()
    rows = {key: row for row, key in enumerate(keys.tolist())}
    assert index.find(np.array(others, dtype=np.int64)).tolist() == [rows.get(key, -1) for key in others]


@given(
    st.lists(st.text(alphabet="ab\0é\ud800\u3000 \n", max_size=15) | st.text(max_size=200), unique=True, max_size=30),
    st.lists(st.text(alphabet="ab\0é\ud800\u3000 \n", max_size=15), max_size=30),
)
def test_finder_gives_the_ids_of_the_dictionary(listed, others):
    finder = WordFinder(WordIds({word: row for row, word in enumerate(dict.fromkeys(["<unk>", *listed]))}))
    for words in (listed + others, [word for word in listed + others if "\n" not in word]):
        many = words * (1 + FEW // max(len(words), 1))
        assert finder.find_tokens(many).tolist() == look_up(finder.ids, many).tolist()
    found, lengths = finder.split(listed + others)
    split = [text.split() for text in listed + others]
    assert found.tolist() == [finder.ids[word] for words in split for word in words]
    assert lengths.tolist() == [len(words) for words in split]


@given(st.lists(st.lists(st.sampled_from(["a", "b", "abcdefgh", "abcdefghi", "é", "new"]), max_size=6), max_size=6))
def test_texts_are_scored_as_their_tokens(sentences):
    for smoothing in ("kneser_ney", "mle", "stupid_backoff"):
        for padding in ("both", "arpa"):
            model = NgramLM(3, smoothing, padding=padding,
                            discount=0.5).fit([["a", "b", "abcdefgh"], ["é", "a", "abcdefghi"]])
            texts = model.text_logprobs([" \t".join(tokens) + "\n" for tokens in sentences])
            assert [row.tolist() for row in texts] == [row.tolist() for row in model.logprobs(sentences)]


def test_texts_with_markers_or_without_text_are_refused():
    model = NgramLM(2).fit([["a", "b"]])
    with pytest.raises(ValueError, match=r"row 1.*<s>"):
        model.text_logprobs(["a", "b <s>"])
    with pytest.raises(TypeError):
        model.text_logprobs(["a", None])


def test_estimates_against_the_pencil():
    assert counts_of_counts(np.array([1, 1, 3, 0, 7]), 3).tolist() == [0, 2, 0, 1]
    assert modified_discounts(np.repeat([1, 2, 3, 4], [100, 40, 20, 12])) == pytest.approx([0, 5 / 9, 7 / 6, 5 / 3])
    assert katz_ratios(np.repeat([1, 2, 3, 4, 5, 6], [60, 20, 10, 6, 4, 3]), 5)[1] == pytest.approx(
        (40 / 60 - 0.3) / 0.7
    )
    assert katz_ratios(np.array([2, 2, 3]), 5).tolist() == [0, 1, 1, 1, 1, 1]  # no n-gram seen once: nothing to free
    assert discounts_by_count(np.array([9, 1, 0]), (0.5, 1, 1.5)).tolist() == [1.5, 0.5, 0]
    for estimate in (modified_discounts, lambda counts: katz_ratios(counts, 5)):
        with pytest.raises(ValueError, match="cannot estimate"):
            estimate(np.array([1, 1, 2]))


def katz_level(lower):
    """86 bigrams, two a context, seen once to four times, and the share that each keeps: the discounts are 7/12 and
    1/8."""
    counts = np.random.default_rng(3).permutation(np.repeat([1.0, 2, 3, 4], [60, 20, 4, 2]))
    context = np.arange(86) // 2
    level = Level(counts, counts > 0, context, np.bincount(context, counts), np.full(86, lower), 10)
    return level, counts, np.where(counts == 1, 7 / 12, np.where(counts == 2, 1 / 8, 1))


def test_katz_keeps_what_was_seen_more_often_than_the_cutoff():
    level, counts, share = katz_level(lower=0.1)
    probabilities, weights = smooth_katz(level, 2)
    for context in range(43):
        seen = counts[2 * context:2 * context + 2]
        total = seen.sum() + (seen.min() > 2)  # a context that frees nothing is seen once more
        assert probabilities[2 * context:2 * context + 2] == pytest.approx(seen * share[2 * context:2 * context
                                                                                        + 2] / total)
        assert weights[context] == pytest.approx((1 - probabilities[2 * context:2 * context + 2].sum()) / 0.8)


def test_katz_discounts_nothing_where_every_word_was_seen():
    level, counts, _ = katz_level(lower=0.5)
    probabilities, weights = smooth_katz(level, 2)
    assert probabilities == pytest.approx(counts / level.totals[level.context]) and not weights.any()


def test_a_marker_among_the_words_is_named_by_its_row():
    with pytest.raises(InputError, match="row 7"):
        add_markers(np.array([5, 6, 5, 1]), np.array([1, 1, 2]), (1, 1), (1, 2), first_row=5)
    with pytest.raises(InputError, match="row 6"):
        add_markers(np.array([5, 2, 5, 6]), np.array([1, 1, 2]), (1, 1), (1, 2), first_row=5)


def test_words_of_every_length_are_found():
    lengths = sorted({length + step for length in (1, HEAD, HEAD + PIECE, LONGEST - PIECE, LONGEST, 2 * LONGEST)
                      for step in (0, 1, 2)})
    listed = ["w" * length for length in lengths]
    model = NgramLM(1, "mle", padding="arpa").fit([listed, [listed[0]]])
    assert (
        np.concatenate(model.text_logprobs(listed)).tolist()
        == np.concatenate(model.logprobs([[word] for word in listed])).tolist()
    )
    finder = WordFinder(WordIds({word: row for row, word in enumerate(["<unk>", *listed])}))
    text = " ".join(listed).encode()
    starts = np.cumsum([0, *(length + 1 for length in lengths)])[:-1]
    assert finder.find(text, starts, np.array(lengths)).tolist() == list(range(1, len(listed) + 1))


def test_perplexity():
    model = NgramLM(1, "mle").fit([["a", "a", "b", "b"]])
    assert model.perplexity([["a", "b"]]) == pytest.approx(2)
    assert model.perplexity([["a", "new"]]) == math.inf
    for nothing in ([], [[]]):
        with pytest.raises(ValueError, match="at least one sentence"):
            model.perplexity(nothing)


@pytest.mark.parametrize(
    "options, name",
    [
        ({"order": 0}, "order"),
        ({"order": 2.5}, "order"),
        ({"smoothing": "magic"}, "smoothing"),
        ({"discount": 1.01}, "discount"),
        ({"discount": -0.1}, "discount"),
        ({"discount": (0.5, 1, 1)}, "discount"),
        ({"padding": "left"}, "padding"),
        ({"unk_cutoff": 0}, "unk_cutoff"),
        ({"smoothing": "modified_kneser_ney", "discount": (0.5, 2.5, 1)}, "discount"),
        ({"add_k": 0}, "add_k"),
        ({"backoff": 2}, "backoff"),
        ({"katz_cutoff": 1}, "katz_cutoff"),
        ({"discount": math.nan}, "discount"),
        ({"discount": "much"}, "discount"),
        ({"smoothing": None}, "smoothing"),
        ({"order": True}, "order"),
        ({"add_k": math.inf}, "add_k"),
    ],
)
def test_settings_out_of_range_are_named(options, name):
    with pytest.raises(ValueError, match=f"^{name} "):
        NgramLM(**options)


@pytest.mark.parametrize(
    "sentences, error, message",
    [
        ([], ValueError, "no words"),
        ([[]], ValueError, "no words"),
        ([["a"], "b c"], TypeError, r"sentences, row 1: .*str 'b c'"),
        ([["a"], None], TypeError, r"sentences, row 1: .*None"),
        ([["a"], ["b", 3]], TypeError, r"sentences, row 1: .*int 3"),
        ([["a"], ["b", ["c"]]], TypeError, r"sentences, row 1: .*list"),
        ([["a"], ["b", math.nan]], TypeError, r"sentences, row 1: .*NaN"),
        ([["a"], ["</s>"]], ValueError, r"sentences, row 1"),
        ("ab", TypeError, "sentences must be a list of lists of tokens"),
        ({"a": 1}, TypeError, "sentences must be a list of lists of tokens"),
        (3, TypeError, "sentences must be a list of lists of tokens"),
    ],
)
def test_bad_corpora_are_refused(sentences, error, message):
    with pytest.raises(error, match=message):
        NgramLM().fit(sentences)


def test_bad_sentence_is_named_by_its_place_in_the_stream(monkeypatch):
    monkeypatch.setattr("tsteval.lexical.ngram_counts.count_text.__defaults__", (5,))
    with pytest.raises(TypeError, match=r"sentences, row 17"):
        NgramLM().fit([["a", "b", "c"]] * 17 + ["oops"])


def test_bad_questions_are_refused():
    model = NgramLM(2).fit([["a", "b"]])
    for context, error, message in [
        (["a", "b"], ValueError, "context has 2 words"),
        ("a", TypeError, "context must be a list"),
        ([3], TypeError, r"context, row 0"),
    ]:
        with pytest.raises(error, match=message):
            model.prob("a", context)
    with pytest.raises(TypeError, match="a word must be a string, got int 3"):
        model.prob(3)
    with pytest.raises(ValueError, match="not been fitted"):
        NgramLM().prob("a")
    with pytest.raises(ValueError, match="2 tables"):
        NgramLM(2).fit_counts([{("a",): 1}])
    for table, message in [
        ({"a": 1}, "table 1 holds 'a'"),
        ({("a", "b"): 1}, "table 1 holds"),
        ({("a",): 0}, "table 1, the count of"),
        ({("a",): -1}, "table 1, the count of"),
        ({("a",): "1"}, "table 1, the count of"),
        ({("a",): math.nan}, "table 1, the count of"),
        ({("a",): math.inf}, "table 1, the count of"),
        ({(3,): 1}, "the words of the tables, row 3"),
        ("ab", "table 1 must map"),
    ]:
        with pytest.raises(InputError, match=message):
            NgramLM(1).fit_counts([table])
    with pytest.raises(InputError, match="a list of 1 tables"):
        NgramLM(1).fit_counts({("a",): 1})


@pytest.mark.parametrize("token", [3, None, math.nan, b"a", ["a"]])
def test_a_token_that_is_no_string_is_not_scored_as_unknown(token):
    model = NgramLM(2, padding="arpa").fit([["a", "b"]])
    for ask in (model.logprobs, model.perplexity):
        with pytest.raises(InputTypeError, match=r"sentences, row 1: expected strings"):
            ask([["a"], ["b", token]])


def test_sentences_may_come_from_anything_that_yields_rows():
    model, expected = NgramLM(2).fit([["a", "b"], ["b"]]), [["a", "b"], ["b"]]
    rows = np.empty(2, dtype=object)
    rows[:] = expected
    for sentences in (tuple(expected), iter(expected), (row for row in expected), map(list, expected), rows):
        scores = model.logprobs(sentences)
        assert [row.tolist() for row in scores] == [row.tolist() for row in model.logprobs(expected)]
    assert NgramLM(2).fit(map(tuple, expected)).identity == model.identity
    assert NgramLM(2).fit([[np.str_(token) for token in row] for row in expected]).identity == model.identity


def test_identity_changes_with_text_and_settings_and_with_nothing_else(tmp_path):
    corpus = text(30)
    models = [NgramLM(2).fit(corpus), NgramLM(2).fit(corpus[:-1]), NgramLM(3).fit(corpus),
              NgramLM(2, discount=0.2).fit(corpus),
              NgramLM(2, "witten_bell").fit(corpus), NgramLM(2, padding="arpa").fit(corpus),
              NgramLM(2, unk_cutoff=2).fit(corpus),
              NgramLM(2).fit([[word.upper() for word in sentence] for sentence in corpus])]
    assert len({model.identity for model in models}) == len({model.tag for model in models}) == len(models)
    assert len({sign("fluency", model=model) for model in models}) == len(models)
    first = models[0]
    assert first.identity == NgramLM(2).fit(iter(corpus)).identity and len(first.identity) == 64
    assert first.tag == f"ngram-2-kneser_ney-both@{first.identity[:12]}" and first.tag in sign("fluency", model=first)
    first.save(tmp_path / "model.npz")
    assert NgramLM.load(tmp_path / "model.npz").identity == first.identity
    three = NgramLM(2, "modified_kneser_ney", (0.5, 1, 1.5)).fit(corpus)
    three.save(tmp_path / "model.npz")
    assert NgramLM.load(tmp_path / "model.npz").identity == three.identity


@pytest.mark.parametrize("question", ["identity", "tag", "words", "keys", "vocabulary_size"])
def test_a_model_that_learned_nothing_says_so(question):
    with pytest.raises(NotFittedError, match="not been fitted"):
        getattr(NgramLM(), question)
    with pytest.raises(AttributeError, match="no attribute 'perplexities'"):
        getattr(NgramLM(), "perplexities")  # noqa: B009  asked for by name, as a typing mistake does


def test_progress_bar_writes_to_standard_error_only(capsys):
    NgramLM().fit([["a"]], progress=True)
    captured = capsys.readouterr()
    assert captured.out == "" and "sentences" in captured.err


def test_brown_through_nltk():
    if not any(
        os.path.exists(os.path.join(folder, "corpora", name))
        for folder in os.environ.get("NLTK_DATA", "").split(os.pathsep)
        if folder
        for name in ("brown", "brown.zip")
    ):
        pytest.skip("needs the Brown corpus: nltk.download('brown') and NLTK_DATA set to its folder")
    from nltk.corpus import brown

    sentences = [list(sentence) for sentence in brown.sents(categories="news")]
    model = NgramLM(3, "modified_kneser_ney", padding="arpa").fit(sentences[::2])
    plain = NgramLM(3, "add_k", padding="arpa").fit(sentences[::2])
    assert model.perplexity(sentences[1::2]) < plain.perplexity(sentences[1::2])


@pytest.mark.parametrize("write", ["save", "to_arpa"])
def test_a_model_that_cannot_be_written_whole_leaves_the_earlier_one(tmp_path, monkeypatch, write):
    lm, path = NgramLM(order=2, padding="arpa").fit([["a", "b"], ["b", "a"]]), tmp_path / "model"
    getattr(lm, write)(path)
    before = path.read_bytes()

    def full(*arguments, **options): raise OSError(28, "No space left on device")
    monkeypatch.setattr(np, "savez" if write == "save" else "maximum", full)
    with pytest.raises(OSError) as caught: getattr(lm, write)(path)
    assert caught.value.filename == str(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["model"]
