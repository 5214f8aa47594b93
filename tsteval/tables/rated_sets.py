"""Twenty-two published sets that people labelled, each read by one declaration in `data/corpora.json`"""

import itertools
import json
from pathlib import Path

import numpy as np
import pandas as pd

from ..core.assets import AssetError, corpora, corpus_path
from ..core.files import file_sha256


def rated_sets() -> tuple[str, ...]:
    """The names of the sets, as `load_ratings` takes them."""
    return tuple(name for name, corpus in corpora().items() if corpus.ratings)


def same_tables(
    name: str,  # of `rated_sets`
) -> bool:
    """Whether the tables on this machine are those on which the figures that ship were computed; another part of the set
    reads as well and gives other figures.

    Raises: AssetError if the set is not on this machine.
    """
    folder = corpus_path(name)
    tables = corpora()[name].tables.items()
    return all(
        (folder / file).is_file() and file_sha256(folder / file) == sum_ for file, sum_ in tables
    )


def read_rated_set(
    name: str,  # of `rated_sets`
    # one row an output: system, cluster (rows with one value depend on each other), source, output, references (lists),
    # target_style, and what the set stores beside
) -> tuple[
    pd.DataFrame, dict[str, np.ndarray]
]:  # and what was asked -> (N,) means or labels, or (N, R) answers, NaN where a rater gave none
    """A set as its publisher laid it, without the rows that its publisher says cannot be used.

    Raises: AssetError if the set is not on this machine, or a table of it lacks a column.
    """
    declared = corpora()[name].ratings
    folder = corpus_path(name)
    rows = _table(folder / declared["rows"])
    if "texts" in declared:
        key = declared["key"]
        texts = _table(folder / declared["texts"])
        rows = rows.astype({key: str}).merge(
            texts.astype({key: str}), on=key, suffixes=("", "_of_texts"), validate="many_to_one"
        )
    rows = _TIDY.get(name, _as_it_is)(rows)
    criteria = {asked: _columns(rows, names) for asked, names in declared["criteria"].items()}
    asked = [column for columns in criteria.values() for column in columns]
    roles = [declared[role] for role in ("output", "system", "source") if role in declared]
    stored = declared.get("stored", [])
    needed = [*roles, declared["cluster"], *declared.get("references", []), *stored, *asked]
    if missing := [column for column in needed if column not in rows]:
        raise AssetError(
            f"{folder}: the tables of {name} hold no column {missing[0]}; they hold {', '.join(rows)}"
        )
    outputs = pd.DataFrame(
        {
            "system": rows[declared["system"]] if "system" in declared else "person",
            "cluster": rows[declared["cluster"]],
            "source": rows[declared["source"]] if "source" in declared else "",
            "output": rows[declared["output"]],
            "references": _references(rows[declared.get("references", [])]),
            "target_style": declared.get("target_style", ""),
            **{column: rows[column] for column in stored},
        }
    )
    answers = {}
    for question, columns in criteria.items():
        cells = rows[columns].to_numpy(float)
        answers[question] = cells if len(columns) > 1 else cells[:, 0]
    return outputs.reset_index(drop=True), answers


def _table(path: Path) -> pd.DataFrame:
    if not path.is_file():
        raise AssetError(f"{path} is missing. To mend it: get the set's tables again")
    try:
        if path.suffix == ".jsonl":
            lines = path.read_text(encoding="utf-8").splitlines()
            return pd.DataFrame([json.loads(line) for line in lines])
        return pd.read_csv(path, keep_default_na=False, na_values=[""])
    except ValueError as error:
        raise AssetError(f"{path} cannot be read ({error}). To mend it: get it again") from error


def _references(columns: pd.DataFrame) -> list[list[str]]:
    """The references of each row; a cell holds one or a list."""
    lists = columns.map(lambda cell: cell if isinstance(cell, list) else [cell])
    return [[text for texts in cells for text in texts] for cells in lists.to_numpy()]


def _columns(rows: pd.DataFrame, names: list[str]) -> list[str]:
    """The columns of answers; a name that ends in * stands for all that begin so."""
    columns = []
    for name in names:
        start = name.removesuffix("*")
        many = [column for column in rows if column.startswith(start)] if start != name else []
        columns += many or [name]  # a name that stands for none is missing
    return columns


# ---- what each set needs beyond its columns


def _as_it_is(rows: pd.DataFrame) -> pd.DataFrame:
    return rows


def _cola(rows: pd.DataFrame) -> pd.DataFrame:
    """Without sentences that stand there with both labels, and each once."""
    return rows[rows.conflict == 0].drop_duplicates("sentence")


def _faithbench(rows: pd.DataFrame) -> pd.DataFrame:
    """A summary is supported unless its worst span is unwanted, the publisher's own cut."""
    return rows.assign(supported=(rows.worst != "Unwanted").astype(float))


def _grade_dialogue(rows: pd.DataFrame) -> pd.DataFrame:
    """Each of three data sets had systems of its own, and 8 to 11 raters who are not the same in each row."""
    answers = pd.DataFrame(
        itertools.zip_longest(*(cell.split() for cell in rows.ratings), fillvalue=np.nan)
    ).T.astype(float)
    answers.columns = [f"rating_{rater}" for rater in range(1, answers.shape[1] + 1)]
    rows = rows.drop(columns="rating").assign(
        part=rows.data_set,
        system=rows.data_set + " " + rows.system,
        context=rows.context.map("\n".join),
    )
    return pd.concat([rows.reset_index(drop=True), answers], axis=1)


def _hatecheck(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.assign(hateful=(rows.gold == "hateful").astype(float))


def _llmbar(rows: pd.DataFrame) -> pd.DataFrame:
    """Two answers a row become two rows."""
    return pd.concat(
        [
            rows.assign(
                system=f"output_{place}",
                output=rows[f"output_{place}"],
                is_better=(rows.better == place).astype(float),
            )
            for place in (1, 2)
        ],
        ignore_index=True,
    )


def _onestop(rows: pd.DataFrame) -> pd.DataFrame:
    """Ease: 3 for the elementary version of an article, 1 for the advanced one."""
    return rows.assign(ease=4.0 - rows.level_number)


def _paradetox(rows: pd.DataFrame) -> pd.DataFrame:
    """One text a row, in small letters: only the rewrites have capitals, which would tell them apart."""
    texts = rows.assign(toxic=rows.toxic.str.lower())
    parts = [texts.assign(system="source", output=texts.toxic, is_toxic=1.0)]
    for column in ("neutral_1", "neutral_2", "neutral_3"):
        rewritten = texts[texts[column].notna()]
        rewritten = rewritten.assign(
            system="person", output=rewritten[column].astype(str).str.lower(), is_toxic=0.0
        )
        parts.append(rewritten[rewritten.output != rewritten.toxic])
    return pd.concat(parts, ignore_index=True)


def _qags(rows: pd.DataFrame) -> pd.DataFrame:
    votes = ["vote_1", "vote_2", "vote_3"]
    return rows.assign(**{vote: (rows[vote] == "yes").astype(float) for vote in votes})


def _simpeval_past(rows: pd.DataFrame) -> pd.DataFrame:
    """Without the people's versions, which are among the references, and without an empty output."""
    return rows[(rows.kind != "human") & rows.output.notna()]


def _machines(rows: pd.DataFrame) -> pd.DataFrame:
    """The references stand among the systems and are left out."""
    return rows[rows.kind == "machine"]


def _usr(rows: pd.DataFrame) -> pd.DataFrame:
    """The reference stands among the replies and is left out."""
    return rows[rows.system != "Original Ground Truth"]


def _wnc_test(rows: pd.DataFrame) -> pd.DataFrame:
    """One row an output, rated by whether it is word for word what the editor wrote: no person rated these."""
    systems = ["modular", "concurrent", "strap_full", "strap_word", "strap_large"]
    human = rows.human.map(_letters)
    return pd.concat(
        [
            rows.assign(
                system=system,
                output=rows[column],
                as_edited=(rows[column].map(_letters) == human).astype(float),
            )
            for system, column in [*zip(systems, systems), ("copy", "source")]
        ],
        ignore_index=True,
    )


def _letters(text: str) -> str:
    """A text without white space: two of the five systems' outputs are spaced by a tokeniser."""
    return "".join(text.split())


def _xstest(rows: pd.DataFrame) -> pd.DataFrame:
    """An answer avoids the question if it refuses it wholly or in part."""
    labels = {"avoided_1": "annotation_1", "avoided_2": "annotation_2"}
    return rows.assign(
        **{
            name: (rows[column] != "1_full_compliance").astype(float)
            for name, column in labels.items()
        }
    )


_TIDY = {
    "cola": _cola,
    "faithbench": _faithbench,
    "grade_dialogue": _grade_dialogue,
    "hatecheck": _hatecheck,
    "llmbar": _llmbar,
    "onestop": _onestop,
    "paradetox": _paradetox,
    "qags_cnndm": _qags,
    "qags_xsum": _qags,
    "simpeval_past": _simpeval_past,
    "ted21_mqm_zhen": _machines,
    "usr_personachat": _usr,
    "usr_topicalchat": _usr,
    "wnc_test": _wnc_test,
    "xstest": _xstest,
}
