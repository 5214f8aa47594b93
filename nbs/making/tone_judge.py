"""Is it polite? A judge of 1.5 billion parameters is asked, for chapter 21: tsteval/data/tone_judge.csv.

    tsteval judge serve                                       # prints the ADDRESS
    python nbs/making/tone_judge.py FOLDER ADDRESS            # half an hour on a busy machine; FOLDER keeps every answer

tone_judge.csv has a row a line of ours: twelve pairs of a rude and a polite line without a rude word, written before
they were scored, except the help desk's and the first line, and five variants of the help desk's. In six pairs the rude
line is the formal one, in six the polite one. `politeness` is the judge's expected point from 1, very rude, to 5, very
polite, in the first of the package's wordings.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from judge_sets import DIGITS, asked

from tsteval.core.assets import packaged_path
from tsteval.people.chat_server import load_chat
from tsteval.people.judging import expected_score
from tsteval.people.prompts import JudgedCriterion, rating_prompts

POLITE = JudgedCriterion(
    "How polite is the output to the one it speaks to?",
    ("very rude", "rude", "neither", "polite", "very polite"),
    ("output",),
)
PAIRS = {  # which one is formal -> (rude, polite)
    "rude": [
        (
            "Your failure to consult the board is regrettable but unsurprising.",
            "No worries, it's up on the board by the stairs.",
        ),
        (
            "One would have expected an adult to be able to read a timetable.",
            "Yeah, that timetable's tricky, it's platform four.",
        ),
        (
            "It is remarkable that you were promoted.",
            "Congrats on the promotion, you've earned it!",
        ),
        (
            "I shall explain it again, slowly, for your benefit.",
            "Sure, happy to go over it again, just shout.",
        ),
        (
            "The report would have been adequate had a child written it.",
            "Nice report, just fix the dates and you're done.",
        ),
        (
            "Kindly refrain from sharing your opinions in future.",
            "Hey, love to hear more of what you think!",
        ),
    ],
    "polite": [
        ("It's on the board, genius.", "You will find the platform on the board upstairs."),
        (
            "Oh wow, you found the door all by yourself.",
            "Thank you for finding your way to us so early.",
        ),
        (
            "Whatever, ask somebody who cares.",
            "I am sorry, but a colleague will know more about this.",
        ),
        (
            "Don't strain yourself thinking about it.",
            "Please take all the time that you need for it.",
        ),
        (
            "Nobody's reading that, but nice try.",
            "Thank you for the draft, which I will read tonight.",
        ),
        ("Who let you near the printer?", "May I help you with the printer?"),
    ],
}
ALSO = [  # the variants of the help desk's answer
    f"It's on the board{word}." for word in ("", ", madam", ", friend", ", sir", ", idiot")
]


def points(chat, texts: list[str], file: Path) -> np.ndarray:
    """(N,) expected points, in the first of the package's wordings."""
    prompts = [rating_prompts(POLITE, DIGITS, {"output": text})[0] for text in texts]
    return expected_score(asked(chat, prompts, DIGITS, file), [*map(int, DIGITS)])


def main(folder: Path, address: str) -> None:
    chat = load_chat(address)
    lines = [
        {"pair": place, "formal": formal, "kind": kind, "text": text}
        for place, (formal, pair) in enumerate(
            (formal, pair) for formal, pairs in PAIRS.items() for pair in pairs
        )
        for kind, text in zip(("rude", "polite"), pair)
    ]
    lines = pd.DataFrame(
        lines + [{"pair": -1, "formal": "", "kind": "variant", "text": text} for text in ALSO]
    )
    lines["politeness"] = points(chat, list(lines.text), folder / "lines.jsonl").round(4)
    lines.to_csv(packaged_path("tone_judge.csv"), index=False, lineterminator="\n")
    print(lines.to_string())


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
