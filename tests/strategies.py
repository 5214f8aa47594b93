"""Texts as the world has them, for hypothesis."""

import numpy as np
from hypothesis import strategies as st

LONG = 20_000  # characters of the longest word
HOSTILE = (
    "",
    " ",
    "\t\n\r\v\f",
    "\u00a0\u2003\u3000",
    "\u200b\u200d\ufeff",
    "\x00",
    "a\x00b",
    "\x1b[31mred\x1b[0m",
    "\x85\u2028\u2029",
    "\ud800",
    "half \ud83d",
    "\udc80\udcff",
    "e\u0301\u0300\u0327" * 3,
    "a" + "\u0301" * 200,
    "\u202egnp.exe\u202c",
    "\u2067\u05e9\u05dc\u05d5\u05dd\u2069 a",
    "\u0627\u0644\u0633\u0644\u0627\u0645 \u0639\u0644\u064a\u0643\u0645",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466 \U0001f44d\U0001f3fd \U0001f1f9\U0001f1fb",
    "\u6f22\u5b57\u304b\u306a\u30ab\u30ca",
    "\u0e20\u0e32\u0e29\u0e32\u0e44\u0e17\u0e22",
    "\u0130stanbul \u00df \ufb01 \u01c5",
    "\u00bd \u2167 \u0663 \u0967 1\u00b2",
    "\U0010ffff\ufffe",
    "<script>alert('x')</script>",
    "<b>bold</b> &amp;lt; &#x27; &nosuch;",
    "</div><!-- ]]>",
    '=HYPERLINK("http://a.example";"b")',
    "+1+1",
    "-2",
    "@SUM(A1)",
    "=cmd|' /C calc'!A0",
    "\"quoted\", 'single' \\ back",
    "a,b;c\td|e",
    "[MASK] ##ing <|im_end|> <unk> <s> </s> [SEP] [PAD]",
    "{text} {{x}} {% y %} %s %d",
    "NaN",
    "null",
    "1e999",
    "0",
    "../..",
    "C:\\x",
    "." * 500,
    ".," * 250,
    "-" * 300,
    "http://[::1",
    "https://a.example/%zz?q=\u202e)",
    "a" * 1200,
    "The mill was built in 1932.",
    "the the the the",
    "A",
    "!",
)
PLAIN = (
    ("the mill was built in 1932 .", "The old mill was built, they say, in 1932."),
    ("a cat", "a dog ran"),
    ("It is 5 km away.", "It is far away."),
    ("the mill", "the mill"),
)


def texts(longest=200):
    """Any text: letters of any script, marks, halves of pairs, controls, mixtures of hostile pieces, and words without
    end."""
    letters = st.text(
        st.characters(exclude_categories=()), max_size=min(longest, 60)
    )  # lone surrogates among them
    words = st.sampled_from(
        [
            "the",
            "The",
            "mill",
            "was",
            "built",
            "in",
            "1932",
            ".",
            ",",
            "don't",
            "e-mail",
            "\u00e9",
            "\u2019",
            "$5",
            "3.5 km",
        ]
    )
    sentence = st.lists(words, max_size=12).map(" ".join)
    mixed = st.lists(
        st.one_of(
            st.sampled_from([piece for piece in HOSTILE if len(piece) <= longest]), words, letters
        ),
        max_size=6,
    ).map(lambda parts: " ".join(parts)[:longest])
    repeated = st.builds(
        lambda piece, times: (piece * times)[:longest],
        st.sampled_from(["a", "ab ", ".", "\u0301", "\U0001f600", "\ud800", "-"]),
        st.integers(1, longest),
    )
    return st.one_of(
        sentence,
        letters,
        mixed,
        repeated,
        st.sampled_from([piece for piece in HOSTILE if len(piece) <= longest]),
    )


def rows(longest=200, most=4):
    """Pairs of texts, among them pairs of equal ones."""
    one = texts(longest)
    return st.lists(
        st.one_of(st.tuples(one, one), one.map(lambda text: (text, text))),
        min_size=1,
        max_size=most,
    )


def zipf_text(sentences=2000, seed=0, vocabulary=5000):
    """Sentences of Zipf-distributed words, half of them with a fixed successor, for n-grams of every count."""
    random = np.random.default_rng(seed)
    shares = 1 / np.arange(1, vocabulary + 1) ** 1.1
    corpus = []
    for draws in (
        random.choice(vocabulary, size=random.integers(1, 15), p=shares / shares.sum())
        for _ in range(sentences)
    ):
        words = [draws[0]]
        for draw in draws[1:]:
            words.append((words[-1] + 1) % vocabulary if random.random() < 0.5 else draw)
        corpus.append([f"w{word}" for word in words])
    return corpus


# outputs and their references, odd ones among them
OUTPUTS = [
    "The kids loved the gift.",
    "the cat sat on the mat",
    "It's 3.5% (or so), isn't it?",
    "x",
    "",
    "ein schöner Größenwahn 👩‍🔬",
    "the the the cat the",
    "The plans were agreed by the committee in May.",
]
REFERENCES = [
    ["The children were overjoyed by the present."],
    ["on the mat sat the cat", "a cat is on a mat"],
    ["It's 3.5 %, or thereabouts.", "No."],
    ["y"],
    ["something"],
    ["ein schoener Größenwahn"],
    ["the cat the"],
    ["In May the committee agreed to the plan.", "The committee agreed to the plans in May."],
]
# strings that cut a tokeniser's rules apart
any_text = (
    st.text()
    | st.text(alphabet="ab1٣ .,-&;'\"\n\t!$<>éß中—’\u00a0")
    | st.lists(
        st.sampled_from(
            [
                "<skipped>",
                "-\n",
                "&amp;lt;",
                "&quot;",
                "3.5",
                "1,000",
                "..5",
                ",,,7",
                "9-",
                "can't",
                "x",
                " ",
            ]
        )
    ).map("".join)
)
