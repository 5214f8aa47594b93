"""Word pieces: learned, cut, kept."""

import pytest

from tsteval.core.checks import InputError, InputTypeError
from tsteval.core.metric import sign
from tsteval.words.word_pieces import WordPieces

TEXTS = ["tin " * 8, "ton " * 4, "tint tint", "sin sin sin"]


def test_pieces_spell_the_text_in_lower_case():
    pieces = WordPieces.train(TEXTS, 30)
    assert "".join(piece.removeprefix("##") for piece in pieces("Tint SIN")) == "tintsin"
    assert pieces("zebra") == ["[UNK]"] and pieces("") == []


def test_the_most_frequent_pair_is_merged_first():
    vocabulary = WordPieces.train(TEXTS, 30).tokenizer.get_vocab()
    merged = [
        piece
        for piece in sorted(vocabulary, key=vocabulary.get)
        if len(piece.removeprefix("##")) > 1
    ]
    assert merged[1] == "##in"  # after [UNK]


def test_more_pieces_cut_less():
    assert len(WordPieces.train(TEXTS, 9)("tint")) > len(WordPieces.train(TEXTS, 30)("tint"))


def test_the_same_text_gives_the_same_pieces_each_time():
    texts = [
        " ".join(f"{first}{second}" for first in "abcdefgh" for second in "ijklmnop")
    ]  # every pair is a tie
    assert len({WordPieces.train(texts, 60).tag for _ in range(6)}) == 1


def test_a_piece_that_stands_in_a_text_is_cut_like_any_text():
    assert WordPieces.train(TEXTS, 30)("##n tin") == [
        "[UNK]",
        "[UNK]",
        *WordPieces.train(TEXTS, 30)("n tin"),
    ]


def test_a_vocabulary_comes_back_from_its_file(tmp_path):
    pieces = WordPieces.train(TEXTS, 30)
    pieces.save(tmp_path / "pieces.json")
    again = WordPieces.load(tmp_path / "pieces.json")
    assert again.tag == pieces.tag and again("tint sin") == pieces("tint sin")
    assert sign("x", tokenize=pieces) != sign("x", tokenize=WordPieces.train(TEXTS, 9))


def test_what_cannot_be_learned_from_or_read_is_named(tmp_path):
    with pytest.raises(InputError, match="no word"):
        WordPieces.train(["", " "])
    with pytest.raises(InputTypeError):
        WordPieces.train(["fine", 3])
    with pytest.raises(InputError, match="size"):
        WordPieces.train(TEXTS, 0)
    (tmp_path / "no.json").write_text("{}")
    with pytest.raises(InputError, match=r"no\.json"):
        WordPieces.load(tmp_path / "no.json")
