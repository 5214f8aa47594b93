"""Sixteen rewrites that we made to fool scores of shared words, our ratings of them, and what a served judge says:
tsteval/data/judge_traps.csv, for `how_to_judge`.

    tsteval judge serve                              # prints the ADDRESS
    python nbs/making/judge_traps.py ADDRESS         # some minutes on two cores

A row an output and wording, with the probability of each point from 1 to 5.
"""

import sys
from operator import itemgetter

import pandas as pd
from judge_examples import WORDINGS

from tsteval.core.assets import packaged_path
from tsteval.people.chat_server import load_chat
from tsteval.people.prompts import CRITERIA, rating_prompts

RATED = {  # source -> output -> our rating of how much of the meaning it keeps
    "The ferry to the island leaves at nine and takes forty minutes.": {
        "At nine the ferry sets off for the island, a trip of forty minutes.": 5,
        "The ferry to the island leaves at nine and sinks after forty minutes.": 1,
    },
    "The library lends tools as well as books.": {
        "Besides books, you can borrow tools at the library.": 5,
        "The library lends books.": 3,
    },
    "Rain delayed the match, but nobody left the stadium.": {
        "Rain delayed the match.": 3,
        "Rain delayed the match, and everybody left the stadium.": 2,
    },
    "The baker opened a second shop in March.": {
        "In March the baker got another shop.": 5,
        "The baker closed his second shop in March.": 1,
    },
    "Most visitors come by train because parking is scarce.": {
        "Since there are few places to park, visitors mostly take the train.": 5,
        "Most visitors come by train.": 3,
    },
    "The bridge is closed to lorries until the repair is done.": {
        "The bridge is closed.": 3,
        "The bridge is open to lorries until the repair is done.": 1,
    },
    "Her first novel sold few copies and won a prize.": {
        "Hardly anyone bought her debut, which was given a prize.": 5,
        "Her first novel sold many copies and won no prize.": 1,
    },
    "The committee will vote on the budget on Tuesday.": {
        "On Tuesday the budget comes before the committee for a vote.": 5,
        "The committee will vote.": 3,
    },
}


def main(address: str) -> None:
    chat = load_chat(address)
    rows = []
    for source, outputs in RATED.items():
        for output, rating in outputs.items():
            texts = {"source": source, "output": output}
            prompts = rating_prompts(CRITERIA["content"], "12345", texts)
            for place, answer in sorted(chat.ask(prompts, "12345"), key=itemgetter(0)):
                assert answer.shares is not None, answer.reason
                about = {"source": source, "output": output, "rating": rating}
                shares = {f"p_{point}": share for point, share in enumerate(answer.shares, 1)}
                rows.append(about | {"wording": WORDINGS[place]} | shares)
    table = pd.DataFrame(rows).round(4)
    table.to_csv(packaged_path("judge_traps.csv"), index=False, lineterminator="\n")
    print(table.to_string())


if __name__ == "__main__":
    main(sys.argv[1])
