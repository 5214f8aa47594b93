"""`tsteval rate` makes rating sheets for people, `tsteval study` says how closely metrics follow them"""

import shlex
from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path

from ..core.checks import InputError, check_number
from ..core.display import printable
from ..core.metric import INPUTS
from ..core.resample import FEW
from ..core.version import __version__
from ..report.terminal import say
from ..runs.settings import Settings, list_settings
from .app import Command, chosen, option, options_of
from .evaluate import write_files
from .request import Pairs, Reading, asked, read_pairs, score_pairs


@dataclass(frozen=True)
class _Rate:
    file: str | None = option("table of pairs; - reads what is piped in", metavar="FILE", flags=())
    output: str = option("where the sheets go", "tsteval-ratings", "FOLDER")
    criteria: str = option("what to rate", "style,content,naturalness", "LIST")
    question: tuple[str, ...] = option(
        "what to ask for a criterion; may be repeated", (), "CRITERION=TEXT"
    )
    scale: str = option("two digits", "1-5", "LOW-HIGH")
    raters: int = option("sheets", 1, "N")
    overlap: float = option("share of the sources that every rater gets", 1.0, "X")
    repeat: float = option("share of a sheet that is asked twice", 0.1, "X")
    seed: int = option("of the order, and of what is drawn", 0, "N")
    sample: int | None = option(
        "draw about N rows at random: whole sources, the same for every system",
        metavar="N",
        lowest=1,
    )
    masked: bool = option(
        "cover the words that carry the style, so that raters see the content alone", False
    )
    target_style: str = option("the style to be reached", "neutral", "STYLE")


_BLANK = "____"  # a covered word
_RANGES = (
    ("raters", 1, 99, True),
    ("overlap", 0, 1, False),
    ("repeat", 0, 0.3, False),
    ("seed", 0, 2**32, True),
)


def _asked(table, options: _Rate):
    """The rows that raters get, of a checked table, and what they see of them."""
    from tsteval.people.sheets import sample_outputs
    from tsteval.tables.outputs import prepare_pairs

    if not (options.sample or options.masked):
        return table
    table = prepare_pairs(
        table, options.target_style
    )  # a mistake is told of the whole table, with its row
    referenced = table.references.map(len).all()
    table = table.drop(columns=[*INPUTS, *["references"] * (not referenced)], errors="ignore")
    if options.sample:
        table = sample_outputs(table, options.sample, options.seed)
    if not options.masked:
        return table
    from tsteval.cps import complete_attributions, mask_style

    texts = [*table.source, *table.output]
    attributions = complete_attributions(texts, None)
    covered = [
        mask_style(attributions[text], unit="word").replace("[PAD]", _BLANK) for text in texts
    ]
    return table.assign(masked_source=covered[: len(table)], masked_output=covered[len(table) :])


def _rate(arguments: Namespace) -> int:
    from tsteval.people.sheets import (
        choose_criteria,
        parse_scale,
        plan_ratings,
        told_plan,
        write_sheets,
    )

    options = chosen(_Rate, arguments)
    for name, low, high, whole in _RANGES:
        check_number(getattr(options, name), f"--{name}", low, high, whole=whole)
    if bare := [question for question in options.question if "=" not in question]:
        raise InputError("write CRITERION=TEXT", argument=f"--question {bare[0]}")
    if Path(options.output).is_file():
        raise InputError(f"--output {options.output} is a file; name a folder")
    questions = dict(question.split("=", 1) for question in options.question)
    names = [name.strip() for name in options.criteria.split(",")]
    criteria = choose_criteria(names, questions)
    scale = parse_scale(options.scale)
    if options.sample and chosen(Reading, arguments).limit:
        raise InputError("--sample draws at random and --limit takes the first rows; choose one")
    pairs = read_pairs(options.file, chosen(Reading, arguments))
    try:
        table = _asked(pairs.table, options)
        plan = plan_ratings(
            table,
            criteria,
            scale=scale,
            raters=options.raters,
            overlap=options.overlap,
            repeat=options.repeat,
            target_style=options.target_style,
            seed=options.seed,
        )
    except InputError as error:
        raise pairs.located(error) from error
    write_sheets(plan, options.output)
    arguments.written = printable(options.output)
    say(told_plan(plan, options.output))
    if options.sample:
        score = shlex.join(["tsteval", "evaluate", *_table_words(options, arguments)])
        say(
            f"A random sample of {len(table):,} of {len(pairs.table):,} rows (seed {options.seed}). For what people would "
            f"say of all rows:\n  {score if options.file != '-' else 'tsteval evaluate, on what was piped in'}\n  "
            f"{shlex.join(['tsteval', 'estimate', options.output, 'tsteval-results'])}"
        )
    sources = plan.table.source_id.nunique()
    if sources < FEW:
        more = FEW * plan.table.system.nunique()
        say(
            f"warning: {len(plan.table)} outputs of only {sources} sources. What raters say is carried over to other "
            f"texts by its sources, and fewer than {FEW} leave wide intervals; "
            + (
                f"--sample {more} draws about {FEW}."
                if options.sample and len(pairs.table) >= more
                else "rate more sources."
            )
        )
    return 0


def _table_words(options: _Rate, arguments: Namespace) -> list[str]:
    """The words of this command that name the rows and say how to read them."""
    words = [options.file] if options.file else []
    for one in options_of(Reading):
        value = getattr(arguments, one.name, None)
        for given in value if isinstance(value, list) else [] if value is None else [value]:
            words += [one.flags[-1], str(given)]
    return words + ["--target-style", arguments.target_style] * bool(arguments.target_style)


rate_command = Command(
    _rate,
    (*options_of(_Rate), *options_of(Reading)),
    "Deal the outputs of one or more systems to raters: a table and a form for each, and a key that "
    "stays with you.",
)


@dataclass(frozen=True)
class _Study:
    ratings: tuple[str, ...] = option(
        "the folder of `tsteval rate`, filled sheets with --key, tables, or a study's name",
        (),
        "RATINGS",
        flags=(),
        required=True,
    )
    key: str | None = option("the key.json of filled sheets", metavar="FILE")
    unfinished: bool = option("take sheets in which ratings are missing", False)
    scores: str | None = option(
        "scores of the outputs, such as a per_pair.csv of `tsteval evaluate` (default: score "
        "them here)",
        metavar="FILE",
    )
    metrics: tuple[str, ...] = option(
        "as for `tsteval evaluate`; a published study has its scores stored, and is scored "
        "anew with this",
        metavar="LIST",
    )
    output: str = option("where the results go", "tsteval-study", "FOLDER")


def _study(arguments: Namespace) -> int:
    from tsteval.people.pages import study_files, told_study
    from tsteval.people.study import (
        rated_outputs,
        read_study,
        study_scores,
        study_tables,
        with_keys,
    )

    options = chosen(_Study, arguments)
    arguments.output = options.output
    request = asked(arguments)
    study = read_study(options.ratings, options.key, unfinished=options.unfinished)
    settings = {"n_boot": request.settings.n_boot, "seed": request.settings.seed}
    scored = study_scores(study, options.scores, anew=bool(request.metrics))
    if scored is None:
        rated = rated_outputs(study.ratings)
        scored = with_keys(rated, score_pairs(request, Pairs(rated, {"file": options.ratings[0]})))
    tables = study_tables(study, scored.scores, scored.metrics, **settings)
    files = study_files(
        study, scored.scores, tables, {**scored.facts, "tsteval": __version__}, **settings
    )
    message = write_files(files, arguments)
    say(told_study(tables, None if scored.metrics is None else 8))
    say(f"\n95% intervals over sources in brackets. {message}")
    return 0


_OF_TABLES = (
    "target_style",
    "baseline",
    *(setting.name for setting in list_settings() if setting.blocks),
)
study_command = Command(
    _study,
    (*options_of(_Study), *options_of(Settings, _OF_TABLES)),
    "Agreement of metrics with people: of filled rating sheets, of a table with source, output, "
    "criterion and rating, or of a published study (mir2019, lai2022, style_gap, msr_compression).",
)
